//! Sequence tagging: the laws of a task, the oracle against exhaustive search, what is refused, and every solver at the
//! same optimum.

use crate::common;

use common::{
    Any, Draw, Exhaustive, PENALTIES, RESCALINGS, Typed, bcfws, bits_of, cuts, formulation, n_slack, optimum, patience,
    psi, to_relative_gap,
};
use maxmargin::Error;
use maxmargin::features::{Collect, Scaled};
use maxmargin::inference::chain::Order;
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, OracleScratch, Penalty, Problem, Rescaling};
use maxmargin::solver::cutting_plane::Placement;
use maxmargin::solver::n_slack::Update;
use maxmargin::solver::{Certificate, Settings, Status};
use maxmargin::sparse::{SparseMatrix, dot};
use maxmargin::task::{LossTerm, Task};
use maxmargin::tasks::tagging::{Constraints, Scheme, Sentence, Shape, TagLoss, TagScratch, Tagging, UNSEEN};
use maxmargin::testing::check_task;
use maxmargin::weights::Weights;

const FEATURES: u32 = 4;

/// The features of some sentences.
struct Text {
    tokens: SparseMatrix,
    edges: Option<SparseMatrix>,
    lengths: Vec<usize>,
}

impl Text {
    fn random(draw: &mut Draw, lengths: &[usize], edges: u32) -> Self {
        let n = lengths.iter().sum();
        let (tokens, edges) = (draw.matrix(n, FEATURES), (edges > 0).then(|| draw.matrix(n, edges)));
        Self { tokens, edges, lengths: lengths.to_vec() }
    }

    fn sentences(&self) -> Vec<Sentence<'_>> {
        let mut begin = 0;
        let sentence = |&len: &usize| {
            begin += len;
            Sentence::new(&self.tokens, self.edges.as_ref(), begin - len..begin)
        };
        self.lengths.iter().map(sentence).collect()
    }
}

fn names(tags: u32) -> Vec<String> {
    let bio = ["B-X", "I-X", "O"].map(String::from);
    if tags == 3 { bio.to_vec() } else { (0..tags).map(|k| format!("tag{k}")).collect() }
}

/// Something is forbidden, but every length has outputs.
fn some_constraints(tags: u32) -> Constraints {
    let mut constraints = Constraints::none(&names(tags));
    match tags {
        3 => constraints.apply_scheme(Scheme::Bio).unwrap(),
        _ => constraints.forbid("tag1", "tag0").unwrap(),
    }
    assert!(!constraints.is_empty());
    constraints
}

fn shape(tags: u32, edges: u32, order: Order) -> Shape {
    Shape { tags, features: FEATURES, edges, order }
}

/// Every kind of model, with this loss.
fn each_kind(tags: u32, loss: &TagLoss, mut check: impl FnMut(Tagging, u32)) {
    for order in [Order::First, Order::Second] {
        for edges in [0, 2] {
            for constraints in [None, (tags > 1).then(|| some_constraints(tags))] {
                check(Tagging::new(shape(tags, edges, order), loss.clone(), constraints).unwrap(), edges);
            }
        }
    }
}

/// Losses whose wrong tokens cost the same, hence with an exact oracle for everything.
fn counted_losses(tags: u32) -> [TagLoss; 3] {
    let tags = tags as usize;
    [TagLoss::hamming(tags), TagLoss::ZeroOne, TagLoss::Hamming(vec![0.7; tags])]
}

fn different_costs(draw: &mut Draw, tags: u32) -> TagLoss {
    TagLoss::Hamming((0..tags).map(|_| 0.2 + 2.0 * draw.unit()).collect())
}

/// All outputs that are allowed.
fn outputs(task: &Tagging, x: Sentence<'_>) -> Vec<Vec<u32>> {
    let (tags, len) = (task.shape().tags as usize, x.tokens.len());
    let output = |mut code: usize| -> Vec<u32> {
        let mut digit = |_| {
            let tag = code % tags;
            code /= tags;
            tag as u32
        };
        (0..len).map(&mut digit).collect()
    };
    (0..tags.pow(len as u32)).map(output).filter(|y| task.check(x, y).is_ok()).collect()
}

/// A truth for each sentence: any that is allowed.
fn random_truths(draw: &mut Draw, task: &Tagging, sentences: &[Sentence<'_>]) -> Vec<Vec<u32>> {
    let mut pick = |x: &Sentence<'_>| {
        let mut all = outputs(task, *x);
        let at = draw.below(all.len());
        all.swap_remove(at)
    };
    sentences.iter().map(&mut pick).collect()
}

/// `psi(x, truth) - psi(x, y)`, each by itself.
fn dpsi(task: &Tagging, x: Sentence<'_>, truth: &Vec<u32>, y: &Vec<u32>) -> Vec<f64> {
    psi(task, x, truth).iter().zip(psi(task, x, y)).map(|(a, b)| a - b).collect()
}

/// Margin, and right-hand side of the constraint, of every wrong output of example i.
fn wrong_outputs(problem: &Typed<'_, Tagging>, i: usize, w: &Weights) -> Vec<(f64, f64)> {
    let (task, f) = (problem.task(), problem.formulation());
    let (x, truth) = (problem.input(i), problem.truth(i));
    let all = outputs(task, x);
    assert!(all.contains(truth));
    let wrong = all.iter().filter(|y| *y != truth);
    wrong
        .map(|y| {
            let loss = f.loss_scale * task.loss(truth, y);
            let rhs = if f.penalty == Penalty::Quadratic { loss.sqrt() } else { loss };
            (dot(&dpsi(task, x, truth, y), w.as_slice()), rhs)
        })
        .collect()
}

/// H of example i by exhaustive search.
fn worst(problem: &Typed<'_, Tagging>, i: usize, w: &Weights) -> f64 {
    let h = |(margin, rhs): (f64, f64)| match problem.formulation().rescaling {
        Rescaling::Margin => rhs - margin,
        Rescaling::Slack => rhs * (1.0 - margin),
    };
    wrong_outputs(problem, i, w).into_iter().map(h).fold(0.0, f64::max)
}

/// The hard margin's v by exhaustive search, 1 standing for everything from there on.
fn shortfall(problem: &Typed<'_, Tagging>, w: &Weights) -> f64 {
    let share = |(margin, rhs): (f64, f64)| match problem.formulation().rescaling {
        Rescaling::Margin => 1.0 - margin / rhs,
        Rescaling::Slack => 1.0 - margin,
    };
    let all = (0..problem.len()).flat_map(|i| wrong_outputs(problem, i, w));
    all.map(share).fold(0.0, f64::max).min(1.0)
}

fn objective(problem: &Typed<'_, Tagging>, w: &Weights) -> f64 {
    let slack = |h: f64| if problem.formulation().penalty == Penalty::Quadratic { 0.5 * h * h } else { h };
    let sum: f64 = (0..problem.len()).map(|i| problem.weight(i) * slack(worst(problem, i, w))).sum();
    0.5 * dot(w.as_slice(), w.as_slice()) + problem.formulation().c / problem.len() as f64 * sum
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs().min(b.abs()))
}

#[test]
fn losses_by_hand() {
    let costs = TagLoss::Hamming(vec![1.0, 2.0, 0.5]);
    assert_eq!(costs.of(&[0, 1, 2, 1], &[0, 0, 0, 1]), 2.5);
    assert_eq!(costs.of(&[UNSEEN, 2], &[0, 2]), 2.0, "as much as the dearest");
    assert_eq!(TagLoss::hamming(3).of(&[0, 1, 2], &[2, 2, 2]), 2.0);
    assert_eq!((TagLoss::ZeroOne.of(&[0, 1], &[1, 0]), TagLoss::ZeroOne.of(&[0, 1], &[0, 1])), (1.0, 0.0));
}

/// The laws, the argmax against all outputs, and differences against features.
#[test]
fn the_task_obeys() {
    let mut draw = Draw(1);
    for tags in 1..=4 {
        let mut losses = counted_losses(tags).to_vec();
        losses.push(different_costs(&mut draw, tags));
        for loss in losses {
            each_kind(tags, &loss, |task, edges| {
                let text = Text::random(&mut draw, &[1, 4, 2, 3], edges);
                let sentences = text.sentences();
                let truths = random_truths(&mut draw, &task, &sentences);
                let examples: Vec<_> = sentences.iter().copied().zip(truths.iter().cloned()).collect();
                check_task(&task, &examples, draw.next()).unwrap();
                let (mut scratch, mut y) = (TagScratch::default(), Vec::new());
                for (x, truth) in &examples {
                    let w = draw.weights(task.dimension(), 1.0);
                    let all = outputs(&task, *x);
                    for lambda in [None, Some(0.7), Some(3.0)] {
                        let value = |y: &Vec<u32>| {
                            dot(&psi(&task, *x, y), w.as_slice()) + lambda.map_or(0.0, |l| l * task.loss(truth, y))
                        };
                        let term = lambda.map(|weight| LossTerm { truth, weight });
                        task.argmax(&w, *x, term, &mut scratch, &mut y).unwrap();
                        let best = all.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
                        assert!(close(value(&y), best), "{} is not {best}", value(&y));
                    }
                    let most = all.iter().map(|y| task.loss(truth, y)).fold(0.0, f64::max);
                    assert!(most <= task.max_loss(truth) + 1e-12);
                    difference_is_that_of_features(&mut draw, &task, *x, truth);
                }
            });
        }
    }
}

fn difference_is_that_of_features(draw: &mut Draw, task: &Tagging, x: Sentence<'_>, truth: &Vec<u32>) {
    for _ in 0..5 {
        // Forbidden ones have features, too.
        let y = draw.labels(truth.len(), task.shape().tags);
        let (mut short, mut long) = (Collect::default(), Collect::default());
        task.difference(x, truth, &y, &mut short).unwrap();
        task.features(x, truth, &mut long).unwrap();
        task.features(x, &y, &mut Scaled { sink: &mut long, factor: -1.0 }).unwrap();
        let nonzero = |collect: &mut Collect| -> Vec<(u64, f64)> {
            collect.merged().iter().copied().filter(|entry| entry.1.abs() > 1e-12).collect()
        };
        let (short, long) = (nonzero(&mut short), nonzero(&mut long));
        assert_eq!(short.len(), long.len(), "{truth:?}, {y:?}");
        assert!(short.iter().zip(&long).all(|(a, b)| a.0 == b.0 && close(a.1, b.1)), "{truth:?}, {y:?}");
        let w = draw.weights(task.dimension(), 1.0);
        let margin = task.margin(&w, x, truth, &y).unwrap();
        assert!(close(margin, task.score(&w, x, truth).unwrap() - task.score(&w, x, &y).unwrap()));
    }
}

/// Forbidden outputs are never given, whatever the weights say.
#[test]
fn constraints_hold() {
    let mut draw = Draw(2);
    for order in [Order::First, Order::Second] {
        for scheme in [Scheme::Bio, Scheme::Bioes] {
            let marks = if scheme == Scheme::Bio { "B-X I-X B-Y I-Y O" } else { "B-X I-X E-X S-X B-Y E-Y O" };
            let tags: Vec<String> = marks.split(' ').map(String::from).collect();
            let mut constraints = Constraints::none(&tags);
            constraints.apply_scheme(scheme).unwrap();
            let shape = shape(tags.len() as u32, 1, order);
            let task = Tagging::new(shape, TagLoss::hamming(tags.len()), Some(constraints.clone())).unwrap();
            let text = Text::random(&mut draw, &[1, 2, 3, 20, 50], 1);
            let (mut scratch, mut y) = (TagScratch::default(), Vec::new());
            for round in 0..40 {
                let w = draw.weights(task.dimension(), 10.0);
                for x in text.sentences() {
                    let truth = vec![tags.len() as u32 - 1; x.tokens.len()];
                    let term = (round % 2 == 1).then_some(LossTerm { truth: &truth, weight: 5.0 });
                    task.argmax(&w, x, term, &mut scratch, &mut y).unwrap();
                    constraints.check(&y).unwrap();
                }
            }
        }
    }
}

/// H, its output, the objective and the shortfall, where the oracle is exact.
fn is_exact(problem: &Typed<'_, Tagging>, draw: &mut Draw) {
    assert!(problem.oracle_is_exact(), "{:?}", problem.formulation());
    let pool = Pool::new(1).unwrap();
    let mut scratch = OracleScratch::default();
    for scale in [0.0, 0.2, 2.0] {
        let w = draw.weights(problem.dimension(), scale);
        for i in 0..problem.len() {
            let (h, best) = (problem.oracle(i, &w, &mut scratch).unwrap(), worst(problem, i, &w));
            assert!(close(h, best), "oracle {h}, best {best}: {:?}", problem.formulation());
            let of_y = problem.violation(i, &w, &scratch.y).unwrap();
            assert!(close(h, of_y), "oracle {h}, its output {of_y}");
            assert!(h > 0.0 || problem.is_truth(i, &scratch.y), "H = 0 belongs to the truth");
            let half: Vec<f64> = w.as_slice().iter().map(|w| 0.5 * w).collect();
            let at_half = problem.oracle_at(i, &w, 0.5, &mut scratch).unwrap();
            assert!(close(at_half, worst(problem, i, &Weights::from(half))), "at half of w");
        }
        if problem.formulation().penalty == Penalty::Hard {
            let (v, best) = (problem.worst_shortfall(&w, &pool).unwrap(), shortfall(problem, &w));
            assert!(close(v.min(1.0), best), "shortfall {v}, best {best}: {:?}", problem.formulation());
        } else {
            let (p, best) = (problem.objective(&w, &pool).unwrap(), objective(problem, &w));
            assert!(close(p, best), "objective {p}, by hand {best}: {:?}", problem.formulation());
        }
    }
}

fn formulations() -> impl Iterator<Item = Formulation> {
    let pairs = RESCALINGS.into_iter().flat_map(|r| PENALTIES.into_iter().map(move |p| (r, p)));
    pairs.map(|(rescaling, penalty)| Formulation { loss_scale: 1.5, ..formulation(2.0, rescaling, penalty) })
}

#[test]
fn the_oracle_is_exact() {
    let mut draw = Draw(3);
    for tags in 1..=3 {
        for loss in counted_losses(tags) {
            each_kind(tags, &loss, |task, edges| {
                let text = Text::random(&mut draw, &[1, 4, 2, 3], edges);
                let sentences = text.sentences();
                let truths = random_truths(&mut draw, &task, &sentences);
                let c = draw.example_weights(4);
                for f in formulations() {
                    is_exact(&Typed::new(&task, &sentences, &truths, Some(&c), f).unwrap(), &mut draw);
                }
            });
        }
    }
}

/// Near a w that separates the data, where the hard margin's shortfall is below 1.
#[test]
fn the_shortfall_is_exact() {
    let mut draw = Draw(4);
    let pool = Pool::new(1).unwrap();
    for loss in counted_losses(3) {
        each_kind(3, &loss, |task, edges| {
            let (text, truths, hidden) = separable(&mut draw, &task, edges, &[2, 3, 1]);
            let sentences = text.sentences();
            for rescaling in RESCALINGS {
                let f = formulation(1.0, rescaling, Penalty::Hard);
                let problem = Typed::new(&task, &sentences, &truths, None, f).unwrap();
                let mut partial = 0;
                for scale in [0.1, 1.0, 5.0, 50.0] {
                    let w = Weights::from(hidden.as_slice().iter().map(|w| scale * w).collect::<Vec<_>>());
                    let (v, best) = (problem.worst_shortfall(&w, &pool).unwrap(), shortfall(&problem, &w));
                    assert!(close(v, best), "shortfall {v}, best {best}: {f:?}");
                    partial += usize::from(v > 0.0 && v < 1.0);
                }
                assert!(partial > 0, "no shortfall between 0 and 1");
            }
        });
    }
}

/// Costs that differ: margin rescaling with linear slack and the hard margin are exact, the roots of margin rescaling with
/// quadratic slack refused, and slack rescaling searched without a certificate.
#[test]
fn different_costs_do_not_count() {
    let mut draw = Draw(5);
    let loss = TagLoss::Hamming(vec![1.0, 2.0, 0.5]);
    each_kind(3, &loss, |task, edges| {
        assert!(task.counted().is_none());
        let text = Text::random(&mut draw, &[3, 2, 1, 3], edges);
        let sentences = text.sentences();
        let truths = random_truths(&mut draw, &task, &sentences);
        for f in formulations() {
            let problem = Typed::new(&task, &sentences, &truths, None, f);
            match (f.rescaling, f.penalty) {
                (Rescaling::Margin, Penalty::Quadratic) => {
                    let refusal = problem.err().expect("needs argmax score + sqrt(loss)");
                    assert!(matches!(refusal, Error::Setting { name: "penalty", .. }), "{refusal}");
                }
                (Rescaling::Margin, _) => is_exact(&problem.unwrap(), &mut draw),
                (Rescaling::Slack, _) => {
                    let (problem, mut scratch) = (problem.unwrap(), OracleScratch::default());
                    assert!(!problem.oracle_is_exact());
                    let w = draw.weights(problem.dimension(), 0.3);
                    for i in 0..problem.len() {
                        let (h, best) = (problem.oracle(i, &w, &mut scratch).unwrap(), worst(&problem, i, &w));
                        assert!(h <= best + 1e-9 * (1.0 + best), "search {h}, best {best}");
                        assert!(close(h, problem.violation(i, &w, &scratch.y).unwrap()));
                    }
                    if f.penalty != Penalty::Hard {
                        let solver = cuts(1, None, Placement::LineSearch);
                        let report = solver.solve(&problem, &to_relative_gap(0.01), &mut patience()).report;
                        assert_eq!(report.certificate, Certificate::Estimate, "{report:?}");
                    }
                }
            }
        }
    });
}

/// What `Problem::new` says of these examples.
fn refusal(task: &Tagging, x: &[Sentence<'_>], y: &[Vec<u32>], f: Formulation) -> (usize, String) {
    match Problem::new(task, x, y, None, f) {
        Err(Error::Data { example, what }) => (example, what),
        other => panic!("not refused for its data: {:?}", other.err()),
    }
}

#[test]
fn sequences_that_are_too_long_to_count() {
    let mut tokens = SparseMatrix::new();
    (0..8_003).for_each(|_| tokens.push_row([]));
    let sentences = [Sentence::new(&tokens, None, 0..3), Sentence::new(&tokens, None, 3..8_003)];
    let truths = [vec![0; 3], vec![0; 8_000]];
    let shape = shape(9, 0, Order::First);
    let hamming = Tagging::new(shape, TagLoss::hamming(9), None).unwrap();
    let zero_one = Tagging::new(shape, TagLoss::ZeroOne, None).unwrap();
    for f in formulations() {
        assert!(Problem::new(&zero_one, &sentences, &truths, None, f).is_ok(), "{f:?}: two counts are few");
        if f.rescaling == Rescaling::Margin && f.penalty != Penalty::Quadratic {
            assert!(Problem::new(&hamming, &sentences, &truths, None, f).is_ok(), "{f:?}: nothing is counted");
        } else {
            let (example, what) = refusal(&hamming, &sentences, &truths, f);
            assert_eq!(example, 1);
            assert!(what.contains("a sequence of 8000 with 9 labels is too long"), "{what}");
        }
    }
}

#[test]
fn examples_that_do_not_fit() {
    let mut draw = Draw(6);
    let text = Text::random(&mut draw, &[3, 3], 2);
    let sentences = text.sentences();
    let f = Formulation::default();
    let task = |edges, constraints| Tagging::new(shape(3, edges, Order::First), TagLoss::ZeroOne, constraints).unwrap();
    let fine = vec![2, 0, 1];
    let says = |task: &Tagging, second: &[u32], words: &[&str]| {
        let (example, what) = refusal(task, &sentences, &[fine.clone(), second.to_vec()], f);
        assert_eq!(example, 1, "{what}");
        assert!(words.iter().all(|word| what.contains(word)), "{what}");
    };
    let (free, bio) = (task(2, None), task(2, Some(some_constraints(3))));
    assert!(Problem::new(&bio, &sentences, &[fine.clone(), fine.clone()], None, f).is_ok());
    says(&bio, &[2, 1, 2], &["token 2", "I-X after O", "forbidden"]);
    says(&bio, &[1, 1, 2], &["first tag is I-X"]);
    says(&free, &[0, 1], &["2 tags for 3 tokens"]);
    says(&free, &[0, 3, 1], &["tag 3", "3 tags"]);
    says(&free, &[0, UNSEEN, 1], &["tag 4294967295"]);

    // Features that the model lacks, by name.
    let truths = [fine.clone(), fine.clone()];
    let (_, what) = refusal(&task(1, None), &sentences, &truths, f);
    assert!(what.contains("transition") && what.contains('1'), "{what}");
    let small = Shape { features: FEATURES - 1, ..shape(3, 2, Order::First) };
    let (_, what) = refusal(&Tagging::new(small, TagLoss::ZeroOne, None).unwrap(), &sentences, &truths, f);
    assert!(what.contains('3') && !what.contains("transition"), "{what}");
}

#[test]
fn models_that_cannot_be() {
    let name = |result: maxmargin::Result<Tagging>| match result {
        Err(Error::Setting { name, .. }) => name,
        other => panic!("not refused: {other:?}"),
    };
    let good = shape(3, 0, Order::First);
    assert_eq!(name(Tagging::new(Shape { tags: 0, ..good }, TagLoss::ZeroOne, None)), "tags");
    let too_many = Shape { tags: 2_000, order: Order::Second, ..good };
    assert_eq!(name(Tagging::new(too_many, TagLoss::ZeroOne, None)), "tags");
    for costs in [vec![1.0; 2], vec![1.0, -1.0, 1.0], vec![1.0, f64::NAN, 1.0], vec![1.0, f64::INFINITY, 1.0]] {
        assert_eq!(name(Tagging::new(good, TagLoss::Hamming(costs), None)), "tag-cost");
    }
}

/// Sentences whose truths a hidden w finds, each with a clear margin, and that w.
fn separable(draw: &mut Draw, task: &Tagging, edges: u32, lengths: &[usize]) -> (Text, Vec<Vec<u32>>, Weights) {
    loop {
        let (text, w) = (Text::random(draw, lengths, edges), draw.weights(task.dimension(), 1.0));
        let truth = |x: &Sentence<'_>| {
            let mut all: Vec<(f64, Vec<u32>)> =
                outputs(task, *x).into_iter().map(|y| (dot(&psi(task, *x, &y), w.as_slice()), y)).collect();
            all.sort_by(|a, b| b.0.total_cmp(&a.0));
            (all[0].0 - all[1].0 > 0.2).then(|| all.swap_remove(0).1)
        };
        let truths: Option<Vec<Vec<u32>>> = text.sentences().iter().map(truth).collect();
        if let Some(truths) = truths {
            return (text, truths, w);
        }
    }
}

/// The tokens of every sentence that the referee sees.
const LENGTH: usize = 3;

impl Exhaustive for Tagging {
    fn all(&self) -> Vec<Vec<u32>> {
        let mut tokens = SparseMatrix::new();
        (0..LENGTH).for_each(|_| tokens.push_row([]));
        outputs(self, Sentence::new(&tokens, None, 0..LENGTH))
    }
}

/// The solvers that the penalty allows, with relative gaps that they reach in reasonable time.
fn solvers(n: usize, penalty: Penalty) -> Vec<(Any, f64)> {
    let mut all = vec![
        (cuts(1, None, Placement::LineSearch), 1e-5),
        (cuts(1, Some(0), Placement::QpPoint), 1e-5),
        (cuts(n / 2, Some(5), Placement::LineSearch), 1e-5),
        (n_slack(Update::Batch(5)), 1e-5),
        (n_slack(Update::OwnCuts), 1e-5),
    ];
    if penalty != Penalty::Hard {
        all.push((Any::Subgradient, 1e-3));
        all.extend(bcfws().map(|solver| (solver, 1e-5)));
    }
    if penalty == Penalty::Linear {
        all.push((Any::FrankWolfe, 1e-3));
    }
    all
}

/// Every solver converges to bounds that hold, and weights that are worth what is said. Returns the tightest bounds.
fn solved(problem: &Typed<'_, Tagging>) -> (f64, f64) {
    let penalty = problem.formulation().penalty;
    let mut bounds = (f64::NEG_INFINITY, f64::INFINITY);
    for (solver, gap) in solvers(problem.len(), penalty) {
        let settings = Settings { max_passes: Some(50_000.0), ..to_relative_gap(gap) };
        let solution = solver.solve(problem, &settings, &mut ());
        let report = &solution.report;
        let context = format!("{solver:?} on {:?}: {report:?}", problem.formulation());
        assert_eq!((report.status, report.certificate), (Status::Converged, Certificate::Exact), "{context}");
        assert!(report.dual <= report.primal && report.gap <= gap * report.primal.max(1e-12), "{context}");
        if penalty != Penalty::Hard {
            let by_hand = objective(problem, &solution.weights);
            assert!((by_hand - report.primal).abs() <= 1e-8 * (1.0 + by_hand), "{by_hand} by hand: {context}");
        }
        bounds = (bounds.0.max(report.dual), bounds.1.min(report.primal));
        assert!(bounds.0 <= bounds.1 * (1.0 + 1e-9), "{bounds:?} of those before: {context}");
    }
    bounds
}

/// A problem for each formulation: noise for those that can do with it.
fn each_problem(draw: &mut Draw, task: &Tagging, edges: u32, lengths: &[usize], check: impl Fn(&Typed<'_, Tagging>)) {
    let (text, truths, _) = separable(draw, task, edges, lengths);
    let sentences = text.sentences();
    let noisy = random_truths(draw, task, &sentences);
    let c = draw.example_weights(sentences.len());
    for f in formulations() {
        let truths = if f.penalty == Penalty::Hard { &truths } else { &noisy };
        check(&Typed::new(task, &sentences, truths, Some(&c), f).unwrap());
    }
}

/// All solvers at the optimum that an interior-point method finds with all constraints written out.
#[test]
fn solvers_find_the_optimum() {
    let mut draw = Draw(7);
    for (order, edges, loss) in [
        (Order::First, 0, TagLoss::hamming(3)),
        (Order::First, 2, TagLoss::ZeroOne),
        (Order::Second, 1, TagLoss::hamming(3)),
    ] {
        let task = Tagging::new(shape(3, edges, order), loss, None).unwrap();
        each_problem(&mut draw, &task, edges, &[LENGTH; 5], |problem| {
            let best = optimum(problem).expect("a feasible problem");
            let (dual, primal) = solved(problem);
            let slip = 1e-6 * (1.0 + best);
            assert!(dual <= best + slip && primal >= best - slip, "optimum {best}, found {dual} to {primal}");
        });
    }
}

/// Sentences of all lengths, and constraints.
#[test]
fn solvers_agree() {
    let mut draw = Draw(8);
    for (order, edges, loss) in
        [(Order::First, 2, TagLoss::hamming(3)), (Order::Second, 0, TagLoss::Hamming(vec![0.5; 3]))]
    {
        let task = Tagging::new(shape(3, edges, order), loss, Some(some_constraints(3))).unwrap();
        each_problem(&mut draw, &task, edges, &[1, 4, 2, 3, 1, 3], |problem| {
            solved(problem);
        });
    }
}

/// To the last bit.
#[test]
fn threads_change_nothing() {
    let mut draw = Draw(9);
    let task = Tagging::new(shape(3, 1, Order::First), TagLoss::hamming(3), Some(some_constraints(3))).unwrap();
    let lengths: Vec<usize> = (0..70).map(|_| 1 + draw.below(5)).collect();
    let text = Text::random(&mut draw, &lengths, 1);
    let sentences = text.sentences();
    let truths = random_truths(&mut draw, &task, &sentences);
    for rescaling in RESCALINGS {
        let f = formulation(3.0, rescaling, Penalty::Linear);
        let problem = Problem::new(&task, &sentences, &truths, None, f).unwrap();
        let one_slack = [cuts(1, None, Placement::LineSearch), cuts(1, Some(5), Placement::LineSearch)];
        for solver in one_slack.into_iter().chain(bcfws()) {
            let run = |threads| {
                let settings = Settings { threads, ..to_relative_gap(0.01) };
                bits_of(&solver.solve(&problem, &settings, &mut patience()))
            };
            assert!(run(1) == run(3), "{solver:?} on {f:?}");
        }
    }
}
