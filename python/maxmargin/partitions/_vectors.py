"""Vectors as they travel: dense or sparse, whichever is smaller; weights also as what has changed in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sparse:
    """The entries of a vector that are not zero (of an :class:`Update`: that have changed); places ascend."""

    places: NDArray[Any]
    values: Floats
    size: int

    @property
    def nbytes(self) -> int:
        """What it takes to send it."""
        return int(self.places.nbytes + self.values.nbytes)


Vector = Floats | Sparse

# Two sparse vectors are added as such where their entries are fewer than this part of all.
_FEW = 16


def _sparse(vector: Floats, marks: NDArray[Any]) -> Vector:
    """With the entries that have a mark that is not zero; as it is where that is smaller."""
    kind = np.int32 if len(vector) < 2**31 else np.int64
    if np.count_nonzero(marks) * (np.dtype(kind).itemsize + 8) >= vector.nbytes:
        return vector
    places = np.flatnonzero(marks)
    return Sparse(places.astype(kind), vector[places], len(vector))


def aligned(array: NDArray[Any]) -> NDArray[Any]:
    """The same where the library can read it: what comes from the network may begin at any byte."""
    return np.require(array, requirements=["C", "A"])


def packed(vector: Floats) -> Vector:
    """The smaller form of a vector."""
    return _sparse(vector, vector)


def unpacked(vector: Vector) -> Floats:
    """A dense one."""
    if not isinstance(vector, Sparse):
        return vector
    whole = np.zeros(vector.size)
    whole[vector.places] = vector.values
    return whole


def add(a: Vector, b: Vector) -> Vector:
    """a + b: the same numbers, bit for bit, whatever the forms of the two. May write to a dense one: neither is of use afterwards."""
    if isinstance(a, Sparse) and isinstance(b, Sparse) and _FEW * (len(a.places) + len(b.places)) > a.size:
        # Merging many places takes longer than all entries do.
        a = unpacked(a)
    if isinstance(a, Sparse) and isinstance(b, Sparse):
        places = np.union1d(a.places, b.places)
        values = np.zeros(len(places))
        values[np.searchsorted(places, a.places)] = a.values
        values[np.searchsorted(places, b.places)] += b.values
        return Sparse(places, values, a.size)
    if isinstance(a, Sparse):
        # Adding commutes, bit for bit.
        return add(b, a)
    if not a.flags.writeable:
        a = a.copy()
    if isinstance(b, Sparse):
        a[b.places] += b.values
    else:
        a += b
    return a


def handed_over(vector: Vector) -> Floats:
    """A sum as the library takes it."""
    return aligned(unpacked(vector))


@dataclass(frozen=True)
class Update:
    """Weights: all of them (`base` None), or what has changed since version `base`. Version 0 is all zeros."""

    version: int
    base: int | None
    vector: Vector

    @property
    def nbytes(self) -> int:
        """What it takes to send it."""
        return int(self.vector.nbytes)


def update(version: int, w: Floats, base: int | None, before: Floats | None) -> Update:
    """The smallest message that brings one who has `before`, of version `base`, to w. None has zeros, as all have."""
    # By their bits: -0.0 is another weight than 0.0.
    if base is None or before is None:
        base = 0
        changed = w.view(np.int64) != 0
    else:
        changed = w.view(np.int64) != before.view(np.int64)
    vector = _sparse(w, changed)
    return Update(version, base if isinstance(vector, Sparse) else None, vector)


class Weights:
    """What a process knows of w."""

    def __init__(self, size: int) -> None:
        self.version = 0
        self.w: Floats = np.zeros(size)

    def take(self, news: Update) -> bool:
        """Brings it to the version of the message. False: it does not know the base."""
        if news.version == self.version and self.version:
            return True
        if news.base is None:
            assert not isinstance(news.vector, Sparse)
            self.w = aligned(news.vector)
        elif news.base == 0:
            assert isinstance(news.vector, Sparse)
            self.w = unpacked(news.vector)
        elif news.base != self.version:
            return False
        else:
            assert isinstance(news.vector, Sparse)
            # Where driver and worker are one process, the vector may still be the driver's.
            self.w = self.w.copy()
            self.w[news.vector.places] = news.vector.values
        self.version = news.version
        return True
