//! Homologues and decoys.

use std::io::Write;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::{Random, mixed, unit};
use crate::data::alignments::{self, Alphabet, Record, Residues};
use crate::error::{Error, Result};
use crate::inference::align::{Op, Path};

/// How many native sequences, of what kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AlignSizes {
    /// Number of native sequences, at least 1.
    pub examples: u64,
    /// Residues of a native sequence and of a decoy, at least 1; a homologue has about as many.
    pub length: u32,
    /// Number of letters, from 2 to 52.
    pub letters: u32,
    /// Decoys of a native sequence.
    pub decoys: u32,
    /// Operations that lead from a part of the native sequence to a part of its homologue.
    pub operations: u32,
    /// Share of operations that keep a residue.
    pub matches: f64,
    /// Share of operations that put a residue in. What is left replaces one.
    pub insertions: f64,
    /// Share of operations that leave a residue out.
    pub deletions: f64,
    /// Probability that a residue is replaced by the one that is preferred in its place; else by any.
    pub preference: f64,
}

impl Default for AlignSizes {
    /// As in Joachims 2003, which Tsochantaridis, Hofmann, Joachims, Altun 2004 take their data from.
    fn default() -> Self {
        Self {
            examples: 100,
            length: 50,
            letters: 20,
            decoys: 10,
            operations: 30,
            matches: 0.2,
            insertions: 0.2,
            deletions: 0.2,
            preference: 1.0,
        }
    }
}

impl AlignSizes {
    /// Are all sizes within their ranges?
    pub fn check(&self) -> Result<()> {
        const MOST: u32 = 1 << 24;
        let sizes = [
            ("length", self.length, 1, MOST),
            ("letters", self.letters, 2, NAMES.len() as u32),
            ("decoys", self.decoys, 0, MOST),
            ("operations", self.operations, 0, self.length),
        ];
        for (name, value, least, most) in sizes {
            if !(least..=most).contains(&value) {
                let of = if name == "operations" { ", the length" } else { "" };
                return Err(Error::setting(name, format!("must be from {least} to {most}{of}")));
            }
        }
        if self.examples == 0 {
            return Err(Error::setting("examples", "must be at least 1"));
        }
        let shares = [("matches", self.matches), ("insertions", self.insertions), ("deletions", self.deletions)];
        for (name, share) in shares.into_iter().chain([("preference", self.preference)]) {
            if !(0.0..=1.0).contains(&share) {
                return Err(Error::setting(name, format!("{share} is not a share (from 0 to 1)")));
            }
        }
        if self.matches + self.insertions + self.deletions > 1.0 + 1e-9 {
            return Err(Error::setting("matches", "with --insertions and --deletions must be at most 1 together"));
        }
        Ok(())
    }
}

/// Amino acids first.
const NAMES: &[u8] = b"ACDEFGHIKLMNPQRSTVWYBJOUXZabcdefghijklmnopqrstuvwxyz";

/// Writes native sequences, each with a homologue, their alignment, and decoys, as JSON lines. Letters have uneven frequencies. A
/// homologue is a part of the native sequence after `operations` random ones: a residue is kept, replaced (by the one that a hidden
/// table prefers), put in or left out; before and after it stand residues of the background, so that it is about as long as the native
/// sequence. Decoys are all background. `name` stands for `out` in errors.
pub fn align(sizes: &AlignSizes, seed: u64, out: &mut impl Write, name: &str) -> Result<()> {
    debug_assert!(NAMES.starts_with(Alphabet::PROTEIN.as_bytes()));
    sizes.check()?;
    let mut random = Random { source: Xoshiro256PlusPlus::seed_from_u64(seed) };
    let hidden = Hidden::new(sizes.letters, seed);
    let mut text = Vec::new();
    for _ in 0..sizes.examples {
        let record = hidden.record(sizes, &mut random);
        text.clear();
        alignments::write(&mut text, &record).and_then(|()| out.write_all(&text)).map_err(|e| Error::io(name, e))?;
    }
    out.flush().map_err(|e| Error::io(name, e))
}

/// Frequencies of letters, and what they are replaced by.
struct Hidden {
    /// Sums of the shares of letters.
    sums: Vec<f64>,
    partner: Vec<u32>,
}

impl Hidden {
    fn new(letters: u32, seed: u64) -> Self {
        let hidden = mixed(seed ^ 0x616c_6967);
        let mut sum = 0.0;
        let sums = (0..letters).map(|k| {
            // From 1 to 4: the most frequent letters are four times as frequent as the rarest.
            sum += 1.0 + 3.0 * unit(mixed(hidden ^ u64::from(k)));
            sum
        });
        let sums = sums.collect();
        // A cycle through all letters in hidden order: none is its own partner, and each is the partner of one.
        let mut order: Vec<u32> = (0..letters).collect();
        order.sort_by_key(|&k| mixed(hidden ^ 0xffff ^ (u64::from(k) << 32)));
        let mut partner = vec![0; letters as usize];
        for (at, &k) in order.iter().enumerate() {
            partner[k as usize] = order[(at + 1) % order.len()];
        }
        Self { sums, partner }
    }

    fn letter(&self, random: &mut Random) -> u32 {
        let at = random.uniform() * self.sums.last().copied().unwrap_or(1.0);
        self.sums.partition_point(|&sum| sum <= at).min(self.sums.len() - 1) as u32
    }

    fn background(&self, length: u32, random: &mut Random) -> Vec<u32> {
        (0..length).map(|_| self.letter(random)).collect()
    }

    fn record(&self, sizes: &AlignSizes, random: &mut Random) -> Record {
        let x = self.background(sizes.length, random);
        let begin = random.below(sizes.length - sizes.operations + 1);
        let (mut at, mut part, mut path) = (begin, Vec::new(), Path::default());
        for _ in 0..sizes.operations {
            let draw = random.uniform();
            let kept = x[at as usize];
            if draw < sizes.matches {
                part.push(kept);
                path.push(Op::Match, 1);
                at += 1;
            } else if draw < sizes.matches + sizes.insertions {
                part.push(self.letter(random));
                path.push(Op::OnlyZ, 1);
            } else if draw < sizes.matches + sizes.insertions + sizes.deletions {
                path.push(Op::OnlyX, 1);
                at += 1;
            } else {
                let is_preferred = random.happens(sizes.preference);
                part.push(if is_preferred { self.partner[kept as usize] } else { self.letter(random) });
                path.push(Op::Match, 1);
                at += 1;
            }
        }
        // What stands around it faces gaps.
        let rest = sizes.length.saturating_sub(part.len() as u32);
        let before = random.below(rest + 1);
        let mut z = self.background(before, random);
        z.extend(part);
        z.extend(self.background(rest - before, random));
        let mut whole = Path::default();
        whole.push(Op::OnlyX, begin);
        whole.push(Op::OnlyZ, before);
        path.runs.iter().for_each(|run| whole.push(run.op, run.count));
        whole.push(Op::OnlyX, sizes.length - at);
        whole.push(Op::OnlyZ, rest - before);
        let decoys = (0..sizes.decoys).map(|_| self.background(sizes.length, random));
        let candidates = std::iter::once(z).chain(decoys).map(|letters| residues(&letters)).collect();
        Record { x: residues(&x), candidates, has_homologue: true, alignment: Some(whole) }
    }
}

fn residues(letters: &[u32]) -> Residues {
    Residues { letters: letters.iter().map(|&k| char::from(NAMES[k as usize])).collect(), marks: None }
}
