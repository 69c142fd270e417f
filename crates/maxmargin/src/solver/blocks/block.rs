//! One block of the dual: the outputs that an example has met, their weights, and their inner products.
//!
//! ```text
//! max  sum_j a_j v_j - 1/2 |sum_j a_j lhs_j|^2 - r/2 S^2   over   a >= 0,  S = sum_j a_j <= U
//! ```
//!
//! with v_j the violations where the other blocks stay as they are. The truth takes what is left of the cap U: its
//! violation is 0 and its left side empty. With the inner products at hand a pair step (Lacoste-Julien and Jaggi 2015;
//! Osokin et al. 2016, section 3.3) needs no vector: weight goes from the worst output that has some to the most violated
//! one, by an exact line search. An example that has met nothing yet has only the truth to take from, and the pair step is
//! the Frank-Wolfe step.

use serde::{Deserialize, Serialize};

use crate::problem::Term;

/// An output of the example.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::solver) struct Held<Y> {
    pub(in crate::solver) y: Y,
    pub(in crate::solver) term: Term,
    /// Its dual variable, at most U.
    pub(in crate::solver) alpha: f64,
    /// The pass in which it was last of use.
    pub(in crate::solver) used: u32,
    /// What the mean of the points has to remember of it: `sum_k A_{k-1} delta_k` over the steps of alpha
    /// ([`average`](crate::solver::average)).
    pub(in crate::solver) offset: f64,
}

impl<Y> Held<Y> {
    /// One with weight 0.
    pub(super) fn new(y: Y, term: Term, now: u32) -> Self {
        Self { y, term, alpha: 0.0, used: now, offset: 0.0 }
    }
}

/// What bounds the weights of an example: a cap U and a ridge r.
#[derive(Debug, Clone, Copy)]
pub(in crate::solver) struct Limits {
    pub(in crate::solver) cap: f64,
    pub(in crate::solver) ridge: f64,
}

/// An example's outputs.
#[derive(Debug)]
pub(in crate::solver) struct Block<Y> {
    pub(in crate::solver) held: Vec<Held<Y>>,
    /// `<lhs_j, lhs_k>` for k <= j, row by row.
    gram: Vec<f64>,
}

impl<Y> Default for Block<Y> {
    fn default() -> Self {
        Self { held: Vec::new(), gram: Vec::new() }
    }
}

/// What is left of the cap below this share of it is rounding.
const NOTHING: f64 = 1e-14;

/// A pair step that promises less than this share of the violations themselves is rounding.
const FLAT: f64 = 1e-13;

fn place(j: usize, k: usize) -> usize {
    let (j, k) = (j.max(k), j.min(k));
    j * (j + 1) / 2 + k
}

impl<Y> Block<Y> {
    /// Takes in an output with weight 0; `row`: its inner products with those before it and with itself.
    pub(super) fn push(&mut self, held: Held<Y>, row: &[f64]) {
        debug_assert_eq!(row.len(), self.held.len() + 1);
        self.held.push(held);
        self.gram.extend(row);
    }

    /// `<lhs_j, lhs_k>`; None is the truth.
    fn inner(&self, j: Option<usize>, k: Option<usize>) -> f64 {
        match (j, k) {
            (Some(j), Some(k)) => self.gram[place(j, k)],
            _ => 0.0,
        }
    }

    /// S, the sum of the weights.
    pub(super) fn sum(&self) -> f64 {
        self.held.iter().map(|held| held.alpha).sum()
    }

    /// `sum_j a_j |lhs_j|`
    pub(super) fn mass(&self) -> f64 {
        let norm = |j: usize| self.gram[place(j, j)].max(0.0).sqrt();
        self.held.iter().enumerate().map(|(j, held)| held.alpha * norm(j)).sum()
    }

    /// `sum_j a_j rhs_j`
    pub(super) fn rhs(&self) -> f64 {
        self.held.iter().map(|held| held.alpha * held.term.rhs).sum()
    }

    /// What the outputs leave of the cap: the truth's.
    fn rest(&self, cap: f64) -> f64 {
        let rest = cap - self.sum();
        // Not `NOTHING * cap`, which is infinite where the cap is.
        if rest > NOTHING * cap.min(f64::MAX) { rest } else { 0.0 }
    }

    /// The block's gap, where H is the largest of the violations, or `h` if that is more: with a cap `U H - sum_j a_j v_j`,
    /// with a ridge `H^2 / 2r + r S^2 / 2 - sum_j a_j v_j`.
    pub(in crate::solver) fn gap(&self, values: &[f64], h: f64, Limits { cap, ridge }: Limits) -> f64 {
        let h = values.iter().copied().fold(h.max(0.0), f64::max);
        let inner: f64 = self.held.iter().zip(values).map(|(held, v)| held.alpha * v).sum();
        let slack = if ridge > 0.0 { 0.5 * (h * h / ridge + ridge * self.sum() * self.sum()) } else { cap * h };
        (slack - inner).max(0.0)
    }

    /// Pair steps until the block's gap is at most `share` of `gap`, what it is now. Violations follow in `values`. Returns
    /// by how much the dual rises.
    pub(super) fn solve(&mut self, values: &mut [f64], limits: Limits, gap: f64, share: f64, now: u32) -> f64 {
        // A step in ten empties an output; the others converge fast.
        let most_steps = 10 + 10 * self.held.len();
        let mut rise = 0.0;
        for _ in 0..most_steps {
            let gain = self.pair_step(values, limits, now);
            rise += gain;
            if gain == 0.0 || self.gap(values, 0.0, limits) <= share * gap {
                break;
            }
        }
        for held in self.held.iter_mut().filter(|held| held.alpha > 0.0) {
            held.used = now;
        }
        rise
    }

    /// One step. Returns by how much the dual rises, 0 where there is nothing to gain.
    fn pair_step(&mut self, values: &mut [f64], Limits { cap, ridge }: Limits, now: u32) -> f64 {
        let (rest, held_back) = (self.rest(cap), ridge * self.sum());
        let (mut to, mut highest) = (None, 0.0);
        let (mut from, mut lowest) = (None, if rest > 0.0 { 0.0 } else { f64::INFINITY });
        for (j, (held, v)) in self.held.iter().zip(&*values).enumerate() {
            let v = v - held_back;
            if v > highest {
                (to, highest) = (Some(j), v);
            }
            if held.alpha > 0.0 && v < lowest {
                (from, lowest) = (Some(j), v);
            }
        }
        let slope = highest - lowest;
        if to == from || slope <= FLAT * (highest.abs() + lowest.abs()) || slope.is_nan() {
            return 0.0;
        }
        if let Some(j) = to {
            self.held[j].used = now;
        }
        let available = from.map_or(rest, |j| self.held[j].alpha);
        // Between two outputs S stays what it is.
        let ridge = if to.is_some() && from.is_some() { 0.0 } else { ridge };
        let curvature = (self.inner(to, to) - 2.0 * self.inner(to, from) + self.inner(from, from)).max(0.0) + ridge;
        // Outputs that look the same cost no norm: all the way.
        let step = (slope / curvature).min(available);
        if let Some(j) = from {
            // Exactly zero where all is given, so that idle outputs can be told.
            self.held[j].alpha = if step == available { 0.0 } else { available - step };
        }
        if let Some(j) = to {
            self.held[j].alpha += step;
        }
        for (j, v) in values.iter_mut().enumerate() {
            *v -= step * (self.inner(Some(j), to) - self.inner(Some(j), from));
        }
        step * (slope - 0.5 * step * curvature)
    }

    /// Forgets outputs without weight that were of no use since the pass `since`, unless they are needed still.
    pub(super) fn drop_idle(&mut self, since: u32, is_needed: impl Fn(&Held<Y>) -> bool) {
        let keeps = |held: &Held<Y>| held.alpha > 0.0 || held.used >= since || is_needed(held);
        if self.held.iter().all(keeps) {
            return;
        }
        let kept: Vec<usize> = (0..self.held.len()).filter(|&j| keeps(&self.held[j])).collect();
        self.gram = kept
            .iter()
            .enumerate()
            .flat_map(|(at, &j)| kept[..=at].iter().map(move |&k| place(j, k)))
            .map(|place| self.gram[place])
            .collect();
        self.held.retain(keeps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::sparse::dot;

    const D: usize = 4;

    fn random_vector(random: &mut Random) -> Vec<f64> {
        (0..D).map(|_| 2.0 * random.unit() - 1.0).collect()
    }

    /// A block of random left sides, and its violations at w = 0.
    fn random_block(random: &mut Random, outputs: usize) -> (Block<usize>, Vec<Vec<f64>>, Vec<f64>) {
        let (mut block, mut lhs) = (Block::default(), Vec::<Vec<f64>>::new());
        for y in 0..outputs {
            lhs.push(random_vector(random));
            let row: Vec<f64> = lhs.iter().map(|l| dot(l, &lhs[y])).collect();
            let term = Term { factor: 1.0, rhs: random.unit() };
            block.push(Held::new(y, term, 0), &row);
        }
        let values = block.held.iter().map(|held| held.term.rhs).collect();
        (block, lhs, values)
    }

    /// Violations from scratch, and the dual value.
    fn by_definition(block: &Block<usize>, lhs: &[Vec<f64>], ridge: f64) -> (Vec<f64>, f64) {
        let mut w = [0.0; D];
        for held in &block.held {
            w.iter_mut().zip(&lhs[held.y]).for_each(|(w, x)| *w += held.alpha * x);
        }
        let values = block.held.iter().map(|held| held.term.rhs - dot(&lhs[held.y], &w)).collect();
        let l: f64 = block.held.iter().map(|held| held.alpha * held.term.rhs).sum();
        (values, l - 0.5 * dot(&w, &w) - 0.5 * ridge * block.sum() * block.sum())
    }

    #[test]
    fn solved_to_the_end_within_the_cap() {
        let mut random = Random::new(3);
        for (cap, ridge) in [(0.01, 0.0), (0.5, 0.0), (100.0, 0.0), (f64::INFINITY, 0.01), (f64::INFINITY, 3.0)] {
            let limits = Limits { cap, ridge };
            for outputs in 1..8 {
                let (mut block, lhs, mut values) = random_block(&mut random, outputs);
                let first = block.gap(&values, 0.0, limits);
                let mut rise = 0.0;
                for _ in 0..200 {
                    let gap = block.gap(&values, 0.0, limits);
                    rise += block.solve(&mut values, limits, gap, 0.1, 1);
                }
                let (expected, dual) = by_definition(&block, &lhs, ridge);
                for (v, expected) in values.iter().zip(&expected) {
                    assert!((v - expected).abs() < 1e-9, "{v} {expected}");
                }
                assert!((rise - dual).abs() < 1e-9, "{rise} {dual}");
                assert!(block.held.iter().all(|held| held.alpha >= 0.0) && block.rest(cap) >= 0.0);
                let gap = block.gap(&values, 0.0, limits);
                assert!(gap <= 1e-6 * first, "{outputs} outputs, {limits:?}: gap {gap} of {first}");
            }
        }
    }

    #[test]
    fn idle_outputs_go_with_their_inner_products() {
        let (mut block, lhs, _) = random_block(&mut Random::new(5), 6);
        for (y, alpha, used) in [(0, 0.0, 4), (1, 0.5, 0), (2, 0.0, 3), (3, 0.0, 5), (4, 0.1, 9), (5, 0.0, 0)] {
            (block.held[y].alpha, block.held[y].used) = (alpha, used);
        }
        block.drop_idle(4, |_| false);
        assert_eq!(block.held.iter().map(|held| held.y).collect::<Vec<_>>(), [0, 1, 3, 4]);
        assert_eq!(block.gram.len(), 10);
        for (j, a) in block.held.iter().enumerate() {
            for (k, b) in block.held.iter().enumerate() {
                assert_eq!(block.inner(Some(j), Some(k)), dot(&lhs[a.y], &lhs[b.y]));
            }
        }
    }
}
