//! Solver x task x rescaling x penalty x threads: the same bits whatever the number of threads, bounds that never fall,
//! and reports that say what the weights do.

use crate::common;

use std::ops::ControlFlow;

use common::{
    Any, Bits, Draw, Typed, Unlisted, bcfws, bits_of, cuts, dual_coordinates, formulation, formulations,
    has_coordinates, n_slack, separable, to_relative_gap,
};
use maxmargin::inference::align::{Op, Path, Reach, Run};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Penalty, Problem, Rescaling};
use maxmargin::solver::cutting_plane::Placement;
use maxmargin::solver::n_slack::Update;
use maxmargin::solver::{Progress, Settings, Solution, Status};
use maxmargin::task::Task;
use maxmargin::tasks::alignment::{AlignLoss, AlignSettings, Aligned, Alignment, Gaps, Query, Sequence};
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::Multiclass;
use maxmargin::tasks::taxonomy::{Architecture, NodeLoss, Taxonomy};

const N: usize = 70;

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

/// The numbers of a progress or report, without the seconds, as bits.
fn bits(p: &Progress) -> Vec<u64> {
    let number = |x: Option<f64>| x.map_or(u64::MAX, f64::to_bits);
    let reals = [number(p.primal), number(p.dual), number(p.gap), p.target.to_bits(), p.passes.to_bits()];
    reals.into_iter().chain([p.round, p.oracle_calls, p.cache_hits, p.working_set as u64]).collect()
}

/// One run, with its stream checked on the way.
fn run(problem: &Problem<'_>, solver: &Any, threads: usize) -> (Vec<Vec<u64>>, Solution) {
    let is_hard = problem.formulation().penalty == Penalty::Hard;
    let stop = if is_hard { to_relative_gap(0.01) } else { solver.stop(0.005) };
    let settings = Settings { threads, max_passes: Some(3000.0), ..stop };
    let mut stream = Vec::new();
    let (mut last_dual, mut last_round, mut last_calls, mut least) = (f64::NEG_INFINITY, 0, 0, f64::INFINITY);
    let context = format!("{solver:?} on {:?}", problem.formulation());
    let mut watch = |p: &Progress| {
        let dual = p.dual.expect("a certified solver");
        assert!(dual >= last_dual, "{context}: the bound falls from {last_dual} to {dual}");
        assert_eq!(p.round, last_round + 1, "{context}: rounds are counted");
        assert!(p.oracle_calls >= last_calls, "{context}: calls are counted");
        assert_eq!(p.passes, p.oracle_calls as f64 / problem.len() as f64, "{context}");
        if let Some(primal) = p.primal {
            assert!(dual <= primal + 1e-9 * (1.0 + primal), "{context}: dual {dual} above primal {primal}");
            least = primal.min(least);
        }
        if let Some(gap) = p.gap {
            assert!((gap - (least - dual)).abs() <= 1e-9 * (1.0 + least), "{context}: gap {gap}, {least} - {dual}");
        }
        (last_dual, last_round, last_calls) = (dual, p.round, p.oracle_calls);
        stream.push(bits(p));
        ControlFlow::Continue(())
    };
    let solution = solver.solve(problem, &settings, &mut watch);
    let report = &solution.report;
    assert_eq!(report.status, Status::Converged, "{context}: {report:?}");
    assert_eq!(report.rounds, last_round, "{context}");
    assert!(report.gap <= report.target, "{context}: {report:?}");
    assert_eq!(report.gap, report.primal - report.dual, "{context}: the gap by definition");
    let primal = problem.objective(&solution.weights, &Pool::new(1).unwrap()).unwrap();
    let said = report.primal;
    assert!((primal - said).abs() <= 1e-9 * said.abs(), "{context}: reported {said}, computed {primal}");
    (stream, solution)
}

fn same_bits_for_all_threads<T: Task>(problem: &Typed<'_, T>) {
    for solver in solvers(problem) {
        let (stream, solution) = run(problem, &solver, 1);
        for threads in [2, 5] {
            let (other_stream, other) = run(problem, &solver, threads);
            let context = format!("{solver:?} on {:?}, {threads} threads", problem.formulation());
            assert!(stream == other_stream, "{context}: another course");
            assert!(bits_of(&solution) == bits_of(&other), "{context}: another result");
        }
    }
}

#[test]
fn binary() {
    let mut draw = Draw(1);
    let (x, y) = separable(&mut draw, N, 5, 2);
    let (task, views, c) = (Binary::new(5), x.views(), draw.example_weights(N));
    for f in formulations(true) {
        same_bits_for_all_threads(&Typed::new(&task, &views, &y, Some(&c), f).unwrap());
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
        same_bits_for_all_threads(&Typed::new(&task, &views, labels, None, f).unwrap());
    }
}

#[test]
fn taxonomies() {
    let mut draw = Draw(5);
    let hierarchy = common::taxonomy::hierarchy(&mut draw, 8, false);
    let classes = common::taxonomy::classes(&mut draw, &hierarchy, 5);
    let task = Taxonomy::new(6, hierarchy, classes, &Architecture::Taxonomy(1.0), NodeLoss::Tree).unwrap();
    let (x, y) = separable(&mut draw, N, 6, 5);
    let (views, y) = (x.views(), common::taxonomy::labels(&task, &y));
    for f in formulations(true) {
        let f = Formulation { c: 0.5, ..f };
        same_bits_for_all_threads(&Typed::new(&task, &views, &y, None, f).unwrap());
    }
}

#[test]
fn unlisted() {
    let mut draw = Draw(3);
    let (x, y) = separable(&mut draw, N, 4, 3);
    let (task, views) = (Unlisted(Multiclass::new(4, draw.costs(3))), x.views());
    for f in formulations(false) {
        same_bits_for_all_threads(&Typed::new(&task, &views, &y, None, f).unwrap());
    }
}

#[test]
fn alignments() {
    let mut draw = Draw(5);
    let settings = AlignSettings {
        letters: 3,
        marks: 0,
        reach: Reach::Local,
        gaps: Gaps::Affine,
        loss: AlignLoss::ZeroOne,
        gap_grid: Vec::new(),
    };
    let mut sequence = |length: usize| {
        let letters = (0..length).map(|_| draw.below(3) as u8).collect();
        Sequence { letters, marks: Vec::new() }
    };
    let path = Path { x: 0, z: 0, runs: vec![Run { op: Op::Match, count: 5 }] };
    let queries: Vec<Query> = (0..N)
        .map(|_| Query {
            x: sequence(6),
            candidates: vec![sequence(5), sequence(6), sequence(4)],
            given: Some(path.clone()),
        })
        .collect();
    let outputs = vec![Aligned { candidate: 0, residues: 11, path }; N];
    let (task, inputs) = (Alignment::new(settings), queries.iter().collect::<Vec<&Query>>());
    for f in formulations(true).into_iter().filter(|f| f.penalty != Penalty::Hard) {
        same_bits_for_all_threads(&Typed::new(&task, &inputs, &outputs, None, f).unwrap());
    }
}

#[test]
fn chains() {
    let mut draw = Draw(4);
    let (x, task) = (draw.matrix(N, 3), Bits::new(3, 3));
    let (views, y) = (x.views(), task.labels(&mut draw, N));
    let f = formulation(1.0, Rescaling::Margin, Penalty::Linear);
    same_bits_for_all_threads(&Typed::new(&task, &views, &y, None, f).unwrap());
}
