//! A turn of a variable: mass goes from one of its labels to another, and in each of its factors from a label with the one to
//! the same label with the other.
//!
//! Variable and factors stay as far apart as they were, so the penalty of disagreement does not hold the step back: it is as long
//! as the dual without messages allows. A run begins with turns alone. All blocks agree then, and the value of the dual is a
//! bound. But turns of one variable can come to an end where two would have to turn together; after that blocks are visited, too.

use super::look::{Known, Look};
use super::ordered::{Bounds, Line};
use super::structure::{Factor, Structure, is_constant};
use super::visit::{VisitScratch, norm2, score};
use super::{Duals, Run, SMALL};
use crate::sparse::SparseView;
use crate::task::{Part, Slots};
use crate::weights::Weights;

/// A variable with more factors looks at all labels.
const MOST_LINES: usize = 4;

/// A factor that turns along.
#[derive(Debug, Clone, Copy)]
struct Tie {
    factor: u32,
    /// The place in the factor's block of the label that gives mass, and the label itself.
    place: u32,
    label: u32,
    /// What the label is where the variable's is 0, and what one step of the variable's adds.
    base: u32,
    stride: u32,
    /// Is the variable the second of the factor's?
    is_second: bool,
}

impl Tie {
    fn at(self, own: u32) -> u32 {
        self.base + self.stride * own
    }
}

/// What a turn needs, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct Turn {
    ties: Vec<Tie>,
    /// By label: its place among those that the variable holds, where that one is the label.
    at: Vec<u32>,
    /// By label that the variable holds and by factor: the place of the label with it that has mass and scores least, and its score.
    least: Vec<(u32, f64)>,
    scores: Vec<f64>,
    bounds: Bounds,
    /// Slots of factors that win or lose mass.
    changes: Vec<(u64, u32, f64, u32)>,
}

/// A variable by itself: what its labels score without its factors, their cost included.
struct Alone<'s, 'a> {
    w: &'s Weights,
    look: &'s Look,
    parts: &'s [Part<'a>],
    labels: u32,
    truth: u32,
    cost: f64,
}

impl Alone<'_, '_> {
    fn loss(&self, label: u32) -> f64 {
        if label == self.truth { 0.0 } else { self.cost }
    }

    fn score(&self, label: u32) -> f64 {
        let own = self.look.score(label);
        let own = own.unwrap_or_else(|| self.parts.iter().map(|part| score(self.w, part, label, self.labels)).sum());
        own + self.loss(label)
    }
}

/// The best label so far, but for one, and what it scores; at first what that one does.
struct Best {
    from: u32,
    found: Option<u32>,
    most: f64,
}

impl Best {
    fn offer(&mut self, label: u32, score: f64) {
        if score > self.most && label != self.from {
            (self.found, self.most) = (Some(label), score);
        }
    }
}

impl<'p> Run<'p, '_> {
    /// Turns variable v of an example from the label that scores least to the one that scores most. Its parts are filled in.
    pub(super) fn turn(
        &mut self,
        v: usize,
        anywhere: usize,
        cap: f64,
        duals: &mut Duals,
        scratch: &mut VisitScratch<'p>,
    ) {
        let labels = scratch.structure.domains[v];
        let near = self.look_at(labels, anywhere, scratch);
        let VisitScratch { structure, parts, truth, look, turn, .. } = scratch;
        let (truth, cost) = (truth[v], self.cost(truth[v]));
        let alone = Alone { w: &self.w, look, parts, labels, truth, cost };
        let Some((place, from, least)) = turn.worst(structure, v, duals, &alone) else { return };
        let mut best = Best { from, found: None, most: least };
        let held = &duals.variables[v].held;
        if let Some((lines, count)) = self.lines(structure, turn, labels) {
            alone.ask_for(&lines[..count], held);
            turn.bounds.fill(&lines[..count]);
            let start = self.anywhere(labels, anywhere) as usize;
            alone.best_by_orders(&lines[..count], &mut turn.bounds, held, start, &mut best);
        } else {
            alone.best_of_all(structure, turn, held, near, &mut best);
        }
        let (Some(to), most) = (best.found, best.most) else { return };
        turn.ties.iter().for_each(|tie| self.ask_for_fall(&structure.factors[tie.factor as usize], tie.at(to)));
        let bend = norm2(parts, from, labels) + norm2(parts, to, labels) + turn.bend(structure, to);
        let mass_of = |tie: &Tie| duals.factors[tie.factor as usize].held[tie.place as usize].1;
        let available = turn.ties.iter().map(mass_of).fold(held[place].1, f64::min);
        let step = if bend > 0.0 { ((most - least) / bend).min(available) } else { available };
        duals.variables[v].shift(place, to, step, cap);
        self.step_variable(parts, (from, labels), truth, -step);
        self.step_variable(parts, (to, labels), truth, step);
        for tie in &turn.ties {
            let factor = &structure.factors[tie.factor as usize];
            duals.factors[tie.factor as usize].shift(tie.place as usize, tie.at(to), step, cap);
            self.step_factor(factor, tie.label, -step);
            self.step_factor(factor, tie.at(to), step);
        }
    }

    /// What each factor scores with each label of the variable, and how many factors these are; where there are many labels, and
    /// all factors have orders.
    fn lines<'s>(
        &'s self,
        structure: &Structure<'_>,
        turn: &Turn,
        labels: u32,
    ) -> Option<([Line<'s>; MOST_LINES], usize)> {
        if labels as usize <= SMALL || turn.ties.is_empty() || turn.ties.len() > MOST_LINES {
            return None;
        }
        let mut lines = [Line::default(); MOST_LINES];
        for (line, tie) in lines.iter_mut().zip(&turn.ties) {
            let block = structure.factors[tie.factor as usize].part.block;
            let ordered = self.orders.of(block)?;
            *line = if tie.is_second {
                ordered.row(tie.base as usize / ordered.columns(), self.w.of(block))
            } else {
                ordered.column(tie.base as usize)
            };
        }
        Some((lines, turn.ties.len()))
    }
}

impl Alone<'_, '_> {
    /// Asks for what factors score with the labels that are looked at one by one: they lie far apart.
    fn ask_for(&self, lines: &[Line<'_>], held: &[(u32, f64)]) {
        let seen = if let Known::Seen(seen) = self.look.known() { seen } else { &[] };
        for line in lines {
            held.iter().map(|held| &held.0).chain(seen).for_each(|&label| line.ask_for_label(label));
        }
    }

    /// The best label together with what factors score. That is bounded by blocks of labels, which spares most of them a look.
    /// Labels that have no weights with the features score the same alone: of these it is the best for the factors, and of
    /// equal ones the first from `start` on.
    fn best_by_orders(
        &self,
        lines: &[Line<'_>],
        bounds: &mut Bounds,
        held: &[(u32, f64)],
        start: usize,
        best: &mut Best,
    ) {
        let consider = |label: u32, bounds: &Bounds, best: &mut Best| {
            let own = self.score(label);
            if own + bounds.at(label) > best.most {
                best.offer(label, own + lines.iter().map(|line| line.score(label)).sum::<f64>());
            }
        };
        // The truth is among them.
        for &(label, _) in held {
            consider(label, bounds, best);
        }
        let from = best.from;
        let is_other = |label: u32| label == self.truth || label == from;
        let found = match self.look.known() {
            Known::Range(first, scores) => {
                let own = Line::part(first, scores);
                bounds.add(&own);
                bounds.best(&lines.iter().chain([&own]), best.most - self.cost, 0, is_other)
            }
            Known::Seen(seen) => {
                for &label in seen {
                    consider(label, bounds, best);
                }
                let is_other = |label: u32| is_other(label) || self.look.is_seen(label);
                bounds.best(&lines.iter(), best.most - self.cost, start, is_other)
            }
        };
        if let Some((label, score)) = found {
            best.offer(label, score + self.cost);
        }
    }

    /// The best label of those that are looked at, and of those that are held.
    fn best_of_all(
        &self,
        structure: &Structure<'_>,
        turn: &mut Turn,
        held: &[(u32, f64)],
        (start, len): (usize, usize),
        best: &mut Best,
    ) {
        let Turn { ties, scores, .. } = turn;
        scores.clear();
        scores.extend((start..start + len).map(|label| self.score(label as u32)));
        for tie in &*ties {
            add_turned(self.w, &structure.factors[tie.factor as usize], *tie, start as u32, scores);
        }
        (start as u32..).zip(&*scores).for_each(|(label, &score)| best.offer(label, score));
        for &(label, _) in held.iter().filter(|held| !(start..start + len).contains(&(held.0 as usize))) {
            let along = |tie: &Tie| {
                let factor = &structure.factors[tie.factor as usize];
                score(self.w, &factor.part, tie.at(label), factor.labels)
            };
            best.offer(label, self.score(label) + ties.iter().map(along).sum::<f64>());
        }
    }
}

/// The scores of a factor as the variable turns through the labels from `start` on, added.
fn add_turned(w: &Weights, factor: &Factor<'_>, tie: Tie, start: u32, sums: &mut [f64]) {
    let Part { block, slots, phi } = factor.part;
    let (first, stride) = (tie.at(start), tie.stride as usize);
    if slots == Slots::Each && is_constant(phi) {
        let row = &w.as_slice()[block.at(0, first)..];
        if stride == 1 {
            sums.iter_mut().zip(row).for_each(|(sum, w)| *sum += w);
        } else {
            sums.iter_mut().zip(row.iter().step_by(stride)).for_each(|(sum, w)| *sum += w);
        }
    } else {
        (0..).zip(sums).for_each(|(k, sum)| *sum += score(w, &factor.part, first + tie.stride * k, factor.labels));
    }
}

impl Turn {
    /// The label of a variable that scores least together with labels of its factors, of those with mass: its place, itself, its
    /// score. Leaves the factors' labels in `ties`.
    fn worst(
        &mut self,
        structure: &Structure<'_>,
        v: usize,
        duals: &Duals,
        alone: &Alone<'_, '_>,
    ) -> Option<(usize, u32, f64)> {
        let (held, joints, w) = (&duals.variables[v].held, structure.joints(v), alone.w);
        let count = joints.len();
        self.least.clear();
        self.least.resize(held.len() * count, (0, f64::INFINITY));
        self.at.resize(self.at.len().max(structure.domains[v] as usize), 0);
        for (at, held) in (0..).zip(held) {
            self.at[held.0 as usize] = at;
        }
        for (j, joint) in joints.iter().enumerate() {
            let Factor { part, labels, .. } = structure.factors[joint.factor as usize];
            let table = (part.slots == Slots::Each && is_constant(part.phi)).then(|| w.of(part.block));
            for (place, &(label, mass)) in (0..).zip(&duals.factors[joint.factor as usize].held) {
                let own = structure.own(joint.number as usize, label);
                let at = self.at[own as usize] as usize;
                // Another label's place, or one of an earlier turn.
                if mass <= 0.0 || held.get(at).is_none_or(|held| held.0 != own) {
                    continue;
                }
                let score = table.map_or_else(|| score(w, &part, label, labels), |table| table[label as usize]);
                let least = &mut self.least[at * count + j];
                if score < least.1 {
                    *least = (place, score);
                }
            }
        }
        let mut worst: Option<(usize, f64)> = None;
        for (at, &(label, mass)) in held.iter().enumerate() {
            // Infinite where a factor has no mass to give.
            let score = alone.score(label) + self.least[at * count..][..count].iter().map(|least| least.1).sum::<f64>();
            if mass > 0.0 && score < worst.map_or(f64::INFINITY, |worst| worst.1) {
                worst = Some((at, score));
            }
        }
        let (at, score) = worst?;
        let from = held[at].0;
        self.ties.clear();
        for (joint, least) in joints.iter().zip(&self.least[at * count..]) {
            let (place, factor) = (least.0, joint.factor);
            let label = duals.factors[factor as usize].held[place as usize].0;
            let stride = structure.stride_at(joint.number as usize);
            let is_second = structure.is_second(*joint);
            self.ties.push(Tie { factor, place, label, base: label - stride * from, stride, is_second });
        }
        Some((at, from, score))
    }

    /// `|change of w|^2` in the factors for one unit of mass that turns.
    fn bend(&mut self, structure: &Structure<'_>, to: u32) -> f64 {
        let Self { ties, changes, .. } = self;
        changes.clear();
        for (t, tie) in (0..).zip(&*ties) {
            let Factor { part, labels, .. } = structure.factors[tie.factor as usize];
            for (label, sign) in [(tie.label, -1.0), (tie.at(to), 1.0)] {
                if let Some(slot) = part.slots.of(label as usize, labels as usize) {
                    changes.push((part.block.base, slot, sign, t));
                }
            }
        }
        // Two factors may change the same weights.
        changes.sort_unstable_by_key(|&(base, slot, _, t)| (base, slot, t));
        let phi = |t: u32| -> SparseView<'_> { structure.factors[ties[t as usize].factor as usize].part.phi };
        let mut bend = 0.0;
        for same in changes.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            for (k, one) in same.iter().enumerate() {
                bend += phi(one.3).norm2();
                for other in &same[..k] {
                    let (a, b) = (phi(one.3), phi(other.3));
                    // Of other features, what it is at most: a step may be shorter than it could be.
                    bend += 2.0
                        * if is_constant(a) && is_constant(b) {
                            one.2 * other.2
                        } else {
                            (a.norm2() * b.norm2()).sqrt()
                        };
                }
            }
        }
        bend
    }
}
