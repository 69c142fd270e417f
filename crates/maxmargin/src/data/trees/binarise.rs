//! From rules with many children to rules with two.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

/// In which order the children of a phrase are split off, until two are left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Binarise {
    /// From left to right.
    #[default]
    Right,
    /// Those left of the head, from the outermost one on, then those right of it, from the outermost one on. Heads are those of
    /// Collins' table for the Penn Treebank; of other labels the last child that is no punctuation.
    Head,
}

/// Things, numbered in the order of their first appearance.
#[derive(Debug)]
pub(super) struct Numbered<T> {
    pub(super) list: Vec<T>,
    places: HashMap<T, u32>,
}

impl<T> Default for Numbered<T> {
    fn default() -> Self {
        Self { list: Vec::new(), places: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Numbered<T> {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn place(&mut self, thing: T) -> u32 {
        if let Some(&at) = self.places.get(&thing) {
            return at;
        }
        let at = self.list.len() as u32;
        self.list.push(thing.clone());
        self.places.insert(thing, at);
        at
    }
}

/// A symbol of the grammar, by its number among those of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Symbol {
    Phrase(u32),
    Tag(u32),
    Between(u32),
}

/// On which side of the rest a child is split off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Left,
    Right,
}

/// What a symbol between is named by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Between {
    /// All children that are still to come: the next one that is split off, and the rest, which is a symbol between or the
    /// last child. (To list them would take the square of their number.)
    Exact { phrase: Symbol, side: Side, child: Symbol, rest: Symbol },
    /// The children that were split off last on this side, the first of them first, and the head where children are split off
    /// around it.
    Markov { phrase: Symbol, head: Option<Symbol>, side: Side, last: Vec<Symbol> },
}

/// A rule with two children: parent, left and right child.
pub(super) type Two = (Symbol, Symbol, Symbol);

/// The children of a phrase in the order in which they are split off.
#[derive(Debug, Clone, Copy)]
pub(super) struct Order {
    children: usize,
    /// So many children are split off on the left.
    pub(super) lefts: usize,
}

impl Order {
    /// For at least two children.
    pub(super) fn new(children: usize, head: usize) -> Self {
        Self { children, lefts: head.min(children - 2) }
    }

    /// The two children that are left at the end: this one, and the next.
    pub(super) fn pair(self) -> usize {
        self.lefts
    }

    fn splits(self) -> usize {
        self.children - 2
    }

    fn split(self, at: usize) -> (Side, usize) {
        if at < self.lefts { (Side::Left, at) } else { (Side::Right, self.children - 1 - (at - self.lefts)) }
    }
}

/// Makes rules with two children.
#[derive(Debug, Default)]
pub(super) struct Binariser {
    pub(super) binarise: Binarise,
    pub(super) markov: Option<usize>,
    pub(super) betweens: Numbered<Between>,
}

impl Binariser {
    /// The rules of a phrase with at least two children, from the top.
    pub(super) fn rules(&mut self, phrase: Symbol, children: &[Symbol], head: usize, rules: &mut Vec<Two>) {
        let order = Order::new(children.len(), head);
        let parents = match self.markov {
            None => self.exact(phrase, children, order),
            Some(last) => self.markov(phrase, children, order, children[head], last),
        };
        rules.clear();
        for at in 0..order.splits() {
            let (side, child) = order.split(at);
            rules.push(match side {
                Side::Left => (parents[at], children[child], parents[at + 1]),
                Side::Right => (parents[at], parents[at + 1], children[child]),
            });
        }
        let pair = order.pair();
        rules.push((parents[order.splits()], children[pair], children[pair + 1]));
    }

    /// The phrase and the symbols between, from the top; each tells all that is below it.
    fn exact(&mut self, phrase: Symbol, children: &[Symbol], order: Order) -> Vec<Symbol> {
        let pair = order.pair();
        let mut parents = vec![phrase; order.splits() + 1];
        let (mut side, mut child, mut rest) = (Side::Left, children[pair], children[pair + 1]);
        for at in (0..order.splits()).rev() {
            let between = Between::Exact { phrase, side, child, rest };
            parents[at + 1] = Symbol::Between(self.betweens.place(between));
            let split = order.split(at);
            (side, child, rest) = (split.0, children[split.1], parents[at + 1]);
        }
        parents
    }

    /// The same, where each tells the last children only.
    fn markov(&mut self, phrase: Symbol, children: &[Symbol], order: Order, head: Symbol, count: usize) -> Vec<Symbol> {
        let head = (self.binarise == Binarise::Head).then_some(head);
        let mut parents = vec![phrase];
        for at in 0..order.splits() {
            let (side, child) = order.split(at);
            let last = match side {
                Side::Left => children[(child + 1).saturating_sub(count)..=child].to_vec(),
                Side::Right => {
                    children[child..child.saturating_add(count).min(children.len())].iter().rev().copied().collect()
                }
            };
            parents.push(Symbol::Between(self.betweens.place(Between::Markov { phrase, head, side, last })));
        }
        parents
    }

    /// The name of a symbol between; `name` tells those of phrases and tags.
    pub(super) fn name(&self, between: u32, name: impl Fn(Symbol) -> String) -> String {
        /// So many children are named at most.
        const MOST: usize = 60;
        let (mut lefts, mut rights, mut at) = (Vec::new(), Vec::new(), between);
        loop {
            match &self.betweens.list[at as usize] {
                Between::Markov { phrase, head, side, last } => {
                    let last = last.iter().map(|&child| name(child)).collect::<Vec<_>>().join("_");
                    let side = if *side == Side::Left { '<' } else { '>' };
                    let head = head.map_or(String::new(), |head| format!("{}{side}", name(head)));
                    return format!("{}|{head}{last}", name(*phrase));
                }
                Between::Exact { phrase, side, child, rest } => {
                    if *side == Side::Left { &mut lefts } else { &mut rights }.push(name(*child));
                    match rest {
                        Symbol::Between(rest) if lefts.len() + rights.len() < MOST => {
                            at = *rest;
                            continue;
                        }
                        // Its number tells it from others that begin and end like it.
                        Symbol::Between(_) => lefts.push(format!("..{between}..")),
                        last => lefts.push(name(*last)),
                    }
                    lefts.extend(rights.into_iter().rev());
                    return format!("{}|{}", name(*phrase), lefts.join("_"));
                }
            }
        }
    }
}
