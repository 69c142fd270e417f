//! `--log`: one JSON object a round.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use maxmargin::Error;
use maxmargin::solver::Progress;
use serde::Serialize;

use crate::failure::Result;
use crate::streams::note;

/// A log in the making, flushed after every round.
pub(crate) enum Log {
    /// None after a failed write: a full disk must not stop hours of training.
    File { path: PathBuf, file: Option<File> },
    /// Told to whoever runs the program inside of theirs.
    Told(Box<dyn FnMut(&str)>),
}

#[derive(Serialize)]
struct Line {
    c: f64,
    round: u64,
    seconds: f64,
    /// Of these, in earlier looks at the held-out examples.
    seconds_heldout: f64,
    passes: f64,
    oracle_calls: u64,
    cache_hits: u64,
    primal: Option<f64>,
    dual: Option<f64>,
    gap: Option<f64>,
    working_set: usize,
    heldout: Option<f64>,
}

/// Whoever is told gets the first ten thousand rounds, then every second one, every fourth and so on: rounds can be short and many.
fn is_told(round: u64) -> bool {
    const ALL: u64 = 10_000;
    round.is_multiple_of((round / ALL).max(1).next_power_of_two())
}

impl Log {
    /// Opens the file without touching what is in it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(|e| Error::io(path, e))?;
        Ok(Self::File { path: path.to_owned(), file: Some(file) })
    }

    /// Removes what an earlier run left in it; a run that goes on writes behind it instead.
    pub(crate) fn begin(&mut self, goes_on: bool) -> Result<()> {
        match self {
            // Devices and pipes have no length to set.
            Self::File { path, file: Some(file) } if file.metadata().is_ok_and(|m| m.is_file()) => {
                let done = if goes_on { file.seek(SeekFrom::End(0)).map(drop) } else { file.set_len(0) };
                done.map_err(|e| Error::io(&*path, e).into())
            }
            _ => Ok(()),
        }
    }

    /// Adds a round at this C; `heldout`: the loss on held-out examples, where it was measured.
    pub(crate) fn add(&mut self, c: f64, p: &Progress, seconds_heldout: f64, heldout: Option<f64>) {
        if matches!(self, Self::Told(_)) && !is_told(p.round) {
            return;
        }
        let line = Line {
            c,
            round: p.round,
            seconds: p.seconds,
            seconds_heldout,
            passes: p.passes,
            oracle_calls: p.oracle_calls,
            cache_hits: p.cache_hits,
            primal: p.primal,
            dual: p.dual,
            gap: p.gap,
            working_set: p.working_set,
            heldout,
        };
        let text = serde_json::to_string(&line).expect("plain structs become JSON");
        match self {
            Self::Told(tell) => tell(&text),
            Self::File { path, file } => {
                if let Some(Err(e)) = file.as_mut().map(|file| file.write_all((text + "\n").as_bytes())) {
                    note(&format!("{}: {e}; the log ends here, training goes on", path.display()));
                    *file = None;
                }
            }
        }
    }
}
