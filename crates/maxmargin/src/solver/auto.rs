//! Which solver, where nobody names one.

use super::cutting_plane::CuttingPlane;
use super::dual_coordinate::DualCoordinate;
use super::n_slack::NSlack;
use super::{Observer, Settings, Solution, Solver};
use crate::error::Result;
use crate::problem::{Penalty, Problem};
use crate::task::Task;

/// The solver that [`choose`] picks. Its report has the name of that solver.
#[derive(Debug, Clone, Copy, Default)]
pub struct Auto;

/// What [`choose`] picks from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// [`NSlack`], for the hard margin.
    HardNSlack,
    /// [`DualCoordinate`]
    DualCoordinate,
    /// [`CuttingPlane`] with one slack.
    OneSlack,
    /// [`NSlack`], for quadratic slack.
    NSlack,
}

/// Dual coordinates keep a variable for each output of each example, up to so many: 1 GB.
const MOST_VARIABLES: usize = 1 << 27;

/// The solver that should be fastest.
///
/// The hard margin goes to n-slack; outputs that are a list over one input vector, at most 2^27 over all examples, to
/// dual-coordinate; others to one-slack with linear slack, to n-slack with quadratic.
pub fn choose<T: Task>(problem: &Problem<'_, T>) -> Choice {
    let penalty = problem.formulation().penalty;
    if penalty == Penalty::Hard {
        return Choice::HardNSlack;
    }
    let outputs = problem.task().listed().filter(|listed| listed.stacked().is_some()).map(|listed| listed.count());
    match outputs {
        Some(outputs) if problem.len().saturating_mul(outputs) <= MOST_VARIABLES => Choice::DualCoordinate,
        _ if penalty == Penalty::Linear => Choice::OneSlack,
        _ => Choice::NSlack,
    }
}

impl Choice {
    /// The solver's name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::HardNSlack | Self::NSlack => "n-slack",
            Self::DualCoordinate => "dual-coordinate",
            Self::OneSlack => "one-slack",
        }
    }

    /// Why this one.
    pub fn why(self) -> &'static str {
        match self {
            Self::HardNSlack => "without slack, cuts of single examples lead to the answer soonest",
            Self::DualCoordinate => "its outputs can be listed, so each example's variables are solved exactly",
            Self::OneSlack => "its outputs are too many to list, and few passes suffice",
            Self::NSlack => "its outputs are too many to list, and slack is quadratic",
        }
    }
}

impl Solver for Auto {
    fn name(&self) -> &'static str {
        "auto"
    }

    fn solve<T: Task>(
        &self,
        problem: &Problem<'_, T>,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Solution> {
        match choose(problem) {
            Choice::HardNSlack | Choice::NSlack => NSlack::default().solve(problem, settings, observer),
            Choice::DualCoordinate => DualCoordinate::default().solve(problem, settings, observer),
            Choice::OneSlack => CuttingPlane::default().solve(problem, settings, observer),
        }
    }
}
