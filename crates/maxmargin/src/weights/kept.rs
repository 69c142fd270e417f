//! Weights that are laid by: where most are zero, the others alone.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::Weights;

/// A copy of weights, to be looked at rarely.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Kept {
    /// All of them.
    Whole(Weights),
    /// Of `len` coordinates those that are not zero: places, ascending, and values.
    Few { len: usize, places: Vec<u32>, values: Vec<f64> },
}

/// Fewer coordinates than this are not worth the trouble.
const LEAST: usize = 1 << 12;

/// The others are kept alone where at most one in so many is not zero: a place and a value then take half the memory.
const ONE_IN: usize = 3;

impl Default for Kept {
    fn default() -> Self {
        Self::Whole(Weights::default())
    }
}

impl From<Weights> for Kept {
    fn from(weights: Weights) -> Self {
        match few(&weights) {
            Some(kept) => kept,
            None => Self::Whole(weights),
        }
    }
}

/// The weights without zeros, where that is worth it.
fn few(weights: &Weights) -> Option<Kept> {
    // Not the zero with a sign: what is laid by comes back in the same bits.
    let is_kept = |w: &&f64| w.to_bits() != 0;
    let (all, len) = (&weights.dense, weights.dense.len());
    if len < LEAST || u32::try_from(len).is_err() || weights.coefficients.is_some() || weights.short.is_some() {
        return None;
    }
    let count = all.iter().filter(is_kept).count();
    if count > len / ONE_IN {
        return None;
    }
    let (mut places, mut values) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for (place, w) in (0..).zip(all).filter(|(_, w)| is_kept(w)) {
        places.push(place);
        values.push(*w);
    }
    Some(Kept::Few { len, places, values })
}

impl Kept {
    /// Lays by these weights in the place of the last.
    pub(crate) fn replace(&mut self, weights: &Weights) {
        match (few(weights), &mut *self) {
            (Some(kept), _) => *self = kept,
            (None, Self::Whole(own)) => own.clone_from(weights),
            (None, Self::Few { .. }) => *self = Self::Whole(weights.clone()),
        }
    }

    /// All of them, spread out where they are not.
    pub(crate) fn weights(&self) -> Cow<'_, Weights> {
        match self {
            Self::Whole(weights) => Cow::Borrowed(weights),
            Self::Few { len, places, values } => Cow::Owned(spread(*len, places, values)),
        }
    }

    /// All of them, in memory that other weights give up.
    pub(crate) fn spread_over(self, mut other: Weights) -> Weights {
        match self {
            Self::Few { len, places, values } if other.coefficients.is_none() && other.short.is_none() => {
                other.dense.clear();
                other.dense.resize(len, 0.0);
                places.iter().zip(&values).for_each(|(&place, &value)| other.dense[place as usize] = value);
                other
            }
            kept => Weights::from(kept),
        }
    }

    /// Asked of what was read from a file: are the weights as many as these, and in order?
    pub(crate) fn fits(&self, like: &Weights) -> bool {
        match self {
            Self::Whole(own) => own.has_form_of(like),
            Self::Few { len, places, values } => {
                let is_plain = like.coefficients.is_none() && like.short.is_none() && like.dense.len() == *len;
                let are_places =
                    places.is_sorted_by(|a, b| a < b) && places.last().is_none_or(|&p| (p as usize) < *len);
                is_plain && are_places && places.len() == values.len()
            }
        }
    }

    /// Are all numbers as they should be? Zeros are.
    pub(crate) fn all(&self, is_fine: impl Fn(f64) -> bool) -> bool {
        match self {
            Self::Whole(own) => own.all(is_fine),
            Self::Few { values, .. } => values.iter().copied().all(is_fine),
        }
    }
}

impl From<Kept> for Weights {
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Whole(weights) => weights,
            Kept::Few { len, places, values } => spread(len, &places, &values),
        }
    }
}

fn spread(len: usize, places: &[u32], values: &[f64]) -> Weights {
    let mut weights = Weights::zeros(len);
    places.iter().zip(values).for_each(|(&place, &value)| weights.dense[place as usize] = value);
    weights
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::Block;

    fn bits(weights: &Weights) -> Vec<u64> {
        weights.dense.iter().map(|w| w.to_bits()).collect()
    }

    /// Whatever is laid by, after whatever else, comes back in the same bits.
    #[test]
    fn what_is_laid_by_comes_back() {
        let len = 2 * LEAST;
        let one_in = |n: usize| -> Weights { (0..len).map(|i| if i % n == 1 { i as f64 } else { 0.0 }).collect() };
        let mut signed = Weights::zeros(len);
        signed.as_mut_slice()[7] = -0.0;
        let short = Weights::zeros_with_short_rows(Block { base: len as u64, rows: 3, width: 2 });
        let all = [one_in(2), one_in(5), signed, Weights::zeros_with_coefficients(len), short, Weights::zeros(3)];
        for first in &all {
            for second in &all {
                let mut kept = Kept::from(first.clone());
                kept.replace(second);
                let is_few = matches!(kept, Kept::Few { .. });
                let is_sparse = second.dense.iter().filter(|w| w.to_bits() != 0).count() <= len / ONE_IN;
                assert_eq!(
                    is_few,
                    is_sparse && second.dense.len() == len && second.short.is_none() && !second.has_coefficients()
                );
                assert!(kept.fits(second) && kept.all(f64::is_finite));
                let copy = kept.weights().into_owned();
                let own = if first.len() % 2 == 0 { kept.spread_over(first.clone()) } else { Weights::from(kept) };
                assert_eq!((&copy, bits(&copy)), (second, bits(second)));
                assert_eq!((&own, bits(&own)), (second, bits(second)));
            }
        }
    }

    #[test]
    fn damage_is_seen() {
        let like = Weights::zeros(3);
        let few =
            |len, places: &[u32], values: &[f64]| Kept::Few { len, places: places.to_vec(), values: values.to_vec() };
        assert!(few(3, &[0, 2], &[1.0, 2.0]).fits(&like));
        for damaged in [
            few(4, &[0, 2], &[1.0, 2.0]),
            few(3, &[0, 3], &[1.0, 2.0]),
            few(3, &[2, 0], &[1.0, 2.0]),
            few(3, &[1, 1], &[1.0, 2.0]),
            few(3, &[0], &[1.0, 2.0]),
            Kept::Whole(Weights::zeros(4)),
        ] {
            assert!(!damaged.fits(&like), "{damaged:?}");
        }
        assert!(!few(3, &[0], &[1.0]).fits(&Weights::zeros_with_coefficients(3)));
    }
}
