//! Training on partitions: what a worker holds, and the master, which asks Python for the cuts of all of them.

use std::sync::{Mutex, MutexGuard, PoisonError};

use maxmargin::model::Saved;
use maxmargin::tasks::partitioned::Partitions;
use maxmargin::{Error, Result};
use maxmargin_cli::embed::{self, Data, Facts, Group};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure::{raised, raised_of_samples};
use crate::hooks::Stop;
use crate::rows::Rows;
use crate::train::{Answer, labelled};

/// What dictionaries are to know of a partition.
#[pyfunction]
pub(crate) fn survey<'py>(
    py: Python<'py>,
    task: &str,
    options: Vec<String>,
    data: &[u8],
    name: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let found = py.detach(|| embed::survey(task, &options, data.to_vec(), name)).map_err(raised)?;
    Ok(PyBytes::new(py, &found))
}

/// The surveys of all partitions as a blank model.
#[pyfunction]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    task: &str,
    options: Vec<String>,
    surveys: Vec<Vec<u8>>,
    name: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let model = py.detach(|| embed::merge(task, &options, &surveys, name)).map_err(raised)?;
    Ok(PyBytes::new(py, &model))
}

/// A blank model for rows.
#[pyfunction]
pub(crate) fn blank<'py>(
    py: Python<'py>,
    task: &str,
    options: Vec<String>,
    rows: &Bound<'py, Rows>,
    names: Vec<String>,
    ids: PyReadonlyArray1<'py, u32>,
) -> PyResult<Bound<'py, PyBytes>> {
    let examples = labelled(rows, names, &ids, None)?;
    let model = py.detach(|| embed::blank(task, &options, examples)).map_err(raised_of_samples)?;
    Ok(PyBytes::new(py, &model))
}

fn loaded(bytes: &[u8]) -> PyResult<Saved> {
    Saved::from_bytes(bytes).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// A partition of the data, which answers for its examples.
#[pyclass(frozen)]
pub(crate) struct Partition {
    partition: Mutex<embed::Partition>,
    facts: Facts,
}

impl Partition {
    fn open(py: Python<'_>, work: impl FnOnce() -> embed::Result<embed::Partition> + Send) -> PyResult<Self> {
        let partition = py.detach(work).map_err(raised)?;
        Ok(Self { facts: partition.facts(), partition: Mutex::new(partition) })
    }

    fn locked(&self) -> MutexGuard<'_, embed::Partition> {
        self.partition.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Partition {
    /// Of text in the format of the task.
    #[staticmethod]
    fn of_text(
        py: Python<'_>,
        task: &str,
        options: Vec<String>,
        blank: &[u8],
        data: &[u8],
        name: &str,
    ) -> PyResult<Self> {
        let model = loaded(blank)?;
        Self::open(py, || embed::Partition::open(task, &options, model, Data::Text(data.to_vec()), name))
    }

    /// Of rows in memory.
    #[staticmethod]
    #[pyo3(signature = (task, options, blank, rows, names, ids, costs = None))]
    #[expect(clippy::too_many_arguments, reason = "as the interface has them")]
    fn of_rows<'py>(
        py: Python<'py>,
        task: &str,
        options: Vec<String>,
        blank: &[u8],
        rows: &Bound<'py, Rows>,
        names: Vec<String>,
        ids: PyReadonlyArray1<'py, u32>,
        costs: Option<PyReadonlyArray1<'py, f64>>,
    ) -> PyResult<Self> {
        let (model, examples) = (loaded(blank)?, labelled(rows, names, &ids, costs.as_ref())?);
        Self::open(py, || embed::Partition::open(task, &options, model, Data::Rows(examples), embed::NAME))
    }

    #[getter]
    fn examples(&self) -> usize {
        self.facts.examples
    }

    #[getter]
    fn dimension(&self) -> usize {
        self.facts.dimension
    }

    #[getter]
    fn max_loss(&self) -> f64 {
        self.facts.max_loss
    }

    #[getter]
    fn is_exact(&self) -> bool {
        self.facts.is_exact
    }

    #[getter]
    fn checksum(&self) -> u32 {
        self.facts.checksum
    }

    /// The sum of the cuts of its examples at w: left-hand side and right-hand side.
    #[pyo3(signature = (w, threads = 0))]
    fn cut<'py>(
        &self,
        py: Python<'py>,
        w: PyReadonlyArray1<'py, f64>,
        threads: usize,
    ) -> PyResult<(Bound<'py, PyArray1<f64>>, f64)> {
        let w = w.as_slice()?.to_vec();
        let (lhs, rhs) = py.detach(|| self.locked().cut(w, threads)).map_err(raised)?;
        Ok((lhs.into_pyarray(py), rhs))
    }

    /// The sum of the losses of the predictions at w.
    #[pyo3(signature = (w, threads = 0))]
    fn loss(&self, py: Python<'_>, w: PyReadonlyArray1<'_, f64>, threads: usize) -> PyResult<f64> {
        let w = w.as_slice()?.to_vec();
        py.detach(|| self.locked().loss(w, threads)).map_err(raised)
    }

    /// Frees the examples.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.locked().close());
    }
}

/// The partitions as Python has them.
struct Asked {
    cuts: Py<PyAny>,
    loss: Py<PyAny>,
    stop: Stop,
}

/// A dense vector, or one by its places and values.
#[derive(FromPyObject)]
enum Side<'py> {
    Dense(PyReadonlyArray1<'py, f64>),
    Sparse((PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, f64>)),
}

impl Side<'_> {
    fn dense(&self, dimension: usize) -> PyResult<Vec<f64>> {
        match self {
            Self::Dense(values) => Ok(values.as_slice()?.to_vec()),
            Self::Sparse((places, values)) => {
                let (places, values) = (places.as_slice()?, values.as_slice()?);
                let mut dense = vec![0.0; dimension];
                if places.len() != values.len() {
                    return Err(PyValueError::new_err("a cut with more places than values, or fewer"));
                }
                for (&at, &value) in places.iter().zip(values) {
                    let place = usize::try_from(at).ok().and_then(|at| dense.get_mut(at));
                    *place.ok_or_else(|| PyValueError::new_err(format!("a cut has a place {at}")))? = value;
                }
                Ok(dense)
            }
        }
    }
}

impl Asked {
    fn ask<A>(&self, work: impl FnOnce(Python<'_>) -> PyResult<A>) -> Result<A> {
        // It comes out as it is.
        Python::attach(work).map_err(|error| {
            self.stop.raise(error);
            Error::Task("the partitions raised an exception".into())
        })
    }
}

impl Partitions for Asked {
    fn cuts(&self, w: &[f64]) -> Result<Vec<(Vec<f64>, f64)>> {
        self.ask(|py| {
            let answer = self.cuts.call1(py, (PyArray1::from_slice(py, w),))?;
            let answer: Vec<(Side<'_>, f64)> = answer.extract(py)?;
            answer.iter().map(|(lhs, rhs)| Ok((lhs.dense(w.len())?, *rhs))).collect()
        })
    }

    fn loss(&self, w: &[f64]) -> Result<f64> {
        self.ask(|py| self.loss.call1(py, (PyArray1::from_slice(py, w),))?.extract(py))
    }
}

/// Trains on groups of partitions, and fills the blank model. `groups`: their examples, largest losses, exactness, checksums.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "as the interface has them")]
pub(crate) fn train_partitions<'py>(
    py: Python<'py>,
    task: &str,
    options: Vec<String>,
    blank: &[u8],
    groups: Vec<(usize, f64, bool, u32)>,
    ask: Py<PyAny>,
    loss: Py<PyAny>,
    on_round: Option<Py<PyAny>>,
) -> PyResult<Answer<'py>> {
    let (stop, model) = (Stop::default(), loaded(blank)?);
    let group = |(examples, max_loss, is_exact, checksum)| Group { examples, max_loss, is_exact, checksum };
    let groups: Vec<Group> = groups.into_iter().map(group).collect();
    let asked = Asked { cuts: ask, loss, stop: stop.clone() };
    let trained = py.detach(|| embed::train_partitions(task, &options, model, &groups, &asked, stop.hooks(on_round)));
    if let Some(error) = stop.take() {
        return Err(error);
    }
    let trained = trained.map_err(raised)?;
    Ok((PyBytes::new(py, &trained.model), trained.summary, trained.notes))
}
