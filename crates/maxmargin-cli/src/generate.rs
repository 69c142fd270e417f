//! `maxmargin generate`

use std::io::{self, BufWriter};
use std::path::PathBuf;

use maxmargin::data::output::Output;
use maxmargin::data::synthetic::{self, Sizes};

use crate::failure::{Failure, Result};
use crate::options::Task;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The kind of data
    task: Task,
    /// Number of examples
    #[arg(long, value_name = "N")]
    examples: u64,
    /// The same seed gives the same bytes
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Number of features
    #[arg(long, value_name = "D", default_value_t = Sizes::default().features)]
    features: u32,
    /// Number of classes (multiclass) [default: 3]
    #[arg(long, value_name = "K")]
    classes: Option<u32>,
    /// Features that are not zero in each example [default: all]
    #[arg(long, value_name = "N")]
    nonzeros: Option<u32>,
    /// Probability that a label is wrong
    #[arg(long, value_name = "P", default_value_t = Sizes::default().noise, allow_negative_numbers = true)]
    noise: f64,
    /// Where to write the data, as plain text [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  maxmargin generate binary --examples 1000 --seed 1 --noise 0.05 -o train.dat
  maxmargin generate multiclass --examples 100000 --features 5000 --nonzeros 50 --classes 20 | gzip > big.dat.gz";

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.classes.is_some() && args.task == Task::Binary {
        return Err(Failure::Usage("--classes: belongs to the task multiclass; binary has two".to_owned()));
    }
    if args.nonzeros == Some(0) {
        return Err(Failure::Usage("--nonzeros: must be at least 1".to_owned()));
    }
    let sizes = Sizes {
        examples: args.examples,
        features: args.features,
        classes: args.classes.unwrap_or(Sizes::default().classes),
        nonzeros: args.nonzeros.unwrap_or(args.features),
        noise: args.noise,
    };
    sizes.check()?;
    match &args.output {
        Some(path) => {
            let mut output = Output::create(path)?;
            write(args, &sizes, &mut output, &path.display().to_string())?;
            Ok(output.finish()?)
        }
        None => write(args, &sizes, &mut BufWriter::new(io::stdout().lock()), "standard output"),
    }
}

fn write(args: &Args, sizes: &Sizes, out: &mut impl io::Write, name: &str) -> Result<()> {
    let write = match args.task {
        Task::Binary => synthetic::binary,
        Task::Multiclass => synthetic::multiclass,
    };
    Ok(write(sizes, args.seed, out, name)?)
}
