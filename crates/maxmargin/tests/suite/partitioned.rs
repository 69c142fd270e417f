//! Training on partitions that answer `cut(w)` against training on the examples themselves.

use crate::common;

use std::sync::Mutex;

use common::{Draw, formulation};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Penalty, Problem, Rescaling};
use maxmargin::solver::cutting_plane::CuttingPlane;
use maxmargin::solver::partition::Partition;
use maxmargin::solver::{Progress, Settings, Solution, Solver, Stop};
use maxmargin::sparse::{SparseMatrix, SparseView};
use maxmargin::tasks::multiclass::Multiclass;
use maxmargin::tasks::partitioned::{Facts, Joint, Partitioned, Partitions};
use maxmargin::weights::Weights;
use maxmargin::{Error, Result};
use proptest::prelude::*;

/// Examples in memory, cut into partitions, these into groups.
struct Field<'f> {
    groups: Vec<Vec<Problem<'f>>>,
    pool: Pool,
    asked: Mutex<usize>,
}

impl Field<'_> {
    fn facts(&self) -> Vec<Facts> {
        let of_group = |group: &Vec<Problem<'_>>| Facts {
            examples: group.iter().map(Problem::len).sum(),
            max_loss: group.iter().map(|part| part.len() as f64 * part.usual_loss()).sum(),
            is_exact: group.iter().all(Problem::oracle_is_exact),
        };
        self.groups.iter().map(of_group).collect()
    }
}

impl Partitions for Field<'_> {
    fn cuts(&self, w: &[f64]) -> Result<Vec<(Vec<f64>, f64)>> {
        *self.asked.lock().unwrap() += 1;
        let w = Weights::from(w.to_vec());
        let sum = |group: &Vec<Problem<'_>>| {
            let mut sum = (vec![0.0; w.len()], 0.0);
            for part in group {
                let (lhs, rhs) = Partition::new(part)?.cut(&w, &self.pool)?;
                sum.0.iter_mut().zip(&lhs).for_each(|(sum, x)| *sum += x);
                sum.1 += rhs;
            }
            Ok(sum)
        };
        self.groups.iter().map(sum).collect()
    }

    fn loss(&self, w: &[f64]) -> Result<f64> {
        let w = Weights::from(w.to_vec());
        self.groups.iter().flatten().map(|part| Partition::new(part)?.loss(&w, &self.pool)).sum()
    }
}

fn parts<'f>(
    task: &'f Multiclass,
    rows: &'f [SparseView<'f>],
    labels: &'f [u32],
    weights: &'f [f64],
    formulation: Formulation,
    sizes: &[&[usize]],
    threads: usize,
) -> Field<'f> {
    let mut at = 0;
    let mut part = |&size: &usize| {
        let range = at..at + size;
        at += size;
        Problem::new(task, &rows[range.clone()], &labels[range.clone()], Some(&weights[range]), formulation).unwrap()
    };
    let groups = sizes.iter().map(|group| group.iter().map(&mut part).collect()).collect();
    Field { groups, pool: Pool::new(threads).unwrap(), asked: Mutex::new(0) }
}

/// The examples are 60.
const SIZES: [&[&[usize]]; 3] = [&[&[60]], &[&[20, 1, 9, 30]], &[&[20, 1], &[30], &[9]]];

fn train(field: &Field<'_>, c: f64, d: usize) -> (Solution, f64) {
    let task = Partitioned::new(field, field.facts(), d).unwrap();
    let (groups, weights) = (field.groups.len(), task.weights());
    let inputs: Vec<usize> = (0..groups).collect();
    let truths: Vec<Joint> = (0..groups).map(Joint::truths).collect();
    let formulation = Formulation { c, ..Formulation::default() };
    let problem = Problem::new(&task, &inputs, &truths, Some(&weights), formulation).unwrap();
    let solver = CuttingPlane { groups, cache: Some(0), ..CuttingPlane::default() };
    let settings = Settings { stop: Some(Stop::RelativeGap(1e-4)), ..Settings::default() };
    let solution = solver.solve(&problem, &settings, &mut |_: &Progress| std::ops::ControlFlow::Continue(())).unwrap();
    let loss = problem.train_loss(&solution.weights, &field.pool).unwrap();
    (solution, loss)
}

fn data(seed: u64) -> (SparseMatrix, Vec<u32>, Vec<f64>, Multiclass) {
    let mut draw = Draw(seed);
    let (x, y) = (draw.matrix(60, 6), draw.labels(60, 3));
    let (weights, costs) = (draw.example_weights(60), draw.costs(3));
    (x, y, weights, Multiclass::new(6, costs))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_optimum_is_that_of_the_examples(seed: u64, c in 0.1..30.0, is_slack: bool, is_quadratic: bool) {
        let (x, y, weights, task) = data(seed);
        let rows = x.views();
        let rescaling = if is_slack { Rescaling::Slack } else { Rescaling::Margin };
        let penalty = if is_quadratic { Penalty::Quadratic } else { Penalty::Linear };
        let form = formulation(c, rescaling, penalty);
        let whole = Problem::new(&task, &rows, &y, Some(&weights), form).unwrap();
        for sizes in SIZES {
            let field = parts(&task, &rows, &y, &weights, form, sizes, 1);
            let (solution, loss) = train(&field, c, whole.dimension());
            let exact = whole.objective(&solution.weights, &field.pool).unwrap();
            let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * (1.0 + a.abs());
            prop_assert!(close(exact, solution.report.primal), "P {exact}, told {}", solution.report.primal);
            // The bound holds for the whole: no solver is below it.
            let settings = Settings { stop: Some(Stop::RelativeGap(1e-4)), ..Settings::default() };
            let other = CuttingPlane::default()
                .solve(&whole, &settings, &mut |_: &Progress| std::ops::ControlFlow::Continue(()))
                .unwrap();
            prop_assert!(solution.report.gap <= 1.01e-4 * exact);
            prop_assert!(solution.report.dual <= other.report.primal * (1.0 + 1e-9));
            prop_assert!(other.report.dual <= exact * (1.0 + 1e-9));
            prop_assert!(close(loss, whole.train_loss(&solution.weights, &field.pool).unwrap()));
        }
    }
}

#[test]
fn the_bits_do_not_depend_on_threads_and_a_round_asks_once() {
    let (x, y, weights, task) = data(7);
    let rows = x.views();
    for sizes in SIZES {
        let of = |threads| {
            let field =
                parts(&task, &rows, &y, &weights, formulation(3.0, Rescaling::Margin, Penalty::Linear), sizes, threads);
            let (solution, _) = train(&field, 3.0, 18);
            assert_eq!(*field.asked.lock().unwrap() as u64, solution.report.rounds);
            solution.weights
        };
        assert_eq!(of(1), of(3));
    }
}

/// Partitions whose cuts are no numbers.
struct Broken;
impl Partitions for Broken {
    fn cuts(&self, w: &[f64]) -> Result<Vec<(Vec<f64>, f64)>> {
        Ok(vec![(vec![f64::NAN; w.len()], 0.0)])
    }
    fn loss(&self, _: &[f64]) -> Result<f64> {
        Ok(0.0)
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let (x, y, weights, task) = data(1);
    let rows = x.views();
    let hard = formulation(1.0, Rescaling::Slack, Penalty::Hard);
    let problem = Problem::new(&task, &rows, &y, Some(&weights), hard).unwrap();
    assert!(Partition::new(&problem).err().unwrap().to_string().contains("hard margin"));

    let facts = Facts { examples: 5, max_loss: 5.0, is_exact: true };
    let task = Partitioned::new(&Broken, vec![facts], 4).unwrap();
    let truths = [Joint::truths(0)];
    let problem = Problem::new(&task, &[0], &truths, None, Formulation::default()).unwrap();
    let solver = CuttingPlane { cache: Some(0), ..CuttingPlane::default() };
    let failed = solver
        .solve(&problem, &Settings::default(), &mut |_: &Progress| std::ops::ControlFlow::Continue(()))
        .unwrap_err();
    assert!(matches!(failed, Error::Task(_)) && failed.to_string().contains("finite cuts"), "{failed}");
    let none = Facts { examples: 0, ..facts };
    assert!(Partitioned::new(&Broken, vec![facts, none], 4).is_err());
}
