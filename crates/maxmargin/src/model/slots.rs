//! The scores of the slots of a block, from weights or from the support vectors of a kernel.

use crate::features::Block;
use crate::kernel::Expansion;
use crate::sparse::{Rows, SparseView};
use crate::weights::Weights;

/// What a model of one block scores rows by, which are without the constant feature.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotScores<'m> {
    weights: &'m Weights,
    /// The rows of the input features.
    block: Block,
    constant: f64,
    /// The weights of the constant feature; empty where there is none.
    constant_row: &'m [f64],
    /// What the scores come from instead of the weights.
    kernel: Option<&'m Expansion>,
}

impl<'m> SlotScores<'m> {
    /// `weights`: a row for each feature, and the constant one last, where `bias` is not 0.
    pub(super) fn new(
        weights: &'m Weights,
        features: u32,
        width: u32,
        bias: f64,
        kernel: Option<&'m Expansion>,
    ) -> Self {
        let block = Block { base: 0, rows: features, width };
        let constant_row = weights.as_slice().get(block.len() as usize..).unwrap_or_default();
        Self { weights, block, constant: f64::from(bias as f32), constant_row, kernel }
    }

    /// Number of slots.
    pub(super) fn width(&self) -> usize {
        self.block.width as usize
    }

    /// The scores of all slots. Features that the model does not know are left out.
    pub(super) fn scores(&self, x: SparseView<'_>, scores: &mut [f64]) {
        if let Some(kernel) = self.kernel {
            return kernel.scores(&[x.below(self.block.rows)], scores);
        }
        self.weights.scores(self.block, x.below(self.block.rows), scores);
        // The constant feature is the last one, so it is added last: the same bits as in training.
        for (score, w) in scores.iter_mut().zip(self.constant_row) {
            *score += self.constant * w;
        }
    }

    /// The scores of many rows, one after the other. With a kernel this is much faster than row by row.
    pub(super) fn each(&self, rows: Rows<'_>, scores: &mut Vec<f64>, mut take: impl FnMut(&mut [f64])) {
        let width = self.width();
        let Some(kernel) = self.kernel else {
            scores.resize(width, 0.0);
            for i in 0..rows.len() {
                self.scores(rows.row(i), scores);
                take(scores);
            }
            return;
        };
        let mut block = Vec::with_capacity(Expansion::BLOCK.min(rows.len()));
        for start in (0..rows.len()).step_by(Expansion::BLOCK) {
            let end = rows.len().min(start + Expansion::BLOCK);
            block.clear();
            block.extend((start..end).map(|i| rows.row(i).below(self.block.rows)));
            scores.resize(block.len() * width, 0.0);
            kernel.scores(&block, scores);
            scores.chunks_exact_mut(width).for_each(&mut take);
        }
    }
}
