//! Classes in a taxonomy: losses by their definitions, flat as multiclass, and inner nodes for those who want to be sure.

use crate::common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::taxonomy::{architectures, as_costs, classes, hierarchy, labels, losses, tasks};
use common::{Draw, PENALTIES, RESCALINGS, formulation};
use maxmargin::parallel::Pool;
use maxmargin::problem::{Penalty, Problem};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::cutting_plane::CuttingPlane;
use maxmargin::solver::dual_coordinate::DualCoordinate;
use maxmargin::solver::{Settings, Solver, Status, Stop};
use maxmargin::task::{Listed, Task, first_max};
use maxmargin::tasks::multiclass::Multiclass;
use maxmargin::tasks::taxonomy::{Architecture, Hierarchy, NodeLoss, Taxonomy, TaxonomyScratch};
use proptest::prelude::*;

/// The ancestors of a node and itself, by the parents alone.
fn closure(h: &Hierarchy, node: u32) -> BTreeSet<u32> {
    let mut all = BTreeSet::from([node]);
    let mut ahead = vec![node];
    while let Some(node) = ahead.pop() {
        ahead.extend(h.parents(node).iter().filter(|&&parent| all.insert(parent)));
    }
    all
}

/// The longest way down.
fn height(h: &Hierarchy, node: u32) -> u32 {
    let children = (0..h.len() as u32).filter(|&k| h.parents(k).contains(&node));
    children.map(|child| 1 + height(h, child)).max().unwrap_or(0)
}

/// The shortest way up from one node to another, which is above it.
fn way_up(h: &Hierarchy, from: u32, to: u32) -> u32 {
    if from == to {
        return 0;
    }
    let parents = h.parents(from).iter().filter(|&&parent| closure(h, parent).contains(&to));
    1 + parents.map(|&parent| way_up(h, parent, to)).min().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn losses_are_what_they_are_defined_to_be(seed: u64, nodes in 2_usize..12, is_tree: bool) {
        let mut draw = Draw(seed);
        let h = hierarchy(&mut draw, nodes, is_tree);
        let every: Vec<u32> = (0..nodes as u32).collect();
        let task = |loss| Taxonomy::new(1, Arc::clone(&h), every.clone(), &Architecture::Taxonomy(1.0), loss).unwrap();
        let (tree, path) = (task(NodeLoss::Tree), task(NodeLoss::Path));
        for &a in &every {
            prop_assert_eq!(h.height(a), height(&h, a));
            prop_assert_eq!(h.depth(a), way_up(&h, a, 0));
            let (of_tree, of_path) = (tree.losses(&a, &mut TaxonomyScratch::default()).to_vec(), path.losses(&a, &mut TaxonomyScratch::default()).to_vec());
            for &b in &every {
                let both: Vec<u32> = closure(&h, a).intersection(&closure(&h, b)).copied().collect();
                prop_assert_eq!(h.is_below(a, b), closure(&h, a).contains(&b));
                let lowest = both.iter().map(|&node| height(&h, node)).min().unwrap();
                let shortest = both.iter().map(|&node| way_up(&h, a, node) + way_up(&h, b, node)).min().unwrap();
                let expected = if a == b { 0.0 } else { f64::from(lowest) };
                prop_assert_eq!(tree.loss(&a, &b), expected);
                prop_assert_eq!(path.loss(&a, &b), f64::from(shortest));
                prop_assert_eq!((of_tree[b as usize], of_path[b as usize]), (expected, f64::from(shortest)));
                prop_assert!(a == b || expected >= 1.0);
            }
            prop_assert_eq!(tree.max_loss(&a), of_tree.iter().copied().fold(0.0, f64::max));
        }
    }

    /// Flat, all is as in multiclass with a table of the same costs.
    #[test]
    fn flat_is_multiclass(seed: u64, n in 1_usize..6, d in 1_u32..5, nodes in 2_usize..9, is_tree: bool) {
        let mut draw = Draw(seed);
        let (x, pool) = (draw.matrix(n, d), Pool::new(1).unwrap());
        let views = x.views();
        for task in tasks(&mut draw, d, nodes, is_tree).into_iter().take(4) {
            let numbers = draw.labels(n, task.classes().len() as u32);
            let (y, multiclass) = (labels(&task, &numbers), Multiclass::new(d, as_costs(&task)));
            let w = draw.weights(task.dimension(), 1.0);
            for rescaling in RESCALINGS {
                for penalty in PENALTIES {
                    let f = formulation(2.0, rescaling, penalty);
                    let ours = Problem::new(&task, &views, &y, None, f).unwrap().objective(&w, &pool).unwrap();
                    let theirs = Problem::new(&multiclass, &views, &numbers, None, f).unwrap().objective(&w, &pool).unwrap();
                    prop_assert_eq!(ours, theirs);
                }
            }
        }
    }

    /// The lowest of the best class and its ancestors whose classes lead all others; more is asked, higher it stands.
    #[test]
    fn who_wants_to_be_sure(seed: u64, nodes in 2_usize..12, is_tree: bool, ties: bool) {
        let mut draw = Draw(seed);
        let h = hierarchy(&mut draw, nodes, is_tree);
        let count = 1 + draw.below(nodes);
        let classes = classes(&mut draw, &h, count);
        let task = Taxonomy::new(1, Arc::clone(&h), classes.clone(), &Architecture::Taxonomy(1.0), NodeLoss::Tree).unwrap();
        let round = |score: f64| if ties { score.round() } else { score };
        let scores: Vec<f64> = classes.iter().map(|_| round(4.0 * draw.signed())).collect();
        let best = first_max(&scores);
        let lead = |node: u32| {
            let others = classes.iter().zip(&scores).filter(|(class, _)| !closure(&h, **class).contains(&node));
            scores[best] - others.map(|(_, &score)| score).fold(f64::NEG_INFINITY, f64::max)
        };
        prop_assert_eq!(task.sure_node(&scores, 0.0), classes[best]);
        let mut last = classes[best];
        for threshold in [0.1, 0.5, 1.0, 2.0, 4.0, 100.0] {
            let node = task.sure_node(&scores, threshold);
            prop_assert!(closure(&h, classes[best]).contains(&node) && lead(node) >= threshold);
            prop_assert!(h.height(node) >= h.height(last));
            let lower = closure(&h, classes[best]).into_iter().filter(|&other| h.height(other) < h.height(node));
            for other in lower {
                prop_assert!(lead(other) < threshold);
            }
            last = node;
        }
    }
}

/// More classes than are solved at once, deep and wide: one optimum by three solvers.
#[test]
fn many_classes_have_one_optimum() {
    let mut draw = Draw(7);
    for (is_tree, nodes) in [(true, 60), (false, 40)] {
        let h = hierarchy(&mut draw, nodes, is_tree);
        let classes = classes(&mut draw, &h, 30);
        let [_, _, of_taxonomy, of_features] = architectures(&mut draw, 30);
        let x = draw.matrix(80, 12);
        let (views, numbers) = (x.views(), draw.labels(80, 30));
        for (architecture, loss) in
            [&of_taxonomy, &of_features].into_iter().zip(losses(&mut draw, 30).into_iter().skip(1))
        {
            let task = Taxonomy::new(12, Arc::clone(&h), classes.clone(), architecture, loss).unwrap();
            let y = labels(&task, &numbers);
            for rescaling in RESCALINGS {
                for penalty in [Penalty::Linear, Penalty::Quadratic] {
                    let problem =
                        Problem::new(&task, &views, &y, None, formulation(100.0, rescaling, penalty)).unwrap();
                    let settings = Settings {
                        stop: Some(Stop::RelativeGap(1e-3)),
                        max_passes: Some(5000.0),
                        ..Settings::default()
                    };
                    let reports = [
                        DualCoordinate::default().solve(&problem, &settings, &mut ()).unwrap().report,
                        Bcfw::default().solve(&problem, &settings, &mut ()).unwrap().report,
                        CuttingPlane::default().solve(&problem, &settings, &mut ()).unwrap().report,
                    ];
                    let dual = reports.iter().map(|r| r.dual).fold(0.0, f64::max);
                    for report in &reports {
                        assert_eq!(report.status, Status::Converged, "{report:?}");
                        assert!(report.primal >= dual * (1.0 - 1e-9), "{report:?}: the minimum is at least {dual}");
                    }
                }
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let mut draw = Draw(1);
    let h = hierarchy(&mut draw, 5, true);
    let message = |classes: Vec<u32>, architecture: &Architecture, loss: NodeLoss| {
        Taxonomy::new(1, Arc::clone(&h), classes, architecture, loss).unwrap_err().to_string()
    };
    let [.., features] = architectures(&mut draw, 3);
    assert!(message(vec![3, 1], &Architecture::Flat, NodeLoss::Tree).contains("must be nodes"));
    assert!(message(vec![1, 5], &Architecture::Flat, NodeLoss::Tree).contains("must be nodes"));
    assert!(message(vec![], &Architecture::Flat, NodeLoss::Tree).contains("must be nodes"));
    for weight in [0.0, -1.0, 1e-7, 10.1, f64::NAN, f64::INFINITY] {
        assert!(message(vec![1, 2], &Architecture::Taxonomy(weight), NodeLoss::Tree).contains("ancestor-weight"));
    }
    assert!(message(vec![1, 2], &features, NodeLoss::Tree).contains("3 rows of 4 attributes for 2 classes"));
    let costs = NodeLoss::Matrix(draw.costs(4));
    assert!(message(vec![1, 2], &Architecture::Flat, costs).contains("has 4 classes, the task 2"));
    let task = Taxonomy::new(2, Arc::clone(&h), vec![1, 2], &Architecture::Taxonomy(1.0), NodeLoss::Tree).unwrap();
    let x = draw.matrix(1, 2);
    assert!(task.check(x.row(0), &3).unwrap_err().contains("none of the task's 2 classes"));
    assert!(task.check(x.row(0), &u32::MAX).is_err() && task.check(x.row(0), &2).is_ok());
}
