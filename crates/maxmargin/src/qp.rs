//! The dual of the cutting-plane method.
//!
//! ```text
//! max b'a - 1/2 a'Ha,   a >= 0,   sum of a over group g <= U_g      (Joachims, Finley, Yu 2009, OP 6)
//! H_jk = <lhs_j, lhs_k>,   w = sum a_j lhs_j
//! ```
//!
//! It is the dual of `min 1/2 |w|^2 + sum_g U_g max(0, max_{j in g} b_j - <w, lhs_j>)`, the training problem
//! restricted to the cuts found so far. One group with U = C is the paper's OP 6; p groups have one slack each;
//! an infinite U is the hard margin. [`Qp`] keeps the cuts, H and a, and solves again from the last a after each
//! new cut: pair steps first, then Newton steps on the support.

mod cut;
mod dual;
mod factor;
mod hessian;
mod newton;
mod saved;
mod smo;

pub use cut::Cut;
pub(crate) use factor::Factor;
pub(crate) use saved::LARGEST;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::parallel::{Pool, ranges};
use crate::sparse::axpy;
use crate::weights::Weights;
use dual::{Dual, Phase, gather};
use newton::Newton;
use saved::Saved;
use smo::Smo;

/// From this many multiply-adds on, the inner products of a new cut are shared among the threads.
const SHARED: usize = 1_000_000;

/// Coordinates of w that are summed at a time where cuts have images: so many stay near.
const PIECE: usize = 1 << 14;

/// Rounds of the solver without progress after which it gives up: the rest is rounding.
const PATIENCE: usize = 3;

/// Rounds in all. A solve takes one or two as a rule; whatever keeps improving beyond is improving by rounding.
const ROUNDS: usize = 100;

/// How a [`Qp::solve`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// The gap is within the tolerance.
    Solved,
    /// The gap is above the tolerance, but f64 allows no more progress. The value is a valid bound all the same.
    Stalled,
    /// Some cuts of the groups without a cap contradict each other: the hard margin has no solution.
    Unbounded,
}

/// The dual QP over the cuts found so far, with its solution. Saved and read again it goes on in the same bits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Saved")]
pub struct Qp {
    dimension: usize,
    cuts: Vec<Cut>,
    /// By cut: solves since a was positive.
    idle: Vec<u32>,
    /// By cut: how many were pushed before it.
    born: Vec<u64>,
    pushed: u64,
    dual: Dual,
    #[serde(skip)]
    smo: Smo,
    #[serde(skip)]
    newton: Newton,
    /// The a's of the highest value in a solve; and the largest violation by group.
    #[serde(skip)]
    best: Vec<f64>,
    #[serde(skip)]
    peak: Vec<f64>,
    /// A cut scattered densely, zero between uses; and the row of H that comes from it.
    #[serde(skip)]
    dense: Vec<f64>,
    #[serde(skip)]
    row: Vec<f64>,
}

impl Qp {
    /// A QP without cuts, for w with `dimension` coordinates. `caps`: `U_g >= 0` by group, infinity for the
    /// hard margin.
    ///
    /// # Panics
    /// If a cap is negative or NaN.
    pub fn new(dimension: usize, caps: Vec<f64>) -> Self {
        assert!(caps.iter().all(|&u| u >= 0.0), "caps are not negative");
        Self::with(dimension, Vec::new(), Vec::new(), Vec::new(), 0, Dual::new(caps))
    }

    fn with(dimension: usize, cuts: Vec<Cut>, idle: Vec<u32>, born: Vec<u64>, pushed: u64, dual: Dual) -> Self {
        Self {
            dimension,
            cuts,
            idle,
            born,
            pushed,
            dual,
            smo: Smo::default(),
            newton: Newton::default(),
            best: Vec::new(),
            peak: Vec::new(),
            dense: Vec::new(),
            row: Vec::new(),
        }
    }

    /// Adds a cut to a group, with a = 0: the value stays, the gap grows by the cut's violation. Fails
    /// where the cut, or an inner product of it, is not finite.
    ///
    /// # Panics
    /// If there is no such group.
    pub fn push(&mut self, group: usize, cut: Cut, pool: &Pool) -> Result<()> {
        assert!(group < self.caps().len(), "no group {group}");
        self.dense.resize(self.dimension, 0.0);
        cut.add_to(1.0, &mut self.dense);
        self.row.clear();
        self.row.resize(self.caps().len(), 0.0);
        let (cuts, dense) = (&self.cuts, &self.dense);
        let work: usize = cuts.iter().map(Cut::entries).sum();
        if work > SHARED && pool.threads() > 1 {
            // A product is the same whoever computes it: the parts may follow the number of threads.
            let products = |part: std::ops::Range<usize>| cuts[part].iter().map(|c| c.inner(dense)).collect();
            let parts: Vec<Vec<f64>> = pool.map(ranges(cuts.len(), 4 * pool.threads()), products);
            self.row.extend(parts.into_iter().flatten());
        } else {
            self.row.extend(cuts.iter().map(|c| c.inner(dense)));
        }
        self.row.push(cut.inner(dense));
        cut.clear_from(&mut self.dense);
        self.insert(group, cut)
    }

    /// Adds a cut whose inner products with all cuts, and last with itself, are at hand.
    ///
    /// # Panics
    /// If there is no such group, or the numbers are too few or too many.
    pub fn push_with(&mut self, group: usize, cut: Cut, products: &[f64]) -> Result<()> {
        assert_eq!(products.len(), self.len() + 1, "a product with each cut and with itself");
        self.row.clear();
        self.row.resize(self.caps().len(), 0.0);
        self.row.extend(products);
        self.insert(group, cut)
    }

    /// Adds a cut that has an image and whose left side is `scale` times that of the newest cut plus `change`: its inner
    /// products follow from those of the newest.
    ///
    /// # Panics
    /// If there is no such group or no cut yet.
    pub fn push_near(&mut self, group: usize, cut: Cut, scale: f64, change: &[(u64, f64)]) -> Result<()> {
        let newest = self.dual.len() - 1;
        let moved = |image: Option<&[f64]>| -> f64 {
            let image = image.expect("cuts with images");
            change.iter().map(|&(at, value)| value * image[at as usize]).sum()
        };
        self.row.clear();
        self.row.extend(self.dual.hessian.row(newest));
        for (h, other) in self.row[self.dual.groups()..].iter_mut().zip(&self.cuts) {
            *h = scale * *h + moved(other.image());
        }
        let last = self.row[newest];
        self.row.push(scale * last + moved(cut.image()));
        self.insert(group, cut)
    }

    /// Takes in a cut whose row of H is at hand.
    fn insert(&mut self, group: usize, cut: Cut) -> Result<()> {
        if !(cut.rhs().is_finite() && self.row.iter().all(|h| h.is_finite())) {
            let rule = "the weights of the examples, the features and the losses together exceed what f64 can hold; scale \
                        them down";
            return Err(Error::setting("loss-scale", rule));
        }
        self.dual.push(group, cut.rhs(), &self.row);
        self.cuts.push(cut);
        self.idle.push(0);
        self.born.push(self.pushed);
        self.pushed += 1;
        Ok(())
    }

    /// Solves from the last a until the [`gap`](Self::gap) is at most `tolerance`, which is in units of the
    /// objective, or no more progress is possible in f64.
    pub fn solve(&mut self, tolerance: f64) -> Outcome {
        let outcome = self.ascend(tolerance);
        for (idle, &a) in self.idle.iter_mut().zip(&self.dual.a[self.dual.groups()..]) {
            *idle = if a > 0.0 { 0 } else { idle.saturating_add(1) };
        }
        outcome
    }

    fn ascend(&mut self, tolerance: f64) -> Outcome {
        let Self { dual, smo, newton, best, peak, .. } = self;
        let (mut value, mut least, mut patience) = (f64::NEG_INFINITY, f64::INFINITY, PATIENCE);
        best.clone_from(&dual.a);
        for _ in 0..ROUNDS {
            dual.refresh();
            let gap = dual.gap(peak);
            // First: two cuts that are opposite but for rounding have a solution, too, of an absurd length.
            if dual.is_hard() && dual.proves_infeasible(&dual.a) {
                return Outcome::Unbounded;
            }
            if gap <= tolerance {
                return Outcome::Solved;
            }
            let now = dual.value();
            let rises = now > value + 1e-3 * if gap.is_finite() { gap } else { now.abs() };
            if gap <= 0.5 * least || rises {
                patience = PATIENCE;
            } else if patience == 0 {
                break;
            } else {
                patience -= 1;
            }
            least = least.min(gap);
            if now > value {
                value = now;
                best.clone_from(&dual.a);
            }
            let steps = dual.len();
            if smo.ascend(dual, tolerance, steps) == Phase::Unbounded
                || newton.ascend(dual, tolerance, 2 * steps) == Phase::Unbounded
            {
                dual.refresh();
                return Outcome::Unbounded;
            }
        }
        // Near the limits of f64 a step may lose: the bound must not.
        dual.a.clone_from(best);
        dual.refresh();
        if dual.gap(peak) <= tolerance { Outcome::Solved } else { Outcome::Stalled }
    }

    /// Number of coordinates of w.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// `b'a - 1/2 a'Ha`: a lower bound on the objective.
    pub fn value(&self) -> f64 {
        self.dual.value()
    }

    /// How far the [`value`](Self::value) may be below the optimum of the QP: the primal objective over the
    /// cuts at w, less the value. With `G = b - Ha` and finite caps it is
    /// `sum_g U_g max(0, max_j G_j) - sum_j a_j G_j`.
    ///
    /// Groups without a cap must satisfy their cuts: the primal is taken at s w with the least s >= 1 for
    /// which they do. It is infinite while there is none.
    pub fn gap(&self) -> f64 {
        self.dual.gap(&mut Vec::new())
    }

    /// `w = sum a_j lhs_j`
    pub fn weights_into(&self, w: &mut Weights, pool: &Pool) {
        let active = || self.cuts.iter().zip(self.alphas()).filter(|(_, a)| **a > 0.0);
        let (dense, coefficients) = w.both_mut();
        let sum = |w: &mut [f64]| {
            w.fill(0.0);
            active().for_each(|(cut, &a)| cut.add_to(a, w));
        };
        let Some(coefficients) = coefficients else { return sum(dense) };
        // Much memory goes by: in pieces, for threads to share.
        let images: Vec<(&[f64], f64)> = active().filter_map(|(cut, &a)| Some((cut.image()?, a))).collect();
        let pieces = dense.chunks_mut(PIECE).enumerate().collect();
        pool.map(pieces, |(at, piece): (usize, &mut [f64])| {
            piece.fill(0.0);
            for (image, a) in &images {
                axpy(*a, &image[at * PIECE..][..piece.len()], piece);
            }
        });
        sum(coefficients);
    }

    /// Number of cuts.
    pub fn len(&self) -> usize {
        self.cuts.len()
    }

    /// No cut?
    pub fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// Number of cuts with a > 0.
    pub fn active(&self) -> usize {
        self.alphas().iter().filter(|&&a| a > 0.0).count()
    }

    /// The a's, by cut. Cuts without influence have exactly 0.
    pub fn alphas(&self) -> &[f64] {
        &self.dual.a[self.dual.groups()..]
    }

    /// `sum a |lhs|`, nothing cancelled: what the rounding errors of w and of the value are measured by.
    pub(crate) fn mass(&self) -> f64 {
        let groups = self.dual.groups();
        let length = |j: usize| self.dual.hessian.at(groups + j, groups + j).max(0.0).sqrt();
        self.alphas().iter().enumerate().map(|(j, a)| a * length(j)).sum()
    }

    /// The cuts, in the order of [`alphas`](Self::alphas).
    pub fn cuts(&self) -> &[Cut] {
        &self.cuts
    }

    /// The group of cut `j`.
    pub fn group_of(&self, j: usize) -> usize {
        self.dual.group[self.dual.groups() + j]
    }

    /// `U_g` by group.
    pub fn caps(&self) -> &[f64] {
        &self.dual.caps
    }

    /// Memory taken by the cuts and H.
    pub fn bytes(&self) -> usize {
        self.cuts.iter().map(Cut::bytes).sum::<usize>() + self.dual.hessian.bytes()
    }

    /// Other caps, for a path over C. Groups whose cap rises keep their a's; where it falls they shrink in
    /// proportion.
    ///
    /// # Panics
    /// If the number of groups changes, or a cap is negative or NaN.
    pub fn set_caps(&mut self, caps: Vec<f64>) {
        assert!(caps.len() == self.caps().len() && caps.iter().all(|&u| u >= 0.0), "one cap >= 0 for each group");
        let dual = &mut self.dual;
        for (g, &cap) in caps.iter().enumerate() {
            let sum: f64 = dual.cuts().filter(|&j| dual.group[j] == g).map(|j| dual.a[j]).sum();
            // From a cap to none there is no proportion: shrink only as far as needed.
            let old = if dual.caps[g].is_finite() { dual.caps[g] } else { sum };
            if cap < old {
                dual.scale(g, cap / old);
            }
            dual.a[g] = if cap.is_infinite() { cap } else { (cap - sum * (cap / old).min(1.0)).max(0.0) };
        }
        dual.caps = caps;
        dual.refresh();
    }

    /// Makes the cuts hold wherever `|w| <= radius`: for a larger C, whose optimum may be longer than the radius for which
    /// rounding to f32 was paid (see [`Cut::from_dense`]).
    pub fn widen(&mut self, radius: f64) {
        let p = self.dual.groups();
        for (j, cut) in self.cuts.iter_mut().enumerate() {
            cut.widen(radius);
            self.dual.b[p + j] = cut.rhs();
        }
        self.dual.refresh();
    }

    /// Drops the cuts whose a was 0 after each of the last `rounds` solves (at least one). The solution and
    /// its value stay. Returns the places of those that are kept.
    pub fn drop_inactive(&mut self, rounds: u32) -> Vec<usize> {
        let kept: Vec<usize> = (0..self.len()).filter(|&j| self.idle[j] < rounds.max(1)).collect();
        self.keep(&kept);
        kept
    }

    /// Number of cuts that were ever pushed.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// How many cuts were pushed before the newest one that is there.
    pub fn newest(&self) -> Option<u64> {
        self.born.last().copied()
    }

    /// Are all cuts among those that were pushed after the first `before`?
    pub fn is_since(&self, before: u64) -> bool {
        self.born.iter().all(|&born| born >= before)
    }

    /// Forgets the first `before` cuts that were ever pushed, active or not: the value falls.
    pub fn forget(&mut self, before: u64) {
        let kept: Vec<usize> = (0..self.len()).filter(|&j| self.born[j] >= before).collect();
        if kept.len() == self.len() {
            return;
        }
        let p = self.dual.groups();
        for j in (0..self.len()).filter(|&j| self.born[j] < before) {
            let (group, a) = (self.group_of(j), std::mem::take(&mut self.dual.a[p + j]));
            self.dual.a[group] += a;
        }
        self.keep(&kept);
        self.dual.refresh();
    }

    /// Makes room: at most `max_cuts` cuts stay, without a loss of value.
    ///
    /// Inactive cuts go first, the longest idle before the others; then the active cuts with the least a of
    /// a group are replaced by their aggregate `sum a_j cut_j / sum a_j`, kept in f64, which carries their
    /// share of the solution on. Groups are never mixed and cuts that are new since the last solve stay as they
    /// are, so one active cut for each group and the new ones may remain where `max_cuts` is less.
    pub fn shrink_to(&mut self, max_cuts: usize) {
        let Some(excess) = self.len().checked_sub(max_cuts).filter(|&e| e > 0) else { return };
        let newest = self.len() - 1;
        // A cut that has not been through a solve yet has a = 0 too, but is news.
        let is_inactive = |&j: &usize| self.alphas()[j] == 0.0 && self.idle[j] > 0;
        let mut inactive: Vec<usize> = (0..newest).filter(is_inactive).collect();
        inactive.sort_by_key(|&j| std::cmp::Reverse(self.idle[j])); // stable: the older first
        inactive.truncate(excess);
        let kept: Vec<usize> = (0..self.len()).filter(|j| !inactive.contains(j)).collect();
        self.keep(&kept);
        while self.len() > max_cuts {
            let newest = self.len() - 1;
            let mut members = vec![Vec::new(); self.caps().len()];
            for j in (0..newest).filter(|&j| self.alphas()[j] > 0.0) {
                members[self.group_of(j)].push(j);
            }
            let Some(mut fullest) = members.into_iter().max_by_key(Vec::len).filter(|m| m.len() > 1) else { return };
            fullest.sort_by(|&i, &j| self.alphas()[i].total_cmp(&self.alphas()[j]));
            fullest.truncate(self.len() - max_cuts + 1);
            self.merge(&fullest);
        }
    }

    /// Replaces the active cuts `members` of one group by their aggregate, in the place of the first of them.
    fn merge(&mut self, members: &[usize]) {
        let p = self.dual.groups();
        let place = members.iter().copied().min().expect("some cuts to merge");
        let sum: f64 = members.iter().map(|&j| self.alphas()[j]).sum();
        let share: Vec<(usize, f64)> = members.iter().map(|&j| (j, self.alphas()[j] / sum)).collect();
        self.dense.resize(self.dimension, 0.0);
        let mut row = vec![0.0; self.dual.len()];
        let mut rhs = 0.0;
        for &(j, share) in &share {
            self.cuts[j].add_to(share, &mut self.dense);
            axpy(share, self.dual.hessian.row(p + j), &mut row);
            rhs += share * self.dual.b[p + j];
        }
        let diagonal = share.iter().map(|&(j, share)| share * row[p + j]).sum();
        row[p + place] = diagonal;
        let mean = Cut::mean(&self.dense, rhs, share.iter().map(|&(j, share)| (&self.cuts[j], share)));
        mean.clear_from(&mut self.dense);
        self.cuts[place] = mean;
        self.dual.replace(p + place, sum, rhs, &row);
        let kept: Vec<usize> = (0..self.len()).filter(|j| *j == place || !members.contains(j)).collect();
        self.idle[place] = 0;
        self.born[place] = members.iter().map(|&j| self.born[j]).min().unwrap_or(0);
        self.keep(&kept);
        self.dual.refresh();
    }

    /// Keeps the cuts in `kept`, which ascends.
    fn keep(&mut self, kept: &[usize]) {
        let p = self.dual.groups();
        for (new, &old) in kept.iter().enumerate() {
            self.cuts.swap(new, old);
        }
        self.cuts.truncate(kept.len());
        gather(&mut self.idle, kept);
        gather(&mut self.born, kept);
        let variables: Vec<usize> = (0..p).chain(kept.iter().map(|j| p + j)).collect();
        self.dual.keep(&variables);
    }
}
