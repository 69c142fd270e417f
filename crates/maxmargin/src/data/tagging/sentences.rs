//! Text in pieces that end where sentences end.

use crate::data::blocks::{Blocks, Cut};
use crate::data::input::Input;
use crate::data::tagging::{Format, svmhmm};
use crate::error::{Error, Result};

/// What ends a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Border {
    /// A line without a token: of blanks and, if told so, tabs.
    EmptyLine { tabs: bool },
    /// A line of another group.
    Group,
}

impl Border {
    pub(super) fn of(format: &Format) -> Self {
        match format {
            Format::Columns(_) => Self::EmptyLine { tabs: true },
            Format::CrfSuite => Self::EmptyLine { tabs: false },
            Format::SvmHmm => Self::Group,
        }
    }

    /// Does this line, without its end, hold no token?
    pub(super) fn is_empty_line(self, line: &[u8]) -> bool {
        let tabs = self != Self::EmptyLine { tabs: false };
        line.iter().all(|&b| matches!(b, b' ' | b'\r') || b == b'\t' && tabs)
    }

    /// The first place from `from` on where a sentence has ended; none in sight: the end of the text.
    fn next(self, text: &[u8], from: usize) -> usize {
        let mut at = if from == 0 { 0 } else { line_end(text, from - 1) };
        let mut group = None;
        while at < text.len() {
            let end = line_end(text, at);
            let line = &text[at..end];
            match self {
                Self::EmptyLine { .. } if self.is_empty_line(line.strip_suffix(b"\n").unwrap_or(line)) => return end,
                Self::Group if is_other(&mut group, line) => return at,
                Self::EmptyLine { .. } | Self::Group => {}
            }
            at = end;
        }
        text.len()
    }
}

/// The place after the end of the line that `at` is in.
fn line_end(text: &[u8], at: usize) -> usize {
    memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n + 1)
}

/// Is this line of another group than those before?
fn is_other(group: &mut Option<u64>, line: &[u8]) -> bool {
    // A bad line is of no group; whoever parses it will say so.
    let Some(next) = svmhmm::group(line) else { return false };
    group.replace(next).is_some_and(|before| before != next)
}

/// Cuts an input into texts of whole sentences.
pub(super) struct Sentences<'a> {
    pub(super) blocks: Blocks<'a>,
    border: Border,
    /// The start of a sentence whose end is still to be read, and its group.
    begun: Vec<u8>,
    group: Option<u64>,
    part: Vec<u8>,
}

/// How the next bytes are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// In full blocks.
    Block,
    /// As they come.
    Available,
}

impl<'a> Sentences<'a> {
    pub(super) fn new(input: Input<'a>, border: Border, cut: Cut) -> Self {
        Self { blocks: Blocks::new(input, cut), border, begun: Vec::new(), group: None, part: Vec::new() }
    }

    /// What ends a sentence.
    pub(super) fn border(&self) -> Border {
        self.border
    }

    /// An error in a line of the input.
    pub(super) fn error(&self, line: u64, what: impl Into<String>) -> Error {
        self.blocks.error(line, what)
    }

    /// Fills `text` with the next sentences; false when there are none left.
    pub(super) fn next(&mut self, text: &mut Vec<u8>, wait: Wait) -> Result<bool> {
        text.clear();
        text.append(&mut self.begun);
        loop {
            let more = match wait {
                Wait::Block => self.blocks.next(&mut self.part)?,
                Wait::Available => self.blocks.next_available(&mut self.part)?,
            };
            if !more {
                return Ok(!text.is_empty());
            }
            let old = text.len();
            text.extend_from_slice(&self.part);
            if let Some(end) = self.last_border(text, old) {
                self.begun.extend_from_slice(&text[end..]);
                text.truncate(end);
                return Ok(true);
            }
        }
    }

    /// The last place from `old` on where a sentence has ended.
    fn last_border(&mut self, text: &[u8], old: usize) -> Option<usize> {
        if self.border == Border::Group {
            // Forwards: what group a line continues is known from the lines before.
            let (mut at, mut last) = (old, None);
            while at < text.len() {
                let end = line_end(text, at);
                if is_other(&mut self.group, &text[at..end]) {
                    last = Some(at);
                }
                at = end;
            }
            return last;
        }
        let mut end = text.len();
        while end > old {
            let line = text[old..end].strip_suffix(b"\n").unwrap_or(&text[old..end]);
            let start = memchr::memrchr(b'\n', line).map_or(0, |n| n + 1);
            if self.border.is_empty_line(&line[start..]) {
                return Some(end);
            }
            end = old + start;
        }
        None
    }
}

/// `text` in pieces of about `size` bytes, cut where sentences end.
pub(super) fn chunks(mut text: &[u8], size: usize, border: Border) -> Vec<&[u8]> {
    let mut pieces = Vec::with_capacity(text.len() / size.max(1) + 1);
    while !text.is_empty() {
        let (piece, rest) = text.split_at(border.next(text, size.clamp(1, text.len())));
        pieces.push(piece);
        text = rest;
    }
    pieces
}
