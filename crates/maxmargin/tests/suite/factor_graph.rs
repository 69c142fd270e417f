//! Labellings of factor graphs: the laws of a task, the oracle against exhaustive search, odd graphs.

use crate::common;

use common::{Draw, PENALTIES, RESCALINGS, formulation, psi};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, OracleScratch, Output, Penalty, Problem, Rescaling};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::gdmm::Gdmm;
use maxmargin::solver::{Certificate, Settings, Solver, Status, Stop};
use maxmargin::sparse::{SparseMatrix, dot};
use maxmargin::task::{LossTerm, Task};
use maxmargin::tasks::factor_graph::{FactorGraph, Factors, Graph, GraphScratch, Shape, Template};
use maxmargin::testing::check_task;
use proptest::prelude::*;

const FEATURES: u32 = 3;

fn shape() -> Shape {
    let template =
        |name: &str, domains: &[u32], features| Template { name: name.into(), domains: domains.into(), features };
    let templates = vec![
        template("featured", &[2, 3], Some(2)),
        template("same", &[3, 3], None),
        template("triple", &[2, 3, 3], None),
    ];
    Shape { domains: vec![1, 2, 3], features: FEATURES, templates }
}

/// A graph of this shape with variables of two and three labels; a forest or not.
fn graph(draw: &mut Draw, factors: usize) -> Graph {
    let variables = 2 + draw.below(3);
    let mut domains: Vec<u32> = (0..variables).map(|_| 2 + draw.below(2) as u32).collect();
    domains.push(1);
    let of = |domain: u32| -> Vec<u32> { (0..).zip(&domains).filter(|(_, d)| **d == domain).map(|(v, _)| v).collect() };
    let (twos, threes) = (of(2), of(3));
    let mut scopes = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..factors {
        let pick = |draw: &mut Draw, from: &[u32]| from[draw.below(from.len())];
        let two_threes = |draw: &mut Draw| {
            let a = draw.below(threes.len());
            [threes[a], threes[(a + 1 + draw.below(threes.len() - 1)) % threes.len()]]
        };
        match draw.below(3) {
            0 if !twos.is_empty() && !threes.is_empty() => {
                let scope = [pick(draw, &twos), pick(draw, &threes)];
                scopes[0].extend(scope);
            }
            1 if threes.len() > 1 => scopes[1].extend(two_threes(draw)),
            2 if threes.len() > 1 && !twos.is_empty() => {
                scopes[2].push(pick(draw, &twos));
                scopes[2].extend(two_threes(draw));
            }
            _ => {}
        }
    }
    let features = draw.matrix(domains.len(), FEATURES);
    let [featured, same, triple] = scopes;
    let rows = draw.matrix(featured.len() / 2, 2);
    let factors = vec![
        Factors { scopes: featured, features: Some(rows) },
        Factors { scopes: same, features: None },
        Factors { scopes: triple, features: None },
    ];
    Graph { domains, features, factors }
}

fn all_labellings(domains: &[u32]) -> Vec<Vec<u32>> {
    domains.iter().fold(vec![Vec::new()], |all, &domain| {
        all.iter().flat_map(|y: &Vec<u32>| (0..domain).map(move |l| [y.as_slice(), &[l]].concat())).collect()
    })
}

fn labelling(draw: &mut Draw, domains: &[u32]) -> Vec<u32> {
    domains.iter().map(|&domain| draw.below(domain as usize) as u32).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_argmax_is_the_best_of_all_labellings(seed: u64, factors in 0_usize..6) {
        let mut draw = Draw(seed);
        let task = FactorGraph::new(shape()).unwrap();
        let x = graph(&mut draw, factors);
        let truth = labelling(&mut draw, &x.domains);
        task.check(&x, &truth).unwrap();
        let w = draw.weights(task.dimension(), 2.0);
        let (mut scratch, mut y) = (GraphScratch::default(), Vec::new());
        for lambda in [None, Some(0.7), Some(3.0)] {
            let value = |y: &Vec<u32>| {
                dot(&psi(&task, &x, y), w.as_slice()) + lambda.map_or(0.0, |l| l * task.loss(&truth, y))
            };
            let best = all_labellings(&x.domains).iter().map(value).fold(f64::NEG_INFINITY, f64::max);
            task.argmax(&w, &x, lambda.map(|weight| LossTerm { truth: &truth, weight }), &mut scratch, &mut y).unwrap();
            let found = value(&y);
            prop_assert!(found <= best + 1e-9);
            prop_assert!(task.bound(&scratch).unwrap() >= best - 1e-9);
            if task.argmax_is_exact(&x) || scratch.is_proven() {
                prop_assert!((found - best).abs() <= 1e-6, "{found} is not {best}");
            }
        }
    }

    #[test]
    fn the_laws_of_a_task_hold(seed: u64) {
        let mut draw = Draw(seed);
        let task = FactorGraph::new(shape()).unwrap();
        let graphs: Vec<Graph> = (0..6).map(|_| graph(&mut draw, 2)).collect();
        let examples: Vec<_> = graphs
            .iter()
            .filter(|x| task.argmax_is_exact(x))
            .map(|x| (x, labelling(&mut draw, &x.domains)))
            .collect();
        check_task(&task, &examples, seed).unwrap();
    }

    /// Every rescaling and penalty: on forests the oracle finds the largest H, and elsewhere the objective is known from both
    /// sides.
    #[test]
    fn the_oracle_finds_the_worst_labelling_of_a_forest(seed: u64, factors in 0_usize..5) {
        let mut draw = Draw(seed);
        let task = FactorGraph::new(shape()).unwrap();
        let graphs: Vec<Graph> = (0..3).map(|_| graph(&mut draw, factors)).collect();
        let truths: Vec<Vec<u32>> = graphs.iter().map(|x| labelling(&mut draw, &x.domains)).collect();
        let inputs: Vec<&Graph> = graphs.iter().collect();
        let are_forests = inputs.iter().all(|x| task.argmax_is_exact(x));
        let (pool, w) = (Pool::new(1).unwrap(), draw.weights(task.dimension(), 0.5));
        for (rescaling, penalty) in RESCALINGS.iter().flat_map(|&r| PENALTIES.map(|p| (r, p))) {
            let formulation = Formulation { loss_scale: 1.5, ..formulation(2.0, rescaling, penalty) };
            let problem = match Problem::new(&task, &inputs, &truths, None, formulation) {
                Ok(problem) => problem,
                Err(error) => {
                    prop_assert!((rescaling, penalty) == (Rescaling::Margin, Penalty::Quadratic), "{error}");
                    prop_assert!(!are_forests, "{error}");
                    continue;
                }
            };
            let (mut scratch, mut sum, mut shortfall) = (OracleScratch::default(), 0.0, 0.0_f64);
            for (i, x) in inputs.iter().enumerate() {
                let (mut worst, truth) = (0.0_f64, &truths[i]);
                for y in all_labellings(&x.domains).iter().filter(|y| *y != truth) {
                    worst = worst.max(problem.violation(i, &w, &Output::new(y.clone())).unwrap());
                    shortfall = shortfall.max(1.0 - task.margin(&w, x, truth, y).unwrap());
                }
                let h = problem.oracle(i, &w, &mut scratch).unwrap();
                prop_assert!(h <= worst + 1e-9, "{h} is above {worst}");
                if task.argmax_is_exact(x) {
                    prop_assert!((h - worst).abs() <= 1e-9 * (1.0 + worst), "{h} is not {worst}");
                }
                sum += problem.slack(worst);
            }
            prop_assert_eq!(problem.oracle_is_exact(), are_forests);
            if penalty == Penalty::Hard {
                let found = problem.worst_shortfall(&w, &pool).unwrap();
                let is_slack = rescaling == Rescaling::Slack;
                prop_assert!(!(is_slack && are_forests) || (found - shortfall).abs() <= 1e-9 * (1.0 + shortfall));
                continue;
            }
            let primal = 0.5 * w.norm2() + 2.0 / 3.0 * sum;
            let at_most = problem.objective_at_most(&w, &pool).unwrap().unwrap();
            prop_assert!(at_most >= primal * (1.0 - 1e-9), "at most {at_most}, but {primal}");
            prop_assert!(!are_forests || at_most <= primal * (1.0 + 1e-9), "{at_most} is not {primal}");
        }
    }

    /// On graphs with loops the objective of the report is at most that with the relaxation's loss, and both are above the dual.
    #[test]
    fn training_on_loops_knows_what_it_does_not_know(seed: u64) {
        let mut draw = Draw(seed);
        let task = FactorGraph::new(shape()).unwrap();
        let graphs: Vec<Graph> = (0..4).map(|_| graph(&mut draw, 6)).collect();
        let truths: Vec<Vec<u32>> = graphs.iter().map(|x| labelling(&mut draw, &x.domains)).collect();
        let inputs: Vec<&Graph> = graphs.iter().collect();
        let problem = Problem::new(&task, &inputs, &truths, None, formulation(2.0, Rescaling::Margin, Penalty::Linear)).unwrap();
        let solution = Bcfw::default().solve(&problem, &Settings { max_passes: Some(200.0), ..Settings::default() }, &mut ()).unwrap();
        let pool = Pool::new(1).unwrap();
        let at_most = problem.objective_at_most(&solution.weights, &pool).unwrap().unwrap();
        let primal = solution.report.primal;
        prop_assert!(at_most >= primal - 1e-6, "at most {at_most}, but {primal}");
        prop_assert!(solution.report.dual <= at_most + 1e-6);
        prop_assert_eq!(solution.report.certificate == Certificate::Exact, problem.oracle_is_exact());
    }

    /// Factor by factor the gap is proven: on trees that of the true loss, on loops to the relaxation's minimum. Factors of two and
    /// three variables, with features and without, variables with one label and without factors.
    #[test]
    fn training_factor_by_factor_proves_its_gap(seed: u64, factors in 0_usize..6) {
        let mut draw = Draw(seed);
        let task = FactorGraph::new(shape()).unwrap();
        let graphs: Vec<Graph> = (0..4).map(|_| graph(&mut draw, factors)).collect();
        let truths: Vec<Vec<u32>> = graphs.iter().map(|x| labelling(&mut draw, &x.domains)).collect();
        let inputs: Vec<&Graph> = graphs.iter().collect();
        let problem = Problem::new(&task, &inputs, &truths, None, formulation(2.0, Rescaling::Margin, Penalty::Linear)).unwrap();
        let settings = Settings { stop: Some(Stop::RelativeGap(0.01)), max_passes: Some(20_000.0), ..Settings::default() };
        let solution = Gdmm { certify: true, ..Gdmm::default() }.solve(&problem, &settings, &mut ()).unwrap();
        let (report, pool) = (&solution.report, Pool::new(1).unwrap());
        prop_assert_eq!(report.status, Status::Converged);
        prop_assert!(report.gap <= 0.01 * report.primal, "{report:?}");
        let is_exact = report.certificate == Certificate::Exact;
        prop_assert!(problem.oracle_is_exact() || !is_exact);
        prop_assert!(is_exact || factors > 1, "one factor makes no loop");
        let exact = problem.objective(&solution.weights, &pool).unwrap();
        prop_assert!(exact <= report.primal + 1e-9, "{exact} is above {}", report.primal);
        // On loops, and two factors on the same variables are one, the relaxation's loss may be above the true one.
        let other = Bcfw::default().solve(&problem, &Settings { max_passes: Some(200.0), ..Settings::default() }, &mut ()).unwrap();
        let is_below = report.dual <= other.report.primal + 1e-9;
        prop_assert!(is_below || !is_exact, "{} is above {}", report.dual, other.report.primal);
    }
}

/// A decoder takes two factors on the same variables for one and is exact; factor by factor they are a loop. This problem has a
/// gap between the two.
#[test]
fn factors_on_the_same_variables_prove_nothing() {
    let mut draw = Draw(413_925_752_170_474_094);
    let task = FactorGraph::new(shape()).unwrap();
    let graphs: Vec<Graph> = (0..4).map(|_| graph(&mut draw, 3)).collect();
    let truths: Vec<Vec<u32>> = graphs.iter().map(|x| labelling(&mut draw, &x.domains)).collect();
    let inputs: Vec<&Graph> = graphs.iter().collect();
    let formulation = formulation(2.0, Rescaling::Margin, Penalty::Linear);
    let problem = Problem::new(&task, &inputs, &truths, None, formulation).unwrap();
    let settings = Settings { stop: Some(Stop::RelativeGap(0.01)), max_passes: Some(20_000.0), ..Settings::default() };
    let by_factors = Gdmm { certify: true, ..Gdmm::default() }.solve(&problem, &settings, &mut ()).unwrap().report;
    let whole = Bcfw::default().solve(&problem, &settings, &mut ()).unwrap().report;
    assert!(problem.oracle_is_exact() && by_factors.dual > whole.primal);
    assert_eq!((by_factors.certificate, whole.certificate), (Certificate::Estimate, Certificate::Exact));
}

#[test]
fn graphs_that_do_not_fit_are_refused_in_words() {
    let task = FactorGraph::new(shape()).unwrap();
    let mut draw = Draw(5);
    let good = graph(&mut draw, 4);
    let y = labelling(&mut draw, &good.domains);
    assert!(task.check(&good, &y).is_ok());
    let refuses = |x: &Graph, y: &[u32]| assert!(task.check(x, &y.to_vec()).is_err());
    refuses(&good, &y[1..]);
    refuses(&good, &vec![3; y.len()]);
    let mut bad = good.clone();
    bad.factors[1].scopes = vec![0, 99];
    refuses(&bad, &y);
    bad.factors[1].scopes = vec![0];
    refuses(&bad, &y);
    bad = good.clone();
    bad.domains[0] = 7;
    refuses(&bad, &y);
    bad = good.clone();
    bad.factors.pop();
    refuses(&bad, &y);
    bad = good;
    bad.features = SparseMatrix::new();
    refuses(&bad, &y);
}
