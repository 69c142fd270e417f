//! The decoder of factor graphs against exhaustive search: everything that it promises, by definition.

use crate::common;

use common::Draw;
use maxmargin::inference::map::{Counts, Decoder, Found, Scores, is_forest};

/// What scores a table is filled with.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// From -2 to 2: many ties, and no rounding.
    Integers,
    Reals,
}

impl Kind {
    fn draw(self, draw: &mut Draw) -> f64 {
        match self {
            Self::Integers => draw.below(5) as f64 - 2.0,
            Self::Reals => 3.0 * draw.signed(),
        }
    }

    fn of(round: usize) -> Self {
        if round.is_multiple_of(2) { Self::Integers } else { Self::Reals }
    }
}

/// A graph of these domains without factors.
fn variables(draw: &mut Draw, kind: Kind, domains: &[u32]) -> Scores {
    let mut scores = Scores::default();
    for &domain in domains {
        scores.variable(domain).fill_with(|| kind.draw(draw));
    }
    scores
}

/// Adds a factor with a random table.
fn add(draw: &mut Draw, kind: Kind, scores: &mut Scores, scope: &[u32]) {
    let len = scope.iter().map(|&v| scores.domain(v as usize) as usize).product();
    let (table, entries) = scores.table(len);
    entries.fill_with(|| kind.draw(draw));
    scores.factor(scope, table);
}

/// Adds a factor of two variables with two labels.
fn add_pair(scores: &mut Scores, scope: [u32; 2], entries: [f64; 4]) {
    let (table, to) = scores.table(4);
    to.copy_from_slice(&entries);
    scores.factor(&scope, table);
}

/// The sides of a grid, as pairs of places row by row.
fn grid(rows: u32, columns: u32) -> Vec<[u32; 2]> {
    let mut sides = Vec::new();
    for v in 0..rows * columns {
        if v % columns + 1 < columns {
            sides.push([v, v + 1]);
        }
        if v / columns + 1 < rows {
            sides.push([v, v + columns]);
        }
    }
    sides
}

/// The score of a labelling, from the definition.
fn value(scores: &Scores, y: &[u32]) -> f64 {
    let unary: f64 = (0..scores.variables()).map(|v| scores.unary(v)[y[v] as usize]).sum();
    let entry = |f: usize| {
        scores.scope(f).iter().fold(0, |at, &v| at * scores.domain(v as usize) as usize + y[v as usize] as usize)
    };
    unary + (0..scores.factors()).map(|f| scores.scores(f)[entry(f)]).sum::<f64>()
}

/// The largest score of all labellings.
fn exhaustive(scores: &Scores) -> f64 {
    let n = scores.variables();
    let (mut y, mut best) = (vec![0; n], f64::NEG_INFINITY);
    loop {
        best = value(scores, &y).max(best);
        let Some(v) = (0..n).rev().find(|&v| y[v] + 1 < scores.domain(v)) else { return best };
        y[v] += 1;
        y[v + 1..].fill(0);
    }
}

/// Equal, but for the order of a few additions.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * (1.0 + a.abs())
}

/// Decodes with a used decoder and a fresh one, and checks what holds whatever the graph.
fn decode(used: &mut Decoder, scores: &Scores) -> (Found, Vec<u32>) {
    let (mut y, mut again) = (vec![7; 3], Vec::new());
    let found = used.decode(scores, &mut y);
    assert_eq!(y.len(), scores.variables());
    assert!(y.iter().enumerate().all(|(v, &label)| label < scores.domain(v)), "{y:?}: {scores:?}");
    assert!(same(found.value, value(scores, &y)) && same(found.value, scores.value(&y)), "{found:?}: {scores:?}");
    assert!(found.bound >= found.value, "{found:?}");
    let fresh = Decoder::default().decode(scores, &mut again);
    assert_eq!((fresh.value, fresh.bound, &again), (found.value, found.bound, &y), "another answer when asked again");
    (found, y)
}

/// The same against exhaustive search: value <= optimum <= bound. Was the best one found?
fn check(used: &mut Decoder, scores: &Scores) -> (Found, bool) {
    let (found, y) = decode(used, scores);
    let best = exhaustive(scores);
    let slack = 1e-9 * (1.0 + best.abs());
    assert!(found.value <= best + slack && best <= found.bound + slack, "{found:?}, best {best}, {y:?}: {scores:?}");
    let is_best = same(found.value, best);
    assert!(is_best || !found.is_proven(), "{found:?} is not proven, best is {best}: {scores:?}");
    (found, is_best)
}

/// Exact, and known to be.
fn check_exact(used: &mut Decoder, scores: &Scores) {
    let (found, is_best) = check(used, scores);
    assert!(is_best && found.is_proven(), "{found:?}: {scores:?}");
}

#[test]
fn small_and_degenerate() {
    let mut decoder = Decoder::default();
    let mut scores = Scores::default();
    let (found, y) = decode(&mut decoder, &scores);
    assert_eq!((found.value, found.bound, found.is_proven(), y.len()), (0.0, 0.0, true, 0));
    scores.variable(1)[0] = 2.5;
    assert_eq!(decode(&mut decoder, &scores).0.value, 2.5);
    scores.variable(3).copy_from_slice(&[1.0, 4.0, 4.0]);
    assert_eq!(decode(&mut decoder, &scores).1, [0, 1]);
    let (table, entries) = scores.table(3);
    entries.copy_from_slice(&[9.0, 0.0, 0.0]);
    scores.factor(&[0, 1], table);
    scores.factor(&[1, 0], table);
    scores.factor(&[1], table);
    assert_eq!(scores.unary_mut(1), [1.0, 4.0, 4.0]);
    let (found, y) = decode(&mut decoder, &scores);
    assert_eq!((found.value, found.bound, y), (30.5, 30.5, vec![0, 0]));
    let (table, entries) = scores.table(1);
    entries[0] = -1.0;
    scores.factor(&[0], table);
    assert_eq!((scores.variables(), scores.factors(), scores.domain(1)), (2, 4, 3));
    assert_eq!(decode(&mut decoder, &scores).0.value, 29.5);
    scores.clear();
    assert_eq!((scores.variables(), scores.factors()), (0, 0));
}

#[test]
fn ties_go_to_the_earlier_label() {
    let mut decoder = Decoder::default();
    for domain in [2, 3] {
        for sides in [vec![[0, 1], [1, 2]], grid(3, 3)] {
            let mut scores = Scores::default();
            (0..9).for_each(|_| _ = scores.variable(domain));
            let (table, _) = scores.table(domain as usize * domain as usize);
            for side in sides {
                scores.factor(&side, table);
            }
            let (found, y) = decode(&mut decoder, &scores);
            assert!(found.is_proven() && found.value == 0.0 && y == [0; 9], "{found:?} {y:?}");
        }
    }
}

/// Random trees of factors of one to three variables.
#[test]
fn forests() {
    let (mut draw, mut decoder, mut counts) = (Draw(1), Decoder::default(), Counts::default());
    for round in 0..600 {
        let kind = Kind::of(round);
        let n = 1 + draw.below(7);
        let domains: Vec<u32> = (0..n).map(|_| 1 + draw.below(4) as u32).collect();
        let mut scores = variables(&mut draw, kind, &domains);
        let mut scopes: Vec<Vec<u32>> = Vec::new();
        // Each factor takes one variable that is in the forest already, or none, and one or two that are not.
        let mut next = 0;
        while next < n as u32 {
            let mut scope: Vec<u32> = (next..n as u32).take(1 + draw.below(2)).collect();
            if next > 0 && draw.below(4) > 0 {
                scope.insert(draw.below(scope.len() + 1), draw.below(next as usize) as u32);
            }
            next += scope.iter().filter(|&&v| v >= next).count() as u32;
            if draw.below(5) > 0 {
                add(&mut draw, kind, &mut scores, &scope);
                if scope.len() == 2 && draw.below(4) == 0 {
                    scope.swap(0, 1);
                    add(&mut draw, kind, &mut scores, &scope);
                    scopes.push(scope.clone());
                }
                scopes.push(scope);
            }
        }
        (0..draw.below(3)).for_each(|_| {
            let v = draw.below(n) as u32;
            add(&mut draw, kind, &mut scores, &[v]);
        });
        assert!(is_forest(n, scopes.iter()), "{scopes:?}");
        check_exact(&mut decoder, &scores);
        let truth: Vec<u32> = domains.iter().map(|&domain| draw.below(domain as usize) as u32).collect();
        check_counts(&mut counts, &scores, &truth);
    }
}

/// The best labelling with each number of errors, against all labellings.
fn check_counts(counts: &mut Counts, scores: &Scores, truth: &[u32]) {
    let n = truth.len();
    let errors = |y: &[u32]| y.iter().zip(truth).filter(|(a, b)| a != b).count();
    let mut best = vec![f64::NEG_INFINITY; n + 1];
    let mut y = vec![0; n];
    loop {
        let own = &mut best[errors(&y)];
        *own = own.max(scores.value(&y));
        let Some(v) = (0..n).rev().find(|&v| y[v] + 1 < scores.domain(v)) else { break };
        y[v] += 1;
        y[v + 1..].fill(0);
    }
    for (wanted, &best) in best.iter().enumerate() {
        let value = |errors: usize, score: f64| if errors == wanted { score } else { f64::NEG_INFINITY };
        let most = counts.best(scores, truth, &value, &mut y).expect("a forest");
        assert!(
            most == best || (most - best).abs() <= 1e-9 * (1.0 + best.abs()),
            "{wanted} errors: {most} is not {best}"
        );
        if best > f64::NEG_INFINITY {
            assert_eq!(errors(&y), wanted, "{y:?}");
            let found = scores.value(&y);
            assert!((found - best).abs() <= 1e-9 * (1.0 + best.abs()), "{wanted} errors: {found} is not {best}");
        }
    }
}

#[test]
fn errors_are_not_counted_in_loops() {
    let mut scores = variables(&mut Draw(1), Kind::of(0), &[2, 2, 2]);
    let (table, _) = scores.table(4);
    for scope in [[0, 1], [1, 2], [2, 0]] {
        scores.factor(&scope, table);
    }
    assert!(Counts::default().best(&scores, &[0, 0, 0], &|_, score| score, &mut Vec::new()).is_none());
}

#[test]
fn what_a_forest_is() {
    let is = |n: usize, scopes: &[&[u32]]| is_forest(n, scopes.iter());
    assert!(is(0, &[]) && is(3, &[]) && is(3, &[&[0], &[0], &[0, 1], &[2, 1]]));
    assert!(!is(3, &[&[0, 1], &[1, 2], &[2, 0]]));
    assert!(is(2, &[&[0, 1], &[1, 0], &[0, 1]]), "factors of the same two variables are added up");
    assert!(is(5, &[&[0, 1, 2], &[2, 3, 4]]));
    assert!(!is(3, &[&[0, 1, 2], &[0, 1]]) && !is(3, &[&[0, 1], &[0, 1, 2]]));
    assert!(!is(4, &[&[0, 1, 2], &[1, 2, 3]]) && !is(3, &[&[0, 1, 2], &[0, 1, 2]]));
}

/// Two labels and pairs on random graphs. `sign` makes of a coupling that of the pair.
fn binary(draw: &mut Draw, kind: Kind, strength: f64, sign: impl Fn(&mut Draw, u32, u32) -> f64) -> Scores {
    let n = 2 + draw.below(9) as u32;
    let mut scores = variables(draw, kind, &vec![2; n as usize]);
    for _ in 0..draw.below(3 * n as usize) {
        let (a, b) = (draw.below(n as usize) as u32, draw.below(n as usize) as u32);
        if a != b {
            let mut entries = [0.0; 4].map(|_| kind.draw(draw));
            let w = entries[0] + entries[3] - entries[1] - entries[2];
            let wanted = strength * sign(draw, a, b) * w.abs();
            entries[3] += wanted - w;
            add_pair(&mut scores, [a, b], entries);
        }
    }
    scores
}

#[test]
fn labels_that_attract_each_other() {
    let (mut draw, mut decoder) = (Draw(2), Decoder::default());
    for round in 0..1000 {
        let scores = binary(&mut draw, Kind::of(round), [1.0, 0.25, 4.0][round % 3], |_, _, _| 1.0);
        check_exact(&mut decoder, &scores);
    }
}

/// Attraction within two camps and repulsion between them: cycles, but none is frustrated.
#[test]
fn two_camps() {
    let (mut draw, mut decoder) = (Draw(3), Decoder::default());
    for round in 0..1000 {
        let camps = draw.next();
        let camp = |v: u32| camps >> v & 1;
        let sign = |_: &mut Draw, a: u32, b: u32| if camp(a) == camp(b) { 1.0 } else { -1.0 };
        let scores = binary(&mut draw, Kind::of(round), [1.0, 0.25, 4.0][round % 3], sign);
        check_exact(&mut decoder, &scores);
    }
}

#[test]
fn two_labels_of_both_signs() {
    let (mut draw, mut decoder) = (Draw(4), Decoder::default());
    let (mut proven, mut best) = (0, 0);
    for round in 0..1000 {
        let sign = |draw: &mut Draw, _, _| if draw.below(2) == 0 { 1.0 } else { -1.0 };
        let scores = binary(&mut draw, Kind::of(round), [1.0, 0.25, 4.0][round % 3], sign);
        let (found, is_best) = check(&mut decoder, &scores);
        proven += usize::from(found.is_proven());
        best += usize::from(is_best);
    }
    assert!(proven >= 980 && best >= 995, "{proven} proven, {best} best");
}

/// Domains of one to four labels, and factors of one to three variables, on any graph.
#[test]
fn any_graph() {
    let (mut draw, mut decoder) = (Draw(5), Decoder::default());
    let (mut proven, mut best) = (0, 0);
    for round in 0..1000 {
        let kind = Kind::of(round);
        let n = 2 + draw.below(5);
        let domains: Vec<u32> = (0..n).map(|_| 1 + draw.below(4) as u32).collect();
        let mut scores = variables(&mut draw, kind, &domains);
        for _ in 0..=draw.below(2 * n) {
            let mut scope: Vec<u32> = Vec::new();
            for _ in 0..=draw.below(3) {
                let v = draw.below(n) as u32;
                if !scope.contains(&v) {
                    scope.push(v);
                }
            }
            add(&mut draw, kind, &mut scores, &scope);
        }
        let (found, is_best) = check(&mut decoder, &scores);
        proven += usize::from(found.is_proven());
        best += usize::from(is_best);
    }
    assert!(proven >= 950 && best >= 990, "{proven} proven, {best} best");
}

/// Scores of labels alone at random, and the same label for neighbours is worth `strength`.
fn potts(draw: &mut Draw, (rows, columns): (u32, u32), labels: u32, strength: f64) -> Scores {
    let mut scores = variables(draw, Kind::Reals, &vec![labels; (rows * columns) as usize]);
    let k = labels as usize;
    let (table, entries) = scores.table(k * k);
    (0..k).for_each(|label| entries[label * k + label] = strength);
    for side in grid(rows, columns) {
        scores.factor(&side, table);
    }
    scores
}

#[test]
fn potts_grids() {
    let (mut draw, mut decoder) = (Draw(6), Decoder::default());
    let mut proven = 0;
    for round in 0..60 {
        let scores = potts(&mut draw, (3, 3), 3, [0.5, 1.0, 2.0][round % 3]);
        proven += usize::from(check(&mut decoder, &scores).0.is_proven());
    }
    assert!(proven >= 57, "{proven} of 60");
    let mut proven = 0;
    let mut gap: f64 = 0.0;
    for round in 0..30 {
        let scores = potts(&mut draw, (12, 16), 6, [0.25, 0.5, 1.0][round % 3]);
        let (found, _) = decode(&mut decoder, &scores);
        proven += usize::from(found.is_proven());
        gap = gap.max((found.bound - found.value) / found.value);
    }
    assert!(proven >= 22 && gap < 2e-3, "{proven} of 30, {gap}");
}

#[test]
fn a_chain_of_a_million() {
    const N: usize = 1_000_000;
    let mut draw = Draw(7);
    let mut scores = variables(&mut draw, Kind::Integers, &vec![3; N]);
    let (table, entries) = scores.table(9);
    entries.fill_with(|| Kind::Integers.draw(&mut draw));
    (1..N as u32).for_each(|v| scores.factor(&[v - 1, v], table));
    let mut y = Vec::new();
    let found = Decoder::default().decode(&scores, &mut y);
    // Viterbi.
    let mut last = scores.unary(0).to_vec();
    for v in 1..N {
        let into = |b: usize| (0..3).map(|a| last[a] + scores.scores(v - 1)[a * 3 + b]).fold(f64::MIN, f64::max);
        last = (0..3).map(|b| into(b) + scores.unary(v)[b]).collect();
    }
    let best = last.into_iter().fold(f64::MIN, f64::max);
    assert_eq!((found.value, found.bound, scores.value(&y)), (best, best, best));
}

#[test]
fn a_large_attractive_grid() {
    const SIDE: u32 = 300;
    let mut draw = Draw(8);
    let scores = potts(&mut draw, (SIDE, SIDE), 2, 1.0);
    let mut y = Vec::new();
    let found = Decoder::default().decode(&scores, &mut y);
    assert!(found.is_proven() && same(found.value, scores.value(&y)), "{found:?}");
    // No single label can be changed for the better.
    for v in (0..y.len()).step_by(997) {
        y[v] = 1 - y[v];
        assert!(scores.value(&y) <= found.value + 1e-6, "variable {v}");
        y[v] = 1 - y[v];
    }
}

/// Larger graphs with cycles, whose decoder has been used for others before.
#[test]
fn larger_loopy_graphs() {
    let (mut draw, mut decoder) = (Draw(9), Decoder::default());
    for round in 0..6 {
        let mut scores = variables(&mut draw, Kind::Reals, &[2 + round as u32 % 3; 200]);
        for _ in 0..300 {
            let mut scope: Vec<u32> = (0..2 + round / 3).map(|_| draw.below(200) as u32).collect();
            scope.sort_unstable();
            scope.dedup();
            add(&mut draw, Kind::Reals, &mut scores, &scope);
        }
        let (found, y) = decode(&mut decoder, &scores);
        // Factors of three at random leave the relaxation loose.
        let gap = if round < 3 { 1e-9 } else { 0.25 };
        assert!(found.bound - found.value < gap * found.value, "{found:?}");
        assert!(found.value >= scores.value(&y) - 1e-9);
    }
}

#[test]
#[should_panic(expected = "distinct")]
fn variables_of_a_factor_are_distinct() {
    let mut scores = Scores::default();
    scores.variable(2);
    let (table, _) = scores.table(4);
    scores.factor(&[0, 0], table);
}

#[test]
#[should_panic(expected = "an entry for each labelling")]
fn tables_are_as_large_as_their_factors() {
    let mut scores = Scores::default();
    scores.variable(2);
    scores.variable(3);
    let (table, _) = scores.table(5);
    scores.factor(&[0, 1], table);
}
