//! A model in words, whatever its task: what `train` and `inspect` say of it.

use maxmargin::data::trees::{Binarise, Shape};
use maxmargin::inference::chain::Order;
use maxmargin::kernel::Expansion;
use maxmargin::model::{self, GraphLabeller, Labeller, Model, PairAligner, Parser, Tagger, TaskKind, TaxonomyModel};
use maxmargin::problem::{Formulation, Penalty};
use maxmargin::solver::{Certificate, Status};
use maxmargin::tasks::factor_graph::{self, Template};
use maxmargin::tasks::parsing::ParseFeatures;

use crate::alignments;
use crate::multilabel::pairs_in_words;
use crate::step::AtEnd;
use crate::taxonomy::{architecture_in_words, hierarchy_in_words};
use crate::text::{bytes, count, counted, labels, number, rounded_down};

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

    /// The lines that summary and inspection share: how training ended. `at_end`: where that was, if the weights are from before.
    pub(crate) fn end(&self, at_end: Option<AtEnd>) -> [(&'static str, String); 4] {
        let training = self.training;
        let ended = self.status();
        [
            (
                "status",
                match at_end {
                    Some(AtEnd { primal, gap }) if gap.is_finite() => format!(
                        "{ended}, at objective {} and gap {}; the weights are from before, and so are their objective and gap",
                        number(primal),
                        number(gap)
                    ),
                    None if !self.is_of_the_end() => {
                        format!("{ended}; the weights are from before, and so are their objective and gap")
                    }
                    _ => ended.to_owned(),
                },
            ),
            ("objective", self.objective()),
            ("certificate", self.certificate()),
            ("train loss", format!("{} per example", number(training.train_loss))),
        ]
    }

    /// P, and how far it may be off where that is more than nothing.
    fn objective(&self) -> String {
        const WORTH_A_WORD: f64 = 1e-9;
        let (primal, error) = (self.training.primal, self.training.primal_error);
        if error <= WORTH_A_WORD * primal {
            return number(primal);
        }
        format!("{} (computed in f64, off by at most {})", number(primal), number(error))
    }

    /// Can these be the weights with which training converged?
    fn is_of_the_end(&self) -> bool {
        const ROUNDING: f64 = 1e-9;
        let training = self.training;
        let is_proven = training.status == Status::Converged && training.certificate == Certificate::Exact;
        !is_proven || training.gap <= self.asked() + ROUNDING * training.primal
    }

    /// The gap that was asked for.
    fn asked(&self) -> f64 {
        let training = self.training;
        training.epsilon * if self.formulation.penalty == Penalty::Hard { training.primal } else { training.c }
    }

    /// Why a dual value is no bound.
    fn why_estimate(&self) -> String {
        let training = self.training;
        match self.expansion {
            Some(expansion) if !expansion.kernel().is_definite() => "this kernel is no inner product".to_owned(),
            _ if training.solver == "sampled-constant" => {
                "cuts, objective and train loss are those of a sample".to_owned()
            }
            _ if is_factorwise(&training.solver) => {
                "where factors make loops, the bound is that of the relaxation's loss".to_owned()
            }
            _ if training.solver.starts_with("sampled") => "cuts are those of a sample".to_owned(),
            Some(_) if self.approximated.as_ref().is_none_or(|how| how.left_out.is_some()) => {
                "the bound holds for coordinates of low rank, not for the kernel".to_owned()
            }
            Some(_) => "the kernel's values are lost in rounding".to_owned(),
            None => "the oracle is approximate".to_owned(),
        }
    }

    /// The certificate in words.
    fn certificate(&self) -> String {
        let training = self.training;
        // As a share too: a gap that is small beside C may be large beside P.
        let share = 100.0 * training.gap / training.primal.max(f64::MIN_POSITIVE);
        let asked = number(self.asked());
        let gap = format!("gap {} or {share:.2} %, asked for {asked}", number(training.gap));
        match training.certificate {
            Certificate::Exact => format!("exact: the minimum is at least {} ({gap})", rounded_down(training.dual)),
            Certificate::Estimate if training.gap.is_finite() => format!("estimate: {} ({gap})", self.why_estimate()),
            Certificate::Estimate => format!("estimate: {}; no gap is known", self.why_estimate()),
            Certificate::None if self.knows_no_bound() => "none: this solver knows no lower bound".to_owned(),
            Certificate::None => format!("none: no lower bound above 0 was found (gap asked for: {asked})"),
        }
    }

    /// Is the solver one that has no lower bound?
    fn knows_no_bound(&self) -> bool {
        self.training.dual == f64::NEG_INFINITY
    }

    fn status(&self) -> &'static str {
        let training = self.training;
        match training.status {
            Status::MaxPasses if self.knows_no_bound() => "has made its passes",
            Status::Converged if self.knows_no_bound() => "done",
            Status::Converged => "converged",
            Status::MaxPasses => "stopped by the number of passes (see --max-passes) before the gap was reached",
            Status::MaxSeconds => "stopped by --max-seconds before the gap was reached",
            Status::Interrupted => "interrupted before the gap was reached",
            // Factor by factor it is over where the gap has not fallen for long, whatever the reason.
            Status::Stalled if training.certificate == Certificate::Estimate || is_factorwise(&training.solver) => {
                "stalled: the gap falls no further"
            }
            Status::Stalled => "stalled: nothing more is gained in f64",
            Status::Infeasible => "infeasible: the data cannot be separated",
        }
    }
}

fn is_factorwise(solver: &str) -> bool {
    matches!(solver, "gdmm" | "soft-bcfw")
}
