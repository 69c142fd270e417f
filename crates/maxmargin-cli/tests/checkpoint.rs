//! `--checkpoint` and `--resume`: what is kept, when, and what is refused. `kill.rs` kills.

mod common;

use common::{Folder, number};

const TRAIN: &str = "train multiclass m.dat -m m.mm -e 0.001 --solver one-slack --checkpoint c --checkpoint-every 0";

#[test]
fn training_goes_on_where_it_stopped() {
    let folder = Folder::with_data();
    folder.run("train multiclass m.dat -m whole.mm -e 0.001 --solver one-slack").good();
    let stopped = folder.run(&format!("{TRAIN} --max-passes 5 --log log")).good();
    assert!(stopped.contains("to go on") && stopped.contains("--resume (checkpoint c)"), "{stopped}");
    let lines = folder.text("log").lines().count();
    // Threads, files and limits may be others.
    let summary = folder.run(&format!("{TRAIN} --resume --threads 1 --log log --json")).json();
    assert_eq!(summary["status"], "converged");
    assert!(number(&summary, "rounds") > lines as f64);
    assert_eq!(folder.text("log").lines().count() as f64, number(&summary, "rounds"));
    assert_eq!(folder.read("m.mm"), folder.read("whole.mm"));
    folder.holds_only(&["b.dat", "log", "m.dat", "m.mm", "whole.mm"]);
}

/// A run that is killed has logged rounds that its checkpoint knows nothing of; they are logged once all the same.
#[test]
fn a_log_that_is_ahead_of_the_checkpoint_is_taken_back() {
    let folder = Folder::with_data();
    let rounds = |name: &str| -> Vec<u64> {
        let round = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["round"].as_u64().unwrap();
        folder.text(name).lines().map(round).collect()
    };
    folder.run("train multiclass m.dat -m whole.mm -e 0.001 --solver one-slack --log whole").good();
    folder.run(&format!("{TRAIN} --max-passes 5 --log log")).good();
    let saved = folder.read("c");
    folder.run(&format!("{TRAIN} --max-passes 12 --log log --resume")).good();
    let ahead = folder.text("log");
    folder.write("c", saved);
    // Another's line before is kept, one that was cut off is not.
    folder.write("log", format!("# my notes\n{ahead}{{\"c\":50.0,\"rou"));
    folder.run(&format!("{TRAIN} --resume --log log")).good();
    let text = folder.text("log");
    folder.write("log", text.strip_prefix("# my notes\n").unwrap());
    assert_eq!(rounds("log"), rounds("whole"));
    assert!(ahead.lines().count() > 5 && rounds("log").len() > ahead.lines().count());
    assert_eq!(folder.read("m.mm"), folder.read("whole.mm"));
    folder.holds_only(&["b.dat", "log", "m.dat", "m.mm", "whole", "whole.mm"]);
}

/// What a process killed in the middle of a save has left; other files stay.
#[test]
fn leftovers_of_saves_are_removed() {
    let folder = Folder::with_data();
    folder.write(".c.maxmargin-AbCdEf", "half a checkpoint");
    folder.write(".d.maxmargin-AbCdEf", "another's");
    folder.run(TRAIN).good();
    assert!(!folder.exists(".c.maxmargin-AbCdEf") && folder.exists(".d.maxmargin-AbCdEf"));
}

#[test]
fn without_a_checkpoint_training_begins() {
    let folder = Folder::with_data();
    let ran = folder.run(&format!("{TRAIN} --resume"));
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.contains("note: there is no checkpoint c: training starts from the beginning"),
        "{}",
        ran.stderr
    );
    assert!(!folder.exists("c"));
}

#[test]
fn a_checkpoint_of_something_else_is_refused_in_words() {
    let folder = Folder::with_data();
    folder.run("train multiclass m.dat -m start.mm --max-passes 3 --solver one-slack").good();
    let stop = "--max-passes 5 --heldout m.dat";
    folder.run(&format!("{TRAIN} {stop}")).good();
    let saved = folder.read("c");
    let resume = |options: &str| folder.run(&format!("{TRAIN} {stop} --resume {options}"));
    resume("-c 3").bad(2, &["--resume: c was made without --c, this run is with --c 3"]);
    resume("--bias 1").bad(2, &["without --bias"]);
    resume("--keep-best").bad(2, &["without --keep-best"]);
    resume("--warm-start start.mm").bad(1, &["c: cannot go on from this checkpoint: the model to start from"]);
    folder.run(&format!("{TRAIN} --resume")).bad(1, &["the held-out file is another now"]);
    let without = TRAIN.replace("-e 0.001 ", "");
    folder.run(&format!("{without} --resume")).bad(2, &["was made with --epsilon 0.001, this run is without"]);
    folder.run(&format!("{TRAIN} {stop}")).bad(2, &["--checkpoint: c is there already", "--resume"]);
    assert_eq!(folder.read("c"), saved, "nothing was overwritten");
    let other = folder.text("m.dat") + "1 1:1\n";
    folder.write("m.dat", other);
    resume("").bad(1, &["c: cannot go on from this checkpoint: the training file is another now"]);
}

#[test]
fn a_damaged_checkpoint_is_refused() {
    let folder = Folder::with_data();
    folder.run(&format!("{TRAIN} --max-passes 5")).good();
    let whole = folder.read("c");
    let resume = || folder.run(&format!("{TRAIN} --resume"));
    for at in (0..whole.len()).step_by(1 + whole.len() / 50) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        folder.write("c", &bytes);
        resume().bad(1, &["c: "]);
        folder.write("c", &whole[..at]);
        resume().bad(1, &["c: "]);
    }
    folder.write("c", "something else");
    resume().bad(1, &["c: this is no checkpoint"]);
}

/// Checksums that fit do not hide that somebody changed the objective of a model that is kept.
#[test]
fn a_kept_model_with_another_objective_is_refused() {
    let folder = Folder::with_data();
    let train = "train binary b.dat -m k.mm --solver dual-coordinate --c-path-per-example 1,1e-6 --relative-gap 1e-6 \
                 --heldout b.dat --keep-best --checkpoint c --checkpoint-every 0";
    let told = number(&folder.run(&format!("{train} --max-passes 3 --json")).json(), "primal");
    let whole = folder.read("c");
    let state = whole.windows(16).position(|bytes| bytes == b"maxmargin state\n").unwrap();
    let mut changed = whole.clone();
    for at in (0..state - 8).filter(|&at| whole[at..at + 8] == told.to_le_bytes()) {
        changed[at..at + 8].copy_from_slice(&(0.5 * told).to_le_bytes());
    }
    assert_ne!(changed, whole);
    // The checksum of the state, and that of the file.
    for (from, to) in [(state, whole.len() - 8), (0, whole.len() - 4)] {
        let sum = crc32fast::hash(&changed[from..to]).to_le_bytes();
        changed[to..to + 4].copy_from_slice(&sum);
    }
    let resume = |bytes: Vec<u8>| {
        folder.write("c", bytes);
        folder.run(&format!("{train} --resume"))
    };
    resume(changed).bad(1, &["c: the checkpoint is damaged (the objective)"]);
    resume(whole).good();
}
