"""Runs in the environment of the peers (build.py), in a process of its own. Prints one JSON line.

peers.py liblinear FILE C EPSILON    trains Crammer-Singer (-s 4), times training alone, states the exact primal
peers.py primal FILE MODEL           the exact primal of a multiclass model that maxmargin saved (zero-one loss, margin rescaling)
"""

import importlib.metadata
import json
import struct
import sys
import time

import numpy as np
from sklearn.datasets import load_svmlight_file


def exact_primal(x, truth, weights, c_per_example, loss):
    """1/2 |w|^2 + c sum_i max_y [loss (y != y_i) + w_y x_i - w_yi x_i]; a column of weights for each class."""
    scores = x @ weights
    rows = np.arange(len(truth))
    margins = scores - scores[rows, truth][:, None] + loss
    margins[rows, truth] = 0.0
    return 0.5 * float((weights**2).sum()) + c_per_example * float(margins.max(axis=1).sum())


def classes(y, labels):
    """The position of each example's label among the labels."""
    labels = np.asarray(labels, dtype=float)
    order = np.argsort(labels)
    return order[np.searchsorted(labels[order], y)]


def liblinear(path, c, epsilon):
    from liblinear.liblinearutil import parameter, problem, train

    x, y = load_svmlight_file(path)
    prepared = problem(y, x)
    settings = parameter(f"-s 4 -c {c} -B -1 -e {epsilon} -q")
    start = time.perf_counter()
    model = train(prepared, settings)
    seconds = time.perf_counter() - start
    count = model.nr_class
    weights = np.ctypeslib.as_array(model.w, (model.nr_feature * count,)).reshape(-1, count)
    reached = exact_primal(x, classes(y, model.label[:count]), weights, float(c), 1.0)
    return {"seconds": seconds, "primal": reached, "version": importlib.metadata.version("liblinear-official")}


def primal(path, model):
    settings, weights = load(model)
    # maxmargin keeps values as f32 and computes in f64: so does this, else the primals differ in the ninth digit.
    x, y = load_svmlight_file(path, n_features=settings["features"], dtype=np.float32)
    x = x.astype(float)
    truth = classes(y, settings["labels"])
    return {"primal": exact_primal(x, truth, weights, settings["c"] / len(y), settings["loss_scale"])}


def load(path):
    """Settings and weights out of a .mm file, which is a safetensors container."""
    with open(path, "rb") as file:
        header = json.loads(file.read(*struct.unpack("<Q", file.read(8))))
        tensor = header["weights"]
        values = np.frombuffer(file.read()[slice(*tensor["data_offsets"])], dtype={"F64": "<f8", "F32": "<f4"}[tensor["dtype"]])
    return json.loads(header["__metadata__"]["model"]), values.reshape(tensor["shape"]).astype(float)


if __name__ == "__main__":
    print(json.dumps({"liblinear": liblinear, "primal": primal}[sys.argv[1]](*sys.argv[2:])))
