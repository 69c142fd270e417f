//! Cross-validation: each part of the examples is predicted by what the others have taught.

use std::ops::ControlFlow;

use super::path::follow;
use super::{Observer, Settings, Solver, Status};
use crate::error::{Error, Result};
use crate::numeric::square;
use crate::parallel::Pool;
use crate::problem::Problem;
use crate::random::Random;

/// The examples, dealt to parts.
#[derive(Debug, Clone)]
pub struct Folds {
    folds: Vec<Fold>,
}

#[derive(Debug, Clone)]
struct Fold {
    held: Vec<u32>,
    others: Vec<u32>,
}

impl Folds {
    /// Deals examples to `count` folds at random, each class evenly. `classes`: of each example.
    pub fn deal(classes: &[u32], count: usize, seed: u64) -> Result<Self> {
        if !(2..=classes.len()).contains(&count) {
            let rule = format!("must be from 2 to the number of examples, {}, not {count}", classes.len());
            return Err(Error::setting("folds", rule));
        }
        let mut order: Vec<u32> = (0..classes.len() as u32).collect();
        Random::new(seed).shuffle(&mut order);
        // Stable: the order within a class stays random. Dealt as cards are, class after class, all folds have as many.
        order.sort_by_key(|&i| classes[i as usize]);
        let mut fold_of = vec![0; classes.len()];
        for (k, &i) in order.iter().enumerate() {
            fold_of[i as usize] = k % count;
        }
        let all = 0..classes.len() as u32;
        let fold = |k: usize| {
            let (held, others) = all.clone().partition(|&i| fold_of[i as usize] == k);
            Fold { held, others }
        };
        Ok(Self { folds: (0..count).map(fold).collect() })
    }

    /// Number of folds.
    pub fn len(&self) -> usize {
        self.folds.len()
    }

    /// Never true: there are at least two.
    pub fn is_empty(&self) -> bool {
        self.folds.is_empty()
    }
}

/// What cross-validation says of a C.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Validation {
    /// C of the whole problem.
    pub c: f64,
    /// Mean over the folds of the mean loss on the examples that were held out.
    pub loss: f64,
    /// Standard error of that mean.
    pub standard_error: f64,
}

/// Trains on all folds but one, at each C of the ladder, and predicts the one; and so for each fold. A single example
/// weighs the same as in the whole problem, so C is smaller by the share that is held out. `begins` hears of each fold. None
/// where the observer stopped it.
pub fn cross_validate<'a, O: Observer>(
    solver: &dyn Solver,
    problem: &Problem<'a>,
    ladder: &[f64],
    folds: &'a Folds,
    settings: &Settings,
    observer: &mut O,
    mut begins: impl FnMut(&mut O, usize),
) -> Result<Option<Vec<Validation>>> {
    let pool = Pool::new(settings.threads)?;
    let mut losses = vec![Vec::with_capacity(folds.len()); ladder.len()];
    for (k, fold) in folds.folds.iter().enumerate() {
        begins(observer, k);
        let (training, held) = (problem.only(&fold.others), problem.only(&fold.held));
        let share = fold.others.len() as f64 / problem.len() as f64;
        let scaled: Vec<f64> = ladder.iter().map(|c| share * c).collect();
        let mut rungs = losses.iter_mut();
        let mut is_stopped = false;
        follow(solver, &training, &scaled, settings, observer, |_, _, solution| {
            is_stopped = solution.report.status == Status::Interrupted;
            if let Some(losses) = rungs.next() {
                losses.push(held.train_loss(&solution.weights, &pool)?);
            }
            Ok(if is_stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if is_stopped {
            return Ok(None);
        }
    }
    Ok(Some(ladder.iter().zip(&losses).map(|(&c, losses)| validation(c, losses)).collect()))
}

fn validation(c: f64, losses: &[f64]) -> Validation {
    let k = losses.len() as f64;
    let loss = losses.iter().sum::<f64>() / k;
    let variance = losses.iter().map(|l| square(l - loss)).sum::<f64>() / (k - 1.0);
    Validation { c, loss, standard_error: (variance / k).sqrt() }
}

/// The C with the least loss, the smallest of equals.
pub fn best(validations: &[Validation]) -> Option<Validation> {
    validations.iter().copied().reduce(|best, next| if next.loss < best.loss { next } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_share_examples_and_classes_evenly() {
        let classes: Vec<u32> = (0..103).map(|i| u32::from(i % 10 == 0)).collect();
        let folds = Folds::deal(&classes, 5, 1).unwrap();
        let mut seen = vec![0; classes.len()];
        for fold in &folds.folds {
            assert!((20..=21).contains(&fold.held.len()));
            assert!((2..=3).contains(&fold.held.iter().filter(|&&i| classes[i as usize] == 1).count()));
            assert_eq!(fold.held.len() + fold.others.len(), classes.len());
            fold.held.iter().for_each(|&i| seen[i as usize] += 1);
        }
        assert!(seen.iter().all(|&times| times == 1));
        assert_ne!(folds.folds[0].held, Folds::deal(&classes, 5, 2).unwrap().folds[0].held);
        assert!(Folds::deal(&classes, 1, 1).is_err() && Folds::deal(&classes, 104, 1).is_err());
    }

    #[test]
    fn the_smallest_c_of_equals_is_the_best() {
        let cv = [(1.0, 0.5), (2.0, 0.25), (3.0, 0.25)].map(|(c, loss)| Validation { c, loss, standard_error: 0.0 });
        assert_eq!(best(&cv).unwrap().c, 2.0);
        assert_eq!(validation(1.0, &[0.0, 1.0]), Validation { c: 1.0, loss: 0.5, standard_error: 0.5 });
    }
}
