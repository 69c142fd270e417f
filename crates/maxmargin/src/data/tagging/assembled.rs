//! Sentences that are put together token by token, where there is no text to be read.

use crate::data::dictionary::Dictionary;
use crate::data::tagging::numbered::{Given, Numbered};
use crate::data::tagging::parsed::Parsed;
use crate::data::tagging::reading::NO_TOKENS;
use crate::data::tagging::rows::TOO_MANY;
use crate::data::tagging::{Sequences, Vocabulary};
use crate::error::{Error, Result};
use crate::parallel::{Beside, available};

/// Training sentences in the making: the same as [`read`](super::read) makes of them in CRFsuite's format.
///
/// Who gives them is busy with finding them. So names are only collected here; they are looked up, and rows sorted, piece
/// by piece on another thread.
#[derive(Debug)]
pub struct Assembly {
    numbered: Beside<Numbered, Parsed<Given>, BadToken>,
    /// The sentences since the last piece.
    piece: Parsed<Given>,
    /// How often names were forgotten, and how many were given since.
    age: u32,
    names: u32,
    /// Features of the piece whose names were spelled out, and where these are most, names that were given lately.
    spelled: usize,
    recent: Option<Recent>,
}

/// Names and their numbers, few enough for a core's second cache.
#[derive(Debug, Default)]
struct Recent {
    names: Dictionary,
    ids: Vec<u32>,
}

impl Recent {
    /// The number of a name: `next` for one that is new.
    fn id(&mut self, name: &[u8], next: u32) -> u32 {
        let at = self.names.intern(name).map_or(self.ids.len(), |at| at as usize);
        self.ids.get(at).copied().unwrap_or_else(|| {
            self.ids.push(next);
            next
        })
    }
}

/// A name that was given to an [`Assembly`].
#[derive(Debug, Clone, Copy)]
pub struct Name {
    age: u32,
    id: u32,
}

/// A token that cannot be taken, by its place in its sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadToken {
    /// From 0, of those that have tokens.
    pub sentence: usize,
    /// From 0.
    pub token: usize,
    /// What is wrong with it.
    pub what: String,
}

impl Default for Assembly {
    fn default() -> Self {
        Self::on(1)
    }
}

impl Assembly {
    /// Features of a piece: much more than it takes to hand it over, much less than there are.
    const PIECE: usize = 1 << 14;
    /// So many names are remembered, 4 bytes each. There may be as many as there are features, where each is a new string.
    const REMEMBERED: u32 = 1 << 20;
    /// So many of them with their letters.
    const RECENT: usize = 1 << 14;

    /// With so many threads, that of the caller among them; 0 means one for each core. More than two have nothing to do.
    pub fn on(threads: usize) -> Self {
        let threads = if threads == 0 { available() } else { threads };
        let numbered = Beside::new(Numbered::default, Numbered::append, threads);
        Self { numbered, piece: Parsed::new(Given::default()), age: 0, names: 0, spelled: 0, recent: None }
    }

    /// Begins a token that has this tag. Fails where the tag is no word.
    pub fn begin_token(&mut self, tag: &str) -> std::result::Result<(), String> {
        if tag.is_empty() || tag.contains([' ', '\t', '\n', '\r']) {
            return Err(format!("the tag {tag:?} is empty or has a blank"));
        }
        self.piece.line += 1;
        self.piece.token(Some(tag.as_bytes()))
    }

    /// A feature of the token. Those that come twice add up, a value of zero is none. Returns what
    /// [`feature_again`](Self::feature_again) takes.
    pub fn feature(&mut self, name: &[u8], value: f32) -> std::result::Result<Option<Name>, String> {
        check_name(name)?;
        if !value.is_finite() {
            return Err(format!("the value of {:?} is {value}, which is not finite", String::from_utf8_lossy(name)));
        }
        if value == 0.0 {
            return Ok(None);
        }
        let next = self.names;
        let id = self.recent.as_mut().map_or(next, |recent| recent.id(name, next));
        if id == next {
            self.names = next.checked_add(1).ok_or(TOO_MANY)?;
            self.piece.sink.name(name);
        }
        self.spelled += 1;
        self.piece.sink.feature(id, value);
        Ok(Some(Name { age: self.age, id }))
    }

    /// As [`feature`](Self::feature), without a look at the name. False where it is to be given once more: names are
    /// forgotten from time to time.
    #[inline]
    pub fn feature_again(&mut self, name: Name, value: f32) -> bool {
        let is_known = name.age == self.age && value.is_finite();
        if is_known && value != 0.0 {
            self.piece.sink.feature(name.id, value);
        }
        is_known
    }

    /// No more features of this token.
    pub fn end_token(&mut self) {
        self.piece.sink.end_token();
    }

    /// No more tokens of this sentence; one without any is none. False where a token before cannot be taken:
    /// [`settle`](Self::settle) says which.
    pub fn end_sentence(&mut self) -> bool {
        self.piece.line += 1;
        self.piece.end_sentence();
        self.piece.sink.features() < Self::PIECE || self.end_piece()
    }

    fn end_piece(&mut self) -> bool {
        let begins_anew = self.names >= Self::REMEMBERED;
        if begins_anew {
            (self.age, self.names) = (self.age.wrapping_add(1), 0);
        }
        // Names that are known by what `feature` returned need no look at their letters. Where they are not, most come again soon.
        let is_spelled = 2 * self.spelled > self.piece.sink.features();
        let is_good = |recent: &Recent| is_spelled && !begins_anew && recent.ids.len() < Self::RECENT;
        self.recent = self.recent.take().filter(is_good).or_else(|| is_spelled.then(Recent::default));
        self.spelled = 0;
        let next = Parsed::new(Given::new(begins_anew));
        self.numbered.give(std::mem::replace(&mut self.piece, next)).is_ok()
    }

    /// Waits until all tokens that have ended are taken, or tells of the first that cannot be.
    pub fn settle(mut self) -> std::result::Result<Settled, BadToken> {
        self.end_piece();
        Ok(Settled(self.numbered.end()?))
    }
}

/// Training sentences that were put together.
#[derive(Debug)]
pub struct Settled(Numbered);

impl Settled {
    /// The sentences, and the names of features of at least `min_count` tokens. `name`: what errors call them.
    pub fn finish(self, name: &str, min_count: u32) -> Result<(Sequences, Vocabulary)> {
        if self.0.is_empty() {
            return Err(Error::Parse { name: name.to_owned(), line: 1, what: NO_TOKENS.to_owned() });
        }
        let (mut sequences, vocabulary) = self.0.finish(min_count);
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
    use crate::parallel::Pool;
    use proptest::collection::vec;
    use proptest::prelude::*;

    type Token = (u8, Vec<(String, f32)>);

    /// With names that are known again, or spelled out each time.
    fn assembled(sentences: &[Vec<Token>], threads: usize, spells: bool) -> Settled {
        let (mut assembly, mut known) = (Assembly::on(threads), HashMap::new());
        for sentence in sentences {
            for (tag, features) in sentence {
                assembly.begin_token(&format!("t{tag}")).unwrap();
                for (name, value) in features {
                    let known_name = known.get(name).filter(|_| !spells);
                    if !known_name.is_some_and(|&known| assembly.feature_again(known, *value)) {
                        let found = assembly.feature(name.as_bytes(), *value).unwrap();
                        known.extend(found.map(|found| (name.clone(), found)));
                    }
                }
                assembly.end_token();
            }
            assert!(assembly.end_sentence());
        }
        assembly.settle().unwrap()
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
            threads in 1_usize..3,
            spells in any::<bool>(),
        ) {
            let sentences: Vec<Vec<Token>> = sentences
                .into_iter()
                .map(|s| s.into_iter().map(|(t, f)| (t, f.into_iter().map(|(n, v)| (n, f32::from(v) / 2.0)).collect())).collect())
                .collect();
            let pool = Pool::new(2).unwrap();
            let (sequences, vocabulary) = assembled(&sentences, threads, spells).finish("data", min_count).unwrap();
            let text = text(&sentences);
            let input = Input::new("data", text.as_slice()).unwrap();
            let (mut read, names) = read(input, &Format::CrfSuite, min_count, &pool).unwrap();
            read.checksum = sequences.checksum;
            prop_assert_eq!(sequences, read);
            prop_assert_eq!(vocabulary, names);
        }
    }

    /// Beyond one piece, and more names than are remembered.
    #[test]
    fn many_pieces() {
        let token = |i: usize| ((i % 3) as u8, (0..50).map(|k| (format!("{k}={}", i * k % 97), 1.0)).collect());
        let sentences: Vec<Vec<Token>> = (0..900).map(|s| (0..4).map(|t| token(4 * s + t)).collect()).collect();
        let pool = Pool::new(2).unwrap();
        let text = text(&sentences);
        let (read, names) = read(Input::new("data", text.as_slice()).unwrap(), &Format::CrfSuite, 1, &pool).unwrap();
        for (threads, spells) in [(1, false), (2, false), (1, true), (2, true)] {
            let (sequences, vocabulary) = assembled(&sentences, threads, spells).finish("data", 1).unwrap();
            assert!(sequences.tokens.nonzeros() > 2 * Assembly::PIECE, "several pieces");
            assert_eq!((&sequences.tokens, &sequences.tags, &vocabulary), (&read.tokens, &read.tags, &names));
            let mut other = sentences.clone();
            other[0][0].1[0].1 = 2.0;
            let (other, _) = assembled(&other, threads, spells).finish("data", 1).unwrap();
            assert_ne!(other.checksum, sequences.checksum, "other values are other data");
        }
    }

    #[test]
    fn names_are_forgotten_in_time() {
        let mut assembly = Assembly::default();
        let mut first = None;
        let count = 3 * u64::from(Assembly::REMEMBERED) / 2;
        for i in 0..count {
            assembly.begin_token("A").unwrap();
            // First all are new, then few: both are forgotten when there have been too many.
            let number = if i < count / 2 { i } else { i % 7 };
            let name = assembly.feature(number.to_string().as_bytes(), 1.0).unwrap().unwrap();
            let known = *first.get_or_insert(name);
            assert_eq!(assembly.feature_again(known, 0.5), known.age == assembly.age);
            assembly.end_token();
            assert!(assembly.end_sentence());
        }
        assert_eq!(assembly.age, 1);
        let (sequences, vocabulary) = assembly.settle().unwrap().finish("data", 1).unwrap();
        assert_eq!((sequences.len() as u64, vocabulary.features.len() as u64), (count, count / 2));
        let row = |i: u64| sequences.tokens.row(i as usize).iter().collect::<Vec<_>>();
        assert_eq!((row(0), row(1)), (vec![(0, 1.5)], vec![(0, 0.5), (1, 1.0)]));
    }

    /// The first token whose values sum to too much is told, whoever finds it and when; one that has not ended is not looked at.
    #[test]
    fn bad_tokens_have_a_place() {
        for threads in [1, 2] {
            let mut assembly = Assembly::on(threads);
            let give_twice = |assembly: &mut Assembly, value| {
                assembly.begin_token("A").unwrap();
                let name = assembly.feature(b"a", value).unwrap().unwrap();
                assert!(assembly.feature_again(name, value));
            };
            for sentence in 0..2 * Assembly::PIECE {
                for token in 0..3 {
                    give_twice(&mut assembly, if sentence >= 5 && token == 1 { f32::MAX } else { 1.0 });
                    assembly.end_token();
                }
                if !assembly.end_sentence() {
                    break;
                }
            }
            let bad = assembly.settle().unwrap_err();
            assert_eq!((bad.sentence, bad.token), (5, 1));
            assert!(bad.what.contains("sum to more than"), "{}", bad.what);
            let mut assembly = Assembly::on(threads);
            give_twice(&mut assembly, f32::MAX);
            assert!(assembly.settle().is_ok());
        }
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
        let nothing = Assembly::default().settle().unwrap().finish("data", 1).unwrap_err();
        assert!(nothing.to_string().contains("no tokens"), "{nothing}");
    }
}
