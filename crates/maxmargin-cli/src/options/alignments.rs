//! The options of `train align`.

use clap::{Args, ValueEnum};
use maxmargin::data::alignments::Alphabet;

use super::values::{alphabet, gap_grid};

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
}
