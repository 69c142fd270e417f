//! From inner products to the kernel's values, many at once, and in which precision.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

use super::real::{Real, TILE};
use super::{Shape, Standard};
use crate::numeric;
use crate::sparse::SparseView;

/// A [`Standard`] kernel in some precision.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function<R> {
    shape: Rounded<R>,
    constant: R,
}

/// A [`Shape`] in some precision.
#[derive(Debug, Clone, Copy)]
enum Rounded<R> {
    Linear,
    Rbf(R),
    Poly(u32, R, R),
    Sigmoid(R, R),
}

impl<R: Real> Function<R> {
    pub(super) fn new(standard: Standard) -> Self {
        let shape = match standard.shape {
            Shape::Linear => Rounded::Linear,
            Shape::Rbf { gamma } => Rounded::Rbf(R::new(gamma)),
            Shape::Poly { degree, gamma, coef0 } => Rounded::Poly(degree, R::new(gamma), R::new(coef0)),
            Shape::Sigmoid { gamma, coef0 } => Rounded::Sigmoid(R::new(gamma), R::new(coef0)),
        };
        Self { shape, constant: R::new(standard.constant) }
    }

    /// Makes `k(a, b)` of each `<a, b>`, for one a with `norm = <a, a>` and many b with their `norms`. A product that is equal
    /// to both norms is that of a vector with itself, and its distance comes out as 0 exactly.
    #[inline(always)]
    pub(super) fn apply(&self, norm: R, norms: &[R], products: &mut [R]) {
        debug_assert_eq!(norms.len(), products.len());
        // What is beyond the largest number becomes it: an infinite value would make sums undefined.
        let bounded = |x: R| x.least(R::MAX).most(-R::MAX);
        let constant = self.constant;
        match self.shape {
            Rounded::Linear => products.iter_mut().for_each(|x| *x = bounded(*x + constant)),
            Rounded::Rbf(gamma) => {
                let minus_two = R::new(-2.0);
                for (x, &other) in products.iter_mut().zip(norms) {
                    // Rounding must not make a distance negative.
                    let distance = minus_two.fused(*x, norm + other).most(R::ZERO);
                    *x = bounded((gamma * distance).exp_minus() + constant);
                }
            }
            Rounded::Poly(degree, gamma, coef0) => {
                for tile in products.chunks_mut(TILE) {
                    for x in tile.iter_mut() {
                        *x = gamma.fused(*x, coef0);
                    }
                    power(tile, degree);
                    for x in tile {
                        *x = bounded(*x + constant);
                    }
                }
            }
            Rounded::Sigmoid(gamma, coef0) => {
                for x in products {
                    *x = gamma.fused(*x, coef0).hyperbolic_tangent() + constant;
                }
            }
        }
    }
}

/// `x^degree` for each x, by squaring. At most a tile.
#[inline(always)]
fn power<R: Real>(x: &mut [R], degree: u32) {
    let mut squares = [R::ONE; TILE];
    let squares = &mut squares[..x.len()];
    squares.copy_from_slice(x);
    x.fill(R::ONE);
    let mut rest = degree;
    while rest > 0 {
        if rest % 2 == 1 {
            x.iter_mut().zip(&*squares).for_each(|(x, &s)| *x = *x * s);
        }
        for s in squares.iter_mut() {
            *s = *s * *s;
        }
        rest /= 2;
    }
}

/// Values of the rbf kernel in double precision are within this of the kernel.
pub(super) const MOST_ERROR: f64 = 1e-13;

/// What the precision depends on, of some vectors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    /// Most entries of a vector.
    nonzeros: usize,
    /// The largest `|x|^2`.
    largest: f64,
    /// The smallest `|x|^2` but 0.
    smallest: f64,
}

impl Extent {
    pub(super) fn of<'a>(vectors: impl IntoIterator<Item = SparseView<'a>>) -> Self {
        vectors.into_iter().fold(Self { nonzeros: 0, largest: 0.0, smallest: f64::INFINITY }, Self::with)
    }

    /// The largest `|x|^2`.
    pub(super) fn largest(&self) -> f64 {
        self.largest
    }

    /// Bound of the rounding error of `|a|^2 + |b|^2 - 2 <a, b>` in double precision, as a share of `|a|^2 + |b|^2`.
    pub(super) fn unit_of_products(&self) -> f64 {
        f64::EPSILON * (2.0 + (self.nonzeros as f64).sqrt())
    }

    /// One vector more.
    #[must_use]
    pub(super) fn with(self, vector: SparseView<'_>) -> Self {
        let norm2 = vector.norm2();
        let smallest = if norm2 > 0.0 { self.smallest.min(norm2) } else { self.smallest };
        Self { nonzeros: self.nonzeros.max(vector.len()), largest: self.largest.max(norm2), smallest }
    }
}

impl Standard {
    /// The standard deviation of a value's error in single precision between vectors of this extent; None where values
    /// or their differences would lose too much. It is at most about 2e-5 for rbf, where distances are small differences
    /// of large numbers, and 1e-6 of `sqrt(k(a, a) k(b, b))` otherwise. A kernel that is not definite has no such scale,
    /// and double precision.
    pub(super) fn error_in_single(&self, extent: &Extent) -> Option<f64> {
        /// Where values differ from each other by less than this, rounding would be too much of the differences, by which
        /// one learns.
        const CONTRAST: f64 = 0.01;
        /// Numbers that may be multiplied with each other, and the products still be single.
        const TAME: std::ops::RangeInclusive<f64> = 1e-15..=1e15;
        let Extent { nonzeros, largest, smallest } = *extent;
        // A sum of n terms is rounded n times, by half a unit of what was summed so far.
        let error = f64::from(f32::EPSILON) / 2.0 * (nonzeros as f64 / 3.0).sqrt().max(1.0);
        let are_norms_tame = largest == 0.0 || (TAME.contains(&largest) && TAME.contains(&smallest));
        // The relative error, the most that it may be, and what it is relative to.
        let (is_fine, error, most, scale) = match self.shape {
            Shape::Linear => (true, error, 1e-6, largest),
            Shape::Rbf { gamma } => {
                let exponents = gamma * largest;
                (gamma <= *TAME.end() && exponents >= CONTRAST, 4.0 * error * exponents, 2e-5, 1.0)
            }
            Shape::Poly { degree, gamma, coef0 } => {
                let value = |norm2: f64| numeric::power(gamma * norm2 + coef0, degree as i32);
                let (top, bottom) = (value(largest), value(smallest.min(largest)));
                let is_tame = TAME.contains(&gamma) && TAME.contains(&top) && TAME.contains(&bottom);
                let has_contrast = coef0 <= gamma * largest;
                (coef0 >= 0.0 && is_tame && has_contrast, f64::from(degree) * error, 1e-6, top)
            }
            Shape::Sigmoid { .. } => (false, error, 0.0, 1.0),
        };
        // A constant takes digits from what it is added to.
        (are_norms_tame && is_fine && error <= most && self.constant <= 16.0 * scale).then_some(error * scale)
    }

    /// Bound of a value's error in double precision between vectors of this extent, as a share of `sqrt(k(a, a) k(b, b))`. 0
    /// where a kernel is not definite, and there is no such scale.
    pub(super) fn error_in_double(&self, extent: &Extent) -> f64 {
        let unit = extent.unit_of_products();
        match self.shape {
            Shape::Linear => unit,
            Shape::Rbf { gamma } => (2.0 * gamma * extent.largest * unit).min(MOST_ERROR) + 4.0 * f64::EPSILON,
            Shape::Poly { degree, .. } => 2.0 * f64::from(degree) * unit,
            Shape::Sigmoid { .. } => 0.0,
        }
    }

    /// Is single precision accurate enough to predict with?
    pub(super) fn is_fine_in_single(&self, extent: &Extent) -> bool {
        self.error_in_single(extent).is_some()
    }
}
