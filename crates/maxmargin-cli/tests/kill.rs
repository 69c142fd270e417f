//! Training that is killed at any moment and resumed ends in the model of training that nobody disturbed, byte for byte.

#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, PROGRAM};

/// Runs until it ends or the time is over; is it done?
fn run_for(folder: &Folder, words: &str, time: Duration) -> bool {
    let mut child = Command::new(PROGRAM)
        .args(words.split_whitespace())
        .current_dir(folder.dir())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while start.elapsed() < time {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{words}");
            return true;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    // SIGKILL: nothing can be tidied up.
    child.kill().unwrap();
    child.wait().unwrap().success()
}

#[test]
fn killed_and_resumed_training_ends_in_the_same_bytes() {
    let folder = Folder::new();
    folder.run("generate multiclass --examples 500 --features 20 --classes 4 --noise 0.2 --seed 3 -o t.dat").good();
    folder.run("generate multiclass --examples 100 --features 20 --classes 4 --noise 0.2 --seed 4 -o h.dat").good();
    let mut kills = 0;
    let mut draw: u64 = 1;
    for options in [
        "--solver one-slack -e 0.001",
        "--solver one-slack --cache 5 -e 0.01",
        "--solver group-slack --groups 5 -e 0.001",
        "--solver n-slack -e 0.01",
        "--solver n-slack --update own -e 0.01",
        "--solver bcfw -e 0.001",
        "--solver bcfw -e 0.001 --c-path-per-example 0.01,0.1,1 --heldout h.dat --keep-best",
        "-e 0.001",
        "-e 0.001 --c-path-per-example 0.01,0.1,1 --heldout h.dat --keep-best",
        "--solver subgradient -e 0.1",
        "--solver perceptron --heldout h.dat --keep-best",
        "--solver frank-wolfe -e 0.5",
        "--solver one-slack -e 0.001 --penalty quadratic --heldout h.dat",
        "--solver one-slack -e 0.001 --heldout h.dat --keep-best",
        "--solver one-slack -e 0.001 --c-path-per-example 0.001,0.01,0.1,1 --heldout h.dat --keep-best",
        "--solver n-slack -e 0.01 --c-path 1,10,100 --heldout h.dat",
    ] {
        let words = format!("train multiclass t.dat --quiet --threads 1 {options}");
        let (undisturbed, resumed) =
            (format!("{words} -m a.mm"), format!("{words} -m b.mm --checkpoint c --checkpoint-every 0 --resume"));
        let start = Instant::now();
        folder.run(&format!("{words} -m b.mm --checkpoint c --checkpoint-every 0")).good();
        let duration = start.elapsed();
        folder.run(&undisturbed).good();
        assert_eq!(folder.read("a.mm"), folder.read("b.mm"), "a checkpoint changes nothing: {options}");
        for trial in 0..2 {
            fs::remove_file(folder.path("b.mm")).ok();
            // From the very beginning to the end of what an undisturbed run takes.
            for spread in 0..8 {
                draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let share = (draw >> 40) as f64 / f64::from(1 << 24);
                // Runs that never get far enough to save something would be resumed for ever.
                let time = duration.mul_f64(share).max(Duration::from_millis(spread));
                if run_for(&folder, &resumed, time) {
                    break;
                }
                kills += 1;
            }
            assert!(run_for(&folder, &resumed, Duration::from_mins(1)), "{options}");
            assert_eq!(folder.read("a.mm"), folder.read("b.mm"), "{options}, trial {trial}");
            assert!(!folder.exists("c"), "{options}: the checkpoint goes when training is done");
        }
    }
    assert!(kills > 20, "{kills} kills only");
}
