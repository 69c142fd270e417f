//! Factor graphs: variables with labels, factors with tables of scores, and a best labelling (maximum a posteriori).
//!
//! ```text
//! score(y) = sum_v unary_v(y_v) + sum_f table_f(y at the scope of f)
//! ```
//!
//! Where it can be, the best labelling is found for sure: whatever the scores if the graph is a forest, and with two labels
//! each and factors of two variables if no cycle is frustrated (labels that attract each other, for one). Elsewhere a good
//! one is found, and a bound that tells how good: no labelling scores more than the optimum of the linear relaxation. What
//! is at work:
//!
//! 1. what hangs on the graph like a tree is eliminated from its leaves, exactly (`trees`);
//! 2. with two labels and factors of two variables a minimum cut labels all or part of the rest (`roof`, `flow`);
//! 3. messages bring down the bound of what remains, and labellings are rounded from them (`ascent`, `polish`).
//!
//! Where the number of errors counts in another way than as a sum, [`Counts`] finds the best labelling of a forest.

mod ascent;
mod counted;
mod flow;
mod graph;
mod message;
mod polish;
mod roof;
mod scores;
mod trees;

use ascent::Ascent;
use graph::{Graph, NONE};
use roof::Roof;
use trees::Trees;

pub use counted::{Counts, can_count};
pub use scores::{Scores, Table};

/// What decoding found: the labelling's value, and what no labelling has more of.
#[derive(Debug, Clone, Copy)]
pub struct Found {
    /// The score of the labelling.
    pub value: f64,
    /// No labelling scores more; at least `value`.
    pub bound: f64,
}

impl Found {
    /// Is the labelling a best one, up to rounding (a billionth)?
    pub fn is_proven(&self) -> bool {
        self.bound - self.value <= 1e-9 * self.value.abs().max(self.bound.abs())
    }
}

/// Finds labellings, with all the memory that this takes. Made once and used again and again: a warm one allocates nothing.
#[derive(Debug, Default)]
pub struct Decoder {
    graph: Graph,
    trees: Trees,
    roof: Roof,
    ascent: Ascent,
}

impl Decoder {
    /// Finds a labelling, by the method that suits the graph. Ties are broken the same way on every call.
    pub fn decode(&mut self, scores: &Scores, labels: &mut Vec<u32>) -> Found {
        labels.clear();
        labels.resize(scores.variables(), NONE);
        let given = &scores.tables[..];
        self.graph.build(scores);
        self.trees.clear();
        self.trees.eliminate(&mut self.graph, given);
        let (gap, is_cut) = self.label_core(given, labels);
        for (v, label) in labels.iter_mut().enumerate().filter(|(_, label)| **label == NONE) {
            // Roots; leaves too, but they are labelled once more, as their roots would have it.
            *label = message::first_best(self.graph.unary(v).iter().copied()).0 as u32;
        }
        self.trees.complete(&self.graph, given, labels);
        let value = scores.value(labels);
        let gap = if is_cut { self.roof.gap(labels).min(gap) } else { gap };
        // What is not of the core is best, given the core: the gap is that of the core.
        Found { value, bound: value + gap }
    }

    /// Labels what could not be eliminated, and returns by how much its labels are below the best ones at most; did a cut
    /// leave labels open, which knows a bound too?
    fn label_core(&mut self, given: &[f64], labels: &mut [u32]) -> (f64, bool) {
        let Self { graph, trees, roof, ascent } = self;
        if !graph.has_factors() {
            return (0.0, false);
        }
        if !graph.is_binary() {
            return (ascent.solve(graph, given, labels), false);
        }
        if roof.solve(graph, given, labels) {
            return (0.0, false);
        }
        graph.condition(given, labels);
        trees.eliminate(graph, given);
        let gap = if graph.has_factors() { ascent.solve(graph, given, labels) } else { 0.0 };
        (gap, true)
    }
}

/// Can it be decoded exactly whatever the scores: is the graph (variables and factors of 2 or more variables) a forest?
/// Factors of the same two variables count as one.
///
/// # Panics
/// If a scope has a variable that there is not.
pub fn is_forest(variables: usize, scopes: impl Iterator<Item = impl AsRef<[u32]>>) -> bool {
    let mut trees = Forest { parent: (0..variables as u32).collect() };
    let mut pairs = Vec::new();
    for scope in scopes {
        match scope.as_ref() {
            [] | [_] => (),
            &[a, b] => pairs.push((a.min(b), a.max(b))),
            many => {
                if !many[1..].iter().all(|&v| trees.join(many[0], v)) {
                    return false;
                }
            }
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs.into_iter().all(|(a, b)| trees.join(a, b))
}

/// Which variables are connected so far.
struct Forest {
    parent: Vec<u32>,
}

impl Forest {
    fn root(&mut self, mut v: u32) -> u32 {
        while self.parent[v as usize] != v {
            // Every other one is hung higher: ways stay short.
            let above = self.parent[self.parent[v as usize] as usize];
            self.parent[v as usize] = above;
            v = above;
        }
        v
    }

    /// Connects two variables; were they apart?
    fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a as usize] = b;
        a != b
    }
}
