//! `maxmargin predict`

use std::fmt::Write as _;
use std::io::Write;
use std::path::{Path, PathBuf};

use maxmargin::Error;
use maxmargin::data::output::Output;
use maxmargin::data::svmlight::{LabelRule, Labelled, Stream};
use maxmargin::kernel::Expansion;
use maxmargin::model::{Model, Saved, TaskKind};
use maxmargin::parallel::{Pool, ranges};
use maxmargin::sparse::SparseMatrix;

use crate::failure::{Failure, Result};
use crate::options::{count_from_one, lead, threads, threshold};
use crate::streams::note;
use crate::text::{count, counted};
use crate::{alignments, graphs, multilabel, parsing, paths, streams, tagging, taxonomy};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A model that `maxmargin train` saved
    model: PathBuf,
    /// Examples, with or without labels, plain, .gz or .zst; - reads standard input
    #[arg(value_name = "INPUT_FILE")]
    input: PathBuf,
    /// Where to write the labels, sets, trees or alignments; for columns the lines with their tags [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Write scores, too: after the label and a tab the decision value (binary) or LABEL:SCORE of each class (multiclass,
    /// taxonomy); for sets
    /// LABEL:GAIN of each label in the set; for tags and trees the score of a sentence in a line before it; for graphs the score
    /// after the labels and a tab, and what no labelling has more of; for alignments those of all candidates
    #[arg(long)]
    pub(crate) scores: bool,
    /// The N best sequences of tags or trees of each sentence, at most 10000 (tag, parse)
    #[arg(long, value_name = "N", value_parser = n_best)]
    pub(crate) n_best: Option<usize>,
    /// Write after each tag by how much the best sequence without it scores less: how sure it is (tag)
    #[arg(long, conflicts_with = "n_best")]
    pub(crate) margins: bool,
    /// Take the tags that the input has as given, and find the missing ones: `?`, or none (tag)
    #[arg(long)]
    pub(crate) forced: bool,
    /// Only phrases of at most so many words, but for those at the beginning or the end of a sentence: less memory and
    /// time for long sentences (parse) [default: as in training]
    #[arg(long, value_name = "N", value_parser = count_from_one)]
    pub(crate) max_span: Option<u32>,
    /// A label has to gain more than T, beside the others of its set (multilabel): a larger T makes sets smaller [default: 0]
    #[arg(long, value_name = "T", value_parser = threshold, allow_negative_numbers = true)]
    pub(crate) threshold: Option<f64>,
    /// How alignments are written (align) [default: text]
    #[arg(long, value_name = "F")]
    pub(crate) format: Option<AlignmentFormat>,
    /// Of the best class and its ancestors, write the lowest whose classes lead all others by at least T (taxonomy): an inner
    /// node where the classes below it cannot be told apart. Training asks for a lead of the loss of an error [default: the
    /// best class]
    #[arg(long, value_name = "T", value_parser = lead, allow_negative_numbers = true)]
    pub(crate) depth_threshold: Option<f64>,
    /// Threads; the result does not depend on their number [default: one a core]
    #[arg(long, value_name = "T", value_parser = threads)]
    threads: Option<usize>,
}

/// How alignments are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum AlignmentFormat {
    /// For people: blocks of 60 columns with a line between that marks matches
    Text,
    /// One JSON object a line
    Json,
}

/// Each state keeps so many ways.
fn n_best(text: &str) -> std::result::Result<usize, String> {
    const MOST: usize = 10_000;
    text.parse().ok().filter(|n| (1..=MOST).contains(n)).ok_or_else(|| format!("must be from 1 to {MOST}"))
}

const EXAMPLES: &str = "\
Examples:
  maxmargin predict model.mm test.dat -o labels.txt
  zcat big.dat.gz | maxmargin predict model.mm - --scores | head
  maxmargin predict pos.mm new.txt --margins -o tagged.txt
  echo 'the/DT old/JJ man/NN sleeps/VBZ ./.' | maxmargin predict trees.mm - --n-best 3
  maxmargin predict scenes.mm new.dat --threshold 0.5 --scores
  maxmargin predict images.mm new.jsonl -o labels.jsonl
  maxmargin predict news.mm new.dat --depth-threshold 0.5
  maxmargin predict aligner.mm pairs.jsonl --format json";

/// Examples that are held at a time.
const BATCH: usize = 8192;

pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(output) = &args.output {
        let sources = [("the input", Some(args.input.as_path())), ("the model", Some(args.model.as_path()))];
        paths::refuse_overwriting("--output", output, &sources)?;
    }
    with(args, &Saved::load(&args.model)?)
}

/// With a model that is there.
pub(crate) fn with(args: &Args, model: &Saved) -> Result<()> {
    let input = streams::open(&args.input)?;
    let pool = Pool::new(args.threads.unwrap_or(0))?;
    check_options(args, model.task())?;
    let write = |out: &mut dyn Write, name: &Path| match model {
        Saved::Classifier(model) => write_all(args, model, Stream::new(input, LabelRule::Optional), &pool, out, name),
        Saved::Taxonomy(model) => taxonomy::predict::write_all(args, model, input, &pool, out, name),
        Saved::Tagger(model) => tagging::predict::write_all(args, model, input, &pool, out, name),
        Saved::Parser(model) => parsing::predict::write_all(args, model, input, &pool, out, name),
        Saved::Labeller(model) => multilabel::predict::write_all(args, model, input, &pool, out, name),
        Saved::GraphLabeller(model) => graphs::predict::write_all(args, model, input, &pool, out, name),
        Saved::PairAligner(model) => alignments::predict::write_all(args, model, input, &pool, out, name),
    };
    match &args.output {
        Some(path) => {
            let mut output = Output::create(path)?;
            write(&mut output, path)?;
            output.finish()?;
        }
        None => write(&mut streams::Output, Path::new("standard output"))?,
    }
    Ok(())
}

/// Refuses options of other tasks.
fn check_options(args: &Args, task: TaskKind) -> Result<()> {
    let (is_tag, is_parse) = (task == TaskKind::Tag, task == TaskKind::Parse);
    let rules = [
        (args.n_best.is_some() && !is_tag && !is_parse, "--n-best", "tags and trees"),
        (args.margins && !is_tag, "--margins", "tags"),
        (args.forced && !is_tag, "--forced", "tags"),
        (args.max_span.is_some() && !is_parse, "--max-span", "trees"),
        (args.format.is_some() && task != TaskKind::Align, "--format", "alignments"),
        (args.threshold.is_some() && task != TaskKind::Multilabel, "--threshold", "label sets"),
        (args.depth_threshold.is_some() && task != TaskKind::Taxonomy, "--depth-threshold", "taxonomies"),
    ];
    match rules.iter().find(|rule| rule.0) {
        Some((_, option, models)) => {
            Err(Failure::Usage(format!("{option}: belongs to models of {models}; this one is of the task {task}")))
        }
        None => Ok(()),
    }
}

fn write_all(
    args: &Args,
    model: &Model,
    mut stream: Stream<'_>,
    pool: &Pool,
    out: &mut dyn Write,
    name: &Path,
) -> Result<()> {
    let mut strangers = Strangers::default();
    while let Some(batch) = stream.next_batch(BATCH)? {
        strangers.look(model.features, &batch.matrix);
        let parts = over_rows(model, &batch, pool, |text: &mut String, class, scores| {
            text.push_str(&model.labels[class as usize]);
            if args.scores {
                push_scores(model, scores, text);
            }
            text.push('\n');
        });
        for part in parts {
            out.write_all(part.as_bytes()).map_err(|e| Error::io(name, e))?;
        }
        // Whoever pipes examples in one by one wants the labels one by one.
        out.flush().map_err(|e| Error::io(name, e))?;
    }
    strangers.tell(model.features);
    Ok(())
}

fn push_scores(model: &Model, scores: &[f64], text: &mut String) {
    const IN_MEMORY: &str = "strings take all text";
    match model.task {
        TaskKind::Binary => write!(text, "\t{}", scores[1] - scores[0]).expect(IN_MEMORY),
        _ => {
            for (k, (label, score)) in model.labels.iter().zip(scores).enumerate() {
                let gap = if k == 0 { '\t' } else { ' ' };
                write!(text, "{gap}{label}:{score}").expect(IN_MEMORY);
            }
        }
    }
}

/// Gathers something of each row of a batch, of its class and scores, in parts, in order.
pub(crate) fn over_rows<R: Default + Send>(
    model: &Model,
    batch: &Labelled,
    pool: &Pool,
    add: impl Fn(&mut R, u32, &[f64]) + Sync + Send,
) -> Vec<R> {
    let predictor = model.predictor();
    // Blocks that do not depend on the number of threads: nor do the scores of a kernel, to the last bit.
    let blocks = batch.len().div_ceil(Expansion::BLOCK);
    let parts = if model.kernel.is_some() { blocks } else { 4 * pool.threads() };
    pool.map(ranges(batch.len(), parts), |range| {
        let (mut result, mut scores) = (R::default(), Vec::new());
        predictor.predict_all(batch.matrix.range(range), &mut scores, |class, scores| add(&mut result, class, scores));
        result
    })
}

/// Counts examples with features that the model does not know.
#[derive(Debug, Default)]
pub(crate) struct Strangers {
    examples: u64,
    with: u64,
}

impl Strangers {
    /// `features`: how many the model knows.
    pub(crate) fn look(&mut self, features: u32, rows: &SparseMatrix) {
        let is_strange = |i: &usize| rows.row(*i).indices().last().is_some_and(|&j| j >= features);
        self.examples += rows.rows() as u64;
        self.with += (0..rows.rows()).filter(is_strange).count() as u64;
    }

    pub(crate) fn tell(&self, features: u32) {
        if self.with > 0 {
            note(&format!(
                "{} of {} have features beyond the {} that the model knows; these were left out",
                count(self.with),
                counted(self.examples, "example"),
                count(u64::from(features))
            ));
        }
    }
}
