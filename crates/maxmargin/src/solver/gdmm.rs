//! Greedy direction method of multipliers: training factor by factor (Yen, Huang, Zhong, Zhang, Ravikumar, Dhillon 2016).
//!
//! ```text
//! max  sum_v cost_v b_v(wrong labels) - 1/2 |w|^2,   w = sum over variables and factors of U phi(truth) - sum_l b(l) phi(l)
//! b_v, b_f >= 0 with sum U = C c_i / n each,   M_jf b_f = b_j  for every variable j of a factor f
//! ```
//!
//! That is the dual (10) of the paper, with b = U at the truth less the paper's alpha. It is taken block by block on
//!
//! ```text
//! 1/2 |w|^2 - sum_v cost b_v + rho/2 sum_jf |M_jf b_f - b_j + lambda_jf|^2
//! ```
//!
//! and after each visit `lambda_jf += eta (M_jf b_f - b_j)`. A block is a variable or a factor. It holds the few labels that have,
//! or had, mass. A visit looks for the best label outside, the factorwise oracle, takes it in where it is better than all that
//! are held, and solves the block over them by exact pair steps.
//!
//! **Turns.** A block alone can move only as far as disagreement may cost. So before any block is visited variables turn together with
//! their factors ([`turn`]): all stay in agreement, and steps are as long as the dual itself allows. That is not in the paper.
//!
//! **Oracles.** A variable with many labels looks at those that have weights with its features, where these are kept in short
//! rows ([`look`]), else at one part of them, in each pass at another, and at those that its messages favour. A factor that is
//! a table over two large domains asks the orders of its scores ([`ordered`]): the best pair is one where both labels have
//! messages, or one has, or none. Of sets only few labels are variables at all ([`sets`]). All others look at every label.
//!
//! **What is known of the result.** While blocks disagree, the value of the dual is an estimate. But there is a point nearby
//! where they agree ([`agreement`]), whose value is a bound. And messages cancel: the sum of the blocks' maxima bounds the loss of
//! the linear programming relaxation, hence on trees the loss itself, without any decoding. So now and then it is looked
//! whether the gap between the two is small enough.

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

use serde::{Deserialize, Serialize};

use super::average::Average;
use super::permutation::Permutation;
use super::rough::Rough;
use super::state::{Resumable, Writer};
use super::{Course, Observer, Settings, Solution, Solver, Status};
use crate::error::{Error, Result};
use crate::features::Block as Place;
use crate::numeric::square;
use crate::parallel::{Pool, ranges};
use crate::problem::{Factors, Problem};
use crate::task::Sets;
use crate::weights::Weights;

mod agreement;
mod away;
mod block;
mod look;
mod multipliers;
mod ordered;
mod outputs;
mod position;
mod restore;
mod sets;
mod structure;
mod turn;
mod visit;

use away::Corner;
use block::Block;
use position::{Phase, Position};
use visit::{Few, Orders, VisitScratch};

/// How factorwise oracles look for labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Oracle {
    /// In less time than there are labels, where there are many.
    #[default]
    Sublinear,
    /// At every label.
    Brute,
}

/// How the masses of the blocks are moved between two steps of the multipliers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Inner {
    /// Variables turn together with their factors ([`turn`]), which keeps all blocks in agreement. When that comes to an end,
    /// outputs are decoded where that is quick and exact ([`outputs`]); else, and of sets from the beginning, it goes on by blocks.
    #[default]
    Turns,
    /// Block by block, as far as each allows. Of sets only blocks of labels that may come in are visited: the greedy block
    /// coordinates of the paper's Algorithm 3.
    Blocks,
    /// All blocks at once, by a step of Frank-Wolfe or away from a corner: its Algorithm 2.
    AwaySteps,
}

/// Greedy direction method of multipliers, and soft-bcfw, which is the same without multipliers.
#[derive(Debug, Clone)]
pub struct Gdmm {
    /// rho > 0, over C / n: what disagreement costs. In these units a message about a label on which two blocks disagree with all
    /// their mass is rho, to be compared with losses and scores, whatever C is. On loops, with multipliers, it counts as many
    /// times as C / n times the mean of |phi|^2 where that is above 1: by so much a block's mass moves its own scores, and
    /// beside these a message would be nothing.
    pub rho: f64,
    /// eta >= 0: the step of the multipliers; 0: soft-bcfw.
    pub eta: f64,
    /// nu: a variable's labels are cut into so many parts; None: parts of [`PART`] labels, or in short rows one.
    pub parts: Option<usize>,
    /// How labels are looked for.
    pub oracle: Oracle,
    /// How masses are moved.
    pub inner: Inner,
    /// Ends only when the gap that is asked for is proven.
    pub certify: bool,
}

impl Default for Gdmm {
    fn default() -> Self {
        Self { rho: 1.0, eta: 1.0, parts: None, oracle: Oracle::default(), inner: Inner::default(), certify: false }
    }
}

/// Labels in a part.
pub const PART: usize = 64;

/// Domains up to here are looked at as a whole: their scores are few contiguous numbers.
const SMALL: usize = 2 * PART;

impl Gdmm {
    /// The block of w that is kept in short rows, if any: where variables have many labels and the task can have it so.
    ///
    /// `block`: what the task [can score with](crate::task::Factored::short_rows).
    pub fn short_rows(&self, block: Option<Place>) -> Option<Place> {
        block.filter(|block| self.inner != Inner::AwaySteps && block.width as usize > SMALL)
    }

    /// Into how many parts so many labels are cut.
    fn parts_of(&self, labels: usize) -> usize {
        match (self.oracle, self.parts) {
            (Oracle::Brute, _) => 1,
            (Oracle::Sublinear, Some(parts)) => parts.min(labels),
            (Oracle::Sublinear, None) if labels <= SMALL => 1,
            (Oracle::Sublinear, None) => labels.div_ceil(PART),
        }
    }
}

/// Variables and factors of all examples: about 100 bytes each.
const MOST_BLOCKS: usize = 1 << 25;

/// Weights that are averaged at most: 2 GB of them.
const MOST_AVERAGED: usize = 1 << 28;

/// Passes after which training ends where the user names no limit.
const PASSES: f64 = 200.0;

/// What the points before a pass count for in the mean, beside what they did: they are far behind, but no point alone is good.
const OLD: f64 = 0.3;

/// The training loss is estimated on so many examples; fewer where decoding them takes long.
const LOOKED_AT: Range<usize> = 10..200;

/// Up to so many pairs of labels in all examples the loss is decoded whenever it is looked whether the gap is proven: some seconds.
const QUICK_PAIRS: f64 = 2e10;

/// Up to so many labels as many as can be: decoding takes as long as there are pairs of labels.
const QUICK: usize = 500;

/// So often in a row a proven gap that does not fall means that it will not: from a look that finds no fall to the next there are
/// twice as many passes.
const FUTILE: u32 = 8;
const FALL: f64 = 0.99;

/// The first look at whether the gap is proven; it takes about as long as a look at all labels of all variables.
const FIRST_CHECK: usize = 8;

impl Solver for Gdmm {
    fn name(&self) -> &'static str {
        if self.eta > 0.0 { "gdmm" } else { "soft-bcfw" }
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
        let name = self.name();
        super::refuse_kernel(name, problem)?;
        let Some(factored) = problem.factors() else {
            let rule = format!(
                "{name} is for outputs that are labels of variables, with a loss that adds up over them: tags (first order, \
                     no constraints, Hamming loss), label sets (Hamming loss) and graphs"
            );
            return Err(Error::setting("solver", rule));
        };
        if !problem.formulation().adds_up() {
            return Err(Error::setting("solver", format!("{name} is for margin rescaling and linear slack")));
        }
        if !(self.rho > 0.0 && self.rho.is_finite()) {
            return Err(Error::setting("rho", format!("must be positive and finite, not {}", self.rho)));
        }
        if !(0.0..=2.0).contains(&self.eta) {
            return Err(Error::setting(
                "eta",
                format!("must be from 0 to 2, where multipliers settle, not {}", self.eta),
            ));
        }
        if self.parts == Some(0) {
            return Err(Error::setting("fmo-parts", "must be at least 1"));
        }
        if settings.warm_start.is_some() {
            return Err(Error::setting("warm-start", format!("{name} begins without weights")));
        }
        let blocks = |i: usize| factored.variables(problem.place(i)) + factored.factors(problem.place(i));
        if (factored.sets().is_none() || self.inner == Inner::AwaySteps)
            && (0..problem.len()).map(blocks).sum::<usize>() > MOST_BLOCKS
        {
            let rule = format!(
                "{name} keeps every variable and factor of every example, and these are more than {MOST_BLOCKS}; take bcfw"
            );
            return Err(Error::setting("solver", rule));
        }
        let zero =
            self.short_rows(factored.short_rows()).map_or_else(|| problem.zero(), Weights::zeros_with_short_rows);
        let mut course = Course::from_weights(self, problem, settings, observer, zero.clone())?.with_upper_primal();
        if !self.certify {
            course = course.with_estimate().at_most_passes(PASSES);
        }
        let pool = Pool::new(settings.threads)?;
        let mut run = Run::new(self, problem, factored, zero, settings.seed);
        if run.has_loops {
            // Even where a decoder, which sees two factors on the same variables as one, is exact.
            course.cannot_prove();
        }
        if let Some(saved) = course.resume(problem, &pool)? {
            run.restore(saved)?;
        }
        if !(self.certify || course.converged()) {
            // The last point is the answer, whatever P is.
            course.so_far.primal = f64::INFINITY;
        }
        let status = run.rounds(&mut course, &pool)?;
        // Decoding sets may take far longer than was allowed.
        let is_late = matches!(status, Status::MaxSeconds | Status::Interrupted) && !self.certify;
        let late = Rough::new(problem).filter(|_| is_late && run.sets().is_some());
        if !course.converged() {
            let dual = if let Some(rough) = &late {
                let deadline = course.patience();
                let soon = course.in_oracle(|| rough.objective(&run.w, deadline, &pool))?;
                course.offer_soon(&run.w, soon.at_most, soon.found.is_none());
                course.in_oracle(|| run.dual_bound(&pool)).max(run.position.bound)
            } else {
                let (primal, dual) = run.certificate(&mut course, &pool)?;
                course.offer(&run.w, primal);
                dual
            };
            if let Some(average) = run.average.take() {
                run.set_weights(average.mean(&run.w));
                let primal = course.in_oracle(|| run.upper_bound(&pool))?;
                course.offer(&run.w, primal);
            }
            course.begin_bound();
            course.bound(dual);
        }
        let status = if course.converged() { Status::Converged } else { status };
        let mut solution = course.finish(status)?;
        solution.train_loss = Some(run.train_loss(&solution.weights, late.is_some(), &pool)?);
        solution.report.disagreement = run.disagreement();
        Ok(solution)
    }
}

/// The dual variables of an example.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Duals {
    /// Of a set: the labels that are variables here, and the pairs of these that have a factor here.
    members: Vec<u32>,
    links: Vec<(u32, u32)>,
    variables: Vec<Block>,
    factors: Vec<Block>,
    /// By joint of a factor and a variable: the multipliers that are not zero.
    multipliers: Vec<Few>,
}

struct Run<'p, 'a> {
    solver: &'p Gdmm,
    problem: &'p Problem<'a>,
    factored: &'p dyn Factors,
    w: Weights,
    /// That of the augmented Lagrangian.
    rho: f64,
    duals: Vec<Duals>,
    /// The mean of the points so far, with which less is forgotten than with the last one: visits go as far as they can. None
    /// of away steps, of sets, which would have to be decoded once more, nor where it would take much memory.
    average: Option<Average>,
    /// Of away steps: what the masses are a mean of.
    corners: Vec<Corner>,
    order: Permutation,
    orders: Orders,
    /// A pass that finds nothing has looked at one part of the labels in so many.
    parts: usize,
    /// Of any variable.
    most_labels: usize,
    /// About so many pairs of labels does a decoder look at in all examples.
    pairs: f64,
    /// Is there an example whose factors make loops, so that the relaxation's loss may be above the true one?
    has_loops: bool,
    position: Position,
}

impl<'p, 'a> Run<'p, 'a> {
    fn new(solver: &'p Gdmm, problem: &'p Problem<'a>, factored: &'p dyn Factors, zero: Weights, seed: u64) -> Self {
        let duals = Vec::with_capacity(problem.len());
        let averages =
            solver.inner != Inner::AwaySteps && factored.sets().is_none() && zero.as_slice().len() <= MOST_AVERAGED;
        let order = Permutation::new(problem, seed);
        let mut run = Self {
            solver,
            problem,
            factored,
            rho: solver.rho * problem.len() as f64 / problem.formulation().c,
            duals,
            average: averages.then(|| Average::of(zero.zeros_like())),
            w: zero,
            corners: Vec::new(),
            order,
            orders: Orders::default(),
            parts: 1,
            most_labels: 1,
            pairs: 0.0,
            has_loops: false,
            position: Position::default(),
        };
        let (mut scratch, mut labels) = (VisitScratch::default(), Vec::new());
        let (mut curvature, mut blocks) = (0.0, 0);
        for i in 0..problem.len() {
            let (x, cap) = (problem.place(i), problem.share(i));
            let mut duals = Duals::default();
            if let Some(sets) = run.sets() {
                factored.truth_labels(x, &mut labels);
                duals.members = (0..).zip(&labels).filter(|(_, label)| **label == 1).map(|(label, _)| label).collect();
                // All pairs of the truth.
                let mut links = Vec::new();
                duals.each_unlinked(sets, |_, (a, b)| links.push((a as u32, b as u32)));
                duals.links = links;
                run.parts = run.parts.max(run.parts_of(factored.variables(x)));
            }
            run.fill(i, &duals, &mut scratch);
            let VisitScratch { structure, truth, .. } = &scratch;
            for &labels in &structure.domains {
                run.parts = run.parts.max(run.parts_of(labels as usize));
                run.most_labels = run.most_labels.max(labels as usize);
                run.pairs += square(f64::from(labels));
            }
            run.has_loops |= !structure.is_forest();
            let phis = structure.factors.iter().map(|factor| factor.part.phi.norm2());
            curvature += cap * phis.sum::<f64>();
            for v in 0..structure.domains.len() {
                factored.unary(x, v, &mut |part| curvature += cap * part.phi.norm2());
            }
            blocks += structure.factors.len() + structure.domains.len();
            run.duals.push(Duals {
                variables: truth.iter().map(|&label| Block::at(label, cap)).collect(),
                factors: (0..structure.factors.len()).map(|f| Block::at(structure.label(f, truth), cap)).collect(),
                multipliers: vec![Few::default(); structure.count()],
                ..duals
            });
            if solver.oracle == Oracle::Sublinear && solver.inner != Inner::AwaySteps {
                run.orders.add(structure, &run.w);
            }
        }
        if run.has_loops && solver.eta > 0.0 && run.sets().is_none() && blocks > 0 {
            run.rho *= (curvature / blocks as f64).max(1.0);
        }
        if solver.inner == Inner::AwaySteps {
            run.corners.push(run.first_corner());
            run.parts = 1;
        }
        run.position = run.start();
        run
    }

    /// Into how many parts so many labels are cut; in short rows those that matter are at hand, in one.
    fn parts_of(&self, labels: usize) -> usize {
        let is_whole = self.w.short_rows().is_some() && self.solver.parts.is_none();
        if is_whole { 1 } else { self.solver.parts_of(labels) }
    }

    /// Where a run starts; the first look at whether the gap is proven comes after all labels have been looked at.
    fn start(&self) -> Position {
        let phase = if self.takes_turns() { Phase::Turns } else { Phase::Blocks };
        Position { check: FIRST_CHECK.max(self.parts), phase, ..Position::default() }
    }

    /// `sum cost b - 1/2 |w|^2`: where blocks agree a bound, else an estimate.
    fn dual_value(&self) -> f64 {
        self.position.cost - 0.5 * self.position.norm2
    }

    /// Do variables turn? Labels of sets come in and go by themselves; and without multipliers there are only blocks and away steps.
    fn takes_turns(&self) -> bool {
        self.solver.inner == Inner::Turns && self.solver.eta > 0.0 && self.sets().is_none()
    }

    /// Where outputs are sets of which only members are looked at.
    fn sets(&self) -> Option<&'p dyn Sets> {
        self.factored.sets().filter(|_| self.solver.inner != Inner::AwaySteps)
    }

    fn rounds(&mut self, course: &mut Course<'_>, pool: &Pool) -> Result<Status> {
        let mut last = course.begin(self);
        let mut scratch = VisitScratch::default();
        loop {
            if let ControlFlow::Break(status) = last {
                return Ok(status);
            }
            let before = self.dual_value();
            course.in_oracle(|| self.pass(&mut scratch));
            course.so_far.oracle_calls += self.order.len() as u64;
            let (mut held, mut support) = (0, 0);
            for block in self.duals.iter().flat_map(|duals| duals.variables.iter().chain(&duals.factors)) {
                held += block.held.len() - 1;
                support += block.held.iter().skip(1).filter(|held| held.1 > 0.0).count();
            }
            (course.so_far.working_set, course.so_far.support) = (held, support);
            let exact = match self.position.phase {
                Phase::Turns | Phase::Outputs => {
                    let gain = self.dual_value() - before;
                    self.after_turns(gain, course, pool, &mut scratch)?
                }
                Phase::Blocks if self.position.passes >= self.position.check => self.check(course, pool)?,
                Phase::Blocks => None,
            };
            if !(self.solver.certify || course.has_bound()) {
                course.estimate(self.dual_value());
            }
            last = course.end_round(exact, self);
        }
    }

    /// Is the gap proven by now? Then P, or where a proof is asked for in any case.
    fn check(&mut self, course: &mut Course<'_>, pool: &Pool) -> Result<Option<f64>> {
        if !self.solver.certify && self.sets().is_some() && self.is_far(course, pool)? {
            self.position.check = 2 * self.position.passes;
            return Ok(None);
        }
        let (primal, dual) = self.certificate(course, pool)?;
        // Not negative by rounding; but what is no number remains none.
        let gap = if primal < dual { 0.0 } else { primal - dual };
        self.position.look_again(gap, course.target_at(primal));
        if !(self.solver.certify || gap <= course.target_at(primal)) {
            return Ok(None);
        }
        course.offer(&self.w, primal);
        course.begin_bound();
        course.bound(dual);
        course.so_far.stalled = self.position.is_futile(gap, FALL, FUTILE);
        course.so_far.done = !self.solver.certify;
        Ok(Some(primal))
    }

    /// What P is at most at w; on loops with the relaxation's loss, or less. Messages bound the loss closely only when they have
    /// settled, and labels of sets have none unless they are members. So it is by decoding, unless there are so many labels
    /// that this takes too long; there only where a proof is asked for.
    fn upper_bound(&self, pool: &Pool) -> Result<f64> {
        let is_set = self.sets().is_some();
        let by_messages = if is_set { f64::INFINITY } else { self.bound(pool)? };
        Ok(if self.decodes() { self.decoded(pool)?.min(by_messages) } else { by_messages })
    }

    /// That, by decoding.
    fn decoded(&self, pool: &Pool) -> Result<f64> {
        Ok(self.problem.objective_at_most(&self.w, pool)?.unwrap_or(f64::INFINITY))
    }

    /// Are examples decoded whole to know P? It takes as long as there are pairs of labels.
    fn decodes(&self) -> bool {
        let is_quick = self.most_labels <= SMALL || self.pairs <= QUICK_PAIRS;
        self.sets().is_some() || self.solver.certify || is_quick
    }

    /// That, and what P is at least anywhere.
    fn certificate(&self, course: &mut Course<'_>, pool: &Pool) -> Result<(f64, f64)> {
        course.in_oracle(|| Ok((self.upper_bound(pool)?, self.dual_bound(pool).max(self.position.bound))))
    }

    /// Another w for the same dual variables, which no longer follows from them: the run is over.
    fn set_weights(&mut self, w: Weights) {
        self.w = w;
        self.orders.refresh(&self.w);
    }

    /// The share of the mass on which factors and variables disagree; None where there is no factor.
    fn disagreement(&self) -> Option<f64> {
        let joints = |i: usize| self.duals[i].multipliers.len() as f64 * 2.0 * self.problem.share(i);
        let all: f64 = (0..self.problem.len()).map(joints).sum();
        (all > 0.0).then(|| self.position.disagreement / all)
    }

    /// Visits every example.
    fn pass(&mut self, scratch: &mut VisitScratch<'p>) {
        self.position.disagreement = 0.0;
        self.position.passes = self.position.passes.wrapping_add(1);
        if self.solver.inner == Inner::AwaySteps {
            self.away_pass(scratch);
            return self.position.step.follow(self.position.disagreement);
        }
        if let Some(average) = &mut self.average {
            average.discount(OLD);
        }
        self.order.begin_pass();
        while let &[i] = self.order.next(1) {
            self.visit(i as usize, scratch);
        }
        if self.position.phase == Phase::Blocks {
            self.position.step.follow(self.position.disagreement);
        }
    }

    /// What P(w) is at most: with the relaxation's loss, as the messages bound it.
    fn bound(&self, pool: &Pool) -> Result<f64> {
        const PARTS: usize = 256;
        let sums = pool.map(ranges(self.problem.len(), PARTS), |range| {
            let mut scratch = VisitScratch::default();
            range.map(|i| self.bound_of(i, &mut scratch)).sum::<Result<f64>>()
        });
        Ok(0.5 * self.w.norm2() + sums.into_iter().sum::<Result<f64>>()?)
    }

    /// The mean loss of some examples, of few where it is late.
    fn train_loss(&self, w: &Weights, is_late: bool, pool: &Pool) -> Result<f64> {
        let few = LOOKED_AT.end * QUICK * QUICK / (self.most_labels * self.most_labels).max(1);
        let most = if is_late { LOOKED_AT.start } else { LOOKED_AT.end };
        self.problem.train_loss_of_some(few.clamp(LOOKED_AT.start, most), w, pool)
    }
}

impl Resumable for Run<'_, '_> {
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.w)?;
        out.put(&self.duals)?;
        out.put(&self.order)?;
        out.put(&self.average)?;
        out.put(&self.corners)?;
        out.put(&self.position)
    }

    fn weights(&self) -> Option<Cow<'_, Weights>> {
        Some(match &self.average {
            Some(average) => Cow::Owned(average.mean(&self.w)),
            None => Cow::Borrowed(&self.w),
        })
    }
}
