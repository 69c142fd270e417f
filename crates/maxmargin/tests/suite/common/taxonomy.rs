//! Random small taxonomies.

use std::sync::Arc;

use maxmargin::tasks::multiclass::Costs;
use maxmargin::tasks::taxonomy::{Architecture, ClassFeatures, Hierarchy, NodeLoss, Taxonomy};

use super::{Draw, Exhaustive};

impl Exhaustive for Taxonomy {
    fn all(&self) -> Vec<u32> {
        self.classes().to_vec()
    }
}

/// A tree of some nodes, or with more edges a lattice.
pub fn hierarchy(draw: &mut Draw, nodes: usize, is_tree: bool) -> Arc<Hierarchy> {
    let names: Vec<String> = (0..nodes).map(|_| format!("{:x}", draw.next())).collect();
    let mut edges: Vec<(u32, u32)> = (1..nodes).map(|k| (k as u32, draw.below(k) as u32)).collect();
    for k in 2..nodes {
        let edge = (k as u32, draw.below(k) as u32);
        if !is_tree && draw.below(2) == 0 && !edges.contains(&edge) {
            edges.push(edge);
        }
    }
    Arc::new(Hierarchy::new(&names, &edges).unwrap())
}

pub fn losses(draw: &mut Draw, classes: usize) -> [NodeLoss; 4] {
    [NodeLoss::ZeroOne, NodeLoss::Tree, NodeLoss::Path, NodeLoss::Matrix(draw.costs(classes))]
}

/// So many of the nodes, inner ones and the root among them.
pub fn classes(draw: &mut Draw, hierarchy: &Hierarchy, count: usize) -> Vec<u32> {
    let mut classes = Vec::new();
    while classes.len() < count {
        let node = draw.below(hierarchy.len()) as u32;
        if !classes.contains(&node) {
            classes.push(node);
        }
    }
    classes.sort_unstable();
    classes
}

/// Flat, by the taxonomy, with ancestors as heavy as the classes and with others, and by random features.
pub fn architectures(draw: &mut Draw, classes: usize) -> [Architecture; 4] {
    let attributes: Vec<String> = (0..4).map(|k| k.to_string()).collect();
    let row = |draw: &mut Draw| {
        let mut row: Vec<(u32, f64)> = (0..4).map(|k| (k, draw.signed())).collect();
        row.retain(|_| draw.below(3) > 0);
        row
    };
    let rows = (0..classes).map(|_| row(draw)).collect();
    let ancestors = 0.1 + 2.0 * draw.signed().abs();
    [
        Architecture::Flat,
        Architecture::Taxonomy(1.0),
        Architecture::Taxonomy(ancestors),
        Architecture::Features(ClassFeatures { attributes, rows }),
    ]
}

/// Every architecture with every loss, over a tree or a lattice.
pub fn tasks(draw: &mut Draw, d: u32, nodes: usize, is_tree: bool) -> Vec<Taxonomy> {
    let hierarchy = hierarchy(draw, nodes, is_tree);
    let count = 2 + draw.below(nodes - 1);
    let classes = classes(draw, &hierarchy, count);
    let (losses, architectures) = (losses(draw, count), architectures(draw, count));
    let pairs = architectures.iter().flat_map(|a| losses.iter().map(move |l| (a, l)));
    pairs.map(|(a, l)| Taxonomy::new(d, Arc::clone(&hierarchy), classes.clone(), a, l.clone()).unwrap()).collect()
}

/// Labels of the task from numbers below that of its classes.
pub fn labels(task: &Taxonomy, numbers: &[u32]) -> Vec<u32> {
    numbers.iter().map(|&k| task.classes()[k as usize]).collect()
}

/// Costs as a matrix over the classes.
pub fn as_costs(task: &Taxonomy) -> Costs {
    let pairs = task.classes().iter().flat_map(|&t| task.classes().iter().map(move |&y| (t, y)));
    Costs::table(task.classes().len(), pairs.map(|(t, y)| task.node_loss(t, y).unwrap()).collect()).unwrap()
}
