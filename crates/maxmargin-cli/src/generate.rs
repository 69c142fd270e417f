//! `maxmargin generate`

use std::io::{self, BufWriter};
use std::path::PathBuf;

use clap::ValueEnum;
use maxmargin::data::output::Output;
use maxmargin::data::synthetic::{self, ParseSizes, Sizes, TagSizes};

use crate::failure::{Failure, Result};
use crate::options::Task;

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The kind of data
    task: Task,
    /// Which two classes (binary)
    #[arg(long, value_enum)]
    kind: Option<Kind>,
    /// Number of examples
    #[arg(long, value_name = "N")]
    examples: u64,
    /// The same seed gives the same bytes
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Number of features (binary, multiclass) [default: 20]
    #[arg(long, value_name = "D")]
    features: Option<u32>,
    /// Number of classes (multiclass) [default: 3]
    #[arg(long, value_name = "K")]
    classes: Option<u32>,
    /// Features that are not zero in each example [default: all]
    #[arg(long, value_name = "N")]
    nonzeros: Option<u32>,
    /// Number of tags (tag, parse) [default: 12, 20]
    #[arg(long, value_name = "K")]
    tags: Option<u32>,
    /// Number of words of each tag (tag, parse) [default: 2000, 50]
    #[arg(long, value_name = "N")]
    words: Option<u32>,
    /// Mean number of tokens of a sentence (tag), most words of one (parse) [default: 15]
    #[arg(long, value_name = "N")]
    length: Option<u32>,
    /// Number of rules of the hidden grammar (parse) [default: 200]
    #[arg(long, value_name = "N")]
    rules: Option<u32>,
    /// Number of labels of phrases (parse) [default: 8]
    #[arg(long, value_name = "N")]
    phrases: Option<u32>,
    /// Probability that a label is wrong (all but parse); of checkers the standard deviation by which a point is displaced
    /// after its class was fixed, 0.02 in the literature [default: 0]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    noise: Option<f64>,
    /// Where to write the data, as plain text [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What the two classes of a binary problem are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// The sides of a hidden hyperplane (the default)
    Hyperplane,
    /// The cells of a board of 4 x 4: two features from -2 to 2, which only a kernel separates
    Checkers,
}

const EXAMPLES: &str = "\
Examples:
  maxmargin generate binary --examples 1000 --seed 1 --noise 0.05 -o train.dat
  maxmargin generate binary --kind checkers --examples 1000000 --noise 0.02 -o board.dat
  maxmargin generate multiclass --examples 100000 --features 5000 --nonzeros 50 --classes 20 | gzip > big.dat.gz
  maxmargin generate tag --examples 10000 --tags 45 --words 5000 -o sentences.txt
  maxmargin generate parse --examples 1000 --rules 500 --length 20 -o trees.mrg";

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.classes.is_some() && args.task == Task::Binary {
        return Err(Failure::Usage("--classes: belongs to the task multiclass; binary has two".to_owned()));
    }
    let (is_parse, is_text) = (args.task == Task::Parse, matches!(args.task, Task::Tag | Task::Parse));
    let is_board = args.kind == Some(Kind::Checkers);
    let foreign = [
        (args.task != Task::Binary && args.kind.is_some(), "--kind: belongs to the task binary"),
        (is_board && args.features.is_some(), "--features: checkers have two"),
        (is_board && args.nonzeros.is_some(), "--nonzeros: checkers have two features, none of them left out"),
        (is_text && args.features.is_some(), "--features: belongs to the tasks binary and multiclass"),
        (is_text && args.classes.is_some(), "--classes: belongs to the task multiclass; take --tags"),
        (is_text && args.nonzeros.is_some(), "--nonzeros: belongs to the tasks binary and multiclass"),
        (!is_text && args.tags.is_some(), "--tags: belongs to the tasks tag and parse"),
        (!is_text && args.words.is_some(), "--words: belongs to the tasks tag and parse"),
        (!is_text && args.length.is_some(), "--length: belongs to the tasks tag and parse"),
        (!is_parse && args.rules.is_some(), "--rules: belongs to the task parse"),
        (!is_parse && args.phrases.is_some(), "--phrases: belongs to the task parse"),
        (is_parse && args.noise.is_some(), "--noise: generated trees have none"),
    ];
    if let Some((_, what)) = foreign.iter().find(|rule| rule.0) {
        return Err(Failure::Usage((*what).to_owned()));
    }
    if args.nonzeros == Some(0) {
        return Err(Failure::Usage("--nonzeros: must be at least 1".to_owned()));
    }
    match &args.output {
        Some(path) => {
            let mut output = Output::create(path)?;
            write(args, &mut output, &path.display().to_string())?;
            Ok(output.finish()?)
        }
        None => write(args, &mut BufWriter::new(io::stdout().lock()), "standard output"),
    }
}

fn write(args: &Args, out: &mut impl io::Write, name: &str) -> Result<()> {
    if args.task == Task::Tag {
        let default = TagSizes::default();
        let sizes = TagSizes {
            examples: args.examples,
            tags: args.tags.unwrap_or(default.tags),
            words: args.words.unwrap_or(default.words),
            length: args.length.unwrap_or(default.length),
            noise: args.noise.unwrap_or(default.noise),
        };
        return Ok(synthetic::tag(&sizes, args.seed, out, name)?);
    }
    if args.task == Task::Parse {
        let default = ParseSizes::default();
        let sizes = ParseSizes {
            examples: args.examples,
            rules: args.rules.unwrap_or(default.rules),
            tags: args.tags.unwrap_or(default.tags),
            phrases: args.phrases.unwrap_or(default.phrases),
            length: args.length.unwrap_or(default.length),
            words: args.words.unwrap_or(default.words),
        };
        return Ok(synthetic::parse(&sizes, args.seed, out, name)?);
    }
    if args.kind == Some(Kind::Checkers) {
        return Ok(synthetic::checkers(args.examples, args.noise.unwrap_or(0.0), args.seed, out, name)?);
    }
    let features = args.features.unwrap_or(Sizes::default().features);
    let sizes = Sizes {
        examples: args.examples,
        features,
        classes: args.classes.unwrap_or(Sizes::default().classes),
        nonzeros: args.nonzeros.unwrap_or(features),
        noise: args.noise.unwrap_or(Sizes::default().noise),
    };
    let write = if args.task == Task::Binary { synthetic::binary } else { synthetic::multiclass };
    Ok(write(&sizes, args.seed, out, name)?)
}
