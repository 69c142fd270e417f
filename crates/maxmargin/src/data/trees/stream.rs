//! Trees or plain sentences, some at a time.

use std::collections::VecDeque;

use super::reading::{Checked, NO_TREES, Names, Reader, Strip, check_label, intern};
use super::{Node, Tree};
use crate::data::blocks::{Blocks, Cut};
use crate::data::dictionary::Dictionary;
use crate::data::input::Input;
use crate::error::Result;

/// Trees or plain sentences, some at a time: for prediction on inputs of any length. Only the names of labels and words are
/// kept.
///
/// A file whose first character, after comments and white space, is an opening bracket has trees. Others have a sentence a
/// line: `WORD/TAG` tokens, divided at the last slash that has something on both sides, a token without one being a tag and its
/// own word; or plain words, where these are the terminals. There are no comments among sentences. Such a sentence is a tree with one bracket without a label over its
/// tags, whose labels are empty where there are none. Brackets in words and tags become `-LRB-` and `-RRB-`.
pub struct Stream<'a> {
    /// Labels of brackets, those of tags too.
    pub labels: Dictionary,
    /// Words.
    pub words: Dictionary,
    blocks: Blocks<'a>,
    reader: Reader,
    kind: Kind,
    has_words: bool,
    /// Lines that are read from `at` on.
    text: Vec<u8>,
    at: usize,
    /// Lines at the beginning that are comments if trees follow, and else sentences.
    unclear: Vec<(u64, Vec<u8>)>,
    /// Trees that are complete.
    ready: VecDeque<Tree>,
    is_empty: bool,
}

/// What a file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nothing so far.
    Unknown,
    Trees,
    Sentences,
}

impl Kind {
    /// Says how the kind was told, where that may be the fault.
    fn hint(self, what: String) -> String {
        if self == Self::Trees && what.contains("outside of brackets") {
            return what
                + " (the file begins with a bracket, so it has trees; in plain sentences write -LRB- and -RRB-)";
        }
        what
    }
}

impl std::fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("name", &self.blocks.name()).finish_non_exhaustive()
    }
}

impl<'a> Stream<'a> {
    /// Starts reading `input`.
    pub fn new(input: Input<'a>, strip: Strip, terminals_are_words: bool) -> Self {
        // What is parsed while it is warm is parsed sooner.
        Self::in_pieces(input, strip, terminals_are_words, Cut::default().block / 8)
    }

    /// A stream in pieces of another size: for tests.
    #[doc(hidden)]
    pub fn in_pieces(input: Input<'a>, strip: Strip, terminals_are_words: bool, block: usize) -> Self {
        Self {
            labels: Dictionary::new(),
            words: Dictionary::new(),
            blocks: Blocks::new(input, Cut { block, ..Cut::default() }),
            reader: Reader::new(strip),
            kind: Kind::Unknown,
            has_words: terminals_are_words,
            text: Vec::new(),
            at: 0,
            unclear: Vec::new(),
            ready: VecDeque::new(),
            is_empty: true,
        }
    }

    /// Trees without words so far, which were left out.
    pub fn empty(&self) -> u64 {
        self.reader.empty
    }

    /// The next trees, at most `most` and at least one; None after the last. A tree is given out as soon as the line that it ends
    /// on is read, however few there are.
    pub fn next_batch(&mut self, most: usize) -> Result<Option<Vec<Tree>>> {
        let most = most.max(1);
        loop {
            while self.at < self.text.len() && self.ready.len() < most {
                self.line().map_err(|(line, what)| self.blocks.error(line, what))?;
                self.ready.extend(self.reader.trees.drain(..));
            }
            if !self.ready.is_empty() {
                self.is_empty = false;
                return Ok(Some(self.ready.drain(..most.min(self.ready.len())).collect()));
            }
            self.at = 0;
            if !self.blocks.next_available(&mut self.text)? {
                self.reader.check_end().map_err(|(line, what)| self.blocks.error(line, what))?;
                if std::mem::take(&mut self.is_empty) {
                    let what = if self.kind == Kind::Sentences { "the file has no sentences" } else { NO_TREES };
                    return Err(self.blocks.error(self.reader.line.max(1), what));
                }
                return Ok(None);
            }
        }
    }

    fn line(&mut self) -> Checked<()> {
        let rest = &self.text[self.at..];
        let line = &rest[..memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1)];
        self.at += line.len();
        let mut names = Names { labels: &mut self.labels, words: &mut self.words };
        if self.kind == Kind::Unknown {
            self.kind = match line.trim_ascii_start().first() {
                None => Kind::Unknown,
                Some(b'(') => Kind::Trees,
                // A comment before trees, or a sentence before sentences.
                Some(b'#') => {
                    self.reader.line += 1;
                    self.unclear.push((self.reader.line, line.to_vec()));
                    return Ok(());
                }
                Some(_) => Kind::Sentences,
            };
            let unclear = if self.kind == Kind::Unknown { Vec::new() } else { std::mem::take(&mut self.unclear) };
            for (number, line) in unclear.into_iter().filter(|_| self.kind == Kind::Sentences) {
                self.reader.trees.extend(sentence(&line, number, self.has_words, &mut names)?);
            }
        }
        if self.kind != Kind::Sentences {
            return self.reader.line(line, &mut names).map_err(|(line, what)| (line, self.kind.hint(what)));
        }
        self.reader.line += 1;
        self.reader.trees.extend(sentence(line, self.reader.line, self.has_words, &mut names)?);
        Ok(())
    }
}

/// The sentence of a line; none in an empty one.
fn sentence(text: &[u8], line: u64, has_words: bool, names: &mut Names<'_>) -> Checked<Option<Tree>> {
    let mut tree = Tree { line, ..Tree::default() };
    let root = intern(names.labels, b"", line)?;
    tree.nodes.push(Node { label: root, end: 0, from: 0, to: 0 });
    for token in text.split(u8::is_ascii_whitespace).filter(|token| !token.is_empty()) {
        let inner = 1..token.len().max(2) - 1;
        let (word, tag) = match token.get(inner).and_then(|inner| memchr::memrchr(b'/', inner)) {
            _ if has_words => (token, &b""[..]),
            Some(slash) => (&token[..=slash], &token[slash + 2..]),
            None => (token, token),
        };
        check_label(tag, line)?;
        let from = tree.words.len() as u32;
        tree.words.push(intern(names.words, &without_brackets(word), line)?);
        let label = intern(names.labels, &without_brackets(tag), line)?;
        tree.nodes.push(Node { label, end: tree.nodes.len() as u32 + 1, from, to: from + 1 });
    }
    let (end, to) = (tree.nodes.len() as u32, tree.words.len() as u32);
    (tree.nodes[0].end, tree.nodes[0].to) = (end, to);
    Ok((to > 0).then_some(tree))
}

/// Brackets as trees have them in words.
fn without_brackets(name: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if !name.iter().any(|b| matches!(b, b'(' | b')')) {
        return name.into();
    }
    let mut written = Vec::with_capacity(name.len() + 8);
    for &byte in name {
        match byte {
            b'(' => written.extend_from_slice(b"-LRB-"),
            b')' => written.extend_from_slice(b"-RRB-"),
            other => written.push(other),
        }
    }
    written.into()
}
