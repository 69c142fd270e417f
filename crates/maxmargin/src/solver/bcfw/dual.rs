//! The blocks of the dual, the mean of the points that they go through, and exact passes over all of them.

use std::ops::Range;
use std::time::Instant;

use crate::error::Result;
use crate::parallel::{Pool, ranges};
use crate::problem::{OracleScratch, Output, Problem};
use crate::solver::average::Shares;
use crate::solver::blocks::{Blocks, Visit};
use crate::solver::state::{Reader, Writer, check, is_sound};
use crate::weights::Weights;

/// What points before an exact pass count for after it.
const OLD: f64 = 0.1;

/// An output without weight is kept as long as it has more than this share of its example's cap in the mean.
const FORGOTTEN: f64 = 1e-3;

/// Parts of an exact pass, for threads to share; so many for each before it is asked whether it is over.
const PARTS: usize = 64;
const AT_ONCE: usize = 4;

/// What an exact pass has found.
pub(super) struct Standing {
    /// P
    pub(super) primal: f64,
    /// The gaps of all blocks.
    pub(super) gaps: Vec<f64>,
    /// Outputs that examples have not met yet.
    pub(super) met: Vec<(usize, Output)>,
}

/// The dual variables, w, and what tells the mean of the points.
pub(super) struct Dual<'p, 'a> {
    problem: &'p Problem<'a>,
    pub(super) blocks: Blocks<'p, 'a>,
    /// Of the points that w went through, the k-th with weight k (Lacoste-Julien et al. 2013, section 4). As that mean lags
    /// behind, points before the last exact pass count for a tenth of it, those before the last but one for a hundredth.
    /// w is a combination of left sides, so its mean is that of their coefficients: no second vector is kept, nor touched by
    /// each step.
    shares: Shares,
    points: f64,
    /// Counts the passes, so that idle outputs can be told.
    pass: u32,
}

impl<'p, 'a> Dual<'p, 'a> {
    pub(super) fn new(problem: &'p Problem<'a>, pool: &'p Pool) -> Self {
        Self { problem, blocks: Blocks::new(problem, pool), shares: Shares::default(), points: 0.0, pass: 0 }
    }

    /// Writes what the next visit starts from.
    pub(super) fn write(&self, out: &mut Writer) -> Result<()> {
        self.blocks.write(out)?;
        out.put(&(self.shares, self.points, self.pass))
    }

    /// Reads it again.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        self.blocks.read(reader)?;
        (self.shares, self.points, self.pass) = reader.take()?;
        let is_none = self.problem.metric().is_none() || self.shares.is_empty();
        check(self.shares.is_sound() && is_sound(self.points) && is_none, "the mean")
    }

    /// C has grown by this factor (or shrunk).
    pub(super) fn rescale(&mut self, growth: f64) -> Result<()> {
        (self.shares, self.points) = (Shares::default(), 0.0);
        self.blocks.scale_offsets(0.0);
        self.blocks.rescale(growth)
    }

    /// Visits block i, with what the oracle found and from what violation on that is worth taking in.
    pub(super) fn visit(&mut self, i: usize, found: Option<(&Output, f64)>) -> Result<Visit> {
        let visit = self.blocks.visit(i, found, self.pass)?;
        // With a kernel the mean of the points would cost as many rows of it as w does: there w itself is what counts.
        if visit.work > 0.0 && self.problem.metric().is_none() {
            if visit.rise > 0.0 {
                self.blocks.remember(i, self.shares.of_step());
            }
            self.points += 1.0;
            self.shares.count(self.points, 1.0);
        }
        Ok(visit)
    }

    /// Takes in an output with weight 0.
    pub(super) fn add(&mut self, i: usize, y: Output) -> Result<()> {
        self.blocks.add(i, y, self.pass)
    }

    /// Asks the oracle for all examples at the point `at`, which is w but for a start that the user has given. Outputs
    /// that would close more than `worth` are handed back. None where it is over before all are asked: at the deadline, or
    /// when `is_over`, which is asked now and then, says so.
    pub(super) fn examine(
        &self,
        pool: &Pool,
        at: &Weights,
        worth: f64,
        deadline: Option<Instant>,
        mut is_over: impl FnMut() -> bool,
    ) -> Result<Option<Standing>> {
        let problem = self.problem;
        let is_late = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let examine = |range: Range<usize>| {
            let (mut scratch, mut values) = (OracleScratch::default(), Vec::new());
            let mut standing = Standing { primal: 0.0, gaps: Vec::with_capacity(range.len()), met: Vec::new() };
            for i in range {
                if is_late() {
                    return Ok(None);
                }
                let limits = self.blocks.limits(i);
                let h = problem.oracle(i, at, &mut scratch)?;
                let worst = self.blocks.look(i, at, &mut values)?;
                standing.primal += self.blocks.cost(i, h.max(worst));
                standing.gaps.push(self.blocks.of(i).gap(&values, h, limits));
                let is_worth = problem.slack(h.max(0.0)) - problem.slack(worst) > worth;
                if is_worth && limits.cap > 0.0 && !self.blocks.has(i, &scratch.y) {
                    standing.met.push((i, scratch.y.clone()));
                }
            }
            Ok(Some(standing))
        };
        let primal = 0.5 * at.norm2();
        let mut all = Standing { primal, gaps: Vec::with_capacity(problem.len()), met: Vec::new() };
        // The more threads, the more parts before it is asked again.
        for parts in ranges(problem.len(), PARTS).chunks(AT_ONCE * pool.threads()) {
            for part in pool.map(parts.to_vec(), examine) {
                let Some(part) = part? else { return Ok(None) };
                all.primal += part.primal;
                all.gaps.extend(part.gaps);
                all.met.extend(part.met);
            }
            if all.gaps.len() < problem.len() && is_over() {
                return Ok(None);
            }
        }
        Ok(Some(all))
    }

    /// P at w, as far as the outputs tell that the examples have met: a lower bound of it.
    pub(super) fn glance(&self, pool: &Pool) -> Result<f64> {
        let at = &self.blocks.w;
        let parts = pool.map(ranges(self.problem.len(), PARTS), |range| {
            let mut values = Vec::new();
            let slack = |i| Ok(self.blocks.cost(i, self.blocks.look(i, at, &mut values)?));
            range.map(slack).sum::<Result<f64>>()
        });
        let slack = parts.into_iter().sum::<Result<f64>>()?;
        Ok(0.5 * at.norm2() + slack)
    }

    /// Is the mean of the points another one than w?
    pub(super) fn has_mean(&self) -> bool {
        !self.shares.is_empty()
    }

    /// Makes w the mean of the points so far, those before the last exact pass discounted, until it is rebuilt. A vector of
    /// its own would take as much memory as w.
    pub(super) fn go_to_mean(&mut self) -> Result<()> {
        let shares = self.shares;
        self.blocks.go_to(|held| shares.mean(held.alpha, held.offset))
    }

    /// That mean.
    pub(super) fn mean(&self) -> Result<Weights> {
        if !self.has_mean() {
            return Ok(self.blocks.w.clone());
        }
        let mut mean = self.problem.zero();
        self.blocks.sum(mean.as_mut_slice(), |held| self.shares.mean(held.alpha, held.offset))?;
        Ok(mean)
    }

    /// An exact pass begins another stretch: the points before it count little from now on.
    pub(super) fn discount_mean(&mut self) {
        if let Some(factor) = self.shares.discount(OLD) {
            self.blocks.scale_offsets(factor);
        }
    }

    /// Ends a pass: outputs without weight that were of no use for `idle` passes are dropped.
    pub(super) fn end_pass(&mut self, idle: u32) {
        self.pass = self.pass.saturating_add(1);
        let (problem, shares) = (self.problem, self.shares);
        self.blocks.drop_idle(self.pass.saturating_sub(idle), |i, held| {
            shares.mean(held.alpha, held.offset) > FORGOTTEN * problem.share(i)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Formulation, Rescaling};
    use crate::random::Random;
    use crate::sparse::SparseMatrix;
    use crate::tasks::multiclass::{Costs, Multiclass};

    const N: usize = 15;

    fn random_rows(random: &mut Random) -> SparseMatrix {
        let mut x = SparseMatrix::new();
        for _ in 0..N {
            x.push_row((0..4).map(|j| (j, random.unit() as f32 - 0.5)));
        }
        x
    }

    /// Visits with the oracle or without, in any order.
    fn wander(dual: &mut Dual<'_, '_>, random: &mut Random, visits: usize) {
        let mut scratch = OracleScratch::default();
        for _ in 0..visits {
            let i = (N as f64 * random.unit()) as usize;
            if random.unit() < 0.5 {
                let h = dual.problem.oracle(i, &dual.blocks.w, &mut scratch).unwrap();
                dual.visit(i, (h > 0.0).then_some((&scratch.y, 0.0))).unwrap();
            } else {
                dual.visit(i, None).unwrap();
            }
        }
    }

    #[test]
    fn gaps_sum_to_primal_less_dual_and_rises_to_the_dual() {
        let mut random = Random::new(4);
        let pool = Pool::new(1).unwrap();
        let task = Multiclass::new(4, Costs::absolute(&[0.0, 1.0, 2.5, 3.0]));
        for rescaling in [Rescaling::Margin, Rescaling::Slack] {
            let (x, c) = (random_rows(&mut random), (0..N).map(|_| 2.0 * random.unit()).collect::<Vec<_>>());
            let y: Vec<u32> = (0..N).map(|_| (4.0 * random.unit()) as u32).collect();
            let views = x.views();
            let f = Formulation { c: 30.0, rescaling, ..Formulation::default() };
            let problem = Problem::new(&task, &views, &y, Some(&c), f).unwrap();
            let mut dual = Dual::new(&problem, &pool);
            for visits in [0, 1, 10, 100, 1000] {
                wander(&mut dual, &mut random, visits);
                dual.end_pass(2);
                let running = dual.blocks.w.clone();
                dual.blocks.rebuild().unwrap();
                for (a, b) in running.as_slice().iter().zip(dual.blocks.w.as_slice()) {
                    assert!((a - b).abs() < 1e-10, "w has drifted from {b} to {a}");
                }
                assert!(dual.examine(&pool, &dual.blocks.w, 0.0, None, || true).unwrap().is_none());
                assert!(dual.examine(&pool, &dual.blocks.w, 0.0, Some(Instant::now()), || false).unwrap().is_none());
                let standing = dual.examine(&pool, &dual.blocks.w, 0.0, None, || false).unwrap().unwrap();
                let primal = problem.objective(&dual.blocks.w, &pool).unwrap();
                let gap: f64 = standing.gaps.iter().sum();
                assert!((standing.primal - primal).abs() <= 1e-10 * primal);
                assert!(
                    (gap - (primal - dual.blocks.value())).abs() <= 1e-10 * primal,
                    "{gap}, {primal}, {}",
                    dual.blocks.value()
                );
                assert!(dual.glance(&pool).unwrap() <= primal * (1.0 + 1e-12));
                for i in 0..N {
                    let sum: f64 = dual.blocks.of(i).held.iter().map(|held| held.alpha).sum();
                    let cap = dual.blocks.limits(i).cap;
                    assert!(sum <= cap * (1.0 + 1e-12), "block {i} has {sum} of {cap}");
                }
            }
            let (before, mut rise) = (dual.blocks.value(), 0.0);
            for i in 0..N {
                rise += dual.visit(i, None).unwrap().rise;
            }
            assert!((dual.blocks.value() - before - rise).abs() <= 1e-10 * before);
        }
    }

    #[test]
    fn the_mean_is_that_of_the_points() {
        let mut random = Random::new(9);
        let pool = Pool::new(1).unwrap();
        let task = Multiclass::new(4, Costs::zero_one(4));
        let (x, y) = (random_rows(&mut random), (0..N).map(|_| random.below(4) as u32).collect::<Vec<_>>());
        let views = x.views();
        let f = Formulation { c: 30.0, ..Formulation::default() };
        let problem = Problem::new(&task, &views, &y, None, f).unwrap();
        let mut dual = Dual::new(&problem, &pool);
        assert_eq!(dual.mean().unwrap(), problem.zero());
        let (mut sum, mut total) = (vec![0.0; problem.dimension()], 0.0);
        for t in 0..300 {
            let before = dual.points;
            wander(&mut dual, &mut random, 1);
            if dual.points > before {
                total += dual.points;
                sum.iter_mut().zip(dual.blocks.w.as_slice()).for_each(|(sum, w)| *sum += dual.points * w);
            }
            if t % 70 == 69 {
                // The offsets are scaled indeed at one of these.
                for _ in 0..if t == 139 { 101 } else { 1 } {
                    dual.discount_mean();
                    total *= OLD;
                    for sum in &mut sum {
                        *sum *= OLD;
                    }
                }
            }
            if total > 1e-200 {
                for (mean, sum) in dual.mean().unwrap().as_slice().iter().zip(&sum) {
                    assert!((mean - sum / total).abs() <= 1e-9, "{t}: {mean} {}", sum / total);
                }
            }
        }
        // w is the mean until it is rebuilt.
        let (mean, w) = (dual.mean().unwrap(), dual.blocks.w.clone());
        dual.go_to_mean().unwrap();
        assert_eq!(dual.blocks.w, mean);
        assert!(mean != w);
        dual.blocks.rebuild().unwrap();
        let drift = dual.blocks.w.as_slice().iter().zip(w.as_slice()).map(|(a, b)| (a - b).abs());
        assert!(drift.fold(0.0, f64::max) < 1e-12);
    }
}
