//! The happy path of every command, for both tasks.

mod common;

use std::io::Write;

use common::{Folder, keys, number};

const SUMMARY: [&str; 29] = [
    "task",
    "solver",
    "status",
    "certificate",
    "examples",
    "dimension",
    "c",
    "epsilon",
    "primal",
    "primal_error",
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
    "solver_reason",
    "heldout_loss",
    "heldout_best",
    "path",
    "folds",
    "cv",
];

fn sorted<'k>(keys: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let mut keys: Vec<&str> = keys.into_iter().collect();
    keys.sort_unstable();
    keys
}

#[test]
fn help_and_version_say_what_there_is() {
    let folder = Folder::new();
    let help = folder.run("--help").good();
    for command in ["train", "predict", "evaluate", "inspect", "generate", "Examples:"] {
        assert!(help.contains(command), "{command}");
    }
    assert!(folder.run("--version").good().starts_with("maxmargin 0."));
    let help = folder.run("train --help").good();
    for word in ["Problem:", "Solver:", "Stopping:", "Output:", "Examples:", "[default: auto"] {
        assert!(help.contains(word), "{word}");
    }
    assert_eq!(folder.run("").code, Some(2));
}

#[test]
fn the_summary_has_the_agreed_keys() {
    let folder = Folder::with_data();
    for (task, file, examples, dimension) in [("binary", "b.dat", 300.0, 20.0), ("multiclass", "m.dat", 400.0, 80.0)] {
        let summary = folder.run(&format!("train {task} {file} -m {task}.mm --json")).json();
        assert_eq!(sorted(keys(&summary)), sorted(SUMMARY));
        assert_eq!(summary["task"], task);
        assert_eq!(summary["solver"], "dual-coordinate");
        assert_eq!(summary["status"], "converged");
        assert_eq!(summary["certificate"], "exact");
        assert_eq!(number(&summary, "examples"), examples);
        assert_eq!(number(&summary, "dimension"), dimension);
        assert_eq!(number(&summary, "c"), examples);
        assert!((number(&summary, "epsilon") - 0.01).abs() < 1e-12);
        assert!(number(&summary, "gap") <= 0.01 * examples);
        assert!(number(&summary, "dual") <= number(&summary, "primal"));
    }
    folder.holds_only(&["b.dat", "binary.mm", "m.dat", "multiclass.mm"]);
}

#[test]
fn every_solver_penalty_and_rescaling_finds_one_optimum() {
    let folder = Folder::with_data();
    for rescaling in ["margin", "slack"] {
        for penalty in ["linear", "quadratic"] {
            let mut solvers = vec![
                "one-slack",
                "group-slack --groups 7",
                "n-slack",
                "dual-coordinate",
                "n-slack --update own",
                "n-slack --batch 10",
            ];
            solvers.extend(["one-slack --cache 3", "one-slack --cache off --line-search off"]);
            if penalty == "linear" {
                solvers.extend(["bcfw", "frank-wolfe --relative-gap 0.05", "subgradient --relative-gap 0.05"]);
            }
            let found: Vec<(f64, f64)> = solvers
                .iter()
                .map(|solver| {
                    let stop = if solver.contains("gap") { "" } else { "--relative-gap 0.001" };
                    let words = format!(
                        "train multiclass m.dat -m m.mm --c-per-example 0.1 --json --solver {solver} {stop} \
                         --penalty {penalty} --rescaling {rescaling}"
                    );
                    let summary = folder.run(&words).json();
                    assert_eq!(summary["status"], "converged", "{words}");
                    (number(&summary, "dual"), number(&summary, "primal"))
                })
                .collect();
            // Every lower bound is below every value.
            let dual = found.iter().map(|f| f.0).fold(f64::NEG_INFINITY, f64::max);
            let primal = found.iter().map(|f| f.1).fold(f64::INFINITY, f64::min);
            assert!(dual <= primal * (1.0 + 1e-9), "{found:?}");
        }
    }
}

#[test]
fn a_solver_without_a_bound_says_so() {
    let folder = Folder::with_data();
    let words = "train multiclass m.dat -m m.mm --solver perceptron --max-passes 3";
    assert!(folder.run(words).good().contains("certificate  none: "));
    let summary = folder.run(&format!("{words} --json")).json();
    assert_eq!(summary["certificate"], "none");
    assert!(summary["dual"].is_null() && summary["gap"].is_null());
    assert!(number(&summary, "primal") > 0.0);
    assert!(folder.run("inspect m.mm").good().contains("none: "));
    folder.run("evaluate m.mm m.dat").good();
}

#[test]
fn the_table_tells_what_was_done() {
    let folder = Folder::with_data();
    let table = folder.run("train multiclass m.dat -m m.mm --bias 1").good();
    for word in ["4 classes: 1 2 3 4", "20 features and a constant one of 1", "converged", "exact: the minimum", "m.mm"]
    {
        assert!(table.contains(word), "{word} in\n{table}");
    }
}

#[test]
fn predictions_are_those_that_evaluation_counts() {
    let folder = Folder::with_data();
    for (task, file) in [("binary", "b.dat"), ("multiclass", "m.dat")] {
        folder.run(&format!("train {task} {file} -m model.mm --bias 1")).good();
        let labels = folder.run(&format!("predict model.mm {file}")).good();
        folder.run(&format!("predict model.mm {file} -o labels.txt --threads 1")).good();
        assert_eq!(folder.text("labels.txt"), labels);
        let text = folder.text(file);
        let truth = text.lines().map(|line| line.split(' ').next().unwrap());
        let right = labels.lines().zip(truth).filter(|(a, b)| a == b).count();
        let figures = folder.run(&format!("evaluate model.mm {file} --json")).json();
        let wanted = ["accuracy", "classes", "confusion", "examples", "mean_loss", "unseen_labels"];
        assert_eq!(sorted(keys(&figures)), wanted);
        let examples = labels.lines().count() as f64;
        assert_eq!(number(&figures, "examples"), examples);
        assert!((number(&figures, "accuracy") - right as f64 / examples).abs() < 1e-12);
        assert!((number(&figures, "mean_loss") - (1.0 - right as f64 / examples)).abs() < 1e-12);
        let table = folder.run(&format!("evaluate model.mm {file}")).good();
        for word in ["accuracy", "mean loss", "precision", "recall", "F1", "confusion (rows: truth"] {
            assert!(table.contains(word), "{word} in\n{table}");
        }
    }
}

#[test]
fn scores_stand_behind_the_label() {
    let folder = Folder::with_data();
    folder.run("train binary b.dat -m b.mm").good();
    folder.run("train multiclass m.dat -m m.mm").good();
    for line in folder.run("predict b.mm b.dat --scores").good().lines() {
        let (label, score) = line.split_once('\t').unwrap();
        assert_eq!(label == "+1", score.parse::<f64>().unwrap() > 0.0, "{line}");
    }
    for line in folder.run("predict m.mm m.dat --scores").good().lines() {
        let (label, scores) = line.split_once('\t').unwrap();
        let scores: Vec<(&str, f64)> = scores
            .split(' ')
            .map(|pair| pair.split_once(':').unwrap())
            .map(|(word, score)| (word, score.parse().unwrap()))
            .collect();
        assert_eq!(scores.len(), 4);
        let best = scores.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert_eq!(best.0, label, "{line}");
    }
}

#[test]
fn inspect_shows_the_model() {
    let folder = Folder::new();
    folder.write("t.dat", "a 1:3 2:-1\nb 1:-3 2:1\na 1:2\nb 1:-2\n");
    folder.run("train multiclass t.dat -m t.mm --bias 2 -c 7").good();
    let text = folder.run("inspect t.mm --top 1").good();
    for word in [
        "multiclass, 2 classes: a b",
        "C = 7",
        "constant one of 2",
        "dual-coordinate",
        "INDEX:WEIGHT",
        "a  1:+",
        "b  1:-",
    ] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    let contents = folder.run("inspect t.mm --top 3 --json").json();
    assert_eq!(contents["labels"], serde_json::json!(["a", "b"]));
    assert_eq!(number(&contents, "c"), 7.0);
    assert_eq!(contents["training"]["status"], "converged");
    assert!(contents["training"]["dual"].is_number());
    assert_eq!(contents["strongest"][0]["weights"][0]["feature"], 1);
    folder.write("b.dat", "1 1:1\n1 1:2\n0 1:2\n");
    folder.run("train binary b.dat -m b.mm --bias 1").good();
    let text = folder.run("inspect b.mm").good();
    assert!(text.contains("positive weights speak for 1, negative ones for 0"), "{text}");
    let features: Vec<_> = text.lines().rev().take(2).map(|line| line.split(' ').next().unwrap()).collect();
    assert!(features.contains(&"bias") && features.contains(&"1"), "{text}");
}

#[test]
fn a_board_is_generated() {
    let folder = Folder::new();
    let words = "generate binary --kind checkers --examples 50 --noise 0.02 --seed";
    let board = folder.run(&format!("{words} 1")).good();
    assert_eq!(board.lines().count(), 50);
    assert_ne!(board, folder.run(&format!("{words} 2")).good());
    let plain = "generate binary --examples 50 --seed 1";
    assert_eq!(folder.run(plain).good(), folder.run(&format!("{plain} --kind hyperplane")).good());
    folder.run("generate multiclass --kind checkers --examples 5").bad(2, &["--kind: "]);
    folder.run("generate tag --kind hyperplane --examples 5").bad(2, &["--kind: "]);
    folder.run("generate binary --kind checkers --examples 5 --features 3").bad(2, &["--features: checkers"]);
    folder.run("generate binary --kind checkers --examples 5 --nonzeros 1").bad(2, &["--nonzeros: checkers"]);
    folder.run("generate binary --kind checkers --examples 5 --noise -1").bad(2, &["noise: "]);
}

#[test]
fn generated_data_depend_on_the_seed_alone() {
    let folder = Folder::new();
    for task in ["binary", "multiclass"] {
        let words = format!("generate {task} --examples 20 --features 8 --nonzeros 3 --noise 0.2 --seed");
        let first = folder.run(&format!("{words} 5")).good();
        assert_eq!(first, folder.run(&format!("{words} 5")).good());
        assert_ne!(first, folder.run(&format!("{words} 6")).good());
        assert_eq!(first.lines().count(), 20);
        assert!(first.lines().all(|line| line.split(' ').count() == 4));
    }
}

#[test]
fn packed_data_give_the_same_model() {
    let folder = Folder::with_data();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&folder.read("m.dat")).unwrap();
    folder.write("m.dat.gz", gz.finish().unwrap());
    folder.run("train multiclass m.dat -m plain.mm").good();
    folder.run("train multiclass m.dat.gz -m packed.mm").good();
    assert_eq!(folder.read("plain.mm"), folder.read("packed.mm"));
    let labels = folder.run("predict plain.mm m.dat").good();
    assert_eq!(labels, folder.run("predict plain.mm m.dat.gz").good());
    assert_eq!(labels, folder.run_with("predict plain.mm -", folder.read("m.dat.gz")).good());
    folder.run_with("train multiclass - -m stdin.mm", folder.read("m.dat")).good();
    assert_eq!(folder.read("plain.mm"), folder.read("stdin.mm"));
}

#[test]
fn models_do_not_depend_on_threads() {
    let folder = Folder::with_data();
    for solver in ["one-slack", "group-slack --groups 3", "n-slack", "frank-wolfe --max-passes 50"] {
        for (task, file) in [("binary", "b.dat"), ("multiclass", "m.dat")] {
            let words = format!("train {task} {file} --solver {solver} --c-per-example 0.5");
            folder.run(&format!("{words} -m 1.mm --threads 1")).good();
            folder.run(&format!("{words} -m 2.mm --threads 2")).good();
            assert!(folder.read("1.mm") == folder.read("2.mm"), "{words}");
        }
    }
}

#[test]
fn labels_may_be_missing_in_what_is_predicted() {
    let folder = Folder::with_data();
    folder.run("train multiclass m.dat -m m.mm").good();
    let bare: String = folder.text("m.dat").lines().map(|l| l.split_once(' ').unwrap().1.to_owned() + "\n").collect();
    folder.write("bare.dat", bare);
    assert_eq!(folder.run("predict m.mm bare.dat").good(), folder.run("predict m.mm m.dat").good());
}

#[test]
fn one_label_against_the_rest_is_a_binary_problem() {
    let folder = Folder::with_data();
    folder.run("train binary m.dat -m m.mm --positive 2 --class-weight balanced --bias 1").good();
    let labels = folder.run("predict m.mm m.dat").good();
    assert!(labels.lines().all(|label| ["2", "not-2"].contains(&label)));
    let figures = folder.run("evaluate m.mm m.dat --json").json();
    assert_eq!(number(&figures, "unseen_labels"), 0.0);
    assert!(number(&figures, "accuracy") > 0.8);
}

#[test]
fn losses_and_weights_reach_the_problem() {
    let folder = Folder::with_data();
    let primal = |options: &str| {
        let summary =
            folder.run(&format!("train multiclass m.dat -m m.mm --json --relative-gap 1e-4 {options}")).json();
        number(&summary, "primal")
    };
    let near = |a: f64, b: f64| assert!((a - b).abs() <= 3e-4 * b, "{a} {b}");
    let plain = primal("");
    near(primal("--c-per-example 1"), plain);
    near(primal("-c 400"), plain);
    near(primal("--class-weight 1=1 --class-weight 2=1"), plain);
    near(primal("--class-weight 1=2 --class-weight 2=2 --class-weight 3=2 --class-weight 4=2"), primal("-c 800"));
    folder.write("ones.txt", "0 1 1 1\n1 0 1 1\n1 1 0 1\n1 1 1 0\n");
    near(primal("--loss matrix --cost-matrix ones.txt"), plain);
    folder.write("steps.txt", "4 3 2 1\n0 1 2 3\n1 0 1 2\n2 1 0 1\n3 2 1 0\n");
    near(primal("--loss matrix --cost-matrix steps.txt"), primal("--loss absolute"));
    assert!(primal("--loss squared") > primal("--loss absolute"));
    assert!(primal("--loss-scale 2") > 1.5 * plain);
    assert!(primal("--bias 1") < plain);
    let costly: String = folder.text("m.dat").lines().map(|l| l.replacen(' ', " cost:2 ", 1) + "\n").collect();
    folder.write("costly.dat", costly);
    let words = "train multiclass costly.dat -m m.mm --json --relative-gap 1e-4 -c 200";
    near(number(&folder.run(words).json(), "primal"), primal("-c 400"));
}

#[test]
fn the_hard_margin_separates_or_says_that_it_cannot() {
    let folder = Folder::with_data();
    folder.write("t.dat", "+1 1:1\n-1 1:-1\n+1 1:3\n");
    let summary = folder.run("train binary t.dat -m t.mm --penalty hard --json").json();
    assert!((number(&summary, "primal") - 0.5).abs() < 0.01);
    assert!(summary["c"].is_null());
    assert_eq!(number(&summary, "train_loss"), 0.0);
    folder.run("train binary b.dat -m b.mm --penalty hard").bad(1, &["cannot be separated", "--penalty linear"]);
    assert!(!folder.exists("b.mm"));
}

#[test]
fn early_stops_are_said_and_saved() {
    let folder = Folder::with_data();
    for (options, status, words) in [
        ("--max-passes 2", "max-passes", "stopped by the number of passes (see --max-passes)"),
        ("--max-seconds 1e-9", "max-seconds", "stopped by --max-seconds"),
    ] {
        for solver in
            ["one-slack", "group-slack --groups 2", "n-slack", "dual-coordinate", "bcfw", "subgradient", "frank-wolfe"]
        {
            let train = format!("train multiclass m.dat -m m.mm -e 1e-9 --solver {solver} {options}");
            assert_eq!(folder.run(&format!("{train} --json")).json()["status"], status, "{solver}");
            assert!(folder.run(&train).good().contains(words));
            folder.run("evaluate m.mm m.dat").good();
        }
    }
}

#[test]
fn the_log_has_a_line_for_each_round() {
    let folder = Folder::with_data();
    folder.write("log.jsonl", "what an earlier run left, much longer than anything that will be written ".repeat(1000));
    let summary = folder.run("train binary b.dat -m b.mm --json --log log.jsonl").json();
    let log = folder.text("log.jsonl");
    assert_eq!(log.lines().count() as f64, number(&summary, "rounds"));
    let mut wanted = vec!["round", "seconds", "passes", "oracle_calls", "cache_hits", "primal", "dual", "gap"];
    wanted.extend(["working_set", "c", "heldout", "seconds_heldout"]);
    for line in log.lines() {
        assert_eq!(sorted(keys(&serde_json::from_str(line).unwrap())), sorted(wanted.clone()));
    }
}

#[test]
fn a_model_can_be_started_from() {
    let folder = Folder::with_data();
    let train = "train multiclass m.dat --bias 1 --relative-gap 1e-4 --json";
    let cold = folder.run(&format!("{train} -m m.mm")).json();
    let warm = folder.run(&format!("{train} -m m.mm --warm-start m.mm --max-passes 1")).json();
    assert!(number(&warm, "primal") <= number(&cold, "primal") * (1.0 + 1e-9), "{warm}");
    // More features than the model has: the constant one stays the last.
    let wider = folder.text("m.dat") + "1 25:1\n";
    folder.write("wider.dat", wider);
    let wide = "train multiclass wider.dat --bias 1 -m w.mm --warm-start m.mm --max-passes 1 --json";
    let wide = folder.run(wide).json();
    assert!(number(&wide, "primal") < 1.1 * number(&cold, "primal"), "{wide}");
    // Fewer: what the model knows is kept.
    folder.write("few.dat", "1 1:1\n2 2:1\n3 3:1\n4 4:1\n");
    folder.run("train multiclass few.dat --bias 1 -m f.mm --warm-start m.mm").good();
    assert_eq!(number(&folder.run("inspect f.mm --json").json(), "features"), 20.0);
    folder.run("train multiclass m.dat -m n.mm --warm-start m.mm").bad(1, &["m.mm", "constant feature"]);
    folder.run("train binary b.dat -m n.mm --warm-start m.mm").bad(1, &["m.mm", "task multiclass"]);
    folder.write("other.dat", "x 1:1\ny 2:1\n");
    folder.run("train multiclass other.dat -m n.mm --warm-start m.mm --bias 1").bad(1, &["labels", "x y"]);
    assert!(!folder.exists("n.mm"));
}
