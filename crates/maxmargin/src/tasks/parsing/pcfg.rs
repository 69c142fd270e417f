//! The generative model: a probabilistic context-free grammar, its counts smoothed by Laplace's rule.
//!
//! ```text
//! log P(y) = sum over the rules of y of log P(rule | parent),      P = (count + 1) / (total + kinds)
//! ```

use super::{Parse, Parsing};
use crate::numeric::ln;
use crate::task::Task;
use crate::weights::Weights;

/// The weights.
pub(super) fn estimate<'e>(task: &Parsing, examples: &mut dyn Iterator<Item = (&'e [u32], &'e Parse, f64)>) -> Weights {
    let grammar = task.grammar();
    // The last place is that of the root.
    let parent = |rule: u32| grammar.parent(rule).map_or(grammar.parts().symbols.len(), |parent| parent as usize);
    let mut counts = vec![1.0; grammar.len()];
    for (_, y, weight) in examples {
        y.derivation().0.iter().for_each(|&rule| counts[rule as usize] += weight);
    }
    let mut totals = vec![0.0; grammar.parts().symbols.len() + 1];
    (0..).zip(&counts).for_each(|(rule, count)| totals[parent(rule)] += count);
    let mut w = Weights::zeros(task.dimension());
    for (rule, count) in (0..).zip(&counts) {
        if let Some(feature) = task.feature(rule) {
            w.as_mut_slice()[task.blocks()[0].at(0, feature)] = ln(count / totals[parent(rule)]);
        }
    }
    w
}
