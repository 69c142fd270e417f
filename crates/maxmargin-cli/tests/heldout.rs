//! `--heldout`, `--keep-best`, `--folds`: examples that are not trained on.

mod common;

use common::{Folder, number};
use serde_json::Value;

fn with_heldout() -> Folder {
    let folder = Folder::new();
    folder.run("generate multiclass --examples 300 --seed 1 --classes 4 --noise 0.4 -o t.dat").good();
    folder.run("generate multiclass --examples 200 --seed 2 --classes 4 --noise 0.4 -o h.dat").good();
    folder
}

fn log(folder: &Folder) -> Vec<Value> {
    folder.text("log").lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_loss_is_what_evaluate_says() {
    let folder = with_heldout();
    // A label and a feature that the training data lack, and a cost that does not count here.
    let stranger = folder.text("h.dat") + "9 1:1\n1 cost:7 1:0.5 99:3\n";
    folder.write("h.dat", stranger);
    for options in ["", "--bias 1 --loss absolute --loss-scale 3", "--solver one-slack", "--solver bcfw", "--keep-best"]
    {
        let words = format!("train multiclass t.dat -m t.mm --heldout h.dat --json {options}");
        let ran = folder.run(&words);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains("features that the training file lacks"), "{}", ran.stderr);
        assert!(ran.stderr.contains("labels that the training file lacks"), "{}", ran.stderr);
        let summary: Value = serde_json::from_str(&ran.stdout).unwrap();
        let evaluated: Value = serde_json::from_str(&folder.run("evaluate t.mm h.dat --json").stdout).unwrap();
        let (told, true_loss) = (number(&summary, "heldout_loss"), number(&evaluated, "mean_loss"));
        assert!((told - true_loss).abs() < 1e-12, "{told} and {true_loss}: {options}");
        assert!(number(&summary, "heldout_best") <= told);
    }
}

#[test]
fn it_is_measured_once_a_pass_and_the_best_is_kept() {
    let folder = with_heldout();
    let words = "train multiclass t.dat -m t.mm --heldout h.dat --solver n-slack -e 0.001 --json --log log";
    let last = folder.run(words).json();
    let lines = log(&folder);
    let looks: Vec<&Value> = lines.iter().filter(|line| !line["heldout"].is_null()).collect();
    assert!(looks.len() > 3 && looks.len() <= lines.len());
    assert!(looks.windows(2).all(|pair| number(pair[1], "passes") >= number(pair[0], "passes") + 1.0));
    let least = looks.iter().map(|line| number(line, "heldout")).fold(number(&last, "heldout_loss"), f64::min);
    assert_eq!(number(&last, "heldout_best"), least);

    let best = folder.run(&format!("{words} --keep-best")).json();
    assert_eq!(number(&best, "heldout_loss"), least);
    // Whatever is kept, its value is its own, and the bound holds for it.
    let gap = number(&best, "primal") - number(&best, "dual");
    assert!((number(&best, "gap") - gap).abs() < 1e-9 && number(&best, "dual") == number(&last, "dual"));
    assert!(number(&best, "primal") >= number(&last, "dual"));
    let inspected = folder.run("inspect t.mm --json").json();
    assert_eq!(inspected["training"]["primal"], best["primal"]);
    // The status is that of training, whose end is told beside what is kept.
    assert!(number(&best, "primal") > number(&last, "primal"), "not an earlier point: {best}");
    for (at_end, key) in [("primal_at_end", "primal"), ("gap_at_end", "gap")] {
        assert_eq!(number(&best, at_end), number(&last, key));
        assert!(last.get(at_end).is_none(), "{last}");
    }
    assert_eq!((&best["status"], &best["epsilon"]), (&last["status"], &last["epsilon"]));
    let kept_earlier = "the weights are from before, and so are their objective and gap";
    let inspected = folder.run("inspect t.mm").good();
    assert!(inspected.contains(&format!("converged; {kept_earlier}")), "{inspected}");
    let words = words.replace("--json", "");
    let table = folder.run(&format!("{words} --keep-best")).good();
    assert!(table.contains("converged, at objective ") && table.contains(kept_earlier), "{table}");
    assert!(table.contains("held-out "), "{table}");
    let table = folder.run(&words).good();
    assert!(!table.contains(kept_earlier) && !folder.run("inspect t.mm").good().contains(kept_earlier), "{table}");
}

/// What is called converged may be far from the minimum where C is small: the table says so, and the way out.
#[test]
fn a_coarse_gap_is_told() {
    let folder = with_heldout();
    let train = "train multiclass t.dat -m t.mm --solver one-slack -e 0.5";
    let table = folder.run(train).good();
    assert!(table.contains("% is coarse; --relative-gap 0.01"), "{table}");
    let summary = folder.run(&format!("{train} --json")).json();
    assert!(number(&summary, "gap") > 0.1 * number(&summary, "primal") && summary.get("note").is_none(), "{summary}");
    for options in ["--relative-gap 0.01", "-e 0.5 --max-passes 1"] {
        let table = folder.run(&format!("train multiclass t.dat -m t.mm --solver one-slack {options}")).good();
        assert!(!table.contains("coarse"), "{table}");
    }
}

#[test]
fn held_out_files_that_cannot_be_used_are_refused() {
    let folder = with_heldout();
    folder.write("empty.dat", "");
    folder.write("bad.dat", "1 1:1\n2 0:1\n");
    let train = "train multiclass t.dat -m t.mm --heldout";
    folder.run(&format!("{train} none.dat")).bad(1, &["none.dat"]);
    folder.run(&format!("{train} bad.dat")).bad(1, &["bad.dat:2: feature index 0"]);
    folder.run(&format!("{train} empty.dat")).bad(1, &["empty.dat"]);
    folder.run(&format!("{train} t.mm")).bad(2, &["--model: t.mm is the held-out file"]);
    folder.run_with("train multiclass - -m t.mm --heldout -", "1 1:1\n").bad(2, &["--heldout: "]);
}

#[test]
fn cross_validation_finds_c_and_trains_on_all() {
    let folder = with_heldout();
    let words = "train multiclass t.dat -m t.mm --c-path-per-example 0.001,0.1,1 --folds 5 --json";
    let summary = folder.run(words).json();
    let cv = summary["cv"].as_array().unwrap();
    assert_eq!((cv.len(), number(&summary, "folds")), (3, 5.0));
    let best = cv.iter().min_by(|a, b| number(a, "loss").total_cmp(&number(b, "loss"))).unwrap();
    assert_eq!(number(&summary, "c"), number(best, "c"));
    assert!(cv.iter().all(|v| (0.0..1.0).contains(&number(v, "loss")) && number(v, "standard_error") < 0.2));
    // The model is that of a plain run at the same C.
    let model = folder.read("t.mm");
    folder.run(&format!("train multiclass t.dat -m t.mm -c {}", summary["c"])).good();
    assert_eq!(folder.read("t.mm"), model);
    // One C: only its loss. The same seed, the same folds.
    let one = |seed: u64| {
        let words = format!("train multiclass t.dat -m t.mm --folds 3 --json --solver one-slack --seed {seed}");
        folder.run(&words).json()["cv"].clone()
    };
    assert_eq!(one(1), one(1));
    assert_ne!(one(1), one(2));
    let table = folder.run("train multiclass t.dat -m t.mm --folds 3").good();
    assert!(table.contains("cross-validation, 3 folds"), "{table}");
}
