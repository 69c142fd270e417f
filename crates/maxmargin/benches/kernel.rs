//! How many kernel values a second one core computes, beside a plain blocked product of dense matrices of the same shape
//! (sgemm of the crate matrixmultiply, which takes no exponential). Prints a table.

use std::sync::Arc;
use std::time::Instant;

use maxmargin::kernel::{Columns, Entry, Gram, Kernel, Shape, Standard};
use maxmargin::parallel::Pool;
use maxmargin::sparse::SparseMatrix;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const ROUNDS: usize = 40;
/// Vectors compared with each other: more than fit into any cache but the last.
const ATOMS: usize = 8192;
/// Rows at a time.
const ROWS: usize = 256;
/// As in the visits of a block-coordinate solver on adult.
const MANY: usize = 22_697;

fn main() {
    // `cargo bench` says --bench; `cargo test --all-targets` runs this too and wants no measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("million kernel values a second, one core");
    println!("{:<44} {:>8} {:>8} {:>8} {:>8}", "data", "values", "scores", "image", "sgemm");
    let rbf = |gamma: f64| Standard { shape: Shape::Rbf { gamma }, constant: 1.0 };
    let poly = Standard { shape: Shape::Poly { degree: 3, gamma: 0.1, coef0: 1.0 }, constant: 0.0 };
    let (adult, dense, text) = (sparse(ATOMS, 123, 14), filled(ATOMS, 54), sparse(ATOMS, 50_000, 100));
    measure("rbf, 123 features, 14 ones in a row", rbf(0.05), &adult, true);
    measure("rbf, 54 dense features", rbf(0.1), &dense, true);
    measure("rbf, 54 dense features, double precision", rbf(1e4), &dense, true);
    measure("rbf, 784 features, 150 in a row", rbf(0.02), &sparse(ATOMS, 784, 150), true);
    measure("rbf, 50,000 features, 100 in a row", rbf(0.05), &text, false);
    measure("poly of degree 3, 54 dense features", poly, &dense, true);
    visits(rbf(0.05));
}

fn measure(name: &str, kernel: Standard, atoms: &SparseMatrix, is_dense: bool) {
    let kernel: Arc<dyn Kernel> = Arc::new(kernel);
    let columns = Columns::new(Arc::clone(&kernel), atoms.clone());
    let rows = &atoms.views()[..ROWS];
    let evaluations = (ROWS * ATOMS) as f64;
    let mut values = vec![0.0; ROWS * ATOMS];
    let computed = evaluations / best(|| columns.values(rows, &mut values));
    let coefficients: Vec<f64> = (0..ATOMS).map(|j| (j % 7) as f64 - 3.0).collect();
    let mut scores = vec![0.0; ROWS];
    let scored = evaluations / best(|| columns.scores(rows, &coefficients, 1, &mut scores));
    let gram = Gram::new(kernel, atoms.clone(), 0);
    let entries: Vec<Entry> = (0..ROWS as u32).map(|atom| Entry { atom, slot: 0, value: 1.0 }).collect();
    let (mut image, pool) = (vec![0.0; ATOMS], Pool::new(1).expect("a thread"));
    let imaged = evaluations / best(|| gram.add_image(&entries, 1, &mut image, &pool));
    let product = is_dense.then(|| evaluations / sgemm(atoms) / 1e6);
    let product = product.map_or("-".to_owned(), |product| format!("{product:.0}"));
    println!("{name:<44} {:>8.0} {:>8.0} {:>8.0} {product:>8}", computed / 1e6, scored / 1e6, imaged / 1e6);
}

/// What a solver waits for when it changes the coefficients of one atom.
fn visits(kernel: Standard) {
    let gram = Gram::new(Arc::new(kernel), sparse(MANY, 123, 14), usize::MAX);
    let pool = Pool::new(1).expect("a thread");
    println!("\nmicroseconds for the image of one atom among {MANY}, 123 features, 14 ones in a row");
    println!("{:<44} {:>8} {:>8}", "width of the block", "computed", "cached");
    for width in [1, 2, 10] {
        let mut image = vec![0.0; MANY * width];
        let uncached = Gram::new(Arc::new(kernel), gram.atoms().clone(), 0);
        let entry = [Entry { atom: 77, slot: 0, value: 0.5 }];
        let computed = best(|| uncached.add_image(&entry, width, &mut image, &pool));
        gram.prepare(&[77], &pool);
        let cached = best(|| gram.add_image(&entry, width, &mut image, &pool));
        println!("{width:<44} {:>8.1} {:>8.1}", computed * 1e6, cached * 1e6);
    }
}

/// Seconds of the fastest of some rounds.
fn best(mut work: impl FnMut()) -> f64 {
    let round = |_| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

/// Seconds for the products of the first rows with all.
fn sgemm(atoms: &SparseMatrix) -> f64 {
    let d = atoms.columns() as usize;
    let mut dense = vec![0.0_f32; ATOMS * d];
    for i in 0..ATOMS {
        atoms.row(i).iter().for_each(|(j, x)| dense[i * d + j as usize] = x);
    }
    let mut products = vec![0.0_f32; ROWS * ATOMS];
    best(|| {
        #[expect(unsafe_code, reason = "the crate has no other way to be called")]
        // SAFETY: the matrices have as many numbers as their sizes and strides say.
        unsafe {
            let (a, b, c) = (dense.as_ptr(), dense.as_ptr(), products.as_mut_ptr());
            matrixmultiply::sgemm(ROWS, d, ATOMS, 1.0, a, d as isize, 1, b, 1, d as isize, 0.0, c, ATOMS as isize, 1);
        }
    })
}

/// `ones` features of each row are 1, some features far more often than others.
fn sparse(rows: usize, features: u64, ones: usize) -> SparseMatrix {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut matrix = SparseMatrix::new();
    for _ in 0..rows {
        let mut chosen = std::collections::BTreeSet::new();
        while chosen.len() < ones {
            let (u, v) = (random.next_u64() % features, random.next_u64() % features);
            chosen.insert(u.min(v) as u32);
        }
        matrix.push_row(chosen.into_iter().map(|j| (j, 1.0)));
    }
    matrix.set_columns(features as u32);
    matrix
}

/// All features, from 0 to 1.
fn filled(rows: usize, features: u32) -> SparseMatrix {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut matrix = SparseMatrix::new();
    for _ in 0..rows {
        matrix.push_row((0..features).map(|j| (j, (random.next_u32() >> 8) as f32 / (1 << 24) as f32)));
    }
    matrix
}
