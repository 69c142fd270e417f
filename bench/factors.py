"""Training factor by factor, as in YHZ16: chains of many labels against BCFW, and the curves of the paper's figures."""

import json
import math
from dataclasses import dataclass

from build import peers_python
from graphs import BIBTEX
from inputs import EWT_XPOS, QUICK_DIVISOR, blocks, tokens
from measure import CORES, PROGRAM, ROOT, relative
from measure import run as run_command

SLOVAK = "tag/slovak_morph"

# Of generated sentences words are the only features. Some more are generated to look at while training: 15,000 tokens, for with
# 100 sentences two tokens decided when 99 % of an accuracy was reached. But with 3,000 labels a look at so many takes half a minute.
WORDS, HELD_OUT, FEW_HELD_OUT = 50_000, 1000, 100
GDMM, BCFW = "gdmm", "bcfw"
# A peer that never comes so far is given this much more time than it would have to take for the goal.
PATIENCE = 1.2
NEAR_BEST = 0.99
# Of short runs, one after the other: the machine is not the same all the time.
TURNS = 5


@dataclass
class Chains:
    """Sentences to learn from and to look at, how many times longer bcfw should take, and how long gdmm may."""

    name: str
    data: object
    heldout: object
    goal: float | None
    seconds: int
    options: tuple = ()


@dataclass
class Look:
    """A look at the held-out data while training: training seconds until then, and the accuracy, in %."""

    seconds: float
    passes: float
    accuracy: float


def generated(bench, tags, sentences, held_out=HELD_OUT):
    """Generated sentences of about 50,000 words to learn from, and others of the same hidden model."""
    divisor = QUICK_DIVISOR if bench.inputs.quick else 1
    sentences //= divisor
    whole = bench.inputs.folder / f"chains.{tags}.{sentences}"
    sizes = ["--examples", sentences + held_out, "--tags", tags, "--words", WORDS // tags, "--noise", 0.05, "--seed", 1]
    bench.command(PROGRAM, "generate", "tag", *sizes, "-o", whole)
    every = blocks(whole)
    write = lambda part: lambda out: out.write("".join(f"{sentence}\n\n" for sentence in part).encode())
    return bench.inputs.make(f"{whole.name}.train", write(every[:-held_out])), bench.inputs.make(f"{whole.name}.held", write(every[-held_out:]))


def words(bench):
    """Words as the only features."""
    return ("--template", bench.inputs.make("words.template", lambda out: out.write(b"U:%x[0,0]\n")))


def first_blocks(bench, name, count):
    """The first sentences of a file."""
    path = bench.inputs.plain(name)
    text = "".join(f"{sentence}\n\n" for sentence in blocks(path)[:count])
    return bench.inputs.make(f"{path.name}.sentences{count}", lambda out: out.write(text.encode()))


def watched(bench, chains, solver, limit):
    """A run with a look at the held-out data after every pass, and at the end."""
    log = bench.inputs.folder / "looks.jsonl"
    settings = [*chains.options, "--solver", solver, "--max-seconds", limit, "--heldout", chains.heldout, "--log", log]
    run = bench.train("tag", chains.data, *settings, threads=CORES, seconds=20 * limit)
    per_sentence = 100 * len(blocks(chains.heldout)) / tokens(chains.heldout)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    looks = [
        Look(line["seconds"] - line["seconds_heldout"], line["passes"], 100 - per_sentence * line["heldout"])
        for line in lines if line["heldout"] is not None
    ]
    # Without what comes after the last step, to know the objective.
    seconds = max(min(run.seconds, limit) - lines[-1]["seconds_heldout"], looks[-1].seconds)
    return [*looks, Look(seconds, run["passes"], 100 * bench.evaluate(run.model, chains.heldout)["token_accuracy"])]


def reach(looks, accuracy):
    return next((look for look in looks if look.accuracy >= accuracy), Look(math.inf, math.inf, math.nan))


def best_of(looks):
    return max(look.accuracy for look in looks)


def compare(bench, chains):
    """Seconds to 99 % of the best accuracy that either solver finds, and their ratio."""
    ours = watched(bench, chains, GDMM, chains.seconds)
    needed = reach(ours, NEAR_BEST * best_of(ours)).seconds
    # Long enough to tell whether the goal is met.
    limit = math.ceil(max(chains.seconds, PATIENCE * (chains.goal or 1) * needed))
    theirs = watched(bench, chains, BCFW, limit)
    best = max(best_of(ours), best_of(theirs))
    first = {name: reach(looks, NEAR_BEST * best) for name, looks in ((GDMM, ours), (BCFW, theirs))}
    what = f"{chains.name}: seconds of bcfw to {100 * NEAR_BEST:.0f} % of the best accuracy ({best:.2f} %) over gdmm's"
    seconds = min(first[BCFW].seconds, theirs[-1].seconds)
    if math.isinf(first[BCFW].seconds):
        what = f"{what} (never reached; its {seconds:.0f} s count)"
    ratio = seconds / first[GDMM].seconds
    if chains.goal is None:
        bench.outcome.state(what, f"{ratio:.1f}")
    else:
        bench.outcome.at_least(what, ratio, chains.goal)
    own = {name: reach(looks, NEAR_BEST * best_of(theirs)).seconds for name, looks in ((GDMM, ours), (BCFW, theirs))}
    what = f"{chains.name}: the same to {100 * NEAR_BEST:.0f} % of bcfw's own best ({best_of(theirs):.2f} %)"
    bench.outcome.state(what, f"{own[BCFW] / own[GDMM]:.1f}")
    return [
        [chains.name, name, f"{first[name].seconds:.2f}", f"{first[name].passes:g}", f"{first[name].accuracy:.2f}", f"{best_of(looks):.2f}", f"{looks[-1].seconds:.1f}"]
        for name, looks in ((GDMM, ours), (BCFW, theirs))
    ]


HEADER = ["chains", "solver", "s to 99 % of the best", "passes", "accuracy there %", "best accuracy %", "s in all"]


def factor_chains(bench):
    """chains of 49, 500 and 3,000 labels: gdmm against bcfw"""
    problems = [
        Chains("treebank, 49 tags", bench.inputs.plain(f"{EWT_XPOS}.train"), bench.inputs.plain(f"{EWT_XPOS}.dev"), 1 / 1.5, 20),
        Chains("generated, 500 tags", *generated(bench, 500, 3000), 3, 40, words(bench)),
        Chains("generated, 3,000 tags", *generated(bench, 3000, 3000, FEW_HELD_OUT), 10, 200, words(bench)),
    ]
    bench.outcome.table(f"{CORES} threads, training without the looks", HEADER, [row for chains in problems for row in compare(bench, chains)])


def factor_oracles(bench):
    """the cost of a pass with oracles that are sublinear and with such that look at all labels, by blocks as in the paper and by turns"""
    table = []
    for tags in (49, 500, 3000):
        # With fewer sentences many labels would not be there at all; with more a pass that looks at all pairs would take many minutes.
        data, _ = generated(bench, tags, 600)
        labels = len({line.split()[-1] for sentence in blocks(data) for line in sentence.splitlines()})
        for inner in ("blocks", "turns"):
            seconds = lambda *options: pass_seconds(bench, data, ["--solver", GDMM, "--inner", inner, *options], 2)[0]
            sublinear, brute = seconds(), seconds("--fmo-parts", 1)
            what = f"600 sentences, {labels:,} labels: seconds of a pass of {inner} that looks at all labels over that of a sublinear one"
            if (tags, inner) == (3000, "blocks"):
                bench.outcome.at_least(what, brute / sublinear, 8)
            else:
                bench.outcome.state(what, f"{brute / sublinear:.1f}")
            table.append([f"{labels:,}", inner, f"{sublinear:.4f}", f"{brute:.4f}"])
    header = ["labels", "inner", "sublinear oracles s", "all labels s"]
    bench.outcome.table("600 generated sentences, seconds of the second pass", header, table)


def pass_seconds(bench, data, options, passes):
    """Seconds of a pass after the first, and the run."""
    log = bench.inputs.folder / "passes.jsonl"
    run = bench.train("tag", data, *words(bench), *options, "--max-passes", passes, "--log", log, seconds=1200)
    seconds = [json.loads(line)["seconds"] for line in log.read_text().splitlines()]
    return (seconds[-1] - seconds[0]) / (len(seconds) - 1), run


def factor_slovak(bench):
    """5,000 sentences of the Slovak treebank, 1,197 tags: gdmm against bcfw"""
    data, dev = first_blocks(bench, f"{SLOVAK}.train", 5000), first_blocks(bench, f"{SLOVAK}.dev", 200)
    chains = Chains("Slovak, 1,197 tags", data, dev, None, 90, ("--min-count", 3))
    bench.outcome.table(f"{CORES} threads, training without the looks", HEADER, compare(bench, chains))


def factor_pass(bench):
    """the cost of a pass as the number of labels doubles from 500 to 4,000"""
    sizes = (500, 1000, 2000, 4000)
    data = {tags: generated(bench, tags, 2000)[0] for tags in sizes}
    # By turns, and not over as many passes as are looked at for a proof.
    turns = [{tags: pass_seconds(bench, data[tags], ["--solver", GDMM], 7) for tags in sizes} for _ in range(TURNS)]
    each = {tags: min(runs[tags][0] for runs in turns) for tags in sizes}
    for half, tags in zip(sizes, sizes[1:]):
        bench.outcome.at_most(f"{tags} labels: seconds a pass over those with half as many", each[tags] / each[half], 1.4)
    seconds = lambda tags: " ".join(f"{runs[tags][0]:.3f}" for runs in turns)
    table = [[tags, seconds(tags), f"{turns[0][tags][1]['peak_rss_mb']:.0f}"] for tags in sizes]
    bench.outcome.table(f"2,000 sentences, 7 passes, without the first; the best of {TURNS} runs counts", ["labels", "s a pass", "memory MB"], table)


def factor_memory(bench):
    """memory: 3,000 labels, 10,000 sentences, 50,000 words, and the Slovak treebank with the built-in features"""
    data, _ = generated(bench, 3000, 10_000)
    slovak = bench.inputs.plain(f"{SLOVAK}.train")
    problems = {
        "3,000 labels, 10,000 sentences": (data, words(bench)),
        "Slovak, whole, all features": (slovak, ()),
    }
    for name, (path, options) in problems.items():
        run = bench.train("tag", path, *options, "--solver", "gdmm", "--max-passes", 5, threads=CORES, seconds=1800)
        bench.outcome.at_most(f"{name}: memory of 5 passes and the model", run["peak_rss_mb"], 4000, " MB", digits=0)
        bench.outcome.state(f"{name}: weights; training", f"{run['dimension']:,}; {run.seconds:.1f} s")


def factor_certify(bench):
    """gdmm with --certify against the optimum of bcfw, on trees"""
    data = first_blocks(bench, f"{EWT_XPOS}.train", 1000)
    table, gap = [], 0.01
    settings = ["--relative-gap", gap]
    exact = bench.train("tag", data, "--solver", "bcfw", "--relative-gap", gap / 10, threads=CORES)
    run = bench.train("tag", data, "--solver", "gdmm", "--certify", *settings, threads=CORES)
    bench.outcome.check("status and certificate", "converged, exact", f"{run['status']}, {run['certificate']}", run.converged)
    bench.outcome.at_most("objective above bcfw's bound", 100 * (run["primal"] / exact["dual"] - 1), 100 * gap, " %", digits=3)
    bench.outcome.check("its bound", f"<= {exact['primal']:.3f}", f"{run['dual']:.3f}", run["dual"] <= exact["primal"])
    for name, one in (("bcfw", exact), ("gdmm", run)):
        table.append([name, f"{one['primal']:.3f}", f"{one['dual']:.3f}", f"{one['passes']:g}", f"{one.seconds:.1f}"])
    bench.outcome.table("1,000 sentences of the treebank", ["solver", "primal", "dual", "passes", "s"], table)


# YHZ16 figures 2 and 3: after so many passes.
PASSES = (1, 2, 4, 8, 16, 32, 64)
CURVES = {
    "bcfw": ["--solver", "bcfw"],
    "subgradient": ["--solver", "subgradient"],
    "soft-bcfw, rho 1": ["--solver", "soft-bcfw", "--rho", 1, "--fmo-parts", 1, "--certify"],
    "soft-bcfw, rho 10": ["--solver", "soft-bcfw", "--rho", 10, "--fmo-parts", 1, "--certify"],
    "gdmm": ["--solver", "gdmm", "--fmo-parts", 1, "--certify"],
    "gdmm, sublinear oracles": ["--solver", "gdmm", "--certify"],
}
# No solver stops before its passes are over; none is waited for longer.
TO_THE_END = ["--epsilon", 1e-9]
CURVE_SECONDS = 60


@dataclass
class Point:
    """After some passes: seconds of training, primal, error on the test data in %."""

    passes: float
    seconds: float
    primal: float
    error: float


def curve(bench, task, data, test, options, error):
    """Runs of more and more passes: with one seed, each begins as the one before."""
    points = []
    for passes in PASSES:
        run = bench.train(task, data, *options, *TO_THE_END, "--max-passes", passes, threads=CORES, seconds=20 * CURVE_SECONDS)
        points.append(Point(run["passes"], run.seconds, run["primal"], error(bench.evaluate(run.model, test))))
        if run.seconds > CURVE_SECONDS:
            break
    return points


def panels(curves):
    """Objective and error, each over passes and over seconds."""
    axes = [("passes", "primal"), ("seconds", "primal"), ("passes", "error"), ("seconds", "error")]
    return [
        {
            "x": x,
            "y": "primal objective" if y == "primal" else "test error, %",
            "scale": "log" if y == "primal" else "linear",
            "curves": {name: [[getattr(point, x), getattr(point, y)] for point in points] for name, points in curves.items()},
        }
        for x, y in axes
    ]


def factor_curves(bench):
    """the curves of YHZ16, figures 2 and 3: objective and test error against passes and seconds, six solvers, three data sets"""
    tokens_wrong = lambda scores: 100 * (1 - scores["token_accuracy"])
    missed = lambda scores: 100 * (1 - scores["micro_f1"])
    problems = {
        "treebank, 49 tags": ("tag", first_blocks(bench, f"{EWT_XPOS}.train", 3808), bench.inputs.plain(f"{EWT_XPOS}.test"), [], tokens_wrong),
        "generated, 500 tags": ("tag", *generated(bench, 500, 1000), words(bench), tokens_wrong),
        "bibtex, all pairs": ("multilabel", bench.inputs.plain(f"{BIBTEX}.train"), bench.inputs.plain(f"{BIBTEX}.test"), ["--pairs", "all"], missed),
    }
    rows, table = [], []
    for name, (task, data, test, shape, error) in problems.items():
        curves = {solver: curve(bench, task, data, test, [*shape, *options], error) for solver, options in CURVES.items()}
        rows.append({"name": name, "panels": panels(curves)})
        table += [
            [name, solver, f"{point.passes:g}", f"{point.seconds:.2f}", f"{point.primal:.4g}", f"{point.error:.2f}"]
            for solver, points in curves.items() for point in points
        ]
    path = bench.inputs.folder / "yhz16.svg"
    figure = json.dumps({"title": "objective and test error by passes and by seconds of training", "rows": rows})
    run_command([peers_python(), ROOT / "bench" / "draw_curves.py", path], text=figure)
    bench.outcome.state("figure", f"{relative(path)}: label sets have 1 - micro-F1 as error")
    bench.outcome.table(f"{CORES} threads", ["data", "solver", "passes", "s", "primal", "test error %"], table)
