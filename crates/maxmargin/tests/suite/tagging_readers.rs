//! The readers of tagged sentences, from outside: every rule of the three formats, every error, hostile bytes, and the
//! promise that neither threads nor the places where the text is cut change anything.

use std::io::Read;
use std::path::{Path, PathBuf};

use maxmargin::data::dictionary::Dictionary;
use maxmargin::data::input::Input;
use maxmargin::data::tagging::{
    Batch, Features, Format, Line, Sequences, Stream, Template, Unseen, Vocabulary, read, read_in_pieces, read_with,
    read_with_in_pieces, write_features,
};
use maxmargin::parallel::Pool;
use proptest::prelude::*;

const BUILT_IN: Format = Format::Columns(Features::BuiltIn);

fn template(text: &str) -> Format {
    Format::Columns(Features::Template(Template::parse("template", text.as_bytes()).unwrap()))
}

fn formats() -> [Format; 4] {
    let text = "U00:%x[0,0]\nU01:%x[-1,0]/%x[2,0]\nU00:%x[0,0]\nB01:%x[0,0]\nB";
    [BUILT_IN, template(text), Format::SvmHmm, Format::CrfSuite]
}

fn input(text: &[u8]) -> Result<Input<'_>, String> {
    Input::new("data", text).map_err(|e| e.to_string())
}

fn train(text: &[u8], format: &Format) -> Result<(Sequences, Vocabulary), String> {
    read(input(text)?, format, 1, &Pool::new(1).unwrap()).map_err(|e| e.to_string())
}

fn with(text: &[u8], format: &Format, vocabulary: &Vocabulary) -> Result<Sequences, String> {
    read_with(input(text)?, format, vocabulary, &Pool::new(1).unwrap()).map_err(|e| e.to_string())
}

fn streamed(text: &[u8], format: &Format, vocabulary: &Vocabulary, cut: (usize, usize)) -> Result<Vec<Batch>, String> {
    let mut stream = Stream::in_pieces(input(text)?, format, vocabulary, cut);
    let pool = Pool::new(2).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = stream.next_batch(&pool).map_err(|e| e.to_string())? {
        batches.push(batch);
    }
    Ok(batches)
}

fn error(text: &[u8], format: &Format) -> String {
    train(text, format).expect_err("an error")
}

/// The features of a token, with values other than 1.
fn features(sequences: &Sequences, vocabulary: &Vocabulary, token: usize) -> Vec<String> {
    named(sequences.tokens.row(token).iter(), &vocabulary.features)
}

fn named(row: impl Iterator<Item = (u32, f32)>, names: &Dictionary) -> Vec<String> {
    row.map(|(id, value)| {
        let name = String::from_utf8_lossy(names.name(id)).into_owned();
        if value == 1.0 { name } else { format!("{name}*{value}") }
    })
    .collect()
}

fn tags<'v>(sequences: &Sequences, vocabulary: &'v Vocabulary) -> Vec<&'v str> {
    sequences.tags.iter().map(|&tag| vocabulary.tags.get(tag as usize).map_or("-", String::as_str)).collect()
}

fn lines(sequences: &Sequences) -> Vec<u64> {
    (0..sequences.tags.len()).map(|token| sequences.line(token)).collect()
}

#[test]
fn crfsuite_lines() {
    let text = "\u{feff}N\tw=a\tb:2.5\tb:-1\tzero:0\tw=a\r\nV\tx\\:y\tc\\\\:3\ta:b:4\t\tq\\r\r\n\r\n\nN\n";
    let (sequences, vocabulary) = train(text.as_bytes(), &Format::CrfSuite).unwrap();
    assert_eq!(vocabulary.tags, ["N", "V"]);
    assert_eq!(tags(&sequences, &vocabulary), ["N", "V", "N"]);
    assert_eq!(features(&sequences, &vocabulary, 0), ["w=a*2", "b*1.5"]);
    assert_eq!(features(&sequences, &vocabulary, 1), ["x:y", "c\\*3", "a:b*4", "q\\r"]);
    assert!(sequences.tokens.row(2).is_empty());
    assert_eq!((sequences.len(), sequences.sentence(0), sequences.sentence(1)), (2, 0..2, 2..3));
    assert_eq!(lines(&sequences), [1, 2, 5]);
    assert_eq!((vocabulary.columns, sequences.edges.is_none()), (None, true));
    assert_eq!(sequences.checksum, crc32fast(text.as_bytes()));
    assert_eq!(sequences.tokens.columns() as usize, vocabulary.features.len());
}

/// The checksum, bit by bit.
fn crc32fast(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |sum, &byte| {
        (0..8).fold(sum ^ u32::from(byte), |s, _| if s & 1 == 1 { s >> 1 ^ 0xedb8_8320 } else { s >> 1 })
    })
}

#[test]
fn values_that_cancel_are_not_stored() {
    let (sequences, vocabulary) = train(b"N\ta:1\ta:-1\tb\n", &Format::CrfSuite).unwrap();
    assert_eq!(features(&sequences, &vocabulary, 0), ["b"]);
    assert_eq!(with(b"N\ta:1\ta:-1\tb\n", &Format::CrfSuite, &vocabulary).unwrap(), sequences);
}

#[test]
fn crfsuite_errors() {
    for (line, what) in [
        (b"\ta".as_slice(), "tag missing at the start of the line (TAG<TAB>ATTRIBUTE<TAB>...)"),
        (b"N\tw=a:b", "attribute 'w=a:b': its value 'b' is not a decimal number (a ':' in a name is written '\\:')"),
        (b"N\tw=:", "attribute 'w=:': its value '' is not a decimal number (a ':' in a name is written '\\:')"),
        (b"N\ta:1x", "attribute 'a:1x': its value '1x' is not a decimal number (a ':' in a name is written '\\:')"),
        (b"N\ta:nan", "attribute 'a:nan': its value 'nan' is not a finite number"),
        (b"N\ta:-inf", "attribute 'a:-inf': its value '-inf' is not a finite number"),
        (b"N\ta:1e39", "attribute 'a:1e39': its value '1e39' is too large (the largest is 3.4e38)"),
        (b"N\t:1", "attribute ':1' has no name before ':' (a ':' in a name is written '\\:')"),
        (b"N\ta:3e38\ta:3e38", "the values of a feature that is given more than once sum to more than 3.4e38"),
        (b"N\x07\ta", "tag 'N\\u{7}' contains a control character (is this a text file?)"),
        (b"caf\xe9\ta", "tag 'caf\u{fffd}' is not valid UTF-8 (is this a text file?)"),
    ] {
        let text = [b"ok\ta:1\n\n", line, b"\nworse\tb:c\n"].concat();
        assert_eq!(error(&text, &Format::CrfSuite), format!("data:3: {what}"));
    }
}

#[test]
fn svmhmm_lines() {
    let text = "# made by hand\nN qid:1 1:0.5 4294967294:2 # huge\r\n\nV\tqid:01  7:0\n+1 qid:18446744073709551615#x\nN qid:2 3:1";
    let (sequences, vocabulary) = train(text.as_bytes(), &Format::SvmHmm).unwrap();
    assert_eq!(vocabulary.tags, ["+1", "N", "V"]);
    assert_eq!(tags(&sequences, &vocabulary), ["N", "V", "+1", "N"]);
    assert_eq!(sequences.ends(), [2, 3, 4]);
    assert_eq!(features(&sequences, &vocabulary, 0), ["1*0.5", "4294967294*2"]);
    assert!(sequences.tokens.row(1).is_empty() && sequences.tokens.row(2).is_empty());
    assert_eq!(features(&sequences, &vocabulary, 3), ["3"]);
    assert_eq!(vocabulary.features.len(), 3);
    assert_eq!(lines(&sequences), [2, 4, 5, 6]);
}

#[test]
fn svmhmm_errors() {
    for (line, what) in [
        ("N qid:1 1:1", "qid:1 comes back after another one (the tokens of a sentence stand together)"),
        ("N 1:1", "'1:1' where qid:N must stand (it says which sentence a token is of)"),
        ("N", "qid:N missing after the tag (it says which sentence a token is of)"),
        ("N qid:x", "'qid:x': N must be a whole number below 2^64"),
        ("N qid:18446744073709551616 1:1", "'qid:18446744073709551616': N must be a whole number below 2^64"),
        ("N qid:2 qid:3", "qid: appears twice"),
        ("N qid:2 cost:1 1:1", "cost: is for single examples, not for tokens"),
        ("qid:2 1:1", "label missing before 'qid:2' (labels cannot contain ':')"),
        ("N qid:2 3:1 2:1", "feature index 2 after 3 (indices must ascend)"),
        ("N qid:2 0:1", "feature index 0 (indices start at 1)"),
        ("N qid:2 1:nan", "value 'nan' of feature 1 is not a finite number"),
    ] {
        let text = format!("N qid:1 1:1\n\nN qid:2 1:1\n{line}\nworse\n");
        assert_eq!(error(text.as_bytes(), &Format::SvmHmm), format!("data:4: {what}"));
        let (input, pool) = (input(text.as_bytes()).unwrap(), Pool::new(3).unwrap());
        let pieces = read_in_pieces(input, &Format::SvmHmm, 1, &pool, (1, 1));
        assert_eq!(pieces.unwrap_err().to_string(), format!("data:4: {what}"));
    }
}

#[test]
fn built_in_features() {
    let text = "Al NNP\n- HYPH\nZaman NNP\n: :\n";
    let (sequences, vocabulary) = train(text.as_bytes(), &BUILT_IN).unwrap();
    assert_eq!(vocabulary.tags, [":", "HYPH", "NNP"]);
    assert_eq!(vocabulary.columns, Some(1));
    let sorted = |token| {
        let mut names = features(&sequences, &vocabulary, token);
        names.sort();
        names.join("\t")
    };
    let expected = "bias\tcapital\tl=zaman\tp1=z\tp2=za\tp3=zam\tp4=zama\ts1=n\ts2=an\ts3=man\ts4=aman\tsh+1=:\tsh-1=-\tsh=Xx\t\
                    w+1=:\tw+2=_B+1\tw-1,0=- zaman\tw-1=-\tw-2=al\tw0,+1=zaman :\tw=Zaman";
    assert_eq!(sorted(2), expected);
    let expected = "bias\tcapital\tfirst\tl=al\tp1=a\tp2=al\ts1=l\ts2=al\tsh+1=-\tsh=Xx\t\
                    w+1=-\tw+2=zaman\tw-1,0=_B-1 al\tw-1=_B-1\tw-2=_B-2\tw0,+1=al -\tw=Al";
    assert_eq!(sorted(0), expected);
    // A sentence of one token, with a second column.
    let (sequences, vocabulary) = train(b"X-1 \t POS\tT\r\n", &BUILT_IN).unwrap();
    let mut names = features(&sequences, &vocabulary, 0);
    names.sort();
    let expected = "bias|c1+1=_B+1|c1+2=_B+2|c1-1,0=_B-1 POS|c1-1=_B-1|c1-2=_B-2|c10,+1=POS _B+1|c1=POS|capital|capitals|digit|\
                    first|hyphen|l=x-1|last|p1=x|p2=x-|p3=x-1|s1=1|s2=-1|s3=x-1|sh=X-d|\
                    w+1=_B+1|w+2=_B+2|w-1,0=_B-1 x-1|w-1=_B-1|w-2=_B-2|w0,+1=x-1 _B+1|w=X-1";
    assert_eq!(names.join("|"), expected);
    assert_eq!(vocabulary.columns, Some(2));
}

#[test]
fn templates_expand_as_in_crf_plus_plus() {
    let format = template(
        "# comment\n\nU00:%x[-2,0]\nU01:%x[-1,0]/%x[0,1]\nU02:%x[3,0]\nU03\nU:[%x[+1,1]]\nB\nB02:%x[0,0]%x[-1,1]\n",
    );
    let (sequences, vocabulary) = train(b"the DT B\ndog NN I\n\nbarks VB O\n", &format).unwrap();
    assert_eq!(features(&sequences, &vocabulary, 0), ["U00:_B-2", "U01:_B-1/DT", "U02:_B+2", "U03", "U:[NN]"]);
    assert_eq!(features(&sequences, &vocabulary, 1), ["U03", "U00:_B-1", "U01:the/NN", "U02:_B+3", "U:[_B+1]"]);
    // U02 of the last token: three places on, one of them inside.
    assert_eq!(features(&sequences, &vocabulary, 2), ["U00:_B-2", "U03", "U02:_B+3", "U:[_B+1]", "U01:_B-1/VB"]);
    let edges = sequences.edges.as_ref().unwrap();
    let edge = |token| named(edges.row(token).iter(), &vocabulary.edges);
    // The first tokens of sentences have no transition before them.
    assert_eq!([edge(0), edge(1), edge(2)], [vec![], vec!["B02:dogDT".to_owned()], vec![]]);
    let (sequences, vocabulary) = train(b"a X\nb Y\n", &template("U%x[0,0]\nB\nBy")).unwrap();
    assert!(sequences.edges.is_none() && vocabulary.edges.is_empty());
    let message = error(b"the DT\n", &template("U00:%x[0,0]\n\nU01:%x[0,1]"));
    assert_eq!(message, "template:3: %x[0,1]: there is no column 1; data has 1 column before the tag, column 0");
    // The same feature twice counts twice.
    let (sequences, vocabulary) = train(b"a X\na Y\n", &template("U%x[0,0]\nU%x[0,0]\nB%x[0,0]\nB%x[0,0]")).unwrap();
    assert_eq!(features(&sequences, &vocabulary, 1), ["Ua*2"]);
    assert_eq!(named(sequences.edges.unwrap().row(1).iter(), &vocabulary.edges), ["Ba*2"]);
}

#[test]
fn columns_are_counted() {
    let text = "\n \t\r\n\na \t b\t\tT\r\nc d U\n\t\n\n\ne f T";
    let (sequences, vocabulary) = train(text.as_bytes(), &BUILT_IN).unwrap();
    assert_eq!((vocabulary.columns, sequences.ends()), (Some(2), [2, 3].as_slice()));
    assert_eq!(lines(&sequences), [4, 5, 9]);
    assert_eq!(tags(&sequences, &vocabulary), ["T", "U", "T"]);
    let more = "(all tokens need the same number; an empty line ends a sentence)";
    assert_eq!(error(b"\na b T\na  T\n", &BUILT_IN), format!("data:3: 2 columns, but line 2 has 3 {more}"));
    assert_eq!(error(b"a T\n\nb c c c T\n", &BUILT_IN), format!("data:3: 5 columns, but line 1 has 2 {more}"));
    assert_eq!(error(b"a T\n\nb c T\n", &BUILT_IN), format!("data:3: 3 columns, but line 1 has 2 {more}"));
    assert_eq!(error(b"a T\nb\n", &BUILT_IN), format!("data:2: 1 column, but line 1 has 2 {more}"));
    let least = "data:2: 1 column, but at least 2 are needed: the word first, its tag last";
    assert_eq!(error(b"\na\nb c\n", &BUILT_IN), least);
    assert_eq!(error(b"a \xff\n", &BUILT_IN), "data:1: tag '\u{fffd}' is not valid UTF-8 (is this a text file?)");
    // Words may be any bytes.
    let (sequences, vocabulary) = train(b"caf\xe9 N\n\0 V\n", &BUILT_IN).unwrap();
    assert_eq!(sequences.tags, [0, 1]);
    assert!(vocabulary.features.get(b"w=caf\xe9").is_some() && vocabulary.features.get(b"s1=\xe9").is_some());
}

#[test]
fn other_files_need_the_columns_of_the_model() {
    let (_, vocabulary) = train(b"a b T\n", &BUILT_IN).unwrap();
    let message = |text: &[u8]| with(text, &BUILT_IN, &vocabulary).unwrap_err();
    assert_eq!(message(b"a b\n"), "data:1: tag missing: 2 columns, but the model needs 3 with the tag");
    assert_eq!(message(b"\na\n"), "data:2: 1 column, but the model needs 3 with the tag");
    assert_eq!(message(b"a b c T\n"), "data:1: 4 columns, but the model needs 3 with the tag");
    let message = |text: &[u8]| streamed(text, &BUILT_IN, &vocabulary, (100, 9)).unwrap_err();
    assert_eq!(message(b"a\n"), "data:1: 1 column, but the model needs 2, or 3 with the tag");
    let more = "(all tokens need the same number; an empty line ends a sentence)";
    assert_eq!(message(b"a b\n\na b T\n"), format!("data:3: 3 columns, but line 1 has 2 {more}"));
    assert_eq!(message(b"a b T\n\na b\n"), format!("data:3: 2 columns, but line 1 has 3 {more}"));
}

#[test]
fn a_file_without_tokens_is_an_error() {
    let (_, columns) = train(b"a T\n", &BUILT_IN).unwrap();
    for format in &formats() {
        for (text, line) in [("", 1), ("\u{feff}", 1), ("\n\n", 2), (" \r\n\n \n", 3)] {
            let expected = format!("data:{line}: the file has no tokens");
            assert_eq!(error(text.as_bytes(), format), expected);
            assert_eq!(with(text.as_bytes(), format, &columns).unwrap_err(), expected);
            assert_eq!(streamed(text.as_bytes(), format, &columns, (1, 1)).unwrap_err(), expected);
        }
    }
    assert_eq!(error(b"# only\n# comments", &Format::SvmHmm), "data:2: the file has no tokens");
    let message = write_features(input(b"\n").unwrap(), &Features::BuiltIn, &mut Vec::new(), "out").unwrap_err();
    assert_eq!(message.to_string(), "data:1: the file has no tokens");
}

#[test]
fn tags_are_in_order() {
    let names = |text: &str| {
        let (sequences, vocabulary) = train(text.as_bytes(), &Format::CrfSuite).unwrap();
        assert_eq!(with(text.as_bytes(), &Format::CrfSuite, &vocabulary).unwrap(), sequences);
        let names: Vec<String> = tags(&sequences, &vocabulary).iter().map(ToString::to_string).collect();
        (vocabulary.tags, names)
    };
    assert_eq!(names("b\na\nB\n10\n9\nb"), owned(&["10", "9", "B", "a", "b"], &["b", "a", "B", "10", "9", "b"]));
    assert_eq!(names("10\n9\n1e1\n+9.0\n-0\n0"), owned(&["-0", "9", "10"], &["10", "9", "10", "9", "-0", "-0"]));
    assert_eq!(names("not-b\nb"), owned(&["b", "not-b"], &["not-b", "b"]));
}

fn owned(tags: &[&str], of_tokens: &[&str]) -> (Vec<String>, Vec<String>) {
    let owned = |words: &[&str]| words.iter().map(ToString::to_string).collect();
    (owned(tags), owned(of_tokens))
}

#[test]
fn rare_features_are_dropped_by_the_number_of_their_tokens() {
    // `twice` has two entries but one token.
    let text = b"N\trare\tcommon\ttwice\ttwice\nV\tcommon:0.5\tsecond\n\nN\tsecond\tthird\n";
    let pool = Pool::new(2).unwrap();
    let kept = |min_count| {
        let (sequences, vocabulary) = read(input(text).unwrap(), &Format::CrfSuite, min_count, &pool).unwrap();
        let names: Vec<_> = vocabulary.features.iter().map(|n| String::from_utf8_lossy(n).into_owned()).collect();
        let rows: Vec<_> = (0..3).map(|token| features(&sequences, &vocabulary, token).join(" ")).collect();
        assert_eq!(sequences.tokens.columns() as usize, names.len());
        assert_eq!(sequences.unseen, Unseen::default());
        (names.join(" "), rows)
    };
    assert_eq!(kept(0), kept(1));
    assert_eq!(kept(1).0, "rare common twice second third");
    assert_eq!(
        kept(2),
        ("common second".to_owned(), ["common", "common*0.5 second", "second"].map(str::to_owned).to_vec())
    );
    assert_eq!(kept(3), (String::new(), vec![String::new(); 3]));
    let edges = template("U\nB%x[0,0]");
    let (sequences, vocabulary) = read(input(b"x A\na A\nb A\na B\n").unwrap(), &edges, 2, &pool).unwrap();
    assert_eq!(vocabulary.edges.iter().collect::<Vec<_>>(), [b"Ba"]);
    assert_eq!(sequences.edges.unwrap().nonzeros(), 2);
}

#[test]
fn what_the_vocabulary_lacks_is_left_out_and_counted() {
    let (_, vocabulary) = train(b"N\ta\tb\nV\tb\n", &Format::CrfSuite).unwrap();
    let text = b"N\ta\tc\td\nX\tb\n\n?\tc\tb\ta\tb\n";
    let sequences = with(text, &Format::CrfSuite, &vocabulary).unwrap();
    assert_eq!(sequences.tags, [0, Sequences::UNSEEN, Sequences::UNSEEN]);
    assert_eq!(sequences.unseen, Unseen { features: 2, tags: 1 });
    assert_eq!(features(&sequences, &vocabulary, 2), ["a", "b*2"]);
    assert_eq!(sequences.tokens.columns(), 2);
    // `?` is a tag like others where the training file has it.
    let (_, vocabulary) = train(b"N\ta\n?\tb\n", &Format::CrfSuite).unwrap();
    assert_eq!(with(text, &Format::CrfSuite, &vocabulary).unwrap().tags, [1, Sequences::UNSEEN, 0]);
}

#[test]
fn a_stream_gives_lines_back() {
    let (_, vocabulary) = train(b"a p T\nb q U\n", &BUILT_IN).unwrap();
    for text in ["\n\n\na p\nb q\n \t\n\nb  q\r\n\n\n\n", "a p T\n\na x ?\na p nonsense\n", "a p", "\na p\n\n"] {
        let expected: Vec<&str> = text.split_terminator('\n').map(|l| l.strip_suffix('\r').unwrap_or(l)).collect();
        let tokens = expected.iter().filter(|l| !l.trim().is_empty()).count();
        for block in 1..text.len() + 2 {
            for most in [0, 1, 2, 100] {
                let batches = streamed(text.as_bytes(), &BUILT_IN, &vocabulary, (block, most)).unwrap();
                let lines: Vec<Line<'_>> = batches.iter().flat_map(Batch::lines).collect();
                let texts =
                    lines.iter().map(|(Line::Token(text) | Line::Empty(text))| std::str::from_utf8(text).unwrap());
                assert!(texts.eq(expected.iter().copied()), "{lines:?}");
                for batch in &batches {
                    let count = batch.lines().filter(|line| matches!(line, Line::Token(_))).count();
                    assert_eq!(count, batch.sequences.tags.len());
                    let first = batch.sequences.tags.len().min(1);
                    assert!(first == 1 || std::ptr::eq(batch, batches.last().unwrap()), "an empty batch is the last");
                }
                assert_eq!(batches.iter().map(|b| b.sequences.tags.len()).sum::<usize>(), tokens);
            }
        }
    }
    let batches = streamed(b"a p T\n\na x ?\na p no\n\n", &BUILT_IN, &vocabulary, (100, 100)).unwrap();
    let [batch] = batches.as_slice() else { panic!("one batch") };
    assert_eq!(batch.sequences.tags, [0, Sequences::UNSEEN, Sequences::UNSEEN]);
    assert_eq!(batch.sequences.unseen.tags, 1);
}

/// Gives out one piece a read, and notes how many.
struct Slow<'t> {
    pieces: std::vec::IntoIter<&'t [u8]>,
    given: std::sync::Arc<std::sync::atomic::AtomicUsize>,
}

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Some(piece) = self.pieces.next() else { return Ok(0) };
        self.given.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        buffer[..piece.len()].copy_from_slice(piece);
        Ok(piece.len())
    }
}

#[test]
fn sentences_are_given_out_as_soon_as_they_are_complete() {
    // The first bytes are looked at one by one, to see whether they are packed.
    let pieces: Vec<&[u8]> = vec![b"\n", b"a T\n", b"b T\n", b"\n", b"c T\n", b"\n"];
    let (_, vocabulary) = train(b"a T\n", &BUILT_IN).unwrap();
    let pool = Pool::new(1).unwrap();
    let given = std::sync::Arc::default();
    let slow = Slow { pieces: pieces.into_iter(), given: std::sync::Arc::clone(&given) };
    let mut stream = Stream::new(Input::new("pipe", slow).unwrap(), &BUILT_IN, &vocabulary);
    for (tokens, reads) in [(2, 4), (1, 6)] {
        assert_eq!(stream.next_batch(&pool).unwrap().unwrap().sequences.tags.len(), tokens);
        assert_eq!(given.load(std::sync::atomic::Ordering::Relaxed), reads);
    }
    assert!(stream.next_batch(&pool).unwrap().is_none());
    let (_, vocabulary) = train(b"N qid:1 1:1\n", &Format::SvmHmm).unwrap();
    let pieces: Vec<&[u8]> = vec![b"\n", b"qid:1 1:1\n", b"qid:1 2:1\n", b"N qid:2\n", b"? qid:1 1:1\n"];
    let slow = Slow { pieces: pieces.into_iter(), given: std::sync::Arc::default() };
    let mut stream = Stream::new(Input::new("pipe", slow).unwrap(), &Format::SvmHmm, &vocabulary);
    assert_eq!(stream.next_batch(&pool).unwrap().unwrap().sequences.tags, [Sequences::UNSEEN; 2]);
    assert_eq!(stream.next_batch(&pool).unwrap().unwrap().sequences.tags, [0]);
    let message = stream.next_batch(&pool).unwrap_err().to_string();
    assert_eq!(message, "pipe:5: qid:1 comes back after another one (the tokens of a sentence stand together)");
}

#[test]
fn prediction_needs_no_tags() {
    let (_, vocabulary) = train(b"N\ta\n", &Format::CrfSuite).unwrap();
    let batches = streamed(b"\ta\tb\n\t\n\nN\ta\n\n", &Format::CrfSuite, &vocabulary, (100, 100)).unwrap();
    let [batch] = batches.as_slice() else { panic!("one batch") };
    assert_eq!(batch.sequences.tags, [Sequences::UNSEEN, Sequences::UNSEEN, 0]);
    assert_eq!((batch.sequences.ends(), batch.sequences.unseen.tags), ([2, 3].as_slice(), 0));
    assert_eq!((batch.sequences.unseen.features, batch.lines().count()), (1, 0));
}

#[test]
fn a_very_long_sentence() {
    use std::fmt::Write;
    let mut text = String::from("start S\n\n");
    for i in 0..100_000 {
        writeln!(text, "word{} {}", i % 1000, i % 7).unwrap();
    }
    text.push_str("\nend E\n");
    let pools = [1, 3].map(|threads| Pool::new(threads).unwrap());
    let (whole, vocabulary) = read(input(text.as_bytes()).unwrap(), &BUILT_IN, 1, &pools[0]).unwrap();
    assert_eq!(whole.ends(), [1, 100_001, 100_002]);
    assert_eq!(whole.line(100_001), 100_004);
    let cut = read_in_pieces(input(text.as_bytes()).unwrap(), &BUILT_IN, 1, &pools[1], (1000, 100)).unwrap();
    assert_eq!(cut, (whole, vocabulary));
    let batches = streamed(text.as_bytes(), &BUILT_IN, &cut.1, (5000, 10)).unwrap();
    assert_eq!(batches.iter().map(|b| b.sequences.tags.len()).collect::<Vec<_>>(), [1, 100_000, 1]);
}

#[test]
fn many_blocks_on_many_threads() {
    let line = |i: usize| match i % 17 {
        16 => "\n".to_owned(),
        _ => format!("w{} T{}\n", i * 7919 % 5003, i % 13),
    };
    let text: String = (0..120_000).map(line).collect();
    let pools = [1, 4].map(|threads| Pool::new(threads).unwrap());
    let whole = read(input(text.as_bytes()).unwrap(), &BUILT_IN, 2, &pools[0]).unwrap();
    assert_eq!(read(input(text.as_bytes()).unwrap(), &BUILT_IN, 2, &pools[1]).unwrap(), whole);
    assert_eq!(
        read_in_pieces(input(text.as_bytes()).unwrap(), &BUILT_IN, 2, &pools[1], (50_000, 1000)).unwrap(),
        whole
    );
    let bad = format!("{text}oops\n{text}worse x x x");
    for pieces in [(50_000, 1000), (1 << 20, 64 << 10)] {
        let message = read_in_pieces(input(bad.as_bytes()).unwrap(), &BUILT_IN, 2, &pools[1], pieces).unwrap_err();
        assert!(message.to_string().starts_with("data:120001: 1 column, but line 1 has 2"), "{message}");
    }
}

#[test]
fn features_are_written_for_crfsuite() {
    let mut out = Vec::new();
    let format = Features::Template(Template::parse("t", b"U:%x[0,0]\nU1:%x[1,0]\nB:%x[0,0]").unwrap());
    write_features(input(b"a:b \\X\n\n\nc :\nd T").unwrap(), &format, &mut out, "out").unwrap();
    let expected = "\\\\X\tU\\:a\\:b\tU1\\:_B+1\n\n\\:\tU\\:c\tU1\\:d\nT\tU\\:d\tU1\\:_B+1\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    assert!(write_features(input(b"a T\nb\n").unwrap(), &format, &mut Vec::new(), "out").is_err());
}

#[test]
fn formats_are_saved_with_models() {
    for format in formats() {
        let saved = serde_json::to_string(&format).unwrap();
        assert_eq!(serde_json::from_str::<Format>(&saved).unwrap(), format, "{saved}");
    }
}

fn corpus_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/tagging")
}

fn corpus() -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(corpus_folder()).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Everything about the tokens of some sequences, one after the other.
type Tokens = Vec<(Vec<(u32, f32)>, Option<Vec<(u32, f32)>>, u32, u64)>;

fn tokens<'s>(all: impl IntoIterator<Item = &'s Sequences>) -> (Tokens, Vec<usize>) {
    let (mut tokens, mut lengths) = (Tokens::new(), Vec::new());
    for sequences in all {
        lengths.extend((0..sequences.len()).map(|s| sequences.sentence(s).len()));
        tokens.extend((0..sequences.tags.len()).map(|t| {
            let edges = sequences.edges.as_ref().map(|edges| edges.row(t).iter().collect());
            (sequences.tokens.row(t).iter().collect(), edges, sequences.tags[t], sequences.line(t))
        }));
    }
    (tokens, lengths)
}

/// What must hold for any bytes at all.
fn check_laws(bytes: &[u8], pool: &Pool) {
    let _ = Template::parse("template", bytes);
    for format in &formats() {
        let whole = train(bytes, format);
        if let Err(message) = &whole {
            assert!(message.len() < 400 && !message.chars().any(char::is_control), "{message}");
        }
        for pieces in [(5, 1), (64, 16)] {
            let cut = input(bytes)
                .and_then(|input| read_in_pieces(input, format, 1, pool, pieces).map_err(|e| e.to_string()));
            // Where packed data are damaged, a bad line and the damage race for the first word; both are errors.
            let is_damaged = |r: &Result<_, String>| r.as_ref().is_err_and(|e| e.contains("damaged"));
            let is_race = is_damaged(&whole) && cut.is_err() || whole.is_err() && is_damaged(&cut);
            assert!(whole == cut || is_race, "{whole:?}\n{cut:?}");
        }
        let Ok((sequences, vocabulary)) = whole else { continue };
        for names in [&vocabulary.features, &vocabulary.edges] {
            assert_eq!(Dictionary::from_bytes(&names.to_bytes(), names.len()).unwrap(), *names);
        }
        assert_eq!(with(bytes, format, &vocabulary).as_ref(), Ok(&sequences));
        let cut = read_with_in_pieces(input(bytes).unwrap(), format, &vocabulary, pool, (7, 3)).unwrap();
        assert_eq!(cut, sequences);
        for (block, most) in [(1, 1), (9, 2), (1000, 1000)] {
            let batches = streamed(bytes, format, &vocabulary, (block, most)).unwrap();
            assert_eq!(tokens(batches.iter().map(|b| &b.sequences)), tokens([&sequences]));
        }
        let Format::Columns(features) = format else { continue };
        let mut text = Vec::new();
        write_features(input(bytes).unwrap(), features, &mut text, "out").unwrap();
        // A tag may start with what stands for a byte-order mark or for packed data at the start of a file.
        text.insert(0, b'\n');
        let (again, names) = train(&text, &Format::CrfSuite).unwrap();
        assert_eq!((&again.tokens, &again.tags), (&sequences.tokens, &sequences.tags));
        assert_eq!((&names.features, &names.tags), (&vocabulary.features, &vocabulary.tags));
        assert_eq!(again.ends(), sequences.ends());
    }
}

#[test]
fn the_corpus_of_the_fuzzer_obeys_the_laws() {
    let pool = Pool::new(2).unwrap();
    let paths = corpus();
    for path in &paths {
        check_laws(&std::fs::read(path).unwrap(), &pool);
    }
    assert!(paths.len() >= 20, "only {} files", paths.len());
}

proptest! {
    #[test]
    fn junk_obeys_the_laws(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_laws(&bytes, &Pool::new(1).unwrap());
    }

    #[test]
    fn junk_that_looks_like_columns_obeys_the_laws(text in "([aAé1-][a:\\\\]{0,2} [NV1]\r?\n|[\t ]?\n|b ){0,30}") {
        check_laws(text.as_bytes(), &Pool::new(2).unwrap());
    }

    #[test]
    fn good_columns_obey_the_laws(words in proptest::collection::vec(("[aAé0-]{1,3}", "[NV]|1|1.0", 0_usize..4), 1..30)) {
        let lines: Vec<_> = words.iter().map(|(w, t, n)| format!("{w}\t{t}\n{}", ["", "", "\n", " \r\n\n"][*n])).collect();
        check_laws(lines.concat().as_bytes(), &Pool::new(2).unwrap());
    }

    #[test]
    fn junk_that_looks_like_crfsuite_obeys_the_laws(text in "([NV?]|\t[ab](:[-0-9]{1,2}|\\\\:|\\\\)?|\r?\n){0,60}") {
        check_laws(text.as_bytes(), &Pool::new(2).unwrap());
    }

    #[test]
    fn junk_that_looks_like_svmhmm_obeys_the_laws(text in "(([NV] )?qid:[1-3]( 1:[0-9])?( 2:-?[0-9])?\r?\n|[ #]?\n){0,20}") {
        check_laws(text.as_bytes(), &Pool::new(2).unwrap());
    }

    #[test]
    fn a_damaged_corpus_obeys_the_laws(file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = std::fs::read(file.get(&corpus())).unwrap();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_laws(&bytes, &Pool::new(1).unwrap());
    }
}
