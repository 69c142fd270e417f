//! Features that come with numbers for their names, in the order in which these were first given.

use crate::data::dictionary::Dictionary;
use crate::data::tagging::gathered::{Counted, Outline};
use crate::data::tagging::parsed::Parsed;
use crate::data::tagging::rows::{Row, TOO_MANY};
use crate::data::tagging::{BadToken, Sequences, Vocabulary};
use crate::sparse::SparseMatrix;

/// The features of some tokens.
#[derive(Debug, Default)]
pub(super) struct Given {
    /// Are all names before forgotten?
    begins_anew: bool,
    /// Names that follow those before, one after the other; the same one may come twice.
    names: Vec<u8>,
    name_ends: Vec<usize>,
    /// The names of the features, by the order in which they were given since they were last forgotten.
    ids: Vec<u32>,
    /// Their values; none while all are 1, as they mostly are.
    values: Option<Vec<f32>>,
    /// Where the features of tokens end.
    ends: Vec<usize>,
}

impl Given {
    /// The next ones; after `begins_anew` all names have to be given again.
    pub(super) fn new(begins_anew: bool) -> Self {
        Self { begins_anew, ..Self::default() }
    }

    /// Gives the name that follows those before.
    pub(super) fn name(&mut self, name: &[u8]) {
        self.names.extend_from_slice(name);
        self.name_ends.push(self.names.len());
    }

    /// A feature of the token.
    #[inline]
    pub(super) fn feature(&mut self, id: u32, value: f32) {
        if value != 1.0 || self.values.is_some() {
            self.values.get_or_insert_with(|| vec![1.0; self.ids.len()]).push(value);
        }
        self.ids.push(id);
    }

    pub(super) fn end_token(&mut self) {
        self.ends.push(self.ids.len());
    }

    /// Number of features.
    pub(super) fn features(&self) -> usize {
        self.ids.len()
    }

    fn each_name(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.name_ends.iter().copied());
        starts.zip(&self.name_ends).map(|(start, &end)| &self.names[start..end])
    }
}

/// All sentences so far.
#[derive(Debug, Default)]
pub(super) struct Numbered {
    outline: Outline,
    tag_names: Dictionary,
    features: Counted,
    /// The number among all names of each that is not forgotten.
    ids: Vec<u32>,
    row: Row,
    tokens: SparseMatrix,
}

impl Numbered {
    /// Adds the next piece.
    pub(super) fn append(&mut self, mut piece: Parsed<Given>) -> Result<(), BadToken> {
        let tag_ids: Vec<u32> = piece.tag_names.iter().filter_map(|name| self.tag_names.intern(name)).collect();
        let ended = self.outline.append(&mut piece, &tag_ids);
        debug_assert!(ended.is_ok(), "there is no text that could be wrong");
        let given = piece.sink;
        if given.begins_anew {
            self.ids.clear();
        }
        let Counted { names, tokens } = &mut self.features;
        let Some(new) = names.intern_all(given.each_name()) else {
            return Err(self.bad(TOO_MANY.to_owned()));
        };
        tokens.resize(names.len(), 0);
        self.ids.extend(new);
        let mut start = 0;
        for &end in &given.ends {
            for at in start..end {
                self.row.add(self.ids[given.ids[at] as usize], given.values.as_ref().map_or(1.0, |values| values[at]));
            }
            start = end;
            let ended = self.row.end(&mut self.tokens, |id| self.features.tokens[id as usize] += 1);
            ended.map_err(|what| self.bad(what))?;
        }
        Ok(())
    }

    /// The token whose row is being filled.
    fn bad(&self, what: String) -> BadToken {
        let (token, ends) = (self.tokens.rows(), &self.outline.ends);
        let sentence = ends.partition_point(|&end| end <= token);
        let start = sentence.checked_sub(1).map_or(0, |before| ends[before]);
        BadToken { sentence, token: token - start, what }
    }

    /// No tokens?
    pub(super) fn is_empty(&self) -> bool {
        self.outline.tags.is_empty()
    }

    /// All sentences, and the names; features of fewer than `min_count` tokens are left out.
    pub(super) fn finish(self, min_count: u32) -> (Sequences, Vocabulary) {
        let Self { mut outline, tag_names, features, mut tokens, .. } = self;
        let tags = outline.classify(&tag_names);
        let all = features.names.len();
        let (mut names, new_ids) = features.frequent(min_count);
        if names.len() < all {
            tokens.renumber(|id| Some(new_ids[id as usize]).filter(|&id| id != Dictionary::NONE));
        }
        tokens.set_columns(names.len() as u32);
        tokens.shrink();
        names.shrink();
        let vocabulary = Vocabulary { tags, features: names, ..Vocabulary::default() };
        (outline.into_sequences(tokens, None), vocabulary)
    }
}
