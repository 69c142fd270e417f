//! The task `taxonomy` in the program.

pub(crate) mod evaluate;
pub(crate) mod inspect;
pub(crate) mod predict;
pub(crate) mod train;

use maxmargin::data::svmlight::Labelled;
use maxmargin::kernel::Expansion;
use maxmargin::model::TaxonomyModel;
use maxmargin::model::taxonomy::NodePredictor;
use maxmargin::parallel::{Pool, ranges};
use maxmargin::tasks::taxonomy::{Architecture, Hierarchy, NodeLoss};

use crate::text::counted;

/// The name of a loss, as on the command line.
fn loss_name(loss: &NodeLoss) -> &'static str {
    match loss {
        NodeLoss::ZeroOne => "zero-one",
        NodeLoss::Tree => "tree",
        NodeLoss::Path => "path",
        NodeLoss::Matrix(_) => "from a cost matrix",
    }
}

/// `a tree of 38 nodes, depth 5`
pub(crate) fn hierarchy_in_words(hierarchy: &Hierarchy) -> String {
    let kind = if hierarchy.is_tree() { "tree" } else { "lattice" };
    let nodes = counted(hierarchy.len() as u64, "node");
    format!("a {kind} of {nodes}, depth {}", hierarchy.max_depth())
}

/// What the classes share, in words.
pub(crate) fn architecture_in_words(architecture: &Architecture) -> String {
    match architecture {
        Architecture::Flat => "weights for each class".to_owned(),
        Architecture::Taxonomy(1.0) => "weights for each node".to_owned(),
        Architecture::Taxonomy(weight) => format!("weights for each node, those of ancestors times {weight}"),
        Architecture::Features(of_classes) => {
            format!("weights for {} of the classes", counted(of_classes.attributes.len() as u64, "attribute"))
        }
    }
}

/// Gathers something of each row of a batch, of its node and the scores of the classes, in parts, in order.
pub(crate) fn over_rows<R: Default + Send>(
    model: &TaxonomyModel,
    predictor: &NodePredictor<'_>,
    threshold: Option<f64>,
    batch: &Labelled,
    pool: &Pool,
    add: impl Fn(&mut R, u32, &[f64]) + Sync + Send,
) -> Vec<R> {
    // Blocks that do not depend on the number of threads: nor do the scores of a kernel, to the last bit.
    let blocks = batch.len().div_ceil(Expansion::BLOCK);
    let parts = if model.kernel.is_some() { blocks } else { 4 * pool.threads() };
    pool.map(ranges(batch.len(), parts), |range| {
        let mut result = R::default();
        predictor.predict_all(batch.matrix.range(range), threshold, |node, scores| add(&mut result, node, scores));
        result
    })
}
