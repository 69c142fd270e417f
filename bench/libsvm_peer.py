"""LIBSVM, in the environment of the peers (build.py) and in a process of its own. Prints a JSON object.

libsvm_peer.py libsvm TRAIN TEST GAMMA C   svm_train of libsvm-official
libsvm_peer.py sklearn TRAIN TEST GAMMA C  fit of scikit-learn's SVC, which has LIBSVM inside
libsvm_peer.py primal TRAIN MODEL          the exact primal of a model for two classes that maxmargin saved with an rbf kernel

Labels are +1 and -1, the kernel is rbf, C the weight of one example, the tolerance LIBSVM's default of 0.001. Times are those of the call
alone: `seconds` of CPU, and `wall`. libsvm-official computes kernel values with as many threads as OMP_NUM_THREADS says, and these burn CPU
while they wait for each other; scikit-learn's SVC has one thread.
"""

import json
import re
import struct
import sys
import time

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file, load_svmlight_files

CACHE_MB = 1000
ROWS = 1000


class Expansion:
    """f(x) = sum_j coefficient_j k(x_j, x) + bias, with an rbf kernel."""

    def __init__(self, support, coefficients, bias, gamma):
        self.support, self.coefficients, self.bias, self.gamma = support.toarray(), coefficients, bias, gamma
        self.squares = (self.support**2).sum(axis=1)

    def scores(self, x):
        parts = [self._scores(x[begin : begin + ROWS].toarray()) for begin in range(0, x.shape[0], ROWS)]
        return np.concatenate(parts)

    def _scores(self, x):
        distances = (x**2).sum(axis=1)[:, None] + self.squares - 2 * (x @ self.support.T)
        return np.exp(-self.gamma * np.maximum(distances, 0.0)) @ self.coefficients + self.bias

    def primal(self, x, y, c):
        """1/2 |w|^2 + c sum_i max(0, 1 - y_i f(x_i)): the bias is in f and not in |w|^2."""
        squared_norm = self.coefficients @ (self.scores(csr_matrix(self.support)) - self.bias)
        return 0.5 * float(squared_norm) + c * float(np.maximum(0.0, 1.0 - y * self.scores(x)).sum())


def loaded(train, test):
    x, y, x_test, y_test = load_svmlight_files([train, test])
    return narrow(x), y, narrow(x_test), y_test


def narrow(x):
    """With indices of 32 bits: scikit-learn's SVC takes no others."""
    return csr_matrix((x.data, x.indices.astype(np.int32), x.indptr.astype(np.int32)), shape=x.shape)


def report(model, data, c, **figures):
    """What both of LIBSVM's forms are asked for."""
    x, y, x_test, y_test = data
    wrong = {name: float(np.mean(model.scores(of) * truth <= 0)) for name, of, truth in (("train_error", x, y), ("test_error", x_test, y_test))}
    print(json.dumps({**figures, "examples": len(y), "support": len(model.coefficients), "primal": model.primal(x, y, c), **wrong}))


def timed(work):
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, {"seconds": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def libsvm(train, test, gamma, c):
    from libsvm.svm import PRINT_STRING_FUN, svm_parameter, svm_problem
    from libsvm.svmutil import svm_train

    data = loaded(train, test)
    x, y = data[:2]
    lines = []
    settings = svm_parameter(f"-t 2 -g {gamma} -c {c} -m {CACHE_MB}")
    settings.print_func = PRINT_STRING_FUN(lambda text: lines.append(text.decode()))
    prepared = svm_problem(y, x)
    model, times = timed(lambda: svm_train(prepared, settings))
    sign = model.label[0]
    coefficients = sign * np.ctypeslib.as_array(model.sv_coef[0], (model.l,)).copy()
    support = x[np.ctypeslib.as_array(model.sv_indices, (model.l,)) - 1]
    iterations = int(re.search(r"#iter = (\d+)", "".join(lines))[1])
    report(Expansion(support, coefficients, -sign * model.rho[0], float(gamma)), data, float(c), **times, iterations=iterations)


def sklearn(train, test, gamma, c):
    from sklearn.svm import SVC

    data = loaded(train, test)
    x, y = data[:2]
    model = SVC(C=float(c), gamma=float(gamma), cache_size=CACHE_MB)
    _, times = timed(lambda: model.fit(x, y))
    coefficients = np.asarray(model.dual_coef_.toarray() if hasattr(model.dual_coef_, "toarray") else model.dual_coef_)[0]
    expansion = Expansion(x[model.support_], coefficients, float(model.intercept_[0]), float(gamma))
    report(expansion, data, float(c), **times, iterations=int(model.n_iter_[0]))


def primal(train, path):
    settings, tensors = load(path)
    # maxmargin keeps values as f32 and computes sums in f64.
    x, y = load_svmlight_file(train, n_features=settings["features"], dtype=np.float32)
    arrays = (tensors["support_values"].astype(float), tensors["support_indices"], tensors["support_offsets"].astype(np.int64))
    support = csr_matrix(arrays, shape=(len(arrays[2]) - 1, settings["features"]))
    kernel = settings["kernel"]
    if settings["labels"] != ["-1", "+1"] or "rbf" not in kernel["shape"] or settings["bias"]:
        sys.exit(f"{path}: not two classes -1 and +1 with an rbf kernel and no bias")
    model = Expansion(support, tensors["coefficients"][:, 0], 0.0, kernel["shape"]["rbf"]["gamma"])
    print(json.dumps({"primal": model.primal(csr_matrix(x).astype(float), np.sign(y), settings["c"] / len(y))}))


def load(path):
    """Settings and tensors out of a .mm file, which is a safetensors container."""
    types = {"F64": "<f8", "F32": "<f4", "U32": "<u4", "U64": "<u8"}
    with open(path, "rb") as file:
        header = json.loads(file.read(*struct.unpack("<Q", file.read(8))))
        content = file.read()
    settings = json.loads(header.pop("__metadata__")["model"])
    tensors = {name: np.frombuffer(content[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"]) for name, t in header.items()}
    return settings, tensors


if __name__ == "__main__":
    {"libsvm": libsvm, "sklearn": sklearn, "primal": primal}[sys.argv[1]](*sys.argv[2:])
