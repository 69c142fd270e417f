"""The default solver against liblinear, both to the same exact relative duality gap.

liblinear stops by an epsilon of its own, which says nothing of the gap: it gets the loosest epsilon of a ladder that reaches the gap.
"""

import functools
import json
import math
import re
import shutil
import subprocess
from dataclasses import dataclass

import build
from inputs import A9A, COVERTYPE, LETTER, NEWSGROUPS, RCV1, USPS, W8A
from measure import CORES, ROOT, CommandFailed, best, run, say, shown

GAPS = (1e-2, 1e-3)
LADDER = [float(f"{step}e{-decade}") for decade in range(5) for step in (10, 7, 5, 3, 2, 1.5)]
SOLVERS = {"binary": 3, "multiclass": 4}
PROGRAM = "liblinear-train"


@dataclass
class Problem:
    """`epsilons`: for each c, where to begin the search for each of GAPS. A good guess saves time and changes nothing else."""

    task: str
    source: str
    epsilons: dict
    positive: str | None = None

    def ours(self, bench):
        """The file and the options for it."""
        return [bench.inputs.plain(self.source), *(["--positive", self.positive] if self.positive else [])]

    def theirs(self, bench):
        return bench.inputs.one_against_rest(self.source, self.positive) if self.positive else bench.inputs.plain(self.source)


BINARY = {
    "a9a": Problem("binary", A9A, {0.01: (3, 1), 1: (1, 0.2), 10: (1.5, 1.5)}),
    "w8a": Problem("binary", W8A, {0.01: (10, 10), 1: (7, 1.5), 10: (3, 2)}),
    "rcv1_ccat": Problem("binary", RCV1, {0.01: (2, 1), 1: (0.7, 0.07), 10: (0.2, 0.02)}),
    "covertype, class 2": Problem("binary", COVERTYPE, {0.01: (7, 5), 1: (1.5, 0.5), 10: (1, 0.5)}, positive="2"),
}
MULTICLASS = {
    "usps": Problem("multiclass", USPS, {0.01: (0.2, 0.03), 0.1: (0.1, 0.015), 1: (0.05, 0.005)}),
    "letter": Problem("multiclass", LETTER, {0.01: (1, 0.05), 0.1: (0.3, 0.07), 1: (0.3, 0.07)}),
    "newsgroups": Problem("multiclass", NEWSGROUPS, {0.01: (10, 1), 0.1: (1, 0.1), 1: (0.15, 0.07)}),
    "covertype": Problem("multiclass", COVERTYPE, {0.01: (5, 0.5), 0.1: (1, 0.15), 1: (0.7, 0.2)}),
}


@dataclass
class Reached:
    """A run of liblinear: what it took and where it ended. Without objectives where it had to be ended."""

    seconds: float
    ended: str
    iterations: int = 0
    primal: float = math.nan
    dual: float = math.nan

    @property
    def gap(self):
        return (self.primal - self.dual) / self.primal

    @property
    def exhausted(self):
        """No tighter epsilon can get further."""
        return self.ended != "epsilon"


class Liblinear:
    """liblinear with a file in memory, in a process of its own that waits while others run."""

    def __init__(self, bench, data, solver):
        self.bench = bench
        self.command = [build.peers_python(), build.PEERS_SCRIPT, "liblinear", data, solver]

    def __enter__(self):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([str(word) for word in self.command], cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    def train(self, c, epsilon):
        self.process.stdin.write(f"{c} {epsilon}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise CommandFailed(f"{shown(self.command)}: ended at c {c}, epsilon {epsilon}")
        found = Reached(**json.loads(answer))
        say(f"   liblinear -c {c} -e {epsilon}: gap {found.gap:.1e}, {found.seconds:.3f} s, ended by {found.ended}")
        return found

    def note(self, c, epsilon):
        self.bench.note(f'echo "{c} {epsilon}" | {shown(self.command)}')


def loosest(train, gap, guess):
    """The loosest epsilon that reaches the gap, or else the loosest that exhausts liblinear; and its run. `train` remembers its runs.

    The gap does not quite fall with epsilon, so two looser ones must fail.
    """

    def enough(at):
        found = train(LADDER[at])
        return found.gap <= gap or found.exhausted

    at = LADDER.index(guess)
    while not enough(at) and at + 1 < len(LADDER):
        at += 1
    while (looser := next((i for i in (at - 1, at - 2) if i >= 0 and enough(i)), None)) is not None:
        at = looser
    return LADDER[at], train(LADDER[at])


def repetitions(seconds):
    """Short runs vary most; those of over ten seconds hardly do."""
    return 5 if seconds < 0.3 else 3 if seconds < 10 else 2


@dataclass
class Duel:
    """maxmargin and liblinear on one problem; seconds are the best of each."""

    name: str
    c: float
    gap: float
    epsilon: float
    ours: object
    theirs: Reached
    seconds: float

    @property
    def ratio(self):
        return self.ours.seconds / self.seconds

    @property
    def reached(self):
        return self.theirs.gap <= self.gap

    @property
    def consistent(self):
        """Each dual is a lower bound of the other's primal, but for values that maxmargin keeps as f32."""
        return not (self.ours["dual"] > self.theirs.primal * (1 + 1e-6) or self.theirs.dual > self.ours["primal"] * (1 + 1e-6))

    def cells(self):
        ratio = f"{'' if self.reached else 'at most '}{self.ratio:.2f}"
        end = "" if self.reached else f", not reached: {self.theirs.ended}"
        theirs = [f"{self.epsilon:g}", self.theirs.iterations, f"{self.theirs.gap:.1e}{end}", f"{self.seconds:.3f}"]
        ours = [self.ours["solver"], f"{self.ours['passes']:.1f}", f"{self.ours['gap'] / self.ours['primal']:.1e}", f"{self.ours.seconds:.3f}"]
        return [self.name, f"{self.c:g}", f"{self.gap:g}", *theirs, *ours, ratio]


def duels(bench, name, problem):
    with Liblinear(bench, problem.theirs(bench), SOLVERS[problem.task]) as peer:
        for c, guesses in problem.epsilons.items():
            search = functools.cache(functools.partial(peer.train, c))
            for gap, guess in zip(GAPS, guesses):
                epsilon, theirs = loosest(search, gap, guess)
                peer.note(c, epsilon)
                ours, seconds = [], [theirs.seconds]
                for turn in range(repetitions(theirs.seconds)):
                    ours.append(bench.train(problem.task, *problem.ours(bench), "--c-per-example", c, "--relative-gap", gap))
                    if turn > 0:  # the first of theirs is the search's
                        seconds.append(peer.train(c, epsilon).seconds)
                yield Duel(name, c, gap, epsilon, best(ours), theirs, min(seconds))


def compare(bench, problems, mean):
    found = [duel for name, problem in problems.items() for duel in duels(bench, name, problem)]
    worst = max(found, key=lambda duel: duel.ratio)
    certified = sum(duel.ours.converged for duel in found)
    consistent = sum(duel.consistent for duel in found)
    out = bench.outcome
    out.at_most(f"training time over liblinear's, worst ({worst.name}, c {worst.c:g}, gap {worst.gap:g})", worst.ratio, 1.0)
    out.at_most("training time over liblinear's, geometric mean", math.exp(sum(math.log(duel.ratio) for duel in found) / len(found)), mean)
    out.check("maxmargin's gap, certified", "all", f"{certified} of {len(found)}", certified == len(found))
    out.check("no dual above the other's primal", "all", f"{consistent} of {len(found)}", consistent == len(found))
    out.state("as fast as liblinear or faster", f"{sum(duel.ratio <= 1 for duel in found)} of {len(found)}")
    out.state("liblinear does not reach the gap", f"{sum(not duel.reached for duel in found)} of {len(found)}")
    header = ["data", "c", "gap", "-e", "iterations", "liblinear's gap", "its s", "solver", "passes", "our gap", "our s", "ratio"]
    out.table("1 thread, seconds of training, best of 5 (below 0.3 s), 3 or 2 (from 10 s)", header, [duel.cells() for duel in found])


def liblinear_binary(bench):
    """a9a, w8a, rcv1_ccat, covertype class 2: training time against liblinear -s 3 at equal exact gaps"""
    compare(bench, BINARY, mean=0.7)


def liblinear_multiclass(bench):
    """usps, letter, newsgroups, covertype: training time against liblinear -s 4 at equal exact gaps"""
    compare(bench, MULTICLASS, mean=0.5)


def liblinear_program(bench):
    """file to model on all cores against liblinear's program at equal exact gaps"""
    if shutil.which(PROGRAM) is None:
        bench.outcome.skip(f"no program {PROGRAM} here (Debian's package liblinear-tools)")
        return
    gap, table = 1e-3, []
    chosen = {"covertype": (MULTICLASS, 0.1), "covertype, class 2": (BINARY, 1), "rcv1_ccat": (BINARY, 1)}
    for name, (problems, c) in chosen.items():
        problem = problems[name]
        data = problem.theirs(bench)

        def command(epsilon):
            return [PROGRAM, "-s", SOLVERS[problem.task], "-c", c, "-e", epsilon, data, bench.inputs.folder / "liblinear.model"]

        search = functools.cache(lambda epsilon: run_program(command(epsilon), data, c))
        epsilon, theirs = loosest(search, gap, problem.epsilons[c][GAPS.index(gap)])
        ours, walls = [], [theirs.seconds]
        for turn in range(3):
            ours.append(bench.train(problem.task, data, "--c-per-example", c, "--relative-gap", gap, threads=CORES))
            if turn > 0:
                walls.append(bench.command(*command(epsilon)).wall)
        wall = min(run.wall for run in ours)
        at_most = "" if theirs.gap <= gap else ", at most: liblinear does not reach the gap"
        bench.outcome.at_most(f"{name}, c {c:g}: wall over liblinear's{at_most}", wall / min(walls), 0.5)
        table.append([name, f"{c:g}", f"{epsilon:g}", f"{theirs.gap:.1e}", f"{min(walls):.2f}", ours[0]["solver"], f"{wall:.2f}", f"{wall / min(walls):.2f}"])
    header = ["data", "c", "-e", "liblinear's gap", "its wall s", "solver", f"our wall s, {CORES} threads", "ratio"]
    bench.outcome.table(f"relative gap {gap:g}, best of 3", header, table)


def run_program(command, data, c):
    """A search's run, whose objectives come from what it printed and the model that it saved."""
    finished = run(command)
    printed = re.search(r"bjective value = (\S+)", finished.stdout)[1]
    exact = run([build.peers_python(), build.PEERS_SCRIPT, "objectives", data, command[-1], c, printed]).json()
    ended = "max_iter" if "reaching max number of iterations" in finished.stdout else "epsilon"
    found = Reached(finished.wall, ended, **exact)
    say(f"   {shown(command)}: gap {found.gap:.1e}, {found.seconds:.2f} s, ended by {found.ended}")
    return found
