//! A trained model of label sets: the names of its labels, which pairs of them have a weight, and the weights.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

use super::container::{Container, Data, Tensor, damaged, to_json};
use super::{Summary, TaskKind, check_formulation, check_weights};
use crate::error::{Error, Result, invalid};
use crate::problem::Formulation;
use crate::sparse::SparseView;
use crate::tasks::multilabel::{Multilabel, Pairs, SetLoss, SetScratch};
use crate::weights::Weights;

/// All that predicting sets needs, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Labeller {
    /// The words of the labels, in the order of their numbers.
    pub labels: Vec<String>,
    /// Number of input features, without the constant one.
    pub features: u32,
    /// Value of the constant feature, the last row of the weights; 0 where there is none. Taken as f32, as all features are.
    pub bias: f64,
    /// The pairs of labels that have a weight.
    pub pairs: Pairs,
    /// What a wrong set costs.
    pub loss: SetLoss,
    /// The problem that training solved.
    pub formulation: Formulation,
    /// CRC-32 of the bytes of the training data.
    pub data_checksum: u32,
    /// What training found.
    pub summary: Summary,
    /// The weights, as [`Multilabel`] lays them out: a row for each feature, the constant one last, then one for each pair.
    pub weights: Weights,
}

impl Labeller {
    /// The task that the model was trained for. Its features are those of the data, and the constant one where there is one.
    pub fn task(&self) -> Result<Multilabel> {
        let constant = u32::from(self.bias != 0.0);
        let Some(rows) = self.features.checked_add(constant) else {
            return Err(Error::setting("features", "and a constant one are too many"));
        };
        Multilabel::new(rows, self.labels.len() as u32, self.pairs.clone(), self.loss)
    }

    /// Do the parts fit together? Saving and loading check it; whoever builds a model by hand may.
    pub fn check(&self) -> Result<()> {
        let mut seen = HashSet::with_capacity(self.labels.len());
        let is_bad = |label: &&String| {
            label.is_empty() || label.contains([',', ':', '#']) || label.contains(char::is_whitespace)
        };
        if let Some(label) = self.labels.iter().find(|label| is_bad(label) || !seen.insert(label.as_str())) {
            return invalid(format!("label '{}' is no word, or there twice", label.escape_debug()));
        }
        if u32::try_from(self.labels.len()).is_err() {
            return invalid(format!("{} labels", self.labels.len()));
        }
        check_formulation(&self.formulation)?;
        let constant = self.bias as f32;
        if !constant.is_finite() || (constant == 0.0) != (self.bias == 0.0) {
            return invalid(format!("bias is {}, not a number that fits into f32", self.bias));
        }
        check_weights(self.task(), "the task", &self.weights)
    }

    /// The weights laid out over `features` input features and these pairs, zeros for those that the model does not know:
    /// where a warm start on other data begins.
    ///
    /// # Panics
    /// If the model has more features than that, or the pairs are of another number of labels.
    pub fn weights_over(&self, features: u32, pairs: &Pairs) -> Weights {
        assert!(features >= self.features, "the model has {} features", self.features);
        assert_eq!(pairs.labels(), self.pairs.labels(), "the same labels");
        let labels = self.labels.len();
        let (rows, of_pairs) = self.parts();
        let (known, constant) = rows.split_at(self.features as usize * labels);
        let mut w = known.to_vec();
        w.resize(features as usize * labels, 0.0);
        w.extend(constant);
        let base = w.len();
        w.resize(base + pairs.len(), 0.0);
        pairs.each(|number, a, b| {
            if let Some(own) = self.pairs.number(a, b) {
                w[base + number] = of_pairs[own];
            }
        });
        Weights::from(w)
    }

    /// The weights of the rows, features and the constant one, and those of the pairs.
    pub fn parts(&self) -> (&[f64], &[f64]) {
        let all = self.weights.as_slice();
        all.split_at(all.len() - self.pairs.len())
    }

    /// What predicts with this model.
    pub fn predictor(&self) -> Result<SetPredictor<'_>> {
        Ok(SetPredictor {
            task: self.task()?,
            weights: &self.weights,
            features: self.features,
            constant: self.bias as f32,
        })
    }

    pub(super) fn container(&self) -> Result<Container<'_>> {
        let pairs = match &self.pairs {
            pairs if pairs.is_all() => Written::All,
            pairs if pairs.is_empty() => Written::None,
            _ => Written::Listed,
        };
        let record = Record {
            task: TaskKind::Multilabel,
            labels: Cow::Borrowed(&self.labels),
            features: self.features,
            bias: self.bias,
            pairs,
            loss: self.loss,
            formulation: self.formulation,
            data_checksum: self.data_checksum,
            summary: Cow::Borrowed(&self.summary),
        };
        let (rows, of_pairs) = self.parts();
        let width = self.labels.len();
        let weights = Tensor { shape: vec![rows.len() / width, width], data: Data::F64(Cow::Borrowed(rows)) };
        let mut tensors = BTreeMap::from([(WEIGHTS.to_owned(), weights)]);
        if pairs != Written::None {
            tensors.insert(PAIR_WEIGHTS.to_owned(), Tensor::list(Data::F64(Cow::Borrowed(of_pairs))));
        }
        if pairs == Written::Listed {
            let mut numbers = Vec::with_capacity(2 * self.pairs.len());
            self.pairs.each(|_, a, b| numbers.extend([a, b]));
            let shape = vec![self.pairs.len(), 2];
            tensors.insert(PAIRS.to_owned(), Tensor { shape, data: Data::U32(Cow::Owned(numbers)) });
        }
        Ok(Container { record: to_json(&record)?, tensors })
    }
}

/// Predicts sets, on rows without the constant feature.
#[derive(Debug)]
pub struct SetPredictor<'m> {
    task: Multilabel,
    weights: &'m Weights,
    features: u32,
    /// 0: none.
    constant: f32,
}

/// The memory of a prediction.
#[derive(Debug, Default)]
pub struct SetBuffers {
    indices: Vec<u32>,
    values: Vec<f32>,
    scratch: SetScratch,
    /// By label: what it gains, or would gain, beside the others of the set.
    pub gains: Vec<f64>,
}

impl SetBuffers {
    /// Of the last prediction: is it proven that no set has a higher score?
    pub fn is_proven(&self) -> bool {
        self.scratch.is_proven()
    }
}

impl SetPredictor<'_> {
    /// The best set where every label has to gain more than `threshold`, in the numbers of its labels, ascending; what each label gains
    /// is left in `buffers.gains`. Features that the model does not know are left out.
    pub fn predict(&self, x: SparseView<'_>, threshold: f64, buffers: &mut SetBuffers, y: &mut Vec<u32>) {
        let SetBuffers { indices, values, scratch, gains } = buffers;
        let mut x = x.below(self.features);
        if self.constant != 0.0 {
            indices.clear();
            values.clear();
            indices.extend_from_slice(x.indices());
            values.extend_from_slice(x.values());
            indices.push(self.features);
            values.push(self.constant);
            x = SparseView::new(indices, values);
        }
        self.task.predict(self.weights, x, threshold, scratch, y, gains);
    }

    /// The task.
    pub fn task(&self) -> &Multilabel {
        &self.task
    }
}

/// The tensors of the file: a row for each feature with a column for each label; rows of two labels; a weight for each of these.
const WEIGHTS: &str = "weights";
const PAIRS: &str = "pairs";
const PAIR_WEIGHTS: &str = "pair_weights";

/// Which pairs there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Written {
    None,
    All,
    Listed,
}

/// Everything but pairs and weights.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    task: TaskKind,
    labels: Cow<'a, [String]>,
    features: u32,
    #[serde(with = "super::exact")]
    bias: f64,
    pairs: Written,
    loss: SetLoss,
    formulation: Formulation,
    data_checksum: u32,
    summary: Cow<'a, Summary>,
}

/// The model in a container.
pub(super) fn model(mut container: Container<'static>) -> Result<Labeller> {
    let record: Record<'_> = match serde_json::from_str(&container.record) {
        Ok(record) => record,
        Err(e) => return damaged(e),
    };
    // As many as there are names: memory is taken for each.
    let Ok(labels) = u32::try_from(record.labels.len()) else { return damaged("too many labels") };
    let pairs = match record.pairs {
        Written::None => Ok(Pairs::none(labels)),
        Written::All => Pairs::all(labels),
        Written::Listed => match container.take(PAIRS)? {
            (shape, Data::U32(numbers)) if shape.len() == 2 && shape[1] == 2 => {
                Pairs::listed(labels, numbers.as_chunks().0.iter().map(|&[a, b]| (a, b)).collect())
            }
            _ => return damaged("pairs are not rows of two labels"),
        },
    };
    let pairs = match pairs {
        Ok(pairs) => pairs,
        Err(e) => return invalid(e),
    };
    let (shape, data) = container.take(WEIGHTS)?;
    let (&[_, width], Data::F64(rows)) = (&shape[..], data) else { return damaged("weights are not a matrix") };
    if width != record.labels.len() {
        return damaged(format!("rows of {width} weights for {} labels", record.labels.len()));
    }
    let mut weights = rows.into_owned();
    if record.pairs != Written::None {
        let Data::F64(of_pairs) = container.take(PAIR_WEIGHTS)?.1 else { return damaged("weights are not numbers") };
        if of_pairs.len() != pairs.len() {
            return damaged(format!("{} weights of {} pairs", of_pairs.len(), pairs.len()));
        }
        weights.extend_from_slice(&of_pairs);
    }
    let labeller = Labeller {
        labels: record.labels.into_owned(),
        features: record.features,
        bias: record.bias,
        pairs,
        loss: record.loss,
        formulation: record.formulation,
        data_checksum: record.data_checksum,
        summary: record.summary.into_owned(),
        weights: weights.into(),
    };
    labeller.check()?;
    Ok(labeller)
}
