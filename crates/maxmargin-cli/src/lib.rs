//! The program `maxmargin`: parses, calls the library and prints. [`embed`] runs its commands inside of another program, on
//! data in memory: one declaration of all settings, one way from them to a model.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests may compare with the C library"))]

mod alignments;
mod checkpoint;
mod compare;
mod dataset;
pub mod embed;
mod evaluate;
mod failure;
mod generate;
mod graphs;
mod heldout;
mod inspect;
mod interrupt;
mod kernel;
mod log;
mod memory;
mod multilabel;
mod options;
mod parsing;
mod partitions;
mod paths;
mod predict;
mod progress;
mod refusals;
mod sampling;
mod solvers;
mod step;
mod streams;
mod summary;
mod tagging;
mod taxonomy;
mod text;
mod train;
mod training;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::checkpoint::Identity;

/// Large-margin classifiers, taggers, parsers, aligners and labellers of sets and graphs, trained to a proven optimum.
#[derive(Debug, Parser)]
#[command(name = "maxmargin", version, after_help = EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  maxmargin generate multiclass --examples 1000 --seed 1 -o train.dat
  maxmargin train multiclass train.dat -m model.mm
  maxmargin evaluate model.mm train.dat
  maxmargin predict model.mm new.dat -o labels.txt
  maxmargin train tag sentences.txt -m tagger.mm
  maxmargin train parse treebank.mrg -m parser.mm
  maxmargin train multilabel scenes.dat -m scenes.mm --pairs tree
  maxmargin train graph images.jsonl -m images.mm
  maxmargin train align homologues.jsonl -m aligner.mm
  maxmargin train taxonomy news.dat -m news.mm --taxonomy news.tree

Files are SVM-light / LIBSVM text, `LABEL INDEX:VALUE ... # comment` (label sets: `LABEL,LABEL,... INDEX:VALUE ...`), for
tags columns of words and tags, for trees brackets as in the Penn Treebank, for graphs and alignments JSON lines; plain, .gz or .zst.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a model on a labelled file
    Train(Box<train::Args>),
    /// Write the label or the labels of every example, the tags or the tree of every sentence, the labels of every graph, alignments
    Predict(predict::Args),
    /// Compare a model's predictions with the labels of a file, or with those of another model
    Evaluate(evaluate::Args),
    /// Show what a model is and what it has learned
    Inspect(inspect::Args),
    /// Write a synthetic data set
    Generate(generate::Args),
    /// Write the features of the tokens of a file, in CRFsuite's format
    Features(tagging::features::Args),
}

/// What the program does.
pub fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let (name, done) = match cli.command {
        Command::Train(args) => ("train", train::run(&args, Identity::new(&Cli::command(), &matches))),
        Command::Predict(args) => ("predict", predict::run(&args)),
        Command::Evaluate(args) => ("evaluate", evaluate::run(&args)),
        Command::Inspect(args) => ("inspect", inspect::run(&args)),
        Command::Generate(args) => ("generate", generate::run(&args)),
        Command::Features(args) => ("features", tagging::features::run(&args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(name),
    }
}
