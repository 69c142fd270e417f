//! SVM-hmm's format: a token a line, `TAG qid:N INDEX:VALUE ... # comment`; lines with the same N are a sentence.

use std::collections::BTreeMap;

use crate::data::blocks::shown;
use crate::data::svmlight::{LabelRule, line};
use crate::data::tagging::parsed::{Parsed, next_line};
use crate::data::tagging::rows::Sink;
use crate::sparse::SparseMatrix;

/// Parses whole sentences.
pub(super) fn parse<S: Sink>(text: &[u8], rule: LabelRule, out: &mut Parsed<S>) -> Result<(), String> {
    let mut rows = SparseMatrix::new();
    let mut name = Vec::new();
    let mut last = None;
    let mut at = 0;
    while let Some(line) = next_line(text, &mut at) {
        out.line += 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Some(parts) = line::parts(line, rule)? else { continue };
        let (group, rest) = qid(parts.rest)?;
        if last.replace(group) != Some(group) {
            out.end_sentence();
            out.groups.push((group, out.line));
        }
        out.token(parts.label)?;
        out.sink.begin_token(parts.label.unwrap_or_default());
        if line::features(rest, &mut rows)?.is_some() {
            return Err("cost: is for single examples, not for tokens".to_owned());
        }
        rows.end_row();
        for (column, value) in rows.row(rows.rows() - 1).iter() {
            name.clear();
            decimal(u64::from(column) + 1, &mut name);
            out.sink.feature(&name, value);
        }
        out.sink.end_token()?;
    }
    out.end_sentence();
    Ok(())
}

fn trim(text: &[u8]) -> &[u8] {
    &text[text.iter().position(|b| !matches!(b, b' ' | b'\t')).unwrap_or(text.len())..]
}

fn word(text: &[u8]) -> &[u8] {
    &text[..text.iter().position(|b| matches!(b, b' ' | b'\t' | b'#' | b'\r' | b'\n')).unwrap_or(text.len())]
}

/// The number of a `qid:N` at the start of a text; none where it is malformed.
fn number(word: &[u8]) -> Option<u64> {
    let digits = word.strip_prefix(b"qid:").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Takes `qid:N` from the start of what follows the tag.
fn qid(text: &[u8]) -> Result<(u64, &[u8]), String> {
    let text = trim(text);
    let word = word(text);
    let Some(group) = number(word) else {
        return Err(match word {
            [] => "qid:N missing after the tag (it says which sentence a token is of)".to_owned(),
            _ if word.starts_with(b"qid:") => format!("{}: N must be a whole number below 2^64", shown(word)),
            _ => format!("{} where qid:N must stand (it says which sentence a token is of)", shown(word)),
        });
    };
    let rest = &text[word.len()..];
    if trim(rest).starts_with(b"qid:") {
        return Err("qid: appears twice".to_owned());
    }
    Ok((group, rest))
}

/// The group of a line, at a glance; none for a line without a token, or a bad one.
pub(super) fn group(line: &[u8]) -> Option<u64> {
    let line = trim(line);
    let first = word(line);
    number(first).or_else(|| number(word(trim(&line[first.len()..]))))
}

fn decimal(mut number: u64, text: &mut Vec<u8>) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    text.extend_from_slice(&digits[at..]);
}

/// The groups so far, as ranges: files that count their sentences need a single one.
#[derive(Debug, Default)]
pub(super) struct Groups {
    /// First and last of each range.
    ranges: BTreeMap<u64, u64>,
}

impl Groups {
    /// Notes a group; false if it was there before.
    pub(super) fn insert(&mut self, group: u64) -> bool {
        let before = self.ranges.range(..=group).next_back().map(|(&first, &last)| (first, last));
        if before.is_some_and(|(_, last)| last >= group) {
            return false;
        }
        let last = group.checked_add(1).and_then(|next| self.ranges.remove(&next)).unwrap_or(group);
        match before {
            Some((first, end)) if end + 1 == group => self.ranges.insert(first, last),
            _ => self.ranges.insert(group, last),
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn groups_are_seen_at_a_glance() {
        for (line, expected) in [
            ("N qid:3 1:1", Some(3)),
            ("\tN  qid:03#x", Some(3)),
            ("qid:7\r\n", Some(7)),
            ("# qid:7", None),
            ("N #qid:7", None),
            ("N 1:1 qid:3", None),
            ("N qid:", None),
            ("N qid:+1", None),
            ("", None),
        ] {
            assert_eq!(group(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn indices_are_written_in_decimal() {
        for number in [0, 9, 10, 4_294_967_295, u64::MAX] {
            let mut text = Vec::new();
            decimal(number, &mut text);
            assert_eq!(text, number.to_string().into_bytes());
        }
    }

    proptest! {
        #[test]
        fn groups_are_a_set(groups in proptest::collection::vec(prop_oneof![0_u64..12, u64::MAX - 3..=u64::MAX], 0..30)) {
            let (mut ranges, mut set) = (Groups::default(), HashSet::new());
            for group in groups {
                prop_assert_eq!(ranges.insert(group), set.insert(group));
            }
        }
    }
}
