//! The argmax of a function of score and loss, where the loss does not add up over the nodes of a tree.
//!
//! F1 depends on the number p of predicted brackets and on the number m of those that the truth has, too: with t brackets of the
//! truth it is `D = 1 - 2 m / (p + t)`. A linear function of p and m does add up. So a tree is found with the tangent of D at a
//! guess, then with the tangent at what was found, as long as that is better: the search. A tree with counts (p, m) that is
//! better than the best known must have a score of at least some `s(p, m)`; where no tree of the chart can have that, the search
//! has found the maximum. Else, in sentences that are short enough, the part of the chart that could is looked at with both counts in it (see
//! [`Chart::best_counted`](crate::inference::cky::Chart::best_counted)): exact. In longer ones what is known is kept, with a
//! bound: no tree has a score with tilt above the chart's best, whatever its counts.

use super::{Parse, ParseLoss, ParseScratch, Parsing, Tilt, common};
use crate::error::Result;
use crate::inference::cky::{Tally, Wanted};
use crate::task::{Counted, Task};
use crate::weights::Weights;

/// Tangents that are tried.
const TANGENTS: usize = 4;
/// The share of its size by which a threshold may be off.
const ROUNDING: f64 = 1e-9;

/// Where the search keeps what derivations need to be better than what is known.
#[derive(Debug, Default)]
pub(super) struct Search {
    least: Vec<f64>,
}

/// A loss by two counts: the first raises it, the second lowers it.
#[derive(Debug, Clone, Copy)]
struct Counts {
    is_f1: bool,
    /// Brackets of the truth.
    truth: i32,
    /// What the counts of a tree can be at most.
    most: (i32, i32),
}

impl Counts {
    fn of(&self, truth: &Parse, y: &Parse) -> (i32, i32) {
        let matched = common(&truth.brackets, &y.brackets) as i32;
        let predicted = y.brackets.len() as i32;
        if self.is_f1 { (predicted, matched) } else { (predicted - 2 * matched, 0) }
    }

    fn loss(&self, (p, m): (f64, f64)) -> f64 {
        let all = p + f64::from(self.truth);
        match self.is_f1 {
            true if all > 0.0 => 1.0 - 2.0 * m / all,
            true => 0.0,
            false => all,
        }
    }

    /// The slopes of the loss.
    fn slopes(&self, (p, m): (f64, f64)) -> (f64, f64) {
        let all = (p + f64::from(self.truth)).max(1.0);
        if self.is_f1 { (2.0 * m / (all * all), -2.0 / all) } else { (1.0, 0.0) }
    }

    /// What a bracket adds to the counts if the truth has it, and if not.
    fn steps(&self) -> ((i32, i32), (i32, i32)) {
        if self.is_f1 { ((1, 1), (1, 0)) } else { ((-1, 0), (1, 0)) }
    }

    /// What no tree has more of, if none has a score with tilt above `best`.
    fn most_value(&self, tilt: (f64, f64), best: f64, value: &dyn Fn(f64, f64) -> f64) -> f64 {
        let all = (self.least_first()..=self.most.0).flat_map(|p| (0..=self.most.1).map(move |m| (p, m)));
        let trees = all.filter(|(p, m)| !self.is_f1 || m <= p).map(real);
        let values = trees.map(|at| value(self.loss(at), best - tilt.0 * at.0 - tilt.1 * at.1));
        values.fold(f64::NEG_INFINITY, f64::max)
    }

    fn least_first(&self) -> i32 {
        if self.is_f1 { 0 } else { -self.truth }
    }
}

fn real(counts: (i32, i32)) -> (f64, f64) {
    (f64::from(counts.0), f64::from(counts.1))
}

impl Search {
    /// Finds, for all counts so far, the least score with tilt of a better tree; `better`: the least score without tilt that a
    /// tree with a loss needs.
    fn prepare(&mut self, counts: &Counts, tilt: (f64, f64), better: impl Fn(f64) -> f64) {
        let (first, width) = (counts.least_first(), counts.most.1 + 1);
        self.least.clear();
        for p in first..=counts.most.0 {
            for m in 0..width {
                // A tree that has more of the truth than there is of it is none.
                let is_one = !counts.is_f1 || m <= p;
                let at = real((p, m));
                let needed =
                    if is_one { better(counts.loss(at)) + tilt.0 * at.0 + tilt.1 * at.1 } else { f64::INFINITY };
                self.least.push(needed - ROUNDING * (1.0 + needed.abs().min(f64::MAX)));
            }
        }
        // F1's counts only grow, the other one may go back.
        let width = width as usize;
        if !counts.is_f1 {
            let least = self.least.iter().copied().fold(f64::INFINITY, f64::min);
            return self.least.fill(least);
        }
        for at in (0..self.least.len()).rev() {
            let right = if (at + 1) % width == 0 { f64::INFINITY } else { self.least[at + 1] };
            let below = self.least.get(at + width).copied().unwrap_or(f64::INFINITY);
            self.least[at] = self.least[at].min(right).min(below);
        }
    }

    /// See [`prepare`](Self::prepare).
    fn least(&self, counts: &Counts, (p, m): (i32, i32)) -> f64 {
        let at = (p - counts.least_first()) * (counts.most.1 + 1) + m;
        self.least.get(at as usize).copied().unwrap_or(f64::INFINITY)
    }
}

impl Parsing {
    /// More phrases than so many no tree has.
    pub(super) fn most_phrases(&self, words: usize) -> usize {
        (words - 1) + (2 * words - 1) * self.grammar.parts().longest
    }

    /// Is a sentence short enough for counts in the chart?
    pub(super) fn is_short(&self, x: &[u32]) -> bool {
        x.len() <= self.settings.exact_words as usize
    }

    /// `argmax_y value(D(truth, y), score of y)`, into `y`. `value` is linear in the score and does not fall with it, and does not
    /// fall with the loss where it is better than the truth.
    pub(super) fn search(
        &self,
        w: &Weights,
        x: &[u32],
        truth: &Parse,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut ParseScratch,
        y: &mut Parse,
    ) -> Result<()> {
        let is_f1 = self.settings.loss == ParseLoss::F1;
        let t = truth.brackets.len() as i32;
        let most = (self.most_phrases(x.len()) as i32, if is_f1 { t } else { 0 });
        let counts = Counts { is_f1, truth: t, most };
        let (found, wrong) = counts.steps();
        let mut trial = std::mem::take(&mut scratch.trial);
        let mut score = self.score(w, x, truth)?;
        let mut known = value(0.0, score);
        y.clone_from(truth);
        // A guess: as many brackets as the truth, half of them right.
        let mut at = if is_f1 { (f64::from(t), 0.5 * f64::from(t)) } else { (0.0, 0.0) };
        let mut tilt = (0.0, 0.0);
        let (mut is_proven, mut bound) = (false, f64::INFINITY);
        for _ in 0..TANGENTS {
            let slopes = counts.slopes(at);
            let rate = exchange_rate(value, counts.loss(at), score);
            tilt = (rate * slopes.0, rate * slopes.1);
            let tilted = |counts: (i32, i32)| tilt.0 * f64::from(counts.0) + tilt.1 * f64::from(counts.1);
            let given = Tilt { truth: &truth.brackets, found: tilted(found), wrong: tilted(wrong) };
            self.fill(w, x, Some(given), scratch);
            let ParseScratch { chart, scores, steps, walk, features, search, .. } = scratch;
            let best = chart.best(self.grammar.rules(), scores, steps);
            if best == f64::NEG_INFINITY {
                is_proven = true;
                break;
            }
            self.take(x, steps, walk, features, &mut trial)?;
            let (own, own_score) = (counts.of(truth, &trial), self.score(w, x, &trial)?);
            let own_value = value(counts.loss(real(own)), own_score);
            let is_better = own_value > known;
            if is_better {
                (known, score, at) = (own_value, own_score, real(own));
                y.clone_from(&trial);
            }
            search.prepare(&counts, tilt, |loss| least_score(value, loss, known));
            is_proven = best < search.least(&counts, (counts.least_first(), 0));
            if !self.is_short(x) {
                bound = bound.min(counts.most_value(tilt, best, value));
            }
            if is_proven || !is_better {
                break;
            }
        }
        scratch.trial = trial;
        scratch.bound = (!self.is_short(x)).then_some(if is_proven { known } else { bound.max(known) });
        if is_proven || !self.is_short(x) {
            return Ok(());
        }
        let ParseScratch { chart, scores, steps, walk, features, search, .. } = scratch;
        let tally = Tally { truth: &truth.brackets, found, wrong, tilt };
        let wanted = Wanted {
            value: &|own, score| value(counts.loss(real(own)), score),
            least: &|own| search.least(&counts, own),
            known,
        };
        if chart.best_counted(self.grammar.rules(), scores, &tally, &wanted, steps).is_some() {
            self.take(x, steps, walk, features, y)?;
        }
        Ok(())
    }
}

/// How much score a unit of loss is worth.
fn exchange_rate(value: &dyn Fn(f64, f64) -> f64, loss: f64, score: f64) -> f64 {
    const STEP: f64 = 1e-4;
    let by_loss = value(loss + STEP, score) - value((loss - STEP).max(0.0), score);
    let by_score = value(loss, score + STEP) - value(loss, score - STEP);
    let rate = by_loss / by_score * if loss < STEP { 2.0 * STEP / (loss + STEP) } else { 1.0 };
    if rate.is_finite() { rate.max(0.0) } else { 1.0 }
}

/// The score from which on a tree with this loss has more than that value.
fn least_score(value: &dyn Fn(f64, f64) -> f64, loss: f64, known: f64) -> f64 {
    let at_zero = value(loss, 0.0);
    let slope = value(loss, 1.0) - at_zero;
    if slope > 0.0 { (known - at_zero) / slope } else { f64::INFINITY }
}

impl Counted<Parsing> for Parsing {
    fn check(&self, _x: &[u32], _truth: &Parse) -> std::result::Result<(), String> {
        Ok(())
    }

    fn is_exact(&self, x: &[u32]) -> bool {
        self.settings.loss == ParseLoss::ZeroOne || self.is_short(x)
    }

    fn argmax_of(
        &self,
        w: &Weights,
        x: &[u32],
        truth: &Parse,
        value: &dyn Fn(f64, f64) -> f64,
        scratch: &mut ParseScratch,
        y: &mut Parse,
    ) -> Result<bool> {
        if self.settings.loss != ParseLoss::ZeroOne {
            self.search(w, x, truth, value, scratch, y)?;
            return Ok(true);
        }
        self.fill(w, x, None, scratch);
        let other = self.best_other(truth, scratch);
        y.clone_from(truth);
        if other > f64::NEG_INFINITY && value(1.0, other) > value(0.0, self.score(w, x, truth)?) {
            let ParseScratch { steps, walk, features, .. } = scratch;
            self.take(x, steps, walk, features, y)?;
        }
        Ok(true)
    }
}
