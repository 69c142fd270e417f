"""Runs in the environment of the peers (build.py). Prints a JSON line.

multilabel_peer.py TRAIN TEST C[,C...]    scikit-learn's LinearSVC, one against the rest: C is chosen on every fifth line of TRAIN by micro-F1
"""

import json
import sys
import time

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import f1_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import MultiLabelBinarizer
from sklearn.svm import LinearSVC


def main(train, test, choices):
    x, sets = load_svmlight_file(train, multilabel=True)
    x_test, sets_test = load_svmlight_file(test, multilabel=True, n_features=x.shape[1])
    binarizer = MultiLabelBinarizer().fit([*sets, *sets_test])
    y, y_test = binarizer.transform(sets), binarizer.transform(sets_test)
    held = np.arange(len(y)) % 5 == 0

    def fitted(c, rows):
        return OneVsRestClassifier(LinearSVC(C=c)).fit(x[rows], y[rows])

    def f1(model, x, y):
        return f1_score(y, model.predict(x), average="micro")

    c = max(choices, key=lambda c: f1(fitted(c, ~held), x[held], y[held]))
    start = time.perf_counter()
    model = fitted(c, np.ones(len(y), dtype=bool))
    seconds = time.perf_counter() - start
    print(json.dumps({"c": c, "micro_f1": f1(model, x_test, y_test), "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], [float(c) for c in sys.argv[3].split(",")])
