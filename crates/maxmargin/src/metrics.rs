//! How good are predictions? Counts first, figures from the counts, so that batches may come in any order.

pub mod alignments;
pub mod graphs;
pub mod label_sets;
pub mod mcnemar;
pub mod parsing;
pub mod tagging;
pub mod taxonomy;

use serde::Serialize;

use crate::error::Result;
use crate::model::Model;
use crate::tasks::multiclass::Costs;

/// The figures of one class.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassFigures {
    /// The class's word.
    pub label: String,
    /// Examples that are of this class.
    pub support: u64,
    /// Examples that are predicted to be of this class, with those whose label the model does not know.
    pub predicted: u64,
    /// Share of the predicted ones that are right; None where none is predicted.
    pub precision: Option<f64>,
    /// Share of the class's examples that are found; None where there is none.
    pub recall: Option<f64>,
    /// `2 right / (support + predicted)`; None where that divides by 0.
    pub f1: Option<f64>,
}

/// What predictions are worth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of examples.
    pub examples: u64,
    /// Mean loss, scaled as in training. NaN without examples.
    pub mean_loss: f64,
    /// Share of right predictions. NaN without examples.
    pub accuracy: f64,
    /// Examples whose label the model does not know. They count as errors with the largest cost of all.
    pub unseen_labels: u64,
    /// The figures of each class.
    pub classes: Vec<ClassFigures>,
    /// How often each truth got each prediction, K x K, row by row, row = truth. Without unseen labels.
    pub confusion: Vec<u64>,
}

/// Counts predictions against truths.
#[derive(Debug, Clone)]
pub struct Evaluator<'m> {
    labels: &'m [String],
    costs: Costs,
    loss_scale: f64,
    confusion: Vec<u64>,
    /// By prediction: examples whose label the model does not know.
    unseen: Vec<u64>,
}

impl<'m> Evaluator<'m> {
    /// Nothing counted yet.
    pub fn new(model: &'m Model) -> Result<Self> {
        let classes = model.labels.len();
        Ok(Self {
            labels: &model.labels,
            costs: model.loss.costs(&model.labels)?,
            loss_scale: model.formulation.loss_scale,
            confusion: vec![0; classes * classes],
            unseen: vec![0; classes],
        })
    }

    /// Counts one example: numbers of classes, None for a label that the model does not know.
    pub fn add(&mut self, truth: Option<u32>, prediction: u32) {
        let prediction = prediction as usize;
        match truth {
            Some(truth) => self.confusion[truth as usize * self.labels.len() + prediction] += 1,
            None => self.unseen[prediction] += 1,
        }
    }

    /// The figures.
    pub fn finish(self) -> Evaluation {
        let classes = self.labels.len();
        let row = |k: usize| &self.confusion[k * classes..][..classes];
        let right: u64 = (0..classes).map(|k| row(k)[k]).sum();
        let unseen_labels: u64 = self.unseen.iter().sum();
        let examples = self.confusion.iter().sum::<u64>() + unseen_labels;
        let costs = self.confusion.iter().zip(self.costs.as_slice()).map(|(&n, cost)| n as f64 * cost).sum::<f64>();
        let loss = costs + unseen_labels as f64 * self.costs.max();
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let figures = |k: usize| {
            let support = row(k).iter().sum();
            let predicted = (0..classes).map(|truth| row(truth)[k]).sum::<u64>() + self.unseen[k];
            ClassFigures {
                label: self.labels[k].clone(),
                support,
                predicted,
                precision: share(row(k)[k], predicted),
                recall: share(row(k)[k], support),
                f1: share(2 * row(k)[k], support + predicted),
            }
        };
        Evaluation {
            examples,
            mean_loss: self.loss_scale * loss / examples as f64,
            accuracy: right as f64 / examples as f64,
            unseen_labels,
            classes: (0..classes).map(figures).collect(),
            confusion: self.confusion,
        }
    }
}
