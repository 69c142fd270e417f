//! `maxmargin evaluate` with a model of a taxonomy.

use maxmargin::data::input::Input;
use maxmargin::data::svmlight::{LabelRule, Stream};
use maxmargin::data::taxonomy::known_nodes;
use maxmargin::metrics::ClassFigures;
use maxmargin::metrics::taxonomy::{Evaluation, Evaluator, Level};
use maxmargin::model::TaxonomyModel;
use maxmargin::parallel::Pool;
use maxmargin::tasks::taxonomy::NodeLoss;
use serde::Serialize;

use super::over_rows;
use crate::compare::{Judged, Shown};
use crate::failure::{Failure, Result};
use crate::predict::Strangers;
use crate::text::{and_more, count, counted, fields, label_table, number, percent, share_of, table};

/// Examples that are held at a time.
const BATCH: usize = 8192;

/// Classes with figures of their own: in the text the most frequent ones, in JSON all where these are not too many.
const SHOWN: usize = 20;
const SHOWN_IN_JSON: usize = 1000;

/// The figures of a model of a taxonomy.
pub(crate) fn judged(
    model: &TaxonomyModel,
    input: Input<'_>,
    threshold: Option<f64>,
    pool: &Pool,
) -> Result<Judged<Figures>> {
    if threshold.is_some() && matches!(model.loss, NodeLoss::Matrix(_)) {
        let what = "the cost matrix of this model has no costs of inner nodes; use predict";
        return Err(Failure::Usage(format!("--depth-threshold: {what}")));
    }
    let predictor = model.predictor()?;
    let mut stream = Stream::new(input, LabelRule::Required);
    let mut evaluator = Evaluator::new(predictor.task(), model.formulation.loss_scale);
    let (mut strangers, mut right) = (Strangers::default(), Vec::new());
    while let Some(batch) = stream.next_batch(BATCH)? {
        strangers.look(model.features, &batch.matrix);
        let nodes = known_nodes(&batch, &model.hierarchy);
        let predicted =
            over_rows(model, &predictor, threshold, &batch, pool, |found: &mut Vec<u32>, node, _| found.push(node));
        for (&id, prediction) in batch.labels.ids.iter().zip(predicted.into_iter().flatten()) {
            let truth = nodes[id as usize];
            evaluator.add(truth, prediction);
            right.push(truth == Some(prediction));
        }
    }
    strangers.tell(model.features);
    Ok(Judged { figures: Figures::of(evaluator.finish()), right })
}

/// The JSON object.
#[derive(Serialize)]
pub(crate) struct Figures {
    examples: u64,
    mean_loss: f64,
    accuracy: f64,
    tree_loss: f64,
    hierarchical_precision: f64,
    hierarchical_recall: f64,
    hierarchical_f1: f64,
    levels: Vec<Level>,
    unseen_labels: u64,
    untrained_labels: u64,
    /// None where there are too many.
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<ClassFigures>>,
}

impl Figures {
    fn of(e: Evaluation) -> Self {
        Self {
            examples: e.examples,
            mean_loss: e.mean_loss,
            accuracy: e.accuracy,
            tree_loss: e.tree_loss,
            hierarchical_precision: e.hierarchical_precision,
            hierarchical_recall: e.hierarchical_recall,
            hierarchical_f1: e.hierarchical_f1,
            levels: e.levels,
            unseen_labels: e.unseen_labels,
            untrained_labels: e.untrained_labels,
            classes: Some(e.classes).filter(|classes| classes.len() <= SHOWN_IN_JSON),
        }
    }
}

impl Shown for Figures {
    const UNIT: &'static str = "example";

    fn in_words(&self) -> String {
        let [precision, recall] = [self.hierarchical_precision, self.hierarchical_recall].map(percent);
        let mut lines = vec![
            ("accuracy", share_of(self.accuracy, self.examples, "example")),
            ("tree loss", number(self.tree_loss)),
            ("mean loss", number(self.mean_loss)),
            (
                "hierarchical",
                format!("F1 {}, precision {precision}, recall {recall} of ancestors", percent(self.hierarchical_f1)),
            ),
        ];
        if self.unseen_labels > 0 {
            let examples = counted(self.unseen_labels, "example");
            lines.push((
                "unseen labels",
                format!("{examples} whose label is no node, counted as errors of the largest loss"),
            ));
        }
        if self.untrained_labels > 0 {
            let examples = counted(self.untrained_labels, "example");
            lines
                .push(("untrained", format!("{examples} whose label has no training examples and is never predicted")));
        }
        let mut rows = vec![["depth", "examples", "accuracy"].map(str::to_owned).to_vec()];
        rows.extend(self.levels.iter().map(|l| vec![l.depth.to_string(), count(l.examples), percent(l.accuracy)]));
        let text = format!("{}\n{}", fields(&lines), table(&rows));
        let Some(classes) = &self.classes else { return text };
        let mut frequent: Vec<_> = classes.iter().collect();
        frequent.sort_by_key(|class| std::cmp::Reverse(class.support));
        let shown = frequent.iter().take(SHOWN);
        let rows = shown.map(|c| (c.label.clone(), [c.support, c.predicted], [c.precision, c.recall, c.f1]));
        format!("{text}\n{}{}", label_table(["node", "F1"], rows), and_more(classes.len(), SHOWN, "node"))
    }

    fn main(&self) -> Vec<(&'static str, String)> {
        vec![
            ("accuracy", percent(self.accuracy)),
            ("tree loss", number(self.tree_loss)),
            ("hierarchical F1", percent(self.hierarchical_f1)),
            ("mean loss", number(self.mean_loss)),
        ]
    }
}
