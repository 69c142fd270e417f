//! Taggers in files: the same model comes back, whatever is not one is refused, and prediction from the sparse weights is the
//! argmax of the task.

use maxmargin::data::input::Input;
use maxmargin::data::tagging::{Features, Format, Sequences, Template, Vocabulary, read};
use maxmargin::inference::chain::Order;
use maxmargin::kernel::{Expansion, Shape as KernelShape, Standard};
use maxmargin::model::tagger::TagWeights;
use maxmargin::model::{Model, Saved, Summary, Tagger};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Problem};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::{Certificate, Settings, Solver, Status};
use maxmargin::sparse::SparseMatrix;
use maxmargin::task::Task;
use maxmargin::tasks::tagging::{Constraints, Scheme, Sentence, TagLoss, TagScratch, Tagging};
use maxmargin::weights::Weights;

const TEXT: &str = "\
Anna\tNNP\tB-PER\nsaw\tVBD\tO\nNew\tNNP\tB-LOC\nYork\tNNP\tI-LOC\n\n\
York\tNNP\tB-LOC\nsleeps\tVBZ\tO\n\n\
Anna\tNNP\tB-PER\nMay\tNNP\tI-PER\nsleeps\tVBZ\tO\nin\tIN\tO\nMay\tNNP\tO\n";

fn sentences(data: &Sequences) -> Vec<Sentence<'_>> {
    (0..data.len()).map(|s| Sentence::new(&data.tokens, data.edges.as_ref(), data.sentence(s))).collect()
}

/// Trains on the text; returns the data and the dense weights, too.
fn trained(order: Order, features: Features, scheme: Option<Scheme>) -> (Tagger, Sequences, Weights) {
    let (format, pool) = (Format::Columns(features), Pool::new(1).unwrap());
    let (data, vocabulary) = read(Input::new("text", TEXT.as_bytes()).unwrap(), &format, 1, &pool).unwrap();
    let constraints = scheme.map(|scheme| {
        let mut constraints = Constraints::none(&vocabulary.tags);
        constraints.apply_scheme(scheme).unwrap();
        constraints
    });
    let shape = maxmargin::tasks::tagging::Shape {
        tags: vocabulary.tags.len() as u32,
        features: vocabulary.features.len() as u32,
        edges: vocabulary.edges.len() as u32,
        order,
    };
    let task = Tagging::new(shape, TagLoss::hamming(vocabulary.tags.len()), constraints.clone()).unwrap();
    let inputs = sentences(&data);
    let outputs: Vec<Vec<u32>> = (0..data.len()).map(|s| data.tags[data.sentence(s)].to_vec()).collect();
    let formulation = Formulation { c: 30.0, ..Formulation::default() };
    let problem = Problem::new(&task, &inputs, &outputs, None, formulation).unwrap();
    let solution = Bcfw::default().solve(&problem, &Settings::default(), &mut ()).unwrap();
    drop(problem); // which borrows the data
    let report = &solution.report;
    let summary = Summary {
        solver: report.solver.to_owned(),
        status: Status::Converged,
        certificate: Certificate::Exact,
        examples: data.len() as u64,
        c: 30.0,
        epsilon: 0.01,
        primal: report.primal,
        primal_error: report.primal_error,
        dual: report.dual,
        gap: report.gap,
        rounds: report.rounds,
        passes: report.passes,
        train_loss: 0.0,
    };
    let weights = TagWeights::new(&task, &solution.weights);
    let loss = task.tag_loss().clone();
    let data_checksum = data.checksum;
    let tagger = Tagger {
        format,
        vocabulary,
        order,
        loss,
        constraints,
        formulation,
        data_checksum,
        summary,
        weights,
        kernel: None,
    };
    (tagger, data, solution.weights)
}

fn template() -> Features {
    let text = b"U0:%x[0,0]\nU1:%x[-1,0]/%x[0,1]\nB1:%x[0,1]\n";
    Features::Template(Template::parse("template", text).unwrap())
}

/// Taggers of every kind.
fn all() -> Vec<(Tagger, Sequences, Weights)> {
    vec![
        trained(Order::First, Features::BuiltIn, None),
        trained(Order::Second, Features::BuiltIn, Some(Scheme::Bio)),
        trained(Order::First, template(), Some(Scheme::Bio)),
    ]
}

fn back(tagger: &Tagger) -> Tagger {
    match Saved::from_bytes(&tagger.to_bytes().unwrap()).unwrap() {
        Saved::Tagger(tagger) => *tagger,
        other => panic!("a tagger, not {:?}", other.task()),
    }
}

#[test]
fn taggers_come_back_and_predict_as_the_task_does() {
    for (tagger, data, w) in all() {
        assert_eq!(back(&tagger), tagger);
        assert_eq!(tagger.to_bytes().unwrap(), back(&tagger).to_bytes().unwrap());
        let (task, loaded) = (tagger.task().unwrap(), back(&tagger));
        let predictor = loaded.predictor().unwrap();
        let (mut scratch, mut ours, mut theirs) = (TagScratch::default(), Vec::new(), Vec::new());
        for x in sentences(&data) {
            let score = predictor.predict(x, &mut scratch, &mut ours);
            task.argmax(&w, x, None, &mut scratch, &mut theirs).unwrap();
            assert_eq!(ours, theirs);
            assert!((score - task.score(&w, x, &ours).unwrap()).abs() < 1e-12);
        }
    }
}

#[test]
fn forced_tags_stay_and_the_rest_follows() {
    let (tagger, data, _) = trained(Order::First, Features::BuiltIn, Some(Scheme::Bio));
    let predictor = tagger.predictor().unwrap();
    let at = |name: &str| tagger.vocabulary.tags.iter().position(|tag| tag == name).unwrap() as u32;
    let (mut scratch, mut y) = (TagScratch::default(), Vec::new());
    let x = sentences(&data)[0];
    let free = u32::MAX;
    predictor.fill(x, Some(&[free, at("I-PER"), free, free]), &mut scratch);
    assert!(scratch.chain.best(&mut y) > f64::NEG_INFINITY);
    // The scheme lets I-PER come after a part of such a chunk only.
    assert_eq!((y[0], y[1]), (at("B-PER"), at("I-PER")));
    predictor.fill(x, Some(&[at("O"), at("I-PER"), free, free]), &mut scratch);
    assert_eq!(scratch.chain.best(&mut y), f64::NEG_INFINITY);
}

#[test]
fn weights_find_their_places_in_another_vocabulary() {
    for (tagger, _, w) in all() {
        let task = tagger.task().unwrap();
        assert_eq!(tagger.weights_over(&tagger.vocabulary, &task), Some(w));
        let others = Vocabulary { tags: vec!["X".to_owned()], ..tagger.vocabulary.clone() };
        assert_eq!(tagger.weights_over(&others, &task), None);
    }
}

#[test]
fn no_byte_may_change_and_none_may_be_missing() {
    let bytes = all()[2].0.to_bytes().unwrap();
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        assert!(Saved::from_bytes(&damaged).is_err(), "byte {at}");
        if at % 7 == 0 {
            assert!(Saved::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
    assert!(Model::from_bytes(&bytes).unwrap_err().to_string().contains("of the task tag"));
}

#[test]
fn what_does_not_fit_is_refused() {
    let (good, ..) = trained(Order::First, template(), Some(Scheme::Bio));
    good.check().unwrap();
    let refused = |what: &str, change: &dyn Fn(&mut Tagger)| {
        let mut bad = good.clone();
        change(&mut bad);
        let message = bad.to_bytes().expect_err(what).to_string();
        assert!(message.contains("not a valid model"), "{what}: {message}");
    };
    refused("a tag twice", &|t| t.vocabulary.tags[1] = t.vocabulary.tags[0].clone());
    refused("an empty tag", &|t| t.vocabulary.tags[0].clear());
    refused("a tag too many", &|t| t.vocabulary.tags.push("X".to_owned()));
    refused("another order", &|t| t.order = Order::Second);
    refused("a weight that is none", &|t| t.weights.structure[3] = f64::NAN);
    refused("too few weights", &|t| t.weights.structure.truncate(5));
    refused("costs of other tags", &|t| t.loss = TagLoss::hamming(2));
    refused("a negative cost", &|t| {
        let tags = t.vocabulary.tags.len();
        t.loss = TagLoss::Hamming(vec![-1.0; tags]);
    });
    refused("no C", &|t| t.formulation.c = 0.0);
    refused("constraints of other tags", &|t| {
        t.constraints = Some(Constraints::none(&["A".to_owned()]));
    });
    refused("a feature too many", &|t| assert!(t.vocabulary.features.intern(b"new").is_some()));
    refused("no weights of features", &|t| t.weights = TagWeights::default());
}

/// The tagger whose features weigh what the tokens of the data add up to with these coefficients: with weights, and with a
/// kernel over the tokens.
fn with_kernel(shape: KernelShape, linear: &Tagger, data: &Sequences) -> (Tagger, Tagger) {
    let (task, tags) = (linear.task().unwrap(), linear.vocabulary.tags.len());
    let n = data.tokens.rows();
    let coefficients: Vec<f64> = (0..n * tags).map(|i| ((i * 37 + 11) % 17) as f64 / 8.0 - 1.0).collect();
    let structure = linear.weights.structure.clone();
    let mut w = structure.clone();
    w.resize(task.dimension(), 0.0);
    for (t, beta) in coefficients.chunks(tags).enumerate() {
        for (j, v) in data.tokens.row(t).iter() {
            (0..tags).for_each(|k| w[task.emission().at(j, k as u32)] += beta[k] * f64::from(v));
        }
    }
    let kernel = Standard { shape, constant: 0.0 };
    let expansion = Expansion::of_atoms(kernel, &data.tokens, &coefficients, tags as u32).unwrap();
    let ours = Tagger { weights: TagWeights::of_structure(structure), kernel: Some(expansion), ..linear.clone() };
    (ours, Tagger { weights: TagWeights::new(&task, &w.into()), ..linear.clone() })
}

#[test]
fn the_linear_kernel_is_no_kernel() {
    for (linear, data, _) in all() {
        let (ours, theirs) = with_kernel(KernelShape::Linear, &linear, &data);
        assert_eq!(back(&ours), ours);
        let (ours, theirs) = (ours.predictor().unwrap(), theirs.predictor().unwrap());
        let (mut a, mut b) = (TagScratch::default(), TagScratch::default());
        let (mut y, mut z, mut m, mut n) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (s, x) in sentences(&data).into_iter().enumerate() {
            let scores = [ours.predict(x, &mut a, &mut y), theirs.predict(x, &mut b, &mut z)];
            assert!((scores[0] - scores[1]).abs() < 1e-4, "{scores:?}");
            assert_eq!(y, z);
            a.chain.margins(&y, &mut m);
            b.chain.margins(&z, &mut n);
            assert!(m.iter().zip(&n).all(|(m, n)| m == n || (m - n).abs() < 1e-4), "{m:?} {n:?}");
            let best = [a.chain.n_best(5), b.chain.n_best(5)];
            assert!(best[0].iter().zip(&best[1]).all(|(a, b)| (a.0 - b.0).abs() < 1e-4));
            let forced = data.tags[data.sentence(s)].to_vec();
            ours.fill(x, Some(&forced), &mut a);
            theirs.fill(x, Some(&forced), &mut b);
            let scores = [a.chain.best(&mut y), b.chain.best(&mut z)];
            assert!((scores[0] - scores[1]).abs() < 1e-4 && y == forced && z == forced, "{scores:?}");
        }
    }
}

#[test]
fn a_kernel_scores_sentences_longer_than_a_block() {
    let (linear, data, _) = trained(Order::First, Features::BuiltIn, None);
    let (ours, theirs) = with_kernel(KernelShape::Linear, &linear, &data);
    let mut tokens = SparseMatrix::new();
    (0..150).for_each(|t| tokens.push_row(data.tokens.row(t * 7 % data.tokens.rows()).iter()));
    let x = Sentence::new(&tokens, None, 0..150);
    let (mut scratch, mut y, mut z) = (TagScratch::default(), Vec::new(), Vec::new());
    let score = ours.predictor().unwrap().predict(x, &mut scratch, &mut y);
    let expected = theirs.predictor().unwrap().predict(x, &mut scratch, &mut z);
    assert!((score - expected).abs() < 1e-6 * expected.abs().max(1.0), "{score} {expected}");
    assert_eq!(y, z);
}

#[test]
fn kernel_taggers_are_kept_whole_or_refused() {
    let (linear, data, _) = trained(Order::First, template(), Some(Scheme::Bio));
    let (good, _) = with_kernel(KernelShape::Rbf { gamma: 1.0 / 3.0 }, &linear, &data);
    let bytes = good.to_bytes().unwrap();
    assert_eq!(back(&good).to_bytes().unwrap(), bytes);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        // The blanks after the header have no meaning.
        let loaded = Saved::from_bytes(&damaged);
        assert!(loaded.is_err() || bytes[at] == b' ', "byte {at}");
        assert!(at % 7 > 0 || Saved::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
    }
    assert_eq!(good.weights_over(&good.vocabulary, &good.task().unwrap()), None);

    let refused = |what: &str, change: &dyn Fn(&mut Tagger)| {
        let mut bad = good.clone();
        change(&mut bad);
        let message = bad.to_bytes().unwrap_err().to_string();
        assert!(message.contains(what), "{what}: {message}");
    };
    refused("rows of weights", &|t| t.weights = linear.weights.clone());
    refused("rows of weights", &|t| t.kernel = None);
    refused("transitions", &|t| t.weights.structure.truncate(3));
    refused("coefficients a support vector for 5 tags", &|t| {
        let kernel = t.kernel.take().unwrap();
        let one = vec![1.0; kernel.len()];
        t.kernel = Some(Expansion::new(kernel.kernel(), kernel.vectors().clone(), one, 1).unwrap());
    });
    refused("features beyond", &|t| {
        let kernel = t.kernel.take().unwrap();
        let mut wide = SparseMatrix::new();
        wide.push_row([(t.shape().features, 1.0)]);
        t.kernel = Some(Expansion::new(kernel.kernel(), wide, vec![1.0; 5], 5).unwrap());
    });
}
