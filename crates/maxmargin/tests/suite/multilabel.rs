//! Label sets: the laws of a task, every oracle against exhaustive search, and what is refused.

use crate::common;

use std::ops::ControlFlow;

use common::{Any, Draw, PENALTIES, RESCALINGS, bits_of, formulation, psi, to_relative_gap};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, OracleScratch, Output, Penalty, Problem, Rescaling};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::dual_coordinate::{DualCoordinate, Finish};
use maxmargin::solver::{Observer, Progress, Settings, Snapshot, Solution, State, Status};
use maxmargin::sparse::{SparseMatrix, dot};
use maxmargin::task::{LossTerm, Task};
use maxmargin::tasks::multilabel::{Multilabel, Pairs, SetLoss, SetScratch};
use maxmargin::testing::check_task;
use maxmargin::weights::Weights;
use proptest::prelude::*;

const FEATURES: u32 = 3;

fn all_sets(labels: u32) -> Vec<Vec<u32>> {
    (0..1_u32 << labels).map(|bits| (0..labels).filter(|k| bits >> k & 1 == 1).collect()).collect()
}

fn some_pairs(draw: &mut Draw, labels: u32, keep: usize) -> Pairs {
    let every = (0..labels).flat_map(|a| (a + 1..labels).map(move |b| (a, b)));
    Pairs::listed(labels, every.filter(|_| draw.below(3) < keep).collect()).unwrap()
}

/// Pairs of every kind, the exact ones first.
fn kinds(draw: &mut Draw, labels: u32) -> Vec<Pairs> {
    let tree = Pairs::tree(labels, &draw.sets(8, labels));
    vec![Pairs::none(labels), tree, some_pairs(draw, labels, 2), Pairs::all(labels).unwrap()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_argmax_is_the_best_of_all_sets(seed: u64, labels in 1_u32..7) {
        let mut draw = Draw(seed);
        let x = draw.matrix(3, FEATURES);
        let truths = draw.sets(3, labels);
        for pairs in kinds(&mut draw, labels) {
            for loss in [SetLoss::Hamming, SetLoss::F1] {
                let Ok(task) = Multilabel::new(FEATURES, labels, pairs.clone(), loss) else {
                    prop_assert!(loss == SetLoss::F1 && !pairs.is_forest());
                    continue;
                };
                let (mut scratch, mut y) = (SetScratch::default(), Vec::new());
                for (x, truth) in x.views().into_iter().zip(&truths) {
                    let w = draw.weights(task.dimension(), 2.0);
                    for lambda in [None, Some(0.0), Some(0.7), Some(3.0)] {
                        let value = |y: &Vec<u32>| {
                            dot(&psi(&task, x, y), w.as_slice()) + lambda.map_or(0.0, |l| l * task.loss(truth, y))
                        };
                        let best = all_sets(labels).iter().map(value).fold(f64::NEG_INFINITY, f64::max);
                        let term = lambda.map(|weight| LossTerm { truth, weight });
                        task.argmax(&w, x, term, &mut scratch, &mut y).unwrap();
                        let found = value(&y);
                        prop_assert!(found <= best + 1e-9);
                        if task.argmax_is_exact(x) {
                            prop_assert!((found - best).abs() <= 1e-9, "{found} is not {best}");
                        } else {
                            let bound = task.bound(&scratch).unwrap();
                            prop_assert!(bound >= best - 1e-9, "bound {bound} below {best}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn counting_is_exact_for_every_rescaling_and_penalty(seed: u64, labels in 1_u32..6) {
        let mut draw = Draw(seed);
        let x = draw.matrix(2, FEATURES);
        let (inputs, truths) = (x.views(), draw.sets(2, labels));
        let tree = Pairs::tree(labels, &draw.sets(8, labels));
        for pairs in [Pairs::none(labels), tree] {
            for loss in [SetLoss::Hamming, SetLoss::F1] {
                let task = Multilabel::new(FEATURES, labels, pairs.clone(), loss).unwrap();
                for (penalty, rescaling) in PENALTIES.iter().flat_map(|&p| RESCALINGS.map(|r| (p, r))) {
                    let problem = Problem::new(&task, &inputs, &truths, None, formulation(1.5, rescaling, penalty)).unwrap();
                    prop_assert!(problem.oracle_is_exact());
                    let w = draw.weights(task.dimension(), 1.0);
                    let mut scratch = OracleScratch::default();
                    for i in 0..problem.len() {
                        let h = problem.oracle(i, &w, &mut scratch).unwrap();
                        let violation = |y: Vec<u32>| problem.violation(i, &w, &Output::new(y)).unwrap();
                        let best = all_sets(labels).into_iter().map(violation).fold(0.0, f64::max);
                        prop_assert!((h - best).abs() <= 1e-9, "{h} is not {best}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_laws_of_a_task_hold(seed: u64, labels in 1_u32..6) {
        let mut draw = Draw(seed);
        let x = draw.matrix(4, FEATURES);
        let examples: Vec<_> = x.views().into_iter().zip(draw.sets(4, labels)).collect();
        for pairs in kinds(&mut draw, labels).into_iter().filter(Pairs::is_forest) {
            for loss in [SetLoss::Hamming, SetLoss::F1] {
                let task = Multilabel::new(FEATURES, labels, pairs.clone(), loss).unwrap();
                check_task(&task, &examples, seed).unwrap();
            }
        }
    }

    #[test]
    fn label_by_label_is_the_same_problem(seed: u64, labels in 1_u32..6, c in 0.1_f64..300.0) {
        let mut draw = Draw(seed);
        let (x, y) = (draw.matrix(12, FEATURES), draw.sets(12, labels));
        let (inputs, mut weights) = (x.views(), draw.example_weights(12));
        weights[draw.below(12)] = 0.0;
        let task = Multilabel::new(FEATURES, labels, Pairs::none(labels), SetLoss::Hamming).unwrap();
        let formulation = Formulation { loss_scale: 1.5, ..formulation(c, Rescaling::Margin, Penalty::Linear) };
        let problem = Problem::new(&task, &inputs, &y, Some(&weights), formulation).unwrap();
        let [apart, whole] = [Any::Coordinates(DualCoordinate::default()), Any::Bcfw(Bcfw::default())]
            .map(|solver| solver.solve(&problem, &to_relative_gap(1e-4), &mut ()));
        for Solution { report, weights, .. } in [&apart, &whole] {
            prop_assert_eq!(report.status, Status::Converged);
            let primal = problem.objective(weights, &Pool::new(1).unwrap()).unwrap();
            prop_assert!((primal - report.primal).abs() <= 1e-9 * primal, "{primal} is not {}", report.primal);
            prop_assert!(report.gap <= 1e-4 * primal);
        }
        prop_assert!(apart.report.dual <= whole.report.primal * (1.0 + 1e-9));
        prop_assert!(whole.report.dual <= apart.report.primal * (1.0 + 1e-9));
        let more = Settings { threads: 3, ..to_relative_gap(1e-4) };
        let again = Any::Coordinates(DualCoordinate::default()).solve(&problem, &more, &mut ());
        prop_assert_eq!(bits_of(&apart), bits_of(&again));
    }

    #[test]
    fn a_threshold_asks_more_of_every_label(seed: u64, labels in 1_u32..7) {
        let mut draw = Draw(seed);
        let x = draw.matrix(1, FEATURES);
        for pairs in kinds(&mut draw, labels) {
            let task = Multilabel::new(FEATURES, labels, pairs, SetLoss::Hamming).unwrap();
            let w = draw.weights(task.dimension(), 2.0);
            let (mut scratch, mut y, mut gains) = (SetScratch::default(), Vec::new(), Vec::new());
            let (mut plain, row) = (Vec::new(), x.row(0));
            task.argmax(&w, row, None, &mut scratch, &mut plain).unwrap();
            task.predict(&w, row, 0.0, &mut scratch, &mut y, &mut gains);
            prop_assert_eq!(&plain, &y);
            let score = |y: &Vec<u32>| task.score(&w, row, y).unwrap();
            prop_assert_eq!(gains.len(), labels as usize);
            for (label, gain) in (0..).zip(&gains) {
                let without: Vec<u32> = y.iter().copied().filter(|&other| other != label).collect();
                let mut with = [without.as_slice(), &[label]].concat();
                with.sort_unstable();
                prop_assert!((score(&with) - score(&without) - gain).abs() <= 1e-9);
            }
            task.predict(&w, row, 1e6, &mut scratch, &mut y, &mut gains);
            prop_assert!(y.is_empty());
            task.predict(&w, row, -1e6, &mut scratch, &mut y, &mut gains);
            prop_assert_eq!(y.len(), labels as usize);
        }
    }
}

#[test]
fn what_cannot_be_done_is_refused_in_words() {
    let all = Pairs::all(4).unwrap();
    let refused = Multilabel::new(FEATURES, 4, all.clone(), SetLoss::F1).unwrap_err().to_string();
    assert!(refused.contains("--pairs none or tree"), "{refused}");
    assert!(Pairs::all(100_000).unwrap_err().to_string().contains("too many"));
    let task = Multilabel::new(FEATURES, 4, all, SetLoss::Hamming).unwrap();
    let mut draw = Draw(1);
    let x = draw.matrix(1, FEATURES);
    let inputs = x.views();
    for bad in [vec![4], vec![2, 1], vec![1, 1]] {
        let formulation = formulation(1.0, Rescaling::Margin, Penalty::Linear);
        assert!(Problem::new(&task, &inputs, std::slice::from_ref(&bad), None, formulation).is_err(), "{bad:?}");
    }
}

#[test]
fn ten_thousand_labels_and_empty_sets() {
    let labels = 10_000;
    let mut draw = Draw(3);
    let x = draw.matrix(2, FEATURES);
    for loss in [SetLoss::Hamming, SetLoss::F1] {
        let task = Multilabel::new(FEATURES, labels, Pairs::none(labels), loss).unwrap();
        let (w, truth) = (Weights::zeros(task.dimension()), Vec::new());
        let (mut scratch, mut y) = (SetScratch::default(), vec![1]);
        task.argmax(&w, x.row(0), None, &mut scratch, &mut y).unwrap();
        assert!(y.is_empty());
        task.argmax(&w, x.row(0), Some(LossTerm { truth: &truth, weight: 1.0 }), &mut scratch, &mut y).unwrap();
        assert!((task.loss(&truth, &y) - task.max_loss(&truth)).abs() < 1e-12);
    }
}

/// Noisy sets of 6 labels over 20 features, with so large a C that label by label begins at a small one.
fn label_by_label(draw: &mut Draw) -> (SparseMatrix, Vec<Vec<u32>>, Multilabel, Formulation) {
    let task = Multilabel::new(20, 6, Pairs::none(6), SetLoss::Hamming).unwrap();
    (draw.matrix(300, 20), draw.sets(300, 6), task, formulation(3000.0, Rescaling::Margin, Penalty::Linear))
}

/// Keeps the last state, and what it is called.
#[derive(Default)]
struct Last(Option<(State, u64, u64)>);

impl Observer for Last {
    fn on_iteration(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn on_state(&mut self, progress: &Progress, snapshot: &dyn Snapshot, _: Option<Status>) -> ControlFlow<()> {
        self.0 = Some((snapshot.save().unwrap(), snapshot.rounds(), progress.round));
        ControlFlow::Continue(())
    }
}

/// A limit of passes cuts a round short, and shows neither in the bits of a run that goes on with a larger one nor in what is
/// proven.
#[test]
fn label_by_label_heeds_the_limit_of_passes() {
    let (x, y, task, f) = label_by_label(&mut Draw(4));
    let views = x.views();
    let problem = Problem::new(&task, &views, &y, None, f).unwrap();
    for finish in [Finish::Coordinates, Finish::Newton] {
        let solver = Any::Coordinates(DualCoordinate { finish });
        let tight = to_relative_gap(1e-6);
        let whole = solver.solve(&problem, &tight, &mut ());
        assert!(whole.report.passes > 40.0, "{:?}", whole.report);
        let mut cut = 0;
        for passes in [0.5, 1.0, 2.0, 3.0, 5.5, 12.0, 30.0] {
            let limited = Settings { max_passes: Some(passes), keep_state: true, ..tight.clone() };
            let mut last = Last::default();
            let solution = solver.solve(&problem, &limited, &mut last);
            let report = &solution.report;
            assert_eq!(report.status, Status::MaxPasses, "{report:?}");
            assert!(report.passes <= passes + 2.0, "{passes} passes: {report:?}");
            assert_eq!(report.passes, report.oracle_calls as f64 / 300.0);
            assert!(report.dual <= whole.report.primal * (1.0 + 1e-12), "{report:?}");
            let primal = problem.objective(&solution.weights, &Pool::new(1).unwrap()).unwrap();
            assert!((primal - report.primal).abs() <= 1e-9 * primal, "{primal} is not that of {report:?}");
            let more = Settings { threads: 3, ..limited.clone() };
            assert_eq!(bits_of(&solution), bits_of(&solver.solve(&problem, &more, &mut ())));
            let (state, behind, round) = last.0.unwrap();
            cut += u32::from(behind < round);
            let again = Settings { resume: Some(state.clone()), ..limited.clone() };
            assert_eq!(bits_of(&solution), bits_of(&solver.solve(&problem, &again, &mut ())), "{passes} passes");
            let on = Settings { resume: Some(state), ..tight.clone() };
            assert_eq!(bits_of(&whole), bits_of(&solver.solve(&problem, &on, &mut ())), "after {passes} passes");
            // The start of another C has all that was done.
            let next = problem.with_c(2.0 * f.c);
            let on = Settings { resume: solution.state, ..tight.clone() };
            assert_eq!(solver.solve(&next, &on, &mut ()).report.status, Status::Converged);
        }
        assert!(cut > 3, "{cut} rounds only were cut short");
    }
}

/// A path whose first round at a new C is cut short, and which is saved there.
#[test]
fn label_by_label_is_cut_short_at_another_c() {
    let (x, y, task, f) = label_by_label(&mut Draw(5));
    let views = x.views();
    let problem = Problem::new(&task, &views, &y, None, f).unwrap();
    let solver = Any::Coordinates(DualCoordinate { finish: Finish::Coordinates });
    let tight = to_relative_gap(1e-5);
    let first = solver.solve(&problem, &Settings { keep_state: true, ..tight.clone() }, &mut ());
    for c in [10.0 * f.c, 0.1 * f.c] {
        let (next, tight) = (problem.with_c(c), Settings { resume: first.state.clone(), ..tight.clone() });
        let whole = solver.solve(&next, &tight, &mut ());
        let mut last = Last::default();
        let cut = solver.solve(&next, &Settings { max_passes: Some(2.5), ..tight.clone() }, &mut last);
        assert_eq!(cut.report.status, Status::MaxPasses, "{:?}", cut.report);
        let (state, behind, _) = last.0.unwrap();
        assert_eq!(behind, 0);
        let on = Settings { resume: Some(state.clone()), ..tight.clone() };
        assert_eq!(bits_of(&whole)[1..4], bits_of(&solver.solve(&next, &on, &mut ()))[1..4], "C = {c}");
        // Back to the first C, with two changes of it behind the variables.
        let back = Settings { resume: Some(state), ..tight };
        assert_eq!(solver.solve(&problem, &back, &mut ()).report.status, Status::Converged);
    }
}

/// Weights to begin with save passes where they are good, and change nothing of what is true where they are not.
#[test]
fn label_by_label_begins_at_weights() {
    let (x, y, task, f) = label_by_label(&mut Draw(6));
    let views = x.views();
    let problem = Problem::new(&task, &views, &y, None, f).unwrap();
    let solver = Any::Coordinates(DualCoordinate { finish: Finish::Coordinates });
    let optimum = solver.solve(&problem, &to_relative_gap(1e-6), &mut ());
    let settings = to_relative_gap(1e-2);
    let cold = solver.solve(&problem, &settings, &mut ());
    let from = |start: &Weights| {
        let warm = Settings { warm_start: Some(start.clone()), ..settings.clone() };
        let solution = solver.solve(&problem, &warm, &mut ());
        let report = &solution.report;
        assert_eq!(report.status, Status::Converged, "{report:?}");
        assert!(report.dual <= optimum.report.primal * (1.0 + 1e-12), "{report:?}");
        let primal = problem.objective(&solution.weights, &Pool::new(1).unwrap()).unwrap();
        assert!((primal - report.primal).abs() <= 1e-9 * primal, "{primal} is not that of {report:?}");
        assert_eq!(bits_of(&solution), bits_of(&solver.solve(&problem, &Settings { threads: 2, ..warm }, &mut ())));
        solution.report.passes
    };
    let (warm, all) = (from(&optimum.weights), cold.report.passes);
    assert!(warm < 0.5 * all, "{warm} passes from the optimum, {all} from nothing");
    for scale in [0.0, 1.0, 1e6] {
        from(&Draw(7).weights(task.dimension(), scale));
    }
}
