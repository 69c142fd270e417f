//! Chains of T variables with K labels each: tables of scores, and the best labelling (Viterbi).
//!
//! ```text
//! score(y) = sum_t unary[t][y_t] + sum_{t>0} pair[t][y_{t-1}][y_t] + sum_{t>1} triple[y_{t-2}][y_{t-1}][y_t]
//! ```
//!
//! The last sum is there with [`Order::Second`] only. Whatever else depends on the place (scores of the first and of the
//! last label, a loss that adds up) is added to the unary scores, and minus infinity forbids.
//!
//! A *state* is what the next step depends on: a label, or with the second order a pair of labels from the second variable
//! on. States stand in rows of K labels, each row padded to a multiple of four, so that the inner loop
//!
//! ```text
//! next[c] = max_s  last[s] + scores[s][c]
//! ```
//!
//! is an addition and a maximum of whole vectors, and only over the states s that can be of any avail ([`search`]). No back
//! pointers are kept: the way back looks for the maximum once more, K additions a variable where the way forth took up to
//! K^2. Ties go to the earlier label.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

use pulp::{Arch, Simd, WithSimd};

mod counted;
mod margins;
mod n_best;
mod search;

use search::{Search, Way};

pub use counted::{Counts, can_count};

/// On how many labels before it does a label depend?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// On the last one.
    #[default]
    First,
    /// On the last two.
    Second,
}

/// Are the pair scores the same at every step?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pairs {
    /// One table for all.
    #[default]
    Same,
    /// One table for each step.
    EachStep,
}

/// Labels that are worked on side by side at least.
const LANES: usize = 4;

/// The tables, to be filled, and the room in which they are worked on. Made once and filled again and again: a warm chain
/// allocates nothing.
#[derive(Debug, Default)]
pub struct Chain {
    labels: usize,
    /// The length of a row: `labels`, padded.
    stride: usize,
    len: usize,
    order: Order,
    pairs: Pairs,
    /// A row for each variable.
    unary: Vec<f64>,
    /// K rows; or K for each step, the first variable's being unused.
    pair: Vec<f64>,
    /// K K rows.
    triple: Vec<f64>,
    /// The best scores of all states: of each variable, one after the other.
    forth: Vec<f64>,
    /// The best that can follow upon them.
    back: Vec<f64>,
    search: Search,
}

/// The states of one variable that a row of states of the next one can come from: `count` of them.
#[derive(Debug, Clone, Copy)]
struct Sources {
    /// The first one's place among the states, and the distance to the next.
    state: usize,
    step: usize,
    /// The first one's row of scores, and the distance to the next.
    row: usize,
    row_step: usize,
    count: usize,
}

/// The way forth, in the widest vectors that the machine has. The bits do not depend on them: there are additions and
/// maxima only, each label's in the same order.
struct Forth<'c> {
    chain: &'c Chain,
    table: &'c mut [f64],
    search: &'c mut Search,
}

impl WithSimd for Forth<'_> {
    type Output = ();

    // What is inlined here is compiled once for each kind of machine.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.chain.fill_forth(self.table, self.search);
    }
}

impl Chain {
    /// Room for `len` variables with `labels` labels each. All scores must be filled in then.
    pub fn resize(&mut self, labels: usize, len: usize, order: Order, pairs: Pairs) {
        let stride = labels.next_multiple_of(LANES);
        (self.labels, self.stride, self.len, self.order, self.pairs) = (labels, stride, len, order, pairs);
        // Padding is read but never chosen: what stands there is of no matter.
        self.unary.resize(len * stride, 0.0);
        let steps = if pairs == Pairs::Same { 1 } else { len };
        self.pair.resize(steps * labels * stride, 0.0);
        self.triple.resize(if order == Order::Second { labels * labels * stride } else { 0 }, 0.0);
    }

    /// Number of variables.
    pub fn len(&self) -> usize {
        self.len
    }

    /// No variable?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of labels.
    pub fn labels(&self) -> usize {
        self.labels
    }

    /// The unary scores of variable t.
    pub fn unary(&self, t: usize) -> &[f64] {
        &self.unary[t * self.stride..][..self.labels]
    }

    /// The same, to be filled in.
    pub fn unary_mut(&mut self, t: usize) -> &mut [f64] {
        &mut self.unary[t * self.stride..][..self.labels]
    }

    /// All unary scores, to be filled in, and the distance from those of a variable to those of the next.
    pub fn all_unary_mut(&mut self) -> (&mut [f64], usize) {
        (&mut self.unary, self.stride)
    }

    /// The scores of all labels after label `a`, at variable t > 0; with [`Pairs::Same`] t is of no matter.
    pub fn pair(&self, t: usize, a: usize) -> &[f64] {
        &self.pair[self.pair_row(t, a) * self.stride..][..self.labels]
    }

    /// The same, to be filled in.
    pub fn pair_mut(&mut self, t: usize, a: usize) -> &mut [f64] {
        let row = self.pair_row(t, a);
        &mut self.pair[row * self.stride..][..self.labels]
    }

    fn pair_row(&self, t: usize, a: usize) -> usize {
        if self.pairs == Pairs::Same { a } else { t * self.labels + a }
    }

    /// The scores of all labels after `a` and then `b`.
    pub fn triple(&self, a: usize, b: usize) -> &[f64] {
        &self.triple[(a * self.labels + b) * self.stride..][..self.labels]
    }

    /// The same, to be filled in.
    pub fn triple_mut(&mut self, a: usize, b: usize) -> &mut [f64] {
        &mut self.triple[(a * self.labels + b) * self.stride..][..self.labels]
    }

    /// The score of a labelling.
    pub fn score(&self, y: &[u32]) -> f64 {
        let at = |t: usize| y[t] as usize;
        (0..self.len)
            .map(|t| {
                let pair = if t > 0 { self.pair(t, at(t - 1))[at(t)] } else { 0.0 };
                let is_third = t > 1 && self.order == Order::Second;
                let triple = if is_third { self.triple(at(t - 2), at(t - 1))[at(t)] } else { 0.0 };
                self.unary(t)[at(t)] + pair + triple
            })
            .sum()
    }

    /// A labelling with the largest score; returns the score, minus infinity where nothing is allowed.
    ///
    /// # Panics
    /// If there is no variable.
    pub fn best(&mut self, y: &mut Vec<u32>) -> f64 {
        assert!(self.len > 0, "a chain of at least one variable");
        let states = self.rows(self.len - 1) * self.stride;
        let forth = self.filled_forth();
        let last = &forth[self.begin(self.len - 1)..][..states];
        let mut state = self.first_best(last);
        let best = last[state];
        y.clear();
        y.resize(self.len, 0);
        for t in (0..self.len).rev() {
            y[t] = (state % self.stride) as u32;
            if t > 0 {
                state = self.source(t, state, &forth[self.begin(t - 1)..]);
            }
        }
        self.forth = forth;
        best
    }

    /// Takes the table of the best ways into all states, filled.
    fn filled_forth(&mut self) -> Vec<f64> {
        let (mut forth, mut search) = (std::mem::take(&mut self.forth), std::mem::take(&mut self.search));
        forth.resize(self.table_len(), 0.0);
        Arch::new().dispatch(Forth { chain: self, table: &mut forth, search: &mut search });
        self.search = search;
        forth
    }

    /// Number of rows of states of variable t.
    fn rows(&self, t: usize) -> usize {
        if self.order == Order::Second && t > 0 { self.labels } else { 1 }
    }

    /// Where the states of variable t begin in a table of all states.
    fn begin(&self, t: usize) -> usize {
        match (self.order, t) {
            (Order::First, _) | (_, 0) => t * self.stride,
            (Order::Second, _) => (1 + (t - 1) * self.labels) * self.stride,
        }
    }

    /// The length of a table of all states of all variables.
    fn table_len(&self) -> usize {
        self.begin(self.len)
    }

    /// Where row `row` of the states of variable t > 0 comes from.
    #[inline(always)]
    fn sources(&self, t: usize, row: usize) -> Sources {
        let k = self.labels;
        match self.order {
            Order::First => Sources { state: 0, step: 1, row: self.pair_row(t, 0), row_step: 1, count: k },
            // One label has gone before, and it is the row.
            Order::Second if t == 1 => {
                Sources { state: row, step: 1, row: self.pair_row(t, row), row_step: 1, count: 1 }
            }
            Order::Second => Sources { state: row, step: self.stride, row, row_step: k, count: k },
        }
    }

    /// The scores that lead from one variable's states to the next one's.
    #[inline(always)]
    fn scores(&self, t: usize) -> &[f64] {
        if self.order == Order::Second && t > 1 { &self.triple } else { &self.pair }
    }

    #[inline(always)]
    fn fill_forth(&self, forth: &mut [f64], search: &mut Search) {
        search.prepare(self);
        forth[..self.stride].copy_from_slice(&self.unary[..self.stride]);
        for t in 1..self.len {
            let (done, rest) = forth.split_at_mut(self.begin(t));
            self.advance(t, &done[self.begin(t - 1)..], rest, search);
            self.add_own(t, rest);
        }
    }

    /// The best way into each state of variable t, from the states `last` of the one before it.
    #[inline(always)]
    fn advance(&self, t: usize, last: &[f64], next: &mut [f64], search: &mut Search) {
        for (row, next) in next.chunks_exact_mut(self.stride).take(self.rows(t)).enumerate() {
            let ways = search.ways(self, t, row, last);
            let mut at = 0;
            while at + 16 <= self.stride {
                self.best_into::<16>(t, ways, at, next);
                at += 16;
            }
            while at + 8 <= self.stride {
                self.best_into::<8>(t, ways, at, next);
                at += 8;
            }
            while at + LANES <= self.stride {
                self.best_into::<LANES>(t, ways, at, next);
                at += LANES;
            }
        }
    }

    /// N labels at a time, their maxima in registers.
    #[inline(always)]
    fn best_into<const N: usize>(&self, t: usize, ways: &[Way], at: usize, next: &mut [f64]) {
        let scores = self.scores(t);
        let mut best = [f64::NEG_INFINITY; N];
        for &Way { so_far, row } in ways {
            let row: &[f64; N] = scores[row * self.stride + at..].first_chunk().expect("a row of scores");
            for l in 0..N {
                let score = so_far + row[l];
                best[l] = if score > best[l] { score } else { best[l] };
            }
        }
        next[at..at + N].copy_from_slice(&best);
    }

    /// Adds to the ways into the states of variable t what depends on the state alone.
    #[inline(always)]
    fn add_own(&self, t: usize, states: &mut [f64]) {
        let unary = &self.unary[t * self.stride..][..self.stride];
        for (row, states) in states.chunks_exact_mut(self.stride).take(self.rows(t)).enumerate() {
            match self.own_pair(t, row) {
                None => states.iter_mut().zip(unary).for_each(|(s, u)| *s += u),
                Some(pair) => states.iter_mut().zip(unary).zip(pair).for_each(|((s, u), p)| *s += u + p),
            }
        }
    }

    /// The pair scores that the step itself does not have: with the second order, from the third variable on.
    #[inline(always)]
    fn own_pair(&self, t: usize, row: usize) -> Option<&[f64]> {
        let is_own = self.order == Order::Second && t > 1;
        is_own.then(|| &self.pair[self.pair_row(t, row) * self.stride..][..self.stride])
    }

    /// The first best of some rows of states.
    fn first_best(&self, states: &[f64]) -> usize {
        let (mut best, mut at) = (f64::NEG_INFINITY, 0);
        for (row, states) in states.chunks_exact(self.stride).enumerate() {
            for (k, &score) in states[..self.labels].iter().enumerate() {
                if score > best {
                    (best, at) = (score, row * self.stride + k);
                }
            }
        }
        at
    }

    /// The state of variable t - 1 that the best way into `state` of variable t comes from.
    fn source(&self, t: usize, state: usize, last: &[f64]) -> usize {
        let sources = self.sources(t, state / self.stride);
        let (scores, label) = (self.scores(t), state % self.stride);
        let (mut best, mut at) = (f64::NEG_INFINITY, sources.state);
        for s in 0..sources.count {
            let from = sources.state + s * sources.step;
            let score = last[from] + scores[(sources.row + s * sources.row_step) * self.stride + label];
            if score > best {
                (best, at) = (score, from);
            }
        }
        at
    }
}
