//! Alignments learned on from scores that are known already, w0: a published table with its costs of gaps.
//!
//! ```text
//! psi'(x, y) = (psi(x, y), <w0, psi(x, y)>),      w' = (v, b)
//! <w', psi'> = <v + b w0, psi>,                   1/2 |w'|^2 = 1/2 |v|^2 + 1/2 b^2
//! ```
//!
//! The score under w0 is one more feature, so that every solver trains it as it is, with its certificate. A multiple of w0 costs b^2
//! where v would pay `b^2 |w0|^2` for the same scores: training finds the scale of the prior almost for free, and pays for what it
//! changes in its shape. What is learned are the *effective* weights `v + b w0`, those of an ordinary aligner.
//!
//! At an optimum w' is a combination of differences `(dpsi, <w0, dpsi>)`, hence `b = <w0, v>`, which is the w' of least norm among
//! those with the same effective weights: effective weights tell all.

use super::{AlignScratch, Aligned, Alignment, Query};
use crate::error::Result;
use crate::features::{Block, Sink};
use crate::sparse::{SparseView, dot};
use crate::task::{Counted, LossTerm, Task};
use crate::weights::Weights;

/// Learning to align, from known scores on. See the [module](self).
#[derive(Debug, Clone)]
pub struct FromPrior {
    task: Alignment,
    known: Weights,
    /// Those of the task, and one of width 1.
    blocks: Vec<Block>,
}

impl FromPrior {
    /// `known`: w0, as `task` lays weights out.
    ///
    /// # Panics
    /// If `known` has not the task's dimension.
    pub fn new(task: Alignment, known: Weights) -> Self {
        assert_eq!(known.len(), task.dimension(), "weights of this task");
        let own = Block { base: known.len() as u64, rows: 1, width: 1 };
        let blocks = task.blocks.iter().copied().chain([own]).collect();
        Self { task, known, blocks }
    }

    /// What is learned without the prior.
    pub fn task(&self) -> &Alignment {
        &self.task
    }

    /// b, the factor on the known scores.
    pub fn factor(&self, w: &Weights) -> f64 {
        w.as_slice()[self.known.len()]
    }

    /// `v + b w0`
    pub fn effective(&self, w: &Weights) -> Weights {
        let mut effective = Weights::zeros(self.known.len());
        self.fill(w, &mut effective);
        effective
    }

    /// The (v, b) of least norm with these effective weights: where a warm start begins.
    pub fn lifted(&self, effective: &Weights) -> Weights {
        let (known, effective) = (self.known.as_slice(), effective.as_slice());
        let factor = dot(known, effective) / (1.0 + dot(known, known));
        effective.iter().zip(known).map(|(w, w0)| w - factor * w0).chain([factor]).collect()
    }

    fn fill(&self, w: &Weights, effective: &mut Weights) {
        let factor = self.factor(w);
        let parts = w.as_slice().iter().zip(self.known.as_slice());
        effective.as_mut_slice().iter_mut().zip(parts).for_each(|(sum, (v, w0))| *sum = v + factor * w0);
    }

    /// Effective weights in the scratch: a few hundred numbers, beside a table of residues times residues.
    fn prepared<'s>(&self, w: &Weights, scratch: &'s mut PriorScratch) -> (&'s Weights, &'s mut AlignScratch) {
        let PriorScratch { effective, tables } = scratch;
        if effective.len() != self.known.len() {
            *effective = self.known.zeros_like();
        }
        self.fill(w, effective);
        (effective, tables)
    }

    /// Emits what the task does, and then its score under the known weights.
    fn with_score<S: Sink>(&self, sink: &mut S, emit: impl FnOnce(&mut Watched<'_, S>) -> Result<()>) -> Result<()> {
        let mut watched = Watched { sink, known: &self.known, score: 0.0 };
        emit(&mut watched)?;
        let score = watched.score;
        sink.part(self.blocks[self.blocks.len() - 1], 0, SparseView::constant(), score);
        Ok(())
    }
}

/// Hands parts on, and adds up their score under the known weights.
struct Watched<'a, S> {
    sink: &'a mut S,
    known: &'a Weights,
    score: f64,
}

impl<S: Sink> Sink for Watched<'_, S> {
    fn part(&mut self, block: Block, slot: u32, phi: SparseView<'_>, scale: f64) {
        self.score += scale * self.known.score(block, slot, phi);
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
        self.with_score(sink, |sink| self.task.features(x, y, sink))
    }

    fn difference(&self, x: &Query, truth: &Aligned, y: &Aligned, sink: &mut impl Sink) -> Result<()> {
        self.with_score(sink, |sink| self.task.difference(x, truth, y, sink))
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
    ) -> Result<()> {
        let (effective, tables) = self.prepared(w, scratch);
        self.task.argmax_of(effective, x, truth, value, tables, y)
    }
}
