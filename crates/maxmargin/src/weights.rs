//! The weight vector w, and the scores that it gives.

use crate::features::Block;
use crate::memory::{room, zeros};
use crate::sparse::{SparseView, dot};

/// The weights of a model, laid out by the task's blocks.
///
/// With a kernel, w is a sum of atoms' feature maps that are never written down. What stands in the place of its coordinates
/// is its inner product with each atom in each slot, which is the score of an input that is that atom; beside it stand
/// the coefficients of the sum.
#[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Weights {
    dense: Vec<f64>,
    /// None: the same as the coordinates.
    coefficients: Option<Vec<f64>>,
}

impl Clone for Weights {
    fn clone(&self) -> Self {
        let copy = |numbers: &Vec<f64>| {
            let mut copy = room(numbers.len());
            copy.extend(numbers);
            copy
        };
        Self { dense: copy(&self.dense), coefficients: self.coefficients.as_ref().map(copy) }
    }

    fn clone_from(&mut self, other: &Self) {
        self.dense.clone_from(&other.dense);
        self.coefficients.clone_from(&other.coefficients);
    }
}

impl FromIterator<f64> for Weights {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Self {
        let numbers = numbers.into_iter();
        let mut dense = room(numbers.size_hint().0);
        dense.extend(numbers);
        Self::from(dense)
    }
}

impl From<Vec<f64>> for Weights {
    fn from(dense: Vec<f64>) -> Self {
        Self { dense, coefficients: None }
    }
}

impl From<Weights> for Vec<f64> {
    fn from(weights: Weights) -> Self {
        weights.dense
    }
}

impl Weights {
    /// `d` zeros.
    pub fn zeros(d: usize) -> Self {
        Self { dense: zeros(d), coefficients: None }
    }

    /// `d` zeros, and as many coefficients.
    pub fn zeros_with_coefficients(d: usize) -> Self {
        Self { dense: zeros(d), coefficients: Some(zeros(d)) }
    }

    /// The coefficients of the atoms; without a kernel the coordinates themselves.
    pub fn coefficients(&self) -> &[f64] {
        self.coefficients.as_deref().unwrap_or(&self.dense)
    }

    /// Are there coefficients beside the coordinates?
    pub fn has_coefficients(&self) -> bool {
        self.coefficients.is_some()
    }

    /// Coordinates and, where there are any, coefficients, to be changed together.
    pub fn both_mut(&mut self) -> (&mut [f64], Option<&mut [f64]>) {
        (&mut self.dense, self.coefficients.as_deref_mut())
    }

    /// `|w|^2`
    pub fn norm2(&self) -> f64 {
        dot(&self.dense, self.coefficients())
    }

    /// `w += t (other - w)`
    pub fn move_towards(&mut self, other: &Self, t: f64) {
        if t == 1.0 {
            // Exactly the other, whatever the rounding.
            self.clone_from(other);
            return;
        }
        let go = |from: &mut [f64], to: &[f64]| from.iter_mut().zip(to).for_each(|(w, &to)| *w += t * (to - *w));
        go(&mut self.dense, &other.dense);
        if let Some(coefficients) = &mut self.coefficients {
            go(coefficients, other.coefficients());
        }
    }

    /// `w *= factor`
    pub fn scale(&mut self, factor: f64) {
        self.dense.iter_mut().chain(self.coefficients.iter_mut().flatten()).for_each(|w| *w *= factor);
    }

    /// The coordinates.
    pub fn as_slice(&self) -> &[f64] {
        &self.dense
    }

    /// The coordinates, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.dense
    }

    /// Number of coordinates.
    pub fn len(&self) -> usize {
        self.dense.len()
    }

    /// No coordinate?
    pub fn is_empty(&self) -> bool {
        self.dense.is_empty()
    }

    /// `<w, phi in slot k of the block>` for all slots k at once: `scores` has the block's width.
    #[inline]
    pub fn scores(&self, block: Block, phi: SparseView<'_>, scores: &mut [f64]) {
        let w = &self.dense[block.base as usize..(block.base + block.len()) as usize];
        debug_assert_eq!(scores.len(), block.width as usize);
        // Narrow blocks keep their sums in registers: about three times as fast on seven classes.
        macro_rules! by_width {
            ($($k:literal)*) => {
                match scores.len() {
                    1 => scores[0] = phi.dot(w),
                    $($k => narrow::<$k>(w, phi, scores),)*
                    width if width >= LONG => long(w, phi, scores),
                    _ => wide(w, phi, scores),
                }
            };
        }
        by_width!(2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28);
    }
}

#[inline]
fn narrow<const K: usize>(w: &[f64], phi: SparseView<'_>, scores: &mut [f64]) {
    let (rows, _) = w.as_chunks::<K>();
    let mut sums = [0.0; K];
    for (j, v) in phi.iter() {
        let (v, row) = (f64::from(v), &rows[j as usize]);
        for k in 0..K {
            sums[k] += v * row[k];
        }
    }
    scores.copy_from_slice(&sums);
}

/// From so many slots on, rows are read in long pieces.
const LONG: usize = 256;

/// Piece by piece of each entry's row, their sums near: rows so long lie far apart, and a few slots of each in turn would wait for
/// memory at every step. The same bits as slot by slot.
fn long(w: &[f64], phi: SparseView<'_>, scores: &mut [f64]) {
    /// 8 kB of sums.
    const PIECE: usize = 1024;
    let width = scores.len();
    for (piece, sums) in scores.chunks_mut(PIECE).enumerate() {
        sums.fill(0.0);
        for (j, v) in phi.iter() {
            let v = f64::from(v);
            let row = &w[j as usize * width + piece * PIECE..][..sums.len()];
            for (sum, w) in sums.iter_mut().zip(row) {
                *sum += v * w;
            }
        }
    }
}

/// Some slots at a time, their sums in registers, over all entries of phi.
fn wide(w: &[f64], phi: SparseView<'_>, scores: &mut [f64]) {
    const TILE: usize = 8;
    let width = scores.len();
    let (tiles, rest) = scores.as_chunks_mut::<TILE>();
    for (tile, scores) in tiles.iter_mut().enumerate() {
        let mut sums = [0.0; TILE];
        for (j, v) in phi.iter() {
            let row: &[f64; TILE] = w[j as usize * width + tile * TILE..].first_chunk().expect("a tile of the row");
            let v = f64::from(v);
            for k in 0..TILE {
                sums[k] += v * row[k];
            }
        }
        *scores = sums;
    }
    rest.fill(0.0);
    let start = width - rest.len();
    for (j, v) in phi.iter() {
        let v = f64::from(v);
        let row = &w[j as usize * width + start..][..rest.len()];
        for (s, w) in rest.iter_mut().zip(row) {
            *s += v * w;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::{Score, Sink};

    #[test]
    fn scores_of_all_slots_equal_those_of_each() {
        let phi = SparseView::new(&[0, 2, 4], &[0.5, -1.0, 3.0]);
        for width in (1..=40).chain([255, 256, 257, 1024, 1025, 2500]) {
            let block = Block { base: 3, rows: 5, width };
            let w: Vec<f64> = (0..3 + block.len()).map(|i| (i as f64 * 0.7).sin()).collect();
            let w = Weights::from(w);
            let mut scores = vec![f64::NAN; width as usize];
            w.scores(block, phi, &mut scores);
            for k in 0..width {
                let mut one = Score { w: w.as_slice(), total: 0.0 };
                one.part(block, k, phi, 1.0);
                assert!((scores[k as usize] - one.total).abs() < 1e-12);
            }
        }
    }
}
