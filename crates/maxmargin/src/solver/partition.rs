//! Some of the examples, which answer `cut(w)`: what training on several machines asks of each.
//!
//! A cut is a pure function of the examples, the formulation and w. Nothing is kept from one to the next but memory, so a
//! partition that was lost is loaded again elsewhere and gives the same bits.

use super::lines::{Keep, Lines, parts_of_a_group};
use crate::error::{Error, Result};
use crate::parallel::{Pool, ranges};
use crate::problem::{Penalty, Problem};
use crate::sparse::axpy;
use crate::weights::Weights;

/// The examples of a problem as a partition of a larger one, which has the same formulation but for its C.
pub struct Partition<'p, 'a> {
    problem: &'p Problem<'a>,
    parts: Vec<Lines<'p, 'a>>,
}

impl<'p, 'a> Partition<'p, 'a> {
    /// All examples of the problem.
    pub fn new(problem: &'p Problem<'a>) -> Result<Self> {
        if problem.formulation().penalty == Penalty::Hard {
            let rule = "partitions have cuts with slack; for the hard margin train on one machine";
            return Err(Error::setting("penalty", rule));
        }
        if problem.metric().is_some() {
            return Err(Error::setting("kernel", "partitions have no kernel values between each other"));
        }
        let n = problem.len();
        let parts = ranges(n, parts_of_a_group(n, problem.dimension()));
        Ok(Self { problem, parts: parts.into_iter().map(|range| Lines::new(problem, range, Keep::Nothing)).collect() })
    }

    /// The sum over the examples of their most violated constraints at w, `<w, lhs> >= rhs - xi`: the left-hand side and the
    /// right-hand side. With quadratic slack the tangent of `sum H_i^2 / 2`. The same bits for any number of threads.
    pub fn cut(&mut self, w: &Weights, pool: &Pool) -> Result<(Vec<f64>, f64)> {
        let sums: Result<Vec<_>> =
            pool.map(self.parts.iter_mut().collect(), |lines| lines.ask_and_cut(w)).into_iter().collect();
        let mut rhs = 0.0;
        let mut lhs = vec![0.0; self.problem.dimension()];
        for (lines, sums) in self.parts.iter().zip(sums?) {
            axpy(1.0, lines.lhs(), &mut lhs);
            rhs += sums.rhs;
        }
        Ok((lhs, rhs))
    }

    /// The sum of the losses of the predictions at w.
    pub fn loss(&self, w: &Weights, pool: &Pool) -> Result<f64> {
        Ok(self.problem.train_loss(w, pool)? * self.problem.len() as f64)
    }
}
