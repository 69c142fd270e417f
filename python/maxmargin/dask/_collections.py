"""Dask collections as lists of partitions."""

from __future__ import annotations

from typing import Any

from dask.base import compute, is_dask_collection
from dask.delayed import delayed

from maxmargin.partitions import _sources


def _together(*parts: Any) -> Any:
    """A partition in memory."""
    return parts if len(parts) > 1 else parts[0]


def _pieces(collection: Any, name: str) -> list[Any]:
    """The parts of a collection along its first axis."""
    if hasattr(collection, "chunks") and getattr(collection, "ndim", 1) > 1:
        collection = collection.rechunk({1: -1})
    found = collection.to_delayed()
    pieces = list(found.ravel()) if hasattr(found, "ravel") else list(found)
    if not pieces:
        raise ValueError(f"{name} has no partitions")
    return pieces


def listed(X: Any, *others: Any) -> list[Any]:
    """The partitions of X, and with them those of y and sample_weight, where there are any.

    Parameters
    ----------
    X : list, path or Dask collection
        A list has its partitions in it, labels included; others belong to a collection (array, frame or bag).
    *others : Dask collection or None
        With as many parts as X.
    """
    given = [part for part in others if part is not None]
    if not hasattr(X, "to_delayed"):
        if given:
            raise ValueError("y and sample_weight go with a Dask collection; a list has partitions (X, y) or (X, y, sample_weight) in it")
        return _sources.listed(X)
    parts = [_pieces(X, "X")]
    for collection in given:
        if not hasattr(collection, "to_delayed"):
            raise ValueError(f"X is a Dask collection, but y or sample_weight is a {type(collection).__name__}; they have to be alike")
        if hasattr(collection, "chunks") and hasattr(X, "chunks") and collection.chunks[0] != X.chunks[0]:
            collection = collection.rechunk({0: X.chunks[0]})
        parts.append(_pieces(collection, "y"))
        if len(parts[-1]) != len(parts[0]):
            raise ValueError(f"X has {len(parts[0])} parts, y or sample_weight has {len(parts[-1])}; repartition one of them")
    together = delayed(_together, pure=False)
    return [together(*pieces) for pieces in zip(*parts, strict=True)]


def computed(partitions: list[Any]) -> list[Any]:
    """The same, with delayed ones made here: for training in this process."""
    lazy = {number: part for number, part in enumerate(partitions) if is_dask_collection(part)}
    made = dict(zip(lazy, compute(*lazy.values(), scheduler="threads"), strict=True))
    return [made.get(number, part) for number, part in enumerate(partitions)]
