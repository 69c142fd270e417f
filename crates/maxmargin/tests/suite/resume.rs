//! Training that is saved, stopped and resumed ends in the same bits as training that nobody disturbed.

use crate::common;

mod refused;

use std::ops::ControlFlow;

use common::{
    Any, Bits, Draw, Typed, Unlisted, bcfws, bits_of, cuts, dual_coordinates, formulation, formulations,
    has_coordinates, n_slack, separable, to_gap, to_relative_gap,
};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Penalty, Problem, Rescaling};
use maxmargin::solver::bcfw::{Bcfw, Order};
use maxmargin::solver::cutting_plane::Placement;
use maxmargin::solver::n_slack::Update;
use maxmargin::solver::{Observer, Progress, Settings, Snapshot, State, Status};
use maxmargin::task::Task;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::{Costs, Multiclass};
use maxmargin::tasks::multilabel::{Multilabel, Pairs, SetLoss};
use maxmargin::weights::Weights;

const N: usize = 70;

/// Saves every state.
#[derive(Default)]
struct Recorder {
    states: Vec<State>,
    status: Option<Status>,
}

impl Observer for Recorder {
    fn on_iteration(&mut self, _: &Progress) -> ControlFlow<()> {
        assert_eq!(self.status, None, "a round after the last");
        ControlFlow::Continue(())
    }

    fn on_state(&mut self, progress: &Progress, snapshot: &dyn Snapshot, status: Option<Status>) -> ControlFlow<()> {
        assert_eq!(progress.round as usize, self.states.len() + 1);
        assert!(progress.round < 2000, "a run without end: {progress:?}");
        assert!(!snapshot.weights().is_empty());
        self.states.push(snapshot.save().unwrap());
        self.status = status;
        ControlFlow::Continue(())
    }
}

fn solvers<T: Task>(problem: &Typed<'_, T>) -> Vec<Any> {
    let mut all = vec![
        cuts(1, None, Placement::LineSearch),
        cuts(1, Some(3), Placement::LineSearch),
        cuts(1, Some(0), Placement::QpPoint),
        cuts(4, Some(3), Placement::QpPoint),
        cuts(7, None, Placement::LineSearch),
        n_slack(Update::Batch(16)),
        n_slack(Update::OwnCuts),
    ];
    let penalty = problem.formulation().penalty;
    if penalty != Penalty::Hard {
        all.push(Any::Subgradient);
        all.extend(bcfws());
    }
    if penalty == Penalty::Linear {
        all.push(Any::FrankWolfe);
    }
    if has_coordinates(problem) {
        all.extend(dual_coordinates());
    }
    all
}

fn settings(solver: &Any, formulation: Formulation) -> Settings {
    let stop = if formulation.penalty == Penalty::Hard { to_relative_gap(0.01) } else { solver.stop(0.005) };
    Settings { max_passes: Some(3000.0), ..stop }
}

/// As a file would bring it.
fn reread(state: &State) -> State {
    State::from_bytes(state.as_bytes().to_vec()).unwrap()
}

fn ends_the_same<T: Task>(problem: &Typed<'_, T>) {
    for solver in solvers(problem) {
        ends_the_same_with(&solver, problem, settings(&solver, problem.formulation()));
    }
}

/// Returns how it ends.
fn ends_the_same_with(solver: &Any, problem: &Problem<'_>, settings: Settings) -> Status {
    let settings = Settings { keep_state: true, ..settings };
    let mut recorder = Recorder::default();
    let undisturbed = solver.solve(problem, &settings, &mut recorder);
    let Recorder { states, status } = recorder;
    let context = format!("{solver:?} on {:?}", problem.formulation());
    assert_eq!(status, Some(undisturbed.report.status), "{context}");
    assert_eq!(undisturbed.state.as_ref(), states.last(), "{context}: the state at the end is the last one");
    // The first ones, the last ones, and some between.
    let rounds = states.len();
    for k in (0..rounds).filter(|k| *k < 2 || k + 2 >= rounds || k % (1 + rounds / 8) == 0) {
        for threads in [1, 2] {
            let settings = Settings { threads, resume: Some(reread(&states[k])), ..settings.clone() };
            let resumed = solver.solve(problem, &settings, &mut ());
            assert!(bits_of(&undisturbed) == bits_of(&resumed), "{context}: after round {} of {rounds}", k + 1);
        }
    }
    undisturbed.report.status
}

#[test]
fn binary() {
    let mut draw = Draw(1);
    let (x, y) = separable(&mut draw, N, 5, 2);
    let (task, views, c) = (Binary::new(5), x.views(), draw.example_weights(N));
    for f in formulations(true) {
        ends_the_same(&Typed::new(&task, &views, &y, Some(&c), f).unwrap());
    }
}

#[test]
fn multiclass() {
    let mut draw = Draw(2);
    let (x, y) = separable(&mut draw, N, 6, 4);
    let (task, views) = (Multiclass::new(6, draw.costs(4)), x.views());
    // Noise for the penalties that can do with it.
    let mut noisy = y.clone();
    noisy[0] = (noisy[0] + 1) % 4;
    for f in formulations(true) {
        let labels = if f.penalty == Penalty::Hard { &y } else { &noisy };
        ends_the_same(&Typed::new(&task, &views, labels, None, f).unwrap());
    }
}

#[test]
fn unlisted() {
    let mut draw = Draw(3);
    let (x, y) = separable(&mut draw, N, 4, 3);
    let (task, views) = (Unlisted(Multiclass::new(4, draw.costs(3))), x.views());
    for f in formulations(false) {
        ends_the_same(&Typed::new(&task, &views, &y, None, f).unwrap());
    }
}

#[test]
fn chains() {
    let mut draw = Draw(4);
    let (x, task) = (draw.matrix(N, 3), Bits::new(3, 3));
    let (views, y) = (x.views(), task.labels(&mut draw, N));
    let f = formulation(1.0, Rescaling::Margin, Penalty::Linear);
    ends_the_same(&Typed::new(&task, &views, &y, None, f).unwrap());
}

#[test]
fn label_sets() {
    let mut draw = Draw(7);
    let (x, task) = (draw.matrix(N, 3), sets_without_pairs(4));
    let (views, y, c) = (x.views(), draw.sets(N, 4), draw.example_weights(N));
    for c in [None, Some(&c[..])] {
        let f = formulation(30.0, Rescaling::Margin, Penalty::Linear);
        ends_the_same(&Typed::new(&task, &views, &y, c, f).unwrap());
    }
}

fn sets_without_pairs(labels: u32) -> Multilabel {
    Multilabel::new(3, labels, Pairs::none(labels), SetLoss::Hamming).unwrap()
}

/// Down to what f64 can do: runs that stall, stall again.
#[test]
fn at_the_limit() {
    let mut draw = Draw(14);
    let (x, y) = separable(&mut draw, 20, 3, 3);
    let (task, views) = (Multiclass::new(3, draw.costs(3)), x.views());
    let mut stalled = 0;
    for f in formulations(true) {
        let problem = Typed::new(&task, &views, &y, None, f).unwrap();
        for solver in solvers(&problem).into_iter().filter(|s| !matches!(s, Any::FrankWolfe | Any::Subgradient)) {
            let settings = Settings { max_passes: Some(200.0), ..to_relative_gap(1e-16) };
            stalled += u32::from(ends_the_same_with(&solver, &problem, settings) == Status::Stalled);
        }
    }
    assert!(stalled > 5, "only {stalled} runs stall");
}

/// Stopped again and again, by every kind of limit, training arrives where it would have without.
#[test]
fn stop_and_go() {
    let mut draw = Draw(7);
    let (x, y, task) = (draw.matrix(40, 4), draw.labels(40, 3), Multiclass::new(4, draw.costs(3)));
    let views = x.views();
    let problem = Typed::new(&task, &views, &y, None, formulation(20.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    for solver in solvers(&problem) {
        let settings = Settings { keep_state: true, ..settings(&solver, problem.formulation()) };
        let undisturbed = solver.solve(&problem, &settings, &mut ());
        let (mut state, mut stops, mut seconds) = (None, 0, 0.0);
        let resumed = loop {
            // What is saved is the time at the end of a round, not at the end of the run.
            let (mut rounds, mut at_round) = (0, seconds);
            let most_rounds = if stops % 3 == 1 { u32::MAX } else { 2 };
            let mut some_rounds = |progress: &Progress| {
                (rounds, at_round) = (rounds + 1, progress.seconds);
                if rounds < most_rounds { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            let settings = Settings { resume: state.take(), ..settings.clone() };
            let solution = match stops % 3 {
                0 => solver.solve(&problem, &settings, &mut some_rounds),
                1 => {
                    let max_passes = Some(2.0 * f64::from(stops));
                    solver.solve(&problem, &Settings { max_passes, ..settings }, &mut some_rounds)
                }
                _ => {
                    let max_seconds = Some(seconds + 1e-9);
                    solver.solve(&problem, &Settings { max_seconds, ..settings }, &mut some_rounds)
                }
            };
            assert!(solution.report.seconds_training >= seconds, "{solver:?}: time goes back");
            (seconds, stops) = (at_round, stops + 1);
            if solution.report.status == Status::Converged {
                break solution;
            }
            state = solution.state.as_ref().map(reread);
        };
        assert!(stops > 2 && bits_of(&undisturbed) == bits_of(&resumed), "{solver:?}: {stops} stops");
    }
}

/// Bcfw can be broken off in the middle of a round: among visits, with the oracle or without, and in exact passes.
#[test]
fn broken_off_and_resumed() {
    /// Wants to stop after so many questions.
    struct Stop(usize);
    impl Observer for Stop {
        fn on_iteration(&mut self, _: &Progress) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }

        fn is_over(&mut self) -> bool {
            self.0 -= 1;
            self.0 == 0
        }
    }
    let mut draw = Draw(8);
    let (x, sets) = (draw.matrix(80, 3), draw.sets(80, 4));
    let (views, task) = (x.views(), Multilabel::new(3, 4, Pairs::all(4).unwrap(), SetLoss::Hamming).unwrap());
    let f = formulation(100.0, Rescaling::Margin, Penalty::Linear);
    let problem = Problem::new(&task, &views, &sets, None, f).unwrap();
    for order in [Order::Permutations, Order::Gaps] {
        let solver = Any::Bcfw(Bcfw { order, ..Bcfw::default() });
        let settings = Settings { keep_state: true, threads: 1, ..to_relative_gap(1e-4) };
        let undisturbed = solver.solve(&problem, &settings, &mut ());
        let (mut state, mut stops) = (None, 0);
        let resumed = loop {
            let settings = Settings { resume: state.take(), ..settings.clone() };
            // More each time: an exact pass that is broken off begins anew.
            let solution = solver.solve(&problem, &settings, &mut Stop(stops + 1));
            if solution.report.status == Status::Converged {
                break solution;
            }
            assert_eq!(solution.report.status, Status::Interrupted);
            assert!(solution.report.primal >= solution.report.dual && solution.report.primal.is_finite());
            (state, stops) = (solution.state.as_ref().map(reread), stops + 1);
        };
        assert!(stops > 10 && bits_of(&undisturbed) == bits_of(&resumed), "{order:?}: {stops} stops");
        // The time may be up in the middle, too; what is said of P then is true.
        let late = solver.solve(&problem, &Settings { max_seconds: Some(1e-9), ..settings }, &mut ());
        let primal = problem.objective(&late.weights, &Pool::new(1).unwrap()).unwrap();
        assert_eq!((late.report.status, late.report.rounds), (Status::MaxSeconds, 0));
        assert!(late.report.primal >= primal * (1.0 - 1e-12) && late.report.oracle_calls < 80);
    }
}

/// Who sees the state of a round may stop training there, in the same round.
#[test]
fn a_look_at_the_state_stops_training() {
    struct Stop(u64);
    impl Observer for Stop {
        fn on_iteration(&mut self, progress: &Progress) -> ControlFlow<()> {
            self.0 = progress.round;
            ControlFlow::Continue(())
        }

        fn on_state(&mut self, progress: &Progress, _: &dyn Snapshot, _: Option<Status>) -> ControlFlow<()> {
            if progress.round < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }
    }
    let mut draw = Draw(9);
    let (x, y, task) = (draw.matrix(40, 4), draw.labels(40, 3), Multiclass::new(4, draw.costs(3)));
    let views = x.views();
    let problem = Typed::new(&task, &views, &y, None, formulation(20.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    for solver in solvers(&problem) {
        let mut stop = Stop(0);
        let solution = solver.solve(&problem, &to_gap(1e-9), &mut stop);
        assert_eq!((solution.report.status, stop.0), (Status::Interrupted, 2), "{solver:?}");
    }
}

/// A snapshot's weights are those that training returns when it stops there.
#[test]
fn the_weights_of_a_snapshot() {
    struct Stop(Weights);
    impl Observer for Stop {
        fn on_iteration(&mut self, progress: &Progress) -> ControlFlow<()> {
            if progress.round < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }

        fn on_state(
            &mut self,
            progress: &Progress,
            snapshot: &dyn Snapshot,
            status: Option<Status>,
        ) -> ControlFlow<()> {
            assert_eq!(status.is_some(), progress.round == 3);
            self.0.clone_from(&snapshot.weights());
            ControlFlow::Continue(())
        }
    }
    let mut draw = Draw(9);
    let (x, y, task) = (draw.matrix(40, 4), draw.labels(40, 3), Multiclass::new(4, draw.costs(3)));
    let views = x.views();
    let problem = Typed::new(&task, &views, &y, None, formulation(20.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    // The others close with an exact pass.
    let closes = |s: &&Any| matches!(s, Any::NSlack(_) | Any::Bcfw(_) | Any::Coordinates(_));
    let solvers = solvers(&problem);
    for solver in solvers.iter().filter(|s| !closes(s)).chain([&Any::Perceptron]) {
        let mut stop = Stop(Weights::default());
        let solution = solver.solve(&problem, &to_gap(1e-9), &mut stop);
        assert_eq!((solution.report.status, &solution.weights), (Status::Interrupted, &stop.0), "{solver:?}");
        assert!(solution.state.is_none(), "nobody asked for it");
    }
}

/// Examples whose oracle is dear: a pass is many rounds, and each of them can be saved.
#[test]
fn in_the_middle_of_a_pass() {
    const N: usize = 4500;
    let mut draw = Draw(12);
    let (x, y, task) = (draw.matrix(N, 3), draw.labels(N, 3), Unlisted(Multiclass::new(3, Costs::zero_one(3))));
    let views = x.views();
    let f = formulation(100.0, Rescaling::Margin, Penalty::Linear);
    let problem = Problem::new(&task, &views, &y, None, f).unwrap();
    for solver in [&bcfws()[0], &Any::Subgradient, &Any::Perceptron] {
        let settings = Settings { max_passes: Some(14.2), keep_state: true, ..to_relative_gap(1e-9) };
        let mut recorder = Recorder::default();
        let undisturbed = solver.solve(&problem, &settings, &mut recorder);
        assert!(recorder.states.len() as f64 > 1.1 * undisturbed.report.passes, "{:?}", undisturbed.report);
        for (k, state) in recorder.states.iter().enumerate() {
            let settings = Settings { resume: Some(reread(state)), ..settings.clone() };
            let resumed = solver.solve(&problem, &settings, &mut ());
            assert!(bits_of(&undisturbed) == bits_of(&resumed), "{solver:?}: after round {}", k + 1);
        }
    }
}

/// The perceptron has no bound to converge to: it ends when it makes no mistake.
#[test]
fn the_perceptron() {
    let mut draw = Draw(13);
    let (x, y) = separable(&mut draw, N, 5, 3);
    let (task, views) = (Multiclass::new(5, draw.costs(3)), x.views());
    let f = formulation(4.0, Rescaling::Margin, Penalty::Linear);
    let problem = Problem::new(&task, &views, &y, None, f).unwrap();
    let settings = Settings { keep_state: true, max_passes: Some(1000.0), ..Settings::default() };
    let mut recorder = Recorder::default();
    let undisturbed = Any::Perceptron.solve(&problem, &settings, &mut recorder);
    assert_eq!((recorder.status, undisturbed.report.status), (Some(Status::Converged), Status::Converged));
    for state in &recorder.states {
        let settings = Settings { resume: Some(reread(state)), ..settings.clone() };
        assert!(bits_of(&undisturbed) == bits_of(&Any::Perceptron.solve(&problem, &settings, &mut ())));
    }
    // C has no part in what it does, only in what P is.
    let other = Problem::new(&task, &views, &y, None, Formulation { c: 8.0, ..f }).unwrap();
    let settings = Settings { resume: undisturbed.state, ..settings };
    let resumed = Any::Perceptron.solve(&other, &settings, &mut ());
    assert_eq!(resumed.report.status, Status::Converged);
    assert!(resumed.report.passes < undisturbed.report.passes);
}

/// Many examples: no state while a sample is solved for a start, and states within a sweep of n slacks.
#[test]
fn many_examples() {
    const N: usize = 66_000;
    let mut draw = Draw(10);
    let (x, task) = (draw.matrix(N, 3), Binary::new(3));
    let y: Vec<u32> = x
        .views()
        .iter()
        .map(|x| u32::from(x.values().first().is_some_and(|&v| v > 0.0) != (draw.unit() < 0.1)))
        .collect();
    let views = x.views();
    let f = formulation(100.0, Rescaling::Margin, Penalty::Linear);
    let problem = Problem::new(&task, &views, &y, None, f).unwrap();
    for solver in [cuts(1, None, Placement::LineSearch), n_slack(Update::OwnCuts)].into_iter().chain(dual_coordinates())
    {
        let mut recorder = Recorder::default();
        let undisturbed = solver.solve(&problem, &to_relative_gap(0.01), &mut recorder);
        let states = recorder.states;
        for k in [0, states.len() / 2] {
            let settings = Settings { resume: Some(reread(&states[k])), ..to_relative_gap(0.01) };
            let resumed = solver.solve(&problem, &settings, &mut ());
            assert!(bits_of(&undisturbed) == bits_of(&resumed), "{solver:?}: after round {}", k + 1);
        }
    }
}

/// A path over C, up, down and in leaps: every step converges, and its certificate agrees with that of a run from scratch.
/// Where the steps are gentle the path takes fewer passes.
fn path<'a, T: Task + 'a>(at: impl Fn(f64) -> Typed<'a, T>)
where
    T::Output: 'a,
    T::Input<'a>: 'a,
{
    let gentle = vec![1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0];
    let falling: Vec<_> = gentle.iter().copied().rev().collect();
    let formulation = at(1.0).formulation();
    for solver in solvers(&at(1.0)) {
        for (steps, share) in [(gentle.clone(), 0.8), (falling.clone(), 0.8), (vec![1.0, 100.0, 0.1], f64::INFINITY)] {
            if share == f64::INFINITY && matches!(solver, Any::Subgradient) {
                continue; // thousands of passes at so large a C
            }
            let (mut state, mut warm_passes, mut cold_passes) = (None, 0.0, 0.0);
            for &c in &steps {
                let problem = at(c);
                let settings = settings(&solver, formulation);
                let cold = solver.solve(&problem, &settings, &mut ()).report;
                let settings = Settings { resume: state, keep_state: true, ..settings };
                let solution = solver.solve(&problem, &settings, &mut ());
                state = Some(solution.state.expect("the state at the end"));
                let warm = solution.report;
                let context = format!("{solver:?}, {:?}: warm {warm:?}, cold {cold:?}", problem.formulation());
                assert_eq!((warm.status, cold.status), (Status::Converged, Status::Converged), "{context}");
                assert!(warm.dual <= warm.primal && warm.gap <= warm.target, "{context}");
                assert!(warm.dual <= cold.primal && cold.dual <= warm.primal, "{context}");
                let primal = problem.objective(&solution.weights, &Pool::new(1).unwrap()).unwrap();
                assert!((primal / warm.primal - 1.0).abs() < 1e-9, "{context}: computed {primal}");
                warm_passes += warm.passes;
                cold_passes += cold.passes;
            }
            let passes = format!("{warm_passes} passes warm, {cold_passes} cold");
            // Dual coordinates and blocks need a handful of passes from scratch, and the path's exact pass before each step is
            // one; the steps of the subgradient do not know where they start.
            let share = if matches!(solver, Any::Coordinates(_) | Any::Subgradient) { f64::INFINITY } else { share };
            let starts = if matches!(solver, Any::Bcfw(_)) { (steps.len() - 1) as f64 } else { 0.0 };
            assert!(warm_passes - starts <= share * cold_passes, "{solver:?}, {formulation:?}, {steps:?}: {passes}");
        }
    }
}

#[test]
fn a_path_for_classes() {
    let mut draw = Draw(5);
    let (x, y, task) = (draw.matrix(200, 6), draw.labels(200, 4), Multiclass::new(6, draw.costs(4)));
    let views = x.views();
    for f in formulations(true).into_iter().filter(|f| f.penalty != Penalty::Hard) {
        path(|c| Typed::new(&task, &views, &y, None, Formulation { c: 10.0 * c, ..f }).unwrap());
    }
}

#[test]
fn a_path_for_chains() {
    let mut draw = Draw(6);
    let (x, task) = (draw.matrix(60, 3), Bits::new(3, 4));
    let (views, y) = (x.views(), task.labels(&mut draw, 60));
    let f = formulation(1.0, Rescaling::Margin, Penalty::Linear);
    path(|c| Typed::new(&task, &views, &y, None, Formulation { c: 3.0 * c, ..f }).unwrap());
}

#[test]
fn a_path_for_label_sets() {
    let mut draw = Draw(8);
    let (x, task) = (draw.matrix(60, 3), sets_without_pairs(4));
    let (views, y) = (x.views(), draw.sets(60, 4));
    let f = formulation(1.0, Rescaling::Margin, Penalty::Linear);
    path(|c| Typed::new(&task, &views, &y, None, Formulation { c: 10.0 * c, ..f }).unwrap());
}
