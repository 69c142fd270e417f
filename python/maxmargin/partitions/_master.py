"""Training on partitions: surveys, dictionaries, and rounds in which the master asks for cuts and the engine answers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from maxmargin import _native
from maxmargin._estimator import Estimator
from maxmargin._files import Folder
from maxmargin._progress import Callback, Watch
from maxmargin.partitions import _sources, _tree, _vectors
from maxmargin.partitions._job import Job, Shipped
from maxmargin.partitions._local import Engine
from maxmargin.partitions._plan import Plan, refuse
from maxmargin.partitions._shelf import Facts, add
from maxmargin.partitions._vectors import Floats


class Master:
    """Between the solver, which is the library's, and an engine."""

    def __init__(self, engine: Engine, job: Job, partitions: int, groups: int | None) -> None:
        self._engine = engine
        self._job = job
        self._groups = _tree.groups(partitions, groups or 1)
        self.figures = {"bytes_sent": 0, "bytes_received": 0, "seconds_transport": 0.0, "seconds_cuts": 0.0}
        self._rounds = 0

    def _facts(self, facts: Sequence[Facts]) -> list[tuple[int, float, bool, int]]:
        """Of each group."""
        found = []
        for group in self._groups:
            mine = [facts[number] for number in group]
            most = _tree.total({(0, k): fact.max_loss for k, fact in enumerate(mine)}, len(mine), lambda a, b: a + b)
            checksum = 0
            for fact in mine:
                checksum = zlib.crc32(fact.checksum.to_bytes(4, "little"), checksum)
            found.append((sum(fact.examples for fact in mine), most, all(fact.is_exact for fact in mine), checksum))
        return found

    def ask(self, w: Floats) -> list[tuple[Any, float]]:
        """A round: one cut of each group."""
        sums = self._engine.cuts(w, self._groups)
        self._rounds += 1
        answer = []
        for g, group in enumerate(self._groups):
            mine = {node: value for (owner, node), value in sums.items() if owner == g}
            lhs, rhs = _tree.total(mine, len(group), add)
            answer.append((_vectors.handed_over(lhs), rhs))
        return answer

    def loss(self, w: Floats) -> float:
        """The training loss of all partitions."""
        losses = self._engine.losses(w)
        return _tree.total({(0, k): loss for k, loss in enumerate(losses)}, len(losses), lambda a, b: a + b)

    def _count(self) -> dict[str, Any]:
        taken = self._engine.traffic.taken()
        for key, value in taken.items():
            self.figures[key] += value
        return taken

    def train(self, options: list[str], watch: Watch) -> tuple[bytes, str, list[str]]:
        """As ``train_text`` has it."""
        facts = self._engine.open(self._job)
        # What it took to bring the partitions where they are is not part of the first round.
        self._engine.traffic.taken()
        groups = self._facts(facts)

        def on_round(line: str) -> bool:
            return watch(json.dumps({**json.loads(line), **self._count()}))

        blank = self._job.blank_model()
        model, summary, notes = _native.train_partitions(self._job.task, options, blank, groups, self.ask, self.loss, on_round)
        self._count()
        report = {"task": self._job.task, **json.loads(summary), "dimension": facts[0].dimension}
        report.update(oracle_calls=self._rounds * report["examples"], partitions=len(facts), workers=self._engine.workers, **self.figures)
        return model, json.dumps(report), notes


def fit(estimator: Estimator, partitions: Any, engine: Engine, callback: Callback | None = None) -> None:
    """Trains an estimator on partitions, as its ``fit`` does on samples.

    Parameters
    ----------
    estimator : estimator
        Becomes what its ``fit`` on one machine makes of it.
    partitions : list
        Paths, URIs, bytes of text, or samples: ``(X, y)``, ``(X, y, sample_weight)`` or what the task's ``fit`` takes.
    engine : Engine
        Holds them.
    callback : function, optional
        Gets a dict for each round; training stops where it returns True.
    """
    refuse(estimator)
    sources = _sources.listed(partitions)
    before = dict(estimator.__dict__)
    made: dict[str, Plan] = {}

    def prepare(folder: Folder) -> list[str]:
        plan = made["plan"] = Plan(estimator, Shipped(str(folder.path)))
        return list(plan.make(engine.surveys).options)

    def train(options: list[str], watch: Watch) -> tuple[bytes, str, list[str]]:
        groups = estimator.get_params(deep=False)["groups"]
        return Master(engine, made["plan"].job, len(sources), groups).train(options, watch)

    try:
        engine.begin(sources)
        estimator._train(prepare, train, callback)
        made["plan"].finish()
    except BaseException:
        # A fit that fails changes nothing.
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
    finally:
        engine.close()
