//! The last touch: labels of single variables, and of two variables of a factor, are changed as long as that scores
//! more (iterated conditional modes).

use super::ascent::Ascent;
use super::graph::Graph;
use super::message::{add_entries, first_best};

/// Rounds over all variables and factors at most.
const MOST_ROUNDS: usize = 30;

/// Where all variables have two labels: what each gains by taking the other one, all others being as they are. In a dense graph
/// this spares a look at all neighbours of both for each pair.
struct Flips {
    gains: Vec<f64>,
}

impl Flips {
    fn new(ascent: &Ascent, graph: &Graph, given: &[f64], labels: &[u32]) -> Self {
        let gain = |i: usize| {
            let (mut scores, label) = ([0.0; 2], labels[ascent.variables[i] as usize] as usize);
            ascent.around(graph, given, i, labels, &mut scores);
            scores[1 - label] - scores[label]
        };
        Self { gains: (0..ascent.variables.len()).map(gain).collect() }
    }

    /// May two variables gain by both taking their other labels? `table`: of the factor that they share.
    fn may_gain(&self, ascent: &Ascent, table: &[f64], (a, b): (usize, usize), labels: &[u32]) -> bool {
        let gain = |v: usize| self.gains[ascent.places[v] as usize];
        let (x, y) = (labels[a] as usize, labels[b] as usize);
        let at = |x: usize, y: usize| table[2 * x + y];
        // The scope may begin with either; the sums are the same.
        let together = at(1 - x, 1 - y) + at(x, y) - at(1 - x, y) - at(x, 1 - y);
        gain(a) + gain(b) + together > 0.0
    }
}

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

    /// Changes labels of single variables, and then of two at a time, for the better.
    pub(super) fn polish(&mut self, graph: &Graph, given: &[f64], labels: &mut [u32]) {
        // Vectors of one variable each, lent from the passes.
        let (mut ones, mut others) = (std::mem::take(&mut self.sure), std::mem::take(&mut self.hoped));
        for _ in 0..MOST_ROUNDS {
            if !self.polish_ones(graph, given, labels, &mut ones)
                && !self.polish_pairs(graph, given, labels, (&mut ones, &mut others))
            {
                break;
            }
        }
        (self.sure, self.hoped) = (ones, others);
    }

    /// Changes labels of single variables for the better, in one round; did any change?
    pub(super) fn polish_ones(&self, graph: &Graph, given: &[f64], labels: &mut [u32], ones: &mut [f64]) -> bool {
        let mut is_changed = false;
        for (i, &v) in self.variables.iter().enumerate() {
            let v = v as usize;
            let ones = &mut ones[..graph.domain(v)];
            self.around(graph, given, i, labels, ones);
            let (label, best) = first_best(ones.iter().copied());
            if best > ones[labels[v] as usize] {
                labels[v] = label as u32;
                is_changed = true;
            }
        }
        is_changed
    }

    /// The same for any two variables of a factor.
    fn polish_pairs(
        &self,
        graph: &Graph,
        given: &[f64],
        labels: &mut [u32],
        (ones, others): (&mut [f64], &mut [f64]),
    ) -> bool {
        let mut is_changed = false;
        let mut flips = graph.is_binary().then(|| Flips::new(self, graph, given, labels));
        for (i, &a) in self.variables.iter().enumerate() {
            for link in self.links(i) {
                // Each pair once: from the side of the earlier one.
                for &b in graph.scope(link.factor as usize).iter().filter(|&&b| b > a) {
                    let (a, b) = (a as usize, b as usize);
                    let table = graph.table(link.factor as usize, given);
                    if flips.as_ref().is_some_and(|flips| !flips.may_gain(self, table, (a, b), labels)) {
                        continue;
                    }
                    let (ones, others) = (&mut ones[..graph.domain(a)], &mut others[..graph.domain(b)]);
                    if self.polish_pair(graph, given, labels, [(a, ones), (b, others)]) {
                        is_changed = true;
                        flips = flips.map(|_| Flips::new(self, graph, given, labels));
                    }
                }
            }
        }
        is_changed
    }

    /// Gives two variables the best labels together, those of all others being as they are. First the one changes its
    /// label, then the other one: the scores around it are those after the first change, whatever factors they share.
    fn polish_pair(
        &self,
        graph: &Graph,
        given: &[f64],
        labels: &mut [u32],
        [(a, ones), (b, others)]: [(usize, &mut [f64]); 2],
    ) -> bool {
        let (old_a, old_b) = (labels[a], labels[b]);
        self.around(graph, given, self.places[a] as usize, labels, ones);
        let (mut most, mut best) = (0.0, (old_a, old_b));
        for x in 0..ones.len() {
            labels[a] = x as u32;
            self.around(graph, given, self.places[b] as usize, labels, others);
            let (y, other) = first_best(others.iter().copied());
            let (first, second) = (ones[x] - ones[old_a as usize], other - others[old_b as usize]);
            // A change is one of some size: rounding may make the same labels look better than themselves.
            if first + second > most + 1e-12 * (ones[x].abs() + other.abs()) {
                (most, best) = (first + second, (x as u32, y as u32));
            }
        }
        (labels[a], labels[b]) = best;
        most > 0.0
    }

    /// The scores of the labels of the i-th variable, those of all others being as they are.
    fn around(&self, graph: &Graph, given: &[f64], i: usize, labels: &[u32], out: &mut [f64]) {
        out.copy_from_slice(graph.unary(self.variables[i] as usize));
        for link in self.links(i) {
            let f = link.factor as usize;
            let scope = graph.scope(f);
            let domain = |j: usize| graph.domain(scope[j] as usize);
            let label = |j: usize| labels[scope[j] as usize];
            add_entries(graph.table(f, given), (scope.len(), link.place as usize), domain, label, out);
        }
    }
}
