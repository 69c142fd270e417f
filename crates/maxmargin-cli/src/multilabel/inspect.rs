//! `maxmargin inspect` with a model of label sets.

use maxmargin::model::{Labeller, TaskKind};
use maxmargin::problem::Formulation;
use maxmargin::tasks::multilabel::SetLoss;
use serde::Serialize;

use super::loss_name;
use crate::failure::Result;
use crate::inspect::{Feature, Training, Weight, about, heaviest_rows};
use crate::streams::{print, print_json};
use crate::summary::Described;
use crate::text::{number, table};

/// Labels with features of their own in the text.
const SHOWN: usize = 50;

/// The JSON object.
#[derive(Serialize)]
struct Contents<'m> {
    task: TaskKind,
    labels: &'m [String],
    features: u32,
    bias: f64,
    /// Number of pairs with a weight.
    pairs: usize,
    loss: SetLoss,
    #[serde(flatten)]
    formulation: Formulation,
    data_checksum: String,
    training: Training<'m>,
    strongest: Vec<Strongest<'m>>,
    strongest_pairs: Vec<PairWeight<'m>>,
}

#[derive(Serialize)]
struct Strongest<'m> {
    label: &'m str,
    weights: Vec<Weight>,
}

#[derive(Serialize)]
struct PairWeight<'m> {
    labels: [&'m str; 2],
    weight: f64,
}

pub(crate) fn run(model: &Labeller, top: usize, json: bool) -> Result<()> {
    if !json {
        return print(&in_words(model, top));
    }
    print_json(&Contents {
        task: TaskKind::Multilabel,
        labels: &model.labels,
        features: model.features,
        bias: model.bias,
        pairs: model.pairs.len(),
        loss: model.loss,
        formulation: model.formulation,
        data_checksum: format!("{:08x}", model.data_checksum),
        training: Training::of(&model.summary),
        strongest: strongest(model, top, model.labels.len()),
        strongest_pairs: strongest_pairs(model, top),
    })
}

/// The largest weights of each of the first labels.
fn strongest(model: &Labeller, top: usize, most: usize) -> Vec<Strongest<'_>> {
    let (rows, width) = (model.parts().0, model.labels.len());
    let of_label = |slot: usize| {
        let named = |(row, weight)| {
            let is_constant = row == model.features as usize;
            let feature = if is_constant { Feature::Constant("bias") } else { Feature::Index(row as u64 + 1) };
            Weight { feature, weight }
        };
        heaviest_rows(rows, slot, width, top).into_iter().map(named).collect()
    };
    let labels = model.labels.iter().take(most).enumerate();
    labels.map(|(slot, label)| Strongest { label, weights: of_label(slot) }).collect()
}

/// The pairs with the largest weights in absolute value.
fn strongest_pairs(model: &Labeller, top: usize) -> Vec<PairWeight<'_>> {
    let pairs = heaviest_rows(model.parts().1, 0, 1, top);
    let named = |(pair, weight)| {
        let (a, b) = model.pairs.pair(pair);
        PairWeight { labels: [a, b].map(|k| model.labels[k as usize].as_str()), weight }
    };
    pairs.into_iter().map(named).collect()
}

fn in_words(model: &Labeller, top: usize) -> String {
    let text = about(&Described::labeller(model), loss_name(model.loss), model.data_checksum);
    if top == 0 {
        return text;
    }
    let signed = |w: f64| format!("{}{}", if w < 0.0 { "" } else { "+" }, number(w));
    let row = |label: Strongest<'_>| {
        let weights = label.weights.iter().map(|w| format!("{}:{}", w.feature, signed(w.weight)));
        [vec![label.label.to_owned()], weights.collect()].concat()
    };
    let rows: Vec<_> = strongest(model, top, SHOWN).into_iter().map(row).collect();
    let more = if model.labels.len() > SHOWN { "... see --json for the other labels\n" } else { "" };
    let text = format!("{text}\nstrongest features of each label, as INDEX:WEIGHT\n{}{more}", table(&rows));
    let pairs = strongest_pairs(model, top);
    if pairs.is_empty() {
        return text;
    }
    let row = |pair: &PairWeight<'_>| vec![pair.labels.join(" "), signed(pair.weight)];
    let rows: Vec<_> = pairs.iter().map(row).collect();
    format!(
        "{text}\nstrongest pairs of labels: positive weights draw them together, negative ones keep them apart\n{}",
        table(&rows)
    )
}
