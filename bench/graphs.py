"""Label sets with all pairs, against one-against-rest, and grids of pixels, against pixels by themselves."""

import json

from build import peers_python
from measure import CORES, PROGRAM, ROOT

BIBTEX, TOPICS = "multilabel/bibtex", "multilabel/rcv1_topics"
CAMVID = "graph/camvid"
PEER = ROOT / "bench" / "multilabel_peer.py"
# C for each example, chosen on every fifth line of the training data by micro-F1.
C_TRIED = (0.1, 0.3, 1, 3, 10)
HELD_OUT_EVERY = 5
PAIRS = ("none", "all")
GRID_C = (0.01, 0.1)
# Training ends by itself, after one to three minutes: what is asked for is what holds "after training".
GRID_SECONDS = 600


def split(bench, path):
    """Every fifth line, and the others."""
    lines = path.read_bytes().splitlines(keepends=True)
    hold = [line for at, line in enumerate(lines) if at % HELD_OUT_EVERY == 0]
    learn = [line for at, line in enumerate(lines) if at % HELD_OUT_EVERY]
    make = lambda part, lines: bench.inputs.make(f"{path.name}.{part}", lambda out: out.writelines(lines))
    return make("learn", learn), make("hold", hold)


def micro_f1(bench, data, test, pairs, c):
    run = bench.train("multilabel", data, "--pairs", pairs, "--c-per-example", c, threads=CORES)
    return 100 * bench.evaluate(run.model, test)["micro_f1"], run


def factor_multilabel(bench):
    """bibtex and RCV1's topics: micro-F1 with all pairs, without any, and of scikit-learn's LinearSVC one against the rest"""
    table = []
    for name, source in (("bibtex", BIBTEX), ("RCV1 topics", TOPICS)):
        data, test = bench.inputs.plain(f"{source}.train"), bench.inputs.plain(f"{source}.test")
        learn, hold = split(bench, data)
        found = {}
        for pairs in PAIRS:
            c = max(C_TRIED, key=lambda c: micro_f1(bench, learn, hold, pairs, c)[0])
            found[pairs], run = micro_f1(bench, data, test, pairs, c)
            table.append([name, f"maxmargin, --pairs {pairs}", f"{c:g}", f"{found[pairs]:.2f}", f"{run.seconds:.1f}", run["solver"]])
            if pairs == "all":
                bench.outcome.at_most(f"{name}, all pairs: training", run.seconds, 600, " s", digits=1)
        choices = ",".join(map(str, C_TRIED))
        theirs = bench.command(peers_python(), PEER, data, test, choices, seconds=1800).json()
        table.append([name, "LinearSVC, one against the rest", f"{theirs['c']:g}", f"{100 * theirs['micro_f1']:.2f}", f"{theirs['seconds']:.1f}", ""])
        bench.outcome.at_least(f"{name}: micro-F1 with all pairs against none", found["all"], found["none"], " %")
        bench.outcome.at_least(f"{name}: micro-F1 with all pairs against LinearSVC's", found["all"], 100 * theirs["micro_f1"], " %")
    header = ["data", "by", "C for each example", "test micro-F1 %", "training s", "solver"]
    bench.outcome.table(f"C by every fifth line of the training data, {CORES} threads (LinearSVC: 1)", header, table)


def without_factors(path, out):
    for line in path.read_text().splitlines():
        graph = json.loads(line)
        graph.pop("factors", None)
        graph.pop("factor_x", None)
        out.write((json.dumps(graph) + "\n").encode())


def factor_grids(bench):
    """street scenes and generated grids: accuracy with factors and without, and the share of training images whose labels are proven best"""
    inputs, table = bench.inputs, []
    scenes = [inputs.plain(f"{CAMVID}.{part}") for part in ("train", "test")]
    whole = inputs.folder / "grids"
    bench.command(PROGRAM, "generate", "graph", "--examples", 120, "--height", 20, "--width", 20, "--labels", 4, "--seed", 1, "-o", whole)
    lines = whole.read_text().splitlines(keepends=True)
    grids = [inputs.make(f"grids.{part}", lambda out, part=lines: out.writelines(line.encode() for line in part)) for part, lines in (("train", lines[:80]), ("test", lines[80:]))]
    for name, (data, test) in (("street scenes", scenes), ("generated", grids)):
        accuracy = {}
        for kind in ("with factors", "without"):
            if kind == "without":
                data, test = (inputs.make(f"{path.name}.alone", lambda out, path=path: without_factors(path, out)) for path in (data, test))
            learn, hold = split(bench, data)
            trained = lambda data, c: bench.train("graph", data, "--c-per-example", c, "--max-seconds", GRID_SECONDS, threads=CORES)
            c = max(GRID_C, key=lambda c: bench.evaluate(trained(learn, c).model, hold)["variable_accuracy"])
            run = trained(data, c)
            accuracy[kind] = 100 * bench.evaluate(run.model, test)["variable_accuracy"]
            proven = 100 * bench.evaluate(run.model, data)["proven"]
            table.append([name, kind, c, run["solver"], run["status"], f"{accuracy[kind]:.2f}", f"{proven:.1f}", f"{run.seconds:.1f}"])
            if kind == "with factors":
                bench.outcome.at_least(f"{name}: training images whose labels are proven best", proven, 90, " %", digits=1)
        bench.outcome.check(f"{name}: accuracy with factors above that without", f"> {accuracy['without']:.2f} %", f"{accuracy['with factors']:.2f} %", accuracy["with factors"] > accuracy["without"])
    bench.outcome.table(f"{CORES} threads, C by every fifth image of the training data", ["data", "model", "C for each image", "solver", "status", "test accuracy %", "proven, training images %", "training s"], table)
