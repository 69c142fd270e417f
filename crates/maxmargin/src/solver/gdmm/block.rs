//! One block of the factorwise dual: the labels of a variable or of a factor that have, or had, mass.

use serde::{Deserialize, Serialize};

/// Labels with their mass; the masses add up to U.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Block {
    pub(super) held: Vec<(u32, f64)>,
}

/// What is left of a mass below this share of U is rounding.
const NOTHING: f64 = 1e-12;

/// Labels without mass that score at least so much less than the best are let go: they are not likely to come back soon.
const FAR: f64 = 0.1;

impl Block {
    /// All mass on the truth.
    pub(super) fn at(truth: u32, cap: f64) -> Self {
        Self { held: vec![(truth, cap)] }
    }

    /// The place of a label.
    pub(super) fn place(&self, label: u32) -> Option<usize> {
        self.held.iter().position(|held| held.0 == label)
    }

    /// `U max s - sum mass s`: how far the block is from its best, at most. `scores`: of the labels held.
    pub(super) fn gap(&self, scores: &[f64], cap: f64) -> f64 {
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let now: f64 = self.held.iter().zip(scores).map(|(held, s)| held.1 * s).sum();
        (cap * most - now).max(0.0)
    }

    /// Minimises `-<s, mass> + 1/2 change' H change` over the masses, by exact pair steps: mass goes from the worst label that
    /// has some to the best. `curvature(a, b)`: an entry of H. Scores follow.
    pub(super) fn solve(&mut self, scores: &mut [f64], cap: f64, curvature: impl Fn(u32, u32) -> f64) {
        debug_assert_eq!(self.held.len(), scores.len());
        let enough = 0.01 * self.gap(scores, cap);
        for _ in 0..2 * self.held.len() {
            let (mut to, mut from) = (0, None);
            for (l, &score) in scores.iter().enumerate() {
                if score > scores[to] {
                    to = l;
                }
                if self.held[l].1 > 0.0 && from.is_none_or(|f: usize| score < scores[f]) {
                    from = Some(l);
                }
            }
            let Some(from) = from.filter(|&from| scores[to] > scores[from]) else { return };
            let (a, b) = (self.held[to].0, self.held[from].0);
            let bend = curvature(a, a) + curvature(b, b) - 2.0 * curvature(a, b);
            let available = self.held[from].1;
            let step = if bend > 0.0 { ((scores[to] - scores[from]) / bend).min(available) } else { available };
            // Exactly zero where all is given, so that it can be told.
            self.held[from].1 = if available - step <= NOTHING * cap { 0.0 } else { available - step };
            let step = available - self.held[from].1;
            self.held[to].1 += step;
            for (held, score) in self.held.iter().zip(&mut *scores) {
                *score -= step * (curvature(held.0, a) - curvature(held.0, b));
            }
            if self.gap(scores, cap) <= enough {
                return;
            }
        }
    }

    /// Moves mass from the label at a place to another one; what is left of it may be rounding. A label without mass is let go,
    /// but for the truth, which is the first.
    pub(super) fn shift(&mut self, place: usize, to: u32, step: f64, cap: f64) {
        let left = self.held[place].1 - step;
        self.held[place].1 = if left <= NOTHING * cap { 0.0 } else { left };
        match self.place(to) {
            Some(to) => self.held[to].1 += step,
            None => self.held.push((to, step)),
        }
        if place > 0 && self.held[place].1 == 0.0 {
            self.held.remove(place);
        }
    }

    /// How masses change where all of it goes to one label.
    pub(super) fn changes_towards(&self, to: u32, cap: f64) -> impl Iterator<Item = (u32, f64)> + '_ {
        let own = self.place(to).map_or(0.0, |place| self.held[place].1);
        let others = self.held.iter().filter(move |held| held.0 != to && held.1 > 0.0);
        others.map(|held| (held.0, -held.1)).chain(std::iter::once((to, cap - own)))
    }

    /// Moves this share of the mass to a label, from all in proportion; a negative share away from it.
    pub(super) fn move_towards(&mut self, label: u32, share: f64, cap: f64) {
        self.held.iter_mut().for_each(|held| held.1 *= 1.0 - share);
        match self.place(label) {
            Some(place) => self.held[place].1 += share * cap,
            None => self.held.push((label, share * cap)),
        }
        for held in &mut self.held {
            held.1 = if held.1 <= NOTHING * cap { 0.0 } else { held.1 };
        }
        let mut is_first = true;
        self.held.retain(|held| std::mem::take(&mut is_first) || held.1 > 0.0);
    }

    /// Lets labels go that have no mass and score far less than the best; not the truth, which is the first.
    pub(super) fn forget(&mut self, scores: &[f64]) {
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut at = 0;
        self.held.retain(|held| {
            at += 1;
            at == 1 || held.1 > 0.0 || scores[at - 1] + FAR > most
        });
    }
}
