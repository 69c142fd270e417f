//! How two alignments of the same sequences agree, and the losses as scores of cells.

use std::cmp::Ordering;

use super::{AlignLoss, AlignScratch, Alignment, Own};
use crate::inference::align::Path;
use crate::tasks::alignment::{Aligned, Query};
use crate::weights::Weights;

/// How far from its place a match may be for q4.
pub const WINDOW: u32 = 4;

/// Counts of an alignment beside the true one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agreement {
    /// True matches.
    pub matches: u32,
    /// Those that both have.
    pub right: u32,
    /// Those whose residue of x is matched at most [`WINDOW`] residues of z away.
    pub near: u32,
    /// Matches of the other alignment.
    pub found: u32,
    /// Residues of x that are matched in both, right or wrong, and
    pub shared_x: u32,
    /// those of z.
    pub shared_z: u32,
}

impl Agreement {
    /// Of a true alignment and another one.
    pub fn of(truth: &Path, other: &Path) -> Self {
        let mut counts = Self::default();
        let (mut own, mut others) = (truth.matches().peekable(), other.matches().peekable());
        counts.matches = truth.matches().count() as u32;
        counts.found = other.matches().count() as u32;
        while let (Some(&(i, j)), Some(&(k, l))) = (own.peek(), others.peek()) {
            let order = i.cmp(&k);
            if order == Ordering::Equal {
                counts.shared_x += 1;
                counts.right += u32::from(j == l);
                counts.near += u32::from(j.abs_diff(l) <= WINDOW);
            }
            if order != Ordering::Greater {
                own.next();
            }
            if order != Ordering::Less {
                others.next();
            }
        }
        let (mut own, mut others) = (truth.matches().peekable(), other.matches().peekable());
        while let (Some(&(_, j)), Some(&(_, l))) = (own.peek(), others.peek()) {
            let order = j.cmp(&l);
            counts.shared_z += u32::from(order == Ordering::Equal);
            if order != Ordering::Greater {
                own.next();
            }
            if order != Ordering::Less {
                others.next();
            }
        }
        counts
    }

    /// Share of true matches that were found; 1 where there are none.
    pub fn q(&self) -> f64 {
        if self.matches == 0 { 1.0 } else { f64::from(self.right) / f64::from(self.matches) }
    }

    /// Share of true matches that were found about where they are; 1 where there are none.
    pub fn q4(&self) -> f64 {
        if self.matches == 0 { 1.0 } else { f64::from(self.near) / f64::from(self.matches) }
    }

    /// Residues of both sequences whose partner is not the true one.
    pub fn wrong(&self) -> u32 {
        // Matched in one at least, less those that have the same partner in both.
        2 * (self.matches + self.found) - self.shared_x - self.shared_z - 2 * self.right
    }
}

/// Visits the matches that only one of two alignments has. Is it the first one's?
pub(super) fn each_difference(truth: &Path, other: &Path, mut visit: impl FnMut((u32, u32), bool)) {
    let (mut own, mut others) = (truth.matches().peekable(), other.matches().peekable());
    loop {
        let is_own = match (own.peek(), others.peek()) {
            (None, None) => return,
            (Some(a), Some(b)) if a == b => {
                own.next();
                others.next();
                continue;
            }
            (Some(a), Some(b)) => a < b,
            (a, _) => a.is_some(),
        };
        let pair = if is_own { own.next() } else { others.next() };
        if let Some(pair) = pair {
            visit(pair, is_own);
        }
    }
}

impl Alignment {
    /// Prepares the decoder for the alignment of x with its homologue, `weight` times the loss added but for a constant.
    pub(super) fn add_loss(&self, w: &Weights, x: &Query, truth: &Aligned, weight: f64, scratch: &mut AlignScratch) {
        let z = &x.candidates[0];
        let mut matches = std::mem::take(&mut scratch.matches);
        matches.clear();
        matches.extend(truth.path.matches());
        let (count, rows) = (matches.len().max(1) as f64, z.len() as u32);
        match self.settings.loss {
            AlignLoss::Hamming => {
                let bonus = weight / f64::from(truth.residues.max(1));
                add_bonuses(&matches, rows, 0, -2.0 * bonus, scratch);
                let (mut free_x, mut free_z) =
                    (std::mem::take(&mut scratch.free_x), std::mem::take(&mut scratch.free_z));
                for (free, len) in [(&mut free_x, x.x.len()), (&mut free_z, z.len())] {
                    free.clear();
                    free.resize(len, true);
                }
                for &(i, j) in &matches {
                    (free_x[i as usize], free_z[j as usize]) = (false, false);
                }
                self.prepare(w, x, z, Some(&Own { free_x: &free_x, free_z: &free_z, bonus }), scratch);
                (scratch.free_x, scratch.free_z) = (free_x, free_z);
            }
            loss => {
                let window = if loss == AlignLoss::Q4 { WINDOW } else { 0 };
                add_bonuses(&matches, rows, window, -weight / count, scratch);
                self.prepare(w, x, z, None, scratch);
            }
        }
        scratch.matches = matches;
    }
}

/// A bonus for each cell of a row at most `window` away from that of a true match, in the same column.
fn add_bonuses(matches: &[(u32, u32)], rows: u32, window: u32, bonus: f64, scratch: &mut AlignScratch) {
    let bonuses = &mut scratch.bonuses;
    let mut first = 0;
    for row in 0..rows {
        bonuses.next_row();
        while matches.get(first).is_some_and(|&(_, j)| j + window < row) {
            first += 1;
        }
        for &(i, _) in matches[first..].iter().take_while(|&&(_, j)| j <= row + window) {
            bonuses.add(i, bonus);
        }
    }
}
