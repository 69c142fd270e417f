//! Small problems whose optimum was found by hand.

use crate::common;

use common::{Typed, certified, dual_coordinates, formulation, has_coordinates, patience, to_gap, to_relative_gap};
use maxmargin::problem::{Penalty, Rescaling};
use maxmargin::solver::{Solution, Status};
use maxmargin::sparse::SparseMatrix;
use maxmargin::task::Task;
use maxmargin::tasks::binary::Binary;
use maxmargin::tasks::multiclass::{Costs, Multiclass};

/// Every certified solver finds this value, and these weights.
fn is_solved_by<T: Task>(problem: &Typed<'_, T>, value: f64, weights: &[f64]) {
    let coordinates = if has_coordinates(problem) { dual_coordinates().to_vec() } else { Vec::new() };
    for solver in certified(problem.len()).into_iter().chain(coordinates) {
        let stop = if problem.formulation().penalty == Penalty::Hard { to_relative_gap(1e-9) } else { to_gap(1e-9) };
        let Solution { weights: found, report, .. } = solver.solve(problem, &stop, &mut patience());
        let context = format!("{solver:?} on {:?}: {report:?}", problem.formulation());
        assert_eq!(report.status, Status::Converged, "{context}");
        assert!((report.primal - value).abs() < 1e-7, "{} is not {value}: {context}", report.primal);
        assert!((report.dual - value).abs() < 1e-7, "{} is not {value}: {context}", report.dual);
        for (w, right) in found.as_slice().iter().zip(weights) {
            // 1/2 |w - w*|^2 <= P - P*
            assert!((w - right).abs() < 1e-4, "{found:?} is not {weights:?}: {context}");
        }
    }
}

/// Two points on a line, x = 1 with y = +1 and x = -1/2 with y = -1, so that both ask for a positive w:
/// `P = w^2/2 + (C/2) (max(0, 1 - w) + max(0, 1 - w/2))`.
///
/// - C = 1: for w < 1 the slope is w - 1/2 - 1/4, zero at w = 3/4. P = 9/32 + 1/2 (1/4 + 5/8) = 9/32 + 14/32 = 23/32.
/// - C = 16: for 1 < w < 2 the slope is w - 16/2 * 1/2 = w - 4 < 0, above 2 it is w > 0: w = 2, P = 2. That is
///   the hard margin as well: both constraints, w >= 1 and w/2 >= 1, hold from w = 2 on.
/// - C = 3: for 1 < w < 2 the slope is w - 3/4 > 0, for w < 1 it is w - 3/2 - 3/4 < 0: the kink, w = 1,
///   P = 1/2 + 3/2 * 1/2 = 5/4.
/// - C = 1, quadratic: P = w^2/2 + 1/4 ((1 - w)^2 + (1 - w/2)^2), slope w - 1/2 (1 - w) - 1/4 (1 - w/2) = 13/8 w - 3/4,
///   zero at w = 6/13. P = 1/2 36/169 + 1/4 (49/169 + 100/169) = 72/676 + 149/676 = 221/676 = 17/52.
///
/// The loss is zero-one, whose square root is itself: slack and margin rescaling are the same.
#[test]
fn two_points_on_a_line() {
    let mut x = SparseMatrix::new();
    x.push_row([(0, 1.0)]);
    x.push_row([(0, -0.5)]);
    let (task, views, y) = (Binary::new(1), x.views(), [1, 0]);
    let cases = [
        (1.0, Penalty::Linear, 23.0 / 32.0, 0.75),
        (16.0, Penalty::Linear, 2.0, 2.0),
        (3.0, Penalty::Linear, 1.25, 1.0),
        (1.0, Penalty::Quadratic, 17.0 / 52.0, 6.0 / 13.0),
        (1.0, Penalty::Hard, 2.0, 2.0),
    ];
    for (c, penalty, value, w) in cases {
        for rescaling in [Rescaling::Margin, Rescaling::Slack] {
            let problem = Typed::new(&task, &views, &y, None, formulation(c, rescaling, penalty)).unwrap();
            is_solved_by(&problem, value, &[w]);
        }
    }
}

/// Three classes, three examples: `x_i = e_i` with class i, cost D for every error. By the symmetry of the classes the
/// optimum (which is unique) has w = a on the diagonal and b elsewhere (feature j, class k), and b = -a/2 because
/// the sum over the classes of each feature's weights stays 0 (every dpsi sums to 0 over the classes). All six margins are
/// a - b = 3a/2 =: m, so a = 2m/3, and |w|^2 = 3 a^2 + 6 a^2/4 = 9/2 a^2 = 2 m^2.
///
/// - margin rescaling, linear: P = m^2 + C max(0, D - m): m = min(C/2, D). With D = 2, C = 1: m = 1/2, P = 1/4 + 3/2 = 7/4.
///   With C = 10: m = 2, P = 4, which is the hard margin's too.
/// - slack rescaling, linear: P = m^2 + C D max(0, 1 - m): m = min(C D/2, 1). C = 1/2, D = 2: m = 1/2, P = 1/4 + 1/2 = 3/4. Hard
///   margin: m = 1, P = 1.
/// - margin rescaling, quadratic: P = m^2 + C/2 (sqrt(D) - m)^2, slope 2m - C (sqrt(D) - m): m = C sqrt(D) / (2 + C). D = 4,
///   C = 2: m = 1, P = 1 + 1 = 2.
/// - slack rescaling, quadratic: P = m^2 + C/2 D (1 - m)^2, slope 2m - C D (1 - m): m = C D / (2 + C D). D = 4, C = 1/2:
///   m = 1/2, P = 1/4 + 1/4 = 1/2.
#[test]
fn three_classes_on_three_axes() {
    let mut x = SparseMatrix::new();
    (0..3).for_each(|j| x.push_row([(j, 1.0)]));
    let (views, y) = (x.views(), [0, 1, 2]);
    let cases = [
        (Rescaling::Margin, Penalty::Linear, 2.0, 1.0, 0.5, 1.75),
        (Rescaling::Margin, Penalty::Linear, 2.0, 10.0, 2.0, 4.0),
        (Rescaling::Margin, Penalty::Hard, 2.0, 1.0, 2.0, 4.0),
        (Rescaling::Slack, Penalty::Linear, 2.0, 0.5, 0.5, 0.75),
        (Rescaling::Slack, Penalty::Hard, 2.0, 1.0, 1.0, 1.0),
        (Rescaling::Margin, Penalty::Quadratic, 4.0, 2.0, 1.0, 2.0),
        (Rescaling::Slack, Penalty::Quadratic, 4.0, 0.5, 0.5, 0.5),
    ];
    for (rescaling, penalty, cost, c, margin, value) in cases {
        let table = (0..9).map(|at| if at / 3 == at % 3 { 0.0 } else { cost }).collect();
        let task = Multiclass::new(3, Costs::table(3, table).unwrap());
        let weights: Vec<f64> =
            (0..9).map(|at| if at / 3 == at % 3 { 2.0 * margin / 3.0 } else { -margin / 3.0 }).collect();
        let problem = Typed::new(&task, &views, &y, None, formulation(c, rescaling, penalty)).unwrap();
        is_solved_by(&problem, value, &weights);
    }
}

/// Example weights: x = 1 for both, y = +1 with weight 3 and y = -1 with weight 1.
/// `P = w^2/2 + (C/2) (3 max(0, 1 - w) + max(0, 1 + w))`: with C = 1/2 the slope for |w| < 1 is w - 1/4 (3 - 1) = w - 1/2,
/// so w = 1/2, P = 1/8 + 1/4 (3/2 + 3/2) = 7/8. With C = 8 it is w - 8 < 0 up to w = 1, and w + 4 behind it: w = 1,
/// P = 1/2 + 4 * 2 = 17/2.
#[test]
fn weighted_opponents() {
    let mut x = SparseMatrix::new();
    x.push_row([(0, 1.0)]);
    x.push_row([(0, 1.0)]);
    let (task, views, y, weights) = (Binary::new(1), x.views(), [1, 0], [3.0, 1.0]);
    for (c, value, w) in [(0.5, 7.0 / 8.0, 0.5), (8.0, 8.5, 1.0)] {
        let f = formulation(c, Rescaling::Margin, Penalty::Linear);
        is_solved_by(&Typed::new(&task, &views, &y, Some(&weights), f).unwrap(), value, &[w]);
    }
}
