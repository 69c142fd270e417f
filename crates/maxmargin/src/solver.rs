//! Solvers, and what they share: settings, progress, the stopping rule, the report.

use std::ops::ControlFlow;

use crate::error::{Error, Result};
use crate::problem::{Penalty, Problem};
use crate::weights::Weights;

pub mod auto;
mod average;
pub mod bcfw;
mod blocks;
mod course;
pub mod cutting_plane;
pub mod dual_coordinate;
pub mod folds;
pub mod frank_wolfe;
pub mod gdmm;
pub mod guarantee;
pub mod heldout;
mod kind;
mod lanes;
mod line_search;
mod lines;
pub mod mle;
pub mod n_slack;
pub mod partition;
pub mod path;
pub mod perceptron;
mod permutation;
mod reported;
mod rough;
pub mod sampled_constant;
mod state;
pub mod subgradient;

use course::Course;
pub use kind::SolverKind;
pub use state::{Snapshot, State};

/// When is the answer good enough?
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Stop {
    /// `P - D <= C * epsilon`: P/C is then within epsilon of its minimum. With the hard margin, which has no C,
    /// `P - D <= epsilon * P`.
    Gap(f64),
    /// `P - D <= r * P`
    RelativeGap(f64),
}

/// What every solver needs to know beside the problem.
#[derive(Debug, Clone)]
pub struct Settings {
    /// When to stop; None: a gap of 0.01 times the [usual largest loss](Problem::usual_loss).
    pub stop: Option<Stop>,
    /// Number of threads, 0 for one a core. The result does not depend on it.
    pub threads: usize,
    /// Stop after that many passes, n oracle calls each. Solvers without a bound have a default of their own.
    pub max_passes: Option<f64>,
    /// Stop after that many seconds; those before a resumed state was saved count.
    pub max_seconds: Option<f64>,
    /// Seed of whatever is drawn at random: the order of the examples.
    pub seed: u64,
    /// Where to begin.
    pub warm_start: Option<Weights>,
    /// Goes on from a state that the same solver, with the same settings, saved on the same problem. With the same C training
    /// ends as if it had never been stopped, in the same bits. Only C may be another: then training begins anew, but near
    /// its end, with what the state knows.
    pub resume: Option<State>,
    /// Keep the state at the end, to begin with it at another C.
    pub keep_state: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stop: None,
            threads: 1,
            max_passes: None,
            max_seconds: None,
            seed: 0,
            warm_start: None,
            resume: None,
            keep_state: false,
        }
    }
}

/// The state of training after a round.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Progress {
    /// Rounds so far; 0 while a sample of the data is solved for a start, whose values are none of the problem's.
    pub round: u64,
    /// Seconds since training began.
    pub seconds: f64,
    /// Oracle calls divided by n.
    pub passes: f64,
    /// Calls of the separation oracle.
    pub oracle_calls: u64,
    /// Times that a cached output did instead.
    pub cache_hits: u64,
    /// P at this round's point; None where no exact pass has been made in this round.
    pub primal: Option<f64>,
    /// The lower bound; None while a sample is solved, and where the solver has none.
    pub dual: Option<f64>,
    /// Best primal value so far less the bound; None where no exact pass has been made in this round.
    pub gap: Option<f64>,
    /// The gap that stops training.
    pub target: f64,
    /// Number of cuts in the working set.
    pub working_set: usize,
}

/// Hears of every round, and may stop training.
pub trait Observer {
    /// Called after every round; `Break` stops training, which returns the best weights so far.
    fn on_iteration(&mut self, progress: &Progress) -> ControlFlow<()>;

    /// Called after [`on_iteration`](Self::on_iteration), when it is decided whether training goes on: `status` says why it
    /// stops here. Not called while a sample is solved for a start, which takes as long again when it is begun anew.
    /// The snapshot can be saved and its weights be looked at; it costs nothing unless that is done. `Break` stops training after
    /// all.
    fn on_state(&mut self, _progress: &Progress, _snapshot: &dyn Snapshot, _status: Option<Status>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    /// Asked now and then in the middle of a round that may take long, by solvers that can leave it there: true stops training.
    fn is_over(&mut self) -> bool {
        false
    }
}

/// Hears nothing, stops nothing.
impl Observer for () {
    fn on_iteration(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl<F: FnMut(&Progress) -> ControlFlow<()>> Observer for F {
    fn on_iteration(&mut self, progress: &Progress) -> ControlFlow<()> {
        self(progress)
    }
}

/// How training ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// The gap is as small as was asked.
    Converged,
    /// The passes were used up.
    MaxPasses,
    /// The time was used up.
    MaxSeconds,
    /// The observer asked to stop.
    Interrupted,
    /// No further progress: as a rule the gap is at the level of rounding.
    Stalled,
    /// Hard margin only: the data cannot be separated.
    Infeasible,
}

/// What the reported dual value is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Certificate {
    /// `dual <= min P <= primal`, proven.
    Exact,
    /// The oracle is approximate: the primal value is a lower estimate of P.
    Estimate,
    /// No bound above 0, which every objective has.
    None,
}

impl Certificate {
    /// The gap `primal - dual`, or infinity where none is known.
    ///
    /// An estimate proves nothing. Where it is not below P, it does not even tell a gap.
    pub fn gap(self, primal: f64, dual: f64) -> f64 {
        let gap = primal - dual;
        match self {
            Self::Exact => gap,
            Self::Estimate if gap > 0.0 => gap,
            Self::Estimate | Self::None => f64::INFINITY,
        }
    }
}

/// What training found out about its answer.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Report {
    /// The solver's name, as on the command line.
    pub solver: &'static str,
    /// How it ended.
    pub status: Status,
    /// What the dual value is worth.
    pub certificate: Certificate,
    /// The gap that was asked for, in units of P.
    pub target: f64,
    /// P(w) of the returned weights.
    pub primal: f64,
    /// How far `primal` may be from P(w), by the rounding of f64.
    pub primal_error: f64,
    /// Is P(w) only known to be at most that, as there was no time left to decode all examples?
    pub primal_is_bound: bool,
    /// The lower bound, less its rounding error; minus infinity where the solver has none.
    pub dual: f64,
    /// `primal - dual`; infinity where no gap is known ([`Certificate::gap`]).
    pub gap: f64,
    /// Does the dual value rest on numbers of a saved state that came from outside and cannot be computed from the examples?
    /// Whoever wrote that state vouches for it.
    pub rests_on_state: bool,
    /// Rounds.
    pub rounds: u64,
    /// Oracle calls divided by n.
    pub passes: f64,
    /// Calls of the separation oracle.
    pub oracle_calls: u64,
    /// Times that a cached output did instead.
    pub cache_hits: u64,
    /// Number of cuts in the working set at the end.
    pub working_set: usize,
    /// Number of cuts with a positive dual variable.
    pub support: usize,
    /// Wall seconds of training.
    pub seconds_training: f64,
    /// Of these, in oracles and line searches.
    pub seconds_oracle: f64,
    /// Of these, in the dual QP.
    pub seconds_qp: f64,
    /// Of training factor by factor: the share of their mass on which factors disagree. The dual value is that of a point where
    /// they agree; where they make loops it bounds P with the loss of the linear programming relaxation.
    pub disagreement: Option<f64>,
}

/// Weights and what is known of them.
#[derive(Debug, Clone)]
pub struct Solution {
    /// The best weights found.
    pub weights: Weights,
    /// What is known of them.
    pub report: Report,
    /// The mean loss on the training examples, estimated, of solvers that do not look at all of them. Then the
    /// weights are their coefficients alone, without scores.
    pub train_loss: Option<f64>,
    /// The state at the end, where [`Settings::keep_state`] asks for it. None for data that cannot be separated.
    pub state: Option<State>,
}

/// A way to solve a [`Problem`].
///
/// How a solver prints with `{:?}` identifies its settings: a saved state is resumed only by a solver that prints the same.
pub trait Solver: std::fmt::Debug + Sync {
    /// The solver's name, as on the command line.
    fn name(&self) -> &'static str;

    /// Trains. Not converging is a [`Status`], not an error.
    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution>;
}

impl Settings {
    /// Fails at the door.
    fn check(&self, problem: &Problem<'_>) -> Result<()> {
        let (name, value) = match self.stop {
            Some(Stop::Gap(e)) => ("epsilon", Some(e)),
            Some(Stop::RelativeGap(r)) => ("relative-gap", Some(r)),
            None => ("epsilon", None),
        };
        for (name, value) in [(name, value), ("max-passes", self.max_passes), ("max-seconds", self.max_seconds)] {
            if let Some(value) = value
                && !(value > 0.0 && value.is_finite())
            {
                return Err(Error::setting(name, format!("must be positive and finite, not {value}")));
            }
        }
        if let Some(Stop::RelativeGap(r)) = self.stop
            && r >= 1.0
        {
            return Err(Error::setting("relative-gap", format!("must be below 1, not {r}: w = 0 has a gap of 1")));
        }
        if let Some(metric) = problem.metric() {
            let gram = metric.gram();
            let mut values = (0..gram.len() as u32).map(|a| gram.diagonal(a));
            if let Some(value) = values.find(|value| value.is_nan() || value.abs() > LARGEST_VALUE) {
                let rule = format!(
                    "k(x, x) is {value:e} for some x; at most {LARGEST_VALUE:e} can be handled: take a smaller gamma or \
                     degree, or scale the data"
                );
                return Err(Error::setting("kernel", rule));
            }
        }
        if let Some(w) = &self.warm_start {
            if w.len() != problem.dimension() {
                let rule = format!("has {} weights, this problem has {}", w.len(), problem.dimension());
                return Err(Error::setting("warm-start", rule));
            }
            if w.has_coefficients() != problem.metric().is_some() {
                let rule = "has to have coefficients beside its scores where there is a kernel, and only there";
                return Err(Error::setting("warm-start", rule));
            }
            if !w.all(f64::is_finite) {
                return Err(Error::setting("warm-start", "has weights that are not finite"));
            }
            if self.resume.is_some() {
                return Err(Error::setting("warm-start", "training either resumes or starts from weights, not both"));
            }
        }
        Ok(())
    }

    /// The rule that stops training, the default filled in.
    fn stop_rule(&self, problem: &Problem<'_>) -> Stop {
        self.stop.unwrap_or(match problem.formulation().penalty {
            Penalty::Hard => Stop::RelativeGap(DEFAULT_EPSILON),
            Penalty::Linear | Penalty::Quadratic => Stop::Gap(DEFAULT_EPSILON * problem.usual_loss()),
        })
    }
}

/// Kernel values up to here, as those of f32 vectors are, have sums and products that do not overflow.
const LARGEST_VALUE: f64 = 1e80;

/// For solvers that step along single examples' features, which a kernel does not write down.
fn refuse_kernel(name: &str, problem: &Problem<'_>) -> Result<()> {
    if problem.metric().is_none() {
        return Ok(());
    }
    let rule = format!(
        "{name} works with a kernel only through a low rank (--low-rank); without it take one-slack, n-slack, bcfw, \
         sampled-linear or sampled-constant"
    );
    Err(Error::setting("solver", rule))
}

/// epsilon for a loss whose largest value is 1.
pub const DEFAULT_EPSILON: f64 = 0.01;
