"""Classes in a taxonomy: the four columns of THJA04 table 1, and the argmax over thousands of classes."""

import collections
import random
import statistics

from measure import CORES, say

DATA = {"newsgroups": "taxonomy/newsgroups", "RCV1 topics": "taxonomy/rcv1_topics"}
COLUMNS = {
    "flt 0/1": ("flat", "zero-one"),
    "tax 0/1": ("taxonomy", "zero-one"),
    "flt tree": ("flat", "tree"),
    "tax tree": ("taxonomy", "tree"),
}
# The last column again, with what ancestors count for by the lines that C is chosen by; 1 is the paper's.
WEIGHTED, ANCESTORS = "tax tree, weighed", (0.25, 0.5, 1)
LADDER = "0.1,1,10,100"
PER_CLASS = (2, 4)
DRAWS = 10
# With all lines: a tenth is left out to choose C by, another one so often.
FOLDS = 5
# Lines that are not learned from, by which C is chosen.
OTHERS = 1000


def label(line):
    return line.partition(" ")[0]


def draw(lines, count, seed):
    """So many examples of each class that has them, drawn with that seed, and other lines of these classes."""
    chance, of_class = random.Random(seed), collections.defaultdict(list)
    for at, line in enumerate(lines):
        of_class[label(line)].append(at)
    drawn = [at for name in sorted(of_class) if len(of_class[name]) >= count for at in chance.sample(of_class[name], count)]
    names = {label(lines[at]) for at in drawn}
    others = sorted({at for at, line in enumerate(lines) if label(line) in names} - set(drawn))
    return [lines[at] for at in drawn], [lines[at] for at in sorted(chance.sample(others, min(OTHERS, len(others))))]


def column(bench, train, others, test, taxonomy, column):
    """Accuracy in per cent, tree loss and the C for each example: the one with the least of the column's own loss on `others`."""
    architecture, loss = COLUMNS["tax tree" if column == WEIGHTED else column]
    options = ["--taxonomy", taxonomy, "--architecture", architecture, "--loss", loss, "--relative-gap", 0.01]

    def best(*more):
        run = bench.train("taxonomy", train, *options, *more, "--heldout", others, "--keep-best", "--c-path-per-example", LADDER, threads=CORES)
        found = bench.evaluate(run.model, test)
        return 100 * found["accuracy"], found["tree_loss"], f"{run['c'] / run['examples']:g}", run["heldout_loss"]

    if column != WEIGHTED:
        return best()[:3]
    *found, c, _, weight = min(((*best("--ancestor-weight", weight), weight) for weight in ANCESTORS), key=lambda one: one[3])
    return *found, f"{c}/{weight:g}"


def in_words(values, digits):
    spread = f" ± {statistics.stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.{digits}f}{spread}"


def taxonomy_thja04(bench):
    """newsgroups and RCV1's topics, 2 and 4 examples a class and all: accuracy and tree loss, flat and by taxonomy, with either loss (THJA04 table 1)"""
    inputs, table = bench.inputs, []
    for name, source in DATA.items():
        taxonomy = inputs.unpacked(f"{source}.taxonomy")
        train, test = inputs.plain(f"{source}.train"), inputs.plain(f"{source}.test")
        lines, tests = (path.read_text().splitlines(keepends=True) for path in (train, test))
        for count in (*PER_CLASS, None):
            found = {column: [] for column in (*COLUMNS, WEIGHTED)}
            for seed in range(DRAWS if count else FOLDS):
                if count:
                    drawn, others = draw(lines, count, seed)
                else:
                    drawn, others = [line for at, line in enumerate(lines) if at % 10 != seed], lines[seed::10]
                known = {label(line) for line in drawn}
                parts = {"": drawn, ".others": others, ".test": [line for line in tests if label(line) in known]}
                stem = f"{train.name}.{count or 'all'}-a-class.{seed}"
                files = [inputs.make(stem + part, lambda out, of=of: out.writelines(line.encode() for line in of)) for part, of in parts.items()]
                for which in found:
                    found[which].append(column(bench, *files, taxonomy, which))
            losses = {which: statistics.mean(tree for _, tree, _ in of) for which, of in found.items()}
            amount = f"{count} a class" if count else "all"
            say(f"   {name}, {amount}: " + ", ".join(f"{which} {loss:.4f}" for which, loss in losses.items()))
            others = min(loss for which, loss in losses.items() if which not in ("tax tree", WEIGHTED))
            for which in ("tax tree", WEIGHTED):
                measured = f"{losses[which]:.4f}, the best of the first three columns {others:.4f}"
                bench.outcome.check(f"{name}, {amount}: lowest tree loss", which, measured, losses[which] < others)
            for what, at, digits in (("accuracy %", 0, 2), ("tree loss", 1, 4)):
                table.append([name, amount, what, *(in_words([one[at] for one in found[which]], digits) for which in found)])
            chosen = [collections.Counter(c for _, _, c in found[which]) for which in found]
            table.append([name, amount, "C (draws)", *(" ".join(f"{c} ({n})" for c, n in sorted(counts.items())) for counts in chosen)])
    title = f"mean and deviation over {DRAWS} draws, of all over {FOLDS} folds; C for each example out of {LADDER}, by lines that are not learned from"
    bench.outcome.table(title, ["data", "examples", "", *COLUMNS, f"{WEIGHTED} (C/weight)"], table)


def taxonomy_argmax(bench):
    """the best of 5,000 leaves of a tree of depth 5, 100 active features: sums from the root down against each leaf's whole path"""
    say("   cargo bench --bench taxonomy")
    found = bench.command("cargo", "bench", "--package", "maxmargin", "--bench", "taxonomy", seconds=1800).json()
    bench.outcome.at_least("argmax: times faster than the faster way over whole paths", found["times_faster"], 3.5, digits=1)
    bench.outcome.at_least("the same with the tree loss", found["times_faster_with_loss"], 3.5, digits=1)
    ways = ("argmax_us", "argmax_with_loss_us", "paths_emitted_us", "paths_by_node_us")
    bench.outcome.state("µs: argmax, with the loss, whole paths as features are emitted, by rows of nodes", ", ".join(f"{found[way]:.0f}" for way in ways))
