//! The examples as blocks of dual variables: violations at w, exact steps, and their share in w.

use super::block::{self, Limits, Look};
use super::slots::{self, Rows};
use crate::features::Block;
use crate::problem::{Classes, Penalty, Rescaling};
use crate::sparse::SparseView;
use crate::weights::Weights;

/// What the passes need of the examples. Three kinds stand behind it: one output beside the truth, many with a slot each,
/// and many with several slots each ([`rows`](super::rows)).
pub(super) trait Blocks: Sync {
    /// Where it works, kept by the caller.
    type Room: Default + Send;

    /// Number of examples n.
    fn len(&self) -> usize;

    /// Dual variables of an example.
    fn width(&self) -> usize;

    /// Example i, to be looked at.
    fn example(&self, i: usize) -> Example<'_>;

    /// Hints that example i will be asked for soon.
    fn prefetch(&self, i: usize);

    /// Number of entries of all phi.
    fn entries(&self) -> u64;

    /// C c_i / n
    fn share(&self, i: usize) -> f64;

    /// Violations of the example's outputs at w; far below zero for the truth itself, where it is among them.
    fn violations(&self, example: &Example<'_>, w: &Weights, room: &mut Self::Room, v: &mut [f64]);

    /// Violations of some of its outputs only.
    fn violations_of(&self, example: &Example<'_>, of: &[u32], w: &Weights, room: &mut Self::Room, v: &mut [f64]);

    /// What the violations of these outputs change by when w moves by `direction`.
    fn slopes_of(
        &self,
        example: &Example<'_>,
        of: &[u32],
        direction: &Weights,
        room: &mut Self::Room,
        slopes: &mut [f64],
    );

    /// What all of them change by.
    fn slopes(&self, example: &Example<'_>, direction: &Weights, room: &mut Self::Room, slopes: &mut [f64]);

    /// No violation of the example changes by more than that where w moves this far; infinite where nothing is said.
    fn most_change(&self, _example: &Example<'_>, _length: f64) -> f64 {
        f64::INFINITY
    }

    /// Looks at the block of an example.
    fn look(&self, v: &[f64], a: &[f64], limits: Limits) -> Look;

    /// Moves `a`, the variables of the outputs `of`, whose violations are `v`, to the maximum of the example's block where the
    /// others stay zero. `v` is used up.
    fn maximise(
        &self,
        example: &Example<'_>,
        of: &[u32],
        limits: Limits,
        room: &mut Self::Room,
        v: &mut [f64],
        a: &mut [f64],
    );

    /// Where phi stands in w: a row for each of its entries.
    fn block(&self) -> Block;

    /// `w += sum delta_k lhs_k` over the outputs `of`, in rows of the block; phi has no entries in others.
    fn add_to_rows(&self, example: &Example<'_>, of: &[u32], delta: &[f64], room: &mut Self::Room, rows: &mut Rows<'_>);

    /// The same in all rows.
    fn add(&self, example: &Example<'_>, of: &[u32], delta: &[f64], room: &mut Self::Room, w: &mut [f64]) {
        let w = &mut w[self.block().base as usize..];
        self.add_to_rows(example, of, delta, room, &mut Rows { first: 0, w });
    }

    /// `sum a_k rhs_k` over the outputs `of`.
    fn rhs(&self, example: &Example<'_>, of: &[u32], a: &[f64]) -> f64;

    /// `lower += sum_kl j(k, l) lhs_k lhs_l'` over the outputs `of`, below the diagonal, row by row.
    fn add_curvature(&self, example: &Example<'_>, of: &[u32], j: impl Fn(u32, u32) -> f64, lower: &mut [f64]);
}

/// What is read of an example, once for each visit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Example<'e> {
    pub(super) phi: SparseView<'e>,
    pub(super) norm2: f64,
    /// C c_i / n
    pub(super) share: f64,
    pub(super) truth: usize,
}

impl Example<'_> {
    /// At least |phi|, which is kept in f32.
    fn most_norm(&self) -> f64 {
        const ROUNDING: f64 = 1e-6;
        self.norm2.sqrt() * (1.0 + ROUNDING) + f64::from(f32::MIN_POSITIVE)
    }

    /// The limits of its block where C counts `stage` times.
    pub(super) fn limits(&self, penalty: Penalty, stage: f64) -> Limits {
        Limits::new(penalty, stage * self.share)
    }
}

/// Where examples come from.
pub(super) trait Source: Sync {
    /// Number of examples n.
    fn len(&self) -> usize;

    /// Example i, to be looked at.
    fn example(&self, i: usize) -> Example<'_>;

    /// Hints that example i will be asked for soon.
    fn prefetch(&self, i: usize);

    /// Number of entries of all phi.
    fn entries(&self) -> u64;

    /// C c_i / n
    fn share(&self, i: usize) -> f64;
}

impl Source for Classes<'_> {
    fn len(&self) -> usize {
        self.len()
    }

    #[inline]
    fn example(&self, i: usize) -> Example<'_> {
        let (row, phi) = (self.row(i), self.phi(i));
        let norm2 = f64::from(row.norm) * f64::from(row.norm);
        Example { phi, norm2, share: self.share(i), truth: row.truth as usize }
    }

    #[inline]
    fn prefetch(&self, i: usize) {
        self.prefetch(i);
    }

    fn entries(&self) -> u64 {
        self.entries
    }

    #[inline]
    fn share(&self, i: usize) -> f64 {
        self.share(i)
    }
}

/// Two outputs: one dual variable an example, `lhs = factor * y * phi` with y = -1, +1.
pub(super) struct Signed<S> {
    examples: S,
    block: Block,
    dimension: usize,
    /// By truth: rhs, and factor times y.
    terms: [(f64, f64); 2],
}

impl<'a> Signed<Classes<'a>> {
    pub(super) fn new(examples: Classes<'a>, block: Block) -> Self {
        let term = |truth: usize, sign: f64| {
            let term = examples.formulation.term(examples.losses.of(truth, 1 - truth));
            (term.rhs, sign * term.factor)
        };
        let terms = [term(0, -1.0), term(1, 1.0)];
        Self { dimension: examples.dimension, examples, block, terms }
    }
}

impl<S: Source> Signed<S> {
    /// Two outputs whose margin is `y <w, phi>`, with these right-hand sides by truth.
    pub(super) fn of(examples: S, features: u32, rhs: [f64; 2]) -> Self {
        let block = Block { base: 0, rows: features, width: 1 };
        Self { examples, block, dimension: features as usize, terms: [(rhs[0], -1.0), (rhs[1], 1.0)] }
    }
}

impl<S: Source> Blocks for Signed<S> {
    type Room = ();

    fn len(&self) -> usize {
        self.examples.len()
    }

    fn width(&self) -> usize {
        1
    }

    fn example(&self, i: usize) -> Example<'_> {
        self.examples.example(i)
    }

    fn prefetch(&self, i: usize) {
        self.examples.prefetch(i);
    }

    fn entries(&self) -> u64 {
        self.examples.entries()
    }

    fn share(&self, i: usize) -> f64 {
        self.examples.share(i)
    }

    fn violations(&self, example: &Example<'_>, w: &Weights, (): &mut (), v: &mut [f64]) {
        let (rhs, factor) = self.terms[example.truth];
        v[0] = rhs - factor * example.phi.dot(&w.as_slice()[self.block.base as usize..]);
    }

    fn violations_of(&self, example: &Example<'_>, _: &[u32], w: &Weights, (): &mut (), v: &mut [f64]) {
        self.violations(example, w, &mut (), v);
    }

    fn slopes_of(&self, example: &Example<'_>, _: &[u32], direction: &Weights, (): &mut (), slopes: &mut [f64]) {
        self.slopes(example, direction, &mut (), slopes);
    }

    fn slopes(&self, example: &Example<'_>, direction: &Weights, (): &mut (), slopes: &mut [f64]) {
        let (_, factor) = self.terms[example.truth];
        slopes[0] = -factor * example.phi.dot(&direction.as_slice()[self.block.base as usize..]);
    }

    fn most_change(&self, example: &Example<'_>, length: f64) -> f64 {
        let (_, factor) = self.terms[example.truth];
        factor.abs() * example.most_norm() * length
    }

    fn look(&self, v: &[f64], a: &[f64], limits: Limits) -> Look {
        block::look_at_one(v[0], a[0], limits)
    }

    fn maximise(&self, example: &Example<'_>, _: &[u32], limits: Limits, (): &mut (), v: &mut [f64], a: &mut [f64]) {
        let (_, factor) = self.terms[example.truth];
        a[0] = block::maximise_one(v[0], a[0], factor * factor * example.norm2, limits);
    }

    fn block(&self) -> Block {
        self.block
    }

    fn add_to_rows(&self, example: &Example<'_>, _: &[u32], delta: &[f64], (): &mut (), rows: &mut Rows<'_>) {
        let (_, factor) = self.terms[example.truth];
        example.phi.add_to_part(factor * delta[0], rows.first, rows.w);
    }

    fn rhs(&self, example: &Example<'_>, _: &[u32], a: &[f64]) -> f64 {
        self.terms[example.truth].0 * a[0]
    }

    fn add_curvature(&self, example: &Example<'_>, of: &[u32], j: impl Fn(u32, u32) -> f64, lower: &mut [f64]) {
        let [k] = *of else { return };
        let (_, factor) = self.terms[example.truth];
        let (scale, phi, d) = (factor * factor * j(k, k), example.phi, self.dimension);
        let base = self.block.base as usize;
        for (at, (row, x)) in phi.iter().enumerate() {
            let row = &mut lower[(base + row as usize) * d + base..];
            let x = scale * f64::from(x);
            for (&column, &y) in phi.indices()[..=at].iter().zip(phi.values()) {
                row[column as usize] += x * f64::from(y);
            }
        }
    }
}

/// Where fewer outputs change, or there are more than `NEAR`, w is changed in their slots alone; else in all at once.
const FEW: usize = 8;
const NEAR: usize = 256;

/// Many outputs: a dual variable for each, the truth's idle. `lhs_k = factor_k (phi in the truth's slot - phi in slot k)`.
pub(super) struct Slotted<'a> {
    examples: Classes<'a>,
    block: Block,
    /// By truth and output.
    rhs: Vec<f64>,
    factors: Vec<f64>,
    has_unit_factors: bool,
}

impl<'a> Slotted<'a> {
    pub(super) fn new(examples: Classes<'a>, block: Block) -> Self {
        let (formulation, mut room) = (examples.formulation, Vec::new());
        let terms = (0..examples.count).flat_map(|truth| {
            let losses = examples.losses.row(truth, &mut room).to_vec();
            losses.into_iter().map(|loss| formulation.term(loss))
        });
        let (factors, rhs) = terms.map(|term| (term.factor, term.rhs)).unzip();
        let has_unit_factors = formulation.rescaling == Rescaling::Margin;
        Self { examples, block, rhs, factors, has_unit_factors }
    }

    /// Right-hand sides and factors of all outputs where `truth` is right.
    fn terms(&self, truth: usize) -> (&[f64], &[f64]) {
        let outputs = self.examples.count;
        let row = truth * outputs..(truth + 1) * outputs;
        (&self.rhs[row.clone()], &self.factors[row])
    }
}

impl Blocks for Slotted<'_> {
    type Room = ();

    fn len(&self) -> usize {
        self.examples.len()
    }

    fn width(&self) -> usize {
        self.examples.count
    }

    fn example(&self, i: usize) -> Example<'_> {
        self.examples.example(i)
    }

    fn prefetch(&self, i: usize) {
        self.examples.prefetch(i);
    }

    fn entries(&self) -> u64 {
        self.examples.entries
    }

    fn share(&self, i: usize) -> f64 {
        self.examples.share(i)
    }

    fn violations(&self, example: &Example<'_>, w: &Weights, (): &mut (), v: &mut [f64]) {
        let (rhs, factors) = self.terms(example.truth);
        w.scores(self.block, example.phi, v);
        let at_truth = v[example.truth];
        if self.has_unit_factors {
            for (v, rhs) in v.iter_mut().zip(rhs) {
                *v = rhs - (at_truth - *v);
            }
        } else {
            for (v, (rhs, factor)) in v.iter_mut().zip(rhs.iter().zip(factors)) {
                *v = rhs - factor * (at_truth - *v);
            }
        }
        v[example.truth] = f64::MIN;
    }

    fn violations_of(&self, example: &Example<'_>, of: &[u32], w: &Weights, (): &mut (), v: &mut [f64]) {
        self.slopes_of(example, of, w, &mut (), v);
        let rhs = self.terms(example.truth).0;
        for (v, &k) in v.iter_mut().zip(of) {
            *v += rhs[k as usize];
        }
    }

    fn slopes_of(&self, example: &Example<'_>, of: &[u32], direction: &Weights, (): &mut (), slopes: &mut [f64]) {
        let (factors, phi) = (self.terms(example.truth).1, example.phi);
        let (w, width) = (&direction.as_slice()[self.block.base as usize..], self.block.width as usize);
        let mut at_truth = [0.0];
        slots::scores(w, width, phi, &[example.truth as u32], &mut at_truth);
        slots::scores(w, width, phi, of, slopes);
        for (slope, &k) in slopes.iter_mut().zip(of) {
            *slope = factors[k as usize] * (*slope - at_truth[0]);
        }
    }

    fn slopes(&self, example: &Example<'_>, direction: &Weights, (): &mut (), slopes: &mut [f64]) {
        direction.scores(self.block, example.phi, slopes);
        let at_truth = slopes[example.truth];
        for (slope, factor) in slopes.iter_mut().zip(self.terms(example.truth).1) {
            *slope = factor * (*slope - at_truth);
        }
    }

    fn most_change(&self, example: &Example<'_>, length: f64) -> f64 {
        // phi in two slots.
        let factor = self.terms(example.truth).1.iter().copied().fold(0.0, f64::max);
        factor * std::f64::consts::SQRT_2 * example.most_norm() * length
    }

    fn look(&self, v: &[f64], a: &[f64], limits: Limits) -> Look {
        block::look(v, a, limits)
    }

    fn maximise(&self, example: &Example<'_>, of: &[u32], limits: Limits, (): &mut (), v: &mut [f64], a: &mut [f64]) {
        let q = example.norm2;
        if self.has_unit_factors {
            return block::maximise_stacked(v, a, q, limits);
        }
        let factors = self.terms(example.truth).1;
        let factor = |k: usize| factors[of[k] as usize];
        let gram = |k: usize, l: usize| q * factor(k) * factor(l) * if k == l { 2.0 } else { 1.0 };
        block::maximise_pairs(v, a, gram, limits, block::PRECISION);
    }

    fn block(&self) -> Block {
        self.block
    }

    fn add_to_rows(&self, example: &Example<'_>, of: &[u32], delta: &[f64], (): &mut (), rows: &mut Rows<'_>) {
        let (factors, width) = (self.terms(example.truth).1, self.block.width as usize);
        let (truth, phi) = (example.truth, example.phi);
        let changed = delta.iter().filter(|delta| **delta != 0.0).count();
        if changed >= FEW && width <= NEAR {
            let mut scales = [0.0; NEAR];
            for (&k, &delta) in of.iter().zip(delta) {
                let scale = factors[k as usize] * delta;
                scales[k as usize] -= scale;
                scales[truth] += scale;
            }
            return slots::add_to_all(rows, phi, &scales[..width]);
        }
        let (mut slots, mut scales, mut count, mut at_truth) = ([0; FEW], [0.0; FEW], 0, 0.0);
        for (&k, &delta) in of.iter().zip(delta).filter(|e| *e.1 != 0.0) {
            if count == FEW {
                slots::add(rows, width, phi, &slots, &scales);
                count = 0;
            }
            let scale = factors[k as usize] * delta;
            (slots[count], scales[count]) = (k, -scale);
            at_truth += scale;
            count += 1;
        }
        slots::add(rows, width, phi, &slots[..count], &scales[..count]);
        slots::add(rows, width, phi, &[truth as u32], &[at_truth]);
    }

    fn rhs(&self, example: &Example<'_>, of: &[u32], a: &[f64]) -> f64 {
        let rhs = self.terms(example.truth).0;
        of.iter().zip(a).map(|(&k, a)| a * rhs[k as usize]).sum()
    }

    fn add_curvature(&self, example: &Example<'_>, of: &[u32], j: impl Fn(u32, u32) -> f64, lower: &mut [f64]) {
        // The outputs share phi, so the curvature is a small matrix over slots times phi phi'. Of more outputs than that, which
        // are rare, some are left out: the step is a little less than Newton's, no less downhill.
        const MOST: usize = 16;
        let factors = self.terms(example.truth).1;
        let (phi, width, d) = (example.phi, self.block.width as usize, self.examples.dimension);
        let mut slots = [example.truth; MOST];
        let mut small = [[0.0; MOST]; MOST];
        let of = &of[..of.len().min(MOST - 1)];
        for (s, &k) in of.iter().enumerate() {
            slots[s + 1] = k as usize;
            for (t, &l) in of.iter().enumerate() {
                let value = j(k, l) * factors[k as usize] * factors[l as usize];
                small[s + 1][t + 1] = value;
                small[0][t + 1] -= value;
                small[s + 1][0] -= value;
                small[0][0] += value;
            }
        }
        let (slots, base) = (&slots[..=of.len()], self.block.base as usize);
        for (at, (row, x)) in phi.iter().enumerate() {
            for (&slot, small) in slots.iter().zip(&small) {
                let row = &mut lower[(base + row as usize * width + slot) * d + base..];
                let x = f64::from(x);
                for (&column, &y) in phi.indices()[..=at].iter().zip(phi.values()) {
                    let xy = x * f64::from(y);
                    let row = &mut row[column as usize * width..][..width];
                    for (&other, small) in slots.iter().zip(small) {
                        row[other] += xy * small;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
