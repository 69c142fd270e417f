//! Model files, as they should be and as they should not; prediction with models; figures of predictions.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use maxmargin::data::output::{Output, replace_file};
use maxmargin::metrics::Evaluator;
use maxmargin::model::{Loss, Model, Saved, Summary, TaskKind};
use maxmargin::problem::{Formulation, Penalty, Rescaling};
use maxmargin::solver::{Certificate, Status};
use maxmargin::sparse::{SparseMatrix, SparseView};
use maxmargin::task::Task;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::Multiclass;
use maxmargin::weights::Weights;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use safetensors::{Dtype, SafeTensors};
use serde_json::{Value, json};

fn summary() -> Summary {
    Summary {
        solver: "one-slack".to_owned(),
        status: Status::Converged,
        certificate: Certificate::Exact,
        examples: 5,
        c: 0.1,
        epsilon: 0.01,
        primal: 1.0 / 3.0,
        primal_error: 0.0,
        dual: f64::NEG_INFINITY,
        gap: f64::INFINITY,
        rounds: 7,
        passes: 8.4,
        train_loss: 0.2,
    }
}

fn small() -> Model {
    Model {
        task: TaskKind::Multiclass,
        labels: ["a", "b\"\n", "ä"].map(String::from).to_vec(),
        features: 2,
        bias: 1.0,
        loss: Loss::Matrix(vec![0.0, 0.1, 2.0, 0.3, 0.0, 1e-300, 4.0, 5.0, 0.0]),
        formulation: Formulation {
            c: 0.7,
            rescaling: Rescaling::Slack,
            penalty: Penalty::Quadratic,
            loss_scale: 100.0,
        },
        data_checksum: 0xdead_beef,
        summary: summary(),
        weights: vec![0.1, -0.0, 2.0, f64::MAX, f64::MIN_POSITIVE, 5e-324, 1.0, 2.0, 1.0 / 3.0].into(),
        kernel: None,
    }
}

/// Any f64 that is finite, with all its digits.
fn finite() -> impl Strategy<Value = f64> {
    any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite())
}

/// Random valid models; weights of moderate size, so that scores do not overflow.
fn models() -> impl Strategy<Value = Model> {
    let choices = (0..7usize, 0..6u32, any::<bool>(), 0..4usize, any::<bool>(), any::<u32>());
    let numbers = (vec(-3.0..3.0f64, 7 * 7), vec(0.0..9.0f64, 7 * 7), vec(finite(), 6), 0.0..1e300f64, 1e-9..1e9f64);
    (choices, numbers).prop_map(|((classes, features, with_bias, loss, slack, checksum), (w, costs, any, c, scale))| {
        let task = if classes < 2 { TaskKind::Binary } else { TaskKind::Multiclass };
        let classes = classes.max(2);
        let slots = if task == TaskKind::Binary { 1 } else { classes };
        let bias = if with_bias { 0.1 + f64::from(checksum % 7) } else { 0.0 };
        let table = (0..classes * classes).map(|at| if at % (classes + 1) == 0 { 0.0 } else { costs[at] }).collect();
        Model {
            task,
            labels: (0..classes).map(|k| format!("{}.5", k * k)).collect(),
            features,
            bias,
            loss: match (task, loss) {
                (TaskKind::Binary, _) | (_, 0) => Loss::ZeroOne,
                (_, 1) => Loss::Absolute,
                (_, 2) => Loss::Squared,
                _ => Loss::Matrix(table),
            },
            formulation: Formulation {
                c: c.max(f64::MIN_POSITIVE),
                rescaling: if slack { Rescaling::Slack } else { Rescaling::Margin },
                penalty: [Penalty::Linear, Penalty::Quadratic, Penalty::Hard][checksum as usize % 3],
                loss_scale: scale,
            },
            data_checksum: checksum,
            summary: Summary {
                c,
                epsilon: any[0],
                primal: any[1],
                primal_error: 0.0,
                dual: any[2],
                gap: any[3],
                passes: any[4],
                ..summary()
            },
            weights: w[..slots * (features as usize + usize::from(with_bias))].to_vec().into(),
            kernel: None,
        }
    })
}

/// A row with up to nine features: more than the models have.
fn rows() -> impl Strategy<Value = (Vec<u32>, Vec<f32>)> {
    btree_map(0..9u32, -2.0..2.0f32, 0..9).prop_map(|row| row.into_iter().unzip())
}

/// The answer of the task itself, on the row as training sees it.
fn argmax(model: &Model, x: SparseView<'_>) -> u32 {
    let mut matrix = SparseMatrix::new();
    matrix.push_row(x.below(model.features).iter());
    matrix.set_columns(model.features);
    if model.bias != 0.0 {
        matrix = matrix.with_constant(model.bias as f32);
    }
    let (row, rows, mut y) = (matrix.row(0), matrix.columns(), 0);
    if model.task == TaskKind::Binary {
        Binary::new(rows).argmax(&model.weights, row, None, &mut (), &mut y).unwrap();
    } else {
        let task = Multiclass::new(rows, model.loss.costs(&model.labels).unwrap());
        task.argmax(&model.weights, row, None, &mut Vec::new(), &mut y).unwrap();
    }
    y
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
    fn prediction_is_the_argmax_of_the_task(model in models(), (indices, values) in rows()) {
        let x = SparseView::new(&indices, &values);
        let mut scores = vec![f64::NAN; 3];
        let predictor = model.predictor();
        prop_assert_eq!(predictor.predict(x, &mut scores), argmax(&model, x));
        prop_assert_eq!(scores.len(), model.labels.len());
        if model.task == TaskKind::Binary {
            prop_assert_eq!(scores[1] - scores[0], predictor.decision(x));
        }
    }

    /// Small whole numbers as weights make ties, which must be broken as the task breaks them.
    #[test]
    fn ties_are_broken_as_the_task_does(
        mut model in models(), (indices, values) in rows(), whole in vec(-1..2i32, 49),
    ) {
        let n = model.weights.len();
        model.weights = whole[..n].iter().map(|&w| f64::from(w)).collect::<Vec<_>>().into();
        model.bias = model.bias.signum() * f64::from(model.bias != 0.0);
        let values: Vec<f32> = values.iter().map(|v| v.round()).collect();
        let x = SparseView::new(&indices, &values);
        prop_assert_eq!(model.predictor().predict(x, &mut Vec::new()), argmax(&model, x));
    }

    #[test]
    fn junk_is_an_error(bytes in vec(any::<u8>(), 0..200), length in 0..200u64, text in "[{}\":,a-z0-9_ ]{0,80}") {
        prop_assert!(Model::from_bytes(&bytes).is_err());
        let mut framed = length.to_le_bytes().to_vec();
        framed.extend(text.as_bytes());
        prop_assert!(Model::from_bytes(&framed).is_err());
    }

    #[test]
    fn the_figures_are_those_of_counting(
        model in models(), examples in vec((0..8u32, 0..7u32), 1..40),
    ) {
        let classes = model.labels.len() as u32;
        let examples: Vec<(Option<u32>, u32)> =
            examples.into_iter().map(|(t, y)| ((t < classes).then_some(t), y % classes)).collect();
        let mut evaluator = Evaluator::new(&model).unwrap();
        for &(truth, y) in &examples {
            evaluator.add(truth, y);
        }
        let found = evaluator.finish();

        let count = |of: &dyn Fn(Option<u32>, u32) -> bool| examples.iter().filter(|e| of(e.0, e.1)).count() as u64;
        let costs = model.loss.costs(&model.labels).unwrap();
        let worst = (0..classes).flat_map(|t| costs.row(t as usize)).copied().fold(0.0, f64::max);
        let cost = |e: &(Option<u32>, u32)| e.0.map_or(worst, |t| costs.row(t as usize)[e.1 as usize]);
        let n = examples.len() as f64;
        let mean_loss = model.formulation.loss_scale * examples.iter().map(cost).sum::<f64>() / n;
        prop_assert_eq!(found.examples, examples.len() as u64);
        prop_assert_eq!(found.unseen_labels, count(&|t, _| t.is_none()));
        prop_assert_eq!(found.accuracy, count(&|t, y| t == Some(y)) as f64 / n);
        prop_assert!((found.mean_loss - mean_loss).abs() <= 1e-12 * mean_loss);
        for t in 0..classes {
            for y in 0..classes {
                let expected = count(&|a, b| a == Some(t) && b == y);
                prop_assert_eq!(found.confusion[(t * classes + y) as usize], expected);
            }
        }
        for (k, class) in (0..classes).zip(&found.classes) {
            let right = count(&|t, y| t == Some(k) && y == k) as f64;
            let wrongly_here = count(&|t, y| t != Some(k) && y == k) as f64;
            let missed = count(&|t, y| t == Some(k) && y != k) as f64;
            let share = |whole: f64| (whole > 0.0).then(|| right / whole);
            prop_assert_eq!(&class.label, &model.labels[k as usize]);
            prop_assert_eq!(class.support as f64, right + missed);
            prop_assert_eq!(class.predicted as f64, right + wrongly_here);
            prop_assert_eq!(class.precision, share(right + wrongly_here));
            prop_assert_eq!(class.recall, share(right + missed));
            prop_assert_eq!(class.f1, share(right + 0.5 * (wrongly_here + missed)));
        }
    }
}

#[test]
fn the_bits_of_unusual_numbers_survive() {
    let model = small();
    let back = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(back, model);
    let bits = |w: &Weights| w.as_slice().iter().map(|w| w.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&back.weights), bits(&model.weights));
}

#[test]
fn anyone_can_open_the_file() {
    let model = small();
    let bytes = model.to_bytes().unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let weights = file.tensor("weights").unwrap();
    assert_eq!((weights.dtype(), weights.shape()), (Dtype::F64, &[3, 3][..]));
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let notes = metadata.metadata().as_ref().unwrap();
    assert_eq!(notes["maxmargin"], "1");
    let record: Value = serde_json::from_str(&notes["model"]).unwrap();
    assert_eq!(record["summary"]["solver"], "one-slack");
    assert_eq!(record["bias"], 1.0);
}

/// What others' programs write back: the same entries in another order.
#[test]
fn the_order_of_the_metadata_does_not_matter() {
    let model = small();
    let bytes = model.to_bytes().unwrap();
    let (_, metadata) = SafeTensors::read_metadata(&bytes).unwrap();
    let notes = metadata.metadata().clone();
    let again = safetensors::serialize(SafeTensors::deserialize(&bytes).unwrap().tensors(), notes).unwrap();
    assert_eq!(Model::from_bytes(&again).unwrap(), model);
}

#[test]
fn no_altered_byte_makes_another_model() {
    let model = small();
    let bytes = model.to_bytes().unwrap();
    let mut unnoticed = Vec::new();
    for at in 0..bytes.len() {
        let masks = (0..8).map(|bit| 1 << bit).chain([0xff, b'"' ^ bytes[at], b'0' ^ bytes[at], b' ' ^ bytes[at]]);
        for mask in masks.filter(|&mask| mask != 0) {
            let mut altered = bytes.clone();
            altered[at] ^= mask;
            if let Ok(loaded) = Model::from_bytes(&altered) {
                assert_eq!(loaded, model, "byte {at}, mask {mask:#x}");
                unnoticed.push(at);
            }
        }
    }
    // Blanks against other blanks, and nothing else.
    assert!(unnoticed.iter().all(|&at| bytes[at] == b' '), "{unnoticed:?}");
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = small().to_bytes().unwrap();
    for end in 0..bytes.len() {
        let what = Model::from_bytes(&bytes[..end]).unwrap_err().to_string();
        if end >= 60 {
            assert!(what.contains("truncated"), "{end}: {what}");
        }
    }
    let what = Model::from_bytes(&[&bytes[..], b"x"].concat()).unwrap_err().to_string();
    assert!(what.contains("damaged"), "{what}");
}

/// A model file with a header, a description or data of the test's own, and the checksum that fits.
fn forged(edit: impl FnOnce(&mut Value, &mut Value, &mut Vec<u8>)) -> Vec<u8> {
    let bytes = small().to_bytes().unwrap();
    let end = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..end]).unwrap();
    let mut record: Value = serde_json::from_str(header["__metadata__"]["model"].as_str().unwrap()).unwrap();
    let mut data = bytes[end..].to_vec();
    edit(&mut header, &mut record, &mut data);
    let record = record.to_string();
    let mut crc = crc32fast::Hasher::new();
    crc.update(record.as_bytes());
    crc.update(&data);
    if header["__metadata__"].is_object() {
        header["__metadata__"]["crc32"] = format!("{:08x}", crc.finalize()).into();
        header["__metadata__"]["model"] = record.into();
    }
    let header = header.to_string().into_bytes();
    [&(header.len() as u64).to_le_bytes(), &header[..], &data].concat()
}

/// What loading a forged file says.
fn refusal(edit: impl FnOnce(&mut Value, &mut Value, &mut Vec<u8>)) -> String {
    Model::from_bytes(&forged(edit)).unwrap_err().to_string()
}

#[test]
fn forging_by_itself_is_not_noticed() {
    assert_eq!(Model::from_bytes(&forged(|_, _, _| ())).unwrap(), small());
}

#[test]
fn other_versions_are_named() {
    let what = refusal(|header, _, _| header["__metadata__"]["maxmargin"] = "2".into());
    assert!(what.contains("format 2; this program reads up to 1"), "{what}");
    for version in ["0", "", "one", "-1", "99999999999999999999"] {
        let what = refusal(|header, _, _| header["__metadata__"]["maxmargin"] = version.into());
        assert!(what.contains("damaged"), "{what}");
    }
}

#[test]
fn foreign_files_are_named() {
    let data = [0u8; 16];
    let tensor = safetensors::tensor::TensorView::new(Dtype::F64, vec![2, 1], &data).unwrap();
    let theirs = safetensors::serialize([("weights", tensor)], None).unwrap();
    let no_notes = forged(|header, _, _| header["__metadata__"] = Value::Null);
    let huge_header = [&u64::MAX.to_le_bytes()[..], b"{}"].concat();
    let long_header = [&99_999_999u64.to_le_bytes()[..], b"{}"].concat();
    let deep = [&9_000u64.to_le_bytes()[..], &[b'['; 9_000]].concat();
    let files =
        [&theirs[..], &no_notes, &huge_header, &long_header, &deep, b"", b"+1 1:2\n", b"+1 1:0.5 2:3\n-1 1:1\n"];
    for file in files {
        let what = Model::from_bytes(file).unwrap_err().to_string();
        assert!(what.contains("not a maxmargin model file"), "{what}");
    }
}

#[test]
fn impossible_sizes_are_refused_before_memory_is_taken() {
    let max = usize::MAX as u64;
    for shape in [json!([max, max]), json!([max / 8, 1]), json!([3, 4]), json!([9]), json!([3, 3, 1]), json!([])] {
        let what = refusal(|header, _, _| header["weights"]["shape"] = shape);
        assert!(what.contains("damaged"), "{what}");
    }
    for offsets in [json!([0, max]), json!([8, 80]), json!([72, 0]), json!([0, 64])] {
        let what = refusal(|header, _, _| header["weights"]["data_offsets"] = offsets);
        assert!(what.contains("damaged"), "{what}");
    }
    refusal(|header, _, _| header["weights"]["shape"] = json!([-3, 3]));
    // Sizes that agree with each other, but not with the file.
    let rows = (max >> 3) / 3;
    let what = refusal(|header, _, _| {
        header["weights"]["shape"] = json!([rows, 3]);
        header["weights"]["data_offsets"] = json!([0, 24 * rows]);
    });
    assert!(what.contains("truncated"), "{what}");
    let what = refusal(|header, _, _| {
        header["weights"]["shape"] = json!([9, 1]);
    });
    assert!(what.contains("rows of 1 weights for 3 labels"), "{what}");
    let what = refusal(|_, record, _| record["features"] = json!(u32::MAX));
    assert!(what.contains("9 weights for 4294967296 features"), "{what}");
}

#[test]
fn impossible_contents_are_refused() {
    let what = refusal(|_, _, data| data[8..16].copy_from_slice(&f64::NAN.to_le_bytes()));
    assert!(what.contains("weight 2 is NaN"), "{what}");
    let what = refusal(|_, _, data| data[..8].copy_from_slice(&f64::INFINITY.to_le_bytes()));
    assert!(what.contains("weight 1 is inf"), "{what}");
    let what = refusal(|header, _, _| header["weights"]["dtype"] = "I64".into());
    assert!(what.contains("damaged"), "{what}");
    let edits: [(&str, Value, &str); 18] = [
        ("labels", json!(["a", "b", "a"]), "label 'a'"),
        ("labels", json!(["a", "", "c"]), "label ''"),
        ("labels", json!(["a", "b"]), "9 numbers for 2 classes"),
        ("labels", json!(["a"]), "1 labels"),
        ("labels", json!([]), "0 labels"),
        ("task", json!("binary"), "3 labels for a binary task"),
        ("task", json!("align"), "unknown variant"),
        ("task", json!("parse"), "missing field"),
        ("features", json!(3), "weights for 4 features"),
        ("features", json!(-3), "invalid value"),
        ("bias", json!(0.0), "weights for 2 features"),
        ("bias", json!("inf"), "bias is inf"),
        ("bias", json!(1e-60), "bias is"),
        ("c", json!(0.0), "c is 0"),
        ("loss_scale", json!("NaN"), "loss scale is NaN"),
        ("loss", json!("absolute"), "labels that are numbers, not 'a'"),
        ("loss", json!({"matrix": [0, 1, 1, 1, 0, -1, 1, 1, 0]}), "row 2, column 3"),
        ("loss", json!({"matrix": [0, 1, 1, 1, 0, 1, 1, 1, 3]}), "row 3, column 3"),
    ];
    for (entry, value, expected) in edits {
        let what = refusal(|_, record, _| record[entry] = value.clone());
        assert!(what.contains(expected), "{entry} = {value}: {what}");
    }
    let what = refusal(|_, record, _| {
        record["task"] = json!("binary");
        record["labels"] = json!(["1", "2"]);
        record["loss"] = json!("squared");
    });
    assert!(what.contains("zero-one loss only"), "{what}");
    let what = refusal(|_, record, _| *record = json!([]));
    assert!(what.contains("damaged"), "{what}");
}

#[test]
fn a_model_that_could_not_be_loaded_is_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mm");
    let mut model = small();
    model.weights.as_mut_slice()[4] = f64::NAN;
    let what = model.save(&path).unwrap_err().to_string();
    assert!(what.contains("m.mm") && what.contains("weight 5 is NaN"), "{what}");
    assert!(model.to_bytes().is_err());
    assert!(!path.exists());
}

#[test]
fn files_are_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.mm");
    small().save(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), small().to_bytes().unwrap());
    assert_eq!(Model::load(&path).unwrap(), small());
    assert_eq!(names(folder.path()), ["m.mm"]);

    let damaged = folder.path().join("d.mm");
    let bytes = fs::read(&path).unwrap();
    fs::write(&damaged, &bytes[..bytes.len() - 1]).unwrap();
    let what = Model::load(&damaged).unwrap_err().to_string();
    assert_eq!(what, format!("{}: truncated model file (the end is missing)", damaged.display()));

    for (path, expected) in [(folder.path().join("none.mm"), "No such file"), (folder.path().to_owned(), "directory")] {
        let e = Model::load(&path).unwrap_err();
        assert!(matches!(e, maxmargin::Error::Io { .. }));
        let what = e.to_string();
        assert!(what.starts_with(&path.display().to_string()) && what.contains(expected), "{what}");
    }
    let what = small().save(folder.path()).unwrap_err().to_string();
    assert!(what.contains("is a folder"), "{what}");
    let what = small().save(folder.path().join("no/m.mm")).unwrap_err().to_string();
    assert!(what.contains("cannot make a file in the folder"), "{what}");
}

/// The inputs that the fuzzer starts from, and those that it once broke something with.
#[test]
fn the_corpus_of_the_fuzzer_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model");
    let files = names(&folder);
    assert!(files.len() >= 8);
    for name in files {
        let loaded = Saved::load(folder.join(&name));
        assert_eq!(loaded.is_ok(), name.starts_with("good-"), "{name}: {loaded:?}");
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_failed_write_leaves_the_old_file_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    fs::write(&path, "old").unwrap();
    let e = replace_file(&path, |writer| {
        writer.write_all(&vec![b'x'; 1 << 20])?;
        Err(io::Error::other("no more"))
    });
    assert_eq!(e.unwrap_err().to_string(), format!("{}: no more", path.display()));
    let mut output = Output::create(&path).unwrap();
    output.write_all(b"half").unwrap();
    drop(output);
    assert_eq!((fs::read_to_string(&path).unwrap(), names(folder.path())), ("old".to_owned(), vec!["out".to_owned()]));
}

#[cfg(unix)]
#[test]
fn modes_and_links_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let [plain, new, link] = ["plain", "new", "link"].map(|name| folder.path().join(name));
    fs::write(&plain, "").unwrap();
    replace_file(&new, |writer| writer.write_all(b"new")).unwrap();
    assert_eq!(mode(&new), mode(&plain), "what the umask gives");
    fs::set_permissions(&new, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&new, &link).unwrap();
    replace_file(&link, |writer| writer.write_all(b"newer")).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!((fs::read_to_string(&new).unwrap(), mode(&new)), ("newer".to_owned(), 0o640));
}

#[cfg(target_os = "linux")]
#[test]
fn devices_are_written_directly() {
    replace_file("/dev/null", |writer| writer.write_all(b"gone")).unwrap();
    let what = replace_file("/dev/full", |writer| writer.write_all(b"x")).unwrap_err().to_string();
    assert!(what.starts_with("/dev/full: No space left"), "{what}");
    for device in ["/dev/null", "/dev/full"] {
        assert!(!fs::metadata(device).unwrap().is_file());
    }
}

#[cfg(unix)]
#[test]
fn a_read_only_folder_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(folder.path().join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write into read-only folders");
        return;
    }
    let what = small().save(folder.path().join("m.mm")).unwrap_err().to_string();
    assert!(what.contains("permission denied"), "{what}");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

/// A file system of 64 KiB, for those who may make one.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(folder.path()).output();
        mount.is_ok_and(|output| output.status.success()).then_some(Self(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_leaves_the_old_model() {
    let Some(disk) = SmallDisk::new() else {
        eprintln!("skipped: this user may not mount a small disk");
        return;
    };
    let path = disk.0.path().join("m.mm");
    small().save(&path).unwrap();
    let mut large = small();
    large.features = 9_999;
    large.weights = Weights::zeros(30_000);
    let what = large.save(&path).unwrap_err().to_string();
    assert!(what.contains("m.mm: No space left"), "{what}");
    assert_eq!(Model::load(&path).unwrap(), small());
    assert_eq!(names(disk.0.path()), ["m.mm"]);
}
