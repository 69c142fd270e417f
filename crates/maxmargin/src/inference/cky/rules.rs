//! The rules of a grammar, in the order in which the decoder wants them.

use std::collections::HashMap;
use std::ops::Range;

/// A binary rule, seen from its left child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) right: u32,
    pub(super) parent: u32,
}

/// Entries with the same left child and parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) parent: u32,
    /// The entry after its last one.
    pub(super) end: u32,
}

/// Fewer entries are better looked at one by one.
pub(super) const RUN: usize = 4;

/// A chain of unary rules, one rule longer than the chain before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    /// Its topmost rule, and that rule's parent.
    pub(super) rule: u32,
    pub(super) top: u32,
    /// The chain below that rule; none where it is the only one.
    pub(super) before: Option<u32>,
    /// The symbol under all of it.
    pub(super) bottom: u32,
}

/// The rules of a grammar.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    phrases: usize,
    /// Binary rules by left child: those of symbol b are `starts[b]..starts[b + 1]`, at first those in runs.
    starts: Vec<u32>,
    entries: Vec<Entry>,
    /// The right children of the entries once more, close together.
    rights: Vec<u32>,
    /// Entries with the same left child and parent, at least [`RUN`] of them: those of symbol b are
    /// `run_starts[b]..run_starts[b + 1]`.
    run_starts: Vec<u32>,
    runs: Vec<Run>,
    /// The number of each entry's rule, and the entry of each rule.
    order: Vec<u32>,
    places: Vec<u32>,
    left_of: Vec<u32>,
    /// Entries by parent.
    parent_starts: Vec<u32>,
    by_parent: Vec<u32>,
    /// Symbols that are left children.
    lefts: Vec<u32>,
    unary_children: Vec<u32>,
    chains: Vec<Chain>,
    /// Chains by the symbol at their top.
    top_starts: Vec<u32>,
    by_top: Vec<u32>,
    /// The symbols at either end of chains, and the place of each symbol among them.
    chained: Vec<u32>,
    chained_at: Vec<Option<u32>>,
}

/// Why rules make no grammar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRules {
    /// A symbol that is none.
    #[error("a rule with symbol {0}, but there are {1}")]
    Symbol(u32, usize),
    /// A unary rule over which no phrase stands.
    #[error("unary rule {0}: its parent is no phrase")]
    Unary(usize),
    /// Unary rules that go together in too many ways.
    #[error("chains of up to {0} unary rules go together in more than {1} ways; leave out rare rules (--min-count)")]
    Chains(usize, usize),
}

/// More chains than so many are refused.
const MOST_CHAINS: usize = 100_000;

impl Rules {
    /// Rules over `symbols` symbols, the first `phrases` of them phrases. `binary`: parent, left and right child of each rule;
    /// `unary`: parent, a phrase, and child. A derivation may have up to `longest` unary rules in a row.
    pub fn new(
        symbols: usize,
        phrases: usize,
        binary: &[(u32, u32, u32)],
        unary: &[(u32, u32)],
        longest: usize,
    ) -> Result<Self, BadRules> {
        let all = binary.iter().flat_map(|&(a, b, c)| [a, b, c]).chain(unary.iter().flat_map(|&(a, b)| [a, b]));
        if let Some(symbol) = all.max().filter(|&symbol| symbol as usize >= symbols) {
            return Err(BadRules::Symbol(symbol, symbols));
        }
        if let Some(rule) = unary.iter().position(|rule| rule.0 as usize >= phrases) {
            return Err(BadRules::Unary(rule));
        }
        let mut sizes = HashMap::<(u32, u32), usize>::new();
        for &(parent, left, _) in binary {
            *sizes.entry((left, parent)).or_default() += 1;
        }
        let is_run = |left: u32, parent: u32| sizes[&(left, parent)] >= RUN;
        let mut order: Vec<u32> = (0..binary.len() as u32).collect();
        order.sort_by_key(|&rule| {
            let (parent, left, right) = binary[rule as usize];
            (left, !is_run(left, parent), parent, right)
        });
        let rule = |at: &u32| binary[*at as usize];
        let entries: Vec<Entry> = order.iter().map(rule).map(|(parent, _, right)| Entry { right, parent }).collect();
        let left_of: Vec<u32> = order.iter().map(rule).map(|(_, left, _)| left).collect();
        let (starts, _) = grouped(symbols, &left_of);
        let rights = entries.iter().map(|entry| entry.right).collect();
        let mut runs: Vec<(u32, Run)> = Vec::new();
        for ((end, entry), &left) in (1..).zip(&entries).zip(&left_of).filter(|((_, e), left)| is_run(**left, e.parent))
        {
            match runs.last_mut() {
                Some((l, run)) if (*l, run.parent) == (left, entry.parent) => run.end = end,
                _ => runs.push((left, Run { parent: entry.parent, end })),
            }
        }
        let (lefts_of_runs, runs): (Vec<u32>, Vec<Run>) = runs.into_iter().unzip();
        let (run_starts, _) = grouped(symbols, &lefts_of_runs);
        let parents: Vec<u32> = entries.iter().map(|entry| entry.parent).collect();
        let (parent_starts, by_parent) = grouped(symbols, &parents);
        let lefts = (0..symbols as u32).filter(|&b| starts[b as usize] < starts[b as usize + 1]).collect();
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &rule)| places[rule as usize] = at as u32);
        let unary_children = unary.iter().map(|rule| rule.1).collect();
        let chains = chains(symbols, unary, longest)?;
        let tops: Vec<u32> = chains.iter().map(|chain| chain.top).collect();
        let (top_starts, by_top) = grouped(symbols, &tops);
        let mut ends: Vec<u32> = chains.iter().flat_map(|chain| [chain.top, chain.bottom]).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut chained_at = vec![None; symbols];
        (0..).zip(&ends).for_each(|(at, &symbol)| chained_at[symbol as usize] = Some(at));
        Ok(Self {
            phrases,
            starts,
            entries,
            rights,
            run_starts,
            runs,
            order,
            places,
            left_of,
            parent_starts,
            by_parent,
            lefts,
            unary_children,
            chains,
            top_starts,
            by_top,
            chained: ends,
            chained_at,
        })
    }

    /// Number of symbols.
    pub fn symbols(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// Number of phrases.
    pub fn phrases(&self) -> usize {
        self.phrases
    }

    /// The child of a unary rule.
    pub fn unary_child(&self, rule: u32) -> u32 {
        self.unary_children[rule as usize]
    }

    pub(super) fn order(&self) -> &[u32] {
        &self.order
    }

    /// The entries of the rules with left child b.
    #[inline]
    pub(super) fn with_left(&self, b: u32) -> Range<usize> {
        self.starts[b as usize] as usize..self.starts[b as usize + 1] as usize
    }

    /// The runs among them, which come first.
    #[inline]
    pub(super) fn runs(&self, b: u32) -> &[Run] {
        &self.runs[self.run_starts[b as usize] as usize..self.run_starts[b as usize + 1] as usize]
    }

    /// The right children of some entries.
    #[inline]
    pub(super) fn rights(&self, range: Range<usize>) -> &[u32] {
        &self.rights[range]
    }

    #[inline]
    pub(super) fn entries(&self, range: Range<usize>) -> &[Entry] {
        &self.entries[range]
    }

    pub(super) fn children(&self, entry: usize) -> (u32, u32) {
        (self.left_of[entry], self.entries[entry].right)
    }

    /// The entries of the rules with parent a.
    pub(super) fn with_parent(&self, a: u32) -> &[u32] {
        &self.by_parent[self.parent_starts[a as usize] as usize..self.parent_starts[a as usize + 1] as usize]
    }

    pub(super) fn lefts(&self) -> &[u32] {
        &self.lefts
    }

    /// Number of symbols at either end of chains.
    pub(super) fn chained(&self) -> usize {
        self.chained.len()
    }

    /// These symbols.
    pub(super) fn chained_symbols(&self) -> &[u32] {
        &self.chained
    }

    /// The place of a symbol among those; None where it is none of them.
    pub(super) fn chained_at(&self, symbol: u32) -> Option<usize> {
        self.chained_at[symbol as usize].map(|at| at as usize)
    }

    pub(super) fn chains(&self) -> &[Chain] {
        &self.chains
    }

    /// The chains with symbol a at the top.
    pub(super) fn chains_to(&self, a: u32) -> impl Iterator<Item = u32> + '_ {
        self.by_top[self.top_starts[a as usize] as usize..self.top_starts[a as usize + 1] as usize].iter().copied()
    }
}

impl Rules {
    /// The entry of a binary rule.
    pub(super) fn entry(&self, rule: u32) -> usize {
        self.places[rule as usize] as usize
    }

    /// A chain, and what is left of it below each of its rules, from the top down.
    pub(super) fn unrolled(&self, chain: Option<u32>) -> impl Iterator<Item = Chain> + '_ {
        let at = |chain: u32| self.chains[chain as usize];
        std::iter::successors(chain.map(at), move |chain| chain.before.map(at))
    }
}

/// The places of each key from 0 up to `count`, one key after the other: where each key's begin, and the places.
pub(crate) fn grouped(count: usize, keys: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut starts = vec![0; count + 1];
    for &key in keys {
        starts[key as usize + 1] += 1;
    }
    (0..count).for_each(|key| starts[key + 1] += starts[key]);
    let mut places: Vec<u32> = (0..keys.len() as u32).collect();
    places.sort_by_key(|&at| keys[at as usize]);
    (starts, places)
}

/// All chains of at most `longest` unary rules in which no symbol is there twice, each after the one that it extends.
fn chains(symbols: usize, unary: &[(u32, u32)], longest: usize) -> Result<Vec<Chain>, BadRules> {
    let children: Vec<u32> = unary.iter().map(|rule| rule.1).collect();
    let (starts, by_child) = grouped(symbols, &children);
    let over = |symbol: u32| &by_child[starts[symbol as usize] as usize..starts[symbol as usize + 1] as usize];
    let mut chains: Vec<Chain> = Vec::new();
    let mut begin = 0;
    for length in 1..=longest {
        let end = chains.len();
        if length == 1 {
            for bottom in 0..symbols as u32 {
                let new =
                    over(bottom).iter().map(|&rule| (rule, unary[rule as usize].0)).filter(|(_, top)| *top != bottom);
                chains.extend(new.map(|(rule, top)| Chain { rule, top, before: None, bottom }));
            }
        } else {
            for before in begin..end {
                let Chain { top, bottom, .. } = chains[before];
                for &rule in over(top) {
                    let parent = unary[rule as usize].0;
                    if parent != bottom && !has(&chains, before, parent) {
                        chains.push(Chain { rule, top: parent, before: Some(before as u32), bottom });
                    }
                    if chains.len() > MOST_CHAINS {
                        return Err(BadRules::Chains(longest, MOST_CHAINS));
                    }
                }
            }
        }
        if chains.len() == end {
            break;
        }
        begin = end;
    }
    Ok(chains)
}

/// Is a symbol the parent of one of a chain's rules?
fn has(chains: &[Chain], chain: usize, symbol: u32) -> bool {
    let mut next = Some(chain as u32);
    while let Some(chain) = next.map(|c| chains[c as usize]) {
        if chain.top == symbol {
            return true;
        }
        next = chain.before;
    }
    false
}
