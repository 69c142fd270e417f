//! Synthetic data: the same seed gives the same bytes on every machine and in every release.
//!
//! Everything that chance decides comes from one generator and arithmetic that IEEE 754 fixes to the last bit; no
//! function of the platform's mathematics library is called. Examples are written as they are drawn, so a file of any
//! length takes little memory.

mod alignments;
mod checkers;
mod graphs;
mod label_sets;
mod sentences;
mod taxonomy;
mod trees;

use std::io::{self, Write};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::data::svmlight;
use crate::error::{Error, Result};
use crate::sparse::SparseView;

pub use alignments::{AlignSizes, align};
pub use checkers::checkers;
pub use graphs::{GraphSizes, graph};
pub use label_sets::{LabelSetSizes, multilabel};
pub use sentences::{TagSizes, tag};
pub use taxonomy::{TaxonomySizes, taxonomy, taxonomy_tree};
pub use trees::{ParseSizes, parse};

/// How much data, of what kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sizes {
    /// Number of examples, at least 1.
    pub examples: u64,
    /// Number of features, at least 1.
    pub features: u32,
    /// Number of classes, at least 2; [`binary`] does not look at it.
    pub classes: u32,
    /// Features in each example; 0, or `features` and more, gives dense examples.
    pub nonzeros: u32,
    /// Probability, from 0 to 1, that an example gets a wrong label.
    pub noise: f64,
}

impl Default for Sizes {
    fn default() -> Self {
        Self { examples: 1000, features: 20, classes: 3, nonzeros: 0, noise: 0.0 }
    }
}

impl Sizes {
    /// Are all sizes within their ranges?
    pub fn check(&self) -> Result<()> {
        if self.examples == 0 {
            return Err(Error::setting("examples", "must be at least 1"));
        }
        if self.features == 0 || self.features == u32::MAX {
            return Err(Error::setting("features", format!("must be from 1 to {}", u32::MAX - 1)));
        }
        if self.classes < 2 {
            return Err(Error::setting("classes", "must be at least 2"));
        }
        if !(0.0..=1.0).contains(&self.noise) {
            return Err(Error::setting("noise", format!("{} is not a probability (from 0 to 1)", self.noise)));
        }
        Ok(())
    }
}

/// Writes a two-class problem with labels `+1` and `-1` in SVM-light text: the side of a hidden hyperplane through
/// the origin on which an example lies, flipped with probability `noise`. `name` stands for `out` in errors.
pub fn binary(sizes: &Sizes, seed: u64, out: &mut impl Write, name: &str) -> Result<()> {
    sizes.check()?;
    let hidden = Hidden { seed };
    write_examples(sizes, seed, out, name, |random, columns, values| {
        let mut score = 0.0;
        for &j in columns {
            let value = random.value();
            score += hidden.number(0, j) * f64::from(value);
            values.push(value);
        }
        let is_positive = (score >= 0.0) != random.happens(sizes.noise);
        if is_positive { "+1".to_owned() } else { "-1".to_owned() }
    })
}

/// Writes a problem with the labels `1` to `classes` in SVM-light text: each class has a hidden centre, uniform in the
/// cube from -1 to 1, around which its examples lie with standard deviation 1 in each feature; with probability
/// `noise` the label is one of the others. `name` stands for `out` in errors.
pub fn multiclass(sizes: &Sizes, seed: u64, out: &mut impl Write, name: &str) -> Result<()> {
    sizes.check()?;
    let hidden = Hidden { seed };
    write_examples(sizes, seed, out, name, |random, columns, values| {
        let mut class = random.below(sizes.classes);
        for &j in columns {
            let centre = hidden.number(class, j);
            values.push(rounded(centre + random.gaussian()));
        }
        if random.happens(sizes.noise) {
            class = (class + 1 + random.below(sizes.classes - 1)) % sizes.classes;
        }
        (u64::from(class) + 1).to_string()
    })
}

/// Writes examples one by one: `draw` fills in the values of the columns and returns the label.
fn write_examples(
    sizes: &Sizes,
    seed: u64,
    out: &mut impl Write,
    name: &str,
    mut draw: impl FnMut(&mut Random, &[u32], &mut Vec<f32>) -> String,
) -> Result<()> {
    let mut random = Random { source: Xoshiro256PlusPlus::seed_from_u64(seed) };
    let is_dense = sizes.nonzeros == 0 || sizes.nonzeros >= sizes.features;
    let mut columns: Vec<u32> = if is_dense { (0..sizes.features).collect() } else { Vec::new() };
    let (mut values, mut text) = (Vec::new(), Vec::new());
    for _ in 0..sizes.examples {
        if !is_dense {
            random.columns(sizes.features, sizes.nonzeros as usize, &mut columns);
        }
        values.clear();
        let label = draw(&mut random, &columns, &mut values);
        text.clear();
        let written: io::Result<()> =
            svmlight::write(&mut text, Some(&label), None, SparseView::new(&columns, &values));
        written.and_then(|()| out.write_all(&text)).map_err(|e| Error::io(name, e))?;
    }
    out.flush().map_err(|e| Error::io(name, e))
}

/// Four places: files stay small, and no two values of interest fall together.
fn rounded(value: f64) -> f32 {
    ((value * 1e4).round() / 1e4) as f32
}

/// Hidden parameters, computed when asked for: any number of classes and features in no memory.
struct Hidden {
    seed: u64,
}

impl Hidden {
    /// Parameter (k, j), uniform from -1 to 1: the output function of `SplitMix64` over seed and position.
    fn number(&self, k: u32, j: u32) -> f64 {
        let position = u64::from(k) << 32 | u64::from(j);
        2.0 * unit(mixed(mixed(self.seed ^ 0x6869_6464_656e).wrapping_add(position))) - 1.0
    }
}

fn mixed(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// 53 of the bits, as a number from 0 to below 1.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Chance, with our own distributions: those of the `rand` crates may change between releases.
struct Random {
    source: Xoshiro256PlusPlus,
}

impl Random {
    /// Uniform from 0 to below 1.
    fn uniform(&mut self) -> f64 {
        unit(self.source.next_u64())
    }

    /// Uniform from 0 to below `end` (at least 1): the high half of a product, off by less than 2^-32.
    fn below(&mut self, end: u32) -> u32 {
        ((u128::from(self.source.next_u64()) * u128::from(end)) >> 64) as u32
    }

    fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Nearly normal, mean 0, variance 1: twelve uniform numbers of 16 bits, added up. Additions are exact everywhere,
    /// logarithms and cosines are not.
    fn gaussian(&mut self) -> f64 {
        let mut sum = 0;
        for _ in 0..3 {
            let bits = self.source.next_u64();
            sum += (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
        }
        // The mean of 0..=65535 is 65535/2.
        (sum as f64 - 6.0 * 65535.0) / 65536.0
    }

    /// A nearly normal value in four places, never 0: an example has as many features as it should.
    fn value(&mut self) -> f32 {
        loop {
            let value = rounded(self.gaussian());
            if value != 0.0 {
                return value;
            }
        }
    }

    /// `count` distinct columns below `end`, ascending; every set is equally likely.
    fn columns(&mut self, end: u32, count: usize, columns: &mut Vec<u32>) {
        columns.clear();
        if count as u64 * 8 > u64::from(end) {
            // Knuth's algorithm S: each column in turn, with the probability that it is among those left to choose.
            for j in 0..end {
                if (self.below(end - j) as usize) < count - columns.len() {
                    columns.push(j);
                }
            }
            return;
        }
        while columns.len() < count {
            for _ in columns.len()..count {
                columns.push(self.below(end));
            }
            columns.sort_unstable();
            columns.dedup();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::input::Input;
    use crate::data::svmlight::{LabelRule, Labelled, read};
    use crate::parallel::Pool;

    fn text(generate: impl Fn(&Sizes, u64, &mut Vec<u8>, &str) -> Result<()>, sizes: &Sizes, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        generate(sizes, seed, &mut out, "memory").unwrap();
        out
    }

    fn parsed(text: &[u8]) -> Labelled {
        read(Input::new("synthetic", text).unwrap(), LabelRule::Required, &Pool::new(1).unwrap()).unwrap()
    }

    #[test]
    fn the_same_seed_gives_these_bytes_for_ever() {
        let sizes = Sizes { examples: 200, features: 30, classes: 5, nonzeros: 7, noise: 0.1 };
        let dense = Sizes { nonzeros: 0, ..sizes };
        let wide = Sizes { features: 1_000_000, ..sizes };
        let sums = [sizes, dense, wide]
            .map(|s| (crc32fast::hash(&text(binary, &s, 1)), crc32fast::hash(&text(multiclass, &s, 1))));
        let golden = [(2_903_097_714, 3_519_325_882), (2_027_341_642, 1_881_770_822), (3_827_586_708, 1_923_001_391)];
        assert_eq!(sums, golden);
        assert_ne!(text(binary, &sizes, 1), text(binary, &sizes, 2));
    }

    #[test]
    fn sizes_are_kept() {
        let sizes = Sizes { examples: 3000, features: 40, classes: 4, nonzeros: 9, noise: 0.0 };
        let data = parsed(&text(binary, &sizes, 3));
        assert_eq!((data.len(), data.matrix.nonzeros(), data.matrix.columns()), (3000, 27_000, 40));
        assert_eq!(data.labels.names.len(), 2);
        let data = parsed(&text(multiclass, &Sizes { nonzeros: 40, ..sizes }, 3));
        assert_eq!((data.len(), data.matrix.columns()), (3000, 40));
        for k in 0..4 {
            let count = data.labels.ids.iter().filter(|&&id| id == k).count();
            assert!((650..850).contains(&count), "class {k}: {count}");
        }
    }

    #[test]
    fn noise_flips_that_share_of_labels() {
        let sizes = Sizes { examples: 5000, ..Sizes::default() };
        let (clean, all) = (text(binary, &sizes, 5), text(binary, &Sizes { noise: 1.0, ..sizes }, 5));
        let some = text(binary, &Sizes { noise: 0.2, ..sizes }, 5);
        let sign = |text: &[u8]| text.split(|&b| b == b'\n').map(|line| line.first().copied()).collect::<Vec<_>>();
        let flipped = |a: &[u8]| sign(a).iter().zip(sign(&clean)).filter(|(a, b)| **a != *b).count();
        assert_eq!(flipped(&all), 5000);
        assert!((900..1100).contains(&flipped(&some)));
    }

    #[test]
    fn the_gaussian_has_mean_0_and_variance_1() {
        let mut random = Random { source: Xoshiro256PlusPlus::seed_from_u64(7) };
        let n = 100_000;
        let draws: Vec<f64> = (0..n).map(|_| random.gaussian()).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(n);
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
    }

    #[test]
    fn bad_sizes_are_refused_by_name() {
        let good = Sizes::default();
        for (sizes, name) in [
            (Sizes { examples: 0, ..good }, "examples"),
            (Sizes { features: 0, ..good }, "features"),
            (Sizes { classes: 1, ..good }, "classes"),
            (Sizes { noise: f64::NAN, ..good }, "noise"),
            (Sizes { noise: -0.1, ..good }, "noise"),
        ] {
            let error = multiclass(&sizes, 0, &mut Vec::new(), "memory").unwrap_err();
            assert!(matches!(error, Error::Setting { name: n, .. } if n == name), "{error}");
        }
    }
}
