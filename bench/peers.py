"""Runs in the environment of the peers (build.py), in a process of its own. Prints JSON lines.

peers.py liblinear FILE SOLVER            trains for each line "C EPSILON" of standard input, times training alone, states the exact objectives
peers.py objectives FILE MODEL C PRINTED  the exact objectives of a model that liblinear's program saved when it printed that objective value
peers.py primal FILE MODEL                the exact primal of a multiclass model that maxmargin saved (zero-one loss, margin rescaling)
"""

import io
import json
import multiprocessing
import re
import struct
import sys
import time

import numpy as np
from sklearn.datasets import load_svmlight_file

SECONDS_AT_MOST = 60
CRAMMER_SINGER = 4


def load_data(path):
    """Examples and numbers for their labels, which may be words."""
    labels, rows = [], []
    with open(path, "rb") as file:
        for line in file:
            label, _, features = line.strip().partition(b" ")
            labels.append(label)
            rows.append(b"0 " + features + b"\n")
    x, _ = load_svmlight_file(io.BytesIO(b"".join(rows)))
    try:
        return x, np.array(labels, dtype=float)
    except ValueError:
        return x, np.unique(labels, return_inverse=True)[1].astype(float)


def exact_primal(x, truth, weights, c_per_example, loss):
    """1/2 |w|^2 + c sum_i max_y [loss (y != y_i) + w_y x_i - w_yi x_i]; a column of weights for each class."""
    scores = x @ weights
    rows = np.arange(len(truth))
    margins = scores - scores[rows, truth][:, None] + loss
    margins[rows, truth] = 0.0
    return 0.5 * float((weights**2).sum()) + c_per_example * float(margins.max(axis=1).sum())


def exact_binary_primal(x, sign, weights, c_per_example):
    return 0.5 * float(weights @ weights) + c_per_example * float(np.maximum(0.0, 1.0 - sign * (x @ weights)).sum())


def classes(y, labels):
    """The position of each example's label among the labels."""
    labels = np.asarray(labels, dtype=float)
    order = np.argsort(labels)
    return order[np.searchsorted(labels[order], y)]


def liblinear(path, solver):
    from liblinear.liblinearutil import problem

    x, y = load_data(path)
    prepared = problem(y, x)
    for line in sys.stdin:
        c, epsilon = map(float, line.split())
        print(json.dumps(apart(lambda: train(x, y, prepared, solver, c, epsilon))), flush=True)


def apart(work):
    """What `work` gives in a fork: there liblinear's rand() starts anew, so that a run can be repeated, and a long one can be ended."""
    fork = multiprocessing.get_context("fork")
    ours, its = fork.Pipe(duplex=False)
    process = fork.Process(target=lambda: its.send(work()))
    process.start()
    process.join(SECONDS_AT_MOST)
    if process.is_alive():
        process.kill()
        process.join()
        return {"seconds": SECONDS_AT_MOST, "ended": f"{SECONDS_AT_MOST} s"}
    if process.exitcode != 0:
        sys.exit("liblinear failed")
    return ours.recv()


def train(x, y, prepared, solver, c, epsilon):
    from liblinear.liblinear import PRINT_STRING_FUN
    from liblinear.liblinearutil import parameter, train

    lines = []
    settings = parameter(f"-s {solver} -c {c} -B -1 -e {epsilon}")
    settings.print_func = PRINT_STRING_FUN(lambda text: lines.append(text.decode()))
    start = time.perf_counter()
    model = train(prepared, settings)
    seconds = time.perf_counter() - start
    said = "".join(lines)
    ended = "max_iter" if "reaching max number of iterations" in said else "epsilon"
    printed = float(re.search(r"bjective value = (\S+)", said)[1])
    iterations = int(re.search(r"#iter = (\d+)", said)[1])
    return {"seconds": seconds, "ended": ended, "iterations": iterations, **of_liblinear(x, y, model, c, printed)}


def of_liblinear(x, y, model, c, printed):
    """The exact primal of the weights, and the dual, of which liblinear prints the negative."""
    count, dual = model.nr_class, -printed
    if model.param.solver_type != CRAMMER_SINGER:
        weights = np.ctypeslib.as_array(model.w, (model.nr_feature,))
        return {"primal": exact_binary_primal(x[:, : len(weights)], np.where(y == model.label[0], 1.0, -1.0), weights, c), "dual": dual}
    weights = np.ctypeslib.as_array(model.w, (model.nr_feature * count,)).reshape(-1, count)
    # -s 4 never visits an example without features, so its dual lacks that example's loss, which no weights can change. Without this
    # term the gap of the newsgroups, 21 of which are empty, would stay above 21 c however far liblinear went.
    empty = int((np.diff(x.indptr) == 0).sum())
    return {"primal": exact_primal(x, classes(y, model.label[:count]), weights, c, 1.0), "dual": dual + c * empty}


def objectives(path, model, c, printed):
    from liblinear.liblinearutil import load_model

    x, y = load_data(path)
    print(json.dumps(of_liblinear(x, y, load_model(model), float(c), float(printed))))


def primal(path, model):
    settings, weights = load(model)
    # maxmargin keeps values as f32 and computes in f64: so does this, else the primals differ in the ninth digit.
    x, y = load_svmlight_file(path, n_features=settings["features"], dtype=np.float32)
    x = x.astype(float)
    truth = classes(y, settings["labels"])
    print(json.dumps({"primal": exact_primal(x, truth, weights, settings["c"] / len(y), settings["loss_scale"])}))


def load(path):
    """Settings and weights out of a .mm file, which is a safetensors container."""
    with open(path, "rb") as file:
        header = json.loads(file.read(*struct.unpack("<Q", file.read(8))))
        tensor = header["weights"]
        values = np.frombuffer(file.read()[slice(*tensor["data_offsets"])], dtype={"F64": "<f8", "F32": "<f4"}[tensor["dtype"]])
    return json.loads(header["__metadata__"]["model"]), values.reshape(tensor["shape"]).astype(float)


if __name__ == "__main__":
    {"liblinear": liblinear, "objectives": objectives, "primal": primal}[sys.argv[1]](*sys.argv[2:])
