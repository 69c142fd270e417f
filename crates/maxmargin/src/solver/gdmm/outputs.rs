//! Steps of whole examples towards their outputs of the highest loss, as block-coordinate Frank-Wolfe takes them.
//!
//! Turns of single variables come to an end where several would have to turn together. Where outputs can be decoded, a step
//! towards the best of them leads on, and P is known with it. Blocks that agreed before agree after it. On loops the relaxation may be
//! solved by no mean of outputs, and long before that blocks gain more.

use super::visit::{VisitScratch, score};
use super::{Course, Duals, Phase, Run};
use crate::error::Result;
use crate::parallel::{Pool, ranges};
use crate::problem::OracleScratch;
use crate::task::Part;

/// Turns alone go on as long as a pass of them raises the dual by this share; on loops less long, for blocks raise it farther: so it
/// was on five sets of generated grids, not on street scenes.
const SETTLED: f64 = 0.002;
const SETTLED_ON_LOOPS: f64 = 0.02;

/// Between steps towards outputs they go on while a pass closes this share of the gap that was last known.
const WORTH_A_PASS: f64 = 0.1;

/// A round that raises the dual by less than this share of P finds nothing but rounding.
const ROUNDING: f64 = 1e-13;

/// P is looked at after every step at first, and later after one more in so many.
const LOOKS: usize = 4;

/// So many outputs give mass for one, at most.
const MOST_TURNS: usize = 4;

/// So many examples are decoded side by side.
const BATCH: usize = 64;

/// The labels of an output, by variable.
type Labels = Vec<u32>;

impl<'p> Run<'p, '_> {
    /// After a pass of turns that raised the dual by `gain`: goes on to the next phase where they have settled. P, where it
    /// became known.
    pub(super) fn after_turns(
        &mut self,
        gain: f64,
        course: &mut Course<'_>,
        pool: &Pool,
        scratch: &mut VisitScratch<'p>,
    ) -> Result<Option<f64>> {
        let settled = if self.has_loops { SETTLED_ON_LOOPS } else { SETTLED };
        if self.position.phase == Phase::Turns && gain <= settled * self.dual_value() {
            // Blocks agree up to here: the best bound for a while.
            self.position.bound = course.in_oracle(|| self.dual_bound(pool)).max(self.position.bound);
            (self.position.phase, self.position.check) = if self.decodes() && !self.has_loops {
                (Phase::Outputs, 0)
            } else {
                (Phase::Blocks, self.position.check.max(self.position.passes + 1))
            };
        }
        if self.position.phase != Phase::Outputs || gain > WORTH_A_PASS * self.position.gap {
            return Ok(None);
        }
        let before = self.dual_value();
        course.in_oracle(|| self.step_towards_outputs(pool, scratch))?;
        course.so_far.oracle_calls += self.problem.len() as u64;
        self.position.steps += 1;
        if self.position.steps < self.position.check {
            return Ok(None);
        }
        self.position.check = self.position.steps + (self.position.steps / LOOKS).max(1);
        let (primal, dual) = course.in_oracle(|| Ok((self.decoded(pool)?, self.dual_bound(pool))))?;
        course.so_far.oracle_calls += self.problem.len() as u64;
        course.offer(&self.w, primal);
        self.position.bound = dual.max(self.position.bound);
        course.begin_bound();
        course.bound(self.position.bound);
        // Not negative by rounding.
        self.position.gap = (primal - self.position.bound).max(0.0);
        course.so_far.stalled = gain + self.dual_value() - before <= ROUNDING * primal;
        Ok(Some(primal))
    }

    /// Of every example once, in random order. So many at once are decoded side by side, at the same w.
    fn step_towards_outputs(&mut self, pool: &Pool, scratch: &mut VisitScratch<'p>) -> Result<()> {
        self.order.begin_pass();
        loop {
            let batch = self.order.next(BATCH).to_vec();
            if batch.is_empty() {
                return Ok(());
            }
            let outputs = pool.map(ranges(batch.len(), BATCH / 8), |range| -> Result<Vec<Labels>> {
                let mut scratch = OracleScratch::default();
                let decode = |&i: &u32| {
                    let (i, mut labels) = (i as usize, Vec::new());
                    self.problem.oracle(i, &self.w, &mut scratch)?;
                    self.factored.labels(self.problem.place(i), &scratch.y, &mut labels);
                    Ok(labels)
                };
                batch[range].iter().map(decode).collect()
            });
            let mut examples = batch.iter();
            for outputs in outputs {
                for (output, &i) in outputs?.iter().zip(&mut examples) {
                    self.step_towards(i as usize, output, scratch);
                }
            }
        }
    }

    /// Moves masses of example i towards an output, as far as the dual rises: in a chain from the outputs with mass that score
    /// least, else from all in proportion.
    fn step_towards(&mut self, i: usize, output: &[u32], scratch: &mut VisitScratch<'p>) {
        let mut duals = std::mem::take(&mut self.duals[i]);
        self.fill(i, &duals, scratch);
        if scratch.structure.is_chain() {
            for _ in 0..MOST_TURNS {
                if !self.turn_worst(i, output, &mut duals, scratch) {
                    break;
                }
            }
        } else {
            self.share_out(i, output, &mut duals, scratch);
        }
        self.duals[i] = duals;
    }

    /// Mass of all outputs goes to one.
    fn share_out(&mut self, i: usize, output: &[u32], duals: &mut Duals, scratch: &mut VisitScratch<'p>) {
        let (x, cap) = (self.problem.place(i), self.problem.share(i));
        let VisitScratch { structure, parts, truth, changes, .. } = scratch;
        changes.clear();
        // By how much the dual rises for a small step.
        let mut slope = 0.0;
        for (v, block) in duals.variables.iter().enumerate() {
            parts.clear();
            self.factored.unary(x, v, &mut |part| parts.push(part));
            for (label, change) in block.changes_towards(output[v], cap) {
                slope += change * (self.score_of(parts, label, structure.domains[v]) + self.loss(truth[v], label));
                for part in &*parts {
                    list(changes, part, label, structure.domains[v], change);
                }
            }
        }
        for (block, (f, factor)) in duals.factors.iter().zip(structure.factors.iter().enumerate()) {
            for (label, change) in block.changes_towards(structure.label(f, output), cap) {
                slope += change * score(&self.w, &factor.part, label, factor.labels);
                list(changes, &factor.part, label, factor.labels, change);
            }
        }
        if slope <= 0.0 {
            return;
        }
        let bend = norm2(changes);
        let share = if bend > 0.0 { (slope / bend).min(1.0) } else { 1.0 };
        for (v, block) in duals.variables.iter_mut().enumerate() {
            parts.clear();
            self.factored.unary(x, v, &mut |part| parts.push(part));
            for (label, change) in block.changes_towards(output[v], cap) {
                self.step_variable(parts, (label, structure.domains[v]), truth[v], share * change);
            }
            block.move_towards(output[v], share, cap);
        }
        for (f, block) in duals.factors.iter_mut().enumerate() {
            let to = structure.label(f, output);
            for (label, change) in block.changes_towards(to, cap) {
                self.step_factor(&structure.factors[f], label, share * change);
            }
            block.move_towards(to, share, cap);
        }
    }

    /// Mass of the output that scores least, of those that have some, goes to another one. Did all of it go?
    fn turn_worst(&mut self, i: usize, output: &[u32], duals: &mut Duals, scratch: &mut VisitScratch<'p>) -> bool {
        let (x, cap) = (self.problem.place(i), self.problem.share(i));
        let VisitScratch { structure, parts, truth, changes, way, .. } = scratch;
        way.clear();
        // What the output scores, variable by variable.
        let mut most = 0.0;
        for (v, block) in duals.variables.iter().enumerate() {
            parts.clear();
            self.factored.unary(x, v, &mut |part| parts.push(part));
            let own = |label: u32| self.score_of(parts, label, structure.domains[v]) + self.loss(truth[v], label);
            most += own(output[v]);
            let before = v.checked_sub(1);
            let links = before.map(|f| (&structure.factors[f], structure.stride_at(2 * f), &duals.factors[f].held));
            if let Some((factor, stride, _)) = links {
                most += score(&self.w, &factor.part, output[v - 1] * stride + output[v], factor.labels);
            }
            way.begin_variable();
            for &(label, mass) in &block.held {
                let own = if mass > 0.0 { own(label) } else { f64::INFINITY };
                way.push(own, |way| {
                    let (factor, stride, held) = links?;
                    let ends = held.iter().enumerate().filter(|(_, held)| held.1 > 0.0 && held.0 % stride == label);
                    let scores = ends.filter_map(|(place, held)| {
                        let from = duals.variables[v - 1].place(held.0 / stride)?;
                        Some((way.before(from) + score(&self.w, &factor.part, held.0, factor.labels), from, place))
                    });
                    scores.min_by(|a, b| a.0.total_cmp(&b.0))
                });
            }
        }
        let Some(least) = way.trace() else { return false };
        let slope = most - least;
        if slope <= ROUNDING * most.abs() {
            return false;
        }
        changes.clear();
        let mut available = f64::INFINITY;
        for (v, block) in duals.variables.iter().enumerate() {
            let (from, mass) = block.held[way.labels[v]];
            if from != output[v] {
                available = mass.min(available);
                parts.clear();
                self.factored.unary(x, v, &mut |part| parts.push(part));
                for (label, change) in [(from, -1.0), (output[v], 1.0)] {
                    for part in &*parts {
                        list(changes, part, label, structure.domains[v], change);
                    }
                }
            }
        }
        for (f, factor) in structure.factors.iter().enumerate() {
            let ((from, mass), to) = (duals.factors[f].held[way.links[f]], structure.label(f, output));
            if from != to {
                available = mass.min(available);
                for (label, change) in [(from, -1.0), (to, 1.0)] {
                    list(changes, &factor.part, label, factor.labels, change);
                }
            }
        }
        let bend = norm2(changes);
        let step = if bend > 0.0 { (slope / bend).min(available) } else { available };
        for (v, block) in duals.variables.iter_mut().enumerate() {
            let from = block.held[way.labels[v]].0;
            if from != output[v] {
                parts.clear();
                self.factored.unary(x, v, &mut |part| parts.push(part));
                self.step_variable(parts, (from, structure.domains[v]), truth[v], -step);
                self.step_variable(parts, (output[v], structure.domains[v]), truth[v], step);
                block.shift(way.labels[v], output[v], step, cap);
            }
        }
        for (f, block) in duals.factors.iter_mut().enumerate() {
            let (from, to) = (block.held[way.links[f]].0, structure.label(f, output));
            if from != to {
                self.step_factor(&structure.factors[f], from, -step);
                self.step_factor(&structure.factors[f], to, step);
                block.shift(way.links[f], to, step, cap);
            }
        }
        step == available
    }

    fn score_of(&self, parts: &[Part<'_>], label: u32, labels: u32) -> f64 {
        parts.iter().map(|part| score(&self.w, part, label, labels)).sum()
    }
}

/// How weights change with the mass of a label, added to a list.
fn list(changes: &mut Vec<(usize, f64)>, part: &Part<'_>, label: u32, labels: u32, change: f64) {
    if let Some(slot) = part.slots.of(label as usize, labels as usize) {
        changes.extend(part.phi.iter().map(|(j, x)| (part.block.at(j, slot), change * f64::from(x))));
    }
}

/// The sum of squares of changes, those of one weight together.
fn norm2(changes: &mut [(usize, f64)]) -> f64 {
    changes.sort_unstable_by_key(|change| change.0);
    let sums = changes.chunk_by(|a, b| a.0 == b.0).map(|same| same.iter().map(|change| change.1).sum::<f64>());
    sums.map(|sum| sum * sum).sum()
}

/// The way through a chain along labels with mass that scores least.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// By variable and label held: the least score up to there, the label before, and the factor's label between the two.
    steps: Vec<(f64, usize, usize)>,
    starts: Vec<usize>,
    /// The places of the labels, and of those of the factors.
    labels: Vec<usize>,
    links: Vec<usize>,
}

impl Way {
    fn clear(&mut self) {
        self.steps.clear();
        self.starts.clear();
    }

    fn begin_variable(&mut self) {
        self.starts.push(self.steps.len());
    }

    /// The least score up to a label of the variable before.
    fn before(&self, place: usize) -> f64 {
        self.steps[self.starts[self.starts.len() - 2] + place].0
    }

    /// The next label of a variable, with its own score and the best way to it; none leads to a first one.
    fn push(&mut self, own: f64, from: impl FnOnce(&Self) -> Option<(f64, usize, usize)>) {
        let step = match from(self) {
            Some((score, label, link)) => (score + own, label, link),
            None if self.starts.len() == 1 => (own, 0, 0),
            None => (f64::INFINITY, 0, 0),
        };
        self.steps.push(step);
    }

    /// Leaves the way in `labels` and `links`; its score, where there is one.
    fn trace(&mut self) -> Option<f64> {
        let last = *self.starts.last()?;
        let ends = self.steps[last..].iter().enumerate();
        let (mut place, &(score, ..)) = ends.min_by(|a, b| a.1.0.total_cmp(&b.1.0))?;
        self.labels.clear();
        self.links.clear();
        for &start in self.starts.iter().rev() {
            let (_, from, link) = self.steps[start + place];
            self.labels.push(place);
            self.links.push(link);
            place = from;
        }
        self.labels.reverse();
        self.links.reverse();
        // The first variable has no factor before it.
        self.links.remove(0);
        score.is_finite().then_some(score)
    }
}
