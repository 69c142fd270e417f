//! Vectors made ready to be compared with many others.

use std::sync::{Arc, OnceLock};

use super::combine::add_scores;
use super::function::Extent;
use super::panel::Panels;
use super::real::Real;
use super::{Kernel, Standard};
use crate::sparse::{SparseMatrix, SparseView};

/// Some vectors, against which the kernel's values of many rows are computed.
///
/// A row whose values are accurate enough in single precision is computed in it; which it is depends on that row and on the
/// vectors, not on the rows that come with it.
#[derive(Debug)]
pub struct Columns {
    kernel: Arc<dyn Kernel>,
    vectors: Arc<SparseMatrix>,
    single: Option<Single>,
    /// For all other rows; made when the first of them comes.
    double: OnceLock<Panels<f64>>,
}

/// The vectors in single precision, and what decides whether a row can do with it.
#[derive(Debug)]
struct Single {
    standard: Standard,
    extent: Extent,
    panels: Panels<f32>,
}

impl Columns {
    /// These vectors.
    pub fn new(kernel: Arc<dyn Kernel>, vectors: SparseMatrix) -> Self {
        let views = vectors.views();
        let extent = Extent::of(views.iter().copied());
        let standard = kernel.standard().filter(|standard| standard.is_fine_in_single(&extent));
        let single = standard.map(|standard| Single { standard, extent, panels: Panels::new(standard, &views) });
        Self { kernel, vectors: Arc::new(vectors), single, double: OnceLock::new() }
    }

    /// These vectors, with all values in double precision.
    pub(super) fn in_double(kernel: Arc<dyn Kernel>, vectors: SparseMatrix) -> Self {
        Self { kernel, vectors: Arc::new(vectors), single: None, double: OnceLock::new() }
    }

    /// The vectors.
    pub fn vectors(&self) -> &SparseMatrix {
        &self.vectors
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.vectors.rows()
    }

    /// No vector?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `values[i * len + j] = k(rows[i], vector j)`, on one thread.
    pub fn values(&self, rows: &[SparseView<'_>], values: &mut [f64]) {
        /// The same in one precision, of those rows that can do with it.
        fn write<R: Real>(panels: &Panels<R>, rows: &Numbered<'_>, len: usize, values: &mut [f64]) {
            each_block(panels, rows, |i, start, block| {
                let values = &mut values[i * len + start..][..block.len()];
                values.iter_mut().zip(block).for_each(|(value, x)| *value = x.f64());
            });
        }
        debug_assert_eq!(values.len(), rows.len() * self.len());
        let [single, double] = self.by_precision(rows);
        if let Some(Single { panels, .. }) = &self.single {
            write(panels, &single, self.len(), values);
        }
        if !double.is_empty() {
            write(self.double(), &double, self.len(), values);
        }
    }

    /// `scores[i * width + k] = sum_j coefficients[j * width + k] * k(rows[i], vector j)`, on one thread.
    pub fn scores(&self, rows: &[SparseView<'_>], coefficients: &[f64], width: usize, scores: &mut [f64]) {
        /// The same in one precision, of those rows that can do with it.
        fn add<R: Real>(
            panels: &Panels<R>,
            rows: &Numbered<'_>,
            coefficients: &[f64],
            width: usize,
            scores: &mut [f64],
        ) {
            each_block(panels, rows, |i, start, block| {
                let coefficients = &coefficients[start * width..][..block.len() * width];
                add_scores(block, coefficients, &mut scores[i * width..][..width]);
            });
        }
        debug_assert!(coefficients.len() == self.len() * width && scores.len() == rows.len() * width);
        scores.fill(0.0);
        let [single, double] = self.by_precision(rows);
        if let Some(Single { panels, .. }) = &self.single {
            add(panels, &single, coefficients, width, scores);
        }
        if !double.is_empty() {
            add(self.double(), &double, coefficients, width, scores);
        }
    }

    /// The rows with their numbers: those that can do with single precision, and the others.
    fn by_precision<'r>(&self, rows: &[SparseView<'r>]) -> [Vec<(usize, SparseView<'r>)>; 2] {
        let is_fine = |row| {
            self.single.as_ref().is_some_and(|single| single.standard.is_fine_in_single(&single.extent.with(row)))
        };
        rows.iter().copied().enumerate().partition::<Vec<_>, _>(|&(_, row)| is_fine(row)).into()
    }

    fn double(&self) -> &Panels<f64> {
        self.double.get_or_init(|| match self.kernel.standard() {
            Some(standard) => Panels::new(standard, &self.vectors.views()),
            None => Panels::of_pairs(Arc::clone(&self.kernel), Arc::clone(&self.vectors)),
        })
    }
}

/// Rows and their numbers.
type Numbered<'r> = [(usize, SparseView<'r>)];

/// Hands on `(row, first column, values)`.
fn each_block<R: Real>(panels: &Panels<R>, rows: &Numbered<'_>, mut visit: impl FnMut(usize, usize, &[R])) {
    let with_norms: Vec<_> = rows.iter().map(|&(_, row)| (row, panels.norm(row))).collect();
    panels.each(&with_norms, |i, start, values| visit(rows[i].0, start, values));
}
