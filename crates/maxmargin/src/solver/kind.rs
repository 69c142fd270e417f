//! The one list of solvers: the program, the Python package and the tests take names and defaults from here.

use std::fmt;
use std::str::FromStr;

use super::Solver;
use super::auto::{Auto, SAMPLE_SIZE};
use super::bcfw::Bcfw;
use super::cutting_plane::{CuttingPlane, Scheme};
use super::dual_coordinate::DualCoordinate;
use super::frank_wolfe::FrankWolfe;
use super::gdmm::Gdmm;
use super::mle::Mle;
use super::n_slack::NSlack;
use super::perceptron::Perceptron;
use super::sampled_constant::SampledConstant;
use super::subgradient::Subgradient;
use crate::error::Error;

/// A solver, without its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SolverKind {
    /// [`Auto`]: the solver that should be fastest.
    Auto,
    /// [`CuttingPlane`] with one slack.
    OneSlack,
    /// [`NSlack`]
    NSlack,
    /// [`CuttingPlane`] with a slack for each of some groups of examples.
    GroupSlack,
    /// [`DualCoordinate`]
    DualCoordinate,
    /// [`Bcfw`]
    Bcfw,
    /// [`Subgradient`]
    Subgradient,
    /// [`Perceptron`]
    Perceptron,
    /// [`FrankWolfe`]
    FrankWolfe,
    /// [`CuttingPlane`] with sampled cuts.
    SampledLinear,
    /// [`SampledConstant`]
    SampledConstant,
    /// [`Gdmm`]
    Gdmm,
    /// [`Gdmm`] without multipliers.
    SoftBcfw,
    /// [`Mle`]
    Mle,
}

impl SolverKind {
    /// All solvers.
    pub const ALL: [Self; 14] = [
        Self::Auto,
        Self::OneSlack,
        Self::NSlack,
        Self::GroupSlack,
        Self::DualCoordinate,
        Self::Bcfw,
        Self::Subgradient,
        Self::Perceptron,
        Self::FrankWolfe,
        Self::SampledLinear,
        Self::SampledConstant,
        Self::Gdmm,
        Self::SoftBcfw,
        Self::Mle,
    ];

    /// The name, as on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::OneSlack => "one-slack",
            Self::NSlack => "n-slack",
            Self::GroupSlack => "group-slack",
            Self::DualCoordinate => "dual-coordinate",
            Self::Bcfw => "bcfw",
            Self::Subgradient => "subgradient",
            Self::Perceptron => "perceptron",
            Self::FrankWolfe => "frank-wolfe",
            Self::SampledLinear => "sampled-linear",
            Self::SampledConstant => "sampled-constant",
            Self::Gdmm => "gdmm",
            Self::SoftBcfw => "soft-bcfw",
            Self::Mle => "mle",
        }
    }

    /// What the solver does, in one sentence for help texts.
    pub fn about(self) -> &'static str {
        match self {
            Self::Auto => "The one that should be fastest on these data; the summary says which, and why",
            Self::OneSlack => "Cutting planes with one slack: few rounds, whatever the number of examples",
            Self::NSlack => "Cutting planes with a slack for each example",
            Self::GroupSlack => "Cutting planes with a slack for each of --groups groups of examples",
            Self::DualCoordinate => "Exact steps on the variables of one example at a time",
            Self::Bcfw => "Block-coordinate Frank-Wolfe: one example at a time, over the outputs that it has met",
            Self::Subgradient => "Averaged stochastic subgradient steps: a baseline",
            Self::Perceptron => "The averaged perceptron, which knows no loss, no C and no bound: a baseline",
            Self::FrankWolfe => "One slack and a line search instead of a QP; linear slack only",
            Self::SampledLinear => {
                "Cutting planes with a kernel, each cut from a sample of --sample-size examples of those that need slack"
            }
            Self::SampledConstant => {
                "The same without a look at all examples: its time does not depend on their number"
            }
            Self::Gdmm => {
                "Factor by factor, tied by multipliers, with oracles that need not look at every label: for labels in the \
                 hundreds and more (tag, graph, multilabel)"
            }
            Self::SoftBcfw => "The same without multipliers, so that factors agree only about: a baseline",
            Self::Mle => "Maximum likelihood, the generative model of the same shape: a baseline (tag, parse, align)",
        }
    }

    /// The solver with its default settings.
    pub fn solver(self) -> Box<dyn Solver> {
        match self {
            Self::Auto => Box::new(Auto),
            Self::OneSlack | Self::GroupSlack => Box::new(CuttingPlane::default()),
            Self::NSlack => Box::new(NSlack::default()),
            Self::DualCoordinate => Box::new(DualCoordinate::default()),
            Self::Bcfw => Box::new(Bcfw::default()),
            Self::Subgradient => Box::new(Subgradient),
            Self::Perceptron => Box::new(Perceptron),
            Self::FrankWolfe => Box::new(FrankWolfe),
            Self::SampledLinear => Box::new(CuttingPlane::sampled(SAMPLE_SIZE, Scheme::Growing)),
            Self::SampledConstant => Box::new(SampledConstant::default()),
            Self::Gdmm => Box::new(Gdmm::default()),
            Self::SoftBcfw => Box::new(Gdmm { eta: 0.0, ..Gdmm::default() }),
            Self::Mle => Box::new(Mle),
        }
    }
}

impl fmt::Display for SolverKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for SolverKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::setting("solver", format!("is one of {names}, not '{name}'"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_solver_and_its_name() {
        for kind in SolverKind::ALL {
            assert_eq!(kind.name().parse::<SolverKind>().unwrap(), kind);
            // One group is one slack.
            let expected = if kind == SolverKind::GroupSlack { "one-slack" } else { kind.name() };
            assert_eq!(kind.solver().name(), expected);
        }
        let error = "newton".parse::<SolverKind>().unwrap_err().to_string();
        assert!(error.contains("dual-coordinate") && error.contains("'newton'"), "{error}");
    }
}
