//! The reader of graphs, from outside: every rule of the format, every error, hostile bytes, and the promise that neither threads
//! nor the places where the text is cut change anything.

use crate::common::data_sets;

use std::io::Read;
use std::path::{Path, PathBuf};

use data_sets::data_set;
use maxmargin::data::graphs::{Graphs, Stream, read, read_in_pieces, read_with, read_with_in_pieces, write};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::parallel::Pool;
use maxmargin::sparse::SparseMatrix;
use maxmargin::tasks::factor_graph::{Factors, Graph, Shape, Template};
use proptest::prelude::*;

use LabelRule::{Optional, Required};

fn pool(threads: usize) -> Pool {
    Pool::new(threads).unwrap()
}

fn input(text: &[u8]) -> Result<Input<'_>, String> {
    Input::new("data", text).map_err(|e| e.to_string())
}

fn learn(text: &[u8]) -> Result<(Graphs, Shape), String> {
    read(input(text)?, &pool(1)).map_err(|e| e.to_string())
}

fn learn_cut(text: &[u8], pool: &Pool, cut: (usize, usize)) -> Result<(Graphs, Shape), String> {
    read_in_pieces(input(text)?, pool, cut).map_err(|e| e.to_string())
}

fn known(text: &[u8], shape: &Shape, rule: LabelRule) -> Result<Graphs, String> {
    read_with(input(text)?, shape, rule, &pool(1)).map_err(|e| e.to_string())
}

fn known_cut(text: &[u8], shape: &Shape, pool: &Pool, cut: (usize, usize)) -> Result<Graphs, String> {
    read_with_in_pieces(input(text)?, shape, Optional, pool, cut).map_err(|e| e.to_string())
}

/// Graph, labels and line.
type Example = (Graph, Vec<u32>, u64);

fn examples(data: &Graphs) -> Vec<Example> {
    (0..data.len()).map(|i| (data.graphs[i].clone(), data.labels[i].clone(), data.line(i))).collect()
}

fn streamed(text: &[u8], shape: &Shape, block: usize, most: usize) -> Result<Vec<Example>, String> {
    let mut stream = Stream::in_pieces(input(text)?, shape, Optional, block);
    let mut all = Vec::new();
    while let Some(batch) = stream.next_batch(most).map_err(|e| e.to_string())? {
        assert!((1..=most).contains(&batch.len()) && batch.checksum == 0);
        all.extend(examples(&batch));
    }
    Ok(all)
}

fn written(data: &Graphs, shape: &Shape) -> Vec<u8> {
    let mut out = Vec::new();
    for (graph, labels) in data.graphs.iter().zip(&data.labels) {
        write(&mut out, shape, graph, Some(labels).filter(|labels| !labels.is_empty()).map(Vec::as_slice)).unwrap();
    }
    out
}

fn template(name: &str, domains: &[u32], features: Option<u32>) -> Template {
    Template { name: name.to_owned(), domains: domains.to_vec(), features }
}

fn matrix(columns: u32, rows: &[&[(u32, f32)]]) -> SparseMatrix {
    let mut matrix = SparseMatrix::new();
    for row in rows {
        matrix.push_row(row.iter().copied());
    }
    matrix.set_columns(columns);
    matrix
}

const EVERYTHING: &str = "\u{feff}\n{\"domain\": 3, \"labels\": [2, 0, 1], \"x\": [[0.5, 0, -1e-3], {\"7\": 2, \"1\": 0.25}, []], \
    \"factors\": {\"right\": [[0, 1], [1, 2]], \"all\": [[2, 0, 1]], \"none\": []}, \"factor_x\": {\"right\": [[1], {\"4\": 0}]}}\r\n\
    \t \n  {\"factors\": null, \"labels\": [4, 1], \"domain\": [5, 3]}  \n\
    {\"domain\":[3,3],\"x\":null,\"labels\":[0,0],\"factor_x\":{\"right\":[[0,3]],\"none\":[]},\"factors\":{\"right\":[[1,0]],\"own\":[[1]]}}";

#[test]
fn a_file_with_everything() {
    let (data, shape) = learn(EVERYTHING.as_bytes()).unwrap();
    let templates =
        vec![template("all", &[3, 3, 3], None), template("own", &[3], None), template("right", &[3, 3], Some(5))];
    assert_eq!(shape, Shape { domains: vec![3, 5], features: 8, templates });
    assert_eq!(data.labels, [vec![2, 0, 1], vec![4, 1], vec![0, 0]]);
    assert_eq!([0, 1, 2].map(|i| data.line(i)), [2, 4, 5]);
    assert_eq!((data.len(), data.is_empty()), (3, false));
    assert_eq!(data.checksum, crc32fast::hash(EVERYTHING.as_bytes()));
    let plain = |scopes: &[u32]| Factors { scopes: scopes.to_vec(), features: None };
    let first = Graph {
        domains: vec![3; 3],
        features: matrix(8, &[&[(0, 0.5), (2, -1e-3)], &[(1, 0.25), (7, 2.0)], &[]]),
        factors: vec![
            plain(&[2, 0, 1]),
            plain(&[]),
            Factors { scopes: vec![0, 1, 1, 2], features: Some(matrix(5, &[&[(0, 1.0)], &[]])) },
        ],
    };
    assert_eq!(data.graphs[0], first);
    let empty = Factors { scopes: vec![], features: Some(matrix(5, &[])) };
    assert_eq!(data.graphs[1].factors, [plain(&[]), plain(&[]), empty]);
    assert_eq!(data.graphs[1].features, matrix(8, &[&[], &[]]));
    let right = Factors { scopes: vec![1, 0], features: Some(matrix(5, &[&[(1, 3.0)]])) };
    assert_eq!(data.graphs[2].factors, [plain(&[]), plain(&[1]), right]);
    assert!(data.graphs.iter().all(|graph| shape.check(graph).is_ok()));
}

#[test]
fn wherever_a_text_is_cut_it_says_the_same() {
    let text = EVERYTHING.as_bytes();
    let pools = [1, 2, 4].map(pool);
    let whole = learn(text).unwrap();
    let shape = &whole.1;
    assert_eq!(known(text, shape, Required).unwrap(), whole.0);
    for block in (1..text.len() + 2).step_by(3) {
        for pool in &pools {
            assert_eq!(learn_cut(text, pool, (block, 1)).unwrap(), whole);
            assert_eq!(learn_cut(text, pool, (text.len(), block)).unwrap(), whole);
            assert_eq!(known_cut(text, shape, pool, (block, 1)).unwrap(), whole.0);
        }
        assert_eq!(streamed(text, shape, block, 2).unwrap(), examples(&whole.0));
        let (start, end) = text.split_at(block.min(text.len()));
        assert_eq!(read(Input::new("data", start.chain(end)).unwrap(), &pools[1]).unwrap(), whole);
    }
}

#[test]
fn what_is_written_is_read_back_and_written_alike() {
    let (data, shape) = learn(EVERYTHING.as_bytes()).unwrap();
    let text = written(&data, &shape);
    assert_eq!(
        String::from_utf8_lossy(&text),
        "{\"domain\":3,\"labels\":[2,0,1],\"x\":[[0.5,0,-0.001,0,0,0,0,0],[0,0.25,0,0,0,0,0,2],{}],\"factors\":{\"all\":[[2,0,1]],\
         \"right\":[[0,1],[1,2]]},\"factor_x\":{\"right\":[{\"0\":1,\"4\":0},{}]}}\n\
         {\"domain\":[5,3],\"labels\":[4,1],\"x\":[{\"7\":0},{}]}\n\
         {\"domain\":3,\"labels\":[0,0],\"x\":[{\"7\":0},{}],\"factors\":{\"own\":[[1]],\"right\":[[1,0]]},\
         \"factor_x\":{\"right\":[{\"1\":3,\"4\":0}]}}\n"
    );
    let (again, same_shape) = learn(&text).unwrap();
    assert_eq!((&again.graphs, &again.labels, same_shape), (&data.graphs, &data.labels, shape.clone()));
    assert_eq!(written(&again, &shape), text);
    // Without labels and features the number of variables must still be told.
    let bare = Graph { domains: vec![2, 2], ..Graph::default() };
    let mut out = Vec::new();
    write(&mut out, &Shape::default(), &bare, None).unwrap();
    assert_eq!(out, b"{\"domain\":[2,2]}\n");
}

#[test]
fn labels_may_be_missing_for_prediction_only() {
    let (_, shape) = learn(b"{\"domain\":2,\"labels\":[0,1],\"x\":[[1],[2]]}").unwrap();
    let text = b"{\"domain\":2,\"x\":[[1]]}\n{\"domain\":[2,2,2],\"labels\":null}\n{\"domain\":2,\"labels\":[1]}\n";
    let data = known(text, &shape, Optional).unwrap();
    assert_eq!(data.labels, [vec![], vec![], vec![1]]);
    assert_eq!(data.graphs[1].features.rows(), 3);
    let missing = "data:1: labels missing (training and evaluation need one for each variable)";
    assert_eq!(known(text, &shape, Required).unwrap_err(), missing);
    assert_eq!(learn(text).unwrap_err(), missing);
    let unclear = known(b"{\"domain\":2}", &shape, Optional).unwrap_err();
    assert!(
        unclear.starts_with("data:1: how many variables? (without labels and x, domain must be a list"),
        "{unclear}"
    );
}

#[test]
fn unseen_features_are_left_out() {
    let train =
        b"{\"domain\":2,\"labels\":[0,1],\"x\":[[1,2],[3]],\"factors\":{\"e\":[[0,1]]},\"factor_x\":{\"e\":[[1]]}}";
    let (_, shape) = learn(train).unwrap();
    let text = b"{\"domain\":2,\"x\":[[1,0,5],{\"4000000000\":1,\"1\":7}],\"factors\":{\"e\":[[1,0]]},\"factor_x\":{\"e\":[[2,9]]}}";
    let data = known(text, &shape, Optional).unwrap();
    assert_eq!(data.graphs[0].features, matrix(2, &[&[(0, 1.0)], &[(1, 7.0)]]));
    assert_eq!(data.graphs[0].factors[0].features, Some(matrix(1, &[&[(0, 2.0)]])));
    assert_eq!(shape.check(&data.graphs[0]), Ok(()));
}

/// Each of these lines is refused with these words, behind good ones and before a worse one, however the text is cut.
fn check_refused(cases: &[(&str, &str)]) {
    let good = "{\"domain\":2,\"labels\":[1,0],\"factors\":{\"ok\":[[0,1]]}}\n\n\
                {\"domain\":2,\"labels\":[1,0],\"factors\":{\"rich\":[[0]]},\"factor_x\":{\"rich\":[[1]]}}\n";
    for (line, what) in cases {
        let text = format!("{good}{line}\nworse\n");
        let told = learn(text.as_bytes()).unwrap_err();
        assert!(told.starts_with(&format!("data:4: {what}")), "{told}\n{what}");
        assert!(told.len() < 400 && !told.chars().any(char::is_control), "{told}");
        assert_eq!(learn_cut(text.as_bytes(), &pool(3), (1, 1)), Err(told.clone()));
        assert_eq!(learn_cut(text.as_bytes(), &pool(2), (text.len(), 30)), Err(told));
    }
}

#[test]
fn bad_text_and_labels_are_refused_by_line_and_cause() {
    let long = format!(r#"{{"{}": 1}}"#, "x".repeat(1 << 20));
    let long_text = format!(r#"{{"domain":2,"labels":"{}"}}"#, "y\\n".repeat(1 << 20));
    check_refused(&[
        ("x", r#"not JSON: expected value, at column 1 (a line is one graph, {"domain": ..., "x": ..., ...})"#),
        (
            "{",
            "not JSON: EOF while parsing an object, at column 1 (a line is one graph, {\"domain\": ..., \"x\": ..., ...}; a graph \
               must stand on one line)",
        ),
        (r#"{"domain":2} 1"#, "not JSON: trailing characters, at column 14"),
        ("[1]", r#"invalid type: sequence, expected a graph, {"domain": ..., "x": ..., ...}, at column "#),
        (
            r#"{"domain":2,"label":[1]}"#,
            "field 'label' is unknown (the fields are domain, labels, x, factors, factor_x), at column ",
        ),
        (&long, &format!("field '{}…' is unknown (the fields are", "x".repeat(40))),
        (&long_text, "invalid type: string \"y\\ny\\n"),
        (r#"{"domain":2,"domain":2}"#, "field 'domain' appears twice, at column "),
        (r#"{"labels":[1]}"#, "domain missing (the number of labels of the variables, or a list of one for each)"),
        (r#"{"domain":null,"labels":[1]}"#, "domain missing"),
        (
            r#"{"domain":"2","labels":[1]}"#,
            r#"invalid type: string "2", expected domain: the number of labels of all variables, or a list"#,
        ),
        (r#"{"domain":-2,"labels":[1]}"#, "invalid type: integer `-2`, expected domain: "),
        (r#"{"domain":2.5,"labels":[1]}"#, "invalid type: floating point `2.5`, expected domain: "),
        (
            r#"{"domain":4294967296,"labels":[1]}"#,
            "invalid value: integer `4294967296`, expected the number of a variable's labels, a whole \
               number from 0 to 4294967295",
        ),
        (r#"{"domain":0,"labels":[1]}"#, "the domain of variable 0 has 0 labels (it needs at least one)"),
        (r#"{"domain":[2,0],"labels":[1,0]}"#, "the domain of variable 1 has 0 labels (it needs at least one)"),
        (r#"{"domain":2,"labels":[]}"#, "a graph without variables (it needs at least one; leave it out)"),
        (r#"{"domain":[],"labels":[]}"#, "a graph without variables"),
        (r#"{"domain":[2],"labels":[1,0]}"#, "2 labels for 1 variables (one is needed for each)"),
        (r#"{"domain":[2],"labels":[]}"#, "0 labels for 1 variables (one is needed for each)"),
        (
            r#"{"domain":2,"labels":[0,2]}"#,
            "label 2 of variable 1, whose domain has 2 labels (labels are numbered from 0)",
        ),
        (
            r#"{"domain":2,"labels":[0,-1]}"#,
            "invalid type: integer `-1`, expected a label, a whole number from 0 to 4294967295",
        ),
        (r#"{"domain":2,"labels":[1.0]}"#, "invalid type: floating point `1.0`, expected a label, a whole number"),
        (
            r#"{"domain":2,"labels":1}"#,
            "invalid type: integer `1`, expected labels: a list of a label for each variable",
        ),
    ]);
}

#[test]
fn bad_features_are_refused_by_line_and_cause() {
    check_refused(&[
        (r#"{"domain":2,"labels":[1],"x":[[1],[1]]}"#, "x has 2 rows, but there are 1 labels (a variable needs"),
        (r#"{"domain":[2],"labels":[1],"x":[[1],[1]]}"#, "x has 2 rows for 1 variables (one is needed for each)"),
        (r#"{"domain":2,"labels":[1],"x":{"0":1}}"#, "invalid type: map, expected a list of rows of features"),
        (
            r#"{"domain":2,"labels":[1],"x":[1]}"#,
            r#"invalid type: integer `1`, expected a row of features, [0.5, 0, 1] or {"0": 0.5, "2": 1}"#,
        ),
        (
            r#"{"domain":2,"labels":[1],"x":[["1"]]}"#,
            r#"invalid type: string "1", expected the value of a feature, a number"#,
        ),
        (r#"{"domain":2,"labels":[1],"x":[[null]]}"#, "invalid type: null, expected the value of a feature, a number"),
        (r#"{"domain":2,"labels":[1],"x":[[1e999]]}"#, "a number is too large, at column "),
        (r#"{"domain":2,"labels":[1],"x":[{"1":-1e39}]}"#, "a number is too large, at column "),
        (r#"{"domain":2,"labels":[1],"x":[[NaN]]}"#, "a number is not finite, at column "),
        (r#"{"domain":2,"labels":[1],"x":[[0.5, Infinity]]}"#, "a number is not finite, at column "),
        (r#"{"domain":2,"labels":[1],"x":[[-Infinity]]}"#, "a number is not finite, at column "),
        (
            r#"{"domain":2,"labels":[1],"x":[{"a":1}]}"#,
            "'a' is not the number of a feature, from 0 to 4294967294, at column ",
        ),
        (r#"{"domain":2,"labels":[1],"x":[{"-1":1}]}"#, "'-1' is not the number of a feature"),
        (r#"{"domain":2,"labels":[1],"x":[{"+1":1}]}"#, "'+1' is not the number of a feature"),
        (r#"{"domain":2,"labels":[1],"x":[{"":1}]}"#, "'' is not the number of a feature"),
        (r#"{"domain":2,"labels":[1],"x":[{"4294967295":1}]}"#, "'4294967295' is not the number of a feature"),
        (r#"{"domain":2,"labels":[1],"x":[{"3":1,"1":1,"03":2}]}"#, "feature 3 appears twice in a row"),
    ]);
}

#[test]
fn bad_factors_are_refused_by_line_and_cause() {
    check_refused(&[
        (
            r#"{"domain":2,"labels":[1],"factors":[[0,1]]}"#,
            r#"invalid type: sequence, expected a map by template, {"TEMPLATE": [...], ...}"#,
        ),
        (
            r#"{"domain":2,"labels":[1],"factors":{"e":[0,1]}}"#,
            "invalid type: integer `0`, expected a factor: the list of its variables",
        ),
        (
            r#"{"domain":2,"labels":[1],"factors":{"e":1}}"#,
            "invalid type: integer `1`, expected the factors of a template: a list of lists",
        ),
        (
            r#"{"domain":2,"labels":[1],"factors":{"e":[["0"]]}}"#,
            r#"invalid type: string "0", expected the number of a variable, a whole"#,
        ),
        (r#"{"domain":2,"labels":[1],"factors":{"e":[[]]}}"#, "a factor without variables (it needs at least one)"),
        (
            r#"{"domain":2,"labels":[1,1],"factors":{"e":[[0,1],[1]]}}"#,
            "a factor of 1 variables after one of 2 (give kinds of factors \
               different names), at column ",
        ),
        (
            r#"{"domain":2,"labels":[1,1],"factors":{"e":[[0,1],[1,2]]}}"#,
            "factor 1 of template 'e' names variable 2, but the last of the graph \
               is 1 (variables are numbered from 0)",
        ),
        (
            r#"{"domain":2,"labels":[1,1],"factors":{"e":[[9,1]]}}"#,
            "factor 0 of template 'e' names variable 9, but the last of the graph is 1",
        ),
        (
            r#"{"domain":2,"labels":[1,1],"factors":{"e":[[1,1]]}}"#,
            "factor 0 of template 'e' names variable 1 twice (each must be another one)",
        ),
        (
            r#"{"domain":[2,3],"labels":[1,1],"factors":{"e":[[0,1],[1,0]]}}"#,
            "factor 1 of template 'e' joins variables of 3 x 2 labels, others of \
               it 2 x 3 (give kinds of factors different names)",
        ),
        (
            r#"{"domain":2,"labels":[1,1],"factors":{"e":[[0]],"e":[[1]]}}"#,
            "factors has template 'e' twice (put all of it into one list)",
        ),
        (
            "{\"domain\":2,\"labels\":[1],\"factors\":{\"a\\u0000\":[[0]]}}",
            "the name of template 'a\\0' contains a control character (rename it)",
        ),
        (
            r#"{"domain":2,"labels":[1,1],"factors":{"e":[[0],[1]]},"factor_x":{"e":[[1]]}}"#,
            "factor_x of template 'e' has 1 rows for 2 \
               factors (one is needed for each)",
        ),
        (
            r#"{"domain":2,"labels":[1],"factors":{"e":[[0]]},"factor_x":{"d":[[1]]}}"#,
            "factor_x has 1 rows for template 'd', of which \
               factors has none",
        ),
        (
            r#"{"domain":2,"labels":[1],"factors":{"e":[[0]]},"factor_x":{"f":[[1]]}}"#,
            "factor_x has 1 rows for template 'f', of which \
               factors has none",
        ),
        (
            r#"{"domain":2,"labels":[1],"factors":{"e":[]},"factor_x":{"e":[[1]]}}"#,
            "factor_x has 1 rows for template 'e', of which factors has none",
        ),
        // What only other lines make wrong.
        (
            r#"{"domain":[2,3],"labels":[1,1],"factors":{"ok":[[0,1]]}}"#,
            "template 'ok' joins variables of 2 x 3 labels, others of it 2 x 2 (give \
               kinds of factors different names); the others are on line 1",
        ),
        (
            r#"{"domain":2,"labels":[1],"factors":{"ok":[[0]]}}"#,
            "template 'ok' joins variables of 2 labels, others of it 2 x 2 (give kinds of \
               factors different names); the others are on line 1",
        ),
        (
            r#"{"domain":2,"labels":[1,1],"factors":{"ok":[[0,1]]},"factor_x":{"ok":[[1]]}}"#,
            "template 'ok' has a factor_x, but none on line 1 \
               (give a row to every factor of a template, or to none)",
        ),
        (
            r#"{"domain":2,"labels":[1],"factors":{"rich":[[0]]}}"#,
            "template 'rich' has no factor_x, but one on line 3 (give a row to every factor of a \
               template, or to none)",
        ),
    ]);
}

#[test]
fn what_a_shape_lacks_is_an_error() {
    let train = br#"{"domain":[2,3],"labels":[0,1],"factors":{"e":[[0,1]],"f":[[0]]},"factor_x":{"f":[[1]]}}"#;
    let (_, shape) = learn(train).unwrap();
    let cases = [
        (
            r#""domain":[2,4]"#,
            "variable 1 has 4 labels, but variables of the task have 2 or 3 (the training data need such a variable)",
        ),
        (
            r#""domain":[2,3],"factors":{"g":[[0]]}"#,
            "template 'g' is unknown: the training data have 'e', 'f' (leave the others out)",
        ),
        (
            r#""domain":[2,3],"factors":{"e":[[1,0]]}"#,
            "factor 0 of template 'e' joins variables of 3 x 2 labels, others of it 2 x 3",
        ),
        (r#""domain":[2,3],"factors":{"e":[[0]]}"#, "the scopes of template 'e' are 1 numbers (each factor needs 2)"),
        (
            r#""domain":[2,3],"factors":{"f":[[0]]}"#,
            "template 'f' without features, which it needs (a row for each factor)",
        ),
        (
            r#""domain":[2,3],"factors":{"e":[[0,1]]},"factor_x":{"e":[[1]]}"#,
            "template 'e' with features, which it cannot have (leave them out)",
        ),
    ];
    for (fields, what) in cases {
        let text = format!("\n{{{fields}}}\n");
        let told = known(text.as_bytes(), &shape, Optional).unwrap_err();
        assert!(told.starts_with(&format!("data:2: {what}")), "{told}");
        assert_eq!(known_cut(text.as_bytes(), &shape, &pool(2), (1, 1)), Err(told.clone()));
        assert_eq!(streamed(text.as_bytes(), &shape, 3, 1), Err(told));
    }
    // An empty list of an unknown template says nothing.
    assert!(known(br#"{"domain":[2],"factors":{"g":[]}}"#, &shape, Optional).is_ok());
    let (_, bare) = learn(br#"{"domain":2,"labels":[1]}"#).unwrap();
    let told = known(br#"{"domain":[2],"factors":{"g":[[0]]}}"#, &bare, Optional).unwrap_err();
    assert!(told.contains("'g' is unknown: the training data have no templates"), "{told}");
}

#[test]
fn a_file_without_graphs_is_an_error() {
    for (text, line) in [("", 1), ("\u{feff}", 1), ("\n\n", 2), (" \r\n\t", 2)] {
        let expected = format!("data:{line}: no graphs in the file");
        assert_eq!(learn(text.as_bytes()).unwrap_err(), expected);
        assert_eq!(known(text.as_bytes(), &Shape::default(), Optional).unwrap_err(), expected);
        assert_eq!(streamed(text.as_bytes(), &Shape::default(), 3, 5).unwrap_err(), expected);
    }
}

#[test]
fn values_are_the_nearest_f32() {
    for word in [
        "16777217",
        "1.000000059604644775390625",
        "1.00000005960464477539062501",
        "-0.1",
        "1e-46",
        "18446744073709551616",
        "3.4028235e38",
    ] {
        let text = format!("{{\"domain\":2,\"labels\":[0],\"x\":[[1,{word}]]}}");
        let (data, _) = learn(text.as_bytes()).unwrap();
        let value = data.graphs[0].features.row(0).values().get(1).copied().unwrap_or(0.0);
        assert_eq!(value, word.parse::<f32>().unwrap(), "{word}");
    }
}

#[test]
fn a_small_file_takes_little_memory_and_a_large_graph_little_time() {
    // Were the columns or the domains taken, there would be no end.
    let text = b"{\"domain\":4000000000,\"labels\":[3999999999],\"x\":[{\"4294967294\":1}]}";
    let (data, shape) = learn(text).unwrap();
    assert_eq!((shape.features, data.graphs[0].features.nonzeros()), (u32::MAX, 1));
    // A million variables.
    let labels = "7,".repeat(999_999) + "7";
    let pairs: Vec<String> = (0..999_999).map(|v| format!("[{v},{}]", v + 1)).collect();
    let text = format!("{{\"domain\":12,\"labels\":[{labels}],\"factors\":{{\"next\":[{}]}}}}", pairs.join(","));
    let start = std::time::Instant::now();
    let (data, shape) = learn(text.as_bytes()).unwrap();
    assert_eq!((data.labels[0].len(), data.graphs[0].factors[0].scopes.len()), (1_000_000, 1_999_998));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    assert_eq!(shape.domains, [12]);
    // A template for each graph: as many places as their product.
    let line = |i: u32| format!("{{\"domain\":2,\"labels\":[0],\"factors\":{{\"t{i}\":[[0]]}}}}\n");
    let text: String = (0..3000).map(line).collect();
    let told = learn(text.as_bytes()).unwrap_err();
    assert!(told.starts_with("data:3000: 3000 templates, of which a graph has 1 on average"), "{told}");
    // So deep that a careless reader's stack would end.
    let deep = format!("{{\"domain\":2,\"labels\":[0],\"x\":{}", "[".repeat(1 << 20));
    assert!(learn(deep.as_bytes()).is_err());
}

#[test]
fn many_blocks_on_many_threads() {
    let line = |i: u32| match i % 100 {
        7 => "\n".to_owned(),
        _ => format!(
            "{{\"domain\":[2,{}],\"labels\":[1,{}],\"x\":[[{i}],{{\"{}\":1}}],\"factors\":{{\"p{}\":[[0]]}}}}\n",
            2 + i % 3,
            i % 2,
            i % 50,
            i % 4
        ),
    };
    let text: String = (0..20_000).map(line).collect();
    let whole = learn(text.as_bytes()).unwrap();
    assert_eq!((whole.0.len(), whole.1.templates.len(), whole.1.features), (19_800, 4, 50));
    assert_eq!(whole.0.line(19_799), 20_000);
    let pool = pool(4);
    assert_eq!(learn_cut(text.as_bytes(), &pool, (100_000, 1000)).unwrap(), whole);
    assert_eq!(known_cut(text.as_bytes(), &whole.1, &pool, (10_000, 100)).unwrap(), whole.0);
    let bad = format!("{text}{{\"domain\":3,\"labels\":[0],\"factors\":{{\"p0\":[[0]]}}}}\n{text}worse");
    let told = learn_cut(bad.as_bytes(), &pool, (100_000, 1000)).unwrap_err();
    assert!(told.starts_with("data:20001: template 'p0' joins variables of 3 labels, others of it 2"), "{told}");
}

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/graphs");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// What must hold for any bytes at all; the same as in fuzz/fuzz_targets/graphs.rs.
fn check_laws(bytes: &[u8], pool: &Pool) {
    let whole = learn(bytes);
    let pieces = learn_cut(bytes, pool, (5, 1));
    // Where packed data are damaged, a bad line and the damage race for the first word; both are errors.
    let is_damaged = |r: &Result<_, String>| r.as_ref().is_err_and(|e| e.contains("damaged"));
    assert!(whole == pieces || is_damaged(&whole) && pieces.is_err(), "{whole:?}\n{pieces:?}");
    if let Err(message) = &whole {
        assert!(message.len() < 400 && !message.chars().any(char::is_control), "{message}");
    }
    let _ = streamed(bytes, &Shape::default(), 9, 2);
    let Ok((data, shape)) = whole else { return };
    assert!(data.graphs.iter().all(|graph| shape.check(graph).is_ok()));
    assert_eq!(known(bytes, &shape, Required).as_ref(), Ok(&data));
    assert_eq!(streamed(bytes, &shape, 9, 2), Ok(examples(&data)));
    let (again, same) = learn(&written(&data, &shape)).expect("what was written is valid");
    assert_eq!((again.graphs, again.labels, same), (data.graphs, data.labels, shape));
}

#[test]
fn the_corpus_of_the_fuzzer_obeys_the_laws() {
    let (corpus, pool) = (corpus(), pool(2));
    assert!(corpus.len() >= 20, "only {} files", corpus.len());
    for bytes in &corpus {
        check_laws(bytes, &pool);
    }
    assert!(corpus.iter().filter(|bytes| learn(bytes).is_ok()).count() >= 8);
}

#[test]
fn the_street_scenes_are_read() {
    let Some(train) = data_set("graph/camvid.train.gz") else { return };
    let (data, shape) = read(train, &pool(2)).unwrap();
    assert_eq!((data.len(), shape.features, shape.domains.as_slice()), (120, 18, &[12][..]));
    let plain = |name: &str| template(name, &[12, 12], None);
    assert_eq!(shape.templates, [plain("down"), plain("right")]);
    for (graph, labels) in data.graphs.iter().zip(&data.labels) {
        assert_eq!((graph.domains.len(), labels.len()), (24 * 32, 24 * 32));
        assert_eq!((graph.factors[0].scopes.len(), graph.factors[1].scopes.len()), (2 * 23 * 32, 2 * 24 * 31));
    }
    let Some(test) = data_set("graph/camvid.test.gz") else { return };
    assert_eq!(read_with(test, &shape, Required, &pool(2)).unwrap().len(), 60);
}

fn any_row() -> impl Strategy<Value = Vec<(u32, f32)>> {
    let value = any::<f32>().prop_filter("finite and not 0", |v| v.is_finite() && *v != 0.0);
    let column = prop_oneof![0_u32..12, 0_u32..=u32::MAX - 1];
    proptest::collection::btree_map(column, value, 0..5).prop_map(|row| row.into_iter().collect())
}

/// A line of two variables, with rows and a template that has features.
fn any_line() -> impl Strategy<Value = String> {
    let row = || {
        any_row().prop_map(|row| {
            let entries: Vec<String> = row.iter().rev().map(|(j, v)| format!("\"{j}\":{v:e}")).collect();
            format!("{{{}}}", entries.join(","))
        })
    };
    (row(), row(), row(), 0_u32..2, 0_u32..5, any::<bool>()).prop_map(|(a, b, c, first, second, has_edge)| {
        let edge = if has_edge { "[[1,0]]" } else { "[]" };
        let of_edge = if has_edge { format!("[{c}]") } else { "[]".to_owned() };
        format!(
            "{{\"domain\":[2,5],\"labels\":[{first},{second}],\"x\":[{a},{b}],\"factors\":{{\"e d\\\"ge\":{edge}}},\
             \"factor_x\":{{\"e d\\\"ge\":{of_edge}}}}}"
        )
    })
}

proptest! {
    #[test]
    fn good_lines_obey_the_laws(lines in proptest::collection::vec(any_line(), 1..5)) {
        let text = lines.join("\n");
        prop_assert!(learn(text.as_bytes()).is_ok());
        check_laws(text.as_bytes(), &pool(1));
    }

    #[test]
    fn junk_obeys_the_laws(bytes in proptest::collection::vec(any::<u8>(), 0..100), text in "([\\[\\]{},:0-9e.-]|\"(x|domain|labels|factors)\":|\n){0,40}") {
        check_laws(&bytes, &pool(1));
        check_laws(text.as_bytes(), &pool(1));
    }

    #[test]
    fn a_damaged_corpus_obeys_the_laws(file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let corpus = corpus();
        let mut bytes = corpus[file.index(corpus.len())].clone();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_laws(&bytes, &pool(1));
    }
}
