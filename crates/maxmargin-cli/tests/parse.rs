//! The task `parse` as a user sees it. `parse_bad_input.rs` has what is refused.

#![allow(clippy::format_collect, reason = "tests make small texts")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use common::{Folder, PROGRAM, keys, number};

const TREEBANK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/treebank");

/// A folder with the treebank, `train.mrg` and `test.mrg`.
fn with_treebank() -> Folder {
    let folder = Folder::new();
    for part in ["train", "test"] {
        folder.write(&format!("{part}.mrg"), fs::read(format!("{TREEBANK}/english.{part}.mrg")).unwrap());
    }
    folder
}

/// A folder with a few trees, `few.mrg`, and a model of them.
fn with_few() -> Folder {
    let folder = Folder::new();
    folder.write("few.mrg", FEW);
    folder.run("train parse few.mrg -m few.mm --quiet").good();
    folder
}

const FEW: &str = "\
(S (NP (D the) (N cat)) (VP (V sees) (NP (D a) (N dog))))
(S (NP (D the) (N dog)) (VP (V sees) (NP (NP (D a) (N cat)) (PP (P with) (NP (D the) (N eyes))))))
(S (NP (D the) (N dog)) (VP (V sees) (NP (D a) (N cat)) (PP (P with) (NP (N eyes)))))
";

/// The lines that are trees.
fn trees(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with('(')).collect()
}

/// The words of a tree, between blanks.
fn words(tree: &str) -> String {
    let ends = tree.split(')').filter_map(|piece| piece.rsplit_once(' ')).map(|(_, word)| word);
    ends.filter(|word| !word.is_empty() && !word.starts_with('(')).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_treebank_is_learned() {
    let folder = with_treebank();
    let summary = folder.run("train parse train.mrg -m t.mm --heldout test.mrg --features spans --json --quiet").json();
    assert_eq!((summary["task"].as_str(), summary["certificate"].as_str()), (Some("parse"), Some("exact")));
    assert_eq!((summary["examples"].as_u64(), summary["searched"].as_u64()), (Some(315), Some(0)));
    let figures = folder.run("evaluate t.mm test.mrg --json").json();
    for key in [
        "examples",
        "mean_loss",
        "accuracy",
        "exact_match",
        "bracket_precision",
        "bracket_recall",
        "bracket_f1",
        "crossing",
        "no_crossing",
        "fallbacks",
        "by_length",
    ] {
        assert!(keys(&figures).contains(&key), "{key}");
    }
    assert!(number(&figures, "bracket_f1") > 0.7, "{figures}");
    assert_eq!(number(&figures, "accuracy"), number(&figures, "exact_match"));
    // What training measures on the way is what `evaluate` finds.
    assert!((number(&figures, "mean_loss") - number(&summary, "heldout_loss")).abs() < 1e-9);
    assert_eq!(figures["by_length"][0]["words"].as_u64(), Some(10));
    let text = folder.run("evaluate t.mm test.mrg").good();
    for word in ["bracket F1", "exact match", "crossing", "mean loss", "at most 10", "fallbacks"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    let short = folder.run("evaluate t.mm test.mrg --max-words 8 --json").json();
    assert_eq!(short["examples"].as_u64(), Some(17));
    // On what it was trained on it does better.
    let seen = folder.run("evaluate t.mm train.mrg --json").json();
    assert!(number(&seen, "bracket_f1") > 0.9, "{seen}");
}

#[test]
fn all_kinds_of_parsers_are_trained() {
    let folder = with_treebank();
    for options in [
        "--loss f1",
        "--loss zero-one",
        "--loss f1 --rescaling slack --exact-words 6",
        "--terminals words",
        "--terminals words --rare-below 3 --features spans",
        "--parent-annotation --markov 1",
        "--binarise head --markov 2",
        "--binarise right --markov 0",
        "--keep-empty --keep-functions",
        "--solver mle",
        "--solver one-slack --max-passes 5",
        "--solver n-slack --max-passes 5",
        "--solver perceptron --max-passes 3",
        "--c-path-per-example 0.01,0.1",
        "--folds 2",
    ] {
        let command = format!("train parse test.mrg -m m.mm --quiet --json {options}");
        let summary = folder.run(&command).json();
        assert!(number(&summary, "dimension") > 100.0, "{options}");
        let figures = folder.run("evaluate m.mm test.mrg --json").json();
        assert!(number(&figures, "bracket_f1") > 0.5, "{options}: {figures}");
        assert!(folder.run("inspect m.mm").good().contains("heaviest rules"));
    }
}

#[test]
fn longer_sentences_than_exact_words_make_the_certificate_an_estimate() {
    let folder = with_treebank();
    let text = folder.run("train parse test.mrg -m m.mm --loss f1 --exact-words 5 --quiet --max-passes 4").good();
    assert!(text.contains("estimate: the oracle is approximate"), "{text}");
    assert!(text.contains("searched, not exact, for 4"), "{text}");
    let summary = folder.run("train parse test.mrg -m m.mm --loss f1 --quiet --max-passes 4 --json").json();
    assert_eq!((summary["certificate"].as_str(), summary["searched"].as_u64()), (Some("exact"), Some(0)));
}

#[test]
fn predictions_keep_the_words_and_read_again() {
    let folder = with_treebank();
    folder.run("train parse train.mrg -m t.mm --quiet --max-passes 3").good();
    let ran = folder.run("predict t.mm test.mrg");
    assert_eq!(ran.code, Some(0));
    let given = folder.text("test.mrg");
    let (given, found) = (trees(&given), trees(&ran.stdout));
    assert_eq!(given.len(), found.len());
    for (given, found) in given.iter().zip(&found) {
        assert_eq!(words(given), words(found));
    }
    // Fallbacks are marked, and told at the end.
    let marked = ran.stdout.lines().filter(|line| *line == "# fallback").count();
    assert!(marked > 0);
    assert_eq!(
        ran.stderr,
        format!(
            "note: {marked} of 45 sentences have no tree by the grammar and got a makeshift one (marked `# fallback`)\n"
        )
    );
    // The output is an input.
    folder.write("again.mrg", &ran.stdout);
    assert_eq!(folder.run("predict t.mm again.mrg").stdout, ran.stdout);
    let figures = folder.run("evaluate t.mm again.mrg --json").json();
    assert_eq!(number(&figures, "exact_match"), 1.0);
    // Any number of threads, a file, a pipe, packed or not: the same bytes.
    for threads in [1, 3] {
        folder.run(&format!("predict t.mm test.mrg --threads {threads} -o {threads}.mrg"));
        assert_eq!(folder.text(&format!("{threads}.mrg")), ran.stdout);
    }
    assert_eq!(folder.run_with("predict t.mm -", folder.read("test.mrg")).stdout, ran.stdout);
}

#[test]
fn sentences_may_come_without_trees() {
    let folder = with_few();
    let tree = "(S (NP (D the) (N cow)) (VP (V eats) (NP (N grass))))\n";
    assert_eq!(folder.run_with("predict few.mm -", "the/D cow/N eats/V grass/N\n").good(), tree);
    let found = folder.run_with("predict few.mm -", "D N V N\n").good();
    assert_eq!(found, "(S (NP (D D) (N N)) (VP (V V) (NP (N N))))\n");
    // A sentence that begins like a comment is one.
    let found = folder.run_with("predict few.mm -", "#/D cow/N eats/V grass/N\n\nthe/D cow/N eats/V grass/N\n").good();
    assert_eq!(found, [&tree.replace("the", "#"), tree].concat());
    let found = folder.run_with("predict few.mm -", "the cow\n");
    assert!(found.stderr.contains("tokens are WORD/TAG (the first is 'the')"), "{}", found.stderr);
    folder
        .run_with("predict few.mm -", "(5 a) b\n")
        .bad(1, &["'b' outside of brackets (the file begins with a bracket"]);
    folder.run("train parse few.mrg -m words.mm --terminals words --quiet").good();
    let found = folder.run_with("predict words.mm -", "the cat sees a dog\n").good();
    assert_eq!(found, "(S (NP (D the) (N cat)) (VP (V sees) (NP (D a) (N dog))))\n");
    let found = folder.run_with("predict words.mm -", "the fox sees a dog\nthe cat sees dogs\n");
    assert_eq!(words(trees(&found.stdout)[0]), "the fox sees a dog");
}

#[test]
fn the_n_best_trees_come_in_their_order() {
    let folder = with_few();
    let input = "the/D dog/N sees/V a/D cat/N with/P eyes/N\n";
    let found = folder.run_with("predict few.mm - --n-best 5", input).good();
    let lines: Vec<&str> = found.lines().collect();
    assert!(lines.len() >= 4 && lines.len().is_multiple_of(2), "{found}");
    let mut last = f64::INFINITY;
    let mut seen = std::collections::HashSet::new();
    for (rank, pair) in lines.chunks(2).enumerate() {
        let [mark, place, score] = pair[0].split(' ').collect::<Vec<_>>()[..] else { panic!("{}", pair[0]) };
        assert_eq!((mark, place.parse().unwrap()), ("#", rank));
        let score: f64 = score.parse().unwrap();
        assert!(score <= last);
        last = score;
        assert!(seen.insert(pair[1]), "twice: {}", pair[1]);
    }
    let best = folder.run_with("predict few.mm - --scores", input).good();
    assert_eq!(best.lines().collect::<Vec<_>>(), lines[..2]);
    // Scores are comments to whoever reads the trees.
    folder.write("scored.mrg", &best);
    assert_eq!(folder.run("evaluate few.mm scored.mrg --json").json()["examples"].as_u64(), Some(1));
}

#[test]
fn unknown_tags_get_an_answer_that_is_marked() {
    let folder = with_few();
    for (options, mark) in [("", "# fallback"), ("--scores", "# 0 fallback"), ("--n-best 3", "# 0 fallback")] {
        let ran = folder.run_with(&format!("predict few.mm - {options}"), "the/D cat/N hums/X a/D song/N\nthe/D N\n");
        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!((ran.code, lines[0]), (Some(0), mark));
        assert_eq!(words(lines[1]), "the cat hums a song");
        assert!(lines[1].contains("(X hums)"), "{}", lines[1]);
        assert!(ran.stderr.contains("of 2 sentences have no tree by the grammar"), "{}", ran.stderr);
    }
    let figures = {
        folder.write("x.mrg", "(S (NP (D the) (N cat)) (VP (X hums)))\n");
        folder.run("evaluate few.mm x.mrg --json").json()
    };
    assert_eq!(figures["fallbacks"].as_u64(), Some(1));
}

#[test]
fn trees_that_cannot_be_derived_are_told() {
    let folder = Folder::new();
    let text = format!("{FEW}{FEW}(S (NP (N cats)) (VP (V see) (X (N all))))\n");
    folder.write("t.mrg", &text);
    let ran = folder.run("train parse t.mrg -m m.mm --quiet --json --min-count 2");
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("1 of 7 trees have rules that --min-count leaves out"), "{}", ran.stderr);
    assert!(ran.stderr.contains("(line 7); --fallback learns"), "{}", ran.stderr);
    assert!(ran.stdout.contains("\"examples\":6,"));
    let ran = folder.run("train parse t.mrg -m m.mm --quiet --json --min-count 2 --fallback");
    assert!(ran.stderr.contains("the nearest trees without them are learned (line 7)"), "{}", ran.stderr);
    assert!(ran.stdout.contains("\"examples\":7,"));
    let ran = folder.run("train parse t.mrg -m m.mm --quiet --json --max-words 5");
    assert!(ran.stderr.contains("4 of 7 sentences have more than 5 words and are left out"), "{}", ran.stderr);
    assert!(ran.stdout.contains("\"examples\":3,"));
    let ran = folder.run("train parse t.mrg -m m.mm --quiet --json --max-span 1");
    assert!(ran.stderr.contains("phrases that --max-span leaves out"), "{}", ran.stderr);
    let all = "the/D dog/N sees/V a/D cat/N with/P the/D eyes/N\n";
    assert!(folder.run_with("predict m.mm - --max-span 8", all).stdout.starts_with('('));
}

#[test]
fn two_models_are_compared() {
    let folder = with_treebank();
    folder.run("train parse train.mrg -m spans.mm --features spans --quiet --max-passes 5").good();
    folder.run("train parse train.mrg -m mle.mm --solver mle --quiet").good();
    let figures = folder.run("evaluate spans.mm test.mrg --compare mle.mm --json").json();
    let compare = &figures["compare"];
    assert_eq!(compare["model"], "mle.mm");
    let counts = ["both", "only_first", "only_second", "neither"].map(|key| compare[key].as_u64().unwrap());
    assert_eq!(counts.iter().sum::<u64>(), 45);
    let exact = |of: &serde_json::Value| (45.0 * number(of, "exact_match")).round() as u64;
    assert_eq!(exact(&figures), counts[0] + counts[1]);
    assert_eq!(exact(&compare["figures"]), counts[0] + counts[2]);
    assert!((0.0..=1.0).contains(&number(compare, "p_value")));
    let text = folder.run("evaluate spans.mm test.mrg --compare mle.mm").good();
    for word in ["spans.mm", "mle.mm", "bracket F1", "only mle.mm", "McNemar's test, exact, two-sided: p ="] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    // A model is as good as itself.
    let same = folder.run("evaluate mle.mm test.mrg --compare mle.mm --json").json();
    assert_eq!((number(&same["compare"], "p_value"), same["compare"]["only_first"].as_u64()), (1.0, Some(0)));
}

#[test]
fn a_model_is_inspected() {
    let folder = with_treebank();
    folder.run("train parse test.mrg -m m.mm --terminals words --features spans --quiet --max-passes 3").good();
    let text = folder.run("inspect m.mm --top 3").good();
    for word in ["task         parse", "rules (", "classes of words", "heaviest rules", "heaviest span features"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    let contents = folder.run("inspect m.mm --top 3 --json").json();
    assert_eq!(contents["heaviest"].as_array().unwrap().len(), 3);
    assert_eq!(contents["heaviest_spans"].as_array().unwrap().len(), 3);
    let sizes = &contents["grammar"];
    let sum: u64 = ["roots", "unary", "binary", "lexical"].iter().map(|key| sizes[key].as_u64().unwrap()).sum();
    assert_eq!(sizes["rules"].as_u64(), Some(sum));
}

#[test]
fn threads_and_resuming_change_nothing() {
    let folder = with_treebank();
    let train = "train parse test.mrg --features spans --quiet";
    folder.run(&format!("{train} -m 1.mm --threads 1")).good();
    folder.run(&format!("{train} -m 2.mm --threads 2")).good();
    assert!(folder.read("1.mm") == folder.read("2.mm"), "another number of threads, another model");
    let saved = format!("{train} -m 3.mm --checkpoint c.state --checkpoint-every 0");
    folder.run(&format!("{saved} --max-passes 2")).good();
    assert!(folder.exists("c.state"));
    folder.run(&format!("{saved} --resume")).good();
    assert!(folder.read("1.mm") == folder.read("3.mm"), "resumed, another model");
    assert!(!folder.exists("c.state"));
}

#[test]
fn training_starts_from_another_parser() {
    let folder = with_treebank();
    let train = "train parse train.mrg --quiet --features spans --json --solver one-slack";
    let cold = folder.run(&format!("{train} -m all.mm")).json();
    // The same problem from its own answer.
    let warm = folder.run(&format!("{train} -m warm.mm --warm-start all.mm")).json();
    assert!(number(&warm, "passes") <= number(&cold, "passes"), "{warm}\n{cold}");
    // Fewer trees, fewer rules, other features.
    folder.run("train parse test.mrg -m part.mm --quiet --warm-start all.mm").good();
    folder.write("other.mrg", "(A (B b) (C c))\n(A (C c) (B b))\n");
    folder
        .run("train parse other.mrg -m x.mm --quiet --warm-start all.mm")
        .bad(1, &["all.mm: cannot start from this model: its grammar has no rule in common"]);
}

#[test]
fn trees_are_generated() {
    let folder = Folder::new();
    let text = folder.run("generate parse --examples 60 --seed 3 --rules 60 --tags 9 --phrases 4 --length 8").good();
    assert_eq!(text.lines().count(), 60);
    assert_eq!(
        folder.run("generate parse --examples 60 --seed 3 --rules 60 --tags 9 --phrases 4 --length 8").good(),
        text
    );
    folder.write("t.mrg", &text);
    let summary = folder.run("train parse t.mrg -m m.mm --quiet --json").json();
    assert_eq!(summary["examples"].as_u64(), Some(60));
    folder.run("generate parse --examples 3 --seed 1 --words 4 -o t2.mrg").good();
    assert_eq!(folder.text("t2.mrg").lines().count(), 3);
}

#[test]
fn trees_come_one_by_one() {
    let folder = with_few();
    let mut child = Command::new(PROGRAM)
        .current_dir(folder.dir())
        .args(["predict", "few.mm", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut to, mut from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for _ in 0..2 {
        to.write_all(b"(X (D the) (N cat) (V sees) (N dogs))\n").unwrap();
        to.flush().unwrap();
        let mut bytes = [0; 200];
        let n = from.read(&mut bytes).unwrap();
        assert!(bytes[..n].starts_with(b"(S (NP (D the) (N cat))"));
    }
    drop(to);
    assert!(child.wait().unwrap().success());
}
