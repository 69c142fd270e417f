"""What runs in the worker processes. They keep the partitions themselves: a partition is never a Dask future, as nobody can move it.

Every function returns what went wrong with the data instead of raising it: what raises is the engine's trouble, and is tried again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from maxmargin.partitions._job import Job
from maxmargin.partitions._shelf import Answer, Shelf
from maxmargin.partitions._vectors import Update

# The partitions of each run in this process.
_SHELVES: dict[str, Shelf] = {}
_LOCK = threading.Lock()

# A run that was silent for so many seconds has lost its driver: it is forgotten when another begins. If it lives, it reloads.
SILENCE = 900.0


@dataclass(frozen=True)
class Failure:
    """A partition that cannot be read."""

    error: Exception


def _guarded(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except (ValueError, OSError, MemoryError) as error:
        # Errors of other packages may not survive the way to the driver.
        kind = next(kind for kind in (OSError, MemoryError, ValueError) if isinstance(error, kind))
        return Failure(kind(str(error)))


def survey(job: Job, number: int, source: Any) -> Any:
    """A :class:`Survey`, or a failure."""

    def work() -> Any:
        shelf = Shelf(job)
        try:
            return shelf.survey(source, number)
        finally:
            shelf.close()

    return _guarded(work)


def load(run: str, job: Job, number: int, source: Any) -> Any:
    """Reads a partition and keeps it: its facts, or a failure."""
    with _LOCK:
        if run not in _SHELVES:
            for old, shelf in list(_SHELVES.items()):
                if time.monotonic() - shelf.last_used > SILENCE:
                    del _SHELVES[old]
                    shelf.close()
            _SHELVES[run] = Shelf(job)
        mine = _SHELVES[run]
    return _guarded(lambda: mine.open(source, number))


def cuts(run: str, numbers: Sequence[int], news: Update, groups: Sequence[range], threads: int) -> Any:
    """Of a round: an :class:`Answer`, or a failure."""
    shelf = _SHELVES.get(run)
    return Answer(missing=tuple(numbers)) if shelf is None else _guarded(lambda: shelf.cuts(numbers, news, groups, threads))


def losses(run: str, numbers: Sequence[int], news: Update, threads: int) -> Any:
    """Of the last round: an :class:`Answer` with the training losses, or a failure."""
    shelf = _SHELVES.get(run)
    return Answer(missing=tuple(numbers)) if shelf is None else _guarded(lambda: shelf.losses(numbers, news, threads))


def drop(run: str, numbers: Sequence[int]) -> None:
    """Other workers hold these now."""
    shelf = _SHELVES.get(run)
    if shelf is not None:
        shelf.drop(numbers)


def forget(run: str) -> None:
    """The run is over."""
    with _LOCK:
        shelf = _SHELVES.pop(run, None)
    if shelf is not None:
        shelf.close()
