//! Row by row through the table, in the widest vectors that the machine has.
//!
//! Additions and maxima only, each cell's in the same order: the bits are the same with any vectors.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

use std::array::from_fn;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::{Columns, LANES, Rows};

type Vector = [f64; LANES];

/// The best end of a local alignment among some rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found {
    pub(super) value: f64,
    /// The first row that has it, from 1.
    pub(super) row: usize,
}

impl Default for Found {
    fn default() -> Self {
        Self { value: f64::NEG_INFINITY, row: 0 }
    }
}

/// From one row to another. See [`Aligner::fill`](super::Aligner::fill).
pub(super) struct Fill<'c> {
    pub(super) is_local: bool,
    pub(super) columns: &'c Columns,
    /// Rows of match scores, to which bonuses are added for a while.
    pub(super) scores: &'c mut [f64],
    pub(super) places: &'c [u32],
    pub(super) rows: Rows<'c>,
    pub(super) range: Range<usize>,
    pub(super) keeps_all: bool,
    pub(super) table: &'c mut [f64],
    pub(super) f: &'c mut [f64],
    pub(super) running: &'c mut [f64],
    /// Match scores without their bonuses.
    pub(super) undo: &'c mut Vec<f64>,
}

pub(super) fn advance_all(fill: Fill<'_>) -> Found {
    Arch::new().dispatch(fill)
}

impl WithSimd for Fill<'_> {
    type Output = Found;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> Found {
        if self.is_local { self.run::<true>() } else { self.run::<false>() }
    }
}

#[inline(always)]
fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

impl Fill<'_> {
    #[inline(always)]
    fn run<const LOCAL: bool>(self) -> Found {
        let Self { columns, scores, places, rows, range, keeps_all, table, f, running, undo, .. } = self;
        let stride = columns.stride();
        let mut found = Found::default();
        for (at, i) in range.clone().enumerate() {
            let begin = (places[rows.keys[i] as usize] as usize - 1) * stride;
            let scores = &mut scores[begin..begin + stride];
            let bonuses = rows.bonuses.row(i);
            // What they were comes back to the bit: a sum that is taken back may be another.
            undo.clear();
            for &(j, bonus) in bonuses {
                let score = &mut scores[columns.place(j as usize + 1)];
                undo.push(*score);
                *score += bonus;
            }
            let (last, next) = if keeps_all {
                let (done, rest) = table.split_at_mut((at + 1) * stride);
                (&done[at * stride..], &mut rest[..stride])
            } else {
                let (even, odd) = table[..2 * stride].split_at_mut(stride);
                if at % 2 == 0 { (&*even, odd) } else { (&*odd, even) }
            };
            let best = advance::<LOCAL>(columns, scores, (rows.open[i], rows.extend[i]), last, next, f, running);
            if LOCAL && best > found.value {
                found = Found { value: best, row: i + 1 };
            }
            for (&(j, _), &old) in bonuses.iter().zip(&*undo).rev() {
                scores[columns.place(j as usize + 1)] = old;
            }
        }
        found
    }
}

#[inline(always)]
fn most_of(a: Vector, b: Vector) -> Vector {
    from_fn(|l| larger(a[l], b[l]))
}

#[inline(always)]
fn sum_of(a: Vector, b: Vector) -> Vector {
    from_fn(|l| a[l] + b[l])
}

#[inline(always)]
fn vectors(numbers: &[f64]) -> &[Vector] {
    numbers.as_chunks().0
}

/// One row; returns the best M of it.
#[inline(always)]
fn advance<const LOCAL: bool>(
    columns: &Columns,
    scores: &[f64],
    (open, extend): (f64, f64),
    last: &[f64],
    next: &mut [f64],
    f: &mut [f64],
    running: &mut [f64],
) -> f64 {
    let (steps, none) = (columns.steps, [f64::NEG_INFINITY; LANES]);
    let (scores, last) = (&vectors(scores)[..steps], &vectors(last)[..steps]);
    let (starts, sums) = (&vectors(&columns.laid_starts)[..steps], &vectors(&columns.laid_sums)[..steps]);
    let next = &mut next.as_chunks_mut::<LANES>().0[..steps];
    let f = &mut f.as_chunks_mut::<LANES>().0[..steps];
    let running = &mut running.as_chunks_mut::<LANES>().0[..steps];
    // The left neighbour of the first column of a run is the last of the run before it.
    let mut left = none;
    left[1..].copy_from_slice(&last[steps - 1][..LANES - 1]);
    let (mut best, mut most) = (none, none);
    // Whole vectors, from their loads to their stores: else the loop over t is the one that is made vectors of.
    let (open, extend) = ([open; LANES], [extend; LANES]);
    for t in 0..steps {
        let above = last[t];
        let before = if LOCAL { most_of(left, [0.0; LANES]) } else { left };
        let m = sum_of(before, scores[t]);
        if LOCAL {
            best = most_of(best, m);
        }
        let gap = most_of(sum_of(above, open), sum_of(f[t], extend));
        let own = most_of(m, gap);
        (f[t], next[t], running[t]) = (gap, own, most);
        most = most_of(most, sum_of(own, starts[t]));
        left = above;
    }
    // What the runs before hand on.
    let (mut before, mut so_far) = (none, f64::NEG_INFINITY);
    for l in 0..LANES {
        before[l] = so_far;
        so_far = larger(so_far, most[l]);
    }
    for t in 0..steps {
        next[t] = most_of(next[t], sum_of(sums[t], most_of(running[t], before)));
    }
    best.iter().fold(f64::NEG_INFINITY, |best, &m| larger(best, m))
}
