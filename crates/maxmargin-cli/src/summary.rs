//! What `train` prints at the end.

use std::path::Path;

use maxmargin::data::trees::{Binarise, Shape};
use maxmargin::inference::chain::Order;
use maxmargin::kernel::Expansion;
use maxmargin::model::{self, GraphLabeller, Labeller, Model, PairAligner, Parser, Tagger, TaskKind, TaxonomyModel};
use maxmargin::problem::{Formulation, Penalty, Rescaling};
use maxmargin::solver::folds::Validation;
use maxmargin::solver::{Certificate, Status};
use maxmargin::tasks::factor_graph::{self, Template};
use maxmargin::tasks::parsing::ParseFeatures;
use serde::Serialize;

use crate::checkpoint::Saver;
use crate::failure::Result;
use crate::multilabel::pairs_in_words;
use crate::step::Step;
use crate::streams::{print, print_json};
use crate::taxonomy::{architecture_in_words, hierarchy_in_words};
use crate::text::{bytes, count, counted, duration, fields, labels, number, table};
use crate::train::Args;
use crate::training::Trained;
use crate::{alignments, memory};

/// The summary: its fields are the keys of the JSON object.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'t> {
    task: TaskKind,
    solver: &'t str,
    /// Why this one; None where the user named it.
    solver_reason: Option<&'t str>,
    status: Status,
    certificate: Certificate,
    examples: u64,
    dimension: usize,
    /// None with the hard margin, which has none.
    c: Option<f64>,
    epsilon: f64,
    primal: f64,
    /// None where the certificate is: no bound is known.
    dual: Option<f64>,
    gap: Option<f64>,
    rounds: u64,
    passes: f64,
    oracle_calls: u64,
    cache_hits: u64,
    working_set: usize,
    seconds_reading: f64,
    /// To make atoms, or coordinates of low rank.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_kernel: Option<f64>,
    /// Along a path these are sums.
    seconds_training: f64,
    seconds_oracle: f64,
    seconds_qp: f64,
    peak_rss_mb: Option<f64>,
    train_loss: f64,
    heldout_loss: Option<f64>,
    /// The least that was seen, on the way to this model or to another.
    heldout_best: Option<f64>,
    path: Option<Vec<Rung>>,
    folds: Option<usize>,
    cv: Option<&'t [Validation]>,
    /// The share of the mass on which factors disagree, of training factor by factor.
    #[serde(skip_serializing_if = "Option::is_none")]
    disagreement: Option<f64>,
    /// Examples whose oracle is a search, where the task has such.
    #[serde(skip_serializing_if = "Option::is_none")]
    searched: Option<u64>,
    /// By how much sampled cuts may miss the minimum, with the probability that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_at_most: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// The share of the kernel that coordinates leave out.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel_left_out: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    support_vectors: Option<usize>,
    /// Then the objective is at most this; also where there was no time left to decode all examples.
    #[serde(skip_serializing_if = "Option::is_none")]
    primal_at_most: Option<f64>,
}

/// One C of a path.
#[derive(Debug, Serialize)]
struct Rung {
    c: f64,
    status: Status,
    primal: f64,
    dual: Option<f64>,
    gap: Option<f64>,
    passes: f64,
    train_loss: f64,
    heldout_loss: Option<f64>,
    seconds: f64,
}

impl Rung {
    fn of(step: &Step) -> Self {
        Self {
            c: step.c,
            status: step.status,
            primal: step.primal,
            dual: bounded(step, step.dual),
            gap: bounded(step, step.gap),
            passes: step.passes,
            train_loss: step.train_loss,
            heldout_loss: step.heldout_loss(),
            seconds: step.seconds_training,
        }
    }
}

/// A number that needs a bound.
fn bounded(step: &Step, x: f64) -> Option<f64> {
    (step.certificate != Certificate::None).then_some(x)
}

/// What a kernel made of the examples' vectors.
pub(crate) struct Approximated {
    pub(crate) in_words: String,
    /// The share of the kernel that is lost in coordinates.
    pub(crate) left_out: Option<f64>,
}

/// What the summary says of a model, whatever its task.
pub(crate) struct Described<'m> {
    pub(crate) task: TaskKind,
    /// Its labels, in words.
    pub(crate) labels: String,
    /// Its features, in words.
    pub(crate) features: String,
    /// Its kernel and what it keeps of the training data.
    pub(crate) expansion: Option<&'m Expansion>,
    /// What training made of the vectors for a kernel, in words; not known of a model from a file.
    pub(crate) approximated: Option<Approximated>,
    /// Number of weights; with a kernel, coefficients of support vectors among them.
    pub(crate) dimension: usize,
    pub(crate) formulation: Formulation,
    pub(crate) training: &'m model::Summary,
}

/// A kernel and its support vectors.
fn kernel_in_words(expansion: &Expansion) -> String {
    let (support, nonzeros) = (expansion.len() as u64, expansion.vectors().nonzeros() as u64);
    format!(
        "{}, {} ({}, {} each, {})",
        expansion.kernel(),
        counted(support, "support vector"),
        counted(nonzeros, "nonzero"),
        counted(u64::from(expansion.width()), "coefficient"),
        bytes(expansion.bytes() as f64)
    )
}

/// What is not the default in how a parser was made.
fn shape_in_words(model: &Parser) -> String {
    let Shape { parent_annotation, binarise, markov, min_count, .. } = model.shape;
    let parts = [
        (model.settings.features == ParseFeatures::Spans).then(|| "span features".to_owned()),
        parent_annotation.then(|| "parent annotation".to_owned()),
        (binarise == Binarise::Head).then(|| "binarised around heads".to_owned()),
        markov.map(|order| format!("Markov order {order}")),
        (min_count > 1).then(|| format!("rules seen {min_count} times and more")),
        model.settings.max_span.map(|words| format!("spans of at most {words} words")),
        (!model.strip.empty).then(|| "empty elements kept".to_owned()),
        (!model.strip.functions).then(|| "functions kept".to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("; {}", parts.join(", ")) }
}

/// Features of examples, and the constant one where there is one.
fn features_in_words(features: u32, bias: f64) -> String {
    let constant = if bias == 0.0 { String::new() } else { format!(" and a constant one of {bias}") };
    counted(u64::from(features), "feature") + &constant
}

/// What graphs are made of: `variables of 2 or 3 labels, factors down (2 x 3) and right (2 x 2, 5 features)`.
pub(crate) fn shape_of_graphs(shape: &factor_graph::Shape) -> String {
    format!("{}, {}", domains_in_words(shape), templates_in_words(shape))
}

/// The first few of a list.
fn some_of(all: usize, words: impl Iterator<Item = String>, between: &str) -> String {
    const MOST: usize = 8;
    let shown = words.take(MOST).collect::<Vec<_>>().join(between);
    if all > MOST { format!("{shown} ... ({} in all)", count(all as u64)) } else { shown }
}

fn domains_in_words(shape: &factor_graph::Shape) -> String {
    let sizes = some_of(shape.domains.len(), shape.domains.iter().map(ToString::to_string), " or ");
    format!("variables of {sizes} labels")
}

fn templates_in_words(shape: &factor_graph::Shape) -> String {
    let template = |template: &Template| {
        let domains = some_of(template.domains.len(), template.domains.iter().map(ToString::to_string), " x ");
        let features = template.features.map_or(String::new(), |n| format!(", {}", counted(u64::from(n), "feature")));
        format!("{} ({domains}{features})", template.name.escape_debug())
    };
    match shape.templates.len() {
        0 => "no factors".to_owned(),
        n => format!("factors {}", some_of(n, shape.templates.iter().map(template), ", ")),
    }
}

impl<'m> Described<'m> {
    pub(crate) fn labeller(model: &'m Labeller) -> Self {
        let pairs = pairs_in_words(&model.pairs);
        Self {
            task: TaskKind::Multilabel,
            labels: format!("{}: {}", counted(model.labels.len() as u64, "label"), labels(&model.labels)),
            features: format!("{}, {pairs}", features_in_words(model.features, model.bias)),
            expansion: None,
            approximated: None,
            dimension: model.weights.len(),
            formulation: model.formulation,
            training: &model.summary,
        }
    }

    pub(crate) fn graph_labeller(model: &'m GraphLabeller) -> Self {
        let of_variables = counted(u64::from(model.shape.features), "feature");
        Self {
            task: TaskKind::Graph,
            labels: domains_in_words(&model.shape),
            features: format!("{of_variables} of a variable, {}", templates_in_words(&model.shape)),
            expansion: None,
            approximated: None,
            dimension: model.weights.len(),
            formulation: model.formulation,
            training: &model.summary,
        }
    }

    pub(crate) fn pair_aligner(model: &'m PairAligner) -> Self {
        Self {
            task: TaskKind::Align,
            labels: alignments::kind(model),
            features: alignments::features(model),
            expansion: None,
            approximated: None,
            dimension: model.weights.len(),
            formulation: model.formulation,
            training: &model.summary,
        }
    }

    pub(crate) fn classifier(model: &'m Model) -> Self {
        Self {
            task: model.task,
            labels: format!("{} classes: {}", count(model.labels.len() as u64), labels(&model.labels)),
            features: features_in_words(model.features, model.bias),
            expansion: model.kernel.as_ref(),
            approximated: None,
            dimension: model.kernel.as_ref().map_or(model.weights.len(), |expansion| expansion.coefficients().len()),
            formulation: model.formulation,
            training: &model.summary,
        }
    }

    pub(crate) fn taxonomy(model: &'m TaxonomyModel) -> Self {
        let words = model.labels();
        Self {
            task: TaskKind::Taxonomy,
            labels: format!(
                "{} classes: {}; {}",
                count(words.len() as u64),
                labels(&words),
                hierarchy_in_words(&model.hierarchy)
            ),
            features: format!(
                "{}, {}",
                features_in_words(model.features, model.bias),
                architecture_in_words(&model.architecture)
            ),
            expansion: model.kernel.as_ref(),
            approximated: None,
            dimension: model.kernel.as_ref().map_or(model.weights.len(), |expansion| expansion.coefficients().len()),
            formulation: model.formulation,
            training: &model.summary,
        }
    }

    pub(crate) fn tagger(model: &'m Tagger) -> Self {
        let (shape, tags) = (model.shape(), &model.vocabulary.tags);
        let edges = match shape.edges {
            0 => String::new(),
            n => format!(" and {} of transitions", count(u64::from(n))),
        };
        let order = if shape.order == Order::Second { ", second order" } else { "" };
        let emission = shape.blocks().ok().and_then(|blocks| blocks.last().copied());
        let dimension = emission.map_or(0, |block| match &model.kernel {
            Some(expansion) => block.base as usize + expansion.coefficients().len(),
            None => (block.base + block.len()) as usize,
        });
        Self {
            task: TaskKind::Tag,
            labels: format!("{}: {}{order}", counted(tags.len() as u64, "tag"), labels(tags)),
            features: counted(u64::from(shape.features), "feature") + &edges,
            expansion: model.kernel.as_ref(),
            approximated: None,
            dimension,
            formulation: model.formulation,
            training: &model.summary,
        }
    }

    pub(crate) fn parser(model: &'m Parser) -> Self {
        let (grammar, parts) = (&model.grammar, model.grammar.parts());
        let rules = [
            (parts.roots.len(), "at the root"),
            (parts.unary.len(), "unary"),
            (parts.binary.len(), "binary"),
            (parts.lexical.len(), "lexical"),
        ];
        let rules: Vec<String> =
            rules.iter().filter(|(n, _)| *n > 0).map(|(n, kind)| format!("{} {kind}", count(*n as u64))).collect();
        let mut phrases: Vec<String> = Vec::new();
        parts.labels.iter().filter(|label| !label.is_empty()).for_each(|label| {
            if !phrases.contains(label) {
                phrases.push(label.clone());
            }
        });
        let terminals = match &model.lexicon {
            Some(lexicon) => {
                let classes = lexicon.names().len() as u64 - u64::from(lexicon.words());
                let words = counted(u64::from(lexicon.words()), "word");
                format!("{words} and {} of words", counted(classes, "class").replace("classs", "classes"))
            }
            None => counted(u64::from(parts.tags), "tag"),
        };
        Self {
            task: TaskKind::Parse,
            labels: format!("{}: {}", counted(phrases.len() as u64, "phrase"), labels(&phrases)),
            features: format!(
                "{} ({}) over {}, terminals: {terminals}{}",
                counted(grammar.len() as u64, "rule"),
                rules.join(", "),
                counted(parts.symbols.len() as u64, "symbol"),
                shape_in_words(model),
            ),
            expansion: None,
            approximated: None,
            dimension: model.weights.len(),
            formulation: model.formulation,
            training: &model.summary,
        }
    }

    /// Its kernel and what it keeps of the training data, in words.
    pub(crate) fn kernel(&self) -> Option<String> {
        self.expansion.map(kernel_in_words)
    }

    /// The lines that summary and inspection share: how training ended.
    pub(crate) fn end(&self) -> [(&'static str, String); 4] {
        let training = self.training;
        [
            ("status", status(training.status, training.certificate).to_owned()),
            ("objective", number(training.primal)),
            ("certificate", self.certificate()),
            ("train loss", format!("{} per example", number(training.train_loss))),
        ]
    }

    /// Why a dual value is no bound.
    fn why_estimate(&self) -> String {
        let training = self.training;
        match self.expansion {
            Some(expansion) if !expansion.kernel().is_definite() => "this kernel is no inner product".to_owned(),
            _ if training.solver == "sampled-constant" => {
                "cuts, objective and train loss are those of a sample".to_owned()
            }
            _ if matches!(training.solver.as_str(), "gdmm" | "soft-bcfw") => {
                "where factors make loops, the bound is that of the relaxation's loss".to_owned()
            }
            _ if training.solver.starts_with("sampled") => "cuts are those of a sample".to_owned(),
            Some(_) => "the kernel's values are lost in rounding".to_owned(),
            None => "the oracle is approximate".to_owned(),
        }
    }

    /// The certificate in words.
    fn certificate(&self) -> String {
        let training = self.training;
        let scale = if self.formulation.penalty == Penalty::Hard { training.primal } else { training.c };
        // As a share too: a gap that is small beside C may be large beside P.
        let share = 100.0 * training.gap / training.primal.max(f64::MIN_POSITIVE);
        let asked = number(training.epsilon * scale);
        let gap = format!("gap {} or {share:.2} %, asked for {asked}", number(training.gap));
        match training.certificate {
            Certificate::Exact => format!("exact: the minimum is at least {} ({gap})", number(training.dual)),
            Certificate::Estimate => format!("estimate: {} ({gap})", self.why_estimate()),
            Certificate::None => "none: this solver knows no lower bound".to_owned(),
        }
    }
}

impl<'t> Summary<'t> {
    /// `seconds`: of reading, and of what a kernel made of the vectors before training.
    pub(crate) fn new(model: &Described<'_>, trained: &'t Trained, seconds: (f64, f64)) -> Self {
        let (step, steps) = (&trained.kept.step, &trained.steps);
        let best = steps.iter().filter_map(|step| step.heldout).map(|heldout| heldout.best).reduce(f64::min);
        Self {
            task: model.task,
            solver: trained.solver,
            solver_reason: trained.why,
            status: step.status,
            certificate: step.certificate,
            examples: model.training.examples,
            dimension: model.dimension,
            c: (model.formulation.penalty != Penalty::Hard).then_some(step.c),
            epsilon: model.training.epsilon,
            primal: step.primal,
            dual: bounded(step, step.dual),
            gap: bounded(step, step.gap),
            rounds: step.rounds,
            passes: step.passes,
            oracle_calls: step.oracle_calls,
            cache_hits: step.cache_hits,
            working_set: step.working_set,
            seconds_reading: seconds.0,
            seconds_kernel: model.expansion.map(|_| seconds.1),
            seconds_training: steps.iter().map(|step| step.seconds_training).sum(),
            seconds_oracle: steps.iter().map(|step| step.seconds_oracle).sum(),
            seconds_qp: steps.iter().map(|step| step.seconds_qp).sum(),
            peak_rss_mb: memory::peak_mb(),
            train_loss: step.train_loss,
            heldout_loss: step.heldout_loss(),
            heldout_best: best,
            path: trained.is_path.then(|| steps.iter().map(Rung::of).collect()),
            folds: trained.folds,
            cv: trained.validations.as_deref(),
            disagreement: step.disagreement,
            searched: (!matches!(
                model.task,
                TaskKind::Binary | TaskKind::Multiclass | TaskKind::Taxonomy | TaskKind::Tag
            ))
            .then_some(trained.searched as u64),
            primal_at_most: trained.at_most,
            excess_at_most: trained.excess,
            kernel: model.expansion.map(|expansion| expansion.kernel().to_string()),
            kernel_left_out: model.approximated.as_ref().and_then(|how| how.left_out),
            support_vectors: model.expansion.map(Expansion::len),
        }
    }

    pub(crate) fn print(&self, model: &Described<'_>, trained: &Trained, args: &Args) -> Result<()> {
        if args.output.json {
            return print_json(self);
        }
        let shares = format!("{} oracle, {} QP", duration(self.seconds_oracle), duration(self.seconds_qp));
        let reason = self.solver_reason.map_or(String::new(), |why| format!(" (auto: {why})"));
        let work = format!("{}, {}", counted(self.rounds, "round"), passes(self.passes));
        let mut lines = vec![
            ("task", format!("{}, {}", self.task, model.labels)),
            ("examples", format!("{}, {}", count(self.examples), model.features)),
            ("solver", format!("{}{reason}: {work}", self.solver)),
        ];
        lines.extend(model.kernel().map(|kernel| ("kernel", kernel)));
        lines.extend(model.approximated.as_ref().map(|how| ("vectors", how.in_words.clone())));
        lines.extend(self.c.filter(|_| self.path.is_some() || self.cv.is_some()).map(|c| ("C", self.in_words(c))));
        lines.extend(model.end());
        lines.extend(self.excess_at_most.zip(args.kernel.bound).map(|(excess, delta)| {
            let promise = format!("at most {} above the minimum with probability {}", number(excess), 1.0 - delta);
            ("bound", format!("{promise} (Yu and Joachims 2008)"))
        }));
        if trained.kept.step.primal_is_bound {
            let late =
                "no time was left to decode all examples: the objective is at most that, the train loss that of some";
            lines.push(("late", late.to_owned()));
        }
        lines.extend(self.disagreement.map(|share| ("factors", self.agreement(share))));
        lines.extend(
            self.searched.filter(|n| *n > 0).map(|n| ("oracle", self.in_search(n, model.formulation.rescaling))),
        );
        lines.extend(self.heldout_loss.map(|loss| ("held-out", self.heldout(loss, trained, args))));
        let times = [self.seconds_reading, self.seconds_training].map(duration);
        lines.push(("time", format!("{} reading, {} training ({shares})", times[0], times[1])));
        lines.extend(self.peak_rss_mb.map(|mb| ("memory", format!("{} at most", bytes(1e6 * mb)))));
        lines.push(("model", args.output.model.display().to_string()));
        let checkpoint = trained.saver.as_ref().and_then(Saver::file).filter(|_| !trained.is_done());
        lines.extend(checkpoint.map(|path| ("to go on", to_go_on(path))));
        print(&[fields(&lines), self.path_table(), self.cv_table()].concat())
    }

    /// C, and what it is for a single example.
    fn in_words(&self, c: f64) -> String {
        let is_best = self.cv.is_some_and(|cv| cv.len() > 1);
        let how = if is_best { ", the best in cross-validation" } else { "" };
        format!("{} ({} per example){how}", number(c), number(c / self.examples as f64))
    }

    fn agreement(&self, disagreement: f64) -> String {
        let agree = format!("disagree on {:.2} % of their mass", 100.0 * disagreement);
        match self.dual.filter(|_| self.certificate == Certificate::Estimate) {
            Some(dual) => format!("{agree}; with the relaxation's loss the minimum is at least {}", number(dual)),
            None => agree,
        }
    }

    fn in_search(&self, searched: u64, rescaling: Rescaling) -> String {
        let noun = match self.task {
            TaskKind::Parse => "sentence",
            TaskKind::Graph => "graph",
            _ => "example",
        };
        let why = match (self.task, rescaling) {
            (TaskKind::Parse, _) => "which are too long (--exact-words)",
            (_, Rescaling::Slack) => "as slack rescaling needs it here",
            (TaskKind::Graph, Rescaling::Margin) => "whose factors make loops",
            (_, Rescaling::Margin) => "as the pairs of labels make loops",
        };
        let at_most = match (self.primal_at_most.map(number), self.task) {
            (None, _) => String::new(),
            (Some(p), TaskKind::Parse) => format!("; the objective is at most {p}"),
            (Some(p), _) => format!("; the objective with the relaxation's loss, the most that it can be, is {p}"),
        };
        let (n, all) = (count(searched), counted(self.examples, noun));
        format!("searched, not exact, for {n} of {all}, {why}: the certificate is an estimate{at_most}")
    }

    fn heldout(&self, loss: f64, trained: &Trained, args: &Args) -> String {
        let is_earlier = trained.kept.step.heldout.is_some_and(|heldout| heldout.is_earlier);
        let what = match self.heldout_best {
            _ if is_earlier => "the least seen; these weights are kept, not those of the end".to_owned(),
            _ if args.validation.keep_best && self.path.is_some() => "the least of the path; this C is kept".to_owned(),
            Some(best) if best < loss => format!("{} at best", number(best)),
            _ => "the least seen".to_owned(),
        };
        format!("{} per example ({what})", number(loss))
    }

    fn path_table(&self) -> String {
        let Some(path) = &self.path else { return String::new() };
        let mut rows = vec![words(&["C", "per example", "objective", "gap", "passes", "train loss"])];
        let has_heldout = self.heldout_loss.is_some();
        rows[0].extend(has_heldout.then(|| "held-out loss".to_owned()));
        rows[0].push("time".to_owned());
        let n = self.examples as f64;
        rows.extend(path.iter().map(|rung| {
            let gap = rung.gap.map_or("-".to_owned(), number);
            let mut row = [rung.c, rung.c / n, rung.primal].map(number).to_vec();
            row.extend([gap, number(rung.passes.round()), number(rung.train_loss)]);
            row.extend(rung.heldout_loss.map(number));
            row.push(duration(rung.seconds));
            row
        }));
        format!("\n{}", table(&rows))
    }

    fn cv_table(&self) -> String {
        let Some(cv) = self.cv else { return String::new() };
        let n = self.examples as f64;
        let mut rows = vec![words(&["C", "per example", "loss", "standard error"])];
        rows.extend(cv.iter().map(|v| [v.c, v.c / n, v.loss, v.standard_error].map(number).to_vec()));
        format!("\ncross-validation, {} folds\n{}", self.folds.unwrap_or(0), table(&rows))
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

fn to_go_on(checkpoint: &Path) -> String {
    format!("the same command with --resume (checkpoint {})", checkpoint.display())
}

pub(crate) fn passes(passes: f64) -> String {
    format!(
        "{} {} over the data",
        number((10.0 * passes).round() / 10.0),
        if passes == 1.0 { "pass" } else { "passes" }
    )
}

fn status(status: Status, certificate: Certificate) -> &'static str {
    match status {
        Status::MaxPasses if certificate == Certificate::None => "has made its passes",
        Status::Converged if certificate == Certificate::None => "done",
        Status::Converged => "converged",
        Status::MaxPasses => "stopped by the number of passes (see --max-passes) before the gap was reached",
        Status::MaxSeconds => "stopped by --max-seconds before the gap was reached",
        Status::Interrupted => "interrupted before the gap was reached",
        Status::Stalled if certificate == Certificate::Estimate => "stalled: the gap falls no further",
        Status::Stalled => "stalled: nothing more is gained in f64",
        Status::Infeasible => "infeasible: the data cannot be separated",
    }
}
