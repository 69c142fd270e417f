//! The losses between the outputs of a list.

use std::fmt::Debug;

/// The losses of the outputs of a list against each other, by their places in it.
#[derive(Debug, Clone, Copy)]
pub enum Losses<'l> {
    /// A table of so many outputs, row by row: row = truth, column = output.
    Table(usize, &'l [f64]),
    /// Of outputs whose pairs are too many for a table.
    Computed(&'l dyn ComputedLosses),
}

/// Losses that are computed when they are asked for.
pub trait ComputedLosses: Debug + Sync {
    /// The loss of output k where the output `truth` is right.
    fn loss(&self, truth: usize, k: usize) -> f64;

    /// Leaves the losses of all outputs in `losses`, whatever stood there.
    fn fill(&self, truth: usize, losses: &mut Vec<f64>);
}

impl<'l> Losses<'l> {
    /// The loss of output k where the output `truth` is right.
    #[inline]
    pub fn of(&self, truth: usize, k: usize) -> f64 {
        match self {
            Self::Table(count, table) => table[truth * count + k],
            Self::Computed(losses) => losses.loss(truth, k),
        }
    }

    /// The losses of all outputs where the output `truth` is right, from the table or computed in `room`.
    #[inline]
    pub fn row<'s>(&self, truth: usize, room: &'s mut Vec<f64>) -> &'s [f64]
    where
        'l: 's,
    {
        match *self {
            Self::Table(count, table) => &table[truth * count..][..count],
            Self::Computed(losses) => {
                losses.fill(truth, room);
                room
            }
        }
    }
}
