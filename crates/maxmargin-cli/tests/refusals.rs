//! Nothing is parsed and ignored.

mod common;

use common::Folder;

#[test]
fn options_without_effect_are_refused() {
    let folder = Folder::with_data();
    for (options, flag) in [
        ("--groups 3", "--groups: "),
        ("--groups 3 --solver n-slack", "--groups: "),
        ("--solver group-slack", "--solver: "),
        ("--penalty hard -c 3", "--c: "),
        ("--penalty hard --c-per-example 3", "--c-per-example: "),
        ("--penalty hard --class-weight balanced", "--class-weight: "),
        ("--penalty hard --line-search off", "--line-search: "),
        ("--class-weight balanced --class-weight 1=2", "--class-weight: "),
        ("--cost-matrix m.dat", "--cost-matrix: "),
        ("--cost-matrix m.dat --loss zero-one", "--cost-matrix: "),
        ("--loss matrix", "--loss: "),
        ("--positive 1", "--positive: "),
        ("--solver frank-wolfe --penalty quadratic", "--penalty: "),
        ("--solver frank-wolfe --penalty hard", "--penalty: "),
        ("--solver frank-wolfe --line-search on", "--line-search: "),
        ("--solver frank-wolfe --cache 3", "--cache: "),
        ("--solver frank-wolfe --max-cuts 100", "--max-cuts: "),
        ("--solver n-slack --cache 3", "--cache: "),
        ("--solver n-slack --line-search on", "--line-search: "),
        ("--solver n-slack --max-cuts 100", "--max-cuts: "),
        ("--solver n-slack --update own --batch 10", "--batch: "),
        ("--update own", "--update: "),
        ("--batch 10", "--batch: "),
        ("-c 1 --c-per-example 1", "cannot be used with"),
        ("-e 1 --relative-gap 1", "cannot be used with"),
        ("--cache 3", "--cache: belongs to the solvers one-slack and group-slack (--solver auto takes dual-coordinate"),
        ("--solver auto --max-cuts 9", "(--solver auto takes dual-coordinate here)"),
        ("--penalty hard --max-cuts 9", "(--solver auto takes n-slack here)"),
        ("--solver bcfw --penalty hard", "--penalty: "),
        ("--solver bcfw --cache 3", "--cache: "),
        ("--solver dual-coordinate --penalty hard", "--penalty: "),
        ("--solver dual-coordinate --batch 3", "--batch: "),
        ("--solver perceptron -c 1", "--c: "),
        ("--solver perceptron --c-path 1,2", "--c-path: "),
        ("--solver perceptron -e 1", "--epsilon: "),
        ("--solver perceptron --relative-gap 0.1", "--relative-gap: "),
        ("--solver perceptron --penalty hard", "--penalty: "),
        ("--solver subgradient --penalty hard", "--penalty: "),
        ("--c 1 --c-path 1,2", "cannot be used with"),
        ("--c-per-example 1 --c-path 1,2", "cannot be used with"),
        ("--c-path 1,2 --c-path-per-example 1,2", "cannot be used with"),
        ("--c-path 1,1.0", "has 1 twice"),
        ("--c-path 1,-2", "must be positive"),
        ("--c-path-per-example auto", "must be a number"),
        ("--penalty hard --c-path 1,2", "--c-path: "),
        ("--penalty hard --c-path-per-example 1,2", "--c-path-per-example: "),
        ("--penalty hard --keep-best --heldout m.dat", "--keep-best: "),
        ("--penalty hard --folds 3", "--folds: "),
        ("--keep-best", "--heldout"),
        ("--keep-best --folds 3", "cannot be used with"),
        ("--c-path 1,1e150", "at most 1e100"),
        ("--folds 1", "must be a whole number from 2"),
        ("--folds 401", "--folds: must be from 2 to the number of examples"),
        ("--folds 3 --heldout m.dat", "cannot be used with"),
        ("--folds 3 --warm-start m.mm", "--warm-start: "),
        ("--folds 3 --checkpoint c", "--checkpoint: "),
        ("--resume", "--checkpoint"),
        ("--checkpoint-every 3", "--checkpoint"),
        ("--checkpoint m.dat --solver one-slack", "--checkpoint: m.dat is the training file"),
        ("--checkpoint m.mm --solver one-slack", "--checkpoint: m.mm is the model"),
        ("--checkpoint b.dat --solver one-slack", "--checkpoint: b.dat is there already"),
    ] {
        folder.run(&format!("train multiclass m.dat -m m.mm {options}")).bad(2, &[flag]);
    }
    for loss in ["absolute", "squared", "matrix --cost-matrix m.dat"] {
        folder.run(&format!("train binary b.dat -m b.mm --loss {loss}")).bad(2, &["--loss: the task binary"]);
    }
    folder.run("generate binary --examples 9 --classes 3").bad(2, &["--classes: "]);
    folder.holds_only(&["b.dat", "m.dat"]);
}

#[test]
fn factorwise_training_is_for_labels_of_variables() {
    let folder = Folder::with_data();
    folder.run("train binary b.dat -m b.mm --solver gdmm").bad(2, &["labels of variables"]);
    folder.run("train binary b.dat -m b.mm --fmo-parts 3").bad(2, &["--fmo-parts", "gdmm and soft-bcfw"]);
    folder.run("train binary b.dat -m b.mm --solver soft-bcfw --eta 1").bad(2, &["--eta", "belongs to --solver gdmm"]);
    folder.run("train binary b.dat -m b.mm --solver gdmm --rho -1").bad(2, &["--rho"]);
    folder.run("train binary b.dat -m b.mm --certify").bad(2, &["--certify", "gdmm and soft-bcfw"]);
    folder.run("train binary b.dat -m b.mm --inner blocks").bad(2, &["--inner", "gdmm and soft-bcfw"]);
    folder.run("train binary b.dat -m b.mm --solver soft-bcfw --certify").bad(2, &["--certify", "--max-passes"]);
    folder.run("train binary b.dat -m b.mm --solver soft-bcfw --inner turns").bad(2, &["--inner", "--solver gdmm"]);
    let both = "--inner away-steps --fmo-parts 3";
    folder.run(&format!("train binary b.dat -m b.mm --solver gdmm {both}")).bad(2, &["--fmo-parts", "away steps"]);
}

#[test]
fn options_of_later_releases_do_not_exist() {
    let folder = Folder::with_data();
    folder.run("train binary b.dat -m b.mm --report r.html").bad(2, &["unexpected argument"]);
}
