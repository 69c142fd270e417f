//! A trained model of alignments: letters, what gaps are, and the weights.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::container::{Container, Data, Tensor, damaged, to_json};
use super::{Summary, TaskKind, check_formulation, check_weights};
use crate::data::alignments::{Alphabet, Alphabets};
use crate::error::{Result, invalid};
use crate::inference::align::Reach;
use crate::problem::Formulation;
use crate::task::Task;
use crate::tasks::alignment::{AlignLoss, AlignSettings, Alignment, Gaps};
use crate::weights::Weights;

/// All that aligning needs, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct PairAligner {
    /// The letters, in the order of their numbers.
    pub letters: String,
    /// The marks of residues, likewise; empty: they have none.
    pub marks: String,
    /// How much of the sequences is aligned.
    pub reach: Reach,
    /// What gaps cost.
    pub gaps: Gaps,
    /// What an error costs.
    pub loss: AlignLoss,
    /// The problem that training solved.
    pub formulation: Formulation,
    /// CRC-32 of the bytes of the training data.
    pub data_checksum: u32,
    /// What training found.
    pub summary: Summary,
    /// The known scores that training began with, where it did.
    pub prior: Option<Prior>,
    /// Did equal letters share a score besides their own, and different ones?
    pub is_tied: bool,
    /// The weights, shares of the prior and of ties among them, as [`Alignment`] lays them out.
    pub weights: Weights,
}

/// Known scores, of which the weights have a multiple in them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    /// What they are called.
    pub name: String,
    /// Their costs of gaps: of each column, or of the first column and of every further one.
    #[serde(with = "super::exact::list")]
    pub gaps: Vec<f64>,
    /// How many times they are in the weights.
    #[serde(with = "super::exact")]
    pub factor: f64,
}

impl PairAligner {
    /// Letters and marks.
    pub fn alphabets(&self) -> Result<Alphabets> {
        let read = |text: &str| Alphabet::new(text.chars()).or_else(|what| invalid(format!("its letters: {what}")));
        Ok(Alphabets { letters: read(&self.letters)?, marks: read(&self.marks)? })
    }

    /// The task that the model was trained for.
    pub fn task(&self) -> Result<Alignment> {
        let Alphabets { letters, marks } = self.alphabets()?;
        if letters.letters().is_empty() {
            return invalid("no letters");
        }
        Ok(Alignment::new(AlignSettings {
            letters: letters.letters().len() as u32,
            marks: marks.letters().len() as u32,
            reach: self.reach,
            gaps: self.gaps,
            loss: self.loss,
            gap_grid: AlignSettings::GRID.to_vec(),
        }))
    }

    /// Do the parts fit together? Saving and loading check it; whoever builds a model by hand may.
    pub fn check(&self) -> Result<()> {
        check_formulation(&self.formulation)?;
        let costs = match self.gaps {
            Gaps::Linear => 1,
            Gaps::Affine => 2,
        };
        let fits = |prior: &Prior| {
            let are_costs = prior.gaps.len() == costs && prior.gaps.iter().all(|cost| *cost >= 0.0 && cost.is_finite());
            are_costs && prior.factor.is_finite()
        };
        if !self.prior.iter().all(fits) {
            return invalid("its prior's costs of gaps and its factor are none");
        }
        check_weights(self.task(), "the alphabet", &self.weights)
    }

    /// The weights laid out for other letters and marks, zeros for what this model does not know: where a warm start on other data
    /// begins. None where gaps are others, or no letter is in common.
    pub fn weights_over(&self, alphabets: &Alphabets, task: &Alignment) -> Option<Weights> {
        let (own, own_task) = (self.alphabets().ok()?, self.task().ok()?);
        if task.settings().gaps != self.gaps {
            return None;
        }
        let mut w = Weights::zeros(task.dimension());
        let gaps = task.blocks()[1].width as usize;
        let mut copy = |from: usize, to: usize| w.as_mut_slice()[to] = self.weights.as_slice()[from];
        let mut is_any = false;
        for (block, (theirs, ours)) in [(0, (&own.letters, &alphabets.letters)), (2, (&own.marks, &alphabets.marks))] {
            let (Some(from), Some(to)) = (own_task.blocks().get(block), task.blocks().get(block)) else { continue };
            let known = |letter: &char| u32::try_from(theirs.letters().iter().position(|l| l == letter)?).ok();
            let codes: Vec<Option<u32>> = ours.letters().iter().map(known).collect();
            let (many, few) = (ours.letters().len(), theirs.letters().len() as u32);
            for (a, code) in codes.iter().enumerate() {
                for (b, other) in codes.iter().enumerate() {
                    if let (Some(code), Some(other)) = (code, other) {
                        copy(from.at(0, code * few + other), to.at(0, (a * many + b) as u32));
                        is_any |= block == 0;
                    }
                }
                if let (2, Some(code)) = (block, code) {
                    let (from, to) = (own_task.blocks()[3], task.blocks()[3]);
                    (0..gaps).for_each(|k| copy(from.at(0, code * gaps as u32) + k, to.at(0, (a * gaps) as u32) + k));
                }
            }
        }
        (0..gaps).for_each(|k| copy(own_task.blocks()[1].at(0, 0) + k, task.blocks()[1].at(0, 0) + k));
        is_any.then_some(w)
    }

    pub(super) fn container(&self) -> Result<Container<'_>> {
        let record = Record {
            task: TaskKind::Align,
            letters: Cow::Borrowed(&self.letters),
            marks: Cow::Borrowed(&self.marks),
            reach: self.reach,
            gaps: self.gaps,
            loss: self.loss,
            formulation: self.formulation,
            data_checksum: self.data_checksum,
            summary: Cow::Borrowed(&self.summary),
            prior: self.prior.as_ref().map(Cow::Borrowed),
            is_tied: self.is_tied,
        };
        let weights = Tensor::list(Data::F64(Cow::Borrowed(self.weights.as_slice())));
        Ok(Container { record: to_json(&record)?, tensors: BTreeMap::from([(WEIGHTS.to_owned(), weights)]) })
    }
}

/// The one tensor of the file.
const WEIGHTS: &str = "weights";

/// Everything but the weights.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    task: TaskKind,
    letters: Cow<'a, str>,
    marks: Cow<'a, str>,
    reach: Reach,
    gaps: Gaps,
    loss: AlignLoss,
    formulation: Formulation,
    data_checksum: u32,
    summary: Cow<'a, Summary>,
    /// Files from before there were priors have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    prior: Option<Cow<'a, Prior>>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_tied: bool,
}

/// The model in a container.
pub(super) fn model(mut container: Container<'static>) -> Result<PairAligner> {
    let record: Record<'_> = match serde_json::from_str(&container.record) {
        Ok(record) => record,
        Err(e) => return damaged(e),
    };
    let Data::F64(weights) = container.take(WEIGHTS)?.1 else { return damaged("weights are not numbers") };
    let aligner = PairAligner {
        letters: record.letters.into_owned(),
        marks: record.marks.into_owned(),
        reach: record.reach,
        gaps: record.gaps,
        loss: record.loss,
        formulation: record.formulation,
        data_checksum: record.data_checksum,
        summary: record.summary.into_owned(),
        prior: record.prior.map(Cow::into_owned),
        is_tied: record.is_tied,
        weights: weights.into_owned().into(),
    };
    aligner.check()?;
    Ok(aligner)
}
