//! Kernels of low rank: a few vectors whose images span what matters of the feature space.
//!
//! ```text
//! w = sum_j beta_j phi(v_j),   k x k matrix K_jl = k(v_j, v_l) = L L'        (Joachims, Finley, Yu 2009, section 3.3, OP 8)
//! z(x) = L^-1 (k(v_1, x), .., k(v_k, x)):   <w, phi(x)> = <L' beta, z(x)>,  |w|^2 = |L' beta|^2                     (OP 9)
//! ```
//!
//! So the kernel's problem over these vectors is the linear one over the inputs z(x): a change of inputs, not a solver.

use std::sync::Arc;

use super::pivots::{Choice, pivots};
use super::triangle::Triangle;
use super::{Atoms, Columns, Expansion, Kernel};
use crate::error::{Error, Result};
use crate::parallel::{Pool, ranges};
use crate::random::Random;
use crate::sparse::{SparseMatrix, SparseView};

/// How the vectors are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// At random, from the seed.
    Random,
    /// Each with a probability in proportion to what those before leave of `k(x, x)`: incomplete Cholesky with pivots, from the seed. Takes
    /// `8 n k` bytes while it chooses among n distinct vectors, and time as `n k^2`. Of many rows n are drawn for that, at least
    /// 10,000 and 8 k.
    Pivoted,
}

/// A vector of which less than this share of the largest `k(x, x)` is left by those before depends on them: f32 values and
/// sums in another order make as much of nothing.
pub(super) const TOLERANCE: f64 = 1e-6;

/// Rows that are mapped together, and parts that are in memory as f64 at a time.
const BLOCK: usize = 128;
const WAVE: usize = 32;

/// Candidates that are looked at together, and of these how many by one thread.
const ROUND: usize = 64;
const SHARE: usize = 16;

/// Rows of which the residual is taken, where the choice does not tell it.
const SAMPLE: usize = 1000;

/// Pivots are chosen among so many rows for each of them, and at least among so many: what these span, all nearly do.
const ROWS_A_PIVOT: usize = 8;
const FEWEST_ROWS: usize = 10_000;

/// The vectors of a basis, and the map to coordinates in their span.
#[derive(Debug)]
pub struct LowRank {
    kernel: Arc<dyn Kernel>,
    columns: Columns,
    factor: Triangle,
    residual: f64,
}

impl LowRank {
    /// At most k of the distinct rows. The same for any number of threads.
    pub fn new(
        kernel: Arc<dyn Kernel>,
        rows: &SparseMatrix,
        k: usize,
        basis: Basis,
        seed: u64,
        pool: &Pool,
    ) -> Result<Self> {
        let (mut random, n) = (Random::new(seed), rows.rows());
        let enough = FEWEST_ROWS.max(k.saturating_mul(ROWS_A_PIVOT));
        if basis == Basis::Random || n <= enough {
            return Self::among(kernel, rows, (k, basis, 0.0), &mut random, pool);
        }
        let some = rows.select(&random.choose(n, enough));
        let mut found = Self::among(kernel, &some, (k, basis, 0.0), &mut random, pool)?;
        found.residual = found.sampled_residual(rows, pool);
        Ok(found)
    }

    /// Pivots until no more than this share of the kernel is left; None where k of them leave more.
    pub fn reaching(
        kernel: Arc<dyn Kernel>,
        rows: &SparseMatrix,
        k: usize,
        share: f64,
        seed: u64,
        pool: &Pool,
    ) -> Result<Option<Self>> {
        let mut random = Random::new(seed);
        let some = rows.select(&random.choose(rows.rows(), k.saturating_mul(ROWS_A_PIVOT)));
        // Of rows that are not looked at somewhat more is left.
        let mut found = Self::among(kernel, &some, (k, Basis::Pivoted, 0.5 * share), &mut random, pool)?;
        if found.residual <= share {
            found.residual = found.sampled_residual(rows, pool);
        }
        Ok(Some(found).filter(|found| found.residual <= share))
    }

    /// At most k of the distinct rows, or as few pivots as leave this share of the kernel.
    fn among(
        kernel: Arc<dyn Kernel>,
        rows: &SparseMatrix,
        (k, basis, share): (usize, Basis, f64),
        random: &mut Random,
        pool: &Pool,
    ) -> Result<Self> {
        if k == 0 {
            return Err(Error::setting("low-rank", "must be at least 1"));
        }
        let mut atoms = Atoms::default();
        let numbers = atoms.one_hot(rows);
        let atoms = atoms.into_vectors();
        let diagonal: Vec<f64> = (0..atoms.rows()).map(|a| kernel.value(atoms.row(a), atoms.row(a))).collect();
        let is_usable = |d: &&f64| **d > 0.0 && d.is_finite();
        let Some(largest) = diagonal.iter().filter(is_usable).copied().reduce(f64::max) else {
            let rule = "no example has a positive k(x, x) to begin with; take another kernel";
            return Err(Error::setting("low-rank", rule));
        };
        let limit = TOLERANCE * largest;
        let (chosen, left) = match basis {
            Basis::Random => {
                // Where nothing is, nothing is drawn: the first vector always is one.
                let usable: Vec<usize> =
                    (0..atoms.rows()).filter(|&a| diagonal[a] > limit && diagonal[a].is_finite()).collect();
                (random.choose(usable.len(), k).into_iter().map(|i| usable[i]).collect(), None)
            }
            Basis::Pivoted => {
                let mut counts = vec![0.0; atoms.rows()];
                (0..rows.rows()).for_each(|i| counts[numbers.row(i).indices()[0] as usize] += 1.0);
                let choice =
                    Choice { kernel: &kernel, vectors: &atoms, diagonal: &diagonal, counts: &counts, limit, share };
                let (chosen, left) = pivots(&choice, k.min(atoms.rows()), random, pool);
                (chosen, Some(left))
            }
        };
        let mut found = Self::of(kernel, &atoms.select(&chosen), limit, pool);
        let atom = |i: usize| numbers.row(i).indices()[0] as usize;
        found.residual = match left {
            Some(left) => share_of((0..rows.rows()).map(|i| (left[atom(i)], diagonal[atom(i)]))),
            None => found.sampled_residual(rows, pool),
        };
        Ok(found)
    }

    /// Those of the candidates that do not depend on candidates before them.
    fn of(kernel: Arc<dyn Kernel>, candidates: &SparseMatrix, limit: f64, pool: &Pool) -> Self {
        // A vector may depend on others up to a millionth: values in single precision would leave nothing but noise.
        let (all, count) = (Columns::in_double(kernel.clone(), candidates.clone()), candidates.rows());
        let (mut factor, mut kept): (_, Vec<usize>) = (Triangle::new(count), Vec::new());
        for start in (0..count).step_by(ROUND) {
            let end = count.min(start + ROUND);
            let known = kept.len();
            // Rows of the kernel's matrix, of which the columns of dependent vectors are left out.
            let shares: Vec<_> = (start..end).step_by(SHARE).map(|from| from..end.min(from + SHARE)).collect();
            let parts = pool.map(shares, |share| {
                let views: Vec<SparseView<'_>> = share.map(|i| candidates.row(i)).collect();
                let mut values = vec![0.0; views.len() * count];
                all.values(&views, &mut values);
                let of_kept = values.chunks_exact(count).flat_map(|row| kept.iter().map(|&j| row[j]));
                let mut solved: Vec<f64> = of_kept.collect();
                if known > 0 {
                    factor.solve(&mut solved, known, 0);
                }
                let row =
                    |(r, values): (usize, &[f64])| (solved[r * known..][..known].to_vec(), values[start..end].to_vec());
                values.chunks_exact(count).enumerate().map(row).collect::<Vec<_>>()
            });
            for (i, (mut row, values)) in (start..end).zip(parts.into_iter().flatten()) {
                row.extend(kept[known..].iter().map(|&j| values[j - start]));
                if !row.is_empty() {
                    let stride = row.len();
                    factor.solve(&mut row, stride, known);
                }
                if factor.push(&row, kernel.value(candidates.row(i), candidates.row(i)), limit) {
                    kept.push(i);
                }
            }
        }
        let columns = Columns::in_double(kernel.clone(), candidates.select(&kept));
        Self { kernel, columns, factor, residual: 0.0 }
    }

    /// Number of coordinates: at most k, and fewer where vectors depend on each other.
    pub fn len(&self) -> usize {
        self.factor.len()
    }

    /// No coordinate?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The vectors.
    pub fn basis(&self) -> &SparseMatrix {
        self.columns.vectors()
    }

    /// What is lost: the mean of `k(x, x) - |z(x)|^2` over that of `k(x, x)`, from 0 to 1. Of all rows for a basis of pivots
    /// among all of them, else of at most 1000.
    pub fn residual(&self) -> f64 {
        self.residual
    }

    /// The coordinates z(x) of each row: [`len`](Self::len) numbers, zeros too.
    pub fn map(&self, rows: &SparseMatrix, pool: &Pool) -> SparseMatrix {
        let mut mapped = SparseMatrix::new();
        mapped.reserve(rows.rows(), rows.rows() * self.len());
        for wave in (0..rows.rows()).step_by(BLOCK * WAVE) {
            let end = rows.rows().min(wave + BLOCK * WAVE);
            let parts: Vec<_> = (wave..end).step_by(BLOCK).map(|start| start..end.min(start + BLOCK)).collect();
            let coordinates = pool.map(parts, |part| {
                let views: Vec<SparseView<'_>> = part.map(|i| rows.row(i)).collect();
                self.coordinates(&views)
            });
            for row in coordinates.iter().flat_map(|part| part.chunks_exact(self.len())) {
                mapped.push_row((0..).zip(row.iter().map(|&z| z as f32)));
            }
        }
        mapped.set_columns(self.len() as u32);
        mapped
    }

    /// `beta = L^-T w`, so that `sum_j beta_j k(v_j, x) = <w, z(x)>`: of `w[i * width + slot]` for coordinate i.
    ///
    /// # Panics
    /// If w does not have `len * width` numbers.
    pub fn coefficients(&self, w: &[f64], width: usize) -> Vec<f64> {
        assert_eq!(w.len(), self.len() * width, "a weight for each coordinate and slot");
        let mut beta = w.to_vec();
        self.factor.solve_transposed(&mut beta, width);
        beta
    }

    /// The kernel model of linear weights: `w[i * width + slot]` for coordinate i.
    pub fn expansion(&self, w: &[f64], width: u32) -> Result<Expansion> {
        let Some(kernel) = self.kernel.standard() else {
            return Err(Error::setting("kernel", "one of your own cannot be kept in a model; take a standard one"));
        };
        Expansion::of_atoms(kernel, self.basis(), &self.coefficients(w, width as usize), width)
    }

    fn coordinates(&self, rows: &[SparseView<'_>]) -> Vec<f64> {
        let mut values = vec![0.0; rows.len() * self.len()];
        self.columns.values(rows, &mut values);
        self.factor.solve(&mut values, self.len(), 0);
        values
    }

    fn sampled_residual(&self, rows: &SparseMatrix, pool: &Pool) -> f64 {
        let sample: Vec<usize> = ranges(rows.rows(), SAMPLE).into_iter().map(|range| range.start).collect();
        let parts = pool.map(sample.chunks(BLOCK).collect(), |part: &[usize]| {
            let views: Vec<SparseView<'_>> = part.iter().map(|&i| rows.row(i)).collect();
            let squares = |z: &[f64]| z.iter().map(|z| z * z).sum::<f64>();
            self.coordinates(&views).chunks_exact(self.len()).map(squares).collect::<Vec<f64>>()
        });
        let whole = |i: usize| self.kernel.value(rows.row(i), rows.row(i));
        share_of(sample.iter().zip(parts.into_iter().flatten()).map(|(&i, square)| (whole(i) - square, whole(i))))
    }
}

/// The sum of what is left over the sum of what was there.
pub(super) fn share_of(parts: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (left, whole) =
        parts.fold((0.0, 0.0), |sums: (f64, f64), (left, whole)| (sums.0 + left.max(0.0), sums.1 + whole));
    if whole > 0.0 { left / whole } else { 0.0 }
}
