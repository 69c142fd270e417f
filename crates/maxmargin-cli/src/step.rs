//! What training at one C came to.

use maxmargin::problem::{Formulation, Penalty};
use maxmargin::solver::{Certificate, Report, Status};
use maxmargin::weights::Weights;
use serde::{Deserialize, Serialize};

/// All that the summary and the model file tell, so that a checkpoint can keep it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Step {
    pub(crate) c: f64,
    pub(crate) status: Status,
    pub(crate) certificate: Certificate,
    pub(crate) target: f64,
    pub(crate) primal: f64,
    pub(crate) primal_error: f64,
    pub(crate) primal_is_bound: bool,
    pub(crate) dual: f64,
    pub(crate) gap: f64,
    pub(crate) rests_on_state: bool,
    pub(crate) rounds: u64,
    pub(crate) passes: f64,
    pub(crate) oracle_calls: u64,
    pub(crate) cache_hits: u64,
    pub(crate) working_set: usize,
    pub(crate) seconds_training: f64,
    pub(crate) seconds_oracle: f64,
    pub(crate) seconds_qp: f64,
    pub(crate) disagreement: Option<f64>,
    pub(crate) train_loss: f64,
    pub(crate) heldout: Option<HeldoutStep>,
}

/// On the held-out examples.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct HeldoutStep {
    /// Of the weights that are kept of this step.
    pub(crate) loss: f64,
    /// The least that was seen.
    pub(crate) best: f64,
    /// Where the end was, if these weights are from before.
    pub(crate) at_end: Option<AtEnd>,
}

/// Where training ended.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct AtEnd {
    pub(crate) primal: f64,
    pub(crate) gap: f64,
}

/// Weights, and the step that they come from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) step: Step,
    pub(crate) weights: Weights,
}

impl Step {
    pub(crate) fn new(c: f64, report: &Report, train_loss: f64, heldout: Option<HeldoutStep>) -> Self {
        Self {
            c,
            status: report.status,
            certificate: report.certificate,
            target: report.target,
            primal: report.primal,
            primal_error: report.primal_error,
            primal_is_bound: report.primal_is_bound,
            dual: report.dual,
            gap: report.gap,
            rests_on_state: report.rests_on_state,
            rounds: report.rounds,
            passes: report.passes,
            oracle_calls: report.oracle_calls,
            cache_hits: report.cache_hits,
            working_set: report.working_set,
            seconds_training: report.seconds_training,
            seconds_oracle: report.seconds_oracle,
            seconds_qp: report.seconds_qp,
            disagreement: report.disagreement,
            train_loss,
            heldout,
        }
    }

    pub(crate) fn heldout_loss(&self) -> Option<f64> {
        self.heldout.map(|heldout| heldout.loss)
    }

    /// Where training ended, if the weights are from before.
    pub(crate) fn at_end(&self) -> Option<AtEnd> {
        self.heldout.and_then(|heldout| heldout.at_end)
    }

    /// Does it end with what was asked for, or as near to it as f64 goes? Without a bound that is a number of passes.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.status, Status::Converged | Status::Stalled)
            || (self.dual == f64::NEG_INFINITY && self.status == Status::MaxPasses)
    }

    /// The gap that was asked for, in units of C; of P with the hard margin.
    pub(crate) fn epsilon(&self, formulation: &Formulation) -> f64 {
        self.target / if formulation.penalty == Penalty::Hard { self.primal } else { self.c }
    }
}
