//! Row by row through the table, in the widest vectors that the machine has.
//!
//! Additions and maxima only, each cell's in the same order: the bits are the same with any vectors, but for the sign of a zero.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

use super::{Columns, LANES, Rows};

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
    /// Match scores without their bonuses.
    pub(super) undo: &'c mut Vec<f64>,
}

pub(super) fn advance_all(fill: Fill<'_>) -> Found {
    Arch::new().dispatch(fill)
}

impl WithSimd for Fill<'_> {
    type Output = Found;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Found {
        if self.is_local { self.run::<S, true>(simd) } else { self.run::<S, false>(simd) }
    }
}

impl Fill<'_> {
    #[inline(always)]
    fn run<S: Simd, const LOCAL: bool>(self, simd: S) -> Found {
        let Self { columns, scores, places, rows, range, keeps_all, table, f, undo, .. } = self;
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
            let best = advance::<S, LOCAL>(
                simd,
                columns,
                scores,
                (rows.open[i], rows.extend[i]),
                last,
                next,
                &mut f[..stride],
            );
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

/// One row; returns the best M of it.
///
/// The machine's vectors may be narrower than [`LANES`]: then the lanes are worked through in several groups.
#[inline(always)]
fn advance<S: Simd, const LOCAL: bool>(
    simd: S,
    columns: &Columns,
    scores: &[f64],
    (open, extend): (f64, f64),
    last: &[f64],
    next: &mut [f64],
    f: &mut [f64],
) -> f64 {
    const { assert!(LANES.is_multiple_of(S::F64_LANES), "groups of lanes are whole") };
    let (steps, groups) = (columns.steps, LANES / S::F64_LANES);
    let count = steps * groups;
    let (scores, last) = (&S::as_simd_f64s(scores).0[..count], &S::as_simd_f64s(last).0[..count]);
    let starts = &S::as_simd_f64s(&columns.laid_starts).0[..count];
    let sums = &S::as_simd_f64s(&columns.laid_sums).0[..count];
    let next = &mut S::as_mut_simd_f64s(next).0[..count];
    let f = &mut S::as_mut_simd_f64s(f).0[..count];
    let (none, zero) = (simd.splat_f64s(f64::NEG_INFINITY), simd.splat_f64s(0.0));
    let (open, extend) = (simd.splat_f64s(open), simd.splat_f64s(extend));

    // The left neighbour of the first column of a run is the last of the run before it.
    let mut lefts = [f64::NEG_INFINITY; LANES];
    for (l, column) in ends::<S>(last, groups).into_iter().take(LANES - 1).enumerate() {
        lefts[l + 1] = column;
    }
    let mut handed = [f64::NEG_INFINITY; LANES];
    let mut best = none;
    for g in 0..groups {
        let mut left = S::as_simd_f64s(&lefts).0[g];
        let mut most = none;
        for at in (0..steps).map(|t| t * groups + g) {
            let above = last[at];
            let before = if LOCAL { simd.max_f64s(left, zero) } else { left };
            let m = simd.add_f64s(before, scores[at]);
            if LOCAL {
                best = simd.max_f64s(best, m);
            }
            let gap = simd.max_f64s(simd.add_f64s(above, open), simd.add_f64s(f[at], extend));
            let own = simd.max_f64s(m, gap);
            (f[at], next[at]) = (gap, own);
            most = simd.max_f64s(most, simd.add_f64s(own, starts[at]));
            left = above;
        }
        S::as_mut_simd_f64s(&mut handed).0[g] = most;
    }
    // What the runs before hand on.
    let mut so_far = f64::NEG_INFINITY;
    for most in &mut handed {
        so_far = so_far.max(std::mem::replace(most, so_far));
    }
    for g in 0..groups {
        let mut most = S::as_simd_f64s(&handed).0[g];
        for at in (0..steps).map(|t| t * groups + g) {
            let own = next[at];
            next[at] = simd.max_f64s(own, simd.add_f64s(sums[at], most));
            most = simd.max_f64s(most, simd.add_f64s(own, starts[at]));
        }
    }
    simd.reduce_max_f64s(best)
}

/// The last column of each run.
#[inline(always)]
fn ends<S: Simd>(row: &[S::f64s], groups: usize) -> [f64; LANES] {
    let mut ends = [0.0; LANES];
    S::as_mut_simd_f64s(&mut ends).0.copy_from_slice(&row[row.len() - groups..]);
    ends
}
