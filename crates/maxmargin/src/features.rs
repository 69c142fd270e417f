//! Joint features as parts of blocks.
//!
//! `psi(x, y)` is a sum of parts `phi (x) e_k`: a sparse input vector phi placed in slot k of a block of
//! width K. Coordinate j of that part stands at `base + j * K + k` of w, so the scores of one phi against
//! all K slots are K contiguous numbers per feature.

use crate::memory::prefetch;
use crate::sparse::{SparseView, axpy};

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

    /// `scale` times a vector over all of `block`, which has one slot: what outputs of many examples come to together. Where a
    /// sink knows no better, as parts that add up to it to the last digit (of numbers above 1e-15): three f32 hold more digits
    /// than one f64.
    fn vector(&mut self, block: Block, vector: &[f64], scale: f64) {
        let (mut indices, mut values) = (Vec::new(), Vec::new());
        let mut rest: Vec<(u32, f64)> =
            vector.iter().enumerate().filter(|(_, x)| **x != 0.0).map(|(j, &x)| (j as u32, x)).collect();
        for _ in 0..3 {
            indices.clear();
            values.clear();
            for (j, x) in &mut rest {
                let rounded = *x as f32;
                indices.push(*j);
                values.push(rounded);
                *x -= f64::from(rounded);
            }
            self.part(block, 0, SparseView::new(&indices, &values), scale);
            rest.retain(|&(_, x)| x != 0.0);
        }
    }

    /// This sink in a form that crosses an object-safe call. The sinks of the inner loops have a variant of their own, so
    /// that the code which feeds them is compiled for them.
    fn as_target(&mut self) -> Target<'_>
    where
        Self: Sized,
    {
        Target::Other(self)
    }
}

/// A [`Sink`] that can be handed through a trait object.
pub enum Target<'t> {
    /// An [`Accumulate`].
    Accumulate(Accumulate<'t>),
    /// A [`Collect`].
    Collect(&'t mut Collect),
    /// A [`Lookup`].
    Lookup(&'t mut Lookup),
    /// A [`ScoreIn`]: the other vector, and the sum so far.
    ScoreIn(&'t Lookup, &'t mut f64),
    /// A [`Prefetch`].
    Prefetch(Prefetch<'t>),
    /// Any other sink, at the cost of a virtual call for each part.
    Other(&'t mut dyn Sink),
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

    fn vector(&mut self, block: Block, vector: &[f64], scale: f64) {
        axpy(scale * self.factor, vector, &mut self.sum[block.base as usize..][..vector.len()]);
    }

    fn as_target(&mut self) -> Target<'_> {
        Target::Accumulate(Accumulate { sum: self.sum, factor: self.factor })
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

    /// Adds a multiple of a vector that is at hand as such.
    pub fn add(&mut self, scale: f64, vector: &[(u64, f64)]) {
        self.entries.extend(vector.iter().map(|&(at, value)| (at, scale * value)));
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

    fn as_target(&mut self) -> Target<'_> {
        Target::Collect(self)
    }
}

/// A sparse sum of parts that can be asked for any coordinate: a small table with open addressing, for vectors of a few
/// hundred coordinates out of millions. Keeps its memory.
#[derive(Debug, Default)]
pub struct Lookup {
    /// Coordinates plus one; 0: free. A power of two of them, at most half taken.
    keys: Vec<u64>,
    values: Vec<f64>,
    /// The places that are taken.
    taken: Vec<u32>,
}

impl Lookup {
    /// Forgets the parts.
    pub fn clear(&mut self) {
        self.taken.drain(..).for_each(|at| self.keys[at as usize] = 0);
    }

    /// The coordinate's place: where it is, or where it would be.
    #[inline]
    fn place(&self, key: u64) -> usize {
        let mask = self.keys.len() - 1;
        // The golden ratio spreads neighbours; the upper bits are the well-mixed ones.
        let mut at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & mask;
        while self.keys[at] != 0 && self.keys[at] != key {
            at = (at + 1) & mask;
        }
        at
    }

    /// The sum at a coordinate.
    #[inline]
    pub fn get(&self, coordinate: u64) -> f64 {
        if self.taken.is_empty() {
            return 0.0;
        }
        let at = self.place(coordinate + 1);
        if self.keys[at] == 0 { 0.0 } else { self.values[at] }
    }

    fn add(&mut self, coordinate: u64, value: f64) {
        if 2 * (self.taken.len() + 1) > self.keys.len() {
            self.grow();
        }
        let key = coordinate + 1;
        let at = self.place(key);
        if self.keys[at] == 0 {
            (self.keys[at], self.values[at]) = (key, 0.0);
            self.taken.push(at as u32);
        }
        self.values[at] += value;
    }

    /// Sum of squares.
    pub fn norm2(&self) -> f64 {
        self.taken.iter().map(|&at| self.values[at as usize] * self.values[at as usize]).sum()
    }

    fn grow(&mut self) {
        let size = (2 * self.keys.len()).max(64);
        let old: Vec<(u64, f64)> =
            self.taken.iter().map(|&at| at as usize).map(|at| (self.keys[at], self.values[at])).collect();
        self.keys.clear();
        self.keys.resize(size, 0);
        self.values.resize(size, 0.0);
        self.taken.clear();
        for (key, value) in old {
            let at = self.place(key);
            (self.keys[at], self.values[at]) = (key, value);
            self.taken.push(at as u32);
        }
    }
}

impl Sink for Lookup {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        phi.iter().for_each(|(j, v)| self.add(block.at(j, slot) as u64, scale * f64::from(v)));
    }

    fn as_target(&mut self) -> Target<'_> {
        Target::Lookup(self)
    }
}

/// Sums the inner products of the parts with what a [`Lookup`] holds.
pub struct ScoreIn<'a> {
    /// The other vector.
    pub lookup: &'a Lookup,
    /// The sum so far.
    pub total: f64,
}

impl Sink for ScoreIn<'_> {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        let inner: f64 = phi.iter().map(|(j, v)| f64::from(v) * self.lookup.get(block.at(j, slot) as u64)).sum();
        self.total += scale * inner;
    }

    fn as_target(&mut self) -> Target<'_> {
        Target::ScoreIn(self.lookup, &mut self.total)
    }
}

/// Asks for the weights of parts that will be scored soon to be brought near.
pub struct Prefetch<'a> {
    /// The weights.
    pub w: &'a [f64],
}

impl Sink for Prefetch<'_> {
    #[inline]
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, _: f64) {
        phi.indices().iter().for_each(|&j| prefetch(&self.w[block.at(j, slot)]));
    }

    fn as_target(&mut self) -> Target<'_> {
        Target::Prefetch(Prefetch { w: self.w })
    }
}

/// Hands every part on with its scale multiplied: how `-psi(x, y)` is emitted.
pub struct Scaled<'a, S: ?Sized> {
    /// Where the parts go.
    pub sink: &'a mut S,
    /// The factor.
    pub factor: f64,
}

impl<S: Sink + ?Sized> Sink for Scaled<'_, S> {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        self.sink.part(block, slot, phi, scale * self.factor);
    }

    fn vector(&mut self, block: Block, vector: &[f64], scale: f64) {
        self.sink.vector(block, vector, scale * self.factor);
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

        let mut sum = vec![0.0; 8];
        let mut accumulate = Accumulate { sum: &mut sum, factor: 1.0 };
        emit(&mut |k, s| accumulate.part(block, k, phi, s));
        let mut collect = Collect::default();
        emit(&mut |k, s| collect.part(block, k, phi, s));

        assert_eq!(sum, [0.0, 0.0, 2.25, -3.0, 0.0, 0.0, -1.5, 2.0]);
        assert_eq!(collect.merged(), [(2, 2.25), (3, -3.0), (6, -1.5), (7, 2.0)]);
        assert_eq!(collect.norm2(), crate::sparse::dot(&sum, &sum));
        let mut lookup = Lookup::default();
        emit(&mut |k, s| lookup.part(block, k, phi, s));
        let mut inner = ScoreIn { lookup: &lookup, total: 0.0 };
        emit(&mut |k, s| inner.part(block, k, phi, s));
        assert_eq!(inner.total, crate::sparse::dot(&sum, &sum));
        assert_eq!(lookup.norm2(), inner.total);
    }

    #[test]
    fn a_vector_loses_no_digit() {
        let vector = [1.0 / 3.0, 0.0, -1e-15 / 7.0, 12_345.678_901_234_567, 1e-5];
        let block = Block { base: 1, rows: 5, width: 1 };
        let mut sum = vec![0.0; 6];
        Scaled { sink: &mut Accumulate { sum: &mut sum, factor: 0.5 }, factor: 2.0 }.vector(block, &vector, 1.0);
        assert_eq!(sum[1..], vector);
        let mut collect = Collect::default();
        collect.vector(block, &vector, 1.0);
        for &(at, value) in collect.merged() {
            assert_eq!(value, vector[at as usize - 1]);
        }
        assert_eq!(collect.merged().len(), 4);
    }

    #[test]
    fn a_lookup_holds_what_was_added() {
        let mut lookup = Lookup::default();
        for round in 0..3_u64 {
            assert_eq!(lookup.get(7), 0.0);
            for x in 0..500_u64 {
                lookup.add((x * x) << (7 * round), x as f64);
                lookup.add((x * x) << (7 * round), 1.0);
            }
            for x in 0..500_u64 {
                assert_eq!(lookup.get((x * x) << (7 * round)), x as f64 + 1.0);
            }
            assert_eq!(lookup.get(2 << (7 * round)), 0.0);
            lookup.clear();
        }
    }
}
