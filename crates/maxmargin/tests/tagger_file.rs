//! Taggers in files: the same model comes back, whatever is not one is refused, and prediction from the sparse weights is the
//! argmax of the task.

use maxmargin::data::input::Input;
use maxmargin::data::tagging::{Features, Format, Sequences, Template, Vocabulary, read};
use maxmargin::inference::chain::Order;
use maxmargin::model::tagger::TagWeights;
use maxmargin::model::{Model, Saved, Summary, Tagger};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Problem};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::{Certificate, Settings, Solver, Status};
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
    let report = &solution.report;
    let summary = Summary {
        solver: report.solver.to_owned(),
        status: Status::Converged,
        certificate: Certificate::Exact,
        examples: data.len() as u64,
        c: 30.0,
        epsilon: 0.01,
        primal: report.primal,
        dual: report.dual,
        gap: report.gap,
        rounds: report.rounds,
        passes: report.passes,
        train_loss: 0.0,
    };
    let weights = TagWeights::new(&task, &solution.weights);
    let loss = task.tag_loss().clone();
    let data_checksum = data.checksum;
    let tagger = Tagger { format, vocabulary, order, loss, constraints, formulation, data_checksum, summary, weights };
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
