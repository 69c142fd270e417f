//! Graphs, some at a time.

use super::pieces::{Piece, fitted};
use super::{Graphs, NO_GRAPHS};
use crate::data::blocks::{Blocks, Cut};
use crate::data::input::Input;
use crate::data::svmlight::LabelRule;
use crate::error::Result;
use crate::tasks::factor_graph::Shape;

/// Graphs in batches, in constant memory: for prediction on inputs of any length. As [`read_with`](super::read_with).
pub struct Stream<'a, 's> {
    blocks: Blocks<'a>,
    shape: &'s Shape,
    rule: LabelRule,
    text: Vec<u8>,
    /// Bytes of `text` that were given out.
    taken: usize,
    line: u64,
    is_empty: bool,
}

impl std::fmt::Debug for Stream<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("name", &self.blocks.name()).field("line", &self.line).finish_non_exhaustive()
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
        let blocks = Blocks::new(input, Cut { block, chunk: 1 });
        Self { blocks, shape, rule, text: Vec::new(), taken: 0, line: 0, is_empty: true }
    }

    /// The next graphs, at least one and at most `most` (at least 1); `None` after the last. Does not wait for a full batch
    /// when the input is a slow pipe.
    pub fn next_batch(&mut self, most: usize) -> Result<Option<Graphs>> {
        loop {
            if self.taken == self.text.len() {
                self.taken = 0;
                if !self.blocks.next_available(&mut self.text)? {
                    if std::mem::take(&mut self.is_empty) {
                        return Err(self.blocks.error(self.line.max(1), NO_GRAPHS));
                    }
                    return Ok(None);
                }
            }
            let mut piece = Piece::after(self.line);
            let parse = |line: &[u8]| fitted(line, self.shape, self.rule);
            self.taken += piece.take(&self.text[self.taken..], parse, most.max(1));
            self.line = piece.lines;
            if let Some(what) = piece.error {
                return Err(self.blocks.error(self.line, what));
            }
            if !piece.examples.is_empty() {
                self.is_empty = false;
                let mut graphs = Graphs::default();
                piece.examples.into_iter().for_each(|(line, example)| graphs.push(line, example));
                return Ok(Some(graphs));
            }
        }
    }
}
