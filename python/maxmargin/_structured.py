"""Training of tasks that are written in Python."""

from __future__ import annotations

import json
from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native, _rows, _settings
from maxmargin._base import BaseEstimator, NotFittedError, kindred
from maxmargin._doc import documented
from maxmargin._estimator import plot, warn_of_status
from maxmargin._progress import Callback, Watch
from maxmargin._task import Adapter, Full, Task, Weights, adapter_of

_OPTIONS = (
    "C", "penalty", "rescaling", "loss_scale", "solver", "groups", "cache", "line_search", "max_cuts", "update", "batch",
    "epsilon", "relative_gap", "max_seconds", "max_passes", "random_state",
)  # fmt: skip


@documented
class StructuredSVM(BaseEstimator):
    """Trains a :class:`Task` of your own.

    Parameters
    ----------
    task : Task
        Its features, loss and argmax.
    {parameters}

    Attributes
    ----------
    coef_ : array or dict
        The weights; a dict by names where features are dicts.
    primal_, dual_, gap_ : float
        The objective, a bound below which it cannot be if argmax is exact, and their difference.
    history_ : dict of arrays
        The figures of each round.
    report_ : dict
        The summary of the training.

    See Also
    --------
    check_task : Run it first: it tells what is wrong with a task.

    Examples
    --------
    Which of three numbers is asked for? Features by names, one weight for each place.

    >>> import maxmargin
    >>> class Pick(maxmargin.Task):
    ...     def features(self, x, y):
    ...         return {"value": x[y], f"place {y}": 1.0}
    ...     def argmax(self, x, w, y_true=None):
    ...         def value(y):
    ...             return w["value"] * x[y] + w[f"place {y}"] + (0 if y_true is None else self.loss(y_true, y))
    ...         return max(range(3), key=value)
    >>> X, y = [(1, 5, 2), (7, 3, 4), (0, 1, 9)], [1, 0, 2]
    >>> model = maxmargin.StructuredSVM(Pick(), C=10.0).fit(X, y)
    >>> model.predict([(4, 2, 8)])
    [2]
    >>> model.coef_["value"] > 0
    True
    """

    def __init__(
        self,
        task: Task,
        C: float = 1.0,
        *,
        solver: str | None = None,
        penalty: str | None = None,
        rescaling: str | None = None,
        loss_scale: float | None = None,
        groups: int | None = None,
        cache: Any = None,
        line_search: bool | None = None,
        max_cuts: int | None = None,
        update: str | None = None,
        batch: int | None = None,
        epsilon: float | None = None,
        relative_gap: float | None = None,
        max_seconds: float | None = None,
        max_passes: float | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        for name, value in locals().items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    task: Task
    warm_start: bool
    verbose: int

    def _options(self) -> list[str]:
        """The words for the program. Python is called from one thread."""
        given = self.get_params(deep=False)
        return [*_settings.words({name: given[name] for name in _OPTIONS}), "--threads", "1"]

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, callback: Callback | None = None) -> StructuredSVM:
        """Trains.

        Parameters
        ----------
        X : list
            The inputs.
        y : list
            Their true outputs.
        sample_weight : array of shape (n_samples,), optional
            How much each example counts; those of weight 0 are left out.
        callback : function, optional
            Gets a dict for each round; training stops where it returns True.

        Returns
        -------
        self
        """
        if not all(hasattr(self.task, name) for name in ("features", "loss", "argmax")):
            raise ValueError(f"task={self.task!r}: must be a maxmargin.Task, with features, loss and argmax")
        inputs, outputs = list(X), list(y)
        if len(inputs) != len(outputs):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(inputs), len(outputs)]}")
        if not inputs:
            raise ValueError("Found 0 sample(s) while a minimum of 1 is required")
        weights = _rows.sample_weights(sample_weight, len(inputs))
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            inputs, outputs, weights = [inputs[i] for i in kept], [outputs[i] for i in kept], weights[kept]
        adapter = adapter_of(self.task, inputs, outputs)
        start = self._start(adapter) if self.warm_start and hasattr(self, "_w") else None
        watch = Watch(callback, self.verbose)
        try:
            w, summary = self._train(adapter, weights, start, watch)
        finally:
            watch.close()
        self._kind, self._names, self._w = adapter.kind, adapter.names, np.array(w, np.float64)
        self.history_ = watch.history()
        self.report_: dict[str, Any] = json.loads(summary)
        self.status_ = str(self.report_["status"])
        self.certificate_ = str(self.report_["certificate"])
        told = {key: self.report_.get(key) for key in ("primal", "dual", "gap")}
        self.primal_, self.dual_, self.gap_ = (float("nan") if value is None else float(value) for value in told.values())
        self.n_iter_ = int(self.report_["rounds"])
        if not watch.is_stopped:
            warn_of_status(self, stacklevel=2)
        return self

    def _train(
        self, adapter: Adapter, weights: NDArray[np.float64] | None, start: NDArray[np.float64] | None, watch: Watch
    ) -> tuple[NDArray[np.float64], str]:
        """Makes room where there are more features than were foreseen, and goes on from the weights so far."""
        inputs, options = list(adapter.inputs), self._options()
        while True:
            try:
                return _native.train_task(adapter, inputs, adapter.truths(), weights, adapter.size, options, watch, start)
            except Full:
                so_far = adapter.last if adapter.last is not None else np.zeros(adapter.size)
                start = np.concatenate([so_far, np.zeros(adapter.size)])
                adapter.size, adapter.last = len(start), None
                watch.clear()

    def _start(self, adapter: Adapter) -> NDArray[np.float64]:
        """The weights of the last fit, for the features of this one."""
        if adapter.kind != self._kind or (adapter.kind != "dict" and adapter.size != len(self._w)):
            raise ValueError("warm_start: the features of this fit are not those of the last one")
        if adapter.kind != "dict":
            return self._w
        for name in self._names:
            adapter.names.setdefault(name, len(adapter.names))
        adapter.size = max(adapter.size, len(adapter.names))
        start = np.zeros(adapter.size)
        for name, at in self._names.items():
            start[adapter.names[name]] = self._w[at]
        return start

    @property
    def coef_(self) -> Any:
        """The weights: an array, or a dict by names where features are dicts."""
        if not hasattr(self, "_w"):
            raise AttributeError("coef_: this StructuredSVM instance is not fitted yet")
        if self._kind != "dict":
            return self._w
        return {name: float(self._w[at]) for name, at in self._names.items()}

    def _weights(self) -> Any:
        if not hasattr(self, "_w"):
            raise kindred(NotFittedError)(
                "This StructuredSVM instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator."
            )
        if self._kind == "dict":
            names: dict[Hashable, int] = self._names
            return Weights(names, self._w)
        view = self._w.view()
        view.flags.writeable = False
        return view

    def predict(self, X: Any) -> list[Any]:
        """The best output of each input."""
        w = self._weights()
        return [self.task.argmax(x, w, None) for x in X]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The mean loss, negative: the larger the better, 0 where all is right. (Losses may exceed 1, so it is no accuracy.)"""
        losses = [float(self.task.loss(true, found)) for true, found in zip(y, self.predict(X), strict=True)]
        return -float(np.average(losses, weights=_rows.sample_weights(sample_weight, len(losses))))

    def plot_convergence(self, ax: Any = None) -> Any:
        """Draws primal and dual values over the passes; needs matplotlib."""
        self._weights()
        return plot(self.history_, ax)
