//! The generative model: matched letters are drawn together, all else from the background.
//!
//! ```text
//! weight of a match of letters a and b = log P(a, b) / (P(a) P(b)),      P = (count + 1) / (total + kinds)
//! ```
//!
//! (Tsochantaridis, Hofmann, Joachims, Altun 2004, section 5.4, with Laplace's estimates.) P(a, b) is counted in the true
//! alignments, P(a) and P(b) in the sequences; marks likewise, and independent of the letters. The model does not tell what gaps
//! cost: of a grid of costs those are taken that do best on the examples themselves.

use super::{AlignLoss, AlignScratch, Aligned, Alignment, Gaps, Query};
use crate::numeric::ln;
use crate::task::Task;
use crate::weights::Weights;

type Example<'e> = (&'e Query, &'e Aligned, f64);

pub(super) fn estimate<'e>(task: &Alignment, examples: &mut dyn Iterator<Item = Example<'e>>) -> Weights {
    let examples: Vec<Example<'e>> = examples.collect();
    let (letters, marks) = (task.settings.letters as usize, task.settings.marks as usize);
    let mut w = Weights::zeros(task.dimension());
    for (block, kinds) in [(0, letters), (2, marks)] {
        if kinds == 0 {
            continue;
        }
        let (mut pairs, mut of_x, mut of_z) = (vec![0.0; kinds * kinds], vec![0.0; kinds], vec![0.0; kinds]);
        for &(query, truth, weight) in &examples {
            let z = &query.candidates[truth.candidate as usize];
            let code = |sequence: &super::Sequence, i: usize| {
                usize::from(if block == 0 { sequence.letters[i] } else { sequence.mark(i) })
            };
            let count = |counts: &mut [f64], at: usize| counts.get_mut(at).into_iter().for_each(|n| *n += weight);
            (0..query.x.len()).for_each(|i| count(&mut of_x, code(&query.x, i)));
            (0..z.len()).for_each(|j| count(&mut of_z, code(z, j)));
            for (i, j) in truth.path.matches() {
                let (a, b) = (code(&query.x, i as usize), code(z, j as usize));
                if a < kinds && b < kinds {
                    pairs[a * kinds + b] += weight;
                }
            }
        }
        for counts in [&mut pairs, &mut of_x, &mut of_z] {
            smooth(counts);
        }
        let weights = &mut w.as_mut_slice()[task.blocks[block].base as usize..][..kinds * kinds];
        for (at, weight) in weights.iter_mut().enumerate() {
            *weight = ln(pairs[at] / (of_x[at / kinds] * of_z[at % kinds]));
        }
    }
    choose_gaps(task, &examples, &mut w);
    w
}

/// Laplace's estimates of probabilities.
fn smooth(counts: &mut [f64]) {
    let total = counts.iter().sum::<f64>() + counts.len() as f64;
    for n in counts {
        *n = (*n + 1.0) / total;
    }
}

/// Puts the costs of gaps into w with which it does best.
fn choose_gaps(task: &Alignment, examples: &[Example<'_>], w: &mut Weights) {
    let grid = &task.settings.gap_grid;
    // Who predicts does not know the alignment of the homologue.
    let queries: Vec<Query> = examples.iter().map(|&(query, ..)| Query { given: None, ..query.clone() }).collect();
    let base = task.blocks[1].base as usize;
    let mut best: Option<((f64, f64), [f64; 2])> = None;
    for &open in grid {
        for &extend in grid
            .iter()
            .filter(|&&extend| if task.settings.gaps == Gaps::Linear { extend == open } else { extend <= open })
        {
            let costs = [open, extend];
            set_gaps(task, base, costs, w);
            let fault = fault(task, w, &queries, examples);
            // The first of equals, so that runs agree.
            if best.is_none_or(|(least, _)| fault < least) {
                best = Some((fault, costs));
            }
        }
    }
    if let Some((_, costs)) = best {
        set_gaps(task, base, costs, w);
    }
}

fn set_gaps(task: &Alignment, base: usize, costs: [f64; 2], w: &mut Weights) {
    let weights = &mut w.as_mut_slice()[base..][..task.blocks[1].width as usize];
    weights.iter_mut().zip(costs).for_each(|(weight, cost)| *weight = -cost);
}

/// The loss on the examples; between equals, how little homologues stand out from their best decoys.
fn fault(task: &Alignment, w: &Weights, queries: &[Query], examples: &[Example<'_>]) -> (f64, f64) {
    let (mut scratch, mut scores, mut y) = (AlignScratch::default(), Vec::new(), Aligned::default());
    let (mut loss, mut apart, mut size) = (0.0, 0.0, 0.0);
    for (query, &(_, truth, weight)) in queries.iter().zip(examples) {
        if task.settings.loss != AlignLoss::ZeroOne {
            y.residues = truth.residues;
            task.align(w, query, 0, &mut scratch, &mut y.path);
            loss += weight * task.loss(truth, &y);
            continue;
        }
        task.candidate_scores(w, query, &mut scratch, &mut scores);
        let Some(decoy) = scores[1..].iter().copied().reduce(f64::max) else { continue };
        loss += if decoy >= scores[0] { weight } else { 0.0 };
        apart += weight * (scores[0] - decoy);
        size += weight * scores[0].abs();
    }
    (loss, if size > 0.0 { -apart / size } else { 0.0 })
}
