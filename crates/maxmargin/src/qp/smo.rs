//! Steps along pairs of variables: cheap, and good while far from the optimum.

use super::dual::{Dual, Phase};

/// A pair closer than this fraction of its length is a pair of equals: the value is linear along it.
const FLAT: f64 = 1e-15;

/// Steps between two looks at the gap.
const LOOK: usize = 16;

/// The ends of a group: where the gradient is largest, and where it is smallest with a > 0.
#[derive(Debug, Clone, Copy)]
struct Ends {
    top: usize,
    bottom: Option<usize>,
}

/// Sequential minimal optimisation (Platt 1998) with the second-order choice of the pair (Fan, Chen, Lin
/// 2005, WSS 2), inside the group whose ends differ most. Moving weight from one variable of a group to
/// another keeps the group's sum, and a slack takes part like any other variable.
#[derive(Debug, Clone, Default)]
pub(super) struct Smo {
    ends: Vec<Ends>,
    peak: Vec<f64>,
}

impl Smo {
    /// At most `steps` steps.
    pub(super) fn ascend(&mut self, dual: &mut Dual, tolerance: f64, steps: usize) -> Phase {
        for step in 0..steps {
            if step % LOOK == 0 && dual.gap(&mut self.peak) <= tolerance {
                return Phase::Solved;
            }
            let Some((up, lowest)) = self.widest(dual) else { return Phase::Spent };
            let down = partner(dual, up, lowest);
            let rise = dual.gradient[up] - dual.gradient[down];
            let (curvature, flat) = curvature(dual, up, down);
            let step = if curvature > flat { (rise / curvature).min(dual.a[down]) } else { dual.a[down] };
            if step.is_infinite() {
                return Phase::Unbounded; // lhs = 0 and b > 0 in a group without a cap
            }
            dual.a[up] += step;
            dual.a[down] = if step < dual.a[down] { dual.a[down] - step } else { 0.0 };
            let rows = dual.hessian.row(up).iter().zip(dual.hessian.row(down));
            for (g, (hu, hd)) in dual.gradient.iter_mut().zip(rows) {
                *g -= step * (hu - hd);
            }
        }
        Phase::Spent
    }

    /// The top of the group whose ends differ most, and its bottom.
    fn widest(&mut self, dual: &Dual) -> Option<(usize, usize)> {
        self.ends.clear();
        self.ends.extend((0..dual.groups()).map(|g| Ends { top: g, bottom: (dual.a[g] > 0.0).then_some(g) }));
        for j in dual.cuts() {
            let (ends, g) = (&mut self.ends[dual.group[j]], dual.gradient[j]);
            if g > dual.gradient[ends.top] {
                ends.top = j;
            }
            if dual.a[j] > 0.0 && ends.bottom.is_none_or(|k| g < dual.gradient[k]) {
                ends.bottom = Some(j);
            }
        }
        let mut widest = (0.0, None);
        for ends in &self.ends {
            if let Some(bottom) = ends.bottom {
                let width = dual.gradient[ends.top] - dual.gradient[bottom];
                if width > widest.0 {
                    widest = (width, Some((ends.top, bottom)));
                }
            }
        }
        widest.1
    }
}

/// The variable that gains most when it gives weight to `up`.
fn partner(dual: &Dual, up: usize, lowest: usize) -> usize {
    let group = dual.group[up];
    let mut best = (0.0, lowest);
    for j in std::iter::once(group).chain(dual.cuts()) {
        let rise = dual.gradient[up] - dual.gradient[j];
        if dual.group[j] == group && dual.a[j] > 0.0 && rise > 0.0 {
            let (curvature, flat) = curvature(dual, up, j);
            let gain = rise * rise / curvature.max(flat);
            if gain > best.0 {
                best = (gain, j);
            }
        }
    }
    best.1
}

/// The curvature along a pair, and the value below which it is none.
fn curvature(dual: &Dual, up: usize, down: usize) -> (f64, f64) {
    let (u, d) = (dual.norm[up], dual.norm[down]);
    (dual.hessian.distance2(up, down), FLAT * (u * u + d * d).max(f64::MIN_POSITIVE / FLAT))
}
