//! Sampled cuts in constant time (Yu and Joachims 2008, Algorithm 2), for kernels and more examples than one wants to look at.
//!
//! ```text
//! min 1/2 |w|^2 + C xi   s.t.  c_j + <w, g_j> <= xi,   c_j = 1/r sum L_i(y_i),  g_j = -1/r sum dpsi_i(y_i)
//! ```
//!
//! over r examples i drawn with replacement for each cut j, y_i the worst output at the w of that round. Training ends when
//! so many cuts in a row are violated by no more than epsilon: not by a look at all examples, so that its time does not
//! depend on their number. For the same reason P and the training loss are estimated on a sample at the end.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::course::{Saved, Tightening};
use super::state::{Resumable, Writer, check, is_sound};
use super::{Course, Observer, Settings, Solution, Solver, Status};
use crate::error::{Error, Result};
use crate::features::Collect;
use crate::kernel::{Columns, Metric};
use crate::parallel::{Pool, ranges};
use crate::problem::{OracleScratch, Output, Penalty, Problem, Scratch};
use crate::qp::{Cut, Qp};
use crate::random::Random;
use crate::sparse::{SparseMatrix, SparseView};
use crate::weights::Weights;

/// Sampled cuts, constant time.
#[derive(Debug, Clone)]
pub struct SampledConstant {
    /// r: examples a cut.
    pub size: usize,
    /// Training ends after so many cuts in a row that are not violated by more than epsilon.
    pub quiet_cuts: u32,
    /// Cuts whose dual variable was zero for that many rounds are dropped.
    pub idle_rounds: u32,
}

impl Default for SampledConstant {
    fn default() -> Self {
        Self { size: DEFAULT_SIZE, quiet_cuts: 4, idle_rounds: 20 }
    }
}

/// The paper's r where training sets are compared by size.
const DEFAULT_SIZE: usize = 1000;

/// Parts of what is shared by threads, whatever their number.
const PARTS: usize = 64;

/// P and the training loss are estimated on so many examples, where there are more.
const LOOKED_AT: usize = 10_000;

impl Solver for SampledConstant {
    fn name(&self) -> &'static str {
        "sampled-constant"
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
        if self.size == 0 {
            return Err(Error::setting("sample-size", "must be at least 1"));
        }
        let Some(metric) = problem.metric() else {
            return Err(Error::setting("solver", "sampled cuts are for kernels, whose cuts are dear; take one-slack"));
        };
        if problem.formulation().penalty != Penalty::Linear {
            return Err(Error::setting("solver", "sampled cuts are for linear slack; take one-slack or n-slack"));
        }
        if settings.warm_start.is_some() {
            return Err(Error::setting("warm-start", "sampled-constant begins without weights"));
        }
        let mut course = Course::new(self, problem, settings, observer)?.with_estimate();
        let pool = Pool::new(settings.threads)?;
        let mut run = Run::new(self, problem, metric, &pool, settings.seed);
        if let Some(saved) = course.resume(problem, &pool)? {
            run.restore(saved, &mut course)?;
        }
        let status = run.rounds(&mut course)?;
        let (w, estimate) = run.finish()?;
        course.so_far.primal = f64::INFINITY;
        course.offer(&w, estimate.primal);
        course.is_estimated = problem.len() > LOOKED_AT;
        let mut solution = course.finish(status)?;
        solution.train_loss = Some(estimate.train_loss);
        Ok(solution)
    }
}

/// What a sample of the examples says of w.
struct Estimate {
    primal: f64,
    train_loss: f64,
}

/// What a sample says at w.
struct Sampled {
    vector: Entries,
    rhs: f64,
    slack: f64,
}

/// A cut's coefficients, or those of w.
type Entries = Vec<(u64, f64)>;

/// Such a vector, its atoms made ready for kernel values.
struct Plane {
    columns: Columns,
    /// Of the atoms, in all slots.
    coefficients: Vec<f64>,
}

/// Where a run stands between two rounds, beside its cuts.
#[derive(Serialize, Deserialize)]
struct Position {
    random: Random,
    tightening: Tightening,
    /// Cuts in a row that were not violated.
    quiet: u32,
}

struct Run<'p, 'a> {
    solver: &'p SampledConstant,
    problem: &'p Problem<'a>,
    metric: Metric<'a>,
    pool: &'p Pool,
    qp: Qp,
    /// In the order of the QP's cuts.
    planes: Vec<Entries>,
    position: Position,
    /// Scores at the atoms of the sample at hand; what stands elsewhere is of earlier samples.
    scores: Weights,
}

impl<'p, 'a> Run<'p, 'a> {
    fn new(
        solver: &'p SampledConstant,
        problem: &'p Problem<'a>,
        metric: Metric<'a>,
        pool: &'p Pool,
        seed: u64,
    ) -> Self {
        let d = problem.dimension();
        let position = Position { random: Random::new(seed), tightening: Tightening::default(), quiet: 0 };
        let qp = Qp::new(d, vec![problem.formulation().c]);
        Self { solver, problem, metric, pool, qp, planes: Vec::new(), position, scores: Weights::zeros(d) }
    }

    fn restore(&mut self, mut saved: Saved<'_>, course: &mut Course<'_>) -> Result<()> {
        let d = self.problem.dimension();
        self.qp = saved.reader.take()?;
        check(self.qp.dimension() == d && self.qp.caps().len() == 1, "the dual")?;
        self.planes = saved.reader.take()?;
        check(self.planes.len() == self.qp.len(), "cuts")?;
        for plane in &self.planes {
            let ascends = plane.is_sorted_by(|a, b| a.0 < b.0);
            check(ascends && plane.iter().all(|e| e.0 < d as u64 && is_sound(e.1)), "cuts")?;
        }
        self.position = saved.reader.take()?;
        if saved.growth.is_some() {
            (self.position.tightening, self.position.quiet) = (Tightening::default(), 0);
            self.qp.set_caps(vec![self.problem.formulation().c]);
            // P is not known until the end; that of w = 0 says nothing of what was saved.
            course.so_far.primal = f64::INFINITY;
            course.estimate(self.qp.value());
            let tolerance = 0.1 * course.target();
            let _ = course.in_qp(|| self.qp.solve(tolerance));
            course.estimate(self.qp.value());
        }
        check(self.qp.caps() == [self.problem.formulation().c], "the caps")
    }

    fn plane(&self, vector: &[(u64, f64)]) -> Plane {
        let (block, width) = (self.metric.block(), self.metric.block().width as usize);
        let (mut vectors, mut coefficients, mut last) = (SparseMatrix::new(), Vec::new(), None);
        for &(at, value) in vector {
            let Some(atom) = self.metric.atom(at) else { continue };
            if last != Some(atom) {
                vectors.push_row(self.metric.gram().atoms().row(atom as usize).iter());
                coefficients.resize(coefficients.len() + width, 0.0);
                last = Some(atom);
            }
            let start = coefficients.len() - width;
            coefficients[start + (at as usize - block.at(atom, 0))] = value;
        }
        Plane { columns: Columns::new(self.metric.gram().kernel().clone(), vectors), coefficients }
    }

    fn rounds(&mut self, course: &mut Course<'_>) -> Result<Status> {
        let mut last = course.begin(self);
        loop {
            if let ControlFlow::Break(status) = last {
                return Ok(status);
            }
            self.round(course)?;
            (course.so_far.working_set, course.so_far.support) = (self.qp.len(), self.qp.active());
            course.so_far.done = self.position.quiet >= self.solver.quiet_cuts;
            last = course.end_round(None, self);
        }
    }

    /// One cut, and the QP with it.
    fn round(&mut self, course: &mut Course<'_>) -> Result<()> {
        let (problem, r) = (self.problem, self.solver.size);
        let sample: Vec<usize> = (0..r).map(|_| self.position.random.below(problem.len())).collect();
        let w = self.combined();
        course.in_oracle(|| self.look(&w, &sample))?;
        let Sampled { vector, rhs, slack } = course.in_oracle(|| self.cut(&sample))?;
        course.so_far.oracle_calls += r as u64;
        let (c, target) = (problem.formulation().c, course.target());
        let xi = ((self.qp.value() - 0.5 * self.norm2()) / c).max(0.0);
        if slack - xi <= target / c {
            self.position.quiet += 1;
            return Ok(());
        }
        self.position.quiet = 0;
        self.planes.push(vector);
        let row = course.in_oracle(|| self.products());
        let newest = self.planes.last().expect("pushed just now");
        self.qp.push_with(0, Cut::from_entries(newest, rhs), &row)?;
        let tolerance = self.position.tightening.of(0.1 * target);
        let before = self.qp.value();
        // Whatever precision it reaches, its value is an estimate.
        let _ = course.in_qp(|| self.qp.solve(tolerance));
        self.position.tightening.after(self.qp.value() - before, tolerance);
        course.estimate(self.qp.value());
        let kept = self.qp.drop_inactive(self.solver.idle_rounds);
        self.planes = kept.iter().map(|&j| std::mem::take(&mut self.planes[j])).collect();
        Ok(())
    }

    fn atoms(&self, examples: &[usize]) -> Result<Vec<u32>> {
        self.problem.atoms(self.metric, examples.iter().copied())
    }

    fn views(&self, atoms: &[u32]) -> Vec<SparseView<'a>> {
        atoms.iter().map(|&atom| self.metric.gram().atoms().row(atom as usize)).collect()
    }

    /// The inner products of a vector with atoms in all slots.
    fn image(&self, of: &Plane, atoms: &[u32]) -> Vec<f64> {
        let width = self.metric.block().width as usize;
        let rows = self.views(atoms);
        let parts = self.pool.map(ranges(rows.len(), PARTS), |range| {
            let mut image = vec![0.0; range.len() * width];
            of.columns.scores(&rows[range], &of.coefficients, width, &mut image);
            image
        });
        parts.concat()
    }

    /// `|w|^2 = 2 (sum a_j c_j - D)`
    fn norm2(&self) -> f64 {
        let right: f64 = self.qp.cuts().iter().zip(self.qp.alphas()).map(|(cut, a)| cut.rhs() * a).sum();
        2.0 * (right - self.qp.value())
    }

    /// `w = sum a_j g_j`
    fn combined(&self) -> Entries {
        let mut sum = Collect::default();
        for (plane, &a) in self.planes.iter().zip(self.qp.alphas()).filter(|(_, a)| **a > 0.0) {
            sum.add(a, plane);
        }
        sum.merged().to_vec()
    }

    /// The scores of these examples at w, left in `scores`.
    fn look(&mut self, w: &[(u64, f64)], examples: &[usize]) -> Result<()> {
        let atoms = self.atoms(examples)?;
        let image = self.image(&self.plane(w), &atoms);
        let (block, width) = (self.metric.block(), self.metric.block().width as usize);
        let inside = self.metric.coordinates();
        let dense = self.scores.as_mut_slice();
        dense[..inside.start].fill(0.0);
        dense[inside.end..].fill(0.0);
        for &(at, value) in w.iter().filter(|e| !inside.contains(&(e.0 as usize))) {
            dense[at as usize] = value;
        }
        for (&atom, scores) in atoms.iter().zip(image.chunks_exact(width)) {
            dense[block.at(atom, 0)..][..width].copy_from_slice(scores);
        }
        Ok(())
    }

    /// The cut of these examples at the scores at hand: left side, right side, and their mean slack.
    fn cut(&self, examples: &[usize]) -> Result<Sampled> {
        let (problem, share) = (self.problem, 1.0 / examples.len() as f64);
        let (mut rhs, mut slack, mut sum) = (0.0, 0.0, Collect::default());
        let mut scratch = OracleScratch::default();
        for &i in examples {
            let h = problem.oracle(i, &self.scores, &mut scratch)?;
            if h <= 0.0 {
                continue;
            }
            let term = problem.term(problem.loss(i, &scratch.y));
            let share = share * problem.weight(i);
            slack += share * h;
            rhs += share * term.rhs;
            problem.emit(i, &scratch.y, share * term.factor, &mut sum)?;
        }
        Ok(Sampled { vector: sum.merged().to_vec(), rhs, slack })
    }

    /// The inner products of the newest cut with all cuts and with itself.
    fn products(&self) -> Vec<f64> {
        let newest = self.planes.last().expect("a cut");
        let mut atoms: Vec<u32> = self.planes.iter().flatten().filter_map(|e| self.metric.atom(e.0)).collect();
        atoms.sort_unstable();
        atoms.dedup();
        let image = self.image(&self.plane(newest), &atoms);
        let (block, width) = (self.metric.block(), self.metric.block().width as usize);
        let inner = |plane: &Entries| {
            let (mut place, mut outside, mut sum) = (0, newest.as_slice(), 0.0);
            for &(at, value) in plane {
                if let Some(atom) = self.metric.atom(at) {
                    place += atoms[place..].partition_point(|&a| a < atom);
                    sum += value * image[place * width + (at as usize - block.at(atom, 0))];
                } else {
                    outside = &outside[outside.partition_point(|e| e.0 < at)..];
                    sum += outside.first().filter(|e| e.0 == at).map_or(0.0, |e| value * e.1);
                }
            }
            sum
        };
        self.pool.map(self.planes.iter().collect(), inner)
    }

    /// w, by its coefficients, and what a sample says of it. Where there are few examples it is all of them, and w has its
    /// scores, too.
    fn finish(mut self) -> Result<(Weights, Estimate)> {
        let (problem, n) = (self.problem, self.problem.len());
        let mut w = problem.zero();
        let (_, coefficients) = w.both_mut();
        let coefficients = coefficients.expect("a kernel's weights");
        let sum = self.combined();
        for &(at, value) in &sum {
            coefficients[at as usize] = value;
        }
        if n <= LOOKED_AT {
            self.metric.refresh(&mut w, self.pool);
            let (primal, train_loss) = (problem.objective(&w, self.pool)?, problem.train_loss(&w, self.pool)?);
            return Ok((w, Estimate { primal, train_loss }));
        }
        let sample: Vec<usize> = (0..LOOKED_AT).map(|_| self.position.random.below(n)).collect();
        let norm2 = self.norm2();
        self.look(&sum, &sample)?;
        let (scale, c) = (problem.formulation().loss_scale, problem.formulation().c);
        let sums = self.pool.map(ranges(sample.len(), PARTS), |range| {
            let mut scratch = OracleScratch::default();
            let (mut slack, mut loss, mut task, mut y) = (0.0, 0.0, Scratch::default(), Output::default());
            for &i in &sample[range] {
                slack += problem.weight(i) * problem.oracle(i, &self.scores, &mut scratch)?;
                problem.predict(i, &self.scores, &mut task, &mut y)?;
                loss += scale * problem.loss(i, &y);
            }
            Ok((slack, loss))
        });
        let (mut slack, mut loss) = (0.0, 0.0);
        for sum in sums {
            let (s, l) = sum?;
            (slack, loss) = (slack + s, loss + l);
        }
        let n = sample.len() as f64;
        Ok((w, Estimate { primal: 0.5 * norm2 + c * slack / n, train_loss: loss / n }))
    }
}

impl Resumable for Run<'_, '_> {
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.qp)?;
        out.put(&self.planes)?;
        out.put(&self.position)
    }
}
