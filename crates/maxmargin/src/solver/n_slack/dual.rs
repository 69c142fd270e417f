//! The blocks of the dual, solved over all of them.

use crate::error::Result;
use crate::parallel::Pool;
use crate::problem::{Output, Problem};
use crate::random::Random;
use crate::solver::blocks::Blocks;
use crate::solver::state::{Reader, Writer, check};

/// The dual variables, and w.
pub(super) struct Dual<'p, 'a> {
    problem: &'p Problem<'a>,
    pub(super) blocks: Blocks<'p, 'a>,
    /// Examples that have cuts.
    order: Vec<u32>,
    random: Random,
    /// Counts the solutions over all cuts, so that idle ones can be told.
    solutions: u32,
}

impl<'p, 'a> Dual<'p, 'a> {
    pub(super) fn new(problem: &'p Problem<'a>, seed: u64, pool: &'p Pool) -> Self {
        Self { problem, blocks: Blocks::new(problem, pool), order: Vec::new(), random: Random::new(seed), solutions: 0 }
    }

    /// Writes what the next step starts from.
    pub(super) fn write(&self, out: &mut Writer) -> Result<()> {
        self.blocks.write(out)?;
        out.put(&self.order)?;
        out.put(&self.random)?;
        out.put(&self.solutions)
    }

    /// Reads it again.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.blocks.read(reader)?;
        self.order = reader.take()?;
        check(self.order.iter().all(|&i| (i as usize) < self.problem.len()), "order")?;
        self.random = reader.take()?;
        self.solutions = reader.take()?;
        Ok(())
    }

    /// Is a cut with violation `h` at w worth adding to those that example i has?
    pub(super) fn is_worth(&self, i: usize, h: f64, worth: f64, values: &mut Vec<f64>) -> Result<bool> {
        if h <= 0.0 || self.problem.weight(i) == 0.0 {
            return Ok(false);
        }
        let xi = self.blocks.look(i, &self.blocks.w, values)?;
        Ok(self.problem.slack(h) - self.problem.slack(xi) > worth)
    }

    /// Adds a cut with weight zero; false where the example has it already.
    pub(super) fn add(&mut self, i: usize, y: Output) -> Result<bool> {
        if self.blocks.has(i, &y) {
            return Ok(false);
        }
        if self.blocks.of(i).held.is_empty() {
            self.order.push(i as u32);
        }
        self.blocks.add(i, y, self.solutions)?;
        Ok(true)
    }

    /// Solves over the cuts of example i, nearly. Returns what its gap was.
    pub(super) fn solve_own(&mut self, i: usize) -> Result<f64> {
        Ok(self.blocks.visit(i, None, self.solutions)?.gap)
    }

    /// Passes of block steps over all examples with cuts, in random order, until their gaps sum to at most `tolerance`.
    /// Between full passes only the examples that contribute are visited.
    pub(super) fn solve(&mut self, tolerance: f64) -> Result<()> {
        const PASSES: usize = 300;
        let mut order = std::mem::take(&mut self.order);
        let small = 0.3 * tolerance / order.len().max(1) as f64;
        let mut active = order.len();
        for _ in 0..PASSES {
            self.random.shuffle(&mut order[..active]);
            let full = active == order.len();
            let (mut gap, mut kept) = (0.0, 0);
            for at in 0..active {
                // Waiting for weights would take longer than the visits.
                if let Some(&soon) = order[..active].get(at + 1) {
                    self.blocks.prefetch(soon as usize)?;
                }
                let own = self.solve_own(order[at] as usize)?;
                gap += own;
                if own > small {
                    order.swap(at, kept);
                    kept += 1;
                }
            }
            match (gap <= tolerance, full) {
                (true, true) => break,
                (true, false) => active = order.len(),
                (false, _) => active = kept.max(1),
            }
        }
        self.order = order;
        self.solutions = self.solutions.saturating_add(1);
        Ok(())
    }

    /// Drops cuts that were of no use in the last `rounds` solutions.
    pub(super) fn drop_inactive(&mut self, rounds: u32) {
        self.blocks.drop_idle(self.solutions.saturating_sub(rounds), |_, _| false);
        let blocks = &self.blocks;
        self.order.retain(|&i| !blocks.of(i as usize).held.is_empty());
    }
}
