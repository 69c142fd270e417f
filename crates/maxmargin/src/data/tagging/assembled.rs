//! Sentences that are put together token by token, where there is no text to be read.

use crate::data::tagging::gathered::{BadLine, Training};
use crate::data::tagging::parsed::Parsed;
use crate::data::tagging::reading::NO_TOKENS;
use crate::data::tagging::rows::{Growing, Sink};
use crate::data::tagging::{Sequences, Vocabulary};
use crate::error::{Error, Result};
use crate::parallel::Pool;

/// Training sentences in the making: the same as [`read`](super::read) makes of them in CRFsuite's format.
#[derive(Debug)]
pub struct Assembly {
    training: Training,
    /// The sentences since the last piece: its names fit into a core's second cache.
    piece: Parsed<Growing>,
    /// Number of pieces before.
    pieces: u32,
}

/// The name of a feature in an [`Assembly`].
#[derive(Debug, Clone, Copy)]
pub struct Name {
    piece: u32,
    id: u32,
}

impl Default for Assembly {
    fn default() -> Self {
        Self { training: Training::after(0), piece: Parsed::new(Growing::default()), pieces: 0 }
    }
}

impl Assembly {
    /// Begins a token that has this tag. Fails where the tag is no word.
    pub fn begin_token(&mut self, tag: &str) -> std::result::Result<(), String> {
        if tag.is_empty() || tag.contains([' ', '\t', '\n', '\r']) {
            return Err(format!("the tag {tag:?} is empty or has a blank"));
        }
        self.piece.line += 1;
        self.piece.token(Some(tag.as_bytes()))?;
        self.piece.sink.begin_token(tag.as_bytes());
        Ok(())
    }

    /// A feature of the token. Those that come twice add up, a value of zero is none. Returns what
    /// [`feature_again`](Self::feature_again) takes.
    pub fn feature(&mut self, name: &[u8], value: f32) -> std::result::Result<Option<Name>, String> {
        check_name(name)?;
        if !value.is_finite() {
            return Err(format!("the value of {:?} is {value}, which is not finite", String::from_utf8_lossy(name)));
        }
        let id = if value == 0.0 { None } else { self.piece.sink.features.add(name, value) };
        Ok(id.map(|id| Name { piece: self.pieces, id }))
    }

    /// As [`feature`](Self::feature), without a look at the name. False where it is to be given once more: names are
    /// forgotten from time to time.
    #[inline]
    pub fn feature_again(&mut self, name: Name, value: f32) -> bool {
        let is_known = name.piece == self.pieces && value.is_finite();
        if is_known && value != 0.0 {
            self.piece.sink.features.add_known(name.id, value);
        }
        is_known
    }

    /// No more features of this token.
    pub fn end_token(&mut self) -> std::result::Result<(), String> {
        self.piece.sink.end_token()
    }

    /// No more tokens of this sentence; one without any is none.
    pub fn end_sentence(&mut self) -> std::result::Result<(), String> {
        const ENTRIES: usize = 1 << 16;
        self.piece.line += 1;
        self.piece.end_sentence();
        if self.piece.sink.features.entries() < ENTRIES {
            return Ok(());
        }
        self.end_piece().map_err(|(_, what)| what)
    }

    fn end_piece(&mut self) -> std::result::Result<(), BadLine> {
        self.pieces = self.pieces.wrapping_add(1);
        self.training.append(std::mem::replace(&mut self.piece, Parsed::new(Growing::default())))
    }

    /// The sentences, and the names of features of at least `min_count` tokens. `name`: what errors call them.
    pub fn finish(mut self, name: &str, min_count: u32, pool: &Pool) -> Result<(Sequences, Vocabulary)> {
        let bad = |(line, what): BadLine| Error::Parse { name: name.to_owned(), line, what };
        self.end_piece().map_err(bad)?;
        if self.training.size().0 == 0 {
            return Err(bad((1, NO_TOKENS.to_owned())));
        }
        let (mut sequences, vocabulary) = self.training.finish(min_count, false, pool);
        sequences.checksum = checksum(&sequences, &vocabulary);
        Ok((sequences, vocabulary))
    }
}

/// Can a feature have this name, in a line of text and in a model file?
pub fn check_name(name: &[u8]) -> std::result::Result<(), String> {
    if name.is_empty() {
        return Err("an attribute has no name".to_owned());
    }
    if memchr::memchr3(b'\t', b'\n', b'\r', name).is_some() {
        let name = String::from_utf8_lossy(name);
        return Err(format!("attribute {name:?} has a tab or a line end; replace it"));
    }
    Ok(())
}

/// CRC-32 of all that was put together.
fn checksum(sequences: &Sequences, vocabulary: &Vocabulary) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    let mut bytes = Vec::new();
    for (s, &end) in sequences.ends().iter().enumerate() {
        bytes.clear();
        bytes.extend((end as u64).to_le_bytes());
        for token in sequences.sentence(s) {
            bytes.extend(sequences.tags[token].to_le_bytes());
            let row = sequences.tokens.row(token);
            put(&mut bytes, row.indices().iter().map(|j| j.to_le_bytes()));
            put(&mut bytes, row.values().iter().map(|x| x.to_le_bytes()));
        }
        crc.update(&bytes);
    }
    crc.update(&vocabulary.features.to_bytes());
    vocabulary.tags.iter().for_each(|tag| crc.update(tag.as_bytes()));
    crc.finalize()
}

/// Appends words, many at once: byte by byte they would take ten times as long.
fn put(bytes: &mut Vec<u8>, words: impl ExactSizeIterator<Item = [u8; 4]>) {
    let at = bytes.len();
    bytes.resize(at + 4 * words.len(), 0);
    bytes[at..].as_chunks_mut().0.iter_mut().zip(words).for_each(|(place, word)| *place = word);
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::data::input::Input;
    use crate::data::tagging::{Format, crfsuite, read};
    use proptest::collection::vec;
    use proptest::prelude::*;

    type Token = (u8, Vec<(String, f32)>);

    fn assembled(sentences: &[Vec<Token>]) -> Assembly {
        let (mut assembly, mut known) = (Assembly::default(), HashMap::new());
        for sentence in sentences {
            for (tag, features) in sentence {
                assembly.begin_token(&format!("t{tag}")).unwrap();
                for (name, value) in features {
                    if !known.get(name).is_some_and(|&known| assembly.feature_again(known, *value)) {
                        let found = assembly.feature(name.as_bytes(), *value).unwrap();
                        known.extend(found.map(|found| (name.clone(), found)));
                    }
                }
                assembly.end_token().unwrap();
            }
            assembly.end_sentence().unwrap();
        }
        assembly
    }

    fn text(sentences: &[Vec<Token>]) -> Vec<u8> {
        let mut text = Vec::new();
        for sentence in sentences {
            for (tag, features) in sentence {
                text.extend(format!("t{tag}").into_bytes());
                for (name, value) in features {
                    text.push(b'\t');
                    crfsuite::escape(name.as_bytes(), &mut text);
                    text.extend(format!(":{value}").into_bytes());
                }
                text.push(b'\n');
            }
            text.push(b'\n');
        }
        text
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        /// Putting sentences together is reading their text.
        #[test]
        fn as_read(
            sentences in vec(vec((0_u8..4, vec(("[a-c:\\\\é]{1,3}", -4_i8..4), 0..5)), 1..4), 1..8),
            min_count in 1_u32..3,
        ) {
            let sentences: Vec<Vec<Token>> = sentences
                .into_iter()
                .map(|s| s.into_iter().map(|(t, f)| (t, f.into_iter().map(|(n, v)| (n, f32::from(v) / 2.0)).collect())).collect())
                .collect();
            let pool = Pool::new(2).unwrap();
            let (sequences, vocabulary) = assembled(&sentences).finish("data", min_count, &pool).unwrap();
            let text = text(&sentences);
            let input = Input::new("data", text.as_slice()).unwrap();
            let (mut read, names) = read(input, &Format::CrfSuite, min_count, &pool).unwrap();
            read.checksum = sequences.checksum;
            prop_assert_eq!(sequences, read);
            prop_assert_eq!(vocabulary, names);
        }
    }

    /// Beyond one piece.
    #[test]
    fn many_pieces() {
        let token = |i: usize| ((i % 3) as u8, (0..50).map(|k| (format!("{k}={}", i * k % 97), 1.0)).collect());
        let sentences: Vec<Vec<Token>> = (0..900).map(|s| (0..4).map(|t| token(4 * s + t)).collect()).collect();
        let pool = Pool::new(2).unwrap();
        let (sequences, vocabulary) = assembled(&sentences).finish("data", 1, &pool).unwrap();
        let text = text(&sentences);
        let (read, names) = read(Input::new("data", text.as_slice()).unwrap(), &Format::CrfSuite, 1, &pool).unwrap();
        assert!(sequences.tokens.nonzeros() > 2 << 16, "several pieces");
        assert_eq!((&sequences.tokens, &sequences.tags, &vocabulary), (&read.tokens, &read.tags, &names));
        let mut other = sentences;
        other[0][0].1[0].1 = 2.0;
        let (other, _) = assembled(&other).finish("data", 1, &pool).unwrap();
        assert_ne!(other.checksum, sequences.checksum, "other values are other data");
    }

    #[test]
    fn what_is_refused() {
        let mut assembly = Assembly::default();
        for tag in ["", "a b", "a\tb", "a\nb"] {
            assert!(assembly.begin_token(tag).unwrap_err().contains("empty or has a blank"));
        }
        assembly.begin_token("A").unwrap();
        assert!(assembly.feature(b"", 1.0).unwrap_err().contains("no name"));
        assert!(assembly.feature(b"a\nb", 1.0).unwrap_err().contains("line end"));
        assert!(assembly.feature(b"a", f32::NAN).unwrap_err().contains("not finite"));
        let nothing = Assembly::default().finish("data", 1, &Pool::new(1).unwrap()).unwrap_err();
        assert!(nothing.to_string().contains("no tokens"), "{nothing}");
    }
}
