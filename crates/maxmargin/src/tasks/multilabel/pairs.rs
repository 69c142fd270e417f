//! Which pairs of labels have a weight.

use crate::error::{Error, Result};
use crate::numeric::ln;

/// Pairs of labels, each of which has a weight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs {
    labels: u32,
    kind: Kind,
    is_forest: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// All of them, `(0, 1), (0, 2), ..., (1, 2), ...`: nothing to look up.
    All,
    /// Some of them.
    Listed(Listed),
}

/// Pairs in a list, and by label.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Listed {
    /// The smaller label first, ascending.
    pairs: Vec<(u32, u32)>,
    /// By label: where its neighbours start, and at last where they end.
    starts: Vec<u32>,
    /// (neighbour, number of the pair), ascending for each label.
    neighbours: Vec<(u32, u32)>,
}

/// Labels of which all pairs can be numbered.
const MOST_LABELS: u32 = 65_536;

impl Pairs {
    /// No pair.
    pub fn none(labels: u32) -> Self {
        Self::listed(labels, Vec::new()).expect("no pair is no fault")
    }

    /// Every pair.
    pub fn all(labels: u32) -> Result<Self> {
        if labels > MOST_LABELS {
            let rule = format!("all pairs of {labels} labels are too many; take top:N, tree or none");
            return Err(Error::setting("pairs", rule));
        }
        Ok(Self { labels, kind: Kind::All, is_forest: labels <= 2 })
    }

    /// These pairs, in any order, each with the smaller label first.
    pub fn listed(labels: u32, mut pairs: Vec<(u32, u32)>) -> Result<Self> {
        pairs.sort_unstable();
        let is_fine = |&(a, b): &(u32, u32)| a < b && b < labels;
        if !pairs.iter().all(is_fine) || pairs.windows(2).any(|two| two[0] == two[1]) {
            return Err(Error::setting("pairs", "of two different labels, each once"));
        }
        let mut starts = vec![0; labels as usize + 1];
        for &(a, b) in &pairs {
            starts[a as usize + 1] += 1;
            starts[b as usize + 1] += 1;
        }
        for k in 1..starts.len() {
            starts[k] += starts[k - 1];
        }
        let (mut next, mut neighbours) = (starts.clone(), vec![(0, 0); 2 * pairs.len()]);
        // The first of a pair is below all of whom it is the second: in two rounds neighbours come in order.
        for second in [true, false] {
            for (number, &(a, b)) in (0..).zip(&pairs) {
                let (own, other) = if second { (b, a) } else { (a, b) };
                neighbours[next[own as usize] as usize] = (other, number);
                next[own as usize] += 1;
            }
        }
        let is_forest = is_forest(labels, &pairs);
        Ok(Self { labels, kind: Kind::Listed(Listed { pairs, starts, neighbours }), is_forest })
    }

    /// The pairs of a tree (or a forest) in which neighbours tell most of each other: that of the largest mutual information
    /// in the sets (Chow and Liu 1968).
    pub fn tree(labels: u32, sets: &[Vec<u32>]) -> Self {
        let mut ranked = ranked(labels, sets);
        let mut forest = Forest::new(labels);
        ranked.retain(|&(a, b, _)| forest.join(a, b));
        Self::listed(labels, ranked.into_iter().map(|(a, b, _)| (a, b)).collect()).expect("pairs of sets")
    }

    /// The n pairs with the largest mutual information in the sets, of those that occur together.
    pub fn top(labels: u32, sets: &[Vec<u32>], n: usize) -> Self {
        let best = ranked(labels, sets).into_iter().take(n).map(|(a, b, _)| (a, b)).collect();
        Self::listed(labels, best).expect("pairs of sets")
    }

    /// Number of labels.
    pub fn labels(&self) -> u32 {
        self.labels
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::All => self.labels as usize * (self.labels as usize).saturating_sub(1) / 2,
            Kind::Listed(listed) => listed.pairs.len(),
        }
    }

    /// No pair?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Are they without a cycle?
    pub fn is_forest(&self) -> bool {
        self.is_forest
    }

    /// Every pair there is?
    pub fn is_all(&self) -> bool {
        self.kind == Kind::All
    }

    /// The number of the pair of these labels, the smaller one first.
    pub fn number(&self, a: u32, b: u32) -> Option<usize> {
        debug_assert!(a < b && b < self.labels);
        match &self.kind {
            Kind::All => Some(first_of(a as usize, self.labels as usize) + (b - a - 1) as usize),
            Kind::Listed(listed) => {
                let own = listed.of(a);
                own.binary_search_by_key(&b, |n| n.0).ok().map(|at| own[at].1 as usize)
            }
        }
    }

    /// The labels of a pair.
    pub fn pair(&self, number: usize) -> (u32, u32) {
        match &self.kind {
            Kind::Listed(listed) => listed.pairs[number],
            Kind::All => {
                let n = self.labels as usize;
                let (mut low, mut high) = (0, n - 1);
                while low < high {
                    let middle = (low + high).div_ceil(2);
                    if first_of(middle, n) <= number { low = middle } else { high = middle - 1 }
                }
                (low as u32, (low + 1 + number - first_of(low, n)) as u32)
            }
        }
    }

    /// Visits every pair: its number and its labels.
    pub fn each(&self, mut visit: impl FnMut(usize, u32, u32)) {
        match &self.kind {
            Kind::Listed(listed) => listed.pairs.iter().enumerate().for_each(|(number, &(a, b))| visit(number, a, b)),
            Kind::All => {
                let mut number = 0;
                for a in 0..self.labels {
                    for b in a + 1..self.labels {
                        visit(number, a, b);
                        number += 1;
                    }
                }
            }
        }
    }

    /// The neighbours of a label, ascending, with the numbers of their pairs.
    pub fn of(&self, k: u32) -> impl Iterator<Item = (u32, usize)> + '_ {
        let (listed, all) = match &self.kind {
            Kind::All => (&[][..], self.labels),
            Kind::Listed(listed) => (listed.of(k), 0),
        };
        let others = (0..all).filter(move |&j| j != k).map(move |j| {
            let (a, b) = (j.min(k) as usize, j.max(k) as usize);
            (j, first_of(a, all as usize) + b - a - 1)
        });
        listed.iter().map(|&(j, number)| (j, number as usize)).chain(others)
    }

    /// The pairs of label k with labels of a set that ascends: the place of the label in the set, ascending, and the number of the
    /// pair. It takes as long as the set, or the neighbours of k where these are fewer.
    pub fn among<'s>(&'s self, k: u32, set: &'s [u32]) -> impl Iterator<Item = (usize, usize)> + 's {
        let (neighbours, others) = match &self.kind {
            Kind::Listed(listed) if listed.of(k).len() <= set.len() => (listed.of(k), &[][..]),
            _ => (&[][..], set),
        };
        let found = |&(j, number): &(u32, u32)| set.binary_search(&j).ok().map(|at| (at, number as usize));
        let others = others.iter().enumerate().filter(move |(_, j)| **j != k);
        let numbered = others.filter_map(move |(at, &j)| Some((at, self.number(j.min(k), j.max(k))?)));
        neighbours.iter().filter_map(found).chain(numbered)
    }
}

impl Listed {
    fn of(&self, k: u32) -> &[(u32, u32)] {
        &self.neighbours[self.starts[k as usize] as usize..self.starts[k as usize + 1] as usize]
    }
}

/// The number of the pair (a, a + 1), were there all.
fn first_of(a: usize, labels: usize) -> usize {
    a * (2 * labels - a - 1) / 2
}

fn is_forest(labels: u32, pairs: &[(u32, u32)]) -> bool {
    let mut forest = Forest::new(labels);
    pairs.iter().all(|&(a, b)| forest.join(a, b))
}

/// Which labels hang together.
struct Forest {
    parent: Vec<u32>,
}

impl Forest {
    fn new(labels: u32) -> Self {
        Self { parent: (0..labels).collect() }
    }

    fn root(&mut self, mut k: u32) -> u32 {
        while self.parent[k as usize] != k {
            let above = self.parent[self.parent[k as usize] as usize];
            self.parent[k as usize] = above;
            k = above;
        }
        k
    }

    /// Joins two trees; false where they were one.
    fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a as usize] = b;
        a != b
    }
}

/// The pairs that occur together, the most informative first.
fn ranked(labels: u32, sets: &[Vec<u32>]) -> Vec<(u32, u32, f64)> {
    let mut alone = vec![0_u64; labels as usize];
    let mut together = std::collections::BTreeMap::<(u32, u32), u64>::new();
    for set in sets {
        for (at, &b) in set.iter().enumerate() {
            alone[b as usize] += 1;
            set[..at].iter().for_each(|&a| *together.entry((a, b)).or_default() += 1);
        }
    }
    let n = sets.len() as f64;
    let information = |a: u32, b: u32, both: u64| {
        let (a, b, both) = (alone[a as usize] as f64, alone[b as usize] as f64, both as f64);
        let term = |joint: f64, x: f64, y: f64| if joint > 0.0 { joint / n * ln(joint * n / (x * y)) } else { 0.0 };
        term(both, a, b) + term(a - both, a, n - b) + term(b - both, n - a, b) + term(n - a - b + both, n - a, n - b)
    };
    let mut ranked: Vec<_> = together.into_iter().map(|((a, b), both)| (a, b, information(a, b, both))).collect();
    ranked.sort_by(|x, y| y.2.total_cmp(&x.2).then((x.0, x.1).cmp(&(y.0, y.1))));
    ranked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbered_in_both_directions() {
        for labels in 1..8 {
            let every: Vec<_> = (0..labels).flat_map(|a| (a + 1..labels).map(move |b| (a, b))).collect();
            let some: Vec<_> = every.iter().copied().filter(|(a, b)| (a + b) % 3 != 0).collect();
            for (pairs, expected) in
                [(Pairs::all(labels).unwrap(), &every), (Pairs::listed(labels, some.clone()).unwrap(), &some)]
            {
                assert_eq!(pairs.len(), expected.len());
                for (number, &(a, b)) in expected.iter().enumerate() {
                    assert_eq!((pairs.number(a, b), pairs.pair(number)), (Some(number), (a, b)));
                }
                for k in 0..labels {
                    let of: Vec<_> = pairs.of(k).collect();
                    let own = |&(a, b): &(u32, u32)| (a == k || b == k).then_some(if a == k { b } else { a });
                    let mut neighbours: Vec<_> = expected.iter().filter_map(own).collect();
                    neighbours.sort_unstable();
                    assert_eq!(of.iter().map(|n| n.0).collect::<Vec<_>>(), neighbours);
                    assert!(of.iter().all(|&(j, number)| pairs.number(j.min(k), j.max(k)) == Some(number)));
                }
            }
        }
    }

    #[test]
    fn the_tree_joins_what_occurs_together() {
        let sets: Vec<Vec<u32>> =
            [&[0, 1][..], &[0, 1], &[2, 3], &[2, 3], &[0, 1, 2], &[4], &[]].iter().map(|s| s.to_vec()).collect();
        let tree = Pairs::tree(5, &sets);
        assert!(tree.is_forest() && tree.number(0, 1).is_some() && tree.number(2, 3).is_some());
        let top = Pairs::top(5, &sets, 2);
        assert_eq!(top.len(), 2);
        assert!(top.number(0, 1).is_some() && top.number(2, 3).is_some());
    }
}
