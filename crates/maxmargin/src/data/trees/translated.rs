//! From trees to what the task of parsing takes, and back.

use std::collections::HashMap;
use std::ops::Range;

use super::collapsed::Collapsed;
use super::grammar::annotated;
use super::lexicon::Lexicon;
use super::{Node, Tree};
use crate::data::dictionary::Dictionary;
use crate::tasks::parsing::{Bracket, Grammar, Parts, UNKNOWN};

/// Trees, as a grammar sees them.
#[derive(Debug)]
pub struct Reading<'g> {
    grammar: &'g Grammar,
    lexicon: Option<&'g Lexicon>,
    /// By label and name: `A^B` may be the label `A` below `B`, or the label `A^B`.
    phrases: HashMap<(&'g str, &'g str), u32>,
    tags: HashMap<&'g str, u32>,
    is_annotated: bool,
}

/// The tag of a word that neither the grammar nor the sentence has one for, as in OntoNotes.
const NO_TAG: &[u8] = b"XX";
/// The label of a phrase that is none of the grammar's, as in the Penn Treebank.
const NO_PHRASE: &[u8] = b"X";

impl<'g> Reading<'g> {
    /// For a grammar, and its lexicon where terminals are words.
    pub fn new(grammar: &'g Grammar, lexicon: Option<&'g Lexicon>) -> Self {
        debug_assert_eq!(grammar.has_words(), lexicon.is_some());
        let Parts { symbols, labels, .. } = grammar.parts();
        let names = labels.iter().zip(symbols).map(|(label, name)| (label.as_str(), name.as_str()));
        let tags = &symbols[labels.len()..grammar.tags().end as usize];
        Self {
            grammar,
            lexicon,
            is_annotated: names.clone().any(|(label, name)| label != name),
            phrases: names.zip(0..).collect(),
            tags: tags.iter().map(String::as_str).zip(grammar.tags()).collect(),
        }
    }

    /// The sentence of a tree: the symbols of its tags, or its words as terminals of the lexicon. [`UNKNOWN`] stands for a tag
    /// that the grammar lacks.
    pub fn terminals(&self, labels: &Dictionary, words: &Dictionary, tree: &Tree) -> Vec<u32> {
        if let Some(lexicon) = self.lexicon {
            let word = |(at, &word): (usize, &u32)| lexicon.terminal(words.name(word), at == 0);
            return tree.words().iter().enumerate().map(word).collect();
        }
        let tag = |tag: u32| std::str::from_utf8(labels.name(tag)).ok().and_then(|name| self.tags.get(name).copied());
        tree.tags().map(|label| tag(label).unwrap_or(UNKNOWN)).collect()
    }

    /// The brackets that a derivation of this tree has or would have, ascending; [`UNKNOWN`] stands for a phrase that the
    /// grammar lacks.
    pub fn brackets(&self, labels: &Dictionary, tree: &Tree) -> Vec<Bracket> {
        let nodes = Collapsed::of(tree, self.is_annotated);
        let label = |label: u32| String::from_utf8_lossy(labels.name(label)).into_owned();
        let phrases = nodes.nodes.iter().enumerate().filter(|(at, _)| !nodes.is_tag(*at));
        let bracket = |(_, kept): (usize, &super::collapsed::Kept)| {
            let (own, name) = (label(kept.label), annotated(&label, kept.label, kept.above));
            let phrase = self.phrases.get(&(own.as_str(), name.as_str())).copied();
            let Node { from, to, .. } = tree.nodes()[kept.node];
            (phrase.unwrap_or(UNKNOWN), from, to)
        };
        let mut brackets: Vec<Bracket> = phrases.map(bracket).collect();
        brackets.sort_unstable();
        brackets
    }

    /// The tree of some symbols and what they are over, parents before children, left before right, with the words of `of`;
    /// symbols between are skipped. Where terminals are tags, and for a symbol [`UNKNOWN`], the tag is the one that `of` has, or
    /// `XX` where it has none; over more words than one [`UNKNOWN`] is a phrase `X`. Labels are added to `labels` as need be. None where the nodes make no tree of these words.
    pub fn tree(&self, nodes: &[(u32, Range<usize>)], of: &Tree, labels: &mut Dictionary) -> Option<Tree> {
        let Parts { symbols, labels: own, .. } = self.grammar.parts();
        let given: Vec<u32> = of.tags().collect();
        let mut tree = Tree { words: of.words.clone(), line: of.line, ..Tree::default() };
        // Phrases that are not at their end, and the number of words so far.
        let (mut open, mut words): (Vec<usize>, usize) = (Vec::new(), 0);
        for (symbol, span) in nodes {
            let is_tag = *symbol == UNKNOWN && span.len() == 1 || self.grammar.tags().contains(symbol);
            let label = match *symbol {
                phrase if phrase < self.grammar.phrases() => labels.intern(own[phrase as usize].as_bytes())?,
                tag if is_tag && (tag == UNKNOWN || self.lexicon.is_none()) => {
                    let label = *given.get(span.start)?;
                    if labels.name(label).is_empty() { labels.intern(NO_TAG)? } else { label }
                }
                UNKNOWN => labels.intern(NO_PHRASE)?,
                tag if is_tag => labels.intern(symbols[tag as usize].as_bytes())?,
                between if (between as usize) < symbols.len() => continue,
                _ => return None,
            };
            while let Some(last) = open.pop_if(|last| tree.nodes[*last].to as usize <= words) {
                tree.nodes[last].end = tree.nodes.len() as u32;
            }
            // The next word is below this node, and the node is below those that are open.
            let most = open.last().map_or(of.words.len(), |&last| tree.nodes[last].to as usize);
            let is_root = tree.nodes.is_empty();
            if span.start != words || span.is_empty() || span.end > most || open.is_empty() != is_root {
                return None;
            }
            let at = tree.nodes.len();
            let (from, to) = (span.start as u32, span.end as u32);
            tree.nodes.push(Node { label, end: at as u32 + 1, from, to });
            if !is_tag {
                open.push(at);
            } else if span.len() == 1 {
                words += 1;
            } else {
                return None;
            }
        }
        for last in open {
            tree.nodes[last].end = tree.nodes.len() as u32;
            (tree.nodes[last].to as usize <= words).then_some(())?;
        }
        (words == of.words.len() && words > 0).then_some(tree)
    }
}
