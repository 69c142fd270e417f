"""What the referee knows of a training problem: all outputs of all examples, written out.

A task module turns the files that `maxmargin train` read, and the model that it wrote, into these
classes. Everything else (objective, optimum, checks) works on them alone and knows no task.

    P(w) = 1/2 |w|^2 + (C/n) sum_i c_i H_i(w)          linear slack
    P(w) = 1/2 |w|^2 + (C/2n) sum_i c_i H_i(w)^2       quadratic slack, sqrt(loss) in the place of loss
    P(w) = 1/2 |w|^2  subject to  H_i(w) <= 0          hard margin

    margin rescaling   H_i(w) = max_y  loss(y) - <w, dpsi_i(y)>
    slack rescaling    H_i(w) = max_y  loss(y) (1 - <w, dpsi_i(y)>)
    dpsi_i(y) = psi(x_i, y_i) - psi(x_i, y)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Hashable, Mapping

# A coordinate of w: `(block, slot, feature)`. With a kernel, the block KERNEL_BLOCK has no
# coordinates; its vectors enter through the kernel.
Key = tuple[str, Hashable, Hashable]


@dataclass
class Part:
    """`scale * phi` in one slot of a block of w. Feature values are f32 numbers, as the program reads them."""

    block: str
    slot: Hashable
    phi: Mapping[Hashable, float]
    scale: float = 1.0


@dataclass
class Candidate:
    """An output y other than the truth: its loss, before --loss-scale, and dpsi_i(y) as a sum of parts."""

    loss: float
    parts: list[Part]


@dataclass
class Example:
    """All outputs of an example but the correct one."""

    candidates: list[Candidate]
    weight: float = 1.0


@dataclass
class Weights:
    """The weights of a model, in the coordinates of the training problem.

    `linear`: coordinates that are missing are 0. `support`: with a kernel, the pairs of a vector
    and its coefficients by slot: w = sum_j sum_slot coefficient * k(vector, .) in that slot.
    """

    linear: dict[Key, float] = field(default_factory=dict)
    support: list[tuple[Mapping[Hashable, float], dict[Hashable, float]]] = field(default_factory=list)


@dataclass
class Draw:
    """A random training problem: what is written to files, and what the user types.

    `files`: name to text. `arguments`: `["tag", "train.txt", "--loss", ...]`, with names of files as they are;
    without -m, C, solver, stopping rule and seed, which the driver adds. `kernel_block`: the block in which
    --kernel acts, or None where the task has no kernels. `traits`: what the driver must know to choose valid
    options, for instance `{"listed": True}`, and what the reader needs again.
    """

    files: dict[str, str]
    arguments: list[str]
    kernel_block: str | None = None
    traits: dict = field(default_factory=dict)
