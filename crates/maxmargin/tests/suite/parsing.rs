//! The task of parse trees: its laws, its optimum by every solver, and its generative baseline.

use crate::common;

use common::{Any, Draw, bcfws, n_slack, to_relative_gap};
use maxmargin::data::input::Input;
use maxmargin::data::trees::{Binarise, Extracted, Reading, Shape, Strip, Terminals, Treebank, grammar, read};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, OracleScratch, Penalty, Problem, Rescaling};
use maxmargin::solver::Certificate;
use maxmargin::solver::cutting_plane::CuttingPlane;
use maxmargin::solver::n_slack::Update;
use maxmargin::task::{LossTerm, Task};
use maxmargin::tasks::parsing::{
    Decoded, Parse, ParseFeatures, ParseLoss, ParseScratch, ParseSettings, Parsing, UNKNOWN,
};
use maxmargin::testing::check_task;
use maxmargin::weights::Weights;

/// The sentences of the treebank with at most so many words.
fn examples(longest: usize, shape: Shape, settings: ParseSettings) -> (Parsing, Vec<Vec<u32>>, Vec<Parse>) {
    let text = include_str!("../../../../testdata/treebank/english.mrg");
    let bank: Treebank = read(Input::new("trees", text.as_bytes()).unwrap(), Strip::default()).unwrap();
    let Extracted { grammar, derivations, lexicon } = grammar(&bank, shape).unwrap();
    let task = Parsing::new(grammar, settings).unwrap();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    let reading = Reading::new(task.grammar(), lexicon.as_ref());
    for (tree, derivation) in bank.trees.iter().zip(derivations).filter(|(tree, _)| tree.words().len() <= longest) {
        inputs.push(reading.terminals(&bank.labels, &bank.words, tree));
        outputs.push(task.parse(derivation.unwrap()).unwrap());
    }
    (task, inputs, outputs)
}

const RULES: ParseSettings =
    ParseSettings { loss: ParseLoss::Hamming, features: ParseFeatures::Rules, max_span: None, exact_words: 40 };
const SETTINGS: [ParseSettings; 5] = [
    RULES,
    ParseSettings { loss: ParseLoss::ZeroOne, ..RULES },
    ParseSettings { loss: ParseLoss::F1, ..RULES },
    ParseSettings { features: ParseFeatures::Spans, ..RULES },
    ParseSettings { loss: ParseLoss::F1, features: ParseFeatures::Spans, max_span: Some(3), ..RULES },
];

#[test]
fn the_laws_of_a_task_hold() {
    let annotated = Shape { parent_annotation: true, markov: Some(1), ..Shape::default() };
    let head = Shape { binarise: Binarise::Head, markov: Some(1), ..Shape::default() };
    let words = Shape { terminals: Terminals::Words { rare_below: 2 }, ..Shape::default() };
    for shape in [Shape::default(), annotated, head, words] {
        for settings in SETTINGS {
            let (task, inputs, outputs) = examples(7, shape, settings);
            // With short spans only, some truths are no outputs.
            let most = settings.max_span.map_or(usize::MAX, |most| most as usize);
            let is_output = |x: &[u32], y: &Parse| {
                let nodes = task.grammar().nodes(y.derivation()).unwrap();
                nodes.iter().all(|(_, span)| span.start == 0 || span.end == x.len() || span.len() <= most)
            };
            let pairs = inputs.iter().map(Vec::as_slice).zip(outputs).filter(|(x, y)| is_output(x, y));
            let pairs: Vec<_> = pairs.take(25).collect();
            assert_eq!(pairs.len(), 25);
            check_task(&task, &pairs, 5).unwrap();
        }
    }
}

#[test]
fn forced_rules_have_no_features() {
    let (task, ..) = examples(usize::MAX, Shape::default(), RULES);
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
    let formulation = Formulation::default();
    SETTINGS[..4].iter().for_each(|&settings| agree(settings, formulation));
    let slack = Formulation { rescaling: Rescaling::Slack, ..formulation };
    SETTINGS[..3].iter().for_each(|&settings| agree(settings, slack));
    agree(SETTINGS[2], Formulation { penalty: Penalty::Quadratic, ..formulation });
}

fn agree(settings: ParseSettings, formulation: Formulation) {
    let (task, inputs, outputs) = examples(6, Shape::default(), settings);
    let views: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
    let pool = Pool::new(2).unwrap();
    let n = views.len() as f64;
    let problem = Problem::new(&task, &views, &outputs, None, Formulation { c: n, ..formulation }).unwrap();
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
fn f1(task: &Parsing, w: &Weights, inputs: &[Vec<u32>], outputs: &[Parse]) -> f64 {
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
    let (task, inputs, outputs) = examples(15, Shape::default(), RULES);
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
    let (task, inputs, outputs) = examples(6, Shape::default(), RULES);
    assert!(inputs.iter().zip(&outputs).all(|(x, y)| task.check(x, y).is_ok()));
    let refused = |x: &[u32], y: &Parse| task.check(x, y).unwrap_err();
    assert_eq!(refused(&[], &outputs[0]), "a sentence without words");
    assert_eq!(refused(&[0], &outputs[0]), "0 is no terminal of the grammar");
    let long = refused(&inputs[0][..1].repeat(20_000), &outputs[0]);
    assert!(long.starts_with("a sentence of 20000 words takes ") && long.ends_with("(--max-span)"), "{long}");
    assert_eq!(refused(&inputs[0], &Parse::default()), "its rules do not follow upon each other");
    let other = inputs.iter().position(|x| *x != inputs[0]).unwrap();
    assert_eq!(refused(&inputs[other], &outputs[0]), "its tree has other terminals than the sentence");
}

/// All trees of a sentence.
fn all_trees(task: &Parsing, x: &[u32]) -> Vec<Parse> {
    let (mut scratch, w) = (ParseScratch::default(), Weights::zeros(task.dimension()));
    let all = task.n_best(&w, x, 100_000, &mut scratch);
    let of_nodes = |nodes: &[(u32, std::ops::Range<usize>)]| {
        let phrases = nodes.iter().filter(|(symbol, _)| *symbol < task.grammar().phrases());
        let mut brackets: Vec<_> = phrases.map(|(s, span)| (*s, span.start as u32, span.end as u32)).collect();
        brackets.sort_unstable();
        brackets
    };
    // Each is the only tree that is nearest to its own brackets, or one of those with the same ones.
    all.iter().map(|tree| task.nearest(x, &of_nodes(&tree.nodes)).unwrap()).collect()
}

#[test]
fn losses_that_do_not_add_up_have_an_exact_argmax() {
    let mut draw = Draw(5);
    let losses = [ParseLoss::F1, ParseLoss::Hamming, ParseLoss::ZeroOne];
    for settings in losses.map(|loss| ParseSettings { loss, features: ParseFeatures::Spans, ..RULES }) {
        let (task, inputs, outputs) = examples(7, Shape::default(), settings);
        let (mut scratch, mut y, mut searched) = (ParseScratch::default(), Parse::default(), 0);
        for (x, truth) in inputs.iter().zip(&outputs).step_by(4) {
            let trees = all_trees(&task, x);
            for _ in 0..10 {
                let size = [0.05, 0.3, 2.0][draw.below(3)];
                let w = Weights::from((0..task.dimension()).map(|_| size * draw.signed()).collect::<Vec<f64>>());
                let (score, loss) = (|y: &Parse| task.score(&w, x, y).unwrap(), |y: &Parse| task.loss(truth, y));
                let at_truth = score(truth);
                let weight = 2.0 * draw.unit();
                let margin = |loss: f64, score: f64| score + weight * loss;
                let slack = |loss: f64, score: f64| weight * loss * (1.0 + score - at_truth);
                let root = |loss: f64, score: f64| weight * loss.sqrt() + score - at_truth;
                let both = |loss: f64, score: f64| weight * loss.sqrt() * (1.0 + score - at_truth);
                let values: [&dyn Fn(f64, f64) -> f64; 4] = [&margin, &slack, &root, &both];
                for value in values {
                    let best = trees.iter().map(|y| value(loss(y), score(y))).fold(f64::NEG_INFINITY, f64::max);
                    let at_least = value(0.0, at_truth);
                    task.counted().unwrap().argmax_of(&w, x, truth, value, &mut scratch, &mut y).unwrap();
                    let found = value(loss(&y), score(&y));
                    assert!((found - best.max(at_least)).abs() < 1e-9, "{found} {best} {at_least} {settings:?} {x:?}");
                    searched += usize::from(best > at_least);
                }
                let best = trees.iter().map(|y| margin(loss(y), score(y))).fold(f64::NEG_INFINITY, f64::max);
                let term = LossTerm { truth, weight };
                task.argmax(&w, x, Some(term), &mut scratch, &mut y).unwrap();
                assert!((margin(loss(&y), score(&y)) - best).abs() < 1e-9, "{settings:?} {x:?}");
            }
        }
        assert!(searched > 100, "{searched}");
    }
}

#[test]
fn long_sentences_are_searched_and_said_to_be() {
    let settings = ParseSettings { loss: ParseLoss::F1, exact_words: 4, ..RULES };
    let (task, inputs, outputs) = examples(7, Shape::default(), settings);
    let views: Vec<&[u32]> = inputs.iter().map(Vec::as_slice).collect();
    let problem = Problem::new(&task, &views, &outputs, None, Formulation::default()).unwrap();
    let long = views.iter().filter(|x| x.len() > 4).count();
    assert!(long > 5 && long < views.len());
    assert_eq!((problem.searched(), problem.oracle_is_exact()), (long, false));
    let solution = Any::Cuts(CuttingPlane::default()).solve(&problem, &to_relative_gap(0.1), &mut ());
    assert_eq!(solution.report.certificate, Certificate::Estimate);
    // What the search finds is never more than the maximum, and never less than the truth.
    let exact_task = Parsing::new(task.grammar().clone(), ParseSettings { exact_words: 40, ..settings }).unwrap();
    let exact = Problem::new(&exact_task, &views, &outputs, None, Formulation::default()).unwrap();
    let (mut a, mut b) = (OracleScratch::default(), OracleScratch::default());
    for (i, x) in views.iter().enumerate() {
        let found = problem.oracle(i, &solution.weights, &mut a).unwrap();
        let best = exact.oracle(i, &solution.weights, &mut b).unwrap();
        assert!(found >= 0.0 && found <= best + 1e-9 && (x.len() > 4 || (found - best).abs() < 1e-9));
    }
    // The true objective is between what the search says and its bound, for every formulation.
    let pool = Pool::new(2).unwrap();
    for rescaling in [Rescaling::Margin, Rescaling::Slack] {
        for penalty in [Penalty::Linear, Penalty::Quadratic] {
            let f = Formulation { c: 5.0, rescaling, penalty, ..Formulation::default() };
            let searched = Problem::new(&task, &views, &outputs, None, f).unwrap();
            let exact = Problem::new(&exact_task, &views, &outputs, None, f).unwrap();
            let mut draw = Draw(3);
            for size in [0.0, 0.02, 0.1, 1.0] {
                let w = Weights::from((0..task.dimension()).map(|_| size * draw.signed()).collect::<Vec<f64>>());
                let truth = exact.objective(&w, &pool).unwrap();
                let (low, high) =
                    (searched.objective(&w, &pool).unwrap(), searched.objective_at_most(&w, &pool).unwrap());
                let slip = 1e-9 * (1.0 + truth);
                assert!(low <= truth + slip && high.is_some_and(|high| truth <= high + slip), "{low} {truth} {high:?}");
            }
        }
    }
}

#[test]
fn there_is_always_an_answer() {
    let (task, inputs, _) = examples(9, Shape::default(), SETTINGS[3]);
    let mut draw = Draw(9);
    let w = Weights::from((0..task.dimension()).map(|_| draw.signed()).collect::<Vec<f64>>());
    let (mut scratch, mut fallbacks) = (ParseScratch::default(), 0);
    for x in &inputs {
        for with_unknown in [false, true] {
            let mut x: Vec<u32> = x.iter().rev().copied().collect();
            if with_unknown {
                x[0] = UNKNOWN;
            }
            let Decoded { nodes, is_fallback, score } = task.decode(&w, &x, &mut scratch);
            assert!(is_fallback || !with_unknown);
            assert_eq!(is_fallback, score == f64::NEG_INFINITY);
            fallbacks += usize::from(is_fallback);
            // Spans nest, and each word is under one tag.
            assert_eq!(nodes[0].1, 0..x.len());
            let tags = nodes.iter().filter(|(s, _)| task.grammar().tags().contains(s) || *s == UNKNOWN);
            let tags: Vec<_> = tags.map(|(s, span)| (*s, span.clone())).collect();
            assert_eq!(tags, x.iter().copied().zip((0..x.len()).map(|i| i..i + 1)).collect::<Vec<_>>());
            for (a, b) in nodes.iter().zip(&nodes[1..]) {
                assert!(b.1.start >= a.1.start && (b.1.start >= a.1.end || b.1.end <= a.1.end));
            }
        }
    }
    assert!(fallbacks > inputs.len());
}
