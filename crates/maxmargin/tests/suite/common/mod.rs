//! What the tests share: random small problems, toy tasks, exhaustive search, and a general QP solver as the referee.
#![allow(dead_code, unreachable_pub, reason = "every test file uses a part of it")]

pub mod alignments;
pub mod brackets;
pub mod data_sets;
pub mod kernel;
pub mod taxonomy;

use std::ops::{ControlFlow, Deref};

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus};
use maxmargin::Result;
use maxmargin::features::{Block, Collect, Sink};
use maxmargin::problem::{Formulation, Output, Penalty, Problem, Rescaling};
use maxmargin::solver::bcfw::{Bcfw, Order};
use maxmargin::solver::cutting_plane::{CuttingPlane, Placement};
use maxmargin::solver::dual_coordinate::{DualCoordinate, Finish};
use maxmargin::solver::frank_wolfe::FrankWolfe;
use maxmargin::solver::n_slack::{NSlack, Update};
use maxmargin::solver::perceptron::Perceptron;
use maxmargin::solver::subgradient::Subgradient;
use maxmargin::solver::{Observer, Progress, Settings, Solution, Solver, Stop};
use maxmargin::sparse::{SparseMatrix, SparseView, dot};
use maxmargin::task::{Factored, LossTerm, Task};
use maxmargin::tasks::multiclass::{Costs, Multiclass};
use maxmargin::weights::Weights;

/// Splitmix64: a few lines, the same numbers for ever.
pub struct Draw(pub u64);

impl Draw {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// In [-1, 1).
    pub fn signed(&mut self) -> f64 {
        2.0 * self.unit() - 1.0
    }

    /// In 0..n.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn weights(&mut self, d: usize, scale: f64) -> Weights {
        Weights::from((0..d).map(|_| scale * self.signed()).collect::<Vec<_>>())
    }

    /// `n` rows of `d` features, about a third of them zero.
    pub fn matrix(&mut self, n: usize, d: u32) -> SparseMatrix {
        let mut x = SparseMatrix::new();
        for _ in 0..n {
            let mut row: Vec<(u32, f32)> = (0..d).map(|j| (j, self.signed() as f32)).collect();
            row.retain(|_| self.below(3) > 0);
            x.push_row(row);
        }
        x.set_columns(d);
        x
    }

    pub fn labels(&mut self, n: usize, classes: u32) -> Vec<u32> {
        (0..n).map(|_| self.below(classes as usize) as u32).collect()
    }

    /// Costs from 0.5 to 3, not symmetric.
    /// Sets with about one label in three.
    pub fn sets(&mut self, n: usize, labels: u32) -> Vec<Vec<u32>> {
        (0..n).map(|_| (0..labels).filter(|_| self.below(3) == 0).collect()).collect()
    }

    pub fn costs(&mut self, classes: usize) -> Costs {
        let table = (0..classes * classes).map(|at| {
            let cost = 0.5 + 2.5 * self.unit();
            if at / classes == at % classes { 0.0 } else { cost }
        });
        Costs::table(classes, table.collect()).unwrap()
    }

    /// Example weights from 0.25 to 2.25.
    pub fn example_weights(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| 0.25 + 2.0 * self.unit()).collect()
    }
}

/// Labels that a hidden multiclass model gives, hence separable data; and the rows without ambiguity.
pub fn separable(draw: &mut Draw, n: usize, d: u32, classes: u32) -> (SparseMatrix, Vec<u32>) {
    let hidden = draw.weights((d * classes) as usize, 1.0);
    let block = Block { base: 0, rows: d, width: classes };
    let (mut x, mut y) = (SparseMatrix::new(), Vec::new());
    while y.len() < n {
        let one = draw.matrix(1, d);
        let mut scores = vec![0.0; classes as usize];
        hidden.scores(block, one.row(0), &mut scores);
        let best = maxmargin::task::first_max(&scores);
        let second = (0..scores.len()).filter(|&k| k != best).map(|k| scores[k]).fold(f64::NEG_INFINITY, f64::max);
        if scores[best] - second > 0.2 {
            x.push_row(one.row(0).iter());
            y.push(best as u32);
        }
    }
    x.set_columns(d);
    (x, y)
}

pub const PENALTIES: [Penalty; 3] = [Penalty::Linear, Penalty::Quadratic, Penalty::Hard];
pub const RESCALINGS: [Rescaling; 2] = [Rescaling::Margin, Rescaling::Slack];

pub fn formulation(c: f64, rescaling: Rescaling, penalty: Penalty) -> Formulation {
    Formulation { c, rescaling, penalty, ..Formulation::default() }
}

/// The formulations that the task's oracle can do exactly.
pub fn formulations(is_listed: bool) -> Vec<Formulation> {
    let mut all = Vec::new();
    for rescaling in RESCALINGS {
        for penalty in PENALTIES {
            let exact = is_listed || (rescaling == Rescaling::Margin && penalty != Penalty::Quadratic);
            if exact {
                all.push(Formulation { loss_scale: 1.5, ..formulation(4.0, rescaling, penalty) });
            }
        }
    }
    all
}

pub fn to_gap(epsilon: f64) -> Settings {
    Settings { stop: Some(Stop::Gap(epsilon)), ..Settings::default() }
}

pub fn to_relative_gap(r: f64) -> Settings {
    Settings { stop: Some(Stop::RelativeGap(r)), ..Settings::default() }
}

/// One of the solvers, with its own settings.
#[derive(Debug, Clone)]
pub enum Any {
    Cuts(CuttingPlane),
    NSlack(NSlack),
    Bcfw(Bcfw),
    FrankWolfe,
    Coordinates(DualCoordinate),
    Subgradient,
    Perceptron,
}

impl Any {
    fn solver(&self) -> &dyn Solver {
        match self {
            Any::Cuts(solver) => solver,
            Any::NSlack(solver) => solver,
            Any::Bcfw(solver) => solver,
            Any::FrankWolfe => &FrankWolfe,
            Any::Coordinates(solver) => solver,
            Any::Subgradient => &Subgradient,
            Any::Perceptron => &Perceptron,
        }
    }

    pub fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Solution {
        self.try_solve(problem, settings, observer).unwrap()
    }

    pub fn try_solve(
        &self,
        problem: &Problem<'_>,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Solution> {
        self.solver().solve(problem, settings, observer)
    }

    /// A gap that this solver reaches in reasonable time, or larger.
    pub fn stop(&self, gap: f64) -> Settings {
        to_gap(match self {
            Any::FrankWolfe => gap.max(0.1),
            Any::Subgradient => gap.max(0.02),
            _ => gap,
        })
    }
}

/// A problem with its task, inputs and true outputs, whose types the problem hides.
pub struct Typed<'a, T: Task> {
    problem: Problem<'a>,
    task: &'a T,
    inputs: &'a [T::Input<'a>],
    outputs: &'a [T::Output],
}

impl<'a, T: Task> Typed<'a, T> {
    /// As [`Problem::new`].
    pub fn new(
        task: &'a T,
        inputs: &'a [T::Input<'a>],
        outputs: &'a [T::Output],
        weights: Option<&'a [f64]>,
        formulation: Formulation,
    ) -> Result<Self> {
        let problem = Problem::new(task, inputs, outputs, weights, formulation)?;
        Ok(Self { problem, task, inputs, outputs })
    }

    pub fn task(&self) -> &'a T {
        self.task
    }

    /// The input of example i.
    pub fn input(&self, i: usize) -> T::Input<'a> {
        self.inputs[i]
    }

    /// The true output of example i.
    pub fn truth(&self, i: usize) -> &'a T::Output {
        &self.outputs[i]
    }

    /// Is y the true output of example i?
    pub fn is_truth(&self, i: usize, y: &Output) -> bool {
        y.get() == Some(self.truth(i))
    }
}

impl<'a, T: Task> Deref for Typed<'a, T> {
    type Target = Problem<'a>;

    fn deref(&self) -> &Problem<'a> {
        &self.problem
    }
}

/// A report, but for the seconds, and the weights: the same runs have the same bits.
pub fn bits_of(s: &Solution) -> Vec<u64> {
    let r = &s.report;
    let reals = [r.target, r.primal, r.dual, r.gap, r.passes].map(f64::to_bits);
    let counts = [r.rounds, r.oracle_calls, r.cache_hits, r.working_set as u64, r.support as u64, r.status as u64];
    let weights = s.weights.as_slice().iter().map(|w| w.to_bits());
    reals.into_iter().chain(counts).chain(weights).collect()
}

/// Stops a run that does not end: no test needs that many rounds.
pub fn patience() -> impl FnMut(&Progress) -> ControlFlow<()> {
    |progress| if progress.round < 5_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
}

pub fn cuts(groups: usize, cache: Option<u16>, placement: Placement) -> Any {
    Any::Cuts(CuttingPlane { groups, cache, placement, ..CuttingPlane::default() })
}

pub fn n_slack(update: Update) -> Any {
    Any::NSlack(NSlack { update, ..NSlack::default() })
}

/// Dual coordinates, with every way to the end.
pub fn dual_coordinates() -> [Any; 3] {
    [Finish::Fastest, Finish::Coordinates, Finish::Newton].map(|finish| Any::Coordinates(DualCoordinate { finish }))
}

/// Can dual coordinates solve it?
pub fn has_coordinates<T: Task>(problem: &Typed<'_, T>) -> bool {
    let Formulation { penalty, rescaling, .. } = problem.formulation();
    let is_apart = |factored: &dyn Factored<T>| factored.sets().is_some() && factored.factors(problem.input(0)) == 0;
    let has_labels = problem.task().factored().is_some_and(is_apart);
    let adds_up = penalty == Penalty::Linear && rescaling == Rescaling::Margin;
    penalty != Penalty::Hard && (problem.task().listed().is_some() || has_labels && adds_up)
}

pub fn bcfw(order: Order, cached_passes: u32, idle_passes: u32) -> Any {
    Any::Bcfw(Bcfw { order, cached_passes, idle_passes })
}

/// Block-coordinate Frank-Wolfe, with everything and with as little as possible; no hard margin.
pub fn bcfws() -> [Any; 3] {
    [Any::Bcfw(Bcfw::default()), bcfw(Order::Permutations, 0, 1), bcfw(Order::Gaps, 1, 3)]
}

/// The fast solvers for this number of examples that can do every penalty.
pub fn certified(n: usize) -> Vec<Any> {
    let mut all = Vec::new();
    for groups in [1, 2.min(n), (n - n / 4).max(1)] {
        for cache in [None, Some(0), Some(1), Some(10)] {
            for placement in [Placement::LineSearch, Placement::QpPoint] {
                all.push(cuts(groups, cache, placement));
            }
        }
    }
    for update in [Update::Batch(1), Update::Batch(5), Update::Batch(100), Update::OwnCuts] {
        all.push(n_slack(update));
    }
    all
}

/// A task that the tests can look through completely.
pub trait Exhaustive: Task {
    fn all(&self) -> Vec<Self::Output>;
}

impl Exhaustive for Multiclass {
    fn all(&self) -> Vec<u32> {
        (0..self.costs().classes() as u32).collect()
    }
}

impl Exhaustive for maxmargin::tasks::binary::Binary {
    fn all(&self) -> Vec<u32> {
        vec![0, 1]
    }
}

/// Multiclass that does not say that its outputs can be listed: drives the generic paths.
pub struct Unlisted(pub Multiclass);

impl Task for Unlisted {
    type Input<'a> = SparseView<'a>;
    type Output = u32;
    type Scratch = Vec<f64>;

    fn blocks(&self) -> &[Block] {
        self.0.blocks()
    }

    fn features(&self, x: SparseView<'_>, y: &u32, sink: &mut impl Sink) -> Result<()> {
        self.0.features(x, y, sink)
    }

    fn loss(&self, truth: &u32, y: &u32) -> f64 {
        self.0.loss(truth, y)
    }

    fn max_loss(&self, truth: &u32) -> f64 {
        self.0.max_loss(truth)
    }

    fn argmax(
        &self,
        w: &Weights,
        x: SparseView<'_>,
        loss: Option<LossTerm<'_, u32>>,
        scratch: &mut Vec<f64>,
        y: &mut u32,
    ) -> Result<()> {
        self.0.argmax(w, x, loss, scratch, y)
    }

    fn check(&self, x: SparseView<'_>, y: &u32) -> std::result::Result<(), String> {
        self.0.check(x, y)
    }
}

impl Exhaustive for Unlisted {
    fn all(&self) -> Vec<u32> {
        self.0.all()
    }
}

/// A chain of a few bits: x in slot b where bit b is set, one slot for each pair of neighbours, Hamming loss. Decoded by
/// looking at all outputs.
pub struct Bits {
    blocks: [Block; 2],
    bits: usize,
}

impl Bits {
    pub fn new(features: u32, bits: usize) -> Self {
        let emission = Block { base: 0, rows: features, width: bits as u32 };
        Self { blocks: [emission, Block { base: emission.len(), rows: 1, width: 4 }], bits }
    }

    pub fn labels(&self, draw: &mut Draw, n: usize) -> Vec<Vec<bool>> {
        (0..n).map(|_| (0..self.bits).map(|_| draw.below(2) == 1).collect()).collect()
    }

    fn output(&self, code: usize, y: &mut Vec<bool>) {
        y.clear();
        y.extend((0..self.bits).map(|b| code >> b & 1 == 1));
    }
}

impl Task for Bits {
    type Input<'a> = SparseView<'a>;
    type Output = Vec<bool>;
    type Scratch = Vec<bool>;

    fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    fn features(&self, x: SparseView<'_>, y: &Vec<bool>, sink: &mut impl Sink) -> Result<()> {
        for (b, _) in y.iter().enumerate().filter(|bit| *bit.1) {
            sink.part(self.blocks[0], b as u32, x, 1.0);
        }
        for pair in y.windows(2) {
            let slot = 2 * u32::from(pair[0]) + u32::from(pair[1]);
            sink.part(self.blocks[1], slot, SparseView::new(&[0], &[1.0]), 0.5);
        }
        Ok(())
    }

    fn loss(&self, truth: &Vec<bool>, y: &Vec<bool>) -> f64 {
        truth.iter().zip(y).filter(|(a, b)| a != b).count() as f64
    }

    fn max_loss(&self, truth: &Vec<bool>) -> f64 {
        truth.len() as f64
    }

    fn argmax(
        &self,
        w: &Weights,
        x: SparseView<'_>,
        loss: Option<LossTerm<'_, Vec<bool>>>,
        trial: &mut Vec<bool>,
        y: &mut Vec<bool>,
    ) -> Result<()> {
        let mut best = f64::NEG_INFINITY;
        for code in 0..1 << self.bits {
            self.output(code, trial);
            let value = self.score(w, x, trial)? + loss.as_ref().map_or(0.0, |l| l.weight * self.loss(l.truth, trial));
            if value > best {
                best = value;
                y.clone_from(trial);
            }
        }
        Ok(())
    }

    fn check(&self, _: SparseView<'_>, y: &Vec<bool>) -> std::result::Result<(), String> {
        if y.len() == self.bits { Ok(()) } else { Err(format!("{} bits instead of {}", y.len(), self.bits)) }
    }
}

impl Exhaustive for Bits {
    fn all(&self) -> Vec<Vec<bool>> {
        let mut all = vec![Vec::new(); 1 << self.bits];
        all.iter_mut().enumerate().for_each(|(code, y)| self.output(code, y));
        all
    }
}

/// One constraint `<w, lhs> >= rhs - xi_i`, written out from the definitions, apart from the library's own `Term`.
pub struct Constraint {
    pub lhs: Vec<f64>,
    pub rhs: f64,
}

pub fn psi<T: Task>(task: &T, x: T::Input<'_>, y: &T::Output) -> Vec<f64> {
    let mut collect = Collect::default();
    task.features(x, y, &mut collect).unwrap();
    let mut dense = vec![0.0; task.dimension()];
    for &(j, v) in collect.merged() {
        dense[j as usize] += v;
    }
    dense
}

/// The constraints of example i, of all outputs but the truth.
pub fn constraints<T: Exhaustive>(problem: &Typed<'_, T>, i: usize) -> Vec<Constraint> {
    let (task, formulation) = (problem.task(), problem.formulation());
    let (x, truth) = (problem.input(i), problem.truth(i));
    let at_truth = psi(task, x, truth);
    let others = task.all().into_iter().filter(|y| y != truth);
    others
        .map(|y| {
            let mut loss = formulation.loss_scale * task.loss(truth, &y);
            if formulation.penalty == Penalty::Quadratic {
                loss = loss.sqrt();
            }
            let factor = if formulation.rescaling == Rescaling::Slack { loss } else { 1.0 };
            let lhs = at_truth.iter().zip(psi(task, x, &y)).map(|(a, b)| factor * (a - b)).collect();
            Constraint { lhs, rhs: loss }
        })
        .collect()
}

/// H of example i by exhaustive search.
pub fn worst<T: Exhaustive>(problem: &Typed<'_, T>, i: usize, w: &Weights) -> f64 {
    constraints(problem, i).iter().map(|c| c.rhs - dot(&c.lhs, w.as_slice())).fold(0.0, f64::max)
}

/// P by exhaustive search, linear and quadratic slack.
pub fn objective<T: Exhaustive>(problem: &Typed<'_, T>, w: &Weights) -> f64 {
    let slack = |h: f64| if problem.formulation().penalty == Penalty::Quadratic { 0.5 * h * h } else { h };
    let sum: f64 = (0..problem.len()).map(|i| problem.weight(i) * slack(worst(problem, i, w))).sum();
    0.5 * dot(w.as_slice(), w.as_slice()) + problem.formulation().c / problem.len() as f64 * sum
}

/// The optimum by an interior-point method on the n-slack primal with all constraints; None where there is none.
///
/// ```text
/// min 1/2 |w|^2 + (C/n) sum c_i xi_i    or   + (C/2n) sum c_i xi_i^2    or no xi
/// s.t. <w, lhs> >= rhs - xi_i,  xi_i >= 0
/// ```
pub fn optimum<T: Exhaustive>(problem: &Typed<'_, T>) -> Option<f64> {
    let (n, d) = (problem.len(), problem.dimension());
    let Formulation { c, penalty, .. } = problem.formulation();
    let slacks = if penalty == Penalty::Hard { 0 } else { n };
    let mut q = vec![0.0; d + slacks];
    let mut curvature = vec![1.0; d];
    for i in 0..slacks {
        let share = c * problem.weight(i) / n as f64;
        q[d + i] = if penalty == Penalty::Linear { share } else { 0.0 };
        curvature.push(if penalty == Penalty::Quadratic { share } else { 0.0 });
    }
    // Clarabel's form: A x + s = b, s >= 0.
    let (mut rows, mut b) = (Vec::new(), Vec::new());
    for i in (0..n).filter(|&i| problem.weight(i) > 0.0) {
        for constraint in constraints(problem, i) {
            let mut row: Vec<f64> = constraint.lhs.iter().map(|v| -v).collect();
            row.resize(d + slacks, 0.0);
            if slacks > 0 {
                row[d + i] = -1.0;
            }
            rows.push(row);
            b.push(-constraint.rhs);
        }
    }
    for i in 0..slacks {
        let mut row = vec![0.0; d + slacks];
        row[d + i] = -1.0;
        rows.push(row);
        b.push(0.0);
    }
    let p: Vec<Vec<f64>> =
        (0..d + slacks).map(|i| (0..d + slacks).map(|j| if i == j { curvature[i] } else { 0.0 }).collect()).collect();
    let settings = DefaultSettings {
        verbose: false,
        tol_gap_abs: 1e-11,
        tol_gap_rel: 1e-11,
        tol_feas: 1e-11,
        max_iter: 500,
        ..DefaultSettings::default()
    };
    let cones = [NonnegativeConeT(b.len())];
    let mut solver =
        DefaultSolver::new(&CscMatrix::from(&p), &q, &CscMatrix::from(&rows), &b, &cones, settings).unwrap();
    solver.solve();
    match solver.solution.status {
        SolverStatus::Solved | SolverStatus::AlmostSolved => Some(solver.solution.obj_val),
        SolverStatus::PrimalInfeasible | SolverStatus::AlmostPrimalInfeasible => None,
        status => panic!("the referee gives up: {status:?}"),
    }
}

/// The bytes with a change, and a checksum that fits.
pub fn forged(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut forged = bytes[..bytes.len() - 4].to_vec();
    change(&mut forged);
    forged.extend(crc32fast::hash(&forged).to_le_bytes());
    forged
}

/// What does not fit where a number is read.
pub const NUMBERS: [f64; 8] = [f64::NAN, f64::INFINITY, 1e308, -1e99, 1e50, 1e-308, -1.0, 0.0];
