//! The course of one training run: counters, best point, bound, and when to stop.

mod finish;
mod resumed;
mod so_far;

use std::borrow::Cow;
use std::cell::LazyCell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::reported::{self, DualPoint, Values};
use super::state::{Header, Resumable, Writer};
use super::{Observer, Progress, Report, Settings, Snapshot, Solver, State, Status, Stop};
use crate::error::Result;
use crate::parallel::Pool;
use crate::problem::{Penalty, Problem};
use crate::weights::Weights;

pub(super) use resumed::{Rederived, Saved};
pub(super) use so_far::SoFar;
use so_far::Worth;

/// Makes the dual QP's tolerance tighter while its solutions do not rise by it: a tolerance that follows the gap can be
/// met without a step, and the same point would come back for ever.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tightening(f64);

impl Default for Tightening {
    fn default() -> Self {
        Self(1.0)
    }
}

impl Tightening {
    pub(super) fn of(&self, tolerance: f64) -> f64 {
        self.0 * tolerance
    }

    pub(super) fn after(&mut self, rise: f64, tolerance: f64) {
        self.0 = if rise <= 1e-3 * tolerance { (0.1 * self.0).max(1e-15) } else { 1.0 };
    }
}

/// After the time is up P may be looked for during this share of the time that training took, at least so long.
const MORE_TIME: f64 = 0.1;
const LEAST_TIME: Duration = Duration::from_secs(1);

/// Training that seems to be over goes on as long as the true gap exceeds what seems to be the gap by less than this share
/// of the target: it has to fall that much further.
const MOST_SHORTFALL: f64 = 0.9;

/// Computes P of the weights, which are known to have about this P, and D of the point, or of the bound where there is none.
/// With a kernel the weights get the scores that belong to their coefficients.
type Evaluate<'o> = Box<dyn Fn(&mut Cow<'_, Weights>, f64, Option<&DualPoint>, f64) -> Result<Values> + 'o>;

/// P of some weights, computed anew.
#[derive(Debug, Clone, Copy)]
struct Computed {
    primal: f64,
    /// How far rounding may have moved it.
    error: f64,
    /// Where decoding is a search: P is at least `primal` and at most this.
    at_most: Option<f64>,
}

/// Computes P of some weights.
type ObjectiveAt<'o> = Box<dyn Fn(&Weights) -> Result<Computed> + 'o>;

/// Everything that a run keeps beside the solver's own state.
#[expect(clippy::struct_excessive_bools, reason = "facts about the run that are independent of each other")]
pub(super) struct Course<'o> {
    observer: &'o mut dyn Observer,
    settings: &'o Settings,
    solver: &'static str,
    /// Looks at all examples, hence only when needed.
    header: LazyCell<Header, Box<dyn FnOnce() -> Header + 'o>>,
    start: Instant,
    /// Seconds that training had taken when it was saved.
    earlier: f64,
    stop: Stop,
    c: f64,
    hard: bool,
    has_kernel: bool,
    examples: usize,
    /// Does the oracle find the maximum, and has the kernel a feature map? Otherwise there is no bound.
    can_prove: bool,
    max_passes: Option<f64>,
    kept: Result<Option<State>>,
    /// Why training is to end in the middle of a round: the time is up, or the observer wants to stop.
    over: Option<Status>,
    /// P of the best point is at most what is known of it.
    primal_is_bound: bool,
    /// The solver knows P of its points as an upper bound only.
    primal_is_upper: bool,
    /// The run went on from a state that came from outside, and its bound rests on numbers in that state that cannot be
    /// computed from the examples.
    rests_on_state: bool,
    /// The run went on from a state that came from outside.
    is_foreign: bool,
    /// P of the best point is that of a sample of the examples.
    pub(super) is_estimated: bool,
    /// P and D as they are reported.
    evaluate: Evaluate<'o>,
    objective: ObjectiveAt<'o>,
    /// The solver's dual point at the end, and what went wrong in computing it.
    point: Result<Option<DualPoint>>,
    /// The values of the best weights when training was found to have converged, with the P that was carried along; with a
    /// kernel also the weights, with the scores that belong to their coefficients.
    settled: Option<(f64, Option<Weights>, Values)>,
    pub(super) so_far: SoFar,
}

impl<'o> Course<'o> {
    pub(super) fn new(
        solver: &'o dyn Solver,
        problem: &'o Problem<'_>,
        settings: &'o Settings,
        observer: &'o mut dyn Observer,
    ) -> Result<Self> {
        let start = settings.warm_start.clone().unwrap_or_else(|| problem.zero());
        Self::from_weights(solver, problem, settings, observer, start)
    }

    /// The same from weights that need not have the usual form.
    pub(super) fn from_weights(
        solver: &'o dyn Solver,
        problem: &'o Problem<'_>,
        settings: &'o Settings,
        observer: &'o mut dyn Observer,
        start: Weights,
    ) -> Result<Self> {
        settings.check(problem)?;
        Ok(Self {
            observer,
            settings,
            solver: solver.name(),
            header: LazyCell::new(Box::new(move || Header::new(solver, problem, settings))),
            start: Instant::now(),
            earlier: 0.0,
            stop: settings.stop_rule(problem),
            c: problem.formulation().c,
            hard: problem.formulation().penalty == Penalty::Hard,
            has_kernel: problem.metric().is_some(),
            examples: problem.len(),
            can_prove: problem.oracle_is_exact() && problem.metric().is_none_or(|metric| metric.is_definite()),
            max_passes: settings.max_passes,
            kept: Ok(None),
            over: None,
            primal_is_bound: false,
            primal_is_upper: false,
            rests_on_state: false,
            is_foreign: false,
            is_estimated: false,
            evaluate: Box::new(move |weights, primal, point, bound| {
                if problem.metric().is_some() {
                    reported::with_kernel(problem, &Pool::new(settings.threads)?, weights.to_mut(), point)
                } else {
                    reported::without_kernel(problem, (weights, primal), (point, bound))
                }
            }),
            objective: Box::new(move |weights| {
                let pool = Pool::new(settings.threads)?;
                let primal = problem.objective(weights, &pool)?;
                let is_searched = problem.searched() > 0;
                let at_most = if is_searched && problem.formulation().penalty != Penalty::Hard {
                    problem.objective_at_most(weights, &pool)?.unwrap_or(f64::INFINITY)
                } else {
                    f64::INFINITY
                };
                let error = problem.sizes()?.error_of_primal(primal, problem.length(weights));
                Ok(Computed { primal, error, at_most: is_searched.then_some(at_most) })
            }),
            point: Ok(None),
            settled: None,
            so_far: SoFar::at(start),
        })
    }

    /// The course of a solver without a bound: it ends when the solver is done, or after `passes` where the user names no
    /// limit.
    pub(super) fn without_bound(mut self, passes: f64) -> Self {
        self.so_far.dual = f64::NEG_INFINITY;
        self.max_passes.get_or_insert(passes);
        self
    }

    /// Ends after `passes` where the user names no limit.
    pub(super) fn at_most_passes(mut self, passes: f64) -> Self {
        self.max_passes.get_or_insert(passes);
        self
    }

    /// The course of a solver that knows P of its points as an upper bound only.
    pub(super) fn with_upper_primal(mut self) -> Self {
        self.primal_is_upper = true;
        self
    }

    /// The bound is one of another problem than the oracle's.
    pub(super) fn cannot_prove(&mut self) {
        self.can_prove = false;
    }

    /// The course of a solver whose dual value is an estimate, no bound.
    pub(super) fn with_estimate(mut self) -> Self {
        self.so_far.worth = Worth::Estimate;
        self
    }

    /// Takes note of an estimate of the minimum, in the place of the last.
    pub(super) fn estimate(&mut self, value: f64) {
        (self.so_far.worth, self.so_far.dual) = (Worth::Estimate, value);
    }

    /// Is the dual value a proven lower bound of the minimum, and known?
    fn is_bound(&self) -> bool {
        self.can_prove && self.has_bound() && self.so_far.dual.is_finite()
    }

    /// Is the dual value a bound?
    pub(super) fn has_bound(&self) -> bool {
        matches!(self.so_far.worth, Worth::Bound)
    }

    /// From now on the dual value is a bound; what is known of it so far is that it is not negative.
    pub(super) fn begin_bound(&mut self) {
        if self.so_far.worth == Worth::Estimate {
            (self.so_far.worth, self.so_far.dual) = (Worth::Bound, 0.0);
        }
    }

    /// Before the first round: is a resumed run over already?
    pub(super) fn begin(&mut self, solver: &impl Resumable) -> ControlFlow<Status> {
        if self.settings.resume.is_none() {
            return ControlFlow::Continue(());
        }
        let status = self.decide(false, self.seconds(), solver);
        self.keep(status, solver)
    }

    /// Keeps the state where it is the last one and asked for.
    fn keep(&mut self, status: Option<Status>, solver: &impl Resumable) -> ControlFlow<Status> {
        let Some(status) = status else { return ControlFlow::Continue(()) };
        if self.settings.keep_state {
            self.kept = self.save(solver).map(Some);
        }
        ControlFlow::Break(status)
    }

    fn save(&self, solver: &impl Resumable) -> Result<State> {
        self.here(solver, None).save()
    }

    fn here<'h, S>(&'h self, solver: &'h S, began: Option<&'h State>) -> Here<'h, 'o, S> {
        Here { header: &self.header, so_far: &self.so_far, solver, began, is_foreign: self.rests_on_state }
    }

    /// Where there is a limit of passes: what it leaves of them, and the state here, with which the next round begins.
    pub(super) fn limit(&self, solver: &impl Resumable) -> Result<Option<(f64, State)>> {
        self.max_passes.map(|most| Ok((most - self.passes(), self.save(solver)?))).transpose()
    }

    /// Seconds since the very beginning.
    fn seconds(&self) -> f64 {
        self.earlier + self.start.elapsed().as_secs_f64()
    }

    /// Until when P may be looked for by a run that is over before it has reached what it wanted.
    pub(super) fn patience(&self) -> Instant {
        Instant::now() + LEAST_TIME.max(self.start.elapsed().mul_f64(MORE_TIME))
    }

    /// When the time is up, if it is limited.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let left = (self.settings.max_seconds? - self.earlier).max(0.0);
        self.start.checked_add(Duration::try_from_secs_f64(left).ok()?)
    }

    /// Is training to end in the middle of a round, as the time is up or the observer wants to stop? Asked where the solver
    /// can [break off](Self::break_off).
    pub(super) fn is_over(&mut self) -> bool {
        if self.observer.is_over() {
            self.over = Some(Status::Interrupted);
        } else if self.over.is_none() && self.deadline().is_some_and(|deadline| Instant::now() >= deadline) {
            self.over = Some(Status::MaxSeconds);
        }
        self.over.is_some()
    }

    /// Takes note of a point whose P is known exactly.
    pub(super) fn offer(&mut self, w: &Weights, primal: f64) {
        if primal < self.so_far.primal {
            (self.so_far.primal, self.so_far.verified) = (primal, false);
            self.so_far.best.replace(w);
            self.primal_is_bound = false;
        }
    }

    /// The same after the last round, where its P may be at most that.
    pub(super) fn offer_soon(&mut self, w: &Weights, primal: f64, is_bound: bool) {
        if primal < self.so_far.primal {
            self.offer(w, primal);
            self.primal_is_bound = is_bound;
        }
    }

    /// Takes note of a point after an exact pass there, and returns its P. Hard margin: of the smallest multiple of
    /// the point that separates the data.
    pub(super) fn offer_exact(&mut self, problem: &Problem<'_>, w: &Weights, pool: &Pool) -> Result<f64> {
        self.so_far.oracle_calls += self.examples as u64;
        if !self.hard {
            let primal = self.in_oracle(|| problem.objective(w, pool))?;
            self.offer(w, primal);
            return Ok(primal);
        }
        let kept = 1.0 - self.in_oracle(|| problem.worst_shortfall(w, pool))?;
        if kept <= 0.0 {
            return Ok(f64::INFINITY);
        }
        let mut multiple = w.clone();
        multiple.scale(1.0 / kept);
        let primal = 0.5 * multiple.norm2();
        self.offer(&multiple, primal);
        Ok(primal)
    }

    /// Makes this point the answer, for a solver that does not go by P, and finds P there.
    pub(super) fn answer(&mut self, problem: &Problem<'_>, w: &Weights, pool: &Pool) -> Result<()> {
        self.so_far.best.replace(w);
        self.so_far.verified = false;
        self.verify(problem, pool)
    }

    /// P of the best point by an exact pass: what was carried along from round to round has rounding in it.
    pub(super) fn verify(&mut self, problem: &Problem<'_>, pool: &Pool) -> Result<()> {
        if self.so_far.verified {
            return Ok(());
        }
        self.so_far.oracle_calls += self.examples as u64;
        let best = Weights::from(std::mem::take(&mut self.so_far.best));
        self.so_far.primal = self.in_oracle(|| problem.objective(&best, pool))?;
        (self.so_far.best, self.so_far.verified) = (best.into(), true);
        Ok(())
    }

    /// Takes note of a lower bound.
    pub(super) fn bound(&mut self, dual: f64) {
        self.so_far.dual = self.so_far.dual.max(dual);
    }

    pub(super) fn gap(&self) -> f64 {
        self.so_far.primal - self.so_far.dual
    }

    /// The gap that stops training.
    pub(super) fn target(&self) -> f64 {
        self.target_at(if self.so_far.primal.is_finite() { self.so_far.primal } else { self.so_far.dual })
    }

    /// The same, were P `primal`.
    pub(super) fn target_at(&self, primal: f64) -> f64 {
        match self.stop {
            Stop::Gap(epsilon) if !self.hard => self.c * epsilon,
            Stop::Gap(r) | Stop::RelativeGap(r) => r * primal,
        }
    }

    /// The target as a share of P; 0 while nothing is known of P.
    pub(super) fn relative_target(&self) -> f64 {
        let scale = if self.so_far.primal.is_finite() { self.so_far.primal } else { self.so_far.dual };
        if scale > 0.0 { self.target() / scale } else { 0.0 }
    }

    pub(super) fn converged(&self) -> bool {
        self.gap() + self.so_far.shortfall <= self.target()
    }

    /// Where training seems to have converged: is the gap that small when P and D are computed as they are reported? If not,
    /// training goes on until it seems smaller by what was missing.
    fn has_converged(&mut self, solver: &impl Resumable) -> bool {
        if !self.converged() {
            return false;
        }
        if !self.is_bound() {
            return true;
        }
        let found = solver.dual_point().and_then(|point| {
            let mut best = self.so_far.best.weights();
            let values = (self.evaluate)(&mut best, self.so_far.primal, point.as_ref(), self.so_far.dual)?;
            Ok((best.has_coefficients().then(|| best.into_owned()), values))
        });
        let (best, values) = match found {
            Ok(found) => found,
            Err(error) => {
                self.point = Err(error);
                return true;
            }
        };
        let gap = values.primal + values.primal_error - values.dual.unwrap_or(0.0);
        let target = self.target_at(values.primal);
        if gap <= target {
            self.settled = Some((self.so_far.primal, best, values));
            return true;
        }
        self.so_far.shortfall = (1.01 * (gap - self.gap())).max(2.0 * self.so_far.shortfall);
        if self.so_far.shortfall > MOST_SHORTFALL * target || self.so_far.shortfall.is_nan() {
            // Rounding stands between the target and what can be proven.
            self.so_far.stalled = true;
        }
        false
    }

    /// The dual point on which the report is to rest.
    pub(super) fn rest_on(&mut self, solver: &impl Resumable) {
        if self.point.is_ok() {
            self.point = solver.dual_point();
        }
    }

    pub(super) fn passes(&self) -> f64 {
        self.so_far.oracle_calls as f64 / self.examples as f64
    }

    /// Passes on that training goes on, on a sample of the data, and whether it shall stop.
    pub(super) fn on_sample(&mut self, sample: &Progress) -> ControlFlow<()> {
        let oracle_calls = self.so_far.oracle_calls + sample.oracle_calls;
        self.observer.on_iteration(&Progress {
            round: 0,
            seconds: self.seconds(),
            passes: oracle_calls as f64 / self.examples as f64,
            oracle_calls,
            primal: None,
            dual: None,
            gap: None,
            ..*sample
        })
    }

    /// Takes note of what a solution on a sample took.
    pub(super) fn after_sample(&mut self, report: &Report) {
        self.so_far.oracle_calls += report.oracle_calls;
        self.so_far.seconds_oracle += report.seconds_oracle;
        self.so_far.seconds_qp += report.seconds_qp;
    }

    /// Ends a round. `exact`: P at this round's point, where an exact pass was made. `solver`: its state as it goes into the
    /// next round.
    pub(super) fn end_round(&mut self, exact: Option<f64>, solver: &impl Resumable) -> ControlFlow<Status> {
        self.so_far.rounds += 1;
        self.tell(self.so_far.rounds, exact, solver, None)
    }

    /// Ends a round that the limit of passes has cut short, the last one. What it came to counts for the answer, and as the
    /// start of another C; who goes on with a larger limit goes on from where it began, so that no limit shows in the bits.
    pub(super) fn end_cut_round(
        &mut self,
        exact: Option<f64>,
        solver: &impl Resumable,
        began: &State,
    ) -> ControlFlow<Status> {
        self.so_far.rounds += 1;
        self.tell(self.so_far.rounds, exact, solver, Some(began))
    }

    /// Ends a run in the middle of a round, which counts when a resumed run has gone to its end.
    pub(super) fn break_off(&mut self, solver: &impl Resumable) -> Status {
        match self.tell(self.so_far.rounds + 1, None, solver, None) {
            ControlFlow::Break(status) => status,
            ControlFlow::Continue(()) => unreachable!("who breaks off has been told that it is over"),
        }
    }

    fn tell(
        &mut self,
        round: u64,
        exact: Option<f64>,
        solver: &impl Resumable,
        began: Option<&State>,
    ) -> ControlFlow<Status> {
        self.so_far.seconds = self.seconds();
        let progress = Progress {
            round,
            seconds: self.so_far.seconds,
            passes: self.passes(),
            oracle_calls: self.so_far.oracle_calls,
            cache_hits: self.so_far.cache_hits,
            primal: exact.filter(|p| p.is_finite()),
            dual: Some(self.so_far.dual).filter(|d| d.is_finite()),
            gap: exact.map(|_| self.gap()).filter(|g| g.is_finite()),
            target: self.target(),
            working_set: self.so_far.working_set,
        };
        let told = self.observer.on_iteration(&progress);
        let is_interrupted = told.is_break() || self.over == Some(Status::Interrupted);
        let status = self.decide(is_interrupted, progress.seconds, solver).or(began.map(|_| Status::MaxPasses));
        let Self { header, so_far, rests_on_state, .. } = self;
        let here = Here { header, so_far, solver, began, is_foreign: *rests_on_state };
        let told = self.observer.on_state(&progress, &here, status);
        self.keep(status.or(told.is_break().then_some(Status::Interrupted)), solver)
    }

    /// Is it over?
    fn decide(&mut self, interrupted: bool, seconds: f64, solver: &impl Resumable) -> Option<Status> {
        // Where there is a bound, it decides: the solver does not know what rounding takes from it.
        if self.has_converged(solver) || (self.so_far.done && !self.is_bound()) {
            Some(Status::Converged)
        } else if self.so_far.stalled {
            Some(Status::Stalled)
        } else if interrupted {
            Some(Status::Interrupted)
        } else if self.max_passes.is_some_and(|most| self.passes() >= most) {
            Some(Status::MaxPasses)
        } else if self.over.is_some() || self.settings.max_seconds.is_some_and(|most| seconds >= most) {
            Some(Status::MaxSeconds)
        } else {
            None
        }
    }

    /// Runs `work` and adds its wall time to the oracle's share.
    pub(super) fn in_oracle<R>(&mut self, work: impl FnOnce() -> R) -> R {
        self.asking_in_oracle(|_| work())
    }

    /// The same, where the work asks on its way whether it is over.
    pub(super) fn asking_in_oracle<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let start = Instant::now();
        let result = work(self);
        self.so_far.seconds_oracle += start.elapsed().as_secs_f64();
        result
    }

    /// Runs `work` and adds its wall time to the dual QP's share.
    pub(super) fn in_qp<R>(&mut self, work: impl FnOnce() -> R) -> R {
        self.asking_in_qp(|_| work())
    }

    /// The same, where the work asks on its way whether it is over.
    pub(super) fn asking_in_qp<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let start = Instant::now();
        let result = work(self);
        self.so_far.seconds_qp += start.elapsed().as_secs_f64();
        result
    }
}

/// A run at the end of a round.
struct Here<'h, 'o, S> {
    header: &'h LazyCell<Header, Box<dyn FnOnce() -> Header + 'o>>,
    so_far: &'h SoFar,
    solver: &'h S,
    /// Where the round began, if it was cut short.
    began: Option<&'h State>,
    is_foreign: bool,
}

impl<S: Resumable> Snapshot for Here<'_, '_, S> {
    fn weights(&self) -> Cow<'_, Weights> {
        self.solver.weights().unwrap_or_else(|| self.so_far.best.weights())
    }

    fn rounds(&self) -> u64 {
        self.so_far.rounds - u64::from(self.began.is_some())
    }

    fn save(&self) -> Result<State> {
        self.began.map_or_else(|| self.save_for_another_c(), |began| Ok(began.clone()))
    }

    fn save_for_another_c(&self) -> Result<State> {
        let mut writer = Writer::new(self.header)?;
        writer.put(self.so_far)?;
        self.solver.write(&mut writer)?;
        Ok(writer.finish(self.is_foreign))
    }
}
