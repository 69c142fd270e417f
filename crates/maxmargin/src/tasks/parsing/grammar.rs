//! A grammar: its symbols and rules, and the derivations that they make up.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::inference::cky::{Rules, Step};

/// The symbols and rules of a grammar.
///
/// Symbols are *phrases*, which have a label and are the brackets of a tree; *tags*, which stand over words; and symbols
/// *between*, by which a rule with many children becomes several with two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    parts: Parts,
    rules: Rules,
}

/// What a [`Grammar`] is made from.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Parts {
    /// The names of all symbols: phrases, then tags, then those between.
    pub symbols: Vec<String>,
    /// The label of each phrase, as brackets have it.
    pub labels: Vec<String>,
    /// Number of tags.
    pub tags: u32,
    /// The symbols that can be the root.
    pub roots: Vec<u32>,
    /// Parent and child of each unary rule.
    pub unary: Vec<(u32, u32)>,
    /// Parent, left and right child of each binary rule.
    pub binary: Vec<(u32, u32, u32)>,
    /// So many unary rules may follow upon each other.
    pub longest: usize,
}

/// One rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A symbol at the root.
    Root(u32),
    /// Parent and child.
    Unary(u32, u32),
    /// Parent, left and right child.
    Binary(u32, u32, u32),
}

/// The rules of a tree by their numbers, from the root on, the left child of a rule before the right one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Derivation(pub Vec<u32>);

impl Grammar {
    /// Puts a grammar together.
    pub fn new(parts: Parts) -> Result<Self> {
        let Parts { symbols, labels, tags, roots, unary, binary, longest } = &parts;
        let is_symbol = |symbol: &u32| (*symbol as usize) < symbols.len();
        if labels.len() + *tags as usize > symbols.len() || !roots.iter().all(is_symbol) {
            return Err(Error::model("a grammar with symbols that are none"));
        }
        // Tags stand over words, not over other symbols.
        let is_tag = |symbol: u32| (labels.len()..labels.len() + *tags as usize).contains(&(symbol as usize));
        if binary.iter().any(|rule| is_tag(rule.0)) {
            return Err(Error::model("a grammar with a rule whose parent is a tag"));
        }
        let rules = Rules::new(symbols.len(), labels.len(), binary, unary, *longest)
            .map_err(|what| Error::model(format!("not a valid grammar: {what}")))?;
        Ok(Self { parts, rules })
    }

    /// What it is made from.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// Its rules, for the decoder.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Number of phrases.
    pub fn phrases(&self) -> u32 {
        self.parts.labels.len() as u32
    }

    /// The symbols of the tags.
    pub fn tags(&self) -> Range<u32> {
        self.phrases()..self.phrases() + self.parts.tags
    }

    /// Number of rules: symbols at the root, unary and binary rules are numbered one after the other.
    pub fn len(&self) -> usize {
        self.parts.roots.len() + self.parts.unary.len() + self.parts.binary.len()
    }

    /// No rule?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rule with a number.
    pub fn rule(&self, number: u32) -> Option<Rule> {
        let Parts { roots, unary, binary, .. } = &self.parts;
        let number = number as usize;
        if let Some(&symbol) = roots.get(number) {
            return Some(Rule::Root(symbol));
        }
        let number = number - roots.len();
        if let Some(&(parent, child)) = unary.get(number) {
            return Some(Rule::Unary(parent, child));
        }
        binary.get(number - unary.len()).map(|&(parent, left, right)| Rule::Binary(parent, left, right))
    }

    /// A rule as people write it.
    pub fn shown(&self, number: u32) -> Option<String> {
        let name = |symbol: u32| self.parts.symbols[symbol as usize].as_str();
        Some(match self.rule(number)? {
            Rule::Root(symbol) => format!("-> {}", name(symbol)),
            Rule::Unary(parent, child) => format!("{} -> {}", name(parent), name(child)),
            Rule::Binary(parent, left, right) => format!("{} -> {} {}", name(parent), name(left), name(right)),
        })
    }

    /// The symbols of a derivation with the words that they are over, parents before children, left before right. None where
    /// the rules do not follow upon each other.
    pub fn nodes(&self, derivation: &Derivation) -> Option<Vec<(u32, Range<usize>)>> {
        enum Item {
            Open(u32),
            Close(usize),
        }
        let mut rules = derivation.0.iter();
        let Rule::Root(root) = self.rule(*rules.next()?)? else { return None };
        let (mut nodes, mut items, mut words) = (Vec::new(), vec![Item::Open(root)], 0);
        while let Some(item) = items.pop() {
            match item {
                Item::Close(node) => {
                    let (_, span): &mut (u32, Range<usize>) = &mut nodes[node];
                    span.end = words;
                }
                Item::Open(symbol) if self.tags().contains(&symbol) => {
                    nodes.push((symbol, words..words + 1));
                    words += 1;
                }
                Item::Open(symbol) => {
                    items.push(Item::Close(nodes.len()));
                    nodes.push((symbol, words..words));
                    match self.rule(*rules.next()?)? {
                        Rule::Unary(parent, child) if parent == symbol => items.push(Item::Open(child)),
                        Rule::Binary(parent, left, right) if parent == symbol => {
                            items.extend([Item::Open(right), Item::Open(left)]);
                        }
                        _ => return None,
                    }
                }
            }
        }
        rules.next().is_none().then_some(nodes)
    }

    /// The rules of what the decoder tells.
    pub fn derivation(&self, steps: &[Step]) -> Derivation {
        let Parts { roots, unary, .. } = &self.parts;
        let (first_unary, first_binary) = (roots.len() as u32, (roots.len() + unary.len()) as u32);
        let number = |step: &Step| match *step {
            Step::Root(symbol) => roots.iter().position(|&root| root == symbol).map(|at| at as u32),
            Step::Unary(rule) => Some(first_unary + rule),
            Step::Binary(rule, _) => Some(first_binary + rule),
            Step::Word(_) => None,
        };
        Derivation(steps.iter().filter_map(number).collect())
    }
}
