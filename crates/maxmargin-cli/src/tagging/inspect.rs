//! `maxmargin inspect` with a model of tags.

use maxmargin::data::tagging::Format;
use maxmargin::model::{Tagger, TaskKind};
use maxmargin::problem::Formulation;
use maxmargin::tasks::tagging::TagLoss;
use serde::Serialize;

use crate::failure::Result;
use crate::inspect::{Kernel, Training, about};
use crate::streams::{print, print_json};
use crate::summary::Described;
use crate::text::{counted, table};

/// Tags in the transition matrix of the text.
const SHOWN: usize = 20;

/// The JSON object.
#[derive(Serialize)]
struct Contents<'m> {
    task: TaskKind,
    format: &'m Format,
    tags: &'m [String],
    features: u32,
    edges: u32,
    order: u8,
    loss: &'m TagLoss,
    #[serde(flatten)]
    formulation: Formulation,
    nonzeros: usize,
    data_checksum: String,
    training: Training<'m>,
    /// Row = the tag before, column = the tag after.
    transitions: Vec<&'m [f64]>,
    first: &'m [f64],
    last: &'m [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<Kernel>,
    /// None with a kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    strongest: Option<Vec<Strongest<'m>>>,
}

#[derive(Serialize)]
struct Strongest<'m> {
    tag: &'m str,
    weights: Vec<Weight>,
}

#[derive(Serialize)]
struct Weight {
    feature: String,
    weight: f64,
}

/// The weights of transitions, of the first tag and of the last one.
struct Structure<'m> {
    transitions: Vec<&'m [f64]>,
    first: &'m [f64],
    last: &'m [f64],
}

impl<'m> Structure<'m> {
    fn of(model: &'m Tagger) -> Result<Self> {
        let [transition, first, last, ..] = model.shape().blocks()?;
        let weights = |block: maxmargin::features::Block| {
            &model.weights.structure[block.base as usize..(block.base + block.len()) as usize]
        };
        let transitions = weights(transition).chunks(model.vocabulary.tags.len()).collect();
        Ok(Self { transitions, first: weights(first), last: weights(last) })
    }
}

pub(crate) fn run(model: &Tagger, top: usize, json: bool) -> Result<()> {
    let structure = Structure::of(model)?;
    if !json {
        return print(&in_words(model, &structure, top));
    }
    let shape = model.shape();
    print_json(&Contents {
        task: TaskKind::Tag,
        format: &model.format,
        tags: &model.vocabulary.tags,
        features: shape.features,
        edges: shape.edges,
        order: match shape.order {
            maxmargin::inference::chain::Order::First => 1,
            maxmargin::inference::chain::Order::Second => 2,
        },
        loss: &model.loss,
        formulation: model.formulation,
        nonzeros: model.weights.nonzeros(),
        data_checksum: format!("{:08x}", model.data_checksum),
        training: Training::of(&model.summary),
        transitions: structure.transitions,
        first: structure.first,
        last: structure.last,
        kernel: model.kernel.as_ref().map(Kernel::of),
        strongest: model.kernel.is_none().then(|| strongest(model, top)),
    })
}

/// The features with the largest weights of each tag, in absolute value.
fn strongest(model: &Tagger, top: usize) -> Vec<Strongest<'_>> {
    let tags = &model.vocabulary.tags;
    let mut of_tags: Vec<Vec<(u32, f64)>> = vec![Vec::new(); tags.len()];
    for feature in 0..model.vocabulary.features.len() as u32 {
        model.weights.row(feature).for_each(|(slot, weight)| of_tags[slot as usize].push((feature, weight)));
    }
    let named = |(feature, weight): (u32, f64)| Weight {
        feature: String::from_utf8_lossy(model.vocabulary.features.name(feature)).into_owned(),
        weight,
    };
    tags.iter()
        .zip(of_tags)
        .map(|(tag, mut weights)| {
            weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
            weights.truncate(top);
            Strongest { tag, weights: weights.into_iter().map(named).collect() }
        })
        .collect()
}

fn in_words(model: &Tagger, structure: &Structure<'_>, top: usize) -> String {
    let loss = match &model.loss {
        TagLoss::Hamming(costs) if costs.iter().all(|&cost| cost == 1.0) => "hamming",
        TagLoss::Hamming(_) => "hamming with costs of tags",
        TagLoss::ZeroOne => "zero-one",
    };
    let text = about(&Described::tagger(model), loss, model.data_checksum);
    if top == 0 {
        return text;
    }
    let features = if model.kernel.is_some() { String::new() } else { strongest_in_words(model, top) };
    let transitions = if model.vocabulary.tags.len() > SHOWN {
        strongest_transitions(model, structure, top)
    } else {
        transition_matrix(model, structure)
    };
    let nonzeros = format!("{} are not 0\n", counted(model.weights.nonzeros() as u64, "weight"));
    [text, features, transitions, nonzeros].concat()
}

fn strongest_in_words(model: &Tagger, top: usize) -> String {
    let rows: Vec<Vec<String>> = strongest(model, top)
        .into_iter()
        .map(|tag| {
            let weights = tag.weights.iter().map(|w| format!("{}:{}", w.feature, signed(w.weight)));
            [vec![tag.tag.to_owned()], weights.collect()].concat()
        })
        .collect();
    format!("\nstrongest features of each tag, as FEATURE:WEIGHT\n{}", table(&rows))
}

fn signed(w: f64) -> String {
    format!("{}{w:.3}", if w < 0.0 { "" } else { "+" })
}

/// For so many tags that a matrix would not fit.
fn strongest_transitions(model: &Tagger, structure: &Structure<'_>, top: usize) -> String {
    let tags = &model.vocabulary.tags;
    let of_row = |(a, row): (usize, &&[f64])| row.iter().enumerate().map(|(b, &w)| (a, b, w)).collect::<Vec<_>>();
    let mut pairs: Vec<(usize, usize, f64)> = structure.transitions.iter().enumerate().flat_map(of_row).collect();
    pairs.sort_by(|a, b| b.2.abs().total_cmp(&a.2.abs()).then((a.0, a.1).cmp(&(b.0, b.1))));
    let row = |&(a, b, w): &(usize, usize, f64)| vec![format!("{} {}", tags[a], tags[b]), signed(w)];
    let rows: Vec<_> = pairs.iter().take(2 * top).map(row).collect();
    format!("\nstrongest transitions, as BEFORE AFTER (see --json for all)\n{}\n", table(&rows))
}

fn transition_matrix(model: &Tagger, structure: &Structure<'_>) -> String {
    let tags = &model.vocabulary.tags;
    let mut rows = vec![[vec![String::new()], tags.clone(), vec!["end".to_owned()]].concat()];
    let row = |name: &str, weights: &[f64], end: Option<f64>| {
        let cells = weights.iter().copied().chain(end).map(|w| if w == 0.0 { "0".to_owned() } else { signed(w) });
        [vec![name.to_owned()], cells.collect()].concat()
    };
    rows.push(row("start", structure.first, None));
    rows.extend(
        tags.iter().zip(&structure.transitions).zip(structure.last).map(|((tag, w), end)| row(tag, w, Some(*end))),
    );
    format!("\ntransitions (rows: the tag before, columns: the tag after)\n{}\n", table(&rows))
}
