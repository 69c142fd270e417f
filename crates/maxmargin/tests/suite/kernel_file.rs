//! Models with kernels: their files, as they should be and as they should not, and prediction with them.

use std::fs;
use std::path::Path;

use maxmargin::kernel::{Expansion, Kernel, Shape, Standard};
use maxmargin::model::{Loss, Model, Summary, TaskKind};
use maxmargin::problem::Formulation;
use maxmargin::solver::{Certificate, Status};
use maxmargin::sparse::{SparseMatrix, SparseView};
use maxmargin::task::first_max;
use maxmargin::weights::Weights;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

/// Features of the models; rows have up to three more.
const FEATURES: u32 = 6;

fn model(task: TaskKind, bias: f32, expansion: Expansion) -> Model {
    let labels = if task == TaskKind::Binary { 2 } else { expansion.width() };
    Model {
        task,
        labels: (0..labels).map(|k| format!("c{k}")).collect(),
        features: FEATURES,
        bias: f64::from(bias),
        loss: Loss::ZeroOne,
        formulation: Formulation::default(),
        data_checksum: 77,
        summary: Summary {
            solver: "one-slack".to_owned(),
            status: Status::Converged,
            certificate: Certificate::Exact,
            examples: 5,
            c: 0.1,
            epsilon: 0.01,
            primal: 1.0 / 3.0,
            primal_error: 0.0,
            dual: 0.3,
            gap: 1.0 / 3.0 - 0.3,
            rounds: 7,
            passes: 8.4,
            train_loss: 0.2,
        },
        weights: Weights::default(),
        kernel: Some(expansion),
    }
}

/// Three support vectors, one of them empty, for three classes.
fn small() -> Model {
    let mut vectors = SparseMatrix::new();
    vectors.push_row([(0, 1.0), (2, -1.5)]);
    vectors.push_row([]);
    vectors.push_row([(1, 0.1), (3, 1e-40), (5, 3.0)]);
    let coefficients = vec![0.1, -0.0, 2.0, 1e300, f64::MIN_POSITIVE, 5e-324, 1.0, -2.0, 1.0 / 3.0];
    let kernel = Standard { shape: Shape::Poly { degree: 3, gamma: 0.1, coef0: 1.0 / 3.0 }, constant: 4.0 };
    model(TaskKind::Multiclass, 2.0, Expansion::new(kernel, vectors, coefficients, 3).unwrap())
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Linear),
        (1e-9..3.0f64).prop_map(|gamma| Shape::Rbf { gamma }),
        (1..5u32, 1e-9..2.0f64, -1.0..2.0f64).prop_map(|(degree, gamma, coef0)| Shape::Poly { degree, gamma, coef0 }),
        (0.1..2.0f64, -1.0..1.0f64).prop_map(|(gamma, coef0)| Shape::Sigmoid { gamma, coef0 }),
    ]
}

fn row(end: u32) -> impl Strategy<Value = Vec<(u32, f32)>> {
    btree_map(0..end, -2.0..2.0f32, 0..end as usize).prop_map(|row| row.into_iter().collect())
}

fn matrix(rows: &[Vec<(u32, f32)>]) -> SparseMatrix {
    let mut matrix = SparseMatrix::new();
    for row in rows {
        matrix.push_row(row.iter().copied());
    }
    matrix
}

fn models() -> impl Strategy<Value = Model> {
    let parts = (shapes(), 0..3u8, 1..5u32, vec(row(FEATURES), 0..7), vec(-2.0..2.0f64, 4 * 7));
    parts.prop_map(|(shape, bias, width, vectors, coefficients)| {
        let task = if width == 1 { TaskKind::Binary } else { TaskKind::Multiclass };
        let (bias, count) = (0.3 * f32::from(bias), vectors.len() * width as usize);
        let kernel = Standard { shape, constant: f64::from(bias) * f64::from(bias) };
        let coefficients = coefficients[..count].to_vec();
        model(task, bias, Expansion::new(kernel, matrix(&vectors), coefficients, width).unwrap())
    })
}

/// Scores by the definition: features that the model does not know are left out.
fn scores(model: &Model, x: SparseView<'_>) -> Vec<f64> {
    let expansion = model.kernel.as_ref().unwrap();
    let width = expansion.width() as usize;
    let mut scores = vec![0.0; width];
    for (j, coefficients) in expansion.coefficients().chunks(width).enumerate() {
        let value = expansion.kernel().value(x.below(model.features), expansion.vectors().row(j));
        scores.iter_mut().zip(coefficients).for_each(|(score, c)| *score += c * value);
    }
    if model.task == TaskKind::Binary { vec![-0.5 * scores[0], 0.5 * scores[0]] } else { scores }
}

fn is_near(a: &[f64], b: &[f64]) -> bool {
    let scale = a.iter().chain(b).fold(1.0, |m: f64, x| m.max(x.abs()));
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= 1e-4 * scale)
}

proptest! {
    #[test]
    fn what_is_saved_is_loaded(model in models()) {
        let bytes = model.to_bytes().unwrap();
        let back = Model::from_bytes(&bytes).unwrap();
        prop_assert_eq!(&back, &model);
        prop_assert_eq!(back.to_bytes().unwrap(), bytes);
    }

    #[test]
    fn prediction_is_the_sum_over_support_vectors(model in models(), rows in vec(row(FEATURES + 3), 1..150)) {
        let (predictor, rows) = (model.predictor(), matrix(&rows));
        let mut together = Vec::new();
        predictor.predict_all(rows.range(0..rows.rows()), &mut Vec::new(), |class, scores| {
            together.push((class, scores.to_vec()));
        });
        prop_assert_eq!(together.len(), rows.rows());
        let mut found = Vec::new();
        for (i, (class, together)) in together.iter().enumerate() {
            let alone = predictor.predict(rows.row(i), &mut found);
            prop_assert!(is_near(&found, &scores(&model, rows.row(i))));
            prop_assert!(is_near(&found, together));
            prop_assert_eq!(alone as usize, first_max(&found));
            prop_assert_eq!(*class as usize, first_max(together));
            if model.task == TaskKind::Binary {
                prop_assert_eq!(predictor.decision(rows.row(i)), found[1] - found[0]);
            }
        }
    }

    /// The linear kernel's model is the linear model with the weights that its support vectors add up to.
    #[test]
    fn the_linear_kernel_is_no_kernel(
        vectors in vec(row(FEATURES), 0..7), coefficients in vec(-2.0..2.0f64, 21), bias in 0..3u8, x in row(FEATURES + 3),
    ) {
        let bias = 0.3 * f32::from(bias);
        let kernel = Standard { shape: Shape::Linear, constant: f64::from(bias) * f64::from(bias) };
        let coefficients = coefficients[..3 * vectors.len()].to_vec();
        let mut weights = vec![0.0; 3 * (FEATURES as usize + usize::from(bias > 0.0))];
        for (vector, beta) in vectors.iter().zip(coefficients.chunks(3)) {
            for (j, v) in vector.iter().copied().chain((bias > 0.0).then_some((FEATURES, bias))) {
                (0..3).for_each(|k| weights[3 * j as usize + k] += beta[k] * f64::from(v));
            }
        }
        let ours = model(TaskKind::Multiclass, bias, Expansion::new(kernel, matrix(&vectors), coefficients, 3).unwrap());
        let linear = Model { weights: weights.into(), kernel: None, ..ours.clone() };
        linear.check().unwrap();
        let (mut a, mut b, x) = (Vec::new(), Vec::new(), matrix(&[x]));
        ours.predictor().predict(x.row(0), &mut a);
        linear.predictor().predict(x.row(0), &mut b);
        prop_assert!(is_near(&a, &b), "{:?} {:?}", a, b);
    }
}

#[test]
fn anyone_can_open_the_file() {
    let bytes = small().to_bytes().unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let kinds: Vec<_> = ["support_offsets", "support_indices", "support_values", "coefficients"]
        .map(|name| file.tensor(name).unwrap())
        .iter()
        .map(|tensor| (tensor.dtype(), tensor.shape().to_vec()))
        .collect();
    assert_eq!(kinds, [(Dtype::U64, vec![4]), (Dtype::U32, vec![5]), (Dtype::F32, vec![5]), (Dtype::F64, vec![3, 3])]);
    assert!(file.tensor("weights").is_err());
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let record: Value = serde_json::from_str(&metadata.metadata().as_ref().unwrap()["model"]).unwrap();
    let shape = json!({"poly": {"degree": 3, "gamma": 0.1, "coef0": 1.0 / 3.0}});
    assert_eq!(record["kernel"], json!({"shape": shape, "constant": 4.0}));
}

#[test]
fn no_byte_may_change_and_none_may_be_missing() {
    let bytes = small().to_bytes().unwrap();
    for at in 0..bytes.len() {
        assert!(Model::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            let loaded = Model::from_bytes(&damaged);
            // Blanks after the header may become other blanks.
            assert!(loaded.is_err() || bytes[at] == b' ' && loaded.unwrap() == small(), "byte {at}, bit {bit}");
        }
    }
}

/// The file of the small model, with a header, a record or tensors of the test's own and the checksum that fits. Tensors are
/// in the order of their names: 9 coefficients, 5 indices (4 bytes each), 4 offsets, 5 values (4 bytes each).
fn forged(edit: impl FnOnce(&mut Value, &mut Value, &mut Vec<u8>)) -> Vec<u8> {
    let bytes = small().to_bytes().unwrap();
    let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
    let mut record: Value = serde_json::from_str(header["__metadata__"]["model"].as_str().unwrap()).unwrap();
    let mut data = bytes[end..].to_vec();
    edit(&mut header, &mut record, &mut data);
    let record = record.to_string();
    header["__metadata__"]["crc32"] = format!("{:08x}", crc32fast::hash(&[record.as_bytes(), &data].concat())).into();
    header["__metadata__"]["model"] = record.into();
    let header = header.to_string().into_bytes();
    [&(header.len() as u64).to_le_bytes(), &header[..], &data].concat()
}

const COEFFICIENTS: usize = 0;
const INDICES: usize = 72;
const OFFSETS: usize = 92;
const VALUES: usize = 124;

#[test]
fn hostile_tensors_are_refused() {
    assert_eq!(Model::from_bytes(&forged(|_, _, _| ())).unwrap(), small());
    let max = u64::MAX.to_le_bytes();
    let offset = |j: usize| OFFSETS + 8 * j;
    let edits: [(usize, &[u8], &str); 14] = [
        (offset(0), &1u64.to_le_bytes(), "offsets of support vectors"),
        (offset(1), &3u64.to_le_bytes(), "offsets of support vectors"),
        (offset(1), &max, "offsets of support vectors"),
        (offset(2), &6u64.to_le_bytes(), "offsets of support vectors"),
        (offset(3), &4u64.to_le_bytes(), "offsets of support vectors"),
        (offset(3), &6u64.to_le_bytes(), "offsets of support vectors"),
        (offset(3), &max, "offsets of support vectors"),
        (INDICES, &2u32.to_le_bytes(), "do not ascend"),
        (INDICES + 12, &0u32.to_le_bytes(), "do not ascend"),
        (INDICES + 16, &u32::MAX.to_le_bytes(), "do not ascend"),
        (INDICES + 16, &FEATURES.to_le_bytes(), "beyond the 6 of the model"),
        (VALUES + 4, &f32::NAN.to_le_bytes(), "support vector 1 has a value that is not finite"),
        (COEFFICIENTS + 8, &f64::NAN.to_le_bytes(), "coefficient 2 is NaN"),
        (COEFFICIENTS, &f64::INFINITY.to_le_bytes(), "coefficient 1 is inf"),
    ];
    for (at, bytes, expected) in edits {
        let file = forged(|_, _, data| data[at..at + bytes.len()].copy_from_slice(bytes));
        let what = Model::from_bytes(&file).unwrap_err().to_string();
        assert!(what.contains(expected), "{at}, {expected}: {what}");
    }
}

#[test]
fn hostile_headers_are_refused() {
    let kernel = |shape: Value, constant: f64| json!({"shape": shape, "constant": constant});
    let edits: [(&str, Value, &str); 14] = [
        ("kernel", kernel(json!("string"), 4.0), "unknown variant"),
        ("kernel", kernel(json!({"rbf": {}}), 4.0), "missing field"),
        ("kernel", kernel(json!({"rbf": {"gamma": 0}}), 4.0), "gamma is 0"),
        ("kernel", kernel(json!({"rbf": {"gamma": -1}}), 4.0), "gamma is -1"),
        ("kernel", kernel(json!({"rbf": {"gamma": "NaN"}}), 4.0), "gamma is NaN"),
        ("kernel", kernel(json!({"poly": {"degree": 0, "gamma": 1, "coef0": 0}}), 4.0), "degree is 0"),
        ("kernel", kernel(json!({"poly": {"degree": u32::MAX, "gamma": 1, "coef0": 0}}), 4.0), "degree is"),
        ("kernel", kernel(json!({"sigmoid": {"gamma": 1, "coef0": "inf"}}), 4.0), "coef0 is inf"),
        ("kernel", kernel(json!("linear"), -4.0), "the constant is -4"),
        ("kernel", kernel(json!("linear"), 5.0), "not the square of the bias 2"),
        ("kernel", Value::Null, "lacks an entry"),
        ("bias", json!(0.0), "not the square of the bias 0"),
        ("labels", json!(["a", "b"]), "3 coefficients a support vector for 2"),
        ("features", json!(5), "features beyond the 5 of the model"),
    ];
    for (entry, value, expected) in edits {
        let file = forged(|_, record, _| record[entry] = value.clone());
        let what = Model::from_bytes(&file).unwrap_err().to_string();
        assert!(what.contains(expected), "{entry} = {value}: {what}");
    }
    let max = usize::MAX as u64;
    for (tensor, shape, expected) in [
        ("coefficients", json!([9, 1]), "9 rows of coefficients for 3 support vectors"),
        ("coefficients", json!([1, 9]), "1 rows of coefficients"),
        ("coefficients", json!([9]), "not a matrix"),
        ("coefficients", json!([3, 0]), "contradicts itself"),
        ("coefficients", json!([max, max]), "contradicts itself"),
        ("support_values", json!([max / 2]), "contradicts itself"),
        ("support_offsets", json!([0]), "contradicts itself"),
    ] {
        let file = forged(|header, _, _| header[tensor]["shape"] = shape.clone());
        let what = Model::from_bytes(&file).unwrap_err().to_string();
        assert!(what.contains(expected), "{tensor} {shape}: {what}");
    }
    for tensor in ["coefficients", "support_indices", "support_offsets", "support_values"] {
        let file = forged(|header, _, _| {
            let (size, entry) = (if tensor == "coefficients" { 72 } else { 20 }, &mut header[tensor]);
            let size = if tensor == "support_offsets" { 32 } else { size };
            entry["dtype"] = "U8".into();
            entry["shape"] = json!([size]);
        });
        let what = Model::from_bytes(&file).unwrap_err().to_string();
        assert!(what.contains("support vectors of other numbers"), "{tensor}: {what}");
    }
    // No support vector, and coefficients of no slot.
    let file = forged(|header, _, data| {
        let tensors = [("coefficients", json!([0, 0]), 0), ("support_indices", json!([0]), 0)];
        let others = [("support_offsets", json!([1]), 8), ("support_values", json!([0]), 8)];
        let mut start = 0;
        for (name, shape, end) in tensors.into_iter().chain(others) {
            header[name]["shape"] = shape;
            header[name]["data_offsets"] = json!([start, end]);
            start = end;
        }
        *data = vec![0; 8];
    });
    let what = Model::from_bytes(&file).unwrap_err().to_string();
    assert!(what.contains("support vectors have no coefficients"), "{what}");
}

#[test]
fn what_does_not_fit_is_not_saved() {
    let good = small();
    let weights = Model { weights: Weights::zeros(1), ..good.clone() };
    assert!(weights.to_bytes().unwrap_err().to_string().contains("1 weights beside a kernel"));
    let narrow = Model { features: 5, ..good.clone() };
    assert!(narrow.to_bytes().unwrap_err().to_string().contains("features beyond the 5"));
    let expansion = good.kernel.as_ref().unwrap();
    let unbiased = Standard { constant: 0.0, ..expansion.kernel() };
    let kernel = Expansion::new(unbiased, expansion.vectors().clone(), expansion.coefficients().to_vec(), 3).unwrap();
    let other = Model { kernel: Some(kernel), ..good.clone() };
    assert!(other.to_bytes().unwrap_err().to_string().contains("square of the bias"));
}

/// The fuzzer starts from this file, and this program must read it for ever. After a change of the format on purpose the
/// bytes that this test finds belong there.
#[test]
fn the_file_of_the_fuzzer_is_the_small_model() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model");
    let bytes = small().to_bytes().unwrap();
    assert!(fs::read(corpus.join("good-kernel")).unwrap() == bytes, "the bytes are now: {bytes:?}");
}
