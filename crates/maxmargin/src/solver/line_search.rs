//! The exact minimum of P along a segment.
//!
//! `P(t) = 1/2 |center + t d|^2 + (C/n) sum_i c_i slack(H_i(t))` is convex, and quadratic between the breaks where an
//! example changes its worst line. Instead of sorting the breaks the search brackets the minimum and throws away, step
//! by step, those outside: what is left when no break is inside is one polynomial. Exact, and linear in their number.

use crate::parallel::Pool;
use crate::sparse::dot;
use crate::weights::Weights;

/// `p[0] + p[1] t + p[2] t^2`
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Polynomial([f64; 3]);

impl Polynomial {
    /// `1/2 |center + t (ahead - center)|^2`
    pub(super) fn half_norm2(center: &Weights, ahead: &Weights) -> Self {
        if center.has_coefficients() {
            let (c, a, both) = (center.norm2(), ahead.norm2(), dot(center.coefficients(), ahead.as_slice()));
            // Of a metric that is none but for rounding, or for a kernel that is not positive definite.
            return Self([0.5 * c, both - c, (0.5 * (a + c) - both).max(0.0)]);
        }
        let mut p = [0.0; 3];
        for (&c, &a) in center.as_slice().iter().zip(ahead.as_slice()) {
            let d = a - c;
            p[0] += 0.5 * c * c;
            p[1] += c * d;
            p[2] += 0.5 * d * d;
        }
        Self(p)
    }

    /// `value + slope t`
    pub(super) fn line(value: f64, slope: f64) -> Self {
        Self([value, slope, 0.0])
    }

    /// `(value + slope t)^2 / 2`
    pub(super) fn half_square(value: f64, slope: f64) -> Self {
        Self([0.5 * value * value, value * slope, 0.5 * slope * slope])
    }

    pub(super) fn at(&self, t: f64) -> f64 {
        self.0[0] + t * (self.0[1] + t * self.0[2])
    }

    fn slope(&self, t: f64) -> f64 {
        self.0[1] + 2.0 * t * self.0[2]
    }

    pub(super) fn add(&mut self, factor: f64, other: &Self) {
        for (a, b) in self.0.iter_mut().zip(other.0) {
            *a += factor * b;
        }
    }
}

/// Where an example changes its worst line: from there on its slack is larger by `rise (t - at) + bend (t - at)^2`
/// than the line before would have it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Break {
    pub(super) at: f64,
    pub(super) rise: f64,
    pub(super) bend: f64,
}

impl Break {
    fn polynomial(&self) -> Polynomial {
        let Self { at, rise, bend } = *self;
        Polynomial([at * (bend * at - rise), rise - 2.0 * bend * at, bend])
    }
}

/// Puts the breaks up to `t` first; returns their number and the sum of what they add.
fn split(breaks: &mut [Break], t: f64) -> (usize, Polynomial) {
    let (mut left, mut sum) = (0, Polynomial::default());
    for k in 0..breaks.len() {
        if breaks[k].at <= t {
            sum.add(1.0, &breaks[k].polynomial());
            breaks.swap(left, k);
            left += 1;
        }
    }
    (left, sum)
}

/// A minimum, or the news that it lies behind the end of the interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Minimum {
    /// Where.
    pub(super) t: f64,
    /// P there.
    pub(super) value: f64,
    /// P still falls at the end of the interval.
    pub(super) beyond: bool,
}

/// Where P is smallest on `[low, high]`. `total` is P on the lines that are the worst at `low`; `breaks`, a list for
/// each partition, are all between `low` and `high`, and `factor` is C/n.
pub(super) fn minimum(
    mut total: Polynomial,
    mut breaks: Vec<&mut [Break]>,
    (mut low, mut high): (f64, f64),
    factor: f64,
    pool: &Pool,
) -> Minimum {
    const PROBES: usize = 100;
    let mut low_slope = total.slope(low);
    if low_slope >= 0.0 {
        return Minimum { t: low, value: total.at(low), beyond: false };
    }
    let at_end = pool.map(breaks.iter().collect(), |breaks: &&mut [Break]| {
        breaks.iter().fold(Polynomial::default(), |mut sum, b| {
            sum.add(1.0, &b.polynomial());
            sum
        })
    });
    let mut end = total;
    for sum in &at_end {
        end.add(factor, sum);
    }
    let mut high_slope = end.slope(high);
    if high_slope < 0.0 {
        return Minimum { t: high, value: end.at(high), beyond: true };
    }
    let mut last_width = f64::INFINITY;
    for _ in 0..PROBES {
        let width = high - low;
        if breaks.iter().all(|b| b.is_empty()) || width <= 1e-14 * high {
            break;
        }
        // Where the slope would vanish if it were linear; half-way where that has not halved the bracket.
        let t = if width > 0.5 * last_width {
            0.5 * (low + high)
        } else {
            low - width * low_slope / (high_slope - low_slope)
        };
        let t = t.clamp(low, high);
        last_width = width;
        let splits = pool.map(breaks.iter_mut().collect(), |breaks| split(breaks, t));
        let mut there = total;
        for (_, sum) in &splits {
            there.add(factor, sum);
        }
        let falls = there.slope(t) < 0.0;
        breaks = breaks
            .into_iter()
            .zip(&splits)
            .map(|(breaks, &(left, _))| if falls { &mut breaks[left..] } else { &mut breaks[..left] })
            .collect();
        if falls {
            (low, low_slope, total) = (t, there.slope(t), there);
        } else {
            (high, high_slope) = (t, there.slope(t));
        }
    }
    // On the last piece, whose slope changes its sign between the ends (or jumps over zero at a break).
    let curvature = 2.0 * total.0[2];
    let t = if curvature > 0.0 { (low - low_slope / curvature).clamp(low, high) } else { high };
    Minimum { t, value: total.at(t), beyond: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a fine grid: nothing on it is lower than the minimum found, which is P at the point found.
        #[test]
        fn nothing_is_lower(
            lines in prop::collection::vec((-2.0..2.0f64, -3.0..3.0f64), 1..40),
            norm in (-3.0..3.0f64, 0.01..5.0f64),
            quadratic in any::<bool>(),
        ) {
            let mut total = Polynomial([0.0, norm.0, norm.1]);
            let base = total;
            let mut breaks = Vec::new();
            for &(value, slope) in &lines {
                // slack(max(0, value + slope t)): a break where the line crosses zero
                let piece = if quadratic { Polynomial::half_square(value, slope) } else { Polynomial::line(value, slope) };
                if value > 0.0 {
                    total.add(1.0, &piece);
                }
                let at = -value / slope;
                if at > 0.0 && at < 1.0 {
                    let (rise, bend) = if quadratic { (0.0, 0.5 * slope * slope) } else { (slope.abs(), 0.0) };
                    breaks.push(Break { at, rise, bend: if value > 0.0 && quadratic { -bend } else { bend } });
                }
            }
            let p = |t: f64| base.at(t) + lines.iter().map(|(v, s)| {
                let h = (v + s * t).max(0.0);
                if quadratic { 0.5 * h * h } else { h }
            }).sum::<f64>();
            let half = breaks.len() / 2;
            let (a, b) = breaks.split_at_mut(half);
            let found = minimum(total, vec![a, b], (0.0, 1.0), 1.0, &Pool::new(1).unwrap());
            prop_assert!((found.value - p(found.t)).abs() < 1e-9, "{} at {} is {}", found.value, found.t, p(found.t));
            for k in 0..=1000 {
                let t = f64::from(k) / 1000.0;
                prop_assert!(p(t) >= found.value - 1e-9, "P({t}) = {} < P({}) = {}", p(t), found.t, found.value);
            }
        }
    }
}
