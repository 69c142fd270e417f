//! Exact steps on one block after the other, in random order, without those that have come to rest.

use serde::{Deserialize, Serialize};

use super::block::{Limits, Way};
use super::stack::Blocks;
use crate::error::Result;
use crate::memory::prefetch;
use crate::parallel::{Pool, ranges};
use crate::problem::Penalty;
use crate::random::Random;
use crate::solver::state::{check, check_weights, is_sound};
use crate::sparse::dot;
use crate::weights::Weights;

mod face;

use face::Face;

pub(super) use face::{Climb, End};

/// Examples are brought near so many steps before their turn.
const AHEAD: usize = 8;

/// From `FEW` examples on, the order is that of runs of neighbours, which share lines of memory: `IN_TURNS` runs, drawn at
/// random, give one example each in turn, since neighbours in a file are often alike and a step on one undoes that on the other.
const RUN: usize = 8;
const IN_TURNS: usize = 256;
const FEW: usize = 4096;

/// A block leaves when it rests in its corner by more than this share of the largest unrest of the last pass. Far below 1: who
/// left too early is back after the next exact pass, and that is rare; passes over few examples are cheap.
const PATIENCE: f64 = 0.03;

/// A multiple of the variables smaller than that is not worth it.
const WORTH_SCALING: f64 = 2.0;

/// An example that was taken out of the order in the middle of a pass.
const GONE: u32 = u32::MAX;

/// The dual variables, and which of them still move: all that decides the next pass.
#[derive(Serialize, Deserialize)]
pub(super) struct Variables {
    /// The width of the blocks for each example.
    pub(super) a: Vec<f64>,
    /// `sum a lhs`, where Newton's method has not moved it on.
    pub(super) w: Weights,
    /// `sum a rhs`
    rhs: f64,
    /// C counts so many times; 1 but for the start.
    stage: f64,
    /// The examples that take part, ascending.
    active: Vec<u32>,
    /// A block that sits in a corner leaves when its gradient there exceeds the next one by more than that: [on the truth, on
    /// another output].
    patience: [f64; 2],
    random: Random,
}

/// The variables, and what passes over them need.
pub(super) struct Coordinates<'b, B: Blocks> {
    blocks: &'b B,
    penalty: Penalty,
    pub(super) now: Variables,
    v: Vec<f64>,
    change: Vec<f64>,
    /// The outputs with weight of one example, and their weights.
    support: Vec<u32>,
    own: Vec<f64>,
    /// All outputs.
    all: Vec<u32>,
    room: B::Room,
    /// Where runs begin, and the order of a pass: positions among those that take part.
    runs: Vec<u32>,
    order: Vec<u32>,
    face: Face,
}

/// What a pass saw on its way, each block at another w.
pub(super) struct Seen {
    /// Blocks looked at.
    pub(super) looks: u64,
    /// Sum of their gaps.
    pub(super) gap: f64,
}

/// The certificate at w.
pub(super) struct Exact {
    pub(super) primal: f64,
    pub(super) dual: f64,
    /// Dual variables that are not zero.
    pub(super) support: usize,
}

impl<'b, B: Blocks> Coordinates<'b, B> {
    pub(super) fn new(blocks: &'b B, penalty: Penalty, dimension: usize, seed: u64) -> Self {
        let mut start = Self::at(
            blocks,
            penalty,
            Variables {
                a: vec![0.0; blocks.width() * blocks.len()],
                w: Weights::zeros(dimension),
                rhs: 0.0,
                stage: 1.0,
                active: Vec::new(),
                patience: [f64::INFINITY; 2],
                random: Random::new(seed),
            },
        );
        start.wake_all();
        start
    }

    /// From these variables.
    pub(super) fn from_variables(blocks: &'b B, penalty: Penalty, dimension: usize, seed: u64, a: Vec<f64>) -> Self {
        let mut start = Self::new(blocks, penalty, dimension, seed);
        start.now.a = a;
        start.rebuild();
        start
    }

    fn at(blocks: &'b B, penalty: Penalty, now: Variables) -> Self {
        let width = blocks.width();
        Self {
            blocks,
            penalty,
            now,
            v: vec![0.0; width],
            change: vec![0.0; width],
            support: Vec::with_capacity(width),
            own: Vec::with_capacity(width),
            all: (0..width as u32).collect(),
            room: B::Room::default(),
            runs: Vec::new(),
            order: Vec::new(),
            face: Face::default(),
        }
    }

    /// From where a run was saved.
    pub(super) fn resume(blocks: &'b B, penalty: Penalty, dimension: usize, now: Variables) -> Result<Self> {
        check(now.a.len() == blocks.width() * blocks.len(), "dual variables")?;
        check(now.a.iter().all(|&a| a >= 0.0 && is_sound(a)), "dual variables")?;
        check_weights(&now.w, dimension)?;
        check(now.stage > 0.0 && now.stage <= 1.0 && is_sound(now.rhs), "stage")?;
        let is_block = |i: usize| i < blocks.len() && blocks.share(i) > 0.0;
        let ascend = now.active.is_sorted_by(|a, b| a < b);
        check(ascend && now.active.iter().all(|&i| is_block(i as usize)), "active examples")?;
        check(now.patience.iter().all(|p| *p >= 0.0), "patience")?;
        Ok(Self::at(blocks, penalty, now))
    }

    /// Checks variables that came from outside: they are feasible, and w is the vector that they make, where Newton's method
    /// has not moved it on (`w_follows`). Returns D at that vector.
    ///
    /// `growth`: what C has been multiplied by since they were saved.
    pub(super) fn rederive(&self, growth: f64, w_follows: bool) -> Result<(f64, f64)> {
        /// Relative errors that running sums may have, of w itself and of the terms that cancel in it.
        const ROUNDING: f64 = 1e-9;
        const ROUNDING_OF_TERMS: f64 = 1e-12;
        let (blocks, width) = (self.blocks, self.blocks.width());
        let (mut mass, mut ridges) = (0.0, 0.0);
        for i in 0..blocks.len() {
            let example = blocks.example(i);
            let limits = example.limits(self.penalty, 1.0);
            let sum: f64 = self.now.a[i * width..][..width].iter().sum();
            check(sum <= limits.cap / growth * (1.0 + ROUNDING), "dual variables")?;
            mass += sum * example.norm2.sqrt();
            ridges += if sum > 0.0 { 0.5 * limits.ridge * sum * sum } else { 0.0 };
        }
        let fresh = Self::from_variables(blocks, self.penalty, self.now.w.len(), 0, self.now.a.clone());
        let (a, b) = (fresh.now.w.as_slice(), self.now.w.as_slice());
        let largest = a.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        let error = ROUNDING * largest + ROUNDING_OF_TERMS * mass;
        check(!w_follows || a.iter().zip(b).all(|(a, b)| (a - b).abs() <= error), "weights")?;
        let norm2 = dot(a, a);
        Ok((fresh.now.rhs - ridges - 0.5 * norm2, fresh.now.rhs.abs() + ridges + norm2))
    }

    /// All examples take part again.
    pub(super) fn wake_all(&mut self) {
        let blocks = self.blocks;
        self.now.active.clear();
        // Without weight an example has no block.
        self.now.active.extend((0..blocks.len() as u32).filter(|&i| blocks.share(i as usize) > 0.0));
        self.now.patience = [f64::INFINITY; 2];
    }

    /// None takes part until all are woken, and nothing is kept for passes.
    pub(super) fn rest(&mut self) {
        (self.now.active, self.order, self.runs) = (Vec::new(), Vec::new(), Vec::new());
        self.face = Face::default();
    }

    /// Looks that the next pass will take.
    pub(super) fn looks_of_a_pass(&self) -> u64 {
        self.now.active.len() as u64
    }

    /// C counts `stage` times from now on.
    pub(super) fn set_stage(&mut self, stage: f64) {
        self.now.stage = stage;
    }

    /// One step on each block that takes part.
    pub(super) fn pass(&mut self) -> Seen {
        let width = self.blocks.width();
        let (mut seen, mut unrest, mut left) =
            (Seen { looks: self.now.active.len() as u64, gap: 0.0 }, [0.0; 2], false);
        self.draw_order();
        for at in 0..self.order.len() {
            self.look_ahead(at);
            let i = self.now.active[self.order[at] as usize] as usize;
            let example = self.blocks.example(i);
            let limits = example.limits(self.penalty, self.now.stage);
            let a = &mut self.now.a[i * width..][..width];
            self.blocks.violations(&example, &self.now.w, &mut self.room, &mut self.v);
            let look = self.blocks.look(&self.v, a, limits);
            let way = usize::from(look.way == Way::Up);
            if look.rest > self.now.patience[way] {
                self.now.active[self.order[at] as usize] = GONE;
                left = true;
                continue;
            }
            seen.gap += look.gap;
            if look.unrest > unrest[way] {
                unrest[way] = look.unrest;
            }
            if look.unrest <= f64::EPSILON * look.h {
                continue;
            }
            self.change.copy_from_slice(a);
            self.blocks.maximise(&example, &self.all, limits, &mut self.room, &mut self.v, a);
            if became_change(&mut self.change, a) {
                self.now.rhs += self.blocks.rhs(&example, &self.all, &self.change);
                self.blocks.add(&example, &self.all, &self.change, &mut self.room, self.now.w.as_mut_slice());
            }
        }
        if left {
            self.now.active.retain(|&i| i != GONE);
        }
        self.now.patience = unrest.map(|u| if u > 0.0 { PATIENCE * u } else { f64::INFINITY });
        seen
    }

    /// One step on each block that takes part, among the outputs that have weight: far cheaper than a full one where there are
    /// many outputs. The gap seen is that of the problem with no other outputs.
    pub(super) fn pass_on_support(&mut self) -> Seen {
        let width = self.blocks.width();
        let mut seen = Seen { looks: 0, gap: 0.0 };
        self.draw_order();
        for at in 0..self.order.len() {
            self.look_ahead(at);
            let i = self.now.active[self.order[at] as usize] as usize;
            let block = &mut self.now.a[i * width..][..width];
            self.support.clear();
            self.own.clear();
            for (k, &a) in block.iter().enumerate().filter(|e| *e.1 > 0.0) {
                self.support.push(k as u32);
                self.own.push(a);
            }
            let count = self.support.len();
            if count == 0 {
                continue;
            }
            seen.looks += 1;
            let example = self.blocks.example(i);
            let limits = example.limits(self.penalty, self.now.stage);
            let (v, change) = (&mut self.v[..count], &mut self.change[..count]);
            self.blocks.violations_of(&example, &self.support, &self.now.w, &mut self.room, v);
            let look = self.blocks.look(v, &self.own, limits);
            seen.gap += look.gap;
            if look.unrest <= f64::EPSILON * look.h {
                continue;
            }
            change.copy_from_slice(&self.own);
            self.blocks.maximise(&example, &self.support, limits, &mut self.room, v, &mut self.own);
            if became_change(change, &self.own) {
                for (&k, &a) in self.support.iter().zip(&self.own) {
                    block[k as usize] = a;
                }
                self.now.rhs += self.blocks.rhs(&example, &self.support, change);
                self.blocks.add(&example, &self.support, change, &mut self.room, self.now.w.as_mut_slice());
            }
        }
        seen
    }

    /// The order of the next pass, as positions among those that take part.
    fn draw_order(&mut self) {
        let count = self.now.active.len() as u32;
        self.order.clear();
        if (count as usize) < FEW {
            self.order.extend(0..count);
            self.now.random.shuffle(&mut self.order);
            return;
        }
        self.runs.clear();
        self.runs.extend((0..count).step_by(RUN));
        self.now.random.shuffle(&mut self.runs);
        for group in self.runs.chunks(IN_TURNS) {
            for at in 0..RUN as u32 {
                self.order.extend(group.iter().map(|&start| start + at).filter(|&position| position < count));
            }
        }
    }

    /// Brings an example near whose turn comes soon.
    fn look_ahead(&self, at: usize) {
        // First where its entries lie, then the entries.
        if let Some(&next) = self.order.get(at + 2 * AHEAD) {
            let next = self.now.active[next as usize];
            self.blocks.prefetch(next as usize);
            prefetch(&self.now.a[next as usize * self.blocks.width()]);
        }
        if let Some(&next) = self.order.get(at + AHEAD) {
            let next = self.now.active[next as usize];
            self.blocks.example(next as usize).phi.prefetch();
        }
    }

    /// P and D at w, and the examples that take part from now on: those that do not rest in a corner.
    pub(super) fn certify(&mut self, pool: &Pool) -> Exact {
        const PARTS: usize = 64;
        struct Part {
            slack: f64,
            dual: f64,
            support: usize,
            active: Vec<u32>,
        }
        let (blocks, width) = (self.blocks, self.blocks.width());
        let parts = pool.map(ranges(blocks.len(), PARTS), |range| {
            let mut part = Part { slack: 0.0, dual: 0.0, support: 0, active: Vec::new() };
            let (mut v, mut room) = (vec![0.0; width], B::Room::default());
            for i in range {
                let example = blocks.example(i);
                if example.share == 0.0 {
                    continue;
                }
                let limits = example.limits(self.penalty, 1.0);
                let a = &self.now.a[i * width..][..width];
                blocks.violations(&example, &self.now.w, &mut room, &mut v);
                let look = blocks.look(&v, a, limits);
                let sum: f64 = a.iter().sum();
                part.slack += example.share * if limits.ridge > 0.0 { 0.5 * look.h * look.h } else { look.h };
                part.dual += blocks.rhs(&example, &self.all, a) - 0.5 * limits.ridge * sum * sum;
                part.support += a.iter().filter(|a| **a > 0.0).count();
                if look.rest <= self.now.patience[usize::from(look.way == Way::Up)] {
                    part.active.push(i as u32);
                }
            }
            part
        });
        let half_norm2 = 0.5 * dot(self.now.w.as_slice(), self.now.w.as_slice());
        let mut exact = Exact { primal: half_norm2, dual: -half_norm2, support: 0 };
        self.now.active.clear();
        for mut part in parts {
            exact.primal += part.slack;
            exact.dual += part.dual;
            exact.support += part.support;
            self.now.active.append(&mut part.active);
        }
        self.now.patience = [f64::INFINITY; 2];
        exact
    }

    /// `sum a rhs` and `|w|^2`: the dual along multiples t of all variables is `t sum - t^2/2 |w|^2`, but for the ridge.
    pub(super) fn totals(&self) -> (f64, f64) {
        (self.now.rhs, dot(self.now.w.as_slice(), self.now.w.as_slice()))
    }

    /// C counts for more from now on, and the variables are multiplied by what is best for the dual value; once that is little, C
    /// counts as it is. Is that so?
    pub(super) fn raise_stage(&mut self) -> bool {
        let (rhs, norm2) = self.totals();
        let (best, most) = (rhs / norm2, 1.0 / self.now.stage);
        let goes_on = best >= WORTH_SCALING && best < most;
        if goes_on {
            self.scale(best);
        } else {
            if best >= most {
                self.scale(most);
            }
            self.now.stage = 1.0;
        }
        self.wake_all();
        !goes_on
    }

    /// Multiplies all variables, and C with them.
    fn scale(&mut self, factor: f64) {
        let (old, new) = (self.now.stage, self.now.stage * factor);
        self.multiply(factor, |share| (old * share, new * share));
        self.now.w.as_mut_slice().iter_mut().for_each(|w| *w *= factor);
        self.now.rhs *= factor;
        self.now.stage = new;
    }

    /// Multiplies the variables. `shares` tells old and new share of C of an example from the problem's.
    fn multiply(&mut self, factor: f64, shares: impl Fn(f64) -> (f64, f64)) {
        let (blocks, width) = (self.blocks, self.blocks.width());
        for (i, block) in self.now.a.chunks_exact_mut(width).enumerate() {
            let (old, new) = shares(blocks.share(i));
            let [old, new] = [old, new].map(|share| Limits::new(self.penalty, share).cap);
            for a in block {
                // At the cap to the last digit, so that the corner is known as one.
                *a = if *a == old { new } else { (*a * factor).min(new) };
            }
        }
    }

    /// C has grown by this factor (or shrunk): the variables that are best among their multiples, or stay where that is little.
    pub(super) fn follow_c(&mut self, growth: f64) {
        // Newton's method may have moved w on, and a start at small C be under way.
        self.rebuild();
        let growth = growth / self.now.stage;
        self.now.stage = 1.0;
        let (rhs, norm2) = self.totals();
        let best = if self.penalty == Penalty::Quadratic { growth } else { rhs / norm2 };
        if growth < 1.0 {
            self.multiply(growth, |share| (share / growth, share));
        } else if best >= WORTH_SCALING {
            let factor = best.min(growth);
            self.multiply(factor, |share| {
                (share / growth, if factor == growth { share } else { share / growth * factor })
            });
        }
        self.rebuild();
        self.wake_all();
    }

    /// w from the variables alone: after many steps the running sum has drifted.
    pub(super) fn rebuild(&mut self) {
        let width = self.blocks.width();
        self.now.w.as_mut_slice().fill(0.0);
        self.now.rhs = 0.0;
        for i in 0..self.blocks.len() {
            let a = &self.now.a[i * width..][..width];
            if a.iter().any(|a| *a > 0.0) {
                let example = self.blocks.example(i);
                self.now.rhs += self.blocks.rhs(&example, &self.all, a);
                self.blocks.add(&example, &self.all, a, &mut self.room, self.now.w.as_mut_slice());
            }
        }
    }
}

/// Makes of the variables before and after a step what they changed by. False where nothing did.
fn became_change(before: &mut [f64], after: &[f64]) -> bool {
    let mut moved = false;
    for (before, after) in before.iter_mut().zip(after) {
        *before = after - *before;
        moved |= *before != 0.0;
    }
    moved
}
