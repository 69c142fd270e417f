//! The kernel's values between all atoms.

use std::sync::Arc;

use super::Kernel;
use crate::parallel::{Pool, ranges};
use crate::sparse::SparseMatrix;

/// A coefficient of an atom in a slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Entry {
    /// The number of the atom.
    pub atom: u32,
    /// The slot of the block.
    pub slot: u32,
    /// The coefficient.
    pub value: f64,
}

/// The matrix `K(a, b)` of a kernel over atoms, of which rows are computed when they are needed.
#[derive(Debug)]
pub struct Gram {
    kernel: Arc<dyn Kernel>,
    atoms: SparseMatrix,
    diagonal: Vec<f64>,
}

impl Gram {
    /// Over these vectors. At most `cache` bytes of rows are kept.
    pub fn new(kernel: Arc<dyn Kernel>, atoms: SparseMatrix, _cache: usize) -> Self {
        let diagonal = (0..atoms.rows()).map(|a| kernel.value(atoms.row(a), atoms.row(a))).collect();
        Self { kernel, atoms, diagonal }
    }

    /// Number of atoms.
    pub fn len(&self) -> usize {
        self.atoms.rows()
    }

    /// No atom?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The kernel.
    pub fn kernel(&self) -> &Arc<dyn Kernel> {
        &self.kernel
    }

    /// The vectors.
    pub fn atoms(&self) -> &SparseMatrix {
        &self.atoms
    }

    /// `K(a, b)`
    pub fn value(&self, a: u32, b: u32) -> f64 {
        if a == b {
            self.diagonal[a as usize]
        } else {
            self.kernel.value(self.atoms.row(a as usize), self.atoms.row(b as usize))
        }
    }

    /// `K(a, a)`
    pub fn diagonal(&self, a: u32) -> f64 {
        self.diagonal[a as usize]
    }

    /// `image[b * width + slot] += value * K(atom, b)` for all atoms b and all entries, which are sorted by atom.
    pub fn add_image(&self, entries: &[Entry], width: usize, image: &mut [f64], pool: &Pool) {
        debug_assert_eq!(image.len(), self.len() * width);
        let parts = ranges(self.len(), 64);
        let mut rest = image;
        let mut shares = Vec::new();
        for part in parts {
            let (share, others) = rest.split_at_mut(part.len() * width);
            shares.push((part, share));
            rest = others;
        }
        pool.map(shares, |(part, share)| {
            for (b, row) in part.zip(share.chunks_exact_mut(width)) {
                for entry in entries {
                    row[entry.slot as usize] += entry.value * self.value(entry.atom, b as u32);
                }
            }
        });
    }

    /// `values[i * columns.len() + j] = K(rows[i], columns[j])`
    pub fn between(&self, rows: &[u32], columns: &[u32], values: &mut [f64], pool: &Pool) {
        let shares: Vec<_> = rows.iter().zip(values.chunks_exact_mut(columns.len().max(1))).collect();
        pool.map(shares, |(&a, values)| {
            for (value, &b) in values.iter_mut().zip(columns) {
                *value = self.value(a, b);
            }
        });
    }

    /// Computes the rows of these atoms together, where the cache has room: they are asked for soon.
    pub fn prepare(&self, _atoms: &[u32], _pool: &Pool) {}
}
