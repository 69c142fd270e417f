"""All partitions in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from maxmargin.partitions import _sources
from maxmargin.partitions._job import Job
from maxmargin.partitions._kinds import Survey
from maxmargin.partitions._shelf import Facts, Shelf, Sums
from maxmargin.partitions._vectors import Floats, Update


@dataclass
class Traffic:
    """What a round cost besides the cuts. `seconds_cuts`: of the process that took longest."""

    bytes_sent: int = 0
    bytes_received: int = 0
    seconds_transport: float = 0.0
    seconds_cuts: float = 0.0

    def taken(self) -> dict[str, Any]:
        """The figures since they were taken last."""
        found = asdict(self)
        self.__init__()  # type: ignore[misc]
        return found


class Engine(Protocol):
    """Asks the processes that hold the partitions."""

    traffic: Traffic

    @property
    def workers(self) -> int:
        """How many processes hold partitions."""

    def begin(self, partitions: Sequence[Any]) -> None:
        """These are the partitions, as :func:`listed` gives them."""

    def surveys(self, job: Job) -> list[Survey]:
        """Of all partitions, in their order."""

    def open(self, job: Job) -> list[Facts]:
        """Has all partitions read and kept; facts in their order."""

    def cuts(self, w: Floats, groups: Sequence[range]) -> Sums:
        """Sums for nodes that together cover the trees of all groups."""

    def losses(self, w: Floats) -> list[float]:
        """The training loss of each partition, in their order."""

    def close(self) -> None:
        """Everything may be forgotten."""


def refusal(source: Any, number: int, error: Exception) -> Exception:
    """An error of one partition, which says so."""
    name = _sources.name(source, number)
    # Errors in a file begin with its name.
    where = f"partition {number}" if name in str(error) or name.startswith("partition ") else f"partition {number}, {name}"
    return (OSError if isinstance(error, OSError) else ValueError)(f"{where}: {error}")


class Local:
    """The engine that is none: everything in this process.

    Parameters
    ----------
    threads : int
        Of each cut; 0 is one a core. The result does not depend on it.
    """

    def __init__(self, threads: int = 0) -> None:
        self.traffic = Traffic()
        self._threads = threads
        self._partitions: Sequence[Any] = ()
        self._shelf: Shelf | None = None
        self._version = 0

    @property
    def workers(self) -> int:
        """This process."""
        return 1

    def begin(self, partitions: Sequence[Any]) -> None:
        """These are the partitions."""
        self._partitions = partitions

    def _each(self, ask: Any) -> list[Any]:
        found = []
        for number, source in enumerate(self._partitions):
            try:
                found.append(ask(source, number))
            except (ValueError, OSError) as error:
                raise refusal(source, number, error) from error
        return found

    def surveys(self, job: Job) -> list[Survey]:
        """Of all partitions, in their order."""
        shelf = Shelf(job)
        try:
            return self._each(shelf.survey)
        finally:
            shelf.close()

    def open(self, job: Job) -> list[Facts]:
        """Reads all partitions."""
        self._shelf = Shelf(job)
        return self._each(self._shelf.open)

    def _news(self, w: Floats) -> Update:
        self._version += 1
        return Update(self._version, None, w)

    def cuts(self, w: Floats, groups: Sequence[range]) -> Sums:
        """The sums of the groups."""
        assert self._shelf is not None
        answer = self._shelf.cuts(range(len(self._partitions)), self._news(w), groups, self._threads)
        self.traffic.seconds_cuts += answer.seconds
        return answer.sums

    def losses(self, w: Floats) -> list[float]:
        """The training loss of each partition."""
        assert self._shelf is not None
        answer = self._shelf.losses(range(len(self._partitions)), self._news(np.asarray(w)), self._threads)
        return list(answer.losses.values())

    def close(self) -> None:
        """Forgets the partitions."""
        if self._shelf is not None:
            self._shelf.close()
            self._shelf = None
