//! `cargo +nightly fuzz run model`: no bytes make loading panic, and what loads can be saved, loaded again and used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maxmargin::model::{Parser, Saved};
use maxmargin::sparse::SparseView;
use maxmargin::tasks::parsing::{ParseScratch, UNKNOWN};

fuzz_target!(|data: &[u8]| {
    let Ok(saved) = Saved::from_bytes(data) else { return };
    let bytes = to_bytes(&saved);
    let again = Saved::from_bytes(&bytes).expect("what is saved can be loaded");
    assert_eq!(to_bytes(&again), bytes);
    match saved {
        Saved::Classifier(model) => {
            let x = SparseView::new(&[0, 3, u32::MAX], &[1.0, -1.0, 2.0]);
            let y = model.predictor().predict(x, &mut Vec::new());
            assert!((y as usize) < model.labels.len());
        }
        Saved::Tagger(model) => drop(model.predictor().expect("a valid model")),
        Saved::Parser(model) => parse(&model),
    }
});

fn to_bytes(saved: &Saved) -> Vec<u8> {
    match saved {
        Saved::Classifier(model) => model.to_bytes(),
        Saved::Tagger(model) => model.to_bytes(),
        Saved::Parser(model) => model.to_bytes(),
    }
    .expect("what loads can be saved")
}

fn parse(model: &Parser) {
    let task = model.task().expect("a valid model");
    let first = if model.lexicon.is_some() { 0 } else { task.grammar().tags().start };
    let decoded = task.decode(&model.weights, &[first, UNKNOWN, first], &mut ParseScratch::default());
    assert!(!decoded.nodes.is_empty());
}
