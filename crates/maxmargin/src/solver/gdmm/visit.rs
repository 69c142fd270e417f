//! A visit to an example: its variables, its factors, its multipliers.

use serde::{Deserialize, Serialize};

use super::look::{Look, add_range};
use super::ordered::{Ordered, best_in};
use super::outputs::Way;
use super::structure::{Factor, Structure, is_constant};
use super::turn::Turn;
use super::{Duals, Oracle, Phase, Run};
use crate::error::Result;
use crate::features::Block as Place;
use crate::numeric::power;
use crate::random::Random;
use crate::sparse::SparseView;
use crate::task::{Part, Slots};
use crate::weights::Weights;

/// Tables with up to so many labels are looked at as a whole.
const SMALL_TABLE: u32 = 256;

/// A multiplier below this share of U is rounding.
const NOTHING: f64 = 1e-12;

/// Rounding error of a sum of scores and messages, relative to the sum of their absolute values.
const ROUNDING: f64 = 16.0 * f64::EPSILON;

/// The power of the passes so far that a point counts for in the mean.
const LATER: i32 = 4;

/// The orders of large tables, by where they stand in w.
#[derive(Debug, Default)]
pub(super) struct Orders {
    tables: Vec<(Place, Ordered)>,
}

impl Orders {
    /// Orders the tables of these factors that are large and have none yet.
    pub(super) fn add(&mut self, structure: &Structure<'_>, w: &Weights) {
        for (f, factor) in structure.factors.iter().enumerate() {
            let Part { block, slots, phi } = factor.part;
            let is_table = factor.arity == 2 && slots == Slots::Each && is_constant(phi) && block.rows == 1;
            if is_table && factor.labels > SMALL_TABLE && self.of(block).is_none() {
                let mut domains = structure.joints_of(f).map(|(_, v)| structure.domains[v] as usize);
                let (rows, columns) = (domains.next().unwrap_or(0), domains.next().unwrap_or(0));
                self.tables.push((block, Ordered::new(rows, columns, w.of(block))));
            }
        }
    }

    /// Orders all tables anew.
    pub(super) fn refresh(&mut self, w: &Weights) {
        for (block, ordered) in &mut self.tables {
            *ordered = Ordered::new(ordered.rows(), ordered.columns(), w.of(*block));
        }
    }

    pub(super) fn of(&self, block: Place) -> Option<&Ordered> {
        self.tables.iter().find(|(own, _)| *own == block).map(|(_, ordered)| ordered)
    }

    fn of_mut(&mut self, block: Place) -> Option<&mut Ordered> {
        self.tables.iter_mut().find(|(own, _)| *own == block).map(|(_, ordered)| ordered)
    }
}

/// Labels with numbers, few of them.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(super) struct Few {
    pub(super) entries: Vec<(u32, f64)>,
}

impl Few {
    pub(super) fn add(&mut self, label: u32, value: f64) {
        match self.entries.iter_mut().find(|entry| entry.0 == label) {
            Some(entry) => entry.1 += value,
            None => self.entries.push((label, value)),
        }
    }

    pub(super) fn get(&self, label: u32) -> f64 {
        self.entries.iter().find(|entry| entry.0 == label).map_or(0.0, |entry| entry.1)
    }

    fn has(&self, label: u32) -> bool {
        self.entries.iter().any(|entry| entry.0 == label)
    }

    /// The largest absolute value.
    fn largest(&self) -> f64 {
        self.entries.iter().fold(0.0, |most, entry| most.max(entry.1.abs()))
    }
}

/// What a visit needs, kept from one to the next.
#[derive(Debug, Default)]
pub(super) struct VisitScratch<'a> {
    pub(super) structure: Structure<'a>,
    pub(super) parts: Vec<Part<'a>>,
    /// By variable of the structure.
    pub(super) truth: Vec<u32>,
    /// Messages to a variable.
    pub(super) message: Few,
    /// Messages to each variable of a factor.
    messages: Vec<Few>,
    pub(super) look: Look,
    pub(super) turn: Turn,
    /// Scores of all labels.
    pub(super) range: Vec<f64>,
    scores: Vec<f64>,
    before: Vec<(u32, f64)>,
    /// Of weights, by where they stand.
    pub(super) changes: Vec<(usize, f64)>,
    pub(super) way: Way,
}

/// `<w, phi in the slot of a label>`
pub(super) fn score(w: &Weights, part: &Part<'_>, label: u32, labels: u32) -> f64 {
    let slot = part.slots.of(label as usize, labels as usize);
    slot.map_or(0.0, |slot| w.score(part.block, slot, part.phi))
}

/// `|phi|^2` of a variable's label.
pub(super) fn norm2(parts: &[Part<'_>], label: u32, labels: u32) -> f64 {
    let has = |part: &&Part<'_>| part.slots.of(label as usize, labels as usize).is_some();
    parts.iter().filter(has).map(|part| part.phi.norm2()).sum()
}

/// `M_jf b_f - b_j` of a joint, added.
pub(super) fn add_difference(
    duals: &Duals,
    structure: &Structure<'_>,
    f: usize,
    (joint, v): (usize, usize),
    sum: &mut Few,
) {
    let has_mass = |held: &&(u32, f64)| held.1 > 0.0;
    for &(label, mass) in duals.factors[f].held.iter().filter(has_mass) {
        sum.add(structure.own(joint, label), mass);
    }
    for &(label, mass) in duals.variables[v].held.iter().filter(has_mass) {
        sum.add(label, -mass);
    }
}

/// `M_jf b_f - b_j + lambda_jf` of a joint, added.
fn add_message(duals: &Duals, structure: &Structure<'_>, f: usize, (joint, v): (usize, usize), sum: &mut Few) {
    add_difference(duals, structure, f, (joint, v), sum);
    for &(label, multiplier) in &duals.multipliers[joint].entries {
        sum.add(label, multiplier);
    }
}

/// Messages from all factors to variable v.
fn to_variable(duals: &Duals, structure: &Structure<'_>, v: usize, sum: &mut Few) {
    sum.entries.clear();
    for joint in structure.joints(v) {
        add_message(duals, structure, joint.factor as usize, (joint.number as usize, v), sum);
    }
}

/// Messages from all factors to variable v, each rounded by itself as in [`to_factor`]: what they add to the variable and
/// take from the factors is the same.
fn to_variable_as_rounded(duals: &Duals, structure: &Structure<'_>, v: usize, one: &mut Few, sum: &mut Few) {
    sum.entries.clear();
    for joint in structure.joints(v) {
        one.entries.clear();
        add_message(duals, structure, joint.factor as usize, (joint.number as usize, v), one);
        one.entries.iter().for_each(|&(label, value)| sum.add(label, value));
    }
}

/// Messages from factor f to each of its variables.
fn to_factor(duals: &Duals, structure: &Structure<'_>, f: usize, sums: &mut Vec<Few>) {
    sums.resize(sums.len().max(structure.factors[f].arity as usize), Few::default());
    for (joint, sum) in structure.joints_of(f).zip(sums) {
        sum.entries.clear();
        add_message(duals, structure, f, joint, sum);
    }
}

/// The scores of all labels of factor f, less rho times their messages.
fn table_of(w: &Weights, structure: &Structure<'_>, f: usize, messages: &[Few], rho: f64, range: &mut Vec<f64>) {
    let factor = structure.factors[f];
    range.clear();
    range.resize(factor.labels as usize, 0.0);
    add_range(w, &factor.part, factor.labels, 0, range);
    for ((joint, _), message) in structure.joints_of(f).zip(messages) {
        for &(own, value) in &message.entries {
            structure.labels_with(joint, own, range.len()).for_each(|label| range[label] -= rho * value);
        }
    }
}

impl<'p> Run<'p, '_> {
    /// The graph of example i, and the truth, as its dual variables have it.
    pub(super) fn fill(&self, i: usize, duals: &Duals, scratch: &mut VisitScratch<'p>) {
        let VisitScratch { structure, truth, .. } = scratch;
        let x = self.problem.place(i);
        self.factored.truth_labels(x, truth);
        match self.sets() {
            None => structure.fill(self.factored, x),
            Some(sets) => {
                structure.fill_among(self.factored, sets, x, (&duals.members, &duals.links));
                *truth = duals.members.iter().map(|&label| truth[label as usize]).collect();
            }
        }
    }

    pub(super) fn visit(&mut self, i: usize, scratch: &mut VisitScratch<'p>) {
        let (x, cap) = (self.problem.place(i), self.problem.share(i));
        let start = Random::new(i as u64).below(usize::from(u16::MAX));
        let mut duals = std::mem::take(&mut self.duals[i]);
        self.fill(i, &duals, scratch);
        if let Some(sets) = self.sets() {
            self.renew_members(sets, (i, start, cap), &mut duals, scratch);
            self.fill(i, &duals, scratch);
        }
        for v in 0..scratch.structure.domains.len() {
            scratch.parts.clear();
            let (parts, variable) = (&mut scratch.parts, duals.members.get(v).map_or(v, |&member| member as usize));
            self.factored.unary(x, variable, &mut |part| parts.push(part));
            if self.takes_turns() {
                self.ask_for_next(v + 1, &duals, &scratch.structure);
                self.turn(v, start + v, cap, &mut duals, scratch);
            }
            if self.position.phase == Phase::Blocks {
                self.visit_variable(v, start + v, cap, &mut duals, scratch);
            }
        }
        if self.position.phase == Phase::Blocks {
            for f in 0..scratch.structure.factors.len() {
                self.visit_factor(f, cap, &mut duals, scratch);
            }
            self.update_multipliers(cap, &mut duals, scratch);
        }
        self.duals[i] = duals;
        self.position.visits += 1.0;
        if let Some(average) = &mut self.average {
            // Later points count for more: those at the beginning are far behind.
            average.count(power(self.position.visits / self.problem.len() as f64, LATER), 1.0);
        }
    }

    /// `anywhere`: a number that tells at which part of the labels the variable begins.
    fn visit_variable(
        &mut self,
        v: usize,
        anywhere: usize,
        cap: f64,
        duals: &mut Duals,
        scratch: &mut VisitScratch<'p>,
    ) {
        let labels = scratch.structure.domains[v];
        let (start, len) = self.look_at(labels, anywhere, scratch);
        let VisitScratch { structure, parts, truth, message, look, scores, before, .. } = scratch;
        to_variable(duals, structure, v, message);
        let rho = self.rho;
        let cost = self.cost(truth[v]);
        let block = &mut duals.variables[v];
        // Of a label that may be outside of the look.
        let at = |w: &Weights, label: u32| {
            let own = look.score(label);
            let own = own.unwrap_or_else(|| parts.iter().map(|part| score(w, part, label, labels)).sum());
            own + if label == truth[v] { 0.0 } else { cost } + rho * message.get(label)
        };
        scores.clear();
        scores.extend(block.held.iter().map(|held| at(&self.w, held.0)));
        // Labels without messages are compared by their scores alone, the others one by one.
        let is_near = |label: u32| (start..start + len).contains(&(label as usize));
        let is_other = |label: u32| !is_near(label) || block.place(label).is_some() || message.has(label);
        let from = if len < labels as usize { start as u32 } else { self.anywhere(labels, anywhere) };
        let mut best = look.best(labels, from, is_other).map(|(label, score)| (label, score + cost));
        for &(label, value) in &message.entries {
            if (is_near(label) || value > 0.0) && block.place(label).is_none() {
                let score = at(&self.w, label);
                if is_better(best, score) {
                    best = Some((label, score));
                }
            }
        }
        if let Some((label, score)) = best
            && scores.iter().all(|&held| score > held)
        {
            block.held.push((label, 0.0));
            scores.push(score);
        }
        let ties = rho * structure.joints(v).len() as f64;
        let (on, off) = (norm2(parts, labels - 1, labels), norm2(parts, 0, labels));
        let curvature = |a: u32, b: u32| if a == b { ties + if a == 0 { off } else { on } } else { 0.0 };
        before.clone_from(&block.held);
        block.solve(scores, cap, curvature);
        for (&(label, old), &(_, new)) in before.iter().zip(&block.held).filter(|(old, new)| old.1 != new.1) {
            self.step_variable(parts, (label, labels), truth[v], new - old);
        }
        block.forget(scores);
    }

    /// Looks at the labels of a variable whose parts are filled in; returns which part of them that is, unless rows are short.
    pub(super) fn look_at(&self, labels: u32, anywhere: usize, scratch: &mut VisitScratch<'p>) -> (usize, usize) {
        let VisitScratch { parts, look, .. } = scratch;
        let near = self.part(labels as usize, anywhere);
        match self.w.short_rows() {
            Some(rows) if self.solver.oracle == Oracle::Sublinear => look.at_rows(&self.w, rows, parts, labels),
            Some(_) => look.at_range(&self.w, parts, labels, (0, labels as usize)),
            None => look.at_range(&self.w, parts, labels, near),
        }
        near
    }

    /// The labels that a variable looks at in this pass: where they start, and how many. In as many passes as there are parts
    /// it looks at all of them, beginning anywhere.
    pub(super) fn part(&self, labels: usize, anywhere: usize) -> (usize, usize) {
        let parts = self.parts_of(labels);
        let part = (anywhere + self.position.passes) % parts;
        let (start, end) = (labels * part / parts, labels * (part + 1) / parts);
        (start, end - start)
    }

    /// The first of labels that all score the same: with short rows another one for each variable and pass.
    pub(super) fn anywhere(&self, labels: u32, anywhere: usize) -> u32 {
        if self.w.short_rows().is_none() {
            return 0;
        }
        let mut random = Random::new((anywhere as u64) << 32 ^ self.position.passes as u64);
        random.below(labels as usize) as u32
    }

    fn visit_factor(&mut self, f: usize, cap: f64, duals: &mut Duals, scratch: &mut VisitScratch<'p>) {
        let VisitScratch { structure, messages, range, scores, before, .. } = scratch;
        to_factor(duals, structure, f, messages);
        let factor = structure.factors[f];
        let (rho, Part { block: place, slots, phi }) = (self.rho, factor.part);
        let messages = &messages[..factor.arity as usize];
        let joints = || structure.joints_of(f).zip(messages);
        let against = |label: u32| -> f64 {
            joints().map(|((joint, _), message)| message.get(structure.own(joint, label))).sum()
        };
        let block = &mut duals.factors[f];
        let at = |w: &Weights, label: u32| score(w, &factor.part, label, factor.labels) - rho * against(label);
        scores.clear();
        scores.extend(block.held.iter().map(|held| at(&self.w, held.0)));
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let best = if let Some(ordered) = self.orders.of(place) {
            best_pair(ordered, self.w.of(place), rho, messages, |label| block.place(label).is_some())
        } else {
            table_of(&self.w, structure, f, messages, rho, range);
            let mut best = None;
            for (label, &score) in (0..).zip(&*range) {
                if is_better(best, score) && block.place(label).is_none() {
                    best = Some((label, score));
                }
            }
            best
        };
        if let Some((label, score)) = best.filter(|&(_, score)| score > most) {
            block.held.push((label, 0.0));
            scores.push(score);
        }
        let norm2 = phi.norm2();
        let curvature = |a: u32, b: u32| {
            let shared =
                structure.joints_of(f).filter(|&(joint, _)| structure.own(joint, a) == structure.own(joint, b));
            let own = if a == b && slots.of(a as usize, factor.labels as usize).is_some() { norm2 } else { 0.0 };
            own + rho * shared.count() as f64
        };
        before.clone_from(&block.held);
        block.solve(scores, cap, curvature);
        for (&(label, old), &(_, new)) in before.iter().zip(&block.held).filter(|(old, new)| old.1 != new.1) {
            self.step_factor(&factor, label, new - old);
        }
        block.forget(scores);
    }

    /// More mass on a label of a variable.
    pub(super) fn step_variable(&mut self, parts: &[Part<'_>], (label, labels): (u32, u32), truth: u32, change: f64) {
        self.position.cost += change * self.loss(truth, label);
        for part in parts {
            if let Some(slot) = part.slots.of(label as usize, labels as usize) {
                self.subtract(part.block, slot, part.phi, change);
            }
        }
    }

    /// More mass on a label of a factor.
    pub(super) fn step_factor(&mut self, factor: &Factor<'_>, label: u32, change: f64) {
        let Part { block, slots, phi } = factor.part;
        let Some(slot) = slots.of(label as usize, factor.labels as usize) else { return };
        self.subtract(block, slot, phi, change);
        if let Some(ordered) = self.orders.of_mut(block) {
            let columns = ordered.columns();
            ordered.changed(slot as usize / columns, slot as usize % columns, self.w.of(block));
        }
    }

    /// Asks for what a step on the label of a factor with a large table changes, and what searches along its lines read.
    pub(super) fn ask_for(&self, factor: &Factor<'_>, label: u32) {
        let Some((ordered, slot)) = self.ordered_slot(factor, label) else { return };
        let (Part { block, phi, .. }, columns) = (factor.part, ordered.columns());
        ordered.ask_for(slot as usize / columns, slot as usize % columns);
        self.w.ask_for(block, slot, phi);
        self.average.iter().for_each(|average| average.ask_for(block, slot, phi));
    }

    /// The same where the score of the label will fall, which may have been the highest of its blocks.
    pub(super) fn ask_for_fall(&self, factor: &Factor<'_>, label: u32) {
        self.ask_for(factor, label);
        let Some((ordered, slot)) = self.ordered_slot(factor, label) else { return };
        let columns = ordered.columns();
        ordered.ask_for_blocks(slot as usize / columns, slot as usize % columns, self.w.of(factor.part.block));
    }

    /// The slot of a label, and the orders of its table, where it has any.
    fn ordered_slot(&self, factor: &Factor<'_>, label: u32) -> Option<(&Ordered, u32)> {
        self.orders.of(factor.part.block).zip(factor.part.slots.of(label as usize, factor.labels as usize))
    }

    /// The same for all labels with mass of the factors of a variable, whose turn comes soon, if there is one.
    fn ask_for_next(&self, v: usize, duals: &Duals, structure: &Structure<'_>) {
        if v >= structure.domains.len() {
            return;
        }
        for joint in structure.joints(v) {
            let (factor, held) =
                (&structure.factors[joint.factor as usize], &duals.factors[joint.factor as usize].held);
            held.iter().filter(|held| held.1 > 0.0).for_each(|held| self.ask_for(factor, held.0));
        }
    }

    /// What a wrong label costs where the truth is this one.
    pub(super) fn cost(&self, truth: u32) -> f64 {
        self.factored.cost(truth) * self.problem.formulation().loss_scale
    }

    /// What a label costs where the truth is this one.
    pub(super) fn loss(&self, truth: u32, label: u32) -> f64 {
        if label == truth { 0.0 } else { self.cost(truth) }
    }

    pub(super) fn update_multipliers(&mut self, cap: f64, duals: &mut Duals, scratch: &mut VisitScratch<'p>) {
        let VisitScratch { structure, message: difference, .. } = scratch;
        let eta = self.solver.eta * self.position.step.share();
        for f in 0..structure.factors.len() {
            for (joint, v) in structure.joints_of(f) {
                difference.entries.clear();
                add_difference(duals, structure, f, (joint, v), difference);
                self.position.disagreement += difference.entries.iter().map(|entry| entry.1.abs()).sum::<f64>();
                if eta == 0.0 {
                    continue;
                }
                let own = &mut duals.multipliers[joint];
                difference.entries.iter().for_each(|&(label, value)| own.add(label, eta * value));
                own.entries.retain(|entry| entry.1.abs() > NOTHING * cap);
            }
        }
    }

    /// `w -= change * phi` in a slot.
    pub(super) fn subtract(&mut self, block: Place, slot: u32, phi: SparseView<'_>, change: f64) {
        self.position.norm2 += self.w.add(block, slot, phi, -change);
        if let Some(average) = &mut self.average {
            average.stepped(block, slot, phi, -change);
        }
    }

    /// Leaves the scores of all labels of a variable in `range`, with its cost and its messages. The structure is filled.
    pub(super) fn score_variable(&self, i: usize, v: usize, scratch: &mut VisitScratch<'p>) {
        to_variable(&self.duals[i], &scratch.structure, v, &mut scratch.message);
        self.score_with_message(i, v, scratch);
    }

    /// The same with the messages that are in `message`.
    fn score_with_message(&self, i: usize, v: usize, scratch: &mut VisitScratch<'p>) {
        let VisitScratch { structure, parts, truth, message, range, .. } = scratch;
        let (x, labels) = (self.problem.place(i), structure.domains[v]);
        range.clear();
        range.resize(labels as usize, self.cost(truth[v]));
        range[truth[v] as usize] = 0.0;
        parts.clear();
        self.factored.unary(x, v, &mut |part| parts.push(part));
        for part in &*parts {
            add_range(&self.w, part, labels, 0, range);
        }
        message.entries.iter().for_each(|&(label, value)| range[label as usize] += self.rho * value);
    }

    /// The same of a factor.
    pub(super) fn score_factor(&self, i: usize, f: usize, scratch: &mut VisitScratch<'p>) {
        let VisitScratch { structure, messages, range, .. } = scratch;
        to_factor(&self.duals[i], structure, f, messages);
        table_of(&self.w, structure, f, messages, self.rho, range);
    }

    /// `U_i` times an upper bound on the loss of example i, by the messages. The bound includes the rounding error of the
    /// sums: messages may be far larger than the bound, in which they cancel.
    pub(super) fn bound_of(&self, i: usize, scratch: &mut VisitScratch<'p>) -> Result<f64> {
        let problem = self.problem;
        self.fill(i, &self.duals[i], scratch);
        let mut sum = -problem.truth_score(i, &self.w)?;
        let mut size = sum.abs();
        let largest = |range: &[f64]| range.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut one = Few::default();
        for v in 0..scratch.structure.domains.len() {
            let VisitScratch { structure, message, .. } = &mut *scratch;
            to_variable_as_rounded(&self.duals[i], structure, v, &mut one, message);
            self.score_with_message(i, v, scratch);
            let most = largest(&scratch.range);
            sum += most;
            size += most.abs();
        }
        for f in 0..scratch.structure.factors.len() {
            let Factor { part, arity, .. } = scratch.structure.factors[f];
            let most = if let Some(ordered) = self.orders.of(part.block) {
                let VisitScratch { structure, messages, .. } = &mut *scratch;
                to_factor(&self.duals[i], structure, f, messages);
                let (table, messages) = (self.w.of(part.block), &messages[..arity as usize]);
                best_pair(ordered, table, self.rho, messages, |_| false).expect("a table has labels").1
            } else {
                self.score_factor(i, f, scratch);
                largest(&scratch.range)
            };
            // Each message is added to the scores of its variable, and subtracted from those of its factor.
            let of_messages: f64 = scratch.messages[..arity as usize].iter().map(Few::largest).sum();
            sum += most;
            size += most.abs() + 2.0 * self.rho * of_messages;
        }
        sum += ROUNDING * size;
        Ok(problem.share(i) * sum)
    }
}

/// Is a score higher than that of the best label so far? Ties go to the earlier one.
pub(super) fn is_better(best: Option<(u32, f64)>, score: f64) -> bool {
    best.is_none_or(|(_, most)| score > most)
}

/// The best label of a table over two variables, less rho times their messages, of those that are not held: both labels have
/// messages, or one of them, or none.
fn best_pair(
    ordered: &Ordered,
    table: &[f64],
    rho: f64,
    messages: &[Few],
    is_held: impl Fn(u32) -> bool,
) -> Option<(u32, f64)> {
    let [first, second] = messages else { unreachable!("a table over two variables") };
    let columns = ordered.columns() as u32;
    let mut best = None;
    let mut offer = |row: u32, column: u32, against: f64| {
        let label = row * columns + column;
        let score = table[label as usize] - rho * against;
        if is_better(best, score) && !is_held(label) {
            best = Some((label, score));
        }
    };
    for &(row, a) in &first.entries {
        for &(column, b) in &second.entries {
            offer(row, column, a + b);
        }
        // Where that label is held the others of its row score no more, and are of no use.
        if let Some((column, _)) = best_in(ordered.row(row as usize, table), f64::NEG_INFINITY, |c| second.has(c)) {
            offer(row, column, a);
        }
    }
    for &(column, b) in &second.entries {
        if let Some((row, _)) = best_in(ordered.column(column as usize), f64::NEG_INFINITY, |r| first.has(r)) {
            offer(row, column, b);
        }
    }
    if let Some((row, column)) = ordered.anywhere(table, |r| first.has(r), |c| second.has(c)) {
        offer(row, column, 0.0);
    }
    best
}
