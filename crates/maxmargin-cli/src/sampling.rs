//! `--sampling`: what sampled cuts are made of, as far as it is decided before training begins.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use maxmargin::kernel::{Basis, LowRank, Standard};
use maxmargin::parallel::Pool;
use maxmargin::solver::SolverKind;
use maxmargin::solver::auto::{self, SAMPLE_SIZE};
use maxmargin::sparse::SparseMatrix;

use crate::failure::Result;
use crate::options::{Penalty, SamplingName, Task};
use crate::train::Args;

/// Examples that sampled-constant trains on, for each of --sample-size: on the checkerboard of 1,000,000, 20,000 lead to an
/// error of 2.7 %, 50,000 to 2.5 % and all of them to 2.4 %.
const EXAMPLES: usize = 64;

/// Pivots at most, for each of --sample-size, and the share of the kernel that they may leave. Of 20,000 points of the
/// checkerboard 400 leave 0.53 % and 600 leave 0.03 %; of a9a with gamma = 0.025, 400 leave 3.06 % and 1,000 leave 1.40 %, and the
/// objective in coordinates is 1.8 % and 0.8 % above that of a growing sample.
const PIVOTS: usize = 2;
const SHARE: f64 = 1e-3;

/// Of how many examples training sees only some, and how many these are.
pub(crate) fn drawn(args: &Args, examples: usize) -> Option<usize> {
    let size = size(args).saturating_mul(EXAMPLES);
    (is_constant(args) && scheme(args) != Some(SamplingName::Uniform) && size < examples).then_some(size)
}

/// Can sampled-constant draw its examples before training?
pub(crate) fn draws_once(args: &Args) -> bool {
    matches!(args.task, Task::Binary | Task::Multiclass)
}

/// The scheme that is asked for, or the only one that there is.
fn scheme(args: &Args) -> Option<SamplingName> {
    let is_of_others = is_constant(args) && !draws_once(args);
    args.kernel.sampling.or(is_of_others.then_some(SamplingName::Uniform))
}

/// Does every cut draw examples of its own?
pub(crate) fn is_uniform(args: &Args) -> bool {
    scheme(args) == Some(SamplingName::Uniform)
}

fn is_constant(args: &Args) -> bool {
    args.solver.solver == Some(SolverKind::SampledConstant)
}

fn size(args: &Args) -> usize {
    args.kernel.sample_size.unwrap_or(SAMPLE_SIZE)
}

/// Are there more distinct rows than that?
fn has_more(rows: &SparseMatrix, most: usize) -> bool {
    let mut seen = HashSet::new();
    (0..rows.rows()).any(|i| {
        let (row, mut hasher) = (rows.row(i), DefaultHasher::new());
        row.indices().hash(&mut hasher);
        row.iter().for_each(|(_, value)| value.to_bits().hash(&mut hasher));
        seen.insert(hasher.finish()) && seen.len() > most
    })
}

/// Coordinates in the span of a few examples, where these are asked for or come near enough.
pub(crate) fn coordinates(args: &Args, kernel: &Standard, rows: &SparseMatrix, pool: &Pool) -> Result<Option<LowRank>> {
    let (options, seed) = (&args.solver, args.solver.seed.unwrap_or(0));
    let is_auto = matches!(options.solver, None | Some(SolverKind::Auto));
    // What auto takes for classes.
    let takes_samples =
        is_auto && args.task != Task::Tag && args.problem.penalty.is_none_or(|penalty| penalty == Penalty::Linear);
    let kernel_of = || Arc::new(*kernel);
    Ok(match scheme(args) {
        _ if !(options.is_sampled() || takes_samples) || !kernel.is_definite() => None,
        Some(SamplingName::Pivoted) => Some(LowRank::new(kernel_of(), rows, size(args), Basis::Pivoted, seed, pool)?),
        Some(SamplingName::Growing | SamplingName::Uniform) => None,
        // Fewer are trained on exactly, and with a proof.
        None if !has_more(rows, auto::MOST_ATOMS) => None,
        None => LowRank::reaching(kernel_of(), rows, PIVOTS * size(args), SHARE, seed, pool)?,
    })
}
