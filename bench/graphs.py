"""Label sets with all pairs, against one-against-rest, and grids of pixels, against pixels by themselves."""

from build import peers_python
from measure import CORES, PROGRAM, ROOT

BIBTEX, TOPICS = "multilabel/bibtex", "multilabel/rcv1_topics"
CAMVID = "graph/camvid"
PEER = ROOT / "bench" / "multilabel_peer.py"
# C for each example, chosen on every fifth line of the training data by micro-F1.
C_TRIED = (0.1, 0.3, 1, 3, 10)
HELD_OUT_EVERY = 5
PAIRS = ("none", "all")


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
