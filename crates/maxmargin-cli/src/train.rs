//! `maxmargin train`

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::Instant;

use maxmargin::data::output::Output;
use maxmargin::model::Model;
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Penalty, Problem};
use maxmargin::solver::cutting_plane::{CuttingPlane, Placement};
use maxmargin::solver::frank_wolfe::FrankWolfe;
use maxmargin::solver::n_slack::{NSlack, Update};
use maxmargin::solver::{Progress, Settings, Solution, Solver, Status, Stop};
use maxmargin::sparse::SparseView;
use maxmargin::task::Task;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::Multiclass;
use maxmargin::weights::Weights;
use maxmargin::{Error, model};

use crate::dataset::{self, Data};
use crate::failure::{Failure, Result};
use crate::log::Log;
use crate::options::{
    self, OutputOptions, ProblemOptions, SolverName, SolverOptions, StoppingOptions, Switch, UpdateName,
};
use crate::summary::{Outcome, Summary};
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
}

const EXAMPLES: &str = "\
Examples:
  maxmargin train binary a9a -m a9a.mm --c-per-example 0.1 --bias 1
  maxmargin train multiclass covtype.gz -m cov.mm --epsilon 0.001 --log rounds.jsonl
  maxmargin train binary digits.dat -m seven.mm --positive 7 --class-weight balanced
  maxmargin train multiclass stars.dat -m stars.mm --loss absolute --rescaling slack

Ctrl-C stops after the current round and saves the model; a second one quits at once.";

pub(crate) fn run(args: &Args) -> Result<()> {
    refusals::check(args)?;
    // Before Ctrl-C is caught: its handler ends the program and would leave the trial file of this check behind.
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
    if let Some(bias) = args.problem.bias {
        data.examples.matrix = data.examples.matrix.with_constant(bias);
    }
    let seconds_reading = began.elapsed().as_secs_f64();

    if let Some(log) = &mut log {
        log.begin()?;
    }
    interrupt::training_begins();
    display.training();
    let mut watch = |progress: &Progress| {
        display.round(progress);
        // Rounds on a sample, for a start, say nothing of the problem itself.
        if let Some(log) = log.as_mut().filter(|_| progress.round > 0) {
            log.add(progress);
        }
        if interrupt::is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let columns = data.examples.matrix.columns();
    let training = Training { args, data: &data, settings: settings(args, start), pool: &pool };
    let (solution, train_loss) = match args.task {
        options::Task::Binary => training.solve(&Binary::new(columns), &mut watch),
        options::Task::Multiclass => {
            let costs = data.loss.costs(&data.classes.words)?;
            training.solve(&Multiclass::new(columns, costs), &mut watch)
        }
    }
    .map_err(|error| with_line(error, args, &data))?;
    drop(display);

    let outcome = Outcome { report: &solution.report, train_loss, seconds_reading };
    let formulation = formulation(args, data.examples.len());
    let model = model_of(args, data, formulation, &outcome, solution.weights.clone())?;
    model.save(&args.output.model).map_err(|error| unsaved(error, args))?;
    Summary::new(&model, &outcome).print(&model, &args.output)
}

/// Fails now rather than after hours: can the model be written, and does nothing overwrite anything?
fn check_files(args: &Args) -> Result<()> {
    let sources =
        [("the training file", Some(args.input.as_path())), ("the cost matrix", args.problem.cost_matrix.as_deref())];
    let model = &args.output.model;
    paths::refuse_overwriting("--model", model, &sources)?;
    if let Some(log) = &args.output.log {
        paths::refuse_overwriting("--log", log, &sources)?;
        let models =
            [("the model", Some(model.as_path())), ("the model to start from", args.solver.warm_start.as_deref())];
        paths::refuse_overwriting("--log", log, &models)?;
    }
    // Makes the temporary file and removes it again.
    drop(Output::create(model)?);
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

struct Training<'t> {
    args: &'t Args,
    data: &'t Data,
    settings: Settings,
    pool: &'t Pool,
}

impl Training<'_> {
    fn solve<T>(
        &self,
        task: &T,
        watch: &mut impl FnMut(&Progress) -> ControlFlow<()>,
    ) -> maxmargin::Result<(Solution, f64)>
    where
        T: for<'a> Task<Input<'a> = SparseView<'a>, Output = u32>,
    {
        let (data, options) = (self.data, &self.args.solver);
        let rows = data.examples.matrix.views();
        let formulation = formulation(self.args, rows.len());
        let problem = Problem::new(task, &rows, &data.classes.outputs, data.weights.as_deref(), formulation)?;
        let planes = || {
            let default = CuttingPlane::default();
            CuttingPlane {
                groups: options.groups.unwrap_or(1),
                cache: options.cache,
                placement: match options.line_search {
                    Some(Switch::Off) => Placement::QpPoint,
                    Some(Switch::On) | None => Placement::LineSearch,
                },
                max_cuts: options.max_cuts.unwrap_or(default.max_cuts.max(10 * options.groups.unwrap_or(1))),
                ..default
            }
        };
        let solution = match options.name(self.args.problem.penalty) {
            SolverName::OneSlack | SolverName::GroupSlack => planes().solve(&problem, &self.settings, watch),
            SolverName::NSlack => {
                let update = match (options.update, options.batch) {
                    (Some(UpdateName::Own), _) => Update::OwnCuts,
                    (_, Some(batch)) => Update::Batch(batch),
                    _ => NSlack::default().update,
                };
                NSlack { update, ..NSlack::default() }.solve(&problem, &self.settings, watch)
            }
            SolverName::FrankWolfe => FrankWolfe.solve(&problem, &self.settings, watch),
        }?;
        let train_loss = problem.train_loss(&solution.weights, self.pool)?;
        Ok((solution, train_loss))
    }
}

/// An example is better found by its line.
fn with_line(error: Error, args: &Args, data: &Data) -> Failure {
    match error {
        Error::Data { example, what } => {
            Failure::Data(format!("{}:{}: {what}", args.input.display(), data.examples.line(example)))
        }
        other => other.into(),
    }
}

fn model_of(
    args: &Args,
    data: Data,
    formulation: Formulation,
    outcome: &Outcome<'_>,
    weights: Weights,
) -> Result<Model> {
    let report = outcome.report;
    if report.status == Status::Infeasible {
        let what = "the data cannot be separated without slack; use --penalty linear (no model was written)";
        return Err(Failure::Data(format!("{}: {what}", args.input.display())));
    }
    if report.primal.is_infinite() {
        let what = "stopped before any w was found that separates the data; no model was written";
        return Err(Failure::Data(what.to_owned()));
    }
    let scale = if formulation.penalty == Penalty::Hard { report.primal } else { formulation.c };
    Ok(Model {
        task: args.task.into(),
        labels: data.classes.words,
        features: data.features,
        bias: f64::from(args.problem.bias.unwrap_or(0.0)),
        loss: data.loss,
        formulation,
        data_checksum: data.examples.checksum,
        summary: model::Summary {
            solver: report.solver.to_owned(),
            status: report.status,
            certificate: report.certificate,
            examples: data.examples.len() as u64,
            c: formulation.c,
            epsilon: report.target / scale,
            primal: report.primal,
            dual: report.dual,
            gap: report.gap,
            rounds: report.rounds,
            passes: report.passes,
            train_loss: outcome.train_loss,
        },
        weights,
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
