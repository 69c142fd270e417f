"""Random settings of a run: what a user may type, by the rules of README and `train --help`."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from .problem import Draw
from .tasks.vectors import option

TASKS = ["binary", "multiclass", "taxonomy", "tag", "graph", "multilabel", "parse", "align"]
KERNEL_TASKS = ["binary", "multiclass", "taxonomy", "tag"]
KINDS = [
    "plain",
    "hard",
    "path",
    "warm",
    "resume",
    "threads",
    "heldout",
    "kernel",
    "low-rank",
    "sampled",
]
REPEATS = {"plain": 3, "kernel": 3}
FORMULATIONS = [(r, p) for r in ("margin", "slack") for p in ("linear", "quadratic", "hard")]
# Solvers whose progress is slow by design: they always get a limit.
SLOW = ("subgradient", "frank-wolfe", "perceptron", "gdmm", "soft-bcfw")
BOUNDLESS = ("perceptron", "mle")
FACTORWISE = ("gdmm", "soft-bcfw")


def strata() -> list[tuple[str, str]]:
    """The pairs of task and kind, in the order in which cases go through them."""
    pairs = []
    for kind in KINDS:
        of_kernels = kind in ("kernel", "low-rank", "sampled")
        for _ in range(REPEATS.get(kind, 1)):
            pairs += [(task, kind) for task in (KERNEL_TASKS if of_kernels else TASKS)]
    # A step that has no factor in common with the length mixes kinds.
    step = next(k for k in range(len(pairs) // 2 + 1, len(pairs)) if np.gcd(k, len(pairs)) == 1)
    return [pairs[j * step % len(pairs)] for j in range(len(pairs))]


@dataclass
class Plan:
    """One case: a problem, and the commands to run on it.

    `runs`: the options of each command, behind those of the draw. The last summary is checked.
    `equal_models`: pairs of runs whose models must be the same bytes.
    """

    task: str
    kind: str
    draw: Draw
    rescaling: str
    penalty: str
    loss_scale: float
    solver: str
    has_kernel: bool
    runs: list[list[str]] = field(default_factory=list)
    equal_models: list[tuple[int, int]] = field(default_factory=list)
    relative_gap: float | None = None
    epsilon: float | None = None
    # False where the problem is too large for the referee's optimum.
    has_optimum: bool = True


def log_uniform(random: np.random.Generator, least: float, most: float) -> float:
    """10 to a power between `least` and `most`, to three digits."""
    return float(f"{10 ** random.uniform(least, most):.3g}")


def draw_size(random: np.random.Generator, kind: str) -> tuple[float, float]:
    """The size of feature values and C per example.

    Four cases in ten have both where they matter most. Two in ten have a huge C, where rounding in
    the dual shows. The others have anything from 1e-6 to 1e6, and from 1e-6 to 1e8.
    """
    which = random.random()
    if kind in ("kernel", "low-rank", "sampled") and which > 0.8:
        which = 0.3
    if which < 0.4:
        scale = log_uniform(random, -1, 1)
        return scale, float(np.clip(log_uniform(random, -3, 3) / scale**2, 1e-6, 1e8))
    if which < 0.6:
        return log_uniform(random, 0, 1.5), log_uniform(random, 4, 8)
    return log_uniform(random, -6, 6), log_uniform(random, -6, 8)


def of_c(random: np.random.Generator, c: float) -> list[str]:
    """C as an option, in one of its two forms."""
    return ["--c-per-example", repr(c)] if random.random() < 0.7 else ["-c", repr(c)]


def draw_kernel(random: np.random.Generator, scale: float, kind: str, is_number: bool) -> str:
    """A kernel whose gamma fits the data, mostly. `is_number`: gamma is a number."""
    gamma = random.choice(["scale", "auto", "number", "number"])
    if is_number or gamma == "number" or (gamma == "auto" and not 0.01 < scale < 100):
        gamma = repr(float(f"{10 ** random.uniform(-2, 1.5) / scale**2:.3g}"))
    coef0 = float(random.choice([0.0, 1.0, 0.5]))
    shapes = ["rbf", "rbf", "rbf", "poly", "poly", "sigmoid" if kind == "kernel" else "linear"]
    shape = random.choice(shapes)
    if shape == "rbf":
        return f"rbf:gamma={gamma}"
    if shape == "poly":
        return f"poly:degree={random.integers(2, 6)},gamma={gamma},coef0={coef0:g}"
    if shape == "sigmoid":
        return f"sigmoid:gamma={gamma},coef0={coef0:g}"
    return "linear"


def draw_solver(random: np.random.Generator, task: str, kind: str, plan: Plan) -> str:
    """A solver that the draw has, for this kind of run."""
    traits = plan.draw.traits
    if kind == "sampled":
        return str(random.choice(["sampled-linear", "sampled-constant"]))
    if kind == "kernel":
        solvers = ["auto", "one-slack", "n-slack", "group-slack", "bcfw"]
    elif plan.penalty == "hard":
        solvers = ["auto", "n-slack", "one-slack", "group-slack"]
    else:
        solvers = [
            "auto",
            "auto",
            "one-slack",
            "n-slack",
            "group-slack",
            "bcfw",
            "bcfw",
            "subgradient",
        ]
        solvers += ["frank-wolfe"] * (plan.penalty == "linear")
        solvers += ["perceptron"] * (kind not in ("path", "warm", "resume"))
        is_first = (plan.rescaling, plan.penalty) == ("margin", "linear")
        for name in traits.get("solvers", []):
            if name in FACTORWISE and (not is_first or kind in ("warm", "low-rank")):
                continue
            if name == "dual-coordinate" and task == "multilabel" and not is_first:
                continue
            if name == "mle" and kind in ("path", "warm", "resume", "low-rank"):
                continue
            solvers += [name] if name == "mle" else [name] * 2
        if kind == "warm":
            # What auto takes may refuse a warm start.
            solvers = [name for name in solvers if name != "auto"]
    return str(random.choice([name for name in solvers if name not in traits.get("without", [])]))


def of_solver(random: np.random.Generator, plan: Plan) -> list[str]:
    """The solver and its finer options."""
    name, words = plan.solver, ["--solver", plan.solver]
    if name == "group-slack":
        words += ["--groups", str(random.integers(1, 4))]
    if name in ("one-slack", "group-slack") and random.random() < 0.3:
        if plan.penalty != "hard" and random.random() < 0.5:
            words += ["--line-search", "off"]
        words += ["--cache", random.choice(["off", "3"])]
    if name == "n-slack" and random.random() < 0.3:
        words += ["--update", "own"] if random.random() < 0.5 else ["--batch", "2"]
    if name in FACTORWISE and random.random() < 0.3:
        words += ["--inner", random.choice(["blocks", "away-steps"])]
    if name == "gdmm" and random.random() < 0.3:
        words += ["--certify"]
    return words


def of_stop(random: np.random.Generator, plan: Plan, hardness: float) -> list[str]:
    """When to stop. `hardness`: C per example times the square of the largest features."""
    words: list[str] = []
    if plan.solver not in BOUNDLESS:
        which = random.random()
        if which < 0.6:
            plan.relative_gap = log_uniform(random, -6, -1) if random.random() < 0.8 else 1e-12
            words += ["--relative-gap", repr(plan.relative_gap)]
        elif which < 0.8:
            plan.epsilon = float(f"{plan.loss_scale * 10 ** random.uniform(-5, -1):.3g}")
            words += ["-e", repr(plan.epsilon)]
    if plan.solver == "mle":
        return words
    hardness *= max(1.0, plan.loss_scale) * (100 if plan.kind == "path" else 1)
    # Where outputs are searched for, training may never reach a small gap. Where a feature is far
    # from 0, it may be slow.
    is_searched = plan.draw.traits.get("loops", False)
    is_far = plan.draw.traits.get("offset", 0.0) > 0
    is_easy = hardness < 1e3 and plan.solver not in SLOW and not is_searched and not is_far
    if not is_easy or plan.kind == "low-rank" or random.random() < 0.6:
        words += ["--max-passes", str(random.choice([1, 3, 30, 300, 300, 1000]))]
    return words


def draw_plan(random: np.random.Generator, task: str, kind: str, module) -> Plan:
    """A random case of a task and a kind of run."""
    scale, c = draw_size(random, kind)
    drawn = module.draw(random, scale)
    arguments, traits = drawn.arguments, drawn.traits
    choices = [tuple(pair) for pair in traits.get("formulations", FORMULATIONS)]
    wanted = [pair for pair in choices if (pair[1] == "hard") == (kind == "hard")]
    if kind == "sampled":
        wanted = [pair for pair in wanted if pair[1] == "linear"]
    rescaling, penalty = wanted[random.integers(len(wanted))] if wanted else ("margin", "linear")
    rescaling = option(arguments, "--rescaling") or rescaling
    penalty = option(arguments, "--penalty") or penalty
    loss_scale = float(option(arguments, "--loss-scale") or 1.0)
    if penalty == "hard":
        # Weights of examples have no effect there, and are refused.
        arguments[:] = without(arguments, "--class-weight")
    words: list[str] = []
    if "--loss-scale" not in arguments and random.random() < 0.25:
        loss_scale = float(random.choice([0.001, 0.1, 7.0, 100.0]))
        words += ["--loss-scale", repr(loss_scale)]
    has_kernel = kind in ("kernel", "low-rank", "sampled")
    if kind == "hard" and task in ("binary", "multiclass"):
        has_kernel = random.random() < 0.5
    plan = Plan(task, kind, drawn, rescaling, penalty, loss_scale, "auto", has_kernel)
    plan.solver = draw_solver(random, task, kind, plan)
    if (rescaling != "margin" or random.random() < 0.2) and "--rescaling" not in arguments:
        words += ["--rescaling", rescaling]
    if (penalty != "linear" or random.random() < 0.2) and "--penalty" not in arguments:
        words += ["--penalty", penalty]
    words += of_solver(random, plan) if plan.solver != "auto" or random.random() < 0.3 else []
    if has_kernel:
        words += of_kernel(random, plan, scale)
    # Some features are about 1 at any scale: transitions, and those of a kernel with its gamma.
    stop = of_stop(random, plan, c * max(scale, 1.0) ** 2)
    words += ["--seed", str(random.integers(100))]
    of_cost = [] if penalty == "hard" or plan.solver in BOUNDLESS else of_c(random, c)
    if kind == "path" and not of_cost:
        kind = "plain"
    lay_out(random, plan, kind, words, of_cost, stop, c)
    return plan


def of_kernel(random: np.random.Generator, plan: Plan, scale: float) -> list[str]:
    """A kernel, and how it is approximated."""
    kind = plan.kind
    if kind == "hard":
        kind = "low-rank" if random.random() < 0.25 else "kernel"
    # The hard margin may end without a model that tells gamma.
    name = draw_kernel(random, scale, kind, is_number=plan.kind == "hard")
    words = (
        ["--kernel", name]
        if name != "linear" or kind == "low-rank" or random.random() < 0.5
        else []
    )
    if kind == "low-rank":
        words += ["--low-rank", str(random.integers(1, 40))]
        if random.random() < 0.6:
            words += ["--basis", random.choice(["pivoted", "random"])]
    if plan.kind == "sampled":
        has_all = plan.solver == "sampled-linear" or plan.task in ("binary", "multiclass")
        if random.random() < 0.7:
            words += [
                "--sampling",
                random.choice(["pivoted", "growing", "uniform"] if has_all else ["uniform"]),
            ]
        if random.random() < 0.7:
            words += ["--sample-size", str(random.choice([1, 2, 5, 20, 400]))]
    return words


def lay_out(
    random, plan: Plan, kind: str, words: list[str], of_cost: list[str], stop: list[str], c: float
) -> None:
    """The commands of the case."""
    threads = ["--threads", str(random.integers(1, 3))]
    without_limit = without(stop, "--max-passes")
    if kind == "path":
        ladder = sorted(
            {float(f"{c * 10 ** random.uniform(-2, 2):.3g}") for _ in range(random.integers(2, 5))}
        )
        name = "--c-path-per-example" if random.random() < 0.7 else "--c-path"
        plan.runs = [words + [name, ",".join(map(repr, ladder))] + stop + threads]
    elif kind == "warm":
        other = (
            ["--c-per-example", repr(float(f"{c * 10 ** random.uniform(-3, 3):.3g}"))]
            if of_cost
            else []
        )
        first = words + other + without_limit + ["--max-passes", str(random.choice([2, 20]))]
        plan.runs = [
            first + threads,
            words + of_cost + stop + threads + ["--warm-start", "model-0.mm"],
        ]
    elif kind == "resume":
        limit = [] if plan.solver == "mle" else ["--max-passes", str(random.choice([1, 2, 5]))]
        last = without_limit + ["--max-passes", "300"]
        saved = ["--checkpoint", "state", "--checkpoint-every", "0"]
        plan.runs = [
            words + of_cost + without_limit + limit + saved,
            words + of_cost + last + threads,
            words + of_cost + last + saved + ["--resume"] + threads,
        ]
        plan.equal_models = [(1, 2)]
    elif kind == "threads":
        plan.runs = [words + of_cost + stop + ["--threads", t] for t in ("1", "2")]
        plan.equal_models = [(0, 1)]
    elif kind == "heldout":
        file = plan.draw.traits.get("heldout", plan.draw.arguments[1])
        keep = ["--keep-best"] if random.random() < 0.6 and plan.penalty != "hard" else []
        plan.runs = [words + of_cost + stop + threads + ["--heldout", file] + keep]
    else:
        plan.runs = [words + of_cost + stop + threads]


def without(words: list[str], name: str) -> list[str]:
    """The words but for an option, as often as it is there, and its values."""
    return [
        word for j, word in enumerate(words) if word != name and (j == 0 or words[j - 1] != name)
    ]
