//! The grouped dual QP against Clarabel, and its laws.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{
    DefaultSettings, DefaultSettingsBuilder, DefaultSolver, IPSolver, NonnegativeConeT, SolverStatus, SupportedConeT,
};
use maxmargin::parallel::Pool;
use maxmargin::qp::{Cut, Outcome, Qp};
use maxmargin::weights::Weights;
use proptest::prelude::*;

/// A problem by its numbers: cuts with their groups, and the caps.
#[derive(Debug, Clone)]
struct Numbers {
    dimension: usize,
    caps: Vec<f64>,
    cuts: Vec<(usize, Vec<f64>, f64)>,
}

impl Numbers {
    fn empty_qp(&self) -> Qp {
        Qp::new(self.dimension, self.caps.clone())
    }

    fn qp(&self) -> Qp {
        let (mut qp, pool) = (self.empty_qp(), Pool::new(1).unwrap());
        for (group, lhs, rhs) in &self.cuts {
            qp.push(*group, Cut::from_dense(lhs, *rhs, 0.0, -1.0), &pool).unwrap();
        }
        qp
    }

    /// The restricted primal at w, by its definition; `None` where a group without a cap is violated by more than
    /// `slop` (absolute).
    fn primal(&self, w: &[f64], slop: f64) -> Option<f64> {
        let mut worst = vec![0.0; self.caps.len()];
        for (g, lhs, rhs) in &self.cuts {
            worst[*g] = f64::max(worst[*g], rhs - inner(lhs, w));
        }
        let mut sum = 0.5 * inner(w, w);
        for (cap, worst) in self.caps.iter().zip(worst) {
            if cap.is_finite() {
                sum += cap * worst;
            } else if worst > slop {
                return None;
            }
        }
        Some(sum)
    }

    /// 1e-8 of the primal at 0, and what f64 can tell when all of the caps is used (|lhs|^2 < 64 here).
    fn tolerance(&self) -> f64 {
        let caps: f64 = self.caps.iter().sum();
        1e-8 * (1.0 + self.primal(&vec![0.0; self.dimension], 0.0).unwrap()) + 1e-14 * 64.0 * caps * caps
    }

    /// The optimum by Clarabel, from the primal: `min 1/2 |w|^2 + sum U_g xi_g`.
    fn optimum(&self) -> Option<f64> {
        let (d, p) = (self.dimension, self.caps.len());
        let n = d + p;
        let dense = |entries: Vec<(usize, usize, f64)>, rows: usize| {
            let (mut i, mut j, mut v) = (Vec::new(), Vec::new(), Vec::new());
            for (row, column, value) in entries {
                i.push(row);
                j.push(column);
                v.push(value);
            }
            CscMatrix::new_from_triplets(rows, n, i, j, v)
        };
        let quadratic = dense((0..d).map(|k| (k, k, 1.0)).collect(), n);
        let mut linear = vec![0.0; d];
        linear.extend(self.caps.iter().map(|&u| if u.is_finite() { u } else { 1.0 }));
        // -<w, lhs> - xi + s = -rhs; -xi + s = 0 (no xi without a cap)
        let (mut entries, mut right) = (Vec::new(), Vec::new());
        for (row, (g, lhs, rhs)) in self.cuts.iter().enumerate() {
            entries.extend(lhs.iter().enumerate().map(|(k, v)| (row, k, -v)));
            if self.caps[*g].is_finite() {
                entries.push((row, d + g, -1.0));
            }
            right.push(-rhs);
        }
        for g in 0..p {
            entries.push((self.cuts.len() + g, d + g, -1.0));
            right.push(0.0);
        }
        let rows = right.len();
        let cones: [SupportedConeT<f64>; 1] = [NonnegativeConeT(rows)];
        let settings: DefaultSettings<f64> = DefaultSettingsBuilder::default()
            .verbose(false)
            .tol_gap_abs(1e-10)
            .tol_gap_rel(1e-10)
            .tol_feas(1e-10)
            .build()
            .unwrap();
        let mut solver =
            DefaultSolver::new(&quadratic, &linear, &dense(entries, rows), &right, &cones, settings).unwrap();
        solver.solve();
        // Less than its full accuracy tells nothing about ours.
        (solver.solution.status == SolverStatus::Solved).then_some(solver.solution.obj_val)
    }
}

fn inner(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// Random cuts, some of them copies or mixtures of others.
fn numbers(caps: impl Strategy<Value = Vec<f64>>) -> impl Strategy<Value = Numbers> {
    (1..30_usize, caps).prop_flat_map(|(dimension, caps)| {
        let p = caps.len();
        let value = prop_oneof![3 => -1.0..1.0, 1 => Just(0.0)];
        let fresh = (prop::collection::vec(value, dimension), 0.0..1.0, any::<prop::sample::Index>(), 0..10_u8);
        let cuts = prop::collection::vec((0..p, fresh), 1..40);
        (Just(dimension), Just(caps), cuts).prop_map(|(dimension, caps, raw)| {
            let mut cuts: Vec<(usize, Vec<f64>, f64)> = Vec::new();
            for (j, (group, (lhs, rhs, other, kind))) in raw.into_iter().enumerate() {
                let (lhs, rhs) = match (kind, j) {
                    (0, 1..) => cuts[other.index(j)].clone_sides(),
                    (1 | 2, 1..) => {
                        let (l, r) = cuts[other.index(j)].clone_sides();
                        let last = &cuts[j - 1];
                        (l.iter().zip(&last.1).map(|(x, y)| 0.25 * x + 0.75 * y).collect(), 0.25 * r + 0.75 * last.2)
                    }
                    _ => (lhs, rhs),
                };
                cuts.push((group, lhs, rhs));
            }
            Numbers { dimension, caps, cuts }
        })
    })
}

trait Sides {
    fn clone_sides(&self) -> (Vec<f64>, f64);
}

impl Sides for (usize, Vec<f64>, f64) {
    fn clone_sides(&self) -> (Vec<f64>, f64) {
        (self.1.clone(), self.2)
    }
}

fn soft() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec((-3.0..6.0_f64).prop_map(|e| 10.0_f64.powf(e)), 1..4)
}

/// `w = sum a_j lhs_j`
fn weights(qp: &Qp) -> Vec<f64> {
    let mut w = Weights::zeros(qp.dimension());
    qp.weights_into(&mut w, &Pool::new(1).unwrap());
    w.into()
}

/// a is feasible, and value and gap are what they are defined to be.
fn check_laws(numbers: &Numbers, qp: &Qp) {
    let mut sums = vec![0.0; numbers.caps.len()];
    for (j, &a) in qp.alphas().iter().enumerate() {
        assert!(a >= 0.0 && a.is_finite());
        sums[qp.group_of(j)] += a;
    }
    for (sum, cap) in sums.iter().zip(qp.caps()) {
        assert!(*sum <= cap * (1.0 + 1e-12), "{sum} > {cap}");
    }
    let w = weights(qp);
    let ba: f64 = qp.cuts().iter().zip(qp.alphas()).map(|(c, a)| c.rhs() * a).sum();
    let value = ba - 0.5 * inner(&w, &w);
    // |lhs|^2 < 64 here: the rounding of a score, and what a cap or the a's make of it.
    let (mass, finite) = (sums.iter().sum::<f64>(), qp.caps().iter().filter(|u| u.is_finite()).sum::<f64>());
    let rounding = 1e-14 * (1.0 + 64.0 * mass);
    assert!((qp.value() - value).abs() <= rounding * (1.0 + mass), "{} {value}", qp.value());
    if let Some(primal) = numbers.primal(&w, 0.0).filter(|_| numbers.caps.iter().all(|u| u.is_finite())) {
        assert!(
            (qp.gap() - (primal - value)).abs() <= rounding * (1.0 + mass + finite),
            "{} {}",
            qp.gap(),
            primal - value
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_optimum_is_clarabels(numbers in numbers(soft())) {
        let mut qp = numbers.qp();
        let tolerance = numbers.tolerance();
        let outcome = qp.solve(tolerance);
        check_laws(&numbers, &qp);
        prop_assert_eq!(outcome, Outcome::Solved);
        prop_assert!(qp.gap() <= tolerance);
        if let Some(optimum) = numbers.optimum() {
            prop_assert!(qp.value() <= optimum + 1e-7 * (1.0 + optimum.abs()), "{} {}", qp.value(), optimum);
            prop_assert!(qp.value() >= optimum - tolerance - 1e-7 * (1.0 + optimum.abs()), "{} {}", qp.value(), optimum);
        }
    }

    #[test]
    fn a_warm_start_reaches_the_cold_optimum(numbers in numbers(soft())) {
        let tolerance = numbers.tolerance();
        let (mut cold, mut warm, pool) = (numbers.qp(), numbers.empty_qp(), Pool::new(1).unwrap());
        prop_assert_eq!(cold.solve(tolerance), Outcome::Solved);
        let mut value = 0.0;
        for (group, lhs, rhs) in &numbers.cuts {
            warm.push(*group, Cut::from_dense(lhs, *rhs, 0.0, -1.0), &pool).unwrap();
            prop_assert_eq!(warm.solve(tolerance), Outcome::Solved);
            let mass = 1.0 + warm.alphas().iter().sum::<f64>();
            prop_assert!(warm.value() >= value - 1e-14 * 64.0 * mass * mass, "{} {}", warm.value(), value);
            value = warm.value();
        }
        check_laws(&numbers, &warm);
        prop_assert!((warm.value() - cold.value()).abs() <= tolerance * 1.01);
    }

    #[test]
    fn dropping_and_merging_keep_the_value(numbers in numbers(soft()), rounds in 1..4_u32, room in 1..20_usize) {
        let mut qp = numbers.qp();
        let scale = 1.0 + numbers.primal(&vec![0.0; numbers.dimension], 0.0).unwrap();
        for _ in 0..rounds {
            let _ = qp.solve(1e-8 * scale);
        }
        let (value, gap, active) = (qp.value(), qp.gap(), qp.active());
        qp.drop_inactive(rounds + 1);
        prop_assert_eq!(qp.len(), numbers.cuts.len());
        qp.drop_inactive(rounds);
        prop_assert_eq!((qp.len(), qp.active()), (active, active));
        prop_assert_eq!(qp.value(), value);
        prop_assert!(qp.gap() <= gap);

        let w = weights(&qp);
        let newest = qp.cuts().last().cloned();
        qp.shrink_to(room);
        prop_assert!(qp.len() <= room.max(numbers.caps.len() + 1));
        prop_assert!((qp.value() - value).abs() <= 1e-10 * scale, "{} {}", qp.value(), value);
        prop_assert_eq!(qp.cuts().last().cloned(), newest);
        let after = weights(&qp);
        let length = inner(&w, &w).sqrt();
        let far = w.iter().zip(&after).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max);
        prop_assert!(far <= 1e-9 * (1.0 + length + numbers.caps.iter().sum::<f64>() * 1e-3), "{} {}", far, length);
        let _ = qp.solve(1e-8 * scale);
        prop_assert!(qp.value() >= value - 1e-10 * scale);
    }

    #[test]
    fn other_caps_lead_to_their_own_optimum(numbers in numbers(soft()), factor in 0.01..100.0_f64) {
        let mut other = numbers.clone();
        for cap in &mut other.caps {
            *cap *= factor;
        }
        let tolerance = other.tolerance();
        let (mut moved, mut fresh) = (numbers.qp(), other.qp());
        let _ = moved.solve(tolerance);
        moved.set_caps(other.caps.clone());
        check_laws(&other, &moved);
        prop_assert_eq!(moved.solve(tolerance), Outcome::Solved);
        prop_assert_eq!(fresh.solve(tolerance), Outcome::Solved);
        check_laws(&other, &moved);
        prop_assert!((moved.value() - fresh.value()).abs() <= 1.01 * tolerance);
    }

    #[test]
    fn the_hard_margin_is_clarabels(
        direction in prop::collection::vec(-1.0..1.0, 2..20),
        raw in prop::collection::vec((prop::collection::vec(-1.0..1.0, 20), 0.0..1.0, 0..8_u8), 1..40),
        soft_cap in prop::option::of(0.01..100.0_f64),
    ) {
        // Every cut agrees with `direction` by 0.05 at least: separable. With a cap, the last half may be violated.
        let d = direction.len();
        let length2 = inner(&direction, &direction);
        prop_assume!(length2 > 0.1);
        let mut caps = vec![f64::INFINITY];
        caps.extend(soft_cap);
        let n = raw.len();
        let cuts = raw.into_iter().enumerate().map(|(j, (mut lhs, rhs, kind))| {
            lhs.truncate(d);
            let agreement = inner(&lhs, &direction);
            let wanted = agreement.abs() + 0.05;
            for (l, u) in lhs.iter_mut().zip(&direction) {
                *l += (wanted - agreement) * u / length2;
            }
            let group = usize::from(soft_cap.is_some() && j >= n / 2);
            if group == 1 {
                for l in &mut lhs {
                    *l -= 0.5;
                }
            }
            (group, lhs, if kind == 0 { 0.0 } else { rhs + 0.1 })
        });
        let numbers = Numbers { dimension: d, caps, cuts: cuts.collect() };
        let mut qp = numbers.qp();
        let optimum = numbers.optimum();
        let tolerance = 1e-7 * (1.0 + optimum.unwrap_or(1.0).abs());
        prop_assert_eq!(qp.solve(tolerance), Outcome::Solved);
        check_laws(&numbers, &qp);
        prop_assert!(qp.gap() >= -1e-9 * (1.0 + qp.value()));
        if let Some(optimum) = optimum {
            prop_assert!((qp.value() - optimum).abs() <= 2.0 * tolerance, "{} {}", qp.value(), optimum);
        }
    }

    #[test]
    fn contradictions_are_found(
        raw in prop::collection::vec(prop::collection::vec(-1.0..1.0, 3..8), 1..6),
        shares in prop::collection::vec(0.05..1.0, 6),
        before in 0..6_usize,
        apart in any::<bool>(),
    ) {
        // Some cuts and the negative of a mixture of them, the latter in a group of its own or not.
        let d = raw.iter().map(Vec::len).min().unwrap();
        let mut mixture = vec![0.0; d];
        let mut cuts: Vec<(usize, Vec<f64>, f64)> = Vec::new();
        for (lhs, share) in raw.iter().zip(&shares) {
            mixture.iter_mut().zip(lhs).for_each(|(m, l)| *m -= share * l);
            cuts.push((0, lhs[..d].to_vec(), 1.0));
        }
        prop_assume!(inner(&mixture, &mixture) > 1e-4);
        let place = before.min(cuts.len());
        cuts.insert(place, (usize::from(apart), mixture, 1.0));
        let numbers = Numbers { dimension: d, caps: vec![f64::INFINITY; 2], cuts };
        prop_assert_eq!(numbers.qp().solve(1e-6), Outcome::Unbounded);
        let (mut warm, pool) = (numbers.empty_qp(), Pool::new(1).unwrap());
        let mut outcome = Outcome::Solved;
        for (group, lhs, rhs) in &numbers.cuts {
            warm.push(*group, Cut::from_dense(lhs, *rhs, 0.0, -1.0), &pool).unwrap();
            outcome = warm.solve(1e-6);
        }
        prop_assert_eq!(outcome, Outcome::Unbounded);
    }

    #[test]
    fn a_rounded_cut_stays_valid(
        lhs in prop::collection::vec(prop_oneof![2 => -1.0..1.0, 1 => Just(0.0), 1 => -1e-30..1e30_f64], 1..40),
        rhs in 0.0..1.0, radius in 0.0..1e4_f64, exponent in -12.0..2.0_f64,
        raw in prop::collection::vec(-1.0..1.0_f64, 40),
    ) {
        let budget = 10.0_f64.powf(exponent);
        let cut = Cut::from_dense(&lhs, rhs, radius, budget);
        prop_assert!(cut.rhs() <= rhs && cut.rhs() >= rhs - budget);
        let mut w = raw[..lhs.len()].to_vec();
        let length = inner(&w, &w).sqrt();
        for v in &mut w {
            *v *= radius / length.max(1e-12);
        }
        let (stored, truth) = (cut.rhs() - cut.dot_dense(&w), rhs - inner(&lhs, &w));
        let scale: f64 = rhs + lhs.iter().zip(&w).map(|(l, w)| (l * w).abs()).sum::<f64>();
        prop_assert!(stored <= truth + 1e-12 * scale, "{} {}", stored, truth);
    }
}

/// A reproducible number in -1..1.
fn noise(state: &mut u64) -> f64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

#[test]
fn threads_do_not_change_a_bit() {
    // 60,000 x 40 products: enough work to be shared.
    let solve = |threads: usize| {
        let (pool, mut state) = (Pool::new(threads).unwrap(), 3);
        let mut qp = Qp::new(60_000, vec![10.0, 3.0]);
        for j in 0..40 {
            let full = j % 3 != 0;
            let lhs: Vec<f64> =
                (0..60_000).map(|k| if full || k % 7 == 0 { 0.01 * noise(&mut state) } else { 0.0 }).collect();
            qp.push(j % 2, Cut::from_dense(&lhs, 1.0 + noise(&mut state) / 2.0, 1.0, 1e-3), &pool).unwrap();
            let _ = qp.solve(1e-6);
        }
        let w = weights(&qp);
        (qp.value(), qp.gap(), qp.alphas().to_vec(), w)
    };
    assert_eq!(solve(1), solve(2));
}

#[test]
fn a_rank_deficient_problem_with_a_huge_cap_does_not_crawl() {
    // Seconds for pair steps alone (see DEPENDENCIES, the dual QP). Twice as many cuts as dimensions.
    let (pool, mut state, d) = (Pool::new(1).unwrap(), 7, 60);
    let mut qp = Qp::new(d, vec![1e6]);
    for _ in 0..120 {
        let lhs: Vec<f64> = (0..d).map(|_| noise(&mut state)).collect();
        qp.push(0, Cut::from_dense(&lhs, 1.0 + noise(&mut state), 0.0, -1.0), &pool).unwrap();
        let _ = qp.solve(1e-9 * (1.0 + qp.value()));
        assert!(qp.gap() <= 1e-7 * (1.0 + qp.value()), "{} {}", qp.gap(), qp.value());
    }
    assert!(qp.active() <= d + 1);
}

#[test]
fn corners() {
    let pool = Pool::new(1).unwrap();
    let mut qp = Qp::new(2, vec![2.0]);
    assert!(qp.is_empty());
    assert_eq!((qp.solve(0.0), qp.value(), qp.gap()), (Outcome::Solved, 0.0, 0.0));

    // <w, 0> >= 1: all of the cap goes there, whatever w.
    qp.push(0, Cut::from_dense(&[0.0, 0.0], 1.0, 1.0, 0.0), &pool).unwrap();
    assert_eq!((qp.solve(0.0), qp.value(), qp.alphas()), (Outcome::Solved, 2.0, &[2.0][..]));
    let mut hard = Qp::new(2, vec![f64::INFINITY]);
    hard.push(0, Cut::from_dense(&[0.0, 0.0], 1.0, 1.0, 0.0), &pool).unwrap();
    assert_eq!(hard.solve(0.0), Outcome::Unbounded);

    // A cap of zero: the group's cuts count for nothing.
    let mut none = Qp::new(2, vec![0.0, 1.0]);
    none.push(0, Cut::from_dense(&[1.0, 0.0], 1.0, 1.0, 0.0), &pool).unwrap();
    none.push(1, Cut::from_dense(&[2.0, 0.0], 1.0, 1.0, 0.0), &pool).unwrap();
    assert_eq!(none.solve(1e-12), Outcome::Solved);
    assert_eq!((none.value(), none.alphas()), (0.125, &[0.0, 0.25][..]));

    // The hard margin in one dimension: 2 w >= 1.
    let mut qp = Qp::new(1, vec![f64::INFINITY]);
    qp.push(0, Cut::from_dense(&[2.0], 1.0, 1.0, 0.0), &pool).unwrap();
    qp.push(0, Cut::from_dense(&[3.0], 0.0, 1.0, 0.0), &pool).unwrap();
    assert_eq!(qp.gap(), f64::INFINITY);
    assert_eq!(qp.solve(1e-12), Outcome::Solved);
    assert_eq!((qp.value(), qp.alphas()), (0.125, &[0.25, 0.0][..]));
    // From no cap to one and back.
    qp.set_caps(vec![0.1]);
    assert_eq!(qp.alphas(), [0.1, 0.0]);
    assert_eq!(qp.solve(1e-12), Outcome::Solved);
    qp.set_caps(vec![f64::INFINITY]);
    assert_eq!(qp.solve(1e-12), Outcome::Solved);
    assert!((qp.value() - 0.125).abs() < 1e-12);
}

#[test]
fn a_flat_cut_is_filled_to_the_cap_at_once() {
    // Found by the random tests: <w, 0> >= b crawled towards the cap when the cap had risen.
    let cuts = [([0.178], 0.612), ([0.0], 0.496), ([-0.665], 0.0), ([0.0], 0.0)];
    let numbers = Numbers {
        dimension: 1,
        caps: vec![4e5],
        cuts: cuts.iter().map(|(lhs, rhs)| (0, lhs.to_vec(), *rhs)).collect(),
    };
    let mut qp = numbers.qp();
    assert_eq!(qp.solve(0.1), Outcome::Solved);
    qp.set_caps(vec![6e5]);
    assert_eq!(qp.solve(0.1), Outcome::Solved);
    assert!(qp.value() > 0.496 * 6e5);
}

/// Saved between any two steps and read again, a QP goes on in the same bits.
#[test]
fn saved_and_read() {
    let (d, pool) = (12, Pool::new(1).unwrap());
    let mut state = 5;
    let mut qp = Qp::new(d, vec![3.0, 1.0, f64::INFINITY]);
    for round in 0..60 {
        let mut read: Qp = postcard::from_bytes(&postcard::to_stdvec(&qp).unwrap()).unwrap();
        let lhs: Vec<f64> = (0..d).map(|_| noise(&mut state)).collect();
        // Some in f32, some in f64.
        let cut = Cut::from_dense(&lhs, 1.0 + noise(&mut state), 10.0, f64::from(round % 2));
        for qp in [&mut qp, &mut read] {
            qp.push(round as usize % 3, cut.clone(), &pool).unwrap();
            let _ = qp.solve(1e-9 * (1.0 + qp.value()));
            qp.drop_inactive(5);
            qp.shrink_to(15);
            if round == 40 {
                qp.widen(20.0);
                qp.set_caps(vec![1.0, 4.0, f64::INFINITY]);
            }
        }
        assert_eq!((qp.alphas(), qp.cuts()), (read.alphas(), read.cuts()));
        assert_eq!((qp.value().to_bits(), qp.gap().to_bits()), (read.value().to_bits(), read.gap().to_bits()));
    }
}

/// Cuts that hold farther out hold less near by: the bound falls, a little, and the next solve has it right.
#[test]
fn a_wider_radius() {
    let (d, pool) = (12, Pool::new(1).unwrap());
    let mut state = 6;
    let mut qp = Qp::new(d, vec![3.0]);
    for _ in 0..20 {
        let lhs: Vec<f64> = (0..d).map(|_| noise(&mut state)).collect();
        qp.push(0, Cut::from_dense(&lhs, 1.0, 1.0, 1.0), &pool).unwrap();
    }
    assert_eq!(qp.solve(1e-10), Outcome::Solved);
    let value = qp.value();
    qp.widen(0.5);
    assert!((qp.value() - value).abs() < 1e-12);
    qp.widen(1000.0);
    assert!(qp.value() < value - 1e-5 && qp.value() > value - 1e-2, "{} after {value}", qp.value());
    assert_eq!(qp.solve(1e-10), Outcome::Solved);
}
