//! Newton steps on the support: the finish that pair steps alone would crawl to.

use super::dual::{Dual, Phase};
use super::factor::Factor;
use crate::sparse::{axpy, dot};

/// What is left of a diagonal entry after elimination is held at this fraction of the squared lengths
/// involved: above the rounding of a few hundred eliminations, and small enough for cuts that nearly agree
/// (1e-14 and 1e-12 stalled farther from the optimum on random near-copies with caps up to 1e7).
const RIDGE: f64 = 1e-13;

/// A group's best outsider enters with the best of all when its violation is at least this fraction of it.
const COMPANY: f64 = 0.3;

/// Full steps on one support that may leave a residual before the factor is computed anew.
const REFINEMENTS: usize = 3;

/// An active-set method. In each group one variable is the pivot that gives or takes what the others move, so
/// that the free variables (the support without the pivots) are free of constraints but a >= 0. With
/// `u_j = lhs_j - lhs_pivot`, the direction solves `<u_j, u_k> d_k = G_j - G_pivot`; it is followed to the
/// optimum of the quadratic or to the first variable that reaches zero, whichever comes first. When the support
/// is at its optimum, the most violating variable enters. Each change costs O(cuts * support), and the
/// value never falls, however rough the factor: the step along the direction is exact.
#[derive(Debug, Clone, Default)]
pub(super) struct Newton {
    factor: Factor,
    /// In the factor's order.
    free: Vec<usize>,
    /// By group; none for a cap of zero.
    pivot: Vec<Option<usize>>,
    in_support: Vec<bool>,
    /// The largest squared length of a cut, or 1 where all are zero.
    longest: f64,
    /// The direction, by free variable and by variable.
    x: Vec<f64>,
    d: Vec<f64>,
    hd: Vec<f64>,
    /// By group: the largest violation outside the support, and who.
    outside: Vec<(f64, usize)>,
    peak: Vec<f64>,
}

impl Newton {
    /// At most `changes` steps.
    pub(super) fn ascend(&mut self, dual: &mut Dual, tolerance: f64, changes: usize) -> Phase {
        self.rebuild(dual);
        let mut full_steps = 0;
        for _ in 0..changes {
            let mass = dual.mass();
            let residual = self.residual(dual, mass);
            let violation = self.look_outside(dual, mass);
            if residual <= 0.5 * violation {
                if dual.gap(&mut self.peak) <= tolerance {
                    return Phase::Solved;
                }
                if violation == 0.0 {
                    return Phase::Spent;
                }
                self.enter(dual, COMPANY * violation);
                full_steps = 0;
            } else if full_steps > 2 * REFINEMENTS {
                return Phase::Spent;
            } else if full_steps == REFINEMENTS {
                self.rebuild(dual);
            }
            let Some(limit) = self.direct(dual) else { return Phase::Spent };
            let (slope, curvature) = (dot(&self.d, &dual.gradient), dot(&self.d, &self.hd));
            if slope <= 0.0 {
                return Phase::Spent;
            }
            if limit.is_infinite() && dual.is_hard() && dual.proves_infeasible(&self.d) {
                return Phase::Unbounded;
            }
            let best = if curvature > 0.0 { slope / curvature } else { f64::INFINITY };
            if limit.min(best).is_infinite() {
                return Phase::Spent;
            }
            if best < limit {
                full_steps += 1;
                self.step(dual, best, f64::NEG_INFINITY);
            } else {
                self.step(dual, limit, limit);
            }
        }
        Phase::Spent
    }

    /// Support, pivots and factor from the a's.
    fn rebuild(&mut self, dual: &Dual) {
        self.pivot.clear();
        self.pivot.extend((0..dual.groups()).map(|g| (dual.a[g] > 0.0).then_some(g)));
        for j in dual.cuts() {
            let pivot = &mut self.pivot[dual.group[j]];
            // The largest is the last to reach zero, which would cost a new factor.
            if dual.a[j] > pivot.map_or(0.0, |k| dual.a[k]) {
                *pivot = Some(j);
            }
        }
        self.longest = dual.cuts().map(|j| dual.hessian.at(j, j)).filter(|&h| h > 0.0).reduce(f64::max).unwrap_or(1.0);
        self.factor.clear();
        self.free.clear();
        self.in_support.clear();
        self.in_support.resize(dual.len(), false);
        for j in 0..dual.len() {
            if self.pivot[dual.group[j]] == Some(j) {
                self.in_support[j] = true;
            } else if dual.a[j] > 0.0 {
                self.append(dual, j);
            }
        }
    }

    fn append(&mut self, dual: &Dual, j: usize) {
        let Self { factor, free, pivot, longest, .. } = self;
        let pivot = |v: usize| pivot[dual.group[v]].unwrap_or(v);
        let q = pivot(j);
        let (row, base) = (dual.hessian.row(j), dual.hessian.row(q));
        let column = free.iter().map(|&k| (row[k] - base[k]) - (row[pivot(k)] - base[pivot(k)]));
        let scale = row[j] + base[q];
        // A cut <w, 0> >= b against the slack is flat: what counts as flat beside the other cuts?
        let floor = RIDGE * if scale > 0.0 { scale } else { *longest };
        factor.append(column, dual.hessian.distance2(j, q) + floor, floor);
        free.push(j);
        self.in_support[j] = true;
    }

    fn remove(&mut self, position: usize) {
        self.factor.remove(position);
        let j = self.free.remove(position);
        self.in_support[j] = false;
    }

    /// `G_j - G_pivot`, unless it is rounding only.
    fn rise(&self, dual: &Dual, mass: f64, j: usize) -> Option<f64> {
        let q = self.pivot[dual.group[j]]?;
        let rise = dual.gradient[j] - dual.gradient[q];
        (rise.abs() > dual.rounding(j, mass) + dual.rounding(q, mass)).then_some(rise)
    }

    /// How far the support is from its optimum.
    fn residual(&self, dual: &Dual, mass: f64) -> f64 {
        self.free.iter().filter_map(|&j| self.rise(dual, mass, j)).fold(0.0, |most, r| most.max(r.abs()))
    }

    /// The largest violation among the variables outside the support.
    fn look_outside(&mut self, dual: &Dual, mass: f64) -> f64 {
        self.outside.clear();
        self.outside.resize(dual.groups(), (0.0, 0));
        for j in 0..dual.len() {
            if !self.in_support[j]
                && let Some(rise) = self.rise(dual, mass, j)
            {
                let outside = &mut self.outside[dual.group[j]];
                if rise > outside.0 {
                    *outside = (rise, j);
                }
            }
        }
        self.outside.iter().fold(0.0, |most, o| most.max(o.0))
    }

    /// The best outsider of each group enters, if it violates by `least`.
    fn enter(&mut self, dual: &Dual, least: f64) {
        for g in 0..dual.groups() {
            let (violation, j) = self.outside[g];
            if violation > 0.0 && violation >= least {
                self.append(dual, j);
            }
        }
    }

    /// The direction, and how far a >= 0 allows to follow it.
    fn direct(&mut self, dual: &Dual) -> Option<f64> {
        loop {
            let Self { x, free, pivot, .. } = self;
            x.clear();
            x.extend(free.iter().map(|&j| pivot[dual.group[j]].map_or(0.0, |q| dual.gradient[j] - dual.gradient[q])));
            self.factor.solve(&mut self.x);
            // Of several that entered together, some may have been misled by the others.
            let before = self.free.len();
            for position in (0..before).rev() {
                if self.x[position] <= 0.0 && dual.a[self.free[position]] == 0.0 {
                    self.remove(position);
                }
            }
            if self.free.is_empty() {
                return None;
            }
            if self.free.len() == before {
                break;
            }
        }
        self.d.clear();
        self.d.resize(dual.len(), 0.0);
        for (&j, &x) in self.free.iter().zip(&self.x) {
            self.d[j] += x;
            if let Some(q) = self.pivot[dual.group[j]] {
                self.d[q] -= x;
            }
        }
        self.hd.clear();
        self.hd.resize(dual.len(), 0.0);
        for j in dual.cuts().filter(|&j| self.d[j] != 0.0) {
            axpy(self.d[j], dual.hessian.row(j), &mut self.hd);
        }
        let limits = self.d.iter().zip(&dual.a).filter(|(d, _)| **d < 0.0).map(|(d, a)| a / -d);
        Some(limits.fold(f64::INFINITY, f64::min))
    }

    /// Follows the direction; variables whose limit is within rounding of `limit` become exactly zero.
    fn step(&mut self, dual: &mut Dual, length: f64, limit: f64) {
        for (a, &d) in dual.a.iter_mut().zip(&self.d) {
            if d != 0.0 {
                let next = *a + length * d;
                let hit = d < 0.0 && (*a / -d) * (1.0 - 1e-14) <= limit;
                *a = if hit { 0.0 } else { next.max(0.0) };
            }
        }
        axpy(-length, &self.hd, &mut dual.gradient);
        if self.pivot.iter().flatten().any(|&q| dual.a[q] == 0.0) {
            self.rebuild(dual);
            return;
        }
        for position in (0..self.free.len()).rev() {
            if dual.a[self.free[position]] == 0.0 {
                self.remove(position);
            }
        }
    }
}
