//! Classes that are nodes of a tree or lattice: `psi(x, y) = phi(x) (x) Lambda(y)`, one block with a slot for each feature of
//! the classes (Tsochantaridis, Hofmann, Joachims, Altun 2004, section 5.2).
//!
//! With the architecture of the taxonomy Lambda(y) has a 1 for y and a weight, 1 in the paper, for each of its ancestors. The root
//! is left out: it is an ancestor of every class and cancels in every difference. (As a class of its own it has no features then;
//! with a weight other than 1 it does not cancel there, and could have some.) Flat, it has a 1 for y alone, as multiclass; that
//! is what the taxonomy comes to as the weight falls to 0. Else it is what the user says of each class.
//!
//! Slots are scored once, by one pass over phi, and summed from the root down: an argmax over thousands of classes looks at
//! no class's whole path.

mod hierarchy;
mod loss;

use std::sync::{Arc, OnceLock};

use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::sparse::SparseView;
use crate::task::{ComputedLosses, Lambda, Listed, LossTerm, Losses, Places, Stacked, Task, first_max};
use crate::tasks::multiclass::check_row;
use crate::weights::Weights;

pub use hierarchy::{Flaw, Hierarchy};
pub use loss::NodeLoss;

/// What Lambda(y) is.
#[derive(Debug, Clone, PartialEq)]
pub enum Architecture {
    /// A slot for each class.
    Flat,
    /// A slot for each node but the root: a class has its own, and those of its ancestors times this positive weight.
    Taxonomy(f64),
    /// A slot for each of these attributes, and a row for each class.
    Features(ClassFeatures),
}

/// What ancestors may count for. With less the taxonomy says nothing; with much more, as 100, training takes very long.
pub const ANCESTOR_WEIGHTS: std::ops::RangeInclusive<f64> = 1e-6..=10.0;

/// What a user says of classes.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassFeatures {
    /// The names of the attributes.
    pub attributes: Vec<String>,
    /// A row for each class, in their order: attributes, ascending, and values that are finite and not 0.
    pub rows: Vec<Vec<(u32, f64)>>,
}

/// The task. Outputs are nodes of the hierarchy that are classes.
#[derive(Debug, Clone)]
pub struct Taxonomy {
    blocks: [Block; 1],
    hierarchy: Arc<Hierarchy>,
    /// Nodes, ascending.
    classes: Vec<u32>,
    /// By node: its place among the classes.
    class_of: Vec<Option<u32>>,
    /// None where each class has one slot of its own.
    lambda: Option<Lambda>,
    loss: NodeLoss,
    /// By node: the first class from there on. Of a tree, the classes below a node are a range.
    first_class: Vec<u32>,
    /// The largest loss of each class, worked out when first asked for: prediction never does.
    largest: OnceLock<Vec<f64>>,
}

/// Where an argmax works.
#[derive(Debug, Default)]
pub struct TaxonomyScratch {
    of_slots: Vec<f64>,
    scores: Vec<f64>,
    losses: Vec<f64>,
}

impl Taxonomy {
    /// `classes`: nodes, ascending, over `features` input features.
    pub fn new(
        features: u32,
        hierarchy: Arc<Hierarchy>,
        classes: Vec<u32>,
        architecture: &Architecture,
        loss: NodeLoss,
    ) -> Result<Self> {
        let fail = |name, rule: String| Err(Error::setting(name, rule));
        let are_nodes =
            classes.is_sorted_by(|a, b| a < b) && classes.last().is_some_and(|&k| (k as usize) < hierarchy.len());
        if !are_nodes {
            return fail("classes", "must be nodes of the taxonomy, ascending".to_owned());
        }
        if let NodeLoss::Matrix(costs) = &loss
            && costs.classes() != classes.len()
        {
            return fail("cost-matrix", format!("has {} classes, the task {}", costs.classes(), classes.len()));
        }
        match architecture {
            Architecture::Flat => {}
            Architecture::Taxonomy(weight) if ANCESTOR_WEIGHTS.contains(weight) => {}
            Architecture::Taxonomy(weight) => {
                let (least, most) = (ANCESTOR_WEIGHTS.start(), ANCESTOR_WEIGHTS.end());
                return fail("ancestor-weight", format!("must be from {least} to {most}, not {weight:e}"));
            }
            Architecture::Features(of_classes) => check_features(of_classes, classes.len())?,
        }
        let lambda = lambda(&hierarchy, &classes, architecture);
        let width = lambda.as_ref().map_or(classes.len() as u32, Lambda::width);
        let mut class_of = vec![None; hierarchy.len()];
        classes.iter().zip(0..).for_each(|(&node, k)| class_of[node as usize] = Some(k));
        let first_class =
            (0..=hierarchy.len() as u32).map(|node| classes.partition_point(|&class| class < node) as u32).collect();
        let blocks = [Block { base: 0, rows: features, width }];
        let largest = OnceLock::new();
        Ok(Self { blocks, hierarchy, classes, class_of, lambda, loss, first_class, largest })
    }

    /// The tree or lattice.
    pub fn hierarchy(&self) -> &Arc<Hierarchy> {
        &self.hierarchy
    }

    /// The nodes that are classes, ascending.
    pub fn classes(&self) -> &[u32] {
        &self.classes
    }

    /// The place of a node among the classes.
    pub fn class(&self, node: u32) -> Option<u32> {
        self.class_of[node as usize]
    }

    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.blocks[0].width as usize
    }

    /// The scores of all classes from those of the slots, which are used up.
    pub fn class_scores(&self, of_slots: &mut [f64], scores: &mut [f64]) {
        match &self.lambda {
            Some(lambda) => lambda.outputs(of_slots, scores),
            None => scores.copy_from_slice(of_slots),
        }
    }

    /// What it costs to predict `y` where `truth` is right, any two nodes; None for a node without costs in a matrix.
    pub fn node_loss(&self, truth: u32, y: u32) -> Option<f64> {
        self.loss.of(&self.hierarchy, &self.class_of, truth, y)
    }

    /// The largest loss of all classes.
    pub fn largest_loss(&self) -> f64 {
        self.largest_losses().iter().copied().fold(0.0, f64::max)
    }

    fn largest_losses(&self) -> &[f64] {
        self.largest.get_or_init(|| {
            let (mut scratch, largest_of) =
                (TaxonomyScratch::default(), |row: &[f64]| row.iter().copied().fold(0.0, f64::max));
            self.classes.iter().map(|node| largest_of(self.losses(node, &mut scratch))).collect()
        })
    }

    /// Of the best class and its ancestors the lowest whose classes lead all others by at least `threshold`: at 0 the best class
    /// itself, from some threshold on a node above all classes.
    pub fn sure_node(&self, scores: &[f64], threshold: f64) -> u32 {
        let best = first_max(scores);
        let leads = |&node: &u32| {
            let others = self.classes.iter().zip(scores).filter(|(class, _)| !self.hierarchy.is_below(**class, node));
            others.into_iter().all(|(_, score)| scores[best] - score >= threshold)
        };
        // From the class up: of equal heights, which a lattice may have, the first.
        let above = self.hierarchy.ancestors(self.classes[best]).0.iter().rev();
        above.copied().filter(leads).min_by_key(|&node| self.hierarchy.height(node)).unwrap_or(0)
    }

    /// Runs of classes, those below each node of the way from the root to `node`, of a tree.
    fn ranges_above(&self, node: u32) -> impl Iterator<Item = (u32, std::ops::Range<usize>)> {
        let ancestors = self.hierarchy.ancestors(node).0.iter();
        ancestors.map(|&above| {
            let end = self.hierarchy.end(above).unwrap_or(above + 1);
            (above, self.first_class[above as usize] as usize..self.first_class[end as usize] as usize)
        })
    }
}

/// Do the rows fit, and can they be told apart?
fn check_features(features: &ClassFeatures, classes: usize) -> Result<()> {
    let fail = |rule: String| Err(Error::setting("class-features", rule));
    let ClassFeatures { attributes, rows } = features;
    if rows.len() != classes || attributes.is_empty() || u32::try_from(attributes.len()).is_err() {
        return fail(format!("{} rows of {} attributes for {classes} classes", rows.len(), attributes.len()));
    }
    let is_row = |row: &Vec<(u32, f64)>| {
        let ascends =
            row.is_sorted_by(|a, b| a.0 < b.0) && row.last().is_none_or(|e| (e.0 as usize) < attributes.len());
        ascends && row.iter().all(|e| e.1.is_finite() && e.1 != 0.0)
    };
    match rows.iter().position(|row| !is_row(row)) {
        Some(row) => fail(format!("row {} has an attribute or a value that it must not have", row + 1)),
        None => Ok(()),
    }
}

fn lambda(hierarchy: &Hierarchy, classes: &[u32], architecture: &Architecture) -> Option<Lambda> {
    // The root, node 0, has no slot.
    let slot = |node: u32| node.checked_sub(1);
    match architecture {
        Architecture::Flat => None,
        Architecture::Taxonomy(weight) if hierarchy.is_tree() => {
            let above = |node: u32| slot(hierarchy.parents(node)[0]).unwrap_or(node - 1);
            Some(Lambda::of_ways(
                (1..hierarchy.len() as u32).map(above).collect(),
                classes.iter().map(|&node| slot(node)).collect(),
                *weight,
            ))
        }
        Architecture::Taxonomy(weight) => {
            let row = |&class: &u32| {
                let value = move |node| if node == class { 1.0 } else { *weight };
                hierarchy.ancestors(class).0.iter().filter_map(move |&node| Some((slot(node)?, value(node))))
            };
            Some(Lambda::new(hierarchy.len() as u32 - 1, classes.iter().map(row)))
        }
        Architecture::Features(of_classes) => {
            Some(Lambda::new(of_classes.attributes.len() as u32, of_classes.rows.iter().map(|row| row.iter().copied())))
        }
    }
}

impl Task for Taxonomy {
    type Input<'a> = SparseView<'a>;
    type Output = u32;
    type Scratch = TaxonomyScratch;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: SparseView<'_>, y: &u32, sink: &mut impl Sink) -> Result<()> {
        let class = self.index(y);
        match &self.lambda {
            Some(lambda) => {
                let (slots, values) = lambda.row(class);
                slots.iter().zip(values).for_each(|(&slot, &value)| sink.part(self.blocks[0], slot, x, value));
            }
            None => sink.part(self.blocks[0], class as u32, x, 1.0),
        }
        Ok(())
    }

    /// Common ancestors cancel.
    fn difference(&self, x: SparseView<'_>, truth: &u32, y: &u32, sink: &mut impl Sink) -> Result<()> {
        let (truth, y) = (self.index(truth), self.index(y));
        match &self.lambda {
            Some(lambda) => lambda.each_difference(truth, y, |slot, value| sink.part(self.blocks[0], slot, x, value)),
            None if truth == y => {}
            None => {
                sink.part(self.blocks[0], truth as u32, x, 1.0);
                sink.part(self.blocks[0], y as u32, x, -1.0);
            }
        }
        Ok(())
    }

    /// The truth may be any node that has costs; one that has none, as a held-out example's may, costs the most.
    fn loss(&self, truth: &u32, y: &u32) -> f64 {
        self.node_loss(*truth, *y).unwrap_or_else(|| self.largest_loss())
    }

    fn max_loss(&self, truth: &u32) -> f64 {
        self.class(*truth).map_or_else(|| self.largest_loss(), |class| self.largest_losses()[class as usize])
    }

    fn argmax(
        &self,
        w: &Weights,
        x: SparseView<'_>,
        loss: Option<LossTerm<'_, u32>>,
        scratch: &mut TaxonomyScratch,
        y: &mut u32,
    ) -> Result<()> {
        let mut scores = std::mem::take(&mut scratch.scores);
        scores.resize(self.classes.len(), 0.0);
        self.scores(w, x, scratch, &mut scores);
        if let Some(loss) = loss {
            for (score, cost) in scores.iter_mut().zip(self.losses(loss.truth, scratch)) {
                *score += loss.weight * cost;
            }
        }
        *y = self.classes[first_max(&scores)];
        scratch.scores = scores;
        Ok(())
    }

    fn check(&self, x: SparseView<'_>, y: &u32) -> std::result::Result<(), String> {
        check_row(x, self.blocks[0].rows)?;
        match self.class_of.get(*y as usize) {
            Some(Some(_)) => Ok(()),
            _ => Err(format!("node {y} (it is none of the task's {} classes)", self.classes.len())),
        }
    }

    fn oracle_cost(&self, _x: SparseView<'_>) -> f64 {
        self.slots() as f64
    }

    fn listed(&self) -> Option<&dyn Listed<Self>> {
        Some(self)
    }
}

impl Listed<Taxonomy> for Taxonomy {
    fn count(&self) -> usize {
        self.classes.len()
    }

    fn output(&self, k: usize) -> u32 {
        self.classes[k]
    }

    fn index(&self, y: &u32) -> usize {
        self.class_of[*y as usize].expect("a class, as checked") as usize
    }

    fn scores(&self, w: &Weights, x: SparseView<'_>, scratch: &mut TaxonomyScratch, scores: &mut [f64]) {
        match &self.lambda {
            Some(lambda) => {
                scratch.of_slots.resize(self.slots(), 0.0);
                w.scores(self.blocks[0], x, &mut scratch.of_slots);
                lambda.outputs(&mut scratch.of_slots, scores);
            }
            None => w.scores(self.blocks[0], x, scores),
        }
    }

    fn losses<'s>(&'s self, truth: &u32, scratch: &'s mut TaxonomyScratch) -> &'s [f64] {
        if let (NodeLoss::Matrix(costs), Some(class)) = (&self.loss, self.class(*truth)) {
            return costs.row(class as usize);
        }
        scratch.losses.resize(self.classes.len(), 0.0);
        self.fill_losses(*truth, &mut scratch.losses);
        &scratch.losses
    }

    fn stacked(&self) -> Option<&dyn Stacked<Taxonomy>> {
        Some(self)
    }
}

impl Stacked<Taxonomy> for Taxonomy {
    fn phis<'s, 'a>(&self, inputs: &'s [<Self as Task>::Input<'a>]) -> &'s [SparseView<'a>] {
        inputs
    }

    fn places(&self) -> Places<'_> {
        match &self.lambda {
            Some(lambda) => Places::Rows(self.blocks[0], lambda),
            None => Places::Slots(self.blocks[0]),
        }
    }

    fn all_losses(&self) -> Losses<'_> {
        match &self.loss {
            NodeLoss::Matrix(costs) => Losses::Table(costs.classes(), costs.as_slice()),
            NodeLoss::ZeroOne | NodeLoss::Tree | NodeLoss::Path => Losses::Computed(self),
        }
    }
}

impl ComputedLosses for Taxonomy {
    fn loss(&self, truth: usize, k: usize) -> f64 {
        Task::loss(self, &self.classes[truth], &self.classes[k])
    }

    fn fill(&self, truth: usize, losses: &mut Vec<f64>) {
        losses.resize(self.classes.len(), 0.0);
        self.fill_losses(self.classes[truth], losses);
    }
}
