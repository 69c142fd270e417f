//! The columns format (CoNLL): a token a line, columns between tabs and blanks, an empty line after each sentence.

use crate::data::tagging::Features;
use crate::data::tagging::builtin::BuiltIn;
use crate::data::tagging::parsed::{Parsed, next_line};
use crate::data::tagging::rows::Sink;

/// The columns of a file, as its first token has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Layout {
    /// Columns before the tag.
    pub(super) columns: usize,
    /// Is there a tag behind them?
    pub(super) has_tag: bool,
    /// Line of the first token.
    pub(super) line: u64,
}

impl Layout {
    pub(super) fn fields(&self) -> usize {
        self.columns + usize::from(self.has_tag)
    }
}

/// The fields of a line.
pub(super) fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| matches!(b, b' ' | b'\t' | b'\r')).filter(|field| !field.is_empty())
}

/// The first token of a text: its line in the text, from 1, and its number of fields. None: the number of lines.
pub(super) fn first_token(text: &[u8]) -> Result<(u64, usize), u64> {
    let (mut at, mut line) = (0, 0);
    while let Some(next) = next_line(text, &mut at) {
        line += 1;
        match fields(next).count() {
            0 => {}
            count => return Ok((line, count)),
        }
    }
    Err(line)
}

/// The tokens of a sentence, without their tags.
#[derive(Debug)]
pub(super) struct Sentence<'t> {
    columns: usize,
    fields: Vec<&'t [u8]>,
}

impl<'t> Sentence<'t> {
    /// Number of tokens.
    pub(super) fn len(&self) -> usize {
        self.fields.len() / self.columns
    }

    /// Number of columns.
    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    /// A token's text in one column.
    pub(super) fn field(&self, token: usize, column: usize) -> &'t [u8] {
        self.fields[token * self.columns + column]
    }

    /// The token at some distance from another; outside: how far, from 1 (after the end) or from -1 (before the start).
    #[inline]
    pub(super) fn at(&self, token: usize, distance: isize) -> Result<usize, isize> {
        let place = token as isize + distance;
        let beyond = place - self.len() as isize;
        match place {
            ..0 => Err(place),
            _ if beyond >= 0 => Err(beyond + 1),
            _ => Ok(place as usize),
        }
    }
}

/// Parses whole sentences.
pub(super) fn parse<S: Sink>(
    text: &[u8],
    features: &Features,
    layout: Layout,
    out: &mut Parsed<S>,
) -> Result<(), String> {
    let mut sentence = Sentence { columns: layout.columns.max(1), fields: Vec::new() };
    let mut tags = Vec::new();
    let mut built_in = BuiltIn::default();
    let mut name = Vec::new();
    let mut finish = |sentence: &mut Sentence<'_>, tags: &mut Vec<&[u8]>, out: &mut Parsed<S>| {
        if let Features::BuiltIn = features {
            built_in.prepare(sentence);
        }
        for token in 0..sentence.len() {
            out.sink.begin_token(tags.get(token).copied().unwrap_or_default());
            match features {
                Features::BuiltIn => built_in.features(sentence, token, &mut name, &mut out.sink),
                Features::Template(template) => template.features(sentence, token, &mut name, &mut out.sink),
            }
            out.sink.end_token()?;
        }
        sentence.fields.clear();
        tags.clear();
        out.end_sentence();
        Ok::<(), String>(())
    };
    let mut at = 0;
    while let Some(line) = next_line(text, &mut at) {
        out.line += 1;
        let before = sentence.fields.len();
        // No more than are needed to see that there are too many.
        sentence.fields.extend(fields(line).take(layout.fields() + 1));
        let found = sentence.fields.len() - before;
        if found == 0 {
            finish(&mut sentence, &mut tags, out)?;
            continue;
        }
        if found != layout.fields() {
            return Err(other_number(fields(line).count(), layout));
        }
        let tag = if layout.has_tag { sentence.fields.pop() } else { None };
        out.token(tag)?;
        tags.extend(tag);
    }
    finish(&mut sentence, &mut tags, out)
}

#[cold]
fn other_number(found: usize, layout: Layout) -> String {
    let plural = if found == 1 { "" } else { "s" };
    format!(
        "{found} column{plural}, but line {} has {} (all tokens need the same number; an empty line ends a sentence)",
        layout.line,
        layout.fields()
    )
}
