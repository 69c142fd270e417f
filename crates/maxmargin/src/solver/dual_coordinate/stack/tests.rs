//! All that blocks say, against dense vectors.

use std::sync::Arc;

use super::super::newton::Newton;
use super::super::rows::Rowed;
use super::*;
use crate::features::Accumulate;
use crate::parallel::Pool;
use crate::problem::{Formulation, Output, Problem};
use crate::random::Random;
use crate::sparse::{SparseMatrix, dot};
use crate::task::Places;
use crate::tasks::binary::Binary;
use crate::tasks::multiclass::{Costs, Multiclass};
use crate::tasks::taxonomy::{Architecture, ClassFeatures, Hierarchy, NodeLoss, Taxonomy};

const D: u32 = 3;
const N: usize = 12;

fn rows(random: &mut Random) -> SparseMatrix {
    let mut x = SparseMatrix::new();
    for i in 0..N {
        // Every fourth row is empty.
        let row: Vec<_> = (0..D).filter(|j| i % 4 != 3 && random.unit() > 0.1 * f64::from(*j)).collect();
        x.push_row(row.into_iter().map(|j| (j, (2.0 * random.unit() - 1.0) as f32)));
    }
    x.set_columns(D);
    x
}

fn signed(random: &mut Random, n: usize) -> Vec<f64> {
    (0..n).map(|_| 2.0 * random.unit() - 1.0).collect()
}

/// lhs and rhs of every variable of an example by the definitions; None for the truth.
fn dense(problem: &Problem<'_>, i: usize, truth: u32, outputs: &[u32]) -> Vec<Option<(Vec<f64>, f64)>> {
    let constraint = |y: u32| {
        let (output, mut lhs) = (Output::new(y), vec![0.0; problem.dimension()]);
        let term = problem.term(problem.loss(i, &output));
        problem.emit(i, &output, term.factor, &mut Accumulate { sum: &mut lhs, factor: 1.0 }).unwrap();
        (y != truth).then_some((lhs, term.rhs))
    };
    outputs.iter().map(|&y| constraint(y)).collect()
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * (1.0 + a.abs()), "{a} is not {b}");
}

/// All that blocks say, against dense vectors.
fn agrees(
    problem: &Problem<'_>,
    truths: &[u32],
    blocks: &impl Blocks,
    outputs: impl Fn(u32) -> Vec<u32>,
    random: &mut Random,
) {
    let (d, width) = (problem.dimension(), blocks.width());
    let (w, direction) = (Weights::from(signed(random, d)), Weights::from(signed(random, d)));
    let all: Vec<u32> = (0..width as u32).collect();
    for (i, &truth) in truths.iter().enumerate() {
        let example = blocks.example(i);
        let terms = dense(problem, i, truth, &outputs(truth));
        let others: Vec<u32> = all.iter().copied().filter(|k| terms[*k as usize].is_some()).collect();
        let (mut v, mut slopes) = (vec![0.0; width], vec![0.0; width]);
        let room = &mut Default::default();
        blocks.violations(&example, &w, room, &mut v);
        blocks.slopes(&example, &direction, room, &mut slopes);
        let mut some = vec![0.0; others.len()];
        blocks.violations_of(&example, &others, &w, room, &mut some);
        let mut some_slopes = vec![0.0; others.len()];
        blocks.slopes_of(&example, &others, &direction, room, &mut some_slopes);
        let delta = signed(random, others.len());
        let (mut sum, mut right, mut rhs) = (vec![0.0; d], vec![0.0; d], 0.0);
        blocks.add(&example, &others, &delta, room, &mut sum);
        let j = |k: u32, l: u32| if k == l { 2.0 } else { -0.25 };
        let (mut lower, mut full) = (vec![0.0; d * d], vec![0.0; d * d]);
        blocks.add_curvature(&example, &others, j, &mut lower);
        for (at, &k) in others.iter().enumerate() {
            let (lhs, b) = terms[k as usize].as_ref().unwrap();
            near(v[k as usize], b - dot(lhs, w.as_slice()));
            near(some[at], v[k as usize]);
            near(slopes[k as usize], -dot(lhs, direction.as_slice()));
            near(some_slopes[at], slopes[k as usize]);
            rhs += delta[at] * b;
            lhs.iter().zip(&mut right).for_each(|(l, r)| *r += delta[at] * l);
            for &l in &others {
                let other = &terms[l as usize].as_ref().unwrap().0;
                for (cell, full) in full.iter_mut().enumerate() {
                    *full += j(k, l) * lhs[cell / d] * other[cell % d];
                }
            }
        }
        // The same among all outputs, where those without a term have no weight.
        let mut among_all = vec![0.0; width];
        others.iter().zip(&delta).for_each(|(&k, delta)| among_all[k as usize] = *delta);
        let mut sum_of_all = vec![0.0; d];
        blocks.add(&example, &all, &among_all, room, &mut sum_of_all);
        sum_of_all.iter().zip(&sum).for_each(|(a, b)| near(*a, *b));
        near(blocks.rhs(&example, &others, &delta), rhs);
        sum.iter().zip(&right).for_each(|(a, b)| near(*a, *b));
        for (cell, full) in full.iter().enumerate().filter(|c| c.0 % d <= c.0 / d) {
            near(lower[cell], *full);
        }
        let phi = phi(d, example.phi);
        assert!((example.norm2 - dot(&phi, &phi)).abs() <= 1e-6 * example.norm2, "{}", example.norm2);
    }
}

fn phi(d: usize, phi: SparseView<'_>) -> Vec<f64> {
    let mut dense = vec![0.0; d];
    phi.add_to(1.0, &mut dense);
    dense
}

/// Slopes are no steeper than what is said of the length of the direction, also along an output's own lhs.
fn changes_are_bounded<B: Blocks>(blocks: &B, d: usize, random: &mut Random) {
    let (mut slopes, all): (Vec<f64>, Vec<u32>) = (vec![0.0; blocks.width()], (0..blocks.width() as u32).collect());
    let mut room = B::Room::default();
    for i in 0..blocks.len() {
        let example = blocks.example(i);
        let mut own = vec![0.0; d];
        let one: Vec<f64> = all.iter().map(|&k| f64::from(u8::from(k == 0))).collect();
        blocks.add(&example, &all, &one, &mut room, &mut own);
        for direction in [own, signed(random, d)] {
            let length = dot(&direction, &direction).sqrt();
            blocks.slopes(&example, &Weights::from(direction), &mut room, &mut slopes);
            let most = blocks.most_change(&example, length);
            assert!(slopes.iter().all(|slope| slope.abs() <= most), "{slopes:?} beyond {most}");
        }
    }
}

/// The gradient's differences along random directions are the matrix times them.
fn newton_agrees<B: Blocks>(blocks: &B, penalty: Penalty, d: usize, random: &mut Random) {
    const STEP: f64 = 1e-6;
    let (pool, w) = (Pool::new(1).unwrap(), signed(random, d));
    let a: Vec<f64> = (0..blocks.len() * blocks.width()).map(|_| 0.0).collect();
    let mut newton = Newton::new(blocks, penalty, 0.7, d);
    let mut sum = |w: Vec<f64>| {
        newton.look(&a, &Weights::from(w), &pool);
        newton.derivatives()
    };
    let (_, matrix) = sum(w.clone());
    for _ in 0..3 {
        let direction = signed(random, d);
        let ahead = |h: f64| w.iter().zip(&direction).map(|(w, d)| w + h * d).collect::<Vec<_>>();
        let ((more, _), (less, _)) = (sum(ahead(STEP)), sum(ahead(-STEP)));
        for j in 0..d {
            let symmetric = |k: usize| if k <= j { matrix[j * d + k] } else { matrix[k * d + j] };
            let product: f64 = (0..d).map(|k| symmetric(k) * direction[k]).sum();
            // w falls into the violations with a minus.
            let slope = -(more[j] - less[j]) / (2.0 * STEP);
            assert!((slope - product).abs() <= 1e-5 * (1.0 + product.abs()), "{slope} is not {product}");
        }
    }
}

#[test]
fn blocks_agree_with_dense_vectors() {
    let mut random = Random::new(1);
    let x = rows(&mut random);
    let (views, pool) = (x.views(), Pool::new(1).unwrap());
    let table = vec![0.0, 1.0, 0.5, 2.0, 1.5, 0.0, 0.0, 1.0, 3.0, 1.0, 0.0, 0.7, 1.0, 0.3, 2.0, 0.0];
    let (two, four) = (Binary::new(D), Multiclass::new(D, Costs::table(4, table).unwrap()));
    let twelve = Multiclass::new(D, Costs::zero_one(12));
    let (bits, y): (Vec<u32>, Vec<u32>) = (0..N as u32).map(|i| (i % 2, (i / 2 + i) % 4)).unzip();
    for rescaling in [Rescaling::Margin, Rescaling::Slack] {
        for penalty in [Penalty::Linear, Penalty::Quadratic] {
            let f = Formulation { c: 5.0, rescaling, penalty, loss_scale: 1.5 };
            let problem = Problem::new(&two, &views, &bits, None, f).unwrap();
            let classes = Classes::of(&problem, &pool).unwrap();
            let Places::Signs(block) = classes.places else { panic!("two outputs") };
            let blocks = Signed::new(classes, block);
            agrees(&problem, &bits, &blocks, |truth| vec![1 - truth], &mut random);
            changes_are_bounded(&blocks, problem.dimension(), &mut random);
            newton_agrees(&blocks, penalty, problem.dimension(), &mut random);

            let problem = Problem::new(&four, &views, &y, None, f).unwrap();
            let classes = Classes::of(&problem, &pool).unwrap();
            let Places::Slots(block) = classes.places else { panic!("many outputs") };
            let blocks = Slotted::new(classes, block);
            agrees(&problem, &y, &blocks, |_| (0..4).collect(), &mut random);
            changes_are_bounded(&blocks, problem.dimension(), &mut random);
            newton_agrees(&blocks, penalty, problem.dimension(), &mut random);

            // So many that w is changed in all slots at once.
            let problem = Problem::new(&twelve, &views, &y, None, f).unwrap();
            let classes = Classes::of(&problem, &pool).unwrap();
            let Places::Slots(block) = classes.places else { panic!("many outputs") };
            let blocks = Slotted::new(classes, block);
            agrees(&problem, &y, &blocks, |_| (0..12).collect(), &mut random);
        }
    }
}

/// A tree of 3 + 9 nodes with an inner node and the root among its classes, the same with a second parent, features of its
/// classes, few and many of these.
fn taxonomies() -> Vec<Taxonomy> {
    let names: Vec<String> = (0..22).map(|k| format!("{k:02}")).collect();
    let small = [(1, 0), (2, 0), (3, 1), (4, 1), (5, 2), (6, 2)];
    let lattice = [&small[..], &[(4, 2)]].concat();
    let large: Vec<(u32, u32)> = (1..22).map(|k| (k, if k < 4 { 0 } else { 1 + k % 3 })).collect();
    let hierarchy = |nodes: usize, edges: &[(u32, u32)]| Arc::new(Hierarchy::new(&names[..nodes], edges).unwrap());
    let rows = vec![vec![(0, 1.0), (1, -0.5)], vec![(1, 2.0)], vec![(0, 1.0), (2, 1.0)], vec![(2, 0.7)]];
    let features = ClassFeatures { attributes: names[..3].to_vec(), rows };
    let task = |hierarchy: &Arc<Hierarchy>, classes: Vec<u32>, architecture, loss| {
        Taxonomy::new(D, Arc::clone(hierarchy), classes, &architecture, loss).unwrap()
    };
    let (tree, lattice, large) = (hierarchy(7, &small), hierarchy(7, &lattice), hierarchy(22, &large));
    vec![
        task(&tree, vec![2, 3, 4, 5], Architecture::Taxonomy(1.0), NodeLoss::Tree),
        task(&tree, vec![0, 2, 3, 6], Architecture::Taxonomy(1.0), NodeLoss::Path),
        task(&lattice, vec![3, 4, 5, 6], Architecture::Taxonomy(1.0), NodeLoss::Tree),
        task(&tree, vec![1, 3, 5, 6], Architecture::Taxonomy(0.4), NodeLoss::Tree),
        task(&lattice, vec![2, 4, 5, 6], Architecture::Taxonomy(1.5), NodeLoss::Path),
        task(&tree, vec![2, 3, 5, 6], Architecture::Features(features), NodeLoss::Tree),
        task(&large, (1..22).collect(), Architecture::Taxonomy(1.0), NodeLoss::Tree),
        task(&large, (1..22).collect(), Architecture::Taxonomy(1.0), NodeLoss::Path),
    ]
}

#[test]
fn rows_agree_with_dense_vectors() {
    let mut random = Random::new(2);
    let x = rows(&mut random);
    let (views, pool) = (x.views(), Pool::new(1).unwrap());
    for task in taxonomies() {
        let classes = task.classes();
        let y: Vec<u32> = (0..N).map(|i| classes[(i / 2 + i) % classes.len()]).collect();
        for rescaling in [Rescaling::Margin, Rescaling::Slack] {
            for penalty in [Penalty::Linear, Penalty::Quadratic] {
                let f = Formulation { c: 5.0, rescaling, penalty, loss_scale: 1.5 };
                let problem = Problem::new(&task, &views, &y, None, f).unwrap();
                let examples = Classes::of(&problem, &pool).unwrap();
                let Places::Rows(block, lambda) = examples.places else { panic!("several slots") };
                let blocks = Rowed::new(examples, block, lambda);
                // Of many outputs the curvature leaves some out.
                if classes.len() < 16 {
                    agrees(&problem, &y, &blocks, |_| classes.to_vec(), &mut random);
                    newton_agrees(&blocks, penalty, problem.dimension(), &mut random);
                }
                steps_are_exact(&problem, &blocks, penalty, &mut random);
            }
        }
    }
}

/// After a step over all outputs, or over those with weight, nothing is left to gain there.
fn steps_are_exact<B: Blocks>(problem: &Problem<'_>, blocks: &B, penalty: Penalty, random: &mut Random) {
    let (d, width) = (problem.dimension(), blocks.width());
    let all: Vec<u32> = (0..width as u32).collect();
    let (mut room, mut v) = (B::Room::default(), vec![0.0; width]);
    let mut w = Weights::from(signed(random, d));
    for i in 0..problem.len() {
        let example = blocks.example(i);
        let limits = example.limits(penalty, 1.0);
        let mut a = vec![0.0; width];
        for round in 0..3 {
            let support: Vec<u32> =
                if round == 1 { all.iter().copied().filter(|&k| a[k as usize] > 0.0).collect() } else { all.clone() };
            let mut of: Vec<f64> = support.iter().map(|&k| a[k as usize]).collect();
            blocks.violations(&example, &w, &mut room, &mut v);
            let mut some: Vec<f64> = support.iter().map(|&k| v[k as usize]).collect();
            let (before, before_step) = (of.clone(), some.clone());
            blocks.maximise(&example, &support, limits, &mut room, &mut some, &mut of);
            let delta: Vec<f64> = of.iter().zip(&before).map(|(new, old)| new - old).collect();
            blocks.add(&example, &support, &delta, &mut room, w.as_mut_slice());
            support.iter().zip(&of).for_each(|(&k, &value)| a[k as usize] = value);
            // The violations at the new w, from w itself.
            blocks.violations(&example, &w, &mut room, &mut v);
            let after: Vec<f64> = support.iter().map(|&k| v[k as usize]).collect();
            let look = blocks.look(&after, &of, limits);
            // |phi| is an f32, and a step that is long beside w shows its rounding.
            let scale = before_step.iter().filter(|v| **v > f64::MIN).fold(1.0, |most, v| f64::max(most, v.abs()));
            assert!(look.unrest <= 1e-5 * scale, "{look:?}, {of:?}, {after:?}");
            // So that the next round has something to do.
            let push = signed(random, d);
            w.as_mut_slice().iter_mut().zip(push).for_each(|(w, push)| *w += 0.1 * push);
        }
    }
}
