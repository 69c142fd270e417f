//! Trees, and the trees that hang on to the rest of a graph: max-product from the leaves inwards, exact.
//!
//! A variable with one factor only is a *leaf*. A factor all of whose variables but one, its root, are leaves is
//! eliminated: its message is added to the root's scores, and the leaves are labelled once the root is. A forest is
//! eliminated to the last factor; of another graph remains a core in which every factor has two variables at least with
//! other factors too.

#![expect(clippy::inline_always, reason = "what is not inlined is compiled for the oldest machine only")]

use pulp::{Arch, Simd, WithSimd};

use super::graph::Graph;
use super::message::{best_given, first_best, message};

/// What was eliminated, in turn, and the room for it.
#[derive(Debug, Default)]
pub(super) struct Trees {
    /// Factors, and the places of the roots in their scopes.
    eliminated: Vec<(u32, u32)>,
    /// Number of variables of a factor that are no leaves.
    inner: Vec<u32>,
    /// Factors that can be eliminated, or have been.
    ready: Vec<u32>,
    out: Vec<f64>,
    digits: Vec<u32>,
    best: Vec<u32>,
}

/// The elimination, in the widest vectors that the machine has.
struct Eliminate<'a>(&'a mut Trees, &'a mut Graph, &'a [f64]);

impl WithSimd for Eliminate<'_> {
    type Output = ();

    // What is inlined here is compiled once for each kind of machine.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self(trees, graph, given) = self;
        while let Some(f) = trees.ready.pop() {
            if graph.is_live(f as usize) {
                trees.eliminate_one(graph, given, f as usize);
            }
        }
    }
}

impl Trees {
    /// Another graph: nothing is eliminated.
    pub(super) fn clear(&mut self) {
        self.eliminated.clear();
    }

    /// Factors in the order of their elimination, and the places of their roots in their scopes.
    pub(super) fn eliminated(&self) -> &[(u32, u32)] {
        &self.eliminated
    }

    /// Eliminates what can be.
    pub(super) fn eliminate(&mut self, graph: &mut Graph, given: &[f64]) {
        self.inner.clear();
        let inner = |f| graph.scope(f).iter().filter(|&&v| graph.degree(v as usize) > 1).count() as u32;
        self.inner.extend((0..graph.factors()).map(inner));
        self.ready.clear();
        // The first on top: chains are worked off from their beginning.
        let ready = (0..graph.factors()).rev().filter(|&f| graph.is_live(f) && self.inner[f] <= 1);
        self.ready.extend(ready.map(|f| f as u32));
        Arch::new().dispatch(Eliminate(self, graph, given));
    }

    #[inline(always)]
    fn eliminate_one(&mut self, graph: &mut Graph, given: &[f64], f: usize) {
        let scope = graph.scope(f);
        let keep = scope.iter().position(|&v| graph.degree(v as usize) > 1).unwrap_or(0);
        let root = scope[keep] as usize;
        self.out.resize(graph.domain(root), 0.0);
        let part = |i: usize| graph.unary(scope[i] as usize);
        message(graph.table(f, given), (scope.len(), keep), part, &mut self.digits, &mut self.out);
        let range = graph.labels(root);
        graph.unary[range].iter_mut().zip(&self.out).for_each(|(unary, out)| *unary += out);
        graph.remove(f);
        self.eliminated.push((f as u32, keep as u32));
        // The root may be a leaf now.
        if let Some(next) = graph.only_factor(root) {
            self.inner[next] -= 1;
            if self.inner[next] <= 1 {
                self.ready.push(next as u32);
            }
        }
    }

    /// Labels the leaves of all that was eliminated, the roots that are in no eliminated factor's leaves being labelled.
    pub(super) fn complete(&mut self, graph: &Graph, given: &[f64], labels: &mut [u32]) {
        for &(f, keep) in self.eliminated.iter().rev() {
            let (f, keep) = (f as usize, keep as usize);
            let (scope, table) = (graph.scope(f), graph.table(f, given));
            let part = |i: usize| graph.unary(scope[i] as usize);
            let label = labels[scope[keep] as usize];
            if let &[a, b] = scope {
                let (leaf, row) = (scope[1 - keep] as usize, graph.domain(b as usize));
                let label = label as usize;
                let best = if leaf == a as usize {
                    first_best(part(0).iter().zip(table[label..].iter().step_by(row)).map(|(a, b)| a + b))
                } else {
                    first_best(part(1).iter().zip(&table[label * row..]).map(|(a, b)| a + b))
                };
                labels[leaf] = best.0 as u32;
                continue;
            }
            self.digits.clear();
            self.digits.resize(scope.len(), 0);
            best_given(table, (keep, label), part, &mut self.digits, &mut self.best);
            scope.iter().zip(&self.best).for_each(|(&v, &label)| labels[v as usize] = label);
        }
    }
}
