//! Parsed pieces, put together in the order of the text.

use crate::data::dictionary::Dictionary;
use crate::data::labels::{value, values};
use crate::data::tagging::lines::Lines;
use crate::data::tagging::parsed::Parsed;
use crate::data::tagging::rows::{Fixed, Growing, NewRows, TOO_MANY};
use crate::data::tagging::svmhmm::Groups;
use crate::data::tagging::{Sequences, Unseen, Vocabulary};
use crate::parallel::Pool;
use crate::sparse::SparseMatrix;

/// A line of the whole text and what is wrong with it.
pub(super) type BadLine = (u64, String);

/// What the pieces of all kinds have.
#[derive(Debug, Default)]
pub(super) struct Outline {
    pub(super) tags: Vec<u32>,
    pub(super) ends: Vec<usize>,
    lines: Lines,
    groups: Groups,
    line: u64,
}

impl Outline {
    /// Adds the next piece, with tags as `tag_ids` renumbers them.
    pub(super) fn append<S>(&mut self, piece: &mut Parsed<S>, tag_ids: &[u32]) -> Result<(), BadLine> {
        for &(group, line) in &piece.groups {
            if !self.groups.insert(group) {
                let what =
                    format!("qid:{group} comes back after another one (the tokens of a sentence stand together)");
                return Err((self.line + line, what));
            }
        }
        if let Some(what) = piece.error.take() {
            return Err((self.line + piece.line, what));
        }
        let tokens = self.tags.len();
        self.tags.extend(piece.tags.iter().map(|&id| tag_ids.get(id as usize).copied().unwrap_or(Dictionary::NONE)));
        self.ends.extend(piece.ends.iter().map(|end| tokens + end));
        self.lines.append(&piece.lines, tokens, self.line);
        self.line += piece.line;
        Ok(())
    }

    /// Gives the tags their places among all tags in order, which are returned.
    pub(super) fn classify(&mut self, tag_names: &Dictionary) -> Vec<String> {
        let (tags, classes) = classes(tag_names);
        for tag in &mut self.tags {
            *tag = classes.get(*tag as usize).copied().unwrap_or(Dictionary::NONE);
        }
        tags
    }

    pub(super) fn into_sequences(self, tokens: SparseMatrix, edges: Option<SparseMatrix>) -> Sequences {
        let Self { tags, ends, lines, .. } = self;
        Sequences { tokens, edges, tags, ends, lines, ..Sequences::default() }
    }
}

/// The names of the whole text, with the number of tokens that have each.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) names: Dictionary,
    pub(super) tokens: Vec<u64>,
}

impl Counted {
    /// The numbers that a piece's names have in the whole.
    fn merge(&mut self, rows: &mut NewRows) -> Option<Vec<u32>> {
        let ids = self.names.intern_all(rows.names().map(|(name, _)| name))?;
        for (&id, (_, tokens)) in ids.iter().zip(rows.names()) {
            self.count(id, u64::from(tokens));
        }
        rows.forget_names();
        Some(ids)
    }

    /// So many more tokens have the name of this number.
    pub(super) fn count(&mut self, id: u32, tokens: u64) {
        match self.tokens.get_mut(id as usize) {
            Some(count) => *count += tokens,
            None => self.tokens.push(tokens),
        }
    }

    /// The names of at least `min_count` tokens, and the new number of each old one.
    pub(super) fn frequent(self, min_count: u32) -> (Dictionary, Vec<u32>) {
        let Self { mut names, tokens } = self;
        let new_ids = names.retain(|id| tokens[id as usize] >= u64::from(min_count));
        (names, new_ids)
    }
}

/// Rows of a piece, with the numbers of its names in the whole.
#[derive(Debug)]
struct Rows {
    rows: NewRows,
    ids: Vec<u32>,
}

/// A training text so far.
#[derive(Debug, Default)]
pub(super) struct Training {
    outline: Outline,
    tag_names: Dictionary,
    features: Counted,
    edges: Counted,
    feature_rows: Vec<Rows>,
    edge_rows: Vec<Rows>,
}

impl Training {
    /// The text starts after `line` lines without tokens.
    pub(super) fn after(line: u64) -> Self {
        Self { outline: Outline { line, ..Outline::default() }, ..Self::default() }
    }

    /// Adds the next piece.
    pub(super) fn append(&mut self, mut piece: Parsed<Growing>) -> Result<(), BadLine> {
        let tag_ids: Vec<u32> = piece.tag_names.iter().filter_map(|name| self.tag_names.intern(name)).collect();
        self.outline.append(&mut piece, &tag_ids)?;
        let line = self.outline.line;
        let Growing { features, edges } = piece.sink;
        for (mut rows, whole, pieces) in
            [(features, &mut self.features, &mut self.feature_rows), (edges, &mut self.edges, &mut self.edge_rows)]
        {
            let ids = whole.merge(&mut rows).ok_or_else(|| (line, TOO_MANY.to_owned()))?;
            pieces.push(Rows { rows, ids });
        }
        Ok(())
    }

    /// Number of tokens and lines.
    pub(super) fn size(&self) -> (usize, u64) {
        (self.outline.tags.len(), self.outline.line)
    }

    /// The names alone: of tags, of features and of transitions.
    pub(super) fn into_names(self) -> (Dictionary, Counted, Counted) {
        (self.tag_names, self.features, self.edges)
    }

    /// All sentences, and the names; features of fewer than `min_count` tokens are left out.
    pub(super) fn finish(self, min_count: u32, has_edges: bool, pool: &Pool) -> (Sequences, Vocabulary) {
        let Self { mut outline, tag_names, features, edges, feature_rows, edge_rows } = self;
        let tags = outline.classify(&tag_names);
        let (tokens, features) = kept(features, feature_rows, min_count, pool);
        let (edge_matrix, edges) = kept(edges, edge_rows, min_count, pool);
        let sequences = outline.into_sequences(tokens, has_edges.then_some(edge_matrix));
        (sequences, Vocabulary { tags, features, edges, columns: None })
    }
}

/// The rows of all pieces, over the names of at least `min_count` tokens.
fn kept(all: Counted, pieces: Vec<Rows>, min_count: u32, pool: &Pool) -> (SparseMatrix, Dictionary) {
    /// Pieces for each thread that are there both in the old numbers and in the new ones.
    const AT_ONCE: usize = 2;
    let (mut names, new_ids) = all.frequent(min_count);
    let mut matrix = SparseMatrix::new();
    matrix.reserve(0, pieces.iter().map(|piece| piece.rows.entries()).sum());
    let mut pieces = pieces.into_iter();
    loop {
        let some: Vec<Rows> = pieces.by_ref().take(AT_ONCE * pool.threads()).collect();
        if some.is_empty() {
            break;
        }
        let parts = pool.map(some, |mut piece| {
            for id in &mut piece.ids {
                *id = new_ids[*id as usize];
            }
            piece.rows.renumbered(&piece.ids)
        });
        for part in parts {
            matrix.append(part);
        }
    }
    matrix.set_columns(names.len() as u32);
    matrix.shrink();
    names.shrink();
    (matrix, names)
}

/// The tags in order, and the place of each old number among them.
pub(super) fn classes(names: &Dictionary) -> (Vec<String>, Vec<u32>) {
    let names: Vec<String> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let mut order: Vec<usize> = (0..names.len()).collect();
    let numbers = values(&names);
    match &numbers {
        // Equal numbers stay in the order of their first appearance: that word names the tag.
        Some(numbers) => order.sort_by(|&a, &b| (numbers[a] + 0.0).total_cmp(&(numbers[b] + 0.0))),
        None => order.sort_by(|&a, &b| names[a].cmp(&names[b])),
    }
    let mut class_of = vec![0; names.len()];
    let mut tags: Vec<String> = Vec::new();
    let mut last = None;
    for id in order {
        let number = numbers.as_ref().map(|numbers| numbers[id]);
        if number.is_none() || number != last {
            tags.push(names[id].clone());
        }
        last = number;
        class_of[id] = tags.len() as u32 - 1;
    }
    (tags, class_of)
}

/// A text over a vocabulary so far.
#[derive(Debug)]
pub(super) struct Known<'v> {
    outline: Outline,
    tokens: SparseMatrix,
    edges: SparseMatrix,
    unseen: Unseen,
    /// Tokens with tags that the vocabulary lacks, and these.
    strange: Vec<(usize, String)>,
    tags: &'v [String],
    /// Values of the tags, where all are numbers.
    numbers: Option<Vec<f64>>,
}

impl<'v> Known<'v> {
    /// The text starts after `line` lines.
    pub(super) fn after(line: u64, vocabulary: &'v Vocabulary) -> Self {
        let tags = vocabulary.tags.as_slice();
        let (tokens, edges, unseen) = <(SparseMatrix, SparseMatrix, Unseen)>::default();
        let (outline, strange) = (Outline { line, ..Outline::default() }, Vec::new());
        Self { outline, tokens, edges, unseen, strange, tags, numbers: values(tags) }
    }

    /// Adds the next piece.
    pub(super) fn append(&mut self, mut piece: Parsed<Fixed<'_>>) -> Result<(), BadLine> {
        let tag_ids: Vec<u32> =
            piece.tag_names.iter().map(|name| self.class(name).unwrap_or(Dictionary::NONE)).collect();
        // `?` stands for an unknown tag, unless there is a tag of that name: nothing is amiss.
        let amiss: Vec<bool> =
            piece.tag_names.iter().zip(&tag_ids).map(|(name, &id)| id == Dictionary::NONE && name != b"?").collect();
        let is_amiss = |id: &u32| amiss.get(*id as usize).copied().unwrap_or(false);
        let tokens = self.outline.tags.len();
        for (at, &id) in piece.tags.iter().enumerate().filter(|(_, id)| is_amiss(id)) {
            self.unseen.tags += 1;
            let name = piece.tag_names.name(id);
            self.strange.push((tokens + at, String::from_utf8_lossy(name).into_owned()));
        }
        self.outline.append(&mut piece, &tag_ids)?;
        let Fixed { features, edges, left_out } = piece.sink;
        self.unseen.features += left_out;
        self.tokens.append(features.matrix);
        self.edges.append(edges.matrix);
        Ok(())
    }

    /// The number of a tag.
    fn class(&self, name: &[u8]) -> Option<u32> {
        let name = std::str::from_utf8(name).ok()?;
        let found = match &self.numbers {
            Some(numbers) => {
                let number = value(name)?;
                numbers.binary_search_by(|v| (v + 0.0).total_cmp(&(number + 0.0)))
            }
            None => self.tags.binary_search_by(|tag| tag.as_str().cmp(name)),
        };
        found.ok().map(|class| class as u32)
    }

    /// Number of tokens and lines.
    pub(super) fn size(&self) -> (usize, u64) {
        (self.outline.tags.len(), self.outline.line)
    }

    /// The sentences so far; the next ones start anew.
    pub(super) fn take(&mut self, has_edges: bool) -> Sequences {
        let Outline { tags, ends, lines, .. } = &mut self.outline;
        Sequences {
            tokens: std::mem::take(&mut self.tokens),
            edges: has_edges.then_some(std::mem::take(&mut self.edges)),
            tags: std::mem::take(tags),
            unseen: std::mem::take(&mut self.unseen),
            strange: std::mem::take(&mut self.strange),
            ends: std::mem::take(ends),
            lines: std::mem::take(lines),
            checksum: 0,
        }
    }
}
