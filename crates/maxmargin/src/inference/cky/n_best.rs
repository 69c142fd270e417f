//! The n best derivations (Huang and Chiang 2005, algorithm 3: each symbol over a span is asked for its next best derivation
//! only when somebody needs it).

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use super::{Chart, Rules, Scores, Step};

/// A way to derive a symbol over a span: a chain, or none, then a word, or a binary rule and a split with the ranks of the
/// derivations of its children.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    score: f64,
    /// Ways of the same score come in the order in which they were found.
    number: usize,
    chain: Option<u32>,
    bottom: u32,
    binary: Option<(u32, usize)>,
    ranks: [usize; 2],
}

impl Eq for Way {}

impl Ord for Way {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Way {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// What is known of a symbol over a span: its best derivations in order, and what may come next.
#[derive(Debug, Default)]
struct Item {
    found: Vec<Way>,
    next: BinaryHeap<Way>,
    number: usize,
}

type Key = (usize, usize, u32);

struct Search<'c> {
    chart: &'c Chart,
    rules: &'c Rules,
    scores: &'c Scores,
    items: HashMap<Key, Item>,
}

impl Chart {
    /// After [`best`](Self::best): the n derivations with the largest scores, the best first; fewer where there are no more.
    pub fn n_best(&self, rules: &Rules, scores: &Scores, n: usize) -> Vec<(f64, Vec<Step>)> {
        let mut search = Search { chart: self, rules, scores, items: HashMap::new() };
        let cell = self.cell(0, self.len()).iter().zip(&scores.root);
        // The symbols at the root, each with the rank of its next derivation.
        let mut roots: Vec<(f64, u32, usize)> = (0..)
            .zip(cell)
            .filter(|(_, (score, root))| *score + **root > f64::NEG_INFINITY)
            .map(|(symbol, (score, root))| (score + root, symbol, 0))
            .collect();
        let mut found = Vec::new();
        while found.len() < n {
            let best = (0..roots.len()).reduce(|a, b| if roots[b].0 > roots[a].0 { b } else { a });
            let Some(best) = best else { break };
            let (score, symbol, rank) = roots[best];
            let mut steps = vec![Step::Root(symbol)];
            search.tell((0, self.len(), symbol), rank, &mut steps);
            found.push((score, steps));
            match search.nth((0, self.len(), symbol), rank + 1) {
                Some(way) => roots[best] = (way.score + scores.root[symbol as usize], symbol, rank + 1),
                None => drop(roots.remove(best)),
            }
        }
        found
    }
}

impl Search<'_> {
    /// The derivation of that rank, if there are so many.
    fn nth(&mut self, key: Key, rank: usize) -> Option<Way> {
        if !self.items.contains_key(&key) {
            let item = self.start(key);
            self.items.insert(key, item);
        }
        while self.items[&key].found.len() <= rank {
            let way = self.items.get_mut(&key)?.next.pop()?;
            let later = self.later(key, way);
            let item = self.items.get_mut(&key)?;
            item.found.push(way);
            for mut way in later {
                way.number = item.number;
                item.number += 1;
                item.next.push(way);
            }
        }
        Some(self.items[&key].found[rank])
    }

    /// All ways with the best derivations below.
    fn start(&self, (i, j, symbol): Key) -> Item {
        let Self { chart, rules, scores, .. } = *self;
        let mut item = Item::default();
        for chain in std::iter::once(None).chain(rules.chains_to(symbol).map(Some)) {
            let bottom = chain.map_or(symbol, |chain| rules.chains()[chain as usize].bottom);
            let mut add = |inner: f64, binary: Option<(u32, usize)>| {
                let score = chart.over_chain(rules, scores, (i, j), chain, inner);
                if score > f64::NEG_INFINITY {
                    item.next.push(Way { score, number: item.number, chain, bottom, binary, ranks: [0; 2] });
                    item.number += 1;
                }
            };
            if j - i == 1 {
                add(chart.leaf[i * chart.symbols + bottom as usize], None);
            }
            for k in chart.splits(i, j) {
                for &entry in rules.with_parent(bottom) {
                    let (left, right) = rules.children(entry as usize);
                    let sides = (chart.cell(i, k)[left as usize], chart.cell(k, j)[right as usize]);
                    let inner = sides.0 + chart.binary[entry as usize] + sides.1 + chart.node_of(i, j, bottom);
                    add(inner, Some((entry, k)));
                }
            }
        }
        item
    }

    /// The ways that come after one: the next derivation of the right child, and of the left one where the right one's is the
    /// best. So each pair of ranks is met once.
    fn later(&mut self, (i, j, _): Key, way: Way) -> Vec<Way> {
        let Some((entry, k)) = way.binary else { return Vec::new() };
        let (left, right) = self.rules.children(entry as usize);
        let mut found = Vec::new();
        for side in 0..2 {
            if side == 0 && way.ranks[1] > 0 {
                continue;
            }
            let key = if side == 0 { (i, k, left) } else { (k, j, right) };
            let (before, after) = (self.nth(key, way.ranks[side]), self.nth(key, way.ranks[side] + 1));
            if let (Some(before), Some(after)) = (before, after) {
                let mut ranks = way.ranks;
                ranks[side] += 1;
                found.push(Way { score: way.score + (after.score - before.score), ranks, ..way });
            }
        }
        found
    }

    /// Tells the derivation of that rank.
    fn tell(&mut self, key: Key, rank: usize, steps: &mut Vec<Step>) {
        let mut open = vec![(key, rank)];
        while let Some(((i, j, symbol), rank)) = open.pop() {
            let Some(way) = self.nth((i, j, symbol), rank) else { continue };
            steps.extend(self.rules.unrolled(way.chain).map(|link| Step::Unary(link.rule)));
            match way.binary {
                None => steps.push(Step::Word(i as u32, way.bottom)),
                Some((entry, k)) => {
                    steps.push(Step::Binary(self.rules.order()[entry as usize], k as u32));
                    let (left, right) = self.rules.children(entry as usize);
                    open.extend([((k, j, right), way.ranks[1]), ((i, k, left), way.ranks[0])]);
                }
            }
        }
    }
}
