//! The task of parse trees: its laws, its optimum by every solver, and its generative baseline.

mod common;

use common::{Any, bcfws, n_slack, to_relative_gap};
use maxmargin::data::input::Input;
use maxmargin::data::trees::{Extracted, Shape, Strip, Treebank, grammar, read};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Problem};
use maxmargin::solver::cutting_plane::CuttingPlane;
use maxmargin::solver::n_slack::Update;
use maxmargin::task::Task;
use maxmargin::tasks::parsing::{Parse, ParseLoss, ParseScratch, Parsing};
use maxmargin::testing::check_task;

/// The sentences of the treebank with at most so many words.
fn examples(longest: usize, shape: Shape, loss: ParseLoss) -> (Parsing, Vec<Vec<u32>>, Vec<Parse>) {
    let text = include_str!("../../../testdata/treebank/english.mrg");
    let bank: Treebank = read(Input::new("trees", text.as_bytes()).unwrap(), Strip::default()).unwrap();
    let Extracted { grammar, derivations, .. } = grammar(&bank, shape).unwrap();
    let task = Parsing::new(grammar, loss);
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for derivation in derivations.into_iter().flatten() {
        let nodes = task.grammar().nodes(&derivation).unwrap();
        let tags: Vec<u32> = nodes.iter().map(|node| node.0).filter(|s| task.grammar().tags().contains(s)).collect();
        if tags.len() <= longest {
            inputs.push(tags);
            outputs.push(task.parse(derivation).unwrap());
        }
    }
    (task, inputs, outputs)
}

#[test]
fn the_laws_of_a_task_hold() {
    for shape in [Shape::default(), Shape { parent_annotation: true, markov: Some(1), ..Shape::default() }] {
        for loss in [ParseLoss::Hamming, ParseLoss::ZeroOne] {
            let (task, inputs, outputs) = examples(7, shape, loss);
            let pairs: Vec<_> = inputs.iter().map(Vec::as_slice).zip(outputs).take(25).collect();
            check_task(&task, &pairs, 5).unwrap();
        }
    }
}

#[test]
fn forced_rules_have_no_features() {
    let (task, ..) = examples(usize::MAX, Shape::default(), ParseLoss::Hamming);
    let shown = |rule: u32| task.grammar().shown(rule, |_| String::new()).unwrap();
    let rules = 0..task.grammar().len() as u32;
    let (with, without): (Vec<u32>, Vec<u32>) = rules.partition(|&rule| task.feature(rule).is_some());
    assert_eq!(with.len(), task.dimension());
    // With all that is to come in its name, a symbol between has one rule.
    assert!(without.iter().all(|&rule| shown(rule).split(" -> ").next().unwrap().contains('|')));
    assert!(with.iter().all(|&rule| !shown(rule).split(" -> ").next().unwrap().contains('|')));
}

#[test]
fn solvers_agree() {
    for loss in [ParseLoss::Hamming, ParseLoss::ZeroOne] {
        agree(loss);
    }
}

fn agree(loss: ParseLoss) {
    let (task, inputs, outputs) = examples(6, Shape::default(), loss);
    let views: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
    let pool = Pool::new(2).unwrap();
    let n = views.len() as f64;
    let problem = Problem::new(&task, &views, &outputs, None, Formulation { c: n, ..Formulation::default() }).unwrap();
    let mut bounds = (f64::NEG_INFINITY, f64::INFINITY);
    let mut all = vec![Any::Cuts(CuttingPlane::default()), n_slack(Update::Batch(10))];
    all.extend(bcfws());
    for solver in &all {
        let solution = solver.solve(&problem, &to_relative_gap(1e-3), &mut ());
        let primal = problem.objective(&solution.weights, &pool).unwrap();
        let report = &solution.report;
        assert!((primal - report.primal).abs() <= 1e-9 * primal && report.gap <= 1e-3 * primal, "{report:?}");
        bounds = (bounds.0.max(report.dual), bounds.1.min(primal));
    }
    assert!(bounds.0 <= bounds.1 * (1.0 + 1e-9) && bounds.1 - bounds.0 <= 1e-3 * bounds.1, "{bounds:?}");
}

/// Brackets that are right of those that are told, and of those that there are.
fn f1(task: &Parsing, w: &maxmargin::weights::Weights, inputs: &[Vec<u32>], outputs: &[Parse]) -> f64 {
    let (mut scratch, mut y, mut right, mut all) = (ParseScratch::default(), Parse::default(), 0, 0);
    for (x, truth) in inputs.iter().zip(outputs) {
        task.argmax(w, x, None, &mut scratch, &mut y).unwrap();
        right += truth.brackets().iter().filter(|bracket| y.brackets().contains(bracket)).count();
        all += truth.brackets().len() + y.brackets().len();
    }
    2.0 * right as f64 / all as f64
}

#[test]
fn probabilities_sum_to_one_and_parse() {
    let (task, inputs, outputs) = examples(15, Shape::default(), ParseLoss::Hamming);
    let pairs: Vec<_> = inputs.iter().map(Vec::as_slice).zip(&outputs).collect();
    let w = task.generative(&mut pairs.iter().map(|&(x, y)| (x, y, 1.0))).unwrap();
    let mut sums = std::collections::HashMap::<String, f64>::new();
    for rule in 0..task.grammar().len() as u32 {
        let shown = task.grammar().shown(rule, |_| String::new()).unwrap();
        let p = task.feature(rule).map_or(1.0, |feature| w.as_slice()[feature as usize].exp());
        *sums.entry(shown.split("->").next().unwrap().to_owned()).or_default() += p;
    }
    assert!(sums.values().all(|sum| (sum - 1.0).abs() < 1e-12), "{sums:?}");
    let (half, rest) = (inputs.len() / 2, inputs.len() / 2..);
    assert!(f1(&task, &w, &inputs[..half], &outputs[..half]) > 0.8);
    assert!(f1(&task, &w, &inputs[rest.clone()], &outputs[rest]) > 0.8);
}

#[test]
fn foreign_outputs_are_refused() {
    let (task, inputs, outputs) = examples(6, Shape::default(), ParseLoss::Hamming);
    assert!(inputs.iter().zip(&outputs).all(|(x, y)| task.check(x, y).is_ok()));
    let refused = |x: &[u32], y: &Parse| task.check(x, y).unwrap_err();
    assert_eq!(refused(&[], &outputs[0]), "a sentence without words");
    assert_eq!(refused(&[0], &outputs[0]), "0 is no tag of the grammar");
    let long = refused(&inputs[0][..1].repeat(20_000), &outputs[0]);
    assert!(long.starts_with("a sentence of 20000 words takes ") && long.ends_with(" symbols; split it"), "{long}");
    assert_eq!(refused(&inputs[0], &Parse::default()), "its rules do not follow upon each other");
    let other = inputs.iter().position(|x| *x != inputs[0]).unwrap();
    assert_eq!(refused(&inputs[other], &outputs[0]), "its tree has other tags than the sentence");
}
