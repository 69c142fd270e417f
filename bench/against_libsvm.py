"""Kernels against LIBSVM: Adult, the checkerboard and covertype, as in YJ08."""

import datetime
import os
import statistics
from dataclasses import dataclass
from functools import cached_property

import build
from inputs import A9A, A9A_TEST, COVERTYPE, COVERTYPE_TEST
from measure import CORES, ROOT, say
from remembered import Memory, Rememberable

SCRIPT = ROOT / "bench" / "libsvm_peer.py"
QUIET = 0.5
PEER_SECONDS_AT_MOST = 3600

# YJ08: the first 22,697 lines of a9a, sigma^2 = 20; 2 gamma sigma^2 = 1.
ADULT_LINES, ADULT_GAMMA = 22_697, 0.025
SEEDS = (1, 2, 3)
LINEAR, CONSTANT, EXACT = "sampled-linear", "sampled-constant", "one-slack"
UNIFORM = "sampled-linear, uniform as in YJ08"
PAPERS_CONSTANT = "sampled-constant, uniform as in YJ08"
LIMIT = ["--max-seconds", 60]
# Options and seeds.
ADULT = {
    LINEAR: (["--solver", LINEAR, "--sample-size", 400], SEEDS),
    UNIFORM: (["--solver", LINEAR, "--sample-size", 400, "--sampling", "uniform", *LIMIT], SEEDS),
    CONSTANT: (["--solver", CONSTANT], SEEDS),
    PAPERS_CONSTANT: (["--solver", CONSTANT, "--sample-size", 400, "--sampling", "uniform", *LIMIT], SEEDS[:1]),
    EXACT: (["--solver", EXACT], SEEDS[:1]),
}
PRIMAL_GOAL = {1: 1, 100: 3}

# sigma^2 = 0.05; the points lie in [-2, 2]^2.
CHECKERS_GAMMA, CHECKERS_TEST = 10, 20_000
CHECKERS = {
    CONSTANT: (["--solver", CONSTANT], SEEDS),
    PAPERS_CONSTANT: (["--solver", CONSTANT, "--sampling", "uniform", "--sample-size", 700], SEEDS),
    LINEAR: (["--solver", LINEAR], SEEDS),
    EXACT: (["--solver", EXACT], SEEDS[:1]),
}

COVERTYPE_CLASS = 2
COVERTYPE_GAMMAS = (1, 3, 10, 30, 100)
COVERTYPE_SECONDS = 1500
SUBSAMPLE, LEARNED_FROM = 10_000, 8_000
LIBSVM_SECONDS = 1200


def setting(gamma, weight):
    return ["--kernel", f"rbf:gamma={gamma:g}", "--c-per-example", weight, "--epsilon", 0.001]


@dataclass
class Solved(Rememberable):
    """A run of LIBSVM: CPU and wall seconds of training, the exact primal, and errors from 0 to 1."""

    seconds: float
    wall: float
    iterations: int
    examples: int
    support: int
    primal: float
    train_error: float
    test_error: float
    date: str
    load: float
    remembered: bool = False


class Libsvm:
    """LIBSVM on a training file and a test file, in a process of its own for each run."""

    def __init__(self, bench, train, test):
        self.bench = bench
        self.files = [train, test]
        self.memory = Memory(bench.inputs.folder / "libsvm-runs.json", Solved, self.files)

    def train(self, gamma, weight, threads=1, form="libsvm"):
        """`form`: libsvm, or sklearn for its SVC. With more than one thread wall time is what counts, and that is remembered only where the machine was quiet."""
        name = f"{form} gamma={gamma:g} c={weight:g} threads={threads}"
        found = self.memory.recall(name)
        if found is None:
            date, load = datetime.date.today().isoformat(), os.getloadavg()[0]
            command = [build.peers_python(), SCRIPT, form, *self.files, f"{gamma:g}", f"{weight:g}"]
            answer = self.bench.command(*command, env={"OMP_NUM_THREADS": str(threads)}, seconds=PEER_SECONDS_AT_MOST).json()
            found = Solved(**answer, date=date, load=load)
            if threads == 1 or load < QUIET:
                self.memory.keep(name, found)
        say(f"   {self.files[0].name} {name}: {found.seconds:.2f} s CPU, {found.wall:.2f} s wall ({found.origin})")
        return found


@dataclass
class Peer:
    """LIBSVM with one thread and with all cores. `seconds` is the less of CPU with one and wall with all."""

    one: Solved
    all: Solved

    @property
    def seconds(self):
        return min(self.one.seconds, self.all.wall)

    @property
    def error(self):
        return 100 * self.one.test_error

    def row(self, *before):
        """The cells of a table that `Runs.row` has, too."""
        times = f"{self.seconds:.2f} (1 thread {self.one.seconds:.2f} CPU, {CORES} threads {self.all.wall:.2f} wall; {self.one.origin})"
        return [*before, "LIBSVM", f"{self.one.primal:.1f}", "", f"{self.error:.2f}", times, "", self.one.support]


def peer(bench, data, test, gamma, weight):
    libsvm = Libsvm(bench, data, test)
    return Peer(libsvm.train(gamma, weight), libsvm.train(gamma, weight, threads=CORES))


class Runs:
    """Runs of ours that differ in the seed only: the exact primal and the test error in % of each."""

    def __init__(self, bench, data, test, options, seeds=SEEDS, seconds=600, with_primal=True):
        """`with_primal`: numpy takes long over an objective of a million examples, and no peer has one to compare."""
        self.runs, self.primals, self.errors = [], [], []
        for seed in seeds:
            run = bench.train("binary", data, *options, "--seed", seed, threads=CORES, seconds=seconds)
            self.runs.append(run)
            self.primals.append(exact_primal(bench, data, run) if with_primal else run["primal"])
            self.errors.append(100 * bench.evaluate(run.model, test)["mean_loss"])

    @cached_property
    def seconds(self):
        return statistics.mean(run.with_kernel for run in self.runs)

    @property
    def error(self):
        return statistics.mean(self.errors)

    @property
    def primal(self):
        return statistics.mean(self.primals)

    def row(self, *before, over=None):
        """Cells for a table; `over`: LIBSVM's primal."""
        above = [100 * (primal / over - 1) for primal in self.primals] if over else []
        ended = sorted({run["status"] for run in self.runs} - {"converged"})
        certificates = sorted({run["certificate"] for run in self.runs})
        rounds = ", ".join([spread([run["rounds"] for run in self.runs], 0), *ended, *certificates])
        seconds = spread([run.with_kernel for run in self.runs], 2)
        support = spread([run["dimension"] for run in self.runs], 0)
        return [*before, f"{self.primal:.1f}", spread(above, 2), spread(self.errors, 2), seconds, rounds, support]


HEADER = ["by", "exact primal", "above LIBSVM's, %", "test error %", "coordinates and training s", "rounds, certificate", "support vectors"]


def exact_primal(bench, data, run):
    """Where a solver only estimates its objective, numpy computes it from the saved model."""
    if run["certificate"] == "exact":
        return run["primal"]
    return bench.command(build.peers_python(), SCRIPT, "primal", data, run.model).json()["primal"]


def spread(values, digits):
    """Mean and standard deviation."""
    if not values:
        return ""
    deviation = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{deviation}"


def adult(bench):
    """YJ08's training data and the test data."""
    return bench.inputs.lines(A9A, ADULT_LINES), bench.inputs.unpacked(A9A_TEST)


def kernel_adult(bench):
    """Adult as in YJ08, rbf kernel, 1 and 100 per example: primal, test error and time against LIBSVM"""
    data, test = adult(bench)
    out, table = bench.outcome, []
    for weight, goal in PRIMAL_GOAL.items():
        libsvm = peer(bench, data, test, ADULT_GAMMA, weight)
        table.append(libsvm.row(weight))
        found = {}
        for name, (options, seeds) in ADULT.items():
            found[name] = Runs(bench, data, test, [*setting(ADULT_GAMMA, weight), *options], seeds)
            table.append(found[name].row(weight, name, over=libsvm.one.primal))
        linear = found[LINEAR]
        out.at_most(f"weight {weight}, {LINEAR}: exact primal above LIBSVM's", 100 * (linear.primal / libsvm.one.primal - 1), goal, " %")
        out.at_most(f"weight {weight}, {LINEAR}: test error above LIBSVM's", linear.error - libsvm.error, 0.2, " points")
        out.at_most(f"weight {weight}, {LINEAR}: training, {CORES} threads, against LIBSVM's", linear.seconds, libsvm.seconds, " s")
        out.at_most(f"weight {weight}, {CONSTANT}: test error above LIBSVM's", found[CONSTANT].error - libsvm.error, 0.5, " points")
        if weight == 1:
            run = found[EXACT].runs[-1]  # the last one trained, whose model is still there
            recomputed = bench.command(build.peers_python(), SCRIPT, "primal", data, run.model).json()["primal"]
            difference = abs(recomputed / run["primal"] - 1)
            out.check(f"{EXACT}: primal against numpy's, from the saved model", "within 1e-6", f"{difference:.1e}", difference <= 1e-6)
            sklearn = Libsvm(bench, data, test).train(ADULT_GAMMA, weight, form="sklearn")
            out.state("weight 1: scikit-learn's SVC, 1 thread", f"{sklearn.wall:.2f} s wall, {sklearn.seconds:.2f} s CPU, primal {sklearn.primal:.1f}")
    out.table(f"{CORES} threads, {len(SEEDS)} seeds, mean ± standard deviation", ["weight", *HEADER], table)


def board(bench, examples):
    return bench.inputs.checkers(bench.command, examples, 1), bench.inputs.checkers(bench.command, CHECKERS_TEST, 2)


def on_board(bench, examples, solvers, with_primal=True):
    """Runs of ours on so many examples, by solver."""
    data, test = board(bench, examples)

    def runs(name):
        own, seeds = CHECKERS[name]
        return Runs(bench, data, test, [*setting(CHECKERS_GAMMA, 1), *own], seeds, seconds=1800, with_primal=with_primal)

    return {name: runs(name) for name in solvers}


def judge_errors(bench, examples, found, others=()):
    least = min([runs.error for runs in found.values()] + list(others))
    for name in (CONSTANT, LINEAR):
        bench.outcome.at_most(f"{examples:,} examples, {name}: test error above the best", found[name].error - least, 0.5, " points")


def kernel_checkers(bench):
    """the checkerboard of YJ08 at 10,000 and 100,000 examples: errors and times, against LIBSVM"""
    table, found, libsvm = [], {}, {}
    for examples in (10_000, 100_000):
        libsvm[examples] = peer(bench, *board(bench, examples), CHECKERS_GAMMA, 1)
        found[examples] = on_board(bench, examples, CHECKERS)
        judge_errors(bench, examples, found[examples], [libsvm[examples].error])
        table.append(libsvm[examples].row(f"{examples:,}"))
        table += [runs.row(f"{examples:,}", name, over=libsvm[examples].one.primal) for name, runs in found[examples].items()]
    large, theirs = found[100_000], libsvm[100_000]
    for name, runs in large.items():
        bench.outcome.state(f"100,000 examples: LIBSVM's time over that of {name}", f"{theirs.seconds / runs.seconds:.2f}")
        growth = runs.seconds / found[10_000][name].seconds
        bench.outcome.state(f"{name}: time at 100,000 over that at 10,000", f"{growth:.2f}")
    bench.outcome.table(f"{CORES} threads, {len(SEEDS)} seeds, mean ± standard deviation", ["examples", *HEADER], table)


def kernel_checkers_million(bench):
    """the checkerboard at 1,000,000 examples beside 100,000: sampled-constant flat, sampled-linear linear"""
    million, less = 1_000_000, 100_000
    found = {examples: on_board(bench, examples, (CONSTANT, PAPERS_CONSTANT, LINEAR), with_primal=False) for examples in (less, million)}
    libsvm = peer(bench, *board(bench, less), CHECKERS_GAMMA, 1)
    judge_errors(bench, million, found[million])
    flat, linear = (found[million][name].seconds / found[less][name].seconds for name in (CONSTANT, LINEAR))
    bench.outcome.at_most(f"{CONSTANT}: time at 1,000,000 over that at 100,000", flat, 1.5)
    bench.outcome.at_most(f"{LINEAR}: time at 1,000,000 over ten times that at 100,000", linear / 10, 1.15)
    papers = found[million][PAPERS_CONSTANT].seconds / found[less][PAPERS_CONSTANT].seconds
    bench.outcome.state(f"{PAPERS_CONSTANT}: time at 1,000,000 over that at 100,000", f"{papers:.2f}")
    times = libsvm.seconds / found[million][CONSTANT].seconds
    bench.outcome.at_least(f"LIBSVM's time at 100,000 over that of {CONSTANT} at 1,000,000", times, 5)
    table = [runs.row(f"{examples:,}", name) for examples, by_name in found.items() for name, runs in by_name.items()]
    bench.outcome.table(f"{CORES} threads, {len(SEEDS)} seeds", ["examples", *HEADER], [*table, libsvm.row(f"{less:,}")])


def chosen_gamma(bench):
    """The gamma with the least error on a part of the subsample after learning from the rest of it, and a row for each."""
    learn, hold = bench.inputs.lines(COVERTYPE, LEARNED_FROM), bench.inputs.lines(COVERTYPE, SUBSAMPLE, LEARNED_FROM)
    errors = {}
    for gamma in COVERTYPE_GAMMAS:
        run = bench.train("binary", learn, "--positive", COVERTYPE_CLASS, *setting(gamma, 1), "--solver", LINEAR, threads=CORES)
        errors[gamma] = 100 * bench.evaluate(run.model, hold)["mean_loss"]
    return min(errors, key=errors.get), [[gamma, f"{error:.2f}"] for gamma, error in errors.items()]


def largest_for_libsvm(bench, gamma):
    """LIBSVM's runs on 12,500 examples, twice as many, and so on, as long as time that grows with the square stays within the limit."""
    test = bench.inputs.signed(bench.inputs.unpacked(COVERTYPE_TEST), str(COVERTYPE_CLASS))
    examples, runs = 12_500, []
    while not runs or 4 * runs[-1][1].seconds <= LIBSVM_SECONDS and examples <= 400_000:
        data = bench.inputs.signed(bench.inputs.lines(COVERTYPE, examples), str(COVERTYPE_CLASS))
        runs.append((data, Libsvm(bench, data, test).train(gamma, 1)))
        examples *= 2
    return test, runs


def kernel_covertype(bench):
    """covertype, class 2 against the rest, rbf kernel: sampled-linear on all examples, LIBSVM on as many as it can"""
    gamma, grid = chosen_gamma(bench)
    out, options = bench.outcome, [*setting(gamma, 1), "--solver", LINEAR]
    whole, limit = bench.inputs.plain(COVERTYPE), ["--max-seconds", COVERTYPE_SECONDS]
    run = bench.train("binary", whole, "--positive", COVERTYPE_CLASS, *options, *limit, threads=CORES, seconds=2 * COVERTYPE_SECONDS)
    error = 100 * bench.evaluate(run.model, bench.inputs.packed(COVERTYPE_TEST))["mean_loss"]
    out.check(f"{LINEAR}, all {run['examples']:,} examples: test error", "< 19.00 %", f"{error:.2f} %", error < 19)
    what = f"{run['status']}, {run['certificate']}, {run.with_kernel:.0f} s, {run['rounds']} rounds, {run['dimension']:,} support vectors"
    out.state(f"{LINEAR}, all examples", f"{what}, gap {run['gap'] / run['c']:.4f} C, {run['peak_rss_mb']:.0f} MB")
    test, runs = largest_for_libsvm(bench, gamma)
    table = []
    for data, libsvm in runs:
        ours = Runs(bench, data, test, options, SEEDS[:1], seconds=1800)
        times = f"{libsvm.seconds:.2f} CPU ({libsvm.origin})"
        table.append([f"{libsvm.examples:,}", "LIBSVM, 1 thread", f"{libsvm.primal:.1f}", "", f"{100 * libsvm.test_error:.2f}", times, "", libsvm.support])
        table.append(ours.row(f"{libsvm.examples:,}", LINEAR, over=libsvm.primal))
    out.state(f"{libsvm.examples:,} examples: LIBSVM's CPU; {LINEAR}'s wall, {CORES} threads", f"{libsvm.seconds:.0f} s; {ours.seconds:.1f} s")
    out.table(f"gamma {gamma:g}, {CORES} threads", ["examples", *HEADER], table)
    out.table(f"gamma, learned from {LEARNED_FROM:,} examples of the training data", ["gamma", f"error on the next {SUBSAMPLE - LEARNED_FROM:,}, %"], grid)
