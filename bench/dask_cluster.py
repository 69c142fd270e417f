"""Training on a Dask cluster of this machine, against one process with the same partitions."""

import json

from build import package_python
from inputs import COVERTYPE, EWT_UPOS
from measure import ROOT

PEER = ROOT / "bench" / "dask_peer.py"
DIMENSION, ROUNDS, PARTS = 5_000_000, 12, 8


def peer(bench, *words, seconds=3000):
    return bench.command(package_python(), PEER, *words, seconds=seconds).json()


def per_round(run, key):
    return run[key] / run["rounds"]


def dask_overhead(bench):
    """a round with 5 million dense weights, two workers on loopback: what it costs over one process"""
    found = peer(bench, "overhead", DIMENSION if not bench.inputs.quick else DIMENSION // 50, ROUNDS)
    one, two = found["process"], found["cluster"]
    beyond = per_round(two, "seconds_training") - per_round(one, "seconds_training")
    out = bench.outcome
    out.at_most("seconds a round over those of one process", beyond, 0.5, " s")
    out.state("of these transport", f"{per_round(two, 'seconds_transport'):.3f} s")
    out.state("bytes a round", f"{per_round(two, 'bytes_sent') / 1e6:.1f} MB down, {per_round(two, 'bytes_received') / 1e6:.1f} MB up")
    out.check("the same model, bit for bit", "yes", "yes" if found["same"] else "no", found["same"])
    out.check("rounds", one["rounds"], two["rounds"], one["rounds"] == two["rounds"])
    table = [[name, run["rounds"], *(f"{per_round(run, key):.3f}" for key in ("seconds_training", "seconds_cuts", "seconds_transport"))] for name, run in (("one process, 2 threads", one), ("two workers, 1 thread", two))]
    out.table(f"d = {found['dimension']}, 2 partitions", ["", "rounds", "seconds a round", "of cuts", "of transport"], table)
    latencies = [peer(bench, "latency", workers) for workers in (1, 2, 4)]
    out.table("rounds of next to no work", ["workers", "median of transport, ms"], [[told["workers"], f"{1000 * told['median']:.1f}"] for told in latencies])


def parts(bench, path, count=PARTS):
    """A file cut into neighbours of about equal size, between examples."""
    text = path.read_bytes()
    step, files, begin = len(text) // count + 1, [], 0
    mark = b"\n\n" if b"\n\n" in text[:100_000] else b"\n"
    for k in range(count):
        end = len(text) if k == count - 1 else text.index(mark, min(begin + step, len(text) - 2)) + len(mark)
        piece = text[begin:end]
        files.append(bench.inputs.make(f"{path.name}.part{k}of{count}", lambda out, piece=piece: out.write(piece)))
        begin = end
    return files


def problems(bench):
    """Name, parameters and files."""
    tags = {"task": "tag", "format": "crfsuite", "C": 0.1, "max_passes": 15}
    yield "tags", json.dumps(tags), parts(bench, bench.inputs.crfsuite(f"{EWT_UPOS}.train", bench.command))
    covertype = {"task": "multiclass", "C": 0.01, "relative_gap": 0.1}
    yield "covertype", json.dumps(covertype), parts(bench, bench.inputs.plain(COVERTYPE))


def dask_processes(bench):
    """tags and covertype: two workers of one thread against one process of two, for the same rounds"""
    table = []
    for task, params, files in problems(bench):
        found = peer(bench, "processes", params, *files)
        one, two = found["process"], found["cluster"]
        bench.outcome.at_most(f"{task}: seconds of training over one process's", two["seconds_training"] / one["seconds_training"], 1.3)
        bench.outcome.check(f"{task}: the same model and rounds", "yes", "yes" if found["same"] else "no", found["same"] and one["rounds"] == two["rounds"])
        for name, run in (("one process, 2 threads", one), ("two workers, 1 thread", two)):
            table.append([task, name, run["rounds"], *(f"{run[key]:.2f}" for key in ("seconds_training", "seconds_cuts", "seconds_transport", "seconds_qp"))])
    header = ["task", "", "rounds", "training s", "of cuts", "of transport", "of the dual"]
    bench.outcome.table(f"{PARTS} partitions, best of 3 in turns", header, table)


def dask_loss(bench):
    """one of two workers is killed in mid-run: how soon training goes on, and to which end"""
    for task, params, files in problems(bench):
        found = peer(bench, "loss", params, *files)
        bench.outcome.at_most(f"{task}: seconds from the scheduler's notice to the next round's answer", found["noticed_to_next_answer"], 5, " s")
        bench.outcome.state(f"{task}: seconds from the kill to the notice", f"{found['killed_to_noticed']:.2f}" if found["killed_to_noticed"] is not None else "not told")
        bench.outcome.state(f"{task}: seconds of an ordinary round", f"{found['round_seconds']:.2f}")
        bench.outcome.check(f"{task}: the same model and rounds", "yes", "yes" if found["same"] else "no", found["same"] and len(set(found["rounds"])) == 1)
