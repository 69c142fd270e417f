//! The training of `train`: the solver, the values of C, cross-validation, and what is kept.

use std::ops::ControlFlow;

use maxmargin::Error;
use maxmargin::features::Block;
use maxmargin::kernel::Metric;
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Penalty, Problem};
use maxmargin::solver::auto::SAMPLE_SIZE;
use maxmargin::solver::folds::{self, Folds, Validation, cross_validate};
use maxmargin::solver::guarantee::{self, Sampled};
use maxmargin::solver::heldout::Heldout;
use maxmargin::solver::path::{self, follow};
use maxmargin::solver::sampled_constant::SampledConstant;
use maxmargin::solver::{Certificate, Progress, Report, Settings, Solution, Solver, Status};
use maxmargin::task::Task;
use maxmargin::weights::Weights;

use crate::checkpoint::{Identity, Saved, Saver};
use crate::failure::{Failure, Result};
use crate::interrupt::Halt;
use crate::kernel::Kernelised;
use crate::log::Log;
use crate::options::{Ladder, SolverName};
use crate::progress::Display;
use crate::solvers::{self, Chosen};
use crate::step::{AtEnd, HeldoutStep, Kept, Step};
use crate::train::Args;
use crate::watch::{Measure, Watch};
use crate::{interrupt, refusals};

/// Where outputs are searched for, P counts as proven if its upper bound exceeds the value found by at most this share.
const PROVEN: f64 = 1e-9;

/// Inputs and truths of held-out examples.
type Unseen<'e, T> = (&'e [<T as Task>::Input<'e>], &'e [Option<<T as Task>::Output>]);

/// What the vectors of the examples are.
#[derive(Clone, Copy)]
pub(crate) enum Vectors<'e> {
    /// Their own, or coordinates of a rank that the user asked for.
    Own,
    /// Places among the vectors that a kernel compares.
    Kernel(Metric<'e>),
    /// Coordinates in the span of a sample, with a kernel.
    OfSample,
}

/// The examples, as the task takes them.
pub(crate) struct Examples<'e, T: Task> {
    pub(crate) inputs: &'e [T::Input<'e>],
    pub(crate) outputs: &'e [T::Output],
    pub(crate) weights: Option<&'e [f64]>,
    /// The parts of a cross-validation.
    pub(crate) folds: Option<&'e Folds>,
    pub(crate) vectors: Vectors<'e>,
    /// Those that are not trained on; None for a truth that the training data lack.
    pub(crate) heldout: Option<Unseen<'e, T>>,
    /// The examples with the kernel itself, where training sees coordinates of low rank.
    pub(crate) exactly: Option<Exactly<'e, T>>,
}

/// Examples whose vectors are places among those that a kernel compares: the objective of a model is reported on them.
pub(crate) struct Exactly<'e, T: Task> {
    pub(crate) task: &'e T,
    pub(crate) inputs: &'e [T::Input<'e>],
    /// The block of the kernel, and what the weights of low rank are there.
    pub(crate) block: Block,
    pub(crate) kernel: &'e Kernelised,
}

impl<'e, T: Task> Exactly<'e, T> {
    /// P of the model that these weights of low rank become, and how far rounding may have moved it.
    fn objective(
        &self,
        examples: &Examples<'e, T>,
        formulation: Formulation,
        w: &Weights,
        pool: &Pool,
    ) -> maxmargin::Result<(f64, f64)> {
        let metric = self.kernel.exact_metric(self.block).expect("a kernel of low rank");
        let problem = Problem::new(self.task, self.inputs, examples.outputs, examples.weights, formulation)?;
        let problem = problem.with_kernel(metric);
        let mut exact = problem.zero();
        let base = self.block.base as usize;
        let (dense, coefficients) = exact.both_mut();
        dense[..base].copy_from_slice(&w.as_slice()[..base]);
        if let Some(coefficients) = coefficients {
            coefficients[..base].copy_from_slice(&w.as_slice()[..base]);
            self.kernel.write_exactly(&w.as_slice()[base..], self.block.width, &mut coefficients[base..]);
        }
        problem.reported_objective(&mut exact, pool)
    }
}

/// What `train` knows when training begins.
pub(crate) struct Training<'t> {
    pub(crate) args: &'t Args,
    /// The line on which an example stands, or begins.
    pub(crate) line: &'t dyn Fn(usize) -> u64,
    pub(crate) formulation: Formulation,
    /// Examples, with those that are not trained on.
    pub(crate) examples: usize,
    pub(crate) settings: Settings,
    pub(crate) pool: &'t Pool,
    pub(crate) display: &'t Display,
    pub(crate) halt: &'t Halt,
    pub(crate) identity: Identity,
}

/// What came of it.
pub(crate) struct Trained {
    /// Why this solver, where the user has named none.
    pub(crate) why: Option<&'static str>,
    pub(crate) solver: &'static str,
    /// Examples whose oracle searches for the maximum and may miss it.
    pub(crate) searched: usize,
    /// What the objective is at most, where there are such examples.
    pub(crate) at_most: Option<f64>,
    /// By how much sampled cuts may miss the minimum, where it was asked.
    pub(crate) excess: Option<f64>,
    pub(crate) kept: Kept,
    /// One for each C.
    pub(crate) steps: Vec<Step>,
    /// Was training to follow a path?
    pub(crate) is_path: bool,
    pub(crate) folds: Option<usize>,
    pub(crate) validations: Option<Vec<Validation>>,
    pub(crate) saver: Option<Saver>,
}

impl Training<'_> {
    pub(crate) fn run<'e, T: Task>(
        &self,
        task: &'e T,
        examples: &Examples<'e, T>,
        log: Option<Log>,
    ) -> Result<Trained> {
        let (args, folds) = (self.args, examples.folds);
        let problem = Problem::new(task, examples.inputs, examples.outputs, examples.weights, self.formulation)
            .map_err(|error| self.with_line(error))?;
        let (problem, is_in_coordinates) = match examples.vectors {
            Vectors::Own => (problem, false),
            Vectors::Kernel(metric) => (problem.with_kernel(metric), false),
            Vectors::OfSample => (problem, true),
        };
        let (name, why) = solvers::name(args, &problem, is_in_coordinates);
        refusals::check_solver(args, name, why.is_some())?;
        let solver = solvers::choose(name, args, &problem, is_in_coordinates, self.examples);
        let mut ladder = self.ladder(&problem)?;

        let heldout = examples.heldout.map(|(inputs, truths)| Heldout::new(&problem, inputs, truths));
        let measure = |w: &Weights| heldout.as_ref().map_or(Ok(0.0), |h| h.mean_loss(w, self.pool));
        let measure: Option<Measure<'_>> = if heldout.is_some() { Some(&measure) } else { None };
        let searched = problem.searched();
        let mut watch = Watch::new(self.display, self.halt, log, measure, self.saver());
        watch.is_searched = searched > 0;
        let settings = self.resumed(&mut watch, &ladder, |w| problem.fits(w))?;

        interrupt::training_begins();
        let validations = folds.map(|folds| self.validate(&solver, &problem, &ladder, folds)).transpose()?;
        if let Some(best) = validations.as_deref().and_then(folds::best) {
            ladder = vec![best.c];
        }
        watch.begin(&ladder);
        let rest = &ladder[watch.steps.len()..];
        follow(&solver, &problem, rest, &settings, &mut watch, |watch, problem, solution| {
            self.reached(&ladder, watch, (problem, examples), solution)
        })
        .map_err(|error| self.with_line(error))?;
        let Watch { steps, kept, saver, .. } = watch;
        let is_path = folds.is_none() && (args.problem.c_path.is_some() || args.problem.c_path_per_example.is_some());
        let mut kept = kept.expect("a path has at least one C");
        let is_end = kept.step.at_end().is_none();
        let at_most = if kept.step.primal_is_bound {
            Some(kept.step.primal)
        } else if kept.step.disagreement.is_some() && is_end {
            // Factor by factor, that is what the objective is.
            Some(kept.step.primal).filter(|_| searched > 0)
        } else if searched > 0 && self.formulation.penalty != Penalty::Hard {
            problem.with_c(kept.step.c).objective_at_most(&kept.weights, self.pool)?
        } else {
            None
        };
        let step = &mut kept.step;
        if searched > 0 && at_most.is_some_and(|at_most| at_most <= step.primal * (1.0 + PROVEN)) {
            step.gap = step.certificate.gap(step.primal, step.dual);
        }
        let excess = self.excess(name, &problem.with_c(kept.step.c), kept.step.epsilon(&self.formulation))?;
        Ok(Trained {
            excess,
            solver: solver.name(),
            searched,
            at_most,
            why,
            kept,
            steps,
            is_path,
            folds: folds.map(Folds::len),
            validations,
            saver,
        })
    }

    /// The values of C.
    fn ladder<T: Task>(&self, problem: &Problem<'_, T>) -> Result<Vec<f64>> {
        let (options, n) = (&self.args.problem, self.examples as f64);
        Ok(match (&options.c_path, &options.c_path_per_example) {
            (Some(Ladder::Given(values)), _) => values.clone(),
            (_, Some(Ladder::Given(values))) => values.iter().map(|k| k * n).collect(),
            (Some(Ladder::Auto), _) | (_, Some(Ladder::Auto)) => path::ladder(problem)?,
            (None, None) => vec![self.formulation.c],
        })
    }

    /// What sampled cuts promise, where it is asked.
    fn excess<T: Task>(&self, name: SolverName, problem: &Problem<'_, T>, epsilon: f64) -> Result<Option<f64>> {
        let options = &self.args.kernel;
        let Some(delta) = options.bound else { return Ok(None) };
        let (sampled, size) = match name {
            SolverName::SampledConstant => (Sampled::Constant, SampledConstant::default().size),
            _ => (Sampled::Linear, SAMPLE_SIZE),
        };
        Ok(Some(guarantee::excess(problem, sampled, options.sample_size.unwrap_or(size), epsilon, delta)?))
    }

    fn saver(&self) -> Option<Saver> {
        let options = &self.args.checkpoint;
        options.checkpoint.as_deref().map(|path| Saver::new(path, options.checkpoint_every, self.identity.clone()))
    }

    /// The settings to begin with: those of the checkpoint, where there is one to go on from.
    fn resumed(&self, watch: &mut Watch<'_>, ladder: &[f64], fits: impl Fn(&Weights) -> bool) -> Result<Settings> {
        let path = self.args.checkpoint.checkpoint.as_deref().filter(|_| self.args.checkpoint.resume);
        let saved = path.map(|path| Saved::load(path, &self.identity, ladder.len(), fits)).transpose()?;
        let Some(mut saved) = saved.flatten() else { return Ok(self.settings.clone()) };
        let state = saved.state()?;
        if let Some(log) = &mut watch.log {
            log.go_on_after(saved.round, &ladder[saved.steps.len()..])?;
        }
        (watch.steps, watch.kept, watch.looks) = (saved.steps, saved.kept, saved.looks);
        let steps = watch.steps.iter_mut().chain(watch.kept.as_mut().map(|kept| &mut kept.step));
        steps.for_each(|step| step.rests_on_state = true);
        Ok(Settings { resume: Some(state), warm_start: None, ..self.settings.clone() })
    }

    fn validate<'a, T: Task>(
        &self,
        solver: &Chosen,
        problem: &Problem<'a, T>,
        ladder: &[f64],
        folds: &'a Folds,
    ) -> Result<Vec<Validation>> {
        let mut watch = |progress: &Progress| {
            self.display.round(progress);
            if self.halt.is_requested() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let begins = |_: &mut _, k: usize| self.display.training(&format!("fold {} of {}, ", k + 1, folds.len()));
        cross_validate(solver, problem, ladder, folds, &self.settings, &mut watch, begins)?
            .ok_or_else(|| Failure::Data("interrupted during cross-validation; no model was written".to_owned()))
    }

    /// Takes note of the solution at a C, and decides whether the path goes on.
    fn reached<T: Task>(
        &self,
        ladder: &[f64],
        watch: &mut Watch<'_>,
        (problem, examples): (&Problem<'_, T>, &Examples<'_, T>),
        solution: Solution,
    ) -> maxmargin::Result<ControlFlow<()>> {
        if let Some(error) = watch.error.take() {
            return Err(error);
        }
        let Solution { mut weights, mut report, train_loss, .. } = solution;
        let keeps_best = self.args.validation.keep_best;
        let looks = std::mem::take(&mut watch.looks);
        let heldout = match watch.measure {
            None => None,
            Some(measure) => {
                let loss_at_end = measure(&weights)?;
                let best = looks.best().map_or(loss_at_end, |best| loss_at_end.min(best.loss));
                // Along a path the ends compete, each as good as its C can be.
                let earlier =
                    looks.into_best().filter(|best| keeps_best && ladder.len() == 1 && best.loss < loss_at_end);
                let at_end = earlier.as_ref().map(|_| AtEnd { primal: report.primal, gap: report.gap });
                let loss = earlier.as_ref().map_or(loss_at_end, |best| best.loss);
                if let Some(earlier) = earlier {
                    weights = earlier.weights;
                    (report.primal, report.primal_error) = problem.reported_objective(&mut weights, self.pool)?;
                    report.primal_is_bound = false;
                }
                Some(HeldoutStep { loss, best, at_end })
            }
        };
        if let Some(exactly) = &examples.exactly {
            let formulation = problem.formulation();
            (report.primal, report.primal_error) = exactly.objective(examples, formulation, &weights, self.pool)?;
            // The bound holds for weights in the span of the basis, and coordinates are rounded.
            if report.certificate == Certificate::Exact {
                report.certificate = Certificate::Estimate;
            }
        }
        report.gap = report.certificate.gap(report.primal, report.dual);
        if watch.is_searched && report.certificate == Certificate::Estimate && report.disagreement.is_none() {
            // P may be larger than what was found of it.
            report.gap = f64::INFINITY;
        }
        let train_loss = match train_loss {
            Some(estimate) => estimate,
            None => problem.train_loss(&weights, self.pool)?,
        };
        let step = Step::new(problem.formulation().c, &report, train_loss, heldout);
        watch.steps.push(step.clone());
        // The smallest C of equals.
        let is_worse = |kept: &Kept| kept.step.heldout_loss() <= step.heldout_loss();
        if !(keeps_best && watch.kept.as_ref().is_some_and(is_worse)) {
            watch.kept = Some(Kept { step, weights });
        }
        watch.begin(ladder);
        let is_over = report.status == Status::Interrupted || self.is_at_the_top(&watch.steps);
        Ok(if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }

    /// A ladder of ours ends where two values of C in a row leave no training example wrong.
    fn is_at_the_top(&self, steps: &[Step]) -> bool {
        let is_ours = self.args.problem.c_path == Some(Ladder::Auto) && self.args.validation.folds.is_none();
        is_ours && steps.len() > 1 && steps.iter().rev().take(2).all(|step| step.train_loss == 0.0)
    }

    fn with_line(&self, error: Error) -> Failure {
        with_line(self.args, self.line, error)
    }
}

/// An example is better found by its line.
pub(crate) fn with_line(args: &Args, line: &dyn Fn(usize) -> u64, error: Error) -> Failure {
    match error {
        Error::Data { example, what } => Failure::Data(format!("{}:{}: {what}", args.input.display(), line(example))),
        other => other.into(),
    }
}

impl Trained {
    /// No training at all: w = 0.
    pub(crate) fn blank(c: f64, dimension: usize) -> Self {
        let report = Report {
            solver: "one-slack",
            status: Status::MaxPasses,
            certificate: Certificate::None,
            target: 0.0,
            primal: 0.0,
            primal_error: 0.0,
            primal_is_bound: false,
            dual: 0.0,
            gap: 0.0,
            rests_on_state: false,
            rounds: 0,
            passes: 0.0,
            oracle_calls: 0,
            cache_hits: 0,
            working_set: 0,
            support: 0,
            seconds_training: 0.0,
            seconds_oracle: 0.0,
            seconds_qp: 0.0,
            disagreement: None,
        };
        let kept = Kept { step: Step::new(c, &report, 0.0, None), weights: Weights::zeros(dimension) };
        Self {
            why: None,
            solver: report.solver,
            searched: 0,
            at_most: None,
            excess: None,
            kept,
            steps: Vec::new(),
            is_path: false,
            folds: None,
            validations: None,
            saver: None,
        }
    }

    /// Is there nothing left to do?
    pub(crate) fn is_done(&self) -> bool {
        self.steps.last().is_some_and(Step::is_done)
    }
}
