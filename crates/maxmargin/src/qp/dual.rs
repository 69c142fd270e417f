//! The state of the dual: variables, gradient, and what they prove.

use serde::{Deserialize, Serialize};

use super::hessian::Hessian;
use crate::sparse::axpy;

/// Data that separate with a margin below 1e-7 of the cuts' length count as inseparable: squared lengths
/// carry a relative error near 1e-16, so a sum of cuts below 1e-8 of its terms cannot be told from zero.
const SEPARABLE: f64 = 1e7;

/// A gradient below this fraction of the terms that it sums is rounding.
const ROUNDING: f64 = 4e-15;

/// What a phase of the solver ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The gap is within the tolerance.
    Solved,
    /// Its steps are used up, or it sees nothing more to gain.
    Spent,
    /// A ray proves that groups without a cap cannot be satisfied.
    Unbounded,
}

/// Variables 0..p are the slacks of the p groups: cuts `<w, 0> >= 0` that take what the others leave of the
/// cap, so that the a's of a group always sum to it exactly. The cuts follow.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Dual {
    pub(super) hessian: Hessian,
    pub(super) b: Vec<f64>,
    pub(super) a: Vec<f64>,
    /// `b - H a`
    pub(super) gradient: Vec<f64>,
    pub(super) group: Vec<usize>,
    /// `|lhs|`
    pub(super) norm: Vec<f64>,
    pub(super) caps: Vec<f64>,
}

impl Dual {
    pub(super) fn new(caps: Vec<f64>) -> Self {
        let p = caps.len();
        let zeros = vec![0.0; p];
        Self {
            hessian: Hessian::zeros(p),
            b: zeros.clone(),
            a: caps.clone(),
            gradient: zeros.clone(),
            group: (0..p).collect(),
            norm: zeros,
            caps,
        }
    }

    pub(super) fn groups(&self) -> usize {
        self.caps.len()
    }

    pub(super) fn len(&self) -> usize {
        self.a.len()
    }

    /// The indices of the cuts among the variables.
    pub(super) fn cuts(&self) -> std::ops::Range<usize> {
        self.groups()..self.len()
    }

    /// Adds a cut with a = 0. `row`: its inner products with all variables, itself last.
    pub(super) fn push(&mut self, group: usize, b: f64, row: &[f64]) {
        self.hessian.push(row);
        let score: f64 = self.cuts().map(|j| self.a[j] * row[j]).sum();
        self.b.push(b);
        self.a.push(0.0);
        self.gradient.push(b - score);
        self.group.push(group);
        self.norm.push(row[row.len() - 1].max(0.0).sqrt());
    }

    /// Keeps the variables in `kept`, which ascends and contains the slacks. The a's of the others are
    /// zero, or the caller has moved them elsewhere.
    pub(super) fn keep(&mut self, kept: &[usize]) {
        self.hessian.keep(kept);
        for column in [&mut self.b, &mut self.a, &mut self.gradient, &mut self.norm] {
            gather(column, kept);
        }
        gather(&mut self.group, kept);
    }

    /// Another cut in the place of variable `j`.
    pub(super) fn replace(&mut self, j: usize, a: f64, b: f64, row: &[f64]) {
        self.hessian.replace(j, row);
        (self.a[j], self.b[j]) = (a, b);
        self.norm[j] = row[j].max(0.0).sqrt();
    }

    /// Removes the rounding that many small steps have left: the a's of a group sum to its cap again, the
    /// gradient is computed from scratch.
    pub(super) fn refresh(&mut self) {
        for g in 0..self.groups() {
            let cap = self.caps[g];
            if cap.is_infinite() {
                continue;
            }
            let sum: f64 = self.cuts().filter(|&j| self.group[j] == g).map(|j| self.a[j]).sum();
            let slack = cap - sum;
            if sum > 0.0 && (slack <= 0.0 || self.a[g] == 0.0) {
                self.a[g] = 0.0;
                self.scale(g, cap / sum);
            } else {
                self.a[g] = slack;
            }
        }
        self.gradient.copy_from_slice(&self.b);
        for j in self.groups()..self.len() {
            if self.a[j] > 0.0 {
                axpy(-self.a[j], self.hessian.row(j), &mut self.gradient);
            }
        }
    }

    /// Multiplies the a's of the cuts of group `g`.
    pub(super) fn scale(&mut self, g: usize, factor: f64) {
        for j in self.cuts() {
            if self.group[j] == g {
                self.a[j] *= factor;
            }
        }
    }

    /// `b'a - 1/2 a'Ha`
    pub(super) fn value(&self) -> f64 {
        self.cuts().map(|j| 0.5 * self.a[j] * (self.b[j] + self.gradient[j])).sum()
    }

    /// `sum a_j |lhs_j|`: the length of w if nothing cancelled, by which its rounding is measured.
    pub(super) fn mass(&self) -> f64 {
        self.cuts().map(|j| self.a[j] * self.norm[j]).sum()
    }

    /// The size of a gradient of variable `j` that is rounding only.
    pub(super) fn rounding(&self, j: usize, mass: f64) -> f64 {
        ROUNDING * (mass * self.norm[j] + self.b[j].abs())
    }

    pub(super) fn is_hard(&self) -> bool {
        self.caps.contains(&f64::INFINITY)
    }

    /// The restricted primal less the dual value; see [`Qp::gap`](super::Qp::gap). `peak` is scratch.
    pub(super) fn gap(&self, peak: &mut Vec<f64>) -> f64 {
        let Some(stretch) = self.stretch() else { return f64::INFINITY };
        peak.clear();
        peak.resize(self.groups(), 0.0);
        let (mut ag, mut w2) = (0.0, 0.0);
        for j in self.cuts() {
            let (a, g) = (self.a[j], self.gradient[j]);
            let score = self.b[j] - g;
            ag += a * g;
            w2 += a * score;
            let slack = g - (stretch - 1.0) * score;
            let peak = &mut peak[self.group[j]];
            *peak = peak.max(slack);
        }
        let finite = |cap: &f64| cap.is_finite();
        let slacks: f64 =
            self.caps.iter().zip(peak).filter(|(cap, _)| finite(cap)).map(|(cap, peak)| cap * *peak).sum();
        // 1/2 |s w|^2 + slacks - (b'a - 1/2 |w|^2), with b'a = a'G + |w|^2
        0.5 * (stretch - 1.0) * (stretch + 1.0) * w2 + slacks - ag
    }

    /// The least s >= 1 for which s w satisfies every cut of the groups without a cap.
    ///
    /// With v < 1 the worst relative violation `(b_j - <w, lhs_j>) / b_j`, that is 1 / (1 - v). Cuts with
    /// `b_j <= 0` are not helped by stretching w: when one of them is violated by more than rounding there
    /// is no such s; a violation within rounding is let pass, since no f64 computation can tell it from none.
    fn stretch(&self) -> Option<f64> {
        if !self.is_hard() {
            return Some(1.0);
        }
        let mass = self.mass();
        let hard = || self.cuts().filter(|&j| self.caps[self.group[j]].is_infinite());
        let helped = |j: usize| self.b[j] > self.rounding(j, mass);
        let worst = hard().filter(|&j| helped(j)).map(|j| self.gradient[j] / self.b[j]).fold(0.0, f64::max);
        if worst >= 1.0 {
            return None;
        }
        let stretch = 1.0 / (1.0 - worst);
        let fits = |j: usize| self.b[j] - stretch * (self.b[j] - self.gradient[j]) <= stretch * self.rounding(j, mass);
        hard().all(|j| helped(j) || fits(j)).then_some(stretch)
    }

    /// Does `x >= 0`, taken over the cuts of groups without a cap, prove that no w satisfies them all?
    ///
    /// Every such w has `|w| >= b'x / |sum x lhs|`. The proof is accepted when this bound, times the length
    /// of a cut over its right side, exceeds [`SEPARABLE`]; for opposite cuts it is infinite.
    pub(super) fn proves_infeasible(&self, x: &[f64]) -> bool {
        let hard = || self.cuts().filter(|&j| x[j] > 0.0 && self.caps[self.group[j]].is_infinite());
        let (mut gain, mut mass, mut longest, mut square) = (0.0, 0.0, 0.0, 0.0);
        for j in hard() {
            gain += x[j] * self.b[j];
            mass += x[j] * self.norm[j];
            if self.b[j] > 0.0 {
                longest = f64::max(longest, self.norm[j] / self.b[j]);
            }
            let row = self.hessian.row(j);
            square += x[j] * hard().map(|k| x[k] * row[k]).sum::<f64>();
        }
        // Both the sum must cancel (else a tiny right side alone could pass for a proof), and the bound be large.
        let sum = square.max(0.0).sqrt();
        gain > 0.0 && (mass == 0.0 || SEPARABLE * sum < mass.min(gain * longest))
    }
}

/// Keeps the elements at `kept`, which ascends.
pub(super) fn gather<T: Copy>(column: &mut Vec<T>, kept: &[usize]) {
    for (new, &old) in kept.iter().enumerate() {
        column[new] = column[old];
    }
    column.truncate(kept.len());
}
