//! The options of `train align`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use maxmargin::data::alignments::Alphabet;

use super::values::{alphabet, gap_costs, gap_grid};

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReachName {
    /// The parts of both sequences that go together best (Smith and Waterman)
    Local,
    /// Both sequences from end to end (Needleman and Wunsch)
    Global,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GapsName {
    /// Every column of a gap costs the same
    Linear,
    /// The first column of a gap costs something else than every further one
    Affine,
}

/// Costs of gaps to be tried.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GapGrid(pub(crate) Vec<f64>);

/// What gaps cost: a column, or the first one and every further one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GapCosts(pub(crate) Vec<f64>);

/// Scores that are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PriorName {
    Blosum62,
    File(PathBuf),
}

impl PriorName {
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Blosum62 => None,
            Self::File(path) => Some(path),
        }
    }
}

impl From<&str> for PriorName {
    fn from(text: &str) -> Self {
        if text.eq_ignore_ascii_case("blosum62") { Self::Blosum62 } else { Self::File(text.into()) }
    }
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Alignment")]
pub(crate) struct AlignOptions {
    /// How much of two sequences is aligned [default: local]
    #[arg(long, value_name = "A")]
    pub(crate) alignment: Option<ReachName>,
    /// What gaps cost [default: affine]
    #[arg(long, value_name = "G")]
    pub(crate) gaps: Option<GapsName>,
    /// The letters that have weights: protein (20), dna (4) or a list of them; others match with a weight of 0 [default: all
    /// letters of the training data]
    #[arg(long, value_name = "protein|dna|LETTERS", value_parser = alphabet)]
    pub(crate) alphabet: Option<Alphabet>,
    /// Costs of gaps that mle tries on the training data [default: 0.1,0.2,0.5,1,2,4,8,12]
    #[arg(long, value_name = "G,G,...", value_parser = gap_grid, allow_hyphen_values = true)]
    pub(crate) gap_grid: Option<GapGrid>,
    /// Known scores to learn on from: training finds their scale, and what to change. blosum62, or a file in the form of NCBI's
    /// matrices
    #[arg(long, value_name = "blosum62|FILE")]
    pub(crate) prior: Option<PriorName>,
    /// What gaps cost by these: the first column and every further one; a single cost for --gaps linear [default: 11,1 for blosum62]
    #[arg(long, value_name = "OPEN,EXTEND", value_parser = gap_costs, allow_hyphen_values = true)]
    pub(crate) prior_gaps: Option<GapCosts>,
    /// Besides the score of each pair of letters learn one that all pairs of equal letters share, and one for all of different
    /// letters (likewise of marks): what few examples show of some letters then counts for all
    #[arg(long)]
    pub(crate) tied: bool,
}
