//! What must hold of every solver whatever the data: scalings, warm starts, limits, refusals.

use crate::common;

use std::ops::ControlFlow;

use common::{
    Any, Bits, Draw, Typed, certified, cuts, dual_coordinates, formulation, n_slack, objective, separable, to_gap,
    to_relative_gap,
};
use maxmargin::Error;
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Penalty, Problem, Rescaling};
use maxmargin::solver::cutting_plane::{CuttingPlane, Placement};
use maxmargin::solver::frank_wolfe::FrankWolfe;
use maxmargin::solver::n_slack::{NSlack, Update};
use maxmargin::solver::{Progress, Settings, Solver, Status, Stop};
use maxmargin::sparse::SparseMatrix;
use maxmargin::tasks::multiclass::{Costs, Multiclass};
use maxmargin::weights::Weights;
use proptest::prelude::*;

/// A few of each kind of solver.
fn some_solvers() -> Vec<Any> {
    vec![
        cuts(1, None, Placement::LineSearch),
        cuts(1, Some(2), Placement::QpPoint),
        cuts(3, Some(5), Placement::LineSearch),
        n_slack(Update::Batch(10)),
        n_slack(Update::OwnCuts),
    ]
}

/// The same and dual coordinates, where there is slack.
fn slack_solvers() -> Vec<Any> {
    some_solvers().into_iter().chain(dual_coordinates()).collect()
}

/// Random data for three classes, and a task with random costs.
fn noisy(seed: u64, n: usize) -> (SparseMatrix, Vec<u32>, Multiclass) {
    let mut draw = Draw(seed);
    (draw.matrix(n, 4), draw.labels(n, 3), Multiclass::new(4, draw.costs(3)))
}

/// Many examples: a sample leads near the solution first. The answer is as good and as repeatable as without, the sample's
/// rounds are told as such, and who stops training there gets weights with a true P.
#[test]
fn a_sample_leads_the_way() {
    const N: usize = 70_000;
    let mut draw = Draw(7);
    let (x, task) = (draw.matrix(N, 4), Multiclass::new(4, Costs::zero_one(3)));
    let y: Vec<u32> = (0..N)
        .map(|i| {
            let first = x.row(i).values().first().copied().unwrap_or(0.0);
            if draw.unit() < 0.1 { draw.below(3) as u32 } else { u32::from(first > 0.2) + u32::from(first > -0.3) }
        })
        .collect();
    let views = x.views();
    let problem = Problem::new(&task, &views, &y, None, formulation(1e3, Rescaling::Margin, Penalty::Linear)).unwrap();
    let solve = |threads, placement| {
        let (mut on_sample, mut on_all) = (0, 0);
        let mut watch = |p: &Progress| {
            let (is_sample, values) = (p.round == 0, (p.primal, p.dual, p.gap));
            *(if is_sample { &mut on_sample } else { &mut on_all }) += 1;
            assert!(!is_sample || (values == (None, None, None) && on_all == 0), "{p:?}");
            ControlFlow::Continue(())
        };
        let settings = Settings { threads, ..to_relative_gap(1e-3) };
        let solution =
            CuttingPlane { placement, ..CuttingPlane::default() }.solve(&problem, &settings, &mut watch).unwrap();
        assert_eq!((solution.report.status, solution.report.rounds), (Status::Converged, on_all));
        (solution, on_sample)
    };
    let (one, on_sample) = solve(1, Placement::LineSearch);
    let (two, _) = solve(2, Placement::LineSearch);
    let (plain, none) = solve(1, Placement::QpPoint);
    assert!(on_sample > 0 && none == 0);
    assert_eq!(one.weights, two.weights);
    assert!(one.report.dual <= plain.report.primal && plain.report.dual <= one.report.primal);
    let exact = problem.objective(&one.weights, &Pool::new(1).unwrap()).unwrap();
    assert!((exact / one.report.primal - 1.0).abs() < 1e-9);

    // Three times this share would be more than all of P.
    let coarse = CuttingPlane::default().solve(&problem, &to_relative_gap(0.5), &mut ()).unwrap();
    assert_eq!(coarse.report.status, Status::Converged);

    let stopped =
        CuttingPlane::default().solve(&problem, &to_relative_gap(1e-3), &mut |_: &Progress| ControlFlow::Break(()));
    let stopped = stopped.unwrap();
    assert_eq!((stopped.report.status, stopped.weights.len()), (Status::Interrupted, 12));
    assert!(stopped.report.primal.is_finite());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]

    /// `c_0 = 2` in n examples at C, or the example twice in n + 1 at C (n + 1) / n.
    #[test]
    fn weight_two_is_the_example_twice(seed: u64, n in 3_usize..10) {
        let (x, y, task) = noisy(seed, n);
        let (mut twice, mut twice_y, mut c) = (x.clone(), y.clone(), vec![1.0; n]);
        let first: Vec<_> = x.row(0).iter().collect();
        twice.push_row(first);
        twice_y.push(y[0]);
        c[0] = 2.0;
        let (views, twice_views) = (x.views(), twice.views());
        for penalty in [Penalty::Linear, Penalty::Quadratic] {
            for rescaling in [Rescaling::Margin, Rescaling::Slack] {
                let f = formulation(2.0, rescaling, penalty);
                let weighted = Problem::new(&task, &views, &y, Some(&c), f).unwrap();
                let f = Formulation { c: 2.0 * (n + 1) as f64 / n as f64, ..f };
                let doubled = Problem::new(&task, &twice_views, &twice_y, None, f).unwrap();
                for solver in slack_solvers() {
                    let a = solver.solve(&weighted, &to_gap(1e-3), &mut ()).report;
                    let b = solver.solve(&doubled, &to_gap(1e-3), &mut ()).report;
                    prop_assert_eq!((a.status, b.status), (Status::Converged, Status::Converged));
                    // Both hold the optimum between dual and primal.
                    prop_assert!(a.dual <= b.primal + 1e-9 && b.dual <= a.primal + 1e-9, "{:?} {:?}", a, b);
                }
            }
        }
    }

    /// With margin rescaling and linear slack `P(s, C; s v) = s^2 P(1, C/s; v)`, so the optima are in that proportion.
    #[test]
    fn the_scale_of_the_loss(seed: u64, s in 0.1_f64..5.0) {
        let (x, y, task) = noisy(seed, 8);
        let views = x.views();
        let f = formulation(3.0, Rescaling::Margin, Penalty::Linear);
        let scaled = Problem::new(&task, &views, &y, None, Formulation { loss_scale: s, ..f }).unwrap();
        let plain = Problem::new(&task, &views, &y, None, Formulation { c: f.c / s, ..f }).unwrap();
        let pool = Pool::new(1).unwrap();
        let v = Draw(seed).weights(plain.dimension(), 1.0);
        let sv = Weights::from(v.as_slice().iter().map(|v| s * v).collect::<Vec<_>>());
        let (a, b) = (scaled.objective(&sv, &pool).unwrap(), s * s * plain.objective(&v, &pool).unwrap());
        prop_assert!((a - b).abs() <= 1e-9 * a);
        for solver in slack_solvers() {
            let a = solver.solve(&scaled, &to_relative_gap(1e-4), &mut ()).report;
            let b = solver.solve(&plain, &to_relative_gap(1e-4), &mut ()).report;
            prop_assert!(a.dual <= s * s * b.primal + 1e-9 && s * s * b.dual <= a.primal + 1e-9, "{:?} {:?}", a, b);
        }
    }

    /// The zero-one loss is its own factor: both rescalings are one problem, but for rounding.
    #[test]
    fn slack_is_margin_rescaling_for_the_zero_one_loss(seed: u64) {
        let (x, y, _) = noisy(seed, 9);
        let (task, views) = (Multiclass::new(4, Costs::zero_one(3)), x.views());
        for penalty in [Penalty::Linear, Penalty::Quadratic] {
            let margin = Problem::new(&task, &views, &y, None, formulation(2.0, Rescaling::Margin, penalty)).unwrap();
            let slack = Problem::new(&task, &views, &y, None, formulation(2.0, Rescaling::Slack, penalty)).unwrap();
            for solver in some_solvers() {
                let a = solver.solve(&margin, &to_gap(1e-3), &mut ());
                let b = solver.solve(&slack, &to_gap(1e-3), &mut ());
                for (a, b) in a.weights.as_slice().iter().zip(b.weights.as_slice()) {
                    prop_assert!((a - b).abs() <= 1e-9, "{} {}", a, b);
                }
                prop_assert!((a.report.primal - b.report.primal).abs() <= 1e-9 * a.report.primal);
                prop_assert!((a.report.dual - b.report.dual).abs() <= 1e-9 * a.report.primal);
            }
        }
    }

    /// With hardly any room for cuts the solver still arrives, and its bound never falls.
    #[test]
    fn little_room_for_cuts(seed: u64) {
        let (x, y, task) = noisy(seed, 12);
        let views = x.views();
        for penalty in [Penalty::Linear, Penalty::Quadratic] {
            for (groups, placement) in [(1, Placement::LineSearch), (1, Placement::QpPoint), (3, Placement::LineSearch)] {
                let f = formulation(5.0, Rescaling::Margin, penalty);
                let problem = Problem::new(&task, &views, &y, None, f).unwrap();
                let solver = CuttingPlane { groups, placement, max_cuts: 8, ..CuttingPlane::default() };
                let mut last = f64::NEG_INFINITY;
                let mut watch = |p: &Progress| {
                    assert!(p.dual.unwrap() >= last);
                    assert!(p.working_set <= 8, "{} cuts", p.working_set);
                    last = p.dual.unwrap();
                    ControlFlow::Continue(())
                };
                let settings = Settings { max_passes: Some(5000.0), ..to_gap(0.01) };
                let report = solver.solve(&problem, &settings, &mut watch).unwrap().report;
                prop_assert_eq!(report.status, Status::Converged, "{:?}", report);
            }
        }
    }
}

/// From the solution of the same problem a solver has only the bound to find; the best point is never lost.
#[test]
fn a_warm_start_helps() {
    let mut rounds = vec![(0, 0); some_solvers().len()];
    for seed in 0..8 {
        let (x, y, task) = noisy(seed, 30);
        let views = x.views();
        let f = formulation(5.0, Rescaling::Margin, Penalty::Linear);
        let problem = Typed::new(&task, &views, &y, None, f).unwrap();
        for (solver, rounds) in some_solvers().iter().zip(&mut rounds) {
            let cold = solver.solve(&problem, &to_gap(1e-3), &mut ());
            let at_start = objective(&problem, &cold.weights);
            let settings = Settings { warm_start: Some(cold.weights), ..to_gap(1e-3) };
            let warm = solver.solve(&problem, &settings, &mut ()).report;
            assert_eq!(warm.status, Status::Converged);
            assert!(warm.primal <= at_start * (1.0 + 1e-12), "{solver:?} loses its start: {warm:?}");
            rounds.0 += cold.report.rounds;
            rounds.1 += warm.rounds;
        }
    }
    for (solver, (cold, warm)) in some_solvers().iter().zip(rounds) {
        // The bound begins at 0 all the same, so it is no jump to the end; one round more than cold is forgiven.
        assert!(warm <= cold + 8, "{solver:?}: {warm} rounds warm, {cold} cold");
    }
}

/// What a solver returns when it is stopped early: the right status, weights of the right length, and P of these weights.
#[test]
fn limits() {
    let (x, y, task) = noisy(3, 40);
    let views = x.views();
    let pool = Pool::new(1).unwrap();
    let mut solvers = slack_solvers();
    solvers.push(Any::FrankWolfe);
    let tight = to_gap(1e-7);
    let limited = [
        (Settings { max_passes: Some(1.0), ..tight.clone() }, u64::MAX, Status::MaxPasses),
        (Settings { max_passes: Some(4.0), ..tight.clone() }, u64::MAX, Status::MaxPasses),
        (Settings { max_seconds: Some(1e-9), ..tight.clone() }, u64::MAX, Status::MaxSeconds),
        (tight.clone(), 1, Status::Interrupted),
        (tight, 3, Status::Interrupted),
    ];
    for penalty in [Penalty::Linear, Penalty::Quadratic] {
        let problem = Problem::new(&task, &views, &y, None, formulation(50.0, Rescaling::Margin, penalty)).unwrap();
        for solver in &solvers {
            if matches!(solver, Any::FrankWolfe) && penalty != Penalty::Linear {
                continue;
            }
            for (settings, rounds, status) in &limited {
                let mut least = f64::INFINITY;
                let mut watch = |p: &Progress| {
                    least = p.primal.map_or(least, |primal| primal.min(least));
                    if p.round >= *rounds { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                };
                let solution = solver.solve(&problem, settings, &mut watch);
                let context = format!("{solver:?}, {penalty:?}, {status:?}: {:?}", solution.report);
                assert_eq!(solution.report.status, *status, "{context}");
                assert_eq!(solution.weights.len(), problem.dimension(), "{context}");
                let primal = problem.objective(&solution.weights, &pool).unwrap();
                assert!((primal - solution.report.primal).abs() <= 1e-9 * primal, "{primal} by hand; {context}");
                // But for rounding: the report's P comes from an exact pass, those of rounds were carried along.
                assert!(solution.report.primal <= least * (1.0 + 1e-12), "the best point is lost; {context}");
            }
        }
    }
}

/// The same for the hard margin: before anything separates there is no P, but there are weights.
#[test]
fn limits_of_the_hard_margin() {
    let (x, y) = separable(&mut Draw(5), 40, 5, 3);
    let (task, views) = (Multiclass::new(5, Costs::zero_one(3)), x.views());
    let f = formulation(1.0, Rescaling::Margin, Penalty::Hard);
    let problem = Problem::new(&task, &views, &y, None, f).unwrap();
    for solver in some_solvers() {
        let settings = Settings { max_passes: Some(1.0), ..to_relative_gap(1e-6) };
        let solution = solver.solve(&problem, &settings, &mut ());
        assert_eq!(solution.report.status, Status::MaxPasses, "{solver:?}: {:?}", solution.report);
        assert_eq!(solution.weights.len(), problem.dimension(), "{solver:?}: {:?}", solution.report);
    }
}

/// The name of the setting that is refused.
fn refused<S: Solver>(solver: &S, problem: &Problem<'_>, settings: &Settings) -> &'static str {
    match solver.solve(problem, settings, &mut ()) {
        Err(Error::Setting { name, rule }) => {
            assert!(!rule.is_empty());
            name
        }
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn bad_settings_are_refused_by_name() {
    let (x, y, task) = noisy(1, 6);
    let views = x.views();
    let good = Formulation::default();
    let problem = Problem::new(&task, &views, &y, None, good).unwrap();
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let refusal = |f: Formulation| match Problem::new(&task, &views, &y, None, f) {
            Err(Error::Setting { name, .. }) => name,
            other => panic!("not refused: {:?}", other.map(|_| ())),
        };
        assert_eq!(refusal(Formulation { c: bad, ..good }), "c");
        assert_eq!(refusal(Formulation { loss_scale: bad, ..good }), "loss-scale");
        let settings = [
            ("epsilon", Settings { stop: Some(Stop::Gap(bad)), ..Settings::default() }),
            ("relative-gap", Settings { stop: Some(Stop::RelativeGap(bad)), ..Settings::default() }),
            ("max-passes", Settings { max_passes: Some(bad), ..Settings::default() }),
            ("max-seconds", Settings { max_seconds: Some(bad), ..Settings::default() }),
        ];
        for (name, settings) in settings {
            assert_eq!(refused(&CuttingPlane::default(), &problem, &settings), name);
            assert_eq!(refused(&NSlack::default(), &problem, &settings), name);
            assert_eq!(refused(&FrankWolfe, &problem, &settings), name);
        }
    }
    let settings = Settings { stop: Some(Stop::RelativeGap(1.0)), ..Settings::default() };
    assert_eq!(refused(&CuttingPlane::default(), &problem, &settings), "relative-gap");
    let d = problem.dimension();
    let mut hole = vec![0.0; d];
    hole[1] = f64::NAN;
    for start in [Weights::zeros(d - 1), Weights::zeros(d + 1), Weights::zeros(0), Weights::from(hole)] {
        let settings = Settings { warm_start: Some(start), ..Settings::default() };
        assert_eq!(refused(&CuttingPlane::default(), &problem, &settings), "warm-start");
        assert_eq!(refused(&NSlack::default(), &problem, &settings), "warm-start");
        assert_eq!(refused(&FrankWolfe, &problem, &settings), "warm-start");
    }
    for groups in [0, 7, usize::MAX] {
        let solver = CuttingPlane { groups, ..CuttingPlane::default() };
        assert_eq!(refused(&solver, &problem, &Settings::default()), "groups");
    }
    let solver = CuttingPlane { max_cuts: 1, ..CuttingPlane::default() };
    assert_eq!(refused(&solver, &problem, &Settings::default()), "max-cuts");
    let solver = NSlack { update: Update::Batch(0), ..NSlack::default() };
    assert_eq!(refused(&solver, &problem, &Settings::default()), "batch");
    for penalty in [Penalty::Quadratic, Penalty::Hard] {
        let problem = Problem::new(&task, &views, &y, None, Formulation { penalty, ..good }).unwrap();
        assert_eq!(refused(&FrankWolfe, &problem, &Settings::default()), "penalty");
    }
}

#[test]
fn bad_data_are_refused() {
    let (x, y, task) = noisy(1, 6);
    let views = x.views();
    let f = Formulation::default();
    let refusal = |views: &[_], y: &[u32], c: Option<&[f64]>| {
        let message = Problem::new(&task, views, y, c, f).map(|_| ()).unwrap_err();
        match message {
            Error::Setting { name, .. } => name.to_string(),
            Error::Data { example, .. } => format!("example {example}"),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refusal(&views, &y[..5], None), "outputs");
    assert_eq!(refusal(&[], &[], None), "inputs");
    assert_eq!(refusal(&views, &[0, 1, 2, 3, 0, 0], None), "example 3");
    assert_eq!(refusal(&views, &y, Some(&[1.0; 5])), "weights");
    for bad in [-1.0, 1e31, f64::NAN, f64::INFINITY] {
        assert_eq!(refusal(&views, &y, Some(&[1.0, 0.0, bad, 1.0, 1.0, 1.0])), "example 2");
    }
}

/// Rows that no w can tell apart, with features or without any: w = 0 is the answer, and every solver proves it.
#[test]
fn nothing_to_tell_apart() {
    let mut same = SparseMatrix::new();
    let mut empty = SparseMatrix::new();
    for _ in 0..4 {
        same.push_row([(0, 1.0)]);
        empty.push_row([]);
    }
    let y = [0, 1, 0, 1];
    for (x, optimum) in [(&same, 4.0), (&empty, 4.0)] {
        let (task, views) = (Multiclass::new(x.columns(), Costs::zero_one(2)), x.views());
        let f = formulation(4.0, Rescaling::Margin, Penalty::Linear);
        let problem = Problem::new(&task, &views, &y, None, f).unwrap();
        for solver in slack_solvers().into_iter().chain([Any::FrankWolfe]) {
            let report = solver.solve(&problem, &to_relative_gap(1e-6), &mut common::patience()).report;
            assert_eq!(report.status, Status::Converged, "{solver:?}: {report:?}");
            assert!((report.dual - optimum).abs() < 1e-4, "{solver:?}: {report:?}");
        }
    }
}

/// Large C: n slacks need many sweeps, but must not mistake a dual that rises slowly for one at rest.
#[test]
fn slow_is_not_stalled() {
    let (x, y, task) = noisy(3, 200);
    let views = x.views();
    let f = formulation(2e4, Rescaling::Margin, Penalty::Linear);
    let problem = Problem::new(&task, &views, &y, None, f).unwrap();
    for update in [Update::Batch(100), Update::OwnCuts] {
        let settings = Settings { max_passes: Some(500.0), ..to_relative_gap(1e-2) };
        let report = n_slack(update).solve(&problem, &settings, &mut ()).report;
        assert!(matches!(report.status, Status::Converged | Status::MaxPasses), "{report:?}");
    }
}

/// A problem without any loss has the optimum 0 at w = 0, and solvers end there.
#[test]
fn nothing_to_learn() {
    let (x, _, _) = noisy(1, 6);
    let (task, views, y) = (Multiclass::new(4, Costs::zero_one(1)), x.views(), [0; 6]);
    let problem = Problem::new(&task, &views, &y, None, Formulation::default()).unwrap();
    for solver in certified(6).into_iter().chain([Any::FrankWolfe]).chain(dual_coordinates()) {
        let solution = solver.solve(&problem, &Settings::default(), &mut ());
        assert_eq!(solution.report.status, Status::Converged, "{solver:?}");
        assert_eq!((solution.report.primal, solution.report.dual), (0.0, 0.0), "{solver:?}");
        assert_eq!(solution.weights, Weights::zeros(4), "{solver:?}");
    }
}

/// The line search pays: over some random problems it takes no more rounds than the paper's placement.
#[test]
fn the_line_search_takes_no_more_rounds() {
    for penalty in [Penalty::Linear, Penalty::Quadratic] {
        let mut rounds = [0, 0];
        for seed in 0..8 {
            let (x, y, task) = noisy(seed, 60);
            let views = x.views();
            let f = formulation(20.0, Rescaling::Margin, penalty);
            let problem = Problem::new(&task, &views, &y, None, f).unwrap();
            for (rounds, placement) in rounds.iter_mut().zip([Placement::LineSearch, Placement::QpPoint]) {
                let report = cuts(1, None, placement).solve(&problem, &to_gap(1e-3), &mut ()).report;
                assert_eq!(report.status, Status::Converged);
                *rounds += report.rounds;
            }
        }
        assert!(rounds[0] <= rounds[1], "{penalty:?}: {} rounds with line search, {} without", rounds[0], rounds[1]);
    }
}

/// The cache saves oracle calls on a task whose outputs are not listed.
#[test]
fn the_cache_saves_oracle_calls() {
    let mut draw = Draw(9);
    let (x, task) = (draw.matrix(30, 3), Bits::new(3, 4));
    let (views, y) = (x.views(), task.labels(&mut draw, 30));
    let f = formulation(10.0, Rescaling::Margin, Penalty::Linear);
    let problem = Problem::new(&task, &views, &y, None, f).unwrap();
    let calls = |cache| {
        let report = cuts(1, Some(cache), Placement::QpPoint).solve(&problem, &to_gap(0.01), &mut ()).report;
        assert_eq!(report.status, Status::Converged);
        assert_eq!(report.cache_hits > 0, cache > 0, "{report:?}");
        report.oracle_calls
    };
    let (without, with) = (calls(0), calls(10));
    assert!(2 * with < without, "{with} calls with the cache, {without} without");
}
