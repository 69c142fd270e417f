//! `maxmargin train parse`

use maxmargin::data::trees::{self, Binarise, Extracted, Lexicon, Reading, Shape, Strip, Terminals, Treebank};
use maxmargin::model::Parser;
use maxmargin::problem::{self, HeldoutExamples};
use maxmargin::tasks::parsing::{ParseFeatures, ParseLoss, ParseSettings, Parsing};
use maxmargin::weights::Weights;

use super::check_memory;
use super::sentences::{Known, Unseen, leave_out_long};
use crate::failure::{Failure, Result};
use crate::options::{BinariseName, FeaturesName, LossName, TerminalsName};
use crate::streams::note;
use crate::summary::Described;
use crate::train::{Args, Finished, Session};
use crate::training::{Examples, Vectors};

pub(crate) fn run(mut session: Session<'_>) -> Result<Finished> {
    let args = session.args;
    let start = args.solver.warm_start.as_deref().map(Parser::load).transpose()?;
    let strip = strip(args);
    let mut bank = trees::read(session.input()?, strip)?;
    leave_out_long(args, &mut bank, &args.input)?;
    let Extracted { grammar, lexicon, derivations } = trees::grammar(&bank, shape(args))?;
    let task = Parsing::new(grammar, settings(args))?;
    let reading = Reading::new(task.grammar(), lexicon.as_ref());
    let heldout = args.validation.heldout.as_deref();
    let heldout = heldout.map(|path| Unseen::read(args, path, strip, &reading)).transpose()?;
    state_memory(args, &task, &bank, heldout.as_ref(), session.pool.threads())?;
    let start = start.map(|model| fitted(&model, args, &task, lexicon.as_ref())).transpose()?;
    let known = Known::new(args, &task, &reading, &bank, derivations, &session.pool)?;
    let mut checksums = vec![("the training file", bank.checksum)];
    checksums.extend(heldout.as_ref().map(|heldout| ("the held-out file", heldout.checksum)));

    let mut outcome = {
        let inputs: Vec<&[u32]> = known.inputs.iter().map(Vec::as_slice).collect();
        let folds = session.folds(&vec![0; inputs.len()])?;
        let weights = session.weights(inputs.len())?;
        let heldout_inputs: Option<Vec<&[u32]>> =
            heldout.as_ref().map(|heldout| heldout.inputs.iter().map(Vec::as_slice).collect());
        let examples = Examples {
            data: problem::examples(&task, &inputs, &known.outputs, weights.as_deref())?,
            weights: weights.as_deref(),
            folds: folds.as_ref(),
            vectors: Vectors::Own,
            heldout: heldout_inputs
                .as_deref()
                .zip(heldout.as_ref().map(|heldout| heldout.truths.as_slice()))
                .map(|(inputs, truths)| HeldoutExamples::new(&task, inputs, truths)),
            exactly: None,
        };
        session.train(examples, start, &checksums, &|i| known.lines[i])?
    };
    let model = Parser {
        strip,
        shape: shape(args),
        grammar: task.grammar().clone(),
        lexicon,
        settings: task.settings(),
        formulation: outcome.formulation,
        data_checksum: bank.checksum,
        summary: outcome.summary.clone(),
        weights: outcome.take_weights(),
    };
    session.finish(&outcome, &Described::parser(&model), &model)
}

/// What is taken off trees.
pub(crate) fn strip(args: &Args) -> Strip {
    Strip { empty: !args.parse.keep_empty, functions: !args.parse.keep_functions }
}

/// How trees become rules.
fn shape(args: &Args) -> Shape {
    let options = &args.parse;
    Shape {
        parent_annotation: options.parent_annotation,
        binarise: match options.binarise {
            Some(BinariseName::Head) => Binarise::Head,
            Some(BinariseName::Right) | None => Binarise::Right,
        },
        markov: options.markov,
        min_count: args.tag.min_count.unwrap_or(1),
        terminals: match options.terminals {
            Some(TerminalsName::Words) => Terminals::Words { rare_below: options.rare_below.unwrap_or(RARE_BELOW) },
            Some(TerminalsName::Tags) | None => Terminals::Tags,
        },
    }
}

/// Words that are seen once teach what new words do.
const RARE_BELOW: u32 = 2;

fn settings(args: &Args) -> ParseSettings {
    let (options, default) = (&args.parse, ParseSettings::default());
    ParseSettings {
        loss: match args.problem.loss {
            Some(LossName::ZeroOne) => ParseLoss::ZeroOne,
            Some(LossName::Hamming) => ParseLoss::Hamming,
            _ => ParseLoss::F1,
        },
        features: match options.features {
            Some(FeaturesName::Spans) => ParseFeatures::Spans,
            Some(FeaturesName::Rules) | None => ParseFeatures::Rules,
        },
        max_span: options.max_span,
        exact_words: options.exact_words.unwrap_or(default.exact_words),
    }
}

/// States the need before taking it: each thread has a chart of the longest sentence.
fn state_memory(args: &Args, task: &Parsing, bank: &Treebank, heldout: Option<&Unseen>, threads: usize) -> Result<()> {
    let way_out = "leave out long sentences with --max-words, long phrases with --max-span, or take fewer --threads";
    let of_bank = bank.trees.iter().map(|tree| (tree.words().len(), tree.line));
    let name = args.input.display().to_string();
    check_memory(task, &name, of_bank, threads, way_out)?.into_iter().for_each(|what| note(&what));
    if let (Some(heldout), Some(path)) = (heldout, &args.validation.heldout) {
        let unseen = heldout.inputs.iter().zip(&heldout.lines).map(|(x, &line)| (x.len(), line));
        let name = path.display().to_string();
        check_memory(task, &name, unseen, threads, way_out)?.into_iter().for_each(|what| note(&what));
    }
    Ok(())
}

/// The weights of a model to start from, by the names of its rules.
fn fitted(model: &Parser, args: &Args, task: &Parsing, lexicon: Option<&Lexicon>) -> Result<Weights> {
    model.weights_over(task, lexicon).ok_or_else(|| {
        let path = args.solver.warm_start.as_deref().unwrap_or(&args.input);
        let what =
            "its grammar has no rule in common with that of the data (other labels, or another way of making rules?)";
        Failure::Data(format!("{}: cannot start from this model: {what}", path.display()))
    })
}
