"""The known regression cases: what was once wrong, and must not be wrong again."""

from __future__ import annotations

import gzip
import importlib
import math
import random
import subprocess
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .check import Options, Outcome, check_plan, keep_or_remove
from .options import Plan
from .problem import Draw

DIGITS = Path(__file__).parents[2] / "demo" / "digits.train.gz"


@dataclass
class Known:
    """A command that once ended in a false claim. `files` makes its files with the program."""

    name: str
    about: str
    files: Callable[[str], dict[str, str]]
    arguments: list[str]
    words: list[str]
    traits: dict = field(default_factory=dict)
    kernel_block: str | None = None
    rescaling: str = "margin"
    penalty: str = "linear"
    relative_gap: float | None = None
    has_optimum: bool = True


def generated(*words: str) -> Callable[[str], dict[str, str]]:
    """The training file that `maxmargin generate` makes."""

    def files(program: str) -> dict[str, str]:
        done = subprocess.run(
            [program, "generate", *words], capture_output=True, text=True, check=True
        )
        return {"train.dat": done.stdout}

    return files


def digits(program: str) -> dict[str, str]:
    """The digits of the demo."""
    return {"train.dat": gzip.open(DIGITS, "rt").read()}


def text(name: str, lines: str) -> Callable[[str], dict[str, str]]:
    """A file that is written out here."""
    return lambda program: {name: lines}


def points(
    seed: int, n: int, features: int, labels: list[str], scale: float, wrong: int
) -> Callable[[str], dict[str, str]]:
    """Points in a cube, labelled by linear scores but for the last `wrong` ones."""

    def files(program: str) -> dict[str, str]:
        source = random.Random(seed)
        uniform = lambda: 2 * source.random() - 1
        directions = [[uniform() for _ in range(features)] for _ in labels]
        lines = []
        for i in range(n):
            x = [float(np.float32(scale * uniform())) for _ in range(features)]
            scores = [sum(a * b for a, b in zip(direction, x)) for direction in directions]
            label = (scores.index(max(scores)) + (i >= n - wrong)) % len(labels)
            lines.append(
                " ".join([labels[label], *(f"{j + 1}:{np.float32(v)}" for j, v in enumerate(x))])
            )
        return {"train.dat": "\n".join(lines) + "\n"}

    return files


def far_points(seed: int, n: int, offsets: list[float]) -> Callable[[str], dict[str, str]]:
    """Points in three dimensions, labelled by a wave, and a fourth feature: the offsets in turn."""

    def files(program: str) -> dict[str, str]:
        source = random.Random(seed)
        lines = []
        for i in range(n):
            x = [source.gauss(0, 1) for _ in range(3)]
            label = "+1" if math.sin(3 * x[0]) + x[1] > 0 else "-1"
            x.append(offsets[i % len(offsets)])
            lines.append(" ".join([label, *(f"{j + 1}:{np.float32(v)}" for j, v in enumerate(x))]))
        return {"train.dat": "\n".join(lines) + "\n"}

    return files


def outliers(seed: int, n: int, which: tuple[int, ...]) -> Callable[[str], dict[str, str]]:
    """Points near 0 with random labels, but for some far away that weigh more."""

    def files(program: str) -> dict[str, str]:
        source = random.Random(seed)
        lines = []
        for i in range(n):
            scale, words = (1e6, ["cost:1e9"]) if i in which else (1e-3, [])
            x = [scale * source.gauss(0, 1) for _ in range(2)]
            label = source.choice(["+1", "-1"])
            words += [f"{j + 1}:{np.float32(v)}" for j, v in enumerate(x)]
            lines.append(" ".join([label, *words]))
        return {"train.dat": "\n".join(lines) + "\n"}

    return files


CHAIN = """\
{"domain": 3, "labels": [0, 1, 2, 1], "x": [[1, 0], [0, 1], [1, 1], [0, 1]], \
"factors": {"next": [[0, 1], [1, 2], [2, 3]]}}
{"domain": 3, "labels": [2, 2, 0], "x": [[0.5, 1], [1, 0.25], [0, 1]], \
"factors": {"next": [[0, 1], [1, 2]]}}
"""

EVEN = """\
{"domain": 2, "labels": [1, 1, 1], "x": [{}, {}, []], "factors": {"a": [[0, 1], [1, 2]]}}
{"domain": 2, "labels": [1, 1], "factors": {"a": [[0, 1]], "b": [[0, 1]]}}
{"domain": 2, "labels": [1, 0, 1, 1, 1], "x": [{}, {}, [], [], []], \
"factors": {"b": [[0, 1], [1, 2], [2, 3], [3, 4], [0, 1], [1, 2], [4, 3]], "a": [[2, 3]]}}
{"domain": 2, "labels": [1, 0], "x": [[], {}], "factors": {"a": [[0, 1]]}}
"""

OPPOSITE = "-1 1:10000\n+1 1:10000\n"

PAIRS = "1,3 1:1 2:0.5 3:3\n2,3,4,5 1:0.5 2:3 3:3\n"

CHECKERS = ("binary", "--kind", "checkers", "--noise", "0.02", "--seed", "1")
BINARY = {"positive": "+1", "solvers": ["dual-coordinate"]}
CLASSES = {"loss": "zero-one"}

KNOWN = [
    Known(
        "poly-bound",
        "a polynomial kernel of degree 5: the dual value was above P of the model",
        generated(*CHECKERS, "--examples", "400"),
        ["binary", "train.dat"],
        [
            "--kernel",
            "poly:degree=5,gamma=1,coef0=1",
            "--c-per-example",
            "100",
            "--relative-gap",
            "0.001",
        ],
        traits=BINARY,
        kernel_block="classes",
        relative_gap=0.001,
    ),
    Known(
        "poly-digits",
        "a polynomial kernel on digits: P was stated 9 % too small",
        digits,
        ["multiclass", "train.dat"],
        [
            "--kernel",
            "poly:degree=3,gamma=1,coef0=1",
            "--c-per-example",
            "100",
            "--relative-gap",
            "0.001",
        ],
        traits=CLASSES,
        kernel_block="classes",
        relative_gap=0.001,
        has_optimum=False,
    ),
    Known(
        "random-basis",
        "a low rank with a random basis: P was stated below the minimum, a tenth of its true value",
        generated(*CHECKERS, "--examples", "300"),
        ["binary", "train.dat"],
        ["--kernel", "rbf:gamma=3", "--low-rank", "300", "--basis", "random", "--seed", "2"]
        + ["--c-per-example", "1", "--relative-gap", "1e-6"],
        traits=BINARY,
        kernel_block="classes",
        relative_gap=1e-6,
    ),
    Known(
        "soft-bcfw-chain",
        "soft-bcfw said `exact: the minimum is at least 0`",
        text("train.jsonl", CHAIN),
        ["graph", "train.jsonl"],
        ["--solver", "soft-bcfw", "--c-per-example", "100", "--max-passes", "30"],
        traits={"loops": False},
    ),
    Known(
        "slack-even-chain",
        "slack rescaling on chains: a gap of 0 beside an objective that is too small",
        text("train.jsonl", EVEN),
        ["graph", "train.jsonl"],
        [
            "--rescaling",
            "slack",
            "--penalty",
            "quadratic",
            "--solver",
            "n-slack",
            "--c-per-example",
            "3.8",
        ]
        + ["--relative-gap", "0.01", "--max-passes", "300"],
        traits={"loops": False},
        rescaling="slack",
        penalty="quadratic",
        relative_gap=0.01,
    ),
    Known(
        "slack-label-pairs",
        "slack rescaling on label sets whose pairs make loops: the same",
        text("train.dat", PAIRS),
        ["multilabel", "train.dat", "--pairs", "all"],
        [
            "--rescaling",
            "slack",
            "--solver",
            "n-slack",
            "--c-per-example",
            "0.1",
            "--relative-gap",
            "0.01",
        ],
        traits={"pairs": "all", "loss": "hamming", "bias": None, "loops": True},
        rescaling="slack",
        relative_gap=0.01,
    ),
    Known(
        "one-slack-huge-c",
        "one-slack at C = 1e8 for each example: the bound was above the minimum",
        points(0, 60, 4, ["+1", "-1"], 10.0, 2),
        ["binary", "train.dat"],
        [
            "--solver",
            "one-slack",
            "--c-per-example",
            "1e8",
            "--relative-gap",
            "1e-9",
            "--max-passes",
            "3000",
        ],
        traits=BINARY,
        relative_gap=1e-9,
    ),
    Known(
        "one-slack-huge-c-classes",
        "the same with five classes",
        points(1, 60, 4, list("12345"), 10.0, 2),
        ["multiclass", "train.dat"],
        [
            "--solver",
            "one-slack",
            "--c-per-example",
            "1e7",
            "--relative-gap",
            "1e-9",
            "--max-passes",
            "3000",
        ],
        traits=CLASSES,
        relative_gap=1e-9,
    ),
    Known(
        "tiny-objective",
        "features of 1e10: P of about 1e-19 was stated wrong",
        points(4, 20, 3, ["+1", "-1"], 1e10, 0),
        ["binary", "train.dat"],
        [
            "--solver",
            "one-slack",
            "--c-per-example",
            "1e-6",
            "--relative-gap",
            "1e-3",
            "--max-passes",
            "300",
        ],
        traits=BINARY,
        relative_gap=1e-3,
    ),
    Known(
        "tiny-objective-classes",
        "the same with four classes",
        points(4, 20, 3, list("1234"), 1e10, 0),
        ["multiclass", "train.dat"],
        [
            "--solver",
            "one-slack",
            "--c-per-example",
            "1e-6",
            "--relative-gap",
            "1e-3",
            "--max-passes",
            "300",
        ],
        traits=CLASSES,
        relative_gap=1e-3,
    ),
    Known(
        "rbf-time",
        "an rbf kernel and a constant feature of 1.7e9: the bound was 170 times the minimum",
        far_points(0, 20, [1.7e9]),
        ["binary", "train.dat"],
        ["--kernel", "rbf:gamma=1", "--c-per-example", "100", "--relative-gap", "1e-6"],
        traits=BINARY,
        kernel_block="classes",
        relative_gap=1e-6,
    ),
    Known(
        "rbf-time-hard",
        "the same with the hard margin: the data were said to be inseparable",
        far_points(0, 20, [1.7e9]),
        ["binary", "train.dat"],
        ["--kernel", "rbf:gamma=1", "--penalty", "hard", "--relative-gap", "1e-6"],
        traits=BINARY,
        kernel_block="classes",
        penalty="hard",
        relative_gap=1e-6,
    ),
    Known(
        "rbf-constant-hard",
        "a smaller constant: P was stated below the minimum",
        far_points(0, 20, [123456.789]),
        ["binary", "train.dat"],
        ["--kernel", "rbf:gamma=1", "--penalty", "hard", "--relative-gap", "1e-6"],
        traits=BINARY,
        kernel_block="classes",
        penalty="hard",
        relative_gap=1e-6,
    ),
    Known(
        "rbf-constant-quadratic",
        "the same constant: P was off, and the bound above the minimum",
        far_points(2, 20, [123456.789]),
        ["binary", "train.dat"],
        ["--kernel", "rbf:gamma=1", "--penalty", "quadratic", "--c-per-example", "100"]
        + ["--relative-gap", "1e-6"],
        traits=BINARY,
        kernel_block="classes",
        penalty="quadratic",
        relative_gap=1e-6,
    ),
    Known(
        "rbf-groups",
        "groups of points that share a large value: P was stated 40 % too small",
        far_points(0, 20, [1.1e7, 1.5e7, 1.9e7]),
        ["binary", "train.dat"],
        ["--kernel", "rbf:gamma=1", "--c-per-example", "100", "--relative-gap", "1e-6"],
        traits=BINARY,
        kernel_block="classes",
        relative_gap=1e-6,
    ),
    Known(
        "rbf-groups-hard",
        "the same with the hard margin",
        far_points(0, 20, [1.1e7, 1.5e7, 1.9e7]),
        ["binary", "train.dat"],
        ["--kernel", "rbf:gamma=1", "--penalty", "hard", "--relative-gap", "1e-6"],
        traits=BINARY,
        kernel_block="classes",
        penalty="hard",
        relative_gap=1e-6,
    ),
    Known(
        "n-slack-crawl",
        "n-slack raised the dual value by next to nothing in each sweep, and went on for ever",
        text("train.dat", OPPOSITE),
        ["binary", "train.dat"],
        ["--solver", "n-slack", "--c-per-example", "600", "--relative-gap", "1e-3"],
        traits=BINARY,
        relative_gap=1e-3,
    ),
    Known(
        "outliers",
        "2 outliers among 2,000 examples: P was off by more than primal_error",
        outliers(57, 2000, (1, 3)),
        ["binary", "train.dat"],
        ["--solver", "group-slack", "--groups", "3", "--max-passes", "300"]
        + ["--c-per-example", "1e8", "--relative-gap", "1e-9"],
        traits=BINARY,
        relative_gap=1e-9,
        has_optimum=False,
    ),
]


def run_known(options: Options, name: str) -> Outcome:
    """Runs and checks the known case of a name."""
    known = next(case for case in KNOWN if case.name == name)
    task = known.arguments[0]
    outcome = Outcome(known.name, task, "known")
    folder = options.folder / f"known-{known.name}"
    began = time.perf_counter()
    try:
        module = importlib.import_module(f".tasks.{task}", __package__)
        drawn = Draw(
            known.files(options.program), known.arguments, known.kernel_block, dict(known.traits)
        )
        plan = Plan(
            task, "known", drawn, known.rescaling, known.penalty, 1.0, "", "--kernel" in known.words
        )
        plan.runs = [[*known.words, "--threads", "1"]]
        plan.relative_gap, plan.has_optimum = known.relative_gap, known.has_optimum
        check_plan(options, outcome, plan, module, folder)
    except Exception:
        outcome.complain("referee", traceback.format_exc())
    outcome.seconds = time.perf_counter() - began
    outcome.note = outcome.note or known.about
    keep_or_remove(options, outcome, folder)
    return outcome
