//! The features that tokens have when no template is given.

use crate::data::tagging::columns::Sentence;
use crate::data::tagging::rows::Sink;

/// Longest prefix and suffix, in characters.
const LONGEST_AFFIX: usize = 4;

/// Names of the places around a token, with what stands for a word outside the sentence.
const AROUND: [(isize, &[u8]); 4] = [(-2, b"-2="), (-1, b"-1="), (1, b"+1="), (2, b"+2=")];

/// What stands for a word at a place outside the sentence.
fn mark<'m>(distance: isize) -> &'m [u8] {
    match distance {
        -1 => b"_B-1",
        1 => b"_B+1",
        ..=0 => b"_B-2",
        _ => b"_B+2",
    }
}

/// What a word looks like.
#[derive(Debug, Clone, Copy)]
struct Form {
    /// Ends of the lower-cased word and of the shape in `BuiltIn::text`; the word starts where the shape before ends.
    lower: usize,
    shape: usize,
    /// Are its characters those of UTF-8, or bytes?
    is_utf8: bool,
    /// Which of `SIGNS` it has.
    signs: [bool; 4],
}

/// A digit, a hyphen, a capital at the start, capitals and no other letters.
const SIGNS: [&[u8]; 4] = [b"digit", b"hyphen", b"capital", b"capitals"];

/// Makes the features, in memory that is used again and again.
#[derive(Debug, Default)]
pub(super) struct BuiltIn {
    text: Vec<u8>,
    forms: Vec<Form>,
}

impl BuiltIn {
    /// Looks at the words of a sentence.
    pub(super) fn prepare(&mut self, sentence: &Sentence<'_>) {
        self.text.clear();
        self.forms.clear();
        for token in 0..sentence.len() {
            let form = form(sentence.field(token, 0), &mut self.text);
            self.forms.push(form);
        }
    }

    fn lower(&self, token: usize) -> &[u8] {
        let start = if token == 0 { 0 } else { self.forms[token - 1].shape };
        &self.text[start..self.forms[token].lower]
    }

    fn shape(&self, token: usize) -> &[u8] {
        let form = &self.forms[token];
        &self.text[form.lower..form.shape]
    }

    /// The features of a token of the sentence that was [prepared](Self::prepare).
    pub(super) fn features<S: Sink>(&self, sentence: &Sentence<'_>, token: usize, name: &mut Vec<u8>, sink: &mut S) {
        let mut emit = |parts: &[&[u8]]| {
            name.clear();
            for part in parts {
                name.extend_from_slice(part);
            }
            sink.feature(name, 1.0);
        };
        let form = self.forms[token];
        let lower = self.lower(token);
        emit(&[b"w=", sentence.field(token, 0)]);
        emit(&[b"l=", lower]);
        for (length, label) in (1..=LONGEST_AFFIX).zip([b"p1=", b"p2=", b"p3=", b"p4="]) {
            let Some(end) = prefix(lower, length, form.is_utf8) else { break };
            emit(&[label, &lower[..end]]);
        }
        for (length, label) in (1..=LONGEST_AFFIX).zip([b"s1=", b"s2=", b"s3=", b"s4="]) {
            let Some(start) = suffix(lower, length, form.is_utf8) else { break };
            emit(&[label, &lower[start..]]);
        }
        emit(&[b"sh=", self.shape(token)]);
        let place = [(token == 0, b"first".as_slice()), (token + 1 == sentence.len(), b"last")];
        for (is_there, label) in form.signs.into_iter().zip(SIGNS).chain(place) {
            if is_there {
                emit(&[label]);
            }
        }
        let word_at = |distance| sentence.at(token, distance).map_or_else(mark, |other| self.lower(other));
        for (distance, place) in AROUND {
            emit(&[b"w", place, word_at(distance)]);
        }
        emit(&[b"w-1,0=", word_at(-1), b" ", lower]);
        emit(&[b"w0,+1=", lower, b" ", word_at(1)]);
        for (distance, place) in &AROUND[1..3] {
            let Ok(other) = sentence.at(token, *distance) else { continue };
            let lower = self.lower(other);
            if let Some(start) = suffix(lower, 3, self.forms[other].is_utf8) {
                emit(&[b"s3", place, &lower[start..]]);
            }
            emit(&[b"sh", place, self.shape(other)]);
        }
        for column in 1..sentence.columns() {
            let mut label = [b'c'; 24];
            let label = numbered(column, &mut label);
            let here = sentence.field(token, column);
            let value_at =
                |distance| sentence.at(token, distance).map_or_else(mark, |other| sentence.field(other, column));
            emit(&[label, b"=", here]);
            for (distance, place) in AROUND {
                emit(&[label, place, value_at(distance)]);
            }
            emit(&[label, b"-1,0=", value_at(-1), b" ", here]);
            emit(&[label, b"0,+1=", here, b" ", value_at(1)]);
        }
        emit(&[b"bias"]);
    }
}

/// `c` and the number of a column.
fn numbered(mut column: usize, label: &mut [u8; 24]) -> &[u8] {
    let mut at = label.len();
    while column > 0 {
        at -= 1;
        label[at] = b'0' + (column % 10) as u8;
        column /= 10;
    }
    label[at - 1] = b'c';
    &label[at - 1..]
}

/// Does a character start at this byte?
fn is_start(byte: u8, is_utf8: bool) -> bool {
    !is_utf8 || byte & 0xc0 != 0x80
}

/// Where the first `length` characters end, if there are so many.
#[inline]
fn prefix(word: &[u8], length: usize, is_utf8: bool) -> Option<usize> {
    let mut end = 0;
    for _ in 0..length {
        word.get(end)?;
        end += 1;
        while word.get(end).is_some_and(|&b| !is_start(b, is_utf8)) {
            end += 1;
        }
    }
    Some(end)
}

/// Where the last `length` characters start, if there are so many.
#[inline]
fn suffix(word: &[u8], length: usize, is_utf8: bool) -> Option<usize> {
    let mut start = word.len();
    for _ in 0..length {
        start = start.checked_sub(1)?;
        while !is_start(word[start], is_utf8) {
            start -= 1;
        }
    }
    Some(start)
}

/// Appends the lower-cased word and its shape to `text`, and says what else there is to see.
fn form(word: &[u8], text: &mut Vec<u8>) -> Form {
    let utf8 = if word.is_ascii() { None } else { std::str::from_utf8(word).ok() };
    let (mut has_upper, mut has_lower, mut has_digit) = (false, false, false);
    let (lower, starts_capital);
    let mut squeezed = None;
    if let Some(word) = utf8 {
        for c in word.chars().flat_map(char::to_lowercase) {
            text.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
        lower = text.len();
        for c in word.chars() {
            let class = match c {
                _ if c.is_uppercase() => 'X',
                _ if c.is_alphabetic() => 'x',
                _ if c.is_numeric() => 'd',
                _ => c,
            };
            has_upper |= class == 'X';
            has_lower |= class == 'x';
            has_digit |= class == 'd';
            if squeezed.replace(class) != Some(class) {
                text.extend_from_slice(class.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        starts_capital = word.chars().next().is_some_and(char::is_uppercase);
    } else {
        text.extend(word.iter().map(u8::to_ascii_lowercase));
        lower = text.len();
        for &byte in word {
            let class = match byte {
                b'A'..=b'Z' => 'X',
                // Letters, in most encodings of one byte a character.
                b'a'..=b'z' | 0x80.. => 'x',
                b'0'..=b'9' => 'd',
                _ => char::from(byte),
            };
            has_upper |= class == 'X';
            has_lower |= class == 'x';
            has_digit |= class == 'd';
            if squeezed.replace(class) != Some(class) {
                text.push(class as u8);
            }
        }
        starts_capital = word.first().is_some_and(u8::is_ascii_uppercase);
    }
    let signs = [has_digit, word.contains(&b'-'), starts_capital, has_upper && !has_lower];
    Form { lower, shape: text.len(), is_utf8: utf8.is_some(), signs }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_words() {
        let of = |word: &[u8]| {
            let mut text = Vec::new();
            let form = form(word, &mut text);
            let (lower, shape) = text.split_at(form.lower);
            let flags: String = "dhca".chars().zip(form.signs).filter(|f| f.1).map(|f| f.0).collect();
            (lower.to_vec(), String::from_utf8(shape.to_vec()).unwrap(), flags)
        };
        let expect =
            |lower: &str, shape: &str, flags: &str| (lower.as_bytes().to_vec(), shape.to_owned(), flags.to_owned());
        assert_eq!(of(b"Al-Zaman"), expect("al-zaman", "Xx-Xx", "hc"));
        assert_eq!(of(b"U.S."), expect("u.s.", "X.X.", "ca"));
        assert_eq!(of(b"F-16s"), expect("f-16s", "X-dx", "dhc"));
        assert_eq!(of(b"1,500"), expect("1,500", "d,d", "d"));
        assert_eq!(of("ÉCOLE".as_bytes()), expect("école", "X", "ca"));
        assert_eq!(of("straße…".as_bytes()), expect("straße…", "x…", ""));
        assert_eq!(of("İ٣".as_bytes()), expect("i\u{307}٣", "Xd", "dca"));
        assert_eq!(of(b"Caf\xc9"), (b"caf\xc9".to_vec(), "Xx".to_owned(), "c".to_owned()));
    }

    #[test]
    fn affixes_are_of_characters() {
        let word = "ďábel".as_bytes();
        let affixes = |n| {
            let (end, start) = (prefix(word, n, true)?, suffix(word, n, true)?);
            Some((std::str::from_utf8(&word[..end]).unwrap(), std::str::from_utf8(&word[start..]).unwrap()))
        };
        assert_eq!(affixes(1), Some(("ď", "l")));
        assert_eq!(affixes(4), Some(("ďábe", "ábel")));
        assert_eq!(affixes(5), Some(("ďábel", "ďábel")));
        assert_eq!(affixes(6), None);
        assert_eq!((prefix(b"\x80\x80", 1, false), suffix(b"\x80\x80", 2, false)), (Some(1), Some(0)));
    }

    #[test]
    fn columns_are_numbered() {
        for column in [1, 9, 10, 123_456, usize::MAX] {
            assert_eq!(numbered(column, &mut [0; 24]), format!("c{column}").as_bytes());
        }
    }
}
