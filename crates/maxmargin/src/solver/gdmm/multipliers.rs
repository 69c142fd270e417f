//! How far the multipliers go.
//!
//! Theorem 1 of the paper holds for steps that are short enough, and how short that is nobody can tell beforehand: on loops
//! multipliers that go all the way can swing for ever. So steps become shorter while the blocks do not come to agree.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::solver::state::{check, is_sound};

/// So many passes are looked at together.
const WINDOW: u32 = 16;

/// Disagreement falls where it is below this share of what it was in the window before.
const FALL: f64 = 0.95;

/// What is left of a step where it does not.
const SHORTER: f64 = 0.7;

/// Of the step that was asked for.
const LEAST: f64 = 0.03;

/// The step of the multipliers, and what it follows from.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Step {
    /// Of the step that was asked for.
    share: f64,
    passes: u32,
    /// Disagreement in this window so far, and in the one before.
    sum: f64,
    before: f64,
}

impl Default for Step {
    fn default() -> Self {
        Self { share: 1.0, passes: 0, sum: 0.0, before: f64::MAX }
    }
}

impl Step {
    /// Of the step that was asked for.
    pub(super) fn share(self) -> f64 {
        self.share
    }

    /// After a pass over the blocks that saw this disagreement.
    pub(super) fn follow(&mut self, disagreement: f64) {
        self.passes += 1;
        self.sum += disagreement;
        if self.passes == WINDOW {
            if self.sum > FALL * self.before {
                self.share = (SHORTER * self.share).max(LEAST);
            }
            *self = Self { share: self.share, before: self.sum, passes: 0, sum: 0.0 };
        }
    }

    /// Asked of one that was read from a file.
    pub(super) fn check(self) -> Result<()> {
        let is_fine = (LEAST..=1.0).contains(&self.share) && self.passes < WINDOW;
        check(is_fine && is_sound(self.sum) && self.before >= 0.0, "the multipliers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_shorten_while_disagreement_stays() {
        let mut step = Step::default();
        (0..10 * WINDOW).for_each(|t| step.follow(0.99_f64.powi(t as i32)));
        assert_eq!(step.share(), 1.0);
        (0..2 * WINDOW).for_each(|_| step.follow(1.0));
        assert!((step.share() - SHORTER * SHORTER).abs() < 1e-12, "{}", step.share());
        (0..1000 * WINDOW).for_each(|_| step.follow(1.0));
        assert_eq!(step.share(), LEAST);
        step.check().unwrap();
        (Step { share: f64::NAN, ..step }).check().unwrap_err();
        (Step { passes: WINDOW, ..step }).check().unwrap_err();
        (Step { before: f64::NAN, ..step }).check().unwrap_err();
    }
}
