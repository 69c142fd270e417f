//! What training returns and prediction loads.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::data::labels;
use crate::data::output::replace_file;
use crate::error::{Error, Result, invalid};
use crate::kernel::Expansion;
use crate::problem::Formulation;
use crate::solver::{Certificate, Status};
use crate::sparse::{Rows, SparseView};
use crate::task::{Task, first_max};
use crate::tasks::multiclass::Costs;
use crate::weights::Weights;

mod container;
mod exact;
mod file;
mod graph_labeller;
pub mod labeller;
mod pair_aligner;
mod parser;
mod slots;
mod support;
pub mod tagger;
pub mod taxonomy;

use container::Container;
pub use graph_labeller::GraphLabeller;
pub use labeller::Labeller;
pub use pair_aligner::{PairAligner, Prior};
pub use parser::Parser;
use slots::SlotScores;
pub use tagger::Tagger;
pub use taxonomy::TaxonomyModel;

/// The tasks whose models can be kept in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskKind {
    /// Two classes, one weight a feature.
    Binary,
    /// K classes, K weights a feature.
    Multiclass,
    /// Classes that are nodes of a tree or lattice.
    Taxonomy,
    /// Tags for the tokens of a sentence.
    Tag,
    /// A tree for a sentence.
    Parse,
    /// A set of labels.
    Multilabel,
    /// Labels for the variables of a factor graph.
    Graph,
    /// An alignment of two sequences.
    Align,
}

impl TaskKind {
    const ALL: [Self; 8] = [
        Self::Binary,
        Self::Multiclass,
        Self::Taxonomy,
        Self::Tag,
        Self::Parse,
        Self::Multilabel,
        Self::Graph,
        Self::Align,
    ];
}

impl fmt::Display for TaskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Binary => "binary",
            Self::Multiclass => "multiclass",
            Self::Taxonomy => "taxonomy",
            Self::Tag => "tag",
            Self::Parse => "parse",
            Self::Multilabel => "multilabel",
            Self::Graph => "graph",
            Self::Align => "align",
        })
    }
}

impl FromStr for TaskKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.to_string() == name).ok_or_else(|| {
            let known = Self::ALL.map(|kind| kind.to_string()).join(", ");
            Error::setting("task", format!("'{name}' is none; there are {known}"))
        })
    }
}

/// What a wrong prediction costs, before the loss scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Every error costs 1.
    ZeroOne,
    /// The difference of the labels, which are numbers.
    Absolute,
    /// The square of the difference of the labels, which are numbers.
    Squared,
    /// A table, row by row in the order of the labels: row = truth, column = prediction.
    Matrix(#[serde(with = "exact::list")] Vec<f64>),
}

impl Loss {
    /// The table of costs of all pairs of labels.
    pub fn costs(&self, labels: &[String]) -> Result<Costs> {
        match self {
            Self::ZeroOne => Ok(Costs::zero_one(labels.len())),
            Self::Absolute => Ok(Costs::absolute(&values(labels)?)),
            Self::Squared => Ok(Costs::squared(&values(labels)?)),
            Self::Matrix(table) => Costs::table(labels.len(), table.clone()),
        }
    }
}

/// Labels as numbers.
fn values(labels: &[String]) -> Result<Vec<f64>> {
    labels::values(labels).ok_or_else(|| {
        let word = labels.iter().find(|word| labels::value(word).is_none()).map_or("", String::as_str);
        Error::setting(
            "loss",
            format!("absolute and squared need labels that are numbers, not '{}'", word.escape_debug()),
        )
    })
}

/// What training found. No times: equal runs give equal files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The solver's name, as on the command line.
    pub solver: String,
    /// How training ended.
    pub status: Status,
    /// What the dual value is worth.
    pub certificate: Certificate,
    /// Number of training examples n.
    pub examples: u64,
    /// C, the weight of the mean slack.
    #[serde(with = "exact")]
    pub c: f64,
    /// The gap that was asked for, divided by C; with the hard margin, by P.
    #[serde(with = "exact")]
    pub epsilon: f64,
    /// P(w).
    #[serde(with = "exact")]
    pub primal: f64,
    /// How far `primal` may be off by the rounding of f64; 0 in files that do not tell.
    #[serde(with = "exact", default)]
    pub primal_error: f64,
    /// The lower bound.
    #[serde(with = "exact")]
    pub dual: f64,
    /// `primal - dual`
    #[serde(with = "exact")]
    pub gap: f64,
    /// Rounds.
    pub rounds: u64,
    /// Oracle calls divided by n.
    #[serde(with = "exact")]
    pub passes: f64,
    /// Mean loss on the training examples, scaled.
    #[serde(with = "exact")]
    pub train_loss: f64,
}

/// A model file of any task.
#[derive(Debug, Clone, PartialEq)]
pub enum Saved {
    /// Of the tasks binary and multiclass.
    Classifier(Box<Model>),
    /// Of the task taxonomy.
    Taxonomy(Box<TaxonomyModel>),
    /// Of the task tag.
    Tagger(Box<Tagger>),
    /// Of the task parse.
    Parser(Box<Parser>),
    /// Of the task multilabel.
    Labeller(Box<Labeller>),
    /// Of the task graph.
    GraphLabeller(Box<GraphLabeller>),
    /// Of the task align.
    PairAligner(Box<PairAligner>),
}

impl Saved {
    /// Reads a model file. Safe on any bytes: foreign, damaged and newer files are errors.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| Error::io(path, source))?;
        container::read(path, file).and_then(Self::of).map_err(|e| at(path, e))
    }

    /// A model of the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        container::read(Path::new("memory"), bytes).and_then(Self::of)
    }

    fn of(container: Container<'static>) -> Result<Self> {
        #[derive(Deserialize)]
        struct Kind {
            task: TaskKind,
        }
        match serde_json::from_str::<Kind>(&container.record) {
            Ok(Kind { task: TaskKind::Tag }) => tagger::model(container).map(|tagger| Self::Tagger(Box::new(tagger))),
            Ok(Kind { task: TaskKind::Taxonomy }) => {
                taxonomy::model(container).map(|model| Self::Taxonomy(Box::new(model)))
            }
            Ok(Kind { task: TaskKind::Parse }) => parser::model(container).map(|parser| Self::Parser(Box::new(parser))),
            Ok(Kind { task: TaskKind::Multilabel }) => {
                labeller::model(container).map(|labeller| Self::Labeller(Box::new(labeller)))
            }
            Ok(Kind { task: TaskKind::Graph }) => {
                graph_labeller::model(container).map(|labeller| Self::GraphLabeller(Box::new(labeller)))
            }
            Ok(Kind { task: TaskKind::Align }) => {
                pair_aligner::model(container).map(|aligner| Self::PairAligner(Box::new(aligner)))
            }
            Ok(Kind { task: TaskKind::Binary | TaskKind::Multiclass }) => {
                file::model(container).map(|model| Self::Classifier(Box::new(model)))
            }
            Err(e) => container::damaged(e),
        }
    }

    /// The task that the model is for.
    pub fn task(&self) -> TaskKind {
        match self {
            Self::Classifier(model) => model.task,
            Self::Taxonomy(_) => TaskKind::Taxonomy,
            Self::Tagger(_) => TaskKind::Tag,
            Self::Parser(_) => TaskKind::Parse,
            Self::Labeller(_) => TaskKind::Multilabel,
            Self::GraphLabeller(_) => TaskKind::Graph,
            Self::PairAligner(_) => TaskKind::Align,
        }
    }

    fn classifier(self) -> Result<Model> {
        match self {
            Self::Classifier(model) => Ok(*model),
            other => Err(Error::model(format!("a model of the task {}, not of classes", other.task()))),
        }
    }
}

/// Do the numbers of a formulation make sense?
fn check_formulation(formulation: &Formulation) -> Result<()> {
    let Formulation { c, loss_scale, .. } = formulation;
    for (name, x) in [("c", c), ("loss scale", loss_scale)] {
        if !(*x > 0.0 && x.is_finite()) {
            return invalid(format!("{name} is {x}, not positive and finite"));
        }
    }
    Ok(())
}

/// Has the task as many weights as there are, and are all of them numbers? `of`: what says how many, in words.
fn check_weights<T: Task>(task: Result<T>, of: &str, weights: &Weights) -> Result<()> {
    let expected = match task {
        Ok(task) => task.dimension(),
        Err(e) => return invalid(e),
    };
    if expected != weights.len() {
        return invalid(format!("{} weights where {of} has {expected}", weights.len()));
    }
    match weights.as_slice().iter().find(|w| !w.is_finite()) {
        Some(w) => invalid(format!("a weight is {w}")),
        None => Ok(()),
    }
}

/// Writes a model file: wholly, or an old one at `path` stays as it was.
fn save(path: &Path, container: Result<Container<'_>>) -> Result<()> {
    let container = container.map_err(|e| at(path, e))?;
    let head = container.head().map_err(|e| at(path, e))?;
    replace_file(path, |writer| {
        writer.write_all(&head)?;
        container.write_tensors(writer)
    })
}

/// What all models but those of classes have in common: their files. `$of`: what they are models of.
macro_rules! model_files {
    ($($model:ident as $variant:ident of $of:literal),*) => {$(
        impl $model {
            /// Writes the model file: wholly, or an old one at `path` stays as it was. The same model gives the same bytes.
            pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
                save(path.as_ref(), self.check().and_then(|()| self.container()))
            }

            /// Reads a model file. Safe on any bytes: foreign, damaged and newer files are errors.
            pub fn load(path: impl AsRef<Path>) -> Result<Self> {
                let path = path.as_ref();
                Saved::load(path).and_then(|saved| Self::of(saved).map_err(|e| at(path, e)))
            }

            /// The bytes of the model file.
            pub fn to_bytes(&self) -> Result<Vec<u8>> {
                self.check()?;
                self.container()?.to_bytes()
            }

            /// A model of the bytes of its file.
            pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
                Saved::from_bytes(bytes).and_then(Self::of)
            }

            fn of(saved: Saved) -> Result<Self> {
                match saved {
                    Saved::$variant(model) => Ok(*model),
                    other => Err(Error::model(format!("a model of the task {}, not of {}", other.task(), $of))),
                }
            }
        }
    )*};
}

model_files!(
    TaxonomyModel as Taxonomy of "a taxonomy",
    Tagger as Tagger of "tags",
    Parser as Parser of "trees",
    Labeller as Labeller of "label sets",
    GraphLabeller as GraphLabeller of "graphs",
    PairAligner as PairAligner of "alignments"
);

/// A trained model of classes: all that prediction needs, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The task.
    pub task: TaskKind,
    /// The words of the classes, in the order of their numbers; binary: negative, positive.
    pub labels: Vec<String>,
    /// Number of input features, without the constant one.
    pub features: u32,
    /// Value of the constant feature, the last row of the weights; 0 where there is none. Taken as f32, as all
    /// features are. A kernel has its square as a constant instead.
    pub bias: f64,
    /// What a wrong prediction costs.
    pub loss: Loss,
    /// The problem that training solved.
    pub formulation: Formulation,
    /// CRC-32 of the bytes of the training data.
    pub data_checksum: u32,
    /// What training found.
    pub summary: Summary,
    /// The weights: a row for each feature, the constant one last. None with a kernel.
    pub weights: Weights,
    /// The weight vector of a kernel model, a slot for each of its [slots](Self::slots).
    pub kernel: Option<Expansion>,
}

impl Model {
    /// Number of weights a feature: 1 for two classes, else one a class.
    pub fn slots(&self) -> usize {
        match self.task {
            TaskKind::Binary => 1,
            _ => self.labels.len(),
        }
    }

    /// Do the parts fit together? Saving and loading check it; whoever builds a model by hand may.
    pub fn check(&self) -> Result<()> {
        let fail = |what: String| Err(Error::model(format!("not a valid model: {what}")));
        let labels = self.labels.len();
        let count_fits = match self.task {
            TaskKind::Binary => labels == 2,
            TaskKind::Multiclass => labels >= 2 && u32::try_from(labels).is_ok(),
            TaskKind::Taxonomy
            | TaskKind::Tag
            | TaskKind::Parse
            | TaskKind::Multilabel
            | TaskKind::Graph
            | TaskKind::Align => false,
        };
        if !count_fits {
            return fail(format!("{labels} labels for a {} task", self.task));
        }
        let mut seen = HashSet::with_capacity(labels);
        if let Some(label) = self.labels.iter().find(|label| label.is_empty() || !seen.insert(label.as_str())) {
            return fail(format!("label '{}' is empty or there twice", label.escape_debug()));
        }
        check_formulation(&self.formulation)?;
        let constant = self.bias as f32;
        if !constant.is_finite() || (constant == 0.0) != (self.bias == 0.0) {
            return fail(format!("bias is {}, not a number that fits into f32", self.bias));
        }
        let loss_fits = match &self.loss {
            Loss::ZeroOne => Ok(()),
            _ if self.task == TaskKind::Binary => return fail("a binary task has the zero-one loss only".to_owned()),
            Loss::Absolute | Loss::Squared => values(&self.labels).map(drop),
            Loss::Matrix(_) => self.loss.costs(&self.labels).map(drop),
        };
        if let Err(e) = loss_fits {
            return fail(e.to_string());
        }
        if let Some(expansion) = &self.kernel {
            return support::check(expansion, self.slots(), self.features, self.bias, &self.weights);
        }
        let rows = u64::from(self.features) + u64::from(self.bias != 0.0);
        if rows.checked_mul(self.slots() as u64) != Some(self.weights.len() as u64) {
            let (weights, slots) = (self.weights.len(), self.slots());
            return fail(format!("{weights} weights for {rows} features times {slots}"));
        }
        match self.weights.as_slice().iter().position(|w| !w.is_finite()) {
            Some(at) => fail(format!("weight {} is {}", at + 1, self.weights.as_slice()[at])),
            None => Ok(()),
        }
    }

    /// Writes the model file: wholly, or an old one at `path` stays as it was. The same model gives the same bytes.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        save(path.as_ref(), self.check().and_then(|()| file::container(self)))
    }

    /// Reads a model file. Safe on any bytes: foreign, damaged and newer files are errors.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Saved::load(path)?.classifier().map_err(|e| at(path, e))
    }

    /// The bytes of the model file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.check()?;
        file::container(self)?.to_bytes()
    }

    /// A model of the bytes of its file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Saved::from_bytes(bytes)?.classifier()
    }

    /// The weights laid out over `features` input features, zeros for those that the model does not know: where a warm
    /// start on wider data begins.
    ///
    /// # Panics
    /// If the model has more features than that, or a kernel.
    pub fn weights_over(&self, features: u32) -> Weights {
        assert!(self.kernel.is_none(), "a kernel model has no weights");
        assert!(features >= self.features, "the model has {} features", self.features);
        let mut rows = self.weights.as_slice().to_vec();
        let constant = rows.split_off(self.features as usize * self.slots());
        rows.resize(features as usize * self.slots(), 0.0);
        rows.extend(constant);
        Weights::from(rows)
    }

    /// What predicts with this model, which must be [valid](Self::check).
    pub fn predictor(&self) -> Predictor<'_> {
        debug_assert!(self.check().is_ok());
        let slots = SlotScores::new(&self.weights, self.features, self.slots() as u32, self.bias, self.kernel.as_ref());
        Predictor { task: self.task, slots }
    }
}

/// Names the file in what is wrong with it.
fn at(path: &Path, e: Error) -> Error {
    match e {
        Error::Model { what } => Error::model(format!("{}: {what}", path.display())),
        other => other,
    }
}

/// Predicts with a model: the argmax of the task, on rows without the constant feature.
#[derive(Debug, Clone, Copy)]
pub struct Predictor<'m> {
    task: TaskKind,
    slots: SlotScores<'m>,
}

impl Predictor<'_> {
    /// The number of the class of x. The scores of all classes are left in `scores`; binary: `-s/2, s/2` with the
    /// decision value s. Features that the model does not know are left out.
    pub fn predict(&self, x: SparseView<'_>, scores: &mut Vec<f64>) -> u32 {
        if self.task == TaskKind::Binary {
            let s = self.decision(x);
            scores.clear();
            scores.extend([-0.5 * s, 0.5 * s]);
            return u32::from(s > 0.0);
        }
        scores.resize(self.slots.width(), 0.0);
        self.slots.scores(x, scores);
        first_max(scores) as u32
    }

    /// [Predicts](Self::predict) many rows: their classes and scores go to `take`, in order. With a kernel this is much faster
    /// than one row after the other.
    pub fn predict_all(&self, rows: Rows<'_>, scores: &mut Vec<f64>, mut take: impl FnMut(u32, &[f64])) {
        self.slots.each(rows, scores, |scores| match self.task {
            TaskKind::Binary => take(u32::from(scores[0] > 0.0), &[-0.5 * scores[0], 0.5 * scores[0]]),
            _ => take(first_max(scores) as u32, scores),
        });
    }

    /// The decision value `<w, x>` of a binary model: positive for the positive class.
    ///
    /// # Panics
    /// If the model is not binary.
    pub fn decision(&self, x: SparseView<'_>) -> f64 {
        assert_eq!(self.task, TaskKind::Binary, "only binary models have a decision value");
        let mut score = [0.0];
        self.slots.scores(x, &mut score);
        score[0]
    }
}
