//! `maxmargin train align`

use maxmargin::data::alignments::{Alphabets, Records, Strangers, read};
use maxmargin::data::input::Input;
use maxmargin::data::svmlight::LabelRule;
use maxmargin::inference::align::Reach;
use maxmargin::model::{PairAligner, Prior};
use maxmargin::problem::{self, HeldoutExamples};
use maxmargin::tasks::alignment::{AlignLoss, AlignSettings, Aligned, Alignment, FromPrior, Gaps, Query};
use maxmargin::weights::Weights;

use super::prior::{self, Known};
use super::{check_letters, check_memory, tell_strangers};
use crate::checkpoint;
use crate::failure::{Failure, Result};
use crate::options::{GapsName, LossName, ReachName};
use crate::partitions::survey::Merged;
use crate::streams::note;
use crate::summary::Described;
use crate::text::{count, counted};
use crate::train::{Args, Finished, Given, Session};
use crate::training::{Examples, Vectors};

pub(crate) fn run(mut session: Session<'_>) -> Result<Finished> {
    let args = session.args;
    let name = args.input.display().to_string();
    let start = args.solver.warm_start.as_deref().map(PairAligner::load).transpose()?;
    let given = std::mem::take(&mut session.given);
    let is_blank = matches!(given, Given::Dictionaries(_));
    let (data, alphabets) = if let Given::Dictionaries(Merged::Alphabets(alphabets)) = given {
        (Records::default(), alphabets)
    } else {
        let data = read(session.input()?, LabelRule::Required, &session.pool)?;
        let alphabets = Alphabets::learn(&data.records, args.align.alphabet.clone()).map_err(|what| {
            Failure::Data(format!("{name}: {what} (say which letters have weights with --alphabet)"))
        })?;
        (data, alphabets)
    };
    if alphabets.letters.letters().is_empty() {
        return Err(Failure::Data(format!("{name}: all sequences are empty")));
    }
    let task = Alignment::new(settings(args, &alphabets));
    let threads = session.pool.threads();
    let prepared = |name: &str, data: &Records, is_training: bool| -> Result<(Vec<Query>, Vec<Aligned>)> {
        check_letters(name, data, &alphabets)?;
        check_memory(name, data, threads)?;
        examples(name, data, &alphabets, task.settings(), is_training)
    };
    let (queries, outputs) = if is_blank { Default::default() } else { prepared(&name, &data, true)? };
    let (checksum, lines) = (data.checksum, (0..data.len()).map(|i| data.line(i)).collect::<Vec<u64>>());
    // The text is not needed any more.
    drop(data);
    let heldout = match &args.validation.heldout {
        Some(path) => {
            let data = read(Input::open(path)?, LabelRule::Required, &session.pool)?;
            let (queries, outputs) = prepared(&path.display().to_string(), &data, false)?;
            Some((queries, outputs.into_iter().map(Some).collect::<Vec<_>>(), data.checksum))
        }
        None => None,
    };
    let start = start.map(|model| fitted(&model, args, &alphabets, &task)).transpose()?;
    let known = prior::known(args, &alphabets, &task)?;
    let ties = if args.align.tied { task.tied() } else { Vec::new() };
    let mut checksums = vec![("the training file", checksum)];
    checksums.extend(known.as_ref().map(|known| ("the prior", checkpoint::checksum(known.weights.as_slice()))));
    let directions: Vec<Weights> = known.iter().map(|known| known.weights.clone()).chain(ties).collect();
    checksums.extend(heldout.as_ref().map(|(.., checksum)| ("the held-out file", *checksum)));

    let (outcome, weights, prior) = {
        let (inputs, folds) = (queries.iter().collect::<Vec<&Query>>(), session.folds(&vec![0; queries.len()])?);
        let heldout_inputs = heldout.as_ref().map(|(queries, ..)| queries.iter().collect::<Vec<&Query>>());
        let truths = heldout.as_ref().map(|(_, truths, _)| truths.as_slice());
        macro_rules! train {
            ($task:expr, $start:expr) => {{
                let examples = Examples {
                    data: problem::examples($task, &inputs, &outputs, None)?,
                    weights: None,
                    folds: folds.as_ref(),
                    vectors: Vectors::Own,
                    heldout: heldout_inputs
                        .as_deref()
                        .zip(truths)
                        .map(|(inputs, truths)| HeldoutExamples::new($task, inputs, truths)),
                    exactly: None,
                };
                session.train(examples, $start, &checksums, &|i| lines[i])?
            }};
        }
        if directions.is_empty() {
            let mut outcome = train!(&task, start);
            let weights = outcome.take_weights();
            (outcome, weights, None)
        } else {
            let task = FromPrior::new(task.clone(), directions);
            let outcome = train!(&task, start.map(|start| task.lifted(&start)));
            let factor = task.factors(outcome.weights())[0];
            let weights = task.effective(outcome.weights());
            (outcome, weights, known.map(|Known { name, gaps, .. }| Prior { name, gaps, factor }))
        }
    };
    let AlignSettings { reach, gaps, loss, .. } = *task.settings();
    let model = PairAligner {
        letters: alphabets.letters.letters().iter().collect(),
        marks: alphabets.marks.letters().iter().collect(),
        reach,
        gaps,
        loss,
        formulation: outcome.formulation,
        data_checksum: checksum,
        summary: outcome.summary.clone(),
        prior,
        is_tied: args.align.tied,
        weights,
    };
    session.finish(&outcome, &Described::pair_aligner(&model), &model)
}

fn settings(args: &Args, alphabets: &Alphabets) -> AlignSettings {
    let grid = args.align.gap_grid.as_ref();
    AlignSettings {
        letters: alphabets.letters.letters().len() as u32,
        marks: alphabets.marks.letters().len() as u32,
        reach: match args.align.alignment {
            Some(ReachName::Global) => Reach::Global,
            Some(ReachName::Local) | None => Reach::Local,
        },
        gaps: match args.align.gaps {
            Some(GapsName::Linear) => Gaps::Linear,
            Some(GapsName::Affine) | None => Gaps::Affine,
        },
        loss: match args.problem.loss {
            Some(LossName::Q) => AlignLoss::Q,
            Some(LossName::Q4) => AlignLoss::Q4,
            Some(LossName::Hamming) => AlignLoss::Hamming,
            _ => AlignLoss::ZeroOne,
        },
        gap_grid: grid.map_or_else(|| AlignSettings::GRID.to_vec(), |grid| grid.0.clone()),
    }
}

/// Inputs and outputs, as training or prediction has them.
pub(crate) fn examples(
    name: &str,
    data: &Records,
    alphabets: &Alphabets,
    settings: &AlignSettings,
    is_training: bool,
) -> Result<(Vec<Query>, Vec<Aligned>)> {
    let (mut queries, mut outputs, mut strangers) = (Vec::new(), Vec::new(), Strangers::default());
    let (is_ranking, mut alone) = (settings.loss == AlignLoss::ZeroOne, 0);
    for (i, record) in data.records.iter().enumerate() {
        let (mut query, unknown) = alphabets.query(record);
        strangers += unknown;
        let mut path = record.alignment.clone().unwrap_or_default();
        if settings.reach == Reach::Local {
            path.trim();
        }
        let needs_matches = matches!(settings.loss, AlignLoss::Q | AlignLoss::Q4);
        if needs_matches && is_training && path.matches().next().is_none() {
            let what =
                "the alignment has no matches, of which --loss q and q4 are shares (leave it out, or take hamming)";
            return Err(Failure::Data(format!("{name}:{}: {what}", data.line(i))));
        }
        if is_ranking {
            alone += u64::from(query.candidates.len() == 1);
            query.given = is_training.then(|| path.clone());
        } else {
            query.candidates.truncate(1);
        }
        outputs.push(Aligned { candidate: 0, residues: query.residues(0), path });
        queries.push(query);
    }
    tell_strangers(name, strangers, alphabets)?;
    let all = counted(queries.len() as u64, "example");
    if alone == queries.len() as u64 {
        let what = "no example has decoys, so there is nothing to tell its homologue from";
        return Err(Failure::Data(format!("{name}: {what} (take --loss q, q4 or hamming to learn the alignments)")));
    }
    if alone > 0 {
        note(&format!("{name}: {} of {all} have no decoys and teach nothing", count(alone)));
    }
    Ok((queries, outputs))
}

/// The weights of a model to start from, by letters.
fn fitted(model: &PairAligner, args: &Args, alphabets: &Alphabets, task: &Alignment) -> Result<Weights> {
    model.weights_over(alphabets, task).ok_or_else(|| {
        let path = args.solver.warm_start.as_deref().unwrap_or(&args.input);
        let ours: String = alphabets.letters.letters().iter().collect();
        let what = format!(
            "it is for {}; the data have the letters {ours}, and --gaps must be the same",
            super::features(model)
        );
        Failure::Data(format!("{}: cannot start from this model: {what}", path.display()))
    })
}
