//! Which solver, where nobody names one.

use super::dual_coordinate::labels;
use super::gdmm::Gdmm;
use super::{Observer, Settings, Solution, Solver, SolverKind};
use crate::error::Result;
use crate::features::{Block, Collect};
use crate::kernel::Metric;
use crate::problem::{Factors, Formulation, Penalty, Problem};

/// The solver that [`choose`] picks. Its report has the name of that solver.
#[derive(Debug, Clone, Copy, Default)]
pub struct Auto;

/// What [`choose`] picks from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// [`NSlack`](super::n_slack::NSlack), for the hard margin.
    HardNSlack,
    /// [`DualCoordinate`](super::dual_coordinate::DualCoordinate)
    DualCoordinate,
    /// [`DualCoordinate`](super::dual_coordinate::DualCoordinate), for sets of labels without pairs.
    LabelByLabel,
    /// [`CuttingPlane`](super::cutting_plane::CuttingPlane) with one slack, where C is huge.
    OneSlack,
    /// [`CuttingPlane`](super::cutting_plane::CuttingPlane) with one slack, where one feature outweighs all others.
    OneSlackForScale,
    /// [`Bcfw`](super::bcfw::Bcfw)
    Bcfw,
    /// [`Bcfw`](super::bcfw::Bcfw) for a kernel and not too many examples.
    KernelBcfw,
    /// [`CuttingPlane`](super::cutting_plane::CuttingPlane) with sampled cuts, for a kernel and many examples.
    SampledLinear,
    /// [`Gdmm`], for sets whose pairs make loops.
    GdmmForSets,
    /// [`Gdmm`], for variables with many labels.
    GdmmForLabels,
}

/// Dual coordinates keep a variable for each output of each example, up to so many: 1 GB.
const MOST_VARIABLES: usize = 1 << 27;

/// With linear slack and C times the mean of |phi|^2 above this, steps on single examples are long beside w: dual coordinates
/// would take thousands of passes, or never arrive.
const HUGE: f64 = 1e4;

/// The same where outputs cannot be listed, with the features of whole outputs, psi, in the place of phi. With 200 sentences of five
/// measurements of about 100 each, 5e5, bcfw has a gap of 38 % after 30 s; one-slack is done at once.
const HUGE_UNLISTED: f64 = 1e5;

/// Where one feature has this share of |psi|^2, and C times that is above [`HEAVY`], steps on single examples go forth and back along
/// it: with BLOSUM62's score as a feature of 20 alignments bcfw takes 10,000 passes where one-slack takes 67.
const OUTWEIGHS: f64 = 0.95;
const HEAVY: f64 = 1e3;

/// With more atoms than this the first whole cuts, far from the optimum, cost more than they are worth.
pub const MOST_ATOMS: usize = 10_000;

/// With a kernel and C times the mean of k(x, x) above this, cutting planes take less time than bcfw: in single runs on 22,697
/// examples of a9a bcfw took 2.1 s at 1, 11 s at 10 and 54 s at 100, sampled cuts 1.4, 4.3 and 3.1 s.
const LONG: f64 = 10.0;

/// r of sampled cuts, as in Yu and Joachims 2008.
pub const SAMPLE_SIZE: usize = 400;

/// Variables with so many labels are trained factor by factor: an oracle that looks at all pairs of labels takes too long. On
/// 3,000 generated sentences with 500 labels gdmm has an accuracy after 14 s that bcfw has not after 40; with 3,000, or on 5,000
/// sentences of the Slovak treebank with 1,197, it is near its best before bcfw ends its first pass. With 49 bcfw is ahead.
const MANY_LABELS: u32 = 500;

/// Solvers that keep all weights take 2 GB for each copy of them.
const MOST_WEIGHTS: usize = 1 << 28;

/// So many examples tell how long psi is.
const SAMPLE: usize = 1000;

/// The solver that should be fastest.
///
/// The hard margin goes to n-slack; outputs that are a list over one input vector, at most 2^27 over all examples, to
/// dual-coordinate, or with linear slack and C times the mean of |phi|^2 above 10,000 to one-slack; label sets without pairs
/// (where loss and slack add up) to dual-coordinate; others to bcfw, or with
/// linear slack and C times the mean of |psi|^2 above 100,000, or above 1,000 with 95 % of it in one feature, to one-slack; sets
/// whose pairs make loops, and variables of at least 500 labels, to gdmm where it can have them (margin rescaling, linear slack,
/// a loss that adds up). With a kernel it is sampled-linear for lists of outputs, linear slack and more than 10,000 atoms, else
/// bcfw, or one-slack where C times the mean of k(x, x) is above 10 (100,000 where outputs cannot be listed).
pub fn choose(problem: &Problem<'_>) -> Choice {
    let penalty = problem.formulation().penalty;
    if penalty == Penalty::Hard {
        return Choice::HardNSlack;
    }
    if let Some(metric) = problem.metric() {
        return choose_for_kernel(problem, metric);
    }
    let listed = problem.enumerable().and_then(|listed| listed.rows().map(|rows| (listed, rows)));
    match listed {
        Some((listed, rows)) if problem.len().saturating_mul(listed.count()) <= MOST_VARIABLES => {
            let norm2 =
                (0..problem.len()).map(|i| rows.phis[problem.place(i)].norm2()).sum::<f64>() / problem.len() as f64;
            let is_huge = penalty == Penalty::Linear && problem.c_per_example() * norm2 > HUGE;
            if is_huge { Choice::OneSlack } else { Choice::DualCoordinate }
        }
        _ if labels::apart(problem).is_some() => Choice::LabelByLabel,
        _ if problem.formulation().adds_up() && problem.factors().is_some_and(|factored| factored.sets().is_some()) => {
            if problem.oracle_is_exact() {
                Choice::Bcfw
            } else {
                Choice::GdmmForSets
            }
        }
        _ if is_many_labels(problem) => Choice::GdmmForLabels,
        _ if penalty == Penalty::Linear => {
            let Length { norm2, largest } = psi(problem);
            let c = problem.c_per_example();
            if c * norm2 > HUGE_UNLISTED {
                Choice::OneSlack
            } else if c * norm2 > HEAVY && largest > OUTWEIGHS * norm2 {
                Choice::OneSlackForScale
            } else {
                Choice::Bcfw
            }
        }
        _ => Choice::Bcfw,
    }
}

/// Is a factor graph whose variables have this many labels for [`Gdmm`]: are there many, or so many weights that only it can do
/// without most of them? Not asked where there is a kernel.
pub fn is_for_gdmm(formulation: &Formulation, labels: u32, dimension: usize, short_rows: Option<Block>) -> bool {
    let is_wide = || dimension > MOST_WEIGHTS && Gdmm::default().short_rows(short_rows).is_some();
    formulation.adds_up() && (labels >= MANY_LABELS || is_wide())
}

/// Is a problem without a kernel for [`Gdmm`] because of its labels?
fn is_many_labels(problem: &Problem<'_>) -> bool {
    let short_rows = problem.factors().and_then(Factors::short_rows);
    let is_for_gdmm = |most| is_for_gdmm(&problem.formulation(), most, problem.dimension(), short_rows);
    most_labels(problem).is_some_and(is_for_gdmm)
}

/// The number of labels of that variable of the first example with some that has most; None where there are no variables.
fn most_labels(problem: &Problem<'_>) -> Option<u32> {
    let factored = problem.factors()?;
    let mut places = (0..problem.len()).map(|i| problem.place(i));
    let first = places.find(|&place| factored.variables(place) > 0)?;
    (0..factored.variables(first)).map(|v| factored.domain(first, v)).max()
}

/// For a kernel: single examples' steps leave most coefficients at zero, but each looks at all atoms.
fn choose_for_kernel(problem: &Problem<'_>, metric: Metric<'_>) -> Choice {
    let (gram, atoms) = (metric.gram(), metric.trained());
    let is_listed = problem.enumerable().is_some();
    if atoms > MOST_ATOMS && problem.formulation().penalty == Penalty::Linear && is_listed {
        return Choice::SampledLinear;
    }
    let mean = (0..atoms as u32).map(|atom| gram.diagonal(atom)).sum::<f64>() / atoms.max(1) as f64;
    let is_huge = problem.c_per_example() * mean > if is_listed { LONG } else { HUGE_UNLISTED };
    if is_huge { Choice::OneSlack } else { Choice::KernelBcfw }
}

/// How long psi is.
#[derive(Debug, Default)]
struct Length {
    /// The mean of |psi|^2.
    norm2: f64,
    /// The mean of the square of its largest coordinate.
    largest: f64,
}

/// Over the truths of some examples; 0 where a task cannot tell.
fn psi(problem: &Problem<'_>) -> Length {
    let step = problem.len().div_ceil(SAMPLE);
    let (mut psi, mut sums, mut count) = (Collect::default(), Length::default(), 0.0);
    for i in (0..problem.len()).step_by(step) {
        psi.clear();
        if problem.add_truth(i, &mut psi).is_err() {
            return Length::default();
        }
        sums.norm2 += psi.norm2();
        sums.largest += psi.merged().iter().map(|e| e.1 * e.1).fold(0.0, f64::max);
        count += 1.0;
    }
    Length { norm2: sums.norm2 / count, largest: sums.largest / count }
}

impl Choice {
    /// The solver.
    pub fn kind(self) -> SolverKind {
        match self {
            Self::HardNSlack => SolverKind::NSlack,
            Self::DualCoordinate | Self::LabelByLabel => SolverKind::DualCoordinate,
            Self::OneSlack | Self::OneSlackForScale => SolverKind::OneSlack,
            Self::Bcfw | Self::KernelBcfw => SolverKind::Bcfw,
            Self::SampledLinear => SolverKind::SampledLinear,
            Self::GdmmForSets | Self::GdmmForLabels => SolverKind::Gdmm,
        }
    }

    /// Why this one.
    pub fn why(self) -> &'static str {
        match self {
            Self::HardNSlack => "without slack, cuts of single examples lead to the answer soonest",
            Self::DualCoordinate => "its outputs can be listed, so each example's variables are solved exactly",
            Self::LabelByLabel => "without pairs every label is a problem of its own, and they are solved side by side",
            Self::OneSlack => "with so large a C, steps on single examples lead nowhere soon",
            Self::OneSlackForScale => {
                "one feature outweighs all others, and steps on single examples go forth and back along it"
            }
            Self::KernelBcfw => "with a kernel, steps on single examples leave the fewest support vectors",
            Self::SampledLinear => "with a kernel, cuts of a sample that grows lead near the answer soonest",
            Self::GdmmForSets => "of many pairs of labels, only those that may matter to an example are looked at",
            Self::GdmmForLabels => "with so many labels, an oracle that looks at all pairs of them takes too long",
            Self::Bcfw => "its outputs are too many to list, and each example is solved over those that it has met",
        }
    }
}

impl Solver for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn solve(&self, problem: &Problem<'_>, settings: &Settings, observer: &mut dyn Observer) -> Result<Solution> {
        choose(problem).kind().solver().solve(problem, settings, observer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::chain::Order;
    use crate::problem::Formulation;
    use crate::sparse::SparseMatrix;
    use crate::task::{Factored, Task};
    use crate::tasks::binary::Binary;
    use crate::tasks::tagging::{Sentence, Shape, TagLoss, Tagging};

    #[test]
    fn the_report_names_the_solver_that_was_chosen() {
        let mut points = SparseMatrix::new();
        points.push_row([(0, -1.0)]);
        points.push_row([(0, 2.0)]);
        let (task, rows) = (Binary::new(1), points.views());
        for (penalty, c, choice) in [
            (Penalty::Linear, 1.0, Choice::DualCoordinate),
            (Penalty::Linear, 1e5, Choice::OneSlack),
            (Penalty::Quadratic, 1e5, Choice::DualCoordinate),
            (Penalty::Hard, 1.0, Choice::HardNSlack),
        ] {
            let formulation = Formulation { c, penalty, ..Formulation::default() };
            let problem = Problem::new(&task, &rows, &[0, 1], None, formulation).unwrap();
            assert_eq!(choose(&problem), choice);
            let solution = Auto.solve(&problem, &Settings::default(), &mut ()).unwrap();
            assert_eq!(solution.report.solver, choice.kind().name());
        }
    }

    /// A feature that outweighs all others, as known scores do, with enough weight on the data.
    #[test]
    fn one_slack_is_for_features_of_very_different_size() {
        let sentence = |bias: f32| {
            let mut tokens = SparseMatrix::new();
            (0..4).for_each(|k| tokens.push_row([(0, bias), (1 + k, 1.0)]));
            tokens
        };
        let shape = Shape { tags: 2, features: 5, edges: 0, order: Order::First };
        let task = Tagging::new(shape, TagLoss::hamming(2), None).unwrap();
        for (bias, c, choice) in
            [(10.0, 1.0, Choice::OneSlackForScale), (1.0, 1.0, Choice::Bcfw), (10.0, 0.1, Choice::Bcfw)]
        {
            let tokens = sentence(bias);
            let (inputs, truths) = ([Sentence::new(&tokens, None, 0..4)], [vec![0; 4]]);
            let formulation = Formulation { c, ..Formulation::default() };
            let problem = Problem::new(&task, &inputs, &truths, None, formulation).unwrap();
            assert_eq!(choose(&problem), choice, "{bias} {c}");
        }
    }

    #[test]
    fn gdmm_is_for_many_labels_and_for_weights_that_only_it_can_leave_out() {
        let is_for_gdmm = |tags, features, formulation: &Formulation| {
            let shape = Shape { tags, features, edges: 0, order: Order::First };
            let task = Tagging::new(shape, TagLoss::hamming(tags as usize), None).unwrap();
            is_for_gdmm(formulation, tags, task.dimension(), task.factored().and_then(Factored::short_rows))
        };
        let linear = Formulation::default();
        assert!(is_for_gdmm(MANY_LABELS, 10, &linear));
        assert!(!is_for_gdmm(MANY_LABELS - 1, 10, &linear));
        let features = |tags: u32| (MOST_WEIGHTS / tags as usize) as u32 + 1;
        assert!(is_for_gdmm(300, features(300), &linear));
        // Rows of few labels are not kept short.
        assert!(!is_for_gdmm(100, features(100), &linear));
        let quadratic = Formulation { penalty: Penalty::Quadratic, ..linear };
        assert!(!is_for_gdmm(MANY_LABELS, 10, &quadratic));
    }
}
