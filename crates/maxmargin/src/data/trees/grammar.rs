//! The grammar of some trees.

use std::collections::HashMap;
use std::hash::Hash;

use super::{Node, Tree, Treebank};
use crate::data::dictionary::Dictionary;
use crate::error::Result;
use crate::tasks::parsing::{Derivation, Grammar, Parts};

/// How trees become rules with at most two children.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// A phrase is told from others with the same label by the label above it.
    pub parent_annotation: bool,
    /// A rule with many children is made from left to right. What its next child may be depends on so many children before it
    /// (Markov); None: on all that are still to come, so that the grammar has just the rules that were seen.
    pub markov: Option<usize>,
}

/// Reads a grammar off trees: all rules that there are in them. Also returns their derivations. Where a phrase stands over
/// itself with nothing else between or beside, the inner one alone counts.
pub fn grammar(bank: &Treebank, shape: Shape) -> Result<(Grammar, Vec<Derivation>)> {
    let mut reader = Reader { shape, ..Reader::default() };
    let derivations: Vec<Vec<Seen>> = bank.trees.iter().map(|tree| reader.tree(tree)).collect();
    let Reader { phrases, tags, betweens, roots, unary, binary, longest, .. } = reader;
    let (first_tag, first_between) = (phrases.len() as u32, (phrases.len() + tags.len()) as u32);
    let number = |symbol: &Symbol| match *symbol {
        Symbol::Phrase(at) => at,
        Symbol::Tag(at) => first_tag + at,
        Symbol::Between(at) => first_between + at,
    };
    let label = |label: u32| String::from_utf8_lossy(bank.labels.name(label)).into_owned();
    let labels: Vec<String> = phrases.list.iter().map(|&(own, _)| label(own)).collect();
    let annotated = |&(own, above): &(u32, u32)| match above {
        Dictionary::NONE => label(own),
        above => format!("{}^{}", label(own), label(above)),
    };
    let mut symbols: Vec<String> = phrases.list.iter().map(annotated).collect();
    symbols.extend(tags.list.iter().map(|&tag| label(tag)));
    for (parent, children) in &betweens.list {
        let names: Vec<&str> = children.iter().map(|child| symbols[number(child) as usize].as_str()).collect();
        symbols.push(format!("{}|{}", symbols[number(parent) as usize], names.join("_")));
    }
    let (first_unary, first_binary) = (roots.len() as u32, (roots.len() + unary.len()) as u32);
    let rule = |seen: &Seen| match *seen {
        Seen::Root(at) => at,
        Seen::Unary(at) => first_unary + at,
        Seen::Binary(at) => first_binary + at,
    };
    let grammar = Grammar::new(Parts {
        symbols,
        labels,
        tags: tags.len() as u32,
        roots: roots.list.iter().map(number).collect(),
        unary: unary.list.iter().map(|(a, b)| (number(a), number(b))).collect(),
        binary: binary.list.iter().map(|(a, b, c)| (number(a), number(b), number(c))).collect(),
        lexical: Vec::new(),
        terminals: 0,
        longest,
    })?;
    let derivations = derivations.iter().map(|rules| Derivation(rules.iter().map(rule).collect())).collect();
    Ok((grammar, derivations))
}

/// Things, numbered in the order of their first appearance.
#[derive(Debug)]
struct Numbered<T> {
    list: Vec<T>,
    places: HashMap<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { list: Vec::new(), places: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    fn len(&self) -> usize {
        self.list.len()
    }

    fn place(&mut self, thing: T) -> u32 {
        if let Some(&at) = self.places.get(&thing) {
            return at;
        }
        let at = self.list.len() as u32;
        self.list.push(thing.clone());
        self.places.insert(thing, at);
        at
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Symbol {
    Phrase(u32),
    Tag(u32),
    Between(u32),
}

/// A rule of a tree.
#[derive(Debug, Clone, Copy)]
enum Seen {
    Root(u32),
    Unary(u32),
    Binary(u32),
}

/// What of a tree is still to be read.
enum Item {
    /// A node.
    Node(usize, Symbol),
    /// The children of a phrase from the second one on, which have this symbol between.
    Rest { phrase: Symbol, children: Vec<(usize, Symbol)>, at: usize, between: Symbol },
}

#[derive(Debug, Default)]
struct Reader {
    shape: Shape,
    /// By label, and the label above.
    phrases: Numbered<(u32, u32)>,
    tags: Numbered<u32>,
    betweens: Numbered<(Symbol, Vec<Symbol>)>,
    roots: Numbered<Symbol>,
    unary: Numbered<(Symbol, Symbol)>,
    binary: Numbered<(Symbol, Symbol, Symbol)>,
    /// The longest row of unary rules.
    longest: usize,
}

impl Reader {
    fn symbol(&mut self, tree: &Tree, node: usize, above: u32) -> Symbol {
        let label = tree.nodes()[node].label;
        if tree.is_tag(node) {
            return Symbol::Tag(self.tags.place(label));
        }
        let above = if self.shape.parent_annotation { above } else { Dictionary::NONE };
        Symbol::Phrase(self.phrases.place((label, above)))
    }

    /// The node that counts in the place of `node`: further down a row of only children with the same symbol.
    fn innermost(&mut self, tree: &Tree, node: usize, above: u32) -> (usize, Symbol) {
        let symbol = self.symbol(tree, node, above);
        let (mut found, mut at) = (node, node);
        while !tree.is_tag(at) {
            let mut children = tree.children(at);
            let (Some(child), None) = (children.next(), children.next()) else { break };
            let label = tree.nodes()[at].label;
            if !tree.is_tag(child) && self.symbol(tree, child, label) == symbol {
                found = child;
            }
            at = child;
        }
        (found, symbol)
    }

    fn tree(&mut self, tree: &Tree) -> Vec<Seen> {
        let (root, symbol) = self.innermost(tree, 0, Dictionary::NONE);
        let mut rules = vec![Seen::Root(self.roots.place(symbol))];
        let mut items = vec![Item::Node(root, symbol)];
        let mut row = 0;
        while let Some(item) = items.pop() {
            let (phrase, parent, children, at) = match item {
                Item::Node(node, _) if tree.is_tag(node) => {
                    row = 0;
                    continue;
                }
                Item::Node(node, symbol) => {
                    let label = tree.nodes()[node].label;
                    let nodes: Vec<usize> = tree.children(node).collect();
                    let children: Vec<_> = nodes.into_iter().map(|child| self.innermost(tree, child, label)).collect();
                    if let [(child, below)] = children[..] {
                        rules.push(Seen::Unary(self.unary.place((symbol, below))));
                        row += 1;
                        self.longest = self.longest.max(row);
                        items.push(Item::Node(child, below));
                        continue;
                    }
                    row = 0;
                    (symbol, symbol, children, 0)
                }
                Item::Rest { phrase, children, at, between } => (phrase, between, children, at),
            };
            let (left, left_symbol) = children[at];
            if children.len() - at == 2 {
                let (right, right_symbol) = children[at + 1];
                rules.push(Seen::Binary(self.binary.place((parent, left_symbol, right_symbol))));
                items.push(Item::Node(right, right_symbol));
            } else {
                let between = self.between(phrase, &children, at + 1);
                rules.push(Seen::Binary(self.binary.place((parent, left_symbol, between))));
                items.push(Item::Rest { phrase, children, at: at + 1, between });
            }
            items.push(Item::Node(left, left_symbol));
        }
        rules
    }

    /// The symbol between for the children from `at` on.
    fn between(&mut self, phrase: Symbol, children: &[(usize, Symbol)], at: usize) -> Symbol {
        let context = match self.shape.markov {
            None => &children[at..],
            Some(order) => &children[at.saturating_sub(order)..at],
        };
        Symbol::Between(self.betweens.place((phrase, context.iter().map(|child| child.1).collect())))
    }
}

/// The tree of a derivation, over these words; labels are added to `labels` as need be. None where the rules do not follow
/// upon each other, or are of another number of words.
pub fn tree(grammar: &Grammar, derivation: &Derivation, words: &[u32], labels: &mut Dictionary) -> Option<Tree> {
    let (phrases, tags) = (grammar.phrases(), grammar.tags());
    let Parts { symbols, labels: own, .. } = grammar.parts();
    let mut tree = Tree { words: words.to_vec(), ..Tree::default() };
    for (symbol, span) in grammar.nodes(derivation)? {
        let label = match symbol {
            phrase if phrase < phrases => &own[phrase as usize],
            tag if tags.contains(&tag) => &symbols[tag as usize],
            _ => continue,
        };
        let label = labels.intern(label.as_bytes())?;
        tree.nodes.push(Node { label, end: 0, from: span.start as u32, to: span.end as u32 });
    }
    // Descendants begin before a node's words end, and who comes after it does not.
    let mut open: Vec<usize> = Vec::new();
    for at in 0..=tree.nodes.len() {
        let begin = tree.nodes.get(at).map_or(u32::MAX, |node| node.from);
        while let Some(last) = open.pop_if(|last| tree.nodes[*last].to <= begin) {
            tree.nodes[last].end = at as u32;
        }
        open.push(at);
    }
    (tree.nodes.first()?.to as usize == words.len()).then_some(tree)
}
