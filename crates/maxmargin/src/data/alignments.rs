//! Sequences to be aligned, as JSON lines.
//!
//! ```text
//! {"x": "ACDE", "z": "ACFE", "ax": "AC-DE", "az": "ACFE-", "decoys": ["GGT", "AC"], "sx": "HHEE", "sz": "HEEE", "sdecoys": ["EEE", "HH"]}
//! ```
//!
//! - `x`: the native sequence, a letter for each residue. Letters are any characters but blanks and the gap, `-`;
//! - `z`: its homologue; `ax` and `az`: how the two go together, as long as each other, with gaps, and without them the same as `x`
//!   and `z`. Training and evaluation need all three;
//! - `decoys`: sequences that are none of its homologues;
//! - `sx`, `sz`, `sdecoys`: a mark for each residue (its structure, its exposure): all sequences have them, or none has.
//!
//! Other fields are left alone. Blank lines are skipped.
//!
//! [`read`] takes a whole file, [`Stream`] goes through one in batches, [`Alphabets`] turn a [`Record`] into a
//! [`Query`](crate::tasks::alignment::Query), [`write()`] writes one. [`Substitutions`] are scores that are known before training.

mod alphabet;
mod line;
mod matrix;

use std::io::{self, Write};

use crate::data::blocks::{Blocks, Cut};
use crate::data::input::Input;
use crate::data::json_lines::{Batches, Piece};
use crate::data::svmlight::LabelRule;
use crate::error::Result;
use crate::inference::align::{Op, Path};
use crate::parallel::Pool;

pub use alphabet::{Alphabet, Alphabets, Strangers};
pub use matrix::Substitutions;

/// The gap.
pub const GAP: char = '-';

/// A sequence as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Residues {
    /// A letter for each residue.
    pub letters: String,
    /// A mark for each residue, where there are some.
    pub marks: Option<String>,
}

/// What stands on a line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// The native sequence.
    pub x: Residues,
    /// The homologue, where there is one, then the decoys; at least one.
    pub candidates: Vec<Residues>,
    /// Is the first candidate the homologue?
    pub has_homologue: bool,
    /// How x and the homologue go together, from end to end.
    pub alignment: Option<Path>,
}

/// The lines of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Records {
    /// What stands on them.
    pub records: Vec<Record>,
    /// CRC-32 of the text (unpacked), by which a model remembers its data; 0 for a batch of a [`Stream`].
    pub checksum: u32,
    lines: Vec<u64>,
}

impl Records {
    /// Number of records.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// No records?
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The line, from 1, on which a record stands.
    pub fn line(&self, example: usize) -> u64 {
        self.lines[example]
    }

    fn push(&mut self, line: u64, record: Record) {
        self.records.push(record);
        self.lines.push(line);
    }
}

const NO_RECORDS: &str = "no sequences in the file";

/// Reads a file with all threads of `pool`. The result does not depend on their number, nor does the error: it is that of the
/// first bad line.
pub fn read(input: Input<'_>, rule: LabelRule, pool: &Pool) -> Result<Records> {
    read_cut(input, rule, pool, Cut::default())
}

/// [`read`] in pieces of other sizes: for tests, which show that they do not matter.
#[doc(hidden)]
pub fn read_in_pieces(
    input: Input<'_>,
    rule: LabelRule,
    pool: &Pool,
    (block, chunk): (usize, usize),
) -> Result<Records> {
    read_cut(input, rule, pool, Cut { block, chunk })
}

fn read_cut(input: Input<'_>, rule: LabelRule, pool: &Pool, cut: Cut) -> Result<Records> {
    let mut blocks = Blocks::new(input, cut);
    let (mut records, mut lines) = (Records::default(), 0);
    let parse = |text: &[u8]| Piece::parse(text, |line| line::parse(line, rule));
    blocks.each_piece(cut, pool, parse, |piece| {
        for (line, record) in piece.examples {
            records.push(lines + line, record);
        }
        lines += piece.lines;
        piece.error.map_or(Ok(()), |what| Err((lines, what)))
    })?;
    if records.is_empty() {
        return Err(blocks.error(lines.max(1), NO_RECORDS));
    }
    records.checksum = blocks.checksum();
    Ok(records)
}

/// Records in batches, in constant memory: for prediction on inputs of any length.
pub struct Stream<'a> {
    batches: Batches<'a>,
    rule: LabelRule,
}

impl std::fmt::Debug for Stream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (name, line) = (self.batches.name(), self.batches.line());
        f.debug_struct("Stream").field("name", &name).field("line", &line).finish_non_exhaustive()
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
        Self { batches: Batches::new(input, block, NO_RECORDS), rule }
    }

    /// The next records, at least one and at most `most` (at least 1); `None` after the last. Does not wait for a full batch
    /// when the input is a slow pipe.
    pub fn next_batch(&mut self, most: usize) -> Result<Option<Records>> {
        let rule = self.rule;
        let batch = self.batches.next_batch(most, |text| line::parse(text, rule))?;
        Ok(batch.map(|examples| {
            let mut records = Records::default();
            for (line, record) in examples {
                records.push(line, record);
            }
            records
        }))
    }
}

/// The two sequences of an alignment with gaps between their residues, only the part that it covers.
pub fn gapped(path: &Path, x: &str, z: &str) -> (String, String) {
    let mut x = x.chars().skip(path.x as usize);
    let mut z = z.chars().skip(path.z as usize);
    let (mut ax, mut az) = (String::new(), String::new());
    for run in &path.runs {
        for _ in 0..run.count {
            ax.push(if run.op == Op::OnlyZ { GAP } else { x.next().unwrap_or(GAP) });
            az.push(if run.op == Op::OnlyX { GAP } else { z.next().unwrap_or(GAP) });
        }
    }
    (ax, az)
}

/// Writes a record as a line. What is read back is the same.
pub fn write(out: &mut impl Write, record: &Record) -> io::Result<()> {
    let texts = |candidates: &[Residues]| candidates.iter().map(|c| c.letters.clone()).collect::<Vec<_>>();
    let (homologue, decoys) = record.candidates.split_at(usize::from(record.has_homologue));
    let mut fields = vec![("x", serde_json::to_string(&record.x.letters)?)];
    if let [z] = homologue {
        fields.push(("z", serde_json::to_string(&z.letters)?));
        if let Some(path) = &record.alignment {
            let (ax, az) = gapped(path, &record.x.letters, &z.letters);
            fields.extend([("ax", serde_json::to_string(&ax)?), ("az", serde_json::to_string(&az)?)]);
        }
        fields.extend(
            z.marks.iter().map(|marks| Ok(("sz", serde_json::to_string(marks)?))).collect::<io::Result<Vec<_>>>()?,
        );
    }
    fields.push(("decoys", serde_json::to_string(&texts(decoys))?));
    if let Some(marks) = &record.x.marks {
        fields.push(("sx", serde_json::to_string(marks)?));
        let of_decoys: Vec<&str> = decoys.iter().map(|d| d.marks.as_deref().unwrap_or("")).collect();
        fields.push(("sdecoys", serde_json::to_string(&of_decoys)?));
    }
    let mut before = "{";
    for (name, value) in fields {
        write!(out, "{before}\"{name}\":{value}")?;
        before = ",";
    }
    out.write_all(b"}\n")
}
