//! Decimal numbers, read as the nearest f32 and written with as few digits as say it exactly.

use std::io::{self, Write};

/// What keeps a word from being a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoNumber {
    /// Not a decimal number.
    Malformed,
    /// `nan` or `inf`.
    NotFinite,
    /// Beyond the range of f32.
    TooLarge,
}

/// Exactly representable powers of ten.
const POWERS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];

/// The digit at `text[at]`.
#[inline]
pub(crate) fn digit(text: &[u8], at: usize) -> Option<u64> {
    let d = text.get(at)?.wrapping_sub(b'0');
    (d < 10).then_some(u64::from(d))
}

/// The fast path: reads a number of at most 15 digits and no exponent at the start of `text`; returns it and its
/// length. `None` says nothing: ask [`decimal`].
///
/// With 15 digits both the digits and the power of ten are exact in f64, so their quotient is the nearest f64.
/// Rounding that to f32 gives the nearest f32 unless it lies half-way between two of them (then the first rounding
/// may have hidden the side); [`decimal`] decides that case.
#[inline]
pub(crate) fn short_decimal(text: &[u8]) -> Option<(f32, usize)> {
    const HALF_WAY: u64 = 1 << 28;
    let start = usize::from(text.first() == Some(&b'-'));
    let (mut at, mut digits) = (start, 0_u64);
    while let Some(d) = digit(text, at) {
        digits = digits.wrapping_mul(10).wrapping_add(d);
        at += 1;
    }
    let (mut length, mut places) = (at - start, 0);
    if text.get(at) == Some(&b'.') {
        at += 1;
        let point = at;
        while let Some(d) = digit(text, at) {
            digits = digits.wrapping_mul(10).wrapping_add(d);
            at += 1;
        }
        places = at - point;
        length += places;
    }
    if length == 0 || length > 15 {
        return None;
    }
    let nearest = digits as f64 / POWERS[places & 15];
    if nearest.to_bits() & (2 * HALF_WAY - 1) == HALF_WAY {
        return None;
    }
    Some((if start == 1 { -nearest as f32 } else { nearest as f32 }, at))
}

/// The f32 nearest to a whole word: `[+-] digits [. digits] [e [+-] digits]`, as `str::parse::<f32>` has it.
#[cold]
pub(crate) fn decimal(word: &[u8]) -> Result<f32, NoNumber> {
    let unsigned = word.strip_prefix(b"-").or_else(|| word.strip_prefix(b"+")).unwrap_or(word);
    if !unsigned.iter().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        let is = |name: &[u8]| unsigned.eq_ignore_ascii_case(name);
        let not_finite = is(b"nan") || is(b"inf") || is(b"infinity");
        return Err(if not_finite { NoNumber::NotFinite } else { NoNumber::Malformed });
    }
    match fast_float2::parse::<f32, _>(word) {
        Ok(value) if value.is_finite() => Ok(value),
        Ok(_) => Err(NoNumber::TooLarge),
        Err(_) => Err(NoNumber::Malformed),
    }
}

/// Writes `value` with the fewest digits that read back as the same f32.
pub(crate) fn write_f32(out: &mut impl Write, value: f32) -> io::Result<()> {
    // Four places and at most six digits in all: f32 tells all of those apart, so no shorter number means the same.
    let scaled = f64::from(value) * 1e4;
    let units = scaled.round();
    if units.abs() < 1e6 && (units / 1e4) as f32 == value && value != 0.0 {
        return write_units(out, units as i32);
    }
    let size = value.abs();
    if size == 0.0 || (1e-5..1e9).contains(&size) { write!(out, "{value}") } else { write!(out, "{value:e}") }
}

/// Writes `units / 10_000` without trailing zeros.
fn write_units(out: &mut impl Write, units: i32) -> io::Result<()> {
    let mut text = [b'0'; 8];
    let (mut at, mut rest) = (text.len(), units.unsigned_abs());
    let mut end = text.len();
    for place in 0..4 {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if text[at] == b'0' && end == at + 1 {
            end = at;
        }
        if place == 3 && end > at {
            at -= 1;
            text[at] = b'.';
        }
    }
    loop {
        at -= 1;
        text[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if units < 0 {
        at -= 1;
        text[at] = b'-';
    }
    out.write_all(&text[at..end])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The fast path, then the other, as readers do.
    fn read(word: &str) -> Result<f32, NoNumber> {
        match short_decimal(word.as_bytes()) {
            Some((value, length)) if length == word.len() => Ok(value),
            _ => decimal(word.as_bytes()),
        }
    }

    fn written(value: f32) -> String {
        let mut out = Vec::new();
        write_f32(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn odd_spellings() {
        for (word, value) in
            [("1", 1.0), ("-0", 0.0), ("+2", 2.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("-1E-2", -0.01)]
        {
            assert_eq!(read(word), Ok(value), "{word}");
        }
        for word in
            ["", "-", "+", ".", "-.", "e5", "1e", "1e+", "--1", "+-1", "1-2", "0x10", "1,5", "1_0", "١", "1 ", "infx"]
        {
            assert_eq!(read(word), Err(NoNumber::Malformed), "{word}");
        }
        for word in ["nan", "NaN", "-nan", "inf", "+Inf", "-infinity", "INFINITY"] {
            assert_eq!(read(word), Err(NoNumber::NotFinite), "{word}");
        }
        for word in ["1e39", "-3.5e38", "1e999999999999999999999", &"9".repeat(40)] {
            assert_eq!(read(word), Err(NoNumber::TooLarge), "{word}");
        }
        assert_eq!(read("1e-999999999999999999999"), Ok(0.0));
        assert_eq!(read(&format!("0.{}1", "0".repeat(100_000))), Ok(0.0));
    }

    #[test]
    fn half_way_cases_go_to_the_right_side() {
        // 1 + 2^-24 is half-way; the second is a little more than that, by less than f64 can see.
        for word in ["1.000000059604644775390625", "1.00000005960464477539062501", "16777217", "16777219", "33554434.0"]
        {
            assert_eq!(read(word), Ok(word.parse::<f32>().unwrap()), "{word}");
        }
    }

    #[test]
    fn four_places_are_written_in_full() {
        for (value, text) in [
            (0.5, "0.5"),
            (-12.3456, "-12.3456"),
            (99.9999, "99.9999"),
            (1.0, "1"),
            (0.0001, "0.0001"),
            (10.01, "10.01"),
        ] {
            assert_eq!(written(value), text);
        }
        assert_eq!(written(1e30), "1e30");
        assert_eq!(written(1e-7), "1e-7");
    }

    #[test]
    fn every_four_place_number_is_written_as_the_standard_library_does() {
        for units in (-1_000_000..1_000_000).step_by(37) {
            let value = (f64::from(units) / 1e4) as f32;
            assert_eq!(written(value), value.to_string());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn decimals_are_read_as_the_nearest_f32(word in "[+-]?([0-9]{1,18}(\\.[0-9]{0,18})?|\\.[0-9]{1,18})([eE][+-]?[0-9]{1,2})?") {
            let expected: f32 = word.parse().unwrap();
            match read(&word) {
                Ok(value) => prop_assert_eq!(value, expected),
                Err(e) => prop_assert!(e == NoNumber::TooLarge && expected.is_infinite()),
            }
        }

        #[test]
        fn short_decimals_take_the_fast_path_and_are_exact(digits in 0_u64..1_000_000_000, places in 0_usize..7) {
            let word = format!("{:.places$}", digits as f64 / 1e6);
            prop_assert_eq!(read(&word), Ok(word.parse::<f32>().unwrap()));
        }

        #[test]
        fn numbers_near_half_way(bits in 1e-12_f32.to_bits()..1e14_f32.to_bits(), nudge in -2_i64..=2) {
            let below = f32::from_bits(bits);
            let middle = f64::midpoint(f64::from(below), f64::from(below.next_up()));
            let word = format!("{}", f64::from_bits((middle.to_bits() as i64 + nudge) as u64));
            prop_assert_eq!(read(&word), Ok(word.parse::<f32>().unwrap()));
        }

        #[test]
        fn what_is_written_is_read_back(bits in any::<u32>()) {
            let value = f32::from_bits(bits);
            prop_assume!(value.is_finite());
            prop_assert_eq!(read(&written(value)), Ok(value));
        }

        #[test]
        fn junk_never_panics(word in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = short_decimal(&word);
            let _ = decimal(&word);
        }
    }
}
