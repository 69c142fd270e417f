//! What the task `tag` refuses, with file and line.

mod common;

use std::io::Write;

use common::Folder;

/// Trains on bad data over an old model, which must stay.
fn refused(text: impl AsRef<[u8]>, options: &str, words: &[&str]) {
    let folder = Folder::new();
    folder.write("bad", text);
    folder.write("old.mm", "old");
    folder.run(&format!("train tag bad -m old.mm {options}")).bad(1, words);
    assert_eq!(folder.read("old.mm"), b"old");
    folder.holds_only(&["bad", "old.mm"]);
}

#[test]
fn bad_lines_are_named() {
    for (format, text, words) in [
        ("columns", "a X\nb Y\n\nc X\nd\n", ["bad:5: 1 column, but line 1 has 2"]),
        ("columns", "a X\nb c Y\n", ["bad:2: 3 columns, but line 1 has 2"]),
        ("columns", "a\nb\n", ["bad:1: 1 column, but at least 2 are needed"]),
        ("columns", "", ["bad:1: the file has no tokens"]),
        ("columns", "\n\n\n", ["the file has no tokens"]),
        ("crfsuite", "", ["bad:1: the file has no tokens"]),
        ("crfsuite", "X\ta:1\nY\tb:nan\n", ["bad:2: attribute 'b:nan': its value 'nan' is not a finite number"]),
        ("crfsuite", "X\ta:1\nY\tb:1e99\n", ["bad:2: attribute 'b:1e99': its value '1e99' is too large"]),
        ("crfsuite", "X\ta\n\ta\n", ["bad:2: tag missing"]),
        ("svmhmm", "", ["bad:1: the file has no tokens"]),
        ("svmhmm", "X qid:1 1:1\nY qid:2 1:1\nX qid:1 1:1\n", ["bad:3: qid:1 comes back after another one"]),
        ("svmhmm", "X qid:1 1:1\nY 1:1\n", ["bad:2: '1:1' where qid:N must stand"]),
        ("svmhmm", "X qid:1 1:inf\n", ["bad:1: "]),
        ("svmhmm", "X qid:1 2:1 1:1\n", ["bad:1: feature index 1 after 2"]),
    ] {
        refused(text, &format!("--format {format}"), &words);
    }
}

#[test]
fn damaged_files_are_refused() {
    let junk = [0x7f, b'E', b'L', b'F', 0, 1, 2, 255, 254, b'\n', 0, 0].repeat(100);
    for format in ["columns", "crfsuite", "svmhmm"] {
        refused(&junk, &format!("--format {format}"), &["bad:1: "]);
    }
    refused(b"a \xff\xfe\nb Y\n", "", &["bad:1: ", "not valid UTF-8"]);
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for i in 0..10_000 {
        writeln!(gz, "w{} {}", i * i % 1009, ["X", "Y"][i % 2]).unwrap();
    }
    let gz = gz.finish().unwrap();
    for end in [3, gz.len() / 2, gz.len() - 1] {
        refused(&gz[..end], "", &["bad: truncated or damaged gzip data"]);
    }
}

#[test]
fn templates_that_do_not_fit_are_named() {
    let folder = Folder::new();
    folder.write("t.pos", "a X\nb Y\n");
    for (template, what) in [
        ("U00:%x[0,0]\nU01:%x[0,3]\n", "template:2: %x[0,3]: there is no column 3; t.pos has 1 column before the tag"),
        ("U00:%x[0,0]\n\nU01:%x[0\n", "template:3: '%x[0' is not %x[row,column]"),
        ("X00:%x[0,0]\n", "template:1: 'X00:%x[0,0]' (a line starts with U"),
    ] {
        folder.write("template", template);
        folder.run("train tag t.pos -m t.mm --template template").bad(1, &[what]);
        folder.run("features t.pos --template template").bad(1, &[what]);
    }
    folder.run("train tag t.pos -m t.mm --template none").bad(1, &["none: No such file"]);
    folder.holds_only(&["t.pos", "template"]);
}

#[test]
fn schemes_and_forbidden_pairs_bind_the_data() {
    let iob = "a O\nb B-A\nc I-A\n\na O\nc I-A\n";
    refused(iob, "--scheme BIO", &["bad:5: ", "has I-A after O, which is forbidden"]);
    refused("a I-A\nb B-A\n", "--scheme BIO", &["bad:1: the first tag is I-A"]);
    refused("a O\nb NN\n", "--scheme BIO", &["bad: --scheme BIO: 'NN' is no tag of this scheme"]);
    refused("a O\nb E-A\n", "--scheme BIO", &["'E-A' is no tag of this scheme"]);
    refused("a B-A\nb O\n\nb E-A\n", "--scheme BIOES", &["bad:1: "]);
    refused("a X\nb X\nc Y\n", "--forbid X,X", &["bad:1: token 2 of the sentence has X after X, which is forbidden"]);
    refused("a X\nb Y\n", "--forbid X,Z", &["bad: --forbid: 'Z' is no tag of these data; they have X Y"]);
    refused("a X\nb Y\n", "--forbid Z,X", &["--forbid: 'Z' is no tag"]);
    refused("a X\nb Y\n", "--tag-cost Z=2", &["bad: --tag-cost: 'Z' is no tag of these data; they have X Y"]);
}

#[test]
fn options_that_have_no_effect_are_refused() {
    let folder = Folder::with_data();
    folder.write("t.pos", "a X\nb Y\n");
    for (options, flag) in [
        ("--bias 1", "--bias: "),
        ("--positive X", "--positive: "),
        ("--class-weight X=2", "--class-weight: "),
        ("--class-weight balanced", "take --tag-cost"),
        ("--cost-matrix t.pos", "--cost-matrix: "),
        ("--loss squared", "--loss: the task tag has the losses hamming and zero-one"),
        ("--loss matrix", "--loss: "),
        ("--solver dual-coordinate", "--solver: dual-coordinate needs"),
        ("--solver group-slack", "--groups P"),
        ("--solver mle -c 3", "--c: "),
        ("--solver mle --max-passes 3", "--max-passes: "),
        ("--solver bcfw --penalty hard", "--penalty: "),
        ("--template b.dat --format crfsuite", "--template: "),
        ("--tag-cost X=2 --loss zero-one", "--tag-cost: "),
        ("--tag-cost X=2 --rescaling slack", "--tag-cost: "),
        ("--tag-cost X=2 --penalty quadratic", "--tag-cost: "),
        ("--tag-cost X=0 --tag-cost Y=0", "--tag-cost: no error would cost anything"),
        ("--tag-cost X=2 --tag-cost X=3", "--tag-cost: "),
        ("--tag-cost X", "must be TAG=W"),
        ("--tag-cost X=-1", "must be a number from 0"),
        ("--forbid X", "--forbid: 'X' is not A,B"),
        ("--order 3", "3 is not in 1..=2"),
        ("--min-count 0", "must be a whole number from 1"),
        ("--scheme IO", "invalid value 'IO'"),
        ("--format conll", "invalid value 'conll'"),
        ("--folds 2", "--folds: must be from 2 to the number of examples"),
    ] {
        folder.run(&format!("train tag t.pos -m t.mm {options}")).bad(2, &[flag]);
    }
    for option in
        ["--template b.dat", "--format columns", "--order 2", "--forbid 1,2", "--scheme BIO", "--tag-cost 1=2"]
    {
        let flag = format!("{}: belongs to the task tag", option.split(' ').next().unwrap());
        folder.run(&format!("train multiclass m.dat -m t.mm {option}")).bad(2, &[&flag]);
    }
    let of_both = "belongs to the tasks tag and parse";
    folder.run("train multiclass m.dat -m t.mm --min-count 2").bad(2, &["--min-count: ", of_both]);
    let of_four = "belongs to the tasks tag, parse, multilabel, graph and align";
    folder.run("train multiclass m.dat -m t.mm --loss hamming").bad(2, &["--loss: hamming ", of_four]);
    folder.run("train binary b.dat -m t.mm --solver mle").bad(2, &["--solver: mle"]);
    folder.run("features t.pos --format crfsuite").bad(2, &["unexpected argument '--format'"]);
    folder.run("generate tag --examples 3 --classes 3").bad(2, &["--classes: "]);
    folder.run("generate binary --examples 3 --tags 3").bad(2, &["--tags: ", of_both]);
    folder.run("generate tag --examples 3 --noise 2").bad(2, &["--noise: "]);
    folder.holds_only(&["b.dat", "m.dat", "t.pos"]);
}

#[test]
fn models_of_other_tasks_and_data_are_refused() {
    let folder = Folder::with_data();
    folder.write("t.pos", "a X\nb Y\n");
    folder.run("train tag t.pos -m t.mm --quiet").good();
    folder.run("train multiclass m.dat -m m.mm --quiet").good();
    for option in ["--n-best 2", "--margins", "--forced"] {
        let flag = format!("{}: belongs to models of tags", option.split(' ').next().unwrap());
        folder.run(&format!("predict m.mm m.dat {option}")).bad(2, &[&flag]);
    }
    folder.run("predict t.mm t.pos --n-best 0").bad(2, &["must be from 1 to 10000"]);
    folder.run("predict t.mm t.pos --n-best 2 --margins").bad(2, &["cannot be used with"]);
    folder
        .run("train tag t.pos -m x.mm --warm-start m.mm")
        .bad(1, &["m.mm: a model of the task multiclass, not of tags"]);
    folder.run("train multiclass m.dat -m x.mm --warm-start t.mm").bad(1, &["t.mm: a model of the task tag"]);
    folder.write("more.pos", "a X\nb Y\nc Z\n");
    folder
        .run("train tag more.pos -m x.mm --warm-start t.mm")
        .bad(1, &["t.mm: cannot start from this model: its tags are X Y, those of the data X Y Z"]);
    folder
        .run("train tag t.pos -m x.mm --warm-start t.mm --order 2")
        .bad(1, &["t.mm: cannot start from this model: its --order"]);
    folder.write("wide", "\na b X\nc d Y\n");
    folder.run("predict t.mm wide").bad(1, &["wide:2: 3 columns, but the model needs 1, or 2 with the tag"]);
    folder.run("evaluate t.mm wide").bad(1, &["wide:2: 3 columns, but the model needs 2 with the tag"]);
    folder.write("words", "a\nb\n");
    folder.run("evaluate t.mm words").bad(1, &["words:1: tag missing"]);
    folder.run("train tag t.pos -m x.mm --heldout words").bad(1, &["words:1: tag missing"]);
    folder.run("predict t.mm none").bad(1, &["none: No such file"]);
    folder.run("predict t.mm t.pos -o t.pos").bad(2, &["--output: t.pos is the input"]);
    folder.run("train tag t.pos -m t.pos").bad(2, &["--model: t.pos is the training file"]);
    assert!(!folder.exists("x.mm"));
}
