//! `maxmargin train`

use std::path::PathBuf;
use std::time::Instant;

use maxmargin::data::output::Output;
use maxmargin::model::Model;
use maxmargin::parallel::Pool;
use maxmargin::problem::Formulation;
use maxmargin::solver::{Settings, Status, Stop};
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::Multiclass;
use maxmargin::weights::Weights;
use maxmargin::{Error, model};

use crate::checkpoint::Identity;
use crate::dataset::{self, Data};
use crate::failure::{Failure, Result};
use crate::heldout::{self, HeldoutData};
use crate::log::Log;
use crate::options::{
    self, CheckpointOptions, OutputOptions, ProblemOptions, SolverOptions, StoppingOptions, ValidationOptions,
};
use crate::summary::Summary;
use crate::training::{Trained, Training};
use crate::{interrupt, paths, refusals};

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

Ctrl-C stops after the current round and saves the model; a second one quits at once.";

pub(crate) fn run(args: &Args, mut identity: Identity) -> Result<()> {
    refusals::check(args)?;
    // Before Ctrl-C is caught: its handler ends the program and would leave the trial files of this check behind.
    check_files(args)?;
    interrupt::watch(args.output.quiet);
    let mut log = args.output.log.as_deref().map(Log::open).transpose()?;
    let start = args.solver.warm_start.as_deref().map(Model::load).transpose()?;
    let pool = Pool::new(args.solver.threads.unwrap_or(0))?;

    let began = Instant::now();
    let display = dataset::reading(args);
    let mut data = dataset::read(args, start.as_ref(), &display, &pool)?;
    dataset::check_memory(args, &data)?;
    let start = start.map(|model| dataset::fitted(&model, args, &data)).transpose()?;
    let bias = args.problem.bias;
    let heldout = args.validation.heldout.as_deref().map(|path| heldout::read(path, &data, bias, &pool)).transpose()?;
    if let Some(bias) = bias {
        data.examples.matrix = data.examples.matrix.with_constant(bias);
    }
    identity.checksums = checksums(&data, heldout.as_ref(), start.as_ref());
    let seconds_reading = began.elapsed().as_secs_f64();

    if let Some(log) = &mut log {
        log.begin(args.checkpoint.resume)?;
    }
    let columns = data.examples.matrix.columns();
    let formulation = formulation(args, data.examples.len());
    let training = Training {
        args,
        data: &data,
        heldout: heldout.as_ref(),
        formulation,
        settings: settings(args, start),
        pool: &pool,
        display: &display,
        identity,
    };
    let trained = match args.task {
        options::Task::Binary => training.run(&Binary::new(columns), log)?,
        options::Task::Multiclass => {
            let costs = data.loss.costs(&data.classes.words)?;
            training.run(&Multiclass::new(columns, costs), log)?
        }
    };
    drop(display);

    let model = model_of(args, data, formulation, &trained)?;
    model.save(&args.output.model).map_err(|error| unsaved(error, args))?;
    if let Some(saver) = trained.saver.as_ref().filter(|_| trained.is_done()) {
        saver.remove();
    }
    Summary::new(&model, &trained, seconds_reading).print(&model, &trained, args)
}

/// What training depends on beside the options.
fn checksums(data: &Data, heldout: Option<&HeldoutData>, start: Option<&Weights>) -> Vec<(String, u32)> {
    let bits = |w: &Weights| w.as_slice().iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
    let mut checksums = vec![
        ("the training file", data.examples.checksum),
        // f64 is printed so that no bit is lost.
        ("the cost matrix", crc32fast::hash(format!("{:?}", data.loss).as_bytes())),
    ];
    checksums.extend(heldout.map(|heldout| ("the held-out file", heldout.checksum)));
    checksums.extend(start.map(|w| ("the model to start from", crc32fast::hash(&bits(w)))));
    checksums.into_iter().map(|(name, checksum)| (name.to_owned(), checksum)).collect()
}

/// Fails now rather than after hours: can the model be written, and does nothing overwrite anything?
fn check_files(args: &Args) -> Result<()> {
    let (output, checkpoint) = (&args.output, args.checkpoint.checkpoint.as_deref());
    let sources = [
        ("the training file", Some(args.input.as_path())),
        ("the cost matrix", args.problem.cost_matrix.as_deref()),
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

fn formulation(args: &Args, examples: usize) -> Formulation {
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

fn model_of(args: &Args, data: Data, formulation: Formulation, trained: &Trained) -> Result<Model> {
    let step = &trained.kept.step;
    if step.status == Status::Infeasible {
        let what = "the data cannot be separated without slack; use --penalty linear (no model was written)";
        return Err(Failure::Data(format!("{}: {what}", args.input.display())));
    }
    if step.primal.is_infinite() {
        let what = "stopped before any w was found that separates the data; no model was written";
        return Err(Failure::Data(what.to_owned()));
    }
    let formulation = Formulation { c: step.c, ..formulation };
    Ok(Model {
        task: args.task.into(),
        labels: data.classes.words,
        features: data.features,
        bias: f64::from(args.problem.bias.unwrap_or(0.0)),
        loss: data.loss,
        formulation,
        data_checksum: data.examples.checksum,
        summary: model::Summary {
            solver: trained.solver.to_owned(),
            status: step.status,
            certificate: step.certificate,
            examples: data.examples.len() as u64,
            c: step.c,
            epsilon: step.epsilon(&formulation),
            primal: step.primal,
            dual: step.dual,
            gap: step.gap,
            rounds: step.rounds,
            passes: step.passes,
            train_loss: step.train_loss,
        },
        weights: trained.kept.weights.clone(),
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
