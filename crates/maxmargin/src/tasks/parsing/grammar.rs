//! A grammar: its symbols and rules, and the derivations that they make up.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::inference::cky::{Rules, Step, grouped};

/// The symbols and rules of a grammar.
///
/// Symbols are *phrases*, which have a label and are the brackets of a tree; *tags*, which stand over words; and symbols
/// *between*, by which a rule with many children becomes several with two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grammar {
    parts: Parts,
    rules: Rules,
    /// The lexical rules of terminal t are `lexical_starts[t]..lexical_starts[t + 1]` of `by_terminal`.
    lexical_starts: Vec<u32>,
    by_terminal: Vec<u32>,
    /// The root's rule of each symbol, or [`UNKNOWN`].
    root_rules: Vec<u32>,
}

/// A terminal that the grammar does not know.
pub const UNKNOWN: u32 = u32::MAX;

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
    /// Tag and terminal of each lexical rule. Terminals are words and classes of words, numbered from 0; where there are no such
    /// rules, the tags themselves are what a sentence is made of.
    pub lexical: Vec<(u32, u32)>,
    /// Number of terminals; 0 where they are the tags.
    pub terminals: u32,
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
    /// Tag and terminal.
    Lexical(u32, u32),
}

/// The rules of a tree by their numbers, from the root on, the left child of a rule before the right one.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Derivation(pub Vec<u32>);

impl Grammar {
    /// Puts a grammar together.
    pub fn new(parts: Parts) -> Result<Self> {
        let Parts { symbols, labels, tags, roots, unary, binary, lexical, terminals, longest } = &parts;
        let is_symbol = |symbol: &u32| (*symbol as usize) < symbols.len();
        if labels.len() + *tags as usize > symbols.len() || !roots.iter().all(is_symbol) {
            return Err(Error::model("a grammar with symbols that are none"));
        }
        // Tags stand over words, not over other symbols.
        let is_tag = |symbol: u32| (labels.len()..labels.len() + *tags as usize).contains(&(symbol as usize));
        if binary.iter().any(|rule| is_tag(rule.0)) {
            return Err(Error::model("a grammar with a rule whose parent is a tag"));
        }
        if !lexical.iter().all(|&(tag, terminal)| is_tag(tag) && terminal < *terminals) {
            return Err(Error::model("a grammar with a lexical rule that is none"));
        }
        let rules = Rules::new(symbols.len(), labels.len(), binary, unary, *longest)
            .map_err(|what| Error::model(format!("not a valid grammar: {what}")))?;
        let under: Vec<u32> = lexical.iter().map(|rule| rule.1).collect();
        let (lexical_starts, by_terminal) = grouped(*terminals as usize, &under);
        let mut root_rules = vec![UNKNOWN; symbols.len()];
        (0..).zip(roots).for_each(|(rule, &root)| root_rules[root as usize] = rule);
        Ok(Self { parts, rules, lexical_starts, by_terminal, root_rules })
    }

    /// Is a sentence made of words, and not of tags?
    pub fn has_words(&self) -> bool {
        self.parts.terminals > 0
    }

    /// The tags that can stand over a terminal, each with its lexical rule's number, none where terminals are the tags.
    pub fn tags_over(&self, terminal: u32) -> impl Iterator<Item = (u32, Option<u32>)> + '_ {
        let is_tag = !self.has_words() && self.tags().contains(&terminal);
        let lexical = if terminal < self.parts.terminals {
            let (from, to) = (self.lexical_starts[terminal as usize], self.lexical_starts[terminal as usize + 1]);
            &self.by_terminal[from as usize..to as usize]
        } else {
            &[]
        };
        let first = self.first_lexical();
        let rule = move |&rule: &u32| (self.parts.lexical[rule as usize].0, Some(first + rule));
        is_tag.then_some((terminal, None)).into_iter().chain(lexical.iter().map(rule))
    }

    fn first_lexical(&self) -> u32 {
        let Parts { roots, unary, binary, .. } = &self.parts;
        (roots.len() + unary.len() + binary.len()) as u32
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

    /// Number of rules: symbols at the root, unary, binary and lexical rules are numbered one after the other.
    pub fn len(&self) -> usize {
        self.first_lexical() as usize + self.parts.lexical.len()
    }

    /// No rule?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The rule with a number.
    pub fn rule(&self, number: u32) -> Option<Rule> {
        let Parts { roots, unary, binary, lexical, .. } = &self.parts;
        let number = number as usize;
        if let Some(&symbol) = roots.get(number) {
            return Some(Rule::Root(symbol));
        }
        let number = number - roots.len();
        if let Some(&(parent, child)) = unary.get(number) {
            return Some(Rule::Unary(parent, child));
        }
        let number = number - unary.len();
        if let Some(&(parent, left, right)) = binary.get(number) {
            return Some(Rule::Binary(parent, left, right));
        }
        lexical.get(number - binary.len()).map(|&(tag, terminal)| Rule::Lexical(tag, terminal))
    }

    /// The symbol that a rule is about; None for one at the root.
    pub fn parent(&self, number: u32) -> Option<u32> {
        match self.rule(number)? {
            Rule::Root(_) => None,
            Rule::Unary(parent, _) | Rule::Binary(parent, ..) | Rule::Lexical(parent, _) => Some(parent),
        }
    }

    /// A rule as people write it; `terminal` tells the words.
    pub fn shown(&self, number: u32, terminal: impl Fn(u32) -> String) -> Option<String> {
        let name = |symbol: u32| self.parts.symbols[symbol as usize].as_str();
        Some(match self.rule(number)? {
            Rule::Root(symbol) => format!("-> {}", name(symbol)),
            Rule::Unary(parent, child) => format!("{} -> {}", name(parent), name(child)),
            Rule::Binary(parent, left, right) => format!("{} -> {} {}", name(parent), name(left), name(right)),
            Rule::Lexical(tag, word) => format!("{} -> {}", name(tag), terminal(word)),
        })
    }

    /// The symbols of a derivation with the words that they are over, parents before children, left before right. None where
    /// the rules do not follow upon each other.
    pub fn nodes(&self, derivation: &Derivation) -> Option<Vec<(u32, Range<usize>)>> {
        let mut walk = Walk::default();
        self.walk(derivation, &mut walk)?;
        Some(walk.nodes)
    }

    /// The same, with the terminals, into memory that is there.
    pub(super) fn walk(&self, derivation: &Derivation, walk: &mut Walk) -> Option<()> {
        let Walk { nodes, terminals, items } = walk;
        nodes.clear();
        terminals.clear();
        items.clear();
        let mut rules = derivation.0.iter();
        let Rule::Root(root) = self.rule(*rules.next()?)? else { return None };
        items.push(Item::Open(root));
        while let Some(item) = items.pop() {
            match item {
                Item::Close(node) => nodes[node].1.end = terminals.len(),
                Item::Open(tag) if self.tags().contains(&tag) => {
                    let word = terminals.len();
                    nodes.push((tag, word..word + 1));
                    terminals.push(if self.has_words() {
                        let Rule::Lexical(parent, terminal) = self.rule(*rules.next()?)? else { return None };
                        (parent == tag).then_some(terminal)?
                    } else {
                        tag
                    });
                }
                Item::Open(symbol) => {
                    items.push(Item::Close(nodes.len()));
                    nodes.push((symbol, terminals.len()..terminals.len()));
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
        rules.next().is_none().then_some(())
    }

    /// Adds the nodes that the decoder tells of a symbol over a span.
    pub(super) fn nodes_of(
        &self,
        symbol: u32,
        span: Range<usize>,
        steps: &[Step],
        nodes: &mut Vec<(u32, Range<usize>)>,
    ) {
        let mut open = vec![(symbol, span)];
        for step in steps {
            let Some((symbol, span)) = open.pop() else { return };
            match *step {
                Step::Unary(rule) => open.push((self.parts.unary[rule as usize].1, span.clone())),
                Step::Binary(rule, split) => {
                    let ((_, left, right), split) = (self.parts.binary[rule as usize], split as usize);
                    open.extend([(right, split..span.end), (left, span.start..split)]);
                }
                Step::Word(..) | Step::Root(_) => {}
            }
            nodes.push((symbol, span));
        }
    }

    /// The rules of what the decoder tells of a sentence with these terminals.
    pub fn derivation(&self, steps: &[Step], x: &[u32]) -> Derivation {
        let mut derivation = Derivation::default();
        self.derive(steps, x, &mut derivation);
        derivation
    }

    /// The same, into memory that is there.
    pub(super) fn derive(&self, steps: &[Step], x: &[u32], derivation: &mut Derivation) {
        let Parts { roots, unary, .. } = &self.parts;
        let (first_unary, first_binary) = (roots.len() as u32, (roots.len() + unary.len()) as u32);
        let number = |step: &Step| match *step {
            Step::Root(symbol) => Some(self.root_rules[symbol as usize]),
            Step::Unary(rule) => Some(first_unary + rule),
            Step::Binary(rule, _) => Some(first_binary + rule),
            Step::Word(i, symbol) => self.tags_over(x[i as usize]).find(|(tag, _)| *tag == symbol)?.1,
        };
        derivation.0.clear();
        derivation.0.extend(steps.iter().filter_map(number));
    }

    /// The reverse: what the decoder would tell.
    pub(super) fn steps(&self, derivation: &Derivation, walk: &mut Walk, steps: &mut Vec<Step>) -> Option<()> {
        self.walk(derivation, walk)?;
        let Parts { roots, unary, .. } = &self.parts;
        let (first_unary, first_binary) = (roots.len() as u32, (roots.len() + unary.len()) as u32);
        steps.clear();
        let mut rules = derivation.0.iter();
        steps.push(Step::Root(walk.nodes.first()?.0));
        rules.next()?;
        for (at, (symbol, span)) in walk.nodes.iter().enumerate() {
            let (is_tag, is_lexical) = (self.tags().contains(symbol), self.has_words());
            if is_tag {
                steps.push(Step::Word(span.start as u32, *symbol));
                if !is_lexical {
                    continue;
                }
            }
            let number = *rules.next()?;
            match self.rule(number)? {
                Rule::Unary(..) => steps.push(Step::Unary(number - first_unary)),
                // The left child comes next.
                Rule::Binary(..) => {
                    let split = walk.nodes.get(at + 1)?.1.end;
                    steps.push(Step::Binary(number - first_binary, split as u32));
                }
                Rule::Lexical(..) | Rule::Root(_) => {}
            }
        }
        Some(())
    }
}

/// A derivation as it is followed from the root on.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// Symbols with the words that they are over.
    pub(super) nodes: Vec<(u32, Range<usize>)>,
    pub(super) terminals: Vec<u32>,
    items: Vec<Item>,
}

#[derive(Debug)]
enum Item {
    Open(u32),
    Close(usize),
}
