//! Vectors made ready to be compared with many others.

use std::sync::Arc;

use super::Kernel;
use crate::sparse::{SparseMatrix, SparseView};

/// Some vectors, against which the kernel's values of many rows are computed.
#[derive(Debug)]
pub struct Columns {
    kernel: Arc<dyn Kernel>,
    vectors: SparseMatrix,
}

impl Columns {
    /// These vectors.
    pub fn new(kernel: Arc<dyn Kernel>, vectors: SparseMatrix) -> Self {
        Self { kernel, vectors }
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
        for (row, values) in rows.iter().zip(values.chunks_exact_mut(self.len().max(1))) {
            for (j, value) in values.iter_mut().enumerate() {
                *value = self.kernel.value(*row, self.vectors.row(j));
            }
        }
    }

    /// `scores[i * width + k] = sum_j coefficients[j * width + k] * k(rows[i], vector j)`, on one thread.
    pub fn scores(&self, rows: &[SparseView<'_>], coefficients: &[f64], width: usize, scores: &mut [f64]) {
        for (row, scores) in rows.iter().zip(scores.chunks_exact_mut(width)) {
            scores.fill(0.0);
            for (j, coefficients) in coefficients.chunks_exact(width).enumerate() {
                let value = self.kernel.value(*row, self.vectors.row(j));
                for (score, c) in scores.iter_mut().zip(coefficients) {
                    *score += value * c;
                }
            }
        }
    }
}
