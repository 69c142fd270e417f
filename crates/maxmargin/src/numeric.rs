//! Logarithms, exponentials and powers that have the same bits on every CPU.
//!
//! The methods of `f64` (`ln`, `exp`, `powf`, `tanh`, ..) call the C library. The C library chooses between versions
//! with and without fused multiply-add at run time, and their last bits differ. `powi` is left to the compiler, which
//! promises no order of the products. A last bit decides ties, pivots and step sizes, so that whole models differ. The
//! functions below are made of additions, multiplications and divisions in a fixed order. clippy.toml disallows the
//! methods that they replace.
//!
//! `sqrt`, `floor`, `ceil`, `round` and `mul_add` are exact or correctly rounded by definition, and stay methods.

/// `e^x`
pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

/// `2^x`
pub fn exp2(x: f64) -> f64 {
    libm::exp2(x)
}

/// The natural logarithm of x.
pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// The logarithm of x to base 10.
pub fn log10(x: f64) -> f64 {
    libm::log10(x)
}

/// `x^y`
pub fn pow(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// The hyperbolic tangent of x.
pub fn tanh(x: f64) -> f64 {
    libm::tanh(x)
}

/// `x^2`
#[inline]
pub fn square(x: f64) -> f64 {
    x * x
}

/// `x^n` by repeated squaring; the inverse of `x^-n` where n is negative.
pub fn power(x: f64, n: i32) -> f64 {
    let (mut power, mut square, mut rest) = (1.0, x, n.unsigned_abs());
    loop {
        if rest % 2 == 1 {
            power *= square;
        }
        rest /= 2;
        if rest == 0 {
            return if n < 0 { 1.0 / power } else { power };
        }
        square *= square;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_those_that_were_recorded() {
        type Recorded = (&'static str, fn(f64) -> f64, u32);
        let recorded: [Recorded; 10] = [
            ("exp x", exp, 0x4d0c_9934),
            ("exp -x", |x| exp(-x), 0x702f_3360),
            ("exp2 x", exp2, 0xe580_543c),
            ("ln x", ln, 0x2ddd_d6f7),
            ("ln of small numbers", |x| ln(1e-9 * x), 0x0931_08cf),
            ("log10 x", log10, 0x28dc_69c9),
            ("x to the power of 0.3", |x| pow(x, 0.3), 0x070a_4124),
            ("0.01 to the power of x", |x| pow(0.01, x), 0xf6de_d24e),
            ("tanh x / 10", |x| tanh(0.1 * x), 0x25f6_0b59),
            ("x^7", |x| power(x, 7), 0xdfcd_bf83),
        ];
        for (name, function, checksum) in recorded {
            let mut hasher = crc32fast::Hasher::new();
            for x in (0..4000).map(|i| 1.0 + f64::from(i) * 0.001_234_567) {
                hasher.update(&function(x).to_bits().to_le_bytes());
            }
            assert_eq!(hasher.finalize(), checksum, "{name}");
        }
    }

    #[test]
    fn values_are_near_those_of_the_c_library() {
        let is_near = |a: f64, b: f64| a == b || (a - b).abs() <= 4.0 * f64::EPSILON * b.abs();
        for x in (1..2000).map(|i| f64::from(i) * 0.0371) {
            assert!(is_near(exp(x), x.exp()) && is_near(exp(-x), (-x).exp()), "exp {x}");
            assert!(is_near(exp2(x), x.exp2()) && is_near(tanh(x), x.tanh()), "exp2, tanh {x}");
            assert!(is_near(ln(x), x.ln()) && is_near(log10(x), x.log10()), "ln, log10 {x}");
            assert!(is_near(pow(x, 0.37), x.powf(0.37)) && is_near(pow(0.37, x), 0.37_f64.powf(x)), "pow {x}");
        }
    }

    #[test]
    fn powers_of_ten_and_two_are_exact() {
        for (n, exact) in (0..23).zip(std::iter::successors(Some(1.0), |x| Some(10.0 * x))) {
            assert_eq!((power(10.0, n), power(10.0, -n)), (exact, 1.0 / exact));
        }
        assert!((0..1022).all(|n| exp2(-f64::from(n)) == power(0.5, n)));
        assert_eq!((power(0.0, 0), power(-3.0, 3), power(-2.0, -1), power(3.0, 1)), (1.0, -27.0, -0.5, 3.0));
        assert_eq!((power(2.0, i32::MIN), power(1.0, i32::MIN), power(2.0, 1023)), (0.0, 1.0, 2.0_f64.powf(1023.0)));
    }
}
