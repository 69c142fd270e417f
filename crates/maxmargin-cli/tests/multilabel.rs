//! The task `multilabel` as a user sees it.

mod common;

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use common::{Folder, PROGRAM, keys, number};

/// A folder with `train.dat` and `test.dat`.
fn with_sets() -> Folder {
    let folder = Folder::new();
    let sizes = "--features 30 --nonzeros 20 --labels 8 --cardinality 2 --noise 0.5";
    folder.run(&format!("generate multilabel --examples 500 --seed 1 {sizes} -o all.dat")).good();
    let all = folder.text("all.dat");
    let lines: Vec<&str> = all.lines().collect();
    folder.write("train.dat", lines[..350].join("\n") + "\n");
    folder.write("test.dat", lines[350..].join("\n") + "\n");
    folder
}

/// A folder with a few sets, `few.dat`, and a model of them.
fn with_few() -> Folder {
    let folder = Folder::new();
    folder.write("few.dat", FEW);
    folder.run("train multilabel few.dat -m few.mm --quiet --pairs tree --c-per-example 10").good();
    folder
}

const FEW: &str = "\
sea,sky 1:1 2:0.5
sky,sea 1:0.9 2:0.4
sky 2:1
wood 3:1
wood,sky 2:0.8 3:0.7
 4:1
4:0.9 5:0
";

#[test]
fn sets_are_learned_with_every_kind_of_pairs() {
    let folder = with_sets();
    for (options, pairs) in [
        ("", "no pairs"),
        ("--pairs none --bias 1", "a constant one of 1, no pairs"),
        ("--pairs tree", "without a loop"),
        ("--pairs top:5", "5 pairs"),
        ("--pairs all", "all 28 pairs"),
        ("--loss f1", "no pairs"),
        ("--loss f1 --pairs tree", "without a loop"),
        ("--pairs tree --rescaling slack", "without a loop"),
        ("--penalty quadratic", "no pairs"),
        ("--pairs all --rescaling slack", "all 28 pairs"),
        ("--solver one-slack", "no pairs"),
        ("--solver n-slack --pairs tree", "without a loop"),
        ("--solver perceptron", "no pairs"),
        ("--solver subgradient --max-passes 10", "no pairs"),
        ("--solver frank-wolfe --max-passes 30", "no pairs"),
    ] {
        let train = format!("train multilabel train.dat --quiet --c-per-example 0.1 --max-passes 60 {options}");
        let train = if options.contains("max-passes") { train.replace("--max-passes 60 ", "") } else { train };
        let train = if options.contains("perceptron") { train.replace("--c-per-example 0.1 ", "") } else { train };
        let text = folder.run(&format!("{train} -m m.mm --heldout test.dat")).good();
        assert!(text.contains("task         multilabel, 8 labels: 1 2 3 4 5 6 7 8"), "{text}");
        assert!(text.contains(pairs), "{options}: {pairs} in\n{text}");
        let figures = folder.run("evaluate m.mm test.dat --json").json();
        assert!(number(&figures, "micro_f1") > 0.6, "{options}: {figures}");
        assert!(folder.run("inspect m.mm").good().contains("strongest features of each label"));
    }
}

#[test]
fn figures_have_their_keys_and_agree_with_training() {
    let folder = with_sets();
    for loss in ["hamming", "f1"] {
        let summary = folder
            .run(&format!("train multilabel train.dat -m m.mm --loss {loss} --heldout test.dat --json --quiet"))
            .json();
        assert_eq!((summary["task"].as_str(), summary["certificate"].as_str()), (Some("multilabel"), Some("exact")));
        assert_eq!((summary["examples"].as_u64(), summary["searched"].as_u64()), (Some(350), Some(0)));
        assert_eq!(summary["dimension"].as_u64(), Some(30 * 8));
        let figures = folder.run("evaluate m.mm test.dat --json").json();
        for key in
            ["examples", "mean_loss", "accuracy", "hamming_loss", "micro_f1", "macro_f1", "exact_match", "proven"]
        {
            assert!(keys(&figures).contains(&key), "{key}");
        }
        assert_eq!(number(&figures, "accuracy"), number(&figures, "exact_match"));
        assert_eq!(number(&figures, "proven"), 1.0);
        // What training measures on the way is what `evaluate` finds.
        assert!((number(&figures, "mean_loss") - number(&summary, "heldout_loss")).abs() < 1e-9);
        if loss == "hamming" {
            assert!((number(&figures, "mean_loss") - 8.0 * number(&figures, "hamming_loss")).abs() < 1e-9);
        }
    }
    let text = folder.run("evaluate m.mm test.dat").good();
    for word in ["micro F1", "macro F1", "exact match", "Hamming loss", "mean loss", "label  true"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
}

#[test]
fn loops_make_the_certificate_an_estimate_with_a_bound() {
    let folder = with_sets();
    let train = "train multilabel train.dat -m m.mm --pairs all --quiet";
    let summary = folder.run(&format!("{train} --json")).json();
    assert_eq!((summary["certificate"].as_str(), summary["searched"].as_u64()), (Some("estimate"), Some(350)));
    assert!(number(&summary, "primal_at_most") >= number(&summary, "primal") - 1e-9, "{summary}");
    assert!(number(&summary, "primal_at_most") >= number(&summary, "dual"), "{summary}");
    let text = folder.run(train).good();
    assert!(text.contains("searched, not exact, for 350 of 350 examples, as the pairs of labels make loops"), "{text}");
    assert!(text.contains("the objective with the relaxation's loss, the most that it can be, is"), "{text}");
    let summary = folder.run(&format!("{train} --json --rescaling slack --max-passes 5")).json();
    assert_eq!(summary["certificate"].as_str(), Some("estimate"));
    assert!(number(&summary, "primal_at_most") >= number(&summary, "primal"), "{summary}");
    assert!(number(&summary, "primal_at_most") >= number(&summary, "dual"), "{summary}");
}

#[test]
fn a_line_for_each_example() {
    let folder = with_few();
    let found = folder.run("predict few.mm few.dat").good();
    assert_eq!(found, "sea,sky\nsea,sky\nsky\nwood\nsky,wood\n\n\n");
    // Labels in the input are not looked at, and need not be there.
    let bare: Vec<&str> = FEW.lines().map(|line| &line[line.find(['1', '2', '3', '4', '5']).unwrap()..]).collect();
    assert_eq!(folder.run_with("predict few.mm -", bare.join("\n")).good(), found);
    let scored = folder.run("predict few.mm few.dat --scores").good();
    assert_eq!(scored.lines().count(), 7);
    for (line, plain) in scored.lines().zip(found.lines()) {
        let pairs: Vec<(&str, &str)> = line.split(',').filter_map(|part| part.rsplit_once(':')).collect();
        assert_eq!(pairs.iter().map(|pair| pair.0).collect::<Vec<_>>().join(","), plain);
        assert!(pairs.iter().all(|pair| pair.1.parse::<f64>().unwrap() > 0.0), "{line}");
    }
    // A label must gain more than the threshold: sets shrink as it grows.
    let mut last = usize::MAX;
    for threshold in ["-1e6", "-1", "0", "0.5", "1e6"] {
        let found = folder.run(&format!("predict few.mm few.dat --threshold {threshold}")).good();
        let labels: usize = found.lines().filter(|line| !line.is_empty()).map(|line| line.split(',').count()).sum();
        assert!(labels <= last, "{threshold}");
        last = labels;
        match threshold {
            "-1e6" => assert_eq!(labels, 21),
            "1e6" => assert_eq!(labels, 0),
            _ => {}
        }
    }
    let [low, high] =
        ["0", "1e6"].map(|t| folder.run(&format!("evaluate few.mm few.dat --json --threshold {t}")).json());
    assert_eq!(number(&low, "exact_match"), 1.0);
    assert_eq!((number(&high, "exact_match"), number(&high, "predicted_labels")), (2.0 / 7.0, 0.0));
    // Any number of threads, the same bytes; and a file.
    for threads in [1, 3] {
        folder.run(&format!("predict few.mm few.dat --threads {threads} -o {threads}.txt")).good();
        assert_eq!(folder.text(&format!("{threads}.txt")), found);
    }
}

#[test]
fn sets_come_one_by_one() {
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
        to.write_all(b"1:1 2:0.5\n").unwrap();
        to.flush().unwrap();
        let mut bytes = [0; 100];
        let n = from.read(&mut bytes).unwrap();
        assert_eq!(&bytes[..n], b"sea,sky\n");
    }
    drop(to);
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_training_has_not_seen_is_counted() {
    let folder = with_few();
    folder.write("new.dat", "sea,sky,moon 1:1 2:0.5\nwood 3:1 9:1\nsun 4:1\n");
    let ran = folder.run("evaluate few.mm new.dat --json");
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (Some(0), "note: 1 of 3 examples have features beyond the 5 that the model knows; these were left out\n")
    );
    let figures: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((figures["unseen_labels"].as_u64(), number(&figures, "exact_match")), (Some(2), 1.0 / 3.0));
    assert!((number(&figures, "mean_loss") - 2.0 / 3.0).abs() < 1e-12, "{figures}");
    let ran = folder.run("evaluate few.mm new.dat");
    assert!(ran.stdout.contains("unseen labels  2, counted as missed"), "{}", ran.stdout);
    let ran = folder.run("train multilabel few.dat -m m.mm --quiet --json --c-per-example 10 --heldout new.dat");
    assert!(ran.stderr.contains("note: 1 of 3 held-out examples have features that the training file lacks"));
    assert!(ran.stderr.contains("note: 2 of 3 held-out examples have labels that the training file lacks"));
    let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!((number(&summary, "heldout_loss") - 2.0 / 3.0).abs() < 1e-12, "{summary}");
}

#[test]
fn bad_lines_are_named_and_nothing_is_written() {
    let folder = with_few();
    for (text, words) in [
        ("", "bad:1: no examples"),
        ("\n# nothing\n", "no examples"),
        (" 1:1\n 2:1\n", "bad:1: no example has a label"),
        ("a,b 1:1\na,,b 1:1\n", "bad:2: an empty label"),
        ("a,b 1:1\na, 1:1\n", "bad:2: an empty label"),
        ("a,b 1:1\nb,a,b 1:1\n", "bad:2: label 'b' appears twice"),
        ("1,2 1:1\n1,1.0 1:1\n", "bad:2: label '1' appears twice"),
        ("a,b 1:1\nb 0:1\n", "bad:2: feature index 0"),
        ("a,b 1:1\nb 2:1 1:1\n", "bad:2: feature index 1 after 2"),
        ("a,b 1:1\nb 2:nan\n", "bad:2: "),
        ("a,b 1:1\nb c 2:1\n", "bad:2: "),
    ] {
        folder.write("bad", text);
        folder.write("old.mm", "old");
        folder.run("train multilabel bad -m old.mm --quiet").bad(1, &[words]);
        assert_eq!(folder.read("old.mm"), b"old");
        // The model's labels are words: 1 and 1.0 are two that it does not know.
        if !text.starts_with(" 1:1") && !text.contains("1.0") {
            folder.run("evaluate few.mm bad").bad(1, &["bad:"]);
        }
    }
    folder.run("train multilabel missing -m old.mm").bad(1, &["missing"]);
    folder.run("evaluate few.mm few.mm").bad(1, &["few.mm:1: "]);
    // One wrong index must not take all memory.
    folder.write("bad", "a,b 1:1\nb 4294967294:1\n");
    let labels: Vec<String> = (0..3000).map(|k| format!("l{k}")).collect();
    folder.write("wide", format!("{} 1:1\na 4000000000:1\n", labels.join(",")));
    folder.run("train multilabel wide -m w.mm --quiet").bad(1, &["wide:2: training would take about", "is it right?"]);
}

#[test]
fn options_that_do_not_belong_are_refused() {
    let folder = with_few();
    folder.write("m.dat", "1 1:1\n2 2:1\n");
    folder.run("train multiclass m.dat -m m.mm --quiet").good();
    for (options, words) in [
        ("--pairs some", "must be none, tree, top:N or all"),
        ("--pairs top:0", "the N of top:N must be a whole number from 1"),
        ("--pairs top:x", "the N of top:N must be a whole number from 1"),
        ("--loss zero-one", "--loss: the task multilabel has the losses hamming and f1"),
        ("--loss absolute", "--loss: the task multilabel has the losses hamming and f1"),
        ("--loss f1 --pairs all", "--loss: f1 does not add up over labels"),
        ("--loss f1 --pairs top:9", "--loss: the F1 loss does not add up"),
        ("--kernel rbf:gamma=1", "--kernel: belongs to the tasks binary, multiclass, taxonomy and tag"),
        ("--low-rank 3", "--low-rank: belongs to kernels"),
        ("--solver sampled-linear", "--solver: sampled cuts are for kernels"),
        ("--solver mle", "--solver: mle needs a generative model"),
        ("--solver dual-coordinate --pairs tree", "label sets without pairs (Hamming loss"),
        ("--solver dual-coordinate --loss f1", "label sets without pairs (Hamming loss"),
        ("--class-weight balanced", "--class-weight: belongs to the tasks binary, multiclass and taxonomy"),
        ("--cost-matrix few.dat", "--cost-matrix: belongs to the tasks multiclass and taxonomy"),
        ("--positive sea", "--positive: belongs to the task binary"),
        ("--min-count 2", "--min-count: belongs to the tasks tag and parse"),
        ("--tag-cost sea=2", "--tag-cost: belongs to the task tag"),
        ("--terminals tags", "--terminals: belongs to the task parse"),
        ("--penalty quadratic --pairs all", "quadratic slack with margin rescaling"),
        ("--pears all", "unexpected argument '--pears'"),
    ] {
        // Enough pairs for a loop.
        let data = if options.contains("top:9") { "loop.dat" } else { "few.dat" };
        folder.write("loop.dat", "a,b,c 1:1\na 2:1\nb 3:1\nc 4:1\n");
        folder.run(&format!("train multilabel {data} -m x.mm --quiet {options}")).bad(2, &[words]);
    }
    folder.run("train multiclass m.dat -m x.mm --pairs all").bad(2, &["--pairs: belongs to the task multilabel"]);
    folder
        .run("train multiclass m.dat -m x.mm --loss f1")
        .bad(2, &["--loss: f1 belongs to the tasks parse and multilabel"]);
    folder.run("predict m.mm m.dat --threshold 1").bad(2, &["--threshold: belongs to models of label sets"]);
    folder.run("evaluate m.mm m.dat --threshold 1").bad(2, &["--threshold: belongs to models of label sets"]);
    folder.run("predict few.mm few.dat --threshold x").bad(2, &["must be a finite number"]);
    folder.run("predict few.mm few.dat --threshold inf").bad(2, &["must be a finite number"]);
    folder.run("predict few.mm few.dat --n-best 2").bad(2, &["--n-best: belongs to models of tags and trees"]);
    folder.run("evaluate few.mm few.dat --max-words 2").bad(2, &["--max-words: belongs to models of trees"]);
    folder.run("evaluate few.mm few.dat --compare m.mm").bad(1, &["m.mm: a model of the task multiclass"]);
    folder
        .run("generate multilabel --examples 3 --classes 4")
        .bad(2, &["--classes: belongs to the task multiclass; take --labels"]);
    folder.run("generate multilabel --examples 3 --height 4").bad(2, &["--height: belongs to the task graph"]);
    folder.run("generate multilabel --examples 3 --cardinality 99").bad(2, &["--cardinality: "]);
    folder
        .run("generate binary --examples 3 --labels 4")
        .bad(2, &["--labels: belongs to the tasks multilabel and graph"]);
    assert!(!folder.exists("x.mm"));
}

#[test]
fn threads_and_resuming_change_nothing() {
    let folder = with_sets();
    for pairs in ["none", "tree", "all"] {
        let train =
            format!("train multilabel train.dat --quiet --pairs {pairs} --c-per-example 0.1 --heldout test.dat");
        folder.run(&format!("{train} -m 1.mm --threads 1")).good();
        folder.run(&format!("{train} -m 2.mm --threads 2")).good();
        assert!(folder.read("1.mm") == folder.read("2.mm"), "{pairs}: another number of threads, another model");
        let saved = format!("{train} -m 3.mm --checkpoint c.state --checkpoint-every 0");
        folder.run(&format!("{saved} --max-passes 2")).good();
        assert!(folder.exists("c.state"));
        folder.run(&format!("{saved} --resume")).good();
        assert!(folder.read("1.mm") == folder.read("3.mm"), "{pairs}: resumed, another model");
        assert!(!folder.exists("c.state"));
    }
    let other = "train multilabel train.dat --quiet -m 3.mm --checkpoint c.state --checkpoint-every 0";
    folder.run(&format!("{other} --max-passes 2")).good();
    folder
        .run(&format!("{other} --resume --pairs tree"))
        .bad(2, &["--resume: c.state was made without --pairs, this run is with --pairs tree"]);
}

#[test]
fn training_starts_from_another_model() {
    let folder = with_sets();
    let train = "train multilabel train.dat --quiet --json --solver one-slack --c-per-example 0.1";
    let cold = folder.run(&format!("{train} -m all.mm --pairs tree")).json();
    let warm = folder.run(&format!("{train} -m warm.mm --pairs tree --warm-start all.mm")).json();
    assert!(number(&warm, "passes") <= number(&cold, "passes"), "{warm}\n{cold}");
    // Other pairs do; other labels or another constant do not.
    folder.run(&format!("{train} -m top.mm --pairs top:9 --warm-start all.mm")).json();
    folder
        .run(&format!("{train} -m x.mm --bias 1 --warm-start all.mm"))
        .bad(1, &["its constant feature (--bias) is 0"]);
    folder.write("few.dat", FEW);
    folder
        .run("train multilabel few.dat -m x.mm --quiet --warm-start all.mm")
        .bad(1, &["all.mm: cannot start from this model: its labels are 1 2 3", "those of the data sea sky wood"]);
    folder.write("m.dat", "1 1:1\n2 2:1\n");
    folder.run("train multiclass m.dat -m m.mm --quiet").good();
    folder
        .run("train multilabel few.dat -m x.mm --quiet --warm-start m.mm")
        .bad(1, &["m.mm: a model of the task multiclass, not of label sets"]);
}

/// The default for sets without pairs, label by label.
#[test]
fn label_by_label_begins_at_a_model_and_heeds_limits() {
    let folder = with_sets();
    let train = "train multilabel train.dat --quiet --json --bias 1 --c-per-example 10 --relative-gap 0.01";
    let cold = folder.run(&format!("{train} -m cold.mm")).json();
    folder.run(&format!("{train} -m best.mm --relative-gap 0.0001").replacen(" --relative-gap 0.01", "", 1)).json();
    let warm = folder.run(&format!("{train} -m warm.mm --warm-start best.mm")).json();
    assert_eq!((cold["solver"].as_str(), warm["status"].as_str()), (Some("dual-coordinate"), Some("converged")));
    assert!(number(&warm, "passes") < 0.5 * number(&cold, "passes"), "{warm}\n{cold}");
    for passes in [1.0, 4.0, 9.0] {
        let cut = folder.run(&format!("{train} -m cut.mm --max-passes {passes}")).json();
        assert_eq!(cut["status"], "max-passes");
        assert!(number(&cut, "passes") <= passes + 2.0, "{cut}");
    }
}

/// An example with neither labels nor features is a line of a blank; an empty line is nothing.
#[test]
fn a_blank_is_an_example() {
    let folder = Folder::new();
    folder.write("few.dat", format!("{FEW} \n\n"));
    let summary = folder.run("train multilabel few.dat -m few.mm --quiet --json --c-per-example 10").json();
    assert_eq!(number(&summary, "examples"), 8.0);
    assert_eq!(folder.run("predict few.mm few.dat").good().lines().count(), 8);
    assert_eq!(number(&folder.run("evaluate few.mm few.dat --json").json(), "examples"), 8.0);
    // To a model of classes it is no example.
    folder.write("m.dat", "1 1:1\n \n2 2:1\n\n");
    assert_eq!(number(&folder.run("train multiclass m.dat -m m.mm --quiet --json").json(), "examples"), 2.0);
    assert_eq!(folder.run("predict m.mm m.dat").good().lines().count(), 2);
}

#[test]
fn c_is_chosen_by_folds_and_by_held_out_examples() {
    let folder = with_sets();
    let cv =
        folder.run("train multilabel train.dat -m m.mm --folds 3 --c-path-per-example 0.001,0.1 --json --quiet").json();
    assert_eq!((cv["folds"].as_u64(), cv["cv"].as_array().unwrap().len()), (Some(3), 2));
    let path = folder
        .run("train multilabel train.dat -m m.mm --heldout test.dat --c-path auto --keep-best --json --quiet --max-passes 20")
        .json();
    let rungs = path["path"].as_array().unwrap();
    let least = rungs.iter().map(|rung| number(rung, "heldout_loss")).fold(f64::INFINITY, f64::min);
    assert_eq!(number(&path, "heldout_loss"), least);
}

#[test]
fn a_model_is_inspected() {
    let folder = with_few();
    let text = folder.run("inspect few.mm --top 2").good();
    for word in [
        "task         multilabel, 3 labels: sea sky wood",
        "loss hamming",
        "INDEX:WEIGHT",
        "strongest pairs",
        "sea sky",
    ] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    let contents = folder.run("inspect few.mm --top 2 --json").json();
    assert_eq!((contents["features"].as_u64(), contents["pairs"].as_u64()), (Some(5), Some(2)));
    assert_eq!(contents["strongest"].as_array().unwrap().len(), 3);
    assert_eq!(contents["strongest"][0]["weights"][0]["feature"].as_u64(), Some(1));
    let pairs = contents["strongest_pairs"].as_array().unwrap();
    assert!(!pairs.is_empty() && pairs.iter().all(|pair| pair["labels"].as_array().unwrap().len() == 2));
    assert!(!folder.run("inspect few.mm --top 0").good().contains("strongest"));
}

#[test]
fn costs_of_examples_weigh_them() {
    let folder = Folder::new();
    folder.write("plain.dat", "a 1:1\na 1:1\na 1:1\nb 1:1\n");
    folder.write("heavy.dat", "a 1:1\na 1:1\na 1:1\nb cost:9 1:1\n");
    for (data, label) in [("plain.dat", "a\n"), ("heavy.dat", "b\n")] {
        folder.run(&format!("train multilabel {data} -m m.mm --quiet")).good();
        assert_eq!(folder.run_with("predict m.mm -", "1:1\n").good(), label);
    }
}

#[test]
fn sets_are_generated() {
    let folder = Folder::new();
    let generate = "generate multilabel --examples 40 --seed 3 --labels 6 --features 9 --cardinality 1.5 --correlation 0.5 --noise 0.2";
    let text = folder.run(generate).good();
    assert_eq!(text.lines().count(), 40);
    assert_eq!(folder.run(generate).good(), text);
    folder.write("s.dat", &text);
    assert_eq!(folder.run("train multilabel s.dat -m m.mm --quiet --json").json()["examples"].as_u64(), Some(40));
}

#[test]
fn two_models_are_compared() {
    let folder = with_sets();
    folder.run("train multilabel train.dat -m none.mm --quiet --c-per-example 0.1").good();
    folder.run("train multilabel train.dat -m tree.mm --quiet --c-per-example 0.1 --pairs tree").good();
    let figures = folder.run("evaluate tree.mm test.dat --compare none.mm --json").json();
    let counts = ["both", "only_first", "only_second", "neither"].map(|key| figures["compare"][key].as_u64().unwrap());
    assert_eq!(counts.iter().sum::<u64>(), 150);
    let text = folder.run("evaluate tree.mm test.dat --compare none.mm").good();
    for word in ["micro F1", "exact match", "examples that both have right", "McNemar"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
}
