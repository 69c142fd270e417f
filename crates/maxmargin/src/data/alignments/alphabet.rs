//! Letters and marks, numbered.

use std::collections::{BTreeSet, HashMap};
use std::ops::AddAssign;

use super::{Record, Residues};
use crate::tasks::alignment::{MOST_LETTERS, NONE, Query, Sequence};

/// Letters with their numbers.
#[derive(Debug, Clone, Default)]
pub struct Alphabet {
    letters: Vec<char>,
    /// Of ASCII.
    codes: Vec<u8>,
    others: HashMap<char, u8>,
}

impl Alphabet {
    /// The 20 amino acids.
    pub const PROTEIN: &str = "ACDEFGHIKLMNPQRSTVWY";
    /// The four bases.
    pub const DNA: &str = "ACGT";

    /// These letters, or what is wrong with them.
    pub fn new(letters: impl IntoIterator<Item = char>) -> Result<Self, String> {
        let mut alphabet = Self { letters: Vec::new(), codes: vec![NONE; 128], others: HashMap::new() };
        for letter in letters {
            if letter.is_whitespace() || letter.is_control() || letter == super::GAP {
                return Err(format!("'{}' cannot be a letter", letter.escape_debug()));
            }
            if alphabet.code(letter) != NONE {
                return Err(format!("'{letter}' is there twice"));
            }
            if alphabet.letters.len() >= MOST_LETTERS as usize {
                return Err(format!("more than {MOST_LETTERS} letters are too many to tell apart"));
            }
            let code = alphabet.letters.len() as u8;
            match alphabet.codes.get_mut(letter as usize) {
                Some(place) => *place = code,
                None => drop(alphabet.others.insert(letter, code)),
            }
            alphabet.letters.push(letter);
        }
        Ok(alphabet)
    }

    /// The letters in the order of their numbers.
    pub fn letters(&self) -> &[char] {
        &self.letters
    }

    /// The number of a letter; [`NONE`] where it is not known.
    pub fn code(&self, letter: char) -> u8 {
        self.codes.get(letter as usize).copied().unwrap_or_else(|| self.others.get(&letter).copied().unwrap_or(NONE))
    }

    /// All letters of some records, ascending: of residues, or of marks.
    fn of<'r>(texts: impl Iterator<Item = &'r str>) -> Result<Self, String> {
        let mut ascii = [false; 128];
        let mut found = BTreeSet::new();
        for letter in texts.flat_map(str::chars) {
            match ascii.get_mut(letter as usize) {
                Some(is_there) => *is_there = true,
                None => drop(found.insert(letter)),
            }
        }
        found.extend((0_u8..).zip(ascii).filter(|(_, is_there)| *is_there).map(|(code, _)| char::from(code)));
        Self::new(found)
    }
}

/// The letters of residues, and of marks.
#[derive(Debug, Clone, Default)]
pub struct Alphabets {
    /// Of residues.
    pub letters: Alphabet,
    /// Of marks; empty: residues have none.
    pub marks: Alphabet,
}

/// Residues, and those of them whose letter is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Strangers {
    /// All.
    pub residues: u64,
    /// Those that are not known.
    pub unknown: u64,
}

impl AddAssign for Strangers {
    fn add_assign(&mut self, other: Self) {
        self.residues += other.residues;
        self.unknown += other.unknown;
    }
}

impl Alphabets {
    /// The letters of the records, unless `letters` says which, and their marks.
    pub fn learn(records: &[Record], letters: Option<Alphabet>) -> Result<Self, String> {
        let all = || records.iter().flat_map(|record| std::iter::once(&record.x).chain(&record.candidates));
        let letters = match letters {
            Some(letters) => letters,
            None => Alphabet::of(all().map(|residues| residues.letters.as_str()))?,
        };
        let marks = Alphabet::of(all().filter_map(|residues| residues.marks.as_deref()))?;
        Ok(Self { letters, marks })
    }

    /// Can the record be read with these? If not, why.
    pub fn check(&self, record: &Record) -> Result<(), String> {
        match (record.x.marks.is_some(), self.marks.letters().is_empty()) {
            // Sequences without residues have no marks to show.
            (true, true) if !record.x.letters.is_empty() => {
                Err("residues with marks (sx, sz, sdecoys), which the training data have not; leave them out"
                    .to_owned())
            }
            (false, false) => Err("sx, sz or sdecoys missing (the training data have marks)".to_owned()),
            _ => Ok(()),
        }
    }

    /// The record in numbers, and how many of its residues are not known.
    pub fn query(&self, record: &Record) -> (Query, Strangers) {
        let mut strangers = Strangers::default();
        let mut sequence = |residues: &Residues| {
            let letters: Vec<u8> = residues.letters.chars().map(|letter| self.letters.code(letter)).collect();
            let marks = residues.marks.as_deref().filter(|_| !self.marks.letters().is_empty());
            strangers += Strangers {
                residues: letters.len() as u64,
                unknown: letters.iter().map(|&code| u64::from(code == NONE)).sum(),
            };
            Sequence {
                letters,
                marks: marks.map_or(Vec::new(), |m| m.chars().map(|mark| self.marks.code(mark)).collect()),
            }
        };
        let query = Query {
            x: sequence(&record.x),
            candidates: record.candidates.iter().map(&mut sequence).collect(),
            given: None,
        };
        (query, strangers)
    }
}
