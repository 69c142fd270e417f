//! Cutting planes with one slack, or one for each of p groups of examples.
//!
//! ```text
//! min 1/2 |w|^2 + C sum_g (n_g/n) xi_g   s.t.  <w, lhs> >= rhs - xi_g  for all cuts (lhs, rhs) of group g
//! dual: max b'a - 1/2 a'Ha,  a >= 0,  the a's of group g sum to at most C n_g/n
//! ```
//!
//! A cut of a group is the mean over its examples of their violated constraints (Joachims, Finley, Yu 2009, Algorithms
//! 3 and 4, OP 4 to OP 7). Quadratic slack uses tangents of the mean of `H^2/2` instead, the hard margin no cap.
//! Beyond the paper the solver keeps the best point, goes from it towards the QP's by an exact line search, and cuts
//! near the new best point: far fewer rounds (Franc and Sonnenburg 2008, OCAS).

use std::ops::{ControlFlow, Range};

use serde::{Deserialize, Serialize};

use super::course::{Saved, Tightening};
use super::line_search::{Polynomial, minimum};
use super::lines::{Keep, Lines, Sums, mean_cut, parts_of_a_group};
use super::reported::DualPoint;
use super::state::{Resumable, Writer, check, check_point};
use super::{Course, Observer, Settings, Solution, Solver, Status};
use crate::error::{Error, Result};
use crate::parallel::{Pool, ranges};
use crate::problem::{Formulation, Penalty, Problem};
use crate::qp::{Cut, Outcome, Qp};
use crate::random::Random;
use crate::weights::Weights;

mod draw;
mod kernel;
mod start;

use draw::Drawn;
pub use draw::{Sampling, Scheme};

/// Where the next cut is placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Placement {
    /// Near the best point, which moves towards the QP's by line search. Exact for tasks that list their outputs; on
    /// the cached outputs for others. The hard margin, which has no P to search on, cuts at the QP's point.
    #[default]
    LineSearch,
    /// At the QP's point: the algorithm of the paper.
    QpPoint,
}

/// Cutting planes with one slack or a few.
#[derive(Debug, Clone)]
pub struct CuttingPlane {
    /// Number of groups p, each with its slack; 1 is the 1-slack algorithm.
    pub groups: usize,
    /// Outputs kept per example: rounds are built from them while they violate. 0: no cache. None: none for tasks that
    /// list their outputs, whose oracle costs no more than a look into the cache, 10 for others.
    pub cache: Option<u16>,
    /// Where cuts are placed.
    pub placement: Placement,
    /// Cuts whose dual variable was zero for that many rounds are dropped.
    pub idle_rounds: u32,
    /// At most that many cuts: beyond it active ones are replaced by their aggregate.
    pub max_cuts: usize,
    /// With a kernel: how much of each cut is taken. None: all of it, which makes cuts dear and their bound a proof.
    pub sampling: Option<Sampling>,
}

impl Default for CuttingPlane {
    fn default() -> Self {
        Self {
            groups: 1,
            cache: None,
            placement: Placement::LineSearch,
            idle_rounds: 50,
            max_cuts: 1000,
            sampling: None,
        }
    }
}

/// The largest number of groups: the dual keeps a matrix over all cuts of all groups.
pub const MAX_GROUPS: usize = 500;

/// With a line search, cuts are placed as far from the best point towards the QP's as its steps usually go, within
/// these bounds. On a9a, covertype and rcv1 that took fewer rounds than any fixed share.
const MU: (f64, f64) = (0.01, 0.2);

/// How fast the usual step follows the last one.
const STEP_MEMORY: f64 = 0.9;

impl Solver for CuttingPlane {
    fn name(&self) -> &'static str {
        match self.sampling {
            Some(_) => "sampled-linear",
            None if self.groups == 1 => "one-slack",
            None => "group-slack",
        }
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
        if !(1..=MAX_GROUPS.min(problem.len())).contains(&self.groups) {
            let rule = format!(
                "must be between 1 and {}, not {}; for one slack per example take n-slack",
                MAX_GROUPS.min(problem.len()),
                self.groups
            );
            return Err(Error::setting("groups", rule));
        }
        if self.max_cuts < 2 * self.groups + 2 {
            let rule = format!("must be at least {} for {} groups", 2 * self.groups + 2, self.groups);
            return Err(Error::setting("max-cuts", rule));
        }
        self.check_sampling(problem)?;
        let mut course = Course::new(self, problem, settings, observer)?;
        if self.sampling.is_some() {
            course = course.with_estimate();
        }
        let pool = Pool::new(settings.threads)?;
        let saved = course.resume(problem, &pool)?;
        let start = match &settings.warm_start {
            Some(start) => Some(start.clone()),
            None if saved.is_none() && self.keep(problem) == Keep::All && problem.metric().is_none() => {
                self.start_on_sample(problem, settings, &mut course)?
            }
            None => None,
        };
        let mut run = Run::new(self, problem, settings.seed, &pool, start);
        let begun = match saved {
            Some(saved) => run.restore(saved, &mut course)?,
            None => run.first_round(&mut course)?,
        };
        let status = run.rounds(begun, &mut course)?;
        course.rest_on(&run);
        course.finish(status)
    }
}

/// With a kernel a cut has an inner product for each atom and slot: so many in all, 8 GB, or so many cuts at least.
const MAX_NUMBERS: usize = 1 << 30;
const MIN_CUTS: usize = 50;

/// The line search looks first at so many usual steps.
const SEARCHED: f64 = 2.0;

/// The line search looks up to this multiple of the way to the QP's point.
const FARTHEST: f64 = 16.0;

/// Rounds from the cache go on until the gap on the cached lines is this share of the last exact one.
const CACHED_SHARE: f64 = 0.1;

/// So many rounds without progress, and the QP at its precision: the gap is rounding.
const STALLED_ROUNDS: u32 = 20;

/// What is known of P at the centre.
#[derive(Clone, Copy)]
enum Primal {
    /// Some outputs were not looked at.
    Unknown,
    /// The lines are all outputs: P on them is exact.
    OnLines(f64),
    /// The oracle answered at the centre.
    FromOracle,
}

/// What the master keeps from round to round.
#[derive(Serialize, Deserialize)]
struct Master {
    qp: Qp,
    center: Weights,
    /// The gap when P was last known.
    exact_gap: f64,
    /// Running mean of the steps of the line search.
    usual_step: f64,
    /// The last exact round brought nothing, nor did many from the cache.
    stuck: bool,
    /// Rounds since the gap last fell, and the exact ones among them.
    resting: u32,
    stalled: u32,
    tightening: Tightening,
    /// With a kernel: the last cuts, by group.
    drawn: Vec<Drawn>,
    /// P when the sample was last enlarged because training seemed to be over.
    confirmed: f64,
    random: Random,
}

/// A run: the master, and the partitions that serve it.
struct Run<'p, 'a> {
    problem: &'p Problem<'a>,
    pool: &'p Pool,
    solver: &'p CuttingPlane,
    /// Is there a P to search along, and are there lines to search on?
    searches: bool,
    /// Are the lines all outputs, so that H on them is exact?
    complete: bool,
    groups: Vec<Range<usize>>,
    /// Partitions in the order of the examples, none across groups.
    parts: Vec<Lines<'p, 'a>>,
    group_of_part: Vec<usize>,
    master: Master,
    ahead: Weights,
    lhs: Vec<f64>,
    /// Where between the centre and the point ahead the last cut was taken.
    mu: f64,
    /// As many cuts as the solver may keep, and memory.
    max_cuts: usize,
}

impl<'p, 'a> Run<'p, 'a> {
    fn new(
        solver: &'p CuttingPlane,
        problem: &'p Problem<'a>,
        seed: u64,
        pool: &'p Pool,
        start: Option<Weights>,
    ) -> Self {
        let keep = solver.keep(problem);
        let (n, d, formulation) = (problem.len(), problem.dimension(), problem.formulation());
        let hard = formulation.penalty == Penalty::Hard;
        let groups = ranges(n, solver.groups);
        let mut parts = Vec::new();
        let mut group_of_part = Vec::new();
        for (g, group) in groups.iter().enumerate() {
            for part in ranges(group.len(), parts_of_a_group(group.len(), d)) {
                let range = group.start + part.start..group.start + part.end;
                parts.push(Lines::new(problem, range, keep));
                group_of_part.push(g);
            }
        }
        let start = start.unwrap_or_else(|| problem.zero());
        let max_cuts = match problem.metric() {
            Some(_) => solver.max_cuts.min((MAX_NUMBERS / d.max(1)).max(MIN_CUTS)),
            None => solver.max_cuts,
        };
        let mut random = Random::new(seed);
        let scheme = solver.sampling.map(|sampling| sampling.scheme);
        let drawn = match problem.metric() {
            None => Vec::new(),
            Some(_) if scheme == Some(Scheme::Uniform) => {
                // It draws from the examples themselves.
                for lines in &mut parts {
                    lines.members = Some(Vec::new());
                }
                Vec::new()
            }
            Some(metric) => {
                let mut draw = || Drawn::new(metric, d, scheme.map(|_| &mut random));
                groups.iter().map(|_| draw()).collect()
            }
        };
        Self {
            problem,
            pool,
            solver,
            searches: solver.placement == Placement::LineSearch && keep != Keep::Nothing && !hard,
            complete: keep == Keep::All,
            ahead: start.clone(),
            master: Master {
                qp: Qp::new(d, caps(problem, &groups)),
                center: start,
                exact_gap: f64::INFINITY,
                usual_step: 0.0,
                stuck: false,
                resting: 0,
                stalled: 0,
                tightening: Tightening::default(),
                drawn,
                confirmed: f64::INFINITY,
                random,
            },
            groups,
            parts,
            group_of_part,
            lhs: vec![0.0; d],
            mu: 0.0,
            max_cuts,
        }
    }

    /// Goes back to where the state was saved. Says whether the run is over already.
    fn restore(&mut self, mut saved: Saved<'_>, course: &mut Course<'_>) -> Result<ControlFlow<Status>> {
        let last_cuts = self.master.drawn.len();
        self.master = saved.reader.take()?;
        for lines in &mut self.parts {
            lines.read(&mut saved.reader)?;
        }
        let (d, caps) = (self.problem.dimension(), caps(self.problem, &self.groups));
        let Master { qp, center, usual_step, drawn, .. } = &mut self.master;
        check_point(center, self.problem)?;
        let is_of = |drawn: &Drawn| self.problem.metric().is_some_and(|metric| drawn.is_of(metric, d));
        check(drawn.len() == last_cuts && drawn.iter().all(is_of), "the last cuts")?;
        check((0.0..=1.0).contains(usual_step), "the usual step")?;
        check(qp.dimension() == d && qp.caps().len() == caps.len(), "the dual")?;
        if saved.growth.is_some() {
            // Cuts and lines are the same for every C, but for what rounding has cost: |w*|^2 / 2 <= P.
            qp.widen((2.0 * course.so_far.primal).sqrt());
            qp.set_caps(caps);
            (course.so_far.working_set, course.so_far.support) = (qp.len(), qp.active());
            self.bound(course);
            self.master.exact_gap = course.gap();
            (self.master.stuck, self.master.resting, self.master.stalled) = (false, 0, 0);
            self.master.tightening = Tightening::default();
        } else {
            check(qp.caps() == caps, "the caps")?;
            if saved.is_foreign && self.problem.metric().is_none() {
                course.check_bound(DualPoint::rederived(&self.master.qp))?;
            }
        }
        self.settle(course)?;
        Ok(course.begin(self))
    }

    /// The round that begins at the starting point.
    fn first_round(&mut self, course: &mut Course<'_>) -> Result<ControlFlow<Status>> {
        let exact = self.first_cut(course)?;
        self.settle(course)?;
        Ok(course.end_round(exact, self))
    }

    /// The algorithm.
    fn rounds(&mut self, mut last: ControlFlow<Status>, course: &mut Course<'_>) -> Result<Status> {
        loop {
            if let ControlFlow::Break(status) = last {
                self.verify(course)?;
                return Ok(status);
            }
            let before = course.gap();
            let tolerance = self.master.tightening.of(self.qp_tolerance(course));
            let Master { qp, tightening, .. } = &mut self.master;
            let value = qp.value();
            let outcome = course.in_qp(|| qp.solve(tolerance));
            tightening.after(qp.value() - value, tolerance);
            self.bound(course);
            if outcome == Outcome::Unbounded {
                return Ok(Status::Infeasible);
            }
            course.in_qp(|| {
                let qp = &mut self.master.qp;
                qp.weights_into(&mut self.ahead, self.pool);
                qp.drop_inactive(self.solver.idle_rounds);
            });
            let exact = self.round(course)?;
            let Master { qp, stuck, resting, stalled, .. } = &mut self.master;
            (course.so_far.working_set, course.so_far.support) = (qp.len(), qp.active());
            // In f64 the gap cannot fall for ever.
            (*resting, *stalled) = if course.gap() < before {
                (0, 0)
            } else {
                (resting.saturating_add(1), stalled.saturating_add(u32::from(exact.is_some())))
            };
            *stuck = (exact.is_some() && *stalled > 0) || *resting >= STALLED_ROUNDS;
            course.so_far.stalled = *stalled >= STALLED_ROUNDS && outcome == Outcome::Stalled;
            self.settle(course)?;
            last = course.end_round(exact, self);
        }
    }

    /// P on the lines was carried along from round to round: convergence is told by an exact pass. Where the gap turns
    /// out larger than it seemed, the lines are computed anew and training goes on.
    fn settle(&mut self, course: &mut Course<'_>) -> Result<()> {
        if course.converged() {
            self.confirm(course);
        }
        if !course.converged() {
            return Ok(());
        }
        self.verify(course)?;
        if !course.converged() {
            self.ahead.clone_from(&self.master.center);
            course.in_oracle(|| self.look_ahead())?;
            course.so_far.oracle_calls += self.problem.len() as u64;
            self.each_part(|lines| lines.advance(1.0));
        }
        Ok(())
    }

    /// P of the best point by an exact pass, where it is not from one.
    fn verify(&mut self, course: &mut Course<'_>) -> Result<()> {
        if self.complete && !self.is_hard() { course.verify(self.problem, self.pool) } else { Ok(()) }
    }

    /// P and a cut at the starting point.
    fn first_cut(&mut self, course: &mut Course<'_>) -> Result<Option<f64>> {
        let (sums, model) = course.in_oracle(|| {
            if !self.complete {
                return Ok((self.ask()?, 0.0));
            }
            let model = self.look_ahead()?;
            Ok((self.cut(1.0)?, model))
        })?;
        self.end_cut(&sums, if self.complete { Primal::OnLines(model) } else { Primal::FromOracle }, course)
    }

    /// From the QP's point to the next cut. Returns P at the new centre where it is exact.
    fn round(&mut self, course: &mut Course<'_>) -> Result<Option<f64>> {
        let (t, model) = course.in_oracle(|| {
            // Where the oracle's last answers at the centre were no news, it is asked at the QP's point.
            let plain = !self.searches || (self.master.stuck && !self.complete);
            if plain { Ok((1.0, self.look_ahead()?)) } else { self.search() }
        })?;
        self.master.usual_step = STEP_MEMORY * self.master.usual_step + (1.0 - STEP_MEMORY) * t.min(1.0);
        self.master.center.move_towards(&self.ahead, t);
        // While the cached outputs violate enough, they make the cut; else the oracle does.
        let exact_gap = if self.master.exact_gap.is_finite() { self.master.exact_gap } else { 0.0 };
        let enough = (0.5 * course.target()).max(CACHED_SHARE * exact_gap);
        if self.complete || (model - course.so_far.dual > enough && !self.master.stuck) {
            let sums = course.in_oracle(|| self.cut(t))?;
            self.end_cut(&sums, if self.complete { Primal::OnLines(model) } else { Primal::Unknown }, course)
        } else {
            let sums = course.in_oracle(|| {
                self.each_part(|lines| lines.advance(t));
                self.ask()
            })?;
            self.end_cut(&sums, Primal::FromOracle, course)
        }
    }

    /// Adds the groups' cuts to the QP, and takes note of P at the centre where it is known: returned then.
    fn end_cut(&mut self, sums: &[Sums], primal: Primal, course: &mut Course<'_>) -> Result<Option<f64>> {
        let n = self.problem.len() as u64;
        course.so_far.cache_hits += sums.iter().map(|s| s.hits).sum::<u64>();
        let half_norm2 = 0.5 * self.master.center.norm2();
        let exact = match primal {
            Primal::Unknown => None,
            Primal::OnLines(model) => Some(model),
            Primal::FromOracle => Some(half_norm2 + self.slack_factor() * sums.iter().map(|s| s.slack).sum::<f64>()),
        };
        if exact.is_some() {
            course.so_far.oracle_calls += n;
        }
        let exact = match exact {
            Some(_) if self.is_hard() => Some(course.offer_exact(self.problem, &self.master.center, self.pool)?),
            Some(primal) => {
                course.offer(&self.master.center, primal);
                Some(primal)
            }
            None => None,
        };
        if exact.is_some() {
            self.master.exact_gap = course.gap();
        }
        let (primal, target) = (course.so_far.primal, course.target());
        // With a kernel, its values are most of the work.
        if self.problem.metric().is_some() {
            course.in_oracle(|| self.push(sums, primal, target))?;
        } else {
            course.in_qp(|| self.push(sums, primal, target))?;
        }
        Ok(exact)
    }

    /// A tenth of the gap, never looser than a hundredth of P, and no tighter than the target needs. The hard margin's P
    /// is far above its minimum for long: there the dual value is the measure.
    fn qp_tolerance(&self, course: &Course<'_>) -> f64 {
        if self.is_hard() {
            return 0.1 * course.relative_target() * course.so_far.dual;
        }
        (0.1 * course.gap()).min(0.01 * course.so_far.primal).max(0.05 * course.target())
    }

    /// One cut for each group: the mean over its examples.
    fn push(&mut self, sums: &[Sums], primal: f64, target: f64) -> Result<()> {
        // |w*|^2 / 2 <= P* <= P: within this radius a cut rounded to f32 must stay valid, at a hundredth of the target.
        let radius = (2.0 * primal).sqrt();
        // In f64 for the hard margin: opposite cuts must cancel to the last digit to be told as a contradiction.
        let budget = if self.is_hard() { -1.0 } else { 0.01 * target / self.problem.formulation().c };
        for g in 0..self.groups.len() {
            let group = self.groups[g].clone();
            let own = self.parts.iter().zip(sums).zip(&self.group_of_part).filter(|part| *part.1 == g);
            let rhs = mean_cut(own.map(|((part, sums), _)| (part.lhs(), sums)), group.len(), &mut self.lhs);
            if rhs == 0.0 && self.lhs.iter().all(|&x| x == 0.0) {
                continue;
            }
            match self.problem.metric() {
                None => self.master.qp.push(g, Cut::from_dense(&self.lhs, rhs, radius, budget), self.pool)?,
                Some(metric) => self.push_drawn(g, rhs, target, metric)?,
            }
        }
        self.master.qp.shrink_to(self.max_cuts);
        Ok(())
    }

    fn is_hard(&self) -> bool {
        self.problem.formulation().penalty == Penalty::Hard
    }

    /// Violations of all lines at the point ahead, for complete lines a pass of the oracle, and P on the lines there.
    fn look_ahead(&mut self) -> Result<f64> {
        let ahead = &self.ahead;
        let slacks = self.pool.map(self.parts.iter_mut().collect(), |lines| lines.look_ahead(ahead));
        let slack = slacks.into_iter().sum::<Result<f64>>()?;
        Ok(0.5 * ahead.norm2() + self.slack_factor() * slack)
    }

    fn each_part(&mut self, f: impl Fn(&mut Lines<'p, 'a>) + Sync + Send) {
        self.pool.map(self.parts.iter_mut().collect(), f);
    }

    /// The minimum of P, on the lines, from the centre towards the point ahead: where, and its value.
    fn search(&mut self) -> Result<(f64, f64)> {
        let half_norm2 = Polynomial::half_norm2(&self.master.center, &self.ahead);
        let factor = self.slack_factor();
        let ahead = &self.ahead;
        let (mut low, mut high) = (0.0, (SEARCHED * self.master.usual_step).clamp(1e-3, 1.0));
        let mut sums: Result<Vec<_>> = self
            .pool
            .map(self.parts.iter_mut().collect(), |lines| lines.look_ahead_for_breaks(ahead, high))
            .into_iter()
            .collect();
        loop {
            let mut total = half_norm2;
            sums?.iter().for_each(|sum| total.add(factor, sum));
            let breaks = self.parts.iter_mut().map(Lines::breaks).collect();
            let found = minimum(total, breaks, (low, high), factor, self.pool);
            if !found.beyond || high >= FARTHEST {
                return Ok((found.t, found.value));
            }
            (low, high) = (high, 4.0 * high);
            sums = Ok(self.pool.map(self.parts.iter_mut().collect(), |lines| lines.find_breaks(low, high)));
        }
    }

    fn slack_factor(&self) -> f64 {
        self.problem.c_per_example()
    }

    /// Moves the lines' centre to t and cuts between it and the point ahead.
    fn cut(&mut self, t: f64) -> Result<Vec<Sums>> {
        let mu = if self.searches && !self.master.stuck { self.master.usual_step.clamp(MU.0, MU.1) } else { 1.0 };
        self.mu = mu;
        self.pool.map(self.parts.iter_mut().collect(), |lines| lines.advance_and_cut(t, mu)).into_iter().collect()
    }

    /// Asks the oracle at the centre, and cuts there.
    fn ask(&mut self) -> Result<Vec<Sums>> {
        self.mu = 0.0;
        let center = &self.master.center;
        self.pool.map(self.parts.iter_mut().collect(), |lines| lines.ask_and_cut(center)).into_iter().collect()
    }
}

impl Resumable for Run<'_, '_> {
    fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.master)?;
        self.parts.iter().try_for_each(|lines| lines.write(out))
    }

    /// The QP's point, where its value is a bound.
    fn dual_point(&self) -> Result<Option<DualPoint>> {
        Ok(self.cuts_are_whole().then(|| DualPoint::of(&self.master.qp)))
    }
}

/// C's share for each group; none is too much with the hard margin.
fn caps(problem: &Problem<'_>, groups: &[Range<usize>]) -> Vec<f64> {
    let Formulation { c, penalty, .. } = problem.formulation();
    let share = |group: &Range<usize>| c * group.len() as f64 / problem.len() as f64;
    groups.iter().map(|group| if penalty == Penalty::Hard { f64::INFINITY } else { share(group) }).collect()
}
