//! The examples as blocks of dual variables: violations at w, exact steps, and their share in w.

use super::block::{self, Limits, Look};
use crate::features::Block;
use crate::parallel::{Pool, ranges};
use crate::problem::{Penalty, Problem, Rescaling};
use crate::sparse::SparseView;
use crate::task::{Listed, Stacked, Task};
use crate::weights::Weights;

/// What the passes need of the examples. Two kinds stand behind it: one output beside the truth, and many.
pub(super) trait Blocks: Sync {
    /// Number of examples n.
    fn len(&self) -> usize;

    /// Dual variables of an example.
    fn width(&self) -> usize;

    /// C c_i / n
    fn share(&self, i: usize) -> f64;

    /// Violations of example i's outputs at w; far below zero for the truth itself, where it is among them.
    fn violations(&self, i: usize, w: &Weights, v: &mut [f64]);

    /// What the violations change by when w moves by `direction`.
    fn slopes(&self, i: usize, direction: &Weights, slopes: &mut [f64]);

    /// Looks at the block of an example.
    fn look(&self, v: &[f64], a: &[f64], limits: Limits) -> Look {
        block::look(v, a, limits)
    }

    /// Moves `a`, whose violations are `v`, to the maximum of example i's block. `v` is used up.
    fn maximise(&self, i: usize, v: &mut [f64], a: &mut [f64], limits: Limits);

    /// `w += sum_k delta_k lhs_k` of example i.
    fn add(&self, i: usize, delta: &[f64], w: &mut [f64]);

    /// `sum_k a_k rhs_k` of example i.
    fn rhs(&self, i: usize, a: &[f64]) -> f64;

    /// `lower += sum_kl j(k, l) lhs_k lhs_l'` over the outputs `of`, below the diagonal, row by row.
    fn add_curvature(&self, i: usize, of: &[usize], j: impl Fn(usize, usize) -> f64, lower: &mut [f64]);

    /// |phi|^2 of example i.
    fn norm2(&self, i: usize) -> f64;

    /// Tells the memory that example i is about to be read.
    fn prefetch(&self, i: usize);
}

/// What is common to both kinds.
struct Examples<'p, 'a, T: Task> {
    problem: &'p Problem<'a, T>,
    listed: &'a dyn Listed<T>,
    stacked: &'a dyn Stacked<T>,
    norms2: Vec<f64>,
    share: f64,
}

impl<'p, 'a, T: Task> Examples<'p, 'a, T> {
    fn new(problem: &'p Problem<'a, T>, listed: &'a dyn Listed<T>, stacked: &'a dyn Stacked<T>, pool: &Pool) -> Self {
        const PARTS: usize = 64;
        let parts = pool.map(ranges(problem.len(), PARTS), |part| {
            part.map(|i| stacked.phi(problem.input(i)).norm2()).collect::<Vec<_>>()
        });
        let share = problem.formulation().c / problem.len() as f64;
        Self { problem, listed, stacked, norms2: parts.concat(), share }
    }

    fn phi(&self, i: usize) -> SparseView<'a> {
        self.stacked.phi(self.problem.input(i))
    }

    fn truth(&self, i: usize) -> usize {
        self.listed.index(self.problem.truth(i))
    }
}

/// Two outputs: one dual variable an example, `lhs = factor * y * phi` with y = -1, +1.
pub(super) struct Signed<'p, 'a, T: Task> {
    examples: Examples<'p, 'a, T>,
    block: Block,
    /// By truth: rhs, and factor times y.
    terms: [(f64, f64); 2],
}

impl<'p, 'a, T: Task> Signed<'p, 'a, T> {
    pub(super) fn new(
        problem: &'p Problem<'a, T>,
        listed: &'a dyn Listed<T>,
        stacked: &'a dyn Stacked<T>,
        block: Block,
        pool: &Pool,
    ) -> Self {
        let term = |truth: usize, sign: f64| {
            let term = problem.term(listed.losses(&listed.output(truth))[1 - truth]);
            (term.rhs, sign * term.factor)
        };
        let examples = Examples::new(problem, listed, stacked, pool);
        Self { examples, block, terms: [term(0, -1.0), term(1, 1.0)] }
    }

    fn term(&self, i: usize) -> (f64, f64) {
        self.terms[self.examples.truth(i)]
    }
}

impl<T: Task> Blocks for Signed<'_, '_, T> {
    fn len(&self) -> usize {
        self.examples.problem.len()
    }

    fn width(&self) -> usize {
        1
    }

    fn share(&self, i: usize) -> f64 {
        self.examples.share * self.examples.problem.weight(i)
    }

    fn violations(&self, i: usize, w: &Weights, v: &mut [f64]) {
        let (rhs, factor) = self.term(i);
        v[0] = rhs - factor * self.examples.phi(i).dot(&w.as_slice()[self.block.base as usize..]);
    }

    fn slopes(&self, i: usize, direction: &Weights, slopes: &mut [f64]) {
        let (_, factor) = self.term(i);
        slopes[0] = -factor * self.examples.phi(i).dot(&direction.as_slice()[self.block.base as usize..]);
    }

    fn maximise(&self, i: usize, v: &mut [f64], a: &mut [f64], limits: Limits) {
        let (_, factor) = self.term(i);
        a[0] = block::maximise_one(v[0], a[0], factor * factor * self.examples.norms2[i], limits);
    }

    fn add(&self, i: usize, delta: &[f64], w: &mut [f64]) {
        let (_, factor) = self.term(i);
        self.examples.phi(i).add_to(factor * delta[0], &mut w[self.block.base as usize..]);
    }

    fn rhs(&self, i: usize, a: &[f64]) -> f64 {
        self.term(i).0 * a[0]
    }

    fn add_curvature(&self, i: usize, of: &[usize], j: impl Fn(usize, usize) -> f64, lower: &mut [f64]) {
        let [k] = *of else { return };
        let (_, factor) = self.term(i);
        let scale = factor * factor * j(k, k);
        let (phi, base, d) = (self.examples.phi(i), self.block.base as usize, self.block.len() as usize);
        debug_assert_eq!((base, lower.len()), (0, d * d));
        for (at, (row, x)) in phi.iter().enumerate() {
            let row = &mut lower[row as usize * d..][..d];
            let x = scale * f64::from(x);
            for (&column, &y) in phi.indices()[..=at].iter().zip(phi.values()) {
                row[column as usize] += x * f64::from(y);
            }
        }
    }

    fn norm2(&self, i: usize) -> f64 {
        self.examples.norms2[i]
    }

    fn prefetch(&self, i: usize) {
        self.examples.phi(i).prefetch();
    }
}

/// Many outputs: a dual variable for each, the truth's idle. `lhs_k = factor_k (phi in the truth's slot - phi in slot k)`.
pub(super) struct Slotted<'p, 'a, T: Task> {
    examples: Examples<'p, 'a, T>,
    block: Block,
    outputs: usize,
    /// By truth and output.
    rhs: Vec<f64>,
    factors: Vec<f64>,
    has_unit_factors: bool,
}

impl<'p, 'a, T: Task> Slotted<'p, 'a, T> {
    pub(super) fn new(
        problem: &'p Problem<'a, T>,
        listed: &'a dyn Listed<T>,
        stacked: &'a dyn Stacked<T>,
        block: Block,
        pool: &Pool,
    ) -> Self {
        let outputs = listed.count();
        let terms = (0..outputs).flat_map(|truth| {
            let losses = listed.losses(&listed.output(truth)).to_vec();
            losses.into_iter().map(|loss| problem.term(loss))
        });
        let (factors, rhs) = terms.map(|term| (term.factor, term.rhs)).unzip();
        let examples = Examples::new(problem, listed, stacked, pool);
        let has_unit_factors = problem.formulation().rescaling == Rescaling::Margin;
        Self { examples, block, outputs, rhs, factors, has_unit_factors }
    }

    fn row<'t>(&self, table: &'t [f64], truth: usize) -> &'t [f64] {
        &table[truth * self.outputs..][..self.outputs]
    }

    /// Slots and what phi is multiplied by there, for a change of the dual variables.
    fn moves(&self, truth: usize, delta: &[f64]) -> impl Iterator<Item = (usize, f64)> {
        let factors = self.row(&self.factors, truth);
        let at_truth: f64 = delta.iter().zip(factors).map(|(d, f)| d * f).sum();
        let others = delta.iter().zip(factors).enumerate().map(|(k, (d, f))| (k, -d * f));
        std::iter::once((truth, at_truth)).chain(others).filter(|m| m.1 != 0.0)
    }
}

impl<T: Task> Blocks for Slotted<'_, '_, T> {
    fn len(&self) -> usize {
        self.examples.problem.len()
    }

    fn width(&self) -> usize {
        self.outputs
    }

    fn share(&self, i: usize) -> f64 {
        self.examples.share * self.examples.problem.weight(i)
    }

    fn violations(&self, i: usize, w: &Weights, v: &mut [f64]) {
        let truth = self.examples.truth(i);
        w.scores(self.block, self.examples.phi(i), v);
        let at_truth = v[truth];
        if self.has_unit_factors {
            for (v, rhs) in v.iter_mut().zip(self.row(&self.rhs, truth)) {
                *v = rhs - (at_truth - *v);
            }
        } else {
            let terms = self.row(&self.rhs, truth).iter().zip(self.row(&self.factors, truth));
            for (v, (rhs, factor)) in v.iter_mut().zip(terms) {
                *v = rhs - factor * (at_truth - *v);
            }
        }
        v[truth] = f64::MIN;
    }

    fn slopes(&self, i: usize, direction: &Weights, slopes: &mut [f64]) {
        let truth = self.examples.truth(i);
        direction.scores(self.block, self.examples.phi(i), slopes);
        let at_truth = slopes[truth];
        for (slope, factor) in slopes.iter_mut().zip(self.row(&self.factors, truth)) {
            *slope = factor * (*slope - at_truth);
        }
    }

    fn maximise(&self, i: usize, v: &mut [f64], a: &mut [f64], limits: Limits) {
        let q = self.examples.norms2[i];
        if self.has_unit_factors {
            return block::maximise_stacked(v, a, q, limits);
        }
        let factors = self.row(&self.factors, self.examples.truth(i));
        let gram = |k: usize, l: usize| q * factors[k] * factors[l] * if k == l { 2.0 } else { 1.0 };
        block::maximise_pairs(v, a, gram, limits);
    }

    fn add(&self, i: usize, delta: &[f64], w: &mut [f64]) {
        let (phi, width) = (self.examples.phi(i), self.block.width as usize);
        if phi.is_empty() {
            return;
        }
        for (slot, scale) in self.moves(self.examples.truth(i), delta) {
            let w = &mut w[self.block.base as usize + slot..];
            for (j, x) in phi.iter() {
                w[j as usize * width] += scale * f64::from(x);
            }
        }
    }

    fn rhs(&self, i: usize, a: &[f64]) -> f64 {
        a.iter().zip(self.row(&self.rhs, self.examples.truth(i))).map(|(a, rhs)| a * rhs).sum()
    }

    fn add_curvature(&self, i: usize, of: &[usize], j: impl Fn(usize, usize) -> f64, lower: &mut [f64]) {
        // The outputs share phi, so the curvature is a small matrix over slots times phi phi'.
        const MOST: usize = 16;
        let truth = self.examples.truth(i);
        let factors = self.row(&self.factors, truth);
        let (phi, width, d) = (self.examples.phi(i), self.block.width as usize, self.block.len() as usize);
        let mut slots = [truth; MOST];
        let mut small = [[0.0; MOST]; MOST];
        let of = &of[..of.len().min(MOST - 1)];
        for (s, &k) in of.iter().enumerate() {
            slots[s + 1] = k;
            for (t, &l) in of.iter().enumerate() {
                let value = j(k, l) * factors[k] * factors[l];
                small[s + 1][t + 1] = value;
                small[0][t + 1] -= value;
                small[s + 1][0] -= value;
                small[0][0] += value;
            }
        }
        let count = of.len() + 1;
        for (at, (row, x)) in phi.iter().enumerate() {
            for (s, &slot) in slots[..count].iter().enumerate() {
                let row = &mut lower[(row as usize * width + slot) * d..][..d];
                let x = f64::from(x);
                for (&column, &y) in phi.indices()[..=at].iter().zip(phi.values()) {
                    let (xy, start) = (x * f64::from(y), column as usize * width);
                    for (t, &other) in slots[..count].iter().enumerate() {
                        row[start + other] += xy * small[s][t];
                    }
                }
            }
        }
    }

    fn norm2(&self, i: usize) -> f64 {
        self.examples.norms2[i]
    }

    fn prefetch(&self, i: usize) {
        self.examples.phi(i).prefetch();
    }
}

/// The limits of example i's block where C counts `stage` times.
pub(super) fn limits(blocks: &impl Blocks, penalty: Penalty, i: usize, stage: f64) -> Limits {
    Limits::new(penalty, stage * blocks.share(i))
}
