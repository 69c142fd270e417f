//! Block-coordinate Frank-Wolfe: the dual of n slacks, one example at a time.
//!
//! ```text
//! max  D = sum a rhs - 1/2 |w|^2,   w = sum a lhs,   a >= 0,   sum of i's own a's <= U_i = C c_i / n
//! gap of block i:  g_i = U_i H_i(w) - sum_j a_j v_j >= 0,  v_j = rhs_j - <w, lhs_j>;    sum_i g_i = P(w) - D
//! ```
//!
//! (Lacoste-Julien, Jaggi, Schmidt, Pletscher 2013, Algorithm 4; Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien 2016:
//! gap sampling, caching, pairwise steps.) A pass asks the oracle n times, for examples in random order or drawn in
//! proportion to their last known gaps, and solves each block over the outputs that its example has met. Passes without the
//! oracle follow, as long as they pay. With quadratic slack there is a ridge in the place of the cap ([`blocks`](super::blocks)).
//!
//! The oracle is asked for a few examples side by side at one w; then their blocks are visited one by one, each at the w
//! that the visits before it have left. An output found at a slightly older w is as good a direction as any: the line search
//! is exact where it is taken. How many are asked together follows from the data, never from the number of threads.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::course::Saved;
use super::lanes::{Lanes, Pace};
use super::state::{Resumable, Writer, check, is_sound};
use super::{Course, Observer, Settings, Solution, Solver, Status};
use crate::error::{Error, Result};
use crate::parallel::{Pool, scope};
use crate::problem::{Penalty, Problem};
use crate::task::Task;
use crate::weights::Weights;

mod dual;
mod gaps;
mod order;

use dual::Dual;
pub use order::Order;
use order::Visits;

/// Block-coordinate Frank-Wolfe.
#[derive(Debug, Clone)]
pub struct Bcfw {
    /// Who is visited next.
    pub order: Order,
    /// At most so many cached passes follow a pass of the oracle. They end when they no longer pay.
    pub cached_passes: u32,
    /// Outputs without weight that were of no use for that many passes are dropped.
    pub idle_passes: u32,
}

impl Default for Bcfw {
    fn default() -> Self {
        Self { order: Order::Gaps, cached_passes: 1000, idle_passes: 10 }
    }
}

/// An exact pass at least every so many passes: gap sampling needs true gaps, users like to know.
const EXACT_EVERY: u32 = 10;

/// An exact pass that may be the last is thought of when the gaps seen on the way are within this factor of the target. They
/// tell of different w, and the mean of the points is often better than the last one.
const LOOK_AT: f64 = 2.0;

/// An output is taken in where it would close more than this share of the target gap, were all examples alike.
const WORTH_TAKING: f64 = 0.1;

/// A cached pass that closes less than this share of the target gap gains nothing, however little it takes.
const NOTHING: f64 = 1e-4;

/// So many passes that do not raise the dual by more than rounding would.
const STALLED_PASSES: u32 = 20;

impl Solver for Bcfw {
    fn name(&self) -> &'static str {
        "bcfw"
    }

    fn solve<T: Task>(
        &self,
        problem: &Problem<'_, T>,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Solution> {
        if problem.formulation().penalty == Penalty::Hard {
            let rule = "bcfw has no hard margin, whose dual has no bounds; take n-slack";
            return Err(Error::setting("penalty", rule));
        }
        let mut course = Course::new(self, problem, settings, observer)?;
        let pool = Pool::new(settings.threads)?;
        let (status, w) = scope(|scope| {
            let pace = Pace::new(problem);
            let lanes = Lanes::new(scope, problem, pace.side_by_side, pool.threads())?;
            let mut run = Run::new(self, problem, settings.seed, &pool, pace, lanes);
            match (course.resume(problem, &pool)?, &settings.warm_start) {
                (Some(saved), _) => run.restore(saved, &mut course)?,
                (None, Some(start)) => run.start(start, &mut course)?,
                (None, None) => {}
            }
            Ok::<_, Error>((run.rounds(&mut course)?, std::mem::take(&mut run.dual.blocks.w)))
        })?;
        course.finish_over(status, w)
    }
}

/// What some visits have gained, and what they cost.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Tally {
    /// Of the dual.
    rise: f64,
    /// In looks.
    work: f64,
}

impl Tally {
    fn add(&mut self, rise: f64, work: f64) {
        self.rise += rise;
        self.work += work;
    }

    fn rate(&self) -> f64 {
        if self.work > 0.0 { self.rise / self.work } else { 0.0 }
    }
}

/// Where an exact pass is made.
#[derive(Debug, Clone, Copy)]
enum At<'w> {
    /// At w.
    Last,
    /// At the mean of the points.
    Mean,
    /// Where the user starts.
    Given(&'w Weights),
}

/// Where a run stands between two rounds, beside its dual and the order of its visits.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Position {
    /// Of the pass so far.
    tally: Tally,
    /// Passes since the last exact one.
    since_exact: u32,
    /// Has there been an exact pass since the last visit?
    certified: bool,
    /// Passes in a row that did not raise the dual.
    stalled: u32,
}

struct Run<'r, 'a, T: Task> {
    solver: &'r Bcfw,
    problem: &'r Problem<'a, T>,
    pool: &'r Pool,
    dual: Dual<'r, 'a, T>,
    visits: Visits,
    position: Position,
    lanes: Lanes<'r, 'a, T>,
    batch: Vec<u32>,
    pace: Pace,
}

impl<'r, 'a, T: Task> Run<'r, 'a, T> {
    fn new(
        solver: &'r Bcfw,
        problem: &'r Problem<'a, T>,
        seed: u64,
        pool: &'r Pool,
        pace: Pace,
        lanes: Lanes<'r, 'a, T>,
    ) -> Self {
        Self {
            solver,
            problem,
            pool,
            dual: Dual::new(problem, pool),
            visits: Visits::new(problem, solver.order, seed),
            position: Position::default(),
            lanes,
            batch: Vec::new(),
            pace,
        }
    }

    /// Where the user says where to start, the first outputs are taken there; the dual begins at 0 all the same, for its
    /// value must be a bound.
    fn start(&mut self, start: &Weights, course: &mut Course<'_>) -> Result<()> {
        self.exact_pass(At::Given(start), course)?;
        self.settle(course)
    }

    /// Goes back to where the state was saved.
    fn restore(&mut self, mut saved: Saved<'_>, course: &mut Course<'_>) -> Result<()> {
        self.dual.read(&mut saved.reader)?;
        self.visits.read(&mut saved.reader)?;
        self.position = saved.reader.take()?;
        let Tally { rise, work } = self.position.tally;
        check(is_sound(rise) && is_sound(work), "the pass")?;
        let Some(growth) = saved.growth else { return Ok(()) };
        self.position = Position::default();
        self.visits.begin_anew();
        self.dual.rescale(growth)?;
        course.bound(self.dual.blocks.value());
        self.settle(course)
    }

    /// Cached passes until they gain little beside the gap that is asked for.
    fn settle(&mut self, course: &mut Course<'_>) -> Result<()> {
        for _ in 0..self.solver.cached_passes.max(1) {
            if self.cached_pass(course)?.rise <= 0.1 * course.target() {
                break;
            }
        }
        Ok(())
    }

    fn rounds(&mut self, course: &mut Course<'_>) -> Result<Status> {
        let mut last = course.begin(self);
        loop {
            if let ControlFlow::Break(status) = last {
                if status != Status::Converged && !self.position.certified {
                    // The best so far may be from long ago.
                    if matches!(status, Status::MaxSeconds | Status::Interrupted) {
                        // Who is in a hurry does not wait for two passes.
                        let (at, _) = self.best_point()?;
                        self.exact_pass(at, course)?;
                    } else {
                        self.exact_passes(course)?;
                    }
                }
                return Ok(status);
            }
            let exact = if self.ask_and_visit(course)? { self.end_pass(course)? } else { None };
            last = course.end_round(exact, self);
        }
    }

    /// Violations below this are not worth an output of their own.
    fn worth(&self, course: &Course<'_>) -> f64 {
        WORTH_TAKING * course.target() / self.problem.formulation().c
    }

    /// Visits with the oracle, until there is something to report or the pass is over: true then.
    fn ask_and_visit(&mut self, course: &mut Course<'_>) -> Result<bool> {
        let (problem, worth) = (self.problem, self.worth(course));
        self.position.certified = false;
        self.visits.total_gap();
        let mut made = 0;
        while made < self.pace.round && !self.visits.is_over() {
            self.visits.next(self.pace.side_by_side, &mut self.batch);
            made += self.batch.len();
            let (w, lanes, batch) = (&mut self.dual.blocks.w, &mut self.lanes, &self.batch);
            course.in_oracle(|| lanes.ask(w, 1.0, batch))?;
            let violated = self.lanes.answers().iter().filter(|answer| answer.h > 0.0).map(|answer| answer.i);
            self.dual.blocks.prepare(violated)?;
            for answer in self.lanes.answers() {
                let found = (answer.h > 0.0).then_some((&answer.y, worth));
                let visit = self.dual.visit(answer.i, found)?;
                self.visits.set_gap(answer.i, visit.gap);
                let oracle = problem.task().oracle_cost(problem.input(answer.i));
                self.position.tally.add(visit.rise, visit.work + oracle);
            }
        }
        course.so_far.oracle_calls += made as u64;
        Ok(self.visits.is_over())
    }

    /// Cached passes, housekeeping, and an exact pass where it is due: its P is returned.
    fn end_pass(&mut self, course: &mut Course<'_>) -> Result<Option<f64>> {
        let mut tally = std::mem::take(&mut self.position.tally);
        for _ in 0..self.solver.cached_passes {
            let last = self.cached_pass(course)?;
            tally.add(last.rise, last.work);
            if last.rate() <= tally.rate() || last.rise <= NOTHING * course.target() {
                break;
            }
        }
        self.dual.end_pass(self.solver.idle_passes);
        let value = self.dual.blocks.value();
        course.bound(value);
        (course.so_far.working_set, course.so_far.support) = self.dual.blocks.count();
        // In f64 the dual cannot rise for ever.
        let rises = tally.rise > 1e-14 * value.abs();
        let Position { stalled, since_exact, .. } = &mut self.position;
        *stalled = if rises { 0 } else { stalled.saturating_add(1) };
        *since_exact = since_exact.saturating_add(1);
        course.so_far.stalled = *stalled >= STALLED_PASSES;

        let exact = if *since_exact >= EXACT_EVERY || !rises {
            Some(self.exact_passes(course)?)
        } else if self.visits.total_gap() <= LOOK_AT * course.target() {
            let (at, gap) = self.best_point()?;
            if gap <= course.target() { Some(self.exact_pass(at, course)?) } else { None }
        } else {
            None
        };
        if exact.is_some() {
            self.dual.discount_mean();
        }
        self.visits.begin_pass();
        Ok(exact)
    }

    /// Of w and the mean of the points since the last exact pass the better one, and its gap, as far as the outputs tell
    /// that the examples have met: P - D is no less.
    fn best_point(&mut self) -> Result<(At<'static>, f64)> {
        self.dual.blocks.rebuild()?;
        let (at_w, bound) = (self.dual.glance(self.pool)?, self.dual.blocks.value());
        if self.dual.has_mean() {
            self.dual.go_to_mean()?;
            let at_mean = self.dual.glance(self.pool)?;
            self.dual.blocks.rebuild()?;
            if at_mean < at_w {
                return Ok((At::Mean, at_mean - bound));
            }
        }
        Ok((At::Last, at_w - bound))
    }

    /// Exact passes at the mean of the points and at w; returns P at w.
    fn exact_passes(&mut self, course: &mut Course<'_>) -> Result<f64> {
        self.dual.blocks.rebuild()?;
        if self.dual.has_mean() {
            self.exact_pass(At::Mean, course)?;
        }
        self.exact_pass(At::Last, course)
    }

    /// Asks the oracle for all examples at one point; returns P there. The outputs that it finds are not lost: the next
    /// visits try them.
    fn exact_pass(&mut self, at: At<'_>, course: &mut Course<'_>) -> Result<f64> {
        let worth = self.worth(course);
        let (dual, pool) = (&mut self.dual, self.pool);
        course.bound(dual.blocks.value());
        if matches!(at, At::Mean) {
            dual.go_to_mean()?;
        }
        let point = if let At::Given(start) = at { start } else { &dual.blocks.w };
        let standing = course.in_oracle(|| dual.examine(pool, point, worth))?;
        course.so_far.oracle_calls += self.problem.len() as u64;
        course.offer(point, standing.primal);
        let is_last = *point == dual.blocks.w;
        if matches!(at, At::Mean) {
            dual.blocks.rebuild()?;
        } else if is_last {
            self.visits.set_gaps(standing.gaps);
            self.position.since_exact = 0;
        }
        for (i, y) in standing.met {
            dual.add(i, y)?;
        }
        self.position.certified = true;
        Ok(standing.primal)
    }

    /// Visits every example once, without the oracle.
    fn cached_pass(&mut self, course: &mut Course<'_>) -> Result<Tally> {
        let mut tally = Tally::default();
        let order = self.visits.shuffled();
        course.so_far.cache_hits += order.len() as u64;
        course.in_qp(|| {
            for (at, &i) in order.iter().enumerate() {
                // Waiting for weights would take longer than the visits.
                if let Some(&soon) = order.get(at + 1) {
                    self.dual.blocks.prefetch(soon as usize)?;
                }
                let visit = self.dual.visit(i as usize, None)?;
                tally.add(visit.rise, visit.work);
            }
            Ok(tally)
        })
    }
}

impl<T: Task> Resumable for Run<'_, '_, T> {
    fn write(&self, out: &mut Writer) -> Result<()> {
        self.dual.write(out)?;
        self.visits.write(out)?;
        out.put(&self.position)
    }

    /// The mean of the points: as a rule it predicts better than the last one, and there may be no exact pass for long.
    fn weights(&self) -> Option<Cow<'_, Weights>> {
        self.dual.mean().ok().map(Cow::Owned)
    }
}
