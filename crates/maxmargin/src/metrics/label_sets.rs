//! What predicted sets of labels are worth.
//!
//! A label that the model does not know counts as one of the truth that was not found: in all figures of sets and in the micro
//! averages. The figures of single labels, and with them the macro average, are of the labels that the model knows.

use std::collections::BTreeMap;

use serde::Serialize;

/// The figures of one label.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelFigures {
    /// The label.
    pub label: String,
    /// Examples that have it.
    pub support: u64,
    /// Examples that are predicted to have it.
    pub predicted: u64,
    /// Examples that are predicted to have it, and do.
    pub correct: u64,
    /// Share of the predicted ones that are right; None where none is predicted.
    pub precision: Option<f64>,
    /// Share of the label's examples that are found; None where there is none.
    pub recall: Option<f64>,
    /// `2 correct / (support + predicted)`; None where that divides by 0.
    pub f1: Option<f64>,
}

/// What predictions are worth. What divides by 0 is 0, as scikit-learn's `zero_division=0` has it; means over examples are NaN
/// without examples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of examples.
    pub examples: u64,
    /// The exact match, under the name that all tasks have in common.
    pub accuracy: f64,
    /// Share of wrong labels among all labels of all examples: those of the model, present or not.
    pub hamming_loss: f64,
    /// Share of the predicted labels of all examples that are right.
    pub micro_precision: f64,
    /// Share of the true labels of all examples that are found.
    pub micro_recall: f64,
    /// `2 correct / (true + predicted)` of all examples' labels.
    pub micro_f1: f64,
    /// Mean F1 of the model's labels; a label that is neither true nor predicted anywhere counts 0.
    pub macro_f1: f64,
    /// Share of examples with exactly the true set.
    pub exact_match: f64,
    /// Mean F1 of an example's set: `2 correct / (true + predicted)`; 1 where both sets are empty.
    pub mean_f1: f64,
    /// Mean share of labels of either set that are in both; 1 where both sets are empty.
    pub mean_jaccard: f64,
    /// Mean number of true labels of an example.
    pub true_labels: f64,
    /// Mean number of predicted labels of an example.
    pub predicted_labels: f64,
    /// True labels that the model does not know.
    pub unseen_labels: u64,
    /// The figures of each of the model's labels.
    pub labels: Vec<LabelFigures>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    support: u64,
    predicted: u64,
    correct: u64,
}

/// Counts predicted sets against true ones, an example at a time and in any order.
#[derive(Debug, Clone)]
pub struct Evaluator<'m> {
    labels: &'m [String],
    /// By label.
    counts: Vec<Counts>,
    /// How many examples have so many true labels, predicted labels, and labels that are both: means over them do not depend on
    /// the order of examples.
    sets: BTreeMap<(u32, u32, u32), u64>,
    unseen: u64,
}

impl<'m> Evaluator<'m> {
    /// Nothing counted yet: for a model with these labels.
    pub fn new(labels: &'m [String]) -> Self {
        Self { labels, counts: vec![Counts::default(); labels.len()], sets: BTreeMap::new(), unseen: 0 }
    }

    /// Counts one example: ascending numbers of labels, and how many labels of the truth the model does not know.
    ///
    /// # Panics
    /// If a number is not that of a label.
    pub fn add(&mut self, truth: &[u32], unseen: u32, prediction: &[u32]) {
        debug_assert!([truth, prediction].iter().all(|set| set.is_sorted_by(|a, b| a < b)), "labels ascend");
        for &label in truth {
            self.counts[label as usize].support += 1;
        }
        let mut both = 0;
        for &label in prediction {
            let counts = &mut self.counts[label as usize];
            let correct = truth.binary_search(&label).is_ok();
            counts.predicted += 1;
            counts.correct += u64::from(correct);
            both += u32::from(correct);
        }
        self.unseen += u64::from(unseen);
        *self.sets.entry((truth.len() as u32 + unseen, prediction.len() as u32, both)).or_default() += 1;
    }

    /// Adds what was counted elsewhere, of the same model.
    ///
    /// # Panics
    /// If the other one has another number of labels.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.counts.len(), other.counts.len(), "counts of the same model");
        for (own, other) in self.counts.iter_mut().zip(&other.counts) {
            own.support += other.support;
            own.predicted += other.predicted;
            own.correct += other.correct;
        }
        for (&set, &count) in &other.sets {
            *self.sets.entry(set).or_default() += count;
        }
        self.unseen += other.unseen;
    }

    /// The figures.
    pub fn finish(&self) -> Evaluation {
        let examples: u64 = self.sets.values().sum();
        let total = |of: fn(&(u32, u32, u32)) -> u32| {
            self.sets.iter().map(|(set, count)| count * u64::from(of(set))).sum::<u64>()
        };
        let (support, predicted, correct) = (total(|set| set.0), total(|set| set.1), total(|set| set.2));
        let mean = |of: fn(f64, f64, f64) -> f64| {
            let of = |(set, &count): (&(u32, u32, u32), &u64)| {
                count as f64 * of(f64::from(set.0), f64::from(set.1), f64::from(set.2))
            };
            self.sets.iter().map(of).sum::<f64>() / examples as f64
        };
        let ratio = |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 };
        let exact: u64 = self.sets.iter().filter(|(set, _)| set.0 == set.2 && set.1 == set.2).map(|(_, n)| n).sum();
        let exact_match = exact as f64 / examples as f64;
        let labels: Vec<LabelFigures> = self.labels.iter().zip(&self.counts).map(LabelFigures::of).collect();
        let share = |part: u64, whole: u64| ratio(part as f64, whole as f64);
        Evaluation {
            examples,
            accuracy: exact_match,
            hamming_loss: (support + predicted - 2 * correct) as f64 / (examples as f64 * self.labels.len() as f64),
            micro_precision: share(correct, predicted),
            micro_recall: share(correct, support),
            micro_f1: share(2 * correct, support + predicted),
            macro_f1: ratio(labels.iter().map(|figures| figures.f1.unwrap_or(0.0)).sum(), labels.len() as f64),
            exact_match,
            mean_f1: mean(|truth, told, both| if truth + told > 0.0 { 2.0 * both / (truth + told) } else { 1.0 }),
            mean_jaccard: mean(|truth, told, both| if truth + told > 0.0 { both / (truth + told - both) } else { 1.0 }),
            true_labels: support as f64 / examples as f64,
            predicted_labels: predicted as f64 / examples as f64,
            unseen_labels: self.unseen,
            labels,
        }
    }
}

impl LabelFigures {
    fn of((label, counts): (&String, &Counts)) -> Self {
        let Counts { support, predicted, correct } = *counts;
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        Self {
            label: label.clone(),
            support,
            predicted,
            correct,
            precision: share(correct, predicted),
            recall: share(correct, support),
            f1: share(2 * correct, support + predicted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Truth, unseen labels and prediction.
    type Case = (&'static [u32], u32, &'static [u32]);

    fn evaluator<'m>(labels: &'m [String], cases: &[Case]) -> Evaluator<'m> {
        let mut evaluator = Evaluator::new(labels);
        for &(truth, unseen, prediction) in cases {
            evaluator.add(truth, unseen, prediction);
        }
        evaluator
    }

    fn labels(count: u32) -> Vec<String> {
        (0..count).map(|label| label.to_string()).collect()
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn figures_by_hand() {
        // Four labels, the last one never. Correct 2, true 4, predicted 4.
        let labels = labels(4);
        let cases: [Case; 4] = [(&[0, 1], 0, &[0, 1]), (&[1, 2], 0, &[0]), (&[], 0, &[]), (&[], 0, &[2])];
        let figures = evaluator(&labels, &cases).finish();
        assert_eq!((figures.examples, figures.exact_match, figures.accuracy), (4, 0.5, 0.5));
        assert_eq!(figures.hamming_loss, 4.0 / 16.0);
        assert_eq!((figures.micro_precision, figures.micro_recall, figures.micro_f1), (0.5, 0.5, 0.5));
        // F1: 2/3, 2/3, 0, and 0 for the label that never is.
        assert!(near(figures.macro_f1, 1.0 / 3.0), "{}", figures.macro_f1);
        assert!(near(figures.mean_f1, 0.5) && near(figures.mean_jaccard, 0.5));
        assert_eq!((figures.true_labels, figures.predicted_labels), (1.0, 1.0));
        let first = &figures.labels[0];
        assert_eq!((first.support, first.predicted, first.correct), (1, 2, 1));
        assert_eq!((first.precision, first.recall), (Some(0.5), Some(1.0)));
        let last = &figures.labels[3];
        assert_eq!((last.support, last.precision, last.recall, last.f1), (0, None, None, None));
    }

    #[test]
    fn unseen_labels_are_misses() {
        let labels = labels(2);
        let figures = evaluator(&labels, &[(&[0], 1, &[0]), (&[], 2, &[])]).finish();
        assert_eq!((figures.unseen_labels, figures.exact_match), (3, 0.0));
        assert_eq!((figures.hamming_loss, figures.micro_recall, figures.micro_precision), (0.75, 0.25, 1.0));
        assert_eq!((figures.macro_f1, figures.mean_jaccard), (0.5, 0.25));
    }

    #[test]
    fn nothing_divides_by_zero() {
        let labels = labels(3);
        let figures = evaluator(&labels, &[(&[], 0, &[])]).finish();
        assert_eq!((figures.micro_f1, figures.macro_f1, figures.mean_f1, figures.exact_match), (0.0, 0.0, 1.0, 1.0));
        let none = Evaluator::new(&labels).finish();
        assert!(none.hamming_loss.is_nan() && none.exact_match.is_nan() && none.micro_f1 == 0.0);
        assert!(serde_json::to_string(&none).unwrap().contains("\"hamming_loss\":null"));
    }

    #[test]
    fn batches_in_any_order_give_the_same_figures() {
        let labels = labels(7);
        let draw = |i: u32| {
            (0..7).filter(|label| i.wrapping_mul(2_654_435_761).rotate_left(*label) % 3 == 0).collect::<Vec<u32>>()
        };
        let sets: Vec<(Vec<u32>, u32, Vec<u32>)> = (0..100_u32).map(|i| (draw(i), i % 2, draw(i / 2 + 1))).collect();
        let mut forward = Evaluator::new(&labels);
        for (truth, unseen, told) in &sets {
            forward.add(truth, *unseen, told);
        }
        let mut backward = Evaluator::new(&labels);
        for batch in sets.rchunks(13) {
            let mut part = Evaluator::new(&labels);
            for (truth, unseen, told) in batch {
                part.add(truth, *unseen, told);
            }
            backward.merge(&part);
        }
        assert_eq!(forward.finish(), backward.finish());
    }
}
