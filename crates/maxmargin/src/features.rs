//! Joint features as parts of blocks.
//!
//! `psi(x, y)` is a sum of parts `phi (x) e_k`: a sparse input vector phi placed in slot k of a block of
//! width K. Coordinate j of that part stands at `base + j * K + k` of w, so the scores of one phi against
//! all K slots are K contiguous numbers per feature.

use crate::sparse::SparseView;

/// Where a family of parts lives in w.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// First coordinate in w.
    pub base: u64,
    /// Number of input features.
    pub rows: u32,
    /// Number of slots K.
    pub width: u32,
}

impl Block {
    /// Number of coordinates of w that the block takes.
    pub fn len(&self) -> u64 {
        u64::from(self.rows) * u64::from(self.width)
    }

    /// No coordinate?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The coordinate of w where feature `j` in slot `k` stands.
    pub fn at(&self, j: u32, k: u32) -> usize {
        (self.base + u64::from(j) * u64::from(self.width) + u64::from(k)) as usize
    }
}

/// Takes the parts that a task emits.
pub trait Sink {
    /// `scale * phi` in slot `slot` of `block`.
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64);
}

/// Adds the parts, times a factor, to a dense vector.
pub struct Accumulate<'a> {
    /// The vector that grows.
    pub sum: &'a mut [f64],
    /// Factor on every part.
    pub factor: f64,
}

impl Sink for Accumulate<'_> {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        if phi.is_empty() {
            return; // where no example has a feature, the block has no coordinates to slice
        }
        let scale = scale * self.factor;
        let width = block.width as usize;
        let sum = &mut self.sum[block.base as usize + slot as usize..];
        for (j, v) in phi.iter() {
            sum[j as usize * width] += scale * f64::from(v);
        }
    }
}

/// Sums the inner products of the parts with a dense vector.
pub struct Score<'a> {
    /// The vector.
    pub w: &'a [f64],
    /// `<w, parts so far>`
    pub total: f64,
}

impl Sink for Score<'_> {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        if phi.is_empty() {
            return;
        }
        let width = block.width as usize;
        let w = &self.w[block.base as usize + slot as usize..];
        let inner: f64 = phi.iter().map(|(j, v)| f64::from(v) * w[j as usize * width]).sum();
        self.total += scale * inner;
    }
}

/// Collects the parts as one sparse vector in coordinates of w.
#[derive(Debug, Default)]
pub struct Collect {
    entries: Vec<(u64, f64)>,
}

impl Collect {
    /// Forgets the parts, keeps the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// The sum of the parts: coordinates ascending, each once.
    pub fn merged(&mut self) -> &[(u64, f64)] {
        self.entries.sort_by_key(|e| e.0);
        self.entries.dedup_by(|b, a| {
            let same = a.0 == b.0;
            if same {
                a.1 += b.1;
            }
            same
        });
        &self.entries
    }

    /// Sum of squares of the sum of the parts.
    pub fn norm2(&mut self) -> f64 {
        self.merged().iter().map(|e| e.1 * e.1).sum()
    }
}

impl Sink for Collect {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        self.entries.extend(phi.iter().map(|(j, v)| (block.at(j, slot) as u64, scale * f64::from(v))));
    }
}

/// Hands every part on with its scale multiplied: how `-psi(x, y)` is emitted.
pub struct Scaled<'a, S> {
    /// Where the parts go.
    pub sink: &'a mut S,
    /// The factor.
    pub factor: f64,
}

impl<S: Sink> Sink for Scaled<'_, S> {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        self.sink.part(block, slot, phi, scale * self.factor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sinks_agree() {
        let block = Block { base: 2, rows: 3, width: 2 };
        let phi = SparseView::new(&[0, 2], &[1.5, -1.0]);
        let emit = |sink: &mut dyn FnMut(u32, f64)| {
            sink(0, 1.0);
            sink(1, -2.0);
            sink(0, 0.5);
        };
        let w: Vec<f64> = (0..8).map(|i| f64::from(i) - 3.0).collect();

        let mut sum = vec![0.0; 8];
        let mut accumulate = Accumulate { sum: &mut sum, factor: 1.0 };
        emit(&mut |k, s| accumulate.part(block, k, phi, s));
        let mut score = Score { w: &w, total: 0.0 };
        emit(&mut |k, s| score.part(block, k, phi, s));
        let mut collect = Collect::default();
        emit(&mut |k, s| collect.part(block, k, phi, s));

        assert_eq!(sum, [0.0, 0.0, 2.25, -3.0, 0.0, 0.0, -1.5, 2.0]);
        assert_eq!(score.total, crate::sparse::dot(&w, &sum));
        assert_eq!(collect.merged(), [(2, 2.25), (3, -3.0), (6, -1.5), (7, 2.0)]);
        assert_eq!(collect.norm2(), crate::sparse::dot(&sum, &sum));
    }
}
