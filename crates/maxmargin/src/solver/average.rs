//! The weighted mean of the points that a run goes through, at the price of a second sparse addition a step.
//!
//! ```text
//! points s_t v_t,  v_t = delta_1 + ... + delta_t,  weights p_t,  A_t = p_1 s_1 + ... + p_t s_t
//! sum_t p_t s_t v_t  =  sum_k (A_T - A_{k-1}) delta_k  =  A_T v_T - sum_k A_{k-1} delta_k
//! ```
//!
//! The last sum is what is kept beside v. s_t is the scale of a v that stands for w up to a factor, else 1. Where v is a
//! combination of vectors that are at hand, the same holds of its coefficients, and a number for each takes the place of a
//! second vector ([`Shares`]).

use serde::{Deserialize, Serialize};

use super::state::is_sound;
use crate::features::{Block, Sink};
use crate::sparse::SparseView;
use crate::weights::Weights;

/// Below this offsets are scaled indeed, long before their numbers are too large.
const LEAST_SCALE: f64 = 1e-100;

/// Can this be an offset, which is kept over a scale? Asked of one that was read from a file.
pub(super) fn is_sound_offset(offset: f64) -> bool {
    is_sound(LEAST_SCALE * offset)
}

/// What the points so far count for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Shares {
    /// Offsets, `sum_k A_{k-1} delta_k`, are kept over this: what counts for less is not touched.
    scale: f64,
    /// `A_t`
    mass: f64,
    /// `p_1 + ... + p_t`
    total: f64,
}

impl Default for Shares {
    fn default() -> Self {
        Self { scale: 1.0, mass: 0.0, total: 0.0 }
    }
}

impl Shares {
    /// What a step adds to an offset, for each unit.
    pub(super) fn of_step(&self) -> f64 {
        self.mass / self.scale
    }

    /// Counts the point `scale * v` with this weight.
    pub(super) fn count(&mut self, weight: f64, scale: f64) {
        self.mass += weight * scale;
        self.total += weight;
    }

    /// Lets the points so far count for `share` of what they did. Where a factor is returned, offsets are to be multiplied
    /// by it.
    pub(super) fn discount(&mut self, share: f64) -> Option<f64> {
        self.scale *= share;
        self.mass *= share;
        self.total *= share;
        (self.scale < LEAST_SCALE).then(|| std::mem::replace(&mut self.scale, 1.0))
    }

    /// No point yet?
    pub(super) fn is_empty(&self) -> bool {
        self.total == 0.0
    }

    /// The mean of a number that is `v` now; v itself before any point was counted.
    pub(super) fn mean(&self, v: f64, offset: f64) -> f64 {
        if self.is_empty() { v } else { 1.0 / self.total * (self.mass * v - self.scale * offset) }
    }

    /// Asked of one that was read from a file.
    pub(super) fn is_sound(&self) -> bool {
        (LEAST_SCALE..=1.0).contains(&self.scale) && is_sound(self.mass) && is_sound(self.total)
    }
}

/// The mean of points that are vectors.
#[derive(Serialize, Deserialize)]
pub(super) struct Average {
    /// `sum_k A_{k-1} delta_k`
    offset: Weights,
    shares: Shares,
}

impl Average {
    pub(super) fn new(d: usize) -> Self {
        Self::of(Weights::zeros(d))
    }

    /// Of points in the form of these zeros.
    pub(super) fn of(zeros: Weights) -> Self {
        Self { offset: zeros, shares: Shares::default() }
    }

    /// Forgets the points so far. v stays what it is.
    pub(super) fn clear(&mut self) {
        self.offset.scale(0.0);
        self.shares = Shares::default();
    }

    /// Lets the points so far count for `share` of what they did.
    pub(super) fn discount(&mut self, share: f64) {
        if let Some(factor) = self.shares.discount(share) {
            self.offset.scale(factor);
        }
    }

    /// Can this be the mean of points of `d` coordinates? Asked of one that was read from a file.
    pub(super) fn is_of(&self, d: usize) -> bool {
        self.offset.as_slice().len() == d && self.offset.len() == d && self.is_sound()
    }

    /// The same of points like v.
    pub(super) fn is_like(&self, v: &Weights) -> bool {
        self.offset.is_like(v) && self.is_sound()
    }

    fn is_sound(&self) -> bool {
        self.shares.is_sound() && self.offset.all(is_sound_offset)
    }

    /// Where the parts of a step of v go.
    pub(super) fn step<'a>(&'a mut self, v: &'a mut Weights) -> Step<'a> {
        Step { v: v.as_mut_slice(), offset: self.offset.as_mut_slice(), mass: self.shares.of_step() }
    }

    /// Takes note of a step of v by `change * phi` in a slot.
    #[inline]
    pub(super) fn stepped(&mut self, block: Block, slot: u32, phi: SparseView<'_>, change: f64) {
        self.offset.add(block, slot, phi, self.shares.of_step() * change);
    }

    /// Asks for what such a step will change.
    #[inline]
    pub(super) fn ask_for(&self, block: Block, slot: u32, phi: SparseView<'_>) {
        self.offset.ask_for(block, slot, phi);
    }

    /// Counts the point `scale * v` with this weight.
    pub(super) fn count(&mut self, weight: f64, scale: f64) {
        self.shares.count(weight, scale);
    }

    /// The mean so far; v itself before any point was counted.
    pub(super) fn mean(&self, v: &Weights) -> Weights {
        let mut mean = v.clone();
        if !self.shares.is_empty() {
            mean.combine(&self.offset, |v, offset| self.shares.mean(v, offset));
        }
        mean
    }
}

/// Adds parts to v, and what the mean has to remember of them.
pub(super) struct Step<'a> {
    v: &'a mut [f64],
    offset: &'a mut [f64],
    /// Over the scale of the offset.
    mass: f64,
}

impl Sink for Step<'_> {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        for (j, x) in phi.iter() {
            let (at, change) = (block.at(j, slot), scale * f64::from(x));
            self.v[at] += change;
            self.offset[at] += self.mass * change;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Points before a discount count for less, however often there is one.
    #[test]
    fn discounts() {
        let (block, d) = (Block { base: 0, rows: 3, width: 1 }, 3);
        let (mut v, mut average) = (Weights::zeros(d), Average::new(d));
        let (mut dense, mut total) = (vec![0.0; d], 0.0);
        let mut random = Random::new(3);
        average.discount(0.3);
        for t in 0..600 {
            let j = random.below(d) as u32;
            average.step(&mut v).part(block, 0, SparseView::new(&[j], &[1.0]), random.unit() - 0.4);
            average.count(1.0 + random.unit(), 1.0);
            let weight = average.shares.total - total;
            total = average.shares.total;
            dense.iter_mut().zip(v.as_slice()).for_each(|(sum, v)| *sum += weight * v);
            for (lazy, dense) in average.mean(&v).as_slice().iter().zip(&dense) {
                assert!((lazy - dense / total).abs() <= 1e-9, "{t}: {lazy} {}", dense / total);
            }
            assert!(average.is_of(d), "what is saved after {t} steps would be refused");
            if t % 2 == 0 {
                average.discount(0.3);
                total *= 0.3;
                for sum in &mut dense {
                    *sum *= 0.3;
                }
            }
        }
        assert!(average.shares.scale > LEAST_SCALE && average.is_of(d));
    }

    #[test]
    fn lazily_as_densely() {
        let block = Block { base: 1, rows: 4, width: 3 };
        let d = 13;
        let mut random = Random::new(7);
        for scaled in [false, true] {
            let (mut v, mut average) = (Weights::zeros(d), Average::new(d));
            let (mut dense, mut total) = (vec![0.0; d], 0.0);
            assert_eq!(average.mean(&v), Weights::zeros(d));
            for t in 1..200 {
                let t = f64::from(t);
                let phi = [random.unit() as f32, -random.unit() as f32];
                if random.unit() < 0.7 {
                    let slot = (3.0 * random.unit()) as u32;
                    average.step(&mut v).part(block, slot, SparseView::new(&[0, 3], &phi), random.unit() - 0.3);
                }
                let scale = if scaled { 10.0 / t } else { 1.0 };
                average.count(t, scale);
                total += t;
                dense.iter_mut().zip(v.as_slice()).for_each(|(sum, v)| *sum += t * scale * v);
            }
            for (lazy, dense) in average.mean(&v).as_slice().iter().zip(dense) {
                assert!((lazy - dense / total).abs() <= 1e-12, "{lazy} {}", dense / total);
            }
        }
    }
}
