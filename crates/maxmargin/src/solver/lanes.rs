//! The oracle for a few examples at one w, side by side.
//!
//! Who is asked together is decided by the solver, never by the number of threads; the answers come back in the order of
//! the questions. Buffers stay: a warm call allocates nothing on one thread.

use crate::error::Result;
use crate::parallel::Pool;
use crate::problem::{OracleScratch, Problem};
use crate::task::Task;

/// Oracles asked together should cost as much as so many looks at outputs, else threads have too little to do. With 16
/// features and 26 classes, 256 of them are a quarter of a millisecond of work.
const WORK_SIDE_BY_SIDE: f64 = 8192.0;

/// The same where outputs are too many to list: each oracle is work enough for a thread, and what is missed by asking more of
/// them at an old w is much in the first passes. Four passes over the English Web Treebank raise the dual to 1108 with one at
/// a time, to 1093 with 8, to 1027 with 32, to 925 with 64.
const DEAR_SIDE_BY_SIDE: usize = 8;

/// A round reports after the work of so many looks, in the middle of a pass if need be.
const WORK_OF_A_ROUND: f64 = 2e6;

/// How many examples go together. It follows from the data alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// Whose oracles are asked at one w. Few beside n: what w misses while they are asked is little then.
    pub(super) side_by_side: usize,
    /// After which a round ends.
    pub(super) round: usize,
}

impl Pace {
    pub(super) fn new<T: Task>(problem: &Problem<'_, T>) -> Self {
        let n = problem.len();
        let cost = (0..n).map(|i| problem.task().oracle_cost(problem.input(i)).max(1.0)).sum::<f64>() / n as f64;
        let at_once = match problem.task().listed() {
            Some(_) => ((WORK_SIDE_BY_SIDE / cost) as usize).clamp(32, 256),
            None => DEAR_SIDE_BY_SIDE,
        };
        let side_by_side = at_once.min(n / 32).max(1);
        Self { side_by_side, round: side_by_side.max((WORK_OF_A_ROUND / cost) as usize) }
    }
}

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
