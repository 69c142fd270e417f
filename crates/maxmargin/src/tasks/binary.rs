//! Two classes: `psi(x, y) = 1/2 y x` with y = -1, +1 (Joachims, Finley, Yu 2009, eq. 28). With the zero-one
//! loss this is the standard linear SVM, `min 1/2 |w|^2 + (C/n) sum max(0, 1 - y <w, x>)` (OP 1).

use crate::error::Result;
use crate::features::{Block, Sink};
use crate::sparse::SparseView;
use crate::task::{Listed, LossTerm, Losses, Places, Stacked, Task};
use crate::weights::Weights;

/// Binary classification. Outputs are 0 for the negative class and 1 for the positive one.
#[derive(Debug, Clone)]
pub struct Binary {
    blocks: [Block; 1],
}

/// The zero-one loss, by truth.
const LOSSES: [[f64; 2]; 2] = [[0.0, 1.0], [1.0, 0.0]];

/// y = -1 or +1
fn sign(y: u32) -> f64 {
    if y == 0 { -1.0 } else { 1.0 }
}

impl Binary {
    /// Two classes over `features` input features.
    pub fn new(features: u32) -> Self {
        Self { blocks: [Block { base: 0, rows: features, width: 1 }] }
    }

    /// `<w, x>`: positive for the positive class.
    pub fn decision(&self, w: &Weights, x: SparseView<'_>) -> f64 {
        let mut score = [0.0];
        w.scores(self.blocks[0], x, &mut score);
        score[0]
    }
}

impl Task for Binary {
    type Input<'a> = SparseView<'a>;
    type Output = u32;
    type Scratch = ();

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: SparseView<'_>, y: &u32, sink: &mut impl Sink) -> Result<()> {
        sink.part(self.blocks[0], 0, x, 0.5 * sign(*y));
        Ok(())
    }

    fn loss(&self, truth: &u32, y: &u32) -> f64 {
        LOSSES[*truth as usize][*y as usize]
    }

    fn max_loss(&self, _truth: &u32) -> f64 {
        1.0
    }

    fn argmax(
        &self,
        w: &Weights,
        x: SparseView<'_>,
        loss: Option<LossTerm<'_, u32>>,
        (): &mut (),
        y: &mut u32,
    ) -> Result<()> {
        // score(+1) - score(-1) = <w, x>
        let plus_over_minus = self.decision(w, x) - loss.map_or(0.0, |l| l.weight * sign(*l.truth));
        *y = u32::from(plus_over_minus > 0.0);
        Ok(())
    }

    fn check(&self, x: SparseView<'_>, y: &u32) -> std::result::Result<(), String> {
        super::multiclass::check_row(x, self.blocks[0].rows)?;
        if *y > 1 { Err(format!("output {y} (binary outputs are 0 and 1)")) } else { Ok(()) }
    }

    fn oracle_cost(&self, _x: SparseView<'_>) -> f64 {
        1.0
    }

    fn listed(&self) -> Option<&dyn Listed<Self>> {
        Some(self)
    }
}

impl Listed<Binary> for Binary {
    fn count(&self) -> usize {
        2
    }

    fn output(&self, k: usize) -> u32 {
        k as u32
    }

    fn index(&self, y: &u32) -> usize {
        *y as usize
    }

    fn scores(&self, w: &Weights, x: SparseView<'_>, (): &mut (), scores: &mut [f64]) {
        let half = 0.5 * self.decision(w, x);
        scores.copy_from_slice(&[-half, half]);
    }

    fn losses<'s>(&'s self, truth: &u32, (): &'s mut ()) -> &'s [f64] {
        &LOSSES[*truth as usize]
    }

    fn stacked(&self) -> Option<&dyn Stacked<Binary>> {
        Some(self)
    }
}

impl Stacked<Binary> for Binary {
    fn phis<'s, 'a>(&self, inputs: &'s [<Self as Task>::Input<'a>]) -> &'s [SparseView<'a>] {
        inputs
    }

    fn places(&self) -> Places<'_> {
        Places::Signs(self.blocks[0])
    }

    fn all_losses(&self) -> Losses<'_> {
        Losses::Table(2, LOSSES.as_flattened())
    }
}
