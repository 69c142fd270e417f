//! The program `maxmargin`: parses, calls the library and prints.

mod dataset;
mod evaluate;
mod failure;
mod generate;
mod inspect;
mod interrupt;
mod log;
mod memory;
mod options;
mod paths;
mod predict;
mod progress;
mod refusals;
mod summary;
mod text;
mod train;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Large-margin classifiers, trained to a proven optimum.
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

Files are SVM-light / LIBSVM text, `LABEL INDEX:VALUE ... # comment`, plain, .gz or .zst.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Train a model on a labelled file
    Train(Box<train::Args>),
    /// Write the label of every example
    Predict(predict::Args),
    /// Compare a model's predictions with the labels of a file
    Evaluate(evaluate::Args),
    /// Show what a model is and what it has learned
    Inspect(inspect::Args),
    /// Write a synthetic data set
    Generate(generate::Args),
}

fn main() -> ExitCode {
    let (name, done) = match Cli::parse().command {
        Command::Train(args) => ("train", train::run(&args)),
        Command::Predict(args) => ("predict", predict::run(&args)),
        Command::Evaluate(args) => ("evaluate", evaluate::run(&args)),
        Command::Inspect(args) => ("inspect", inspect::run(&args)),
        Command::Generate(args) => ("generate", generate::run(&args)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(name),
    }
}
