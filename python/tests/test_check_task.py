"""Every law that a task can break is told in words."""

import itertools

import numpy as np
import pytest

from maxmargin import Task, check_task

X = [np.array([1.0, 2.0]), np.array([-1.0, 0.5]), np.array([0.3, -2.0])]
Y = [0, 1, 2]


class Good(Task):
    size = 6

    def features(self, x, y):
        f = np.zeros(6)
        f[2 * y : 2 * y + 2] = x
        return f

    def argmax(self, x, w, y_true=None):
        scores = w.reshape(3, 2) @ x
        if y_true is not None:
            scores = scores + [self.loss(y_true, y) for y in range(3)]
        return int(scores.argmax())


def problems(task, X=X, Y=Y):
    return check_task(task, X, Y, raises=False)


def test_a_good_task():
    assert check_task(Good(), X, Y) == []

    class AsDict(Good):
        def features(self, x, y):
            return {(y, j): v for j, v in enumerate(x)}

        def argmax(self, x, w, y_true=None):
            return max(range(3), key=lambda y: sum(w[y, j] * v for j, v in enumerate(x)) + (0 if y_true is None else self.loss(y_true, y)))

    assert check_task(AsDict(), X, Y) == []

    class AsPair(Good):
        def features(self, x, y):
            return np.arange(2 * y, 2 * y + 2), x

    assert check_task(AsPair(), X, Y) == []


def broken(**methods):
    return type("Broken", (Good,), methods)()


CALLS = itertools.count()


def _drift(self, x, y):
    return Good.features(self, x, y) + next(CALLS)


def _flip(self, x, w, y_true=None):
    return next(CALLS) % 2


def _mutate(self, x, w, y_true=None):
    found = Good.argmax(self, x, w, y_true)
    x += 0.0
    x[0] += 1e-12
    return found


CASES = {
    "no finite number": (broken(features=lambda s, x, y: Good.features(s, x, y) * np.nan), "not finite"),
    "changes": (broken(features=_drift), "change from one call to the next"),
    "of another length": (broken(features=lambda s, x, y: np.zeros(3 + y)), "shape"),
    "no features": (broken(features=lambda s, x, y: "abc"), "must be a dict"),
    "unordered": (broken(features=lambda s, x, y: (np.array([2 * y + 1, 2 * y]), x[::-1])), "do not ascend"),
    "out of range": (broken(features=lambda s, x, y: (np.array([2 * y, 2 * y + 10]), x)), "index 10"),
    "loss of the truth": (broken(loss=lambda s, y, y2: 1.0), "must cost 0"),
    "negative loss": (broken(loss=lambda s, y, y2: 0.0 if y == y2 else -1.0), "negative"),
    "infinite loss": (broken(loss=lambda s, y, y2: 0.0 if y == y2 else np.inf), "is inf"),
    "no loss": (broken(loss=lambda s, y, y2: None), "TypeError"),
    "beaten by the truth": (broken(argmax=lambda s, x, w, y_true=None: 0), "but the true output"),
    "argmin": (broken(argmax=lambda s, x, w, y_true=None: int((w.reshape(3, 2) @ x).argmin())), "but the"),
    "the loss is forgotten": (broken(argmax=lambda s, x, w, y_true=None: Good.argmax(s, x, w)), "score and loss"),
    "returns nothing": (broken(argmax=lambda s, x, w, y_true=None: None), "is there a return"),
    "two answers": (broken(argmax=_flip), "for the same weights"),
    "raises": (broken(argmax=lambda s, x, w, y_true=None: [][0]), "IndexError"),
    "writes w": (broken(argmax=lambda s, x, w, y_true=None: w.__setitem__(0, 1.0)), "read-only"),
    "changes inputs": (broken(argmax=_mutate), "inputs were changed"),
    "max_loss too small": (broken(max_loss=lambda s, y: 0.5), "more than max_loss"),
}


@pytest.mark.parametrize("case", CASES)
def test_broken_tasks(case):
    task, message = CASES[case]
    own = [x.copy() for x in X]
    found = problems(task, own)
    assert any(message in problem for problem in found), found
    with pytest.raises(ValueError, match="breaks laws"):
        check_task(task, [x.copy() for x in X], Y)


def test_samples_are_named():
    task = broken(loss=lambda s, y, y2: float(y == 2))
    assert problems(task)[0].startswith("sample 2:")


def test_no_data():
    assert "at least one" in problems(Good(), [], [])[0]
    assert "as many" in problems(Good(), X, Y[:2])[0]
