//! Sets of labels without pairs: every label is a problem of two classes of its own, and labels are solved side by side.
//!
//! ```text
//! P(w) = sum_k [ 1/2 |w_k|^2 + sum_i U_i max(0, rhs - y_ik <w_k, phi_i>) ],   y_ik = 1 where k is in the set of i, else -1
//! ```
//!
//! In a round every label that still has a gap to close takes a turn: some passes of coordinate steps among the examples that
//! do not rest, and a look at all of them, by which P and D of the label are known. Between its turns a label keeps the
//! variables that are not zero, which are few, and its weights at the least P so far.

use std::borrow::Cow;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use super::coordinates::{Coordinates, Variables};
use super::newton::Newton;
use super::pace::Pace;
use super::stack::{Example, Signed, Source};
use super::{
    DISCOUNTS, DualCoordinate, FIRST_DISCOUNT, Finish, LARGE, MOST_STEPS, SMALL, START_GAP, START_PASSES, Stall,
    mean_curvature, newton_looks,
};
use crate::error::Result;
use crate::features::Block;
use crate::memory::prefetch;
use crate::parallel::Pool;
use crate::problem::{Penalty, Problem};
use crate::solver::state::{Resumable, Writer, check, check_weights, is_sound};
use crate::solver::{Course, Settings, Status};
use crate::sparse::SparseView;
use crate::task::{Factored, Task};
use crate::weights::Weights;

/// Passes of a turn in the first round; twice as many in each that follows, so often.
const FIRST_PASSES: u32 = 2;
const MOST_DOUBLINGS: u32 = 5;

/// So many labels take their turns before their weights are written down.
const BATCH: usize = 64;

/// The factors of a task whose labels have nothing to do with each other: sets without pairs, with a loss that adds up over
/// labels and a slack that adds up with it.
pub(in crate::solver) fn apart<'p, T: Task>(problem: &Problem<'p, T>) -> Option<&'p dyn Factored<T>> {
    let factored = problem.task().factored().filter(|factored| factored.sets().is_some())?;
    let adds_up = problem.formulation().adds_up();
    (adds_up && (0..problem.len()).all(|i| factored.factors(problem.input(i)) == 0)).then_some(factored)
}

/// The examples as all labels see them.
struct Shared<'a> {
    phis: Vec<SparseView<'a>>,
    norms2: Vec<f64>,
    /// C c_i / n
    shares: Vec<f64>,
    entries: u64,
    /// By label: the examples in whose sets it is, ascending.
    having: Vec<Vec<u32>>,
    /// Where the labels stand in w: a slot each.
    block: Block,
    /// Of an example in whose set a label is not, and of one in whose set it is.
    rhs: [f64; 2],
}

impl<'a> Shared<'a> {
    fn new<T: Task>(problem: &Problem<'a, T>, factored: &dyn Factored<T>) -> Self {
        let (n, share) = (problem.len(), problem.formulation().c / problem.len() as f64);
        let mut shared = Self {
            phis: Vec::with_capacity(n),
            norms2: Vec::with_capacity(n),
            shares: (0..n).map(|i| share * problem.weight(i)).collect(),
            entries: 0,
            having: Vec::new(),
            block: Block { base: 0, rows: 0, width: 0 },
            rhs: [0, 1].map(|truth| problem.term(factored.cost(truth)).rhs),
        };
        let mut labels = Vec::new();
        for i in 0..n {
            let x = problem.input(i);
            factored.unary(x, 0, &mut |part| {
                shared.block = part.block;
                shared.norms2.push(part.phi.norm2());
                shared.entries += part.phi.len() as u64;
                shared.phis.push(part.phi);
            });
            factored.labels(x, problem.truth(i), &mut labels);
            shared.having.resize(labels.len(), Vec::new());
            for (having, _) in shared.having.iter_mut().zip(&labels).filter(|(_, label)| **label == 1) {
                having.push(i as u32);
            }
        }
        shared
    }

    /// Label k before its first turn.
    fn without_weights(&self, k: usize) -> Label {
        let with: f64 = self.having[k].iter().map(|&i| self.shares[i as usize]).sum();
        let all: f64 = self.shares.iter().sum();
        let primal = self.rhs[1] * with + self.rhs[0] * (all - with);
        Label { a: Vec::new(), primal, dual: 0.0, discount: FIRST_DISCOUNT, spent: 0, without_newton: false }
    }

    /// The examples as label k sees them.
    fn of(&self, k: usize) -> Signed<OneLabel<'_>> {
        let mut has = vec![false; self.phis.len()];
        self.having[k].iter().for_each(|&i| has[i as usize] = true);
        Signed::of(OneLabel { shared: self, has }, self.block.rows, self.rhs)
    }
}

/// The examples as one label sees them.
struct OneLabel<'s> {
    shared: &'s Shared<'s>,
    has: Vec<bool>,
}

impl Source for OneLabel<'_> {
    fn len(&self) -> usize {
        self.has.len()
    }

    fn example(&self, i: usize) -> Example<'_> {
        let Shared { phis, norms2, shares, .. } = self.shared;
        Example { phi: phis[i], norm2: norms2[i], share: shares[i], truth: usize::from(self.has[i]) }
    }

    fn prefetch(&self, i: usize) {
        prefetch(&self.shared.phis[i]);
        prefetch(&self.shared.norms2[i]);
    }

    fn entries(&self) -> u64 {
        self.shared.entries
    }

    fn share(&self, i: usize) -> f64 {
        self.shared.shares[i]
    }
}

/// What a label keeps between its turns.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Label {
    /// Examples with their dual variables, where these are not zero.
    a: Vec<(u32, f64)>,
    /// P of its weights, and the best bound so far.
    primal: f64,
    dual: f64,
    /// How much smaller its gap was than the one that its last pass saw on its way.
    discount: f64,
    /// Looks at examples that its turns have taken.
    spent: u64,
    /// Newton steps have come to their end: they are not tried again.
    without_newton: bool,
}

impl Label {
    fn gap(&self) -> f64 {
        self.primal - self.dual
    }
}

/// What comes of a turn.
struct Turn {
    a: Vec<f64>,
    w: Weights,
    primal: f64,
    dual: f64,
    discount: f64,
    looks: u64,
    by_newton: bool,
}

/// Where a run stands between two rounds, beside its labels and w.
#[derive(Serialize, Deserialize)]
struct Place {
    rounds: u32,
    stall: Stall,
}

struct Run<'r> {
    solver: &'r DualCoordinate,
    shared: Shared<'r>,
    pool: &'r Pool,
    seed: u64,
    labels: Vec<Label>,
    w: Weights,
    /// What C has been multiplied by since the variables were found.
    growth: Option<f64>,
    place: Place,
}

/// Solves a problem whose labels are [`apart`].
pub(super) fn solve<T: Task>(
    solver: &DualCoordinate,
    problem: &Problem<'_, T>,
    factored: &dyn Factored<T>,
    settings: &Settings,
    course: &mut Course<'_>,
) -> Result<Status> {
    let pool = Pool::new(settings.threads)?;
    let shared = Shared::new(problem, factored);
    let mut run = Run {
        solver,
        labels: (0..shared.having.len()).map(|k| shared.without_weights(k)).collect(),
        shared,
        pool: &pool,
        seed: settings.seed,
        w: problem.zero(),
        growth: None,
        place: Place { rounds: 0, stall: Stall::default() },
    };
    if let Some(mut saved) = course.resume(problem, &pool)? {
        let (place, labels, w) = (saved.reader.take()?, saved.reader.take()?, saved.reader.take()?);
        run.restore(place, labels, w, saved.growth)?;
    } else if let Some(start) = &settings.warm_start {
        course.offer_exact(problem, start, &pool)?;
    }
    run.rounds(course)
}

impl Run<'_> {
    fn restore(&mut self, place: Place, labels: Vec<Label>, w: Weights, growth: Option<f64>) -> Result<()> {
        const ROUNDING: f64 = 1.0 + 1e-9;
        check(labels.len() == self.labels.len(), "labels")?;
        let most = |i: u32| self.shared.shares.get(i as usize).map(|share| share / growth.unwrap_or(1.0));
        for label in &labels {
            check(label.a.is_sorted_by(|a, b| a.0 < b.0), "examples of a label")?;
            let is_held = |&(i, a): &(u32, f64)| a > 0.0 && most(i).is_some_and(|most| a <= ROUNDING * most);
            check(label.a.iter().all(is_held), "dual variables")?;
            check(label.primal >= 0.0 && is_sound(label.dual), "primal and dual of a label")?;
            check(label.discount >= 0.0 && label.discount <= DISCOUNTS.end, "discount")?;
        }
        check_weights(&w, self.w.len())?;
        check(w.all(is_sound), "weights")?;
        if growth.is_some() {
            for (label, saved) in self.labels.iter_mut().zip(labels) {
                label.a = saved.a;
            }
        } else {
            (self.labels, self.w, self.place) = (labels, w, place);
        }
        self.growth = growth;
        Ok(())
    }

    fn rounds(&mut self, course: &mut Course<'_>) -> Result<Status> {
        let mut decision = course.begin(self);
        loop {
            if let ControlFlow::Break(status) = decision {
                return Ok(status);
            }
            let known: f64 = self.labels.iter().map(|label| label.primal).sum();
            let enough = course.target_at(known) / self.labels.len() as f64;
            let looks = course.in_oracle(|| self.round(enough));
            course.so_far.oracle_calls += looks.div_ceil(self.labels.len() as u64);
            let primal: f64 = self.labels.iter().map(|label| label.primal).sum();
            course.bound(self.labels.iter().map(|label| label.dual).sum());
            course.offer(&self.w, primal);
            let support = self.labels.iter().map(|label| label.a.len()).sum();
            (course.so_far.working_set, course.so_far.support) = (support, support);
            self.place.rounds = self.place.rounds.saturating_add(1);
            self.place.stall.after(&mut course.so_far);
            decision = course.end_round(Some(primal), self);
        }
    }

    /// A turn of every label whose gap is not small enough. Returns the looks at examples.
    fn round(&mut self, enough: f64) -> u64 {
        let is_open = |label: &Label| self.growth.is_some() || label.gap() > enough;
        let open: Vec<usize> = (0..self.labels.len()).filter(|&k| is_open(&self.labels[k])).collect();
        let mut looks = 0;
        for batch in open.chunks(BATCH) {
            let turns = self.pool.map(batch.to_vec(), |k| self.turn(k, enough));
            for (&k, turn) in batch.iter().zip(turns) {
                looks += turn.looks;
                self.take(k, turn);
            }
        }
        self.growth = None;
        looks
    }

    fn turn(&self, k: usize, enough: f64) -> Turn {
        let (blocks, n) = (self.shared.of(k), self.shared.phis.len());
        let mut a = vec![0.0; n];
        self.labels[k].a.iter().for_each(|&(i, own)| a[i as usize] = own);
        let (d, rounds) = (self.shared.block.rows as usize, self.place.rounds);
        let seed = self.seed.wrapping_add((u64::from(rounds) << 32) + k as u64);
        let mut coordinates = Coordinates::from_variables(&blocks, Penalty::Linear, d, seed, a);
        let mut looks = n as u64;
        if let Some(growth) = self.growth {
            coordinates.follow_c(growth);
        } else if rounds == 0 {
            looks += start_at_small_c(&mut coordinates, mean_curvature(&blocks));
        }
        let alone = Pool::new(1).expect("one thread is no pool");
        let by_newton = self.newton_is_due(k, &blocks);
        if by_newton {
            let (found, taken) = self.newton(&blocks, &mut coordinates, enough, &alone);
            looks += taken;
            if let Some((primal, dual)) = found {
                let Variables { a, w, .. } = coordinates.now;
                return Turn { a, w, primal, dual, discount: 1.0, looks, by_newton };
            }
        }
        let (mut seen, mut pace, discount) = (0.0, Pace::default(), self.labels[k].discount);
        for _ in 0..FIRST_PASSES << rounds.min(MOST_DOUBLINGS) {
            let pass = coordinates.pass();
            (seen, looks) = (pass.gap, looks + pass.looks);
            if discount * seen <= enough {
                break;
            }
            pace.after(&pass);
            if pace.crawls(enough / discount) {
                let climb = coordinates.climb(pace.allowance(), &alone);
                looks += climb.looks;
                pace.climbed(climb);
            }
        }
        let exact = coordinates.certify(&alone);
        let discount = super::discount(exact.primal - exact.dual, seen);
        let Variables { a, w, .. } = coordinates.now;
        Turn { a, w, primal: exact.primal, dual: exact.dual, discount, looks, by_newton }
    }

    /// Have coordinate steps of label k taken as long as Newton steps would?
    fn newton_is_due(&self, k: usize, blocks: &Signed<OneLabel<'_>>) -> bool {
        let (label, d) = (&self.labels[k], self.shared.block.rows as usize);
        let is_worth_it = || self.solver.finish == Finish::Newton || label.spent as f64 > newton_looks(blocks, d);
        !label.without_newton && self.solver.newton_fits(d) && is_worth_it()
    }

    /// Newton steps: P and D where they close the gap, else coordinate steps may go on from where these have come to; and looks.
    fn newton(
        &self,
        blocks: &Signed<OneLabel<'_>>,
        coordinates: &mut Coordinates<'_, Signed<OneLabel<'_>>>,
        enough: f64,
        alone: &Pool,
    ) -> (Option<(f64, f64)>, u64) {
        let (n, d) = (self.shared.phis.len() as u64, self.shared.block.rows as usize);
        let strength = Newton::<Signed<OneLabel<'_>>>::first_strength(self.shared.rhs[0].max(self.shared.rhs[1]));
        let mut newton = Newton::new(blocks, Penalty::Linear, strength, d);
        let Variables { a, w, .. } = &mut coordinates.now;
        let mut looks = 0;
        for _ in 0..MOST_STEPS {
            let point = newton.look(a, w, alone);
            looks += n;
            if point.primal - point.dual <= enough {
                newton.take_variables(a, alone);
                return (Some((point.primal, point.dual)), looks);
            }
            if Newton::<Signed<OneLabel<'_>>>::is_near(&point, enough) {
                newton.recenter(a, alone);
            } else if newton.step(a, w, alone) {
                looks += newton.looks();
            } else {
                break;
            }
        }
        newton.take_variables(a, alone);
        coordinates.rebuild();
        coordinates.wake_all();
        (None, looks)
    }

    /// Takes note of a turn of label k: its variables, and its weights where they are better.
    fn take(&mut self, k: usize, turn: Turn) {
        let label = &mut self.labels[k];
        label.a = (0..).zip(turn.a).filter(|(_, a)| *a > 0.0).collect();
        (label.discount, label.without_newton) = (turn.discount, label.without_newton || turn.by_newton);
        label.spent = label.spent.saturating_add(turn.looks);
        label.dual = label.dual.max(turn.dual);
        if turn.primal < label.primal {
            label.primal = turn.primal;
            let Block { base, width, .. } = self.shared.block;
            let rows = self.w.as_mut_slice()[base as usize..].chunks_exact_mut(width as usize);
            rows.zip(turn.w.as_slice()).for_each(|(row, &w)| row[k] = w);
        }
    }
}

/// Brings the variables near their caps where most will end there: a solution at small C, multiplied. Returns the looks.
fn start_at_small_c(coordinates: &mut Coordinates<'_, Signed<OneLabel<'_>>>, mean: f64) -> u64 {
    if mean <= LARGE {
        return 0;
    }
    coordinates.set_stage(SMALL / mean);
    let mut looks = 0;
    loop {
        for _ in 0..START_PASSES {
            let seen = coordinates.pass();
            looks += seen.looks;
            let (rhs, norm2) = coordinates.totals();
            if seen.gap <= START_GAP * (rhs - 0.5 * norm2) {
                break;
            }
        }
        if coordinates.raise_stage() {
            return looks;
        }
    }
}

impl Resumable for Run<'_> {
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.place)?;
        out.put(&self.labels)?;
        out.put(&self.w)
    }

    fn weights(&self) -> Option<Cow<'_, Weights>> {
        Some(Cow::Borrowed(&self.w))
    }
}
