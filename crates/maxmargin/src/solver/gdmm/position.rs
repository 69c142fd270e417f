//! Where a run of [`Gdmm`](super::Gdmm) stands, and what it does next.

use serde::{Deserialize, Serialize};

use super::multipliers::Step;
use crate::numeric::{ln, pow};

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
    /// After how many passes a gap was last proven, and which.
    pub(super) seen: (usize, f64),
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
            seen: (0, f64::MAX),
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

/// The next look at whether the gap is proven comes after so many times as many passes, at least and at most.
const SOONEST: f64 = 1.125;
const LATEST: f64 = 2.0;

impl Position {
    /// After a look that proved this gap: the next one comes when the target would be reached if the gap went on to fall as a power
    /// of the passes, as it did since the look before, at first as their inverse. Proofs are dear beside passes where labels are many,
    /// so none is made in between.
    pub(super) fn look_again(&mut self, gap: f64, target: f64) {
        let (before, passes) = (self.seen, self.passes);
        self.seen = (passes, gap);
        let times = passes as f64 / before.0.max(1) as f64;
        let power = if before.0 == 0 { 1.0 } else { ln(before.1 / gap) / ln(times) };
        let needed = pow(gap / target, 1.0 / power);
        // Not a number where there is no target.
        let growth = if power > 0.0 && needed < LATEST { needed.max(SOONEST) } else { LATEST };
        self.check = (growth * passes as f64).ceil() as usize;
    }

    /// Takes note of a proven gap; has it not fallen to this share of the least so often in a row?
    pub(super) fn is_futile(&mut self, gap: f64, fall: f64, often: u32) -> bool {
        self.futile = if gap < fall * self.least { 0 } else { self.futile.saturating_add(1) };
        self.least = self.least.min(gap);
        self.futile >= often
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When it is looked again after gaps at some passes, of which the last is proven now.
    fn next(looks: &[(usize, f64)], target: f64) -> usize {
        let mut position = Position::default();
        for &(passes, gap) in looks {
            position.passes = passes;
            position.look_again(gap, target);
        }
        position.check
    }

    #[test]
    fn it_is_looked_again_when_the_gap_may_be_reached() {
        // As the inverse of the passes: 1.5 times as far above the target is as many more passes.
        assert_eq!(next(&[(8, 1.5)], 1.0), 12);
        assert_eq!(next(&[(8, 10.0)], 1.0), 16);
        assert_eq!(next(&[(8, 1.001)], 1.0), 9);
        // As the square.
        assert_eq!(next(&[(8, 9.0), (16, 2.25)], 1.0), 24);
        // It does not fall, or to what nobody knows.
        assert_eq!(next(&[(8, 1.0), (16, 1.5)], 1.0), 32);
        assert_eq!(next(&[(8, 1.2), (16, 1.2)], 1.0), 32);
        for target in [0.0, f64::NAN] {
            assert_eq!(next(&[(8, 1.2), (16, 1.1)], target), 32);
        }
    }
}
