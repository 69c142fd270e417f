//! Grammars that are read off trees, and the trees that their derivations stand for.

#[path = "common/brackets.rs"]
mod brackets;

use std::collections::HashSet;

use maxmargin::data::input::Input;
use maxmargin::data::trees::{Shape, Strip, Tree, Treebank, grammar, read, tree, write};
use maxmargin::inference::cky::{Chart, Scores};
use maxmargin::tasks::parsing::{Derivation, Grammar, Parts};
use proptest::prelude::*;

fn bank(text: &str) -> Treebank {
    read(Input::new("trees", text.as_bytes()).unwrap(), Strip::default()).unwrap()
}

fn line(tree: &Tree, bank: &Treebank) -> String {
    let mut text = Vec::new();
    write(tree, &bank.labels, &bank.words, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

/// The trees of the derivations, as text.
fn again(bank: &mut Treebank, grammar: &Grammar, derivations: &[Derivation]) -> Vec<String> {
    let trees = std::mem::take(&mut bank.trees);
    let of = |(from, derivation): (&Tree, &Derivation)| {
        let tree = tree(grammar, derivation, from.words(), &mut bank.labels).expect("a derivation of these words");
        line(&tree, bank)
    };
    trees.iter().zip(derivations).map(of).collect()
}

fn rules(text: &str, shape: Shape) -> Vec<String> {
    let (grammar, _) = grammar(&bank(text), shape).unwrap();
    (0..grammar.len() as u32).map(|rule| grammar.shown(rule, |_| String::new()).unwrap()).collect()
}

const SHAPES: [Shape; 5] = [
    Shape { parent_annotation: false, markov: None },
    Shape { parent_annotation: true, markov: None },
    Shape { parent_annotation: false, markov: Some(0) },
    Shape { parent_annotation: false, markov: Some(1) },
    Shape { parent_annotation: true, markov: Some(2) },
];

#[test]
fn rules_are_those_of_the_trees() {
    let text = "(S (NP (A a) (B b) (C c) (D d)) (VP (V v)))\n(S (NP (A a)) (VP (V v) (NP (B b) (B b) (C c) (D d))))";
    assert_eq!(
        rules(text, Shape::default()),
        [
            "-> S",
            "VP -> V",
            "NP -> A",
            "S -> NP VP",
            "NP -> A NP|B_C_D",
            "NP|B_C_D -> B NP|C_D",
            "NP|C_D -> C D",
            "VP -> V NP",
            "NP -> B NP|B_C_D",
        ]
    );
    let markov = rules(text, Shape { markov: Some(1), ..Shape::default() });
    assert_eq!(
        markov[3..],
        ["S -> NP VP", "NP -> A NP|A", "NP|A -> B NP|B", "NP|B -> C D", "VP -> V NP", "NP -> B NP|B", "NP|B -> B NP|B"]
    );
    let annotated =
        rules("(S (NP (A a)) (VP (NP (A a)) (V v)))", Shape { parent_annotation: true, ..Shape::default() });
    assert_eq!(annotated, ["-> S", "NP^S -> A", "NP^VP -> A", "S -> NP^S VP^S", "VP^S -> NP^VP V"]);
}

#[test]
fn derivations_give_the_trees_back() {
    let text = include_str!("../../../testdata/treebank/english.mrg");
    for shape in SHAPES {
        let mut bank = bank(text);
        let (grammar, derivations) = grammar(&bank, shape).unwrap();
        for (again, line) in again(&mut bank, &grammar, &derivations).iter().zip(text.lines()) {
            assert_eq!(again, line, "{shape:?}");
        }
    }
}

#[test]
fn a_phrase_over_itself_counts_once() {
    let mut bank = bank("(S (S (NP (NP (A a)))))\n(S (X (S (Y (S (A a) (B b))))))\n(A a)");
    let (grammar, derivations) = grammar(&bank, Shape::default()).unwrap();
    assert_eq!(again(&mut bank, &grammar, &derivations), ["(S (NP (A a)))", "(S (A a) (B b))", "(A a)"]);
}

#[test]
fn what_is_no_derivation_is_told() {
    let mut bank = bank("(S (A a) (B b))\n(S (S2 (A a)) (B b))");
    let (grammar, derivations) = grammar(&bank, Shape::default()).unwrap();
    let words = bank.trees[0].words().to_vec();
    let good = &derivations[0].0;
    let last = grammar.len() as u32;
    for bad in [
        vec![],
        vec![good[1]],
        vec![good[0]],
        vec![good[0], good[0]],
        [&good[..], &good[1..]].concat(),
        vec![good[0], last],
        vec![last],
    ] {
        assert!(tree(&grammar, &Derivation(bad), &words, &mut bank.labels).is_none());
    }
    assert!(tree(&grammar, &derivations[0], &words[..1], &mut bank.labels).is_none());
    let parts = |binary, roots| Parts {
        symbols: vec!["S".into(), "A".into()],
        labels: vec!["S".into()],
        tags: 1,
        roots,
        binary,
        ..Parts::default()
    };
    assert!(Grammar::new(parts(vec![(0, 1, 1)], vec![0])).is_ok());
    for bad in [parts(vec![(1, 1, 1)], vec![0]), parts(vec![(0, 1, 2)], vec![0]), parts(vec![], vec![2])] {
        assert!(Grammar::new(bad).is_err());
    }
}

/// Each sentence of the treebank has a derivation, and with a score for each of its own rules it is its own tree or one that
/// uses rules as good.
#[test]
fn the_decoder_finds_derivations_of_the_grammar() {
    let bank = bank(include_str!("../../../testdata/treebank/english.mrg"));
    let (grammar, derivations) = grammar(&bank, Shape::default()).unwrap();
    let (mut chart, mut steps) = (Chart::default(), Vec::new());
    let parts = grammar.parts();
    for (tree, truth) in bank.trees.iter().zip(&derivations).filter(|(tree, _)| tree.words().len() <= 12) {
        let own: HashSet<u32> = truth.0.iter().copied().collect();
        let score = |rule: usize| if own.contains(&(rule as u32)) { 0.0 } else { -1.0 };
        let (unary, binary) = (parts.roots.len(), parts.roots.len() + parts.unary.len());
        let mut root = vec![f64::NEG_INFINITY; parts.symbols.len()];
        parts.roots.iter().enumerate().for_each(|(at, &symbol)| root[symbol as usize] = score(at));
        let scores = Scores {
            binary: (binary..grammar.len()).map(score).collect(),
            unary: (unary..binary).map(score).collect(),
            root,
        };
        chart.resize(grammar.rules(), tree.words().len(), None);
        let symbols = grammar.nodes(truth).unwrap().into_iter().map(|(symbol, _)| symbol);
        let tags: Vec<u32> = symbols.filter(|symbol| grammar.tags().contains(symbol)).collect();
        tags.iter().enumerate().for_each(|(i, &tag)| chart.leaf_mut(i)[tag as usize] = 0.0);
        assert_eq!(chart.best(grammar.rules(), &scores, &mut steps), 0.0);
        let found = grammar.derivation(&steps, &tags);
        assert!(found.0.iter().all(|rule| own.contains(rule)));
        let nodes = grammar.nodes(&found).expect("a derivation");
        assert_eq!(nodes.iter().filter(|(symbol, _)| grammar.tags().contains(symbol)).count(), tree.words().len());
    }
}

proptest! {
    #[test]
    fn any_trees_come_back(texts in proptest::collection::vec(brackets::tree("T[0-2] word"), 1..6), which in 0..SHAPES.len()) {
        let mut bank = bank(&texts.join("\n"));
        let (grammar, derivations) = grammar(&bank, SHAPES[which]).unwrap();
        prop_assert_eq!(again(&mut bank, &grammar, &derivations), texts);
    }
}
