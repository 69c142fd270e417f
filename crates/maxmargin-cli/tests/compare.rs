//! `evaluate --compare` with classifiers and taggers; `parse.rs` has it with parsers.

mod common;

use common::{Folder, number};

#[test]
fn classifiers_are_compared() {
    let folder = Folder::with_data();
    folder.run("train multiclass m.dat -m good.mm --quiet").good();
    folder.run("train multiclass m.dat -m bad.mm --quiet --c-per-example 0.0001 --max-passes 1").good();
    let figures = folder.run("evaluate good.mm m.dat --compare bad.mm --json").json();
    let compare = &figures["compare"];
    let counts = ["both", "only_first", "only_second", "neither"].map(|key| compare[key].as_u64().unwrap());
    assert_eq!(counts.iter().sum::<u64>(), 400);
    let right = |of: &serde_json::Value| (400.0 * number(of, "accuracy")).round() as u64;
    assert_eq!(right(&figures), counts[0] + counts[1]);
    assert_eq!(right(&compare["figures"]), counts[0] + counts[2]);
    // The figures of one model are the same with and without another.
    let alone = folder.run("evaluate good.mm m.dat --json").json();
    assert!(alone["compare"].is_null());
    assert_eq!(alone["confusion"], figures["confusion"]);
    let text = folder.run("evaluate good.mm m.dat --compare bad.mm").good();
    for word in ["accuracy", "mean loss", "examples that both have right", "only good.mm", "McNemar's test"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
}

#[test]
fn taggers_are_compared_by_sentences() {
    let folder = Folder::new();
    folder.run("generate tag --tags 4 --words 8 --length 6 --noise 0.1 --examples 60 --seed 1 -o t.pos").good();
    folder.run("train tag t.pos -m 1.mm --quiet").good();
    folder.run("train tag t.pos -m 2.mm --quiet --solver mle").good();
    let figures = folder.run("evaluate 1.mm t.pos --compare 2.mm --json").json();
    let compare = &figures["compare"];
    let first = (60.0 * number(&figures, "sequence_accuracy")).round() as u64;
    assert_eq!(first, compare["both"].as_u64().unwrap() + compare["only_first"].as_u64().unwrap());
    let text = folder.run("evaluate 1.mm t.pos --compare 2.mm").good();
    assert!(text.contains("sentences that both have right") && text.contains("token accuracy"), "{text}");
}

#[test]
fn models_that_answer_other_questions_are_refused() {
    let folder = Folder::with_data();
    folder.run("train binary m.dat -m 1.mm --quiet --positive 1").good();
    folder.run("train binary m.dat -m 2.mm --quiet --positive 2").good();
    folder.run("train multiclass m.dat -m m.mm --quiet").good();
    folder
        .run("evaluate 1.mm m.dat --compare 2.mm")
        .bad(1, &["2.mm: it decides between not-2 and 2, 1.mm between not-1 and 1"]);
    folder
        .run("evaluate 1.mm m.dat --compare m.mm")
        .bad(1, &["m.mm: a model of the task multiclass; 1.mm is one of the task binary"]);
}
