//! Errors of the library as exceptions.

use maxmargin_cli::embed::{self, Failure, NAME};
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;

/// Bad settings and bad data are both values that are wrong. Settings are named as in Python, and lines as samples.
pub(crate) fn raised(failure: Failure) -> PyErr {
    match failure {
        Failure::Usage(what) | Failure::Data(what) => PyValueError::new_err(without_dashes(&what)),
        Failure::Closed => PyValueError::new_err("the output was closed"),
    }
}

/// The same for rows in memory: `data:17: ...` is sample 16.
pub(crate) fn raised_of_rows(failure: Failure) -> PyErr {
    match failure {
        Failure::Data(what) => PyValueError::new_err(without_dashes(&with_sample(&what))),
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

/// Options as parameters: `--max-passes` is `max_passes`, `--c-per-example` is `C`, `--penalty linear` is `penalty='linear'`.
fn without_dashes(what: &str) -> String {
    const CUSTOMS: [(&str, &str); 4] =
        [("c-path-per-example", "C_path"), ("c-per-example", "C"), ("threads", "n_jobs"), ("seed", "random_state")];
    let declared: Vec<_> = ["train", "predict", "generate"].into_iter().flat_map(embed::options).collect();
    let mut words = String::with_capacity(what.len());
    let mut rest = what;
    while let Some(at) = rest.find("--") {
        let (before, after) = rest.split_at(at);
        words.push_str(before);
        let (flag, behind) = split_word(&after[2..]);
        let Some(option) = declared.iter().find(|option| option.name == flag) else {
            // The user's own dashes.
            words.push_str(&after[..2 + flag.len()]);
            rest = behind;
            continue;
        };
        let custom = CUSTOMS.iter().find(|custom| custom.0 == flag);
        words.push_str(&custom.map_or_else(|| flag.replace('-', "_"), |custom| custom.1.to_owned()));
        rest = behind;
        if let Some((value, behind)) = rest.strip_prefix(' ').map(split_word)
            && option.values.iter().any(|known| known == value)
        {
            words.extend(["='", value, "'"]);
            rest = behind;
        }
    }
    words + rest
}

/// Letters, digits and dashes, and what comes after.
fn split_word(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).unwrap_or(text.len());
    text.split_at(end)
}
