//! The task `taxonomy` as a user sees it.

mod common;

use common::{Folder, keys, number};

const SIZES: &str = "--depth 2 --branching 3 --features 20 --noise 0.7";

/// A folder with `train.dat`, `test.dat` and the tree of their classes, `tree`.
fn with_data() -> Folder {
    let folder = Folder::new();
    folder.run(&format!("generate taxonomy --examples 400 --seed 1 {SIZES} --taxonomy tree -o all.dat")).good();
    let all = folder.text("all.dat");
    let lines: Vec<&str> = all.lines().collect();
    folder.write("train.dat", lines[..250].join("\n") + "\n");
    folder.write("test.dat", lines[250..].join("\n") + "\n");
    folder
}

/// Animals: an inner node is a class, too, and a node has one child.
const TREE: &str = "mammal animal\nbird animal\ncat mammal\ndog mammal\nsparrow bird\n";
const ANIMALS: &str = "\
cat 1:1 2:1
cat 1:1 2:0.9 5:0.1
dog 1:1 3:1
dog 1:0.9 3:1.1
mammal 1:1
sparrow 4:1
sparrow 4:1.1 5:0.2
";

fn with_animals() -> Folder {
    let folder = Folder::new();
    folder.write("tree", TREE);
    folder.write("animals.dat", ANIMALS);
    folder
}

#[test]
fn classes_are_learned_with_every_loss_and_architecture() {
    let folder = with_data();
    let classes: Vec<String> = (1..4).flat_map(|a| (1..4).map(move |b| format!("{a}/{b}"))).collect();
    let features: Vec<String> = classes.iter().map(|c| format!("{c} {} own-{c}:0.5\n", &c[..1])).collect();
    folder.write("features", features.concat());
    let costs: Vec<String> =
        (0..9).map(|a| (0..9).map(|b| u8::from(a != b).to_string()).collect::<Vec<_>>().join(" ")).collect();
    folder.write("costs", costs.join("\n") + "\n");
    for (options, word) in [
        ("", "weights for each node"),
        ("--architecture flat", "weights for each class"),
        ("--ancestor-weight 0.5", "weights for each node, those of ancestors times 0.5"),
        ("--ancestor-weight 0.25 --architecture taxonomy --kernel rbf:gamma=0.02", "support vectors"),
        ("--class-features features", "weights for 12 attributes of the classes"),
        ("--loss zero-one --bias 1", "a constant one of 1, weights for each node"),
        ("--loss path", "weights for each node"),
        ("--loss matrix --cost-matrix costs", "weights for each node"),
        ("--rescaling slack --penalty quadratic", "dual-coordinate"),
        ("--solver one-slack", "one-slack"),
        ("--solver bcfw", "bcfw"),
        ("--solver n-slack", "n-slack"),
        ("--solver perceptron", "perceptron"),
        ("--class-weight balanced", "weights for each node"),
        ("--kernel rbf:gamma=0.02", "support vectors"),
        ("--kernel rbf:gamma=0.02 --low-rank 60 --architecture flat", "low rank"),
    ] {
        let c = if options.contains("perceptron") { "--max-passes 20" } else { "--c-per-example 1" };
        let train =
            format!("train taxonomy train.dat --taxonomy tree -m m.mm --quiet {c} --heldout test.dat {options}");
        let text = folder.run(&train).good();
        assert!(
            text.contains("taxonomy, 9 classes: 1/1 1/2 1/3") && text.contains("a tree of 13 nodes, depth 2"),
            "{text}"
        );
        assert!(text.contains(word), "{options}: {word} in\n{text}");
        let figures = folder.run("evaluate m.mm test.dat --json").json();
        assert!(number(&figures, "accuracy") > 0.6, "{options}: {figures}");
        assert_eq!(folder.run("predict m.mm test.dat").good().lines().count(), 150);
    }
}

#[test]
fn figures_have_their_keys_and_agree_with_training() {
    let folder = with_data();
    let train = "train taxonomy train.dat --taxonomy tree -m m.mm --heldout test.dat --json --quiet";
    let summary = folder.run(train).json();
    assert_eq!((summary["task"].as_str(), summary["certificate"].as_str()), (Some("taxonomy"), Some("exact")));
    assert_eq!(summary["solver"].as_str(), Some("dual-coordinate"));
    let figures = folder.run("evaluate m.mm test.dat --json").json();
    assert_eq!(
        keys(&figures),
        [
            "accuracy",
            "classes",
            "examples",
            "hierarchical_f1",
            "hierarchical_precision",
            "hierarchical_recall",
            "levels",
            "mean_loss",
            "tree_loss",
            "unseen_labels",
            "untrained_labels",
        ]
    );
    assert!((number(&figures, "tree_loss") - number(&summary, "heldout_loss")).abs() < 1e-12);
    assert_eq!(figures["tree_loss"], figures["mean_loss"]);
    let levels = figures["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 2);
    assert_eq!(levels[1]["accuracy"], figures["accuracy"]);
    assert!(number(&levels[0], "accuracy") >= number(&levels[1], "accuracy"));
    let scaled = folder.run(&train.replace("--json", "--loss-scale 10 --json")).json();
    assert!(number(&scaled, "heldout_loss") > 5.0 * number(&summary, "heldout_loss"));
    let text = folder.run("evaluate m.mm test.dat").good();
    for word in ["tree loss", "hierarchical", "depth  examples  accuracy", "node"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    let compared = folder.run("evaluate m.mm test.dat --compare m.mm").good();
    assert!(compared.contains("hierarchical F1") && compared.contains("p = 1"), "{compared}");
}

#[test]
fn inner_nodes_may_be_classes_and_predictions() {
    let folder = with_animals();
    let text = folder.run("train taxonomy animals.dat --taxonomy tree -m m.mm --quiet --c-per-example 100").good();
    assert!(text.contains("4 classes: sparrow mammal cat dog"), "{text}");
    assert_eq!(folder.run("predict m.mm animals.dat").good(), "cat\ncat\ndog\ndog\nmammal\nsparrow\nsparrow\n");
    folder.write("new.dat", "1:1 2:1\n1:1 2:0.5 3:0.49\n1:1 2:0.5 3:0.5 4:0.8\n");
    let found = |threshold: &str| folder.run(&format!("predict m.mm new.dat --depth-threshold {threshold}")).good();
    assert_eq!(found("0"), folder.run("predict m.mm new.dat").good());
    let half = found("0.5");
    assert_eq!(half.lines().take(2).collect::<Vec<_>>(), ["cat", "mammal"], "{half}");
    assert_eq!(found("1000"), "animal\nanimal\nanimal\n");
    let figures = folder.run("evaluate m.mm animals.dat --json --depth-threshold 1000").json();
    assert_eq!((number(&figures, "accuracy"), number(&figures, "hierarchical_f1")), (0.0, 0.0));
    assert_eq!(number(&figures, "tree_loss"), 2.0);
    let scores = folder.run("predict m.mm new.dat --scores").good();
    assert!(scores.lines().all(|line| line.split('\t').nth(1).unwrap().split(' ').count() == 4), "{scores}");
    // bird is a node that was never seen, fish none at all.
    folder.write("test.dat", "cat 1:1 2:1\nbird 4:1\nfish 5:1\n");
    let figures = folder.run("evaluate m.mm test.dat --json").json();
    assert_eq!((figures["unseen_labels"].as_u64(), figures["untrained_labels"].as_u64()), (Some(1), Some(1)));
    assert!((number(&figures, "tree_loss") - (0.0 + 1.0 + 2.0) / 3.0).abs() < 1e-12, "{figures}");
    let shown = folder.run("inspect m.mm --top 2").good();
    assert!(shown.contains("animal\n") && shown.contains("\n  mammal") && shown.contains("\n    cat "), "{shown}");
    let json = folder.run("inspect m.mm --json").json();
    assert_eq!(json["nodes"][4]["name"], "cat");
    assert_eq!(json["nodes"][4]["parents"][0], "mammal");
    assert_eq!(json["strongest"].as_array().unwrap().len(), 5);
}

#[test]
fn a_lattice_is_learned() {
    let folder = with_animals();
    folder.write("tree", format!("{TREE}pet animal\ncat pet\ndog pet\n"));
    let text = folder.run("train taxonomy animals.dat --taxonomy tree -m m.mm --quiet --c-per-example 100").good();
    assert!(text.contains("a lattice of 7 nodes, depth 2"), "{text}");
    assert!(folder.run("evaluate m.mm animals.dat").good().contains("100.00 % (7 of 7 examples)"));
    assert!(folder.run("inspect m.mm").good().contains("cat < mammal, pet"));
}

#[test]
fn bad_files_are_told_with_file_and_line() {
    let folder = with_animals();
    let train = "train taxonomy animals.dat --taxonomy bad -m m.mm --quiet";
    for (text, words) in [
        (
            "cat mammal\nmammal pet\npet cat\n",
            &["bad:1: a cycle, each below the next: cat -> mammal -> pet -> cat"][..],
        ),
        ("cat mammal\nbird animal\n", &["bad:2: 2 roots, 'mammal', 'animal'", "mammal ROOT"]),
        ("cat mammal\ndog\n", &["bad:2: 1 word", "CHILD PARENT"]),
        ("cat mammal\ndog mammal here\n", &["bad:2: 3 words"]),
        ("cat mammal\ncat mammal\n", &["bad:2: 'cat' below 'mammal' stands on line 1 already"]),
        ("", &["bad:1: has no lines CHILD PARENT"]),
        ("cat animal\ndog animal\nmammal animal\n", &["animals.dat:6: label 'sparrow' is no node of the taxonomy"]),
    ] {
        folder.write("bad", text);
        folder.run(train).bad(1, words);
    }
    folder.run("train taxonomy animals.dat --taxonomy missing -m m.mm").bad(1, &["missing"]);
    folder.write("one.dat", "cat 1:1\ncat 2:1\n");
    folder
        .run("train taxonomy one.dat --taxonomy tree -m m.mm")
        .bad(1, &["one.dat:1: all examples have the label 'cat'"]);
    folder.write("features", "cat fur\ndog fur barks\nmammal fur:0.5\n");
    folder
        .run("train taxonomy animals.dat --taxonomy tree --class-features features -m m.mm")
        .bad(1, &["features:3: class 'sparrow' of the data has no line"]);
    assert!(!folder.exists("m.mm"));
}

#[test]
fn what_has_no_effect_is_refused() {
    let folder = with_animals();
    folder.write("m.dat", "1 1:1\n2 2:1\n");
    let taxonomy = "train taxonomy animals.dat --taxonomy tree -m m.mm --quiet";
    for (words, expected) in [
        ("train multiclass m.dat -m m.mm --taxonomy tree", &["--taxonomy: belongs to the task taxonomy"][..]),
        ("train multiclass m.dat -m m.mm --architecture flat", &["--architecture: belongs to the task taxonomy"]),
        ("train binary m.dat -m m.mm --class-features f", &["--class-features: belongs to the task taxonomy"]),
        ("train multiclass m.dat -m m.mm --loss tree", &["tree and path belong to the task taxonomy"]),
        ("train tag m.dat -m m.mm --loss path", &["--loss"]),
        ("train taxonomy animals.dat -m m.mm", &["--taxonomy: the task taxonomy needs the tree"]),
        (&format!("{taxonomy} --loss absolute"), &["the losses zero-one, tree, path and matrix"]),
        (&format!("{taxonomy} --loss hamming"), &["--loss: hamming belongs to"]),
        (&format!("{taxonomy} --loss f1"), &["--loss: f1 belongs to"]),
        (&format!("{taxonomy} --positive cat"), &["--positive: belongs to the task binary"]),
        (&format!("{taxonomy} --pairs tree"), &["--pairs"]),
        (&format!("{taxonomy} --solver mle"), &["mle needs a generative model"]),
        (&format!("{taxonomy} --solver gdmm"), &["gdmm"]),
        (&format!("{taxonomy} --architecture flat --class-features f"), &["cannot be used with"]),
        ("train multiclass m.dat -m m.mm --ancestor-weight 2", &["--ancestor-weight: belongs to the task taxonomy"]),
        (&format!("{taxonomy} --ancestor-weight 0.5 --class-features f"), &["cannot be used with"]),
        (&format!("{taxonomy} --ancestor-weight 0.5 --architecture flat"), &["no effect with --architecture flat"]),
        (&format!("{taxonomy} --ancestor-weight 0"), &["--ancestor-weight"]),
        (&format!("{taxonomy} --ancestor-weight -1"), &["--ancestor-weight", "from 0.000001 to 10"]),
        (&format!("{taxonomy} --ancestor-weight -inf"), &["--ancestor-weight", "from 0.000001 to 10"]),
        (&format!("{taxonomy} --ancestor-weight 1e3"), &["--ancestor-weight", "from 0.000001 to 10"]),
        ("generate taxonomy --examples 5", &["--taxonomy: say where the tree"]),
        ("generate taxonomy --examples 5 --taxonomy t --classes 4", &["take --depth and --branching"]),
        ("generate taxonomy --examples 5 --taxonomy t --depth 30", &["--depth"]),
        ("generate taxonomy --examples 5 --taxonomy t -o t", &["--output: t is the taxonomy"]),
        ("generate multiclass --examples 5 --depth 3", &["--depth: belongs to the task taxonomy"]),
    ] {
        folder.run(words).bad(2, expected);
    }
    folder.run("train taxonomy animals.dat --taxonomy tree -m tree").bad(2, &["--model: tree is the taxonomy"]);
    folder.run("train multiclass m.dat -m c.mm --quiet").good();
    folder.run("predict c.mm m.dat --depth-threshold 1").bad(2, &["belongs to models of taxonomies"]);
    folder.run("evaluate c.mm m.dat --depth-threshold 1").bad(2, &["belongs to models of taxonomies"]);
    folder.run(&taxonomy.replace("m.mm", "t.mm")).good();
    folder.run("predict t.mm animals.dat --depth-threshold -1").bad(2, &["must be a finite number from 0"]);
    folder.run("predict t.mm animals.dat --threshold 1").bad(2, &["belongs to models of label sets"]);
    folder.run("evaluate t.mm animals.dat --compare c.mm").bad(1, &["a model of the task multiclass"]);
    folder.write("costs", "0 1 1 1\n1 0 1 1\n1 1 0 1\n1 1 1 0\n");
    folder.run(&format!("{taxonomy} --loss matrix --cost-matrix costs")).good();
    folder.run("evaluate m.mm animals.dat --depth-threshold 1").bad(2, &["no costs of inner nodes"]);
}

/// Without a header the rows of a cost matrix follow the labels in ascending order, not the tree's.
#[test]
fn cost_matrices_find_their_classes() {
    let folder = with_animals();
    // cat, dog, mammal, sparrow
    folder.write("costs", "0 1 2 3\n4 0 5 6\n7 8 0 9\n10 11 12 0\n");
    folder.write("named", "sparrow cat dog mammal\n0 10 11 12\n3 0 1 2\n6 4 0 5\n9 7 8 0\n");
    let train = "train taxonomy animals.dat --taxonomy tree --quiet --loss matrix --c-per-example 0.01";
    for costs in ["costs", "named"] {
        folder.run(&format!("{train} --cost-matrix {costs} -m {costs}.mm")).good();
    }
    assert_eq!(folder.read("costs.mm"), folder.read("named.mm"));
    // At so small a C all are taken for one class; what that costs is in the table.
    let wrong = folder.run("predict costs.mm animals.dat").good();
    let figures = folder.run("evaluate costs.mm animals.dat --json").json();
    let order = ["cat", "dog", "mammal", "sparrow"];
    let table = [[0, 1, 2, 3], [4, 0, 5, 6], [7, 8, 0, 9], [10, 11, 12, 0]];
    let place = |word: &str| order.iter().position(|o| *o == word).unwrap();
    let truths = ANIMALS.lines().map(|line| line.split(' ').next().unwrap());
    let cost: i32 = truths.zip(wrong.lines()).map(|(truth, found)| table[place(truth)][place(found)]).sum();
    assert!((number(&figures, "mean_loss") - f64::from(cost) / 7.0).abs() < 1e-12, "{figures} {wrong}");
}

#[test]
fn training_goes_on_and_begins_anew_in_the_same_bytes() {
    let folder = with_data();
    let train = "train taxonomy train.dat --taxonomy tree --quiet --c-per-example 1 --relative-gap 0.0001";
    for threads in [1, 2] {
        folder.run(&format!("{train} -m {threads}.mm --threads {threads}")).good();
    }
    assert_eq!(folder.read("1.mm"), folder.read("2.mm"));
    folder.run(&format!("{train} -m c.mm --checkpoint state --checkpoint-every 0 --max-passes 2")).good();
    folder.run(&format!("{train} -m c.mm --checkpoint state --checkpoint-every 0 --resume")).good();
    assert_eq!(folder.read("1.mm"), folder.read("c.mm"));
    folder.run(&format!("{train} -m c.mm --checkpoint state --max-passes 2")).good();
    folder.write("tree", folder.text("tree").replace("1/1 1", "1/1 2"));
    folder.run(&format!("{train} -m c.mm --checkpoint state --resume")).bad(1, &["the taxonomy"]);
}

#[test]
fn warm_starts_folds_and_paths() {
    let folder = with_data();
    let train = "train taxonomy train.dat --taxonomy tree --quiet -m m.mm";
    folder.run(&format!("{train} --c-per-example 0.1")).good();
    folder.run(&train.replace("m.mm", "w.mm --warm-start m.mm")).good();
    folder
        .run(&train.replace("m.mm", "w.mm --warm-start m.mm --architecture flat"))
        .bad(1, &["it has weights for each node"]);
    folder.run(&train.replace("m.mm", "w.mm --warm-start m.mm --ancestor-weight 0.5")).good();
    folder.write("other", folder.text("tree").replace("1/1 1", "1/1 2"));
    let other = train.replace("m.mm", "w.mm --warm-start m.mm").replace("--taxonomy tree", "--taxonomy other");
    folder.run(&other).bad(1, &["its taxonomy is another"]);
    let summary = folder.run(&format!("{train} --folds 3 --c-path-per-example 0.001,0.1 --json")).json();
    assert_eq!(summary["cv"].as_array().unwrap().len(), 2);
    let summary = folder.run(&format!("{train} --c-path auto --heldout test.dat --keep-best --json")).json();
    assert!(summary["path"].as_array().unwrap().len() > 2);
}
