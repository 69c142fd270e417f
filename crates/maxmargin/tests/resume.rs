//! Training that is saved, stopped and resumed ends in the same bits as training that nobody disturbed.

mod common;

use std::ops::ControlFlow;

use common::{
    Any, Bits, Draw, Unlisted, bits_of, cuts, formulation, formulations, n_slack, separable, to_gap, to_relative_gap,
};
use maxmargin::problem::{Formulation, Penalty, Problem, Rescaling};
use maxmargin::solver::cutting_plane::Placement;
use maxmargin::solver::n_slack::Update;
use maxmargin::solver::{Observer, Progress, Settings, Snapshot, State, Status};
use maxmargin::task::Task;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::Multiclass;

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

    fn on_state(&mut self, progress: &Progress, snapshot: &dyn Snapshot, status: Option<Status>) {
        assert_eq!(progress.round as usize, self.states.len() + 1);
        assert!(!snapshot.weights().is_empty());
        self.states.push(snapshot.save().unwrap());
        self.status = status;
    }
}

fn solvers(penalty: Penalty) -> Vec<Any> {
    let mut all = vec![
        cuts(1, None, Placement::LineSearch),
        cuts(1, Some(3), Placement::LineSearch),
        cuts(1, Some(0), Placement::QpPoint),
        cuts(4, Some(3), Placement::QpPoint),
        cuts(7, None, Placement::LineSearch),
        n_slack(Update::Batch(16)),
        n_slack(Update::OwnCuts),
    ];
    if penalty == Penalty::Linear {
        all.push(Any::FrankWolfe);
    }
    all
}

fn settings(solver: &Any, formulation: Formulation) -> Settings {
    let stop = match (solver, formulation.penalty) {
        (Any::FrankWolfe, _) => to_gap(0.1),
        (_, Penalty::Hard) => to_relative_gap(0.01),
        _ => to_gap(0.005),
    };
    Settings { max_passes: Some(3000.0), ..stop }
}

fn ends_the_same<T: Task>(problem: &Problem<'_, T>) {
    for solver in solvers(problem.formulation().penalty) {
        let settings = settings(&solver, problem.formulation());
        let mut recorder = Recorder::default();
        let undisturbed = solver.solve(problem, &settings, &mut recorder);
        let Recorder { states, status } = recorder;
        let context = format!("{solver:?} on {:?}", problem.formulation());
        assert_eq!(status, Some(undisturbed.report.status), "{context}");
        // The first ones, the last ones, and some between.
        let rounds = states.len();
        let chosen = (0..rounds).filter(|k| *k < 2 || k + 2 >= rounds || k % (1 + rounds / 5) == 0);
        for k in chosen {
            let bytes = states[k].as_bytes().to_vec();
            for threads in [1, 2] {
                let resume = Some(State::from_bytes(bytes.clone()).unwrap());
                let settings = Settings { threads, resume, ..settings.clone() };
                let resumed = solver.solve(problem, &settings, &mut ());
                assert!(bits_of(&undisturbed) == bits_of(&resumed), "{context}: after round {} of {rounds}", k + 1);
            }
        }
    }
}

#[test]
fn binary() {
    let mut draw = Draw(1);
    let (x, y) = separable(&mut draw, N, 5, 2);
    let (task, views, c) = (Binary::new(5), x.views(), draw.example_weights(N));
    for f in formulations(true) {
        ends_the_same(&Problem::new(&task, &views, &y, Some(&c), f).unwrap());
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
        ends_the_same(&Problem::new(&task, &views, labels, None, f).unwrap());
    }
}

#[test]
fn unlisted() {
    let mut draw = Draw(3);
    let (x, y) = separable(&mut draw, N, 4, 3);
    let (task, views) = (Unlisted(Multiclass::new(4, draw.costs(3))), x.views());
    for f in formulations(false) {
        ends_the_same(&Problem::new(&task, &views, &y, None, f).unwrap());
    }
}

#[test]
fn chains() {
    let mut draw = Draw(4);
    let (x, task) = (draw.matrix(N, 3), Bits::new(3, 3));
    let (views, y) = (x.views(), task.labels(&mut draw, N));
    let f = formulation(1.0, Rescaling::Margin, Penalty::Linear);
    ends_the_same(&Problem::new(&task, &views, &y, None, f).unwrap());
}
