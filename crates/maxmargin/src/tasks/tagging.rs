//! Tags for the tokens of a sentence: a linear chain (Joachims, Finley, Yu 2009, eq. 31; Tsochantaridis, Hofmann, Joachims,
//! Altun 2004, section 5.3).
//!
//! ```text
//! psi(x, y) = sum_t phi(x_t) at tag y_t  +  counts of (y_{t-1}, y_t), of the first and of the last tag
//!             + sum_t edge(x_t) at (y_{t-1}, y_t)  +  counts of (y_{t-2}, y_{t-1}, y_t)
//! ```
//!
//! The second line where asked for: features of the token on transitions, and the second order.

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::inference::chain::{Chain, Counts, Order, Pairs, can_count};
use crate::memory::prefetch;
use crate::sparse::{Rows, SparseMatrix, SparseView};
use crate::task::{Counted, Factored, LossTerm, Part, Slots, Task};
use crate::weights::Weights;

mod constraints;
mod hmm;

pub use constraints::{Constraints, Scheme};

/// Stands for a tag that the task does not know: no prediction, an error wherever it is the truth.
pub const UNSEEN: u32 = u32::MAX;

/// The features of a sentence's tokens.
#[derive(Debug, Clone, Copy)]
pub struct Sentence<'a> {
    /// A row for each token.
    pub tokens: Rows<'a>,
    /// A row for each token, of the transition into it; the first token's is not used.
    pub edges: Option<Rows<'a>>,
}

impl<'a> Sentence<'a> {
    /// Rows of matrices with a row for each token.
    pub fn new(tokens: &'a SparseMatrix, edges: Option<&'a SparseMatrix>, rows: Range<usize>) -> Self {
        Self { tokens: tokens.range(rows.clone()), edges: edges.map(|edges| edges.range(rows)) }
    }
}

/// What wrong tags cost.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TagLoss {
    /// The costs of the wrong tokens added up, each by its true tag.
    Hamming(Vec<f64>),
    /// 1 for a sentence in which any tag is wrong.
    ZeroOne,
}

impl TagLoss {
    /// Every wrong token costs 1.
    pub fn hamming(tags: usize) -> Self {
        Self::Hamming(vec![1.0; tags])
    }

    /// `D(truth, y)`. A truth that is [`UNSEEN`] costs as much as the dearest tag.
    pub fn of(&self, truth: &[u32], y: &[u32]) -> f64 {
        let mut wrong = truth.iter().zip(y).filter(|(a, b)| a != b).map(|(a, _)| *a);
        match self {
            Self::Hamming(costs) => wrong.map(|tag| cost(costs, tag)).sum(),
            Self::ZeroOne => f64::from(wrong.next().is_some()),
        }
    }

    /// Does every wrong token cost the same?
    fn is_a_count(&self) -> bool {
        match self {
            Self::Hamming(costs) => costs.iter().all(|&cost| cost == costs[0] && cost > 0.0),
            Self::ZeroOne => true,
        }
    }
}

fn cost(costs: &[f64], tag: u32) -> f64 {
    costs.get(tag as usize).copied().unwrap_or_else(|| costs.iter().copied().fold(0.0, f64::max))
}

/// What a model of tag sequences is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Number of tags K.
    pub tags: u32,
    /// Features of tokens.
    pub features: u32,
    /// Features of transitions.
    pub edges: u32,
    /// How far a tag looks back.
    pub order: Order,
}

impl Shape {
    /// The parts of w: transitions, first tag, last tag, features of transitions, triples, and last the features of tokens.
    pub fn blocks(&self) -> Result<[Block; 6]> {
        let k = u64::from(self.tags);
        let (pairs, triples) = (k * k, if self.order == Order::Second { k * k * k } else { 0 });
        let widths = [(1, pairs), (1, k), (1, k), (self.edges, pairs), (1, triples), (self.features, k)];
        let mut base = 0_u64;
        let mut blocks = [Block { base: 0, rows: 0, width: 0 }; 6];
        for (block, (rows, width)) in blocks.iter_mut().zip(widths) {
            let too_many = || Error::setting("tags", format!("{k} are too many for weights of each pair or triple"));
            let width = u32::try_from(width).map_err(|_| too_many())?;
            *block = Block { base, rows, width };
            base = base.checked_add(block.len()).filter(|&d| d < 1 << 48).ok_or_else(too_many)?;
        }
        Ok(blocks)
    }
}

/// Sequence tagging.
#[derive(Debug, Clone)]
pub struct Tagging {
    shape: Shape,
    blocks: [Block; 6],
    loss: TagLoss,
    constraints: Option<Constraints>,
}

/// The decoder's tables.
#[derive(Debug, Default)]
pub struct TagScratch {
    /// Scores.
    pub chain: Chain,
    counts: Counts,
    row: Vec<f64>,
}

impl Tagging {
    /// Models of this shape. Costs of tags are for each tag, finite and not negative.
    pub fn new(shape: Shape, loss: TagLoss, constraints: Option<Constraints>) -> Result<Self> {
        if shape.tags == 0 {
            return Err(Error::setting("tags", "at least one is needed"));
        }
        if let TagLoss::Hamming(costs) = &loss {
            let is_one = |c: &f64| *c >= 0.0 && c.is_finite();
            if costs.len() != shape.tags as usize || !costs.iter().all(is_one) {
                let rule = format!("{} tags need as many costs, finite and not negative", shape.tags);
                return Err(Error::setting("tag-cost", rule));
            }
        }
        Ok(Self { shape, blocks: shape.blocks()?, loss, constraints })
    }

    /// What the model is made of.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// What wrong tags cost.
    pub fn tag_loss(&self) -> &TagLoss {
        &self.loss
    }

    /// What is forbidden.
    pub fn constraints(&self) -> Option<&Constraints> {
        self.constraints.as_ref()
    }

    /// Where the weights of the tokens' features begin; those of the transitions and the like come before.
    pub fn emission(&self) -> Block {
        self.blocks[5]
    }

    /// Fills the tables with the scores of a sentence. `structure`: the weights before those of the tokens' features, whose
    /// scores `emissions` writes: a row of `stride` numbers for each token.
    pub fn fill(
        &self,
        x: Sentence<'_>,
        structure: &[f64],
        scratch: &mut TagScratch,
        emissions: impl FnOnce(&mut [f64], usize),
    ) {
        let TagScratch { chain, row, .. } = scratch;
        let (k, len) = (self.shape.tags as usize, x.tokens.len());
        let [transition, first, last, edge, triple, _] = self.blocks;
        let pairs = if x.edges.is_some() && self.shape.edges > 0 { Pairs::EachStep } else { Pairs::Same };
        chain.resize(k, len, self.shape.order, pairs);
        let (unary, stride) = chain.all_unary_mut();
        emissions(unary, stride);
        let weights = |block: Block| &structure[block.base as usize..][..block.len() as usize];
        add(chain.unary_mut(0), weights(first));
        add(chain.unary_mut(len - 1), weights(last));
        let fixed = weights(transition);
        match x.edges.filter(|_| pairs == Pairs::EachStep) {
            None => {
                for (a, fixed) in fixed.chunks_exact(k).enumerate() {
                    chain.pair_mut(1, a).copy_from_slice(fixed);
                }
            }
            Some(edges) => {
                let table = weights(edge);
                row.resize(k * k, 0.0);
                for t in 1..len {
                    row.copy_from_slice(fixed);
                    for (j, v) in edges.row(t).iter() {
                        let scores = &table[j as usize * k * k..][..k * k];
                        row.iter_mut().zip(scores).for_each(|(sum, w)| *sum += f64::from(v) * w);
                    }
                    for (a, row) in row.chunks_exact(k).enumerate() {
                        chain.pair_mut(t, a).copy_from_slice(row);
                    }
                }
            }
        }
        if self.shape.order == Order::Second {
            for (ab, scores) in weights(triple).chunks_exact(k).enumerate() {
                chain.triple_mut(ab / k, ab % k).copy_from_slice(scores);
            }
        }
        if let Some(constraints) = &self.constraints {
            constraints.apply(chain, if pairs == Pairs::Same { 1..2 } else { 1..len });
        }
    }

    /// Fills the tables with the scores at w.
    pub fn fill_at(&self, w: &Weights, x: Sentence<'_>, scratch: &mut TagScratch) {
        let emission = self.emission();
        let (k, rows) = (emission.width as usize, w.short_rows());
        let (structure, w) = w.as_slice().split_at(emission.base as usize);
        if let Some(rows) = rows {
            return self.fill(x, structure, scratch, |unary, stride| {
                for (t, unary) in unary.chunks_exact_mut(stride).take(x.tokens.len()).enumerate() {
                    unary[..k].fill(0.0);
                    rows.add_scores(x.tokens.row(t), &mut unary[..k]);
                }
            });
        }
        self.fill(x, structure, scratch, |unary, stride| {
            Arch::new().dispatch(Emissions { w, k, tokens: x.tokens, unary, stride });
        });
    }

    fn add_hamming(chain: &mut Chain, costs: &[f64], truth: &[u32], weight: f64) {
        for (t, &tag) in truth.iter().enumerate() {
            let (unary, cost) = (chain.unary_mut(t), weight * cost(costs, tag));
            let at_truth = unary[tag as usize];
            for u in &mut *unary {
                *u += cost;
            }
            unary[tag as usize] = at_truth;
        }
    }
}

fn add(to: &mut [f64], x: &[f64]) {
    to.iter_mut().zip(x).for_each(|(to, x)| *to += x);
}

/// The scores of all tags at each token, from rows of k weights.
struct Emissions<'e> {
    w: &'e [f64],
    k: usize,
    tokens: Rows<'e>,
    unary: &'e mut [f64],
    stride: usize,
}

impl WithSimd for Emissions<'_> {
    type Output = ();

    // What is inlined here is compiled once for each kind of machine, with the same additions in the same order.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        /// So many features ahead the weights are asked for: features come in no order that the machine could guess.
        const AHEAD: usize = 6;
        /// Weights in a line of the cache.
        const LINE: usize = 8;
        let Self { w, k, tokens, unary, stride } = self;
        let indices = tokens.indices();
        let mut done = 0;
        for (t, unary) in unary.chunks_exact_mut(stride).take(tokens.len()).enumerate() {
            let unary = &mut unary[..k];
            unary.fill(0.0);
            for (j, v) in tokens.row(t).iter() {
                if let Some(&soon) = indices.get(done + AHEAD) {
                    w[soon as usize * k..][..k].iter().step_by(LINE).for_each(prefetch);
                }
                done += 1;
                let v = f64::from(v);
                unary.iter_mut().zip(&w[j as usize * k..][..k]).for_each(|(sum, w)| *sum += v * w);
            }
        }
    }
}

impl Task for Tagging {
    type Input<'a> = Sentence<'a>;
    type Output = Vec<u32>;
    type Scratch = TagScratch;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: Sentence<'_>, y: &Vec<u32>, sink: &mut impl Sink) -> Result<()> {
        for t in 0..y.len() {
            self.piece(x, y, t, 1.0, sink);
        }
        Ok(())
    }

    fn difference(&self, x: Sentence<'_>, truth: &Vec<u32>, y: &Vec<u32>, sink: &mut impl Sink) -> Result<()> {
        let reach = if self.shape.order == Order::Second { 2 } else { 1 };
        let mut last_wrong = None;
        for t in 0..y.len() {
            if truth[t] != y[t] {
                last_wrong = Some(t);
                sink.part(self.emission(), truth[t], x.tokens.row(t), 1.0);
                sink.part(self.emission(), y[t], x.tokens.row(t), -1.0);
            }
            if last_wrong.is_some_and(|wrong| t - wrong <= reach) {
                self.links(x, truth, t, 1.0, sink);
                self.links(x, y, t, -1.0, sink);
            }
        }
        Ok(())
    }

    fn loss(&self, truth: &Vec<u32>, y: &Vec<u32>) -> f64 {
        self.loss.of(truth, y)
    }

    fn max_loss(&self, truth: &Vec<u32>) -> f64 {
        match &self.loss {
            _ if self.shape.tags == 1 => 0.0,
            TagLoss::Hamming(costs) => truth.iter().map(|&tag| cost(costs, tag)).sum(),
            TagLoss::ZeroOne => 1.0,
        }
    }

    fn argmax(
        &self,
        w: &Weights,
        x: Sentence<'_>,
        loss: Option<LossTerm<'_, Vec<u32>>>,
        scratch: &mut TagScratch,
        y: &mut Vec<u32>,
    ) -> Result<()> {
        self.fill_at(w, x, scratch);
        let TagScratch { chain, counts, .. } = scratch;
        match (loss, &self.loss) {
            (None, _) => {}
            (Some(LossTerm { truth, weight }), TagLoss::Hamming(costs)) => {
                Self::add_hamming(chain, costs, truth, weight);
            }
            (Some(LossTerm { truth, weight }), TagLoss::ZeroOne) => {
                let value = |errors: usize, score: f64| if errors > 0 { score + weight } else { score };
                chain.best_counted(truth, 1, &value, counts, y);
                return Ok(());
            }
        }
        chain.best(y);
        Ok(())
    }

    fn check(&self, x: Sentence<'_>, y: &Vec<u32>) -> std::result::Result<(), String> {
        let (len, shape) = (x.tokens.len(), self.shape);
        if len == 0 || y.len() != len {
            return Err(format!("{} tags for {len} tokens", y.len()));
        }
        if let Some(tag) = y.iter().find(|&&tag| tag >= shape.tags) {
            return Err(format!("tag {tag} (the task has {} tags)", shape.tags));
        }
        let within = |rows: Rows<'_>, count: u32| rows.indices().iter().all(|&j| j < count);
        if !within(x.tokens, shape.features) {
            return Err(format!("a feature beyond the {} of the task", shape.features));
        }
        if x.edges.is_some_and(|edges| !within(edges, shape.edges)) {
            return Err(format!("a feature of a transition beyond the {} of the task", shape.edges));
        }
        if x.edges.is_some_and(|edges| edges.len() != len) {
            return Err(format!("features of transitions for another number of tokens than {len}"));
        }
        self.constraints.as_ref().map_or(Ok(()), |constraints| constraints.check(y))
    }

    fn counted(&self) -> Option<&dyn Counted<Self>> {
        self.loss.is_a_count().then_some(self)
    }

    fn factored(&self) -> Option<&dyn Factored<Self>> {
        let is_plain = self.shape.order == Order::First && self.shape.edges == 0 && self.constraints.is_none();
        (is_plain && matches!(self.loss, TagLoss::Hamming(_))).then_some(self)
    }

    fn generative<'e>(&self, examples: &mut dyn Iterator<Item = (Sentence<'e>, &'e Vec<u32>, f64)>) -> Option<Weights> {
        hmm::estimate(self, examples)
    }

    fn oracle_cost(&self, x: Sentence<'_>) -> f64 {
        // Vectors of four, one after the other, against single weights of the tokens where an output differs from the
        // truth, about one in five, each of which has to be waited for.
        const WAIT: f64 = 10.0;
        let (k, len, features) = (f64::from(self.shape.tags), x.tokens.len() as f64, x.tokens.nonzeros() as f64);
        let states = if self.shape.order == Order::Second { k * k } else { k };
        let (own, wrong) = (features / len + 1.0, 1.0 + 0.2 * len);
        (0.25 * k * (features + states * len) / (wrong * WAIT * own)).max(1.0)
    }
}

impl Tagging {
    /// What token t adds to psi.
    fn piece(&self, x: Sentence<'_>, y: &[u32], t: usize, scale: f64, sink: &mut impl Sink) {
        sink.part(self.emission(), y[t], x.tokens.row(t), scale);
        self.links(x, y, t, scale, sink);
    }

    /// What the tags up to token t add to psi beside its own features.
    fn links(&self, x: Sentence<'_>, y: &[u32], t: usize, scale: f64, sink: &mut impl Sink) {
        let [transition, first, last, edge, triple, _] = self.blocks;
        let (k, phi) = (self.shape.tags, SparseView::constant());
        if t == 0 {
            sink.part(first, y[0], phi, scale);
        } else {
            let slot = y[t - 1] * k + y[t];
            sink.part(transition, slot, phi, scale);
            if let Some(edges) = x.edges.filter(|_| self.shape.edges > 0) {
                sink.part(edge, slot, edges.row(t), scale);
            }
            if t > 1 && self.shape.order == Order::Second {
                sink.part(triple, (y[t - 2] * k + y[t - 1]) * k + y[t], phi, scale);
            }
        }
        if t + 1 == y.len() {
            sink.part(last, y[t], phi, scale);
        }
    }
}

impl Counted<Tagging> for Tagging {
    fn check(&self, x: Sentence<'_>, _truth: &Vec<u32>) -> std::result::Result<(), String> {
        can_count(self.shape.tags as usize, x.tokens.len(), self.shape.order, self.most_errors(x))
    }

    fn argmax_of(
        &self,
        w: &Weights,
        x: Sentence<'_>,
        truth: &Vec<u32>,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut TagScratch,
        y: &mut Vec<u32>,
    ) -> Result<bool> {
        self.fill_at(w, x, scratch);
        let cost = match &self.loss {
            TagLoss::Hamming(costs) => costs[0],
            TagLoss::ZeroOne => 1.0,
        };
        let value = |errors: usize, score: f64| value(cost * errors as f64, score);
        scratch.chain.best_counted(truth, self.most_errors(x), &value, &mut scratch.counts, y);
        Ok(true)
    }
}

impl Tagging {
    /// How many errors the loss tells apart.
    fn most_errors(&self, x: Sentence<'_>) -> usize {
        match self.loss {
            TagLoss::Hamming(_) => x.tokens.len(),
            TagLoss::ZeroOne => 1,
        }
    }
}

/// A chain: a variable for each token, a table for each pair of neighbours.
impl Factored<Self> for Tagging {
    fn variables(&self, x: Sentence<'_>) -> usize {
        x.tokens.len()
    }

    fn domain(&self, _x: Sentence<'_>, _v: usize) -> u32 {
        self.shape.tags
    }

    fn unary<'a>(&self, x: Sentence<'a>, v: usize, visit: &mut dyn FnMut(Part<'a>)) {
        let [_, first, last, ..] = self.blocks;
        let mut part = |block, phi| visit(Part { block, slots: Slots::Each, phi });
        part(self.emission(), x.tokens.row(v));
        if v == 0 {
            part(first, SparseView::constant());
        }
        if v + 1 == x.tokens.len() {
            part(last, SparseView::constant());
        }
    }

    fn factors(&self, x: Sentence<'_>) -> usize {
        x.tokens.len() - 1
    }

    fn factor<'a>(&self, _x: Sentence<'a>, f: usize, scope: &mut Vec<u32>, visit: &mut dyn FnMut(Part<'a>)) {
        scope.clear();
        scope.extend([f as u32, f as u32 + 1]);
        visit(Part { block: self.blocks[0], slots: Slots::Each, phi: SparseView::constant() });
    }

    fn labels(&self, _x: Sentence<'_>, y: &Vec<u32>, labels: &mut Vec<u32>) {
        labels.clone_from(y);
    }

    fn short_rows(&self) -> Option<Block> {
        Some(self.emission())
    }

    fn cost(&self, truth: u32) -> f64 {
        match &self.loss {
            TagLoss::Hamming(costs) => cost(costs, truth),
            TagLoss::ZeroOne => 1.0,
        }
    }
}
