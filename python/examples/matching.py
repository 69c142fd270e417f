"""A task of your own: matching.

Six sources of sound are heard by six microphones, and which belongs to which is to be found from a few measurements of each pair. An
output is a whole matching, a permutation: no two sources may share a microphone, so pairs cannot be judged one by one. How much each
measurement tells is learned from matchings that are known.

Run it with ``python matching.py``; it takes a few seconds.
"""

from __future__ import annotations

import itertools

import numpy as np

import maxmargin

ITEMS = 6
MEASUREMENTS = 8

# All matchings: few enough to look at each. With more items take scipy.optimize.linear_sum_assignment.
MATCHINGS = np.array(list(itertools.permutations(range(ITEMS))))


class Matching(maxmargin.Task):
    """Input: an array of ITEMS x ITEMS x MEASUREMENTS. Output: a tuple, the partner of each item."""

    def features(self, x, y):
        """The measurements of all pairs of the matching, added up."""
        return x[np.arange(ITEMS), list(y)].sum(axis=0)

    def loss(self, y, y2):
        """The share of items with a wrong partner."""
        return sum(a != b for a, b in zip(y, y2, strict=True)) / ITEMS

    def argmax(self, x, w, y_true=None):
        """The matching whose pairs score most."""
        pairs = x @ w
        if y_true is not None:
            # The loss adds up over pairs, so it goes into their scores: every wrong pair gains its part of it.
            pairs = pairs + 1 / ITEMS
            pairs[np.arange(ITEMS), list(y_true)] -= 1 / ITEMS
        scores = pairs[np.arange(ITEMS), MATCHINGS].sum(axis=1)
        return tuple(int(partner) for partner in MATCHINGS[scores.argmax()])


def draw(n, seed):
    """Pairs that belong together measure higher, some measurements more so than others; the last three are noise."""
    random = np.random.default_rng(seed)
    tells = np.array([1.0, 0.8, 0.6, 0.4, 0.2, 0.0, 0.0, 0.0])
    X = random.normal(size=(n, ITEMS, ITEMS, MEASUREMENTS))
    Y = [tuple(int(k) for k in random.permutation(ITEMS)) for _ in range(n)]
    for x, y in zip(X, Y, strict=True):
        x[np.arange(ITEMS), list(y)] += 1.5 * tells
    return list(X), Y


def main():
    task = Matching()
    X, Y = draw(100, seed=1)
    X_test, Y_test = draw(200, seed=2)

    print("check_task finds:", maxmargin.check_task(task, X, Y) or "nothing wrong")

    model = maxmargin.StructuredSVM(task, C=0.1, solver="bcfw", relative_gap=0.01)
    model.fit(X, Y)
    print(f"objective {model.primal_:.4f}, and none is below {model.dual_:.4f}: {model.n_iter_} rounds, {model.status_}")
    print("weights of the measurements:", np.round(model.coef_, 3))

    found = model.predict(X_test)
    equal = np.mean([task.loss(y, task.argmax(x, np.ones(MEASUREMENTS))) for x, y in zip(X_test, Y_test, strict=True)])
    print(f"wrong partners on new data:  {-model.score(X_test, Y_test):.1%}; with equal weights {equal:.1%}")
    print(f"matchings that are all right: {np.mean([a == b for a, b in zip(found, Y_test, strict=True)]):.1%}")


if __name__ == "__main__":
    main()
