//! The names of texts that are read one by one, and the vocabulary of all of them.

use serde::{Deserialize, Serialize};

use super::Vocabulary;
use super::gathered::{Counted, Training, classes};
use super::rows::TOO_MANY;
use crate::data::dictionary::Dictionary;

/// The names of one text, in the order of their first appearance, with the number of tokens that have each.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Names {
    tags: Vec<Vec<u8>>,
    features: Vec<(Vec<u8>, u64)>,
    edges: Vec<(Vec<u8>, u64)>,
    columns: Option<u32>,
}

impl Names {
    pub(super) fn new(training: Training, columns: Option<u32>) -> Self {
        let (tags, features, edges) = training.into_names();
        let counted = |of: &Counted| of.names.iter().map(<[u8]>::to_vec).zip(of.tokens.iter().copied()).collect();
        let tags = tags.iter().map(<[u8]>::to_vec).collect();
        Self { tags, features: counted(&features), edges: counted(&edges), columns }
    }

    /// The vocabulary of several texts in that order: the one that [`read`](super::read) makes of all of them as one. Or what
    /// is wrong with them, and with which.
    pub fn vocabulary(texts: &[Self], min_count: u32) -> Result<Vocabulary, (usize, String)> {
        let (mut tags, mut features, mut edges) = (Dictionary::new(), Counted::default(), Counted::default());
        let columns = texts.first().and_then(|first| first.columns);
        for (at, text) in texts.iter().enumerate() {
            if text.columns != columns {
                let words = |columns: Option<u32>| columns.map_or_else(|| "no".to_owned(), |n| (n + 1).to_string());
                let what = format!("{} columns, but the first one has {}", words(text.columns), words(columns));
                return Err((at, what));
            }
            let too_many = || (at, TOO_MANY.to_owned());
            for tag in &text.tags {
                tags.intern(tag).ok_or_else(too_many)?;
            }
            for (names, all) in [(&text.features, &mut features), (&text.edges, &mut edges)] {
                let ids = all.names.intern_all(names.iter().map(|(name, _)| name.as_slice())).ok_or_else(too_many)?;
                ids.into_iter().zip(names).for_each(|(id, (_, tokens))| all.count(id, *tokens));
            }
        }
        let kept = |all: Counted| {
            let (mut names, _) = all.frequent(min_count);
            names.shrink();
            names
        };
        Ok(Vocabulary { tags: classes(&tags).0, features: kept(features), edges: kept(edges), columns })
    }
}
