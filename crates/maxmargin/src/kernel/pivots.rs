//! Which vectors span the others best: incomplete Cholesky with random pivots (Chen, Epperly, Tropp, Webber 2025).
//!
//! Each pivot is drawn with a probability in proportion to what is left of a vector by the pivots before, times the number of
//! examples that have it. Greedy pivots, always where the most is left, are outliers; uniform ones crowd where examples do.
//!
//! Drawing strictly one pivot after the other reads the whole factor for each of them, and memory is too slow for that. So
//! several are drawn together, whose columns are computed as a product of matrices, and each is accepted with the
//! probability that is left of it when its turn comes: the same distribution (accelerated by rejection, ibid.).

use std::ops::Range;
use std::sync::Arc;

use super::low_rank::share_of;
use super::triangle::{Rows, subtract_products};
use super::{Columns, Kernel};
use crate::memory::zeros;
use crate::numeric::pow;
use crate::parallel::Pool;
use crate::random::Random;
use crate::sparse::{SparseMatrix, SparseView, dot};

/// Candidates that are drawn together.
const CANDIDATES: usize = 64;

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
}

/// What pivots are chosen among.
pub(super) struct Choice<'c> {
    pub(super) kernel: &'c Arc<dyn Kernel>,
    pub(super) vectors: &'c SparseMatrix,
    /// `k(x, x)` of each.
    pub(super) diagonal: &'c [f64],
    /// How often each occurs.
    pub(super) counts: &'c [f64],
    /// Vectors of which no more than this is left are not chosen.
    pub(super) limit: f64,
    /// The choice is over when no more than this share of the whole is left, or when it is clear that k pivots leave more.
    pub(super) share: f64,
}

impl Choice<'_> {
    /// Is it over after so many pivots of k? What is left of a kernel of low rank falls at least geometrically; the first
    /// quarter of the pivots need not.
    fn is_over(&self, parts: &[Part], pivots: usize, k: usize) -> bool {
        if self.share == 0.0 {
            return false;
        }
        let left = parts.iter().flat_map(|part| &part.left).zip(self.diagonal).zip(self.counts);
        let left = share_of(left.map(|((left, whole), count)| (count * left, count * whole)));
        left <= self.share || 4 * pivots >= k && left > pow(self.share, pivots as f64 / k as f64)
    }
}

/// At most k of the vectors, and what is left of all in the end.
pub(super) fn pivots(choice: &Choice<'_>, k: usize, random: &mut Random, pool: &Pool) -> (Vec<usize>, Vec<f64>) {
    let Choice { kernel, vectors, diagonal, limit, .. } = *choice;
    let part = |start: usize| {
        let range = start..vectors.rows().min(start + PART);
        let left = diagonal[range.clone()].iter().map(|&d| if d.is_finite() { d } else { f64::NEG_INFINITY }).collect();
        let [factor, columns, fresh] = [k, CANDIDATES, CANDIDATES].map(|width| zeros(range.len() * width));
        Part { range, factor, columns, fresh, left }
    };
    let mut parts: Vec<Part> = (0..vectors.rows()).step_by(PART).map(part).collect();
    let mut chosen = Vec::new();
    while chosen.len() < k {
        let candidates = candidates(&parts, choice, random);
        if candidates.is_empty() {
            break;
        }
        let left = |parts: &[Part], candidate: usize| parts[candidate / PART].left[candidate % PART];
        let at_first: Vec<f64> = candidates.iter().map(|&candidate| left(&parts, candidate)).collect();
        compute_columns(kernel, vectors, &mut parts, &candidates, (chosen.len(), k), pool);
        let (before, width) = (chosen.len(), candidates.len());
        for (column, (&pivot, at_first)) in candidates.iter().zip(at_first).enumerate() {
            let value = left(&parts, pivot);
            // The first is always accepted.
            if chosen.len() < k && value > limit && random.unit() * at_first < value {
                add_column(&mut parts, &Step { pivot, column, width, number: chosen.len() - before, value }, pool);
                chosen.push(pivot);
            }
        }
        let added = chosen.len() - before;
        keep_columns(&mut parts, before, added, k, pool);
        if choice.is_over(&parts, chosen.len(), k) {
            break;
        }
    }
    let left = parts.into_iter().flat_map(|part| part.left).map(|left| left.max(0.0)).collect();
    (chosen, left)
}

/// Vectors of which more than the limit is left, each once, in the order in which they were drawn.
fn candidates(parts: &[Part], choice: &Choice<'_>, random: &mut Random) -> Vec<usize> {
    let all = parts.iter().flat_map(|part| part.range.clone().zip(part.left.iter().copied()));
    let mut sum = 0.0;
    let sums: Vec<(f64, usize)> = all
        .filter(|&(_, left)| left > choice.limit)
        .map(|(vector, left)| {
            sum += left * choice.counts[vector];
            (sum, vector)
        })
        .collect();
    let mut found = Vec::new();
    for _ in 0..CANDIDATES.min(sums.len()) {
        let point = random.unit() * sum;
        let (_, vector) = sums[sums.partition_point(|e| e.0 <= point).min(sums.len() - 1)];
        if !found.contains(&vector) {
            found.push(vector);
        }
    }
    found
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
    let (columns, width) = (Columns::in_double(kernel.clone(), chosen), candidates.len());
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
