//! Training with a kernel as a user does it.

mod common;

use common::{Folder, number};

const EXACT: [&str; 4] = ["one-slack", "n-slack", "bcfw", "sampled-linear"];

fn checkers() -> Folder {
    let folder = Folder::new();
    folder.run("generate binary --kind checkers --examples 300 --noise 0.02 --seed 1 -o train.dat").good();
    folder.run("generate binary --kind checkers --examples 200 --noise 0.02 --seed 2 -o test.dat").good();
    folder
}

#[test]
fn the_solvers_find_one_optimum_and_say_what_their_models_do() {
    let folder = checkers();
    let train = "train binary train.dat -m k.mm --quiet --json --kernel rbf:gamma=3";
    let best = number(&folder.run(&format!("{train} --solver n-slack --relative-gap 1e-6")).json(), "primal");
    for solver in EXACT {
        let run = folder.run(&format!("{train} --solver {solver} --relative-gap 0.001 --heldout test.dat")).json();
        assert_eq!(run["certificate"], "exact", "{solver}");
        let (primal, dual) = (number(&run, "primal"), number(&run, "dual"));
        assert!(dual <= best * (1.0 + 1e-6) && best <= primal * (1.0 + 1e-6), "{solver}: {dual} {best} {primal}");
        assert!(primal - best <= 0.0011 * best, "{solver}: {primal}, not {best}");
        assert_eq!(run["kernel"], "rbf:gamma=3");
        // What training said of its model is what the file does.
        for (data, loss) in [("train.dat", "train_loss"), ("test.dat", "heldout_loss")] {
            let figures = folder.run(&format!("evaluate k.mm {data} --json")).json();
            assert!((number(&figures, "mean_loss") - number(&run, loss)).abs() < 1e-9, "{solver}: {loss}");
        }
    }
    // No plane separates a checkerboard.
    let figures = folder.run("evaluate k.mm test.dat --json").json();
    assert!(number(&figures, "accuracy") > 0.75, "{figures}");
}

#[test]
fn samples_are_estimates_and_come_near() {
    let folder = checkers();
    let train = "train binary train.dat -m k.mm --quiet --json --kernel rbf:gamma=3";
    let best = number(&folder.run(&format!("{train} --solver n-slack --relative-gap 1e-6")).json(), "primal");
    for solver in ["sampled-linear", "sampled-constant"] {
        let options = format!("{solver} --sampling uniform --sample-size 200");
        let run = folder.run(&format!("{train} --solver {options} --epsilon 0.05 --bound 0.1")).json();
        assert_eq!(run["certificate"], "estimate");
        let excess = number(&run, "primal") - best;
        assert!(excess >= -1e-6 * best && excess <= number(&run, "excess_at_most"), "{options}: {excess}");
        assert!(excess <= 0.5 * best, "{options}: {excess} of {best}");
    }
}

/// One sample for all cuts: in coordinates of what it spans, or by cuts that it grows with.
#[test]
fn a_sample_for_all_cuts_comes_near() {
    let folder = checkers();
    let train = "train binary train.dat -m k.mm --quiet --json --kernel rbf:gamma=3 --epsilon 0.001";
    let best = number(&folder.run(&format!("{train} --solver n-slack")).json(), "primal");
    for solver in ["sampled-linear", "sampled-constant"] {
        let run = |options: &str| folder.run(&format!("{train} --solver {solver} {options}")).json();
        // The sample is everything: the proof holds.
        for options in ["", "--sampling growing"] {
            let growing = run(options);
            assert_eq!((&growing["solver"], &growing["certificate"]), (&solver.into(), &"exact".into()));
            assert!(growing.get("kernel_left_out").is_none());
        }
        // As many coordinates as are asked for.
        let [few, many] = [7, 250].map(|size| run(&format!("--sampling pivoted --sample-size {size}")));
        assert_eq!((&few["solver"], &few["certificate"]), (&solver.into(), &"estimate".into()));
        assert_eq!(number(&few, "support_vectors"), 7.0);
        assert!(number(&few, "primal") > 1.1 * best && number(&few, "kernel_left_out") > 0.1, "{few}");
        assert!((number(&many, "primal") - best).abs() <= 0.02 * best, "{many}, not {best}");
        let figures = folder.run("evaluate k.mm train.dat --json").json();
        assert!((number(&figures, "mean_loss") - number(&many, "train_loss")).abs() < 1e-9);
    }
}

/// Many examples that few span.
#[test]
fn coordinates_are_taken_where_few_suffice() {
    let folder = Folder::new();
    folder.run("generate binary --kind checkers --examples 10500 --noise 0.02 --seed 1 -o train.dat").good();
    let train = "train binary train.dat -m k.mm --quiet --json --epsilon 0.1 --sample-size 50";
    let of = |options: &str| folder.run(&format!("{train} {options}")).json();
    let smooth = of("--kernel rbf:gamma=0.1 --solver sampled-linear");
    assert!(number(&smooth, "kernel_left_out") <= 1e-3 && number(&smooth, "support_vectors") <= 100.0, "{smooth}");
    assert_eq!(smooth["certificate"], "estimate");
    // 100 of its functions do not come near the sharp one.
    let sharp = of("--kernel rbf:gamma=100 --solver sampled-constant");
    assert!(sharp.get("kernel_left_out").is_none(), "{sharp}");
    assert_eq!((&sharp["examples"], &sharp["certificate"]), (&10500.into(), &"estimate".into()));
}

/// sampled-constant with fewer examples than there are: C is still the weight of the mean slack, and nothing is proven.
#[test]
fn a_sample_stands_for_all_examples() {
    let folder = checkers();
    let train = "train binary train.dat -m k.mm --quiet --kernel rbf:gamma=3 --solver sampled-constant --sample-size 1";
    for sampling in ["pivoted", "growing"] {
        let options = format!("--sampling {sampling} --c-per-example 2 --heldout test.dat");
        let some = folder.run(&format!("{train} {options} --json")).json();
        assert_eq!((number(&some, "examples"), number(&some, "c")), (300.0, 600.0));
        assert_eq!(some["certificate"], "estimate");
        assert!(number(&some, "support_vectors") <= 64.0, "{some}");
    }
    assert!(folder.run(train).good().contains("of 64 out of 300 examples"));
}

#[test]
fn low_rank_comes_near_and_whole_rank_is_there() {
    let folder = checkers();
    let train = "train binary train.dat -m k.mm --quiet --json --kernel rbf:gamma=3 --relative-gap 1e-4";
    let best = number(&folder.run(&format!("{train} --solver n-slack")).json(), "primal");
    for basis in ["pivoted", "random"] {
        let [few, all] = ["10", "300"].map(|k| folder.run(&format!("{train} --low-rank {k} --basis {basis}")).json());
        assert!(number(&few, "primal") > 1.01 * best && number(&few, "support_vectors") <= 10.0, "{few}");
        assert!((number(&all, "primal") - best).abs() <= 2e-3 * best, "{basis}: {all}, not {best}");
        let figures = folder.run("evaluate k.mm train.dat --json").json();
        assert!((number(&figures, "mean_loss") - number(&all, "train_loss")).abs() < 1e-9);
    }
}

#[test]
fn models_do_not_depend_on_threads() {
    let folder = checkers();
    folder.run("generate tag --tags 4 --words 8 --length 6 --noise 0.1 --examples 40 --seed 1 -o t.pos").good();
    let all = [EXACT.as_slice(), &["sampled-constant --sample-size 50", "bcfw --low-rank 20"]].concat();
    for solver in all {
        let models = [1, 2, 5].map(|threads| {
            let options =
                format!("--kernel poly:degree=2,coef0=1 --solver {solver} --threads {threads} --epsilon 0.05");
            folder.run(&format!("train binary train.dat -m k.mm --quiet {options} --bias 1")).good();
            let classes = folder.read("k.mm");
            folder.run(&format!("train tag t.pos -m t.mm --quiet {options}")).good();
            (classes, folder.read("t.mm"))
        });
        assert!(models[0] == models[1] && models[0] == models[2], "{solver}");
    }
}

/// Nobody knows of w outside the basis functions, nor where the kernel is no inner product.
#[test]
fn that_the_data_cannot_be_separated_is_said_as_far_as_it_is_known() {
    let folder = checkers();
    let hard = |options: &str| folder.run(&format!("train binary train.dat -m k.mm --penalty hard {options}"));
    hard("--kernel rbf:gamma=3 --low-rank 5").bad(1, &["cannot be separated", "by these basis functions"]);
    hard("--kernel sigmoid:gamma=1,coef0=1").bad(1, &["none is known not to exist"]);
    assert!(!folder.exists("k.mm"));
}

/// Weights up to 1e30 are allowed, and cuts of samples may exceed f64 with them.
#[test]
fn cuts_beyond_f64_are_an_error() {
    let folder = Folder::new();
    folder.write("train.dat", "-1 cost:1e30 1:-6 2:6\n+1 cost:1e-300 1:6 2:3\n-1 1:-6 2:6\n+1 1:3 2:4\n");
    let train = "train binary train.dat -m k.mm --solver sampled-linear --sample-size 1 --max-passes 30";
    folder.run(train).bad(2, &["exceed what f64 can hold"]);
}

#[test]
fn what_cannot_be_is_refused() {
    let folder = checkers();
    for (options, words) in [
        ("--kernel rfb", "linear, rbf, poly and sigmoid"),
        ("--kernel rbf:gamma=0", "gamma=0"),
        ("--low-rank 5", "--low-rank: comes near a kernel"),
        ("--kernel rbf --basis random", "--basis: belongs to --low-rank"),
        ("--kernel-cache 10", "--kernel-cache: "),
        ("--kernel rbf --sample-size 5", "--sample-size: "),
        ("--kernel rbf --solver bcfw --sampling uniform", "--sampling: "),
        ("--kernel rbf --solver sampled-linear --bound 0.1", "--bound: "),
        ("--kernel rbf --solver sampled-constant --bound 0.1", "--bound: "),
        ("--kernel rbf --solver sampled-constant --sampling uniform --bound 2", "must be below 1"),
        ("--kernel rbf --solver sampled-constant --sampling uniform --heldout test.dat", "--heldout: "),
        ("--kernel rbf --solver sampled-constant --sampling uniform --folds 3", "--folds: "),
        ("--kernel rbf --solver sampled-linear --penalty quadratic", "sampled cuts are for linear slack"),
        ("--kernel rbf --solver dual-coordinate", "--low-rank"),
        ("--kernel rbf --low-rank 5 --solver sampled-linear", "--solver: "),
        ("--kernel rbf --c-path auto", "--c-path: "),
        ("--kernel rbf --warm-start k.mm", "--warm-start: "),
    ] {
        folder.run(&format!("train binary train.dat -m k.mm {options}")).bad(2, &[words]);
    }
    folder.run("train parse train.dat -m k.mm --kernel rbf").bad(2, &["--kernel: "]);
    folder.run("train binary train.dat -m k.mm --kernel rbf --quiet").good();
    folder.run("train binary train.dat -m l.mm --warm-start k.mm").bad(1, &["it has a kernel"]);
}
