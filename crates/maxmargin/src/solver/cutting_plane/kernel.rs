//! Cuts whose inner products a kernel gives.

use super::draw::{Sampling, Scheme};
use super::{CuttingPlane, Master, Placement, Run};
use crate::error::{Error, Result};
use crate::features::Collect;
use crate::kernel::Metric;
use crate::problem::{Formulation, Output, Penalty, Problem};
use crate::qp::Cut;
use crate::solver::Course;

/// A sample that is not violated is drawn again, so many times at most.
const TRIES: usize = 1000;

/// Training is over where a sample twice as large lowers P by no more than this share of the gap that was asked for.
const CONFIRMED: f64 = 1.0;

/// When the sample is everything, after so many cuts those from less are forgotten.
const GRACE: usize = 20;

/// A sample of fewer atoms is enlarged whatever P does: one that tells nothing does not lower P when it is doubled, either.
const FEW: usize = 1000;

impl CuttingPlane {
    /// Sampled cuts in linear time, with `size` atoms a cut (Yu and Joachims 2008, Algorithm 3): as in the paper, or with
    /// what makes it faster, the line search and a sample that grows.
    pub fn sampled(size: usize, scheme: Scheme) -> Self {
        let placement = match scheme {
            Scheme::Growing => Placement::LineSearch,
            Scheme::Uniform => Placement::QpPoint,
        };
        Self { placement, idle_rounds: 20, sampling: Some(Sampling { size, scheme }), ..Self::default() }
    }

    /// Samples are drawn from cuts of a kernel, of all examples together.
    pub(super) fn check_sampling(&self, problem: &Problem<'_>) -> Result<()> {
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

impl Run<'_, '_> {
    /// Adds the cut at hand: as much of it as is drawn.
    pub(super) fn push_drawn(&mut self, g: usize, rhs: f64, target: f64, metric: Metric<'_>) -> Result<()> {
        if let Some(Sampling { size, scheme: Scheme::Uniform }) = self.solver.sampling {
            let change = self.draw_uniformly(rhs, target, size)?;
            let mut image = vec![0.0; self.lhs.len()];
            metric.add_image(&change, &mut image, self.pool);
            let cut = Cut::from_entries(&change, rhs).with_image(image);
            return self.master.qp.push(g, cut, self.pool);
        }
        let penalty = self.problem.formulation().penalty;
        let Master { qp, drawn, center, .. } = &mut self.master;
        let drawn = &mut drawn[g];
        if let Some(Sampling { size, .. }) = self.solver.sampling {
            drawn.draw(size);
        }
        let step = drawn.follow(&self.lhs, metric, self.pool);
        let (lhs, image) = drawn.cut(metric);
        drawn.note(qp.pushed());
        if drawn.whole_cuts() == GRACE {
            // What samples have said may be false, and hold P above its minimum for ever.
            drawn.whole_since().into_iter().for_each(|cuts| qp.forget(cuts));
        }
        let mut rhs = rhs;
        if !drawn.is_whole() {
            // Where it is taken, the cut touches P all the same.
            let (center, ahead) = (center.as_slice(), self.ahead.as_slice());
            let at = |j: usize| center[j] + self.mu * (ahead[j] - center[j]);
            rhs += lhs.iter().zip(&self.lhs).enumerate().map(|(j, (a, b))| (a - b) * at(j)).sum::<f64>();
        }
        let cut = Cut::exact(&lhs, rhs).with_image(image);
        // Only the kernel's block is scaled.
        let is_near = step.scale == 1.0 || metric.block().len() as usize == lhs.len();
        if penalty == Penalty::Hard {
            // Opposite cuts must cancel to the last digits to be told as a contradiction: nothing is carried along.
            qp.push(g, cut.with_image(metric.image(&lhs, self.pool)), self.pool)
        } else if is_near && self.groups.len() == 1 && !qp.is_empty() && qp.newest() == drawn.last_pushed() {
            qp.push_near(g, cut, step.scale, &step.change)
        } else {
            qp.push(g, cut, self.pool)
        }
    }

    /// Takes note of the QP's value: a lower bound where all cuts are whole.
    pub(super) fn bound(&self, course: &mut Course<'_>) {
        let value = self.master.qp.value();
        if self.cuts_are_whole() {
            course.begin_bound();
            course.bound(value);
        } else {
            course.estimate(value);
        }
    }

    /// Is each cut one of all examples, so that the QP's value is a bound?
    pub(super) fn cuts_are_whole(&self) -> bool {
        let Master { qp, drawn, .. } = &self.master;
        match self.solver.sampling.map(|sampling| sampling.scheme) {
            None => true,
            Some(Scheme::Uniform) => false,
            Some(Scheme::Growing) => {
                drawn.iter().all(|drawn| drawn.whole_since().is_some_and(|cuts| qp.is_since(cuts)))
            }
        }
    }

    /// Where training seems to be over: the chances of the draw may have made the QP's value too high. The sample is
    /// doubled and training begins anew where it is, without the cuts so far, until P does not fall by that any more. When
    /// the sample is everything, only whole cuts are left, and their value is a proof.
    pub(super) fn confirm(&mut self, course: &mut Course<'_>) {
        let is_growing = self.solver.sampling.is_some_and(|sampling| sampling.scheme == Scheme::Growing);
        if !is_growing {
            return;
        }
        if self.cuts_are_whole() {
            // Those from samples may just have been dropped.
            self.bound(course);
            return;
        }
        let (target, primal) = (course.target(), course.so_far.primal);
        let Master { qp, drawn, confirmed, .. } = &mut self.master;
        let drawn = &mut drawn[0];
        if !drawn.is_whole() && drawn.len() >= FEW && *confirmed - primal <= CONFIRMED * target {
            return;
        }
        *confirmed = primal;
        qp.forget(drawn.whole_since().unwrap_or(u64::MAX));
        drawn.draw(drawn.len());
        course.estimate(0.0);
    }

    /// Algorithm 3, lines 17 to 20: `size` of the examples I that need slack, with replacement; each counts for |I| / size.
    /// Drawn anew while the sample is not violated by more than what training is to reach, and the whole cut is.
    fn draw_uniformly(&mut self, rhs: f64, target: f64, size: usize) -> Result<Vec<(u64, f64)>> {
        let (problem, n) = (self.problem, self.problem.len() as f64);
        let c = problem.formulation().c;
        let members: Vec<&(u32, Output)> = self.parts.iter().flat_map(|lines| lines.members.iter().flatten()).collect();
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
                let term = problem.term(problem.loss(i, y));
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
