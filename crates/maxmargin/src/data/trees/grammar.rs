//! The grammar of some trees.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::binarise::{Binarise, Binariser, Numbered, Order, Symbol, Two};
use super::collapsed::{Collapsed, Kept};
use super::heads::head;
use super::lexicon::Lexicon;
use super::reading::Strip;
use super::{Tree, Treebank};
use crate::data::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::tasks::parsing::{Derivation, Grammar, Parts};

/// What sentences are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Terminals {
    /// Tags.
    #[default]
    Tags,
    /// Words.
    Words {
        /// Words seen fewer times than this are replaced by their class, in training too.
        rare_below: u32,
    },
}

/// How trees become rules with at most two children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Shape {
    /// A phrase is told from others with the same label by the label above it.
    pub parent_annotation: bool,
    /// How a rule with many children becomes several with two.
    pub binarise: Binarise,
    /// What the next child of a rule may be depends on so many children before it (Markov), and with [`Binarise::Head`] on the
    /// head; None: on all that are still to come, so that the grammar has just the rules that were seen.
    pub markov: Option<usize>,
    /// Trees with a rule (a label and its children) that all trees have fewer times than this are left out. 0 and 1: none is.
    pub min_count: u32,
    /// What sentences are made of.
    pub terminals: Terminals,
}

/// A grammar and what it was read off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    /// The grammar.
    pub grammar: Grammar,
    /// The words that it knows, where terminals are words.
    pub lexicon: Option<Lexicon>,
    /// The derivation of each tree; None where [`Shape::min_count`] left it out.
    pub derivations: Vec<Option<Derivation>>,
}

/// Reads a grammar off trees: all rules that there are in them. Where a phrase stands over itself with nothing else between or
/// beside, the inner one alone counts.
pub fn grammar(bank: &Treebank, shape: Shape) -> Result<Extracted> {
    let is_kept = frequent(bank, shape);
    let kept: Vec<&Tree> =
        bank.trees.iter().zip(&is_kept).filter(|(_, is_kept)| **is_kept).map(|(tree, _)| tree).collect();
    if kept.is_empty() && !bank.trees.is_empty() {
        let rule =
            format!("every tree has a rule that is seen fewer than {} times; choose a smaller one", shape.min_count);
        return Err(Error::setting("min-count", rule));
    }
    let lexicon = match shape.terminals {
        Terminals::Tags => None,
        Terminals::Words { rare_below } => Some(Lexicon::of(&kept, &bank.words, rare_below)?),
    };
    let mut reader = Reader::new(bank, shape, lexicon.as_ref());
    let seen: Vec<Vec<Seen>> = kept.iter().map(|tree| reader.tree(tree)).collect();
    let grammar = reader.finish()?;
    let number = |rule: &Seen| rule.number(grammar.parts());
    let mut seen = seen.iter().map(|rules| Derivation(rules.iter().map(number).collect()));
    let derivations = is_kept.iter().map(|&is_kept| if is_kept { seen.next() } else { None }).collect();
    Ok(Extracted { grammar, lexicon, derivations })
}

/// The derivations of other trees, which became rules in the same way; None where the grammar lacks one of these.
pub fn derive(
    bank: &Treebank,
    shape: Shape,
    grammar: &Grammar,
    lexicon: Option<&Lexicon>,
) -> Result<Vec<Option<Derivation>>> {
    let mut reader = Reader::new(bank, shape, lexicon);
    let seen: Vec<Vec<Seen>> = bank.trees.iter().map(|tree| reader.tree(tree)).collect();
    let own = reader.finish()?;
    let symbols: HashMap<_, u32> = named(grammar.parts()).zip(0..).collect();
    let symbols: Vec<Option<u32>> = named(own.parts()).map(|symbol| symbols.get(&symbol).copied()).collect();
    let rules: HashMap<Rule, u32> = rules(grammar.parts()).zip(0..).collect();
    let known = |rule: Rule| {
        let of = |symbol: u32| symbols[symbol as usize];
        let rule = match rule {
            Rule::Root(a) => Rule::Root(of(a)?),
            Rule::Unary(a, b) => Rule::Unary(of(a)?, of(b)?),
            Rule::Binary(a, b, c) => Rule::Binary(of(a)?, of(b)?, of(c)?),
            Rule::Lexical(tag, terminal) => Rule::Lexical(of(tag)?, terminal),
        };
        rules.get(&rule).copied()
    };
    let known: Vec<Option<u32>> = self::rules(own.parts()).map(known).collect();
    let number = |rule: &Seen| known[rule.number(own.parts()) as usize];
    Ok(seen.iter().map(|rules| rules.iter().map(number).collect::<Option<_>>().map(Derivation)).collect())
}

/// A rule by the numbers of its symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Rule {
    Root(u32),
    Unary(u32, u32),
    Binary(u32, u32, u32),
    /// Tag and terminal.
    Lexical(u32, u32),
}

/// All rules in the order of their numbers.
fn rules(parts: &Parts) -> impl Iterator<Item = Rule> {
    let roots = parts.roots.iter().map(|&a| Rule::Root(a));
    let unary = parts.unary.iter().map(|&(a, b)| Rule::Unary(a, b));
    let binary = parts.binary.iter().map(|&(a, b, c)| Rule::Binary(a, b, c));
    let lexical = parts.lexical.iter().map(|&(tag, terminal)| Rule::Lexical(tag, terminal));
    roots.chain(unary).chain(binary).chain(lexical)
}

/// The symbols with their kinds: a phrase may be called as a tag is.
fn named(parts: &Parts) -> impl Iterator<Item = (u8, &str)> {
    let (phrases, tags) = (parts.labels.len(), parts.labels.len() + parts.tags as usize);
    let kind = move |at: usize| u8::from(at >= phrases) + u8::from(at >= tags);
    parts.symbols.iter().enumerate().map(move |(at, name)| (kind(at), name.as_str()))
}

/// Has a tree only rules that are seen often enough?
fn frequent(bank: &Treebank, shape: Shape) -> Vec<bool> {
    if shape.min_count < 2 {
        return vec![true; bank.trees.len()];
    }
    let mut reader = Reader::new(bank, shape, None);
    let mut rules: Numbered<(Symbol, Vec<Symbol>)> = Numbered::default();
    let mut counts: Vec<u32> = Vec::new();
    let mut of_trees: Vec<Vec<u32>> = Vec::with_capacity(bank.trees.len());
    for tree in &bank.trees {
        let nodes = Collapsed::of(tree, shape.parent_annotation);
        let symbols = reader.symbols(&nodes);
        let phrases = (0..symbols.len()).filter(|&node| !nodes.is_tag(node));
        let rule =
            |node: usize| rules.place((symbols[node], nodes.children(node).map(|child| symbols[child]).collect()));
        let own: Vec<u32> = phrases.map(rule).collect();
        counts.resize(rules.len(), 0);
        for &rule in &own {
            counts[rule as usize] = counts[rule as usize].saturating_add(1);
        }
        of_trees.push(own);
    }
    of_trees.iter().map(|own| own.iter().all(|&rule| counts[rule as usize] >= shape.min_count)).collect()
}

/// A rule of a tree, by its number among those of its kind.
#[derive(Debug, Clone, Copy)]
enum Seen {
    Root(u32),
    Unary(u32),
    Binary(u32),
    Lexical(u32),
}

impl Seen {
    /// Its number among all rules.
    fn number(self, parts: &Parts) -> u32 {
        let first_unary = parts.roots.len() as u32;
        let first_binary = first_unary + parts.unary.len() as u32;
        match self {
            Self::Root(at) => at,
            Self::Unary(at) => first_unary + at,
            Self::Binary(at) => first_binary + at,
            Self::Lexical(at) => first_binary + parts.binary.len() as u32 + at,
        }
    }
}

/// What of a tree is still to be read.
enum Item {
    Node(usize),
    Rule(Seen),
}

struct Reader<'b> {
    bank: &'b Treebank,
    lexicon: Option<&'b Lexicon>,
    shape: Shape,
    /// By label, and the label above.
    phrases: Numbered<(u32, u32)>,
    tags: Numbered<u32>,
    binariser: Binariser,
    roots: Numbered<Symbol>,
    unary: Numbered<(Symbol, Symbol)>,
    binary: Numbered<Two>,
    /// Tag and terminal.
    lexical: Numbered<(u32, u32)>,
    /// The longest row of unary rules.
    longest: usize,
}

impl<'b> Reader<'b> {
    fn new(bank: &'b Treebank, shape: Shape, lexicon: Option<&'b Lexicon>) -> Self {
        Self {
            bank,
            lexicon,
            shape,
            phrases: Numbered::default(),
            tags: Numbered::default(),
            binariser: Binariser { binarise: shape.binarise, markov: shape.markov, betweens: Numbered::default() },
            roots: Numbered::default(),
            unary: Numbered::default(),
            binary: Numbered::default(),
            lexical: Numbered::default(),
            longest: 0,
        }
    }

    fn symbols(&mut self, nodes: &Collapsed) -> Vec<Symbol> {
        let symbol = |(node, &Kept { label, above, .. })| {
            if nodes.is_tag(node) {
                Symbol::Tag(self.tags.place(label))
            } else {
                Symbol::Phrase(self.phrases.place((label, above)))
            }
        };
        nodes.nodes.iter().enumerate().map(symbol).collect()
    }

    fn tree(&mut self, tree: &Tree) -> Vec<Seen> {
        let nodes = Collapsed::of(tree, self.shape.parent_annotation);
        let symbols = self.symbols(&nodes);
        let mut found = vec![Seen::Root(self.roots.place(symbols[0]))];
        let mut items = vec![Item::Node(0)];
        let (mut children, mut below, mut rules) = (Vec::new(), Vec::new(), Vec::new());
        let (mut row, mut word) = (0, 0);
        while let Some(item) = items.pop() {
            let node = match item {
                Item::Rule(rule) => {
                    found.push(rule);
                    continue;
                }
                Item::Node(node) => node,
            };
            if let Symbol::Tag(tag) = symbols[node] {
                found.extend(self.lexical(tag, tree.words()[word], word == 0));
                (row, word) = (0, word + 1);
                continue;
            }
            children.clear();
            children.extend(nodes.children(node));
            if let [child] = children[..] {
                found.push(Seen::Unary(self.unary.place((symbols[node], symbols[child]))));
                row += 1;
                self.longest = self.longest.max(row);
                items.push(Item::Node(child));
                continue;
            }
            row = 0;
            below.clear();
            below.extend(children.iter().map(|&child| symbols[child]));
            let head = self.head(&nodes, node, &children);
            self.binariser.rules(symbols[node], &below, head, &mut rules);
            // A rule comes before what is below it, the left child before the right one: after each child that is split off on
            // the left comes the next rule, and rules that split off on the right come one after the other.
            let order = Order::new(children.len(), head);
            let seen: Vec<Seen> = rules.iter().map(|&rule| Seen::Binary(self.binary.place(rule))).collect();
            let (lefts, rest) = seen.split_at(order.lefts);
            items.extend(children[order.lefts..].iter().rev().map(|&child| Item::Node(child)));
            items.extend(rest.iter().rev().map(|&rule| Item::Rule(rule)));
            for (&rule, &child) in lefts.iter().zip(&children).rev() {
                items.extend([Item::Node(child), Item::Rule(rule)]);
            }
        }
        found
    }

    /// The lexical rule of a word, where there are such rules.
    fn lexical(&mut self, tag: u32, word: u32, is_first: bool) -> Option<Seen> {
        let lexicon = self.lexicon?;
        let terminal = lexicon.terminal(self.bank.words.name(word), is_first);
        let rule = self.lexical.place((tag, terminal));
        if terminal >= lexicon.words() {
            self.lexical.place((tag, lexicon.any()));
        }
        Some(Seen::Lexical(rule))
    }

    fn head(&self, nodes: &Collapsed, node: usize, children: &[usize]) -> usize {
        if self.shape.binarise == Binarise::Right {
            return children.len() - 1;
        }
        let label = |node: usize| Strip::ALL.label(self.bank.labels.name(nodes.nodes[node].label));
        let below: Vec<&[u8]> = children.iter().map(|&child| label(child)).collect();
        head(label(node), &below)
    }

    /// The grammar of what was read.
    fn finish(mut self) -> Result<Grammar> {
        if let Some(lexicon) = self.lexicon
            && !self.lexical.list.iter().any(|rule| rule.1 == lexicon.any())
        {
            for tag in 0..self.tags.len() as u32 {
                self.lexical.place((tag, lexicon.any()));
            }
        }
        let Self { bank, lexicon, phrases, tags, binariser, roots, unary, binary, lexical, longest, .. } = self;
        let (first_tag, first_between) = (phrases.len() as u32, (phrases.len() + tags.len()) as u32);
        let number = |symbol: &Symbol| match *symbol {
            Symbol::Phrase(at) => at,
            Symbol::Tag(at) => first_tag + at,
            Symbol::Between(at) => first_between + at,
        };
        let label = |label: u32| String::from_utf8_lossy(bank.labels.name(label)).into_owned();
        let mut symbols: Vec<String> = phrases.list.iter().map(|&(own, above)| annotated(&label, own, above)).collect();
        symbols.extend(tags.list.iter().map(|&tag| label(tag)));
        for between in 0..binariser.betweens.len() as u32 {
            symbols.push(binariser.name(between, |symbol| symbols[number(&symbol) as usize].clone()));
        }
        Grammar::new(Parts {
            symbols,
            labels: phrases.list.iter().map(|&(own, _)| label(own)).collect(),
            tags: tags.len() as u32,
            roots: roots.list.iter().map(number).collect(),
            unary: unary.list.iter().map(|(a, b)| (number(a), number(b))).collect(),
            binary: binary.list.iter().map(|(a, b, c)| (number(a), number(b), number(c))).collect(),
            lexical: lexical.list.iter().map(|&(tag, terminal)| (first_tag + tag, terminal)).collect(),
            terminals: lexicon.map_or(0, |lexicon| lexicon.names().len() as u32),
            longest,
        })
    }
}

/// The name of a phrase that is told from others by the label above it, if there is one.
pub(super) fn annotated(label: &impl Fn(u32) -> String, own: u32, above: u32) -> String {
    match above {
        Dictionary::NONE => label(own),
        above => format!("{}^{}", label(own), label(above)),
    }
}
