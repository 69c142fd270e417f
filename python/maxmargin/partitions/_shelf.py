"""The partitions of a run that one process holds, and what it can tell of them. No engine is needed for it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from maxmargin import _native
from maxmargin.partitions import _kinds, _sources, _tree, _vectors
from maxmargin.partitions._job import Job, Unpacked
from maxmargin.partitions._tree import Node
from maxmargin.partitions._vectors import Floats, Update, Vector, Weights

# (group, node of its tree) and the sum of the cuts of the partitions below it.
Sums = dict[tuple[int, Node], tuple[Vector, float]]


@dataclass(frozen=True)
class Facts:
    """Of one partition."""

    examples: int
    max_loss: float
    is_exact: bool
    checksum: int
    dimension: int


@dataclass(frozen=True)
class Answer:
    """Of one process in one round."""

    # Partitions that it does not hold: nothing was done.
    missing: tuple[int, ...] = ()
    # It does not know the base of the weights: nothing was done.
    is_stale: bool = False
    sums: Sums = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0


class Shelf:
    """Answers for the partitions that it holds; everything that it says is a function of w and of them."""

    def __init__(self, job: Job) -> None:
        self._job = Unpacked(job)
        self._held: dict[int, _native.Partition] = {}
        self._weights: Weights | None = None
        # Rounds one at a time; partitions are opened side by side.
        self._lock = threading.Lock()
        self.last_used = time.monotonic()

    def survey(self, source: Any, number: int) -> _kinds.Survey:
        """What the dictionaries need of a partition, which is not kept."""
        try:
            return _kinds.survey(self._job, _sources.content(source), _sources.name(source, number))
        except ValueError as error:
            raise self._job.said(error) from None

    def open(self, source: Any, number: int) -> Facts:
        """Reads a partition and keeps it."""
        held = self._held.get(number)
        if held is None:
            try:
                held = _kinds.opened(self._job, _sources.content(source), _sources.name(source, number))
            except ValueError as error:
                raise self._job.said(error) from None
            held = self._held.setdefault(number, held)
        self.last_used = time.monotonic()
        return Facts(held.examples, held.max_loss, held.is_exact, held.checksum, held.dimension)

    def missing(self, numbers: Iterable[int]) -> tuple[int, ...]:
        """Which of these partitions it does not hold."""
        return tuple(number for number in numbers if number not in self._held)

    def cuts(self, numbers: Sequence[int], news: Update, groups: Sequence[range], threads: int) -> Answer:
        """The sums of the cuts of some partitions at w, for as few nodes of the groups' trees as can be."""
        return self._answer(numbers, news, lambda w: Answer(sums=self._sums(numbers, w, groups, threads)))

    def losses(self, numbers: Sequence[int], news: Update, threads: int) -> Answer:
        """The training loss of each of some partitions at w."""

        def work(w: Floats) -> Answer:
            return Answer(losses={number: self._held[number].loss(w, threads) for number in numbers})

        return self._answer(numbers, news, work)

    def _answer(self, numbers: Sequence[int], news: Update, work: Callable[[Floats], Answer]) -> Answer:
        with self._lock:
            self.last_used = time.monotonic()
            missing = self.missing(numbers)
            if missing:
                return Answer(missing=missing)
            if self._weights is None:
                self._weights = Weights(self._held[numbers[0]].dimension)
            if not self._weights.take(news):
                return Answer(is_stale=True)
            begin = time.perf_counter()
            answer = work(self._weights.w)
            self.last_used = time.monotonic()
            return replace(answer, seconds=time.perf_counter() - begin)

    def _sums(self, numbers: Sequence[int], w: Floats, groups: Sequence[range], threads: int) -> Sums:
        found: Sums = {}
        for g, group in enumerate(groups):
            mine = [number - group.start for number in numbers if number in group]

            def leaf(node: Node, start: int = group.start) -> tuple[Floats, float] | None:
                level, k = node
                if level:
                    return None
                lhs, rhs = self._held[start + k].cut(w, threads)
                # No -0.0, so that zeros that are not sent come back as they were.
                return np.add(lhs, 0.0, out=lhs), rhs

            for node in _tree.covered(mine, len(group)):
                lhs, rhs = _tree.fold(leaf, len(group), add, node)
                found[g, node] = _vectors.packed(lhs), rhs
        return found

    def drop(self, numbers: Iterable[int]) -> None:
        """Forgets partitions that another process holds now."""
        with self._lock:
            for number in numbers:
                held = self._held.pop(number, None)
                if held is not None:
                    held.close()

    def close(self) -> None:
        """Forgets everything."""
        self.drop(list(self._held))
        self._job.close()


def add(a: tuple[Any, float], b: tuple[Any, float]) -> tuple[Any, float]:
    """The sum of two cuts."""
    return _vectors.add(a[0], b[0]), a[1] + b[1]
