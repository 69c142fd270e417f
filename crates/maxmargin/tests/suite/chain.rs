//! The decoder of chains against exhaustive search: everything that it promises, by definition.

use crate::common;

use std::collections::HashSet;

use common::Draw;
use maxmargin::inference::chain::{Chain, Counts, Order, Pairs, can_count};

/// What scores a table is filled with.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Scores {
    /// From -2 to 2: many ties, and no rounding.
    Integers,
    Reals,
    /// Reals, and unary scores that outweigh the others: few ways are worth a look.
    Steep,
}

/// A chain as plain tables, whose score is computed from the definition.
#[derive(Debug, Clone)]
struct Tables {
    labels: usize,
    len: usize,
    order: Order,
    pairs: Pairs,
    /// By variable, label.
    unary: Vec<Vec<f64>>,
    /// By variable, label before, label.
    pair: Vec<Vec<Vec<f64>>>,
    /// By the two labels before, label.
    triple: Vec<Vec<Vec<f64>>>,
}

impl Tables {
    /// Random scores; about one in `forbidden` is minus infinity, none if it is 0.
    fn random(
        draw: &mut Draw,
        (labels, len): (usize, usize),
        (order, pairs): (Order, Pairs),
        scores: Scores,
        forbidden: usize,
    ) -> Self {
        let mut row = || -> Vec<f64> {
            let mut one = || match scores {
                _ if forbidden > 0 && draw.below(forbidden) == 0 => f64::NEG_INFINITY,
                Scores::Integers => draw.below(5) as f64 - 2.0,
                Scores::Reals | Scores::Steep => 3.0 * draw.signed(),
            };
            (0..labels).map(|_| one()).collect()
        };
        let mut unary: Vec<Vec<f64>> = (0..len).map(|_| row()).collect();
        if scores == Scores::Steep {
            unary.iter_mut().flatten().for_each(|score| *score *= 8.0);
        }
        let mut table = || -> Vec<Vec<f64>> { (0..labels).map(|_| row()).collect() };
        let pair = match pairs {
            Pairs::Same => vec![table(); len],
            Pairs::EachStep => (0..len).map(|_| table()).collect(),
        };
        let triple = if order == Order::Second { (0..labels).map(|_| table()).collect() } else { Vec::new() };
        Self { labels, len, order, pairs, unary, pair, triple }
    }

    fn fill(&self, chain: &mut Chain) {
        chain.resize(self.labels, self.len, self.order, self.pairs);
        for t in 0..self.len {
            chain.unary_mut(t).copy_from_slice(&self.unary[t]);
            // The first variable has no step into it.
            for a in (0..self.labels).filter(|_| t > 0) {
                chain.pair_mut(t, a).copy_from_slice(&self.pair[t][a]);
            }
        }
        for (a, table) in self.triple.iter().enumerate() {
            table.iter().enumerate().for_each(|(b, row)| chain.triple_mut(a, b).copy_from_slice(row));
        }
        if self.len == 1 {
            // No step, hence no pair: whatever stands there.
            (0..self.labels).for_each(|a| chain.pair_mut(0, a).fill(f64::NAN));
        }
    }

    fn chain(&self) -> Chain {
        let mut chain = Chain::default();
        self.fill(&mut chain);
        chain
    }

    fn score(&self, y: &[u32]) -> f64 {
        let y: Vec<usize> = y.iter().map(|&k| k as usize).collect();
        let unary: f64 = (0..self.len).map(|t| self.unary[t][y[t]]).sum();
        let pair: f64 = (1..self.len).map(|t| self.pair[t][y[t - 1]][y[t]]).sum();
        let is_second = self.order == Order::Second;
        let triple: f64 = (2..self.len).filter(|_| is_second).map(|t| self.triple[y[t - 2]][y[t - 1]][y[t]]).sum();
        unary + pair + triple
    }

    /// All labellings with their scores.
    fn each(&self, mut visit: impl FnMut(&[u32], f64)) {
        let mut y = vec![0; self.len];
        loop {
            visit(&y, self.score(&y));
            // Counts up, the last variable fastest.
            let Some(t) = (0..self.len).rev().find(|&t| (y[t] as usize) + 1 < self.labels) else { return };
            y[t] += 1;
            y[t + 1..].fill(0);
        }
    }

    fn all(&self) -> Vec<(f64, Vec<u32>)> {
        let mut all = Vec::new();
        self.each(|y, score| all.push((score, y.to_vec())));
        all
    }

    /// The margins of y by definition.
    fn margins(&self, y: &[u32]) -> Vec<f64> {
        let mut others = vec![f64::NEG_INFINITY; self.len];
        self.each(|other, score| {
            for t in (0..self.len).filter(|&t| other[t] != y[t]) {
                others[t] = score.max(others[t]);
            }
        });
        others.into_iter().map(|other| self.score(y) - other).collect()
    }

    fn random_labels(&self, draw: &mut Draw) -> Vec<u32> {
        draw.labels(self.len, self.labels as u32)
    }
}

/// Equal, but for the order of a few additions.
fn same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * (1.0 + a.abs())
}

const KINDS: [(Order, Pairs); 4] = [
    (Order::First, Pairs::Same),
    (Order::First, Pairs::EachStep),
    (Order::Second, Pairs::Same),
    (Order::Second, Pairs::EachStep),
];

/// Small chains of all kinds and sizes.
fn small(seed: u64, rounds: usize, mut check: impl FnMut(&mut Draw, &Tables)) {
    let mut draw = Draw(seed);
    for _ in 0..rounds {
        for kind in KINDS {
            for scores in [Scores::Integers, Scores::Reals, Scores::Steep] {
                for forbidden in [0, 6, 2] {
                    let size = (1 + draw.below(5), 1 + draw.below(6));
                    let tables = Tables::random(&mut draw, size, kind, scores, forbidden);
                    check(&mut draw, &tables);
                }
            }
        }
    }
}

#[test]
fn the_best() {
    small(1, 12, |draw, tables| {
        let (mut chain, mut y) = (tables.chain(), Vec::new());
        let best = chain.best(&mut y);
        let mut expected = f64::NEG_INFINITY;
        tables.each(|_, score| expected = score.max(expected));
        assert!(same(best, expected), "{best}, not {expected}: {tables:?}");
        assert!(same(tables.score(&y), expected), "{y:?} is not a best one: {tables:?}");
        let mut again = vec![9; 9];
        assert_eq!((chain.best(&mut again), again), (best, y), "another answer when asked again");
        let other = tables.random_labels(draw);
        assert!(same(chain.score(&other), tables.score(&other)), "{other:?}: {tables:?}");
    });
}

#[test]
fn ties_go_to_the_earlier_label() {
    for (order, pairs) in KINDS {
        let mut chain = Chain::default();
        chain.resize(5, 4, order, pairs);
        let mut y = Vec::new();
        assert_eq!((chain.best(&mut y), &y[..]), (0.0, &[0; 4][..]));
        (1..4).for_each(|t| chain.unary_mut(t)[..2].fill(-1.0));
        assert_eq!((chain.best(&mut y), &y[..]), (0.0, &[0, 2, 2, 2][..]));
    }
}

#[test]
fn the_n_best() {
    small(2, 4, |_, tables| {
        let chain = tables.chain();
        let mut all = tables.all();
        all.retain(|way| way.0 > f64::NEG_INFINITY);
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        for n in [0, 1, 2, 3, 10, 100, all.len() + 3] {
            if n > 700 {
                continue;
            }
            let found = chain.n_best(n);
            assert_eq!(found.len(), n.min(all.len()), "{tables:?}");
            for ((score, y), (expected, _)) in found.iter().zip(&all) {
                assert!(same(*score, *expected), "{score}, not {expected}: {tables:?}");
                assert!(same(*score, tables.score(y)), "{score} is not that of {y:?}: {tables:?}");
            }
            assert!(found.is_sorted_by(|a, b| a.0 >= b.0), "the best first: {found:?}");
            let distinct: HashSet<&[u32]> = found.iter().map(|way| &way.1[..]).collect();
            assert_eq!(distinct.len(), found.len(), "{found:?}");
            assert_eq!(chain.n_best(n), found, "another answer when asked again");
        }
    });
}

/// Where additions are exact, the first of the n best is the best, ties and all.
#[test]
fn the_first_of_the_n_best_is_the_best() {
    let mut draw = Draw(3);
    for round in 0..100 {
        let size = (1 + draw.below(5), 1 + draw.below(6));
        let tables = Tables::random(&mut draw, size, KINDS[round % 4], Scores::Integers, 0);
        let (mut chain, mut y) = (tables.chain(), Vec::new());
        let best = chain.best(&mut y);
        assert_eq!(chain.n_best(3)[0], (best, y), "{tables:?}");
    }
}

#[test]
fn margins_by_definition() {
    small(4, 8, |draw, tables| {
        let (mut chain, mut y, mut margins) = (tables.chain(), Vec::new(), Vec::new());
        let best = chain.best(&mut y);
        // Of the best labelling, and of any other that is allowed.
        for y in [y, tables.random_labels(draw)] {
            if tables.score(&y) == f64::NEG_INFINITY {
                continue;
            }
            chain.margins(&y, &mut margins);
            let expected = tables.margins(&y);
            assert_eq!(margins.len(), tables.len);
            assert!(
                margins.iter().zip(&expected).all(|(a, b)| same(*a, *b)),
                "{margins:?}, not {expected:?}: {tables:?}"
            );
        }
        assert!(same(chain.best(&mut Vec::new()), best), "margins leave the chain as it was");
    });
}

#[test]
fn margins_are_infinite_where_no_other_label_is_allowed() {
    for (order, pairs) in KINDS {
        let mut chain = Chain::default();
        chain.resize(3, 3, order, pairs);
        chain.unary_mut(1).copy_from_slice(&[f64::NEG_INFINITY, 2.0, f64::NEG_INFINITY]);
        chain.unary_mut(2)[2] = 4.0;
        let (mut y, mut margins) = (Vec::new(), Vec::new());
        chain.best(&mut y);
        chain.margins(&y, &mut margins);
        assert_eq!((&y[..], &margins[..]), (&[0, 1, 2][..], &[0.0, f64::INFINITY, 4.0][..]));
    }
}

/// `value(errors, score)` of labellings whose number of errors counts.
type Value = Box<dyn Fn(usize, f64) -> f64>;

/// Values as the formulations have them, and some that they do not have. `s0`: the score of the truth.
fn values(s0: f64) -> Vec<Value> {
    let s0 = if s0.is_finite() { s0 } else { 0.0 };
    vec![
        Box::new(move |e, s| e as f64 * (1.0 - (s0 - s))),
        Box::new(move |e, s| (e as f64).sqrt() * (1.0 - (s0 - s))),
        Box::new(|e, s| (e as f64).sqrt() + s),
        Box::new(|e, s| e as f64 + s),
        Box::new(|e, s| f64::from(u8::from(e > 0)) + s),
        Box::new(|e, s| if e == 2 { s } else { s - 100.0 }),
        Box::new(|e, s| s - 5.0 * e as f64),
    ]
}

#[test]
fn counted_by_definition() {
    let mut counts = Counts::default();
    small(5, 2, |draw, tables| {
        let (chain, mut y) = (tables.chain(), Vec::new());
        let truth = tables.random_labels(draw);
        let errors = |y: &[u32]| y.iter().zip(&truth).filter(|(a, b)| a != b).count();
        let all: Vec<(usize, f64)> = tables.all().iter().map(|(score, y)| (errors(y), *score)).collect();
        let allowed = || all.iter().filter(|way| way.1 > f64::NEG_INFINITY);
        for most in 1..=tables.len {
            for value in values(tables.score(&truth)) {
                let best = chain.best_counted(&truth, most, &value, &mut counts, &mut y);
                let expected = allowed().map(|&(e, s)| value(e.min(most), s)).fold(f64::NEG_INFINITY, f64::max);
                assert!(same(best, expected), "{best}, not {expected}; most {most}, truth {truth:?}: {tables:?}");
                if expected == f64::NEG_INFINITY {
                    assert_eq!(y, truth);
                    continue;
                }
                let of_y = value(errors(&y).min(most), tables.score(&y));
                assert!(same(of_y, expected), "{y:?} has {of_y}, not {expected}; most {most}, {truth:?}: {tables:?}");
                let mut again = Vec::new();
                chain.best_counted(&truth, most, &value, &mut counts, &mut again);
                assert_eq!(again, y, "another answer when asked again");
            }
        }
    });
}

/// Counting where it does not matter changes nothing.
#[test]
fn counted_is_the_best_where_errors_do_not_count() {
    small(6, 4, |draw, tables| {
        let (mut chain, mut y) = (tables.chain(), Vec::new());
        let truth = tables.random_labels(draw);
        let best = chain.best(&mut y);
        let counted = chain.best_counted(&truth, tables.len, &|_, s| s, &mut Counts::default(), &mut y);
        assert!(same(best, counted), "{best}, counted {counted}: {tables:?}");
    });
}

/// More labels than the widest vector has lanes, and numbers of them that fill no vector.
#[test]
fn many_labels() {
    let mut draw = Draw(7);
    for labels in [7, 16, 25, 49, 130] {
        for (round, kind) in KINDS.into_iter().enumerate() {
            let scores = [Scores::Integers, Scores::Reals, Scores::Steep][round % 3];
            let tables = Tables::random(&mut draw, (labels, 3), kind, scores, 10);
            let (mut chain, mut y, mut margins) = (tables.chain(), Vec::new(), Vec::new());
            let best = chain.best(&mut y);
            chain.margins(&y, &mut margins);
            let truth = tables.random_labels(&mut draw);
            let (mut expected, mut others, mut counted) =
                (f64::NEG_INFINITY, [f64::NEG_INFINITY; 3], f64::NEG_INFINITY);
            let value = |e: usize, s: f64| (e as f64).sqrt() + s;
            tables.each(|other, score| {
                expected = score.max(expected);
                (0..3).filter(|&t| other[t] != y[t]).for_each(|t| others[t] = score.max(others[t]));
                counted = value(other.iter().zip(&truth).filter(|(a, b)| a != b).count(), score).max(counted);
            });
            assert!(same(best, expected) && same(tables.score(&y), expected), "{labels}: {best}, not {expected}");
            assert!(
                (0..3).all(|t| same(margins[t], best - others[t])),
                "{labels}: {margins:?}, not {best} - {others:?}"
            );
            let mut z = Vec::new();
            let found = chain.best_counted(&truth, 3, &value, &mut Counts::default(), &mut z);
            assert!(same(found, counted), "{labels}: counted {found}, not {counted}");
            assert!(same(chain.n_best(2)[0].0, expected), "{labels}");
        }
    }
}

/// The best score by the textbook, for chains that are too long to search.
fn viterbi(tables: &Tables) -> f64 {
    assert_eq!(tables.order, Order::First);
    let mut last = tables.unary[0].clone();
    for t in 1..tables.len {
        let into =
            |c: usize| (0..tables.labels).map(|a| last[a] + tables.pair[t][a][c]).fold(f64::NEG_INFINITY, f64::max);
        last = (0..tables.labels).map(|c| into(c) + tables.unary[t][c]).collect();
    }
    last.into_iter().fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn long_chains() {
    const LEN: usize = 100_000;
    for kind in [(Order::First, Pairs::Same), (Order::First, Pairs::EachStep)] {
        let tables = Tables::random(&mut Draw(8), (9, LEN), kind, Scores::Integers, 20);
        let (mut chain, mut y, mut margins) = (tables.chain(), Vec::new(), Vec::new());
        let best = chain.best(&mut y);
        assert_eq!((best, tables.score(&y)), (viterbi(&tables), best));
        chain.margins(&y, &mut margins);
        assert!(margins.len() == LEN && margins.iter().all(|&m| m >= 0.0));
        for t in [0, 1, LEN / 2, LEN - 1] {
            // The best without this label here.
            let at = y[t] as usize;
            let kept = std::mem::replace(&mut chain.unary_mut(t)[at], f64::NEG_INFINITY);
            assert_eq!(best - chain.best(&mut Vec::new()), margins[t], "variable {t}");
            chain.unary_mut(t)[at] = kept;
        }
    }
    // The second order has 81 states a variable: shorter, and against itself.
    let tables = Tables::random(&mut Draw(9), (9, 5_000), KINDS[2], Scores::Integers, 0);
    let (mut chain, mut y, mut margins) = (tables.chain(), Vec::new(), Vec::new());
    let best = chain.best(&mut y);
    assert_eq!(tables.score(&y), best);
    chain.margins(&y, &mut margins);
    chain.unary_mut(2_500)[y[2_500] as usize] = f64::NEG_INFINITY;
    assert_eq!(best - chain.best(&mut y), margins[2_500]);
}

/// One chain for all sizes in a row, the small after the large too: the same bits as from a fresh one.
#[test]
fn a_used_chain_is_as_good_as_new() {
    let (mut used, mut used_counts, mut used_margins, mut used_y) =
        (Chain::default(), Counts::default(), vec![7.0], vec![7]);
    small(10, 6, |draw, tables| {
        let (mut fresh, mut margins, mut y) = (tables.chain(), Vec::new(), Vec::new());
        tables.fill(&mut used);
        assert_eq!((used.len(), used.labels(), used.is_empty()), (tables.len, tables.labels, false));
        assert_eq!((used.best(&mut used_y), &used_y), (fresh.best(&mut y), &y), "{tables:?}");
        if fresh.score(&y) > f64::NEG_INFINITY {
            used.margins(&y, &mut used_margins);
            fresh.margins(&y, &mut margins);
            assert_eq!(used_margins, margins, "{tables:?}");
        }
        assert_eq!(used.n_best(5), fresh.n_best(5), "{tables:?}");
        let (truth, most) = (tables.random_labels(draw), 1 + draw.below(tables.len));
        let value = |e: usize, s: f64| (e as f64).sqrt() + s;
        let from_used = used.best_counted(&truth, most, &value, &mut used_counts, &mut used_y);
        let from_fresh = fresh.best_counted(&truth, most, &value, &mut Counts::default(), &mut y);
        assert_eq!((from_used, &used_y), (from_fresh, &y), "{tables:?}");
    });
}

#[test]
fn what_is_too_long_to_count() {
    assert_eq!(can_count(9, 1_000, Order::First, 1_000), Ok(()));
    assert_eq!(can_count(49, 100_000, Order::First, 1), Ok(()), "few errors told apart need little room");
    for (labels, len, order) in
        [(9, 100_000, Order::First), (200, 1_000, Order::Second), (usize::MAX, 9, Order::Second)]
    {
        let refusal = can_count(labels, len, order, len).unwrap_err();
        assert!(refusal.contains(&format!("a sequence of {len} with {labels} labels is too long")), "{refusal}");
    }
}
