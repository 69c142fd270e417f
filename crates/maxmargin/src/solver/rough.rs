//! What P is, roughly, where decoding the sets of all examples would take too long.

use std::time::Instant;

use crate::error::Result;
use crate::parallel::{Pool, ranges};
use crate::problem::{Factors, OracleScratch, Problem};
use crate::task::Sets;
use crate::weights::Weights;

/// Parts in which examples are decoded side by side.
const PARTS: usize = 64;

/// Sets whose P is asked for when there is no time left to decode all of them.
pub(super) struct Rough<'r, 'a> {
    problem: &'r Problem<'a>,
    factored: &'r dyn Factors,
    sets: &'r dyn Sets,
}

/// What is known of P soon.
pub(super) struct Soon {
    /// As the oracle finds it, where there was time to ask it for all examples.
    pub(super) found: Option<f64>,
    pub(super) at_most: f64,
}

impl<'r, 'a> Rough<'r, 'a> {
    /// None where outputs are no sets, or where it does not add up what labels bring.
    pub(super) fn new(problem: &'r Problem<'a>) -> Option<Self> {
        let factored = problem.factors().filter(|_| problem.formulation().adds_up())?;
        Some(Self { problem, factored, sets: factored.sets()? })
    }

    /// P at w: examples are decoded until the deadline, and of the others it is taken that each label gains all that good pairs
    /// could bring.
    pub(super) fn objective(&self, w: &Weights, deadline: Instant, pool: &Pool) -> Result<Soon> {
        let (problem, helps) = (self.problem, self.helps(w));
        let parts = pool.map(ranges(problem.len(), PARTS), |range| {
            let (mut scratch, mut gains) = (OracleScratch::default(), Vec::new());
            let (mut found, mut at_most) = (Some(0.0), 0.0);
            for i in range {
                let slack = if Instant::now() < deadline {
                    let (slack, most) = problem.slack_between(i, w, &mut scratch)?;
                    found = found.map(|sum| sum + slack);
                    most
                } else {
                    found = None;
                    self.slack_with(i, w, &helps, &mut gains)?
                };
                at_most += slack;
            }
            Ok((found, at_most))
        });
        let (mut found, mut at_most) = (Some(0.0), 0.0);
        for part in parts {
            let (of_part, most) = part?;
            found = found.zip(of_part).map(|(sum, slack)| sum + slack);
            at_most += most;
        }
        let (half_norm2, share) = (0.5 * w.norm2(), problem.c_per_example());
        let primal = |slack: f64| half_norm2 + share * slack;
        Ok(Soon { found: found.map(primal), at_most: primal(at_most) })
    }

    /// By label: half of what its factors score that score well. Of two labels that are in each has a half.
    fn helps(&self, w: &Weights) -> Vec<f64> {
        let (x, factors) = (self.problem.place(0), w.of(self.sets.factor_block()));
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
    fn slack_with(&self, i: usize, w: &Weights, helps: &[f64], gains: &mut Vec<f64>) -> Result<f64> {
        let (problem, x) = (self.problem, self.problem.place(i));
        let (mut labels, mut most) = (Vec::new(), 0.0);
        self.factored.truth_labels(x, &mut labels);
        gains.resize(helps.len(), 0.0);
        // All labels have the features of the first.
        self.factored.unary(x, 0, &mut |part| w.scores(part.block, part.phi, gains));
        for ((gain, help), &own) in gains.iter().zip(helps).zip(&labels) {
            let cost = self.factored.cost(own) * problem.formulation().loss_scale;
            most += if own == 1 { cost + (gain + help - cost).max(0.0) } else { (gain + help + cost).max(0.0) };
        }
        let h = most - problem.truth_score(i, w)?;
        Ok(problem.weight(i) * problem.slack(h.max(0.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Formulation, Output};
    use crate::random::Random;
    use crate::sparse::SparseMatrix;
    use crate::tasks::multilabel::{Multilabel, Pairs, SetLoss};

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
            let rough = Rough::new(&problem).unwrap();
            let w = Weights::from((0..problem.dimension()).map(|_| 4.0 * random.unit() - 2.0).collect::<Vec<_>>());
            let (helps, mut gains) = (rough.helps(&w), Vec::new());
            for i in 0..problem.len() {
                let most = rough.slack_with(i, &w, &helps, &mut gains).unwrap();
                let violations = every.iter().map(|y| problem.violation(i, &w, &Output::new(y.clone())).unwrap());
                let true_most = violations.fold(0.0, f64::max);
                assert!(most >= true_most - 1e-9, "{most} is below {true_most}");
                // Without pairs that score well nothing is left open but what bad ones forbid.
                assert!(labels > 1 || (most - true_most).abs() <= 1e-9, "{most} is not {true_most}");
            }
            // With all the time there is P is found, with none it is at most what labels with their helps bring.
            let (pool, now) = (Pool::new(1).unwrap(), Instant::now());
            let hour = now + std::time::Duration::from_hours(1);
            let (soon, at_once) = [hour, now].map(|t| rough.objective(&w, t, &pool).unwrap()).into();
            let primal = problem.objective(&w, &pool).unwrap();
            assert!((soon.found.unwrap() - primal).abs() <= 1e-9 * primal && soon.at_most >= primal - 1e-9);
            assert!(at_once.found.is_none() && at_once.at_most >= primal - 1e-9);
        }
    }
}
