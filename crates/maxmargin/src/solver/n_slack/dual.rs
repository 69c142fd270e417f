//! The dual with one group per example, solved block by block on w itself.
//!
//! ```text
//! max  sum a rhs - 1/2 |w|^2 - 1/2 sum_i r_i S_i^2,   w = sum a lhs,   a >= 0,   S_i = sum of i's own a's
//! linear slack: S_i <= C c_i / n,  r_i = 0;   quadratic slack: no cap,  r_i = n / (C c_i)
//! ```
//!
//! Two numbers, a cap and a ridge, tell the penalties apart. A block step moves weight between the two of an
//! example's cuts (or a cut and the unused rest of the cap) whose gradients differ most.

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::features::{Accumulate, Lookup, ScoreIn};
use crate::problem::{OracleScratch, Penalty, Problem, Term};
use crate::solver::random::Random;
use crate::solver::state::{Reader, Writer, check, check_weights, is_sound};
use crate::sparse::dot;
use crate::task::Task;
use crate::weights::Weights;

/// A cut of an example, kept as an output.
#[derive(Serialize, Deserialize)]
struct Held<Y> {
    y: Y,
    term: Term,
    alpha: f64,
    idle: u32,
}

/// Cap and ridge of an example.
#[derive(Clone, Copy)]
struct Limits {
    cap: f64,
    ridge: f64,
}

/// The dual variables, and w.
pub(super) struct Dual<'p, 'a, T: Task> {
    problem: &'p Problem<'a, T>,
    cuts: Vec<Vec<Held<T::Output>>>,
    /// Examples that have cuts.
    order: Vec<u32>,
    pub(super) w: Weights,
    random: Random,
    values: Vec<f64>,
    outputs: Vec<T::Output>,
    scratch: OracleScratch<T>,
    /// The step that is taken.
    direction: Lookup,
}

impl<'p, 'a, T: Task> Dual<'p, 'a, T> {
    pub(super) fn new(problem: &'p Problem<'a, T>, seed: u64) -> Self {
        Self {
            problem,
            cuts: (0..problem.len()).map(|_| Vec::new()).collect(),
            order: Vec::new(),
            w: Weights::zeros(problem.dimension()),
            random: Random::new(seed),
            values: Vec::new(),
            outputs: Vec::new(),
            scratch: OracleScratch::default(),
            direction: Lookup::default(),
        }
    }

    /// Writes what the next step starts from.
    pub(super) fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.cuts)?;
        out.put(&self.order)?;
        out.put(&self.w)?;
        out.put(&self.random)
    }

    /// Reads it again.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let problem = self.problem;
        self.cuts = reader.take()?;
        check(self.cuts.len() == problem.len(), "cuts")?;
        for (i, own) in self.cuts.iter().enumerate() {
            for Held { y, term, alpha, .. } in own {
                check(problem.task().check(problem.input(i), y).is_ok(), "outputs")?;
                check(*term == problem.term(problem.task().loss(problem.truth(i), y)), "terms")?;
                check(is_sound(*alpha) && *alpha >= 0.0, "dual variables")?;
            }
        }
        self.order = reader.take()?;
        check(self.order.iter().all(|&i| (i as usize) < problem.len()), "order")?;
        self.w = reader.take()?;
        check_weights(&self.w, problem.dimension())?;
        self.random = reader.take()?;
        Ok(())
    }

    /// C has grown by this factor (or shrunk): of the multiples of a that are feasible for the new C the best.
    pub(super) fn rescale(&mut self, growth: f64) -> Result<()> {
        let (mut linear, mut square) = (0.0, dot(self.w.as_slice(), self.w.as_slice()));
        for (i, own) in self.cuts.iter().enumerate().filter(|e| !e.1.is_empty()) {
            let sum: f64 = own.iter().map(|cut| cut.alpha).sum();
            linear += own.iter().map(|cut| cut.alpha * cut.term.rhs).sum::<f64>();
            square += self.limits(i).ridge * sum * sum;
        }
        let best = linear / square;
        // 0 / 0 where all is zero.
        let factor = if self.is_quadratic() || best < growth { best } else { growth };
        if factor.is_finite() {
            self.cuts.iter_mut().flatten().for_each(|cut| cut.alpha *= factor.max(0.0));
        }
        self.rebuild()
    }

    fn is_quadratic(&self) -> bool {
        self.problem.formulation().penalty == Penalty::Quadratic
    }

    fn limits(&self, i: usize) -> Limits {
        let share = self.problem.formulation().c * self.problem.weight(i) / self.problem.len() as f64;
        if self.is_quadratic() {
            Limits { cap: f64::INFINITY, ridge: 1.0 / share }
        } else {
            Limits { cap: share, ridge: 0.0 }
        }
    }

    /// Is a cut with violation `h` at w worth adding to those that example i has?
    pub(super) fn is_worth(&self, i: usize, h: f64, worth: f64) -> Result<bool> {
        if h <= 0.0 || self.problem.weight(i) == 0.0 {
            return Ok(false);
        }
        let mut xi: f64 = 0.0;
        for cut in &self.cuts[i] {
            xi = xi.max(self.problem.violation(i, &self.w, &cut.y)?);
        }
        Ok(self.problem.slack(h) - self.problem.slack(xi) > worth)
    }

    /// Adds a cut with weight zero; false where the example has it already.
    pub(super) fn add(&mut self, i: usize, y: T::Output) -> bool {
        if self.cuts[i].iter().any(|cut| cut.y == y) {
            return false;
        }
        let term = self.problem.term(self.problem.task().loss(self.problem.truth(i), &y));
        if self.cuts[i].is_empty() {
            self.order.push(i as u32);
        }
        self.cuts[i].push(Held { y, term, alpha: 0.0, idle: 0 });
        true
    }

    /// Example i's share of the gap at w, where its H is `h`:
    /// linear `U h - sum a v`, quadratic `h^2 / 2r + r S^2 / 2 - sum a v`, with `v = rhs - <w, lhs>`.
    pub(super) fn gap_at(&mut self, i: usize, h: f64) -> Result<f64> {
        if self.problem.weight(i) == 0.0 {
            return Ok(0.0);
        }
        self.look(i)?;
        Ok(self.gap_of(i, h))
    }

    /// Violations of i's own cuts at w, into `values`.
    fn look(&mut self, i: usize) -> Result<()> {
        let own = &self.cuts[i];
        self.values.resize(own.len(), 0.0);
        if self.problem.task().listed().is_none() {
            for (value, cut) in self.values.iter_mut().zip(own) {
                *value = self.problem.violation(i, &self.w, &cut.y)?;
            }
            return Ok(());
        }
        self.outputs.clear();
        self.outputs.extend(own.iter().map(|cut| cut.y.clone()));
        self.problem.violations_of(i, &self.w, &self.outputs, &mut self.scratch, &mut self.values)
    }

    fn gap_of(&self, i: usize, h: f64) -> f64 {
        let Limits { cap, ridge } = self.limits(i);
        let own = &self.cuts[i];
        let inner: f64 = own.iter().zip(&self.values).map(|(cut, v)| cut.alpha * v).sum();
        let sum: f64 = own.iter().map(|cut| cut.alpha).sum();
        if self.is_quadratic() { 0.5 * (h * h / ridge + ridge * sum * sum) - inner } else { cap * h - inner }
    }

    /// Pair steps within example i until its gap is a tenth of what it was. Returns what it was.
    pub(super) fn solve_own(&mut self, i: usize) -> Result<f64> {
        const STEPS: usize = 10;
        let Limits { cap, ridge } = self.limits(i);
        let mut first = f64::INFINITY;
        self.look(i)?;
        for step in 0..STEPS {
            let h = self.values.iter().copied().fold(0.0, f64::max);
            let gap = self.gap_of(i, h);
            if step == 0 {
                first = gap;
            } else if gap <= 0.1 * first {
                break;
            }
            if !self.pair_step(i, cap, ridge)? {
                break;
            }
        }
        Ok(first)
    }

    /// One step between the cut (or unused cap) with the largest gradient and the one with the smallest that has
    /// something to give; `values` follow. False where there is nothing to gain.
    fn pair_step(&mut self, i: usize, cap: f64, ridge: f64) -> Result<bool> {
        let own = &mut self.cuts[i];
        let sum: f64 = own.iter().map(|cut| cut.alpha).sum();
        // The unused cap: gradient 0, and as much to give as is left.
        let (mut up, mut up_gradient) = (None, 0.0);
        let (mut down, mut down_gradient) = (None, if sum < cap { 0.0 } else { f64::INFINITY });
        for (j, (cut, v)) in own.iter().zip(&self.values).enumerate() {
            let gradient = v - ridge * sum;
            if gradient > up_gradient {
                (up, up_gradient) = (Some(j), gradient);
            }
            if cut.alpha > 0.0 && gradient < down_gradient {
                (down, down_gradient) = (Some(j), gradient);
            }
        }
        let rise = up_gradient - down_gradient;
        if up == down || rise <= 1e-13 * (up_gradient.abs() + down_gradient.abs()) || rise.is_nan() {
            return Ok(false);
        }
        let Self { problem, direction, .. } = self;
        direction.clear();
        for (cut, sign) in [(up, 1.0), (down, -1.0)] {
            if let Some(j) = cut {
                problem.emit(i, &own[j].y, sign * own[j].term.factor, direction)?;
            }
        }
        let along = |cut: &Held<T::Output>| {
            let mut inner = ScoreIn { lookup: direction, total: 0.0 };
            problem.emit(i, &cut.y, cut.term.factor, &mut inner)?;
            Ok(inner.total)
        };
        let ends = |cut: Option<usize>| cut.map_or(Ok(0.0), |j| along(&own[j]));
        let curvature = ends(up)? - ends(down)? + if up.is_some() && down.is_some() { 0.0 } else { ridge };
        let available = down.map_or(cap - sum, |k| own[k].alpha);
        let step = (rise / curvature).min(available);
        if !(step > 0.0 && step.is_finite()) {
            return Ok(false);
        }
        for (cut, sign) in [(up, 1.0), (down, -1.0)] {
            if let Some(j) = cut {
                // Exactly zero where all is given, so that idle cuts can be told.
                let left = own[j].alpha + sign * step;
                own[j].alpha = if sign < 0.0 && step == available { 0.0 } else { left };
                let mut sink = Accumulate { sum: self.w.as_mut_slice(), factor: 1.0 };
                problem.emit(i, &own[j].y, sign * step * own[j].term.factor, &mut sink)?;
            }
        }
        for (cut, value) in own.iter().zip(&mut self.values) {
            *value -= step * along(cut)?;
        }
        Ok(true)
    }

    /// Passes of block steps over all examples with cuts, in random order, until their gaps sum to at most `tolerance`.
    /// Between full passes only the examples that contribute are visited.
    pub(super) fn solve(&mut self, tolerance: f64) -> Result<()> {
        const PASSES: usize = 300;
        let mut order = std::mem::take(&mut self.order);
        let small = 0.3 * tolerance / order.len().max(1) as f64;
        let mut active = order.len();
        for _ in 0..PASSES {
            self.random.shuffle(&mut order[..active]);
            let full = active == order.len();
            let (mut gap, mut kept) = (0.0, 0);
            for at in 0..active {
                let own = self.solve_own(order[at] as usize)?;
                gap += own;
                if own > small {
                    order.swap(at, kept);
                    kept += 1;
                }
            }
            match (gap <= tolerance, full) {
                (true, true) => break,
                (true, false) => active = order.len(),
                (false, _) => active = kept.max(1),
            }
        }
        for &i in &order {
            for cut in &mut self.cuts[i as usize] {
                cut.idle = if cut.alpha > 0.0 { 0 } else { cut.idle.saturating_add(1) };
            }
        }
        self.order = order;
        Ok(())
    }

    /// The dual value: a lower bound of P.
    pub(super) fn value(&self) -> f64 {
        let mut value = -0.5 * dot(self.w.as_slice(), self.w.as_slice());
        for (i, own) in self.cuts.iter().enumerate().filter(|e| !e.1.is_empty()) {
            let sum: f64 = own.iter().map(|cut| cut.alpha).sum();
            value += own.iter().map(|cut| cut.alpha * cut.term.rhs).sum::<f64>();
            value -= 0.5 * self.limits(i).ridge * sum * sum;
        }
        value
    }

    /// `w = sum a lhs` from scratch: after many steps the running sum has drifted.
    pub(super) fn rebuild(&mut self) -> Result<()> {
        let mut sink = Accumulate { sum: self.w.as_mut_slice(), factor: 1.0 };
        sink.sum.fill(0.0);
        for (i, own) in self.cuts.iter().enumerate() {
            for cut in own.iter().filter(|cut| cut.alpha > 0.0) {
                self.problem.emit(i, &cut.y, cut.alpha * cut.term.factor, &mut sink)?;
            }
        }
        Ok(())
    }

    /// Number of cuts, and of those with weight.
    pub(super) fn count(&self) -> (usize, usize) {
        let active = self.cuts.iter().flatten().filter(|cut| cut.alpha > 0.0).count();
        (self.cuts.iter().map(Vec::len).sum(), active)
    }

    /// Drops cuts that had no weight after each of the last `rounds` solutions.
    pub(super) fn drop_inactive(&mut self, rounds: u32) {
        for own in &mut self.cuts {
            own.retain(|cut| cut.idle < rounds);
        }
        let cuts = &self.cuts;
        self.order.retain(|&i| !cuts[i as usize].is_empty());
    }
}
