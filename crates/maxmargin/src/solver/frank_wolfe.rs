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

use super::lines::{Keep, Lines, Sums, mean_cut, parts_of_a_group};
use super::{Course, Observer, Settings, Solution, Solver, Status};
use crate::error::{Error, Result};
use crate::parallel::{Pool, ranges};
use crate::problem::{Penalty, Problem};
use crate::sparse::dot;
use crate::task::Task;
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

    fn solve<T: Task>(
        &self,
        problem: &Problem<'_, T>,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Solution> {
        if problem.formulation().penalty != Penalty::Linear {
            let rule = "frank-wolfe needs a bounded dual, which only linear slack has; take one-slack or n-slack";
            return Err(Error::setting("penalty", rule));
        }
        let mut course = Course::new(problem, settings, observer)?;
        let pool = Pool::new(settings.threads)?;
        let (n, d, c) = (problem.len(), problem.dimension(), problem.formulation().c);
        let mut parts: Vec<_> = ranges(n, parts_of_a_group(n, d))
            .into_iter()
            .map(|range| Lines::new(problem, range, Keep::Nothing))
            .collect();
        let mut corner = vec![0.0; d];
        // The first corner is taken where the user says; the dual begins at 0 all the same.
        let mut at = settings.warm_start.clone().unwrap_or_else(|| Weights::zeros(d));
        let mut w = Weights::zeros(d);
        let mut l = 0.0;
        let mut stalled = 0;
        loop {
            let before = course.gap();
            let sums = course.in_oracle(|| {
                pool.map(parts.iter_mut().collect(), |lines| lines.ask_and_cut(&at))
                    .into_iter()
                    .collect::<Result<Vec<Sums>>>()
            })?;
            course.oracle_calls += n as u64;
            let slack: f64 = sums.iter().map(|s| s.slack).sum();
            let primal = 0.5 * dot(at.as_slice(), at.as_slice()) + c / n as f64 * slack;
            course.offer(&at, primal);
            let l_s = c * mean_cut(parts.iter().map(Lines::lhs).zip(&sums), n, &mut corner);
            for x in &mut corner {
                *x *= c;
            }

            let norm2 = dot(w.as_slice(), w.as_slice());
            let inner = dot(w.as_slice(), &corner);
            let (gap, width) = (norm2 - inner - l + l_s, norm2 - 2.0 * inner + dot(&corner, &corner));
            // A corner without features costs no norm: all the way, where it gains.
            let step = if gap <= 0.0 { 0.0 } else { (gap / width).min(1.0) };
            for (w, s) in w.as_mut_slice().iter_mut().zip(&corner) {
                *w += step * (s - *w);
            }
            l += step * (l_s - l);
            course.bound(l - 0.5 * dot(w.as_slice(), w.as_slice()));
            at.clone_from(&w);
            course.working_set = 1;
            if let ControlFlow::Break(status) = course.end_round(Some(primal)) {
                return Ok(course.finish(self.name(), status));
            }
            stalled = if course.gap() < before { 0 } else { stalled + 1 };
            if stalled >= STALLED_ROUNDS {
                return Ok(course.finish(self.name(), Status::Stalled));
            }
        }
    }
}
