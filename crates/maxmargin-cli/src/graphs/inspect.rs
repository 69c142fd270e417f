//! `maxmargin inspect` with a model of graphs.

use maxmargin::features::Block;
use maxmargin::model::{GraphLabeller, TaskKind};
use maxmargin::problem::Formulation;
use maxmargin::task::Task;
use maxmargin::tasks::factor_graph::{FactorGraph, Template};
use serde::Serialize;

use crate::failure::Result;
use crate::inspect::{Training, about};
use crate::streams::{print, print_json};
use crate::summary::Described;
use crate::text::table;

/// Labels of a variable up to which a table of two variables is shown whole in the text.
const SHOWN: u32 = 20;

/// The JSON object.
#[derive(Serialize)]
struct Contents<'m> {
    task: TaskKind,
    features: u32,
    domains: &'m [u32],
    templates: &'m [Template],
    #[serde(flatten)]
    formulation: Formulation,
    data_checksum: String,
    training: Training<'m>,
    /// Of the features of variables, for each size of domain.
    strongest: Vec<OfDomain>,
    /// Of the features of factors, or of their labels alone, for each template.
    tables: Vec<OfTemplate<'m>>,
}

#[derive(Serialize)]
struct OfDomain {
    domain: u32,
    weights: Vec<Entry>,
}

#[derive(Serialize)]
struct OfTemplate<'m> {
    template: &'m str,
    weights: Vec<Entry>,
}

/// The weight of a feature at labels.
#[derive(Serialize)]
struct Entry {
    /// From 0, as in the data; None where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    feature: Option<u32>,
    labels: Vec<u32>,
    weight: f64,
}

pub(crate) fn run(model: &GraphLabeller, top: usize, json: bool) -> Result<()> {
    let task = model.task()?;
    if !json {
        return print(&in_words(model, &task, top));
    }
    print_json(&Contents {
        task: TaskKind::Graph,
        features: model.shape.features,
        domains: &model.shape.domains,
        templates: &model.shape.templates,
        formulation: model.formulation,
        data_checksum: format!("{:08x}", model.data_checksum),
        training: Training::of(&model.summary),
        strongest: of_domains(model, &task, top),
        tables: of_templates(model, &task, top),
    })
}

/// The largest weights of a block in absolute value: of features and labels of variables with these domains.
fn heaviest(model: &GraphLabeller, block: Block, domains: &[u32], has_features: bool, top: usize) -> Vec<Entry> {
    let own = &model.weights.as_slice()[block.base as usize..][..block.len() as usize];
    let mut places: Vec<usize> = (0..own.len()).filter(|&at| own[at] != 0.0).collect();
    places.sort_by(|&a, &b| own[b].abs().total_cmp(&own[a].abs()).then(a.cmp(&b)));
    places.truncate(top);
    let width = block.width as usize;
    let named = |at: usize| {
        let (mut slot, mut labels) = ((at % width) as u32, vec![0; domains.len()]);
        // The last variable's label runs fastest.
        for (label, domain) in labels.iter_mut().zip(domains).rev() {
            (*label, slot) = (slot % domain, slot / domain);
        }
        Entry { feature: has_features.then_some((at / width) as u32), labels, weight: own[at] }
    };
    places.into_iter().map(named).collect()
}

fn of_domains(model: &GraphLabeller, task: &FactorGraph, top: usize) -> Vec<OfDomain> {
    let of =
        |(&domain, &block): (&u32, &Block)| OfDomain { domain, weights: heaviest(model, block, &[domain], true, top) };
    model.shape.domains.iter().zip(task.blocks()).map(of).collect()
}

fn of_templates<'m>(model: &'m GraphLabeller, task: &FactorGraph, top: usize) -> Vec<OfTemplate<'m>> {
    let blocks = &task.blocks()[model.shape.domains.len()..];
    let of = |(template, &block): (&'m Template, &Block)| {
        let has_features = template.features.is_some();
        OfTemplate { template: &template.name, weights: heaviest(model, block, &template.domains, has_features, top) }
    };
    model.shape.templates.iter().zip(blocks).map(of).collect()
}

fn signed(w: f64) -> String {
    if w == 0.0 { "0".to_owned() } else { format!("{}{w:.3}", if w < 0.0 { "" } else { "+" }) }
}

fn in_words(model: &GraphLabeller, task: &FactorGraph, top: usize) -> String {
    let mut text = vec![about(&Described::graph_labeller(model), "hamming", model.data_checksum)];
    if top == 0 {
        return text.concat();
    }
    for of in of_domains(model, task, top).iter().filter(|of| !of.weights.is_empty()) {
        let row = |w: &Entry| {
            vec![w.feature.map_or(String::new(), |j| j.to_string()), w.labels[0].to_string(), signed(w.weight)]
        };
        let mut rows = vec![["feature", "label", "weight"].map(str::to_owned).to_vec()];
        rows.extend(of.weights.iter().map(row));
        text.push(format!("\nstrongest features of variables with {} labels\n{}", of.domain, table(&rows)));
    }
    let blocks = &task.blocks()[model.shape.domains.len()..];
    for ((template, &block), of) in model.shape.templates.iter().zip(blocks).zip(of_templates(model, task, top)) {
        let name = &template.name;
        if let (&[a, b], None) = (&template.domains[..], template.features)
            && a.max(b) <= SHOWN
        {
            let own = &model.weights.as_slice()[block.base as usize..][..block.len() as usize];
            let mut rows =
                vec![std::iter::once(String::new()).chain((0..b).map(|l| l.to_string())).collect::<Vec<_>>()];
            rows.extend((0_u32..).zip(own.chunks(b as usize)).map(|(label, weights)| {
                [vec![label.to_string()], weights.iter().map(|&w| signed(w)).collect()].concat()
            }));
            let what = "rows: label of the first variable, columns: of the second";
            text.push(format!("\ntemplate {name} ({what})\n{}", table(&rows)));
            continue;
        }
        let row = |w: &Entry| {
            let labels = w.labels.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            let feature = w.feature.map(|j| j.to_string());
            feature.into_iter().chain([labels, signed(w.weight)]).collect::<Vec<_>>()
        };
        let header: &[&str] =
            if template.features.is_some() { &["feature", "labels", "weight"] } else { &["labels", "weight"] };
        let mut rows = vec![header.iter().map(|&word| word.to_owned()).collect::<Vec<_>>()];
        rows.extend(of.weights.iter().map(row));
        text.push(format!("\ntemplate {name}, strongest weights\n{}", table(&rows)));
    }
    text.concat()
}
