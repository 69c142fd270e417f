//! Alignments of two sequences (Tsochantaridis, Hofmann, Joachims, Altun 2004, section 5.4).
//!
//! ```text
//! psi(x, z, a) = histogram of the operations of a: a count for each pair of letters that are matched, of gaps opened and
//!                extended (linear gaps: of gap columns); with marks of residues (structure, exposure, ...) also a count for
//!                each pair of marks that are matched, and of gaps by the mark of the residue that faces them
//! ```
//!
//! Two kinds of output:
//!
//! - [`AlignLoss::ZeroOne`]: a candidate for x, the homologue or one of its decoys, with any alignment, of which the best counts.
//!   Of the homologue there may be one alignment only, that which is [given](Query::given): others are no constraints. The loss is
//!   1 for a decoy.
//! - all other losses: the alignment of x with its homologue. q is the share of true matches that are missed, q4 the share of those
//!   without a match of the same residue of x at most 4 residues of z away, Hamming the share of all residues whose partner, another
//!   residue or none, is not the true one. Gaps alone cost nothing.
//!
//! All of them add up over the cells of the table ([`inference::align`](crate::inference::align)): margin rescaling is exact, and for
//! zero-one all else is, too.

mod generative;
mod loss;
mod prior;
mod query;

use crate::error::Result;
use crate::features::{Block, Sink};
use crate::inference::align::{Aligner, Bonuses, Op, Path, Reach, Rows};
use crate::sparse::SparseView;
use crate::task::{Counted, LossTerm, Task};
use crate::weights::{Score, Weights};

pub use loss::{Agreement, WINDOW};
pub use prior::{FromPrior, PriorScratch};
pub use query::{Aligned, NONE, Query, Sequence};

/// What gaps cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gaps {
    /// Every column of a gap the same.
    Linear,
    /// The first column of a gap is one thing, every further one another.
    #[default]
    Affine,
}

/// What an error costs. See the [module](self).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AlignLoss {
    /// A decoy costs 1.
    #[default]
    ZeroOne,
    /// The share of true matches that are missed.
    Q,
    /// The share of true matches that are missed by more than 4 residues.
    Q4,
    /// The share of residues with a wrong partner.
    Hamming,
}

/// What alignments are made of, and what is asked of them.
#[derive(Debug, Clone, PartialEq)]
pub struct AlignSettings {
    /// Number of letters, from 1 to 254.
    pub letters: u32,
    /// Number of marks of residues, up to 254; 0: residues have none.
    pub marks: u32,
    /// How much of the sequences is aligned.
    pub reach: Reach,
    /// What gaps cost.
    pub gaps: Gaps,
    /// What an error costs.
    pub loss: AlignLoss,
    /// Costs of gaps, positive, of which the generative model takes what is best on the training data. See
    /// [`GRID`](Self::GRID).
    pub gap_grid: Vec<f64>,
}

impl AlignSettings {
    /// Costs of gaps that are tried where nobody says which.
    pub const GRID: [f64; 8] = [0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 12.0];
}

/// Letters and marks that can be told apart.
pub const MOST_LETTERS: u32 = NONE as u32 - 1;

/// Learning to align.
#[derive(Debug, Clone)]
pub struct Alignment {
    settings: AlignSettings,
    /// Pairs of letters, gaps; with marks pairs of marks, gaps by mark.
    blocks: Vec<Block>,
}

impl Alignment {
    /// # Panics
    /// If there are no letters, or too many letters or marks.
    pub fn new(settings: AlignSettings) -> Self {
        assert!((1..=MOST_LETTERS).contains(&settings.letters) && settings.marks <= MOST_LETTERS, "codes of a byte");
        let gaps = match settings.gaps {
            Gaps::Linear => 1,
            Gaps::Affine => 2,
        };
        let mut widths = vec![settings.letters * settings.letters, gaps];
        if settings.marks > 0 {
            widths.extend([settings.marks * settings.marks, settings.marks * gaps]);
        }
        let mut base = 0;
        let place = |width: u32| {
            let block = Block { base, rows: 1, width };
            base += block.len();
            block
        };
        let blocks = widths.into_iter().map(place).collect();
        Self { settings, blocks }
    }

    /// What alignments are made of.
    pub fn settings(&self) -> &AlignSettings {
        &self.settings
    }

    /// The weights of a block.
    fn of<'w>(&self, w: &'w Weights, block: usize) -> &'w [f64] {
        let Some(Block { base, width, .. }) = self.blocks.get(block) else { return &[] };
        &w.as_slice()[*base as usize..][..*width as usize]
    }

    /// The weight of a match of two letters, of x and of z, and of two marks.
    pub fn match_score(&self, w: &Weights, (x, z): (u8, u8), (mark_x, mark_z): (u8, u8)) -> f64 {
        let of_table = |block: usize, size: u32, a: u8, b: u8| match (u32::from(a), u32::from(b)) {
            (a, b) if a < size && b < size => self.of(w, block)[(a * size + b) as usize],
            _ => 0.0,
        };
        of_table(0, self.settings.letters, x, z) + of_table(2, self.settings.marks, mark_x, mark_z)
    }

    /// The scores of the first column of a gap that faces a residue, and of every further one.
    pub fn gap_scores(&self, w: &Weights, mark: u8) -> (f64, f64) {
        let (gaps, by_mark) = (self.of(w, 1), self.of(w, 3));
        let of_mark = |k: usize| {
            let is_known = u32::from(mark) < self.settings.marks;
            if is_known { by_mark[usize::from(mark) * gaps.len() + k] } else { 0.0 }
        };
        let (first, last) = (0, gaps.len() - 1);
        (gaps[first] + of_mark(first), gaps[last] + of_mark(last))
    }

    /// Does the output tell which candidate?
    fn has_decoys(&self) -> bool {
        self.settings.loss == AlignLoss::ZeroOne
    }

    /// Emits the matches of some pairs.
    fn emit_match(&self, x: &Query, z: &Sequence, (i, j): (u32, u32), scale: f64, sink: &mut impl Sink) {
        let (i, j) = (i as usize, j as usize);
        let mut emit = |block: usize, size: u32, a: u8, b: u8| {
            let (a, b) = (u32::from(a), u32::from(b));
            if a < size && b < size {
                sink.part(self.blocks[block], a * size + b, SparseView::constant(), scale);
            }
        };
        emit(0, self.settings.letters, x.x.letters[i], z.letters[j]);
        if self.settings.marks > 0 {
            emit(2, self.settings.marks, x.x.mark(i), z.mark(j));
        }
    }

    /// Emits the gaps of an alignment.
    fn emit_gaps(&self, x: &Query, z: &Sequence, path: &Path, scale: f64, sink: &mut impl Sink) {
        let (width, one) = (self.blocks[1].width, SparseView::constant());
        for (run, i, j) in path.places() {
            let (sequence, begin) = match run.op {
                Op::Match => continue,
                Op::OnlyX => (&x.x, i),
                Op::OnlyZ => (z, j),
            };
            match self.settings.gaps {
                Gaps::Linear => sink.part(self.blocks[1], 0, one, scale * f64::from(run.count)),
                Gaps::Affine => {
                    sink.part(self.blocks[1], 0, one, scale);
                    if run.count > 1 {
                        sink.part(self.blocks[1], 1, one, scale * f64::from(run.count - 1));
                    }
                }
            }
            if self.settings.marks > 0 {
                for k in 0..run.count {
                    let mark = u32::from(sequence.mark((begin + k) as usize));
                    let slot = if k == 0 { 0 } else { width - 1 };
                    if mark < self.settings.marks {
                        sink.part(self.blocks[3], mark * width + slot, one, scale);
                    }
                }
            }
        }
    }

    /// Puts x along the columns.
    fn begin(&self, w: &Weights, x: &Query, scratch: &mut AlignScratch) {
        let AlignScratch { aligner, open, extend, .. } = scratch;
        self.fill_gaps(w, &x.x, open, extend);
        aligner.begin(self.settings.reach, open, extend);
    }

    fn fill_gaps(&self, w: &Weights, sequence: &Sequence, open: &mut Vec<f64>, extend: &mut Vec<f64>) {
        open.clear();
        extend.clear();
        if self.settings.marks == 0 {
            let (first, further) = self.gap_scores(w, NONE);
            open.resize(sequence.len(), first);
            extend.resize(sequence.len(), further);
            return;
        }
        for i in 0..sequence.len() {
            let (first, further) = self.gap_scores(w, sequence.mark(i));
            open.push(first);
            extend.push(further);
        }
    }

    /// Puts a candidate along the rows: its keys, its gaps, and rows of match scores where there are none yet. `own`: what a match of
    /// a residue has besides, of x and, by its number, of z.
    fn prepare(&self, w: &Weights, x: &Query, z: &Sequence, own: Option<&Own<'_>>, scratch: &mut AlignScratch) {
        let AlignScratch { aligner, open, extend, keys, column, .. } = scratch;
        self.fill_gaps(w, z, open, extend);
        let (letters, marks) = (self.settings.letters, self.settings.marks);
        let (table, by_mark) = (self.of(w, 0), self.of(w, 2));
        keys.clear();
        for j in 0..z.len() {
            let (letter, mark) = (u32::from(z.letters[j]).min(letters), u32::from(z.mark(j)).min(marks));
            let is_free = own.is_some_and(|own| own.free_z[j]);
            let key = (letter * (marks + 1) + mark) * 2 + u32::from(is_free);
            keys.push(key);
            if aligner.has_row(key) {
                continue;
            }
            // The last number is that of letters and marks that are not known.
            column.clear();
            column.extend(
                (0..letters).map(|a| if letter < letters { table[(a * letters + letter) as usize] } else { 0.0 }),
            );
            column.push(0.0);
            let of_letter = |i: usize| column[u32::from(x.x.letters[i]).min(letters) as usize];
            let of_mark = |i: usize| {
                let a = u32::from(x.x.mark(i));
                if a < marks && mark < marks { by_mark[(a * marks + mark) as usize] } else { 0.0 }
            };
            let columns = 0..x.x.len();
            match own {
                None if marks == 0 => aligner.add_row(key, columns.map(of_letter)),
                None => aligner.add_row(key, columns.map(|i| of_letter(i) + of_mark(i))),
                Some(own) => {
                    let of_z = if is_free { own.bonus } else { 0.0 };
                    let of_x = |i: usize| if own.free_x[i] { own.bonus } else { 0.0 };
                    aligner.add_row(key, columns.map(|i| of_letter(i) + of_mark(i) + of_x(i) + of_z));
                }
            }
        }
    }

    /// The candidate, with its best alignment, that has the most by a function of loss and score. The first of equals: decoys come
    /// before the homologue, so that who cannot tell them apart is wrong.
    fn best_candidate(
        &self,
        w: &Weights,
        x: &Query,
        truth: Option<u32>,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut AlignScratch,
        y: &mut Aligned,
    ) {
        self.begin(w, x, scratch);
        scratch.bonuses.clear();
        let (mut best, mut at) = (f64::NEG_INFINITY, 0);
        for c in (1..x.candidates.len()).chain([0]) {
            let score = match &x.given {
                Some(path) if c == 0 => self.score_path(w, x, &x.candidates[0], path),
                _ => {
                    self.prepare(w, x, &x.candidates[c], None, scratch);
                    let AlignScratch { aligner, open, extend, keys, bonuses, .. } = scratch;
                    aligner.score(Rows { keys, open, extend, bonuses })
                }
            };
            let loss = if truth.is_some_and(|truth| truth as usize != c) { 1.0 } else { 0.0 };
            let value = value(loss, score);
            if value > best {
                (best, at) = (value, c);
            }
        }
        (y.candidate, y.residues) = (at as u32, x.residues(at));
        match &x.given {
            Some(path) if at == 0 => y.path.clone_from(path),
            _ => {
                self.prepare(w, x, &x.candidates[at], None, scratch);
                let AlignScratch { aligner, open, extend, keys, bonuses, .. } = scratch;
                aligner.best(Rows { keys, open, extend, bonuses }, &mut y.path);
            }
        }
    }

    /// The scores of the best alignments of all candidates.
    pub fn candidate_scores(&self, w: &Weights, x: &Query, scratch: &mut AlignScratch, scores: &mut Vec<f64>) {
        self.begin(w, x, scratch);
        scratch.bonuses.clear();
        scores.clear();
        for z in &x.candidates {
            self.prepare(w, x, z, None, scratch);
            let AlignScratch { aligner, open, extend, keys, bonuses, .. } = scratch;
            scores.push(aligner.score(Rows { keys, open, extend, bonuses }));
        }
    }

    /// The best alignment of x with a candidate; returns its score.
    pub fn align(&self, w: &Weights, x: &Query, candidate: usize, scratch: &mut AlignScratch, path: &mut Path) -> f64 {
        self.begin(w, x, scratch);
        scratch.bonuses.clear();
        self.prepare(w, x, &x.candidates[candidate], None, scratch);
        let AlignScratch { aligner, open, extend, keys, bonuses, .. } = scratch;
        aligner.best(Rows { keys, open, extend, bonuses }, path)
    }

    fn score_path(&self, w: &Weights, x: &Query, z: &Sequence, path: &Path) -> f64 {
        let mut sink = Score { w, total: 0.0 };
        self.emit_all(x, z, path, 1.0, &mut sink);
        sink.total
    }

    fn emit_all(&self, x: &Query, z: &Sequence, path: &Path, scale: f64, sink: &mut impl Sink) {
        path.matches().for_each(|pair| self.emit_match(x, z, pair, scale, sink));
        self.emit_gaps(x, z, path, scale, sink);
    }
}

/// What matches have besides, by their residues alone: those without a partner in the truth.
struct Own<'a> {
    free_x: &'a [bool],
    free_z: &'a [bool],
    bonus: f64,
}

/// The decoder's tables.
#[derive(Debug, Default)]
pub struct AlignScratch {
    aligner: Aligner,
    open: Vec<f64>,
    extend: Vec<f64>,
    keys: Vec<u32>,
    column: Vec<f64>,
    bonuses: Bonuses,
    /// The true matches.
    matches: Vec<(u32, u32)>,
    free_x: Vec<bool>,
    free_z: Vec<bool>,
}

impl Task for Alignment {
    type Input<'a> = &'a Query;
    type Output = Aligned;
    type Scratch = AlignScratch;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: &Query, y: &Aligned, sink: &mut impl Sink) -> Result<()> {
        self.emit_all(x, &x.candidates[y.candidate as usize], &y.path, 1.0, sink);
        Ok(())
    }

    fn difference(&self, x: &Query, truth: &Aligned, y: &Aligned, sink: &mut impl Sink) -> Result<()> {
        let (z, other) = (&x.candidates[truth.candidate as usize], &x.candidates[y.candidate as usize]);
        if truth.candidate != y.candidate {
            self.emit_all(x, z, &truth.path, 1.0, sink);
            self.emit_all(x, other, &y.path, -1.0, sink);
            return Ok(());
        }
        loss::each_difference(&truth.path, &y.path, |pair, is_true| {
            self.emit_match(x, z, pair, if is_true { 1.0 } else { -1.0 }, sink);
        });
        self.emit_gaps(x, z, &truth.path, 1.0, sink);
        self.emit_gaps(x, z, &y.path, -1.0, sink);
        Ok(())
    }

    fn loss(&self, truth: &Aligned, y: &Aligned) -> f64 {
        let agreement = || Agreement::of(&truth.path, &y.path);
        match self.settings.loss {
            AlignLoss::ZeroOne => f64::from(u8::from(truth.candidate != y.candidate)),
            AlignLoss::Q => 1.0 - agreement().q(),
            AlignLoss::Q4 => 1.0 - agreement().q4(),
            AlignLoss::Hamming => f64::from(agreement().wrong()) / f64::from(truth.residues.max(1)),
        }
    }

    fn max_loss(&self, _truth: &Aligned) -> f64 {
        1.0
    }

    fn argmax(
        &self,
        w: &Weights,
        x: &Query,
        loss: Option<LossTerm<'_, Aligned>>,
        scratch: &mut AlignScratch,
        y: &mut Aligned,
    ) -> Result<()> {
        if self.has_decoys() {
            let (truth, weight) = loss.map_or((None, 0.0), |term| (Some(term.truth.candidate), term.weight));
            self.best_candidate(w, x, truth, &|loss, score| score + weight * loss, scratch, y);
            return Ok(());
        }
        let z = &x.candidates[0];
        self.begin(w, x, scratch);
        scratch.bonuses.clear();
        if let Some(LossTerm { truth, weight }) = loss.filter(|term| term.weight != 0.0) {
            self.add_loss(w, x, truth, weight, scratch);
        } else {
            self.prepare(w, x, z, None, scratch);
        }
        let AlignScratch { aligner, open, extend, keys, bonuses, .. } = scratch;
        aligner.best(Rows { keys, open, extend, bonuses }, &mut y.path);
        (y.candidate, y.residues) = (0, x.residues(0));
        Ok(())
    }

    fn check(&self, x: &Query, y: &Aligned) -> std::result::Result<(), String> {
        query::check(self, x, y)
    }

    fn counted(&self) -> Option<&dyn Counted<Self>> {
        if self.has_decoys() { Some(self) } else { None }
    }

    fn generative<'e>(&self, examples: &mut dyn Iterator<Item = (&'e Query, &'e Aligned, f64)>) -> Option<Weights> {
        Some(generative::estimate(self, examples))
    }

    fn oracle_cost(&self, x: &Query) -> f64 {
        // A cell, in vectors, takes a tenth of the time that a column of an output takes, whose weight is looked up.
        const CELLS: f64 = 10.0;
        let count = if self.has_decoys() { x.candidates.len() } else { 1 };
        let rows: usize = x.candidates.iter().take(count).map(Sequence::len).sum();
        let columns = x.x.len() as f64;
        (columns * rows as f64 / (CELLS * (columns + x.candidates[0].len() as f64 + 1.0))).max(1.0)
    }
}

impl Counted<Self> for Alignment {
    fn check(&self, _x: &Query, _truth: &Aligned) -> std::result::Result<(), String> {
        Ok(())
    }

    fn argmax_of(
        &self,
        w: &Weights,
        x: &Query,
        truth: &Aligned,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut AlignScratch,
        y: &mut Aligned,
    ) -> Result<bool> {
        self.best_candidate(w, x, Some(truth.candidate), value, scratch, y);
        Ok(true)
    }
}
