//! Models of label sets and of graphs in files: the same model comes back and predicts as before, and whatever is none is
//! refused.

use std::fs;
use std::path::{Path, PathBuf};

use maxmargin::data::graphs::{self, Graphs};
use maxmargin::data::input::Input;
use maxmargin::data::label_sets::{LabelSets, learn};
use maxmargin::data::svmlight::{LabelRule, Labelled, read};
use maxmargin::model::labeller::SetBuffers;
use maxmargin::model::{GraphLabeller, Labeller, Model, Parser, Saved, Summary, TaskKind};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Formulation, Problem};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::{Certificate, Settings, Solution, Solver, Status};
use maxmargin::sparse::SparseView;
use maxmargin::task::Task;
use maxmargin::tasks::factor_graph::{FactorGraph, Graph, GraphScratch};
use maxmargin::tasks::multilabel::{Multilabel, Pairs, SetLoss, SetScratch};
use maxmargin::weights::Weights;

const SETS: &str = "\
sea,sky 1:1 2:0.5
sea,sky 1:0.9 2:0.4 4:0.1
sky 2:1 3:-0.2
wood 3:1
wood,sky 2:0.8 3:0.7
sea,sky,wood 1:1 2:1 3:1
 4:1
town 3:0.2 4:1
";

const GRAPHS: &str = r#"
{"domain": 2, "labels": [0, 1, 1], "x": [[1, 0], [0, 1], {"1": 0.5}], "factors": {"next": [[0, 1], [1, 2]]}}
{"domain": [2, 3, 2], "labels": [1, 2, 0], "x": [[0, 1], [1, 1], [1, 0]], "factors": {"end": [[0, 1, 2]], "next": [[0, 2]]}}
{"domain": [3, 3], "labels": [1, 0], "x": [[0.5, 1], [1, -1]], "factors": {"pair": [[0, 1]]}, "factor_x": {"pair": [[1, 2, 3]]}}
{"domain": 2, "labels": [1, 1, 0], "x": [[0, 1], [0, 1], [1, 0]], "factors": {"next": [[0, 1], [1, 2], [2, 0]]}}
"#;

fn pool() -> Pool {
    Pool::new(1).unwrap()
}

fn formulation() -> Formulation {
    Formulation { c: 0.1 + 0.2, loss_scale: 1.5, ..Formulation::default() }
}

fn summary(solution: &Solution, examples: usize) -> Summary {
    let report = &solution.report;
    Summary {
        solver: report.solver.to_owned(),
        status: Status::Converged,
        certificate: Certificate::Estimate,
        examples: examples as u64,
        c: formulation().c,
        epsilon: 0.01,
        primal: report.primal,
        primal_error: report.primal_error,
        dual: report.dual,
        gap: report.gap,
        rounds: report.rounds,
        passes: report.passes,
        train_loss: 1.0 / 3.0,
    }
}

fn sets() -> (Labelled, LabelSets) {
    let examples = read(Input::new("sets", SETS.as_bytes()).unwrap(), LabelRule::Set, &pool()).unwrap();
    let sets = learn(&examples, "sets").unwrap();
    (examples, sets)
}

fn labeller(pairs: Pairs, loss: SetLoss, bias: f32) -> Labeller {
    let (examples, LabelSets { labels, sets }) = sets();
    let features = examples.matrix.columns();
    let matrix = if bias == 0.0 { examples.matrix.clone() } else { examples.matrix.with_constant(bias) };
    let task = Multilabel::new(matrix.columns(), labels.len() as u32, pairs, loss).unwrap();
    let rows = matrix.views();
    let problem = Problem::new(&task, &rows, &sets, None, formulation()).unwrap();
    let solution = Bcfw::default().solve(&problem, &Settings::default(), &mut ()).unwrap();
    Labeller {
        labels,
        features,
        bias: f64::from(bias),
        pairs: task.pairs().clone(),
        loss,
        formulation: formulation(),
        data_checksum: examples.checksum,
        summary: summary(&solution, sets.len()),
        weights: solution.weights,
    }
}

/// Models of label sets of every kind.
fn labellers() -> Vec<Labeller> {
    let sets = sets().1.sets;
    vec![
        labeller(Pairs::none(4), SetLoss::Hamming, 0.0),
        labeller(Pairs::tree(4, &sets), SetLoss::F1, 0.3),
        labeller(Pairs::top(4, &sets, 3), SetLoss::Hamming, 0.0),
        labeller(Pairs::all(4).unwrap(), SetLoss::Hamming, -1.0),
    ]
}

fn graphs() -> (Graphs, GraphLabeller) {
    let (data, shape) = graphs::read(Input::new("graphs", GRAPHS.as_bytes()).unwrap(), &pool()).unwrap();
    let task = FactorGraph::new(shape).unwrap();
    let inputs: Vec<&Graph> = data.graphs.iter().collect();
    let problem = Problem::new(&task, &inputs, &data.labels, None, formulation()).unwrap();
    let solution = Bcfw::default().solve(&problem, &Settings::default(), &mut ()).unwrap();
    drop(problem); // which borrows the data
    let model = GraphLabeller {
        shape: task.shape().clone(),
        formulation: formulation(),
        data_checksum: data.checksum,
        summary: summary(&solution, inputs.len()),
        weights: solution.weights,
    };
    (data, model)
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model")
}

#[test]
fn label_sets_come_back_and_predict_as_before() {
    let (examples, _) = sets();
    for model in labellers() {
        let bytes = model.to_bytes().unwrap();
        let saved = Saved::from_bytes(&bytes).unwrap();
        assert_eq!(saved.task(), TaskKind::Multilabel);
        let Saved::Labeller(loaded) = saved else { panic!("a model of label sets") };
        assert_eq!(*loaded, model);
        assert_eq!(loaded.to_bytes().unwrap(), bytes);
        let (ours, theirs) = (model.predictor().unwrap(), loaded.predictor().unwrap());
        let task = model.task().unwrap();
        let with_constant = examples.matrix.with_constant(model.bias as f32);
        let (mut a, mut b) = (SetBuffers::default(), SetBuffers::default());
        let (mut y, mut again, mut of_task, mut scratch) = (Vec::new(), Vec::new(), Vec::new(), SetScratch::default());
        for i in 0..examples.len() {
            ours.predict(examples.matrix.row(i), 0.0, &mut a, &mut y);
            theirs.predict(examples.matrix.row(i), 0.0, &mut b, &mut again);
            assert_eq!((&y, &a.gains), (&again, &b.gains));
            // What training calls its prediction.
            let x = if model.bias == 0.0 { examples.matrix.row(i) } else { with_constant.row(i) };
            task.argmax(&model.weights, x, None, &mut scratch, &mut of_task).unwrap();
            assert_eq!(y, of_task);
        }
        // Features that the model does not know change nothing.
        ours.predict(SparseView::new(&[0, 1], &[1.0, 0.5]), 0.0, &mut a, &mut y);
        ours.predict(SparseView::new(&[0, 1, 4, u32::MAX], &[1.0, 0.5, 7.0, 9.0]), 0.0, &mut a, &mut again);
        assert_eq!(y, again);
        // A threshold above all leaves nothing.
        ours.predict(SparseView::new(&[0], &[1.0]), 1e6, &mut a, &mut y);
        assert_eq!(y, [0_u32; 0]);
    }
}

#[test]
fn graphs_come_back_and_predict_as_before() {
    let (data, model) = graphs();
    let bytes = model.to_bytes().unwrap();
    let Saved::GraphLabeller(loaded) = Saved::from_bytes(&bytes).unwrap() else { panic!("a model of graphs") };
    assert_eq!((&*loaded, loaded.to_bytes().unwrap()), (&model, bytes));
    let (ours, theirs) = (model.task().unwrap(), loaded.task().unwrap());
    let (mut y, mut again) = (Vec::new(), Vec::new());
    for graph in &data.graphs {
        let [mut a, mut b] = [GraphScratch::default(), GraphScratch::default()];
        ours.argmax(&model.weights, graph, None, &mut a, &mut y).unwrap();
        theirs.argmax(&loaded.weights, graph, None, &mut b, &mut again).unwrap();
        assert_eq!(y, again);
        assert!(a.found().unwrap().bound >= a.found().unwrap().value);
    }
}

#[test]
fn weights_find_their_places_over_other_data() {
    for model in labellers() {
        assert_eq!(model.weights_over(model.features, &model.pairs), model.weights);
        let every = Pairs::all(4).unwrap();
        let wide =
            Labeller { weights: model.weights_over(9, &every), features: 9, pairs: every.clone(), ..model.clone() };
        if model.loss == SetLoss::Hamming {
            wide.check().unwrap();
        }
        let ((rows, of_pairs), (wide_rows, wide_pairs)) = (model.parts(), wide.parts());
        let known = model.features as usize * 4;
        assert_eq!(rows[..known], wide_rows[..known]);
        assert_eq!(rows[known..], wide_rows[36..], "the constant feature stays the last");
        assert!(wide_rows[known..36].iter().all(|&w| w == 0.0));
        every.each(|number, a, b| {
            let expected = model.pairs.number(a, b).map_or(0.0, |own| of_pairs[own]);
            assert_eq!(wide_pairs[number], expected);
        });
    }
    let (_, model) = graphs();
    let task = model.task().unwrap();
    assert_eq!(model.weights_over(&task).unwrap(), model.weights);
    // Fewer templates, another domain, more features.
    let text = r#"{"domain": [2, 5], "labels": [0, 4], "x": [[1, 2, 3], [0]], "factors": {"other": [[0, 1]]}}"#;
    let shape = graphs::read(Input::new("other", text.as_bytes()).unwrap(), &pool()).unwrap().1;
    let other = FactorGraph::new(shape).unwrap();
    let moved = model.weights_over(&other).unwrap();
    let (from, to) = (task.blocks()[0], other.blocks()[0]);
    assert_eq!((from.rows, to.rows, from.width, to.width), (2, 3, 2, 2));
    assert_eq!(moved.as_slice()[..4], model.weights.as_slice()[..4]);
    assert!(moved.as_slice()[4..].iter().all(|&w| w == 0.0));
    // A template of the same name over other variables, and nothing in common.
    for text in [
        r#"{"domain": [2, 3], "labels": [0, 0], "x": [[1], [1]], "factors": {"next": [[0, 1]]}}"#,
        r#"{"domain": 7, "labels": [0], "x": [[1]]}"#,
    ] {
        let shape = graphs::read(Input::new("other", text.as_bytes()).unwrap(), &pool()).unwrap().1;
        assert_eq!(model.weights_over(&FactorGraph::new(shape).unwrap()), None, "{text}");
    }
}

#[test]
fn no_byte_may_change_and_none_may_be_missing() {
    let files =
        [labellers()[1].to_bytes().unwrap(), labellers()[2].to_bytes().unwrap(), graphs().1.to_bytes().unwrap()];
    for bytes in files {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(Saved::from_bytes(&damaged).is_err(), "byte {at}");
            if at % 7 == 0 {
                assert!(Saved::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
            }
        }
        assert!(Model::from_bytes(&bytes).unwrap_err().to_string().contains("not of classes"));
    }
}

/// Changes the header of a file, its record and its tensors, and mends its checksum: damage that only a reader of the content can
/// see.
fn forged(bytes: &[u8], change: &dyn Fn(String, Vec<u8>) -> (String, Vec<u8>), from: &str, to: &str) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let record = header["__metadata__"]["model"].as_str().unwrap().to_owned();
    let (record, tensors) = change(record, bytes[8 + length..].to_vec());
    let crc = format!("{:08x}", crc32fast::hash(&[record.as_bytes(), &tensors].concat()));
    header.as_object_mut().unwrap().remove("__metadata__");
    let rest = serde_json::to_string(&header).unwrap();
    assert!(from.is_empty() || rest.contains(from), "{from} in {rest}");
    let rest = if from.is_empty() { rest } else { rest.replace(from, to) };
    let record = serde_json::to_string(&record).unwrap();
    // The version comes first in our files.
    let metadata = format!(r#"{{"maxmargin":"1","crc32":"{crc}","model":{record}}}"#);
    let header = format!(r#"{{"__metadata__":{metadata},{}"#, &rest[1..]);
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &tensors].concat()
}

fn with_record(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let change = |record: String, tensors: Vec<u8>| {
        assert!(record.contains(from), "{from} in {record}");
        (record.replace(from, to), tensors)
    };
    forged(bytes, &change, "", "")
}

fn refused(bytes: &[u8], word: &str) {
    let error = Saved::from_bytes(bytes).expect_err(word).to_string();
    assert!(error.contains(word), "{word}: {error}");
}

#[test]
fn forged_label_sets_are_refused() {
    let [listed, all] = [2, 3].map(|at| labellers()[at].to_bytes().unwrap());
    assert!(Saved::from_bytes(&with_record(&listed, "sea", "sun")).is_ok());
    for (from, to, word) in [
        ("\"features\":4", "\"features\":4294967295", "weights where"),
        ("\"features\":4", "\"features\":3", "weights where"),
        ("\"features\":4", "\"features\":-4", "damaged"),
        ("\"sea\"", "\"sea\",\"lake\"", "for 5 labels"),
        ("\"sea\"", "\"sky\"", "there twice"),
        ("\"sea\"", "\"\"", "no word"),
        ("\"sea\"", "\"a,b\"", "no word"),
        ("\"sea\"", "\"a\\nb\"", "no word"),
        ("\"listed\"", "\"none\"", ""),
        ("\"listed\"", "\"all\"", "weights of 6 pairs"),
        ("\"listed\"", "\"some\"", "damaged"),
        ("\"bias\":0.0", "\"bias\":1e300", "f32"),
        ("\"bias\":0.0", "\"bias\":\"NaN\"", "f32"),
        ("\"bias\":0.0", "\"bias\":1", "weights where"),
        ("\"hamming\"", "\"zero-one\"", "damaged"),
        ("\"loss_scale\":1.5", "\"loss_scale\":-1.5", "loss scale is"),
        ("\"task\":\"multilabel\"", "\"task\":\"graph\"", "damaged"),
        ("\"task\":\"multilabel\"", "\"task\":\"multiclass\"", "damaged"),
    ] {
        let forged = with_record(&listed, from, to);
        if word.is_empty() {
            // Tensors that nobody needs are not looked at.
            assert!(Saved::from_bytes(&forged).is_ok());
        } else {
            refused(&forged, word);
        }
    }
    refused(&with_record(&all, "\"all\"", "\"listed\""), "lacks an entry");
    refused(&with_record(&all, "\"features\":4", "\"features\":4294967295"), "too many");
    // Pairs that are none, or there twice: their tensor stands between that of their weights and that of the others.
    let model = &labellers()[2];
    let at = 8 * model.pairs.len();
    for (place, number) in [(0, 4_u32), (1, 9), (0, u32::MAX), (1, 0)] {
        let change = |record: String, mut tensors: Vec<u8>| {
            tensors[at + 4 * place..][..4].copy_from_slice(&number.to_le_bytes());
            (record, tensors)
        };
        refused(&forged(&listed, &change, "", ""), "pairs");
    }
    let twice = |record: String, mut tensors: Vec<u8>| {
        tensors.copy_within(at..at + 8, at + 8);
        (record, tensors)
    };
    refused(&forged(&listed, &twice, "", ""), "pairs");
    // Numbers that are none.
    for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        for place in [0, at + 8 * model.pairs.len()] {
            let change = |record: String, mut tensors: Vec<u8>| {
                tensors[place..place + 8].copy_from_slice(&number.to_le_bytes());
                (record, tensors)
            };
            refused(&forged(&listed, &change, "", ""), "a weight is");
        }
    }
    // Tensors of another form.
    let as_they_are = |record: String, tensors: Vec<u8>| (record, tensors);
    refused(&forged(&listed, &as_they_are, "\"shape\":[4,4]", "\"shape\":[16]"), "not a matrix");
    refused(&forged(&listed, &as_they_are, "\"shape\":[4,4]", "\"shape\":[8,2]"), "rows of 2 weights");
    refused(&forged(&listed, &as_they_are, "\"shape\":[3,2]", "\"shape\":[2,3]"), "rows of two");
}

#[test]
fn forged_graphs_are_refused() {
    let bytes = graphs().1.to_bytes().unwrap();
    for (from, to, word) in [
        ("\"domains\":[2,3],\"features\":2", "\"domains\":[2,3],\"features\":4294967295", "weights"),
        ("\"domains\":[2,3],\"features\":2", "\"domains\":[3,2],\"features\":2", "do not ascend"),
        ("\"domains\":[2,3],\"features\":2", "\"domains\":[0,2,3],\"features\":2", "do not ascend"),
        ("\"domains\":[2,3],\"features\":2", "\"domains\":[],\"features\":2", "do not ascend"),
        ("\"domains\":[2,3,2]", "\"domains\":[]", "variables that there are not"),
        ("\"domains\":[2,3,2]", "\"domains\":[2,3,9]", "variables that there are not"),
        ("\"domains\":[2,3,2]", "\"domains\":[2,3]", "weights where"),
        ("\"name\":\"next\"", "\"name\":\"end\"", "order of their names"),
        ("\"features\":3", "\"features\":null", "weights where"),
        ("\"features\":3", "\"features\":4000000000", "weights"),
        ("\"c\":0.30000000000000004", "\"c\":0", "c is 0"),
        ("\"task\":\"graph\"", "\"task\":\"parse\"", "damaged"),
    ] {
        refused(&with_record(&bytes, from, to), word);
    }
    // Tables of more labels than there can be: refused before memory is taken.
    let huge = format!("\"domains\":[{}]", ["3"; 60].join(","));
    refused(&with_record(&bytes, "\"domains\":[2,3,2]", &huge), "too large");
    for number in [f64::NAN, f64::INFINITY] {
        let change = |record: String, mut tensors: Vec<u8>| {
            tensors[16..24].copy_from_slice(&number.to_le_bytes());
            (record, tensors)
        };
        refused(&forged(&bytes, &change, "", ""), "a weight is");
    }
    let as_they_are = |record: String, tensors: Vec<u8>| (record, tensors);
    refused(&forged(&bytes, &as_they_are, "\"F64\"", "\"U64\""), "not numbers");
}

#[test]
fn what_does_not_fit_is_not_saved() {
    let labeller = labellers()[1].clone();
    let bad = |change: &dyn Fn(&mut Labeller)| {
        let mut bad = labeller.clone();
        change(&mut bad);
        let message = bad.to_bytes().expect_err("a bad model").to_string();
        assert!(message.contains("not a valid model"), "{message}");
    };
    bad(&|m| m.weights.as_mut_slice()[1] = f64::NAN);
    bad(&|m| m.weights = Weights::zeros(m.weights.len() - 1));
    bad(&|m| m.labels[0] = m.labels[1].clone());
    bad(&|m| m.labels.clear());
    bad(&|m| m.pairs = Pairs::none(9));
    bad(&|m| m.pairs = Pairs::all(4).unwrap());
    bad(&|m| m.bias = f64::INFINITY);
    bad(&|m| m.formulation.c = 0.0);
    bad(&|m| (m.features, m.bias) = (u32::MAX, 1.0));
    let bad = |change: &dyn Fn(&mut GraphLabeller)| {
        let mut bad = graphs().1;
        change(&mut bad);
        let message = bad.to_bytes().expect_err("a bad model").to_string();
        assert!(message.contains("not a valid model"), "{message}");
    };
    bad(&|m| m.weights.as_mut_slice()[1] = f64::NAN);
    bad(&|m| m.weights = Weights::zeros(3));
    bad(&|m| m.shape.templates.reverse());
    bad(&|m| m.shape.domains.clear());
    bad(&|m| m.formulation.loss_scale = f64::NAN);
}

#[test]
fn models_of_other_tasks_are_told_apart_and_older_files_still_load() {
    let folder = tempfile::tempdir().unwrap();
    let [sets, of_graphs] = ["s.mm", "g.mm"].map(|name| folder.path().join(name));
    labellers()[0].save(&sets).unwrap();
    graphs().1.save(&of_graphs).unwrap();
    assert_eq!(Labeller::load(&sets).unwrap(), labellers()[0]);
    assert_eq!(GraphLabeller::load(&of_graphs).unwrap(), graphs().1);
    for (error, words) in [
        (Labeller::load(&of_graphs).unwrap_err(), "g.mm: a model of the task graph, not of label sets"),
        (GraphLabeller::load(&sets).unwrap_err(), "s.mm: a model of the task multilabel, not of graphs"),
        (Parser::load(&sets).unwrap_err(), "a model of the task multilabel, not of trees"),
        (Labeller::load(corpus().join("good-binary")).unwrap_err(), "a model of the task binary, not of label sets"),
    ] {
        assert!(error.to_string().contains(words), "{error}");
    }
    // Written by the first version with these tasks; whatever becomes of the format, they must stay readable.
    let kept = fs::read(corpus().join("good-multilabel")).unwrap();
    let Saved::Labeller(kept) = Saved::from_bytes(&kept).unwrap() else { panic!("a model of label sets") };
    assert!(kept.pairs.len() == 3 && kept.labels.len() == 4);
    let kept = fs::read(corpus().join("good-graph")).unwrap();
    let Saved::GraphLabeller(kept) = Saved::from_bytes(&kept).unwrap() else { panic!("a model of graphs") };
    assert_eq!(kept.shape.templates.len(), 3);
}
