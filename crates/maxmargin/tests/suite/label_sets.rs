//! Sets of labels, from the text to the numbers.

use crate::common::data_sets;

use data_sets::data_set;
use maxmargin::data::input::Input;
use maxmargin::data::label_sets::{LabelSets, Unseen, learn, sets_of};
use maxmargin::data::svmlight::{LabelRule, Labelled, Labels, Stream, read, read_in_pieces, write};
use maxmargin::parallel::Pool;
use proptest::prelude::*;

fn examples(text: &str) -> Labelled {
    read(Input::new("data", text.as_bytes()).unwrap(), LabelRule::Set, &Pool::new(1).unwrap()).unwrap()
}

fn learned(text: &str) -> Result<LabelSets, String> {
    learn(&examples(text), "data").map_err(|e| e.to_string())
}

fn sets(text: &str, labels: &[&str]) -> Result<(Vec<Vec<u32>>, Unseen), String> {
    let labels: Vec<String> = labels.iter().map(ToString::to_string).collect();
    sets_of(&examples(text), &labels, "data").map_err(|e| e.to_string())
}

#[test]
fn numbers_ascend_and_equal_ones_are_one_label() {
    let found = learned("10,9 1:1\n+9,-0 2:1\n0,1e1,-3 3:1\n9.0 1:1\n").unwrap();
    assert_eq!(found.labels, ["-3", "-0", "9", "10"]);
    assert_eq!(found.sets, [vec![2, 3], vec![1, 2], vec![0, 1, 3], vec![2]]);
}

#[test]
fn words_are_in_the_order_of_their_bytes() {
    let found = learned("b,10 1:1\n9,nan 1:1\n1,1.0\nb").unwrap();
    assert_eq!(found.labels, ["1", "1.0", "10", "9", "b", "nan"]);
    assert_eq!(found.sets, [vec![2, 4], vec![3, 5], vec![0, 1], vec![4]]);
}

#[test]
fn an_empty_field_is_an_empty_set() {
    let text = "3,7 1:1 2:2 # both\n 1:0.5 4:1\n1:2\n\t2:1\n7 1:1\n3,7\n\n1:0\ncost:2 1:1\n";
    let data = examples(text);
    let names: Vec<Option<&str>> = (0..data.len()).map(|i| data.labels.name(i)).collect();
    assert_eq!(names, [Some("3,7"), None, None, None, Some("7"), Some("3,7"), None, None]);
    assert_eq!(data.matrix.row(0).iter().collect::<Vec<_>>(), [(0, 1.0), (1, 2.0)]);
    assert_eq!(data.matrix.row(1).iter().collect::<Vec<_>>(), [(0, 0.5), (3, 1.0)]);
    assert_eq!(data.labels.ids.iter().filter(|&&id| id == Labels::NONE).count(), 5);
    let found = learned(text).unwrap();
    let none: Vec<u32> = Vec::new();
    assert_eq!(found.labels, ["3", "7"]);
    assert_eq!(
        found.sets,
        [vec![0, 1], none.clone(), none.clone(), none.clone(), vec![1], vec![0, 1], none.clone(), none]
    );
}

/// As in LIBSVM's own files: a line of a blank is an example, an empty line is nothing.
#[test]
fn a_blank_is_an_empty_set_without_features() {
    for text in
        ["3 1:1\n \n\n7 2:1\n\t\n # a comment\n# another\n ", "3 1:1\r\n \r\n\r\n7 2:1\r\n  \r\n #\r\n#\r\n \r\n"]
    {
        let data = examples(text);
        assert_eq!((0..data.len()).map(|i| data.line(i)).collect::<Vec<_>>(), [1, 2, 4, 5, 6, 8], "{text:?}");
        let found = learned(text).unwrap();
        assert_eq!(found.sets, [vec![0], vec![], vec![1], vec![], vec![], vec![]]);
        assert!([1, 3, 4, 5].iter().all(|&i| data.matrix.row(i).is_empty()));
    }
    // Labels may stand behind blanks all the same.
    assert_eq!(learned(" 3,7 1:1\n").unwrap().sets, [vec![0, 1]]);
    // For classes such a line is none.
    let input = |text: &'static str| Input::new("data", text.as_bytes()).unwrap();
    for rule in [LabelRule::Required, LabelRule::Optional] {
        assert_eq!(read(input("3 1:1\n \n7 2:1\n\t\n"), rule, &Pool::new(1).unwrap()).unwrap().len(), 2);
    }
}

#[test]
fn known_labels_are_found_and_others_counted() {
    let text = "1,2 1:1\n 1:1\n5,+2.0,7 1:1\n1,2\n8";
    let (found, unseen) = sets(text, &["1.0", "2", "3"]).unwrap();
    assert_eq!(found, [vec![0, 1], vec![], vec![1], vec![0, 1], vec![]]);
    assert_eq!((unseen.counts.as_slice(), unseen.total()), (&[0, 0, 2, 0, 1][..], 3));
    // Where labels are words, so are numbers.
    let (found, unseen) = sets("1,1.0,x\n2,2.0", &["1", "x"]).unwrap();
    assert_eq!((found, unseen.counts), (vec![vec![0, 1], vec![]], vec![1, 2]));
    // The first of two classes is not the rest of them here.
    let (found, unseen) = sets("c,d", &["not-c", "c"]).unwrap();
    assert_eq!((found, unseen.counts), (vec![vec![1]], vec![1]));
}

#[test]
fn every_error_names_file_line_and_cause() {
    let empty = |field: &str| format!("data:3: an empty label in '{field}' (labels are divided by one comma each)");
    for field in ["3,,7", ",3", "3,", ",", ",,"] {
        let text = format!("3,7 1:1\n1:1\n{field} 1:1\n{field}\n");
        assert_eq!(learned(&text).unwrap_err(), empty(field));
        assert_eq!(sets(&text, &["3", "7"]).unwrap_err(), empty(field));
    }
    let twice = |label: &str| format!("data:2: label '{label}' appears twice in a line (name each once)");
    for (field, label) in [("7,3,7", "7"), ("1,+1", "1"), ("0,3,-0.0", "0")] {
        assert_eq!(learned(&format!("7,3\n{field} 1:1")).unwrap_err(), twice(label));
    }
    assert_eq!(sets("3\n7,7.0", &["3", "7"]).unwrap_err(), twice("7"));
    assert_eq!(sets("3\n9,3,9", &["3", "7"]).unwrap_err(), twice("9"));
    assert_eq!(sets("3\n9,3,9.0", &["3", "7"]).unwrap_err(), twice("9"));
    assert!(sets("3\n9,x,9.0", &["3", "x"]).is_ok());
    let none = learned("# nothing\n1:1\n1:1\n").unwrap_err();
    assert!(none.starts_with("data:2: no example has a label (a line is LABEL,LABEL,... INDEX:VALUE"), "{none}");
}

#[test]
fn a_message_stays_short() {
    let long = format!("{},,1 1:1", "x".repeat(1 << 20));
    assert!(learned(&long).unwrap_err().len() < 200);
}

#[test]
fn neither_threads_nor_cuts_nor_batches_matter() {
    let line = |i: u32| match i % 7 {
        0 => format!(" {}:1\n", i % 30 + 1),
        k => format!("{},{} {}:1\n", i % 11, 20 + k, i % 30 + 1),
    };
    let text: String = (0..5000).map(line).collect();
    let whole = learned(&text).unwrap();
    let pool = Pool::new(4).unwrap();
    for (block, chunk) in [(1000, 100), (100_000, 77), (17, 1)] {
        let input = Input::new("data", text.as_bytes()).unwrap();
        let pieces = read_in_pieces(input, LabelRule::Set, &pool, block, chunk).unwrap();
        assert_eq!(learn(&pieces, "data").unwrap(), whole);
    }
    let mut stream = Stream::new(Input::new("data", text.as_bytes()).unwrap(), LabelRule::Set);
    let mut all = Vec::new();
    while let Some(batch) = stream.next_batch(123).unwrap() {
        all.extend(sets_of(&batch, &whole.labels, "data").unwrap().0);
    }
    assert_eq!(all, whole.sets);
}

#[test]
fn the_bibliography_is_read() {
    let pool = Pool::new(2).unwrap();
    let Some(train) = data_set("multilabel/bibtex.train.gz") else { return };
    let train = read(train, LabelRule::Set, &pool).unwrap();
    let found = learn(&train, "bibtex").unwrap();
    assert_eq!((train.len(), found.labels.len(), train.matrix.columns()), (5916, 159, 1836));
    assert!(found.labels.windows(2).all(|pair| pair[0].parse::<u32>().unwrap() < pair[1].parse().unwrap()));
    let Some(test) = data_set("multilabel/bibtex.test.gz") else { return };
    let test = read(test, LabelRule::Set, &pool).unwrap();
    let (sets, unseen) = sets_of(&test, &found.labels, "bibtex").unwrap();
    assert_eq!((sets.len(), unseen.total()), (1479, 0));
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(sets in proptest::collection::vec(proptest::collection::btree_set(0_u32..30, 0..5), 1..20)) {
        let mut text = Vec::new();
        let features = examples("1 1:1 3:0.5\n \n");
        for (i, set) in sets.iter().enumerate() {
            let field: Vec<String> = set.iter().map(ToString::to_string).collect();
            write(&mut text, Some(&field.join(",")), None, features.matrix.row(i % 2)).unwrap();
        }
        let text = String::from_utf8(text).unwrap();
        let seen: std::collections::BTreeSet<u32> = sets.iter().flatten().copied().collect();
        prop_assume!(!seen.is_empty());
        let found = learned(&text).unwrap();
        prop_assert_eq!(found.sets.len(), sets.len());
        prop_assert_eq!(&found.labels, &seen.iter().map(ToString::to_string).collect::<Vec<_>>());
        for (found_set, set) in found.sets.iter().zip(&sets) {
            let words: Vec<u32> = found_set.iter().map(|&label| found.labels[label as usize].parse().unwrap()).collect();
            prop_assert_eq!(words, set.iter().copied().collect::<Vec<_>>());
        }
        let labels: Vec<&str> = found.labels.iter().map(String::as_str).collect();
        prop_assert_eq!(self::sets(&text, &labels).unwrap().0, found.sets);
    }
}
