"""The comparisons, one function each. The goals are those of the project's issues."""

import build
from alignment import align_real, align_speed, align_thja04
from against_crfsuite import tag_accuracy, tag_pass, tag_predict, tag_seconds
from against_liblinear import liblinear_binary, liblinear_multiclass, liblinear_program
from against_libsvm import kernel_adult, kernel_checkers, kernel_checkers_million, kernel_covertype
from dask_cluster import dask_loss, dask_overhead, dask_processes
from factors import factor_certify, factor_chains, factor_curves, factor_memory, factor_oracles, factor_pass, factor_slovak
from graphs import factor_grids, factor_multilabel
from inputs import A9A, COVERTYPE, nonzeros
from kernels import kernel_low_rank, kernel_ner, kernel_sample_size, kernel_sample_size_all, kernel_speed
from measure import PROGRAM, best, say
from parsing import parse_accuracy, parse_calls, parse_jfy09, parse_speed, parse_threads
from python_package import python_linear, python_overhead, python_tagger, python_task
from solvers import compare_threads, fast_threads, memory, one_slack, tag_memory
from tagging import tag_ocr, tag_thja04
from taxonomy import taxonomy_argmax, taxonomy_thja04

# The setting of Joachims, Finley, Yu 2009 for covertype.
LOSS, C, EPSILON = 100, 1e7, 0.1


def setting(c=C, epsilon=EPSILON, solver="one-slack"):
    return ["--loss-scale", LOSS, "-c", f"{c:g}", "-e", epsilon, "--solver", solver]


def covertype_jfy09(bench):
    """covertype, 7 classes, as in JFY09: certificate, CPU, working set, memory, accuracy"""
    data = bench.inputs.plain(COVERTYPE)
    run = bench.train("multiclass", data, *setting())
    evaluation = bench.command(PROGRAM, "evaluate", run.model, bench.inputs.packed("multiclass/covertype.test"), "--json").json()
    recomputed = bench.command(build.peers_python(), build.PEERS_SCRIPT, "primal", data, run.model).json()["primal"]
    out = bench.outcome
    out.check("status, certificate", "converged, exact", f"{run['status']}, {run['certificate']}", run.converged)
    out.at_most("gap", run["gap"], C * EPSILON, digits=0)
    difference = abs(recomputed / run["primal"] - 1)
    out.check("primal against numpy's, from the saved model", "within 1e-9", f"{difference:.1e}", difference <= 1e-9)
    out.at_most("CPU of the whole program", run.cpu, 50, " s", digits=1)
    out.check("working set", "< 1000 cuts", f"{run['working_set']} cuts", run["working_set"] < 1000)
    out.at_most("peak memory (3 times the data + 100 MB)", run["peak_rss_mb"], 3 * 8 * nonzeros(data) / 1e6 + 100, " MB", digits=0)
    out.state("training", f"{run.seconds:.1f} s, {run['rounds']} rounds, {run['passes']:g} passes")
    out.state("primal", f"{run['primal'] / 1e6:.3f} million")
    out.state("test accuracy", f"{100 * evaluation['accuracy']:.2f} %")


def covertype_scaling(bench):
    """the same at n/8, n/4, n/2, n: rounds flat, time linear"""
    divisors = [8, 4, 2, 1]
    runs = {divisor: [] for divisor in divisors}
    for _ in range(3):
        for divisor in divisors:
            runs[divisor].append(bench.train("multiclass", bench.inputs.plain(COVERTYPE, divisor), *setting()))
    fastest = {divisor: best(runs[divisor]) for divisor in divisors}
    small = fastest[8]

    def growth(run):
        return run.seconds / small.seconds * small["examples"] / run["examples"]

    bench.outcome.at_most("rounds at n over rounds at n/8", fastest[1]["rounds"] / small["rounds"], 1.3)
    bench.outcome.at_most("time over that proportional to n/8, worst of n/4, n/2, n", max(growth(fastest[divisor]) for divisor in (4, 2, 1)), 1.15)
    bench.outcome.table(
        "best of 3",
        ["examples", "rounds", "training s", "of the proportional time", "µs a round and example"],
        [
            [run["examples"], run["rounds"], f"{run.seconds:.2f}", f"{growth(run):.2f}", f"{1e6 * run.seconds / run['rounds'] / run['examples']:.3f}"]
            for run in fastest.values()
        ],
    )


def covertype_cache(bench):
    """the same with a cache of f outputs an example: passes of true oracle calls (JFY09 figures 6, 8, 9)"""
    whole = bench.inputs.plain(COVERTYPE)
    eighth = bench.inputs.plain(COVERTYPE, 8)
    table, converged = [], []

    def passes(data, f, c=C, epsilon=EPSILON):
        run = bench.train("multiclass", data, *setting(c, epsilon), "--cache", f)
        converged.append(run.converged)
        table.append([run["examples"], f, f"{c:g}", f"{epsilon:g}", run["status"], f"{run['passes']:.1f}", run["rounds"], f"{run.seconds:.2f}"])
        return run["passes"]

    def flat(what, found):
        bench.outcome.at_most(f"most over fewest passes, {what} (n/8)", max(found) / min(found), 2)

    bench.outcome.at_most("passes at f = 10", passes(whole, 10), 10, digits=1)
    usual = passes(eighth, 10)
    flat("epsilon 1, 0.1, 0.01", [passes(eighth, 10, epsilon=1), usual, passes(eighth, 10, epsilon=0.01)])
    flat("C 1e6, 1e7, 1e8", [passes(eighth, 10, c=1e6), usual, passes(eighth, 10, c=1e8)])
    by_f = {1: passes(eighth, 1), 5: passes(eighth, 5), 10: usual, 20: passes(eighth, 20)}
    flat("f = 5, 10, 20", [by_f[f] for f in (5, 10, 20)])
    bench.outcome.state("passes at f = 1 (n/8)", f"{by_f[1]:.1f}")
    bench.outcome.check("converged, exact", "all", f"{sum(converged)} of {len(converged)}", all(converged))
    bench.outcome.table("", ["examples", "f", "C", "epsilon", "status", "passes", "rounds", "training s"], table)


def covertype_n_slack(bench):
    """the same at n/32, one slack against n slacks (JFY09 table 1)"""
    data = bench.inputs.plain(COVERTYPE, 32)
    solvers = {
        "one-slack": setting(),
        "n-slack, batch": [*setting(solver="n-slack"), "--update", "batch"],
        "n-slack, own": [*setting(solver="n-slack"), "--update", "own"],
    }
    runs = {name: bench.train("multiclass", data, *options) for name, options in solvers.items()}
    primals = [run["primal"] for run in runs.values()]
    bench.outcome.check("status, all", "converged, exact", ", ".join(run["status"] for run in runs.values()), all(run.converged for run in runs.values()))
    bench.outcome.at_most("largest difference of the primals", max(primals) - min(primals), C * EPSILON, digits=0)
    bench.outcome.table(
        f"{runs['one-slack']['examples']} examples",
        ["solver", "primal", "gap", "cuts", "rounds", "passes", "training s", "QP s"],
        [
            [name, f"{r['primal']:.0f}", f"{r['gap']:.0f}", r["working_set"], r["rounds"], f"{r['passes']:.1f}", f"{r.seconds:.2f}", f"{r['seconds_qp']:.2f}"]
            for name, r in runs.items()
        ],
    )


def line_search(bench):
    """a9a and covertype class 2 against the rest: rounds with and without the line search"""
    problems = {"a9a": (A9A, []), "covertype, class 2": (COVERTYPE, ["--positive", 2])}
    table = []
    for name, (source, options) in problems.items():
        data = bench.inputs.plain(source)
        settings = [*options, "--c-per-example", 1, "--relative-gap", 1e-3, "--solver", "one-slack"]
        runs = {switch: bench.train("binary", data, *settings, "--line-search", switch) for switch in ("on", "off")}
        bench.outcome.at_least(f"{name}: rounds without over rounds with", runs["off"]["rounds"] / runs["on"]["rounds"], 3)
        for switch, run in runs.items():
            table.append([name, switch, run["status"], run["rounds"], f"{run['gap'] / run['primal']:.1e}", f"{run.seconds:.2f}"])
    bench.outcome.table("", ["data", "line search", "status", "rounds", "relative gap", "training s"], table)


def threads(bench):
    """one-slack, 2 threads against 1: time and equality of the models"""
    problems = {
        "covertype": (bench.inputs.plain(COVERTYPE), setting()),
        "generated": (bench.inputs.generated(bench.command), ["--max-passes", 20, "--solver", "one-slack"]),
    }
    table = []
    for name, (data, settings) in problems.items():
        runs = compare_threads(bench, "multiclass", name, data, *settings)
        one, two = best(runs[1]), best(runs[2])
        pass_ms = 1000 * one["seconds_oracle"] / one["passes"]
        speedup = one.seconds / two.seconds
        if pass_ms > 100:
            bench.outcome.at_least(f"{name}: times faster (a pass takes {pass_ms:.0f} ms)", speedup, 1.7)
        else:
            bench.outcome.state(f"{name}: times faster (a pass takes {pass_ms:.0f} ms, goal from 100)", f"{speedup:.2f}")
        table += [[name, count, f"{run.seconds:.2f}", f"{1000 * run['seconds_oracle'] / run['passes']:.0f}"] for count, run in ((1, one), (2, two))]
    bench.outcome.table("best of 3", ["data", "threads", "training s", "pass ms"], table)


def reader(bench):
    """speed of reading SVM-light text: plain, gzip, zstd"""
    files = {"plain": bench.inputs.plain(COVERTYPE), "gzip": bench.inputs.gzip(COVERTYPE), "zstd": bench.inputs.zstd(COVERTYPE)}
    for kind, path in files.items():
        if path is None:
            bench.outcome.state(kind, "not measured: no program zstd here")
            continue
        say(f"   cargo bench --bench reader: {path.name}")
        found = bench.command("cargo", "bench", "--package", "maxmargin", "--bench", "reader", env={"MAXMARGIN_READER_FILE": str(path)}).json()
        one, every = found["mb_per_second_1_thread"], found["mb_per_second_all_threads"]
        if kind == "plain":
            bench.outcome.at_least("plain, 1 thread", one, 150, " MB/s", digits=0)
            bench.outcome.state(f"plain, {found['threads']} threads", f"{every} MB/s")
        else:
            bench.outcome.state(f"{kind} (MB of plain text)", f"{one} MB/s with 1 thread, {every} MB/s with {found['threads']}")


def whole_program(bench):
    """covertype from file to model: wall time with 2 threads"""
    for kind, data in (("plain", bench.inputs.plain(COVERTYPE)), ("gzip", bench.inputs.gzip(COVERTYPE))):
        run = bench.train("multiclass", data, *setting(), threads=2)
        bench.outcome.state(f"{kind}, 2 threads", f"{run.wall:.2f} s wall: {run['seconds_reading']:.2f} s reading, {run.seconds:.2f} s training")


COMPARISONS = {
    "covertype-jfy09": covertype_jfy09,
    "covertype-scaling": covertype_scaling,
    "covertype-cache": covertype_cache,
    "covertype-n-slack": covertype_n_slack,
    "line-search": line_search,
    "threads": threads,
    "one-slack": one_slack,
    "liblinear-binary": liblinear_binary,
    "liblinear-multiclass": liblinear_multiclass,
    "liblinear-program": liblinear_program,
    "fast-threads": fast_threads,
    "memory": memory,
    "reader": reader,
    "whole-program": whole_program,
    "tag-accuracy": tag_accuracy,
    "tag-seconds": tag_seconds,
    "tag-pass": tag_pass,
    "tag-predict": tag_predict,
    "tag-thja04": tag_thja04,
    "tag-ocr": tag_ocr,
    "tag-memory": tag_memory,
    "parse-speed": parse_speed,
    "parse-calls": parse_calls,
    "parse-threads": parse_threads,
    "parse-accuracy": parse_accuracy,
    "parse-jfy09": parse_jfy09,
    "kernel-adult": kernel_adult,
    "kernel-checkers": kernel_checkers,
    "kernel-sample-size": kernel_sample_size,
    "kernel-low-rank": kernel_low_rank,
    "kernel-speed": kernel_speed,
    "kernel-ner": kernel_ner,
    "factor-chains": factor_chains,
    "factor-oracles": factor_oracles,
    "factor-slovak": factor_slovak,
    "factor-pass": factor_pass,
    "factor-memory": factor_memory,
    "factor-certify": factor_certify,
    "factor-multilabel": factor_multilabel,
    "factor-grids": factor_grids,
    "align-thja04": align_thja04,
    "align-speed": align_speed,
    "align-real": align_real,
    "taxonomy-thja04": taxonomy_thja04,
    "taxonomy-argmax": taxonomy_argmax,
    "python-overhead": python_overhead,
    "python-linear": python_linear,
    "python-tagger": python_tagger,
    "python-task": python_task,
    "dask-overhead": dask_overhead,
    "dask-processes": dask_processes,
    "dask-loss": dask_loss,
}
# Those that take over ten minutes.
LONG = {
    "kernel-checkers-million": kernel_checkers_million,
    "kernel-covertype": kernel_covertype,
    "kernel-sample-size-all": kernel_sample_size_all,
    "factor-curves": factor_curves,
}
