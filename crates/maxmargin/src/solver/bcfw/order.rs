//! Who is visited next: in random order, or drawn in proportion to the gaps.

use super::gaps::Gaps;
use crate::error::Result;
use crate::problem::Problem;
use crate::solver::random::Random;
use crate::solver::state::{Reader, Writer, check, is_sound};
use crate::task::Task;

/// Whose oracle is asked next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Every example once in a pass, in random order.
    Permutations,
    /// The same until the gaps of all blocks are known at one w, then drawn in proportion to the last known gaps.
    Gaps,
}

/// The visits of a pass.
pub(super) struct Visits {
    order: Order,
    random: Random,
    /// Examples with weight, in the order of this pass, or of the cached pass before it.
    examples: Vec<u32>,
    /// Number of visits of this pass so far.
    made: usize,
    /// The last known gaps of the blocks.
    gaps: Gaps,
    /// Have all gaps been known at one w?
    known: bool,
}

impl Visits {
    pub(super) fn new<T: Task>(problem: &Problem<'_, T>, order: Order, seed: u64) -> Self {
        let n = problem.len();
        let examples = (0..n as u32).filter(|&i| problem.weight(i as usize) > 0.0).collect();
        let mut visits =
            Self { order, random: Random::new(seed), examples, made: 0, gaps: Gaps::new(vec![0.0; n]), known: false };
        visits.begin_pass();
        visits
    }

    fn by_gaps(&self) -> bool {
        self.order == Order::Gaps && self.known
    }

    pub(super) fn begin_pass(&mut self) {
        self.made = 0;
        if !self.by_gaps() {
            self.random.shuffle(&mut self.examples);
        }
    }

    /// At most `most` different examples for the next visits, into `batch`. False where the pass is over.
    pub(super) fn next(&mut self, most: usize, batch: &mut Vec<u32>) -> bool {
        batch.clear();
        let end = self.examples.len().min(self.made + most);
        if self.by_gaps() {
            let draws = (self.made..end).map_while(|_| self.gaps.draw(self.random.unit()));
            batch.extend(draws.map(|i| i as u32));
            // No gap is left that is known.
            self.made = if batch.is_empty() { self.examples.len() } else { self.made + batch.len() };
        } else {
            batch.extend(&self.examples[self.made..end]);
            self.made = end;
        }
        !batch.is_empty()
    }

    pub(super) fn is_over(&self) -> bool {
        self.made == self.examples.len()
    }

    /// All examples with weight, in random order; not in the middle of a pass.
    pub(super) fn shuffled(&mut self) -> &[u32] {
        self.random.shuffle(&mut self.examples);
        &self.examples
    }

    /// Learns the gap of one block.
    pub(super) fn set_gap(&mut self, i: usize, gap: f64) {
        self.gaps.set(i, gap);
    }

    /// Learns the gaps of all blocks at one w.
    pub(super) fn set_gaps(&mut self, gaps: Vec<f64>) {
        self.gaps = Gaps::new(gaps);
        self.known = true;
    }

    /// The sum of the last known gaps. From scratch, and so are the sums that the draws go by: many changes make them
    /// inexact.
    pub(super) fn total_gap(&mut self) -> f64 {
        self.gaps.refresh()
    }

    /// Writes what decides the next visits.
    pub(super) fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.random)?;
        out.put(&self.examples)?;
        out.put(&(self.made, self.known))?;
        out.put(self.gaps.as_slice())
    }

    /// Reads it again.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.random = reader.take()?;
        let examples: Vec<u32> = reader.take()?;
        let sorted = |examples: &[u32]| {
            let mut sorted = examples.to_vec();
            sorted.sort_unstable();
            sorted
        };
        check(sorted(&examples) == sorted(&self.examples), "the order")?;
        self.examples = examples;
        (self.made, self.known) = reader.take()?;
        check(self.made <= self.examples.len(), "the order")?;
        let gaps: Vec<f64> = reader.take()?;
        let is_sound = gaps.len() == self.gaps.as_slice().len() && gaps.iter().all(|&gap| gap >= 0.0 && is_sound(gap));
        check(is_sound, "gaps")?;
        self.gaps = Gaps::new(gaps);
        Ok(())
    }
}
