//! The values that a report gives: P, D, and how far rounding may have moved them.
//!
//! P is the objective of the weights that are returned, and D has to be a lower bound of the minimum. What training carries
//! along is good enough to train with, but not to be reported: kernel values may be in single precision, and at a large C
//! the terms of D nearly cancel. So both are computed anew at the end, and D pays for its rounding error.

use super::course::Rederived;
use crate::error::Result;
use crate::parallel::Pool;
use crate::problem::{Penalty, Problem, length_of};
use crate::qp::Qp;
use crate::sparse::dot;
use crate::weights::Weights;

/// A point of the dual, whose value `D = linear - 1/2 |w|^2` with `w = sum a lhs` is a lower bound of P.
#[derive(Debug, Clone)]
pub(super) struct DualPoint {
    /// The coordinates of w; with a kernel its coefficients.
    pub(super) w: Vec<f64>,
    /// `sum a rhs`, less what a ridge takes.
    pub(super) linear: f64,
    /// The sum of the dual variables.
    pub(super) sum: f64,
}

impl DualPoint {
    /// The solution of the QP over some cuts.
    pub(super) fn of(qp: &Qp) -> Self {
        let (mut w, mut linear, mut sum) = (vec![0.0; qp.dimension()], 0.0, 0.0);
        for (cut, &a) in qp.cuts().iter().zip(qp.alphas()).filter(|(_, a)| **a > 0.0) {
            cut.add_to(a, &mut w);
            linear += a * cut.rhs();
            sum += a;
        }
        Self { w, linear, sum }
    }

    /// The value of a QP without a kernel that was read from a state that came from outside. With a kernel the value is
    /// computed anew at the end of each run.
    pub(super) fn rederived(qp: &Qp) -> Rederived {
        let point = Self::of(qp);
        // At a large C the cuts cancel in w, but not in their rounding errors.
        let mass = qp.mass();
        let scale = point.linear.abs() + mass * mass;
        Rederived { dual: point.linear - 0.5 * dot(&point.w, &point.w), scale, from_examples: false }
    }
}

impl Problem<'_> {
    /// P of weights that are reported, and how far rounding may have moved it.
    ///
    /// With a kernel the scores of the weights are computed anew from their coefficients, in double precision.
    pub fn reported_objective(&self, w: &mut Weights, pool: &Pool) -> Result<(f64, f64)> {
        if self.metric().is_some() {
            let values = with_kernel(self, pool, w, None)?;
            return Ok((values.primal, values.primal_error));
        }
        let primal = self.objective(w, pool)?;
        Ok((primal, self.sizes()?.error_of_primal(primal, self.length(w))))
    }
}

/// P and D of a report.
#[derive(Debug, Clone)]
pub(super) struct Values {
    /// P of the weights.
    pub(super) primal: f64,
    /// How far P may be off.
    pub(super) primal_error: f64,
    /// The lower bound, its rounding error subtracted; None where no dual point was given.
    pub(super) dual: Option<f64>,
}

/// With a kernel: P of these weights and D of the point, by kernel values in double precision.
///
/// The weights get the scores that belong to their coefficients. With the hard margin they are stretched until they
/// separate the data.
pub(super) fn with_kernel(
    problem: &Problem<'_>,
    pool: &Pool,
    weights: &mut Weights,
    point: Option<&DualPoint>,
) -> Result<Values> {
    let metric = problem.metric().expect("a problem with a kernel");
    let mut vectors = vec![weights.coefficients()];
    vectors.extend(point.map(|point| point.w.as_slice()));
    let mut images = metric.reported_images(&vectors, pool).into_iter();
    let (image, of_point) = (images.next().expect("the image of the weights"), images.next());
    weights.both_mut().0.copy_from_slice(&image);
    let primal = if problem.formulation().penalty == Penalty::Hard {
        let kept = 1.0 - problem.worst_shortfall(weights, pool)?;
        if kept > 0.0 {
            weights.scale(1.0 / kept);
            0.5 * weights.norm2()
        } else {
            f64::INFINITY
        }
    } else {
        problem.objective(weights, pool)?
    };
    let sizes = problem.sizes()?;
    let primal_error = sizes.error_of_primal(primal, problem.length(weights));
    let Some((point, image)) = point.zip(of_point) else {
        return Ok(Values { primal, primal_error, dual: None });
    };
    let length = length_of(metric, &point.w);
    let dual_error = sizes.error_of_dual(point.linear, length, length);
    let dual = point.linear - 0.5 * dot(&point.w, &image) - dual_error;
    Ok(Values { primal, primal_error, dual: Some(dual) })
}

/// Without a kernel: P as it is known, and D of the point, or the bound that is known where there is none.
pub(super) fn without_kernel(
    problem: &Problem<'_>,
    (weights, primal): (&Weights, f64),
    (point, bound): (Option<&DualPoint>, f64),
) -> Result<Values> {
    let sizes = problem.sizes()?;
    let norm2 = weights.norm2();
    let primal_error = sizes.error_of_primal(primal, norm2.sqrt());
    let (dual, dual_error) = if let Some(point) = point {
        let norm2 = dot(&point.w, &point.w);
        let mass = point.sum * sizes.reach;
        (point.linear - 0.5 * norm2, sizes.error_of_dual(point.linear, norm2.sqrt(), mass))
    } else {
        // At the optimum D = P, and w is that of the dual point.
        let linear = bound + 0.5 * norm2;
        (bound, sizes.error_of_dual(linear, norm2.sqrt(), sizes.mass(linear)))
    };
    Ok(Values { primal, primal_error, dual: Some(dual - dual_error) })
}
