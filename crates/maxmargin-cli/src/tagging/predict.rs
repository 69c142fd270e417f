//! `maxmargin predict` with a model of tags.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use maxmargin::Error;
use maxmargin::data::input::Input;
use maxmargin::data::tagging::{Batch, Format, Line, Stream};
use maxmargin::model::Tagger;
use maxmargin::model::tagger::TagPredictor;
use maxmargin::parallel::{Pool, ranges};
use maxmargin::tasks::tagging::TagScratch;

use super::sentences;
use crate::failure::{Failure, Result};
use crate::predict::Args;
use crate::streams::note;
use crate::text::counted;

/// What is written of a sentence.
#[derive(Debug, Default)]
struct Answer {
    /// The best sequences of tags with their scores.
    best: Vec<(f64, Vec<u32>)>,
    margins: Vec<f64>,
}

pub(crate) fn write_all(
    args: &Args,
    model: &Tagger,
    input: Input<'_>,
    pool: &Pool,
    out: &mut dyn Write,
    name: &Path,
) -> Result<()> {
    let predictor = model.predictor()?;
    let source = input.name().to_owned();
    let mut stream = Stream::new(input, &model.format, &model.vocabulary);
    let (mut text, mut is_first, mut unknown) = (Vec::new(), true, 0);
    while let Some(batch) = stream.next_batch(pool)? {
        unknown += batch.sequences.unseen.tags;
        check_n_best(args, &source, &batch, model.vocabulary.tags.len())?;
        let answers = answers(args, &predictor, &batch, pool);
        if let Some(s) = answers.iter().position(|answer| answer.best.is_empty()) {
            let line = batch.sequences.line(batch.sequences.sentence(s).start);
            let what =
                "no sequence of tags is allowed for this sentence: forced tags contradict what the model forbids";
            return Err(Failure::Data(format!("{source}:{line}: {what}")));
        }
        text.clear();
        let writer = Writer { args, tags: &model.vocabulary.tags, answers: &answers };
        if matches!(model.format, Format::Columns(_)) {
            writer.columns(&batch, &mut text);
        } else {
            writer.tags(&mut is_first, &mut text);
        }
        // Whoever pipes sentences in one by one wants the tags one by one.
        out.write_all(&text).and_then(|()| out.flush()).map_err(|e| Error::io(name, e))?;
    }
    if args.forced && unknown > 0 {
        note(&format!(
            "{} given tags that the model does not know; these were found anew",
            counted(unknown, "token") + " had"
        ));
    }
    Ok(())
}

/// States the need of --n-best before taking it: each tag of each token keeps so many ways.
fn check_n_best(args: &Args, source: &str, batch: &Batch, tags: usize) -> Result<()> {
    const MOST: usize = 1 << 27;
    let (sequences, n) = (&batch.sequences, args.n_best.unwrap_or(1));
    let is_long = |s: &usize| sequences.sentence(*s).len().saturating_mul(tags).saturating_mul(n) > MOST;
    match (0..sequences.len()).find(is_long).filter(|_| n > 1) {
        Some(s) => {
            let (line, len) = (sequences.line(sequences.sentence(s).start), sequences.sentence(s).len());
            let what = format!("--n-best {n} is too many for a sentence of {len} tokens with {tags} tags");
            Err(Failure::Data(format!("{source}:{line}: {what}; take fewer")))
        }
        None => Ok(()),
    }
}

/// Tags all sentences of a batch, in order.
fn answers(args: &Args, predictor: &TagPredictor<'_>, batch: &Batch, pool: &Pool) -> Vec<Answer> {
    let (sequences, sentences) = (&batch.sequences, sentences(&batch.sequences));
    let parts = pool.map(ranges(sequences.len(), 4 * pool.threads()), |range| {
        let mut scratch = TagScratch::default();
        let answer = |s: usize| {
            let forced = args.forced.then(|| &sequences.tags[sequences.sentence(s)]);
            predictor.fill(sentences[s], forced, &mut scratch);
            let mut answer = Answer::default();
            if let Some(n) = args.n_best {
                answer.best = scratch.chain.n_best(n);
                return answer;
            }
            let mut tags = Vec::new();
            let score = scratch.chain.best(&mut tags);
            if args.margins {
                scratch.chain.margins(&tags, &mut answer.margins);
            }
            if score > f64::NEG_INFINITY {
                answer.best.push((score, tags));
            }
            answer
        };
        range.map(answer).collect::<Vec<_>>()
    });
    parts.into_iter().flatten().collect()
}

struct Writer<'w> {
    args: &'w Args,
    tags: &'w [String],
    answers: &'w [Answer],
}

impl Writer<'_> {
    /// The lines of the input with the tag after each token; empty lines stay what they are.
    fn columns(&self, batch: &Batch, text: &mut Vec<u8>) {
        let (mut answers, mut lines) = (self.answers.iter(), Vec::new());
        let mut current = answers.next();
        for line in batch.lines() {
            match line {
                Line::Token(line) => lines.push(line),
                Line::Empty(line) => {
                    text.extend_from_slice(line);
                    text.push(b'\n');
                }
            }
            if let Some(answer) = current.filter(|answer| answer.best[0].1.len() == lines.len() && !lines.is_empty()) {
                self.sentence(answer, Some(&lines), text);
                lines.clear();
                current = answers.next();
            }
        }
    }

    /// One tag a line, an empty line between sentences.
    fn tags(&self, is_first: &mut bool, text: &mut Vec<u8>) {
        for answer in self.answers {
            if !std::mem::take(is_first) {
                text.push(b'\n');
            }
            self.sentence(answer, None, text);
        }
    }

    fn sentence(&self, answer: &Answer, lines: Option<&[&[u8]]>, text: &mut Vec<u8>) {
        let mut number = String::new();
        for (rank, (score, tags)) in answer.best.iter().enumerate() {
            if rank > 0 {
                text.push(b'\n');
            }
            if self.args.scores || self.args.n_best.is_some() {
                number.clear();
                writeln!(number, "# {rank} {score}").expect("strings take all text");
                text.extend_from_slice(number.as_bytes());
            }
            for (t, &tag) in tags.iter().enumerate() {
                if let Some(lines) = lines {
                    text.extend_from_slice(lines[t]);
                    text.push(b'\t');
                }
                text.extend_from_slice(self.tags[tag as usize].as_bytes());
                if let Some(margin) = answer.margins.get(t) {
                    number.clear();
                    write!(number, "\t{margin}").expect("strings take all text");
                    text.extend_from_slice(number.as_bytes());
                }
                text.push(b'\n');
            }
        }
    }
}
