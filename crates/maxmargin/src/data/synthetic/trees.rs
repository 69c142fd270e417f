//! Trees.

use std::collections::HashSet;
use std::io::Write;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::sentences::word;
use super::{Random, mixed};
use crate::error::{Error, Result};

/// How many trees, of what kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseSizes {
    /// Number of trees, at least 1.
    pub examples: u64,
    /// Number of rules of the hidden grammar, where those with more than two children count as the rules with two that they are
    /// made of; at least two for each phrase.
    pub rules: u32,
    /// Number of tags, at least 2.
    pub tags: u32,
    /// Number of labels of phrases, at least 1.
    pub phrases: u32,
    /// Most words of a sentence, at least 1; the mean is two thirds of it.
    pub length: u32,
    /// Number of words of each tag, at least 1.
    pub words: u32,
}

impl Default for ParseSizes {
    fn default() -> Self {
        Self { examples: 1000, rules: 200, tags: 20, phrases: 8, length: 15, words: 50 }
    }
}

impl ParseSizes {
    /// Are all sizes within their ranges?
    pub fn check(&self) -> Result<()> {
        if self.examples == 0 {
            return Err(Error::setting("examples", "must be at least 1"));
        }
        let most = 1 << 20;
        for (name, value, least, most) in [
            ("tags", self.tags, 2, most),
            ("phrases", self.phrases, 1, 1 << 16),
            ("length", self.length, 1, 1 << 16),
            ("words", self.words, 1, most),
        ] {
            if !(least..=most).contains(&value) {
                return Err(Error::setting(name, format!("must be from {least} to {most}")));
            }
        }
        // As many as there are rules with two children: more would be rules with many only.
        let symbols = u64::from(self.tags + self.phrases);
        let (least, most) = (2 * self.phrases, (u64::from(self.phrases) * symbols * symbols).min(most.into()));
        if self.rules < least || u64::from(self.rules) > most {
            let (phrases, tags) = (self.phrases, self.tags);
            let rule = format!("must be from {least} to {most} with {phrases} phrases and {tags} tags");
            return Err(Error::setting("rules", rule));
        }
        Ok(())
    }
}

/// Writes trees in brackets, one a line, with phrases `P1` (the root) and so on, tags `T1` and so on: those of a hidden
/// context-free grammar whose phrases prefer some rules, with frequencies that fall like 1/rank, and some of them more below
/// another phrase, which no grammar read off the trees knows. Words are drawn as those of tagged sentences are. `name` stands
/// for `out` in errors.
pub fn parse(sizes: &ParseSizes, seed: u64, out: &mut impl Write, name: &str) -> Result<()> {
    sizes.check()?;
    let mut random = Random { source: Xoshiro256PlusPlus::seed_from_u64(seed) };
    let hidden = mixed(seed ^ 0x0074_7265_6573);
    let grammar = Hidden::new(sizes, hidden, &mut random);
    let mut text = Vec::new();
    for _ in 0..sizes.examples {
        text.clear();
        let length = 1 + random.below(sizes.length).max(random.below(sizes.length));
        grammar.tree(length, &mut random, &mut text, |tag, random, text| {
            word(tag, sizes.words, hidden, random, text);
        });
        text.push(b'\n');
        out.write_all(&text).map_err(|e| Error::io(name, e))?;
    }
    out.flush().map_err(|e| Error::io(name, e))
}

/// A child of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Symbol {
    Phrase(u32),
    Tag(u32),
}

struct Rule {
    children: Vec<Symbol>,
    /// Number of phrases among them.
    phrases: u32,
    /// Tells it from other rules.
    number: u64,
}

/// The grammar behind the trees.
struct Hidden {
    /// Rules by phrase, the more frequent ones first.
    rules: Vec<Vec<Rule>>,
    hidden: u64,
}

/// What of a tree is still to be written.
enum Item {
    /// A phrase over so many words, and the phrase above it.
    Phrase(u32, u32, u32),
    Tag(u32),
    End,
}

impl Hidden {
    fn new(sizes: &ParseSizes, hidden: u64, random: &mut Random) -> Self {
        let mut grammar = Self { rules: (0..sizes.phrases).map(|_| Vec::new()).collect(), hidden };
        let mut seen = HashSet::new();
        let mut left = sizes.rules;
        // Each phrase can be over one word, and over any number of words.
        for phrase in 0..sizes.phrases {
            let tag = random.below(sizes.tags);
            let rest = [Symbol::Tag(random.below(sizes.tags)), Symbol::Phrase(random.below(sizes.phrases))];
            for children in [vec![Symbol::Tag(tag)], rest.to_vec()] {
                seen.insert((phrase, children.clone()));
                grammar.add(phrase, children);
                left -= 1;
            }
        }
        let mut phrase = 0;
        while left > 0 {
            let children = grammar.children(phrase, sizes, left, random, |children| seen.insert((phrase, children)));
            left -= (children.len() as u32 - 1).max(1).min(left);
            grammar.add(phrase, children);
            phrase = (phrase + 1) % sizes.phrases;
        }
        // What came first is not what is frequent.
        for rules in &mut grammar.rules {
            rules.sort_by_key(|rule| mixed(hidden ^ rule.number));
        }
        grammar
    }

    fn add(&mut self, phrase: u32, children: Vec<Symbol>) {
        let phrases = children.iter().filter(|child| matches!(child, Symbol::Phrase(_))).count() as u32;
        let rules = &mut self.rules[phrase as usize];
        let number = u64::from(phrase) << 32 | rules.len() as u64;
        rules.push(Rule { children, phrases, number });
    }

    /// Children that `is_new` has not seen below this phrase; for rules with two children, not more than `left` of them.
    fn children(
        &self,
        phrase: u32,
        sizes: &ParseSizes,
        left: u32,
        random: &mut Random,
        mut is_new: impl FnMut(Vec<Symbol>) -> bool,
    ) -> Vec<Symbol> {
        /// Where so many are known, rules with another child are tried.
        const TRIES: u32 = 20;
        for at in 0.. {
            let mut count = match random.below(20) {
                0 => 1,
                1..=14 => 2,
                15..=18 => 3,
                _ => 4,
            };
            count = count.min(left + 1) + at / TRIES;
            let mut children: Vec<Symbol> = (0..count).map(|_| self.child(phrase, sizes, random)).collect();
            if let [Symbol::Phrase(below)] = children[..] {
                // Phrases over one phrase only go one way, so that no row of them goes in circles.
                if below <= phrase {
                    children = vec![Symbol::Tag(random.below(sizes.tags))];
                }
            }
            if is_new(children.clone()) {
                return children;
            }
        }
        unreachable!("there are always rules with more children")
    }

    /// A child of a phrase: each phrase prefers some.
    fn child(&self, phrase: u32, sizes: &ParseSizes, random: &mut Random) -> Symbol {
        let of = if random.happens(0.4) { sizes.phrases } else { sizes.tags };
        // The smaller of two: some are seen more.
        let rank = if random.happens(0.5) { random.below(of) } else { random.below(of).min(random.below(of)) };
        let child = (u64::from(rank) + mixed(self.hidden ^ u64::from(phrase) << 16) % u64::from(of)) % u64::from(of);
        if of == sizes.phrases { Symbol::Phrase(child as u32) } else { Symbol::Tag(child as u32) }
    }

    /// A rule of a phrase over `length` words, below the phrase `above`.
    fn rule(&self, phrase: u32, length: u32, above: u32, random: &mut Random) -> &Rule {
        let rules = &self.rules[phrase as usize];
        let weight = |(rank, rule): (usize, &Rule)| {
            let count = rule.children.len() as u32;
            let fits = if rule.phrases == 0 { count == length } else { count <= length };
            let likes = mixed(self.hidden ^ mixed(rule.number) ^ u64::from(above)).is_multiple_of(4);
            let liking = if likes { 4.0 } else { 1.0 };
            if fits { liking / (rank + 3) as f64 } else { 0.0 }
        };
        let weights = || rules.iter().enumerate().map(weight);
        let mut rest = random.uniform() * weights().sum::<f64>();
        let mut last = 0;
        for (at, weight) in weights().enumerate().filter(|(_, weight)| *weight > 0.0) {
            last = at;
            rest -= weight;
            if rest < 0.0 {
                break;
            }
        }
        &rules[last]
    }

    /// Writes a tree of `length` words.
    fn tree(
        &self,
        length: u32,
        random: &mut Random,
        text: &mut Vec<u8>,
        mut word: impl FnMut(u32, &mut Random, &mut Vec<u8>),
    ) {
        let mut items = vec![Item::Phrase(0, length, 0)];
        while let Some(item) = items.pop() {
            if !matches!(item, Item::End) && !text.is_empty() {
                text.push(b' ');
            }
            match item {
                Item::End => text.push(b')'),
                Item::Tag(tag) => {
                    text.extend_from_slice(format!("(T{} ", tag + 1).as_bytes());
                    word(tag, random, text);
                    text.push(b')');
                }
                Item::Phrase(phrase, length, above) => {
                    text.extend_from_slice(format!("(P{}", phrase + 1).as_bytes());
                    let rule = self.rule(phrase, length, above, random);
                    items.push(Item::End);
                    // Words that are not given to a child yet, beside one for each, and phrases to take them.
                    let (mut spare, mut phrases) = (length - rule.children.len() as u32, rule.phrases);
                    let first = items.len();
                    for child in &rule.children {
                        items.push(match *child {
                            Symbol::Tag(tag) => Item::Tag(tag),
                            Symbol::Phrase(child) => {
                                phrases -= 1;
                                let own = if phrases == 0 { spare } else { random.below(spare + 1) };
                                spare -= own;
                                Item::Phrase(child, own + 1, phrase)
                            }
                        });
                    }
                    items[first..].reverse();
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::input::Input;
    use crate::data::trees::{Shape, Strip, Treebank, grammar, read};

    fn text(sizes: &ParseSizes, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        parse(sizes, seed, &mut out, "memory").unwrap();
        out
    }

    fn bank(sizes: &ParseSizes, seed: u64) -> Treebank {
        read(Input::new("synthetic", text(sizes, seed).as_slice()).unwrap(), Strip::default()).unwrap()
    }

    #[test]
    fn the_same_seed_gives_these_bytes_for_ever() {
        let sizes = ParseSizes { examples: 200, ..ParseSizes::default() };
        let other = ParseSizes { rules: 900, tags: 7, phrases: 12, length: 40, words: 3, ..sizes };
        assert_eq!([sizes, other].map(|sizes| crc32fast::hash(&text(&sizes, 1))), [2_613_333_434, 2_330_341_468]);
        assert_ne!(text(&sizes, 1), text(&sizes, 2));
    }

    #[test]
    fn sizes_are_kept() {
        let sizes = ParseSizes::default();
        let bank = bank(&sizes, 3);
        let lengths: Vec<usize> = bank.trees.iter().map(|tree| tree.words().len()).collect();
        assert_eq!((lengths.len(), lengths.iter().max()), (1000, Some(&15)));
        assert!((9_500..11_000).contains(&lengths.iter().sum::<usize>()));
        let found = grammar(&bank, Shape::default()).unwrap().grammar;
        assert!(found.phrases() == 8 && found.parts().tags == 20 && found.parts().roots.len() == 1);
        assert!((160..=240).contains(&found.len()), "{}", found.len());
    }

    #[test]
    fn many_rules_are_seen() {
        for seed in 0..3 {
            let bank = bank(&ParseSizes { examples: 10_000, rules: 5000, ..ParseSizes::default() }, seed);
            let found = grammar(&bank, Shape::default()).unwrap().grammar;
            assert!((4000..6000).contains(&found.len()), "{}", found.len());
        }
    }

    #[test]
    fn the_smallest_and_odd_sizes_will_do() {
        let smallest = ParseSizes { examples: 3, rules: 2, tags: 2, phrases: 1, length: 1, words: 1 };
        assert!(bank(&smallest, 1).trees.iter().all(|tree| tree.words().len() == 1));
        for sizes in [
            ParseSizes { length: 200, ..smallest },
            ParseSizes { rules: 9, length: 5, ..smallest },
            ParseSizes { phrases: 100, rules: 200, length: 300, ..smallest },
        ] {
            let bank = bank(&sizes, 2);
            assert!(bank.trees.iter().all(|tree| (1..=sizes.length as usize).contains(&tree.words().len())));
        }
    }

    #[test]
    fn bad_sizes_are_refused_by_name() {
        let good = ParseSizes::default();
        for (sizes, name) in [
            (ParseSizes { examples: 0, ..good }, "examples"),
            (ParseSizes { tags: 1, ..good }, "tags"),
            (ParseSizes { tags: u32::MAX, ..good }, "tags"),
            (ParseSizes { phrases: 0, ..good }, "phrases"),
            (ParseSizes { length: 0, ..good }, "length"),
            (ParseSizes { words: 0, ..good }, "words"),
            (ParseSizes { rules: 15, ..good }, "rules"),
            (ParseSizes { rules: 10_000, ..good }, "rules"),
        ] {
            let error = parse(&sizes, 0, &mut Vec::new(), "memory").unwrap_err();
            assert!(matches!(error, Error::Setting { name: n, .. } if n == name), "{error}");
        }
        let error = ParseSizes { rules: 15, ..good }.check().unwrap_err().to_string();
        assert_eq!(error, "rules: must be from 16 to 6272 with 8 phrases and 20 tags");
    }
}
