//! Every solver against the optimum that an interior-point method finds with all constraints written out.

use crate::common;

use common::{
    Any, Bits, Draw, Exhaustive, PENALTIES, RESCALINGS, Typed, Unlisted, bcfws, certified, dual_coordinates,
    formulation, has_coordinates, optimum, patience, separable, to_gap, to_relative_gap,
};
use maxmargin::problem::{Formulation, Penalty, Problem, Rescaling};
use maxmargin::solver::{Certificate, Settings, Status};
use maxmargin::sparse::SparseMatrix;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::{Costs, Multiclass};

/// What the referee's own rounding may be, relative.
const REFEREE: f64 = 1e-6;

/// Converged, with `dual <= optimum <= primal` and the primal within the target; or what is wrong.
fn verdict(problem: &Problem<'_>, solver: &Any, settings: &Settings, best: f64) -> Option<String> {
    let report = solver.solve(problem, settings, &mut patience()).report;
    let slip = REFEREE * (1.0 + best);
    let fault = if report.status != Status::Converged {
        "not converged"
    } else if report.certificate != Certificate::Exact {
        "no certificate"
    } else if report.dual > best + slip {
        "the bound is none"
    } else if report.primal < best - slip {
        "better than the best"
    } else if report.primal - best > report.target + slip {
        "not as good as asked"
    } else {
        return None;
    };
    Some(format!("{fault}: {solver:?} on {:?}, optimum {best}: {report:?}", problem.formulation()))
}

/// Fails with all that is wrong, so that a pattern shows.
fn all_well(faults: impl Iterator<Item = String>) {
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{} runs failed:\n{}", faults.len(), faults.join("\n"));
}

/// Every solver that the problem's penalty allows.
fn faults<T: Exhaustive>(problem: &Typed<'_, T>) -> Vec<String> {
    let best = optimum(problem).expect("a feasible problem");
    let penalty = problem.formulation().penalty;
    let settings = if penalty == Penalty::Hard { to_relative_gap(1e-4) } else { to_gap(1e-4) };
    let mut faults: Vec<_> =
        certified(problem.len()).iter().filter_map(|solver| verdict(problem, solver, &settings, best)).collect();
    if penalty != Penalty::Hard {
        faults.extend(verdict(problem, &Any::Subgradient, &to_gap(0.05), best));
        faults.extend(bcfws().iter().filter_map(|solver| verdict(problem, solver, &settings, best)));
    }
    if penalty == Penalty::Linear {
        faults.extend(verdict(problem, &Any::FrankWolfe, &to_gap(0.05), best));
    }
    if has_coordinates(problem) {
        for settings in [settings, to_relative_gap(1e-8)] {
            faults.extend(dual_coordinates().iter().filter_map(|solver| verdict(problem, solver, &settings, best)));
        }
    }
    faults
}

fn formulations() -> impl Iterator<Item = Formulation> {
    let pairs = RESCALINGS.into_iter().flat_map(|r| PENALTIES.into_iter().map(move |p| (r, p)));
    pairs.map(|(rescaling, penalty)| formulation(2.0, rescaling, penalty))
}

#[test]
fn multiclass() {
    let mut wrong = Vec::new();
    for seed in 0..4 {
        let mut draw = Draw(seed);
        let (n, d, classes) = (3 + draw.below(9), 2 + draw.below(5) as u32, 2 + draw.below(3));
        let task = Multiclass::new(d, draw.costs(classes));
        let (x, y) = separable(&mut draw, n, d, classes as u32);
        let (noisy, noisy_y) = (draw.matrix(n, d), draw.labels(n, classes as u32));
        let (views, noisy, c) = (x.views(), noisy.views(), draw.example_weights(n));
        for f in formulations() {
            let (views, y) = if f.penalty == Penalty::Hard { (&views, &y) } else { (&noisy, &noisy_y) };
            wrong.extend(faults(&Typed::new(&task, views, y, Some(&c), f).unwrap()));
        }
    }
    all_well(wrong.into_iter());
}

/// Trees and lattices, all losses, all of what classes may share.
#[test]
fn taxonomies() {
    let mut wrong = Vec::new();
    for seed in 0..2 {
        let mut draw = Draw(100 + seed);
        let (n, d) = (3 + draw.below(5), 2 + draw.below(3) as u32);
        let (noisy, c) = (draw.matrix(n, d), draw.example_weights(n));
        let noisy = noisy.views();
        for (at, task) in common::taxonomy::tasks(&mut draw, d, 6, seed == 0).into_iter().enumerate() {
            let classes = task.classes().len() as u32;
            let (x, y) = separable(&mut draw, n, d, classes);
            let noisy_y = draw.labels(n, classes);
            let [y, noisy_y] = [y, noisy_y].map(|y| common::taxonomy::labels(&task, &y));
            let views = x.views();
            for (which, f) in formulations().enumerate() {
                // A few of all: attributes need not separate what classes do.
                let is_hard = f.penalty == Penalty::Hard;
                if (at + which) % 3 != 0 || is_hard && at >= 8 {
                    continue;
                }
                let (views, y) = if is_hard { (&views, &y) } else { (&noisy, &noisy_y) };
                wrong.extend(faults(&Typed::new(&task, views, y, Some(&c), f).unwrap()));
            }
        }
    }
    all_well(wrong.into_iter());
}

#[test]
fn binary() {
    let mut wrong = Vec::new();
    for seed in 10..13 {
        let mut draw = Draw(seed);
        let (n, d) = (4 + draw.below(8), 2 + draw.below(4) as u32);
        let task = Binary::new(d);
        let (x, y) = separable(&mut draw, n, d, 2);
        let views = x.views();
        for f in formulations() {
            wrong.extend(faults(&Typed::new(&task, &views, &y, None, f).unwrap()));
        }
    }
    all_well(wrong.into_iter());
}

/// Tasks without a list: cached rounds, the oracle by argmax. Slack rescaling has no certificate there.
#[test]
fn unlisted() {
    let mut wrong = Vec::new();
    for seed in 20..23 {
        let mut draw = Draw(seed);
        let (n, d) = (4 + draw.below(6), 2 + draw.below(3) as u32);
        let (x, c) = (draw.matrix(n, d), draw.example_weights(n));
        let views = x.views();
        let (chain, task) = (Bits::new(d, 3), Unlisted(Multiclass::new(d, draw.costs(4))));
        let (bits, labels) = (chain.labels(&mut draw, n), draw.labels(n, 4));
        let f = formulation(3.0, Rescaling::Margin, Penalty::Linear);
        wrong.extend(faults(&Typed::new(&chain, &views, &bits, Some(&c), f).unwrap()));
        wrong.extend(faults(&Typed::new(&task, &views, &labels, Some(&c), f).unwrap()));

        let (x, labels) = separable(&mut draw, n, d, 4);
        let views = x.views();
        let f = formulation(1.0, Rescaling::Margin, Penalty::Hard);
        wrong.extend(faults(&Typed::new(&task, &views, &labels, Some(&c), f).unwrap()));
    }
    all_well(wrong.into_iter());
}

/// Examples without weight play no part, whatever the penalty.
#[test]
fn examples_of_weight_zero() {
    let mut draw = Draw(31);
    let (mut x, mut y) = separable(&mut draw, 5, 3, 3);
    let mut c = vec![1.0; 5];
    // A copy of the first example with another class: inseparable, if it counted.
    let copy: Vec<_> = x.row(0).iter().collect();
    x.push_row(copy);
    y.push((y[0] + 1) % 3);
    c.push(0.0);
    let task = Multiclass::new(3, Costs::zero_one(3));
    let views = x.views();
    all_well(formulations().flat_map(|f| faults(&Typed::new(&task, &views, &y, Some(&c), f).unwrap())));
}

/// Wrong outputs may cost nothing: margin rescaling then asks that they score no more than the truth, with slack
/// rescaling they are free. The hard margin refuses them with margin rescaling, where no multiple of w helps.
#[test]
fn errors_that_cost_nothing() {
    let mut wrong = Vec::new();
    for seed in 40..43 {
        let mut draw = Draw(seed);
        let (x, y) = separable(&mut draw, 6, 3, 3);
        let costs = Costs::table(3, vec![0.0, 0.0, 1.0, 0.5, 0.0, 0.0, 2.0, 1.0, 0.0]).unwrap();
        let (task, views) = (Multiclass::new(3, costs), x.views());
        for f in formulations() {
            match Typed::new(&task, &views, &y, None, f) {
                Ok(problem) => wrong.extend(faults(&problem)),
                Err(refusal) => {
                    assert_eq!((f.penalty, f.rescaling), (Penalty::Hard, Rescaling::Margin), "{refusal}");
                }
            }
        }
    }
    all_well(wrong.into_iter());
}

/// The same row with two labels: no hard margin. Every solver has to find that out.
#[test]
fn infeasible() {
    let tasks = [Multiclass::new(2, Costs::zero_one(3)), Multiclass::new(2, Costs::absolute(&[0.0, 1.0, 3.0]))];
    let mut same = SparseMatrix::new();
    same.push_row([(0, 1.0), (1, 0.5)]);
    same.push_row([(0, 0.3), (1, -0.5)]);
    same.push_row([(0, 1.0), (1, 0.5)]);
    same.push_row([(0, -0.3)]);
    let twins = (same, vec![0, 1, 2, 1]);
    // A row without features cannot have a margin at all.
    let mut empty = SparseMatrix::new();
    empty.push_row([(0, 1.0)]);
    empty.push_row([]);
    empty.push_row([(1, 1.0)]);
    empty.push_row([(0, 0.5), (1, 1.0)]);
    let empty = (empty, vec![0, 1, 2, 2]);
    let mut draw = Draw(50);
    let noisy = (draw.matrix(12, 2), draw.labels(12, 3));
    let mut wrong = Vec::new();
    for (x, y) in [&twins, &empty, &noisy] {
        let views = x.views();
        for task in &tasks {
            for rescaling in RESCALINGS {
                let f = formulation(1.0, rescaling, Penalty::Hard);
                let problem = Typed::new(task, &views, y, None, f).unwrap();
                assert_eq!(optimum(&problem), None);
                for solver in certified(problem.len()) {
                    let report = solver.solve(&problem, &to_relative_gap(1e-3), &mut patience()).report;
                    if report.status != Status::Infeasible {
                        wrong.push(format!("{solver:?} on {f:?}, {y:?}: {report:?}"));
                    }
                }
            }
        }
    }
    all_well(wrong.into_iter());
}

/// A warm start changes where training begins, not what is true: the bound stays a bound.
#[test]
fn warm_starts_keep_the_bound_honest() {
    let mut draw = Draw(60);
    let (n, d, classes) = (8, 3, 3);
    let task = Multiclass::new(d, draw.costs(classes));
    let (x, y) = separable(&mut draw, n, d, classes as u32);
    let views = x.views();
    let mut wrong = Vec::new();
    for f in formulations() {
        let problem = Typed::new(&task, &views, &y, None, f).unwrap();
        let best = optimum(&problem).expect("a feasible problem");
        for scale in [0.1, 1.0, 10.0] {
            let start = draw.weights(problem.dimension(), scale);
            let settings = Settings { warm_start: Some(start), ..to_relative_gap(1e-3) };
            wrong.extend(certified(n).iter().filter_map(|solver| verdict(&problem, solver, &settings, best)));
            if has_coordinates(&problem) {
                wrong.extend(dual_coordinates().iter().filter_map(|s| verdict(&problem, s, &settings, best)));
            }
            if f.penalty != Penalty::Hard {
                wrong.extend(bcfws().iter().filter_map(|solver| verdict(&problem, solver, &settings, best)));
            }
            if f.penalty != Penalty::Hard {
                let settings = Settings { stop: to_relative_gap(0.05).stop, ..settings };
                wrong.extend(verdict(&problem, &Any::Subgradient, &settings, best));
            }
        }
    }
    all_well(wrong.into_iter());
}
