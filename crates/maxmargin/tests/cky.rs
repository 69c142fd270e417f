//! The decoder of grammars against exhaustive search.

mod common;

use common::Draw;
use maxmargin::inference::cky::{Chart, Rules, Scores, Step};

/// A grammar as plain lists.
#[derive(Debug)]
struct Grammar {
    symbols: usize,
    phrases: usize,
    binary: Vec<(u32, u32, u32)>,
    unary: Vec<(u32, u32)>,
    longest: usize,
    scores: Scores,
}

/// A sentence as plain tables.
#[derive(Debug)]
struct Sentence {
    len: usize,
    /// By word, symbol.
    leaf: Vec<Vec<f64>>,
    /// By beginning, end, phrase.
    node: Vec<Vec<Vec<f64>>>,
}

/// Small whole numbers: many ties, and no rounding; or none of that.
fn score(draw: &mut Draw, whole: bool) -> f64 {
    if whole { draw.below(5) as f64 - 2.0 } else { 2.0 * draw.signed() }
}

impl Grammar {
    fn random(draw: &mut Draw, whole: bool) -> Self {
        let phrases = 1 + draw.below(3);
        let symbols = phrases + 1 + draw.below(3);
        let mut any = |below: usize| draw.below(below) as u32;
        let mut binary: Vec<_> = (0..8).map(|_| (any(symbols), any(symbols), any(symbols))).collect();
        let mut unary: Vec<_> = (0..5).map(|_| (any(phrases), any(symbols))).collect();
        let longest = any(4) as usize;
        binary.sort_unstable_by_key(|rule| (rule.2, rule.0, rule.1));
        binary.dedup();
        unary.sort_unstable();
        unary.dedup();
        let mut list = |n: usize| -> Vec<f64> { (0..n).map(|_| score(draw, whole)).collect() };
        let mut scores = Scores { binary: list(binary.len()), unary: list(unary.len()), root: list(symbols) };
        if draw.below(2) == 0 {
            scores.root[draw.below(symbols)] = f64::NEG_INFINITY;
        }
        Self { symbols, phrases, binary, unary, longest, scores }
    }

    fn rules(&self) -> Rules {
        Rules::new(self.symbols, self.phrases, &self.binary, &self.unary, self.longest).unwrap()
    }

    /// All derivations of a symbol over a span, each with its score. `over`: the symbols of the unary rules right above.
    fn all(&self, x: &Sentence, (i, j): (usize, usize), symbol: u32, over: &[u32]) -> Vec<(f64, Vec<Step>)> {
        let node = x.node[i][j].get(symbol as usize).copied().unwrap_or(0.0);
        let mut found = Vec::new();
        if j - i == 1 {
            let leaf = x.leaf[i][symbol as usize];
            found.extend((leaf > f64::NEG_INFINITY).then(|| (leaf, vec![Step::Word(i as u32, symbol)])));
        }
        for (rule, &(_, left, right)) in self.binary.iter().enumerate().filter(|(_, rule)| rule.0 == symbol) {
            for k in i + 1..j {
                for (a, first) in self.all(x, (i, k), left, &[]) {
                    for (b, second) in self.all(x, (k, j), right, &[]) {
                        let steps = [&[Step::Binary(rule as u32, k as u32)], &first[..], &second].concat();
                        found.push((a + b + self.scores.binary[rule] + node, steps));
                    }
                }
            }
        }
        for (rule, &(_, child)) in self.unary.iter().enumerate().filter(|(_, rule)| rule.0 == symbol) {
            if over.len() < self.longest && child != symbol && !over.contains(&child) {
                for (below, steps) in self.all(x, (i, j), child, &[over, &[symbol]].concat()) {
                    let steps = [&[Step::Unary(rule as u32)], &steps[..]].concat();
                    found.push((below + self.scores.unary[rule] + node, steps));
                }
            }
        }
        found
    }

    /// All derivations of a sentence.
    fn derivations(&self, x: &Sentence) -> Vec<(f64, Vec<Step>)> {
        let mut found = Vec::new();
        for symbol in (0..self.symbols as u32).filter(|&s| self.scores.root[s as usize] > f64::NEG_INFINITY) {
            for (score, steps) in self.all(x, (0, x.len), symbol, &[]) {
                found.push((score + self.scores.root[symbol as usize], [&[Step::Root(symbol)], &steps[..]].concat()));
            }
        }
        found
    }
}

impl Sentence {
    fn random(draw: &mut Draw, grammar: &Grammar, whole: bool) -> Self {
        let len = 1 + draw.below(4);
        let leaf = (0..len).map(|_| {
            let mut leaf = vec![f64::NEG_INFINITY; grammar.symbols];
            for _ in 0..=draw.below(2) {
                // A word is under a tag.
                leaf[grammar.phrases + draw.below(grammar.symbols - grammar.phrases)] = score(draw, whole);
            }
            leaf
        });
        let leaf = leaf.collect();
        let mut row = || (0..grammar.phrases).map(|_| score(draw, whole)).collect();
        let node = (0..len).map(|_| (0..=len).map(|_| row()).collect()).collect();
        Self { len, leaf, node }
    }

    fn fill(&self, rules: &Rules, chart: &mut Chart) {
        chart.resize(rules, self.len, None);
        for i in 0..self.len {
            chart.leaf_mut(i).copy_from_slice(&self.leaf[i]);
            (i + 1..=self.len).for_each(|j| chart.node_mut(i, j).copy_from_slice(&self.node[i][j]));
        }
    }
}

#[test]
fn the_best_derivation_is_the_best_of_all() {
    let mut draw = Draw(31);
    let (mut chart, mut steps, mut with_some) = (Chart::default(), Vec::new(), 0);
    for round in 0..3000 {
        let whole = round % 2 == 0;
        let grammar = Grammar::random(&mut draw, whole);
        let x = Sentence::random(&mut draw, &grammar, whole);
        let rules = grammar.rules();
        x.fill(&rules, &mut chart);
        let best = chart.best(&rules, &grammar.scores, &mut steps);
        let all = grammar.derivations(&x);
        let expected = all.iter().map(|d| d.0).fold(f64::NEG_INFINITY, f64::max);
        assert!(best == expected || !whole && (best - expected).abs() < 1e-12, "{best} {expected} {grammar:?} {x:?}");
        if best > f64::NEG_INFINITY {
            with_some += 1;
            let told = all.iter().find(|d| d.1 == steps).unwrap_or_else(|| panic!("{steps:?} is none: {grammar:?}"));
            assert!((told.0 - best).abs() < 1e-12, "{} {best}", told.0);
            check_others(&mut chart, &grammar, &all, &mut draw);
        } else {
            assert!(steps.is_empty());
        }
    }
    assert!(with_some > 1000, "{with_some} of 3000 have a derivation");
}

/// The best one but some that are given.
fn check_others(chart: &mut Chart, grammar: &Grammar, all: &[(f64, Vec<Step>)], draw: &mut Draw) {
    let (rules, mut steps) = (grammar.rules(), Vec::new());
    for _ in 0..3 {
        let given = &all[draw.below(all.len())].1;
        let others: Vec<_> = all.iter().filter(|d| d.1 != *given).collect();
        let expected = others.iter().map(|d| d.0).fold(f64::NEG_INFINITY, f64::max);
        let found = chart.best_other(&rules, &grammar.scores, given, &mut steps);
        assert!(found == expected || (found - expected).abs() < 1e-12, "{found} {expected} but {given:?}: {grammar:?}");
        if found > f64::NEG_INFINITY {
            let told =
                others.iter().find(|d| d.1 == steps).unwrap_or_else(|| panic!("{steps:?} is none but {given:?}"));
            assert!((told.0 - found).abs() < 1e-12);
        }
    }
}

#[test]
fn rules_are_checked() {
    let message = |binary: &[_], unary: &[_]| Rules::new(3, 2, binary, unary, 2).unwrap_err().to_string();
    assert_eq!(message(&[(0, 3, 1)], &[]), "a rule with symbol 3, but there are 3");
    assert_eq!(message(&[], &[(0, 1), (2, 1)]), "unary rule 1: its parent is no phrase");
    let many: Vec<_> = (0..20).flat_map(|a| (0..20).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
    let error = Rules::new(20, 20, &[], &many, 9).unwrap_err().to_string();
    assert!(error.contains("more than 100000 ways"), "{error}");
    assert!(Rules::new(20, 20, &[], &many, 2).is_ok());
}
