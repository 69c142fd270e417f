//! From files to what the solvers of `train` take.

use maxmargin::data::costs;
use maxmargin::data::input::Input;
use maxmargin::data::labels::Classes;
use maxmargin::data::svmlight::Labelled;
use maxmargin::model::{Loss, Model, TaskKind};
use maxmargin::weights::Weights;

use crate::failure::{Failure, Result};
use crate::options::{ClassWeight, LossName, Penalty, Task};
use crate::streams::note;
use crate::train::{Args, Read};
use crate::{memory, text};

/// The data as the solvers take them.
pub(crate) struct Data {
    pub(crate) examples: Labelled,
    pub(crate) classes: Classes,
    pub(crate) weights: Option<Vec<f64>>,
    pub(crate) loss: Loss,
    pub(crate) features: u32,
}

impl Data {
    /// Keeps so many of the examples, drawn from the seed.
    pub(crate) fn draw(&mut self, size: usize, seed: u64) {
        let kept = self.examples.draw(size, seed);
        self.classes.outputs = kept.iter().map(|&i| self.classes.outputs[i]).collect();
        self.weights = self.weights.take().map(|weights| kept.iter().map(|&i| weights[i]).collect());
    }
}

/// Makes classes, loss and weights of examples.
pub(crate) fn of(args: &Args, start: Option<&Model>, read: Read) -> Result<Data> {
    let Read { mut examples, name, is_ready } = read;
    let classes = match args.task {
        _ if is_ready => Classes { words: examples.labels.names.clone(), outputs: examples.labels.ids.clone() },
        Task::Binary => Classes::binary(&examples, args.problem.positive.as_deref(), &name)?,
        _ => Classes::multiclass(&examples, &name)?,
    };
    let of_classes = class_weights(args, &classes)?;
    if examples.costs.is_some() && args.problem.penalty == Some(Penalty::Hard) {
        note("cost: has no effect with the hard margin, which has no slack to weigh");
    }
    let loss = match (args.problem.loss, &args.problem.cost_matrix) {
        (Some(LossName::Matrix), Some(path)) => {
            Loss::Matrix(costs::read(Input::open(path)?, &classes.words)?.as_slice().to_vec())
        }
        (Some(LossName::Absolute), _) => Loss::Absolute,
        (Some(LossName::Squared), _) => Loss::Squared,
        _ => Loss::ZeroOne,
    };
    // A model to start from may know features that these data lack.
    let features = examples.matrix.columns().max(start.map_or(0, |model| model.features));
    examples.matrix.set_columns(features);
    let weights = classes.example_weights(examples.costs.as_deref(), of_classes.as_deref());
    // The classes say the same.
    examples.labels.ids = Vec::new();
    Ok(Data { examples, classes, weights, loss, features })
}

/// The weight of each class, where some are given.
pub(crate) fn class_weights(args: &Args, classes: &Classes) -> Result<Option<Vec<f64>>> {
    let pair = |weight: &ClassWeight| match weight {
        ClassWeight::Given(label, weight) => Some((label.clone(), *weight)),
        ClassWeight::Balanced => None,
    };
    Ok(match args.problem.class_weight.as_slice() {
        [] => None,
        [ClassWeight::Balanced] => Some(classes.balanced_weights()),
        given => Some(classes.given_weights(&given.iter().filter_map(pair).collect::<Vec<_>>())?),
    })
}

/// States the need before taking it: one wrong index could ask for more memory than there is.
pub(crate) fn check_memory(args: &Args, data: &Data) -> Result<()> {
    /// Points of the optimisation and sums of partitions, as a rule.
    const COPIES: f64 = 12.0;
    let Some(available) = memory::available() else { return Ok(()) };
    let classes = data.classes.words.len() as f64;
    let slots = if args.task == Task::Binary { 1.0 } else { classes };
    let groups = args.solver.groups.unwrap_or(1) as f64;
    let weights = 8.0 * f64::from(data.features) * slots * (COPIES + groups);
    let tables = 8.0 * classes * (2.0 * classes + 2.0 * data.examples.len() as f64);
    if weights + tables < 0.75 * available {
        return Ok(());
    }
    let matrix = &data.examples.matrix;
    let (line, cause) = if weights > tables {
        let widest = (0..matrix.rows()).max_by_key(|&i| matrix.row(i).indices().last().copied());
        let cause = format!("the largest feature index, {}, stands here; is it right?", data.features);
        (widest.map_or(1, |i| data.examples.line(i)), cause)
    } else {
        let cause = format!("there are {} different labels; are these classes?", text::count(classes as u64));
        (1, cause)
    };
    Err(Failure::Data(format!(
        "{}:{line}: training would take about {} ({} features, {} classes) and {} are free: {cause}",
        args.input.display(),
        text::bytes(weights + tables),
        text::count(u64::from(data.features)),
        text::count(classes as u64),
        text::bytes(available),
    )))
}

/// The weights of a model to start from, with zeros for the features that it does not know.
pub(crate) fn fitted(model: &Model, args: &Args, data: &Data) -> Result<Weights> {
    let refuse = |what: String| {
        let path = args.solver.warm_start.as_deref().unwrap_or(&args.input);
        Err(Failure::Data(format!("{}: cannot start from this model: {what}", path.display())))
    };
    if model.task != TaskKind::from(args.task) {
        return refuse(format!("it is for the task {}", model.task));
    }
    if model.kernel.is_some() {
        return refuse("it has a kernel, hence no weights of features".to_owned());
    }
    if model.labels != data.classes.words {
        let (theirs, ours) = (text::labels(&model.labels), text::labels(&data.classes.words));
        return refuse(format!("its labels are {theirs}, those of the data {ours}"));
    }
    let bias = f64::from(args.problem.bias.unwrap_or(0.0));
    if model.bias != bias {
        return refuse(format!("its constant feature (--bias) is {}, here it is {bias}", model.bias));
    }
    Ok(model.weights_over(data.features))
}
