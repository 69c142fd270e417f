//! A trained model of classes that are nodes of a tree or lattice.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::container::{Container, Data, Tensor, damaged, to_json};
use super::slots::SlotScores;
use super::{Summary, TaskKind, check_formulation, check_weights, exact, support};
use crate::error::{Error, Result, invalid};
use crate::kernel::Expansion;
use crate::problem::Formulation;
use crate::sparse::Rows;
use crate::task::first_max;
use crate::tasks::multiclass::Costs;
use crate::tasks::taxonomy::{Architecture, ClassFeatures, Hierarchy, NodeLoss, Taxonomy};
use crate::weights::Weights;

/// All that prediction needs, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct TaxonomyModel {
    /// The tree or lattice.
    pub hierarchy: Arc<Hierarchy>,
    /// Its nodes that are classes, ascending.
    pub classes: Vec<u32>,
    /// What the classes share.
    pub architecture: Architecture,
    /// Number of input features, without the constant one.
    pub features: u32,
    /// Value of the constant feature, the last row of the weights; 0 where there is none. Taken as f32, as all features are.
    /// A kernel has its square as a constant instead.
    pub bias: f64,
    /// What a wrong prediction costs.
    pub loss: NodeLoss,
    /// The problem that training solved.
    pub formulation: Formulation,
    /// CRC-32 of the bytes of the training data.
    pub data_checksum: u32,
    /// What training found.
    pub summary: Summary,
    /// The weights: a row for each feature, the constant one last. None with a kernel.
    pub weights: Weights,
    /// The weight vector of a kernel model.
    pub kernel: Option<Expansion>,
}

impl TaxonomyModel {
    /// The task that the model was trained for. Its features are those of the data, and the constant one where there is one.
    pub fn task(&self) -> Result<Taxonomy> {
        let Some(rows) = self.features.checked_add(u32::from(self.bias != 0.0)) else {
            return Err(Error::setting("features", "and a constant one are too many"));
        };
        Taxonomy::new(rows, Arc::clone(&self.hierarchy), self.classes.clone(), &self.architecture, self.loss.clone())
    }

    /// The words of the classes, in their order.
    pub fn labels(&self) -> Vec<String> {
        self.classes.iter().map(|&node| self.hierarchy.names()[node as usize].clone()).collect()
    }

    /// The names of the slots: nodes, classes or attributes.
    pub fn slots(&self) -> Vec<String> {
        match &self.architecture {
            Architecture::Flat => self.labels(),
            Architecture::Taxonomy(_) => self.hierarchy.names()[1..].to_vec(),
            Architecture::Features(of_classes) => of_classes.attributes.clone(),
        }
    }

    /// Do the parts fit together? Saving and loading check it; whoever builds a model by hand may.
    pub fn check(&self) -> Result<()> {
        if self.classes.len() < 2 {
            return invalid(format!("{} classes", self.classes.len()));
        }
        check_formulation(&self.formulation)?;
        let constant = self.bias as f32;
        if !constant.is_finite() || (constant == 0.0) != (self.bias == 0.0) {
            return invalid(format!("bias is {}, not a number that fits into f32", self.bias));
        }
        let Some(expansion) = &self.kernel else { return check_weights(self.task(), "the task", &self.weights) };
        let slots = match self.task() {
            Ok(task) => task.slots(),
            Err(e) => return invalid(e),
        };
        support::check(expansion, slots, self.features, self.bias, &self.weights)
    }

    /// The weights laid out over `features` input features, zeros for those that the model does not know: where a warm
    /// start on wider data begins.
    ///
    /// # Panics
    /// If the model has more features than that, or a kernel.
    pub fn weights_over(&self, features: u32) -> Weights {
        assert!(self.kernel.is_none() && features >= self.features, "weights of at most {features} features");
        let width = self.slots().len();
        let mut rows = self.weights.as_slice().to_vec();
        let constant = rows.split_off(self.features as usize * width);
        rows.resize(features as usize * width, 0.0);
        rows.extend(constant);
        Weights::from(rows)
    }

    /// What predicts with this model.
    pub fn predictor(&self) -> Result<NodePredictor<'_>> {
        let task = self.task()?;
        let width = task.slots() as u32;
        let slots = SlotScores::new(&self.weights, self.features, width, self.bias, self.kernel.as_ref());
        Ok(NodePredictor { task, slots })
    }

    pub(super) fn container(&self) -> Result<Container<'_>> {
        let (architecture, ancestor_weight, attributes) = match &self.architecture {
            Architecture::Flat => (Written::Flat, 1.0, Vec::new()),
            Architecture::Taxonomy(weight) => (Written::Taxonomy, *weight, Vec::new()),
            Architecture::Features(of_classes) => (Written::Features, 1.0, of_classes.attributes.clone()),
        };
        let loss = match &self.loss {
            NodeLoss::ZeroOne => WrittenLoss::ZeroOne,
            NodeLoss::Tree => WrittenLoss::Tree,
            NodeLoss::Path => WrittenLoss::Path,
            NodeLoss::Matrix(costs) => WrittenLoss::Matrix(costs.as_slice().to_vec()),
        };
        let record = Record {
            task: TaskKind::Taxonomy,
            nodes: Cow::Borrowed(self.hierarchy.names()),
            architecture,
            ancestor_weight,
            attributes,
            features: self.features,
            bias: self.bias,
            loss,
            formulation: self.formulation,
            data_checksum: self.data_checksum,
            summary: Cow::Borrowed(&self.summary),
            kernel: self.kernel.as_ref().map(support::Written::of),
        };
        let mut tensors = BTreeMap::new();
        let mut insert = |name: &str, shape: Vec<usize>, data| tensors.insert(name.to_owned(), Tensor { shape, data });
        let edges: Vec<u32> = self.hierarchy.edges().flat_map(|(child, parent)| [child, parent]).collect();
        insert(EDGES, vec![edges.len() / 2, 2], Data::U32(Cow::Owned(edges)));
        insert(CLASSES, vec![self.classes.len()], Data::U32(Cow::Borrowed(&self.classes)));
        if let Architecture::Features(ClassFeatures { rows, .. }) = &self.architecture {
            let ends = rows.iter().scan(0, |end, row| {
                *end += row.len() as u64;
                Some(*end)
            });
            let entries = || rows.iter().flatten();
            let count = entries().count();
            insert(ROW_ENDS, vec![rows.len()], Data::U64(ends.collect()));
            insert(ROW_ATTRIBUTES, vec![count], Data::U32(entries().map(|e| e.0).collect()));
            insert(ROW_VALUES, vec![count], Data::F64(entries().map(|e| e.1).collect()));
        }
        if let Some(expansion) = &self.kernel {
            tensors.extend(support::tensors(expansion));
        } else {
            let width = self.task()?.slots();
            let shape = vec![self.weights.len() / width, width];
            insert(WEIGHTS, shape, Data::F64(Cow::Borrowed(self.weights.as_slice())));
        }
        Ok(Container { record: to_json(&record)?, tensors })
    }
}

/// Predicts nodes, on rows without the constant feature.
#[derive(Debug)]
pub struct NodePredictor<'m> {
    task: Taxonomy,
    slots: SlotScores<'m>,
}

impl NodePredictor<'_> {
    /// The node of each row, and the scores of all classes, go to `take`, in order: the best class or, of it and its ancestors, the
    /// lowest whose classes lead all others by at least `threshold`.
    pub fn predict_all(&self, rows: Rows<'_>, threshold: Option<f64>, mut take: impl FnMut(u32, &[f64])) {
        let (mut buffer, mut scores) = (Vec::new(), vec![0.0; self.task.classes().len()]);
        self.slots.each(rows, &mut buffer, |of_slots| {
            self.task.class_scores(of_slots, &mut scores);
            let node = match threshold {
                Some(threshold) => self.task.sure_node(&scores, threshold),
                None => self.task.classes()[first_max(&scores)],
            };
            take(node, &scores);
        });
    }

    /// The task.
    pub fn task(&self) -> &Taxonomy {
        &self.task
    }
}

/// The tensors of the file: rows of a child and its parent; the nodes that are classes; where the row of each class ends, its
/// attributes and their values; the weights, a row for each feature with a column for each slot.
const EDGES: &str = "edges";
const CLASSES: &str = "classes";
const ROW_ENDS: &str = "class_feature_ends";
const ROW_ATTRIBUTES: &str = "class_feature_attributes";
const ROW_VALUES: &str = "class_feature_values";
const WEIGHTS: &str = "weights";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Written {
    Flat,
    Taxonomy,
    Features,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WrittenLoss {
    ZeroOne,
    Tree,
    Path,
    Matrix(#[serde(with = "exact::list")] Vec<f64>),
}

/// Everything but numbers of nodes and weights.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    task: TaskKind,
    nodes: Cow<'a, [String]>,
    architecture: Written,
    /// Of the architecture of the taxonomy, where it is not 1.
    #[serde(default = "one", skip_serializing_if = "is_one", with = "exact")]
    ancestor_weight: f64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<String>,
    features: u32,
    #[serde(with = "exact")]
    bias: f64,
    loss: WrittenLoss,
    formulation: Formulation,
    data_checksum: u32,
    summary: Cow<'a, Summary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<support::Written>,
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks it")]
fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn hierarchy(names: &[String], container: &mut Container<'_>) -> Result<Hierarchy> {
    let (shape, Data::U32(edges)) = container.take(EDGES)? else { return damaged("edges are not nodes") };
    let edges: Vec<(u32, u32)> = match &shape[..] {
        &[_, 2] => edges.as_chunks().0.iter().map(|&[child, parent]| (child, parent)).collect(),
        _ => return damaged("edges are not rows of two nodes"),
    };
    let mut seen = HashSet::with_capacity(names.len());
    let is_bad = |name: &&String| name.is_empty() || name.contains(char::is_whitespace);
    if let Some(name) = names.iter().find(|name| is_bad(name) || !seen.insert(name.as_str())) {
        return invalid(format!("node '{}' is no word, or there twice", name.escape_debug()));
    }
    let mut has_edge = vec![false; names.len()];
    for node in edges.iter().flat_map(|&(child, parent)| [child, parent]) {
        match has_edge.get_mut(node as usize) {
            Some(has_edge) => *has_edge = true,
            None => return invalid(format!("an edge of node {node}, of {}", names.len())),
        }
    }
    if has_edge.contains(&false) {
        return invalid("a node without an edge");
    }
    match Hierarchy::new(names, &edges) {
        Ok(hierarchy) if hierarchy.names() == names => Ok(hierarchy),
        Ok(_) => invalid("nodes are not in their order"),
        Err(flaw) => invalid(format!("no taxonomy: {flaw:?}")),
    }
}

fn class_features(attributes: Vec<String>, container: &mut Container<'_>) -> Result<ClassFeatures> {
    const WRONG: &str = "features of classes do not fit";
    let Data::U64(ends) = container.take(ROW_ENDS)?.1 else { return damaged(WRONG) };
    let ends = ends.into_owned();
    let Data::U32(numbers) = container.take(ROW_ATTRIBUTES)?.1 else { return damaged(WRONG) };
    let numbers = numbers.into_owned();
    let Data::F64(values) = container.take(ROW_VALUES)?.1 else { return damaged(WRONG) };
    let is_whole = ends.is_sorted() && numbers.len() == values.len() && ends.last() == Some(&(numbers.len() as u64));
    if !is_whole {
        return damaged(WRONG);
    }
    let mut start = 0;
    let rows = ends.iter().map(|&end| {
        let range = std::mem::replace(&mut start, end as usize)..end as usize;
        numbers[range.clone()].iter().copied().zip(values[range].iter().copied()).collect()
    });
    Ok(ClassFeatures { attributes, rows: rows.collect() })
}

/// The model in a container.
pub(super) fn model(mut container: Container<'static>) -> Result<TaxonomyModel> {
    let record: Record<'_> = match serde_json::from_str(&container.record) {
        Ok(record) => record,
        Err(e) => return damaged(e),
    };
    let hierarchy = Arc::new(hierarchy(&record.nodes, &mut container)?);
    let Data::U32(classes) = container.take(CLASSES)?.1 else { return damaged("classes are not nodes") };
    let classes = classes.into_owned();
    let architecture = match record.architecture {
        Written::Flat => Architecture::Flat,
        Written::Taxonomy => Architecture::Taxonomy(record.ancestor_weight),
        Written::Features => Architecture::Features(class_features(record.attributes, &mut container)?),
    };
    let loss = match record.loss {
        WrittenLoss::ZeroOne => NodeLoss::ZeroOne,
        WrittenLoss::Tree => NodeLoss::Tree,
        WrittenLoss::Path => NodeLoss::Path,
        WrittenLoss::Matrix(table) => match Costs::table(classes.len(), table) {
            Ok(costs) => NodeLoss::Matrix(costs),
            Err(e) => return invalid(e),
        },
    };
    let kernel = record.kernel.map(|kernel| support::expansion(kernel, &mut container)).transpose()?;
    let (weights, width) = match kernel {
        Some(_) => (Weights::default(), None),
        None => match container.take(WEIGHTS)? {
            (shape, Data::F64(weights)) if shape.len() == 2 => (weights.into_owned().into(), Some(shape[1])),
            _ => return damaged("weights are not a matrix"),
        },
    };
    let model = TaxonomyModel {
        hierarchy,
        classes,
        architecture,
        features: record.features,
        bias: record.bias,
        loss,
        formulation: record.formulation,
        data_checksum: record.data_checksum,
        summary: record.summary.into_owned(),
        weights,
        kernel,
    };
    model.check()?;
    match width.filter(|&width| width != model.slots().len()) {
        Some(width) => damaged(format!("rows of {width} weights for {} slots", model.slots().len())),
        None => Ok(model),
    }
}
