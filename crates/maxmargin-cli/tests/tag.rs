//! The task `tag` as a user sees it. `tag_bad_input.rs` has what is refused, `tag_sizes.rs` what is very small or long.

#![allow(clippy::format_collect, clippy::format_push_string, reason = "tests make small texts")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, PROGRAM, keys, number};

const TREEBANK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/treebank");

/// What the summary of training has for every task.
const SUMMARY: [&str; 22] = [
    "task",
    "solver",
    "status",
    "certificate",
    "examples",
    "dimension",
    "c",
    "epsilon",
    "primal",
    "dual",
    "gap",
    "rounds",
    "passes",
    "oracle_calls",
    "cache_hits",
    "working_set",
    "seconds_reading",
    "seconds_training",
    "seconds_oracle",
    "seconds_qp",
    "peak_rss_mb",
    "train_loss",
];

/// A folder with `t.pos` and `h.pos`, noisy sentences over four tags, 60 and 30.
fn with_sentences() -> Folder {
    let folder = Folder::new();
    // Another seed would have other words.
    let text = folder.run("generate tag --tags 4 --words 8 --length 6 --noise 0.1 --examples 90 --seed 1").good();
    let at = text.match_indices("\n\n").nth(59).unwrap().0 + 2;
    folder.write("t.pos", &text[..at]);
    folder.write("h.pos", &text[at..]);
    folder
}

/// A folder with the treebank and a model of it.
fn with_treebank() -> Folder {
    let folder = Folder::new();
    for part in ["train", "test"] {
        let name = format!("english.{part}.pos");
        folder.write(&name, fs::read(format!("{TREEBANK}/{name}")).unwrap());
    }
    folder.run("train tag english.train.pos -m pos.mm --max-passes 8 --quiet").good();
    folder
}

/// The last column, with an empty line between sentences.
fn last_column(text: &str) -> Vec<&str> {
    text.lines().map(|line| line.split(['\t', ' ']).next_back().unwrap()).collect()
}

/// The texts of sentences, without the empty lines around them.
fn paragraphs(text: &str) -> Vec<Vec<&str>> {
    let lines: Vec<&str> = text.lines().collect();
    lines.split(|line| line.is_empty()).filter(|lines| !lines.is_empty()).map(<[&str]>::to_vec).collect()
}

fn same_models(folder: &Folder, words: &str) -> bool {
    let [first, second] = words.split('|').collect::<Vec<_>>()[..] else { panic!("two runs: {words}") };
    folder.run(&format!("train tag t.pos -m 1.mm --quiet {first}")).good();
    folder.run(&format!("train tag t.pos -m 2.mm --quiet {second}")).good();
    folder.read("1.mm") == folder.read("2.mm")
}

#[test]
fn a_treebank_is_learned() {
    let folder = with_treebank();
    let figures = folder.run("evaluate pos.mm english.test.pos --json").json();
    for key in [
        "examples",
        "tokens",
        "mean_loss",
        "accuracy",
        "token_accuracy",
        "sequence_accuracy",
        "chunk_precision",
        "chunk_recall",
        "chunk_f1",
        "unseen_tags",
        "unseen_features",
    ] {
        assert!(keys(&figures).contains(&key), "{key}");
    }
    assert_eq!((number(&figures, "examples"), number(&figures, "tokens")), (45.0, 451.0));
    assert!(number(&figures, "token_accuracy") > 0.85, "{figures}");
    assert_eq!(figures["accuracy"], figures["token_accuracy"]);
    assert!(figures["chunk_f1"].is_null(), "parts of speech are no chunks");
    assert_eq!(number(&figures, "unseen_tags"), 0.0);
    assert!(number(&figures, "unseen_features") > 0.0);
    let table = folder.run("evaluate pos.mm english.test.pos").good();
    for word in ["token accuracy", "of 451 tokens)", "of 45 sentences)", "unseen features", "most confused", "NN"] {
        assert!(table.contains(word), "{word} in\n{table}");
    }

    // The input's lines, each with a tab and a tag, are those that evaluation counts.
    let input = folder.text("english.test.pos");
    let tagged = folder.run("predict pos.mm english.test.pos --threads 1").good();
    assert_eq!(tagged, folder.run("predict pos.mm english.test.pos --threads 4").good());
    assert_eq!(tagged.lines().count(), input.lines().count());
    for (line, from) in tagged.lines().zip(input.lines()) {
        assert!(from.is_empty() && line.is_empty() || line.starts_with(&format!("{from}\t")), "{line}");
    }
    let pairs = last_column(&tagged).into_iter().zip(last_column(&input)).filter(|(tag, _)| !tag.is_empty());
    let right = pairs.filter(|(tag, truth)| tag == truth).count();
    assert!((number(&figures, "accuracy") - right as f64 / 451.0).abs() < 1e-12);

    // Tags in the input are looked at only if told so.
    let words: String = input.lines().map(|l| l.split('\t').next().unwrap().to_owned() + "\n").collect();
    folder.write("words", &words);
    let alone = folder.run("predict pos.mm words").good();
    assert_eq!(last_column(&alone), last_column(&tagged));
    assert_eq!(alone, folder.run("predict pos.mm words --forced").good());
    assert_eq!(folder.run_with("predict pos.mm -", words).good(), alone);

    forced_tags_stay(&folder, &input);
    the_best_come_first(&folder, &tagged);

    let text = folder.run("inspect pos.mm --top 2").good();
    for word in ["45 tags", "FEATURE:WEIGHT", "strongest transitions", "loss hamming", "weights are not 0"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
}

fn forced_tags_stay(folder: &Folder, input: &str) {
    let holed: String =
        input.lines().enumerate().map(|(i, l)| if i % 3 == 0 { hole(l) } else { l.to_owned() } + "\n").collect();
    folder.write("holed", &holed);
    let tagged = folder.run("predict pos.mm holed --forced").good();
    for (given, got) in last_column(&holed).into_iter().zip(last_column(&tagged)) {
        assert!(given == got || given == "?" && !got.is_empty() && got != "?", "{given}: {got}");
    }
    // A wrong one stays, too; one that the model does not know cannot.
    folder.write("odd", "the\tVB\ncat\tFOO\n");
    let ran = folder.run("predict pos.mm odd --forced");
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.starts_with("the\tVB\tVB\ncat\tFOO\t") && !ran.stdout.contains("FOO\tFOO"), "{}", ran.stdout);
    assert!(ran.stderr.contains("note: 1 token had given tags that the model does not know"), "{}", ran.stderr);
}

fn hole(line: &str) -> String {
    line.split_once('\t').map_or(String::new(), |(word, _)| format!("{word}\t?"))
}

fn the_best_come_first(folder: &Folder, tagged: &str) {
    let best = folder.run("predict pos.mm english.test.pos --n-best 3").good();
    assert_eq!(best, folder.run("predict pos.mm english.test.pos --n-best 3 --threads 1").good());
    let (plain, lists) = (paragraphs(tagged), paragraphs(&best));
    assert_eq!(lists.len(), 3 * plain.len(), "every sentence of the treebank has three taggings");
    let score = |lines: &[&str], rank: usize| -> f64 {
        lines[0].strip_prefix(&format!("# {rank} ")).unwrap_or_else(|| panic!("{}", lines[0])).parse().unwrap()
    };
    for (lists, plain) in lists.chunks(3).zip(&plain) {
        let scores: Vec<f64> = lists.iter().enumerate().map(|(rank, lines)| score(lines, rank)).collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        assert_eq!(lists[0][1..], plain[..]);
        assert!(lists[0][1..] != lists[1][1..] && lists[1][1..] != lists[2][1..] && lists[0][1..] != lists[2][1..]);
    }
    let scored = folder.run("predict pos.mm english.test.pos --scores --margins").good();
    for ((scored, plain), lists) in paragraphs(&scored).iter().zip(&plain).zip(lists.chunks(3)) {
        assert!((score(scored, 0) - score(&lists[0], 0)).abs() < 1e-9);
        let mut least = f64::INFINITY;
        for (line, plain) in scored[1..].iter().zip(plain) {
            let (line, margin) = line.rsplit_once('\t').unwrap();
            let margin: f64 = margin.parse().unwrap();
            assert!(line == *plain && margin >= 0.0, "{line} {margin}");
            least = least.min(margin);
        }
        // The second best differs somewhere, and nothing that differs is better.
        let gap = score(&lists[0], 0) - score(&lists[1], 1);
        assert!((least - gap).abs() < 1e-6, "{least} {gap}");
    }
}

#[test]
fn the_summary_has_the_agreed_keys() {
    let folder = with_sentences();
    let summary = folder.run("train tag t.pos -m t.mm --json").json();
    for key in SUMMARY {
        assert!(keys(&summary).contains(&key), "{key}");
    }
    assert_eq!((&summary["task"], &summary["solver"]), (&"tag".into(), &"bcfw".into()));
    assert_eq!((&summary["status"], &summary["certificate"]), (&"converged".into(), &"exact".into()));
    assert_eq!((number(&summary, "examples"), number(&summary, "c")), (60.0, 60.0));
    assert!(number(&summary, "gap") <= number(&summary, "c") * number(&summary, "epsilon"));
    let table = folder.run("train tag t.pos -m t.mm").good();
    for word in ["tag, 4 tags: T1 T2 T3 T4", "examples     60", "converged", "exact: the minimum", "t.mm"] {
        assert!(table.contains(word), "{word} in\n{table}");
    }
    let text = folder.run("inspect t.mm").good();
    for word in ["tag, 4 tags", "bcfw", "transitions (rows: the tag before", "start", "end"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    let contents = folder.run("inspect t.mm --top 3 --json").json();
    assert_eq!(contents["tags"], serde_json::json!(["T1", "T2", "T3", "T4"]));
    assert_eq!((number(&contents, "order"), number(&contents, "edges")), (1.0, 0.0));
    assert_eq!(contents["training"]["status"], "converged");
    assert_eq!(contents["transitions"].as_array().unwrap().len(), 4);
    assert_eq!(contents["strongest"][0]["weights"].as_array().unwrap().len(), 3);
    folder.holds_only(&["h.pos", "t.mm", "t.pos"]);
}

#[test]
fn generated_sentences_depend_on_the_seed_alone() {
    let folder = Folder::new();
    let words = "generate tag --examples 20 --tags 3 --words 4 --length 5 --noise 0.2 --seed";
    let first = folder.run(&format!("{words} 5")).good();
    assert_eq!(first, folder.run(&format!("{words} 5")).good());
    assert_ne!(first, folder.run(&format!("{words} 6")).good());
    assert_eq!(paragraphs(&first).len(), 20);
    assert!(paragraphs(&first).iter().flatten().all(|line| line.split('\t').count() == 2));
}

#[test]
fn the_three_formats_say_the_same() {
    let folder = with_sentences();
    folder.write("template", "# words\nU00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\nU02:%x[1,0]\n\nB\n");
    folder.run("train tag t.pos -m columns.mm --template template --quiet").good();
    for file in ["t", "h"] {
        let features = folder.run(&format!("features {file}.pos --template template")).good();
        folder.write(&format!("{file}.crf"), &features);
        folder.run(&format!("features {file}.pos --template template -o again")).good();
        assert_eq!(folder.text("again"), features);
    }
    assert_eq!(paragraphs(&folder.text("t.crf"))[0][0].split('\t').count(), 4);
    // The same features under numbers.
    let mut names: Vec<String> = Vec::new();
    for file in ["t", "h"] {
        let text = folder.text(&format!("{file}.crf"));
        let mut svmhmm = String::new();
        for (qid, sentence) in paragraphs(&text).into_iter().enumerate() {
            for line in sentence {
                let (tag, features) = line.split_once('\t').unwrap();
                let mut index = |name: &str| {
                    names.iter().position(|n| n == name).unwrap_or_else(|| {
                        names.push(name.to_owned());
                        names.len() - 1
                    }) + 1
                };
                let mut row: Vec<usize> = features.split('\t').map(&mut index).collect();
                row.sort_unstable();
                let row: String = row.iter().map(|i| format!(" {i}:1")).collect();
                svmhmm += &format!("{tag} qid:{}{row}\n", qid + 1);
            }
        }
        folder.write(&format!("{file}.hmm"), svmhmm);
    }
    folder.run("train tag t.crf -m crf.mm --format crfsuite --quiet").good();
    folder.run("train tag t.hmm -m hmm.mm --format svmhmm --quiet").good();
    let columns = folder.run("predict columns.mm h.pos").good();
    let tags = paragraphs(&columns).iter().map(|s| last_column(&s.join("\n")).join("\n") + "\n").collect::<Vec<_>>();
    let tags = tags.join("\n");
    assert_eq!(folder.run("predict crf.mm h.crf").good(), tags);
    assert_eq!(folder.run("predict hmm.mm h.hmm").good(), tags);
    let piped = folder.run("features h.pos --template template").good();
    assert_eq!(folder.run_with("predict crf.mm - --threads 3", piped).good(), tags);
    let figures =
        ["columns.mm h.pos", "crf.mm h.crf", "hmm.mm h.hmm"].map(|f| folder.run(&format!("evaluate {f} --json")));
    let losses = figures.map(|f| number(&f.json(), "mean_loss"));
    assert!(losses[0] == losses[1] && losses[1] == losses[2], "{losses:?}");
    // Without tags.
    let bare: String = folder.text("h.hmm").lines().map(|l| l.split_once(' ').unwrap().1.to_owned() + "\n").collect();
    assert_eq!(folder.run_with("predict hmm.mm -", bare).good(), tags);
}

#[test]
fn models_are_the_same_for_all_threads_and_runs() {
    let folder = with_sentences();
    for options in ["", "--solver one-slack", "--solver n-slack --c-per-example 0.03", "--order 2"] {
        assert!(same_models(&folder, &format!("--threads 1 {options}|--threads 4 {options}")), "{options}");
    }
    assert!(same_models(&folder, "--seed 7|--seed 7"));
    assert!(!same_models(&folder, "--seed 7|--seed 8"));
}

#[test]
fn every_solver_and_problem_is_trained() {
    let folder = with_sentences();
    let mut best: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
    for options in [
        "--solver bcfw",
        "--solver one-slack",
        "--solver n-slack",
        "--solver group-slack --groups 3",
        "--solver subgradient --relative-gap 0.2",
        "--solver frank-wolfe --relative-gap 0.2",
    ] {
        let summary = folder.run(&format!("train tag t.pos -m t.mm --c-per-example 0.1 --json {options}")).json();
        assert_eq!(summary["status"], "converged", "{options}");
        best = (best.0.max(number(&summary, "dual")), best.1.min(number(&summary, "primal")));
    }
    assert!(best.0 <= best.1 * (1.0 + 1e-9), "every lower bound is below every value: {best:?}");
    for (options, solver) in [
        ("--solver mle", "mle"),
        ("--solver perceptron --max-passes 5", "perceptron"),
        ("--order 2", "bcfw"),
        ("--tag-cost T1=3 --tag-cost T2=0.5", "bcfw"),
        ("--loss zero-one", "bcfw"),
        ("--rescaling slack", "bcfw"),
        ("--penalty quadratic", "bcfw"),
        ("--min-count 3", "bcfw"),
        ("--c-path auto --heldout h.pos --keep-best", "bcfw"),
        ("--folds 3 --c-path-per-example 0.01,0.1", "bcfw"),
        ("--heldout h.pos --keep-best", "bcfw"),
    ] {
        let summary = folder.run(&format!("train tag t.pos -m t.mm --json {options}")).json();
        assert_eq!(summary["solver"], solver, "{options}");
        let figures = folder.run("evaluate t.mm h.pos --json").json();
        assert!(number(&figures, "accuracy") > 0.5, "{options}: {figures}");
        if options.contains("--keep-best") {
            // Along a path the ends compete: something better may have been seen on the way.
            let (told, is) = (number(&summary, "heldout_loss"), number(&figures, "mean_loss"));
            assert!((told - is).abs() < 1e-9, "{options}: what is told is kept: {told} {is}");
            assert!(
                number(&summary, "heldout_best") <= told
                    && (options.contains("path") || number(&summary, "heldout_best") == told)
            );
        }
        assert_eq!(summary["cv"].is_null(), !options.contains("--folds"), "{options}");
        assert_eq!(summary["path"].is_null(), !options.contains("--c-path auto"), "{options}");
    }
    let features = |options: &str| {
        folder.run(&format!("train tag t.pos -m t.mm --quiet {options}")).good();
        number(&folder.run("inspect t.mm --json").json(), "features")
    };
    assert!(features("--min-count 3") < features(""));
}

#[test]
fn costs_of_tags_are_what_evaluation_counts() {
    let folder = with_sentences();
    folder.run("train tag t.pos -m t.mm --tag-cost T1=3 --loss-scale 2 --quiet").good();
    let (truth, tagged) = (folder.text("h.pos"), folder.run("predict t.mm h.pos").good());
    let wrong = last_column(&truth).into_iter().zip(last_column(&tagged)).filter(|(a, b)| a != b);
    let loss: f64 = wrong.map(|(truth, _)| if truth == "T1" { 6.0 } else { 2.0 }).sum();
    let figures = folder.run("evaluate t.mm h.pos --json").json();
    assert!((number(&figures, "mean_loss") - loss / 30.0).abs() < 1e-9, "{figures}");
    assert!(folder.run("inspect t.mm").good().contains("hamming with costs of tags"));
}

#[test]
fn the_hard_margin_separates_or_says_that_it_cannot() {
    let folder = Folder::new();
    folder.write("t.pos", "a X\nb Y\n\nb Y\na X\na X\n\nb Y\n");
    let summary = folder.run("train tag t.pos -m t.mm --penalty hard --json").json();
    assert_eq!((&summary["solver"], &summary["status"]), (&"n-slack".into(), &"converged".into()));
    assert_eq!(number(&summary, "train_loss"), 0.0);
    folder.write("c.pos", "a X\n\na Y\n");
    let ran = folder.run("train tag c.pos -m c.mm --penalty hard --quiet");
    assert_ne!(ran.code, Some(0), "{}", ran.stdout);
    assert!(ran.stderr.contains("separable") || ran.stderr.contains("separate"), "{}", ran.stderr);
    assert!(!folder.exists("c.mm"));
}

/// Chunks whose words are often those of other tags.
fn noisy_chunks(sentences: usize, mut draw: u64) -> String {
    let mut next = move |n: u64| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draw >> 40) % n
    };
    let mut text = String::new();
    for _ in 0..sentences {
        let mut inside: Option<&str> = None;
        for _ in 0..6 {
            let kind = ["A", "B"][next(2) as usize];
            let tag = match (inside, next(3)) {
                (_, 0) => "O".to_owned(),
                (Some(kind), 1) => format!("I-{kind}"),
                _ => format!("B-{kind}"),
            };
            inside = tag.strip_prefix("B-").map(|k| if k == "A" { "A" } else { "B" }).or(inside.filter(|_| tag != "O"));
            let word = if next(10) < 3 { ["O", "B-A", "I-A", "B-B", "I-B"][next(5) as usize] } else { &tag };
            text += &format!("w{word} {tag}\n");
        }
        text.push('\n');
    }
    text
}

fn is_valid_bio(tags: &[&str]) -> bool {
    let mut before = "O";
    tags.iter().all(|tag| {
        let is_good = tag.strip_prefix("I-").is_none_or(|kind| before != "O" && &before[2..] == kind);
        before = tag;
        is_good
    })
}

#[test]
fn a_scheme_holds_in_every_prediction() {
    let folder = Folder::new();
    folder.write("t.iob", noisy_chunks(80, 1));
    folder.write("template", "U00:%x[0,0]\n");
    // What only a scheme prevents: I- at the start and after another kind.
    let odd = "wI-A O\nwI-B O\nwO O\nwI-A O\n\n".repeat(3) + &noisy_chunks(80, 2);
    folder.write("h.iob", &odd);
    let train = "train tag t.iob -m t.mm --quiet --template template --c-per-example 0.003";
    let all_valid = |options: &str| {
        let text = folder.run(&format!("predict t.mm h.iob {options}")).good();
        let text: String = text.lines().filter(|l| !l.starts_with('#')).map(|l| l.to_owned() + "\n").collect();
        paragraphs(&text).iter().all(|s| is_valid_bio(&s.iter().map(|l| last_column(l)[0]).collect::<Vec<_>>()))
    };
    folder.run(train).good();
    assert!(!all_valid(""), "the data are too easy");
    for options in ["", "--order 2", "--solver perceptron --max-passes 3", "--solver mle"] {
        let train =
            if options.contains("solver") { train.replace("--c-per-example 0.003", "") } else { train.to_owned() };
        folder.run(&format!("{train} --scheme BIO {options}")).good();
        assert!(all_valid("") && all_valid("--n-best 4") && all_valid("--margins --threads 2 --scores"), "{options}");
    }
    folder.run(&format!("{train} --scheme BIO")).good();
    let figures = folder.run("evaluate t.mm h.iob --json").json();
    assert!(figures["chunk_f1"].is_number() && figures["chunk_precision"].is_number(), "{figures}");
    assert_eq!(figures["chunks"][0]["kind"], "A");
    // Tags given by the user may contradict it.
    folder.write("bad.iob", "x ?\n\nx I-A\ny ?\n");
    folder.run("predict t.mm bad.iob --forced -o out").bad(1, &["bad.iob:3: no sequence of tags is allowed"]);
    assert!(!folder.exists("out"));
}

#[test]
fn forbidden_pairs_never_come() {
    let folder = Folder::new();
    folder.write("t.pos", "a X\nb Y\na X\nb Y\n\nb Y\na X\n\na X\n\nb Y\n");
    folder.write("h.pos", "a\na\nb\nb\nb\n");
    let tags = |options: &str| {
        folder.run(&format!("train tag t.pos -m t.mm --quiet {options}")).good();
        last_column(&folder.run("predict t.mm h.pos").good()).concat()
    };
    folder.write("template", "U00:%x[0,0]\n");
    for options in ["", "--order 2", "--template template", "--solver one-slack", "--solver perceptron"] {
        let tags = tags(&format!("--forbid X,X --forbid Y,Y {options}"));
        assert!(!tags.contains("XX") && !tags.contains("YY"), "{options}: {tags}");
    }
    // Commas are tags, too.
    folder.write("t.pos", "a X\n, ,\n\na X\n");
    folder.write("h.pos", ",\n,\n");
    assert!(!tags("--forbid ,,,").contains(",,"));
}

#[test]
fn a_model_of_other_data_is_a_start() {
    let folder = with_sentences();
    folder.run("train tag h.pos -m h.mm --quiet").good();
    let summary = folder.run("train tag t.pos -m t.mm --json --warm-start h.mm").json();
    assert_eq!(summary["status"], "converged");
    // From its own answer there is less to do.
    let again = folder.run("train tag t.pos -m again.mm --json --warm-start t.mm").json();
    assert!(number(&again, "passes") <= number(&summary, "passes"), "{again}");
    assert!(number(&again, "primal") <= number(&summary, "primal") * (1.0 + 1e-9));
}

#[test]
fn stopped_and_killed_training_ends_in_the_same_bytes() {
    let folder = with_sentences();
    for options in [
        "-e 0.01",
        "--solver n-slack --c-per-example 0.03",
        "--order 2 --c-per-example 0.1",
        "--solver one-slack --c-per-example 0.03",
    ] {
        let words = format!("train tag t.pos --quiet --threads 1 {options}");
        folder.run(&format!("{words} -m a.mm")).good();
        let kept = format!("{words} -m b.mm --checkpoint c --checkpoint-every 0");
        let stopped = folder.run(&format!("{kept} --max-passes 3")).good();
        assert!(stopped.contains("--resume (checkpoint c)"), "{stopped}");
        folder.run(&format!("{kept} --resume")).good();
        assert_eq!(folder.read("a.mm"), folder.read("b.mm"), "{options}");
        // Killed as soon as there is something to go on from.
        fs::remove_file(folder.path("b.mm")).unwrap();
        let mut child = Command::new(PROGRAM)
            .args(kept.split_whitespace())
            .current_dir(folder.dir())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let start = Instant::now();
        while !folder.exists("c") && !folder.exists("b.mm") && start.elapsed() < Duration::from_mins(1) {
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().ok();
        child.wait().unwrap();
        if folder.exists("c") {
            folder.run(&format!("{kept} --resume")).good();
        }
        assert_eq!(folder.read("a.mm"), folder.read("b.mm"), "{options}, killed");
        assert!(!folder.exists("c"));
    }
}

#[test]
fn a_sentence_is_answered_as_soon_as_it_ends() {
    let folder = Folder::new();
    folder.write("t.pos", "a X\nb Y\n\nb Y\na X\n");
    folder.write("t.hmm", "X qid:1 1:1\nY qid:1 2:1\nY qid:2 2:1\nX qid:2 1:1\n");
    folder.run("train tag t.pos -m t.mm --quiet").good();
    folder.run("train tag t.hmm -m hmm.mm --format svmhmm --quiet").good();
    for (model, talk) in [
        ("t.mm", [("a\nb\n\n", "a\tX\nb\tY\n"), ("b\n\n", "\nb\tY\n"), ("\na\n\n", "\n\na\tX\n")]),
        // Only the next sentence ends one of these.
        ("hmm.mm", [("qid:1 1:1\nqid:2 2:1\n", "X\n"), ("X qid:7 1:1\n", "\nY\n"), ("qid:8 1:1\n", "\nX\n")]),
    ] {
        let mut child = Command::new(PROGRAM)
            .args(["predict", model, "-"])
            .current_dir(folder.dir())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        for (line, wanted) in talk {
            stdin.write_all(line.as_bytes()).unwrap();
            let mut answer = vec![0; wanted.len()];
            stdout.read_exact(&mut answer).unwrap();
            assert_eq!(String::from_utf8(answer).unwrap(), wanted, "{model}");
        }
        drop(stdin);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
fn many_threads_keep_the_order() {
    let folder = with_sentences();
    folder.run("train tag t.pos -m t.mm --quiet --max-passes 2").good();
    folder.run("generate tag --tags 4 --words 8 --length 6 --examples 3000 --seed 3 -o many.pos").good();
    let input = folder.text("many.pos");
    let tagged = folder.run_with("predict t.mm - --threads 4", input.clone()).good();
    assert_eq!(tagged, folder.run("predict t.mm many.pos --threads 1").good());
    assert!(tagged.lines().zip(input.lines()).all(|(a, b)| a.starts_with(b)));
}

#[test]
fn lines_may_end_and_be_parted_in_any_way() {
    let folder = Folder::new();
    folder.write("plain", "a X\nb Y\n\nc X\n");
    folder.write("odd", "\n \n\t\na\t X\r\nb  Y\t\r\n\r\n\r\n\nc X");
    for file in ["plain", "odd"] {
        let summary = folder.run(&format!("train tag {file} -m {file}.mm --json")).json();
        assert_eq!(number(&summary, "examples"), 2.0, "empty sentences are none");
    }
    assert_eq!(folder.run("predict plain.mm plain").good(), "a X\tX\nb Y\tY\n\nc X\tX\n");
    let odd = folder.run("predict odd.mm odd").good();
    assert_eq!(paragraphs(&odd.replace([' ', '\t', '\r'], "")), [vec!["aXX", "bYY"], vec!["cXX"]]);
    assert_eq!(odd.lines().count(), 9, "no line is lost: {odd:?}");
    assert_eq!(folder.run("predict odd.mm plain").good(), folder.run("predict plain.mm plain").good());
}
