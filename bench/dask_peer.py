"""Training on partitions, in one process and on a cluster of this machine, in a process of its own. Prints JSON.

dask_peer.py overhead DIMENSION ROUNDS          a round with dense cuts of that dimension: one process of 2 threads, two workers of 1 thread
dask_peer.py latency WORKERS                    a round of next to no work and few bytes, on so many workers
dask_peer.py processes PARAMS FILE...           training on files, PARAMS as JSON: one process of 2 threads, two workers of 1 thread, in turns
dask_peer.py loss PARAMS FILE...                the same on two workers, of which one is killed in mid-run

Seconds are wall seconds of training, without reading.
"""

import contextlib
import json
import os
import signal
import sys
import time
import warnings

import numpy as np
from distributed import Client, LocalCluster

from maxmargin import ConvergenceWarning, partitions
from maxmargin.dask import train

CLASSES = 10
REPETITIONS = 3


@contextlib.contextmanager
def cluster(workers=2):
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, memory_limit=0, dashboard_address=":0") as started,
        Client(started) as client,
    ):
        yield client


def figures(model):
    told = model.report_
    keys = ("rounds", "seconds_training", "seconds_transport", "seconds_cuts", "seconds_qp", "bytes_sent", "bytes_received")
    return {key: told[key] for key in keys} | {"status": told["status"], "primal": told["primal"]}


def rows(dimension, seed, n=20_000, nonzeros=100):
    """Random rows whose cuts have few zeros."""
    from scipy import sparse

    rng = np.random.default_rng(seed)
    features = dimension // CLASSES
    columns = np.sort(rng.integers(0, features, (n, nonzeros)), axis=1)
    values = rng.standard_normal((n, nonzeros))
    matrix = sparse.csr_matrix((values.ravel(), columns.ravel(), np.arange(0, n * nonzeros + 1, nonzeros)), shape=(n, features))
    return matrix, rng.integers(0, CLASSES, n)


def overhead(dimension, rounds):
    parts = [rows(int(dimension), seed) for seed in range(2)]
    params = {"task": "multiclass", "C": 0.01, "max_passes": int(rounds), "relative_gap": 1e-9}
    runs = {"process": [], "cluster": []}
    with cluster() as client:
        for _ in range(REPETITIONS):
            runs["process"].append(partitions.train({**params, "n_jobs": 2}, parts))
            runs["cluster"].append(train(client, params, parts))
    same = len({model.model_ for found in runs.values() for model in found}) == 1
    best = {name: min(map(figures, found), key=lambda told: told["seconds_training"]) for name, found in runs.items()}
    return best | {"same": same, "dimension": runs["process"][0].report_["dimension"]}


def latency(workers):
    """Partitions of one example each: what is left is the engine."""
    workers = int(workers)
    rng = np.random.default_rng(0)
    parts = [(rng.standard_normal((50, 3)), rng.integers(0, 2, 50)) for _ in range(workers)]
    params = {"task": "multiclass", "C": 10.0, "relative_gap": 1e-12, "max_passes": 60, "n_jobs": 1}
    with cluster(workers) as client:
        model = train(client, params, parts)
    transport = np.sort(model.history_["seconds_transport"][2:])
    return {"workers": workers, "median": float(np.median(transport)), "rounds": model.n_iter_}


def processes(words, *files):
    params = json.loads(words)
    runs = {"process": [], "cluster": []}
    with cluster() as client:
        for _ in range(REPETITIONS):
            runs["process"].append(partitions.train({**params, "n_jobs": 2}, list(files)))
            runs["cluster"].append(train(client, params, list(files)))
    same = len({model.model_ for found in runs.values() for model in found}) == 1
    best = {name: min(map(figures, found), key=lambda told: told["seconds_training"]) for name, found in runs.items()}
    return best | {"same": same}


def loss(words, *files):
    """How long the scheduler takes to notice, and how long training takes from then to the end of the round."""
    params = json.loads(words)
    local = partitions.train({**params, "n_jobs": 2}, list(files))
    at, ended = local.n_iter_ // 2, {}
    noticed = []
    with cluster() as client:
        victim = next(iter(client.run(os.getpid).items()))

        def watch(dask_scheduler):
            """When the scheduler knows it: its own log of the removal."""
            return [stamp for stamp, event in dask_scheduler.get_events("all") if event.get("action") == "remove-worker" and event.get("worker") == victim[0]]

        def kill(entry):
            ended[entry["round"]] = time.time()
            if entry["round"] == at:
                os.kill(victim[1], signal.SIGKILL)

        model = train(client, params, list(files), callback=kill)
        noticed = client.run_on_scheduler(watch)
    seconds = [ended[k + 1] - ended[k] for k in sorted(ended) if k + 1 in ended and k < at]
    gone_on = ended[at + 1] - (noticed[0] if noticed else ended[at])
    return {
        "same": model.model_ == local.model_,
        "rounds": [model.n_iter_, local.n_iter_],
        "round_seconds": float(np.median(seconds)),
        "killed_to_noticed": noticed[0] - ended[at] if noticed else None,
        "noticed_to_next_answer": gone_on,
        "partition_files": len(files),
    }


if __name__ == "__main__":
    warnings.simplefilter("ignore", ConvergenceWarning)
    command = {"overhead": overhead, "latency": latency, "processes": processes, "loss": loss}[sys.argv[1]]
    print(json.dumps(command(*sys.argv[2:])))
