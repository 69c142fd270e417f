//! The commands of the program inside of another one: data and models in memory, errors as values.
//!
//! Settings are the words that the program takes, so that names, defaults, rules and messages are its own.

mod partitions;

use std::sync::Arc;

use clap::{CommandFactory, FromArgMatches};
use maxmargin::data::svmlight::{Labelled, Labels};
use maxmargin::data::tagging::Settled;
use maxmargin::model::Saved;
use maxmargin::parallel::Pool;
use maxmargin::problem;
use maxmargin::sparse::SparseMatrix;
use maxmargin::weights::Weights;

use crate::checkpoint::Identity;
pub use crate::failure::{Failure, Result};
use crate::interrupt::Halt;
use crate::log::Log;
pub use crate::streams::Written;
use crate::train::Given;
use crate::training::{Examples, Vectors};
use crate::{Cli, Command, evaluate, generate, inspect, multilabel, predict, streams, tagging, taxonomy, train};
pub use partitions::{Facts, Group, Partition, blank, merge, survey, train_partitions};

/// What messages call the data.
pub const NAME: &str = "data";

/// What `train` learns from.
#[derive(Debug)]
pub enum Data {
    /// Text in the format of the task.
    Text(Vec<u8>),
    /// Rows whose labels are classes, in the order that these are to have, or for sets words with commas between.
    Rows(Labelled),
    /// Sentences with tags, for `--format crfsuite`.
    Sentences(Box<Settled>),
}

impl Data {
    fn parts(self) -> (Given, Vec<u8>) {
        match self {
            Self::Text(text) => (Given::Text, text),
            Self::Rows(rows) => (Given::Rows(rows), Vec::new()),
            Self::Sentences(sentences) => (Given::Sentences(sentences), Vec::new()),
        }
    }
}

/// What happens beside training.
pub struct Hooks {
    /// Is told every round, beyond ten thousand every second, fourth ... one: the JSON object of `--log`.
    pub on_round: Box<dyn FnMut(&str)>,
    /// Is asked every round whether to stop.
    pub is_over: Box<dyn Fn() -> bool>,
}

/// What `train` has made.
#[derive(Debug)]
pub struct Trained {
    /// The bytes of the model file.
    pub model: Vec<u8>,
    /// The JSON object of `--json`.
    pub summary: String,
    /// What the program would have noted on standard error.
    pub notes: Vec<String>,
}

/// `maxmargin train TASK`. `weights`: how much each example counts; rows have theirs in them.
pub fn train(task: &str, options: &[String], data: Data, weights: Option<Vec<f64>>, hooks: Hooks) -> Result<Trained> {
    let (args, identity) = words_of_train(task, NAME, options)?;
    let (given, text) = data.parts();
    let (log, halt) = (Log::Told(hooks.on_round), Halt::asking(hooks.is_over));
    let train = move || train::in_memory(&args, identity, given, weights, log, halt);
    let (model, written) = streams::in_memory(NAME, text, train);
    let summary = String::from_utf8_lossy(&written.output).into_owned();
    Ok(Trained { model: model?, summary, notes: written.notes })
}

/// `maxmargin predict`, `evaluate` or `inspect` with a model; the first two of `text`.
pub fn ask(model: &Saved, command: &str, options: &[String], text: Vec<u8>) -> Result<Written> {
    let files = if command == "inspect" { &["memory"][..] } else { &["memory", NAME] };
    let first: Vec<String> = [command].iter().chain(files).map(|&word| word.to_owned()).collect();
    let (command, _) = parse(first.iter().chain(options))?;
    run(text, || match command {
        Command::Predict(args) => predict::with(&args, model),
        Command::Evaluate(args) => evaluate::with(&args, model),
        Command::Inspect(args) => inspect::with(&args, model),
        _ => Err(Failure::Usage("only predict, evaluate and inspect ask a model".to_owned())),
    })
}

/// Trains the task of another program, as `train` does, from the weights `start` on: w, and what the summary would tell of
/// training, in JSON.
pub fn train_own(
    data: Arc<dyn problem::Examples + '_>,
    weights: Option<&[f64]>,
    start: Option<Vec<f64>>,
    options: &[String],
    hooks: Hooks,
) -> Result<(Vec<f64>, String)> {
    // The word for the task is one that any has to have; nothing that depends on it is asked.
    let (args, identity) = words_of_train("multiclass", NAME, options)?;
    let examples = Examples { data, weights, folds: None, vectors: Vectors::Own, heldout: None, exactly: None };
    let own = train::Own { examples, count: None, checksum: 0 };
    let (log, halt) = (Log::Told(hooks.on_round), Halt::asking(hooks.is_over));
    let start = start.map(Weights::from);
    let (outcome, _) = streams::in_memory(NAME, Vec::new(), || train::own(&args, identity, own, start, log, halt));
    let outcome = outcome?;
    Ok((outcome.weights().as_slice().to_vec(), told(&outcome)))
}

/// What the summary would tell of training, in JSON.
fn told(outcome: &train::Outcome) -> String {
    let (of, step) = (&outcome.summary, outcome.step());
    serde_json::json!({
        "solver": of.solver,
        "status": of.status,
        "certificate": of.certificate,
        "examples": of.examples,
        "c": of.c,
        "epsilon": of.epsilon,
        "primal": of.primal,
        "primal_error": of.primal_error,
        "dual": of.dual,
        "gap": Some(of.gap).filter(|gap| gap.is_finite()),
        "rests_on_state": step.rests_on_state,
        "rounds": of.rounds,
        "passes": of.passes,
        "oracle_calls": step.oracle_calls,
        "cache_hits": step.cache_hits,
        "working_set": step.working_set,
        "seconds_training": step.seconds_training,
        "seconds_oracle": step.seconds_oracle,
        "seconds_qp": step.seconds_qp,
        "train_loss": of.train_loss,
    })
    .to_string()
}

/// The options of `train`, with data that messages call `name`.
fn words_of_train(task: &str, name: &str, options: &[String]) -> Result<(train::Args, Identity)> {
    let first = ["train", task, name, "--model", "memory", "--json", "--quiet"].map(str::to_owned);
    let (command, identity) = parse(first.iter().chain(options))?;
    let Command::Train(args) = command else { unreachable!("the word says train") };
    Ok((*args, identity))
}

/// The scores of all classes or labels for each row, one row after the other, and how many they are. Of a label of a set: what it
/// gains, or would gain, beside the others of the best set.
pub fn scores(model: &Saved, rows: SparseMatrix, threads: usize) -> Result<(Vec<f64>, usize)> {
    let pool = Pool::new(threads)?;
    match model {
        Saved::Classifier(model) => {
            let batch = unlabelled(rows);
            let add = |all: &mut Vec<f64>, _, scores: &[f64]| all.extend(scores);
            Ok((predict::over_rows(model, &batch, &pool, add).concat(), model.labels.len()))
        }
        Saved::Taxonomy(model) => {
            let (batch, predictor) = (unlabelled(rows), model.predictor()?);
            let add = |all: &mut Vec<f64>, _, scores: &[f64]| all.extend(scores);
            Ok((taxonomy::over_rows(model, &predictor, None, &batch, &pool, add).concat(), model.classes.len()))
        }
        Saved::Labeller(model) => Ok((multilabel::gains(model, &rows, &pool)?, model.labels.len())),
        other => Err(Failure::Usage(format!("models of the task {} have no scores of rows", other.task()))),
    }
}

/// The best label set of each row, as `predict` has it.
pub fn sets(model: &Saved, rows: &SparseMatrix, threshold: f64, threads: usize) -> Result<Vec<Vec<u32>>> {
    let Saved::Labeller(model) = model else {
        return Err(Failure::Usage(format!("models of the task {} have no label sets", model.task())));
    };
    multilabel::sets(model, rows, threshold, &Pool::new(threads)?)
}

/// The name of the node of each row, as `predict` has it.
pub fn nodes(model: &Saved, rows: SparseMatrix, depth_threshold: Option<f64>, threads: usize) -> Result<Vec<String>> {
    let Saved::Taxonomy(model) = model else {
        return Err(Failure::Usage(format!("models of the task {} have no nodes", model.task())));
    };
    let (batch, predictor) = (unlabelled(rows), model.predictor()?);
    let add = |all: &mut Vec<String>, node: u32, _: &[f64]| all.push(model.hierarchy.names()[node as usize].clone());
    Ok(taxonomy::over_rows(model, &predictor, depth_threshold, &batch, &Pool::new(threads)?, add).concat())
}

fn unlabelled(rows: SparseMatrix) -> Labelled {
    let ids = vec![Labels::NONE; rows.rows()];
    Labelled::new(Labels { names: Vec::new(), ids }, rows, None, 0)
}

/// `maxmargin generate TASK`
pub fn generate(task: &str, options: &[String]) -> Result<Written> {
    let first = ["generate", task].map(str::to_owned);
    let (command, _) = parse(first.iter().chain(options))?;
    let Command::Generate(args) = command else { unreachable!("the word says generate") };
    run(Vec::new(), || generate::run(&args))
}

/// `maxmargin features`
pub fn features(options: &[String], text: Vec<u8>) -> Result<Written> {
    let first = ["features", NAME].map(str::to_owned);
    let (command, _) = parse(first.iter().chain(options))?;
    let Command::Features(args) = command else { unreachable!("the word says features") };
    run(text, || tagging::features::run(&args))
}

/// The options of a subcommand, as they are declared: names without dashes, help, possible values, and whether they take a
/// value.
pub fn options(command: &str) -> Vec<Declared> {
    let program = Cli::command();
    let arguments = program.find_subcommand(command).into_iter().flat_map(clap::Command::get_arguments);
    let declared = |arg: &clap::Arg| {
        let text = |help: Option<&clap::builder::StyledStr>| help.map(ToString::to_string).unwrap_or_default();
        Some(Declared {
            name: arg.get_long()?.to_owned(),
            heading: arg.get_help_heading().unwrap_or_default().to_owned(),
            help: text(arg.get_help()),
            values: arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect(),
            takes_value: arg.get_action().takes_values(),
            is_repeated: matches!(arg.get_action(), clap::ArgAction::Append),
        })
    };
    arguments.filter_map(declared).collect()
}

/// An option of the program.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Declared {
    /// Without dashes before it.
    pub name: String,
    /// Under which it stands in the help text.
    pub heading: String,
    /// What it does.
    pub help: String,
    /// The words that it takes, where there are only some.
    pub values: Vec<String>,
    /// Is it followed by a value?
    pub takes_value: bool,
    /// May it be given several times?
    pub is_repeated: bool,
}

fn run(text: Vec<u8>, work: impl FnOnce() -> Result<()>) -> Result<Written> {
    let (done, written) = streams::in_memory(NAME, text, work);
    done.map(|()| written)
}

fn parse<'w>(words: impl Iterator<Item = &'w String>) -> Result<(Command, Identity)> {
    let program = Cli::command();
    let words = std::iter::once("maxmargin").chain(words.map(String::as_str));
    let usage = |error: clap::Error| {
        // The first paragraph says what is wrong, the others how to call a program.
        let text = error.render().to_string();
        let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        Failure::Usage(first.trim().to_owned())
    };
    let matches = program.clone().try_get_matches_from(words).map_err(usage)?;
    let identity = Identity::new(&program, &matches);
    Ok((Cli::from_arg_matches(&matches).map_err(usage)?.command, identity))
}
