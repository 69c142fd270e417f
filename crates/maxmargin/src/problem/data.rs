//! A task with its inputs and outputs, as [`Examples`]: the one place where solvers meet the types of a task.

use std::sync::Arc;

use super::examples::{ClassRows, Enumerable, Examples, Factors, LossCounting, Output, Scratch};
use crate::error::{Error, Result};
use crate::features::{Block, Scaled, ScoreIn, Sink, Target};
use crate::task::{Counted, Factored, Listed, LossTerm, Part, Sets, Task};
use crate::weights::Weights;

/// A task, its inputs, its true outputs and the weights of the examples.
struct Data<'a, T: Task> {
    task: &'a T,
    inputs: &'a [T::Input<'a>],
    outputs: &'a [T::Output],
    weights: Option<&'a [f64]>,
    dimension: usize,
}

/// The examples of a task, by number. `weights`: `c_i >= 0` for each example, 1 where None.
///
/// Fails where the numbers of inputs, outputs and weights differ. [`Problem::of`](super::Problem::of) checks the examples.
pub fn examples<'a, T: Task>(
    task: &'a T,
    inputs: &'a [T::Input<'a>],
    outputs: &'a [T::Output],
    weights: Option<&'a [f64]>,
) -> Result<Arc<dyn Examples + 'a>> {
    if inputs.len() != outputs.len() {
        return Err(Error::setting("outputs", format!("{} for {} inputs", outputs.len(), inputs.len())));
    }
    if let Some(weights) = weights
        && weights.len() != inputs.len()
    {
        return Err(Error::setting("weights", format!("{} for {} examples", weights.len(), inputs.len())));
    }
    Ok(Arc::new(Data { task, inputs, outputs, weights, dimension: task.dimension() }))
}

/// An output with its type.
fn typed<Y: 'static>(y: &Output) -> &Y {
    y.get().expect("an output of this task")
}

impl<'a, T: Task> Data<'a, T> {
    fn listed(&self) -> &'a dyn Listed<T> {
        self.task.listed().expect("a task that lists its outputs")
    }

    fn counted(&self) -> &'a dyn Counted<T> {
        self.task.counted().expect("a task that counts losses")
    }

    fn factored(&self) -> &'a dyn Factored<T> {
        self.task.factored().expect("a task of factors")
    }
}

impl<T: Task> Examples for Data<'_, T> {
    fn len(&self) -> usize {
        self.inputs.len()
    }

    fn check(&self, i: usize) -> std::result::Result<(), String> {
        self.task.check(self.inputs[i], &self.outputs[i])
    }

    fn blocks(&self) -> &[Block] {
        self.task.blocks()
    }

    fn dimension(&self) -> usize {
        self.dimension
    }

    fn weight(&self, i: usize) -> f64 {
        self.weights.map_or(1.0, |c| c[i])
    }

    fn max_loss(&self, i: usize) -> f64 {
        self.task.max_loss(&self.outputs[i])
    }

    fn decode_cost(&self, i: usize) -> f64 {
        self.task.oracle_cost(self.inputs[i])
    }

    fn argmax_is_exact(&self, i: usize) -> bool {
        self.task.argmax_is_exact(self.inputs[i])
    }

    fn restore(&self, i: usize, y: &mut Output) -> std::result::Result<(), String> {
        y.restore::<T::Output>()?;
        match y.get() {
            Some(y) => self.task.check(self.inputs[i], y),
            None => Err("an output of another type".to_owned()),
        }
    }

    fn is_truth(&self, i: usize, y: &Output) -> bool {
        *typed::<T::Output>(y) == self.outputs[i]
    }

    fn copy_truth(&self, i: usize, y: &mut Output) {
        y.buffer::<T::Output>().clone_from(&self.outputs[i]);
    }

    fn loss(&self, i: usize, y: &Output) -> f64 {
        self.task.loss(&self.outputs[i], typed(y))
    }

    fn add_truth(&self, i: usize, sink: &mut dyn Sink) -> Result<()> {
        self.task.features(self.inputs[i], &self.outputs[i], &mut Scaled { sink, factor: 1.0 })
    }

    fn add_difference(&self, i: usize, y: &Output, factor: f64, to: Target<'_>) -> Result<()> {
        let (task, x, truth, y) = (self.task, self.inputs[i], &self.outputs[i], typed(y));
        match to {
            Target::Accumulate(mut sink) => task.difference(x, truth, y, &mut Scaled { sink: &mut sink, factor }),
            Target::Collect(sink) => task.difference(x, truth, y, &mut Scaled { sink, factor }),
            Target::Lookup(sink) => task.difference(x, truth, y, &mut Scaled { sink, factor }),
            Target::ScoreIn(lookup, total) => {
                let mut sink = ScoreIn { lookup, total: *total };
                task.difference(x, truth, y, &mut Scaled { sink: &mut sink, factor })?;
                *total = sink.total;
                Ok(())
            }
            Target::Prefetch(mut sink) => task.difference(x, truth, y, &mut sink),
            Target::Other(sink) => task.difference(x, truth, y, &mut Scaled { sink, factor }),
        }
    }

    fn truth_score(&self, i: usize, w: &Weights) -> Result<f64> {
        self.task.score(w, self.inputs[i], &self.outputs[i])
    }

    fn score(&self, i: usize, w: &Weights, y: &Output) -> Result<f64> {
        self.task.score(w, self.inputs[i], typed(y))
    }

    fn margin(&self, i: usize, w: &Weights, y: &Output) -> Result<f64> {
        self.task.margin(w, self.inputs[i], &self.outputs[i], typed(y))
    }

    fn argmax(&self, i: usize, w: &Weights, lambda: Option<f64>, scratch: &mut Scratch, y: &mut Output) -> Result<()> {
        let loss = lambda.map(|weight| LossTerm { truth: &self.outputs[i], weight });
        self.task.argmax(w, self.inputs[i], loss, scratch.of(), y.buffer())
    }

    fn upper_bound(&self, scratch: &Scratch) -> Option<f64> {
        scratch.made::<T::Scratch>().and_then(|scratch| self.task.bound(scratch))
    }

    fn generative(&self, examples: &mut dyn Iterator<Item = (usize, f64)>) -> Option<Weights> {
        self.task.generative(&mut examples.map(|(i, weight)| (self.inputs[i], &self.outputs[i], weight)))
    }

    fn enumerable(&self) -> Option<&dyn Enumerable> {
        self.task.listed().is_some().then_some(self)
    }

    fn loss_counting(&self) -> Option<&dyn LossCounting> {
        self.task.counted().is_some().then_some(self)
    }

    fn factors(&self) -> Option<&dyn Factors> {
        self.task.factored().is_some().then_some(self)
    }
}

impl<T: Task> Enumerable for Data<'_, T> {
    fn count(&self) -> usize {
        self.listed().count()
    }

    fn copy_output(&self, k: usize, y: &mut Output) {
        *y.buffer() = self.listed().output(k);
    }

    fn index(&self, y: &Output) -> usize {
        self.listed().index(typed(y))
    }

    fn truth_index(&self, i: usize) -> usize {
        self.listed().index(&self.outputs[i])
    }

    fn scores(&self, i: usize, w: &Weights, scratch: &mut Scratch, scores: &mut [f64]) {
        self.listed().scores(w, self.inputs[i], scratch.of(), scores);
    }

    fn losses<'s>(&'s self, i: usize, scratch: &'s mut Scratch) -> &'s [f64] {
        self.listed().losses(&self.outputs[i], scratch.of())
    }

    fn rows(&self) -> Option<ClassRows<'_>> {
        let stacked = self.listed().stacked()?;
        let (phis, places, losses) = (stacked.phis(self.inputs), stacked.places(), stacked.all_losses());
        Some(ClassRows { phis, places, losses, weights: self.weights })
    }
}

impl<T: Task> LossCounting for Data<'_, T> {
    fn is_exact(&self, i: usize) -> bool {
        self.counted().is_exact(self.inputs[i])
    }

    fn applies(&self, i: usize) -> bool {
        self.counted().applies(self.inputs[i])
    }

    fn check(&self, i: usize) -> std::result::Result<(), String> {
        self.counted().check(self.inputs[i], &self.outputs[i])
    }

    fn argmax_of(
        &self,
        i: usize,
        w: &Weights,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut Scratch,
        y: &mut Output,
    ) -> Result<bool> {
        self.counted().argmax_of(w, self.inputs[i], &self.outputs[i], value, scratch.of(), y.buffer())
    }
}

impl<T: Task> Factors for Data<'_, T> {
    fn variables(&self, i: usize) -> usize {
        self.factored().variables(self.inputs[i])
    }

    fn domain(&self, i: usize, v: usize) -> u32 {
        self.factored().domain(self.inputs[i], v)
    }

    fn unary<'s>(&'s self, i: usize, v: usize, visit: &mut dyn FnMut(Part<'s>)) {
        self.factored().unary(self.inputs[i], v, &mut |part| visit(part));
    }

    fn factors(&self, i: usize) -> usize {
        self.factored().factors(self.inputs[i])
    }

    fn factor<'s>(&'s self, i: usize, f: usize, scope: &mut Vec<u32>, visit: &mut dyn FnMut(Part<'s>)) {
        self.factored().factor(self.inputs[i], f, scope, &mut |part| visit(part));
    }

    fn labels(&self, i: usize, y: &Output, labels: &mut Vec<u32>) {
        self.factored().labels(self.inputs[i], typed(y), labels);
    }

    fn truth_labels(&self, i: usize, labels: &mut Vec<u32>) {
        self.factored().labels(self.inputs[i], &self.outputs[i], labels);
    }

    fn cost(&self, truth: u32) -> f64 {
        self.factored().cost(truth)
    }

    fn short_rows(&self) -> Option<Block> {
        self.factored().short_rows()
    }

    fn sets(&self) -> Option<&dyn Sets> {
        self.factored().sets()
    }
}
