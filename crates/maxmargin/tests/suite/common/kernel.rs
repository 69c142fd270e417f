//! What the tests of kernels share: solvers that know kernels, problems over atoms, and what must hold of every answer.

use std::sync::Arc;

use maxmargin::Result;
use maxmargin::kernel::{Atoms, Gram, Kernel, Metric, Shape, Standard};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Penalty, Problem};
use maxmargin::solver::bcfw::{Bcfw, Order};
use maxmargin::solver::cutting_plane::{CuttingPlane, Placement, Scheme};
use maxmargin::solver::n_slack::Update;
use maxmargin::solver::sampled_constant::SampledConstant;
use maxmargin::solver::{Certificate, Observer, Settings, Solution, Solver, Status};
use maxmargin::sparse::SparseMatrix;
use maxmargin::task::Task;
use maxmargin::tasks::multiclass::Multiclass;

use super::{Any, Draw, bcfw, bits_of, cuts, n_slack};

/// A solver that knows kernels.
#[derive(Debug, Clone)]
pub enum Way {
    Any(Any),
    Constant(SampledConstant),
}

impl Way {
    pub fn try_solve(&self, p: &Problem<'_>, s: &Settings, o: &mut dyn Observer) -> Result<Solution> {
        match self {
            Self::Any(any) => any.try_solve(p, s, o),
            Self::Constant(solver) => solver.solve(p, s, o),
        }
    }

    pub fn solve(&self, p: &Problem<'_>, s: &Settings, o: &mut dyn Observer) -> Solution {
        self.try_solve(p, s, o).unwrap()
    }
}

pub fn growing(size: usize) -> Way {
    Way::Any(Any::Cuts(CuttingPlane::sampled(size, Scheme::Growing)))
}

pub fn uniform(size: usize) -> Way {
    Way::Any(Any::Cuts(CuttingPlane::sampled(size, Scheme::Uniform)))
}

pub fn constant(size: usize) -> Way {
    Way::Constant(SampledConstant { size, ..SampledConstant::default() })
}

/// The solvers that end with a proof.
pub fn proving(problem: &Problem<'_>) -> Vec<Way> {
    let groups = 3.min(problem.len());
    let mut all = vec![
        cuts(1, None, Placement::LineSearch),
        cuts(1, Some(3), Placement::LineSearch),
        cuts(1, Some(0), Placement::QpPoint),
        cuts(groups, None, Placement::LineSearch),
        cuts(groups, Some(3), Placement::QpPoint),
        n_slack(Update::Batch(8)),
        n_slack(Update::OwnCuts),
    ];
    let penalty = problem.formulation().penalty;
    if penalty != Penalty::Hard {
        // Not the one without cached passes, which takes thousands of passes at a large C.
        all.extend([Any::Bcfw(Bcfw::default()), bcfw(Order::Gaps, 1, 3)]);
    }
    let mut all: Vec<Way> = all.into_iter().map(Way::Any).collect();
    if penalty == Penalty::Linear {
        all.extend([growing(1), growing(4), growing(1000)]);
    }
    all
}

/// Those that end with an estimate.
pub fn estimating() -> Vec<Way> {
    vec![uniform(3), uniform(100), constant(20), constant(300)]
}

/// All that the penalty allows.
pub fn all_ways(problem: &Problem<'_>) -> Vec<Way> {
    let mut all = proving(problem);
    if problem.formulation().penalty == Penalty::Linear {
        all.extend(estimating());
    }
    all
}

pub fn pool() -> Pool {
    Pool::new(1).unwrap()
}

pub fn standard(shape: Shape) -> Standard {
    Standard { shape, constant: 0.0 }
}

pub const QUADRATIC: Standard = Standard { shape: Shape::Poly { degree: 2, gamma: 1.0, coef0: 1.0 }, constant: 0.0 };
pub const LINEAR: Standard = Standard { shape: Shape::Linear, constant: 0.0 };
pub const RBF: Standard = Standard { shape: Shape::Rbf { gamma: 0.7 }, constant: 0.0 };

/// Vectors as atoms, with a kernel between them.
pub struct Kernelled {
    pub hot: SparseMatrix,
    pub gram: Gram,
}

impl Kernelled {
    pub fn new(kernel: impl Kernel + 'static, rows: &SparseMatrix) -> Self {
        Self::cached(kernel, rows, usize::MAX)
    }

    pub fn cached(kernel: impl Kernel + 'static, rows: &SparseMatrix, cache: usize) -> Self {
        let mut atoms = Atoms::default();
        let hot = atoms.one_hot(rows);
        Self { hot, gram: Gram::new(Arc::new(kernel), atoms.into_vectors(), cache) }
    }

    pub fn atoms(&self) -> u32 {
        self.gram.len() as u32
    }

    /// Hands over the problem of classes.
    pub fn classes<R>(
        &self,
        costs: &maxmargin::tasks::multiclass::Costs,
        y: &[u32],
        c: Option<&[f64]>,
        f: Formulation,
        then: impl FnOnce(&Problem<'_>) -> R,
    ) -> R {
        let task = Multiclass::new(self.atoms(), costs.clone());
        let views = self.hot.views();
        let metric = Metric::new(&self.gram, task.blocks()[0]);
        then(&Problem::new(&task, &views, y, c, f).unwrap().with_kernel(metric))
    }
}

impl Draw {
    /// Rows whose products are exact in f32, and so the kernel's values: multiples of a quarter.
    pub fn quarters(&mut self, n: usize, d: u32) -> SparseMatrix {
        let mut x = SparseMatrix::new();
        for _ in 0..n {
            let row = (0..d).map(|j| (j, (self.below(9) as f32 - 4.0) / 4.0));
            x.push_row(row.filter(|e| e.1 != 0.0).collect::<Vec<_>>());
        }
        x.set_columns(d);
        x
    }
}

/// The features of which (1 + <a, b>)^2 is the inner product.
pub fn squares(x: &SparseMatrix, d: u32) -> SparseMatrix {
    let mut mapped = SparseMatrix::new();
    for i in 0..x.rows() {
        let mut dense = vec![0.0; d as usize];
        x.row(i).iter().for_each(|(j, v)| dense[j as usize] = f64::from(v));
        let mut row = vec![1.0];
        for (j, a) in dense.iter().enumerate() {
            row.push(2.0_f64.sqrt() * a);
            row.push(a * a);
            row.extend(dense[..j].iter().map(|b| 2.0_f64.sqrt() * a * b));
        }
        mapped.push_row((0..).zip(row.iter().map(|&v| v as f32)));
    }
    mapped
}

/// What must hold of every answer, whoever gave it; or what is wrong.
pub fn fault(problem: &Problem<'_>, solution: &Solution) -> Option<String> {
    let (report, w) = (&solution.report, &solution.weights);
    let metric = problem.metric().expect("a kernel");
    let (block, gram) = (metric.block(), metric.gram());
    if !w.has_coefficients() || w.len() != problem.dimension() {
        return Some("no coefficients".to_owned());
    }
    if !w.as_slice().iter().chain(w.coefficients()).all(|x| x.is_finite()) {
        return Some("weights that are not finite".to_owned());
    }
    if report.dual.is_nan() || report.gap != report.certificate.gap(report.primal, report.dual) {
        return Some("no gap by definition".to_owned());
    }
    let is_infeasible = report.status == Status::Infeasible;
    let primal = problem.objective(w, &pool()).unwrap();
    if !is_infeasible && (primal - report.primal).abs() > 1e-8 * (1.0 + primal.abs()) {
        return Some(format!("reported {}, computed {primal}", report.primal));
    }
    // Scores are the kernel's values times the coefficients.
    let (k, m) = (block.width as usize, gram.len());
    let (atoms, kernel) = (gram.atoms(), gram.kernel());
    let largest = (0..m).map(|a| gram.diagonal(a as u32).abs()).fold(0.0, f64::max);
    for b in 0..m {
        for s in 0..k {
            let (mut score, mut size) = (0.0, 0.0);
            for a in 0..m {
                let beta = w.coefficients()[block.at(a as u32, s as u32)];
                score += beta * kernel.value(atoms.row(a), atoms.row(b));
                size += beta.abs() * largest.max(1.0);
            }
            let said = w.as_slice()[block.at(b as u32, s as u32)];
            if (said - score).abs() > 1e-5 * size + 1e-9 {
                return Some(format!("atom {b} scores {said} in slot {s}, by its coefficients {score}"));
            }
        }
    }
    let inside = metric.coordinates();
    let outside = (0..w.len()).filter(|j| !inside.contains(j));
    for j in outside {
        if (w.as_slice()[j] - w.coefficients()[j]).abs() > 1e-9 * (1.0 + w.as_slice()[j].abs()) {
            return Some(format!("coordinate {j} outside the kernel's block is not its coefficient"));
        }
    }
    None
}

/// Everything of an answer but the seconds.
pub fn bits(s: &Solution) -> Vec<u64> {
    let certificate = match s.report.certificate {
        Certificate::Exact => 1,
        Certificate::Estimate => 2,
        Certificate::None => 3,
    };
    let coefficients = s.weights.coefficients().iter().map(|w| w.to_bits());
    let loss = s.train_loss.map_or(u64::MAX, f64::to_bits);
    bits_of(s).into_iter().chain([certificate, loss]).chain(coefficients).collect()
}
