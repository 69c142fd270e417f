//! A classifier in its file: the [container](super::container) with one tensor, `weights`. Rows are features, the constant
//! one last; columns are slots (1 for two classes, else one a class). With a kernel there are [support](super::support)
//! vectors instead.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::container::{Container, Data, Tensor, damaged, to_json};
use super::{Loss, Model, Summary, TaskKind, exact, support};
use crate::error::Result;
use crate::problem::{Formulation, Penalty, Rescaling};
use crate::weights::Weights;

/// Everything but the weights.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    task: TaskKind,
    labels: Cow<'a, [String]>,
    features: u32,
    #[serde(with = "exact")]
    bias: f64,
    loss: Cow<'a, Loss>,
    #[serde(with = "exact")]
    loss_scale: f64,
    #[serde(with = "exact")]
    c: f64,
    rescaling: Rescaling,
    penalty: Penalty,
    data_checksum: u32,
    summary: Cow<'a, Summary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kernel: Option<support::Written>,
}

/// What goes into the file.
pub(super) fn container(model: &Model) -> Result<Container<'_>> {
    let Formulation { c, rescaling, penalty, loss_scale } = model.formulation;
    let record = Record {
        task: model.task,
        labels: Cow::Borrowed(&model.labels),
        features: model.features,
        bias: model.bias,
        loss: Cow::Borrowed(&model.loss),
        loss_scale,
        c,
        rescaling,
        penalty,
        data_checksum: model.data_checksum,
        summary: Cow::Borrowed(&model.summary),
        kernel: model.kernel.as_ref().map(support::Written::of),
    };
    if let Some(expansion) = &model.kernel {
        return Ok(Container { record: to_json(&record)?, tensors: support::tensors(expansion).collect() });
    }
    let width = model.slots();
    let weights = Tensor {
        shape: vec![model.weights.len() / width, width],
        data: Data::F64(Cow::Borrowed(model.weights.as_slice())),
    };
    Ok(Container { record: to_json(&record)?, tensors: BTreeMap::from([("weights".to_owned(), weights)]) })
}

/// The model in a container.
pub(super) fn model(mut container: Container<'_>) -> Result<Model> {
    let record: Record<'_> = match serde_json::from_str(&container.record) {
        Ok(record) => record,
        Err(e) => return damaged(e),
    };
    let model = Model {
        task: record.task,
        labels: record.labels.into_owned(),
        features: record.features,
        bias: record.bias,
        loss: record.loss.into_owned(),
        formulation: Formulation {
            c: record.c,
            rescaling: record.rescaling,
            penalty: record.penalty,
            loss_scale: record.loss_scale,
        },
        data_checksum: record.data_checksum,
        summary: record.summary.into_owned(),
        weights: Weights::default(),
        kernel: None,
    };
    if let Some(kernel) = record.kernel {
        let model = Model { kernel: Some(support::expansion(kernel, &mut container)?), ..model };
        model.check()?;
        return Ok(model);
    }
    let (shape, data) = container.take("weights")?;
    let &[_, width] = &shape[..] else { return damaged("weights are not a matrix") };
    let Data::F64(weights) = data else { return damaged("the header contradicts itself") };
    let model = Model { weights: weights.into_owned().into(), ..model };
    model.check()?;
    if width != model.slots() {
        return damaged(format!("rows of {width} weights for {} labels", model.labels.len()));
    }
    Ok(model)
}
