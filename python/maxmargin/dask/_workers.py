"""Which workers there are, which of them live, and who holds what."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from typing import Any

from maxmargin.partitions import _tree


class Workers:
    """The workers of a cluster as the driver sees them.

    A worker is lost when the scheduler does not know it any more, or when it gave no sign of life for `patience` seconds: a process that
    hangs keeps its connection. The scheduler's clock may be another, so what counts is for how long its last sign has not changed.
    """

    def __init__(self, client: Any, patience: float) -> None:
        self._client = client
        self.patience = patience
        self.threads: dict[str, int] = {}
        # Of each address the last sign of life, as the scheduler tells it, and when it was new here.
        self._signs: dict[str, tuple[float, float]] = {}
        # Given up, with the sign of life that they had then; back when there is a newer one.
        self._given_up: dict[str, float] = {}
        self._looked = 0.0

    @property
    def pause(self) -> float:
        """Seconds between two looks: large clusters have long lists."""
        return 0.25 + len(self.threads) / 200

    async def look(self) -> None:
        """Asks the scheduler."""
        identity = await self._client.scheduler.identity()
        now = time.monotonic()
        self._looked = now
        found: dict[str, int] = {}
        signs: dict[str, tuple[float, float]] = {}
        for address, told in identity["workers"].items():
            sign = float(told["last_seen"])
            known = self._signs.get(address)
            signs[address] = known if known is not None and known[0] == sign else (sign, now)
            if self._given_up.get(address, sign - 1) != sign and now - signs[address][1] <= self.patience:
                self._given_up.pop(address, None)
                found[address] = max(1, int(told["nthreads"]))
        self.threads, self._signs = found, signs

    async def look_again(self, seconds: float) -> None:
        """Asks the scheduler, if the last time is so long ago."""
        if time.monotonic() - self._looked >= seconds:
            await self.look()

    def give_up(self, address: str) -> None:
        """It does not answer as it should."""
        self.threads.pop(address, None)
        self._given_up[address] = self._signs.get(address, (0.0, 0.0))[0]

    async def some(self) -> dict[str, int]:
        """All that live; waits for the first for as long as patience lasts."""
        begin = time.monotonic()
        await self.look()
        while not self.threads:
            if time.monotonic() - begin > self.patience:
                raise RuntimeError(
                    f"no worker is there, and none has come for {self.patience:g} s; with checkpoint= and resume=True training goes on "
                    "where it was"
                )
            await asyncio.sleep(self.pause)
            await self.look()
        return self.threads

    def deal(self, numbers: Iterable[int]) -> dict[int, str]:
        """An owner for each of some partitions."""
        return _tree.deal(sorted(numbers), self.threads)
