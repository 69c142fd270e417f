//! Grammars that are read off trees, and the trees that their derivations stand for.

use crate::common::brackets;

use std::collections::HashSet;

use maxmargin::data::input::Input;
use maxmargin::data::trees::{
    Binarise, Extracted, Lexicon, Reading, Shape, Strip, Terminals, Tree, Treebank, grammar, read, write,
};
use maxmargin::inference::cky::{Chart, Scores};
use maxmargin::tasks::parsing::{Derivation, Grammar, Parts, UNKNOWN};
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
fn again(bank: &mut Treebank, found: &Extracted) -> Vec<String> {
    let trees = std::mem::take(&mut bank.trees);
    let reading = Reading::new(&found.grammar, found.lexicon.as_ref());
    let of = |(from, derivation): (&Tree, &Option<Derivation>)| {
        let nodes = found.grammar.nodes(derivation.as_ref()?).expect("rules that follow upon each other");
        let tree = reading.tree(&nodes, from, &mut bank.labels).expect("a tree of these words");
        // What is read off the tree is what its derivation has.
        let tags = nodes.iter().map(|node| node.0).filter(|symbol| found.grammar.tags().contains(symbol));
        let terminals = reading.terminals(&bank.labels, &bank.words, from);
        assert!(found.grammar.has_words() || tags.eq(terminals));
        let mut brackets: Vec<_> = nodes.iter().filter(|node| node.0 < found.grammar.phrases()).collect();
        brackets.sort_unstable_by_key(|(symbol, span)| (*symbol, span.start, span.end));
        let as_node = |bracket: &(u32, u32, u32)| (bracket.0, bracket.1 as usize..bracket.2 as usize);
        assert!(brackets.into_iter().cloned().eq(reading.brackets(&bank.labels, from).iter().map(as_node)));
        Some(line(&tree, bank))
    };
    let lines: Vec<String> = trees.iter().zip(&found.derivations).filter_map(of).collect();
    bank.trees = trees;
    lines
}

fn shown(found: &Extracted) -> Vec<String> {
    let word = |terminal: u32| {
        let lexicon = found.lexicon.as_ref().expect("words");
        String::from_utf8_lossy(lexicon.names().name(terminal)).into_owned()
    };
    (0..found.grammar.len() as u32).map(|rule| found.grammar.shown(rule, word).unwrap()).collect()
}

fn rules(text: &str, shape: Shape) -> Vec<String> {
    shown(&grammar(&bank(text), shape).unwrap())
}

/// Each way to make rules with each of the others.
fn shapes() -> Vec<Shape> {
    let mut all = Vec::new();
    for binarise in [Binarise::Right, Binarise::Head] {
        for markov in [None, Some(0), Some(1), Some(2), Some(usize::MAX)] {
            for parent_annotation in [false, true] {
                for terminals in [Terminals::Tags, Terminals::Words { rare_below: 2 }] {
                    all.push(Shape { parent_annotation, binarise, markov, min_count: 0, terminals });
                }
            }
        }
    }
    all
}

const HEAD: Shape = Shape {
    parent_annotation: false,
    binarise: Binarise::Head,
    markov: None,
    min_count: 0,
    terminals: Terminals::Tags,
};

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
fn children_are_split_off_around_the_head() {
    let text = "(VP (ADVP (RB r)) (RB n) (VBD v) (NP (N n)) (PP (IN i)) (. .))";
    let binary = |shape| rules(text, shape).into_iter().filter(|rule| rule.starts_with("VP")).collect::<Vec<_>>();
    assert_eq!(
        binary(HEAD),
        [
            "VP -> ADVP VP|RB_VBD_NP_PP_.",
            "VP|RB_VBD_NP_PP_. -> RB VP|VBD_NP_PP_.",
            "VP|VBD_NP_PP_. -> VP|VBD_NP_PP .",
            "VP|VBD_NP_PP -> VP|VBD_NP PP",
            "VP|VBD_NP -> VBD NP",
        ]
    );
    assert_eq!(
        binary(Shape { markov: Some(1), ..HEAD }),
        [
            "VP -> ADVP VP|VBD<ADVP",
            "VP|VBD<ADVP -> RB VP|VBD<RB",
            "VP|VBD<RB -> VP|VBD>. .",
            "VP|VBD>. -> VP|VBD>PP PP",
            "VP|VBD>PP -> VBD NP",
        ]
    );
    let two = binary(Shape { markov: Some(2), ..HEAD });
    assert_eq!(
        two[1..4],
        ["VP|VBD<ADVP -> RB VP|VBD<ADVP_RB", "VP|VBD<ADVP_RB -> VP|VBD>. .", "VP|VBD>. -> VP|VBD>._PP PP"]
    );
    assert_eq!(binary(Shape { markov: Some(0), ..HEAD })[..2], ["VP -> ADVP VP|VBD<", "VP|VBD< -> RB VP|VBD<"]);
    // Functions do not hide a head, and of a label that the table lacks it is the last child that is no punctuation.
    assert_eq!(rules("(NP-SBJ (NN-X a) (DT b) (DT c))", HEAD)[1], "NP-SBJ -> NP-SBJ|NN-X_DT DT");
    assert_eq!(rules("(ROOT (A a) (B b) (C c) (. .))", HEAD)[2], "ROOT|B_C_. -> B ROOT|C_.");
}

#[test]
fn a_rule_may_have_many_children() {
    for count in [3, 40, 70, 5000] {
        let text = format!("(NP {})", vec!["(NN a)"; count].join(" "));
        for shape in shapes().into_iter().filter(|shape| shape.markov != Some(usize::MAX)) {
            let mut bank = bank(&text);
            let found = grammar(&bank, shape).unwrap();
            assert_eq!(again(&mut bank, &found), [text.as_str()], "{shape:?}");
            let parts = found.grammar.parts();
            assert_eq!(parts.symbols.iter().collect::<HashSet<_>>().len(), parts.symbols.len());
            if shape.markov.is_none() {
                assert_eq!(parts.binary.len(), count - 1);
            }
        }
    }
}

#[test]
fn derivations_give_the_trees_back() {
    let text = include_str!("../../../../testdata/treebank/english.mrg");
    for shape in shapes() {
        let mut bank = bank(text);
        let found = grammar(&bank, shape).unwrap();
        assert_eq!(again(&mut bank, &found), text.lines().collect::<Vec<_>>(), "{shape:?}");
    }
}

#[test]
fn a_phrase_over_itself_counts_once() {
    for shape in shapes().into_iter().filter(|shape| !shape.parent_annotation) {
        let mut bank = bank("(S (S (NP (NP (A a)))))\n(S (X (S (Y (S (A a) (B b))))))\n(A a)\n(S (X (S (X (A a)))))");
        let found = grammar(&bank, shape).unwrap();
        assert_eq!(again(&mut bank, &found), ["(S (NP (A a)))", "(S (A a) (B b))", "(A a)", "(S (X (A a)))"]);
    }
    let shape = Shape { parent_annotation: true, ..Shape::default() };
    let mut bank = bank("(S (S (S (S (A a)))))\n(S (NP (A a)) (NP (NP (A a))))");
    let found = grammar(&bank, shape).unwrap();
    assert_eq!(again(&mut bank, &found), ["(S (S (A a)))", "(S (NP (A a)) (NP (NP (A a))))"]);
}

#[test]
fn a_deep_tree_has_a_derivation() {
    let depth = 100_000;
    let text = "(A (B b) ".repeat(depth)
        + "(C c)"
        + &")".repeat(depth)
        + "\n"
        + &"(A ".repeat(depth)
        + "a"
        + &")".repeat(depth);
    for shape in [Shape::default(), HEAD, Shape { parent_annotation: true, ..HEAD }] {
        let mut bank = bank(&text);
        let found = grammar(&bank, shape).unwrap();
        assert_eq!(again(&mut bank, &found)[0], text.lines().next().unwrap());
    }
}

#[test]
fn rare_rules_are_left_out() {
    let text = "(S (A a) (B b))\n(S (A a) (B b))\n(S (A a) (B b) (C c))\n(S (X (A a)) (B b))\n(A a)";
    let shape = |min_count| Shape { min_count, ..Shape::default() };
    let kept = |min_count| {
        let found = grammar(&bank(text), shape(min_count)).unwrap();
        (found.derivations.iter().map(Option::is_some).collect::<Vec<_>>(), shown(&found))
    };
    assert_eq!(kept(0), kept(1));
    assert_eq!(kept(1).0, [true; 5]);
    assert_eq!(
        kept(2),
        (vec![true, true, false, false, true], ["-> S", "-> A", "S -> A B"].map(str::to_owned).to_vec())
    );
    assert_eq!(kept(3).0, [false, false, false, false, true]);
    let error = grammar(&bank("(S (A a) (B b))"), shape(2)).unwrap_err().to_string();
    assert_eq!(error, "min-count: every tree has a rule that is seen fewer than 2 times; choose a smaller one");
}

#[test]
fn rare_words_stand_for_their_classes() {
    let text =
        "(S (D the) (N cats) (V run))\n(S (D the) (N dogs) (V runs))\n(S (D the) (N cats) (V 7))\n(S (N The) (V run))";
    let found =
        grammar(&bank(text), Shape { terminals: Terminals::Words { rare_below: 2 }, ..Shape::default() }).unwrap();
    let lexicon = found.lexicon.as_ref().unwrap();
    let names: Vec<&[u8]> = lexicon.names().iter().collect();
    assert_eq!((lexicon.words(), &names[..3]), (3, &[&b"the"[..], b"cats", b"run"][..]));
    assert_eq!(names[3..], [&b"(word s)"[..], b"(sign 0)", b"(First)", b"(any)"]);
    let lexical: Vec<String> = shown(&found)[found.grammar.len() - 9..].to_vec();
    assert_eq!(
        lexical,
        [
            "D -> the",
            "N -> cats",
            "V -> run",
            "N -> (word s)",
            "N -> (any)",
            "V -> (word s)",
            "V -> (any)",
            "V -> (sign 0)",
            "N -> (First)",
        ]
    );
}

#[test]
fn the_class_of_all_has_every_tag_where_no_word_is_rare() {
    for rare_below in [0, 1] {
        let shape = Shape { terminals: Terminals::Words { rare_below }, ..Shape::default() };
        let rules = rules("(S (A a) (B b))", shape);
        assert_eq!(rules, ["-> S", "S -> A B", "A -> a", "B -> b", "A -> (any)", "B -> (any)"]);
    }
}

#[test]
fn new_sentences_are_read_with_what_is_known() {
    let text = "(S (NP (A a)) (B b))";
    let other = bank("(S (NP (C c)) (QP (B b)))\n(S (S (NP (A a)) (A a)))");
    for (parent_annotation, brackets) in [(false, [(0, 0, 2), (1, 0, 1)]), (true, [(0, 0, 2), (1, 0, 1)])] {
        let found = grammar(&bank(text), Shape { parent_annotation, ..Shape::default() }).unwrap();
        let reading = Reading::new(&found.grammar, None);
        let tags = found.grammar.tags();
        assert_eq!(reading.terminals(&other.labels, &other.words, &other.trees[0]), [UNKNOWN, tags.start + 1]);
        let with_unknown = [brackets[0], brackets[1], (UNKNOWN, 1, 2)];
        assert_eq!(reading.brackets(&other.labels, &other.trees[0]), with_unknown);
        let collapsed = reading.brackets(&other.labels, &other.trees[1]);
        // S below S is another phrase where the label above counts.
        let expected = if parent_annotation { vec![(0, 0, 2), (1, 0, 1), (UNKNOWN, 0, 2)] } else { brackets.to_vec() };
        assert_eq!(collapsed, expected);
    }
    let found =
        grammar(&bank(text), Shape { terminals: Terminals::Words { rare_below: 0 }, ..Shape::default() }).unwrap();
    let lexicon = found.lexicon.as_ref().unwrap();
    let reading = Reading::new(&found.grammar, Some(lexicon));
    let known = reading.terminals(&other.labels, &other.words, &other.trees[0]);
    assert_eq!(known, [lexicon.any(), 1]);
    let names = lexicon.names().to_bytes();
    let same = maxmargin::data::dictionary::Dictionary::from_bytes(&names, lexicon.names().len()).unwrap();
    assert_eq!(Lexicon::from_names(same, lexicon.words()).unwrap(), *lexicon);
}

#[test]
fn labels_with_carets_are_not_annotations() {
    let mut bank = bank("(S (A^B (T t)) (B (A (T t)) (T t)))");
    let found = grammar(&bank, Shape { parent_annotation: true, ..Shape::default() }).unwrap();
    assert_eq!(again(&mut bank, &found), ["(S (A^B (T t)) (B (A (T t)) (T t)))"]);
}

#[test]
fn what_is_no_tree_is_told() {
    let mut bank = bank("(S (A a) (B b))\n(S (S2 (A a)) (B b))");
    let found = grammar(&bank, Shape::default()).unwrap();
    let reading = Reading::new(&found.grammar, None);
    let of = bank.trees[0].clone();
    let (s, s2, a, b) = (0, 1, 2, 3);
    let mut tree = |nodes: &[(u32, std::ops::Range<usize>)]| reading.tree(nodes, &of, &mut bank.labels);
    assert_eq!(tree(&[(s, 0..2), (a, 0..1), (b, 1..2)]).as_ref(), Some(&of));
    // The tags are those of the sentence.
    assert_eq!(tree(&[(s, 0..2), (b, 0..1), (UNKNOWN, 1..2)]).as_ref(), Some(&of));
    for bad in [
        &[][..],
        &[(s, 0..2)],
        &[(s, 0..2), (a, 0..1)],
        &[(s, 0..1), (a, 0..1)],
        &[(a, 0..1), (b, 1..2)],
        &[(a, 0..2)],
        &[(s, 0..3), (a, 0..1), (b, 1..2)],
        &[(s, 0..2), (a, 0..1), (b, 1..2), (b, 2..3)],
        &[(s, 0..2), (a, 1..2), (b, 0..1)],
        &[(s, 0..2), (s2, 0..0), (a, 0..1), (b, 1..2)],
        &[(s, 0..2), (s2, 0..1), (s2, 0..2), (a, 0..1), (b, 1..2)],
        &[(s, 0..2), (s2, 0..1), (s2, 1..2)],
        &[(4, 0..2), (a, 0..1), (b, 1..2)],
    ] {
        assert!(tree(bad).is_none(), "{bad:?}");
    }
}

#[test]
fn what_is_no_derivation_is_told() {
    let found = grammar(&bank("(S (A a) (B b))\n(S (S2 (A a)) (B b))"), Shape::default()).unwrap();
    let good = &found.derivations[0].as_ref().unwrap().0;
    let last = found.grammar.len() as u32;
    for bad in [
        vec![],
        vec![good[1]],
        vec![good[0]],
        vec![good[0], good[0]],
        [&good[..], &good[1..]].concat(),
        vec![good[0], last],
        vec![last],
    ] {
        assert!(found.grammar.nodes(&Derivation(bad)).is_none());
    }
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
    let bank = bank(include_str!("../../../../testdata/treebank/english.mrg"));
    let Extracted { grammar, derivations, .. } = grammar(&bank, Shape::default()).unwrap();
    let (mut chart, mut steps) = (Chart::default(), Vec::new());
    let parts = grammar.parts();
    for (tree, truth) in
        bank.trees.iter().zip(derivations.iter().flatten()).filter(|(tree, _)| tree.words().len() <= 12)
    {
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
    fn any_trees_come_back(texts in proptest::collection::vec(brackets::tree("T[0-2] word"), 1..6), which in any::<prop::sample::Index>()) {
        let (mut bank, shapes) = (bank(&texts.join("\n")), shapes());
        let found = grammar(&bank, shapes[which.index(shapes.len())]).unwrap();
        prop_assert_eq!(again(&mut bank, &found), texts);
    }

    #[test]
    fn any_penn_trees_come_back(texts in proptest::collection::vec(brackets::tree("(NN|DT|VBD|IN|,|[.]) [a-c]"), 1..6), which in any::<prop::sample::Index>()) {
        const LABELS: [&str; 4] = ["VP", "NP-SBJ", "PP", "SBAR"];
        let (mut text, shapes) = (texts.join("\n"), shapes());
        (0..20).for_each(|at| text = text.replace(&format!("L{at} "), &format!("{} ", LABELS[at % 4])));
        let mut bank = bank(&text);
        let found = grammar(&bank, shapes[which.index(shapes.len())]).unwrap();
        // Some phrases stand over themselves now: what came back once comes back again.
        let lines = again(&mut bank, &found);
        prop_assert_eq!(lines.len(), texts.len());
        let mut bank = self::bank(&lines.join("\n"));
        let found = grammar(&bank, shapes[which.index(shapes.len())]).unwrap();
        prop_assert_eq!(again(&mut bank, &found), lines);
    }
}
