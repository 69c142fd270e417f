//! SVM-light and LIBSVM text: one example a line, `LABEL [cost:W] INDEX:VALUE ... # comment`.
//!
//! Labels are words; indices start at 1 and ascend within a line; values are finite decimal numbers, rounded to the
//! nearest f32. Blank lines and lines with only a comment are skipped (under [`LabelRule::Set`] those that start with a blank are
//! examples). Line ends may be those of Windows, and a byte-order mark may stand before the first line.
//!
//! [`read`] takes a whole input, on all threads of a pool; [`Stream`] goes through one in batches, in constant
//! memory; [`write()`] writes an example.

pub(crate) mod line;
mod pieces;

use std::io::{self, Write};

use crate::data::blocks::{Blocks, Cut};
use crate::data::input::Input;
use crate::data::number::write_f32;
use crate::data::svmlight::pieces::{Gathered, Piece};
use crate::error::Result;
use crate::parallel::Pool;
use crate::random::Random;
use crate::sparse::{SparseMatrix, SparseView};

/// Must every example have a label?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LabelRule {
    /// A line without one is an error: for training and evaluation.
    #[default]
    Required,
    /// A line may start with its first feature: for prediction.
    Optional,
    /// The label is a set, and an empty field the empty one: a line may start with its first feature, and one that starts with a
    /// blank is an example even where nothing follows. For [`label_sets`](crate::data::label_sets).
    Set,
}

/// The labels of examples, each distinct word once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// The distinct labels, in the order of their first appearance.
    pub names: Vec<String>,
    /// For each example the position of its label in `names`, or [`Labels::NONE`].
    pub ids: Vec<u32>,
}

impl Labels {
    /// The id of an example without a label.
    pub const NONE: u32 = u32::MAX;

    /// The label of an example.
    pub fn name(&self, example: usize) -> Option<&str> {
        let id = self.ids[example];
        (id != Self::NONE).then(|| self.names[id as usize].as_str())
    }
}

/// Examples with their labels.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Labelled {
    /// The labels.
    pub labels: Labels,
    /// One row for each example; column `j` is feature `j + 1` of the text. Values of zero are not stored.
    pub matrix: SparseMatrix,
    /// `cost:` of each example, 1 where it is not given; `None` when no line has one.
    pub costs: Option<Vec<f64>>,
    /// CRC-32 of the text (unpacked), by which a model remembers its data; 0 for a batch of a [`Stream`].
    pub checksum: u32,
    lines: Lines,
}

impl Labelled {
    /// Examples that are there already; the first one counts as line 1. `checksum`: of whatever they are made of.
    ///
    /// # Panics
    /// If labels or costs are not as many as rows.
    pub fn new(labels: Labels, matrix: SparseMatrix, costs: Option<Vec<f64>>, checksum: u32) -> Self {
        assert_eq!(labels.ids.len(), matrix.rows(), "a label for each row");
        assert!(costs.as_ref().is_none_or(|costs| costs.len() == matrix.rows()), "a cost for each row");
        let mut lines = Lines::default();
        lines.mark(0, 1);
        Self { labels, matrix, costs, checksum, lines }
    }

    /// Number of examples.
    pub fn len(&self) -> usize {
        self.matrix.rows()
    }

    /// No examples?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The line, from 1, on which an example stands.
    pub fn line(&self, example: usize) -> u64 {
        assert!(example < self.len(), "there are {} examples", self.len());
        self.lines.line(example)
    }

    /// Keeps so many of the examples, or all where there are fewer, drawn from the seed. Those that are kept, in their order.
    pub fn draw(&mut self, size: usize, seed: u64) -> Vec<usize> {
        let mut kept = Random::new(seed).choose(self.len(), size);
        kept.sort_unstable();
        let mut lines = Lines::default();
        kept.iter().enumerate().for_each(|(example, &i)| lines.mark(example, self.lines.line(i)));
        self.lines = lines;
        self.matrix = self.matrix.select(&kept);
        self.labels.ids = kept.iter().filter_map(|&i| self.labels.ids.get(i).copied()).collect();
        self.costs = self.costs.take().map(|costs| kept.iter().map(|&i| costs[i]).collect());
        kept
    }
}

/// Line numbers of examples, as runs: most files need a single one.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Lines {
    /// (example, line) where a run of examples on successive lines starts.
    runs: Vec<(usize, u64)>,
}

impl Lines {
    fn mark(&mut self, example: usize, line: u64) {
        let expected = self.runs.last().map(|&(e, l)| l + (example - e) as u64);
        if expected != Some(line) {
            self.runs.push((example, line));
        }
    }

    fn line(&self, example: usize) -> u64 {
        let run = self.runs.partition_point(|&(e, _)| e <= example);
        let (first, line) = self.runs[run - 1];
        line + (example - first) as u64
    }
}

/// Reads a whole input with all threads of `pool`. The result does not depend on their number, nor does the error: it
/// is that of the first bad line.
pub fn read(input: Input<'_>, rule: LabelRule, pool: &Pool) -> Result<Labelled> {
    read_cut(input, rule, pool, Cut::default())
}

/// [`read`] in pieces of other sizes: for tests, which show that they do not matter.
#[doc(hidden)]
pub fn read_in_pieces(input: Input<'_>, rule: LabelRule, pool: &Pool, block: usize, chunk: usize) -> Result<Labelled> {
    read_cut(input, rule, pool, Cut { block, chunk })
}

fn read_cut(input: Input<'_>, rule: LabelRule, pool: &Pool, cut: Cut) -> Result<Labelled> {
    let mut blocks = Blocks::new(input, cut);
    let mut gathered = Gathered::default();
    blocks.each_piece(cut, pool, |text| Piece::parse(text, rule), |piece| gathered.append(piece))?;
    if gathered.is_empty() {
        return Err(blocks.error(gathered.lines().max(1), NO_EXAMPLES));
    }
    let mut examples = gathered.finish();
    examples.checksum = blocks.checksum();
    Ok(examples)
}

const NO_EXAMPLES: &str = "no examples in the file";

/// Examples in batches, in constant memory: for prediction on inputs of any length.
pub struct Stream<'a> {
    blocks: Blocks<'a>,
    rule: LabelRule,
    text: Vec<u8>,
    /// Bytes of `text` that were given out.
    taken: usize,
    line: u64,
    is_empty: bool,
}

impl std::fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stream").field("name", &self.blocks.name()).field("line", &self.line).finish_non_exhaustive()
    }
}

impl<'a> Stream<'a> {
    /// Starts reading `input`.
    pub fn new(input: Input<'a>, rule: LabelRule) -> Self {
        Self::in_pieces(input, rule, 256 << 10)
    }

    /// A stream that reads `block` bytes at a time: for tests.
    #[doc(hidden)]
    pub fn in_pieces(input: Input<'a>, rule: LabelRule, block: usize) -> Self {
        let blocks = Blocks::new(input, Cut { block, chunk: 1 });
        Self { blocks, rule, text: Vec::new(), taken: 0, line: 0, is_empty: true }
    }

    /// The next examples, at least one and at most `most` (at least 1); `None` after the last. Does not wait for a
    /// full batch when the input is a slow pipe. Label numbers are those of the batch alone.
    pub fn next_batch(&mut self, most: usize) -> Result<Option<Labelled>> {
        loop {
            if self.taken == self.text.len() {
                self.taken = 0;
                if !self.blocks.next_available(&mut self.text)? {
                    if self.is_empty {
                        return Err(self.blocks.error(self.line.max(1), NO_EXAMPLES));
                    }
                    return Ok(None);
                }
            }
            let mut piece = Piece::after(self.line);
            self.taken += piece.take(&self.text[self.taken..], self.rule, most.max(1));
            self.line = piece.line;
            let examples = piece.finish().map_err(|what| self.blocks.error(self.line, what))?;
            if !examples.is_empty() {
                self.is_empty = false;
                return Ok(Some(examples));
            }
        }
    }
}

/// Writes one example. Values get the fewest digits that read back as the same f32.
///
/// `label` must be a word as [`read`] takes it: no blanks, no `:`, no `#`. An empty one is the field of an empty set: the line
/// starts with a blank.
pub fn write(out: &mut impl Write, label: Option<&str>, cost: Option<f64>, row: SparseView<'_>) -> io::Result<()> {
    let mut gap = "";
    if let Some(label) = label {
        out.write_all(label.as_bytes())?;
        gap = " ";
    }
    if let Some(cost) = cost {
        write!(out, "{gap}cost:{cost:?}")?;
        gap = " ";
    }
    for (column, value) in row.iter() {
        write!(out, "{gap}{}:", u64::from(column) + 1)?;
        write_f32(out, value)?;
        gap = " ";
    }
    // Else the line of an empty set without features would be none.
    if label == Some("") && cost.is_none() && row.is_empty() {
        out.write_all(b" ")?;
    }
    out.write_all(b"\n")
}
