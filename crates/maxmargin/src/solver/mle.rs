//! The generative baseline: maximum likelihood with Laplace's smoothing, for tasks that have a generative model of the same
//! shape (Tsochantaridis, Hofmann, Joachims, Altun 2004, table 2: the hidden Markov model).
//!
//! It counts once and is done: no loss, no C, no bound. P of its weights is reported, but is not what it makes small.

use std::borrow::Cow;
use std::ops::ControlFlow;

use super::course::Saved;
use super::state::{Resumable, Writer, check_weights};
use super::{Course, Observer, Settings, Solution, Solver};
use crate::error::{Error, Result};
use crate::parallel::Pool;
use crate::problem::{Penalty, Problem};
use crate::weights::Weights;

/// Maximum likelihood.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mle;

impl Solver for Mle {
    fn name(&self) -> &'static str {
        "mle"
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
        super::refuse_kernel(self.name(), problem)?;
        if problem.formulation().penalty == Penalty::Hard {
            return Err(Error::setting("penalty", "mle seeks no margin; take n-slack for the hard margin"));
        }
        if settings.warm_start.is_some() {
            return Err(Error::setting("warm-start", "mle counts anew, wherever it starts"));
        }
        let mut course = Course::new(self, problem, settings, observer)?.without_bound(1.0);
        let pool = Pool::new(settings.threads)?;
        let Some(w) = problem.generative() else {
            return Err(Error::setting("solver", "mle needs a generative model, which this task does not have here"));
        };
        let counted = Counted(w);
        if let Some(Saved { mut reader, .. }) = course.resume(problem, &pool)? {
            check_weights(&reader.take()?, problem.dimension())?;
        }
        let mut last = course.begin(&counted);
        loop {
            if let ControlFlow::Break(status) = last {
                course.answer(problem, &counted.0, &pool)?;
                return course.finish(status);
            }
            course.so_far.done = true;
            last = course.end_round(None, &counted);
        }
    }
}

struct Counted(Weights);

impl Resumable for Counted {
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.0)
    }

    fn weights(&self) -> Option<Cow<'_, Weights>> {
        Some(Cow::Borrowed(&self.0))
    }
}
