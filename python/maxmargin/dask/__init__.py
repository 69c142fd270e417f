"""Training on a Dask cluster: ``pip install maxmargin[dask]``.

The partitions stay with the workers; a round hands out w and sums the cuts that come back. The result is that of
:func:`maxmargin.partitions.train` with the same partitions, bit for bit, however many workers there are and whatever becomes of them.

Examples
--------
Here the workers are threads of this process; elsewhere they are processes of other machines.

>>> from distributed import Client
>>> from maxmargin.dask import DaskLinearClassifier
>>> partitions = [([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]), ([[2.0, 0.1]], ["a"])]
>>> with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"):
...     model = DaskLinearClassifier(C=10).fit(partitions)
>>> print(*model.to_local().predict([[3.0, 1.0]]))
a
>>> model.report_["workers"]
2
"""

from __future__ import annotations

try:
    import distributed as _distributed  # noqa: F401
except ImportError as _error:
    raise ImportError("maxmargin.dask needs Dask: pip install maxmargin[dask]") from _error

from maxmargin.dask._estimators import (
    DaskFactorGraphModel,
    DaskLinearClassifier,
    DaskMultilabelClassifier,
    DaskSequenceAligner,
    DaskSequenceTagger,
    DaskTaxonomyClassifier,
    DaskTreeParser,
    train,
)

__all__ = [
    "DaskFactorGraphModel",
    "DaskLinearClassifier",
    "DaskMultilabelClassifier",
    "DaskSequenceAligner",
    "DaskSequenceTagger",
    "DaskTaxonomyClassifier",
    "DaskTreeParser",
    "train",
]
