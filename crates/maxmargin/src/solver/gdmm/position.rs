//! Where a run of [`Gdmm`](super::Gdmm) stands, and what it does next.

use serde::{Deserialize, Serialize};

use super::multipliers::Step;

/// Where a run stands between two passes, beside its dual variables and w.
#[derive(Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) passes: usize,
    /// `|w|^2`, and `sum cost b` of wrong labels.
    pub(super) norm2: f64,
    pub(super) cost: f64,
    /// Of the last pass: the sum of the mass on which blocks disagree.
    pub(super) disagreement: f64,
    /// Of examples, in all.
    pub(super) visits: f64,
    /// After so many passes, of steps towards outputs after so many of these, it is looked whether the gap is proven.
    pub(super) check: usize,
    /// The least gap that was proven, and how often in a row it has not become much less.
    pub(super) least: f64,
    pub(super) futile: u32,
    pub(super) phase: Phase,
    /// The best bound of the minimum that has been proven, and the gap when P was last known.
    pub(super) bound: f64,
    pub(super) gap: f64,
    /// How often steps were taken towards outputs.
    pub(super) steps: usize,
    /// Of the multipliers.
    pub(super) step: Step,
}

/// What a pass does. Up to the blocks all of them agree, and the value of the dual is a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Variables take turns ([`turn`](super::turn)).
    Turns,
    /// The same, and now and then a step towards outputs ([`outputs`](super::outputs)).
    Outputs,
    /// Blocks are visited, after turns where there are any, and multipliers follow.
    Blocks,
}

impl Default for Position {
    fn default() -> Self {
        let (least, gap) = (f64::MAX, f64::MAX);
        Self {
            passes: 0,
            norm2: 0.0,
            cost: 0.0,
            disagreement: 0.0,
            visits: 0.0,
            check: 0,
            least,
            futile: 0,
            phase: Phase::Turns,
            bound: 0.0,
            gap,
            steps: 0,
            step: Step::default(),
        }
    }
}

impl Position {
    /// Takes note of a proven gap; has it not fallen to this share of the least so often in a row?
    pub(super) fn is_futile(&mut self, gap: f64, fall: f64, often: u32) -> bool {
        self.futile = if gap < fall * self.least { 0 } else { self.futile.saturating_add(1) };
        self.least = self.least.min(gap);
        self.futile >= often
    }
}
