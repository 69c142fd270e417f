"""Kernels by themselves: how large samples should be, low rank, speed, and names with a polynomial kernel."""

import re
import statistics

from against_libsvm import ADULT_GAMMA, CONSTANT, EXACT, LINEAR, PAPERS_CONSTANT, SEEDS, UNIFORM, adult, setting, spread
from inputs import QUICK_DIVISOR, SPANISH, blocks
from measure import CORES

# YJ08 figures 4 to 7.
SAMPLES = (100, 400, 1000, 4000)
WEIGHTS = (0.01, 1, 100)
LIMIT = ["--max-seconds", 30]
SAMPLERS = {
    "sampled-linear, growing": ["--solver", LINEAR, "--sampling", "growing"],
    UNIFORM: ["--solver", LINEAR, "--sampling", "uniform", *LIMIT],
    PAPERS_CONSTANT: ["--solver", CONSTANT, "--sampling", "uniform", *LIMIT],
}

RANKS = (250, 500, 5000)
BASES = ("random", "pivoted")

# THJA04 section 5.3: 300 sentences, polynomial kernel of degree 2, epsilon 0.01. C = 1 for each sentence, with either kernel.
NER_SENTENCES, NER_TEST = 300, 1000
NER = ["--c-per-example", 1, "--epsilon", 0.01]
NER_KERNELS = {"linear": [], "polynomial, degree 2": ["--kernel", "poly:degree=2,gamma=1,coef0=1"]}


def errors(bench, run, *files):
    """In %, of each file."""
    return [100 * bench.evaluate(run.model, file)["mean_loss"] for file in files]


def by_sample_size(bench, weights, seeds):
    data, test = adult(bench)
    table = []
    for name, options in SAMPLERS.items():
        for weight in weights:
            for size in SAMPLES:
                runs, found = [], []
                for seed in seeds:
                    run = bench.train("binary", data, *setting(ADULT_GAMMA, weight), *options, "--sample-size", size, "--seed", seed, threads=CORES)
                    runs.append(run)
                    found.append(errors(bench, run, data, test))
                statuses = ", ".join(sorted({run["status"] for run in runs}))
                figures = [([run.with_kernel for run in runs], 2), ([run["rounds"] for run in runs], 0), *((of_file, 2) for of_file in zip(*found))]
                table.append([name, weight, size, statuses, *(spread(list(values), digits) for values, digits in figures)])
    bench.outcome.state("seeds, threads", f"{len(seeds)}, {CORES}")
    bench.outcome.table("Adult", ["by", "weight", "r", "status", "training s", "rounds", "train error %", "test error %"], table)


def kernel_sample_size(bench):
    """Adult, weight 1: samples of 100 to 4000 examples a cut, as in YJ08 figures 4 to 7"""
    by_sample_size(bench, [1], SEEDS[:1])


def kernel_sample_size_all(bench):
    """the same with weights of 0.01, 1 and 100 and 3 seeds"""
    by_sample_size(bench, WEIGHTS, SEEDS)


def kernel_low_rank(bench):
    """Adult with 250, 500 and 5000 coordinates: random and pivoted basis beside the exact kernel"""
    data, test = adult(bench)
    ranks = [rank // (QUICK_DIVISOR if bench.inputs.quick else 1) for rank in RANKS]
    table = []
    for weight in (1, 100):

        def measured(options, seeds):
            runs, found = [], []
            for seed in seeds:
                runs.append(bench.train("binary", data, *setting(ADULT_GAMMA, weight), *options, "--seed", seed, threads=CORES))
                found += errors(bench, runs[-1], test)
            whole = [run["seconds_reading"] + run.with_kernel for run in runs]
            lost = [100 * run["kernel_left_out"] for run in runs if "kernel_left_out" in run.summary]
            figures = [(found, 2), ([run["primal"] for run in runs], 1), (lost, 2), (whole, 2), ([run.seconds for run in runs], 2), ([run["peak_rss_mb"] for run in runs], 0)]
            return statistics.mean(found), statistics.mean(lost or [0]), [runs[0]["solver"], *(spread(values, digits) for values, digits in figures)]

        exact, _, row = measured(["--solver", EXACT], SEEDS[:1])
        table.append([weight, "exact", "", *row])
        for rank in ranks:
            found, lost = {}, {}
            # The largest takes long, and its seeds differ little.
            seeds = SEEDS if rank < max(ranks) else SEEDS[:1]
            for basis in BASES:
                found[basis], lost[basis], row = measured(["--low-rank", rank, "--basis", basis], seeds)
                table.append([weight, basis, rank, *row])
            more = found["random"] - found["pivoted"]
            bench.outcome.check(f"weight {weight}, {rank}: test error with a random basis less that with pivots", "> 0.00 points", f"{more:.2f} points", more > 0)
            bench.outcome.state(f"weight {weight}, {rank}: left out of the kernel, random and pivots", f"{lost['random']:.2f} %, {lost['pivoted']:.2f} %")
        bench.outcome.at_most(f"weight {weight}, {rank} pivots: test error above that of the exact kernel", found["pivoted"] - exact, 0.5, " points")
    header = ["weight", "basis", "coordinates", "solver", "test error %", "primal", "left out of the kernel %", "reading, coordinates and training s", "training s", "peak MB"]
    bench.outcome.table(f"{CORES} threads", header, table)


def kernel_speed(bench):
    """kernel values a second on one core, beside a plain blocked product of matrices"""
    text = bench.command("cargo", "bench", "--package", "maxmargin", "--bench", "kernel").stdout
    for title, header, rows in tables(text):
        for row in rows if "sgemm" in header else []:
            by_column = dict(zip(header, row))
            if re.fullmatch(r"rbf, (123 features, .*|54 dense features)", row[0]):
                share = float(by_column["values"]) / float(by_column["sgemm"])
                bench.outcome.at_least(f"{row[0]}: million values a second over those of sgemm ({by_column['sgemm']})", share, 0.5)
        bench.outcome.table(title, header, rows)


def tables(text):
    """Title, header and rows of each part of what the benchmark prints. Columns are two blanks apart, or more."""
    for part in text.strip().split("\n\n"):
        title, *lines = part.splitlines()
        header, *rows = (re.split(r" {2,}", line.strip()) for line in lines)
        yield title, header, [row for row in rows if len(row) == len(header)]


def kernel_ner(bench):
    """Spanish names, 300 sentences as in THJA04: polynomial kernel on the emissions beside the linear model"""
    data, test = (first_sentences(bench, part, count) for part, count in (("train", NER_SENTENCES), ("testb", NER_TEST)))
    table = []
    for name, options in NER_KERNELS.items():
        run = bench.train("tag", data, *NER, *options, threads=CORES)
        bench.outcome.check(f"{name}: status", "converged, exact", f"{run['status']}, {run['certificate']}", run.converged)
        train, held = (bench.evaluate(run.model, file) for file in (data, test))
        bench.outcome.state(f"{name}: wrong tokens of {held['examples']:,} test sentences", f"{100 * (1 - held['token_accuracy']):.2f} %")
        figures = [100 * (1 - train["token_accuracy"]), 100 * (1 - held["token_accuracy"]), 100 * held["chunk_f1"], run.seconds]
        table.append([name, run["solver"], *(f"{figure:.2f}" for figure in figures), run["rounds"], f"{run['peak_rss_mb']:.0f}"])
    header = ["kernel", "solver", "train error %", "test error %", "chunk F1 %", "training s", "rounds", "peak MB"]
    bench.outcome.table(f"built-in features, {CORES} threads", header, table)


def first_sentences(bench, part, count):
    count //= QUICK_DIVISOR if bench.inputs.quick else 1
    sentences = blocks(bench.inputs.unpacked(f"{SPANISH}.{part}"))[:count]
    return bench.inputs.make(f"spanish_ner.{part}.sentences{count}", lambda out: out.write("".join(f"{sentence}\n\n" for sentence in sentences).encode()))
