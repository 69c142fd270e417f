//! What the papers prove about the number of rounds and cuts.
//!
//! JFY09: Joachims, Finley, Yu 2009, Cutting-Plane Training of Structural SVMs. THJA04: Tsochantaridis, Hofmann,
//! Joachims, Altun 2004, SVM Learning for Interdependent and Structured Output Spaces.

use crate::common;

use std::ops::ControlFlow;

use common::{Draw, Typed, formulation, psi, to_gap};
use maxmargin::Result;
use maxmargin::features::{Block, Collect, Sink};
use maxmargin::parallel::Pool;
use maxmargin::problem::{OracleScratch, Penalty, Problem, Rescaling};
use maxmargin::qp::{Cut, Qp};
use maxmargin::solver::cutting_plane::{CuttingPlane, Placement};
use maxmargin::solver::frank_wolfe::FrankWolfe;
use maxmargin::solver::n_slack::{NSlack, Update};
use maxmargin::solver::{Progress, Settings, Solver, Status};
use maxmargin::sparse::SparseView;
use maxmargin::task::{LossTerm, Task, first_max};
use maxmargin::tasks::multiclass::Multiclass;
use maxmargin::weights::Weights;

/// Algorithm 3 and 4 of JFY09: cuts at the QP's point, no cache, nothing dropped.
fn paper() -> CuttingPlane {
    CuttingPlane {
        cache: Some(0),
        placement: Placement::QpPoint,
        idle_rounds: u32::MAX,
        max_cuts: 100_000,
        ..CuttingPlane::default()
    }
}

/// R^2 and Delta of the theorems: the largest squared length of dpsi, the largest loss.
fn radius2_and_loss(problem: &Typed<'_, Multiclass>) -> (f64, f64) {
    let task = problem.task();
    let mut radius2: f64 = 0.0;
    for i in 0..problem.len() {
        let at_truth = psi(task, problem.input(i), problem.truth(i));
        for y in 0..task.costs().classes() as u32 {
            let other = psi(task, problem.input(i), &y);
            radius2 = radius2.max(at_truth.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum());
        }
    }
    (radius2, problem.max_loss())
}

/// JFY09, Theorem 5, (10): at most `ceil(log2(Delta / 4 R^2 C)) + ceil(16 R^2 C / epsilon)` iterations with margin rescaling,
/// for epsilon <= 4 R^2 C; Theorem 6, (26): with slack rescaling the same with `R Delta` in the place of R. A negative
/// logarithm counts as zero: the phase that it bounds is then empty.
///
/// The paper stops when no cut is violated by more than epsilon, we stop at a gap of C epsilon, which that implies: the
/// bound must hold for us too. Our QP is solved to a tenth of the gap only; the bounds leave room for that.
#[test]
fn rounds_of_one_slack() {
    for seed in 0..6 {
        let mut draw = Draw(seed);
        let (n, d, classes) = (20, 4, 3);
        let (x, y) = (draw.matrix(n, d), draw.labels(n, classes));
        let (task, views) = (Multiclass::new(d, draw.costs(classes as usize)), x.views());
        for rescaling in [Rescaling::Margin, Rescaling::Slack] {
            for (c, epsilon) in [(0.1, 0.1), (1.0, 0.01), (10.0, 0.1), (30.0, 0.01)] {
                let f = formulation(c, rescaling, Penalty::Linear);
                let problem = Typed::new(&task, &views, &y, None, f).unwrap();
                let (radius2, loss) = radius2_and_loss(&problem);
                let radius2 = if rescaling == Rescaling::Slack { radius2 * loss * loss } else { radius2 };
                assert!(epsilon <= 4.0 * radius2 * c, "the theorem's condition");
                let first = (loss / (4.0 * radius2 * c)).log2().ceil().max(0.0);
                let bound = first + (16.0 * radius2 * c / epsilon).ceil();
                let report = paper().solve(&problem, &to_gap(epsilon), &mut ()).unwrap().report;
                assert_eq!(report.status, Status::Converged);
                assert!(report.rounds as f64 <= bound, "{} rounds, at most {bound}: {report:?}", report.rounds);
            }
        }
    }
}

/// THJA04, Theorem 1: SVM2 with slack rescaling adds at most `e^-2 (C Delta^2 R^2 + n Delta)` cuts, where a cut is added only
/// if `H > xi + e`.
///
/// We stop at a gap of C epsilon, and n-slack adds a cut where `H^2/2 - xi^2/2 > epsilon/2`. Then `H - xi > epsilon / (H + xi) >=
/// epsilon / 2H`. How large can H be? The dual begins at 0 and rises, so with `r = n/C` and rhs <= sqrt(Delta)
/// `1/2 |w|^2 <= sum_i (sqrt(Delta) S_i - r/2 S_i^2) <= n Delta / 2r = C Delta / 2`, hence
/// `H = sqrt(D_i) (1 - <w, dpsi>) <= sqrt(Delta) (1 + R sqrt(C Delta))`, and `e = epsilon / 2H` with that H is an epsilon
/// of the paper for which the condition of its step 8 holds. The paper solves its QP exactly, we to a tenth of the gap;
/// the bound has room for that.
#[test]
fn cuts_of_n_slack() {
    for seed in 0..4 {
        let mut draw = Draw(100 + seed);
        let (n, d, classes) = (15, 4, 4);
        let (x, y) = (draw.matrix(n, d), draw.labels(n, classes));
        let (task, views) = (Multiclass::new(d, draw.costs(classes as usize)), x.views());
        for (c, epsilon) in [(1.0, 0.5), (4.0, 0.1), (20.0, 0.05)] {
            let f = formulation(c, Rescaling::Slack, Penalty::Quadratic);
            let problem = Typed::new(&task, &views, &y, None, f).unwrap();
            let (radius2, loss) = radius2_and_loss(&problem);
            let largest = loss.sqrt() * (1.0 + (radius2 * c * loss).sqrt());
            let e = epsilon / (2.0 * largest);
            let bound = (c * loss * loss * radius2 + n as f64 * loss) / (e * e);
            for update in [Update::Batch(1), Update::OwnCuts] {
                // Nothing is dropped, so the working set at the end is all that was ever added.
                let solver = NSlack { update, idle_rounds: u32::MAX };
                let report = solver.solve(&problem, &to_gap(epsilon), &mut ()).unwrap().report;
                assert_eq!(report.status, Status::Converged);
                assert!(report.working_set as f64 <= bound, "{} cuts, at most {bound}", report.working_set);
            }
        }
    }
}

/// JFY09, example (27): practically infinitely many classes, one feature, zero-one loss.
struct Endless {
    blocks: [Block; 1],
}

impl Endless {
    fn new() -> Self {
        Self { blocks: [Block { base: 0, rows: 1, width: 2000 }] }
    }
}

impl Task for Endless {
    type Input<'a> = f32;
    type Output = u32;
    type Scratch = Vec<f64>;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: f32, y: &u32, sink: &mut impl Sink) -> Result<()> {
        sink.part(self.blocks[0], *y, SparseView::new(&[0], &[x]), 1.0);
        Ok(())
    }

    fn loss(&self, truth: &u32, y: &u32) -> f64 {
        f64::from(truth != y)
    }

    fn max_loss(&self, _: &u32) -> f64 {
        1.0
    }

    fn argmax(
        &self,
        w: &Weights,
        x: f32,
        loss: Option<LossTerm<'_, u32>>,
        scores: &mut Vec<f64>,
        y: &mut u32,
    ) -> Result<()> {
        scores.clear();
        scores.extend(w.as_slice().iter().map(|w| w * f64::from(x)));
        if let Some(loss) = loss {
            for (k, score) in scores.iter_mut().enumerate() {
                *score += loss.weight * self.loss(loss.truth, &(k as u32));
            }
        }
        *y = first_max(scores) as u32;
        Ok(())
    }
}

/// The violation of all cuts outside the working set after k cuts. The paper says 1/(k+1) for C >= 1/2 and C/k for C <= 1/2.
/// Exactly: its first solution has all k dual variables at 1/(k+1), which sum to k/(k+1) and fit under the cap while
/// `C >= k/(k+1)`; from then on they are C/k. So it is the smaller of the two, for every C: always 1/(k+1) from C = 1 on,
/// always C/k up to C = 1/2.
fn violation(c: f64, k: u32) -> f64 {
    let k = f64::from(k);
    (1.0 / (k + 1.0)).min(c / k)
}

/// The least k for which that violation is at most epsilon.
fn least_cuts(c: f64, epsilon: f64) -> u32 {
    (1..1_000_000).find(|&k| violation(c, k) <= epsilon * (1.0 + 1e-9)).unwrap()
}

/// Algorithm 3 by hand, with the library's oracle and a QP solved as far as f64 goes: the violations are those of the
/// paper.
#[test]
fn the_tight_example_step_by_step() {
    let task = Endless::new();
    let pool = Pool::new(1).unwrap();
    for c in [0.1, 0.25, 0.5, 0.7, 1.0, 8.0] {
        let f = formulation(c, Rescaling::Margin, Penalty::Linear);
        let problem = Problem::new(&task, &[1.0], &[0], None, f).unwrap();
        let mut qp = Qp::new(problem.dimension(), vec![c]);
        let mut w = Weights::zeros(problem.dimension());
        let mut scratch = OracleScratch::default();
        for k in 0..60 {
            qp.weights_into(&mut w, &pool);
            let h = problem.oracle(0, &w, &mut scratch).unwrap();
            let primal = problem.objective(&w, &pool).unwrap();
            let gap = (primal - qp.value()) / c;
            if k > 0 {
                let right = violation(c, k);
                assert!((gap - right).abs() < 1e-12, "C = {c}: gap {gap} after {k} cuts, not {right}");
            }
            let mut collect = Collect::default();
            problem.emit(0, &scratch.y, 1.0, &mut collect).unwrap();
            let mut lhs = vec![0.0; problem.dimension()];
            collect.merged().iter().for_each(|&(j, v)| lhs[j as usize] = v);
            assert!(h > 0.0);
            qp.push(0, Cut::from_dense(&lhs, 1.0, 10.0, 0.0), &pool).unwrap();
            let _ = qp.solve(1e-15);
        }
    }
}

/// The solver itself on the same example. Its QP is solved to a tenth of the gap, so the gap may be that much off.
#[test]
fn the_tight_example_by_the_solver() {
    let task = Endless::new();
    for rescaling in [Rescaling::Margin, Rescaling::Slack] {
        for c in [0.1, 0.5, 0.7, 8.0] {
            let f = formulation(c, rescaling, Penalty::Linear);
            let problem = Problem::new(&task, &[1.0], &[0], None, f).unwrap();
            let mut rounds = 0;
            let mut watch = |p: &Progress| {
                let gap = p.gap.expect("without a cache every round is exact") / c;
                // The first round has no cut yet.
                let k = p.round as u32 - 1;
                if k > 0 {
                    let right = violation(c, k);
                    assert!(gap >= 0.7 * right, "C = {c}: gap {gap} after {k} cuts, about {right}");
                    assert!(gap <= 1.3 * right, "C = {c}: gap {gap} after {k} cuts, about {right}");
                }
                rounds = k;
                ControlFlow::Continue(())
            };
            let epsilon = 0.02 * c.min(1.0);
            let settings = Settings { max_passes: Some(200.0), ..to_gap(epsilon) };
            let report = paper().solve(&problem, &settings, &mut watch).unwrap().report;
            assert_eq!(report.status, Status::Converged);
            let least = least_cuts(c, epsilon / 0.7);
            assert!(rounds >= least, "C = {c}: {rounds} cuts, fewer than {least} are too few to be true");
        }
    }
}

/// Frank and Wolfe's line search instead of the QP: the proof of Theorem 5 needs no more than that, so its bound
/// `log2(Delta / 4 R^2 C) + 8 R^2 C / epsilon` for the optimality gap, twice that for the violation, holds as well.
#[test]
fn rounds_of_frank_wolfe() {
    let task = Endless::new();
    for c in [0.1, 0.5, 2.0] {
        let f = formulation(c, Rescaling::Margin, Penalty::Linear);
        let problem = Problem::new(&task, &[1.0], &[0], None, f).unwrap();
        let epsilon = 0.1 * c.min(1.0);
        let report = FrankWolfe.solve(&problem, &to_gap(epsilon), &mut ()).unwrap().report;
        assert_eq!(report.status, Status::Converged);
        // R^2 = 2, Delta = 1
        let bound = (1.0 / (8.0 * c)).log2().ceil().max(0.0) + (32.0 * c / epsilon).ceil();
        assert!(report.rounds as f64 <= bound, "{} rounds, at most {bound}", report.rounds);
    }
    for seed in 0..4 {
        let mut draw = Draw(200 + seed);
        let (x, y) = (draw.matrix(20, 4), draw.labels(20, 3));
        let (task, views) = (Multiclass::new(4, draw.costs(3)), x.views());
        let f = formulation(2.0, Rescaling::Margin, Penalty::Linear);
        let problem = Typed::new(&task, &views, &y, None, f).unwrap();
        let (radius2, loss) = radius2_and_loss(&problem);
        let bound = (loss / (8.0 * radius2)).log2().ceil().max(0.0) + (32.0 * radius2 / 0.05).ceil();
        let report = FrankWolfe.solve(&problem, &to_gap(0.05), &mut ()).unwrap().report;
        assert_eq!(report.status, Status::Converged);
        assert!(report.rounds as f64 <= bound, "{} rounds, at most {bound}", report.rounds);
    }
}
