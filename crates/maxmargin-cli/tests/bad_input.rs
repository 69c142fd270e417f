//! Bad input gets a clear error and loses nothing.

mod common;

use std::fs;
use std::io::Write;

use common::{Folder, number};

/// Trains on bad data over an old model, which must stay.
fn refused(text: impl AsRef<[u8]>, words: &[&str]) {
    let folder = Folder::new();
    folder.write("bad.dat", text);
    folder.write("old.mm", "old");
    for task in ["binary", "multiclass"] {
        folder.run(&format!("train {task} bad.dat -m old.mm")).bad(1, words);
    }
    assert_eq!(folder.read("old.mm"), b"old");
    folder.holds_only(&["bad.dat", "old.mm"]);
}

#[test]
fn bad_lines_are_named() {
    for (line, what) in [
        ("+1 0:1", "feature index 0 (indices start at 1)"),
        ("+1 3:1 2:1", "feature index 2 after 3 (indices must ascend)"),
        ("+1 2:1 2:1", "feature index 2 appears twice"),
        ("+1 1:nan", "'nan' of feature 1 is not a finite number"),
        ("+1 1:-inf", "'-inf' of feature 1 is not a finite number"),
        ("+1 1:1e39", "'1e39' of feature 1 is too large"),
        ("+1 4294967295:1", "feature index '4294967295' (the largest is 4294967294)"),
        ("+1 99999999999999999999999:1", "(the largest is 4294967294)"),
        ("+1 1:one", "'one' of feature 1 is not a decimal number"),
        ("+1 1", "'1' is not INDEX:VALUE"),
        ("1:1 2:1", "label missing before '1:1'"),
        ("+1 cost:-1 1:1", "the cost must be a positive finite number"),
    ] {
        refused(format!("+1 1:1\n-1 2:1 # fine\n\n{line}\n"), &["bad.dat:4: ", what]);
    }
}

#[test]
fn files_without_a_problem_in_them_are_refused() {
    refused("", &["bad.dat:1: no examples in the file"]);
    refused("# only\n\n# comments\n", &["no examples in the file"]);
    refused("+1 1:1\n+1 2:1\n", &["bad.dat:1: all 2 examples"]);
    refused(
        [0x7f, b'E', b'L', b'F', 0, 1, 2, 255, 254, b'\n', 0, 0].repeat(100),
        &["bad.dat:1: ", "(is this a text file?)"],
    );
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for i in 0..10_000 {
        writeln!(gz, "{} 1:{i} 2:{}", if i % 3 == 0 { "+1" } else { "-1" }, i * i % 1009).unwrap();
    }
    let gz = gz.finish().unwrap();
    for end in [3, gz.len() / 2, gz.len() - 1] {
        refused(&gz[..end], &["bad.dat: truncated or damaged gzip data"]);
    }
}

#[test]
fn a_line_of_megabytes_is_read_or_named() {
    let folder = Folder::new();
    let long: String = (1..=400_000).map(|j| [" ", &j.to_string(), ":1"].concat()).collect();
    folder.write("long.dat", format!("+1{long}\n-1 1:1\n"));
    folder.run("train binary long.dat -m long.mm --max-passes 3").good();
    folder.run("evaluate long.mm long.dat").good();
    refused(format!("+1 1:1\n-1{long} {}\n", "x".repeat(5_000_000)), &["bad.dat:2: 'xxxx", "is not INDEX:VALUE"]);
    refused("y".repeat(5_000_000) + ":", &["bad.dat:1: label missing before 'yyyy"]);
}

#[test]
fn labels_that_do_not_fit_the_task_come_with_a_way_out() {
    let folder = Folder::new();
    folder.write("t.dat", "+1 1:1\n-1 1:2\ncat 1:3\n");
    folder.run("train binary t.dat -m t.mm").bad(1, &["t.dat:3: label 'cat'", "--positive", "multiclass"]);
    folder
        .run("train binary t.dat -m t.mm --positive dog")
        .bad(2, &["--positive: the data have no label 'dog'", "'cat'"]);
    folder
        .run("train multiclass t.dat -m t.mm --loss absolute")
        .bad(2, &["--loss: ", "labels that are numbers", "'cat'"]);
    folder.run("train multiclass t.dat -m t.mm --class-weight dog=2").bad(2, &["--class-weight: ", "no label 'dog'"]);
    folder.write("costs.txt", "0 1 1\n1 0 1\n1 1\n");
    let matrix = "train multiclass t.dat -m t.mm --loss matrix --cost-matrix";
    folder.run(&format!("{matrix} costs.txt")).bad(1, &["costs.txt:3: 2 columns for 3 classes"]);
    folder.run(&format!("{matrix} missing.txt")).bad(1, &["missing.txt: No such file"]);
    folder.holds_only(&["costs.txt", "t.dat"]);
}

#[test]
fn a_wild_index_is_refused_before_memory_is_taken() {
    refused("+1 1:1\n-1 4294967294:1\n", &["bad.dat:2: training would take about", "GB", "4294967294", "is it right?"]);
}

#[test]
fn what_is_no_number_of_its_kind_is_bad_usage() {
    let folder = Folder::with_data();
    for options in ["-c 0", "-c -1", "-c inf", "-c x", "-e -0.1", "--epsilon 0", "--epsilon nan", "--relative-gap -1"] {
        folder.run(&format!("train binary b.dat -m b.mm {options}")).bad(2, &["invalid value", "must be"]);
    }
    for options in ["--threads 0", "--max-seconds -1", "--max-passes 0", "--cache many", "--loss-scale 0", "--bias nan"]
    {
        folder.run(&format!("train binary b.dat -m b.mm {options}")).bad(2, &["invalid value", "must be"]);
    }
    folder.run("train binary b.dat -m b.mm --solver group-slack --groups 400").bad(2, &["--groups: must be between 1"]);
    folder.run("train binary b.dat -m b.mm --solver one-slack --max-cuts 2").bad(2, &["--max-cuts: must be at least"]);
    folder.run("generate binary --examples 0").bad(2, &["--examples: must be at least 1"]);
    folder.run("generate binary --examples 9 --noise 1.5").bad(2, &["--noise: 1.5 is not a probability"]);
    folder.holds_only(&["b.dat", "m.dat"]);
}

#[test]
fn typos_get_a_hint() {
    let folder = Folder::with_data();
    folder.run("trian binary b.dat -m b.mm").bad(2, &["'train'"]);
    folder.run("train binry b.dat -m b.mm").bad(2, &["'binary'"]);
    folder.run("train binary b.dat -m b.mm --epsilom 1").bad(2, &["'--epsilon'"]);
    folder.run("train binary b.dat -m b.mm --solver one-slak").bad(2, &["'one-slack'"]);
    folder.run("train binary b.dat").bad(2, &["--model <MODEL>"]);
    folder.run("train binary nofile -m b.mm").bad(1, &["nofile: No such file"]);
    folder.run("evaluate nofile b.dat").bad(1, &["nofile: No such file"]);
}

#[test]
fn models_that_are_none_are_refused() {
    let folder = Folder::with_data();
    folder.run("train binary b.dat -m b.mm").good();
    let model = folder.read("b.mm");
    let mut altered = model.clone();
    let at = model.len() - 5;
    altered[at] ^= 1;
    let cases = [
        ("empty.mm", Vec::new()),
        ("short.mm", model[..model.len() - 1].to_vec()),
        ("half.mm", model[..model.len() / 2].to_vec()),
        ("head.mm", model[..5].to_vec()),
        ("longer.mm", [model.as_slice(), b"x"].concat()),
        ("altered.mm", altered),
        ("foreign.mm", folder.read("b.dat")),
        ("junk.mm", vec![0xff; 1000]),
    ];
    for (name, bytes) in cases {
        folder.write(name, bytes);
        folder.run(&format!("predict {name} b.dat")).bad(1, &[name]);
        folder.run(&format!("evaluate {name} b.dat")).bad(1, &[name]);
        folder.run(&format!("inspect {name}")).bad(1, &[name]);
        folder.run(&format!("train binary b.dat -m new.mm --warm-start {name}")).bad(1, &[name]);
    }
    assert!(!folder.exists("new.mm"));
}

#[test]
fn places_that_cannot_be_written_are_found_before_training() {
    let folder = Folder::with_data();
    folder.write("file", "");
    // A file is not a folder, /proc takes no files: true for root as well.
    for place in ["file/b.mm", "/proc/b.mm", "nowhere/b.mm", "."] {
        // The training file does not exist: the model's place is looked at first.
        folder.run(&format!("train binary missing.dat -m {place}")).bad(1, &[place]);
    }
    folder.run("train binary b.dat -m b.mm --log nowhere/log").bad(1, &["nowhere/log"]);
    folder.run("train multiclass m.dat -m m.mm").good();
    folder.run("predict m.mm m.dat -o nowhere/labels").bad(1, &["nowhere/labels"]);
    folder.run("generate binary --examples 5 -o nowhere/data").bad(1, &["nowhere/data"]);
}

#[test]
fn nothing_is_written_onto_what_is_read() {
    let folder = Folder::with_data();
    folder.run("train multiclass m.dat -m m.mm").good();
    fs::create_dir(folder.path("sub")).unwrap();
    fs::hard_link(folder.path("m.dat"), folder.path("sub/link.dat")).unwrap();
    let (data, model) = (folder.read("m.dat"), folder.read("m.mm"));
    for words in [
        "train multiclass m.dat -m m.dat",
        "train multiclass m.dat -m ./sub/../m.dat",
        "train multiclass m.dat -m new.mm --log m.dat",
        "train multiclass m.dat -m new.mm --log sub/link.dat",
        "train multiclass m.dat -m new.mm --log new.mm",
        "train multiclass m.dat -m new.mm --log m.mm --warm-start m.mm",
        "train multiclass b.dat -m m.dat --loss matrix --cost-matrix m.dat",
        "predict m.mm m.dat -o m.dat",
        "predict m.mm m.dat -o sub/../m.mm",
    ] {
        folder.run(words).bad(2, &["would destroy it"]);
    }
    assert!(data == folder.read("m.dat") && model == folder.read("m.mm"));
    folder.holds_only(&["b.dat", "m.dat", "m.mm", "sub"]);
}

#[test]
fn features_and_labels_that_the_model_does_not_know_are_counted() {
    let folder = Folder::new();
    folder.write("t.dat", "a 1:1\nb 2:1\na 1:2\nb 2:3\n");
    folder.run("train multiclass t.dat -m t.mm").good();
    folder.write("new.dat", "a 1:1 7:5\nb 2:1\nc 1:1\n");
    let ran = folder.run("predict t.mm new.dat");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "a\nb\na\n"));
    assert_eq!(
        ran.stderr,
        "note: 1 of 3 examples have features beyond the 2 that the model knows; these were left out\n"
    );
    let ran = folder.run("evaluate t.mm new.dat --json");
    let figures: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(number(&figures, "unseen_labels"), 1.0);
    assert!((number(&figures, "accuracy") - 2.0 / 3.0).abs() < 1e-12);
    assert!(folder.run("evaluate t.mm new.dat").stdout.contains("unseen labels  1 example"));
    folder.run("evaluate t.mm t.dat").good();
    folder.write("bare.dat", "1:1\n");
    folder.run("evaluate t.mm bare.dat").bad(1, &["bare.dat:1: label missing"]);
}

#[test]
fn a_bad_line_leaves_no_half_of_the_predictions() {
    let folder = Folder::with_data();
    folder.run("train multiclass m.dat -m m.mm").good();
    folder.write("bad.dat", folder.text("m.dat") + "1 0:1\n");
    folder.write("labels.txt", "old");
    folder.run("predict m.mm bad.dat -o labels.txt").bad(1, &["bad.dat:401: feature index 0"]);
    assert_eq!(folder.text("labels.txt"), "old");
    folder.holds_only(&["b.dat", "bad.dat", "labels.txt", "m.dat", "m.mm"]);
}
