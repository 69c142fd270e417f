//! The hidden Markov model: the generative model of the same shape, its counts smoothed by Laplace's rule.
//!
//! ```text
//! log P(x, y) = sum_t log P(y_t | y_{t-1}) + log P(x_t | y_t),      P = (count + 1) / (total + kinds)
//! ```
//!
//! with a mark before the first tag and after the last one. A token is what its features are, each taken for independent of
//! the others: with one feature a token this is the model of the textbooks. The weight of feature j at tag k is
//! `log(n_jk + 1)`; its denominator goes with every token, so it stands with the transition into the tag, and a word that
//! was never seen weighs nothing, which is exactly Laplace's estimate for it.

use super::{Sentence, Tagging};
use crate::features::Accumulate;
use crate::inference::chain::Order;
use crate::numeric::ln;
use crate::task::Task;
use crate::weights::Weights;

/// The weights; None where transitions have features, which the model has no place for.
pub(super) fn estimate<'e>(
    task: &Tagging,
    examples: &mut dyn Iterator<Item = (Sentence<'e>, &'e Vec<u32>, f64)>,
) -> Option<Weights> {
    let (shape, [transition, first, last, edge, triple, emission]) = (task.shape, task.blocks);
    if !edge.is_empty() {
        return None;
    }
    let k = shape.tags as usize;
    let mut w = Weights::zeros(task.dimension());
    let (mut tokens, mut entries) = (0.0, 0.0);
    for (x, y, weight) in examples {
        // The same places count what will be weighed there.
        let mut counts = Accumulate { sum: w.as_mut_slice(), factor: weight };
        (0..y.len()).for_each(|t| task.links(x, y, t, 1.0, &mut counts));
        for (t, &tag) in y.iter().enumerate() {
            for &j in x.tokens.row(t).indices() {
                counts.sum[emission.at(j, tag)] += weight;
                entries += weight;
            }
            tokens += weight;
        }
    }
    // As many features as a token has.
    let mean_features = if tokens > 0.0 { entries / tokens } else { 0.0 };
    let mut symbols = vec![f64::from(shape.features); k];
    for row in w.as_slice()[emission.base as usize..].chunks_exact(k) {
        symbols.iter_mut().zip(row).for_each(|(sum, n)| *sum += n);
    }
    let dense = w.as_mut_slice();
    dense[emission.base as usize..].iter_mut().for_each(|n| *n = ln(*n + 1.0));
    let into: Vec<f64> = symbols.iter().map(|total| -mean_features * ln(total.max(1.0))).collect();

    if shape.order == Order::Second {
        let (pairs, triples) = dense.split_at_mut(triple.base as usize);
        let pairs = &pairs[transition.base as usize..][..k * k];
        for (ab, row) in triples[..triple.len() as usize].chunks_exact_mut(k).enumerate() {
            let before = &pairs[(ab % k) * k..][..k];
            let (three, two) = (row.iter().sum::<f64>() + k as f64, before.iter().sum::<f64>() + k as f64);
            // What the third tag knows beyond the pair.
            for (n, pair) in row.iter_mut().zip(before) {
                *n = ln((*n + 1.0) / three) - ln((pair + 1.0) / two);
            }
        }
    }
    for a in 0..k {
        // The end is one more thing that can follow.
        let end = dense[last.at(0, a as u32)];
        let row = &mut dense[transition.base as usize + a * k..][..k];
        let total = row.iter().sum::<f64>() + end + k as f64 + 1.0;
        row.iter_mut().zip(&into).for_each(|(n, into)| *n = ln((*n + 1.0) / total) + into);
        dense[last.at(0, a as u32)] = ln((end + 1.0) / total);
    }
    let starts = &mut dense[first.base as usize..][..k];
    let total = starts.iter().sum::<f64>() + k as f64;
    starts.iter_mut().zip(&into).for_each(|(n, into)| *n = ln((*n + 1.0) / total) + into);
    Some(w)
}
