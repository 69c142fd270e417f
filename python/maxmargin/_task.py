"""A task of your own, and what the library sees of it."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Pair = tuple[NDArray[np.uint32], NDArray[np.float64]]


class Full(Exception):
    """There are more names of features than there is room for: train again with more."""


class Task:
    """What is to be learned: subclass it, and give it to :class:`StructuredSVM`.

    The model predicts the output y of an input x with the largest score ``<w, features(x, y)>``. Inputs and outputs are any Python
    objects; outputs are compared with ``==``.

    Attributes
    ----------
    size : int, optional
        How many features there are. Needed only where features are pairs of arrays; else it is found.

    Examples
    --------
    >>> import maxmargin
    >>> class Sign(maxmargin.Task):
    ...     def features(self, x, y):
    ...         return {"x": x * y}
    ...     def argmax(self, x, w, y_true=None):
    ...         return max((-1, 1), key=lambda y: w["x"] * x * y + (0 if y_true is None else self.loss(y_true, y)))
    >>> model = maxmargin.StructuredSVM(Sign(), C=10).fit([1.0, -2.0, 3.0], [1, -1, 1])
    >>> model.predict([5.0, -0.5])
    [1, -1]
    """

    size: int | None = None

    def features(self, x: Any, y: Any) -> Any:
        """The joint features of input and output.

        Returns
        -------
        dict, pair or array
            A dict from names to numbers; a pair (indices, values) of arrays, indices ascending from 0 and below ``size``; or a 1-D
            array. Always the same of the three.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method features(x, y)")

    def loss(self, y: Any, y2: Any) -> float:
        """What it costs to predict y2 where y is true: 0 where they are equal, never negative. The default: 1 for every error."""
        return 0.0 if same(y, y2) else 1.0

    def argmax(self, x: Any, w: Any, y_true: Any = None) -> Any:
        """The output with the largest score or, with `y_true`, with the largest score + loss(y_true, y).

        Parameters
        ----------
        x : object
            The input.
        w : mapping or array
            The weights: ``w[name]`` is that of a feature, 0 where it has none yet, if features are dicts; else an array. Read-only.
        y_true : object, optional
            The true output in training; None in prediction.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method argmax(x, w, y_true=None)")


def same(a: Any, b: Any) -> bool:
    """Are two outputs equal, also where they are arrays, or lists or tuples of them?"""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    if isinstance(a, (list, tuple)) and type(a) is type(b):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


class Boxed:
    """An output that has no plain == of its own, such as an array."""

    __slots__ = ("content",)

    def __init__(self, content: Any) -> None:
        self.content = content

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Boxed) and same(self.content, other.content)

    __hash__ = None  # type: ignore[assignment]


def has_arrays(output: Any) -> bool:
    """Is == of such outputs more than a yes or no?"""
    if isinstance(output, (list, tuple)):
        return any(has_arrays(part) for part in output)
    return isinstance(output, np.ndarray)


class Weights(Mapping[Hashable, float]):
    """Weights by the names of features; 0 for names that have none."""

    __slots__ = ("_names", "_w")

    def __init__(self, names: Mapping[Hashable, int], w: NDArray[np.float64]) -> None:
        self._names = names
        self._w = w

    def __getitem__(self, name: Hashable) -> float:
        at = self._names.get(name)
        return 0.0 if at is None else self._w.item(at)

    def get(self, name: Hashable, default: Any = 0.0) -> Any:
        """The weight of a feature, `default` where it has none."""
        at = self._names.get(name)
        return default if at is None else self._w.item(at)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def kind_of(features: Any) -> str:
    """dict, pair or array. TypeError where it is none of them."""
    if isinstance(features, Mapping):
        return "dict"
    if isinstance(features, tuple) and len(features) == 2:
        return "pair"
    if isinstance(features, np.ndarray) and features.ndim == 1:
        return "array"
    told = f"an array of shape {features.shape}" if isinstance(features, np.ndarray) else f"a {type(features).__name__}"
    raise TypeError(f"features(x, y) returned {told}; it must be a dict, a pair (indices, values) or a 1-D array")


class Adapter:
    """A task with its inputs, as the library calls it: inputs by number, features as sorted pairs of arrays."""

    def __init__(self, task: Task, inputs: Sequence[Any], kind: str, size: int, names: dict[Hashable, int]) -> None:
        self.task = task
        self.inputs = inputs
        self.kind = kind
        self.size = size
        self.names = names
        self.outputs: Sequence[Any] = ()
        self.has_boxes = False
        # The weights that were asked about last: the library fills the same array for each call.
        self.last: NDArray[np.float64] | None = None

    def truths(self) -> list[Any]:
        """The true outputs, as the library is to have them."""
        self.has_boxes = any(has_arrays(y) for y in self.outputs)
        return [Boxed(y) for y in self.outputs] if self.has_boxes else list(self.outputs)

    def features(self, i: int, y: Any) -> Any:
        """The features of input i and an output, as the task has them."""
        return self.task.features(self.inputs[i], y.content if self.has_boxes else y)

    def psi(self, i: int, y: Any, features: Any) -> Pair:
        """The same with indices ascending, none twice. The library asks where these arrays are not of that kind already."""
        y = y.content if self.has_boxes else y
        if self.kind == "array":
            indices, values = self._of_array(i, features)
        elif self.kind == "pair":
            indices, values = self._of_pair(i, features)
        else:
            indices, values = self._of_dict(i, features)
        # A sum is finite only where all are, or where it overflows; both are wrong.
        if not np.isfinite(values.sum()):
            raise ValueError(f"features of sample {i} and output {y!r}: a value is not finite")
        return indices, values

    def _of_array(self, i: int, features: Any) -> Pair:
        array = np.asarray(features, np.float64)
        if array.shape != (self.size,):
            raise ValueError(f"features of sample {i}: an array of shape {array.shape}; others have ({self.size},)")
        indices = np.flatnonzero(array)
        return indices.astype(np.uint32), array[indices]

    def _of_pair(self, i: int, features: Any) -> Pair:
        try:
            indices, values = features
        except (TypeError, ValueError):
            raise TypeError(f"features of sample {i}: {type(features).__name__}; others are pairs (indices, values)") from None
        indices, values = np.asarray(indices), np.ascontiguousarray(values, np.float64)
        if indices.ndim != 1 or indices.shape != values.shape:
            raise ValueError(f"features of sample {i}: {indices.shape} indices for {values.shape} values; both are lists of one length")
        if len(indices) == 0:
            return np.empty(0, np.uint32), values
        if indices.dtype.kind not in "iu":
            raise ValueError(f"features of sample {i}: indices are {indices.dtype}, not whole numbers")
        if len(indices) > 1 and not (indices[1:] > indices[:-1]).all():
            # Features may come in any order; those that come twice add up.
            indices, place = np.unique(indices, return_inverse=True)
            values = np.bincount(place.ravel(), weights=values, minlength=len(indices))
        if indices[0] < 0 or indices[-1] >= self.size:
            bad = indices[0] if indices[0] < 0 else indices[-1]
            raise ValueError(f"features of sample {i}: index {bad}; they go from 0 to {self.size - 1} (the task's size is {self.size})")
        return indices.astype(np.uint32), values

    def _of_dict(self, i: int, features: Any) -> Pair:
        if not isinstance(features, Mapping):
            raise TypeError(f"features of sample {i}: a {type(features).__name__}; others are dicts")
        names, count = self.names, len(features)
        indices = np.empty(count, np.uint32)
        values = np.empty(count, np.float64)
        for k, (name, value) in enumerate(features.items()):
            at = names.get(name)
            if at is None:
                at = len(names)
                if at >= self.size:
                    raise Full
                names[name] = at
            indices[k] = at
            values[k] = value
        order = np.argsort(indices)
        return indices[order], values[order]

    def loss(self, i: int, y: Any) -> float:
        """What it costs to predict y for input i."""
        return float(self.task.loss(self.outputs[i], y.content if self.has_boxes else y))

    def argmax(self, i: int, w: NDArray[np.float64], y_true: Any) -> Any:
        """The best output of input i, with the loss added in where there is a true one."""
        self.last = w
        view: Any
        if self.kind == "dict":
            view = Weights(self.names, w)
        else:
            view = w.view()
            view.flags.writeable = False
        y = self.task.argmax(self.inputs[i], view, None if y_true is None else self.outputs[i])
        return Boxed(y) if self.has_boxes else y

    def max_loss(self, i: int) -> float:
        """The most that an output of input i can cost: the scale of epsilon."""
        most = getattr(self.task, "max_loss", None)
        return 1.0 if most is None else float(most(self.outputs[i]))


def _checked(size: Any) -> int:
    """The size that a task tells."""
    if isinstance(size, bool) or not isinstance(size, numbers.Integral) or size < 1:
        raise ValueError(f"the task's size is {size!r}; it must be the number of features: a whole number, at least 1")
    return int(size)


def adapter_of(task: Task, inputs: Sequence[Any], outputs: Sequence[Any]) -> Adapter:
    """The adapter of a task, from what its features of the true outputs are."""
    if isinstance(task, type):
        raise ValueError(f"task={task.__name__} is a class; give an object of it: {task.__name__}()")
    first = task.features(inputs[0], outputs[0])
    kind = kind_of(first)
    names: dict[Hashable, int] = {}
    if kind == "array":
        size = len(first)
    elif kind == "pair":
        if task.size is None:
            raise ValueError("features are pairs (indices, values): the task needs an attribute size, the number of features")
        size = _checked(task.size)
    else:
        for i, (x, y) in enumerate(zip(inputs, outputs, strict=True)):
            features = first if i == 0 else task.features(x, y)
            if not isinstance(features, Mapping):
                raise TypeError(f"features of sample {i}: a {type(features).__name__}; others are dicts")
            for name in features:
                names.setdefault(name, len(names))
        # Wrong outputs have other features than the true ones: leave room for them.
        size = _checked(task.size) if task.size is not None else max(64, 2 * len(names))
    adapter = Adapter(task, inputs, kind, size, names)
    adapter.outputs = outputs
    return adapter
