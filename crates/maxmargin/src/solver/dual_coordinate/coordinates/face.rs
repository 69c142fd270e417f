//! Conjugate gradients on a face of the dual's domain.
//!
//! Coordinate steps soon find which variables end at 0 and which blocks at their cap, and then crawl: their error falls with the
//! condition of the quadratic that is left, that of conjugate gradients with its root, and both take a look at each free block.
//! A step that meets a limit ends
//! there, and the next ones stay on the smaller face (Polyak 1969).
//!
//! ```text
//! max_p  <g, p> - 1/2 |sum p lhs|^2 - 1/2 sum_i r_i (sum of i's p)^2
//! p is 0 where a is; the p's of a block at its cap sum to 0;   g: the gradient, v - r S
//! ```

use std::ops::Range;

use super::super::block::Limits;
use super::super::stack::Blocks;
use super::Coordinates;
use crate::numeric::square;
use crate::parallel::Pool;
use crate::sparse::{axpy, dot};
use crate::weights::Weights;

mod along;

use along::{Along, Cuts};

/// Steps end when one gains less than this share of what the best one gained.
const SETTLED: f64 = 1e-3;
/// Fewer steps than that are not worth the look around.
const LEAST_STEPS: f64 = 8.0;
/// Steps end when so many of them, and this share, have met a limit: the face is not the right one yet.
const MOST_HITS: u64 = 4;
const HIT_SHARE: f64 = 0.25;
/// What is left of a variable beside what it was, and counts as nothing.
const ROUNDING: f64 = 1e-14;

/// What steps on a face came to.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(in super::super) struct Climb {
    /// Looks at blocks.
    pub(in super::super) looks: u64,
    pub(in super::super) end: End,
}

/// Why steps on a face came to their end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum End {
    /// There was no more to gain.
    #[default]
    Settled,
    /// They were as many as were allowed.
    Allowance,
    /// Too many met a limit.
    Limits,
}

/// The free variables, and what conjugate gradients keep of them. Of one run of steps only.
#[derive(Default)]
pub(super) struct Face {
    members: Vec<Member>,
    /// Of all members, one after the other: the outputs with weight, and these weights; zero where a step has met that limit.
    outputs: Vec<u32>,
    a: Vec<f64>,
    /// The gradient at the start and now, the direction of the next step, and what that does to the gradient.
    first_gradient: Vec<f64>,
    gradient: Vec<f64>,
    direction: Vec<f64>,
    bend: Vec<f64>,
    /// What the gradient changes by where each block goes as far as it can.
    bend_of_each: Vec<f64>,
    /// `sum direction lhs`, and where its rows are cut for threads.
    image: Weights,
    cuts: Cuts,
}

/// How the variables move.
#[derive(Clone, Copy)]
enum Step {
    /// All by so much.
    All(f64),
    /// Each block by so much, or to its limit.
    Each(f64),
}

impl Face {
    /// `g' M^-1 g`, M being the curvatures of the blocks.
    fn weighed(&self) -> f64 {
        let of = |m: &Member| {
            let g = &self.gradient[m.part.clone()];
            dot(g, g) / m.curvature
        };
        self.members.iter().map(of).sum()
    }

    /// How far all can go, at most `step`.
    fn first_limit(&self, step: f64) -> f64 {
        let reach = |reach, m: &Member| m.reach(&self.a[m.part.clone()], &self.direction[m.part.clone()], reach);
        self.members.iter().fold(step, reach)
    }

    /// Takes a step, and with it the gradient.
    fn advance(&mut self, step: Step) {
        for m in &mut self.members {
            let (a, p) = (&mut self.a[m.part.clone()], &self.direction[m.part.clone()]);
            let g = &mut self.gradient[m.part.clone()];
            match step {
                Step::All(step) => {
                    m.step(a, p, step);
                    axpy(step, &self.bend[m.part.clone()], g);
                }
                Step::Each(step) => {
                    m.step(a, p, m.reach(a, p, step));
                    axpy(1.0, &self.bend_of_each[m.part.clone()], g);
                }
            }
            m.project(a, g);
        }
    }
}

/// A block that is in no corner.
#[derive(Clone)]
struct Member {
    example: u32,
    /// Its variables.
    part: Range<usize>,
    is_full: bool,
    limits: Limits,
    /// By what its part of the gradient is divided: the curvature, but for the other blocks.
    curvature: f64,
}

impl Member {
    /// The part of a direction that stays on the face.
    fn project(&self, a: &[f64], p: &mut [f64]) {
        let (mut sum, mut count) = (0.0, 0.0);
        for (p, &a) in p.iter_mut().zip(a) {
            *p = if a > 0.0 { *p } else { 0.0 };
            sum += *p;
            count += if a > 0.0 { 1.0 } else { 0.0 };
        }
        if self.is_full {
            for (p, &a) in p.iter_mut().zip(a) {
                *p -= if a > 0.0 { sum / count } else { 0.0 };
            }
        }
    }

    /// How far the block can go, at most `step`.
    fn reach(&self, a: &[f64], p: &[f64], step: f64) -> f64 {
        let (mut reach, mut sum, mut more) = (step, 0.0, 0.0);
        for (&a, &p) in a.iter().zip(p) {
            reach = if p < 0.0 { reach.min(-a / p) } else { reach };
            sum += a;
            more += p;
        }
        if !self.is_full && more > 0.0 { reach.min((self.limits.cap - sum) / more) } else { reach }
    }

    /// Moves the variables; those that have met their limit are there to the last digit.
    fn step(&mut self, a: &mut [f64], p: &[f64], step: f64) {
        let (mut sum, mut count) = (0.0, 0);
        for (a, &p) in a.iter_mut().zip(p) {
            let old = *a;
            *a += step * p;
            *a = if *a > ROUNDING * old { *a } else { 0.0 };
            sum += *a;
            count += usize::from(*a > 0.0);
        }
        // Who is full stays so: its gradient lacks what the sum would change.
        self.is_full |= self.limits.is_full(sum);
        if self.is_full {
            let factor = self.limits.cap / sum;
            for a in a {
                *a = if count == 1 && *a > 0.0 { self.limits.cap } else { *a * factor };
            }
        }
    }
}

impl<B: Blocks> Coordinates<'_, B> {
    /// Steps on the face where the variables are, as many as `looks` looks at blocks allow. Without any where these are too few.
    pub(in super::super) fn climb(&mut self, looks: f64, pool: &Pool) -> Climb {
        self.find_face();
        let members = self.face.members.len();
        let most = looks / members as f64;
        if members == 0 || most < LEAST_STEPS {
            return Climb::default();
        }
        self.find_gradient();
        self.face.cuts.fill(self.blocks, &self.face.members, pool.threads());
        let (steps, end) = pool.inside(|| self.conjugate_gradients(most as u64, pool));
        self.leave_face(pool);
        // The gradient at the start and w at the end are a look each.
        Climb { looks: (steps + 2) * members as u64, end }
    }

    /// The blocks that take part and are in no corner.
    fn find_face(&mut self) {
        let (blocks, width) = (self.blocks, self.blocks.width());
        let Face { members, outputs, a: own, .. } = &mut self.face;
        members.clear();
        outputs.clear();
        own.clear();
        for &i in &self.now.active {
            let a = &self.now.a[i as usize * width..][..width];
            let sum: f64 = a.iter().sum();
            if sum == 0.0 {
                continue;
            }
            let example = blocks.example(i as usize);
            let limits = example.limits(self.penalty, self.now.stage);
            let (is_full, curvature) = (limits.is_full(sum), example.norm2 + limits.ridge);
            let start = outputs.len();
            outputs.extend((0..width as u32).filter(|&k| a[k as usize] > 0.0));
            let count = outputs.len() - start;
            if (is_full && count == 1) || curvature <= f64::MIN_POSITIVE {
                outputs.truncate(start);
                continue;
            }
            own.extend(outputs[start..].iter().map(|&k| a[k as usize]));
            members.push(Member { example: i, part: start..outputs.len(), is_full, limits, curvature });
        }
    }

    /// The gradient where the variables are, as far as it stays on the face.
    fn find_gradient(&mut self) {
        let Face { members, outputs, a, gradient, .. } = &mut self.face;
        gradient.clear();
        gradient.resize(outputs.len(), 0.0);
        for m in members.iter() {
            let (a, g) = (&a[m.part.clone()], &mut gradient[m.part.clone()]);
            let example = self.blocks.example(m.example as usize);
            self.blocks.violations_of(&example, &outputs[m.part.clone()], &self.now.w, &mut self.room, g);
            let against = m.limits.ridge * a.iter().sum::<f64>();
            for g in g.iter_mut() {
                *g -= against;
            }
            m.project(a, g);
        }
    }

    /// At most so many steps. Returns how many looks at all members they took, and why they ended.
    fn conjugate_gradients(&mut self, most: u64, pool: &Pool) -> (u64, End) {
        let size = self.face.gradient.len();
        self.face.first_gradient.clone_from(&self.face.gradient);
        for vector in [&mut self.face.direction, &mut self.face.bend, &mut self.face.bend_of_each] {
            vector.clear();
            vector.resize(size, 0.0);
        }
        if self.face.image.len() != self.now.w.len() {
            self.face.image = Weights::zeros(self.now.w.len());
        }
        let (mut before, mut best, mut steps, mut hits) = (f64::INFINITY, 0.0, 0, 0);
        while steps < most {
            let weighed = self.face.weighed();
            let curvature = self.aim(weighed / before, pool);
            let whole = weighed / curvature;
            // Not so where the quadratic is flat, or the end is reached.
            if !(curvature > 0.0 && whole.is_finite()) {
                return (steps, End::Settled);
            }
            steps += 1;
            let first = self.face.first_limit(whole);
            let mut gain = first * weighed - 0.5 * first * first * curvature;
            if first < whole {
                steps += 1;
                hits += 1;
                let of_each = self.look_at_limits(whole, pool);
                // All go as far as the first, or each as far as it can go.
                gain = gain.max(of_each);
                self.face.advance(if of_each >= gain { Step::Each(whole) } else { Step::All(first) });
                // Another face: the directions so far say nothing of it.
                before = f64::INFINITY;
                self.face.direction.fill(0.0);
            } else {
                self.face.advance(Step::All(whole));
                before = weighed;
            }
            best = f64::max(best, gain);
            if first == whole && gain <= SETTLED * best {
                return (steps, End::Settled);
            }
            if hits > MOST_HITS && hits as f64 > HIT_SHARE * steps as f64 {
                return (steps, End::Limits);
            }
        }
        (steps, End::Allowance)
    }

    /// The next direction, the last one counting `turn` times, and what it does to the gradient. Returns the curvature along it.
    fn aim(&mut self, turn: f64, pool: &Pool) -> f64 {
        let Face { members, outputs, gradient, direction, bend, image, cuts, .. } = &mut self.face;
        for m in members.iter() {
            let (p, g) = (&mut direction[m.part.clone()], &gradient[m.part.clone()]);
            for (p, g) in p.iter_mut().zip(g) {
                *p = g / m.curvature + turn * *p;
            }
        }
        let along = Along { blocks: self.blocks, pool, members, outputs };
        along.sum_up(direction, cuts, image);
        along.slopes(image, bend);
        let mut curvature = 0.0;
        for m in members.iter() {
            let (p, bend) = (&direction[m.part.clone()], &mut bend[m.part.clone()]);
            let change = m.limits.ridge * p.iter().sum::<f64>();
            for b in bend.iter_mut() {
                *b -= change;
            }
            curvature -= dot(bend, p);
        }
        curvature
    }

    /// What the gradient changes by where each block takes `step`, or stops at its limit. Returns what the dual gains.
    fn look_at_limits(&mut self, step: f64, pool: &Pool) -> f64 {
        let Face { members, outputs, a, gradient, direction, bend, bend_of_each, image, cuts, .. } = &mut self.face;
        // First what each falls short of the step.
        for m in members.iter() {
            let (p, lack) = (&direction[m.part.clone()], &mut bend_of_each[m.part.clone()]);
            let short = m.reach(&a[m.part.clone()], p, step) - step;
            lack.iter_mut().zip(p).for_each(|(lack, p)| *lack = short * p);
        }
        let along = Along { blocks: self.blocks, pool, members, outputs };
        along.sum_up(bend_of_each, cuts, image);
        along.slopes(image, bend_of_each);
        let mut gain = 0.0;
        for m in members.iter() {
            let (p, g, bend) = (&direction[m.part.clone()], &gradient[m.part.clone()], &bend[m.part.clone()]);
            let of_each = &mut bend_of_each[m.part.clone()];
            let reach = m.reach(&a[m.part.clone()], p, step);
            let change = m.limits.ridge * (reach - step) * p.iter().sum::<f64>();
            for (((of_each, bend), p), g) in of_each.iter_mut().zip(bend).zip(p).zip(g) {
                *of_each += step * bend - change;
                gain += reach * p * (g + 0.5 * *of_each);
            }
        }
        gain
    }

    /// Takes the variables over, or as much of their change as the dual rises for: after many steps the gradient has drifted.
    fn leave_face(&mut self, pool: &Pool) {
        let (blocks, width) = (self.blocks, self.blocks.width());
        let Face { members, outputs, a: own, first_gradient, direction: change, image, cuts, .. } = &mut self.face;
        let (mut slope, mut curvature) = (0.0, 0.0);
        for m in members.iter() {
            let (of, change) = (&outputs[m.part.clone()], &mut change[m.part.clone()]);
            let a = &self.now.a[m.example as usize * width..][..width];
            for ((&k, new), change) in of.iter().zip(&own[m.part.clone()]).zip(change.iter_mut()) {
                *change = new - a[k as usize];
            }
            slope += dot(change, &first_gradient[m.part.clone()]);
            curvature += m.limits.ridge * square(change.iter().sum());
        }
        Along { blocks, pool, members, outputs }.sum_up(change, cuts, image);
        curvature += dot(image.as_slice(), image.as_slice());
        let step = if slope > 0.5 * curvature { 1.0 } else { slope / curvature };
        // Not so where nothing was gained.
        if step.is_nan() || step <= 0.0 {
            return;
        }
        for m in members.iter() {
            let (of, change) = (&outputs[m.part.clone()], &mut change[m.part.clone()]);
            let a = &mut self.now.a[m.example as usize * width..][..width];
            for ((&k, &new), change) in of.iter().zip(&own[m.part.clone()]).zip(change.iter_mut()) {
                *change *= step;
                a[k as usize] = if step == 1.0 { new } else { a[k as usize] + *change };
            }
            self.now.rhs += blocks.rhs(&blocks.example(m.example as usize), of, change);
        }
        axpy(step, image.as_slice(), self.now.w.as_mut_slice());
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::stack::{Signed, Slotted};
    use super::*;
    use crate::parallel::Pool;
    use crate::problem::{Classes, Formulation, Penalty, Problem, Rescaling};
    use crate::random::Random;
    use crate::sparse::SparseMatrix;
    use crate::task::Places;
    use crate::tasks::binary::Binary;
    use crate::tasks::multiclass::{Costs, Multiclass};

    const N: usize = 120;
    const D: u32 = 40;

    /// Rows that are much alike, so that coordinate steps crawl.
    fn rows(random: &mut Random) -> SparseMatrix {
        let mut x = SparseMatrix::new();
        for _ in 0..N {
            let common = random.unit();
            x.push_row((0..D).map(|j| (j, (common + 0.3 * random.unit()) as f32)));
        }
        x.set_columns(D);
        x
    }

    /// The dual never falls, the variables stay within their limits, w is theirs, and the optimum is reached.
    fn climbs<B: Blocks>(blocks: &B, penalty: Penalty, d: usize) {
        let (width, pool) = (blocks.width(), Pool::new(1).unwrap());
        let mut coordinates = Coordinates::new(blocks, penalty, d, 3);
        let mut climbed = 0;
        for round in 0..400 {
            coordinates.pass();
            let before = coordinates.certify(&pool);
            if before.primal - before.dual <= 1e-10 * before.primal {
                assert!(climbed > 0, "steps on faces came to something");
                return;
            }
            coordinates.wake_all();
            climbed += coordinates.climb(if round % 3 == 0 { 2e5 } else { 10.0 * N as f64 }, &pool).looks;
            for (i, a) in coordinates.now.a.chunks_exact(width).enumerate() {
                let cap = blocks.example(i).limits(penalty, 1.0).cap;
                assert!(a.iter().all(|a| *a >= 0.0) && a.iter().sum::<f64>() <= cap * (1.0 + 1e-12), "{a:?} of {cap}");
            }
            let (w, rhs) = (coordinates.now.w.as_slice().to_vec(), coordinates.now.rhs);
            coordinates.rebuild();
            let scale = 1.0 + dot(&w, &w).sqrt();
            assert!(w.iter().zip(coordinates.now.w.as_slice()).all(|(a, b)| (a - b).abs() <= 1e-9 * scale));
            assert!((rhs - coordinates.now.rhs).abs() <= 1e-9 * (1.0 + rhs.abs()));
            let after = coordinates.certify(&pool);
            assert!(after.dual >= before.dual - 1e-12 * before.dual.abs(), "{} after {}", after.dual, before.dual);
            coordinates.wake_all();
        }
        panic!("the optimum is not reached");
    }

    #[test]
    fn the_dual_rises_to_the_optimum() {
        let mut random = Random::new(7);
        let (x, pool) = (rows(&mut random), Pool::new(1).unwrap());
        let views = x.views();
        let (two, five) = (Binary::new(D), Multiclass::new(D, Costs::zero_one(5)));
        let y: Vec<u32> = (0..N).map(|_| (5.0 * random.unit()) as u32).collect();
        let bits: Vec<u32> = y.iter().map(|y| y % 2).collect();
        for (rescaling, penalty) in [
            (Rescaling::Margin, Penalty::Linear),
            (Rescaling::Slack, Penalty::Linear),
            (Rescaling::Margin, Penalty::Quadratic),
        ] {
            let f = Formulation { c: 3.0 * N as f64, rescaling, penalty, loss_scale: 1.5 };
            let problem = Problem::new(&two, &views, &bits, None, f).unwrap();
            let classes = Classes::of(&problem, &pool).unwrap();
            let Places::Signs(block) = classes.places else { panic!("two outputs") };
            climbs(&Signed::new(classes, block), penalty, problem.dimension());

            let problem = Problem::new(&five, &views, &y, None, f).unwrap();
            let classes = Classes::of(&problem, &pool).unwrap();
            let Places::Slots(block) = classes.places else { panic!("many outputs") };
            climbs(&Slotted::new(classes, block), penalty, problem.dimension());
        }
    }

    /// Rows are cut for threads, sums are not.
    #[test]
    fn threads_make_no_difference() {
        let mut random = Random::new(11);
        let (x, five) = (rows(&mut random), Multiclass::new(D, Costs::zero_one(5)));
        let y: Vec<u32> = (0..N).map(|_| random.below(5) as u32).collect();
        let views = x.views();
        let problem =
            Problem::new(&five, &views, &y, None, Formulation { c: 3.0 * N as f64, ..Formulation::default() }).unwrap();
        let climbed = |threads: usize| {
            let pool = Pool::new(threads).unwrap();
            let classes = Classes::of(&problem, &pool).unwrap();
            let Places::Slots(block) = classes.places else { panic!("many outputs") };
            let blocks = Slotted::new(classes, block);
            let mut coordinates = Coordinates::new(&blocks, Penalty::Linear, problem.dimension(), 3);
            for _ in 0..10 {
                coordinates.pass();
            }
            assert!(coordinates.climb(1e5, &pool).looks > 0);
            Vec::from(coordinates.now.w).into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        assert!([2, 3, 7].into_iter().all(|threads| climbed(threads) == climbed(1)));
    }
}
