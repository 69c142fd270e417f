//! What a run has reached so far.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::qp::LARGEST;
use crate::solver::state::{check, is_sound};
use crate::weights::{Kept, Weights};

/// What a run has reached and what it took: the part of a [`State`] that all solvers share.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::solver) struct SoFar {
    pub(in crate::solver) rounds: u64,
    pub(in crate::solver) oracle_calls: u64,
    pub(in crate::solver) cache_hits: u64,
    /// At the end of the last round, since the very beginning.
    pub(super) seconds: f64,
    pub(super) seconds_oracle: f64,
    pub(super) seconds_qp: f64,
    pub(in crate::solver) working_set: usize,
    pub(in crate::solver) support: usize,
    /// The solver sees no more progress: this round is its last.
    pub(in crate::solver) stalled: bool,
    /// A solver without a bound has reached what it wants.
    pub(in crate::solver) done: bool,
    pub(super) best: Kept,
    pub(in crate::solver) primal: f64,
    /// P of the best point is from an exact pass that was made for it.
    pub(super) verified: bool,
    /// Minus infinity: the solver has no bound.
    pub(in crate::solver) dual: f64,
    /// What the dual value is.
    pub(super) worth: Worth,
    /// By how much the gap was larger than it had seemed when P and D were last computed as they are reported.
    pub(super) shortfall: f64,
}

/// A dual value may be a lower bound of P, or an estimate of its minimum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Worth {
    Bound,
    Estimate,
}

impl SoFar {
    pub(super) fn at(start: Weights) -> Self {
        Self {
            rounds: 0,
            oracle_calls: 0,
            cache_hits: 0,
            seconds: 0.0,
            seconds_oracle: 0.0,
            seconds_qp: 0.0,
            working_set: 0,
            support: 0,
            stalled: false,
            done: false,
            best: Kept::from(start),
            primal: f64::INFINITY,
            verified: false,
            // w = 0 and no slack is below everything.
            dual: 0.0,
            worth: Worth::Bound,
            shortfall: 0.0,
        }
    }

    /// Is this what a run on this problem can have reached from weights of the form of `start`?
    pub(super) fn check(&self, has_kernel: bool, start: &Kept) -> Result<()> {
        let counters = [self.rounds, self.oracle_calls, self.cache_hits];
        check(counters.iter().all(|&count| count < 1 << 60), "counters")?;
        let seconds = [self.seconds, self.seconds_oracle, self.seconds_qp];
        check(seconds.iter().all(|&s| s >= 0.0 && s.is_finite()), "seconds")?;
        // P is negative at times where a kernel has no feature map.
        let least = if has_kernel { -LARGEST } else { 0.0 };
        check(self.primal >= least && self.dual < f64::INFINITY, "primal and dual")?;
        check(self.shortfall >= 0.0 && is_sound(self.shortfall), "the shortfall")?;
        check(self.best.fits(&start.weights()) && self.best.all(is_sound), "weights")
    }
}
