//! `--prior`: known scores that training goes on from.

use maxmargin::data::alignments::{Alphabets, Substitutions};
use maxmargin::data::input::Input;
use maxmargin::tasks::alignment::Alignment;
use maxmargin::weights::Weights;

use crate::failure::{Failure, Result};
use crate::options::{GapCosts, PriorName};
use crate::streams::note;
use crate::train::Args;

/// What gaps cost by BLOSUM62: the first column, and every further one.
const BLOSUM62_GAPS: [f64; 2] = [11.0, 1.0];

/// Known scores.
pub(super) struct Known {
    pub(super) name: String,
    /// What gaps cost by them.
    pub(super) gaps: Vec<f64>,
    /// All that as weights of the task.
    pub(super) weights: Weights,
}

/// The scores that were asked for, where some were.
pub(super) fn known(args: &Args, alphabets: &Alphabets, task: &Alignment) -> Result<Option<Known>> {
    let Some(prior) = &args.align.prior else { return Ok(None) };
    let (name, table) = match prior {
        PriorName::Blosum62 => ("BLOSUM62".to_owned(), Substitutions::blosum62()?),
        PriorName::File(path) => {
            let input = Input::open(path).map_err(|error| {
                Failure::Data(format!("--prior: {error} (it takes blosum62, or a file with a table of substitutions)"))
            })?;
            (path.display().to_string(), Substitutions::read(input)?)
        }
    };
    let gaps = match &args.align.prior_gaps {
        Some(GapCosts(costs)) => costs.clone(),
        None => BLOSUM62_GAPS.to_vec(),
    };
    let letters: String = alphabets.letters.letters().iter().collect();
    let weights = table.weights(alphabets, task, &gaps).map_err(|what| {
        let way_out = "name with --alphabet only letters that the table has; others then match with a weight of 0";
        Failure::Data(format!("--prior {name}: {what}; training has weights for {letters} ({way_out})"))
    })?;
    if *prior == PriorName::Blosum62 && letters.chars().all(|letter| "ACGTUN".contains(letter)) {
        note(&format!("--prior: BLOSUM62 is for amino acids, and the letters here, {letters}, look like nucleotides"));
    }
    Ok(Some(Known { name, gaps, weights }))
}
