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

use super::state::Unsaved;
use super::{Course, Observer, Settings, Solution, Solver, Status};
use crate::error::{Error, Result};
use crate::parallel::{Pool, ranges};
use crate::problem::{OracleScratch, Penalty, Problem};
use crate::task::Task;

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

/// A cut is added where it would close more than this share of the target gap, were all examples alike.
const WORTH_ADDING: f64 = 0.5;

/// What the oracle says of an example at the current w.
struct Answer<Y> {
    /// H, from the oracle.
    h: f64,
    /// Its output, where it is worth a cut.
    y: Option<Y>,
}

impl Solver for NSlack {
    fn name(&self) -> &'static str {
        "n-slack"
    }

    fn solve<T: Task>(
        &self,
        problem: &Problem<'_, T>,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Solution> {
        if self.update == Update::Batch(0) {
            return Err(Error::setting("batch", "must be at least 1"));
        }
        let mut course = Course::new(self, problem, settings, observer)?;
        let pool = Pool::new(settings.threads)?;
        if settings.resume.is_some() {
            return Err(Error::setting("resume", "this solver cannot be resumed yet"));
        }
        let status = if problem.formulation().penalty == Penalty::Hard {
            separate(problem, settings, (self.side_by_side(), self.idle_rounds), &pool, &mut course)?
        } else {
            let mut dual = Dual::new(problem, settings.seed);
            start(problem, settings, &pool, &mut dual, &mut course)?;
            self.sweeps(problem, &pool, &mut dual, &mut course)?
        };
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

    /// Sweeps over the examples until the certificate is good enough.
    fn sweeps<T: Task>(
        &self,
        problem: &Problem<'_, T>,
        pool: &Pool,
        dual: &mut Dual<'_, '_, T>,
        course: &mut Course<'_>,
    ) -> Result<Status> {
        let mut last_estimate = f64::INFINITY;
        let mut stalled = 0;
        loop {
            let before = course.gap();
            let tolerance = 0.1 * last_estimate.min(course.gap()).max(course.target());
            let (added, estimate) = match self.sweep(problem, pool, dual, course, tolerance)? {
                ControlFlow::Continue(seen) => seen,
                ControlFlow::Break(status) => {
                    // The best so far may be from long ago.
                    dual.rebuild()?;
                    course.bound(dual.value());
                    course.offer_exact(problem, &dual.w, pool)?;
                    return Ok(status);
                }
            };
            last_estimate = estimate;
            let tolerance = tolerance.min(0.1 * estimate.max(course.target()));
            course.in_qp(|| dual.solve(tolerance))?;
            course.bound(dual.value());
            (course.so_far.working_set, course.so_far.support) = dual.count();
            dual.drop_inactive(self.idle_rounds);
            // An exact pass where the sweep says that it would succeed, or has nothing more to say.
            let exact = if added == 0 || estimate <= course.target() {
                dual.rebuild()?;
                course.bound(dual.value());
                let primal = course.offer_exact(problem, &dual.w, pool)?;
                stalled = if added == 0 && course.gap() >= before { stalled + 1 } else { 0 };
                Some(primal)
            } else {
                None
            };
            if let ControlFlow::Break(status) = course.end_round(exact, &Unsaved) {
                return Ok(status);
            }
            if stalled >= STALLED_SWEEPS {
                return Ok(Status::Stalled);
            }
        }
    }

    /// Asks the oracle for every example once. Returns the number of new cuts and an estimate of the gap, for which
    /// each example was seen at another w. A sweep can be long, so it reports, and can be stopped, on the way.
    fn sweep<T: Task>(
        &self,
        problem: &Problem<'_, T>,
        pool: &Pool,
        dual: &mut Dual<'_, '_, T>,
        course: &mut Course<'_>,
        tolerance: f64,
    ) -> Result<ControlFlow<Status, (usize, f64)>> {
        let side_by_side = self.side_by_side();
        let worth = WORTH_ADDING * course.target() / problem.formulation().c;
        let (mut added, mut waiting, mut unreported, mut estimate) = (0, 0, 0, 0.0);
        for start in (0..problem.len()).step_by(side_by_side) {
            let end = problem.len().min(start + side_by_side);
            let asked = course.in_oracle(|| ask(problem, pool, dual, start..end, worth))?;
            course.so_far.oracle_calls += (end - start) as u64;
            for (i, answer) in (start..end).zip(asked) {
                estimate += dual.gap_at(i, answer.h)?;
                let Some(y) = answer.y else { continue };
                if dual.add(i, y)? {
                    added += 1;
                    waiting += 1;
                    if self.update == Update::OwnCuts {
                        course.in_qp(|| dual.solve_own(i))?;
                    }
                }
            }
            unreported += end - start;
            if matches!(self.update, Update::Batch(batch) if waiting >= batch) {
                waiting = 0;
                course.in_qp(|| dual.solve(tolerance))?;
            } else if unreported < REPORT_AFTER {
                continue;
            }
            unreported = 0;
            course.so_far.working_set = dual.count().0;
            if let ControlFlow::Break(status) = course.end_round(None, &Unsaved) {
                return Ok(ControlFlow::Break(status));
            }
        }
        Ok(ControlFlow::Continue((added, estimate)))
    }
}

/// Something to return however early training is stopped: P at the start. Where the user says where to start, the
/// first cuts are taken there; the dual begins at 0 all the same, for its value must be a bound.
fn start<T: Task>(
    problem: &Problem<'_, T>,
    settings: &Settings,
    pool: &Pool,
    dual: &mut Dual<'_, '_, T>,
    course: &mut Course<'_>,
) -> Result<()> {
    let Some(start) = &settings.warm_start else {
        course.offer_exact(problem, &dual.w, pool)?;
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
fn ask<T: Task>(
    problem: &Problem<'_, T>,
    pool: &Pool,
    dual: &Dual<'_, '_, T>,
    examples: std::ops::Range<usize>,
    worth: f64,
) -> Result<Vec<Answer<T::Output>>> {
    const PARTS: usize = 8;
    let parts = pool.map(ranges(examples.len(), PARTS), |part| {
        let mut scratch = OracleScratch::default();
        part.map(|e| {
            let i = examples.start + e;
            let h = problem.oracle(i, &dual.w, &mut scratch)?;
            let y = dual.is_worth(i, h, worth)?.then(|| scratch.y.clone());
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
