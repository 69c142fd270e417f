//! Tags: the smallest problems, the longest sentences, and words and tags that training has not seen.

#![allow(clippy::format_collect, reason = "tests make small texts")]

mod common;

use common::{Folder, Ran, number};

#[test]
fn the_smallest_problems_have_answers() {
    let folder = Folder::new();
    for (text, tagged) in [
        ("a X\n", "a X\tX\n"),
        ("a X\nb X\n\nc X\n", "a X\tX\nb X\tX\n\nc X\tX\n"),
        ("a X\nb X\na X\nc ONCE\n", "a X\tX\nb X\tX\na X\tX\nc ONCE\tONCE\n"),
    ] {
        folder.write("t.pos", text);
        for options in ["", "--order 2", "--solver one-slack", "--solver n-slack", "--solver mle"] {
            folder.run(&format!("train tag t.pos -m t.mm --quiet {options}")).good();
            assert_eq!(folder.run("predict t.mm t.pos").good(), tagged, "{options}");
            folder.run("predict t.mm t.pos --margins").good();
            folder.run("predict t.mm t.pos --n-best 100").good();
            folder.run("inspect t.mm").good();
            let figures = folder.run("evaluate t.mm t.pos --json").json();
            assert_eq!(number(&figures, "accuracy"), 1.0);
        }
    }
}

/// Words that tell their tags, but for every tenth.
fn long_sentence(tokens: usize) -> String {
    (0..tokens).map(|i| format!("{} {}\n", ["a", "b", "c"][i * i % 3], ["X", "Y"][usize::from(i % 10 == 0)])).collect()
}

#[test]
fn a_sentence_of_a_hundred_thousand_tokens_is_tagged() {
    let folder = Folder::new();
    folder.write("long", long_sentence(100_000));
    folder.run("train tag long -m long.mm --quiet --solver perceptron --max-passes 2").good();
    let tagged = folder.run("predict long.mm long --margins").good();
    assert_eq!(tagged.lines().count(), 100_000);
    folder.run("predict long.mm long --n-best 2 -o out").good();
    folder.run("evaluate long.mm long").good();
}

/// A step at a kept output takes as long as the sentence is: where there is one output, a thousand steps are 999 too many.
#[test]
fn steps_at_kept_outputs_end_when_they_gain_nothing() {
    let folder = Folder::new();
    folder.write("long", "a X\nb Y\n".repeat(2_500));
    let summary = folder.run("train tag long -m long.mm --json").json();
    let (hits, calls) = (number(&summary, "cache_hits"), number(&summary, "oracle_calls"));
    assert!(hits <= 50.0 * calls, "{hits} steps after {calls} calls of the oracle");
}

/// More tags than weights are kept for: all commands take the model as any other.
#[test]
fn hundreds_of_tags_are_trained_factor_by_factor() {
    let folder = Folder::new();
    folder.run("generate tag --examples 300 --tags 150 --words 20 --seed 3 -o t.pos").good();
    let summary = folder.run("train tag t.pos -m t.mm --solver gdmm --max-passes 4 --heldout t.pos --json").json();
    assert_eq!(summary["solver"], "gdmm");
    let figures = folder.run("evaluate t.mm t.pos --json").json();
    assert!(number(&figures, "token_accuracy") > 0.5, "{figures}");
    // The looks while training see what the model file has: the best of them is not far from the last.
    assert!((number(&summary, "heldout_loss") - number(&figures, "mean_loss")).abs() < 1e-9, "{summary} {figures}");
    assert_eq!(folder.run("predict t.mm t.pos").good().lines().count(), folder.text("t.pos").lines().count());
    assert!(folder.run("inspect t.mm").good().contains("gdmm"));
    folder.run("train tag t.pos -m again.mm --solver gdmm --max-passes 4 --heldout t.pos --threads 1 --quiet").good();
    assert_eq!(folder.run("predict again.mm t.pos").good(), folder.run("predict t.mm t.pos").good());
}

#[test]
fn strangers_are_counted() {
    let folder = Folder::new();
    folder.write("t.pos", "a X\nb Y\n\nb Y\na X\n");
    folder.write("h.pos", "a X\nb NEW\n\nzzz Y\na X\n");
    folder.run("train tag t.pos -m t.mm --quiet").good();
    let figures = folder.run("evaluate t.mm h.pos --json").json();
    assert_eq!(number(&figures, "unseen_tags"), 1.0);
    assert!(number(&figures, "unseen_features") >= 1.0);
    assert!(number(&figures, "token_accuracy") <= 0.75);
    let text = folder.run("evaluate t.mm h.pos").good();
    assert!(text.contains("1 token with tags that the model does not know, counted as errors"), "{text}");
    let ran: Ran = folder.run("train tag t.pos -m t.mm --heldout h.pos --json");
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.contains("note: 1 of 4 held-out tokens have tags that the training file lacks"),
        "{}",
        ran.stderr
    );
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(number(&summary, "heldout_loss"), number(&figures, "mean_loss"));
}
