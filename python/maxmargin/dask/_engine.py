"""Partitions on the workers of a Dask cluster.

A round is one task a worker, which is pinned to it; weights and sums go straight between driver and worker. Whatever
goes wrong in between (a worker that is killed, hangs, or was started anew and holds nothing) ends in the same place: the partitions
without an answer are dealt to workers that live, loaded there if need be, and asked again, only they.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import numpy as np
from distributed import Future, fire_and_forget

from maxmargin.dask import _worker
from maxmargin.dask._workers import Workers
from maxmargin.partitions._job import Job
from maxmargin.partitions._kinds import Survey
from maxmargin.partitions._local import Traffic, refusal
from maxmargin.partitions._shelf import Answer, Facts, Sums
from maxmargin.partitions._sources import File
from maxmargin.partitions._vectors import Floats, Update, update

# Messages below so many bytes go with the task, by the scheduler.
_SMALL = 50_000

# A partition whose loading goes along with the loss of so many workers is not tried on another.
_DEATHS = 3

# Seconds between two looks for workers that have come.
_NEWS = 2.0

Ask = Callable[[str, list[int]], Awaitable[Any]]


class DaskEngine:
    """Asks workers of a cluster; see :class:`maxmargin.partitions.Engine`.

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
        self._workers = Workers(client, patience)
        self._run = uuid.uuid4().hex
        self._partitions: Sequence[Any] = ()
        self._owner: dict[int, str] = {}
        self._loaded: set[tuple[int, str]] = set()
        self._facts: dict[int, Facts] = {}
        self._job: Job | None = None
        # Futures of the job, and versions of w, by worker.
        self._jobs: dict[str, Any] = {}
        self._knows: dict[str, int] = {}
        # Pieces of Dask collections, until they are loaded.
        self._pieces: dict[int, Any] = {}
        self._version = 0
        self._w: Floats | None = None
        self._before: Floats | None = None
        self._messages: dict[int | None, Update] = {}
        self._deaths: Counter[int] = Counter()
        self._failures: Counter[int] = Counter()
        self._troubles: Counter[str] = Counter()
        self.losses_of_workers = 0

    @property
    def workers(self) -> int:
        """How many hold partitions."""
        return len(set(self._owner.values()))

    def _wait(self, work: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        """Runs a coroutine where the client's are, until it is done or the user interrupts."""
        tasks: list[asyncio.Task[Any]] = []

        async def run() -> Any:
            tasks.append(asyncio.ensure_future(work(*args)))
            return await tasks[0]

        try:
            return self._client.sync(run)
        except BaseException:
            for task in tasks:
                self._client.loop.add_callback(task.cancel)
            raise

    # The engine's interface.

    def begin(self, partitions: Sequence[Any]) -> None:
        """These are the partitions."""
        self._partitions = partitions
        lazy = {number: source for number, source in enumerate(partitions) if _is_lazy(source)}
        # In one go: pieces may have much in common.
        self._pieces = dict(zip(lazy, self._client.compute(list(lazy.values())), strict=True))

        async def start() -> None:
            await self._workers.some()
            self._owner = self._workers.deal(range(len(partitions)))

        self._wait(start)

    def surveys(self, job: Job) -> list[Survey]:
        """Of all partitions, in their order."""
        self._new_job(job)
        return self._in_order(self._wait(self._each, self._survey_on))

    def open(self, job: Job) -> list[Facts]:
        """Has all partitions loaded."""
        self._new_job(job)
        self._wait(self._load_all)
        return [self._facts[number] for number in range(len(self._partitions))]

    def cuts(self, w: Floats, groups: Sequence[range]) -> Sums:
        """A round."""
        self._take(w)
        threads = self._threads

        def call(address: str, numbers: list[int]) -> tuple[Any, ...]:
            return (numbers, groups, threads or self._workers.threads.get(address, 1))

        answers = self._wait(self._round, _worker.cuts, call)
        return {key: value for answer in answers for key, value in answer.sums.items()}

    def losses(self, w: Floats) -> list[float]:
        """The training loss of each partition."""
        self._take(w)

        def call(address: str, numbers: list[int]) -> tuple[Any, ...]:
            return (numbers, self._threads or self._workers.threads.get(address, 1))

        answers = self._wait(self._round, _worker.losses, call)
        return self._in_order({number: loss for answer in answers for number, loss in answer.losses.items()})

    def close(self) -> None:
        """Tells the workers to forget the run; those that do not listen forget it when they begin another."""

        async def end() -> None:
            await self._workers.look()
            futures = [self._submit(address, _worker.forget, self._run) for address in self._workers.threads]
            await asyncio.wait([asyncio.ensure_future(self._result(future)) for future in futures], timeout=2.0)

        self._jobs.clear()
        if self._loaded:
            try:
                self._wait(end)
            except (OSError, ValueError, RuntimeError, asyncio.TimeoutError):
                # The cluster is gone, and the partitions with it.
                pass
            self._loaded.clear()

    # Messages.

    def _in_order(self, found: dict[int, Any]) -> list[Any]:
        return [found[number] for number in range(len(self._partitions))]

    def _new_job(self, job: Job) -> None:
        self._job = job
        self._jobs.clear()

    def _take(self, w: Floats) -> None:
        """The weights of the next round. A copy: the caller's may change."""
        self._before, self._w = self._w, np.array(w, dtype=np.float64)
        self._version += 1
        self._messages.clear()

    def _message(self, base: int | None) -> Update:
        """The weights for one who knows those of version `base`."""
        assert self._w is not None
        base = base if base == self._version - 1 else None
        if base not in self._messages:
            self._messages[base] = update(self._version, self._w, base, self._before)
        return self._messages[base]

    def _submit(self, address: str, function: Any, *args: Any) -> Any:
        return self._client.submit(function, *args, workers=[address], allow_other_workers=False, pure=False)

    async def _result(self, future: Any) -> Any:
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(done.set))
        try:
            # Not gather alone: what it waits with would outlive it where the worker is lost.
            await done.wait()
            return await self._client.gather(future, direct=True, asynchronous=True)
        finally:
            future.release()

    async def _sent(self, address: str, value: Any) -> Any:
        """A future of a value that lies with a worker."""
        return await self._client.scatter(value, workers=[address], direct=True, hash=False, asynchronous=True)

    async def _job_on(self, address: str) -> Any:
        job = self._jobs.get(address)
        if job is None:
            job = self._jobs[address] = asyncio.ensure_future(self._sent(address, self._job))
        return await asyncio.shield(job)

    async def _source_on(self, address: str, number: int) -> Any:
        """A partition as an argument of a task."""
        source = self._partitions[number]
        if isinstance(source, File):
            return source
        if _is_lazy(source):
            if number not in self._pieces:
                self._pieces[number] = self._client.compute(source)
            return self._pieces[number]
        if isinstance(source, Future):
            return source
        return await self._sent(address, _Boxed(source))

    # Work for each partition.

    async def _survey_on(self, address: str, number: int) -> Any:
        return await self._with_source(address, number, _survey)

    async def _load_on(self, address: str, number: int) -> Any:
        return await self._with_source(address, number, _load, self._run)

    async def _with_source(self, address: str, number: int, function: Any, *args: Any) -> Any:
        job = await self._job_on(address)
        source = await self._source_on(address, number)
        try:
            return await self._result(self._submit(address, function, *args, job, number, source))
        except Exception as error:
            # A piece of a collection that cannot be made is no trouble of the engine.
            if isinstance(source, Future) and source.status == "error":
                return _worker.Failure(ValueError(f"{type(error).__name__}: {error}"))
            raise

    async def _each(self, ask: Callable[[str, int], Awaitable[Any]], numbers: Iterable[int] | None = None) -> dict[int, Any]:
        """An answer of each partition from its owner, whoever that is in the end."""
        found: dict[int, Any] = {}
        rest = list(range(len(self._partitions)) if numbers is None else numbers)
        while rest:
            asked = {number: (self._owner[number], ask(self._owner[number], number)) for number in rest}
            for number, answer in (await self._settled(asked)).items():
                if isinstance(answer, _worker.Failure):
                    await self._failed(number, answer.error)
                else:
                    found[number] = answer
            rest = [number for number in rest if number not in found]
        return found

    async def _failed(self, number: int, error: Exception) -> None:
        """A file may lie with some workers only: another one tries, once."""
        self._failures[number] += 1
        others = sorted(set(self._workers.threads) - {self._owner[number]})
        if not isinstance(error, OSError) or self._failures[number] > 1 or not others:
            raise refusal(self._partitions[number], number, error)
        self._owner[number] = others[number % len(others)]

    async def _load_all(self, numbers: Iterable[int] | None = None) -> None:
        """Has partitions loaded by their owners, where they are not yet."""
        rest = range(len(self._partitions)) if numbers is None else numbers
        missing = [number for number in rest if (number, self._owner[number]) not in self._loaded]
        for number, facts in (await self._each(self._load_on, missing)).items():
            known = self._facts.setdefault(number, facts)
            if known != facts:
                raise refusal(self._partitions[number], number, ValueError("the data have changed since training began"))
            self._loaded.add((number, self._owner[number]))
            self._pieces.pop(number, None)
        self._jobs.clear()

    # Rounds.

    async def _round(self, function: Any, call: Callable[[str, list[int]], tuple[Any, ...]]) -> list[Answer]:
        """Answers that together cover all partitions."""
        begin = time.perf_counter()
        await self._workers.look_again(_NEWS)
        await self._rebalance()
        answers: list[Answer] = []
        rest = set(range(len(self._partitions)))
        slowest = loading = 0.0
        while rest:
            before = time.perf_counter()
            await self._load_all(sorted(rest))
            loading += time.perf_counter() - before
            by_owner: dict[str, list[int]] = {}
            for number in sorted(rest):
                by_owner.setdefault(self._owner[number], []).append(number)
            asked = {address: (address, self._round_on(address, function, call(address, mine))) for address, mine in by_owner.items()}
            for address, answer in (await self._settled(asked)).items():
                if answer.missing:
                    self._loaded -= {(number, address) for number in answer.missing}
                elif answer.is_stale:
                    self._knows.pop(address, None)
                else:
                    answers.append(answer)
                    rest.difference_update(by_owner[address])
                    self._knows[address] = self._version
                    self.traffic.bytes_received += answer.nbytes
                    slowest = max(slowest, answer.seconds)
        self.traffic.seconds_cuts += slowest
        self.traffic.seconds_transport += time.perf_counter() - begin - slowest - loading
        return answers

    async def _round_on(self, address: str, function: Any, args: tuple[Any, ...]) -> Answer:
        news = self._message(self._knows.get(address))
        self.traffic.bytes_sent += news.nbytes
        message: Any = news if news.nbytes < _SMALL else await self._sent(address, news)
        numbers, *others = args
        answer: Answer = await self._result(self._submit(address, function, self._run, numbers, message, *others))
        return answer

    async def _rebalance(self) -> None:
        """Workers have come: the partitions are dealt anew."""
        holders = set(self._owner.values())
        if not set(self._workers.threads) - holders or len(holders) >= len(self._partitions):
            return
        before = dict(self._owner)
        self._owner = self._workers.deal(range(len(self._partitions)))
        await self._load_all()
        moved: dict[str, list[int]] = {}
        for number, address in before.items():
            if self._owner[number] != address and address in self._workers.threads:
                moved.setdefault(address, []).append(number)
                self._loaded.discard((number, address))
        for address, numbers in moved.items():
            # Nobody waits for it: what is not dropped is memory, not an error.
            fire_and_forget(self._submit(address, _worker.drop, self._run, numbers))

    # Faults.

    async def _settled(self, asked: dict[Any, tuple[str, Awaitable[Any]]]) -> dict[Any, Any]:
        """The answers of those that gave one; the partitions of workers that were lost have other owners then."""
        tasks = {asyncio.ensure_future(work): (key, address) for key, (address, work) in asked.items()}
        pending, found = set(tasks), {}
        looked = time.monotonic()
        try:
            while pending:
                done, pending = await asyncio.wait(pending, timeout=self._workers.pause, return_when=asyncio.FIRST_COMPLETED)
                is_broken = False
                for task in done:
                    key, address = tasks[task]
                    error = asyncio.CancelledError() if task.cancelled() else task.exception()
                    if error is None:
                        found[key] = task.result()
                    else:
                        is_broken = True
                        self._trouble(address, error)
                if is_broken or time.monotonic() - looked >= self._workers.pause:
                    await self._workers.look()
                    looked = time.monotonic()
                    for task in list(pending):
                        if tasks[task][1] not in self._workers.threads:
                            pending.discard(task)
                            task.cancel()
                await self._lose({tasks[task] for task in tasks if tasks[task][0] not in found and task not in pending})
        finally:
            for task in tasks:
                task.cancel()
        return found

    def _trouble(self, address: str, error: BaseException) -> None:
        """Of the engine, not of the data: it may pass."""
        self._troubles[address] += 1
        self._jobs.pop(address, None)
        self._knows.pop(address, None)
        if self._troubles[address] > 5:
            self._workers.give_up(address)
            self._troubles[address] = 0
            self.last_trouble = error

    async def _lose(self, unanswered: set[tuple[Any, str]]) -> None:
        """Deals the partitions of workers that are gone to the others."""
        gone = {address for address in self._owner.values() if address not in self._workers.threads}
        if not gone:
            return
        self.losses_of_workers += len(gone)
        for key, address in unanswered:
            if isinstance(key, int) and address in gone:
                self._deaths[key] += 1
                if self._deaths[key] >= _DEATHS:
                    raise refusal(
                        self._partitions[key],
                        key,
                        ValueError(f"{_DEATHS} workers were lost while they read it; have they memory enough, and memory_limit=0?"),
                    )
        for address in gone:
            self._jobs.pop(address, None)
            self._knows.pop(address, None)
        self._loaded = {(number, address) for number, address in self._loaded if address not in gone}
        await self._workers.some()
        self._owner.update(self._workers.deal(number for number, address in self._owner.items() if address in gone))


def _is_lazy(source: Any) -> bool:
    """A piece of a collection, which Dask can make again."""
    return hasattr(source, "__dask_graph__")


class _Boxed:
    """Samples in memory as one value: Dask takes tuples and lists apart."""

    def __init__(self, value: Any) -> None:
        self.value = value


def _open_box(source: Any) -> Any:
    return source.value if isinstance(source, _Boxed) else source


def _survey(job: Job, number: int, source: Any) -> Any:
    return _worker.survey(job, number, _open_box(source))


def _load(run: str, job: Job, number: int, source: Any) -> Any:
    return _worker.load(run, job, number, _open_box(source))
