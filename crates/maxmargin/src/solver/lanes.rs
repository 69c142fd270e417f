//! The oracle for a few examples at one w, side by side.
//!
//! Who is asked together is decided by the solver, never by the number of threads; the answers come back in the order of
//! the questions. Buffers stay: a warm call allocates nothing on one thread.

use crate::error::Result;
use crate::parallel::Pool;
use crate::problem::OracleScratch;
use crate::task::Task;

/// As many threads as can work on one call.
const LANES: usize = 64;

/// What the oracle says of an example.
#[derive(Debug, Default)]
pub(super) struct Answer<Y> {
    pub(super) i: usize,
    /// H
    pub(super) h: f64,
    pub(super) y: Y,
}

struct Lane<T: Task> {
    scratch: OracleScratch<T>,
    answers: Vec<Answer<T::Output>>,
    /// So many of the answers belong to the last call.
    len: usize,
}

/// Lanes for threads to work in.
pub(super) struct Lanes<T: Task>(Vec<Lane<T>>);

impl<T: Task> Lanes<T> {
    /// For calls of at most `questions` examples.
    pub(super) fn new(questions: usize) -> Self {
        let lane = || Lane { scratch: OracleScratch::default(), answers: Vec::new(), len: 0 };
        Self((0..questions.clamp(1, LANES)).map(|_| lane()).collect())
    }

    /// Asks for each of the examples. `oracle` leaves the output in its scratch and returns H.
    pub(super) fn ask(
        &mut self,
        pool: &Pool,
        examples: &[u32],
        oracle: impl Fn(usize, &mut OracleScratch<T>) -> Result<f64> + Sync + Send,
    ) -> Result<()> {
        let (n, lanes) = (examples.len(), self.0.len());
        pool.each(&mut self.0, |at, lane| {
            let own = &examples[n * at / lanes..n * (at + 1) / lanes];
            lane.len = own.len();
            if lane.answers.len() < own.len() {
                lane.answers.resize_with(own.len(), Answer::default);
            }
            for (&i, answer) in own.iter().zip(&mut lane.answers) {
                answer.i = i as usize;
                answer.h = oracle(answer.i, &mut lane.scratch)?;
                answer.y.clone_from(&lane.scratch.y);
            }
            Ok(())
        })
    }

    /// The answers to the last call.
    pub(super) fn answers(&self) -> impl Iterator<Item = &Answer<T::Output>> {
        self.0.iter().flat_map(|lane| &lane.answers[..lane.len])
    }
}
