"""Training on partitions of the data, in this process or wherever an engine holds them.

A round of training is: hand out w, each partition returns its cut, sum. The sums are made in one order (see ``_tree``), so that the
result does not depend on who holds which partition, bit for bit. :mod:`maxmargin.dask` is an engine.
"""

from __future__ import annotations

from typing import Any

from maxmargin import _settings
from maxmargin._aligner import SequenceAligner
from maxmargin._graphs import FactorGraphModel
from maxmargin._linear import LinearClassifier
from maxmargin._multilabel import MultilabelClassifier
from maxmargin._parser import TreeParser
from maxmargin._progress import Callback
from maxmargin._tagger import SequenceTagger
from maxmargin._taxonomy import TaxonomyClassifier
from maxmargin.partitions._local import Engine, Local
from maxmargin.partitions._master import fit

__all__ = ["ESTIMATORS", "Engine", "Local", "estimator_of", "fit", "train"]

ESTIMATORS: dict[str, type[Any]] = {
    "binary": LinearClassifier,
    "multiclass": LinearClassifier,
    "taxonomy": TaxonomyClassifier,
    "tag": SequenceTagger,
    "parse": TreeParser,
    "align": SequenceAligner,
    "multilabel": MultilabelClassifier,
    "graph": FactorGraphModel,
}


def estimator_of(params: dict[str, Any]) -> Any:
    """The estimator that ``params['task']`` and the other parameters stand for."""
    given = dict(params)
    task = given.pop("task", None)
    if task not in ESTIMATORS:
        raise ValueError(f"params['task'] is {task!r}; it must be one of {', '.join(ESTIMATORS)}")
    kind = ESTIMATORS[task]
    known = kind._get_param_names()
    for name in given:
        if name in ("kernel", "gamma", "low_rank") and name not in known:
            raise ValueError(f"{name}={given[name]!r}: a kernel needs all examples in one place; take KernelClassifier for it")
        if name not in known:
            raise ValueError(f"params: {kind.__name__} has no parameter {name!r}; it has {', '.join(known)}")
    return kind(**given)


def train(params: dict[str, Any], partitions: Any, engine: Engine | None = None, *, callback: Callback | None = None) -> Any:
    """Trains on partitions.

    Parameters
    ----------
    params : dict
        ``task`` (binary, multiclass, taxonomy, tag, parse, align, multilabel or graph) and the parameters of its estimator.
    partitions : list, or pattern of file names
        Paths, URIs, bytes of text in the task's format, or samples in memory: ``(X, y)`` pairs, or what the task's ``fit`` takes.
    engine : Engine, optional
        Who holds the partitions. Default: this process.
    callback : function, optional
        Gets a dict for each round; training stops where it returns True.

    Returns
    -------
    estimator
        The ordinary one, ready to predict.

    Examples
    --------
    >>> from maxmargin import partitions
    >>> parts = [([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]), ([[2.0, 0.1]], ["a"])]
    >>> model = partitions.train({"task": "multiclass", "C": 10}, parts)
    >>> print(*model.predict([[3.0, 1.0]]))
    a
    >>> model.report_["partitions"]
    2
    """
    estimator = estimator_of(params)
    local = Local(_settings.threads(estimator.n_jobs) or 0)
    fit(estimator, partitions, local if engine is None else engine, callback)
    return estimator
