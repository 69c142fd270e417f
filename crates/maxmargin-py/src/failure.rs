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

/// The same for samples in memory, each a row or a line: `data:17: ...` is sample 16.
pub(crate) fn raised_of_samples(failure: Failure) -> PyErr {
    match failure {
        Failure::Data(what) => PyValueError::new_err(without_dashes(&with_samples(&what))),
        other => raised(other),
    }
}

/// The one for text of a task: all but sentences with tags have a line for each sample.
pub(crate) fn raised_of_text(task: &str) -> fn(Failure) -> PyErr {
    if task == "tag" { raised } else { raised_of_samples }
}

/// Lines as samples, also that of another one which a message speaks of, and no columns: nobody has seen the text.
fn with_samples(what: &str) -> String {
    let split = |text: &str, start: &str| {
        let (before, after) = text.split_once(start)?;
        let (digits, rest) = after.split_at(after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len()));
        Some((before.to_owned(), digits.parse::<u64>().ok()?, rest.to_owned()))
    };
    let named =
        split(what, &format!("{NAME}:")).filter(|(before, _, rest)| before.is_empty() && rest.starts_with(": "));
    let Some((_, line, mut told)) = named else { return what.to_owned() };
    if let Some((before, other, rest)) = split(&told, " on line ") {
        told = format!("{before} in sample {}{rest}", other.saturating_sub(1));
    }
    if let Some((before, _, rest)) = split(&told, ", at column ") {
        told = before + &rest;
    }
    format!("sample {}{told}", line.saturating_sub(1))
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
