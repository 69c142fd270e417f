//! The module `maxmargin._native`: what the Python package asks of the library. Its interface is in
//! `python/maxmargin/_native.pyi`.

#![expect(clippy::needless_pass_by_value, reason = "what Python gives is owned")]

mod attributes;
mod failure;
mod hooks;
mod model;
mod partitions;
mod rows;
mod task;
mod train;
mod words;

#[pyo3::pymodule]
mod _native {
    use maxmargin_cli::embed;
    use pyo3::prelude::*;
    use pyo3::types::PyBytes;

    #[pymodule_export]
    use crate::attributes::crfsuite_text;
    use crate::failure::raised;
    #[pymodule_export]
    use crate::model::Model;
    #[pymodule_export]
    use crate::partitions::{Partition, blank, merge, survey, train_partitions};
    #[pymodule_export]
    use crate::rows::Rows;
    #[pymodule_export]
    use crate::task::train_task;
    #[pymodule_export]
    use crate::train::{train_rows, train_sentences, train_text};
    #[pymodule_export]
    use crate::words::distinct_words;

    /// `maxmargin generate`
    #[pyfunction]
    fn generate<'py>(py: Python<'py>, task: &str, options: Vec<String>) -> PyResult<Bound<'py, PyBytes>> {
        let written = py.detach(|| embed::generate(task, &options)).map_err(raised)?;
        Ok(PyBytes::new(py, &written.output))
    }

    /// `maxmargin features`
    #[pyfunction]
    fn features<'py>(py: Python<'py>, options: Vec<String>, text: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let written = py.detach(|| embed::features(&options, text.to_vec())).map_err(raised)?;
        Ok(PyBytes::new(py, &written.output))
    }

    /// The options of a command, as JSON.
    #[pyfunction]
    fn options(command: &str) -> String {
        serde_json::to_string(&embed::options(command)).expect("plain structs become JSON")
    }

    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }
}
