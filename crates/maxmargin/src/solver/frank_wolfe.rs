//! One slack without a QP: a line search towards each new cut, the variant that Joachims, Finley, Yu 2009 mention after
//! Theorem 5, which is the method of Frank and Wolfe on the 1-slack dual.
//!
//! ```text
//! D = l - 1/2 |w|^2,  w = sum a_j lhs_j,  l = sum a_j rhs_j,  a >= 0,  sum a <= C
//! corner of the cut at w:   w_s = C lhs,  l_s = C rhs
//! P(w) - D = <w, w - w_s> - l + l_s,   step  (P - D) / |w - w_s|^2  clipped to [0, 1]
//! ```
//!
//! It needs a bounded dual, hence linear slack.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::course::Rederived;
use super::lines::{Keep, Lines, Sums, mean_cut, parts_of_a_group};
use super::state::{Resumable, Writer, check, check_weights, is_sound};
use super::{Course, Observer, Settings, Solution, Solver};
use crate::error::{Error, Result};
use crate::parallel::{Pool, ranges};
use crate::problem::{Penalty, Problem};
use crate::sparse::dot;
use crate::weights::Weights;

/// So many rounds without a smaller gap: the rest is rounding. The primal value of single rounds goes up and down, but the
/// dual rises as long as f64 can tell.
const STALLED_ROUNDS: u32 = 1000;

/// Frank-Wolfe on the 1-slack dual.
#[derive(Debug, Clone, Copy, Default)]
pub struct FrankWolfe;

impl Solver for FrankWolfe {
    fn name(&self) -> &'static str {
        "frank-wolfe"
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
        super::refuse_kernel(self.name(), problem)?;
        if problem.formulation().penalty != Penalty::Linear {
            let rule = "frank-wolfe needs a bounded dual, which only linear slack has; take bcfw, one-slack or n-slack";
            return Err(Error::setting("penalty", rule));
        }
        let mut course = Course::new(self, problem, settings, observer)?;
        let pool = Pool::new(settings.threads)?;
        let (n, d, c) = (problem.len(), problem.dimension(), problem.formulation().c);
        let mut parts: Vec<_> = ranges(n, parts_of_a_group(n, d))
            .into_iter()
            .map(|range| Lines::new(problem, range, Keep::Nothing))
            .collect();
        let mut corner = vec![0.0; d];
        let mut point = match course.resume(problem, &pool)? {
            Some(mut saved) => {
                let mut point: Point = saved.reader.take()?;
                point.check(d)?;
                if let Some(growth) = saved.growth {
                    point.rescale(growth);
                    course.bound(point.dual());
                }
                if saved.is_foreign {
                    let (dual, scale) = (point.dual(), point.l.abs() + norm2(&point.w));
                    course.check_bound(Rederived { dual, scale, from_examples: false })?;
                }
                point
            }
            // The first corner is taken where the user says; the dual begins at 0 all the same.
            None => Point::new(settings.warm_start.clone().unwrap_or_else(|| Weights::zeros(d))),
        };
        let mut decision = course.begin(&point);
        loop {
            if let ControlFlow::Break(status) = decision {
                return course.finish(status);
            }
            let before = course.gap();
            let sums = course.in_oracle(|| {
                pool.map(parts.iter_mut().collect(), |lines| lines.ask_and_cut(&point.at))
                    .into_iter()
                    .collect::<Result<Vec<Sums>>>()
            })?;
            course.so_far.oracle_calls += n as u64;
            let slack: f64 = sums.iter().map(|s| s.slack).sum();
            let primal = 0.5 * norm2(&point.at) + c / n as f64 * slack;
            course.offer(&point.at, primal);
            let l_s = c * mean_cut(parts.iter().map(Lines::lhs).zip(&sums), n, &mut corner);
            for x in &mut corner {
                *x *= c;
            }
            point.step(&corner, l_s);
            course.bound(point.dual());
            course.so_far.working_set = 1;
            point.stalled = if course.gap() < before { 0 } else { point.stalled + 1 };
            course.so_far.stalled = point.stalled >= STALLED_ROUNDS;
            decision = course.end_round(Some(primal), &point);
        }
    }
}

/// The point of the dual, and where the next corner is taken.
#[derive(Debug, Serialize, Deserialize)]
struct Point {
    w: Weights,
    l: f64,
    at: Weights,
    /// Rounds without a smaller gap.
    stalled: u32,
}

impl Point {
    fn new(at: Weights) -> Self {
        Self { w: Weights::zeros(at.len()), l: 0.0, at, stalled: 0 }
    }

    fn dual(&self) -> f64 {
        self.l - 0.5 * norm2(&self.w)
    }

    /// Towards the corner, as far as the dual rises.
    fn step(&mut self, corner: &[f64], l_s: f64) {
        let norm2 = norm2(&self.w);
        let inner = dot(self.w.as_slice(), corner);
        let (gap, width) = (norm2 - inner - self.l + l_s, norm2 - 2.0 * inner + dot(corner, corner));
        // A corner without features costs no norm: all the way, where it gains.
        let step = if gap <= 0.0 { 0.0 } else { (gap / width).min(1.0) };
        for (w, s) in self.w.as_mut_slice().iter_mut().zip(corner) {
            *w += step * (s - *w);
        }
        self.l += step * (l_s - self.l);
        self.at.clone_from(&self.w);
    }

    /// C has grown by this factor (or shrunk): of the multiples of the point that are feasible for the new C the best.
    fn rescale(&mut self, growth: f64) {
        let best = self.l / norm2(&self.w);
        // 0 / 0 where there is no point yet.
        let factor = if best < growth { best.max(0.0) } else { growth };
        self.w.as_mut_slice().iter_mut().for_each(|w| *w *= factor);
        self.l *= factor;
        self.at.clone_from(&self.w);
        self.stalled = 0;
    }

    fn check(&self, d: usize) -> Result<()> {
        check_weights(&self.w, d)?;
        check_weights(&self.at, d)?;
        check(is_sound(self.l) && self.stalled <= STALLED_ROUNDS, "the point")
    }
}

impl Resumable for Point {
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(self)
    }
}

fn norm2(w: &Weights) -> f64 {
    dot(w.as_slice(), w.as_slice())
}
