//! JSON lines: the part that their readers share.

use crate::data::blocks::{Blocks, Cut};
use crate::data::input::Input;
use crate::error::Error;

/// Some lines, parsed.
#[derive(Debug)]
pub(crate) struct Piece<E> {
    /// What stands on a line, by its number from 1.
    pub(crate) examples: Vec<(u64, E)>,
    /// Lines so far, with those that are blank.
    pub(crate) lines: u64,
    /// What is wrong with the last one of them, where parsing stopped.
    pub(crate) error: Option<String>,
}

impl<E> Piece<E> {
    /// A piece that starts after that many lines.
    pub(crate) fn after(lines: u64) -> Self {
        Self { examples: Vec::new(), lines, error: None }
    }

    /// All lines of `text`, up to a bad one.
    pub(crate) fn parse(text: &[u8], parse: impl Fn(&[u8]) -> Result<E, String>) -> Self {
        let mut piece = Self::after(0);
        piece.take(text, parse, usize::MAX);
        piece
    }

    /// Parses lines of `text` until there are `most` examples or one is bad; returns the bytes taken.
    pub(crate) fn take(&mut self, text: &[u8], parse: impl Fn(&[u8]) -> Result<E, String>, most: usize) -> usize {
        let mut at = 0;
        while at < text.len() && self.examples.len() < most {
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n);
            self.lines += 1;
            // Columns in messages count from the start of the line.
            let line = text[at..end].trim_ascii_end();
            at = text.len().min(end + 1);
            if line.is_empty() {
                continue;
            }
            match parse(line) {
                Ok(example) => self.examples.push((self.lines, example)),
                Err(what) => {
                    self.error = Some(what);
                    break;
                }
            }
        }
        at
    }
}

/// Lines in batches, in constant memory.
pub(crate) struct Batches<'a> {
    blocks: Blocks<'a>,
    text: Vec<u8>,
    /// Bytes of `text` that were given out.
    taken: usize,
    line: u64,
    is_empty: bool,
    /// What is wrong with a file without any.
    none: &'static str,
}

impl<'a> Batches<'a> {
    /// Reads `block` bytes at a time.
    pub(crate) fn new(input: Input<'a>, block: usize, none: &'static str) -> Self {
        let blocks = Blocks::new(input, Cut { block, chunk: 1 });
        Self { blocks, text: Vec::new(), taken: 0, line: 0, is_empty: true, none }
    }

    /// What errors call the input.
    pub(crate) fn name(&self) -> &str {
        self.blocks.name()
    }

    /// Lines so far.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// What stands on the next lines, with their numbers: at least one and at most `most` (at least 1); `None` after the last.
    /// Does not wait for a full batch when the input is a slow pipe.
    pub(crate) fn next_batch<E>(
        &mut self,
        most: usize,
        parse: impl Fn(&[u8]) -> Result<E, String>,
    ) -> Result<Option<Vec<(u64, E)>>, Error> {
        loop {
            if self.taken == self.text.len() {
                self.taken = 0;
                if !self.blocks.next_available(&mut self.text)? {
                    if std::mem::take(&mut self.is_empty) {
                        return Err(self.blocks.error(self.line.max(1), self.none));
                    }
                    return Ok(None);
                }
            }
            let mut piece = Piece::after(self.line);
            self.taken += piece.take(&self.text[self.taken..], &parse, most.max(1));
            self.line = piece.lines;
            if let Some(what) = piece.error {
                return Err(self.blocks.error(self.line, what));
            }
            if !piece.examples.is_empty() {
                self.is_empty = false;
                return Ok(Some(piece.examples));
            }
        }
    }
}

/// What a line should be, for messages.
pub(crate) struct Sketch {
    pub(crate) noun: &'static str,
    pub(crate) fields: &'static str,
}

/// What is wrong with the text, short and on one line.
#[cold]
pub(crate) fn explained(error: &serde_json::Error, text: &[u8], sketch: &Sketch) -> String {
    const LONGEST: usize = 160;
    let Sketch { noun, fields } = sketch;
    let message = error.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    let mut what: String = message[..end].chars().take(LONGEST).collect();
    if message[..end].chars().nth(LONGEST).is_some() {
        what.push('…');
    }
    let what: String =
        what.chars().flat_map(|c| if c.is_control() { c.escape_debug().collect() } else { vec![c] }).collect();
    let column = error.column();
    if error.is_data() {
        return format!("{what}, at column {column}");
    }
    if what.contains("number out of range") {
        return format!("a number is too large, at column {column} (the largest is 3.4e38)");
    }
    // Python writes these.
    let around = &text[column.saturating_sub(3).min(text.len())..(column + 3).min(text.len())];
    if around.windows(3).any(|word| word == b"NaN" || word == b"Inf") {
        return format!("a number is not finite, at column {column} (neither JSON nor this task has such numbers)");
    }
    let hint = if error.is_eof() { format!("; a {noun} must stand on one line") } else { String::new() };
    format!("not JSON: {what}, at column {column} (a line is one {noun}, {fields}{hint})")
}
