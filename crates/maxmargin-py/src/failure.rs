//! Errors of the library as exceptions.

use maxmargin_cli::embed::{Failure, NAME};
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

/// Bad settings and bad data are both values that are wrong. Settings are named as in Python, and lines as samples.
pub(crate) fn raised(failure: Failure) -> PyErr {
    match failure {
        Failure::Usage(what) => PyValueError::new_err(without_dashes(&what)),
        Failure::Data(what) => PyValueError::new_err(what),
        Failure::Closed => PyValueError::new_err("the output was closed"),
    }
}

/// The same for rows in memory: `data:17: ...` is sample 16.
pub(crate) fn raised_of_rows(failure: Failure) -> PyErr {
    match failure {
        Failure::Data(what) => PyValueError::new_err(with_sample(&what)),
        other => raised(other),
    }
}

fn with_sample(what: &str) -> String {
    let rest = what.strip_prefix(NAME).and_then(|rest| rest.strip_prefix(':'));
    let parts = rest.and_then(|rest| rest.split_once(": "));
    match parts.and_then(|(line, what)| Some((line.parse::<u64>().ok()?, what))) {
        Some((line, what)) => format!("sample {}: {what}", line.saturating_sub(1)),
        None => what.to_owned(),
    }
}

/// `--c-per-example` is `C`, `--max-passes` is `max_passes`.
fn without_dashes(what: &str) -> String {
    const CUSTOMS: [(&str, &str); 4] = [
        ("--c-path-per-example", "C_path"),
        ("--c-per-example", "C"),
        ("--threads", "n_jobs"),
        ("--seed", "random_state"),
    ];
    let mut text = what.to_owned();
    for (flag, name) in CUSTOMS {
        text = text.replace(flag, name);
    }
    let mut words = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("--") {
        let (before, after) = rest.split_at(at);
        let flag = &after[2..];
        let end = flag.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(flag.len());
        words.push_str(before);
        words.push_str(if end == 0 { "--" } else { "" });
        words.push_str(&flag[..end].replace('-', "_"));
        rest = &flag[end..];
    }
    words + rest
}
