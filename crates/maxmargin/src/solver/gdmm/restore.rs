//! A run that goes on from where it was saved. What was saved may be damaged: all of it is checked.

use super::block::Block;
use super::visit::VisitScratch;
use super::{Corner, Duals, Inner, Phase, Position, Run};
use crate::error::Result;
use crate::solver::course::Saved;
use crate::solver::state::{check, check_form, is_sound};
use crate::weights::Weights;

impl Run<'_, '_> {
    pub(super) fn restore(&mut self, mut saved: Saved<'_>) -> Result<()> {
        let reader = &mut saved.reader;
        let w: Weights = reader.take()?;
        check_form(&w, &self.w)?;
        self.w = w;
        let duals: Vec<Duals> = reader.take()?;
        check(duals.len() == self.duals.len(), "examples")?;
        // Of each block, how many labels there are.
        let (mut scratch, mut domains) = (VisitScratch::default(), Vec::new());
        for (i, own) in duals.iter().enumerate() {
            let variables = self.factored.variables(self.problem.place(i));
            let is_set = self.sets().is_some();
            check(is_set || own.members.is_empty(), "members")?;
            check(own.members.iter().all(|&member| (member as usize) < variables), "members")?;
            let mut seen = own.members.clone();
            seen.sort_unstable();
            check(seen.windows(2).all(|two| two[0] < two[1]), "members")?;
            let mut links = own.links.clone();
            links.sort_unstable();
            check(links.windows(2).all(|two| two[0] < two[1]), "links")?;
            let is_link = |&(a, b): &(u32, u32)| {
                let label = |place: u32| own.members.get(place as usize).copied();
                let factor = |(a, b): (u32, u32)| self.sets()?.factor_of(a.min(b), a.max(b));
                a < b && label(a).zip(label(b)).and_then(factor).is_some()
            };
            check(links.iter().all(is_link), "links")?;
            self.fill(i, own, &mut scratch);
            let VisitScratch { structure, truth, .. } = &scratch;
            check(own.variables.len() == truth.len() && own.factors.len() == structure.factors.len(), "blocks")?;
            check(own.multipliers.len() == structure.count(), "multipliers")?;
            let is_fine = |block: &Block, truth: u32, labels: u32| {
                block.held.first().map(|held| held.0) == Some(truth)
                    && block.held.iter().all(|held| held.0 < labels && held.1 >= 0.0 && is_sound(held.1))
            };
            let mut variables = own.variables.iter().zip(truth).zip(&structure.domains);
            check(variables.all(|((own, &truth), &labels)| is_fine(own, truth, labels)), "blocks")?;
            let mut factors = own.factors.iter().zip(&structure.factors).enumerate();
            check(factors.all(|(f, (own, factor))| is_fine(own, structure.label(f, truth), factor.labels)), "blocks")?;
            let mut numbers = (0..own.factors.len()).flat_map(|f| structure.joints_of(f));
            let is_fine = |(joint, v): (usize, usize)| {
                own.multipliers[joint].entries.iter().all(|&(label, x)| label < structure.domains[v] && is_sound(x))
            };
            check(numbers.all(is_fine), "multipliers")?;
            domains.extend(&structure.domains);
            domains.extend(structure.factors.iter().map(|factor| factor.labels));
        }
        self.duals = duals;
        self.order.read(reader)?;
        self.average = reader.take()?;
        check(self.average.as_ref().is_none_or(|average| average.is_like(&self.w)), "the mean")?;
        self.corners = reader.take()?;
        check(self.corners.is_empty() == (self.solver.inner != Inner::AwaySteps), "corners")?;
        let is_fine = |corner: &Corner| {
            let mut labels = corner.labels.iter().zip(&domains);
            (0.0..=1.1).contains(&corner.weight)
                && corner.labels.len() == domains.len()
                && labels.all(|(label, domain)| label < domain)
        };
        check(self.corners.iter().all(is_fine), "corners")?;
        self.position = reader.take()?;
        let Position { norm2, cost, disagreement, visits, seen, least, phase, bound, gap, step, .. } = self.position;
        step.check()?;
        check(least >= 0.0 && gap >= 0.0 && !seen.1.is_nan() && seen.0 <= self.position.passes, "the gap")?;
        check([norm2, cost, disagreement, visits, bound].into_iter().all(is_sound), "the sums")?;
        check(self.takes_turns() || phase == Phase::Blocks, "the phase")?;
        check(!(self.has_loops && phase == Phase::Outputs), "the phase")?;
        if let Some(growth) = saved.growth {
            self.w.scale(growth);
            // Passes and looks are counted anew: the course is a new one.
            let start = self.start();
            // Blocks that have been visited do not agree.
            let phase = if phase == Phase::Blocks { phase } else { start.phase };
            self.position = Position { norm2: growth * growth * norm2, cost: growth * cost, phase, ..start };
            for duals in &mut self.duals {
                let masses = duals.variables.iter_mut().chain(&mut duals.factors).flat_map(|block| &mut block.held);
                masses
                    .chain(duals.multipliers.iter_mut().flat_map(|few| &mut few.entries))
                    .for_each(|held| held.1 *= growth);
            }
            self.order.begin_pass();
            if let Some(average) = &mut self.average {
                average.clear();
            }
        }
        self.orders.refresh(&self.w);
        Ok(())
    }
}
