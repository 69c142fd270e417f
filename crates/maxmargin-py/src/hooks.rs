//! What Python is told and asked while the library trains.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use maxmargin_cli::embed::Hooks;
use pyo3::prelude::*;

/// The first exception of a callback or of Ctrl-C, and the wish to stop.
#[derive(Clone, Default)]
pub(crate) struct Stop {
    error: Arc<Mutex<Option<PyErr>>>,
    is_asked: Arc<AtomicBool>,
}

impl Stop {
    /// Keeps the first.
    pub(crate) fn raise(&self, error: PyErr) {
        self.is_asked.store(true, Ordering::SeqCst);
        self.error.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// The exception, if there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_over(&self) -> bool {
        if self.is_asked.load(Ordering::SeqCst) {
            return true;
        }
        // Ctrl-C: only the interpreter knows.
        let looked = Python::attach(|py| -> PyResult<()> { py.check_signals() });
        match looked {
            Ok(()) => false,
            Err(error) => {
                self.raise(error);
                true
            }
        }
    }

    /// `on_round` gets every line of the log; True from it stops training and keeps the model so far.
    pub(crate) fn hooks(&self, on_round: Option<Py<PyAny>>) -> Hooks {
        let (told, asked) = (self.clone(), self.clone());
        let tell = move |line: &str| {
            let Some(call) = &on_round else { return };
            Python::attach(|py| match call.call1(py, (line,)).and_then(|answer| answer.is_truthy(py)) {
                Ok(true) => told.is_asked.store(true, Ordering::SeqCst),
                Ok(false) => {}
                Err(error) => told.raise(error),
            });
        };
        Hooks { on_round: Box::new(tell), is_over: Box::new(move || asked.is_over()) }
    }
}
