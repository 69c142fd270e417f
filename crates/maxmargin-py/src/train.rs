//! `maxmargin train`, on text or on rows.

use maxmargin::data::svmlight::{Labelled, Labels};
use maxmargin_cli::embed::{self, Data, Failure, Trained};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::attributes::assembled;
use crate::failure::{raised, raised_of_samples, raised_of_text};
use crate::hooks::Stop;
use crate::rows::Rows;

/// Model file, summary, notes.
pub(crate) type Answer<'py> = (Bound<'py, PyBytes>, String, Vec<String>);

#[pyfunction]
pub(crate) fn train_text<'py>(
    py: Python<'py>,
    task: &str,
    options: Vec<String>,
    text: &[u8],
    weights: Option<PyReadonlyArray1<'py, f64>>,
    on_round: Option<Py<PyAny>>,
) -> PyResult<Answer<'py>> {
    let raised = raised_of_text(task);
    let training = Training { task, options, weights: checked(weights.as_ref())?, raised };
    training.of(py, Data::Text(text.to_vec()), on_round)
}

/// Tags of sentences, which are Python objects. `threads`: how many put them together; 0 is one for each core.
#[pyfunction]
pub(crate) fn train_sentences<'py>(
    py: Python<'py>,
    options: Vec<String>,
    sequences: &Bound<'py, PyAny>,
    tags: &Bound<'py, PyAny>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    on_round: Option<Py<PyAny>>,
    threads: usize,
) -> PyResult<Answer<'py>> {
    let training = Training { task: "tag", options, weights: checked(weights.as_ref())?, raised };
    training.of(py, Data::Sentences(Box::new(assembled(sequences, tags, threads)?)), on_round)
}

/// How much examples count.
fn checked(weights: Option<&PyReadonlyArray1<'_, f64>>) -> PyResult<Option<Vec<f64>>> {
    let Some(weights) = weights else { return Ok(None) };
    let weights = weights.as_slice()?.to_vec();
    match weights.iter().position(|weight| !(*weight > 0.0 && weight.is_finite())) {
        Some(i) => Err(PyValueError::new_err(format!("sample {i}: its weight must be positive and finite"))),
        None => Ok(Some(weights)),
    }
}

#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "as the interface has them")]
pub(crate) fn train_rows<'py>(
    py: Python<'py>,
    task: &str,
    options: Vec<String>,
    rows: &Bound<'py, Rows>,
    names: Vec<String>,
    ids: PyReadonlyArray1<'py, u32>,
    costs: Option<PyReadonlyArray1<'py, f64>>,
    on_round: Option<Py<PyAny>>,
) -> PyResult<Answer<'py>> {
    let examples = labelled(rows, names, &ids, costs.as_ref())?;
    Training { task, options, weights: None, raised: raised_of_samples }.of(py, Data::Rows(examples), on_round)
}

/// Rows with their labels, checked.
pub(crate) fn labelled(
    rows: &Bound<'_, Rows>,
    names: Vec<String>,
    ids: &PyReadonlyArray1<'_, u32>,
    costs: Option<&PyReadonlyArray1<'_, f64>>,
) -> PyResult<Labelled> {
    let (rows, ids) = (rows.get(), ids.as_slice()?.to_vec());
    let costs = checked(costs)?;
    let n = rows.len();
    if ids.len() != n || costs.as_ref().is_some_and(|costs| costs.len() != n) {
        return Err(PyValueError::new_err(format!("{n} rows need as many labels and weights")));
    }
    if let Some(i) = ids.iter().position(|&id| id != Labels::NONE && id as usize >= names.len()) {
        return Err(PyValueError::new_err(format!("sample {i}: there is no label {}", ids[i])));
    }
    let mut digest = crc32fast::Hasher::new_with_initial(rows.checksum);
    for name in &names {
        digest.update(name.as_bytes());
    }
    for id in &ids {
        digest.update(&id.to_le_bytes());
    }
    for cost in costs.iter().flatten() {
        digest.update(&cost.to_le_bytes());
    }
    Ok(Labelled::new(Labels { names, ids }, rows.take()?, costs, digest.finalize()))
}

struct Training<'t> {
    task: &'t str,
    options: Vec<String>,
    weights: Option<Vec<f64>>,
    raised: fn(Failure) -> PyErr,
}

impl Training<'_> {
    fn of(self, py: Python<'_>, data: Data, on_round: Option<Py<PyAny>>) -> PyResult<Answer<'_>> {
        let Self { task, options, weights, raised } = self;
        let stop = Stop::default();
        let trained = py.detach(|| embed::train(task, &options, data, weights, stop.hooks(on_round)));
        if let Some(error) = stop.take() {
            return Err(error);
        }
        let Trained { model, summary, notes } = trained.map_err(raised)?;
        Ok((PyBytes::new(py, &model), summary, notes))
    }
}
