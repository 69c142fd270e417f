//! Ctrl-C: the first stops training after the current round, or in the middle of it where the solver can; the second stops at
//! once.

use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Nothing to lose yet: Ctrl-C quits.
const BEFORE: u8 = 0;
const TRAINING: u8 = 1;
const STOPPING: u8 = 2;

static PHASE: AtomicU8 = AtomicU8::new(BEFORE);

/// The exit code of a program stopped by Ctrl-C, as shells have it.
const EXIT_CODE: i32 = 130;

/// Catches Ctrl-C from here on.
pub(crate) fn watch(is_quiet: bool) {
    // Where it cannot be caught, Ctrl-C stops the program as any other.
    drop(ctrlc::set_handler(move || {
        if PHASE.compare_exchange(TRAINING, STOPPING, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            std::process::exit(EXIT_CODE);
        }
        if !is_quiet {
            let text = "\nstopping after this round at the latest, then saving the model (Ctrl-C again quits at once)";
            drop(writeln!(std::io::stderr(), "{text}"));
        }
    }));
}

/// From here on there is a model to save.
pub(crate) fn training_begins() {
    PHASE.store(TRAINING, Ordering::SeqCst);
}

/// How training learns that it is to stop.
pub(crate) enum Halt {
    /// By Ctrl-C.
    CtrlC,
    /// Whoever runs the program inside of theirs is asked.
    Asked(Asked),
}

/// Whom to ask, and when that was last done: an answer may take a while.
pub(crate) struct Asked {
    is_over: Box<dyn Fn() -> bool>,
    last: Cell<Instant>,
}

/// In the middle of a round they are asked no more often.
const ASK_EVERY: Duration = Duration::from_millis(50);

impl Halt {
    /// Has somebody asked to stop?
    pub(crate) fn is_requested(&self) -> bool {
        match self {
            Self::CtrlC => PHASE.load(Ordering::SeqCst) == STOPPING,
            Self::Asked(asked) => {
                asked.last.set(Instant::now());
                (asked.is_over)()
            }
        }
    }

    /// The same in the middle of a round, where this is looked at many times.
    pub(crate) fn is_requested_now(&self) -> bool {
        let is_due = match self {
            Self::CtrlC => true,
            Self::Asked(asked) => asked.last.get().elapsed() >= ASK_EVERY,
        };
        is_due && self.is_requested()
    }

    /// By asking.
    pub(crate) fn asking(is_over: Box<dyn Fn() -> bool>) -> Self {
        Self::Asked(Asked { is_over, last: Cell::new(Instant::now()) })
    }
}
