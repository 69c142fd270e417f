//! The task `align` as a user sees it.

mod common;

use common::{Folder, keys, number};

/// A folder with `train.jsonl` and `test.jsonl`.
fn with_pairs() -> Folder {
    let folder = Folder::new();
    folder.run("generate align --examples 60 --seed 3 --letters 6 --decoys 4 -o all.jsonl").good();
    let all = folder.text("all.jsonl");
    let lines: Vec<&str> = all.lines().collect();
    folder.write("train.jsonl", lines[..15].join("\n") + "\n");
    folder.write("test.jsonl", lines[15..].join("\n") + "\n");
    folder
}

/// A matches A and B matches B; C goes with D.
const FEW: &str = r#"{"x": "AABBAC", "z": "AABBAD", "ax": "AABBAC", "az": "AABBAD", "decoys": ["BBAABB", "DDDD"]}
{"x": "CCABB", "z": "DDABB", "ax": "CCABB", "az": "DDABB", "decoys": ["BBBAA"]}
{"x": "BABAB", "z": "BAAB", "ax": "BABAB", "az": "BA-AB", "decoys": ["CCCC", ""]}
"#;

fn with_few() -> Folder {
    let folder = Folder::new();
    folder.write("few.jsonl", FEW);
    folder.run("train align few.jsonl -m few.mm --quiet --c-per-example 10").good();
    folder
}

#[test]
fn homologues_are_told_from_decoys() {
    let folder = with_pairs();
    let train = "train align train.jsonl -m m.mm --quiet --heldout test.jsonl --gaps linear";
    let summary = folder.run(&format!("{train} --json")).json();
    assert_eq!((summary["task"].as_str(), summary["certificate"].as_str()), (Some("align"), Some("exact")));
    assert_eq!((summary["examples"].as_u64(), summary["dimension"].as_u64()), (Some(15), Some(37)));
    let figures = folder.run("evaluate m.mm test.jsonl --json").json();
    for key in ["examples", "mean_loss", "accuracy", "error", "mean_rank", "q_score", "q4_score", "match_precision"] {
        assert!(keys(&figures).contains(&key), "{key}");
    }
    // What training measures on the way is what `evaluate` finds.
    assert!((number(&figures, "mean_loss") - number(&summary, "heldout_loss")).abs() < 1e-12);
    assert!((number(&figures, "error") - number(&figures, "mean_loss")).abs() < 1e-12);
    assert!(number(&figures, "error") < 0.7 && number(&figures, "mean_rank") < 2.5, "{figures}");
    assert!(number(&figures, "q4_score") >= number(&figures, "q_score"));
    let text = folder.run(train).good();
    for word in
        ["align, local alignments, homologues against decoys", "36 pairs of 6 letters: ACDEFG, linear gaps", "exact: "]
    {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    let text = folder.run("evaluate m.mm test.jsonl").good();
    for word in ["of 45 homologues do not come first)", "mean rank", "Q-score, window 4", "(zero-one)"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    folder.run("train align train.jsonl -m g.mm --quiet --gaps linear --solver mle").good();
    let text = folder.run("evaluate m.mm test.jsonl --compare g.mm").good();
    assert!(text.contains("McNemar's test") && text.contains("Q-score"), "{text}");
}

#[test]
fn solvers_find_one_optimum_and_threads_the_same_bytes() {
    let folder = with_pairs();
    for loss in ["zero-one", "q", "q4", "hamming"] {
        let mut range = (f64::NEG_INFINITY, f64::INFINITY);
        for solver in ["one-slack", "n-slack", "bcfw"] {
            let train = format!(
                "train align train.jsonl --quiet --loss {loss} --solver {solver} -e 0.02 --c-per-example 0.5 --json"
            );
            let summary = folder.run(&format!("{train} -m a.mm --threads 1")).json();
            folder.run(&format!("{train} -m b.mm --threads 2")).json();
            assert_eq!(folder.read("a.mm"), folder.read("b.mm"), "{loss} {solver}");
            assert_eq!(
                (summary["status"].as_str(), summary["certificate"].as_str()),
                (Some("converged"), Some("exact"))
            );
            range = (range.0.max(number(&summary, "dual")), range.1.min(number(&summary, "primal")));
        }
        assert!(range.0 <= range.1 + 1e-9, "{loss}: a bound {} above an objective {}", range.0, range.1);
    }
}

#[test]
fn alignments_are_learned_from_given_ones() {
    let folder = with_few();
    for options in
        ["--loss q", "--loss q4 --alignment global", "--loss hamming --gaps linear", "--loss q --rescaling slack"]
    {
        let summary =
            folder.run(&format!("train align few.jsonl -m m.mm --quiet --c-per-example 100 --json {options}")).json();
        let certificate = if options.contains("slack") { "estimate" } else { "exact" };
        assert_eq!(summary["certificate"].as_str(), Some(certificate), "{options}");
        assert!(number(&summary, "train_loss") < 0.2, "{options}: {summary}");
        let figures = folder.run("evaluate m.mm few.jsonl --json").json();
        assert!(number(&figures, "q_score") > 0.8, "{options}: {figures}");
    }
    // Everything else that training has.
    folder.run("train align few.jsonl -m w.mm --quiet --warm-start few.mm --c-path 1,10").good();
    folder.run("train align few.jsonl -m w.mm --quiet --c-path 1,10 --folds 3").good();
    folder.run("train align few.jsonl -m q.mm --quiet --penalty quadratic --rescaling slack --solver n-slack").good();
    let text = folder.run("train align few.jsonl -m h.mm --penalty hard --quiet --json").json();
    assert_eq!(text["status"].as_str(), Some("converged"));
}

#[test]
fn predictions_can_be_read() {
    let folder = with_few();
    let pairs = r#"{"x": "AABBAC", "z": "AABBAD", "decoys": ["BBB"]}
{"x": "AABB", "decoys": ["CCCC", "AABB"]}
{"x": "", "z": "AB"}
"#;
    folder.write("new.jsonl", pairs);
    let text = folder.run("predict few.mm new.jsonl").good();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("line 1: z, score ") && lines[0].contains("rank 1 of 2; "), "{text}");
    assert_eq!((lines[1], lines[3]), ("x 1 AABBAC 6", "z 1 AABBAD 6"), "{text}");
    assert!(lines[2].starts_with("    |||||"), "{text}");
    assert!(text.contains("line 2: decoy 2, score ") && text.ends_with("nothing scores above 0\n\n"), "{text}");
    let json = folder.run("predict few.mm new.jsonl --format json --scores").good();
    let values: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(values.len(), 3);
    assert_eq!((values[0]["ax"].as_str(), values[0]["az"].as_str()), (Some("AABBAC"), Some("AABBAD")));
    assert_eq!((values[1]["candidate"].as_str(), values[1]["best"].as_str()), (Some("decoy 2"), Some("decoy 2")));
    assert_eq!(values[0]["scores"].as_array().unwrap().len(), 2);
    assert_eq!((values[2]["x_begin"].as_u64(), values[2]["score"].as_f64()), (Some(0), Some(0.0)));
    assert_eq!(
        folder.run("predict few.mm new.jsonl --threads 1").good(),
        folder.run("predict few.mm new.jsonl --threads 2").good()
    );
    assert_eq!(folder.run_with("predict few.mm -", pairs).good(), text);
    // Long ones come in blocks of 60 columns.
    let long = "AB".repeat(70);
    let text =
        folder.run_with("predict few.mm - --scores", format!("{{\"x\": \"{long}\", \"z\": \"{long}\"}}\n")).good();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("x ")).collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert_eq!(
        (rows[0], rows[2]),
        (format!("x   1 {} 60", "AB".repeat(30)).as_str(), format!("x 121 {} 140", "AB".repeat(10)).as_str())
    );
    assert!(text.contains("scores: z "), "{text}");
}

#[test]
fn models_are_shown() {
    let folder = with_few();
    let text = folder.run("inspect few.mm --top 3").good();
    for word in [
        "local alignments",
        "16 pairs of 4 letters: ABCD, affine gaps",
        "the first column of a gap scores",
        "matches (rows: letter of x",
        "strongest matches",
    ] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
    let contents = folder.run("inspect few.mm --json --top 2").json();
    assert_eq!(contents["substitutions"].as_array().unwrap().len(), 4);
    assert_eq!((contents["letters"].as_str(), contents["strongest"].as_array().unwrap().len()), (Some("ABCD"), 2));
    assert!(contents["gap_open"].is_number() && contents["alignment"].as_str() == Some("local"));
}

#[test]
fn marks_have_weights() {
    let folder = Folder::new();
    // The letters tell nothing: marks do.
    let line = |x: &str, sx: &str, z: &str, sz: &str, d: &str, sd: &str| {
        format!(
            "{{\"x\": \"{x}\", \"z\": \"{z}\", \"ax\": \"{x}\", \"az\": \"{z}\", \"sx\": \"{sx}\", \"sz\": \"{sz}\", \"decoys\": [\"{d}\"], \"sdecoys\": [\"{sd}\"]}}\n"
        )
    };
    let data =
        [line("AAAA", "HHEE", "AAAA", "HHEE", "AAAA", "EEHH"), line("AAA", "EEH", "AAA", "EEH", "AAA", "HHE")].concat();
    folder.write("marks.jsonl", &data);
    folder.run("train align marks.jsonl -m m.mm --quiet --c-per-example 100").good();
    assert_eq!(number(&folder.run("evaluate m.mm marks.jsonl --json").json(), "error"), 0.0);
    let text = folder.run("inspect m.mm").good();
    assert!(text.contains("2 marks of residues: EH") && text.contains("matches of marks"), "{text}");
    folder
        .run_with("predict m.mm -", "{\"x\": \"A\", \"z\": \"A\"}\n")
        .bad(1, &["standard input:1:", "sx, sz or sdecoys missing"]);
    folder.write("plain.jsonl", "{\"x\": \"A\", \"z\": \"A\", \"ax\": \"A\", \"az\": \"A\", \"decoys\": [\"A\"]}\n");
    folder.write("mixed.jsonl", data + &folder.text("plain.jsonl"));
    folder.run("train align mixed.jsonl -m n.mm --quiet").bad(1, &["mixed.jsonl:3:", "sx, sz or sdecoys missing"]);
}

#[test]
fn strange_letters_empty_sequences_and_no_decoys() {
    let folder = with_few();
    // Letters outside the alphabet are told; where they are most, it is the wrong one.
    let ran = folder.run("train align few.jsonl -m m.mm --quiet --alphabet ABC");
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr
            .contains("note: few.jsonl: 7 of 50 residues are not among the letters ABC; they match with a weight of 0"),
        "{}",
        ran.stderr
    );
    folder
        .run("train align few.jsonl -m n.mm --quiet --alphabet XYZ")
        .bad(1, &["few.jsonl: 50 of 50 residues", "is this the right alphabet?"]);
    let ran = folder.run_with("predict few.mm -", "{\"x\": \"AABX\", \"z\": \"AAB\"}\n");
    assert!(ran.code == Some(0) && ran.stderr.contains("1 of 7 residues"), "{}", ran.stderr);
    // An empty sequence has an alignment of gaps, or none.
    let empty = "{\"x\": \"\", \"z\": \"\", \"ax\": \"\", \"az\": \"\", \"decoys\": [\"\"]}\n";
    folder.write("empty.jsonl", FEW.to_owned() + empty);
    for options in ["", "--alignment global", "--loss hamming"] {
        folder.run(&format!("train align empty.jsonl -m e.mm --quiet {options}")).good();
        folder.run("evaluate e.mm empty.jsonl").good();
    }
    folder.run("train align empty.jsonl -m n.mm --quiet --loss q").bad(1, &["empty.jsonl:4:", "no matches", "hamming"]);
    folder.run_with("train align - -m n.mm --quiet", empty).bad(1, &["all sequences are empty"]);
    // No decoys at all, or for some.
    let alone = "{\"x\": \"AB\", \"z\": \"AB\", \"ax\": \"AB\", \"az\": \"AB\"}\n";
    folder.write("alone.jsonl", alone);
    folder.run("train align alone.jsonl -m n.mm --quiet").bad(1, &["no example has decoys", "--loss q"]);
    folder.run("train align alone.jsonl -m a.mm --quiet --loss q").good();
    let figures = folder.run("evaluate a.mm alone.jsonl --json").json();
    assert!(figures["error"].is_null() && figures["ranked"].as_u64() == Some(0), "{figures}");
    folder.write("some.jsonl", FEW.to_owned() + alone);
    let ran = folder.run("train align some.jsonl -m s.mm --quiet");
    assert!(
        ran.code == Some(0) && ran.stderr.contains("1 of 4 examples have no decoys and teach nothing"),
        "{}",
        ran.stderr
    );
    assert!(!folder.exists("n.mm"));
}

#[test]
fn long_sequences_are_aligned() {
    let folder = with_few();
    // 12,000 residues each: the table alone would take a gigabyte.
    let x: String = "AABBABBBAA".chars().cycle().take(12_000).collect();
    let z: String = x[..4000].to_owned() + &x[4010..];
    let text = folder
        .run_with("predict few.mm - --format json --threads 1", format!("{{\"x\": \"{x}\", \"z\": \"{z}\"}}\n"))
        .good();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(value["identical"].as_u64() > Some(11_900), "{}", value["identical"]);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = with_few();
    folder.write("b.dat", "+1 1:1\n-1 2:1\n");
    for (words, flag) in [
        ("train binary b.dat --alignment local", "--alignment: belongs to the task align"),
        ("train binary b.dat --gaps linear", "--gaps: "),
        ("train binary b.dat --alphabet dna", "--alphabet: "),
        ("train binary b.dat --gap-grid 1", "--gap-grid: "),
        ("train multiclass b.dat --loss q", "q and q4 belong to the task align"),
        ("train graph b.dat --loss q4", "--loss: "),
        ("train align few.jsonl --loss f1", "--loss: "),
        ("train align few.jsonl --loss absolute", "the task align has the losses"),
        ("train align few.jsonl --gap-grid 1,2", "--gap-grid: belongs to --solver mle"),
        ("train align few.jsonl --solver mle --gap-grid 1,-2", "must be positive"),
        ("train align few.jsonl --alphabet AA", "'A' is there twice"),
        ("train align few.jsonl --penalty hard --loss q", "--penalty: "),
        ("train align few.jsonl --penalty quadratic --loss q", "--penalty: "),
        ("train align few.jsonl --solver dual-coordinate", "--solver: "),
        ("train align few.jsonl --solver gdmm", "--solver: "),
        ("train align few.jsonl --kernel rbf", "--kernel: "),
        ("train align few.jsonl --bias 1", "--bias: "),
        ("train align few.jsonl --min-count 2", "--min-count: "),
        ("train binary b.dat --prior blosum62", "--prior: belongs to the task align"),
        ("train binary b.dat --prior-gaps 1,1", "--prior-gaps: belongs to the task align"),
        ("train align few.jsonl --prior-gaps 1,1", "--prior-gaps: belongs to --prior"),
        ("train binary b.dat --tied", "--tied: belongs to the task align"),
        ("train align few.jsonl --tied --solver mle", "--tied: mle counts each pair"),
        ("train align few.jsonl --prior blosum62 --solver mle", "--prior: mle counts"),
        ("train align few.jsonl --prior table", "--prior: the file does not say what gaps cost"),
        ("train align few.jsonl --prior blosum62 --gaps linear", "--prior: with --gaps linear"),
        ("train align few.jsonl --prior blosum62 --gaps linear --prior-gaps 1,1", "--prior: with --gaps linear"),
        ("train align few.jsonl --prior blosum62 --prior-gaps 5", "--prior-gaps: affine gaps have two costs"),
        ("train align few.jsonl --prior blosum62 --prior-gaps 5,-1", "must be numbers from 0"),
        ("train align few.jsonl --prior blosum62 --prior-gaps 5,1,1", "must be one cost, or two"),
    ] {
        folder.run(&format!("{words} -m n.mm --quiet")).bad(2, &[flag]);
    }
    folder.run("train align few.jsonl -m g.mm --quiet --solver mle --gap-grid 0.5").good();
    let contents = folder.run("inspect g.mm --json").json();
    assert_eq!((contents["gap_open"].as_f64(), contents["gap_extend"].as_f64()), (Some(-0.5), Some(-0.5)));
    folder.run("train binary b.dat -m b.mm --quiet").good();
    folder.run("predict b.mm b.dat --format json").bad(2, &["--format: belongs to models of alignments"]);
    folder.run("predict few.mm few.jsonl --margins").bad(2, &["--margins: "]);
    folder.run("generate align --examples 1 --tags 3").bad(2, &["--tags: "]);
    folder.run("generate tag --examples 1 --decoys 3").bad(2, &["--decoys: belongs to the task align"]);
    folder.run("generate align --examples 1 --operations 51").bad(2, &["--operations: must be from 0 to 50"]);
    folder.run("train align b.dat -m n.mm --quiet").bad(1, &["b.dat:1:", "not JSON"]);
    assert!(!folder.exists("n.mm"));
}

#[test]
fn training_goes_on_where_it_was_stopped() {
    let folder = with_pairs();
    let train = "train align train.jsonl --quiet --solver bcfw -e 0.001";
    folder.run(&format!("{train} -m whole.mm")).good();
    folder.run(&format!("{train} -m part.mm --checkpoint s --checkpoint-every 0 --max-passes 2")).good();
    folder.run(&format!("{train} -m resumed.mm --checkpoint s --resume")).good();
    assert_eq!(folder.read("resumed.mm"), folder.read("whole.mm"));
}

/// Known scores of A to D: like goes with like, and C with D.
const TABLE: &str = "# A to D\n   A  B  C  D\nA  4 -2 -2 -2\nB -2  4 -2 -2\nC -2 -2  4  1\nD -2 -2  1  4\n";

/// One optimum for all solvers, and threads do not matter. Leaves a model in a.mm.
fn solvers_agree(folder: &Folder, train: &str) {
    let mut range = (f64::NEG_INFINITY, f64::INFINITY);
    for solver in ["one-slack", "n-slack", "bcfw"] {
        let train = format!("{train} --solver {solver} -e 0.001 --json");
        let summary = folder.run(&format!("{train} -m a.mm --threads 1")).json();
        folder.run(&format!("{train} -m b.mm --threads 2")).json();
        assert_eq!(folder.read("a.mm"), folder.read("b.mm"), "{solver}");
        assert_eq!(summary["certificate"].as_str(), Some("exact"));
        range = (range.0.max(number(&summary, "dual")), range.1.min(number(&summary, "primal")));
    }
    assert!(range.0 <= range.1 + 1e-9, "a bound {} above an objective {}", range.0, range.1);
}

#[test]
fn training_goes_on_from_known_scores() {
    let folder = with_few();
    folder.write("table", TABLE);
    let train = "train align few.jsonl --quiet --loss q --prior table --prior-gaps 5,0.5";
    solvers_agree(&folder, train);
    // With next to no weight on the data: the table's shape. The model is one as any other.
    folder.run(&format!("{train} -m small.mm --c-per-example 1e-4 -e 1e-6")).good();
    let contents = folder.run("inspect small.mm --json").json();
    let factor = contents["prior"]["factor"].as_f64().unwrap();
    assert!(factor > 0.0 && contents["prior"]["name"].as_str() == Some("table"), "{}", contents["prior"]);
    assert_eq!(contents["prior"]["gaps"].as_array().unwrap().len(), 2);
    let text = folder.run("inspect small.mm").good();
    assert!(text.contains("4 letters: ABCD, affine gaps; from table with gaps of 5 and 0.5, times "), "{text}");
    let large = format!("{train} -m large.mm --c-per-example 100");
    assert!(folder.run(&large).good().contains("from table with gaps of 5 and 0.5, times "));
    folder.run("evaluate large.mm few.jsonl").good();
    folder.run("predict large.mm few.jsonl").good();
    // B with B is what the data have; the score of A with D, which they have not, stays near the prior's.
    let far = |name: &str| {
        let contents = folder.run(&format!("inspect {name} --json")).json();
        let of = |a: usize, b: usize| contents["substitutions"][a][b].as_f64().unwrap();
        (of(0, 0) / contents["prior"]["factor"].as_f64().unwrap() - 4.0).abs()
    };
    assert!(far("small.mm") < far("large.mm"), "{} {}", far("small.mm"), far("large.mm"));
    // From the end of training there is nothing left to do.
    let again = folder.run(&format!("{train} -m again.mm --c-per-example 100 --warm-start large.mm --json")).json();
    let first = folder.run(&format!("{large} --json")).json();
    assert!(number(&again, "passes") < number(&first, "passes"), "{again}\n{first}");
    folder.run(&format!("{train} -m path.mm --c-path 1,10 --folds 3")).good();
    folder.run("train align few.jsonl -m l.mm --quiet --gaps linear --prior table --prior-gaps 2").good();
}

#[test]
fn letters_share_scores() {
    let folder = with_few();
    folder.write("table", TABLE);
    // W is in no example.
    let train = "train align few.jsonl --quiet --loss q --alphabet ABCDW --tied";
    solvers_agree(&folder, train);
    let contents = folder.run("inspect a.mm --json").json();
    let of = |a: usize, b: usize| contents["substitutions"][a][b].as_f64().unwrap();
    assert!(contents["tied"].as_bool() == Some(true) && of(4, 4) > 0.0, "{contents}");
    assert!(of(4, 0) == of(1, 4) && of(4, 0) < of(4, 4), "{contents}");
    let text = folder.run("inspect a.mm").good();
    assert!(text.contains("affine gaps; equal letters share a score, and so do different ones"), "{text}");
    folder.run("evaluate a.mm few.jsonl").good();
    folder.run(&format!("{train} -m w.mm --warm-start a.mm")).good();
    let both = "train align few.jsonl --quiet --loss q --tied --prior table --prior-gaps 5,0.5 -m both.mm";
    let text = folder.run(both).good();
    assert!(text.contains("times ") && text.contains("; equal letters share a score"), "{text}");
    folder.run(&format!("{train} -m part.mm --solver bcfw --checkpoint s --max-passes 2")).good();
    let untied = train.replace(" --tied", "");
    folder.run(&format!("{untied} -m part.mm --solver bcfw --checkpoint s --resume")).bad(2, &["--tied"]);
}

#[test]
fn a_prior_that_does_not_fit_is_refused() {
    let folder = with_few();
    folder.write("table", TABLE);
    folder.write("bad", "A B\nA 1 2\nB 1 x\n");
    let train = "train align few.jsonl -m n.mm --quiet --prior-gaps 5,0.5 --prior";
    folder.run(&format!("{train} bad")).bad(1, &["bad:3: 'x' where a score should stand"]);
    folder.run(&format!("{train} nowhere")).bad(1, &["--prior: nowhere", "blosum62, or a file"]);
    folder.run(&format!("{train} BLOSUM62 --prior-gaps 9,1").replace("--prior-gaps 5,0.5 ", "")).good();
    folder.write("three", "A B C\nA 1 0 0\nB 0 1 0\nC 0 0 1\n");
    folder
        .run(&format!("{train} three"))
        .bad(1, &["--prior three: it has the letters ABC, and no scores for D", "--alphabet"]);
    assert_eq!(folder.run(&format!("{train} three --alphabet ABC")).code, Some(0));
    folder.run("train align few.jsonl -m table --quiet --prior table --prior-gaps 5,1").bad(2, &["the prior"]);
}

/// A checkpoint belongs to its prior, by its content.
#[test]
fn training_from_known_scores_goes_on_where_it_was_stopped() {
    let folder = with_pairs();
    let table = |same: u8| {
        let row = |a: char| {
            format!(
                "{a} {}\n",
                "ACDEFG".chars().map(|b| if a == b { same } else { 0 }.to_string()).collect::<Vec<_>>().join(" ")
            )
        };
        "A C D E F G\n".to_owned() + &"ACDEFG".chars().map(row).collect::<String>()
    };
    for (name, same) in [("table", 4), ("other", 5)] {
        folder.write(name, table(same));
    }
    let train = "train align train.jsonl --quiet --solver bcfw -e 0.001 --prior-gaps 5,0.5 --prior";
    folder.run(&format!("{train} table -m whole.mm")).good();
    folder.run(&format!("{train} table -m part.mm --checkpoint s --checkpoint-every 0 --max-passes 2")).good();
    let resume = "-m resumed.mm --checkpoint s --resume";
    folder.run(&format!("{train} other {resume}")).bad(1, &["the prior is another now"]);
    folder.run(&format!("train align train.jsonl --quiet --solver bcfw -e 0.001 {resume}")).bad(2, &["--prior-gaps"]);
    folder.run(&format!("{train} table {resume}")).good();
    let inspected = |name: &str| folder.run(&format!("inspect {name} --json")).json()["prior"].clone();
    assert_eq!(inspected("resumed.mm"), inspected("whole.mm"));
    assert_eq!(folder.read("resumed.mm"), folder.read("whole.mm"));
}
