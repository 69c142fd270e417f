"""Running commands and noting what they took."""

import json
import os
import resource
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROGRAM = TARGET / "release" / "maxmargin"
CORES = len(os.sched_getaffinity(0))
SECONDS_AT_MOST = 600


def say(line):
    """Progress: standard output is for the tables."""
    print(line, file=sys.stderr, flush=True)


class CommandFailed(Exception):
    """A command ended badly, or not in time."""


@dataclass
class Finished:
    """A command that ended well. Times in seconds; CPU over all its threads."""

    stdout: str
    wall: float
    cpu: float

    def json(self):
        """The last line that is a JSON object."""
        lines = [line for line in self.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise CommandFailed("no JSON object on standard output")
        return json.loads(lines[-1])


def shown(command, env=None):
    """The command as one would type it in the repository's root."""
    variables = [f"{name}={shlex.quote(relative(value))}" for name, value in (env or {}).items()]
    return " ".join(variables + [shlex.quote(relative(word)) for word in command])


def relative(word):
    word = str(word)
    return os.path.relpath(word, ROOT) if os.path.isabs(word) else word


def run(command, env=None, seconds=SECONDS_AT_MOST, text=""):
    """`text`: its standard input."""
    command = [str(word) for word in command]
    before, start = children_cpu(), time.perf_counter()
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=os.environ | (env or {}), input=text, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        raise CommandFailed(f"{shown(command, env)}: not done after {seconds} s") from error
    wall = time.perf_counter() - start
    if done.returncode != 0:
        raise CommandFailed(f"{shown(command, env)}: exit code {done.returncode}\n{done.stderr.strip()}")
    return Finished(done.stdout, wall, children_cpu() - before)


def children_cpu():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@dataclass
class Row:
    """One line of the table of goals."""

    what: str
    goal: str
    measured: str
    verdict: str


@dataclass
class Outcome:
    """What a comparison found: rows with goals, tables of figures, the commands it ran."""

    name: str
    rows: list = field(default_factory=list)
    tables: list = field(default_factory=list)
    commands: list = field(default_factory=list)

    @property
    def failed(self):
        return any(row.verdict == "FAILED" for row in self.rows)

    def check(self, what, goal, measured, reached):
        self.rows.append(Row(what, goal, measured, "ok" if reached else "MISSED"))

    def at_most(self, what, value, limit, unit="", digits=2):
        self.check(what, f"<= {limit:.{digits}f}{unit}", f"{value:.{digits}f}{unit}", value <= limit)

    def at_least(self, what, value, limit, unit="", digits=2):
        self.check(what, f">= {limit:.{digits}f}{unit}", f"{value:.{digits}f}{unit}", value >= limit)

    def state(self, what, measured):
        self.rows.append(Row(what, "stated", measured, ""))

    def skip(self, why):
        self.rows.append(Row("all", "", why, "skipped"))

    def fail(self, failure):
        self.rows.append(Row("a command", "", str(failure).splitlines()[0], "FAILED"))

    def table(self, title, header, rows):
        self.tables.append((title, header, rows))


class Trained:
    """A run of `train`: its summary by key, its CPU seconds, where its model lies."""

    def __init__(self, finished, model):
        self.summary = finished.json()
        self.cpu = finished.cpu
        self.wall = finished.wall
        self.model = model

    def __getitem__(self, key):
        return self.summary[key]

    @property
    def seconds(self):
        return self.summary["seconds_training"]

    @property
    def with_kernel(self):
        """Seconds of training, and of what a kernel takes before it: atoms, a sample, coordinates."""
        return self.summary["seconds_kernel"] + self.seconds

    @property
    def converged(self):
        return self["status"] == "converged" and self["certificate"] == "exact"


class Bench:
    """What a comparison works with: the inputs, the commands, and the outcome to fill."""

    def __init__(self, inputs, outcome):
        self.inputs = inputs
        self.outcome = outcome

    def command(self, *command, env=None, seconds=SECONDS_AT_MOST):
        self.note(shown(command, env))
        return run(command, env, seconds)

    def note(self, line):
        """A command for the record, once."""
        if line not in self.outcome.commands:
            self.outcome.commands.append(line)

    def train(self, task, data, *options, threads=1, model="model.mm", seconds=SECONDS_AT_MOST):
        model = self.inputs.folder / model
        finished = self.command(PROGRAM, "train", task, data, "-m", model, *options, "--threads", threads, "--json", "--quiet", seconds=seconds)
        trained = Trained(finished, model)
        say(
            f"   {Path(data).name} {' '.join(map(relative, options))} --threads {threads}: {trained['status']}, {trained['rounds']} rounds, "
            f"{trained['passes']:g} passes, {trained.seconds:.2f} s training, {trained.cpu:.2f} s CPU in all"
        )
        return trained

    def evaluate(self, model, data):
        """What `evaluate` says, by key."""
        return self.command(PROGRAM, "evaluate", model, data, "--json").json()


def best(runs):
    """The fastest of equal runs: whatever else the machine does only adds."""
    return min(runs, key=lambda trained: trained.seconds)
