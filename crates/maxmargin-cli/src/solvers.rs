//! From the options of `train` to a solver.

use maxmargin::problem::Problem;
use maxmargin::solver::auto;
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
use maxmargin::solver::{Certificate, Observer, Settings, Solution, Solver, SolverKind};

use crate::options::{InnerName, KernelOptions, SamplingName, SolverOptions, Switch, UpdateName};
use crate::sampling;
use crate::train::Args;

/// A solver on a sample, or in coordinates of what it spans, under another name. Unless the sample is everything, what the
/// solver proves is not proven of the whole problem.
#[derive(Debug)]
struct OfSample {
    name: &'static str,
    solver: Box<dyn Solver>,
    is_everything: bool,
}

/// Why coordinates, where `auto` takes them.
const WHY_COORDINATES: &str =
    "with a kernel that few examples nearly span, a linear problem in coordinates is solved soonest";

/// The solver that will run, and why where the user has named none. `is_in_coordinates`: of what a sample spans.
pub(crate) fn name(args: &Args, problem: &Problem<'_>, is_in_coordinates: bool) -> (SolverKind, Option<&'static str>) {
    match args.solver.solver {
        Some(name) if name != SolverKind::Auto => (name, None),
        _ if is_in_coordinates => (SolverKind::SampledLinear, Some(WHY_COORDINATES)),
        _ => {
            let choice = auto::choose(problem);
            (choice.kind(), Some(choice.why()))
        }
    }
}

/// The solver of that name, which is not `auto`, with its options. `examples`: how many the problem's were drawn from.
pub(crate) fn choose(
    name: SolverKind,
    args: &Args,
    problem: &Problem<'_>,
    is_in_coordinates: bool,
    examples: usize,
) -> Box<dyn Solver> {
    let build = |name| build(name, &args.solver, &args.kernel);
    let solver = if is_in_coordinates { auto::choose(problem).kind() } else { SolverKind::SampledLinear };
    let word = match name {
        SolverKind::SampledConstant if !sampling::is_uniform(args) => "sampled-constant",
        SolverKind::SampledLinear if is_in_coordinates => "sampled-linear",
        name => return build(name),
    };
    let is_everything = !is_in_coordinates && problem.len() == examples;
    Box::new(OfSample { name: word, solver: build(solver), is_everything })
}

fn build(name: SolverKind, options: &SolverOptions, kernel: &KernelOptions) -> Box<dyn Solver> {
    match name {
        SolverKind::OneSlack | SolverKind::GroupSlack | SolverKind::Auto => Box::new(planes(options)),
        SolverKind::NSlack => {
            let update = match (options.update, options.batch) {
                (Some(UpdateName::Own), _) => Update::OwnCuts,
                (_, Some(batch)) => Update::Batch(batch),
                _ => NSlack::default().update,
            };
            Box::new(NSlack { update, ..NSlack::default() })
        }
        SolverKind::DualCoordinate => Box::new(DualCoordinate::default()),
        SolverKind::Bcfw => Box::new(Bcfw::default()),
        SolverKind::Subgradient => Box::new(Subgradient),
        SolverKind::Perceptron => Box::new(Perceptron),
        SolverKind::FrankWolfe => Box::new(FrankWolfe),
        SolverKind::Mle => Box::new(Mle),
        SolverKind::SampledLinear => {
            let scheme = match kernel.sampling {
                Some(SamplingName::Uniform) => Scheme::Uniform,
                Some(SamplingName::Growing | SamplingName::Pivoted) | None => Scheme::Growing,
            };
            Box::new(CuttingPlane::sampled(kernel.sample_size.unwrap_or(auto::SAMPLE_SIZE), scheme))
        }
        SolverKind::Gdmm | SolverKind::SoftBcfw => {
            let default = Gdmm::default();
            let eta = if name == SolverKind::SoftBcfw { 0.0 } else { options.eta.unwrap_or(default.eta) };
            let oracle = if options.fmo_parts == Some(1) { Oracle::Brute } else { default.oracle };
            let (rho, parts, certify) = (options.rho.unwrap_or(default.rho), options.fmo_parts, options.certify);
            let inner = match options.inner {
                Some(InnerName::AwaySteps) => Inner::AwaySteps,
                Some(InnerName::Blocks) => Inner::Blocks,
                Some(InnerName::Turns) | None => Inner::Turns,
            };
            Box::new(Gdmm { rho, eta, parts, oracle, inner, certify })
        }
        SolverKind::SampledConstant => {
            let default = SampledConstant::default();
            Box::new(SampledConstant { size: kernel.sample_size.unwrap_or(default.size), ..default })
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

impl Solver for OfSample {
    fn name(&self) -> &'static str {
        self.name
    }

    fn solve(
        &self,
        problem: &Problem<'_>,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> maxmargin::Result<Solution> {
        let mut solution = self.solver.solve(problem, settings, observer)?;
        solution.report.solver = self.name;
        if !self.is_everything && solution.report.certificate == Certificate::Exact {
            solution.report.certificate = Certificate::Estimate;
        }
        Ok(solution)
    }
}
