//! A partition, read with the dictionaries of a blank model, that answers for its examples.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use maxmargin::data::labels::{Classes, Lookup};
use maxmargin::data::svmlight::{self, LabelRule, Labelled};
use maxmargin::data::{alignments, graphs, label_sets, tagging, taxonomy, trees};
use maxmargin::model::{GraphLabeller, Labeller, Model, PairAligner, Parser, Saved, Tagger, TaskKind, TaxonomyModel};
use maxmargin::parallel::Pool;
use maxmargin::problem::{self, Problem};
use maxmargin::solver::partition::Partition;
use maxmargin::tasks::alignment::Query;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::factor_graph::Graph;
use maxmargin::tasks::multiclass::Multiclass;
use maxmargin::weights::Weights;

use crate::alignments::train::examples;
use crate::dataset::class_weights;
use crate::failure::{Failure, Result};
use crate::parsing::sentences::{Known, leave_out_long};
use crate::streams;
use crate::train::{Args, formulation};
use crate::training::with_line;

/// What a partition is asked.
#[derive(Debug)]
pub(crate) enum Request {
    /// The sum of the cuts of its examples at w.
    Cut { w: Weights, threads: usize, answer: Sender<Result<(Vec<f64>, f64)>> },
    /// The sum of the losses of the predictions at w.
    Loss { w: Weights, threads: usize, answer: Sender<Result<f64>> },
}

/// What is known of a partition once it is read.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// How many examples.
    pub examples: usize,
    /// Of w.
    pub dimension: usize,
    /// The sum of their largest losses.
    pub max_loss: f64,
    /// Do their oracles find the maximum?
    pub is_exact: bool,
    /// Of the data.
    pub checksum: u32,
}

/// The other end of a partition.
pub(crate) struct Desk {
    pub(crate) requests: Receiver<Request>,
    pub(crate) ready: Sender<Result<Facts>>,
}

/// The examples of a partition, and where they stand.
struct Examples<'e> {
    data: Arc<dyn problem::Examples + 'e>,
    checksum: u32,
    line: &'e dyn Fn(usize) -> u64,
}

/// Reads what stands in standard input, or takes `rows`, and serves it until nobody asks any more.
pub(crate) fn serve(args: &Args, model: &Saved, rows: Option<Labelled>, desk: &Desk) -> Result<()> {
    let pool = Pool::new(args.solver.threads.unwrap_or(0))?;
    let at = Place { args, desk, pool: &pool };
    match model {
        Saved::Classifier(model) => at.classes(model, rows),
        Saved::Taxonomy(model) => at.nodes(model, rows),
        Saved::Labeller(model) => at.sets(model, rows),
        Saved::Tagger(model) => at.sentences(model),
        Saved::Parser(model) => at.trees(model),
        Saved::GraphLabeller(model) => at.graphs(model),
        Saved::PairAligner(model) => at.pairs(model),
    }
}

struct Place<'s> {
    args: &'s Args,
    desk: &'s Desk,
    pool: &'s Pool,
}

impl Place<'_> {
    fn name(&self) -> String {
        self.args.input.display().to_string()
    }

    /// Rows over so many features, with a constant one where the model has it, and whether their labels are numbers already.
    fn rows(&self, rows: Option<Labelled>, rule: LabelRule, features: u32, bias: f64) -> Result<(Labelled, bool)> {
        let is_ready = rows.is_some();
        let mut examples = match rows {
            Some(rows) => rows,
            None => svmlight::read(streams::open(&self.args.input)?, rule, self.pool)?,
        };
        if examples.matrix.columns() > features {
            let what = format!("{} features, but the survey has {features}", examples.matrix.columns());
            return Err(Failure::Data(format!("{}: {what}; has the partition changed?", self.name())));
        }
        examples.matrix.set_columns(features);
        if bias != 0.0 {
            examples.matrix = examples.matrix.with_constant(bias as f32);
        }
        Ok((examples, is_ready))
    }

    /// A label that the survey has not seen.
    fn unknown(&self, line: u64, label: &str) -> Failure {
        let what = format!("'{label}' is no label of the survey; has the partition changed?");
        Failure::Data(format!("{}:{line}: {what}", self.name()))
    }

    fn classes(&self, model: &Model, rows: Option<Labelled>) -> Result<()> {
        let (examples, is_ready) = self.rows(rows, LabelRule::Required, model.features, model.bias)?;
        let outputs: Vec<u32> = if is_ready {
            examples.labels.ids.clone()
        } else {
            let lookup = Lookup::new(&model.labels);
            let known: Vec<Option<u32>> = examples.labels.names.iter().map(|name| lookup.class(name)).collect();
            let class = |(i, &id): (usize, &u32)| {
                let label = || examples.labels.name(i).unwrap_or_default();
                known[id as usize].ok_or_else(|| self.unknown(examples.line(i), label()))
            };
            examples.labels.ids.iter().enumerate().map(class).collect::<Result<_>>()?
        };
        let classes = Classes { words: model.labels.clone(), outputs };
        let weights =
            classes.example_weights(examples.costs.as_deref(), class_weights(self.args, &classes)?.as_deref());
        let inputs = examples.matrix.views();
        let columns = examples.matrix.columns();
        let line = |i| examples.line(i);
        macro_rules! answer {
            ($task:expr) => {
                self.answer(Examples {
                    data: problem::examples(&$task, &inputs, &classes.outputs, weights.as_deref())?,
                    checksum: examples.checksum,
                    line: &line,
                })
            };
        }
        if model.task == TaskKind::Binary {
            answer!(Binary::new(columns))
        } else {
            answer!(Multiclass::new(columns, model.loss.costs(&model.labels)?))
        }
    }

    fn nodes(&self, model: &TaxonomyModel, rows: Option<Labelled>) -> Result<()> {
        let (examples, _) = self.rows(rows, LabelRule::Required, model.features, model.bias)?;
        let nodes = taxonomy::nodes(&examples, &model.hierarchy, &self.name())?;
        let class = |(i, node): (usize, &u32)| {
            let place = model.classes.binary_search(node).map(|place| place as u32);
            place.map_err(|_| self.unknown(examples.line(i), examples.labels.name(i).unwrap_or_default()))
        };
        let outputs = nodes.iter().enumerate().map(class).collect::<Result<_>>()?;
        let numbered = Classes { words: model.labels(), outputs };
        let weights = class_weights(self.args, &numbered)?;
        let weights = numbered.example_weights(examples.costs.as_deref(), weights.as_deref());
        let inputs = examples.matrix.views();
        let (weights, checksum, line) = (weights.as_deref(), examples.checksum, &|i| examples.line(i));
        let task = model.task()?;
        self.answer(Examples { data: problem::examples(&task, &inputs, &nodes, weights)?, checksum, line })
    }

    fn sets(&self, model: &Labeller, rows: Option<Labelled>) -> Result<()> {
        let (examples, _) = self.rows(rows, LabelRule::Set, model.features, model.bias)?;
        let (sets, unseen) = label_sets::sets_of(&examples, &model.labels, &self.name())?;
        if let Some(i) = unseen.counts.iter().position(|&unseen| unseen > 0) {
            return Err(self.unknown(examples.line(i), examples.labels.name(i).unwrap_or_default()));
        }
        let inputs = examples.matrix.views();
        let (weights, checksum, line) = (examples.costs.as_deref(), examples.checksum, &|i| examples.line(i));
        let task = model.task()?;
        self.answer(Examples { data: problem::examples(&task, &inputs, &sets, weights)?, checksum, line })
    }

    fn sentences(&self, model: &Tagger) -> Result<()> {
        let input = streams::open(&self.args.input)?;
        let data = tagging::read_with(input, &model.format, &model.vocabulary, self.pool)?;
        let (inputs, outputs) = (crate::tagging::sentences(&data), crate::tagging::tags(&data));
        let line = &|i| data.line(data.sentence(i).start);
        let (weights, checksum) = (None, data.checksum);
        let task = model.task()?;
        self.answer(Examples { data: problem::examples(&task, &inputs, &outputs, weights)?, checksum, line })
    }

    fn trees(&self, model: &Parser) -> Result<()> {
        let mut bank = trees::read(streams::open(&self.args.input)?, model.strip)?;
        leave_out_long(self.args, &mut bank, &self.args.input)?;
        let (task, reading) = (model.task()?, model.reading());
        let derivations = trees::derive(&bank, model.shape, &model.grammar, model.lexicon.as_ref())?;
        let known = Known::new(self.args, &task, &reading, &bank, derivations, self.pool)?;
        let inputs: Vec<&[u32]> = known.inputs.iter().map(Vec::as_slice).collect();
        let (weights, checksum, line) = (None, bank.checksum, &|i: usize| known.lines[i]);
        self.answer(Examples { data: problem::examples(&task, &inputs, &known.outputs, weights)?, checksum, line })
    }

    fn graphs(&self, model: &GraphLabeller) -> Result<()> {
        let input = streams::open(&self.args.input)?;
        let data = graphs::read_with(input, &model.shape, LabelRule::Required, self.pool)?;
        let inputs: Vec<&Graph> = data.graphs.iter().collect();
        let (weights, checksum, line) = (None, data.checksum, &|i| data.line(i));
        let task = model.task()?;
        self.answer(Examples { data: problem::examples(&task, &inputs, &data.labels, weights)?, checksum, line })
    }

    fn pairs(&self, model: &PairAligner) -> Result<()> {
        let data = alignments::read(streams::open(&self.args.input)?, LabelRule::Required, self.pool)?;
        let (task, alphabets) = (model.task()?, model.alphabets()?);
        let (queries, outputs) = examples(&self.name(), &data, &alphabets, task.settings(), true)?;
        let inputs: Vec<&Query> = queries.iter().collect();
        let (weights, checksum, line) = (None, data.checksum, &|i| data.line(i));
        self.answer(Examples { data: problem::examples(&task, &inputs, &outputs, weights)?, checksum, line })
    }

    /// Answers until nobody asks any more.
    fn answer(&self, of: Examples<'_>) -> Result<()> {
        let Examples { data, checksum, line } = of;
        let formulation = formulation(self.args, data.len());
        let problem = Problem::of(data, formulation).map_err(|error| with_line(self.args, line, error))?;
        let mut partition = Partition::new(&problem)?;
        let n = problem.len();
        let facts = Facts {
            examples: n,
            dimension: problem.dimension(),
            max_loss: n as f64 * problem.usual_loss(),
            is_exact: problem.oracle_is_exact(),
            checksum,
        };
        // Whoever is gone does not want to know.
        drop(self.desk.ready.send(Ok(facts)));
        let mut other: Option<(usize, Pool)> = None;
        while let Ok(request) = self.desk.requests.recv() {
            let (Request::Cut { w, threads, .. } | Request::Loss { w, threads, .. }) = &request;
            if *threads != 0 && other.as_ref().is_none_or(|(count, _)| count != threads) {
                other = Some((*threads, Pool::new(*threads)?));
            }
            let pool = other.as_ref().filter(|_| *threads != 0).map_or(self.pool, |(_, pool)| pool);
            let fits = if problem.fits(w) && w.all(f64::is_finite) {
                Ok(())
            } else {
                let what = format!("{}: needs {} finite weights, not {}", self.name(), problem.dimension(), w.len());
                Err(Failure::Usage(what))
            };
            let failed = |error| with_line(self.args, line, error);
            match &request {
                Request::Cut { w, answer, .. } => {
                    drop(answer.send(fits.and_then(|()| partition.cut(w, pool).map_err(failed))));
                }
                Request::Loss { w, answer, .. } => {
                    drop(answer.send(fits.and_then(|()| partition.loss(w, pool).map_err(failed))));
                }
            }
        }
        Ok(())
    }
}
