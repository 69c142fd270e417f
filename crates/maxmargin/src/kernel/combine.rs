//! Linear combinations of kernel values, summed in double precision.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

use pulp::{Arch, Simd, WithSimd};

use super::real::Real;

/// Sums that run side by side: one alone would wait for each addition.
const LANES: usize = 8;

/// `image[b * width + slot] += scale * row[b]` for all b.
pub(super) fn add_row<R: Real>(scale: f64, row: &[R], slot: usize, width: usize, image: &mut [f64]) {
    debug_assert_eq!(image.len(), row.len() * width);
    // Checked here, it need not be checked for each b.
    assert!(slot < width, "slot {slot} of {width}");
    Arch::new().dispatch(AddRow { scale, row, slot, width, image });
}

struct AddRow<'c, R> {
    scale: f64,
    row: &'c [R],
    slot: usize,
    width: usize,
    image: &'c mut [f64],
}

impl<R: Real> WithSimd for AddRow<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { scale, row, slot, width, image } = self;
        if width == 1 {
            for (y, x) in image.iter_mut().zip(row) {
                *y += scale * x.f64();
            }
        } else {
            for (y, x) in image.chunks_exact_mut(width).zip(row) {
                y[slot] += scale * x.f64();
            }
        }
    }
}

/// `scores[k] += sum_j values[j] * coefficients[j * width + k]`
pub(super) fn add_scores<R: Real>(values: &[R], coefficients: &[f64], scores: &mut [f64]) {
    debug_assert_eq!(coefficients.len(), values.len() * scores.len());
    Arch::new().dispatch(AddScores { values, coefficients, scores });
}

struct AddScores<'c, R> {
    values: &'c [R],
    coefficients: &'c [f64],
    scores: &'c mut [f64],
}

impl<R: Real> WithSimd for AddScores<'_, R> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { values, coefficients, scores } = self;
        if let [score] = scores {
            let (x, x_rest) = values.as_chunks::<LANES>();
            let (c, c_rest) = coefficients.as_chunks::<LANES>();
            let mut sums = [0.0; LANES];
            for (x, c) in x.iter().zip(c) {
                for l in 0..LANES {
                    sums[l] += x[l].f64() * c[l];
                }
            }
            let rest: f64 = x_rest.iter().zip(c_rest).map(|(x, c)| x.f64() * c).sum();
            *score += sums.iter().sum::<f64>() + rest;
        } else {
            for (x, c) in values.iter().zip(coefficients.chunks_exact(scores.len())) {
                let x = x.f64();
                for (score, c) in scores.iter_mut().zip(c) {
                    *score += x * c;
                }
            }
        }
    }
}
