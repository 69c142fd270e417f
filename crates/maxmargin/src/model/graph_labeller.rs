//! A trained model of factor graphs: what its graphs are made of, and the weights.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::container::{Container, Data, Tensor, damaged, to_json};
use super::{Summary, TaskKind, check_formulation, check_weights};
use crate::error::{Result, invalid};
use crate::features::Block;
use crate::problem::Formulation;
use crate::task::Task;
use crate::tasks::factor_graph::{FactorGraph, Shape};
use crate::weights::Weights;

/// All that labelling graphs needs, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct GraphLabeller {
    /// What graphs are made of.
    pub shape: Shape,
    /// The problem that training solved.
    pub formulation: Formulation,
    /// CRC-32 of the bytes of the training data.
    pub data_checksum: u32,
    /// What training found.
    pub summary: Summary,
    /// The weights, as [`FactorGraph`] lays them out: for each size of a domain, then for each template.
    pub weights: Weights,
}

impl GraphLabeller {
    /// The task that the model was trained for.
    pub fn task(&self) -> Result<FactorGraph> {
        FactorGraph::new(self.shape.clone())
    }

    /// Do the parts fit together? Saving and loading check it; whoever builds a model by hand may.
    pub fn check(&self) -> Result<()> {
        let Shape { domains, templates, .. } = &self.shape;
        if domains.is_empty() || domains[0] == 0 || !domains.is_sorted_by(|a, b| a < b) {
            return invalid("sizes of domains that do not ascend from 1");
        }
        if !templates.is_sorted_by(|a, b| a.name < b.name) {
            return invalid("templates that are not in the order of their names");
        }
        let is_known = |domain: &u32| domains.binary_search(domain).is_ok();
        if let Some(template) = templates.iter().find(|t| t.domains.is_empty() || !t.domains.iter().all(is_known)) {
            let name = template.name.escape_debug();
            return invalid(format!("template '{name}' joins variables that there are not"));
        }
        check_formulation(&self.formulation)?;
        check_weights(self.task(), "the shape", &self.weights)
    }

    /// The weights laid out for graphs of another shape, zeros for what this model does not know: where a warm start on other
    /// data begins. Domains are found by their size and templates by their name; features that the other shape lacks are left
    /// out. None where the two have nothing in common, or a template of the same name joins other variables.
    pub fn weights_over(&self, task: &FactorGraph) -> Option<Weights> {
        let (own, shape) = (self.task().ok()?, task.shape());
        let mut w = Weights::zeros(task.dimension());
        let mut is_any = false;
        let mut copy = |from: Block, to: Block| {
            let length = from.len().min(to.len()) as usize;
            let source = &self.weights.as_slice()[from.base as usize..][..length];
            w.as_mut_slice()[to.base as usize..][..length].copy_from_slice(source);
            is_any |= length > 0;
        };
        for (at, domain) in shape.domains.iter().enumerate() {
            if let Ok(from) = self.shape.domains.binary_search(domain) {
                copy(own.blocks()[from], task.blocks()[at]);
            }
        }
        for (at, template) in shape.templates.iter().enumerate() {
            let Some(from) = self.shape.template(&template.name) else { continue };
            let theirs = &self.shape.templates[from];
            if theirs.domains != template.domains || theirs.features.is_some() != template.features.is_some() {
                return None;
            }
            copy(own.blocks()[self.shape.domains.len() + from], task.blocks()[shape.domains.len() + at]);
        }
        (is_any || w.is_empty()).then_some(w)
    }

    pub(super) fn container(&self) -> Result<Container<'_>> {
        let record = Record {
            task: TaskKind::Graph,
            shape: Cow::Borrowed(&self.shape),
            formulation: self.formulation,
            data_checksum: self.data_checksum,
            summary: Cow::Borrowed(&self.summary),
        };
        let weights = Tensor::list(Data::F64(Cow::Borrowed(self.weights.as_slice())));
        Ok(Container { record: to_json(&record)?, tensors: BTreeMap::from([(WEIGHTS.to_owned(), weights)]) })
    }
}

/// The one tensor of the file.
const WEIGHTS: &str = "weights";

/// Everything but the weights.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    task: TaskKind,
    shape: Cow<'a, Shape>,
    formulation: Formulation,
    data_checksum: u32,
    summary: Cow<'a, Summary>,
}

/// The model in a container.
pub(super) fn model(mut container: Container<'static>) -> Result<GraphLabeller> {
    let record: Record<'_> = match serde_json::from_str(&container.record) {
        Ok(record) => record,
        Err(e) => return damaged(e),
    };
    let Data::F64(weights) = container.take(WEIGHTS)?.1 else { return damaged("weights are not numbers") };
    let labeller = GraphLabeller {
        shape: record.shape.into_owned(),
        formulation: record.formulation,
        data_checksum: record.data_checksum,
        summary: record.summary.into_owned(),
        weights: weights.into_owned().into(),
    };
    labeller.check()?;
    Ok(labeller)
}
