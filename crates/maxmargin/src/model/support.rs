//! The support vectors of a kernel model in its file: what stands for weights there.
//!
//! Vector j has the places `support_offsets[j]..support_offsets[j + 1]` of `support_indices`, which ascend within a vector,
//! and of `support_values`; row j of `coefficients` has its numbers, one a slot. The kernel is in the record.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::container::{Container, Data, Tensor, damaged};
use super::exact;
use crate::error::{Result, invalid};
use crate::kernel::{Expansion, Shape, Standard};
use crate::numeric::square;
use crate::sparse::SparseMatrix;
use crate::weights::Weights;

const OFFSETS: &str = "support_offsets";
const INDICES: &str = "support_indices";
const VALUES: &str = "support_values";
const COEFFICIENTS: &str = "coefficients";

/// A kernel in the record.
#[derive(Serialize, Deserialize)]
pub(super) struct Written(#[serde(with = "Kernel")] Standard);

impl Written {
    pub(super) fn of(expansion: &Expansion) -> Self {
        Self(expansion.kernel())
    }
}

/// [`Standard`], its numbers bit for bit.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Standard")]
struct Kernel {
    #[serde(with = "Function")]
    shape: Shape,
    #[serde(with = "exact")]
    constant: f64,
}

/// [`Shape`], its numbers bit for bit.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Shape", rename_all = "kebab-case")]
enum Function {
    Linear,
    Rbf {
        #[serde(with = "exact")]
        gamma: f64,
    },
    Poly {
        degree: u32,
        #[serde(with = "exact")]
        gamma: f64,
        #[serde(with = "exact")]
        coef0: f64,
    },
    Sigmoid {
        #[serde(with = "exact")]
        gamma: f64,
        #[serde(with = "exact")]
        coef0: f64,
    },
}

/// Does it fit a model with so many slots and features, which has no weights beside it?
pub(super) fn check(expansion: &Expansion, slots: usize, features: u32, bias: f64, weights: &Weights) -> Result<()> {
    if !weights.is_empty() {
        return invalid(format!("{} weights beside a kernel, which has none", weights.len()));
    }
    if expansion.width() as usize != slots {
        return invalid(format!("{} coefficients a support vector for {slots}", expansion.width()));
    }
    let columns = (0..expansion.len()).filter_map(|j| expansion.vectors().row(j).indices().last());
    if columns.into_iter().any(|&last| last >= features) {
        return invalid(format!("support vectors have features beyond the {features} of the model"));
    }
    let (constant, bias_square) = (expansion.kernel().constant, square(f64::from(bias as f32)));
    // The square may have been rounded on the way.
    if (constant - bias_square).abs() > 1e-6 * bias_square {
        return invalid(format!("the kernel's constant is {constant}, not the square of the bias {bias}"));
    }
    Ok(())
}

/// What goes into the file besides the record.
pub(super) fn tensors(expansion: &Expansion) -> impl Iterator<Item = (String, Tensor<'_>)> {
    let vectors = expansion.vectors();
    let rows = vectors.range(0..vectors.rows());
    let offsets = (0..rows.len()).scan(0, |end, j| {
        *end += rows.row(j).len() as u64;
        Some(*end)
    });
    let coefficients = Tensor {
        shape: vec![expansion.len(), expansion.width() as usize],
        data: Data::F64(Cow::Borrowed(expansion.coefficients())),
    };
    [
        (OFFSETS, Tensor::list(Data::U64(std::iter::once(0).chain(offsets).collect()))),
        (INDICES, Tensor::list(Data::U32(Cow::Borrowed(rows.indices())))),
        (VALUES, Tensor::list(Data::F32(Cow::Borrowed(rows.values())))),
        (COEFFICIENTS, coefficients),
    ]
    .into_iter()
    .map(|(name, tensor)| (name.to_owned(), tensor))
}

/// The expansion in a container.
pub(super) fn expansion(Written(kernel): Written, container: &mut Container<'_>) -> Result<Expansion> {
    const WRONG: &str = "support vectors of other numbers";
    let Data::U64(offsets) = container.take(OFFSETS)?.1 else { return damaged(WRONG) };
    let offsets = offsets.into_owned();
    let Data::U32(indices) = container.take(INDICES)?.1 else { return damaged(WRONG) };
    let indices = indices.into_owned();
    let Data::F32(values) = container.take(VALUES)?.1 else { return damaged(WRONG) };
    let values = values.into_owned();
    let (shape, Data::F64(coefficients)) = container.take(COEFFICIENTS)? else { return damaged(WRONG) };
    let coefficients = coefficients.into_owned();

    let is_whole = offsets.last() == Some(&(indices.len() as u64)) && indices.len() == values.len();
    if !(is_whole && offsets.first() == Some(&0) && offsets.is_sorted()) {
        return damaged("the offsets of support vectors do not fit");
    }
    let support = offsets.len() - 1;
    let &[rows, width] = &shape[..] else { return damaged("coefficients are not a matrix") };
    let Some(width) = u32::try_from(width).ok().filter(|_| rows == support) else {
        return damaged(format!("{rows} rows of coefficients for {support} support vectors"));
    };
    let mut vectors = SparseMatrix::new();
    vectors.reserve(support, indices.len());
    for pair in offsets.windows(2) {
        let range = pair[0] as usize..pair[1] as usize;
        let (indices, values) = (&indices[range.clone()], &values[range]);
        // The number of features must be a u32, too.
        if !indices.is_sorted_by(|a, b| a < b) || indices.last() == Some(&u32::MAX) {
            return damaged("the indices of a support vector do not ascend");
        }
        vectors.push_row(indices.iter().copied().zip(values.iter().copied()));
    }
    Expansion::new(kernel, vectors, coefficients, width)
}
