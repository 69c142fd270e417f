//! The tree of a sentence, whatever the sentence.

use std::ops::Range;

use super::{Bracket, Parse, ParseScratch, Parsing, Tilt, UNKNOWN};
use crate::inference::cky::{Chart, Scores, Step};
use crate::task::Task;
use crate::weights::Weights;

/// A tree as symbols with the words that they are over, parents before children, left before right.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// Minus infinity where the grammar has no tree.
    pub score: f64,
    /// Among them symbols between, and [`UNKNOWN`] for a tag that the grammar lacks, or over many words for a phrase.
    pub nodes: Vec<(u32, Range<usize>)>,
    /// Is it put together from pieces, since the grammar has no tree?
    pub is_fallback: bool,
}

impl Parsing {
    /// The best tree of a sentence of at least one word, which may have unknown terminals. Where the grammar has none, the
    /// sentence is covered by as few of the grammar's phrases as can be, and a root is put over them.
    pub fn decode(&self, w: &Weights, x: &[u32], scratch: &mut ParseScratch) -> Decoded {
        self.n_best(w, x, 1, scratch).swap_remove(0)
    }

    /// The n best trees, the best first: at least one, fewer than n where the grammar has no more.
    pub fn n_best(&self, w: &Weights, x: &[u32], n: usize, scratch: &mut ParseScratch) -> Vec<Decoded> {
        if !self.has_room(x.len()) {
            return vec![Decoded { score: f64::NEG_INFINITY, nodes: self.flat(w, x), is_fallback: true }];
        }
        self.fill(w, x, None, scratch);
        let ParseScratch { chart, scores, steps, .. } = scratch;
        let best = chart.best(self.grammar.rules(), scores, steps);
        if best == f64::NEG_INFINITY {
            let nodes = self.pieces(w, x, chart, scores);
            return vec![Decoded { score: best, nodes, is_fallback: true }];
        }
        let found =
            if n == 1 { vec![(best, std::mem::take(steps))] } else { chart.n_best(self.grammar.rules(), scores, n) };
        let tree = |(score, steps): (f64, Vec<Step>)| {
            let mut nodes = Vec::new();
            if let Some((Step::Root(root), steps)) = steps.split_first() {
                self.grammar.nodes_of(*root, 0..x.len(), steps, &mut nodes);
            }
            Decoded { score, nodes, is_fallback: false }
        };
        found.into_iter().map(tree).collect()
    }

    /// What was decoded, as an output of the task: its brackets, which is enough to tell its loss.
    pub fn output(&self, decoded: &Decoded) -> Parse {
        let mut y = Parse::default();
        self.set_brackets(&decoded.nodes, &mut y);
        y
    }

    /// The tree of the grammar with the fewest wrong and missing brackets; None where it has none for this sentence.
    pub fn nearest(&self, x: &[u32], truth: &[Bracket]) -> Option<Parse> {
        let known = |bracket: &&Bracket| bracket.0 < self.grammar.phrases();
        let truth: Vec<Bracket> = truth.iter().filter(known).copied().collect();
        let mut scratch = ParseScratch::default();
        let tilt = Tilt { truth: &truth, found: 1.0, wrong: -1.0 };
        self.fill(&Weights::zeros(self.dimension()), x, Some(tilt), &mut scratch);
        let ParseScratch { chart, scores, steps, .. } = &mut scratch;
        let best = chart.best(self.grammar.rules(), scores, steps);
        if best > f64::NEG_INFINITY { self.parse(self.grammar.derivation(steps, x)) } else { None }
    }

    /// The brackets of what [`decode`](Self::decode) falls back to.
    pub(super) fn fall_back(&self, w: &Weights, x: &[u32], chart: &mut Chart, scores: &Scores, y: &mut Parse) {
        self.set_brackets(&self.pieces(w, x, chart, scores), y);
    }

    /// Makes a tree of nothing but the brackets of some nodes.
    pub(super) fn set_brackets(&self, nodes: &[(u32, Range<usize>)], y: &mut Parse) {
        y.derivation.0.clear();
        y.counts.clear();
        y.brackets.clear();
        let phrases = nodes.iter().filter(|(symbol, _)| *symbol < self.grammar.phrases());
        y.brackets.extend(phrases.map(|(symbol, span)| (*symbol, span.start as u32, span.end as u32)));
        y.brackets.sort_unstable();
    }

    /// A root over as few phrases as cover the sentence; among equally few those with the best scores. The chart is full.
    fn pieces(&self, w: &Weights, x: &[u32], chart: &mut Chart, scores: &Scores) -> Vec<(u32, Range<usize>)> {
        /// A word under no phrase is the last resort.
        const WORD: usize = 2;
        let root = self.heaviest_root(w);
        // By words covered: number of pieces, score, and the last piece.
        let mut best: Vec<(usize, f64, usize, Option<u32>)> = vec![(0, 0.0, 0, None)];
        for j in 1..=x.len() {
            let (count, score, ..) = best[j - 1];
            let mut found = (count + WORD, score, j - 1, None);
            for (i, before) in best.iter().enumerate() {
                let Some((symbol, own)) = chart.best_phrase(i, j, root) else { continue };
                let (count, score) = (before.0 + 1, before.1 + own);
                if count < found.0 || count == found.0 && score > found.1 {
                    found = (count, score, i, Some(symbol));
                }
            }
            best.push(found);
        }
        let (mut pieces, mut end) = (Vec::new(), x.len());
        while end > 0 {
            let (_, _, from, symbol) = best[end];
            pieces.push((from..end, symbol));
            end = from;
        }
        let mut steps = Vec::new();
        let mut nodes = top(root, x.len(), pieces.len());
        for (span, symbol) in pieces.into_iter().rev() {
            match symbol {
                None => nodes.push((self.any_tag(x[span.start]), span)),
                Some(symbol) => {
                    steps.clear();
                    chart.tell_all(self.grammar.rules(), scores, (span.start, span.end), symbol, &mut steps);
                    self.grammar.nodes_of(symbol, span, &steps, &mut nodes);
                }
            }
        }
        nodes
    }

    /// A root right over all tags: for sentences that are too long for a chart.
    pub(super) fn flat(&self, w: &Weights, x: &[u32]) -> Vec<(u32, Range<usize>)> {
        let mut nodes = top(self.heaviest_root(w), x.len(), x.len());
        nodes.extend(x.iter().enumerate().map(|(i, &terminal)| (self.any_tag(terminal), i..i + 1)));
        nodes
    }

    fn any_tag(&self, terminal: u32) -> u32 {
        self.grammar.tags_over(terminal).next().map_or(UNKNOWN, |(tag, _)| tag)
    }

    /// The phrase that is most likely at the root, where it can be a phrase.
    fn heaviest_root(&self, w: &Weights) -> Option<u32> {
        let weight = |rule: usize| self.features[rule].map_or(0.0, |feature| w.as_slice()[feature as usize]);
        let roots = self.grammar.parts().roots.iter().enumerate().filter(|(_, root)| **root < self.grammar.phrases());
        roots.max_by(|a, b| weight(a.0).total_cmp(&weight(b.0)).then(b.0.cmp(&a.0))).map(|(_, &root)| root)
    }
}

/// The node over some pieces. Where only tags are roots, one piece needs none, and many have one that is unknown.
fn top(root: Option<u32>, words: usize, pieces: usize) -> Vec<(u32, Range<usize>)> {
    let root = if pieces > 1 { Some(root.unwrap_or(UNKNOWN)) } else { root };
    root.map(|root| (root, 0..words)).into_iter().collect()
}
