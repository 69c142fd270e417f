//! The program run as a user runs it, in a folder of its own.

#![allow(dead_code, reason = "every test file uses a part of it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_maxmargin");

/// A folder with data in it.
pub(crate) struct Folder {
    dir: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        Self { dir: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), bytes).unwrap();
        self.path(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Nothing but these files is here: no temporary file was left behind.
    pub(crate) fn holds_only(&self, names: &[&str]) {
        let mut found: Vec<String> =
            fs::read_dir(self.dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        found.sort();
        assert_eq!(found, names);
    }

    /// Runs `maxmargin` with these words, separated by blanks.
    pub(crate) fn run(&self, words: &str) -> Ran {
        self.run_with(words, "")
    }

    /// The same with standard input.
    pub(crate) fn run_with(&self, words: &str, stdin: impl Into<Vec<u8>>) -> Ran {
        let mut command = Command::new(PROGRAM);
        command.current_dir(self.dir.path()).args(words.split_whitespace()).write_stdin(stdin);
        Ran::of(words, &command.output().unwrap())
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Makes `b.dat` and `m.dat`, noisy data of both tasks.
    pub(crate) fn with_data() -> Self {
        let folder = Self::new();
        folder.run("generate binary --examples 300 --seed 1 --noise 0.1 -o b.dat").good();
        folder.run("generate multiclass --examples 400 --seed 2 --classes 4 --noise 0.05 -o m.dat").good();
        folder
    }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Ran {
    words: String,
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn of(words: &str, output: &Output) -> Self {
        Self {
            words: words.to_owned(),
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// It worked, without a word on standard error; returns standard output.
    pub(crate) fn good(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "maxmargin {}", self.words);
        self.stdout
    }

    /// It worked and printed one JSON object.
    pub(crate) fn json(self) -> Value {
        let text = self.good();
        assert_eq!(text.lines().count(), 1);
        serde_json::from_str(&text).unwrap()
    }

    /// It failed with this exit code, wrote nothing on standard output, and one error with these words.
    pub(crate) fn bad(self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "maxmargin {}\n{}", self.words, self.stderr);
        assert_eq!(self.stdout, "", "maxmargin {}", self.words);
        assert!(self.stderr.starts_with("error: "), "maxmargin {}\n{}", self.words, self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        for word in words {
            assert!(self.stderr.contains(word), "maxmargin {}: '{word}' is not in\n{}", self.words, self.stderr);
        }
    }
}

/// The keys of a JSON object, in their order.
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

pub(crate) fn number(value: &Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} in {value}"))
}
