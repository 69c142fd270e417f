//! The best derivation by a function of its score and of what it has in common with a truth.
//!
//! A loss such as F1 depends on two counts of the whole tree. Each symbol over a span keeps, for each pair of counts, the best
//! score, as long as no other pair with a larger loss has one as good: the first count raises the loss, the second one lowers
//! it. Only the part of the chart that can reach what is known already is looked at (see [`Forest`]).

use super::forest::{Edge, Forest, Way};
use super::{Chart, Rules, Scores, Step};

/// A bracket: its phrase, and the words from the first one up to the second.
type Bracket = (u32, u32, u32);

/// How the nodes of a derivation are counted.
#[derive(Debug, Clone, Copy)]
pub struct Tally<'t> {
    /// The brackets of the truth, ascending.
    pub truth: &'t [Bracket],
    /// What a phrase adds to the two counts if the truth has it, and if not.
    pub found: (i32, i32),
    /// See `found`.
    pub wrong: (i32, i32),
    /// What a unit of each count has been given in the node scores of the chart.
    pub tilt: (f64, f64),
}

impl Tally<'_> {
    fn of(&self, phrase: u32, (i, j): (usize, usize)) -> (i32, i32) {
        let has = self.truth.binary_search(&(phrase, i as u32, j as u32)).is_ok();
        if has { self.found } else { self.wrong }
    }

    /// What the chart's scores have of the counts.
    fn tilted(&self, counts: (i32, i32)) -> f64 {
        self.tilt.0 * f64::from(counts.0) + self.tilt.1 * f64::from(counts.1)
    }
}

/// What is wanted: the largest value, above that of what is known.
pub struct Wanted<'v> {
    /// The value of a derivation with these counts and this score (without tilt).
    pub value: &'v dyn Fn((i32, i32), f64) -> f64,
    /// The score with tilt that a derivation needs to be better than what is known, where its counts so far are these.
    pub least: &'v dyn Fn((i32, i32)) -> f64,
    /// The value of what is known.
    pub known: f64,
}

/// Counts, the best score with them (without tilt), and where it comes from.
#[derive(Debug, Clone, Copy)]
struct Entry {
    counts: (i32, i32),
    score: f64,
    back: Back,
}

#[derive(Debug, Clone, Copy)]
enum Back {
    Leaf,
    /// An edge and the entries of its children.
    Edge(u32, u32, u32),
    /// A way and the entry of its inner symbol.
    Way(u32, u32),
}

/// A part of the list of entries.
#[derive(Debug, Clone, Copy, Default)]
struct Front {
    from: u32,
    to: u32,
}

/// Where the search works.
#[derive(Debug, Default)]
pub(super) struct Counting {
    forest: Forest,
    entries: Vec<Entry>,
    of_items: Vec<Front>,
    of_inners: Vec<Front>,
    found: Vec<Entry>,
    grid: Vec<Option<(f64, Back)>>,
    limits: Vec<f64>,
    /// Entries that are still to be told, with their spans.
    told: Vec<(u32, (usize, usize))>,
}

impl Chart {
    /// After [`best`](Self::best): the derivation with the largest value, if that is above what is known. Returns the value and
    /// leaves the steps.
    pub fn best_counted(
        &mut self,
        rules: &Rules,
        scores: &Scores,
        tally: &Tally<'_>,
        wanted: &Wanted<'_>,
        steps: &mut Vec<Step>,
    ) -> Option<f64> {
        let mut counting = std::mem::take(&mut self.counting);
        counting.forest.grow(self, rules, scores, (wanted.least)((0, 0)));
        counting.count(self, rules, scores, tally, wanted);
        let mut best = (wanted.known, None);
        let cell = counting.forest.cells.first().filter(|cell| cell.span == (0, self.len()));
        let roots = cell.map_or(0..0, |cell| cell.ways.clone());
        let mut last = None;
        for item in counting.forest.ways[roots].iter().map(|way| way.item as usize) {
            if last == Some(item) {
                continue;
            }
            last = Some(item);
            let symbol = counting.forest.items[item].symbol;
            let front = counting.of_items[item];
            for at in front.from..front.to {
                let entry = counting.entries[at as usize];
                let value = (wanted.value)(entry.counts, entry.score + scores.root[symbol as usize]);
                if value > best.0 {
                    best = (value, Some((symbol, at)));
                }
            }
        }
        let found = best.1.map(|(symbol, at)| {
            steps.clear();
            steps.push(Step::Root(symbol));
            counting.tell(rules, at, self.len(), steps);
            best.0
        });
        self.counting = counting;
        found
    }
}

impl Counting {
    /// The entries of all items, from the words up.
    fn count(&mut self, chart: &Chart, rules: &Rules, scores: &Scores, tally: &Tally<'_>, wanted: &Wanted<'_>) {
        self.entries.clear();
        self.of_items.clear();
        self.of_items.resize(self.forest.items.len(), Front::default());
        self.of_inners.clear();
        self.of_inners.resize(self.forest.inners.len(), Front::default());
        for cell in (0..self.forest.cells.len()).rev() {
            let (i, j) = self.forest.cells[cell].span;
            for inner in self.forest.cells[cell].inners.clone() {
                self.inner(chart, (i, j), inner, tally);
            }
            // The ways of an item stand together.
            let std::ops::Range { start: mut at, end } = self.forest.cells[cell].ways;
            while at < end {
                let item = self.forest.ways[at].item;
                self.found.clear();
                while at < end && self.forest.ways[at].item == item {
                    self.way(chart, rules, scores, (i, j), at as u32, tally);
                    at += 1;
                }
                let outside = self.forest.items[item as usize].outside;
                self.found.retain(|entry| {
                    let with_tilt = entry.score + tally.tilted(entry.counts);
                    with_tilt + outside >= (wanted.least)(entry.counts)
                });
                self.of_items[item as usize] = self.keep();
            }
        }
    }

    /// The entries of an inner symbol.
    fn inner(&mut self, chart: &Chart, (i, j): (usize, usize), inner: usize, tally: &Tally<'_>) {
        let Self { forest, entries, of_items, found, .. } = self;
        let own = &forest.inners[inner];
        found.clear();
        if own.is_leaf {
            let score = chart.leaf[i * chart.symbols + own.symbol as usize];
            found.push(Entry { counts: (0, 0), score, back: Back::Leaf });
        }
        let (own_counts, own_score) = if (own.symbol as usize) < chart.phrases && j - i > 1 {
            let counts = tally.of(own.symbol, (i, j));
            (counts, chart.node_of(i, j, own.symbol) - tally.tilted(counts))
        } else {
            ((0, 0), 0.0)
        };
        for at in own.edges.clone() {
            let Edge { entry, children: [left, right], .. } = forest.edges[at];
            let score = chart.binary[entry as usize] + own_score;
            let (left, right) = (of_items[left as usize], of_items[right as usize]);
            for l in left.from..left.to {
                let a = entries[l as usize];
                for r in right.from..right.to {
                    let b = entries[r as usize];
                    let counts = (a.counts.0 + b.counts.0 + own_counts.0, a.counts.1 + b.counts.1 + own_counts.1);
                    found.push(Entry { counts, score: a.score + b.score + score, back: Back::Edge(at as u32, l, r) });
                }
            }
        }
        self.of_inners[inner] = self.keep();
    }

    /// Adds the entries of an item by one of its ways to those found.
    fn way(
        &mut self,
        chart: &Chart,
        rules: &Rules,
        scores: &Scores,
        (i, j): (usize, usize),
        at: u32,
        tally: &Tally<'_>,
    ) {
        let Way { chain, inner, .. } = self.forest.ways[at as usize];
        let (mut counts, mut score) = ((0, 0), 0.0);
        for link in rules.unrolled(chain) {
            let own = tally.of(link.top, (i, j));
            counts = (counts.0 + own.0, counts.1 + own.1);
            score += scores.unary[link.rule as usize] + chart.node_of(i, j, link.top) - tally.tilted(own);
        }
        let front = self.of_inners[inner as usize];
        for below in front.from..front.to {
            let entry = self.entries[below as usize];
            let counts = (entry.counts.0 + counts.0, entry.counts.1 + counts.1);
            self.found.push(Entry { counts, score: entry.score + score, back: Back::Way(at, below) });
        }
    }

    /// Keeps those found that no other one makes needless.
    fn keep(&mut self) -> Front {
        let Self { entries, found, grid, limits, .. } = self;
        let from = entries.len() as u32;
        let bounds = |of: fn(&Entry) -> i32| (found.iter().map(of).min(), found.iter().map(of).max());
        let ((Some(p0), Some(p1)), (Some(m0), Some(m1))) = (bounds(|e| e.counts.0), bounds(|e| e.counts.1)) else {
            return Front { from, to: from };
        };
        let width = (m1 - m0 + 1) as usize;
        grid.clear();
        grid.resize(width * (p1 - p0 + 1) as usize, None);
        for entry in found.iter() {
            let at = (entry.counts.0 - p0) as usize * width + (entry.counts.1 - m0) as usize;
            if grid[at].is_none_or(|(score, _)| entry.score > score) {
                grid[at] = Some((entry.score, entry.back));
            }
        }
        // The best score of those with at least this first count and at most that second one.
        limits.clear();
        limits.resize(width, f64::NEG_INFINITY);
        for (up, row) in grid.chunks(width).enumerate().rev() {
            let p = p0 + up as i32;
            let mut best = f64::NEG_INFINITY;
            for ((m, cell), limit) in (m0..).zip(row).zip(limits.iter_mut()) {
                best = best.max(*limit);
                if let Some((score, back)) = *cell
                    && score > best
                {
                    best = score;
                    entries.push(Entry { counts: (p, m), score, back });
                }
                *limit = best;
            }
        }
        Front { from, to: entries.len() as u32 }
    }

    /// Tells how an entry of an item came about.
    fn tell(&mut self, rules: &Rules, entry: u32, len: usize, steps: &mut Vec<Step>) {
        let Self { forest, entries, told, .. } = self;
        told.clear();
        told.push((entry, (0, len)));
        while let Some((at, (i, j))) = told.pop() {
            let Back::Way(way, below) = entries[at as usize].back else { continue };
            let Way { chain, inner, .. } = forest.ways[way as usize];
            steps.extend(rules.unrolled(chain).map(|link| Step::Unary(link.rule)));
            match entries[below as usize].back {
                Back::Edge(edge, left, right) => {
                    let Edge { entry, split, .. } = forest.edges[edge as usize];
                    steps.push(Step::Binary(rules.order()[entry as usize], split));
                    told.push((right, (split as usize, j)));
                    told.push((left, (i, split as usize)));
                }
                Back::Leaf | Back::Way(..) => {
                    steps.push(Step::Word(i as u32, forest.inners[inner as usize].symbol));
                }
            }
        }
    }
}
