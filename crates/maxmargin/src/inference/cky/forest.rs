//! What derivations above a threshold are made of.
//!
//! From the root down: with `outside[i, j, A]`, the best score of all that is not below A, a rule there is in a derivation that
//! reaches the threshold if and only if `outside + rule + outer of its children` does. All else is left out.

use std::ops::Range;

use super::{Chart, Rules, Scores};

/// No item yet.
pub(super) const NONE: u32 = u32::MAX;

/// A symbol over a span, with all that may be below it.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) symbol: u32,
    pub(super) outside: f64,
    /// The next item of the same span.
    next: u32,
}

/// A span that is reached: places in the lists of ways and inners.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub(super) span: (usize, usize),
    pub(super) ways: Range<usize>,
    pub(super) inners: Range<usize>,
}

/// A chain, or none, from an item down to an inner symbol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub(super) item: u32,
    pub(super) chain: Option<u32>,
    pub(super) inner: u32,
}

/// A symbol over a span with a binary rule, or a word, right below it.
#[derive(Debug, Clone)]
pub(super) struct Inner {
    pub(super) symbol: u32,
    outside: f64,
    pub(super) edges: Range<usize>,
    /// Is it right over a word?
    pub(super) is_leaf: bool,
}

/// A binary rule and a split, with the items of its children.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) entry: u32,
    pub(super) split: u32,
    pub(super) children: [u32; 2],
}

/// All of them, spans before those inside them.
#[derive(Debug, Default)]
pub(super) struct Forest {
    pub(super) items: Vec<Item>,
    pub(super) cells: Vec<Cell>,
    pub(super) ways: Vec<Way>,
    pub(super) inners: Vec<Inner>,
    pub(super) edges: Vec<Edge>,
    /// By place and symbol: the item, or [`NONE`].
    item_at: Vec<u32>,
    /// Where `item_at` is not NONE.
    touched: Vec<usize>,
    /// By place: the first item.
    first: Vec<u32>,
    /// By symbol, within one span: the inner, or NONE.
    inner_at: Vec<u32>,
}

impl Forest {
    /// Finds what the derivations with a score of at least `least` are made of. The chart is full.
    pub(super) fn grow(&mut self, chart: &Chart, rules: &Rules, scores: &Scores, least: f64) {
        self.clear(chart);
        // What cannot be is never good enough.
        let (len, least) = (chart.len(), least.max(f64::MIN));
        for (symbol, (score, root)) in (0..).zip(chart.cell(0, len).iter().zip(&scores.root)) {
            if score + root >= least {
                self.reach(chart, (0, len), symbol, *root);
            }
        }
        for words in (1..=len).rev() {
            for i in 0..=len - words {
                if chart.has(i, i + words) && self.first[chart.place(i, i + words)] != NONE {
                    self.cell(chart, rules, scores, (i, i + words), least);
                }
            }
        }
    }

    fn clear(&mut self, chart: &Chart) {
        for at in self.touched.drain(..) {
            self.item_at[at] = NONE;
        }
        if self.item_at.len() < chart.spans * chart.symbols {
            self.item_at.resize(chart.spans * chart.symbols, NONE);
        }
        self.first.clear();
        self.first.resize(chart.spans, NONE);
        self.inner_at.clear();
        self.inner_at.resize(chart.symbols, NONE);
        self.items.clear();
        self.cells.clear();
        self.ways.clear();
        self.inners.clear();
        self.edges.clear();
    }

    /// The item of a symbol over a span, which can be reached with this score outside.
    fn reach(&mut self, chart: &Chart, (i, j): (usize, usize), symbol: u32, outside: f64) -> u32 {
        let place = chart.place(i, j);
        let at = place * chart.symbols + symbol as usize;
        if self.item_at[at] == NONE {
            self.item_at[at] = self.items.len() as u32;
            self.touched.push(at);
            self.items.push(Item { symbol, outside, next: self.first[place] });
            self.first[place] = self.item_at[at];
        }
        let item = &mut self.items[self.item_at[at] as usize];
        item.outside = item.outside.max(outside);
        self.item_at[at]
    }

    fn cell(&mut self, chart: &Chart, rules: &Rules, scores: &Scores, (i, j): (usize, usize), least: f64) {
        let (first_way, first_inner) = (self.ways.len(), self.inners.len());
        let mut at = self.first[chart.place(i, j)];
        while let Some(item) = self.items.get(at as usize) {
            let Item { symbol, outside, next } = *item;
            self.way(chart, (i, j), Way { item: at, chain: None, inner: NONE }, (symbol, outside), least);
            for chain in rules.chains_to(symbol) {
                let outside = chart.over_chain(rules, scores, (i, j), Some(chain), outside);
                let bottom = rules.chains()[chain as usize].bottom;
                self.way(chart, (i, j), Way { item: at, chain: Some(chain), inner: NONE }, (bottom, outside), least);
            }
            at = next;
        }
        for inner in first_inner..self.inners.len() {
            self.inner_at[self.inners[inner].symbol as usize] = NONE;
            self.edges_of(chart, rules, (i, j), inner, least);
        }
        let (ways, inners) = (first_way..self.ways.len(), first_inner..self.inners.len());
        self.cells.push(Cell { span: (i, j), ways, inners });
    }

    /// Adds a way down to a symbol, where it may be good enough.
    fn way(&mut self, chart: &Chart, (i, j): (usize, usize), way: Way, (bottom, outside): (u32, f64), least: f64) {
        // The table has the best over all chains, which is at least what there is below this one.
        if outside + chart.cell(i, j)[bottom as usize] < least {
            return;
        }
        if self.inner_at[bottom as usize] == NONE {
            self.inner_at[bottom as usize] = self.inners.len() as u32;
            self.inners.push(Inner { symbol: bottom, outside, edges: 0..0, is_leaf: false });
        }
        let inner = self.inner_at[bottom as usize];
        let found = &mut self.inners[inner as usize];
        found.outside = found.outside.max(outside);
        self.ways.push(Way { inner, ..way });
    }

    fn edges_of(&mut self, chart: &Chart, rules: &Rules, (i, j): (usize, usize), inner: usize, least: f64) {
        let Inner { symbol, outside, .. } = self.inners[inner];
        if j - i == 1 {
            self.inners[inner].is_leaf = outside + chart.leaf[i * chart.symbols + symbol as usize] >= least;
            return;
        }
        let begin = self.edges.len();
        let above = outside + chart.node_of(i, j, symbol);
        for split in chart.splits(i, j) {
            let (lefts, rights) = (chart.cell(i, split), chart.cell(split, j));
            for &entry in rules.with_parent(symbol) {
                let (left, right) = rules.children(entry as usize);
                let rule = above + chart.binary[entry as usize];
                let (l, r) = (lefts[left as usize], rights[right as usize]);
                if rule + l + r >= least {
                    let left = self.reach(chart, (i, split), left, rule + r);
                    let right = self.reach(chart, (split, j), right, rule + l);
                    self.edges.push(Edge { entry, split: split as u32, children: [left, right] });
                }
            }
        }
        self.inners[inner].edges = begin..self.edges.len();
    }
}
