//! Dual coordinates: exact steps on one example's variables at a time, for tasks whose outputs are a short list.
//!
//! ```text
//! max_a  sum a rhs - 1/2 |w|^2 - 1/2 sum_i r_i S_i^2,   w = sum a lhs,   a >= 0,   S_i = sum of i's own a's <= U_i
//! linear slack: U_i = C c_i / n, r_i = 0;   quadratic slack: no cap, r_i = n / (C c_i)
//! ```
//!
//! (Hsieh, Chang, Lin, Keerthi, Sundararajan 2008; Keerthi, Sundararajan, Chang, Hsieh, Lin 2008.) Blocks are visited in
//! random order; those at rest in a corner are left out until an exact pass over all examples. Beyond these papers:
//!
//! - A start at small C. With a large C most variables end at their cap, and small steps take long to get there. At a small C
//!   they are there at once, and a multiple of that solution is a good start for a larger one.
//! - Where w has few coordinates and examples are many, coordinate steps crawl in the end; Newton steps on the proximal
//!   dual, in [`newton`], then finish.
//! - The estimate of the gap that a pass makes on its way tells when an exact pass is worth it.

use std::ops::ControlFlow;

use super::{Course, Observer, Progress, Settings, Solution, Solver, Status, Stop};
use crate::error::{Error, Result};
use crate::parallel::Pool;
use crate::problem::{Penalty, Problem};
use crate::task::{Places, Task};
use crate::weights::Weights;

mod block;
mod coordinates;
mod newton;
mod stack;

use coordinates::Coordinates;
use newton::Newton;
use stack::{Blocks, Examples, Signed, Slotted};

/// Dual coordinates.
#[derive(Debug, Clone, Default)]
pub struct DualCoordinate {
    /// How the end is reached.
    pub finish: Finish,
}

/// How dual coordinates come to their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Finish {
    /// By Newton steps where they promise to be faster.
    #[default]
    Fastest,
    /// By coordinate steps alone.
    Coordinates,
    /// By Newton steps as soon as there is a start.
    Newton,
}

/// Newton steps keep a matrix over the coordinates of w; beyond so many they are not thought of.
const MAX_NEWTON: usize = 1024;

/// And the examples must be so many times more.
const EXAMPLES_PER_COORDINATE: usize = 16;

/// What Newton steps cost: as a rule so many, each as long as so many looks at every example and a factorisation, of whose
/// multiplications so many take as long as a look. Measured on a9a, w8a and covertype.
const NEWTON_STEPS: f64 = 12.0;
const NEWTON_LOOKS: f64 = 1.2;
const NEWTON_FLOPS: f64 = 250.0;

/// Newton steps begin from the solution on a sample, one example in `SAMPLE_STEP`, where that has `SAMPLE_SIZE` of them.
const SAMPLE_STEP: usize = 16;
const SAMPLE_SIZE: usize = 4096;
/// The sample is solved until its gap is this times the one asked for.
const SAMPLE_GAP: f64 = 3.0;

impl Solver for DualCoordinate {
    fn name(&self) -> &'static str {
        "dual-coordinate"
    }

    fn solve<T: Task>(
        &self,
        problem: &Problem<'_, T>,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Solution> {
        if problem.formulation().penalty == Penalty::Hard {
            let rule = "dual-coordinate has no hard margin, whose dual has no bounds; take n-slack";
            return Err(Error::setting("penalty", rule));
        }
        let listed = problem.task().listed();
        let Some((listed, stacked)) = listed.and_then(|l| l.stacked().map(|s| (l, s))) else {
            let rule = "dual-coordinate needs a task whose outputs are a list over one input vector; take bcfw";
            return Err(Error::setting("solver", rule));
        };
        let mut course = Course::new(self, problem, settings, observer)?;
        let pool = Pool::new(settings.threads)?;
        let examples = Examples::new(problem, listed, stacked, &pool);
        let status = match stacked.places() {
            Places::Signs(block) => {
                let blocks = Signed::new(examples, block);
                let start = self.start(problem, settings, &blocks, &mut course)?;
                Run { solver: self, problem, settings, pool: &pool, blocks: &blocks }.solve(start, &mut course)
            }
            Places::Slots(block) => {
                let blocks = Slotted::new(examples, block);
                let start = self.start(problem, settings, &blocks, &mut course)?;
                Run { solver: self, problem, settings, pool: &pool, blocks: &blocks }.solve(start, &mut course)
            }
        };
        course.finish(status)
    }
}

impl DualCoordinate {
    /// Can Newton steps be thought of?
    fn newton_fits<T: Task>(&self, problem: &Problem<'_, T>) -> bool {
        let d = problem.dimension();
        match self.finish {
            Finish::Coordinates => false,
            Finish::Newton => true,
            Finish::Fastest => d <= MAX_NEWTON && problem.len() >= EXAMPLES_PER_COORDINATE * d,
        }
    }

    /// Where Newton steps shall do it all, they begin from the solution on a sample, which coordinate steps find fast.
    fn start<T: Task>(
        &self,
        problem: &Problem<'_, T>,
        settings: &Settings,
        blocks: &impl Blocks,
        course: &mut Course<'_>,
    ) -> Result<Option<Weights>> {
        let is_large = problem.len() >= SAMPLE_STEP * SAMPLE_SIZE && mean_curvature(blocks) > LARGE;
        if settings.warm_start.is_some() || !self.newton_fits(problem) || !is_large {
            return Ok(None);
        }
        let stop = match settings.stop_rule(problem) {
            Stop::Gap(epsilon) => Stop::Gap(SAMPLE_GAP * epsilon),
            Stop::RelativeGap(r) => Stop::RelativeGap(if SAMPLE_GAP * r < 1.0 { SAMPLE_GAP * r } else { r }),
        };
        let settings = Settings { stop: Some(stop), ..settings.clone() };
        let sample = problem.every(SAMPLE_STEP);
        let solution = self.solve(&sample, &settings, &mut |progress: &Progress| course.on_sample(progress))?;
        course.after_sample(&solution.report);
        Ok(Some(solution.weights))
    }
}

/// An exact pass is made when the gap that a pass saw on its way, times a discount, is small enough. This is the first one;
/// each exact pass corrects it.
const FIRST_DISCOUNT: f64 = 0.3;

/// With more outputs than that, passes among those with weight follow a full one, while they still see this share of its gap.
const NARROW: usize = 4;
const SUPPORT_PASSES: u32 = 5;
const SUPPORT_SHARE: f64 = 0.3;

/// With C times the mean of |phi|^2 above this, a start at smaller C pays.
const LARGE: f64 = 3.0;
/// C times the mean of |phi|^2 at that start.
const SMALL: f64 = 0.3;
/// Passes at a smaller C end when the gap that they saw is this share of the dual.
const START_GAP: f64 = 0.1;
/// At most so many of them for one C.
const START_PASSES: u32 = 10;

/// The mean over the examples of `C c_i / n |phi|^2`: by how much the largest step on one example changes its own scores.
fn mean_curvature(blocks: &impl Blocks) -> f64 {
    let n = blocks.len();
    let curvature = |i| {
        let example = blocks.example(i);
        example.share * example.norm2
    };
    (0..n).map(curvature).sum::<f64>() / n as f64
}

struct Run<'r, 'a, T: Task, B> {
    solver: &'r DualCoordinate,
    problem: &'r Problem<'a, T>,
    settings: &'r Settings,
    pool: &'r Pool,
    blocks: &'r B,
}

impl<T: Task, B: Blocks> Run<'_, '_, T, B> {
    fn solve(&self, start: Option<Weights>, course: &mut Course<'_>) -> Status {
        let (penalty, d) = (self.problem.formulation().penalty, self.problem.dimension());
        let mut coordinates = Coordinates::new(self.blocks, penalty, d, self.settings.seed);
        let warm = self.settings.warm_start.is_some();
        if let Some(w) = start.or_else(|| self.settings.warm_start.clone()) {
            if !warm || self.solver.newton_fits(self.problem) {
                match self.newton(w, &mut coordinates, course) {
                    ControlFlow::Break(status) => return status,
                    ControlFlow::Continue(()) => {}
                }
            }
        } else {
            match self.small_c(&mut coordinates, course) {
                ControlFlow::Break(status) => return status,
                ControlFlow::Continue(()) => {}
            }
        }
        self.passes(&mut coordinates, course)
    }

    /// Brings the variables near their caps: a solution at small C, multiplied.
    fn small_c(&self, coordinates: &mut Coordinates<'_, B>, course: &mut Course<'_>) -> ControlFlow<Status> {
        let mean = mean_curvature(self.blocks);
        if self.problem.formulation().penalty != Penalty::Linear || mean <= LARGE {
            return ControlFlow::Continue(());
        }
        coordinates.set_stage(SMALL / mean);
        while coordinates.stage() < 1.0 {
            for _ in 0..START_PASSES {
                let seen = course.in_oracle(|| coordinates.pass());
                course.so_far.oracle_calls += seen.looks;
                course.end_round(None, &super::state::Unsaved)?;
                let (rhs, norm2) = coordinates.totals();
                if seen.gap <= START_GAP * (rhs - 0.5 * norm2) {
                    break;
                }
            }
            let (rhs, norm2) = coordinates.totals();
            // The multiple with the largest dual value.
            let most = 1.0 / coordinates.stage();
            let factor = (rhs / norm2).min(most);
            if factor < 2.0 {
                coordinates.set_stage(1.0);
            } else {
                coordinates.scale(if factor >= most { most } else { factor.min(most) });
                if factor >= most {
                    coordinates.set_stage(1.0);
                }
            }
            coordinates.wake_all();
        }
        ControlFlow::Continue(())
    }

    /// Passes of coordinate steps until the certificate is good enough.
    fn passes(&self, coordinates: &mut Coordinates<'_, B>, course: &mut Course<'_>) -> Status {
        // How much the exact gap was below the one that the pass before had seen.
        let mut discount: f64 = FIRST_DISCOUNT;
        let mut pace = Pace::default();
        loop {
            let seen = course.in_oracle(|| coordinates.pass());
            course.so_far.oracle_calls += seen.looks;
            pace.after(&seen);
            if self.blocks.width() > NARROW {
                for _ in 0..SUPPORT_PASSES {
                    let on_support = course.in_oracle(|| coordinates.pass_on_support());
                    course.so_far.cache_hits += on_support.looks;
                    pace.also(&on_support);
                    if on_support.gap < SUPPORT_SHARE * seen.gap {
                        break;
                    }
                }
            }
            let (rhs, norm2) = coordinates.totals();
            let dual = rhs - 0.5 * norm2;
            let expected = discount * seen.gap;
            let target =
                if course.so_far.primal.is_finite() { course.target() } else { course.target_at(dual + expected) };
            let mut exact = None;
            if expected <= target {
                exact = Some(self.certify(coordinates, course));
                discount = ((course.gap()) / seen.gap).clamp(0.1, 1.0);
                pace = Pace::default();
            }
            if let ControlFlow::Break(status) = course.end_round(exact, &super::state::Unsaved) {
                if exact.is_none() {
                    self.certify(coordinates, course);
                }
                return status;
            }
            if self.solver.newton_fits(self.problem) && self.newton_is_faster(&pace, target, discount) {
                let w = coordinates.w.clone();
                if let ControlFlow::Break(status) = self.newton(w, coordinates, course) {
                    return status;
                }
                pace = Pace::default();
            }
        }
    }

    fn certify(&self, coordinates: &mut Coordinates<'_, B>, course: &mut Course<'_>) -> f64 {
        let exact = course.in_oracle(|| coordinates.certify(self.pool));
        course.so_far.oracle_calls += self.blocks.len() as u64;
        course.bound(exact.dual);
        course.offer(&coordinates.w, exact.primal);
        (course.so_far.working_set, course.so_far.support) = (exact.support, exact.support);
        exact.primal
    }

    /// Would coordinate steps take longer than Newton steps, at their pace?
    fn newton_is_faster(&self, pace: &Pace, target: f64, discount: f64) -> bool {
        if self.solver.finish == Finish::Newton {
            return true;
        }
        let d = self.problem.dimension() as f64;
        let n = self.blocks.len() as f64;
        let Some(left) = pace.looks_left(target / discount) else { return false };
        left > NEWTON_STEPS * (NEWTON_LOOKS * n + d * d * d / NEWTON_FLOPS)
    }

    fn largest_rhs(&self) -> f64 {
        self.problem.term(self.problem.max_loss() / self.problem.formulation().loss_scale).rhs
    }

    /// Newton steps from w and the variables, until the certificate is good enough or nothing more is gained.
    fn newton(&self, w: Weights, coordinates: &mut Coordinates<'_, B>, course: &mut Course<'_>) -> ControlFlow<Status> {
        const STEPS: u32 = 200;
        let penalty = self.problem.formulation().penalty;
        let a = std::mem::take(&mut coordinates.a);
        let mut newton = Newton::new(self.blocks, penalty, self.largest_rhs(), w, a);
        let mut ended = ControlFlow::Continue(());
        for _ in 0..STEPS {
            let point = course.in_oracle(|| newton.look(self.pool));
            course.so_far.oracle_calls += self.blocks.len() as u64;
            course.bound(point.dual);
            course.offer(&newton.w, point.primal);
            (course.so_far.working_set, course.so_far.support) = (point.support, point.support);
            ended = course.end_round(Some(point.primal), &super::state::Unsaved);
            if ended.is_break() {
                break;
            }
            if Newton::<B>::is_near(&point, course.target()) {
                course.in_oracle(|| newton.recenter(self.pool));
                continue;
            }
            if !course.in_oracle(|| newton.step(self.pool)) {
                break;
            }
            course.so_far.oracle_calls += self.blocks.len() as u64;
        }
        if ended.is_continue() {
            newton.take_variables(self.pool);
            coordinates.a = newton.a;
            coordinates.rebuild();
            coordinates.wake_all();
        }
        ended
    }
}

/// How fast coordinate steps close the gap.
#[derive(Default)]
struct Pace {
    looks: f64,
    /// Looks so far and the logarithm of the gap seen, of the last passes.
    recent: Vec<(f64, f64)>,
}

impl Pace {
    const PASSES: usize = 4;

    fn after(&mut self, seen: &coordinates::Seen) {
        self.looks += seen.looks as f64;
        if self.recent.len() == 2 * Self::PASSES {
            self.recent.remove(0);
        }
        self.recent.push((self.looks, seen.gap.max(f64::MIN_POSITIVE).ln()));
    }

    /// Looks at a few outputs only cost less.
    fn also(&mut self, on_support: &coordinates::Seen) {
        const COST: f64 = 0.4;
        self.looks += COST * on_support.looks as f64;
    }

    /// Looks until the gap is the target; None while nothing can be said.
    fn looks_left(&self, target: f64) -> Option<f64> {
        if self.recent.len() < Self::PASSES {
            return None;
        }
        let (first, last) = (self.recent.first()?, self.recent.last()?);
        let fall = (first.1 - last.1) / (last.0 - first.0);
        let left = last.1 - target.ln();
        Some(if fall > 0.0 { left / fall } else { f64::INFINITY })
    }
}
