//! `--log`: one JSON object a round.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use maxmargin::Error;
use maxmargin::solver::Progress;
use serde::Serialize;

use crate::failure::{Result, note};

/// A log in the making, flushed after every round.
#[derive(Debug)]
pub(crate) struct Log {
    path: PathBuf,
    /// None after a failed write: a full disk must not stop hours of training.
    file: Option<File>,
}

#[derive(Serialize)]
struct Line {
    round: u64,
    seconds: f64,
    passes: f64,
    oracle_calls: u64,
    cache_hits: u64,
    primal: Option<f64>,
    dual: Option<f64>,
    gap: Option<f64>,
    working_set: usize,
}

impl Log {
    /// Opens the file without touching what is in it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| Error::io(path, e))?;
        Ok(Self { path: path.to_owned(), file: Some(file) })
    }

    /// Removes what an earlier run left in it.
    pub(crate) fn begin(&mut self) -> Result<()> {
        match &self.file {
            // Devices and pipes have no length to set.
            Some(file) if file.metadata().is_ok_and(|m| m.is_file()) => {
                file.set_len(0).map_err(|e| Error::io(&self.path, e).into())
            }
            _ => Ok(()),
        }
    }

    /// Adds a round.
    pub(crate) fn add(&mut self, p: &Progress) {
        let Some(file) = &mut self.file else { return };
        let line = Line {
            round: p.round,
            seconds: p.seconds,
            passes: p.passes,
            oracle_calls: p.oracle_calls,
            cache_hits: p.cache_hits,
            primal: p.primal,
            dual: p.dual,
            gap: p.gap,
            working_set: p.working_set,
        };
        let text = serde_json::to_string(&line).expect("plain structs become JSON") + "\n";
        if let Err(e) = file.write_all(text.as_bytes()) {
            note(&format!("{}: {e}; the log ends here, training goes on", self.path.display()));
            self.file = None;
        }
    }
}
