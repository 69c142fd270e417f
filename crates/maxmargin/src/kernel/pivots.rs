//! Which vectors span the others best: incomplete Cholesky with pivots.
//!
//! Choosing strictly one pivot after the other reads the whole factor for each of them, and memory is too slow for that. So
//! the vectors of which the most is left are candidates, whose columns are computed together as a product of matrices; among
//! them the choice is greedy as long as the best candidate is not far worse than the best of all vectors.

use std::ops::Range;
use std::sync::Arc;

use super::triangle::{Rows, subtract_products};
use super::{Columns, Kernel};
use crate::memory::zeros;
use crate::parallel::Pool;
use crate::sparse::{SparseMatrix, SparseView, dot};

/// Candidates of a round. Where there are no more vectors than that, each pivot is the best of all.
const CANDIDATES: usize = 64;

/// A candidate of which less than this share of the best is left waits for the next round.
const SHARE: f64 = 0.5;

/// Vectors that one thread works on at a time.
const PART: usize = 256;

/// Some vectors with their rows of the factor.
struct Part {
    range: Range<usize>,
    /// Their number x k, filled in up to the rank.
    factor: Vec<f64>,
    /// Their number x candidates: what is left of the columns of the candidates.
    columns: Vec<f64>,
    /// Their number x `CANDIDATES`: the columns of the factor that this round adds.
    fresh: Vec<f64>,
    /// What is left of `k(x, x)` of each; minus infinity once it is a pivot.
    left: Vec<f64>,
    /// The largest of these.
    most: f64,
}

fn most(left: &[f64]) -> f64 {
    // Numbers that are none are never the most.
    left.iter().copied().fold(f64::NEG_INFINITY, |most, x| if x > most { x } else { most })
}

/// At most k of the vectors of which more than `limit` is left when they are chosen, and what is left of all in the end.
pub(super) fn pivots(
    kernel: &Arc<dyn Kernel>,
    vectors: &SparseMatrix,
    diagonal: &[f64],
    k: usize,
    limit: f64,
    pool: &Pool,
) -> (Vec<usize>, Vec<f64>) {
    let part = |start: usize| {
        let range = start..vectors.rows().min(start + PART);
        let left: Vec<f64> =
            diagonal[range.clone()].iter().map(|&d| if d.is_finite() { d } else { f64::NEG_INFINITY }).collect();
        let most = most(&left);
        let [factor, columns, fresh] = [k, CANDIDATES, CANDIDATES].map(|width| zeros(range.len() * width));
        Part { range, factor, columns, fresh, left, most }
    };
    let mut parts: Vec<Part> = (0..vectors.rows()).step_by(PART).map(part).collect();
    let mut chosen = Vec::new();
    while chosen.len() < k {
        let mut candidates = candidates(&parts, limit);
        if candidates.is_empty() {
            break;
        }
        compute_columns(kernel, vectors, &mut parts, &candidates, (chosen.len(), k), pool);
        let (before, width) = (chosen.len(), candidates.len());
        let mut columns: Vec<usize> = (0..width).collect();
        while chosen.len() < k && !candidates.is_empty() {
            let most_left = most(&parts.iter().map(|part| part.most).collect::<Vec<_>>());
            let left = |candidate: usize| parts[candidate / PART].left[candidate % PART];
            let mut best = 0;
            for at in 1..candidates.len() {
                let (ours, theirs) = (left(candidates[at]), left(candidates[best]));
                // Ties go to the first vector.
                if ours > theirs || ours == theirs && candidates[at] < candidates[best] {
                    best = at;
                }
            }
            let value = left(candidates[best]);
            if !(value > limit && value >= SHARE * most_left) {
                break;
            }
            let (pivot, column) = (candidates.swap_remove(best), columns.swap_remove(best));
            add_column(&mut parts, &Step { pivot, column, width, number: chosen.len() - before, value }, pool);
            chosen.push(pivot);
        }
        let added = chosen.len() - before;
        keep_columns(&mut parts, before, added, k, pool);
    }
    let left = parts.into_iter().flat_map(|part| part.left).map(|left| left.max(0.0)).collect();
    (chosen, left)
}

/// The vectors of which the most is left, more than `limit`.
fn candidates(parts: &[Part], limit: f64) -> Vec<usize> {
    let all = parts.iter().flat_map(|part| part.range.clone().zip(part.left.iter().copied()));
    let mut found: Vec<(usize, f64)> = all.filter(|&(_, left)| left > limit).collect();
    let order = |a: &(usize, f64), b: &(usize, f64)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    if found.len() > CANDIDATES {
        found.select_nth_unstable_by(CANDIDATES - 1, order);
        found.truncate(CANDIDATES);
    }
    found.sort_unstable_by(order);
    found.into_iter().map(|(vector, _)| vector).collect()
}

/// What is left of the columns of the candidates by the factor so far, which has this rank and room for k.
fn compute_columns(
    kernel: &Arc<dyn Kernel>,
    vectors: &SparseMatrix,
    parts: &mut [Part],
    candidates: &[usize],
    (rank, k): (usize, usize),
    pool: &Pool,
) {
    let (mut chosen, mut factor) = (SparseMatrix::new(), Vec::with_capacity(candidates.len() * rank));
    for &candidate in candidates {
        chosen.push_row(vectors.row(candidate).iter());
        factor.extend_from_slice(&parts[candidate / PART].factor[candidate % PART * k..][..rank]);
    }
    let (columns, width) = (Columns::new(kernel.clone(), chosen), candidates.len());
    let factor = Rows { numbers: &factor, stride: rank, count: width };
    let compute = |_: usize, part: &mut Part| {
        let views: Vec<SparseView<'_>> = part.range.clone().map(|i| vectors.row(i)).collect();
        part.columns.resize(views.len() * width, 0.0);
        columns.values(&views, &mut part.columns);
        let rows = Rows { numbers: &part.factor, stride: k, count: views.len() };
        subtract_products(&mut part.columns, width, rows, factor, rank);
        Ok(())
    };
    pool.each(parts, compute).expect("computing does not fail");
}

/// A column to be added to the factor.
struct Step {
    pivot: usize,
    /// Its place among the columns of the candidates, of which there are `width`.
    column: usize,
    width: usize,
    /// Columns added before it in this round.
    number: usize,
    /// What is left of the pivot.
    value: f64,
}

fn add_column(parts: &mut [Part], step: &Step, pool: &Pool) {
    let Step { pivot, column, width, number, value } = *step;
    let fresh_of_pivot = parts[pivot / PART].fresh[pivot % PART * CANDIDATES..][..number].to_vec();
    let scale = 1.0 / value.sqrt();
    let add = |_: usize, part: &mut Part| {
        let rows = part.columns.chunks_exact(width).zip(part.fresh.chunks_exact_mut(CANDIDATES));
        for ((columns, fresh), left) in rows.zip(&mut part.left) {
            let entry = (columns[column] - dot(&fresh[..number], &fresh_of_pivot)) * scale;
            fresh[number] = entry;
            *left -= entry * entry;
        }
        if part.range.contains(&pivot) {
            part.left[pivot - part.range.start] = f64::NEG_INFINITY;
        }
        part.most = most(&part.left);
        Ok(())
    };
    pool.each(parts, add).expect("computing does not fail");
}

/// Puts the columns of a round behind those before.
fn keep_columns(parts: &mut [Part], rank: usize, added: usize, k: usize, pool: &Pool) {
    let keep = |_: usize, part: &mut Part| {
        for (factor, fresh) in part.factor.chunks_exact_mut(k).zip(part.fresh.chunks_exact(CANDIDATES)) {
            factor[rank..rank + added].copy_from_slice(&fresh[..added]);
        }
        Ok(())
    };
    pool.each(parts, keep).expect("computing does not fail");
}
