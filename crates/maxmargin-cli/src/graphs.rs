//! The task `graph` in the program.

pub(crate) mod evaluate;
pub(crate) mod inspect;
pub(crate) mod predict;
pub(crate) mod train;

use maxmargin::tasks::factor_graph::{FactorGraph, Graph};

use crate::failure::{Failure, Result};
use crate::{memory, text};

/// What the largest of some graphs need, of which each thread has one at a time: a refusal where that is more than there is.
/// `graphs`: with their lines.
fn check_memory<'g>(
    task: &FactorGraph,
    name: &str,
    graphs: impl Iterator<Item = (&'g Graph, u64)>,
    threads: usize,
) -> Result<()> {
    let mut largest: Vec<(f64, u64)> = graphs.map(|(graph, line)| (task.bytes(graph), line)).collect();
    largest.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let need: f64 = largest.iter().take(threads).map(|graph| graph.0).sum();
    match (memory::available(), largest.first()) {
        (Some(free), Some((_, line))) if need > 0.75 * free => {
            let (need, free) = (text::bytes(need), text::bytes(free));
            let what = format!("the tables of the largest graphs, one in each of {threads} threads, take {need}");
            let way_out = "take fewer --threads, or factors of fewer variables or labels";
            Err(Failure::Data(format!("{name}:{line}: {what}, and {free} are free: {way_out}")))
        }
        _ => Ok(()),
    }
}
