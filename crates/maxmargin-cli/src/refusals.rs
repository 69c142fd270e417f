//! Nothing is parsed and ignored: an option that has no effect here is refused, before anything is read.

use crate::failure::{Failure, Result};
use crate::options::{ClassWeight, LossName, Penalty, SolverName, Task, UpdateName};
use crate::train::Args;

/// Refuses options that do not go together.
pub(crate) fn check(args: &Args) -> Result<()> {
    let (problem, solver) = (&args.problem, &args.solver);
    let name = solver.name(problem.penalty);
    let (is_planes, is_n_slack) =
        (matches!(name, SolverName::OneSlack | SolverName::GroupSlack), name == SolverName::NSlack);
    let (is_binary, is_hard) = (args.task == Task::Binary, problem.penalty == Some(Penalty::Hard));
    let is_matrix = problem.loss == Some(LossName::Matrix);
    let is_balanced = problem.class_weight.contains(&ClassWeight::Balanced);
    let no_c = "the hard margin has no slack to weigh";
    let planes = "belongs to the solvers one-slack and group-slack";
    let rules = [
        (problem.c.is_some() && is_hard, "--c", no_c),
        (problem.c_per_example.is_some() && is_hard, "--c-per-example", no_c),
        (!problem.class_weight.is_empty() && is_hard, "--class-weight", no_c),
        (
            is_balanced && problem.class_weight.len() > 1,
            "--class-weight",
            "`balanced` sets the weights of all classes; it cannot be combined with other weights",
        ),
        (
            is_binary && problem.loss.is_some_and(|l| l != LossName::ZeroOne),
            "--loss",
            "the task binary has the loss zero-one only; others need the task multiclass",
        ),
        (is_matrix && problem.cost_matrix.is_none(), "--loss", "matrix needs --cost-matrix FILE"),
        (problem.cost_matrix.is_some() && !is_matrix, "--cost-matrix", "is used by --loss matrix only"),
        (problem.positive.is_some() && !is_binary, "--positive", "belongs to the task binary"),
        (
            problem.penalty.is_some_and(|p| p != Penalty::Linear) && name == SolverName::FrankWolfe,
            "--penalty",
            "frank-wolfe needs a bounded dual, which only linear slack has; take one-slack or n-slack",
        ),
        (solver.groups.is_some() && name != SolverName::GroupSlack, "--groups", "belongs to --solver group-slack"),
        (
            solver.groups.is_none() && name == SolverName::GroupSlack,
            "--solver",
            "group-slack needs the number of groups: --groups P",
        ),
        (solver.cache.is_some() && !is_planes, "--cache", planes),
        (solver.line_search.is_some() && !is_planes, "--line-search", planes),
        (solver.line_search.is_some() && is_hard, "--line-search", "the hard margin has no objective to search along"),
        (solver.max_cuts.is_some() && !is_planes, "--max-cuts", planes),
        (solver.update.is_some() && !is_n_slack, "--update", "belongs to --solver n-slack"),
        (solver.batch.is_some() && !is_n_slack, "--batch", "belongs to --solver n-slack"),
        (
            solver.batch.is_some() && solver.update == Some(UpdateName::Own),
            "--batch",
            "--update own does not wait for a batch",
        ),
    ];
    match rules.iter().find(|rule| rule.0) {
        Some((_, flag, why)) => Err(Failure::Usage(format!("{flag}: {why}"))),
        None => Ok(()),
    }
}
