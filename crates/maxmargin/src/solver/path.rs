//! One problem at several C, the solution of each the start of the next.

use std::ops::ControlFlow;

use super::{Observer, Progress, Settings, Snapshot, Solution, Solver, State, Status};
use crate::error::Result;
use crate::features::Accumulate;
use crate::numeric::{log10, power};
use crate::problem::{OracleScratch, Penalty, Problem};
use crate::sparse::{axpy, dot};
use crate::weights::Weights;

/// Solves `problem` at each C of `ladder`, which ascends; `reached` takes each solution, and may end it there.
///
/// The settings are those of the first C; each other one goes on from the state in which the last ended, or from its weights
/// where the solver cannot be saved. Limits hold for each C.
pub fn follow<O: Observer>(
    solver: &dyn Solver,
    problem: &Problem<'_>,
    ladder: &[f64],
    settings: &Settings,
    observer: &mut O,
    mut reached: impl FnMut(&mut O, &Problem<'_>, Solution) -> Result<ControlFlow<()>>,
) -> Result<()> {
    debug_assert!(ladder.is_sorted());
    let mut settings = settings.clone();
    for (k, &c) in ladder.iter().enumerate() {
        let problem = problem.with_c(c);
        let goes_on = k + 1 < ladder.len();
        let mut end = End { observer, is_wanted: goes_on, state: None };
        let solution = solver.solve(&problem, &settings, &mut end)?;
        // A resumed run that was over already has no rounds, and ends in the state where it began.
        let state = end.state.or(settings.resume.take());
        settings.warm_start = (goes_on && state.is_none()).then(|| solution.weights.clone());
        settings.resume = state;
        if reached(observer, &problem, solution)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Saves the last state.
struct End<'o> {
    observer: &'o mut dyn Observer,
    is_wanted: bool,
    state: Option<State>,
}

impl Observer for End<'_> {
    fn on_iteration(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.observer.on_iteration(progress)
    }

    fn on_state(&mut self, progress: &Progress, snapshot: &dyn Snapshot, status: Option<Status>) -> ControlFlow<()> {
        if self.is_wanted && status.is_some() {
            // A solver that cannot be saved starts the next C from weights.
            self.state = snapshot.save_for_another_c().ok();
        }
        self.observer.on_state(progress, snapshot, status)
    }

    fn is_over(&mut self) -> bool {
        self.observer.is_over()
    }
}

/// Number of values of a [`ladder`].
const RUNGS: i32 = 7;

/// Passes that look for its beginning.
const LOOKS: usize = 10;

/// Values of C that are worth a try: seven powers of ten as weights of single examples, from where C begins to matter.
///
/// While C is small every example violates its margin, and `w = C g` with -g the shortest slope of the mean slack at 0: C
/// changes the length of w and no prediction. That ends about where the mean slack along g would reach 0, at
/// `C = mean slack / |g|^2`. The ladder begins with the power of ten below it.
pub fn ladder(problem: &Problem<'_>) -> Result<Vec<f64>> {
    let (n, d) = (problem.len() as f64, problem.dimension());
    let mut w = Weights::zeros(d);
    let (mean, mut shortest) = slope(problem, &w)?;
    // Outputs of equal loss tie at 0, and each has a slope of its own: Frank-Wolfe steps to the shortest combination, with
    // points so near to 0 that they decide ties and nothing else.
    for _ in 1..LOOKS {
        let near = 1e-6 * mean / dot(&shortest, &shortest).max(f64::MIN_POSITIVE);
        w.as_mut_slice().iter_mut().zip(&shortest).for_each(|(w, g)| *w = near * g);
        let (_, next) = slope(problem, &w)?;
        let way: Vec<f64> = next.iter().zip(&shortest).map(|(a, b)| a - b).collect();
        let length2 = dot(&way, &way);
        if length2 > 0.0 {
            axpy((-dot(&shortest, &way) / length2).clamp(0.0, 1.0), &way, &mut shortest);
        }
    }
    let first = mean / dot(&shortest, &shortest);
    // Examples whose slopes cancel say nothing of C.
    let exponent = if first > 0.0 && first.is_finite() { log10(first / n).floor() } else { -3.0 };
    Ok((0..RUNGS).map(|k| n * power(10.0, exponent as i32 + k)).collect())
}

/// The mean slack that costs at w, and a slope of it, its sign turned.
fn slope(problem: &Problem<'_>, w: &Weights) -> Result<(f64, Vec<f64>)> {
    let n = problem.len() as f64;
    let is_quadratic = problem.formulation().penalty == Penalty::Quadratic;
    let (mut mean, mut slope) = (0.0, vec![0.0; problem.dimension()]);
    let mut scratch = OracleScratch::default();
    for i in 0..problem.len() {
        let h = problem.oracle(i, w, &mut scratch)?;
        let weight = problem.weight(i) / n * if is_quadratic { h } else { 1.0 };
        let term = problem.term(problem.loss(i, &scratch.y));
        problem.emit(i, &scratch.y, weight * term.factor, &mut Accumulate { sum: &mut slope, factor: 1.0 })?;
        mean += weight * h;
    }
    Ok((mean, slope))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Formulation;
    use crate::sparse::SparseMatrix;
    use crate::tasks::binary::Binary;

    /// Two points at -x and x: w = C x until the margin, `C x^2`, is 1.
    #[test]
    fn a_ladder_begins_where_c_does() {
        for (x, first) in [(1.0, 0.1), (10.0, 0.001), (0.1, 10.0)] {
            let mut points = SparseMatrix::new();
            for value in [-1.01 * x, 1.01 * x] {
                points.push_row([(0, value)]);
            }
            let (task, rows) = (Binary::new(1), points.views());
            let problem = Problem::new(&task, &rows, &[0, 1], None, Formulation::default()).unwrap();
            let found = ladder(&problem).unwrap();
            assert_eq!(found.len(), 7);
            assert!(
                found.iter().enumerate().all(|(k, c)| (c / (2.0 * first * 10_f64.powi(k as i32)) - 1.0).abs() < 1e-9)
            );
        }
    }
}
