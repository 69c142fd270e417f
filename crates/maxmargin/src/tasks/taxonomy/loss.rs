//! What it costs to predict another node.

use super::{Hierarchy, Taxonomy};
use crate::tasks::multiclass::Costs;

/// The loss of two nodes, zero where they are the same.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeLoss {
    /// Every error costs 1.
    ZeroOne,
    /// The height of the first common ancestor, a node being its own ancestor, too: the longest way from there down to a leaf
    /// (Tsochantaridis, Hofmann, Joachims, Altun 2004). In a lattice that of the lowest common ancestor.
    Tree,
    /// The number of edges between the nodes, by the shortest way over a common ancestor.
    Path,
    /// A table over the classes, in their order.
    Matrix(Costs),
}

impl NodeLoss {
    /// Of any two nodes; None for those that a table lacks.
    pub(super) fn of(&self, hierarchy: &Hierarchy, class_of: &[Option<u32>], truth: u32, y: u32) -> Option<f64> {
        match self {
            _ if truth == y => Some(0.0),
            Self::ZeroOne => Some(1.0),
            Self::Tree => Some(f64::from(hierarchy.common_height(truth, y))),
            Self::Path => Some(f64::from(hierarchy.distance(truth, y))),
            Self::Matrix(costs) => {
                let (truth, y) = (class_of[truth as usize]?, class_of[y as usize]?);
                Some(costs.row(truth as usize)[y as usize])
            }
        }
    }
}

impl Taxonomy {
    /// The losses of all classes against a node. Thousands of classes have too many pairs for a table. But in a tree the
    /// classes below a node are neighbours, and those that first meet the truth's way there have much in common: their tree loss
    /// is the same, their path loss the same but for their own depth.
    pub(super) fn fill_losses(&self, truth: u32, losses: &mut [f64]) {
        let (hierarchy, class) = (&*self.hierarchy, self.class(truth));
        match self.loss {
            NodeLoss::ZeroOne => losses.fill(1.0),
            NodeLoss::Tree if hierarchy.is_tree() => {
                for (above, classes) in self.ranges_above(truth) {
                    losses[classes].fill(f64::from(hierarchy.height(above)));
                }
            }
            NodeLoss::Path if hierarchy.is_tree() => {
                let depth = hierarchy.depth(truth);
                for (above, classes) in self.ranges_above(truth) {
                    let over = f64::from(depth) - 2.0 * f64::from(hierarchy.depth(above));
                    for (loss, &class) in losses[classes.clone()].iter_mut().zip(&self.classes[classes]) {
                        *loss = over + f64::from(hierarchy.depth(class));
                    }
                }
            }
            NodeLoss::Tree | NodeLoss::Path | NodeLoss::Matrix(_) => {
                for (loss, y) in losses.iter_mut().zip(&self.classes) {
                    *loss = self.node_loss(truth, *y).unwrap_or_else(|| self.largest_loss());
                }
            }
        }
        if let Some(class) = class {
            losses[class as usize] = 0.0;
        }
    }
}
