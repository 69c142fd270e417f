//! Training on partitions, inside of another program: it carries weights and cuts between them and the master.

use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use maxmargin::data::svmlight::Labelled;
use maxmargin::model::Saved;
use maxmargin::parallel::Pool;
use maxmargin::problem::{self, Formulation};
use maxmargin::tasks::partitioned::{Facts as OfGroup, Joint, Partitioned, Partitions};
use maxmargin::weights::Weights;

use super::{Data, Hooks, NAME, Trained, told, words_of_train};
use crate::failure::{Failure, Result};
use crate::interrupt::Halt;
use crate::log::Log;
use crate::partitions::serve::{Desk, Request, serve};
use crate::partitions::survey::{Merged, Survey};
use crate::partitions::{master, survey};
use crate::train::Given;
use crate::training::{Examples, Vectors};
use crate::{refusals, streams, train};

pub use crate::partitions::serve::Facts;

/// What dictionaries are to know of one partition: bytes for [`merge`].
pub fn survey(task: &str, options: &[String], data: Vec<u8>, name: &str) -> Result<Vec<u8>> {
    let (args, _) = words_of_train(task, name, options)?;
    refusals::check(&args)?;
    master::refuse(&args)?;
    let pool = Pool::new(args.solver.threads.unwrap_or(0))?;
    let (found, _) = streams::in_memory(name, data, || survey::survey(&args, &pool));
    postcard::to_stdvec(&found?).map_err(|e| Failure::Data(format!("{name}: the survey cannot be written: {e}")))
}

/// The surveys of all partitions, in their order, as a model without weights.
pub fn merge(task: &str, options: &[String], surveys: &[Vec<u8>], name: &str) -> Result<Vec<u8>> {
    let (args, identity) = words_of_train(task, name, options)?;
    master::refuse(&args)?;
    let read = |(at, bytes): (usize, &Vec<u8>)| {
        postcard::from_bytes::<Survey>(bytes)
            .map_err(|e| Failure::Data(format!("{name}: the survey of partition {at} cannot be read: {e}")))
    };
    let surveys = surveys.iter().enumerate().map(read).collect::<Result<_>>()?;
    let merged = survey::merge(&args, surveys).map_err(|failure| match failure {
        Failure::Data(what) => Failure::Data(format!("{name}: {what}")),
        other => other,
    })?;
    // Trees are read once more, all of them.
    let (text, merged) = match merged {
        Merged::Trees(text) => (text, Merged::Trees(Vec::new())),
        other => (Vec::new(), other),
    };
    streams::in_memory(name, text, || train::blank(&args, identity, Given::Dictionaries(merged))).0
}

/// A model without weights for rows whose labels are all that there are, in their order.
pub fn blank(task: &str, options: &[String], rows: Labelled) -> Result<Vec<u8>> {
    let (args, identity) = words_of_train(task, NAME, options)?;
    master::refuse(&args)?;
    streams::in_memory(NAME, Vec::new(), || train::blank(&args, identity, Given::Rows(rows))).0
}

/// A partition that was read with the dictionaries of a blank model, and that a thread of its own serves.
#[derive(Debug)]
pub struct Partition {
    requests: Option<Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    facts: Facts,
}

const GONE: &str = "the partition is closed, or its thread is gone";

impl Partition {
    /// Reads it.
    pub fn open(task: &str, options: &[String], model: Saved, data: Data, name: &str) -> Result<Self> {
        let (args, _) = words_of_train(task, name, options)?;
        refusals::check(&args)?;
        master::refuse(&args)?;
        let (given, text) = data.parts();
        let rows = match given {
            Given::Text => None,
            Given::Rows(rows) => Some(rows),
            Given::Sentences(_) | Given::Dictionaries(_) => {
                return Err(Failure::Usage("the sentences of a partition are text".to_owned()));
            }
        };
        let (requests, asked) = channel();
        let (ready, read) = channel();
        let name = name.to_owned();
        let work = move || {
            let desk = Desk { requests: asked, ready };
            let (done, _) = streams::in_memory(&name, text, || serve(&args, &model, rows, &desk));
            if let Err(failure) = done {
                // Nobody listens once it was read.
                drop(desk.ready.send(Err(failure)));
            }
        };
        let thread = thread::Builder::new().name("partition".to_owned()).spawn(work);
        let thread = thread.map_err(|e| Failure::Data(format!("cannot start a thread: {e}")))?;
        let facts = read.recv().unwrap_or_else(|_| Err(Failure::Data(GONE.to_owned())))?;
        Ok(Self { requests: Some(requests), thread: Some(thread), facts })
    }

    /// What is known of it.
    pub fn facts(&self) -> Facts {
        self.facts
    }

    /// The sum of the cuts of its examples at w: left-hand side and right-hand side. The same bits for any number of threads,
    /// of which 0 means as many as the options say.
    pub fn cut(&self, w: Vec<f64>, threads: usize) -> Result<(Vec<f64>, f64)> {
        self.ask(|answer| Request::Cut { w: Weights::from(w), threads, answer })
    }

    /// The sum of the losses of the predictions at w.
    pub fn loss(&self, w: Vec<f64>, threads: usize) -> Result<f64> {
        self.ask(|answer| Request::Loss { w: Weights::from(w), threads, answer })
    }

    fn ask<A>(&self, request: impl FnOnce(Sender<Result<A>>) -> Request) -> Result<A> {
        let gone = || Failure::Data(GONE.to_owned());
        let (answer, answered) = channel();
        self.requests.as_ref().ok_or_else(gone)?.send(request(answer)).map_err(|_| gone())?;
        answered.recv().unwrap_or_else(|_| Err(gone()))
    }

    /// Frees the examples.
    pub fn close(&mut self) {
        // The thread ends when nobody can ask it any more.
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl Drop for Partition {
    fn drop(&mut self) {
        self.close();
    }
}

/// A group of partitions, each with its own slack.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Number of examples.
    pub examples: usize,
    /// The sum of their largest losses.
    pub max_loss: f64,
    /// Do their oracles find the maximum?
    pub is_exact: bool,
    /// Of their data.
    pub checksum: u32,
}

/// Trains on partitions, and fills the blank model.
pub fn train_partitions(
    task: &str,
    options: &[String],
    model: Saved,
    groups: &[Group],
    partitions: &dyn Partitions,
    hooks: Hooks,
) -> Result<Trained> {
    let (args, identity) = words_of_train(task, NAME, options)?;
    refusals::check(&args)?;
    master::refuse(&args)?;
    if groups.len() != args.solver.groups.unwrap_or(1) {
        let asked = args.solver.groups.unwrap_or(1);
        return Err(Failure::Usage(format!("--groups: {asked} asked for, but there are {} groups", groups.len())));
    }
    let mut digest = crc32fast::Hasher::new();
    for group in groups {
        digest.update(&group.checksum.to_le_bytes());
    }
    let checksum = if let [only] = groups { only.checksum } else { digest.finalize() };
    let of_group =
        |group: &Group| OfGroup { examples: group.examples, max_loss: group.max_loss, is_exact: group.is_exact };
    let of_groups = Partitioned::new(partitions, groups.iter().map(of_group).collect(), master::dimension(&model)?)?;
    let n = of_groups.examples();
    let formulation = train::formulation(&args, n);
    let args = master::of_groups(args);
    let inputs: Vec<usize> = (0..groups.len()).collect();
    let outputs: Vec<Joint> = (0..groups.len()).map(Joint::truths).collect();
    let weights = of_groups.weights();
    let examples = Examples {
        data: problem::examples(&of_groups, &inputs, &outputs, Some(&weights))?,
        weights: Some(&weights),
        folds: None,
        vectors: Vectors::Own,
        heldout: None,
        exactly: None,
    };
    let own = train::Own { examples, count: Some(n), checksum };
    let (log, halt) = (Log::Told(hooks.on_round), Halt::asking(hooks.is_over));
    let (outcome, written) = streams::in_memory(NAME, Vec::new(), || train::own(&args, identity, own, None, log, halt));
    let outcome = outcome?;
    let formulation = Formulation { c: outcome.formulation.c, ..formulation };
    let filled = master::filled(model, outcome.weights(), formulation, outcome.summary.clone(), checksum)?;
    outcome.clear();
    Ok(Trained { model: filled, summary: told(&outcome), notes: written.notes })
}
