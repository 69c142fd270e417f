//! `maxmargin predict` with a model of trees.

use std::io::{self, Write};
use std::path::Path;

use maxmargin::Error;
use maxmargin::data::input::Input;
use maxmargin::data::trees::{self, Reading, Stream, Tree};
use maxmargin::model::Parser;
use maxmargin::parallel::{Pool, ranges};
use maxmargin::tasks::parsing::{Decoded, ParseScratch, ParseSettings, Parsing, UNKNOWN};

use super::check_memory;
use crate::failure::Result;
use crate::predict::Args;
use crate::streams::note;
use crate::text::{count, counted};

/// Sentences that are held at a time.
const BATCH: usize = 1024;

/// Of all sentences so far.
#[derive(Debug, Default)]
struct Seen {
    sentences: u64,
    fallbacks: u64,
    /// Words of the longest one.
    longest: usize,
    /// With tags that the grammar lacks, and the first of these.
    strange: u64,
    stranger: Option<String>,
    /// Too long for a chart, and the line of the first.
    too_long: u64,
    first_too_long: u64,
}

pub(crate) fn write_all(
    args: &Args,
    model: &Parser,
    input: Input<'_>,
    pool: &Pool,
    out: &mut dyn Write,
    name: &Path,
) -> Result<()> {
    let max_span = args.max_span.or(model.settings.max_span);
    let task = Parsing::new(model.grammar.clone(), ParseSettings { max_span, ..model.settings })?;
    let (reading, source) = (model.reading(), input.name().to_owned());
    let mut stream = Stream::new(input, model.strip, model.lexicon.is_some());
    let (mut text, mut seen) = (Vec::new(), Seen::default());
    while let Some(batch) = stream.next_batch(BATCH)? {
        state_memory(&task, &source, &batch, &mut seen, pool.threads())?;
        let inputs: Vec<_> = batch.iter().map(|tree| reading.terminals(&stream.labels, &stream.words, tree)).collect();
        look(&task, &stream, &batch, &inputs, &mut seen);
        let answers = answers(args, model, &task, &inputs, pool);
        text.clear();
        for (sentence, best) in batch.iter().zip(&answers) {
            seen.sentences += 1;
            seen.fallbacks += u64::from(best.iter().any(|decoded| decoded.is_fallback));
            for (rank, decoded) in best.iter().enumerate() {
                write(args, rank, decoded, &reading, sentence, &mut stream, &mut text)
                    .map_err(|e| Error::io(name, e))?;
            }
        }
        // Whoever pipes sentences in one by one wants the trees one by one.
        out.write_all(&text).and_then(|()| out.flush()).map_err(|e| Error::io(name, e))?;
    }
    if seen.fallbacks > 0 {
        let of = counted(seen.sentences, "sentence");
        let what = "have no tree by the grammar and got a makeshift one (marked `# fallback`)";
        note(&format!("{} of {of} {what}", count(seen.fallbacks)));
    }
    if let Some(tag) = &seen.stranger {
        let n = counted(seen.strange, "sentence");
        let what = "tags that the grammar does not know; where sentences are plain, tokens are WORD/TAG";
        note(&format!("{n} with {what} (the first is '{tag}')"));
    }
    if seen.too_long > 0 {
        let (n, line) = (counted(seen.too_long, "sentence"), seen.first_too_long);
        note(&format!("{n} too long for a chart (the first on line {line}); --max-span makes charts smaller"));
    }
    Ok(())
}

/// Takes note of what cannot be parsed, and why.
fn look(task: &Parsing, stream: &Stream<'_>, batch: &[Tree], inputs: &[Vec<u32>], seen: &mut Seen) {
    for (tree, x) in batch.iter().zip(inputs) {
        if !task.has_room(x.len()) {
            seen.first_too_long = if seen.too_long == 0 { tree.line } else { seen.first_too_long };
            seen.too_long += 1;
        }
        if let Some(at) = x.iter().position(|&terminal| terminal == UNKNOWN) {
            seen.strange += 1;
            let tag = || tree.tags().nth(at).map(|tag| String::from_utf8_lossy(stream.labels.name(tag)).into_owned());
            seen.stranger = seen.stranger.take().or_else(tag);
        }
    }
}

/// States the need of a sentence that is longer than all before it.
fn state_memory(task: &Parsing, source: &str, batch: &[Tree], seen: &mut Seen, threads: usize) -> Result<()> {
    let sentences = batch.iter().map(|tree| (tree.words().len(), tree.line));
    let longest = sentences.clone().map(|sentence| sentence.0).max().unwrap_or(0);
    if longest > seen.longest {
        let way_out = "leave out long phrases with --max-span, or take fewer --threads";
        check_memory(task, source, sentences, threads, way_out)?.into_iter().for_each(|what| note(&what));
        seen.longest = longest;
    }
    Ok(())
}

/// The best trees of each sentence, in order.
fn answers(args: &Args, model: &Parser, task: &Parsing, inputs: &[Vec<u32>], pool: &Pool) -> Vec<Vec<Decoded>> {
    let parts = pool.map(ranges(inputs.len(), 4 * pool.threads()), |range| {
        let mut scratch = ParseScratch::default();
        let answer = |x: &Vec<u32>| match args.n_best {
            Some(n) => task.n_best(&model.weights, x, n, &mut scratch),
            None => vec![task.decode(&model.weights, x, &mut scratch)],
        };
        inputs[range].iter().map(answer).collect::<Vec<_>>()
    });
    parts.into_iter().flatten().collect()
}

fn write(
    args: &Args,
    rank: usize,
    decoded: &Decoded,
    reading: &Reading<'_>,
    sentence: &Tree,
    stream: &mut Stream<'_>,
    text: &mut Vec<u8>,
) -> io::Result<()> {
    match (decoded.is_fallback, args.scores || args.n_best.is_some()) {
        (true, true) => writeln!(text, "# {rank} fallback")?,
        (true, false) => writeln!(text, "# fallback")?,
        (false, true) => writeln!(text, "# {rank} {}", decoded.score)?,
        (false, false) => {}
    }
    let no_tree = || io::Error::other("more than 4294967294 different labels");
    let tree = reading.tree(&decoded.nodes, sentence, &mut stream.labels).ok_or_else(no_tree)?;
    trees::write(&tree, &stream.labels, &stream.words, text)?;
    text.push(b'\n');
    Ok(())
}
