//! A step of all blocks of a chain at once, towards one of its outputs.
//!
//! Blocks that move one by one are held back by those that they are tied to, and it takes many passes until mass has gone all
//! the way. An output gives every block a label on which all agree: towards it mass moves without a price. The output is the
//! best among the labels that the variables hold, found by a Viterbi search over these few; the step is as long as the
//! augmented Lagrangian falls.
//!
//! ```text
//! b += gamma (U e_y - b):   M_jf b_f - b_j =: r shrinks to (1 - gamma) r
//! slope  U <w, psi(y)> + U D(y) - sum b (scores and costs) + rho sum <r, r + lambda>
//! bend   |U psi(y) - sum b psi|^2 + rho sum |r|^2
//! ```

use super::block::Block;
use super::structure::Structure;
use super::visit::{Scratch, add_difference, score};
use super::{Duals, Run};
use crate::features::{Lookup, Sink};
use crate::task::Task;

/// Labels of a variable that are looked at: the best ones that it holds.
const MOST: usize = 8;

/// What the search needs, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct Path {
    /// Of each variable, where its labels start.
    starts: Vec<usize>,
    /// Labels with their scores.
    labels: Vec<(u32, f64)>,
    /// By label: the score of the best way that ends there, and which label of the variable before it came from.
    ways: Vec<(f64, usize)>,
    output: Vec<u32>,
    change: Lookup,
    /// A block as it was.
    before: Vec<(u32, f64)>,
}

impl Path {
    fn clear(&mut self) {
        self.starts.clear();
        self.labels.clear();
        self.output.clear();
        self.change.clear();
    }

    /// The labels of one more variable are there: keeps the best of them.
    fn close(&mut self, start: usize) {
        let own = &mut self.labels[start..];
        if own.len() > MOST {
            own.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            self.labels.truncate(start + MOST);
        }
        self.starts.push(start);
    }

    /// The best output, and its score. `pair`: that of factor f at two labels.
    fn search(&mut self, pair: impl Fn(usize, u32, u32) -> f64) -> f64 {
        let Self { starts, labels, ways, output, .. } = self;
        ways.clear();
        let end = |v: usize| starts.get(v + 1).copied().unwrap_or(labels.len());
        for v in 0..starts.len() {
            for at in starts[v]..end(v) {
                let (label, own) = labels[at];
                let mut best = (own, usize::MAX);
                if v > 0 {
                    best = (f64::NEG_INFINITY, usize::MAX);
                    for from in starts[v - 1]..starts[v] {
                        let value = ways[from].0 + pair(v - 1, labels[from].0, label);
                        if value > best.0 {
                            best = (value, from);
                        }
                    }
                    best.0 += own;
                }
                ways.push(best);
            }
        }
        let first = starts.last().copied().unwrap_or(0);
        let last = (first..labels.len()).fold(first, |best, at| if ways[at].0 > ways[best].0 { at } else { best });
        let mut at = last;
        while at != usize::MAX {
            output.push(labels[at].0);
            at = ways[at].1;
        }
        output.reverse();
        ways[last].0
    }
}

impl<'a, T: Task> Run<'_, 'a, T> {
    /// The step, where the graph is a chain. The structure is filled.
    pub(super) fn path_step(&mut self, i: usize, cap: f64, duals: &mut Duals, scratch: &mut Scratch<'a>) {
        if !scratch.structure.is_chain() {
            return;
        }
        let x = self.problem.input(i);
        let Scratch { structure, parts, truth, path, message: difference, .. } = scratch;
        path.clear();
        // sum b s
        let mut now = 0.0;
        for (v, block) in duals.variables.iter().enumerate() {
            parts.clear();
            self.factored.unary(x, v, &mut |part| parts.push(part));
            let (start, domain) = (path.labels.len(), structure.domains[v]);
            for &(label, mass) in &block.held {
                let own: f64 = parts.iter().map(|part| score(&self.w, part, label, domain)).sum();
                let own = own + if label == truth[v] { 0.0 } else { self.cost(truth[v]) };
                now += mass * own;
                path.labels.push((label, own));
            }
            path.close(start);
        }
        for (block, factor) in duals.factors.iter().zip(&structure.factors) {
            for &(label, mass) in block.held.iter().filter(|held| held.1 > 0.0) {
                now += mass * score(&self.w, &factor.part, label, factor.labels);
            }
        }
        let best = path.search(|f, a, b| {
            let factor = &structure.factors[f];
            score(&self.w, &factor.part, structure.pair(f, a, b), factor.labels)
        });
        let (mut disagreement, mut pull) = (0.0, 0.0);
        for f in 0..structure.factors.len() {
            for (joint, v) in structure.joints_of(f) {
                difference.entries.clear();
                add_difference(duals, structure, f, (joint, v), difference);
                for &(label, r) in &difference.entries {
                    disagreement += r * r;
                    pull += r * duals.multipliers[joint].get(label);
                }
            }
        }
        let slope = cap * best - now + self.rho * (disagreement + pull);
        if slope <= 0.0 {
            return;
        }
        let Path { output, change, before, .. } = path;
        for (v, block) in duals.variables.iter().enumerate() {
            let domain = structure.domains[v] as usize;
            self.factored.unary(x, v, &mut |part| {
                for (label, step) in towards(block, output[v], cap) {
                    if let Some(slot) = part.slots.of(label as usize, domain) {
                        change.part(part.block, slot, part.phi, step);
                    }
                }
            });
        }
        for (f, factor) in structure.factors.iter().enumerate() {
            for (label, step) in towards(&duals.factors[f], structure.label(f, output), cap) {
                if let Some(slot) = factor.part.slots.of(label as usize, factor.labels as usize) {
                    change.part(factor.part.block, slot, factor.part.phi, step);
                }
            }
        }
        let bend = change.norm2() + self.rho * disagreement;
        let share = if bend > 0.0 { (slope / bend).min(1.0) } else { 1.0 };
        for v in 0..duals.variables.len() {
            let (block, domain) = (&mut duals.variables[v], structure.domains[v] as usize);
            before.clone_from(&block.held);
            block.move_towards(output[v], share, cap);
            parts.clear();
            self.factored.unary(x, v, &mut |part| parts.push(part));
            for (label, step) in differences(before, block) {
                for part in &*parts {
                    if let Some(slot) = part.slots.of(label as usize, domain) {
                        self.subtract(part.block, slot, part.phi, step);
                    }
                }
                self.position.cost += if label == truth[v] { 0.0 } else { self.cost(truth[v]) * step };
            }
        }
        for (f, factor) in structure.factors.iter().enumerate() {
            let block = &mut duals.factors[f];
            before.clone_from(&block.held);
            block.move_towards(structure.label(f, output), share, cap);
            for (label, step) in differences(before, block) {
                self.step_factor(factor, label, step);
            }
        }
    }
}

/// The labels of a block, and how their masses change on the way to having all of it at one.
fn towards(block: &Block, target: u32, cap: f64) -> impl Iterator<Item = (u32, f64)> + '_ {
    let is_new = block.place(target).is_none();
    let own = block.held.iter().map(move |&(label, mass)| (label, if label == target { cap - mass } else { -mass }));
    own.chain(is_new.then_some((target, cap))).filter(|entry| entry.1 != 0.0)
}

/// The labels of a block whose masses are not as they were, and by how much.
fn differences<'b>(before: &'b [(u32, f64)], after: &'b Block) -> impl Iterator<Item = (u32, f64)> + 'b {
    let old = before.iter().map(|&(label, mass)| (label, after.place(label).map_or(0.0, |at| after.held[at].1) - mass));
    let new = after.held.iter().filter(|held| before.iter().all(|old| old.0 != held.0));
    old.chain(new.copied()).filter(|entry| entry.1 != 0.0)
}

impl Structure<'_> {
    /// The label of factor f of two variables that have these labels.
    fn pair(&self, f: usize, a: u32, b: u32) -> u32 {
        self.stride(f, 0) * a + self.stride(f, 1) * b
    }
}
