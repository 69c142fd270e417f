//! A QP that was saved, and may have been damaged since.

use serde::Deserialize;

use super::Qp;
use super::cut::Cut;
use super::dual::Dual;

/// Numbers that are read are at most this, far above any of a true run: what is built of them does not overflow.
pub(crate) const LARGEST: f64 = 1e100;

/// Relative error of the sum of a group's variables.
const ROUNDING: f64 = 1e-11;

/// What a [`Qp`] writes: all of it but what each solve fills anew.
#[derive(Debug, Deserialize)]
pub(super) struct Saved {
    dimension: usize,
    cuts: Vec<Cut>,
    idle: Vec<u32>,
    born: Vec<u64>,
    pushed: u64,
    dual: Dual,
}

impl TryFrom<Saved> for Qp {
    type Error = &'static str;

    fn try_from(Saved { dimension, cuts, idle, born, pushed, dual }: Saved) -> Result<Self, Self::Error> {
        let (p, n) = (dual.caps.len(), dual.caps.len() + cuts.len());
        let columns = [&dual.a, &dual.b, &dual.gradient, &dual.norm];
        if born.len() != cuts.len() || born.iter().any(|&born| born >= pushed) || pushed > 1 << 60 {
            return Err("cuts that were never pushed");
        }
        if idle.len() != cuts.len() || columns.iter().any(|c| c.len() != n) || dual.group.len() != n {
            return Err("a dual with other numbers of variables and cuts");
        }
        if dual.hessian.len() != n || !dual.caps.iter().all(|&u| u >= 0.0) {
            return Err("inner products or caps that do not fit");
        }
        let slacks_fit = (0..p).all(|g| dual.group[g] == g && dual.b[g] == 0.0 && dual.a[g] >= 0.0);
        let cut_fits = |(j, cut): (usize, &Cut)| {
            let j = p + j;
            cut.is_sound(dimension, LARGEST)
                && dual.group[j] < p
                && dual.b[j] == cut.rhs()
                && (0.0..=LARGEST).contains(&dual.a[j])
                && dual.norm[j] == dual.hessian.at(j, j).max(0.0).sqrt()
        };
        // The variables of a group take all of its cap, where it has one.
        let mut sums = vec![0.0; p];
        dual.group.iter().zip(&dual.a).filter(|(g, _)| **g < p).for_each(|(&g, a)| sums[g] += a);
        let is_full = |(sum, cap): (&f64, &f64)| cap.is_infinite() || (sum - cap).abs() <= ROUNDING * cap;
        if !sums.iter().zip(&dual.caps).all(is_full) {
            return Err("variables that do not take what their groups have");
        }
        if !slacks_fit || !cuts.iter().enumerate().all(cut_fits) || !dual.gradient.iter().all(|g| g.is_finite()) {
            return Err("cuts and variables that do not fit");
        }
        Ok(Self::with(dimension, cuts, idle, born, pushed, dual))
    }
}
