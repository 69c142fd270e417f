//! Tagged sentences.

use std::io::Write;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::{Random, mixed};
use crate::error::{Error, Result};

/// How many sentences, of what kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TagSizes {
    /// Number of sentences, at least 1.
    pub examples: u64,
    /// Number of tags, at least 2.
    pub tags: u32,
    /// Number of words of each tag, at least 1.
    pub words: u32,
    /// Mean number of tokens of a sentence, at least 1.
    pub length: u32,
    /// Probability, from 0 to 1, that a token gets a wrong tag.
    pub noise: f64,
}

impl Default for TagSizes {
    fn default() -> Self {
        Self { examples: 1000, tags: 12, words: 2000, length: 15, noise: 0.0 }
    }
}

impl TagSizes {
    /// Are all sizes within their ranges?
    pub fn check(&self) -> Result<()> {
        let most = 1 << 20;
        for (name, value, least) in [("tags", self.tags, 2), ("words", self.words, 1), ("length", self.length, 1)] {
            if !(least..=most).contains(&value) {
                return Err(Error::setting(name, format!("must be from {least} to {most}")));
            }
        }
        if self.examples == 0 {
            return Err(Error::setting("examples", "must be at least 1"));
        }
        if !(0.0..=1.0).contains(&self.noise) {
            return Err(Error::setting("noise", format!("{} is not a probability (from 0 to 1)", self.noise)));
        }
        Ok(())
    }
}

/// Tags that a tag prefers as its next ones, the first twice as much as the second, and so on.
const SUCCESSORS: u32 = 3;

/// Writes tagged sentences in columns, `WORD<TAB>TAG`: a hidden Markov chain in which each tag prefers three others as its
/// next; words are drawn with frequencies that fall like 1/rank, a quarter of them may have any tag, the others end in
/// letters that hint at theirs. `name` stands for `out` in errors.
pub fn tag(sizes: &TagSizes, seed: u64, out: &mut impl Write, name: &str) -> Result<()> {
    sizes.check()?;
    let mut random = Random { source: Xoshiro256PlusPlus::seed_from_u64(seed) };
    let hidden = mixed(seed ^ 0x7461_6773);
    let mut text = Vec::new();
    for i in 0..sizes.examples {
        text.clear();
        if i > 0 {
            text.push(b'\n');
        }
        let length = 1 + random.below(2 * sizes.length - 1);
        let mut tag = random.below(sizes.tags);
        for t in 0..length {
            if t > 0 {
                tag = next(tag, sizes.tags, hidden, &mut random);
            }
            word(tag, sizes.words, hidden, &mut random, &mut text);
            let is_wrong = random.happens(sizes.noise);
            let shown = if is_wrong { (tag + 1 + random.below(sizes.tags - 1)) % sizes.tags } else { tag };
            text.extend_from_slice(format!("\tT{}\n", shown + 1).as_bytes());
        }
        out.write_all(&text).map_err(|e| Error::io(name, e))?;
    }
    out.flush().map_err(|e| Error::io(name, e))
}

fn next(tag: u32, tags: u32, hidden: u64, random: &mut Random) -> u32 {
    if random.happens(0.2) {
        return random.below(tags);
    }
    let mut choice = 0;
    while choice + 1 < SUCCESSORS && random.happens(0.5) {
        choice += 1;
    }
    (mixed(hidden ^ u64::from(tag) << 8 ^ u64::from(choice)) % u64::from(tags)) as u32
}

/// Spells a word of this tag.
pub(super) fn word(tag: u32, words: u32, hidden: u64, random: &mut Random, text: &mut Vec<u8>) {
    const CONSONANTS: &[u8] = b"bcdfghjklmnprstvwz";
    const VOWELS: &[u8] = b"aeiou";
    // Uniform among ranks of about the same size: frequencies fall like 1/rank.
    let sizes = u32::BITS - words.leading_zeros();
    let low = 1_u32 << random.below(sizes);
    let rank = (low - 1 + random.below(low)).min(words - 1);
    let of_rank = mixed(hidden.wrapping_add(u64::from(rank)));
    let is_shared = of_rank.is_multiple_of(4);
    let mut letters = if is_shared { of_rank } else { mixed(of_rank ^ u64::from(tag) << 32) } >> 2;
    let syllables = 1 + letters % 3 + u64::from(rank > 100);
    let mut syllable = |letters: &mut u64| {
        text.push(CONSONANTS[(*letters % 18) as usize]);
        text.push(VOWELS[(*letters / 18 % 5) as usize]);
        *letters = mixed(*letters);
    };
    for _ in 0..syllables {
        syllable(&mut letters);
    }
    if !is_shared {
        syllable(&mut mixed(hidden ^ u64::from(tag) << 40));
    }
}
