//! `maxmargin evaluate` with a model of tags.

use maxmargin::data::input::Input;
use maxmargin::data::tagging::read_with;
use maxmargin::metrics::tagging::{Evaluation, Evaluator};
use maxmargin::model::Tagger;
use maxmargin::parallel::{Pool, ranges};
use maxmargin::tasks::tagging::TagScratch;
use serde::Serialize;

use super::sentences;
use crate::compare::{Judged, Shown};
use crate::failure::Result;
use crate::text::{and_more, count, counted, fields, label_table, number, percent, share_of, table};

/// Tags with figures of their own in the text, the most frequent ones, and confused pairs.
const SHOWN: usize = 20;
const PAIRS: usize = 10;

/// The JSON object.
#[derive(Serialize)]
pub(crate) struct Figures {
    #[serde(flatten)]
    evaluation: Evaluation,
    /// Tokens with features that the model does not know.
    unseen_features: u64,
}

impl Shown for Figures {
    const UNIT: &'static str = "sentence";

    fn in_words(&self) -> String {
        in_words(&self.evaluation, self.unseen_features)
    }

    fn main(&self) -> Vec<(&'static str, String)> {
        let Evaluation { token_accuracy, sequence_accuracy, chunk_f1, mean_loss, .. } = self.evaluation;
        let mut shown =
            vec![("token accuracy", percent(token_accuracy)), ("sequence accuracy", percent(sequence_accuracy))];
        shown.extend(chunk_f1.map(|f1| ("chunk F1", percent(f1))));
        shown.push(("mean loss", number(mean_loss)));
        shown
    }
}

/// The figures of a tagger. A sentence is right where all of its tags are.
pub(crate) fn judged(model: &Tagger, input: Input<'_>, pool: &Pool) -> Result<Judged<Figures>> {
    let data = read_with(input, &model.format, &model.vocabulary, pool)?;
    let (predictor, sentences) = (model.predictor()?, sentences(&data));
    let new = || Evaluator::new(&model.vocabulary.tags, &model.loss, model.formulation.loss_scale);
    let parts = pool.map(ranges(data.len(), 16), |range| {
        let (mut evaluator, mut scratch, mut y) = (new(), TagScratch::default(), Vec::new());
        let mut right = Vec::with_capacity(range.len());
        for s in range {
            let tokens = data.sentence(s);
            predictor.predict(sentences[s], &mut scratch, &mut y);
            evaluator.add(&data.tags[tokens.clone()], &y, |t| data.unseen_tag(tokens.start + t));
            right.push(data.tags[tokens] == y[..]);
        }
        (evaluator, right)
    });
    let (mut evaluator, mut all_right) = (new(), Vec::with_capacity(data.len()));
    for (part, right) in parts {
        evaluator.merge(part);
        all_right.extend(right);
    }
    let figures = Figures { evaluation: evaluator.finish(), unseen_features: data.unseen.features };
    Ok(Judged { figures, right: all_right })
}

fn in_words(evaluation: &Evaluation, unseen_features: u64) -> String {
    let mut lines = vec![
        ("token accuracy", share_of(evaluation.token_accuracy, evaluation.tokens, "token")),
        ("sequence accuracy", share_of(evaluation.sequence_accuracy, evaluation.examples, "sentence")),
        ("mean loss", format!("{} per sentence", number(evaluation.mean_loss))),
    ];
    if let (Some(precision), Some(recall), Some(f1)) =
        (evaluation.chunk_precision, evaluation.chunk_recall, evaluation.chunk_f1)
    {
        let parts = format!("precision {}, recall {}", percent(precision), percent(recall));
        lines.push(("chunk F1", format!("{} ({parts})", percent(f1))));
    }
    if evaluation.unseen_tags > 0 {
        let tokens = counted(evaluation.unseen_tags, "token");
        lines.push(("unseen tags", format!("{tokens} with tags that the model does not know, counted as errors")));
    }
    if unseen_features > 0 {
        lines
            .push(("unseen features", format!("{} with some, which were left out", counted(unseen_features, "token"))));
    }
    let mut text = vec![fields(&lines)];
    if !evaluation.chunks.is_empty() {
        let chunks = evaluation.chunks.iter();
        let rows = chunks.map(|c| (c.kind.clone(), [c.support, c.predicted], [c.precision, c.recall, c.f1]));
        text.extend(["\n".to_owned(), label_table(["chunks", "F1"], rows)]);
    }
    let mut tags: Vec<_> = evaluation.tags.iter().filter(|tag| tag.support + tag.predicted > 0).collect();
    tags.sort_by_key(|tag| std::cmp::Reverse(tag.support));
    let shown = tags.iter().take(SHOWN);
    let rows = shown.map(|t| (t.tag.clone(), [t.support, t.predicted], [t.precision, t.recall, t.f1]));
    text.extend(["\n".to_owned(), label_table(["tag", "F1"], rows), and_more(tags.len(), SHOWN, "tag")]);
    if !evaluation.confused.is_empty() {
        let mut rows = vec![["truth", "taken for", "tokens"].map(str::to_owned).to_vec()];
        let pairs = evaluation.confused.iter().take(PAIRS);
        rows.extend(pairs.map(|pair| vec![pair.truth.clone(), pair.predicted.clone(), count(pair.count)]));
        text.extend(["\nmost confused\n".to_owned(), table(&rows)]);
    }
    text.concat()
}
