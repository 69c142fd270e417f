//! `maxmargin evaluate` with a model of trees.

use maxmargin::data::input::Input;
use maxmargin::data::trees;
use maxmargin::metrics::parsing::{self, Evaluator};
use maxmargin::model::Parser;
use maxmargin::parallel::{Pool, ranges};
use maxmargin::task::Task;
use maxmargin::tasks::parsing::{Parse, ParseScratch};
use serde::Serialize;

use super::check_memory;
use crate::compare::{Judged, Shown};
use crate::failure::{Failure, Result};
use crate::streams::note;
use crate::text::{count, counted, fields, number, percent, table};

/// The JSON object.
#[derive(Serialize)]
pub(crate) struct Figures {
    examples: u64,
    mean_loss: f64,
    /// Share of sentences all of whose brackets are right.
    accuracy: f64,
    exact_match: f64,
    bracket_precision: f64,
    bracket_recall: f64,
    bracket_f1: f64,
    crossing: f64,
    no_crossing: f64,
    /// Sentences without a tree by the grammar.
    fallbacks: u64,
    by_length: Vec<OfLength>,
}

/// Of sentences with at most so many words, punctuation not counted.
#[derive(Serialize)]
struct OfLength {
    words: usize,
    #[serde(flatten)]
    figures: parsing::Figures,
}

/// What was counted over some sentences.
#[derive(Default)]
struct Counted {
    evaluator: Evaluator,
    right: Vec<bool>,
    loss: f64,
    fallbacks: u64,
}

/// The figures of a parser. A sentence is right where all of its brackets are.
pub(crate) fn judged(model: &Parser, input: Input<'_>, max_words: Option<u32>, pool: &Pool) -> Result<Judged<Figures>> {
    let name = input.name().to_owned();
    let mut bank = trees::read(input, model.strip)?;
    if let Some(most) = max_words {
        bank.trees.retain(|tree| tree.words().len() <= most as usize);
        if bank.trees.is_empty() {
            return Err(Failure::Data(format!("{name}: every sentence has more than {most} words; raise --max-words")));
        }
    }
    let (task, reading) = (model.task()?, model.reading());
    let way_out = "leave out long sentences with --max-words, or take fewer --threads";
    let sentences = bank.trees.iter().map(|tree| (tree.words().len(), tree.line));
    check_memory(&task, &name, sentences, pool.threads(), way_out)?.into_iter().for_each(|what| note(&what));
    // Not by the number of threads: sums are the same with any.
    let parts = pool.map(ranges(bank.trees.len(), 64), |range| {
        let (mut counted, mut scratch, mut labels) = (Counted::default(), ParseScratch::default(), bank.labels.clone());
        for truth in &bank.trees[range] {
            let x = reading.terminals(&bank.labels, &bank.words, truth);
            let decoded = task.decode(&model.weights, &x, &mut scratch);
            let found = reading.tree(&decoded.nodes, truth, &mut labels);
            let mut one = Evaluator::default();
            one.add(&labels, truth, found.as_ref());
            counted.right.push(one.finish().all.exact_match == 1.0);
            counted.evaluator.merge(&one);
            let brackets = Parse::of_brackets(reading.brackets(&bank.labels, truth));
            counted.loss += task.loss(&brackets, &task.output(&decoded));
            counted.fallbacks += u64::from(decoded.is_fallback);
        }
        counted
    });
    let mut all = Counted::default();
    for part in parts {
        all.evaluator.merge(&part.evaluator);
        all.right.extend(part.right);
        all.loss += part.loss;
        all.fallbacks += part.fallbacks;
    }
    let parsing::Evaluation { all: of_all, by_length } = all.evaluator.finish();
    let figures = Figures {
        examples: of_all.examples,
        mean_loss: model.formulation.loss_scale * all.loss / of_all.examples as f64,
        accuracy: of_all.exact_match,
        exact_match: of_all.exact_match,
        bracket_precision: of_all.bracket_precision,
        bracket_recall: of_all.bracket_recall,
        bracket_f1: of_all.bracket_f1,
        crossing: of_all.crossing,
        no_crossing: of_all.no_crossing,
        fallbacks: all.fallbacks,
        by_length: by_length.into_iter().map(|(words, figures)| OfLength { words, figures }).collect(),
    };
    Ok(Judged { figures, right: all.right })
}

impl Shown for Figures {
    const UNIT: &'static str = "sentence";

    fn in_words(&self) -> String {
        let right = (self.exact_match * self.examples as f64).round() as u64;
        let parts = [self.bracket_precision, self.bracket_recall].map(percent);
        let mut lines = vec![
            ("bracket F1", format!("{} (precision {}, recall {})", percent(self.bracket_f1), parts[0], parts[1])),
            (
                "exact match",
                format!("{} ({} of {})", percent(self.exact_match), count(right), counted(self.examples, "sentence")),
            ),
            (
                "crossing",
                format!("{} brackets a sentence; none in {}", number(self.crossing), percent(self.no_crossing)),
            ),
            ("mean loss", format!("{} per sentence", number(self.mean_loss))),
        ];
        if self.fallbacks > 0 {
            lines.push(("fallbacks", format!("{} without a tree by the grammar", counted(self.fallbacks, "sentence"))));
        }
        let header = ["words", "sentences", "precision", "recall", "F1", "exact match", "crossing"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        let row = |words: String, f: &[f64; 5], examples: u64| {
            let share = |x: f64| if examples > 0 { format!("{x:.4}") } else { "-".to_owned() };
            [vec![words, count(examples)], f.map(share).to_vec()].concat()
        };
        rows.extend(self.by_length.iter().map(|OfLength { words, figures: f }| {
            let shares = [f.bracket_precision, f.bracket_recall, f.bracket_f1, f.exact_match, f.crossing];
            row(format!("at most {words}"), &shares, f.examples)
        }));
        let shares = [self.bracket_precision, self.bracket_recall, self.bracket_f1, self.exact_match, self.crossing];
        rows.push(row("all".to_owned(), &shares, self.examples));
        format!("{}\n{}", fields(&lines), table(&rows))
    }

    fn main(&self) -> Vec<(&'static str, String)> {
        vec![
            ("bracket F1", percent(self.bracket_f1)),
            ("bracket precision", percent(self.bracket_precision)),
            ("bracket recall", percent(self.bracket_recall)),
            ("exact match", percent(self.exact_match)),
            ("crossing a sentence", number(self.crossing)),
            ("mean loss", number(self.mean_loss)),
            ("fallbacks", count(self.fallbacks)),
        ]
    }
}
