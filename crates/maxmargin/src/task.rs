//! What a structured prediction task has to say about itself.

mod factored;
mod lambda;
mod losses;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Result;
use crate::features::{Block, Scaled, Sink};
use crate::sparse::SparseView;
use crate::weights::{Score, Weights};

pub use factored::{Factored, Part, Sets, Slots};
pub use lambda::Lambda;
pub use losses::{ComputedLosses, Losses};

/// The loss term of a loss-augmented argmax: `weight * loss(truth, y)`.
#[derive(Debug)]
pub struct LossTerm<'a, Y> {
    /// The correct output.
    pub truth: &'a Y,
    /// The factor lambda >= 0 on the loss.
    pub weight: f64,
}

// Not derived: that would ask the same of Y.
impl<Y> Clone for LossTerm<'_, Y> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<Y> Copy for LossTerm<'_, Y> {}

/// A task: joint features, a loss and an argmax.
///
/// [`check_task`](crate::testing::check_task) tests the laws that an implementation must obey; run it on your own.
pub trait Task: Sync {
    /// One input, by reference: `&'a Sentence`, [`SparseView<'a>`](crate::sparse::SparseView), ...
    type Input<'a>: Copy + Send + Sync;
    /// One output. What training has found is saved and read again (see [`State`](crate::solver::State)), hence serde.
    type Output: Clone + Debug + Default + PartialEq + Send + Sync + Serialize + DeserializeOwned + 'static;
    /// The decoder's tables: kept by the caller, so that a warm argmax allocates nothing.
    type Scratch: Default + Send + Sync + 'static;

    /// The layout of w.
    fn blocks(&self) -> &[Block];

    /// Emits the parts of `psi(x, y)`.
    fn features(&self, x: Self::Input<'_>, y: &Self::Output, sink: &mut impl Sink) -> Result<()>;

    /// Emits the parts of `dpsi = psi(x, truth) - psi(x, y)`. A task whose outputs are made of many pieces emits only those
    /// in which they differ: solvers spend much of their time here.
    fn difference(
        &self,
        x: Self::Input<'_>,
        truth: &Self::Output,
        y: &Self::Output,
        sink: &mut impl Sink,
    ) -> Result<()> {
        self.features(x, truth, sink)?;
        self.features(x, y, &mut Scaled { sink, factor: -1.0 })
    }

    /// `D(truth, y) >= 0`, zero where y is the truth.
    fn loss(&self, truth: &Self::Output, y: &Self::Output) -> f64;

    /// The largest loss that any output has against this truth.
    fn max_loss(&self, truth: &Self::Output) -> f64;

    /// `argmax_y <w, psi(x, y)> + weight * D(truth, y)`, without the second term where `loss` is None.
    /// Ties are broken the same way on every call.
    fn argmax(
        &self,
        w: &Weights,
        x: Self::Input<'_>,
        loss: Option<LossTerm<'_, Self::Output>>,
        scratch: &mut Self::Scratch,
        y: &mut Self::Output,
    ) -> Result<()>;

    /// Does this example fit the task? If not, what is wrong and what to do. Also asked of outputs that come from a saved
    /// state, which may be damaged: what passes must not lead `features` and `loss` out of their bounds.
    fn check(&self, _x: Self::Input<'_>, _y: &Self::Output) -> std::result::Result<(), String> {
        Ok(())
    }

    /// Does [`argmax`](Self::argmax) with a loss find the maximum for this input? If not, certificates are estimates.
    fn argmax_is_exact(&self, _x: Self::Input<'_>) -> bool {
        true
    }

    /// After an argmax with a loss, or one of [`Counted`]: what no output has more of, where the one that was found may not be
    /// the maximum. Asked only where [`argmax_is_exact`](Self::argmax_is_exact) or [`Counted::is_exact`] say no.
    fn bound(&self, _scratch: &Self::Scratch) -> Option<f64> {
        None
    }

    /// The outputs as a short list, where they are one.
    fn listed(&self) -> Option<&dyn Listed<Self>>
    where
        Self: Sized,
    {
        None
    }

    /// An argmax that is exact for losses that do not add up over the pieces of an output, where there is one.
    fn counted(&self) -> Option<&dyn Counted<Self>>
    where
        Self: Sized,
    {
        None
    }

    /// The outputs as labels of variables, where they are: for solvers that look at factors one by one.
    fn factored(&self) -> Option<&dyn Factored<Self>>
    where
        Self: Sized,
    {
        None
    }

    /// The weights of a generative model of the same shape, estimated from examples and their weights; None where the task
    /// has none.
    fn generative<'e>(
        &self,
        _examples: &mut dyn Iterator<Item = (Self::Input<'e>, &'e Self::Output, f64)>,
    ) -> Option<Weights> {
        None
    }

    /// What an argmax over all outputs of x costs, where the score of one output costs 1. Solvers that choose between the
    /// oracle and outputs that they have met already go by it; only the time that they take depends on it.
    fn oracle_cost(&self, _x: Self::Input<'_>) -> f64 {
        1000.0
    }

    /// Number of coordinates of w.
    fn dimension(&self) -> usize {
        self.blocks().iter().map(|b| b.base + b.len()).max().unwrap_or(0) as usize
    }

    /// `<w, psi(x, y)>`
    fn score(&self, w: &Weights, x: Self::Input<'_>, y: &Self::Output) -> Result<f64> {
        let mut sink = Score { w, total: 0.0 };
        self.features(x, y, &mut sink)?;
        Ok(sink.total)
    }

    /// The margin `<w, dpsi>` of the truth over y.
    fn margin(&self, w: &Weights, x: Self::Input<'_>, truth: &Self::Output, y: &Self::Output) -> Result<f64> {
        let mut sink = Score { w, total: 0.0 };
        self.difference(x, truth, y, &mut sink)?;
        Ok(sink.total)
    }
}

/// A task whose losses take few values, with an argmax of the score for each of them: exact for every rescaling and
/// penalty.
pub trait Counted<T: Task>: Sync {
    /// Can it be done for this example? If not, why, and what to do.
    fn check(&self, x: T::Input<'_>, truth: &T::Output) -> std::result::Result<(), String>;

    /// Does it find the maximum for this input? If not, certificates are estimates.
    fn is_exact(&self, _x: T::Input<'_>) -> bool {
        true
    }

    /// Can outputs of this input be told apart by their loss? Elsewhere slack rescaling is searched for with
    /// [`Task::argmax`], and quadratic slack with margin rescaling is refused.
    fn applies(&self, _x: T::Input<'_>) -> bool {
        true
    }

    /// `argmax_y value(D(truth, y), <w, psi(x, y)>)`, where `value` is linear in the score and rises with it. Returns false,
    /// without an output, where this does not [apply](Self::applies).
    fn argmax_of(
        &self,
        w: &Weights,
        x: T::Input<'_>,
        truth: &T::Output,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut T::Scratch,
        y: &mut T::Output,
    ) -> Result<bool>;
}

/// A task whose outputs can be listed, the same few for every input. Its oracles are exact for every
/// rescaling and penalty, by looking at all of them.
pub trait Listed<T: Task>: Sync {
    /// Number of outputs.
    fn count(&self) -> usize;
    /// The k-th output.
    fn output(&self, k: usize) -> T::Output;
    /// The place of an output in the list.
    fn index(&self, y: &T::Output) -> usize;
    /// The scores of all outputs.
    fn scores(&self, w: &Weights, x: T::Input<'_>, scratch: &mut T::Scratch, scores: &mut [f64]);
    /// The losses of all outputs against this truth, from a table or worked out in `scratch`.
    fn losses<'s>(&'s self, truth: &T::Output, scratch: &'s mut T::Scratch) -> &'s [f64];

    /// How the outputs are made of one input vector, where they are: what steps over all outputs of an example at once
    /// need to know.
    fn stacked(&self) -> Option<&dyn Stacked<T>> {
        None
    }
}

/// A list of outputs that all place the same input vector, `phi(x)`, in slots of one block.
pub trait Stacked<T: Task>: Sync {
    /// `phi(x)` of all inputs.
    fn phis<'s, 'a>(&self, inputs: &'s [T::Input<'a>]) -> &'s [SparseView<'a>];

    /// Where the outputs place it.
    fn places(&self) -> Places<'_>;

    /// The losses between them.
    fn all_losses(&self) -> Losses<'_>;
}

/// Where the outputs of a list place their input vector phi.
#[derive(Debug, Clone, Copy)]
pub enum Places<'l> {
    /// Two outputs in a block of width 1: `-1/2 phi` is the first, `+1/2 phi` the second.
    Signs(Block),
    /// Output k is phi in slot k.
    Slots(Block),
    /// Output k is phi in several slots, each times a number: row k of Lambda.
    Rows(Block, &'l Lambda),
}

/// Place of the largest value. Ties go to the earlier one, so that runs agree.
pub fn first_max(values: &[f64]) -> usize {
    let mut best = 0;
    for (k, &value) in values.iter().enumerate() {
        if value > values[best] {
            best = k;
        }
    }
    best
}
