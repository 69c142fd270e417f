//! Two labels and factors of two variables: roof duality (Hammer, Hansen, Simeone 1984; Rother and others, CVPR 2007).
//!
//! ```text
//! max  sum_i u_i x_i + sum_ij w_ij x_i x_j + const,   x in {0, 1}
//! w x y = w/2 (x + y) - |w|/2 |x - y|                 w > 0: the labels attract each other
//! w x y = w/2 (x + y) - |w|/2 |x - (1 - y)| - w/2     w < 0: they repel each other
//! ```
//!
//! First what is clear without the neighbours is settled, again and again. Of the rest, components without frustrated
//! cycles (those around which the labels cannot all have their will) become attractive ones when the right variables are
//! turned around, and a minimum cut is exact. The others are cut with two nodes for each variable, x and 1 - x: where both
//! agree the label is that of some best labelling, and the cut bounds them all as the linear relaxation does.

use super::flow::Flow;
use super::graph::{Graph, NONE};

/// The quadratic function, and the room to work in.
#[derive(Debug, Default)]
pub(super) struct Roof {
    /// The variables, and the place of each among them.
    variables: Vec<u32>,
    place: Vec<u32>,
    linear: Vec<f64>,
    pairs: Vec<(u32, u32, f64)>,
    /// The pairs of each variable: the other one, and w.
    begin: Vec<u32>,
    partners: Vec<(u32, f64)>,
    /// What x_i = 1 gains at least and at most.
    least: Vec<f64>,
    most: Vec<f64>,
    /// The label of each, once it is clear.
    x: Vec<u32>,
    queue: Vec<u32>,
    /// Is the variable turned around? And its component: without frustrated cycles?
    is_turned: Vec<bool>,
    is_cut_twice: Vec<bool>,
    is_seen: Vec<bool>,
    /// The first node of each variable.
    node: Vec<u32>,
    fill: Vec<u32>,
    flow: Flow,
}

impl Roof {
    /// Labels what it can of the variables with live factors, like some best labelling of them all. Are all labelled?
    pub(super) fn solve(&mut self, graph: &Graph, given: &[f64], labels: &mut [u32]) -> bool {
        self.read(graph, given);
        self.settle();
        self.color();
        self.cut();
        for (&v, &x) in self.variables.iter().zip(&self.x) {
            labels[v as usize] = x;
        }
        !self.x.contains(&NONE)
    }

    /// By how much the labels are below the bound at most, now that all variables have one.
    pub(super) fn gap(&self, labels: &[u32]) -> f64 {
        // What is cut once is labelled best.
        let label = |i: usize| f64::from(labels[self.variables[i] as usize]);
        let (mut bound, mut value) = (0.0, 0.0);
        let gains = self.node.iter().enumerate().filter(|i| self.is_cut_twice[i.0] && *i.1 != NONE);
        for (i, &node) in gains {
            bound += self.gain(i) * (1.0 + self.one(node) - self.one(node + 1)) / 2.0;
            value += self.linear[i] * label(i);
        }
        for &(i, j, w) in &self.pairs {
            let (i, j) = (i as usize, j as usize);
            let (a, b) = (self.node[i], self.node[j]);
            if a == NONE || b == NONE || !self.is_cut_twice[i] {
                continue;
            }
            let is_crossed = u32::from(w < 0.0);
            let apart = |a: u32, b: u32| (self.one(a) - self.one(b)).abs();
            let cut = apart(a, b + is_crossed) + apart(a + 1, b + 1 - is_crossed);
            bound += (-w).max(0.0) / 2.0 - w.abs() / 4.0 * cut;
            value += w * label(i) * label(j);
        }
        (bound - value).max(0.0)
    }

    fn one(&self, node: u32) -> f64 {
        f64::from(u8::from(self.flow.is_one(node)))
    }

    /// Reads the quadratic function.
    fn read(&mut self, graph: &Graph, given: &[f64]) {
        let n = graph.variables();
        self.variables.clear();
        self.variables.extend((0..n as u32).filter(|&v| graph.degree(v as usize) > 0));
        self.place.resize(n, 0);
        self.linear.clear();
        for (i, &v) in self.variables.iter().enumerate() {
            self.place[v as usize] = i as u32;
            let unary = graph.unary(v as usize);
            self.linear.push(unary[1] - unary[0]);
        }
        self.pairs.clear();
        for f in graph.live_factors() {
            let (scope, table) = (graph.scope(f), graph.table(f, given));
            let (i, j) = (self.place[scope[0] as usize], self.place[scope[1] as usize]);
            self.linear[i as usize] += table[2] - table[0];
            self.linear[j as usize] += table[1] - table[0];
            let w = (table[3] - table[2]) - (table[1] - table[0]);
            if w != 0.0 {
                self.pairs.push((i, j, w));
            }
        }
        let n = self.variables.len();
        let fill = &mut self.fill;
        fill.clear();
        fill.resize(n + 1, 0);
        for &(i, j, _) in &self.pairs {
            fill[i as usize + 1] += 1;
            fill[j as usize + 1] += 1;
        }
        (0..n).for_each(|i| fill[i + 1] += fill[i]);
        self.begin.clone_from(fill);
        self.partners.clear();
        self.partners.resize(2 * self.pairs.len(), (0, 0.0));
        for &(i, j, w) in &self.pairs {
            for (i, j) in [(i, j), (j, i)] {
                self.partners[fill[i as usize] as usize] = (j, w);
                fill[i as usize] += 1;
            }
        }
    }

    fn partners_of(&self, i: usize) -> std::ops::Range<usize> {
        self.begin[i] as usize..self.begin[i + 1] as usize
    }

    /// Labels what is better with one label whatever the others' labels, and what is so then.
    fn settle(&mut self) {
        let n = self.variables.len();
        self.x.clear();
        self.x.resize(n, NONE);
        self.least.clone_from(&self.linear);
        self.most.clone_from(&self.linear);
        for &(i, j, w) in &self.pairs {
            for i in [i as usize, j as usize] {
                self.least[i] += w.min(0.0);
                self.most[i] += w.max(0.0);
            }
        }
        self.queue.clear();
        self.queue.extend((0..n as u32).rev());
        while let Some(i) = self.queue.pop() {
            let i = i as usize;
            // <=: ties go to the earlier label.
            let x = match (self.least[i] > 0.0, self.most[i] <= 0.0) {
                (_, true) => 0,
                (true, _) => 1,
                _ => continue,
            };
            if self.x[i] != NONE {
                continue;
            }
            self.x[i] = x;
            for at in self.partners_of(i) {
                let (j, w) = self.partners[at];
                let to = j as usize;
                if self.x[to] != NONE {
                    continue;
                }
                if x == 1 {
                    self.linear[to] += w;
                    self.least[to] += w.max(0.0);
                    self.most[to] += w.min(0.0);
                } else {
                    self.least[to] -= w.min(0.0);
                    self.most[to] -= w.max(0.0);
                }
                self.queue.push(j);
            }
        }
    }

    /// Turns variables around so that all labels attract each other, as far as that can be, component by component.
    fn color(&mut self) {
        let n = self.variables.len();
        self.is_turned.clear();
        self.is_turned.resize(n, false);
        self.is_cut_twice.clear();
        self.is_cut_twice.resize(n, false);
        self.is_seen.clear();
        self.is_seen.resize(n, false);
        for root in 0..n {
            if self.x[root] != NONE || self.is_seen[root] {
                continue;
            }
            self.queue.clear();
            self.queue.push(root as u32);
            self.is_seen[root] = true;
            let (mut at, mut is_frustrated) = (0, false);
            while let Some(&i) = self.queue.get(at) {
                at += 1;
                for p in self.partners_of(i as usize) {
                    let (j, w) = self.partners[p];
                    let to = j as usize;
                    if self.x[to] != NONE {
                        continue;
                    }
                    let is_turned = self.is_turned[i as usize] != (w < 0.0);
                    if self.is_seen[to] {
                        is_frustrated |= self.is_turned[to] != is_turned;
                    } else {
                        (self.is_seen[to], self.is_turned[to]) = (true, is_turned);
                        self.queue.push(j);
                    }
                }
            }
            if is_frustrated {
                for &i in &self.queue {
                    (self.is_cut_twice[i as usize], self.is_turned[i as usize]) = (true, false);
                }
            }
        }
    }

    /// The gain of x_i = 1 when all pairs are written with |x - y| or |x - (1 - y)|.
    fn gain(&self, i: usize) -> f64 {
        let partners = self.partners[self.partners_of(i)].iter();
        // Settled ones count already; `node` tells them apart once `x` is full.
        let open = partners.filter(|partner| self.node[partner.0 as usize] != NONE);
        self.linear[i] + open.map(|partner| partner.1 / 2.0).sum::<f64>()
    }

    /// Cuts what is not settled.
    fn cut(&mut self) {
        let n = self.variables.len();
        self.node.clear();
        // Numbered below: what has a node is open.
        self.node.extend(self.x.iter().map(|&x| if x == NONE { 0 } else { NONE }));
        self.flow.clear();
        for i in 0..n {
            if self.node[i] == NONE {
                continue;
            }
            let gain = self.gain(i);
            self.node[i] = self.flow.node(if self.is_turned[i] { -gain } else { gain });
            if self.is_cut_twice[i] {
                self.flow.node(-gain);
            }
        }
        for &(i, j, w) in &self.pairs {
            let (i, j) = (i as usize, j as usize);
            let (a, b) = (self.node[i], self.node[j]);
            if a == NONE || b == NONE {
                continue;
            }
            let capacity = w.abs() / 2.0;
            if self.is_cut_twice[i] {
                let is_crossed = u32::from(w < 0.0);
                self.flow.edge(a, b + is_crossed, capacity);
                self.flow.edge(a + 1, b + 1 - is_crossed, capacity);
            } else {
                self.flow.edge(a, b, capacity);
            }
        }
        self.flow.run();
        for i in 0..n {
            let node = self.node[i];
            if node == NONE {
                continue;
            }
            let is_one = self.flow.is_one(node);
            self.x[i] = match self.is_cut_twice[i] {
                false => u32::from(is_one != self.is_turned[i]),
                true if is_one == self.flow.is_one(node + 1) => NONE,
                true => u32::from(is_one),
            };
        }
    }
}
