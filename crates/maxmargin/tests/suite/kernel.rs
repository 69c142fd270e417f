//! Kernel values that are computed together against those computed one by one, in all shapes and sizes; the same bits
//! wherever they come from.

use std::sync::Arc;

use maxmargin::kernel::{Columns, Entry, Gram, Kernel, Shape, Standard};
use maxmargin::parallel::Pool;
use maxmargin::sparse::{SparseMatrix, SparseView};
use proptest::prelude::*;

/// A kernel of somebody's own: what two histograms have in common.
#[derive(Debug)]
struct Intersection;

impl Kernel for Intersection {
    fn value(&self, a: SparseView<'_>, b: SparseView<'_>) -> f64 {
        let of = |j: u32| b.iter().find(|&(other, _)| other == j).map_or(0.0, |(_, y)| y);
        a.iter().map(|(j, x)| f64::from(x.min(of(j)))).sum()
    }
}

/// Sparse rows of several sizes and densities, some of them empty, some twice.
fn matrix() -> impl Strategy<Value = SparseMatrix> {
    let features = prop_oneof![Just(4_u32), Just(60), Just(5_000_000)];
    let size = prop_oneof![4 => Just(1.0_f32), 1 => Just(30.0), 1 => Just(1e-3), 1 => Just(1e-20), 1 => Just(1e18)];
    (features, size, 1..150_usize, 0..20_usize).prop_flat_map(|(features, size, rows, most)| {
        let entry = (0..features, prop_oneof![Just(1.0_f32), -1.0..1.0_f32]);
        let row = prop::collection::btree_map(entry.clone().prop_map(|e| e.0), entry.prop_map(|e| e.1), 0..=most);
        prop::collection::vec((row, any::<bool>()), rows).prop_map(move |rows| {
            let mut matrix = SparseMatrix::new();
            for (at, (row, again)) in rows.iter().enumerate() {
                let row = if *again { &rows[at / 2].0 } else { row };
                matrix.push_row(row.iter().map(|(&j, &x)| (j, x * size)));
            }
            matrix
        })
    })
}

fn standard() -> impl Strategy<Value = Standard> {
    let gamma = || prop_oneof![4 => 0.01..2.0, 1 => Just(1e-300), 1 => Just(1e300), 1 => Just(1e5)];
    let coef0 = || prop_oneof![Just(0.0), Just(1.0), Just(-0.5)];
    let shape = prop_oneof![
        Just(Shape::Linear),
        gamma().prop_map(|gamma| Shape::Rbf { gamma }),
        (1..8_u32, gamma(), coef0()).prop_map(|(degree, gamma, coef0)| Shape::Poly { degree, gamma, coef0 }),
        (gamma(), coef0()).prop_map(|(gamma, coef0)| Shape::Sigmoid { gamma, coef0 }),
    ];
    (shape, prop_oneof![Just(0.0), Just(1.0), Just(1e3)]).prop_map(|(shape, constant)| Standard { shape, constant })
}

/// How far a computed value may be from the exact one: some standard deviations of its rounding.
fn tolerance(kernel: &Standard, a: SparseView<'_>, b: SparseView<'_>) -> f64 {
    let norms = (a.norm2() * b.norm2()).sqrt();
    let rounding = 1e-15 * kernel.constant + f64::MIN_POSITIVE;
    rounding
        + match kernel.shape {
            Shape::Linear => 6e-6 * (norms + kernel.constant),
            // In single precision 6e-5 at most; in double precision what cancellation leaves.
            Shape::Rbf { gamma } => 6e-5_f64.max(1e-14 * gamma * (a.norm2() + b.norm2())),
            Shape::Poly { degree, gamma, coef0 } => {
                6e-6 * ((gamma * norms + coef0.abs()).powi(degree as i32) + kernel.constant)
            }
            Shape::Sigmoid { gamma, coef0 } => 1e-13 * (1.0 + gamma.abs() * norms + coef0.abs()),
        }
}

fn pools() -> [Pool; 3] {
    [1, 2, 5].map(|threads| Pool::new(threads).unwrap())
}

/// Room for nothing, for one row of any precision, for all rows.
fn caches(rows: usize) -> [usize; 3] {
    [0, 8 * rows, 8 * rows * rows]
}

fn bits(x: &[f64]) -> Vec<u64> {
    x.iter().map(|x| x.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn columns_are_right(vectors in matrix(), rows in matrix(), kernel in standard(), width in 1..6_usize) {
        let columns = Columns::new(Arc::new(kernel), vectors.clone());
        let n = vectors.rows();
        prop_assert_eq!(columns.len(), n);
        // Vectors of their own and of other sizes, among them some with features that no column has.
        let views: Vec<_> = vectors.views().into_iter().take(20).chain(rows.views().into_iter().take(20)).collect();
        let mut values = vec![f64::NAN; views.len() * n];
        columns.values(&views, &mut values);
        let coefficients: Vec<f64> = (0..n * width).map(|at| (at % 5) as f64 - 2.0).collect();
        let mut scores = vec![f64::NAN; views.len() * width];
        columns.scores(&views, &coefficients, width, &mut scores);
        for (i, &row) in views.iter().enumerate() {
            let values = &values[i * n..][..n];
            for (j, &value) in values.iter().enumerate() {
                let (exact, within) = (kernel.value(row, vectors.row(j)), tolerance(&kernel, row, vectors.row(j)));
                prop_assert!(value.is_finite());
                prop_assert!(!within.is_finite() || (value - exact).abs() <= within, "{} is {}", value, exact);
            }
            // The same whatever rows come with it.
            let mut alone = vec![f64::NAN; n];
            columns.values(&[row], &mut alone);
            prop_assert_eq!(bits(&alone), bits(values));
            for k in 0..width {
                let terms = values.iter().enumerate().map(|(j, value)| value * coefficients[j * width + k]);
                let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + f64::abs(x)));
                let score = scores[i * width + k];
                prop_assert!(f64::is_infinite(size) || (score - sum).abs() <= 1e-13 * size, "{} is {}", score, sum);
            }
        }
    }

    #[test]
    fn the_gram_matrix_is_right_and_symmetric(atoms in matrix(), kernel in standard()) {
        let n = atoms.rows();
        let gram = Gram::new(Arc::new(kernel), atoms.clone(), 0);
        let pool = Pool::new(1).unwrap();
        let all: Vec<u32> = (0..n as u32).collect();
        let mut between = vec![f64::NAN; n * n];
        gram.between(&all, &all, &mut between, &pool);
        for a in 0..n {
            prop_assert_eq!(between[a * n + a].to_bits(), gram.diagonal(a as u32).to_bits());
            let mut image = vec![0.0; n];
            gram.add_image(&[Entry { atom: a as u32, slot: 0, value: 1.0 }], 1, &mut image, &pool);
            for (b, &image) in image.iter().enumerate() {
                let value = between[a * n + b];
                prop_assert!(value.is_finite());
                prop_assert_eq!(value.to_bits(), between[b * n + a].to_bits());
                prop_assert_eq!(value.to_bits(), gram.value(a as u32, b as u32).to_bits());
                prop_assert!(value == image, "{} {}", value, image);
                let (exact, within) = (kernel.value(atoms.row(a), atoms.row(b)), tolerance(&kernel, atoms.row(a), atoms.row(b)));
                prop_assert!(!within.is_finite() || (value - exact).abs() <= within, "{} is {}", value, exact);
                if matches!(kernel.shape, Shape::Rbf { .. }) && atoms.row(a) == atoms.row(b) {
                    prop_assert_eq!(value, 1.0 + kernel.constant);
                }
            }
        }
        // Few rows, and columns in any order: gathered in other ways.
        let columns: Vec<u32> = all.iter().rev().step_by(3).copied().collect();
        for rows in [&all[..1], &all[..2.min(n)], &all[..5.min(n)]] {
            for columns in [&columns[..], &columns[..1], &[]] {
                let mut few = vec![f64::NAN; rows.len() * columns.len()];
                gram.between(rows, columns, &mut few, &pool);
                let expected = rows.iter().flat_map(|&a| columns.iter().map(move |&b| (a, b)));
                let expected: Vec<f64> = expected.map(|(a, b)| between[a as usize * n + b as usize]).collect();
                prop_assert_eq!(bits(&few), bits(&expected));
            }
        }
    }

    #[test]
    fn images_have_the_same_bits_whatever_is_cached(
        atoms in matrix(), kernel in standard(), width in 1..6_usize, entries in prop::collection::vec((any::<u32>(), any::<u32>(), -1.0..1.0), 0..60)
    ) {
        let n = atoms.rows();
        let mut entries: Vec<Entry> = entries
            .into_iter()
            .map(|(atom, slot, value)| Entry { atom: atom % n as u32, slot: slot % width as u32, value })
            .collect();
        entries.sort_by_key(|entry| entry.atom);
        let mut expected = vec![0.25; n * width];
        let plain = Gram::new(Arc::new(kernel), atoms.clone(), 0);
        for (b, image) in expected.chunks_exact_mut(width).enumerate() {
            for e in &entries {
 image[e.slot as usize] += e.value * plain.value(e.atom, b as u32);
}
        }
        for cache in caches(n) {
            let gram = Gram::new(Arc::new(kernel), atoms.clone(), cache);
            for pool in pools() {
                let mut image = vec![0.25; n * width];
                gram.add_image(&entries, width, &mut image, &pool);
                prop_assert_eq!(bits(&image), bits(&expected));
                prop_assert!(gram.cached_bytes() <= cache);
                gram.prepare(&[n as u32 - 1, 0, n as u32 / 2], &pool);
            }
        }
    }
}

/// Enough atoms for the work to be shared: the same bits on any number of threads, for any kernel and any cache.
#[test]
fn threads_and_caches_change_nothing() {
    let mut atoms = SparseMatrix::new();
    for i in 0..1500_u32 {
        let features = (0..30).filter(|j| (i * 7 + j * j * 13) % 5 < 2);
        atoms.push_row(features.map(|j| (j, ((i * 31 + j * 17) % 23) as f32 / 23.0)));
    }
    let (n, width) = (atoms.rows(), 3);
    let entry = |at: u32| Entry { atom: at / 2 * 9, slot: at % 3, value: f64::from(at % 11) - 5.3 };
    let entries: Vec<Entry> = (0..300).map(entry).collect();
    let some: Vec<u32> = (0..n as u32).step_by(3).collect();
    let kernels: [Arc<dyn Kernel>; 3] = [
        Arc::new(Standard { shape: Shape::Rbf { gamma: 0.3 }, constant: 1.0 }),
        Arc::new(Standard { shape: Shape::Rbf { gamma: 1e4 }, constant: 0.0 }),
        Arc::new(Intersection),
    ];
    for kernel in kernels {
        let mut expected = None;
        for cache in caches(n) {
            for pool in pools() {
                let gram = Gram::new(Arc::clone(&kernel), atoms.clone(), cache);
                let mut image = vec![0.0; n * width];
                gram.add_image(&entries, width, &mut image, &pool);
                gram.prepare(&some, &pool);
                gram.add_image(&entries, width, &mut image, &pool);
                let mut values = vec![0.0; some.len() * some.len()];
                gram.between(&some, &some, &mut values, &pool);
                let found = (bits(&image), bits(&values));
                assert!(
                    *expected.get_or_insert_with(|| found.clone()) == found,
                    "{kernel:?}, {} threads",
                    pool.threads()
                );
                assert!(gram.cached_bytes() <= cache);
            }
        }
    }
}

#[test]
fn kernels_of_ones_own_work_everywhere() {
    let mut atoms = SparseMatrix::new();
    for i in 0..200_u32 {
        atoms.push_row((0..i % 6).map(|j| (j * 3 + i % 3, ((i + j) % 7) as f32)));
    }
    let (n, pool) = (atoms.rows(), Pool::new(2).unwrap());
    let exact = |a: usize, b: usize| Intersection.value(atoms.row(a), atoms.row(b));
    let gram = Gram::new(Arc::new(Intersection), atoms.clone(), 1 << 20);
    let columns = Columns::new(Arc::new(Intersection), atoms.clone());
    let mut values = vec![0.0; 3 * n];
    columns.values(&atoms.views()[..3], &mut values);
    let mut image = vec![0.0; 2 * n];
    gram.add_image(&[Entry { atom: 7, slot: 1, value: 2.0 }], 2, &mut image, &pool);
    let mut between = [0.0; 4];
    gram.between(&[5, 7], &[9, 11], &mut between, &pool);
    assert_eq!(between, [exact(5, 9), exact(5, 11), exact(7, 9), exact(7, 11)]);
    for b in 0..n {
        assert!((0..3).all(|i| values[i * n + b] == exact(i, b)));
        assert_eq!((image[2 * b], image[2 * b + 1]), (0.0, 2.0 * exact(7, b)));
        assert_eq!((gram.value(7, b as u32), gram.diagonal(b as u32)), (exact(7, b), exact(b, b)));
    }
}

#[test]
fn what_is_kept_is_not_computed_again() {
    let mut atoms = SparseMatrix::new();
    (0..100).for_each(|i| atoms.push_row([(i % 10, i as f32 / 50.0)]));
    let kernel = Arc::new(Standard { shape: Shape::Rbf { gamma: 0.5 }, constant: 0.0 });
    let (pool, row) = (Pool::new(1).unwrap(), 100 * 4);
    let gram = Gram::new(kernel, atoms, 3 * row);
    let visit = |atom: u32| {
        let before = gram.evaluations();
        gram.add_image(&[Entry { atom, slot: 0, value: 1.0 }], 1, &mut [0.0; 100], &pool);
        gram.evaluations() - before
    };
    gram.prepare(&[4, 2, 4], &pool);
    assert_eq!((gram.evaluations(), gram.cached_bytes()), (200, 2 * row));
    assert_eq!([2, 4, 9, 2, 11, 4, 9].map(visit), [0, 0, 100, 0, 100, 100, 100]);
    assert_eq!(gram.cached_bytes(), 3 * row);
    // Never more than what fits.
    let before = gram.evaluations();
    gram.prepare(&(20..60).collect::<Vec<_>>(), &pool);
    assert_eq!((gram.evaluations() - before, gram.cached_bytes()), (300, 3 * row));
}

#[test]
fn many_threads_may_ask_at_once() {
    let mut atoms = SparseMatrix::new();
    (0..300_u32).for_each(|i| atoms.push_row((0..8).map(|j| (j, ((i * 5 + j * 3) % 17) as f32 / 17.0))));
    let kernel = Arc::new(Standard { shape: Shape::Rbf { gamma: 0.5 }, constant: 0.0 });
    let gram = Gram::new(kernel, atoms, 10 * 300 * 4);
    let work = || {
        let pool = Pool::new(1).unwrap();
        let mut image = vec![0.0; 300];
        for step in 0..500 {
            gram.add_image(&[Entry { atom: step * 7 % 31, slot: 0, value: 0.5 }], 1, &mut image, &pool);
        }
        image
    };
    let images = std::thread::scope(|scope| [0; 4].map(|_| scope.spawn(work)).map(|thread| thread.join().unwrap()));
    assert!(images.iter().all(|image| *image == images[0]));
    assert!(gram.cached_bytes() <= 10 * 300 * 4);
}

#[test]
fn nothing_has_an_empty_matrix() {
    let kernel = Arc::new(Standard { shape: Shape::Rbf { gamma: 0.5 }, constant: 0.0 });
    let pool = Pool::new(1).unwrap();
    let gram = Gram::new(Arc::clone(&kernel) as Arc<dyn Kernel>, SparseMatrix::new(), 1 << 20);
    gram.add_image(&[], 2, &mut [], &pool);
    gram.prepare(&[], &pool);
    gram.between(&[], &[], &mut [], &pool);
    assert!(gram.is_empty() && gram.cached_bytes() == 0 && gram.evaluations() == 0);
    let columns = Columns::new(kernel, SparseMatrix::new());
    let mut scores = [f64::NAN; 2];
    columns.scores(&[SparseView::new(&[3], &[1.0])], &[], 2, &mut scores);
    columns.values(&[SparseView::new(&[3], &[1.0])], &mut []);
    assert_eq!(scores, [0.0; 2]);
}
