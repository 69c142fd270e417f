"""Taggers of the English Web Treebank against CRFsuite, on the same files: the built-in features, written once in CRFsuite's format.

CRFsuite's time is appending and training: reading the text, which in Python is slow, does not count. maxmargin's includes reading.
"""

import json
import math
from dataclasses import dataclass

import build
from crfsuite import SCRIPT, Crfsuite
from inputs import EWT_UPOS, EWT_XPOS, attributes, blocks, tokens
from measure import PROGRAM, say

ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa", "arow")
TREEBANKS = {"xpos": EWT_XPOS, "upos": EWT_UPOS}
REPETITIONS = 3
# How far above CRFsuite's best the accuracy is to be, and how near to its last the accuracy of CRFsuite is where it may stop, in points.
ABOVE, NEAR = 0.4, 0.1
EARLY_STOPS = (1, 2, 3, 5, 8, 12, 20, 30, 50, 75, 100)


def files(bench, source):
    """What to learn from and what to be measured on, in CRFsuite's format."""
    return [bench.inputs.crfsuite(f"{source}.{part}", bench.command) for part in ("train", "dev")]


def train(bench, data, *options, threads=1):
    return bench.train("tag", data, "--format", "crfsuite", *options, threads=threads)


def all_algorithms(peer):
    """CRFsuite at its defaults, by algorithm, and the name of the one with the best accuracy."""
    runs = {algorithm: peer.train(algorithm) for algorithm in ALGORITHMS}
    return runs, max(runs, key=lambda algorithm: runs[algorithm].accuracy)


def tag_accuracy(bench):
    """English Web Treebank, xpos and upos: held-out accuracy at the defaults against CRFsuite's five algorithms at theirs"""
    table = []
    for name, source in TREEBANKS.items():
        data, dev = files(bench, source)
        ours = train(bench, data)
        accuracy = 100 * bench.evaluate(ours.model, dev)["token_accuracy"]
        with Crfsuite(bench, data, dev) as peer:
            runs, best = all_algorithms(peer)
        what = f"{name}: dev accuracy of tokens (CRFsuite's best, {best}: {runs[best].accuracy:.2f} %, + {ABOVE})"
        bench.outcome.at_least(what, accuracy, runs[best].accuracy + ABOVE, " %")
        table.append([name, f"maxmargin, {ours['solver']}", f"{ours['passes']:g}", f"{accuracy:.2f}", f"{ours.seconds:.1f}", "this run"])
        for algorithm, run in runs.items():
            table.append([name, f"CRFsuite, {algorithm}", run.iterations, f"{run.accuracy:.2f}", f"{run.seconds:.1f}", run.origin])
    bench.outcome.table("1 thread", ["tags", "by", "passes or iterations", "dev accuracy %", "training s", "measured in"], table)


@dataclass
class Look:
    """A look at the held-out data while training: when, in seconds from the start of the program, and what accuracy it found, in %."""

    seconds: float
    passes: float
    accuracy: float


class Watched:
    """Runs of maxmargin with a look at the held-out data after every pass."""

    def __init__(self, bench, data, dev, threads):
        log = bench.inputs.folder / "looks.jsonl"
        per_sentence = 100 * len(blocks(dev)) / tokens(dev)
        self.runs = []
        for _ in range(REPETITIONS):
            run = train(bench, data, "--heldout", dev, "--log", log, threads=threads)
            lines = [json.loads(line) for line in log.read_text().splitlines()]
            self.runs.append([
                Look(run["seconds_reading"] + line["seconds"], line["passes"], 100 - per_sentence * line["heldout"])
                for line in lines if line["heldout"] is not None
            ])

    def reach(self, accuracy):
        """The first look that reaches the accuracy, of the fastest run."""
        never = Look(math.inf, math.inf, math.nan)
        return min((next((look for look in looks if look.accuracy >= accuracy), never) for looks in self.runs), key=lambda look: look.seconds)

    @property
    def last(self):
        return self.runs[0][-1]

    @property
    def best(self):
        return max(self.runs[0], key=lambda look: look.accuracy)


def early_stop(peer, algorithm, full):
    """The first of EARLY_STOPS whose accuracy is near the full run's, and its run; or else the full run."""
    for iterations in EARLY_STOPS:
        run = peer.train(algorithm, max_iterations=iterations)
        if run.accuracy >= full.accuracy - NEAR:
            return run
    return full


def reached(name, algorithm, theirs, ours):
    """Rows of the table: a run of CRFsuite, and maxmargin where it reaches the same accuracy."""
    rows = [[f"CRFsuite, {algorithm}", theirs.iterations, theirs.accuracy, theirs.seconds, theirs.origin]]
    for threads, watched in ours.items():
        look = watched.reach(theirs.accuracy)
        rows.append([f"maxmargin, threads {threads}", look.passes, look.accuracy, look.seconds, "this run"])
    return [[name, by, f"{passes:g}", f"{accuracy:.2f}", f"{seconds:.2f}", origin] for by, passes, accuracy, seconds, origin in rows]


def tag_seconds(bench):
    """the same: seconds from file to CRFsuite's best accuracy against its training time, and against the same stopped early"""
    out, table = bench.outcome, []
    for name, source in TREEBANKS.items():
        data, dev = files(bench, source)
        with Crfsuite(bench, data, dev) as peer:
            runs, best = all_algorithms(peer)
            full = runs[best]
            early = early_stop(peer, best, full)
        ours = {threads: Watched(bench, data, dev, threads) for threads in (1, 2)}
        for threads, share in ((1, 25), (2, 40)):
            ratio = ours[threads].reach(full.accuracy).seconds / full.seconds
            what = f"{name}: reading and training to {best}'s {full.accuracy:.2f} % over its time (1/{share}), threads {threads}"
            out.at_most(what, ratio, 1 / share, digits=3)
        ratios = {threads: watched.reach(early.accuracy).seconds / early.seconds for threads, watched in ours.items()}
        out.at_most(f"{name}: the same where {best} stops within {NEAR} points of that, {early.accuracy:.2f} %, threads 1", ratios[1], 0.5)
        out.state(f"{name}: the same, threads 2", f"{ratios[2]:.2f}")
        out.state(f"{name}: our accuracy at the last look, and at the best", f"{ours[1].last.accuracy:.2f} %, {ours[1].best.accuracy:.2f} %")
        table += reached(name, best, full, ours) + reached(name, best, early, ours)
    out.table(f"maxmargin: best of {REPETITIONS}", ["tags", "by", "passes or iterations", "dev accuracy %", "s", "measured in"], table)


def tag_pass(bench):
    """xpos: a pass of the loss-augmented oracle against an epoch of CRFsuite's averaged perceptron"""
    data, dev = files(bench, EWT_XPOS)
    count = tokens(data)
    runs = [train(bench, data, "--solver", "bcfw", "--max-passes", 5) for _ in range(REPETITIONS)]
    # Seconds in the oracle over its passes: what it is asked for between the steps of the solver, and the pass for the certificate.
    seconds = min(run["seconds_oracle"] * run["examples"] / run["oracle_calls"] for run in runs)
    with Crfsuite(bench, data, dev) as peer:
        one, six = (min(peer.train("ap", max_iterations=epochs).seconds for _ in range(2)) for epochs in (1, 6))
    epoch = (six - one) / 5
    tags = len({line.partition("\t")[0] for block in blocks(data) for line in block.splitlines()})
    bytes_a_token = attributes(data) / count * tags * 8
    speed = bench.command(build.peers_python(), SCRIPT, "read", 1000).json()["bytes_per_second"]

    def nanoseconds(of_a_pass):
        return 1e9 * of_a_pass / count

    out = bench.outcome
    out.at_most("oracle's pass over an epoch of CRFsuite's ap", seconds / epoch, 0.4)
    out.state("a token of the oracle's pass, 1 thread", f"{nanoseconds(seconds):.0f} ns")
    out.state("a token of an epoch of ap (6 epochs less 1, over 5)", f"{nanoseconds(epoch):.0f} ns")
    out.state("a token of training, steps and certificate included", f"{nanoseconds(min(run.seconds / run['passes'] for run in runs)):.0f} ns")
    out.state(f"weights read a token ({attributes(data) / count:.1f} features, {tags} tags, 8 bytes)", f"{bytes_a_token:.0f} bytes")
    out.state(
        f"a plain read of as many bytes from memory, at {speed / 1e9:.1f} GB/s (numpy's sum)",
        f"{1e9 * bytes_a_token / speed:.0f} ns, {100 * bytes_a_token / speed / (seconds / count):.0f} % of the oracle's",
    )


def tag_predict(bench):
    """xpos: tokens a second of the whole program against CRFsuite's tagging"""
    data, dev = files(bench, EWT_XPOS)
    test = bench.inputs.crfsuite(f"{EWT_XPOS}.test", bench.command)
    everything = bench.inputs.make(f"{data.name}.all", lambda out: out.writelines(path.read_bytes() for path in (dev, test, data)))
    count = tokens(everything)
    model = train(bench, data).model
    command = [PROGRAM, "predict", model, everything, "-o", bench.inputs.folder / "predicted", "--threads", 1]
    theirs = bench.inputs.folder / "ap.crfsuite"
    with Crfsuite(bench, data, dev) as peer:
        peer.train("ap", theirs, max_iterations=10)
    # By turns: the machine is not equally fast at all times.
    runs, peers = [], []
    for _ in range(REPETITIONS):
        runs += [bench.command(*command) for _ in range(REPETITIONS)]
        peers.append(bench.command(build.peers_python(), SCRIPT, "tag", theirs, everything).json())
        say(f"   predict: {count} tokens in {runs[-1].wall:.2f} s; CRFsuite: {peers[-1]}")
    wall, cpu = min(run.wall for run in runs), min(run.cpu for run in runs)
    reading, building, tagging = (min(peer[part] for peer in peers) for part in ("reading", "building", "tagging"))
    out = bench.outcome
    out.at_least("tokens a second, whole program against whole program, CRFsuite's text read by Python", (reading + building + tagging) / wall, 5)
    out.state("the same, times CRFsuite's without reading its text", f"{(building + tagging) / wall:.2f}")
    out.state("the same, times CRFsuite's of tagging alone", f"{tagging / wall:.2f}")
    rows = {
        "maxmargin: model and text read, tags written": wall,
        "the same, CPU": cpu,
        "CRFsuite: text read by Python, sequences built and tagged": reading + building + tagging,
        "CRFsuite: sequences built and tagged": building + tagging,
        "CRFsuite: sequences tagged": tagging,
    }
    out.table(
        f"{count} tokens, 1 thread, best of {REPETITIONS ** 2}; CRFsuite's model is ap's after 10 epochs",
        ["what", "s", "tokens a second"],
        [[what, f"{seconds:.2f}", f"{count / seconds:.0f}"] for what, seconds in rows.items()],
    )
