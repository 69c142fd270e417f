//! Is one model better than another, or was it luck?
//!
//! McNemar's test looks at the examples that only one of the two has right. Were both equally good, each of these would be the
//! first one's or the second one's with probability 1/2; the test asks how likely so uneven a split is. It is the exact test,
//! by the binomial distribution, with both sides counted, which holds for few examples too.
//! (Q. McNemar, 1947: Note on the sampling error of the difference between correlated proportions or percentages.)

use serde::Serialize;

use crate::numeric::exp2;

/// How often which of two models is right on the same examples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Paired {
    /// Both are right.
    pub both: u64,
    /// Only the first one is.
    pub only_first: u64,
    /// Only the second one is.
    pub only_second: u64,
    /// None is.
    pub neither: u64,
}

impl Paired {
    /// Counts one example.
    pub fn add(&mut self, is_first_right: bool, is_second_right: bool) {
        *match (is_first_right, is_second_right) {
            (true, true) => &mut self.both,
            (true, false) => &mut self.only_first,
            (false, true) => &mut self.only_second,
            (false, false) => &mut self.neither,
        } += 1;
    }

    /// How likely a split at least as uneven would be, were both models equally good: `min(1, 2 P(X <= k))`, where k is the
    /// smaller part of the n examples that only one has right, and X counts the heads of n coins.
    pub fn p_value(&self) -> f64 {
        let (n, k) = (self.only_first + self.only_second, self.only_first.min(self.only_second));
        if 2 * k >= n {
            return 1.0;
        }
        // The largest term, P(X = k): n halvings, taken as the product grows, lest it overflow. They are exact; a
        // difference of logarithms had nine digits right at n = 99,000.
        let (mut largest, mut halvings) = (1.0, n);
        for i in 1..=k {
            largest *= (n - k + i) as f64 / i as f64;
            while largest > 1.0 && halvings > 0 {
                largest *= 0.5;
                halvings -= 1;
            }
        }
        largest *= exp2(-(halvings as f64));
        let mut term = 1.0;
        let mut sum = 0.0;
        for i in (0..=k).rev() {
            sum += term;
            // P(X = i - 1) / P(X = i), below 1 and falling: what is left is soon too small to count.
            term *= i as f64 / (n - i + 1) as f64;
            if term < f64::EPSILON * 1e-3 * sum {
                break;
            }
        }
        (2.0 * sum * largest).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p(only_first: u64, only_second: u64) -> f64 {
        Paired { only_first, only_second, both: 7, neither: 3 }.p_value()
    }

    #[test]
    fn values_are_those_of_the_binomial_distribution() {
        // Sums of binomial coefficients in exact integers (Python).
        for (first, second, expected) in [
            (0, 0, 1.0),
            (1, 0, 1.0),
            (7, 7, 1.0),
            (7, 8, 1.0),
            (10, 0, 0.001_953_125),
            (5, 15, 0.041_389_465_332_031_25),
            (3, 8, 0.226_562_5),
            (450, 550, 0.001_730_536_084_976_317_6),
            (1000, 1100, 0.030_720_707_864_242_296),
            (49_000, 50_000, 0.001_498_082_622_974_973_7),
        ] {
            let found = p(first, second);
            assert!((found - expected).abs() < 1e-11 * expected, "{first} {second}: {found} for {expected}");
            assert_eq!(found, p(second, first));
        }
        assert_eq!(p(0, 5000), 0.0);
    }

    #[test]
    fn examples_are_counted() {
        let mut paired = Paired::default();
        for (first, second) in [(true, true), (true, false), (false, true), (true, false), (false, false)] {
            paired.add(first, second);
        }
        assert_eq!(paired, Paired { both: 1, only_first: 2, only_second: 1, neither: 1 });
    }
}
