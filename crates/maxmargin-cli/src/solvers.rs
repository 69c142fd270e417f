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
use maxmargin::solver::{Observer, Settings, Solution, Solver};
use maxmargin::task::Task;

use crate::options::{InnerName, KernelOptions, SamplingName, SolverName, SolverOptions, Switch, UpdateName};

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
}

/// The solver that will run, and why where the user has named none.
pub(crate) fn name<T: Task>(options: &SolverOptions, problem: &Problem<'_, T>) -> (SolverName, Option<&'static str>) {
    match options.solver {
        Some(name) if name != SolverName::Auto => (name, None),
        _ => {
            let choice = auto::choose(problem);
            let name = match choice {
                Choice::HardNSlack => SolverName::NSlack,
                Choice::DualCoordinate => SolverName::DualCoordinate,
                Choice::OneSlack => SolverName::OneSlack,
                Choice::SampledLinear => SolverName::SampledLinear,
                Choice::Bcfw | Choice::KernelBcfw => SolverName::Bcfw,
                Choice::GdmmForSets | Choice::GdmmForLabels => SolverName::Gdmm,
            };
            (name, Some(choice.why()))
        }
    }
}

/// The solver of that name, which is not `auto`, with its options.
pub(crate) fn build(name: SolverName, options: &SolverOptions, kernel: &KernelOptions) -> Chosen {
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
                Some(SamplingName::Growing) | None => Scheme::Growing,
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
                Some(InnerName::Blocks) | None => Inner::Blocks,
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
        }
    }
}
