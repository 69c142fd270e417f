//! The task `tag` in the program.

pub(crate) mod evaluate;
pub(crate) mod features;
pub(crate) mod inspect;
pub(crate) mod predict;
pub(crate) mod train;

use std::io::Read;
use std::path::Path;

use maxmargin::data::input::Input;
use maxmargin::data::tagging::{Features, Format, Sequences, Template};
use maxmargin::sparse::SparseMatrix;
use maxmargin::tasks::tagging::Sentence;

use crate::failure::Result;
use crate::options::FormatName;
use crate::train::Args;

/// The format of that name, with its template.
fn format(name: Option<FormatName>, template: Option<&Path>) -> Result<Format> {
    Ok(match name {
        Some(FormatName::Svmhmm) => Format::SvmHmm,
        Some(FormatName::Crfsuite) => Format::CrfSuite,
        Some(FormatName::Columns) | None => Format::Columns(columns(template)?),
    })
}

/// Where the features of columns come from.
fn columns(template: Option<&Path>) -> Result<Features> {
    let Some(path) = template else { return Ok(Features::BuiltIn) };
    let mut text = Vec::new();
    let mut input = Input::open(path)?;
    input.read_to_end(&mut text).map_err(|e| maxmargin::Error::io(path, e))?;
    Ok(Features::Template(Template::parse(&path.display().to_string(), &text)?))
}

/// The format that the options of `train` name.
pub(crate) fn format_of(args: &Args) -> Result<Format> {
    format(args.tag.format, args.tag.template.as_deref())
}

/// The sentences as the task takes them.
pub(crate) fn sentences(sequences: &Sequences) -> Vec<Sentence<'_>> {
    sentences_of(sequences, &sequences.tokens)
}

/// The same with other rows of features in the place of those of the tokens.
pub(crate) fn sentences_of<'s>(sequences: &'s Sequences, tokens: &'s SparseMatrix) -> Vec<Sentence<'s>> {
    let of = |s| Sentence::new(tokens, sequences.edges.as_ref(), sequences.sentence(s));
    (0..sequences.len()).map(of).collect()
}

/// Their tags.
pub(crate) fn tags(sequences: &Sequences) -> Vec<Vec<u32>> {
    (0..sequences.len()).map(|s| sequences.tags[sequences.sentence(s)].to_vec()).collect()
}
