//! Numbers of a whole problem at a point: P, what it is at most, the hard margin's shortfall, the mean loss.

use super::examples::{Output, Scratch};
use super::{OracleScratch, Penalty, Problem, Rescaling};
use crate::error::Result;
use crate::parallel::{Pool, ranges};
use crate::weights::Weights;

fn half_norm2(w: &Weights) -> f64 {
    0.5 * w.norm2()
}

impl Problem<'_> {
    /// P(w), exactly: infinite for the hard margin where no multiple of w separates the data. For the hard margin
    /// it is the value of the smallest multiple of w that does.
    pub fn objective(&self, w: &Weights, pool: &Pool) -> Result<f64> {
        if self.formulation.penalty == Penalty::Hard {
            let kept = 1.0 - self.worst_shortfall(w, pool)?;
            return Ok(if kept > 0.0 { half_norm2(w) / (kept * kept) } else { f64::INFINITY });
        }
        let sums = self.over_parts(
            pool,
            |i, scratch| Ok(self.weight(i) * self.slack(self.oracle(i, w, scratch)?)),
            |a, b| a + b,
        )?;
        Ok(half_norm2(w) + self.c_per_example() * sums)
    }

    /// What P(w) is at most, where the oracle of some examples only searches; None where their tasks know no bound.
    pub fn objective_at_most(&self, w: &Weights, pool: &Pool) -> Result<Option<f64>> {
        let sum = self.over_parts(pool, |i, scratch| self.slack_at_most(i, w, scratch), |a, b| a + b)?;
        Ok(Some(half_norm2(w) + self.c_per_example() * sum).filter(|p| p.is_finite()))
    }

    /// What the slack of example i, times its weight, is at most; infinite where nothing is known.
    pub(crate) fn slack_at_most(&self, i: usize, w: &Weights, scratch: &mut OracleScratch) -> Result<f64> {
        Ok(self.slack_between(i, w, scratch)?.1)
    }

    /// The slack of example i, times its weight, as the oracle finds it, and what it is at most.
    pub(crate) fn slack_between(&self, i: usize, w: &Weights, scratch: &mut OracleScratch) -> Result<(f64, f64)> {
        let h = self.oracle(i, w, scratch)?;
        let found = self.weight(i) * self.slack(h);
        if self.is_exact(i) {
            return Ok((found, found));
        }
        let bound = if let Some(at_most) = scratch.searched_at_most {
            at_most
        } else {
            let bound = self.examples.upper_bound(&scratch.task).unwrap_or(f64::INFINITY);
            // Without counts it bounds the score with the loss.
            let at_truth = if self.loss_counting().is_some() { 0.0 } else { self.truth_score(i, w)? };
            bound - at_truth
        };
        Ok((found, self.weight(i) * self.slack(h.max(bound))))
    }

    /// The hard margin's v: the largest share of its margin that a constraint lacks at w, in [0, inf]. For v < 1,
    /// `w / (1 - v)` satisfies all of them.
    pub fn worst_shortfall(&self, w: &Weights, pool: &Pool) -> Result<f64> {
        self.over_parts(pool, |i, scratch| self.shortfall(i, w, scratch), f64::max)
    }

    fn shortfall(&self, i: usize, w: &Weights, scratch: &mut OracleScratch) -> Result<f64> {
        let (examples, place) = (&self.examples, self.place(i));
        if self.weight(i) == 0.0 {
            return Ok(0.0);
        }
        if let Some(listed) = self.enumerable() {
            let OracleScratch { task, scores, .. } = scratch;
            scores.resize(listed.count(), 0.0);
            listed.scores(place, w, task, scores);
            let at = listed.truth_index(place);
            let at_truth = scores[at];
            let share = |(k, &loss): (usize, &f64)| self.lacking(at_truth - scores[k], loss);
            return Ok(listed
                .losses(place, task)
                .iter()
                .enumerate()
                .filter(|e| e.0 != at)
                .map(share)
                .fold(0.0, f64::max));
        }
        if self.formulation.rescaling == Rescaling::Slack {
            let is_counted = match self.loss_counting() {
                Some(counting) => {
                    let at_truth = self.truth_score(i, w)?;
                    let value = |loss: f64, score: f64| if loss > 0.0 { 1.0 - (at_truth - score) } else { 0.0 };
                    counting.argmax_of(place, w, &value, &mut scratch.task, &mut scratch.y)?
                }
                None => false,
            };
            if !is_counted {
                self.search_slack(i, w, 1.0, scratch)?;
            }
            let margin = self.margin(i, w, &scratch.y)?;
            return Ok(if self.is_truth(i, &scratch.y) { 0.0 } else { self.lacking(margin, 1.0).max(0.0) });
        }
        // Dinkelbach: the largest lambda <= 1 with margin >= lambda * loss for all y.
        let scale = self.formulation.loss_scale;
        let mut lambda = 1.0;
        loop {
            examples.argmax(place, w, Some(lambda * scale), &mut scratch.task, &mut scratch.trial)?;
            if self.is_truth(i, &scratch.trial) {
                return Ok(1.0 - lambda);
            }
            let loss = scale * self.loss(i, &scratch.trial);
            let margin = self.margin(i, w, &scratch.trial)?;
            if lambda * loss <= margin {
                return Ok(1.0 - lambda);
            }
            let next = if loss > 0.0 { margin / loss } else { f64::NEG_INFINITY };
            if next <= 0.0 {
                return Ok(f64::INFINITY);
            }
            if next >= lambda {
                return Ok(1.0 - lambda);
            }
            lambda = next;
        }
    }

    /// The share of its margin that one output lacks; infinite where no multiple of w can give it.
    fn lacking(&self, margin: f64, loss: f64) -> f64 {
        let loss = self.formulation.loss_scale * loss;
        match self.formulation.rescaling {
            Rescaling::Slack if loss > 0.0 => 1.0 - margin,
            Rescaling::Margin if loss > 0.0 => 1.0 - margin / loss,
            Rescaling::Margin if margin < 0.0 => f64::INFINITY,
            _ => 0.0,
        }
    }

    /// Mean loss of the predictions at w on the examples themselves.
    pub fn train_loss(&self, w: &Weights, pool: &Pool) -> Result<f64> {
        let sum = self.over_parts(
            pool,
            |i, scratch| {
                self.predict(i, w, &mut scratch.task, &mut scratch.y)?;
                Ok(self.loss(i, &scratch.y))
            },
            |a, b| a + b,
        )?;
        Ok(self.formulation.loss_scale * sum / self.len() as f64)
    }

    /// The mean loss of so many training examples.
    pub(crate) fn train_loss_of_some(&self, some: usize, w: &Weights, pool: &Pool) -> Result<f64> {
        let some = some.min(self.len());
        let losses = pool.map((0..some).map(|k| k * self.len() / some).collect(), |i: usize| {
            let (mut scratch, mut y) = (Scratch::default(), Output::default());
            self.predict(i, w, &mut scratch, &mut y)?;
            Ok(self.formulation.loss_scale * self.loss(i, &y))
        });
        // A sum of nothing wrong is 0, not -0.
        Ok((0.0 + losses.into_iter().sum::<Result<f64>>()?) / some as f64)
    }

    /// Folds a number of every example, in parts that do not depend on the number of threads.
    fn over_parts(
        &self,
        pool: &Pool,
        of: impl Fn(usize, &mut OracleScratch) -> Result<f64> + Sync + Send,
        fold: impl Fn(f64, f64) -> f64 + Sync + Send,
    ) -> Result<f64> {
        const PARTS: usize = 64;
        let parts = pool.map(ranges(self.len(), PARTS), |range| {
            let mut scratch = OracleScratch::default();
            range.map(|i| of(i, &mut scratch)).try_fold(0.0, |sum, x| Ok(fold(sum, x?)))
        });
        parts.into_iter().try_fold(0.0, |sum, x| Ok(fold(sum, x?)))
    }
}
