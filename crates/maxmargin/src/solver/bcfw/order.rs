//! Who is visited next: in random order, or drawn in proportion to the gaps.

use super::gaps::Gaps;
use crate::error::Result;
use crate::problem::Problem;
use crate::solver::permutation::Permutation;
use crate::solver::state::{Reader, Writer, check};

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
    permutation: Permutation,
    /// The last known gaps of the blocks.
    gaps: Gaps,
    /// Have all gaps been known at one w?
    known: bool,
    /// Visits that are left in a pass by gaps.
    left: usize,
}

impl Visits {
    pub(super) fn new(problem: &Problem<'_>, order: Order, seed: u64) -> Self {
        let gaps = Gaps::new(vec![0.0; problem.len()]);
        Self { order, permutation: Permutation::new(problem, seed), gaps, known: false, left: 0 }
    }

    fn by_gaps(&self) -> bool {
        self.order == Order::Gaps && self.known
    }

    pub(super) fn begin_pass(&mut self) {
        if self.by_gaps() {
            self.left = self.permutation.len();
        } else {
            self.permutation.begin_pass();
        }
    }

    /// Begins a pass in which everybody is visited: the gaps that are known are those of another problem.
    pub(super) fn begin_anew(&mut self) {
        (self.known, self.left) = (false, 0);
        self.permutation.begin_pass();
    }

    /// At most `most` different examples for the next visits, into `batch`; none where the pass is over.
    pub(super) fn next(&mut self, most: usize, batch: &mut Vec<u32>) {
        batch.clear();
        if !self.permutation.is_over() {
            batch.extend(self.permutation.next(most));
            return;
        }
        let Self { gaps, permutation, left, .. } = self;
        let draws = (0..most.min(*left)).map_while(|_| gaps.draw(permutation.unit()));
        batch.extend(draws.map(|i| i as u32));
        // Where no gap is left that is known, the pass ends early.
        self.left = if batch.is_empty() { 0 } else { self.left - batch.len() };
    }

    pub(super) fn is_over(&self) -> bool {
        self.permutation.is_over() && self.left == 0
    }

    /// Puts all examples with weight into another random order; not in the middle of a pass.
    pub(super) fn shuffle(&mut self) {
        self.permutation.shuffled();
    }

    /// All examples with weight, in the order of now.
    pub(super) fn order(&self) -> &[u32] {
        self.permutation.order()
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

    /// The sum of the last known gaps. From scratch, and so are the partial sums that draws go by: many changes make them
    /// inexact.
    pub(super) fn total_gap(&mut self) -> f64 {
        self.gaps.refresh()
    }

    /// Writes what decides the next visits.
    pub(super) fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.permutation)?;
        out.put(&self.gaps)?;
        out.put(&(self.known, self.left))
    }

    /// Reads it again.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.permutation.read(reader)?;
        let gaps: Gaps = reader.take()?;
        check(gaps.is_sound(self.gaps.len()), "gaps")?;
        self.gaps = gaps;
        (self.known, self.left) = reader.take()?;
        check(self.left <= self.permutation.len(), "the order")
    }
}
