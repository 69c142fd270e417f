"""Labels for the variables of factor graphs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _json_lines, _native, _rows
from maxmargin._graph_samples import plain_graphs
from maxmargin._doc import documented
from maxmargin._estimator import Estimator
from maxmargin._files import Folder
from maxmargin._progress import Callback

if TYPE_CHECKING:
    from typing_extensions import Self

_WHAT = "domain, x, factors and factor_x"


@documented
class FactorGraphModel(Estimator):
    """Labels the variables of graphs together.

    A sample is a dict: ``domain``, the number of labels of each variable (one number, or a list); ``x``, a row of features for each
    variable (an array, lists, or dicts from the number of a feature, from 0, to its value); ``factors``, for each template its list of
    scopes; ``factor_x``, where wanted, for each template a row of features for each factor. Its output is the list of labels, from 0.
    Loss: hamming.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> from maxmargin import FactorGraphModel
    >>> chain = {"next": [[0, 1], [1, 2]]}
    >>> X = [{"domain": 2, "x": [[2.0], [0.1], [1.0]], "factors": chain}, {"domain": 2, "x": [[-1.0], [-0.2], [-2.0]], "factors": chain}]
    >>> model = FactorGraphModel(C=10).fit(X, [[1, 1, 1], [0, 0, 0]])
    >>> [labels.tolist() for labels in model.predict(X)]
    [[1, 1, 1], [0, 0, 0]]
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str | None = None,
        penalty: str | None = None,
        rescaling: str | None = None,
        loss_scale: float | None = None,
        C_path: Any = None,
        solver: str | None = None,
        groups: int | None = None,
        cache: Any = None,
        line_search: bool | None = None,
        max_cuts: int | None = None,
        update: str | None = None,
        batch: int | None = None,
        rho: float | None = None,
        eta: float | None = None,
        fmo_parts: int | None = None,
        inner: str | None = None,
        certify: bool = False,
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

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, heldout: Any = None, callback: Callback | None = None) -> Self:
        """Trains.

        Parameters
        ----------
        X : list of dicts
            The graphs.
        y : list of lists of int, optional
            The label of each variable, where they are not in the dicts (``labels``).
        sample_weight : array of shape (n_samples,), optional
            How much each graph counts; those of weight 0 are left out.
        heldout : list of dicts or pair (X, y), optional
            Graphs on which the loss is measured once a pass.
        callback : function, optional
            Gets a dict for each round; training stops where it returns True.

        Returns
        -------
        self
        """
        weights, (graphs,) = _rows.weighed(sample_weight, self._labelled(X, y))
        text = _json_lines.lines(graphs, _WHAT)

        def prepare(folder: Folder) -> list[str]:
            options = self._options()
            if heldout is not None:
                test = heldout if isinstance(heldout, tuple) else (heldout, None)
                try:
                    options += ["--heldout", folder.file("heldout", self._text(*test))]
                except ValueError as error:
                    raise ValueError(f"heldout: {error}") from None
            return options

        self._train(prepare, lambda options, watch: _native.train_text("graph", options, text, weights, watch), callback)
        return self

    def _labelled(self, X: Any, y: Any) -> list[dict[str, Any]]:
        return plain_graphs(_json_lines.with_outputs(X, y, ("labels",), _WHAT))

    def _text(self, X: Any, y: Any) -> bytes:
        return _json_lines.lines(self._labelled(X, y), _WHAT)

    def _lines(self, X: Any, options: list[str]) -> list[str]:
        self._check_fitted()
        text = _json_lines.lines(plain_graphs(_json_lines.samples_of(X, _WHAT)), _WHAT)
        return self._ask("predict", options, text).decode().splitlines() if text else []

    def predict(self, X: Any) -> list[NDArray[np.int64]]:
        """The labels of each graph's variables."""
        return [np.array(json.loads(line), np.int64) for line in self._lines(X, [])]

    def predict_scores(self, X: Any) -> list[tuple[float, float]]:
        """The score of each graph's labels, and what no labelling has more of: where they are equal, the labels are the best."""
        found = [line.split("\t") for line in self._lines(X, ["--scores"])]
        return [(float(score), float(bound)) for _, score, bound in found]

    def evaluate(self, X: Any, y: Any = None) -> dict[str, Any]:
        """The figures of ``maxmargin evaluate``: variable_accuracy, exact_match, mean_iou and more."""
        found: dict[str, Any] = json.loads(self._ask("evaluate", ["--json"], self._text(X, y)))
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """The share of variables whose label is right."""
        return float(self.evaluate(X, y)["variable_accuracy"])
