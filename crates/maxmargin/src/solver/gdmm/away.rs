//! Away-step Frank-Wolfe over all blocks at once (Algorithm 2 of the paper).
//!
//! The masses of all blocks together are a mean of *corners*, each of which has one label for every block. A step goes
//! towards the corner of the best labels, or away from the worst corner of the mean, whichever rises more steeply, as far
//! as it rises. This is the method that the paper proves to converge linearly. Blocks that are visited one by one
//! need far fewer passes; this one is here to compare with.

use serde::{Deserialize, Serialize};

use super::Run;
use super::block::Block;
use super::visit::{Few, VisitScratch, add_difference};
use crate::task::Part;
use crate::weights::Weights;

/// What is left of a corner below this weight is rounding.
const NOTHING: f64 = 1e-12;

/// One label for every block: of each example the variables, then the factors.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Corner {
    pub(super) weight: f64,
    pub(super) labels: Vec<u32>,
}

/// All that a look at the blocks finds.
struct Survey {
    /// The corner of the best labels, and its score.
    best: Corner,
    best_score: f64,
    /// By corner of the mean.
    scores: Vec<f64>,
}

impl<'p> Run<'p, '_> {
    /// The corner of all truths, at which everything begins.
    pub(super) fn first_corner(&self) -> Corner {
        let blocks = self.duals.iter().flat_map(|duals| duals.variables.iter().chain(&duals.factors));
        Corner { weight: 1.0, labels: blocks.map(|block| block.held[0].0).collect() }
    }

    /// Steps until one drops no corner, then the multipliers.
    pub(super) fn away_pass(&mut self, scratch: &mut VisitScratch<'p>) {
        loop {
            let survey = self.survey(scratch);
            if !self.away_step(survey, scratch) {
                break;
            }
        }
        self.position.disagreement = 0.0;
        for i in 0..self.problem.len() {
            let mut duals = std::mem::take(&mut self.duals[i]);
            self.fill(i, &duals, scratch);
            self.update_multipliers(self.problem.share(i), &mut duals, scratch);
            self.duals[i] = duals;
        }
    }

    /// Scores every label of every block.
    fn survey(&self, scratch: &mut VisitScratch<'p>) -> Survey {
        let mut best = Corner { weight: 0.0, labels: Vec::new() };
        let (mut best_score, mut scores) = (0.0, vec![0.0; self.corners.len()]);
        for i in 0..self.problem.len() {
            let (duals, cap) = (&self.duals[i], self.problem.share(i));
            self.fill(i, duals, scratch);
            let (variables, factors) = (duals.variables.len(), duals.factors.len());
            for block in 0..variables + factors {
                if block < variables {
                    self.score_variable(i, block, scratch);
                } else {
                    self.score_factor(i, block - variables, scratch);
                }
                let (range, at) = (&scratch.range, best.labels.len());
                let label =
                    (1..range.len()).fold(0, |best, label| if range[label] > range[best] { label } else { best });
                best_score += cap * range[label];
                for (corner, sum) in self.corners.iter().zip(&mut scores) {
                    *sum += cap * range[corner.labels[at] as usize];
                }
                best.labels.push(label as u32);
            }
        }
        Survey { best, best_score, scores }
    }

    /// One step. True where it dropped a corner.
    fn away_step(&mut self, survey: Survey, scratch: &mut VisitScratch<'p>) -> bool {
        let Survey { best, best_score, scores } = survey;
        let now: f64 = self.corners.iter().zip(&scores).map(|(corner, score)| corner.weight * score).sum();
        let worst = (0..scores.len()).min_by(|&a, &b| scores[a].total_cmp(&scores[b])).expect("there is a corner");
        let (towards, away) = (best_score - now, now - scores[worst]);
        // With one corner there is nothing to go away from.
        let is_away = away > towards && self.corners.len() > 1;
        let (rise, most, sign) = if is_away {
            (away, self.corners[worst].weight / (1.0 - self.corners[worst].weight), -1.0)
        } else {
            (towards, 1.0, 1.0)
        };
        let labels = if is_away { self.corners[worst].labels.clone() } else { best.labels };
        let (w, bend) = self.towards(&labels, scratch);
        if rise <= 0.0 {
            return false;
        }
        let step = if bend > 0.0 { (rise / bend).min(most) } else { most };
        self.go(&labels, &w, sign * step);
        self.corners.iter_mut().for_each(|corner| corner.weight *= 1.0 - sign * step);
        match self.corners.iter_mut().find(|corner| corner.labels == labels) {
            Some(corner) => corner.weight += sign * step,
            None => self.corners.push(Corner { weight: step, labels }),
        }
        self.corners.retain(|corner| corner.weight > NOTHING);
        is_away && step == most
    }

    /// w at a corner, and how the objective bends on the way there.
    fn towards(&self, labels: &[u32], scratch: &mut VisitScratch<'p>) -> (Weights, f64) {
        let (mut w, mut ties) = (self.problem.zero(), 0.0);
        let (mut difference, mut labels) = (Few::default(), labels.iter().copied());
        for i in 0..self.problem.len() {
            let (x, duals, cap) = (self.problem.place(i), &self.duals[i], self.problem.share(i));
            self.fill(i, duals, scratch);
            let VisitScratch { structure, truth, .. } = &*scratch;
            let variables: Vec<u32> = labels.by_ref().take(duals.variables.len()).collect();
            for (v, (&label, &truth)) in variables.iter().zip(truth).enumerate() {
                let domain = structure.domains[v];
                self.factored.unary(x, v, &mut |part| {
                    add_label(&mut w, &part, (label, domain), -cap);
                    add_label(&mut w, &part, (truth, domain), cap);
                });
            }
            for (f, label) in labels.by_ref().take(duals.factors.len()).enumerate() {
                let factor = structure.factors[f];
                add_label(&mut w, &factor.part, (label, factor.labels), -cap);
                add_label(&mut w, &factor.part, (structure.label(f, truth), factor.labels), cap);
                for (joint, v) in structure.joints_of(f) {
                    difference.entries.clear();
                    difference.add(structure.own(joint, label), -cap);
                    difference.add(variables[v], cap);
                    add_difference(duals, structure, f, (joint, v), &mut difference);
                    ties += difference.entries.iter().map(|entry| entry.1 * entry.1).sum::<f64>();
                }
            }
        }
        let bend: f64 = w.as_slice().iter().zip(self.w.as_slice()).map(|(a, b)| (a - b) * (a - b)).sum();
        (w, bend + self.rho * ties)
    }

    /// Goes a step towards a corner, or where it is negative away from it. `w`: that of the corner.
    fn go(&mut self, labels: &[u32], w: &Weights, step: f64) {
        self.w.move_towards(w, step);
        self.position.norm2 = self.w.norm2();
        let (mut labels, mut cost) = (labels.iter().copied(), 0.0);
        for i in 0..self.problem.len() {
            let cap = self.problem.share(i);
            let duals = &mut self.duals[i];
            for block in duals.variables.iter_mut().chain(&mut duals.factors) {
                block.move_towards(labels.next().expect("a label for each block"), step, cap);
            }
            // The truth comes first.
            let wrong = |block: &Block| {
                let mass: f64 = block.held[1..].iter().map(|held| held.1).sum();
                self.factored.cost(block.held[0].0) * mass
            };
            cost += duals.variables.iter().map(wrong).sum::<f64>();
        }
        self.position.cost = cost * self.problem.formulation().loss_scale;
    }
}

/// `w += change * phi` in the slot of a label of so many.
fn add_label(w: &mut Weights, part: &Part<'_>, (label, labels): (u32, u32), change: f64) {
    if let Some(slot) = part.slots.of(label as usize, labels as usize) {
        let w = w.as_mut_slice();
        part.phi.iter().for_each(|(j, x)| w[part.block.at(j, slot)] += change * f64::from(x));
    }
}
