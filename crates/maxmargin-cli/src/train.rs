//! `maxmargin train`

mod given;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use maxmargin::data::output::Output;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::features::Block;
use maxmargin::model::{GraphLabeller, Labeller, Model, PairAligner, Parser, Tagger, TaxonomyModel};
use maxmargin::parallel::Pool;
use maxmargin::problem::{self, Formulation, HeldoutExamples};
use maxmargin::solver::folds::Folds;
use maxmargin::solver::{Settings, Status, Stop};
use maxmargin::sparse::SparseMatrix;
use maxmargin::task::Task;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::Multiclass;
use maxmargin::weights::Weights;
use maxmargin::{Error, model};

use crate::checkpoint::{Identity, checksum};
use crate::dataset;
use crate::failure::{Failure, Result};
use crate::interrupt::Halt;
use crate::kernel::{Kernelised, kernelise};
use crate::log::Log;
use crate::options::{
    self, AlignOptions, CheckpointOptions, KernelOptions, MultilabelOptions, OutputOptions, ParseOptions, PriorName,
    ProblemOptions, SolverOptions, StoppingOptions, TagOptions, TaxonomyOptions, ValidationOptions,
};
use crate::progress::Display;
use crate::step::Step;
use crate::summary::{Described, Summary};
use crate::text::count;
use crate::training::{Exactly, Examples, Trained, Training, Trial, Vectors, with_line};
use crate::{
    alignments, graphs, heldout, interrupt, multilabel, parsing, paths, refusals, sampling, tagging, taxonomy,
};
pub(crate) use given::{Given, Read};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// What is to be learned
    pub(crate) task: options::Task,
    /// Labelled examples, plain, .gz or .zst; - reads standard input
    #[arg(value_name = "TRAIN_FILE")]
    pub(crate) input: PathBuf,
    #[command(flatten)]
    pub(crate) output: OutputOptions,
    #[command(flatten)]
    pub(crate) problem: ProblemOptions,
    #[command(flatten)]
    pub(crate) taxonomy: TaxonomyOptions,
    #[command(flatten)]
    pub(crate) tag: TagOptions,
    #[command(flatten)]
    pub(crate) parse: ParseOptions,
    #[command(flatten)]
    pub(crate) multilabel: MultilabelOptions,
    #[command(flatten)]
    pub(crate) align: AlignOptions,
    #[command(flatten)]
    pub(crate) kernel: KernelOptions,
    #[command(flatten)]
    pub(crate) solver: SolverOptions,
    #[command(flatten)]
    pub(crate) stopping: StoppingOptions,
    #[command(flatten)]
    pub(crate) validation: ValidationOptions,
    #[command(flatten)]
    pub(crate) checkpoint: CheckpointOptions,
}

const EXAMPLES: &str = "\
Examples:
  maxmargin train binary a9a -m a9a.mm --c-per-example 0.1 --bias 1
  maxmargin train multiclass covtype.gz -m cov.mm --epsilon 0.001 --log rounds.jsonl
  maxmargin train binary digits.dat -m seven.mm --positive 7 --class-weight balanced
  maxmargin train multiclass stars.dat -m stars.mm --loss absolute --rescaling slack
  maxmargin train binary a9a -m a9a.mm --heldout a9a.t --c-path auto --keep-best
  maxmargin train binary big.gz -m big.mm --checkpoint big.state --resume
  maxmargin train tag english.train.pos -m pos.mm --heldout english.test.pos
  maxmargin train tag news.iob -m names.mm --template ner.template --scheme BIO --min-count 2
  maxmargin train parse english.train.mrg -m trees.mm --parent-annotation --heldout english.test.mrg
  maxmargin train parse wsj.mrg.gz -m wsj.mm --terminals words --features spans --loss f1 --max-words 20
  maxmargin train multilabel scenes.dat -m scenes.mm --pairs tree --heldout scenes.test
  maxmargin train graph images.jsonl -m images.mm --c-per-example 0.1
  maxmargin train align homologues.jsonl -m aligner.mm --alphabet protein --loss q --heldout others.jsonl
  maxmargin train align homologues.jsonl -m aligner.mm --alphabet protein --loss q --prior blosum62
  maxmargin train taxonomy news.dat -m news.mm --taxonomy news.tree --loss path

Ctrl-C stops after the current round at the latest and saves the model; a second one quits at once.";

pub(crate) fn run(args: &Args, identity: Identity) -> Result<()> {
    refusals::check(args)?;
    // Before Ctrl-C is caught: its handler ends the program and would leave the trial files of this check behind.
    check_files(args)?;
    interrupt::watch(args.output.quiet);
    let log = args.output.log.as_deref().map(Log::open).transpose()?;
    train(Session::new(args, identity, log, Halt::CtrlC)?).map(drop)
}

/// Trains inside of another program, to the bytes of a model. `weights`: how much each example counts; rows have theirs already.
pub(crate) fn in_memory(
    args: &Args,
    identity: Identity,
    given: Given,
    weights: Option<Vec<f64>>,
    log: Log,
    halt: Halt,
) -> Result<Vec<u8>> {
    refusals::check(args)?;
    if weights.is_some() && !matches!(args.task, options::Task::Tag | options::Task::Parse | options::Task::Graph) {
        return Err(Failure::Usage("weights beside the data are for tags, trees and graphs".to_owned()));
    }
    let session = Session { given, weights, in_memory: true, ..Session::new(args, identity, Some(log), halt)? };
    Ok(train(session)?.unwrap_or_default())
}

/// The bytes of a model without weights: with the dictionaries of all partitions, or for rows whose labels are all that there are.
pub(crate) fn blank(args: &Args, identity: Identity, given: Given) -> Result<Vec<u8>> {
    refusals::check(args)?;
    let session = Session::new(args, identity, None, Halt::CtrlC)?;
    Ok(train(Session { given, in_memory: true, is_blank: true, ..session })?.unwrap_or_default())
}

/// A task of another program, and its examples.
pub(crate) struct Own<'e> {
    pub(crate) examples: Examples<'e>,
    /// How many there are, where each of these stands for several.
    pub(crate) count: Option<usize>,
    /// Of what they are made of.
    pub(crate) checksum: u32,
}

/// Trains a task that is not the program's.
pub(crate) fn own(
    args: &Args,
    identity: Identity,
    own: Own<'_>,
    start: Option<Weights>,
    log: Log,
    halt: Halt,
) -> Result<Outcome> {
    let session = Session::new(args, identity, Some(log), halt)?;
    let checksums = [("the examples", own.checksum)];
    let line = |i| i as u64 + 1;
    Session { drawn_from: own.count, ..session }.train(own.examples, start, &checksums, &line)
}

fn train(session: Session<'_>) -> Result<Finished> {
    match session.args.task {
        options::Task::Binary | options::Task::Multiclass => classes(session),
        options::Task::Taxonomy => taxonomy::train::run(session),
        options::Task::Tag => tagging::train::run(session),
        options::Task::Parse => parsing::train::run(session),
        options::Task::Multilabel => multilabel::train::run(session),
        options::Task::Graph => graphs::train::run(session),
        options::Task::Align => alignments::train::run(session),
    }
}

/// The bytes of the model, where it is not saved to a file.
pub(crate) type Finished = Option<Vec<u8>>;

/// A run of `train`, whatever the task.
pub(crate) struct Session<'a> {
    pub(crate) args: &'a Args,
    identity: Identity,
    log: Option<Log>,
    halt: Halt,
    pub(crate) given: Given,
    /// How much each example counts, where the data do not say it themselves.
    weights: Option<Vec<f64>>,
    /// Is the model to be one without weights?
    is_blank: bool,
    /// Does the model stay in memory?
    in_memory: bool,
    pub(crate) pool: Pool,
    began: Instant,
    pub(crate) display: Display,
    /// Seconds that it took to make coordinates or atoms for a kernel.
    pub(crate) seconds_kernel: f64,
    /// Examples that were read, where training sees only some of them.
    drawn_from: Option<usize>,
}

/// What training came to.
pub(crate) struct Outcome {
    trained: Trained,
    /// With the C of the model that is kept.
    pub(crate) formulation: Formulation,
    pub(crate) summary: model::Summary,
    seconds_reading: f64,
}

impl Outcome {
    /// No training at all.
    fn blank(args: &Args, dimension: usize) -> Result<Self> {
        let formulation = formulation(args, 1);
        let trained = Trained::blank(formulation.c, dimension);
        let summary = summary_of(args, &trained, &formulation, 0)?;
        Ok(Self { trained, formulation, summary, seconds_reading: 0.0 })
    }

    /// Removes the checkpoint where there is nothing left to do.
    pub(crate) fn clear(&self) {
        if let Some(saver) = self.trained.saver.as_ref().filter(|_| self.trained.is_done()) {
            saver.remove();
        }
    }

    pub(crate) fn weights(&self) -> &Weights {
        &self.trained.kept.weights
    }

    /// The weights, for the model; they are not kept here any longer.
    pub(crate) fn take_weights(&mut self) -> Weights {
        std::mem::take(&mut self.trained.kept.weights)
    }

    /// What the weights come from.
    pub(crate) fn step(&self) -> &Step {
        &self.trained.kept.step
    }
}

impl<'a> Session<'a> {
    fn new(args: &'a Args, identity: Identity, log: Option<Log>, halt: Halt) -> Result<Self> {
        Ok(Self {
            args,
            identity,
            log,
            halt,
            given: Given::Text,
            weights: None,
            is_blank: false,
            in_memory: false,
            pool: Pool::new(args.solver.threads.unwrap_or(0))?,
            began: Instant::now(),
            display: reading(args),
            seconds_kernel: 0.0,
            drawn_from: None,
        })
    }

    /// The parts of a cross-validation, where one is asked for: each gets its share of each kind of example.
    pub(crate) fn folds(&self, kinds: &[u32]) -> Result<Option<Folds>> {
        let deal = |k| Folds::deal(kinds, k, self.args.solver.seed.unwrap_or(0));
        Ok(self.args.validation.folds.map(deal).transpose()?)
    }

    /// Trains on what was read. `checksums`: of that, with names for messages; `line`: where an example stands.
    pub(crate) fn train(
        &mut self,
        examples: Examples<'_>,
        start: Option<Weights>,
        checksums: &[(&str, u32)],
        line: &dyn Fn(usize) -> u64,
    ) -> Result<Outcome> {
        let args = self.args;
        if self.is_blank {
            return Outcome::blank(args, examples.data.dimension());
        }
        let start_checksum = start.as_ref().map(|w| ("the model to start from", checksum(w.as_slice())));
        let of_weights = examples.weights.map(|weights| ("the weights of the examples", checksum(weights)));
        let checksums = checksums.iter().copied().chain(start_checksum).chain(of_weights);
        self.identity.checksums = checksums.map(|(name, checksum)| (name.to_owned(), checksum)).collect();
        let seconds_reading = self.began.elapsed().as_secs_f64() - self.seconds_kernel;
        if let Some(log) = &mut self.log {
            let goes_on = args.checkpoint.resume && args.checkpoint.checkpoint.as_deref().is_some_and(Path::exists);
            log.begin(goes_on)?;
        }
        let all = self.drawn_from.unwrap_or(examples.data.len());
        let formulation = formulation(args, all);
        let training = Training {
            args,
            line,
            formulation,
            examples: all,
            settings: settings(args, start),
            pool: &self.pool,
            display: &self.display,
            halt: &self.halt,
            identity: self.identity.clone(),
        };
        let trial = Trial::new(examples, formulation).map_err(|error| with_line(args, line, error))?;
        let trained = training.run(trial, self.log.take())?;
        let formulation = Formulation { c: trained.kept.step.c, ..formulation };
        let summary = summary_of(args, &trained, &formulation, all)?;
        Ok(Outcome { trained, formulation, summary, seconds_reading })
    }

    /// Saves the model and says what it is.
    pub(crate) fn finish(
        self,
        outcome: &Outcome,
        described: &Described<'_>,
        model: &impl ModelFile,
    ) -> Result<Finished> {
        let (args, trained) = (self.args, &outcome.trained);
        if self.is_blank {
            return Ok(Some(model.to_bytes()?));
        }
        drop(self.display);
        let bytes = if self.in_memory {
            Some(model.to_bytes()?)
        } else {
            model.save(&args.output.model).map_err(|error| unsaved(error, args))?;
            None
        };
        outcome.clear();
        let seconds = (outcome.seconds_reading, self.seconds_kernel);
        Summary::new(described, trained, seconds).print(described, trained, args)?;
        Ok(bytes)
    }
}

/// A model of any task, to be written.
pub(crate) trait ModelFile {
    fn save(&self, path: &Path) -> maxmargin::Result<()>;
    fn to_bytes(&self) -> maxmargin::Result<Vec<u8>>;
}

macro_rules! model_files {
    ($($model:ty),*) => {$(
        impl ModelFile for $model {
            fn save(&self, path: &Path) -> maxmargin::Result<()> {
                <$model>::save(self, path)
            }

            fn to_bytes(&self) -> maxmargin::Result<Vec<u8>> {
                <$model>::to_bytes(self)
            }
        }
    )*};
}

model_files!(Model, TaxonomyModel, Tagger, Parser, Labeller, GraphLabeller, PairAligner);

fn reading(args: &Args) -> Display {
    let size = File::open(&args.input).and_then(|f| f.metadata()).ok().filter(std::fs::Metadata::is_file);
    Display::reading(&args.input.display().to_string(), size.map(|m| m.len()), args.output.quiet)
}

/// The tasks binary and multiclass.
fn classes(mut session: Session<'_>) -> Result<Finished> {
    let args = session.args;
    let start = args.solver.warm_start.as_deref().map(Model::load).transpose()?;
    let mut data = dataset::of(args, start.as_ref(), session.labelled(LabelRule::Required)?)?;
    if let Some(size) = sampling::drawn(args, data.examples.len()) {
        session.drawn_from = Some(data.examples.len());
        data.draw(size, args.solver.seed.unwrap_or(0));
    }
    dataset::check_memory(args, &data)?;
    let start = start.map(|model| dataset::fitted(&model, args, &data)).transpose()?;
    let bias = args.problem.bias;
    let heldout = args.validation.heldout.as_deref();
    let mut heldout = heldout.map(|path| heldout::read(path, &data, &session.pool)).transpose()?;
    let slots = if args.task == options::Task::Binary { 1 } else { data.classes.words.len() };
    let heldout_matrix = heldout.as_ref().map(|h| &h.matrix);
    let mut kernel = kernelise(args, &data.examples.matrix, heldout_matrix, slots, &session.pool)?;
    session.seconds_kernel = kernel.as_ref().map_or(0.0, Kernelised::seconds);
    if let Some(kernel) = &mut kernel {
        data.examples.matrix = std::mem::take(&mut kernel.train);
        if let Some((heldout, rows)) = heldout.as_mut().zip(kernel.heldout.take()) {
            heldout.matrix = rows;
        }
    } else if let Some(bias) = bias {
        let with_constant = |matrix: &mut SparseMatrix| *matrix = matrix.with_constant(bias);
        with_constant(&mut data.examples.matrix);
        if let Some(heldout) = &mut heldout {
            with_constant(&mut heldout.matrix);
        }
    }
    let mut checksums = vec![
        ("the training file", data.examples.checksum),
        // f64 is printed so that no bit is lost.
        ("the cost matrix", crc32fast::hash(format!("{:?}", data.loss).as_bytes())),
    ];
    checksums.extend(heldout.as_ref().map(|heldout| ("the held-out file", heldout.checksum)));

    let columns = data.examples.matrix.columns();
    let (rows, heldout_rows) = (data.examples.matrix.views(), heldout.as_ref().map(|h| h.matrix.views()));
    let folds = session.folds(&data.classes.outputs)?;
    let exact_rows = kernel.as_ref().and_then(Kernelised::exact_rows);
    let exact_inputs = exact_rows.map(SparseMatrix::views);
    macro_rules! train {
        ($task:expr) => {{
            let task = $task(columns);
            let exact_task = $task(exact_rows.map_or(0, SparseMatrix::columns));
            let examples = Examples {
                data: problem::examples(&task, &rows, &data.classes.outputs, data.weights.as_deref())?,
                weights: data.weights.as_deref(),
                folds: folds.as_ref(),
                vectors: kernel.as_ref().map_or(Vectors::Own, |kernel| kernel.vectors(task.blocks()[0])),
                heldout: heldout_rows
                    .as_deref()
                    .zip(heldout.as_ref())
                    .map(|(rows, h)| HeldoutExamples::new(&task, rows, &h.truths)),
                exactly: match (exact_inputs.as_deref(), kernel.as_ref()) {
                    (Some(inputs), Some(kernel)) => Some(Exactly {
                        data: problem::examples(&exact_task, inputs, &data.classes.outputs, data.weights.as_deref())?,
                        block: exact_task.blocks()[0],
                        kernel,
                    }),
                    _ => None,
                },
            };
            session.train(examples, start, &checksums, &|i| data.examples.line(i))?
        }};
    }
    let mut outcome = if args.task == options::Task::Binary {
        train!(Binary::new)
    } else {
        let costs = data.loss.costs(&data.classes.words)?;
        train!(|columns| Multiclass::new(columns, costs.clone()))
    };
    let block = Block { base: 0, rows: columns, width: slots as u32 };
    let expansion = kernel.as_ref().map(|kernel| kernel.expansion(outcome.weights(), block)).transpose()?;
    let model = Model {
        task: args.task.into(),
        labels: data.classes.words,
        features: data.features,
        bias: f64::from(bias.unwrap_or(0.0)),
        loss: data.loss,
        formulation: outcome.formulation,
        data_checksum: data.examples.checksum,
        summary: outcome.summary.clone(),
        weights: if expansion.is_some() { Weights::default() } else { outcome.take_weights() },
        kernel: expansion,
    };
    let drawn = session.drawn_from.map_or_else(String::new, |all| {
        format!("of {} out of {} examples, ", count(data.examples.len() as u64), count(all as u64))
    });
    let approximated = kernel.as_ref().map(|kernel| kernel.approximated(&drawn));
    let described = Described { approximated, ..Described::classifier(&model) };
    session.finish(&outcome, &described, &model)
}

/// Fails now rather than after hours: can the model be written, and does nothing overwrite anything?
fn check_files(args: &Args) -> Result<()> {
    let (output, checkpoint) = (&args.output, args.checkpoint.checkpoint.as_deref());
    let sources = [
        ("the training file", Some(args.input.as_path())),
        ("the cost matrix", args.problem.cost_matrix.as_deref()),
        ("the taxonomy", args.taxonomy.taxonomy.as_deref()),
        ("the file of class features", args.taxonomy.class_features.as_deref()),
        ("the prior", args.align.prior.as_ref().and_then(PriorName::file)),
        ("the template", args.tag.template.as_deref()),
        ("the held-out file", args.validation.heldout.as_deref()),
    ];
    let start = ("the model to start from", args.solver.warm_start.as_deref());
    paths::refuse_overwriting("--model", &output.model, &sources)?;
    if let Some(log) = &output.log {
        paths::refuse_overwriting("--log", log, &sources)?;
        paths::refuse_overwriting("--log", log, &[("the model", Some(&output.model)), start])?;
    }
    if let Some(checkpoint) = checkpoint {
        let others = [("the model", Some(output.model.as_path())), start, ("the log", output.log.as_deref())];
        paths::refuse_overwriting("--checkpoint", checkpoint, &[&sources[..], &others].concat())?;
        if checkpoint.exists() && !args.checkpoint.resume {
            let what = "go on from it with --resume, or remove it";
            return Err(Failure::Usage(format!("--checkpoint: {} is there already; {what}", checkpoint.display())));
        }
    }
    if args.input.as_os_str() == "-" && args.validation.heldout.as_ref().is_some_and(|path| path.as_os_str() == "-") {
        return Err(Failure::Usage("--heldout: standard input has the training examples".to_owned()));
    }
    // Makes the temporary files and removes them again.
    for path in [Some(output.model.as_path()), checkpoint].into_iter().flatten() {
        drop(Output::create(path)?);
    }
    Ok(())
}

pub(crate) fn formulation(args: &Args, examples: usize) -> Formulation {
    let (problem, n) = (&args.problem, examples as f64);
    Formulation {
        c: problem.c.or(problem.c_per_example.map(|k| k * n)).unwrap_or(n),
        rescaling: problem.rescaling.map_or_else(Default::default, Into::into),
        penalty: problem.penalty.map_or_else(Default::default, Into::into),
        loss_scale: problem.loss_scale.unwrap_or(1.0),
    }
}

fn settings(args: &Args, warm_start: Option<Weights>) -> Settings {
    let stopping = &args.stopping;
    Settings {
        stop: stopping.epsilon.map(Stop::Gap).or(stopping.relative_gap.map(Stop::RelativeGap)),
        threads: args.solver.threads.unwrap_or(0),
        max_passes: stopping.max_passes,
        max_seconds: stopping.max_seconds,
        seed: args.solver.seed.unwrap_or(0),
        warm_start,
        ..Settings::default()
    }
}

/// What the model file tells of training.
fn summary_of(args: &Args, trained: &Trained, formulation: &Formulation, examples: usize) -> Result<model::Summary> {
    let step = &trained.kept.step;
    if step.status == Status::Infeasible {
        let what = if args.kernel.low_rank.is_some() {
            "the data cannot be separated without slack by these basis functions; take more of them (--low-rank) or \
             --penalty linear (no model was written)"
        } else if args.kernel.kernel.as_ref().is_some_and(|kernel| !kernel.is_definite()) {
            "no w without slack was found, and none is known not to exist, as this kernel is no inner product; take another \
             kernel or --penalty linear (no model was written)"
        } else {
            "the data cannot be separated without slack; use --penalty linear (no model was written)"
        };
        return Err(Failure::Data(format!("{}: {what}", args.input.display())));
    }
    if !step.primal.is_finite() && formulation.penalty != maxmargin::problem::Penalty::Hard {
        let what = "training diverged: this kernel is no inner product, and with it the objective has no minimum; take \
                    another kernel or a smaller C (no model was written)";
        return Err(Failure::Data(what.to_owned()));
    }
    if step.primal.is_infinite() {
        let what = "stopped before any w was found that separates the data; no model was written";
        return Err(Failure::Data(what.to_owned()));
    }
    Ok(model::Summary {
        solver: trained.solver.to_owned(),
        status: step.status,
        certificate: step.certificate,
        examples: examples as u64,
        c: step.c,
        epsilon: step.epsilon(formulation),
        primal: step.primal,
        primal_error: step.primal_error,
        dual: step.dual,
        gap: step.gap,
        rounds: step.rounds,
        passes: step.passes,
        train_loss: step.train_loss,
    })
}

/// The disk may have filled up since we looked.
fn unsaved(error: Error, args: &Args) -> Failure {
    let old = if args.output.model.exists() { "; the old file is as it was" } else { "" };
    match Failure::from(error) {
        Failure::Data(what) => Failure::Data(format!("the model could not be saved: {what}{old}")),
        other => other,
    }
}
