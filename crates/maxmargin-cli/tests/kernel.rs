//! Models with a kernel as a user sees them. The linear kernel over one support vector for each feature must say what the
//! linear model says.

mod common;

use common::{Folder, number};
use maxmargin::kernel::{Expansion, Shape, Standard};
use maxmargin::model::tagger::TagWeights;
use maxmargin::model::{Model, Tagger};
use maxmargin::sparse::SparseMatrix;
use maxmargin::weights::Weights;

fn unit_vectors(features: u32) -> SparseMatrix {
    let mut vectors = SparseMatrix::new();
    (0..features).for_each(|j| vectors.push_row([(j, 1.0)]));
    vectors
}

const LINEAR: Standard = Standard { shape: Shape::Linear, constant: 0.0 };

/// Saves `name.mm` again as `kernel.mm`, with a kernel.
fn with_kernel(folder: &Folder, name: &str) {
    let model = Model::load(folder.path(name)).unwrap();
    let (vectors, w) = (unit_vectors(model.features), model.weights.as_slice());
    let expansion = Expansion::of_atoms(LINEAR, &vectors, w, model.slots() as u32).unwrap();
    let kernel = Model { weights: Weights::default(), kernel: Some(expansion), ..model };
    kernel.save(folder.path("kernel.mm")).unwrap();
}

fn tagger_with_kernel(folder: &Folder, name: &str) {
    let tagger = Tagger::load(folder.path(name)).unwrap();
    let shape = tagger.shape();
    let mut coefficients = vec![0.0; (shape.features * shape.tags) as usize];
    for j in 0..shape.features {
        tagger.weights.row(j).for_each(|(tag, w)| coefficients[(j * shape.tags + tag) as usize] = w);
    }
    let expansion = Expansion::of_atoms(LINEAR, &unit_vectors(shape.features), &coefficients, shape.tags).unwrap();
    let weights = TagWeights::of_structure(tagger.weights.structure.clone());
    let kernel = Tagger { weights, kernel: Some(expansion), ..tagger };
    kernel.save(folder.path("kernel.mm")).unwrap();
}

#[test]
fn classes_and_scores_are_those_of_the_linear_model() {
    let folder = Folder::with_data();
    for (task, data) in [("binary", "b.dat"), ("multiclass", "m.dat")] {
        folder.run(&format!("train {task} {data} -m linear.mm --quiet")).good();
        with_kernel(&folder, "linear.mm");
        let [linear, kernel] =
            ["linear.mm", "kernel.mm"].map(|model| folder.run(&format!("predict {model} {data} --scores")).good());
        assert_eq!(linear.lines().count(), kernel.lines().count());
        for (a, b) in linear.lines().zip(kernel.lines()) {
            let words = |line: &str| line.split(['\t', ' ', ':']).map(str::to_owned).collect::<Vec<_>>();
            for (a, b) in words(a).into_iter().zip(words(b)) {
                let near = a.parse::<f64>().ok().zip(b.parse::<f64>().ok()).is_some_and(|(a, b)| (a - b).abs() < 1e-5);
                assert!(a == b || near, "{a} {b}");
            }
        }
        for threads in [1, 2, 5] {
            let again = folder.run(&format!("predict kernel.mm {data} --scores --threads {threads}")).good();
            assert!(again == kernel, "{threads} threads");
        }
        let figures = folder.run(&format!("evaluate linear.mm {data} --compare kernel.mm --json")).json();
        assert_eq!(figures["confusion"], figures["compare"]["figures"]["confusion"]);
    }
}

#[test]
fn inspection_tells_the_kernel_and_no_features() {
    let folder = Folder::with_data();
    folder.run("train multiclass m.dat -m linear.mm --quiet").good();
    with_kernel(&folder, "linear.mm");
    let text = folder.run("inspect kernel.mm").good();
    for words in ["kernel", "linear, 20 support vectors (20 nonzeros, 4 coefficients each, 1.0 kB)"] {
        assert!(text.contains(words), "{words} in\n{text}");
    }
    assert!(!text.contains("strongest"), "{text}");
    let contents = folder.run("inspect kernel.mm --json").json();
    assert_eq!(contents["kernel"]["name"], "linear");
    assert_eq!(number(&contents["kernel"], "support_vectors"), 20.0);
    assert!(contents.get("strongest").is_none());
    folder.run("inspect kernel.mm --top 0").good();
    folder.run("inspect kernel.mm --top 3").bad(2, &["--top: this model has a kernel"]);
    // Without a kernel nothing is said of one.
    assert!(folder.run("inspect linear.mm --json").json().get("kernel").is_none());
}

#[test]
fn tags_are_those_of_the_linear_model() {
    let folder = Folder::new();
    folder.run("generate tag --tags 4 --words 8 --length 6 --noise 0.1 --examples 60 --seed 1 -o t.pos").good();
    folder.run("train tag t.pos -m linear.mm --quiet").good();
    tagger_with_kernel(&folder, "linear.mm");
    for options in ["", "--margins", "--n-best 3", "--forced --scores"] {
        let [linear, kernel] =
            ["linear.mm", "kernel.mm"].map(|model| folder.run(&format!("predict {model} t.pos {options}")).good());
        assert_eq!(linear.lines().count(), kernel.lines().count());
        for (a, b) in linear.lines().zip(kernel.lines()) {
            for (a, b) in a.split(['\t', ' ']).zip(b.split(['\t', ' '])) {
                let near = a.parse::<f64>().ok().zip(b.parse::<f64>().ok()).is_some_and(|(a, b)| (a - b).abs() < 1e-4);
                assert!(a == b || near, "{options}: {a} {b}");
            }
        }
    }
    let figures = folder.run("evaluate linear.mm t.pos --compare kernel.mm --json").json();
    assert_eq!(figures["token_accuracy"], figures["compare"]["figures"]["token_accuracy"]);
    let text = folder.run("inspect kernel.mm").good();
    assert!(text.contains("transitions") && text.contains("support vectors") && !text.contains("FEATURE"), "{text}");
    let contents = folder.run("inspect kernel.mm --json").json();
    assert!(contents.get("strongest").is_none() && contents["kernel"]["name"] == "linear");
    assert!(folder.run("inspect linear.mm --json").json()["strongest"].is_array());
}
