//! The kernel's values between all atoms.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use super::function::Extent;
use super::panel::Panels;
use super::real::Real;
use super::rows::Rows;
use super::{Kernel, Standard};
use crate::parallel::Pool;
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
///
/// Values are computed in single precision where that is accurate enough for all atoms. They are symmetric, and they and the
/// images have the same bits whatever is cached and however many threads there are.
#[derive(Debug)]
pub struct Gram {
    kernel: Arc<dyn Kernel>,
    atoms: Arc<SparseMatrix>,
    diagonal: Vec<f64>,
    rows: Rows32Or64,
    /// Beside rows in single precision: the columns in double precision, made when values are first reported.
    reported: OnceLock<Rows<f64>>,
    evaluations: AtomicU64,
    /// Bound of the error of a value that is reported, as a share of `sqrt(K(a, a) K(b, b))`.
    reported_error: f64,
}

/// The precision in which the values are computed that training works with.
///
/// What is reported of a model is computed in double precision in either case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Precision {
    /// Single, where the values' errors are at most this in the mean, else double.
    Within(f64),
    /// Double.
    Double,
}

#[derive(Debug)]
enum Rows32Or64 {
    Single(Rows<f32>),
    Double(Rows<f64>),
}

/// Does the same in either precision.
macro_rules! in_precision {
    ($gram:expr, $rows:ident => $work:expr) => {
        match &$gram.rows {
            Rows32Or64::Single($rows) => $work,
            Rows32Or64::Double($rows) => $work,
        }
    };
}

impl Gram {
    /// Over these vectors. At most `cache` bytes of rows are kept.
    pub fn new(kernel: Arc<dyn Kernel>, atoms: SparseMatrix, cache: usize) -> Self {
        Self::in_precision(kernel, atoms, cache, Precision::Within(f64::INFINITY))
    }

    /// The same in a precision of the caller's choice.
    pub fn in_precision(kernel: Arc<dyn Kernel>, atoms: SparseMatrix, cache: usize, precision: Precision) -> Self {
        let (extent, atoms) = (Extent::of(atoms.views()), Arc::new(atoms));
        let is_single = |standard: &Standard| match precision {
            Precision::Within(most) => standard.error_in_single(&extent).is_some_and(|error| error <= most),
            Precision::Double => false,
        };
        let rows = match kernel.standard() {
            Some(standard) if is_single(&standard) => {
                Rows32Or64::Single(Rows::new(Panels::new(standard, &atoms.views()), &atoms, cache))
            }
            Some(standard) => Rows32Or64::Double(Rows::new(Panels::new(standard, &atoms.views()), &atoms, cache)),
            None => {
                let panels = Panels::of_pairs(Arc::clone(&kernel), Arc::clone(&atoms));
                Rows32Or64::Double(Rows::new(panels, &atoms, cache))
            }
        };
        let (reported, evaluations) = (OnceLock::new(), AtomicU64::new(0));
        let reported_error = kernel.standard().map_or(0.0, |standard| standard.error_in_double(&extent));
        let mut gram = Self { kernel, atoms, diagonal: Vec::new(), rows, reported, evaluations, reported_error };
        gram.diagonal = (0..gram.len() as u32).map(|a| in_precision!(gram, rows => rows.value(a, a).f64())).collect();
        gram
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
            return self.diagonal(a);
        }
        self.count(1);
        in_precision!(self, rows => rows.value(a, b).f64())
    }

    /// `K(a, a)`
    pub fn diagonal(&self, a: u32) -> f64 {
        self.diagonal[a as usize]
    }

    /// `image[b * width + slot] += value * K(atom, b)` for all atoms b and all entries, which are sorted by atom. The terms of
    /// each number of the image are added in the order of the entries.
    pub fn add_image(&self, entries: &[Entry], width: usize, image: &mut [f64], pool: &Pool) {
        debug_assert_eq!(image.len(), self.len() * width);
        debug_assert!(entries.is_sorted_by_key(|entry| entry.atom));
        let runs: Vec<_> = entries.chunk_by(|a, b| a.atom == b.atom).map(|run| (run[0].atom, run)).collect();
        self.count(in_precision!(self, rows => rows.sweep(&runs, width, image, pool)));
    }

    /// Adds images as [`add_image`](Self::add_image) does, with kernel values in double precision: for what is reported.
    pub fn add_reported_image(&self, entries: &[Entry], width: usize, image: &mut [f64], pool: &Pool) {
        let Rows32Or64::Single(_) = &self.rows else { return self.add_image(entries, width, image, pool) };
        // Rows are not kept: each is asked for once.
        let rows = self.reported.get_or_init(|| {
            let standard = self.kernel.standard().expect("single precision is for standard kernels");
            Rows::new(Panels::new(standard, &self.atoms.views()), &self.atoms, 0)
        });
        let runs: Vec<_> = entries.chunk_by(|a, b| a.atom == b.atom).map(|run| (run[0].atom, run)).collect();
        self.count(rows.sweep(&runs, width, image, pool));
    }

    /// Bound of the error of a value that is reported, as a share of `sqrt(K(a, a) K(b, b))`.
    pub(crate) fn reported_error(&self) -> f64 {
        self.reported_error
    }

    /// Are the values that training works with in double precision?
    pub fn is_double(&self) -> bool {
        matches!(self.rows, Rows32Or64::Double(_))
    }

    /// `values[i * columns.len() + j] = K(rows[i], columns[j])`
    pub fn between(&self, rows: &[u32], columns: &[u32], values: &mut [f64], pool: &Pool) {
        debug_assert_eq!(values.len(), rows.len() * columns.len());
        let standard = self.kernel.standard();
        self.count(in_precision!(self, of => of.between(standard, rows, columns, values, pool)));
    }

    /// Computes the rows of these atoms together, where the cache has room: they are asked for soon.
    pub fn prepare(&self, atoms: &[u32], pool: &Pool) {
        let mut atoms = atoms.to_vec();
        atoms.sort_unstable();
        atoms.dedup();
        let runs: Vec<_> = atoms.into_iter().map(|atom| (atom, &[][..])).collect();
        self.count(in_precision!(self, rows => rows.sweep(&runs, 0, &mut [], pool)));
    }

    /// How many kernel values were computed so far, beside the diagonal. What comes from the cache is not counted.
    pub fn evaluations(&self) -> u64 {
        self.evaluations.load(Ordering::Relaxed)
    }

    /// Bytes of the rows that are kept.
    pub fn cached_bytes(&self) -> usize {
        in_precision!(self, rows => rows.cached_bytes())
    }

    fn count(&self, evaluations: usize) {
        self.evaluations.fetch_add(evaluations as u64, Ordering::Relaxed);
    }
}
