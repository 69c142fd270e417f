//! The best derivation of a sentence by a weighted context-free grammar of unary and binary rules (Cocke, Kasami, Younger).
//!
//! ```text
//! inner[i, j, A] = node[i, j, A] + max over A -> B C, i < k < j  of  outer[i, k, B] + binary[A -> B C] + outer[k, j, C]
//! outer[i, j, A] = max over chains A -> .. -> B of unary rules   of  inner[i, j, B] + unary scores and node scores on the way
//! ```
//!
//! A chain has no symbol twice: whatever the scores, no answer goes in circles. Symbols are numbered so that *phrases*, whose
//! nodes have scores of their own, come first; the others are tags and what binary rules need between. Nothing but `outer` is
//! kept: the way back finds the maxima once more, along the rules of one symbol only.

mod counted;
mod forest;
mod n_best;
mod other;
mod rules;

use std::ops::Range;

use counted::Counting;
use other::Differing;
use rules::RUN;

pub use counted::{Tally, Wanted};
pub use rules::Rules;
pub(crate) use rules::grouped;

/// The scores of rules, in the order of the lists that [`Rules::new`] was given, and of symbols at the root.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scores {
    /// Of binary rules.
    pub binary: Vec<f64>,
    /// Of unary rules.
    pub unary: Vec<f64>,
    /// Of each symbol at the root; minus infinity where it cannot stand there.
    pub root: Vec<f64>,
}

/// One rule of a derivation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The symbol at the root.
    Root(u32),
    /// A unary rule.
    Unary(u32),
    /// A binary rule, and where its right child begins.
    Binary(u32, u32),
    /// A word, and the symbol right over it.
    Word(u32, u32),
}

/// The tables of one sentence. Made once and filled again and again: a warm chart allocates nothing.
#[derive(Debug, Default)]
pub struct Chart {
    len: usize,
    symbols: usize,
    phrases: usize,
    /// The place of each span among those that there are, or [`NOWHERE`].
    places: Vec<u32>,
    spans: usize,
    /// By span, phrase.
    node: Vec<f64>,
    /// By word, symbol: scores of the symbols that can stand over it, minus infinity for the others.
    leaf: Vec<f64>,
    /// By span, symbol.
    outer: Vec<f64>,
    /// By span, symbol at an end of chains: `inner`.
    under: Vec<f64>,
    /// By span: the symbols with a score that some rule has as its left child.
    lefts: Vec<u32>,
    left_ends: Vec<usize>,
    /// Scores of binary rules in the order of [`Rules`], and of chains that end at one span.
    binary: Vec<f64>,
    chains: Vec<f64>,
    inner: Vec<f64>,
    /// Spans whose symbols are still to be told.
    open: Vec<(usize, usize, u32)>,
    differing: Differing,
    counting: Counting,
}

/// The place of a span that is left out.
const NOWHERE: u32 = u32::MAX;

/// The number of the span from i to j: by their ends, so that those of the words before come first.
#[inline]
fn span(i: usize, j: usize) -> usize {
    j * (j - 1) / 2 + i
}

/// The best of rules with the same parent. Several maxima at a time, since one alone would wait for itself.
#[inline]
fn best_of_run(rights: &[u32], scores: &[f64], right: &[f64]) -> f64 {
    let larger = |a: f64, b: f64| if b > a { b } else { a };
    let mut best = [f64::NEG_INFINITY; RUN];
    let (rights, scores) = (rights.chunks(RUN), scores.chunks(RUN));
    for (rights, scores) in rights.zip(scores) {
        for ((best, &c), w) in best.iter_mut().zip(rights).zip(scores) {
            *best = larger(*best, w + right[c as usize]);
        }
    }
    larger(larger(best[0], best[1]), larger(best[2], best[3]))
}

impl Chart {
    /// Bytes that a sentence of `len` words takes; none where that is beyond counting.
    pub fn bytes(rules: &Rules, len: usize, max_span: Option<usize>) -> Option<usize> {
        let all = len.checked_mul(len.checked_add(1)?)? / 2;
        // Those of at most that many words, and those that begin the sentence or end it.
        let spans = max_span.map_or(all, |most| all.min(len.saturating_mul(most.saturating_add(2))));
        let numbers = spans.checked_mul(rules.symbols() + rules.phrases() + rules.chained())?;
        numbers
            .checked_add(len.checked_mul(rules.symbols())?)?
            .checked_mul(8)?
            .checked_add(spans.checked_mul(4 * rules.lefts().len())?)?
            .checked_add(all.checked_mul(4)?)
    }

    /// Room for `len` words. Node scores are 0 then, and no symbol stands over a word. With `max_span` there are spans of at
    /// most that many words only, and those that begin the sentence or end it.
    ///
    /// # Panics
    /// If there is no word.
    pub fn resize(&mut self, rules: &Rules, len: usize, max_span: Option<usize>) {
        assert!(len > 0, "a sentence of at least one word");
        (self.len, self.symbols, self.phrases) = (len, rules.symbols(), rules.phrases());
        self.places.clear();
        self.spans = 0;
        for j in 1..=len {
            for i in 0..j {
                let is_there = i == 0 || j == len || j - i == 1 || max_span.is_none_or(|most| j - i <= most);
                self.places.push(if is_there { self.spans as u32 } else { NOWHERE });
                self.spans += usize::from(is_there);
            }
        }
        self.node.clear();
        self.node.resize(self.spans * self.phrases, 0.0);
        self.leaf.clear();
        self.leaf.resize(len * self.symbols, f64::NEG_INFINITY);
    }

    /// Number of words.
    pub fn len(&self) -> usize {
        self.len
    }

    /// No word?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Is there a span from i to j?
    #[inline]
    pub fn has(&self, i: usize, j: usize) -> bool {
        self.places[span(i, j)] != NOWHERE
    }

    /// The place of a span that there is.
    #[inline]
    fn place(&self, i: usize, j: usize) -> usize {
        self.places[span(i, j)] as usize
    }

    /// The scores of phrases over the words from i up to j, a span that there is, to be changed.
    pub fn node_mut(&mut self, i: usize, j: usize) -> &mut [f64] {
        let at = self.place(i, j);
        &mut self.node[at * self.phrases..][..self.phrases]
    }

    /// Adds to the scores of all phrases over all spans.
    pub fn raise_nodes(&mut self, by: f64) {
        self.node.iter_mut().for_each(|score| *score += by);
    }

    fn node(&self, i: usize, j: usize) -> &[f64] {
        &self.node[self.place(i, j) * self.phrases..][..self.phrases]
    }

    /// The score of a node of one symbol.
    fn node_of(&self, i: usize, j: usize, symbol: u32) -> f64 {
        self.node(i, j).get(symbol as usize).copied().unwrap_or(0.0)
    }

    /// The splits of a span into two that there are.
    fn splits(&self, i: usize, j: usize) -> impl Iterator<Item = usize> + '_ {
        (i + 1..j).filter(move |&k| self.has(i, k) && self.has(k, j))
    }

    /// The scores of symbols right over word i, to be changed.
    pub fn leaf_mut(&mut self, i: usize) -> &mut [f64] {
        &mut self.leaf[i * self.symbols..][..self.symbols]
    }

    fn cell(&self, i: usize, j: usize) -> &[f64] {
        &self.outer[self.place(i, j) * self.symbols..][..self.symbols]
    }

    fn lefts(&self, i: usize, j: usize) -> &[u32] {
        let at = self.place(i, j);
        let start = if at == 0 { 0 } else { self.left_ends[at - 1] };
        &self.lefts[start..self.left_ends[at]]
    }

    /// Finds the derivation with the largest score, from the root on, the left child of a rule before the right one; returns
    /// the score, minus infinity and no steps where there is no derivation.
    pub fn best(&mut self, rules: &Rules, scores: &Scores, steps: &mut Vec<Step>) -> f64 {
        self.fill(rules, scores);
        steps.clear();
        let (mut best, mut symbol) = (f64::NEG_INFINITY, 0);
        for (s, (score, root)) in (0..).zip(self.cell(0, self.len).iter().zip(&scores.root)) {
            let total = score + root;
            if total > best {
                (best, symbol) = (total, s);
            }
        }
        if best > f64::NEG_INFINITY {
            steps.push(Step::Root(symbol));
            self.tell_all(rules, scores, (0, self.len), symbol, steps);
        }
        best
    }

    /// After [`best`](Self::best): how many combinations of span, split and binary rule were tried.
    pub fn applications(&self, rules: &Rules) -> u64 {
        let tried = |i: usize, k: usize| self.lefts(i, k).iter().map(|&b| rules.with_left(b).len() as u64).sum::<u64>();
        let ends = |i: usize, k: usize| (k + 1..=self.len).filter(|&j| self.has(k, j) && self.has(i, j)).count() as u64;
        let lefts = (0..self.len).flat_map(|i| (i + 1..self.len).map(move |k| (i, k))).filter(|&(i, k)| self.has(i, k));
        lefts.map(|(i, k)| tried(i, k) * ends(i, k)).sum()
    }

    fn fill(&mut self, rules: &Rules, scores: &Scores) {
        self.binary.clear();
        self.binary.extend(rules.order().iter().map(|&rule| scores.binary[rule as usize]));
        self.outer.resize(self.spans * self.symbols, 0.0);
        self.under.resize(self.spans * rules.chained(), 0.0);
        self.lefts.clear();
        self.left_ends.clear();
        let mut inner = std::mem::take(&mut self.inner);
        // By ends: all spans that end earlier, and the shorter ones that end here, are done.
        for j in 1..=self.len {
            for i in (0..j).rev() {
                if !self.has(i, j) {
                    continue;
                }
                inner.clear();
                if j - i == 1 {
                    inner.extend_from_slice(&self.leaf[i * self.symbols..][..self.symbols]);
                } else {
                    inner.resize(self.symbols, f64::NEG_INFINITY);
                    self.splits(i, j).for_each(|k| self.split(rules, (i, k, j), &mut inner));
                }
                self.close(rules, scores, (i, j), &mut inner);
            }
            self.note_lefts(rules, j);
        }
        self.inner = inner;
    }

    /// Tries all rules with the left child over i to k and the right one over k to j.
    #[inline]
    fn split(&self, rules: &Rules, (i, k, j): (usize, usize, usize), inner: &mut [f64]) {
        let (left, right) = (self.cell(i, k), self.cell(k, j));
        for &b in self.lefts(i, k) {
            let so_far = left[b as usize];
            let Range { mut start, end } = rules.with_left(b);
            for run in rules.runs(b) {
                let range = start..run.end as usize;
                start = run.end as usize;
                let score = so_far + best_of_run(rules.rights(range.clone()), &self.binary[range], right);
                let best = &mut inner[run.parent as usize];
                *best = if score > *best { score } else { *best };
            }
            for (entry, w) in rules.entries(start..end).iter().zip(&self.binary[start..end]) {
                let score = so_far + (w + right[entry.right as usize]);
                let best = &mut inner[entry.parent as usize];
                *best = if score > *best { score } else { *best };
            }
        }
    }

    /// Adds node scores to `inner`, and puts the best over all chains into the table.
    fn close(&mut self, rules: &Rules, scores: &Scores, (i, j): (usize, usize), inner: &mut [f64]) {
        let mut chains = std::mem::take(&mut self.chains);
        let node = self.node(i, j);
        if j - i > 1 {
            inner.iter_mut().zip(node).for_each(|(score, node)| *score += node);
        }
        chains.clear();
        let (place, symbols) = (self.place(i, j), self.symbols);
        let at = place * symbols;
        self.outer[at..at + symbols].copy_from_slice(inner);
        let under = &mut self.under[place * rules.chained()..][..rules.chained()];
        under.iter_mut().zip(rules.chained_symbols()).for_each(|(score, &symbol)| *score = inner[symbol as usize]);
        for chain in rules.chains() {
            let below = chain.before.map_or(inner[chain.bottom as usize], |c| chains[c as usize]);
            chains.push(below + scores.unary[chain.rule as usize] + self.node(i, j)[chain.top as usize]);
        }
        for (chain, &score) in rules.chains().iter().zip(&chains) {
            let best = &mut self.outer[at + chain.top as usize];
            *best = if score > *best { score } else { *best };
        }
        self.chains = chains;
    }

    /// Lists who can be a left child, for all spans that end at j.
    fn note_lefts(&mut self, rules: &Rules, j: usize) {
        for i in (0..j).filter(|&i| self.places[span(i, j)] != NOWHERE) {
            let at = self.places[span(i, j)] as usize;
            let cell = &self.outer[at * self.symbols..][..self.symbols];
            let can = rules.lefts().iter().filter(|&&b| cell[b as usize] > f64::NEG_INFINITY);
            self.lefts.extend(can);
            self.left_ends.push(self.lefts.len());
        }
    }

    /// After [`best`](Self::best): the phrase with the largest score over a span, and the score; none where there is none but
    /// the one that is not wanted.
    pub fn best_phrase(&self, i: usize, j: usize, unwanted: Option<u32>) -> Option<(u32, f64)> {
        let cell = if self.has(i, j) { &self.cell(i, j)[..self.phrases] } else { &[] };
        let mut best = None;
        for (phrase, &score) in (0..).zip(cell).filter(|(phrase, _)| unwanted != Some(*phrase)) {
            if score > best.map_or(f64::NEG_INFINITY, |best: (u32, f64)| best.1) {
                best = Some((phrase, score));
            }
        }
        best
    }

    /// Tells how a symbol came by its score over a span, down to the words.
    pub(crate) fn tell_all(
        &mut self,
        rules: &Rules,
        scores: &Scores,
        span: (usize, usize),
        symbol: u32,
        steps: &mut Vec<Step>,
    ) {
        self.open.push((span.0, span.1, symbol));
        while let Some((i, j, symbol)) = self.open.pop() {
            let score = self.cell(i, j)[symbol as usize];
            let is_it = |chain: &u32| self.chain_score(rules, scores, (i, j), *chain) == score;
            let is_inner = self.under(rules, (i, j), symbol).is_none_or(|inner| inner == score);
            let chain = if is_inner { None } else { rules.chains_to(symbol).find(is_it) };
            debug_assert!(is_inner || chain.is_some(), "a score comes from somewhere");
            self.tell(rules, (i, j), symbol, chain, steps);
        }
    }

    /// Tells the rules of a chain, and the best way below it; what is then below that is left open.
    fn tell(&mut self, rules: &Rules, (i, j): (usize, usize), top: u32, chain: Option<u32>, steps: &mut Vec<Step>) {
        let bottom = rules.unrolled(chain).map(|chain| (Step::Unary(chain.rule), chain.bottom)).fold(
            top,
            |_, (step, bottom)| {
                steps.push(step);
                bottom
            },
        );
        match self.inner_of(rules, (i, j), bottom).1 {
            None => steps.push(Step::Word(i as u32, bottom)),
            Some((k, entry)) => {
                steps.push(Step::Binary(rules.order()[entry], k as u32));
                let (left, right) = rules.children(entry);
                self.open.extend([(k, j, right), (i, k, left)]);
            }
        }
    }

    /// `inner` of one symbol, and the first split and entry that give it.
    fn inner_of(&self, rules: &Rules, (i, j): (usize, usize), symbol: u32) -> (f64, Option<(usize, usize)>) {
        if j - i == 1 {
            return (self.leaf[i * self.symbols + symbol as usize], None);
        }
        let (mut best, mut from) = (f64::NEG_INFINITY, None);
        for k in self.splits(i, j) {
            for &entry in rules.with_parent(symbol) {
                let entry = entry as usize;
                let (left, right) = rules.children(entry);
                let score = self.cell(i, k)[left as usize] + (self.binary[entry] + self.cell(k, j)[right as usize]);
                if score > best {
                    (best, from) = (score, Some((k, entry)));
                }
            }
        }
        (best + self.node_of(i, j, symbol), from)
    }

    /// `inner` of a symbol at an end of chains; None for others.
    fn under(&self, rules: &Rules, (i, j): (usize, usize), symbol: u32) -> Option<f64> {
        rules.chained_at(symbol).map(|at| self.under[self.place(i, j) * rules.chained() + at])
    }

    fn chain_score(&self, rules: &Rules, scores: &Scores, (i, j): (usize, usize), chain: u32) -> f64 {
        let bottom = rules.chains()[chain as usize].bottom;
        let bottom = self.under(rules, (i, j), bottom).unwrap_or(f64::NEG_INFINITY);
        self.over_chain(rules, scores, (i, j), Some(chain), bottom)
    }

    /// From the score right under a chain to the one over it.
    fn over_chain(
        &self,
        rules: &Rules,
        scores: &Scores,
        (i, j): (usize, usize),
        chain: Option<u32>,
        bottom: f64,
    ) -> f64 {
        let Some(chain) = chain.map(|chain| rules.chains()[chain as usize]) else { return bottom };
        let below = self.over_chain(rules, scores, (i, j), chain.before, bottom);
        below + scores.unary[chain.rule as usize] + self.node(i, j)[chain.top as usize]
    }
}
