//! A point near the run's at which all blocks agree: its dual value is a bound.
//!
//! Variables keep their masses, and with them the part of w that is theirs. The masses of a factor are scaled down to what its
//! variables allow, one variable after the other, and what is missing then is matched label by label (the north-west corner
//! rule). The more the blocks agree already, the less is changed.

use super::block::Block;
use super::visit::{Few, VisitScratch};
use super::{Duals, Run};
use crate::parallel::{Pool, ranges};

/// What is left of a mass below this share of U is rounding.
const NOTHING: f64 = 1e-14;

/// A change of one weight.
type Change = (usize, f64);

/// What one factor's new masses need, kept from one to the next.
#[derive(Default)]
struct Matching {
    masses: Vec<(u32, f64)>,
    /// By joint: what a variable has more than the factor, by label.
    missing: Vec<Few>,
    margin: Few,
}

impl<'p> Run<'p, '_> {
    /// What P is at least; on loops, with the loss of the relaxation.
    pub(super) fn dual_bound(&self, pool: &Pool) -> f64 {
        const PARTS: usize = 256;
        let parts = pool.map(ranges(self.problem.len(), PARTS), |range| {
            let (mut scratch, mut matching) = (VisitScratch::default(), Matching::default());
            let (mut cost, mut changes) = (0.0, Vec::new());
            for i in range {
                cost += self.agree(i, &mut scratch, &mut matching, &mut changes);
            }
            (cost, changes)
        });
        let cost: f64 = parts.iter().map(|part| part.0).sum();
        let mut changes: Vec<Change> = parts.into_iter().flat_map(|part| part.1).collect();
        changes.sort_by_key(|change| change.0);
        let mut norm2 = self.w.norm2();
        for same in changes.chunk_by(|a, b| a.0 == b.0) {
            let (w, change) = (self.w.as_slice()[same[0].0], same.iter().map(|change| change.1).sum::<f64>());
            norm2 += change * (2.0 * w + change);
        }
        cost - 0.5 * norm2
    }

    /// Makes the factors of an example agree with its variables: lists how w changes, and returns what the variables' wrong
    /// labels cost.
    fn agree(
        &self,
        i: usize,
        scratch: &mut VisitScratch<'p>,
        matching: &mut Matching,
        changes: &mut Vec<Change>,
    ) -> f64 {
        let (duals, cap) = (&self.duals[i], self.problem.share(i));
        self.fill(i, duals, scratch);
        let VisitScratch { structure, truth, .. } = scratch;
        for (f, factor) in structure.factors.iter().enumerate() {
            matching.scale_down(duals, f, |joint, label| structure.own(joint, label), structure.joints_of(f));
            let strides = |position: usize, own: u32| structure.stride(f, position) * own;
            matching.fill_up(cap, strides);
            let mut change = Few::default();
            matching.masses.iter().for_each(|&(label, mass)| change.add(label, mass));
            duals.factors[f].held.iter().for_each(|&(label, mass)| change.add(label, -mass));
            for &(label, change) in change.entries.iter().filter(|entry| entry.1.abs() > NOTHING * cap) {
                if let Some(slot) = factor.part.slots.of(label as usize, factor.labels as usize) {
                    let place = |j: u32| factor.part.block.at(j, slot);
                    changes.extend(factor.part.phi.iter().map(|(j, x)| (place(j), -change * f64::from(x))));
                }
            }
        }
        if let Some(sets) = self.sets() {
            let block = sets.factor_block();
            // Two members without a factor of their own are in together as little as they can be.
            duals.each_unlinked(sets, |f, (a, b)| {
                let overlap = duals.mass_in(a) + duals.mass_in(b) - cap;
                if overlap > NOTHING * cap {
                    changes.push((block.at(0, f as u32), -overlap));
                }
            });
        }
        let scale = self.problem.formulation().loss_scale;
        let wrong = |(block, &truth): (&Block, &u32)| {
            let mass: f64 = block.held.iter().filter(|held| held.0 != truth).map(|held| held.1).sum();
            scale * self.factored.cost(truth) * mass
        };
        duals.variables.iter().zip(&*truth).map(wrong).sum()
    }
}

impl Matching {
    /// The masses of factor f, each at most what all variables allow; and what then is missing.
    fn scale_down(
        &mut self,
        duals: &Duals,
        f: usize,
        own: impl Fn(usize, u32) -> u32,
        joints: impl Iterator<Item = (usize, usize)> + Clone,
    ) {
        let Self { masses, missing, margin } = self;
        masses.clear();
        masses.extend(duals.factors[f].held.iter().filter(|held| held.1 > 0.0));
        for (joint, v) in joints.clone() {
            margin.entries.clear();
            for &(label, mass) in masses.iter() {
                margin.add(own(joint, label), mass);
            }
            let allowed = &duals.variables[v];
            for (label, mass) in masses.iter_mut() {
                let own = own(joint, *label);
                let most = allowed.place(own).map_or(0.0, |place| allowed.held[place].1);
                *mass *= (most / margin.get(own)).min(1.0);
            }
            masses.retain(|entry| entry.1 > 0.0);
        }
        missing.clear();
        for (joint, v) in joints {
            let mut more =
                Few { entries: duals.variables[v].held.iter().copied().filter(|held| held.1 > 0.0).collect() };
            for &(label, mass) in masses.iter() {
                more.add(own(joint, label), -mass);
            }
            missing.push(more);
        }
    }

    /// Adds masses until nothing is missing. `label(position, own)`: what a variable's label adds to that of the factor.
    fn fill_up(&mut self, cap: f64, label: impl Fn(usize, u32) -> u32) {
        let Self { masses, missing, .. } = self;
        let mut at = vec![0; missing.len()];
        loop {
            let (mut sum, mut mass) = (0, f64::INFINITY);
            for (position, (few, at)) in missing.iter().zip(&mut at).enumerate() {
                while few.entries.get(*at).is_some_and(|entry| entry.1 <= NOTHING * cap) {
                    *at += 1;
                }
                let Some(&(own, most)) = few.entries.get(*at) else { return };
                sum += label(position, own);
                mass = mass.min(most);
            }
            masses.push((sum, mass));
            for (few, &at) in missing.iter_mut().zip(&at) {
                few.entries[at].1 -= mass;
            }
        }
    }
}
