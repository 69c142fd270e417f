//! How many rule applications a second the decoder of grammars does, on one thread. Prints one JSON line.
//!
//! A rule application is a combination of span, split and binary rule that is tried. `MAXMARGIN_TREES` names a file of trees to
//! read the grammar off instead of a generated treebank; sentences have at most 40 words.

use std::time::Instant;

use maxmargin::data::input::Input;
use maxmargin::data::synthetic::{ParseSizes, parse};
use maxmargin::data::trees::{Extracted, Reading, Shape, Strip, Treebank, grammar, read};
use maxmargin::inference::cky::{Chart, Scores};

const ROUNDS: usize = 5;
/// Most words of a sentence.
const LENGTH: u32 = 40;
const SENTENCES: usize = 100;

fn main() {
    // `cargo bench` says --bench; `cargo test --all-targets` runs this too and wants no measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let path = std::env::var("MAXMARGIN_TREES").ok();
    let mut bank = path.as_ref().map_or_else(synthetic, |path| {
        read(Input::open(path).expect("the file opens"), Strip::ALL).expect("the trees are valid")
    });
    bank.trees.retain(|tree| tree.words().len() <= LENGTH as usize);
    let Extracted { grammar, .. } = grammar(&bank, Shape::default()).expect("a grammar");
    let parts = grammar.parts();
    let reading = Reading::new(&grammar, None);
    let step = bank.trees.len().div_ceil(SENTENCES);
    let sentences = bank.trees.iter().step_by(step);
    let sentences: Vec<Vec<u32>> = sentences.map(|tree| reading.terminals(&bank.labels, &bank.words, tree)).collect();
    // Any scores will do: all combinations are tried.
    let score = |at: usize| -1.0 - (at % 7) as f64;
    let mut scores = Scores {
        binary: (0..parts.binary.len()).map(score).collect(),
        unary: (0..parts.unary.len()).map(score).collect(),
        root: vec![f64::NEG_INFINITY; parts.symbols.len()],
    };
    parts.roots.iter().for_each(|&root| scores.root[root as usize] = 0.0);
    let (mut chart, mut steps) = (Chart::default(), Vec::new());
    let (mut best, mut tried) = (f64::INFINITY, 0);
    for _ in 0..ROUNDS {
        tried = 0;
        let mut seconds = 0.0;
        for x in &sentences {
            let start = Instant::now();
            chart.resize(grammar.rules(), x.len(), None);
            x.iter().enumerate().for_each(|(i, &tag)| chart.leaf_mut(i)[tag as usize] = 0.0);
            let score = chart.best(grammar.rules(), &scores, &mut steps);
            seconds += start.elapsed().as_secs_f64();
            assert!(score > f64::NEG_INFINITY, "a tree");
            tried += chart.applications(grammar.rules());
        }
        best = best.min(seconds);
    }
    let words: usize = sentences.iter().map(Vec::len).sum();
    println!(
        "{{\"bench\": \"cky\", \"input\": \"{}\", \"binary_rules\": {}, \"symbols\": {}, \"sentences\": {}, \"words\": {words}, \
         \"rule_applications\": {tried}, \"seconds\": {best:.4}, \"million_per_second\": {:.0}}}",
        path.as_deref().unwrap_or("synthetic").escape_default(),
        parts.binary.len(),
        parts.symbols.len(),
        sentences.len(),
        tried as f64 / best / 1e6,
    );
}

/// About 5,000 rules.
fn synthetic() -> Treebank {
    let sizes = ParseSizes { examples: 5_000, rules: 5_000, length: LENGTH, ..ParseSizes::default() };
    let mut text = Vec::new();
    parse(&sizes, 1, &mut text, "memory").expect("the sizes are valid");
    read(Input::new("synthetic", text.as_slice()).expect("memory"), Strip::ALL).expect("the trees are valid")
}
