//! The examples of a problem whose outputs are a short list, as plain data.

use super::{ClassRows, Formulation, Problem, Selection};
use crate::memory::prefetch;
use crate::parallel::Pool;
use crate::sparse::SparseView;
use crate::task::{Losses, Places};

/// Examples whose outputs all place one input vector, phi, in slots of a block: what a solver needs that is not generic over
/// the task.
#[derive(Debug)]
pub(crate) struct Classes<'a> {
    pub(crate) formulation: Formulation,
    /// Number of coordinates of w.
    pub(crate) dimension: usize,
    /// Number of outputs.
    pub(crate) count: usize,
    pub(crate) places: Places<'a>,
    pub(crate) losses: Losses<'a>,
    /// Number of entries of all phi.
    pub(crate) entries: u64,
    /// Of all examples, of which those selected count, as of their weights.
    phis: &'a [SparseView<'a>],
    weights: Option<&'a [f64]>,
    selection: Selection<'a>,
    /// Of those that count.
    rows: Vec<Row>,
    /// C / n
    share: f64,
}

/// What is read of an example besides phi: small, since there are many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    /// |phi|; its square may lie beyond f32. A step that is wrong by its rounding ends where one without would.
    pub(crate) norm: f32,
    /// The place of the correct output.
    pub(crate) truth: u32,
}

impl<'a> Classes<'a> {
    /// None where the task does not list its outputs, or makes them of more than one input vector.
    pub(crate) fn of(problem: &'a Problem<'_>, pool: &Pool) -> Option<Self> {
        let listed = problem.enumerable()?;
        let ClassRows { phis, places, losses, weights } = listed.rows()?;
        let formulation = problem.formulation;
        let truth = |i| Row { norm: 0.0, truth: listed.truth_index(problem.place(i)) as u32 };
        let mut classes = Self {
            formulation,
            dimension: problem.dimension(),
            count: listed.count(),
            places,
            losses,
            entries: 0,
            phis,
            weights,
            selection: problem.selection,
            rows: (0..problem.len()).map(truth).collect(),
            share: problem.c_per_example(),
        };
        classes.measure(pool);
        Some(classes)
    }

    /// Looks at all phi, for their lengths and numbers of entries.
    fn measure(&mut self, pool: &Pool) {
        const PARTS: usize = 64;
        let (phis, selection, size) = (self.phis, self.selection, self.rows.len().div_ceil(PARTS));
        let parts = (0..).step_by(size).zip(self.rows.chunks_mut(size)).collect();
        let entries = pool.map(parts, |(first, rows): (usize, &mut [Row])| {
            let mut entries = 0;
            for (i, row) in (first..).zip(rows) {
                let phi = phis[selection.place(i)];
                row.norm = phi.norm2().sqrt() as f32;
                entries += phi.len() as u64;
            }
            entries
        });
        self.entries = entries.into_iter().sum();
    }

    /// Number of examples n.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The input vector of example i.
    #[inline]
    pub(crate) fn phi(&self, i: usize) -> SparseView<'a> {
        self.phis[self.selection.place(i)]
    }

    /// What is read of example i besides.
    #[inline]
    pub(crate) fn row(&self, i: usize) -> Row {
        self.rows[i]
    }

    /// C c_i / n
    #[inline]
    pub(crate) fn share(&self, i: usize) -> f64 {
        self.share * self.weights.map_or(1.0, |c| c[self.selection.place(i)])
    }

    /// Hints that example i will be asked for soon.
    #[inline]
    pub(crate) fn prefetch(&self, i: usize) {
        prefetch(&self.phis[self.selection.place(i)]);
        prefetch(&self.rows[i]);
    }
}
