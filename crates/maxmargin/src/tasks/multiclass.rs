//! K classes: `psi(x, y)` is x stacked into position y (Crammer and Singer 2001; Joachims, Finley, Yu 2009, eq. 30),
//! one block of width K.

use crate::error::{Error, Result};
use crate::features::{Block, Sink};
use crate::numeric::square;
use crate::sparse::SparseView;
use crate::task::{Listed, LossTerm, Losses, Places, Stacked, Task, first_max};
use crate::weights::Weights;

/// `cost(truth, y)` for all pairs of classes: not negative, zero on the diagonal.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    classes: usize,
    table: Vec<f64>,
}

impl Costs {
    /// Every error costs 1.
    pub fn zero_one(classes: usize) -> Self {
        Self::of(classes, |truth, y| f64::from(truth != y))
    }

    /// `|value(truth) - value(y)|`, for ordinal labels.
    pub fn absolute(values: &[f64]) -> Self {
        Self::of(values.len(), |truth, y| (values[truth] - values[y]).abs())
    }

    /// `(value(truth) - value(y))^2`, for ordinal labels.
    pub fn squared(values: &[f64]) -> Self {
        Self::of(values.len(), |truth, y| square(values[truth] - values[y]))
    }

    /// A user's table, row by row: row = truth, column = prediction.
    pub fn table(classes: usize, table: Vec<f64>) -> Result<Self> {
        let fail = |rule: String| Err(Error::setting("cost-matrix", rule));
        if table.len() != classes * classes {
            return fail(format!("{} numbers for {classes} classes; {} are needed", table.len(), classes * classes));
        }
        for (at, &cost) in table.iter().enumerate() {
            let (row, column) = (at / classes + 1, at % classes + 1);
            if !(cost >= 0.0 && cost.is_finite()) {
                return fail(format!("row {row}, column {column}: {cost} (costs must be finite and not negative)"));
            }
            if row == column && cost != 0.0 {
                return fail(format!("row {row}, column {column}: {cost} (the correct class must cost 0)"));
            }
        }
        Ok(Self { classes, table })
    }

    fn of(classes: usize, cost: impl Fn(usize, usize) -> f64) -> Self {
        let table = (0..classes * classes).map(|at| cost(at / classes, at % classes)).collect();
        Self { classes, table }
    }

    /// Number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The costs of all predictions where the class `truth` is right.
    pub fn row(&self, truth: usize) -> &[f64] {
        &self.table[truth * self.classes..][..self.classes]
    }

    /// The largest cost of all.
    pub fn max(&self) -> f64 {
        self.table.iter().copied().fold(0.0, f64::max)
    }

    /// The numbers, row by row.
    pub fn as_slice(&self) -> &[f64] {
        &self.table
    }
}

/// Multiclass classification. Outputs are class numbers from 0.
#[derive(Debug, Clone)]
pub struct Multiclass {
    blocks: [Block; 1],
    costs: Costs,
}

impl Multiclass {
    /// As many classes as `costs` has, over `features` input features.
    pub fn new(features: u32, costs: Costs) -> Self {
        Self { blocks: [Block { base: 0, rows: features, width: costs.classes() as u32 }], costs }
    }

    /// The costs.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }
}

/// Does this row fit into that many features?
pub(super) fn check_row(x: SparseView<'_>, features: u32) -> std::result::Result<(), String> {
    match x.indices().last() {
        Some(&last) if last >= features => {
            Err(format!("feature {} (the task has {features} features)", u64::from(last) + 1))
        }
        _ => Ok(()),
    }
}

impl Task for Multiclass {
    type Input<'a> = SparseView<'a>;
    type Output = u32;
    type Scratch = Vec<f64>;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: SparseView<'_>, y: &u32, sink: &mut impl Sink) -> Result<()> {
        sink.part(self.blocks[0], *y, x, 1.0);
        Ok(())
    }

    fn loss(&self, truth: &u32, y: &u32) -> f64 {
        self.costs.row(*truth as usize)[*y as usize]
    }

    fn max_loss(&self, truth: &u32) -> f64 {
        self.costs.row(*truth as usize).iter().copied().fold(0.0, f64::max)
    }

    fn argmax(
        &self,
        w: &Weights,
        x: SparseView<'_>,
        loss: Option<LossTerm<'_, u32>>,
        scores: &mut Vec<f64>,
        y: &mut u32,
    ) -> Result<()> {
        scores.resize(self.costs.classes, 0.0);
        w.scores(self.blocks[0], x, scores);
        if let Some(loss) = loss {
            for (score, cost) in scores.iter_mut().zip(self.costs.row(*loss.truth as usize)) {
                *score += loss.weight * cost;
            }
        }
        *y = first_max(scores) as u32;
        Ok(())
    }

    fn check(&self, x: SparseView<'_>, y: &u32) -> std::result::Result<(), String> {
        check_row(x, self.blocks[0].rows)?;
        let classes = self.costs.classes;
        if *y as usize >= classes { Err(format!("class {y} (the task has {classes} classes)")) } else { Ok(()) }
    }

    fn oracle_cost(&self, _x: SparseView<'_>) -> f64 {
        self.costs.classes as f64
    }

    fn listed(&self) -> Option<&dyn Listed<Self>> {
        Some(self)
    }
}

impl Listed<Multiclass> for Multiclass {
    fn count(&self) -> usize {
        self.costs.classes
    }

    fn output(&self, k: usize) -> u32 {
        k as u32
    }

    fn index(&self, y: &u32) -> usize {
        *y as usize
    }

    fn scores(&self, w: &Weights, x: SparseView<'_>, _: &mut Vec<f64>, scores: &mut [f64]) {
        w.scores(self.blocks[0], x, scores);
    }

    fn losses<'s>(&'s self, truth: &u32, _: &'s mut Vec<f64>) -> &'s [f64] {
        self.costs.row(*truth as usize)
    }

    fn stacked(&self) -> Option<&dyn Stacked<Multiclass>> {
        Some(self)
    }
}

impl Stacked<Multiclass> for Multiclass {
    fn phis<'s, 'a>(&self, inputs: &'s [<Self as Task>::Input<'a>]) -> &'s [SparseView<'a>] {
        inputs
    }

    fn places(&self) -> Places<'_> {
        Places::Slots(self.blocks[0])
    }

    fn all_losses(&self) -> Losses<'_> {
        Losses::Table(self.costs.classes, &self.costs.table)
    }
}
