//! What the examples of one partition know of H between two points.
//!
//! Along `w(t) = center + t (ahead - center)` each output of an example gives a line, its violation, from its value
//! at the centre to that ahead, and H is the largest of these lines and of zero, the truth's. For a task that lists its
//! outputs the lines are all of them, and H is exact; otherwise they are the outputs in the cache, and H is a lower
//! bound until the oracle is asked.

use std::ops::Range;

use super::line_search::{Break, Polynomial};
use super::state::{Reader, Writer, check, is_sound};
use crate::cache::Cache;
use crate::error::Result;
use crate::features::Accumulate;
use crate::problem::{Enumerable, OracleScratch, Output, Penalty, Problem};
use crate::sparse::axpy;
use crate::weights::Weights;

/// The truth's line, which is zero everywhere.
const TRUTH: u32 = u32::MAX;

/// The larger of two numbers, none of them NaN: one instruction, unlike `f64::max`.
fn larger(a: f64, b: f64) -> f64 {
    if b > a { b } else { a }
}

/// The sums over a partition that make a cut.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    /// `sum c_i slack(H_i)`
    pub(super) slack: f64,
    /// Right-hand side of the cut, not yet divided by the group's size.
    pub(super) rhs: f64,
    /// Outputs that came from the cache.
    pub(super) hits: u64,
}

/// Which outputs of an example are kept as lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keep {
    /// All of them: the task lists its outputs.
    All,
    /// The last so many distinct answers of the oracle.
    Last(u16),
    /// None: every cut asks the oracle.
    Nothing,
}

/// A partition: some examples of one group, their lines, and the cut that they add up to.
pub(super) struct Lines<'p, 'a> {
    problem: &'p Problem<'a>,
    range: Range<usize>,
    stride: usize,
    /// Violation of every line at the centre, `stride` lines an example.
    center: Vec<f64>,
    /// The same at the point ahead.
    ahead: Vec<f64>,
    cache: Option<Cache<Output>>,
    round: u32,
    row: Vec<f64>,
    breaks: Vec<Break>,
    scratch: OracleScratch,
    lhs: Vec<f64>,
    /// The examples and outputs that the cut is made of, where they are asked for.
    pub(super) members: Option<Vec<(u32, Output)>>,
}

impl<'p, 'a> Lines<'p, 'a> {
    pub(super) fn new(problem: &'p Problem<'a>, range: Range<usize>, keep: Keep) -> Self {
        let (stride, cache) = match keep {
            Keep::All => (problem.enumerable().map_or(0, Enumerable::count), None),
            Keep::Last(capacity) => (usize::from(capacity), Some(Cache::new(range.len(), capacity))),
            Keep::Nothing => (0, None),
        };
        Self {
            problem,
            stride,
            center: vec![0.0; range.len() * stride],
            ahead: vec![0.0; range.len() * stride],
            cache,
            round: 0,
            row: vec![0.0; stride],
            breaks: Vec::new(),
            scratch: OracleScratch::default(),
            lhs: vec![0.0; problem.dimension()],
            members: None,
            range,
        }
    }

    /// Writes what the next round starts from. The point ahead is new in each.
    pub(super) fn write(&self, out: &mut Writer) -> Result<()> {
        out.put(&self.center)?;
        out.put(&self.cache)?;
        out.put(&self.round)
    }

    /// Reads it again.
    pub(super) fn read(&mut self, reader: &mut Reader<'_>) -> Result<()> {
        let center: Vec<f64> = reader.take()?;
        check(center.len() == self.center.len() && center.iter().all(|&v| is_sound(v)), "lines")?;
        let mut cache: Option<Cache<Output>> = reader.take()?;
        check(cache.is_some() == self.cache.is_some(), "cache")?;
        if let Some(cache) = &mut cache {
            check(cache.fits(self.range.len(), self.stride as u16), "cache")?;
            for (e, i) in self.range.clone().enumerate() {
                check(cache.of_mut(e).iter_mut().all(|y| self.problem.restore(i, y)), "outputs")?;
            }
        }
        (self.center, self.cache, self.round) = (center, cache, reader.take()?);
        Ok(())
    }

    /// The lines of example `e`.
    fn lines_of(&self, e: usize) -> Range<usize> {
        let len = self.cache.as_ref().map_or(self.stride, |c| c.len(e));
        e * self.stride..e * self.stride + len
    }

    /// Violations of all lines at the point ahead, `w`. Returns the sum of slack there.
    pub(super) fn look_ahead(&mut self, w: &Weights) -> Result<f64> {
        let mut slack = 0.0;
        for e in 0..self.range.len() {
            self.look_from(e, w)?;
            let highest = self.ahead[self.lines_of(e)].iter().copied().fold(0.0, larger);
            slack += self.problem.weight(self.range.start + e) * self.problem.slack(highest);
        }
        Ok(slack)
    }

    /// The same, and what [`find_breaks`](Self::find_breaks) does from the centre to `high`, while the numbers are at
    /// hand.
    pub(super) fn look_ahead_for_breaks(&mut self, w: &Weights, high: f64) -> Result<Polynomial> {
        self.breaks.clear();
        let mut sum = Polynomial::default();
        for e in 0..self.range.len() {
            self.look_from(e, w)?;
            self.breaks_of(e, 0.0, high, &mut sum);
        }
        Ok(sum)
    }

    fn look_from(&mut self, e: usize, w: &Weights) -> Result<()> {
        let (i, lines) = (self.range.start + e, self.lines_of(e));
        let row = &mut self.ahead[lines];
        match &self.cache {
            Some(cache) => self.problem.violations_of(i, w, cache.of(e), &mut self.scratch, row),
            None if self.stride > 0 => {
                self.problem.violations(i, w, &mut self.scratch, row);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// The slack of the examples on the lines that are the worst at `low`, as a polynomial in t, and, left in
    /// `breaks`, where others take over until `high`.
    pub(super) fn find_breaks(&mut self, low: f64, high: f64) -> Polynomial {
        self.breaks.clear();
        let mut sum = Polynomial::default();
        for e in 0..self.range.len() {
            self.breaks_of(e, low, high, &mut sum);
        }
        sum
    }

    fn breaks_of(&mut self, e: usize, low: f64, high: f64, sum: &mut Polynomial) {
        let quadratic = self.is_quadratic();
        let lines = self.lines_of(e);
        let (center, ahead) = (&self.center[lines.clone()], &self.ahead[lines]);
        let at = |line: usize, t: f64| center[line] + t * (ahead[line] - center[line]);
        // The truth's line is zero. Of lines that are equal at `low` the steepest is the worst from there on; it
        // is found as a break at `low`.
        let (mut value, mut slope, mut from) = (0.0, 0.0, low);
        let (mut highest, mut worst) = (0.0, TRUTH);
        for line in 0..center.len() {
            let (here, there) = (at(line, low), at(line, high));
            if here > value {
                (value, worst) = (here, line as u32);
            }
            highest = larger(highest, there);
            self.row[line] = there;
        }
        let c = self.problem.weight(self.range.start + e);
        if worst != TRUTH {
            let line = worst as usize;
            slope = ahead[line] - center[line];
            let start = center[line];
            sum.add(c, &if quadratic { Polynomial::half_square(start, slope) } else { Polynomial::line(start, slope) });
        }
        // A line takes over before `high` where it is above the present one there.
        while value + slope * (high - from) < highest {
            let present = value + slope * (high - from);
            let mut next = (f64::INFINITY, slope);
            if present < 0.0 && slope < 0.0 {
                // the truth's line
                next = (from - value / slope, 0.0);
            }
            for line in 0..center.len() {
                let steeper = ahead[line] - center[line];
                if self.row[line] > present && steeper > slope {
                    let crossing = from + (value - at(line, from)) / (steeper - slope);
                    if crossing < next.0 || (crossing == next.0 && steeper > next.1) {
                        next = (crossing, steeper);
                    }
                }
            }
            // Rounding: at most at the end, never backwards.
            if next.1 <= slope || next.0 > high {
                break;
            }
            let crossing = next.0.max(from);
            let (rise, bend) = if quadratic {
                let h = value + slope * (crossing - from);
                (c * h * (next.1 - slope), 0.5 * c * (next.1 * next.1 - slope * slope))
            } else {
                (c * (next.1 - slope), 0.0)
            };
            self.breaks.push(Break { at: crossing, rise, bend });
            (value, slope, from) = (value + slope * (crossing - from), next.1, crossing);
        }
    }

    /// The breaks that [`find_breaks`](Self::find_breaks) found.
    pub(super) fn breaks(&mut self) -> &mut [Break] {
        &mut self.breaks
    }

    /// Left-hand side of the cut, not yet divided by the group's size.
    pub(super) fn lhs(&self) -> &[f64] {
        &self.lhs
    }

    fn is_quadratic(&self) -> bool {
        self.problem.formulation().penalty == Penalty::Quadratic
    }

    /// Moves the centre to t.
    pub(super) fn advance(&mut self, t: f64) {
        self.advance_lines(0..self.center.len(), t);
    }

    fn advance_lines(&mut self, lines: Range<usize>, t: f64) {
        let (center, ahead) = (&mut self.center[lines.clone()], &self.ahead[lines]);
        if t == 1.0 {
            // Exactly the point ahead, whatever the rounding.
            center.copy_from_slice(ahead);
        } else {
            for (center, ahead) in center.iter_mut().zip(ahead) {
                *center += t * (ahead - *center);
            }
        }
    }

    /// The worst line of example `e` at `mu` between the centre and the point ahead, and its value: ties go to the
    /// truth, then to the earlier line.
    fn worst(&mut self, e: usize, mu: f64) -> (u32, f64) {
        let lines = self.lines_of(e);
        let row = &mut self.row[..lines.len()];
        let mut highest = 0.0;
        for ((value, center), ahead) in row.iter_mut().zip(&self.center[lines.clone()]).zip(&self.ahead[lines]) {
            *value = center + mu * (ahead - center);
            highest = larger(highest, *value);
        }
        if highest <= 0.0 {
            return (TRUTH, 0.0);
        }
        let line = row.iter().position(|&value| value == highest);
        (line.map_or(TRUTH, |line| line as u32), highest)
    }

    /// Moves the centre to t and cuts at `mu` between the new centre and the point ahead.
    pub(super) fn advance_and_cut(&mut self, t: f64, mu: f64) -> Result<Sums> {
        self.begin_cut();
        let mut sums = Sums::default();
        for e in 0..self.range.len() {
            self.advance_lines(self.lines_of(e), t);
            let (line, value) = self.worst(e, mu);
            if line == TRUTH {
                continue;
            }
            let mut y = std::mem::take(&mut self.scratch.y);
            if let Some(cache) = &mut self.cache {
                cache.touch(e, line as usize, self.round);
                sums.hits += 1;
                y.clone_from(&cache.of(e)[line as usize]);
            } else {
                let listed = self.problem.enumerable().expect("lines without a cache are listed outputs");
                listed.copy_output(line as usize, &mut y);
            }
            self.add(e, &y, value, &mut sums)?;
            self.scratch.y = y;
        }
        Ok(sums)
    }

    /// Asks the oracle at the centre `w`, keeps its answers as lines, and cuts there.
    pub(super) fn ask_and_cut(&mut self, w: &Weights) -> Result<Sums> {
        self.begin_cut();
        let mut sums = Sums::default();
        for (e, i) in self.range.clone().enumerate() {
            let value = self.problem.oracle(i, w, &mut self.scratch)?;
            if value <= 0.0 {
                continue;
            }
            if let Some(cache) = &mut self.cache {
                let slot = e * self.stride + cache.insert(e, &self.scratch.y, self.round);
                (self.center[slot], self.ahead[slot]) = (value, value);
            }
            let y = std::mem::take(&mut self.scratch.y);
            self.add(e, &y, value, &mut sums)?;
            self.scratch.y = y;
        }
        Ok(sums)
    }

    fn begin_cut(&mut self) {
        self.round = self.round.saturating_add(1);
        self.lhs.fill(0.0);
        self.members.iter_mut().for_each(Vec::clear);
    }

    /// Adds one example's share: the tangent of its slack. Linear: `c_i (lhs_i, rhs_i)`. Quadratic, with t_i = H_i:
    /// `c_i (t_i lhs_i, t_i rhs_i - t_i^2 / 2)`.
    fn add(&mut self, e: usize, y: &Output, value: f64, sums: &mut Sums) -> Result<()> {
        let problem = self.problem;
        let i = self.range.start + e;
        let term = problem.term(problem.loss(i, y));
        let c = problem.weight(i);
        let (tangent, offset) = if self.is_quadratic() { (value, 0.5 * value * value) } else { (1.0, 0.0) };
        sums.slack += c * problem.slack(value);
        sums.rhs += c * (tangent * term.rhs - offset);
        if let Some(members) = &mut self.members {
            members.push((i as u32, y.clone()));
        }
        let mut sink = Accumulate { sum: &mut self.lhs, factor: 1.0 };
        problem.emit(i, y, c * tangent * term.factor, &mut sink)
    }
}

/// The cut of some partitions of `examples` examples together: their mean goes into `lhs`, its right-hand side is
/// returned. Sums are taken in the order of the partitions, so that the bits do not depend on threads.
pub(super) fn mean_cut<'l>(
    parts: impl Iterator<Item = (&'l [f64], &'l Sums)>,
    examples: usize,
    lhs: &mut [f64],
) -> f64 {
    let mean = 1.0 / examples as f64;
    lhs.fill(0.0);
    let mut rhs = 0.0;
    for (sum, sums) in parts {
        axpy(mean, sum, lhs);
        rhs += mean * sums.rhs;
    }
    rhs
}

/// How many partitions a group of `examples` examples is cut into: enough to keep threads busy, few enough for their
/// dense sums to fit and to cost little beside the examples.
pub(super) fn parts_of_a_group(examples: usize, dimension: usize) -> usize {
    const PARTS: usize = 32;
    const EXAMPLES: usize = 1024;
    const SUMS: usize = 1 << 23;
    (examples / EXAMPLES).min(SUMS / dimension.max(1)).clamp(1, PARTS)
}
