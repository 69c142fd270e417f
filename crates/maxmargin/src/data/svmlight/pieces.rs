//! Runs of lines, parsed apart from each other and put together again.

use std::collections::HashMap;

use crate::data::svmlight::{LabelRule, Labelled, Labels, line};

/// Gives each distinct label a number.
#[derive(Debug, Default)]
struct Interner {
    names: Vec<String>,
    ids: HashMap<Box<[u8]>, u32>,
    last: usize,
}

impl Interner {
    fn id(&mut self, label: &[u8]) -> Result<u32, String> {
        // The label of the line before, often enough.
        if self.names.get(self.last).is_some_and(|last| last.as_bytes() == label) {
            return Ok(self.last as u32);
        }
        let id = if let Some(&id) = self.ids.get(label) {
            id
        } else {
            let id = self.names.len() as u32;
            self.names.push(line::checked_label(label)?.to_owned());
            self.ids.insert(label.into(), id);
            id
        };
        self.last = id as usize;
        Ok(id)
    }
}

/// Some lines, parsed.
#[derive(Debug, Default)]
pub(super) struct Piece {
    examples: Labelled,
    labels: Interner,
    /// Lines so far, with those that hold no example.
    pub(super) line: u64,
    /// What is wrong with line `line`, where parsing stopped.
    error: Option<String>,
}

impl Piece {
    /// A piece that starts after `line` lines.
    pub(super) fn after(line: u64) -> Self {
        Self { line, ..Self::default() }
    }

    /// All lines of `text`, up to a bad one.
    pub(super) fn parse(text: &[u8], rule: LabelRule) -> Self {
        let mut piece = Self::default();
        // A guess at what is coming: entries such as `12:0.5 `.
        piece.examples.matrix.reserve(text.len() / 64, text.len() / 6);
        piece.take(text, rule, usize::MAX);
        piece
    }

    /// Parses lines of `text` until there are `most` examples or one is bad; returns the bytes taken.
    pub(super) fn take(&mut self, text: &[u8], rule: LabelRule, most: usize) -> usize {
        let mut at = 0;
        while at < text.len() && self.examples.len() < most {
            let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |n| at + n);
            self.line += 1;
            if let Err(what) = self.add(&text[at..end], rule) {
                self.error = Some(what);
                break;
            }
            at = text.len().min(end + 1);
        }
        at
    }

    /// The examples, or what is wrong with the last line.
    pub(super) fn finish(mut self) -> Result<Labelled, String> {
        self.examples.labels.names = self.labels.names;
        self.error.map_or(Ok(self.examples), Err)
    }

    fn add(&mut self, text: &[u8], rule: LabelRule) -> Result<(), String> {
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        let Some(parts) = line::parts(text, rule)? else { return Ok(()) };
        let id = parts.label.map_or(Ok(Labels::NONE), |label| self.labels.id(label))?;
        let Labelled { labels, matrix, costs, lines, .. } = &mut self.examples;
        let cost = line::features(parts.rest, matrix)?;
        matrix.end_row();
        let example = labels.ids.len();
        labels.ids.push(id);
        lines.mark(example, self.line);
        if cost.is_some() {
            costs.get_or_insert_default().resize(example, 1.0);
        }
        if let Some(costs) = costs {
            costs.push(cost.unwrap_or(1.0));
        }
        Ok(())
    }
}

/// The pieces so far, in order.
#[derive(Default)]
pub(super) struct Gathered {
    examples: Labelled,
    labels: Interner,
    line: u64,
}

impl Gathered {
    /// No examples so far?
    pub(super) fn is_empty(&self) -> bool {
        self.examples.is_empty()
    }

    /// Number of lines so far.
    pub(super) fn lines(&self) -> u64 {
        self.line
    }

    /// Adds the next piece, or says on which line of the whole it is wrong, and why.
    pub(super) fn append(&mut self, piece: Piece) -> Result<(), (u64, String)> {
        let line = self.line;
        self.line += piece.line;
        let part = piece.finish().map_err(|what| (self.line, what))?;
        let whole = &mut self.examples;
        let (before, after) = (whole.len(), whole.len() + part.len());
        // No piece leaves here with a label that it has not checked.
        let ids: Result<Vec<u32>, String> =
            part.labels.names.iter().map(|name| self.labels.id(name.as_bytes())).collect();
        let ids = ids.map_err(|what| (self.line, what))?;
        let global = |&id: &u32| ids.get(id as usize).copied().unwrap_or(Labels::NONE);
        whole.labels.ids.extend(part.labels.ids.iter().map(global));
        whole.matrix.append(part.matrix);
        for (example, at) in part.lines.runs {
            whole.lines.mark(before + example, line + at);
        }
        if part.costs.is_some() || whole.costs.is_some() {
            let costs = whole.costs.get_or_insert_default();
            costs.resize(before, 1.0);
            costs.extend(part.costs.unwrap_or_default());
            costs.resize(after, 1.0);
        }
        Ok(())
    }

    /// All examples.
    pub(super) fn finish(mut self) -> Labelled {
        self.examples.labels.names = self.labels.names;
        self.examples.matrix.shrink();
        self.examples
    }
}
