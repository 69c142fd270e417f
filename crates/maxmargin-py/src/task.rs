//! A task that is written in Python.
//!
//! The library sees outputs as numbers. What Python has found for an example is kept, with its features and its loss, so that
//! Python is asked for these once, and everything else happens here. All calls come from one thread: threads that fight for the
//! interpreter are slower than one.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use maxmargin::features::{Block, Sink};
use maxmargin::problem;
use maxmargin::sparse::SparseView;
use maxmargin::task::{LossTerm, Task};
use maxmargin::weights::Weights;
use maxmargin::{Error, Result};
use maxmargin_cli::embed;
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use serde::{Deserialize, Serialize};

use crate::failure::raised;
use crate::hooks::Stop;

/// The number of an output among all that were found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Output(u32);

/// An output of an example.
struct Known {
    object: Py<PyAny>,
    indices: Vec<u32>,
    values: Vec<f32>,
    /// Against the truth of the example.
    loss: f64,
}

/// Indices and values of a sparse vector.
type Sparse = (Vec<u32>, Vec<f32>);

#[derive(FromPyObject)]
enum Indices<'py> {
    Long(PyReadonlyArray1<'py, i64>),
    Short(PyReadonlyArray1<'py, i32>),
    Unsigned(PyReadonlyArray1<'py, u32>),
}

#[derive(FromPyObject)]
enum Values<'py> {
    Double(PyReadonlyArray1<'py, f64>),
    Single(PyReadonlyArray1<'py, f32>),
}

/// All outputs that were found; the first n are the truths.
#[derive(Default)]
struct Found {
    outputs: Vec<Known>,
    /// By example.
    of: Vec<Vec<u32>>,
}

struct PythonTask {
    /// Has `features`, `psi`, `loss`, `argmax` and `max_loss`.
    adapter: Py<PyAny>,
    /// Are features pairs of indices and values?
    has_pairs: bool,
    /// What `argmax` is given as w.
    w: Py<PyArray1<f64>>,
    block: [Block; 1],
    max_losses: Vec<f64>,
    found: RwLock<Found>,
    stop: Stop,
}

impl PythonTask {
    fn found(&self) -> RwLockReadGuard<'_, Found> {
        self.found.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// An exception of the user's code: it comes out as it is.
    fn failed(&self, error: PyErr) -> Error {
        self.stop.raise(error);
        Error::Task("the task raised an exception".into())
    }

    /// What Python says of an output of example i.
    fn known(&self, py: Python<'_>, i: usize, object: Py<PyAny>, is_truth: bool) -> PyResult<Known> {
        let adapter = self.adapter.bind(py);
        let features = adapter.call_method1("features", (i, &object))?;
        let plain = if self.has_pairs { self.plain(&features) } else { None };
        let (indices, values) = match plain {
            Some(sparse) => sparse,
            None => self.psi(&adapter.call_method1("psi", (i, &object, features))?, i)?,
        };
        let loss = if is_truth { 0.0 } else { adapter.call_method1("loss", (i, &object))?.extract()? };
        if !(loss >= 0.0 && f64::is_finite(loss)) {
            return Err(PyValueError::new_err(format!(
                "example {i}: the loss is {loss}; it must be finite and not negative"
            )));
        }
        Ok(Known { object, indices, values, loss })
    }

    /// A pair of arrays that is a sparse vector as it stands: most are, and Python would take long to see it.
    fn plain(&self, features: &Bound<'_, PyAny>) -> Option<Sparse> {
        let (indices, values): (Indices<'_>, Values<'_>) = features.extract().ok()?;
        let indices = match &indices {
            Indices::Long(indices) => self.ascending(indices.as_slice().ok()?),
            Indices::Short(indices) => self.ascending(indices.as_slice().ok()?),
            Indices::Unsigned(indices) => self.ascending(indices.as_slice().ok()?),
        }?;
        let values: Vec<f32> = match &values {
            Values::Double(values) => values.as_slice().ok()?.iter().map(|&x| x as f32).collect(),
            Values::Single(values) => values.as_slice().ok()?.to_vec(),
        };
        (indices.len() == values.len() && values.iter().all(|x| x.is_finite())).then_some((indices, values))
    }

    /// Indices that ascend and lie within w.
    fn ascending<I: Copy + Into<i64>>(&self, indices: &[I]) -> Option<Vec<u32>> {
        let (mut last, rows) = (-1, i64::from(self.block[0].rows));
        let mut found = Vec::with_capacity(indices.len());
        for &index in indices {
            let index: i64 = index.into();
            if index <= last || index >= rows {
                return None;
            }
            found.push(index as u32);
            last = index;
        }
        Some(found)
    }

    /// What Python has made of features of another kind.
    fn psi(&self, psi: &Bound<'_, PyAny>, i: usize) -> PyResult<Sparse> {
        let (indices, values): (PyReadonlyArray1<'_, u32>, PyReadonlyArray1<'_, f64>) = psi.extract()?;
        let (indices, values) = (self.ascending(indices.as_slice()?), values.as_slice()?);
        let Some(indices) = indices.filter(|indices| indices.len() == values.len()) else {
            let what = format!("example {i}: features are not a valid sparse vector of size {}", self.block[0].rows);
            return Err(PyValueError::new_err(what));
        };
        // Python has seen that they are finite.
        if let Some(value) = values.iter().find(|&&x| !(x as f32).is_finite()) {
            let what = format!("features of sample {i}: {value:e} is too large for 32 bits; scale the features");
            return Err(PyValueError::new_err(what));
        }
        Ok((indices, values.iter().map(|&x| x as f32).collect()))
    }

    /// The number of an output that Python has found.
    fn number(&self, py: Python<'_>, i: usize, object: Py<PyAny>) -> PyResult<Output> {
        {
            let found = self.found();
            // The latest first: outputs come again and again.
            for &number in found.of[i].iter().rev() {
                let other = &found.outputs[number as usize].object;
                if other.is(&object) || other.bind(py).eq(object.bind(py))? {
                    return Ok(Output(number));
                }
            }
        }
        let known = self.known(py, i, object, false)?;
        let mut found = self.found.write().unwrap_or_else(PoisonError::into_inner);
        let number = found.outputs.len() as u32;
        found.outputs.push(known);
        found.of[i].push(number);
        Ok(Output(number))
    }

    fn ask(&self, py: Python<'_>, w: &Weights, i: usize, weight: Option<f64>) -> PyResult<Output> {
        let own = self.w.bind(py);
        {
            let mut own = own.try_readwrite().map_err(|e| PyValueError::new_err(e.to_string()))?;
            let own = own.as_slice_mut()?;
            own.copy_from_slice(w.as_slice());
            // max <w, psi> + weight D is max <w / weight, psi> + D.
            if let Some(weight) = weight.filter(|weight| *weight != 1.0) {
                for w in own {
                    *w /= weight;
                }
            }
        }
        let truth = weight.map(|_| self.found().outputs[i].object.clone_ref(py));
        let object = self.adapter.bind(py).call_method1("argmax", (i, own, truth))?;
        self.number(py, i, object.unbind())
    }
}

impl Task for PythonTask {
    type Input<'a> = usize;
    type Output = Output;
    type Scratch = ();

    fn blocks(&self) -> &[Block] {
        &self.block
    }

    fn features(&self, _: usize, y: &Output, sink: &mut impl Sink) -> Result<()> {
        let found = self.found();
        let known = &found.outputs[y.0 as usize];
        sink.part(self.block[0], 0, SparseView::new(&known.indices, &known.values), 1.0);
        Ok(())
    }

    fn loss(&self, _: &Output, y: &Output) -> f64 {
        self.found().outputs[y.0 as usize].loss
    }

    fn max_loss(&self, truth: &Output) -> f64 {
        self.max_losses[truth.0 as usize]
    }

    fn argmax(
        &self,
        w: &Weights,
        i: usize,
        loss: Option<LossTerm<'_, Output>>,
        (): &mut (),
        y: &mut Output,
    ) -> Result<()> {
        // Without weight there is no loss to speak of.
        let weight = loss.map(|term| term.weight).filter(|weight| *weight > 0.0);
        *y = Python::attach(|py| self.ask(py, w, i, weight)).map_err(|error| self.failed(error))?;
        Ok(())
    }

    fn oracle_cost(&self, _: usize) -> f64 {
        // Python is slow beside a sparse product.
        10_000.0
    }
}

#[pyfunction]
#[pyo3(signature = (task, inputs, outputs, weights, size, options, on_round, start = None))]
#[expect(clippy::too_many_arguments, reason = "as the interface has them")]
pub(crate) fn train_task<'py>(
    py: Python<'py>,
    task: Py<PyAny>,
    inputs: &Bound<'py, PyList>,
    outputs: &Bound<'py, PyList>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
    size: u32,
    options: Vec<String>,
    on_round: Option<Py<PyAny>>,
    start: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyTuple>> {
    let n = inputs.len();
    if outputs.len() != n {
        return Err(PyValueError::new_err(format!("{n} inputs and {} outputs", outputs.len())));
    }
    let weights = weights.map(|weights| Ok::<_, PyErr>(weights.as_slice()?.to_vec())).transpose()?;
    let start = start.map(|start| Ok::<_, PyErr>(start.as_slice()?.to_vec())).transpose()?;
    if start.as_ref().is_some_and(|start| start.len() != size as usize || start.iter().any(|w| !w.is_finite())) {
        return Err(PyValueError::new_err(format!("the weights to start from must be {size} finite numbers")));
    }
    let max_losses = (0..n).map(|i| task.call_method1(py, "max_loss", (i,))?.extract(py)).collect::<PyResult<_>>()?;
    let has_pairs = task.getattr(py, "kind")?.extract::<String>(py)? == "pair";
    let own = PythonTask {
        adapter: task,
        has_pairs,
        w: PyArray1::zeros(py, size as usize, false).unbind(),
        block: [Block { base: 0, rows: size, width: 1 }],
        max_losses,
        found: RwLock::default(),
        stop: Stop::default(),
    };
    for (i, truth) in outputs.iter().enumerate() {
        let known = own.known(py, i, truth.unbind(), true)?;
        let mut found = own.found.write().unwrap_or_else(PoisonError::into_inner);
        found.outputs.push(known);
        found.of.push(vec![i as u32]);
    }
    let numbers: Vec<usize> = (0..n).collect();
    let truths: Vec<Output> = (0..n as u32).map(Output).collect();
    let (own, stop) = (&own, own.stop.clone());
    let trained = py.detach(|| {
        let data = problem::examples(own, &numbers, &truths, weights.as_deref())?;
        embed::train_own(data, weights.as_deref(), start, &options, stop.hooks(on_round))
    });
    if let Some(error) = stop.take() {
        return Err(error);
    }
    let (w, summary) = trained.map_err(raised)?;
    PyTuple::new(py, [w.into_pyarray(py).into_any(), summary.into_pyobject(py)?.into_any()])
}
