//! The two precisions in which kernels are computed, and what both can do on many numbers at once.
//!
//! Products are fused into sums (`mul_add`), which every machine rounds alike, and the exponential is made of such steps
//! alone: values have the same bits everywhere.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

use pulp::Simd;

/// Numbers that are computed together.
pub(super) const TILE: usize = 128;

/// f32 or f64.
pub(super) trait Real:
    Copy
    + Debug
    + Default
    + PartialOrd
    + Send
    + Sync
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + 'static
{
    /// As many as a register of the machine holds.
    type Lanes<S: Simd>: Copy;
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// The largest number.
    const MAX: Self;
    /// Is this type f64?
    const IS_DOUBLE: bool;

    /// The nearest number of this precision.
    fn new(x: f64) -> Self;

    /// A feature's value, which is stored in single precision.
    fn of_value(x: f32) -> Self;

    /// The number in double precision.
    fn f64(self) -> f64;

    /// `self * b + c`, rounded once.
    fn fused(self, b: Self, c: Self) -> Self;

    /// `exp(-self)` for `self >= 0`, within 2 units in the last place; 0 where it is not above the smallest normal number.
    fn exp_minus(self) -> Self;

    /// The numbers of a tile, register by register.
    fn lanes<S: Simd>(tile: &[Self; TILE]) -> &[Self::Lanes<S>];

    /// The same, to write.
    fn lanes_mut<S: Simd>(tile: &mut [Self; TILE]) -> &mut [Self::Lanes<S>];

    /// One number in all places of a register.
    fn splat<S: Simd>(simd: S, x: Self) -> Self::Lanes<S>;

    /// `a * b + c`, rounded once.
    fn fused_lanes<S: Simd>(simd: S, a: Self::Lanes<S>, b: Self::Lanes<S>, c: Self::Lanes<S>) -> Self::Lanes<S>;

    /// The smaller of two; a comparison and nothing else, which the machine does in one step.
    #[inline(always)]
    fn least(self, other: Self) -> Self {
        if self < other { self } else { other }
    }

    /// The larger of two.
    #[inline(always)]
    fn most(self, other: Self) -> Self {
        if self > other { self } else { other }
    }

    /// `tanh(self)`
    #[inline(always)]
    fn hyperbolic_tangent(self) -> Self {
        // Below, the difference 1 - e loses digits and the series has all of them.
        let small = Self::new(0.02);
        let size = self.most(-self);
        let e = (size + size).exp_minus();
        let far = (Self::ONE - e) / (Self::ONE + e);
        let square = self * self;
        let series = square.fused(Self::new(-17.0 / 315.0), Self::new(2.0 / 15.0));
        let series = square.fused(series, Self::new(-1.0 / 3.0));
        let near = square.fused(series, Self::ONE) * self;
        if size < small {
            near
        } else if self < Self::ZERO {
            -far
        } else {
            far
        }
    }
}

/// `$shift` is 1.5 * 2^(bits of the mantissa): what is added to it is rounded to a whole number, which then stands in the
/// lowest bits. `$most`: from here on exp(-t) counts as 0, a little above the smallest normal number. `$rest`: what ln 2 is
/// more than its nearest number. `$terms`: 1/k! downwards, so many that the next is below the precision at ln(2)/2.
macro_rules! real {
    ($real:ident, $lanes:ident, $as:ident, $as_mut:ident, $splat:ident, $mul_add:ident, $bias:expr, $shift:expr,
     $most:expr, $rest:expr, $terms:expr) => {
        impl Real for $real {
            type Lanes<S: Simd> = S::$lanes;
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const MAX: Self = $real::MAX;
            const IS_DOUBLE: bool = size_of::<$real>() == size_of::<f64>();

            #[inline(always)]
            #[allow(clippy::cast_lossless)]
            fn new(x: f64) -> Self {
                x as $real
            }

            #[inline(always)]
            #[allow(clippy::cast_lossless)]
            fn of_value(x: f32) -> Self {
                x as $real
            }

            #[inline(always)]
            #[allow(clippy::cast_lossless)]
            fn f64(self) -> f64 {
                self as f64
            }

            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }

            // exp(-t) = 2^n exp(r) with n = round(-t / ln 2) and |r| <= ln(2) / 2
            #[inline(always)]
            fn exp_minus(self) -> Self {
                const TERMS: &[$real] = &$terms;
                let t = self.least($most);
                let shifted = (-t).mul_add(std::$real::consts::LOG2_E, $shift);
                let n = shifted - $shift;
                let r = n.mul_add(-std::$real::consts::LN_2, -t);
                let r = n.mul_add(-$rest, r);
                let mut sum = TERMS[0];
                for &term in &TERMS[1..] {
                    sum = sum.mul_add(r, term);
                }
                let power = $real::from_bits(shifted.to_bits().wrapping_add($bias) << ($real::MANTISSA_DIGITS - 1));
                if self < $most { sum * power } else { 0.0 }
            }

            #[inline(always)]
            fn lanes<S: Simd>(tile: &[Self; TILE]) -> &[Self::Lanes<S>] {
                S::$as(tile).0
            }

            #[inline(always)]
            fn lanes_mut<S: Simd>(tile: &mut [Self; TILE]) -> &mut [Self::Lanes<S>] {
                S::$as_mut(tile).0
            }

            #[inline(always)]
            fn splat<S: Simd>(simd: S, x: Self) -> Self::Lanes<S> {
                simd.$splat(x)
            }

            #[inline(always)]
            fn fused_lanes<S: Simd>(
                simd: S,
                a: Self::Lanes<S>,
                b: Self::Lanes<S>,
                c: Self::Lanes<S>,
            ) -> Self::Lanes<S> {
                simd.$mul_add(a, b, c)
            }
        }
    };
}

/// 1 / n!
const fn inverse_factorial(n: u32) -> f64 {
    let (mut factorial, mut k) = (1.0, 2);
    while k <= n {
        factorial *= k as f64;
        k += 1;
    }
    1.0 / factorial
}

/// `1/(N-1)!, .., 1/1!, 1/0!`
const fn terms<const N: usize>() -> [f64; N] {
    let (mut terms, mut at) = ([0.0; N], 0);
    while at < N {
        terms[at] = inverse_factorial((N - 1 - at) as u32);
        at += 1;
    }
    terms
}

/// The same in single precision.
const fn single_terms<const N: usize>() -> [f32; N] {
    let (exact, mut terms, mut at) = (terms::<N>(), [0.0; N], 0);
    while at < N {
        terms[at] = exact[at] as f32;
        at += 1;
    }
    terms
}

real!(
    f32,
    f32s,
    as_simd_f32s,
    as_mut_simd_f32s,
    splat_f32s,
    mul_add_f32s,
    127,
    12_582_912.0,
    87.0,
    -1.904_654_3e-9,
    single_terms::<8>()
);
real!(
    f64,
    f64s,
    as_simd_f64s,
    as_mut_simd_f64s,
    splat_f64s,
    mul_add_f64s,
    1023,
    6_755_399_441_055_744.0,
    708.0,
    2.319_046_813_846_3e-17,
    terms::<14>()
);

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use pulp::{Scalar, WithSimd};

    use super::*;

    /// How many units in the last place the two differ by.
    fn ulps(found: f64, exact: f64, epsilon: f64) -> f64 {
        (found - exact).abs() / (exact * epsilon)
    }

    /// 0 to 90 and beyond for f32, 0 to 710 for f64: evenly, and near 0 in all sizes.
    fn arguments() -> impl Iterator<Item = f64> {
        (0..1_000_000).map(|i| f64::from(i) * 0.000_713).chain((0..2000).map(|i| 1.1_f64.powi(-i)))
    }

    #[test]
    fn the_exponential_is_within_two_units_in_the_last_place() {
        let (mut single, mut double) = (0.0_f64, 0.0_f64);
        for t in arguments() {
            let t32 = t as f32;
            if t32 < 87.0 {
                let exact = (-f64::from(t32)).exp();
                single = single.max(ulps(f64::from(t32.exp_minus()), exact, f64::from(f32::EPSILON)));
            } else {
                assert_eq!(t32.exp_minus(), 0.0);
            }
            if t < 708.0 {
                double = double.max(ulps(t.exp_minus(), (-t).exp(), f64::EPSILON));
            } else {
                assert_eq!(t.exp_minus(), 0.0);
            }
        }
        assert!(single <= 2.0, "{single} units in f32");
        assert!(double <= 2.0, "{double} units in f64");
    }

    #[test]
    fn the_exponential_at_its_ends() {
        assert_eq!((0.0_f32.exp_minus(), 0.0_f64.exp_minus()), (1.0, 1.0));
        assert_eq!((f32::INFINITY.exp_minus(), f64::INFINITY.exp_minus()), (0.0, 0.0));
        assert_eq!((f32::MAX.exp_minus(), f64::MAX.exp_minus()), (0.0, 0.0));
        assert_eq!((f32::MIN_POSITIVE.exp_minus(), f64::MIN_POSITIVE.exp_minus()), (1.0, 1.0));
        assert!(86.999_f32.exp_minus() >= f32::MIN_POSITIVE && 707.999_f64.exp_minus() >= f64::MIN_POSITIVE);
    }

    #[test]
    fn the_tangent_is_that_of_the_standard_library() {
        for t in arguments() {
            for x in [t, -t] {
                let exact = x.tanh();
                assert!((x.hyperbolic_tangent() - exact).abs() <= 1e-14 * exact.abs(), "tanh {x}");
            }
        }
        assert_eq!((0.0_f64.hyperbolic_tangent(), f64::INFINITY.hyperbolic_tangent()), (0.0, 1.0));
        assert_eq!(f64::NEG_INFINITY.hyperbolic_tangent(), -1.0);
    }

    /// The bits of fused products, exponentials and tangents of some numbers.
    struct Bits<R>(PhantomData<R>);

    impl<R: Real> WithSimd for Bits<R> {
        type Output = Vec<u64>;

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> Vec<u64> {
            let mut bits = Vec::new();
            for start in (0..20_000).step_by(TILE) {
                let x: [R; TILE] = std::array::from_fn(|lane| R::new(0.1 + 0.000_713 * (start + lane) as f64));
                let mut sums = x;
                for (sum, &x) in R::lanes_mut::<S>(&mut sums).iter_mut().zip(R::lanes::<S>(&x)) {
                    *sum = R::fused_lanes(simd, x, x, *sum);
                }
                for (x, sum) in x.into_iter().zip(sums) {
                    let values = [sum, x.fused(x, x), x.exp_minus(), x.hyperbolic_tangent()];
                    bits.extend(values.map(|x| x.f64().to_bits()));
                }
            }
            bits
        }
    }

    /// On each back-end that this CPU has.
    fn check_back_ends<R: Real>() {
        let bits = Scalar.vectorize(Bits::<R>(PhantomData));
        assert!(bits.as_chunks().0.iter().all(|[sum, fused, ..]: &[u64; 4]| sum == fused));
        #[cfg(target_arch = "x86_64")]
        {
            use pulp::x86::{V3, V4};
            if let Some(simd) = V3::try_new() {
                assert!(Simd::vectorize(simd, Bits::<R>(PhantomData)) == bits, "V3");
            }
            if let Some(simd) = V4::try_new() {
                assert!(Simd::vectorize(simd, Bits::<R>(PhantomData)) == bits, "V4");
            }
        }
    }

    #[test]
    fn all_back_ends_have_the_same_bits() {
        check_back_ends::<f32>();
        check_back_ends::<f64>();
        // A product that is rounded before the sum leaves 0.
        let x = 1.0 + f64::EPSILON;
        assert_ne!(x.fused(x, -(x * x)), 0.0);
        assert_ne!(Scalar.mul_add_f64s(x, x, -(x * x)), 0.0);
    }
}
