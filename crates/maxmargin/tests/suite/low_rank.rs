//! Kernels of low rank: coordinates whose inner products are the kernel's values, as far as the rank goes.

use std::sync::Arc;

use maxmargin::kernel::{Basis, Kernel, LowRank, Shape, Standard};
use maxmargin::parallel::Pool;
use maxmargin::sparse::{SparseMatrix, SparseView, dot};
use proptest::collection::vec;
use proptest::prelude::*;

fn matrix(rows: &[Vec<f32>]) -> SparseMatrix {
    let mut matrix = SparseMatrix::new();
    for row in rows {
        matrix.push_row((0..).zip(row.iter().copied()).filter(|(_, v)| *v != 0.0));
    }
    matrix
}

/// Rows of three whole and one broken number: some are equal, and inner products are exact.
fn rows(most: usize) -> impl Strategy<Value = SparseMatrix> {
    let row = (vec(-2..3i8, 3), 0..4i8).prop_map(|(mut row, last)| {
        row.push(last);
        row.iter().map(|&v| 0.25 * f32::from(v)).collect::<Vec<f32>>()
    });
    vec(row, 1..most).prop_map(|rows| matrix(&rows)).prop_filter("not all 0", |rows| rows.nonzeros() > 0)
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Linear),
        (0.1..3.0f64).prop_map(|gamma| Shape::Rbf { gamma }),
        (1..4u32).prop_map(|degree| Shape::Poly { degree, gamma: 0.5, coef0: 1.0 }),
    ]
}

fn kernel(shape: Shape) -> Arc<dyn Kernel> {
    Arc::new(Standard { shape, constant: 0.0 })
}

fn bases() -> impl Strategy<Value = Basis> {
    prop_oneof![Just(Basis::Random), Just(Basis::Pivoted)]
}

fn wide(row: SparseView<'_>) -> Vec<f64> {
    row.values().iter().map(|&z| f64::from(z)).collect()
}

fn pool() -> Pool {
    Pool::new(2).unwrap()
}

/// The largest of k(x, x).
fn largest(kernel: &dyn Kernel, rows: &SparseMatrix) -> f64 {
    rows.views().iter().map(|&x| kernel.value(x, x)).fold(0.0, f64::max)
}

proptest! {
    #[test]
    fn with_all_vectors_the_products_are_the_kernel(rows in rows(40), shape in shapes(), basis in bases(), seed in 0..9u64) {
        let kernel = kernel(shape);
        let low = LowRank::new(kernel.clone(), &rows, 40, basis, seed, &pool()).unwrap();
        prop_assert!(low.len() <= rows.rows() && low.len() == low.basis().rows());
        prop_assert!(low.residual() < 1e-5);
        let (z, scale) = (low.map(&rows, &pool()), largest(&*kernel, &rows).max(1.0));
        prop_assert_eq!((z.rows(), z.columns() as usize), (rows.rows(), low.len()));
        for i in 0..rows.rows() {
            prop_assert_eq!(z.row(i).len(), low.len());
            for j in 0..=i {
                let product = dot(&wide(z.row(i)), &wide(z.row(j)));
                let value = kernel.value(rows.row(i), rows.row(j));
                prop_assert!((product - value).abs() <= 1e-5 * scale, "{} {}", product, value);
            }
        }
    }

    #[test]
    fn coefficients_give_the_scores_of_the_weights(
        rows in rows(40), shape in shapes(), basis in bases(), k in 1..10usize, w in vec(-1.0..1.0f64, 3 * 10),
    ) {
        let low = LowRank::new(kernel(shape), &rows, k, basis, 1, &pool()).unwrap();
        let (w, z) = (&w[..3 * low.len()], low.map(&rows, &pool()));
        let expansion = low.expansion(w, 3).unwrap();
        prop_assert_eq!(expansion.coefficients(), low.coefficients(w, 3));
        let mut scores = vec![0.0; 3 * rows.rows()];
        expansion.scores(&rows.views(), &mut scores);
        for (i, scores) in scores.chunks(3).enumerate() {
            for (slot, score) in scores.iter().enumerate() {
                let linear: f64 = z.row(i).iter().map(|(j, z)| f64::from(z) * w[3 * j as usize + slot]).sum();
                let scale = expansion.coefficients().iter().fold(1.0, |m: f64, c| m.max(c.abs()));
                prop_assert!((linear - score).abs() <= 1e-5 * scale, "{} {}", linear, score);
            }
        }
    }

    /// Fewer vectors lose something, never more than everything, and what the residual says.
    #[test]
    fn the_residual_is_what_is_lost(rows in rows(60), shape in shapes(), basis in bases(), k in 1..8usize) {
        let kernel = kernel(shape);
        let low = LowRank::new(kernel.clone(), &rows, k, basis, 3, &pool()).unwrap();
        prop_assert!(low.len() <= k);
        let z = low.map(&rows, &pool());
        let (mut left, mut whole) = (0.0, 0.0);
        for i in 0..rows.rows() {
            let (value, z) = (kernel.value(rows.row(i), rows.row(i)), wide(z.row(i)));
            prop_assert!(dot(&z, &z) <= value + 1e-4 * largest(&*kernel, &rows));
            whole += value;
            left += value - dot(&z, &z);
        }
        prop_assert!((low.residual() - left / whole).abs() < 1e-4, "{} {}", low.residual(), left / whole);
    }

    #[test]
    fn threads_do_not_matter(rows in rows(60), shape in shapes(), basis in bases(), k in 1..70usize) {
        let all = [1, 2, 5].map(|threads| {
            let pool = Pool::new(threads).unwrap();
            let low = LowRank::new(kernel(shape), &rows, k, basis, 7, &pool).unwrap();
            (low.basis().clone(), low.map(&rows, &pool), low.residual().to_bits())
        });
        prop_assert_eq!(&all[0], &all[1]);
        prop_assert_eq!(&all[0], &all[2]);
    }
}

/// Points around some centres, more than there are candidates in a round of choosing.
fn clusters(n: usize) -> SparseMatrix {
    let mut state = 1_u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let rows: Vec<Vec<f32>> = (0..n)
        .map(|_| {
            let centre = (7.0 * draw()).floor();
            [centre, -centre, 0.0].iter().map(|c| c + 2.0 * draw()).collect()
        })
        .collect();
    matrix(&rows)
}

#[test]
fn pivots_lose_less_than_chance() {
    let (rows, kernel) = (clusters(700), kernel(Shape::Rbf { gamma: 0.3 }));
    for k in [10, 40, 100, 200] {
        let residual = |basis, seed| LowRank::new(kernel.clone(), &rows, k, basis, seed, &pool()).unwrap().residual();
        let random: f64 = (0..5).map(|seed| residual(Basis::Random, seed)).sum::<f64>() / 5.0;
        let pivoted = residual(Basis::Pivoted, 0);
        assert!(pivoted < random, "{k}: {pivoted} {random}");
    }
    let draws = [1, 2].map(|seed| LowRank::new(kernel.clone(), &rows, 5, Basis::Random, seed, &pool()).unwrap());
    assert_ne!(draws[0].basis(), draws[1].basis());
}

#[test]
fn threads_do_not_matter_for_many_vectors() {
    let (rows, kernel) = (clusters(900), kernel(Shape::Rbf { gamma: 0.3 }));
    for basis in [Basis::Random, Basis::Pivoted] {
        let all = [1, 2, 5].map(|threads| {
            let pool = Pool::new(threads).unwrap();
            let low = LowRank::new(kernel.clone(), &rows, 150, basis, 7, &pool).unwrap();
            (low.basis().clone(), low.map(&rows, &pool), low.residual().to_bits())
        });
        // One whose pivot is at the limit may count as dependent when it is computed again.
        assert!((148..=150).contains(&all[0].0.rows()), "{}", all[0].0.rows());
        assert!(all[0] == all[1] && all[0] == all[2]);
    }
}

#[test]
fn dependent_vectors_are_left_out() {
    let line: Vec<Vec<f32>> = (1..200).map(|i| vec![i as f32, -2.0 * i as f32]).collect();
    let same = vec![vec![1.0, 2.0]; 3000];
    for basis in [Basis::Random, Basis::Pivoted] {
        for rows in [&line, &same] {
            let low = LowRank::new(kernel(Shape::Linear), &matrix(rows), 50, basis, 0, &pool()).unwrap();
            assert_eq!(low.len(), 1);
            assert!(low.residual() < 1e-6);
        }
        let low = LowRank::new(kernel(Shape::Rbf { gamma: 1.0 }), &matrix(&same), 50, basis, 0, &pool()).unwrap();
        assert_eq!(low.len(), 1);
    }
}

/// The sigmoid has no feature map as a rule: its pivots end before the vectors do, and all numbers stay finite.
#[test]
fn kernels_that_are_not_definite_stop_early() {
    let rows = clusters(300);
    for shape in [Shape::Sigmoid { gamma: 0.5, coef0: -1.0 }, Shape::Poly { degree: 2, gamma: 1.0, coef0: -20.0 }] {
        for basis in [Basis::Random, Basis::Pivoted] {
            let low = LowRank::new(kernel(shape), &rows, 300, basis, 0, &pool()).unwrap();
            assert!(low.len() < 300, "{}", low.len());
            let z = low.map(&rows, &pool());
            assert!(z.views().iter().all(|z| z.values().iter().all(|z| z.is_finite())));
        }
    }
}

/// Vectors without a length, among which there is one that has one.
#[test]
fn a_vector_that_is_something_is_found() {
    let mut rows: Vec<Vec<f32>> = (0..50).map(|i| vec![0.0, 1e-6 * i as f32]).collect();
    rows.push(vec![3.0, 0.0]);
    for basis in [Basis::Random, Basis::Pivoted] {
        let low = LowRank::new(kernel(Shape::Linear), &matrix(&rows), 1, basis, 0, &pool()).unwrap();
        assert_eq!((low.len(), low.map(&matrix(&rows), &pool()).row(50).values()), (1, &[3.0][..]));
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let refusal = |kernel, rows: &SparseMatrix, k| {
        LowRank::new(kernel, rows, k, Basis::Pivoted, 0, &pool()).unwrap_err().to_string()
    };
    let rbf = || kernel(Shape::Rbf { gamma: 1.0 });
    assert!(refusal(rbf(), &clusters(5), 0).contains("low-rank: must be at least 1"));
    assert!(refusal(rbf(), &SparseMatrix::new(), 3).contains("low-rank: no example"));
    assert!(refusal(kernel(Shape::Linear), &matrix(&[vec![0.0]]), 3).contains("low-rank: no example"));
    let more_than_there_are = LowRank::new(rbf(), &clusters(5), 1_000_000, Basis::Pivoted, 0, &pool()).unwrap();
    assert_eq!(more_than_there_are.len(), 5);
}

/// Points of a square, of which a smooth kernel sees little but where they are, roughly.
fn square(n: usize) -> SparseMatrix {
    let at = |i: usize, step: usize| (i * step % 1009) as f32 / 1009.0;
    matrix(&(0..n).map(|i| vec![at(i, 389), at(i, 613) + 0.001]).collect::<Vec<_>>())
}

#[test]
fn as_few_pivots_as_leave_a_share() {
    let (rows, smooth) = (square(1000), || kernel(Shape::Rbf { gamma: 1.0 }));
    let reaching = |share: f64| LowRank::reaching(smooth(), &rows, 60, share, 1, &pool()).unwrap().unwrap();
    let (rough, fine) = (reaching(1e-2), reaching(1e-4));
    assert!(rough.residual() <= 1e-2 && fine.residual() <= 1e-4);
    assert!(fine.len() <= 60 && rough.len() <= fine.len());
    // No 60 points span a kernel that hardly sees its neighbours.
    let sharp = LowRank::reaching(kernel(Shape::Rbf { gamma: 1e5 }), &rows, 60, 1e-2, 1, &pool()).unwrap();
    assert!(sharp.is_none());
}

/// Of many rows only some are looked at; what is said to be left is that of all.
#[test]
fn pivots_among_some_of_many_rows() {
    let few = square(1009);
    let mut rows = few.clone();
    (0..10).for_each(|_| rows.append(few.clone()));
    let low = LowRank::new(kernel(Shape::Rbf { gamma: 20.0 }), &rows, 30, Basis::Pivoted, 1, &pool()).unwrap();
    let (z, mut left) = (low.map(&few, &pool()), 0.0);
    (0..few.rows()).for_each(|i| left += 1.0 - dot(&wide(z.row(i)), &wide(z.row(i))));
    let share = left / few.rows() as f64;
    assert!((low.residual() - share).abs() <= 0.5 * share + 1e-6, "{} {share}", low.residual());
}
