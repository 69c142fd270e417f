//! Examples whose outputs place phi in several slots each: `lhs_k = factor_k phi (x) (Lambda(truth) - Lambda(k))`.
//!
//! Outputs share slots, so their inner products are those of the rows of Lambda and no threshold solves a block. It is
//! solved over a few outputs at a time by exchanging weight between two, those that gain most joining until none would.

use super::block::{self, Limits, Look};
use super::slots::{self, Rows};
use super::stack::{Blocks, Example, Source};
use crate::features::Block;
use crate::problem::{Classes, Penalty, Rescaling, Term};
use crate::task::Lambda;
use crate::weights::Weights;

/// Blocks of so few outputs are solved over all of them at once.
const FEW: usize = 16;
/// So many outputs join at a time.
const JOIN: usize = 4;
/// At most so often.
const ROUNDS: usize = 100;
/// As long as outputs join, pairs exchange weight until so much of their gain is left.
const ROUGH: f64 = 0.1;
/// An output joins that would gain more than this share of the first gain.
const JOINING: f64 = 1e-10;
/// With so many slots at most, w is changed in all at once where many change.
const NEAR: usize = 256;
/// Of more outputs than that, some are left out of the curvature: the step is a little less than Newton's, no less downhill.
const MOST_CURVED: usize = 15;

/// Many outputs: a dual variable for each, the truth's idle.
pub(super) struct Rowed<'a> {
    examples: Classes<'a>,
    block: Block,
    lambda: &'a Lambda,
}

/// Where it works.
#[derive(Default)]
pub(super) struct Room {
    losses: Vec<f64>,
    of_slots: Vec<f64>,
    scores: Vec<f64>,
    /// Slots that matter, and a number for each of all slots, zero between two uses.
    slots: Vec<u32>,
    change: Vec<f64>,
    /// The outputs that a block is solved over: places among those asked for, terms, inner products of the truth's row with
    /// theirs, and of their rows less the truth's, below the diagonal.
    active: Vec<usize>,
    terms: Vec<Term>,
    with_truth: Vec<f64>,
    inner: Vec<f64>,
    /// Their violations, variables and left sides' inner products.
    v: Vec<f64>,
    a: Vec<f64>,
    gram: Vec<f64>,
}

impl Room {
    /// Solves the block over the active outputs, and leaves what they changed by in `self.v`.
    fn solve(&mut self, norm2: f64, limits: Limits, precision: f64, v: &[f64], a: &mut [f64]) {
        let count = self.active.len();
        self.gram.resize(count * count, 0.0);
        let mut inner = self.inner.iter();
        for k in 0..count {
            for (l, &inner) in (0..=k).zip(&mut inner) {
                let value = norm2 * self.terms[k].factor * self.terms[l].factor * inner;
                self.gram[k * count + l] = value;
                self.gram[l * count + k] = value;
            }
        }
        self.v.clear();
        self.v.extend(self.active.iter().map(|&k| v[k]));
        self.a.clear();
        self.a.extend(self.active.iter().map(|&k| a[k]));
        // As read in the loop over all outputs: l stays, k runs along a row.
        block::maximise_pairs(&mut self.v, &mut self.a, |k, l| self.gram[l * count + k], limits, precision);
        for ((&k, &new), change) in self.active.iter().zip(&self.a).zip(&mut self.v) {
            *change = new - std::mem::replace(&mut a[k], new);
        }
    }
}

impl<'a> Rowed<'a> {
    pub(super) fn new(examples: Classes<'a>, block: Block, lambda: &'a Lambda) -> Self {
        Self { examples, block, lambda }
    }

    /// The constraint of output k.
    fn term(&self, truth: usize, k: u32) -> Term {
        self.examples.formulation.term(self.examples.losses.of(truth, k as usize))
    }

    /// The output at that place among those asked for becomes active.
    fn activate(&self, example: &Example<'_>, of: &[u32], place: usize, room: &mut Room) {
        let (t, k) = (example.truth, of[place] as usize);
        let with_truth = self.lambda.inner(t, k);
        room.active.push(place);
        room.terms.push(self.term(t, k as u32));
        room.with_truth.push(with_truth);
        let own = self.lambda.inner(t, t) - with_truth;
        for (&other, with_truth) in room.active.iter().zip(&room.with_truth) {
            room.inner.push(own - with_truth + self.lambda.inner(k, of[other] as usize));
        }
    }

    /// Up to [`JOIN`] outputs that are not active become so, those with the largest violation above `least`.
    fn join(&self, example: &Example<'_>, of: &[u32], least: f64, room: &mut Room, v: &[f64]) -> bool {
        let mut best: [Option<usize>; JOIN] = [None; JOIN];
        let value = |place: Option<usize>| place.map_or(least, |k| v[k]);
        for (k, &own) in v.iter().enumerate() {
            if own > value(best[JOIN - 1]) && !room.active.contains(&k) {
                let at = best.iter().position(|&other| own > value(other)).unwrap_or(JOIN - 1);
                best[at..].rotate_right(1);
                best[at] = Some(k);
            }
        }
        for k in best.into_iter().flatten() {
            self.activate(example, of, k, room);
        }
        best[0].is_some()
    }

    /// What the active outputs' change, in `room.v`, does to all violations.
    fn follow(&self, example: &Example<'_>, of: &[u32], room: &mut Room, v: &mut [f64]) {
        let Room { active, terms, v: changes, of_slots, scores, losses, .. } = room;
        of_slots.clear();
        of_slots.resize(self.block.width as usize, 0.0);
        for ((&k, term), change) in active.iter().zip(&*terms).zip(&*changes) {
            let scale = example.norm2 * term.factor * change;
            if scale != 0.0 {
                self.lambda.each_difference(example.truth, of[k] as usize, |slot, value| {
                    of_slots[slot as usize] += scale * value;
                });
            }
        }
        scores.resize(self.lambda.len(), 0.0);
        self.lambda.outputs(of_slots, scores);
        let (at_truth, formulation) = (scores[example.truth], self.examples.formulation);
        if formulation.rescaling == Rescaling::Margin {
            for (v, &k) in v.iter_mut().zip(of) {
                *v -= at_truth - scores[k as usize];
            }
        } else {
            let losses = self.examples.losses.row(example.truth, losses);
            for (v, &k) in v.iter_mut().zip(of) {
                *v -= formulation.term(losses[k as usize]).factor * (at_truth - scores[k as usize]);
            }
        }
    }
}

impl Blocks for Rowed<'_> {
    type Room = Room;

    fn len(&self) -> usize {
        self.examples.len()
    }

    fn width(&self) -> usize {
        self.lambda.len()
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

    fn violations(&self, example: &Example<'_>, w: &Weights, room: &mut Room, v: &mut [f64]) {
        room.of_slots.resize(self.block.width as usize, 0.0);
        w.scores(self.block, example.phi, &mut room.of_slots);
        self.lambda.outputs(&mut room.of_slots, v);
        let (at_truth, f) = (v[example.truth], self.examples.formulation);
        let losses = self.examples.losses.row(example.truth, &mut room.losses);
        if f.rescaling == Rescaling::Margin && f.penalty != Penalty::Quadratic {
            for (v, loss) in v.iter_mut().zip(losses) {
                *v = f.loss_scale * loss - (at_truth - *v);
            }
        } else {
            for (v, &loss) in v.iter_mut().zip(losses) {
                *v = f.term(loss).violation(at_truth - *v);
            }
        }
        v[example.truth] = f64::MIN;
    }

    fn violations_of(&self, example: &Example<'_>, of: &[u32], w: &Weights, room: &mut Room, v: &mut [f64]) {
        self.slopes_of(example, of, w, room, v);
        for (v, &k) in v.iter_mut().zip(of) {
            *v += self.term(example.truth, k).rhs;
        }
    }

    fn slopes_of(&self, example: &Example<'_>, of: &[u32], direction: &Weights, room: &mut Room, slopes: &mut [f64]) {
        let Room { slots, of_slots, .. } = room;
        slots.clear();
        slots.extend_from_slice(self.lambda.row(example.truth).0);
        for &k in of {
            slots.extend_from_slice(self.lambda.row(k as usize).0);
        }
        slots.sort_unstable();
        slots.dedup();
        of_slots.resize(slots.len(), 0.0);
        let w = &direction.as_slice()[self.block.base as usize..];
        slots::scores(w, self.block.width as usize, example.phi, slots, &mut of_slots[..slots.len()]);
        for (slope, &k) in slopes.iter_mut().zip(of) {
            let (mut margin, mut at) = (0.0, 0);
            self.lambda.each_difference(example.truth, k as usize, |slot, value| {
                at += slots[at..].partition_point(|&s| s < slot);
                margin += value * of_slots[at];
            });
            *slope = -self.term(example.truth, k).factor * margin;
        }
    }

    fn slopes(&self, example: &Example<'_>, direction: &Weights, room: &mut Room, slopes: &mut [f64]) {
        room.of_slots.resize(self.block.width as usize, 0.0);
        direction.scores(self.block, example.phi, &mut room.of_slots);
        self.lambda.outputs(&mut room.of_slots, slopes);
        let (at_truth, formulation) = (slopes[example.truth], self.examples.formulation);
        let losses = self.examples.losses.row(example.truth, &mut room.losses);
        for (slope, &loss) in slopes.iter_mut().zip(losses) {
            *slope = formulation.term(loss).factor * (*slope - at_truth);
        }
    }

    fn look(&self, v: &[f64], a: &[f64], limits: Limits) -> Look {
        block::look(v, a, limits)
    }

    fn maximise(
        &self,
        example: &Example<'_>,
        of: &[u32],
        limits: Limits,
        room: &mut Room,
        v: &mut [f64],
        a: &mut [f64],
    ) {
        let is_small = of.len() <= FEW;
        room.active.clear();
        room.terms.clear();
        room.with_truth.clear();
        room.inner.clear();
        // The truth is among all outputs, not among those with weight.
        for k in (0..of.len()).filter(|&k| of[k] as usize != example.truth && (is_small || a[k] > 0.0)) {
            self.activate(example, of, k, room);
        }
        if is_small {
            return room.solve(example.norm2, limits, block::PRECISION, v, a);
        }
        let (mut first, mut is_solved) = (None, false);
        for _ in 0..ROUNDS {
            let sum: f64 = room.active.iter().map(|&k| a[k]).sum();
            let shift = limits.ridge * sum;
            let level = if limits.is_full(sum) { f64::INFINITY } else { shift };
            let level = room.active.iter().filter(|&&k| a[k] > 0.0).fold(level, |least, &k| least.min(v[k]));
            let highest = v.iter().copied().fold(shift, f64::max);
            let least = level.max(shift) + JOINING * *first.get_or_insert(highest - level);
            let joined = self.join(example, of, least, room, v);
            if !joined && is_solved {
                return;
            }
            room.solve(example.norm2, limits, if joined { ROUGH } else { block::PRECISION }, v, a);
            self.follow(example, of, room, v);
            is_solved = !joined;
        }
    }

    fn block(&self) -> Block {
        self.block
    }

    fn add_to_rows(&self, example: &Example<'_>, of: &[u32], delta: &[f64], room: &mut Room, rows: &mut Rows<'_>) {
        let width = self.block.width as usize;
        let Room { slots, change, scores, .. } = room;
        change.resize(width, 0.0);
        slots.clear();
        for (&k, &delta) in of.iter().zip(delta).filter(|e| *e.1 != 0.0) {
            let scale = self.term(example.truth, k).factor * delta;
            self.lambda.each_difference(example.truth, k as usize, |slot, value| {
                slots.push(slot);
                change[slot as usize] += scale * value;
            });
        }
        slots.sort_unstable();
        slots.dedup();
        if width <= NEAR && 4 * slots.len() >= width {
            slots::add_to_all(rows, example.phi, change);
        } else {
            scores.clear();
            scores.extend(slots.iter().map(|&slot| change[slot as usize]));
            slots::add(rows, width, example.phi, slots, scores);
        }
        for &slot in &*slots {
            change[slot as usize] = 0.0;
        }
    }

    fn rhs(&self, example: &Example<'_>, of: &[u32], a: &[f64]) -> f64 {
        of.iter().zip(a).filter(|e| *e.1 != 0.0).map(|(&k, a)| a * self.term(example.truth, k).rhs).sum()
    }

    fn add_curvature(&self, example: &Example<'_>, of: &[u32], j: impl Fn(u32, u32) -> f64, lower: &mut [f64]) {
        let of = &of[..of.len().min(MOST_CURVED)];
        let (phi, width, d) = (example.phi, self.block.width as usize, self.examples.dimension);
        // The outputs' rows of differences, over the slots where any of them differs.
        let mut entries: Vec<(u32, usize, f64)> = Vec::new();
        for (row, &k) in of.iter().enumerate() {
            let factor = self.term(example.truth, k).factor;
            self.lambda
                .each_difference(example.truth, k as usize, |slot, value| entries.push((slot, row, factor * value)));
        }
        let mut slots: Vec<u32> = entries.iter().map(|e| e.0).collect();
        slots.sort_unstable();
        slots.dedup();
        let mut rows = vec![0.0; of.len() * slots.len()];
        for &(slot, row, value) in &entries {
            let at = slots.partition_point(|&s| s < slot);
            rows[row * slots.len() + at] = value;
        }
        // rows' J rows, times phi phi'.
        let row_of = |row: usize| &rows[row * slots.len()..][..slots.len()];
        let mut small = vec![0.0; slots.len() * slots.len()];
        for (row, &k) in of.iter().enumerate() {
            for (other, &l) in of.iter().enumerate() {
                let scale = j(k, l);
                for (small, a) in small.chunks_exact_mut(slots.len()).zip(row_of(row)).filter(|e| *e.1 != 0.0) {
                    small.iter_mut().zip(row_of(other)).for_each(|(s, b)| *s += scale * a * b);
                }
            }
        }
        let base = self.block.base as usize;
        for (at, (row, x)) in phi.iter().enumerate() {
            for (&slot, small) in slots.iter().zip(small.chunks_exact(slots.len())) {
                let row = &mut lower[(base + row as usize * width + slot as usize) * d + base..];
                for (&column, &y) in phi.indices()[..=at].iter().zip(phi.values()) {
                    let xy = f64::from(x) * f64::from(y);
                    let row = &mut row[column as usize * width..][..width];
                    slots.iter().zip(small).for_each(|(&other, small)| row[other as usize] += xy * small);
                }
            }
        }
    }
}
