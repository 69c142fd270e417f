//! Cuts whose inner products a kernel gives.

use super::draw::{Sampling, Scheme};
use super::{CuttingPlane, Master, Placement, Run};
use crate::error::{Error, Result};
use crate::features::Collect;
use crate::kernel::Metric;
use crate::problem::{Formulation, Penalty, Problem};
use crate::qp::Cut;
use crate::task::Task;

/// A sample that is not violated is drawn again, so many times at most.
const TRIES: usize = 1000;

impl CuttingPlane {
    /// Sampled cuts in linear time, with `size` atoms a cut (Yu and Joachims 2008, Algorithm 3): as in the paper, or with
    /// what makes it faster, the line search and cuts drawn from differences.
    pub fn sampled(size: usize, scheme: Scheme) -> Self {
        let placement = match scheme {
            Scheme::Differences => Placement::LineSearch,
            Scheme::Uniform => Placement::QpPoint,
        };
        Self { placement, idle_rounds: 20, sampling: Some(Sampling { size, scheme }), ..Self::default() }
    }

    /// Samples are drawn from cuts of a kernel, of all examples together.
    pub(super) fn check_sampling<T: Task>(&self, problem: &Problem<'_, T>) -> Result<()> {
        let Formulation { penalty, .. } = problem.formulation();
        let rule = match self.sampling {
            None => return Ok(()),
            Some(Sampling { size: 0, .. }) => return Err(Error::setting("sample-size", "must be at least 1")),
            _ if problem.metric().is_none() => "sampled cuts are for kernels, whose cuts are dear; take one-slack",
            _ if penalty != Penalty::Linear => "sampled cuts are for linear slack; take one-slack or n-slack",
            _ if self.groups > 1 => "sampled cuts have one slack",
            _ => return Ok(()),
        };
        Err(Error::setting("solver", rule))
    }
}

impl<T: Task> Run<'_, '_, T> {
    /// Adds the cut at hand: as much of it as is drawn.
    pub(super) fn push_drawn(&mut self, g: usize, rhs: f64, target: f64, metric: Metric<'_>) -> Result<()> {
        let (size, scheme) = self.solver.sampling.map_or((usize::MAX, Scheme::Differences), |s| (s.size, s.scheme));
        let mut rhs = rhs;
        let (change, is_near) = if scheme == Scheme::Uniform {
            let change = self.draw_uniformly(rhs, target, size)?;
            let drawn = &mut self.master.drawn[g];
            drawn.clear();
            drawn.go(&change, metric, self.pool);
            (change, false)
        } else {
            let Master { drawn, random, center, .. } = &mut self.master;
            let step = drawn[g].step_towards(&self.lhs, metric, size, random);
            drawn[g].go(&step.change, metric, self.pool);
            if !step.is_exact {
                // Where it is taken, the cut touches P all the same.
                let (center, ahead) = (center.as_slice(), self.ahead.as_slice());
                let at = |j: usize| center[j] + self.mu * (ahead[j] - center[j]);
                rhs += drawn[g].lhs.iter().zip(&self.lhs).enumerate().map(|(j, (a, b))| (a - b) * at(j)).sum::<f64>();
            }
            (step.change, step.is_near)
        };
        let Master { qp, drawn, .. } = &mut self.master;
        let cut = Cut::from_dense(&drawn[g].lhs, rhs, 0.0, -1.0).with_image(drawn[g].image.clone());
        if is_near && self.groups.len() == 1 && !qp.is_empty() {
            qp.push_near(g, cut, &change);
        } else {
            qp.push(g, cut, self.pool);
        }
        Ok(())
    }

    /// Algorithm 3, lines 17 to 20: `size` of the examples I that need slack, with replacement; each counts for |I| / size.
    /// Drawn anew while the sample is not violated by more than what training is to reach, and the whole cut is.
    fn draw_uniformly(&mut self, rhs: f64, target: f64, size: usize) -> Result<Vec<(u64, f64)>> {
        let (problem, n) = (self.problem, self.problem.len() as f64);
        let c = problem.formulation().c;
        let members: Vec<&(u32, T::Output)> =
            self.parts.iter().flat_map(|lines| lines.members.iter().flatten()).collect();
        let Master { qp, random, center, .. } = &mut self.master;
        let w = center.as_slice();
        // value = |w|^2 / 2 + C xi
        let enough = (qp.value() - 0.5 * center.norm2()) / c + target / c;
        let mut sum = Collect::default();
        for _ in 0..TRIES {
            sum.clear();
            for _ in 0..size {
                let (i, y) = members[random.below(members.len())];
                let i = *i as usize;
                let term = problem.term(problem.task().loss(problem.truth(i), y));
                let share = members.len() as f64 / (n * size as f64) * problem.weight(i);
                problem.emit(i, y, share * term.factor, &mut sum)?;
            }
            let drawn = sum.merged();
            if rhs - drawn.iter().map(|&(j, value)| value * w[j as usize]).sum::<f64>() > enough {
                break;
            }
        }
        Ok(sum.merged().to_vec())
    }
}
