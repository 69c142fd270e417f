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
    for options in ["sampled-linear --sampling uniform --sample-size 200", "sampled-constant --sample-size 200"] {
        let run = folder.run(&format!("{train} --solver {options} --epsilon 0.05 --bound 0.1")).json();
        assert_eq!(run["certificate"], "estimate");
        let excess = number(&run, "primal") - best;
        assert!(excess >= -1e-6 * best && excess <= number(&run, "excess_at_most"), "{options}: {excess}");
        assert!(excess <= 0.5 * best, "{options}: {excess} of {best}");
    }
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
        ("--kernel rbf --solver sampled-constant --bound 2", "must be below 1"),
        ("--kernel rbf --solver sampled-constant --heldout test.dat", "--heldout: "),
        ("--kernel rbf --solver sampled-constant --folds 3", "--folds: "),
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
