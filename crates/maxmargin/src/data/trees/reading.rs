//! From text to trees.

use super::{Node, Tree, Treebank};
use crate::data::blocks::{Blocks, Cut, shown};
use crate::data::dictionary::Dictionary;
use crate::data::input::Input;
use crate::error::Result;

/// What is left out of trees, as evaluations of parsers do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
    fn label(self, label: &[u8]) -> &[u8] {
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
    let mut blocks = Blocks::new(input, Cut::default());
    let mut reader = Reader { strip, ..Reader::default() };
    let mut text = Vec::new();
    while blocks.next(&mut text)? {
        for line in text.split_inclusive(|&b| b == b'\n') {
            reader.line += 1;
            reader.take(line).map_err(|(line, what)| blocks.error(line, what))?;
        }
    }
    if let Some(open) = reader.open.first() {
        let what = match reader.open.len() {
            1 => "this bracket is never closed".to_owned(),
            n => format!("this bracket is never closed ({n} are open at the end of the file)"),
        };
        return Err(blocks.error(open.line, what));
    }
    if reader.bank.trees.is_empty() {
        return Err(blocks.error(reader.line.max(1), "the file has no trees with words"));
    }
    reader.bank.checksum = blocks.checksum();
    Ok(reader.bank)
}

/// A line may be bad: its number, and what is wrong with it.
type Checked<T> = std::result::Result<T, (u64, String)>;

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

#[derive(Debug, Default)]
struct Reader {
    strip: Strip,
    bank: Treebank,
    tree: Tree,
    open: Vec<Open>,
    /// The label of the innermost bracket, as long as it is not known whether it is a tag.
    label: Vec<u8>,
    /// Is the outermost bracket without a label?
    is_wrapped: bool,
    line: u64,
}

/// No label yet.
const UNKNOWN: u32 = Dictionary::NONE;

impl Reader {
    fn take(&mut self, text: &[u8]) -> Checked<()> {
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            at += 1;
            match byte {
                b'(' => self.begin()?,
                b')' => self.end()?,
                b' ' | b'\t' | b'\r' | b'\n' => {}
                _ => {
                    let rest = &text[at - 1..];
                    let is_end = |b: &u8| matches!(b, b'(' | b')' | b' ' | b'\t' | b'\r' | b'\n');
                    let word = &rest[..rest.iter().position(is_end).unwrap_or(rest.len())];
                    self.word(word)?;
                    at += word.len() - 1;
                }
            }
        }
        Ok(())
    }

    fn error<T>(&self, what: impl Into<String>) -> Checked<T> {
        Err((self.line, what.into()))
    }

    fn intern(names: &mut Dictionary, name: &[u8], line: u64) -> Checked<u32> {
        names.intern(name).ok_or_else(|| (line, "more than 4294967294 different words".to_owned()))
    }

    fn begin(&mut self) -> Checked<()> {
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
                    self.tree.nodes[above.node].label = Self::intern(&mut self.bank.labels, label, self.line)?;
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
        let line = self.line;
        let Some(open) = self.open.last_mut() else {
            return self.error(format!("{} outside of brackets", shown(word)));
        };
        match open.content {
            Content::Nothing if self.label.is_empty() => {
                if std::str::from_utf8(word).is_err() {
                    return self.error(format!("label {} is not valid UTF-8 (is this a text file?)", shown(word)));
                }
                self.label.extend_from_slice(word);
            }
            Content::Nothing => {
                open.content = Content::Word;
                self.tree.nodes[open.node].label = Self::intern(&mut self.bank.labels, &self.label, line)?;
                self.tree.words.push(Self::intern(&mut self.bank.words, word, line)?);
            }
            // A word with a blank in it.
            Content::Word => {
                let last = self.tree.words.last_mut().expect("a word");
                let whole = [self.bank.words.name(*last), word].join(&b' ');
                *last = Self::intern(&mut self.bank.words, &whole, line)?;
            }
            Content::Brackets => {
                return self
                    .error(format!("word {} beside brackets: each word needs a bracket of its own", shown(word)));
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Checked<()> {
        let Some(Open { node, line, content }) = self.open.pop() else {
            return self.error("a bracket is closed that was never opened");
        };
        let is_whole = self.open.is_empty();
        match content {
            Content::Nothing if self.label.is_empty() && is_whole => self.tree.nodes.clear(),
            Content::Nothing => {
                let label = String::from_utf8_lossy(&self.label).into_owned();
                return Err((line, format!("the bracket '({label}' has neither a word nor brackets in it")));
            }
            Content::Word if self.strip.empty && self.label == NONE => {
                self.tree.words.pop();
                self.tree.nodes.truncate(node);
            }
            Content::Brackets if self.tree.nodes.len() == node + 1 => self.tree.nodes.truncate(node),
            Content::Word | Content::Brackets => {
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
            self.bank.empty += 1;
            return;
        }
        if is_wrapped && tree.children(0).count() == 1 {
            tree.nodes.remove(0);
            tree.nodes.iter_mut().for_each(|node| node.end -= 1);
        }
        tree.nodes.shrink_to_fit();
        tree.words.shrink_to_fit();
        self.bank.trees.push(tree);
    }
}
