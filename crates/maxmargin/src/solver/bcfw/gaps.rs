//! Examples drawn in proportion to the last known gaps of their blocks (Osokin et al. 2016, section 3.1), in O(log n) a
//! draw and a change, by the partial sums of Fenwick (1994).

use serde::{Deserialize, Serialize};

use crate::solver::state::is_sound;

/// Gaps, and their partial sums: in the middle of a round these are what changes have made of them, and draws go by that.
#[derive(Serialize, Deserialize)]
pub(super) struct Gaps {
    each: Vec<f64>,
    /// Entry k - 1 is the sum of the `k & -k` gaps up to the k-th, for k from 1.
    sums: Vec<f64>,
    /// Number of gaps that are not zero.
    positive: usize,
}

impl Gaps {
    pub(super) fn new(gaps: Vec<f64>) -> Self {
        let mut all = Self { sums: gaps.clone(), positive: gaps.iter().filter(|&&gap| gap > 0.0).count(), each: gaps };
        all.refresh();
        all
    }

    pub(super) fn len(&self) -> usize {
        self.each.len()
    }

    /// Asked of gaps that were read from a file: are these some of so many examples?
    pub(super) fn is_sound(&self, examples: usize) -> bool {
        let is_whole = self.each.len() == examples && self.sums.len() == examples;
        let positive = self.each.iter().filter(|&&gap| gap > 0.0).count();
        let is_fine = self.each.iter().all(|&gap| gap >= 0.0 && is_sound(gap));
        is_whole && is_fine && self.positive == positive && self.sums.iter().copied().all(is_sound)
    }

    /// The sum of all, from scratch; the partial sums too, which many changes have made inexact.
    pub(super) fn refresh(&mut self) -> f64 {
        self.sums.copy_from_slice(&self.each);
        for k in 1..=self.sums.len() {
            let above = k + (k & k.wrapping_neg());
            if above <= self.sums.len() {
                self.sums[above - 1] += self.sums[k - 1];
            }
        }
        self.each.iter().sum()
    }

    /// Learns a gap.
    pub(super) fn set(&mut self, i: usize, gap: f64) {
        let change = gap - self.each[i];
        self.positive = self.positive + usize::from(gap > 0.0) - usize::from(self.each[i] > 0.0);
        self.each[i] = gap;
        let mut k = i + 1;
        while k <= self.sums.len() {
            self.sums[k - 1] += change;
            k += k & k.wrapping_neg();
        }
    }

    /// The example at this share, from 0 to 1, of the way through all gaps; None where all are zero. Its gap counts as zero
    /// until it is set again, so that it is not drawn twice.
    pub(super) fn draw(&mut self, share: f64) -> Option<usize> {
        if self.positive == 0 {
            return None;
        }
        let n = self.each.len();
        let (mut total, mut k) = (0.0, n);
        while k > 0 {
            total += self.sums[k - 1];
            k &= k - 1;
        }
        let mut left = share * total;
        let (mut at, mut stride) = (0, n.next_power_of_two());
        while stride > 0 {
            if at + stride <= n && self.sums[at + stride - 1] <= left {
                at += stride;
                left -= self.sums[at - 1];
            }
            stride /= 2;
        }
        // Rounding may lead past the end or to a gap of zero.
        let i = if at < n && self.each[at] > 0.0 { Some(at) } else { self.each.iter().position(|&gap| gap > 0.0) }?;
        self.set(i, 0.0);
        Some(i)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn in_proportion() {
        let weights = [3.0, 0.0, 1.0, 0.5, 0.0, 4.0, 1.5];
        let mut random = Random::new(1);
        for n in 1..=weights.len() {
            let mut gaps = Gaps::new(weights[..n].to_vec());
            let total: f64 = weights[..n].iter().sum();
            assert_eq!(gaps.refresh(), total);
            let mut counts = vec![0; n];
            let draws = 20_000;
            for _ in 0..draws {
                let i = gaps.draw(random.unit()).unwrap();
                counts[i] += 1;
                gaps.set(i, weights[i]);
            }
            for (&count, &w) in counts.iter().zip(&weights) {
                let expected = w / total;
                assert!((f64::from(count) / f64::from(draws) - expected).abs() < 0.02, "{counts:?}");
                assert_eq!(w == 0.0, count == 0, "{counts:?}");
            }
        }
    }

    #[test]
    fn each_once_until_set_again() {
        let mut random = Random::new(2);
        let mut gaps = Gaps::new(vec![0.0; 100]);
        (0..100).filter(|i| i % 3 != 0).for_each(|i| gaps.set(i, 1e-9 + random.unit().powi(20)));
        gaps.refresh();
        let mut drawn: Vec<usize> = std::iter::from_fn(|| gaps.draw(random.unit())).collect();
        drawn.sort_unstable();
        assert_eq!(drawn, (0..100).filter(|i| i % 3 != 0).collect::<Vec<_>>());
        assert_eq!(Gaps::new(vec![0.0; 3]).draw(0.5), None);
    }
}
