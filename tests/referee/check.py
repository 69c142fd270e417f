"""Runs one case, and checks what the program claims."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .exact import (
    LD,
    Formulation,
    Kernel,
    Objective,
    Table,
    constant_of_words,
    kernel_of,
    kernel_of_words,
    typed_kernel,
)
from .model import Model, read_model
from .optimum import Bounds, is_surely_inseparable, optimum
from .options import Plan, draw_plan, strata
from .problem import Weights
from .tasks.vectors import option

SECONDS = 60
# Relative tolerances; README.md says why.
PRIMAL = 1e-9
DUAL = 1e-12
ARITHMETIC = 1e-12
# Errors of the hard margin that say nothing of the data.
CLAIM_NOTHING = ("stopped before any w", "none is known not to exist", "by these basis functions")


@dataclass
class Outcome:
    """What became of a case.

    `state`: passed, failed, refused (exit code 2) or skipped (there is no task module).
    """

    name: str
    task: str
    kind: str
    state: str = "passed"
    complaints: list[tuple[str, str]] = field(default_factory=list)
    certificate: str = ""
    solver: str = ""
    error: float | None = None
    # Where outputs are searched for: how much of P the stated value lacks, relative to P.
    short: float | None = None
    own_gap: float | None = None
    seconds: float = 0.0
    commands: list[str] = field(default_factory=list)
    folder: str = ""
    note: str = ""

    def complain(self, about: str, what: str) -> None:
        """Notes a failure of the program."""
        self.state = "failed"
        self.complaints.append((about, what))


@dataclass
class Options:
    """Options of the referee itself."""

    program: str
    folder: Path
    keeps_all: bool = False


def stratum(k: int) -> tuple[str, str]:
    """Task and kind of case k."""
    pairs = strata()
    return pairs[k % len(pairs)]


def run_case(options: Options, seed: int, k: int) -> Outcome:
    """Draws, runs and checks case k of a seed."""
    task, kind = stratum(k)
    began = time.perf_counter()
    outcome = Outcome(f"{seed}:{k}", task, kind)
    folder = options.folder / f"case-{seed}-{k}"
    try:
        module = importlib.import_module(f".tasks.{task}", __package__)
    except ModuleNotFoundError:
        outcome.state, outcome.note = "skipped", f"there is no module tasks/{task}.py yet"
        return outcome
    try:
        plan = draw_plan(np.random.default_rng([seed, k]), task, kind, module)
        check_plan(options, outcome, plan, module, folder)
    except Exception:
        outcome.complain("referee", traceback.format_exc())
    outcome.seconds = time.perf_counter() - began
    keep_or_remove(options, outcome, folder)
    return outcome


def keep_or_remove(options: Options, outcome: Outcome, folder: Path) -> None:
    """Keeps the files of failures."""
    outcome.folder = str(folder)
    if outcome.state == "failed" or options.keeps_all:
        commands = "\n".join(outcome.commands) + "\n"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "commands.sh").write_text(commands)
    else:
        shutil.rmtree(folder, ignore_errors=True)


def check_plan(options: Options, outcome: Outcome, plan: Plan, module, folder: Path) -> None:
    """Writes the files, runs the commands and checks the last one's result."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, text in plan.draw.files.items():
        (folder / name).write_text(text)
    summary = None
    for j, words in enumerate(plan.runs):
        command = [
            options.program,
            "train",
            *plan.draw.arguments,
            "-m",
            f"model-{j}.mm",
            *words,
            "--json",
            "--quiet",
        ]
        outcome.commands.append(shell(command))
        done = run(command, folder)
        if done is None:
            outcome.complain("time-out", f"took more than {SECONDS} s")
            return
        if done.returncode == 2 and "damaged" in done.stderr:
            outcome.complain("resume", f"nobody damaged it: {done.stderr.strip()[-500:]}")
            return
        if done.returncode == 2:
            outcome.state, outcome.note = "refused", done.stderr.strip().splitlines()[0]
            return
        if done.returncode == 1 and "error:" in done.stderr:
            check_error(outcome, plan, module, folder, done.stderr)
            return
        if done.returncode != 0:
            outcome.complain("crash", f"exit code {done.returncode}: {done.stderr.strip()[-500:]}")
            return
        summary = json.loads(done.stdout)
        (folder / f"summary-{j}.json").write_text(done.stdout)
    for a, b in plan.equal_models:
        if (folder / f"model-{a}.mm").read_bytes() != (folder / f"model-{b}.mm").read_bytes():
            outcome.complain("bytes", f"model-{a}.mm and model-{b}.mm differ")
    model = read_model(folder / f"model-{len(plan.runs) - 1}.mm")
    Checks(options, outcome, plan, module, folder, summary, model).all()


def shell(command: list[str]) -> str:
    """A command as one types it."""
    return " ".join(
        word if all(c.isalnum() or c in "-_.,:/=+" for c in word) else f"'{word}'"
        for word in command
    )


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess | None:
    """Runs a command in a folder; None where it takes too long."""
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return None


def check_error(outcome: Outcome, plan: Plan, module, folder: Path, message: str) -> None:
    """Exit code 1: is it true that the data cannot be separated?"""
    message = message.strip()
    if "too large to train with" in message or "drowns" in message:
        outcome.state, outcome.note = "refused", message.splitlines()[0]
        return
    if "has no minimum" in message and "sigmoid" in " ".join(plan.runs[-1]):
        outcome.state, outcome.note = "refused", message.splitlines()[0]
        return
    if plan.penalty != "hard":
        outcome.complain("error", message[-500:])
        return
    outcome.certificate = "none"
    if any(words in message for words in CLAIM_NOTHING):
        outcome.note = "gave up"
        return
    if "cannot be separated" not in message:
        outcome.complain("error", message[-500:])
        return
    outcome.certificate = "exact"
    words = plan.draw.arguments + plan.runs[-1]
    kernel = kernel_of_words(words)
    if "--low-rank" in words or (kernel is not None and not kernel.is_definite):
        outcome.complain("infeasible", "nobody can know this of such a kernel")
        return
    objective = Objective(table_of(plan, module, folder, kernel, None), formulation_of(plan, 1.0))
    bounds = optimum(objective)
    if np.isfinite(bounds.upper) and not is_surely_inseparable(objective, bounds):
        outcome.complain(
            "infeasible", f"the referee separates the data with P = {float(bounds.upper):.12g}"
        )


def table_of(
    plan: Plan, module, folder: Path, kernel: Kernel | None, model: Model | None
) -> Table:
    """All outputs, and the weights of the model where there is one."""
    formulation = {
        "rescaling": plan.rescaling,
        "penalty": plan.penalty,
        "kernel": kernel is not None,
    }
    examples = module.examples(folder, plan.draw, formulation)
    own = module.weights(folder, plan.draw, model) if model is not None else Weights()
    return Table(examples, kernel, plan.draw.kernel_block, own)


def formulation_of(plan: Plan, c: float) -> Formulation:
    """The formulation of a plan with this C."""
    return Formulation(plan.rescaling, plan.penalty, c, plan.loss_scale)


class Checks:
    """The checks of a summary against the model and the data."""

    def __init__(
        self,
        options: Options,
        outcome: Outcome,
        plan: Plan,
        module,
        folder: Path,
        summary: dict,
        model: Model,
    ):
        self.options, self.outcome, self.plan = options, outcome, plan
        self.summary, self.model = summary, model
        self.words = plan.draw.arguments + plan.runs[-1]
        kernel = kernel_of(model.kernel) if model.kernel is not None else None
        self.table = table_of(plan, module, folder, kernel, model)
        outcome.certificate, outcome.solver = summary["certificate"], summary["solver"]

    def all(self) -> None:
        """Checks everything there is."""
        summary = self.summary
        if summary["examples"] != self.table.n:
            self.complain("data", f"{summary['examples']} examples, the referee has {self.table.n}")
            return
        self.kernel()
        if self.plan.penalty == "hard":
            self.hard()
            return
        self.weight_of_slack()
        objective = self.objective(summary["c"])
        value = objective.primal(self.table.model_weights)
        self.primal(value.value, value.rounding)
        bounds = self.bounds(objective)
        self.certificate(summary, bounds, float(value.value))
        self.converged(value.value, value.rounding, bounds)
        for line in summary.get("path") or []:
            self.path_line(line)

    def complain(self, about: str, what: str) -> None:
        self.outcome.complain(about, what)

    def objective(self, c: float) -> Objective:
        return Objective(self.table, formulation_of(self.plan, c))

    def bounds(self, objective: Objective, starts=None) -> Bounds:
        """The referee's bounds of the minimum; of an indefinite kernel there are none."""
        is_indefinite = self.table.kernel is not None and not self.table.kernel.is_definite
        if is_indefinite or not self.plan.has_optimum:
            return Bounds(LD(-np.inf), LD(np.inf), self.table.model_weights, 0.0)
        bounds = optimum(objective, [self.table.model_weights] if starts is None else starts)
        if self.outcome.own_gap is None or bounds.gap > self.outcome.own_gap:
            self.outcome.own_gap = bounds.gap
        return bounds

    def kernel(self) -> None:
        """The kernel in the model is the one that was asked for."""
        kernel = self.table.kernel
        if kernel is None:
            return
        constant = constant_of_words(self.words)
        if abs(kernel.constant - constant) > 1e-15 * constant:
            self.complain("kernel", f"constant {kernel.constant}, not {constant}")
        name, wanted = typed_kernel(self.words)
        if name != kernel.name:
            self.complain("kernel", f"{kernel.name}, not {name}")
        for key, text in wanted.items():
            if text not in ("scale", "auto") and float(text) != getattr(kernel, key):
                self.complain("kernel", f"{key} is {getattr(kernel, key)}, not {text}")

    def weight_of_slack(self) -> None:
        """C is the one that was asked for."""
        c, n = self.summary["c"], self.table.n
        typed = option(self.words, "-c"), option(self.words, "--c-per-example")
        if self.summary.get("path"):
            return
        wanted = float(typed[0]) if typed[0] else float(typed[1]) * n if typed[1] else float(n)
        if abs(c - wanted) > 1e-14 * wanted:
            self.complain("C", f"{c}, not {wanted}")

    @property
    def is_searched(self) -> bool:
        """Were worst outputs searched for, so that P may be too small?"""
        return bool(self.summary.get("searched")) and self.summary["certificate"] != "exact"

    def primal(self, true: LD, rounding: float) -> None:
        """`primal` is P of the saved model."""
        stated, summary = LD(self.summary["primal"]), self.summary
        tolerance = LD(self.primal_tolerance(true, rounding))
        difference = stated - true
        size = max(abs(true), LD(1e-300))
        if self.is_searched:
            self.outcome.short = max(0.0, float(-difference / size))
            at_most = summary.get("primal_at_most")
            if self.plan.draw.traits.get("loops") is False:
                self.complain("exact", "outputs without loops are searched for")
            if at_most is None and self.plan.penalty != "hard":
                self.complain("at most", "outputs are searched for, and no upper bound is stated")
            # Factor by factor, the objective itself is the upper bound.
            if difference > tolerance and at_most != summary["primal"]:
                self.complain(
                    "P", f"P is {float(true):.15g}, stated {float(stated):.15g}, which is more"
                )
            if at_most is not None and LD(at_most) < true - tolerance:
                self.complain(
                    "at most", f"P is {float(true):.15g}, stated to be at most {at_most:.15g}"
                )
            return
        self.outcome.error = float(abs(difference) / size)
        if not abs(difference) <= tolerance:
            error = float(difference / size)
            self.complain(
                "P", f"P is {float(true):.15g}, stated {float(stated):.15g}, off by {error:+.2g}"
            )

    def certificate(self, of: dict, bounds: Bounds, primal: float) -> None:
        """Checks dual value and gap of a summary, or of a line of the path, by the certificate."""
        kind, dual, gap, stated = of["certificate"], of["dual"], of["gap"], of["primal"]
        if kind == "none":
            if dual is not None or gap is not None:
                self.complain("none", f"no certificate, yet dual {dual}, gap {gap}")
            return
        if kind == "estimate":
            if gap is not None and not gap > 0:
                self.complain("estimate", f"an estimate with a gap of {gap}")
            return
        if dual is None or gap is None:
            self.complain("exact", f"exact, yet dual {dual}, gap {gap}")
            return
        if dual > stated * (1 + ARITHMETIC):
            self.complain("crossed", f"dual {dual:.15g} above primal {stated:.15g}")
        if abs(gap - (stated - dual)) > ARITHMETIC * abs(stated) and not (
            gap == 0 and dual <= stated * (1 + ARITHMETIC)
        ):
            self.complain("gap", f"gap {gap:.15g}, primal - dual is {stated - dual:.15g}")
        self.false_bound(LD(dual), bounds)
        if dual == 0 and primal > 0 and of["status"] != "converged":
            self.complain("zero", f"exact, with a bound of 0 where P is {primal:.6g}")

    def false_bound(self, dual: LD, bounds: Bounds) -> None:
        """A bound that is exact is below the minimum."""
        if dual > bounds.upper * (1 + LD(DUAL)) + 2 * bounds.rounding:
            excess = float((dual - bounds.upper) / bounds.upper)
            upper = float(bounds.upper)
            self.complain(
                "bound",
                f"exact bound {float(dual):.15g}, "
                f"the minimum is at most {upper:.15g} ({excess:+.2g})",
            )

    def converged(self, primal: LD, rounding: float, bounds: Bounds) -> None:
        """The target of a run that says so is reached."""
        summary = self.summary
        is_end = "--keep-best" not in self.words
        if summary["status"] != "converged" or summary["certificate"] != "exact" or not is_end:
            return
        target = self.target(summary["primal"])
        if summary["gap"] > target * (1 + 1e-9):
            self.complain(
                "target", f"converged, with a gap of {summary['gap']:.6g}; asked for {target:.6g}"
            )
        above = float(primal - bounds.upper)
        if above > summary["gap"] + self.primal_tolerance(primal, rounding):
            self.complain(
                "target", f"P is {above:.6g} above the minimum, the gap {summary['gap']:.6g}"
            )

    def primal_tolerance(self, true: LD, rounding: float) -> float:
        """What `primal` may be off: PRIMAL of P, or the stated rounding error if that is more."""
        return (
            max(PRIMAL * float(abs(true)), self.summary.get("primal_error") or 0.0) + 2 * rounding
        )

    def target(self, primal: float) -> float:
        """The gap that was asked for."""
        c = self.summary["c"] if self.plan.penalty != "hard" else primal
        if self.plan.relative_gap is not None:
            return self.plan.relative_gap * primal
        # The summary has no epsilon where P is 0.
        return (self.plan.epsilon or self.summary["epsilon"] or 0.01) * c

    def path_line(self, line: dict) -> None:
        """A line of the path, whose model is not saved: only bounds can be compared."""
        bounds = self.bounds(self.objective(line["c"]), [])
        if (
            not self.is_searched
            and LD(line["primal"]) < bounds.lower * (1 - LD(PRIMAL)) - 2 * bounds.rounding
        ):
            self.complain(
                "path",
                f"C = {line['c']}: P {line['primal']:.15g}, the minimum {float(bounds.lower):.15g}",
            )
        self.certificate(line, bounds, line["primal"])

    def hard(self) -> None:
        """The hard margin: all constraints hold, and |w|^2 / 2 is P."""
        summary, objective = self.summary, self.objective(1.0)
        w = self.table.model_weights
        value, lacking = objective.hard_primal(w)
        half = self.table.norm2(w) / 2
        if self.is_searched:
            return
        if not np.isfinite(value):
            self.complain("hard", "a constraint lacks all of its margin")
            return
        self.outcome.error = float(abs(LD(summary["primal"]) - value) / max(value, LD(1e-300)))
        tolerance = self.primal_tolerance(value, 0.0)
        if abs(float(LD(summary["primal"]) - value)) > tolerance:
            self.complain(
                "P",
                f"P is {float(value):.15g}, stated {summary['primal']:.15g}; "
                f"|w|^2/2 is {float(half):.15g}",
            )
        bounds = self.bounds(objective)
        if bounds.lower > LD(summary["primal"]) + LD(tolerance):
            self.complain(
                "hard",
                f"P {summary['primal']:.15g}, the minimum is at least {float(bounds.lower):.15g}",
            )
        if lacking > 1e-6:
            self.outcome.note = f"the saved weights lack {lacking:.2g} of a margin"
        self.certificate(summary, bounds, float(value))
        self.converged(value, 0.0, bounds)
