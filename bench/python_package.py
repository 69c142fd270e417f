"""The Python package: what it costs beside the program, and against other packages."""

import statistics

from build import package_python
from factors import first_blocks
from inputs import A9A, EWT_UPOS, NEWSGROUPS, RCV1, USPS
from measure import CORES, PROGRAM, ROOT

PEER = ROOT / "bench" / "python_peer.py"
REPETITIONS = 3
# Of runs of the program and of Python, one after the other.
TURNS = 5

# Asked for one after the other, until the objective is no worse than the peer's; then gaps between the last two, to this factor.
GAPS = (0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4, 3e-5, 1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8)
FINER = 1.2


def peer(bench, *words, seconds=1800):
    return bench.command(package_python(), PEER, *words, seconds=seconds).json()


def fastest(runs):
    return min(runs, key=lambda run: run["seconds"])


def by_turns(program, python):
    """The runs of both, one after the other, for the machine is not the same all the time."""
    package_python()
    return zip(*((program(), python()) for _ in range(TURNS)), strict=True)


def python_overhead(bench):
    """classes and tags, the data in memory: seconds of fit over those of the program without reading"""
    table, gap = [], 0.001
    data = bench.inputs.plain(NEWSGROUPS)
    features, test = tag_features(bench)
    pairs = {
        "newsgroups, classes": (
            lambda: bench.train("multiclass", data, "--relative-gap", gap, threads=CORES),
            lambda: peer(bench, "rows", data, gap, CORES),
        ),
        "treebank, tags as dicts": (
            lambda: bench.train("tag", features, "--format", "crfsuite", "--c-per-example", 0.1, threads=CORES),
            lambda: peer(bench, "tagger", features, test, "maxmargin"),
        ),
    }
    for name, pair in pairs.items():
        runs, fits = by_turns(*pair)
        # As fit does, the program measures the training loss and makes a model after training.
        program, python = min(run.wall - run["seconds_reading"] for run in runs), fastest(fits)
        training = min(run.seconds for run in runs)
        table.append([name, f"{program:.3f}", f"{training:.3f}", f"{python['seconds']:.3f}", f"{python['training']:.3f}"])
        bench.outcome.at_most(f"{name}: fit over the program without reading", python["seconds"] / program, 1.1)
        bench.outcome.state(f"{name}: fit over the program's training alone", f"{python['seconds'] / training:.2f}")
    header = ["data", "program without reading s", "of that, training s", "Python, fit s", "of that, training s"]
    bench.outcome.table(f"{CORES} threads, best of {TURNS} by turns; fit begins with a sparse matrix or lists of dicts", header, table)


def gap_that_does(objective, wanted):
    """The largest relative gap, but for a factor of `FINER`, that `objective` has to be asked for so that it is no worse than wanted."""
    enough = next((gap for gap in GAPS if objective(gap) <= wanted), None)
    if enough in (None, GAPS[0]):
        return enough
    too_much = GAPS[GAPS.index(enough) - 1]
    while too_much > FINER * enough:
        middle = (too_much * enough) ** 0.5
        enough, too_much = (middle, too_much) if objective(middle) <= wanted else (enough, middle)
    return enough


def python_linear(bench):
    """LinearClassifier against scikit-learn's LinearSVC at an objective that is no worse, no intercept"""
    table = []
    for name, kind in ((A9A, "hinge"), (RCV1, "hinge"), (USPS, "crammer_singer"), (NEWSGROUPS, "crammer_singer")):
        data = bench.inputs.plain(name)
        theirs = fastest(peer(bench, "linear", data, kind, 1, "sklearn") for _ in range(REPETITIONS))
        gap = gap_that_does(lambda gap: peer(bench, "linear", data, kind, 1, "maxmargin", gap)["primal"], theirs["primal"])
        if gap is None:
            bench.outcome.check(f"{data.name}: objective no worse than LinearSVC's", f"<= {theirs['primal']:.6g}", "not reached", False)
            continue
        ours = fastest(peer(bench, "linear", data, kind, 1, "maxmargin", gap) for _ in range(REPETITIONS))
        both = fastest(peer(bench, "linear", data, kind, 1, "maxmargin", gap, CORES) for _ in range(REPETITIONS))
        bench.outcome.at_most(f"{data.name}, {kind}: fit over LinearSVC's, n_jobs as by default", both["seconds"] / theirs["seconds"], 0.7)
        bench.outcome.state(f"{data.name}, {kind}: with one thread", f"{ours['seconds'] / theirs['seconds']:.2f}")
        cells = [f"{run['seconds']:.3f}" for run in (theirs, ours, both)]
        table.append([data.name, kind, *cells, f"{theirs['primal']:.8g}", f"{ours['primal']:.8g}", f"{gap:.2g}"])
    header = ["data", "loss", "LinearSVC s", "LinearClassifier s", f"with {CORES} threads s", "objective of LinearSVC", "of LinearClassifier", "relative gap asked for"]
    bench.outcome.table(f"C = 1, best of {REPETITIONS}", header, table)


def tag_features(bench):
    """Sentences in CRFsuite's format, with the built-in features: to learn from, and to test on."""
    made = []
    for part, count in (("train", 4000), ("dev", 500)):
        source = first_blocks(bench, f"{EWT_UPOS}.{part}", count)
        path = source.with_suffix(f".{count}.crfsuite")
        bench.command(PROGRAM, "features", source, "-o", path)
        made.append(path)
    return made


def python_tagger(bench):
    """SequenceTagger against sklearn-crfsuite: dicts to a trained model, time and memory"""
    features, test = tag_features(bench)
    runs = {who: fastest(peer(bench, "tagger", features, test, who) for _ in range(REPETITIONS)) for who in ("maxmargin", "sklearn-crfsuite")}
    ours, theirs = runs["maxmargin"], runs["sklearn-crfsuite"]
    bench.outcome.at_most("fit over sklearn-crfsuite's", ours["seconds"] / theirs["seconds"], 1 / 3)
    own = lambda run: run["mb"] - run["mb_data"]
    bench.outcome.at_most("memory over sklearn-crfsuite's, beyond the dicts", own(ours) / own(theirs), 0.5)
    bench.outcome.state("memory with the dicts", f"{ours['mb']:.0f} MB, {theirs['mb']:.0f} MB")
    table = [[who, f"{run['seconds']:.2f}", f"{own(run):.0f}", f"{100 * run['accuracy']:.2f}"] for who, run in runs.items()]
    bench.outcome.table(f"4,000 sentences, defaults (C = 0.1; CRF()), best of {REPETITIONS}", ["by", "fit s", "memory beyond the dicts MB", "accuracy %"], table)


def python_task(bench):
    """a multiclass task written in Python with numpy: microseconds a call of the oracle beyond the user's own code"""
    found = [peer(bench, "task") for _ in range(REPETITIONS)]
    for solver in found[0]:
        middle = {key: statistics.median(run[solver][key] for run in found) for key in found[0][solver]}
        bench.outcome.at_most(f"{solver}: oracle beyond the user's code", middle["oracle_us"], 20, " µs", digits=1)
        bench.outcome.state(f"{solver}: calls; the user's code; all but the user's code", f"{middle['calls']:.0f}; {middle['own_us']:.1f} µs; {middle['all_us']:.1f} µs a call")
