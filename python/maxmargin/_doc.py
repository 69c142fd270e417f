"""What each parameter means, told once: :func:`documented` puts it into the docstrings of the estimators that have it."""

from __future__ import annotations

import inspect
import textwrap
from typing import TypeVar

T = TypeVar("T", bound=type)

TEXTS: dict[str, tuple[str, str]] = {
    "C": ("float", "Weight of the slack of each example; larger fits the training data more closely."),
    "C_path": ("list of float or 'auto'", "Train at each of these C in ascending order, each from where the last ended, and keep the last "
               "or, with keep_best, the best. Replaces C."),
    "penalty": ("{'linear', 'quadratic', 'hard'}", "How slack is penalised. Default: linear."),
    "rescaling": ("{'margin', 'slack'}", "Where the loss enters the margin constraints. Default: margin."),
    "loss": ("str", "What an error costs: see above for the losses of this task."),
    "loss_scale": ("float", "The loss is multiplied by it."),
    "cost_matrix": ("array, path or text", "A row for each true class, a column for each predicted one, in the order of classes_. "
                    "Means loss='matrix'."),
    "class_weight": ("dict or 'balanced'", "Weight of the examples of each class; 'balanced' gives all classes the same total."),
    "bias": ("float", "Add a constant feature of this value, which gives every class an offset. Default: none."),
    "kernel": ("str", "linear, rbf, poly or sigmoid; also with numbers, as in 'rbf:gamma=0.5'."),
    "gamma": ("float, 'scale' or 'auto'", "Of the kernel, as in scikit-learn. Default: scale."),
    "degree": ("int", "Of a poly kernel. Default: 3."),
    "coef0": ("float", "Of a poly or sigmoid kernel. Default: 0."),
    "low_rank": ("int", "Train on so many coordinates that come near the kernel: fast, and not exact."),
    "basis": ("{'random', 'pivoted'}", "How the basis vectors of low_rank are chosen. Default: pivoted."),
    "kernel_cache": ("int", "Memory for kernel values that may be needed again, in MB. Default: 1000."),
    "sample_size": ("int", "Examples that cuts of the sampled solvers are made of."),
    "sampling": ("{'pivoted', 'growing', 'uniform'}", "How the sampled solvers draw."),
    "bound": ("float", "Probability that the bound of sampled cuts does not hold (sampling='uniform')."),
    "taxonomy": ("dict, list of pairs, path or text", "Child and parent of each edge; a dict maps a child to its parent or a list of "
                 "parents. One root. Default: all classes right below one root."),
    "architecture": ("{'taxonomy', 'flat'}", "What the classes share. Default: the weights of common ancestors."),
    "ancestor_weight": ("float", "What the weights of ancestors count for in the score of a class, beside 1 for its own. Default: 1."),
    "class_features": ("dict, path or text", "For each class a list of attributes or a dict of attributes and values: each attribute has "
                       "weights then, instead of each node."),
    "pairs": ("{'none', 'tree', 'top:N', 'all'}", "Which pairs of labels have a weight. Default: none."),
    "threshold": ("float", "What a label has to gain, beside the others of its set, to be predicted."),
    "format": ("{'columns', 'crfsuite', 'svmhmm'}", "How sentences are given. Default: tokens that are dicts, strings or lists of "
               "attributes. The three formats take text; columns also lists of rows."),
    "template": ("path or text", "Features of the columns, in CRF++'s template language. Default: a built-in set."),
    "min_count": ("int", "Leave out features (rules of the grammar) that are seen fewer times. Default: 1."),
    "order": ("{1, 2}", "On how many tags before it a tag depends. Default: 1."),
    "forbid": ("list of pairs", "(a, b): tag b never comes right after tag a."),
    "scheme": ("{'BIO', 'BIOES'}", "Only sequences of tags that are valid in this scheme."),
    "tag_cost": ("dict", "What it costs to miss a tag. Default: 1 each."),
    "terminals": ("{'tags', 'words'}", "What sentences are made of. Default: tags."),
    "features": ("{'rules', 'spans'}", "What of a tree is weighed. Default: rules."),
    "parent_annotation": ("bool", "Tell phrases with the same label apart by the label above them."),
    "binarise": ("{'right', 'head'}", "How a rule with many children becomes rules with two. Default: right."),
    "markov": ("int", "The next child of such a rule depends on so many before it. Default: on all."),
    "keep_empty": ("bool", "Keep empty elements (tagged -NONE-) in the trees."),
    "keep_functions": ("bool", "Keep functions and numbers behind labels, as in NP-SBJ-1."),
    "max_words": ("int", "Leave longer sentences out of training. Default: none."),
    "fallback": ("bool", "Where min_count or max_span leave no way to a tree, learn the nearest one that there is."),
    "max_span": ("int", "Only phrases of at most so many words, but for those at the ends of a sentence. Default: all."),
    "exact_words": ("int", "Up to so many words the worst tree by a loss that does not add up is found exactly. Default: 40."),
    "rare_below": ("int", "With terminals='words': rarer words count by their looks. Default: 2."),
    "alignment": ("{'local', 'global'}", "How much of two sequences is aligned. Default: local."),
    "gaps": ("{'affine', 'linear'}", "What gaps cost. Default: affine."),
    "alphabet": ("str", "The letters that have weights: 'protein', 'dna' or the letters. Default: those of the training data."),
    "gap_grid": ("list of float", "Costs of gaps that solver='mle' tries."),
    "prior": ("str or path", "Known scores to learn on from: 'blosum62', or a file in the form of NCBI's matrices. Default: none."),
    "tied": ("bool", "Learn besides the score of each pair of letters one that all equal letters share, and one for all different ones."),
    "prior_gaps": ("list of float", "What gaps cost by the prior: the first column and every further one. Default: 11 and 1 for 'blosum62'."),
    "solver": ("str", "auto, one-slack, n-slack, group-slack, dual-coordinate, bcfw, frank-wolfe, subgradient, perceptron, "
               "sampled-linear, sampled-constant, gdmm, soft-bcfw or mle. Default: auto."),
    "groups": ("int", "Number of groups of solver='group-slack'."),
    "cache": ("int or 'off'", "Outputs kept per example to build cuts from (one-slack, group-slack)."),
    "line_search": ("bool", "Search between the best point and the QP's (one-slack, group-slack). Default: True."),
    "max_cuts": ("int", "Cuts kept at most (one-slack, group-slack)."),
    "update": ("{'batch', 'own'}", "When n-slack solves its dual again. Default: batch."),
    "batch": ("int", "Number of new cuts that update='batch' waits for. Default: 100."),
    "rho": ("float", "What it costs where factors disagree (gdmm, soft-bcfw). Default: 1."),
    "eta": ("float", "Step of the multipliers (gdmm). Default: 1."),
    "fmo_parts": ("int", "Parts of a variable's labels, of which a visit searches one (gdmm, soft-bcfw)."),
    "inner": ("{'turns', 'blocks', 'away-steps'}", "How gdmm and soft-bcfw move masses. Default: turns; of soft-bcfw blocks."),
    "certify": ("bool", "End only when the gap that is asked for is proven (gdmm, soft-bcfw)."),
    "epsilon": ("float", "Stop when the duality gap is at most this per example, times C. Default: 0.01 times the largest loss."),
    "relative_gap": ("float", "Stop when the gap is at most this share of the objective, instead."),
    "max_seconds": ("float", "Stop after that many seconds of training and keep the best model so far."),
    "max_passes": ("float", "Stop after that many passes over the data and keep the best model so far."),
    "keep_best": ("bool", "Keep the weights that do best on heldout."),
    "folds": ("int", "Cross-validate each C on so many parts of the data, then train on all with the best C."),
    "checkpoint": ("path", "Save the state of training here every few seconds; removed when training is done."),
    "checkpoint_every": ("float", "Seconds between checkpoints. Default: 5."),
    "resume": ("bool", "Go on from the checkpoint, if there is one."),
    "n_jobs": ("int", "Threads; the result does not depend on them. Default, and -1: one a core."),
    "random_state": ("int or numpy generator", "Seed of whatever a solver draws at random. Default: 0."),
    "warm_start": ("bool", "Start from the model of the last fit, which must have the same classes."),
    "verbose": ("int", "1 shows progress, with tqdm where it is installed."),
}


def documented(cls: T) -> T:
    """Replaces ``{parameters}`` in the docstring by those of ``__init__``."""
    lines = []
    for name, parameter in inspect.signature(cls.__init__).parameters.items():  # type: ignore[misc]
        if name in TEXTS:
            kind, meaning = TEXTS[name]
            default = "optional" if parameter.default is None else f"default={parameter.default!r}"
            lines.append(f"{name} : {kind}, {default}")
            lines += textwrap.wrap(meaning, 110, initial_indent="    ", subsequent_indent="    ")
    if cls.__doc__ is not None:
        # Without the indentation of the source, as Python itself leaves it out from 3.13 on.
        cls.__doc__ = inspect.cleandoc(cls.__doc__).replace("{parameters}", "\n".join(lines))
    return cls
