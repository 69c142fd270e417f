//! Training with kernels against the truth that explicit features tell, and what it does with odd data.

use crate::common;
use crate::common::kernel;

use std::sync::Arc;

use common::{Any, Draw, PENALTIES, RESCALINGS, formulation, patience, to_gap, to_relative_gap};
use kernel::{
    Kernelled, LINEAR, QUADRATIC, RBF, Way, all_ways, constant, estimating, fault, growing, pool, proving, squares,
    standard, uniform,
};
use maxmargin::inference::chain::Order;
use maxmargin::kernel::{Basis, Kernel, LowRank, Metric, Shape, Standard};
use maxmargin::problem::{Formulation, Penalty, Problem, Rescaling};
use maxmargin::solver::cutting_plane::{CuttingPlane, Scheme};
use maxmargin::solver::guarantee::{Sampled, excess};
use maxmargin::solver::mle::Mle;
use maxmargin::solver::n_slack::Update;
use maxmargin::solver::{Certificate, Progress, Settings, Solver, Status};
use maxmargin::sparse::{SparseMatrix, SparseView};
use maxmargin::task::Task;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::{Costs, Multiclass};
use maxmargin::tasks::tagging::{Sentence, Shape as Model, TagLoss, Tagging};
use maxmargin::weights::Weights;
use proptest::prelude::*;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

fn a_formulation() -> impl Strategy<Value = Formulation> {
    let c = prop_oneof![Just(0.1), Just(2.0), Just(50.0)];
    (prop::sample::select(&RESCALINGS[..]), prop::sample::select(&PENALTIES[..]), c)
        .prop_map(|(rescaling, penalty, c)| Formulation { loss_scale: 1.5, ..formulation(c, rescaling, penalty) })
}

fn a_kernel() -> impl Strategy<Value = Standard> {
    (prop::sample::select(&[LINEAR, QUADRATIC][..]), prop_oneof![Just(0.0), Just(0.25)])
        .prop_map(|(kernel, constant)| Standard { constant, ..kernel })
}

/// The features of which the kernel is the inner product.
fn explicit(kernel: Standard, x: &SparseMatrix, d: u32) -> SparseMatrix {
    let mapped = if kernel.shape == Shape::Linear { x.clone() } else { squares(x, d) };
    mapped.with_constant(kernel.constant.sqrt() as f32)
}

/// `D <= min P <= P` of the linear problem by a tight run; None where the data cannot be separated.
fn tight(linear: &Problem<'_>) -> Option<(f64, f64)> {
    let solution = common::n_slack(Update::Batch(50)).solve(linear, &to_relative_gap(1e-6), &mut patience());
    match solution.report.status {
        Status::Infeasible => None,
        Status::Converged => Some((solution.report.dual, solution.report.primal)),
        status => panic!("the referee gives up: {status:?}"),
    }
}

/// The square root of 2 is not a f32: how far that may move the minimum, by all margins at once.
fn slip(primal: f64) -> f64 {
    1e-6 * (1.0 + primal) * (1.0 + (2.0 * primal).sqrt())
}

/// Every solver on the kernel's problem, where the linear one says what its minimum is.
fn agrees(problem: &Problem<'_>, minimum: Option<(f64, f64)>) {
    let is_hard = problem.formulation().penalty == Penalty::Hard;
    let settings = if is_hard { to_relative_gap(1e-4) } else { to_gap(1e-4) };
    for solver in proving(problem) {
        let solution = solver.solve(problem, &settings, &mut patience());
        let report = &solution.report;
        let context = format!("{solver:?} on {:?}, {minimum:?}: {report:?}", problem.formulation());
        assert_eq!(fault(problem, &solution), None, "{context}");
        let Some((dual, primal)) = minimum else {
            // Means of cuts cancel less well than cuts: where rounding hides the contradiction, no point is found all the same.
            let is_stalled = matches!(solver, Way::Any(Any::Cuts(_))) && report.status == Status::Stalled;
            assert!(report.status == Status::Infeasible || is_stalled, "{context}");
            assert_eq!(report.primal, f64::INFINITY, "{context}");
            continue;
        };
        let slip = slip(primal);
        assert!(report.dual <= primal + slip, "the bound is none: {context}");
        assert!(report.primal >= dual - slip, "better than the best: {context}");
        assert_eq!(report.certificate, Certificate::Exact, "{context}");
        // Steps on single examples crawl where C is large beside the features; what they say is true all the same.
        if matches!(solver, Way::Any(Any::Bcfw(_))) && report.status == Status::Interrupted {
            continue;
        }
        assert_eq!(report.status, Status::Converged, "{context}");
        assert!(report.gap <= report.target, "{context}");
        assert!(report.primal - dual <= report.target + 2e-6 * primal + slip, "not as good as asked: {context}");
    }
    let Some((dual, primal)) = minimum.filter(|_| problem.formulation().penalty == Penalty::Linear) else { return };
    for solver in estimating() {
        let settings = Settings { max_passes: Some(300.0), ..to_gap(0.01) };
        let solution = solver.solve(problem, &settings, &mut ());
        let context = format!("{solver:?} on {:?}, {dual} to {primal}: {:?}", problem.formulation(), solution.report);
        assert_eq!(fault(problem, &solution), None, "{context}");
        assert_eq!(solution.report.certificate, Certificate::Estimate, "{context}");
        assert!(solution.report.primal >= dual - slip(dual), "{context}");
    }
}

/// Labels that a hidden linear model gives to some of the rows, hence separable ones.
fn separable(draw: &mut Draw, x: &SparseMatrix, classes: u32) -> (SparseMatrix, Vec<u32>) {
    let block = maxmargin::features::Block { base: 0, rows: x.columns(), width: classes };
    let hidden = draw.weights(block.len() as usize, 1.0);
    let (mut kept, mut y) = (SparseMatrix::new(), Vec::new());
    for row in x.views() {
        let mut scores = vec![0.0; classes as usize];
        hidden.scores(block, row, &mut scores);
        let best = maxmargin::task::first_max(&scores);
        if scores.iter().enumerate().all(|(k, s)| k == best || scores[best] - s > 0.1) {
            kept.push_row(row.iter());
            y.push(best as u32);
        }
    }
    kept.set_columns(x.columns());
    (kept, y)
}

/// Rows and labels: of the hard margin separable ones as a rule.
fn data(draw: &mut Draw, n: usize, d: u32, classes: u32, f: Formulation) -> (SparseMatrix, Vec<u32>) {
    let x = draw.quarters(n, d);
    if f.penalty == Penalty::Hard && draw.below(3) > 0 {
        let (x, y) = separable(draw, &x, classes);
        if !y.is_empty() {
            return (x, y);
        }
    }
    let y = draw.labels(n, classes);
    (x, y)
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn classes_as_with_explicit_features(
        seed: u64, n in 2_usize..30, d in 1_u32..4, classes in 2_u32..5, f in a_formulation(), kernel in a_kernel(),
    ) {
        let mut draw = Draw(seed);
        let (x, y) = data(&mut draw, n, d, classes, f);
        let c = (draw.below(2) == 0).then(|| draw.example_weights(y.len()));
        let costs = if draw.below(3) == 0 { Costs::zero_one(classes as usize) } else { draw.costs(classes as usize) };
        let mapped = explicit(kernel, &x, d);
        let (task, views) = (Multiclass::new(mapped.columns(), costs.clone()), mapped.views());
        let minimum = tight(&Problem::new(&task, &views, &y, c.as_deref(), f).unwrap());
        Kernelled::new(kernel, &x).classes(&costs, &y, c.as_deref(), f, |problem| agrees(problem, minimum));
    }

    #[test]
    fn two_classes_as_with_explicit_features(
        seed: u64, n in 2_usize..30, d in 1_u32..4, f in a_formulation(), kernel in a_kernel(),
    ) {
        let mut draw = Draw(seed);
        let (x, y) = data(&mut draw, n, d, 2, f);
        let c = (draw.below(2) == 0).then(|| draw.example_weights(y.len()));
        let mapped = explicit(kernel, &x, d);
        let (task, views) = (Binary::new(mapped.columns()), mapped.views());
        let minimum = tight(&Problem::new(&task, &views, &y, c.as_deref(), f).unwrap());
        let kernelled = Kernelled::new(kernel, &x);
        let (task, views) = (Binary::new(kernelled.atoms()), kernelled.hot.views());
        let metric = Metric::new(&kernelled.gram, task.blocks()[0]);
        agrees(&Problem::new(&task, &views, &y, c.as_deref(), f).unwrap().with_kernel(metric), minimum);
    }

    /// The kernel is in the block of the tokens; transitions stay what they are.
    #[test]
    fn tagging_as_with_explicit_features(
        seed: u64, n in 2_usize..10, d in 1_u32..4, tags in 2_u32..4, f in a_formulation(), kernel in a_kernel(),
        second: bool,
    ) {
        let mut draw = Draw(seed);
        let lengths: Vec<usize> = (0..n).map(|_| 1 + draw.below(3)).collect();
        let x = draw.quarters(lengths.iter().sum(), d);
        let y: Vec<Vec<u32>> = lengths.iter().map(|&len| draw.labels(len, tags)).collect();
        let c = (draw.below(2) == 0).then(|| draw.example_weights(n));
        let order = if second { Order::Second } else { Order::First };
        let task = |features| {
            let model = Model { tags, features, edges: 0, order };
            Tagging::new(model, TagLoss::hamming(tags as usize), None).unwrap()
        };
        let sentences = |tokens| {
            let mut at = 0;
            lengths.iter().map(|len| { at += len; Sentence::new(tokens, None, at - len..at) }).collect::<Vec<_>>()
        };
        let mapped = explicit(kernel, &x, d);
        let (linear, inputs) = (task(mapped.columns()), sentences(&mapped));
        let minimum = tight(&Problem::new(&linear, &inputs, &y, c.as_deref(), f).unwrap());
        let kernelled = Kernelled::new(kernel, &x);
        let (task, inputs) = (task(kernelled.atoms()), sentences(&kernelled.hot));
        let metric = Metric::new(&kernelled.gram, task.emission());
        agrees(&Problem::new(&task, &inputs, &y, c.as_deref(), f).unwrap().with_kernel(metric), minimum);
    }

    /// Where a run is stopped, what it returns is what it says, and a bound is one.
    #[test]
    fn stopped_runs_are_honest(seed: u64, n in 2_usize..30, f in a_formulation(), passes in 0.1..6.0, rounds in 1_u64..6) {
        let mut draw = Draw(seed);
        let (x, y) = data(&mut draw, n, 2, 3, f);
        let costs = draw.costs(3);
        Kernelled::new(QUADRATIC, &x).classes(&costs, &y, None, f, |problem| {
            let minimum = {
                let (mapped, task) = (squares(&x, 2), Multiclass::new(6, costs.clone()));
                let views = mapped.views();
                tight(&Problem::new(&task, &views, &y, None, f).unwrap())
            };
            for solver in all_ways(problem) {
                let settings = Settings { max_passes: Some(passes), ..to_relative_gap(1e-6) };
                let few = solver.solve(problem, &settings, &mut ());
                let mut stop = |p: &Progress| {
                    if p.round < rounds { std::ops::ControlFlow::Continue(()) } else { std::ops::ControlFlow::Break(()) }
                };
                let interrupted = solver.solve(problem, &to_relative_gap(1e-6), &mut stop);
                for solution in [few, interrupted] {
                    let report = &solution.report;
                    let context = format!("{solver:?} on {f:?}: {report:?}");
                    prop_assert_eq!(fault(problem, &solution).filter(|_| report.primal.is_finite()), None, "{}", context);
                    if let (Some((_, primal)), Certificate::Exact) = (minimum, report.certificate) {
                        prop_assert!(report.dual <= primal + slip(primal), "{}", context);
                    }
                }
            }
            Ok(())
        })?;
    }

    /// Yu and Joachims 2008, Theorems 2 and 3. They are far from tight: chance does not fail them.
    #[test]
    fn samples_keep_their_promise(seed: u64, n in 5_usize..30, c in prop_oneof![Just(0.5), Just(5.0), Just(50.0)], r in 1_usize..60) {
        let mut draw = Draw(seed);
        let (x, y, costs) = (draw.matrix(n, 2), draw.labels(n, 3), draw.costs(3));
        let epsilon = 0.05;
        Kernelled::new(RBF, &x).classes(&costs, &y, None, formulation(c, Rescaling::Margin, Penalty::Linear), |problem| {
            let best = growing(1000).solve(problem, &to_relative_gap(1e-4), &mut patience()).report.dual;
            for (solver, kind) in [(uniform(r), Sampled::Linear), (growing(r), Sampled::Linear), (constant(r), Sampled::Constant)] {
                let settings = Settings { max_passes: Some(2000.0), ..to_gap(epsilon) };
                let report = solver.solve(problem, &settings, &mut ()).report;
                let promised = excess(problem, kind, r, epsilon, 0.05).unwrap();
                prop_assert!(report.primal - best <= promised, "{:?}, promised {}: {:?}", solver, promised, report);
            }
            Ok(())
        })?;
    }

    /// With as many vectors as the rank, the problem over coordinates is the kernel's own.
    #[test]
    fn full_rank_is_the_kernel(seed: u64, n in 2_usize..25, f in a_formulation(), pivoted: bool) {
        let mut draw = Draw(seed);
        let (x, y) = data(&mut draw, n, 2, 3, f);
        let (costs, basis) = (draw.costs(3), if pivoted { Basis::Pivoted } else { Basis::Random });
        let low = LowRank::new(Arc::new(QUADRATIC), &x, 50, basis, seed, &pool()).unwrap();
        prop_assert!(low.len() <= 6);
        let z = low.map(&x, &pool());
        let (task, views) = (Multiclass::new(low.len() as u32, costs.clone()), z.views());
        let settings = to_relative_gap(1e-6);
        let linear = common::n_slack(Update::Batch(50)).solve(&Problem::new(&task, &views, &y, None, f).unwrap(), &settings, &mut patience());
        let expansion = low.expansion(linear.weights.as_slice(), 3).unwrap();
        let kernelled = Kernelled::new(QUADRATIC, &x);
        kernelled.classes(&costs, &y, None, f, |problem| {
            let exact = Way::Any(common::n_slack(Update::Batch(50))).solve(problem, &settings, &mut patience());
            prop_assert_eq!(exact.report.status, linear.report.status);
            if exact.report.status != Status::Converged {
                return Ok(());
            }
            let (a, b) = (exact.report.primal, linear.report.primal);
            // A residual below the tolerance of the rank may count as nothing.
            prop_assert!((a - b).abs() <= 1e-3 * a, "{} and {}", a, b);
            let mut scores = vec![0.0; 3 * n.min(x.rows())];
            expansion.scores(&x.views(), &mut scores);
            let scale = scores.iter().fold(1.0, |a: f64, s| a.max(s.abs()));
            let hot = problem.blocks()[0];
            for i in 0..x.rows() {
                let atom = kernelled.hot.row(i).indices()[0];
                for s in 0..3 {
                    let ours = exact.weights.as_slice()[hot.at(atom, s)];
                    prop_assert!((ours - scores[3 * i + s as usize]).abs() <= 0.02 * scale, "{} and {}", ours, scores[3 * i + s as usize]);
                }
            }
            Ok(())
        })?;
    }
}

/// A growing sample that is small to begin with ends with a proof on few examples; equal draws say that they estimate.
#[test]
fn certificates() {
    let mut draw = Draw(3);
    let (x, y, costs) = (draw.matrix(25, 2), draw.labels(25, 3), draw.costs(3));
    for c in [0.1, 10.0, 1000.0] {
        let f = formulation(c, Rescaling::Margin, Penalty::Linear);
        Kernelled::new(RBF, &x).classes(&costs, &y, None, f, |problem| {
            for size in 1..30 {
                let report = growing(size).solve(problem, &to_gap(1e-3), &mut patience()).report;
                assert_eq!((report.status, report.certificate), (Status::Converged, Certificate::Exact), "{report:?}");
            }
            for solver in [uniform(5), constant(50)] {
                let settings = Settings { max_passes: Some(500.0), ..to_gap(0.05) };
                let report = solver.solve(problem, &settings, &mut ()).report;
                assert_eq!(report.certificate, Certificate::Estimate, "{solver:?}: {report:?}");
            }
        });
    }
}

/// Few examples that need no slack at the end: cuts from samples are forgotten though no new ones come.
#[test]
fn samples_of_few() {
    for seed in 0..300 {
        let mut draw = Draw(seed);
        let (n, d) = (2 + draw.below(4), 1 + draw.below(3) as u32);
        let (x, y) = (draw.quarters(n, d), draw.labels(n, 2));
        for c in [2.0, 50.0] {
            let f = formulation(c, Rescaling::Slack, Penalty::Linear);
            Kernelled::new(LINEAR, &x).classes(&Costs::zero_one(2), &y, None, f, |problem| {
                let report = growing(1).solve(problem, &to_gap(1e-4), &mut patience()).report;
                let ends = (report.status, report.certificate);
                assert_eq!(ends, (Status::Converged, Certificate::Exact), "{seed}: {report:?}");
            });
        }
    }
}

/// Stopped before its sample is everything, a growing sample has proven nothing.
#[test]
fn a_sample_is_no_proof() {
    let mut draw = Draw(4);
    let (x, y, costs) = (draw.matrix(30, 2), draw.labels(30, 2), Costs::zero_one(2));
    let f = formulation(100.0, Rescaling::Margin, Penalty::Linear);
    Kernelled::new(RBF, &x).classes(&costs, &y, None, f, |problem| {
        let settings = Settings { max_passes: Some(5.0), ..to_relative_gap(1e-9) };
        let report = growing(1).solve(problem, &settings, &mut ()).report;
        assert_eq!((report.status, report.certificate), (Status::MaxPasses, Certificate::Estimate), "{report:?}");
    });
}

fn refusal(result: maxmargin::Result<maxmargin::solver::Solution>) -> String {
    result.map(|solution| solution.report).unwrap_err().to_string()
}

#[test]
fn refusals() {
    let mut draw = Draw(5);
    let (x, y, costs) = (draw.matrix(10, 2), draw.labels(10, 2), Costs::zero_one(2));
    let f = Formulation::default();
    let [dual_coordinate, ..] = common::dual_coordinates();
    let settings = Settings::default();
    Kernelled::new(RBF, &x).classes(&costs, &y, None, f, |problem| {
        for solver in [dual_coordinate, Any::FrankWolfe, Any::Subgradient, Any::Perceptron] {
            let said = refusal(solver.try_solve(problem, &settings, &mut ()));
            assert!(said.contains("kernel") && said.contains("one-slack"), "{solver:?}: {said}");
        }
        let said = refusal(Mle.solve(problem, &settings, &mut ()));
        assert!(said.contains("mle works with a kernel only through a low rank"), "{said}");
        for solver in [growing(0), uniform(0), constant(0)] {
            let said = refusal(solver.try_solve(problem, &settings, &mut ()));
            assert!(said.contains("sample-size") && said.contains("at least 1"), "{said}");
        }
        let grouped = CuttingPlane { groups: 2, ..CuttingPlane::sampled(5, Scheme::Growing) };
        assert!(refusal(grouped.solve(problem, &settings, &mut ())).contains("one slack"));
        // Weights of another kind.
        for solver in proving(problem) {
            let settings = Settings { warm_start: Some(Weights::zeros(problem.dimension())), ..settings.clone() };
            let said = refusal(solver.try_solve(problem, &settings, &mut ()));
            assert!(said.contains("warm-start") && said.contains("coefficients"), "{solver:?}: {said}");
        }
        let said = refusal(constant(5).try_solve(
            problem,
            &Settings { warm_start: Some(problem.zero()), ..settings.clone() },
            &mut (),
        ));
        assert!(said.contains("warm-start"), "{said}");
    });
    for penalty in [Penalty::Quadratic, Penalty::Hard] {
        let f = formulation(1.0, Rescaling::Margin, penalty);
        Kernelled::new(RBF, &x).classes(&costs, &y, None, f, |problem| {
            for solver in estimating().into_iter().chain([growing(3)]) {
                assert!(refusal(solver.try_solve(problem, &settings, &mut ())).contains("linear slack"), "{solver:?}");
            }
        });
    }
    let (task, views) = (Multiclass::new(2, costs.clone()), x.views());
    let linear = Problem::new(&task, &views, &y, None, f).unwrap();
    for solver in estimating().into_iter().chain([growing(3)]) {
        assert!(refusal(solver.try_solve(&linear, &settings, &mut ())).contains("sampled cuts are for kernels"));
    }
    let start = Settings { warm_start: Some(Weights::zeros_with_coefficients(4)), ..settings.clone() };
    for solver in proving(&linear).iter().filter(|s| !format!("{s:?}").contains("Sampling")) {
        assert!(refusal(solver.try_solve(&linear, &start, &mut ())).contains("coefficients"), "{solver:?}");
    }
}

/// A warm start changes where training begins, not what is true.
#[test]
fn warm_starts() {
    let mut draw = Draw(6);
    let (x, y, costs) = (draw.matrix(20, 2), draw.labels(20, 3), draw.costs(3));
    for f in RESCALINGS.map(|r| formulation(20.0, r, Penalty::Linear)) {
        let kernelled = Kernelled::new(RBF, &x);
        kernelled.classes(&costs, &y, None, f, |problem| {
            let settings = to_gap(1e-3);
            let cold = Way::Any(common::n_slack(Update::OwnCuts)).solve(problem, &settings, &mut ());
            let mut start = cold.weights.clone();
            for scale in [1.0, 3.0, -1.0] {
                start.scale(scale);
                for solver in proving(problem) {
                    let settings = Settings { warm_start: Some(start.clone()), ..settings.clone() };
                    let solution = solver.solve(problem, &settings, &mut patience());
                    let report = &solution.report;
                    assert_eq!(fault(problem, &solution), None, "{solver:?}: {report:?}");
                    assert_eq!(
                        (report.status, report.certificate),
                        (Status::Converged, Certificate::Exact),
                        "{solver:?}"
                    );
                    assert!(
                        report.dual <= cold.report.primal && cold.report.dual <= report.primal,
                        "{solver:?}: {report:?}"
                    );
                }
            }
        });
    }
}

/// Of every solver: it ends soon, nothing is NaN, and what is said is true.
fn survives(problem: &Problem<'_>, what: &str) {
    let settings = Settings { max_passes: Some(60.0), ..to_gap(0.01 * problem.max_loss()) };
    let is_definite = problem.metric().unwrap().gram().kernel().standard().is_none_or(|k| k.is_definite());
    for solver in all_ways(problem) {
        let solution = solver.solve(problem, &settings, &mut patience());
        let report = &solution.report;
        let context = format!("{what}: {solver:?} on {:?}: {report:?}", problem.formulation());
        let is_known =
            matches!(report.status, Status::Converged | Status::MaxPasses | Status::Stalled | Status::Infeasible);
        assert!(is_known, "{context}");
        assert!(report.primal >= report.dual || !report.primal.is_finite(), "{context}");
        assert!(is_definite || report.certificate == Certificate::Estimate, "{context}");
        if report.primal.is_finite() {
            assert_eq!(fault(problem, &solution), None, "{context}");
        }
        if report.status == Status::Infeasible {
            assert_eq!(problem.formulation().penalty, Penalty::Hard, "{context}");
        }
    }
}

/// Every penalty, at C from tiny to huge.
fn survives_all(kernel: impl Kernel + Clone + 'static, x: &SparseMatrix, y: &[u32], what: &str) {
    let kernelled = Kernelled::new(kernel, x);
    let n = x.rows() as f64;
    let costs = Costs::zero_one(3);
    for (c, rescaling, penalty) in [
        (1e-3 * n, Rescaling::Margin, Penalty::Linear),
        (n, Rescaling::Slack, Penalty::Linear),
        (1e3 * n, Rescaling::Margin, Penalty::Linear),
        (1e-3 * n, Rescaling::Slack, Penalty::Quadratic),
        (1e3 * n, Rescaling::Margin, Penalty::Quadratic),
        (1.0, Rescaling::Margin, Penalty::Hard),
    ] {
        let f = formulation(c, rescaling, penalty);
        kernelled.classes(&costs, y, None, f, |problem| survives(problem, what));
    }
}

fn rows(rows: &[&[(u32, f32)]]) -> SparseMatrix {
    let mut x = SparseMatrix::new();
    for row in rows {
        x.push_row(row.iter().copied());
    }
    x
}

/// A kernel of somebody's own: what two histograms have in common.
#[derive(Debug, Clone)]
struct Intersection;

impl Kernel for Intersection {
    fn value(&self, a: SparseView<'_>, b: SparseView<'_>) -> f64 {
        let of = |j: u32| b.iter().find(|&(other, _)| other == j).map_or(0.0, |(_, y)| y.abs());
        a.iter().map(|(j, x)| f64::from(x.abs().min(of(j)))).sum()
    }
}

#[test]
fn odd_data() {
    let mut draw = Draw(7);
    let (x, y) = (draw.matrix(15, 2), draw.labels(15, 3));
    survives_all(Intersection, &x, &y, "a kernel of one's own");
    survives_all(RBF, &x, &[1; 15], "one class");
    let mut multiples = SparseMatrix::new();
    (1..16).for_each(|i| multiples.push_row([(0, i as f32), (1, -0.5 * i as f32)]));
    survives_all(LINEAR, &multiples, &y, "rank one");
    let mut same = SparseMatrix::new();
    (0..15).for_each(|_| same.push_row([(0, 0.3), (1, -0.5)]));
    survives_all(RBF, &same, &y, "the same vector");
    let empty = rows(&[&[], &[(0, 1.0)], &[], &[(1, -1.0)], &[]]);
    for kernel in [LINEAR, RBF, QUADRATIC] {
        survives_all(kernel, &empty, &[0, 1, 2, 1, 0], "empty vectors");
        survives_all(kernel, &rows(&[&[], &[]]), &[0, 1], "nothing but empty vectors");
        survives_all(kernel, &rows(&[&[(0, 1.0)]]), &[2], "one example");
    }
}

#[test]
fn odd_kernels() {
    let mut draw = Draw(8);
    let (x, y) = (draw.matrix(15, 2), draw.labels(15, 3));
    for gamma in [1e-300, 1e-8, 1e8, 1e300] {
        survives_all(standard(Shape::Rbf { gamma }), &x, &y, &format!("rbf, gamma {gamma:e}"));
        survives_all(standard(Shape::Sigmoid { gamma, coef0: 0.0 }), &x, &y, &format!("sigmoid, gamma {gamma:e}"));
    }
    survives_all(standard(Shape::Poly { degree: 3, gamma: 1e-300, coef0: 0.0 }), &x, &y, "values that vanish");
    survives_all(standard(Shape::Poly { degree: 3, gamma: 1e12, coef0: 1.0 }), &x, &y, "large values");
    survives_all(Standard { constant: 1e6, ..RBF }, &x, &y, "a large constant");
    // Single precision makes these matrices indefinite, which shows at a large C.
    let kernelled = Kernelled::new(standard(Shape::Rbf { gamma: 1e-3 }), &x);
    for c in [1e6, 1e9, 1e12] {
        let f = formulation(c, Rescaling::Margin, Penalty::Linear);
        kernelled.classes(&Costs::zero_one(3), &y, None, f, |problem| survives(problem, "rounded kernels"));
    }
    let mut huge = SparseMatrix::new();
    x.views().iter().for_each(|row| huge.push_row(row.iter().map(|(j, v)| (j, 1e30 * v))));
    survives_all(LINEAR, &huge, &y, "huge vectors");
    survives_all(RBF, &huge, &y, "huge vectors");
    let mut tiny = SparseMatrix::new();
    x.views().iter().for_each(|row| tiny.push_row(row.iter().map(|(j, v)| (j, 1e-30 * v))));
    survives_all(LINEAR, &tiny, &y, "tiny vectors");
    survives_all(RBF, &tiny, &y, "tiny vectors");
}

/// What is beyond f64 is refused in words, not met with a panic somewhere on the way.
#[test]
fn values_beyond_all_bounds() {
    let (x, y) = (rows(&[&[(0, 1.0)], &[(0, -0.5)], &[(0, 2.0)]]), [0, 1, 2]);
    let kernelled = Kernelled::new(standard(Shape::Poly { degree: 3, gamma: 1e300, coef0: 0.0 }), &x);
    for penalty in PENALTIES {
        let f = formulation(1.0, Rescaling::Margin, penalty);
        kernelled.classes(&Costs::zero_one(3), &y, None, f, |problem| {
            for solver in all_ways(problem) {
                let said = refusal(solver.try_solve(problem, &Settings::default(), &mut ()));
                assert!(said.contains("kernel") && said.contains("gamma"), "{solver:?}: {said}");
            }
        });
    }
}

/// No feature map: no bound, but an answer.
#[test]
fn kernels_that_are_not_definite() {
    let mut draw = Draw(9);
    for seed in 0..4 {
        let (x, y) = (draw.matrix(15, 3), draw.labels(15, 3));
        for shape in [
            Shape::Sigmoid { gamma: 1.0, coef0: -1.0 },
            Shape::Sigmoid { gamma: -0.5, coef0: 0.3 },
            Shape::Sigmoid { gamma: 5.0, coef0: 1.0 },
            Shape::Poly { degree: 2, gamma: 1.0, coef0: -1.0 },
            Shape::Poly { degree: 3, gamma: 2.0, coef0: -0.5 },
        ] {
            survives_all(standard(shape), &x, &y, &format!("{shape:?}, draw {seed}"));
        }
    }
}

/// Thousands of times one point, with two labels.
#[test]
fn duplicates() {
    let mut x = SparseMatrix::new();
    (0..3000).for_each(|i| x.push_row([(0, if i < 2990 { 0.5 } else { -1.0 })]));
    let y: Vec<u32> = (0..3000).map(|i| u32::from(i % 3 == 0)).collect();
    let kernelled = Kernelled::new(RBF, &x);
    assert_eq!(kernelled.atoms(), 2);
    for c in [1.0, 3e4] {
        let f = formulation(c, Rescaling::Margin, Penalty::Linear);
        kernelled.classes(&Costs::zero_one(2), &y, None, f, |problem| survives(problem, "duplicates"));
    }
}

/// More examples than any sample begins with: a growing one leads as near to the minimum as was asked.
#[test]
fn samples_of_many() {
    const N: usize = 2500;
    let mut draw = Draw(77);
    let (x, noise) = (draw.matrix(N, 3), draw.labels(N, 10));
    let y: Vec<u32> = x.views().iter().zip(noise).map(|(v, e)| u32::from((v.norm2() > 0.6) != (e == 0))).collect();
    let kernelled = Kernelled::new(standard(Shape::Rbf { gamma: 5.0 }), &x);
    for c in [0.25, 25.0, 2500.0] {
        let f = formulation(c, Rescaling::Margin, Penalty::Linear);
        kernelled.classes(&Costs::zero_one(2), &y, None, f, |problem| {
            let best = proving(problem)[0].solve(problem, &to_gap(0.001), &mut patience()).report.dual;
            for size in [30, 400] {
                let report = growing(size).solve(problem, &to_gap(0.01), &mut patience()).report;
                assert_eq!(report.status, Status::Converged, "{report:?}");
                assert!(report.primal - best <= report.target, "{best}: {report:?}");
            }
        });
    }
}
