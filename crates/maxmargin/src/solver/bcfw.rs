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
use super::reported::DualPoint;
use super::rough::Rough;
use super::state::{Resumable, Writer, check, is_sound};
use super::{Course, Observer, Settings, Solution, Solver, Status};
use crate::error::{Error, Result};
use crate::parallel::{Pool, scope};
use crate::problem::{Penalty, Problem};
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

/// After so many visits without the oracle it is asked whether the run is over.
const ASK_EVERY: usize = 32;

/// Where there is no time left to decode all examples, the training loss is that of so many.
const LOOKED_AT: usize = 10;

impl Solver for Bcfw {
    fn name(&self) -> &'static str {
        "bcfw"
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
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
            let status = run.rounds(&mut course)?;
            course.rest_on(&run);
            Ok::<_, Error>((status, std::mem::take(&mut run.dual.blocks.w)))
        })?;
        let mut solution = course.finish_over(status, w)?;
        if solution.report.primal_is_bound {
            solution.train_loss = Some(problem.train_loss_of_some(LOOKED_AT, &solution.weights, &pool)?);
        }
        Ok(solution)
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

/// How long an exact pass may take.
#[derive(Debug, Clone, Copy)]
enum Patience {
    /// As long as it takes.
    Endless,
    /// Until the run is over.
    UntilOver,
}

/// What a pass is at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// Visits with the oracle.
    #[default]
    Visits,
    /// Those without.
    Cached,
    /// Is there to be an exact pass? The first where there are two of them, at the mean.
    Exact,
    /// The second, at w.
    Last,
}

/// Where a run stands between two rounds, or where one was broken off, beside its dual and the order of its visits.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Position {
    stage: Stage,
    /// Visits with the oracle in this round; passes without it, visits of the last of these so far, and what they came to.
    made: usize,
    cached: u32,
    visited: usize,
    last: Tally,
    /// Of the pass so far.
    tally: Tally,
    /// Did it raise the dual?
    rises: bool,
    /// Passes since the last exact one.
    since_exact: u32,
    /// Has there been an exact pass since the last visit?
    certified: bool,
    /// Passes in a row that did not raise the dual.
    stalled: u32,
}

struct Run<'r, 'a> {
    solver: &'r Bcfw,
    problem: &'r Problem<'a>,
    pool: &'r Pool,
    dual: Dual<'r, 'a>,
    visits: Visits,
    position: Position,
    lanes: Lanes<'r, 'a>,
    batch: Vec<u32>,
    pace: Pace,
}

impl<'r, 'a> Run<'r, 'a> {
    fn new(
        solver: &'r Bcfw,
        problem: &'r Problem<'a>,
        seed: u64,
        pool: &'r Pool,
        pace: Pace,
        lanes: Lanes<'r, 'a>,
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
        self.exact_pass(At::Given(start), course, Patience::Endless)?;
        self.settle(course)
    }

    /// Goes back to where the state was saved.
    fn restore(&mut self, mut saved: Saved<'_>, course: &mut Course<'_>) -> Result<()> {
        self.dual.read(&mut saved.reader)?;
        if saved.is_foreign {
            course.check_bound(self.dual.blocks.rederive(saved.growth.unwrap_or(1.0))?)?;
        }
        self.visits.read(&mut saved.reader)?;
        self.position = saved.reader.take()?;
        let Position { stage, visited, tally, last, .. } = &self.position;
        let is_over = *stage == Stage::Visits || self.visits.is_over();
        let sums = [tally.rise, tally.work, last.rise, last.work];
        check(sums.into_iter().all(is_sound) && is_over && *visited <= self.problem.len(), "the pass")?;
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
            let ControlFlow::Continue(last) = self.cached_pass(course, Patience::Endless)? else { break };
            if last.rise <= 0.1 * course.target() {
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
                        self.hurried_pass(course)?;
                    } else {
                        self.exact_passes(course, Patience::Endless)?;
                    }
                }
                return Ok(status);
            }
            last = match self.round(course)? {
                ControlFlow::Continue(exact) => course.end_round(exact, self),
                ControlFlow::Break(()) => ControlFlow::Break(course.break_off(self)),
            };
        }
    }

    /// A round, or what is left of one that was broken off; P where there was an exact pass. It is broken off where it is over
    /// in the middle.
    fn round(&mut self, course: &mut Course<'_>) -> Result<ControlFlow<(), Option<f64>>> {
        if self.position.stage == Stage::Visits {
            if self.ask_and_visit(course)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.position.made = 0;
            if !self.visits.is_over() {
                return Ok(ControlFlow::Continue(None));
            }
            self.position.stage = Stage::Cached;
        }
        if self.position.stage == Stage::Cached {
            if self.cached_passes(course)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.end_pass(course);
            self.position.stage = Stage::Exact;
        }
        let exact = self.exact_if_due(course)?;
        if let ControlFlow::Continue(exact) = exact {
            if exact.is_some() {
                self.dual.discount_mean();
            }
            self.visits.begin_pass();
            self.position.stage = Stage::Visits;
        }
        Ok(exact)
    }

    /// Violations below this are not worth an output of their own.
    fn worth(&self, course: &Course<'_>) -> f64 {
        WORTH_TAKING * course.target() / self.problem.formulation().c
    }

    /// Visits with the oracle, until there is something to report or the pass is over.
    fn ask_and_visit(&mut self, course: &mut Course<'_>) -> Result<ControlFlow<()>> {
        let (problem, worth) = (self.problem, self.worth(course));
        self.position.certified = false;
        if self.position.made == 0 {
            self.visits.total_gap();
        }
        while self.position.made < self.pace.round && !self.visits.is_over() {
            self.visits.next(self.pace.side_by_side, &mut self.batch);
            self.position.made += self.batch.len();
            course.so_far.oracle_calls += self.batch.len() as u64;
            let (w, lanes, batch) = (&mut self.dual.blocks.w, &mut self.lanes, &self.batch);
            course.in_oracle(|| lanes.ask(w, 1.0, batch))?;
            let violated = self.lanes.answers().iter().filter(|answer| answer.h > 0.0).map(|answer| answer.i);
            self.dual.blocks.prepare(violated)?;
            for answer in self.lanes.answers() {
                let found = (answer.h > 0.0).then_some((&answer.y, worth));
                let visit = self.dual.visit(answer.i, found)?;
                self.visits.set_gap(answer.i, visit.gap);
                let oracle = problem.decode_cost(answer.i);
                self.position.tally.add(visit.rise, visit.work + oracle);
            }
            if course.is_over() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes without the oracle, as long as they pay.
    fn cached_passes(&mut self, course: &mut Course<'_>) -> Result<ControlFlow<()>> {
        while self.position.cached < self.solver.cached_passes {
            let ControlFlow::Continue(last) = self.cached_pass(course, Patience::UntilOver)? else {
                return Ok(ControlFlow::Break(()));
            };
            let Position { tally, cached, .. } = &mut self.position;
            *cached += 1;
            tally.add(last.rise, last.work);
            if last.rate() <= tally.rate() || last.rise <= NOTHING * course.target() {
                break;
            }
        }
        self.position.cached = 0;
        Ok(ControlFlow::Continue(()))
    }

    /// Housekeeping.
    fn end_pass(&mut self, course: &mut Course<'_>) {
        let tally = std::mem::take(&mut self.position.tally);
        self.dual.end_pass(self.solver.idle_passes);
        let value = self.dual.blocks.value();
        course.bound(value);
        (course.so_far.working_set, course.so_far.support) = self.dual.blocks.count();
        // In f64 the dual cannot rise for ever.
        let Position { stalled, since_exact, rises, .. } = &mut self.position;
        *rises = tally.rise > 1e-14 * value.abs();
        *stalled = if *rises { 0 } else { stalled.saturating_add(1) };
        *since_exact = since_exact.saturating_add(1);
        course.so_far.stalled = *stalled >= STALLED_PASSES;
    }

    /// Exact passes where they are due: P then. Where it is over before they are made, a resumed run makes them.
    fn exact_if_due(&mut self, course: &mut Course<'_>) -> Result<ControlFlow<(), Option<f64>>> {
        let primal = if self.position.since_exact >= EXACT_EVERY || !self.position.rises {
            self.exact_passes(course, Patience::UntilOver)?
        } else if self.visits.total_gap() <= LOOK_AT * course.target() {
            let (at, gap) = self.best_point()?;
            if gap > course.target() {
                return Ok(ControlFlow::Continue(None));
            }
            self.exact_pass(at, course, Patience::UntilOver)?
        } else {
            return Ok(ControlFlow::Continue(None));
        };
        Ok(match primal {
            Some(primal) => ControlFlow::Continue(Some(primal)),
            None => ControlFlow::Break(()),
        })
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

    /// Exact passes at the mean of the points and at w; returns P at w, or None where patience ends before.
    fn exact_passes(&mut self, course: &mut Course<'_>, patience: Patience) -> Result<Option<f64>> {
        self.dual.blocks.rebuild()?;
        if self.position.stage != Stage::Last && self.dual.has_mean() {
            if self.exact_pass(At::Mean, course, patience)?.is_none() {
                return Ok(None);
            }
            self.position.stage = Stage::Last;
        }
        self.exact_pass(At::Last, course, patience)
    }

    /// P of the better one of the two, soon: where outputs are sets P is known to be at most so much without decoding all of them.
    fn hurried_pass(&mut self, course: &mut Course<'_>) -> Result<()> {
        let (at, _) = self.best_point()?;
        let Some(rough) = Rough::new(self.problem) else {
            return self.exact_pass(at, course, Patience::Endless).map(drop);
        };
        course.bound(self.dual.blocks.value());
        if matches!(at, At::Mean) {
            self.dual.go_to_mean()?;
        }
        let (w, deadline) = (&self.dual.blocks.w, course.patience());
        let soon = course.in_oracle(|| rough.objective(w, deadline, self.pool))?;
        course.offer_soon(w, soon.found.unwrap_or(soon.at_most), soon.found.is_none());
        Ok(())
    }

    /// Asks the oracle for all examples at one point; returns P there, or None where patience ends before. The outputs that it
    /// finds are not lost: the next visits try them.
    fn exact_pass(&mut self, at: At<'_>, course: &mut Course<'_>, patience: Patience) -> Result<Option<f64>> {
        let worth = self.worth(course);
        let (dual, pool) = (&mut self.dual, self.pool);
        course.bound(dual.blocks.value());
        if matches!(at, At::Mean) {
            dual.go_to_mean()?;
        }
        let point = if let At::Given(start) = at { start } else { &dual.blocks.w };
        let standing = course.asking_in_oracle(|course| match patience {
            Patience::Endless => dual.examine(pool, point, worth, None, || false),
            Patience::UntilOver => dual.examine(pool, point, worth, course.deadline(), || course.is_over()),
        })?;
        let Some(standing) = standing else {
            dual.blocks.rebuild()?;
            return Ok(None);
        };
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
        Ok(Some(standing.primal))
    }

    /// Visits every example once, without the oracle.
    fn cached_pass(&mut self, course: &mut Course<'_>, patience: Patience) -> Result<ControlFlow<(), Tally>> {
        if self.position.visited == 0 {
            self.visits.shuffle();
            course.so_far.cache_hits += self.visits.order().len() as u64;
        }
        course.asking_in_qp(|course| {
            let (order, Position { visited, last, .. }) = (self.visits.order(), &mut self.position);
            while let Some(&i) = order.get(*visited) {
                // Waiting for weights would take longer than the visits.
                if let Some(&soon) = order.get(*visited + 1) {
                    self.dual.blocks.prefetch(soon as usize)?;
                }
                let visit = self.dual.visit(i as usize, None)?;
                last.add(visit.rise, visit.work);
                *visited += 1;
                let is_to_ask = matches!(patience, Patience::UntilOver) && visited.is_multiple_of(ASK_EVERY);
                if is_to_ask && course.is_over() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            *visited = 0;
            Ok(ControlFlow::Continue(std::mem::take(last)))
        })
    }
}

impl Resumable for Run<'_, '_> {
    fn write(&self, out: &mut Writer) -> Result<()> {
        self.dual.write(out)?;
        self.visits.write(out)?;
        out.put(&self.position)
    }

    /// The mean of the points: as a rule it predicts better than the last one, and there may be no exact pass for long.
    fn weights(&self) -> Option<Cow<'_, Weights>> {
        self.dual.mean().ok().map(Cow::Owned)
    }

    fn dual_point(&self) -> Result<Option<DualPoint>> {
        self.dual.blocks.dual_point()
    }
}
