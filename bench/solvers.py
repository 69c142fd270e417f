"""What is measured of the solvers by themselves: the default one's threads and memory, and the one-slack solver's rounds."""

import filecmp

from inputs import A9A, COVERTYPE, EWT_XPOS, NEWSGROUPS, RCV1, attributes, nonzeros
from measure import CORES, best

# (task, data, options)
LARGE = {
    "covertype": ("multiclass", COVERTYPE, []),
    "newsgroups": ("multiclass", NEWSGROUPS, []),
    "covertype, class 2": ("binary", COVERTYPE, ["--positive", 2]),
    "rcv1_ccat": ("binary", RCV1, []),
}
USUAL = ["--c-per-example", 1, "--relative-gap", 1e-3]


def compare_threads(bench, task, name, data, *settings):
    """Three runs each with 1 and 2 threads, in turns, whose models must be the same."""
    runs = {1: [], 2: []}
    for _ in range(3):
        for count in runs:
            runs[count].append(bench.train(task, data, *settings, threads=count, model=f"threads{count}.mm"))
    equal = filecmp.cmp(runs[1][-1].model, runs[2][-1].model, shallow=False)
    bench.outcome.check(f"{name}: models", "equal bytes", "equal" if equal else "different", equal)
    return runs


def fast_threads(bench):
    """the default solver, 2 threads against 1: time and equality of the models"""
    # Goals for the large data only. The passes over the others run on one thread: they are stated.
    goals = {("covertype", "multiclass"): 1.5, ("covertype, class 2", "binary"): 1.2}
    table = []
    for name, (task, source, options) in LARGE.items():
        runs = compare_threads(bench, task, name, bench.inputs.plain(source), *options, *USUAL)
        one, two = best(runs[1]), best(runs[2])
        walls = {count: min(run.wall for run in runs[count]) for count in runs}
        what, faster = f"{name}, {task}: training, times faster", one.seconds / two.seconds
        if (name, task) in goals:
            bench.outcome.at_least(what, faster, goals[name, task])
        else:
            bench.outcome.state(what, f"{faster:.2f}")
        if name == "covertype":
            bench.outcome.at_least(f"{name}, {task}: file to model, times faster", walls[1] / walls[2], 1.5)
        table += [[name, count, run["solver"], f"{run.seconds:.3f}", f"{walls[count]:.3f}"] for count, run in ((1, one), (2, two))]
    bench.outcome.table("best of 3", ["data", "threads", "solver", "training s", "file to model s"], table)


def memory(bench):
    """the default solver: peak memory against the data at 8 bytes a non-zero and the weights at 8 bytes each"""
    tiny = bench.inputs.folder / "tiny"
    tiny.write_text("+1 1:1\n-1 2:1\n")
    bench.outcome.state("peak with two examples, which the others contain", f"{bench.train('binary', tiny, *USUAL)['peak_rss_mb']:.1f} MB")
    table = []
    for name, (task, source, options) in LARGE.items():
        data = bench.inputs.plain(source)
        run = bench.train(task, data, *options, *USUAL)
        data_mb, weights_mb, peak = 8 * nonzeros(data) / 1e6, 8 * run["dimension"] / 1e6, run["peak_rss_mb"]
        bench.outcome.at_most(f"{name}, {task}: peak memory (2.5 times the data + the weights)", peak, 2.5 * data_mb + weights_mb, " MB", digits=1)
        table.append([name, run["solver"], f"{data_mb:.1f}", f"{weights_mb:.1f}", f"{peak:.1f}", f"{(peak - weights_mb) / data_mb:.2f}"])
    bench.outcome.table("", ["data", "solver", "data MB", "weights MB", "peak MB", "without the weights, times the data"], table)


def tag_memory(bench):
    """one-slack with millions of weights: peak memory of ten passes over the English Web Treebank, xpos"""
    data = bench.inputs.crfsuite(f"{EWT_XPOS}.train", bench.command)
    data_mb = 8 * attributes(data) / 1e6
    for threads in sorted({1, CORES}):
        run = bench.train("tag", data, "--format", "crfsuite", "--solver", "one-slack", "--max-passes", 10, threads=threads)
        weights = run["dimension"] / 1e6
        what = f"{weights:.1f} million weights, threads {threads}: peak memory (1500 MB + the data at 8 bytes an attribute)"
        bench.outcome.at_most(what, run["peak_rss_mb"], 1500 + data_mb, " MB", digits=0)
        bench.outcome.state(f"the same, threads {threads}", f"{run['working_set']} cuts, {run['rounds']} rounds, {run.seconds:.1f} s training")


def one_slack(bench):
    """the one-slack solver on four problems: rounds, beside those of the record of 2026-11-15"""
    # Rounds of record/2026-11-15-856772c.md, where it has them: they compare between machines, seconds do not.
    problems = {
        "covertype": ("multiclass", COVERTYPE, [], 0.1, None),
        "covertype, class 2": ("binary", COVERTYPE, ["--positive", 2], 1, 45),
        "a9a": ("binary", A9A, [], 1, 50),
        "rcv1_ccat": ("binary", RCV1, [], 1, None),
    }
    for name, (task, source, options, c, before) in problems.items():
        settings = [*options, "--c-per-example", c, "--relative-gap", 1e-3, "--solver", "one-slack"]
        run = bench.train(task, bench.inputs.plain(source), *settings)
        then = f" ({before} then)" if before else ""
        bench.outcome.state(f"{name}, {task}, c {c}: {run['status']}", f"{run['rounds']} rounds{then}, {run['passes']:g} passes, {run.seconds:.2f} s training")
