//! Models of taxonomies in files: the same model comes back and predicts as before, and whatever is none is refused. And the
//! texts of the fuzz corpus.

use crate::common;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use common::Draw;
use common::taxonomy::{architectures, classes, hierarchy, losses};
use maxmargin::data::input::Input;
use maxmargin::data::taxonomy::{read, read_class_features};
use maxmargin::kernel::{Expansion, Shape, Standard};
use maxmargin::model::{Model, Saved, Summary, TaskKind, TaxonomyModel};
use maxmargin::problem::Formulation;
use maxmargin::solver::{Certificate, Status};
use maxmargin::task::Task;
use maxmargin::tasks::taxonomy::{Architecture, Hierarchy, NodeLoss, Taxonomy, TaxonomyScratch};
use maxmargin::weights::Weights;

const D: u32 = 4;
const CLASSES: usize = 5;

fn summary() -> Summary {
    Summary {
        solver: "dual-coordinate".to_owned(),
        status: Status::Converged,
        certificate: Certificate::Exact,
        examples: 7,
        c: 0.1 + 0.2,
        epsilon: 0.01,
        primal: 1.0 / 3.0,
        primal_error: 0.0,
        dual: 0.3,
        gap: 1.0 / 3.0 - 0.3,
        rounds: 3,
        passes: 4.5,
        train_loss: 0.0,
    }
}

fn model(draw: &mut Draw, h: &Arc<Hierarchy>, architecture: &Architecture, loss: NodeLoss, bias: f64) -> TaxonomyModel {
    let model = TaxonomyModel {
        hierarchy: Arc::clone(h),
        classes: classes(draw, h, CLASSES),
        architecture: architecture.clone(),
        features: D,
        bias,
        loss,
        formulation: Formulation { c: 0.1 + 0.2, ..Formulation::default() },
        data_checksum: 99,
        summary: summary(),
        weights: Weights::default(),
        kernel: None,
    };
    let weights = draw.weights(model.task().unwrap().dimension(), 1.0);
    TaxonomyModel { weights, ..model }
}

/// Trees and lattices, with all losses, all that classes may share, with and without a constant feature.
fn models() -> Vec<TaxonomyModel> {
    let mut draw = Draw(3);
    let mut models = Vec::new();
    for is_tree in [true, false] {
        let h = hierarchy(&mut draw, 9, is_tree);
        for architecture in architectures(&mut draw, CLASSES) {
            for (at, loss) in losses(&mut draw, CLASSES).into_iter().enumerate() {
                let bias = if at % 2 == 0 { 0.0 } else { 1.5 };
                models.push(model(&mut draw, &h, &architecture, loss, bias));
            }
        }
    }
    models
}

fn predictions(model: &TaxonomyModel, threshold: Option<f64>) -> Vec<(u32, Vec<f64>)> {
    let (x, mut all) = (Draw(11).matrix(70, D), Vec::new());
    let predictor = model.predictor().unwrap();
    predictor.predict_all(x.range(0..70), threshold, |node, scores| all.push((node, scores.to_vec())));
    all
}

#[test]
fn models_come_back_and_predict_as_before() {
    let x = Draw(11).matrix(70, D);
    for model in models() {
        let bytes = model.to_bytes().unwrap();
        let saved = Saved::from_bytes(&bytes).unwrap();
        assert_eq!(saved.task(), TaskKind::Taxonomy);
        let Saved::Taxonomy(loaded) = saved else { panic!("a model of a taxonomy") };
        assert_eq!(*loaded, model);
        assert_eq!(loaded.to_bytes().unwrap(), bytes);
        let found = predictions(&model, None);
        assert_eq!(found, predictions(&loaded, None));
        // What training calls its prediction.
        let (task, mut y) = (model.task().unwrap(), 0);
        let rows = if model.bias == 0.0 { x.clone() } else { x.with_constant(model.bias as f32) };
        for (i, (node, _)) in found.iter().enumerate() {
            task.argmax(&model.weights, rows.row(i), None, &mut TaxonomyScratch::default(), &mut y).unwrap();
            assert_eq!(*node, y);
        }
        assert_eq!(predictions(&model, Some(0.0)), found);
        // Who asks for too much gets a node above all classes.
        for (node, _) in predictions(&model, Some(1e9)) {
            assert!(model.classes.iter().all(|&class| model.hierarchy.is_below(class, node)));
        }
        assert_eq!(model.weights_over(D), model.weights);
        TaxonomyModel { weights: model.weights_over(D + 2), features: D + 2, ..model.clone() }.check().unwrap();
    }
}

/// The linear kernel's model is the linear model with the weights that its support vectors add up to.
#[test]
fn a_kernel_model_comes_back() {
    let mut draw = Draw(5);
    for linear in models() {
        let vectors = draw.matrix(6, D);
        let task: Taxonomy = linear.task().unwrap();
        let width = task.slots();
        let coefficients: Vec<f64> = (0..6 * width).map(|_| draw.signed()).collect();
        let square = f64::from(linear.bias as f32).powi(2);
        let kernel = Standard { shape: Shape::Linear, constant: square };
        let mut weights = vec![0.0; linear.weights.len()];
        for (j, row) in coefficients.chunks_exact(width).enumerate() {
            for (feature, value) in vectors.row(j).iter() {
                row.iter().enumerate().for_each(|(k, c)| weights[feature as usize * width + k] += c * f64::from(value));
            }
            if linear.bias != 0.0 {
                row.iter().enumerate().for_each(|(k, c)| weights[D as usize * width + k] += c * linear.bias);
            }
        }
        let expansion = Expansion::new(kernel, vectors, coefficients, width as u32).unwrap();
        let of_kernel = TaxonomyModel { weights: Weights::default(), kernel: Some(expansion), ..linear.clone() };
        let linear = TaxonomyModel { weights: weights.into(), ..linear };
        let bytes = of_kernel.to_bytes().unwrap();
        let Saved::Taxonomy(loaded) = Saved::from_bytes(&bytes).unwrap() else { panic!("a model of a taxonomy") };
        assert_eq!((&*loaded, loaded.to_bytes().unwrap()), (&of_kernel, bytes));
        for ((_, a), (_, b)) in predictions(&loaded, None).iter().zip(predictions(&linear, None)) {
            a.iter().zip(&b).for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} is not {b}"));
        }
        assert!(TaxonomyModel { weights: draw.weights(3, 1.0), ..of_kernel.clone() }.check().is_err());
        assert!(TaxonomyModel { features: 1, ..of_kernel.clone() }.check().is_err());
    }
}

#[test]
fn no_byte_may_change_and_none_may_be_missing() {
    let models = models();
    for bytes in [5, 11, 16].map(|at| models[at].to_bytes().unwrap()) {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert!(Saved::from_bytes(&damaged).is_err(), "byte {at}");
            if at % 7 == 0 {
                assert!(Saved::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
            }
        }
    }
}

/// Changes the record and the tensors of a file and mends its checksum: damage that only a reader of the content can see.
fn forged(bytes: &[u8], change: impl Fn(String, Vec<u8>) -> (String, Vec<u8>)) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let record = header["__metadata__"]["model"].as_str().unwrap().to_owned();
    let (record, tensors) = change(record, bytes[8 + length..].to_vec());
    let crc = format!("{:08x}", crc32fast::hash(&[record.as_bytes(), &tensors].concat()));
    header.as_object_mut().unwrap().remove("__metadata__");
    let (rest, record) = (serde_json::to_string(&header).unwrap(), serde_json::to_string(&record).unwrap());
    let header = format!(r#"{{"__metadata__":{{"maxmargin":"1","crc32":"{crc}","model":{record}}},{}"#, &rest[1..]);
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &tensors].concat()
}

fn refused(bytes: &[u8], word: &str) {
    let error = Saved::from_bytes(bytes).expect_err(word).to_string();
    assert!(error.contains(word), "{word}: {error}");
}

#[test]
fn forged_models_are_refused() {
    let model = &models()[5];
    let bytes = model.to_bytes().unwrap();
    let names = model.hierarchy.names();
    let with_record = |from: &str, to: &str| {
        forged(&bytes, |record, tensors| {
            assert!(record.contains(from), "{from} in {record}");
            (record.replace(from, to), tensors)
        })
    };
    assert!(Saved::from_bytes(&with_record("\"data_checksum\":99", "\"data_checksum\":98")).is_ok());
    let (first, second) = (format!("\"{}\"", names[1]), format!("\"{}\"", names[2]));
    for (from, to, word) in [
        (first.as_str(), second.as_str(), "there twice"),
        (&first, "\"\"", "no word"),
        (&first, "\"a b\"", "no word"),
        (&first, "\"x\",\"y\"", ""),
        ("\"features\":4", "\"features\":4294967295", "too many"),
        ("\"features\":4", "\"features\":3", "weights where"),
        ("\"bias\":1.5", "\"bias\":1e300", "f32"),
        ("\"architecture\":\"taxonomy\"", "\"architecture\":\"flat\"", "weights where"),
        ("\"architecture\":\"taxonomy\"", "\"architecture\":\"features\"", "lacks an entry"),
        ("\"architecture\":\"taxonomy\"", "\"architecture\":\"round\"", "damaged"),
        ("\"loss\":\"tree\"", "\"loss\":{\"matrix\":[1,2]}", "2 numbers for 5 classes"),
        ("\"task\":\"taxonomy\"", "\"task\":\"multiclass\"", "damaged"),
    ] {
        refused(&with_record(from, to), word);
    }
    // Tensors stand in the order of their names: classes, edges, weights.
    let classes = 4 * model.classes.len();
    let with_number = |at: usize, number: u32| {
        forged(&bytes, |record, mut tensors| {
            tensors[at..at + 4].copy_from_slice(&number.to_le_bytes());
            (record, tensors)
        })
    };
    refused(&with_number(0, 8), "must be nodes");
    refused(&with_number(classes - 4, 9), "must be nodes");
    refused(&with_number(classes, 9), "an edge of node 9");
    refused(&with_number(classes + 4, u32::MAX), "an edge of node");
    refused(&with_number(classes + 4, 1), "no taxonomy: ");
    let weight = classes + 8 * (model.hierarchy.len() - 1);
    refused(
        &forged(&bytes, |record, mut tensors| {
            tensors[weight..weight + 8].copy_from_slice(&f64::NAN.to_le_bytes());
            (record, tensors)
        }),
        "a weight is NaN",
    );
}

#[test]
fn older_files_still_load_and_other_tasks_are_told_apart() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model");
    // Written by the first version with this task; whatever becomes of the format, it must stay readable.
    let kept = TaxonomyModel::load(corpus.join("good-taxonomy")).unwrap();
    assert_eq!(kept.labels(), ["sparrow", "mammal", "cat", "dog"]);
    assert_eq!((kept.hierarchy.names()[0].as_str(), &kept.loss), ("animal", &NodeLoss::Tree));
    let error = TaxonomyModel::load(corpus.join("good-binary")).unwrap_err().to_string();
    assert!(error.contains("a model of the task binary, not of a taxonomy"), "{error}");
    let error = Model::load(corpus.join("good-taxonomy")).unwrap_err().to_string();
    assert!(error.contains("a model of the task taxonomy, not of classes"), "{error}");
}

/// No text of the corpus makes the readers panic; those that are sound are read.
#[test]
fn the_corpus() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/taxonomy");
    let (mut files, mut trees, mut features) = (0, Vec::new(), Vec::new());
    let small = Hierarchy::new(&["a", "b", "r"].map(str::to_owned), &[(0, 2), (1, 2)]).unwrap();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let (bytes, name) = (fs::read(&path).unwrap(), path.file_name().unwrap().to_str().unwrap().to_owned());
        files += 1;
        if Input::new("fuzz", bytes.as_slice()).and_then(read).is_ok() {
            trees.push(name.clone());
        }
        let of_classes = |input| read_class_features(input, &small, &[1, 2]);
        if Input::new("fuzz", bytes.as_slice()).and_then(of_classes).is_ok() {
            features.push(name);
        }
    }
    trees.sort();
    features.sort();
    assert_eq!(
        (files, trees),
        (14, ["bom", "features-nan", "lattice", "packed.gz", "plain"].map(str::to_owned).to_vec())
    );
    assert_eq!(features, ["cycle", "features", "two-roots"]);
}
