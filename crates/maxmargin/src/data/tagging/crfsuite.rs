//! CRFsuite's format: a token a line, `TAG<TAB>ATTRIBUTE[:VALUE]<TAB>...`, an empty line after each sentence.

use crate::data::blocks::shown;
use crate::data::number::{NoNumber, decimal, short_decimal};
use crate::data::svmlight::LabelRule;
use crate::data::tagging::parsed::{Parsed, next_line};
use crate::data::tagging::rows::Sink;
use crate::data::tagging::sentences::Border;

/// Parses whole sentences.
pub(super) fn parse<S: Sink>(text: &[u8], rule: LabelRule, out: &mut Parsed<S>) -> Result<(), String> {
    let border = Border::EmptyLine { tabs: false };
    let mut name = Vec::new();
    let mut at = 0;
    while let Some(line) = next_line(text, &mut at) {
        out.line += 1;
        if border.is_empty_line(line) {
            out.end_sentence();
            continue;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let end = memchr::memchr(b'\t', line).unwrap_or(line.len());
        name.clear();
        unescape(&line[..end], &mut name);
        match name.as_slice() {
            [] if rule == LabelRule::Required => {
                return Err("tag missing at the start of the line (TAG<TAB>ATTRIBUTE<TAB>...)".to_owned());
            }
            [] => out.token(None)?,
            tag if memchr::memchr(b' ', tag).is_some() => {
                return Err(format!("tag {} contains a blank (tag and attributes are separated by tabs)", shown(tag)));
            }
            tag => out.token(Some(tag))?,
        }
        out.sink.begin_token(&name);
        let attributes = line.get(end + 1..).unwrap_or_default();
        if memchr::memchr2(b':', b'\\', attributes).is_none() {
            each(attributes, |plain| {
                if !plain.is_empty() {
                    out.sink.feature(plain, 1.0);
                }
                Ok(())
            })?;
        } else {
            each(attributes, |field| attribute(field, &mut name, &mut out.sink))?;
        }
        out.sink.end_token()?;
    }
    out.end_sentence();
    Ok(())
}

/// The fields between tabs.
#[inline]
fn each<'t>(mut text: &'t [u8], mut f: impl FnMut(&'t [u8]) -> Result<(), String>) -> Result<(), String> {
    while let Some(end) = memchr::memchr(b'\t', text) {
        f(&text[..end])?;
        text = &text[end + 1..];
    }
    f(text)
}

/// A field that may have a value, or escapes.
fn attribute<S: Sink>(field: &[u8], name: &mut Vec<u8>, sink: &mut S) -> Result<(), String> {
    name.clear();
    let Some(colon) = unescape(field, name) else {
        if !name.is_empty() {
            sink.feature(name, 1.0);
        }
        return Ok(());
    };
    let word = &field[colon.in_text + 1..];
    let value = match short_decimal(word) {
        Some((value, length)) if length == word.len() => value,
        _ => decimal(word).map_err(|cause| no_value(field, word, cause))?,
    };
    if colon.in_name == 0 {
        return Err(format!("attribute {} has no name before ':' (a ':' in a name is written '\\:')", shown(field)));
    }
    if value != 0.0 {
        sink.feature(&name[..colon.in_name], value);
    }
    Ok(())
}

/// Where the last colon without a backslash stands.
struct Colon {
    in_text: usize,
    in_name: usize,
}

/// Appends `text` to `name`, with `\:` and `\\` for `:` and `\`.
fn unescape(text: &[u8], name: &mut Vec<u8>) -> Option<Colon> {
    let mut colon = None;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match (byte, text.get(at + 1)) {
            (b'\\', Some(&next @ (b':' | b'\\'))) => {
                name.push(next);
                at += 1;
            }
            (b':', _) => {
                colon = Some(Colon { in_text: at, in_name: name.len() });
                name.push(byte);
            }
            _ => name.push(byte),
        }
        at += 1;
    }
    colon
}

/// Appends the name of a tag or of a feature to `text`, with `\:` and `\\` for `:` and `\`.
pub fn escape(name: &[u8], text: &mut Vec<u8>) {
    let mut name = name;
    while let Some(at) = memchr::memchr2(b':', b'\\', name) {
        text.extend_from_slice(&name[..at]);
        text.extend_from_slice(&[b'\\', name[at]]);
        name = &name[at + 1..];
    }
    text.extend_from_slice(name);
}

#[cold]
fn no_value(field: &[u8], word: &[u8], cause: NoNumber) -> String {
    let (field, word) = (shown(field), shown(word));
    match cause {
        NoNumber::Malformed => {
            format!("attribute {field}: its value {word} is not a decimal number (a ':' in a name is written '\\:')")
        }
        NoNumber::NotFinite => format!("attribute {field}: its value {word} is not a finite number"),
        NoNumber::TooLarge => format!("attribute {field}: its value {word} is too large (the largest is 3.4e38)"),
    }
}
