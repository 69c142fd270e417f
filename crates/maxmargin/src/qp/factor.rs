//! A Cholesky factor that gains and loses rows.

use crate::sparse::{axpy, dot};

/// L of `M = L L'`, rows packed one after the other. Gaining or losing a variable costs O(n^2), not the
/// O(n^3) of a new factor: that is what makes an active set affordable.
#[derive(Debug, Clone, Default)]
pub(crate) struct Factor {
    n: usize,
    entries: Vec<f64>,
    rotations: Vec<(f64, f64)>,
}

fn start(row: usize) -> usize {
    row * (row + 1) / 2
}

impl Factor {
    pub(crate) fn clear(&mut self) {
        self.n = 0;
        self.entries.clear();
    }

    /// Adds a variable: `column` holds its products with those before, `diagonal` with itself. What is left
    /// of the diagonal after elimination is kept at `floor` > 0 at least: M may be singular, L is not.
    pub(crate) fn append(&mut self, column: impl Iterator<Item = f64>, diagonal: f64, floor: f64) {
        let at = self.entries.len();
        debug_assert_eq!(at, start(self.n));
        self.entries.extend(column);
        debug_assert_eq!(self.entries.len(), at + self.n);
        let (above, row) = self.entries.split_at_mut(at);
        forward(above, row);
        let left = diagonal - dot(row, row);
        self.entries.push(left.max(floor).sqrt());
        self.n += 1;
    }

    /// Takes the variable at `position` out.
    pub(super) fn remove(&mut self, position: usize) {
        self.rotations.clear();
        for i in position..self.n - 1 {
            // Old row i + 1 becomes row i. It has one entry too many for a triangle: the rotations of the
            // columns push that entry to its end, and one more rotation makes it zero.
            let row = &mut self.entries[start(i + 1)..][..i + 2];
            for (k, &(c, s)) in self.rotations.iter().enumerate() {
                let (x, y) = (row[position + k], row[position + k + 1]);
                row[position + k] = c * x + s * y;
                row[position + k + 1] = c * y - s * x;
            }
            let (x, y) = (row[i], row[i + 1]);
            let r = (x * x + y * y).sqrt();
            self.rotations.push((x / r, y / r));
            row[i] = r;
            self.entries.copy_within(start(i + 1)..=start(i + 1) + i, start(i));
        }
        self.n -= 1;
        self.entries.truncate(start(self.n));
    }

    /// `x := M^-1 x`
    pub(crate) fn solve(&self, x: &mut [f64]) {
        debug_assert_eq!(x.len(), self.n);
        forward(&self.entries, x);
        for k in (0..self.n).rev() {
            let row = &self.entries[start(k)..][..=k];
            x[k] /= row[k];
            let (before, rest) = x.split_at_mut(k);
            axpy(-rest[0], &row[..k], before);
        }
    }
}

/// `x := L^-1 x`
fn forward(l: &[f64], x: &mut [f64]) {
    for k in 0..x.len() {
        let row = &l[start(k)..][..=k];
        x[k] = (x[k] - dot(&row[..k], &x[..k])) / row[k];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(i: usize, j: usize) -> f64 {
        let (i, j) = (i as f64, j as f64);
        (-0.1 * (i - j) * (i - j)).exp() + if i == j { 0.1 } else { 0.0 }
    }

    #[test]
    fn solves_after_gains_and_losses() {
        let mut f = Factor::default();
        let mut kept: Vec<usize> = Vec::new();
        for i in 0..30 {
            f.append(kept.iter().map(|&j| entry(i, j)), entry(i, i), 1e-12);
            kept.push(i);
            if i % 3 == 2 {
                let position = (i * 7) % kept.len();
                f.remove(position);
                kept.remove(position);
            }
        }
        let truth: Vec<f64> = kept.iter().map(|&i| (i as f64).sin()).collect();
        let mut x: Vec<f64> =
            kept.iter().map(|&i| kept.iter().zip(&truth).map(|(&j, t)| entry(i, j) * t).sum()).collect();
        f.solve(&mut x);
        assert!(x.iter().zip(&truth).all(|(x, t)| (x - t).abs() < 1e-10));
    }
}
