//! Nothing is parsed and ignored: an option that has no effect here is refused, before anything is read.

use maxmargin::kernel::Specification;
use maxmargin::solver::SolverKind;

use crate::failure::{Failure, Result};
use crate::options::{
    ArchitectureName, ClassWeight, FeaturesName, FormatName, GapsName, InnerName, Ladder, LossName, PairsName, Penalty,
    Rescaling, SamplingName, Task, TerminalsName, UpdateName,
};
use crate::sampling;
use crate::train::Args;

/// Whether it applies, the option, and why it is refused.
type Rule = (bool, &'static str, &'static str);

fn refuse(rules: &[Rule], hint: &str) -> Result<()> {
    match rules.iter().find(|rule| rule.0) {
        Some((_, flag, why)) => Err(Failure::Usage(format!("{flag}: {why}{hint}"))),
        None => Ok(()),
    }
}

/// Refuses options of classes elsewhere.
fn check_classes(args: &Args) -> Result<()> {
    let problem = &args.problem;
    let is_structured = !matches!(args.task, Task::Binary | Task::Multiclass | Task::Taxonomy);
    let is_tag = args.task == Task::Tag;
    let is_text = matches!(args.task, Task::Tag | Task::Parse);
    let of_classes = "belongs to the tasks binary, multiclass and taxonomy";
    let of_matrix_or_tags = "belongs to the tasks multiclass and taxonomy; take --tag-cost";
    let rules = [
        (is_structured && problem.positive.is_some(), "--positive", "belongs to the task binary"),
        (
            is_structured && args.task != Task::Multilabel && problem.bias.is_some(),
            "--bias",
            "belongs to the tasks binary, multiclass, taxonomy and multilabel",
        ),
        (
            is_tag && !problem.class_weight.is_empty(),
            "--class-weight",
            "belongs to the tasks binary, multiclass and taxonomy; take --tag-cost",
        ),
        (is_structured && !problem.class_weight.is_empty(), "--class-weight", of_classes),
        (is_tag && problem.cost_matrix.is_some(), "--cost-matrix", of_matrix_or_tags),
        (
            is_structured && problem.cost_matrix.is_some(),
            "--cost-matrix",
            "belongs to the tasks multiclass and taxonomy",
        ),
        (
            !is_structured && problem.loss == Some(LossName::Hamming),
            "--loss",
            "hamming belongs to the tasks tag, parse, multilabel, graph and align",
        ),
        (!is_text && args.tag.min_count.is_some(), "--min-count", "belongs to the tasks tag and parse"),
        (
            !is_text && args.task != Task::Align && args.solver.solver == Some(SolverKind::Mle),
            "--solver",
            "mle needs a generative model, which the tasks tag, parse and align have",
        ),
    ];
    refuse(&rules, "")
}

/// Refuses options of label sets elsewhere, and losses that label sets and graphs do not have.
fn check_sets(args: &Args) -> Result<()> {
    let (pairs, loss) = (args.multilabel.pairs, args.problem.loss);
    let (is_sets, is_graph) = (args.task == Task::Multilabel, args.task == Task::Graph);
    let rules = [
        (!is_sets && pairs.is_some(), "--pairs", "belongs to the task multilabel"),
        (
            is_sets && loss.is_some_and(|l| !matches!(l, LossName::Hamming | LossName::F1)),
            "--loss",
            "the task multilabel has the losses hamming and f1",
        ),
        (
            is_sets && loss == Some(LossName::F1) && pairs == Some(PairsName::All),
            "--loss",
            "f1 does not add up over labels, and is counted with --pairs none or tree only",
        ),
        (
            is_graph && loss.is_some_and(|l| l != LossName::Hamming),
            "--loss",
            "the task graph has the loss hamming only",
        ),
    ];
    refuse(&rules, "")
}

/// Refuses options of alignments elsewhere, and what alignments do not have.
fn check_alignments(args: &Args) -> Result<()> {
    let (align, loss, is_align) = (&args.align, args.problem.loss, args.task == Task::Align);
    let of_align = "belongs to the task align";
    let (prior, linear) = (align.prior.as_ref(), align.gaps == Some(GapsName::Linear));
    let costs = align.prior_gaps.as_ref().map(|costs| costs.0.len());
    let has_free_errors = matches!(loss, Some(LossName::Q | LossName::Q4 | LossName::Hamming));
    let rules = [
        (!is_align && align.alignment.is_some(), "--alignment", of_align),
        (!is_align && align.gaps.is_some(), "--gaps", of_align),
        (!is_align && align.alphabet.is_some(), "--alphabet", of_align),
        (!is_align && align.gap_grid.is_some(), "--gap-grid", of_align),
        (!is_align && prior.is_some(), "--prior", of_align),
        (!is_align && align.tied, "--tied", of_align),
        (!is_align && costs.is_some(), "--prior-gaps", of_align),
        (costs.is_some() && prior.is_none(), "--prior-gaps", "belongs to --prior"),
        (
            prior.is_some() && args.solver.solver == Some(SolverKind::Mle),
            "--prior",
            "mle counts letters in the data alone; take another solver",
        ),
        (
            align.tied && args.solver.solver == Some(SolverKind::Mle),
            "--tied",
            "mle counts each pair of letters for itself; take another solver",
        ),
        (
            prior.is_some_and(|prior| prior.file().is_some()) && costs.is_none(),
            "--prior",
            "the file does not say what gaps cost: add --prior-gaps",
        ),
        (
            prior.is_some() && linear && costs != Some(1),
            "--prior",
            "with --gaps linear every column of a gap costs the same: add --prior-gaps with one cost",
        ),
        (
            prior.is_some() && !linear && costs == Some(1),
            "--prior-gaps",
            "affine gaps have two costs, OPEN,EXTEND: of the first column, and of every further one",
        ),
        (!is_align && matches!(loss, Some(LossName::Q | LossName::Q4)), "--loss", "q and q4 belong to the task align"),
        (
            is_align && loss.is_some_and(|l| l != LossName::ZeroOne) && !has_free_errors,
            "--loss",
            "the task align has the losses zero-one, q, q4 and hamming",
        ),
        (
            align.gap_grid.is_some() && args.solver.solver != Some(SolverKind::Mle),
            "--gap-grid",
            "belongs to --solver mle; other solvers learn what gaps cost",
        ),
        (
            is_align && has_free_errors && args.problem.penalty == Some(Penalty::Hard),
            "--penalty",
            "some wrong alignments cost nothing by q, q4 and hamming, and the hard margin needs a cost for every error; take \
             --loss zero-one",
        ),
    ];
    refuse(&rules, "")
}

/// Refuses options of taxonomies elsewhere, and losses that they do not have.
fn check_taxonomies(args: &Args) -> Result<()> {
    let (options, loss, is_taxonomy) = (&args.taxonomy, args.problem.loss, args.task == Task::Taxonomy);
    let of_taxonomies = "belongs to the task taxonomy";
    let rules = [
        (!is_taxonomy && options.taxonomy.is_some(), "--taxonomy", of_taxonomies),
        (!is_taxonomy && options.architecture.is_some(), "--architecture", of_taxonomies),
        (!is_taxonomy && options.ancestor_weight.is_some(), "--ancestor-weight", of_taxonomies),
        (
            options.ancestor_weight.is_some() && options.architecture == Some(ArchitectureName::Flat),
            "--ancestor-weight",
            "has no effect with --architecture flat, in which classes share nothing with their ancestors",
        ),
        (!is_taxonomy && options.class_features.is_some(), "--class-features", of_taxonomies),
        (
            !is_taxonomy && matches!(loss, Some(LossName::Tree | LossName::Path)),
            "--loss",
            "tree and path belong to the task taxonomy",
        ),
        (
            is_taxonomy && matches!(loss, Some(LossName::Absolute | LossName::Squared)),
            "--loss",
            "the task taxonomy has the losses zero-one, tree, path and matrix",
        ),
        (
            is_taxonomy && options.taxonomy.is_none(),
            "--taxonomy",
            "the task taxonomy needs the tree of its classes, a file with a line CHILD PARENT for each edge",
        ),
    ];
    refuse(&rules, "")
}

/// Refuses options of trees elsewhere, and those that have no effect with others.
fn check_trees(args: &Args) -> Result<()> {
    let (parse, loss, is_parse) = (&args.parse, args.problem.loss, args.task == Task::Parse);
    let of_trees = "belongs to the task parse";
    let are_words = parse.terminals == Some(TerminalsName::Words);
    let adds_up = loss == Some(LossName::ZeroOne)
        || loss == Some(LossName::Hamming)
            && args.problem.rescaling != Some(Rescaling::Slack)
            && args.problem.penalty != Some(Penalty::Quadratic);
    let leaves_out = args.tag.min_count.is_some_and(|n| n > 1) || parse.max_span.is_some();
    let rules = [
        (
            !is_parse && args.task != Task::Multilabel && loss == Some(LossName::F1),
            "--loss",
            "f1 belongs to the tasks parse and multilabel",
        ),
        (
            is_parse && loss.is_some_and(|l| !matches!(l, LossName::Hamming | LossName::ZeroOne | LossName::F1)),
            "--loss",
            "the task parse has the losses hamming, zero-one and f1",
        ),
        (!is_parse && parse.terminals.is_some(), "--terminals", of_trees),
        (!is_parse && parse.features.is_some(), "--features", of_trees),
        (!is_parse && parse.parent_annotation, "--parent-annotation", of_trees),
        (!is_parse && parse.binarise.is_some(), "--binarise", of_trees),
        (!is_parse && parse.markov.is_some(), "--markov", of_trees),
        (!is_parse && parse.keep_empty, "--keep-empty", of_trees),
        (!is_parse && parse.keep_functions, "--keep-functions", of_trees),
        (!is_parse && parse.max_words.is_some(), "--max-words", of_trees),
        (!is_parse && parse.fallback, "--fallback", of_trees),
        (!is_parse && parse.max_span.is_some(), "--max-span", of_trees),
        (!is_parse && parse.exact_words.is_some(), "--exact-words", of_trees),
        (!is_parse && parse.rare_below.is_some(), "--rare-below", of_trees),
        (
            is_parse && parse.exact_words.is_some() && adds_up,
            "--exact-words",
            "belongs to --loss f1, and to hamming with --rescaling slack or --penalty quadratic; all else is exact",
        ),
        (parse.rare_below.is_some() && !are_words, "--rare-below", "belongs to --terminals words"),
        (
            parse.fallback && !leaves_out,
            "--fallback",
            "every tree can be derived where neither --min-count nor --max-span leaves something out",
        ),
        (
            parse.features == Some(FeaturesName::Spans) && args.solver.solver == Some(SolverKind::Mle),
            "--features",
            "mle counts rules; it has no weights for spans",
        ),
    ];
    refuse(&rules, "")
}

/// Refuses options of tags elsewhere, and those that have no effect with others.
fn check_tags(args: &Args) -> Result<()> {
    let (problem, is_hard) = (&args.problem, args.problem.penalty == Some(Penalty::Hard));
    let (tag, is_tag) = (&args.tag, args.task == Task::Tag);
    let of_tags = "belongs to the task tag";
    let is_columns = tag.format.is_none_or(|format| format == FormatName::Columns);
    let rules = [
        (
            is_tag && problem.loss.is_some_and(|l| !matches!(l, LossName::Hamming | LossName::ZeroOne)),
            "--loss",
            "the task tag has the losses hamming and zero-one",
        ),
        (!is_tag && tag.format.is_some(), "--format", of_tags),
        (!is_tag && tag.template.is_some(), "--template", of_tags),
        (!is_tag && tag.order.is_some(), "--order", of_tags),
        (!is_tag && !tag.forbid.is_empty(), "--forbid", of_tags),
        (!is_tag && tag.scheme.is_some(), "--scheme", of_tags),
        (!is_tag && !tag.tag_cost.is_empty(), "--tag-cost", of_tags),
        (
            tag.template.is_some() && !is_columns,
            "--template",
            "makes features of columns; this format lists the features itself",
        ),
        (
            !tag.tag_cost.is_empty() && problem.loss == Some(LossName::ZeroOne),
            "--tag-cost",
            "belongs to --loss hamming; zero-one counts sentences",
        ),
        (
            !tag.tag_cost.is_empty()
                && (problem.rescaling == Some(Rescaling::Slack) || problem.penalty == Some(Penalty::Quadratic)),
            "--tag-cost",
            "slack rescaling and quadratic slack search by the number of errors, which must all cost the same",
        ),
        (
            is_hard && problem.rescaling != Some(Rescaling::Slack) && tag.tag_cost.iter().any(|(_, cost)| *cost == 0.0),
            "--tag-cost",
            "the hard margin with margin rescaling needs a positive cost for every error",
        ),
    ];
    refuse(&rules, "")
}

/// Refuses options of kernels where there is none, and where they have no effect.
fn check_kernel(args: &Args) -> Result<()> {
    let (kernel, solver) = (&args.kernel, args.solver.solver);
    let is_sampled = args.solver.is_sampled();
    let is_constant = solver == Some(SolverKind::SampledConstant);
    let is_linear = kernel.kernel.is_none_or(|kernel| kernel == Specification::Linear);
    let has_rank = kernel.low_rank.is_some();
    let is_uniform = kernel.sampling == Some(SamplingName::Uniform);
    let is_parse = args.task == Task::Parse;
    let has_no_kernel = matches!(args.task, Task::Multilabel | Task::Graph | Task::Align);
    let is_auto_path = args.problem.c_path == Some(Ladder::Auto);
    let uses_gram = !has_rank && (!is_linear || is_sampled);
    let estimates =
        "sampled-constant with --sampling uniform looks at no example that it has not drawn; evaluate its model";
    let is_uniform_constant = is_constant && sampling::is_uniform(args);
    let rules = [
        (is_parse && kernel.kernel.is_some(), "--kernel", "rules have no vectors to compare; the task parse has none"),
        (is_parse && has_rank, "--low-rank", "belongs to kernels, which the task parse does not have"),
        (is_parse && is_sampled, "--solver", "sampled cuts are for kernels, which the task parse does not have"),
        (
            has_no_kernel && kernel.kernel.is_some(),
            "--kernel",
            "belongs to the tasks binary, multiclass, taxonomy and tag",
        ),
        (has_no_kernel && has_rank, "--low-rank", "belongs to kernels, which this task does not have"),
        (has_no_kernel && is_sampled, "--solver", "sampled cuts are for kernels, which this task does not have"),
        (has_rank && kernel.kernel.is_none(), "--low-rank", "comes near a kernel: say which with --kernel"),
        (kernel.basis.is_some() && !has_rank, "--basis", "belongs to --low-rank"),
        (kernel.kernel_cache.is_some() && !uses_gram, "--kernel-cache", "belongs to --kernel without --low-rank"),
        (has_rank && is_sampled, "--solver", "sampled cuts make --low-rank unnecessary; take one or the other"),
        (
            kernel.sample_size.is_some() && !is_sampled,
            "--sample-size",
            "belongs to sampled-linear and sampled-constant",
        ),
        (
            kernel.sampling.is_some() && !is_sampled,
            "--sampling",
            "belongs to the solvers sampled-linear and sampled-constant",
        ),
        (
            is_constant && kernel.sampling.is_some() && !sampling::draws_once(args) && !is_uniform,
            "--sampling",
            "for tags and taxonomies sampled-constant has uniform alone",
        ),
        (
            is_sampled && args.problem.penalty.is_some_and(|penalty| penalty != Penalty::Linear),
            "--solver",
            "sampled cuts are for linear slack; take one-slack or n-slack",
        ),
        (
            kernel.bound.is_some() && !(is_sampled && is_uniform),
            "--bound",
            "holds for sampled-linear and sampled-constant with --sampling uniform",
        ),
        (
            kernel.bound.is_some() && args.task == Task::Tag,
            "--bound",
            "belongs to the tasks binary, multiclass and taxonomy",
        ),
        (is_uniform_constant && args.validation.heldout.is_some(), "--heldout", estimates),
        (is_uniform_constant && args.validation.folds.is_some(), "--folds", estimates),
        (
            uses_gram && args.solver.warm_start.is_some(),
            "--warm-start",
            "the weights of a kernel model belong to its own training examples; train anew",
        ),
        (
            has_rank && args.solver.warm_start.is_some(),
            "--warm-start",
            "the coordinates of --low-rank are others for other data; train anew",
        ),
        (
            uses_gram && is_auto_path,
            "--c-path",
            "auto reads the scale of C off the features, which a kernel does not write down; name the values",
        ),
    ];
    refuse(&rules, "")
}

/// Refuses options that do not go together.
pub(crate) fn check(args: &Args) -> Result<()> {
    check_kernel(args)?;
    check_classes(args)?;
    check_tags(args)?;
    check_trees(args)?;
    check_sets(args)?;
    check_alignments(args)?;
    check_taxonomies(args)?;
    let (problem, validation) = (&args.problem, &args.validation);
    let (is_binary, is_hard) = (args.task == Task::Binary, problem.penalty == Some(Penalty::Hard));
    let is_matrix = problem.loss == Some(LossName::Matrix);
    let is_balanced = problem.class_weight.contains(&ClassWeight::Balanced);
    let no_c = "the hard margin has no slack to weigh";
    let rules = [
        (problem.c.is_some() && is_hard, "--c", no_c),
        (problem.c_per_example.is_some() && is_hard, "--c-per-example", no_c),
        (problem.c_path.is_some() && is_hard, "--c-path", no_c),
        (problem.c_path_per_example.is_some() && is_hard, "--c-path-per-example", no_c),
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
            validation.keep_best && is_hard,
            "--keep-best",
            "on the way to the hard margin's answer no weights separate the data; only the answer is kept",
        ),
        (
            validation.folds.is_some() && is_hard,
            "--folds",
            "a part of the data may be separable where all of them are not; take --heldout with the hard margin",
        ),
        (
            validation.folds.is_some() && args.solver.warm_start.is_some(),
            "--warm-start",
            "the model may have learned from the examples that --folds holds out",
        ),
        (
            validation.folds.is_some() && args.checkpoint.checkpoint.is_some(),
            "--checkpoint",
            "cross-validation cannot be saved; find C with --folds first, then train with a checkpoint",
        ),
    ];
    refuse(&rules, "")?;
    // What `auto` stands for is known when the data are.
    match args.solver.solver {
        Some(name) if name != SolverKind::Auto => check_solver(args, name, false),
        _ => Ok(()),
    }
}

/// Refuses options that the solver, which is not `auto`, does not have.
pub(crate) fn check_solver(args: &Args, name: SolverKind, is_auto: bool) -> Result<()> {
    let (problem, solver) = (&args.problem, &args.solver);
    let is_hard = problem.penalty == Some(Penalty::Hard);
    let (is_planes, is_n_slack) =
        (matches!(name, SolverKind::OneSlack | SolverKind::GroupSlack), name == SolverKind::NSlack);
    let is_perceptron = matches!(name, SolverKind::Perceptron | SolverKind::Mle);
    let is_mle = name == SolverKind::Mle;
    let no_c = "perceptron and mle have no C";
    let no_bound = "perceptron and mle know no bound, hence no gap";
    let planes = "belongs to the solvers one-slack and group-slack";
    let rules = [
        (
            problem.penalty.is_some_and(|p| p != Penalty::Linear) && name == SolverKind::FrankWolfe,
            "--penalty",
            "frank-wolfe needs a bounded dual, which only linear slack has; take bcfw, one-slack or n-slack",
        ),
        (
            is_hard && name == SolverKind::Bcfw,
            "--penalty",
            "bcfw has no hard margin, whose dual has no bounds; take n-slack",
        ),
        (
            is_hard && name == SolverKind::DualCoordinate,
            "--penalty",
            "dual-coordinate has no hard margin, whose dual has no bounds; take n-slack",
        ),
        (solver.groups.is_some() && name != SolverKind::GroupSlack, "--groups", "belongs to --solver group-slack"),
        (
            solver.groups.is_none() && name == SolverKind::GroupSlack,
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
        (
            is_hard && matches!(name, SolverKind::Subgradient | SolverKind::Perceptron | SolverKind::Mle),
            "--penalty",
            "subgradient, perceptron and mle have no hard margin; take n-slack",
        ),
        (is_mle && args.stopping.max_passes.is_some(), "--max-passes", "mle counts once"),
        (is_mle && args.solver.warm_start.is_some(), "--warm-start", "mle counts anew, wherever it starts"),
        (problem.c.is_some() && is_perceptron, "--c", no_c),
        (problem.c_per_example.is_some() && is_perceptron, "--c-per-example", no_c),
        (problem.c_path.is_some() && is_perceptron, "--c-path", no_c),
        (problem.c_path_per_example.is_some() && is_perceptron, "--c-path-per-example", no_c),
        (args.stopping.epsilon.is_some() && is_perceptron, "--epsilon", no_bound),
        (args.stopping.relative_gap.is_some() && is_perceptron, "--relative-gap", no_bound),
    ];
    let word = name.name();
    let reason = if is_auto { format!(" (--solver auto takes {word} here)") } else { String::new() };
    refuse(&rules, &reason)?;
    refuse(&factorwise_rules(args, name), &reason)
}

/// What only solvers that train factor by factor have, and what they have not.
fn factorwise_rules(args: &Args, name: SolverKind) -> Vec<Rule> {
    let (problem, solver) = (&args.problem, &args.solver);
    let is_factorwise = matches!(name, SolverKind::Gdmm | SolverKind::SoftBcfw);
    let factorwise = "belongs to the solvers gdmm and soft-bcfw";
    vec![
        (
            is_factorwise && args.tag.order == Some(2),
            "--order",
            "gdmm and soft-bcfw are for tags of order 1; take bcfw",
        ),
        (
            is_factorwise && (!args.tag.forbid.is_empty() || args.tag.scheme.is_some()),
            if args.tag.scheme.is_some() { "--scheme" } else { "--forbid" },
            "gdmm and soft-bcfw know no forbidden tags; take bcfw",
        ),
        (
            is_factorwise && args.task == Task::Tag && problem.loss == Some(LossName::ZeroOne),
            "--loss",
            "gdmm and soft-bcfw need a loss that adds up over tokens: hamming; take bcfw",
        ),
        (solver.rho.is_some() && !is_factorwise, "--rho", factorwise),
        (solver.eta.is_some() && name != SolverKind::Gdmm, "--eta", "belongs to --solver gdmm"),
        (solver.fmo_parts.is_some() && !is_factorwise, "--fmo-parts", factorwise),
        (solver.inner.is_some() && !is_factorwise, "--inner", factorwise),
        (
            solver.inner == Some(InnerName::Turns) && name == SolverKind::SoftBcfw,
            "--inner",
            "soft-bcfw moves masses by blocks or away-steps: variables take turns with --solver gdmm",
        ),
        (
            solver.inner == Some(InnerName::Turns) && args.task == Task::Multilabel,
            "--inner",
            "labels of sets come in and go by themselves: they have blocks or away-steps",
        ),
        (
            solver.inner == Some(InnerName::AwaySteps) && solver.fmo_parts.is_some_and(|parts| parts > 1),
            "--fmo-parts",
            "away steps look at all labels",
        ),
        (
            solver.certify
                && name == SolverKind::SoftBcfw
                && args.stopping.max_passes.is_none()
                && args.stopping.max_seconds.is_none(),
            "--certify",
            "factors never quite agree with soft-bcfw: say when to end with --max-passes or --max-seconds, or take gdmm",
        ),
        (
            solver.certify && !is_factorwise,
            "--certify",
            "belongs to the solvers gdmm and soft-bcfw; others prove their gap without being asked",
        ),
        (solver.warm_start.is_some() && is_factorwise, "--warm-start", "gdmm and soft-bcfw begin without weights"),
    ]
}
