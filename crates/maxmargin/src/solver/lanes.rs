//! The oracle for a few examples at one w, side by side.
//!
//! Who is asked together is decided by the solver, never by the number of threads; the answers come back in the order of
//! the questions. Buffers stay: a warm call allocates next to nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::parallel::{Crew, Scope};
use crate::problem::{OracleScratch, Output, Problem};
use crate::weights::Weights;

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
    pub(super) fn new(problem: &Problem<'_>) -> Self {
        let n = problem.len();
        let cost = (0..n).map(|i| problem.decode_cost(i).max(1.0)).sum::<f64>() / n as f64;
        let at_once = match problem.enumerable() {
            Some(_) => ((WORK_SIDE_BY_SIDE / cost) as usize).clamp(32, 256),
            None => DEAR_SIDE_BY_SIDE,
        };
        let side_by_side = at_once.min(n / 32).max(1);
        Self { side_by_side, round: side_by_side.max((WORK_OF_A_ROUND / cost) as usize) }
    }
}

/// What the oracle says of an example.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) i: usize,
    /// H
    pub(super) h: f64,
    pub(super) y: Output,
}

/// Where a thread works.
#[derive(Default)]
struct Lane {
    scratch: OracleScratch,
    /// What it found, with the places of the questions.
    found: Vec<(usize, Answer)>,
    /// So much of it is to be handed over.
    len: usize,
    /// What went wrong first, and with which question.
    error: Option<(usize, Error)>,
}

/// A call: the examples, and the point `scale * at`. Lent to all threads, and got back when they are done.
struct Call {
    at: Weights,
    scale: f64,
    /// Places and examples, the dearest first where they are few: else one thread would be left with it at the end.
    questions: Vec<(u32, u32)>,
    /// The first question that nobody has taken.
    next: AtomicUsize,
    /// Questions that are taken at once.
    run: usize,
}

impl Lane {
    /// Takes questions as long as there are some.
    fn work(&mut self, problem: &Problem<'_>, call: &Call) {
        loop {
            let first = call.next.fetch_add(call.run, Ordering::Relaxed);
            let Some(rest) = call.questions.get(first..).filter(|rest| !rest.is_empty()) else { return };
            for &(place, i) in &rest[..call.run.min(rest.len())] {
                match problem.oracle_at(i as usize, &call.at, call.scale, &mut self.scratch) {
                    Ok(h) => self.note(place as usize, i as usize, h),
                    // All are asked, so that the first one's error is told, whoever asks.
                    Err(error) => {
                        let earlier = self.error.take().filter(|(other, _)| *other < place as usize);
                        self.error = earlier.or(Some((place as usize, error)));
                    }
                }
            }
        }
    }

    fn note(&mut self, place: usize, i: usize, h: f64) {
        if self.found.len() == self.len {
            self.found.push(Default::default());
        }
        let (of, answer) = &mut self.found[self.len];
        (*of, answer.i, answer.h) = (place, i, h);
        answer.y.clone_from(&self.scratch.y);
        self.len += 1;
    }

    /// Moves what was found to its places; the old answers' buffers will serve again.
    fn hand_over(&mut self, answers: &mut [Answer]) -> Option<(usize, Error)> {
        for (place, answer) in &mut self.found[..self.len] {
            std::mem::swap(answer, &mut answers[*place]);
        }
        // Ready for the next call, in which it may take no part.
        self.len = 0;
        self.error.take()
    }
}

/// Lanes for threads to work in.
pub(super) struct Lanes<'p, 'a> {
    problem: &'p Problem<'a>,
    own: Lane,
    crew: Crew<Arc<Call>, Lane>,
    questions: Vec<(u32, u32)>,
    answers: Vec<Answer>,
    len: usize,
}

impl<'p, 'a> Lanes<'p, 'a> {
    /// For calls of so many examples, with that many threads.
    pub(super) fn new<'scope, 'env>(
        scope: &'scope Scope<'scope, 'env>,
        problem: &'p Problem<'a>,
        side_by_side: usize,
        threads: usize,
    ) -> Result<Self>
    where
        'p: 'scope,
        'a: 'scope,
    {
        let helpers = threads.min(side_by_side).max(1) - 1;
        let work = move |call: Arc<Call>, lane: &mut Lane| lane.work(problem, &call);
        let crew = Crew::start(scope, helpers, work)?;
        Ok(Self { problem, own: Lane::default(), crew, questions: Vec::new(), answers: Vec::new(), len: 0 })
    }

    /// Asks for each of the examples at `scale * at`.
    pub(super) fn ask(&mut self, at: &mut Weights, scale: f64, examples: &[u32]) -> Result<()> {
        /// Each thread should have so many runs to take: examples differ.
        const RUNS: usize = 8;
        let Self { problem, own, crew, .. } = self;
        let mut questions = std::mem::take(&mut self.questions);
        questions.clear();
        questions.extend((0..).zip(examples.iter().copied()));
        let run = (examples.len() / (RUNS * (1 + crew.len()))).max(1);
        if run == 1 && crew.len() > 0 {
            let cost = |i: u32| problem.decode_cost(i as usize);
            questions.sort_unstable_by(|a, b| cost(b.1).total_cmp(&cost(a.1)).then(a.0.cmp(&b.0)));
        }
        let call = Call { at: std::mem::take(at), scale, questions, next: AtomicUsize::new(0), run };
        let call = Arc::new(call);
        crew.call(|| Arc::clone(&call), || own.work(problem, &call));
        let call = Arc::into_inner(call).expect("all are done");
        (*at, self.questions) = (call.at, call.questions);

        self.len = examples.len();
        if self.answers.len() < self.len {
            self.answers.resize_with(self.len, Answer::default);
        }
        let mut error = own.hand_over(&mut self.answers);
        for mut lane in crew.desks() {
            let other = lane.hand_over(&mut self.answers);
            error = error.into_iter().chain(other).min_by_key(|(place, _)| *place);
        }
        error.map_or(Ok(()), |(_, error)| Err(error))
    }

    /// The answers to the last call.
    pub(super) fn answers(&self) -> &[Answer] {
        &self.answers[..self.len]
    }
}
