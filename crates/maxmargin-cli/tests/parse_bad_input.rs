//! What the task `parse` refuses, and how it says so.

#![allow(clippy::format_collect, reason = "tests make small texts")]

mod common;

use common::Folder;

const GOOD: &str = "(S (NP (D the) (N cat)) (VP (V sees) (NP (D a) (N dog))))\n(S (NP (N cats)) (VP (V sleep)))\n";

fn with_model() -> Folder {
    let folder = Folder::new();
    folder.write("good.mrg", GOOD);
    folder.run("train parse good.mrg -m m.mm --quiet").good();
    folder
}

#[test]
fn bad_trees_are_told_by_their_lines() {
    let folder = with_model();
    for (text, words) in [
        ("(S (A a)\n(B b)\n", vec!["bad.mrg:1", "never closed"]),
        ("(S (A a))\n\n(S (A a)\n  (B b)\n", vec!["bad.mrg:3", "never closed"]),
        ("(S (A a)))\n", vec!["bad.mrg:1", "never opened"]),
        ("(S (A a)) b\n", vec!["bad.mrg:1", "'b' outside of brackets"]),
        ("(S (A a) b)\n", vec!["bad.mrg:1", "'b' beside brackets"]),
        ("(S (A a) (B))\n", vec!["bad.mrg:1", "neither a word nor brackets"]),
        ("(S (A a) ((B b)))\n", vec!["bad.mrg:1", "without a label"]),
        ("", vec!["bad.mrg:1", "no trees with words"]),
        ("# nothing\n()\n", vec!["bad.mrg:", "no trees with words"]),
        ("(S (-NONE- *))\n", vec!["bad.mrg:", "no trees with words"]),
    ] {
        folder.write("bad.mrg", text);
        folder.run("train parse bad.mrg -m x.mm --quiet").bad(1, &words);
        folder.run("evaluate m.mm bad.mrg").bad(1, &words);
    }
    folder.write("bad.mrg", b"(S (\xff a))\n");
    folder.run("train parse bad.mrg -m x.mm --quiet").bad(1, &["bad.mrg:1", "UTF-8"]);
    folder.run("train parse none.mrg -m x.mm --quiet").bad(1, &["none.mrg"]);
    folder.holds_only(&["bad.mrg", "good.mrg", "m.mm"]);
}

#[test]
fn sentences_that_are_too_long_are_told_before_memory_is_taken() {
    let folder = with_model();
    let long = format!("(S {})\n", "(A a) ".repeat(60_000));
    folder.write("long.mrg", &long);
    folder.run("train parse long.mrg -m x.mm --quiet").bad(1, &["long.mrg:1: ", "60000 words", "--max-words"]);
    let long = format!("(S (NP (N cats)) (VP (V see) (NP {})))\n", "(D the) ".repeat(100_000));
    folder.write("long.mrg", &long);
    // There is an answer all the same, which is marked, and the others are as they would be.
    folder.write("three.mrg", [GOOD, &long, GOOD].concat());
    let found = folder.run("predict m.mm three.mrg");
    assert!(found.stderr.contains("1 sentence too long for a chart") && found.stderr.contains("--max-span"));
    assert_eq!(found.stdout.matches("# fallback\n").count(), 1);
    assert_eq!(found.stdout.lines().filter(|line| !line.starts_with('#')).count(), 2 * GOOD.lines().count() + 1);
    folder.run("evaluate m.mm long.mrg").good();
    folder.write("two.mrg", GOOD);
    folder
        .run("train parse two.mrg -m x.mm --quiet --max-words 1")
        .bad(1, &["two.mrg: every sentence has more than 1 words; raise --max-words"]);
    folder.run("train parse two.mrg -m x.mm --quiet --min-count 9").bad(2, &["--min-count: every tree has a rule"]);
}

#[test]
fn very_small_trees_are_learned() {
    let folder = Folder::new();
    for text in
        ["(N a)\n", "(S (N a))\n", "(N a)\n(S (N a) (N b))\n", "(A^B (N-X é) (-LRB- -LRB-))\n", "(S (S (S (N a))))\n"]
    {
        folder.write("t.mrg", text);
        folder.run("train parse t.mrg -m m.mm --quiet").good();
        let found = folder.run("predict m.mm t.mrg").good();
        assert_eq!(found.lines().count(), text.lines().count());
        assert_eq!(folder.run_with("predict m.mm -", "x/N y/Z z/N\n").code, Some(0), "{text}");
        folder.run("evaluate m.mm t.mrg").good();
        folder.run("inspect m.mm").good();
    }
    // A rule with many children, over many lines.
    let wide = format!("( (S\n {}) )\n", (0..40).map(|i| format!("(T{i}\n w{i})\n")).collect::<String>());
    folder.write("t.mrg", &wide);
    folder.run("train parse t.mrg -m m.mm --quiet").good();
    let found = folder.run("predict m.mm t.mrg").good();
    assert!(found.starts_with("(S (T0 w0) (T1 w1)") && found.ends_with("(T39 w39))\n"), "{found}");
}

#[test]
fn models_and_files_of_other_tasks_are_told_apart() {
    let folder = with_model();
    folder.run("generate binary --examples 50 --seed 1 -o b.dat").good();
    folder.run("train binary b.dat -m b.mm --quiet").good();
    folder.run("train parse b.dat -m x.mm --quiet").bad(1, &["b.dat:1", "outside of brackets"]);
    folder.run("train binary good.mrg -m x.mm --quiet").bad(1, &["good.mrg:1"]);
    folder
        .run("train parse good.mrg -m x.mm --quiet --warm-start b.mm")
        .bad(1, &["b.mm: a model of the task binary, not of trees"]);
    folder.run("train binary b.dat -m x.mm --quiet --warm-start m.mm").bad(1, &["m.mm: a model of the task parse"]);
    folder
        .run("evaluate m.mm good.mrg --compare b.mm")
        .bad(1, &["b.mm: a model of the task binary; m.mm is one of the task parse"]);
    folder.run("evaluate m.mm good.mrg --compare none.mm").bad(1, &["none.mm"]);
    folder.run_with("evaluate m.mm - --compare m.mm", GOOD).bad(2, &["--compare: ", "give a file"]);
    folder
        .run("predict m.mm good.mrg --margins")
        .bad(2, &["--margins: belongs to models of tags; this one is of the task parse"]);
    folder.run("predict m.mm good.mrg --forced").bad(2, &["--forced: "]);
    folder.run("predict b.mm b.dat --max-span 3").bad(2, &["--max-span: belongs to models of trees"]);
    folder.run("evaluate b.mm b.dat --max-words 3").bad(2, &["--max-words: belongs to models of trees"]);
    folder.run("evaluate m.mm good.mrg --max-words 1").bad(1, &["good.mrg: every sentence has more than 1 words"]);
    folder.run("predict b.mm b.dat --n-best 3").bad(2, &["--n-best: belongs to models of tags and trees"]);
    folder.write("cut.mm", &folder.read("m.mm")[..1000]);
    folder.run("predict cut.mm good.mrg").bad(1, &["cut.mm: "]);
}

#[test]
fn options_without_effect_are_refused() {
    let folder = with_model();
    folder.run("generate binary --examples 50 --seed 1 -o b.dat").good();
    for (options, words) in [
        ("--loss squared", "--loss: the task parse has the losses hamming, zero-one and f1"),
        ("--loss matrix", "--loss: "),
        ("--bias 1", "--bias: "),
        ("--positive a", "--positive: "),
        ("--class-weight balanced", "--class-weight: "),
        ("--cost-matrix f", "--cost-matrix: "),
        ("--format columns", "--format: belongs to the task tag"),
        ("--order 2", "--order: "),
        ("--tag-cost a=2", "--tag-cost: "),
        ("--exact-words 3 --loss hamming", "--exact-words: belongs to --loss f1"),
        ("--exact-words 3 --loss zero-one --rescaling slack", "--exact-words: "),
        ("--rare-below 3", "--rare-below: belongs to --terminals words"),
        ("--fallback", "--fallback: "),
        ("--fallback --min-count 1", "--fallback: "),
        ("--features spans --solver mle", "--features: mle counts rules"),
        ("--max-span 0", "--max-span"),
        ("--max-words 0", "--max-words"),
        ("--markov -1", "--markov"),
        ("--markov x", "--markov"),
        ("--terminals letters", "invalid value 'letters'"),
        ("--binarize head", "unexpected argument '--binarize'"),
        ("--parent-anotation", "--parent-annotation"),
    ] {
        folder.run(&format!("train parse good.mrg -m x.mm --quiet {options}")).bad(2, &[words]);
    }
    for options in [
        "--terminals words",
        "--features spans",
        "--parent-annotation",
        "--binarise head",
        "--markov 1",
        "--keep-empty",
        "--keep-functions",
        "--max-words 5",
        "--fallback",
        "--max-span 5",
        "--exact-words 5",
        "--rare-below 5",
    ] {
        let flag = format!("{}: belongs to the task parse", options.split(' ').next().unwrap());
        folder.run(&format!("train binary b.dat -m x.mm --quiet {options}")).bad(2, &[&flag]);
    }
    folder.run("train binary b.dat -m x.mm --loss f1").bad(2, &["--loss: "]);
    folder.run("train tag b.dat -m x.mm --loss f1").bad(2, &["--loss: "]);
    folder.run("train binary b.dat -m x.mm --min-count 2").bad(2, &["--min-count: belongs to the tasks tag and parse"]);
    for (words, flag) in [
        ("parse --features 3", "--features"),
        ("parse --classes 3", "--classes"),
        ("parse --noise 0.1", "--noise"),
        ("parse --rules 1", "--rules"),
        ("tag --rules 100", "--rules"),
        ("binary --phrases 3", "--phrases"),
    ] {
        folder.run(&format!("generate {words} --examples 5 --seed 1")).bad(2, &[flag]);
    }
    folder.holds_only(&["b.dat", "good.mrg", "m.mm"]);
}
