//! The graph that is worked on: that of the caller, made simpler without a change of its maximum.
//!
//! Variables with one label leave their factors (a table stays as it is without a side of length one), factors of one
//! variable are added to its scores, and factors of the same two variables become one. From then on factors are only taken
//! away: one that is not live has been dealt with, and what it said is in its variables' scores.

use std::ops::Range;

use super::scores::Scores;

/// No label yet, no factor yet.
pub(super) const NONE: u32 = u32::MAX;

/// Where a factor's table stands.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Place {
    at: usize,
    len: u32,
    /// Among the graph's own tables, or the caller's?
    is_own: bool,
}

#[derive(Debug, Default)]
pub(super) struct Graph {
    /// The scores of all labels, with those of the factors that are dealt with.
    pub(super) unary: Vec<f64>,
    /// The score of the factors all of whose variables have one label.
    pub(super) constant: f64,
    /// Where those of each variable begin, and the end.
    begin: Vec<usize>,
    /// The variables of each factor: two or more with two labels or more.
    scopes: Vec<u32>,
    scope_begin: Vec<u32>,
    places: Vec<Place>,
    /// Sums of tables. A table that factors share is not copied.
    own: Vec<f64>,
    /// The factors of each variable, live or not.
    factors: Vec<u32>,
    factor_begin: Vec<u32>,
    is_live: Vec<bool>,
    /// Number of live factors: of each variable, and of all.
    degree: Vec<u32>,
    live: usize,
    /// The last factor seen with each variable.
    seen: Vec<u32>,
}

impl Graph {
    pub(super) fn build(&mut self, scores: &Scores) {
        self.unary.clone_from(&scores.unary);
        self.constant = 0.0;
        self.begin.clear();
        self.begin.push(0);
        self.begin.extend_from_slice(&scores.ends);
        self.scopes.clear();
        self.scope_begin.clear();
        self.scope_begin.push(0);
        self.places.clear();
        self.own.clear();
        for f in 0..scores.factors() {
            self.add_factor(scores, f);
        }
        self.is_live.clear();
        self.is_live.resize(self.places.len(), true);
        self.live = self.places.len();
        self.list_factors();
        self.merge_pairs(&scores.tables);
    }

    fn add_factor(&mut self, scores: &Scores, f: usize) {
        let first = self.scopes.len();
        self.scopes.extend(scores.scope(f).iter().filter(|&&v| scores.domain(v as usize) > 1));
        if self.scopes.len() - first < 2 {
            if let Some(v) = self.scopes.drain(first..).next() {
                let unary = &mut self.unary[self.begin[v as usize]..self.begin[v as usize + 1]];
                unary.iter_mut().zip(scores.scores(f)).for_each(|(unary, score)| *unary += score);
            } else {
                self.constant += scores.scores(f)[0];
            }
            return;
        }
        self.scope_begin.push(self.scopes.len() as u32);
        let place = scores.table_place(f);
        self.places.push(Place { at: place.start, len: place.len() as u32, is_own: false });
    }

    /// The factors of each variable, by counting.
    fn list_factors(&mut self) {
        let n = self.variables();
        self.degree.clear();
        self.degree.resize(n, 0);
        self.scopes.iter().for_each(|&v| self.degree[v as usize] += 1);
        self.factor_begin.clear();
        self.factor_begin.push(0);
        let mut end = 0;
        self.factor_begin.extend(self.degree.iter().map(|&degree| {
            end += degree;
            end
        }));
        self.factors.clear();
        self.factors.resize(end as usize, 0);
        // Filled from the end, so that the begin of each list is found again when it is full.
        let fill = &mut self.seen;
        fill.clear();
        fill.extend_from_slice(&self.factor_begin[1..]);
        for f in (0..self.places.len()).rev() {
            for &v in &self.scopes[self.scope_begin[f] as usize..self.scope_begin[f + 1] as usize] {
                fill[v as usize] -= 1;
                self.factors[fill[v as usize] as usize] = f as u32;
            }
        }
    }

    /// Adds up the tables of factors of the same two variables.
    fn merge_pairs(&mut self, given: &[f64]) {
        self.seen.fill(NONE);
        // Factors that share tables share their sum too: the sum made last.
        let mut last: Option<(Place, Place, bool, Place)> = None;
        for u in 0..self.variables() {
            for at in self.factor_begin[u]..self.factor_begin[u + 1] {
                let f = self.factors[at as usize] as usize;
                let &[a, b] = self.scope(f) else { continue };
                let (low, high) = (a.min(b), a.max(b) as usize);
                if low as usize != u {
                    continue;
                }
                let first = self.seen[high] as usize;
                if self.seen[high] == NONE || !self.scope(first).contains(&low) {
                    self.seen[high] = f as u32;
                    continue;
                }
                let is_turned = self.scope(first)[0] != a;
                let (to, from) = (self.places[first], self.places[f]);
                let turned = is_turned.then(|| self.domain(b as usize));
                let sum = match last {
                    Some((t, f, turned, sum)) if (t, f, turned) == (to, from, is_turned) => sum,
                    _ => self.sum(given, to, from, turned),
                };
                last = Some((to, from, is_turned, sum));
                self.places[first] = sum;
                self.remove(f);
            }
        }
    }

    /// A new table: the sum of two; `turned`: the length of the rows of the second one, if its rows are the columns of the
    /// first.
    fn sum(&mut self, given: &[f64], to: Place, from: Place, turned: Option<usize>) -> Place {
        let at = self.own.len();
        if to.is_own {
            self.own.extend_from_within(to.at..to.at + to.len as usize);
        } else {
            self.own.extend_from_slice(&given[to.at..to.at + to.len as usize]);
        }
        let (rest, sum) = self.own.split_at_mut(at);
        let from = &(if from.is_own { rest } else { given })[from.at..][..from.len as usize];
        let row = turned.unwrap_or(1);
        let rows = from.len() / row;
        for (i, score) in from.iter().enumerate() {
            let (r, c) = (i / row, i % row);
            sum[c * rows + r] += score;
        }
        Place { at, is_own: true, ..to }
    }

    pub(super) fn variables(&self) -> usize {
        self.begin.len() - 1
    }

    /// Number of factors, live or not.
    pub(super) fn factors(&self) -> usize {
        self.places.len()
    }

    /// The live factors.
    pub(super) fn live_factors(&self) -> impl Iterator<Item = usize> {
        self.is_live.iter().enumerate().filter(|f| *f.1).map(|f| f.0)
    }

    /// Is there one?
    pub(super) fn has_factors(&self) -> bool {
        self.live > 0
    }

    pub(super) fn is_live(&self, f: usize) -> bool {
        self.is_live[f]
    }

    /// Number of live factors of variable v.
    pub(super) fn degree(&self, v: usize) -> u32 {
        self.degree[v]
    }

    pub(super) fn domain(&self, v: usize) -> usize {
        self.begin[v + 1] - self.begin[v]
    }

    /// Where the scores of variable v stand.
    pub(super) fn labels(&self, v: usize) -> Range<usize> {
        self.begin[v]..self.begin[v + 1]
    }

    pub(super) fn unary(&self, v: usize) -> &[f64] {
        &self.unary[self.labels(v)]
    }

    pub(super) fn scope(&self, f: usize) -> &[u32] {
        &self.scopes[self.slot(f)..self.slot(f + 1)]
    }

    /// The first of the slots of factor f: a slot is a place in a scope, counted through all factors.
    pub(super) fn slot(&self, f: usize) -> usize {
        self.scope_begin[f] as usize
    }

    /// Number of slots.
    pub(super) fn slots(&self) -> usize {
        self.scopes.len()
    }

    /// The table of factor f; `given` are the caller's tables.
    pub(super) fn table<'a>(&'a self, f: usize, given: &'a [f64]) -> &'a [f64] {
        let place = self.places[f];
        &(if place.is_own { &self.own } else { given })[place.at..][..place.len as usize]
    }

    /// The only live factor of variable v, if it has one only.
    pub(super) fn only_factor(&self, v: usize) -> Option<usize> {
        let factors = &self.factors[self.factor_begin[v] as usize..self.factor_begin[v + 1] as usize];
        let mut live = factors.iter().map(|&f| f as usize).filter(|&f| self.is_live[f]);
        live.next().filter(|_| self.degree[v] == 1)
    }

    /// Factor f is dealt with.
    pub(super) fn remove(&mut self, f: usize) {
        self.is_live[f] = false;
        self.live -= 1;
        for slot in self.slot(f)..self.slot(f + 1) {
            self.degree[self.scopes[slot] as usize] -= 1;
        }
    }

    /// Removes the factors of two variables of which one has a label, and tells the other what it says then.
    pub(super) fn condition(&mut self, given: &[f64], labels: &[u32]) {
        for f in 0..self.factors() {
            let &[a, b] = self.scope(f) else { continue };
            let (a, b) = (a as usize, b as usize);
            if !self.is_live[f] || (labels[a] == NONE && labels[b] == NONE) {
                continue;
            }
            self.remove(f);
            let place = self.places[f];
            let table = &(if place.is_own { &self.own } else { given })[place.at..][..place.len as usize];
            let row = self.domain(b);
            if labels[a] == NONE {
                let (range, column) = (self.labels(a), table.iter().skip(labels[b] as usize).step_by(row));
                self.unary[range].iter_mut().zip(column).for_each(|(unary, score)| *unary += score);
            } else if labels[b] == NONE {
                let (range, row) = (self.labels(b), &table[labels[a] as usize * row..]);
                self.unary[range].iter_mut().zip(row).for_each(|(unary, score)| *unary += score);
            }
        }
    }

    /// Two labels each, and factors of two variables only?
    pub(super) fn is_binary(&self) -> bool {
        self.live_factors().all(|f| {
            let scope = self.scope(f);
            scope.len() == 2 && scope.iter().all(|&v| self.domain(v as usize) == 2)
        })
    }
}
