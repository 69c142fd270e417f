//! `--kernel`: the vectors of the examples, as a kernel has them.

use std::sync::Arc;
use std::time::Instant;

use maxmargin::features::Block;
use maxmargin::kernel::{Atoms, Basis, Expansion, Gram, LowRank, Metric, Precision, Specification, Standard};
use maxmargin::numeric::square;
use maxmargin::parallel::Pool;
use maxmargin::solver::DEFAULT_EPSILON;
use maxmargin::sparse::SparseMatrix;
use maxmargin::weights::Weights;

use crate::failure::{Failure, Result};
use crate::options::{BasisName, Ladder, Penalty};
use crate::summary::Approximated;
use crate::text::{bytes, count, counted, duration};
use crate::train::Args;
use crate::training::Vectors;
use crate::{memory, sampling};

/// MB of kernel values that are kept, where nobody says.
const CACHE: usize = 1000;

/// Numbers for each atom and slot: points, sums and a hundred cuts or two.
const COPIES: f64 = 200.0;

/// What stands between the vectors and the task.
enum Between {
    /// The task sees one-hot vectors of atoms, and the solver their kernel values.
    Gram(Gram),
    /// The task sees coordinates, and the solver nothing of a kernel.
    LowRank(LowRank, Box<Exactly>),
}

/// The kernel itself beside coordinates of low rank, by which the objective of a model is reported.
struct Exactly {
    gram: Gram,
    /// The examples' vectors as one-hot vectors of atoms.
    rows: SparseMatrix,
    /// The atoms of the basis.
    basis: Vec<u32>,
}

impl Exactly {
    fn new(kernel: Standard, rows: &SparseMatrix, rank: &LowRank) -> Self {
        let mut atoms = Atoms::default();
        let mut rows = atoms.one_hot(rows);
        let basis = atoms.one_hot(rank.basis());
        let basis = (0..basis.rows()).map(|j| basis.row(j).indices()[0]).collect();
        let atoms = atoms.into_vectors();
        rows.set_columns(atoms.rows() as u32);
        // Each row of kernel values is asked for once or twice.
        Self { gram: Gram::in_precision(Arc::new(kernel), atoms, 0, Precision::Double), rows, basis }
    }
}

/// The examples' vectors.
pub(crate) struct Kernelised {
    kernel: Standard,
    between: Between,
    /// Examples' vectors, and the seconds that it took to make them.
    rows: usize,
    /// Atoms that training sees; those of held-out examples come after them.
    trained: usize,
    /// Was the rank not asked for?
    is_of_sample: bool,
    seconds: f64,
    pub(crate) train: SparseMatrix,
    pub(crate) heldout: Option<SparseMatrix>,
}

/// Where a kernel is asked for: what the task sees in the place of these vectors. `slots`: numbers of w for each.
pub(crate) fn kernelise(
    args: &Args,
    train: &SparseMatrix,
    heldout: Option<&SparseMatrix>,
    slots: usize,
    pool: &Pool,
) -> Result<Option<Kernelised>> {
    let (options, began) = (&args.kernel, Instant::now());
    let specification = options.kernel.unwrap_or(Specification::Linear);
    if specification == Specification::Linear && !args.solver.is_sampled() && options.low_rank.is_none() {
        return Ok(None);
    }
    let constant = args.problem.bias.map_or(0.0, |bias| square(f64::from(bias)));
    let kernel = specification.on(train, constant)?;
    check_values(&kernel, train, args)?;
    let rank = if let Some(k) = options.low_rank {
        check_bias(&kernel, train)?;
        let basis = if options.basis == Some(BasisName::Random) { Basis::Random } else { Basis::Pivoted };
        need_coordinates(args, train, k.min(train.rows()), "take a smaller --low-rank")?;
        Some(LowRank::new(Arc::new(kernel), train, k, basis, args.solver.seed.unwrap_or(0), pool)?)
    } else {
        sampling::coordinates(args, &kernel, train, pool)?
    };
    if let Some(rank) = rank {
        need_coordinates(args, train, rank.len(), "take --sampling growing")?;
        let exactly = Exactly::new(kernel, train, &rank);
        let (train, heldout) = (rank.map(train, pool), heldout.map(|rows| rank.map(rows, pool)));
        let (rows, seconds) = (train.rows(), began.elapsed().as_secs_f64());
        let trained = rank.len();
        return Ok(Some(Kernelised {
            kernel,
            between: Between::LowRank(rank, Box::new(exactly)),
            rows,
            trained,
            is_of_sample: options.low_rank.is_none(),
            seconds,
            train,
            heldout,
        }));
    }
    let mut atoms = Atoms::default();
    let mut train = atoms.one_hot(train);
    let trained = atoms.vectors().rows();
    let heldout = heldout.map(|rows| atoms.one_hot(rows));
    let vectors = atoms.into_vectors();
    train.set_columns(vectors.rows() as u32);
    need(args, vectors.rows() as f64 * slots as f64 * 8.0 * COPIES, "take fewer examples, or --low-rank")?;
    let cache = options.kernel_cache.unwrap_or(CACHE).saturating_mul(1 << 20);
    let gram = Gram::in_precision(Arc::new(kernel), vectors, cache, precision(args, train.rows()));
    let (rows, seconds) = (train.rows(), began.elapsed().as_secs_f64());
    let between = Between::Gram(gram);
    Ok(Some(Kernelised { kernel, between, rows, trained, is_of_sample: false, seconds, train, heldout }))
}

/// The precision of kernel values that the accuracy asked for takes.
///
/// The errors e of single precision move P by about `e K^2 n^1.5`, where K is the largest weight of an example's slack:
/// each of n scores is a sum of n terms up to K e, whose signs are random. Measured, the shift was 20 to 20,000 times
/// smaller than that, smallest where the kernel's matrix is well conditioned. Where it is larger than expected training
/// goes on until the values that are reported are good enough, or stops and says so.
fn precision(args: &Args, examples: usize) -> Precision {
    /// P as a share of its value at w = 0, where a gap relative to P is asked for.
    const USUAL_PRIMAL: f64 = 0.1;
    let (problem, n) = (&args.problem, examples as f64);
    if problem.penalty == Some(Penalty::Hard) {
        return Precision::Double;
    }
    let largest = |ladder: &Option<Ladder>| match ladder {
        Some(Ladder::Given(values)) => values.iter().copied().reduce(f64::max),
        _ => None,
    };
    let per_example = [
        problem.c_per_example,
        largest(&problem.c_path_per_example),
        problem.c.map(|c| c / n),
        largest(&problem.c_path).map(|c| c / n),
    ];
    let weight = per_example.into_iter().flatten().reduce(f64::max).unwrap_or(1.0);
    let accuracy = match (args.stopping.relative_gap, args.stopping.epsilon) {
        (Some(r), _) => USUAL_PRIMAL * r,
        (None, Some(epsilon)) => epsilon / problem.loss_scale.unwrap_or(1.0),
        (None, None) => DEFAULT_EPSILON,
    };
    Precision::Within(accuracy / (weight * n.sqrt()))
}

/// A basis is found by how much of the kernel it leaves: beside a huge constant that is nothing.
fn check_bias(kernel: &Standard, rows: &SparseMatrix) -> Result<()> {
    const MOST: f64 = 100.0;
    let own = Standard { constant: 0.0, ..*kernel };
    let norms = (0..rows.rows()).map(|i| rows.row(i).norm2());
    let mean = norms.map(|norm2| own.of(norm2, norm2, norm2).abs()).sum::<f64>() / rows.rows().max(1) as f64;
    if kernel.constant <= MOST * mean {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "--bias: its square, {}, drowns the kernel's values, {mean:.3} in the mean, of which --low-rank would see nothing; \
         take a smaller one",
        kernel.constant
    )))
}

/// Huge numbers to a high power are infinite.
fn check_values(kernel: &Standard, rows: &SparseMatrix, args: &Args) -> Result<()> {
    /// Inner products up to here can be added up and squared.
    const LARGEST: f64 = 1e60;
    let norm2 = (0..rows.rows()).map(|i| rows.row(i).norm2()).fold(0.0, f64::max);
    let value = kernel.of(norm2, norm2, norm2).abs();
    if value <= LARGEST {
        return Ok(());
    }
    Err(Failure::Data(format!(
        "{}: {kernel} has values up to {value:.1e} on these data, too large to train with; scale the features, or take \
         a smaller degree or gamma",
        args.input.display()
    )))
}

/// So many coordinates of each row, with their places.
fn need_coordinates(args: &Args, rows: &SparseMatrix, coordinates: usize, way_out: &str) -> Result<()> {
    need(args, (rows.rows() * coordinates) as f64 * 8.0, way_out)
}

/// States the need before taking it.
fn need(args: &Args, need: f64, way_out: &str) -> Result<()> {
    match memory::available() {
        Some(available) if need > 0.75 * available => Err(Failure::Data(format!(
            "{}: training with this kernel would take about {} and {} are free: {way_out}",
            args.input.display(),
            bytes(need),
            bytes(available)
        ))),
        _ => Ok(()),
    }
}

impl Kernelised {
    /// What the solver sees of it, in this block of the task.
    pub(crate) fn vectors(&self, block: Block) -> Vectors<'_> {
        match &self.between {
            Between::Gram(gram) => Vectors::Kernel(Metric::new(gram, block).trained_on(self.trained)),
            Between::LowRank(..) if self.is_of_sample => Vectors::OfSample,
            Between::LowRank(..) => Vectors::Own,
        }
    }

    /// What a model keeps of these weights.
    pub(crate) fn expansion(&self, w: &Weights, block: Block) -> Result<Expansion> {
        let own = &w.coefficients()[block.base as usize..(block.base + block.len()) as usize];
        Ok(match &self.between {
            Between::Gram(gram) => Expansion::of_atoms(self.kernel, gram.atoms(), own, block.width)?,
            Between::LowRank(rank, _) => rank.expansion(own, block.width)?,
        })
    }

    /// The kernel itself in this block, where training sees coordinates of low rank.
    pub(crate) fn exact_metric(&self, block: Block) -> Option<Metric<'_>> {
        match &self.between {
            Between::Gram(_) => None,
            Between::LowRank(_, exactly) => Some(Metric::new(&exactly.gram, block)),
        }
    }

    /// The examples' vectors as that metric numbers them.
    pub(crate) fn exact_rows(&self) -> Option<&SparseMatrix> {
        match &self.between {
            Between::Gram(_) => None,
            Between::LowRank(_, exactly) => Some(&exactly.rows),
        }
    }

    /// Writes the coefficients, for that metric, of weights in coordinates of low rank.
    pub(crate) fn write_exactly(&self, own: &[f64], width: u32, coefficients: &mut [f64]) {
        let Between::LowRank(rank, exactly) = &self.between else { return };
        let width = width as usize;
        let beta = rank.coefficients(own, width);
        for (&atom, beta) in exactly.basis.iter().zip(beta.chunks_exact(width)) {
            coefficients[atom as usize * width..][..width].copy_from_slice(beta);
        }
    }

    /// The seconds that it took to make them.
    pub(crate) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// What was made of the vectors, which were `drawn` so, for the summary.
    pub(crate) fn approximated(&self, drawn: &str) -> Approximated {
        let left_out = match &self.between {
            Between::Gram(_) => None,
            Between::LowRank(rank, _) => Some(rank.residual()),
        };
        Approximated { in_words: format!("{drawn}{}", self.in_words()), left_out }
    }

    fn in_words(&self) -> String {
        match &self.between {
            Between::Gram(gram) => format!(
                "{} distinct ones, {:.1} million kernel values computed",
                count(self.trained as u64),
                1e-6 * gram.evaluations() as f64
            ),
            Between::LowRank(rank, _) => format!(
                "{} of low rank ({}, made in {}), which leave out {:.2} % of the kernel",
                counted(rank.len() as u64, "coordinate"),
                bytes(8.0 * (self.rows * rank.len()) as f64),
                duration(self.seconds),
                100.0 * rank.residual()
            ),
        }
    }
}
