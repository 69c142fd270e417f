//! Which part of a cut is taken where a kernel makes its inner products dear.
//!
//! A cut is a sum over atoms, and its inner products with all of them cost a row of kernel values for each that it has.
//! A cut near the last one differs from it in the few examples that have become violated since, or are so no longer; so
//! what is computed is that difference. Where it still has more atoms than `size`, some are drawn: each with a probability
//! in proportion to its share, counted as many times as that probability was small. What was drawn wrongly once is part of
//! the next difference, and near the end, where little changes, cuts are exact.
//!
//! (Yu and Joachims 2008, Algorithm 3, draw from the whole cut; a control variate and importance sampling are what
//! their section 7 asks for.)

use serde::{Deserialize, Serialize};

use crate::kernel::Metric;
use crate::parallel::Pool;
use crate::solver::random::Random;

/// How atoms are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// From what has changed since the last cut, in proportion to its size.
    #[default]
    Differences,
    /// Examples, with equal probabilities and replacement, from all that are violated, until the cut is: the paper's.
    Uniform,
}

/// How much of a cut is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sampling {
    /// r: at most so many atoms, or examples, a cut.
    pub size: usize,
    /// Which ones.
    pub scheme: Scheme,
}

/// The last cut of a group that was taken: its left side and image.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Drawn {
    pub(super) lhs: Vec<f64>,
    pub(super) image: Vec<f64>,
}

/// From one taken cut to the next.
pub(super) struct Step {
    /// By how much the left side changes, coordinates ascending.
    pub(super) change: Vec<(u64, f64)>,
    /// Does it begin at the last cut? Else at zero.
    pub(super) is_near: bool,
    /// Is nothing left out?
    pub(super) is_exact: bool,
}

impl Drawn {
    pub(super) fn new(d: usize) -> Self {
        Self { lhs: vec![0.0; d], image: vec![0.0; d] }
    }

    /// From the last cut, or from zero where that is nearer, towards `target`, by the rows of at most `size` atoms.
    pub(super) fn step_towards(
        &mut self,
        target: &[f64],
        metric: Metric<'_>,
        size: usize,
        random: &mut Random,
    ) -> Step {
        let near = Difference::new(metric, target, Some(&self.lhs));
        let far = Difference::new(metric, target, None);
        let is_near = near.mass <= far.mass;
        let difference = if is_near { near } else { far };
        if !is_near {
            self.clear();
        }
        let is_exact = difference.atoms.len() <= size;
        let change = if is_exact { difference.change } else { difference.drawn(metric, size, random) };
        Step { change, is_near, is_exact }
    }

    /// Forgets the last cut: the next step begins at zero.
    pub(super) fn clear(&mut self) {
        self.lhs.fill(0.0);
        self.image.fill(0.0);
    }

    /// Goes that step.
    pub(super) fn go(&mut self, change: &[(u64, f64)], metric: Metric<'_>, pool: &Pool) {
        for &(at, value) in change {
            self.lhs[at as usize] += value;
        }
        metric.add_image(change, &mut self.image, pool);
    }
}

/// `target` less the last cut, by atoms.
struct Difference {
    change: Vec<(u64, f64)>,
    /// For each atom of the difference: its size, and where its part of `change` ends.
    atoms: Vec<(f64, usize)>,
    mass: f64,
    /// Outside the kernel's block: before the first atom's part and after the last one's.
    before: usize,
}

impl Difference {
    fn new(metric: Metric<'_>, target: &[f64], from: Option<&[f64]>) -> Self {
        let mut change: Vec<(u64, f64)> = Vec::new();
        let mut atoms: Vec<(f64, usize)> = Vec::new();
        let (mut mass, mut before, mut last) = (0.0, 0, None);
        for (at, &value) in target.iter().enumerate() {
            let difference = value - from.map_or(0.0, |from| from[at]);
            if difference == 0.0 {
                continue;
            }
            change.push((at as u64, difference));
            match metric.atom(at as u64) {
                None if atoms.is_empty() => before = change.len(),
                None => {}
                Some(atom) => {
                    let size = difference.abs() * metric.gram().diagonal(atom).max(0.0).sqrt();
                    mass += size;
                    match atoms.last_mut() {
                        Some((sum, end)) if last == Some(atom) => (*sum, *end) = (*sum + size, change.len()),
                        _ => atoms.push((size, change.len())),
                    }
                    last = Some(atom);
                }
            }
        }
        Self { change, atoms, mass, before }
    }

    /// About `size` of the atoms, by systematic sampling: atom a is taken with probability `min(1, tau * its size)`, and
    /// counts the more the less likely that was.
    fn drawn(&self, metric: Metric<'_>, size: usize, random: &mut Random) -> Vec<(u64, f64)> {
        let tau = threshold(self.atoms.iter().map(|a| a.0).collect(), size);
        let mut drawn = self.change[..self.before].to_vec();
        let (mut start, mut sum, offset) = (self.before, 0.0, random.unit());
        for &(share, end) in &self.atoms {
            let probability = (tau * share).min(1.0);
            let before = sum;
            sum += probability;
            // A point of the grid offset + 0, 1, 2, ... lies in (before, sum].
            if (sum - offset).floor() > (before - offset).floor() {
                drawn.extend(self.change[start..end].iter().map(|&(at, value)| (at, value / probability)));
            }
            start = end;
        }
        let tail = self.change[start..].iter().filter(|e| metric.atom(e.0).is_none());
        drawn.extend(tail);
        drawn
    }
}

/// tau with `sum min(1, tau s) = size`, for more than `size` positive s.
fn threshold(mut shares: Vec<f64>, size: usize) -> f64 {
    shares.sort_by(|a, b| b.total_cmp(a));
    let mut rest: f64 = shares.iter().sum();
    for (certain, &share) in shares.iter().take(size).enumerate() {
        let tau = (size - certain) as f64 / rest;
        if tau * share <= 1.0 {
            return tau;
        }
        rest -= share;
    }
    // All but rounding is certain.
    f64::MAX
}
