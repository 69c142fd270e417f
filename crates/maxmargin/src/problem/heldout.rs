//! Examples that are predicted but not trained on, by number.

use std::fmt;

use super::examples::{Output, Scratch};
use crate::error::Result;
use crate::task::Task;
use crate::weights::Weights;

/// Inputs and true outputs of a task, beside the examples of a [`Problem`](super::Problem).
pub struct HeldoutExamples<'u>(Box<dyn Predicted + 'u>);

trait Predicted: Sync {
    fn len(&self) -> usize;

    fn loss(&self, i: usize, w: &Weights, scratch: &mut Scratch, y: &mut Output) -> Result<Option<f64>>;
}

struct Data<'u, T: Task> {
    task: &'u T,
    inputs: &'u [T::Input<'u>],
    truths: &'u [Option<T::Output>],
}

impl<T: Task> Predicted for Data<'_, T> {
    fn len(&self) -> usize {
        self.inputs.len()
    }

    fn loss(&self, i: usize, w: &Weights, scratch: &mut Scratch, y: &mut Output) -> Result<Option<f64>> {
        let Some(truth) = &self.truths[i] else { return Ok(None) };
        let y = y.buffer();
        self.task.argmax(w, self.inputs[i], None, scratch.of(), y)?;
        Ok(Some(self.task.loss(truth, y)))
    }
}

impl<'u> HeldoutExamples<'u> {
    /// A truth that is None is none of the task's outputs.
    ///
    /// # Panics
    /// If there is no example, or the numbers of inputs and truths differ.
    pub fn new<T: Task>(task: &'u T, inputs: &'u [T::Input<'u>], truths: &'u [Option<T::Output>]) -> Self {
        assert!(!inputs.is_empty() && inputs.len() == truths.len(), "a truth for each of some inputs");
        Self(Box::new(Data { task, inputs, truths }))
    }

    /// Number of examples, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Loss of the prediction for example i at w, not scaled; None where its truth is none of the task's outputs.
    pub(crate) fn loss(&self, i: usize, w: &Weights, scratch: &mut Scratch, y: &mut Output) -> Result<Option<f64>> {
        self.0.loss(i, w, scratch, y)
    }
}

impl fmt::Debug for HeldoutExamples<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeldoutExamples({} examples)", self.len())
    }
}
