//! Lower triangular factors of kernel matrices, in blocks that stay in the cache.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};

/// Rows are multiplied so far at a time: some dozens of them, and packed columns, stay in the cache.
const DEPTH: usize = 256;

/// Columns that are solved for one after the other.
const SMALL: usize = 8;

/// Products of as many columns are computed at once, and of so many rows: as many sums as fit into registers.
const WIDTH: usize = 8;
const HEIGHT: usize = 4;

/// Some rows of numbers, one after the other in memory: row i starts at `i * stride`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows<'r> {
    pub(super) numbers: &'r [f64],
    pub(super) stride: usize,
    pub(super) count: usize,
}

impl<'r> Rows<'r> {
    #[inline(always)]
    fn part(&self, i: usize, range: &Range<usize>) -> &'r [f64] {
        &self.numbers[i * self.stride..][range.clone()]
    }
}

/// `target[i * stride + j] -= sum_{l < len} a[i][l] b[j][l]`
pub(super) fn subtract_products(target: &mut [f64], stride: usize, a: Rows<'_>, b: Rows<'_>, len: usize) {
    Arch::new().dispatch(Products { target, stride, a, b, len });
}

struct Products<'p> {
    target: &'p mut [f64],
    stride: usize,
    a: Rows<'p>,
    b: Rows<'p>,
    len: usize,
}

impl WithSimd for Products<'_> {
    type Output = ();

    // What is inlined here is compiled once for each kind of machine, with the same additions in the same order.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { target, stride, a, b, len } = self;
        let mut packed = vec![[0.0; WIDTH]; DEPTH.min(len)];
        for start in (0..len).step_by(DEPTH) {
            let range = start..len.min(start + DEPTH);
            for from in (0..b.count).step_by(WIDTH) {
                let width = WIDTH.min(b.count - from);
                for step in 0..width {
                    packed.iter_mut().zip(b.part(from + step, &range)).for_each(|(to, x)| to[step] = *x);
                }
                let packed = &packed[..range.len()];
                let (tall, mut i) = (a.count - a.count % HEIGHT, 0);
                let mut subtract = |i: usize, sums: &[f64; WIDTH]| {
                    target[i * stride + from..][..width].iter_mut().zip(sums).for_each(|(to, sum)| *to -= sum);
                };
                // Whether a row is in a tile or beside one makes no difference to its bits.
                while i < tall {
                    let sums = tile([0, 1, 2, 3].map(|step| a.part(i + step, &range)), packed);
                    (i..).zip(&sums).for_each(|(i, sums)| subtract(i, sums));
                    i += HEIGHT;
                }
                (tall..a.count).for_each(|i| subtract(i, &tile([a.part(i, &range)], packed)[0]));
            }
        }
    }
}

/// All inner products of some rows and the columns of a packed block, each summed from its first number to its last.
#[inline(always)]
fn tile<const M: usize>(rows: [&[f64]; M], packed: &[[f64; WIDTH]]) -> [[f64; WIDTH]; M] {
    let rows = rows.map(|row| &row[..packed.len()]);
    let mut sums = [[0.0; WIDTH]; M];
    for (at, column) in packed.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(&rows) {
            let x = row[at];
            for (sum, y) in sums.iter_mut().zip(column) {
                *sum += x * y;
            }
        }
    }
    sums
}

/// A lower triangular matrix L with a positive diagonal, to which rows are added.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Triangle {
    len: usize,
    stride: usize,
    /// Row i has i + 1 numbers, then zeros.
    numbers: Vec<f64>,
}

impl Triangle {
    /// No row yet, and room for `room` of them.
    pub(super) fn new(room: usize) -> Self {
        Self { len: 0, stride: room, numbers: Vec::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.numbers[i * self.stride..][..=i]
    }

    /// Adds `row`, which is `L^-1 k` of the vectors so far and a vector more, where what is left of its square,
    /// `diagonal - |row|^2`, is above `limit`: else the vector depends on the others. Was it added?
    pub(super) fn push(&mut self, row: &[f64], diagonal: f64, limit: f64) -> bool {
        debug_assert_eq!(row.len(), self.len);
        let left = diagonal - row.iter().map(|x| x * x).sum::<f64>();
        // Not `left <= limit`: a kernel of infinite values leaves no number at all.
        if !(left > limit && left.is_finite()) {
            return false;
        }
        self.numbers.extend_from_slice(row);
        self.numbers.push(left.sqrt());
        self.numbers.resize((self.len + 1) * self.stride, 0.0);
        self.len += 1;
        true
    }

    /// `L^-1 k` in place of each k, in rows of `stride` numbers; the first `from` numbers of a row are done.
    pub(super) fn solve(&self, rows: &mut [f64], stride: usize, from: usize) {
        let mut changes = Vec::new();
        self.subtract(rows, stride, 0..from, from..self.len, &mut changes);
        self.solve_range(rows, stride, from..self.len, &mut changes);
    }

    /// Numbers of a range, from which what those before it contribute is already subtracted: the first half of them, then
    /// what these contribute to the second half, then that.
    fn solve_range(&self, rows: &mut [f64], stride: usize, range: Range<usize>, changes: &mut Vec<f64>) {
        if range.len() > SMALL {
            let middle = range.start + (range.len() / 2).next_multiple_of(SMALL);
            self.solve_range(rows, stride, range.start..middle, changes);
            self.subtract(rows, stride, range.start..middle, middle..range.end, changes);
            return self.solve_range(rows, stride, middle..range.end, changes);
        }
        for row in rows.chunks_exact_mut(stride) {
            for j in range.clone() {
                let factor = self.row(j);
                let done: f64 = factor[range.start..j].iter().zip(&row[range.start..j]).map(|(l, z)| l * z).sum();
                row[j] = (row[j] - done) / factor[j];
            }
        }
    }

    /// Subtracts from the numbers `to` of each row what its numbers `from`, which are done, contribute to them.
    fn subtract(&self, rows: &mut [f64], stride: usize, from: Range<usize>, to: Range<usize>, changes: &mut Vec<f64>) {
        let (count, width) = (rows.len() / stride, to.len());
        if from.is_empty() || to.is_empty() {
            return;
        }
        changes.clear();
        changes.resize(count * width, 0.0);
        let factor =
            Rows { numbers: &self.numbers[to.start * self.stride + from.start..], stride: self.stride, count: width };
        let solved = Rows { numbers: &rows[from.start..], stride, count };
        subtract_products(changes, width, solved, factor, from.len());
        for (row, changes) in rows.chunks_exact_mut(stride).zip(changes.chunks_exact(width)) {
            row[to.clone()].iter_mut().zip(changes).for_each(|(k, change)| *k += change);
        }
    }

    /// `L^-T w` in place of w, of `width` numbers a row.
    pub(super) fn solve_transposed(&self, w: &mut [f64], width: usize) {
        for j in (0..self.len).rev() {
            let (before, rest) = w.split_at_mut(j * width);
            let last = &mut rest[..width];
            let row = self.row(j);
            for x in &mut *last {
                *x /= row[j];
            }
            for (l, before) in row.iter().zip(before.chunks_exact_mut(width)) {
                before.iter_mut().zip(&*last).for_each(|(b, x)| *b -= l * x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: usize) -> Vec<f64> {
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f64 / 504.5 - 1.0).collect()
    }

    #[test]
    fn products_are_sums_whatever_their_place() {
        for (m, n, len) in [(0, 3, 5), (1, 1, 0), (3, 4, 4), (7, 9, 1031), (5, 3, 257), (64, 64, 300)] {
            let (a, b) = (numbers(m * (len + 3), 1), numbers(n * (len + 1), 2));
            let (a, b) =
                (Rows { numbers: &a, stride: len + 3, count: m }, Rows { numbers: &b, stride: len + 1, count: n });
            let stride = n + 2;
            let mut target = vec![0.5; m * stride];
            subtract_products(&mut target, stride, a, b, len);
            for i in 0..m {
                for j in 0..n {
                    let sum: f64 = a.part(i, &(0..len)).iter().zip(b.part(j, &(0..len))).map(|(x, y)| x * y).sum();
                    assert!((target[i * stride + j] - (0.5 - sum)).abs() < 1e-9);
                    let mut alone = [0.5];
                    let row = Rows { numbers: a.part(i, &(0..len)), stride: len + 3, count: 1 };
                    subtract_products(
                        &mut alone,
                        1,
                        row,
                        Rows { numbers: b.part(j, &(0..len)), stride: len + 1, count: 1 },
                        len,
                    );
                    assert_eq!(alone[0].to_bits(), target[i * stride + j].to_bits());
                }
            }
        }
    }

    #[test]
    fn solving_undoes_the_factor() {
        for len in [1, 2, 63, 64, 65, 200] {
            let mut factor = Triangle::new(len + 2);
            for i in 0..len {
                let row: Vec<f64> = numbers(i, i).iter().map(|x| x / len as f64).collect();
                let square: f64 = row.iter().map(|x| x * x).sum();
                assert!(factor.push(&row, 1.0 + square, 1e-6));
            }
            let lines = 70;
            let z = numbers(lines * len, 3);
            // k = L z
            let stride = len + 1;
            let mut k = vec![0.0; lines * stride];
            for (k, z) in k.chunks_exact_mut(stride).zip(z.chunks_exact(len)) {
                (0..len).for_each(|i| k[i] = factor.row(i).iter().zip(z).map(|(l, z)| l * z).sum());
            }
            factor.solve(&mut k, stride, 0);
            for (found, z) in k.chunks_exact(stride).zip(z.chunks_exact(len)) {
                assert!(found.iter().zip(z).all(|(a, b)| (a - b).abs() < 1e-9));
            }
            // w = L' beta
            let beta = numbers(2 * len, 4);
            let mut w = vec![0.0; 2 * len];
            for i in 0..len {
                for (j, l) in factor.row(i).iter().enumerate() {
                    (0..2).for_each(|s| w[2 * j + s] += l * beta[2 * i + s]);
                }
            }
            factor.solve_transposed(&mut w, 2);
            assert!(w.iter().zip(&beta).all(|(a, b)| (a - b).abs() < 1e-9));
        }
    }

    #[test]
    fn dependent_vectors_are_not_added() {
        let mut factor = Triangle::new(3);
        assert!(factor.push(&[], 4.0, 1e-6));
        assert!(!factor.push(&[2.0], 4.0, 1e-6));
        assert!(!factor.push(&[f64::NAN], 4.0, 1e-6));
        assert!(!factor.push(&[1.0], f64::INFINITY, 1e-6));
        assert!(factor.push(&[1.0], 2.0, 1e-6));
        assert_eq!((factor.len(), factor.row(1)), (2, &[1.0, 1.0][..]));
    }
}
