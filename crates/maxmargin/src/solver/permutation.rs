//! Passes over the examples, each in a new random order.

use serde::{Deserialize, Serialize};

use super::state::{Reader, check};
use crate::error::Result;
use crate::problem::Problem;
use crate::random::Random;

/// The examples with weight in the order of this pass, and how far it has come.
#[derive(Serialize, Deserialize)]
pub(super) struct Permutation {
    random: Random,
    examples: Vec<u32>,
    made: usize,
}

impl Permutation {
    pub(super) fn new(problem: &Problem<'_>, seed: u64) -> Self {
        let examples = (0..problem.len() as u32).filter(|&i| problem.weight(i as usize) > 0.0).collect();
        let mut all = Self { random: Random::new(seed), examples, made: 0 };
        all.begin_pass();
        all
    }

    /// Reads what was saved of the same problem.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let mut examples = std::mem::take(&mut self.examples);
        *self = reader.take()?;
        let mut read = self.examples.clone();
        read.sort_unstable();
        examples.sort_unstable();
        check(read == examples && self.made <= examples.len(), "the order")
    }

    /// Number of examples with weight.
    pub(super) fn len(&self) -> usize {
        self.examples.len()
    }

    pub(super) fn begin_pass(&mut self) {
        self.made = 0;
        self.random.shuffle(&mut self.examples);
    }

    /// The next examples of this pass, at most `most`; none where it is over.
    pub(super) fn next(&mut self, most: usize) -> &[u32] {
        let first = self.made;
        self.made = self.len().min(first + most);
        &self.examples[first..self.made]
    }

    pub(super) fn is_over(&self) -> bool {
        self.made == self.len()
    }

    /// All examples once more, in random order; not in the middle of a pass.
    pub(super) fn shuffled(&mut self) -> &[u32] {
        debug_assert!(self.made == 0 || self.is_over());
        self.random.shuffle(&mut self.examples);
        &self.examples
    }

    /// All examples with weight, in the order of now.
    pub(super) fn order(&self) -> &[u32] {
        &self.examples
    }

    /// In [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        self.random.unit()
    }
}
