//! The dual with a block for each example, solved block by block on w itself.
//!
//! ```text
//! max  D = sum a rhs - 1/2 |w|^2 - 1/2 sum_i r_i S_i^2,   w = sum a lhs,   a >= 0,   S_i = sum of i's own a's
//! linear slack: S_i <= U_i = C c_i / n,  r_i = 0;   quadratic slack: no cap,  r_i = 1 / U_i
//! ```
//!
//! Outputs are kept, not left sides. A block is visited at the current w: its outputs are scored, it is solved with the inner
//! products at hand ([`block`]), and w moves by what changed. No visit touches more of w than the parts of the example's own
//! outputs.

use super::average::is_sound_offset;
use super::course::Rederived;
use super::reported::DualPoint;
use super::state::{Reader, Writer, check, check_point, is_sound};
use crate::error::Result;
use crate::features::{Accumulate, Collect, Lookup, Prefetch, ScoreIn, Sink};
use crate::parallel::Pool;
use crate::problem::{Output, Penalty, Problem};
use crate::sparse::dot;
use crate::weights::Weights;

mod block;

pub(super) use block::{Block, Held, Limits};

/// A visit solves its block until this share of the gap is left: the next visit will find another one anyway.
const LEFT: f64 = 0.1;

/// What a visit has found and done.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Visit {
    /// The block's gap before the visit, as far as its outputs tell.
    pub(super) gap: f64,
    /// By how much the dual rose.
    pub(super) rise: f64,
    /// In looks: one look is the score of one output. An oracle call is not in it.
    pub(super) work: f64,
}

/// The dual variables, and w.
pub(super) struct Blocks<'p, 'a> {
    problem: &'p Problem<'a>,
    pool: &'p Pool,
    own: Vec<Block<Output>>,
    pub(super) w: Weights,
    values: Vec<f64>,
    before: Vec<f64>,
    row: Vec<f64>,
    /// The left side whose inner products are computed.
    lhs: Lookup,
    /// With a kernel: the step of w.
    step: Collect,
}

impl<'p, 'a> Blocks<'p, 'a> {
    pub(super) fn new(problem: &'p Problem<'a>, pool: &'p Pool) -> Self {
        Self {
            problem,
            pool,
            own: (0..problem.len()).map(|_| Block::default()).collect(),
            w: problem.zero(),
            values: Vec::new(),
            before: Vec::new(),
            row: Vec::new(),
            lhs: Lookup::default(),
            step: Collect::default(),
        }
    }

    /// Writes what the next visit starts from.
    pub(super) fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.own.iter().map(|block| &block.held).collect::<Vec<_>>())?;
        out.put(&self.w)
    }

    /// Reads it again. Inner products are computed anew, in the same bits.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let problem = self.problem;
        let blocks: Vec<Vec<Held<Output>>> = reader.take()?;
        check(blocks.len() == problem.len(), "blocks")?;
        for (i, held) in blocks.into_iter().enumerate() {
            let sum: f64 = held.iter().map(|held| held.alpha).sum();
            check(held.iter().all(|held| held.alpha >= 0.0) && is_sound(sum), "dual variables")?;
            for Held { mut y, term, alpha, used, offset } in held {
                check(problem.restore(i, &mut y) && !self.has(i, &y), "outputs")?;
                check(term == problem.term(problem.loss(i, &y)), "terms")?;
                self.add(i, y, used)?;
                check(is_sound_offset(offset), "the mean")?;
                let added = self.own[i].held.last_mut().expect("what was added");
                (added.alpha, added.offset) = (alpha, offset);
            }
        }
        self.w = reader.take()?;
        check_point(&self.w, problem)
    }

    /// Checks a state that came from outside: the dual variables are feasible, and w is the vector that they make. Returns D
    /// at that vector.
    ///
    /// `growth`: what C has been multiplied by since the state was saved.
    pub(super) fn rederive(&self, growth: f64) -> Result<Rederived> {
        /// Relative errors that running sums may have, of w itself and of the terms that cancel in it.
        const ROUNDING: f64 = 1e-9;
        const ROUNDING_OF_TERMS: f64 = 1e-12;
        let (mut linear, mut mass) = (0.0, 0.0);
        for (i, block) in self.own.iter().enumerate().filter(|(_, block)| !block.held.is_empty()) {
            let limits = self.limits(i);
            check(block.sum() <= limits.cap / growth * (1.0 + ROUNDING), "dual variables")?;
            linear += block.rhs() - 0.5 * limits.ridge * block.sum() * block.sum();
            mass += block.mass();
        }
        let mut w = vec![0.0; self.w.len()];
        self.sum(&mut w, |held| held.alpha)?;
        let saved = if self.w.has_coefficients() { self.w.coefficients() } else { self.w.as_slice() };
        let largest = w.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        let error = ROUNDING * largest + ROUNDING_OF_TERMS * mass;
        check(w.iter().zip(saved).all(|(a, b)| (a - b).abs() <= error), "weights")?;
        // With a kernel D is computed anew at the end of each run.
        let norm2 = if self.w.has_coefficients() { self.w.norm2() } else { dot(&w, &w) };
        let scale = linear.abs() + norm2;
        Ok(Rederived { dual: linear - 0.5 * norm2, scale, from_examples: true })
    }

    /// C has grown by this factor (or shrunk): of the multiples of a that are feasible for the new C the best.
    pub(super) fn rescale(&mut self, growth: f64) -> Result<()> {
        let (mut linear, mut square) = (0.0, self.w.norm2());
        for (i, block) in self.own.iter().enumerate().filter(|(_, block)| !block.held.is_empty()) {
            linear += block.rhs();
            square += self.limits(i).ridge * block.sum() * block.sum();
        }
        let best = linear / square;
        // 0 / 0 where all is zero.
        let factor = if self.is_quadratic() || best < growth { best } else { growth };
        if factor.is_finite() {
            self.own.iter_mut().flat_map(|block| &mut block.held).for_each(|held| held.alpha *= factor.max(0.0));
        }
        self.rebuild()
    }

    fn is_quadratic(&self) -> bool {
        self.problem.formulation().penalty == Penalty::Quadratic
    }

    /// Cap and ridge of example i; a cap of 0 where it has no weight.
    pub(super) fn limits(&self, i: usize) -> Limits {
        let share = self.problem.share(i);
        if self.is_quadratic() && share > 0.0 {
            Limits { cap: f64::INFINITY, ridge: 1.0 / share }
        } else {
            Limits { cap: share, ridge: 0.0 }
        }
    }

    /// What a slack of `h` costs in P: `U_i h`, or `U_i h^2 / 2` where slack is quadratic.
    pub(super) fn cost(&self, i: usize, h: f64) -> f64 {
        self.problem.share(i) * self.problem.slack(h)
    }

    /// The outputs that example i has.
    pub(super) fn of(&self, i: usize) -> &Block<Output> {
        &self.own[i]
    }

    /// Does example i have this output?
    pub(super) fn has(&self, i: usize, y: &Output) -> bool {
        self.own[i].held.iter().any(|held| held.y == *y)
    }

    /// Violations at the point `at` of the outputs that example i has, into `values`. Returns the largest, 0 where there is
    /// none.
    pub(super) fn look(&self, i: usize, at: &Weights, values: &mut Vec<f64>) -> Result<f64> {
        let problem = self.problem;
        let mut worst: f64 = 0.0;
        values.clear();
        for held in &self.own[i].held {
            let v = held.term.violation(problem.margin(i, at, &held.y)?);
            worst = worst.max(v);
            values.push(v);
        }
        Ok(worst)
    }

    /// Example i's share of the gap at w, where its H is `h`.
    pub(super) fn gap_at(&mut self, i: usize, h: f64) -> Result<f64> {
        let limits = self.limits(i);
        if limits.cap == 0.0 {
            return Ok(0.0);
        }
        let mut values = std::mem::take(&mut self.values);
        self.look(i, &self.w, &mut values)?;
        let gap = self.own[i].gap(&values, h, limits);
        self.values = values;
        Ok(gap)
    }

    /// Visits block i. `found`: what the oracle found, at this w or shortly before, and what it must be worth: it is taken in
    /// where it needs more slack by that than the outputs that the example has. `now` marks the outputs that are of use.
    pub(super) fn visit(&mut self, i: usize, found: Option<(&Output, f64)>, now: u32) -> Result<Visit> {
        let limits = self.limits(i);
        if limits.cap == 0.0 || (found.is_none() && self.own[i].held.is_empty()) {
            return Ok(Visit::default());
        }
        let mut values = std::mem::take(&mut self.values);
        let worst = self.look(i, &self.w, &mut values)?;
        let mut work = 1.0 + values.len() as f64;
        if let Some((y, worth)) = found {
            let v = self.problem.violation(i, &self.w, y)?;
            work += 1.0;
            // An output that the example has gets the same value again, so it is not taken twice.
            if v > worst && self.problem.slack(v) - self.problem.slack(worst) > worth {
                self.add(i, y.clone(), now)?;
                values.push(v);
                work += 4.0 + values.len() as f64;
            }
        }
        let block = &mut self.own[i];
        let gap = block.gap(&values, 0.0, limits);
        self.before.clear();
        self.before.extend(block.held.iter().map(|held| held.alpha));
        let rise = block.solve(&mut values, limits, gap, LEFT, now);
        self.values = values;
        if rise > 0.0 {
            let changes = Changes { problem: self.problem, i, held: &self.own[i].held, before: &self.before };
            work += 1.0 + changes.iter().count() as f64;
            match self.problem.metric() {
                None => changes.emit(&mut Accumulate { sum: self.w.as_mut_slice(), factor: 1.0 })?,
                Some(metric) => {
                    self.step.clear();
                    changes.emit(&mut self.step)?;
                    metric.add_to(self.step.merged(), &mut self.w, self.pool);
                }
            }
        }
        Ok(Visit { gap, rise, work })
    }

    /// Asks for what a visit of block i will read, unless w is small enough to be near at all times.
    pub(super) fn prefetch(&self, i: usize) -> Result<()> {
        /// Numbers that a core's second cache holds, roughly.
        const NEAR: usize = 1 << 16;
        if self.w.len() <= NEAR || self.problem.metric().is_some() {
            return Ok(());
        }
        let (problem, mut sink) = (self.problem, Prefetch { w: self.w.as_slice() });
        self.own[i].held.iter().try_for_each(|held| problem.emit(i, &held.y, 1.0, &mut sink))
    }

    /// With a kernel: makes the rows ready that steps on these examples add to w, many together.
    pub(super) fn prepare(&self, examples: impl Iterator<Item = usize>) -> Result<()> {
        let Some(metric) = self.problem.metric() else { return Ok(()) };
        metric.gram().prepare(&self.problem.atoms(metric, examples)?, self.pool);
        Ok(())
    }

    /// Takes in an output with weight 0.
    pub(super) fn add(&mut self, i: usize, y: Output, now: u32) -> Result<()> {
        let problem = self.problem;
        let term = problem.term(problem.loss(i, &y));
        debug_assert!(!self.has(i, &y), "an output that the example has");
        self.row.clear();
        let earlier = self.own[i].held.iter().map(|held| (&held.y, held.term.factor));
        let outputs = earlier.chain([(&y, term.factor)]);
        if let Some(metric) = problem.metric() {
            let lhs = collected(problem, i, &y, term.factor)?;
            for (other, factor) in outputs {
                self.row.push(metric.inner(&lhs, &collected(problem, i, other, factor)?));
            }
        } else {
            self.lhs.clear();
            problem.emit(i, &y, term.factor, &mut self.lhs)?;
            for (other, factor) in outputs {
                let mut sink = ScoreIn { lookup: &self.lhs, total: 0.0 };
                problem.emit(i, other, 1.0, &mut sink)?;
                self.row.push(factor * sink.total);
            }
        }
        self.own[i].push(Held::new(y, term, now), &self.row);
        Ok(())
    }

    /// D, a lower bound of P.
    pub(super) fn value(&self) -> f64 {
        let mut value = -0.5 * self.w.norm2();
        for (i, block) in self.own.iter().enumerate().filter(|(_, block)| !block.held.is_empty()) {
            value += block.rhs() - 0.5 * self.limits(i).ridge * block.sum() * block.sum();
        }
        value
    }

    /// With a kernel: the point of the dual, w computed anew. Without one D is the value at w as it is.
    pub(super) fn dual_point(&self) -> Result<Option<DualPoint>> {
        if self.problem.metric().is_none() {
            return Ok(None);
        }
        let (mut w, mut linear, mut sum) = (vec![0.0; self.w.len()], 0.0, 0.0);
        self.sum(&mut w, |held| held.alpha)?;
        for (i, block) in self.own.iter().enumerate().filter(|(_, block)| !block.held.is_empty()) {
            linear += block.rhs() - 0.5 * self.limits(i).ridge * block.sum() * block.sum();
            sum += block.sum();
        }
        Ok(Some(DualPoint { w, linear, sum }))
    }

    /// `w = sum a lhs` from scratch: after many steps the running sum has drifted.
    pub(super) fn rebuild(&mut self) -> Result<()> {
        self.go_to(|held| held.alpha)
    }

    /// Makes w the point `sum_j a_j lhs_j` of these weights, until it is rebuilt.
    pub(super) fn go_to(&mut self, weight: impl Fn(&Held<Output>) -> f64) -> Result<()> {
        let mut w = std::mem::take(&mut self.w);
        let (dense, coefficients) = w.both_mut();
        let done = self.sum(coefficients.unwrap_or(dense), weight);
        if let Some(metric) = self.problem.metric() {
            metric.refresh(&mut w, self.pool);
        }
        self.w = w;
        done
    }

    /// `sum_j a_j lhs_j` of these weights, into `sum`.
    pub(super) fn sum(&self, sum: &mut [f64], weight: impl Fn(&Held<Output>) -> f64) -> Result<()> {
        sum.fill(0.0);
        let mut sink = Accumulate { sum, factor: 1.0 };
        for (i, block) in self.own.iter().enumerate() {
            for held in &block.held {
                let weight = weight(held);
                if weight > 0.0 {
                    self.problem.emit(i, &held.y, weight * held.term.factor, &mut sink)?;
                }
            }
        }
        Ok(())
    }

    /// After a visit of block i that raised the dual: the mean remembers its steps, each with what A was before it.
    pub(super) fn remember(&mut self, i: usize, mass: f64) {
        for (held, before) in self.own[i].held.iter_mut().zip(&self.before) {
            held.offset += mass * (held.alpha - before);
        }
    }

    /// Multiplies all that the mean remembers.
    pub(super) fn scale_offsets(&mut self, factor: f64) {
        self.own.iter_mut().flat_map(|block| &mut block.held).for_each(|held| held.offset *= factor);
    }

    /// Number of outputs, and of those with weight.
    pub(super) fn count(&self) -> (usize, usize) {
        let held = self.own.iter().flat_map(|block| &block.held);
        held.fold((0, 0), |(all, active), held| (all + 1, active + usize::from(held.alpha > 0.0)))
    }

    /// Forgets outputs without weight that were last of use before `since`, unless they are needed still: asked with the
    /// number of the example.
    pub(super) fn drop_idle(&mut self, since: u32, is_needed: impl Fn(usize, &Held<Output>) -> bool) {
        for (i, block) in self.own.iter_mut().enumerate() {
            block.drop_idle(since, |held| is_needed(i, held));
        }
    }
}

/// `factor * dpsi_i(y)`, coordinates ascending.
fn collected(problem: &Problem<'_>, i: usize, y: &Output, factor: f64) -> Result<Vec<(u64, f64)>> {
    let mut sum = Collect::default();
    problem.emit(i, y, factor, &mut sum)?;
    Ok(sum.merged().to_vec())
}

/// What a visit has changed in a block.
struct Changes<'c, 'a> {
    problem: &'c Problem<'a>,
    i: usize,
    held: &'c [Held<Output>],
    before: &'c [f64],
}

impl Changes<'_, '_> {
    /// The outputs whose weights have changed, and by how much.
    fn iter(&self) -> impl Iterator<Item = (&Held<Output>, f64)> {
        let changes = self.held.iter().zip(self.before).map(|(held, before)| (held, held.alpha - before));
        changes.filter(|(_, change)| *change != 0.0)
    }

    /// The change of w.
    fn emit(&self, sink: &mut impl Sink) -> Result<()> {
        self.iter().try_for_each(|(held, change)| self.problem.emit(self.i, &held.y, change * held.term.factor, sink))
    }
}
