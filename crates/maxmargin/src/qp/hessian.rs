//! The inner products of all pairs of cuts.

use serde::{Deserialize, Serialize, Serializer};

/// A symmetric matrix that grows by a row at a time. Rows are stored in full, so that each is one slice; the
/// room doubles, so that growing costs a copy now and then only.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Vec<Vec<f64>>")]
pub(super) struct Hessian {
    n: usize,
    stride: usize,
    entries: Vec<f64>,
}

impl Hessian {
    pub(super) fn zeros(n: usize) -> Self {
        Self { n, stride: n, entries: vec![0.0; n * n] }
    }

    pub(super) fn len(&self) -> usize {
        self.n
    }

    pub(super) fn row(&self, i: usize) -> &[f64] {
        &self.entries[i * self.stride..][..self.n]
    }

    pub(super) fn at(&self, i: usize, j: usize) -> f64 {
        self.entries[i * self.stride + j]
    }

    /// `|lhs_i - lhs_j|^2`
    pub(super) fn distance2(&self, i: usize, j: usize) -> f64 {
        self.at(i, i) + self.at(j, j) - 2.0 * self.at(i, j)
    }

    /// Adds a row (and column); its last entry is the diagonal.
    pub(super) fn push(&mut self, row: &[f64]) {
        let n = self.n;
        debug_assert_eq!(row.len(), n + 1);
        if n == self.stride {
            let stride = (2 * n).max(16);
            let mut wide = vec![0.0; stride * stride];
            for i in 0..n {
                wide[i * stride..][..n].copy_from_slice(self.row(i));
            }
            (self.entries, self.stride) = (wide, stride);
        }
        self.n += 1;
        self.entries[n * self.stride..][..=n].copy_from_slice(row);
        for (i, &h) in row.iter().enumerate() {
            self.entries[i * self.stride + n] = h;
        }
    }

    /// Replaces row and column `i`.
    pub(super) fn replace(&mut self, i: usize, row: &[f64]) {
        self.entries[i * self.stride..][..self.n].copy_from_slice(row);
        for (j, &h) in row.iter().enumerate() {
            self.entries[j * self.stride + i] = h;
        }
    }

    pub(super) fn bytes(&self) -> usize {
        8 * self.entries.len()
    }

    /// Keeps the rows and columns in `kept`, which ascends.
    pub(super) fn keep(&mut self, kept: &[usize]) {
        for (new, &old) in kept.iter().enumerate() {
            for (column, &from) in kept.iter().enumerate() {
                self.entries[new * self.stride + column] = self.entries[old * self.stride + from];
            }
        }
        self.n = kept.len();
    }
}

/// The rows up to the diagonal.
impl Serialize for Hessian {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..self.n).map(|i| &self.row(i)[..=i]))
    }
}

impl TryFrom<Vec<Vec<f64>>> for Hessian {
    type Error = &'static str;

    fn try_from(rows: Vec<Vec<f64>>) -> Result<Self, Self::Error> {
        let mut hessian = Self::default();
        for row in rows {
            if row.len() != hessian.n + 1 || !row.iter().all(|h| h.is_finite()) {
                return Err("the inner products are no triangle of numbers");
            }
            hessian.push(&row);
        }
        Ok(hessian)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_grow_and_shrink() {
        let entry = |i: usize, j: usize| (i.min(j) * 100 + i.max(j)) as f64;
        let mut h = Hessian::zeros(0);
        for i in 0..40 {
            h.push(&(0..=i).map(|j| entry(i, j)).collect::<Vec<_>>());
        }
        let kept: Vec<usize> = (0..40).filter(|i| i % 3 != 1).collect();
        h.keep(&kept);
        for (a, &i) in kept.iter().enumerate() {
            let expected: Vec<f64> = kept.iter().map(|&j| entry(i, j)).collect();
            assert_eq!(h.row(a), expected);
        }
    }
}
