//! The words that a grammar knows, and the classes of those that it does not.

use super::Tree;
use crate::data::dictionary::Dictionary;
use crate::error::{Error, Result};

/// Which words are terminals of their own, and the classes of all others.
///
/// A class tells what a word looks like: capitals and whether it is the first of its sentence, digits, a hyphen, an English
/// ending. Where training has not seen the class of a word, a more general one stands for it, and the class of all words for
/// what is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lexicon {
    /// Words, then classes.
    names: Dictionary,
    words: u32,
    /// The class of all words.
    all: u32,
}

/// The name of the class of all words. No word of a tree has brackets, so that no name of a class is a word.
const ALL: &[u8] = b"(any)";

/// Endings that tell a tag, the longer ones first.
const ENDINGS: [&str; 10] = ["ing", "ion", "est", "ity", "ed", "er", "ly", "al", "s", "y"];
/// An ending leaves at least so many letters before it.
const STEM: usize = 2;

impl Lexicon {
    /// The lexicon of trees: words that are seen fewer than `rare_below` times stand for their classes.
    pub(super) fn of(trees: &[&Tree], words: &Dictionary, rare_below: u32) -> Result<Self> {
        let full = || Error::model("more than 4294967294 different words and classes");
        let mut counts = vec![0_u32; words.len()];
        for &word in trees.iter().flat_map(|tree| tree.words()) {
            counts[word as usize] = counts[word as usize].saturating_add(1);
        }
        let is_rare = |word: u32| counts[word as usize] < rare_below;
        let mut names = Dictionary::new();
        for &word in trees.iter().flat_map(|tree| tree.words()).filter(|&&word| !is_rare(word)) {
            names.intern(words.name(word)).ok_or_else(full)?;
        }
        let own = names.len() as u32;
        let mut class = Vec::new();
        for tree in trees {
            for (at, &word) in tree.words().iter().enumerate().filter(|(_, word)| is_rare(**word)) {
                Look::of(words.name(word), at == 0).name(&mut class);
                names.intern(&class).ok_or_else(full)?;
            }
        }
        let all = names.intern(ALL).ok_or_else(full)?;
        Ok(Self { names, words: own, all })
    }

    /// Puts a lexicon together from its names, the first `words` of which are words.
    pub fn from_names(names: Dictionary, words: u32) -> Result<Self> {
        match names.get(ALL) {
            Some(all) if all >= words => Ok(Self { names, words, all }),
            _ => Err(Error::model("a lexicon without the class of all words: the file is damaged")),
        }
    }

    /// The names of the terminals: words, then classes.
    pub fn names(&self) -> &Dictionary {
        &self.names
    }

    /// Number of words among the terminals.
    pub fn words(&self) -> u32 {
        self.words
    }

    /// The class of all words.
    pub fn any(&self) -> u32 {
        self.all
    }

    /// The terminal of a word: itself, else the most special class that was seen, else that of all words. `is_first` tells
    /// whether a sentence begins with it.
    pub fn terminal(&self, word: &[u8], is_first: bool) -> u32 {
        if let Some(known) = self.names.get(word).filter(|&known| known < self.words) {
            return known;
        }
        let mut look = Look::of(word, is_first);
        let mut class = Vec::new();
        loop {
            look.name(&mut class);
            if let Some(seen) = self.names.get(&class).filter(|&seen| seen >= self.words) {
                return seen;
            }
            if !look.generalise() {
                return self.all;
            }
        }
    }
}

/// What a word looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    letters: Letters,
    has_digit: bool,
    has_hyphen: bool,
    /// One of [`ENDINGS`], or nothing.
    ending: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letters {
    None,
    Small,
    /// A capital begins the word that begins the sentence.
    First,
    /// A capital begins a word.
    Capital,
    /// Two and more, all capitals.
    Capitals,
}

impl Look {
    fn of(word: &[u8], is_first: bool) -> Self {
        // Bytes that are no text are no letters.
        let word = String::from_utf8_lossy(word);
        let mut letters = word.chars().filter(|c| c.is_alphabetic());
        let is_capital = |c: char| c.is_uppercase();
        let begins = word.chars().next().is_some_and(is_capital);
        let letters = match (letters.next(), letters.next()) {
            (None, _) => Letters::None,
            (Some(_), Some(_)) if word.chars().filter(|c| c.is_alphabetic()).all(is_capital) => Letters::Capitals,
            _ if begins && is_first => Letters::First,
            _ if begins => Letters::Capital,
            _ => Letters::Small,
        };
        let is_long = |ending: &&str| {
            word.len() >= ending.len() + STEM && word.ends_with(*ending) && letters != Letters::Capitals
        };
        // -ss, -us and -is are not endings but parts of words.
        let is_plain = |ending: &&str| *ending != "s" || !["ss", "us", "is"].iter().any(|end| word.ends_with(end));
        let ending = ENDINGS.into_iter().find(is_long).filter(is_plain).unwrap_or("");
        let has_digit = word.chars().any(char::is_numeric);
        Self { letters, has_digit, has_hyphen: word.contains('-'), ending }
    }

    /// Forgets the feature that says least; false where nothing is left.
    fn generalise(&mut self) -> bool {
        if self.letters == Letters::First {
            self.letters = Letters::Capital;
        } else if self.has_hyphen {
            self.has_hyphen = false;
        } else if !self.ending.is_empty() {
            self.ending = "";
        } else if self.has_digit && self.letters != Letters::None {
            self.letters = Letters::None;
        } else {
            return false;
        }
        true
    }

    /// Writes the name of its class.
    fn name(&self, name: &mut Vec<u8>) {
        name.clear();
        name.extend_from_slice(match self.letters {
            Letters::None => b"(sign",
            Letters::Small => b"(word",
            Letters::First => b"(First",
            Letters::Capital => b"(Word",
            Letters::Capitals => b"(WORD",
        });
        if self.has_digit {
            name.extend_from_slice(b" 0");
        }
        if self.has_hyphen {
            name.extend_from_slice(b" -");
        }
        if !self.ending.is_empty() {
            name.push(b' ');
            name.extend_from_slice(self.ending.as_bytes());
        }
        name.push(b')');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(word: &[u8], is_first: bool) -> String {
        let mut name = Vec::new();
        Look::of(word, is_first).name(&mut name);
        String::from_utf8(name).unwrap()
    }

    #[test]
    fn classes_tell_what_a_word_looks_like() {
        for (word, expected) in [
            ("cat", "(word)"),
            ("cats", "(word s)"),
            ("grass", "(word)"),
            ("virus", "(word)"),
            ("this", "(word)"),
            ("is", "(word)"),
            ("walking", "(word ing)"),
            ("ring", "(word)"),
            ("nation", "(word ion)"),
            ("Purest", "(Word est)"),
            ("happily", "(word ly)"),
            ("happy", "(word y)"),
            ("DNA", "(WORD)"),
            ("DNAs", "(Word s)"),
            ("A", "(Word)"),
            ("p53", "(word 0)"),
            ("BRCA2", "(WORD 0)"),
            ("1,000", "(sign 0)"),
            ("half-baked", "(word - ed)"),
            ("--", "(sign -)"),
            ("\u{c9}t\u{e9}", "(Word)"),
            ("", "(sign)"),
        ] {
            assert_eq!(class(word.as_bytes(), false), expected, "{word}");
        }
        assert_eq!(class(b"Cats", true), "(First s)");
        assert_eq!(class(b"cats", true), "(word s)");
        assert_eq!(class(b"\xff\xfe", true), "(sign)");
        assert_eq!(class(b"caf\xe9s", false), "(word s)");
    }

    fn lexicon(words: &[&str], classes: &[&str]) -> Lexicon {
        let mut names = Dictionary::new();
        for name in words.iter().chain(classes) {
            names.intern(name.as_bytes()).unwrap();
        }
        Lexicon::from_names(names, words.len() as u32).unwrap()
    }

    #[test]
    fn classes_back_off() {
        let lexicon = lexicon(&["the", "Cats"], &["(Word s)", "(Word)", "(sign 0)", "(any)"]);
        let name = |word: &str, is_first| {
            String::from_utf8_lossy(lexicon.names().name(lexicon.terminal(word.as_bytes(), is_first))).into_owned()
        };
        assert_eq!(name("the", true), "the");
        assert_eq!(name("Cats", true), "Cats");
        assert_eq!(name("Dogs", true), "(Word s)");
        assert_eq!(name("Low-Dogs", true), "(Word s)");
        assert_eq!(name("Walking", false), "(Word)");
        assert_eq!(name("X2a", false), "(sign 0)");
        assert_eq!(name("1990s", false), "(sign 0)");
        assert_eq!(name("dog", false), "(any)");
        // A word in a text that is not of trees may look like a class.
        assert_eq!(name("(Word)", false), "(any)");
    }

    #[test]
    fn damaged_lexicons_are_refused() {
        let mut names = Dictionary::new();
        names.intern(b"a").unwrap();
        assert!(Lexicon::from_names(names.clone(), 1).is_err());
        names.intern(ALL).unwrap();
        assert!(Lexicon::from_names(names.clone(), 2).is_err());
        assert!(Lexicon::from_names(names.clone(), 9).is_err());
        assert_eq!(Lexicon::from_names(names, 1).unwrap().words(), 1);
    }
}
