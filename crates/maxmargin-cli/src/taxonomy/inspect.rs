//! `maxmargin inspect` with a model of a taxonomy.

use maxmargin::model::{TaskKind, TaxonomyModel};
use maxmargin::problem::Formulation;
use maxmargin::tasks::taxonomy::{Architecture, Hierarchy};
use serde::Serialize;

use super::loss_name;
use crate::failure::{Failure, Result};
use crate::inspect::{Feature, Kernel, Training, Weight, about, heaviest_rows};
use crate::streams::{print, print_json};
use crate::summary::Described;
use crate::text::{number, table};

/// Nodes that are shown in the text.
const SHOWN: usize = 200;

/// Features that are shown for each where nobody says.
const TOP: usize = 10;

/// The JSON object.
#[derive(Serialize)]
struct Contents<'m> {
    task: TaskKind,
    labels: Vec<String>,
    architecture: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ancestor_weight: Option<f64>,
    nodes: Vec<Node<'m>>,
    features: u32,
    bias: f64,
    loss: &'static str,
    #[serde(flatten)]
    formulation: Formulation,
    data_checksum: String,
    training: Training<'m>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<Kernel>,
    /// Of each slot, which is a node, a class or an attribute. None with a kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    strongest: Option<Vec<Strongest>>,
}

#[derive(Serialize)]
struct Node<'m> {
    name: &'m str,
    parents: Vec<&'m str>,
    height: u32,
    depth: u32,
}

#[derive(Serialize)]
struct Strongest {
    slot: String,
    weights: Vec<Weight>,
}

pub(crate) fn run(model: &TaxonomyModel, top: Option<usize>, json: bool) -> Result<()> {
    if model.kernel.is_some() && top.is_some_and(|top| top > 0) {
        let what = "this model has a kernel, and so no weights of features to show; leave the option out";
        return Err(Failure::Usage(format!("--top: {what}")));
    }
    let top = top.unwrap_or(TOP);
    if !json {
        return print(&in_words(model, top));
    }
    let hierarchy = &*model.hierarchy;
    let name = |node: u32| hierarchy.names()[node as usize].as_str();
    let node = |node: u32| Node {
        name: name(node),
        parents: hierarchy.parents(node).iter().map(|&parent| name(parent)).collect(),
        height: hierarchy.height(node),
        depth: hierarchy.depth(node),
    };
    print_json(&Contents {
        task: TaskKind::Taxonomy,
        labels: model.labels(),
        architecture: match &model.architecture {
            Architecture::Flat => "flat",
            Architecture::Taxonomy(_) => "taxonomy",
            Architecture::Features(_) => "class-features",
        },
        ancestor_weight: match model.architecture {
            Architecture::Taxonomy(weight) => Some(weight),
            _ => None,
        },
        nodes: (0..hierarchy.len() as u32).map(node).collect(),
        features: model.features,
        bias: model.bias,
        loss: loss_name(&model.loss),
        formulation: model.formulation,
        data_checksum: format!("{:08x}", model.data_checksum),
        training: Training::of(&model.summary),
        kernel: model.kernel.as_ref().map(Kernel::of),
        strongest: model.kernel.is_none().then(|| strongest(model, top)),
    })
}

/// The largest weights of each slot.
fn strongest(model: &TaxonomyModel, top: usize) -> Vec<Strongest> {
    let slots = model.slots();
    let width = slots.len();
    let named = |(row, weight)| {
        let is_constant = row == model.features as usize;
        let feature = if is_constant { Feature::Constant("bias") } else { Feature::Index(row as u64 + 1) };
        Weight { feature, weight }
    };
    let of_slot = |(slot, name)| {
        let weights = heaviest_rows(model.weights.as_slice(), slot, width, top);
        Strongest { slot: name, weights: weights.into_iter().map(named).collect() }
    };
    slots.into_iter().enumerate().map(of_slot).collect()
}

fn in_words(model: &TaxonomyModel, top: usize) -> String {
    let text = about(&Described::taxonomy(model), loss_name(&model.loss), model.data_checksum);
    let strongest = if model.kernel.is_some() || top == 0 { Vec::new() } else { strongest(model, top) };
    let weights = |slot: usize| {
        let signed = |w: f64| format!("{}{}", if w < 0.0 { "" } else { "+" }, number(w));
        let of_slot = strongest.get(slot).map_or(&[][..], |slot| slot.weights.as_slice());
        of_slot.iter().map(|w| format!("{}:{}", w.feature, signed(w.weight))).collect::<Vec<_>>()
    };
    if let Architecture::Features(_) = &model.architecture {
        if strongest.is_empty() {
            return text;
        }
        let shown = strongest.iter().take(SHOWN).enumerate();
        let rows: Vec<_> = shown.map(|(slot, of)| [vec![of.slot.clone()], weights(slot)].concat()).collect();
        return format!("{text}\nstrongest features of each attribute, as INDEX:WEIGHT\n{}", table(&rows))
            + more(strongest.len());
    }
    let hierarchy = &*model.hierarchy;
    let slot = |node: u32| match model.architecture {
        Architecture::Taxonomy(_) => node.checked_sub(1).map(|slot| slot as usize),
        _ => model.classes.binary_search(&node).ok(),
    };
    let row = |node: u32| [vec![indented(hierarchy, node)], slot(node).map(weights).unwrap_or_default()].concat();
    let rows: Vec<_> = (0..hierarchy.len().min(SHOWN) as u32).map(row).collect();
    let title =
        if strongest.is_empty() { "the nodes" } else { "the nodes, and their strongest features as INDEX:WEIGHT" };
    format!("{text}\n{title}\n{}", table(&rows)) + more(hierarchy.len())
}

fn more(all: usize) -> &'static str {
    if all > SHOWN { "... see --json for the others\n" } else { "" }
}

/// The name of a node below that of the one above it; in a lattice with its other parents.
fn indented(hierarchy: &Hierarchy, node: u32) -> String {
    let name = |node: u32| hierarchy.names()[node as usize].as_str();
    let indent = "  ".repeat(hierarchy.depth(node) as usize);
    match hierarchy.parents(node) {
        parents if !hierarchy.is_tree() && !parents.is_empty() => {
            let parents: Vec<&str> = parents.iter().map(|&parent| name(parent)).collect();
            format!("{indent}{} < {}", name(node), parents.join(", "))
        }
        _ => format!("{indent}{}", name(node)),
    }
}
