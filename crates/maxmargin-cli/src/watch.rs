//! What happens beside training, round by round: progress, log, held-out examples, checkpoints.

use std::ops::ControlFlow;
use std::time::Instant;

use maxmargin::Error;
use maxmargin::solver::heldout::Looks;
use maxmargin::solver::{Observer, Progress, Snapshot, Status};
use maxmargin::weights::Weights;

use crate::checkpoint::Saver;
use crate::interrupt::Halt;
use crate::log::Log;
use crate::progress::Display;
use crate::step::{Kept, Step};
use crate::text::number;

/// The loss on held-out examples.
pub(crate) type Measure<'w> = &'w dyn Fn(&Weights) -> maxmargin::Result<f64>;

pub(crate) struct Watch<'w> {
    pub(crate) display: &'w Display,
    halt: &'w Halt,
    pub(crate) log: Option<Log>,
    pub(crate) measure: Option<Measure<'w>>,
    pub(crate) saver: Option<Saver>,
    /// Some examples are decoded by a search: what is found of P may be less than P.
    pub(crate) is_searched: bool,
    /// Of the C in hand.
    pub(crate) looks: Looks,
    /// What the looks have taken.
    seconds_heldout: f64,
    /// Of the path: what is behind, and the model that would be saved if it ended here.
    pub(crate) steps: Vec<Step>,
    pub(crate) kept: Option<Kept>,
    c: f64,
    /// What went wrong in an observer, which cannot fail itself.
    pub(crate) error: Option<Error>,
}

impl<'w> Watch<'w> {
    pub(crate) fn new(
        display: &'w Display,
        halt: &'w Halt,
        log: Option<Log>,
        measure: Option<Measure<'w>>,
        saver: Option<Saver>,
    ) -> Self {
        let (looks, steps) = (Looks::default(), Vec::new());
        let (is_searched, seconds_heldout, kept, c, error) = (false, 0.0, None, 0.0, None);
        Self { display, halt, log, measure, saver, is_searched, looks, seconds_heldout, steps, kept, c, error }
    }

    /// Training begins at the next C of the ladder.
    pub(crate) fn begin(&mut self, ladder: &[f64]) {
        let k = self.steps.len();
        let Some(&c) = ladder.get(k) else { return };
        self.c = c;
        let of_path = format!("C {} ({} of {}), ", number(c), k + 1, ladder.len());
        self.display.training(if ladder.len() > 1 { &of_path } else { "" });
    }

    fn goes_on(&mut self) -> ControlFlow<()> {
        if self.halt.is_requested() || self.error.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Looks at the held-out examples, if it is time.
    fn look(&mut self, passes: f64, snapshot: &dyn Snapshot) -> Option<f64> {
        let measure = self.measure.filter(|_| self.looks.is_due(passes))?;
        let start = Instant::now();
        let weights = snapshot.weights();
        let measured = measure(&weights);
        self.seconds_heldout += start.elapsed().as_secs_f64();
        match measured {
            Ok(loss) => {
                self.looks.add(passes, loss, weights);
                self.display.heldout(loss);
                Some(loss)
            }
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }
}

impl Observer for Watch<'_> {
    fn on_iteration(&mut self, progress: &Progress) -> ControlFlow<()> {
        self.display.round(progress);
        self.goes_on()
    }

    fn on_state(&mut self, progress: &Progress, snapshot: &dyn Snapshot, status: Option<Status>) -> ControlFlow<()> {
        let seconds_heldout = self.seconds_heldout;
        let heldout = self.look(progress.passes, snapshot);
        if let Some(log) = &mut self.log {
            log.add(self.c, progress, seconds_heldout, heldout);
        }
        // Who hears of a round may want no more of them.
        let goes_on = self.goes_on();
        let is_last = status.is_some() || goes_on.is_break();
        if let Some(saver) = self.saver.as_mut().filter(|saver| is_last || saver.is_due()) {
            let saved = saver.save(&self.steps, self.kept.as_ref(), &self.looks, snapshot);
            self.error = self.error.take().or(saved.err());
        }
        goes_on
    }

    fn is_over(&mut self) -> bool {
        self.halt.is_requested_now()
    }
}
