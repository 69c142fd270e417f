//! Factorwise training: the optimum of the other solvers on trees, that of the relaxation on loops, whatever the oracle.

use crate::common;

use common::{Draw, formulation, to_relative_gap};
use maxmargin::inference::chain::Order;
use maxmargin::model::tagger::TagWeights;
use maxmargin::parallel::Pool;
use maxmargin::problem::{Penalty, Problem, Rescaling};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::gdmm::{Gdmm, Inner, Oracle};
use maxmargin::solver::{Certificate, Observer, Progress, Settings, Snapshot, Solver, State, Status, Stop};
use maxmargin::sparse::SparseMatrix;
use maxmargin::task::{Factored, Task};
use maxmargin::tasks::multilabel::{Multilabel, Pairs, SetLoss};
use maxmargin::tasks::tagging::{Sentence, Shape, TagLoss, TagScratch, Tagging};
use maxmargin::weights::Weights;
use proptest::prelude::*;
use std::ops::ControlFlow;

/// Sentences whose tags follow from their features and from each other.
struct Text {
    tokens: SparseMatrix,
    tags: Vec<Vec<u32>>,
}

impl Text {
    fn random(draw: &mut Draw, sentences: usize, tags: u32) -> Self {
        let (mut tokens, mut all) = (SparseMatrix::new(), Vec::new());
        for _ in 0..sentences {
            let mut sentence: Vec<u32> = Vec::new();
            for t in 0..=draw.below(4) {
                let tag = if t > 0 && draw.below(2) == 0 {
                    (sentence[t - 1] + 1) % tags
                } else {
                    draw.below(tags as usize) as u32
                };
                let seen = if draw.below(5) == 0 { draw.below(tags as usize) as u32 } else { tag };
                tokens.push_row([(seen, 1.0), (tags, draw.signed() as f32)]);
                sentence.push(tag);
            }
            all.push(sentence);
        }
        tokens.set_columns(tags + 1);
        Self { tokens, tags: all }
    }

    fn sentences(&self) -> Vec<Sentence<'_>> {
        let mut begin = 0;
        self.tags
            .iter()
            .map(|tags| {
                begin += tags.len();
                Sentence::new(&self.tokens, None, begin - tags.len()..begin)
            })
            .collect()
    }
}

fn tagging(tags: u32) -> Tagging {
    let shape = Shape { tags, features: tags + 1, edges: 0, order: Order::First };
    Tagging::new(shape, TagLoss::hamming(tags as usize), None).unwrap()
}

fn to_gap(gap: f64, passes: f64) -> Settings {
    Settings { stop: Some(Stop::Gap(gap)), max_passes: Some(passes), ..Settings::default() }
}

/// The optimum by bcfw, and P of what gdmm finds.
fn compare(problem: &Problem<'_>, solver: &Gdmm) -> (f64, f64, f64) {
    let best = Bcfw::default().solve(problem, &to_relative_gap(1e-6), &mut ()).unwrap();
    let solution = solver.solve(problem, &to_gap(1e-5, 3000.0), &mut ()).unwrap();
    let pool = Pool::new(1).unwrap();
    let exact = problem.objective(&solution.weights, &pool).unwrap();
    let is_exact = solution.report.certificate == Certificate::Exact;
    let (dual, least) = (solution.report.dual, best.report.primal);
    // Both may be the optimum, to the last digit but one.
    assert!(!is_exact || dual <= least * (1.0 + 1e-12), "{dual} is no bound of {least}");
    assert!(solution.report.primal >= exact - 1e-6, "{} is no bound of {exact}", solution.report.primal);
    (best.report.dual, exact, solution.report.primal)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn chains_have_the_optimum_of_bcfw(seed: u64, tags in 2_u32..6, c in 0.5_f64..20.0) {
        let mut draw = Draw(seed);
        let text = Text::random(&mut draw, 6, tags);
        let (task, inputs) = (tagging(tags), text.sentences());
        let problem = Problem::new(&task, &inputs, &text.tags, None, formulation(c, Rescaling::Margin, Penalty::Linear)).unwrap();
        let blocks = Gdmm { inner: Inner::Blocks, ..Gdmm::default() };
        let brute = Gdmm { oracle: Oracle::Brute, ..Gdmm::default() };
        for solver in [Gdmm::default(), Gdmm { oracle: Oracle::Brute, ..blocks }, Gdmm { parts: Some(2), ..Gdmm::default() }, brute, blocks] {
            let (best, exact, bound) = compare(&problem, &solver);
            prop_assert!(exact <= best * 1.01 + 1e-3, "{solver:?}: {exact} is far above {best}");
            prop_assert!(bound <= best * 1.02 + 1e-3, "{solver:?}: the bound {bound} is far above {best}");
        }
    }

    #[test]
    fn trees_of_labels_have_the_optimum_of_bcfw(seed: u64, labels in 2_u32..6) {
        let mut draw = Draw(seed);
        let x = draw.matrix(8, 3);
        let inputs = x.views();
        let sets: Vec<Vec<u32>> = (0..8).map(|_| (0..labels).filter(|_| draw.below(2) == 0).collect()).collect();
        let task = Multilabel::new(3, labels, Pairs::tree(labels, &sets), SetLoss::Hamming).unwrap();
        let problem = Problem::new(&task, &inputs, &sets, None, formulation(8.0, Rescaling::Margin, Penalty::Linear)).unwrap();
        let (best, exact, _) = compare(&problem, &Gdmm::default());
        prop_assert!(exact <= best * 1.01 + 1e-3, "{exact} is far above {best}");
    }
}

/// Many tags: tables beyond the size that is searched whole, parts of the labels.
#[test]
fn sublinear_oracles_lead_to_the_same_optimum() {
    let mut draw = Draw(11);
    let tags = 140;
    let text = Text::random(&mut draw, 12, tags);
    let (task, inputs) = (tagging(tags), text.sentences());
    let problem =
        Problem::new(&task, &inputs, &text.tags, None, formulation(12.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let (best, exact, bound) = compare(&problem, &Gdmm::default());
    assert!(exact <= best * 1.01 && bound <= best * 1.02, "{exact}, {bound}, {best}");
    for inner in [Inner::Blocks, Inner::Turns] {
        let (_, brute, _) = compare(&problem, &Gdmm { oracle: Oracle::Brute, inner, ..Gdmm::default() });
        assert!(brute <= best * 1.01, "{brute}, {best}");
    }
    let (_, exact, _) = compare(&problem, &Gdmm { inner: Inner::Blocks, ..Gdmm::default() });
    assert!(exact <= best * 1.01, "{exact}, {best}");
}

/// As long as variables turn, and outputs are decoded, all blocks agree: the dual is a bound, and rises from pass to pass.
#[test]
fn turns_keep_blocks_in_agreement() {
    for (seed, tags, sentences) in [(3, 4, 30), (4, 40, 20), (5, 150, 20)] {
        let text = Text::random(&mut Draw(seed), sentences, tags);
        let (task, inputs) = (tagging(tags), text.sentences());
        let formulation = formulation(sentences as f64, Rescaling::Margin, Penalty::Linear);
        let problem = Problem::new(&task, &inputs, &text.tags, None, formulation).unwrap();
        let best = Bcfw::default().solve(&problem, &to_relative_gap(1e-6), &mut ()).unwrap().report.primal;
        let mut values = Vec::new();
        let mut watch = |progress: &Progress| {
            values.extend(progress.dual);
            ControlFlow::Continue(())
        };
        let solution = Gdmm::default().solve(&problem, &to_gap(1e-9, 60.0), &mut watch).unwrap();
        assert_eq!(solution.report.disagreement, Some(0.0));
        assert!(values.len() > 10 && values.is_sorted_by(|a, b| *a <= b + 1e-9 * best), "{values:?}");
        let last = values[values.len() - 1];
        assert!(last <= best * (1.0 + 1e-9) && last >= 0.9 * best, "{last}, {best}");
    }
}

/// With many tags rows of w are short: what decoders make of them is what they make of all weights.
#[test]
fn short_rows_are_weights_like_others() {
    let mut draw = Draw(5);
    let tags = 140;
    let text = Text::random(&mut draw, 30, tags);
    let (task, inputs) = (tagging(tags), text.sentences());
    let problem =
        Problem::new(&task, &inputs, &text.tags, None, formulation(30.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let kept = |task: &Tagging| Gdmm::default().short_rows(task.factored().and_then(Factored::short_rows));
    assert!(kept(&task).is_some());
    assert!(kept(&tagging(100)).is_none());
    let short = Gdmm::default().solve(&problem, &to_gap(1e-3, 6.0), &mut ()).unwrap().weights;
    let rows = short.short_rows().expect("short rows");
    let in_use = rows.values().count();
    assert!(in_use > 0 && in_use < rows.block().len() as usize / 2, "{in_use} of {}", rows.block().len());
    let whole = Weights::from(Vec::from(short.clone()));
    assert_eq!(whole.len(), task.dimension());
    assert!(problem.fits(&short) && problem.fits(&whole));
    assert!((short.norm2() - whole.norm2()).abs() <= 1e-12 * whole.norm2());
    let (mut scratch, mut found, mut other) = (TagScratch::default(), Vec::new(), Vec::new());
    for (x, y) in inputs.iter().zip(&text.tags) {
        task.argmax(&short, *x, None, &mut scratch, &mut found).unwrap();
        task.argmax(&whole, *x, None, &mut scratch, &mut other).unwrap();
        assert_eq!(found, other);
        let (a, b) = (task.score(&short, *x, y).unwrap(), task.score(&whole, *x, y).unwrap());
        assert!((a - b).abs() <= 1e-12 * a.abs().max(1.0), "{a}, {b}");
    }
    let pool = Pool::new(1).unwrap();
    let (a, b) = (problem.objective(&short, &pool).unwrap(), problem.objective(&whole, &pool).unwrap());
    assert!((a - b).abs() <= 1e-9 * b, "{a}, {b}");
    assert_eq!(TagWeights::new(&task, &short), TagWeights::new(&task, &whole));
}

/// Of some of the labels, another part in each pass, or of all of them in use: the same optimum.
#[test]
fn parts_of_labels_in_short_rows_lead_to_the_same_optimum() {
    let mut draw = Draw(13);
    let tags = 132;
    let text = Text::random(&mut draw, 8, tags);
    let (task, inputs) = (tagging(tags), text.sentences());
    let problem =
        Problem::new(&task, &inputs, &text.tags, None, formulation(8.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let (best, exact, _) = compare(&problem, &Gdmm { parts: Some(3), ..Gdmm::default() });
    assert!(exact <= best * 1.01, "{exact}, {best}");
}

/// Theorem 1 of the paper: what is missing to the optimum falls by a factor each pass.
#[test]
fn the_dual_converges_linearly() {
    let mut draw = Draw(4);
    let text = Text::random(&mut draw, 8, 4);
    let (task, inputs) = (tagging(4), text.sentences());
    let problem =
        Problem::new(&task, &inputs, &text.tags, None, formulation(8.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let mut values = Vec::new();
    let mut watch = |progress: &Progress| {
        values.extend(progress.dual);
        ControlFlow::Continue(())
    };
    let solver = Gdmm { inner: Inner::Blocks, ..Gdmm::default() };
    solver.solve(&problem, &to_gap(1e-13, 3000.0), &mut watch).unwrap();
    let last = *values.last().unwrap();
    let missing: Vec<f64> = values.iter().map(|value| (value - last).abs()).collect();
    let worst_after = |pass: usize| missing.iter().skip(pass).copied().fold(0.0, f64::max);
    let worst: Vec<f64> = (0..10).map(|k| worst_after(200 * k)).collect();
    for two in worst.windows(2) {
        assert!(two[1] <= 0.5 * two[0] || two[0] < 1e-9, "{worst:?}");
    }
}

/// Its slow relative, for which the paper proves as much.
#[test]
fn away_steps_lead_to_the_same_optimum() {
    let mut draw = Draw(4);
    let text = Text::random(&mut draw, 4, 3);
    let (task, inputs) = (tagging(3), text.sentences());
    let problem =
        Problem::new(&task, &inputs, &text.tags, None, formulation(4.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let solver = Gdmm { inner: Inner::AwaySteps, ..Gdmm::default() };
    let (best, exact, bound) = compare(&problem, &solver);
    assert!(exact <= best * 1.01 && bound <= best * 1.02, "{exact}, {bound}, {best}");
    let mut keep = Keep(7, None);
    let settings = to_gap(1e-9, 20.0);
    let whole = solver.solve(&problem, &settings, &mut keep).unwrap();
    let again = solver.solve(&problem, &Settings { resume: keep.1, ..settings }, &mut ()).unwrap();
    assert_eq!(whole.weights, again.weights);
}

/// Keeps the state of a round.
struct Keep(u64, Option<State>);

impl Observer for Keep {
    fn on_iteration(&mut self, _: &Progress) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn on_state(&mut self, progress: &Progress, snapshot: &dyn Snapshot, _: Option<Status>) -> ControlFlow<()> {
        if progress.round == self.0 {
            self.1 = Some(snapshot.save().unwrap());
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn a_resumed_run_ends_in_the_same_bits() {
    let mut draw = Draw(2);
    let tags = 150;
    let text = Text::random(&mut draw, 20, tags);
    let (task, inputs) = (tagging(tags), text.sentences());
    let problem =
        Problem::new(&task, &inputs, &text.tags, None, formulation(20.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let settings = to_gap(1e-9, 12.0);
    let mut keep = Keep(5, None);
    let whole = Gdmm::default().solve(&problem, &settings, &mut keep).unwrap();
    let resumed = Settings { resume: keep.1, threads: 2, ..settings };
    let again = Gdmm::default().solve(&problem, &resumed, &mut ()).unwrap();
    assert_eq!(whole.weights, again.weights);
    assert_eq!(whole.report.primal.to_bits(), again.report.primal.to_bits());
}

/// None that is damaged leads out of bounds.
#[test]
fn damaged_states_of_short_rows_are_refused_or_run() {
    let text = Text::random(&mut Draw(3), 6, 130);
    let (task, inputs) = (tagging(130), text.sentences());
    let problem =
        Problem::new(&task, &inputs, &text.tags, None, formulation(6.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let mut keep = Keep(2, None);
    let settings = to_gap(1e-9, 3.0);
    Gdmm::default().solve(&problem, &settings, &mut keep).unwrap();
    let bytes = keep.1.unwrap().as_bytes().to_vec();
    let (mut draw, mut refused) = (Draw(8), 0);
    // Most bytes are zeros of the table of transitions, where nothing can be told; the others say how much follows, and where.
    let places: Vec<usize> = (20..bytes.len() - 4).filter(|&at| bytes[at] != 0).collect();
    for _ in 0..300 {
        let mut damaged = bytes.clone();
        let at = places[draw.below(places.len())];
        damaged[at] ^= 1 << draw.below(8);
        let end = damaged.len() - 4;
        let checksum = crc32fast::hash(&damaged[..end]).to_le_bytes();
        damaged[end..].copy_from_slice(&checksum);
        let resume = State::from_bytes(damaged).ok();
        refused +=
            u32::from(Gdmm::default().solve(&problem, &Settings { resume, ..settings.clone() }, &mut ()).is_err());
    }
    assert!(refused > 0);
}

#[test]
fn soft_consistency_is_another_problem() {
    let mut draw = Draw(9);
    let text = Text::random(&mut draw, 10, 4);
    let (task, inputs) = (tagging(4), text.sentences());
    let problem =
        Problem::new(&task, &inputs, &text.tags, None, formulation(10.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let pool = Pool::new(1).unwrap();
    let at = |rho: f64| {
        let soft = Gdmm { rho, eta: 0.0, ..Gdmm::default() };
        let solution = soft.solve(&problem, &to_gap(1e-9, 2000.0), &mut ()).unwrap();
        assert_eq!(solution.report.solver, "soft-bcfw");
        problem.objective(&solution.weights, &pool).unwrap()
    };
    let best = Bcfw::default().solve(&problem, &to_relative_gap(1e-6), &mut ()).unwrap().report.primal;
    assert!(at(10.0) < at(0.1), "a higher price leads nearer");
    assert!(at(0.1) > best * 1.001, "and a low one stays away");
}

#[test]
fn what_cannot_be_factored_is_refused_in_words() {
    let mut draw = Draw(1);
    let x = draw.matrix(2, 3);
    let inputs = x.views();
    let task = maxmargin::tasks::binary::Binary::new(3);
    let problem =
        Problem::new(&task, &inputs, &[0, 1], None, formulation(1.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let refused = Gdmm::default().solve(&problem, &Settings::default(), &mut ()).unwrap_err().to_string();
    assert!(refused.contains("labels of variables"), "{refused}");
}

/// A gap that is proven: small, and on the right side of what others know.
fn certified(problem: &Problem<'_>, solver: &Gdmm) -> Result<(), TestCaseError> {
    let solver = Gdmm { certify: true, ..solver.clone() };
    let settings = Settings { stop: Some(Stop::RelativeGap(1e-3)), max_passes: Some(20_000.0), ..Settings::default() };
    let report = solver.solve(problem, &settings, &mut ()).unwrap().report;
    prop_assert_eq!(report.status, Status::Converged);
    prop_assert!(report.gap <= 1e-3 * report.primal && report.gap >= 0.0, "{report:?}");
    if problem.oracle_is_exact() {
        let best = Bcfw::default().solve(problem, &to_relative_gap(1e-6), &mut ()).unwrap();
        prop_assert!(report.dual <= best.report.primal * (1.0 + 1e-9), "{} is no bound", report.dual);
        prop_assert_eq!(report.certificate, Certificate::Exact);
        prop_assert!(
            report.primal >= best.report.dual * (1.0 - 1e-9),
            "{} is below {}",
            report.primal,
            best.report.dual
        );
        prop_assert!(report.primal <= best.report.primal * 1.001 + 1e-9);
    } else {
        prop_assert_eq!(report.certificate, Certificate::Estimate);
    }
    Ok(())
}

/// Sets whose labels follow from the features and from each other.
fn related_sets(draw: &mut Draw, inputs: &SparseMatrix, labels: u32) -> Vec<Vec<u32>> {
    (0..inputs.rows())
        .map(|i| {
            let sum: f32 = inputs.row(i).values().iter().sum();
            let first = if sum > 0.0 { 0 } else { labels / 2 };
            (0..labels).filter(|&k| (k == first || k == first + 1 || draw.below(6) == 0) && draw.below(8) > 0).collect()
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_certificate_of_chains_is_exact(seed: u64, tags in 2_u32..6, c in 0.5_f64..20.0) {
        let text = Text::random(&mut Draw(seed), 6, tags);
        let (task, inputs) = (tagging(tags), text.sentences());
        let problem = Problem::new(&task, &inputs, &text.tags, None, formulation(c, Rescaling::Margin, Penalty::Linear)).unwrap();
        certified(&problem, &Gdmm::default())?;
    }

    /// Only a few labels are members, and yet the gap is that of all of them.
    #[test]
    fn a_certificate_of_sets_is_that_of_the_relaxation(seed: u64, labels in 3_u32..9, kind in 0..3, c in 2.0_f64..30.0) {
        let mut draw = Draw(seed);
        let x = draw.matrix(10, 3);
        let inputs = x.views();
        let sets = related_sets(&mut draw, &x, labels);
        let pairs = match kind {
            0 => Pairs::all(labels).unwrap(),
            1 => Pairs::top(labels, &sets, labels as usize + 1),
            _ => Pairs::tree(labels, &sets),
        };
        let task = Multilabel::new(3, labels, pairs, SetLoss::Hamming).unwrap();
        let problem = Problem::new(&task, &inputs, &sets, None, formulation(c, Rescaling::Margin, Penalty::Linear)).unwrap();
        certified(&problem, &Gdmm::default())?;
    }
}

/// Two million pairs, of which an example looks at those of its members only.
#[test]
fn all_pairs_of_many_labels_are_no_burden() {
    let mut draw = Draw(1);
    let x = draw.matrix(20, 3);
    let sets = related_sets(&mut draw, &x, 2000);
    let sets: Vec<Vec<u32>> = sets.into_iter().map(|set| set.into_iter().step_by(97).collect()).collect();
    let task = Multilabel::new(3, 2000, Pairs::all(2000).unwrap(), SetLoss::Hamming).unwrap();
    let inputs = x.views();
    let problem =
        Problem::new(&task, &inputs, &sets, None, formulation(1.0, Rescaling::Margin, Penalty::Linear)).unwrap();
    let solution = Gdmm::default().solve(&problem, &to_gap(1e-2, 5.0), &mut ()).unwrap();
    assert!(solution.report.working_set < 1_000_000, "{:?}", solution.report);
}

/// At a small C primal and dual meet, and rounding may leave the gap below zero: the path goes on all the same.
#[test]
fn a_path_from_where_the_gap_is_nothing() {
    for seed in 0..8 {
        let mut draw = Draw(seed);
        let (x, sets) = (draw.matrix(20, 4), draw.sets(20, 3));
        let views = x.views();
        for pairs in [Pairs::tree(3, &sets), Pairs::all(3).unwrap()] {
            let task = Multilabel::new(4, 3, pairs, SetLoss::Hamming).unwrap();
            let mut settings = Settings { keep_state: true, ..Settings::default() };
            for c in [1e-4, 1e-3, 1e-2, 0.1, 1.0] {
                let f = formulation(c, Rescaling::Margin, Penalty::Linear);
                let problem = Problem::new(&task, &views, &sets, None, f).unwrap();
                settings.resume = Gdmm::default().solve(&problem, &settings, &mut ()).unwrap().state;
                assert!(settings.resume.is_some(), "nothing was kept at C = {c}");
            }
        }
    }
}
