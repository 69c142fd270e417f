#!/usr/bin/env python3
"""Compares the training time of two builds of the program, by turns, in one run.

    bench/two_programs.py --before OLD/maxmargin --after target/release/maxmargin [--runs 10] [--only kernels]

A row is the median over the runs of the time that training took: `seconds_training` of the summary plus, with a
kernel, `seconds_kernel`. Runs of the two programs alternate, so that both meet the same noise. The last column says
whether the weights that were saved are the same bytes.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from pathlib import Path

from inputs import Inputs, MissingData
from measure import CORES, CommandFailed, run, say

RBF, POLY = ["--kernel", "rbf:gamma=0.05"], ["--kernel", "poly:degree=3,gamma=0.1,coef0=1"]
COVERTYPE_RBF = ["--kernel", "rbf:gamma=2"]


def k(value):
    return ["--c-per-example", value]


def gap(value):
    return ["--relative-gap", value]


def a9a(divisor):
    return lambda inputs: ["binary", inputs.plain("binary/a9a.train", divisor)]


def covertype(divisor):
    return lambda inputs: ["multiclass", inputs.plain("multiclass/covertype.train", divisor)]


def chains(name):
    return lambda inputs: ["tag", inputs.unpacked(f"tag/{name}.train")]


def whole(task, name, *words):
    return lambda inputs: [task, inputs.unpacked(f"{task}/{name}.train"), *words]


# Group, name, data, options.
CASES = [
    ("kernels", "a9a/8 rbf, one-slack", a9a(8), [*RBF, *k(1), *gap(0.001), "--solver", "one-slack"]),
    ("kernels", "a9a/8 rbf, C 100", a9a(8), [*RBF, *k(100), *gap(0.01)]),
    ("kernels", "a9a/8 rbf, bcfw", a9a(8), [*RBF, *k(1), *gap(0.01), "--solver", "bcfw"]),
    ("kernels", "a9a/8 rbf, n-slack", a9a(8), [*RBF, *k(1), *gap(0.01), "--solver", "n-slack"]),
    ("kernels", "a9a/8 poly, degree 3", a9a(8), [*POLY, *k(1), *gap(0.01)]),
    ("kernels", "a9a/4 rbf, default", a9a(4), [*RBF, *k(1)]),
    ("kernels", "a9a/2 rbf, sampled-linear", a9a(2), [*RBF, *k(1), *gap(0.05), "--solver", "sampled-linear"]),
    ("kernels", "a9a rbf, sampled-constant", a9a(1), [*RBF, *k(1), *gap(0.05), "--solver", "sampled-constant"]),
    ("kernels", "a9a/4 rbf, low rank 200", a9a(4), [*RBF, *k(1), *gap(0.01), "--low-rank", 200]),
    ("kernels", "covertype/128 rbf, one-slack", covertype(128), [*COVERTYPE_RBF, *k(1), *gap(0.01)]),
    ("kernels", "covertype/128 rbf, C 100", covertype(128), [*COVERTYPE_RBF, *k(100), *gap(0.05)]),
    ("kernels", "covertype/128 poly, degree 3", covertype(128), ["--kernel", "poly:degree=3,gamma=1,coef0=1", *k(1), *gap(0.05)]),
    ("kernels", "covertype/32 rbf, sampled-linear", covertype(32), [*COVERTYPE_RBF, *k(1), *gap(0.05), "--solver", "sampled-linear"]),
    ("kernels", "covertype/64 rbf, low rank 200", covertype(64), [*COVERTYPE_RBF, *k(1), *gap(0.01), "--low-rank", 200]),
    ("linear", "covertype, dual-coordinate", covertype(1), [*k(0.1), *gap(0.001)]),
    ("linear", "covertype, one-slack", covertype(4), [*k(0.1), *gap(0.01), "--solver", "one-slack"]),
    ("linear", "rcv1_ccat", whole("binary", "rcv1_ccat"), [*k(10), *gap(0.001)]),
    ("linear", "usps", whole("multiclass", "usps"), [*k(1), *gap(0.001)]),
    ("linear", "bibtex, no pairs", whole("multilabel", "bibtex"), [*k(1), *gap(0.001)]),
    ("linear", "newsgroups taxonomy", lambda inputs: ["taxonomy", inputs.unpacked("taxonomy/newsgroups.train"), "--taxonomy", inputs.unpacked("taxonomy/newsgroups.taxonomy")], k(1)),
    ("structured", "tag, ewt_xpos, 4 passes", chains("ewt_xpos"), ["--max-passes", 4]),
    ("structured", "tag, ocr", lambda inputs: ["tag", inputs.unpacked("tag/ocr.fold0"), "--format", "svmhmm"], k(1)),
    ("structured", "parse, craft, 15 words", whole("parse", "craft", "--max-words", 15), ["--max-passes", 2]),
    ("structured", "gdmm, ewt_xpos, 4 passes", chains("ewt_xpos"), ["--max-passes", 4, "--solver", "gdmm"]),
    ("structured", "camvid grids, 3 passes", whole("graph", "camvid"), ["--max-passes", 3]),
]


def train(program, words, folder, threads):
    """The seconds of training, the bytes of the saved weights, and the summary."""
    model = folder / "model.mm"
    done = run([program, "train", *words, "-m", model, "--threads", threads, "--json", "--quiet"])
    summary = done.json()
    return summary["seconds_training"] + (summary.get("seconds_kernel") or 0.0), weights(model), summary


def weights(model):
    """The tensors of a model, a safetensors container: what stands behind its header."""
    data = model.read_bytes()
    return data[8 + int.from_bytes(data[:8], "little") :]


def compare(case, inputs, options):
    """A row: medians, ratio, whether the weights are the same, and how the two runs ended."""
    group, name, data, words = case
    words = [*data(inputs), *words]
    seconds, saved, statuses = ([], []), [None, None], [None, None]
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.runs):
            for which, program in enumerate((options.before, options.after)):
                took, saved[which], summary = train(program, words, Path(folder), options.threads)
                seconds[which].append(took)
                statuses[which] = summary["status"]
    before, after = map(statistics.median, seconds)
    same = "same" if saved[0] == saved[1] else "other"
    return group, name, before, after, after / before, same, "/".join(statuses)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", type=Path, required=True, help="the program to compare with")
    parser.add_argument("--after", type=Path, required=True, help="the program to judge")
    parser.add_argument("--runs", type=int, default=10, help="runs of each [10]")
    parser.add_argument("--threads", type=int, default=CORES, help="threads [all cores]")
    parser.add_argument("--only", default="", help="groups, or parts of names, by comma")
    return parser.parse_args()


def main():
    options = parse()
    options.before, options.after = options.before.resolve(), options.after.resolve()
    wanted = [word for word in options.only.split(",") if word]
    cases = [case for case in CASES if not wanted or any(word == case[0] or word in case[1] for word in wanted)]
    inputs, rows = Inputs(quick=False), []
    print(f"{options.runs} runs of each by turns, {options.threads} threads; seconds of training, medians")
    print(f"{'case':<36} {'before':>8} {'after':>8} {'ratio':>6}  weights  status")
    for case in cases:
        try:
            rows.append(compare(case, inputs, options))
        except (CommandFailed, MissingData) as error:
            say(f"{case[1]}: {error}")
            continue
        _, name, before, after, ratio, same, status = rows[-1]
        print(f"{name:<36} {before:>8.3f} {after:>8.3f} {ratio:>6.2f}  {same:<7}  {status}", flush=True)
    for group in dict.fromkeys(row[0] for row in rows):
        ratios = [row[4] for row in rows if row[0] == group]
        mean = math.exp(statistics.mean(math.log(ratio) for ratio in ratios))
        print(f"{group}: geometric mean {mean:.3f}, worst {max(ratios):.2f}, of {len(ratios)}")
    return 0 if len(rows) == len(cases) else 1


sys.exit(main())
