//! `maxmargin train tag`

use maxmargin::data::input::Input;
use maxmargin::data::tagging::{Sequences, Vocabulary, read_with};
use maxmargin::features::Block;
use maxmargin::inference::chain::Order;
use maxmargin::model::Tagger;
use maxmargin::model::tagger::TagWeights;
use maxmargin::problem::{self, HeldoutExamples};
use maxmargin::solver::SolverKind;
use maxmargin::solver::auto::is_for_gdmm;
use maxmargin::solver::gdmm::Gdmm;
use maxmargin::sparse::SparseMatrix;
use maxmargin::task::{Factored, Task};
use maxmargin::tasks::tagging::{Constraints, Scheme, Shape, TagLoss, Tagging};
use maxmargin::weights::Weights;

use super::{format_of, sentences, sentences_of, tags};
use crate::failure::{Failure, Result};
use crate::kernel::{Kernelised, kernelise};
use crate::memory;
use crate::options::{InnerName, LossName, SchemeName};
use crate::streams::note;
use crate::summary::Described;
use crate::text::{self, count, counted};
use crate::train::{Args, Finished, Session, formulation};
use crate::training::{Exactly, Examples, Vectors};

pub(crate) fn run(mut session: Session<'_>) -> Result<Finished> {
    let args = session.args;
    let start = args.solver.warm_start.as_deref().map(Tagger::load).transpose()?;
    let format = format_of(args)?;
    let (mut data, vocabulary) = session.sentences(&format, args.tag.min_count.unwrap_or(1))?;
    let heldout = args.validation.heldout.as_deref();
    let mut heldout =
        heldout.map(|path| read_with(Input::open(path)?, &format, &vocabulary, &session.pool)).transpose()?;
    if let Some(heldout) = &heldout {
        tell_unseen(heldout);
    }
    let (slots, tokens) = (vocabulary.tags.len(), heldout.as_ref().map(|heldout| &heldout.tokens));
    let mut kernel = kernelise(args, &data.tokens, tokens, slots, &session.pool)?;
    session.seconds_kernel = kernel.as_ref().map_or(0.0, Kernelised::seconds);
    if let Some(kernel) = &mut kernel {
        data.tokens = std::mem::take(&mut kernel.train);
        if let Some((heldout, tokens)) = heldout.as_mut().zip(kernel.heldout.take()) {
            heldout.tokens = tokens;
        }
    }
    let features = if kernel.is_some() { data.tokens.columns() } else { vocabulary.features.len() as u32 };
    let exact_tokens = kernel.as_ref().and_then(Kernelised::exact_rows);
    let exact_task = task(args, &vocabulary, exact_tokens.map_or(0, SparseMatrix::columns))?;
    let task = task(args, &vocabulary, features)?;
    check_memory(args, &task, &data)?;
    let start = start.map(|model| fitted(&model, args, &vocabulary, &task)).transpose()?;
    let mut checksums =
        vec![("the training file", data.checksum), ("the template", crc32fast::hash(format!("{format:?}").as_bytes()))];
    checksums.extend(heldout.as_ref().map(|heldout| ("the held-out file", heldout.checksum)));

    let mut outcome = {
        let exact_inputs = exact_tokens.map(|tokens| sentences_of(&data, tokens));
        let (inputs, outputs, folds) = (sentences(&data), tags(&data), session.folds(&vec![0; data.len()])?);
        let weights = session.weights(data.len())?;
        let heldout_inputs = heldout.as_ref().map(sentences);
        let heldout_tags: Option<Vec<_>> = heldout.as_ref().map(|h| tags(h).into_iter().map(Some).collect());
        let examples = Examples {
            data: problem::examples(&task, &inputs, &outputs, weights.as_deref())?,
            weights: weights.as_deref(),
            folds: folds.as_ref(),
            vectors: kernel.as_ref().map_or(Vectors::Own, |kernel| kernel.vectors(task.emission())),
            heldout: heldout_inputs
                .as_deref()
                .zip(heldout_tags.as_deref())
                .map(|(inputs, truths)| HeldoutExamples::new(&task, inputs, truths)),
            exactly: match (exact_inputs.as_deref(), kernel.as_ref()) {
                (Some(inputs), Some(kernel)) => Some(Exactly {
                    data: problem::examples(&exact_task, inputs, &outputs, weights.as_deref())?,
                    block: exact_task.emission(),
                    kernel,
                }),
                _ => None,
            },
        };
        session.train(examples, start, &checksums, &|i| data.line(data.sentence(i).start))?
    };
    // The model takes the memory of the sentences.
    let data_checksum = data.checksum;
    drop((data, heldout));
    let emission = task.emission();
    let expansion = kernel.as_ref().map(|kernel| kernel.expansion(outcome.weights(), emission)).transpose()?;
    let weights = match expansion {
        // Those of the transitions alone.
        Some(_) => TagWeights::of_structure(outcome.weights().as_slice()[..emission.base as usize].to_vec()),
        None => TagWeights::new(&task, &outcome.take_weights()),
    };
    let model = Tagger {
        format,
        vocabulary,
        order: task.shape().order,
        loss: task.tag_loss().clone(),
        constraints: task.constraints().cloned(),
        formulation: outcome.formulation,
        data_checksum,
        summary: outcome.summary.clone(),
        weights,
        kernel: expansion,
    };
    let approximated = kernel.as_ref().map(|kernel| kernel.approximated(""));
    let described = Described { approximated, ..Described::tagger(&model) };
    session.finish(&outcome, &described, &model)
}

/// The task that the options and the data make, over so many features of tokens.
fn task(args: &Args, vocabulary: &Vocabulary, features: u32) -> Result<Tagging> {
    let (options, names) = (&args.tag, &vocabulary.tags);
    let shape = Shape {
        tags: names.len() as u32,
        features,
        edges: vocabulary.edges.len() as u32,
        order: if options.order == Some(2) { Order::Second } else { Order::First },
    };
    let unknown = |option: &str, tag: &str| {
        let have = text::labels(names);
        Failure::Data(format!(
            "{}: --{option}: '{tag}' is no tag of these data; they have {have}",
            args.input.display()
        ))
    };
    let loss = if args.problem.loss == Some(LossName::ZeroOne) {
        TagLoss::ZeroOne
    } else {
        let mut costs = vec![1.0; names.len()];
        for (i, (tag, cost)) in options.tag_cost.iter().enumerate() {
            if options.tag_cost[..i].iter().any(|(before, _)| before == tag) {
                return Err(Failure::Usage(format!("--tag-cost: tag '{tag}' has two costs")));
            }
            let at = names.iter().position(|name| name == tag).ok_or_else(|| unknown("tag-cost", tag))?;
            costs[at] = *cost;
        }
        if costs.iter().all(|&cost| cost == 0.0) {
            return Err(Failure::Usage("--tag-cost: no error would cost anything; give some tag a cost".to_owned()));
        }
        TagLoss::Hamming(costs)
    };
    let mut constraints = Constraints::none(names);
    for pair in &options.forbid {
        // Tags may have commas in them: the one that leaves two tags is the one that is meant.
        let splits = pair.match_indices(',').map(|(at, _)| (&pair[..at], &pair[at + 1..]));
        let is_tag = |word: &str| names.iter().any(|name| name == word);
        let mut known = splits.clone().filter(|(a, b)| is_tag(a) && is_tag(b));
        match (known.next(), splits.clone().next()) {
            (Some((a, b)), _) => constraints.forbid(a, b).map_err(|tag| unknown("forbid", tag))?,
            (None, Some((a, b))) => return Err(unknown("forbid", if is_tag(a) { b } else { a })),
            (None, None) => return Err(Failure::Usage(format!("--forbid: '{pair}' is not A,B"))),
        }
    }
    let scheme = options.scheme.map(|scheme| match scheme {
        SchemeName::Bio => Scheme::Bio,
        SchemeName::Bioes => Scheme::Bioes,
    });
    if let Some(scheme) = scheme {
        constraints.apply_scheme(scheme).map_err(|tag| {
            let name = if scheme == Scheme::Bio { "BIO" } else { "BIOES" };
            Failure::Data(format!("{}: --scheme {name}: '{tag}' is no tag of this scheme", args.input.display()))
        })?;
    }
    Ok(Tagging::new(shape, loss, Some(constraints).filter(|constraints| !constraints.is_empty()))?)
}

/// States the need before taking it.
fn check_memory(args: &Args, task: &Tagging, data: &Sequences) -> Result<()> {
    let shape = task.shape();
    let need = match short_rows(args, task, data.len()) {
        Some(rows) => memory::of_training(rows.base as f64) + memory::of_short_rows(data.tokens.nonzeros() as f64),
        None => memory::of_training(task.dimension() as f64),
    };
    let Some(available) = memory::lacking(need) else { return Ok(()) };
    let edges =
        if shape.edges > 0 { format!(" and {} of transitions", count(u64::from(shape.edges))) } else { String::new() };
    // What takes less: not where it is taken already, nor where it cannot be.
    let could_be = Gdmm::default().short_rows(task.factored().and_then(Factored::short_rows));
    let other = could_be.filter(|_| short_rows(args, task, data.len()).is_none());
    let other = if other.is_some() {
        ", or train with --solver gdmm, which keeps weights only where they are in use"
    } else {
        ""
    };
    Err(Failure::Data(format!(
        "{}: training would take about {} ({} of tokens{edges}, times {} tags) and {} are free: leave out rare features with \
         --min-count, or take fewer{other}",
        args.input.display(),
        text::bytes(need),
        counted(u64::from(shape.features), "feature"),
        shape.tags,
        text::bytes(available),
    )))
}

/// The weights that training will keep only where they are in use.
fn short_rows(args: &Args, task: &Tagging, examples: usize) -> Option<Block> {
    let block = task.factored()?.short_rows();
    let is_taken = match args.solver.solver {
        Some(SolverKind::Gdmm | SolverKind::SoftBcfw) => args.solver.inner != Some(InnerName::AwaySteps),
        None | Some(SolverKind::Auto) => {
            args.kernel.kernel.is_none()
                && is_for_gdmm(&formulation(args, examples), task.shape().tags, task.dimension(), block)
        }
        Some(_) => false,
    };
    Gdmm::default().short_rows(block).filter(|_| is_taken)
}

/// The weights of a model to start from, by the names of its features.
fn fitted(model: &Tagger, args: &Args, vocabulary: &Vocabulary, task: &Tagging) -> Result<Weights> {
    model.weights_over(vocabulary, task).ok_or_else(|| {
        let path = args.solver.warm_start.as_deref().unwrap_or(&args.input);
        let (theirs, ours) = (text::labels(&model.vocabulary.tags), text::labels(&vocabulary.tags));
        let what = if model.kernel.is_some() {
            "it has a kernel, hence no weights of features".to_owned()
        } else if model.vocabulary.tags == vocabulary.tags {
            "its --order or its features of transitions are others".to_owned()
        } else {
            format!("its tags are {theirs}, those of the data {ours}")
        };
        Failure::Data(format!("{}: cannot start from this model: {what}", path.display()))
    })
}

fn tell_unseen(heldout: &Sequences) {
    if heldout.unseen.tags > 0 {
        let (unseen, tokens) = (count(heldout.unseen.tags), counted(heldout.tags.len() as u64, "held-out token"));
        note(&format!("{unseen} of {tokens} have tags that the training file lacks and count as errors"));
    }
}
