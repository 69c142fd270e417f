//! The decoder of grammars against exhaustive search.

use crate::common;

use common::Draw;
use maxmargin::inference::cky::{Chart, Rules, Scores, Step, Tally, Wanted};

/// A grammar as plain lists.
#[derive(Debug, Clone)]
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
            check_n_best(&chart, &grammar, &all);
            check_counted(&mut chart, &grammar, &x, &all, &mut draw);
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

/// The n best are the n best, each once.
fn check_n_best(chart: &Chart, grammar: &Grammar, all: &[(f64, Vec<Step>)]) {
    let mut expected: Vec<f64> = all.iter().map(|d| d.0).collect();
    expected.sort_by(|a, b| b.total_cmp(a));
    for n in [1, 3, 100] {
        let found = chart.n_best(&grammar.rules(), &grammar.scores, n);
        assert_eq!(found.len(), n.min(all.len()));
        for (rank, (score, steps)) in found.iter().enumerate() {
            assert!((score - expected[rank]).abs() < 1e-12, "{rank}: {score} {expected:?}");
            let told = all.iter().find(|d| d.1 == *steps).unwrap_or_else(|| panic!("{steps:?} is none"));
            assert!((told.0 - score).abs() < 1e-12);
            assert!(found[..rank].iter().all(|before| before.1 != *steps), "{steps:?} twice");
        }
    }
}

/// The phrases of a derivation with the words that they are over.
fn brackets(grammar: &Grammar, steps: &[Step], len: usize) -> Vec<(u32, u32, u32)> {
    let Step::Root(root) = steps[0] else { panic!("a root") };
    let (mut found, mut open) = (Vec::new(), vec![(root, 0, len as u32)]);
    for step in &steps[1..] {
        let (symbol, i, j) = open.pop().unwrap();
        if (symbol as usize) < grammar.phrases {
            found.push((symbol, i, j));
        }
        match *step {
            Step::Unary(rule) => open.push((grammar.unary[rule as usize].1, i, j)),
            Step::Binary(rule, k) => {
                let (_, left, right) = grammar.binary[rule as usize];
                open.extend([(right, k, j), (left, i, k)]);
            }
            Step::Word(..) | Step::Root(_) => {}
        }
    }
    found.sort_unstable();
    found
}

/// The largest value of a function of score, predicted and matched brackets, whatever the chart's scores are tilted by.
fn check_counted(chart: &mut Chart, grammar: &Grammar, x: &Sentence, all: &[(f64, Vec<Step>)], draw: &mut Draw) {
    let rules = grammar.rules();
    let mut truth = brackets(grammar, &all[draw.below(all.len())].1, x.len);
    if draw.below(2) == 0 {
        truth.truncate(draw.below(truth.len() + 1));
    }
    let f1 = |(p, m): (i32, i32)| {
        if p + truth.len() as i32 == 0 { 0.0 } else { 1.0 - 2.0 * f64::from(m) / f64::from(p + truth.len() as i32) }
    };
    let weight = 3.0 * draw.unit();
    let margin = |counts: (i32, i32), score: f64| score + weight * f1(counts);
    let at_truth = all[0].0;
    let slack = |counts: (i32, i32), score: f64| (weight * f1(counts) * (1.0 + score - at_truth)).max(0.0);
    let counts = |steps: &[Step]| {
        let own = brackets(grammar, steps, x.len);
        (own.len() as i32, own.iter().filter(|bracket| truth.contains(bracket)).count() as i32)
    };
    let tilt = (draw.unit() - 0.5, draw.unit() - 0.5);
    x.fill(&rules, chart);
    for i in 0..x.len {
        for j in i + 1..=x.len {
            chart.node_mut(i, j).iter_mut().for_each(|score| *score += tilt.0);
        }
    }
    for &(phrase, i, j) in &truth {
        chart.node_mut(i as usize, j as usize)[phrase as usize] += tilt.1;
    }
    let mut steps = Vec::new();
    chart.best(&rules, &grammar.scores, &mut steps);
    let tally = Tally { truth: &truth, found: (1, 1), wrong: (1, 0), tilt };
    let values: [&dyn Fn((i32, i32), f64) -> f64; 2] = [&margin, &slack];
    for value in values {
        let best = all.iter().map(|d| value(counts(&d.1), d.0)).fold(f64::NEG_INFINITY, f64::max);
        let nothing_left_out = |_: (i32, i32)| f64::NEG_INFINITY;
        let wanted = Wanted { value, least: &nothing_left_out, known: best - 1.0 };
        let found = chart.best_counted(&rules, &grammar.scores, &tally, &wanted, &mut steps);
        assert!(found.is_some_and(|found| (found - best).abs() < 1e-9), "{found:?} {best}");
        let told = all.iter().find(|d| d.1 == steps).unwrap_or_else(|| panic!("{steps:?} is none"));
        assert!((value(counts(&told.1), told.0) - best).abs() < 1e-9);
        // What reaches the best one's score with tilt is enough to look at; nothing is above the best.
        let of_tilt = |(p, m): (i32, i32)| tilt.0 * f64::from(p) + tilt.1 * f64::from(m);
        let needed = told.0 + of_tilt(counts(&told.1)) - 1e-9;
        let just_enough = |_: (i32, i32)| needed;
        let wanted = Wanted { value, least: &just_enough, known: best - 1e-6 };
        let found = chart.best_counted(&rules, &grammar.scores, &tally, &wanted, &mut steps);
        assert!(found.is_some_and(|found| (found - best).abs() < 1e-9), "{found:?} {best}");
        let wanted = Wanted { value, least: &nothing_left_out, known: best + 1e-6 };
        assert_eq!(chart.best_counted(&rules, &grammar.scores, &tally, &wanted, &mut steps), None);
    }
}

#[test]
fn long_spans_can_be_left_out() {
    let mut draw = Draw(32);
    let (mut chart, mut steps, mut fewer) = (Chart::default(), Vec::new(), 0);
    for _ in 0..1000 {
        let grammar = Grammar::random(&mut draw, true);
        let x = Sentence::random(&mut draw, &grammar, true);
        let (rules, most) = (grammar.rules(), 1 + draw.below(2));
        chart.resize(&rules, x.len, Some(most));
        let is_there = |i: usize, j: usize| i == 0 || j == x.len || j - i <= most;
        for i in 0..x.len {
            chart.leaf_mut(i).copy_from_slice(&x.leaf[i]);
            for j in i + 1..=x.len {
                assert_eq!(chart.has(i, j), is_there(i, j));
                if is_there(i, j) {
                    chart.node_mut(i, j).copy_from_slice(&x.node[i][j]);
                }
            }
        }
        let all = grammar.derivations(&x);
        let is_allowed = |steps: &[Step]| spans(&grammar, steps, x.len).iter().all(|&(i, j)| is_there(i, j));
        let allowed: Vec<_> = all.iter().filter(|d| is_allowed(&d.1)).collect();
        fewer += usize::from(allowed.len() < all.len());
        let expected = allowed.iter().map(|d| d.0).fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(chart.best(&rules, &grammar.scores, &mut steps), expected);
        assert_eq!(chart.n_best(&rules, &grammar.scores, 50).len(), allowed.len().min(50));
    }
    assert!(fewer > 20, "{fewer}");
}

/// The spans of all symbols of a derivation.
fn spans(grammar: &Grammar, steps: &[Step], len: usize) -> Vec<(usize, usize)> {
    let all = Grammar { phrases: grammar.symbols, ..grammar.clone() };
    brackets(&all, steps, len).into_iter().map(|(_, i, j)| (i as usize, j as usize)).collect()
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
