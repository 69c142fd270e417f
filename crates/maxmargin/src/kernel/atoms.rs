//! The vectors that examples are made of, each kept once.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::sparse::{SparseMatrix, SparseView};

/// Distinct vectors, and which of them each row of some data is.
#[derive(Debug, Clone, Default)]
pub struct Atoms {
    vectors: SparseMatrix,
    /// By hash: the atoms that have it.
    places: HashMap<u64, Vec<u32>>,
}

impl Atoms {
    /// The distinct vectors, in the order in which they were first met.
    pub fn vectors(&self) -> &SparseMatrix {
        &self.vectors
    }

    /// The vectors alone.
    pub fn into_vectors(self) -> SparseMatrix {
        self.vectors
    }

    /// Takes in the rows of a matrix; returns their numbers as one-hot rows: 1 in the column of the vector's number.
    pub fn one_hot(&mut self, rows: &SparseMatrix) -> SparseMatrix {
        let mut numbers = SparseMatrix::new();
        numbers.reserve(rows.rows(), rows.rows());
        for i in 0..rows.rows() {
            let atom = self.number(rows.row(i));
            numbers.push_row([(atom, 1.0)]);
        }
        numbers
    }

    fn number(&mut self, row: SparseView<'_>) -> u32 {
        let mut hasher = DefaultHasher::new();
        row.indices().hash(&mut hasher);
        row.values().iter().for_each(|v| v.to_bits().hash(&mut hasher));
        let same = self.places.entry(hasher.finish()).or_default();
        if let Some(&atom) = same.iter().find(|&&atom| self.vectors.row(atom as usize) == row) {
            return atom;
        }
        let atom = self.vectors.rows() as u32;
        same.push(atom);
        self.vectors.push_row(row.iter());
        atom
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_vectors_are_kept_once() {
        let mut rows = SparseMatrix::new();
        rows.push_row([(0, 1.0), (2, -1.0)]);
        rows.push_row([]);
        rows.push_row([(0, 1.0), (2, -1.0)]);
        rows.push_row([(0, 1.0)]);
        let mut atoms = Atoms::default();
        let hot = atoms.one_hot(&rows);
        let numbers: Vec<u32> = (0..4).map(|i| hot.row(i).indices()[0]).collect();
        assert_eq!(numbers, [0, 1, 0, 2]);
        assert_eq!(atoms.vectors().rows(), 3);
        assert_eq!(atoms.one_hot(&rows), hot);
    }
}
