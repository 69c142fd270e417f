"""Training on a Dask cluster: ``pip install maxmargin[dask]``.

The partitions stay with the workers; a round hands out w and sums the cuts that come back. The result is that of
:func:`maxmargin.partitions.train` with the same partitions, bit for bit, however many workers there are and whatever becomes of them.

Examples
--------
>>> from distributed import Client, LocalCluster
>>> from maxmargin.dask import DaskLinearClassifier
>>> if __name__ == "__main__":
...     with LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=0, dashboard_address=None) as cluster, Client(cluster):
...         model = DaskLinearClassifier(C=10).fit([([[1.0, 0.0], [0.0, 1.0]], ["a", "b"]), ([[2.0, 0.1]], ["a"])])
...     print(*model.to_local().predict([[3.0, 1.0]]))
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
