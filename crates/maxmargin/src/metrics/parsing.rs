//! Figures of parse trees, as evalb computes them with Collins' parameters.
//!
//! A bracket is a phrase with the words that it is over; tags are none, and neither is what stands over a whole tree as `TOP`,
//! `ROOT`, `S1` or without a label. Punctuation (`,` `:` `.` and quotes) is left out of sentences first, and phrases over
//! nothing else with it; `PRT` counts as `ADVP`. Brackets that are there twice count twice.

use serde::Serialize;

use crate::data::dictionary::Dictionary;
use crate::data::trees::Tree;
use crate::tasks::parsing::common;

/// Labels of no bracket.
const NO_BRACKETS: [&[u8]; 4] = [b"", b"TOP", b"ROOT", b"S1"];
/// Tags of punctuation.
const PUNCTUATION: [&[u8]; 5] = [b",", b":", b"``", b"''", b"."];
/// Sentences of at most so many words are also counted apart.
const LENGTHS: [usize; 4] = [10, 15, 20, 40];

/// Figures of some sentences.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Figures {
    /// Number of sentences.
    pub examples: u64,
    /// Sentences without a predicted tree: none of their brackets is found.
    pub missing: u64,
    /// Brackets of the predictions that are right.
    pub bracket_precision: f64,
    /// Brackets of the truth that were found.
    pub bracket_recall: f64,
    /// The harmonic mean of both.
    pub bracket_f1: f64,
    /// Sentences all of whose brackets are right.
    pub exact_match: f64,
    /// Predicted brackets a sentence that cross one of the truth.
    pub crossing: f64,
    /// Sentences without a crossing.
    pub no_crossing: f64,
}

/// The figures of all sentences, and of short ones.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// Of all.
    #[serde(flatten)]
    pub all: Figures,
    /// Of those with at most so many words.
    pub by_length: Vec<(usize, Figures)>,
}

/// Counts, before they become shares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    examples: u64,
    missing: u64,
    matched: u64,
    told: u64,
    true_ones: u64,
    exact: u64,
    crossing: u64,
    no_crossing: u64,
}

impl Counts {
    fn add(&mut self, other: Self) {
        self.examples += other.examples;
        self.missing += other.missing;
        self.matched += other.matched;
        self.told += other.told;
        self.true_ones += other.true_ones;
        self.exact += other.exact;
        self.crossing += other.crossing;
        self.no_crossing += other.no_crossing;
    }

    fn figures(&self) -> Figures {
        let share = |part: u64, of: u64| if of > 0 { part as f64 / of as f64 } else { 0.0 };
        Figures {
            examples: self.examples,
            missing: self.missing,
            bracket_precision: share(self.matched, self.told),
            bracket_recall: share(self.matched, self.true_ones),
            bracket_f1: share(2 * self.matched, self.told + self.true_ones),
            exact_match: share(self.exact, self.examples),
            crossing: share(self.crossing, self.examples),
            no_crossing: share(self.no_crossing, self.examples),
        }
    }
}

/// A bracket: its label, and the words from the first up to the second.
type Bracket<'l> = (&'l [u8], usize, usize);

/// Compares trees.
#[derive(Debug, Clone, Default)]
pub struct Evaluator {
    all: Counts,
    by_length: [Counts; LENGTHS.len()],
}

impl Evaluator {
    /// Adds a sentence: the true tree, and the predicted one, if there is one. Both have the same words.
    pub fn add(&mut self, labels: &Dictionary, truth: &Tree, found: Option<&Tree>) {
        let (of_truth, length) = brackets(labels, truth, truth);
        // The tags of the truth say what is punctuation.
        let of_found = found.map_or(Vec::new(), |found| brackets(labels, found, truth).0);
        let matched = common(&of_truth, &of_found) as u64;
        let crosses = |a: &Bracket<'_>| {
            of_truth.iter().any(|b| a.1 < b.1 && b.1 < a.2 && a.2 < b.2 || b.1 < a.1 && a.1 < b.2 && b.2 < a.2)
        };
        let crossing = of_found.iter().filter(|bracket| crosses(bracket)).count() as u64;
        let counts = Counts {
            examples: 1,
            missing: u64::from(found.is_none()),
            matched,
            told: of_found.len() as u64,
            true_ones: of_truth.len() as u64,
            exact: u64::from(found.is_some() && of_truth == of_found),
            crossing,
            no_crossing: u64::from(crossing == 0),
        };
        self.all.add(counts);
        for (at_most, counted) in LENGTHS.iter().zip(&mut self.by_length) {
            if length <= *at_most {
                counted.add(counts);
            }
        }
    }

    /// Adds what another one has counted.
    pub fn merge(&mut self, other: &Self) {
        self.all.add(other.all);
        self.by_length.iter_mut().zip(&other.by_length).for_each(|(own, other)| own.add(*other));
    }

    /// The figures.
    pub fn finish(&self) -> Evaluation {
        let by_length = LENGTHS.iter().zip(&self.by_length).map(|(&length, counts)| (length, counts.figures()));
        Evaluation { all: self.all.figures(), by_length: by_length.collect() }
    }
}

/// The brackets of a tree, in order, and the number of words, both without what `tagged` has as punctuation.
fn brackets<'l>(labels: &'l Dictionary, tree: &Tree, tagged: &Tree) -> (Vec<Bracket<'l>>, usize) {
    // The number of words that count before each word.
    let mut before = vec![0];
    for tag in tagged.tags() {
        let is_word = !PUNCTUATION.contains(&labels.name(tag));
        before.push(before[before.len() - 1] + usize::from(is_word));
    }
    let mut found = Vec::new();
    for (_, node) in tree.nodes().iter().enumerate().filter(|(at, _)| !tree.is_tag(*at)) {
        let label = match labels.name(node.label) {
            b"PRT" => b"ADVP",
            label => label,
        };
        let (from, to) = (before[node.span().start], before[node.span().end]);
        if from < to && !NO_BRACKETS.contains(&label) {
            found.push((label, from, to));
        }
    }
    found.sort_unstable();
    (found, before[before.len() - 1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::input::Input;
    use crate::data::trees::{Strip, read};

    fn evaluated(pairs: &[(&str, &str)]) -> Evaluation {
        let mut evaluator = Evaluator::default();
        for (truth, found) in pairs {
            let text = format!("{truth}\n{found}");
            let bank = read(Input::new("trees", text.as_bytes()).unwrap(), Strip::default()).unwrap();
            let mut one = Evaluator::default();
            one.add(&bank.labels, &bank.trees[0], bank.trees.get(1));
            evaluator.merge(&one);
        }
        evaluator.finish()
    }

    #[test]
    fn brackets_are_compared_as_evalb_does() {
        // Of S 0-4, NP 0-1, VP 1-4, NP 2-4 all but the last are found, and NP 1-3, which crosses it.
        let truth = "(ROOT (S (NP (N a)) (VP (V b) (NP (D c) (N d))) (. .)))";
        let found = "(ROOT (S (NP (N a)) (VP (NP (V b) (D c)) (N d)) (. .)))";
        let all = evaluated(&[(truth, found)]).all;
        assert_eq!((all.bracket_precision, all.bracket_recall, all.bracket_f1), (0.75, 0.75, 0.75));
        assert_eq!((all.exact_match, all.crossing, all.no_crossing), (0.0, 1.0, 0.0));
        let all = evaluated(&[(truth, found), (truth, truth), (truth, "")]).all;
        assert_eq!((all.examples, all.missing), (3, 1));
        assert_eq!((all.bracket_precision, all.bracket_recall), (7.0 / 8.0, 7.0 / 12.0));
        assert_eq!((all.exact_match, all.crossing, all.no_crossing), (1.0 / 3.0, 1.0 / 3.0, 2.0 / 3.0));
    }

    #[test]
    fn punctuation_and_the_root_do_not_count() {
        let same = evaluated(&[
            ("(TOP (S (NP (N a)) (, ,) (VP (V b)) (. .)))", "(S (NP (N a) (, ,)) (VP (V b) (. .)))"),
            ("(S (PRT (RP up)) (X (: :) (. .)))", "(S (ADVP (RP up)) (: :) (. .))"),
            ("( (S (A a) (B b)) )", "(S (A a) (B b))"),
        ]);
        assert_eq!((same.all.bracket_f1, same.all.exact_match), (1.0, 1.0));
        // Twice the same bracket is not once.
        let twice = evaluated(&[("(NP (NP (N a)))", "(NP (N a))")]).all;
        assert_eq!((twice.bracket_precision, twice.bracket_recall), (1.0, 0.5));
    }

    #[test]
    fn short_sentences_are_counted_apart() {
        let long = format!("(S {})", "(N a) ".repeat(11));
        let figures = evaluated(&[(&long, &long), ("(S (A a) (B b))", "(X (A a) (B b))")]);
        let examples: Vec<_> = figures.by_length.iter().map(|(length, figures)| (*length, figures.examples)).collect();
        assert_eq!(examples, [(10, 1), (15, 2), (20, 2), (40, 2)]);
        assert_eq!((figures.by_length[0].1.bracket_f1, figures.all.bracket_f1), (0.0, 0.5));
    }
}
