//! Block-coordinate Frank-Wolfe: the dual of n slacks, one example at a time.
//!
//! ```text
//! max  D = sum a rhs - 1/2 |w|^2,   w = sum a lhs,   a >= 0,   sum of i's own a's <= U_i = C c_i / n
//! ```
//!
//! (Lacoste-Julien, Jaggi, Schmidt, Pletscher 2013, Algorithm 4; Osokin, Alayrac, Lukasewitz, Dokania, Lacoste-Julien 2016:
//! gap sampling, caching, pairwise steps.)

use std::ops::ControlFlow;

use super::lanes::Lanes;
use super::random::Random;
use super::{Course, Observer, Settings, Solution, Solver, Status};
use crate::error::{Error, Result};
use crate::parallel::Pool;
use crate::problem::{Penalty, Problem};
use crate::task::Task;
use crate::weights::Weights;

mod block;
mod dual;
mod gaps;

use dual::Dual;
use gaps::Gaps;

/// Block-coordinate Frank-Wolfe.
#[derive(Debug, Clone)]
pub struct Bcfw {
    /// Outputs without weight that were of no use for that many rounds are dropped.
    pub idle_rounds: u32,
}

impl Default for Bcfw {
    fn default() -> Self {
        Self { idle_rounds: 10 }
    }
}

pub(crate) fn knob(name: &str, default: f64) -> f64 {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}

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
        if problem.formulation().penalty != Penalty::Linear {
            let rule = "bcfw needs a bounded dual, which only linear slack has; take one-slack or n-slack";
            return Err(Error::setting("penalty", rule));
        }
        let mut course = Course::new(self, problem, settings, observer)?;
        let pool = Pool::new(settings.threads)?;
        let mut run = Run::new(self, problem, settings.seed, &pool);
        if let Some(start) = &settings.warm_start {
            run.start(start, &mut course)?;
        }
        let status = run.rounds(&mut course)?;
        course.finish(status)
    }
}

/// What some steps have gained, and what they cost.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    rise: f64,
    work: f64,
}

impl Tally {
    fn rate(&self) -> f64 {
        if self.work > 0.0 { self.rise / self.work } else { 0.0 }
    }

    fn add(&mut self, other: Tally) {
        self.rise += other.rise;
        self.work += other.work;
    }
}

/// The state of a run.
struct Run<'r, 'a, T: Task> {
    settings: &'r Bcfw,
    problem: &'r Problem<'a, T>,
    pool: &'r Pool,
    dual: Dual<'r, 'a, T>,
    lanes: Lanes<T>,
    batch: Vec<u32>,
    side_by_side: usize,
    random: Random,
    /// Examples with weight.
    order: Vec<u32>,
    gaps: Gaps,
    passes: u32,
    since_exact: u32,
    steps: f64,
    seen: Gaps,
    active: usize,
    last_gap: f64,
}

impl<'r, 'a, T: Task> Run<'r, 'a, T> {
    fn new(settings: &'r Bcfw, problem: &'r Problem<'a, T>, seed: u64, pool: &'r Pool) -> Self {
        let n = problem.len();
        let cost = (0..n).map(|i| problem.task().oracle_cost(problem.input(i))).sum::<f64>() / n as f64;
        let side_by_side = ((knob("BLOCKWORK", 8192.0) / cost) as usize)
            .clamp(knob("BMIN", 16.0) as usize, knob("BMAX", 512.0) as usize)
            .min(n / knob("BSHARE", 32.0) as usize)
            .max(1);
        Self {
            settings,
            problem,
            pool,
            dual: Dual::new(problem),
            lanes: Lanes::new(side_by_side),
            batch: Vec::new(),
            side_by_side,
            random: Random::new(seed),
            order: (0..n as u32).filter(|&i| problem.weight(i as usize) > 0.0).collect(),
            gaps: Gaps::new(n),
            passes: 0,
            since_exact: 0,
            steps: 0.0,
            seen: Gaps::new(n),
            active: 0,
            last_gap: 0.0,
        }
    }

    fn worth(&self, course: &Course<'_>) -> f64 {
        knob("WORTH", 0.1) * course.target() / self.problem.formulation().c
    }

    fn start(&mut self, start: &Weights, course: &mut Course<'_>) -> Result<()> {
        self.examine(start, course)?;
        Ok(())
    }

    fn examine(&mut self, at: &Weights, course: &mut Course<'_>) -> Result<f64> {
        let worth = self.worth(course);
        let standing = course.in_oracle(|| self.dual.examine(self.pool, at, worth))?;
        course.so_far.oracle_calls += self.problem.len() as u64;
        course.offer(at, standing.primal);
        for (i, gap) in standing.gaps.into_iter().enumerate() {
            self.gaps.set(i, gap);
            self.seen.set(i, gap);
        }
        for (i, y) in standing.met {
            self.dual.add(i, y)?;
        }
        Ok(standing.primal)
    }

    fn certify(&mut self, course: &mut Course<'_>) -> Result<f64> {
        self.dual.rebuild()?;
        course.bound(self.dual.value());
        let w = std::mem::take(&mut self.dual.w);
        let primal = self.examine(&w, course)?;
        self.dual.w = w;
        self.since_exact = 0;
        if knob("AVG", 0.0) > 0.0 && !course.converged() {
            let mean = self.dual.average.mean(&self.dual.w);
            let p = course.offer_exact(self.problem, &mean, self.pool)?;
            if knob("VERBOSE", 0.0) > 0.0 {
                eprintln!("    mean {p:.5} against {primal:.5}");
            }
        }
        Ok(primal)
    }

    fn rounds(&mut self, course: &mut Course<'_>) -> Result<Status> {
        loop {
            let mut tally = self.pass(course)?;
            let first = tally;
            let mut cached = 0;
            self.active = self.order.len();
            self.last_gap = 0.0;
            while knob("CACHED", 1.0) > 0.0 {
                let last = self.cached_pass(course)?;
                tally.add(last);
                cached += 1;
                if last.rate() <= tally.rate() * knob("RATE", 1.0) {
                    break;
                }
            }
            self.dual.end_round(self.settings.idle_rounds);
            course.bound(self.dual.value());
            (course.so_far.working_set, course.so_far.support) = self.dual.count();
            self.since_exact += 1;
            let estimate = self.gaps.refresh();
            let due = estimate <= course.target() || self.since_exact >= knob("EXACT", 10.0) as u32;
            let exact = if due { Some(self.certify(course)?) } else { None };
            if knob("VERBOSE", 0.0) > 0.0 {
                let e = self.gaps.refresh();
                eprintln!(
                    "pass {:.2} dual {:.5} estimate {estimate:.5} exact {:?} gap {e:.5} first rise {:.5} rate {:.2e} cached {cached} rate {:.2e} set {} support {}",
                    course.passes(),
                    course.so_far.dual,
                    exact,
                    first.rise,
                    first.rate(),
                    tally.rate(),
                    course.so_far.working_set,
                    course.so_far.support
                );
            }
            match course.end_round(exact, &super::state::Unsaved) {
                ControlFlow::Break(status) => {
                    if exact.is_none() {
                        self.certify(course)?;
                    }
                    return Ok(status);
                }
                ControlFlow::Continue(()) => {}
            }
        }
    }

    fn pass(&mut self, course: &mut Course<'_>) -> Result<Tally> {
        let worth = self.worth(course);
        let n = self.order.len();
        let sampled = knob("GAPS", 1.0) > 0.0 && self.passes >= knob("PERM", 1.0) as u32;
        self.gaps.refresh();
        self.passes += 1;
        if !sampled {
            self.random.shuffle(&mut self.order);
        }
        let mut tally = Tally::default();
        let mut done = 0;
        while done < n {
            let most = self.side_by_side.min(n - done);
            self.batch.clear();
            if sampled {
                while self.batch.len() < most
                    && let Some(i) = self.gaps.draw(self.random.unit())
                {
                    self.batch.push(i as u32);
                }
                if self.batch.is_empty() {
                    break;
                }
            } else {
                self.batch.extend(&self.order[done..done + most]);
            }
            done += self.batch.len();
            course.so_far.oracle_calls += self.batch.len() as u64;
            let (problem, w) = (self.problem, &self.dual.w);
            course.in_oracle(|| {
                self.lanes.ask(self.pool, &self.batch, |i, scratch| problem.oracle(i, w, scratch))
            })?;
            for answer in self.lanes.answers() {
                let visit = self.dual.visit(answer.i, (answer.h > 0.0).then_some(&answer.y), worth)?;
                self.steps += 1.0;
                self.dual.average.count(self.steps, 1.0);
                self.gaps.set(answer.i, visit.gap);
                self.seen.set(answer.i, visit.gap);
                tally.rise += visit.rise;
                tally.work += visit.work + problem.task().oracle_cost(problem.input(answer.i));
            }
        }
        Ok(tally)
    }

    fn cached_pass(&mut self, course: &mut Course<'_>) -> Result<Tally> {
        let mut tally = Tally::default();
        let n = self.order.len();
        course.in_qp(|| -> Result<()> {
            if knob("CSAMPLE", 0.0) > 0.0 {
                let most = (n as f64 * knob("CSAMPLE", 1.0)) as usize;
                self.seen.refresh();
                for _ in 0..most {
                    let Some(i) = self.seen.draw(self.random.unit()) else { break };
                    let visit = self.dual.visit(i, None, 0.0)?;
                    self.seen.set(i, visit.gap);
                    self.steps += 1.0;
                    self.dual.average.count(self.steps, 1.0);
                    tally.rise += visit.rise;
                    tally.work += visit.work;
                }
                return Ok(());
            }
            self.random.shuffle(&mut self.order[..self.active]);
            let (mut kept, mut gap) = (0, 0.0);
            let small = knob("SHRINK", 0.0) * self.last_gap / self.active as f64;
            for at in 0..self.active {
                let i = self.order[at] as usize;
                let visit = self.dual.visit(i, None, 0.0)?;
                self.steps += 1.0;
                self.dual.average.count(self.steps, 1.0);
                tally.rise += visit.rise;
                tally.work += visit.work;
                gap += visit.gap;
                if visit.gap > small {
                    self.order.swap(at, kept);
                    kept += 1;
                }
            }
            self.last_gap = gap;
            self.active = kept;
            Ok(())
        })?;
        course.so_far.cache_hits += n as u64;
        Ok(tally)
    }
}
