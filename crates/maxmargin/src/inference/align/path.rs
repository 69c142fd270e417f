//! An alignment as runs of columns.

use serde::{Deserialize, Serialize};

/// What stands in a column of an alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Op {
    /// A residue of each.
    Match,
    /// A residue of the columns' sequence, x, alone.
    OnlyX,
    /// A residue of the rows' sequence, z, alone.
    OnlyZ,
}

/// Some columns of a kind. Two runs of the same kind of gap beside each other are two gaps, each of them opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// What stands in them.
    pub op: Op,
    /// How many they are, at least one.
    pub count: u32,
}

/// An alignment: where it begins, and its columns.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Path {
    /// Residues of x before it.
    pub x: u32,
    /// Residues of z before it.
    pub z: u32,
    /// Its columns.
    pub runs: Vec<Run>,
}

// Not derived: that would throw the memory of the old one away.
impl Clone for Path {
    fn clone(&self) -> Self {
        Self { x: self.x, z: self.z, runs: self.runs.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        (self.x, self.z) = (other.x, other.z);
        self.runs.clone_from(&other.runs);
    }
}

impl Path {
    /// Without columns, at the beginning of both.
    pub fn clear(&mut self) {
        (self.x, self.z) = (0, 0);
        self.runs.clear();
    }

    /// One more column at the end, or some.
    pub fn push(&mut self, op: Op, count: u32) {
        match self.runs.last_mut() {
            _ if count == 0 => {}
            Some(last) if last.op == op => last.count += count,
            _ => self.runs.push(Run { op, count }),
        }
    }

    /// The pairs of residues that are matched, of x and of z, ascending.
    pub fn matches(&self) -> impl Iterator<Item = (u32, u32)> {
        self.places()
            .filter(|(run, ..)| run.op == Op::Match)
            .flat_map(|(run, x, z)| (0..run.count).map(move |k| (x + k, z + k)))
    }

    /// The runs, each with the residues of x and of z before it.
    pub fn places(&self) -> impl Iterator<Item = (Run, u32, u32)> {
        let (mut x, mut z) = (self.x, self.z);
        self.runs.iter().map(move |&run| {
            let before = (run, x, z);
            x += if run.op == Op::OnlyZ { 0 } else { run.count };
            z += if run.op == Op::OnlyX { 0 } else { run.count };
            before
        })
    }

    /// Residues of x and of z up to its end; None where they are too many to count.
    pub fn end(&self) -> Option<(u32, u32)> {
        self.runs.iter().try_fold((self.x, self.z), |(x, z), run| {
            let x = if run.op == Op::OnlyZ { Some(x) } else { x.checked_add(run.count) };
            let z = if run.op == Op::OnlyX { Some(z) } else { z.checked_add(run.count) };
            x.zip(z)
        })
    }

    /// Without the gaps at both ends: what is left begins and ends with a match, or is empty.
    pub fn trim(&mut self) {
        let is_match = |run: &Run| run.op == Op::Match;
        let Some(first) = self.runs.iter().position(is_match) else { return self.clear() };
        let last = self.runs.iter().rposition(is_match).unwrap_or(first);
        let (_, x, z) = self.places().nth(first).unwrap_or((self.runs[first], 0, 0));
        (self.x, self.z) = (x, z);
        self.runs.truncate(last + 1);
        self.runs.drain(..first);
    }
}
