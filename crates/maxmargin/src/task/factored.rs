//! A task seen as a factor graph: variables with their labels, and factors that score labels of a few variables together.
//!
//! ```text
//! <w, psi(x, y)> = sum_v sum over the parts of v <w, phi in the slot of y_v>  +  sum_f <w, phi_f in the slot of y at f's scope>
//! D(truth, y)    = sum over v with y_v != truth_v of cost(v, truth_v)
//! ```
//!
//! One description serves decoding ([`inference::map`](crate::inference::map)), which needs the scores of all labels, and
//! factorwise training, which looks at factors one by one.

use super::Task;
use crate::features::Block;
use crate::sparse::SparseView;

/// Which labels of a factor have features, and in which slots of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slots {
    /// Label l is slot l; of several variables the last one's label runs fastest.
    Each,
    /// Variables have the labels 0 and 1, and only where all are 1 there are features, in this slot.
    AllOn(u32),
}

impl Slots {
    /// The slot of a label, of which there are `labels`.
    pub fn of(self, label: usize, labels: usize) -> Option<u32> {
        match self {
            Self::Each => Some(label as u32),
            Self::AllOn(slot) => (label + 1 == labels).then_some(slot),
        }
    }
}

/// Features that are placed in a slot of a block, by label.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// The block.
    pub block: Block,
    /// Its slots.
    pub slots: Slots,
    /// The features.
    pub phi: SparseView<'a>,
}

/// A task whose outputs are labels of variables, and whose loss adds up over them.
pub trait Factored<T: Task>: Sync {
    /// Number of variables of this input.
    fn variables(&self, x: T::Input<'_>) -> usize;

    /// Number of labels of variable v.
    fn domain(&self, x: T::Input<'_>, v: usize) -> u32;

    /// Visits the parts of variable v alone.
    fn unary<'a>(&self, x: T::Input<'a>, v: usize, visit: &mut dyn FnMut(Part<'a>));

    /// Number of factors of several variables.
    fn factors(&self, x: T::Input<'_>) -> usize;

    /// Factor f: leaves its variables in `scope`, and visits its part.
    fn factor<'a>(&self, x: T::Input<'a>, f: usize, scope: &mut Vec<u32>, visit: &mut dyn FnMut(Part<'a>));

    /// The labels of an output.
    fn labels(&self, x: T::Input<'_>, y: &T::Output, labels: &mut Vec<u32>);

    /// What a wrong label costs a variable whose label should be `truth`.
    fn cost(&self, truth: u32) -> f64;

    /// The last block of w, where the task can score with its weights in
    /// [short rows](crate::weights::ShortRows). No factor of several variables has parts in it.
    fn short_rows(&self) -> Option<Block> {
        None
    }

    /// Where outputs are sets.
    fn sets(&self) -> Option<&dyn Sets> {
        None
    }
}

/// What there is to know where an output is a set: each variable is a label that is in (1) or out (0), only labels that are in
/// have features, which are the same for each and in the slot of its number, and a factor is of two labels and has features
/// where both are in.
pub trait Sets: Sync {
    /// The number of the factor of two labels, the smaller one first.
    fn factor_of(&self, a: u32, b: u32) -> Option<usize>;

    /// The block of the factors, whose slots are their numbers.
    fn factor_block(&self) -> Block;
}
