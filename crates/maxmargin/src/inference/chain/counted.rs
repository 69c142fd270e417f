//! The best labelling where its score and its number of errors count together: Viterbi with the number in the state.

use pulp::{Arch, Simd, WithSimd};

use super::{Chain, Order, Search};

/// The tables of the search: the best scores of all states with each number of errors.
#[derive(Debug, Default)]
pub struct Counts {
    /// By variable, number of errors, state.
    forth: Vec<f64>,
    /// The ways into the states of one variable, by number of errors before it.
    next: Vec<f64>,
    search: Search,
}

/// Numbers in the tables at most: 4 GB.
const MOST_CELLS: usize = 1 << 29;

/// Can labellings of such a chain be searched by the number of errors, up to `most` of them told apart? If not, why.
pub fn can_count(labels: usize, len: usize, order: Order, most: usize) -> Result<(), String> {
    let states = labels.saturating_mul(if order == Order::Second { labels } else { 1 });
    let cells = states.saturating_mul(len).saturating_mul(most.min(len) + 1);
    if cells <= MOST_CELLS {
        return Ok(());
    }
    Err(format!(
        "a sequence of {len} with {labels} labels is too long for a search by the number of errors, which slack rescaling and \
         quadratic slack need; split it, or take margin rescaling with linear slack"
    ))
}

/// The way forth, in the widest vectors that the machine has.
struct CountedForth<'c> {
    chain: &'c Chain,
    truth: &'c [u32],
    most: usize,
    states: usize,
    forth: &'c mut [f64],
    next: &'c mut [f64],
    search: &'c mut Search,
}

impl WithSimd for CountedForth<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { chain, truth, most, states, forth, next, search } = self;
        search.prepare(chain);
        chain.fill_counted(truth, most, states, forth, next, search);
    }
}

impl Chain {
    /// A labelling that maximises `value(errors, score)`, where `errors` counts the variables whose label differs from
    /// `truth`, `most` standing for that many or more; `value` rises with the score. Returns the value; where nothing is
    /// allowed, minus infinity and the truth.
    ///
    /// # Panics
    /// If there is no variable, or `truth` is not as long as the chain.
    pub fn best_counted(
        &self,
        truth: &[u32],
        most: usize,
        value: &dyn Fn(usize, f64) -> f64,
        counts: &mut Counts,
        y: &mut Vec<u32>,
    ) -> f64 {
        assert!(self.len > 0 && truth.len() == self.len, "a truth for each of some variables");
        let most = most.clamp(1, self.len);
        // Every variable has as much room as the largest.
        let states = self.rows(self.len - 1).max(1) * self.stride;
        let Counts { forth, next, search } = counts;
        forth.clear();
        forth.resize(self.len * (most + 1) * states, f64::NEG_INFINITY);
        next.resize((most + 1) * states, f64::NEG_INFINITY);
        Arch::new().dispatch(CountedForth { chain: self, truth, most, states, forth, next, search });

        let at = |t: usize, errors: usize| (t * (most + 1) + errors) * states;
        let (mut best, mut errors, mut state) = (f64::NEG_INFINITY, 0, 0);
        for count in 0..=most {
            let last = &forth[at(self.len - 1, count)..][..self.rows(self.len - 1) * self.stride];
            let candidate = self.first_best(last);
            // A number of errors that no labelling has.
            if last[candidate] == f64::NEG_INFINITY {
                continue;
            }
            let v = value(count, last[candidate]);
            if v > best {
                (best, errors, state) = (v, count, candidate);
            }
        }
        y.clear();
        y.extend_from_slice(truth);
        if best == f64::NEG_INFINITY {
            return best;
        }
        for t in (0..self.len).rev() {
            y[t] = (state % self.stride) as u32;
            if t == 0 {
                break;
            }
            let into = |errors: usize| self.way_into(t, state, &forth[at(t - 1, errors)..][..states]);
            (state, errors) = if y[t] == truth[t] {
                (into(errors).1, errors)
            } else if errors == most {
                let (fewer, same) = (into(most - 1), into(most));
                if same.0 > fewer.0 { (same.1, most) } else { (fewer.1, most - 1) }
            } else {
                (into(errors - 1).1, errors - 1)
            };
        }
        best
    }

    #[inline(always)]
    fn fill_counted(
        &self,
        truth: &[u32],
        most: usize,
        states: usize,
        forth: &mut [f64],
        next: &mut [f64],
        search: &mut Search,
    ) {
        for (k, &score) in self.unary(0).iter().enumerate() {
            let errors = usize::from(k != truth[0] as usize);
            forth[errors * states + k] = score;
        }
        for t in 1..self.len {
            let (done, rest) = forth.split_at_mut(t * (most + 1) * states);
            let last = &done[(t - 1) * (most + 1) * states..];
            let (width, truth) = (self.rows(t) * self.stride, truth[t] as usize);
            // No more errors than variables.
            for errors in 0..=most.min(t) {
                self.advance(t, &last[errors * states..][..states], &mut next[errors * states..][..width], search);
            }
            for errors in 0..=most.min(t + 1) {
                let into = &mut rest[errors * states..][..width];
                // Wrong labels come from one error less; where counting ends, also from as many.
                match (errors, errors == most && errors <= t) {
                    (0, _) => {}
                    (_, false) => into.copy_from_slice(&next[(errors - 1) * states..][..width]),
                    (_, true) => {
                        let fewer = next[(errors - 1) * states..][..width].iter();
                        let same = next[errors * states..][..width].iter();
                        into.iter_mut().zip(fewer.zip(same)).for_each(|(s, (a, b))| *s = if *b > *a { *b } else { *a });
                    }
                }
                for row in 0..self.rows(t) {
                    let at = row * self.stride + truth;
                    into[at] = if errors <= t { next[errors * states + at] } else { f64::NEG_INFINITY };
                }
                self.add_own(t, into);
            }
        }
    }

    /// The best way into a state from those of the variable before: its score, and where it comes from.
    fn way_into(&self, t: usize, state: usize, last: &[f64]) -> (f64, usize) {
        let from = self.source(t, state, last);
        let sources = self.sources(t, state / self.stride);
        let s = (from - sources.state) / sources.step;
        let row = sources.row + s * sources.row_step;
        (last[from] + self.scores(t)[row * self.stride + state % self.stride], from)
    }
}
