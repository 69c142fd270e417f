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
fn options_of_later_releases_do_not_exist() {
    let folder = Folder::with_data();
    for option in ["--kernel rbf", "--low-rank 3", "--sample-size 3", "--heldout b.dat", "--report r.html", "--resume"]
    {
        folder.run(&format!("train binary b.dat -m b.mm {option}")).bad(2, &["unexpected argument"]);
    }
    folder.run("train binary b.dat -m b.mm --solver auto").bad(2, &["invalid value 'auto'"]);
    folder.run("train tag b.dat -m b.mm").bad(2, &["invalid value 'tag'"]);
}
