//! Averaged stochastic subgradient descent: a baseline, with a certificate all the same.
//!
//! ```text
//! P(w) = 1/2 |w|^2 + (C/n) sum_i c_i l(H_i(w)),   l(h) = h or h^2/2
//! w_t = s_t u_t,   u_t = sum over the visits so far of c_i tau lhs,   s_t = (C m / n) / (m + t)
//! ```
//!
//! m examples have weight, t visits have been made. Up to the m in the denominator, which keeps the first steps within an
//! example's own weight, this is the step 1 / (lambda t) along a subgradient (Shalev-Shwartz, Singer, Srebro 2007) with
//! lambda = 1/C: w shrinks by s alone, and u grows by the parts of one output. The answer is the mean of the points, the
//! t-th with weight t (Lacoste-Julien, Schmidt, Bach 2012).
//!
//! tau is l'(h), hence 1 with linear slack. With quadratic slack that is h, and such steps explode where C is large; there tau
//! is what h will be after the step, which is as easily computed (an implicit step).
//!
//! **The bound.** `l(h) >= tau h - tau^2/2` (quadratic), `l(h) >= tau h` for tau = 0 and 1 (linear). After E whole passes every
//! example was visited E times, so for any f from 0 to 1
//!
//! ```text
//! P(w) >= 1/2 |w|^2 + f (L - <w, g>),   g = (C / nE) u,   L = (C / nE) sum over the visits of c_i (tau rhs - [tau^2/2])
//!      >= f L - f^2/2 |g|^2 = D
//! ```
//!
//! with the minimum over w, and the best f is L / |g|^2 where that is below 1. It needs passes in which everybody is visited
//! once, so examples are not drawn at random but shuffled. P of the mean takes a pass of the oracle; it is computed after the
//! first ten passes each, then whenever a tenth more have been made.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::average::Average;
use super::course::Saved;
use super::lanes::{Lanes, Pace};
use super::permutation::Permutation;
use super::state::{Resumable, Writer, check, check_weights, is_sound};
use super::{Course, Observer, Settings, Solution, Solver, Status};
use crate::error::{Error, Result};
use crate::features::Collect;
use crate::parallel::{Pool, scope};
use crate::problem::{Penalty, Problem};
use crate::sparse::dot;
use crate::weights::Weights;

/// Averaged stochastic subgradient descent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Subgradient;

impl Solver for Subgradient {
    fn name(&self) -> &'static str {
        "subgradient"
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
        super::refuse_kernel(self.name(), problem)?;
        if problem.formulation().penalty == Penalty::Hard {
            let rule = "subgradient needs slack; take one-slack or n-slack for the hard margin";
            return Err(Error::setting("penalty", rule));
        }
        let mut course = Course::new(self, problem, settings, observer)?;
        let pool = Pool::new(settings.threads)?;
        let status = scope(|scope| {
            let pace = Pace::new(problem);
            let lanes = Lanes::new(scope, problem, pace.side_by_side, pool.threads())?;
            let mut run = Run::new(problem, settings, &pool, pace, lanes);
            if let Some(saved) = course.resume(problem, &pool)? {
                run.restore(saved)?;
            } else if let Some(start) = &settings.warm_start {
                course.offer_exact(problem, start, &pool)?;
            }
            run.rounds(&mut course)
        })?;
        course.finish(status)
    }
}

/// Where a run stands, beside its vectors and the order of its visits.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Position {
    /// Visits so far, and whole passes.
    visits: f64,
    passes: u32,
    /// `sum c_i (tau rhs - [tau^2/2])` over the visits.
    l: f64,
    /// Passes that had been made when P of the mean was last computed.
    looked: u32,
}

struct Run<'r, 'a> {
    problem: &'r Problem<'a>,
    pool: &'r Pool,
    u: Weights,
    average: Average,
    position: Position,
    /// Where the subgradients of the first pass are taken, if the user says so: they serve the bound as well as any.
    start: Option<Weights>,
    order: Permutation,
    pace: Pace,
    lanes: Lanes<'r, 'a>,
    collect: Collect,
}

impl<'r, 'a> Run<'r, 'a> {
    fn new(problem: &'r Problem<'a>, settings: &Settings, pool: &'r Pool, pace: Pace, lanes: Lanes<'r, 'a>) -> Self {
        let d = problem.dimension();
        Self {
            problem,
            pool,
            u: Weights::zeros(d),
            average: Average::new(d),
            position: Position::default(),
            start: settings.warm_start.clone(),
            order: Permutation::new(problem, settings.seed),
            pace,
            lanes,
            collect: Collect::default(),
        }
    }

    /// Goes back to where the state was saved. With another C, what it knows counts as one pass, however many there were:
    /// else it would take as many to move w away from there.
    fn restore(&mut self, mut saved: Saved<'_>) -> Result<()> {
        let (reader, d) = (&mut saved.reader, self.problem.dimension());
        self.u = reader.take()?;
        check_weights(&self.u, d)?;
        self.average = reader.take()?;
        check(self.average.is_of(d), "the mean")?;
        self.position = reader.take()?;
        let Position { visits, l, .. } = self.position;
        check(visits >= 0.0 && is_sound(visits) && is_sound(l), "the sums")?;
        self.start = reader.take()?;
        self.start.as_ref().map_or(Ok(()), |start| check_weights(start, d))?;
        self.order.read(reader)?;
        if saved.growth.is_some() {
            let passes = f64::from(self.position.passes) + f64::from(u8::from(!self.order.is_over()));
            self.u.as_mut_slice().iter_mut().for_each(|u| *u /= passes.max(1.0));
            self.position = Position { visits: self.order.len() as f64, passes: 1, l: l / passes.max(1.0), looked: 0 };
            self.average.clear();
            self.order.begin_pass();
        }
        Ok(())
    }

    fn rounds(&mut self, course: &mut Course<'_>) -> Result<Status> {
        let mut last = course.begin(self);
        loop {
            if let ControlFlow::Break(status) = last {
                let Position { passes, looked, .. } = self.position;
                if status != Status::Converged && (looked < passes || !self.order.is_over()) {
                    course.offer_exact(self.problem, &self.average.mean(&self.u), self.pool)?;
                }
                return Ok(status);
            }
            let exact = if self.descend(course)? { self.end_pass(course)? } else { None };
            last = course.end_round(exact, self);
        }
    }

    /// `s_t` after `t` visits.
    fn scale(&self, t: f64) -> f64 {
        let m = self.order.len() as f64;
        self.problem.formulation().c * m / self.problem.len() as f64 / (m + t)
    }

    /// Visits, until there is something to report or the pass is over: true then.
    fn descend(&mut self, course: &mut Course<'_>) -> Result<bool> {
        if self.order.is_over() {
            self.order.begin_pass();
        }
        let mut made = 0;
        while made < self.pace.round && !self.order.is_over() {
            let scale = self.scale(self.position.visits);
            let (at, scale) = self.start.as_mut().map_or((&mut self.u, scale), |start| (start, 1.0));
            let batch = self.order.next(self.pace.side_by_side);
            made += batch.len();
            let lanes = &mut self.lanes;
            course.in_oracle(|| lanes.ask(at, scale, batch))?;
            self.step()?;
        }
        course.so_far.oracle_calls += made as u64;
        Ok(self.order.is_over())
    }

    /// A step for each of the oracle's answers.
    fn step(&mut self) -> Result<()> {
        let problem = self.problem;
        let is_quadratic = problem.formulation().penalty == Penalty::Quadratic;
        for answer in self.lanes.answers() {
            self.position.visits += 1.0;
            let scale = self.scale(self.position.visits);
            if answer.h > 0.0 {
                let (i, y, c) = (answer.i, &answer.y, problem.weight(answer.i));
                let term = problem.term(problem.loss(i, y));
                let tau = if is_quadratic {
                    self.collect.clear();
                    problem.emit(i, y, term.factor, &mut self.collect)?;
                    let h = problem.violation_at(i, &self.u, scale, y)?;
                    (h / (1.0 + scale * c * self.collect.norm2())).max(0.0)
                } else {
                    1.0
                };
                problem.emit(i, y, c * tau * term.factor, &mut self.average.step(&mut self.u))?;
                self.position.l += c * (tau * term.rhs - if is_quadratic { 0.5 * tau * tau } else { 0.0 });
            }
            self.average.count(self.position.visits, scale);
        }
        Ok(())
    }

    /// The bound, and P of the mean where it is due: returned then.
    fn end_pass(&mut self, course: &mut Course<'_>) -> Result<Option<f64>> {
        self.start = None;
        let Position { passes, l, looked, .. } = &mut self.position;
        *passes = passes.saturating_add(1);
        let share = self.problem.formulation().c / (self.problem.len() as f64 * f64::from(*passes));
        let (l, norm2) = (share * *l, share * share * dot(self.u.as_slice(), self.u.as_slice()));
        let f = if l < norm2 { (l / norm2).max(0.0) } else { 1.0 };
        course.bound(f * (l - 0.5 * f * norm2));
        if f64::from(*passes) < 1.1 * f64::from(*looked) {
            return Ok(None);
        }
        *looked = *passes;
        course.offer_exact(self.problem, &self.average.mean(&self.u), self.pool).map(Some)
    }
}

impl Resumable for Run<'_, '_> {
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.u)?;
        out.put(&self.average)?;
        out.put(&self.position)?;
        out.put(&self.start)?;
        out.put(&self.order)
    }
}
