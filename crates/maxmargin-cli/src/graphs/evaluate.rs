//! `maxmargin evaluate` with a model of graphs.

use maxmargin::Error;
use maxmargin::data::graphs::Stream;
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::metrics::graphs::{Evaluation, Evaluator};
use maxmargin::model::GraphLabeller;
use maxmargin::parallel::{Pool, ranges};
use maxmargin::task::Task;
use maxmargin::tasks::factor_graph::GraphScratch;
use serde::Serialize;

use super::check_memory;
use crate::compare::{Judged, Shown};
use crate::failure::Result;
use crate::text::{and_more, counted, fields, label_table, number, percent, share_of};

/// Graphs that are held at a time.
const BATCH: usize = 256;

/// Labels with figures of their own in the text, the most frequent ones.
const SHOWN: usize = 20;

/// The JSON object.
#[derive(Serialize)]
pub(crate) struct Figures {
    /// Of a graph, scaled as in training.
    mean_loss: f64,
    #[serde(flatten)]
    evaluation: Evaluation,
    /// Share of graphs whose labels are proven to be the best by the model's weights.
    proven: f64,
}

/// What was counted over some graphs.
#[derive(Default)]
struct Counted {
    evaluator: Evaluator,
    right: Vec<bool>,
    loss: f64,
    proven: u64,
}

/// The figures of a model of graphs. A graph is right where all of its labels are.
pub(crate) fn judged(model: &GraphLabeller, input: Input<'_>, pool: &Pool) -> Result<Judged<Figures>> {
    let (task, source) = (model.task()?, input.name().to_owned());
    let mut stream = Stream::new(input, &model.shape, LabelRule::Required);
    let mut all = Counted::default();
    while let Some(batch) = stream.next_batch(BATCH)? {
        let with_lines = batch.graphs.iter().enumerate().map(|(i, graph)| (graph, batch.line(i)));
        check_memory(&task, &source, with_lines, pool.threads())?;
        // Not by the number of threads: sums are the same with any.
        let parts = pool.map(ranges(batch.len(), 64), |range| {
            let (mut part, mut scratch, mut y) = (Counted::default(), GraphScratch::default(), Vec::new());
            for i in range {
                let (graph, truth) = (&batch.graphs[i], &batch.labels[i]);
                task.argmax(&model.weights, graph, None, &mut scratch, &mut y)?;
                part.evaluator.add(&graph.domains, truth, &y);
                part.right.push(*truth == y);
                part.loss += task.loss(truth, &y);
                part.proven += u64::from(scratch.is_proven());
            }
            Ok::<_, Error>(part)
        });
        for part in parts {
            let part = part?;
            all.evaluator.merge(&part.evaluator);
            all.right.extend(part.right);
            all.loss += part.loss;
            all.proven += part.proven;
        }
    }
    let evaluation = all.evaluator.finish();
    let n = evaluation.examples as f64;
    let mean_loss = model.formulation.loss_scale * all.loss / n;
    Ok(Judged { figures: Figures { mean_loss, evaluation, proven: all.proven as f64 / n }, right: all.right })
}

impl Shown for Figures {
    const UNIT: &'static str = "graph";

    fn in_words(&self) -> String {
        let e = &self.evaluation;
        let mut text = vec![fields(&[
            ("variable accuracy", share_of(e.variable_accuracy, e.variables, "variable")),
            ("exact match", share_of(e.exact_match, e.examples, "graph")),
            ("mean IoU", percent(e.mean_iou)),
            ("mean loss", format!("{} per graph", number(self.mean_loss))),
            ("proven", format!("the labels of {} have the highest score", share_of(self.proven, e.examples, "graph"))),
        ])];
        for domain in &e.domains {
            let mut labels: Vec<_> = domain.labels.iter().collect();
            labels.sort_by_key(|label| std::cmp::Reverse(label.support));
            labels.truncate(SHOWN);
            labels.sort_by_key(|label| label.label);
            let rows = labels
                .iter()
                .map(|l| (l.label.to_string(), [l.support, l.predicted], [l.precision, l.recall, Some(l.iou)]));
            let title = if e.domains.len() > 1 {
                let accuracy = percent(domain.variable_accuracy);
                format!(
                    "{} with {} labels, accuracy {accuracy}\n",
                    counted(domain.variables, "variable"),
                    domain.domain
                )
            } else {
                String::new()
            };
            let more = and_more(domain.labels.len(), SHOWN, "label");
            text.push(format!("\n{title}{}{more}", label_table(["label", "IoU"], rows)));
        }
        text.concat()
    }

    fn main(&self) -> Vec<(&'static str, String)> {
        let e = &self.evaluation;
        vec![
            ("variable accuracy", percent(e.variable_accuracy)),
            ("exact match", percent(e.exact_match)),
            ("mean IoU", percent(e.mean_iou)),
            ("mean loss", number(self.mean_loss)),
            ("proven", percent(self.proven)),
        ]
    }
}
