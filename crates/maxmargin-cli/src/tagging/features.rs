//! `maxmargin features`

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use maxmargin::data::output::Output;
use maxmargin::data::tagging::write_features;

use super::columns;
use crate::failure::Result;
use crate::{paths, streams};

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Sentences in columns, plain, .gz or .zst; - reads standard input
    #[arg(value_name = "FILE")]
    input: PathBuf,
    /// The features, in CRF++'s template language [default: a built-in set]
    #[arg(long, value_name = "FILE")]
    template: Option<PathBuf>,
    /// Where to write the features [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  maxmargin features english.train.pos | head -n 3
  maxmargin features news.iob --template ner.template -o news.crfsuite";

pub(crate) fn run(args: &Args) -> Result<()> {
    let features = columns(args.template.as_deref())?;
    let Some(path) = &args.output else {
        let mut out = BufWriter::new(streams::Output);
        write_features(streams::open(&args.input)?, &features, &mut out, "standard output")?;
        return out.flush().map_err(|e| maxmargin::Error::io("standard output", e).into());
    };
    let sources = [("the input", Some(args.input.as_path())), ("the template", args.template.as_deref())];
    paths::refuse_overwriting("--output", path, &sources)?;
    let mut output = Output::create(path)?;
    write_features(streams::open(&args.input)?, &features, &mut output, &path.display().to_string())?;
    Ok(output.finish()?)
}
