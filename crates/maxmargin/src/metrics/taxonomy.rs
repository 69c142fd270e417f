//! The figures of classes that are nodes of a tree or lattice.

use serde::Serialize;

use super::ClassFigures;
use crate::tasks::taxonomy::{Hierarchy, Taxonomy};

/// How many predictions are right as far as this depth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Level {
    /// From 1, right below the root.
    pub depth: u32,
    /// Examples whose label lies so deep, or deeper.
    pub examples: u64,
    /// Share of them whose prediction has the same ancestors there, a node being its own ancestor, too.
    pub accuracy: f64,
}

/// What predictions are worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of examples.
    pub examples: u64,
    /// Mean loss, that of training, scaled. NaN without examples.
    pub mean_loss: f64,
    /// Share of right predictions. NaN without examples.
    pub accuracy: f64,
    /// Mean height of the first common ancestor, zero for right predictions. NaN without examples.
    pub tree_loss: f64,
    /// Share of the predicted nodes' ancestors, without the root, that are the labels', too; 0 where there are none.
    pub hierarchical_precision: f64,
    /// Share of the labels' ancestors that are the predicted nodes', too.
    pub hierarchical_recall: f64,
    /// The harmonic mean of both.
    pub hierarchical_f1: f64,
    /// By depth.
    pub levels: Vec<Level>,
    /// Examples whose label is no node. They count as errors with the largest loss of all.
    pub unseen_labels: u64,
    /// Examples whose label is a node without training examples, which is never predicted.
    pub untrained_labels: u64,
    /// The figures of each node that is a label or a prediction.
    pub classes: Vec<ClassFigures>,
}

/// Counts predictions against labels.
#[derive(Debug, Clone)]
pub struct Evaluator<'t> {
    task: &'t Taxonomy,
    loss_scale: f64,
    examples: u64,
    unseen: u64,
    untrained: u64,
    loss: f64,
    tree_loss: f64,
    /// Ancestors of labels, of predictions, of both.
    ancestors: [u64; 3],
    /// By depth: labels so deep, and those that are right there.
    levels: Vec<[u64; 2]>,
    /// By node: labels, predictions, both.
    nodes: Vec<[u64; 3]>,
}

impl<'t> Evaluator<'t> {
    /// Nothing counted yet.
    pub fn new(task: &'t Taxonomy, loss_scale: f64) -> Self {
        let hierarchy = task.hierarchy();
        Self {
            task,
            loss_scale,
            examples: 0,
            unseen: 0,
            untrained: 0,
            loss: 0.0,
            tree_loss: 0.0,
            ancestors: [0; 3],
            levels: vec![[0; 2]; hierarchy.max_depth() as usize],
            nodes: vec![[0; 3]; hierarchy.len()],
        }
    }

    /// Counts one example: the nodes of its label, None where it is none, and of its prediction.
    pub fn add(&mut self, truth: Option<u32>, prediction: u32) {
        let hierarchy = &**self.task.hierarchy();
        let below_root = |node: u32| hierarchy.ancestors(node).0.len() as u64 - 1;
        self.examples += 1;
        self.nodes[prediction as usize][1] += 1;
        self.ancestors[1] += below_root(prediction);
        let Some(truth) = truth else {
            self.unseen += 1;
            self.loss += self.task.largest_loss();
            self.tree_loss += f64::from(hierarchy.height(0));
            return;
        };
        self.untrained += u64::from(self.task.class(truth).is_none());
        self.loss += self.task.node_loss(truth, prediction).unwrap_or_else(|| self.task.largest_loss());
        if truth != prediction {
            self.tree_loss += f64::from(hierarchy.common_height(truth, prediction));
        }
        self.nodes[truth as usize][0] += 1;
        self.nodes[truth as usize][2] += u64::from(truth == prediction);
        self.ancestors[0] += below_root(truth);
        let of_prediction = hierarchy.ancestors(prediction).0;
        let both = hierarchy.ancestors(truth).0.iter().filter(|&node| of_prediction.binary_search(node).is_ok());
        self.ancestors[2] += both.count() as u64 - 1;
        for (depth, [deep, right]) in (1..).zip(&mut self.levels) {
            let mut own = at_depth(hierarchy, truth, depth).peekable();
            if own.peek().is_some() {
                *deep += 1;
                *right += u64::from(own.eq(at_depth(hierarchy, prediction, depth)));
            }
        }
    }

    /// The figures.
    pub fn finish(self) -> Evaluation {
        let n = self.examples as f64;
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let [labels, predictions, both] = self.ancestors;
        let names = self.task.hierarchy().names();
        let is_there = |node: &(&String, &[u64; 3])| node.1[0] + node.1[1] > 0;
        let figures = |(label, &[support, predicted, right]): (&String, &[u64; 3])| ClassFigures {
            label: label.clone(),
            support,
            predicted,
            precision: share(right, predicted),
            recall: share(right, support),
            f1: share(2 * right, support + predicted),
        };
        let level = |(depth, &[examples, right]): (u32, &[u64; 2])| {
            Some(Level { depth, examples, accuracy: share(right, examples)? })
        };
        Evaluation {
            examples: self.examples,
            mean_loss: self.loss_scale * self.loss / n,
            accuracy: self.nodes.iter().map(|node| node[2]).sum::<u64>() as f64 / n,
            tree_loss: self.tree_loss / n,
            hierarchical_precision: share(both, predictions).unwrap_or(0.0),
            hierarchical_recall: share(both, labels).unwrap_or(0.0),
            hierarchical_f1: share(2 * both, labels + predictions).unwrap_or(0.0),
            levels: (1..).zip(&self.levels).filter_map(level).collect(),
            unseen_labels: self.unseen,
            untrained_labels: self.untrained,
            classes: names.iter().zip(&self.nodes).filter(is_there).map(figures).collect(),
        }
    }
}

/// The ancestors of a node, and itself, at this depth: one in a tree, or none.
fn at_depth(hierarchy: &Hierarchy, node: u32, depth: u32) -> impl Iterator<Item = u32> {
    hierarchy.ancestors(node).0.iter().copied().filter(move |&above| hierarchy.depth(above) == depth)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tasks::taxonomy::{Architecture, NodeLoss};

    /// root: a (a1, a2), b (b1): nodes 0, 1 (2, 3), 4 (5).
    fn task() -> Taxonomy {
        let names = ["root", "a", "a1", "a2", "b", "b1"].map(str::to_owned);
        let edges = [(1, 0), (2, 1), (3, 1), (4, 0), (5, 4)];
        let hierarchy = Arc::new(Hierarchy::new(&names, &edges).unwrap());
        Taxonomy::new(1, hierarchy, vec![2, 3, 5], &Architecture::Taxonomy(1.0), NodeLoss::Path).unwrap()
    }

    #[test]
    fn figures_by_hand() {
        let task = task();
        let mut evaluator = Evaluator::new(&task, 2.0);
        // Right; a sister; across; an inner node for a leaf; an inner node that is the label; no node at all.
        for (truth, prediction) in [(Some(2), 2), (Some(2), 3), (Some(2), 5), (Some(3), 1), (Some(4), 5), (None, 2)] {
            evaluator.add(truth, prediction);
        }
        let e = evaluator.finish();
        assert_eq!((e.examples, e.unseen_labels, e.untrained_labels), (6, 1, 1));
        assert_eq!(e.accuracy, 1.0 / 6.0);
        // Heights: 0, 1, 2, 1, 1 and the root's.
        assert_eq!(e.tree_loss, (1.0 + 2.0 + 1.0 + 1.0 + 2.0) / 6.0);
        // Edges: 0, 2, 4, 1, 1 and the largest.
        assert_eq!(e.mean_loss, 2.0 * (2.0 + 4.0 + 1.0 + 1.0 + 4.0) / 6.0);
        // Ancestors of labels: 2, 2, 2, 2, 1; of predictions: 2, 2, 2, 1, 2, 2; of both: 2, 1, 0, 1, 1.
        assert_eq!(e.hierarchical_precision, 5.0 / 11.0);
        assert_eq!(e.hierarchical_recall, 5.0 / 9.0);
        assert_eq!(e.hierarchical_f1, 10.0 / 20.0);
        let levels: Vec<_> = e.levels.iter().map(|l| (l.depth, l.examples, l.accuracy)).collect();
        assert_eq!(levels, [(1, 5, 0.8), (2, 4, 0.25)]);
        let classes: Vec<_> = e.classes.iter().map(|c| (c.label.as_str(), c.support, c.predicted)).collect();
        assert_eq!(classes, [("a", 0, 1), ("a1", 3, 2), ("a2", 1, 1), ("b", 1, 0), ("b1", 0, 2)]);
    }
}
