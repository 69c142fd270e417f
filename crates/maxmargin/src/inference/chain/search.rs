//! Which states can the best way into a next one come from?
//!
//! Let b be the state with the best score so far. It gives every next label at least
//!
//! ```text
//! floor = min_c  last[b] + scores[b][c]
//! ```
//!
//! and state s gives none of them more than `last[s] + max_c scores[s][c]`. Where that is below the floor, s need not be
//! looked at. Once a model knows something, few states of dozens remain. Rounding is monotone, so this holds for the
//! numbers as computed, and the maxima are the same to the bit.

use super::{Chain, Order, Pairs};

/// A state of one variable that the best way into the next one may come from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Way {
    /// The best score of a way into it.
    pub(super) so_far: f64,
    /// Its row of scores.
    pub(super) row: usize,
}

/// Finds the ways that are worth a look.
#[derive(Debug, Default)]
pub(super) struct Search {
    /// The largest score of each row that is used at more than one step; none where there is nothing to win.
    ceilings: Vec<f64>,
    ways: Vec<Way>,
}

impl Search {
    /// Looks at the scores of a chain.
    #[inline(always)]
    pub(super) fn prepare(&mut self, chain: &Chain) {
        /// Finding the ceilings takes about as long as half a step.
        const SHORT: usize = 3;
        let rows = match (chain.order, chain.pairs) {
            _ if chain.len < SHORT => &[],
            (Order::First, Pairs::EachStep) => &[],
            (Order::First, Pairs::Same) => chain.pair.as_slice(),
            (Order::Second, _) => chain.triple.as_slice(),
        };
        self.ceilings.clear();
        self.ceilings.extend(rows.chunks_exact(chain.stride).map(|row| largest(&row[..chain.labels])));
    }

    /// The ways into row `row` of the states of variable t > 0, from the states `last` of the one before it.
    #[inline(always)]
    pub(super) fn ways(&mut self, chain: &Chain, t: usize, row: usize, last: &[f64]) -> &[Way] {
        let sources = chain.sources(t, row);
        self.ways.resize(sources.count, Way::default());
        let way =
            |s: usize| Way { so_far: last[sources.state + s * sources.step], row: sources.row + s * sources.row_step };
        let has_ceilings = !self.ceilings.is_empty() && (chain.order == Order::First || t > 1);
        if !has_ceilings {
            self.ways.iter_mut().enumerate().for_each(|(s, place)| *place = way(s));
            return &self.ways;
        }
        let all = &last[sources.state..];
        let most = if sources.step == 1 {
            largest(&all[..sources.count])
        } else {
            (0..sources.count).map(|s| way(s).so_far).fold(f64::NEG_INFINITY, f64::max)
        };
        let best = (0..sources.count).map(way).find(|way| way.so_far == most).unwrap_or_default();
        let scores = &chain.scores(t)[best.row * chain.stride..][..chain.labels];
        let floor = most + smallest(scores);
        let (ways, ceilings) = (&mut self.ways[..sources.count], self.ceilings.as_slice());
        let mut count = 0;
        for s in 0..sources.count {
            // No branch: which states remain is hard to guess.
            let way = way(s);
            ways[count] = way;
            count += usize::from(way.so_far + ceilings[way.row] >= floor);
        }
        &ways[..count]
    }
}

#[inline(always)]
fn largest(x: &[f64]) -> f64 {
    fold(x, f64::NEG_INFINITY, |a, b| if a > b { a } else { b })
}

#[inline(always)]
fn smallest(x: &[f64]) -> f64 {
    fold(x, f64::INFINITY, |a, b| if a < b { a } else { b })
}

/// With four running results, so that the loop vectorises.
#[inline(always)]
fn fold(x: &[f64], start: f64, f: impl Fn(f64, f64) -> f64) -> f64 {
    let (fours, rest) = x.as_chunks::<4>();
    let mut all = [start; 4];
    for four in fours {
        for k in 0..4 {
            all[k] = f(all[k], four[k]);
        }
    }
    all.iter().chain(rest).fold(start, |a, &b| f(a, b))
}
