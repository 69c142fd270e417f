//! What a kernel model keeps of the training data.

use std::sync::Arc;

use super::{Columns, Standard};
use crate::error::{Result, invalid};
use crate::sparse::{SparseMatrix, SparseView};

/// `sum_j beta_j k(v_j, .)` in each slot of a block: the weight vector of a kernel model, told by its support vectors `v_j`.
#[derive(Debug, Clone)]
pub struct Expansion {
    kernel: Standard,
    /// vectors x width
    coefficients: Vec<f64>,
    width: u32,
    /// The vectors, ready to be compared with others.
    columns: Arc<Columns>,
}

/// What makes it ready follows from the rest; the number of columns of the vectors says nothing.
impl PartialEq for Expansion {
    fn eq(&self, other: &Self) -> bool {
        self.kernel == other.kernel
            && self.width == other.width
            && self.coefficients == other.coefficients
            && self.len() == other.len()
            && (0..self.len()).all(|j| self.vectors().row(j) == other.vectors().row(j))
    }
}

impl Expansion {
    /// Rows that are best compared with the vectors together: larger blocks are no faster.
    pub const BLOCK: usize = 64;

    /// With `coefficients[j * width + k]` for vector j in slot k.
    pub fn new(kernel: Standard, vectors: SparseMatrix, coefficients: Vec<f64>, width: u32) -> Result<Self> {
        kernel.check()?;
        if width == 0 {
            return invalid("support vectors have no coefficients");
        }
        let support = vectors.rows();
        if support.checked_mul(width as usize) != Some(coefficients.len()) {
            return invalid(format!("{} coefficients for {support} support vectors times {width}", coefficients.len()));
        }
        if let Some(at) = coefficients.iter().position(|c| !c.is_finite()) {
            return invalid(format!("coefficient {} is {}", at + 1, coefficients[at]));
        }
        let is_finite = |j: &usize| vectors.row(*j).values().iter().all(|v| v.is_finite());
        if let Some(j) = (0..support).find(|j| !is_finite(j)) {
            return invalid(format!("support vector {} has a value that is not finite", j + 1));
        }
        let columns = Arc::new(Columns::new(Arc::new(kernel), vectors));
        Ok(Self { kernel, coefficients, width, columns })
    }

    /// Of `coefficients[a * width + k]` for atom a in slot k: keeps the atoms that have one that is not 0, in their order.
    pub fn of_atoms(kernel: Standard, atoms: &SparseMatrix, coefficients: &[f64], width: u32) -> Result<Self> {
        let rows = coefficients.chunks_exact(width.max(1) as usize);
        if width == 0 || rows.len() != atoms.rows() || !rows.remainder().is_empty() {
            let (n, atoms) = (coefficients.len(), atoms.rows());
            return invalid(format!("{n} coefficients for {atoms} support vectors times {width}"));
        }
        let (mut vectors, mut kept) = (SparseMatrix::new(), Vec::new());
        for (a, row) in rows.enumerate().filter(|(_, row)| row.iter().any(|&c| c != 0.0)) {
            vectors.push_row(atoms.row(a).iter());
            kept.extend_from_slice(row);
        }
        vectors.shrink();
        Self::new(kernel, vectors, kept, width)
    }

    /// Number of support vectors.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// No support vector, so that all scores are 0?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of slots.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The kernel.
    pub fn kernel(&self) -> Standard {
        self.kernel
    }

    /// The support vectors.
    pub fn vectors(&self) -> &SparseMatrix {
        self.columns.vectors()
    }

    /// Support vectors x width.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// What vectors and coefficients take in a file.
    pub fn bytes(&self) -> u64 {
        8 * (self.len() as u64 + 1 + self.vectors().nonzeros() as u64 + self.coefficients.len() as u64)
    }

    /// `scores[i * width + k] = sum_j coefficients[j * width + k] * k(rows[i], v_j)`, on one thread. Features beyond those of
    /// the support vectors count: they are part of |x|.
    pub fn scores(&self, rows: &[SparseView<'_>], scores: &mut [f64]) {
        debug_assert_eq!(scores.len(), rows.len() * self.width as usize);
        self.columns.scores(rows, &self.coefficients, self.width as usize, scores);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Kernel, Shape};

    fn atoms() -> SparseMatrix {
        let mut atoms = SparseMatrix::new();
        atoms.push_row([(0, 1.0), (2, -1.0)]);
        atoms.push_row([]);
        atoms.push_row([(1, 0.5)]);
        atoms
    }

    const RBF: Standard = Standard { shape: Shape::Rbf { gamma: 0.5 }, constant: 1.0 };

    #[test]
    fn only_atoms_with_a_coefficient_are_kept() {
        let expansion = Expansion::of_atoms(RBF, &atoms(), &[1.0, 0.0, 0.0, -0.0, 0.0, -2.0], 2).unwrap();
        assert_eq!((expansion.len(), expansion.width()), (2, 2));
        assert_eq!(expansion.vectors().row(1), atoms().row(2));
        assert_eq!(expansion.coefficients(), [1.0, 0.0, 0.0, -2.0]);
        assert_eq!(expansion.clone(), expansion);
        let whole = Expansion::new(RBF, atoms(), vec![1.0, 0.0, 0.0, 0.0, 0.0, -2.0], 2).unwrap();
        assert_ne!(whole, expansion);

        // The last feature is one that no support vector has.
        let mut x = SparseMatrix::new();
        x.push_row([(0, 1.0), (9, 2.0)]);
        x.push_row([]);
        for expansion in [expansion, whole] {
            let mut scores = [f64::NAN; 4];
            expansion.scores(&x.views(), &mut scores);
            for i in 0..2 {
                assert!((scores[2 * i] - RBF.value(x.row(i), atoms().row(0))).abs() < 1e-6);
                assert!((scores[2 * i + 1] + 2.0 * RBF.value(x.row(i), atoms().row(2))).abs() < 1e-6);
            }
            assert!((scores[0] - (1.0 + (-0.5_f64 * 5.0).exp())).abs() < 1e-6);
        }
    }

    #[test]
    fn no_support_vector_scores_0() {
        let none = Expansion::of_atoms(RBF, &atoms(), &[0.0; 9], 3).unwrap();
        assert!(none.is_empty());
        let mut scores = [f64::NAN; 9];
        none.scores(&atoms().views(), &mut scores);
        assert_eq!(scores, [0.0; 9]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let mut wild = atoms();
        wild.push_row([(0, f32::NAN)]);
        let poly = |degree, gamma, coef0| Standard { shape: Shape::Poly { degree, gamma, coef0 }, constant: 0.0 };
        for (result, what) in [
            (Expansion::new(RBF, atoms(), vec![0.0; 5], 2), "5 coefficients for 3 support vectors times 2"),
            (Expansion::new(RBF, atoms(), vec![], 0), "no coefficients"),
            (Expansion::of_atoms(RBF, &atoms(), &[0.0; 7], 2), "7 coefficients"),
            (Expansion::of_atoms(RBF, &atoms(), &[], 0), "0 coefficients"),
            (Expansion::new(RBF, atoms(), vec![1.0, f64::NAN, 1.0], 1), "coefficient 2 is NaN"),
            (Expansion::new(RBF, wild, vec![1.0; 4], 1), "support vector 4"),
            (Expansion::new(Standard { constant: -1.0, ..RBF }, atoms(), vec![1.0; 3], 1), "constant"),
            (Expansion::new(poly(0, 1.0, 0.0), atoms(), vec![1.0; 3], 1), "degree"),
            (Expansion::new(poly(u32::MAX, 1.0, 0.0), atoms(), vec![1.0; 3], 1), "degree"),
            (Expansion::new(poly(2, f64::INFINITY, 0.0), atoms(), vec![1.0; 3], 1), "gamma"),
            (Expansion::new(poly(2, 1.0, f64::NAN), atoms(), vec![1.0; 3], 1), "coef0"),
        ] {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(what), "{what}: {error}");
        }
    }
}
