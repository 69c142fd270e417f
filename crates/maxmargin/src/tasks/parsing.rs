//! Parse trees: the derivations of a sentence by a grammar that was read off trees.
//!
//! psi(x, y) counts the rules of y, as in the papers (Tsochantaridis, Hofmann, Joachims, Altun 2004, section 5.5), and what
//! [`ParseFeatures`] adds. A sentence is the sequence of its terminals: tags, or words.

mod decode;
mod grammar;
mod pcfg;
mod search;
mod spans;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::inference::cky::{Chart, Scores, Step};
use crate::sparse::SparseView;
use crate::task::{Counted, LossTerm, Task};
use crate::weights::Weights;
use grammar::Walk;
use search::Search;
use spans::Spans;

pub use decode::Decoded;
pub use grammar::{Derivation, Grammar, Parts, Rule, UNKNOWN};
pub use spans::SpanFeature;

/// A bracket: its phrase, and the words from the first one up to the second.
pub type Bracket = (u32, u32, u32);

/// A tree of a sentence.
#[derive(Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Parse {
    derivation: Derivation,
    /// Features of rules that are there, ascending, and how often.
    counts: Vec<(u32, u32)>,
    /// Ascending.
    brackets: Vec<Bracket>,
}

// Not derived: a warm oracle copies into memory that is there.
impl Clone for Parse {
    fn clone(&self) -> Self {
        let Self { derivation, counts, brackets } = self;
        Self { derivation: derivation.clone(), counts: counts.clone(), brackets: brackets.clone() }
    }

    fn clone_from(&mut self, from: &Self) {
        self.derivation.0.clone_from(&from.derivation.0);
        self.counts.clone_from(&from.counts);
        self.brackets.clone_from(&from.brackets);
    }
}

impl Parse {
    /// A truth of which only the brackets are known, ascending: enough to tell the loss of other trees.
    pub fn of_brackets(brackets: Vec<Bracket>) -> Self {
        Self { brackets, ..Self::default() }
    }

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
    Hamming,
    /// One. The argmax is the best tree, or the best one but the truth.
    ZeroOne,
    /// One less the F1 of the brackets, which is what parsers are judged by. It does not add up: see `search.rs`.
    #[default]
    F1,
}

/// What the score of a tree is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ParseFeatures {
    /// A weight for each rule.
    #[default]
    Rules,
    /// Also weights for a phrase with the length of its span, the terminals at both ends and those beside it.
    Spans,
}

/// The choices that make a task of a grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParseSettings {
    /// What a wrong tree costs.
    pub loss: ParseLoss,
    /// What scores are made of.
    pub features: ParseFeatures,
    /// Trees have spans of at most so many words, and those that begin the sentence or end it.
    pub max_span: Option<u32>,
    /// Where a loss does not add up, the argmax is exact for sentences of at most so many words, and searched for in longer
    /// ones.
    pub exact_words: u32,
}

impl Default for ParseSettings {
    fn default() -> Self {
        Self { loss: ParseLoss::default(), features: ParseFeatures::default(), max_span: None, exact_words: 40 }
    }
}

/// Where decoding works.
#[derive(Debug, Default)]
pub struct ParseScratch {
    chart: Chart,
    scores: Scores,
    steps: Vec<Step>,
    other: Vec<Step>,
    walk: Walk,
    features: Vec<u32>,
    sides: spans::Sides,
    search: Search,
    trial: Parse,
    /// What no tree has more of, where the last search was of a sentence that is too long for counts in the chart.
    bound: Option<f64>,
}

/// The task.
#[derive(Debug, Clone)]
pub struct Parsing {
    grammar: Grammar,
    settings: ParseSettings,
    /// The feature of each rule; none of a rule that its parent leaves no choice about, which would only count others twice.
    features: Vec<Option<u32>>,
    spans: Option<Spans>,
    blocks: Vec<Block>,
}

/// A sentence whose chart takes more is refused in training, and not decoded in prediction.
const MOST_BYTES: usize = 8 << 30;

/// The input vector of rules: the constant 1.
const ONE: (&[u32], &[f32]) = (&[0], &[1.0]);

/// What node scores of the chart are given beside the weights.
#[derive(Debug, Clone, Copy)]
struct Tilt<'t> {
    truth: &'t [Bracket],
    /// A phrase that the truth has, and one that it lacks.
    found: f64,
    wrong: f64,
}

impl Parsing {
    /// The task of a grammar.
    pub fn new(grammar: Grammar, settings: ParseSettings) -> Result<Self> {
        if settings.max_span == Some(0) {
            return Err(Error::setting("max-span", "must be at least 1"));
        }
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
        let mut blocks = vec![Block { base: 0, rows: 1, width: count }];
        let spans = match settings.features {
            ParseFeatures::Rules => None,
            ParseFeatures::Spans => Some(Spans::new(&grammar, u64::from(count))?),
        };
        blocks.extend(spans.as_ref().map(Spans::block));
        Ok(Self { grammar, settings, features, spans, blocks })
    }

    /// The grammar.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// The choices.
    pub fn settings(&self) -> ParseSettings {
        self.settings
    }

    /// The feature of a rule: its place in w.
    pub fn feature(&self, rule: u32) -> Option<u32> {
        self.features.get(rule as usize).copied().flatten()
    }

    /// The span features, where there are some.
    pub fn spans(&self) -> Option<&Spans> {
        self.spans.as_ref()
    }

    /// Bytes that decoding a sentence of so many words takes; None where that is beyond counting.
    pub fn bytes(&self, words: usize) -> Option<usize> {
        Chart::bytes(self.grammar.rules(), words, self.max_span())
    }

    /// Is a sentence of so many words short enough to be decoded? Longer ones get a makeshift tree.
    pub fn has_room(&self, words: usize) -> bool {
        self.bytes(words).is_some_and(|bytes| bytes <= MOST_BYTES)
    }

    fn max_span(&self) -> Option<usize> {
        self.settings.max_span.map(|most| most as usize)
    }

    /// The tree of a derivation; None where its rules do not follow upon each other.
    pub fn parse(&self, derivation: Derivation) -> Option<Parse> {
        let mut parse = Parse { derivation, ..Parse::default() };
        self.describe(&mut parse, &mut Walk::default(), &mut Vec::new())?;
        Some(parse)
    }

    /// Finds counts and brackets of a tree's derivation.
    fn describe(&self, parse: &mut Parse, walk: &mut Walk, features: &mut Vec<u32>) -> Option<()> {
        let Parse { derivation, counts, brackets } = parse;
        self.grammar.walk(derivation, walk)?;
        let phrases = walk.nodes.iter().filter(|(symbol, _)| *symbol < self.grammar.phrases());
        brackets.clear();
        brackets.extend(phrases.map(|(symbol, span)| (*symbol, span.start as u32, span.end as u32)));
        brackets.sort_unstable();
        features.clear();
        features.extend(derivation.0.iter().filter_map(|&rule| self.feature(rule)));
        features.sort_unstable();
        counts.clear();
        counts.extend(features.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32)));
        Some(())
    }

    /// From the steps of the decoder to a tree.
    fn take(&self, x: &[u32], steps: &[Step], walk: &mut Walk, features: &mut Vec<u32>, y: &mut Parse) -> Result<()> {
        self.grammar.derive(steps, x, &mut y.derivation);
        let broken = || Error::model("the decoder's rules do not follow upon each other");
        self.describe(y, walk, features).ok_or_else(broken)
    }

    /// Scores of all that a tree may have.
    fn fill(&self, w: &Weights, x: &[u32], tilt: Option<Tilt<'_>>, scratch: &mut ParseScratch) {
        let ParseScratch { chart, scores, sides, .. } = scratch;
        let Parts { symbols, roots, unary, binary, .. } = self.grammar.parts();
        let w = w.as_slice();
        let score = |feature: &Option<u32>| feature.map_or(0.0, |feature| w[feature as usize]);
        let (of_roots, rest) = self.features.split_at(roots.len());
        let (of_unary, rest) = rest.split_at(unary.len());
        scores.root.clear();
        scores.root.resize(symbols.len(), f64::NEG_INFINITY);
        roots.iter().zip(of_roots).for_each(|(&symbol, feature)| scores.root[symbol as usize] = score(feature));
        scores.unary.clear();
        scores.unary.extend(of_unary.iter().map(score));
        scores.binary.clear();
        scores.binary.extend(rest[..binary.len()].iter().map(score));

        chart.resize(self.grammar.rules(), x.len(), self.max_span());
        for (i, &terminal) in x.iter().enumerate() {
            let leaf = chart.leaf_mut(i);
            for (tag, rule) in self.grammar.tags_over(terminal) {
                leaf[tag as usize] = rule.map_or(0.0, |rule| score(&self.features[rule as usize]));
            }
        }
        if let Some(spans) = &self.spans {
            spans.score(w, x, sides, chart);
        }
        let Some(Tilt { truth, found, wrong }) = tilt else { return };
        chart.raise_nodes(wrong);
        for &(phrase, i, j) in truth {
            if chart.has(i as usize, j as usize) {
                chart.node_mut(i as usize, j as usize)[phrase as usize] += found - wrong;
            }
        }
    }

    /// The best tree but the truth; `scratch` is filled without a tilt. The score is minus infinity where there is none.
    fn best_other(&self, truth: &Parse, scratch: &mut ParseScratch) -> f64 {
        let ParseScratch { chart, scores, steps, other, walk, .. } = scratch;
        let best = chart.best(self.grammar.rules(), scores, steps);
        // One with a span that is left out is no tree here.
        let is_here = self.grammar.steps(&truth.derivation, walk, other).is_some()
            && walk.nodes.iter().all(|(_, span)| chart.has(span.start, span.end));
        if !is_here || steps != other {
            return best;
        }
        chart.best_other(self.grammar.rules(), scores, other, steps)
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

/// Calls `each` with the items that only one of two ascending lists has, or one more often: 1 for the first, -1 for the other.
fn unlike<T: Ord>(a: &[T], b: &[T], mut each: impl FnMut(&T, f64)) {
    let (mut i, mut j) = (0, 0);
    loop {
        match (a.get(i), b.get(j)) {
            (None, None) => return,
            (Some(x), Some(y)) if x == y => (i, j) = (i + 1, j + 1),
            (Some(x), y) if y.is_none_or(|y| x < y) => {
                each(x, 1.0);
                i += 1;
            }
            (_, Some(y)) => {
                each(y, -1.0);
                j += 1;
            }
            (Some(_), None) => unreachable!("the arm before takes it"),
        }
    }
}

impl Task for Parsing {
    /// Terminals: the symbols of tags, or the numbers of words.
    type Input<'a> = &'a [u32];
    type Output = Parse;
    type Scratch = ParseScratch;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: &[u32], y: &Parse, sink: &mut impl Sink) -> Result<()> {
        let one = SparseView::new(ONE.0, ONE.1);
        y.counts.iter().for_each(|&(feature, count)| sink.part(self.blocks[0], feature, one, f64::from(count)));
        if let Some(spans) = &self.spans {
            y.brackets.iter().for_each(|bracket| spans.emit(x, bracket, 1.0, sink));
        }
        Ok(())
    }

    fn difference(&self, x: &[u32], truth: &Parse, y: &Parse, sink: &mut impl Sink) -> Result<()> {
        let one = SparseView::new(ONE.0, ONE.1);
        let (mut a, mut b) = (truth.counts.iter().peekable(), y.counts.iter().peekable());
        while let Some(feature) = [a.peek(), b.peek()].into_iter().flatten().map(|entry| entry.0).min() {
            let is_it = |entry: &&(u32, u32)| entry.0 == feature;
            let count = |entry: Option<&(u32, u32)>| entry.map_or(0.0, |entry| f64::from(entry.1));
            let change = count(a.next_if(is_it)) - count(b.next_if(is_it));
            if change != 0.0 {
                sink.part(self.blocks[0], feature, one, change);
            }
        }
        if let Some(spans) = &self.spans {
            unlike(&truth.brackets, &y.brackets, |bracket, sign| spans.emit(x, bracket, sign, sink));
        }
        Ok(())
    }

    fn loss(&self, truth: &Parse, y: &Parse) -> f64 {
        if self.settings.loss == ParseLoss::ZeroOne {
            let is_same = if truth.derivation.0.is_empty() {
                truth.brackets == y.brackets
            } else {
                truth.derivation == y.derivation
            };
            return f64::from(u8::from(!is_same));
        }
        let matched = common(&truth.brackets, &y.brackets);
        let (wrong, all) =
            (truth.brackets.len() + y.brackets.len() - 2 * matched, truth.brackets.len() + y.brackets.len());
        match self.settings.loss {
            ParseLoss::F1 if all > 0 => wrong as f64 / all as f64,
            _ => wrong as f64,
        }
    }

    /// What no tree can exceed: a phrase at every node, and as many unary rules over it as may be.
    fn max_loss(&self, truth: &Parse) -> f64 {
        if self.settings.loss != ParseLoss::Hamming {
            return 1.0;
        }
        let words = truth.brackets.iter().map(|bracket| bracket.2).max().unwrap_or(1) as usize;
        (truth.brackets.len() + self.most_phrases(words)) as f64
    }

    fn argmax(
        &self,
        w: &Weights,
        x: &[u32],
        loss: Option<LossTerm<'_, Parse>>,
        scratch: &mut ParseScratch,
        y: &mut Parse,
    ) -> Result<()> {
        if loss.is_none() && !self.has_room(x.len()) {
            self.set_brackets(&self.flat(w, x), y);
            return Ok(());
        }
        let tilt = match loss {
            Some(LossTerm { truth, weight }) if self.settings.loss == ParseLoss::F1 => {
                return self.search(w, x, truth, &|loss, score| score + weight * loss, scratch, y);
            }
            Some(LossTerm { truth, weight }) if self.settings.loss == ParseLoss::Hamming => {
                Some(Tilt { truth: &truth.brackets, found: -weight, wrong: weight })
            }
            _ => None,
        };
        self.fill(w, x, tilt, scratch);
        let ParseScratch { chart, scores, steps, walk, features, .. } = scratch;
        let best = chart.best(self.grammar.rules(), scores, steps);
        if best == f64::NEG_INFINITY {
            match loss {
                // No tree is better than the truth.
                Some(LossTerm { truth, .. }) => y.clone_from(truth),
                None => self.fall_back(w, x, chart, scores, y),
            }
            return Ok(());
        }
        self.take(x, steps, walk, features, y)?;
        if let Some(LossTerm { truth, weight }) = loss
            && self.settings.loss == ParseLoss::ZeroOne
            && y.derivation == truth.derivation
            && self.best_other(truth, scratch) + weight > best
        {
            let ParseScratch { steps, walk, features, .. } = scratch;
            self.take(x, steps, walk, features, y)?;
        }
        Ok(())
    }

    fn bound(&self, scratch: &ParseScratch) -> Option<f64> {
        scratch.bound
    }

    fn argmax_is_exact(&self, x: &[u32]) -> bool {
        self.settings.loss != ParseLoss::F1 || self.is_short(x)
    }

    fn counted(&self) -> Option<&dyn Counted<Self>> {
        Some(self)
    }

    fn check(&self, x: &[u32], y: &Parse) -> std::result::Result<(), String> {
        if x.is_empty() {
            return Err("a sentence without words".to_owned());
        }
        if let Some(terminal) = x.iter().find(|terminal| self.grammar.tags_over(**terminal).next().is_none()) {
            return Err(format!("{terminal} is no terminal of the grammar"));
        }
        if !self.has_room(x.len()) {
            let bytes = self.bytes(x.len());
            let (words, symbols) = (x.len(), self.grammar.parts().symbols.len());
            let need = bytes.map_or("too much to count".to_owned(), |bytes| format!("{} GB", bytes >> 30));
            return Err(format!(
                "a sentence of {words} words takes {need} of memory with {symbols} symbols; leave it out (--max-words), \
                 or take short spans only (--max-span)"
            ));
        }
        let mut walk = Walk::default();
        if self.grammar.walk(&y.derivation, &mut walk).is_none() {
            return Err("its rules do not follow upon each other".to_owned());
        }
        if walk.terminals != x {
            return Err("its tree has other terminals than the sentence".to_owned());
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
