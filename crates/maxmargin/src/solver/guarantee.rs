//! What sampled cuts promise before they begin (Yu and Joachims 2008, Theorems 1 to 3).
//!
//! ```text
//! linear:    P(w) <= min P + C (epsilon + sqrt(4 C D R^2 / r * ln(T / delta)))                          with probability 1 - delta
//! constant:  P(w) <= min P + C (epsilon + 2 sqrt((D + 2 R sqrt(2 C D))^2 / 2r * ln(T / delta)))         with probability 1 - 2 delta
//! ```
//!
//! where D is the largest loss, R the largest |dpsi|, and T = 8 C D R^2 / epsilon^2 the number of rounds at most. They hold for
//! the paper's algorithms and are far from what one sees.

use crate::error::{Error, Result};
use crate::features::Collect;
use crate::numeric::ln;
use crate::problem::{Output, Problem};

/// Which algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// Theorem 2.
    Linear,
    /// Theorem 3.
    Constant,
}

/// By how much P of what sampled cuts of `size` examples return is above its minimum at most, with probability `1 - delta`.
/// For tasks that list their outputs.
pub fn excess(problem: &Problem<'_>, sampled: Sampled, size: usize, epsilon: f64, delta: f64) -> Result<f64> {
    if !(delta > 0.0 && delta < 1.0) {
        return Err(Error::setting("bound", format!("{delta} is no probability between 0 and 1")));
    }
    let (c, largest, radius) = (problem.formulation().c, problem.max_loss(), radius(problem)?);
    let rounds = 8.0 * c * largest * radius * radius / (epsilon * epsilon);
    let r = size as f64;
    Ok(c * match sampled {
        Sampled::Linear => {
            let spread = (4.0 * c * largest / r * ln(rounds / delta).max(0.0)).sqrt() * radius;
            epsilon + spread
        }
        Sampled::Constant => {
            // Its theorem fails with probability 2 delta'.
            let spread = largest + 2.0 * radius * (2.0 * c * largest).sqrt();
            epsilon + 2.0 * spread * (ln(2.0 * rounds / delta).max(0.0) / (2.0 * r)).sqrt()
        }
    })
}

/// R, the largest |dpsi| of all outputs of all examples.
fn radius(problem: &Problem<'_>) -> Result<f64> {
    let Some(listed) = problem.enumerable() else {
        return Err(Error::setting("bound", "is for classes: of other tasks the largest |dpsi| is not known"));
    };
    let (mut largest, mut sum, mut y) = (0.0_f64, Collect::default(), Output::default());
    for i in 0..problem.len() {
        for k in 0..listed.count() {
            listed.copy_output(k, &mut y);
            sum.clear();
            problem.emit(i, &y, 1.0, &mut sum)?;
            let difference = sum.merged();
            let norm2 = match problem.metric() {
                Some(metric) => metric.inner(difference, difference),
                None => difference.iter().map(|e| e.1 * e.1).sum(),
            };
            largest = largest.max(norm2);
        }
    }
    Ok(largest.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Formulation;
    use crate::sparse::SparseMatrix;
    use crate::tasks::binary::Binary;

    #[test]
    fn the_formulas_are_those_of_the_theorems() {
        let mut x = SparseMatrix::new();
        x.push_row([(0, 3.0), (1, 4.0)]);
        x.push_row([(0, 1.0)]);
        let (task, rows) = (Binary::new(2), x.views());
        let problem =
            Problem::new(&task, &rows, &[0, 1], None, Formulation { c: 2.0, ..Formulation::default() }).unwrap();
        // R = |x| = 5, D = 1, T = 8 * 2 * 25 / 0.01 = 40,000
        let linear = excess(&problem, Sampled::Linear, 100, 0.1, 0.05).unwrap();
        assert!((linear - 2.0 * (0.1 + (4.0 * 2.0 * 25.0 / 100.0 * (40_000.0_f64 / 0.05).ln()).sqrt())).abs() < 1e-9);
        let constant = excess(&problem, Sampled::Constant, 100, 0.1, 0.05).unwrap();
        let spread = (1.0 + 2.0 * 2.0 * 5.0_f64).powi(2) / 200.0 * (40_000.0_f64 / 0.025).ln();
        assert!((constant - 2.0 * (0.1 + 2.0 * spread.sqrt())).abs() < 1e-9);
        assert!(excess(&problem, Sampled::Linear, 100, 0.1, 1.5).is_err());
    }
}
