"""The estimators of the package, trained on a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from distributed import get_client

from maxmargin import _settings
from maxmargin import partitions as core
from maxmargin._aligner import SequenceAligner
from maxmargin._estimator import Estimator
from maxmargin._graphs import FactorGraphModel
from maxmargin._linear import LinearClassifier
from maxmargin._multilabel import MultilabelClassifier
from maxmargin._parser import TreeParser
from maxmargin._progress import Callback
from maxmargin._tagger import SequenceTagger
from maxmargin._taxonomy import TaxonomyClassifier
from maxmargin.dask import _collections
from maxmargin.dask._engine import DaskEngine

if TYPE_CHECKING:
    from typing_extensions import Self

# Seconds without a sign of life after which a worker is given up.
_PATIENCE = 30.0


def _engine(client: Any, n_jobs: Any, patience: float) -> core.Engine:
    threads = _settings.threads(n_jobs) or 0
    if client is False:
        return core.Local(threads)
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError("there is no Dask client; make one (distributed.Client()), or pass client=False to train in this process") from None
    return DaskEngine(client, threads, patience)


def train(
    client: Any,
    params: dict[str, Any],
    partitions: Any,
    *,
    callback: Callback | None = None,
    patience: float = _PATIENCE,
) -> Any:
    """Trains on a cluster.

    Parameters
    ----------
    client : distributed.Client, None or False
        Of the cluster; None finds the current one, False trains in this process, to the same bits.
    params : dict
        ``task`` (binary, multiclass, taxonomy, tag, parse, align, multilabel or graph) and the parameters of its estimator.
    partitions : list, pattern of file names, or Dask collection
        Files or URIs, which the workers read; text; samples in memory, ``(X, y)``; delayed objects or futures of those.
    callback : function, optional
        Gets a dict for each round; training stops where it returns True.
    patience : float
        Seconds without a sign of life after which a worker is given up.

    Returns
    -------
    estimator
        The ordinary one, ready to predict.
    """
    estimator = core.estimator_of(params)
    _fit(estimator, _collections.listed(partitions), client, callback, patience)
    return estimator


def _fit(estimator: Any, parts: list[Any], client: Any, callback: Callback | None, patience: float) -> None:
    if client is False:
        parts = _collections.computed(parts)
    core.fit(estimator, parts, _engine(client, estimator.n_jobs, patience), callback)


class _Distributed(Estimator):
    """``fit`` on a cluster instead of in this process. Everything else is the ordinary estimator's."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        client: Any = None,
        callback: Callback | None = None,
        patience: float = _PATIENCE,
    ) -> Self:
        """Trains on a cluster.

        Parameters
        ----------
        X : list, pattern of file names, or Dask collection
            The partitions: files or URIs, which the workers read; bytes of text; samples in memory, ``(X, y)`` or ``(X, y,
            sample_weight)``; delayed objects or futures of those; or an array, frame or bag, each part of which is a partition.
        y : Dask collection, optional
            The outputs of a collection, in as many parts.
        sample_weight : Dask collection, optional
            How much each sample of a collection counts.
        client : distributed.Client, optional
            Of the cluster. Default: the current one. False: in this process, to the same bits.
        callback : function, optional
            Gets a dict for each round; training stops where it returns True.
        patience : float
            Seconds without a sign of life after which a worker is given up.

        Returns
        -------
        self
        """
        _fit(self, _collections.listed(X, y, sample_weight), client, callback, patience)
        return self

    def to_local(self) -> Any:
        """The ordinary estimator, with the same parameters and the same model."""
        kind = next(kind for kind in type(self).__mro__ if kind in core.ESTIMATORS.values())
        local = kind(**self.get_params(deep=False))
        local.__dict__.update(self.__dict__)
        return local


class DaskLinearClassifier(_Distributed, LinearClassifier):  # type: ignore[misc]
    """:class:`maxmargin.LinearClassifier`, trained on a cluster."""


class DaskTaxonomyClassifier(_Distributed, TaxonomyClassifier):  # type: ignore[misc]
    """:class:`maxmargin.TaxonomyClassifier`, trained on a cluster."""


class DaskMultilabelClassifier(_Distributed, MultilabelClassifier):  # type: ignore[misc]
    """:class:`maxmargin.MultilabelClassifier`, trained on a cluster."""


class DaskSequenceTagger(_Distributed, SequenceTagger):  # type: ignore[misc]
    """:class:`maxmargin.SequenceTagger`, trained on a cluster."""


class DaskTreeParser(_Distributed, TreeParser):  # type: ignore[misc]
    """:class:`maxmargin.TreeParser`, trained on a cluster."""


class DaskSequenceAligner(_Distributed, SequenceAligner):  # type: ignore[misc]
    """:class:`maxmargin.SequenceAligner`, trained on a cluster."""


class DaskFactorGraphModel(_Distributed, FactorGraphModel):  # type: ignore[misc]
    """:class:`maxmargin.FactorGraphModel`, trained on a cluster."""
