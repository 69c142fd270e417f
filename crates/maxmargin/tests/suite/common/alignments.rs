//! Small random problems of alignments, all their outputs, and the losses from their definitions.

use std::collections::HashSet;

use maxmargin::inference::align::{Op, Path, Reach, Run};
use maxmargin::problem::{OracleScratch, Penalty, Problem, Rescaling};
use maxmargin::sparse::dot;
use maxmargin::task::{LossTerm, Task};
use maxmargin::tasks::alignment::{AlignLoss, AlignSettings, Aligned, Gaps, NONE, Query, Sequence};

use maxmargin::weights::Weights;

use super::{Draw, PENALTIES, RESCALINGS, formulation, psi};

pub const LOSSES: [AlignLoss; 4] = [AlignLoss::ZeroOne, AlignLoss::Q, AlignLoss::Q4, AlignLoss::Hamming];

pub fn settings(draw: &mut Draw, loss: AlignLoss) -> AlignSettings {
    AlignSettings {
        letters: 1 + draw.below(3) as u32,
        marks: [0, 0, 2][draw.below(3)],
        reach: if draw.below(2) == 0 { Reach::Local } else { Reach::Global },
        gaps: if draw.below(2) == 0 { Gaps::Linear } else { Gaps::Affine },
        loss,
        gap_grid: AlignSettings::GRID.to_vec(),
    }
}

pub fn sequence(draw: &mut Draw, settings: &AlignSettings, length: usize) -> Sequence {
    // Now and then a letter that is not known.
    let mut code = |count: u32| if draw.below(9) == 0 { NONE } else { draw.below(count as usize) as u8 };
    Sequence {
        letters: (0..length).map(|_| code(settings.letters)).collect(),
        marks: if settings.marks > 0 { (0..length).map(|_| code(settings.marks)).collect() } else { Vec::new() },
    }
}

/// All alignments of sequences of these lengths.
pub fn paths(columns: u32, rows: u32, settings: &AlignSettings) -> Vec<Path> {
    fn go(columns: u32, rows: u32, gaps: Gaps, path: &mut Path, found: &mut Vec<Path>) {
        found.push(path.clone());
        let (x, z) = path.end().unwrap();
        for op in [Op::Match, Op::OnlyX, Op::OnlyZ] {
            if x + u32::from(op != Op::OnlyZ) > columns || z + u32::from(op != Op::OnlyX) > rows {
                continue;
            }
            let is_same = path.runs.last().is_some_and(|run| run.op == op);
            if is_same {
                path.runs.last_mut().unwrap().count += 1;
                go(columns, rows, gaps, path, found);
                path.runs.last_mut().unwrap().count -= 1;
            }
            if !is_same || op != Op::Match && gaps == Gaps::Affine {
                path.runs.push(Run { op, count: 1 });
                go(columns, rows, gaps, path, found);
                path.runs.pop();
            }
        }
    }
    let mut found = Vec::new();
    for x in 0..=columns {
        for z in 0..=rows {
            if settings.reach == Reach::Local || x + z == 0 {
                go(columns, rows, settings.gaps, &mut Path { x, z, runs: Vec::new() }, &mut found);
            }
        }
    }
    let is_match = |run: Option<&Run>| run.is_some_and(|run| run.op == Op::Match);
    found.retain(|path| match settings.reach {
        Reach::Global => path.end() == Some((columns, rows)),
        Reach::Local if path.runs.is_empty() => (path.x, path.z) == (0, 0),
        Reach::Local => is_match(path.runs.first()) && is_match(path.runs.last()),
    });
    found
}

/// All outputs of a query.
pub fn outputs(query: &Query, settings: &AlignSettings) -> Vec<Aligned> {
    let ranks = settings.loss == AlignLoss::ZeroOne;
    let candidates = if ranks { query.candidates.len() } else { 1 };
    let of = |c: usize| {
        let all = match &query.given {
            Some(path) if c == 0 && ranks => vec![path.clone()],
            _ => paths(query.x.len() as u32, query.candidates[c].len() as u32, settings),
        };
        all.into_iter().map(move |path| Aligned { candidate: c as u32, residues: query.residues(c), path })
    };
    (0..candidates).flat_map(of).collect()
}

/// Small queries with true alignments.
pub fn problem(draw: &mut Draw, settings: &AlignSettings, n: usize) -> (Vec<Query>, Vec<Aligned>) {
    let mut examples = (Vec::new(), Vec::new());
    for _ in 0..n {
        let mut query = Query {
            x: {
                let length = draw.below(4);
                sequence(draw, settings, length)
            },
            candidates: (0..=draw.below(3))
                .map(|_| {
                    let length = draw.below(4);
                    sequence(draw, settings, length)
                })
                .collect(),
            given: None,
        };
        let all = paths(query.x.len() as u32, query.candidates[0].len() as u32, settings);
        let path = all[draw.below(all.len())].clone();
        query.given = (settings.loss == AlignLoss::ZeroOne).then(|| path.clone());
        examples.1.push(Aligned { candidate: 0, residues: query.residues(0), path });
        examples.0.push(query);
    }
    examples
}

/// The losses from their definitions, by sets.
pub fn loss(kind: AlignLoss, truth: &Aligned, y: &Aligned) -> f64 {
    let (own, other): (HashSet<_>, HashSet<_>) = (truth.path.matches().collect(), y.path.matches().collect());
    let share = |hits: usize| if own.is_empty() { 0.0 } else { 1.0 - hits as f64 / own.len() as f64 };
    match kind {
        AlignLoss::ZeroOne => f64::from(u8::from(truth.candidate != y.candidate)),
        AlignLoss::Q => share(own.intersection(&other).count()),
        AlignLoss::Q4 => {
            share(own.iter().filter(|(i, j)| other.iter().any(|(k, l)| i == k && j.abs_diff(*l) <= 4)).count())
        }
        AlignLoss::Hamming => {
            let partner = |set: &HashSet<(u32, u32)>, i: Option<u32>, j: Option<u32>| {
                set.iter().find(|pair| i == Some(pair.0) || j == Some(pair.1)).copied()
            };
            let wrong = (0..truth.residues)
                .map(|k| {
                    let of_x = partner(&own, Some(k), None) != partner(&other, Some(k), None);
                    let of_z = partner(&own, None, Some(k)) != partner(&other, None, Some(k));
                    u32::from(of_x) + u32::from(of_z)
                })
                .sum::<u32>();
            f64::from(wrong) / f64::from(truth.residues.max(1))
        }
    }
}

/// The argmax and the oracles of all formulations at w, and margins, against all outputs.
pub fn check_oracles<'e, T: Task<Input<'e> = &'e Query, Output = Aligned>>(
    task: &'e T,
    settings: &AlignSettings,
    inputs: &'e [&'e Query],
    truths: &'e [Aligned],
    w: &Weights,
) {
    let kind = settings.loss;
    let (mut scratch, mut y) = (T::Scratch::default(), Aligned::default());
    for (query, truth) in inputs.iter().zip(truths) {
        let all = outputs(query, settings);
        for lambda in [None, Some(0.7), Some(5.0)] {
            let value = |y: &Aligned| {
                dot(&psi(task, *query, y), w.as_slice()) + lambda.map_or(0.0, |l| l * loss(kind, truth, y))
            };
            task.argmax(w, query, lambda.map(|weight| LossTerm { truth, weight }), &mut scratch, &mut y).unwrap();
            let best = all.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
            let is_best = (value(&y) - best).abs() <= 1e-9 * (1.0 + best.abs());
            assert!(is_best, "{kind:?}: {y:?} has {}, best {best}", value(&y));
            assert!(all.contains(&y), "{kind:?}: {y:?} is no output");
        }
        for other in &all {
            assert!((task.loss(truth, other) - loss(kind, truth, other)).abs() < 1e-12, "{kind:?}: {other:?}");
            let (of_truth, of_other) = (psi(task, *query, truth), psi(task, *query, other));
            let direct: Vec<f64> = of_truth.iter().zip(of_other).map(|(a, b)| a - b).collect();
            let margin = task.margin(w, query, truth, other).unwrap();
            assert!((margin - dot(&direct, w.as_slice())).abs() <= 1e-9 * (1.0 + margin.abs()));
        }
    }
    for (rescaling, penalty) in RESCALINGS.iter().flat_map(|r| PENALTIES.iter().map(move |p| (*r, *p))) {
        let is_plain = rescaling == Rescaling::Margin && penalty != Penalty::Quadratic;
        let is_exact = kind == AlignLoss::ZeroOne || is_plain;
        let Ok(problem) = Problem::new(task, inputs, truths, None, formulation(1.0, rescaling, penalty)) else {
            assert!(!is_exact, "{kind:?} {rescaling:?} {penalty:?} is refused");
            continue;
        };
        assert_eq!(problem.oracle_is_exact(), is_exact);
        let mut scratch = OracleScratch::default();
        for (i, query) in inputs.iter().enumerate() {
            let h = |y: &Aligned| {
                let margin = task.margin(w, query, &truths[i], y).unwrap();
                problem.term(loss(kind, &truths[i], y)).violation(margin)
            };
            let best = outputs(query, settings).iter().map(h).fold(0.0, f64::max);
            let found = problem.oracle(i, w, &mut scratch).unwrap();
            assert!(found <= best + 1e-9 * (1.0 + best), "{kind:?}: {found} above {best}");
            assert!(!is_exact || (found - best).abs() <= 1e-9 * (1.0 + best), "{kind:?}: {found}, best {best}");
        }
    }
}
