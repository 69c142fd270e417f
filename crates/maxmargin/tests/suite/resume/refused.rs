//! States that cannot be used: those of other runs, and damaged or forged ones.

use super::{Recorder, sets_without_pairs, settings, solvers};
use crate::common::{
    Any, Bits, Draw, NUMBERS, Typed, forged, formulation, formulations, n_slack, separable, to_relative_gap,
};

use std::ops::ControlFlow;

use maxmargin::Error;
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Penalty, Problem, Rescaling};
use maxmargin::solver::n_slack::Update;
use maxmargin::solver::{Certificate, Progress, Settings, State, Status};
use maxmargin::task::Task;
use maxmargin::tasks::multiclass::{Costs, Multiclass};
use maxmargin::weights::Weights;

/// What is said of a state that cannot be used.
fn refusal(solver: &Any, problem: &Problem<'_>, settings: &Settings) -> String {
    match solver.try_solve(problem, settings, &mut ()) {
        Err(Error::Setting { name: "resume", rule }) => rule,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn a_state_of_something_else_is_refused() {
    let mut draw = Draw(11);
    let (x, y) = (draw.matrix(20, 4), draw.labels(20, 3));
    let (views, task) = (x.views(), Multiclass::new(4, Costs::zero_one(3)));
    let f = formulation(2.0, Rescaling::Margin, Penalty::Linear);
    let problem = Problem::new(&task, &views, &y, None, f).unwrap();
    let solver = n_slack(Update::Batch(5));
    let settings = Settings { keep_state: true, ..Settings::default() };
    let state = solver.solve(&problem, &settings, &mut ()).state;
    let settings = Settings { resume: state, ..Settings::default() };
    assert!(solver.try_solve(&problem, &settings, &mut ()).is_ok());

    assert!(refusal(&Any::FrankWolfe, &problem, &settings).contains("n-slack"));
    assert!(refusal(&n_slack(Update::Batch(6)), &problem, &settings).contains("Batch(5)"));
    let seed = Settings { seed: 1, ..settings.clone() };
    assert!(refusal(&solver, &problem, &seed).contains("seed"));
    let other = Problem::new(&task, &views[..19], &y[..19], None, f).unwrap();
    assert!(refusal(&solver, &other, &settings).contains("20, this run has 19"));
    let wider = Multiclass::new(5, Costs::zero_one(3));
    let other = Problem::new(&wider, &views, &y, None, f).unwrap();
    assert!(refusal(&solver, &other, &settings).contains("weights 12, this run has 15"));
    let slack = Formulation { rescaling: Rescaling::Slack, ..f };
    let quadratic = Formulation { penalty: Penalty::Quadratic, ..f };
    for f in [slack, quadratic, Formulation { loss_scale: 2.0, ..f }] {
        let other = Problem::new(&task, &views, &y, None, f).unwrap();
        assert!(refusal(&solver, &other, &settings).contains("only C"));
    }
    let mut relabelled = y.clone();
    relabelled[7] = (y[7] + 1) % 3;
    let costlier = Multiclass::new(4, draw.costs(3));
    let weights = draw.example_weights(20);
    for other in [
        Problem::new(&task, &views, &relabelled, None, f).unwrap(),
        Problem::new(&costlier, &views, &y, None, f).unwrap(),
        Problem::new(&task, &views, &y, Some(&weights), f).unwrap(),
    ] {
        assert!(refusal(&solver, &other, &settings).contains("other examples"));
    }
    let both = Settings { warm_start: Some(Weights::zeros(12)), ..settings };
    assert!(matches!(solver.try_solve(&problem, &both, &mut ()), Err(Error::Setting { name: "warm-start", .. })));
}

#[test]
fn foreign_bytes_are_refused() {
    let rule = |bytes: &[u8]| match State::from_bytes(bytes.to_vec()) {
        Err(Error::Setting { name: "resume", rule }) => rule,
        other => panic!("not refused: {other:?}"),
    };
    assert!(rule(b"").contains("no saved state"));
    assert!(rule(b"solver: one-slack").contains("no saved state"));
    assert!(rule(b"maxmargin state\n").contains("cut off"));
    assert!(rule(b"maxmargin state\n\xff\0\0\0 and more").contains("version 255"));
    assert!(rule(b"maxmargin state\n\x0f\0\0\0 and more").contains("damaged"));
}

/// Damaged bytes are refused; forged ones are, or make a run: nothing panics, and no memory is taken on their word.
fn survives_damage<T: Task>(saved: &Typed<'_, T>, resumed: &Problem<'_>) {
    for solver in solvers(saved) {
        let settings = settings(&solver, saved.formulation());
        let mut recorder = Recorder::default();
        solver.solve(saved, &settings, &mut recorder);
        let bytes = recorder.states[recorder.states.len() / 2].as_bytes();
        for at in 0..bytes.len() {
            assert!(State::from_bytes(bytes[..at].to_vec()).is_err(), "{solver:?}: cut off after {at} bytes");
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1 << (at % 8);
            assert!(State::from_bytes(flipped).is_err(), "{solver:?}: a flipped bit in byte {at}");
        }
        let attempt = |bytes: Vec<u8>| {
            let resume = Some(State::from_bytes(bytes)?);
            let mut rounds = 0;
            let mut few = |_: &Progress| {
                rounds += 1;
                if rounds < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            solver.try_solve(resumed, &Settings { resume, ..settings.clone() }, &mut few)
        };
        assert!(attempt(forged(bytes, |_| ())).is_ok(), "{solver:?}: unchanged");
        // Behind the magic and the version.
        for at in 20..bytes.len() - 4 {
            assert!(attempt(forged(bytes, |b| b.truncate(at))).is_err(), "{solver:?}: cut off after {at} bytes");
            let _ = attempt(forged(bytes, |b| b[at] ^= [0xff, 0x80, 0x01][at % 3]));
            let number = NUMBERS[at % NUMBERS.len()].to_le_bytes();
            let _ = attempt(forged(bytes, |b| b[at..].iter_mut().zip(number).for_each(|(b, v)| *b = v)));
        }
    }
}

/// The report of a run that goes on from a forged state is true: `primal` is P of its weights, and `dual` is below the
/// minimum, or the report says that the bound rests on the state.
fn reports_the_truth<T: Task>(problem: &Typed<'_, T>) {
    let pool = Pool::new(1).unwrap();
    let precise = Settings { max_passes: Some(3000.0), ..to_relative_gap(1e-9) };
    let minimum = n_slack(Update::OwnCuts).solve(problem, &precise, &mut ()).report;
    assert_eq!(minimum.status, Status::Converged);
    for solver in solvers(problem) {
        let settings = settings(&solver, problem.formulation());
        let mut recorder = Recorder::default();
        solver.solve(problem, &settings, &mut recorder);
        let bytes = recorder.states[recorder.states.len() / 2].as_bytes();
        let (mut accepted, mut refused) = (0, 0);
        for at in 20..bytes.len() - 12 {
            let value = f64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
            for forgery in [1.5 * value, value + 1.0] {
                let state = forged(bytes, |b| b[at..at + 8].copy_from_slice(&forgery.to_le_bytes()));
                let resume = Some(State::from_bytes(state).unwrap());
                let mut rounds = 0;
                let mut few = |_: &Progress| {
                    rounds += 1;
                    if rounds < 5 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                };
                let settings = Settings { resume, ..settings.clone() };
                let Ok(solution) = solver.try_solve(problem, &settings, &mut few) else {
                    refused += 1;
                    continue;
                };
                accepted += 1;
                let report = solution.report;
                let context = format!("{solver:?} on {:?}: {forgery} at byte {at}", problem.formulation());
                if report.primal.is_finite() {
                    let primal = problem.objective(&solution.weights, &pool).unwrap();
                    let error = (report.primal - primal).abs();
                    assert!(
                        error <= 1e-9 * primal + report.primal_error,
                        "{context}: P {}, not {primal}",
                        report.primal
                    );
                }
                let claims = report.certificate == Certificate::Exact && !report.rests_on_state;
                let most = minimum.primal * (1.0 + 1e-9);
                assert!(!claims || report.dual <= most, "{context}: D {} above the minimum, {most}", report.dual);
            }
        }
        assert!(accepted > 0 && refused > 0, "{solver:?}: {accepted} accepted, {refused} refused");
    }
}

#[test]
fn reports_after_a_forged_state() {
    let mut draw = Draw(16);
    let (x, y) = separable(&mut draw, 8, 2, 3);
    let (views, task) = (x.views(), Multiclass::new(2, draw.costs(3)));
    for f in formulations(true).into_iter().filter(|f| f.penalty != Penalty::Hard) {
        reports_the_truth(&Typed::new(&task, &views, &y, None, Formulation { c: 4.0, ..f }).unwrap());
    }
}

#[test]
fn reports_of_chains_after_a_forged_state() {
    let mut draw = Draw(17);
    let (x, task) = (draw.matrix(8, 2), Bits::new(2, 2));
    let (views, y) = (x.views(), task.labels(&mut draw, 8));
    let f = formulation(1.0, Rescaling::Margin, Penalty::Linear);
    reports_the_truth(&Typed::new(&task, &views, &y, None, f).unwrap());
}

#[test]
fn damage_for_classes() {
    let mut draw = Draw(12);
    let (x, y) = separable(&mut draw, 8, 2, 3);
    let (views, task) = (x.views(), Multiclass::new(2, draw.costs(3)));
    for f in formulations(true) {
        let problem = |c| Typed::new(&task, &views, &y, None, Formulation { c, ..f }).unwrap();
        survives_damage(&problem(4.0), &problem(if f.rescaling == Rescaling::Slack { 4.0 } else { 20.0 }));
    }
}

#[test]
fn damage_for_chains() {
    let mut draw = Draw(13);
    let (x, task) = (draw.matrix(8, 2), Bits::new(2, 2));
    let (views, y) = (x.views(), task.labels(&mut draw, 8));
    let f = formulation(1.0, Rescaling::Margin, Penalty::Linear);
    let problem = |c| Typed::new(&task, &views, &y, None, Formulation { c, ..f }).unwrap();
    survives_damage(&problem(1.0), &problem(1.0));
    survives_damage(&problem(1.0), &problem(0.3));
}

#[test]
fn damage_for_label_sets() {
    let mut draw = Draw(15);
    let (x, task) = (draw.matrix(8, 3), sets_without_pairs(2));
    let (views, y) = (x.views(), draw.sets(8, 2));
    let f = formulation(1.0, Rescaling::Margin, Penalty::Linear);
    let problem = |c| Typed::new(&task, &views, &y, None, Formulation { c, ..f }).unwrap();
    survives_damage(&problem(4.0), &problem(4.0));
    survives_damage(&problem(4.0), &problem(1.0));
}
