//! Kernels: inner products `k(a, b) = <phi(a), phi(b)>` of feature maps that are never written down.
//!
//! A kernel acts inside a block: where psi(x, y) places the vectors of x in slots, `phi (x) e_k`, it takes the place of
//! their inner products. The vectors of all examples, each kept once, are the [`Atoms`]; an input is told by the numbers of
//! its vectors alone, as a one-hot vector, and any task made of blocks works on these as it does on others. What changes is
//! the inner product of two weight vectors, which the [`Gram`] matrix of the atoms gives.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::numeric;
use crate::sparse::SparseView;

mod atoms;
mod cache;
mod columns;
mod combine;
mod expansion;
mod function;
mod gram;
mod low_rank;
mod metric;
mod panel;
mod pivots;
mod real;
mod rows;
mod specification;
mod triangle;

pub use atoms::Atoms;
pub use columns::Columns;
pub use expansion::Expansion;
pub use gram::{Entry, Gram, Precision};
pub use low_rank::{Basis, LowRank};
pub(crate) use metric::AtomsOf;
pub use metric::Metric;
pub use specification::{Gamma, Specification};

/// `k(a, b)`: symmetric, and positive definite for training to have a bound. Implement it for a kernel of your own.
pub trait Kernel: Debug + Send + Sync {
    /// `k(a, b)`
    fn value(&self, a: SparseView<'_>, b: SparseView<'_>) -> f64;

    /// The same as a function of `<a, b>`, where it is one: then many values are computed together, much faster.
    fn standard(&self) -> Option<Standard> {
        None
    }
}

/// How a [`Standard`] kernel follows from inner products.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// `<a, b>`
    Linear,
    /// `exp(-gamma |a - b|^2)`
    Rbf {
        /// gamma > 0
        gamma: f64,
    },
    /// `(gamma <a, b> + coef0)^degree`
    Poly {
        /// At least 1.
        degree: u32,
        /// gamma > 0
        gamma: f64,
        /// Positive definite for `coef0 >= 0`.
        coef0: f64,
    },
    /// `tanh(gamma <a, b> + coef0)`, which is not positive definite as a rule.
    Sigmoid {
        /// Any gamma but 0.
        gamma: f64,
        /// Any number.
        coef0: f64,
    },
}

/// A kernel that is a function of inner products, plus a constant: that of the constant feature which plays the bias.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Standard {
    /// The function.
    pub shape: Shape,
    /// Added to it, not negative.
    pub constant: f64,
}

impl Standard {
    /// `k(a, b)` from `<a, b>`, `|a|^2` and `|b|^2`. With rbf, the distance of vectors that are near to each other beside
    /// their lengths loses digits; [`Kernel::value`] keeps them.
    #[inline]
    pub fn of(&self, product: f64, a: f64, b: f64) -> f64 {
        self.constant
            + match self.shape {
                Shape::Linear => product,
                // Rounding must not make a distance negative.
                Shape::Rbf { gamma } => numeric::exp(-gamma * (a + b - 2.0 * product).max(0.0)),
                Shape::Poly { degree, gamma, coef0 } => numeric::power(gamma * product + coef0, degree as i32),
                Shape::Sigmoid { gamma, coef0 } => numeric::tanh(gamma * product + coef0),
            }
    }

    /// Are its parameters within their ranges? Those that come from elsewhere than a [`Specification`] may not be.
    pub fn check(&self) -> Result<()> {
        let fail = |name: &str, x: f64| Err(Error::model(format!("not a valid kernel: {name} is {x}")));
        let (gamma, coef0) = match self.shape {
            Shape::Linear => (1.0, 0.0),
            Shape::Rbf { gamma } => (gamma, 0.0),
            Shape::Poly { gamma, coef0, .. } | Shape::Sigmoid { gamma, coef0 } => (gamma, coef0),
        };
        let is_signed = matches!(self.shape, Shape::Sigmoid { .. });
        match self.shape {
            Shape::Poly { degree, .. } if !(1..=i32::MAX as u32).contains(&degree) => fail("degree", degree.into()),
            _ if !(gamma.is_finite() && gamma != 0.0 && (gamma > 0.0 || is_signed)) => fail("gamma", gamma),
            _ if !coef0.is_finite() => fail("coef0", coef0),
            _ if !(self.constant.is_finite() && self.constant >= 0.0) => fail("the constant", self.constant),
            _ => Ok(()),
        }
    }

    /// Is every matrix of its values positive semidefinite, so that there is a feature map at all?
    pub fn is_definite(&self) -> bool {
        match self.shape {
            Shape::Linear | Shape::Rbf { .. } => true,
            Shape::Poly { coef0, .. } => coef0 >= 0.0,
            Shape::Sigmoid { .. } => false,
        }
    }
}

impl Kernel for Standard {
    fn value(&self, a: SparseView<'_>, b: SparseView<'_>) -> f64 {
        match self.shape {
            Shape::Rbf { gamma } => self.constant + numeric::exp(-gamma * distance2(a, b)),
            _ => self.of(product(a, b), a.norm2(), b.norm2()),
        }
    }

    fn standard(&self) -> Option<Standard> {
        Some(*self)
    }
}

/// `|a - b|^2`, summed by features.
pub(crate) fn distance2(a: SparseView<'_>, b: SparseView<'_>) -> f64 {
    let (mut sum, mut a, mut b) = (0.0_f64, a.iter().peekable(), b.iter().peekable());
    loop {
        let difference = match (a.peek().copied(), b.peek().copied()) {
            (None, None) => return sum,
            (Some((i, x)), Some((j, y))) if i == j => {
                a.next();
                b.next();
                f64::from(x) - f64::from(y)
            }
            (Some((i, x)), other) if other.is_none_or(|(j, _)| i < j) => {
                a.next();
                f64::from(x)
            }
            (_, Some((_, y))) => {
                b.next();
                f64::from(y)
            }
            (Some(_), None) => unreachable!("the case above"),
        };
        sum = difference.mul_add(difference, sum);
    }
}

/// `<a, b>`
pub(crate) fn product(a: SparseView<'_>, b: SparseView<'_>) -> f64 {
    let (mut sum, mut j) = (0.0, 0);
    let (indices, values) = (b.indices(), b.values());
    for (index, value) in a.iter() {
        while j < indices.len() && indices[j] < index {
            j += 1;
        }
        if j < indices.len() && indices[j] == index {
            sum += f64::from(value) * f64::from(values[j]);
        }
    }
    sum
}
