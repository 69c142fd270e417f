//! Graphs, some at a time.

use super::pieces::fitted;
use super::{Graphs, NO_GRAPHS};
use crate::data::input::Input;
use crate::data::json_lines::Batches;
use crate::data::svmlight::LabelRule;
use crate::error::Result;
use crate::tasks::factor_graph::Shape;

/// Graphs in batches, in constant memory: for prediction on inputs of any length. As [`read_with`](super::read_with).
pub struct Stream<'a, 's> {
    batches: Batches<'a>,
    shape: &'s Shape,
    rule: LabelRule,
}

impl std::fmt::Debug for Stream<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, line) = (self.batches.name(), self.batches.line());
        f.debug_struct("Stream").field("name", &name).field("line", &line).finish_non_exhaustive()
    }
}

impl<'a, 's> Stream<'a, 's> {
    /// Starts reading `input`.
    pub fn new(input: Input<'a>, shape: &'s Shape, rule: LabelRule) -> Self {
        Self::in_pieces(input, shape, rule, 256 << 10)
    }

    /// A stream that reads `block` bytes at a time: for tests.
    #[doc(hidden)]
    pub fn in_pieces(input: Input<'a>, shape: &'s Shape, rule: LabelRule, block: usize) -> Self {
        Self { batches: Batches::new(input, block, NO_GRAPHS), shape, rule }
    }

    /// The next graphs, at least one and at most `most` (at least 1); `None` after the last. Does not wait for a full batch
    /// when the input is a slow pipe.
    pub fn next_batch(&mut self, most: usize) -> Result<Option<Graphs>> {
        let (shape, rule) = (self.shape, self.rule);
        let batch = self.batches.next_batch(most, |line| fitted(line, shape, rule))?;
        Ok(batch.map(|examples| {
            let mut graphs = Graphs::default();
            for (line, example) in examples {
                graphs.push(line, example);
            }
            graphs
        }))
    }
}
