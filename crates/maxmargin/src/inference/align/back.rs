//! The way back: where the best scores came from.

use super::fill::Found;
use super::{Aligner, Op, Path, Reach, Rows, Run, sum_up};

/// Where the way back is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    i: usize,
    j: usize,
    /// Within a gap that faces rows, of which more is above.
    in_gap: bool,
    /// At the end of a local alignment, which is a match, even if a gap scored more here.
    at_end: bool,
    /// Is the last column that was found the first one of its gap, because opening pays?
    is_closed: bool,
}

/// What led to a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Columns of x alone.
    OnlyX(usize),
    /// Rows of z alone; did the gap begin there?
    OnlyZ(usize, bool),
}

impl Aligner {
    /// Finds the alignment whose score is `value`. All of the table is there where one block has all rows; else H and F of every
    /// `block` rows are kept.
    pub(super) fn way_back(&mut self, rows: Rows<'_>, block: usize, value: f64, found: Found, path: &mut Path) {
        let (count, stride) = (rows.keys.len(), self.columns.stride());
        let is_whole = block >= count;
        let mut sums = std::mem::take(&mut self.row_sums);
        sum_up(rows.open, rows.extend, &mut sums);
        self.row_sums = sums;
        let is_local = self.reach == Reach::Local;
        if is_local && value <= 0.0 {
            return;
        }
        let (i, j) = if is_local { (found.row, 0) } else { (count, self.columns.count) };
        let mut at = Place { i, j, in_gap: false, at_end: is_local, is_closed: false };
        loop {
            // The block of rows above this one.
            let top = if is_whole { 0 } else { at.i.saturating_sub(1) / block * block };
            if !is_whole {
                let from = 2 * (top / block) * stride;
                self.table[..stride].copy_from_slice(&self.kept[from..][..stride]);
                self.f.copy_from_slice(&self.kept[from + stride..][..stride]);
                self.fill(rows, top..at.i, true);
                self.f.copy_from_slice(&self.kept[from + stride..][..stride]);
            }
            if at.at_end {
                // The first column that ends so well.
                at.j = (1..=self.columns.count)
                    .find(|&j| self.matched(rows, top, at.i, j) == value)
                    .expect("a cell as good as the best");
            }
            if self.walk(rows, top, &mut at, path) {
                break;
            }
        }
        (path.x, path.z) = (at.j as u32, at.i as u32);
        path.runs.reverse();
    }

    /// H of a row that is in the table, whose first one is `top`.
    fn h(&self, top: usize, i: usize, j: usize) -> f64 {
        self.table[(i - top) * self.columns.stride() + self.columns.place(j)]
    }

    /// M, as it was worked out.
    fn matched(&self, rows: Rows<'_>, top: usize, i: usize, j: usize) -> f64 {
        let row = self.profile.places[rows.keys[i - 1] as usize] as usize - 1;
        let mut score = self.profile.rows[row * self.columns.stride() + self.columns.place(j)];
        for (_, bonus) in rows.bonuses.row(i - 1).iter().filter(|cell| cell.0 as usize + 1 == j) {
            score += bonus;
        }
        let before = self.h(top, i - 1, j - 1);
        let before = if self.reach == Reach::Local && before <= 0.0 { 0.0 } else { before };
        before + score
    }

    /// Goes back to the beginning, or to row `top`. Is it the beginning?
    fn walk(&self, rows: Rows<'_>, top: usize, at: &mut Place, path: &mut Path) -> bool {
        loop {
            if at.i == 0 {
                // Only a global alignment gets here.
                self.take_columns(at, at.j, path);
                return true;
            }
            if at.i == top {
                return false;
            }
            let is_match = || self.matched(rows, top, at.i, at.j) == self.h(top, at.i, at.j);
            if at.at_end || !at.in_gap && at.j > 0 && is_match() {
                at.at_end = false;
                at.push(path, Op::Match, false);
                (at.i, at.j) = (at.i - 1, at.j - 1);
                if self.reach == Reach::Local && self.h(top, at.i, at.j) <= 0.0 {
                    return true;
                }
                if self.reach == Reach::Global && at.i == 0 && at.j == 0 {
                    return true;
                }
                continue;
            }
            match self.gap(rows, top, *at) {
                Step::OnlyX(k) => {
                    self.take_columns(at, k, path);
                }
                Step::OnlyZ(k, is_whole) => {
                    for i in (at.i - k..at.i).rev() {
                        at.push(path, Op::OnlyZ, rows.open[i] > rows.extend[i]);
                    }
                    at.i -= k;
                    at.in_gap = !is_whole;
                }
            }
        }
    }

    /// So many columns of x alone, from the last one on.
    fn take_columns(&self, at: &mut Place, count: usize, path: &mut Path) {
        for c in (at.j - count..at.j).rev() {
            at.push(path, Op::OnlyX, self.columns.open[c] > self.columns.extend[c]);
        }
        at.j -= count;
    }

    /// The gap that leads to a cell: the shortest whose score is that of the cell, but for rounding.
    fn gap(&self, rows: Rows<'_>, top: usize, at: Place) -> Step {
        let (columns, sums) = (&self.columns, &self.row_sums);
        let Place { i, j, in_gap, .. } = at;
        let h = self.h(top, i, j);
        let length = (columns.count + rows.keys.len() + 16) as f64;
        let scale = h.abs() + columns.sums[columns.count].abs() + sums[rows.keys.len()].abs();
        let enough = if in_gap { f64::INFINITY } else { h - 2.0 * f64::EPSILON * length * scale };
        let (mut best, mut step) = (f64::NEG_INFINITY, Step::OnlyZ(1, true));
        let widest = if in_gap { 0 } else { j };
        for k in 1..=widest.max(i - top) {
            if k <= i - top {
                let (from, cost) = (i - k, sums[i] - sums[i - k + 1]);
                let score = self.h(top, from, j) + rows.open[from] + cost;
                if score > best {
                    (best, step) = (score, Step::OnlyZ(k, true));
                }
            }
            if k <= widest {
                let (from, cost) = (j - k, columns.sums[j] - columns.sums[j - k + 1]);
                let score = self.h(top, i, from) + columns.open[from] + cost;
                if score > best {
                    (best, step) = (score, Step::OnlyX(k));
                }
            }
            if best >= enough {
                return step;
            }
        }
        if top > 0 {
            // It may have begun further up.
            let score = self.f[columns.place(j)] + sums[i] - sums[top];
            if score > best {
                step = Step::OnlyZ(i - top, false);
            }
        }
        step
    }
}

impl Place {
    /// One more column before those that there are. `opens`: does it pay to open a gap with it?
    fn push(&mut self, path: &mut Path, op: Op, opens: bool) {
        match path.runs.last_mut() {
            Some(last) if last.op == op && !self.is_closed => last.count += 1,
            _ => path.runs.push(Run { op, count: 1 }),
        }
        self.is_closed = opens;
    }
}
