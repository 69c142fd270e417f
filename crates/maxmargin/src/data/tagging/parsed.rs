//! Some sentences, parsed.

use crate::data::blocks::shown;
use crate::data::dictionary::Dictionary;
use crate::data::svmlight::LabelRule;
use crate::data::tagging::columns::Layout;
use crate::data::tagging::lines::Lines;
use crate::data::tagging::rows::Sink;
use crate::data::tagging::{Format, columns, crfsuite, svmhmm};

/// How the lines of an input are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules<'f> {
    pub(super) format: &'f Format,
    /// The columns of the columns format.
    pub(super) layout: Layout,
    /// Must every token have a tag?
    pub(super) tags: LabelRule,
}

/// A run of whole sentences, with numbers of its own for tags.
#[derive(Debug)]
pub(super) struct Parsed<S> {
    /// The features.
    pub(super) sink: S,
    /// The tag of each token, or [`Dictionary::NONE`].
    pub(super) tags: Vec<u32>,
    pub(super) tag_names: Dictionary,
    /// Where sentences end.
    pub(super) ends: Vec<usize>,
    pub(super) lines: Lines,
    /// Groups of the text that have numbers, each with its first line.
    pub(super) groups: Vec<(u64, u64)>,
    /// Lines so far, with those that hold no token.
    pub(super) line: u64,
    /// What is wrong with line `line`, where parsing stopped.
    pub(super) error: Option<String>,
}

impl<S> Parsed<S> {
    pub(super) fn new(sink: S) -> Self {
        Self {
            sink,
            tags: Vec::new(),
            tag_names: Dictionary::new(),
            ends: Vec::new(),
            lines: Lines::default(),
            groups: Vec::new(),
            line: 0,
            error: None,
        }
    }

    /// Notes the next token, on line `line`, and its tag if it has one.
    pub(super) fn token(&mut self, tag: Option<&[u8]>) -> Result<(), String> {
        let id = match tag {
            Some(tag) => self.tag(tag)?,
            None => Dictionary::NONE,
        };
        self.lines.mark(self.tags.len(), self.line);
        self.tags.push(id);
        Ok(())
    }

    fn tag(&mut self, tag: &[u8]) -> Result<u32, String> {
        if let Some(id) = self.tag_names.get(tag) {
            return Ok(id);
        }
        match std::str::from_utf8(tag) {
            Ok(text) if !text.chars().any(char::is_control) => {}
            Ok(_) => return Err(format!("tag {} contains a control character (is this a text file?)", shown(tag))),
            Err(_) => return Err(format!("tag {} is not valid UTF-8 (is this a text file?)", shown(tag))),
        }
        self.tag_names.intern(tag).ok_or_else(|| "more than 4294967294 different tags".to_owned())
    }

    /// The sentence, if there is one, ends here.
    pub(super) fn end_sentence(&mut self) {
        if self.tags.len() > self.ends.last().copied().unwrap_or(0) {
            self.ends.push(self.tags.len());
        }
    }
}

impl<S: Sink> Parsed<S> {
    /// Parses the sentences of `text`, or those before a bad line.
    pub(super) fn of(text: &[u8], rules: Rules<'_>, sink: S) -> Self {
        let mut piece = Self::new(sink);
        let result = match rules.format {
            Format::Columns(features) => columns::parse(text, features, rules.layout, &mut piece),
            Format::SvmHmm => svmhmm::parse(text, rules.tags, &mut piece),
            Format::CrfSuite => crfsuite::parse(text, rules.tags, &mut piece),
        };
        piece.error = result.err();
        piece
    }
}

/// Lines of a text, one after the other, without their ends.
pub(super) fn next_line<'t>(text: &'t [u8], at: &mut usize) -> Option<&'t [u8]> {
    if *at >= text.len() {
        return None;
    }
    let start = *at;
    let end = memchr::memchr(b'\n', &text[start..]).map_or(text.len(), |n| start + n);
    *at = text.len().min(end + 1);
    Some(&text[start..end])
}
