//! Scores of substitutions as text, in the form of NCBI's matrices, and BLOSUM62.
//!
//! ```text
//! # comments
//!    A  C  G
//! A  5 -4  0
//! C -4  5 -4
//! G  0 -4  5
//! ```
//!
//! A line of letters, then for each of them, in any order, a line with the letter and its scores. Rows are letters of x, columns
//! letters of z.

use std::io::Read;

use super::{Alphabet, Alphabets};
use crate::data::blocks::shown;
use crate::data::input::Input;
use crate::error::{Error, Result};
use crate::task::Task;
use crate::tasks::alignment::{Alignment, NONE};
use crate::weights::Weights;

/// Scores that are known for pairs of letters.
#[derive(Debug, Clone)]
pub struct Substitutions {
    letters: Alphabet,
    /// Row by row.
    scores: Vec<f64>,
}

/// Bytes of a file at most: more than any table of 254 letters needs.
const MOST_BYTES: u64 = 16 << 20;

/// The largest score.
const MOST_SCORE: f64 = 1e6;

/// Half bits (Henikoff and Henikoff 1992), with B, Z and X as NCBI has them.
const BLOSUM62: &str = "\
   A  R  N  D  C  Q  E  G  H  I  L  K  M  F  P  S  T  W  Y  V  B  Z  X
A  4 -1 -2 -2  0 -1 -1  0 -2 -1 -1 -1 -1 -2 -1  1  0 -3 -2  0 -2 -1  0
R -1  5  0 -2 -3  1  0 -2  0 -3 -2  2 -1 -3 -2 -1 -1 -3 -2 -3 -1  0 -1
N -2  0  6  1 -3  0  0  0  1 -3 -3  0 -2 -3 -2  1  0 -4 -2 -3  3  0 -1
D -2 -2  1  6 -3  0  2 -1 -1 -3 -4 -1 -3 -3 -1  0 -1 -4 -3 -3  4  1 -1
C  0 -3 -3 -3  9 -3 -4 -3 -3 -1 -1 -3 -1 -2 -3 -1 -1 -2 -2 -1 -3 -3 -2
Q -1  1  0  0 -3  5  2 -2  0 -3 -2  1  0 -3 -1  0 -1 -2 -1 -2  0  3 -1
E -1  0  0  2 -4  2  5 -2  0 -3 -3  1 -2 -3 -1  0 -1 -3 -2 -2  1  4 -1
G  0 -2  0 -1 -3 -2 -2  6 -2 -4 -4 -2 -3 -3 -2  0 -2 -2 -3 -3 -1 -2 -1
H -2  0  1 -1 -3  0  0 -2  8 -3 -3 -1 -2 -1 -2 -1 -2 -2  2 -3  0  0 -1
I -1 -3 -3 -3 -1 -3 -3 -4 -3  4  2 -3  1  0 -3 -2 -1 -3 -1  3 -3 -3 -1
L -1 -2 -3 -4 -1 -2 -3 -4 -3  2  4 -2  2  0 -3 -2 -1 -2 -1  1 -4 -3 -1
K -1  2  0 -1 -3  1  1 -2 -1 -3 -2  5 -1 -3 -1  0 -1 -3 -2 -2  0  1 -1
M -1 -1 -2 -3 -1  0 -2 -3 -2  1  2 -1  5  0 -2 -1 -1 -1 -1  1 -3 -1 -1
F -2 -3 -3 -3 -2 -3 -3 -3 -1  0  0 -3  0  6 -4 -2 -2  1  3 -1 -3 -3 -1
P -1 -2 -2 -1 -3 -1 -1 -2 -2 -3 -3 -1 -2 -4  7 -1 -1 -4 -3 -2 -2 -1 -2
S  1 -1  1  0 -1  0  0  0 -1 -2 -2  0 -1 -2 -1  4  1 -3 -2 -2  0  0  0
T  0 -1  0 -1 -1 -1 -1 -2 -2 -1 -1 -1 -1 -2 -1  1  5 -2 -2  0 -1 -1  0
W -3 -3 -4 -4 -2 -2 -3 -2 -2 -3 -2 -3 -1  1 -4 -3 -2 11  2 -3 -4 -3 -2
Y -2 -2 -2 -3 -2 -1 -2 -3  2 -1 -1 -2 -1  3 -3 -2 -2  2  7 -1 -3 -2 -1
V  0 -3 -3 -3 -1 -2 -2 -3 -3  3  1 -2  1 -1 -2 -2  0 -3 -1  4 -3 -2 -1
B -2 -1  3  4 -3  0  1 -1  0 -3 -4  0 -3 -3 -2  0 -1 -4 -3 -3  4  1 -1
Z -1  0  0  1 -3  3  4 -2  0 -3 -3  1 -1 -3 -1  0 -1 -3 -2 -2  1  4 -1
X  0 -1 -1 -1 -2 -1 -1 -1 -1 -1 -1 -1 -1 -1 -2  0  0 -2 -1 -1 -1 -1 -1
";

impl Substitutions {
    /// BLOSUM62, of the 20 amino acids, B, Z and X.
    pub fn blosum62() -> Result<Self> {
        Self::parse(BLOSUM62).map_err(|(line, what)| Error::Parse { name: "BLOSUM62".to_owned(), line, what })
    }

    /// Reads a table.
    pub fn read(input: Input<'_>) -> Result<Self> {
        let name = input.name().to_owned();
        let bad = |line: u64, what: String| Error::Parse { name: name.clone(), line, what };
        let mut bytes = Vec::new();
        input.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(|source| Error::io(&name, source))?;
        let line_at = |at: usize| memchr::memchr_iter(b'\n', &bytes[..at]).count() as u64 + 1;
        if bytes.len() as u64 > MOST_BYTES {
            return Err(bad(1, format!("more than {MOST_BYTES} bytes are no table of substitutions")));
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Self::parse(text.trim_start_matches('\u{feff}')).map_err(|(line, what)| bad(line, what)),
            Err(error) => Err(bad(line_at(error.valid_up_to()), "this is no text (UTF-8)".to_owned())),
        }
    }

    /// The table, or line and cause.
    fn parse(text: &str) -> std::result::Result<Self, (u64, String)> {
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let mut lines = lines.map(|(at, line)| (at, line.split_whitespace()));
        let Some((at, header)) = lines.next() else {
            return Err((1, "no table of substitutions in the file (letters on top, then a row for each)".to_owned()));
        };
        let letters =
            header.map(letter).collect::<std::result::Result<Vec<char>, String>>().map_err(|what| (at, what))?;
        let letters = Alphabet::new(letters).map_err(|what| (at, format!("the letters on top: {what}")))?;
        let count = letters.letters().len();
        let mut scores = vec![None; count * count];
        let mut last = at;
        for (at, mut words) in lines {
            last = at;
            let row = letter(words.next().unwrap_or_default()).map_err(|what| (at, what))?;
            let code = letters.code(row);
            if code == NONE {
                return Err((at, format!("a row for '{row}', which is not among the letters on top")));
            }
            let cells = &mut scores[usize::from(code) * count..][..count];
            if cells.iter().any(Option::is_some) {
                return Err((at, format!("a second row for '{row}'")));
            }
            let mut found = 0;
            for word in words {
                let Some(cell) = cells.get_mut(found) else {
                    return Err((at, format!("the row of '{row}' has more than {count} scores (one for each letter)")));
                };
                *cell = Some(score(word).map_err(|what| (at, what))?);
                found += 1;
            }
            if found < count {
                return Err((at, format!("the row of '{row}' has {found} scores for {count} letters")));
            }
        }
        if let Some(missing) = scores.chunks(count.max(1)).position(|row| row.iter().any(Option::is_none)) {
            return Err((last, format!("no row for '{}'", letters.letters()[missing])));
        }
        Ok(Self { letters, scores: scores.into_iter().flatten().collect() })
    }

    /// The score of a letter of x with one of z; None where one of them is not in the table.
    pub fn score(&self, x: char, z: char) -> Option<f64> {
        let (a, b) = (self.letters.code(x), self.letters.code(z));
        let at = usize::from(a) * self.letters.letters().len() + usize::from(b);
        if a == NONE || b == NONE { None } else { self.scores.get(at).copied() }
    }

    /// Weights of a task: these scores, and costs of gaps, one for linear gaps, two for affine ones. Marks of residues have
    /// none. Or what does not fit.
    pub fn weights(
        &self,
        alphabets: &Alphabets,
        task: &Alignment,
        gaps: &[f64],
    ) -> std::result::Result<Weights, String> {
        let letters = alphabets.letters.letters();
        let lacking: String = letters.iter().filter(|&&letter| self.letters.code(letter) == NONE).collect();
        if !lacking.is_empty() {
            let own: String = self.letters.letters().iter().collect();
            return Err(format!("it has the letters {own}, and no scores for {lacking}"));
        }
        let (pairs, columns) = (task.blocks()[0], task.blocks()[1]);
        if gaps.len() != columns.width as usize {
            return Err(format!("{} costs of gaps where {} are needed", gaps.len(), columns.width));
        }
        let mut w = Weights::zeros(task.dimension());
        let scores = letters.iter().flat_map(|&x| letters.iter().filter_map(move |&z| self.score(x, z)));
        let costs = gaps.iter().map(|cost| -cost);
        for (block, values) in [(pairs, scores.collect::<Vec<f64>>()), (columns, costs.collect())] {
            w.as_mut_slice()[block.base as usize..][..values.len()].copy_from_slice(&values);
        }
        Ok(w)
    }
}

fn letter(word: &str) -> std::result::Result<char, String> {
    let mut letters = word.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) => Ok(letter),
        _ => Err(format!("{} where a letter should stand", shown(word.as_bytes()))),
    }
}

fn score(word: &str) -> std::result::Result<f64, String> {
    match word.parse::<f64>() {
        Ok(score) if score.abs() <= MOST_SCORE => Ok(score),
        Ok(_) => Err(format!("the score {word} (it must be between -{MOST_SCORE} and {MOST_SCORE})")),
        Err(_) => Err(format!("{} where a score should stand", shown(word.as_bytes()))),
    }
}
