//! Models of alignments in files: the same model comes back and aligns as before, and whatever is none is refused.

use std::path::Path;

use maxmargin::data::alignments::{Alphabet, Alphabets, read};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::inference::align::{Path as Columns, Reach};
use maxmargin::model::{Model, PairAligner, Prior, Saved, Summary, TaskKind};
use maxmargin::parallel::Pool;
use maxmargin::problem::Formulation;
use maxmargin::solver::{Certificate, Status};
use maxmargin::task::Task;
use maxmargin::tasks::alignment::{AlignLoss, AlignScratch, Gaps};
use maxmargin::weights::Weights;

fn model(letters: &str, marks: &str, gaps: Gaps) -> PairAligner {
    let summary = Summary {
        solver: "bcfw".to_owned(),
        status: Status::Converged,
        certificate: Certificate::Exact,
        examples: 3,
        c: 1.0,
        epsilon: 0.01,
        primal: 2.0,
        primal_error: 0.0,
        dual: 1.9,
        gap: 0.1,
        rounds: 7,
        passes: 7.5,
        train_loss: 0.0,
    };
    let mut model = PairAligner {
        letters: letters.to_owned(),
        marks: marks.to_owned(),
        reach: Reach::Local,
        gaps,
        loss: AlignLoss::Q4,
        formulation: Formulation::default(),
        data_checksum: 7,
        summary,
        prior: None,
        is_tied: false,
        weights: Weights::default(),
    };
    let dimension = model.task().unwrap().dimension();
    model.weights = (0..dimension).map(|k| 0.5 - (k % 5) as f64 / 4.0).collect();
    model
}

#[test]
fn alignments_come_back_and_align_as_before() {
    let text = r#"{"x": "ACÄC", "z": "CCA", "sx": "uvvu", "sz": "uuv"}"#;
    let records = read(Input::new("x", text.as_bytes()).unwrap(), LabelRule::Optional, &Pool::new(1).unwrap()).unwrap();
    let prior = Prior { name: "BLOSUM62".to_owned(), gaps: vec![11.0, 1.0], factor: 0.1 + 0.2 };
    let primed = PairAligner { prior: Some(prior), is_tied: true, ..model("ACÄ", "uv", Gaps::Affine) };
    for model in [model("AC", "", Gaps::Linear), model("ACÄ", "uv", Gaps::Affine), primed] {
        let bytes = model.to_bytes().unwrap();
        let saved = Saved::from_bytes(&bytes).unwrap();
        assert_eq!(saved.task(), TaskKind::Align);
        let Saved::PairAligner(loaded) = saved else { panic!("a model of alignments") };
        assert_eq!(*loaded, model);
        assert_eq!(loaded.to_bytes().unwrap(), bytes);
        let (query, _) = model.alphabets().unwrap().query(&records.records[0]);
        let mut paths = [Columns::default(), Columns::default()];
        let scores = [&model, &loaded].map(|model| {
            let task = model.task().unwrap();
            let mut path = Columns::default();
            let score = task.align(&model.weights, &query, 0, &mut AlignScratch::default(), &mut path);
            paths.rotate_left(1);
            paths[1] = path;
            score
        });
        assert_eq!(scores[0].to_bits(), scores[1].to_bits());
        assert_eq!(paths[0], paths[1]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.mm");
        model.save(&path).unwrap();
        assert_eq!(PairAligner::load(&path).unwrap(), model);
        assert!(Model::load(&path).unwrap_err().to_string().contains("a model of the task align, not of classes"));
    }
}

/// A change of a model, and what is said of it.
type Change<'c> = (&'c dyn Fn(&mut PairAligner), &'c str);

#[test]
fn what_does_not_fit_together_is_refused() {
    let good = model("ACG", "hs", Gaps::Affine);
    let with = |change: &dyn Fn(&mut PairAligner)| {
        let mut model = good.clone();
        change(&mut model);
        model.to_bytes().unwrap_err().to_string()
    };
    let changes: [Change<'_>; 7] = [
        (&|m| m.letters = "AC".to_owned(), "weights where the alphabet has"),
        (&|m| m.letters = "AAC".to_owned(), "'A' is there twice"),
        (&|m| m.letters = String::new(), "no letters"),
        (&|m| m.marks = "h s".to_owned(), "cannot be a letter"),
        (&|m| m.weights.as_mut_slice()[2] = f64::NAN, "a weight is NaN"),
        (&|m| m.formulation.c = 0.0, "c is 0"),
        (
            &|m| m.prior = Some(Prior { name: String::new(), gaps: vec![1.0], factor: f64::NAN }),
            "its prior's costs of gaps and its factor are none",
        ),
    ];
    for (change, what) in changes {
        let said = with(change);
        assert!(said.contains(what), "{said}");
    }
    // Every byte damaged: refused, or read as some model, but never a panic.
    let bytes = good.to_bytes().unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x41;
        assert!(Saved::from_bytes(&damaged).is_err(), "byte {at}");
        assert!(Saved::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
    }
}

#[test]
fn weights_go_over_to_other_letters() {
    let old = model("ACG", "hs", Gaps::Affine);
    let new = model("GAT", "s", Gaps::Affine);
    let alphabets = new.alphabets().unwrap();
    let (task, own) = (new.task().unwrap(), old.task().unwrap());
    let w = old.weights_over(&alphabets, &task).unwrap();
    // G and A are numbers 0 and 1 there, 2 and 0 here; s is 0 there and 1 here.
    assert_eq!(task.match_score(&w, (0, 1), (0, 0)), own.match_score(&old.weights, (2, 0), (1, 1)));
    assert_eq!(task.match_score(&w, (2, 2), (255, 255)), 0.0);
    assert_eq!(task.gap_scores(&w, 0), own.gap_scores(&old.weights, 1));
    assert_eq!(task.gap_scores(&w, 255), own.gap_scores(&old.weights, 255));
    let others = Alphabets { letters: Alphabet::new("XY".chars()).unwrap(), marks: Alphabet::default() };
    assert!(old.weights_over(&others, &model("XY", "", Gaps::Affine).task().unwrap()).is_none());
    assert!(old.weights_over(&alphabets, &model("GAT", "s", Gaps::Linear).task().unwrap()).is_none());
}

/// The fuzzer starts from this file, and this program must read it for ever. After a change of the format on purpose the
/// bytes that this test finds belong there.
#[test]
fn the_file_of_the_fuzzer_is_the_small_model() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model");
    let bytes = model("ACG", "hs", Gaps::Affine).to_bytes().unwrap();
    assert!(std::fs::read(corpus.join("good-align")).unwrap() == bytes, "the bytes are now: {bytes:?}");
}
