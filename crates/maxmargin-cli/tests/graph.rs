//! The task `graph` as a user sees it.

mod common;

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use common::{Folder, PROGRAM, keys, number};

/// A folder with `train.jsonl` and `test.jsonl`, small grids.
fn with_grids() -> Folder {
    let folder = Folder::new();
    let sizes = "--height 6 --width 6 --labels 3 --features 4 --noise 1";
    folder.run(&format!("generate graph --examples 40 --seed 1 {sizes} -o all.jsonl")).good();
    let all = folder.text("all.jsonl");
    let lines: Vec<&str> = all.lines().collect();
    folder.write("train.jsonl", lines[..25].join("\n") + "\n");
    folder.write("test.jsonl", lines[25..].join("\n") + "\n");
    folder
}

/// A folder with a few chains, `few.jsonl`, and a model of them.
fn with_few() -> Folder {
    let folder = Folder::new();
    folder.write("few.jsonl", FEW);
    folder.run("train graph few.jsonl -m few.mm --quiet --c-per-example 10").good();
    folder
}

/// Labels go on, and the feature of the first says which.
const FEW: &str = r#"{"domain": 2, "labels": [0, 0, 0], "x": [[1, 0], [0, 0], [0, 0]], "factors": {"next": [[0, 1], [1, 2]]}}
{"domain": 2, "labels": [1, 1, 1], "x": [[0, 1], [0, 0], [0, 0]], "factors": {"next": [[0, 1], [1, 2]]}}
{"domain": [2, 2], "labels": [1, 1], "x": [{"1": 1}, {}], "factors": {"next": [[0, 1]]}}
{"domain": [2, 3], "labels": [0, 2], "x": [[1, 0], [1, 1]]}
{"domain": [3, 3], "labels": [1, 0], "x": [[0, 1], [1, 0]], "factors": {"far": [[0, 1]]}, "factor_x": {"far": [[1, 0.5]]}}
"#;

fn unlabelled(text: &str) -> String {
    let strip = |line: &str| {
        let mut graph: serde_json::Value = serde_json::from_str(line).unwrap();
        graph.as_object_mut().unwrap().remove("labels");
        graph.to_string()
    };
    text.lines().map(strip).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn grids_are_learned() {
    let folder = with_grids();
    let train = "train graph train.jsonl -m m.mm --quiet --heldout test.jsonl";
    let summary = folder.run(&format!("{train} --json")).json();
    assert_eq!((summary["task"].as_str(), summary["certificate"].as_str()), (Some("graph"), Some("estimate")));
    assert_eq!((summary["examples"].as_u64(), summary["searched"].as_u64()), (Some(25), Some(25)));
    assert_eq!(summary["dimension"].as_u64(), Some(4 * 3 + 2 * 9));
    assert!(number(&summary, "primal_at_most") >= number(&summary, "primal") - 1e-9, "{summary}");
    let figures = folder.run("evaluate m.mm test.jsonl --json").json();
    for key in ["examples", "mean_loss", "accuracy", "variable_accuracy", "exact_match", "mean_iou", "proven"] {
        assert!(keys(&figures).contains(&key), "{key}");
    }
    assert!(number(&figures, "variable_accuracy") > 0.7, "{figures}");
    assert_eq!(number(&figures, "accuracy"), number(&figures, "variable_accuracy"));
    // What training measures on the way is what `evaluate` finds.
    assert!((number(&figures, "mean_loss") - number(&summary, "heldout_loss")).abs() < 1e-9);
    assert!((number(&figures, "mean_loss") - 36.0 * (1.0 - number(&figures, "accuracy"))).abs() < 1e-9);
    assert!((0.0..=1.0).contains(&number(&figures, "proven")));
    let text = folder.run(train).good();
    for word in [
        "task         graph, variables of 3 labels",
        "25, 4 features of a variable, factors down (3 x 3), right (3 x 3)",
        "estimate: the oracle is approximate",
        "searched, not exact, for 25 of 25 graphs, whose factors make loops: the certificate is an estimate",
        "the objective with the relaxation's loss, the most that it can be, is",
    ] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    let text = folder.run("evaluate m.mm test.jsonl").good();
    for word in ["variable accuracy", "exact match", "mean IoU", "mean loss", "proven", "label  true"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
}

/// Multipliers that go all the way swing for ever here; steps towards decoded outputs, and shorter ones by blocks, do not.
#[test]
fn loops_are_trained_factor_by_factor() {
    let folder = Folder::new();
    folder.run("generate graph --examples 6 --height 6 --width 6 --labels 3 --seed 2 -o g.jsonl").good();
    let at_most = |options: &str| {
        let summary = folder.run(&format!("train graph g.jsonl -m m.mm --quiet --json {options}")).json();
        number(&summary, "primal_at_most")
    };
    let best = at_most("--solver bcfw");
    for options in ["--max-passes 2000", "--inner blocks --max-passes 3000"] {
        let found = at_most(&format!("--solver gdmm {options}"));
        assert!(found <= 1.2 * best, "{options}: {found}, bcfw {best}");
    }
}

#[test]
fn neighbours_help() {
    let folder = with_grids();
    folder.run("train graph train.jsonl -m grid.mm --quiet").good();
    for part in ["train", "test"] {
        let strip = |line: &str| {
            let mut graph: serde_json::Value = serde_json::from_str(line).unwrap();
            graph.as_object_mut().unwrap().remove("factors");
            graph.to_string()
        };
        let lines: Vec<String> = folder.text(&format!("{part}.jsonl")).lines().map(strip).collect();
        folder.write(&format!("{part}-alone.jsonl"), lines.join("\n"));
    }
    let summary = folder.run("train graph train-alone.jsonl -m alone.mm --quiet --json").json();
    assert_eq!((summary["certificate"].as_str(), summary["searched"].as_u64()), (Some("exact"), Some(0)));
    let [grid, alone] = [("grid.mm", "test.jsonl"), ("alone.mm", "test-alone.jsonl")]
        .map(|(model, data)| number(&folder.run(&format!("evaluate {model} {data} --json")).json(), "accuracy"));
    assert!(grid > alone, "{grid} with neighbours, {alone} without");
}

#[test]
fn trees_are_exact_with_every_solver() {
    let folder = Folder::new();
    folder
        .run("generate graph --examples 20 --seed 2 --height 1 --width 8 --labels 3 --features 3 --noise 0.5 -o chains")
        .good();
    for options in [
        "",
        "--solver one-slack",
        "--solver n-slack",
        "--solver subgradient --max-passes 20",
        "--solver frank-wolfe --max-passes 30",
        "--c-path-per-example 0.01,0.1",
        "--folds 2",
        "--loss hamming --loss-scale 2",
        "--rescaling slack",
        "--penalty quadratic --solver n-slack",
        "--rescaling slack --penalty quadratic --solver one-slack",
    ] {
        let summary = folder.run(&format!("train graph chains -m m.mm --quiet --json {options}")).json();
        assert_eq!(
            (summary["certificate"].as_str(), summary["searched"].as_u64()),
            (Some("exact"), Some(0)),
            "{options}"
        );
        let figures = folder.run("evaluate m.mm chains --json").json();
        assert!(number(&figures, "accuracy") > 0.7 && number(&figures, "proven") == 1.0, "{options}: {figures}");
    }
}

#[test]
fn loops_with_slack_rescaling_have_an_upper_bound() {
    let folder = with_grids();
    let train = "train graph train.jsonl -m m.mm --quiet --rescaling slack --max-passes 5";
    let summary = folder.run(&format!("{train} --json")).json();
    assert_eq!(summary["certificate"].as_str(), Some("estimate"), "{summary}");
    assert!(number(&summary, "primal_at_most") >= number(&summary, "primal"), "{summary}");
    assert!(number(&summary, "primal_at_most") >= number(&summary, "dual"), "{summary}");
    let text = folder.run(train).good();
    assert!(text.contains("whose factors make loops, or which are too large to count errors"), "{text}");
    assert!(text.contains("; the objective is at most "), "{text}");
    let quadratic = folder.run("train graph train.jsonl -m m.mm --quiet --penalty quadratic");
    quadratic.bad(2, &["quadratic slack with margin rescaling"]);
}

#[test]
fn a_line_for_each_graph() {
    let folder = with_few();
    let found = folder.run("predict few.mm few.jsonl").good();
    assert_eq!(found, "[0,0,0]\n[1,1,1]\n[1,1]\n[0,2]\n[1,0]\n");
    // Labels in the input are not looked at, and need not be there.
    assert_eq!(folder.run_with("predict few.mm -", unlabelled(FEW)).good(), found);
    let scored = folder.run("predict few.mm few.jsonl --scores").good();
    for (line, plain) in scored.lines().zip(found.lines()) {
        let [labels, score, bound] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        assert_eq!(labels, plain);
        let [score, bound] = [score, bound].map(|number| number.parse::<f64>().unwrap());
        assert!(score > 0.0 && bound >= score, "{line}");
    }
    for threads in [1, 3] {
        folder.run(&format!("predict few.mm few.jsonl --threads {threads} -o {threads}.txt")).good();
        assert_eq!(folder.text(&format!("{threads}.txt")), found);
    }
}

#[test]
fn graphs_come_one_by_one() {
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
        to.write_all(b"{\"domain\": 2, \"x\": [[0, 1], [0, 0]], \"factors\": {\"next\": [[0, 1]]}}\n").unwrap();
        to.flush().unwrap();
        let mut bytes = [0; 100];
        let n = from.read(&mut bytes).unwrap();
        assert_eq!(&bytes[..n], b"[1,1]\n");
    }
    drop(to);
    assert!(child.wait().unwrap().success());
}

#[test]
fn bad_lines_are_named_and_nothing_is_written() {
    let folder = with_few();
    let good = FEW.lines().next().unwrap();
    for (line, words) in [
        ("", "bad:1: no graphs"),
        ("{\"domain\": 2", "bad:2: "),
        ("[1, 2]", "bad:2: "),
        ("{\"domain\": 2, \"labels\": [0, 2], \"x\": [[1], [1]]}", "bad:2: "),
        ("{\"domain\": 2, \"labels\": [0], \"x\": [[1], [1]]}", "bad:2: "),
        ("{\"domain\": 2, \"x\": [[1], [1]]}", "bad:2: "),
        ("{\"domain\": 0, \"labels\": [0], \"x\": [[1]]}", "bad:2: "),
        ("{\"domain\": 2, \"labels\": [0, 1], \"x\": [[1], [1e999]]}", "bad:2: "),
        ("{\"domain\": 2, \"labels\": [0, 1], \"x\": [[1], [1]], \"factors\": {\"next\": [[0, 2]]}}", "bad:2: "),
        ("{\"domain\": 2, \"labels\": [0, 1], \"x\": [[1], [1]], \"factors\": {\"next\": [[0, 0]]}}", "bad:2: "),
        ("{\"domain\": [2, 3], \"labels\": [0, 1], \"x\": [[1], [1]], \"factors\": {\"next\": [[0, 1]]}}", "bad:2: "),
        ("{\"domian\": 2, \"labels\": [0, 1], \"x\": [[1], [1]]}", "bad:2: "),
    ] {
        folder.write("bad", if line.is_empty() { String::new() } else { format!("{good}\n{line}\n") });
        folder.write("old.mm", "old");
        folder.run("train graph bad -m old.mm --quiet").bad(1, &[words]);
        assert_eq!(folder.read("old.mm"), b"old");
        folder.run("evaluate few.mm bad").bad(1, &[words]);
    }
    // What the training data lack is told.
    let strange = r#"{"domain": 2, "labels": [0, 0], "x": [[1], [1]], "factors": {"side": [[0, 1]]}}"#;
    folder.write("bad", strange);
    folder.run("evaluate few.mm bad").bad(1, &["bad:1: template 'side' is unknown"]);
    folder.write("bad", r#"{"domain": 7, "x": [[1]]}"#);
    let ran = folder.run("predict few.mm bad");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("bad:1: variable 0 has 7 labels"), "{}", ran.stderr);
}

#[test]
fn options_that_do_not_belong_are_refused() {
    let folder = with_few();
    for (options, words) in [
        ("--loss zero-one", "--loss: the task graph has the loss hamming only"),
        ("--loss f1", "--loss: f1 belongs to the tasks parse and multilabel"),
        ("--pairs tree", "--pairs: belongs to the task multilabel"),
        ("--bias 1", "--bias: belongs to the tasks binary, multiclass, taxonomy and multilabel"),
        ("--kernel linear", "--kernel: belongs to the tasks binary, multiclass, taxonomy and tag"),
        ("--low-rank 3", "--low-rank: belongs to kernels"),
        ("--solver sampled-constant", "--solver: sampled cuts are for kernels"),
        ("--solver mle", "--solver: mle needs a generative model"),
        ("--class-weight 1=2", "--class-weight: belongs to the tasks binary, multiclass and taxonomy"),
        ("--cost-matrix few.jsonl", "--cost-matrix: belongs to the tasks multiclass and taxonomy"),
        ("--min-count 2", "--min-count: belongs to the tasks tag and parse"),
        ("--order 2", "--order: belongs to the task tag"),
        ("--hieght 3", "unexpected argument '--hieght'"),
    ] {
        folder.run(&format!("train graph few.jsonl -m x.mm --quiet {options}")).bad(2, &[words]);
    }
    folder.run("predict few.mm few.jsonl --threshold 1").bad(2, &["--threshold: belongs to models of label sets"]);
    folder.run("predict few.mm few.jsonl --margins").bad(2, &["--margins: belongs to models of tags"]);
    folder.run("generate graph --examples 3 --nonzeros 2").bad(2, &["--nonzeros: belongs to the tasks"]);
    folder
        .run("generate graph --examples 3 --cardinality 2")
        .bad(2, &["--cardinality: belongs to the task multilabel"]);
    folder.run("generate graph --examples 3 --labels 1").bad(2, &["--labels: must be from 2"]);
    assert!(!folder.exists("x.mm"));
}

#[test]
fn threads_and_resuming_change_nothing() {
    let folder = with_grids();
    let train = "train graph train.jsonl --quiet --heldout test.jsonl --keep-best --c-per-example 0.1";
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
fn training_starts_from_another_model() {
    let folder = with_grids();
    let train = "train graph train.jsonl --quiet --json --solver one-slack --c-per-example 0.1";
    let cold = folder.run(&format!("{train} -m all.mm")).json();
    let warm = folder.run(&format!("{train} -m warm.mm --warm-start all.mm")).json();
    assert!(number(&warm, "passes") <= number(&cold, "passes"), "{warm}\n{cold}");
    folder.write("few.jsonl", FEW);
    // Domains of 3 labels are in both; with none in common there is nothing to start from.
    folder.run("train graph few.jsonl -m part.mm --quiet --warm-start all.mm").good();
    folder.write("other.jsonl", "{\"domain\": 7, \"labels\": [0, 6], \"x\": [[1], [0, 1]]}\n");
    folder.run("train graph other.jsonl -m x.mm --quiet --warm-start all.mm").bad(
        1,
        &["all.mm: cannot start from this model: it is for variables of 3 labels", "variables of 7 labels, no factors"],
    );
}

#[test]
fn a_model_is_inspected() {
    let folder = with_few();
    let text = folder.run("inspect few.mm --top 3").good();
    for word in [
        "task         graph, variables of 2 or 3 labels",
        "factors far (3 x 3, 2 features), next (2 x 2)",
        "strongest features of variables with 2 labels",
        "template next (rows: label of the first variable",
        "template far, strongest weights",
    ] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    let contents = folder.run("inspect few.mm --top 3 --json").json();
    assert_eq!(contents["templates"][1]["name"], "next");
    assert_eq!(contents["strongest"].as_array().unwrap().len(), 2);
    let table = &contents["tables"][1];
    assert_eq!((table["template"].as_str(), table["weights"].as_array().unwrap().len()), (Some("next"), 3));
    assert_eq!(table["weights"][0]["labels"].as_array().unwrap().len(), 2);
    // The same label goes on: its weight is above the others.
    let weight = |labels: [u64; 2]| {
        let all = folder.run("inspect few.mm --top 99 --json").json();
        let weights = all["tables"][1]["weights"].as_array().unwrap().clone();
        let is_it = |w: &&serde_json::Value| w["labels"] == serde_json::json!(labels);
        weights.iter().find(is_it).map_or(0.0, |w| number(w, "weight"))
    };
    assert!(weight([0, 0]) > weight([0, 1]) && weight([1, 1]) > weight([1, 0]));
    assert!(!folder.run("inspect few.mm --top 0").good().contains("strongest"));
}

#[test]
fn grids_are_generated() {
    let folder = Folder::new();
    let generate = "generate graph --examples 5 --seed 3 --height 4 --width 5 --labels 3 --features 2";
    let text = folder.run(generate).good();
    assert_eq!(text.lines().count(), 5);
    assert_eq!(folder.run(generate).good(), text);
    let graph: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(graph["labels"].as_array().unwrap().len(), 20);
    assert_eq!(graph["factors"]["down"].as_array().unwrap().len(), 15);
}

#[test]
fn two_models_are_compared() {
    let folder = with_grids();
    folder.run("train graph train.jsonl -m a.mm --quiet --max-passes 3").good();
    folder.run("train graph train.jsonl -m b.mm --quiet --solver perceptron --max-passes 3").good();
    let figures = folder.run("evaluate a.mm test.jsonl --compare b.mm --json").json();
    let counts = ["both", "only_first", "only_second", "neither"].map(|key| figures["compare"][key].as_u64().unwrap());
    assert_eq!(counts.iter().sum::<u64>(), 15);
    let text = folder.run("evaluate a.mm test.jsonl --compare b.mm").good();
    assert!(text.contains("graphs that both have right") && text.contains("mean IoU"), "{text}");
}
