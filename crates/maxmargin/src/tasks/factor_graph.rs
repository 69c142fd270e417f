//! Labellings of factor graphs of any shape (Yen, Huang, Zhong, Zhang, Ravikumar, Dhillon 2016, section 2).
//!
//! ```text
//! psi(x, y) = sum_v phi(x_v) at label y_v  +  sum over templates, factors f  phi(x_f), or 1, at the labels of f's variables
//! ```
//!
//! Variables with the same number of labels share weights, and so do the factors of a template. The loss is the number of
//! wrong labels.
//!
//! Trees are decoded exactly, and so is what the relaxation of the decoder proves ([`inference::map`](crate::inference::map));
//! elsewhere the best labelling that was found is used, and [`Task::bound`] says how much better any other could be: that is
//! the value of the linear programming relaxation, or near it.

mod graph;

pub use graph::{Factors, Graph, Shape, Template};

use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::inference::map::{Counts, Decoder, Found, Scores, can_count, is_forest};
use crate::sparse::SparseView;
use crate::task::{Counted, Factored, LossTerm, Part, Slots, Task};
use crate::weights::Weights;

/// Labelling of factor graphs.
#[derive(Debug, Clone)]
pub struct FactorGraph {
    shape: Shape,
    /// One for each size of a domain, then one for each template.
    blocks: Vec<Block>,
}

/// Coordinates of w that can be told apart.
const MOST_WEIGHTS: u64 = 1 << 48;

/// Labels that factors of a template may have.
const MOST_LABELS: u64 = 1 << 31;

impl FactorGraph {
    /// Graphs of this shape.
    pub fn new(shape: Shape) -> Result<Self> {
        let unary = shape.domains.iter().map(|&domain| (shape.features, domain));
        let mut widths = Vec::new();
        for template in &shape.templates {
            let labels = template.domains.iter().fold(1, |product: u64, &d| product.saturating_mul(u64::from(d)));
            if labels > MOST_LABELS {
                let count = if labels < u64::MAX { labels.to_string() } else { format!("at least {labels}") };
                return Err(Error::model(format!(
                    "factors {:?} are too large: weights for {count} combinations of labels of {} variables, at most \
                     {MOST_LABELS} are possible",
                    template.name,
                    template.domains.len()
                )));
            }
            widths.push((template.features.unwrap_or(1), labels as u32));
        }
        let (mut blocks, mut base) = (Vec::new(), 0_u64);
        for (rows, width) in unary.chain(widths) {
            let block = Block { base, rows, width };
            base = base.saturating_add(block.len());
            blocks.push(block);
        }
        if base >= MOST_WEIGHTS {
            return Err(Error::model(format!("{base} weights are too many: leave features or factors out")));
        }
        Ok(Self { shape, blocks })
    }

    /// What the graphs are made of.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// About how many bytes the tables of the decoder take for this graph.
    pub fn bytes(&self, x: &Graph) -> f64 {
        /// Scores, and what messages and labellings are worked out in.
        const COPIES: f64 = 3.0;
        let own: f64 = x.domains.iter().map(|&domain| f64::from(domain)).sum();
        let of_template = |(t, (template, factors)): (usize, (&Template, &Factors))| {
            let count = (factors.scopes.len() / template.domains.len()) as f64;
            let messages: f64 = template.domains.iter().map(|&domain| f64::from(domain)).sum();
            // Factors without features share one table.
            let tables = if factors.features.is_some() { count } else { count.min(1.0) };
            count * messages + tables * f64::from(self.template_block(t).width)
        };
        let factors: f64 = self.shape.templates.iter().zip(&x.factors).enumerate().map(of_template).sum();
        8.0 * COPIES * (own + factors)
    }

    fn unary_block(&self, domain: u32) -> Block {
        let at = self.shape.domains.binary_search(&domain).expect("a domain of the shape");
        self.blocks[at]
    }

    fn template_block(&self, template: usize) -> Block {
        self.blocks[self.shape.domains.len() + template]
    }

    /// Fills the tables with the scores at w.
    fn fill(&self, w: &Weights, x: &Graph, scores: &mut Scores) {
        scores.clear();
        for (v, &domain) in x.domains.iter().enumerate() {
            w.scores(self.unary_block(domain), x.features.row(v), scores.variable(domain));
        }
        for (t, (template, factors)) in self.shape.templates.iter().zip(&x.factors).enumerate() {
            let block = self.template_block(t);
            let scopes = factors.scopes.chunks_exact(template.domains.len());
            if let Some(features) = &factors.features {
                for (f, scope) in scopes.enumerate() {
                    let (table, values) = scores.table(block.width as usize);
                    w.scores(block, features.row(f), values);
                    scores.factor(scope, table);
                }
            } else if !factors.scopes.is_empty() {
                let (table, values) = scores.table(block.width as usize);
                w.scores(block, SparseView::constant(), values);
                scopes.for_each(|scope| scores.factor(scope, table));
            }
        }
    }

    /// Visits the factors: template, number in it, variables.
    fn each_factor<'x>(&self, x: &'x Graph) -> impl Iterator<Item = (usize, usize, &'x [u32])> {
        self.shape.templates.iter().zip(&x.factors).enumerate().flat_map(|(t, (template, factors))| {
            factors.scopes.chunks_exact(template.domains.len()).enumerate().map(move |(f, scope)| (t, f, scope))
        })
    }

    /// How many factors each template has.
    fn counts(&self, x: &Graph) -> impl Iterator<Item = usize> {
        self.shape.templates.iter().zip(&x.factors).map(|(template, own)| own.scopes.len() / template.domains.len())
    }

    /// The place of labels of a scope in the template's table.
    fn slot(&self, template: usize, scope: &[u32], y: &[u32]) -> u32 {
        let domains = &self.shape.templates[template].domains;
        scope.iter().zip(domains).fold(0, |slot, (&v, &domain)| slot * domain + y[v as usize])
    }

    fn factor_features(factors: &Factors, f: usize) -> SparseView<'_> {
        match &factors.features {
            Some(features) => features.row(f),
            None => SparseView::constant(),
        }
    }
}

/// The decoder's tables.
#[derive(Debug, Default)]
pub struct GraphScratch {
    scores: Scores,
    decoder: Decoder,
    counts: Counts,
    found: Option<Found>,
}

impl GraphScratch {
    /// Of the last argmax: the score of the labelling, with the loss where there was one, and what no labelling has more of.
    pub fn found(&self) -> Option<Found> {
        self.found
    }

    /// Of the last argmax: is it proven that no labelling has a higher score?
    pub fn is_proven(&self) -> bool {
        self.found.is_some_and(|found| found.is_proven())
    }
}

impl Task for FactorGraph {
    type Input<'a> = &'a Graph;
    type Output = Vec<u32>;
    type Scratch = GraphScratch;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: &Graph, y: &Vec<u32>, sink: &mut impl Sink) -> Result<()> {
        for (v, (&domain, &label)) in x.domains.iter().zip(y).enumerate() {
            sink.part(self.unary_block(domain), label, x.features.row(v), 1.0);
        }
        for (t, f, scope) in self.each_factor(x) {
            let phi = Self::factor_features(&x.factors[t], f);
            sink.part(self.template_block(t), self.slot(t, scope, y), phi, 1.0);
        }
        Ok(())
    }

    fn difference(&self, x: &Graph, truth: &Vec<u32>, y: &Vec<u32>, sink: &mut impl Sink) -> Result<()> {
        for (v, &domain) in x.domains.iter().enumerate() {
            if truth[v] != y[v] {
                sink.part(self.unary_block(domain), truth[v], x.features.row(v), 1.0);
                sink.part(self.unary_block(domain), y[v], x.features.row(v), -1.0);
            }
        }
        for (t, f, scope) in self.each_factor(x) {
            if scope.iter().any(|&v| truth[v as usize] != y[v as usize]) {
                let phi = Self::factor_features(&x.factors[t], f);
                sink.part(self.template_block(t), self.slot(t, scope, truth), phi, 1.0);
                sink.part(self.template_block(t), self.slot(t, scope, y), phi, -1.0);
            }
        }
        Ok(())
    }

    fn loss(&self, truth: &Vec<u32>, y: &Vec<u32>) -> f64 {
        truth.iter().zip(y).filter(|(a, b)| a != b).count() as f64
    }

    fn max_loss(&self, truth: &Vec<u32>) -> f64 {
        truth.len() as f64
    }

    fn argmax(
        &self,
        w: &Weights,
        x: &Graph,
        loss: Option<LossTerm<'_, Vec<u32>>>,
        scratch: &mut GraphScratch,
        y: &mut Vec<u32>,
    ) -> Result<()> {
        let GraphScratch { scores, decoder, found, .. } = scratch;
        self.fill(w, x, scores);
        if let Some(LossTerm { truth, weight }) = loss {
            for (v, &label) in truth.iter().enumerate() {
                let unary = scores.unary_mut(v);
                let at_truth = unary[label as usize];
                for score in unary.iter_mut() {
                    *score += weight;
                }
                unary[label as usize] = at_truth;
            }
        }
        *found = Some(decoder.decode(scores, y));
        Ok(())
    }

    fn check(&self, x: &Graph, y: &Vec<u32>) -> std::result::Result<(), String> {
        self.shape.check(x)?;
        if y.len() != x.domains.len() {
            return Err(format!("{} labels for {} variables", y.len(), x.domains.len()));
        }
        match y.iter().zip(&x.domains).position(|(label, domain)| label >= domain) {
            Some(v) => Err(format!("variable {v} has label {}, and {} labels from 0", y[v], x.domains[v])),
            None => Ok(()),
        }
    }

    fn argmax_is_exact(&self, x: &Graph) -> bool {
        is_forest(x.domains.len(), self.each_factor(x).map(|(_, _, scope)| scope))
    }

    fn bound(&self, scratch: &GraphScratch) -> Option<f64> {
        scratch.found.map(|found| found.bound)
    }

    fn counted(&self) -> Option<&dyn Counted<Self>> {
        Some(self)
    }

    fn factored(&self) -> Option<&dyn Factored<Self>> {
        Some(self)
    }

    fn oracle_cost(&self, x: &Graph) -> f64 {
        // Cells of all tables, some sweeps over them, against the weights of the labels of one output.
        const SWEEPS: f64 = 20.0;
        let (features, variables) = (x.features.nonzeros() as f64, x.domains.len() as f64);
        let own: f64 = x.domains.iter().enumerate().map(|(v, &d)| f64::from(d) * x.features.row(v).len() as f64).sum();
        let (mut cells, mut links) = (0.0, 0);
        for (t, factors) in self.counts(x).enumerate() {
            cells += factors as f64 * f64::from(self.template_block(t).width);
            links += factors * (self.shape.templates[t].domains.len() - 1);
        }
        // A forest has fewer links than variables. Not by a walk: this is asked at every visit.
        let sweeps = if links < x.domains.len() { 2.0 } else { SWEEPS };
        ((own + sweeps * cells) / (features + variables + 1.0)).max(1.0)
    }
}

impl Counted<Self> for FactorGraph {
    fn check(&self, _x: &Graph, _truth: &Vec<u32>) -> std::result::Result<(), String> {
        Ok(())
    }

    fn is_exact(&self, x: &Graph) -> bool {
        self.applies(x)
    }

    fn applies(&self, x: &Graph) -> bool {
        self.argmax_is_exact(x) && can_count(&x.domains)
    }

    fn argmax_of(
        &self,
        w: &Weights,
        x: &Graph,
        truth: &Vec<u32>,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut GraphScratch,
        y: &mut Vec<u32>,
    ) -> Result<bool> {
        if !can_count(&x.domains) {
            return Ok(false);
        }
        self.fill(w, x, &mut scratch.scores);
        let value = |errors: usize, score: f64| value(errors as f64, score);
        let best = scratch.counts.best(&scratch.scores, truth, &value, y);
        scratch.found = best.map(|value| Found { value, bound: value });
        Ok(best.is_some())
    }
}

impl Factored<Self> for FactorGraph {
    fn variables(&self, x: &Graph) -> usize {
        x.domains.len()
    }

    fn domain(&self, x: &Graph, v: usize) -> u32 {
        x.domains[v]
    }

    fn unary<'a>(&self, x: &'a Graph, v: usize, visit: &mut dyn FnMut(Part<'a>)) {
        visit(Part { block: self.unary_block(x.domains[v]), slots: Slots::Each, phi: x.features.row(v) });
    }

    fn factors(&self, x: &Graph) -> usize {
        self.counts(x).sum()
    }

    fn factor<'a>(&self, x: &'a Graph, mut f: usize, scope: &mut Vec<u32>, visit: &mut dyn FnMut(Part<'a>)) {
        scope.clear();
        for (t, (template, factors)) in self.shape.templates.iter().zip(&x.factors).enumerate() {
            let arity = template.domains.len();
            let count = factors.scopes.len() / arity;
            if f < count {
                scope.extend(&factors.scopes[f * arity..][..arity]);
                let phi = Self::factor_features(factors, f);
                return visit(Part { block: self.template_block(t), slots: Slots::Each, phi });
            }
            f -= count;
        }
        unreachable!("a factor that the graph does not have")
    }

    fn labels(&self, _x: &Graph, y: &Vec<u32>, labels: &mut Vec<u32>) {
        labels.clone_from(y);
    }

    fn cost(&self, _truth: u32) -> f64 {
        1.0
    }
}
