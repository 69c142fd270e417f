//! Whole files, on all threads.

use crate::data::blocks::Cut;
use crate::data::input::Input;
use crate::data::svmlight::LabelRule;
use crate::data::tagging::columns::{Layout, first_token};
use crate::data::tagging::gathered::{BadLine, Known, Training};
use crate::data::tagging::names::Names;
use crate::data::tagging::parsed::{Parsed, Rules};
use crate::data::tagging::rows::{Fixed, Growing};
use crate::data::tagging::sentences::{Border, Sentences, Wait, chunks};
use crate::data::tagging::{Features, Format, Sequences, Vocabulary};
use crate::error::Result;
use crate::parallel::Pool;

pub(super) const NO_TOKENS: &str = "the file has no tokens";

impl Format {
    /// Are there features of transitions?
    pub fn has_edges(&self) -> bool {
        matches!(self, Self::Columns(Features::Template(template)) if template.has_edges())
    }

    // A chunk becomes features of about the same size, whatever the format, that fit into a core's second cache.
    pub(super) fn cut(&self) -> Cut {
        match self {
            Self::Columns(_) => Cut { block: 1 << 20, chunk: 64 << 10 },
            Self::SvmHmm | Self::CrfSuite => Cut { block: 4 << 20, chunk: 512 << 10 },
        }
    }
}

/// Reads a training file with all threads of `pool`, and makes its vocabulary: features of at least `min_count` tokens,
/// numbered in the order of their first appearance. Every token needs a tag. The result does not depend on the number of
/// threads, nor does the error: it is that of the first bad line.
pub fn read(input: Input<'_>, format: &Format, min_count: u32, pool: &Pool) -> Result<(Sequences, Vocabulary)> {
    read_cut(input, format, min_count, pool, format.cut())
}

/// Reads another file with the vocabulary of the training file: features that it lacks are left out. Every token needs a
/// tag.
pub fn read_with(input: Input<'_>, format: &Format, vocabulary: &Vocabulary, pool: &Pool) -> Result<Sequences> {
    read_with_cut(input, format, vocabulary, pool, format.cut())
}

/// [`read`] in pieces of other sizes: for tests, which show that they do not matter.
#[doc(hidden)]
pub fn read_in_pieces(
    input: Input<'_>,
    format: &Format,
    min_count: u32,
    pool: &Pool,
    (block, chunk): (usize, usize),
) -> Result<(Sequences, Vocabulary)> {
    read_cut(input, format, min_count, pool, Cut { block, chunk })
}

/// [`read_with`] in pieces of other sizes: for tests.
#[doc(hidden)]
pub fn read_with_in_pieces(
    input: Input<'_>,
    format: &Format,
    vocabulary: &Vocabulary,
    pool: &Pool,
    (block, chunk): (usize, usize),
) -> Result<Sequences> {
    read_with_cut(input, format, vocabulary, pool, Cut { block, chunk })
}

fn read_cut(
    input: Input<'_>,
    format: &Format,
    min_count: u32,
    pool: &Pool,
    cut: Cut,
) -> Result<(Sequences, Vocabulary)> {
    let Gathered { training, checksum, columns } = gather(input, format, pool, cut)?;
    let (mut sequences, mut vocabulary) = training.finish(min_count, format.has_edges(), pool);
    sequences.checksum = checksum;
    vocabulary.columns = columns;
    Ok((sequences, vocabulary))
}

/// Reads a part of the training data for its names alone.
pub fn survey(input: Input<'_>, format: &Format, pool: &Pool) -> Result<Names> {
    let Gathered { training, columns, .. } = gather(input, format, pool, format.cut())?;
    Ok(Names::new(training, columns))
}

/// A training text.
struct Gathered {
    training: Training,
    checksum: u32,
    /// Columns before the tag, of the columns format.
    columns: Option<u32>,
}

fn gather(input: Input<'_>, format: &Format, pool: &Pool, cut: Cut) -> Result<Gathered> {
    let mut sentences = Sentences::new(input, Border::of(format), cut);
    let start = Start::of(&mut sentences, format, None, LabelRule::Required, Wait::Block)?;
    let rules = Rules { format, layout: start.layout, tags: LabelRule::Required };
    let mut training = Training::after(start.line);
    let parse = |text: &[u8]| Parsed::of(text, rules, Growing::default());
    drive(&mut sentences, start.text, cut.chunk, pool, parse, |piece| training.append(piece))?;
    let (tokens, lines) = training.size();
    if tokens == 0 {
        return Err(sentences.error(lines.max(1), NO_TOKENS));
    }
    let columns = match format {
        Format::Columns(_) => u32::try_from(start.layout.columns).ok(),
        Format::SvmHmm | Format::CrfSuite => None,
    };
    Ok(Gathered { training, checksum: sentences.blocks.checksum(), columns })
}

fn read_with_cut(
    input: Input<'_>,
    format: &Format,
    vocabulary: &Vocabulary,
    pool: &Pool,
    cut: Cut,
) -> Result<Sequences> {
    let mut sentences = Sentences::new(input, Border::of(format), cut);
    let start = Start::of(&mut sentences, format, vocabulary.columns, LabelRule::Required, Wait::Block)?;
    let rules = Rules { format, layout: start.layout, tags: LabelRule::Required };
    let mut known = Known::after(start.line, vocabulary);
    let parse = |text: &[u8]| Parsed::of(text, rules, Fixed::new(&vocabulary.features, &vocabulary.edges));
    drive(&mut sentences, start.text, cut.chunk, pool, parse, |piece| known.append(piece))?;
    let (tokens, lines) = known.size();
    if tokens == 0 {
        return Err(sentences.error(lines.max(1), NO_TOKENS));
    }
    let mut sequences = known.take(format.has_edges());
    sequences.tokens.shrink();
    sequences.checksum = sentences.blocks.checksum();
    Ok(sequences)
}

/// What is known once the first token is in sight.
pub(super) struct Start {
    pub(super) layout: Layout,
    /// Lines before `text`.
    pub(super) line: u64,
    /// These lines.
    pub(super) skipped: Vec<u8>,
    /// The text that the first token is in; empty at the end of the input.
    pub(super) text: Vec<u8>,
}

impl Start {
    /// Reads as far as the first token, and checks its columns against the `columns` of the model.
    pub(super) fn of(
        sentences: &mut Sentences<'_>,
        format: &Format,
        columns: Option<u32>,
        rule: LabelRule,
        wait: Wait,
    ) -> Result<Self> {
        let mut start = Self { layout: Layout::default(), line: 0, skipped: Vec::new(), text: Vec::new() };
        while sentences.next(&mut start.text, wait)? {
            let Format::Columns(features) = format else { break };
            match first_token(&start.text) {
                Err(lines) => {
                    start.line += lines;
                    start.skipped.append(&mut start.text);
                }
                Ok((line, fields)) => {
                    let line = start.line + line;
                    start.layout = layout(fields, line, columns, rule).map_err(|what| sentences.error(line, what))?;
                    if let Features::Template(template) = features {
                        template.check(start.layout.columns, sentences.blocks.name())?;
                    }
                    break;
                }
            }
        }
        Ok(start)
    }
}

fn layout(fields: usize, line: u64, columns: Option<u32>, rule: LabelRule) -> std::result::Result<Layout, String> {
    let plural = if fields == 1 { "" } else { "s" };
    let Some(columns) = columns.map(|c| c as usize) else {
        if fields < 2 {
            return Err("1 column, but at least 2 are needed: the word first, its tag last".to_owned());
        }
        return Ok(Layout { columns: fields - 1, has_tag: true, line });
    };
    let with_tag = columns + 1;
    if fields == with_tag || fields == columns && rule != LabelRule::Required {
        return Ok(Layout { columns, has_tag: fields == with_tag, line });
    }
    Err(match rule {
        LabelRule::Optional | LabelRule::Set => {
            format!("{fields} column{plural}, but the model needs {columns}, or {with_tag} with the tag")
        }
        LabelRule::Required if fields == columns => {
            format!("tag missing: {fields} column{plural}, but the model needs {with_tag} with the tag")
        }
        LabelRule::Required => format!("{fields} column{plural}, but the model needs {with_tag} with the tag"),
    })
}

/// What a thread does next.
enum Job<'j, 'a, P, A> {
    Read(&'j mut Sentences<'a>, &'j mut Vec<u8>),
    Append(&'j mut A, Vec<P>),
    Parse(&'j [u8]),
}

/// What came of it.
enum Done<P> {
    Read(Result<bool>),
    Appended(std::result::Result<(), BadLine>),
    Parsed(P),
}

/// Parses `text` and all that follows, and appends the pieces in order.
fn drive<P: Send, A: FnMut(P) -> std::result::Result<(), BadLine> + Send>(
    sentences: &mut Sentences<'_>,
    mut text: Vec<u8>,
    chunk: usize,
    pool: &Pool,
    parse: impl Fn(&[u8]) -> P + Sync + Send,
    mut append: A,
) -> Result<()> {
    let border = sentences.border();
    let mut ahead = Vec::new();
    let mut pieces = Vec::new();
    let mut more = Ok(!text.is_empty());
    while let Ok(true) = more {
        // While some threads parse this block, one reads, and unpacks, the next, and one puts the last in its place.
        let mut jobs = vec![Job::Read(sentences, &mut ahead), Job::Append(&mut append, std::mem::take(&mut pieces))];
        jobs.extend(chunks(&text, chunk, border).into_iter().map(Job::Parse));
        let done = pool.map(jobs, |job| match job {
            Job::Read(sentences, ahead) => Done::Read(sentences.next(ahead, Wait::Block)),
            Job::Append(append, pieces) => Done::Appended(pieces.into_iter().try_for_each(append)),
            Job::Parse(text) => Done::Parsed(parse(text)),
        });
        for result in done {
            match result {
                Done::Read(result) => more = result,
                Done::Appended(result) => result.map_err(|(line, what)| sentences.error(line, what))?,
                Done::Parsed(piece) => pieces.push(piece),
            }
        }
        std::mem::swap(&mut text, &mut ahead);
    }
    // Before a failed read: a bad line before that place comes first.
    pieces.into_iter().try_for_each(append).map_err(|(line, what)| sentences.error(line, what))?;
    more.map(drop)
}
