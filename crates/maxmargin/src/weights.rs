//! The weight vector w, and the scores that it gives.

use crate::features::{Block, Sink};
use crate::memory::{prefetch, room, zeros};
use crate::sparse::{SparseView, dot};

mod kept;
mod short_rows;

pub(crate) use kept::Kept;
pub use short_rows::{RowView, ShortRows};

/// The weights of a model, laid out by the task's blocks.
///
/// With a kernel, w is a sum of atoms' feature maps that are never written down. What stands in the place of its coordinates
/// is its inner product with each atom in each slot, which is the score of an input that is that atom; beside it stand
/// the coefficients of the sum.
///
/// The last block may be kept in [`ShortRows`], where only few of its weights are in use.
#[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Weights {
    dense: Vec<f64>,
    /// None: the same as the coordinates.
    coefficients: Option<Vec<f64>>,
    /// Of the last block, whose coordinates are not in `dense` then.
    short: Option<ShortRows>,
}

impl Clone for Weights {
    fn clone(&self) -> Self {
        let copy = |numbers: &Vec<f64>| {
            let mut copy = room(numbers.len());
            copy.extend(numbers);
            copy
        };
        let coefficients = self.coefficients.as_ref().map(copy);
        Self { dense: copy(&self.dense), coefficients, short: self.short.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        self.dense.clone_from(&other.dense);
        self.coefficients.clone_from(&other.coefficients);
        self.short.clone_from(&other.short);
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
        Self { dense, coefficients: None, short: None }
    }
}

impl From<Weights> for Vec<f64> {
    fn from(weights: Weights) -> Self {
        let mut dense = weights.dense;
        if let Some(short) = weights.short {
            let Block { base, rows, .. } = short.block();
            dense.resize((base + short.block().len()) as usize, 0.0);
            for j in 0..rows {
                short.row(j).iter().for_each(|(slot, w)| dense[short.block().at(j, slot)] = w);
            }
        }
        dense
    }
}

impl Weights {
    /// `d` zeros.
    pub fn zeros(d: usize) -> Self {
        Self { dense: zeros(d), coefficients: None, short: None }
    }

    /// Zeros, those of the last block in short rows.
    pub fn zeros_with_short_rows(last: Block) -> Self {
        Self { short: Some(ShortRows::new(last)), ..Self::zeros(last.base as usize) }
    }

    /// `d` zeros, and as many coefficients.
    pub fn zeros_with_coefficients(d: usize) -> Self {
        Self { coefficients: Some(zeros(d)), ..Self::zeros(d) }
    }

    /// The last block, where it is kept in short rows.
    pub fn short_rows(&self) -> Option<&ShortRows> {
        self.short.as_ref()
    }

    /// The coefficients of the atoms; without a kernel the coordinates that [`as_slice`](Self::as_slice) has.
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
        let of_rows: f64 = self.short.iter().flat_map(ShortRows::values).map(|w| w * w).sum();
        dot(&self.dense, self.coefficients()) + of_rows
    }

    /// Are all numbers, coefficients among them, as they should be?
    pub fn all(&self, is_fine: impl Fn(f64) -> bool) -> bool {
        let numbers = self.dense.iter().chain(self.coefficients.iter().flatten()).copied();
        numbers.chain(self.short.iter().flat_map(ShortRows::values)).all(is_fine)
    }

    /// `<w, phi in a slot of the block>`
    #[inline]
    pub fn score(&self, block: Block, slot: u32, phi: SparseView<'_>) -> f64 {
        if let Some(short) = self.rows_of(block) {
            return phi.iter().map(|(j, x)| f64::from(x) * short.get(j, slot)).sum();
        }
        if phi.is_empty() {
            return 0.0; // where no example has a feature, the block has no coordinates to slice
        }
        let width = block.width as usize;
        let w = &self.dense[block.base as usize + slot as usize..];
        phi.iter().map(|(j, x)| f64::from(x) * w[j as usize * width]).sum()
    }

    /// `w += change * phi` in a slot of the block. Returns by how much `|w|^2` grows; not for a kernel.
    pub fn add(&mut self, block: Block, slot: u32, phi: SparseView<'_>, change: f64) -> f64 {
        debug_assert!(self.coefficients.is_none(), "coordinates and coefficients change together");
        let mut growth = 0.0;
        let mut step = |w: &mut f64, x: f32| {
            let old = *w;
            *w = old + change * f64::from(x);
            growth += (*w - old) * (*w + old);
        };
        match self.short.as_mut().filter(|short| short.block() == block) {
            Some(short) => {
                short.ask_for(phi);
                phi.iter().for_each(|(j, x)| step(short.get_mut(j, slot), x));
            }
            None => phi.iter().for_each(|(j, x)| step(&mut self.dense[block.at(j, slot)], x)),
        }
        growth
    }

    /// Asks for the coordinates of phi in a slot of the block that will be read soon; not in short rows.
    #[inline]
    pub(crate) fn ask_for(&self, block: Block, slot: u32, phi: SparseView<'_>) {
        debug_assert!(self.rows_of(block).is_none(), "a row asks for itself");
        phi.indices().iter().for_each(|&j| prefetch(&self.dense[block.at(j, slot)]));
    }

    #[inline]
    fn rows_of(&self, block: Block) -> Option<&ShortRows> {
        self.short.as_ref().filter(|short| short.block() == block)
    }

    /// Makes each coordinate a function of itself and of the same of `other`, which has the same form.
    pub fn combine(&mut self, other: &Self, with: impl Fn(f64, f64) -> f64) {
        self.dense.iter_mut().zip(&other.dense).for_each(|(own, &other)| *own = with(*own, other));
        if let Some((own, other)) = self.short.as_mut().zip(other.short.as_ref()) {
            own.combine(other, with);
        }
    }

    /// Zeros in the form of these weights.
    #[must_use]
    pub fn zeros_like(&self) -> Self {
        match &self.short {
            Some(short) => Self::zeros_with_short_rows(short.block()),
            None => Self::zeros(self.len()),
        }
    }

    /// Have these the same form: as many coordinates, as many of them in short rows, coefficients or none?
    pub fn has_form_of(&self, other: &Self) -> bool {
        let block = |w: &Self| w.short.as_ref().map(ShortRows::block);
        let len = |w: &Self| (w.dense.len(), w.coefficients.as_ref().map(Vec::len));
        block(self) == block(other) && len(self) == len(other)
    }

    /// The same form, and in short rows the same weights in use?
    pub fn is_like(&self, other: &Self) -> bool {
        let are_alike = self.short.as_ref().zip(other.short.as_ref()).is_none_or(|(own, other)| own.is_like(other));
        self.has_form_of(other) && are_alike
    }

    /// `w += t (other - w)`; not in short rows.
    pub fn move_towards(&mut self, other: &Self, t: f64) {
        debug_assert!(self.short.is_none(), "other weights may be in use there");
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
        self.short.iter_mut().for_each(|short| short.scale(factor));
    }

    /// The coordinates, but for those in short rows.
    pub fn as_slice(&self) -> &[f64] {
        &self.dense
    }

    /// The same, to be changed.
    pub fn as_mut_slice(&mut self) -> &mut [f64] {
        &mut self.dense
    }

    /// The coordinates of a block, which is not in short rows.
    pub fn of(&self, block: Block) -> &[f64] {
        &self.dense[block.base as usize..][..block.len() as usize]
    }

    /// Number of coordinates.
    pub fn len(&self) -> usize {
        self.dense.len() + self.short.as_ref().map_or(0, |short| short.block().len() as usize)
    }

    /// No coordinate?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `<w, phi in slot k of the block>` for all slots k at once: `scores` has the block's width.
    #[inline]
    pub fn scores(&self, block: Block, phi: SparseView<'_>, scores: &mut [f64]) {
        if let Some(short) = self.rows_of(block) {
            scores.fill(0.0);
            short.add_scores(phi, scores);
            return;
        }
        let w = self.of(block);
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

/// Sums the scores of parts.
pub struct Score<'a> {
    /// The weights.
    pub w: &'a Weights,
    /// `<w, parts so far>`
    pub total: f64,
}

impl Sink for Score<'_> {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        self.total += scale * self.w.score(block, slot, phi);
    }

    fn vector(&mut self, block: Block, vector: &[f64], scale: f64) {
        let w = &self.w.as_slice()[block.base as usize..][..vector.len()];
        self.total += scale * dot(w, vector);
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

    #[test]
    fn scores_of_all_slots_equal_those_of_each() {
        let phi = SparseView::new(&[0, 2, 4], &[0.5, -1.0, 3.0]);
        for width in (1..=40).chain([255, 256, 257, 1024, 1025, 2500]) {
            let block = Block { base: 3, rows: 5, width };
            let dense: Weights = (0..3 + block.len()).map(|i| (i as f64 * 0.7).sin()).collect();
            let mut short = Weights::zeros_with_short_rows(block);
            short.as_mut_slice().copy_from_slice(&dense.as_slice()[..3]);
            for j in 0..5 {
                for slot in (0..width).step_by(1 + j as usize) {
                    let value = dense.as_slice()[block.at(j, slot)];
                    short.add(block, slot, SparseView::new(&[j], &[1.0]), value);
                }
            }
            let also_dense = Weights::from(Vec::from(short.clone()));
            assert_eq!(short.len(), also_dense.len());
            assert!((short.norm2() - also_dense.norm2()).abs() < 1e-12 * (1.0 + short.norm2()));
            for w in [dense, short, also_dense] {
                let mut scores = vec![f64::NAN; width as usize];
                w.scores(block, phi, &mut scores);
                for k in 0..width {
                    let mut one = Score { w: &w, total: 0.0 };
                    one.part(block, k, phi, 1.0);
                    assert!((scores[k as usize] - one.total).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn additions_tell_how_the_norm_grows() {
        let block = Block { base: 2, rows: 3, width: 4 };
        for mut w in [Weights::zeros(14), Weights::zeros_with_short_rows(block)] {
            let mut norm2 = 0.0;
            for (slot, change) in [(0, 0.5), (3, -1.0), (0, 0.25)] {
                norm2 += w.add(block, slot, SparseView::new(&[0, 2], &[1.5, -1.0]), change);
            }
            assert!((norm2 - w.norm2()).abs() < 1e-12 && norm2 > 0.0);
            assert_eq!(w.score(block, 0, SparseView::new(&[0], &[1.0])), 0.75 * 1.5);
        }
    }
}
