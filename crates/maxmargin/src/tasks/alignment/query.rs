//! Sequences, a query with its candidates, and the outputs.

use serde::{Deserialize, Serialize};

use super::{AlignLoss, Alignment, Gaps};
use crate::inference::align::{Op, Path, Reach};

/// The code of a letter or mark that is not known: it matches with a weight of 0.
pub const NONE: u8 = u8::MAX;

/// A sequence of residues.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sequence {
    /// Codes of the letters, [`NONE`] for one that is not known.
    pub letters: Vec<u8>,
    /// Codes of the marks; empty where residues have none.
    pub marks: Vec<u8>,
}

impl Sequence {
    /// Number of residues.
    pub fn len(&self) -> usize {
        self.letters.len()
    }

    /// No residue?
    pub fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// The mark of a residue.
    pub fn mark(&self, i: usize) -> u8 {
        self.marks.get(i).copied().unwrap_or(NONE)
    }
}

/// A sequence, and those that it may be aligned with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    /// The native sequence.
    pub x: Sequence,
    /// The homologue, then the decoys; at least one.
    pub candidates: Vec<Sequence>,
    /// The only alignment of the homologue that counts with [`AlignLoss::ZeroOne`]; None: any. Training has it; who
    /// predicts does not.
    pub given: Option<Path>,
}

impl Query {
    /// Residues of x and of a candidate.
    pub fn residues(&self, candidate: usize) -> u32 {
        (self.x.len() + self.candidates[candidate].len()) as u32
    }
}

/// An output: a candidate, and how x is aligned with it.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aligned {
    /// Its number; 0: the homologue.
    pub candidate: u32,
    /// Residues of x and of the candidate.
    pub residues: u32,
    /// The alignment, x along its columns.
    pub path: Path,
}

// Not derived: that would throw the memory of the old one away.
impl Clone for Aligned {
    fn clone(&self) -> Self {
        Self { candidate: self.candidate, residues: self.residues, path: self.path.clone() }
    }

    fn clone_from(&mut self, other: &Self) {
        (self.candidate, self.residues) = (other.candidate, other.residues);
        self.path.clone_from(&other.path);
    }
}

/// Residues that x and a candidate may have together.
const MOST_RESIDUES: usize = 1 << 30;

/// Does the example fit? Outputs may come from a damaged state.
pub(super) fn check(task: &Alignment, x: &Query, y: &Aligned) -> Result<(), String> {
    let settings = task.settings();
    let at = y.candidate as usize;
    let Some(z) = x.candidates.get(at) else {
        return Err(format!("candidate {at} of {}", x.candidates.len()));
    };
    for sequence in std::iter::once(&x.x).chain(&x.candidates) {
        if !sequence.marks.is_empty() && sequence.marks.len() != sequence.len() {
            return Err(format!("{} marks for {} residues", sequence.marks.len(), sequence.len()));
        }
        if sequence.len() + x.x.len() > MOST_RESIDUES {
            return Err(format!("{} residues are too many to align", sequence.len()));
        }
    }
    if y.residues != x.residues(at) {
        return Err(format!("{} residues where there are {}", y.residues, x.residues(at)));
    }
    check_path(&y.path, (x.x.len(), z.len()), settings.reach, settings.gaps)?;
    let is_ranking = settings.loss == AlignLoss::ZeroOne;
    if is_ranking && at == 0 && x.given.as_ref().is_some_and(|given| *given != y.path) {
        return Err("another alignment of the homologue than the given one".to_owned());
    }
    if !is_ranking && at > 0 {
        return Err(format!("candidate {at}, where the alignment of the first is asked for"));
    }
    Ok(())
}

/// Is it an alignment of sequences of these lengths?
fn check_path(path: &Path, (columns, rows): (usize, usize), reach: Reach, gaps: Gaps) -> Result<(), String> {
    let end = path.end().map(|(x, z)| (x as usize, z as usize));
    let Some((x, z)) = end.filter(|&(x, z)| x <= columns && z <= rows) else {
        return Err(format!("an alignment that goes beyond {columns} and {rows} residues"));
    };
    let is_split = |a: Op, b: Op| a == b && (a == Op::Match || gaps == Gaps::Linear);
    if path.runs.iter().any(|run| run.count == 0) || path.runs.windows(2).any(|pair| is_split(pair[0].op, pair[1].op)) {
        return Err("an alignment in pieces that belong together".to_owned());
    }
    let is_match = |op: Option<Op>| op == Some(Op::Match);
    match reach {
        Reach::Global if (path.x, path.z) != (0, 0) || (x, z) != (columns, rows) => {
            Err("a global alignment that leaves residues out".to_owned())
        }
        Reach::Local if path.runs.is_empty() && (path.x, path.z) == (0, 0) => Ok(()),
        Reach::Local if is_match(path.runs.first().map(|r| r.op)) && is_match(path.runs.last().map(|r| r.op)) => Ok(()),
        Reach::Local => Err("a local alignment that does not begin and end with a match".to_owned()),
        Reach::Global => Ok(()),
    }
}
