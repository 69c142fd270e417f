//! Outputs that are sets: which labels are looked at.
//!
//! A label that is neither in the truth nor has mass needs no block, and none of its factors does: with no mass on pairs
//! that are in together a factor agrees with whatever its other label has, at no cost. So an example has few *members*, the
//! labels of the truth and those that came in, and the factors among these. A visit begins with the search for
//! newcomers: labels whose score and whose factors with members that have mass outweigh staying out; and two labels
//! that do so together.

use super::block::Block;
use super::visit::{Few, Scratch, add_range};
use super::{Duals, Run};
use crate::task::{Part, Sets, Slots, Task};

/// So many labels come in at a visit, at most.
const NEWCOMERS: usize = 16;

/// Pairs are looked for at so many labels, those that are nearest to coming in.
const ROWS: usize = 4;

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
                && joints.all(|joint| {
                    let own = |label| structure.own(joint.number as usize, label) == 1;
                    out(&duals.factors[joint.factor as usize].held, &own)
                })
        };
        let stays: Vec<bool> = (0..duals.members.len()).map(|v| !is_idle(v)).collect();
        let mut outside: Vec<(f64, u32)> = gains.iter().copied().zip(start as u32..).collect();
        outside.retain(|entry| !duals.members.contains(&entry.1));
        outside.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let wanted = outside.partition_point(|entry| entry.0 > 0.0);
        self.position.gap += cap * outside[..wanted].iter().map(|entry| entry.0).sum::<f64>();
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
        self.position.gap += cap * best.0;
        newcomers.extend(best.1.into_iter().flatten());
        if stays.contains(&false) {
            let is_kept = |f: usize| structure.joints_of(f).all(|(_, v)| stays[v]);
            retain_with(&mut duals.multipliers, structure.owners().map(|f| is_kept(f as usize)));
            retain_with(&mut duals.factors, (0..structure.factors.len()).map(is_kept));
            retain_with(&mut duals.variables, stays.iter().copied());
            retain_with(&mut duals.members, stays.iter().copied());
        }
        newcomers.iter().for_each(|&label| duals.take_in(sets, label, cap));
    }
}

impl Duals {
    /// One more member, which is out.
    fn take_in(&mut self, sets: &dyn Sets, label: u32, cap: f64) {
        for (&member, own) in self.members.iter().zip(&self.variables) {
            if sets.factor_of(member.min(label), member.max(label)).is_some() {
                // Both labels of the member with the newcomer out.
                self.factors.push(Block { held: own.held.iter().map(|&(own, mass)| (2 * own, mass)).collect() });
                self.multipliers.extend([Few::default(), Few::default()]);
            }
        }
        self.members.push(label);
        self.variables.push(Block::at(0, cap));
    }
}

fn retain_with<A>(items: &mut Vec<A>, mut is_kept: impl Iterator<Item = bool>) {
    items.retain(|_| is_kept.next().expect("one word for each"));
}
