//! `maxmargin inspect` with a model of trees.

use maxmargin::model::{Parser, TaskKind};
use maxmargin::problem::Formulation;
use maxmargin::task::Task;
use maxmargin::tasks::parsing::{ParseLoss, ParseSettings, Parsing};
use serde::Serialize;

use crate::failure::{Result, print, print_json};
use crate::inspect::{Training, about};
use crate::summary::Described;
use crate::text::table;

/// The JSON object.
#[derive(Serialize)]
struct Contents<'m> {
    task: TaskKind,
    settings: ParseSettings,
    grammar: Sizes,
    #[serde(flatten)]
    formulation: Formulation,
    data_checksum: String,
    training: Training<'m>,
    heaviest: Vec<Weight>,
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

pub(crate) fn run(model: &Parser, top: usize, json: bool) -> Result<()> {
    let task = model.task()?;
    let heaviest = heaviest(model, &task, top);
    if !json {
        return print(&in_words(model, &heaviest));
    }
    let parts = model.grammar.parts();
    print_json(&Contents {
        task: TaskKind::Parse,
        settings: model.settings,
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
    })
}

/// The rules with the largest weights in absolute value.
fn heaviest(model: &Parser, task: &Parsing, top: usize) -> Vec<Weight> {
    let (w, block) = (model.weights.as_slice(), task.blocks()[0]);
    let weight = |rule: u32| Some((rule, w[block.at(0, task.feature(rule)?)])).filter(|(_, weight)| *weight != 0.0);
    let mut weights: Vec<(u32, f64)> = (0..model.grammar.len() as u32).filter_map(weight).collect();
    weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    weights.truncate(top);
    let terminal = |terminal: u32| {
        let name = model.lexicon.as_ref().map(|lexicon| lexicon.names().name(terminal));
        name.map_or_else(|| terminal.to_string(), |name| String::from_utf8_lossy(name).into_owned())
    };
    let named = |(rule, weight)| Weight { rule: model.grammar.shown(rule, terminal).unwrap_or_default(), weight };
    weights.into_iter().map(named).collect()
}

fn in_words(model: &Parser, heaviest: &[Weight]) -> String {
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
    format!("{text}\nheaviest rules\n{}", table(&rows))
}
