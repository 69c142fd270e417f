//! Outputs that are sets: which labels are looked at, and which pairs of them.
//!
//! A label that is neither in the truth nor has mass needs no block, and none of its factors does: with no mass on pairs
//! that are in together a factor agrees with whatever its other label has, at no cost. So an example has few *members*, the
//! labels of the truth and those that came in. Two of them are *linked*, and have a block for their factor, once it scores or
//! their masses together are more than one set can hold. A visit begins with the search for newcomers: labels
//! whose score and whose factors with members that have mass outweigh staying out; and two labels that do so together.

use super::block::Block;
use super::visit::{Few, Scratch, add_range};
use super::{Duals, Run};
use crate::task::{Part, Sets, Slots, Task};

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

impl<'a, T: Task> Run<'_, 'a, T> {
    /// Lets members go and takes newcomers in. The structure is that of the members before.
    pub(super) fn renew_members(
        &mut self,
        sets: &dyn Sets,
        (i, anywhere, cap): (usize, usize, f64),
        duals: &mut Duals,
        scratch: &mut Scratch<'a>,
    ) {
        let (x, labels) = (self.problem.input(i), self.factored.variables(self.problem.input(i)));
        let (start, len) = self.part(labels, anywhere);
        let Scratch { structure, truth, range: gains, .. } = scratch;
        gains.clear();
        gains.resize(len, self.factored.cost(0) * self.problem.formulation().loss_scale);
        self.factored.unary(x, 0, &mut |part| {
            add_range(&self.w, &Part { slots: Slots::Each, ..part }, labels as u32, start, gains);
        });
        let block = sets.factor_block();
        let factors = &self.w.as_slice()[block.base as usize..][..block.len() as usize];
        let score = |a: u32, b: u32| sets.factor_of(a.min(b), a.max(b)).map_or(0.0, |f| factors[f]);
        for (&member, own) in duals.members.iter().zip(&duals.variables) {
            if own.held.iter().any(|held| held.0 == 1 && held.1 > 0.0) {
                for (label, gain) in (start as u32..).zip(&mut *gains).filter(|(label, _)| *label != member) {
                    *gain += score(label, member).max(0.0);
                }
            }
        }
        let is_idle = |v: usize| {
            let out = |mass: &[(u32, f64)], is_in: &dyn Fn(u32) -> bool| {
                mass.iter().all(|&(label, mass)| mass == 0.0 || !is_in(label))
            };
            let gain = gains.get((duals.members[v] as usize).wrapping_sub(start));
            let mut joints = structure.joints(v).iter();
            truth[v] == 0
                && gain.is_some_and(|&gain| gain < -FAR)
                && out(&duals.variables[v].held, &|label| label == 1)
                && joints.all(|joint| duals.is_at_rest(joint.factor as usize, cap))
                && structure.joints(v).iter().all(|joint| {
                    let own = |label| structure.own(joint.number as usize, label) == 1;
                    out(&duals.factors[joint.factor as usize].held, &own)
                })
        };
        let stays: Vec<bool> = (0..duals.members.len()).map(|v| !is_idle(v)).collect();
        let mut outside: Vec<(f64, u32)> = gains.iter().copied().zip(start as u32..).collect();
        outside.retain(|entry| !duals.members.contains(&entry.1));
        outside.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let wanted = outside.partition_point(|entry| entry.0 > 0.0);
        let mut newcomers: Vec<u32> = outside[..wanted.min(NEWCOMERS)].iter().map(|entry| entry.1).collect();
        let nearest = &outside[wanted..];
        let mut best = (0.0, None);
        for &(own, a) in nearest.iter().take(ROWS) {
            for &(other, b) in nearest.iter().filter(|entry| entry.1 != a) {
                let gain = own + other + score(a, b);
                if gain > best.0 {
                    best = (gain, Some([a, b]));
                }
            }
        }
        newcomers.extend(best.1.into_iter().flatten());
        let is_kept = |f: usize| {
            let (a, b) = duals.links[f];
            let (a, b) = (a as usize, b as usize);
            let is_idle = duals.is_at_rest(f, cap)
                && score(duals.members[a], duals.members[b]) < 0.0
                && duals.mass_in(a) + duals.mass_in(b) < LOOSE * cap
                && duals.factors[f].held.iter().all(|held| held.0 != 3 || held.1 == 0.0)
                && (truth[a], truth[b]) != (1, 1);
            stays[a] && stays[b] && !is_idle
        };
        let keeps: Vec<bool> = (0..duals.links.len()).map(is_kept).collect();
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
}

impl Duals {
    /// The mass with which a member is in.
    pub(super) fn mass_in(&self, v: usize) -> f64 {
        self.variables[v].held.iter().find(|held| held.0 == 1).map_or(0.0, |held| held.1)
    }

    /// Are the multipliers of a link of no weight?
    fn is_at_rest(&self, f: usize, cap: f64) -> bool {
        let entries = self.multipliers[2 * f..][..2].iter().flat_map(|few| &few.entries);
        entries.into_iter().all(|entry| entry.1.abs() <= AT_REST * cap)
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
