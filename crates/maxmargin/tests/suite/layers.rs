//! Dependencies point one way: reads the `crate::` paths of the sources and fails on an upward one. Also: threads live in
//! one module, and the library never prints.

use std::fs;
use std::path::{Path, PathBuf};

/// The modules by rank: a module may use those of lower rank, and itself.
const RANKS: [(&str, u32); 22] = [
    ("error", 0),
    ("memory", 0),
    ("numeric", 0),
    ("random", 0),
    ("sparse", 1),
    ("parallel", 1),
    ("features", 2),
    ("weights", 3),
    ("kernel", 4),
    ("task", 4),
    ("inference", 5),
    ("problem", 6),
    ("cache", 6),
    ("qp", 6),
    ("tasks", 6),
    ("data", 6),
    ("solver", 7),
    ("testing", 7),
    ("model", 8),
    ("metrics", 9),
    ("lib", 10),
    ("main", 10),
];

/// Pairs (user, used) that the ranks alone would forbid or allow, and the verdict.
const EXCEPTIONS: [(&str, &str, bool); 5] = [
    ("data", "tasks", true),
    ("problem", "inference", false),
    ("solver", "inference", false),
    ("solver", "tasks", false),
    ("solver", "data", false),
];

fn rank(module: &str) -> Option<u32> {
    RANKS.iter().find(|r| r.0 == module).map(|r| r.1)
}

fn may_use(user: &str, used: &str) -> bool {
    if let Some(exception) = EXCEPTIONS.iter().find(|e| (e.0, e.1) == (user, used)) {
        return exception.2;
    }
    user == used || rank(user) > rank(used)
}

fn sources() -> Vec<(PathBuf, String)> {
    sources_in("src")
}

/// The sources in a folder beside this crate's Cargo.toml, with their paths in it.
fn sources_in(folder: &str) -> Vec<(PathBuf, String)> {
    fn walk(dir: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut paths = Vec::new();
    walk(&root, &mut paths);
    paths.sort();
    assert!(paths.len() > 10, "the sources are not where they should be");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        (path.strip_prefix(&root).unwrap().to_path_buf(), text)
    };
    paths.into_iter().map(read).collect()
}

/// The module at the top of the tree that a file belongs to.
fn module(path: &Path) -> String {
    let first = path.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_string()
}

/// The lines that are compiled into the library, numbered from 1: no comments, no `#[cfg(test)]` items.
fn code(text: &str) -> Vec<(usize, &str)> {
    let mut lines = Vec::new();
    let mut skip_from: Option<usize> = None;
    let indent = |line: &str| line.len() - line.trim_start().len();
    for (at, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        if let Some(depth) = skip_from {
            // An item ends at its closing brace, or at a semicolon, in the column where it began.
            let ends = indent(line) == depth && (trimmed.starts_with('}') || trimmed.ends_with(';'));
            if ends && !trimmed.starts_with('#') {
                skip_from = None;
            }
            continue;
        }
        if trimmed.starts_with("#[cfg(test)]") {
            skip_from = Some(indent(line));
            continue;
        }
        let line = line.split("//").next().unwrap_or("");
        if !line.trim().is_empty() {
            lines.push((at + 1, line));
        }
    }
    lines
}

/// The modules that a line names with `crate::`; `crate::{a, b}` names several.
fn used(line: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut all = Vec::new();
    for (at, found) in line.match_indices("crate::") {
        let rest = &line[at + found.len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let list = list.split('}').next().unwrap_or("");
            all.extend(list.split(',').map(|item| name(item.trim())));
        } else {
            all.push(name(rest));
        }
    }
    all.retain(|n| !n.is_empty());
    all
}

#[test]
fn no_module_uses_one_above_it() {
    let mut upward = Vec::new();
    for (path, text) in sources() {
        if path.ends_with("tests.rs") {
            continue; // a module of tests in a file of its own
        }
        let user = module(&path);
        assert!(rank(&user).is_some(), "{}: give the module {user} a rank in tests/suite/layers.rs", path.display());
        let depth = path.components().count();
        for (number, line) in code(&text) {
            let place = format!("{}:{number}", path.display());
            assert!(
                !line.trim_end().ends_with("crate::{"),
                "{place}: one `use crate::` a line, so that this test sees it"
            );
            assert!(!line.contains(&"super::".repeat(depth)), "{place}: write `crate::`, so that this test sees it");
            for used in used(line) {
                // `crate::Result` and `crate::Error` are the error module's.
                let used = if matches!(used.as_str(), "Result" | "Error") { "error".into() } else { used };
                assert!(rank(&used).is_some(), "{place}: crate::{used} is no module");
                if !may_use(&user, &used) {
                    upward.push(format!("{place}: {user} uses {used}"));
                }
            }
        }
    }
    assert!(upward.is_empty(), "upward dependencies:\n{}", upward.join("\n"));
}

/// Solvers and the program see examples by number: what is generic over a task is compiled once for each.
#[test]
fn no_solver_is_generic_over_a_task() {
    let solvers = sources().into_iter().filter(|s| module(&s.0) == "solver" && !s.0.ends_with("tests.rs"));
    let program = sources_in("../maxmargin-cli/src").into_iter();
    for (path, text) in solvers.chain(program) {
        for (number, line) in code(&text) {
            for word in ["T: Task", "impl Task", "dyn Task"] {
                assert!(!line.contains(word), "{}:{number}: generic over a task", path.display());
            }
        }
    }
}

#[test]
fn threads_live_in_one_module() {
    for (path, text) in sources().iter().filter(|s| module(&s.0) != "parallel") {
        for (number, line) in code(text) {
            for word in ["rayon", "std::thread", "thread::spawn", "available_parallelism"] {
                assert!(!line.contains(word), "{}:{number}: {word} belongs to parallel", path.display());
            }
        }
    }
}

#[test]
fn the_library_never_prints() {
    for (path, text) in sources() {
        for (number, line) in code(&text) {
            for word in ["println!", "print!", "eprintln!", "eprint!", "dbg!", "io::stdout", "io::stderr"] {
                assert!(!line.contains(word), "{}:{number}: {word} in the library", path.display());
            }
        }
    }
}

/// The readers of this test can fail.
#[test]
fn the_test_sees() {
    let text = "use crate::solver::Status; // crate::model\n/// crate::model\nfn f() {}\n#[cfg(test)]\nmod tests {\n    \
                use crate::model::Model;\n}\nlet x = crate::qp::Qp::new();\nuse crate::{task, weights::Weights};\n";
    let seen: Vec<_> = code(text).into_iter().flat_map(|(n, l)| used(l).into_iter().map(move |u| (n, u))).collect();
    let expected = [(1, "solver"), (8, "qp"), (9, "task"), (9, "weights")];
    assert_eq!(seen, expected.map(|(n, name)| (n, name.to_string())));
    assert!(!may_use("task", "problem") && !may_use("tasks", "solver") && !may_use("solver", "tasks"));
    assert!(!may_use("tasks", "problem") && !may_use("tasks", "data") && !may_use("sparse", "parallel"));
    assert!(may_use("solver", "problem") && may_use("data", "tasks") && may_use("model", "solver"));
    assert!(may_use("solver", "solver") && may_use("parallel", "error"));
    assert!(may_use("tasks", "inference") && !may_use("inference", "tasks") && !may_use("solver", "inference"));
}
