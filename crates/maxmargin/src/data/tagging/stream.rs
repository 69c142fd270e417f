//! Sentences in batches, for prediction.

use crate::data::blocks::Cut;
use crate::data::input::Input;
use crate::data::svmlight::LabelRule;
use crate::data::tagging::columns::Layout;
use crate::data::tagging::gathered::Known;
use crate::data::tagging::parsed::{Parsed, Rules, next_line};
use crate::data::tagging::reading::{NO_TOKENS, Start};
use crate::data::tagging::rows::Fixed;
use crate::data::tagging::sentences::{Border, Sentences, Wait};
use crate::data::tagging::{Format, Sequences, Vocabulary};
use crate::error::Result;

/// Sentences in batches, in constant memory: for prediction on inputs of any length. Tags may be missing, or `?`.
pub struct Stream<'a, 'v> {
    sentences: Sentences<'a>,
    format: &'v Format,
    vocabulary: &'v Vocabulary,
    known: Known<'v>,
    /// None before the first token.
    layout: Option<Layout>,
    text: Vec<u8>,
    /// Bytes of `text` that were given out.
    taken: usize,
    is_empty: bool,
}

/// The next sentences of a [`Stream`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Batch {
    /// The sentences. The last batch of a file that ends in many empty lines may have none.
    pub sequences: Sequences,
    /// The text of a columns file that they were read from; empty for other formats.
    text: Vec<u8>,
}

/// A line of a batch, without its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'t> {
    /// A token, with a tag or without. Tokens are in the order of [`Sequences::tokens`].
    Token(&'t [u8]),
    /// No token.
    Empty(&'t [u8]),
}

impl Batch {
    /// The lines of a columns file. Those of all batches are those of the file.
    pub fn lines(&self) -> impl Iterator<Item = Line<'_>> {
        let border = Border::EmptyLine { tabs: true };
        let mut at = 0;
        std::iter::from_fn(move || next_line(&self.text, &mut at)).map(move |line| {
            let text = line.strip_suffix(b"\r").unwrap_or(line);
            if border.is_empty_line(text) { Line::Empty(text) } else { Line::Token(text) }
        })
    }
}

impl std::fmt::Debug for Stream<'_, '_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("name", &self.sentences.blocks.name()).finish_non_exhaustive()
    }
}

impl<'a, 'v> Stream<'a, 'v> {
    /// Starts reading `input`, with the format and the vocabulary of a model.
    pub fn new(input: Input<'a>, format: &'v Format, vocabulary: &'v Vocabulary) -> Self {
        Self::in_pieces(input, format, vocabulary, 256 << 10)
    }

    /// A stream that reads `block` bytes at a time: for tests.
    #[doc(hidden)]
    pub fn in_pieces(input: Input<'a>, format: &'v Format, vocabulary: &'v Vocabulary, block: usize) -> Self {
        let sentences = Sentences::new(input, Border::of(format), Cut { block, chunk: 1 });
        let known = Known::after(0, vocabulary);
        Self { sentences, format, vocabulary, known, layout: None, text: Vec::new(), taken: 0, is_empty: true }
    }

    /// The next sentences, whole ones, of `most` tokens or a few more; `None` after the last. A sentence is given out as
    /// soon as it is complete, whether or not the batch is full.
    pub fn next_batch(&mut self, most: usize) -> Result<Option<Batch>> {
        let is_columns = matches!(self.format, Format::Columns(_));
        let mut batch = Batch::default();
        loop {
            if self.taken == self.text.len() && !self.more(&mut batch.text)? {
                if self.is_empty {
                    return Err(self.sentences.error(self.known.size().1.max(1), NO_TOKENS));
                }
                return Ok((!batch.text.is_empty()).then_some(batch));
            }
            let rules =
                Rules { format: self.format, layout: self.layout.unwrap_or_default(), tags: LabelRule::Optional };
            let text = &self.text[self.taken..];
            let mut piece = Parsed::after(0, Fixed::new(&self.vocabulary.features, &self.vocabulary.edges));
            let taken = piece.take(text, rules, most.max(1));
            if is_columns {
                batch.text.extend_from_slice(&text[..taken]);
            }
            self.taken += taken;
            self.known.append(piece).map_err(|(line, what)| self.sentences.error(line, what))?;
            if self.known.size().0 > 0 {
                self.is_empty = false;
                batch.sequences = self.known.take(self.format.has_edges());
                return Ok(Some(batch));
            }
        }
    }

    /// Reads more text; false at the end of the input. Empty lines before the first token go to `skipped`.
    fn more(&mut self, skipped: &mut Vec<u8>) -> Result<bool> {
        self.taken = 0;
        if self.layout.is_some() {
            return self.sentences.next(&mut self.text, Wait::Available);
        }
        let columns = self.vocabulary.columns;
        let start = Start::of(&mut self.sentences, self.format, columns, LabelRule::Optional, Wait::Available)?;
        self.known = Known::after(start.line, self.vocabulary);
        self.layout = Some(start.layout);
        skipped.extend_from_slice(&start.skipped);
        self.text = start.text;
        Ok(!self.text.is_empty())
    }
}
