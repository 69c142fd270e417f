//! Outputs that are sets: which labels are looked at, and which pairs of them.
//!
//! A label that is neither in the truth nor has mass needs no block, and none of its factors does: with no mass on pairs
//! that are in together a factor agrees with whatever its other label has, at no cost. So an example has few *members*, the
//! labels of the truth and those that came in. Two of them are *linked*, and have a block for their factor, once it scores or
//! their masses together are more than one set can hold. A visit begins with the search for newcomers: labels
//! whose score and whose factors with members that have mass outweigh staying out; and two labels that do so together.

use super::block::Block;
use super::look::add_range;
use super::structure::Structure;
use super::visit::{Few, VisitScratch};
use super::{Course, Duals, Run};
use crate::error::Result;
use crate::parallel::Pool;
use crate::problem::OracleScratch;
use crate::task::{Part, Sets, Slots};

/// So many labels come in at a visit, at most.
const NEWCOMERS: usize = 16;

/// Pairs are looked for at so many labels, those that are nearest to coming in.
const ROWS: usize = 4;

/// Two members whose factor scores badly are no longer linked where both together have less than this share of U.
const LOOSE: f64 = 0.9;

/// Multipliers up to this share of U are forgotten with their link. Larger ones have to be found again, and again.
const AT_REST: f64 = 1e-3;

/// A member without mass that loses so much by coming in leaves.
const FAR: f64 = 0.2;

/// Where P is only to be known roughly so many examples are decoded, and this share of the slack is taken for what there is at least.
const SAMPLE: usize = 16;
const SURE_SLACK: f64 = 0.5;

impl<'p> Run<'p, '_> {
    /// Is the gap far from what is asked for, by the look of some examples? Decoding all of them may take long.
    pub(super) fn is_far(&self, course: &mut Course<'_>, pool: &Pool) -> Result<bool> {
        let n = self.problem.len();
        let some = (0..n.min(SAMPLE)).map(|k| k * n / n.min(SAMPLE)).collect();
        let slacks = course.in_oracle(|| {
            pool.map(some, |i: usize| self.problem.slack_at_most(i, &self.w, &mut OracleScratch::default()))
        });
        let mean = slacks.into_iter().sum::<Result<f64>>()? / n.min(SAMPLE) as f64;
        let primal = 0.5 * self.w.norm2() + SURE_SLACK * self.problem.formulation().c * mean;
        Ok(primal - self.dual_value() > course.target_at(primal))
    }

    /// Lets members go and takes newcomers in, and links those that should be. The structure is that of the members before.
    pub(super) fn renew_members(
        &self,
        sets: &dyn Sets,
        (i, anywhere, cap): (usize, usize, f64),
        duals: &mut Duals,
        scratch: &mut VisitScratch<'p>,
    ) {
        let factors = self.w.of(sets.factor_block());
        let score = |a: u32, b: u32| sets.factor_of(a.min(b), a.max(b)).map_or(0.0, |f| factors[f]);
        let start = self.fill_gains(i, anywhere, duals, score, &mut scratch.range);
        let VisitScratch { structure, truth, range: gains, .. } = scratch;
        let stays: Vec<bool> = (0..duals.members.len())
            .map(|v| {
                let gain = gains.get((duals.members[v] as usize).wrapping_sub(start));
                let is_far = gain.is_some_and(|&gain| gain < -FAR);
                truth[v] == 1 || !is_far || !duals.is_idle(v, structure, cap)
            })
            .collect();
        let keeps: Vec<bool> = (0..duals.links.len())
            .map(|f| {
                let (a, b) = (duals.links[f].0 as usize, duals.links[f].1 as usize);
                let is_of_use = score(duals.members[a], duals.members[b]) >= 0.0 || truth[a] + truth[b] == 2;
                stays[a] && stays[b] && (is_of_use || !duals.is_loose(f, cap))
            })
            .collect();
        let newcomers = newcomers(gains, start, &duals.members, score);
        duals.let_go(&stays, &keeps);
        for label in newcomers {
            duals.members.push(label);
            duals.variables.push(Block::at(0, cap));
        }
        let mut links = Vec::new();
        duals.each_unlinked(sets, |f, (a, b)| {
            if factors[f] > 0.0 || duals.mass_in(a) + duals.mass_in(b) > cap {
                links.push((a, b));
            }
        });
        for link in links {
            duals.link(link, cap);
        }
    }

    /// What labels gain by coming in, beside members that have mass: those of one part, from the label that is returned.
    fn fill_gains(
        &self,
        i: usize,
        anywhere: usize,
        duals: &Duals,
        score: impl Fn(u32, u32) -> f64,
        gains: &mut Vec<f64>,
    ) -> usize {
        let x = self.problem.place(i);
        let labels = self.factored.variables(x);
        let (start, len) = self.part(labels, anywhere);
        gains.clear();
        gains.resize(len, self.factored.cost(0) * self.problem.formulation().loss_scale);
        self.factored.unary(x, 0, &mut |part| {
            add_range(&self.w, &Part { slots: Slots::Each, ..part }, labels as u32, start, gains);
        });
        for (v, &member) in duals.members.iter().enumerate() {
            if duals.mass_in(v) == 0.0 {
                continue;
            }
            for (label, gain) in (start as u32..).zip(&mut *gains).filter(|(label, _)| *label != member) {
                *gain += score(label, member).max(0.0);
            }
        }
        start
    }
}

/// Labels from `start` on that should come in: those that gain most, and the two that gain most together.
fn newcomers(gains: &[f64], start: usize, members: &[u32], score: impl Fn(u32, u32) -> f64) -> Vec<u32> {
    let mut outside: Vec<(f64, u32)> = gains.iter().copied().zip(start as u32..).collect();
    outside.retain(|entry| !members.contains(&entry.1));
    outside.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let (wanted, nearest) = outside.split_at(outside.partition_point(|entry| entry.0 > 0.0));
    let mut best = (0.0, None);
    for &(own, a) in nearest.iter().take(ROWS) {
        for &(other, b) in nearest.iter().filter(|entry| entry.1 != a) {
            let gain = own + other + score(a, b);
            if gain > best.0 {
                best = (gain, Some([a, b]));
            }
        }
    }
    let alone = wanted.iter().take(NEWCOMERS).map(|entry| entry.1);
    alone.chain(best.1.into_iter().flatten()).collect()
}

impl Duals {
    /// The mass with which a member is in.
    pub(super) fn mass_in(&self, v: usize) -> f64 {
        self.variables[v].held.iter().find(|held| held.0 == 1).map_or(0.0, |held| held.1)
    }

    /// Are the multipliers of a link of no weight?
    fn is_at_rest(&self, f: usize, cap: f64) -> bool {
        self.multipliers[2 * f..][..2].iter().flat_map(|few| &few.entries).all(|entry| entry.1.abs() <= AT_REST * cap)
    }

    /// Is nothing lost with a link whose factor scores badly?
    fn is_loose(&self, f: usize, cap: f64) -> bool {
        let (a, b) = self.links[f];
        self.is_at_rest(f, cap)
            && self.mass_in(a as usize) + self.mass_in(b as usize) < LOOSE * cap
            && self.factors[f].held.iter().all(|held| held.0 != 3 || held.1 == 0.0)
    }

    /// Has a member no mass where it is in, neither of its own nor in its links, and these no multipliers of weight?
    fn is_idle(&self, v: usize, structure: &Structure<'_>, cap: f64) -> bool {
        self.mass_in(v) == 0.0
            && structure.joints(v).iter().all(|joint| {
                let f = joint.factor as usize;
                let is_out = |held: &(u32, f64)| held.1 == 0.0 || structure.own(joint.number as usize, held.0) == 0;
                self.is_at_rest(f, cap) && self.factors[f].held.iter().all(is_out)
            })
    }

    /// Visits the pairs of members that have a factor, but no block for it: its number, and their places.
    pub(super) fn each_unlinked(&self, sets: &dyn Sets, mut visit: impl FnMut(usize, (usize, usize))) {
        let n = self.members.len();
        let mut is_linked = vec![false; n * n];
        for &(a, b) in &self.links {
            is_linked[a as usize * n + b as usize] = true;
        }
        for (b, &second) in self.members.iter().enumerate() {
            for (a, &first) in self.members[..b].iter().enumerate().filter(|(a, _)| !is_linked[a * n + b]) {
                if let Some(f) = sets.factor_of(first.min(second), first.max(second)) {
                    visit(f, (a, b));
                }
            }
        }
    }

    /// Keeps some members, and some links of these.
    fn let_go(&mut self, stays: &[bool], keeps: &[bool]) {
        if keeps.contains(&false) {
            retain_with(&mut self.multipliers, keeps.iter().flat_map(|&keeps| [keeps, keeps]));
            retain_with(&mut self.factors, keeps.iter().copied());
            retain_with(&mut self.links, keeps.iter().copied());
        }
        if stays.contains(&false) {
            retain_with(&mut self.variables, stays.iter().copied());
            retain_with(&mut self.members, stays.iter().copied());
            let places: Vec<u32> =
                stays.iter().scan(0, |next, &stays| Some(std::mem::replace(next, *next + u32::from(stays)))).collect();
            for (a, b) in &mut self.links {
                (*a, *b) = (places[*a as usize], places[*b as usize]);
            }
        }
    }

    /// Gives two members a block for their factor, with no mass where both are in.
    fn link(&mut self, (a, b): (usize, usize), cap: f64) {
        let truth = |v: usize| self.variables[v].held[0].0;
        let truth = 2 * truth(a) + truth(b);
        let first = self.mass_in(a);
        let second = self.mass_in(b).min(cap - first);
        let mut held = vec![(0, cap - first - second), (1, second), (2, first), (3, 0.0)];
        held.retain(|held| held.0 == truth || held.1 > 0.0);
        held.sort_by_key(|held| held.0 != truth);
        self.factors.push(Block { held });
        self.multipliers.extend([Few::default(), Few::default()]);
        self.links.push((a as u32, b as u32));
    }
}

fn retain_with<A>(items: &mut Vec<A>, mut is_kept: impl Iterator<Item = bool>) {
    items.retain(|_| is_kept.next().expect("one word for each"));
}
