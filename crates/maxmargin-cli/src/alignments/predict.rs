//! `maxmargin predict` with a model of alignments.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path as FilePath;

use maxmargin::Error;
use maxmargin::data::alignments::{Alphabets, GAP, Record, Strangers, Stream, gapped};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::inference::align::{Op, Path};
use maxmargin::metrics::alignments::rank;
use maxmargin::model::PairAligner;
use maxmargin::parallel::{Pool, ranges};
use maxmargin::task::first_max;
use maxmargin::tasks::alignment::{AlignScratch, Alignment};
use serde::Serialize;

use super::{check_letters, check_memory, tell_strangers};
use crate::failure::Result;
use crate::predict::{AlignmentFormat, Args};
use crate::text::{counted, number};

/// Records that are held at a time.
const BATCH: usize = 256;

/// Columns of a block.
const WIDTH: usize = 60;

const IN_MEMORY: &str = "strings take all text";

/// The alignment of each x with its homologue or, where there is none, with the candidate that scores most.
pub(crate) fn write_all(
    args: &Args,
    model: &PairAligner,
    input: Input<'_>,
    pool: &Pool,
    out: &mut dyn Write,
    name: &FilePath,
) -> Result<()> {
    let (task, alphabets, source) = (model.task()?, model.alphabets()?, input.name().to_owned());
    let mut stream = Stream::new(input, LabelRule::Optional);
    let mut strangers = Strangers::default();
    while let Some(batch) = stream.next_batch(BATCH)? {
        check_letters(&source, &batch, &alphabets)?;
        check_memory(&source, &batch, pool.threads())?;
        let parts = pool.map(ranges(batch.len(), 4 * pool.threads()), |range| {
            let (mut text, mut found, mut strangers) = (String::new(), Found::default(), Strangers::default());
            for i in range {
                let record = &batch.records[i];
                strangers += found.align(&task, model, &alphabets, record);
                let line = found.line(&task, model, &alphabets, record, batch.line(i));
                match args.format {
                    Some(AlignmentFormat::Json) => {
                        let line = Shown { scores: args.scores.then_some(&found.scores), ..line };
                        text.push_str(&serde_json::to_string(&line).expect("plain structs become JSON"));
                        text.push('\n');
                    }
                    Some(AlignmentFormat::Text) | None => {
                        push_text(&line, args.scores.then_some(&found.scores), record.has_homologue, &mut text);
                    }
                }
            }
            (text, strangers)
        });
        for (text, of_part) in parts {
            strangers += of_part;
            out.write_all(text.as_bytes()).map_err(|e| Error::io(name, e))?;
        }
        // Whoever pipes sequences in one by one wants the alignments one by one.
        out.flush().map_err(|e| Error::io(name, e))?;
    }
    tell_strangers(&source, strangers, &alphabets)
}

/// What was found of one record, and the memory for it.
#[derive(Default)]
struct Found {
    scratch: AlignScratch,
    scores: Vec<f64>,
    candidate: usize,
    score: f64,
    path: Path,
}

/// The JSON object.
#[derive(Serialize)]
struct Shown<'f> {
    line: u64,
    /// The candidate that is aligned: z, or decoy 1, 2, ...
    candidate: String,
    score: f64,
    /// Of this candidate among all, from 1.
    rank: u64,
    candidates: usize,
    /// The candidate that scores most.
    best: String,
    /// The first and the last residue that is aligned, from 1; 0 where none is.
    x_begin: u32,
    x_end: u32,
    z_begin: u32,
    z_end: u32,
    matches: u32,
    identical: u32,
    gaps: usize,
    ax: String,
    az: String,
    #[serde(skip)]
    between: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<&'f Vec<f64>>,
}

impl Found {
    fn align(&mut self, task: &Alignment, model: &PairAligner, alphabets: &Alphabets, record: &Record) -> Strangers {
        let (query, strangers) = alphabets.query(record);
        task.candidate_scores(&model.weights, &query, &mut self.scratch, &mut self.scores);
        self.candidate = if record.has_homologue { 0 } else { first_max(&self.scores) };
        self.score = task.align(&model.weights, &query, self.candidate, &mut self.scratch, &mut self.path);
        strangers
    }

    fn line(
        &self,
        task: &Alignment,
        model: &PairAligner,
        alphabets: &Alphabets,
        record: &Record,
        line: u64,
    ) -> Shown<'static> {
        let z = &record.candidates[self.candidate];
        let (ax, az) = gapped(&self.path, &record.x.letters, &z.letters);
        let marks = |text: &Option<String>| text.as_deref().map(|text| text.chars().collect::<Vec<char>>());
        let (marks_x, marks_z) = (marks(&record.x.marks), marks(&z.marks));
        let mark = |marks: &Option<Vec<char>>, i: u32| {
            alphabets.marks.code(marks.as_ref().and_then(|marks| marks.get(i as usize)).copied().unwrap_or(GAP))
        };
        let mut pairs = self.path.matches();
        let (mut between, mut identical, mut matches) = (String::new(), 0, 0);
        for (a, b) in ax.chars().zip(az.chars()) {
            if a == GAP || b == GAP {
                between.push(' ');
                continue;
            }
            let (i, j) = pairs.next().unwrap_or_default();
            let codes = (alphabets.letters.code(a), alphabets.letters.code(b));
            let score = task.match_score(&model.weights, codes, (mark(&marks_x, i), mark(&marks_z, j)));
            between.push(match (a == b, score > 0.0) {
                (true, _) => '|',
                (_, true) => '+',
                _ => ' ',
            });
            matches += 1;
            identical += u32::from(a == b);
        }
        let names = |k: usize| match (record.has_homologue, k) {
            (true, 0) => "z".to_owned(),
            (true, k) => format!("decoy {k}"),
            (false, k) => format!("decoy {}", k + 1),
        };
        let mut order = vec![self.scores[self.candidate]];
        order.extend(self.scores.iter().enumerate().filter(|(k, _)| *k != self.candidate).map(|(_, &score)| score));
        // Decoys come before a homologue that scores no more.
        let best = (1..self.scores.len()).chain([0]).fold(None, |best: Option<usize>, k| match best {
            Some(b) if self.scores[b] >= self.scores[k] => Some(b),
            _ => Some(k),
        });
        let is_empty = self.path.runs.is_empty();
        let (x_end, z_end) = self.path.end().unwrap_or_default();
        let begin = |at: u32| if is_empty { 0 } else { at + 1 };
        Shown {
            line,
            candidate: names(self.candidate),
            score: self.score,
            rank: if record.has_homologue { rank(&order) } else { 1 },
            candidates: self.scores.len(),
            best: names(best.unwrap_or(0)),
            x_begin: begin(self.path.x),
            x_end: if is_empty { 0 } else { x_end },
            z_begin: begin(self.path.z),
            z_end: if is_empty { 0 } else { z_end },
            matches,
            identical,
            gaps: self.path.runs.iter().filter(|run| run.op != Op::Match).count(),
            ax,
            az,
            between,
            scores: None,
        }
    }
}

fn push_text(line: &Shown<'_>, scores: Option<&Vec<f64>>, has_homologue: bool, text: &mut String) {
    let (matches, gaps) = (u64::from(line.matches), line.gaps as u64);
    let matched = if matches == 1 { "1 match".to_owned() } else { format!("{} matches", crate::text::count(matches)) };
    let ranked =
        if line.candidates > 1 { format!(", rank {} of {}", line.rank, line.candidates) } else { String::new() };
    let (at, candidate, score) = (line.line, &line.candidate, number(line.score));
    let (identical, gaps) = (line.identical, counted(gaps, "gap"));
    writeln!(text, "line {at}: {candidate}, score {score}{ranked}; {matched}, {identical} identical, {gaps}")
        .expect(IN_MEMORY);
    if let Some(scores) = scores {
        let first = usize::from(!has_homologue);
        let words = scores.iter().enumerate().map(|(k, score)| match k + first {
            0 => format!("z {}", number(*score)),
            k => format!("{k}: {}", number(*score)),
        });
        writeln!(text, "scores: {}", words.collect::<Vec<_>>().join(", ")).expect(IN_MEMORY);
    }
    let columns: [Vec<char>; 3] = [&line.ax, &line.between, &line.az].map(|row| row.chars().collect());
    let (mut x, mut z) = (line.x_begin, line.z_begin);
    let digits = line.x_end.max(line.z_end).to_string().len();
    for begin in (0..columns[0].len()).step_by(WIDTH) {
        let block = |row: usize| &columns[row][begin..columns[row].len().min(begin + WIDTH)];
        let mut push_row = |name: char, row: usize, at: &mut u32| {
            let residues: String = block(row).iter().collect();
            let count = block(row).iter().filter(|&&letter| letter != GAP).count() as u32;
            // A row of gaps alone stands after the residue before it.
            let (first, last) = if count == 0 { (*at - 1, *at - 1) } else { (*at, *at + count - 1) };
            writeln!(text, "{name} {first:>digits$} {residues} {last}").expect(IN_MEMORY);
            *at += count;
            if name == 'x' {
                let between: String = block(1).iter().collect();
                writeln!(text, "  {:digits$} {}", "", between.trim_end()).expect(IN_MEMORY);
            }
        };
        push_row('x', 0, &mut x);
        push_row('z', 2, &mut z);
        text.push('\n');
    }
    if columns[0].is_empty() {
        text.push_str("nothing scores above 0\n\n");
    }
}
