//! `maxmargin train taxonomy`

use std::path::Path;
use std::sync::Arc;

use maxmargin::data::input::Input;
use maxmargin::data::labels::{self, Classes};
use maxmargin::data::svmlight::{self, LabelRule, Labelled};
use maxmargin::data::{costs, taxonomy};
use maxmargin::features::Block;
use maxmargin::model::TaxonomyModel;
use maxmargin::parallel::Pool;
use maxmargin::problem::{self, HeldoutExamples};
use maxmargin::sparse::SparseMatrix;
use maxmargin::task::Task;
use maxmargin::tasks::multiclass::Costs;
use maxmargin::tasks::taxonomy::{Architecture, Hierarchy, NodeLoss, Taxonomy};
use maxmargin::weights::Weights;

use crate::dataset::class_weights;
use crate::failure::{Failure, Result};
use crate::heldout::known_features;
use crate::kernel::{Kernelised, kernelise};
use crate::memory;
use crate::options::{ArchitectureName, LossName, Penalty};
use crate::streams::note;
use crate::summary::Described;
use crate::text::{self, count, counted};
use crate::train::{Args, Finished, Read, Session};
use crate::training::{Exactly, Examples, Vectors};

/// The data as the solvers take them.
struct Data {
    examples: Labelled,
    hierarchy: Arc<Hierarchy>,
    /// The node of each example.
    nodes: Vec<u32>,
    /// The nodes with examples, ascending.
    classes: Vec<u32>,
    /// The same as numbers and words.
    numbered: Classes,
    architecture: Architecture,
    loss: NodeLoss,
    features: u32,
}

pub(crate) fn run(mut session: Session<'_>) -> Result<Finished> {
    let args = session.args;
    let start = args.solver.warm_start.as_deref().map(TaxonomyModel::load).transpose()?;
    let mut data = Data::read(&mut session, start.as_ref())?;
    let slots = data.slots();
    data.check_memory(args, slots)?;
    let start = start.map(|model| data.fitted(&model, args)).transpose()?;
    let heldout = args.validation.heldout.as_deref();
    let mut heldout = heldout.map(|path| Unseen::read(path, &data, &session.pool)).transpose()?;
    let heldout_matrix = heldout.as_ref().map(|h| &h.matrix);
    let mut kernel = kernelise(args, &data.examples.matrix, heldout_matrix, slots, &session.pool)?;
    session.seconds_kernel = kernel.as_ref().map_or(0.0, Kernelised::seconds);
    let bias = args.problem.bias;
    if let Some(kernel) = &mut kernel {
        data.examples.matrix = std::mem::take(&mut kernel.train);
        if let Some((heldout, rows)) = heldout.as_mut().zip(kernel.heldout.take()) {
            heldout.matrix = rows;
        }
    } else if let Some(bias) = bias {
        data.examples.matrix = data.examples.matrix.with_constant(bias);
        if let Some(heldout) = &mut heldout {
            heldout.matrix = heldout.matrix.with_constant(bias);
        }
    }
    let columns = data.examples.matrix.columns();
    let task_over = |columns: u32| {
        let (hierarchy, classes) = (Arc::clone(&data.hierarchy), data.classes.clone());
        Taxonomy::new(columns, hierarchy, classes, &data.architecture, data.loss.clone())
    };
    let task = task_over(columns)?;
    let exact_rows = kernel.as_ref().and_then(Kernelised::exact_rows);
    let (exact_task, exact_inputs) =
        (task_over(exact_rows.map_or(0, SparseMatrix::columns))?, exact_rows.map(SparseMatrix::views));
    let weights = class_weights(args, &data.numbered)?;
    let weights = data.numbered.example_weights(data.examples.costs.as_deref(), weights.as_deref());
    // f64 is printed so that no bit is lost.
    let checksum = |what: &dyn std::fmt::Debug| crc32fast::hash(format!("{what:?}").as_bytes());
    let mut checksums = vec![
        ("the training file", data.examples.checksum),
        ("the taxonomy", checksum(&(data.hierarchy.names(), data.hierarchy.edges().collect::<Vec<_>>()))),
        ("the features of the classes", checksum(&data.architecture)),
        ("the cost matrix", checksum(&data.loss)),
    ];
    checksums.extend(heldout.as_ref().map(|heldout| ("the held-out file", heldout.checksum)));
    let mut outcome = {
        let (inputs, folds) = (data.examples.matrix.views(), session.folds(&data.numbered.outputs)?);
        let heldout_inputs = heldout.as_ref().map(|heldout| heldout.matrix.views());
        let examples = Examples {
            data: problem::examples(&task, &inputs, &data.nodes, weights.as_deref())?,
            weights: weights.as_deref(),
            folds: folds.as_ref(),
            vectors: kernel.as_ref().map_or(Vectors::Own, |kernel| kernel.vectors(task.blocks()[0])),
            heldout: heldout_inputs
                .as_deref()
                .zip(heldout.as_ref().map(|heldout| heldout.truths.as_slice()))
                .map(|(inputs, truths)| HeldoutExamples::new(&task, inputs, truths)),
            exactly: match (exact_inputs.as_deref(), kernel.as_ref()) {
                (Some(inputs), Some(kernel)) => Some(Exactly {
                    data: problem::examples(&exact_task, inputs, &data.nodes, weights.as_deref())?,
                    block: exact_task.blocks()[0],
                    kernel,
                }),
                _ => None,
            },
        };
        session.train(examples, start, &checksums, &|i| data.examples.line(i))?
    };
    let block = Block { base: 0, rows: columns, width: slots as u32 };
    let expansion = kernel.as_ref().map(|kernel| kernel.expansion(outcome.weights(), block)).transpose()?;
    let model = TaxonomyModel {
        hierarchy: data.hierarchy,
        classes: data.classes,
        architecture: data.architecture,
        features: data.features,
        bias: f64::from(bias.unwrap_or(0.0)),
        loss: data.loss,
        formulation: outcome.formulation,
        data_checksum: data.examples.checksum,
        summary: outcome.summary.clone(),
        weights: if expansion.is_some() { Weights::default() } else { outcome.take_weights() },
        kernel: expansion,
    };
    let approximated = kernel.as_ref().map(|kernel| kernel.approximated(""));
    let described = Described { approximated, ..Described::taxonomy(&model) };
    session.finish(&outcome, &described, &model)
}

impl Data {
    fn read(session: &mut Session<'_>, start: Option<&TaxonomyModel>) -> Result<Self> {
        let (args, options) = (session.args, &session.args.taxonomy);
        let path = options.taxonomy.as_deref().expect("refused without");
        let hierarchy = Arc::new(taxonomy::read(Input::open(path)?)?);
        let Read { mut examples, name, .. } = session.labelled(LabelRule::Required)?;
        let nodes = taxonomy::nodes(&examples, &hierarchy, &name)?;
        let mut classes = nodes.clone();
        classes.sort_unstable();
        classes.dedup();
        let word = |node: u32| &hierarchy.names()[node as usize];
        if let [only] = classes.as_slice() {
            let what = format!("all examples have the label '{}'; at least two classes are needed", word(*only));
            return Err(Failure::Data(format!("{name}:{}: {what}", examples.line(0))));
        }
        if classes.is_empty() {
            return Err(Failure::Data(format!("{name}: has no examples")));
        }
        let place = |node: &u32| classes.binary_search(node).map_or(0, |k| k as u32);
        let words: Vec<String> = classes.iter().map(|&node| word(node).clone()).collect();
        let numbered = Classes { outputs: nodes.iter().map(place).collect(), words };
        if examples.costs.is_some() && args.problem.penalty == Some(Penalty::Hard) {
            note("cost: has no effect with the hard margin, which has no slack to weigh");
        }
        let architecture = match (&options.class_features, options.architecture) {
            (Some(path), _) => {
                let (of_classes, others) = taxonomy::read_class_features(Input::open(path)?, &hierarchy, &classes)?;
                if others > 0 {
                    let (path, others) = (path.display(), counted(others as u64, "node"));
                    note(&format!("{path}: has features of {others} without training examples; these were left out"));
                }
                Architecture::Features(of_classes)
            }
            (None, Some(ArchitectureName::Flat)) => Architecture::Flat,
            (None, _) => Architecture::Taxonomy(options.ancestor_weight.unwrap_or(1.0)),
        };
        let loss = match (args.problem.loss, &args.problem.cost_matrix) {
            (Some(LossName::Matrix), Some(path)) => NodeLoss::Matrix(read_costs(path, &numbered.words)?),
            (Some(LossName::ZeroOne), _) => NodeLoss::ZeroOne,
            (Some(LossName::Path), _) => NodeLoss::Path,
            _ => NodeLoss::Tree,
        };
        // A model to start from may know features that these data lack.
        let features = examples.matrix.columns().max(start.map_or(0, |model| model.features));
        examples.matrix.set_columns(features);
        Ok(Self { examples, hierarchy, nodes, classes, numbered, architecture, loss, features })
    }

    fn slots(&self) -> usize {
        match &self.architecture {
            Architecture::Flat => self.classes.len(),
            Architecture::Taxonomy(_) => self.hierarchy.len() - 1,
            Architecture::Features(of_classes) => of_classes.attributes.len(),
        }
    }

    /// States the need before taking it: one wrong index could ask for more memory than there is.
    fn check_memory(&self, args: &Args, slots: usize) -> Result<()> {
        let (n, classes) = (self.examples.len() as f64, self.classes.len() as f64);
        let groups = args.solver.groups.unwrap_or(1) as f64;
        let of_weights = memory::of_training(f64::from(self.features) * slots as f64 * (1.0 + groups / 8.0));
        // Dual variables, and flat a table of losses and one of factors.
        let of_pairs = if self.architecture == Architecture::Flat { 2.0 * classes * classes } else { 0.0 };
        let of_variables = 8.0 * (n * classes + of_pairs);
        let Some(available) = memory::lacking(of_weights + of_variables) else { return Ok(()) };
        let matrix = &self.examples.matrix;
        let (line, cause) = if of_weights > of_variables {
            let widest = (0..matrix.rows()).max_by_key(|&i| matrix.row(i).indices().last().copied());
            let cause = format!("the largest feature index, {}, stands here; is it right?", self.features);
            (widest.map_or(1, |i| self.examples.line(i)), cause)
        } else {
            (1, format!("there are {} different labels; are these classes?", count(classes as u64)))
        };
        Err(Failure::Data(format!(
            "{}:{line}: training would take about {} ({}, {}, {}) and {} are free: {cause}",
            args.input.display(),
            text::bytes(of_weights + of_variables),
            counted(u64::from(self.features), "feature"),
            counted(self.hierarchy.len() as u64, "node"),
            counted(self.examples.len() as u64, "example"),
            text::bytes(available),
        )))
    }

    /// The weights of a model to start from, with zeros for the features that it does not know.
    fn fitted(&self, model: &TaxonomyModel, args: &Args) -> Result<Weights> {
        let refuse = |what: String| {
            let path = args.solver.warm_start.as_deref().unwrap_or(&args.input);
            Err(Failure::Data(format!("{}: cannot start from this model: {what}", path.display())))
        };
        if model.kernel.is_some() {
            return refuse("it has a kernel, hence no weights of features".to_owned());
        }
        if model.hierarchy != self.hierarchy {
            return refuse("its taxonomy is another".to_owned());
        }
        if model.classes != self.classes {
            let (theirs, ours) = (text::labels(&model.labels()), text::labels(&self.numbered.words));
            return refuse(format!("its labels are {theirs}, those of the data {ours}"));
        }
        // What ancestors count for changes no place of a weight.
        let are_alike = match (&model.architecture, &self.architecture) {
            (Architecture::Taxonomy(_), Architecture::Taxonomy(_)) => true,
            (theirs, ours) => theirs == ours,
        };
        if !are_alike {
            let [theirs, ours] = [&model.architecture, &self.architecture].map(super::architecture_in_words);
            return refuse(format!("it has {theirs}, here there are {ours}"));
        }
        let bias = f64::from(args.problem.bias.unwrap_or(0.0));
        if model.bias != bias {
            return refuse(format!("its constant feature (--bias) is {}, here it is {bias}", model.bias));
        }
        Ok(model.weights_over(self.features))
    }
}

/// The costs of the classes, in their order. Without a header the file has them in ascending order, which is another.
fn read_costs(path: &Path, words: &[String]) -> Result<Costs> {
    let mut order: Vec<usize> = (0..words.len()).collect();
    match labels::values(words) {
        Some(values) => order.sort_by(|&a, &b| values[a].total_cmp(&values[b])),
        None => order.sort_by(|&a, &b| words[a].cmp(&words[b])),
    }
    let sorted: Vec<String> = order.iter().map(|&k| words[k].clone()).collect();
    let costs = costs::read(Input::open(path)?, &sorted)?;
    let mut table = vec![0.0; words.len() * words.len()];
    for (row, &truth) in order.iter().enumerate() {
        for (&cost, &y) in costs.row(row).iter().zip(&order) {
            table[truth * words.len() + y] = cost;
        }
    }
    Ok(Costs::table(words.len(), table)?)
}

/// Examples that are not trained on.
struct Unseen {
    matrix: SparseMatrix,
    /// None for labels that are no nodes.
    truths: Vec<Option<u32>>,
    checksum: u32,
}

impl Unseen {
    /// Reads the file. What the training data lack is treated as `evaluate` does: such features are left out; labels that are
    /// no nodes are errors of the largest loss.
    fn read(path: &Path, data: &Data, pool: &Pool) -> Result<Self> {
        let examples = svmlight::read(Input::open(path)?, LabelRule::Required, pool)?;
        if examples.is_empty() {
            return Err(Failure::Data(format!("{}: has no examples", path.display())));
        }
        let nodes = taxonomy::known_nodes(&examples, &data.hierarchy);
        let truths: Vec<Option<u32>> = examples.labels.ids.iter().map(|&id| nodes[id as usize]).collect();
        let matrix = known_features(&examples, data.features);
        let unknown = truths.iter().filter(|t| t.is_none()).count() as u64;
        if unknown > 0 {
            let all = counted(examples.len() as u64, "held-out example");
            note(&format!(
                "{} of {all} have labels that are no nodes of the taxonomy and count as errors",
                count(unknown)
            ));
        }
        Ok(Self { matrix, truths, checksum: examples.checksum })
    }
}
