//! What P is, roughly, where decoding the sets of all examples would take too long.

use std::time::{Duration, Instant};

use super::look::add_range;
use super::visit::table;
use super::{Course, Run};
use crate::error::Result;
use crate::parallel::{Pool, ranges};
use crate::problem::OracleScratch;
use crate::task::{Part, Sets, Slots, Task};

/// Where P is only to be known roughly so many examples are decoded, and this share of the slack is taken for what there is at least.
const SAMPLE: usize = 16;
const SURE_SLACK: f64 = 0.5;

/// Parts in which examples are decoded side by side.
const PARTS: usize = 64;

/// After the time is up decoding goes on for this share of the time that training took, at least so long.
const MORE_TIME: f64 = 0.1;
const LEAST_TIME: Duration = Duration::from_secs(1);

impl<T: Task> Run<'_, '_, T> {
    /// Is the gap far from what is asked for, by the look of some examples? Decoding all of them may take long.
    pub(super) fn is_far(&self, course: &mut Course<'_>, pool: &Pool) -> Result<bool> {
        let n = self.problem.len();
        let some = (0..n.min(SAMPLE)).map(|k| k * n / n.min(SAMPLE)).collect();
        let slacks = course.in_oracle(|| {
            pool.map(some, |i: usize| self.problem.slack_at_most(i, &self.w, &mut OracleScratch::default()))
        });
        let mean = slacks.into_iter().sum::<Result<f64>>()? / n.min(SAMPLE) as f64;
        let primal = 0.5 * self.w.norm2() + SURE_SLACK * self.problem.formulation().c * mean;
        Ok(primal - self.dual_value() > course.target_at(primal))
    }

    /// What P is at most at w, and at least anywhere, soon: examples are decoded while there is time, and of the others it is taken
    /// that each label gains all that good pairs could bring.
    pub(super) fn certificate_in_time(
        &self,
        sets: &dyn Sets,
        course: &mut Course<'_>,
        pool: &Pool,
    ) -> Result<(f64, f64)> {
        let deadline = Instant::now() + LEAST_TIME.max(course.elapsed().mul_f64(MORE_TIME));
        course.in_oracle(|| {
            let helps = self.helps(sets);
            let slack = |i: usize, scratch: &mut OracleScratch<T>, gains: &mut Vec<f64>| {
                if Instant::now() < deadline {
                    self.problem.slack_at_most(i, &self.w, scratch)
                } else {
                    self.slack_with(i, &helps, gains)
                }
            };
            let sums = pool.map(ranges(self.problem.len(), PARTS), |range| {
                let (mut scratch, mut gains) = (OracleScratch::default(), Vec::new());
                range.map(|i| slack(i, &mut scratch, &mut gains)).sum::<Result<f64>>()
            });
            let share = self.problem.formulation().c / self.problem.len() as f64;
            let primal = 0.5 * self.w.norm2() + share * sums.into_iter().sum::<Result<f64>>()?;
            Ok((primal, self.dual_bound(pool).max(self.position.bound)))
        })
    }

    /// By label: half of what its factors score that score well. Of two labels that are in each has a half.
    fn helps(&self, sets: &dyn Sets) -> Vec<f64> {
        let (x, factors) = (self.problem.input(0), table(&self.w, sets.factor_block()));
        let (mut helps, mut scope) = (vec![0.0; self.factored.variables(x)], Vec::new());
        for (f, &score) in factors.iter().enumerate().filter(|(_, score)| **score > 0.0) {
            self.factored.factor(x, f, &mut scope, &mut |_| ());
            for &label in &scope {
                helps[label as usize] += 0.5 * score;
            }
        }
        helps
    }

    /// What the slack of example i, times its weight, is at most where labels have these helps.
    fn slack_with(&self, i: usize, helps: &[f64], gains: &mut Vec<f64>) -> Result<f64> {
        let (x, truth) = (self.problem.input(i), self.problem.truth(i));
        let (mut labels, mut most) = (Vec::new(), 0.0);
        self.factored.labels(x, truth, &mut labels);
        gains.clear();
        gains.resize(helps.len(), 0.0);
        self.factored.unary(x, 0, &mut |part| {
            add_range(&self.w, &Part { slots: Slots::Each, ..part }, helps.len() as u32, 0, gains);
        });
        for ((gain, help), &own) in gains.iter().zip(helps).zip(&labels) {
            let cost = self.cost(own);
            most += if own == 1 { cost + (gain + help - cost).max(0.0) } else { (gain + help + cost).max(0.0) };
        }
        let h = most - self.problem.task().score(&self.w, x, truth)?;
        Ok(self.problem.weight(i) * self.problem.slack(h.max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Gdmm;
    use super::*;
    use crate::problem::{Formulation, Problem};
    use crate::random::Random;
    use crate::sparse::SparseMatrix;
    use crate::tasks::multilabel::{Multilabel, Pairs, SetLoss};
    use crate::weights::Weights;

    #[test]
    fn no_set_violates_by_more_than_labels_with_all_their_helps() {
        let mut random = Random::new(5);
        for labels in [1, 2, 5, 6] {
            let mut x = SparseMatrix::new();
            (0..10).for_each(|_| x.push_row((0..3).map(|j| (j, random.unit() as f32 - 0.5))));
            x.set_columns(3);
            let every: Vec<Vec<u32>> =
                (0..1_u32 << labels).map(|bits| (0..labels).filter(|k| bits >> k & 1 == 1).collect()).collect();
            let (inputs, pairs) = (x.views(), Pairs::all(labels).unwrap());
            let truths: Vec<_> = (0..10).map(|_| every[random.below(every.len())].clone()).collect();
            let task = Multilabel::new(3, labels, pairs, SetLoss::Hamming).unwrap();
            let formulation = Formulation { loss_scale: 1.5, ..Formulation::default() };
            let problem = Problem::new(&task, &inputs, &truths, None, formulation).unwrap();
            let gdmm = Gdmm::default();
            let mut run = Run::new(&gdmm, &problem, task.factored().unwrap(), problem.zero(), 0);
            run.w = Weights::from((0..problem.dimension()).map(|_| 4.0 * random.unit() - 2.0).collect::<Vec<_>>());
            let (helps, mut gains) = (run.helps(run.sets().unwrap()), Vec::new());
            for i in 0..problem.len() {
                let most = run.slack_with(i, &helps, &mut gains).unwrap();
                let violations = every.iter().map(|y| problem.violation(i, &run.w, y).unwrap());
                let true_most = violations.fold(0.0, f64::max);
                assert!(most >= true_most - 1e-9, "{most} is below {true_most}");
                // Without pairs that score well nothing is left open but what bad ones forbid.
                assert!(labels > 1 || (most - true_most).abs() <= 1e-9, "{most} is not {true_most}");
            }
        }
    }
}
