//! `maxmargin train multilabel`

use std::path::Path;

use maxmargin::data::input::Input;
use maxmargin::data::label_sets::{self, LabelSets};
use maxmargin::data::svmlight::{self, LabelRule, Labelled};
use maxmargin::model::Labeller;
use maxmargin::parallel::Pool;
use maxmargin::problem::{self, HeldoutExamples};
use maxmargin::sparse::SparseMatrix;
use maxmargin::tasks::multilabel::{Multilabel, Pairs, SetLoss};
use maxmargin::weights::Weights;

use super::with_unseen;
use crate::failure::{Failure, Result};
use crate::heldout::known_features;
use crate::memory;
use crate::options::{LossName, PairsName, Penalty};
use crate::streams::note;
use crate::summary::Described;
use crate::text::{self, count, counted};
use crate::train::{Args, Finished, Read, Session};
use crate::training::{Examples, Vectors};

pub(crate) fn run(mut session: Session<'_>) -> Result<Finished> {
    let args = session.args;
    let start = args.solver.warm_start.as_deref().map(Labeller::load).transpose()?;
    let Read { mut examples, name, .. } = session.labelled(LabelRule::Set)?;
    let LabelSets { labels, sets } = label_sets::learn(&examples, &name)?;
    if examples.costs.is_some() && args.problem.penalty == Some(Penalty::Hard) {
        note("cost: has no effect with the hard margin, which has no slack to weigh");
    }
    // A model to start from may know features that these data lack.
    let features = examples.matrix.columns().max(start.as_ref().map_or(0, |model| model.features));
    examples.matrix.set_columns(features);
    let pairs = pairs(args, labels.len() as u32, &sets)?;
    check_memory(args, &examples, features, &pairs)?;
    let start = start.map(|model| fitted(&model, args, &labels, features, &pairs)).transpose()?;
    let heldout = args.validation.heldout.as_deref();
    let mut heldout = heldout.map(|path| Unseen::read(path, &labels, features, &session.pool)).transpose()?;
    let bias = args.problem.bias;
    if let Some(bias) = bias {
        examples.matrix = examples.matrix.with_constant(bias);
        if let Some(heldout) = &mut heldout {
            heldout.matrix = heldout.matrix.with_constant(bias);
        }
    }
    let loss = if args.problem.loss == Some(LossName::F1) { SetLoss::F1 } else { SetLoss::Hamming };
    let task = Multilabel::new(examples.matrix.columns(), labels.len() as u32, pairs, loss)?;
    let mut checksums = vec![("the training file", examples.checksum)];
    checksums.extend(heldout.as_ref().map(|heldout| ("the held-out file", heldout.checksum)));

    let mut outcome = {
        let (inputs, folds) = (examples.matrix.views(), session.folds(&vec![0; sets.len()])?);
        let heldout_inputs = heldout.as_ref().map(|heldout| heldout.matrix.views());
        let examples_of = Examples {
            data: problem::examples(&task, &inputs, &sets, examples.costs.as_deref())?,
            weights: examples.costs.as_deref(),
            folds: folds.as_ref(),
            vectors: Vectors::Own,
            heldout: heldout_inputs
                .as_deref()
                .zip(heldout.as_ref().map(|heldout| heldout.truths.as_slice()))
                .map(|(inputs, truths)| HeldoutExamples::new(&task, inputs, truths)),
            exactly: None,
        };
        session.train(examples_of, start, &checksums, &|i| examples.line(i))?
    };
    let model = Labeller {
        labels,
        features,
        bias: f64::from(bias.unwrap_or(0.0)),
        pairs: task.pairs().clone(),
        loss,
        formulation: outcome.formulation,
        data_checksum: examples.checksum,
        summary: outcome.summary.clone(),
        weights: outcome.take_weights(),
    };
    session.finish(&outcome, &Described::labeller(&model), &model)
}

/// The pairs that have a weight.
fn pairs(args: &Args, labels: u32, sets: &[Vec<u32>]) -> Result<Pairs> {
    Ok(match args.multilabel.pairs.unwrap_or(PairsName::None) {
        PairsName::None => Pairs::none(labels),
        PairsName::Tree => Pairs::tree(labels, sets),
        PairsName::Top(n) => Pairs::top(labels, sets, n),
        PairsName::All => Pairs::all(labels)?,
    })
}

/// Examples that are not trained on.
struct Unseen {
    matrix: SparseMatrix,
    truths: Vec<Option<Vec<u32>>>,
    checksum: u32,
}

impl Unseen {
    /// Reads the file. What the training data lack is treated as `evaluate` does: such features are left out, such labels are
    /// missed.
    fn read(path: &Path, labels: &[String], features: u32, pool: &Pool) -> Result<Self> {
        let input = Input::open(path)?;
        let name = input.name().to_owned();
        let examples = svmlight::read(input, LabelRule::Set, pool)?;
        let (sets, unseen) = label_sets::sets_of(&examples, labels, &name)?;
        let matrix = known_features(&examples, features);
        let all = counted(examples.len() as u64, "held-out example");
        let unknown = unseen.counts.iter().filter(|n| **n > 0).count() as u64;
        if unknown > 0 {
            note(&format!("{} of {all} have labels that the training file lacks and that are missed", count(unknown)));
        }
        let truth = |(set, &n): (&Vec<u32>, &u32)| Some(with_unseen(set, labels.len(), n));
        let truths = sets.iter().zip(&unseen.counts).map(truth).collect();
        Ok(Self { matrix, truths, checksum: examples.checksum })
    }
}

/// States the need before taking it: one wrong index could ask for more memory than there is.
fn check_memory(args: &Args, examples: &Labelled, features: u32, pairs: &Pairs) -> Result<()> {
    let of_labels = memory::of_training(f64::from(features) * f64::from(pairs.labels()));
    let of_pairs = memory::of_training(pairs.len() as f64);
    let Some(available) = memory::lacking(of_labels + of_pairs) else { return Ok(()) };
    let matrix = &examples.matrix;
    let widest = (0..matrix.rows()).max_by_key(|&i| matrix.row(i).indices().last().copied());
    let (line, cause) = if of_pairs > of_labels {
        (1, "take --pairs top:N or tree".to_owned())
    } else if features > pairs.labels() {
        let cause = format!("the largest feature index, {features}, stands here; is it right?");
        (widest.map_or(1, |i| examples.line(i)), cause)
    } else {
        (1, "there are so many labels; are all of them needed?".to_owned())
    };
    Err(Failure::Data(format!(
        "{}:{line}: training would take about {} ({}, {}, {}) and {} are free: {cause}",
        args.input.display(),
        text::bytes(of_labels + of_pairs),
        counted(u64::from(features), "feature"),
        counted(u64::from(pairs.labels()), "label"),
        super::pairs_in_words(pairs),
        text::bytes(available),
    )))
}

/// The weights of a model to start from, with zeros for the features and pairs that it does not know.
fn fitted(model: &Labeller, args: &Args, labels: &[String], features: u32, pairs: &Pairs) -> Result<Weights> {
    let refuse = |what: String| {
        let path = args.solver.warm_start.as_deref().unwrap_or(&args.input);
        Err(Failure::Data(format!("{}: cannot start from this model: {what}", path.display())))
    };
    if model.labels != labels {
        let (theirs, ours) = (text::labels(&model.labels), text::labels(labels));
        return refuse(format!("its labels are {theirs}, those of the data {ours}"));
    }
    let bias = f64::from(args.problem.bias.unwrap_or(0.0));
    if model.bias != bias {
        return refuse(format!("its constant feature (--bias) is {}, here it is {bias}", model.bias));
    }
    Ok(model.weights_over(features, pairs))
}
