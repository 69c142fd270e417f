//! Examples with sets of labels.

use std::io::Write;

use super::{Hidden, Random, Sizes, rounded, write_examples};
use crate::error::{Error, Result};

/// How much data, of what kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LabelSetSizes {
    /// Number of examples, at least 1.
    pub examples: u64,
    /// Number of features, at least 1.
    pub features: u32,
    /// Features in each example; 0, or `features` and more, gives dense examples.
    pub nonzeros: u32,
    /// Number of labels, from 1 to 65536.
    pub labels: u32,
    /// Mean number of labels of an example, above 0 and at most half of the labels.
    pub cardinality: f64,
    /// Probability, from 0 to 1, that the labels of a group depend on each other.
    pub correlation: f64,
    /// Standard deviation of the features, 0 or more; what a label adds to them is uniform from -1 to 1.
    pub noise: f64,
}

impl Default for LabelSetSizes {
    fn default() -> Self {
        Self { examples: 1000, features: 100, nonzeros: 40, labels: 20, cardinality: 3.0, correlation: 0.8, noise: 1.0 }
    }
}

impl LabelSetSizes {
    /// Are all sizes within their ranges?
    pub fn check(&self) -> Result<()> {
        self.of_examples().check()?;
        let most = 1 << 16;
        if !(1..=most).contains(&self.labels) {
            return Err(Error::setting("labels", format!("must be from 1 to {most}")));
        }
        let half = f64::from(self.labels) / 2.0;
        if !(self.cardinality > 0.0 && self.cardinality <= half) {
            return Err(Error::setting(
                "cardinality",
                format!("must be above 0 and at most half of the labels, {half}"),
            ));
        }
        if !(0.0..=1.0).contains(&self.correlation) {
            let rule = format!("{} is not a probability (from 0 to 1)", self.correlation);
            return Err(Error::setting("correlation", rule));
        }
        if !(self.noise >= 0.0 && self.noise.is_finite()) {
            return Err(Error::setting("noise", format!("{} is not a standard deviation (0 or more)", self.noise)));
        }
        Ok(())
    }

    /// What all generators of examples have in common.
    fn of_examples(&self) -> Sizes {
        let Self { examples, features, nonzeros, .. } = *self;
        Sizes { examples, features, nonzeros, ..Sizes::default() }
    }
}

/// Labels in a group: one that is general, the others special.
const GROUP: u32 = 4;

/// Writes examples with labels out of `1` to `labels`, divided by commas, in LIBSVM's multilabel text; an empty set is an empty
/// field. Labels come in groups of four. Where the labels of a group depend on each other an example has none of them, or the
/// first and one of the others: so a label calls for another, and others exclude each other. Otherwise each is drawn for itself,
/// as frequent as before. Each label adds its hidden direction to the features. `name` stands for `out` in errors.
pub fn multilabel(sizes: &LabelSetSizes, seed: u64, out: &mut impl Write, name: &str) -> Result<()> {
    sizes.check()?;
    let hidden = Hidden { seed };
    let frequency = frequency(sizes);
    let mut set = Vec::new();
    write_examples(&sizes.of_examples(), seed, out, name, |random, columns, values| {
        draw(sizes, frequency, random, &mut set);
        for &j in columns {
            let centre: f64 = set.iter().map(|&label| hidden.number(label, j)).sum();
            values.push(rounded(centre + sizes.noise * random.gaussian()));
        }
        let labels: Vec<String> = set.iter().map(|label| (label + 1).to_string()).collect();
        labels.join(",")
    })
}

/// How often a group is there, so that the mean number of labels is right: a whole group brings two, a single label itself.
fn frequency(sizes: &LabelSetSizes) -> f64 {
    let groups = f64::from(sizes.labels.div_ceil(GROUP));
    let single = if sizes.labels % GROUP == 1 { 1.0 } else { 0.0 };
    (sizes.cardinality / (2.0 * groups - single)).min(1.0)
}

/// Draws a set, ascending.
fn draw(sizes: &LabelSetSizes, frequency: f64, random: &mut Random, set: &mut Vec<u32>) {
    set.clear();
    for first in (0..sizes.labels).step_by(GROUP as usize) {
        let special = (sizes.labels - first).min(GROUP) - 1;
        if random.happens(sizes.correlation) {
            if random.happens(frequency) {
                set.push(first);
                if special > 0 {
                    set.push(first + 1 + random.below(special));
                }
            }
            continue;
        }
        if random.happens(frequency) {
            set.push(first);
        }
        set.extend((1..=special).map(|s| first + s).filter(|_| random.happens(frequency / f64::from(special))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::input::Input;
    use crate::data::label_sets::{LabelSets, learn};
    use crate::data::svmlight::{LabelRule, read};
    use crate::parallel::Pool;

    fn text(sizes: &LabelSetSizes, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        multilabel(sizes, seed, &mut out, "memory").unwrap();
        out
    }

    fn parsed(text: &[u8]) -> LabelSets {
        let input = Input::new("synthetic", text).unwrap();
        let examples = read(input, LabelRule::Set, &Pool::new(1).unwrap()).unwrap();
        learn(&examples, "synthetic").unwrap()
    }

    #[test]
    fn the_same_seed_gives_these_bytes_for_ever() {
        let dense = LabelSetSizes { examples: 50, features: 6, nonzeros: 0, labels: 9, ..LabelSetSizes::default() };
        let sums = [(LabelSetSizes::default(), 1), (LabelSetSizes::default(), 2), (dense, 1)]
            .map(|(sizes, seed)| crc32fast::hash(&text(&sizes, seed)));
        assert_eq!(sums, [3_942_334_738, 427_525_946, 3_927_116_482]);
    }

    #[test]
    fn sets_have_their_mean_size_with_any_correlation() {
        for correlation in [0.0, 0.5, 1.0] {
            for (labels, cardinality) in [(20, 3.0), (9, 1.5), (6, 3.0)] {
                let sizes =
                    LabelSetSizes { examples: 4000, labels, cardinality, correlation, ..LabelSetSizes::default() };
                let data = parsed(&text(&sizes, 3));
                assert_eq!((data.sets.len(), data.labels.len()), (4000, labels as usize));
                let mean = data.sets.iter().map(Vec::len).sum::<usize>() as f64 / 4000.0;
                assert!((mean - cardinality).abs() < 0.1, "{mean} instead of {cardinality}");
            }
        }
    }

    #[test]
    fn groups_keep_together_and_special_labels_apart() {
        let sizes = LabelSetSizes { examples: 2000, correlation: 1.0, ..LabelSetSizes::default() };
        let data = parsed(&text(&sizes, 4));
        for set in &data.sets {
            for first in (0..20).step_by(4) {
                let count = set.iter().filter(|&&label| (first..first + 4).contains(&label)).count();
                assert!(count == if set.contains(&first) { 2 } else { 0 }, "{set:?}");
            }
        }
        assert!(data.sets.iter().any(Vec::is_empty));
    }

    #[test]
    fn bad_sizes_are_refused_by_name() {
        let good = LabelSetSizes::default();
        for (sizes, name) in [
            (LabelSetSizes { examples: 0, ..good }, "examples"),
            (LabelSetSizes { features: 0, ..good }, "features"),
            (LabelSetSizes { labels: 0, ..good }, "labels"),
            (LabelSetSizes { cardinality: 10.5, ..good }, "cardinality"),
            (LabelSetSizes { cardinality: f64::NAN, ..good }, "cardinality"),
            (LabelSetSizes { correlation: 1.5, ..good }, "correlation"),
            (LabelSetSizes { noise: -1.0, ..good }, "noise"),
        ] {
            let error = multilabel(&sizes, 0, &mut Vec::new(), "memory").unwrap_err();
            assert!(matches!(error, Error::Setting { name: n, .. } if n == name), "{error}");
        }
    }
}
