"""Who holds which partition, and how partitions come to other workers when some are lost.

Whatever goes wrong (a worker is killed, hangs, or was started anew and holds nothing) ends in the same place: the partitions without an
answer are dealt to workers that live, loaded there if need be, and asked again, only they.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from distributed import Future, KilledWorker, fire_and_forget

from maxmargin.dask import _worker
from maxmargin.dask._workers import Workers
from maxmargin.partitions._job import Job
from maxmargin.partitions._local import refusal
from maxmargin.partitions._shelf import Facts
from maxmargin.partitions._sources import File

# A partition whose loading goes along with the loss of so many workers is not tried on another.
_DEATHS = 3

# A partition that so many workers cannot read is not tried on another.
_READERS = 3

# So many troubles in a row, and a worker is given up.
_TROUBLES = 5


class TaskError(Exception):
    """A task that raised: its cause is a bug, not a fault."""


class Holders:
    """The partitions of a run on the workers of a cluster. All coroutines run in the client's loop."""

    def __init__(self, client: Any, patience: float) -> None:
        self.client = client
        self.workers = Workers(client, patience)
        self.run = uuid.uuid4().hex
        self.partitions: Sequence[Any] = ()
        self.owner: dict[int, str] = {}
        self.facts: dict[int, Facts] = {}
        self.loaded: set[tuple[int, str]] = set()
        self._job: Job | None = None
        # Futures of the job with each worker, and of pieces of Dask collections, until they are loaded.
        self._jobs: dict[str, asyncio.Task[Any]] = {}
        self._pieces: dict[int, Any] = {}
        self._deaths: Counter[int] = Counter()
        # Who could not read a partition, and who was there when partitions were dealt last.
        self._failures: dict[int, set[str]] = {}
        self._dealt_to: set[str] = set()
        self._troubles: Counter[str] = Counter()
        # Troubles since something went well.
        self._in_vain = 0
        # What to do when workers are lost, besides.
        self.on_loss: Callable[[set[str]], None] = lambda gone: None

    # Tasks of Dask, each pinned to a worker.

    def submit(self, address: str, function: Any, *args: Any) -> Any:
        """A task for one worker."""
        return self.client.submit(function, *args, workers=[address], allow_other_workers=False, pure=False)

    async def result(self, future: Any) -> Any:
        """Of a task, straight from the worker."""
        done, loop = asyncio.Event(), asyncio.get_running_loop()
        future.add_done_callback(lambda _: loop.call_soon_threadsafe(done.set))
        try:
            # Not gather alone: what it waits with would outlive it where the worker is lost.
            await done.wait()
            return await self.client.gather(future, direct=True, asynchronous=True)
        except Exception as error:
            if future.status == "error" and not isinstance(error, (KilledWorker, OSError)):
                raise TaskError from error
            raise
        finally:
            future.release()

    async def _sent(self, address: str, value: Any) -> Any:
        """A future of a value that lies with a worker."""
        return await self.client.scatter(value, workers=[address], direct=True, hash=False, asynchronous=True)

    async def _job_on(self, address: str) -> Any:
        job = self._jobs.get(address)
        if job is None:
            job = self._jobs[address] = asyncio.ensure_future(self._sent(address, self._job))
        return await asyncio.shield(job)

    async def _source_on(self, address: str, number: int) -> Any:
        """A partition as an argument of a task."""
        source = self.partitions[number]
        if isinstance(source, (File, Future)):
            return source
        if _is_lazy(source):
            if number not in self._pieces:
                self._pieces[number] = self.client.compute(source)
            return self._pieces[number]
        return await self._sent(address, _Boxed(source))

    # Surveys and loading.

    async def begin(self, partitions: Sequence[Any]) -> None:
        """Deals the partitions."""
        self.partitions = partitions
        lazy = {number: source for number, source in enumerate(partitions) if _is_lazy(source)}
        # In one go: pieces may have much in common.
        self._pieces = dict(zip(lazy, self.client.compute(list(lazy.values())), strict=True))
        await self.workers.some()
        self._deal(range(len(partitions)))

    def _deal(self, numbers: Iterable[int]) -> None:
        self.owner.update(self.workers.deal(numbers))
        self._dealt_to = set(self.workers.threads)

    def new_job(self, job: Job) -> None:
        """What workers have to know from now on."""
        self._job = job
        self._jobs.clear()

    async def survey_all(self) -> dict[int, Any]:
        """The surveys of all partitions."""
        return await self._each(range(len(self.partitions)), _survey)

    async def load_all(self, numbers: Iterable[int] | None = None) -> None:
        """Has partitions loaded by their owners, where they are not yet."""
        rest = range(len(self.partitions)) if numbers is None else numbers
        missing = [number for number in rest if (number, self.owner[number]) not in self.loaded]
        if not missing:
            return
        for number, facts in (await self._each(missing, _load, self.run)).items():
            if self.facts.setdefault(number, facts) != facts:
                raise refusal(self.partitions[number], number, ValueError("the data have changed since training began"))
            self.loaded.add((number, self.owner[number]))
            self._pieces.pop(number, None)
        self._jobs.clear()

    async def _each(self, numbers: Iterable[int], function: Any, *args: Any) -> dict[int, Any]:
        """An answer of each partition from its owner, whoever that is in the end."""
        found: dict[int, Any] = {}
        rest = list(numbers)
        while rest:
            asked = {number: ([self.owner[number]], self._with_source(number, function, *args)) for number in rest}
            for number, answer in (await self.settled(asked)).items():
                if isinstance(answer, _worker.Failure):
                    self._failed(number, answer.error)
                else:
                    found[number] = answer
            rest = [number for number in rest if number not in found]
        return found

    async def _with_source(self, number: int, function: Any, *args: Any) -> Any:
        address = self.owner[number]
        job = await self._job_on(address)
        source = await self._source_on(address, number)
        try:
            return await self.result(self.submit(address, function, *args, job, number, source))
        except Exception as error:
            # A piece of a collection that cannot be made is no trouble of the engine.
            if isinstance(source, Future) and source.status == "error":
                cause = error.__cause__ if isinstance(error, TaskError) else error
                return _worker.Failure(ValueError(f"{type(cause).__name__}: {cause}"))
            raise

    def _failed(self, number: int, error: Exception) -> None:
        """A file may lie with some workers only: others try."""
        failed = self._failures.setdefault(number, set())
        failed.add(self.owner[number])
        others = sorted(set(self.workers.threads) - failed)
        if not isinstance(error, OSError) or len(failed) >= _READERS or not others:
            raise refusal(self.partitions[number], number, error)
        self.owner[number] = others[number % len(others)]

    async def rebalance(self) -> None:
        """Where workers have come, deals the partitions anew."""
        if set(self.workers.threads) <= self._dealt_to or len(set(self.owner.values())) >= len(self.partitions):
            return
        before = dict(self.owner)
        self._deal(range(len(self.partitions)))
        await self.load_all()
        moved: dict[str, list[int]] = {}
        for number, address in before.items():
            if self.owner[number] != address and address in self.workers.threads:
                moved.setdefault(address, []).append(number)
                self.loaded.discard((number, address))
        for address, numbers in moved.items():
            # Nobody waits for it: what is not dropped is memory, not an error.
            fire_and_forget(self.submit(address, _worker.drop, self.run, numbers))

    async def forget(self) -> None:
        """Tells the workers that the run is over; those that do not listen forget it when they begin another."""
        self._jobs.clear()
        self._pieces.clear()
        if self.loaded:
            await self.workers.look()
            told = [asyncio.ensure_future(self.result(self.submit(to, _worker.forget, self.run))) for to in self.workers.threads]
            if told:
                _, late = await asyncio.wait(told, timeout=2.0)
                for task in late:
                    task.cancel()
            self.loaded.clear()

    # Faults.

    async def settled(self, asked: Mapping[Any, tuple[Sequence[str], Awaitable[Any]]]) -> dict[Any, Any]:
        """The answers of those that gave one. Each needs some workers; the partitions of those that were lost have other owners then."""
        tasks = {asyncio.ensure_future(work): key for key, (_, work) in asked.items()}
        needs = {key: addresses for key, (addresses, _) in asked.items()}
        pending, found = set(tasks), {}
        looked = time.monotonic()
        try:
            while pending:
                done, pending = await asyncio.wait(pending, timeout=self.workers.pause, return_when=asyncio.FIRST_COMPLETED)
                is_broken = False
                for task in done:
                    error = asyncio.CancelledError() if task.cancelled() else task.exception()
                    if isinstance(error, TaskError):
                        raise error.__cause__ or error
                    if error is None:
                        found[tasks[task]] = task.result()
                        self._troubles.clear()
                        self._in_vain = 0
                    else:
                        is_broken = True
                        await self.trouble(needs[tasks[task]][0], repr(error))
                if is_broken or time.monotonic() - looked >= self.workers.pause:
                    await self.workers.look()
                    looked = time.monotonic()
                    for task in list(pending):
                        if not set(needs[tasks[task]]) <= set(self.workers.threads):
                            pending.discard(task)
                            task.cancel()
                await self._lose({tasks[task] for task in tasks if task not in pending} - set(found), needs)
        finally:
            for task in tasks:
                task.cancel()
        return found

    async def trouble(self, address: str, what: str) -> None:
        """Of the engine, not of the data: it may pass. If it does not, the worker is given up; if nothing goes well any more, the run."""
        self._troubles[address] += 1
        self._in_vain += 1
        if self._in_vain > 10 * _TROUBLES + len(self.owner):
            raise RuntimeError(f"the workers fail again and again; the last trouble, with {address}: {what}")
        self._jobs.pop(address, None)
        await asyncio.sleep(0.05 * self._troubles[address])
        if self._troubles[address] > _TROUBLES:
            self._troubles.pop(address)
            self.workers.give_up(address)

    async def _lose(self, unanswered: set[Any], needs: dict[Any, Sequence[str]]) -> None:
        """Deals the partitions of workers that are gone to the others."""
        gone = {address for address in self.owner.values() if address not in self.workers.threads}
        if not gone:
            return
        for key in unanswered:
            if isinstance(key, int) and needs[key][0] in gone:
                self._deaths[key] += 1
                if self._deaths[key] >= _DEATHS:
                    why = f"{_DEATHS} workers were lost while they read it; have they memory enough, and memory_limit=0?"
                    raise refusal(self.partitions[key], key, ValueError(why))
        for address in gone:
            self._jobs.pop(address, None)
        self.loaded = {(number, address) for number, address in self.loaded if address not in gone}
        self.on_loss(gone)
        await self.workers.some()
        self._deal([number for number, address in self.owner.items() if address in gone])


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
