//! Training with partitions that answer for their examples, and the model that comes of it.

use maxmargin::model::tagger::TagWeights;
use maxmargin::model::{Saved, Summary};
use maxmargin::problem::Formulation;
use maxmargin::solver::SolverKind;
use maxmargin::task::Task;
use maxmargin::weights::Weights;

use crate::failure::{Failure, Result};
use crate::options::{ClassWeight, Penalty};
use crate::train::{Args, ModelFile};

/// What partitions cannot do.
pub(crate) fn refuse(args: &Args) -> Result<()> {
    let solver = args.solver.solver.unwrap_or(SolverKind::OneSlack);
    let is_balanced = args.problem.class_weight.contains(&ClassWeight::Balanced);
    let rules = [
        (args.problem.penalty == Some(Penalty::Hard), "--penalty: the hard margin is trained on one machine"),
        (
            !matches!(solver, SolverKind::Auto | SolverKind::OneSlack | SolverKind::GroupSlack),
            "--solver: partitions are trained with one-slack or group-slack",
        ),
        (
            args.kernel.kernel.is_some(),
            "--kernel: a kernel compares examples with each other, and those of other partitions are elsewhere; train on one \
             machine",
        ),
        (
            is_balanced,
            "--class-weight: balanced weights count the examples of all partitions; give the weights themselves",
        ),
        (args.validation.heldout.is_some(), "--heldout: evaluate the model afterwards"),
        (args.validation.folds.is_some(), "--folds: partitions are not dealt into folds"),
        (args.solver.warm_start.is_some(), "--warm-start: training on partitions begins with w = 0"),
        (args.align.tied, "--tied: partitions are trained without ties; train on one machine"),
        (args.align.prior.is_some(), "--prior: partitions are trained without known scores; train on one machine"),
        (args.solver.cache.is_some_and(|cache| cache > 0), "--cache: partitions keep nothing between two rounds"),
        (solver != SolverKind::GroupSlack && args.solver.groups.is_some(), "--groups: belongs to --solver group-slack"),
    ];
    match rules.into_iter().find(|rule| rule.0) {
        Some((_, what)) => Err(Failure::Usage(what.to_owned())),
        None => Ok(()),
    }
}

/// The options of a problem whose examples are groups of partitions: what concerns single examples is in their cuts.
pub(crate) fn of_groups(mut args: Args) -> Args {
    let (problem, solver) = (&mut args.problem, &mut args.solver);
    (problem.penalty, problem.rescaling, problem.loss_scale) = (None, None, None);
    if matches!(solver.solver, None | Some(SolverKind::Auto)) {
        solver.solver = Some(SolverKind::OneSlack);
    }
    solver.cache = Some(0);
    args
}

/// Number of weights of a blank model.
pub(crate) fn dimension(model: &Saved) -> Result<usize> {
    Ok(match model {
        Saved::Classifier(model) => model.weights.len(),
        Saved::Taxonomy(model) => model.task()?.dimension(),
        Saved::Tagger(model) => model.task()?.dimension(),
        Saved::Parser(model) => model.task()?.dimension(),
        Saved::Labeller(model) => model.weights.len(),
        Saved::GraphLabeller(model) => model.task()?.dimension(),
        Saved::PairAligner(model) => model.weights.len(),
    })
}

/// The bytes of the model with what training came to.
pub(crate) fn filled(
    model: Saved,
    w: &Weights,
    formulation: Formulation,
    summary: Summary,
    checksum: u32,
) -> Result<Vec<u8>> {
    macro_rules! fill {
        ($model:expr, $weights:expr) => {{
            let mut model = $model;
            model.weights = $weights;
            model.formulation = formulation;
            model.summary = summary;
            model.data_checksum = checksum;
            ModelFile::to_bytes(&*model)?
        }};
    }
    Ok(match model {
        Saved::Classifier(model) => fill!(model, w.clone()),
        Saved::Taxonomy(model) => fill!(model, w.clone()),
        Saved::Tagger(model) => {
            let weights = TagWeights::new(&model.task()?, w);
            fill!(model, weights)
        }
        Saved::Parser(model) => fill!(model, w.clone()),
        Saved::Labeller(model) => fill!(model, w.clone()),
        Saved::GraphLabeller(model) => fill!(model, w.clone()),
        Saved::PairAligner(model) => fill!(model, w.clone()),
    })
}
