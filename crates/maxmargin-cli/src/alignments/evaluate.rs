//! `maxmargin evaluate` with a model of alignments.

use maxmargin::data::alignments::{Strangers, Stream};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::metrics::alignments::{Evaluation, Evaluator, rank};
use maxmargin::model::PairAligner;
use maxmargin::parallel::{Pool, ranges};
use maxmargin::task::Task;
use maxmargin::tasks::alignment::{Agreement, AlignLoss, AlignScratch, Aligned};
use serde::Serialize;

use super::{check_letters, check_memory, loss_name, tell_strangers};
use crate::compare::{Judged, Shown};
use crate::failure::Result;
use crate::text::{count, counted, fields, number, percent};

/// Records that are held at a time.
const BATCH: usize = 256;

/// The JSON object.
#[derive(Serialize)]
pub(crate) struct Figures {
    /// Of an example, by the loss of training, scaled as in training.
    mean_loss: f64,
    loss: &'static str,
    /// Share of examples without loss.
    accuracy: f64,
    #[serde(flatten)]
    evaluation: Evaluation,
}

/// What was counted over some records.
#[derive(Default)]
struct Counted {
    evaluator: Evaluator,
    right: Vec<bool>,
    loss: f64,
    strangers: Strangers,
}

/// The figures of a model of alignments. An example is right where its homologue comes first or, without decoys, where all true
/// matches are found: by the same rule for models of any loss, so that they can be compared.
pub(crate) fn judged(model: &PairAligner, input: Input<'_>, pool: &Pool) -> Result<Judged<Figures>> {
    let (task, alphabets, source) = (model.task()?, model.alphabets()?, input.name().to_owned());
    let mut stream = Stream::new(input, LabelRule::Required);
    let mut all = Counted::default();
    while let Some(batch) = stream.next_batch(BATCH)? {
        check_letters(&source, &batch, &alphabets)?;
        check_memory(&source, &batch, pool.threads())?;
        // Not by the number of threads: sums are the same with any.
        let parts = pool.map(ranges(batch.len(), 64), |range| {
            let (mut part, mut scratch) = (Counted::default(), AlignScratch::default());
            let (mut scores, mut y) = (Vec::new(), Aligned::default());
            for i in range {
                let record = &batch.records[i];
                let (query, strangers) = alphabets.query(record);
                part.strangers += strangers;
                let truth = Aligned {
                    candidate: 0,
                    residues: query.residues(0),
                    path: record.alignment.clone().unwrap_or_default(),
                };
                y.residues = truth.residues;
                task.align(&model.weights, &query, 0, &mut scratch, &mut y.path);
                let rank = (query.candidates.len() > 1).then(|| {
                    task.candidate_scores(&model.weights, &query, &mut scratch, &mut scores);
                    rank(&scores)
                });
                let loss = match model.loss {
                    AlignLoss::ZeroOne => f64::from(u8::from(rank.is_some_and(|rank| rank > 1))),
                    _ => task.loss(&truth, &y),
                };
                let agreement = Agreement::of(&truth.path, &y.path);
                part.right.push(rank.map_or(agreement.right == agreement.matches, |rank| rank == 1));
                part.evaluator.add(rank, agreement);
                part.loss += loss;
            }
            part
        });
        for part in parts {
            all.evaluator.merge(&part.evaluator);
            all.right.extend(part.right);
            all.loss += part.loss;
            all.strangers += part.strangers;
        }
    }
    tell_strangers(&source, all.strangers, &alphabets)?;
    let evaluation = all.evaluator.finish();
    let n = evaluation.examples as f64;
    let accuracy = all.right.iter().filter(|&&right| right).count() as f64 / n;
    let mean_loss = model.formulation.loss_scale * all.loss / n;
    let figures = Figures { mean_loss, loss: loss_name(model.loss), accuracy, evaluation };
    Ok(Judged { figures, right: all.right })
}

impl Figures {
    fn rows(&self) -> Vec<(&'static str, String)> {
        let e = &self.evaluation;
        let share = |share: Option<f64>| share.map(percent);
        let rows = [
            ("error", share(e.error)),
            ("mean rank", e.mean_rank.map(number)),
            ("Q-score", share(e.q_score)),
            ("Q-score, window 4", share(e.q4_score)),
            ("match recall", share(e.match_recall)),
            ("match precision", share(e.match_precision)),
        ];
        let mut rows: Vec<_> = rows.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        rows.push(("mean loss", number(self.mean_loss)));
        rows
    }
}

impl Shown for Figures {
    const UNIT: &'static str = "homologue";

    fn in_words(&self) -> String {
        let Evaluation { ranked, aligned, error, .. } = self.evaluation;
        let explained = |(name, value): (&'static str, String)| match name {
            "error" => {
                let wrong = count((error.unwrap_or(0.0) * ranked as f64).round() as u64);
                (name, format!("{value} ({wrong} of {} do not come first)", counted(ranked, "homologue")))
            }
            "Q-score" => (name, format!("{value} (true matches found, mean of {})", counted(aligned, "alignment"))),
            "mean loss" => (name, format!("{value} ({})", self.loss)),
            _ => (name, value),
        };
        fields(&self.rows().into_iter().map(explained).collect::<Vec<_>>())
    }

    fn main(&self) -> Vec<(&'static str, String)> {
        self.rows()
    }
}
