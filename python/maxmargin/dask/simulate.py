"""How long will it take on how many workers? ``python -m maxmargin.dask.simulate --help``

A round is: send w to every worker, let them make their cuts side by side, add up the sums, solve the dual. Each process sends to and
receives from at most F others, which do so in turn, so that W workers are a tree of L levels. With T the seconds that one thread needs
for the cuts of all partitions,

    round(W) = L latency + T / (W threads) + L min(W, F) (down + up) (1 / bandwidth + per_byte) + master

The number of rounds does not depend on W. The constants are measured by ``make bench-dask``; the network is yours to say.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from maxmargin.dask._relay import FAN_OUT


@dataclass(frozen=True)
class Engine:
    """What the engine costs, in seconds. Measured by ``make bench-dask`` on 2 cores, loopback."""

    # A level of a round that sends next to nothing.
    latency: float = 0.002
    # What two processes do with a byte besides sending it: serialise, copy, add up. Loopback is in it.
    per_byte: float = 1.75e-9


@dataclass(frozen=True)
class Problem:
    """What there is to do.

    Parameters
    ----------
    dimension : float
        Of w.
    thread_seconds : float
        What one thread needs for the cuts of all partitions, once.
    rounds : int
        Of training.
    fill : float
        The share of a worker's sum that is not zero. Below 2/3 only those entries travel.
    master_seconds : float
        What the master needs in a round: the dual, and the next w.
    """

    dimension: float
    thread_seconds: float
    rounds: int = 100
    fill: float = 1.0
    master_seconds: float = 0.0

    @property
    def down(self) -> float:
        """Bytes of w for one worker: dense, as most of w has changed."""
        return 8 * self.dimension * min(1.0, 1.5 * self.fill)

    @property
    def up(self) -> float:
        """Bytes of the sum of one worker."""
        return 8 * self.dimension * min(1.0, 1.5 * self.fill)


@dataclass(frozen=True)
class Round:
    """Seconds of one round, by what they go into."""

    workers: int
    compute: float
    transfer: float
    rest: float

    @property
    def seconds(self) -> float:
        """Of the whole round."""
        return self.compute + self.transfer + self.rest


def predict(problem: Problem, workers: int, threads: int = 1, bandwidth: float = 1.25e9, engine: Engine | None = None) -> Round:
    """A round on some workers.

    Parameters
    ----------
    problem : Problem
        What there is to do.
    workers : int
        Their number.
    threads : int
        Of each of them.
    bandwidth : float
        Of the network of each process, in bytes a second; 1.25e9 is 10 Gbit/s.
    engine : Engine, optional
        What the engine costs. Default: as measured.

    Examples
    --------
    >>> one, ten = (predict(Problem(dimension=1e5, thread_seconds=60), workers) for workers in (1, 10))
    >>> 9 < one.seconds / ten.seconds < 10
    True
    """
    engine = engine or Engine()
    depth = levels(workers)
    moved = depth * min(workers, FAN_OUT) * (problem.down + problem.up)
    return Round(
        workers,
        compute=problem.thread_seconds / (workers * threads),
        transfer=moved * (1 / bandwidth + engine.per_byte),
        rest=depth * engine.latency + problem.master_seconds,
    )


def levels(workers: int) -> int:
    """How often a message is passed on until all have it.

    >>> [levels(workers) for workers in (1, 4, 5, 20, 21, 1000)]
    [1, 1, 2, 2, 3, 5]
    """
    depth, reached = 1, FAN_OUT
    while reached < workers:
        depth += 1
        reached += FAN_OUT**depth
    return depth


COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)


def table(problem: Problem, **settings: Any) -> str:
    """A line for each number of workers from 1 to 1,000."""
    rounds = [predict(problem, workers, **settings) for workers in COUNTS]
    lines = ["workers  compute s  transfer s  round s  training s  times faster"]
    for found in rounds:
        total = found.seconds * problem.rounds
        gain = rounds[0].seconds / found.seconds
        lines.append(
            f"{found.workers:7d}  {found.compute:9.3f}  {found.transfer:10.3f}  {found.seconds:7.3f}  {total:10.1f}  {gain:12.1f}"
        )
    best = min(rounds, key=lambda found: found.seconds)
    lines.append(f"the best of these: {best.workers} workers; {(problem.down + problem.up) / 1e6:.3g} MB to and from each in a round")
    return "\n".join(lines)


def plot(problems: Sequence[tuple[str, Problem]], path: str, **settings: Any) -> None:
    """Draws seconds of a round over the number of workers; needs matplotlib."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4.2))
    for name, problem in problems:
        rounds = [predict(problem, workers, **settings) for workers in COUNTS]
        (line,) = ax.loglog(COUNTS, [found.seconds for found in rounds], marker=".", label=name)
        ax.loglog(COUNTS, [found.transfer for found in rounds], linestyle=":", linewidth=1, color=line.get_color())
    first = problems[0][1]
    ideal = [predict(first, workers, **settings).compute for workers in COUNTS]
    ax.loglog(COUNTS, ideal, color="grey", linewidth=1, linestyle="--", label="cuts alone")
    ax.set_xlabel("workers")
    ax.set_ylabel("seconds a round (dotted: of transfer)")
    ax.grid(visible=True, which="major", linewidth=0.3)
    ax.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main(words: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m maxmargin.dask.simulate", description="Predicts training times on 1 to 1,000 workers.")
    parser.add_argument("--dimension", type=float, required=True, help="of w; report_['dimension'] of a small run says it")
    parser.add_argument("--thread-seconds", type=float, required=True, help="of one thread for the cuts of all data, once")
    parser.add_argument("--rounds", type=int, default=100, help="of training (default: 100)")
    parser.add_argument("--fill", type=float, default=1.0, help="share of a worker's sum that is not zero (default: 1)")
    parser.add_argument("--master-seconds", type=float, default=0.0, help="of the dual, a round (default: 0)")
    parser.add_argument("--threads", type=int, default=1, help="of each worker (default: 1)")
    parser.add_argument("--bandwidth", type=float, default=1.25e9, help="of the network of each process, bytes a second (default: 1.25e9, 10 Gbit/s)")
    parser.add_argument("--plot", metavar="FILE.png", help="also draw it; needs matplotlib")
    given = parser.parse_args(words)
    problem = Problem(given.dimension, given.thread_seconds, given.rounds, given.fill, given.master_seconds)
    settings = {"threads": given.threads, "bandwidth": given.bandwidth}
    print(table(problem, **settings))
    if given.plot:
        plot([(f"d = {given.dimension:g}", problem)], given.plot, **settings)


if __name__ == "__main__":
    main()
