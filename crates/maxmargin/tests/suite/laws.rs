//! The laws of tasks and of the separation oracle, against exhaustive search on random small inputs.

use crate::common;

use common::{
    Bits, Draw, Exhaustive, PENALTIES, RESCALINGS, Typed, Unlisted, constraints, formulation, objective, psi, worst,
};
use maxmargin::Error;
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, OracleScratch, Output, Penalty, Problem, Rescaling};
use maxmargin::sparse::{SparseView, dot};
use maxmargin::task::LossTerm;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::{Costs, Multiclass};
use maxmargin::testing::check_task;
use maxmargin::weights::Weights;
use proptest::prelude::*;

/// All tables of costs that come ready-made, and a random one.
fn tables(draw: &mut Draw, classes: usize) -> Vec<Costs> {
    let values: Vec<f64> = (0..classes).map(|_| 3.0 * draw.signed()).collect();
    vec![Costs::zero_one(classes), Costs::absolute(&values), Costs::squared(&values), draw.costs(classes)]
}

/// The laws, and the argmax against all outputs.
fn obeys<T>(task: &T, inputs: &[SparseView<'_>], outputs: &[T::Output], draw: &mut Draw)
where
    T: Exhaustive + for<'a> maxmargin::task::Task<Input<'a> = SparseView<'a>>,
{
    let examples: Vec<_> = inputs.iter().copied().zip(outputs.iter().cloned()).collect();
    check_task(task, &examples, draw.next()).unwrap();
    let mut scratch = T::Scratch::default();
    let mut y = T::Output::default();
    for (x, truth) in &examples {
        let w = draw.weights(task.dimension(), 2.0);
        for lambda in [None, Some(0.0), Some(0.7), Some(3.0)] {
            let value = |y: &T::Output| {
                dot(&psi(task, *x, y), w.as_slice()) + lambda.map_or(0.0, |lambda| lambda * task.loss(truth, y))
            };
            let term = lambda.map(|weight| LossTerm { truth, weight });
            task.argmax(&w, *x, term, &mut scratch, &mut y).unwrap();
            let best = task.all().iter().map(value).fold(f64::NEG_INFINITY, f64::max);
            assert!((value(&y) - best).abs() <= 1e-9 * (1.0 + best.abs()), "{} is not {best}", value(&y));
        }
    }
}

/// The hard margin's v by exhaustive search: infinite where no multiple of w will do.
fn shortfall<T: Exhaustive>(problem: &Typed<'_, T>, w: &Weights) -> f64 {
    let all = (0..problem.len()).filter(|&i| problem.weight(i) > 0.0).flat_map(|i| constraints(problem, i));
    all.map(|c| {
        let left = dot(&c.lhs, w.as_slice());
        match c.rhs > 0.0 {
            true if left > 0.0 => 1.0 - left / c.rhs,
            true => f64::INFINITY,
            false if left < 0.0 => f64::INFINITY,
            false => 0.0,
        }
    })
    .fold(0.0, f64::max)
}

/// A problem of every formulation, with weights and a scaled loss.
fn each_formulation(mut check: impl FnMut(Formulation)) {
    for penalty in PENALTIES {
        for rescaling in RESCALINGS {
            for loss_scale in [1.0, 2.5] {
                check(Formulation { loss_scale, ..formulation(1.5, rescaling, penalty) });
            }
        }
    }
}

/// The oracle, the objective and the shortfall of a problem whose oracle is exact.
fn is_exact<T: Exhaustive>(problem: &Typed<'_, T>, draw: &mut Draw) {
    let pool = Pool::new(1).unwrap();
    let mut scratch = OracleScratch::default();
    for scale in [0.0, 0.3, 3.0] {
        let w = draw.weights(problem.dimension(), scale);
        for i in 0..problem.len() {
            let (h, best) = (problem.oracle(i, &w, &mut scratch).unwrap(), worst(problem, i, &w));
            assert!((h - best).abs() <= 1e-9 * (1.0 + best), "oracle {h}, best {best}");
            let of_y = problem.violation(i, &w, &scratch.y).unwrap();
            assert!((h - of_y).abs() <= 1e-9 * (1.0 + h), "oracle {h}, its output {of_y}");
            assert!(h > 0.0 || problem.is_truth(i, &scratch.y), "H = 0 belongs to the truth");
        }
        if problem.formulation().penalty == Penalty::Hard {
            let (v, best) = (problem.worst_shortfall(&w, &pool).unwrap(), shortfall(problem, &w));
            // Beyond 1 all shortfalls are alike: no multiple of w separates the data.
            let same = (v - best).abs() <= 1e-9 * (1.0 + best.abs()) || (v >= 1.0 && best >= 1.0);
            assert!(same, "shortfall {v}, best {best}");
        } else {
            let (p, best) = (problem.objective(&w, &pool).unwrap(), objective(problem, &w));
            assert!((p - best).abs() <= 1e-9 * (1.0 + best), "objective {p}, by hand {best}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn binary_obeys(seed: u64, n in 1_usize..8, d in 1_u32..6) {
        let mut draw = Draw(seed);
        let (x, y) = (draw.matrix(n, d), draw.labels(n, 2));
        let (task, views, c) = (Binary::new(d), x.views(), draw.example_weights(n));
        obeys(&task, &views, &y, &mut draw);
        each_formulation(|f| is_exact(&Typed::new(&task, &views, &y, Some(&c), f).unwrap(), &mut draw));
    }

    #[test]
    fn multiclass_obeys(seed: u64, n in 1_usize..6, d in 1_u32..5, classes in 1_usize..6) {
        let mut draw = Draw(seed);
        let (x, y) = (draw.matrix(n, d), draw.labels(n, classes as u32));
        let (views, c) = (x.views(), draw.example_weights(n));
        for costs in tables(&mut draw, classes) {
            let task = Multiclass::new(d, costs);
            obeys(&task, &views, &y, &mut draw);
            each_formulation(|f| is_exact(&Typed::new(&task, &views, &y, Some(&c), f).unwrap(), &mut draw));
        }
    }

    #[test]
    fn taxonomies_obey(seed: u64, n in 1_usize..5, d in 1_u32..5, nodes in 2_usize..9, is_tree: bool) {
        let mut draw = Draw(seed);
        let x = draw.matrix(n, d);
        let (views, c) = (x.views(), draw.example_weights(n));
        for task in common::taxonomy::tasks(&mut draw, d, nodes, is_tree) {
            let y = draw.labels(n, task.classes().len() as u32);
            let y = common::taxonomy::labels(&task, &y);
            obeys(&task, &views, &y, &mut draw);
            each_formulation(|f| is_exact(&Typed::new(&task, &views, &y, Some(&c), f).unwrap(), &mut draw));
        }
    }

    /// Tasks that do not list their outputs: margin rescaling is exact, the shortfall by Dinkelbach included; slack
    /// rescaling by search is never below the truth and never above the best.
    #[test]
    fn unlisted_tasks_obey(seed: u64, n in 1_usize..6, d in 1_u32..5, size in 2_usize..5) {
        let mut draw = Draw(seed);
        let x = draw.matrix(n, d);
        let (views, c) = (x.views(), draw.example_weights(n));
        let bits = Bits::new(d, size);
        let y = bits.labels(&mut draw, n);
        obeys(&bits, &views, &y, &mut draw);
        each_formulation(|f| unlisted_is_sound(&bits, &views, &y, &c, f, &mut draw));
        let task = Unlisted(Multiclass::new(d, draw.costs(size)));
        let y = draw.labels(n, size as u32);
        obeys(&task, &views, &y, &mut draw);
        each_formulation(|f| unlisted_is_sound(&task, &views, &y, &c, f, &mut draw));
    }

    /// The same task with and without its list has the same H, line by line.
    #[test]
    fn the_list_changes_nothing(seed: u64, n in 1_usize..6, d in 1_u32..5, classes in 2_usize..6) {
        let mut draw = Draw(seed);
        let (x, y, costs) = (draw.matrix(n, d), draw.labels(n, classes as u32), draw.costs(classes));
        let views = x.views();
        let (listed, unlisted) = (Multiclass::new(d, costs.clone()), Unlisted(Multiclass::new(d, costs)));
        let outputs: Vec<Output> = (0..classes as u32).map(Output::new).collect();
        for rescaling in RESCALINGS {
            let f = formulation(1.0, rescaling, Penalty::Linear);
            let with = Problem::new(&listed, &views, &y, None, f).unwrap();
            let without = Problem::new(&unlisted, &views, &y, None, f).unwrap();
            let w = draw.weights(listed.costs().classes() * d as usize, 1.0);
            let (mut a, mut b) = (vec![0.0; classes], vec![0.0; classes]);
            for i in 0..n {
                with.violations_of(i, &w, &outputs, &mut OracleScratch::default(), &mut a).unwrap();
                without.violations_of(i, &w, &outputs, &mut OracleScratch::default(), &mut b).unwrap();
                for k in 0..classes {
                    prop_assert!((a[k] - b[k]).abs() < 1e-9);
                    prop_assert!((a[k] - with.violation(i, &w, &outputs[k]).unwrap()).abs() < 1e-9);
                }
            }
        }
    }
}

fn unlisted_is_sound<T>(task: &T, views: &[SparseView<'_>], y: &[T::Output], c: &[f64], f: Formulation, draw: &mut Draw)
where
    T: Exhaustive + for<'a> maxmargin::task::Task<Input<'a> = SparseView<'a>>,
{
    let problem = Typed::new(task, views, y, Some(c), f);
    if f.rescaling == Rescaling::Margin && f.penalty == Penalty::Quadratic {
        let error = problem.err().expect("needs argmax score + sqrt(loss)");
        assert!(matches!(error, Error::Setting { name: "penalty", .. }), "{error}");
        return;
    }
    let problem = problem.unwrap();
    if f.rescaling == Rescaling::Margin {
        assert!(problem.oracle_is_exact());
        is_exact(&problem, draw);
        return;
    }
    assert!(!problem.oracle_is_exact());
    let pool = Pool::new(1).unwrap();
    let mut scratch = OracleScratch::default();
    for scale in [0.0, 0.3, 3.0] {
        let w = draw.weights(problem.dimension(), scale);
        for i in 0..problem.len() {
            let (h, best) = (problem.oracle(i, &w, &mut scratch).unwrap(), worst(&problem, i, &w));
            assert!(h >= 0.0 && h <= best + 1e-9 * (1.0 + best), "search {h}, best {best}");
            let of_y = problem.violation(i, &w, &scratch.y).unwrap();
            assert!((h - of_y).abs() <= 1e-9 * (1.0 + h), "search {h}, its output {of_y}");
            assert!(h > 0.0 || problem.is_truth(i, &scratch.y), "H = 0 belongs to the truth");
            // At w = 0 the most loss wins, which the search must see.
            assert!(scale > 0.0 || (h - best).abs() <= 1e-9, "search {h} at w = 0, best {best}");
        }
        let (v, best) = (problem.worst_shortfall(&w, &pool).unwrap(), shortfall(&problem, &w));
        assert!(f.penalty != Penalty::Hard || v <= best + 1e-9, "shortfall {v}, best {best}");
    }
}
