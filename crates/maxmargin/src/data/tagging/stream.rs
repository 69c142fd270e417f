//! Sentences in batches, for prediction.

use crate::data::blocks::Cut;
use crate::data::input::Input;
use crate::data::svmlight::LabelRule;
use crate::data::tagging::columns::Layout;
use crate::data::tagging::gathered::Known;
use crate::data::tagging::parsed::{Parsed, Rules, next_line};
use crate::data::tagging::reading::{NO_TOKENS, Start};
use crate::data::tagging::rows::Fixed;
use crate::data::tagging::sentences::{Border, Sentences, Wait, chunks};
use crate::data::tagging::{Format, Sequences, Vocabulary};
use crate::error::Result;
use crate::parallel::Pool;

/// Sentences in batches, in constant memory: for prediction on inputs of any length. Tags may be missing, or `?`.
pub struct Stream<'a, 'v> {
    sentences: Sentences<'a>,
    format: &'v Format,
    vocabulary: &'v Vocabulary,
    chunk: usize,
    known: Known<'v>,
    /// None before the first token.
    layout: Option<Layout>,
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
        let Cut { block, chunk } = format.cut();
        // What is tagged while it is warm is tagged sooner.
        Self::in_pieces(input, format, vocabulary, (block / 8, chunk / 8))
    }

    /// A stream in pieces of other sizes: for tests.
    #[doc(hidden)]
    pub fn in_pieces(
        input: Input<'a>,
        format: &'v Format,
        vocabulary: &'v Vocabulary,
        (block, chunk): (usize, usize),
    ) -> Self {
        let sentences = Sentences::new(input, Border::of(format), Cut { block, chunk });
        let known = Known::after(0, vocabulary);
        Self { sentences, format, vocabulary, chunk, known, layout: None, is_empty: true }
    }

    /// The next sentences, whole ones, parsed by all threads of `pool`; `None` after the last. A sentence is given out as
    /// soon as it is complete, however few there are.
    pub fn next_batch(&mut self, pool: &Pool) -> Result<Option<Batch>> {
        let mut batch = Batch::default();
        let mut text = Vec::new();
        while self.known.size().0 == 0 {
            if !self.more(&mut text, &mut batch.text)? {
                if self.is_empty {
                    return Err(self.sentences.error(self.known.size().1.max(1), NO_TOKENS));
                }
                return Ok((!batch.text.is_empty()).then_some(batch));
            }
            let rules =
                Rules { format: self.format, layout: self.layout.unwrap_or_default(), tags: LabelRule::Optional };
            let pieces = pool.map(chunks(&text, self.chunk, self.sentences.border()), |text| {
                Parsed::of(text, rules, Fixed::new(&self.vocabulary.features, &self.vocabulary.edges))
            });
            for piece in pieces {
                self.known.append(piece).map_err(|(line, what)| self.sentences.error(line, what))?;
            }
            if matches!(self.format, Format::Columns(_)) {
                batch.text.append(&mut text);
            }
        }
        self.is_empty = false;
        batch.sequences = self.known.take(self.format.has_edges());
        Ok(Some(batch))
    }

    /// Reads more text; false at the end of the input. Empty lines before the first token go to `skipped`.
    fn more(&mut self, text: &mut Vec<u8>, skipped: &mut Vec<u8>) -> Result<bool> {
        if self.layout.is_some() {
            return self.sentences.next(text, Wait::Available);
        }
        let columns = self.vocabulary.columns;
        let start = Start::of(&mut self.sentences, self.format, columns, LabelRule::Optional, Wait::Available)?;
        self.known = Known::after(start.line, self.vocabulary);
        self.layout = Some(start.layout);
        skipped.extend_from_slice(&start.skipped);
        *text = start.text;
        Ok(!text.is_empty())
    }
}
