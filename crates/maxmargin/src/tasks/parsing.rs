//! Parse trees: the derivations of a sentence by a grammar that was read off trees.
//!
//! psi(x, y) counts the rules of y, as in the papers. A sentence is the sequence of its tags.

mod grammar;
mod pcfg;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::inference::cky::{Chart, Scores, Step};
use crate::sparse::SparseView;
use crate::task::{LossTerm, Task};
use crate::weights::Weights;

pub use grammar::{Derivation, Grammar, Parts, Rule, UNKNOWN};

/// A bracket: its phrase, and the words from the first one up to the second.
pub type Bracket = (u32, u32, u32);

/// A tree of a sentence.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Parse {
    derivation: Derivation,
    /// Features of rules that are there, ascending, and how often.
    counts: Vec<(u32, u32)>,
    /// Ascending.
    brackets: Vec<Bracket>,
}

impl Parse {
    /// Its rules; none where the grammar has no tree for a sentence.
    pub fn derivation(&self) -> &Derivation {
        &self.derivation
    }

    /// Its brackets, ascending. Tags are none.
    pub fn brackets(&self) -> &[Bracket] {
        &self.brackets
    }
}

/// What a wrong tree costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParseLoss {
    /// The number of brackets that only one of the two trees has. It adds up over the nodes of the chart.
    #[default]
    Hamming,
    /// One. The argmax is the best tree, or the best one but the truth.
    ZeroOne,
}

/// Where decoding works.
#[derive(Debug, Default)]
pub struct ParseScratch {
    chart: Chart,
    scores: Scores,
    steps: Vec<Step>,
}

/// The task.
#[derive(Debug, Clone)]
pub struct Parsing {
    grammar: Grammar,
    loss: ParseLoss,
    /// The feature of each rule; none of a rule that its parent leaves no choice about, which would only count others twice.
    features: Vec<Option<u32>>,
    blocks: [Block; 1],
}

/// A sentence whose chart takes more is refused.
const MOST_BYTES: usize = 8 << 30;

/// The input vector of rules: the constant 1.
const ONE: (&[u32], &[f32]) = (&[0], &[1.0]);

impl Parsing {
    /// The task of a grammar.
    pub fn new(grammar: Grammar, loss: ParseLoss) -> Self {
        let mut choices = vec![0_u32; grammar.parts().symbols.len()];
        let parent = |rule: u32| grammar.parent(rule).map(|parent| parent as usize);
        let rules = 0..grammar.len() as u32;
        rules.clone().filter_map(parent).for_each(|parent| choices[parent] += 1);
        // Only symbols between are without a choice by design; a phrase with one rule is a phrase to be chosen.
        let between = grammar.tags().end as usize;
        let mut count = 0;
        let feature = |rule: u32| {
            let is_forced = parent(rule).is_some_and(|parent| parent >= between && choices[parent] == 1);
            (!is_forced).then(|| {
                count += 1;
                count - 1
            })
        };
        let features: Vec<Option<u32>> = rules.map(feature).collect();
        Self { grammar, loss, features, blocks: [Block { base: 0, rows: 1, width: count }] }
    }

    /// The grammar.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// The feature of a rule.
    pub fn feature(&self, rule: u32) -> Option<u32> {
        self.features.get(rule as usize).copied().flatten()
    }

    /// The tree of a derivation; None where its rules do not follow upon each other.
    pub fn parse(&self, derivation: Derivation) -> Option<Parse> {
        let mut brackets: Vec<Bracket> = self
            .grammar
            .nodes(&derivation)?
            .into_iter()
            .filter(|(symbol, _)| *symbol < self.grammar.phrases())
            .map(|(symbol, span)| (symbol, span.start as u32, span.end as u32))
            .collect();
        brackets.sort_unstable();
        let mut features: Vec<u32> = derivation.0.iter().filter_map(|&rule| self.feature(rule)).collect();
        features.sort_unstable();
        let counts = features.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)).collect();
        Some(Parse { derivation, counts, brackets })
    }

    fn fill(&self, w: &Weights, x: &[u32], loss: Option<LossTerm<'_, Parse>>, scratch: &mut ParseScratch) {
        let ParseScratch { chart, scores, .. } = scratch;
        let Parts { symbols, roots, unary, .. } = self.grammar.parts();
        let (w, block) = (w.as_slice(), self.blocks[0]);
        let score = |feature: &Option<u32>| feature.map_or(0.0, |feature| w[block.at(0, feature)]);
        let (of_roots, rest) = self.features.split_at(roots.len());
        let (of_unary, of_binary) = rest.split_at(unary.len());
        scores.root.clear();
        scores.root.resize(symbols.len(), f64::NEG_INFINITY);
        roots.iter().zip(of_roots).for_each(|(&symbol, feature)| scores.root[symbol as usize] = score(feature));
        scores.unary.clear();
        scores.unary.extend(of_unary.iter().map(score));
        scores.binary.clear();
        scores.binary.extend(of_binary.iter().map(score));

        chart.resize(self.grammar.rules(), x.len(), None);
        x.iter().enumerate().for_each(|(i, &tag)| chart.leaf_mut(i)[tag as usize] = 0.0);
        let Some(LossTerm { truth, weight }) = loss.filter(|_| self.loss == ParseLoss::Hamming) else { return };
        for j in 1..=x.len() {
            (0..j).for_each(|i| chart.node_mut(i, j).fill(weight));
        }
        for &(phrase, i, j) in &truth.brackets {
            chart.node_mut(i as usize, j as usize)[phrase as usize] = -weight;
        }
    }
}

/// Number of items that two ascending lists have in common.
pub(crate) fn common<T: Ord>(a: &[T], b: &[T]) -> usize {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        count += usize::from(x == y);
        (i, j) = (i + usize::from(x <= y), j + usize::from(y <= x));
    }
    count
}

impl Task for Parsing {
    /// The symbols of the tags.
    type Input<'a> = &'a [u32];
    type Output = Parse;
    type Scratch = ParseScratch;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, _x: &[u32], y: &Parse, sink: &mut impl Sink) -> Result<()> {
        let one = SparseView::new(ONE.0, ONE.1);
        y.counts.iter().for_each(|&(feature, count)| sink.part(self.blocks[0], feature, one, f64::from(count)));
        Ok(())
    }

    fn difference(&self, _x: &[u32], truth: &Parse, y: &Parse, sink: &mut impl Sink) -> Result<()> {
        let one = SparseView::new(ONE.0, ONE.1);
        let (mut a, mut b) = (truth.counts.iter().peekable(), y.counts.iter().peekable());
        loop {
            let feature = match (a.peek(), b.peek()) {
                (None, None) => return Ok(()),
                (Some(x), Some(y)) => x.0.min(y.0),
                (Some(x), None) | (None, Some(x)) => x.0,
            };
            let is_it = |entry: &&(u32, u32)| entry.0 == feature;
            let count = |entry: Option<&(u32, u32)>| entry.map_or(0.0, |entry| f64::from(entry.1));
            let change = count(a.next_if(is_it)) - count(b.next_if(is_it));
            if change != 0.0 {
                sink.part(self.blocks[0], feature, one, change);
            }
        }
    }

    fn loss(&self, truth: &Parse, y: &Parse) -> f64 {
        if self.loss == ParseLoss::ZeroOne {
            return f64::from(u8::from(truth.derivation != y.derivation));
        }
        (truth.brackets.len() + y.brackets.len() - 2 * common(&truth.brackets, &y.brackets)) as f64
    }

    /// What no tree can exceed: a phrase at every node, and as many unary rules over it as may be.
    fn max_loss(&self, truth: &Parse) -> f64 {
        if self.loss == ParseLoss::ZeroOne {
            return 1.0;
        }
        let words = truth.brackets.iter().map(|bracket| bracket.2).max().unwrap_or(1) as usize;
        let most = (words - 1) + (2 * words - 1) * self.grammar.parts().longest;
        (truth.brackets.len() + most) as f64
    }

    fn argmax(
        &self,
        w: &Weights,
        x: &[u32],
        loss: Option<LossTerm<'_, Parse>>,
        scratch: &mut ParseScratch,
        y: &mut Parse,
    ) -> Result<()> {
        self.fill(w, x, loss, scratch);
        let ParseScratch { chart, scores, steps } = scratch;
        let best = chart.best(self.grammar.rules(), scores, steps);
        if best == f64::NEG_INFINITY {
            *y = Parse::default();
            return Ok(());
        }
        let broken = || Error::model("the decoder's rules do not follow upon each other");
        let mut derivation = self.grammar.derivation(steps, x);
        if let Some(LossTerm { truth, weight }) = loss
            && self.loss == ParseLoss::ZeroOne
            && derivation == truth.derivation
        {
            let truth = std::mem::take(steps);
            if chart.best_other(self.grammar.rules(), scores, &truth, steps) + weight > best {
                derivation = self.grammar.derivation(steps, x);
            }
        }
        *y = self.parse(derivation).ok_or_else(broken)?;
        Ok(())
    }

    fn check(&self, x: &[u32], y: &Parse) -> std::result::Result<(), String> {
        if x.is_empty() {
            return Err("a sentence without words".to_owned());
        }
        if let Some(tag) = x.iter().find(|tag| !self.grammar.tags().contains(tag)) {
            return Err(format!("{tag} is no tag of the grammar"));
        }
        let bytes = Chart::bytes(self.grammar.rules(), x.len(), None);
        if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
            let (words, symbols) = (x.len(), self.grammar.parts().symbols.len());
            let need = bytes.map_or("too much to count".to_owned(), |bytes| format!("{} GB", bytes >> 30));
            return Err(format!("a sentence of {words} words takes {need} of memory with {symbols} symbols; split it"));
        }
        let Some(nodes) = self.grammar.nodes(&y.derivation) else {
            return Err("its rules do not follow upon each other".to_owned());
        };
        let tags = nodes.iter().map(|node| node.0).filter(|symbol| self.grammar.tags().contains(symbol));
        if !tags.eq(x.iter().copied()) {
            return Err("its tree has other tags than the sentence".to_owned());
        }
        match self.parse(y.derivation.clone()) {
            Some(same) if same == *y => Ok(()),
            _ => Err("its counts are not those of its rules".to_owned()),
        }
    }

    fn generative<'e>(&self, examples: &mut dyn Iterator<Item = (&'e [u32], &'e Parse, f64)>) -> Option<Weights> {
        Some(pcfg::estimate(self, examples))
    }

    /// A split of a span tries every binary rule; a look at a tree sums up some dozens of weights.
    fn oracle_cost(&self, x: &[u32]) -> f64 {
        let (n, rules) = (x.len() as f64, self.grammar.parts().binary.len() as f64);
        (n * n * n / 6.0 * rules / (30.0 * n)).max(1.0)
    }
}
