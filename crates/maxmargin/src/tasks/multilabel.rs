//! Sets of labels: a score for each label, and one for each pair of labels that occur together (Yen, Huang, Zhong, Zhang,
//! Ravikumar, Dhillon 2016, figure 1).
//!
//! ```text
//! psi(x, y) = sum over k in y of phi(x) at label k  +  sum over the pairs {a, b} within y of 1 at that pair
//! ```
//!
//! Without pairs every label is decided by itself, and where pairs make a tree by dynamic programming. Otherwise labels that
//! no pair can turn over are settled first, and a decoder of binary graphs finds the rest ([`search`]).

mod counts;
mod pairs;
mod search;

pub use pairs::Pairs;

use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::inference::map::Found;
use crate::sparse::SparseView;
use crate::task::{Counted, Factored, LossTerm, Part, Sets, Slots, Task};
use crate::weights::Weights;
use counts::Counts;
use search::Search;

/// What a wrong set costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetLoss {
    /// The number of labels that are missing or too many.
    #[default]
    Hamming,
    /// `1 - 2 |truth and y| / (|truth| + |y|)`
    F1,
}

impl SetLoss {
    /// The loss of a set with `hits` of the `truth` right labels and `extra` others.
    fn of_counts(self, truth: usize, hits: usize, extra: usize) -> f64 {
        match self {
            Self::Hamming => (truth - hits + extra) as f64,
            Self::F1 if truth + hits + extra == 0 => 0.0,
            Self::F1 => 1.0 - 2.0 * hits as f64 / (truth + hits + extra) as f64,
        }
    }

    /// `D(truth, y)`; both ascend.
    pub fn of(self, truth: &[u32], y: &[u32]) -> f64 {
        let hits = y.iter().filter(|k| truth.binary_search(k).is_ok()).count();
        self.of_counts(truth.len(), hits, y.len() - hits)
    }
}

/// Prediction of label sets.
#[derive(Debug, Clone)]
pub struct Multilabel {
    labels: u32,
    /// Features at labels, and pairs.
    blocks: [Block; 2],
    pairs: Pairs,
    loss: SetLoss,
}

/// The decoder's tables.
#[derive(Debug, Default)]
pub struct SetScratch {
    unary: Vec<f64>,
    search: Search,
    counts: Counts,
    found: Option<Found>,
}

impl SetScratch {
    /// Of the last prediction: is it proven that no set has a higher score?
    pub fn is_proven(&self) -> bool {
        self.found.is_some_and(|found| found.is_proven())
    }
}

impl Multilabel {
    /// Sets of so many labels, from so many features.
    pub fn new(features: u32, labels: u32, pairs: Pairs, loss: SetLoss) -> Result<Self> {
        if labels == 0 {
            return Err(Error::setting("labels", "at least one is needed"));
        }
        if pairs.labels() != labels {
            return Err(Error::setting("pairs", format!("are of {} labels, not of {labels}", pairs.labels())));
        }
        if loss == SetLoss::F1 && !pairs.is_forest() {
            let rule = "the F1 loss does not add up over labels; it is counted with --pairs none or tree only";
            return Err(Error::setting("loss", rule));
        }
        let unary = Block { base: 0, rows: features, width: labels };
        let pair = Block { base: unary.len(), rows: 1, width: pairs.len() as u32 };
        if pair.base + pair.len() >= 1 << 48 {
            return Err(Error::setting("labels", "times features are too many weights"));
        }
        Ok(Self { labels, blocks: [unary, pair], pairs, loss })
    }

    /// Number of labels.
    pub fn labels(&self) -> u32 {
        self.labels
    }

    /// The pairs that have a weight.
    pub fn pairs(&self) -> &Pairs {
        &self.pairs
    }

    /// What a wrong set costs.
    pub fn set_loss(&self) -> SetLoss {
        self.loss
    }

    /// The weights of the pairs.
    fn pair_weights<'w>(&self, w: &'w Weights) -> &'w [f64] {
        w.of(self.blocks[1])
    }

    fn fill(&self, w: &Weights, x: SparseView<'_>, unary: &mut Vec<f64>) {
        unary.resize(self.labels as usize, 0.0);
        w.scores(self.blocks[0], x, unary);
    }

    /// The best set where every label has to gain more than `threshold`, and for each label that there is what it gains, or would
    /// gain, beside the others of the set, left in `gains`.
    pub fn predict(
        &self,
        w: &Weights,
        x: SparseView<'_>,
        threshold: f64,
        scratch: &mut SetScratch,
        y: &mut Vec<u32>,
        gains: &mut Vec<f64>,
    ) {
        self.fill(w, x, &mut scratch.unary);
        scratch.unary.iter_mut().for_each(|score| *score -= threshold);
        let pair_weights = self.pair_weights(w);
        scratch.found = Some(scratch.search.best(&self.pairs, &scratch.unary, pair_weights, y));
        gains.clear();
        gains.extend(scratch.unary.iter().map(|score| score + threshold));
        for &k in &*y {
            self.pairs.of(k).for_each(|(other, pair)| gains[other as usize] += pair_weights[pair]);
        }
    }

    fn hits(truth: &[u32], k: u32) -> bool {
        truth.binary_search(&k).is_ok()
    }
}

impl Task for Multilabel {
    type Input<'a> = SparseView<'a>;
    /// Numbers of labels, ascending.
    type Output = Vec<u32>;
    type Scratch = SetScratch;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: SparseView<'_>, y: &Vec<u32>, sink: &mut impl Sink) -> Result<()> {
        for (at, &k) in y.iter().enumerate() {
            sink.part(self.blocks[0], k, x, 1.0);
            for (_, pair) in self.pairs.among(k, &y[..at]) {
                sink.part(self.blocks[1], pair as u32, SparseView::constant(), 1.0);
            }
        }
        Ok(())
    }

    fn difference(&self, x: SparseView<'_>, truth: &Vec<u32>, y: &Vec<u32>, sink: &mut impl Sink) -> Result<()> {
        // Both sets in one pass: a label of both adds only pairs with labels of one.
        for (set, other, sign) in [(truth, y, 1.0), (y, truth, -1.0)] {
            for (at, &k) in set.iter().enumerate() {
                let is_shared = Self::hits(other, k);
                if !is_shared {
                    sink.part(self.blocks[0], k, x, sign);
                }
                for (j, pair) in self.pairs.among(k, &set[..at]) {
                    if !is_shared || !Self::hits(other, set[j]) {
                        sink.part(self.blocks[1], pair as u32, SparseView::constant(), sign);
                    }
                }
            }
        }
        Ok(())
    }

    fn loss(&self, truth: &Vec<u32>, y: &Vec<u32>) -> f64 {
        self.loss.of(truth, y)
    }

    fn max_loss(&self, _truth: &Vec<u32>) -> f64 {
        match self.loss {
            SetLoss::Hamming => f64::from(self.labels),
            SetLoss::F1 => 1.0,
        }
    }

    fn argmax(
        &self,
        w: &Weights,
        x: SparseView<'_>,
        loss: Option<LossTerm<'_, Vec<u32>>>,
        scratch: &mut SetScratch,
        y: &mut Vec<u32>,
    ) -> Result<()> {
        self.fill(w, x, &mut scratch.unary);
        let pair_weights = self.pair_weights(w);
        let SetScratch { unary, search, counts, found } = scratch;
        let mut all = 0.0;
        if let Some(LossTerm { truth, weight }) = loss {
            if self.loss == SetLoss::F1 {
                let value = |loss: f64, score: f64| score + weight * loss;
                counts.best(&self.pairs, unary, pair_weights, truth, self.loss, &value, y);
                return Ok(());
            }
            for score in unary.iter_mut() {
                *score += weight;
            }
            for &k in truth {
                unary[k as usize] -= 2.0 * weight;
            }
            all = weight * truth.len() as f64;
        }
        let Found { value, bound } = search.best(&self.pairs, unary, pair_weights, y);
        *found = Some(Found { value: value + all, bound: bound + all });
        Ok(())
    }

    fn check(&self, x: SparseView<'_>, y: &Vec<u32>) -> std::result::Result<(), String> {
        let features = self.blocks[0].rows;
        if x.indices().iter().any(|&j| j >= features) {
            return Err(format!("a feature beyond the {features} of the task"));
        }
        if !y.is_sorted_by(|a, b| a < b) {
            return Err("labels that do not ascend".into());
        }
        if let Some(k) = y.last().filter(|&&k| k >= self.labels) {
            return Err(format!("label {k} (the task has {})", self.labels));
        }
        if self.loss == SetLoss::F1 { counts::check(&self.pairs, y) } else { Ok(()) }
    }

    fn argmax_is_exact(&self, _x: SparseView<'_>) -> bool {
        self.pairs.is_forest()
    }

    fn bound(&self, scratch: &SetScratch) -> Option<f64> {
        scratch.found.map(|found| found.bound)
    }

    fn counted(&self) -> Option<&dyn Counted<Self>> {
        self.pairs.is_forest().then_some(self)
    }

    fn factored(&self) -> Option<&dyn Factored<Self>> {
        (self.loss == SetLoss::Hamming).then_some(self)
    }

    fn oracle_cost(&self, x: SparseView<'_>) -> f64 {
        // Contiguous weights, four at a time, against a few labels whose weights have to be waited for.
        const WAIT: f64 = 10.0;
        let (features, labels) = (x.len() as f64 + 1.0, f64::from(self.labels));
        (0.25 * (features * labels + self.pairs.len() as f64) / (WAIT * features)).max(1.0)
    }
}

impl Counted<Self> for Multilabel {
    fn check(&self, _x: SparseView<'_>, truth: &Vec<u32>) -> std::result::Result<(), String> {
        counts::check(&self.pairs, truth)
    }

    fn argmax_of(
        &self,
        w: &Weights,
        x: SparseView<'_>,
        truth: &Vec<u32>,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut SetScratch,
        y: &mut Vec<u32>,
    ) -> Result<bool> {
        self.fill(w, x, &mut scratch.unary);
        let pair_weights = self.pair_weights(w);
        scratch.counts.best(&self.pairs, &scratch.unary, pair_weights, truth, self.loss, value, y);
        Ok(true)
    }
}

impl Factored<Self> for Multilabel {
    fn variables(&self, _x: SparseView<'_>) -> usize {
        self.labels as usize
    }

    fn domain(&self, _x: SparseView<'_>, _v: usize) -> u32 {
        2
    }

    fn unary<'a>(&self, x: SparseView<'a>, v: usize, visit: &mut dyn FnMut(Part<'a>)) {
        visit(Part { block: self.blocks[0], slots: Slots::AllOn(v as u32), phi: x });
    }

    fn factors(&self, _x: SparseView<'_>) -> usize {
        self.pairs.len()
    }

    fn factor<'a>(&self, _x: SparseView<'a>, f: usize, scope: &mut Vec<u32>, visit: &mut dyn FnMut(Part<'a>)) {
        let (a, b) = self.pairs.pair(f);
        scope.clear();
        scope.extend([a, b]);
        visit(Part { block: self.blocks[1], slots: Slots::AllOn(f as u32), phi: SparseView::constant() });
    }

    fn labels(&self, _x: SparseView<'_>, y: &Vec<u32>, labels: &mut Vec<u32>) {
        labels.clear();
        labels.resize(self.labels as usize, 0);
        for &k in y {
            labels[k as usize] = 1;
        }
    }

    fn cost(&self, _truth: u32) -> f64 {
        1.0
    }

    fn sets(&self) -> Option<&dyn Sets> {
        Some(self)
    }
}

impl Sets for Multilabel {
    fn factor_of(&self, a: u32, b: u32) -> Option<usize> {
        self.pairs.number(a, b)
    }

    fn factor_block(&self) -> Block {
        self.blocks[1]
    }
}
