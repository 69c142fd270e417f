"""The Python package beside other Python packages, in the environment of the peers (build.py) and in a process of its own. Prints JSON.

python_peer.py linear FILE KIND C WHO [GAP] [JOBS]   KIND: hinge | crammer_singer; WHO: maxmargin | sklearn. Seconds of fit, objective
python_peer.py rows FILE GAP JOBS                    maxmargin.LinearClassifier on a sparse matrix in memory: seconds of fit and of training
python_peer.py tagger FEATURES TEST WHO              WHO: maxmargin | sklearn-crfsuite. Dicts to a trained model: seconds, memory, accuracy
python_peer.py task                                  microseconds a call of the oracle beyond the user's own code

Times are wall seconds of `fit`, the data being Python objects in memory before.
"""

import json
import resource
import sys
import time

import numpy as np


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def timed(work):
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def objective(kind, C, X, y, W):
    """1/2 |W|^2 + C sum of slacks."""
    scores = np.asarray(X @ W.T)
    if kind == "hinge":
        slack = np.maximum(0, 1 - np.where(y == y.max(), 1, -1) * scores.ravel())
    else:
        classes = np.unique(y)
        own = np.searchsorted(classes, y)
        truth = scores[np.arange(len(y)), own]
        margins = scores + 1
        margins[np.arange(len(y)), own] -= 1
        slack = margins.max(axis=1) - truth
    return 0.5 * float((W * W).sum()) + C * float(slack.sum())


def load(path):
    """A sparse matrix with the indices that scikit-learn takes, and labels."""
    from maxmargin import datasets

    X, y = datasets.load_svmlight(path)
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X, np.asarray(y)


def linear(path, kind, c, who, gap="0.01", jobs="1"):
    X, y = load(path)
    C = float(c)
    if who == "sklearn":
        from sklearn.svm import LinearSVC

        common = {"C": C, "fit_intercept": False, "max_iter": 1_000_000, "random_state": 0}
        model = LinearSVC(loss="hinge", dual=True, **common) if kind == "hinge" else LinearSVC(multi_class="crammer_singer", **common)
    else:
        import maxmargin

        model = maxmargin.LinearClassifier(C=C, relative_gap=float(gap), n_jobs=int(jobs))
    seconds, _ = timed(lambda: model.fit(X, y))
    print(json.dumps({"seconds": seconds, "primal": objective(kind, C, X, y, model.coef_)}))


def rows(path, gap, jobs):
    import maxmargin

    X, y = load(path)
    model = maxmargin.LinearClassifier(relative_gap=float(gap), n_jobs=int(jobs))
    seconds, _ = timed(lambda: model.fit(X, y))
    print(json.dumps({"seconds": seconds, "training": model.report_["seconds_training"], "primal": model.primal_}))


def dicts(path):
    """Sentences of dicts, and their tags."""
    from crfsuite_peer import load as load_sentences

    sentences, tags = load_sentences(path)
    as_dict = lambda token: token if isinstance(token, dict) else dict.fromkeys(token, 1.0)
    return [[as_dict(token) for token in sentence] for sentence in sentences], tags


def tagger(features, test, who):
    X, y = dicts(features)
    before = peak_mb()
    if who == "maxmargin":
        import maxmargin

        model = maxmargin.SequenceTagger(C=0.1)
    else:
        import sklearn_crfsuite

        model = sklearn_crfsuite.CRF()
    seconds, _ = timed(lambda: model.fit(X, y))
    after = peak_mb()
    X_test, y_test = dicts(test)
    pairs = [(a, b) for true, found in zip(y_test, model.predict(X_test)) for a, b in zip(true, found)]
    accuracy = sum(a == b for a, b in pairs) / len(pairs)
    trained = model.report_["seconds_training"] if who == "maxmargin" else None
    print(json.dumps({"seconds": seconds, "training": trained, "mb": after, "mb_data": before, "accuracy": accuracy}))


def task():
    import maxmargin

    random = np.random.default_rng(0)
    n, d, classes = 2000, 50, 10
    X, centres = random.normal(size=(n, d)), random.normal(size=(classes, d))
    Y = [int(k) for k in (X @ centres.T + random.normal(size=(n, classes))).argmax(axis=1)]

    class Classes(maxmargin.Task):
        """Multiclass, as one writes it with numpy."""

        size = classes * d

        def __init__(self):
            self.seconds, self.calls = 0.0, 0

        def features(self, x, y):
            start = time.perf_counter()
            found = np.arange(y * d, (y + 1) * d), x
            self.seconds += time.perf_counter() - start
            return found

        def loss(self, y, y2):
            start = time.perf_counter()
            found = float(y != y2)
            self.seconds += time.perf_counter() - start
            return found

        def argmax(self, x, w, y_true=None):
            start = time.perf_counter()
            scores = w.reshape(classes, d) @ x
            if y_true is not None:
                scores += 1
                scores[y_true] -= 1
            found = int(scores.argmax())
            self.calls += 1
            self.seconds += time.perf_counter() - start
            return found

    found = {}
    for solver in ("one-slack", "bcfw"):
        own = Classes()
        model = maxmargin.StructuredSVM(own, C=1.0, solver=solver, relative_gap=0.01)
        seconds, _ = timed(lambda: model.fit(list(X), Y))
        report = model.report_
        found[solver] = {
            "calls": own.calls,
            "own_us": 1e6 * own.seconds / own.calls,
            "oracle_us": 1e6 * (report["seconds_oracle"] - own.seconds) / own.calls,
            "all_us": 1e6 * (seconds - own.seconds) / own.calls,
        }
    print(json.dumps(found))


if __name__ == "__main__":
    {"linear": linear, "rows": rows, "tagger": tagger, "task": task}[sys.argv[1]](*sys.argv[2:])
