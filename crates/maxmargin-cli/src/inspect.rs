//! `maxmargin inspect`

use std::path::PathBuf;

use maxmargin::kernel::Expansion;
use maxmargin::model::{Loss, Model, Saved, Summary, TaskKind};
use maxmargin::problem::{Formulation, Penalty, Rescaling};
use maxmargin::solver::{Certificate, Status};
use serde::Serialize;

use crate::failure::{Failure, Result};
use crate::streams::{print, print_json};
use crate::summary::{Described, passes};
use crate::text::{counted, fields, number, table};
use crate::{alignments, graphs, multilabel, parsing, tagging, taxonomy};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A model that `maxmargin train` saved
    model: PathBuf,
    /// Features to show for each class, node, tag, label or template, rules of a grammar, pairs of labels or letters: those with
    /// the largest weights in absolute value [default: 10]
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    with(args, &Saved::load(&args.model)?)
}

/// With a model that is there.
pub(crate) fn with(args: &Args, model: &Saved) -> Result<()> {
    let top = args.top.unwrap_or(10);
    match model {
        Saved::Taxonomy(model) => taxonomy::inspect::run(model, args.top, args.json),
        Saved::Tagger(model) => tagging::inspect::run(model, top, args.json),
        Saved::Parser(model) => parsing::inspect::run(model, top, args.json),
        Saved::Labeller(model) => multilabel::inspect::run(model, top, args.json),
        Saved::GraphLabeller(model) => graphs::inspect::run(model, top, args.json),
        Saved::PairAligner(model) => alignments::inspect::run(model, top, args.json),
        Saved::Classifier(model) if model.kernel.is_some() && args.top.is_some_and(|top| top > 0) => {
            let what = "this model has a kernel, and so no weights of features to show; leave the option out";
            Err(Failure::Usage(format!("--top: {what}")))
        }
        Saved::Classifier(model) if args.json => print_json(&Contents::of(model, top)),
        Saved::Classifier(model) => print(&in_words(model, top)),
    }
}

/// The JSON object.
#[derive(Serialize)]
struct Contents<'m> {
    task: TaskKind,
    labels: &'m [String],
    features: u32,
    bias: f64,
    loss: &'m Loss,
    #[serde(flatten)]
    formulation: Formulation,
    data_checksum: String,
    training: Training<'m>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<Kernel>,
    /// None with a kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    strongest: Option<Vec<Strongest<'m>>>,
}

/// A kernel and what the model keeps of the training data.
#[derive(Serialize)]
pub(crate) struct Kernel {
    /// As on the command line.
    name: String,
    /// What the bias adds.
    constant: f64,
    support_vectors: usize,
    nonzeros: usize,
    /// Of each support vector.
    coefficients: u32,
    bytes: u64,
}

impl Kernel {
    pub(crate) fn of(expansion: &Expansion) -> Self {
        Self {
            name: expansion.kernel().to_string(),
            constant: expansion.kernel().constant,
            support_vectors: expansion.len(),
            nonzeros: expansion.vectors().nonzeros(),
            coefficients: expansion.width(),
            bytes: expansion.bytes(),
        }
    }
}

/// The names are those of the summary of `train`.
#[derive(Serialize)]
pub(crate) struct Training<'m> {
    solver: &'m str,
    status: Status,
    certificate: Certificate,
    examples: u64,
    epsilon: f64,
    primal: f64,
    primal_error: f64,
    dual: f64,
    gap: f64,
    rounds: u64,
    passes: f64,
    train_loss: f64,
}

impl<'m> Training<'m> {
    pub(crate) fn of(summary: &'m Summary) -> Self {
        Self {
            solver: &summary.solver,
            status: summary.status,
            certificate: summary.certificate,
            examples: summary.examples,
            epsilon: summary.epsilon,
            primal: summary.primal,
            primal_error: summary.primal_error,
            dual: summary.dual,
            gap: summary.gap,
            rounds: summary.rounds,
            passes: summary.passes,
            train_loss: summary.train_loss,
        }
    }
}

#[derive(Serialize)]
struct Strongest<'m> {
    label: &'m str,
    weights: Vec<Weight>,
}

/// The weight of a feature.
#[derive(Serialize)]
pub(crate) struct Weight {
    pub(crate) feature: Feature,
    pub(crate) weight: f64,
}

#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Feature {
    /// From 1, as in the data.
    Index(u64),
    Constant(&'static str),
}

impl std::fmt::Display for Feature {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Index(index) => index.fmt(f),
            Self::Constant(name) => name.fmt(f),
        }
    }
}

impl<'m> Contents<'m> {
    fn of(model: &'m Model, top: usize) -> Self {
        Self {
            task: model.task,
            labels: &model.labels,
            features: model.features,
            bias: model.bias,
            loss: &model.loss,
            formulation: model.formulation,
            data_checksum: format!("{:08x}", model.data_checksum),
            training: Training::of(&model.summary),
            kernel: model.kernel.as_ref().map(Kernel::of),
            strongest: model.kernel.is_none().then(|| strongest(model, top)),
        }
    }
}

/// The largest weights of each class; a binary model has one weight a feature, that of the positive class.
fn strongest(model: &Model, top: usize) -> Vec<Strongest<'_>> {
    let slots = model.slots();
    let labels = &model.labels[model.labels.len() - slots..];
    let of_slot = |(slot, label)| {
        let weights = heaviest_rows(model.weights.as_slice(), slot, slots, top);
        let named = |(row, weight)| {
            let is_constant = row == model.features as usize;
            let feature = if is_constant { Feature::Constant("bias") } else { Feature::Index(row as u64 + 1) };
            Weight { feature, weight }
        };
        Strongest { label, weights: weights.into_iter().map(named).collect() }
    };
    labels.iter().map(String::as_str).enumerate().map(of_slot).collect()
}

/// The rows of a block of this width with the largest weights of a slot, in absolute value, and these weights.
pub(crate) fn heaviest_rows(block: &[f64], slot: usize, width: usize, top: usize) -> Vec<(usize, f64)> {
    let mut weights: Vec<(usize, f64)> = block.iter().copied().skip(slot).step_by(width).enumerate().collect();
    weights.retain(|w| w.1 != 0.0);
    weights.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    weights.truncate(top);
    weights
}

fn in_words(model: &Model, top: usize) -> String {
    let loss = match &model.loss {
        Loss::ZeroOne => "zero-one",
        Loss::Absolute => "absolute",
        Loss::Squared => "squared",
        Loss::Matrix(_) => "from a cost matrix",
    };
    about(&Described::classifier(model), loss, model.data_checksum)
        + &if top == 0 || model.kernel.is_some() { String::new() } else { strongest_in_words(model, top) }
}

/// What a model is and how it was trained.
pub(crate) fn about(model: &Described<'_>, loss: &str, data_checksum: u32) -> String {
    let Formulation { rescaling, penalty, loss_scale, .. } = model.formulation;
    let training = model.training;
    let rescaling = match rescaling {
        Rescaling::Margin => "margin rescaling",
        Rescaling::Slack => "slack rescaling",
    };
    let slack = match penalty {
        Penalty::Linear => format!("linear slack, C = {}", number(training.c)),
        Penalty::Quadratic => format!("quadratic slack, C = {}", number(training.c)),
        Penalty::Hard => "hard margin".to_owned(),
    };
    let scaled = if loss_scale == 1.0 { String::new() } else { format!(" times {}", number(loss_scale)) };
    let mut lines = vec![("task", format!("{}, {}", model.task, model.labels)), ("features", model.features.clone())];
    lines.extend(model.kernel().map(|kernel| ("kernel", kernel)));
    lines.extend([
        ("problem", format!("{rescaling}, {slack}, loss {loss}{scaled}")),
        ("trained on", format!("{}, checksum {data_checksum:08x}", counted(training.examples, "example"))),
        ("solver", format!("{}: {}, {}", training.solver, counted(training.rounds, "round"), passes(training.passes))),
    ]);
    lines.extend(model.end(None));
    fields(&lines)
}

fn strongest_in_words(model: &Model, top: usize) -> String {
    let strongest = strongest(model, top);
    let signed = |w: &Weight| format!("{}{}", if w.weight < 0.0 { "" } else { "+" }, number(w.weight));
    match (model.labels.as_slice(), strongest.as_slice()) {
        (_, classes) if classes.iter().all(|class| class.weights.is_empty()) => "\nall weights are 0\n".to_owned(),
        ([negative, positive], [only]) => {
            let row = |w: &Weight| vec![w.feature.to_string(), signed(w)];
            let rows: Vec<_> = only.weights.iter().map(row).collect();
            let title = format!("positive weights speak for {positive}, negative ones for {negative}");
            format!("\nstrongest features: {title}\n{}", table(&rows))
        }
        (_, classes) => {
            let row = |class: &Strongest<'_>| {
                let weights = class.weights.iter().map(|w| format!("{}:{}", w.feature, signed(w)));
                [vec![class.label.to_owned()], weights.collect()].concat()
            };
            let rows: Vec<_> = classes.iter().map(row).collect();
            format!("\nstrongest features of each class, as INDEX:WEIGHT\n{}", table(&rows))
        }
    }
}
