//! `maxmargin train graph`

use maxmargin::data::graphs::{Graphs, read, read_with};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::model::GraphLabeller;
use maxmargin::problem::{self, HeldoutExamples};
use maxmargin::task::Task;
use maxmargin::tasks::factor_graph::{FactorGraph, Graph};
use maxmargin::weights::Weights;

use super::check_memory;
use crate::failure::{Failure, Result};
use crate::memory;
use crate::partitions::survey::Merged;
use crate::summary::{Described, shape_of_graphs};
use crate::text;
use crate::train::{Args, Finished, Given, Session};
use crate::training::{Examples, Vectors};

pub(crate) fn run(mut session: Session<'_>) -> Result<Finished> {
    let args = session.args;
    let start = args.solver.warm_start.as_deref().map(GraphLabeller::load).transpose()?;
    let (data, shape) = match std::mem::take(&mut session.given) {
        Given::Dictionaries(Merged::Shape(shape)) => (Graphs::default(), shape),
        _ => read(session.input()?, &session.pool)?,
    };
    let task = FactorGraph::new(shape).map_err(|error| Failure::Data(format!("{}: {error}", args.input.display())))?;
    state_memory(args, &task)?;
    let threads = session.pool.threads();
    check_memory(&task, &args.input.display().to_string(), with_lines(&data), threads)?;
    let heldout = args.validation.heldout.as_deref();
    let heldout = heldout
        .map(|path| read_with(Input::open(path)?, task.shape(), LabelRule::Required, &session.pool))
        .transpose()?;
    if let (Some(heldout), Some(path)) = (&heldout, &args.validation.heldout) {
        check_memory(&task, &path.display().to_string(), with_lines(heldout), threads)?;
    }
    let start = start.map(|model| fitted(&model, args, &task)).transpose()?;
    let mut checksums = vec![("the training file", data.checksum)];
    checksums.extend(heldout.as_ref().map(|heldout| ("the held-out file", heldout.checksum)));

    let mut outcome = {
        let (inputs, folds) = (references(&data), session.folds(&vec![0; data.len()])?);
        let weights = session.weights(data.len())?;
        let heldout_inputs = heldout.as_ref().map(references);
        let truths: Option<Vec<_>> = heldout.as_ref().map(|h| h.labels.iter().cloned().map(Some).collect());
        let examples = Examples {
            data: problem::examples(&task, &inputs, &data.labels, weights.as_deref())?,
            weights: weights.as_deref(),
            folds: folds.as_ref(),
            vectors: Vectors::Own,
            heldout: heldout_inputs
                .as_deref()
                .zip(truths.as_deref())
                .map(|(inputs, truths)| HeldoutExamples::new(&task, inputs, truths)),
            exactly: None,
        };
        session.train(examples, start, &checksums, &|i| data.line(i))?
    };
    let model = GraphLabeller {
        shape: task.shape().clone(),
        formulation: outcome.formulation,
        data_checksum: data.checksum,
        summary: outcome.summary.clone(),
        weights: outcome.take_weights(),
    };
    session.finish(&outcome, &Described::graph_labeller(&model), &model)
}

fn references(data: &Graphs) -> Vec<&Graph> {
    data.graphs.iter().collect()
}

fn with_lines(data: &Graphs) -> impl Iterator<Item = (&Graph, u64)> {
    data.graphs.iter().enumerate().map(|(i, graph)| (graph, data.line(i)))
}

/// States the need before taking it.
fn state_memory(args: &Args, task: &FactorGraph) -> Result<()> {
    let need = memory::of_training(task.dimension() as f64);
    let Some(available) = memory::lacking(need) else { return Ok(()) };
    Err(Failure::Data(format!(
        "{}: training would take about {} ({}) and {} are free: leave out features, or take factors of fewer variables or \
         labels",
        args.input.display(),
        text::bytes(need),
        shape_of_graphs(task.shape()),
        text::bytes(available),
    )))
}

/// The weights of a model to start from, by sizes of domains and names of templates.
fn fitted(model: &GraphLabeller, args: &Args, task: &FactorGraph) -> Result<Weights> {
    model.weights_over(task).ok_or_else(|| {
        let path = args.solver.warm_start.as_deref().unwrap_or(&args.input);
        let (theirs, ours) = (shape_of_graphs(&model.shape), shape_of_graphs(task.shape()));
        let what = format!("it is for {theirs}; the data have {ours}");
        Failure::Data(format!("{}: cannot start from this model: {what}", path.display()))
    })
}
