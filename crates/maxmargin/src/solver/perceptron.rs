//! The averaged perceptron (Freund and Schapire 1999; Collins 2002): the baseline of Tsochantaridis, Hofmann, Joachims,
//! Altun 2004, table 2.
//!
//! ```text
//! y = argmax <w, psi(x_i, y)>;   where y is not the truth:  w <- w + c_i dpsi_i(y)
//! ```
//!
//! The answer is the mean of w over all visits. It knows neither loss nor C nor margin: P of its answer, which is reported,
//! is not what it makes small, and there is no bound. It ends when a pass makes no mistake, or after 20 passes where
//! the user names no other number. One example follows upon the other, so threads serve only to compute P.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::average::Average;
use super::course::Saved;
use super::lanes::Pace;
use super::permutation::Permutation;
use super::state::{Resumable, Writer, check, check_weights};
use super::{Course, Observer, Settings, Solution, Solver};
use crate::error::{Error, Result};
use crate::parallel::Pool;
use crate::problem::{Output, Penalty, Problem, Scratch};
use crate::weights::Weights;

/// The averaged perceptron.
#[derive(Debug, Clone, Copy, Default)]
pub struct Perceptron;

/// Passes where the user names no number.
pub const DEFAULT_PASSES: f64 = 20.0;

impl Solver for Perceptron {
    fn name(&self) -> &'static str {
        "perceptron"
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
        super::refuse_kernel(self.name(), problem)?;
        if problem.formulation().penalty == Penalty::Hard {
            let rule = "the perceptron seeks no margin; take one-slack or n-slack for the hard margin";
            return Err(Error::setting("penalty", rule));
        }
        let mut course = Course::new(self, problem, settings, observer)?.without_bound(DEFAULT_PASSES);
        let pool = Pool::new(settings.threads)?;
        let mut run = Run::new(problem, settings);
        if let Some(saved) = course.resume(problem, &pool)? {
            run.restore(saved)?;
        }
        let mut last = course.begin(&run);
        loop {
            if let ControlFlow::Break(status) = last {
                course.answer(problem, &run.mean, &pool)?;
                return course.finish(status);
            }
            let visits = course.in_oracle(|| run.visit())?;
            course.so_far.oracle_calls += visits as u64;
            course.so_far.done = run.order.is_over() && run.mistakes == 0;
            last = course.end_round(None, &run);
        }
    }
}

struct Run<'r, 'a> {
    problem: &'r Problem<'a>,
    w: Weights,
    average: Average,
    /// Of w so far: the answer.
    mean: Weights,
    order: Permutation,
    /// Of this pass so far.
    mistakes: u64,
    /// Visits of a round.
    round: usize,
    scratch: Scratch,
    y: Output,
}

impl<'r, 'a> Run<'r, 'a> {
    fn new(problem: &'r Problem<'a>, settings: &Settings) -> Self {
        let d = problem.dimension();
        let w = settings.warm_start.clone().unwrap_or_else(|| Weights::zeros(d));
        Self {
            problem,
            mean: w.clone(),
            w,
            average: Average::new(d),
            order: Permutation::new(problem, settings.seed),
            mistakes: 0,
            round: Pace::new(problem).round,
            scratch: Scratch::default(),
            y: Output::default(),
        }
    }

    /// Goes back to where the state was saved; C has no part in it.
    fn restore(&mut self, mut saved: Saved<'_>) -> Result<()> {
        let (reader, d) = (&mut saved.reader, self.problem.dimension());
        self.w = reader.take()?;
        check_weights(&self.w, d)?;
        self.average = reader.take()?;
        check(self.average.is_of(d), "the mean")?;
        self.mean = self.average.mean(&self.w);
        self.mistakes = reader.take()?;
        self.order.read(reader)
    }

    /// The visits of a round: a pass, or a part of a long one. Returns their number.
    fn visit(&mut self) -> Result<usize> {
        let problem = self.problem;
        if self.order.is_over() {
            self.order.begin_pass();
            self.mistakes = 0;
        }
        let examples = self.order.next(self.round);
        for i in examples.iter().map(|&i| i as usize) {
            problem.predict(i, &self.w, &mut self.scratch, &mut self.y)?;
            if !problem.is_truth(i, &self.y) {
                self.mistakes = self.mistakes.saturating_add(1);
                problem.emit(i, &self.y, problem.weight(i), &mut self.average.step(&mut self.w))?;
            }
            self.average.count(1.0, 1.0);
        }
        self.mean = self.average.mean(&self.w);
        Ok(examples.len())
    }
}

impl Resumable for Run<'_, '_> {
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.w)?;
        out.put(&self.average)?;
        out.put(&self.mistakes)?;
        out.put(&self.order)
    }

    fn weights(&self) -> Option<Cow<'_, Weights>> {
        Some(Cow::Borrowed(&self.mean))
    }
}
