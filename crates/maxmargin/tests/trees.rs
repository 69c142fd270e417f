//! Trees in brackets: what is read, what is left out, and what is wrong with a text, by line.

#[path = "common/brackets.rs"]
mod brackets;

use maxmargin::data::input::Input;
use maxmargin::data::trees::{Strip, Tree, Treebank, read, write};
use proptest::prelude::*;

fn bank(text: &[u8], strip: Strip) -> Result<Treebank, String> {
    read(Input::new("trees", text).map_err(|e| e.to_string())?, strip).map_err(|e| e.to_string())
}

fn lines(bank: &Treebank) -> Vec<String> {
    let line = |tree: &Tree| {
        let mut text = Vec::new();
        write(tree, &bank.labels, &bank.words, &mut text).unwrap();
        String::from_utf8(text).unwrap()
    };
    bank.trees.iter().map(line).collect()
}

#[test]
fn trees_come_back_as_they_were() {
    let text = include_str!("../../../testdata/treebank/english.mrg");
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
    let depth = 100_000;
    let text = "(A ".repeat(depth) + "a" + &")".repeat(depth);
    let bank = bank(text.as_bytes(), Strip::default()).unwrap();
    assert_eq!(bank.trees[0].nodes().len(), depth);
    assert_eq!(lines(&bank)[0], text);
}

proptest! {
    #[test]
    fn written_trees_are_read_again(texts in proptest::collection::vec(brackets::tree("T [a-zA-Z\u{e9}-]{1,3}"), 1..5)) {
        let bank = bank(texts.join("\n").as_bytes(), Strip::default()).unwrap();
        prop_assert_eq!(lines(&bank), texts);
    }

    #[test]
    fn no_text_is_too_odd(text in "[() \nA-]{0,40}", bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        for text in [text.as_bytes(), &bytes] {
            if let Ok(found) = bank(text, Strip::ALL) {
                let again = lines(&found).join("\n");
                prop_assert_eq!(lines(&bank(again.as_bytes(), Strip::default()).unwrap()).join("\n"), again);
            }
        }
    }
}
