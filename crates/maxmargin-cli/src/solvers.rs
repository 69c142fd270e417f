//! From the options of `train` to a solver.

use maxmargin::problem::Problem;
use maxmargin::solver::auto::{self, Choice};
use maxmargin::solver::bcfw::Bcfw;
use maxmargin::solver::cutting_plane::{CuttingPlane, Placement, Scheme};
use maxmargin::solver::dual_coordinate::DualCoordinate;
use maxmargin::solver::frank_wolfe::FrankWolfe;
use maxmargin::solver::gdmm::{Gdmm, Inner, Oracle};
use maxmargin::solver::mle::Mle;
use maxmargin::solver::n_slack::{NSlack, Update};
use maxmargin::solver::perceptron::Perceptron;
use maxmargin::solver::sampled_constant::SampledConstant;
use maxmargin::solver::subgradient::Subgradient;
use maxmargin::solver::{Certificate, Observer, Settings, Solution, Solver};
use maxmargin::task::Task;

use crate::options::{InnerName, KernelOptions, SamplingName, SolverName, SolverOptions, Switch, UpdateName};
use crate::sampling;
use crate::train::Args;

/// The solver of a run.
#[derive(Debug)]
pub(crate) enum Chosen {
    Planes(CuttingPlane),
    NSlack(NSlack),
    DualCoordinate(DualCoordinate),
    Bcfw(Bcfw),
    Subgradient(Subgradient),
    Perceptron(Perceptron),
    FrankWolfe(FrankWolfe),
    Mle(Mle),
    SampledConstant(SampledConstant),
    Gdmm(Gdmm),
    /// On a sample, or in coordinates of what it spans. Unless the sample is everything, what the solver proves is not proven
    /// of the whole problem.
    OfSample {
        name: &'static str,
        solver: Box<Chosen>,
        is_everything: bool,
    },
}

/// Why coordinates, where `auto` takes them.
const WHY_COORDINATES: &str =
    "with a kernel that few examples nearly span, a linear problem in coordinates is solved soonest";

/// The solver that will run, and why where the user has named none. `is_in_coordinates`: of what a sample spans.
pub(crate) fn name<T: Task>(
    args: &Args,
    problem: &Problem<'_, T>,
    is_in_coordinates: bool,
) -> (SolverName, Option<&'static str>) {
    match args.solver.solver {
        Some(name) if name != SolverName::Auto => (name, None),
        _ if is_in_coordinates => (SolverName::SampledLinear, Some(WHY_COORDINATES)),
        _ => {
            let choice = auto::choose(problem);
            (named(choice), Some(choice.why()))
        }
    }
}

fn named(choice: Choice) -> SolverName {
    match choice {
        Choice::HardNSlack => SolverName::NSlack,
        Choice::DualCoordinate | Choice::LabelByLabel => SolverName::DualCoordinate,
        Choice::OneSlack | Choice::OneSlackForScale => SolverName::OneSlack,
        Choice::SampledLinear => SolverName::SampledLinear,
        Choice::Bcfw | Choice::KernelBcfw => SolverName::Bcfw,
        Choice::GdmmForSets | Choice::GdmmForLabels => SolverName::Gdmm,
    }
}

/// The solver of that name, which is not `auto`, with its options. `examples`: how many the problem's were drawn from.
pub(crate) fn choose<T: Task>(
    name: SolverName,
    args: &Args,
    problem: &Problem<'_, T>,
    is_in_coordinates: bool,
    examples: usize,
) -> Chosen {
    let build = |name| build(name, &args.solver, &args.kernel);
    let solver = if is_in_coordinates { named(auto::choose(problem)) } else { SolverName::SampledLinear };
    let word = match name {
        SolverName::SampledConstant if !sampling::is_uniform(args) => "sampled-constant",
        SolverName::SampledLinear if is_in_coordinates => "sampled-linear",
        name => return build(name),
    };
    let is_everything = !is_in_coordinates && problem.len() == examples;
    Chosen::OfSample { name: word, solver: Box::new(build(solver)), is_everything }
}

fn build(name: SolverName, options: &SolverOptions, kernel: &KernelOptions) -> Chosen {
    match name {
        SolverName::OneSlack | SolverName::GroupSlack | SolverName::Auto => Chosen::Planes(planes(options)),
        SolverName::NSlack => {
            let update = match (options.update, options.batch) {
                (Some(UpdateName::Own), _) => Update::OwnCuts,
                (_, Some(batch)) => Update::Batch(batch),
                _ => NSlack::default().update,
            };
            Chosen::NSlack(NSlack { update, ..NSlack::default() })
        }
        SolverName::DualCoordinate => Chosen::DualCoordinate(DualCoordinate::default()),
        SolverName::Bcfw => Chosen::Bcfw(Bcfw::default()),
        SolverName::Subgradient => Chosen::Subgradient(Subgradient),
        SolverName::Perceptron => Chosen::Perceptron(Perceptron),
        SolverName::FrankWolfe => Chosen::FrankWolfe(FrankWolfe),
        SolverName::Mle => Chosen::Mle(Mle),
        SolverName::SampledLinear => {
            let scheme = match kernel.sampling {
                Some(SamplingName::Uniform) => Scheme::Uniform,
                Some(SamplingName::Growing | SamplingName::Pivoted) | None => Scheme::Growing,
            };
            Chosen::Planes(CuttingPlane::sampled(kernel.sample_size.unwrap_or(auto::SAMPLE_SIZE), scheme))
        }
        SolverName::Gdmm | SolverName::SoftBcfw => {
            let default = Gdmm::default();
            let eta = if name == SolverName::SoftBcfw { 0.0 } else { options.eta.unwrap_or(default.eta) };
            let oracle = if options.fmo_parts == Some(1) { Oracle::Brute } else { default.oracle };
            let (rho, parts, certify) = (options.rho.unwrap_or(default.rho), options.fmo_parts, options.certify);
            let inner = match options.inner {
                Some(InnerName::AwaySteps) => Inner::AwaySteps,
                Some(InnerName::Blocks) => Inner::Blocks,
                Some(InnerName::Turns) | None => Inner::Turns,
            };
            Chosen::Gdmm(Gdmm { rho, eta, parts, oracle, inner, certify })
        }
        SolverName::SampledConstant => {
            let default = SampledConstant::default();
            Chosen::SampledConstant(SampledConstant { size: kernel.sample_size.unwrap_or(default.size), ..default })
        }
    }
}

fn planes(options: &SolverOptions) -> CuttingPlane {
    let default = CuttingPlane::default();
    CuttingPlane {
        groups: options.groups.unwrap_or(1),
        cache: options.cache,
        placement: match options.line_search {
            Some(Switch::Off) => Placement::QpPoint,
            Some(Switch::On) | None => Placement::LineSearch,
        },
        max_cuts: options.max_cuts.unwrap_or(default.max_cuts.max(10 * options.groups.unwrap_or(1))),
        ..default
    }
}

impl Solver for Chosen {
    fn name(&self) -> &'static str {
        match self {
            Self::Planes(solver) => solver.name(),
            Self::NSlack(solver) => solver.name(),
            Self::DualCoordinate(solver) => solver.name(),
            Self::Bcfw(solver) => solver.name(),
            Self::Subgradient(solver) => solver.name(),
            Self::Perceptron(solver) => solver.name(),
            Self::FrankWolfe(solver) => solver.name(),
            Self::Mle(solver) => solver.name(),
            Self::SampledConstant(solver) => solver.name(),
            Self::Gdmm(solver) => solver.name(),
            Self::OfSample { name, .. } => name,
        }
    }

    fn solve<T: Task>(
        &self,
        problem: &Problem<'_, T>,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> maxmargin::Result<Solution> {
        match self {
            Self::Planes(solver) => solver.solve(problem, settings, observer),
            Self::NSlack(solver) => solver.solve(problem, settings, observer),
            Self::DualCoordinate(solver) => solver.solve(problem, settings, observer),
            Self::Bcfw(solver) => solver.solve(problem, settings, observer),
            Self::Subgradient(solver) => solver.solve(problem, settings, observer),
            Self::Perceptron(solver) => solver.solve(problem, settings, observer),
            Self::FrankWolfe(solver) => solver.solve(problem, settings, observer),
            Self::Mle(solver) => solver.solve(problem, settings, observer),
            Self::SampledConstant(solver) => solver.solve(problem, settings, observer),
            Self::Gdmm(solver) => solver.solve(problem, settings, observer),
            Self::OfSample { name, solver, is_everything } => {
                let mut solution = solver.solve(problem, settings, observer)?;
                solution.report.solver = name;
                if !is_everything && solution.report.certificate == Certificate::Exact {
                    solution.report.certificate = Certificate::Estimate;
                }
                Ok(solution)
            }
        }
    }
}
