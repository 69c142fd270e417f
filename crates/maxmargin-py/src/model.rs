//! Model files in memory.

use maxmargin::model::Saved;
use maxmargin_cli::embed;
use numpy::{IntoPyArray, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure::{raised, raised_of_text};
use crate::rows::Rows;

/// A model file of any task.
#[pyclass(frozen)]
pub(crate) struct Model {
    saved: Saved,
}

#[pymethods]
impl Model {
    #[new]
    fn new(data: &[u8]) -> PyResult<Self> {
        let saved = Saved::from_bytes(data).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { saved })
    }

    #[getter]
    fn task(&self) -> String {
        self.saved.task().to_string()
    }

    #[getter]
    fn labels(&self) -> Vec<String> {
        match &self.saved {
            Saved::Classifier(model) => model.labels.clone(),
            Saved::Taxonomy(model) => model.labels(),
            Saved::Labeller(model) => model.labels.clone(),
            Saved::Tagger(model) => model.vocabulary.tags.clone(),
            Saved::Parser(_) | Saved::GraphLabeller(_) | Saved::PairAligner(_) => Vec::new(),
        }
    }

    #[getter]
    fn features(&self) -> u32 {
        match &self.saved {
            Saved::Classifier(model) => model.features,
            Saved::Taxonomy(model) => model.features,
            Saved::Labeller(model) => model.features,
            Saved::Tagger(_) | Saved::Parser(_) | Saved::GraphLabeller(_) | Saved::PairAligner(_) => 0,
        }
    }

    fn scores<'py>(
        &self,
        py: Python<'py>,
        rows: &Bound<'py, Rows>,
        threads: usize,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = rows.get();
        let (n, matrix) = (rows.len(), rows.take()?);
        let (scores, labels) = py.detach(|| embed::scores(&self.saved, matrix, threads)).map_err(raised)?;
        scores.into_pyarray(py).reshape([n, labels])
    }

    fn sets(&self, py: Python<'_>, rows: &Bound<'_, Rows>, threshold: f64, threads: usize) -> PyResult<Vec<Vec<u32>>> {
        let matrix = rows.get().take()?;
        py.detach(|| embed::sets(&self.saved, &matrix, threshold, threads)).map_err(raised)
    }

    fn nodes(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, Rows>,
        depth_threshold: Option<f64>,
        threads: usize,
    ) -> PyResult<Vec<String>> {
        let matrix = rows.get().take()?;
        py.detach(|| embed::nodes(&self.saved, matrix, depth_threshold, threads)).map_err(raised)
    }

    fn ask<'py>(
        &self,
        py: Python<'py>,
        command: &str,
        options: Vec<String>,
        text: &[u8],
    ) -> PyResult<(Bound<'py, PyBytes>, Vec<String>)> {
        let written = py.detach(|| embed::ask(&self.saved, command, &options, text.to_vec()));
        let written = written.map_err(raised_of_text(&self.task()))?;
        Ok((PyBytes::new(py, &written.output), written.notes))
    }
}
