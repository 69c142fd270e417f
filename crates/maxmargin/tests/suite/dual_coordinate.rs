//! Dual coordinates at the edges: refusals, degenerate data, gaps below f64's reach, limits, states of every phase.

use crate::common;

use std::ops::ControlFlow;

use common::{
    Any, Bits, Draw, Exhaustive, RESCALINGS, Typed, Unlisted, bits_of, dual_coordinates, formulation, objective,
    separable, to_relative_gap,
};
use maxmargin::Error;
use maxmargin::problem::{Formulation, Penalty, Problem, Rescaling};
use maxmargin::solver::{Observer, Progress, Report, Settings, Snapshot, State, Status};
use maxmargin::sparse::SparseMatrix;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::{Costs, Multiclass};
use maxmargin::weights::Weights;

const SLACKS: [Penalty; 2] = [Penalty::Linear, Penalty::Quadratic];

/// A run that has an end, with a certificate that holds.
fn run<T: Exhaustive>(problem: &Typed<'_, T>, solver: &Any, settings: &Settings) -> Report {
    let mut rounds = 0;
    let mut patience = |_: &Progress| {
        rounds += 1;
        if rounds < 20_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let solution = solver.solve(problem, settings, &mut patience);
    let report = solution.report;
    let context = format!("{solver:?} on {:?}: {report:?}", problem.formulation());
    assert!(rounds < 20_000, "no end: {context}");
    assert!(report.dual >= 0.0 && report.dual <= report.primal && report.primal.is_finite(), "{context}");
    let primal = objective(problem, &solution.weights);
    // Violations are rounded, and C counts what that leaves of them.
    let rounding = 1e-9 * (1e-300 + primal) + 8.0 * f64::EPSILON * problem.formulation().c * problem.max_loss();
    assert!((primal - report.primal).abs() <= rounding, "computed {primal}: {context}");
    report
}

/// Every way to the end, every formulation, C tiny and huge.
fn converges<'a, T: Exhaustive>(
    task: &'a T,
    x: &'a [T::Input<'a>],
    y: &'a [T::Output],
    weights: Option<&'a [f64]>,
    cs: &[f64],
) {
    for penalty in SLACKS {
        for rescaling in RESCALINGS {
            for &c in cs {
                let f = formulation(c, rescaling, penalty);
                let problem = Typed::new(task, x, y, weights, f).unwrap();
                let settings = Settings { max_passes: Some(3000.0), ..to_relative_gap(1e-4) };
                let reports = dual_coordinates().map(|solver| run(&problem, &solver, &settings));
                for report in &reports {
                    // With a huge C coordinate steps alone may crawl; what they know is true all the same.
                    let crawls = c >= 1e3 && report.status == Status::MaxPasses;
                    assert!(report.status == Status::Converged || crawls, "{f:?}: {report:?}");
                    let other = &reports[0];
                    let slip = 1e-9 * other.primal;
                    assert!(report.dual <= other.primal + slip && other.dual <= report.primal + slip, "{reports:?}");
                }
            }
        }
    }
}

const CS: [f64; 4] = [1e-6, 0.1, 10.0, 1e6];

#[test]
fn degenerate_data() {
    let mut draw = Draw(1);
    let (two, three) = (Binary::new(2), Multiclass::new(2, draw.costs(3)));
    let mut rows = SparseMatrix::new();
    for _ in 0..6 {
        rows.push_row([(0, 1.0), (1, -0.5)]);
    }
    let views = rows.views();
    // One example; all alike; alike but for the label.
    converges(&two, &views[..1], &[1], None, &CS);
    converges(&three, &views[..1], &[2], None, &CS);
    converges(&two, &views, &[1; 6], None, &CS);
    converges(&three, &views, &[1; 6], None, &CS);
    converges(&two, &views, &[0, 1, 0, 1, 1, 0], None, &CS);
    converges(&three, &views, &[0, 1, 2, 1, 1, 0], None, &CS);
    // Weights of zero, some or all.
    converges(&three, &views, &[0, 1, 2, 1, 1, 0], Some(&[0.0, 1.0, 0.0, 2.0, 0.5, 0.0]), &CS);
    converges(&two, &views, &[0, 1, 0, 1, 1, 0], Some(&[0.0; 6]), &CS);
    // Rows without features among others, and no features at all.
    let mut holes = SparseMatrix::new();
    holes.push_row([(0, 1.0)]);
    holes.push_row([]);
    holes.push_row([(0, -1.0), (1, 1e-6)]);
    holes.push_row([]);
    let views = holes.views();
    converges(&two, &views, &[1, 0, 0, 1], None, &CS);
    converges(&three, &views, &[1, 0, 2, 1], None, &CS);
    let mut empty = SparseMatrix::new();
    (0..4).for_each(|_| empty.push_row([]));
    let views = empty.views();
    converges(&Binary::new(0), &views, &[1, 0, 0, 1], None, &CS);
    converges(&Multiclass::new(0, Costs::zero_one(3)), &views, &[1, 0, 2, 1], None, &CS);
}

/// However early it is stopped: with a huge C the first steps lead far away.
#[test]
fn never_worse_than_no_weights() {
    let mut draw = Draw(7);
    let mut x = SparseMatrix::new();
    for _ in 0..200 {
        x.push_row((0..5).map(|j| (j, draw.signed() as f32)).collect::<Vec<_>>());
    }
    let (task, views, c) = (Binary::new(5), x.views(), 1e7);
    let y: Vec<u32> = (0..200).map(|i| i % 2).collect();
    let problem = Typed::new(&task, &views, &y, None, formulation(c, RESCALINGS[0], Penalty::Linear)).unwrap();
    for passes in [1.0, 3.0, 30.0, 3000.0] {
        let settings = Settings { max_passes: Some(passes), ..to_relative_gap(1e-4) };
        for solver in dual_coordinates() {
            let report = run(&problem, &solver, &settings);
            assert!(report.primal <= c * problem.max_loss(), "{passes} passes, {solver:?}: {report:?}");
        }
    }
}

/// Features so small that a step changes no score, beside violations of 1.
#[test]
fn tiny_features() {
    let mut draw = Draw(2);
    let mut x = SparseMatrix::new();
    for _ in 0..20 {
        let row: Vec<_> = (0..3).map(|j| (j, 1e-6 * draw.signed() as f32)).collect();
        x.push_row(row);
    }
    let (views, y, bits) = (x.views(), draw.labels(20, 5), draw.labels(20, 2));
    let cs = [1e-9, 1e-3, 1.0, 1e6];
    converges(&Multiclass::new(3, draw.costs(5)), &views, &y, None, &cs);
    converges(&Binary::new(3), &views, &bits, None, &cs);
}

#[test]
fn separable_and_noisy_data() {
    let mut draw = Draw(3);
    let cs = [1e-6, 1.0, 1e3];
    let (x, y) = separable(&mut draw, 30, 4, 3);
    let free = Costs::table(3, vec![0.0, 0.0, 1.0, 0.5, 0.0, 0.0, 2.0, 1.0, 0.0]).unwrap();
    for task in [Multiclass::new(4, Costs::zero_one(3)), Multiclass::new(4, draw.costs(3)), Multiclass::new(4, free)] {
        converges(&task, &x.views(), &y, None, &cs);
        converges(&task, &draw.matrix(30, 4).views(), &draw.labels(30, 3), Some(&draw.example_weights(30)), &cs);
    }
    let (x, y) = separable(&mut draw, 30, 4, 2);
    converges(&Binary::new(4), &x.views(), &y, None, &cs);
}

/// A large scale of the loss, and many outputs: passes on the support, more candidates than are kept near.
#[test]
fn many_outputs_and_a_large_loss() {
    let mut draw = Draw(4);
    let (x, y) = (draw.matrix(50, 3), draw.labels(50, 25));
    let (views, task) = (x.views(), Multiclass::new(3, Costs::zero_one(25)));
    for penalty in SLACKS {
        for rescaling in RESCALINGS {
            let f = Formulation { loss_scale: 100.0, ..formulation(2.0, rescaling, penalty) };
            let problem = Typed::new(&task, &views, &y, None, f).unwrap();
            for solver in dual_coordinates() {
                let report = run(&problem, &solver, &to_relative_gap(1e-5));
                assert_eq!(report.status, Status::Converged, "{report:?}");
            }
        }
    }
}

/// Beyond what f64 can tell apart a run ends all the same, and near the optimum.
#[test]
fn a_gap_below_rounding() {
    let mut draw = Draw(5);
    let (x, y, bits) = (draw.matrix(30, 3), draw.labels(30, 3), draw.labels(30, 2));
    let (views, many, two) = (x.views(), Multiclass::new(3, draw.costs(3)), Binary::new(3));
    for penalty in SLACKS {
        for rescaling in RESCALINGS {
            let f = formulation(3.0, rescaling, penalty);
            for solver in dual_coordinates() {
                let settings = to_relative_gap(1e-17);
                let reports = [
                    run(&Typed::new(&many, &views, &y, None, f).unwrap(), &solver, &settings),
                    run(&Typed::new(&two, &views, &bits, None, f).unwrap(), &solver, &settings),
                ];
                for report in reports {
                    assert!(matches!(report.status, Status::Stalled | Status::Converged), "{report:?}");
                    assert!(report.gap <= 1e-10 * report.primal, "{solver:?} on {f:?}: {report:?}");
                }
            }
        }
    }
}

/// What is refused, and the way out.
fn rule(problem: &Problem<'_>) -> (&'static str, String) {
    let [solver, ..] = dual_coordinates();
    match solver.try_solve(problem, &Settings::default(), &mut ()) {
        Err(Error::Setting { name, rule }) => (name, rule),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn refusals_name_the_way_out() {
    let mut draw = Draw(6);
    let (x, y, bits) = (draw.matrix(6, 3), draw.labels(6, 3), Bits::new(3, 2));
    let (views, task) = (x.views(), Multiclass::new(3, Costs::zero_one(3)));
    let hard = formulation(1.0, Rescaling::Margin, Penalty::Hard);
    let (name, said) = rule(&Problem::new(&task, &views, &y, None, hard).unwrap());
    assert!(name == "penalty" && said.contains("n-slack"), "{name}: {said}");
    let linear = formulation(1.0, Rescaling::Margin, Penalty::Linear);
    let labels = bits.labels(&mut draw, 6);
    let unlisted = rule(&Problem::new(&Unlisted(task), &views, &y, None, linear).unwrap());
    for (name, said) in [unlisted, rule(&Problem::new(&bits, &views, &labels, None, linear).unwrap())] {
        assert!(name == "solver" && said.contains("bcfw"), "{name}: {said}");
    }
}

/// Saves every state, and stops after some rounds.
struct Recorder(Vec<State>);

impl Observer for Recorder {
    fn on_iteration(&mut self, _: &Progress) -> ControlFlow<()> {
        if self.0.len() < 60 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }

    fn on_state(&mut self, _: &Progress, snapshot: &dyn Snapshot, _: Option<Status>) -> ControlFlow<()> {
        self.0.push(snapshot.save().unwrap());
        ControlFlow::Continue(())
    }
}

/// From every state of every phase: on to the same bits, with limits that are over already, and at another C.
#[test]
fn states_of_every_phase() {
    let mut draw = Draw(7);
    let (x, y, task) = (draw.matrix(60, 3), draw.labels(60, 3), Multiclass::new(3, draw.costs(3)));
    let views = x.views();
    for f in SLACKS.map(|penalty| formulation(300.0, Rescaling::Margin, penalty)) {
        let at = |c: f64| Typed::new(&task, &views, &y, None, Formulation { c, ..f }).unwrap();
        let problem = at(f.c);
        for solver in dual_coordinates() {
            let settings = to_relative_gap(1e-7);
            let whole = solver.solve(&problem, &settings, &mut ());
            let mut recorder = Recorder(Vec::new());
            solver.solve(&problem, &settings, &mut recorder);
            for (k, state) in recorder.0.iter().enumerate() {
                let settings = Settings { resume: Some(state.clone()), ..settings.clone() };
                let context = format!("{solver:?} on {f:?}, state {k}");
                assert!(bits_of(&whole) == bits_of(&solver.solve(&problem, &settings, &mut ())), "{context}");
                let over = Settings { max_passes: Some(1e-9), ..settings.clone() };
                let report = run(&problem, &solver, &over);
                assert!(report.dual <= whole.report.primal * (1.0 + 1e-12), "a false bound: {context}: {report:?}");
                if k % 5 == 0 || k < 3 {
                    for c in [f.c * 30.0, f.c * 1.3, f.c * 0.9, f.c * 0.01] {
                        let report =
                            run(&at(c), &solver, &Settings { stop: to_relative_gap(1e-3).stop, ..settings.clone() });
                        assert_eq!(report.status, Status::Converged, "{context} at C = {c}: {report:?}");
                    }
                }
            }
        }
    }
}

/// Weights to begin with, good and bad, change nothing of what is true; also where there is no loss at all.
#[test]
fn warm_starts() {
    let mut draw = Draw(8);
    let (x, y) = (draw.matrix(40, 2), draw.labels(40, 2));
    let (views, two, one) = (x.views(), Multiclass::new(2, draw.costs(2)), Multiclass::new(2, Costs::zero_one(1)));
    for penalty in SLACKS {
        let f = formulation(5.0, Rescaling::Margin, penalty);
        for solver in dual_coordinates() {
            for scale in [0.0, 1.0, 100.0] {
                let settings = Settings { warm_start: Some(draw.weights(4, scale)), ..to_relative_gap(1e-6) };
                let report = run(&Typed::new(&two, &views, &y, None, f).unwrap(), &solver, &settings);
                assert_eq!(report.status, Status::Converged, "{report:?}");
                let settings = Settings { warm_start: Some(draw.weights(2, scale)), ..settings };
                let problem = Typed::new(&one, &views, &[0; 40], None, f).unwrap();
                assert_eq!(run(&problem, &solver, &settings).status, Status::Converged, "nothing to learn, {solver:?}");
            }
        }
    }
}

/// Classes by other names: the same optimum, and weights in the other order.
#[test]
fn renamed_classes() {
    let mut draw = Draw(9);
    let (x, y) = (draw.matrix(30, 3), draw.labels(30, 3));
    let (views, task) = (x.views(), Multiclass::new(3, Costs::zero_one(3)));
    let renamed: Vec<u32> = y.iter().map(|y| (y + 1) % 3).collect();
    for penalty in SLACKS {
        let f = formulation(2.0, Rescaling::Margin, penalty);
        for solver in dual_coordinates() {
            let solve = |y: &[u32]| {
                let problem = Typed::new(&task, &views, y, None, f).unwrap();
                solver.solve(&problem, &to_relative_gap(1e-10), &mut ())
            };
            let (a, b) = (solve(&y), solve(&renamed));
            assert!((a.report.primal / b.report.primal - 1.0).abs() < 1e-9);
            let shifted: Vec<f64> = (0..9).map(|at| b.weights.as_slice()[at / 3 * 3 + (at % 3 + 1) % 3]).collect();
            let far = a.weights.as_slice().iter().zip(&shifted).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(far < 1e-4 * (1.0 + a.report.primal), "{far}: {:?} {:?}", a.weights, Weights::from(shifted));
        }
    }
}
