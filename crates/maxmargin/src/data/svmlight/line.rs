//! One line of SVM-light text. Errors are the text of the message; the caller knows file and line.

use crate::data::blocks::shown;
use crate::data::number::{NoNumber, decimal, digit, short_decimal};
use crate::data::svmlight::LabelRule;
use crate::sparse::SparseMatrix;

/// The largest feature index: one column more, for a bias, can still be counted in u32.
const LARGEST_INDEX: u64 = u32::MAX as u64 - 1;

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// The word at the start of `text`: up to a blank, a comment or the end.
fn word(text: &[u8]) -> &[u8] {
    let end = text.iter().position(|&b| is_blank(b) || b == b'#');
    &text[..end.unwrap_or(text.len())]
}

/// The two parts of a line.
pub(crate) struct Parts<'a> {
    /// The label, not yet checked.
    pub(crate) label: Option<&'a [u8]>,
    /// What follows it.
    pub(crate) rest: &'a [u8],
}

/// Finds the label of a line; `None` for a line without an example.
pub(crate) fn parts(line: &[u8], rule: LabelRule) -> Result<Option<Parts<'_>>, String> {
    let start = line.iter().position(|&b| !is_blank(b)).unwrap_or(line.len());
    let line = &line[start..];
    if rule == LabelRule::Set && start > 0 && matches!(line.first(), None | Some(b'#')) {
        return Ok(Some(Parts { label: None, rest: line }));
    }
    if line.is_empty() {
        return Ok(None);
    }
    let end = line.iter().position(|&b| is_blank(b) || b == b':' || b == b'#').unwrap_or(line.len());
    match line.get(end) {
        Some(b'#') if end == 0 => Ok(None),
        // `C#` would become `C`, in silence.
        Some(b'#') => Err(format!(
            "label {} runs into a comment (put a blank before '#'; labels cannot contain it)",
            shown(&line[..end])
        )),
        Some(b':') if rule != LabelRule::Required => Ok(Some(Parts { label: None, rest: line })),
        Some(b':') => Err(format!("label missing before {} (labels cannot contain ':')", shown(word(line)))),
        _ => Ok(Some(Parts { label: Some(&line[..end]), rest: &line[end..] })),
    }
}

/// A label seen for the first time, if it is text.
pub(super) fn checked_label(label: &[u8]) -> Result<&str, String> {
    match std::str::from_utf8(label) {
        Ok(text) if !text.chars().any(char::is_control) => Ok(text),
        Ok(_) => Err(format!("label {} contains a control character (is this a text file?)", shown(label))),
        Err(_) => Err(format!("label {} is not valid UTF-8 (is this a text file?)", shown(label))),
    }
}

/// Reads what follows the label into an open row of `matrix`; returns the example's cost, if it has one.
pub(crate) fn features(line: &[u8], matrix: &mut SparseMatrix) -> Result<Option<f64>, String> {
    let (mut at, mut last, mut cost) = (0, 0, None);
    loop {
        while line.get(at).is_some_and(|&b| is_blank(b)) {
            at += 1;
        }
        let start = at;
        let mut index = 0;
        while let Some(d) = digit(line, at) {
            index = index * 10 + d;
            if index > LARGEST_INDEX {
                return Err(format!(
                    "feature index {} (the largest is {LARGEST_INDEX})",
                    shown(index_of(&line[start..]))
                ));
            }
            at += 1;
        }
        if at == start || line.get(at) != Some(&b':') {
            match line.get(start) {
                None | Some(b'#') => return Ok(cost),
                Some(_) => at = start + other(word(&line[start..]), &mut cost)?,
            }
            continue;
        }
        at += 1;
        let (value, length) = match short_decimal(&line[at..]) {
            Some(found) if matches!(line.get(at + found.1), None | Some(b' ' | b'\t' | b'#')) => found,
            _ => value(word(&line[at..]), index)?,
        };
        at += length;
        if index <= last {
            return Err(not_ascending(index, last));
        }
        last = index;
        let column = (index - 1) as u32;
        if value != 0.0 {
            matrix.push(column, value);
        } else if column >= matrix.columns() {
            // An explicit zero takes no room, but the feature exists.
            matrix.set_columns(column + 1);
        }
    }
}

#[cold]
fn index_of(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|b| !b.is_ascii_digit()).unwrap_or(text.len())]
}

#[cold]
fn not_ascending(index: u64, last: u64) -> String {
    match index {
        0 => "feature index 0 (indices start at 1)".to_owned(),
        _ if index == last => format!("feature index {index} appears twice"),
        _ => format!("feature index {index} after {last} (indices must ascend)"),
    }
}

/// A value that the fast path left over, and its length.
#[cold]
fn value(word: &[u8], index: u64) -> Result<(f32, usize), String> {
    decimal(word).map(|value| (value, word.len())).map_err(|cause| {
        let text = shown(word);
        match cause {
            NoNumber::Malformed if word.is_empty() => format!("value of feature {index} missing (no blank after ':')"),
            NoNumber::Malformed => format!("value {text} of feature {index} is not a decimal number"),
            NoNumber::NotFinite => format!("value {text} of feature {index} is not a finite number"),
            NoNumber::TooLarge => format!("value {text} of feature {index} is too large (the largest is 3.4e38)"),
        }
    })
}

/// A word that is not a feature; returns its length.
#[cold]
fn other(word: &[u8], cost: &mut Option<f64>) -> Result<usize, String> {
    if let Some(number) = word.strip_prefix(b"cost:") {
        let value = decimal_f64(number).filter(|c| c.is_finite() && *c > 0.0);
        let value = value.ok_or_else(|| format!("{}: the cost must be a positive finite number", shown(word)))?;
        if cost.replace(value).is_some() {
            return Err("cost: appears twice".to_owned());
        }
        return Ok(word.len());
    }
    if word.starts_with(b"qid:") {
        return Err(format!("{} is for ranking data, which this task does not take", shown(word)));
    }
    Err(format!("{} is not INDEX:VALUE", shown(word)))
}

fn decimal_f64(word: &[u8]) -> Option<f64> {
    // The grammar of values, with the precision of f64.
    match decimal(word) {
        Ok(_) | Err(NoNumber::TooLarge) => fast_float2::parse(word).ok(),
        Err(_) => None,
    }
}
