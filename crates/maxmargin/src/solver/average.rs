//! The weighted mean of the points that a run goes through, at the price of a second sparse addition a step.
//!
//! ```text
//! points s_t v_t,  v_t = delta_1 + ... + delta_t,  weights p_t,  A_t = p_1 s_1 + ... + p_t s_t
//! sum_t p_t s_t v_t  =  sum_k (A_T - A_{k-1}) delta_k  =  A_T v_T - sum_k A_{k-1} delta_k
//! ```
//!
//! The last sum is what is kept beside v. s_t is the scale of a v that stands for w up to a factor, else 1.

use serde::{Deserialize, Serialize};

use super::state::is_sound;
use crate::features::{Block, Sink};
use crate::memory::zeros;
use crate::sparse::SparseView;
use crate::weights::Weights;

/// What the mean needs to remember.
#[derive(Serialize, Deserialize)]
pub(super) struct Average {
    /// `sum_k A_{k-1} delta_k`
    offset: Vec<f64>,
    /// `A_t`
    mass: f64,
    /// `p_1 + ... + p_t`
    total: f64,
}

impl Average {
    pub(super) fn new(d: usize) -> Self {
        Self { offset: zeros(d), mass: 0.0, total: 0.0 }
    }

    /// Forgets the points so far. v stays what it is.
    pub(super) fn clear(&mut self) {
        self.offset.fill(0.0);
        (self.mass, self.total) = (0.0, 0.0);
    }

    /// Lets the points so far count for `share` of what they did.
    pub(super) fn discount(&mut self, share: f64) {
        self.offset.iter_mut().for_each(|x| *x *= share);
        self.mass *= share;
        self.total *= share;
    }

    /// Can this be the mean of points of `d` coordinates? Asked of one that was read from a file.
    pub(super) fn is_of(&self, d: usize) -> bool {
        self.offset.len() == d && self.offset.iter().chain([&self.mass, &self.total]).all(|&x| is_sound(x))
    }

    /// No point yet?
    pub(super) fn is_empty(&self) -> bool {
        self.total == 0.0
    }

    /// Where the parts of a step of v go.
    pub(super) fn step<'a>(&'a mut self, v: &'a mut Weights) -> Step<'a> {
        Step { v: v.as_mut_slice(), offset: &mut self.offset, mass: self.mass }
    }

    /// Takes note of a step of one coordinate of v.
    #[inline]
    pub(super) fn stepped(&mut self, at: usize, change: f64) {
        self.offset[at] += self.mass * change;
    }

    /// Counts the point `scale * v` with this weight.
    pub(super) fn count(&mut self, weight: f64, scale: f64) {
        self.mass += weight * scale;
        self.total += weight;
    }

    /// The mean so far; v itself before any point was counted.
    pub(super) fn mean(&self, v: &Weights) -> Weights {
        if self.is_empty() {
            return v.clone();
        }
        let share = 1.0 / self.total;
        v.as_slice().iter().zip(&self.offset).map(|(v, offset)| share * (self.mass * v - offset)).collect()
    }
}

/// Adds parts to v, and what the mean has to remember of them.
pub(super) struct Step<'a> {
    v: &'a mut [f64],
    offset: &'a mut [f64],
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
