//! How many cells of alignment tables a second, on one thread, the way back included. Prints one JSON line.
//!
//! `MAXMARGIN_PAIRS` names a file of pairs (JSON lines, as for the task align), each x with its z and all of its decoys, instead of
//! generated ones; `MAXMARGIN_SCORES` a file of a substitution table: a line of letters, then a line of scores for each of them.
//! Local alignments, the first column of a gap costs 11, every further one 1.

use std::time::Instant;

use maxmargin::data::alignments::{Alphabet, Alphabets, read};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::data::synthetic::{AlignSizes, align};
use maxmargin::inference::align::{Path, Reach};
use maxmargin::parallel::Pool;
use maxmargin::task::Task;
use maxmargin::tasks::alignment::{AlignLoss, AlignScratch, AlignSettings, Alignment, Gaps, Query};
use maxmargin::weights::Weights;

const ROUNDS: usize = 5;

fn main() {
    // `cargo bench` says --bench; `cargo test --all-targets` runs this too and wants no measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let path = std::env::var("MAXMARGIN_PAIRS").ok();
    let pool = Pool::new(1).expect("one thread");
    let generated = synthetic();
    let input = match &path {
        Some(path) => Input::open(path).expect("the file opens"),
        None => Input::new("synthetic", generated.as_slice()).expect("memory"),
    };
    let records = read(input, LabelRule::Optional, &pool).expect("the records are valid").records;
    let (letters, scores) = scores();
    let alphabets = Alphabets { letters, marks: Alphabet::default() };
    let count = alphabets.letters.letters().len();
    let task = Alignment::new(AlignSettings {
        letters: count as u32,
        marks: 0,
        reach: Reach::Local,
        gaps: Gaps::Affine,
        loss: AlignLoss::ZeroOne,
        gap_grid: Vec::new(),
    });
    let mut w = Weights::zeros(task.dimension());
    w.as_mut_slice()[..count * count].copy_from_slice(&scores);
    w.as_mut_slice()[count * count..].copy_from_slice(&[-11.0, -1.0]);
    let queries: Vec<Query> = records.iter().map(|record| alphabets.query(record).0).collect();
    let cells: usize = queries.iter().map(|q| q.candidates.iter().map(|z| q.x.len() * z.len()).sum::<usize>()).sum();
    let pairs: usize = queries.iter().map(|q| q.candidates.len()).sum();
    let (mut scratch, mut found, mut all_scores) = (AlignScratch::default(), Path::default(), Vec::new());
    let (mut traced, mut scored, mut total) = (f64::INFINITY, f64::INFINITY, 0.0);
    for _ in 0..ROUNDS {
        total = 0.0;
        let start = Instant::now();
        for query in &queries {
            for c in 0..query.candidates.len() {
                total += task.align(&w, query, c, &mut scratch, &mut found);
            }
        }
        traced = traced.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        for query in &queries {
            task.candidate_scores(&w, query, &mut scratch, &mut all_scores);
        }
        scored = scored.min(start.elapsed().as_secs_f64());
    }
    println!(
        "{{\"bench\": \"align\", \"input\": \"{}\", \"pairs\": {pairs}, \"cells\": {cells}, \"sum_of_scores\": {total}, \
         \"seconds\": {traced:.4}, \"million_per_second\": {:.0}, \"scores_alone_million_per_second\": {:.0}}}",
        path.as_deref().unwrap_or("synthetic").escape_default(),
        cells as f64 / traced / 1e6,
        cells as f64 / scored / 1e6,
    );
}

fn synthetic() -> Vec<u8> {
    let sizes = AlignSizes { examples: 100, length: 300, operations: 200, ..AlignSizes::default() };
    let mut text = Vec::new();
    align(&sizes, 1, &mut text, "memory").expect("the sizes are valid");
    text
}

/// Letters and the scores of their matches.
fn scores() -> (Alphabet, Vec<f64>) {
    let Ok(path) = std::env::var("MAXMARGIN_SCORES") else {
        let count = Alphabet::PROTEIN.len();
        let scores = (0..count * count).map(|at| if at / count == at % count { 5.0 } else { -1.0 }).collect();
        return (Alphabet::new(Alphabet::PROTEIN.chars()).expect("letters"), scores);
    };
    let text = std::fs::read_to_string(path).expect("the file opens");
    let mut lines = text.lines();
    let letters = Alphabet::new(lines.next().expect("letters").chars()).expect("letters");
    let scores = lines.flat_map(str::split_whitespace).map(|word| word.parse().expect("a score")).collect::<Vec<f64>>();
    assert_eq!(scores.len(), letters.letters().len().pow(2), "a score for each pair of letters");
    (letters, scores)
}
