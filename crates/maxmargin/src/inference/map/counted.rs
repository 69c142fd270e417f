//! The best labelling of a forest for each number of errors: max-product whose states are a label and a number of errors.
//!
//! ```text
//! best_v(y, e)    = highest score of the subtree below v, where v has label y and the subtree has e errors
//! message_f(y, e) = max over labels and errors of the children of f, with e errors in all, of
//!                   table_f(y, labels of the children) + sum over children c of best_c(label, errors)
//! best_v(y, e)    = max over e' of best_v(y, e - e') + message_f(y, e'), once for each factor f below v
//! ```
//!
//! With n variables of L labels and factors of two variables this takes O(n L^2 + n^2 L) time for a star and
//! O(n^2 L^2) for a chain, and at most `4 n L (n + 1)` cells of memory.

use super::graph::Graph;
use super::message::count_up;
use super::scores::Scores;
use super::trees::Trees;

/// Cells of all tables, beyond which they are too many: 2 GB.
const MOST_CELLS: usize = 1 << 28;

/// Do the tables of the search by the number of errors fit in memory, for variables of these domains?
pub fn can_count(domains: &[u32]) -> bool {
    let labels: usize = domains.iter().map(|&domain| domain as usize).sum();
    labels.saturating_mul(4).saturating_mul(domains.len() + 1) <= MOST_CELLS
}

/// Best scores by label and number of errors; minus infinity where there is no such labelling.
#[derive(Debug, Default, Clone)]
struct Table {
    /// Numbers of errors that are told apart, from 0.
    counts: usize,
    /// `scores[label * counts + errors]`
    scores: Vec<f64>,
}

impl Table {
    fn row(&self, label: u32) -> &[f64] {
        &self.scores[label as usize * self.counts..][..self.counts]
    }

    fn reset(&mut self, labels: usize, counts: usize) {
        self.counts = counts;
        self.scores.clear();
        self.scores.resize(labels * counts, f64::NEG_INFINITY);
    }
}

/// A factor and its root, merged: what the root's table was before, and the message.
#[derive(Debug, Default)]
struct Merge {
    before: Table,
    message: Table,
}

/// Memory of the search. A warm one allocates nothing.
#[derive(Debug, Default)]
pub struct Counts {
    graph: Graph,
    trees: Trees,
    unary: Vec<f64>,
    tables: Vec<Table>,
    merges: Vec<Merge>,
    /// Variables that no factor has as a child.
    roots: Vec<u32>,
    is_child: Vec<bool>,
    /// By root: the best scores of its tree by number of errors, and of all trees up to it.
    of_root: Vec<Vec<f64>>,
    up_to: Vec<Vec<f64>>,
    digits: Vec<u32>,
    /// Scores by number of errors of the first children of a factor: none of them, one, two, ...
    sums: Vec<Vec<f64>>,
    errors: Vec<usize>,
}

impl Counts {
    /// A labelling that maximises `value(errors, score)`, where `errors` counts the variables whose label differs from
    /// `truth`; `value` rises with the score. Ties go to fewer errors. Returns that value, or None, and no labelling, where
    /// the graph is not a forest.
    ///
    /// # Panics
    /// If `truth` has another number of variables.
    pub fn best(
        &mut self,
        scores: &Scores,
        truth: &[u32],
        value: &dyn Fn(usize, f64) -> f64,
        labels: &mut Vec<u32>,
    ) -> Option<f64> {
        assert_eq!(truth.len(), scores.variables(), "a label for each variable");
        let given = &scores.tables[..];
        self.graph.build(scores);
        self.unary.clone_from(&self.graph.unary);
        self.trees.clear();
        // Only for the order of elimination. Its messages go to the scores of the graph, of which `unary` is a copy.
        self.trees.eliminate(&mut self.graph, given);
        if self.graph.has_factors() {
            return None;
        }
        self.begin(truth);
        for step in 0..self.trees.eliminated().len() {
            self.merge(given, step);
        }
        self.join_trees();
        let all = self.up_to.last().expect("a graph has a variable");
        let (mut most, mut errors) = (f64::NEG_INFINITY, 0);
        for (e, &score) in all.iter().enumerate().filter(|(_, score)| **score > f64::NEG_INFINITY) {
            let value = value(e, score + self.graph.constant);
            if value > most {
                (most, errors) = (value, e);
            }
        }
        self.label(given, errors, labels);
        Some(most)
    }

    /// The tables of single variables.
    fn begin(&mut self, truth: &[u32]) {
        let n = truth.len();
        self.tables.resize_with(n, Table::default);
        self.is_child.clear();
        self.is_child.resize(n, false);
        for (v, (table, &truth)) in self.tables.iter_mut().zip(truth).enumerate() {
            let range = self.graph.labels(v);
            let counts = range.len().min(2);
            table.reset(range.len(), counts);
            for (label, &score) in self.unary[range].iter().enumerate() {
                table.scores[label * counts + usize::from(label != truth as usize)] = score;
            }
        }
    }

    /// Merges a factor's children into its root.
    fn merge(&mut self, given: &[f64], step: usize) {
        let Self { graph, trees, tables, merges, is_child, digits, sums, .. } = self;
        let (f, keep) = trees.eliminated()[step];
        let (scope, keep) = (graph.scope(f as usize), keep as usize);
        let root = scope[keep] as usize;
        merges.resize_with(merges.len().max(step + 1), Merge::default);
        let Merge { before, message } = &mut merges[step];
        let children = || scope.iter().enumerate().filter(move |(i, _)| *i != keep);
        let mut counts = 1;
        for (_, &child) in children() {
            is_child[child as usize] = true;
            counts += tables[child as usize].counts - 1;
        }
        message.reset(graph.domain(root), counts);
        digits.clear();
        digits.resize(scope.len(), 0);
        for &score in graph.table(f as usize, given) {
            let into = &mut message.scores[digits[keep] as usize * counts..][..counts];
            let of_children = children().map(|(i, &child)| tables[child as usize].row(digits[i]));
            let best = convolve_all(score, of_children, sums);
            into.iter_mut().zip(best).for_each(|(into, &sum)| *into = if sum > *into { sum } else { *into });
            count_up(digits, |i| graph.unary(scope[i] as usize));
        }
        std::mem::swap(before, &mut tables[root]);
        let (table, labels) = (&mut tables[root], graph.domain(root));
        table.reset(labels, before.counts + counts - 1);
        for label in 0..labels {
            let row = &mut table.scores[label * table.counts..][..table.counts];
            convolve(before.row(label as u32), message.row(label as u32), row);
        }
    }

    /// Adds up the best scores of all trees.
    fn join_trees(&mut self) {
        let Self { graph, tables, roots, is_child, of_root, up_to, .. } = self;
        roots.clear();
        roots.extend((0..tables.len()).filter(|&v| !is_child[v]).map(|v| v as u32));
        of_root.resize_with(roots.len(), Vec::new);
        up_to.resize_with(roots.len(), Vec::new);
        up_to.truncate(roots.len());
        for (r, &root) in roots.iter().enumerate() {
            let table = &tables[root as usize];
            let own = &mut of_root[r];
            own.clear();
            own.resize(table.counts, f64::NEG_INFINITY);
            for label in 0..graph.domain(root as usize) {
                let row = table.row(label as u32);
                own.iter_mut().zip(row).for_each(|(own, &score)| *own = if score > *own { score } else { *own });
            }
            let (done, rest) = up_to.split_at_mut(r);
            let before = done.last().map_or(&[0.0][..], Vec::as_slice);
            rest[0].clear();
            rest[0].resize(before.len() + own.len() - 1, f64::NEG_INFINITY);
            convolve(before, own, &mut rest[0]);
        }
    }

    /// Walks back from the number of errors of the whole graph to the labels.
    fn label(&mut self, given: &[f64], mut errors: usize, labels: &mut Vec<u32>) {
        let Self { graph, trees, tables, merges, roots, of_root, up_to, digits, sums, errors: of, .. } = self;
        labels.clear();
        labels.resize(tables.len(), 0);
        of.clear();
        of.resize(tables.len(), 0);
        for (r, &root) in roots.iter().enumerate().rev() {
            let before = if r > 0 { up_to[r - 1].as_slice() } else { &[0.0] };
            let rest = split(before, &of_root[r], errors);
            let own = errors - rest;
            errors = rest;
            let table = &tables[root as usize];
            let is_best = |label: &u32| table.row(*label)[own] == of_root[r][own];
            labels[root as usize] = (0..graph.domain(root as usize) as u32).find(is_best).expect("a best label");
            of[root as usize] = own;
        }
        for (step, &(f, keep)) in trees.eliminated().iter().enumerate().rev() {
            let (scope, keep) = (graph.scope(f as usize), keep as usize);
            let root = scope[keep] as usize;
            let (label, Merge { before, message }) = (labels[root], &merges[step]);
            let rest = split(before.row(label), message.row(label), of[root]);
            let mut below = of[root] - rest;
            of[root] = rest;
            let wanted = message.row(label)[below];
            let children = || scope.iter().enumerate().filter(move |(i, _)| *i != keep);
            digits.clear();
            digits.resize(scope.len(), 0);
            for &score in graph.table(f as usize, given) {
                let of_children = children().map(|(i, &child)| tables[child as usize].row(digits[i]));
                if digits[keep] == label && convolve_all(score, of_children, sums)[below] == wanted {
                    break;
                }
                count_up(digits, |i| graph.unary(scope[i] as usize));
            }
            // From the last child to the first: `sums` has the convolutions of those before.
            let mut number = scope.len() - 1;
            for (i, &child) in scope.iter().enumerate().rev().filter(|(i, _)| *i != keep) {
                number -= 1;
                let row = tables[child as usize].row(digits[i]);
                let rest = split(&sums[number], row, below);
                labels[child as usize] = digits[i];
                of[child as usize] = below - rest;
                below = rest;
            }
        }
    }
}

/// `sum[e] = max over i + j = e of a[i] + b[j]`, for a `sum` that is filled with minus infinity.
fn convolve(a: &[f64], b: &[f64], sum: &mut [f64]) {
    for (i, &a) in a.iter().enumerate().filter(|(_, a)| **a > f64::NEG_INFINITY) {
        for (sum, &b) in sum[i..].iter_mut().zip(b) {
            let both = a + b;
            *sum = if both > *sum { both } else { *sum };
        }
    }
}

/// The first i for which `a[i] + b[e - i]` is the entry e of their convolution.
fn split(a: &[f64], b: &[f64], e: usize) -> usize {
    let first = e.saturating_sub(b.len() - 1);
    let (mut at, mut best) = (first, f64::NEG_INFINITY);
    for i in first..a.len().min(e + 1) {
        let both = a[i] + b[e - i];
        if both > best {
            (at, best) = (i, both);
        }
    }
    at
}

/// The convolution of all rows, each entry plus `score`; `sums[k]` is that of the first k rows.
fn convolve_all<'s, 'r>(score: f64, rows: impl Iterator<Item = &'r [f64]>, sums: &'s mut Vec<Vec<f64>>) -> &'s [f64] {
    let mut count = 0;
    sums.resize_with(sums.len().max(1), Vec::new);
    sums[0].clear();
    sums[0].push(score);
    for row in rows {
        count += 1;
        sums.resize_with(sums.len().max(count + 1), Vec::new);
        let (done, rest) = sums.split_at_mut(count);
        let (before, sum) = (&done[count - 1], &mut rest[0]);
        sum.clear();
        sum.resize(before.len() + row.len() - 1, f64::NEG_INFINITY);
        convolve(before, row, sum);
    }
    &sums[count]
}
