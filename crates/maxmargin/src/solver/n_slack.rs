//! Cutting planes with a slack for each example.
//!
//! ```text
//! min 1/2 |w|^2 + (C/n) sum_i c_i xi_i   s.t.  <w, lhs> >= rhs - xi_i  for all cuts of example i
//! ```
//!
//! (Joachims, Finley, Yu 2009, Algorithms 1 and 2; Tsochantaridis, Hofmann, Joachims, Altun 2004, Algorithm 1.) Also
//! with quadratic slack, `(C/2n) sum_i c_i xi_i^2`, and with none. Working sets reach hundreds of thousands of cuts: the
//! dual keeps w and takes block steps, no Hessian; cuts are kept as outputs, not as vectors.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::course::Saved;
use super::reported::DualPoint;
use super::state::{Resumable, Writer, check};
use super::{Course, Observer, Settings, Solution, Solver, Status};
use crate::error::{Error, Result};
use crate::parallel::{Pool, ranges};
use crate::problem::{OracleScratch, Output, Penalty, Problem};

mod dual;
mod separate;

use dual::Dual;
use separate::separate;

/// When the dual is solved again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Update {
    /// Over all cuts, after so many new ones (Joachims, Finley, Yu 2009, section 4).
    Batch(usize),
    /// Over an example's own cuts as soon as it has a new one, over all cuts once a sweep (Tsochantaridis et al. 2004,
    /// section 4.2).
    OwnCuts,
}

/// Cutting planes with n slacks.
#[derive(Debug, Clone)]
pub struct NSlack {
    /// When the dual is solved again.
    pub update: Update,
    /// Cuts whose dual variable was zero for that many solutions over all cuts are dropped.
    pub idle_rounds: u32,
}

impl Default for NSlack {
    fn default() -> Self {
        Self { update: Update::Batch(100), idle_rounds: 50 }
    }
}

/// Examples whose oracles are asked side by side, at one w, where each new cut changes w.
const SIDE_BY_SIDE: usize = 32;

/// A sweep reports after so many examples.
const REPORT_AFTER: usize = 10_000;

/// So many sweeps that neither add a cut nor lower the gap: the rest is rounding.
const STALLED_SWEEPS: u32 = 20;

/// After so many sweeps, and each time again, it is looked whether the dual value rises fast enough.
const PACE_SWEEPS: u32 = 1000;

/// Training is stalled where, at the pace of the last [`PACE_SWEEPS`], the gap would take more than this many times as long.
const MOST_TIMES: f64 = 1000.0;

/// A cut is added where it would close more than this share of the target gap, were all examples alike.
const WORTH_ADDING: f64 = 0.5;

/// What the oracle says of an example at the current w.
struct Answer {
    /// H, from the oracle.
    h: f64,
    /// Its output, where it is worth a cut.
    y: Option<Output>,
}

impl Solver for NSlack {
    fn name(&self) -> &'static str {
        "n-slack"
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
        if self.update == Update::Batch(0) {
            return Err(Error::setting("batch", "must be at least 1"));
        }
        let mut course = Course::new(self, problem, settings, observer)?;
        let pool = Pool::new(settings.threads)?;
        if problem.formulation().penalty == Penalty::Hard {
            let status = separate(problem, settings, (self.side_by_side(), self.idle_rounds), &pool, &mut course)?;
            return course.finish(status);
        }
        let dual = Dual::new(problem, settings.seed, &pool);
        let mut run = Run { problem, pool: &pool, solver: self, dual, position: Position::default() };
        match course.resume(problem, &pool)? {
            Some(saved) => run.restore(saved, &mut course)?,
            None => start(problem, settings, &pool, &mut run.dual, &mut course)?,
        }
        let status = run.rounds(&mut course)?;
        course.rest_on(&run);
        course.finish(status)
    }
}

impl NSlack {
    /// Examples whose oracles are asked at one w.
    fn side_by_side(&self) -> usize {
        match self.update {
            Update::Batch(batch) => batch,
            Update::OwnCuts => SIDE_BY_SIDE,
        }
    }
}

/// Where a run is in its sweep, and what the sweep has seen.
#[derive(Serialize, Deserialize)]
struct Position {
    /// The next example; 0 between sweeps.
    next: usize,
    /// New cuts of this sweep, and those since the dual was last solved.
    added: usize,
    waiting: usize,
    /// Of the gap, where each example was seen at another w: so far in this sweep, and of the sweep before.
    estimate: f64,
    last_estimate: f64,
    /// Sweeps that neither added a cut nor lowered the gap.
    stalled: u32,
    /// Sweeps since it was last looked how fast the dual value rises, and what it was then.
    paced: u32,
    dual_then: f64,
    /// Has there been an exact pass since w last changed?
    certified: bool,
}

impl Default for Position {
    fn default() -> Self {
        Self {
            next: 0,
            added: 0,
            waiting: 0,
            estimate: 0.0,
            last_estimate: f64::INFINITY,
            stalled: 0,
            paced: 0,
            dual_then: 0.0,
            certified: false,
        }
    }
}

/// A run with slack.
struct Run<'p, 'a> {
    problem: &'p Problem<'a>,
    pool: &'p Pool,
    solver: &'p NSlack,
    dual: Dual<'p, 'a>,
    position: Position,
}

impl Run<'_, '_> {
    /// Goes back to where the state was saved.
    fn restore(&mut self, mut saved: Saved<'_>, course: &mut Course<'_>) -> Result<()> {
        self.dual.read(&mut saved.reader)?;
        if saved.is_foreign {
            course.check_bound(self.dual.blocks.rederive(saved.growth.unwrap_or(1.0))?)?;
        }
        let position: Position = saved.reader.take()?;
        let Position { next, added, waiting, .. } = position;
        check([next, added, waiting].iter().all(|&count| count <= self.problem.len()), "the sweep")?;
        check(position.paced <= PACE_SWEEPS, "the pace")?;
        let Some(growth) = saved.growth else {
            self.position = position;
            return Ok(());
        };
        self.dual.blocks.rescale(growth)?;
        course.bound(self.dual.blocks.value());
        let tolerance = self.tolerance(course);
        course.in_qp(|| self.dual.solve(tolerance))?;
        course.bound(self.dual.blocks.value());
        (course.so_far.working_set, course.so_far.support) = self.dual.blocks.count();
        Ok(())
    }

    /// Sweeps over the examples until the certificate is good enough. A sweep can be long, so it reports, and can be
    /// stopped, on the way.
    fn rounds(&mut self, course: &mut Course<'_>) -> Result<Status> {
        let mut last = course.begin(self);
        loop {
            if let ControlFlow::Break(status) = last {
                if status != Status::Converged && !self.position.certified {
                    // The best so far may be from long ago.
                    self.offer(course)?;
                }
                return Ok(status);
            }
            let exact = if self.sweep(course)? { self.end_sweep(course)? } else { None };
            last = course.end_round(exact, self);
        }
    }

    /// How well the dual is solved during a sweep.
    fn tolerance(&self, course: &Course<'_>) -> f64 {
        0.1 * self.position.last_estimate.min(course.gap()).max(course.target())
    }

    /// Asks the oracle for the examples that are left in this sweep, until there is something to report or the sweep is
    /// over: true then.
    fn sweep(&mut self, course: &mut Course<'_>) -> Result<bool> {
        let tolerance = self.tolerance(course);
        let Self { problem, pool, solver, dual, .. } = self;
        let worth = WORTH_ADDING * course.target() / problem.formulation().c;
        let Position { next, added, waiting, estimate, certified, .. } = &mut self.position;
        *certified = false;
        let first = *next;
        while *next < problem.len() {
            let asked = *next..problem.len().min(next.saturating_add(solver.side_by_side()));
            *next = asked.end;
            let answers = course.in_oracle(|| ask(problem, pool, dual, asked.clone(), worth))?;
            course.so_far.oracle_calls += asked.len() as u64;
            let violated = asked.clone().zip(&answers).filter(|(_, answer)| answer.y.is_some()).map(|(i, _)| i);
            dual.blocks.prepare(violated)?;
            for (i, answer) in asked.zip(answers) {
                *estimate += dual.blocks.gap_at(i, answer.h)?;
                let Some(y) = answer.y else { continue };
                if dual.add(i, y)? {
                    *added += 1;
                    *waiting += 1;
                    if solver.update == Update::OwnCuts {
                        course.in_qp(|| dual.solve_own(i))?;
                    }
                }
            }
            if matches!(solver.update, Update::Batch(batch) if *waiting >= batch) {
                *waiting = 0;
                course.in_qp(|| dual.solve(tolerance))?;
            } else if *next - first < REPORT_AFTER {
                continue;
            }
            course.so_far.working_set = dual.blocks.count().0;
            return Ok(false);
        }
        Ok(true)
    }

    /// Solves over all cuts after a sweep. Returns P where an exact pass was made: where the sweep says that it would
    /// succeed, or has nothing more to say.
    fn end_sweep(&mut self, course: &mut Course<'_>) -> Result<Option<f64>> {
        let before = course.gap();
        let tolerance = self.tolerance(course);
        let Position { added, estimate, stalled, paced, dual_then, .. } = self.position;
        let tolerance = tolerance.min(0.1 * estimate.max(course.target()));
        course.in_qp(|| self.dual.solve(tolerance))?;
        course.bound(self.dual.blocks.value());
        self.position =
            Position { last_estimate: estimate, stalled, paced: paced + 1, dual_then, ..Position::default() };
        let is_crawling = self.is_crawling(course);
        (course.so_far.working_set, course.so_far.support) = self.dual.blocks.count();
        self.dual.drop_inactive(self.solver.idle_rounds);
        if added > 0 && estimate > course.target() && !is_crawling {
            return Ok(None);
        }
        let primal = self.offer(course)?;
        self.position.certified = true;
        self.position.stalled = if added == 0 && course.gap() >= before { stalled.saturating_add(1) } else { 0 };
        course.so_far.stalled = self.position.stalled >= STALLED_SWEEPS || is_crawling;
        Ok(Some(primal))
    }

    /// Would the gap take for ever at the pace of the last sweeps? Rounding, or a kernel whose values differ by many orders of
    /// magnitude, may leave next to nothing to gain in a step.
    fn is_crawling(&mut self, course: &Course<'_>) -> bool {
        let Position { paced, dual_then, .. } = &mut self.position;
        if *paced < PACE_SWEEPS {
            return false;
        }
        let dual = course.so_far.dual;
        let rise = dual - std::mem::replace(dual_then, dual);
        *paced = 0;
        MOST_TIMES * rise < course.gap() - course.target()
    }

    /// An exact pass at w, computed anew.
    fn offer(&mut self, course: &mut Course<'_>) -> Result<f64> {
        self.dual.blocks.rebuild()?;
        course.bound(self.dual.blocks.value());
        course.offer_exact(self.problem, &self.dual.blocks.w, self.pool)
    }
}

impl Resumable for Run<'_, '_> {
    fn write(&self, out: &mut Writer) -> Result<()> {
        self.dual.write(out)?;
        out.put(&self.position)
    }

    fn dual_point(&self) -> Result<Option<DualPoint>> {
        self.dual.blocks.dual_point()
    }
}

/// Something to return however early training is stopped: P at the start. Where the user says where to start, the
/// first cuts are taken there; the dual begins at 0 all the same, for its value must be a bound.
fn start(
    problem: &Problem<'_>,
    settings: &Settings,
    pool: &Pool,
    dual: &mut Dual<'_, '_>,
    course: &mut Course<'_>,
) -> Result<()> {
    let Some(start) = &settings.warm_start else {
        course.offer_exact(problem, &dual.blocks.w, pool)?;
        return Ok(());
    };
    course.offer_exact(problem, start, pool)?;
    let mut scratch = OracleScratch::default();
    for i in 0..problem.len() {
        if problem.oracle(i, start, &mut scratch)? > 0.0 && problem.weight(i) > 0.0 {
            dual.add(i, scratch.y.clone())?;
        }
    }
    course.so_far.oracle_calls += problem.len() as u64;
    let tolerance = 0.1 * course.so_far.primal;
    course.in_qp(|| dual.solve(tolerance))
}

/// The oracle's answers for some examples at the dual's w, side by side.
fn ask(
    problem: &Problem<'_>,
    pool: &Pool,
    dual: &Dual<'_, '_>,
    examples: std::ops::Range<usize>,
    worth: f64,
) -> Result<Vec<Answer>> {
    const PARTS: usize = 8;
    let parts = pool.map(ranges(examples.len(), PARTS), |part| {
        let (mut scratch, mut values) = (OracleScratch::default(), Vec::new());
        part.map(|e| {
            let i = examples.start + e;
            let h = problem.oracle(i, &dual.blocks.w, &mut scratch)?;
            let y = dual.is_worth(i, h, worth, &mut values)?.then(|| scratch.y.clone());
            Ok(Answer { h, y })
        })
        .collect::<Result<Vec<_>>>()
    });
    let mut answers = Vec::with_capacity(examples.len());
    for part in parts {
        answers.extend(part?);
    }
    Ok(answers)
}
