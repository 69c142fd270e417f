//! Trees in brackets, as in the Penn Treebank.
//!
//! `(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))`, over one line or many. A bracket without a label around a tree is left
//! out. Every word stands alone in the bracket of its tag; `(NN a b)` is one word with a blank in it. Brackets inside words
//! are written `-LRB-` and `-RRB-`. Lines that begin with `#` while no bracket is open are comments.

mod binarise;
mod collapsed;
mod grammar;
mod heads;
mod lexicon;
mod reading;
mod stream;
mod translated;
mod written;

use std::ops::Range;

use crate::data::dictionary::Dictionary;

pub use binarise::Binarise;
pub use grammar::{Extracted, Shape, Terminals, derive, grammar};
pub use lexicon::Lexicon;
pub use reading::{Strip, read, read_in_pieces};
pub use stream::Stream;
pub use translated::Reading;
pub use written::write;

/// The trees of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Treebank {
    /// The trees that have words, in the order of the file.
    pub trees: Vec<Tree>,
    /// Labels of brackets, those of tags too.
    pub labels: Dictionary,
    /// Words.
    pub words: Dictionary,
    /// Trees without words, which were left out.
    pub empty: u64,
    /// CRC-32 of the text (unpacked), by which a model remembers its data.
    pub checksum: u32,
}

/// A tree, its nodes in the order of their opening brackets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    nodes: Vec<Node>,
    words: Vec<u32>,
    /// The line, from 1, on which it begins.
    pub line: u64,
}

/// A bracket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Its number in [`Treebank::labels`].
    pub label: u32,
    /// The node after its last descendant.
    end: u32,
    /// The words that it is over.
    from: u32,
    to: u32,
}

impl Node {
    /// The words that it is over.
    pub fn span(&self) -> Range<usize> {
        self.from as usize..self.to as usize
    }
}

impl Tree {
    /// All nodes, in the order of their opening brackets. The first one is the root.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Words, by their numbers in [`Treebank::words`].
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// Is this node the tag of a word?
    pub fn is_tag(&self, node: usize) -> bool {
        self.nodes[node].end as usize == node + 1
    }

    /// The nodes right below one, from left to right.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> + '_ {
        let end = self.nodes[node].end as usize;
        let next = move |at: usize| (at < end).then_some(at);
        std::iter::successors(next(node + 1), move |&child| next(self.nodes[child].end as usize))
    }

    /// The tags of the words, in their order.
    pub fn tags(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.nodes.len()).filter(|&node| self.is_tag(node)).map(|node| self.nodes[node].label)
    }
}
