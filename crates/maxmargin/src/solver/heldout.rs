//! Held-out examples: the loss on them as training goes, and the weights that did best.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::parallel::{Pool, ranges};
use crate::problem::{HeldoutExamples, Output, Problem, Scratch};
use crate::weights::Weights;

/// Examples that are not trained on.
#[derive(Debug)]
pub struct Heldout<'h> {
    examples: HeldoutExamples<'h>,
    loss_scale: f64,
    /// What an example costs whose truth the task does not know, scaled.
    unknown: f64,
}

impl<'h> Heldout<'h> {
    /// Of the task of `problem`, beside its examples. Whatever is predicted where the truth is none of the task's outputs
    /// costs the largest loss in the data of `problem`.
    pub fn new(problem: &Problem<'_>, examples: HeldoutExamples<'h>) -> Self {
        Self { examples, loss_scale: problem.formulation().loss_scale, unknown: problem.max_loss() }
    }

    /// Mean loss of the predictions at w.
    pub fn mean_loss(&self, w: &Weights, pool: &Pool) -> Result<f64> {
        // Not by the number of threads: sums are the same with any.
        const PARTS: usize = 64;
        let parts = pool.map(ranges(self.examples.len(), PARTS), |range| {
            let (mut scratch, mut y) = (Scratch::default(), Output::default());
            let mut sum = 0.0;
            for i in range {
                let loss = self.examples.loss(i, w, &mut scratch, &mut y)?;
                sum += loss.map_or(self.unknown, |loss| self.loss_scale * loss);
            }
            Ok(sum)
        });
        let sum = parts.into_iter().try_fold(0.0, |sum, part: Result<f64>| Ok(sum + part?))?;
        Ok(sum / self.examples.len() as f64)
    }
}

/// What looks at held-out examples have shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Looks {
    /// Passes at the last look.
    passes: f64,
    last: Option<f64>,
    best: Option<Best>,
}

/// The weights that did best, the earliest of equals.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Best {
    /// Their mean loss on the held-out examples.
    pub loss: f64,
    /// They themselves.
    pub weights: Weights,
}

impl Looks {
    /// Is it time for another? Once a pass, never by the clock: the same run looks at the same weights.
    pub fn is_due(&self, passes: f64) -> bool {
        self.last.is_none() || passes >= self.passes + 1.0
    }

    /// Takes note of a look, after that many passes.
    pub fn add(&mut self, passes: f64, loss: f64, weights: Cow<'_, Weights>) {
        (self.passes, self.last) = (passes, Some(loss));
        if self.best.as_ref().is_none_or(|best| loss < best.loss) {
            self.best = Some(Best { loss, weights: weights.into_owned() });
        }
    }

    /// The loss at the last look.
    pub fn last(&self) -> Option<f64> {
        self.last
    }

    /// The best one.
    pub fn best(&self) -> Option<&Best> {
        self.best.as_ref()
    }

    /// The best one, to be kept.
    pub fn into_best(self) -> Option<Best> {
        self.best
    }
}
