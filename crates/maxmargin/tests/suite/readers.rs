//! The reader of SVM-light text, from outside: every rule of the format, every error, hostile bytes, and the promise
//! that neither threads nor the places where the text is cut change anything.

use std::io::Read;
use std::path::{Path, PathBuf};

use maxmargin::data::input::Input;
use maxmargin::data::svmlight::{LabelRule, Labelled, Labels, Stream, read, read_in_pieces, write};
use maxmargin::error::Error;
use maxmargin::parallel::Pool;
use maxmargin::sparse::SparseMatrix;
use proptest::prelude::*;

use LabelRule::{Optional, Required};

fn parse(text: &[u8], rule: LabelRule) -> Result<Labelled, String> {
    let pool = Pool::new(1).unwrap();
    let input = Input::new("data", text).map_err(|e| e.to_string())?;
    read(input, rule, &pool).map_err(|e| e.to_string())
}

fn parse_cut(text: &[u8], rule: LabelRule, pool: &Pool, block: usize, chunk: usize) -> Result<Labelled, String> {
    let input = Input::new("data", text).map_err(|e| e.to_string())?;
    read_in_pieces(input, rule, pool, block, chunk).map_err(|e| e.to_string())
}

fn written(data: &Labelled) -> Vec<u8> {
    let mut out = Vec::new();
    for i in 0..data.len() {
        write(&mut out, data.labels.name(i), data.costs.as_ref().map(|c| c[i]), data.matrix.row(i)).unwrap();
    }
    out
}

/// Label, cost, features and line.
type Example = (Option<String>, f64, Vec<(u32, f32)>, u64);

/// The examples as they come through a stream.
fn streamed(text: &[u8], block: usize, most: usize) -> Result<Vec<Example>, String> {
    let mut stream = Stream::in_pieces(Input::new("data", text).map_err(|e| e.to_string())?, Optional, block);
    let mut all = Vec::new();
    while let Some(batch) = stream.next_batch(most).map_err(|e| e.to_string())? {
        assert!((1..=most).contains(&batch.len()));
        all.extend(examples(&batch));
    }
    Ok(all)
}

fn examples(data: &Labelled) -> Vec<Example> {
    let cost = |i: usize| data.costs.as_ref().map_or(1.0, |c| c[i]);
    (0..data.len())
        .map(|i| (data.labels.name(i).map(str::to_owned), cost(i), data.matrix.row(i).iter().collect(), data.line(i)))
        .collect()
}

#[test]
fn a_file_with_everything() {
    let text = "\u{feff}# made by hand\r\n+1 1:0.5 3:-2 # first\r\n\r\n  rød\tcost:2.5\t2:1e2 7:0  \n+1\n-1 4294967294:.25#close";
    let data = parse(text.as_bytes(), Required).unwrap();
    assert_eq!(data.labels.names, ["+1", "rød", "-1"]);
    assert_eq!(data.labels.ids, [0, 1, 0, 2]);
    assert_eq!(data.costs, Some(vec![1.0, 2.5, 1.0, 1.0]));
    assert_eq!((0..4).map(|i| data.line(i)).collect::<Vec<_>>(), [2, 4, 5, 6]);
    assert_eq!(data.matrix.row(0).iter().collect::<Vec<_>>(), [(0, 0.5), (2, -2.0)]);
    assert_eq!(data.matrix.row(1).iter().collect::<Vec<_>>(), [(1, 100.0)]);
    assert!(data.matrix.row(2).is_empty());
    assert_eq!(data.matrix.columns(), u32::MAX - 1);
    assert_eq!(data.checksum, crc32fast::hash(text.as_bytes()));
}

#[test]
fn an_explicit_zero_counts_its_column_only() {
    let data = parse(b"1 1:1 9:0\n2 5:-0.0\n", Required).unwrap();
    assert_eq!((data.matrix.columns(), data.matrix.nonzeros()), (9, 1));
}

#[test]
fn labels_may_be_missing_for_prediction_only() {
    let data = parse(b"1:1 2:2\nx 3:1\ncost:2 1:1\n", Optional).unwrap();
    assert_eq!(data.labels.ids, [Labels::NONE, 0, Labels::NONE]);
    assert_eq!(data.labels.name(0), None);
    let error = parse(b"x 1:1\n1:1 2:2\n", Required).unwrap_err();
    assert_eq!(error, "data:2: label missing before '1:1' (labels cannot contain ':')");
}

#[test]
fn every_error_names_file_line_and_cause() {
    let long = format!("1 {}", "x".repeat(1 << 20));
    let cases: &[(&[u8], &str)] = &[
        (b"1 0:1", "feature index 0 (indices start at 1)"),
        (b"1 7:1 3:1", "feature index 3 after 7 (indices must ascend)"),
        (b"1 5:1 5:2", "feature index 5 appears twice"),
        (b"1 4294967295:1", "feature index '4294967295' (the largest is 4294967294)"),
        (b"1 3:nan", "value 'nan' of feature 3 is not a finite number"),
        (b"1 3:-Infinity", "value '-Infinity' of feature 3 is not a finite number"),
        (b"1 3:1e39", "value '1e39' of feature 3 is too large (the largest is 3.4e38)"),
        (b"1 3:0x1F", "value '0x1F' of feature 3 is not a decimal number"),
        (b"1 3:1:2", "value '1:2' of feature 3 is not a decimal number"),
        (b"1 3: 1", "value of feature 3 missing (no blank after ':')"),
        (b"1 abc", "'abc' is not INDEX:VALUE"),
        (b"1 12", "'12' is not INDEX:VALUE"),
        (b"1 -3:1", "'-3:1' is not INDEX:VALUE"),
        (b"1 :5", "':5' is not INDEX:VALUE"),
        (b"1 1:1\r2 1:1", "value '1\\r2' of feature 1 is not a decimal number"),
        (b"1 qid:3 1:1", "'qid:3' is for ranking data, which this task does not take"),
        (b"1 cost:0", "'cost:0': the cost must be a positive finite number"),
        (b"1 cost:-1", "'cost:-1': the cost must be a positive finite number"),
        (b"1 cost:inf", "'cost:inf': the cost must be a positive finite number"),
        (b"1 cost:1 cost:1", "cost: appears twice"),
        (b"C# 1:1", "label 'C' runs into a comment (put a blank before '#'; labels cannot contain it)"),
        (b"a\0b 1:1", "label 'a\\0b' contains a control character (is this a text file?)"),
        (b"caf\xe9 1:1", "label 'caf\u{fffd}' is not valid UTF-8 (is this a text file?)"),
        (long.as_bytes(), &format!("'{}…' is not INDEX:VALUE", "x".repeat(40))),
    ];
    for (line, what) in cases {
        let text = [b"ok 1:1 2:2\n\n# comment\nok 3:1\n", *line, b"\nworse 0:0\n"].concat();
        let expected = Err(format!("data:5: {what}"));
        assert_eq!(parse(&text, Required), expected);
        let pool = Pool::new(3).unwrap();
        assert_eq!(parse_cut(&text, Required, &pool, 1, 1), expected);
        assert_eq!(streamed(&text, 7, 1), expected.map(|_: Labelled| unreachable!()));
    }
}

#[test]
fn a_file_without_examples_is_an_error() {
    for (text, line) in [("", 1), ("\u{feff}", 1), ("\n\n", 2), ("# only a comment", 1), (" \r\n\t", 2)] {
        let expected = format!("data:{line}: no examples in the file");
        assert_eq!(parse(text.as_bytes(), Required).unwrap_err(), expected);
        assert_eq!(streamed(text.as_bytes(), 3, 5).unwrap_err(), expected);
    }
}

#[test]
fn wherever_a_text_is_cut_it_says_the_same() {
    let text = "\u{feff}a 1:1 2:0.25\r\n\n# c\nb cost:2 3:1e5\n a 1:16777217\nlast 9:0".as_bytes();
    let pools = [1, 2, 4].map(|n| Pool::new(n).unwrap());
    let whole = parse(text, Required).unwrap();
    for block in 1..text.len() + 2 {
        for pool in &pools {
            assert_eq!(parse_cut(text, Required, pool, block, 1).unwrap(), whole);
            assert_eq!(parse_cut(text, Required, pool, text.len(), block).unwrap(), whole);
        }
        assert_eq!(streamed(text, block, 2).unwrap(), examples(&whole));
        // Reads that end anywhere, as pipes do.
        let (start, end) = text.split_at(block.min(text.len()));
        let input = Input::new("data", start.chain(end)).unwrap();
        assert_eq!(read(input, Required, &pools[1]).unwrap(), whole);
    }
}

#[test]
fn many_blocks_on_many_threads() {
    let line = |i: usize| match i % 1000 {
        7 => "# a comment\n".to_owned(),
        _ => format!("c{} {}:{} 500:1\n", i % 13, i % 400 + 1, i),
    };
    let text: String = (0..200_000).map(line).collect();
    let whole = parse(text.as_bytes(), Required).unwrap();
    assert_eq!((whole.len(), whole.labels.names.len()), (199_800, 13));
    assert_eq!(whole.line(199_799), 200_000);
    let pool = Pool::new(4).unwrap();
    assert_eq!(parse_cut(text.as_bytes(), Required, &pool, 100_000, 1000).unwrap(), whole);
    let bad = format!("{text}oops 1:1 1:1\n{text}worse");
    let error = parse_cut(bad.as_bytes(), Required, &pool, 100_000, 1000).unwrap_err();
    assert_eq!(error, "data:200001: feature index 1 appears twice");
}

#[test]
fn packed_text_from_the_usual_tools_reads_as_plain_text() {
    let plain = parse(&corpus("plain"), Required).unwrap();
    for name in ["packed.gz", "packed.zst", "skippable.zst"] {
        assert_eq!(parse(&corpus(name), Required), Ok(plain.clone()), "{name}");
    }
    for name in ["two-members.gz", "two-frames.zst"] {
        assert_eq!(parse(&corpus(name), Required).unwrap().len(), 2 * plain.len(), "{name}");
    }
    for name in ["truncated.gz", "damaged.gz", "trailing.gz", "truncated.zst", "damaged.zst"] {
        let error = parse(&corpus(name), Required).unwrap_err();
        assert!(error.starts_with("data: truncated or damaged "), "{name}: {error}");
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = Input::open("/no/such/file.dat").unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path == Path::new("/no/such/file.dat")), "{error}");
}

fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/svmlight")
}

fn corpus(name: &str) -> Vec<u8> {
    std::fs::read(corpus_folder().join(name)).unwrap()
}

/// What must hold for any bytes at all.
fn check_laws(bytes: &[u8], pool: &Pool) {
    for rule in [Required, Optional] {
        let whole = parse(bytes, rule);
        assert_eq!(whole, parse(bytes, rule));
        let pieces = parse_cut(bytes, rule, pool, 5, 1);
        // Where packed data are damaged, a bad line and the damage race for the first word; both are errors.
        let is_damaged = |r: &Result<_, String>| r.as_ref().is_err_and(|e| e.contains("damaged"));
        let is_race = is_damaged(&whole) && pieces.is_err() || whole.is_err() && is_damaged(&pieces);
        assert!(whole == pieces || is_race, "{whole:?}\n{pieces:?}");
        if let Err(message) = &whole {
            assert!(message.len() < 400 && !message.chars().any(char::is_control), "{message}");
        }
        let stream = streamed(bytes, 9, 2);
        if rule == Optional {
            assert_eq!(whole.as_ref().map(examples).ok(), stream.ok());
        }
        let Ok(data) = whole else { continue };
        // A line with neither label nor values other than zero has no text of its own.
        if (0..data.len()).any(|i| data.labels.name(i).is_none() && data.matrix.row(i).is_empty()) {
            continue;
        }
        let again = parse(&written(&data), rule).expect("what was written is valid");
        assert_eq!((&again.labels, &again.costs), (&data.labels, &data.costs));
        assert!((0..data.len()).all(|i| again.matrix.row(i) == data.matrix.row(i)));
    }
}

#[test]
fn the_corpus_of_the_fuzzer_obeys_the_laws() {
    let pool = Pool::new(2).unwrap();
    let mut count = 0;
    for entry in std::fs::read_dir(corpus_folder()).unwrap() {
        check_laws(&std::fs::read(entry.unwrap().path()).unwrap(), &pool);
        count += 1;
    }
    assert!(count >= 40, "only {count} files");
}

fn any_matrix() -> impl Strategy<Value = Labelled> {
    let value = any::<f32>().prop_filter("finite and not 0", |v| v.is_finite() && *v != 0.0);
    let row = proptest::collection::btree_map(0_u32..u32::MAX - 1, value, 0..8);
    let label = "[^\\s:#\\p{C}\u{feff}]{1,6}";
    proptest::collection::vec((label, row, proptest::option::of(1e-300..1e300)), 1..12).prop_map(|rows| {
        let mut data = Labelled::default();
        let mut matrix = SparseMatrix::new();
        let mut costs = Vec::new();
        for (label, row, cost) in &rows {
            let names = &mut data.labels.names;
            let id = names.iter().position(|n| n == label).unwrap_or_else(|| {
                names.push(label.clone());
                names.len() - 1
            });
            data.labels.ids.push(id as u32);
            matrix.push_row(row.iter().map(|(&j, &v)| (j, v)));
            costs.push(cost.unwrap_or(1.0));
        }
        data.matrix = matrix;
        data.costs = Some(costs);
        data
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(data in any_matrix()) {
        let again = parse(&written(&data), Required).unwrap();
        prop_assert_eq!(again.labels, data.labels);
        prop_assert_eq!(again.matrix, data.matrix);
        prop_assert_eq!(again.costs, data.costs);
    }

    #[test]
    fn junk_obeys_the_laws(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_laws(&bytes, &Pool::new(1).unwrap());
    }

    #[test]
    fn junk_that_looks_like_data_obeys_the_laws(text in "([a1-]|[0-9]{1,3}:[-0-9.e]{1,4}|cost:[0-9]|[ \t#\n\r]){0,40}") {
        check_laws(text.as_bytes(), &Pool::new(1).unwrap());
    }

    #[test]
    fn a_damaged_corpus_obeys_the_laws(file in 0_usize..40, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut paths: Vec<_> = std::fs::read_dir(corpus_folder()).unwrap().map(|e| e.unwrap().path()).collect();
        paths.sort();
        let mut bytes = std::fs::read(&paths[file % paths.len()]).unwrap();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_laws(&bytes, &Pool::new(1).unwrap());
    }
}

#[test]
fn drawn_examples_stay_what_they_are() {
    let lines: Vec<String> = (0..50).map(|i| format!("{} cost:{} 1:{i} 7:1\n\n", i % 3, i + 1)).collect();
    let text = lines.concat();
    let all = parse(text.as_bytes(), Required).unwrap();
    for size in [0, 1, 20, 50, 99] {
        let mut some = all.clone();
        let kept = some.draw(size, 4);
        assert_eq!((kept.len(), some.len(), some.matrix.columns()), (size.min(50), size.min(50), 7));
        assert!(kept.is_sorted_by(|a, b| a < b));
        for (example, &i) in kept.iter().enumerate() {
            assert_eq!((some.line(example), some.labels.name(example)), (all.line(i), all.labels.name(i)));
            assert_eq!(some.costs.as_ref().unwrap()[example], all.costs.as_ref().unwrap()[i]);
            assert_eq!(some.matrix.row(example), all.matrix.row(i));
        }
    }
    let drawn = |seed| all.clone().draw(20, seed);
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
}
