//! The separation oracle, and the violations of single outputs.

use super::examples::{Enumerable, Output, Scratch};
use super::{Penalty, Problem, Rescaling};
use crate::error::Result;
use crate::task::first_max;
use crate::weights::Weights;

/// What the oracle needs to work without allocating, and its answer `y`.
#[derive(Debug, Default)]
pub struct OracleScratch {
    pub(super) task: Scratch,
    pub(super) scores: Vec<f64>,
    pub(super) trial: Output,
    /// Upper bound on H, where the last call of the oracle searched with several argmaxes.
    pub(super) searched_at_most: Option<f64>,
    /// The output that the last call of the oracle found.
    pub y: Output,
}

impl Problem<'_> {
    /// Does the oracle find the true maximum for example i?
    pub(super) fn is_exact(&self, i: usize) -> bool {
        self.enumerable().is_some() || self.is_exact_at(self.place(i))
    }

    /// Does the oracle find the true maximum for the example of this number among all examples? For outputs that cannot be
    /// listed.
    pub(super) fn is_exact_at(&self, place: usize) -> bool {
        match self.loss_counting() {
            Some(counting) => counting.is_exact(place),
            None => self.loss_adds_up() && self.examples.argmax_is_exact(place),
        }
    }

    /// `H` of all listed outputs of example i, the truth's being 0.
    ///
    /// # Panics
    /// If the task does not list its outputs.
    pub fn violations(&self, i: usize, w: &Weights, scratch: &mut OracleScratch, values: &mut [f64]) {
        let listed = self.enumerable().expect("a task that lists its outputs");
        listed.scores(self.place(i), w, &mut scratch.task, values);
        self.turn_into_violations(i, listed, &mut scratch.task, values);
    }

    /// From the scores of all outputs of example i to their `H`.
    fn turn_into_violations(&self, i: usize, listed: &dyn Enumerable, scratch: &mut Scratch, values: &mut [f64]) {
        let at = listed.truth_index(self.place(i));
        let at_truth = values[at];
        let losses = listed.losses(self.place(i), scratch);
        // One loop for each rescaling: the hot one is two additions an output.
        match (self.formulation.rescaling, self.formulation.penalty) {
            (Rescaling::Margin, Penalty::Linear | Penalty::Hard) => {
                let scale = self.formulation.loss_scale;
                for (value, &loss) in values.iter_mut().zip(losses) {
                    *value = scale * loss - (at_truth - *value);
                }
            }
            _ => {
                for (value, &loss) in values.iter_mut().zip(losses) {
                    *value = self.term(loss).violation(at_truth - *value);
                }
            }
        }
        values[at] = 0.0;
    }

    /// The separation oracle: `argmax_y H` of example i, left in `scratch.y`; returns H, zero for the truth.
    pub fn oracle(&self, i: usize, w: &Weights, scratch: &mut OracleScratch) -> Result<f64> {
        self.oracle_at(i, w, 1.0, scratch)
    }

    /// The same at the point `scale * w`, with scale > 0, which need not be computed.
    pub fn oracle_at(&self, i: usize, w: &Weights, scale: f64, scratch: &mut OracleScratch) -> Result<f64> {
        scratch.searched_at_most = None;
        let value = if let Some(listed) = self.enumerable() {
            let scores = &mut scratch.scores;
            scores.resize(listed.count(), 0.0);
            listed.scores(self.place(i), w, &mut scratch.task, scores);
            if scale != 1.0 {
                for score in scores.iter_mut() {
                    *score *= scale;
                }
            }
            self.turn_into_violations(i, listed, &mut scratch.task, scores);
            let best = first_max(scores);
            listed.copy_output(best, &mut scratch.y);
            scores[best]
        } else if self.is_counted(i, w, scale, scratch)? {
            self.violation_at(i, w, scale, &scratch.y)?
        } else if self.formulation.rescaling == Rescaling::Margin {
            let lambda = self.formulation.loss_scale / scale;
            self.examples.argmax(self.place(i), w, Some(lambda), &mut scratch.task, &mut scratch.y)?;
            self.violation_at(i, w, scale, &scratch.y)?
        } else {
            self.search_slack(i, w, scale, scratch)?
        };
        if value > 0.0 {
            return Ok(value);
        }
        self.examples.copy_truth(self.place(i), &mut scratch.y);
        Ok(0.0)
    }

    /// `H` of the output y of example i.
    pub fn violation(&self, i: usize, w: &Weights, y: &Output) -> Result<f64> {
        self.violation_at(i, w, 1.0, y)
    }

    /// The same at the point `scale * w`.
    pub fn violation_at(&self, i: usize, w: &Weights, scale: f64, y: &Output) -> Result<f64> {
        if self.is_truth(i, y) {
            return Ok(0.0);
        }
        let margin = scale * self.margin(i, w, y)?;
        Ok(self.term(self.loss(i, y)).violation(margin))
    }

    /// `H` of some outputs of example i.
    pub fn violations_of(
        &self,
        i: usize,
        w: &Weights,
        outputs: &[Output],
        scratch: &mut OracleScratch,
        values: &mut [f64],
    ) -> Result<()> {
        if let Some(listed) = self.enumerable() {
            let OracleScratch { task, scores, .. } = scratch;
            scores.resize(listed.count(), 0.0);
            listed.scores(self.place(i), w, task, scores);
            self.turn_into_violations(i, listed, task, scores);
            for (value, y) in values.iter_mut().zip(outputs) {
                *value = scratch.scores[listed.index(y)];
            }
            return Ok(());
        }
        for (value, y) in values.iter_mut().zip(outputs) {
            let margin = self.margin(i, w, y)?;
            *value = self.term(self.loss(i, y)).violation(margin);
        }
        Ok(())
    }

    /// The argmax of H over counts of errors. Returns false where the formulation does not need it, or the task cannot do it
    /// for this input.
    fn is_counted(&self, i: usize, w: &Weights, scale: f64, scratch: &mut OracleScratch) -> Result<bool> {
        let Some(counting) = self.loss_counting() else { return Ok(false) };
        let at_truth = self.truth_score(i, w)?;
        let value = |loss: f64, score: f64| self.term(loss).violation(scale * (at_truth - score));
        counting.argmax_of(self.place(i), w, &value, &mut scratch.task, &mut scratch.y)
    }

    /// Slack rescaling by search: the best product `loss * (1 - margin)` on the convex hull of (margin, loss) is an argmax
    /// of `score + lambda * loss` for lambda = (1 - margin) / loss at the best point (half of that where the root of the
    /// loss counts). Finds points of the hull only, so what it returns is a lower bound of H.
    ///
    /// Each argmax also gives an upper bound of H: with `1 - margin + lambda * loss <= m` for all outputs, the product is
    /// largest where both terms are `m / 2`, and `H <= m^2 / (4 lambda)`. Where the root of the loss counts,
    /// `lambda * loss = m / 3` and `H <= 2/3 m sqrt(m / (3 lambda))`.
    pub(super) fn search_slack(&self, i: usize, w: &Weights, scale: f64, scratch: &mut OracleScratch) -> Result<f64> {
        const TRIES: usize = 25;
        let (examples, place) = (&self.examples, self.place(i));
        let at_truth = self.truth_score(i, w)?;
        let is_root = self.formulation.penalty == Penalty::Quadratic;
        let power = if is_root { 0.5 } else { 1.0 };
        let is_exact = examples.argmax_is_exact(place);
        examples.copy_truth(place, &mut scratch.y);
        // Below `low` the truth wins, above `high` nothing is violated.
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let (mut best, mut at_most, mut lambda) = (0.0, f64::INFINITY, 1.0);
        for _ in 0..TRIES {
            examples.argmax(place, w, Some(lambda / scale), &mut scratch.task, &mut scratch.trial)?;
            let loss = examples.loss(place, &scratch.trial);
            let score = examples.score(place, w, &scratch.trial)?;
            let rest = 1.0 - scale * (at_truth - score);
            let most = if is_exact { Some(score + lambda / scale * loss) } else { examples.upper_bound(&scratch.task) };
            if let Some(most) = most {
                // The truth alone has 1: m is not negative.
                let m = (1.0 - scale * (at_truth - most)).max(1.0);
                let (loss, rest) =
                    if is_root { (m / (3.0 * lambda), 2.0 / 3.0 * m) } else { (0.5 * m / lambda, 0.5 * m) };
                at_most = at_most.min(self.term(loss).violation(1.0 - rest));
            }
            let mut next = f64::NAN;
            if loss == 0.0 {
                low = lambda;
            } else if rest <= 0.0 {
                high = lambda;
            } else {
                let value = self.term(loss).violation(1.0 - rest);
                if value > best {
                    best = value;
                    scratch.y.clone_from(&scratch.trial);
                }
                next = power * rest / loss;
            }
            if !(next > low && next < high) {
                next = if high.is_finite() { 0.5 * (low + high) } else { 4.0 * low.max(lambda) };
            }
            if (next - lambda).abs() <= 1e-12 * lambda {
                break;
            }
            lambda = next;
        }
        scratch.searched_at_most = Some(at_most);
        Ok(best)
    }
}
