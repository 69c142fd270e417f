"""A round on the wire: workers pass the weights on to others, and sums back, so that no one's network carries it all.

The driver asks at most FAN_OUT workers. Each passes the question on to the workers below it, makes its own cuts meanwhile, adds up what
belongs together (see ``partitions._tree``: the order is fixed) and answers for all. A question goes straight from process to process, not
by the scheduler and not as a task: a round takes milliseconds that way, and many rounds are short.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from distributed import WorkerPlugin
from distributed.protocol.serialize import to_serialize

from maxmargin.dask import _worker
from maxmargin.partitions import _tree
from maxmargin.partitions._shelf import Sums, add
from maxmargin.partitions._vectors import Update

FAN_OUT = 4

# The name of the question among what workers answer to.
_OPERATION = "maxmargin_round"

_POOL = ThreadPoolExecutor(max_workers=4, thread_name_prefix="maxmargin")


@dataclass(frozen=True)
class Branch:
    """A worker, its partitions, and the branches below it."""

    address: str
    numbers: tuple[int, ...]
    threads: int
    below: tuple[Branch, ...] = ()

    def all(self) -> list[Branch]:
        """Itself and all below."""
        return [self, *(inner for branch in self.below for inner in branch.all())]


@dataclass(frozen=True)
class Question:
    """Cuts where there are groups, else losses."""

    run: str
    news: Update
    groups: tuple[range, ...] | None


@dataclass
class Reply:
    """Of a branch."""

    sums: Sums = field(default_factory=dict)
    losses: dict[int, float] = field(default_factory=dict)
    # Of the slowest worker.
    seconds: float = 0.0
    answered: list[str] = field(default_factory=list)
    # Workers that lack partitions, that do not know the base of w, that do not listen.
    missing: dict[str, tuple[int, ...]] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)
    unheard: dict[str, str] = field(default_factory=dict)
    failures: list[Exception] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        """What it takes to send it."""
        return sum(int(lhs.nbytes) + 8 for lhs, _ in self.sums.values()) + 8 * len(self.losses)

    def join(self, other: Reply, groups: Sequence[range] | None) -> None:
        """Takes over the reply of another branch."""
        self.sums.update(other.sums)
        if groups is not None:
            self.sums = added_up(self.sums, groups)
        self.losses.update(other.losses)
        self.seconds = max(self.seconds, other.seconds)
        self.answered += other.answered
        self.missing.update(other.missing)
        self.stale += other.stale
        self.unheard.update(other.unheard)
        self.failures += other.failures


def added_up(sums: Sums, groups: Sequence[range]) -> Sums:
    """The same sums for as few nodes as can be."""
    found: Sums = {}
    for g, group in enumerate(groups):
        mine = {node: value for (owner, node), value in sums.items() if owner == g}
        leaves = [leaf for node in mine for leaf in _tree.leaves(node, len(group))]
        for node in _tree.covered(leaves, len(group)):
            found[g, node] = _tree.total(mine, len(group), add, node)
    return found


def branches(owners: Mapping[str, Sequence[int]], threads: Mapping[str, int]) -> list[Branch]:
    """All workers as at most FAN_OUT branches; each branch has neighbouring partitions."""
    ordered = sorted(owners, key=lambda address: owners[address][0])

    def grown(addresses: list[str]) -> list[Branch]:
        if not addresses:
            return []
        found = []
        for part in _tree.groups(len(addresses), min(FAN_OUT, len(addresses))):
            first, *rest = addresses[part.start : part.stop]
            found.append(Branch(first, tuple(owners[first]), threads.get(first, 1), tuple(grown(rest))))
        return found

    return grown(ordered)


async def ask(rpc: Any, branch: Branch, question: Question) -> Reply:
    """Asks a branch; `rpc` is the pool of connections of the client or worker that asks."""
    call = getattr(rpc(branch.address), _OPERATION)
    answer: dict[str, Reply] = await call(branch=to_serialize(branch), question=to_serialize(question))
    return answer["reply"]


def _own(branch: Branch, question: Question) -> Reply:
    """The answer of this process for its own partitions."""
    if question.groups is None:
        answer = _worker.losses(question.run, branch.numbers, question.news, branch.threads)
    else:
        answer = _worker.cuts(question.run, branch.numbers, question.news, question.groups, branch.threads)
    if isinstance(answer, _worker.Failure):
        return Reply(failures=[answer.error])
    if answer.missing:
        return Reply(missing={branch.address: answer.missing})
    if answer.is_stale:
        return Reply(stale=[branch.address])
    return Reply(answer.sums, answer.losses, answer.seconds, [branch.address])


async def _below(rpc: Any, branch: Branch, question: Question) -> Reply:
    try:
        return await ask(rpc, branch, question)
    except Exception as error:  # noqa: BLE001: whatever it is, the driver decides.
        return Reply(unheard={branch.address: f"{type(error).__name__}: {error}"})


class Rounds(WorkerPlugin):
    """Has a worker answer questions."""

    name = "maxmargin-rounds"

    def setup(self, worker: Any) -> None:
        """When the worker starts, or when the first driver comes."""

        async def handle(branch: Branch, question: Question) -> Any:
            loop = asyncio.get_running_loop()
            others = [asyncio.ensure_future(_below(worker.rpc, inner, question)) for inner in branch.below]
            reply = await loop.run_in_executor(_POOL, _own, branch, question)
            for other in others:
                found = await other
                await loop.run_in_executor(_POOL, reply.join, found, question.groups)
            return {"reply": to_serialize(reply)}

        worker.handlers[_OPERATION] = handle
