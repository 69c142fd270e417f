//! A trained tagger: its weights, the names of its tags and features, and how its sentences are read.

mod packed;

use std::borrow::Cow;
use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::container::{Container, Data, Tensor, damaged, to_json};
use super::{Summary, TaskKind, check_formulation, support};
use crate::data::dictionary::Dictionary;
use crate::data::tagging::{Format, Vocabulary};
use crate::error::{Result, invalid};
use crate::inference::chain::Order;
use crate::kernel::Expansion;
use crate::problem::Formulation;
use crate::sparse::{Rows, SparseView};
use crate::task::Task;
use crate::tasks::tagging::{Constraints, Sentence, Shape, TagLoss, TagScratch, Tagging, UNSEEN};
use crate::weights::{RowView, Weights};
use packed::Packed;

/// All that tagging needs, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Tagger {
    /// How sentences are read.
    pub format: Format,
    /// The names of tags and features.
    pub vocabulary: Vocabulary,
    /// How far a tag looks back.
    pub order: Order,
    /// What a wrong tag costs.
    pub loss: TagLoss,
    /// What is forbidden.
    pub constraints: Option<Constraints>,
    /// The problem that training solved.
    pub formulation: Formulation,
    /// CRC-32 of the bytes of the training data.
    pub data_checksum: u32,
    /// What training found.
    pub summary: Summary,
    /// The weights, without zeros. With a kernel those of the structure alone.
    pub weights: TagWeights,
    /// What token features weigh in a kernel model: a slot for each tag.
    pub kernel: Option<Expansion>,
}

/// The weights of a tagger. Those of token features are mostly zero, so only the others are kept.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TagWeights {
    /// Of transitions and the like: all, in the order of [`Shape::blocks`].
    pub structure: Vec<f64>,
    /// Feature j has the places `starts[j]..starts[j + 1]` of `slots` and `values`.
    starts: Vec<u64>,
    /// Tags, ascending for each feature.
    slots: Vec<u32>,
    values: Vec<f64>,
}

impl TagWeights {
    /// Without the zeros of w.
    pub fn new(task: &Tagging, w: &Weights) -> Self {
        let emission = task.emission();
        let (structure, rows) = w.as_slice().split_at(emission.base as usize);
        let mut kept = Self { structure: structure.to_vec(), starts: vec![0], ..Self::default() };
        match w.short_rows() {
            Some(short) => (0..emission.rows).for_each(|j| kept.push(short.row(j))),
            None => kept.fill(rows, emission.width as usize),
        }
        kept
    }

    /// All rows, of so many weights each. Which ones are zero cannot be foreseen: each is put where the next one belongs, and a zero is
    /// written over.
    fn fill(&mut self, rows: &[f64], width: usize) {
        let nonzeros = rows.iter().filter(|w| **w != 0.0).count();
        (self.slots, self.values) = (vec![0; nonzeros + width], vec![0.0; nonzeros + width]);
        let mut end = 0;
        for row in rows.chunks_exact(width) {
            let (slots, values) = (&mut self.slots[end..][..width], &mut self.values[end..][..width]);
            let mut count = 0;
            for (slot, &value) in (0..).zip(row) {
                (slots[count], values[count]) = (slot, value);
                count += usize::from(value != 0.0);
            }
            end += count;
            self.starts.push(end as u64);
        }
        self.slots.truncate(nonzeros);
        self.values.truncate(nonzeros);
    }

    /// One more row.
    fn push(&mut self, row: RowView<'_>) {
        for (slot, value) in row.iter().filter(|entry| entry.1 != 0.0) {
            self.slots.push(slot);
            self.values.push(value);
        }
        self.starts.push(self.slots.len() as u64);
    }

    /// Of the structure alone: the weights beside a kernel.
    pub fn of_structure(structure: Vec<f64>) -> Self {
        Self { structure, starts: vec![0], ..Self::default() }
    }

    /// Number of token features.
    pub fn features(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The tags of a token feature with their weights, none of them 0.
    #[inline]
    pub fn row(&self, feature: u32) -> impl ExactSizeIterator<Item = (u32, f64)> + '_ {
        let range = self.starts[feature as usize] as usize..self.starts[feature as usize + 1] as usize;
        self.slots[range.clone()].iter().copied().zip(self.values[range].iter().copied())
    }

    /// Number of weights that are not zero.
    pub fn nonzeros(&self) -> usize {
        self.values.len() + self.structure.iter().filter(|w| **w != 0.0).count()
    }

    /// Do the parts fit together, for models of this shape with that many rows of weights?
    fn check(&self, shape: Shape, rows: u32) -> Result<()> {
        let emission = shape.blocks()?[5];
        let ascends = self.starts.is_sorted() && self.starts.first() == Some(&0);
        let is_whole = self.starts.last() == Some(&(self.slots.len() as u64)) && self.slots.len() == self.values.len();
        if !(ascends && is_whole && self.features() == rows as usize) {
            return invalid("the rows of weights do not fit");
        }
        if self.structure.len() as u64 != emission.base {
            return invalid("the weights of transitions do not fit");
        }
        if self.slots.iter().any(|&slot| slot >= shape.tags) {
            return invalid("a weight of a tag that is none");
        }
        let rows = self.starts.windows(2).map(|pair| &self.slots[pair[0] as usize..pair[1] as usize]);
        if !rows.into_iter().all(|slots| slots.is_sorted_by(|a, b| a < b)) {
            return invalid("tags of a feature do not ascend");
        }
        match self.structure.iter().chain(&self.values).find(|w| !w.is_finite()) {
            Some(w) => invalid(format!("a weight is {w}")),
            None => Ok(()),
        }
    }
}

impl Tagger {
    /// What the model is made of.
    pub fn shape(&self) -> Shape {
        Shape {
            tags: self.vocabulary.tags.len() as u32,
            features: self.vocabulary.features.len() as u32,
            edges: self.vocabulary.edges.len() as u32,
            order: self.order,
        }
    }

    /// The task that the model was trained for.
    pub fn task(&self) -> Result<Tagging> {
        Tagging::new(self.shape(), self.loss.clone(), self.constraints.clone())
    }

    /// Do the parts fit together? Saving and loading check it; whoever builds a model by hand may.
    pub fn check(&self) -> Result<()> {
        let tags = &self.vocabulary.tags;
        let mut seen = HashSet::with_capacity(tags.len());
        if let Some(tag) = tags.iter().find(|tag| tag.is_empty() || !seen.insert(tag.as_str())) {
            return invalid(format!("tag '{}' is empty or there twice", tag.escape_debug()));
        }
        check_formulation(&self.formulation)?;
        if self.constraints.as_ref().is_some_and(|constraints| !constraints.fits(tags)) {
            return invalid("the constraints are for other tags");
        }
        if let Err(e) = self.task() {
            return invalid(e);
        }
        let Some(expansion) = &self.kernel else { return self.weights.check(self.shape(), self.shape().features) };
        if expansion.width() as usize != tags.len() {
            return invalid(format!("{} coefficients a support vector for {} tags", expansion.width(), tags.len()));
        }
        if expansion.vectors().range(0..expansion.len()).indices().iter().any(|&j| j >= self.shape().features) {
            return invalid(format!("support vectors have features beyond the {} of the model", self.shape().features));
        }
        self.weights.check(self.shape(), 0)
    }

    /// All weights, laid out for another vocabulary with the same tags, zeros for features that this one lacks: where a
    /// warm start on other data begins. None where tags or shape differ, or with a kernel.
    pub fn weights_over(&self, vocabulary: &Vocabulary, task: &Tagging) -> Option<Weights> {
        let (ours, theirs) = (self.shape(), task.shape());
        if self.kernel.is_some()
            || self.vocabulary.tags != vocabulary.tags
            || ours.order != theirs.order
            || (ours.edges == 0) != (theirs.edges == 0)
        {
            return None;
        }
        let mut w = Weights::zeros(task.dimension());
        let (from, to) = (ours.blocks().ok()?, theirs.blocks().ok()?);
        let dense = w.as_mut_slice();
        for (from, to) in [0, 1, 2, 4].map(|block| (from[block], to[block])) {
            let source = &self.weights.structure[from.base as usize..][..from.len() as usize];
            dense[to.base as usize..][..to.len() as usize].copy_from_slice(source);
        }
        for (id, name) in self.vocabulary.edges.iter().enumerate() {
            let Some(place) = vocabulary.edges.get(name) else { continue };
            let width = from[3].width as usize;
            let source = &self.weights.structure[from[3].at(id as u32, 0)..][..width];
            dense[to[3].at(place, 0)..][..width].copy_from_slice(source);
        }
        for (id, name) in self.vocabulary.features.iter().enumerate() {
            let Some(place) = vocabulary.features.get(name) else { continue };
            for (slot, value) in self.weights.row(id as u32) {
                dense[to[5].at(place, slot)] = value;
            }
        }
        Some(w)
    }

    /// What tags with this model, which must be [valid](Self::check).
    pub fn predictor(&self) -> Result<TagPredictor<'_>> {
        let emissions = match &self.kernel {
            Some(expansion) => Emissions::Kernel(expansion),
            None => Emissions::Weights(Packed::new(&self.weights, self.vocabulary.tags.len())),
        };
        Ok(TagPredictor { task: self.task()?, structure: &self.weights.structure, emissions })
    }

    pub(super) fn container(&self) -> Result<Container<'_>> {
        let record = Record {
            task: TaskKind::Tag,
            format: Cow::Borrowed(&self.format),
            tags: Cow::Borrowed(&self.vocabulary.tags),
            columns: self.vocabulary.columns,
            features: self.vocabulary.features.len() as u32,
            edges: self.vocabulary.edges.len() as u32,
            order: self.order,
            loss: Cow::Borrowed(&self.loss),
            constraints: self.constraints.as_ref().map(Cow::Borrowed),
            formulation: self.formulation,
            data_checksum: self.data_checksum,
            summary: Cow::Borrowed(&self.summary),
            kernel: self.kernel.as_ref().map(support::Written::of),
        };
        let names = |names: &Dictionary| Tensor::list(Data::U8(Cow::Owned(names.to_bytes())));
        let tensors = [
            (FEATURE_NAMES, names(&self.vocabulary.features)),
            (EDGE_NAMES, names(&self.vocabulary.edges)),
            (STRUCTURE, Tensor::list(Data::F64(Cow::Borrowed(&self.weights.structure)))),
            (STARTS, Tensor::list(Data::U64(Cow::Borrowed(&self.weights.starts)))),
            (SLOTS, Tensor::list(Data::U32(Cow::Borrowed(&self.weights.slots)))),
            (VALUES, Tensor::list(Data::F64(Cow::Borrowed(&self.weights.values)))),
        ];
        let tensors = tensors.into_iter().map(|(name, tensor)| (name.to_owned(), tensor));
        let tensors = tensors.chain(self.kernel.iter().flat_map(support::tensors)).collect();
        Ok(Container { record: to_json(&record)?, tensors })
    }
}

/// The tensors of the file. Names are joined by line ends; the others are the parts of [`TagWeights`]. With a kernel there
/// are its [support](super::support) vectors, too.
const FEATURE_NAMES: &str = "names.features";
const EDGE_NAMES: &str = "names.edges";
const STRUCTURE: &str = "weights.structure";
const STARTS: &str = "weights.starts";
const SLOTS: &str = "weights.slots";
const VALUES: &str = "weights.values";

/// Everything but weights and names.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    task: TaskKind,
    format: Cow<'a, Format>,
    tags: Cow<'a, [String]>,
    columns: Option<u32>,
    features: u32,
    edges: u32,
    order: Order,
    loss: Cow<'a, TagLoss>,
    constraints: Option<Cow<'a, Constraints>>,
    formulation: Formulation,
    data_checksum: u32,
    summary: Cow<'a, Summary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<support::Written>,
}

/// The model in a container.
pub(super) fn model(mut container: Container<'static>) -> Result<Tagger> {
    let record: Record<'_> = match serde_json::from_str(&container.record) {
        Ok(record) => record,
        Err(e) => return damaged(e),
    };
    let mut names = |tensor: &str, count: u32| match container.take(tensor)?.1 {
        Data::U8(text) => Dictionary::from_bytes(&text, count as usize),
        _ => damaged("names are not text"),
    };
    let (features, edges) = (names(FEATURE_NAMES, record.features)?, names(EDGE_NAMES, record.edges)?);
    let mut floats = |tensor: &str| match container.take(tensor)?.1 {
        Data::F64(numbers) => Ok(numbers.into_owned()),
        _ => damaged("weights are not numbers"),
    };
    let (structure, values) = (floats(STRUCTURE)?, floats(VALUES)?);
    let Data::U64(starts) = container.take(STARTS)?.1 else { return damaged("rows of weights") };
    let starts = starts.into_owned();
    let Data::U32(slots) = container.take(SLOTS)?.1 else { return damaged("rows of weights") };
    let slots = slots.into_owned();
    let kernel = record.kernel.map(|kernel| support::expansion(kernel, &mut container)).transpose()?;
    let tagger = Tagger {
        format: record.format.into_owned(),
        vocabulary: Vocabulary { tags: record.tags.into_owned(), features, edges, columns: record.columns },
        order: record.order,
        loss: record.loss.into_owned(),
        constraints: record.constraints.map(Cow::into_owned),
        formulation: record.formulation,
        data_checksum: record.data_checksum,
        summary: record.summary.into_owned(),
        weights: TagWeights { structure, starts, slots, values },
        kernel,
    };
    tagger.check()?;
    Ok(tagger)
}

/// Tags sentences with a model.
#[derive(Debug, Clone)]
pub struct TagPredictor<'m> {
    task: Tagging,
    structure: &'m [f64],
    emissions: Emissions<'m>,
}

/// Where the scores of tokens come from.
#[derive(Debug, Clone)]
enum Emissions<'m> {
    Weights(Packed),
    Kernel(&'m Expansion),
}

impl Emissions<'_> {
    /// The scores of all tags at each token, into rows of `stride` numbers.
    fn score(&self, tokens: Rows<'_>, unary: &mut [f64], stride: usize) {
        match self {
            Self::Weights(packed) => packed.score(tokens, unary, stride),
            Self::Kernel(expansion) => by_kernel(expansion, tokens, unary, stride),
        }
    }
}

fn by_kernel(expansion: &Expansion, tokens: Rows<'_>, unary: &mut [f64], stride: usize) {
    const BLOCK: usize = Expansion::BLOCK;
    let tags = expansion.width() as usize;
    let views: Vec<SparseView<'_>> = (0..tokens.len()).map(|t| tokens.row(t)).collect();
    let mut scores = vec![0.0; tags * BLOCK.min(tokens.len())];
    for (views, unary) in views.chunks(BLOCK).zip(unary.chunks_mut(BLOCK * stride)) {
        let scores = &mut scores[..views.len() * tags];
        expansion.scores(views, scores);
        for (unary, scores) in unary.chunks_exact_mut(stride).zip(scores.chunks_exact(tags)) {
            unary[..tags].copy_from_slice(scores);
        }
    }
}

impl TagPredictor<'_> {
    /// The task.
    pub fn task(&self) -> &Tagging {
        &self.task
    }

    /// Fills the tables of `scratch` with the scores of a sentence, to be asked for the best tags, the n best, or margins.
    /// `forced`: a tag for each token that must have it, or [`UNSEEN`] where it is free.
    pub fn fill(&self, x: Sentence<'_>, forced: Option<&[u32]>, scratch: &mut TagScratch) {
        self.task.fill(x, self.structure, scratch, |unary, stride| self.emissions.score(x.tokens, unary, stride));
        for (t, &tag) in forced.into_iter().flatten().enumerate().filter(|(_, tag)| **tag != UNSEEN) {
            let unary = scratch.chain.unary_mut(t);
            let score = unary[tag as usize];
            unary.fill(f64::NEG_INFINITY);
            unary[tag as usize] = score;
        }
    }

    /// The best tags of a sentence, into `y`; returns their score, minus infinity where no sequence of tags is allowed.
    pub fn predict(&self, x: Sentence<'_>, scratch: &mut TagScratch, y: &mut Vec<u32>) -> f64 {
        self.fill(x, None, scratch);
        scratch.chain.best(y)
    }
}
