//! The weights of token features, laid out for prediction.

use pulp::{Arch, Simd, WithSimd};

use super::TagWeights;
use crate::memory::{prefetch, room};
use crate::sparse::Rows;

/// A row of weights for each feature, in one piece of memory: all tags' one after the other where many are not zero, and
/// otherwise pairs of a tag, as bits, and its weight. Features come in no order that the machine could guess, so that a row should be
/// found in one place, and asked for early.
#[derive(Debug, Clone)]
pub(super) struct Packed {
    tags: usize,
    /// Where each row starts, and at last where they end.
    starts: Vec<Start>,
    numbers: Vec<f64>,
}

/// The start of a row, and in the lowest bit: are all tags there?
#[derive(Debug, Clone, Copy)]
struct Start(u64);

impl Start {
    fn place(self) -> usize {
        (self.0 >> 1) as usize
    }

    fn is_full(self) -> bool {
        self.0 & 1 == 1
    }
}

impl Packed {
    /// One weight in so many makes a row of all.
    const FULL: usize = 4;

    pub(super) fn new(weights: &TagWeights, tags: usize) -> Self {
        let features = weights.features();
        let is_full = |feature: u32| Self::FULL * weights.row(feature).len() >= tags;
        let len = |feature: u32| if is_full(feature) { tags } else { 2 * weights.row(feature).len() };
        let (mut starts, mut numbers) = (room(features + 1), room((0..features as u32).map(len).sum()));
        for feature in 0..features as u32 {
            let start = numbers.len();
            let is_full = is_full(feature);
            if is_full {
                numbers.resize(start + tags, 0.0);
                weights.row(feature).for_each(|(tag, w)| numbers[start + tag as usize] = w);
            } else {
                weights.row(feature).for_each(|(tag, w)| numbers.extend([f64::from_bits(u64::from(tag)), w]));
            }
            starts.push(Start((start as u64) << 1 | u64::from(is_full)));
        }
        starts.push(Start((numbers.len() as u64) << 1));
        Self { tags, starts, numbers }
    }

    /// The scores of all tags at each token, into rows of `stride` numbers.
    pub(super) fn score(&self, tokens: Rows<'_>, unary: &mut [f64], stride: usize) {
        Arch::new().dispatch(Emissions { packed: self, tokens, unary, stride });
    }
}

struct Emissions<'e> {
    packed: &'e Packed,
    tokens: Rows<'e>,
    unary: &'e mut [f64],
    stride: usize,
}

impl WithSimd for Emissions<'_> {
    type Output = ();

    // What is inlined here is compiled once for each kind of machine, with the same additions in the same order.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        /// So many features ahead the start of a row is asked for, and so many ahead the row.
        const STARTS_AHEAD: usize = 16;
        const ROWS_AHEAD: usize = 8;
        /// Numbers in a line of the cache.
        const LINE: usize = 8;
        let Self { packed: Packed { tags, starts, numbers }, tokens, unary, stride } = self;
        let indices = tokens.indices();
        let mut done = 0;
        for (t, unary) in unary.chunks_exact_mut(stride).take(tokens.len()).enumerate() {
            let unary = &mut unary[..*tags];
            unary.fill(0.0);
            for (j, v) in tokens.row(t).iter() {
                if let Some(&soon) = indices.get(done + STARTS_AHEAD) {
                    prefetch(&starts[soon as usize]);
                }
                if let Some(&soon) = indices.get(done + ROWS_AHEAD) {
                    let range = starts[soon as usize].place()..starts[soon as usize + 1].place();
                    numbers[range].iter().step_by(LINE).for_each(prefetch);
                }
                done += 1;
                let (start, v) = (starts[j as usize], f64::from(v));
                let row = &numbers[start.place()..starts[j as usize + 1].place()];
                if start.is_full() {
                    unary.iter_mut().zip(row).for_each(|(sum, w)| *sum += v * w);
                } else {
                    row.as_chunks::<2>().0.iter().for_each(|[tag, w]| unary[tag.to_bits() as usize] += v * w);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparse::SparseMatrix;

    #[test]
    fn scores_are_sums_of_rows() {
        for tags in [1, 2, 5, 9, 30] {
            let mut weights = TagWeights { starts: vec![0], ..TagWeights::default() };
            // Rows of every length from none to all.
            for feature in 0..=3 * tags {
                for slot in (0..tags).filter(|slot| (slot * 7 + feature) % (3 * tags) < feature) {
                    weights.slots.push(slot as u32);
                    weights.values.push(0.1 * ((31 * feature + 17 * slot) % 13) as f64 - 0.55);
                }
                weights.starts.push(weights.slots.len() as u64);
            }
            let mut tokens = SparseMatrix::new();
            for t in 0..20 {
                tokens.push_row((0..=3 * tags as u32).filter(|j| (j * 11 + t) % 20 < t).map(|j| (j, 0.5 + j as f32)));
            }
            let stride = tags + 3;
            let mut scores = vec![f64::NAN; 20 * stride];
            Packed::new(&weights, tags).score(tokens.range(0..20), &mut scores, stride);
            for (t, scores) in scores.chunks_exact(stride).enumerate() {
                let mut expected = vec![0.0; tags];
                for (j, v) in tokens.row(t).iter() {
                    weights.row(j).for_each(|(slot, w)| expected[slot as usize] += f64::from(v) * w);
                }
                assert_eq!(&scores[..tags], expected);
            }
        }
    }
}
