//! The README tells the truth: its commands run and print what it shows, its options exist, none is left out, and its
//! program is the one that the library's documentation tests.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Folder, PROGRAM};

const COMMANDS: [&str; 6] = ["train", "predict", "evaluate", "inspect", "generate", "features"];

/// Options in the README that belong to cargo.
const OF_OTHERS: [&str; 4] = ["--path", "--release", "--example", "--open"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// The contents of the fenced blocks in this language.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<Vec<&'t str>> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(named) = line.strip_prefix("```") {
            let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            if named == language {
                found.push(block);
            }
        }
    }
    found
}

/// A command and the output that is shown below it.
#[derive(Debug)]
struct Session<'t> {
    command: &'t str,
    shown: Vec<&'t str>,
}

/// The sessions of the console blocks, in order, without those of other tools.
fn sessions(text: &str) -> Vec<Session<'_>> {
    let mut found: Vec<Session<'_>> = Vec::new();
    for block in blocks(text, "console") {
        for line in block {
            match line.strip_prefix("$ ") {
                Some(command) => found.push(Session { command, shown: Vec::new() }),
                None => found.last_mut().expect("a block begins with a command").shown.push(line),
            }
        }
    }
    found.retain(|s| !["make", "cargo", "git"].contains(&s.command.split(' ').next().unwrap()));
    found
}

/// A line with every number as `#` and every gap as one blank: what does not depend on the machine or on rounding.
fn pattern(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let number = number_length(rest.as_bytes());
        if number > 0 && !text.ends_with(char::is_alphanumeric) {
            text.push('#');
            rest = &rest[number..];
        } else {
            if !(first == ' ' && text.ends_with(' ')) {
                text.push(first);
            }
            rest = &rest[first.len_utf8()..];
        }
    }
    text.trim_end().to_owned()
}

/// Length of the number at the start, with its sign, thousands and exponent; 0 where there is none.
fn number_length(text: &[u8]) -> usize {
    let is_digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    if !is_digit(at) {
        return 0;
    }
    while is_digit(at) || (matches!(text.get(at), Some(b'.' | b',')) && is_digit(at + 1)) {
        at += 1;
    }
    if text.get(at) == Some(&b'e') {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        if is_digit(at + 1 + sign) {
            at += 1 + sign;
            while is_digit(at) {
                at += 1;
            }
        }
    }
    at
}

/// Times and memory have units that follow their size, and not every system tells its memory.
fn is_measured(line: &str) -> bool {
    ["time ", "memory "].iter().any(|start| line.starts_with(start))
}

fn patterns<'l>(lines: impl IntoIterator<Item = &'l str>) -> Vec<String> {
    lines.into_iter().filter(|line| !is_measured(line) && !line.is_empty()).map(pattern).collect()
}

#[test]
fn the_commands_run_and_print_what_is_shown() {
    let folder = Folder::new();
    for name in [
        "demo/digits.train.gz",
        "demo/digits.test.gz",
        "testdata/treebank/english.train.pos",
        "testdata/treebank/english.test.pos",
        "testdata/treebank/english.train.mrg",
        "testdata/treebank/english.test.mrg",
    ] {
        fs::create_dir_all(folder.path(name).parent().unwrap()).unwrap();
        fs::copy(root().join(name), folder.path(name)).unwrap();
    }
    // `maxmargin` in a shell is the program under test.
    let mut path = vec![Path::new(PROGRAM).parent().unwrap().to_path_buf()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let path = std::env::join_paths(path).unwrap();

    let text = readme();
    let sessions = sessions(&text);
    assert!(sessions.len() >= 10, "the README shows {} commands only", sessions.len());
    for Session { command, shown } in sessions {
        let ran =
            Command::new("sh").args(["-c", command]).current_dir(folder.dir()).env("PATH", &path).output().unwrap();
        // Where an error is the point, it is shown.
        let fails = shown.first().is_some_and(|line| line.starts_with("error: "));
        assert_eq!(ran.status.success(), !fails, "{command}\n{}", String::from_utf8_lossy(&ran.stderr));
        let printed = String::from_utf8(if fails { ran.stderr } else { ran.stdout }).unwrap();
        let printed = patterns(printed.lines());
        // `...` stands for the rest.
        let kept: Vec<&str> = shown.iter().copied().take_while(|line| *line != "...").collect();
        let expected = patterns(kept.iter().copied());
        if kept.len() < shown.len() {
            assert_eq!(printed[..expected.len().min(printed.len())], expected, "{command}");
        } else if !shown.is_empty() {
            assert_eq!(printed, expected, "{command}");
        }
    }
}

/// The words of a text that look like `--option`.
fn options(text: &str) -> BTreeSet<String> {
    let is_of_option = |c: char| c.is_ascii_lowercase() || c == '-';
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("--") {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| c == '-' || c.is_ascii_alphanumeric()) {
            continue;
        }
        let end = text[at..].find(|c| !is_of_option(c)).map_or(text.len(), |length| at + length);
        let option = text[at..end].trim_end_matches('-');
        if option.len() > 2 && !option.starts_with("---") {
            found.insert(option.to_owned());
        }
    }
    found
}

fn help(command: &str) -> String {
    let ran = Command::new(PROGRAM).args([command, "--help"]).output().unwrap();
    assert!(ran.status.success());
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn options_exist_and_are_told() {
    let told = options(&readme());
    let mut exist = BTreeSet::from(["--help".to_owned(), "--version".to_owned()]);
    for command in COMMANDS {
        let of_command = options(&help(command));
        let untold: Vec<_> =
            of_command.iter().filter(|option| !told.contains(*option) && *option != "--help").collect();
        assert!(untold.is_empty(), "options of {command} that the README does not mention: {untold:?}");
        exist.extend(of_command);
    }
    let strange: Vec<_> = told.iter().filter(|o| !exist.contains(*o) && !OF_OTHERS.contains(&o.as_str())).collect();
    assert!(strange.is_empty(), "options in the README that do not exist: {strange:?}");
}

#[test]
fn the_program_in_the_readme_is_the_tested_one() {
    let source = fs::read_to_string(root().join("crates/maxmargin/src/lib.rs")).unwrap();
    let front: Vec<&str> =
        source.lines().map_while(|l| l.strip_prefix("//!")).map(|l| l.strip_prefix(' ').unwrap_or(l)).collect();
    let (front, text) = (front.join("\n"), readme());
    let (tested, shown) = (blocks(&front, ""), blocks(&text, "rust"));
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0], tested[0]);
}

#[test]
fn the_test_reads_as_it_should() {
    assert_eq!(pattern("gap   -1.5e-7, 1,347 of n2 2:+0.5 (3)"), "gap #, # of n2 #:# (#)");
    let text = "a\n```console\n$ maxmargin x | head\n1\n$ make test\n2\n$ cat y\n```\n";
    let found = sessions(text);
    assert_eq!(
        found.iter().map(|s| (s.command, s.shown.len())).collect::<Vec<_>>(),
        [("maxmargin x | head", 1), ("cat y", 0)]
    );
    let found: Vec<String> = options("`--a-b`, --c=1 --- x--y --d.").into_iter().collect();
    assert_eq!(found, ["--a-b", "--c", "--d"]);
}
