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
use super::stack::{Blocks, Example, Signed, Source};
use super::{
    DISCOUNTS, DualCoordinate, FIRST_DISCOUNT, Finish, LARGE, MOST_STEPS, SMALL, START_GAP, START_PASSES, Stall,
    mean_curvature, newton_looks,
};
use crate::error::Result;
use crate::features::Block;
use crate::memory::prefetch;
use crate::parallel::Pool;
use crate::problem::{Factors, Penalty, Problem};
use crate::solver::state::{Resumable, Writer, check, check_weights, is_sound};
use crate::solver::{Course, Settings, Status};
use crate::sparse::SparseView;
use crate::weights::Weights;

/// Passes of a turn in the first round; twice as many in each that follows, so often.
const FIRST_PASSES: u32 = 2;
const MOST_DOUBLINGS: u32 = 5;

/// So many labels take their turns before their weights are written down.
const BATCH: usize = 64;

/// The factors of a task whose labels have nothing to do with each other: sets without pairs, with a loss that adds up over
/// labels and a slack that adds up with it.
pub(in crate::solver) fn apart<'p>(problem: &'p Problem<'_>) -> Option<&'p dyn Factors> {
    let factored = problem.factors().filter(|factored| factored.sets().is_some())?;
    let adds_up = problem.formulation().adds_up();
    (adds_up && (0..problem.len()).all(|i| factored.factors(problem.place(i)) == 0)).then_some(factored)
}

/// The examples as all labels see them.
pub(super) struct Shared<'a> {
    phis: Vec<SparseView<'a>>,
    norms2: Vec<f64>,
    /// C c_i / n
    shares: Vec<f64>,
    entries: u64,
    /// By label: the examples in whose sets it is, ascending.
    having: Vec<Vec<u32>>,
    /// Number of coordinates of w, and where the labels stand in it: a slot each.
    dimension: usize,
    block: Block,
    /// Of an example in whose set a label is not, and of one in whose set it is.
    rhs: [f64; 2],
}

impl<'a> Shared<'a> {
    pub(super) fn new(problem: &Problem<'_>, factored: &'a dyn Factors) -> Self {
        let (n, share) = (problem.len(), problem.c_per_example());
        let mut shared = Self {
            phis: Vec::with_capacity(n),
            norms2: Vec::with_capacity(n),
            shares: (0..n).map(|i| share * problem.weight(i)).collect(),
            entries: 0,
            having: Vec::new(),
            dimension: problem.dimension(),
            block: Block { base: 0, rows: 0, width: 0 },
            rhs: [0, 1].map(|truth| problem.term(factored.cost(truth)).rhs),
        };
        let mut labels = Vec::new();
        for i in 0..n {
            let x = problem.place(i);
            factored.unary(x, 0, &mut |part| {
                shared.block = part.block;
                shared.norms2.push(part.phi.norm2());
                shared.entries += part.phi.len() as u64;
                shared.phis.push(part.phi);
            });
            factored.truth_labels(x, &mut labels);
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

    /// P of label k at its weights w, and the variables that would be theirs if they were the best: where they are not zero.
    fn label_at(&self, k: usize, w: &Weights) -> (f64, Vec<(u32, f64)>) {
        let (blocks, strength) = (self.of(k), Newton::<Signed<OneLabel<'_>>>::first_strength(self.largest_rhs()));
        let (mut v, mut room, mut a) = ([0.0], Default::default(), Vec::new());
        let mut primal = 0.5 * w.norm2();
        for i in 0..self.phis.len() {
            let example = blocks.example(i);
            blocks.violations(&example, w, &mut room, &mut v);
            primal += example.share * v[0].max(0.0);
            let own = example.share * (0.5 + strength * v[0]).clamp(0.0, 1.0);
            if own > 0.0 {
                a.push((i as u32, own));
            }
        }
        (primal, a)
    }

    fn largest_rhs(&self) -> f64 {
        self.rhs[0].max(self.rhs[1])
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
    looks: Looks,
    by_newton: bool,
}

/// The looks at examples of a turn.
struct Looks {
    taken: u64,
    /// So many may be taken.
    most: f64,
    /// More were wanted.
    is_cut: bool,
}

impl Looks {
    /// May so many more be taken? If not, the turn is cut short.
    fn allow(&mut self, more: u64) -> bool {
        self.is_cut |= (self.taken + more) as f64 > self.most;
        !self.is_cut
    }

    /// So many of those that are wanted may be taken.
    fn up_to(&mut self, wanted: f64) -> f64 {
        let left = (self.most - self.taken as f64).max(0.0);
        self.is_cut |= wanted > left;
        wanted.min(left)
    }
}

/// Where a run stands between two rounds, beside its labels and w.
#[derive(Serialize, Deserialize)]
struct Place {
    rounds: u32,
    stall: Stall,
    /// What C has been multiplied by since the variables were found, before the first round at it.
    growth: Option<f64>,
}

struct Run<'r> {
    solver: &'r DualCoordinate,
    shared: Shared<'r>,
    pool: &'r Pool,
    seed: u64,
    labels: Vec<Label>,
    w: Weights,
    place: Place,
}

/// Solves a problem whose labels are [`apart`].
pub(super) fn solve(
    solver: &DualCoordinate,
    shared: Shared<'_>,
    problem: &Problem<'_>,
    settings: &Settings,
    pool: &Pool,
    course: &mut Course<'_>,
) -> Result<Status> {
    let examples = shared.phis.len() as u64;
    let mut run = Run {
        solver,
        labels: (0..shared.having.len()).map(|k| shared.without_weights(k)).collect(),
        w: Weights::zeros(shared.dimension),
        shared,
        pool,
        seed: settings.seed,
        place: Place { rounds: 0, stall: Stall::default(), growth: None },
    };
    if let Some(mut saved) = course.resume(problem, pool)? {
        let (place, labels, w) = (saved.reader.take()?, saved.reader.take()?, saved.reader.take()?);
        run.restore(place, labels, w, saved.growth)?;
    } else if let Some(start) = &settings.warm_start {
        course.in_oracle(|| run.begin_at(start));
        course.so_far.oracle_calls += examples;
    }
    run.rounds(course)
}

impl Run<'_> {
    fn restore(&mut self, place: Place, labels: Vec<Label>, w: Weights, growth: Option<f64>) -> Result<()> {
        const ROUNDING: f64 = 1.0 + 1e-9;
        check(labels.len() == self.labels.len(), "labels")?;
        check(place.growth.is_none_or(|growth| growth > 0.0 && is_sound(growth)), "growth of C")?;
        let since = place.growth.unwrap_or(1.0) * growth.unwrap_or(1.0);
        let most = |i: u32| self.shared.shares.get(i as usize).map(|share| share / since);
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
            self.place.growth = Some(since);
        } else {
            (self.labels, self.w, self.place) = (labels, w, place);
        }
        Ok(())
    }

    /// Begins at these weights, where they are better than none: with the variables that would be theirs if they were the best,
    /// at the cap for examples within their margin and zero for those beyond, and something between near it.
    fn begin_at(&mut self, start: &Weights) {
        let Block { base, width, .. } = self.shared.block;
        let rows = || start.as_slice()[base as usize..].chunks_exact(width as usize);
        let all = (0..self.labels.len()).collect();
        let found = self.pool.map(all, |k| {
            let w = rows().map(|row| row[k]).collect::<Vec<_>>();
            self.shared.label_at(k, &Weights::from(w))
        });
        for (k, (primal, a)) in found.into_iter().enumerate() {
            let label = &mut self.labels[k];
            if primal < label.primal {
                (label.primal, label.a) = (primal, a);
                let own = self.w.as_mut_slice()[base as usize..].chunks_exact_mut(width as usize);
                own.zip(rows()).for_each(|(own, row)| own[k] = row[k]);
            }
        }
    }

    fn rounds(&mut self, course: &mut Course<'_>) -> Result<Status> {
        let mut decision = course.begin(self);
        loop {
            if let ControlFlow::Break(status) = decision {
                return Ok(status);
            }
            let known: f64 = self.labels.iter().map(|label| label.primal).sum();
            let enough = course.target_at(known) / self.labels.len() as f64;
            let limit = course.limit(self)?;
            let looks_of_a_pass = (self.labels.len() * self.shared.phis.len()) as f64;
            let most = limit.as_ref().map_or(f64::INFINITY, |(passes, _)| passes * looks_of_a_pass);
            let Looks { taken, is_cut, .. } = course.in_oracle(|| self.round(enough, most));
            course.so_far.oracle_calls += taken.div_ceil(self.labels.len() as u64);
            let primal: f64 = self.labels.iter().map(|label| label.primal).sum();
            course.bound(self.labels.iter().map(|label| label.dual).sum());
            course.offer(&self.w, primal);
            let support = self.labels.iter().map(|label| label.a.len()).sum();
            (course.so_far.working_set, course.so_far.support) = (support, support);
            self.place.rounds = self.place.rounds.saturating_add(1);
            self.place.stall.after(&mut course.so_far);
            decision = match limit.filter(|_| is_cut) {
                Some((_, began)) => course.end_cut_round(Some(primal), self, &began),
                None => course.end_round(Some(primal), self),
            };
        }
    }

    /// A turn of every label whose gap is not small enough, with so many looks at examples in all, at most.
    fn round(&mut self, enough: f64, most: f64) -> Looks {
        let is_open = |label: &Label| self.place.growth.is_some() || label.gap() > enough;
        let open: Vec<usize> = (0..self.labels.len()).filter(|&k| is_open(&self.labels[k])).collect();
        let mut looks = Looks { taken: 0, most, is_cut: false };
        for (batch, begins) in open.chunks(BATCH).zip((0..).step_by(BATCH)) {
            // What a label leaves is for those of later batches.
            let share = (most - looks.taken as f64) / (open.len() - begins) as f64;
            let turns = self.pool.map(batch.to_vec(), |k| self.turn(k, enough, share));
            for (&k, turn) in batch.iter().zip(turns) {
                looks.taken += turn.looks.taken;
                looks.is_cut |= turn.looks.is_cut;
                self.take(k, turn);
            }
        }
        self.place.growth = None;
        looks
    }

    /// A turn of label k, of at least a pass and the look that ends it, and else of `most` looks.
    fn turn(&self, k: usize, enough: f64, most: f64) -> Turn {
        let (blocks, n) = (self.shared.of(k), self.shared.phis.len());
        let mut a = vec![0.0; n];
        self.labels[k].a.iter().for_each(|&(i, own)| a[i as usize] = own);
        let (d, rounds) = (self.shared.block.rows as usize, self.place.rounds);
        let seed = self.seed.wrapping_add((u64::from(rounds) << 32) + k as u64);
        let mut coordinates = Coordinates::from_variables(&blocks, Penalty::Linear, d, seed, a);
        // The look that ends it is counted from the beginning.
        let mut looks = Looks { taken: n as u64, most: most.max(2.0 * n as f64), is_cut: false };
        if let Some(growth) = self.place.growth {
            coordinates.follow_c(growth);
        } else if rounds == 0 && self.labels[k].a.is_empty() {
            start_at_small_c(&mut coordinates, mean_curvature(&blocks), &mut looks);
        }
        let alone = Pool::new(1).expect("one thread is no pool");
        let by_newton = self.newton_is_due(k, &blocks) && looks.allow(n as u64);
        if by_newton && let Some((primal, dual)) = self.newton(&blocks, &mut coordinates, enough, &mut looks, &alone) {
            let Variables { a, w, .. } = coordinates.now;
            return Turn { a, w, primal, dual, discount: 1.0, looks, by_newton };
        }
        let (mut seen, mut pace, discount) = (0.0, Pace::default(), self.labels[k].discount);
        for _ in 0..FIRST_PASSES << rounds.min(MOST_DOUBLINGS) {
            if !looks.allow(coordinates.looks_of_a_pass()) {
                break;
            }
            let pass = coordinates.pass();
            seen = pass.gap;
            looks.taken += pass.looks;
            if discount * seen <= enough {
                break;
            }
            pace.after(&pass);
            if pace.crawls(enough / discount) {
                let climb = coordinates.climb(looks.up_to(pace.allowance()), &alone);
                looks.taken += climb.looks;
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

    /// Newton steps: P and D where they close the gap, else coordinate steps may go on from where these have come to.
    fn newton(
        &self,
        blocks: &Signed<OneLabel<'_>>,
        coordinates: &mut Coordinates<'_, Signed<OneLabel<'_>>>,
        enough: f64,
        looks: &mut Looks,
        alone: &Pool,
    ) -> Option<(f64, f64)> {
        let (n, d) = (self.shared.phis.len() as u64, self.shared.block.rows as usize);
        let strength = Newton::<Signed<OneLabel<'_>>>::first_strength(self.shared.largest_rhs());
        let mut newton = Newton::new(blocks, Penalty::Linear, strength, d);
        let Variables { a, w, .. } = &mut coordinates.now;
        for _ in 0..MOST_STEPS {
            let point = newton.look(a, w, alone);
            looks.taken += n;
            if point.primal - point.dual <= enough {
                newton.take_variables(a, alone);
                return Some((point.primal, point.dual));
            }
            if !looks.allow(n) {
                break;
            }
            if Newton::<Signed<OneLabel<'_>>>::is_near(&point, enough) {
                newton.recenter(a, alone);
            } else if newton.step(a, w, alone) {
                looks.taken += newton.looks();
            } else {
                break;
            }
        }
        newton.take_variables(a, alone);
        coordinates.rebuild();
        coordinates.wake_all();
        None
    }

    /// Takes note of a turn of label k: its variables, and its weights where they are better.
    fn take(&mut self, k: usize, turn: Turn) {
        let label = &mut self.labels[k];
        label.a = (0..).zip(turn.a).filter(|(_, a)| *a > 0.0).collect();
        (label.discount, label.without_newton) = (turn.discount, label.without_newton || turn.by_newton);
        label.spent = label.spent.saturating_add(turn.looks.taken);
        label.dual = label.dual.max(turn.dual);
        if turn.primal < label.primal {
            label.primal = turn.primal;
            let Block { base, width, .. } = self.shared.block;
            let rows = self.w.as_mut_slice()[base as usize..].chunks_exact_mut(width as usize);
            rows.zip(turn.w.as_slice()).for_each(|(row, &w)| row[k] = w);
        }
    }
}

/// Brings the variables near their caps where most will end there: a solution at small C, multiplied.
fn start_at_small_c(coordinates: &mut Coordinates<'_, Signed<OneLabel<'_>>>, mean: f64, looks: &mut Looks) {
    if mean <= LARGE {
        return;
    }
    coordinates.set_stage(SMALL / mean);
    loop {
        for _ in 0..START_PASSES {
            if !looks.allow(coordinates.looks_of_a_pass()) {
                break;
            }
            let seen = coordinates.pass();
            looks.taken += seen.looks;
            let (rhs, norm2) = coordinates.totals();
            if seen.gap <= START_GAP * (rhs - 0.5 * norm2) {
                break;
            }
        }
        if coordinates.raise_stage() {
            return;
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
