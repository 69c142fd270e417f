//! Training on partitions, task by task, against training on all of the data at once.

use maxmargin::model::Saved;
use maxmargin::tasks::partitioned::Partitions;
use maxmargin::{Error, Result};
use maxmargin_cli::embed::{self, Data, Failure, Group, Hooks, Partition};

fn words(options: &[&str]) -> Vec<String> {
    options.iter().map(|&word| word.to_owned()).collect()
}

fn hooks() -> Hooks {
    Hooks { on_round: Box::new(|_| ()), is_over: Box::new(|| false) }
}

/// What the program generates for the task, in `parts` texts of whole examples.
fn generated(task: &str, options: &[&str], separator: &str, parts: usize) -> Vec<Vec<u8>> {
    let text = String::from_utf8(embed::generate(task, &words(options)).unwrap().output).unwrap();
    let examples: Vec<&str> = text.split_inclusive(separator).collect();
    let size = examples.len().div_ceil(parts);
    examples.chunks(size).map(|part| part.concat().into_bytes()).collect()
}

/// All partitions in this process.
struct Here(Vec<Partition>);

impl Partitions for Here {
    fn cuts(&self, w: &[f64]) -> Result<Vec<(Vec<f64>, f64)>> {
        let mut sum = (vec![0.0; w.len()], 0.0);
        for (at, partition) in self.0.iter().enumerate() {
            // Threads do not matter.
            let (lhs, rhs) = partition.cut(w.to_vec(), at % 3).map_err(|e| failed(&e))?;
            sum.0.iter_mut().zip(&lhs).for_each(|(sum, x)| *sum += x);
            sum.1 += rhs;
        }
        Ok(vec![sum])
    }

    fn loss(&self, w: &[f64]) -> Result<f64> {
        self.0.iter().map(|partition| partition.loss(w.to_vec(), 0).map_err(|e| failed(&e))).sum()
    }
}

fn failed(failure: &Failure) -> Error {
    Error::Task(format!("{failure:?}").into())
}

/// The model of all parts, and what is told of it.
fn trained(task: &str, options: &[&str], parts: &[Vec<u8>]) -> (Vec<u8>, serde_json::Value) {
    let options = words(options);
    let survey = |(at, part): (usize, &Vec<u8>)| {
        embed::survey(task, &options, part.clone(), &format!("part {at}")).expect("the part can be surveyed")
    };
    let surveys: Vec<Vec<u8>> = parts.iter().enumerate().map(survey).collect();
    let blank = embed::merge(task, &options, &surveys, "parts").expect("the surveys can be merged");
    let open = |(at, part): (usize, &Vec<u8>)| {
        let model = Saved::from_bytes(&blank).unwrap();
        Partition::open(task, &options, model, Data::Text(part.clone()), &format!("part {at}")).expect("it opens")
    };
    let here = Here(parts.iter().enumerate().map(open).collect());
    let facts = || here.0.iter().map(Partition::facts);
    let group = Group {
        examples: facts().map(|facts| facts.examples).sum(),
        max_loss: facts().map(|facts| facts.max_loss).sum(),
        is_exact: facts().all(|facts| facts.is_exact),
        checksum: 7,
    };
    let model = Saved::from_bytes(&blank).unwrap();
    let done = embed::train_partitions(task, &options, model, &[group], &here, hooks()).expect("it trains");
    (done.model, serde_json::from_str(&done.summary).unwrap())
}

/// The dictionaries of both models are the same, and so is the optimum, within the gaps.
fn agrees_with_the_whole(task: &str, options: &[&str], parts: &[Vec<u8>]) {
    let (model, told) = trained(task, options, parts);
    let options = words(&[options, &["--solver", "one-slack"]].concat());
    let whole = embed::train(task, &options, Data::Text(parts.concat()), None, hooks()).unwrap();
    let other: serde_json::Value = serde_json::from_str(&whole.summary).unwrap();
    let number = |of: &serde_json::Value, key: &str| of[key].as_f64().unwrap();
    assert_eq!(number(&told, "examples"), number(&other, "examples"), "{task}");
    assert_eq!(told["certificate"], "exact", "{task}");
    for (a, b) in [(&told, &other), (&other, &told)] {
        assert!(number(a, "dual") <= number(b, "primal") * (1.0 + 1e-9), "{task}: {a} {b}");
    }
    // What the two say of the data is the same.
    let evaluated = |model: &[u8]| {
        let model = Saved::from_bytes(model).unwrap();
        let said = embed::ask(&model, "evaluate", &words(&["--json"]), parts.concat()).unwrap();
        serde_json::from_slice::<serde_json::Value>(&said.output).unwrap()
    };
    let (ours, theirs) = (evaluated(&model), evaluated(&whole.model));
    assert_eq!(ours["examples"], theirs["examples"], "{task}");
    let inspected = |model: &[u8]| {
        let model = Saved::from_bytes(model).unwrap();
        let said = embed::ask(&model, "inspect", &words(&["--json"]), Vec::new()).unwrap();
        serde_json::from_slice::<serde_json::Value>(&said.output).unwrap()
    };
    let (ours, theirs) = (inspected(&model), inspected(&whole.model));
    for key in ["task", "labels", "features", "tags", "classes", "loss", "rules", "templates", "letters", "weights"] {
        if key != "weights" || ours[key].is_u64() {
            assert_eq!(ours[key], theirs[key], "{task}: {key}");
        }
    }
}

const GAP: [&str; 2] = ["--relative-gap", "0.01"];

#[test]
fn classes() {
    let parts = generated("multiclass", &["--examples", "90", "--seed", "3"], "\n", 4);
    agrees_with_the_whole("multiclass", &GAP, &parts);
    agrees_with_the_whole("multiclass", &[&GAP[..], &["--bias", "1", "--penalty", "quadratic"]].concat(), &parts);
    let parts = generated("binary", &["--examples", "90", "--seed", "3"], "\n", 3);
    agrees_with_the_whole("binary", &[&GAP[..], &["--rescaling", "slack"]].concat(), &parts);
}

#[test]
fn sets() {
    let parts = generated("multilabel", &["--examples", "40", "--seed", "3"], "\n", 3);
    for pairs in ["none", "tree"] {
        agrees_with_the_whole("multilabel", &[&GAP[..], &["--pairs", pairs]].concat(), &parts);
    }
}

#[test]
fn tags() {
    let parts = generated("tag", &["--examples", "30", "--seed", "3"], "\n\n", 3);
    agrees_with_the_whole("tag", &GAP, &parts);
    agrees_with_the_whole("tag", &[&GAP[..], &["--min-count", "3"]].concat(), &parts);
}

#[test]
fn trees() {
    let parts = generated("parse", &["--examples", "30", "--seed", "3"], "\n", 3);
    agrees_with_the_whole("parse", &GAP, &parts);
    agrees_with_the_whole("parse", &[&GAP[..], &["--terminals", "words", "--markov", "1"]].concat(), &parts);
}

#[test]
fn graphs() {
    // Chains, whose argmax is exact; only some have the second kind of factor.
    let line = |i: u32| {
        let labels: Vec<u32> = (0..4).map(|v| (i * 7 + v * v + i / 5) % 3).collect();
        let x: Vec<[u32; 2]> = labels.iter().map(|&y| [y, (y + i) % 2]).collect();
        let far = if i > 20 { r#", "far": [[0, 3]]"# } else { "" };
        let near = if i > 20 { "[0, 1], [1, 2]" } else { "[0, 1], [1, 2], [2, 3]" };
        format!(r#"{{"domain": 3, "labels": {labels:?}, "x": {x:?}, "factors": {{"near": [{near}]{far}}}}}"#) + "\n"
    };
    let part = |range: std::ops::Range<u32>| range.map(line).collect::<String>().into_bytes();
    agrees_with_the_whole("graph", &GAP, &[part(0..10), part(10..20), part(20..30)]);
}

#[test]
fn alignments() {
    let parts = generated("align", &["--examples", "12", "--seed", "3"], "\n", 3);
    agrees_with_the_whole("align", &[&GAP[..], &["--gaps", "linear"]].concat(), &parts);
}

#[test]
fn the_bits_are_those_of_the_partitions() {
    let parts = generated("multiclass", &["--examples", "90", "--seed", "5"], "\n", 4);
    let (first, told) = trained("multiclass", &GAP, &parts);
    let (second, _) = trained("multiclass", &GAP, &parts);
    assert_eq!(first, second);
    assert_eq!(told["solver"], "one-slack");
    assert_eq!(told["status"], "converged");
}

#[test]
fn what_partitions_cannot_do_is_refused() {
    let text = b"1 1:1\n2 2:1\n".to_vec();
    for (options, word) in [
        (&["--solver", "bcfw"][..], "one-slack"),
        (&["--kernel", "rbf:gamma=1"], "kernel"),
        (&["--penalty", "hard"], "hard margin"),
        (&["--class-weight", "balanced"], "balanced"),
        (&["--heldout", "x"], "evaluate"),
    ] {
        let Err(Failure::Usage(what)) = embed::survey("multiclass", &words(options), text.clone(), "a") else {
            panic!("{options:?} was taken")
        };
        assert!(what.contains(word), "{what}");
    }
    let Err(Failure::Data(what)) = embed::survey("multiclass", &[], b"1 2:x\n".to_vec(), "s3://bucket/part") else {
        panic!("a bad line was taken")
    };
    assert!(what.starts_with("s3://bucket/part:1:"), "{what}");
    assert!(embed::merge("multiclass", &[], &[vec![9, 9, 9]], "parts").is_err());
    // A partition that is not what it was when it was surveyed.
    let survey = embed::survey("multiclass", &[], text.clone(), "a").unwrap();
    let blank = embed::merge("multiclass", &[], &[survey], "a").unwrap();
    for (changed, word) in [(&b"1 1:1\n3 2:1\n"[..], "a:2: '3' is no label"), (b"1 1:1\n2 9:1\n", "9 features")] {
        let model = Saved::from_bytes(&blank).unwrap();
        let failed = Partition::open("multiclass", &[], model, Data::Text(changed.to_vec()), "a").unwrap_err();
        assert!(matches!(&failed, Failure::Data(what) if what.contains(word)), "{failed:?}");
    }
    let model = Saved::from_bytes(&blank).unwrap();
    let mut partition = Partition::open("multiclass", &[], model, Data::Text(text), "a").unwrap();
    assert!(partition.cut(vec![0.0; 3], 0).is_err(), "w is too short");
    assert_eq!(partition.cut(vec![0.0; 4], 0).unwrap().1, 2.0);
    partition.close();
    assert!(partition.cut(vec![0.0; 4], 0).is_err(), "it is closed");
}
