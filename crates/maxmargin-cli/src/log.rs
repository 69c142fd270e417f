//! `--log`: one JSON object a round.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use maxmargin::Error;
use maxmargin::solver::Progress;
use serde::{Deserialize, Serialize};

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

/// Where a round stands, in a line of the log.
#[derive(Deserialize)]
struct Place {
    c: f64,
    round: u64,
}

impl Place {
    /// Does it come after this round at the first of these C?
    fn is_after(&self, round: u64, ladder: &[f64]) -> bool {
        const ROUNDING: f64 = 1e-12;
        let is = |c: f64| (self.c - c).abs() <= ROUNDING * c;
        let (now, later) = ladder.split_first().expect("a checkpoint is made at some C");
        later.iter().any(|&c| is(c)) || is(*now) && self.round > round
    }
}

/// The length of a log without the lines at its end that come after this round at the first of these C.
fn kept(mut log: impl BufRead, round: u64, ladder: &[f64]) -> io::Result<u64> {
    let (mut read, mut kept, mut line) = (0, 0, Vec::new());
    while log.read_until(b'\n', &mut line)? > 0 {
        read += line.len() as u64;
        let place = serde_json::from_slice::<Place>(&line);
        if line.ends_with(b"\n") && !place.is_ok_and(|place| place.is_after(round, ladder)) {
            kept = read;
        }
        line.clear();
    }
    Ok(kept)
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

    /// The file, where it has a length to set: devices and pipes have none.
    fn regular(&mut self) -> Option<(&Path, &mut File)> {
        match self {
            Self::File { path, file: Some(file) } if file.metadata().is_ok_and(|m| m.is_file()) => Some((path, file)),
            _ => None,
        }
    }

    /// Removes what an earlier run left in it; a run that goes on writes behind it instead.
    pub(crate) fn begin(&mut self, goes_on: bool) -> Result<()> {
        let Some((path, file)) = self.regular() else { return Ok(()) };
        let done = if goes_on { file.seek(SeekFrom::End(0)).map(drop) } else { file.set_len(0) };
        done.map_err(|e| Error::io(path, e).into())
    }

    /// Training goes on after this round at the first of these C: what was written of later ones comes again, so it goes, as does
    /// a line that was cut off. Lines before it stay, whatever they are.
    pub(crate) fn go_on_after(&mut self, round: u64, ladder: &[f64]) -> Result<()> {
        let Some((path, file)) = self.regular() else { return Ok(()) };
        let text = File::open(path).and_then(|file| kept(BufReader::new(file), round, ladder));
        // One step, so that a crash leaves the log with these lines or without them.
        let cut = text.and_then(|length| file.set_len(length).and_then(|()| file.seek(SeekFrom::End(0))));
        cut.map(drop).map_err(|e| Error::io(path, e).into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_again_goes() {
        let line = |c: f64, round: u64| format!("{{\"c\":{c},\"round\":{round},\"gap\":null}}\n");
        let log = |lines: &[(f64, u64)]| lines.iter().map(|&(c, round)| line(c, round)).collect::<String>();
        let length = |text: &str, round, ladder: &[f64]| kept(text.as_bytes(), round, ladder).unwrap() as usize;
        let all = [(0.1, 1), (0.1, 2), (134.700_000_000_000_02, 1), (134.700_000_000_000_02, 2), (1347.0, 1)];
        let text = log(&all);
        let ladder = [0.1, 134.700_000_000_000_02, 1347.0];
        for (round, from, left) in
            [(0, 0, 0), (1, 0, 1), (2, 0, 2), (0, 1, 2), (1, 1, 3), (2, 1, 4), (0, 2, 4), (1, 2, 5), (9, 2, 5)]
        {
            assert_eq!(length(&text, round, &ladder[from..]), log(&all[..left]).len(), "round {round} at C {from}");
        }
        // Only what stands at the end goes, and half a line.
        let others = format!("{text}another's\n");
        assert_eq!(length(&others, 1, &ladder), others.len());
        assert_eq!(length(&format!("{others}{}", line(0.1, 1).trim_end()), 1, &ladder), others.len());
        assert_eq!(length("", 1, &ladder), 0);
    }
}
