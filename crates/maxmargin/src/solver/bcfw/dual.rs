//! All blocks of the dual, and the w that they add up to.
//!
//! ```text
//! max  D = sum a rhs - 1/2 |w|^2,   w = sum a lhs,   a >= 0,   sum of i's own a's <= U_i = C c_i / n
//! gap of block i:  g_i = U_i H_i(w) - sum_j a_j v_j,  v_j = rhs_j - <w, lhs_j>;    sum_i g_i = P(w) - D
//! ```
//!
//! A block is visited at the current w: its outputs are scored, it is solved, and w moves by what changed. No step touches
//! more of w than the parts of the example's own outputs.

use super::block::{Block, Held};
use crate::error::Result;
use crate::features::{Accumulate, Lookup, Prefetch, ScoreIn};
use crate::parallel::{Pool, ranges};
use crate::problem::{OracleScratch, Problem};
use crate::solver::average::Average;
use crate::solver::state::{Reader, Writer, check, check_weights, is_sound};
use crate::sparse::dot;
use crate::task::Task;
use crate::weights::Weights;

/// A visit solves its block until this share of the gap is left: the next visit will find another one anyway.
const LEFT: f64 = 0.1;

/// What points before an exact pass count for after it.
const OLD: f64 = 0.1;

/// Parts of an exact pass, for threads to share.
const PARTS: usize = 64;

/// What a visit has found and done.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Visit {
    /// The block's gap before the visit, as far as its outputs tell.
    pub(super) gap: f64,
    /// By how much the dual rose.
    pub(super) rise: f64,
    /// In looks: one look is the score of one output. An oracle call is not in it.
    pub(super) work: f64,
}

/// What an exact pass has found.
pub(super) struct Standing<Y> {
    /// P
    pub(super) primal: f64,
    /// The gaps of all blocks.
    pub(super) gaps: Vec<f64>,
    /// Outputs that examples have not met yet.
    pub(super) met: Vec<(usize, Y)>,
}

/// The dual variables, and w.
pub(super) struct Dual<'p, 'a, T: Task> {
    problem: &'p Problem<'a, T>,
    blocks: Vec<Block<T::Output>>,
    pub(super) w: Weights,
    /// Of the points that w went through, the k-th with weight k (Lacoste-Julien et al. 2013, section 4). As that mean lags
    /// behind, points before the last exact pass count for a tenth of it, those before the last but one for a hundredth.
    average: Average,
    points: f64,
    /// Counts the passes, so that idle outputs can be told.
    pass: u32,
    values: Vec<f64>,
    before: Vec<f64>,
    row: Vec<f64>,
    /// The left side whose inner products are computed.
    lhs: Lookup,
}

impl<'p, 'a, T: Task> Dual<'p, 'a, T> {
    pub(super) fn new(problem: &'p Problem<'a, T>) -> Self {
        let d = problem.dimension();
        Self {
            problem,
            blocks: (0..problem.len()).map(|_| Block::default()).collect(),
            w: Weights::zeros(d),
            average: Average::new(d),
            points: 0.0,
            pass: 0,
            values: Vec::new(),
            before: Vec::new(),
            row: Vec::new(),
            lhs: Lookup::default(),
        }
    }

    /// Writes what the next visit starts from.
    pub(super) fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.blocks.iter().map(|block| &block.held).collect::<Vec<_>>())?;
        out.put(&self.w)?;
        out.put(&self.average)?;
        out.put(&(self.points, self.pass))
    }

    /// Reads it again. Inner products are computed anew, in the same bits.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let (problem, task) = (self.problem, self.problem.task());
        let blocks: Vec<Vec<Held<T::Output>>> = reader.take()?;
        check(blocks.len() == problem.len(), "blocks")?;
        for (i, held) in blocks.into_iter().enumerate() {
            let sum: f64 = held.iter().map(|held| held.alpha).sum();
            check(held.iter().all(|held| held.alpha >= 0.0) && is_sound(sum), "dual variables")?;
            for Held { y, term, alpha, used } in held {
                let is_new = self.blocks[i].held.iter().all(|other| other.y != y);
                check(is_new && task.check(problem.input(i), &y).is_ok(), "outputs")?;
                check(term == problem.term(task.loss(problem.truth(i), &y)), "terms")?;
                self.add(i, y)?;
                let added = self.blocks[i].held.last_mut().expect("what was added");
                (added.alpha, added.used) = (alpha, used);
            }
        }
        self.w = reader.take()?;
        check_weights(&self.w, problem.dimension())?;
        self.average = reader.take()?;
        check(self.average.is_of(problem.dimension()), "the mean")?;
        (self.points, self.pass) = reader.take()?;
        check(is_sound(self.points), "the mean")
    }

    /// C has grown by this factor (or shrunk): of the multiples of a that are feasible for the new C the best.
    pub(super) fn rescale(&mut self, growth: f64) -> Result<()> {
        let norm2 = dot(self.w.as_slice(), self.w.as_slice());
        let best = (self.value() + 0.5 * norm2) / norm2;
        // 0 / 0 where all is zero.
        let factor = if best < growth { best.max(0.0) } else { growth };
        self.blocks.iter_mut().flat_map(|block| &mut block.held).for_each(|held| held.alpha *= factor);
        self.restart_mean();
        self.rebuild()
    }

    /// U_i
    fn cap(&self, i: usize) -> f64 {
        self.problem.formulation().c * self.problem.weight(i) / self.problem.len() as f64
    }

    /// Visits block i. `found`: what the oracle found, at this w or shortly before; it is taken in where it is violated by
    /// more than `worth` beyond the outputs that the example has.
    pub(super) fn visit(&mut self, i: usize, found: Option<&T::Output>, worth: f64) -> Result<Visit> {
        let cap = self.cap(i);
        if cap == 0.0 || (found.is_none() && self.blocks[i].held.is_empty()) {
            return Ok(Visit::default());
        }
        let mut values = std::mem::take(&mut self.values);
        let worst = look(self.problem, i, &self.blocks[i], &self.w, &mut values)?;
        let mut work = 1.0 + values.len() as f64;
        if let Some(y) = found {
            let v = self.problem.violation(i, &self.w, y)?;
            work += 1.0;
            // An output that the example has gets the same value again, so it is not taken twice.
            if v > worst + worth {
                self.add(i, y.clone())?;
                values.push(v);
                work += 4.0 + values.len() as f64;
            }
        }
        let block = &mut self.blocks[i];
        let gap = block.gap(&values, 0.0, cap);
        self.before.clear();
        self.before.extend(block.held.iter().map(|held| held.alpha));
        let rise = block.solve(&mut values, cap, gap, LEFT, self.pass);
        self.values = values;
        if rise > 0.0 {
            work += self.follow(i)?;
        }
        self.points += 1.0;
        self.average.count(self.points, 1.0);
        Ok(Visit { gap, rise, work })
    }

    /// Asks for what a visit of block i will read.
    pub(super) fn prefetch(&self, i: usize) -> Result<()> {
        let (problem, mut sink) = (self.problem, Prefetch { w: self.w.as_slice() });
        let (task, x, truth) = (problem.task(), problem.input(i), problem.truth(i));
        self.blocks[i].held.iter().try_for_each(|held| task.difference(x, truth, &held.y, &mut sink))
    }

    /// Takes in an output with weight 0.
    pub(super) fn add(&mut self, i: usize, y: T::Output) -> Result<()> {
        let (problem, task) = (self.problem, self.problem.task());
        let (x, truth) = (problem.input(i), problem.truth(i));
        let term = problem.term(task.loss(truth, &y));
        debug_assert!(self.blocks[i].held.iter().all(|held| held.y != y), "an output that the example has");
        self.lhs.clear();
        problem.emit(i, &y, term.factor, &mut self.lhs)?;
        let inner = |y: &T::Output| {
            let mut sink = ScoreIn { lookup: &self.lhs, total: 0.0 };
            task.difference(x, truth, y, &mut sink)?;
            Ok(sink.total)
        };
        self.row.clear();
        for held in &self.blocks[i].held {
            self.row.push(held.term.factor * inner(&held.y)?);
        }
        self.row.push(term.factor * inner(&y)?);
        self.blocks[i].push(Held { y, term, alpha: 0.0, used: self.pass }, &self.row);
        Ok(())
    }

    /// Moves w by what changed in block i. Returns the work.
    fn follow(&mut self, i: usize) -> Result<f64> {
        let mut sink = self.average.step(&mut self.w);
        let mut work = 1.0;
        for (held, before) in self.blocks[i].held.iter().zip(&self.before).filter(|(held, a)| held.alpha != **a) {
            self.problem.emit(i, &held.y, (held.alpha - before) * held.term.factor, &mut sink)?;
            work += 1.0;
        }
        Ok(work)
    }

    /// Asks the oracle for all examples at the point `at`, which is w but for a start that the user has given. Outputs
    /// that would close more than `worth` are handed back.
    pub(super) fn examine(&self, pool: &Pool, at: &Weights, worth: f64) -> Result<Standing<T::Output>> {
        let problem = self.problem;
        let parts = pool.map(ranges(problem.len(), PARTS), |range| {
            let (mut scratch, mut values) = (OracleScratch::default(), Vec::new());
            let mut standing = Standing { primal: 0.0, gaps: Vec::with_capacity(range.len()), met: Vec::new() };
            for i in range {
                let (block, cap) = (&self.blocks[i], self.cap(i));
                let h = problem.oracle(i, at, &mut scratch)?;
                let worst = look(problem, i, block, at, &mut values)?;
                standing.primal += cap * h.max(worst);
                standing.gaps.push(block.gap(&values, h, cap));
                if h > worst + worth && cap > 0.0 && block.held.iter().all(|held| held.y != scratch.y) {
                    standing.met.push((i, scratch.y.clone()));
                }
            }
            Ok(standing)
        });
        let primal = 0.5 * dot(at.as_slice(), at.as_slice());
        let mut all = Standing { primal, gaps: Vec::with_capacity(problem.len()), met: Vec::new() };
        for part in parts {
            let part = part?;
            all.primal += part.primal;
            all.gaps.extend(part.gaps);
            all.met.extend(part.met);
        }
        Ok(all)
    }

    /// P at the point `at`, as far as the outputs tell that the examples have met: a lower bound of it.
    pub(super) fn glance(&self, pool: &Pool, at: &Weights) -> Result<f64> {
        let parts = pool.map(ranges(self.problem.len(), PARTS), |range| {
            let mut values = Vec::new();
            let slack = |i| Ok(self.cap(i) * look(self.problem, i, &self.blocks[i], at, &mut values)?);
            range.map(slack).sum::<Result<f64>>()
        });
        let slack = parts.into_iter().sum::<Result<f64>>()?;
        Ok(0.5 * dot(at.as_slice(), at.as_slice()) + slack)
    }

    /// The mean of the points so far, those before the last exact pass discounted.
    pub(super) fn mean(&self) -> Weights {
        self.average.mean(&self.w)
    }

    /// An exact pass begins another stretch: the points before it count little from now on.
    pub(super) fn discount_mean(&mut self) {
        self.average.discount(OLD);
    }

    fn restart_mean(&mut self) {
        self.average.clear();
        self.points = 0.0;
    }

    /// D, a lower bound of P.
    pub(super) fn value(&self) -> f64 {
        let held = self.blocks.iter().flat_map(|block| &block.held);
        let l: f64 = held.map(|held| held.alpha * held.term.rhs).sum();
        l - 0.5 * dot(self.w.as_slice(), self.w.as_slice())
    }

    /// `w = sum a lhs` from scratch: after many steps the running sum has drifted.
    pub(super) fn rebuild(&mut self) -> Result<()> {
        let mut sink = Accumulate { sum: self.w.as_mut_slice(), factor: 1.0 };
        sink.sum.fill(0.0);
        for (i, block) in self.blocks.iter().enumerate() {
            for held in block.held.iter().filter(|held| held.alpha > 0.0) {
                self.problem.emit(i, &held.y, held.alpha * held.term.factor, &mut sink)?;
            }
        }
        Ok(())
    }

    /// Number of outputs, and of those with weight.
    pub(super) fn count(&self) -> (usize, usize) {
        let held = self.blocks.iter().flat_map(|block| &block.held);
        held.fold((0, 0), |(all, active), held| (all + 1, active + usize::from(held.alpha > 0.0)))
    }

    /// Ends a pass: outputs without weight that were of no use for `idle` passes are dropped.
    pub(super) fn end_pass(&mut self, idle: u32) {
        self.pass = self.pass.saturating_add(1);
        let since = self.pass.saturating_sub(idle);
        self.blocks.iter_mut().for_each(|block| block.drop_idle(since));
    }
}

/// Violations at w of the outputs that example i has, into `values`. Returns the largest, 0 where there is none.
fn look<T: Task>(
    problem: &Problem<'_, T>,
    i: usize,
    block: &Block<T::Output>,
    w: &Weights,
    values: &mut Vec<f64>,
) -> Result<f64> {
    let (task, x, truth) = (problem.task(), problem.input(i), problem.truth(i));
    let mut worst: f64 = 0.0;
    values.clear();
    for held in &block.held {
        let v = held.term.violation(task.margin(w, x, truth, &held.y)?);
        worst = worst.max(v);
        values.push(v);
    }
    Ok(worst)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::{Formulation, Rescaling};
    use crate::solver::random::Random;
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
    fn wander<T: Task>(dual: &mut Dual<'_, '_, T>, random: &mut Random, visits: usize) {
        let mut scratch = OracleScratch::default();
        for _ in 0..visits {
            let i = (N as f64 * random.unit()) as usize;
            if random.unit() < 0.5 {
                let h = dual.problem.oracle(i, &dual.w, &mut scratch).unwrap();
                dual.visit(i, (h > 0.0).then_some(&scratch.y), 0.0).unwrap();
            } else {
                dual.visit(i, None, 0.0).unwrap();
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
            let mut dual = Dual::new(&problem);
            for visits in [0, 1, 10, 100, 1000] {
                wander(&mut dual, &mut random, visits);
                dual.end_pass(2);
                let running = dual.w.clone();
                dual.rebuild().unwrap();
                for (a, b) in running.as_slice().iter().zip(dual.w.as_slice()) {
                    assert!((a - b).abs() < 1e-10, "w has drifted from {b} to {a}");
                }
                let standing = dual.examine(&pool, &dual.w, 0.0).unwrap();
                let primal = problem.objective(&dual.w, &pool).unwrap();
                let gap: f64 = standing.gaps.iter().sum();
                assert!((standing.primal - primal).abs() <= 1e-10 * primal);
                assert!((gap - (primal - dual.value())).abs() <= 1e-10 * primal, "{gap}, {primal}, {}", dual.value());
                assert!(dual.glance(&pool, &dual.w).unwrap() <= primal * (1.0 + 1e-12));
                for (i, block) in dual.blocks.iter().enumerate() {
                    let sum: f64 = block.held.iter().map(|held| held.alpha).sum();
                    assert!(sum <= dual.cap(i) * (1.0 + 1e-12), "block {i} has {sum} of {}", dual.cap(i));
                }
            }
            let (before, mut rise) = (dual.value(), 0.0);
            for i in 0..N {
                rise += dual.visit(i, None, 0.0).unwrap().rise;
            }
            assert!((dual.value() - before - rise).abs() <= 1e-10 * before);
        }
    }
}
