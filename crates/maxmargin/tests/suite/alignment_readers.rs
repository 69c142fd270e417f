//! The reader of sequences, from outside: every rule of the format, every error, hostile bytes, and the promise that neither threads
//! nor the places where the text is cut change anything.

use crate::common::data_sets;

use std::path::Path;

use data_sets::data_set;
use maxmargin::data::alignments::{Alphabet, Alphabets, Records, Stream, gapped, read, read_in_pieces, write};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule::{self, Optional, Required};
use maxmargin::data::synthetic::{AlignSizes, align};
use maxmargin::inference::align::{Op, Run};
use maxmargin::parallel::Pool;
use maxmargin::tasks::alignment::NONE;
use proptest::prelude::*;

fn pool(threads: usize) -> Pool {
    Pool::new(threads).unwrap()
}

fn parsed(text: &[u8], rule: LabelRule) -> Result<Records, String> {
    let input = Input::new("data", text).map_err(|e| e.to_string())?;
    read(input, rule, &pool(1)).map_err(|e| e.to_string())
}

fn cut(text: &[u8], threads: usize, pieces: (usize, usize)) -> Result<Records, String> {
    let input = Input::new("data", text).map_err(|e| e.to_string())?;
    read_in_pieces(input, Optional, &pool(threads), pieces).map_err(|e| e.to_string())
}

fn streamed(text: &[u8], block: usize, most: usize) -> Result<Vec<(maxmargin::data::alignments::Record, u64)>, String> {
    let mut stream = Stream::in_pieces(Input::new("data", text).map_err(|e| e.to_string())?, Optional, block);
    let mut all = Vec::new();
    while let Some(batch) = stream.next_batch(most).map_err(|e| e.to_string())? {
        assert!((1..=most).contains(&batch.len()) && batch.checksum == 0);
        all.extend(batch.records.iter().cloned().enumerate().map(|(i, record)| (record, batch.line(i))));
    }
    Ok(all)
}

#[test]
fn a_record_is_what_it_says() {
    let text = r#"
{"x": "ACDE", "z": "ACFE", "ax": "AC-DE", "az": "ACFE-", "decoys": ["GG", ""], "tm": 0.5, "more": {"a": [1]}}
{"az": "\u0041", "ax": "B", "z": "A", "x": "B", "sx": "H", "sz": "E"}

{"x": "", "decoys": ["Ä"]}"#;
    let records = parsed(text.as_bytes(), Optional).unwrap();
    assert_eq!((0..3).map(|i| records.line(i)).collect::<Vec<_>>(), [2, 3, 5]);
    let [first, second, third] = &records.records[..] else { panic!("three records") };
    assert_eq!(first.candidates.iter().map(|c| c.letters.as_str()).collect::<Vec<_>>(), ["ACFE", "GG", ""]);
    let run = |op, count| Run { op, count };
    let path = first.alignment.as_ref().unwrap();
    assert_eq!(path.runs, [run(Op::Match, 2), run(Op::OnlyZ, 1), run(Op::Match, 1), run(Op::OnlyX, 1)]);
    assert_eq!(gapped(path, "ACDE", "ACFE"), ("AC-DE".to_owned(), "ACFE-".to_owned()));
    assert_eq!((second.x.marks.as_deref(), second.candidates[0].marks.as_deref()), (Some("H"), Some("E")));
    assert!(second.has_homologue && !third.has_homologue && third.alignment.is_none());
    assert!(parsed(text.as_bytes(), Required).unwrap_err().starts_with("data:5: z missing"));
}

#[test]
fn errors_name_the_line_and_the_way_out() {
    let good = r#"{"x": "A", "z": "A", "ax": "A", "az": "A"}"#;
    for (line, what) in [
        (r#"{"z": "A"}"#, "x missing"),
        (r#"{"x": "A", "z": "A", "az": "A"}"#, "ax missing"),
        (r#"{"x": "A", "z": "A", "ax": "A"}"#, "az missing"),
        (r#"{"x": "A B", "z": "A", "ax": "A B", "az": "A--"}"#, "x has ' ' at place 2"),
        (r#"{"x": "AB", "z": "A", "ax": "AC", "az": "A-"}"#, "where x has another residue"),
        (r#"{"x": "AB", "z": "A", "ax": "A", "az": "A"}"#, "ax ends before x does"),
        (r#"{"x": "A", "z": "AB", "ax": "A", "az": "A"}"#, "az ends before z does"),
        (r#"{"x": "A", "z": "A", "ax": "AA", "az": "A-"}"#, "ax has 'A' in column 2"),
        (r#"{"x": "A", "z": "A", "ax": "A-", "az": "A"}"#, "different lengths"),
        (r#"{"x": "A", "z": "A", "ax": "A-", "az": "A-"}"#, "column 2 of ax and az is a gap in both"),
        (r#"{"x": "A", "z": "A", "ax": "A", "az": "A", "decoys": ["A-"]}"#, "a decoy has '-' at place 2"),
        (r#"{"x": "A", "z": "A", "ax": "A", "az": "A", "decoys": ["A\t"]}"#, "a decoy has '\\t' at place 2"),
        (r#"{"x": "A", "z": "A", "ax": "A", "az": "A", "decoys": "A"}"#, "invalid type: string"),
        (r#"{"x": "A", "z": "A", "ax": "A", "az": "A", "sx": "H"}"#, "x has marks and a candidate has none"),
        (r#"{"x": "A", "z": "A", "ax": "A", "az": "A", "sz": "H"}"#, "a candidate has marks and x has none"),
        (r#"{"x": "A", "z": "A", "ax": "A", "az": "A", "sx": "HH", "sz": "H"}"#, "2 marks for the 1 residues of x"),
        (r#"{"x": "A", "z": "A", "ax": "A", "az": "A", "sdecoys": ["H"]}"#, "1 sdecoys for 0 decoys"),
        (r#"{"x": "A", "x": "A"}"#, "duplicate field"),
        (r#"{"x": "A", "z": "A""#, "a record must stand on one line"),
        (r#"{"x": "A-C", "z": "AC", "ax": "A-C", "az": "A-C"}"#, "x has '-' at place 2"),
        (r#"{"x": "AC", "z": "A-C", "ax": "AC", "az": "AC"}"#, "z has '-' at place 2"),
        ("[1, 2]", "a list in brackets (a line is one record, {"),
        (r#" ["A", "A", "A", "A", [], null, null, null]"#, "a list in brackets"),
        ("nonsense", "not JSON"),
    ] {
        let said = parsed(format!("{good}\n\n{line}\n").as_bytes(), Required).unwrap_err();
        assert!(said.starts_with("data:3: ") && said.contains(what), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    for (line, what) in [
        (r#"{"x": "A"}"#, "nothing to align x with"),
        (r#"{"x": "A", "decoys": ["B"], "ax": "A", "az": "A"}"#, "ax and az without z"),
        (r#"{"x": "A", "z": "A", "ax": "A"}"#, "one of ax and az without the other"),
        (r#"{"x": "A", "decoys": ["B"], "sz": "A"}"#, "sz without z"),
    ] {
        let said = parsed(line.as_bytes(), Optional).unwrap_err();
        assert!(said.starts_with("data:1: ") && said.contains(what), "{line}: {said}");
    }
    assert!(parsed(b"\n\n", Optional).unwrap_err().contains("no sequences in the file"));
}

#[test]
fn alphabets_number_letters_and_tell_strangers() {
    let records =
        parsed(r#"{"x": "BAÄ", "z": "C", "ax": "BAÄ", "az": "C--", "sx": "uvu", "sz": "w"}"#.as_bytes(), Required)
            .unwrap();
    let learned = Alphabets::learn(&records.records, None).unwrap();
    assert_eq!(learned.letters.letters(), ['A', 'B', 'C', 'Ä']);
    let (query, strangers) = learned.query(&records.records[0]);
    assert_eq!(
        (query.x.letters, query.x.marks, query.candidates[0].letters.clone()),
        (vec![1, 0, 3], vec![0, 1, 0], vec![2])
    );
    assert_eq!((strangers.residues, strangers.unknown), (4, 0));
    let given = Alphabets::learn(&records.records, Some(Alphabet::new("AB".chars()).unwrap())).unwrap();
    let (query, strangers) = given.query(&records.records[0]);
    assert_eq!((query.x.letters, strangers.unknown), (vec![1, 0, NONE], 2));
    assert_eq!([Alphabet::PROTEIN.len(), Alphabet::DNA.len()], [20, 4]);
    assert!(Alphabet::new("ABA".chars()).unwrap_err().contains("twice"));
    assert!(Alphabet::new("A-".chars()).unwrap_err().contains("cannot be a letter"));
    assert!(Alphabet::new((0..300).filter_map(|k| char::from_u32(0x4e00 + k))).unwrap_err().contains("too many"));
}

/// Neither the number of threads nor the places where text is cut matter, nor does a way through text and back.
fn check_laws(text: &[u8]) {
    let whole = cut(text, 1, (1 << 20, 1 << 16));
    let is_text = !text.starts_with(&[0x1f, 0x8b]) && !text.starts_with(&[0x28, 0xb5]) && text.get(1) != Some(&0x2a);
    for (threads, pieces) in [(1, (1, 1)), (2, (7, 3)), (3, (64, 16))] {
        let other = cut(text, threads, pieces);
        assert!(whole == other || !is_text && whole.is_err() && other.is_err(), "{whole:?} {other:?}");
    }
    let Ok(records) = whole else { return };
    let all: Vec<_> =
        records.records.iter().cloned().enumerate().map(|(i, record)| (record, records.line(i))).collect();
    assert_eq!(streamed(text, 5, 2).unwrap(), all);
    let mut written = Vec::new();
    for record in &records.records {
        write(&mut written, record).unwrap();
    }
    assert_eq!(cut(&written, 1, (64, 64)).unwrap().records, records.records);
}

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/alignments");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(path).unwrap())).collect()
}

#[test]
fn the_corpus_of_the_fuzzer_obeys_the_laws() {
    let corpus = corpus();
    assert!(corpus.len() >= 7);
    for (name, bytes) in corpus {
        assert_eq!(parsed(&bytes, Optional).is_ok(), name.starts_with("good-"), "{name}");
        check_laws(&bytes);
    }
}

#[test]
fn real_pairs_are_read() {
    let Some(input) = data_set("align/tmalign.train.gz") else { return };
    let records = read(input, Required, &pool(2)).unwrap();
    assert_eq!(records.len(), 1000);
    assert!(records.records.iter().all(|record| record.candidates.len() == 11));
}

#[test]
fn generated_pairs_are_what_was_asked_for() {
    let text = |sizes: &AlignSizes, seed: u64| {
        let mut out = Vec::new();
        align(sizes, seed, &mut out, "memory").map(|()| out).map_err(|e| e.to_string())
    };
    let sizes = AlignSizes { examples: 40, length: 30, letters: 5, decoys: 3, operations: 20, ..AlignSizes::default() };
    let bytes = text(&sizes, 1).unwrap();
    // The same for ever.
    assert_eq!(crc32fast::hash(&bytes), GOLDEN);
    assert_ne!(bytes, text(&sizes, 2).unwrap());
    let records = parsed(&bytes, Required).unwrap();
    assert_eq!(records.len(), 40);
    for record in &records.records {
        assert_eq!((record.x.letters.len(), record.candidates.len()), (30, 4));
        assert!(record.candidates[1..].iter().all(|decoy| decoy.letters.len() == 30));
        let operations: u32 = record.alignment.as_ref().unwrap().runs.iter().map(|run| run.count).sum();
        assert!(operations >= 30);
    }
    for (sizes, name) in [
        (AlignSizes { examples: 0, ..sizes }, "examples"),
        (AlignSizes { length: 0, ..sizes }, "length"),
        (AlignSizes { letters: 1, ..sizes }, "letters"),
        (AlignSizes { operations: 31, ..sizes }, "operations"),
        (AlignSizes { matches: 0.9, ..sizes }, "matches"),
        (AlignSizes { deletions: f64::NAN, ..sizes }, "deletions"),
        (AlignSizes { preference: 1.5, ..sizes }, "preference"),
    ] {
        assert!(text(&sizes, 0).unwrap_err().contains(name), "{name}");
    }
    assert!(text(&AlignSizes { decoys: 0, ..sizes }, 0).is_ok());
}

const GOLDEN: u32 = 1_567_596_711;

proptest! {
    #[test]
    fn junk_obeys_the_laws(bytes in proptest::collection::vec(any::<u8>(), 0..100), text in "([\\[\\]{},:A-D\"-]|\"(x|z|ax|az|decoys)\":|\n){0,40}") {
        check_laws(&bytes);
        check_laws(text.as_bytes());
    }

    #[test]
    fn a_damaged_corpus_obeys_the_laws(file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let corpus = corpus();
        let mut bytes = corpus[file.index(corpus.len())].1.clone();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_laws(&bytes);
    }
}
