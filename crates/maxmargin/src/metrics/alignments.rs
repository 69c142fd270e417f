//! What alignments and ranks are worth.

use serde::Serialize;

use crate::tasks::alignment::Agreement;

/// The figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of native sequences.
    pub examples: u64,
    /// Those that have decoys.
    pub ranked: u64,
    /// Share of these whose homologue does not score more than every decoy; None where none has decoys.
    pub error: Option<f64>,
    /// Their mean rank of the homologue among the decoys, from 1; a decoy that scores the same comes first.
    pub mean_rank: Option<f64>,
    /// Those whose true alignment has matches.
    pub aligned: u64,
    /// Their mean share of true matches that were found; None where there are none.
    pub q_score: Option<f64>,
    /// The same where a residue may be matched up to 4 residues off.
    pub q4_score: Option<f64>,
    /// True matches found, of all.
    pub match_recall: Option<f64>,
    /// True ones among the matches found, of all.
    pub match_precision: Option<f64>,
}

/// Counts, to be added up.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evaluator {
    examples: u64,
    ranked: u64,
    errors: u64,
    ranks: u64,
    aligned: u64,
    q: f64,
    q4: f64,
    right: u64,
    matches: u64,
    found: u64,
}

/// The rank of the first of some scores, from 1: others that score as much come before it.
pub fn rank(scores: &[f64]) -> u64 {
    let Some((own, decoys)) = scores.split_first() else { return 1 };
    1 + decoys.iter().filter(|decoy| *decoy >= own).count() as u64
}

impl Evaluator {
    /// A native sequence: the rank of its homologue, where it has decoys, and how its alignment agrees with the true one.
    pub fn add(&mut self, rank: Option<u64>, agreement: Agreement) {
        self.examples += 1;
        if let Some(rank) = rank {
            self.ranked += 1;
            self.errors += u64::from(rank > 1);
            self.ranks += rank;
        }
        self.found += u64::from(agreement.found);
        if agreement.matches > 0 {
            self.aligned += 1;
            self.q += agreement.q();
            self.q4 += agreement.q4();
            self.right += u64::from(agreement.right);
            self.matches += u64::from(agreement.matches);
        }
    }

    /// Adds the counts of other sequences.
    pub fn merge(&mut self, other: &Self) {
        self.examples += other.examples;
        self.ranked += other.ranked;
        self.errors += other.errors;
        self.ranks += other.ranks;
        self.aligned += other.aligned;
        self.q += other.q;
        self.q4 += other.q4;
        self.right += other.right;
        self.matches += other.matches;
        self.found += other.found;
    }

    /// The figures.
    pub fn finish(&self) -> Evaluation {
        let share = |part: f64, of: u64| (of > 0).then(|| part / of as f64);
        Evaluation {
            examples: self.examples,
            ranked: self.ranked,
            error: share(self.errors as f64, self.ranked),
            mean_rank: share(self.ranks as f64, self.ranked),
            aligned: self.aligned,
            q_score: share(self.q, self.aligned),
            q4_score: share(self.q4, self.aligned),
            match_recall: share(self.right as f64, self.matches),
            match_precision: share(self.right as f64, self.found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_hand() {
        assert_eq!([rank(&[]), rank(&[1.0]), rank(&[2.0, 1.0]), rank(&[2.0, 2.0, 3.0, 1.0])], [1, 1, 1, 3]);
        let mut evaluator = Evaluator::default();
        evaluator.add(Some(1), Agreement { matches: 4, right: 2, near: 3, found: 5, shared_x: 4, shared_z: 3 });
        let mut other = Evaluator::default();
        other.add(Some(4), Agreement { matches: 2, right: 2, near: 2, found: 3, shared_x: 2, shared_z: 2 });
        other.add(None, Agreement::default());
        evaluator.merge(&other);
        let expected = Evaluation {
            examples: 3,
            ranked: 2,
            error: Some(0.5),
            mean_rank: Some(2.5),
            aligned: 2,
            q_score: Some(0.75),
            q4_score: Some(0.875),
            match_recall: Some(4.0 / 6.0),
            match_precision: Some(0.5),
        };
        assert_eq!(evaluator.finish(), expected);
        let none = Evaluator::default().finish();
        assert_eq!((none.error, none.q_score, none.match_precision), (None, None, None));
    }
}
