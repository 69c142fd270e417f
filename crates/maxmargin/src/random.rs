//! Random order from a seed, with draws of our own: they stay the same between releases of the generator's crate.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Where the draws come from.
#[derive(Serialize, Deserialize)]
pub(crate) struct Random(Xoshiro256PlusPlus);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// In `0..n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// In [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// k of the numbers `0..n`, or all where there are fewer, every set equally likely, in random order.
    pub(crate) fn choose(&mut self, n: usize, k: usize) -> Vec<usize> {
        let (mut all, k) = ((0..n).collect::<Vec<_>>(), k.min(n));
        for i in 0..k {
            all.swap(i, i + self.below(n - i));
        }
        all.truncate(k);
        all
    }

    /// Fisher and Yates.
    pub(crate) fn shuffle(&mut self, order: &mut [u32]) {
        for i in (1..order.len()).rev() {
            order.swap(i, self.below(i + 1));
        }
    }
}
