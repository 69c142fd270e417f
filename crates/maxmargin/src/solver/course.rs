//! The course of one training run: counters, best point, bound, and when to stop.

use std::ops::ControlFlow;
use std::time::Instant;

use super::{Certificate, Observer, Progress, Report, Settings, Solution, Status, Stop};
use crate::error::Result;
use crate::parallel::Pool;
use crate::problem::{Penalty, Problem};
use crate::sparse::dot;
use crate::task::Task;
use crate::weights::Weights;

/// Makes the dual QP's tolerance tighter while its solutions do not rise by it: a tolerance that follows the gap can be
/// met without a step, and the same point would come back for ever.
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

/// Everything that a run keeps beside the solver's own state.
pub(super) struct Course<'o> {
    observer: &'o mut dyn Observer,
    start: Instant,
    stop: Stop,
    c: f64,
    hard: bool,
    examples: usize,
    exact_oracle: bool,
    max_passes: f64,
    max_seconds: f64,
    pub(super) rounds: u64,
    pub(super) oracle_calls: u64,
    pub(super) cache_hits: u64,
    pub(super) seconds_oracle: f64,
    pub(super) seconds_qp: f64,
    pub(super) working_set: usize,
    pub(super) support: usize,
    best: Weights,
    pub(super) primal: f64,
    pub(super) dual: f64,
}

impl<'o> Course<'o> {
    pub(super) fn new<T: Task>(
        problem: &Problem<'_, T>,
        settings: &Settings,
        observer: &'o mut dyn Observer,
    ) -> Result<Self> {
        settings.check(problem)?;
        Ok(Self {
            observer,
            start: Instant::now(),
            stop: settings.stop_rule(problem),
            c: problem.formulation().c,
            hard: problem.formulation().penalty == Penalty::Hard,
            examples: problem.len(),
            exact_oracle: problem.oracle_is_exact(),
            max_passes: settings.max_passes.unwrap_or(f64::INFINITY),
            max_seconds: settings.max_seconds.unwrap_or(f64::INFINITY),
            rounds: 0,
            oracle_calls: 0,
            cache_hits: 0,
            seconds_oracle: 0.0,
            seconds_qp: 0.0,
            working_set: 0,
            support: 0,
            best: settings.warm_start.clone().unwrap_or_else(|| Weights::zeros(problem.dimension())),
            primal: f64::INFINITY,
            // w = 0 and no slack is below everything.
            dual: 0.0,
        })
    }

    /// Takes note of a point whose P is known exactly.
    pub(super) fn offer(&mut self, w: &Weights, primal: f64) {
        if primal < self.primal {
            self.primal = primal;
            self.best.clone_from(w);
        }
    }

    /// Takes note of a point after an exact pass there, and returns its P. Hard margin: of the smallest multiple of
    /// the point that separates the data.
    pub(super) fn offer_exact<T: Task>(&mut self, problem: &Problem<'_, T>, w: &Weights, pool: &Pool) -> Result<f64> {
        self.oracle_calls += self.examples as u64;
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
        multiple.as_mut_slice().iter_mut().for_each(|w| *w /= kept);
        let primal = 0.5 * dot(multiple.as_slice(), multiple.as_slice());
        self.offer(&multiple, primal);
        Ok(primal)
    }

    /// P of the best point by an exact pass: what was carried along from round to round has rounding in it.
    pub(super) fn verify<T: Task>(&mut self, problem: &Problem<'_, T>, pool: &Pool) -> Result<()> {
        self.oracle_calls += self.examples as u64;
        let best = std::mem::take(&mut self.best);
        self.primal = self.in_oracle(|| problem.objective(&best, pool))?;
        self.best = best;
        Ok(())
    }

    /// Takes note of a lower bound.
    pub(super) fn bound(&mut self, dual: f64) {
        self.dual = self.dual.max(dual);
    }

    pub(super) fn gap(&self) -> f64 {
        self.primal - self.dual
    }

    /// The gap that stops training.
    pub(super) fn target(&self) -> f64 {
        self.target_at(if self.primal.is_finite() { self.primal } else { self.dual })
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
        let scale = if self.primal.is_finite() { self.primal } else { self.dual };
        if scale > 0.0 { self.target() / scale } else { 0.0 }
    }

    pub(super) fn converged(&self) -> bool {
        self.gap() <= self.target()
    }

    pub(super) fn passes(&self) -> f64 {
        self.oracle_calls as f64 / self.examples as f64
    }

    /// Passes on that training goes on, on a sample of the data, and whether it shall stop.
    pub(super) fn on_sample(&mut self, sample: &Progress) -> ControlFlow<()> {
        let oracle_calls = self.oracle_calls + sample.oracle_calls;
        self.observer.on_iteration(&Progress {
            round: 0,
            seconds: self.start.elapsed().as_secs_f64(),
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
        self.oracle_calls += report.oracle_calls;
        self.seconds_oracle += report.seconds_oracle;
        self.seconds_qp += report.seconds_qp;
    }

    /// Ends a round. `exact`: P at this round's point, where an exact pass was made.
    pub(super) fn end_round(&mut self, exact: Option<f64>) -> ControlFlow<Status> {
        self.rounds += 1;
        let progress = Progress {
            round: self.rounds,
            seconds: self.start.elapsed().as_secs_f64(),
            passes: self.passes(),
            oracle_calls: self.oracle_calls,
            cache_hits: self.cache_hits,
            primal: exact.filter(|p| p.is_finite()),
            dual: Some(self.dual),
            gap: exact.map(|_| self.gap()).filter(|g| g.is_finite()),
            target: self.target(),
            working_set: self.working_set,
        };
        let told = self.observer.on_iteration(&progress);
        if self.converged() {
            ControlFlow::Break(Status::Converged)
        } else if told.is_break() {
            ControlFlow::Break(Status::Interrupted)
        } else if self.passes() >= self.max_passes {
            ControlFlow::Break(Status::MaxPasses)
        } else if progress.seconds >= self.max_seconds {
            ControlFlow::Break(Status::MaxSeconds)
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Runs `work` and adds its wall time to the oracle's share.
    pub(super) fn in_oracle<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        self.seconds_oracle += start.elapsed().as_secs_f64();
        result
    }

    /// Runs `work` and adds its wall time to the dual QP's share.
    pub(super) fn in_qp<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        self.seconds_qp += start.elapsed().as_secs_f64();
        result
    }

    /// The best weights and the report on them.
    pub(super) fn finish(mut self, solver: &'static str, status: Status) -> Solution {
        // At the optimum rounding may put the bound above P. More than rounding would be a false bound.
        debug_assert!(
            !self.exact_oracle || self.dual <= self.primal * (1.0 + 1e-6) + 1e-9 * self.c,
            "the bound {} is above P = {}",
            self.dual,
            self.primal
        );
        self.dual = self.dual.min(self.primal);
        let report = Report {
            solver,
            status,
            certificate: if self.exact_oracle { Certificate::Exact } else { Certificate::Estimate },
            target: self.target(),
            primal: self.primal,
            dual: self.dual,
            gap: self.gap(),
            rounds: self.rounds,
            passes: self.passes(),
            oracle_calls: self.oracle_calls,
            cache_hits: self.cache_hits,
            working_set: self.working_set,
            support: self.support,
            seconds_training: self.start.elapsed().as_secs_f64(),
            seconds_oracle: self.seconds_oracle,
            seconds_qp: self.seconds_qp,
        };
        Solution { weights: self.best, report }
    }
}
