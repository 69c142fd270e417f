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
//! - Where w has many coordinates, conjugate gradients on the face of the variables that are free take turns with coordinate
//!   steps, as [`coordinates`] has them, where a small gap is asked for.
//! - Sets of labels without pairs are as many problems of two classes as there are labels: [`labels`].
//! - The estimate of the gap that a pass makes on its way tells when an exact pass is worth it.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use serde::{Deserialize, Serialize};

use super::course::{Rederived, SoFar};
use super::state::{Resumable, Writer, check, is_sound};
use super::{Course, Observer, Progress, Settings, Solution, Solver, Status, Stop};
use crate::error::{Error, Result};
use crate::parallel::Pool;
use crate::problem::{Classes, Penalty, Problem};
use crate::task::Places;
use crate::weights::Weights;

mod block;
mod coordinates;
pub(super) mod labels;
mod newton;
mod pace;
mod rows;
mod slots;
mod stack;

use coordinates::{Coordinates, Exact};
use labels::Shared;
use newton::Newton;
use pace::Pace;
use rows::Rowed;
use stack::{Blocks, Signed, Slotted};

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

/// What Newton steps cost: as a rule so many, each as long as so many looks at every example (of one output, of many), and a
/// factorisation of d^3 / 3 multiplications. A look takes as long as 3 multiplications for each entry and output, and so many more.
/// Of one output estimated from steps on a9a, of many measured on covertype and letter.
const NEWTON_STEPS: f64 = 20.0;
const NEWTON_LOOKS: [f64; 2] = [0.65, 3.0];
const LOOK: f64 = 80.0;

/// Newton steps begin from the solution on a sample, one example in `SAMPLE_STEP`, where that has `SAMPLE_SIZE` of them.
const SAMPLE_STEP: usize = 16;
const SAMPLE_SIZE: usize = 4096;
/// With many outputs coordinate steps alone get as far as this relative gap before Newton steps would.
const NEAR: f64 = 3e-3;
/// The sample is solved to ten times the relative gap asked for, at most to this one.
const SAMPLE_GAP: f64 = 1e-2;

impl Solver for DualCoordinate {
    fn name(&self) -> &'static str {
        "dual-coordinate"
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
        super::refuse_kernel(self.name(), problem)?;
        if problem.formulation().penalty == Penalty::Hard {
            let rule = "dual-coordinate has no hard margin, whose dual has no bounds; take n-slack";
            return Err(Error::setting("penalty", rule));
        }
        let mut course = Course::new(self, problem, settings, observer)?;
        let pool = Pool::new(settings.threads)?;
        let status = if let Some(factored) = labels::apart(problem) {
            labels::solve(self, Shared::new(problem, factored), problem, settings, &pool, &mut course)
        } else if let Some(classes) = Classes::of(problem, &pool) {
            self.solve_classes(classes, problem, settings, &pool, &mut course)
        } else {
            let rule = "dual-coordinate needs a task whose outputs are a list over one input vector, or label sets without \
                        pairs (Hamming loss, margin rescaling, linear slack); take bcfw";
            Err(Error::setting("solver", rule))
        }?;
        course.finish(status)
    }
}

impl DualCoordinate {
    /// Solves a problem whose outputs are a list.
    fn solve_classes(
        &self,
        classes: Classes<'_>,
        problem: &Problem<'_>,
        settings: &Settings,
        pool: &Pool,
        course: &mut Course<'_>,
    ) -> Result<Status> {
        match classes.places {
            Places::Signs(block) => {
                let blocks = Signed::new(classes, block);
                Run::new(self, problem, settings, pool, &blocks, course)?.solve(course)
            }
            Places::Slots(block) => {
                let blocks = Slotted::new(classes, block);
                Run::new(self, problem, settings, pool, &blocks, course)?.solve(course)
            }
            Places::Rows(block, lambda) => {
                let blocks = Rowed::new(classes, block, lambda);
                Run::new(self, problem, settings, pool, &blocks, course)?.solve(course)
            }
        }
    }

    /// Can Newton steps be thought of where w has so many coordinates?
    fn newton_fits(&self, d: usize) -> bool {
        match self.finish {
            Finish::Coordinates => false,
            Finish::Newton => d > 0,
            Finish::Fastest => d > 0 && d <= MAX_NEWTON,
        }
    }
}

/// w of the solution on a sample, which coordinate steps find fast: where Newton steps begin.
fn weights_on_sample(
    solver: &DualCoordinate,
    problem: &Problem<'_>,
    settings: &Settings,
    relative_target: f64,
    course: &mut Course<'_>,
) -> Result<Weights> {
    let stop = Stop::RelativeGap(SAMPLE_GAP.min(10.0 * relative_target).max(relative_target));
    let settings = Settings { stop: Some(stop), keep_state: false, ..settings.clone() };
    let mut observer = |progress: &Progress| course.on_sample(progress);
    let solution = solver.solve(&problem.every(SAMPLE_STEP), &settings, &mut observer)?;
    course.after_sample(&solution.report);
    Ok(solution.weights)
}

/// With a relative target below this, w is summed up anew before an exact pass.
const DRIFT: f64 = 1e-6;

/// An exact pass is made when the gap that a pass saw on its way, times a discount, is small enough. This is the first one;
/// each exact pass corrects it.
const FIRST_DISCOUNT: f64 = 0.3;
const DISCOUNTS: Range<f64> = 0.1..4.0;
/// Also when this share of what D lacks of P at w = 0 is small enough.
const LEFT_AT_START: f64 = 0.2;

/// With more outputs than that, passes among those with weight follow a full one, while they still see this share of its gap: at
/// most so many, and where steps on faces do most of the work so many.
const NARROW: usize = 12;
const SUPPORT_PASSES: u32 = 5;
const SUPPORT_PASSES_BETWEEN_FACES: u32 = 2;
const SUPPORT_SHARE: f64 = 0.3;
/// They are left out where a gap this many times larger would do.
const SURE: f64 = 2.0;

/// With C times the mean of |phi|^2 above this, a start at smaller C pays.
const LARGE: f64 = 3.0;
/// C times the mean of |phi|^2 at that start.
const SMALL: f64 = 1.0;
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

/// So many looks at examples Newton steps take as long as, as a rule, where w has d coordinates.
fn newton_looks(blocks: &impl Blocks, d: usize) -> f64 {
    let (d, n, width) = (d as f64, blocks.len() as f64, blocks.width() as f64);
    let look = LOOK + 3.0 * width * blocks.entries() as f64 / n;
    NEWTON_STEPS * (NEWTON_LOOKS[usize::from(width > 1.0)] * n + d * d * d / 3.0 / look)
}

/// How much smaller a gap is than the one that a pass saw on its way.
fn discount(gap: f64, seen: f64) -> f64 {
    if seen > 0.0 { (gap / seen).clamp(DISCOUNTS.start, DISCOUNTS.end) } else { 1.0 }
}

/// Where a run stands between two rounds.
#[derive(Serialize, Deserialize)]
struct Place {
    phase: Phase,
    /// How much smaller the exact gap is than the one that a pass sees on its way.
    discount: f64,
    pace: Pace,
    /// Are P and D known where the last round has ended?
    certified: bool,
    stall: Stall,
    /// Newton steps have come to their end: they are not tried again.
    without_newton: bool,
}

impl Place {
    fn at(phase: Phase) -> Self {
        let (pace, stall) = (Pace::default(), Stall::default());
        Self { phase, discount: FIRST_DISCOUNT, pace, certified: false, stall, without_newton: false }
    }

    /// Is this where a run can have been?
    fn check(&self) -> Result<()> {
        let phase = match self.phase {
            Phase::SmallC { passes } => passes < START_PASSES,
            Phase::Coordinates => true,
            Phase::Newton { strength, steps } => strength > 0.0 && is_sound(strength) && steps <= MOST_STEPS,
        };
        check(phase, "phase")?;
        check(self.discount >= 0.0 && self.discount <= DISCOUNTS.end, "discount")?;
        check(self.pace.is_sound(), "pace")
    }
}

/// Sees when nothing more is gained in f64.
#[derive(Default, Serialize, Deserialize)]
struct Stall {
    /// P and D when last one of them was gained on.
    primal: f64,
    dual: f64,
    /// How often none was since.
    times: u32,
}

impl Stall {
    /// So often, and that is the end.
    const MOST: u32 = 20;
    /// Less than that is no gain, as a share of P.
    const GAIN: f64 = 1e-14;

    fn after(&mut self, so_far: &mut SoFar) {
        let least = Self::GAIN * so_far.primal;
        if self.times == 0 || so_far.primal < self.primal - least || so_far.dual > self.dual + least {
            (self.primal, self.dual, self.times) = (so_far.primal, so_far.dual, 1);
        } else {
            self.times = self.times.saturating_add(1);
        }
        so_far.stalled = self.times > Self::MOST;
    }
}

/// For larger relative gaps steps on faces are not thought of: coordinate steps are there as soon.
const FACE_GAP: f64 = 5e-4;

/// After so many looks at every example there is an exact pass, whatever passes saw.
const EXACT_AFTER: f64 = 50.0;

/// What the next round does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Phase {
    /// Coordinate steps at a smaller C, after so many passes at it.
    SmallC { passes: u32 },
    /// Coordinate steps.
    Coordinates,
    /// Newton steps, after so many of them.
    Newton { strength: f64, steps: u32 },
}

/// So many Newton steps at a stretch, at most.
const MOST_STEPS: u32 = 100;

struct Run<'r, B: Blocks> {
    solver: &'r DualCoordinate,
    problem: &'r Problem<'r>,
    /// The largest right-hand side of all constraints.
    largest_rhs: f64,
    pool: &'r Pool,
    blocks: &'r B,
    coordinates: Coordinates<'r, B>,
    /// Made when first needed: its tables are large.
    newton: Option<Newton<'r, B>>,
    place: Place,
    /// P at w = 0, at most.
    at_zero: f64,
}

impl<B: Blocks> Resumable for Run<'_, B> {
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.place)?;
        out.put(&self.coordinates.now)
    }

    fn weights(&self) -> Option<Cow<'_, Weights>> {
        Some(Cow::Borrowed(&self.coordinates.now.w))
    }
}

impl<'r, B: Blocks> Run<'r, B> {
    fn new(
        solver: &'r DualCoordinate,
        problem: &'r Problem<'r>,
        settings: &Settings,
        pool: &'r Pool,
        blocks: &'r B,
        course: &mut Course<'_>,
    ) -> Result<Self> {
        let (formulation, d) = (problem.formulation(), problem.dimension());
        let penalty = formulation.penalty;
        let largest_rhs = formulation.term(problem.max_loss() / formulation.loss_scale).rhs;
        let at_zero = formulation.slack(largest_rhs) * (0..blocks.len()).map(|i| blocks.share(i)).sum::<f64>();
        let mut place = Place::at(Phase::Coordinates);
        if let Some(mut saved) = course.resume(problem, pool)? {
            let saved_place: Place = saved.reader.take()?;
            saved_place.check()?;
            let mut coordinates = Coordinates::resume(blocks, penalty, d, saved.reader.take()?)?;
            if saved.is_foreign {
                let w_follows = matches!(saved_place.phase, Phase::SmallC { .. } | Phase::Coordinates);
                let (dual, scale) = coordinates.rederive(saved.growth.unwrap_or(1.0), w_follows)?;
                // Newton steps know bounds at other variables than these.
                if w_follows && !saved_place.without_newton {
                    course.check_bound(Rederived { dual, scale, from_examples: true })?;
                }
            }
            if let Some(growth) = saved.growth {
                coordinates.follow_c(growth);
            } else {
                place = saved_place;
            }
            return Ok(Self { solver, problem, largest_rhs, pool, blocks, coordinates, newton: None, place, at_zero });
        }
        let mut coordinates = Coordinates::new(blocks, penalty, d, settings.seed);
        let (fits, mean) = (solver.newton_fits(d), mean_curvature(blocks));
        let relative_target = course.target_at(at_zero) / at_zero;
        let pays = mean > LARGE && (blocks.width() == 1 || relative_target < NEAR);
        if let Some(start) = &settings.warm_start {
            course.offer_exact(problem, start, pool)?;
            if fits {
                coordinates.now.w.clone_from(start);
                place.phase = Phase::newton::<B>(largest_rhs);
            }
        } else if fits && pays && blocks.len() >= SAMPLE_STEP * SAMPLE_SIZE {
            coordinates.now.w = weights_on_sample(solver, problem, settings, relative_target, course)?;
            place.phase = Phase::newton::<B>(largest_rhs);
        } else if penalty == Penalty::Linear && mean > LARGE {
            coordinates.set_stage(SMALL / mean);
            place.phase = Phase::SmallC { passes: 0 };
        }
        Ok(Self { solver, problem, largest_rhs, pool, blocks, coordinates, newton: None, place, at_zero })
    }

    /// The rounds.
    fn solve(&mut self, course: &mut Course<'_>) -> Result<Status> {
        let mut decision = course.begin(self);
        loop {
            if let ControlFlow::Break(status) = decision {
                if !self.place.certified && status != Status::Converged {
                    self.certify(course);
                }
                // Nobody wants weights worse than none.
                if course.so_far.primal > self.at_zero {
                    let zeros = Weights::zeros(self.problem.dimension());
                    course.offer_exact(self.problem, &zeros, self.pool)?;
                }
                return Ok(status);
            }
            let exact = match self.place.phase {
                Phase::SmallC { passes } => {
                    self.pass_at_small_c(passes, course);
                    None
                }
                Phase::Coordinates => self.pass(course),
                Phase::Newton { strength, steps } => Some(self.newton_step(strength, steps, course)),
            };
            self.place.certified = exact.is_some();
            decision = course.end_round(exact, self);
        }
    }

    /// Brings the variables near their caps: a solution at small C, multiplied.
    fn pass_at_small_c(&mut self, passes: u32, course: &mut Course<'_>) {
        let coordinates = &mut self.coordinates;
        let seen = course.in_oracle(|| coordinates.pass());
        course.so_far.oracle_calls += seen.looks;
        let (rhs, norm2) = coordinates.totals();
        if seen.gap > START_GAP * (rhs - 0.5 * norm2) && passes + 1 < START_PASSES {
            self.place.phase = Phase::SmallC { passes: passes + 1 };
            return;
        }
        let is_over = coordinates.raise_stage();
        self.place.phase = if is_over { Phase::Coordinates } else { Phase::SmallC { passes: 0 } };
    }

    /// A pass of coordinate steps, and the certificate where the pass says that it might do. Returns P then.
    fn pass(&mut self, course: &mut Course<'_>) -> Option<f64> {
        let seen = course.in_oracle(|| self.coordinates.pass());
        course.so_far.oracle_calls += seen.looks;
        self.place.pace.after(&seen);
        let mut totals = self.coordinates.totals();
        let mut is_near = self.is_near_from_start(totals, course) || self.is_near(SURE * seen.gap, totals, course);
        if !is_near && self.blocks.width() > NARROW {
            let most = if self.wants_small_gap(course) { SUPPORT_PASSES_BETWEEN_FACES } else { SUPPORT_PASSES };
            for _ in 0..most {
                let on_support = course.in_oracle(|| self.coordinates.pass_on_support());
                course.so_far.cache_hits += on_support.looks;
                self.place.pace.also(&on_support);
                if on_support.gap < SUPPORT_SHARE * seen.gap {
                    break;
                }
            }
            totals = self.coordinates.totals();
        }
        is_near |= self.is_near(seen.gap, totals, course);
        // Who does not take part may have to, after so much has changed.
        let has_fallen = self.wants_small_gap(course) && self.place.pace.has_fallen(&seen);
        let is_due = has_fallen || self.place.pace.looks() >= EXACT_AFTER * self.blocks.len() as f64;
        if is_near || is_due {
            let exact = self.certify(course);
            let (place, gap) = (&mut self.place, exact.primal - exact.dual);
            // Of this point, which need not be the best so far.
            place.discount = discount(gap, seen.gap);
            place.pace.begin_again();
            place.stall.after(&mut course.so_far);
            return Some(exact.primal);
        }
        if !self.place.without_newton
            && self.solver.newton_fits(self.problem.dimension())
            && self.newton_is_faster(course)
        {
            self.place.phase = Phase::newton::<B>(self.largest_rhs);
        } else if self.wants_small_gap(course) && self.place.pace.crawls(self.target_seen(course)) {
            let pace = &mut self.place.pace;
            let climb = course.in_oracle(|| self.coordinates.climb(pace.allowance(), self.pool));
            course.so_far.cache_hits += climb.looks;
            pace.climbed(climb);
        }
        None
    }

    /// Is the gap expected to be small enough, after a pass that saw this one?
    fn is_near(&self, seen: f64, (rhs, norm2): (f64, f64), course: &Course<'_>) -> bool {
        let expected = self.place.discount * seen;
        let target = course.target_at(course.so_far.primal.min(rhs - 0.5 * norm2 + expected));
        // What the violations' own rounding adds to a gap.
        let rounding = f64::EPSILON * (rhs + self.problem.formulation().c * self.largest_rhs);
        expected <= target.max(rounding)
    }

    /// The same while P is known at w = 0 only. A first pass sees a gap that its own steps close; where C is small, what is left
    /// of P there says more.
    fn is_near_from_start(&self, (rhs, norm2): (f64, f64), course: &Course<'_>) -> bool {
        let left = self.at_zero - (rhs - 0.5 * norm2);
        let is_linear = self.problem.formulation().penalty == Penalty::Linear;
        is_linear && course.so_far.primal.is_infinite() && LEFT_AT_START * left <= course.target_at(self.at_zero)
    }

    /// P and D by an exact pass over all examples.
    fn certify(&mut self, course: &mut Course<'_>) -> Exact {
        // The smaller the gap, the more of it would be the drift of the running sum.
        if course.relative_target() < DRIFT {
            self.coordinates.rebuild();
        }
        let exact = course.in_oracle(|| self.coordinates.certify(self.pool));
        course.so_far.oracle_calls += self.blocks.len() as u64;
        course.bound(exact.dual);
        course.offer(&self.coordinates.now.w, exact.primal);
        (course.so_far.working_set, course.so_far.support) = (exact.support, exact.support);
        exact
    }

    /// Would coordinate steps take longer than Newton steps, at their pace?
    fn newton_is_faster(&self, course: &Course<'_>) -> bool {
        if self.solver.finish == Finish::Newton {
            return true;
        }
        let newton = newton_looks(self.blocks, self.problem.dimension());
        let pace = &self.place.pace;
        // What is foretold may be wrong; what has been spent is not.
        pace.spent() > newton || pace.looks_left(self.target_seen(course)).is_some_and(|left| left > newton)
    }

    /// The gap that a pass would see where the target is reached.
    fn target_seen(&self, course: &Course<'_>) -> f64 {
        course.target_at(course.so_far.primal.min(self.at_zero)) / self.place.discount
    }

    /// Is the gap asked for one where steps on faces pay?
    fn wants_small_gap(&self, course: &Course<'_>) -> bool {
        let primal = course.so_far.primal.min(self.at_zero);
        course.target_at(primal) <= FACE_GAP * primal
    }

    /// A Newton step, or the next proximal point. Returns P.
    fn newton_step(&mut self, strength: f64, steps: u32, course: &mut Course<'_>) -> f64 {
        let (penalty, d) = (self.problem.formulation().penalty, self.problem.dimension());
        let coordinates = &mut self.coordinates;
        let newton = self.newton.get_or_insert_with(|| {
            coordinates.rest();
            Newton::new(self.blocks, penalty, strength, d)
        });
        newton.strength = strength;
        let now = &mut self.coordinates.now;
        let point = course.in_oracle(|| newton.look(&now.a, &now.w, self.pool));
        course.so_far.oracle_calls += self.blocks.len() as u64;
        course.bound(point.dual);
        course.offer(&now.w, point.primal);
        (course.so_far.working_set, course.so_far.support) = (point.support, point.support);
        if course.converged() {
            return point.primal;
        }
        let mut goes_on = steps < MOST_STEPS;
        if goes_on && Newton::<B>::is_near(&point, course.target()) {
            course.in_oracle(|| newton.recenter(&mut now.a, self.pool));
        } else if goes_on {
            goes_on = course.in_oracle(|| newton.step(&now.a, &mut now.w, self.pool));
            course.so_far.oracle_calls += newton.looks();
        }
        if goes_on {
            self.place.phase = Phase::Newton { strength: newton.strength, steps: steps + 1 };
        } else {
            // Coordinate steps go on from the variables at w, or from the last proximal point where these are worse.
            if point.dual >= course.so_far.dual {
                newton.take_variables(&mut now.a, self.pool);
            }
            self.newton = None;
            self.place.without_newton = true;
            self.coordinates.rebuild();
            self.coordinates.wake_all();
            let place = &mut self.place;
            (place.phase, place.discount, place.pace) = (Phase::Coordinates, FIRST_DISCOUNT, Pace::default());
            place.stall.after(&mut course.so_far);
        }
        point.primal
    }
}

impl Phase {
    fn newton<B: Blocks>(largest_rhs: f64) -> Self {
        Self::Newton { strength: Newton::<B>::first_strength(largest_rhs), steps: 0 }
    }
}
