//! The best alignment of two sequences, local (Smith and Waterman) or global (Needleman and Wunsch), with affine gaps (Gotoh).
//!
//! One sequence lies along the columns of a table, the other along its rows. A cell is the place after some residues of each:
//!
//! ```text
//! M[i][j] = H[i-1][j-1] + match(i, j)                             local: max(H[i-1][j-1], 0) + match(i, j)
//! F[i][j] = max(H[i-1][j] + open_i,  F[i-1][j] + extend_i)        a gap in the columns' sequence
//! E[i][j] = max(H[i][j-1] + open_j,  E[i][j-1] + extend_j)        a gap in the rows' sequence
//! H = max(M, F, E)
//! ```
//!
//! A local alignment begins and ends with a match, or is empty. Scores of gaps may depend on the residue that faces the gap. They
//! are what they are: where opening pays, a gap is taken in several pieces, each of them opened, and the [`Path`] says so.
//!
//! *Vectors.* Rows go one after the other. Within a row only E depends on its left neighbour. With `C_j` the sum of
//! `max(open, extend)` up to column j, `E_j = C_j + max over k < j of (T_k + open_{k+1} - C_{k+1})`, where `T = max(M, F)`: a running
//! maximum. Columns are laid out in [`LANES`] runs side by side, so that this, too, is done for as many columns at once, and what one
//! run hands to the next is worked out once a row (`fill.rs`). The bits do not depend on the machine.
//!
//! *The way back* (`back.rs`) keeps H alone and finds out again where it came from. Pairs whose table would be large keep some of its
//! rows, and work the others out again on the way back: memory grows with the root of their size.

mod back;
mod fill;
mod path;

use fill::{Fill, Found, advance_all};
pub use path::{Op, Path, Run};

/// Columns that are worked on side by side.
pub(crate) const LANES: usize = 8;

/// How much of the sequences an alignment takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// The parts of both that go together best.
    #[default]
    Local,
    /// Both from end to end.
    Global,
}

/// What is added to the scores of single cells, by row.
#[derive(Debug, Default)]
pub struct Bonuses {
    /// Where the cells of each row begin, and the end; empty where there are none at all.
    starts: Vec<u32>,
    /// Column, from 0, and what is added.
    cells: Vec<(u32, f64)>,
}

impl Bonuses {
    /// None.
    pub fn clear(&mut self) {
        self.starts.clear();
        self.cells.clear();
    }

    /// One more cell, of the last row.
    pub fn add(&mut self, column: u32, bonus: f64) {
        debug_assert!(!self.starts.is_empty(), "a row comes before its cells");
        self.cells.push((column, bonus));
    }

    /// The cells that follow are of the next row; the first call begins row 0.
    pub fn next_row(&mut self) {
        self.starts.push(self.cells.len() as u32);
    }

    fn row(&self, row: usize) -> &[(u32, f64)] {
        let Some(&start) = self.starts.get(row) else { return &[] };
        let end = self.starts.get(row + 1).map_or(self.cells.len(), |&end| end as usize);
        &self.cells[start as usize..end]
    }
}

/// The sequence along the rows.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// For each residue the row of match scores that it has.
    pub keys: &'a [u32],
    /// For each residue the score of the first column of a gap that faces it, and
    pub open: &'a [f64],
    /// of every further one.
    pub extend: &'a [f64],
    /// What single cells have besides.
    pub bonuses: &'a Bonuses,
}

/// Scores of the columns, and the room in which tables are worked out. Made once and filled again and again: once warm, it
/// allocates nothing.
#[derive(Debug, Default)]
pub struct Aligner {
    reach: Reach,
    columns: Columns,
    profile: Profile,
    /// Rows of H.
    table: Vec<f64>,
    /// F of the last row.
    f: Vec<f64>,
    undo: Vec<f64>,
    /// H and F of every so many rows.
    kept: Vec<f64>,
    /// C of the rows' sequence.
    row_sums: Vec<f64>,
    /// Numbers that a table may have before rows of it are left out.
    most: Option<usize>,
}

/// The gaps that face the columns' sequence.
#[derive(Debug, Default)]
struct Columns {
    count: usize,
    /// Vectors in a row.
    steps: usize,
    open: Vec<f64>,
    extend: Vec<f64>,
    /// `C_j`, for j from 0.
    sums: Vec<f64>,
    /// The same laid out in runs, minus infinity beyond the last column.
    laid_sums: Vec<f64>,
    /// `open_{j+1} - C_{j+1}`, laid out in runs.
    laid_starts: Vec<f64>,
}

impl Columns {
    /// Numbers in a row.
    fn stride(&self) -> usize {
        self.steps * LANES
    }

    /// Where column j stands in a row: runs of `steps` columns lie side by side.
    fn place(&self, j: usize) -> usize {
        (j % self.steps) * LANES + j / self.steps
    }
}

/// Rows of match scores, by key.
#[derive(Debug, Default)]
struct Profile {
    rows: Vec<f64>,
    /// By key, the number of its row plus one; 0 where there is none.
    places: Vec<u32>,
    built: Vec<u32>,
}

/// Numbers that a table may have before rows of it are left out: 64 MB.
const MOST: usize = 1 << 23;

/// How many rows go between two that are kept, where not all are.
fn block_rows(rows: usize, stride: usize, most: usize) -> usize {
    let balanced = (2.0 * rows as f64).sqrt().ceil() as usize;
    balanced.max(most / stride.max(1)).max(1)
}

/// About how many bytes an alignment of so many residues takes.
pub fn bytes(columns: usize, rows: usize) -> f64 {
    let stride = (columns + 1).next_multiple_of(LANES);
    let all = (rows as f64 + 1.0) * stride as f64;
    let block = block_rows(rows, stride, MOST) as f64;
    let numbers =
        if all <= MOST as f64 { all } else { (block + 1.0 + 2.0 * (rows as f64 / block + 1.0)) * stride as f64 };
    8.0 * numbers
}

impl Aligner {
    /// Begins with another sequence along the columns. `open` and `extend`: for each of its residues the score of the first
    /// column of a gap that faces it, and of every further one.
    pub fn begin(&mut self, reach: Reach, open: &[f64], extend: &[f64]) {
        debug_assert_eq!(open.len(), extend.len());
        self.reach = reach;
        let columns = &mut self.columns;
        columns.count = open.len();
        columns.steps = (open.len() + 1).div_ceil(LANES);
        columns.open.clear();
        columns.open.extend(open);
        columns.extend.clear();
        columns.extend.extend(extend);
        sum_up(open, extend, &mut columns.sums);
        let stride = columns.stride();
        for laid in [&mut columns.laid_sums, &mut columns.laid_starts] {
            laid.clear();
            laid.resize(stride, f64::NEG_INFINITY);
        }
        for j in 0..=columns.count {
            let place = columns.place(j);
            columns.laid_sums[place] = columns.sums[j];
            if let Some(first) = open.get(j) {
                columns.laid_starts[place] = first - columns.sums[j + 1];
            }
        }
        let profile = &mut self.profile;
        profile.built.drain(..).for_each(|key| profile.places[key as usize] = 0);
        profile.rows.clear();
    }

    /// Is there a row of match scores for this key?
    pub fn has_row(&self, key: u32) -> bool {
        self.profile.places.get(key as usize).is_some_and(|&place| place > 0)
    }

    /// Fills the row of match scores of a key, which has none yet: `scores` of all columns' residues.
    pub fn add_row(&mut self, key: u32, scores: impl Iterator<Item = f64>) {
        debug_assert!(!self.has_row(key));
        let (profile, columns) = (&mut self.profile, &self.columns);
        if profile.places.len() <= key as usize {
            profile.places.resize(key as usize + 1, 0);
        }
        let begin = profile.rows.len();
        profile.rows.resize(begin + columns.stride(), f64::NEG_INFINITY);
        profile.built.push(key);
        profile.places[key as usize] = profile.built.len() as u32;
        let row = &mut profile.rows[begin..];
        // Residue j is before column j + 1: the places of one run after the other.
        let (mut step, mut lane) = (1 % columns.steps, 1 / columns.steps);
        for score in scores {
            row[step * LANES + lane] = score;
            step += 1;
            if step == columns.steps {
                (step, lane) = (0, lane + 1);
            }
        }
    }

    /// The score of the best alignment: 0 for an empty local one.
    ///
    /// # Panics
    /// If a key has no row.
    pub fn score(&mut self, rows: Rows<'_>) -> f64 {
        self.start();
        let stride = self.columns.stride();
        self.table.resize((2 * stride).max(self.table.len()), 0.0);
        let found = self.fill(rows, 0..rows.keys.len(), false);
        self.value(found, rows.keys.len() % 2)
    }

    /// The best alignment, and its score: 0 for an empty local one.
    ///
    /// # Panics
    /// If a key has no row.
    pub fn best(&mut self, rows: Rows<'_>, path: &mut Path) -> f64 {
        let (count, stride) = (rows.keys.len(), self.columns.stride());
        let most = self.most.unwrap_or(MOST);
        let is_small = (count + 1).saturating_mul(stride) <= most;
        let block = if is_small { count.max(1) } else { block_rows(count, stride, most).min(count) };
        let is_whole = block >= count;
        self.table.resize(((block + 1) * stride).max(self.table.len()), 0.0);
        self.start();
        path.clear();
        if is_whole {
            let found = self.fill(rows, 0..count, true);
            let value = self.value(found, count);
            self.way_back(rows, block, value, found, path);
            return value;
        }
        self.kept.resize((2 * count.div_ceil(block).max(1) * stride).max(self.kept.len()), 0.0);
        let mut found = Found::default();
        for (at, begin) in (0..count).step_by(block).enumerate() {
            let (h, f) = self.kept[2 * at * stride..][..2 * stride].split_at_mut(stride);
            h.copy_from_slice(&self.table[..stride]);
            f.copy_from_slice(&self.f);
            let end = count.min(begin + block);
            let of_block = self.fill(rows, begin..end, false);
            if of_block.value > found.value {
                found = of_block;
            }
            let last = ((end - begin) % 2) * stride;
            self.table.copy_within(last..last + stride, 0);
        }
        let value = self.value(found, 0);
        self.way_back(rows, block, value, found, path);
        value
    }

    /// Numbers that a table may have before rows of it are left out: for tests, which show that it does not matter.
    #[doc(hidden)]
    pub fn limit(&mut self, most: usize) {
        self.most = Some(most);
    }

    /// Row 0 of H and F.
    fn start(&mut self) {
        let columns = &self.columns;
        let stride = columns.stride();
        self.f.clear();
        self.f.resize(stride, f64::NEG_INFINITY);
        self.table.resize(stride.max(self.table.len()), 0.0);
        let row = &mut self.table[..stride];
        row.fill(f64::NEG_INFINITY);
        if self.reach == Reach::Global {
            row[columns.place(0)] = 0.0;
            for j in 1..=columns.count {
                row[columns.place(j)] = columns.open[0] - columns.sums[1] + columns.sums[j];
            }
        }
    }

    /// Goes on from row `range.start`, which stands in the first place of the table, to row `range.end`. All rows are left in the
    /// table, or the last one in its first or second place, as their number is even or odd.
    fn fill(&mut self, rows: Rows<'_>, range: std::ops::Range<usize>, keeps_all: bool) -> Found {
        let Self { reach, columns, profile, table, f, undo, .. } = self;
        let Profile { rows: scores, places, .. } = profile;
        advance_all(Fill {
            is_local: *reach == Reach::Local,
            columns,
            scores,
            places,
            rows,
            range,
            keeps_all,
            table,
            f,
            undo,
        })
    }

    /// The score of the best alignment, where the last row stands at `last` in the table.
    fn value(&self, found: Found, last: usize) -> f64 {
        let value = match self.reach {
            Reach::Local => found.value.max(0.0),
            Reach::Global => self.table[last * self.columns.stride() + self.columns.place(self.columns.count)],
        };
        // The sign of a zero depends on the vectors of the machine: the sum with 0 makes it positive.
        value + 0.0
    }
}

/// The sums of the better of both, from 0 on.
fn sum_up(open: &[f64], extend: &[f64], sums: &mut Vec<f64>) {
    sums.clear();
    sums.push(0.0);
    let mut sum = 0.0;
    for (&open, &extend) in open.iter().zip(extend) {
        sum += open.max(extend);
        sums.push(sum);
    }
}
