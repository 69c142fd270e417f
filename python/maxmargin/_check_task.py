"""Does a task keep the laws that the solvers rely on?"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._task import Adapter, Full, Pair, Task, Weights, adapter_of, same

# Rounding errors of scores, as a share of their size.
_ROUNDING = 1e-9


def check_task(task: Task, X: Any, Y: Any, *, samples: int = 20, random_state: int = 0, raises: bool = True) -> list[str]:
    """Tells in words what is wrong with a task.

    Parameters
    ----------
    task : Task
        What is to be checked.
    X, Y : lists
        Some inputs and their true outputs.
    samples : int, default=20
        How many of them are looked at.
    random_state : int, default=0
        Seed of the weights that argmax is tried with.
    raises : bool, default=True
        Raise a ValueError where something is wrong.

    Returns
    -------
    list of str
        What is wrong; empty where nothing was found, which is no proof.

    Examples
    --------
    >>> import maxmargin
    >>> class Careless(maxmargin.Task):
    ...     def features(self, x, y):
    ...         return {"x": x * y}
    ...     def argmax(self, x, w, y_true=None):
    ...         return 1
    >>> problems = maxmargin.check_task(Careless(), [1.0, -2.0], [1, -1], raises=False)
    >>> print(problems[0].split(" with ")[0])
    sample 1: argmax(x, w) returned 1
    """
    check = _Check(task, list(X)[:samples], list(Y)[:samples], np.random.default_rng(random_state))
    problems = check.run()
    if problems and raises:
        raise ValueError("the task breaks laws that training relies on:\n" + "\n".join(f"- {problem}" for problem in problems))
    return problems


class _Check:
    def __init__(self, task: Task, X: list[Any], Y: list[Any], random: np.random.Generator) -> None:
        self.task, self.X, self.Y, self.random = task, X, Y, random
        self.problems: list[str] = []
        # Outputs that were met for each input.
        self.seen: list[list[Any]] = [[y] for y in Y]

    def tell(self, problem: str) -> None:
        """Each problem once."""
        if problem not in self.problems:
            self.problems.append(problem)

    def run(self) -> list[str]:
        if not self.X or len(self.X) != len(self.Y):
            return [f"{len(self.X)} inputs and {len(self.Y)} outputs: there must be as many, and at least one"]
        before = _snapshot(self.X), _snapshot(self.Y)
        try:
            adapter = adapter_of(self.task, self.X, self.Y)
        except Exception as error:
            return [f"features(x, y) of the true outputs: {_words(error)}"]
        # Room for all names that come, so that none is missing.
        adapter.size = adapter.size if adapter.kind != "dict" else 10**6
        for i, y in enumerate(self.Y):
            self.check_features(adapter, i, y)
            self.check_loss(i, y, y)
        if not self.problems:
            # Without weights the loss alone decides: once more at the end, when more outputs have been met to compare with.
            for scale in (0.0, 1.0, 1.0, 10.0, 0.0):
                for i in range(len(self.X)):
                    self.check_argmax(adapter, i, scale)
        for name, old, new in (("inputs", before[0], _snapshot(self.X)), ("outputs", before[1], _snapshot(self.Y))):
            if old is not None and old != new:
                self.tell(f"the {name} were changed by the task's methods; work on a copy")
        return self.problems

    def check_features(self, adapter: Adapter, i: int, y: Any) -> Pair | None:
        """Are they in order, and the same each time?"""
        try:
            raw = self.task.features(self.X[i], y)
            first, second = (adapter.psi(i, y, adapter.features(i, y)) for _ in range(2))
        except Full:
            self.tell("features(x, y) have over a million names")
            return None
        except Exception as error:
            self.tell(f"sample {i}: features(x, {y!r}): {_words(error)}")
            return None
        if not (np.array_equal(first[0], second[0]) and np.array_equal(first[1], second[1])):
            self.tell(f"sample {i}: features(x, {y!r}) change from one call to the next")
        if adapter.kind == "pair" and len(raw[0]) > 1 and not (np.diff(np.asarray(raw[0]).astype(np.int64)) > 0).all():
            self.tell(f"sample {i}: the indices of features(x, {y!r}) do not ascend, or one comes twice; sort them")
        return first

    def check_loss(self, i: int, y: Any, y2: Any) -> float | None:
        """Is it a number, not negative, and 0 for the truth?"""
        try:
            loss = float(self.task.loss(y, y2))
            are_same = same(y, y2)
        except Exception as error:
            self.tell(f"sample {i}: loss({y!r}, {y2!r}) or ==: {_words(error)}")
            return None
        if not np.isfinite(loss):
            self.tell(f"sample {i}: loss({y!r}, {y2!r}) is {loss}")
            return None
        if are_same and loss != 0:
            self.tell(f"sample {i}: loss({y!r}, {y2!r}) is {loss:g}; the true output must cost 0")
        if loss < 0:
            self.tell(f"sample {i}: loss({y!r}, {y2!r}) is {loss:g}, which is negative")
        most = getattr(self.task, "max_loss", None)
        if most is not None and loss > float(most(y)) * (1 + _ROUNDING):
            self.tell(f"sample {i}: loss({y!r}, {y2!r}) is {loss:g}, more than max_loss, {float(most(y)):g}")
        return loss

    def check_argmax(self, adapter: Adapter, i: int, scale: float) -> None:
        """Is what argmax returns beaten by nothing that was met?"""
        room = len(adapter.names) if adapter.kind == "dict" else adapter.size
        w = self.random.normal(size=room) * scale
        w.flags.writeable = False
        for y_true in (None, self.Y[i]):
            call = "argmax(x, w)" if y_true is None else "argmax(x, w, y_true)"
            found = self.call(adapter, i, w, y_true, call)
            if found is None:
                return
            # Outputs that are new may have features that are new: their weight is 0.
            value = self.value(adapter, i, w, found[0], y_true)
            for y in self.seen[i]:
                other = self.value(adapter, i, w, y, y_true)
                if value is None or other is None:
                    return
                if other > value + _ROUNDING * (1 + abs(other) + abs(value)):
                    what = "score" if y_true is None else "score and loss"
                    whose = "the true output" if same(y, self.Y[i]) else "the output"
                    self.tell(
                        f"sample {i}: {call} returned {found[0]!r} with {what} {value:.6g}, but {whose} {y!r} has {what} {other:.6g}"
                    )
                    break
            if not any(same(found[0], y) for y in self.seen[i]):
                self.seen[i].append(found[0])

    def call(self, adapter: Adapter, i: int, w: NDArray[np.float64], y_true: Any, call: str) -> tuple[Any] | None:
        """What argmax returns, if it does so twice."""
        view: Any = Weights(dict(adapter.names), w) if adapter.kind == "dict" else w
        try:
            found = self.task.argmax(self.X[i], view, y_true)
            again = self.task.argmax(self.X[i], view, y_true)
            is_same = same(found, again)
        except Exception as error:
            self.tell(f"sample {i}: {call}: {_words(error)}")
            return None
        if found is None:
            self.tell(f"sample {i}: {call} returned None; is there a return?")
            return None
        if not is_same:
            self.tell(f"sample {i}: {call} returned {found!r}, then {again!r} for the same weights")
        return (found,)

    def value(self, adapter: Adapter, i: int, w: NDArray[np.float64], y: Any, y_true: Any) -> float | None:
        """The score of an output, with its loss where there is a true one."""
        features = self.check_features(adapter, i, y)
        loss = 0.0 if y_true is None else self.check_loss(i, y_true, y)
        if features is None or loss is None:
            return None
        known = features[0] < len(w)
        return float(w[features[0][known]] @ features[1][known]) + loss


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _snapshot(objects: Sequence[Any]) -> bytes | None:
    """To see whether something has changed; None where it cannot be told."""
    try:
        return pickle.dumps(objects)
    except Exception:
        return None
