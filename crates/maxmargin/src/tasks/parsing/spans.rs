//! Features of the span of a phrase: its length, the terminals at both ends and those beside it.
//!
//! All are rows of one block with a slot for each phrase, so that the scores of all phrases over a span are a sum of rows.

use std::ops::Range;

use super::{Bracket, Grammar};
use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::inference::cky::Chart;
use crate::sparse::SparseView;

/// The last length of each class; what is longer is a class of its own.
const LENGTHS: [usize; 7] = [1, 2, 3, 4, 5, 10, 20];
/// Number of features of a span.
const KINDS: usize = 5;

/// The span features of a grammar.
#[derive(Debug, Clone)]
pub struct Spans {
    block: Block,
    /// The terminals that have rows; the two after them are 'none, for the sentence is over' and 'unknown'.
    terminals: Range<u32>,
}

/// The rows of what begins and what ends at each word, summed up.
#[derive(Debug, Default)]
pub(super) struct Sides {
    begins: Vec<f64>,
    ends: Vec<f64>,
}

/// A span feature, as people read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SpanFeature {
    /// So many words at least, and at most.
    Length(usize, Option<usize>),
    /// A terminal at a place; None: the end of the sentence, or its beginning.
    Terminal(&'static str, Option<u32>),
    /// A terminal that the grammar does not know at a place.
    Unknown(&'static str),
}

impl Spans {
    pub(super) fn new(grammar: &Grammar, base: u64) -> Result<Self> {
        let terminals = if grammar.has_words() { 0..grammar.parts().terminals } else { grammar.tags() };
        let rows = (LENGTHS.len() + 1) as u64 + 4 * (terminals.len() as u64 + 2);
        let rows =
            u32::try_from(rows).map_err(|_| Error::setting("features", "too many terminals for span features"))?;
        Ok(Self { block: Block { base, rows, width: grammar.phrases() }, terminals })
    }

    pub(super) fn block(&self) -> Block {
        self.block
    }

    /// The first row of a kind, from 0: first, last, before, after.
    fn first_row(&self, kind: usize) -> u32 {
        (LENGTHS.len() + 1 + kind * (self.terminals.len() + 2)) as u32
    }

    fn row(&self, kind: usize, terminal: Option<&u32>) -> u32 {
        let own = match terminal {
            None => self.terminals.len() as u32,
            Some(terminal) if self.terminals.contains(terminal) => terminal - self.terminals.start,
            Some(_) => self.terminals.len() as u32 + 1,
        };
        self.first_row(kind) + own
    }

    /// The rows of a span, ascending.
    fn rows(&self, x: &[u32], i: usize, j: usize) -> [u32; KINDS] {
        let before = i.checked_sub(1).and_then(|at| x.get(at));
        [
            length_class(j - i),
            self.row(0, x.get(i)),
            self.row(1, x.get(j - 1)),
            self.row(2, before),
            self.row(3, x.get(j)),
        ]
    }

    /// Emits the features of a bracket.
    pub(super) fn emit(&self, x: &[u32], &(phrase, i, j): &Bracket, scale: f64, sink: &mut impl Sink) {
        let rows = self.rows(x, i as usize, j as usize);
        sink.part(self.block, phrase, SparseView::new(&rows, &[1.0; KINDS]), scale);
    }

    /// Adds the scores of all phrases over all spans to the chart.
    pub(super) fn score(&self, w: &[f64], x: &[u32], sides: &mut Sides, chart: &mut Chart) {
        let width = self.block.width as usize;
        let row = |row: u32| &w[self.block.at(row, 0)..][..width];
        sides.begins.clear();
        sides.ends.clear();
        for at in 0..x.len() {
            let [_, first, last, before, after] = self.rows(x, at, at + 1);
            sides.begins.extend(row(first).iter().zip(row(before)).map(|(a, b)| a + b));
            sides.ends.extend(row(last).iter().zip(row(after)).map(|(a, b)| a + b));
        }
        for j in 1..=x.len() {
            let ends = &sides.ends[(j - 1) * width..][..width];
            for i in 0..j {
                if !chart.has(i, j) {
                    continue;
                }
                let begins = &sides.begins[i * width..][..width];
                let of_length = row(length_class(j - i));
                for (((score, a), b), c) in chart.node_mut(i, j).iter_mut().zip(begins).zip(ends).zip(of_length) {
                    *score += a + b + c;
                }
            }
        }
    }

    /// The feature and the phrase of a place in w; None where it is not one of these.
    pub fn feature(&self, at: usize) -> Option<(SpanFeature, u32)> {
        let within = (at as u64).checked_sub(self.block.base).filter(|at| *at < self.block.len())?;
        let (row, phrase) =
            ((within / u64::from(self.block.width)) as u32, (within % u64::from(self.block.width)) as u32);
        let classes = LENGTHS.len() as u32 + 1;
        if row < classes {
            let least = row.checked_sub(1).map_or(1, |before| LENGTHS[before as usize] + 1);
            return Some((SpanFeature::Length(least, LENGTHS.get(row as usize).copied()), phrase));
        }
        let each = self.terminals.len() as u32 + 2;
        let (kind, own) = ((row - classes) / each, (row - classes) % each);
        let name = ["first", "last", "before", "after"][kind as usize];
        let feature = match each - own {
            1 => SpanFeature::Unknown(name),
            2 => SpanFeature::Terminal(name, None),
            _ => SpanFeature::Terminal(name, Some(self.terminals.start + own)),
        };
        Some((feature, phrase))
    }
}

fn length_class(words: usize) -> u32 {
    LENGTHS.iter().position(|&last| words <= last).unwrap_or(LENGTHS.len()) as u32
}
