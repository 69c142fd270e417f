"""Classes, linearly and with kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _modelfile, _settings
from maxmargin._classifier import RowClassifier
from maxmargin._doc import documented
from maxmargin._files import Folder


class _FlatClassifier(RowClassifier):
    """Binary for two classes, else multiclass."""

    loss: str | None

    _own = RowClassifier._own

    def _task(self, classes: int) -> str:
        # Two classes have zero-one loss as a task of their own; other losses need a score for each class.
        is_plain = self.loss in (None, "zero-one") and getattr(self, "cost_matrix", None) is None
        return "binary" if classes == 2 and is_plain else "multiclass"


@documented
class LinearClassifier(_FlatClassifier):
    """Linear large-margin classifier of two or more classes.

    Losses: zero-one (default); with more than two classes also absolute, squared (classes are numbers) and matrix.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    coef_, intercept_ : array
        Weights and offsets: one row for two classes, else one a class.
    primal_, dual_, gap_ : float
        The objective, a bound below which it cannot be, and their difference.
    history_ : dict of arrays
        The figures of each round.
    report_ : dict
        The summary of the training.

    Examples
    --------
    >>> from maxmargin import LinearClassifier
    >>> X = [[2.0, 0.1], [1.5, -0.2], [-1.0, 1.6], [-0.9, 1.8], [-1.2, -1.4], [-0.8, -2.0]]
    >>> model = LinearClassifier(C=10).fit(X, ["right", "right", "up", "up", "down", "down"])
    >>> print(*model.predict([[3.0, 0.0], [-1.0, 1.0]]))
    right up
    >>> bool(model.gap_ <= 0.01 * 10 * len(X))
    True
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str | None = None,
        penalty: str | None = None,
        rescaling: str | None = None,
        bias: float | None = None,
        class_weight: Any = None,
        cost_matrix: Any = None,
        loss_scale: float | None = None,
        C_path: Any = None,
        solver: str | None = None,
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
        keep_best: bool = False,
        folds: int | None = None,
        checkpoint: Any = None,
        checkpoint_every: float | None = None,
        resume: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def _rows_of_weights(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """coef_ and intercept_."""
        self._check_fitted()
        record = _modelfile.record(self.model_)
        weights = np.asarray(_modelfile.tensor(self.model_, "weights"), np.float64)
        features, bias = record["features"], _modelfile.number(record["bias"])
        coef = np.zeros((weights.shape[1], self.n_features_in_))
        coef[:, :features] = weights[:features].T
        # The constant feature is kept in 32 bits, as all are.
        intercept = weights[features] * float(np.float32(bias)) if bias else np.zeros(weights.shape[1])
        return coef, intercept

    @property
    def coef_(self) -> NDArray[np.float64]:
        """The weights of the features."""
        return self._rows_of_weights()[0]

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """The offsets; zero without ``bias``."""
        return self._rows_of_weights()[1]


@documented
class KernelClassifier(_FlatClassifier):
    """Large-margin classifier with a kernel.

    Losses: those of :class:`LinearClassifier`.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : array
        The classes, sorted.
    n_support_ : int
        Number of support vectors.
    primal_, dual_, gap_ : float
        The objective, a bound below which it cannot be, and their difference.

    Examples
    --------
    >>> from maxmargin import KernelClassifier
    >>> X = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]] * 5
    >>> model = KernelClassifier(C=10, gamma=2).fit(X, ["same", "same", "other", "other"] * 5)
    >>> print(*model.predict([[0.1, 0.1], [0.9, 0.1]]))
    same other
    """

    _own = _FlatClassifier._own | {"kernel"}

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str = "rbf",
        gamma: Any = None,
        degree: int | None = None,
        coef0: float | None = None,
        low_rank: int | None = None,
        basis: str | None = None,
        kernel_cache: int | None = None,
        sample_size: int | None = None,
        sampling: str | None = None,
        bound: float | None = None,
        loss: str | None = None,
        penalty: str | None = None,
        rescaling: str | None = None,
        bias: float | None = None,
        class_weight: Any = None,
        cost_matrix: Any = None,
        loss_scale: float | None = None,
        C_path: Any = None,
        solver: str | None = None,
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
        keep_best: bool = False,
        folds: int | None = None,
        checkpoint: Any = None,
        checkpoint_every: float | None = None,
        resume: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def _prepare(self, folder: Folder) -> dict[str, Any]:
        given = self.get_params(deep=False)
        kernel = _settings.kernel_word(given["kernel"], given["gamma"], given["degree"], given["coef0"])
        return {**super()._prepare(folder), "kernel": kernel}

    @property
    def n_support_(self) -> int:
        """Number of support vectors."""
        self._check_fitted()
        try:
            return len(_modelfile.tensor(self.model_, "coefficients"))
        except KeyError:
            raise AttributeError("n_support_: a linear kernel has weights, and no support vectors") from None
