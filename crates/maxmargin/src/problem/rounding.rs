//! How far the rounding of f64 may move the value of P.

use super::{Formulation, Penalty, Problem, Rescaling};
use crate::error::Result;
use crate::features::{Block, Sink};
use crate::kernel::Metric;
use crate::sparse::SparseView;
use crate::weights::Weights;

/// Relative error of a short sum or product: some units in the last place.
const UNITS: f64 = 8.0 * f64::EPSILON;

/// Means over the examples that say how large the terms of their constraints are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Mean of `c_i` times the largest right side of example i.
    loss: f64,
    /// Mean of `c_i` times a bound of `|factor * dpsi_i(y)|`, for every y: the terms do not cancel in it.
    pub(crate) reach: f64,
    /// Mean number of feature values of an example.
    terms: f64,
    examples: f64,
    /// With a kernel: bound of the error of a value, as a share of `sqrt(K(a, a) K(b, b))`.
    kernel_error: f64,
    formulation: Formulation,
}

/// What [`Sizes`] are made of, but for C: sums over the examples.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    loss: f64,
    reach: f64,
    terms: f64,
}

/// Adds up the lengths of the parts that a task emits.
struct Lengths<'m> {
    metric: Option<Metric<'m>>,
    length: f64,
    terms: usize,
}

impl Sink for Lengths<'_> {
    fn part(&mut self, block: Block, _slot: u32, phi: SparseView<'_>, scale: f64) {
        let length = match self.metric.filter(|metric| metric.block() == block) {
            // The inputs are numbers of atoms.
            Some(metric) => {
                let of_atom = |(atom, x): (u32, f32)| f64::from(x).abs() * metric.gram().diagonal(atom).abs().sqrt();
                phi.iter().map(of_atom).sum()
            }
            None => phi.norm2().sqrt(),
        };
        self.length += scale.abs() * length;
        self.terms += phi.len();
    }

    fn vector(&mut self, _block: Block, vector: &[f64], scale: f64) {
        self.length += scale.abs() * vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        self.terms += vector.len();
    }
}

impl Sizes {
    /// Bounds the rounding error of P(w), where `length` is at least `|w|` and bounds the terms of w's scores.
    pub(crate) fn error_of_primal(&self, primal: f64, length: f64) -> f64 {
        let Formulation { c, penalty, .. } = self.formulation;
        // Errors of long sums grow like a random walk (Higham and Mary 2019).
        let of_sums = UNITS * (1.0 + (self.examples / 64.0).sqrt()) * primal;
        let of_product = UNITS * (1.0 + self.terms.sqrt()) + self.kernel_error;
        let of_slack = UNITS * self.loss + of_product * length * self.reach;
        let of_norm = (UNITS + self.kernel_error) * 0.5 * length * length;
        of_sums
            + of_norm
            + match penalty {
                Penalty::Linear => c * of_slack,
                // d(H^2 / 2) = H dH, and C mean(H^2) <= 2 P.
                Penalty::Quadratic => (2.0 * primal.max(0.0) * c).sqrt() * of_slack + c * of_slack * of_slack,
                // w is stretched until the worst constraint holds.
                Penalty::Hard => 2.0 * primal * of_slack / self.loss.max(f64::MIN_POSITIVE),
            }
    }

    /// Bounds the rounding error of `D = linear - 1/2 |w|^2` with `w = sum a lhs`, where `mass` is at least
    /// `sum a |lhs|`, nothing cancelled.
    pub(crate) fn error_of_dual(&self, linear: f64, length: f64, mass: f64) -> f64 {
        let of_sums = UNITS * (1.0 + (self.examples / 64.0).sqrt());
        of_sums * (linear.abs() + length * mass) + self.kernel_error * 0.5 * length * mass
    }

    /// Bounds `sum a |lhs|` over all dual variables, where only `linear = sum a rhs` is known of them.
    pub(crate) fn mass(&self, linear: f64) -> f64 {
        /// The losses of the outputs with weight may be below the largest ones.
        const SMALLER: f64 = 4.0;
        let Formulation { c, penalty, .. } = self.formulation;
        let by_linear = SMALLER * linear.abs() / self.loss.max(f64::MIN_POSITIVE) * self.reach;
        match penalty {
            Penalty::Linear => by_linear.min(c * self.reach),
            Penalty::Quadratic | Penalty::Hard => by_linear,
        }
    }
}

impl Problem<'_> {
    /// How large the terms are of which P and D are made.
    pub(crate) fn sizes(&self) -> Result<Sizes> {
        let Sums { loss, reach, terms } = if let Some(sums) = self.sums.get() {
            *sums
        } else {
            let sums = self.sums()?;
            *self.sums.get_or_init(|| sums)
        };
        let n = self.len() as f64;
        let kernel_error = self.metric.map_or(0.0, |metric| metric.gram().reported_error());
        let formulation = self.formulation;
        Ok(Sizes { loss: loss / n, reach: reach / n, terms: terms / n, examples: n, kernel_error, formulation })
    }

    /// Sums over all examples: a few may be larger than all others.
    fn sums(&self) -> Result<Sums> {
        let mut sums = Sums { loss: 0.0, reach: 0.0, terms: 0.0 };
        for i in 0..self.len() {
            let rhs = self.term(self.max_loss_of(i)).rhs;
            let mut lengths = Lengths { metric: self.metric, length: 0.0, terms: 0 };
            self.add_truth(i, &mut lengths)?;
            // The truth and another output, whose parts are the same inputs in other slots.
            let factor = if self.formulation.rescaling == Rescaling::Slack { rhs } else { 1.0 };
            sums.loss += self.weight(i) * rhs;
            sums.reach += self.weight(i) * factor * 2.0 * lengths.length;
            sums.terms += lengths.terms as f64;
        }
        Ok(sums)
    }

    /// A bound of the lengths of w and of the terms of its scores: `|w|`, with a kernel the sum of the lengths of its terms.
    pub(crate) fn length(&self, w: &Weights) -> f64 {
        match self.metric {
            None => w.norm2().sqrt(),
            Some(metric) => length_of(metric, w.coefficients()),
        }
    }
}

/// A bound of the length of the vector with these coefficients, and of the terms of its scores.
pub(crate) fn length_of(metric: Metric<'_>, coefficients: &[f64]) -> f64 {
    let inside = metric.coordinates();
    let rest = coefficients[..inside.start].iter().chain(&coefficients[inside.end..]);
    metric.mass(coefficients) + rest.map(|x| x * x).sum::<f64>().sqrt()
}
