"""Partitions on the workers of a Dask cluster: what :class:`maxmargin.partitions.Engine` asks for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from maxmargin.dask import _relay
from maxmargin.dask._holders import Holders
from maxmargin.dask._relay import Branch, Question, Reply
from maxmargin.partitions._job import Job
from maxmargin.partitions._kinds import Survey
from maxmargin.partitions._local import Traffic
from maxmargin.partitions._shelf import Facts, Sums
from maxmargin.partitions._vectors import Floats, Update, update

# Seconds between two looks for workers that have come.
_NEWS = 2.0


class DaskEngine:
    """Asks workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster.
    threads : int
        Of each worker's cuts; 0: as many as the worker has.
    patience : float
        Seconds without a sign of life after which a worker is given up.
    """

    def __init__(self, client: Any, threads: int = 0, patience: float = 30.0) -> None:
        if client.asynchronous:
            raise ValueError("the client is asynchronous; training needs an ordinary one (asynchronous=False)")
        if not patience >= 3:
            raise ValueError(f"patience={patience!r}: must be at least 3 seconds; workers give signs of life every second or so")
        self.traffic = Traffic()
        self._client = client
        self._threads = threads
        self._holders = Holders(client, patience)
        self._holders.on_loss = self._unlearn
        # The weights of this round and the last, what of them each worker knows, and the messages that bring it up to date.
        self._version = 0
        self._w: Floats | None = None
        self._before: Floats | None = None
        self._knows: dict[str, int] = {}
        self._messages: dict[int | None, Update] = {}

    @property
    def workers(self) -> int:
        """How many hold partitions."""
        return len(set(self._holders.owner.values()))

    def _wait(self, work: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Runs a coroutine where the client's are, until it is done or the user interrupts."""
        tasks: list[asyncio.Future[Any]] = []

        async def run() -> Any:
            tasks.append(asyncio.ensure_future(work(*args)))
            return await tasks[0]

        try:
            return self._client.sync(run)
        except BaseException:
            for task in tasks:
                self._client.loop.add_callback(task.cancel)
            raise

    def begin(self, partitions: Sequence[Any]) -> None:
        """These are the partitions."""
        self._client.register_plugin(_relay.Rounds())
        self._wait(self._holders.begin, partitions)

    def surveys(self, job: Job) -> list[Survey]:
        """Of all partitions, in their order."""
        self._holders.new_job(job)
        return self._in_order(self._wait(self._holders.survey_all))

    def open(self, job: Job) -> list[Facts]:
        """Has all partitions loaded."""
        self._holders.new_job(job)
        self._wait(self._holders.load_all)
        return self._in_order(self._holders.facts)

    def cuts(self, w: Floats, groups: Sequence[range]) -> Sums:
        """A round."""
        sums: Sums = {}
        for reply in self._wait(self._round, w, tuple(groups)):
            sums.update(reply.sums)
        return sums

    def losses(self, w: Floats) -> list[float]:
        """The training loss of each partition."""
        found: dict[int, float] = {}
        for reply in self._wait(self._round, w, None):
            found.update(reply.losses)
        return self._in_order(found)

    def close(self) -> None:
        """Tells the workers to forget the run."""
        try:
            self._wait(self._holders.forget)
        except (OSError, ValueError, RuntimeError):
            # The cluster is gone, and the partitions with it.
            pass

    def _in_order(self, found: dict[int, Any]) -> list[Any]:
        return [found[number] for number in range(len(self._holders.partitions))]

    # Rounds.

    def _unlearn(self, gone: set[str]) -> None:
        for address in gone:
            self._knows.pop(address, None)

    def _take(self, w: Floats) -> None:
        """The weights of the next round. A copy: the caller's may change."""
        self._before, self._w = self._w, np.array(w, dtype=np.float64)
        self._version += 1
        self._messages.clear()

    def _message(self, branch: Branch) -> Update:
        """The weights for all of a branch: a change where all know what has changed."""
        assert self._w is not None
        last = self._version - 1
        base = last if last and all(self._knows.get(inner.address) == last for inner in branch.all()) else None
        if base not in self._messages:
            self._messages[base] = update(self._version, self._w, base, self._before)
        return self._messages[base]

    async def _round(self, w: Floats, groups: tuple[range, ...] | None) -> list[Reply]:
        """Replies that together cover all partitions."""
        begin = time.perf_counter()
        self._take(w)
        holders = self._holders
        await holders.workers.look_again(_NEWS)
        await holders.rebalance()
        replies: list[Reply] = []
        rest = set(range(len(holders.partitions)))
        slowest = loading = 0.0
        while rest:
            before = time.perf_counter()
            await holders.load_all(sorted(rest))
            loading += time.perf_counter() - before
            for reply in await self._asked(rest, groups):
                replies.append(reply)
                slowest = max(slowest, reply.seconds)
        self.traffic.seconds_cuts += slowest
        self.traffic.seconds_transport += time.perf_counter() - begin - slowest - loading
        return replies

    async def _asked(self, rest: set[int], groups: tuple[range, ...] | None) -> list[Reply]:
        """Asks the owners of some partitions; takes those that were answered for out of `rest`."""
        holders = self._holders
        owners: dict[str, list[int]] = {}
        for number in sorted(rest):
            owners.setdefault(holders.owner[number], []).append(number)
        threads = dict.fromkeys(owners, self._threads) if self._threads else holders.workers.threads
        asked: dict[Any, Any] = {}
        for branch in _relay.branches(owners, threads):
            question = Question(holders.run, self._message(branch), groups)
            self.traffic.bytes_sent += question.news.nbytes
            asked[branch.address] = ([inner.address for inner in branch.all()], _relay.ask(self._client.rpc, branch, question))
        replies = list((await holders.settled(asked)).values())
        for reply in replies:
            for error in reply.failures:
                raise error
            self.traffic.bytes_received += reply.nbytes
            for address in reply.answered:
                rest.difference_update(owners[address])
                self._knows[address] = self._version
            for address, numbers in reply.missing.items():
                holders.loaded -= {(number, address) for number in numbers}
            for address in reply.stale:
                self._knows.pop(address, None)
            for address, what in reply.unheard.items():
                await holders.trouble(address, what)
        return replies
