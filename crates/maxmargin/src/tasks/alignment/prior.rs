//! Alignments learned with some directions of the weights known beforehand, the columns of K.
//!
//! ```text
//! psi'(x, y) = (psi(x, y), K' psi(x, y)),      w' = (v, b)
//! <w', psi'> = <v + K b, psi>,                 1/2 |w'|^2 = 1/2 |v|^2 + 1/2 |b|^2
//! ```
//!
//! A direction may be a published table with its costs of gaps, from which training goes on; or that all pairs of equal letters
//! score alike, and all pairs of different ones ([`Alignment::tied`]), so that what few examples show of some letters counts for all.
//!
//! The score under each is one more feature, so that every solver trains it as it is, with its certificate. A multiple b of a
//! direction k costs `b^2` where v would pay `b^2 |k|^2` for the same scores: training finds its scale almost for free, and pays for
//! what it changes in its shape. What is learned are the *effective* weights `v + K b`, those of an ordinary aligner.
//!
//! At an optimum w' is a combination of differences `(dpsi, K' dpsi)`, hence `b = K' v`, which is the w' of least norm among those
//! with the same effective weights: effective weights tell all.

use super::{AlignScratch, Aligned, Alignment, Query};
use crate::error::Result;
use crate::features::{Block, Sink};
use crate::sparse::{SparseView, dot};
use crate::task::{Counted, LossTerm, Task};
use crate::weights::Weights;

/// Directions at most: a table, and two ties each of letters and of marks.
const MOST: usize = 5;

/// Learning to align along known directions. See the [module](self).
#[derive(Debug, Clone)]
pub struct FromPrior {
    task: Alignment,
    known: Vec<Weights>,
    /// Those of the task, and one with a slot for each direction.
    blocks: Vec<Block>,
}

impl FromPrior {
    /// `known`: the directions, as `task` lays weights out.
    ///
    /// # Panics
    /// If there is none or are more than 5, or one has not the task's dimension.
    pub fn new(task: Alignment, known: Vec<Weights>) -> Self {
        let dimension = task.dimension();
        assert!(
            (1..=MOST).contains(&known.len()) && known.iter().all(|k| k.len() == dimension),
            "weights of this task"
        );
        let own = Block { base: dimension as u64, rows: 1, width: known.len() as u32 };
        let blocks = task.blocks.iter().copied().chain([own]).collect();
        Self { task, known, blocks }
    }

    /// What is learned without them.
    pub fn task(&self) -> &Alignment {
        &self.task
    }

    /// b, the factor of each direction.
    pub fn factors<'w>(&self, w: &'w Weights) -> &'w [f64] {
        &w.as_slice()[self.task.dimension()..]
    }

    /// `v + K b`
    pub fn effective(&self, w: &Weights) -> Weights {
        let mut effective = Weights::zeros(self.task.dimension());
        self.fill(w, &mut effective);
        effective
    }

    /// The (v, b) of least norm with these effective weights: where a warm start begins.
    pub fn lifted(&self, effective: &Weights) -> Weights {
        // The least |e - K b|^2 + |b|^2: (I + K'K) b = K'e.
        let inner = |a: &Weights, b: &Weights| dot(a.as_slice(), b.as_slice());
        let row = |(i, a): (usize, &Weights)| {
            let of_others = self.known.iter().enumerate().map(|(j, b)| f64::from(u8::from(i == j)) + inner(a, b));
            of_others.chain([inner(a, effective)]).collect()
        };
        let factors = solved(self.known.iter().enumerate().map(row).collect());
        let mut lifted = effective.as_slice().to_vec();
        for (direction, factor) in self.known.iter().zip(&factors) {
            lifted.iter_mut().zip(direction.as_slice()).for_each(|(v, k)| *v -= factor * k);
        }
        lifted.extend(factors);
        lifted.into()
    }

    fn fill(&self, w: &Weights, effective: &mut Weights) {
        effective.as_mut_slice().copy_from_slice(&w.as_slice()[..self.task.dimension()]);
        for (direction, factor) in self.known.iter().zip(self.factors(w)) {
            effective.as_mut_slice().iter_mut().zip(direction.as_slice()).for_each(|(sum, k)| *sum += factor * k);
        }
    }

    /// Effective weights in the scratch: a few hundred numbers, beside a table of residues times residues.
    fn prepared<'s>(&self, w: &Weights, scratch: &'s mut PriorScratch) -> (&'s Weights, &'s mut AlignScratch) {
        let PriorScratch { effective, tables } = scratch;
        if effective.len() != self.task.dimension() {
            *effective = self.known[0].zeros_like();
        }
        self.fill(w, effective);
        (effective, tables)
    }

    /// Emits what the task does, and then its scores under the directions.
    fn with_scores<S: Sink>(&self, sink: &mut S, emit: impl FnOnce(&mut Watched<'_, S>) -> Result<()>) -> Result<()> {
        let mut watched = Watched { sink, known: &self.known, scores: [0.0; MOST] };
        emit(&mut watched)?;
        let own = self.blocks[self.blocks.len() - 1];
        let scores = watched.scores;
        (0..own.width).zip(scores).for_each(|(slot, score)| sink.part(own, slot, SparseView::constant(), score));
        Ok(())
    }
}

impl Alignment {
    /// Directions in which all pairs of equal letters have one score, and all of different ones another; likewise of marks.
    pub fn tied(&self) -> Vec<Weights> {
        let tables = [(0, self.settings.letters), (2, self.settings.marks)];
        let kinds = tables.into_iter().filter(|&(_, size)| size > 0).flat_map(|table| [(table, true), (table, false)]);
        let direction = |((block, size), is_equal): ((usize, u32), bool)| {
            let mut direction = Weights::zeros(self.dimension());
            for (a, b) in (0..size).flat_map(|a| (0..size).map(move |b| (a, b))) {
                if (a == b) == is_equal {
                    direction.as_mut_slice()[self.blocks[block].at(0, a * size + b)] = 1.0;
                }
            }
            direction
        };
        kinds.map(direction).collect()
    }
}

/// The x of `A x = b`, from the rows of (A b), A being positive definite.
fn solved(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    let n = rows.len();
    for k in 0..n {
        let pivot = rows[k].clone();
        let (above, below) = rows.split_at_mut(k);
        for row in above.iter_mut().chain(&mut below[1..]) {
            let share = row[k] / pivot[k];
            row.iter_mut().zip(&pivot).for_each(|(x, p)| *x -= share * p);
        }
    }
    rows.iter().enumerate().map(|(k, row)| row[n] / row[k]).collect()
}

/// Hands parts on, and adds up their scores under the directions.
struct Watched<'a, S> {
    sink: &'a mut S,
    known: &'a [Weights],
    scores: [f64; MOST],
}

impl<S: Sink> Sink for Watched<'_, S> {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        for (score, direction) in self.scores.iter_mut().zip(self.known) {
            *score += scale * direction.score(block, slot, phi);
        }
        self.sink.part(block, slot, phi, scale);
    }
}

/// The decoder's tables, and the weights that it works with.
#[derive(Debug, Default)]
pub struct PriorScratch {
    effective: Weights,
    tables: AlignScratch,
}

impl Task for FromPrior {
    type Input<'a> = &'a Query;
    type Output = Aligned;
    type Scratch = PriorScratch;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: &Query, y: &Aligned, sink: &mut impl Sink) -> Result<()> {
        self.with_scores(sink, |sink| self.task.features(x, y, sink))
    }

    fn difference(&self, x: &Query, truth: &Aligned, y: &Aligned, sink: &mut impl Sink) -> Result<()> {
        self.with_scores(sink, |sink| self.task.difference(x, truth, y, sink))
    }

    fn loss(&self, truth: &Aligned, y: &Aligned) -> f64 {
        self.task.loss(truth, y)
    }

    fn max_loss(&self, truth: &Aligned) -> f64 {
        self.task.max_loss(truth)
    }

    fn argmax(
        &self,
        w: &Weights,
        x: &Query,
        loss: Option<LossTerm<'_, Aligned>>,
        scratch: &mut PriorScratch,
        y: &mut Aligned,
    ) -> Result<()> {
        let (effective, tables) = self.prepared(w, scratch);
        self.task.argmax(effective, x, loss, tables, y)
    }

    fn check(&self, x: &Query, y: &Aligned) -> std::result::Result<(), String> {
        Task::check(&self.task, x, y)
    }

    fn counted(&self) -> Option<&dyn Counted<Self>> {
        if self.task.counted().is_some() { Some(self) } else { None }
    }

    fn oracle_cost(&self, x: &Query) -> f64 {
        self.task.oracle_cost(x)
    }
}

impl Counted<Self> for FromPrior {
    fn check(&self, x: &Query, truth: &Aligned) -> std::result::Result<(), String> {
        Counted::check(&self.task, x, truth)
    }

    fn argmax_of(
        &self,
        w: &Weights,
        x: &Query,
        truth: &Aligned,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut PriorScratch,
        y: &mut Aligned,
    ) -> Result<bool> {
        let (effective, tables) = self.prepared(w, scratch);
        self.task.argmax_of(effective, x, truth, value, tables, y)
    }
}
