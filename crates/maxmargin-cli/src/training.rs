//! The training of `train`: the solver, the values of C, cross-validation, and what is kept.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use maxmargin::Error;
use maxmargin::features::Block;
use maxmargin::kernel::Metric;
use maxmargin::parallel::Pool;
use maxmargin::problem::{self, Formulation, HeldoutExamples, Penalty, Problem};
use maxmargin::solver::auto::SAMPLE_SIZE;
use maxmargin::solver::folds::{self, Folds, Validation, cross_validate};
use maxmargin::solver::guarantee::{self, Sampled};
use maxmargin::solver::heldout::Heldout;
use maxmargin::solver::path::{self, follow};
use maxmargin::solver::sampled_constant::SampledConstant;
use maxmargin::solver::{Certificate, Progress, Report, Settings, Solution, Solver, SolverKind, Status};
use maxmargin::weights::Weights;

use crate::checkpoint::{Identity, Saved, Saver};
use crate::failure::{Failure, Result};
use crate::interrupt::Halt;
use crate::kernel::Kernelised;
use crate::log::Log;
use crate::options::Ladder;
use crate::progress::Display;
use crate::solvers;
use crate::step::{AtEnd, HeldoutStep, Kept, Step};
use crate::train::Args;
use crate::watch::{Measure, Watch};
use crate::{interrupt, refusals};

/// Where outputs are searched for, P counts as proven if its upper bound exceeds the value found by at most this share.
const PROVEN: f64 = 1e-9;

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

/// What is trained on, and how.
pub(crate) struct Examples<'e> {
    pub(crate) data: Arc<dyn problem::Examples + 'e>,
    /// The weights of the examples, where the data have some.
    pub(crate) weights: Option<&'e [f64]>,
    /// The parts of a cross-validation.
    pub(crate) folds: Option<&'e Folds>,
    pub(crate) vectors: Vectors<'e>,
    /// Those that are not trained on.
    pub(crate) heldout: Option<HeldoutExamples<'e>>,
    /// The examples with the kernel itself, where training sees coordinates of low rank.
    pub(crate) exactly: Option<Exactly<'e>>,
}

/// Examples whose vectors are places among those that a kernel compares: the objective of a model is reported on them.
pub(crate) struct Exactly<'e> {
    pub(crate) data: Arc<dyn problem::Examples + 'e>,
    /// The block of the kernel, and what the weights of low rank are there.
    pub(crate) block: Block,
    pub(crate) kernel: &'e Kernelised,
}

/// What is trained, as the solvers see it.
pub(crate) struct Trial<'e> {
    problem: Problem<'e>,
    folds: Option<&'e Folds>,
    vectors: Vectors<'e>,
    heldout: Option<Heldout<'e>>,
    exactly: Option<ExactProblem<'e>>,
}

/// The problem with the kernel itself.
struct ExactProblem<'e> {
    problem: Problem<'e>,
    /// The block of the kernel.
    block: Block,
    kernel: &'e Kernelised,
}

impl<'e> Trial<'e> {
    pub(crate) fn new(examples: Examples<'e>, formulation: Formulation) -> maxmargin::Result<Self> {
        let Examples { data, folds, vectors, heldout, exactly, .. } = examples;
        let problem = Problem::of(data, formulation)?;
        let heldout = heldout.map(|unseen| Heldout::new(&problem, unseen));
        let exact = |Exactly { data, block, kernel }: Exactly<'e>| {
            let metric = kernel.exact_metric(block).expect("a kernel of low rank");
            Ok(ExactProblem { problem: Problem::of(data, formulation)?.with_kernel(metric), block, kernel })
        };
        let exactly = exactly.map(exact).transpose()?;
        Ok(Self { problem, folds, vectors, heldout, exactly })
    }
}

impl ExactProblem<'_> {
    /// P of the model that these weights of low rank become, and how far rounding may have moved it.
    fn objective(&self, c: f64, w: &Weights, pool: &Pool) -> maxmargin::Result<(f64, f64)> {
        let mut exact = self.problem.zero();
        let base = self.block.base as usize;
        let (dense, coefficients) = exact.both_mut();
        dense[..base].copy_from_slice(&w.as_slice()[..base]);
        if let Some(coefficients) = coefficients {
            coefficients[..base].copy_from_slice(&w.as_slice()[..base]);
            self.kernel.write_exactly(&w.as_slice()[base..], self.block.width, &mut coefficients[base..]);
        }
        self.problem.with_c(c).reported_objective(&mut exact, pool)
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
    pub(crate) fn run(&self, trial: Trial<'_>, log: Option<Log>) -> Result<Trained> {
        let Trial { problem, folds, vectors, heldout, exactly } = trial;
        let args = self.args;
        let (problem, is_in_coordinates) = match vectors {
            Vectors::Own => (problem, false),
            Vectors::Kernel(metric) => (problem.with_kernel(metric), false),
            Vectors::OfSample => (problem, true),
        };
        let (name, why) = solvers::name(args, &problem, is_in_coordinates);
        refusals::check_solver(args, name, why.is_some())?;
        let solver = solvers::choose(name, args, &problem, is_in_coordinates, self.examples);
        let mut ladder = self.ladder(&problem)?;

        let measure = |w: &Weights| heldout.as_ref().map_or(Ok(0.0), |h| h.mean_loss(w, self.pool));
        let measure: Option<Measure<'_>> = if heldout.is_some() { Some(&measure) } else { None };
        let searched = problem.searched();
        let mut watch = Watch::new(self.display, self.halt, log, measure, self.saver());
        watch.is_searched = searched > 0;
        let settings = self.resumed(&mut watch, &ladder, |w| problem.fits(w))?;
        if let Some(kept) = &watch.kept {
            self.check_kept(kept, &problem, exactly.as_ref())?;
        }

        interrupt::training_begins();
        let validations = folds.map(|folds| self.validate(&*solver, &problem, &ladder, folds)).transpose()?;
        if let Some(best) = validations.as_deref().and_then(folds::best) {
            ladder = vec![best.c];
        }
        watch.begin(&ladder);
        let rest = &ladder[watch.steps.len()..];
        follow(&*solver, &problem, rest, &settings, &mut watch, |watch, problem, solution| {
            self.reached(&ladder, watch, (problem, exactly.as_ref()), solution)
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
    fn ladder(&self, problem: &Problem<'_>) -> Result<Vec<f64>> {
        let (options, n) = (&self.args.problem, self.examples as f64);
        Ok(match (&options.c_path, &options.c_path_per_example) {
            (Some(Ladder::Given(values)), _) => values.clone(),
            (_, Some(Ladder::Given(values))) => values.iter().map(|k| k * n).collect(),
            (Some(Ladder::Auto), _) | (_, Some(Ladder::Auto)) => path::ladder(problem)?,
            (None, None) => vec![self.formulation.c],
        })
    }

    /// What sampled cuts promise, where it is asked.
    fn excess(&self, name: SolverKind, problem: &Problem<'_>, epsilon: f64) -> Result<Option<f64>> {
        let options = &self.args.kernel;
        let Some(delta) = options.bound else { return Ok(None) };
        let (sampled, size) = match name {
            SolverKind::SampledConstant => (Sampled::Constant, SampledConstant::default().size),
            _ => (Sampled::Linear, SAMPLE_SIZE),
        };
        Ok(Some(guarantee::excess(problem, sampled, options.sample_size.unwrap_or(size), epsilon, delta)?))
    }

    /// Computes the objective of a model that a checkpoint has kept, and refuses the checkpoint where it tells another one.
    fn check_kept(&self, kept: &Kept, problem: &Problem<'_>, exactly: Option<&ExactProblem<'_>>) -> Result<()> {
        /// Of numbers that are carried along.
        const ROUNDING: f64 = 1e-9;
        let Kept { step, weights } = kept;
        if step.primal_is_bound || !step.primal.is_finite() {
            return Ok(());
        }
        let problem = problem.with_c(step.c);
        let (primal, error) = match exactly {
            Some(exactly) => exactly.objective(step.c, weights, self.pool)?,
            None => problem.reported_objective(&mut weights.clone(), self.pool)?,
        };
        let error = error.max(ROUNDING * primal.abs());
        // A search may find less than another one has found; factor by factor the objective is an upper bound.
        let is_found = step.primal >= primal - error;
        let is_upper = problem.searched() > 0 || step.disagreement.is_some();
        if is_found && (is_upper || step.primal <= primal + error) {
            return Ok(());
        }
        let path = self.args.checkpoint.checkpoint.as_deref().unwrap_or(Path::new("checkpoint"));
        Err(Failure::Data(format!("{}: the checkpoint is damaged (the objective)", path.display())))
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

    fn validate<'a>(
        &self,
        solver: &dyn Solver,
        problem: &Problem<'a>,
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
    fn reached(
        &self,
        ladder: &[f64],
        watch: &mut Watch<'_>,
        (problem, exactly): (&Problem<'_>, Option<&ExactProblem<'_>>),
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
        if let Some(exactly) = exactly {
            let c = problem.formulation().c;
            (report.primal, report.primal_error) = exactly.objective(c, &weights, self.pool)?;
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
