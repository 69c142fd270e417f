//! `--c-path`: several C in one run.

mod common;

use common::{Folder, keys, number};
use maxmargin::numeric::log10;

const SOLVERS: [&str; 5] = ["one-slack", "group-slack --groups 3", "n-slack", "bcfw", "dual-coordinate"];

#[test]
fn every_c_of_a_path_is_solved() {
    let folder = Folder::with_data();
    for solver in SOLVERS {
        let train = format!("train multiclass m.dat -m m.mm --json --relative-gap 0.001 --solver {solver}");
        let summary = folder.run(&format!("{train} --c-path 100,1,10")).json();
        let path = summary["path"].as_array().unwrap();
        assert_eq!(path.iter().map(|rung| number(rung, "c")).collect::<Vec<_>>(), [1.0, 10.0, 100.0], "{solver}");
        assert_eq!(number(&summary, "c"), 100.0);
        assert_eq!(
            keys(&path[0]),
            ["c", "certificate", "dual", "gap", "heldout_loss", "passes", "primal", "seconds", "status", "train_loss"]
        );
        for rung in path {
            let alone = folder.run(&format!("{train} -c {}", rung["c"])).json();
            // Both within the gap of one minimum.
            assert!(number(rung, "dual") <= number(&alone, "primal") * (1.0 + 1e-9), "{solver}: {rung}");
            assert!(number(&alone, "dual") <= number(rung, "primal") * (1.0 + 1e-9), "{solver}: {rung}");
            assert_eq!(rung["status"], "converged");
        }
    }
}

#[test]
fn the_best_c_on_held_out_examples_can_be_kept() {
    let folder = Folder::with_data();
    folder.run("generate multiclass --examples 300 --seed 9 --classes 4 --noise 0.05 -o h.dat").good();
    let words = "train multiclass m.dat -m m.mm --c-path-per-example 0.0001,0.01,1 --heldout h.dat --keep-best";
    let summary = folder.run(&format!("{words} --json")).json();
    let path = summary["path"].as_array().unwrap();
    let losses: Vec<f64> = path.iter().map(|rung| number(rung, "heldout_loss")).collect();
    let least = losses.iter().copied().fold(f64::INFINITY, f64::min);
    let first = losses.iter().position(|loss| *loss == least).unwrap();
    assert_eq!(number(&summary, "c"), number(&path[first], "c"));
    assert_eq!(number(&summary, "heldout_loss"), least);
    assert_eq!(number(&folder.run("inspect m.mm --json").json(), "c"), number(&path[first], "c"));
    let table = folder.run(words).good();
    for word in ["the least of the path", "held-out loss", "per example"] {
        assert!(table.contains(word), "{word} in\n{table}");
    }
}

#[test]
fn a_ladder_of_ours_covers_what_matters() {
    let folder = Folder::with_data();
    let summary =
        folder.run("train multiclass m.dat -m m.mm --c-path auto --max-passes 50 --solver one-slack --json").json();
    let path = summary["path"].as_array().unwrap();
    assert!((3..=7).contains(&path.len()), "{path:?}");
    let losses: Vec<f64> = path.iter().map(|rung| number(rung, "train_loss")).collect();
    assert!(losses[0] > losses[losses.len() - 1], "{losses:?}");
    let per_example = log10(number(&path[0], "c") / 400.0);
    assert!((per_example - per_example.round()).abs() < 1e-9);
    // A log tells which C a round belongs to.
    folder.run("train multiclass m.dat -m m.mm --c-path 1,2 --log log").good();
    let c_of = |line: &str| number(&serde_json::from_str(line).unwrap(), "c");
    let log = folder.text("log");
    assert_eq!((log.lines().map(c_of).next(), log.lines().map(c_of).next_back()), (Some(1.0), Some(2.0)));
}
