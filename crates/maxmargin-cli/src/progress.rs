//! What goes on, on standard error: a live line on a terminal, now and then a plain line otherwise.
//!
//! A thread of its own writes it, so that time goes on while a round takes long.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use maxmargin::numeric::{ln, square};
use maxmargin::solver::Progress;

use crate::text::{bytes, count, duration, number};

/// Between two states of the live line.
const LIVE: Duration = Duration::from_millis(200);

/// Between two plain lines.
const PLAIN: Duration = Duration::from_secs(5);

/// Shows progress until it is dropped.
#[derive(Debug)]
pub(crate) struct Display {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    bytes_read: AtomicU64,
}

#[derive(Debug)]
enum State {
    Reading {
        name: String,
        size: Option<u64>,
        start: Instant,
    },
    /// `part`: of what is to be done, where that is more than one training.
    Training {
        part: String,
        start: Instant,
        last: Option<Progress>,
        heldout: Option<f64>,
        forecast: Forecast,
    },
    Over,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Display {
    /// Starts with reading a file, which has `size` bytes where that is known.
    pub(crate) fn reading(name: &str, size: Option<u64>, is_quiet: bool) -> Self {
        let state = State::Reading { name: name.to_owned(), size, start: Instant::now() };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), bytes_read: AtomicU64::new(0) });
        let thread = (!is_quiet).then(|| {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || show(&shared, io::stderr().is_terminal()))
        });
        Self { shared, thread }
    }

    /// A reader whose bytes are counted.
    pub(crate) fn counted<R: Read>(&self, reader: R) -> Counted<R> {
        Counted { reader, shared: Arc::clone(&self.shared) }
    }

    /// Goes on with training; `part` says with which, where there are several.
    pub(crate) fn training(&self, part: &str) {
        let (part, start, forecast) = (part.to_owned(), Instant::now(), Forecast::default());
        *self.shared.state() = State::Training { part, start, last: None, heldout: None, forecast };
    }

    /// The loss on held-out examples was measured.
    pub(crate) fn heldout(&self, loss: f64) {
        if let State::Training { heldout, .. } = &mut *self.shared.state() {
            *heldout = Some(loss);
        }
    }

    /// A round is done.
    pub(crate) fn round(&self, progress: &Progress) {
        if let State::Training { last, forecast, .. } = &mut *self.shared.state() {
            forecast.add(progress);
            let gap = progress.gap.or(last.and_then(|l| l.gap));
            *last = Some(Progress { gap, ..*progress });
        }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        *self.shared.state() = State::Over;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Counts the bytes that pass.
#[derive(Debug)]
pub(crate) struct Counted<R> {
    reader: R,
    shared: Arc<Shared>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.reader.read(buffer)?;
        self.shared.bytes_read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

/// The thread that writes.
fn show(shared: &Shared, is_live: bool) {
    let mut stderr = io::stderr();
    let mut is_shown = false;
    let mut state = shared.state();
    loop {
        // Looks before it waits: all may have been over before this thread began.
        let (next, _) = shared
            .changed
            .wait_timeout_while(state, if is_live { LIVE } else { PLAIN }, |state| !matches!(state, State::Over))
            .unwrap_or_else(PoisonError::into_inner);
        state = next;
        let Some(line) = line(&state, shared.bytes_read.load(Ordering::Relaxed)) else { break };
        // Nobody to tell: then we do not.
        drop(if is_live {
            write!(stderr, "\r{line}\x1b[K").and_then(|()| stderr.flush())
        } else {
            writeln!(stderr, "{line}")
        });
        is_shown = is_live;
    }
    if is_shown {
        drop(write!(stderr, "\r\x1b[K"));
    }
}

/// The state in a line; None when all is over.
fn line(state: &State, bytes_read: u64) -> Option<String> {
    Some(match state {
        State::Reading { name, size, start } => {
            let read = match size {
                Some(size) if *size > 0 => format!("{} %", 100 * bytes_read.min(*size) / size),
                _ => bytes(bytes_read as f64),
            };
            format!("reading {name}: {read}, {}", duration(start.elapsed().as_secs_f64()))
        }
        State::Training { part, start, last: None, .. } => {
            format!("{part}training: first round, {}", duration(start.elapsed().as_secs_f64()))
        }
        State::Training { part, start, last: Some(p), .. } if p.round == 0 => {
            format!("{part}training: a start from a sample, {}", duration(start.elapsed().as_secs_f64()))
        }
        State::Training { part, start, last: Some(p), heldout, forecast } => {
            let now = start.elapsed().as_secs_f64();
            let gap = p.gap.map_or("gap not known yet".to_owned(), |gap| format!("gap {}", number(gap)));
            let left = forecast.seconds_left(now).map_or(String::new(), |s| format!(", about {} left", duration(s)));
            let heldout = heldout.map_or(String::new(), |loss| format!(", held-out loss {}", number(loss)));
            let (round, target, now) = (count(p.round), number(p.target), duration(now));
            format!("{part}round {round}: {gap}, target {target}{heldout}, {now}{left}")
        }
        State::Over => return None,
    })
}

/// When will the gap be small enough? A straight line through the recent logarithms of the gap.
#[derive(Debug, Default)]
struct Forecast {
    /// Seconds, and the logarithm of gap over target.
    points: Vec<(f64, f64)>,
}

impl Forecast {
    /// More points than that are thinned out.
    const MOST: usize = 1000;

    fn add(&mut self, p: &Progress) {
        let Some(gap) = p.gap.filter(|gap| *gap > 0.0 && p.target > 0.0) else { return };
        if self.points.len() == Self::MOST {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
        }
        self.points.push((p.seconds, ln(gap / p.target)));
    }

    /// None while nothing can be said.
    fn seconds_left(&self, now: f64) -> Option<f64> {
        const LONGEST: f64 = 100.0 * 3600.0;
        let &(end, height) = self.points.last()?;
        let recent = &self.points[self.points.partition_point(|p| p.0 < 0.5 * end)..];
        if recent.len() < 3 {
            return None;
        }
        let n = recent.len() as f64;
        let (t, y) = recent.iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.0 / n, sum.1 + p.1 / n));
        let (tt, ty) =
            recent.iter().fold((0.0, 0.0), |sum, p| (sum.0 + square(p.0 - t), sum.1 + (p.0 - t) * (p.1 - y)));
        let left = height * tt / -ty - (now - end);
        (ty < 0.0 && left < LONGEST).then_some(left.max(0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forecast(gap: impl Fn(f64) -> f64, seconds: u64) -> Forecast {
        let mut forecast = Forecast::default();
        for round in 1..=100 * seconds {
            let seconds = round as f64 / 100.0;
            forecast.add(&Progress {
                round,
                seconds,
                passes: 0.0,
                oracle_calls: 0,
                cache_hits: 0,
                primal: None,
                dual: None,
                gap: Some(gap(seconds)),
                target: 1.0,
                working_set: 0,
            });
        }
        forecast
    }

    #[test]
    fn a_gap_that_falls_steadily_ends_when_it_should() {
        // e^(10 - t) is 1 at t = 10.
        let left = forecast(|t| (10.0 - t).exp(), 4).seconds_left(4.0).unwrap();
        assert!((left - 6.0).abs() < 1e-6, "{left}");
        let many = forecast(|t| (100.0 - t).exp(), 40).seconds_left(41.0).unwrap();
        assert!((many - 59.0).abs() < 1e-6, "{many}");
    }

    #[test]
    fn nothing_is_foretold_without_progress() {
        assert_eq!(forecast(|_| 5.0, 2).seconds_left(2.0), None);
        assert_eq!(forecast(|t| t + 2.0, 2).seconds_left(2.0), None);
        assert_eq!(Forecast::default().seconds_left(2.0), None);
    }
}
