//! Training with kernels: the same bits for all threads and caches, and after it was saved and resumed.

use crate::common;
use crate::common::kernel;

use std::ops::ControlFlow;

use common::{Draw, NUMBERS, bcfws, cuts, forged, formulation, n_slack, to_gap, to_relative_gap};
use kernel::{Kernelled, LINEAR, QUADRATIC, RBF, Way, bits, constant, fault, growing, uniform};
use maxmargin::Error;
use maxmargin::inference::chain::Order;
use maxmargin::kernel::{Metric, Shape, Standard};
use maxmargin::problem::{Formulation, Penalty, Problem, Rescaling};
use maxmargin::solver::cutting_plane::Placement;
use maxmargin::solver::n_slack::Update;
use maxmargin::solver::{Certificate, Observer, Progress, Settings, Snapshot, State, Status};
use maxmargin::sparse::SparseMatrix;
use maxmargin::tasks::multiclass::Costs;
use maxmargin::tasks::tagging::{Sentence, Shape as Model, TagLoss, Tagging};

/// A few of each kind.
fn ways(problem: &Problem<'_>) -> Vec<Way> {
    let penalty = problem.formulation().penalty;
    let mut all = vec![
        cuts(1, None, Placement::LineSearch),
        cuts(1, Some(2), Placement::QpPoint),
        cuts(3, Some(3), Placement::LineSearch),
        n_slack(Update::Batch(16)),
        n_slack(Update::OwnCuts),
    ];
    if penalty != Penalty::Hard {
        all.extend(bcfws());
    }
    let mut all: Vec<Way> = all.into_iter().map(Way::Any).collect();
    if penalty == Penalty::Linear {
        all.extend([growing(2), growing(9), uniform(10), constant(40)]);
    }
    all
}

/// As far as this solver goes in reasonable time.
fn settings(solver: &Way, formulation: Formulation) -> Settings {
    let is_estimate = format!("{solver:?}").contains("Uniform") || matches!(solver, Way::Constant(_));
    let stop = match formulation.penalty {
        Penalty::Hard => to_relative_gap(0.01),
        _ if is_estimate => to_gap(0.1),
        _ => to_gap(0.005),
    };
    Settings { max_passes: Some(if is_estimate { 40.0 } else { 2000.0 }), ..stop }
}

fn formulations() -> impl Iterator<Item = Formulation> {
    [
        formulation(10.0, Rescaling::Margin, Penalty::Linear),
        formulation(3.0, Rescaling::Slack, Penalty::Quadratic),
        formulation(1.0, Rescaling::Margin, Penalty::Hard),
    ]
    .into_iter()
}

/// Three classes that an rbf kernel separates.
fn data(n: usize) -> (SparseMatrix, Vec<u32>, Costs, Vec<f64>) {
    let mut draw = Draw(1);
    let mut x = SparseMatrix::new();
    (0..n).for_each(|_| x.push_row([(0, draw.signed() as f32), (1, 2.0 * draw.signed() as f32)]));
    let y = draw.labels(n, 3);
    (x, y, draw.costs(3), draw.example_weights(n))
}

#[test]
fn the_same_bits_for_all_threads_and_caches() {
    let (x, y, costs, c) = data(35);
    let narrow = Standard { shape: Shape::Rbf { gamma: 30.0 }, constant: 0.5 };
    for f in formulations() {
        let solve = |cache, threads| {
            Kernelled::cached(narrow, &x, cache).classes(&costs, &y, Some(&c), f, |problem| {
                let one = |solver: Way| {
                    let solution = solver.solve(problem, &Settings { threads, ..settings(&solver, f) }, &mut ());
                    assert_eq!(fault(problem, &solution), None, "{solver:?} on {f:?}: {:?}", solution.report);
                    (format!("{solver:?} on {f:?}"), bits(&solution))
                };
                ways(problem).into_iter().map(one).collect::<Vec<_>>()
            })
        };
        let first = solve(usize::MAX, 1);
        for (cache, threads) in [(0, 1), (8 * 35, 2), (usize::MAX, 5), (0, 5)] {
            for (ours, other) in first.iter().zip(solve(cache, threads)) {
                assert!(*ours == other, "{}: a cache of {cache}, {threads} threads", ours.0);
            }
        }
    }
}

/// Enough examples for threads to have something to share.
#[test]
fn the_same_bits_for_many_examples() {
    const N: usize = 2500;
    let (x, _, _, _) = data(N);
    let y: Vec<u32> = x.views().iter().map(|row| u32::from(row.values()[0] * row.values()[1] > 0.0)).collect();
    let f = formulation(100.0, Rescaling::Margin, Penalty::Linear);
    let solvers = [
        Way::Any(cuts(1, None, Placement::LineSearch)),
        Way::Any(cuts(3, Some(2), Placement::LineSearch)),
        growing(50),
        uniform(50),
        constant(200),
    ];
    for solver in solvers {
        let solve = |cache, threads| {
            Kernelled::cached(RBF, &x, cache).classes(&Costs::zero_one(2), &y, None, f, |problem| {
                let settings = Settings { threads, max_passes: Some(6.0), ..to_gap(0.01) };
                bits(&solver.solve(problem, &settings, &mut ()))
            })
        };
        let first = solve(usize::MAX, 1);
        for (cache, threads) in [(0, 2), (8 * N, 5)] {
            assert!(first == solve(cache, threads), "{solver:?}: a cache of {cache}, {threads} threads");
        }
    }
}

/// Saves every state.
#[derive(Default)]
struct Recorder {
    states: Vec<State>,
    status: Option<Status>,
}

impl Observer for Recorder {
    fn on_iteration(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn on_state(&mut self, progress: &Progress, snapshot: &dyn Snapshot, status: Option<Status>) -> ControlFlow<()> {
        assert!(progress.round < 5000, "a run without end: {progress:?}");
        assert!(snapshot.weights().has_coefficients());
        self.states.push(snapshot.save().unwrap());
        self.status = status;
        ControlFlow::Continue(())
    }
}

/// As a file would bring it.
fn reread(state: &State) -> State {
    State::from_bytes(state.as_bytes().to_vec()).unwrap()
}

fn ends_the_same(problem: &Problem<'_>) {
    for solver in ways(problem) {
        let settings = Settings { keep_state: true, ..settings(&solver, problem.formulation()) };
        let mut recorder = Recorder::default();
        let undisturbed = solver.solve(problem, &settings, &mut recorder);
        let Recorder { states, status } = recorder;
        let context = format!("{solver:?} on {:?}", problem.formulation());
        if undisturbed.report.status != Status::Infeasible {
            assert_eq!(status, Some(undisturbed.report.status), "{context}");
            assert_eq!(undisturbed.state.as_ref(), states.last(), "{context}: the state at the end is the last one");
        }
        let rounds = states.len();
        for k in (0..rounds).filter(|k| *k < 2 || k + 3 >= rounds || k % (1 + rounds / 12) == 0) {
            let settings = Settings { threads: 1 + k % 2, resume: Some(reread(&states[k])), ..settings.clone() };
            let resumed = solver.solve(problem, &settings, &mut ());
            let (ours, theirs) = (&undisturbed.report, &resumed.report);
            let context = format!("{context}: after round {} of {rounds}: {ours:?}, resumed {theirs:?}", k + 1);
            assert!(bits(&undisturbed) == bits(&resumed), "{context}");
        }
    }
}

#[test]
fn classes() {
    let (x, y, costs, c) = data(35);
    for f in formulations() {
        Kernelled::new(QUADRATIC, &x).classes(&costs, &y, Some(&c), f, ends_the_same);
        Kernelled::new(RBF, &x).classes(&costs, &y, None, f, ends_the_same);
        if f.penalty != Penalty::Linear {
            continue; // without caps the dual of the next one has no maximum
        }
        let sigmoid = Standard { shape: Shape::Sigmoid { gamma: 1.0, coef0: -1.0 }, constant: 0.0 };
        Kernelled::new(sigmoid, &x).classes(&costs, &y, None, f, ends_the_same);
    }
}

/// Sentences of three tokens, with a kernel on their features.
fn tagging(f: Formulation, then: impl FnOnce(&Problem<'_>)) {
    let mut draw = Draw(3);
    let (x, y): (_, Vec<Vec<u32>>) = (draw.matrix(36, 2), (0..12).map(|_| draw.labels(3, 3)).collect());
    let kernelled = Kernelled::new(RBF, &x);
    let model = Model { tags: 3, features: kernelled.atoms(), edges: 0, order: Order::First };
    let task = Tagging::new(model, TagLoss::hamming(3), None).unwrap();
    let inputs: Vec<_> = (0..12).map(|i| Sentence::new(&kernelled.hot, None, 3 * i..3 * i + 3)).collect();
    let metric = Metric::new(&kernelled.gram, task.emission());
    then(&Problem::new(&task, &inputs, &y, None, f).unwrap().with_kernel(metric));
}

#[test]
fn sentences() {
    for f in formulations() {
        tagging(f, ends_the_same);
    }
}

/// Another C: training begins near its end, and its certificate agrees with that of a run from scratch.
fn path(problem: &Problem<'_>) {
    for solver in ways(problem) {
        for steps in [[1.0, 2.0, 5.0], [5.0, 2.0, 1.0], [1.0, 100.0, 0.1]] {
            let mut state = None;
            for c in steps {
                let problem = problem.with_c(c);
                let settings = settings(&solver, problem.formulation());
                let cold = solver.solve(&problem, &settings, &mut ()).report;
                let warm = Settings { resume: state, keep_state: true, ..settings };
                let solution = solver.solve(&problem, &warm, &mut ());
                let warm = &solution.report;
                let context = format!("{solver:?} at C = {c} of {steps:?}: warm {warm:?}, cold {cold:?}");
                assert_eq!(fault(&problem, &solution), None, "{context}");
                assert_eq!(warm.certificate, cold.certificate, "{context}");
                if warm.certificate == Certificate::Exact {
                    assert_eq!((warm.status, cold.status), (Status::Converged, Status::Converged), "{context}");
                    assert!(warm.gap <= warm.target, "{context}");
                    let rounded = 1.0 + 1e-12;
                    assert!(warm.dual <= rounded * cold.primal && cold.dual <= rounded * warm.primal, "{context}");
                }
                state = Some(solution.state.expect("the state at the end"));
            }
        }
    }
}

#[test]
fn paths_over_c() {
    let (x, y, costs, c) = data(35);
    for f in formulations().filter(|f| f.penalty != Penalty::Hard) {
        Kernelled::new(RBF, &x).classes(&costs, &y, Some(&c), f, path);
    }
    tagging(formulation(1.0, Rescaling::Margin, Penalty::Linear), path);
}

/// Cuts of another kernel, or of other vectors, would be false bounds.
#[test]
fn a_state_of_another_kernel_is_refused() {
    let (x, y, costs, _) = data(20);
    let mut other_x = x.clone();
    other_x.push_row([(0, 0.5)]);
    let mut others = SparseMatrix::new();
    other_x.views()[1..].iter().for_each(|row| others.push_row(row.iter()));
    for f in formulations() {
        let saved = |solver: &Way| {
            Kernelled::new(RBF, &x).classes(&costs, &y, None, f, |problem| {
                let settings = settings(solver, f);
                let mut recorder = Recorder::default();
                solver.solve(problem, &settings, &mut recorder);
                (Settings { resume: Some(reread(&recorder.states[0])), ..settings }, ways(problem))
            })
        };
        for solver in saved(&Way::Any(n_slack(Update::OwnCuts))).1 {
            let settings = saved(&solver).0;
            let refused = |kernel: Standard, x: &SparseMatrix| {
                Kernelled::new(kernel, x).classes(&costs, &y, None, f, |problem| {
                    match solver.try_solve(problem, &settings, &mut ()) {
                        Err(Error::Setting { name: "resume", rule }) => Some(rule),
                        Err(other) => panic!("{solver:?}: {other}"),
                        Ok(_) => None,
                    }
                })
            };
            assert_eq!(refused(RBF, &x), None, "{solver:?}");
            for (kernel, x) in [(LINEAR, &x), (Standard { constant: 1.0, ..RBF }, &x), (RBF, &others)] {
                let said = refused(kernel, x);
                assert!(said.is_some_and(|rule| rule.contains("other examples")), "{solver:?}, {kernel:?}");
            }
        }
    }
}

/// Damaged bytes are refused; forged ones are, or make a run: nothing panics, and no memory is taken on their word.
fn survives_damage(saved: &Problem<'_>, resumed: &Problem<'_>) {
    for solver in ways(saved) {
        let settings = settings(&solver, saved.formulation());
        let mut recorder = Recorder::default();
        solver.solve(saved, &settings, &mut recorder);
        let states = recorder.states;
        let bytes = states[states.len() / 3].as_bytes();
        let attempt = |bytes: Vec<u8>| {
            let resume = Some(State::from_bytes(bytes)?);
            let mut rounds = 0;
            let mut few = |_: &Progress| {
                rounds += 1;
                if rounds < 4 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            solver.try_solve(resumed, &Settings { resume, ..settings.clone() }, &mut few)
        };
        assert!(attempt(forged(bytes, |_| ())).is_ok(), "{solver:?}: unchanged");
        // Behind the magic and the version.
        for at in 20..bytes.len() - 4 {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1 << (at % 8);
            assert!(State::from_bytes(flipped).is_err(), "{solver:?}: a flipped bit in byte {at}");
            assert!(attempt(forged(bytes, |b| b.truncate(at))).is_err(), "{solver:?}: cut off after {at} bytes");
            let _ = attempt(forged(bytes, |b| b[at] ^= [0xff, 0x80, 0x01][at % 3]));
            let number = NUMBERS[at % NUMBERS.len()].to_le_bytes();
            let _ = attempt(forged(bytes, |b| b[at..].iter_mut().zip(number).for_each(|(b, v)| *b = v)));
        }
    }
}

#[test]
fn damage() {
    let (x, y, costs, _) = data(6);
    for f in formulations() {
        Kernelled::new(RBF, &x).classes(&costs, &y, None, f, |problem| {
            survives_damage(problem, problem);
            if f.penalty != Penalty::Hard {
                survives_damage(problem, &problem.with_c(20.0));
            }
        });
    }
}
