//! `maxmargin evaluate`

use std::path::PathBuf;

use maxmargin::data::input::Input;
use maxmargin::data::labels::Lookup;
use maxmargin::data::svmlight::{LabelRule, Stream};
use maxmargin::metrics::{ClassFigures, Evaluation, Evaluator};
use maxmargin::model::{Model, Saved, TaskKind};
use maxmargin::parallel::Pool;
use serde::{Serialize, Serializer};

use crate::compare::{Judged, Shown, report};
use crate::failure::{Failure, Result};
use crate::options::{count_from_one, lead, threads, threshold};
use crate::predict::{Strangers, over_rows};
use crate::text::{count, counted, fields, number, table};
use crate::{alignments, graphs, multilabel, parsing, streams, tagging, taxonomy};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A model that `maxmargin train` saved
    pub(crate) model: PathBuf,
    /// Labelled examples, plain, .gz or .zst; - reads standard input
    #[arg(value_name = "LABELLED_FILE")]
    pub(crate) input: PathBuf,
    /// Another model of the same task, to be compared on the same examples: figures side by side, and McNemar's test of
    /// whether the difference in examples (tag, parse: sentences; graph: graphs; align: homologues) that are wholly right may be chance
    #[arg(long, value_name = "MODEL2")]
    pub(crate) compare: Option<PathBuf>,
    /// Only sentences of at most so many words (parse) [default: all]
    #[arg(long, value_name = "N", value_parser = count_from_one)]
    pub(crate) max_words: Option<u32>,
    /// A label has to gain more than T, beside the others of its set (multilabel) [default: 0]
    #[arg(long, value_name = "T", value_parser = threshold, allow_negative_numbers = true)]
    pub(crate) threshold: Option<f64>,
    /// Of the best class and its ancestors, predict the lowest whose classes lead all others by at least T (taxonomy)
    /// [default: the best class]
    #[arg(long, value_name = "T", value_parser = lead, allow_negative_numbers = true)]
    pub(crate) depth_threshold: Option<f64>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Threads; the result does not depend on their number [default: one a core]
    #[arg(long, value_name = "T", value_parser = threads)]
    threads: Option<usize>,
}

/// Examples that are held at a time.
const BATCH: usize = 8192;

/// Classes with figures of their own: in the text, in JSON.
const SHOWN: usize = 20;
const SHOWN_IN_JSON: usize = 100;

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.compare.is_some() && args.input.as_os_str() == "-" {
        let what = "each model reads the examples, and standard input can be read once only; give a file";
        return Err(Failure::Usage(format!("--compare: {what}")));
    }
    with(args, &Saved::load(&args.model)?)
}

/// With a model that is there.
pub(crate) fn with(args: &Args, model: &Saved) -> Result<()> {
    let pool = Pool::new(args.threads.unwrap_or(0))?;
    let task = model.task();
    for (is_foreign, option, models) in [
        (args.max_words.is_some() && task != TaskKind::Parse, "--max-words", "trees"),
        (args.threshold.is_some() && task != TaskKind::Multilabel, "--threshold", "label sets"),
        (args.depth_threshold.is_some() && task != TaskKind::Taxonomy, "--depth-threshold", "taxonomies"),
    ] {
        if is_foreign {
            let what = format!("belongs to models of {models}; this one is of the task {task}");
            return Err(Failure::Usage(format!("{option}: {what}")));
        }
    }
    let other = args.compare.as_deref().map(Saved::load).transpose()?;
    check_comparable(args, model, other.as_ref())?;
    match model {
        Saved::Classifier(model) => {
            let other = other.as_ref().and_then(|other| if let Saved::Classifier(m) = other { Some(m) } else { None });
            report(args, model, other, |model| classified(model, streams::open(&args.input)?, &pool))
        }
        Saved::Taxonomy(model) => {
            let other = other.as_ref().and_then(|other| if let Saved::Taxonomy(m) = other { Some(m) } else { None });
            report(args, model, other, |model| {
                taxonomy::evaluate::judged(model, streams::open(&args.input)?, args.depth_threshold, &pool)
            })
        }
        Saved::Tagger(model) => {
            let other = other.as_ref().and_then(|other| if let Saved::Tagger(m) = other { Some(m) } else { None });
            report(args, model, other, |model| tagging::evaluate::judged(model, streams::open(&args.input)?, &pool))
        }
        Saved::Parser(model) => {
            let other = other.as_ref().and_then(|other| if let Saved::Parser(m) = other { Some(m) } else { None });
            report(args, model, other, |model| {
                parsing::evaluate::judged(model, streams::open(&args.input)?, args.max_words, &pool)
            })
        }
        Saved::Labeller(model) => {
            let other = other.as_ref().and_then(|other| if let Saved::Labeller(m) = other { Some(m) } else { None });
            let threshold = args.threshold.unwrap_or(0.0);
            report(args, model, other, |model| {
                multilabel::evaluate::judged(model, streams::open(&args.input)?, threshold, &pool)
            })
        }
        Saved::GraphLabeller(model) => {
            let other =
                other.as_ref().and_then(|other| if let Saved::GraphLabeller(m) = other { Some(m) } else { None });
            report(args, model, other, |model| graphs::evaluate::judged(model, streams::open(&args.input)?, &pool))
        }
        Saved::PairAligner(model) => {
            let other = other.as_ref().and_then(|other| if let Saved::PairAligner(m) = other { Some(m) } else { None });
            report(args, model, other, |model| alignments::evaluate::judged(model, streams::open(&args.input)?, &pool))
        }
    }
}

/// Two models are compared where they answer the same question.
fn check_comparable(args: &Args, model: &Saved, other: Option<&Saved>) -> Result<()> {
    let (Some(other), Some(path)) = (other, args.compare.as_deref()) else { return Ok(()) };
    let refuse = |what: String| Err(Failure::Data(format!("{}: {what}", path.display())));
    let (theirs, ours) = (other.task(), model.task());
    if theirs != ours {
        return refuse(format!("a model of the task {theirs}; {} is one of the task {ours}", args.model.display()));
    }
    match (model, other) {
        (Saved::Classifier(a), Saved::Classifier(b)) if ours == TaskKind::Binary && a.labels != b.labels => {
            let [theirs, ours] = [&b.labels, &a.labels].map(|labels| labels.join(" and "));
            refuse(format!("it decides between {theirs}, {} between {ours}", args.model.display()))
        }
        _ => Ok(()),
    }
}

/// The figures of a classifier.
fn classified(model: &Model, input: Input<'_>, pool: &Pool) -> Result<Judged<Classified>> {
    let mut stream = Stream::new(input, LabelRule::Required);
    let lookup = Lookup::new(&model.labels);
    let mut evaluator = Evaluator::new(model)?;
    let mut strangers = Strangers::default();
    let mut right = Vec::new();
    while let Some(batch) = stream.next_batch(BATCH)? {
        strangers.look(model.features, &batch.matrix);
        let classes: Vec<Option<u32>> = batch.labels.names.iter().map(|name| lookup.class(name)).collect();
        let predicted = over_rows(model, &batch, pool, |found: &mut Vec<u32>, class, _| found.push(class));
        for (&id, prediction) in batch.labels.ids.iter().zip(predicted.into_iter().flatten()) {
            let truth = classes[id as usize];
            evaluator.add(truth, prediction);
            right.push(truth == Some(prediction));
        }
    }
    strangers.tell(model.features);
    Ok(Judged { figures: Classified(evaluator.finish()), right })
}

struct Classified(Evaluation);

impl Serialize for Classified {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        Figures::of(&self.0).serialize(serializer)
    }
}

impl Shown for Classified {
    const UNIT: &'static str = "example";

    fn in_words(&self) -> String {
        in_words(&self.0)
    }

    fn main(&self) -> Vec<(&'static str, String)> {
        let Evaluation { accuracy, mean_loss, .. } = self.0;
        vec![("accuracy", format!("{:.2} %", 100.0 * accuracy)), ("mean loss", number(mean_loss))]
    }
}

/// The JSON object.
#[derive(Serialize)]
struct Figures<'e> {
    examples: u64,
    mean_loss: f64,
    accuracy: f64,
    unseen_labels: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<&'e [ClassFigures]>,
    /// Row = truth, column = prediction, in the order of `classes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    confusion: Option<Vec<&'e [u64]>>,
}

impl<'e> Figures<'e> {
    fn of(evaluation: &'e Evaluation) -> Self {
        let classes = Some(evaluation.classes.as_slice()).filter(|c| c.len() <= SHOWN_IN_JSON);
        Self {
            examples: evaluation.examples,
            mean_loss: evaluation.mean_loss,
            accuracy: evaluation.accuracy,
            unseen_labels: evaluation.unseen_labels,
            confusion: classes.map(|c| evaluation.confusion.chunks(c.len()).collect()),
            classes,
        }
    }
}

fn in_words(evaluation: &Evaluation) -> String {
    let right = (evaluation.accuracy * evaluation.examples as f64).round() as u64;
    let mut lines = vec![
        (
            "accuracy",
            format!(
                "{:.2} % ({} of {})",
                100.0 * evaluation.accuracy,
                count(right),
                counted(evaluation.examples, "example")
            ),
        ),
        ("mean loss", number(evaluation.mean_loss)),
    ];
    if evaluation.unseen_labels > 0 {
        let examples = counted(evaluation.unseen_labels, "example");
        lines.push(("unseen labels", format!("{examples}, counted as errors of the largest loss")));
    }
    let text = fields(&lines);
    let classes = &evaluation.classes;
    if classes.len() > SHOWN {
        let way_out = if classes.len() > SHOWN_IN_JSON { "too many for" } else { "see --json for" };
        return format!("{text}\n{} classes: {way_out} figures of each\n", count(classes.len() as u64));
    }
    let share = |x: Option<f64>| x.map_or("-".to_owned(), |x| format!("{x:.4}"));
    let mut rows = vec![["label", "examples", "predicted", "precision", "recall", "F1"].map(str::to_owned).to_vec()];
    rows.extend(classes.iter().map(|class| {
        let figures = [class.precision, class.recall, class.f1].map(share);
        [vec![class.label.clone(), count(class.support), count(class.predicted)], figures.to_vec()].concat()
    }));
    let text = format!("{text}\n{}", table(&rows));
    let mut rows = vec![[vec![String::new()], classes.iter().map(|class| class.label.clone()).collect()].concat()];
    rows.extend(
        classes
            .iter()
            .zip(evaluation.confusion.chunks(classes.len()))
            .map(|(class, row)| [vec![class.label.clone()], row.iter().map(|&n| count(n)).collect()].concat()),
    );
    format!("{text}\nconfusion (rows: truth, columns: prediction)\n{}", table(&rows))
}
