//! From text to trees.

use super::{Node, Tree, Treebank};
use crate::data::blocks::{Blocks, Cut, shown};
use crate::data::dictionary::Dictionary;
use crate::data::input::Input;
use crate::error::Result;

/// What is left out of trees, as evaluations of parsers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Strip {
    /// Empty elements, tagged `-NONE-`, and what is over nothing else.
    pub empty: bool,
    /// Functions and numbers behind a label: `NP-SBJ-1` is `NP`. Tags stay what they are.
    pub functions: bool,
}

impl Strip {
    /// All of it.
    pub const ALL: Self = Self { empty: true, functions: true };

    /// What is left of a label.
    pub(super) fn label(self, label: &[u8]) -> &[u8] {
        // One that begins with a hyphen is of one piece.
        match label.iter().position(|b| matches!(b, b'-' | b'=')) {
            Some(at) if self.functions && at > 0 => &label[..at],
            _ => label,
        }
    }
}

/// The tag of empty elements.
const NONE: &[u8] = b"-NONE-";

/// Reads all trees of a file. Trees without words are left out and counted.
pub fn read(input: Input<'_>, strip: Strip) -> Result<Treebank> {
    read_in_pieces(input, strip, Cut::default().block)
}

/// Reads with blocks of another size: for tests.
#[doc(hidden)]
pub fn read_in_pieces(input: Input<'_>, strip: Strip, block: usize) -> Result<Treebank> {
    let mut blocks = Blocks::new(input, Cut { block, ..Cut::default() });
    let mut bank = Treebank::default();
    let mut reader = Reader::new(strip);
    let mut text = Vec::new();
    while blocks.next(&mut text)? {
        for line in text.split_inclusive(|&b| b == b'\n') {
            let mut names = Names { labels: &mut bank.labels, words: &mut bank.words };
            reader.line(line, &mut names).map_err(|(line, what)| blocks.error(line, what))?;
        }
    }
    reader.check_end().map_err(|(line, what)| blocks.error(line, what))?;
    if reader.trees.is_empty() {
        return Err(blocks.error(reader.line.max(1), NO_TREES));
    }
    (bank.trees, bank.empty, bank.checksum) = (reader.trees, reader.empty, blocks.checksum());
    Ok(bank)
}

/// A file of nothing.
pub(super) const NO_TREES: &str = "the file has no trees with words";

/// A line may be bad: its number, and what is wrong with it.
pub(super) type Checked<T> = std::result::Result<T, (u64, String)>;

/// Where names go.
pub(super) struct Names<'d> {
    pub(super) labels: &'d mut Dictionary,
    pub(super) words: &'d mut Dictionary,
}

/// The number of a name, a new one if need be.
pub(super) fn intern(names: &mut Dictionary, name: &[u8], line: u64) -> Checked<u32> {
    names.intern(name).ok_or_else(|| (line, "more than 4294967294 different words".to_owned()))
}

/// Labels are text.
pub(super) fn check_label(label: &[u8], line: u64) -> Checked<()> {
    match std::str::from_utf8(label) {
        Ok(_) => Ok(()),
        Err(_) => Err((line, format!("label {} is not valid UTF-8 (is this a text file?)", shown(label)))),
    }
}

/// A bracket that is not closed yet.
#[derive(Debug)]
struct Open {
    node: usize,
    line: u64,
    /// What it has: children that were left out count too.
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    Word,
    Brackets,
}

/// Reads line by line.
#[derive(Debug, Default)]
pub(super) struct Reader {
    strip: Strip,
    /// Trees that are complete.
    pub(super) trees: Vec<Tree>,
    /// Trees without words.
    pub(super) empty: u64,
    /// The line that is read, from 1.
    pub(super) line: u64,
    tree: Tree,
    open: Vec<Open>,
    /// The label of the innermost bracket, as long as it is not known whether it is a tag.
    label: Vec<u8>,
    /// The word of the innermost bracket, as far as it is read.
    word: Vec<u8>,
    /// Is the outermost bracket without a label?
    is_wrapped: bool,
}

/// No label yet.
const UNKNOWN: u32 = Dictionary::NONE;

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

impl Reader {
    pub(super) fn new(strip: Strip) -> Self {
        Self { strip, ..Self::default() }
    }

    /// Reads a line.
    pub(super) fn line(&mut self, text: &[u8], names: &mut Names<'_>) -> Checked<()> {
        self.line += 1;
        if self.open.is_empty() && text.starts_with(b"#") {
            return Ok(());
        }
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            at += 1;
            match byte {
                b'(' => self.begin(names)?,
                b')' => self.end(names)?,
                blank if is_blank(blank) => {}
                _ => {
                    let rest = &text[at - 1..];
                    let is_end = |b: &u8| matches!(b, b'(' | b')') || is_blank(*b);
                    let word = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
                    self.word(word)?;
                    at += word.len() - 1;
                }
            }
        }
        Ok(())
    }

    /// May the text end here?
    pub(super) fn check_end(&self) -> Checked<()> {
        let Some(open) = self.open.first() else { return Ok(()) };
        let what = match self.open.len() {
            1 => "this bracket is never closed".to_owned(),
            n => format!("this bracket is never closed ({n} are open at the end of the file)"),
        };
        Err((open.line, what))
    }

    fn error<T>(&self, what: impl Into<String>) -> Checked<T> {
        Err((self.line, what.into()))
    }

    fn begin(&mut self, names: &mut Names<'_>) -> Checked<()> {
        if let Some(above) = self.open.last_mut() {
            match above.content {
                Content::Word => return self.error("a bracket beside a word: each word needs a bracket of its own"),
                Content::Nothing => {
                    if self.label.is_empty() && above.node > 0 {
                        return Err((above.line, "a bracket without a label inside a tree".to_owned()));
                    }
                    self.is_wrapped |= self.label.is_empty();
                    // Above other brackets, hence no tag.
                    let label = self.strip.label(&self.label);
                    self.tree.nodes[above.node].label = intern(names.labels, label, self.line)?;
                }
                Content::Brackets => {}
            }
            above.content = Content::Brackets;
        } else {
            self.tree.line = self.line;
        }
        let from = self.tree.words.len() as u32;
        self.open.push(Open { node: self.tree.nodes.len(), line: self.line, content: Content::Nothing });
        self.tree.nodes.push(Node { label: UNKNOWN, end: 0, from, to: from });
        self.label.clear();
        Ok(())
    }

    /// A label, or a word.
    fn word(&mut self, word: &[u8]) -> Checked<()> {
        let Some(open) = self.open.last_mut() else {
            return self.error(format!("{} outside of brackets", shown(word)));
        };
        match open.content {
            Content::Nothing if self.label.is_empty() => {
                check_label(word, self.line)?;
                self.label.extend_from_slice(word);
            }
            Content::Nothing => {
                open.content = Content::Word;
                self.word.clear();
                self.word.extend_from_slice(word);
            }
            // A word with a blank in it.
            Content::Word => {
                self.word.push(b' ');
                self.word.extend_from_slice(word);
            }
            Content::Brackets => {
                return self
                    .error(format!("word {} beside brackets: each word needs a bracket of its own", shown(word)));
            }
        }
        Ok(())
    }

    fn end(&mut self, names: &mut Names<'_>) -> Checked<()> {
        let Some(Open { node, line, content }) = self.open.pop() else {
            return self.error("a bracket is closed that was never opened");
        };
        let is_whole = self.open.is_empty();
        match content {
            Content::Nothing if self.label.is_empty() && is_whole => self.tree.nodes.clear(),
            Content::Nothing => {
                return Err((
                    line,
                    format!("the bracket {} has neither a word nor brackets in it", {
                        shown(&[b"(", &self.label[..]].concat())
                    }),
                ));
            }
            Content::Word if self.strip.empty && self.label == NONE => self.tree.nodes.truncate(node),
            Content::Brackets if self.tree.nodes.len() == node + 1 => self.tree.nodes.truncate(node),
            Content::Word | Content::Brackets => {
                if content == Content::Word {
                    self.tree.words.push(intern(names.words, &self.word, line)?);
                    self.tree.nodes[node].label = intern(names.labels, &self.label, line)?;
                }
                let (end, to) = (self.tree.nodes.len() as u32, self.tree.words.len() as u32);
                let closed = &mut self.tree.nodes[node];
                (closed.end, closed.to) = (end, to);
            }
        }
        if is_whole {
            self.finish();
        }
        Ok(())
    }

    /// The tree is complete.
    fn finish(&mut self) {
        let (mut tree, is_wrapped) = (std::mem::take(&mut self.tree), std::mem::take(&mut self.is_wrapped));
        if tree.nodes.is_empty() {
            self.empty += 1;
            return;
        }
        if is_wrapped && tree.children(0).count() == 1 {
            tree.nodes.remove(0);
            tree.nodes.iter_mut().for_each(|node| node.end -= 1);
        }
        tree.nodes.shrink_to_fit();
        tree.words.shrink_to_fit();
        self.trees.push(tree);
    }
}
