//! The hard margin: `min 1/2 |w|^2` subject to every cut, no slack (Tsochantaridis, Hofmann, Joachims, Altun 2004,
//! SVM0).
//!
//! Without slack no cap ties an example's cuts together, so they all go into one group of the dual QP, which also proves
//! where the data cannot be separated. Each round asks the oracle for all examples and adds the cuts that lack most.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::parallel::{Pool, ranges};
use crate::problem::{OracleScratch, Output, Problem};
use crate::qp::{Cut, Outcome, Qp};
use crate::solver::course::{Course, Tightening};
use crate::solver::reported::DualPoint;
use crate::solver::state::{Resumable, Writer, check, check_point};
use crate::solver::{Settings, Status};
use crate::weights::Weights;

/// The dual QP keeps a matrix over the cuts; beyond so many they are replaced by aggregates.
const MAX_CUTS: usize = 3000;

/// So many rounds without progress at the QP's precision, and the rest is rounding.
const STALLED_ROUNDS: u32 = 20;

/// A violated constraint: the share of its margin that it lacks, its example, its output.
struct Lacking {
    share: f64,
    example: usize,
    y: Output,
}

/// What is kept from round to round.
#[derive(Serialize, Deserialize)]
struct Memory {
    qp: Qp,
    w: Weights,
    /// Rounds without progress.
    stalled: u32,
    tightening: Tightening,
}

impl Resumable for Memory {
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(self)
    }

    fn dual_point(&self) -> Result<Option<DualPoint>> {
        Ok(Some(DualPoint::of(&self.qp)))
    }
}

impl Memory {
    fn new(start: Weights) -> Self {
        let qp = Qp::new(start.len(), vec![f64::INFINITY]);
        Self { qp, w: start, stalled: 0, tightening: Tightening::default() }
    }

    fn check(&self, problem: &Problem<'_>) -> Result<()> {
        check_point(&self.w, problem)?;
        check(self.qp.dimension() == problem.dimension() && self.qp.caps() == [f64::INFINITY], "the dual")
    }
}

/// The algorithm, from the beginning or from a saved state.
pub(super) fn separate(
    problem: &Problem<'_>,
    settings: &Settings,
    (batch, idle_rounds): (usize, u32),
    pool: &Pool,
    course: &mut Course<'_>,
) -> Result<Status> {
    let d = problem.dimension();
    let (mut memory, mut last);
    if let Some(mut saved) = course.resume(problem, pool)? {
        memory = saved.reader.take::<Memory>()?;
        memory.check(problem)?;
        if saved.is_foreign {
            course.check_bound(DualPoint::rederived(&memory.qp))?;
        }
        last = course.begin(&memory);
    } else {
        memory = Memory::new(settings.warm_start.clone().unwrap_or_else(|| problem.zero()));
        let primal = course.offer_exact(problem, &memory.w, pool)?;
        last = course.end_round(Some(primal), &memory);
    }
    let mut lhs = vec![0.0; d];
    loop {
        if let ControlFlow::Break(status) = last {
            course.rest_on(&memory);
            return Ok(status);
        }
        let before = course.gap();
        let Memory { qp, w, stalled, tightening } = &mut memory;
        let mut found = course.in_oracle(|| violated(problem, pool, w))?;
        course.so_far.oracle_calls += problem.len() as u64;
        // The worst first; of equals the earlier example, so that runs agree.
        found.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.example.cmp(&b.example)));
        for lacking in found.iter().take(batch) {
            push(problem, qp, lacking, &mut lhs, pool)?;
        }
        let tolerance = tightening.of(0.1 * course.relative_target() * course.so_far.dual);
        let value = qp.value();
        let outcome = course.in_qp(|| qp.solve(tolerance));
        tightening.after(qp.value() - value, tolerance);
        course.bound(qp.value());
        if outcome == Outcome::Unbounded {
            return Ok(Status::Infeasible);
        }
        qp.weights_into(w, pool);
        qp.drop_inactive(idle_rounds);
        qp.shrink_to(MAX_CUTS);
        (course.so_far.working_set, course.so_far.support) = (qp.len(), qp.active());
        let primal = course.offer_exact(problem, w, pool)?;
        let rests = course.gap() >= before && outcome == Outcome::Stalled;
        *stalled = if rests { stalled.saturating_add(1) } else { 0 };
        course.so_far.stalled = *stalled >= STALLED_ROUNDS;
        last = course.end_round(Some(primal), &memory);
    }
}

/// The oracle's answers at w that are violated.
fn violated(problem: &Problem<'_>, pool: &Pool, w: &Weights) -> Result<Vec<Lacking>> {
    const PARTS: usize = 64;
    let parts = pool.map(ranges(problem.len(), PARTS), |range| {
        let mut scratch = OracleScratch::default();
        let mut found = Vec::new();
        for example in range.filter(|&i| problem.weight(i) > 0.0) {
            let h = problem.oracle(example, w, &mut scratch)?;
            if h > 0.0 {
                let rhs = problem.term(problem.loss(example, &scratch.y)).rhs;
                found.push(Lacking { share: h / rhs, example, y: scratch.y.clone() });
            }
        }
        Ok(found)
    });
    let mut found = Vec::new();
    for part in parts {
        found.append(&mut part?);
    }
    Ok(found)
}

fn push(problem: &Problem<'_>, qp: &mut Qp, lacking: &Lacking, lhs: &mut [f64], pool: &Pool) -> Result<()> {
    let i = lacking.example;
    let term = problem.term(problem.loss(i, &lacking.y));
    lhs.fill(0.0);
    problem.emit(i, &lacking.y, term.factor, &mut crate::features::Accumulate { sum: lhs, factor: 1.0 })?;
    // In f64: opposite cuts must cancel to the last digit to be told as a contradiction.
    let mut cut = Cut::exact(lhs, term.rhs);
    if let Some(metric) = problem.metric() {
        cut = cut.with_image(metric.image(lhs, pool));
    }
    qp.push(0, cut, pool)
}
