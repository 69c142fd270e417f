//! Trees in brackets: what is read, what is left out, and what is wrong with a text, by line.

use crate::common::brackets;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use maxmargin::data::dictionary::Dictionary;
use maxmargin::data::input::Input;
use maxmargin::data::trees::{
    Binarise, Reading, Shape, Stream, Strip, Terminals, Tree, Treebank, grammar, read, read_in_pieces, write,
};
use proptest::prelude::*;

fn bank(text: &[u8], strip: Strip) -> Result<Treebank, String> {
    read(Input::new("trees", text).map_err(|e| e.to_string())?, strip).map_err(|e| e.to_string())
}

fn written(tree: &Tree, labels: &Dictionary, words: &Dictionary) -> Vec<u8> {
    let mut text = Vec::new();
    write(tree, labels, words, &mut text).unwrap();
    text
}

fn lines(bank: &Treebank) -> Vec<String> {
    let line = |tree: &Tree| String::from_utf8(written(tree, &bank.labels, &bank.words)).unwrap();
    bank.trees.iter().map(line).collect()
}

/// The lines of the trees of a stream, and where they begin.
fn streamed(
    text: &[u8],
    strip: Strip,
    has_words: bool,
    (block, most): (usize, usize),
) -> Result<Vec<(Vec<u8>, u64)>, String> {
    let input = Input::new("trees", text).map_err(|e| e.to_string())?;
    let mut stream = Stream::in_pieces(input, strip, has_words, block);
    let mut all = Vec::new();
    while let Some(batch) = stream.next_batch(most).map_err(|e| e.to_string())? {
        assert!((1..=most).contains(&batch.len()));
        all.extend(batch.iter().map(|tree| (written(tree, &stream.labels, &stream.words), tree.line)));
    }
    assert_eq!(stream.next_batch(most).unwrap(), None);
    Ok(all)
}

fn sentences(text: &str, has_words: bool) -> Vec<String> {
    let all = streamed(text.as_bytes(), Strip::ALL, has_words, (7, 2)).unwrap();
    all.into_iter().map(|(line, _)| String::from_utf8(line).unwrap()).collect()
}

#[test]
fn trees_come_back_as_they_were() {
    let text = include_str!("../../../../testdata/treebank/english.mrg");
    let bank = bank(text.as_bytes(), Strip::default()).unwrap();
    assert_eq!(lines(&bank), text.lines().collect::<Vec<_>>());
    assert!((1..).zip(&bank.trees).all(|(line, tree)| tree.line == line));
}

#[test]
fn nodes_know_their_place() {
    let bank = bank(b"(S (NP (DT the) (NN cat)) (VP (VBZ sleeps)))", Strip::default()).unwrap();
    let tree = &bank.trees[0];
    let label = |node: usize| String::from_utf8_lossy(bank.labels.name(tree.nodes()[node].label)).into_owned();
    let shown: Vec<_> = (0..tree.nodes().len())
        .map(|node| {
            (label(node), tree.nodes()[node].span(), tree.is_tag(node), tree.children(node).map(label).collect())
        })
        .collect();
    let expected = [
        ("S", 0..3, false, vec!["NP", "VP"]),
        ("NP", 0..2, false, vec!["DT", "NN"]),
        ("DT", 0..1, true, vec![]),
        ("NN", 1..2, true, vec![]),
        ("VP", 2..3, false, vec!["VBZ"]),
        ("VBZ", 2..3, true, vec![]),
    ];
    let owned = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(shown, expected.map(|(label, span, is_tag, below)| (label.to_owned(), span, is_tag, owned(below))));
    assert_eq!(tree.tags().map(|tag| bank.labels.name(tag)).collect::<Vec<_>>(), [&b"DT"[..], b"NN", b"VBZ"]);
}

#[test]
fn any_layout_will_do() {
    let text = "\u{feff}( (S\r\n  (NP (NN caf\u{e9}))\r\n\t(VP(VBZ is)\n(ADJP (-LRB- -LRB-)) )))(X\n(Y y))\n\n()( )";
    let bank = bank(text.as_bytes(), Strip::default()).unwrap();
    assert_eq!(lines(&bank), ["(S (NP (NN caf\u{e9})) (VP (VBZ is) (ADJP (-LRB- -LRB-))))", "(X (Y y))"]);
    assert_eq!((bank.empty, bank.trees[0].line, bank.trees[1].line), (2, 1, 4));
}

#[test]
fn lines_between_trees_may_be_comments() {
    let text = "# first (\n(S\n(A\n#)\n(# #)\n)\n# second)\r\n#\n(B b)\n#";
    let bank = bank(text.as_bytes(), Strip::default()).unwrap();
    // Within a tree a hash is a word.
    assert_eq!(lines(&bank), ["(S (A #) (# #))", "(B b)"]);
    assert_eq!((bank.trees[0].line, bank.trees[1].line), (2, 9));
    let stream = streamed(text.as_bytes(), Strip::default(), false, (1, 1)).unwrap();
    assert_eq!(stream, [(b"(S (A #) (# #))".to_vec(), 2), (b"(B b)".to_vec(), 9)]);
    let message = self::bank(b"(B b) # third", Strip::default()).unwrap_err();
    assert_eq!(message, "trees:1: '#' outside of brackets");
}

#[test]
fn sentences_may_be_plain() {
    let text = "\u{feff}\n# a comment\n  the/DT 1/2/CD cat/NN \r\n\nNN\t./. /a b/\n#\n-/-/-/ (/-LRB- a(b)/X)";
    assert_eq!(
        sentences(text, false),
        [
            "( (# #) (a a) (comment comment))",
            "( (DT the) (CD 1/2) (NN cat))",
            "( (NN NN) (. .) (/a /a) (b/ b/))",
            "( (# #))",
            "( (-/ -/-) (-LRB- -LRB-) (X-RRB- a-LRB-b-RRB-))",
        ]
    );
    assert_eq!(sentences("the and/or (a)\n", true), ["( ( the) ( and/or) ( -LRB-a-RRB-))"]);
    // The first character decides, and where terminals are words trees are trees too.
    assert_eq!(sentences("# a\n \t\n (S (A a))\n", true), ["(S (A a))"]);
    let lines: Vec<u64> =
        streamed(text.as_bytes(), Strip::ALL, false, (3, 1)).unwrap().iter().map(|tree| tree.1).collect();
    assert_eq!(lines, [2, 3, 5, 6, 7]);
    let message = |text: &[u8]| streamed(text, Strip::ALL, false, (9, 9)).unwrap_err();
    assert!(message(b"a/b\nc/\xff").starts_with("trees:2: label "));
    assert_eq!(message(b"# a\n\n"), "trees:2: the file has no trees with words");
    assert_eq!(streamed(b"caf\xe9 \0\xff\n", Strip::ALL, true, (9, 9)).unwrap()[0].0, b"( ( caf\xe9) ( \0\xff))");
}

#[test]
fn a_sentence_without_tags_gets_those_of_the_grammar() {
    let found = bank(b"(S (A a) (B b))", Strip::ALL).unwrap();
    let found = grammar(&found, Shape { terminals: Terminals::Words { rare_below: 0 }, ..Shape::default() }).unwrap();
    let reading = Reading::new(&found.grammar, found.lexicon.as_ref());
    let mut stream = Stream::new(Input::new("plain", &b"a (\n"[..]).unwrap(), Strip::ALL, true);
    let sentence = &stream.next_batch(1).unwrap().unwrap()[0];
    let (s, a, unknown) = (0, 1, u32::MAX);
    let tree = reading.tree(&[(s, 0..2), (a, 0..1), (unknown, 1..2)], sentence, &mut stream.labels).unwrap();
    // The tag of nobody is a tag nevertheless, so that the tree can be read again.
    assert_eq!(written(&tree, &stream.labels, &stream.words), b"(S (A a) (XX -LRB-))");
}

#[test]
fn sentences_are_given_out_as_they_come() {
    // Reads that end within a line, as pipes do.
    let (start, end) = (&b"(A a)\n(B b)\n(C"[..], &b" c)\n(D d) (E e)"[..]);
    let mut stream = Stream::new(Input::new("pipe", start.chain(end)).unwrap(), Strip::ALL, false);
    let sizes: Vec<usize> = std::iter::from_fn(|| stream.next_batch(10).unwrap()).map(|batch| batch.len()).collect();
    assert_eq!(sizes.iter().sum::<usize>(), 5);
    assert!(sizes.len() > 1, "{sizes:?}");
}

#[test]
fn packed_text_reads_as_plain_text() {
    let text = "(S (A a)\n (B b))\n".repeat(1000);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(text.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    assert_eq!(bank(&packed, Strip::ALL).unwrap(), bank(text.as_bytes(), Strip::ALL).unwrap());
    assert!(bank(&packed[..packed.len() / 2], Strip::ALL).unwrap_err().starts_with("trees: truncated or damaged gzip"));
}

#[test]
fn a_word_may_have_blanks() {
    let bank = bank(b"(S (NN Xpd TTD)\n(NN a\tb\nc) (NN x ))", Strip::ALL).unwrap();
    assert_eq!(lines(&bank), ["(S (NN Xpd TTD) (NN a b c) (NN x))"]);
    assert_eq!(bank.trees[0].words().len(), 3);
}

#[test]
fn a_bracket_without_a_label_may_hold_several_trees() {
    let bank = bank(b"( (S (A a)) (. .) )\n(A a)\n", Strip::ALL).unwrap();
    assert_eq!(lines(&bank), ["( (S (A a)) (. .))", "(A a)"]);
}

#[test]
fn empty_elements_and_functions_are_stripped() {
    let text =
        b"(S (NP-SBJ-1 (-NONE- *)) (VP=2 (VB go) (S-PRP (NP (-NONE- *PRO*)) (VP (-NONE- x)))) (-LRB- -LRB-) (A-B c))\n\
        (NP (-NONE- *))\n(NP-SBJ (NN-X x))";
    let strip = |empty, functions| bank(text, Strip { empty, functions }).unwrap();
    assert_eq!(lines(&strip(true, true)), ["(S (VP (VB go)) (-LRB- -LRB-) (A-B c))", "(NP (NN-X x))"]);
    assert_eq!(strip(true, true).empty, 1);
    assert_eq!(lines(&strip(true, false))[0], "(S (VP=2 (VB go)) (-LRB- -LRB-) (A-B c))");
    assert_eq!(lines(&strip(false, true))[1], "(NP (-NONE- *))");
    assert_eq!(strip(false, false).empty, 0);
}

#[test]
fn what_is_wrong_is_told_by_line() {
    let message = |text: &str| bank(text.as_bytes(), Strip::ALL).unwrap_err();
    for (text, expected) in [
        ("", "trees:1: the file has no trees with words"),
        ("\n()\n", "trees:2: the file has no trees with words"),
        ("(A a)\n(S (A\n a)\n", "trees:2: this bracket is never closed"),
        ("(A a)\n\n(S (B b)\n(A a)\n(A", "trees:3: this bracket is never closed (2 are open at the end of the file)"),
        ("(A a))\n", "trees:1: a bracket is closed that was never opened"),
        ("(A a)\nword (A a)", "trees:2: 'word' outside of brackets"),
        ("(S (A a)\n(NP\n))", "trees:2: the bracket '(NP' has neither a word nor brackets in it"),
        ("(S ()\n(A a))", "trees:1: the bracket '(' has neither a word nor brackets in it"),
        ("(S (A a)\n ((A a)))", "trees:2: a bracket without a label inside a tree"),
        ("(S (A a)\nb)", "trees:2: word 'b' beside brackets: each word needs a bracket of its own"),
        ("(S a\n(B b))", "trees:2: a bracket beside a word: each word needs a bracket of its own"),
    ] {
        assert_eq!(message(text), expected, "{text:?}");
    }
    let error = bank(b"(\xff a)", Strip::ALL).unwrap_err();
    assert!(error.starts_with("trees:1: label ") && error.contains("is not valid UTF-8"), "{error}");
}

#[test]
fn a_tree_may_be_deep() {
    let depth = 1_000_000;
    let text = "(A ".repeat(depth) + "a" + &")".repeat(depth);
    let bank = bank(text.as_bytes(), Strip::default()).unwrap();
    assert_eq!(bank.trees[0].nodes().len(), depth);
    assert_eq!(lines(&bank)[0], text);
    let open = "(A ".repeat(depth);
    let message = self::bank(open.as_bytes(), Strip::ALL).unwrap_err();
    assert_eq!(message, "trees:1: this bracket is never closed (1000000 are open at the end of the file)");
    // A word of many pieces takes no more than its length.
    let long = format!("(A {})", "a ".repeat(depth));
    assert_eq!(lines(&self::bank(long.as_bytes(), Strip::ALL).unwrap())[0].len(), long.len() - 1);
}

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/trees");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// What must hold for any bytes at all; the same as in fuzz/fuzz_targets/trees.rs.
fn check_laws(bytes: &[u8]) {
    for strip in [Strip::default(), Strip::ALL] {
        let whole = bank(bytes, strip);
        let pieces = Input::new("trees", bytes).map_err(|e| e.to_string());
        let pieces = pieces.and_then(|input| read_in_pieces(input, strip, 5).map_err(|e| e.to_string()));
        // Where packed data are damaged, a bad line and the damage race for the first word; both are errors.
        let is_damaged = |r: &Result<_, String>| r.as_ref().is_err_and(|e| e.contains("damaged"));
        assert!(whole == pieces || (is_damaged(&whole) && pieces.is_err()), "{whole:?}\n{pieces:?}");
        if let Err(message) = &whole {
            assert!(message.len() < 400 && !message.chars().any(char::is_control), "{message}");
        }
        for has_words in [false, true] {
            let stream = streamed(bytes, strip, has_words, (9, 2));
            let Ok(bank) = &whole else { continue };
            let all = bank.trees.iter().map(|tree| (written(tree, &bank.labels, &bank.words), tree.line));
            assert_eq!(stream.unwrap(), all.collect::<Vec<_>>());
        }
        if let Ok(bank) = whole {
            check_grammars(bank);
        }
    }
}

fn check_grammars(mut bank: Treebank) {
    let text: Vec<Vec<u8>> = bank.trees.iter().map(|tree| written(tree, &bank.labels, &bank.words)).collect();
    let same = self::bank(&text.join(&b'\n'), Strip::default()).expect("what was written is valid");
    assert!(same.trees.iter().map(|tree| written(tree, &same.labels, &same.words)).eq(text));
    for (binarise, markov) in [(Binarise::Right, None), (Binarise::Head, None), (Binarise::Head, Some(1))] {
        for (parent_annotation, terminals) in [(false, Terminals::Words { rare_below: 2 }), (true, Terminals::Tags)] {
            let shape = Shape { parent_annotation, binarise, markov, min_count: 0, terminals };
            let found = grammar(&bank, shape).unwrap();
            let reading = Reading::new(&found.grammar, found.lexicon.as_ref());
            for (tree, derivation) in bank.trees.iter().zip(found.derivations.iter().flatten()) {
                let nodes = found.grammar.nodes(derivation).unwrap();
                let again = reading.tree(&nodes, tree, &mut bank.labels).unwrap();
                assert_eq!(reading.brackets(&bank.labels, &again), reading.brackets(&bank.labels, tree));
                assert_eq!(again.words(), tree.words());
                assert!(again.tags().eq(tree.tags()));
            }
        }
    }
}

#[test]
fn the_corpus_of_the_fuzzer_obeys_the_laws() {
    let corpus = corpus();
    assert!(corpus.len() >= 20, "only {} files", corpus.len());
    for bytes in &corpus {
        check_laws(bytes);
    }
}

proptest! {
    #[test]
    fn written_trees_are_read_again(texts in proptest::collection::vec(brackets::tree("T [a-zA-Z\u{e9}-]{1,3}"), 1..5)) {
        let bank = bank(texts.join("\n").as_bytes(), Strip::default()).unwrap();
        prop_assert_eq!(lines(&bank), texts);
    }

    #[test]
    fn no_text_is_too_odd(text in "[() \n\r#/A-]{0,40}", bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        check_laws(text.as_bytes());
        check_laws(&bytes);
    }

    #[test]
    fn a_damaged_corpus_obeys_the_laws(file in any::<prop::sample::Index>(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let corpus = corpus();
        let mut bytes = corpus[file.index(corpus.len())].clone();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        check_laws(&bytes);
    }
}
