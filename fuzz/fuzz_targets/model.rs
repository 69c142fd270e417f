//! `cargo +nightly fuzz run model`: no bytes make loading panic, and what loads can be saved, loaded again and used.
#![no_main]

use libfuzzer_sys::fuzz_target;
use maxmargin::model::labeller::SetBuffers;
use maxmargin::inference::align::Path;
use maxmargin::model::{GraphLabeller, PairAligner, Parser, Saved};
use maxmargin::sparse::{SparseMatrix, SparseView};
use maxmargin::task::Task;
use maxmargin::tasks::alignment::{AlignScratch, NONE, Query, Sequence};
use maxmargin::tasks::factor_graph::{Factors, Graph, GraphScratch};
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
        Saved::Taxonomy(model) => {
            let mut rows = SparseMatrix::new();
            rows.push_row([(0, 1.0), (3, -1.0)]);
            let predictor = model.predictor().expect("a valid model");
            predictor.predict_all(rows.range(0..1), Some(0.5), |node, _| assert!((node as usize) < model.hierarchy.len()));
        }
        Saved::Tagger(model) => drop(model.predictor().expect("a valid model")),
        Saved::Parser(model) => parse(&model),
        Saved::Labeller(model) => {
            let (x, mut set) = (SparseView::new(&[0, 3, u32::MAX], &[1.0, -1.0, 2.0]), Vec::new());
            model.predictor().expect("a valid model").predict(x, 0.0, &mut SetBuffers::default(), &mut set);
            assert!(set.iter().all(|&label| (label as usize) < model.labels.len()));
        }
        Saved::GraphLabeller(model) => label(&model),
        Saved::PairAligner(model) => align(&model),
    }
});

fn to_bytes(saved: &Saved) -> Vec<u8> {
    match saved {
        Saved::Classifier(model) => model.to_bytes(),
        Saved::Taxonomy(model) => model.to_bytes(),
        Saved::Tagger(model) => model.to_bytes(),
        Saved::Parser(model) => model.to_bytes(),
        Saved::Labeller(model) => model.to_bytes(),
        Saved::GraphLabeller(model) => model.to_bytes(),
        Saved::PairAligner(model) => model.to_bytes(),
    }
    .expect("what loads can be saved")
}

fn parse(model: &Parser) {
    let task = model.task().expect("a valid model");
    let first = if model.lexicon.is_some() { 0 } else { task.grammar().tags().start };
    let decoded = task.decode(&model.weights, &[first, UNKNOWN, first], &mut ParseScratch::default());
    assert!(!decoded.nodes.is_empty());
}

fn align(model: &PairAligner) {
    let sequence = |letters: &[u8]| Sequence { letters: letters.to_vec(), marks: vec![0; letters.len()] };
    let query = Query { x: sequence(&[0, NONE, 0, 1]), candidates: vec![sequence(&[0, 0, 1])], given: None };
    let mut path = Path::default();
    let task = model.task().expect("a valid model");
    task.align(&model.weights, &query, 0, &mut AlignScratch::default(), &mut path);
    assert!(path.end().is_some_and(|(x, z)| x <= 4 && z <= 3));
}

fn label(model: &GraphLabeller) {
    let mut features = SparseMatrix::new();
    features.push_row((model.shape.features > 0).then_some((0, 1.0)));
    let factors = vec![Factors::default(); model.shape.templates.len()];
    let graph = Graph { domains: vec![model.shape.domains[0]], features, factors };
    let mut y = Vec::new();
    let task = model.task().expect("a valid model");
    task.argmax(&model.weights, &graph, None, &mut GraphScratch::default(), &mut y).expect("labels");
    assert!(y[0] < graph.domains[0]);
}
