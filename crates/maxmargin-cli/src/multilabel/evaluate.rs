//! `maxmargin evaluate` with a model of label sets.

use maxmargin::data::input::Input;
use maxmargin::data::label_sets::sets_of;
use maxmargin::data::svmlight::{LabelRule, Stream};
use maxmargin::metrics::label_sets::{Evaluation, Evaluator};
use maxmargin::model::Labeller;
use maxmargin::model::labeller::SetBuffers;
use maxmargin::parallel::{Pool, ranges};
use serde::Serialize;

use super::with_unseen;
use crate::compare::{Judged, Shown};
use crate::failure::Result;
use crate::predict::Strangers;
use crate::text::{and_more, count, fields, label_table, number, percent, share_of};

/// Examples that are held at a time.
const BATCH: usize = 8192;

/// Labels with figures of their own in the text, the most frequent ones.
const SHOWN: usize = 20;

/// The JSON object.
#[derive(Serialize)]
pub(crate) struct Figures {
    /// Of an example, scaled as in training.
    mean_loss: f64,
    #[serde(flatten)]
    evaluation: Evaluation,
    /// Share of examples whose set is proven to be the best by the model's weights.
    proven: f64,
}

/// What was counted over some examples.
struct Counted<'m> {
    evaluator: Evaluator<'m>,
    right: Vec<bool>,
    loss: f64,
    proven: u64,
}

/// The figures of a model of label sets. An example is right where its whole set is.
pub(crate) fn judged(model: &Labeller, input: Input<'_>, threshold: f64, pool: &Pool) -> Result<Judged<Figures>> {
    let (predictor, name) = (model.predictor()?, input.name().to_owned());
    let new = || Counted { evaluator: Evaluator::new(&model.labels), right: Vec::new(), loss: 0.0, proven: 0 };
    let (mut stream, mut strangers, mut all) = (Stream::new(input, LabelRule::Set), Strangers::default(), new());
    while let Some(batch) = stream.next_batch(BATCH)? {
        strangers.look(model.features, &batch.matrix);
        let (sets, unseen) = sets_of(&batch, &model.labels, &name)?;
        // Not by the number of threads: sums are the same with any.
        let parts = pool.map(ranges(batch.len(), 64), |range| {
            let (mut part, mut buffers, mut y) = (new(), SetBuffers::default(), Vec::new());
            for i in range {
                predictor.predict(batch.matrix.row(i), threshold, &mut buffers, &mut y);
                part.evaluator.add(&sets[i], unseen.counts[i], &y);
                part.right.push(unseen.counts[i] == 0 && sets[i] == y);
                part.loss += model.loss.of(&with_unseen(&sets[i], model.labels.len(), unseen.counts[i]), &y);
                part.proven += u64::from(buffers.is_proven());
            }
            part
        });
        for part in parts {
            all.evaluator.merge(&part.evaluator);
            all.right.extend(part.right);
            all.loss += part.loss;
            all.proven += part.proven;
        }
    }
    strangers.tell(model.features);
    let evaluation = all.evaluator.finish();
    let n = evaluation.examples as f64;
    let mean_loss = model.formulation.loss_scale * all.loss / n;
    Ok(Judged { figures: Figures { mean_loss, evaluation, proven: all.proven as f64 / n }, right: all.right })
}

impl Shown for Figures {
    const UNIT: &'static str = "example";

    fn in_words(&self) -> String {
        let e = &self.evaluation;
        let parts = [e.micro_precision, e.micro_recall].map(percent);
        let mut lines = vec![
            ("micro F1", format!("{} (precision {}, recall {})", percent(e.micro_f1), parts[0], parts[1])),
            ("macro F1", format!("{}, the mean over labels", percent(e.macro_f1))),
            ("mean F1", format!("{}, the mean over examples", percent(e.mean_f1))),
            ("exact match", share_of(e.exact_match, e.examples, "example")),
            ("Hamming loss", format!("{} of all labels are wrong", percent(e.hamming_loss))),
            ("mean loss", format!("{} per example", number(self.mean_loss))),
            ("labels", format!("{} per example, predicted {}", number(e.true_labels), number(e.predicted_labels))),
        ];
        if self.proven < 1.0 {
            lines.push(("proven", format!("{} of sets are proven to be the best", percent(self.proven))));
        }
        if e.unseen_labels > 0 {
            lines.push(("unseen labels", format!("{}, counted as missed", count(e.unseen_labels))));
        }
        let mut labels: Vec<_> = e.labels.iter().filter(|label| label.support + label.predicted > 0).collect();
        labels.sort_by_key(|label| std::cmp::Reverse(label.support));
        let shown = labels.iter().take(SHOWN);
        let rows = shown.map(|l| (l.label.clone(), [l.support, l.predicted], [l.precision, l.recall, l.f1]));
        let more = and_more(labels.len(), SHOWN, "label");
        format!("{}\n{}{more}", fields(&lines), label_table(["label", "F1"], rows))
    }

    fn main(&self) -> Vec<(&'static str, String)> {
        let e = &self.evaluation;
        vec![
            ("micro F1", percent(e.micro_f1)),
            ("macro F1", percent(e.macro_f1)),
            ("mean F1", percent(e.mean_f1)),
            ("exact match", percent(e.exact_match)),
            ("Hamming loss", percent(e.hamming_loss)),
            ("mean loss", number(self.mean_loss)),
        ]
    }
}
