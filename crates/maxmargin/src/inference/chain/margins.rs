//! Max-marginals: how much worse is the best labelling with another label here?

use pulp::{Arch, Simd, WithSimd};

use super::Chain;

/// The way back, in the widest vectors that the machine has.
struct Back<'c> {
    chain: &'c Chain,
    back: &'c mut [f64],
}

impl WithSimd for Back<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.chain.fill_back(self.back);
    }
}

impl Chain {
    /// For each variable the score of y less that of the best labelling that has another label there: with y the best
    /// labelling, how sure its label is. Infinite where no other is allowed.
    ///
    /// # Panics
    /// If there is no variable, or `y` is not as long as the chain.
    pub fn margins(&mut self, y: &[u32], margins: &mut Vec<f64>) {
        assert!(self.len > 0 && y.len() == self.len, "a label for each of some variables");
        let best = self.score(y);
        let (forth, mut back) = (self.filled_forth(), std::mem::take(&mut self.back));
        back.resize(self.table_len(), 0.0);
        Arch::new().dispatch(Back { chain: self, back: &mut back });
        margins.clear();
        margins.extend((0..self.len).map(|t| {
            let (mut other, label) = (f64::NEG_INFINITY, y[t] as usize);
            for row in 0..self.rows(t) {
                let at = self.begin(t) + row * self.stride;
                for k in (0..self.labels).filter(|&k| k != label) {
                    other = other.max(forth[at + k] + back[at + k]);
                }
            }
            best - other
        }));
        (self.forth, self.back) = (forth, back);
    }

    /// The best that can follow upon each state.
    #[inline(always)]
    fn fill_back(&self, back: &mut [f64]) {
        back[self.begin(self.len - 1)..].fill(0.0);
        for t in (1..self.len).rev() {
            let (rest, done) = back.split_at_mut(self.begin(t));
            let last = &mut rest[self.begin(t - 1)..];
            let unary = self.unary(t);
            for row in 0..self.rows(t) {
                let sources = self.sources(t, row);
                let after = &done[row * self.stride..][..self.labels];
                let own = self.own_pair(t, row);
                for s in 0..sources.count {
                    let scores = &self.scores(t)[(sources.row + s * sources.row_step) * self.stride..][..self.labels];
                    let best = (0..self.labels)
                        .map(|c| scores[c] + unary[c] + own.map_or(0.0, |pair| pair[c]) + after[c])
                        .fold(f64::NEG_INFINITY, f64::max);
                    last[sources.state + s * sources.step] = best;
                }
            }
        }
    }
}
