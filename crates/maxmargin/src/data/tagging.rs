//! Tagged sentences: a token a line, features of tokens known by name.
//!
//! Three formats are read: columns (CoNLL), with features from a [`Template`] or [built in](Features::BuiltIn), and the
//! formats of SVM-hmm and CRFsuite, which list the features themselves. [`read`] takes a training file and makes the
//! [`Vocabulary`]; [`read_with`] takes other files with it; [`Stream`] goes through one in batches, in constant memory;
//! [`write_features`] shows what features the tokens of a columns file have. [`Assembly`] takes sentences that are no text.
//!
//! # Built-in features
//!
//! From the first column, the word. Characters are those of UTF-8, or bytes where a word is not UTF-8; `l` stands for
//! the lower-cased word.
//!
//! | name | value | of `Zaman` in `Al - Zaman :` |
//! |---|---|---|
//! | `w=` | the word | `w=Zaman` |
//! | `l=` | l | `l=zaman` |
//! | `p1=` to `p4=` | first 1 to 4 characters of l, if it has so many | `p1=z` ... `p4=zama` |
//! | `s1=` to `s4=` | last 1 to 4 characters of l | `s1=n` ... `s4=aman` |
//! | `sh=` | shape: X, x and d for capitals, other letters and digits, other characters as they are; runs squeezed | `sh=Xx` |
//! | `digit`, `hyphen` | the word has one | |
//! | `capital` | its first character is one | `capital` |
//! | `capitals` | it has capitals and no other letters | |
//! | `first`, `last` | in the sentence | |
//! | `w-2=`, `w-1=`, `w+1=`, `w+2=` | l of the neighbours; `_B-1`, `_B-2` before and `_B+1`, `_B+2` after the sentence | `w-2=al`, `w-1=-`, `w+1=:`, `w+2=_B+1` |
//! | `w-1,0=`, `w0,+1=` | l of two words | `w-1,0=- zaman`, `w0,+1=zaman :` |
//! | `s3-1=`, `s3+1=` | last 3 characters of a neighbour's l | |
//! | `sh-1=`, `sh+1=` | shape of a neighbour | `sh-1=-`, `sh+1=:` |
//! | `bias` | always there | `bias` |
//!
//! From each further column, here the second: `c1=`, its values around `c1-2=`, `c1-1=`, `c1+1=`, `c1+2=`, and the pairs
//! `c1-1,0=`, `c10,+1=`.

mod assembled;
mod builtin;
mod columns;
mod crfsuite;
mod gathered;
mod lines;
mod names;
mod numbered;
mod parsed;
mod reading;
mod rows;
mod sentences;
mod stream;
mod svmhmm;
mod template;
mod written;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::data::dictionary::Dictionary;
use crate::data::tagging::lines::Lines;
use crate::sparse::SparseMatrix;

pub use assembled::{Assembly, BadToken, Name, Settled, check_name};
pub use crfsuite::escape;
pub use names::Names;
pub use reading::{read, read_in_pieces, read_with, read_with_in_pieces, survey};
pub use stream::{Batch, Line, Stream};
pub use template::Template;
pub use written::write_features;

/// How a file of tagged sentences is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// CoNLL: columns between tabs and blanks, the last one the tag; an empty line between sentences.
    Columns(Features),
    /// `TAG qid:N INDEX:VALUE ... # comment`; lines with the same N are a sentence. A feature's name is its index.
    SvmHmm,
    /// `TAG<TAB>ATTRIBUTE[:VALUE]<TAB>...`, with `\:` and `\\` for `:` and `\`; an empty line between sentences.
    CrfSuite,
}

/// Where the features of columns come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Features {
    /// The set that the [module's page](self) lists.
    BuiltIn,
    /// A template.
    Template(Template),
}

/// The names of a training file: what numbers in [`Sequences`] stand for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vocabulary {
    /// Tags, ascending: by value where all are numbers (`1` and `1.0` are one tag), by bytes otherwise.
    pub tags: Vec<String>,
    /// Features of tokens.
    pub features: Dictionary,
    /// Features of transitions.
    pub edges: Dictionary,
    /// Columns before the tag, of the columns format.
    pub columns: Option<u32>,
}

/// What a vocabulary lacked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unseen {
    /// Tokens with features that were left out.
    pub features: u64,
    /// Tokens with a tag that is not in the vocabulary.
    pub tags: u64,
}

/// Sentences, as features and tags of their tokens.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sequences {
    /// One row for each token; columns are ids of [`Vocabulary::features`]. Values of zero are not stored.
    pub tokens: SparseMatrix,
    /// One row for each token: the features of the transition into it, by ids of [`Vocabulary::edges`]. The first tokens
    /// of sentences have none. `None` where the format has no such features.
    pub edges: Option<SparseMatrix>,
    /// The tag of each token, or [`UNSEEN`](Self::UNSEEN).
    pub tags: Vec<u32>,
    /// What the vocabulary lacked; nothing after [`read`].
    pub unseen: Unseen,
    /// CRC-32 of the text (unpacked), by which a model remembers its data; 0 for a batch of a [`Stream`].
    pub checksum: u32,
    /// Tokens with tags that the vocabulary lacks, ascending, and these.
    strange: Vec<(usize, String)>,
    /// Where sentences end.
    ends: Vec<usize>,
    lines: Lines,
}

impl Sequences {
    /// The tag of a token that has none, or one that the vocabulary lacks.
    pub const UNSEEN: u32 = Dictionary::NONE;

    /// Number of sentences.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// No sentences?
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The tokens of a sentence; none is empty.
    pub fn sentence(&self, sentence: usize) -> Range<usize> {
        let start = if sentence == 0 { 0 } else { self.ends[sentence - 1] };
        start..self.ends[sentence]
    }

    /// Where sentences end: sentence `s` ends before token `ends()[s]`, where the next one starts.
    pub fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The data's own word for the tag of a token that the vocabulary lacks; `?` where it has none.
    pub fn unseen_tag(&self, token: usize) -> &str {
        self.strange.binary_search_by_key(&token, |s| s.0).map_or("?", |at| &self.strange[at].1)
    }

    /// The line, from 1, on which a token stands.
    pub fn line(&self, token: usize) -> u64 {
        assert!(token < self.tags.len(), "there are {} tokens", self.tags.len());
        self.lines.line(token)
    }
}
