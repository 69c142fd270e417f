//! The n best labellings: each state keeps its n best ways, each way where it comes from.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::Chain;

/// A way into a state: its score, the state before, and which of that state's ways it goes on from.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Way {
    score: f64,
    from: usize,
    rank: usize,
    /// What the last step adds.
    step: f64,
}

impl Eq for Way {}

impl PartialOrd for Way {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// The largest score first; of equals the earlier state, so that runs agree.
impl Ord for Way {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| (other.from, other.rank).cmp(&(self.from, self.rank)))
    }
}

impl Chain {
    /// The `n` best labellings with their scores, the best first; fewer where there are not so many that are allowed.
    ///
    /// # Panics
    /// If there is no variable.
    pub fn n_best(&self, n: usize) -> Vec<(f64, Vec<u32>)> {
        assert!(self.len > 0, "a chain of at least one variable");
        let allowed = |score: f64| score > f64::NEG_INFINITY;
        let first = |&score: &f64| Some(Way { score, from: 0, rank: 0, step: 0.0 }).filter(|w| allowed(w.score));
        let mut ways: Vec<Vec<Vec<Way>>> = Vec::with_capacity(self.len);
        ways.push(self.unary[..self.stride].iter().map(|score| first(score).into_iter().collect()).collect());
        ways[0][self.labels..].iter_mut().for_each(Vec::clear);
        for t in 1..self.len {
            let last = &ways[t - 1];
            let mut states = vec![Vec::new(); self.rows(t) * self.stride];
            for row in 0..self.rows(t) {
                for k in 0..self.labels {
                    let own = self.unary(t)[k] + self.own_pair(t, row).map_or(0.0, |pair| pair[k]);
                    states[row * self.stride + k] = self.best_ways(t, row, k, own, last, n);
                }
            }
            ways.push(states);
        }
        let end = self.len - 1;
        let mut heap: BinaryHeap<Way> = ways[end]
            .iter()
            .enumerate()
            .filter_map(|(state, ways)| Some(Way { score: ways.first()?.score, from: state, rank: 0, step: 0.0 }))
            .collect();
        let mut found = Vec::new();
        while found.len() < n
            && let Some(Way { score, from, rank, .. }) = heap.pop()
        {
            if let Some(next) = ways[end][from].get(rank + 1) {
                heap.push(Way { score: next.score, from, rank: rank + 1, step: 0.0 });
            }
            found.push((score, self.followed_back(&ways, from, rank)));
        }
        found
    }

    /// The n best ways into label k of row `row` of variable t; `own`: what the state itself adds.
    fn best_ways(&self, t: usize, row: usize, k: usize, own: f64, last: &[Vec<Way>], n: usize) -> Vec<Way> {
        let (sources, scores) = (self.sources(t, row), self.scores(t));
        let mut heap: BinaryHeap<Way> = (0..sources.count)
            .filter_map(|s| {
                let from = sources.state + s * sources.step;
                let step = scores[(sources.row + s * sources.row_step) * self.stride + k] + own;
                let score = last[from].first()?.score + step;
                (score > f64::NEG_INFINITY).then_some(Way { score, from, rank: 0, step })
            })
            .collect();
        let mut best = Vec::new();
        while best.len() < n
            && let Some(way) = heap.pop()
        {
            best.push(way);
            if let Some(next) = last[way.from].get(way.rank + 1) {
                heap.push(Way { score: next.score + way.step, rank: way.rank + 1, ..way });
            }
        }
        best
    }

    fn followed_back(&self, ways: &[Vec<Vec<Way>>], mut state: usize, mut rank: usize) -> Vec<u32> {
        let mut y = vec![0; self.len];
        for t in (0..self.len).rev() {
            y[t] = (state % self.stride) as u32;
            let way = ways[t][state][rank];
            (state, rank) = (way.from, way.rank);
        }
        y
    }
}
