//! Where the features of tokens go: into rows over new names, or over those of a vocabulary.

use crate::data::dictionary::{Dictionary, Together};
use crate::sparse::SparseMatrix;

/// Takes the features of one token after the other.
pub(super) trait Sink {
    /// The next token, and its tag as the text has it.
    fn begin_token(&mut self, tag: &[u8]);

    /// A feature of the token.
    fn feature(&mut self, name: &[u8], value: f32);

    /// A feature of the transition into the token.
    fn edge(&mut self, name: &[u8]);

    /// No more features of this token.
    fn end_token(&mut self) -> Result<(), String>;
}

const TOO_LARGE: &str = "the values of a feature that is given more than once sum to more than 3.4e38";
pub(super) const TOO_MANY: &str = "more than 4294967294 different features";

/// A name's own record while its file is read.
#[derive(Debug, Clone, Copy)]
struct Count {
    /// Tokens with this feature.
    tokens: u32,
    /// Its last entry.
    at: usize,
}

/// Rows over the names that appear in them.
#[derive(Debug, Default)]
pub(super) struct NewRows {
    names: Dictionary,
    counts: Vec<Count>,
    /// The names of the entries.
    ids: Vec<u32>,
    /// Their values; none while all are 1, as they are in most texts.
    values: Option<Vec<f32>>,
    ends: Vec<usize>,
    /// The first entry of the row that is being filled.
    start: usize,
    error: Option<&'static str>,
}

impl NewRows {
    /// Adds an entry; returns the number of its name.
    #[inline]
    pub(super) fn add(&mut self, name: &[u8], value: f32) -> Option<u32> {
        let id = self.names.intern(name);
        match id {
            Some(id) => self.add_known(id, value),
            None => self.error = Some(TOO_MANY),
        }
        id
    }

    /// As [`add`](Self::add), of a name that has this number.
    #[inline]
    pub(super) fn add_known(&mut self, id: u32, value: f32) {
        let at = self.ids.len();
        if let Some(count) = self.counts.get_mut(id as usize) {
            if count.at >= self.start {
                let sum = &mut self.values.get_or_insert_with(|| vec![1.0; at])[count.at];
                *sum += value;
                if !sum.is_finite() {
                    self.error = Some(TOO_LARGE);
                }
                return;
            }
            *count = Count { tokens: count.tokens.saturating_add(1), at };
        } else {
            debug_assert_eq!(self.counts.len(), id as usize, "names are numbered as they come");
            self.counts.push(Count { tokens: 1, at });
        }
        self.ids.push(id);
        if value != 1.0 || self.values.is_some() {
            self.values.get_or_insert_with(|| vec![1.0; at]).push(value);
        }
    }

    fn end(&mut self) -> Result<(), String> {
        self.start = self.ids.len();
        self.ends.push(self.start);
        self.error.map_or(Ok(()), |what| Err(what.to_owned()))
    }

    /// Each name with the number of tokens that have it.
    pub(super) fn names(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.names.iter().zip(self.counts.iter().map(|count| count.tokens))
    }

    /// Gives back what only reading needs.
    pub(super) fn forget_names(&mut self) {
        (self.names, self.counts) = (Dictionary::new(), Vec::new());
        self.ids.shrink_to_fit();
        self.values.iter_mut().for_each(Vec::shrink_to_fit);
        self.ends.shrink_to_fit();
    }

    /// Number of entries.
    pub(super) fn entries(&self) -> usize {
        self.ids.len()
    }

    /// The rows with other numbers for the names; [`Dictionary::NONE`] leaves a feature out.
    pub(super) fn renumbered(&self, new_ids: &[u32]) -> SparseMatrix {
        let mut matrix = SparseMatrix::new();
        matrix.reserve(self.ends.len(), self.ids.len());
        let mut row = Vec::new();
        let mut start = 0;
        for &end in &self.ends {
            row.clear();
            let ids = self.ids[start..end].iter().map(|&id| new_ids[id as usize]);
            match &self.values {
                None => row.extend(ids.map(|id| (id, 1.0))),
                Some(values) => row.extend(ids.zip(values[start..end].iter().copied())),
            }
            row.retain(|&(id, value)| id != Dictionary::NONE && value != 0.0);
            row.sort_unstable_by_key(|&(id, _)| id);
            matrix.push_row(row.iter().copied());
            start = end;
        }
        matrix
    }
}

/// Collects features and transitions under the names that appear.
#[derive(Debug, Default)]
pub(super) struct Growing {
    pub(super) features: NewRows,
    pub(super) edges: NewRows,
}

impl Sink for Growing {
    fn begin_token(&mut self, _tag: &[u8]) {}

    #[inline]
    fn feature(&mut self, name: &[u8], value: f32) {
        let _ = self.features.add(name, value);
    }

    fn edge(&mut self, name: &[u8]) {
        let _ = self.edges.add(name, 1.0);
    }

    fn end_token(&mut self) -> Result<(), String> {
        self.features.end()?;
        self.edges.end()
    }
}

/// A row in the making: its features come in any order, some perhaps more than once.
#[derive(Debug, Default)]
pub(super) struct Row {
    /// In the high half the numbers of the features, in the low one the places of their values.
    entries: Vec<u64>,
    values: Vec<f32>,
}

impl Row {
    #[inline]
    pub(super) fn add(&mut self, id: u32, value: f32) {
        self.entries.push(u64::from(id) << 32 | self.values.len() as u64);
        self.values.push(value);
    }

    /// Adds the row to a matrix, and begins anew. `seen` is told of each feature, once, even if its values sum to zero.
    pub(super) fn end(&mut self, matrix: &mut SparseMatrix, mut seen: impl FnMut(u32)) -> Result<(), String> {
        let Self { entries, values } = self;
        // Places ascend for each feature: a sum is taken in the order of the text, whoever takes it.
        entries.sort_unstable();
        let mut rest = entries.drain(..).map(|entry| ((entry >> 32) as u32, values[entry as u32 as usize])).peekable();
        while let Some((id, mut value)) = rest.next() {
            while let Some((_, more)) = rest.next_if(|&(next, _)| next == id) {
                value += more;
            }
            if !value.is_finite() {
                return Err(TOO_LARGE.to_owned());
            }
            seen(id);
            if value != 0.0 {
                matrix.push(id, value);
            }
        }
        drop(rest);
        values.clear();
        matrix.end_row();
        Ok(())
    }
}

/// Rows over the names of a dictionary.
#[derive(Debug)]
pub(super) struct KnownRows<'v> {
    names: &'v Dictionary,
    /// The features of the row that is being filled, with their values.
    asked: Together<f32>,
    /// Those that are known.
    row: Row,
    pub(super) matrix: SparseMatrix,
}

impl<'v> KnownRows<'v> {
    fn new(names: &'v Dictionary) -> Self {
        let mut matrix = SparseMatrix::new();
        matrix.set_columns(names.len() as u32);
        Self { names, asked: Together::default(), row: Row::default(), matrix }
    }

    #[inline]
    fn add(&mut self, name: &[u8], value: f32) {
        self.asked.ask(self.names, name, value);
    }

    /// Was a feature left out?
    fn end(&mut self) -> Result<bool, String> {
        let Self { names, asked, row, matrix } = self;
        let mut left_out = false;
        asked.answer(names, |id, value| match id {
            Some(id) => row.add(id, value),
            None => left_out = true,
        });
        row.end(matrix, |_| ())?;
        Ok(left_out)
    }
}

/// Collects the features and transitions that a vocabulary knows.
#[derive(Debug)]
pub(super) struct Fixed<'v> {
    pub(super) features: KnownRows<'v>,
    pub(super) edges: KnownRows<'v>,
    /// Tokens with features that were left out.
    pub(super) left_out: u64,
}

impl<'v> Fixed<'v> {
    pub(super) fn new(features: &'v Dictionary, edges: &'v Dictionary) -> Self {
        Self { features: KnownRows::new(features), edges: KnownRows::new(edges), left_out: 0 }
    }
}

impl Sink for Fixed<'_> {
    fn begin_token(&mut self, _tag: &[u8]) {}

    #[inline]
    fn feature(&mut self, name: &[u8], value: f32) {
        self.features.add(name, value);
    }

    fn edge(&mut self, name: &[u8]) {
        self.edges.add(name, 1.0);
    }

    fn end_token(&mut self) -> Result<(), String> {
        let features = self.features.end()?;
        let edges = self.edges.end()?;
        self.left_out += u64::from(features || edges);
        Ok(())
    }
}
