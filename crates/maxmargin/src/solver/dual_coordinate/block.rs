//! The dual variables of one example, its block.
//!
//! ```text
//! max over a >= 0:  sum_k a_k rhs_k - 1/2 |w|^2 - r/2 S^2,   S = sum_k a_k <= U,   w = rest + sum_k a_k lhs_k
//! linear slack: U = C c_i / n, r = 0;   quadratic slack: no cap, r = n / (C c_i)
//! ```
//!
//! `v_k = rhs_k - <w, lhs_k>` is the violation of output k, the gradient of all but the ridge. The rest of the cap,
//! `U - S`, lies on the truth, whose violation is 0.

use crate::problem::Penalty;

/// Cap and ridge of a block: two numbers tell the penalties apart.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Limits {
    pub(super) cap: f64,
    pub(super) ridge: f64,
}

impl Limits {
    /// `share`: C c_i / n.
    pub(super) fn new(penalty: Penalty, share: f64) -> Self {
        match penalty {
            Penalty::Quadratic => Self { cap: f64::INFINITY, ridge: 1.0 / share },
            Penalty::Linear | Penalty::Hard => Self { cap: share, ridge: 0.0 },
        }
    }

    /// Is that sum of variables at the cap, but for rounding?
    pub(super) fn is_full(&self, sum: f64) -> bool {
        const ROUNDING: f64 = 1e-14;
        sum >= self.cap * (1.0 - ROUNDING)
    }
}

/// Which way a block wants to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// More weight on outputs.
    Up,
    /// Less weight on outputs: back to the truth.
    Down,
}

/// A block at some w.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// H, the largest violation or 0.
    pub(super) h: f64,
    /// The block's share of the duality gap.
    pub(super) gap: f64,
    /// By how much the gradients of outputs that could exchange weight differ: 0 at the block's maximum.
    pub(super) unrest: f64,
    /// Where it wants to go, or, at a corner, where it sits: `Down` where all weight is on the truth.
    pub(super) way: Way,
    /// At a corner of the block: how much its gradient exceeds the next one. Negative elsewhere.
    pub(super) rest: f64,
}

/// Looks at a block whose violations at w are `v` and whose variables are `a`.
#[inline]
pub(super) fn look(v: &[f64], a: &[f64], limits: Limits) -> Look {
    let Sums { sum, inner, largest } = sums(v, a);
    let h = largest.max(0.0);
    let shift = limits.ridge * sum;
    let gap = if limits.ridge > 0.0 {
        0.5 * (h * h / limits.ridge + limits.ridge * sum * sum) - inner
    } else {
        limits.cap * h - inner
    };
    if sum == 0.0 {
        return Look { h, gap, unrest: h, way: if h > 0.0 { Way::Up } else { Way::Down }, rest: -largest };
    }
    let is_full = limits.is_full(sum);
    let mut lowest = if is_full { f64::INFINITY } else { 0.0 };
    let (mut second, mut positive) = (0.0, 0.0);
    // Without branches, so that the loop vectorises.
    for (&v, &a) in v.iter().zip(a) {
        let has_weight = a > 0.0;
        positive += if has_weight { 1.0 } else { 0.0 };
        let (low, high) = if has_weight { (v - shift, 0.0) } else { (f64::INFINITY, v) };
        lowest = if low < lowest { low } else { lowest };
        second = if high > second { high } else { second };
    }
    let top = (largest - shift).max(0.0);
    // All weight on one output, and no ridge that would change with it.
    let at_corner = positive == 1.0 && is_full;
    let rest = if at_corner { lowest - second } else { -1.0 };
    Look { h, gap, unrest: top - lowest, way: if top > 0.0 { Way::Up } else { Way::Down }, rest }
}

/// The same for a block of one output.
#[inline]
pub(super) fn look_at_one(v: f64, a: f64, limits: Limits) -> Look {
    let h = v.max(0.0);
    let gradient = v - limits.ridge * a;
    let gap = if limits.ridge > 0.0 {
        0.5 * (h * h / limits.ridge + limits.ridge * a * a) - a * v
    } else {
        limits.cap * h - a * v
    };
    let way = if gradient > 0.0 { Way::Up } else { Way::Down };
    if a == 0.0 {
        Look { h, gap, unrest: h, way, rest: -v }
    } else if a >= limits.cap {
        Look { h, gap, unrest: (-v).max(0.0), way, rest: v }
    } else {
        Look { h, gap, unrest: gradient.abs(), way, rest: -1.0 }
    }
}

/// Over the outputs of a block.
struct Sums {
    /// `sum a`
    sum: f64,
    /// `sum a v`
    inner: f64,
    /// `max v`
    largest: f64,
}

/// In four lanes, so that the loop vectorises.
#[inline]
fn sums(v: &[f64], a: &[f64]) -> Sums {
    let (v4, v_rest) = v.as_chunks::<4>();
    let (a4, a_rest) = a.as_chunks::<4>();
    let (mut sum, mut inner, mut largest) = ([0.0; 4], [0.0; 4], [f64::NEG_INFINITY; 4]);
    for (v, a) in v4.iter().zip(a4) {
        for l in 0..4 {
            sum[l] += a[l];
            inner[l] += a[l] * v[l];
            largest[l] = if v[l] > largest[l] { v[l] } else { largest[l] };
        }
    }
    for (l, (&v, &a)) in v_rest.iter().zip(a_rest).enumerate() {
        sum[l] += a;
        inner[l] += a * v;
        largest[l] = if v > largest[l] { v } else { largest[l] };
    }
    let largest = largest.into_iter().fold(f64::NEG_INFINITY, |most, v| if v > most { v } else { most });
    Sums { sum: (sum[0] + sum[1]) + (sum[2] + sum[3]), inner: (inner[0] + inner[1]) + (inner[2] + inner[3]), largest }
}

/// The maximum of a block of one output, `norm2 = |lhs|^2`.
#[inline]
pub(super) fn maximise_one(v: f64, a: f64, norm2: f64, limits: Limits) -> f64 {
    let curvature = norm2 + limits.ridge;
    let gradient = v - limits.ridge * a;
    if curvature > 0.0 {
        (a + gradient / curvature).clamp(0.0, limits.cap)
    } else if gradient > 0.0 {
        limits.cap
    } else {
        // Nothing depends on it.
        if gradient < 0.0 { 0.0 } else { a }
    }
}

/// The maximum of a block whose outputs have `<lhs_k, lhs_l> = q (1 + [k = l])`: margin rescaling of stacked outputs. Each
/// variable is `(u_k - theta)+ / q` for one threshold theta, where u is the violation without the block's own weight
/// (Crammer and Singer 2001, section 6; the threshold by dropping outputs below it until none is, as Michelot 1986).
#[inline]
pub(super) fn maximise_stacked(v: &[f64], a: &mut [f64], q: f64, limits: Limits) {
    if q * limits.cap <= f64::MIN_POSITIVE || q <= f64::MIN_POSITIVE {
        return maximise_flat(v, a, limits);
    }
    let sum: f64 = a.iter().sum();
    let mut most = f64::NEG_INFINITY;
    for (a, v) in a.iter_mut().zip(v) {
        *a = v + q * (sum + *a);
        most = if *a > most { *a } else { most };
    }
    if most <= 0.0 {
        a.fill(0.0);
        return;
    }
    // From the largest down: where cap or C is tiny, what the variables differ by would drown in the violations.
    for a in a.iter_mut() {
        *a -= most;
    }
    let u = a;
    let kappa = (q + limits.ridge) / q;
    // Theta of the largest alone is below that of all: few outputs are looked at again.
    let (theta, kept) =
        threshold_from(u, -most / (1.0 + kappa), |total, count| (kappa * total - most) / (1.0 + kappa * count));
    let (room, weight) = (limits.cap * q, kept.0 - kept.1 * theta);
    let (theta, count) = if weight > room {
        let (theta, kept) = threshold_from(u, theta.max(-room), |total, count| (total - room) / count);
        (theta, kept.1)
    } else {
        (theta, f64::NAN)
    };
    for u in u.iter_mut() {
        let over = *u - theta;
        *u = if over <= 0.0 {
            0.0
        } else if count == 1.0 {
            // To the last digit, so that the corner is known as one.
            limits.cap
        } else {
            over / q
        };
    }
}

/// No features, or next to none: the violations do not depend on the block's weight.
fn maximise_flat(v: &[f64], a: &mut [f64], limits: Limits) {
    let best = crate::task::first_max(v);
    a.fill(0.0);
    if v[best] > 0.0 {
        a[best] = limits.cap.min(v[best] / limits.ridge);
    }
}

/// The theta >= start with `theta = of(sum of the u above it, their number)`, and those two: for rules that rise as outputs
/// below theta are dropped.
pub(super) fn threshold_from(u: &[f64], start: f64, of: impl Fn(f64, f64) -> f64) -> (f64, (f64, f64)) {
    /// More candidates than that are looked at where they lie.
    const NEAR: usize = 16;
    let above = |u: &[f64], theta: f64| {
        let (mut total, mut count) = (0.0, 0.0);
        for &u in u {
            if u > theta {
                total += u;
                count += 1.0;
            }
        }
        (total, count)
    };
    let (mut near, mut candidates) = ([0.0; NEAR], 0);
    for &u in u {
        if u > start {
            if candidates < NEAR {
                near[candidates] = u;
            }
            candidates += 1;
        }
    }
    let u = if candidates <= NEAR { &near[..candidates] } else { u };
    let (mut theta, mut last) = (start, f64::NAN);
    loop {
        let (total, count) = above(u, theta);
        if count == last || count == 0.0 {
            return (theta, (total, count));
        }
        last = count;
        theta = of(total, count).max(theta);
    }
}

/// Nothing is gained.
pub(super) const PRECISION: f64 = 1e-12;

/// The maximum of a block with any inner products `<lhs_k, lhs_l>`, by exchanging weight between two outputs, or one and
/// the truth, until what is gained is this share of the first gain. `v` follows.
pub(super) fn maximise_pairs(
    v: &mut [f64],
    a: &mut [f64],
    gram: impl Fn(usize, usize) -> f64,
    limits: Limits,
    precision: f64,
) {
    const STEPS: usize = 1000;
    let mut first = None;
    for _ in 0..STEPS {
        let sum: f64 = a.iter().sum();
        let shift = limits.ridge * sum;
        let (mut up, mut high) = (None, 0.0);
        let (mut down, mut low) = (None, if limits.is_full(sum) { f64::INFINITY } else { 0.0 });
        for (k, (&v, &a)) in v.iter().zip(&*a).enumerate() {
            if v - shift > high {
                (up, high) = (Some(k), v - shift);
            }
            if a > 0.0 && v - shift < low {
                (down, low) = (Some(k), v - shift);
            }
        }
        let rise = high - low;
        if up == down || rise <= precision * *first.get_or_insert(rise) {
            return;
        }
        let curvature = match (up, down) {
            (Some(k), Some(l)) => gram(k, k) + gram(l, l) - 2.0 * gram(k, l),
            (Some(k), None) | (None, Some(k)) => gram(k, k) + limits.ridge,
            (None, None) => return,
        };
        let available = down.map_or(limits.cap - sum, |l| a[l]);
        let step = (rise / curvature).min(available);
        if !(step > 0.0 && step.is_finite()) {
            return;
        }
        if let Some(k) = up {
            // To the last digit where all is given.
            a[k] = if down.is_none() && step == available && sum == 0.0 { limits.cap } else { a[k] + step };
        }
        if let Some(l) = down {
            a[l] = if step == available { 0.0 } else { a[l] - step };
        }
        for (m, v) in v.iter_mut().enumerate() {
            let change = up.map_or(0.0, |k| gram(m, k)) - down.map_or(0.0, |l| gram(m, l));
            *v -= step * change;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn limits() -> impl Strategy<Value = Limits> {
        let scale = (-9.0_f64..3.0).prop_map(|e| 10.0_f64.powf(e));
        prop_oneof![
            scale.clone().prop_map(|share| Limits::new(Penalty::Linear, share)),
            scale.prop_map(|share| Limits::new(Penalty::Quadratic, share)),
        ]
    }

    /// Variables within the limits from shares of them.
    fn start(shares: &[f64], limits: Limits) -> Vec<f64> {
        let most = if limits.cap.is_finite() { limits.cap } else { 1.0 / limits.ridge };
        shares.iter().map(|s| if *s < 0.5 { 0.0 } else { s * most / shares.len() as f64 }).collect()
    }

    /// Violations after the variables went from `a` to `b`.
    fn moved(v: &[f64], a: &[f64], b: &[f64], gram: impl Fn(usize, usize) -> f64) -> Vec<f64> {
        let change = |k: usize| (0..a.len()).map(|l| gram(k, l) * (b[l] - a[l])).sum::<f64>();
        v.iter().enumerate().map(|(k, v)| v - change(k)).collect()
    }

    /// Feasible, and no weight could be exchanged to any gain; the gap of the block itself is the referee, it bounds what
    /// is left to gain.
    fn is_maximum(v: &[f64], a: &[f64], limits: Limits, scale: f64) {
        let sum: f64 = a.iter().sum();
        assert!(a.iter().all(|a| *a >= 0.0) && sum <= limits.cap * (1.0 + 1e-13), "{a:?} {limits:?}");
        let shift = limits.ridge * sum;
        let high = v.iter().fold(0.0, |h, v| f64::max(h, v - shift));
        let mut low = if sum < limits.cap * (1.0 - 1e-9) { 0.0 } else { f64::INFINITY };
        for (v, _) in v.iter().zip(a).filter(|e| *e.1 > 0.0) {
            low = f64::min(low, v - shift);
        }
        assert!(high - low <= 1e-9 * scale, "{v:?} {a:?} {limits:?}: {high} - {low}");
    }

    fn scale_of(v: &[f64], a: &[f64], q: f64) -> f64 {
        v.iter().fold(0.0, |m, v| f64::max(m, v.abs())) + 2.0 * q * a.iter().sum::<f64>()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn stacked_and_pairs_find_the_maximum(
            outputs in vec((-1.0_f64..1.0, 0.0_f64..1.0), 1..30),
            q in prop_oneof![Just(0.0), 1e-6_f64..1e-3, 0.1_f64..10.0],
            limits in limits(),
            ties: bool,
        ) {
            let round = |v: f64| if ties { (v * 3.0).round() / 3.0 } else { v };
            let v: Vec<f64> = outputs.iter().map(|o| round(o.0)).collect();
            let a = start(&outputs.iter().map(|o| o.1).collect::<Vec<_>>(), limits);
            let gram = |k: usize, l: usize| q * if k == l { 2.0 } else { 1.0 };
            let scale = scale_of(&v, &a, q);
            let (mut stacked, mut pairs, mut after) = (a.clone(), a.clone(), v.clone());
            maximise_stacked(&v, &mut stacked, q, limits);
            is_maximum(&moved(&v, &a, &stacked, gram), &stacked, limits, scale);
            maximise_pairs(&mut after, &mut pairs, gram, limits, PRECISION);
            // With next to no curvature, or next to no room, pair steps are as good, but elsewhere.
            if q >= 0.1 && limits.ridge <= 10.0 && outputs.len() <= 10 {
                is_maximum(&after, &pairs, limits, 10.0 * scale);
                let most = stacked.iter().sum::<f64>().max(1e-300);
                for (s, p) in stacked.iter().zip(&pairs) {
                    // What they exchange has a curvature of q, and pairs end at 1e-12 of the first rise.
                    prop_assert!((s - p).abs() <= 1e-8 * most + 1e-10 * scale / q, "{:?} {:?}", stacked, pairs);
                }
            }
        }

        #[test]
        fn one_output(v in -1.0_f64..1.0, share in 0.0_f64..1.0, q in prop_oneof![Just(0.0), 0.01_f64..10.0], limits in limits()) {
            let a = start(&[share], limits)[0];
            let one = maximise_one(v, a, 2.0 * q, limits);
            is_maximum(&[v - 2.0 * q * (one - a)], &[one], limits, 1.0 + 2.0 * q * a);
            let mut stacked = [a];
            maximise_stacked(&[v], &mut stacked, q, limits);
            prop_assert!((one - stacked[0]).abs() <= 1e-9 * one.max(stacked[0]), "{} {}", one, stacked[0]);
        }

        #[test]
        fn both_looks_agree(v in -1.0_f64..1.0, at in 0_u8..3, share in 0.01_f64..0.99, limits in limits()) {
            let most = if limits.cap.is_finite() { limits.cap } else { 2.0 / limits.ridge };
            let a = [0.0, share * most, most][usize::from(at)];
            let (many, one) = (look(&[v], &[a], limits), look_at_one(v, a, limits));
            for (many, one) in [(many.h, one.h), (many.gap, one.gap), (many.unrest, one.unrest), (many.rest, one.rest)] {
                prop_assert!((many - one).abs() <= 1e-12, "{:?} {:?}", many, one);
            }
            prop_assert_eq!(many.way, one.way);
        }

        /// At the maximum nothing is left: no gap, no unrest, whatever the rounding of the sum; elsewhere there is.
        #[test]
        fn at_rest(outputs in vec((-1.0_f64..1.0, 0.0_f64..1.0), 1..20), q in 0.1_f64..10.0, limits in limits()) {
            let v: Vec<f64> = outputs.iter().map(|o| o.0).collect();
            let a = start(&outputs.iter().map(|o| o.1).collect::<Vec<_>>(), limits);
            let gram = |k: usize, l: usize| q * if k == l { 2.0 } else { 1.0 };
            let mut best = a.clone();
            maximise_stacked(&v, &mut best, q, limits);
            let after = moved(&v, &a, &best, gram);
            let (there, scale, sum) = (look(&after, &best, limits), scale_of(&v, &a, q), best.iter().sum::<f64>());
            prop_assert!(there.unrest <= 1e-9 * scale, "{:?}", there);
            prop_assert!(there.gap.abs() <= 1e-9 * scale * (sum + there.h / (q + limits.ridge)), "{:?}", there);
            // In a corner the others' gradients are lower by `rest`.
            if there.rest > 0.0 && sum > 0.0 {
                let corner = best.iter().position(|b| *b > 0.0).unwrap();
                let next = (0..v.len()).filter(|k| *k != corner).fold(0.0, |m, k| f64::max(m, after[k]));
                prop_assert!((there.rest - (after[corner] - next)).abs() <= 1e-12 * scale);
                prop_assert_eq!((best[corner], there.way), (limits.cap, Way::Up));
            }
        }

        #[test]
        fn thresholds(u in vec(-1.0_f64..1.0, 1..60), room in 0.01_f64..5.0) {
            let most = u.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let (theta, (total, count)) = threshold_from(&u, most - room, |total, count| (total - room) / count);
            let over: f64 = u.iter().map(|u| (u - theta).max(0.0)).sum();
            prop_assert!((over - room).abs() <= 1e-12 * room.max(1.0), "{} is not {}", over, room);
            prop_assert_eq!(count, u.iter().filter(|u| **u > theta).count() as f64);
            prop_assert!((total - u.iter().filter(|u| **u > theta).sum::<f64>()).abs() < 1e-12);
        }
    }

    #[test]
    fn no_room() {
        let limits = Limits { cap: 0.0, ridge: 0.0 };
        let mut a = [0.0; 3];
        maximise_stacked(&[1.0, 0.5, -1.0], &mut a, 1.0, limits);
        maximise_pairs(&mut [1.0, 0.5, -1.0], &mut a, |_, _| 1.0, limits, PRECISION);
        assert_eq!((a, maximise_one(1.0, 0.0, 1.0, limits)), ([0.0; 3], 0.0));
    }

    /// A cap that no digit of the violations shows.
    #[test]
    fn a_cap_below_rounding() {
        let limits = Limits::new(Penalty::Linear, 1e-12);
        let mut a = [0.0; 3];
        maximise_stacked(&[1.0, 0.5, 1.0], &mut a, 1e-8, limits);
        assert!((a[0] + a[2] - limits.cap).abs() <= 1e-14 * limits.cap && a[1] == 0.0, "{a:?}");
    }
}
