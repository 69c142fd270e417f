//! The program among others: pipes, signals, full disks.

#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{Folder, PROGRAM, Ran};

fn start(folder: &Folder, words: &str) -> Child {
    Command::new(PROGRAM)
        .args(words.split_whitespace())
        .current_dir(folder.dir())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_mins(1), "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Does the process handle Ctrl-C by now?
fn catches_interrupts(child: &Child) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
    u64::from_str_radix(mask, 16).unwrap() & 0b10 != 0
}

fn interrupt(child: &Child) {
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn ctrl_c_stops_after_the_round_and_saves() {
    let folder = Folder::new();
    folder.run("generate multiclass --examples 2000 --noise 0.3 -o t.dat").good();
    for quiet in ["", "--quiet"] {
        // Frank-Wolfe takes for ever with such a small gap.
        let words = format!("train multiclass t.dat -m t.mm -e 1e-12 --solver frank-wolfe --json --log log {quiet}");
        fs::remove_file(folder.path("log")).ok();
        let child = start(&folder, &words);
        until("rounds", || fs::read_to_string(folder.path("log")).is_ok_and(|log| log.lines().count() > 2));
        interrupt(&child);
        let ran = Ran::of(&words, &child.wait_with_output().unwrap());
        assert_eq!(ran.stderr.contains("stopping after this round"), quiet.is_empty(), "{}", ran.stderr);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let summary: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(summary["status"], "interrupted");
        assert_eq!(folder.run("inspect t.mm --json").json()["training"]["status"], "interrupted");
        folder.run("evaluate t.mm t.dat").good();
        fs::remove_file(folder.path("t.mm")).unwrap();
    }
}

#[test]
fn ctrl_c_before_training_quits_at_once() {
    let folder = Folder::new();
    let mut child = start(&folder, "train binary - -m t.mm");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"+1 1:1\n").unwrap();
    until("a handler", || catches_interrupts(&child));
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    folder.holds_only(&[]);
}

#[test]
fn predictions_flow_through_a_pipe_as_examples_come() {
    let folder = Folder::new();
    folder.write("t.dat", "a 1:1\nb 2:1\n");
    folder.run("train multiclass t.dat -m t.mm").good();
    let mut child = start(&folder, "predict t.mm -");
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    for (line, label) in [("1:1.000\n", b"a\n"), ("b 2:2\n", b"b\n"), ("a 2:1 # wrong\n", b"b\n")] {
        stdin.write_all(line.as_bytes()).unwrap();
        let mut answer = [0; 2];
        stdout.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, label);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_closed_pipe_is_no_error() {
    let folder = Folder::new();
    folder.run("generate multiclass --examples 20000 -o t.dat").good();
    folder.run("train multiclass t.dat -m t.mm --max-passes 2").good();
    let commands = [
        "predict t.mm t.dat --scores",
        "generate binary --examples 100000",
        "evaluate t.mm t.dat",
        "inspect t.mm",
        "--help",
    ];
    for words in commands {
        let mut child = start(&folder, words);
        drop(child.stdout.take());
        let ran = Ran::of(words, &child.wait_with_output().unwrap());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{words}");
    }
}

#[test]
fn a_full_standard_output_is_an_error() {
    let folder = Folder::with_data();
    folder.run("train multiclass m.dat -m m.mm").good();
    for words in ["predict m.mm m.dat", "evaluate m.mm m.dat", "inspect m.mm", "generate binary --examples 50000"] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output =
            Command::new(PROGRAM).args(words.split(' ')).current_dir(folder.dir()).stdout(full).output().unwrap();
        Ran::of(words, &output).bad(1, &["standard output: No space left"]);
    }
}

/// A file system of 64 kB; None where we may not make one.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    fn mount(path: &Path) -> Option<Self> {
        fs::create_dir(path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(path).stderr(Stdio::null());
        mount.status().is_ok_and(|s| s.success()).then(|| Self { path: path.to_owned() })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        Command::new("umount").arg(&self.path).status().ok();
    }
}

#[test]
fn a_full_disk_leaves_what_was_there() {
    let folder = Folder::new();
    folder.run("generate multiclass --examples 300 --features 5000 --nonzeros 20 -o t.dat").good();
    let Some(disk) = SmallDisk::mount(&folder.path("disk")) else {
        eprintln!("skipped: this user may not mount a small file system");
        return;
    };
    for name in ["t.mm", "labels.txt", "data"] {
        fs::write(disk.path.join(name), "old").unwrap();
    }
    // 15,000 weights take 120 kB.
    folder
        .run("train multiclass t.dat -m disk/t.mm")
        .bad(1, &["the model could not be saved: disk/t.mm: No space left", "the old file is as it was"]);
    folder.run("generate binary --examples 1000 -o disk/data").bad(1, &["disk/data: No space left"]);
    folder.run("train multiclass t.dat -m t.mm").good();
    folder.run("generate multiclass --examples 2000 --features 5000 --nonzeros 20 -o t.dat").good();
    folder.run("predict t.mm t.dat --scores -o disk/labels.txt").bad(1, &["disk/labels.txt: No space left"]);
    let ran =
        folder.run("train multiclass t.dat -m t.mm --log disk/log --solver frank-wolfe --max-passes 2000 -e 1e-9");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("note: disk/log: No space left"), "{}", ran.stderr);
    for name in ["t.mm", "labels.txt", "data"] {
        assert_eq!(fs::read(disk.path.join(name)).unwrap(), b"old", "{name}");
    }
    let mut names: Vec<_> = fs::read_dir(&disk.path).unwrap().map(|e| e.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["data", "labels.txt", "log", "t.mm"]);
}
