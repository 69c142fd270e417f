//! `maxmargin inspect` with a model of trees.

use maxmargin::data::trees::{Shape, Strip};
use maxmargin::model::{Parser, TaskKind};
use maxmargin::problem::Formulation;
use maxmargin::task::Task;
use maxmargin::tasks::parsing::{ParseLoss, ParseSettings, Parsing, SpanFeature};
use serde::Serialize;

use crate::failure::Result;
use crate::inspect::{Training, about};
use crate::streams::{print, print_json};
use crate::summary::Described;
use crate::text::{counted, table};

/// The JSON object.
#[derive(Serialize)]
struct Contents<'m> {
    task: TaskKind,
    settings: ParseSettings,
    strip: Strip,
    shape: Shape,
    grammar: Sizes,
    #[serde(flatten)]
    formulation: Formulation,
    data_checksum: String,
    training: Training<'m>,
    heaviest: Vec<Weight>,
    /// Of phrases and what their spans are like.
    #[serde(skip_serializing_if = "Option::is_none")]
    heaviest_spans: Option<Vec<SpanWeight>>,
}

/// What the grammar is made of.
#[derive(Serialize)]
struct Sizes {
    symbols: usize,
    phrases: usize,
    tags: u32,
    terminals: u32,
    rules: usize,
    roots: usize,
    unary: usize,
    binary: usize,
    lexical: usize,
}

#[derive(Serialize)]
struct Weight {
    rule: String,
    weight: f64,
}

#[derive(Serialize)]
struct SpanWeight {
    phrase: String,
    feature: String,
    weight: f64,
}

pub(crate) fn run(model: &Parser, top: usize, json: bool) -> Result<()> {
    let task = model.task()?;
    let (heaviest, heaviest_spans) = (heaviest(model, &task, top), heaviest_spans(model, &task, top));
    if !json {
        return print(&in_words(model, &heaviest, heaviest_spans.as_deref().unwrap_or_default()));
    }
    let parts = model.grammar.parts();
    print_json(&Contents {
        task: TaskKind::Parse,
        settings: model.settings,
        strip: model.strip,
        shape: model.shape,
        grammar: Sizes {
            symbols: parts.symbols.len(),
            phrases: parts.labels.len(),
            tags: parts.tags,
            terminals: parts.terminals,
            rules: model.grammar.len(),
            roots: parts.roots.len(),
            unary: parts.unary.len(),
            binary: parts.binary.len(),
            lexical: parts.lexical.len(),
        },
        formulation: model.formulation,
        data_checksum: format!("{:08x}", model.data_checksum),
        training: Training::of(&model.summary),
        heaviest,
        heaviest_spans,
    })
}

/// The rules with the largest weights in absolute value.
fn heaviest(model: &Parser, task: &Parsing, top: usize) -> Vec<Weight> {
    let (w, block) = (model.weights.as_slice(), task.blocks()[0]);
    let weight = |rule: u32| Some((rule, w[block.at(0, task.feature(rule)?)])).filter(|(_, weight)| *weight != 0.0);
    let mut weights: Vec<(u32, f64)> = (0..model.grammar.len() as u32).filter_map(weight).collect();
    weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    weights.truncate(top);
    let shown = |rule| model.grammar.shown(rule, |t| terminal(model, t)).unwrap_or_default();
    weights.into_iter().map(|(rule, weight)| Weight { rule: shown(rule), weight }).collect()
}

/// A word or class of words by its name; where terminals are tags, a tag.
fn terminal(model: &Parser, terminal: u32) -> String {
    match &model.lexicon {
        Some(lexicon) => String::from_utf8_lossy(lexicon.names().name(terminal)).into_owned(),
        None => model.grammar.parts().symbols[terminal as usize].clone(),
    }
}

/// The same of the span features, where the model has some.
fn heaviest_spans(model: &Parser, task: &Parsing, top: usize) -> Option<Vec<SpanWeight>> {
    let (spans, block) = (task.spans()?, task.blocks().get(1)?);
    let places = block.base as usize..(block.base + block.len()) as usize;
    let mut weights: Vec<(usize, f64)> =
        places.map(|at| (at, model.weights.as_slice()[at])).filter(|(_, weight)| *weight != 0.0).collect();
    weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    weights.truncate(top);
    let named = |(at, weight): (usize, f64)| {
        let (feature, phrase) = spans.feature(at)?;
        let feature = match feature {
            SpanFeature::Length(least, None) => format!("{least} words or more"),
            SpanFeature::Length(least, Some(most)) if least < most => format!("{least} to {most} words"),
            SpanFeature::Length(words, _) => counted(words as u64, "word"),
            SpanFeature::Terminal(place, Some(t)) => format!("{place} {}", terminal(model, t)),
            SpanFeature::Terminal("before", None) => "begins the sentence".to_owned(),
            SpanFeature::Terminal(_, None) => "ends the sentence".to_owned(),
            SpanFeature::Unknown(place) => format!("{place} unknown"),
        };
        Some(SpanWeight { phrase: model.grammar.parts().symbols[phrase as usize].clone(), feature, weight })
    };
    Some(weights.into_iter().filter_map(named).collect())
}

fn in_words(model: &Parser, heaviest: &[Weight], heaviest_spans: &[SpanWeight]) -> String {
    let loss = match model.settings.loss {
        ParseLoss::Hamming => "hamming",
        ParseLoss::ZeroOne => "zero-one",
        ParseLoss::F1 => "f1",
    };
    let text = about(&Described::parser(model), loss, model.data_checksum);
    if heaviest.is_empty() {
        return text;
    }
    let signed = |w: f64| format!("{}{w:.3}", if w < 0.0 { "" } else { "+" });
    let rows: Vec<Vec<String>> = heaviest.iter().map(|w| vec![w.rule.clone(), signed(w.weight)]).collect();
    let text = format!("{text}\nheaviest rules\n{}", table(&rows));
    if heaviest_spans.is_empty() {
        return text;
    }
    let row = |w: &SpanWeight| vec![format!("{}: {}", w.phrase, w.feature), signed(w.weight)];
    let rows: Vec<Vec<String>> = heaviest_spans.iter().map(row).collect();
    format!("{text}\nheaviest span features, as PHRASE: FEATURE\n{}", table(&rows))
}
