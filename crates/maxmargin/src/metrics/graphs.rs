//! What predicted labels of graphs are worth.
//!
//! Variables with the same number of labels share their labels: figures of single labels are given for each size of domain
//! apart, and those of all variables together.

use std::collections::BTreeMap;

use serde::Serialize;

/// The figures of one label of variables with domains of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LabelFigures {
    /// The label.
    pub label: u32,
    /// Variables that have it.
    pub support: u64,
    /// Variables that are predicted to have it.
    pub predicted: u64,
    /// Variables that are predicted to have it, and do.
    pub correct: u64,
    /// Share of the predicted ones that are right; None where none is predicted.
    pub precision: Option<f64>,
    /// Share of the label's variables that are found; None where there is none.
    pub recall: Option<f64>,
    /// Intersection over union: `correct / (support + predicted - correct)`.
    pub iou: f64,
}

/// The figures of variables with domains of one size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DomainFigures {
    /// Number of labels of these variables.
    pub domain: u32,
    /// Number of variables.
    pub variables: u64,
    /// Share of variables with the right label.
    pub variable_accuracy: f64,
    /// Mean intersection over union of the labels below.
    pub mean_iou: f64,
    /// The figures of labels that occur, in the truth or in predictions.
    pub labels: Vec<LabelFigures>,
}

/// What predictions are worth. Means and accuracies are NaN without examples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of graphs.
    pub examples: u64,
    /// Number of variables.
    pub variables: u64,
    /// The accuracy of variables, under the name that all tasks have in common.
    pub accuracy: f64,
    /// Share of variables with the right label.
    pub variable_accuracy: f64,
    /// Share of graphs in which all labels are right.
    pub exact_match: f64,
    /// Mean intersection over union of all labels that occur, those of each size of domain for themselves.
    pub mean_iou: f64,
    /// By size of domain, ascending.
    pub domains: Vec<DomainFigures>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    support: u64,
    predicted: u64,
    correct: u64,
}

/// Counts predicted labels against true ones, a graph at a time and in any order.
#[derive(Debug, Clone, Default)]
pub struct Evaluator {
    graphs: u64,
    right_graphs: u64,
    /// By size of domain and label; only those that occur, so that a domain may be of any size.
    counts: BTreeMap<(u32, u32), Counts>,
}

impl Evaluator {
    /// Counts one graph: by variable, the number of its labels, the true one and the predicted one.
    ///
    /// # Panics
    /// If there is not one of each for every variable.
    pub fn add(&mut self, domains: &[u32], truth: &[u32], prediction: &[u32]) {
        assert!(domains.len() == truth.len() && truth.len() == prediction.len(), "a label for each variable");
        self.graphs += 1;
        self.right_graphs += u64::from(truth == prediction);
        for ((&domain, &truth), &prediction) in domains.iter().zip(truth).zip(prediction) {
            let counts = self.counts.entry((domain, truth)).or_default();
            counts.support += 1;
            counts.correct += u64::from(truth == prediction);
            self.counts.entry((domain, prediction)).or_default().predicted += 1;
        }
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        self.graphs += other.graphs;
        self.right_graphs += other.right_graphs;
        for (&label, other) in &other.counts {
            let own = self.counts.entry(label).or_default();
            own.support += other.support;
            own.predicted += other.predicted;
            own.correct += other.correct;
        }
    }

    /// The figures.
    pub fn finish(&self) -> Evaluation {
        let mut domains: Vec<DomainFigures> = Vec::new();
        for (&(domain, label), counts) in &self.counts {
            if domains.last().is_none_or(|last| last.domain != domain) {
                let (variable_accuracy, mean_iou) = (f64::NAN, f64::NAN);
                domains.push(DomainFigures { domain, variables: 0, variable_accuracy, mean_iou, labels: Vec::new() });
            }
            let last = domains.last_mut().expect("a domain");
            last.variables += counts.support;
            last.labels.push(LabelFigures::of(label, *counts));
        }
        let (mut correct, mut ious) = (0, 0.0);
        for domain in &mut domains {
            let of_domain: u64 = domain.labels.iter().map(|figures| figures.correct).sum();
            let ious_of_domain: f64 = domain.labels.iter().map(|figures| figures.iou).sum();
            domain.variable_accuracy = of_domain as f64 / domain.variables as f64;
            domain.mean_iou = ious_of_domain / domain.labels.len() as f64;
            correct += of_domain;
            ious += ious_of_domain;
        }
        let variables: u64 = domains.iter().map(|domain| domain.variables).sum();
        let variable_accuracy = correct as f64 / variables as f64;
        Evaluation {
            examples: self.graphs,
            variables,
            accuracy: variable_accuracy,
            variable_accuracy,
            exact_match: self.right_graphs as f64 / self.graphs as f64,
            mean_iou: ious / self.counts.len() as f64,
            domains,
        }
    }
}

impl LabelFigures {
    fn of(label: u32, counts: Counts) -> Self {
        let Counts { support, predicted, correct } = counts;
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let iou = correct as f64 / (support + predicted - correct) as f64;
        Self {
            label,
            support,
            predicted,
            correct,
            precision: share(correct, predicted),
            recall: share(correct, support),
            iou,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_by_hand() {
        let mut evaluator = Evaluator::default();
        evaluator.add(&[3, 3, 3, 3], &[0, 0, 1, 2], &[0, 1, 1, 1]);
        evaluator.add(&[3, 2, 2], &[1, 1, 0], &[1, 1, 0]);
        let figures = evaluator.finish();
        assert_eq!((figures.examples, figures.variables, figures.exact_match), (2, 7, 0.5));
        assert_eq!((figures.accuracy, figures.variable_accuracy), (5.0 / 7.0, 5.0 / 7.0));
        let [two, three] = figures.domains.as_slice() else { panic!("two sizes of domains") };
        assert_eq!((two.domain, two.variables, two.variable_accuracy, two.mean_iou), (2, 2, 1.0, 1.0));
        assert_eq!((three.domain, three.variables, three.variable_accuracy), (3, 5, 0.6));
        // 0: 1 of 2; 1: 2 of 4; 2: 0 of 1.
        let ious: Vec<f64> = three.labels.iter().map(|label| label.iou).collect();
        assert_eq!(ious, [0.5, 0.5, 0.0]);
        assert_eq!((three.mean_iou, figures.mean_iou), (1.0 / 3.0, 3.0 / 5.0));
        let last = &three.labels[2];
        assert_eq!((last.support, last.predicted, last.correct), (1, 0, 0));
        assert_eq!((last.precision, last.recall), (None, Some(0.0)));
    }

    #[test]
    fn batches_in_any_order_give_the_same_figures() {
        let graph = |i: u32| {
            let domains: Vec<u32> = (0..9).map(|v| 2 + (v + i) % 3).collect();
            let label = |salt: u32| domains.iter().enumerate().map(|(v, k)| (i * 7 + v as u32 * salt) % k).collect();
            let labels: [Vec<u32>; 2] = [label(3), label(4)];
            (domains, labels)
        };
        let graphs: Vec<_> = (0..40).map(graph).collect();
        let (mut forward, mut backward) = (Evaluator::default(), Evaluator::default());
        for (domains, [truth, told]) in &graphs {
            forward.add(domains, truth, told);
        }
        for batch in graphs.rchunks(7) {
            let mut part = Evaluator::default();
            for (domains, [truth, told]) in batch {
                part.add(domains, truth, told);
            }
            backward.merge(&part);
        }
        assert_eq!(forward.finish(), backward.finish());
    }

    #[test]
    fn without_graphs_there_are_no_figures() {
        let none = Evaluator::default().finish();
        assert!(none.accuracy.is_nan() && none.mean_iou.is_nan() && none.domains.is_empty());
        assert!(serde_json::to_string(&none).unwrap().contains("\"accuracy\":null"));
    }
}
