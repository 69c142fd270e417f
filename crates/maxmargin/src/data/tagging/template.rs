//! Templates in CRF++'s language.

use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::data::blocks::shown;
use crate::data::tagging::columns::Sentence;
use crate::data::tagging::rows::Sink;
use crate::error::{Error, Result};

/// The largest distance of a row that a macro may name.
const FARTHEST: u64 = 1000;

/// What features tokens have, in CRF++'s template language.
///
/// A line is a feature. `%x[row,column]` in it stands for the text in a column of the token `row` places further on;
/// all else stands for itself. Lines that start with `U` are features of the token, those with `B` of the transition
/// into it (from the second token of a sentence on). A `B` line without a macro stands for the plain weights of
/// transitions, which every model has: it adds nothing. Lines that start with `#` and empty ones are skipped.
///
/// ```
/// use maxmargin::data::tagging::Template;
///
/// let template = Template::parse("template", b"# the word and the one before\nU00:%x[0,0]\nU01:%x[-1,0]/%x[0,0]\n\nB\n")?;
/// assert!(Template::parse("template", b"U00:%x[0]").is_err());
/// # Ok::<(), maxmargin::error::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Template {
    name: String,
    text: String,
    lines: Vec<Line>,
}

#[derive(Debug, Clone)]
struct Line {
    number: u64,
    of: Of,
    pieces: Vec<Piece>,
}

/// What a line gives features to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Token,
    Transition,
}

#[derive(Debug, Clone)]
enum Piece {
    Literal(String),
    Macro { row: isize, column: usize },
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Template {}

impl From<Template> for String {
    fn from(template: Template) -> Self {
        template.text
    }
}

impl TryFrom<String> for Template {
    type Error = Error;

    fn try_from(text: String) -> Result<Self> {
        Self::parse("template", text.as_bytes())
    }
}

impl Template {
    /// Reads a template; errors call it `name`.
    pub fn parse(name: &str, text: &[u8]) -> Result<Self> {
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.split(|&b| b == b'\n')) {
            let fail = |what| Error::Parse { name: name.to_owned(), line: number, what };
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let line = std::str::from_utf8(line).map_err(|_| fail("not valid UTF-8: save it as UTF-8".to_owned()))?;
            let line = if number == 1 { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line };
            let of = match line.bytes().next() {
                _ if line.trim().is_empty() => continue,
                Some(b'#') => continue,
                Some(b'U') => Of::Token,
                Some(b'B') => Of::Transition,
                _ => {
                    return Err(fail(format!(
                        "{} (a line starts with U for features of a token, B for those of a transition, or # for a comment)",
                        shown(line.as_bytes())
                    )));
                }
            };
            let pieces = pieces(line).map_err(fail)?;
            let has_macro = pieces.iter().any(|piece| matches!(piece, Piece::Macro { .. }));
            if of == Of::Token || has_macro {
                lines.push(Line { number, of, pieces });
            }
        }
        if lines.is_empty() {
            let what = "no features: at least one line such as U00:%x[0,0] is needed".to_owned();
            return Err(Error::Parse { name: name.to_owned(), line: 1, what });
        }
        let text = String::from_utf8_lossy(text).into_owned();
        Ok(Self { name: name.to_owned(), text, lines })
    }

    /// The text that it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Are there features of transitions?
    pub fn has_edges(&self) -> bool {
        self.lines.iter().any(|line| line.of == Of::Transition)
    }

    /// Does the file `data`, with so many columns before the tag, have all columns that the template names?
    pub(super) fn check(&self, columns: usize, data: &str) -> Result<()> {
        for line in &self.lines {
            for piece in &line.pieces {
                let Piece::Macro { row, column } = *piece else { continue };
                if column >= columns {
                    let have = match columns {
                        1 => "1 column before the tag, column 0".to_owned(),
                        _ => format!("{columns} columns before the tag, 0 to {}", columns - 1),
                    };
                    let what = format!("%x[{row},{column}]: there is no column {column}; {data} has {have}");
                    return Err(Error::Parse { name: self.name.clone(), line: line.number, what });
                }
            }
        }
        Ok(())
    }

    /// The features of a token, and of the transition into it.
    pub(super) fn features<S: Sink>(&self, sentence: &Sentence<'_>, token: usize, name: &mut Vec<u8>, sink: &mut S) {
        for line in &self.lines {
            if line.of == Of::Transition && token == 0 {
                continue;
            }
            name.clear();
            for piece in &line.pieces {
                match piece {
                    Piece::Literal(text) => name.extend_from_slice(text.as_bytes()),
                    Piece::Macro { row, column } => match sentence.at(token, *row) {
                        Ok(other) => name.extend_from_slice(sentence.field(other, *column)),
                        Err(beyond) => write!(name, "_B{beyond:+}").expect("memory takes all bytes"),
                    },
                }
            }
            match line.of {
                Of::Token => sink.feature(name, 1.0),
                Of::Transition => sink.edge(name),
            }
        }
    }
}

/// A line in literal text and macros.
fn pieces(line: &str) -> std::result::Result<Vec<Piece>, String> {
    if line.contains(|c: char| c.is_control()) {
        return Err("a tab or another control character (use a blank)".to_owned());
    }
    let mut pieces = Vec::new();
    let mut rest = line;
    while let Some((literal, after)) = rest.split_once('%') {
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal.to_owned()));
        }
        let end = after.find(']').map_or(after.len(), |n| n + 1);
        let (text, more) = after.split_at(end);
        let bad = || format!("{} is not %x[row,column], as in %x[-1,0]", shown(format!("%{text}").as_bytes()));
        let inner = text.strip_prefix("x[").and_then(|t| t.strip_suffix(']')).ok_or_else(bad)?;
        let (row, column) = inner.split_once(',').ok_or_else(bad)?;
        let is_number = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
        if !is_number(row.strip_prefix(['-', '+']).unwrap_or(row)) || !is_number(column) {
            return Err(bad());
        }
        let row: i64 = row.parse().unwrap_or(i64::MAX);
        if row.unsigned_abs() > FARTHEST {
            return Err(format!(
                "{}: the row may be {FARTHEST} tokens away at most",
                shown(format!("%{text}").as_bytes())
            ));
        }
        // A number too large for a column is one that no file has.
        let column = column.parse().unwrap_or(usize::MAX);
        pieces.push(Piece::Macro { row: row as isize, column });
        rest = more;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Literal(rest.to_owned()));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &[u8]) -> String {
        Template::parse("t", text).unwrap_err().to_string()
    }

    #[test]
    fn errors_name_the_line() {
        let lines = "(a line starts with U for features of a token, B for those of a transition, or # for a comment)";
        assert_eq!(error(b"U\nX01:%x[0,0]"), format!("t:2: 'X01:%x[0,0]' {lines}"));
        assert!(error(b"U0:%x[-9223372036854775808,0]").contains("1000 tokens away at most"));
        assert!(error(b"# nothing\nB\n").contains("t:1: no features"));
        assert_eq!(error(b" U01"), format!("t:1: ' U01' {lines}"));
        assert_eq!(error(b"#\n\nU:%x[0,0"), "t:3: '%x[0,0' is not %x[row,column], as in %x[-1,0]");
        for text in
            ["%", "%%", "%x", "%x[]", "%x[0]", "%x[0,-1]", "%x[--1,0]", "%y[0,0]", "%x[0, 0]", "%x[1.5,0]", "%X[0,0]"]
        {
            assert!(error(format!("B{text}").as_bytes()).contains("is not %x[row,column]"), "{text}");
        }
        assert_eq!(error(b"U%x[-1001,0]"), "t:1: '%x[-1001,0]': the row may be 1000 tokens away at most");
        assert!(error(b"U%x[-99999999999999999999999,0]").contains("at most"));
        assert_eq!(error(b"U01:\t%x[0,0]"), "t:1: a tab or another control character (use a blank)");
        assert_eq!(error(b"U\xff"), "t:1: not valid UTF-8: save it as UTF-8");
    }

    #[test]
    fn columns_are_checked_against_the_data() {
        let template = Template::parse("t", b"U%x[1000,1]\n\nB%x[-1,99999999999999999999999]").unwrap();
        assert!(template.has_edges());
        let message = |columns| template.check(columns, "d").unwrap_err().to_string();
        assert_eq!(message(1), "t:1: %x[1000,1]: there is no column 1; d has 1 column before the tag, column 0");
        assert_eq!(
            message(2),
            format!("t:3: %x[-1,{0}]: there is no column {0}; d has 2 columns before the tag, 0 to 1", usize::MAX)
        );
    }

    #[test]
    fn it_is_saved_as_its_text() {
        let text = "\u{feff}# c\r\nU01:%x[0,0]\r\nB\r\nBx";
        let template = Template::parse("t", text.as_bytes()).unwrap();
        assert!(!template.has_edges());
        let saved = serde_json::to_string(&template).unwrap();
        assert_eq!(saved, serde_json::to_string(text).unwrap());
        assert_eq!(serde_json::from_str::<Template>(&saved).unwrap(), template);
        assert!(serde_json::from_str::<Template>("\"nonsense\"").is_err());
    }
}
