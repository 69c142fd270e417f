//! Sparse vectors and matrices: u32 indices, f32 values, f64 sums.

use std::ops::Range;

use crate::memory::prefetch;

/// A sparse vector that lives elsewhere: ascending indices and their values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SparseView<'a> {
    indices: &'a [u32],
    values: &'a [f32],
}

impl<'a> SparseView<'a> {
    /// A view of ascending `indices` and their `values`.
    ///
    /// # Panics
    /// If the two differ in length.
    pub fn new(indices: &'a [u32], values: &'a [f32]) -> Self {
        assert_eq!(indices.len(), values.len(), "one value for each index");
        debug_assert!(indices.is_sorted_by(|a, b| a < b), "indices ascend");
        Self { indices, values }
    }

    /// One feature that is always there, with value 1.
    pub fn constant() -> SparseView<'static> {
        SparseView::new(&[0], &[1.0])
    }

    /// The indices, ascending.
    pub fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// The values, in the order of the indices.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// Number of stored entries.
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// No stored entry?
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The entries, in the order of the indices.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> + use<'a> {
        self.indices.iter().copied().zip(self.values.iter().copied())
    }

    /// The part of the vector with indices below `end`: how data with more features than the
    /// model knows are read.
    #[must_use]
    pub fn below(&self, end: u32) -> Self {
        let n = self.indices.partition_point(|&j| j < end);
        Self { indices: &self.indices[..n], values: &self.values[..n] }
    }

    /// Some of the entries, by their places.
    #[must_use]
    pub fn entries(&self, places: Range<usize>) -> Self {
        Self { indices: &self.indices[places.clone()], values: &self.values[places] }
    }

    /// Sum of squares.
    pub fn norm2(&self) -> f64 {
        self.values.iter().map(|&v| f64::from(v) * f64::from(v)).sum()
    }

    /// `sum_j w_j v_j`, with four running sums: one alone would wait for each addition.
    #[inline]
    pub fn dot(&self, w: &[f64]) -> f64 {
        let (indices, last_indices) = self.indices.as_chunks::<4>();
        let (values, last_values) = self.values.as_chunks::<4>();
        let mut sums = [0.0; 4];
        for (j, v) in indices.iter().zip(values) {
            for l in 0..4 {
                sums[l] += f64::from(v[l]) * w[j[l] as usize];
            }
        }
        let rest: f64 = last_indices.iter().zip(last_values).map(|(&j, &v)| f64::from(v) * w[j as usize]).sum();
        (sums[0] + sums[1]) + (sums[2] + sums[3]) + rest
    }

    /// `w += scale * v`
    #[inline]
    pub fn add_to(&self, scale: f64, w: &mut [f64]) {
        self.add_to_part(scale, 0, w);
    }

    /// The same where w is the part of a vector that begins with index `first`, and there are no entries before that.
    #[inline]
    pub fn add_to_part(&self, scale: f64, first: u32, w: &mut [f64]) {
        for (j, v) in self.iter() {
            w[(j - first) as usize] += scale * f64::from(v);
        }
    }

    /// Asks for the entries to be brought near, where the machine can be asked: examples in random order are far apart in
    /// memory, and waiting for them takes longer than working on them.
    #[inline]
    pub fn prefetch(&self) {
        /// Entries of 4 bytes in a line of the cache.
        const LINE: usize = 16;
        for at in (0..self.len()).step_by(LINE) {
            prefetch(&self.indices[at]);
            prefetch(&self.values[at]);
        }
    }
}

/// Some rows of a [`SparseMatrix`], one after the other in memory.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// One more than rows.
    offsets: &'a [usize],
    indices: &'a [u32],
    values: &'a [f32],
}

impl<'a> Rows<'a> {
    /// Number of rows.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// No row?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Row `i`.
    #[inline]
    pub fn row(&self, i: usize) -> SparseView<'a> {
        let range = self.offsets[i]..self.offsets[i + 1];
        SparseView { indices: &self.indices[range.clone()], values: &self.values[range] }
    }

    /// Number of stored entries.
    pub fn nonzeros(&self) -> usize {
        self.offsets[self.len()] - self.offsets[0]
    }

    /// The indices of all rows, one row after the other.
    pub fn indices(&self) -> &'a [u32] {
        &self.indices[self.offsets[0]..self.offsets[self.len()]]
    }

    /// The values of all rows, one row after the other.
    pub fn values(&self) -> &'a [f32] {
        &self.values[self.offsets[0]..self.offsets[self.len()]]
    }
}

/// Sparse rows, one after the other in memory (CSR).
#[derive(Debug, Clone, PartialEq)]
pub struct SparseMatrix {
    offsets: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
    columns: u32,
}

impl Default for SparseMatrix {
    fn default() -> Self {
        Self { offsets: vec![0], indices: Vec::new(), values: Vec::new(), columns: 0 }
    }
}

impl SparseMatrix {
    /// A matrix without rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// One more than the largest column index seen, or what [`set_columns`](Self::set_columns) set.
    pub fn columns(&self) -> u32 {
        self.columns
    }

    /// Widens the matrix to `columns`.
    ///
    /// # Panics
    /// If an entry lies beyond.
    pub fn set_columns(&mut self, columns: u32) {
        assert!(columns >= self.columns, "entries lie beyond column {columns}");
        self.columns = columns;
    }

    /// Number of stored entries.
    pub fn nonzeros(&self) -> usize {
        self.indices.len()
    }

    /// Row `i`.
    pub fn row(&self, i: usize) -> SparseView<'_> {
        let range = self.offsets[i]..self.offsets[i + 1];
        SparseView { indices: &self.indices[range.clone()], values: &self.values[range] }
    }

    /// The rows of a range.
    ///
    /// # Panics
    /// If the range goes beyond the last row.
    pub fn range(&self, rows: Range<usize>) -> Rows<'_> {
        Rows { offsets: &self.offsets[rows.start..=rows.end], indices: &self.indices, values: &self.values }
    }

    /// Views of all rows.
    pub fn views(&self) -> Vec<SparseView<'_>> {
        (0..self.rows()).map(|i| self.row(i)).collect()
    }

    /// Adds an entry to the row that [`end_row`](Self::end_row) will close. Columns ascend within a row.
    pub fn push(&mut self, column: u32, value: f32) {
        self.indices.push(column);
        self.values.push(value);
        self.columns = self.columns.max(column + 1);
    }

    /// Closes a row.
    pub fn end_row(&mut self) {
        self.offsets.push(self.indices.len());
    }

    /// Adds a whole row with ascending columns.
    pub fn push_row(&mut self, row: impl IntoIterator<Item = (u32, f32)>) {
        for (j, v) in row {
            self.push(j, v);
        }
        self.end_row();
    }

    /// The same of columns and values by themselves, of which there must be as many.
    pub fn push_parts(&mut self, columns: impl Iterator<Item = u32>, values: impl Iterator<Item = f32>) {
        self.indices.extend(columns);
        self.values.extend(values);
        debug_assert_eq!(self.indices.len(), self.values.len(), "a value for each column");
        if let Some(last) = self.indices.last() {
            self.columns = self.columns.max(last + 1);
        }
        self.end_row();
    }

    /// These rows, in this order.
    #[must_use]
    pub fn select(&self, rows: &[usize]) -> Self {
        let mut selected = Self::new();
        selected.reserve(rows.len(), rows.iter().map(|&i| self.row(i).len()).sum());
        for &i in rows {
            selected.push_row(self.row(i).iter());
        }
        selected.set_columns(self.columns());
        selected
    }

    /// Moves the rows of `other` behind the rows of this one.
    pub fn append(&mut self, mut other: Self) {
        if self.rows() == 0 && self.indices.capacity() <= other.indices.len() {
            other.columns = other.columns.max(self.columns);
            *self = other;
            return;
        }
        let shift = self.indices.len();
        self.offsets.extend(other.offsets[1..].iter().map(|o| o + shift));
        self.indices.append(&mut other.indices);
        self.values.append(&mut other.values);
        self.columns = self.columns.max(other.columns);
    }

    /// Takes memory for that many more rows and entries.
    pub fn reserve(&mut self, rows: usize, nonzeros: usize) {
        self.offsets.reserve_exact(rows);
        self.indices.reserve_exact(nonzeros);
        self.values.reserve_exact(nonzeros);
    }

    /// Gives back memory that was taken in advance.
    pub fn shrink(&mut self) {
        self.offsets.shrink_to_fit();
        self.indices.shrink_to_fit();
        self.values.shrink_to_fit();
    }

    /// Gives columns other numbers, which ascend as the old ones do; those that have none are left out.
    pub fn renumber(&mut self, number: impl Fn(u32) -> Option<u32>) {
        let (mut start, mut kept) = (0, 0);
        self.columns = 0;
        for end in &mut self.offsets[1..] {
            for at in start..*end {
                if let Some(column) = number(self.indices[at]) {
                    (self.indices[kept], self.values[kept]) = (column, self.values[at]);
                    self.columns = self.columns.max(column + 1);
                    kept += 1;
                }
            }
            start = std::mem::replace(end, kept);
        }
        self.indices.truncate(kept);
        self.values.truncate(kept);
    }

    /// The same rows with one more column of value `value`: the constant feature that plays the bias.
    #[must_use]
    pub fn with_constant(&self, value: f32) -> Self {
        let mut wide = Self::new();
        wide.reserve(self.rows(), self.nonzeros() + self.rows());
        for i in 0..self.rows() {
            wide.push_row(self.row(i).iter().chain([(self.columns, value)]));
        }
        wide.columns = self.columns + 1;
        wide
    }
}

/// `sum a_j b_j`, with eight running sums so that the loop vectorises and the bits do not depend on the CPU.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let (a8, a_rest) = a.as_chunks::<8>();
    let (b8, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in a8.iter().zip(b8) {
        for k in 0..8 {
            sums[k] += x[k] * y[k];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    sums.iter().sum::<f64>() + rest
}

/// `y += scale * x`
pub fn axpy(scale: f64, x: &[f64], y: &mut [f64]) {
    debug_assert_eq!(x.len(), y.len());
    for (y, x) in y.iter_mut().zip(x) {
        *y += scale * x;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> SparseMatrix {
        let mut m = SparseMatrix::new();
        m.push_row([(0, 1.0), (3, -2.0)]);
        m.push_row([]);
        m.push_row([(1, 0.5)]);
        m
    }

    #[test]
    fn rows_come_back() {
        let m = sample();
        assert_eq!((m.rows(), m.columns(), m.nonzeros()), (3, 4, 3));
        assert_eq!(m.row(0).iter().collect::<Vec<_>>(), [(0, 1.0), (3, -2.0)]);
        assert!(m.row(1).is_empty());
        assert_eq!(m.row(0).below(3).len(), 1);
        assert_eq!(m.row(0).norm2(), 5.0);
    }

    #[test]
    fn columns_get_other_numbers() {
        let mut m = sample();
        m.renumber(|j| (j != 0).then_some(2 * j));
        assert_eq!((m.rows(), m.columns(), m.nonzeros()), (3, 7, 2));
        assert_eq!(m.row(0).iter().collect::<Vec<_>>(), [(6, -2.0)]);
        assert!(m.row(1).is_empty());
        assert_eq!(m.row(2).iter().collect::<Vec<_>>(), [(2, 0.5)]);
        m.renumber(|_| None);
        assert_eq!((m.rows(), m.columns(), m.nonzeros()), (3, 0, 0));
    }

    #[test]
    fn sparse_products_agree_with_dense_ones() {
        for n in 0..14_u32 {
            let entries: Vec<(u32, f32)> = (0..n).map(|j| (3 * j + 1, j as f32 - 2.5)).collect();
            let mut m = SparseMatrix::new();
            m.push_row(entries.iter().copied());
            let row = m.row(0);
            row.prefetch();
            let mut w: Vec<f64> = (0..50).map(|j| f64::from(j % 7) - 3.0).collect();
            let expected: f64 = entries.iter().map(|&(j, v)| f64::from(v) * w[j as usize]).sum();
            assert_eq!(row.dot(&w), expected);
            row.add_to(2.0, &mut w);
            assert_eq!(row.dot(&w), expected + 2.0 * row.norm2());
        }
    }

    #[test]
    fn appending_keeps_the_order_of_rows() {
        let mut m = sample();
        m.append(sample());
        assert_eq!(m.rows(), 6);
        assert_eq!(m.row(3), sample().row(0));
        assert_eq!(m.row(5), sample().row(2));
    }

    #[test]
    fn the_constant_is_the_last_column() {
        let m = sample().with_constant(2.0);
        assert_eq!(m.columns(), 5);
        for i in 0..3 {
            assert_eq!(m.row(i).iter().last(), Some((4, 2.0)));
        }
    }

    #[test]
    fn dot_is_the_sum_of_products() {
        let a: Vec<f64> = (0..21).map(f64::from).collect();
        let b: Vec<f64> = (0..21).map(|i| f64::from(i % 3)).collect();
        assert_eq!(dot(&a, &b), a.iter().zip(&b).map(|(x, y)| x * y).sum::<f64>());
    }
}
