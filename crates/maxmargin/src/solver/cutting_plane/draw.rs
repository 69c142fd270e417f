//! How much of a cut is taken where a kernel makes its inner products dear.
//!
//! A cut is a sum over atoms, and its inner products with all of them cost a row of kernel values for each that it has. But
//! a cut near the last one differs from it only in the examples that need slack now and did not, or did and do not: what
//! is computed is that difference, and whole cuts cost little.
//!
//! Only the first one has no neighbour. Where it would take too long, cuts are sums over a sample of the atoms, which stand
//! for all; each round some atoms are drawn into it, in random order, and none ever leaves. So all cuts speak of nearly the same
//! examples: no combination of them can make more of the chances of the draw than one of them does. When the sample is
//! everything, cuts are exact.
//!
//! (Yu and Joachims 2008, Algorithm 3, draw anew for each cut; a better scheme is what their section 7 asks for.)

use serde::{Deserialize, Serialize};

use crate::kernel::Metric;
use crate::parallel::Pool;
use crate::random::Random;
use crate::solver::state::is_sound;

/// How atoms are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// A sample that grows by so many atoms each round, and a line search.
    #[default]
    Growing,
    /// Examples, with equal probabilities and replacement, from all that need slack, until the cut is violated: the
    /// paper's.
    Uniform,
}

/// How much of a cut is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// r: so many atoms more, or examples anew, for each cut.
    pub size: usize,
    /// Which ones.
    pub scheme: Scheme,
}

/// The last cut that was taken: the sum over the sample, its image, and by how much the sample stands for more.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Drawn {
    /// The atoms in the order in which they are drawn; empty: all are taken at once.
    order: Vec<u32>,
    taken: usize,
    is_taken: Vec<bool>,
    lhs: Vec<f64>,
    image: Vec<f64>,
    scale: f64,
    /// Of the cuts: how many were pushed before it, and the size of the sample.
    history: Vec<(u64, usize)>,
}

/// From one taken cut to the next: `scale` times the last one plus `change`.
pub(super) struct Step {
    pub(super) scale: f64,
    /// Coordinates ascending.
    pub(super) change: Vec<(u64, f64)>,
}

impl Drawn {
    /// The first cut is zero. `random`: for a sample; None takes all.
    pub(super) fn new(metric: Metric<'_>, d: usize, random: Option<&mut Random>) -> Self {
        let atoms = metric.trained();
        let order = random.map_or(Vec::new(), |random| {
            let mut order: Vec<u32> = (0..atoms as u32).collect();
            random.shuffle(&mut order);
            order
        });
        let (taken, is_taken) = if order.is_empty() { (atoms, vec![true; atoms]) } else { (0, vec![false; atoms]) };
        Self { order, taken, is_taken, lhs: vec![0.0; d], image: vec![0.0; d], scale: 1.0, history: Vec::new() }
    }

    /// Does this fit the problem? Asked of one that was read from a file.
    pub(super) fn is_of(&self, metric: Metric<'_>, d: usize) -> bool {
        let atoms = metric.trained();
        let order_fits = self.order.len() <= atoms && self.order.iter().all(|&atom| (atom as usize) < atoms);
        let sums_fit = self.lhs.len() == d && self.image.len() == d && self.is_taken.len() == atoms;
        let history_fits = self.history.iter().all(|e| e.1 <= atoms);
        let numbers_fit = self.lhs.iter().chain(&self.image).all(|&x| is_sound(x)) && is_sound(self.scale);
        sums_fit && order_fits && history_fits && numbers_fit && self.taken <= atoms && self.scale >= 1.0
    }

    /// Is the sample everything?
    pub(super) fn is_whole(&self) -> bool {
        self.taken == self.is_taken.len()
    }

    /// The size of the sample.
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    /// The cut at hand is pushed after so many others.
    pub(super) fn note(&mut self, pushed: u64) {
        self.history.push((pushed, self.taken));
    }

    /// How many cuts were pushed before the last one that was noted.
    pub(super) fn last_pushed(&self) -> Option<u64> {
        self.history.len().checked_sub(2).map(|at| self.history[at].0)
    }

    /// The number of cuts that were pushed before the first whole one, if there is one.
    pub(super) fn whole_since(&self) -> Option<u64> {
        self.history.iter().find(|e| e.1 == self.is_taken.len()).map(|e| e.0)
    }

    /// Number of whole cuts.
    pub(super) fn whole_cuts(&self) -> usize {
        self.history.iter().rev().take_while(|e| e.1 == self.is_taken.len()).count()
    }

    /// Draws `more` atoms.
    pub(super) fn draw(&mut self, more: usize) {
        let end = self.order.len().min(self.taken.saturating_add(more));
        for &atom in self.order.get(self.taken..end).unwrap_or_default() {
            self.is_taken[atom as usize] = true;
        }
        self.taken = self.taken.max(end);
    }

    /// Goes from the last cut towards the whole one, `target`, on the sample.
    pub(super) fn follow(&mut self, target: &[f64], metric: Metric<'_>, pool: &Pool) -> Step {
        let mut change = Vec::new();
        let (mut own, mut all) = (0.0, 0.0);
        for (at, (&value, last)) in target.iter().zip(&mut self.lhs).enumerate() {
            if value == 0.0 && *last == 0.0 {
                continue; // most of them
            }
            if let Some(atom) = metric.atom(at as u64) {
                let size = value.abs();
                all += size;
                // Others than training examples' have no part in a cut.
                if !self.is_taken.get(atom as usize).is_some_and(|&taken| taken) {
                    continue;
                }
                own += size;
            }
            if value != *last {
                change.push((at as u64, value - *last));
                *last = value;
            }
        }
        metric.add_image(&change, &mut self.image, pool);
        let before = self.scale;
        self.scale = if self.is_whole() || own == 0.0 { 1.0 } else { all / own };
        for e in &mut change {
            e.1 *= self.scale;
        }
        Step { scale: self.scale / before, change }
    }

    /// The cut: left side and image.
    pub(super) fn cut(&self, metric: Metric<'_>) -> (Vec<f64>, Vec<f64>) {
        let scaled = |numbers: &[f64]| {
            let mut scaled = numbers.to_vec();
            if self.scale != 1.0 {
                scaled[metric.coordinates()].iter_mut().for_each(|x| *x *= self.scale);
            }
            scaled
        };
        (scaled(&self.lhs), scaled(&self.image))
    }
}
