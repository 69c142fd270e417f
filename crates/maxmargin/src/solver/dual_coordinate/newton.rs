//! The dual by its proximal points, each found by Newton's method in w.
//!
//! ```text
//! a+ = argmax D(a) - sum_i |a_i - a_i^old|^2 / 2 s_i     (Rockafellar 1976)
//! a+ = proj(a^old + s v(w)) at the w with  w = sum a+ lhs,  the minimum of
//! phi(w) = 1/2 |w|^2 + sum_i max_b { <b, v_i(w)> - |b - a_i^old|^2 / 2 s_i }
//! ```
//!
//! phi is once differentiable, its second derivative jumps where an output enters or leaves a block's support: Newton's
//! method with a line search ends all the same, and fast (Li, Sun, Toh 2018). Few examples stand near their margin, so its
//! matrix is cheap; where w has few coordinates and examples are many, a dozen such steps do what thousands of passes of
//! coordinate steps would. Sums over examples are taken in parts, so all threads work and the bits stay the same.

use std::ops::Range;

use super::block::{Limits, threshold_from};
use super::stack::Blocks;
use crate::parallel::{Pool, ranges};
use crate::problem::Penalty;
use crate::qp::Factor;
use crate::sparse::{axpy, dot};
use crate::weights::Weights;

/// Sums are taken over so many parts of the examples, whatever the number of threads: each has a matrix of its own.
const PARTS: usize = 8;

/// `s_i = share / (MARGIN * the largest right-hand side)`: the zone around the margin in which variables are free.
const MARGIN: f64 = 0.3;

/// From one proximal point to the next, s grows by this.
const GROWTH: f64 = 2.0;

/// A proximal point is good enough when its residual is this share of what it moved.
const RESIDUAL: f64 = 0.3;

/// The line search ends where the slope is this share of the first, or at Newton's own step.
const SLOPE: f64 = 0.1;
const TRIALS: usize = 20;
const REACH: f64 = 1.0;

/// The state of the method.
pub(super) struct Newton<'b, B> {
    blocks: &'b B,
    penalty: Penalty,
    /// s over the share of an example.
    pub(super) strength: f64,
    /// The violations at w.
    v: Vec<f64>,
    /// The parts of the examples along the direction.
    lines: Vec<Line>,
    /// `sum a+ lhs`
    sum: Vec<f64>,
    direction: Vec<f64>,
    matrix: Vec<f64>,
    factor: Factor,
}

/// A part of the examples along a direction. Most stay in their corner as far as the line search may go.
#[derive(Default)]
struct Line {
    /// The slope of those that stay; in the first part with that of all examples that were not looked at.
    slope: f64,
    /// Examples looked at.
    looks: u64,
    /// Those that may not, with how many of their outputs can have weight.
    free: Vec<(u32, u32)>,
    /// These outputs, one example's after the other's.
    outputs: Vec<Slope>,
}

/// An output's violation at w, and what it changes by: for the line search only, so f32 is enough.
struct Slope {
    output: u32,
    v: f32,
    dv: f32,
}

/// What is known at w.
pub(super) struct Point {
    pub(super) primal: f64,
    /// D of `a+`
    pub(super) dual: f64,
    /// `|w - sum a+ lhs|^2 / 2`
    residual: f64,
    /// `sum |a+ - a|^2 / 2s`
    moved: f64,
    pub(super) support: usize,
}

/// Sums over a part of the examples.
struct Part {
    slack: f64,
    dual: f64,
    moved: f64,
    support: usize,
    sum: Vec<f64>,
    matrix: Vec<f64>,
}

impl<'b, B: Blocks> Newton<'b, B> {
    pub(super) fn new(blocks: &'b B, penalty: Penalty, strength: f64, d: usize) -> Self {
        Self {
            blocks,
            penalty,
            strength,
            v: vec![0.0; blocks.len() * blocks.width()],
            lines: ranges(blocks.len(), PARTS).iter().map(|_| Line::default()).collect(),
            sum: vec![0.0; d],
            direction: vec![0.0; d],
            matrix: vec![0.0; d * d],
            factor: Factor::default(),
        }
    }

    /// The first strength, where right-hand sides are at most so large.
    pub(super) fn first_strength(largest_rhs: f64) -> f64 {
        if largest_rhs > 0.0 { 1.0 / (MARGIN * largest_rhs) } else { 1.0 }
    }

    /// Everything at w: P, the next variables and their D, the gradient and the matrix.
    pub(super) fn look(&mut self, a: &[f64], w: &Weights, pool: &Pool) -> Point {
        let (blocks, width, d) = (self.blocks, self.blocks.width(), w.len());
        let (strength, penalty) = (self.strength, self.penalty);
        let all: Vec<u32> = (0..width as u32).collect();
        let sum_up = |(range, v): (Range<usize>, &mut [f64])| {
            let a = &a[range.start * width..range.end * width];
            let mut part =
                Part { slack: 0.0, dual: 0.0, moved: 0.0, support: 0, sum: vec![0.0; d], matrix: vec![0.0; d * d] };
            let mut room = B::Room::default();
            let (mut next, mut support) = (vec![0.0; width], Vec::with_capacity(width));
            for ((i, a), at_w) in range.zip(a.chunks_exact(width)).zip(v.chunks_exact_mut(width)) {
                let example = blocks.example(i);
                let share = example.share;
                if share == 0.0 {
                    continue;
                }
                blocks.violations(&example, w, &mut room, at_w);
                let h = at_w.iter().fold(0.0, |h, &v| if v > h { v } else { h });
                let (limits, s) = (example.limits(penalty, 1.0), strength * share);
                next.copy_from_slice(a);
                let pull = proximal(&mut next, at_w, s, limits);
                part.slack += share * if limits.ridge > 0.0 { 0.5 * h * h } else { h };
                support.clear();
                let mut total = 0.0;
                for (k, (&next, &a)) in next.iter().zip(a).enumerate() {
                    part.moved += 0.5 * (next - a) * (next - a) / s;
                    if next > 0.0 {
                        support.push(k as u32);
                        total += next;
                    }
                }
                if support.is_empty() {
                    continue;
                }
                part.support += support.len();
                part.dual += blocks.rhs(&example, &all, &next) - 0.5 * limits.ridge * total * total;
                blocks.add(&example, &all, &next, &mut room, &mut part.sum);
                // At a corner nothing moves.
                if !(support.len() == 1 && pull == 1.0) {
                    blocks.add_curvature(
                        &example,
                        &support,
                        |k, l| s * (f64::from(u8::from(k == l)) - pull),
                        &mut part.matrix,
                    );
                }
            }
            part
        };
        let half_norm2 = 0.5 * dot(w.as_slice(), w.as_slice());
        let mut point = Point { primal: half_norm2, dual: 0.0, residual: 0.0, moved: 0.0, support: 0 };
        self.sum.fill(0.0);
        self.matrix.fill(0.0);
        // As many at a time as there are threads: each has a matrix of its own.
        let mut items = in_parts(&mut self.v, width);
        while !items.is_empty() {
            let later = items.split_off(items.len().min(pool.threads()));
            for part in pool.map(items, sum_up) {
                point.primal += part.slack;
                point.dual += part.dual;
                point.moved += part.moved;
                point.support += part.support;
                axpy(1.0, &part.sum, &mut self.sum);
                axpy(1.0, &part.matrix, &mut self.matrix);
            }
            items = later;
        }
        point.dual -= 0.5 * dot(&self.sum, &self.sum);
        for ((d, sum), w) in self.direction.iter_mut().zip(&self.sum).zip(w.as_slice()) {
            *d = sum - w;
        }
        point.residual = 0.5 * dot(&self.direction, &self.direction);
        point
    }

    /// `sum a+ lhs` and the matrix where [`look`](Self::look) has been.
    #[cfg(test)]
    pub(super) fn derivatives(&self) -> (Vec<f64>, Vec<f64>) {
        (self.sum.clone(), self.matrix.clone())
    }

    /// Is w near enough to the proximal point, for a target gap?
    pub(super) fn is_near(point: &Point, target: f64) -> bool {
        point.residual <= RESIDUAL * point.moved.max(0.1 * target)
    }

    /// Takes the variables at w, where [`look`](Self::look) has been, for the next centre.
    pub(super) fn recenter(&mut self, a: &mut [f64], pool: &Pool) {
        self.take_variables(a, pool);
        self.strength *= GROWTH;
    }

    /// The variables at w, where [`look`](Self::look) has been.
    pub(super) fn take_variables(&self, a: &mut [f64], pool: &Pool) {
        let (blocks, width, strength, penalty) = (self.blocks, self.blocks.width(), self.strength, self.penalty);
        pool.map(in_parts(a, width), |(range, a)| {
            let v = &self.v[range.start * width..];
            for ((i, a), v) in range.zip(a.chunks_exact_mut(width)).zip(v.chunks_exact(width)) {
                let share = blocks.share(i);
                if share > 0.0 {
                    proximal(a, v, strength * share, Limits::new(penalty, share));
                }
            }
        });
    }

    /// One step from w, where [`look`](Self::look) has been. False where nothing more is gained in f64.
    pub(super) fn step(&mut self, a: &[f64], w: &mut Weights, pool: &Pool) -> bool {
        let d = w.len();
        for j in 0..d {
            self.matrix[j * d + j] += 1.0;
        }
        self.factor.clear();
        for (j, row) in self.matrix.chunks_exact(d).enumerate() {
            self.factor.append(row[..j].iter().copied(), row[j], f64::MIN_POSITIVE);
        }
        self.factor.solve(&mut self.direction);
        self.follow(a, pool);
        let step = self.search(a, w, pool);
        if step <= 0.0 {
            return false;
        }
        axpy(step, &self.direction, w.as_mut_slice());
        true
    }

    /// Looks along the direction: which examples stay in their corner? Most are so deep in it that the length of the direction
    /// says so; their slope is what `sum` has beside the others.
    fn follow(&mut self, a: &[f64], pool: &Pool) {
        let (blocks, width, penalty, strength) = (self.blocks, self.blocks.width(), self.penalty, self.strength);
        let length = dot(&self.direction, &self.direction).sqrt();
        let of_all = -dot(&self.sum, &self.direction);
        let direction = Weights::from(std::mem::take(&mut self.direction));
        let items = ranges(blocks.len(), PARTS).into_iter().zip(&mut self.lines).collect();
        pool.map(items, |(range, line): (_, &mut Line)| {
            let (mut next, mut dv, mut room) = (vec![0.0; width], vec![0.0; width], B::Room::default());
            line.slope = 0.0;
            line.looks = 0;
            line.free.clear();
            line.outputs.clear();
            for i in range {
                let example = blocks.example(i);
                if example.share == 0.0 {
                    continue;
                }
                let (a, v) = (&a[i * width..][..width], &self.v[i * width..][..width]);
                let (limits, s) = (example.limits(penalty, 1.0), strength * example.share);
                if stays(a, v, s, blocks.most_change(&example, length), limits) {
                    continue;
                }
                line.looks += 1;
                blocks.slopes(&example, &direction, &mut room, &mut dv);
                next.copy_from_slice(a);
                proximal(&mut next, v, s, limits);
                line.slope -= dot(&next, &dv);
                line.append(i as u32, a, v, &dv, s, limits);
            }
        });
        self.lines[0].slope += of_all;
        self.direction = direction.into();
    }

    /// Looks at examples that the last step has taken.
    pub(super) fn looks(&self) -> u64 {
        self.lines.iter().map(|line| line.looks).sum()
    }

    /// The step along the direction that minimises phi, nearly.
    fn search(&self, a: &[f64], w: &Weights, pool: &Pool) -> f64 {
        let (w_d, d_d) = (dot(w.as_slice(), &self.direction), dot(&self.direction, &self.direction));
        let at = |t: f64| {
            let (slope, curvature) = self.along(t, a, pool);
            (w_d + t * d_d + slope, d_d + curvature)
        };
        let (first, _) = at(0.0);
        // Not so where the matrix is beyond f64.
        if !(first < 0.0 && first.is_finite()) {
            return 0.0;
        }
        let (mut low, mut high, mut t) = (0.0, REACH, REACH);
        for _ in 0..TRIALS {
            let (slope, curvature) = at(t);
            if slope.abs() <= SLOPE * first.abs() || (slope < 0.0 && t >= REACH) {
                return t;
            }
            if slope < 0.0 {
                low = t;
            } else {
                high = t;
            }
            t -= slope / curvature;
            if t <= low || t >= high {
                t = 0.5 * (low + high);
            }
        }
        low
    }

    /// Slope and curvature of the examples' part of phi at a step t.
    fn along(&self, t: f64, variables: &[f64], pool: &Pool) -> (f64, f64) {
        let (blocks, width, penalty, strength) = (self.blocks, self.blocks.width(), self.penalty, self.strength);
        let parts = pool.map(self.lines.iter().collect(), |line: &Line| {
            let (mut slope, mut curvature) = (line.slope, 0.0);
            let (mut a, mut v, mut outputs) = (Vec::new(), Vec::new(), line.outputs.as_slice());
            for &(i, count) in &line.free {
                let (own, rest) = outputs.split_at(count as usize);
                outputs = rest;
                let i = i as usize;
                a.clear();
                a.extend(own.iter().map(|slope| variables[i * width + slope.output as usize]));
                v.clear();
                v.extend(own.iter().map(|slope| f64::from(slope.v) + t * f64::from(slope.dv)));
                let share = blocks.share(i);
                let s = strength * share;
                let pull = proximal(&mut a, &v, s, Limits::new(penalty, share));
                let (mut sum, mut squares) = (0.0, 0.0);
                for (&a, own) in a.iter().zip(own) {
                    if a > 0.0 {
                        let dv = f64::from(own.dv);
                        slope += a * dv;
                        sum += dv;
                        squares += dv * dv;
                    }
                }
                curvature += s * (squares - pull * sum * sum);
            }
            (slope, curvature)
        });
        parts.into_iter().fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1))
    }
}

impl Line {
    /// Takes up an example. An output has weight at a step t only if `u(t) = a + s (v + t dv)` exceeds 0 and comes within the cap of
    /// the largest. Both are linear in t, so what holds at both ends of the reach holds in between.
    fn append(&mut self, i: u32, a: &[f64], v: &[f64], dv: &[f64], s: f64, limits: Limits) {
        let ends = |k: usize| [0.0, REACH].map(|t| a[k] + s * (v[k] + t * dv[k]));
        let (mut top, mut most) = (0, f64::NEG_INFINITY);
        for k in 0..a.len() {
            let u = a[k] + s * v[k];
            (top, most) = if u > most { (k, u) } else { (top, most) };
        }
        let floor = ends(top).map(|u| u - limits.cap);
        let before = self.outputs.len();
        for k in 0..a.len() {
            let [first, last] = ends(k);
            let is_below = (first <= 0.0 && last <= 0.0) || (k != top && first <= floor[0] && last <= floor[1]);
            if !is_below {
                self.outputs.push(Slope { output: k as u32, v: v[k] as f32, dv: dv[k] as f32 });
            }
        }
        let count = self.outputs.len() - before;
        let is_full = ends(top).into_iter().all(|u| u >= limits.cap);
        if count == 1 && is_full && self.outputs[before].output as usize == top {
            self.outputs.truncate(before);
            self.slope += limits.cap * dv[top];
        } else if count > 0 {
            self.free.push((i, count as u32));
        }
    }
}

/// Variables or violations in the parts over which sums are taken.
fn in_parts(mut all: &mut [f64], width: usize) -> Vec<(Range<usize>, &mut [f64])> {
    let mut parts = Vec::new();
    for range in ranges(all.len() / width, PARTS) {
        let (own, rest) = all.split_at_mut(range.len() * width);
        all = rest;
        parts.push((range, own));
    }
    parts
}

/// Does a block stay in its corner as far as the line search may go, where no violation changes by more than `change`?
fn stays(a: &[f64], v: &[f64], s: f64, change: f64, limits: Limits) -> bool {
    let (mut most, mut second) = (f64::NEG_INFINITY, f64::NEG_INFINITY);
    for (a, v) in a.iter().zip(v) {
        let u = a + s * v;
        (most, second) = if u > most { (u, most) } else { (most, second.max(u)) };
    }
    let change = REACH * s * change;
    // Nothing has weight; or one output has all.
    most + change <= 0.0 || (most - change >= limits.cap && second + change <= most - change - limits.cap)
}

/// `a = argmax_b <b, v> - |b - a|^2 / 2s` within the limits. Returns p: on the support of b, its derivative by v is
/// `s (I - p 11')`.
#[inline]
fn proximal(a: &mut [f64], v: &[f64], s: f64, limits: Limits) -> f64 {
    let ([a], [v]) = (&mut *a, v) else { return proximal_of_many(a, v, s, limits) };
    let (u, rigid) = (*a + s * v, s * limits.ridge);
    let is_full = rigid == 0.0 && u > limits.cap;
    *a = if is_full { limits.cap } else { u.max(0.0) / (1.0 + rigid) };
    if is_full { 1.0 } else { rigid / (1.0 + rigid) }
}

/// The same for more outputs than one.
fn proximal_of_many(a: &mut [f64], v: &[f64], s: f64, limits: Limits) -> f64 {
    let (mut most, mut total) = (f64::NEG_INFINITY, 0.0);
    for (a, v) in a.iter_mut().zip(v) {
        *a += s * v;
        most = if *a > most { *a } else { most };
        total += if *a > 0.0 { *a } else { 0.0 };
    }
    let rigid = s * limits.ridge;
    if most <= 0.0 || (rigid == 0.0 && total <= limits.cap) {
        for a in a.iter_mut() {
            *a = if *a > 0.0 { *a } else { 0.0 };
        }
        return rigid;
    }
    let floor = most - limits.cap;
    if rigid == 0.0 && floor >= 0.0 && a.iter().filter(|a| **a > floor).count() == 1 {
        for a in a.iter_mut() {
            *a = if *a > floor { limits.cap } else { 0.0 };
        }
        return 1.0;
    }
    // From the largest down: where s is large, the cap would drown in what the violations add.
    for a in a.iter_mut() {
        *a -= most;
    }
    let (theta, pull) = if rigid > 0.0 {
        let rule = |total: f64, count: f64| (rigid * total - most) / (1.0 + rigid * count);
        let (theta, (_, count)) = threshold_from(a, -most / (1.0 + rigid), rule);
        (theta, rigid / (1.0 + rigid * count))
    } else {
        let rule = |total: f64, count: f64| (total - limits.cap) / count;
        let (theta, (_, count)) = threshold_from(a, (-most).max(-limits.cap), rule);
        (theta, 1.0 / count)
    };
    for a in a.iter_mut() {
        let over = *a - theta;
        *a = if over <= 0.0 {
            0.0
        } else if pull == 1.0 && limits.ridge == 0.0 {
            limits.cap
        } else {
            over
        };
    }
    pull
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        /// A block that is said to stay in its corner does, wherever its violations go within what they may change by.
        #[test]
        fn who_stays(
            outputs in vec((-1.0_f64..1.0, 0.0_f64..1.0, -1.0_f64..1.0), 1..6),
            strength in (0.0_f64..10.0).prop_map(f64::exp2),
            share in 1e-2_f64..10.0,
            change in 0.0_f64..0.5,
            (quadratic, t) in (any::<bool>(), 0.0_f64..=1.0),
        ) {
            let limits = Limits::new(if quadratic { Penalty::Quadratic } else { Penalty::Linear }, share);
            let (s, n) = (strength * share, outputs.len() as f64);
            let a: Vec<f64> = outputs.iter().map(|o| o.1 * share / n).collect();
            let at = |t: f64| {
                let v: Vec<f64> = outputs.iter().map(|o| o.0 + t * change * o.2).collect();
                let mut next = a.clone();
                proximal(&mut next, &v, s, limits);
                next
            };
            let v: Vec<f64> = outputs.iter().map(|o| o.0).collect();
            if stays(&a, &v, s, change, limits) {
                let here = at(0.0);
                let is_corner = here.iter().all(|a| *a == 0.0 || *a == limits.cap);
                prop_assert!(is_corner && here == at(t) && here == at(REACH), "{:?} {:?} {:?}", here, at(t), at(REACH));
            }
            // Deep enough in a corner, and no change: they are seen.
            let deep: Vec<f64> = v.iter().map(|v| v - 10.0 * (1.0 + share)).collect();
            prop_assert!(stays(&a, &deep, s, 0.0, limits));
        }

        /// The conditions of the maximum, and the derivative by differences where no output enters or leaves.
        #[test]
        fn the_proximal_point(
            outputs in vec((-1.0_f64..1.0, 0.0_f64..1.0), 1..25),
            strength in (0.0_f64..40.0).prop_map(f64::exp2),
            share in 1e-3_f64..10.0,
            quadratic: bool,
        ) {
            let limits = Limits::new(if quadratic { Penalty::Quadratic } else { Penalty::Linear }, share);
            let (s, n) = (strength * share, outputs.len() as f64);
            let (v, a): (Vec<f64>, Vec<f64>) = outputs.iter().map(|o| (o.0, o.1 * share / n)).unzip();
            let mut b = a.clone();
            let pull = proximal(&mut b, &v, s, limits);
            let sum: f64 = b.iter().sum();
            prop_assert!(b.iter().all(|b| *b >= 0.0) && sum <= limits.cap * (1.0 + 1e-13), "{} of {:?}", sum, limits);
            // v - (b - a)/s - ridge S is one number on the support, the cap's multiplier, and no more elsewhere.
            let gradient: Vec<f64> = (0..v.len()).map(|k| v[k] - (b[k] - a[k]) / s - limits.ridge * sum).collect();
            let high = gradient.iter().copied().fold(0.0, f64::max);
            let mut low = if sum < limits.cap * (1.0 - 1e-12) { 0.0 } else { f64::INFINITY };
            for (g, _) in gradient.iter().zip(&b).filter(|e| *e.1 > 0.0) {
                low = f64::min(low, *g);
            }
            prop_assert!(high - low <= 1e-12 * (1.0 + 1.0 / strength), "{} {}", high, low);

            let support = |b: &[f64]| b.iter().map(|b| *b > 0.0).collect::<Vec<_>>();
            let step = 1e-5 / strength;
            for l in (0..v.len()).filter(|l| b[*l] > 0.0).take(3) {
                let at = |h: f64| {
                    let (mut v, mut b) = (v.clone(), a.clone());
                    v[l] += h;
                    proximal(&mut b, &v, s, limits);
                    b
                };
                let (more, less) = (at(step), at(-step));
                let full = |b: &[f64]| b.iter().sum::<f64>() >= limits.cap * (1.0 - 1e-12);
                if support(&more) != support(&b) || support(&less) != support(&b) || full(&more) != full(&less) || strength > 1e3 {
                    continue;
                }
                for k in (0..v.len()).filter(|k| b[*k] > 0.0) {
                    let slope = (more[k] - less[k]) / (2.0 * step);
                    let right = s * (f64::from(u8::from(k == l)) - pull);
                    prop_assert!((slope - right).abs() <= 1e-5 * s, "{} is not {}", slope, right);
                }
            }
        }
    }
}
