//! The last touch: labels of single variables, and of the two variables of a factor, are changed as long as that scores
//! more (iterated conditional modes).

use super::ascent::Ascent;
use super::graph::Graph;
use super::message::{add_entries, first_best};

/// Rounds over all variables and factors at most.
const MOST_ROUNDS: usize = 30;

impl Ascent {
    /// The score of a labelling, of the variables with live factors and of these.
    pub(super) fn value(&self, graph: &Graph, given: &[f64], labels: &[u32]) -> f64 {
        let unary = self.variables.iter().map(|&v| graph.unary(v as usize)[labels[v as usize] as usize]);
        let factors = graph.live_factors().map(|f| {
            let entry = graph.scope(f).iter().fold(0, |entry, &v| {
                let v = v as usize;
                entry * graph.domain(v) + labels[v] as usize
            });
            graph.table(f, given)[entry]
        });
        unary.sum::<f64>() + factors.sum::<f64>()
    }

    /// Changes labels for the better.
    pub(super) fn polish(&mut self, graph: &Graph, given: &[f64], labels: &mut [u32]) {
        // Vectors of one variable each, lent from the passes.
        let (mut ones, mut others) = (std::mem::take(&mut self.sure), std::mem::take(&mut self.hoped));
        for _ in 0..MOST_ROUNDS {
            let mut is_changed = false;
            for (i, &v) in self.variables.iter().enumerate() {
                let v = v as usize;
                let ones = &mut ones[..graph.domain(v)];
                self.around(graph, given, i, None, labels, ones);
                let (label, best) = first_best(ones.iter().copied());
                if best > ones[labels[v] as usize] {
                    labels[v] = label as u32;
                    is_changed = true;
                }
            }
            if !is_changed {
                is_changed = self.polish_pairs(graph, given, labels, (&mut ones, &mut others));
            }
            if !is_changed {
                break;
            }
        }
        (self.sure, self.hoped) = (ones, others);
    }

    fn polish_pairs(
        &self,
        graph: &Graph,
        given: &[f64],
        labels: &mut [u32],
        (ones, others): (&mut [f64], &mut [f64]),
    ) -> bool {
        let mut is_changed = false;
        for (i, &v) in self.variables.iter().enumerate() {
            for link in self.links(i) {
                let f = link.factor as usize;
                let &[a, b] = graph.scope(f) else { continue };
                // Each factor once: from its first variable's side.
                if link.place != 0 {
                    continue;
                }
                debug_assert_eq!(a, v);
                let (a, b) = (a as usize, b as usize);
                let (ones, others) = (&mut ones[..graph.domain(a)], &mut others[..graph.domain(b)]);
                self.around(graph, given, i, Some(f), labels, ones);
                self.around(graph, given, self.places[b] as usize, Some(f), labels, others);
                let table = graph.table(f, given);
                let entry = labels[a] as usize * others.len() + labels[b] as usize;
                let now = ones[labels[a] as usize] + table[entry] + others[labels[b] as usize];
                let (mut most, mut at) = (f64::NEG_INFINITY, (0, 0));
                for (x, (row, one)) in table.chunks_exact(others.len()).zip(&*ones).enumerate() {
                    let (y, best) = first_best(row.iter().zip(&*others).map(|(score, other)| score + other));
                    if one + best > most {
                        (most, at) = (one + best, (x as u32, y as u32));
                    }
                }
                // Rounding may make the same labels look better than themselves: a change is one of some size.
                if most - now > 1e-12 * (now.abs() + most.abs()) {
                    (labels[a], labels[b]) = at;
                    is_changed = true;
                }
            }
        }
        is_changed
    }

    /// The scores of the labels of the i-th variable, those of all others being as they are, without factor `but`.
    fn around(&self, graph: &Graph, given: &[f64], i: usize, but: Option<usize>, labels: &[u32], out: &mut [f64]) {
        out.copy_from_slice(graph.unary(self.variables[i] as usize));
        for link in self.links(i).iter().filter(|link| Some(link.factor as usize) != but) {
            let f = link.factor as usize;
            let scope = graph.scope(f);
            let domain = |j: usize| graph.domain(scope[j] as usize);
            let label = |j: usize| labels[scope[j] as usize];
            add_entries(graph.table(f, given), (scope.len(), link.place as usize), domain, label, out);
        }
    }
}
