"""The objective and both bounds in extended precision.

A `Table` holds all outputs of all examples as rows of numbers. Weights are a vector of
coordinates. A coordinate is `(block, slot, feature)`. In the kernel block its feature is a vector
of the data (an atom), and inner products go through the matrix of kernel values. All numbers are
`longdouble`, the 80-bit format of x86 with 64 bits of mantissa.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .problem import Example, Weights
from .tasks.vectors import option

LD = np.longdouble
EPS = float(np.finfo(LD).eps)
if EPS > 1e-18:
    raise SystemExit("the referee needs 80-bit long doubles, which this machine does not have")


@dataclass(frozen=True)
class Kernel:
    """A kernel, by its name and parameters; `constant` is added to its values."""

    name: str
    gamma: float = 1.0
    degree: int = 3
    coef0: float = 0.0
    constant: float = 0.0

    def matrix(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """The kernel values of the rows of `left` with those of `right`."""
        if self.name == "rbf":
            squares = np.zeros((len(left), len(right)), LD)
            for column in range(left.shape[1]):
                squares += np.subtract.outer(left[:, column], right[:, column]) ** 2
            values = np.exp(-LD(self.gamma) * squares)
        else:
            values = left @ right.T
            if self.name == "poly":
                values = (LD(self.gamma) * values + LD(self.coef0)) ** self.degree
            elif self.name == "sigmoid":
                values = np.tanh(LD(self.gamma) * values + LD(self.coef0))
        return values + LD(self.constant)

    @property
    def is_definite(self) -> bool:
        """Is it an inner product of something?"""
        return self.name in ("rbf", "linear") or (self.name == "poly" and self.coef0 >= 0)


def kernel_of(record: dict) -> Kernel:
    """The kernel that the header of a model tells."""
    shape, constant = record["shape"], record["constant"]
    if isinstance(shape, str):
        return Kernel(shape.lower(), constant=constant)
    ((name, parameters),) = shape.items()
    return Kernel(name.lower(), constant=constant, **parameters)


def typed_kernel(words: list[str]) -> tuple[str, dict[str, str]]:
    """The name after --kernel and its parameters as they were typed; `linear` without --kernel."""
    name, _, rest = (option(words, "--kernel") or "linear").partition(":")
    return name, dict(pair.split("=") for pair in rest.split(",") if pair)


def kernel_of_words(words: list[str]) -> Kernel | None:
    """The kernel that a command asks for, with numbers as parameters; None without --kernel."""
    if "--kernel" not in words:
        return None
    name, typed = typed_kernel(words)
    numbers = {key: int(text) if key == "degree" else float(text) for key, text in typed.items()}
    return Kernel(name, constant=constant_of_words(words), **numbers)


def constant_of_words(words: list[str]) -> float:
    """What --bias adds to the values of a kernel: its square."""
    return float(np.float32(option(words, "--bias") or 0.0)) ** 2


@dataclass(frozen=True)
class Formulation:
    """The choices that make an objective of a table. `c` is C, the weight of the mean slack."""

    rescaling: str
    penalty: str
    c: float
    loss_scale: float = 1.0


class Table:
    """All outputs of all examples, a row for each.

    `owner[k]`: the example of row k. `loss[k]`: its loss without --loss-scale. Its dpsi is the
    sparse vector `values[start[k]:start[k + 1]]` at `columns[start[k]:start[k + 1]]`.
    """

    def __init__(
        self, examples: list[Example], kernel: Kernel | None, kernel_block: str | None, own: Weights
    ):
        """`own`: weights of a model, whose coordinates the table must have, too."""
        self.n = len(examples)
        self.weight = np.array([example.weight for example in examples], LD)
        self.kernel = kernel
        self.kernel_block = kernel_block if kernel else None
        self._atoms: dict[tuple, int] = {}
        self._slots: dict = {}
        self._keys: dict = {}
        self._lay_out(examples)
        self.model = self._coordinates(own)
        self._close()

    # Building

    def _lay_out(self, examples: list[Example]) -> None:
        owner, loss, pieces = [], [], []
        features: dict[int, tuple] = {}
        alive = []
        for i, example in enumerate(examples):
            for candidate in example.candidates:
                row = len(owner)
                owner.append(i)
                loss.append(candidate.loss)
                for part in candidate.parts:
                    key = (id(part.phi), part.block)
                    if key not in features:
                        features[key] = self._features(part.block, part.phi)
                        alive.append(part.phi)
                    numbers, values = features[key]
                    pieces.append(
                        (row, self._slot(part.block, part.slot), part.scale, numbers, values)
                    )
        self.owner = np.array(owner, np.int64)
        self.loss = np.array(loss, LD)
        self._pieces = pieces

    def _slot(self, block: str, slot) -> int:
        return self._slots.setdefault((block, slot), len(self._slots))

    def _features(self, block: str, phi) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the features of a vector within its block, and their values."""
        if block == self.kernel_block:
            return np.array([self._atom(phi)]), np.ones(1, LD)
        numbers = [self._keys.setdefault((block, feature), len(self._keys)) for feature in phi]
        return np.array(numbers, np.int64), np.array([float(v) for v in phi.values()], LD)

    def _atom(self, phi) -> int:
        key = tuple(
            sorted((feature, float(value)) for feature, value in phi.items() if value != 0.0)
        )
        return self._atoms.setdefault(key, len(self._atoms))

    def _coordinates(self, own: Weights) -> list[tuple[int, int, float]]:
        """The weights of a model as (slot, feature, value)."""
        found = []
        for (block, slot, feature), value in own.linear.items():
            number = self._keys.setdefault((block, feature), len(self._keys))
            found.append((self._slot(block, slot), number, float(value)))
        for phi, coefficients in own.support:
            atom = self._atom(phi)
            for slot, value in coefficients.items():
                found.append((self._slot(self.kernel_block, slot), atom, float(value)))
        return found

    def _close(self) -> None:
        """Numbers the coordinates; makes the rows, the model's weights and the kernel's matrix."""
        width = max(len(self._keys), len(self._atoms), 1)
        counts = [len(piece[3]) for piece in self._pieces]
        rows = np.repeat(np.array([piece[0] for piece in self._pieces], np.int64), counts)
        slots = np.repeat(np.array([piece[1] for piece in self._pieces], np.int64), counts)
        numbers = np.concatenate([piece[3] for piece in self._pieces] or [np.zeros(0, np.int64)])
        scales = np.repeat(np.array([piece[2] for piece in self._pieces], LD), counts)
        values = np.concatenate([piece[4] for piece in self._pieces] or [np.zeros(0, LD)]) * scales
        of_model = np.array([slot * width + number for slot, number, _ in self.model], np.int64)
        codes, place = np.unique(
            np.concatenate([slots * width + numbers, of_model]), return_inverse=True
        )
        self.d = len(codes)
        place_of_rows, place_of_model = place[: len(rows)], place[len(rows) :]
        self.model_weights = np.zeros(self.d, LD)
        np.add.at(
            self.model_weights, place_of_model, np.array([value for _, _, value in self.model], LD)
        )

        # Equal coordinates of a row are added up.
        order = np.lexsort((place_of_rows, rows))
        rows, columns, values = rows[order], place_of_rows[order], values[order]
        first = np.ones(len(rows), bool)
        first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
        heads = np.flatnonzero(first)
        self.columns = columns[heads]
        self.values = np.add.reduceat(values, heads) if len(heads) else values
        self.rows = rows[heads]
        self.start = np.searchsorted(self.rows, np.arange(len(self.owner) + 1))

        names = list(self._slots)
        blocks = np.array([names[code // width][0] == self.kernel_block for code in codes], bool)
        self.kernel_columns = np.flatnonzero(blocks)
        if self.kernel_block is None or not len(self.kernel_columns):
            self.kernel_columns = np.zeros(0, np.int64)
            self.gram = np.zeros((0, 0), LD)
            return
        of_kernel = codes[self.kernel_columns]
        slots_used, self.slot_of = np.unique(of_kernel // width, return_inverse=True)
        self.atom_of = of_kernel % width
        self.slots = len(slots_used)
        self.gram = self._gram()

    def _gram(self) -> np.ndarray:
        features = {f: k for k, f in enumerate({f: None for atom in self._atoms for f, _ in atom})}
        dense = np.zeros((len(self._atoms), len(features)), LD)
        for j, atom in enumerate(self._atoms):
            for feature, value in atom:
                dense[j, features[feature]] = value
        return self.kernel.matrix(dense, dense)

    # Products

    def sum_rows(self, entries: np.ndarray) -> np.ndarray:
        """The sum of the entries of each row."""
        total = np.zeros(len(self.owner), LD)
        occupied = self.start[:-1] < self.start[1:]
        if len(entries):
            total[occupied] = np.add.reduceat(entries, self.start[:-1][occupied])
        return total

    def image(self, w: np.ndarray) -> np.ndarray:
        """The inner products of w with the unit vectors of all coordinates."""
        if not len(self.kernel_columns):
            return w
        image = w.copy()
        image[self.kernel_columns] = (self.gram @ self.by_slot(w))[self.atom_of, self.slot_of]
        return image

    def by_slot(self, w: np.ndarray) -> np.ndarray:
        """The coordinates of the kernel block as a matrix of atoms and slots."""
        matrix = np.zeros((len(self.gram), self.slots), w.dtype)
        matrix[self.atom_of, self.slot_of] = w[self.kernel_columns]
        return matrix

    def products(self, w: np.ndarray) -> np.ndarray:
        """<w, dpsi> of all rows."""
        return self.sum_rows(self.values * self.image(w)[self.columns])

    def norm2(self, w: np.ndarray) -> LD:
        """|w|^2."""
        return (w * self.image(w)).sum()

    def combination(self, masses: np.ndarray) -> np.ndarray:
        """The sum of all dpsi times `masses`."""
        total = np.zeros(self.d, LD)
        np.add.at(total, self.columns, self.values * masses[self.rows])
        return total

    def dense(self, rows: np.ndarray) -> np.ndarray:
        """The coordinates of some rows, written out."""
        matrix = np.zeros((len(rows), self.d), LD)
        for k, row in enumerate(rows):
            own = slice(self.start[row], self.start[row + 1])
            matrix[k, self.columns[own]] = self.values[own]
        return matrix


@dataclass
class Value:
    """An objective, what rounding may have changed of it, and the slack of each example."""

    value: LD
    rounding: float
    slacks: np.ndarray


class Objective:
    """P, and its dual, of a table and a formulation."""

    def __init__(self, table: Table, formulation: Formulation):
        self.table, self.formulation = table, formulation
        loss = table.loss * LD(formulation.loss_scale)
        if formulation.penalty == "quadratic":
            loss = np.sqrt(loss)
        self.rhs = loss
        self.factor = loss if formulation.rescaling == "slack" else np.ones(len(loss), LD)
        self.cap = LD(formulation.c) / table.n * table.weight
        if formulation.penalty == "hard":
            self.cap = np.where(table.weight > 0, LD(np.inf), LD(0))

    def slacks(self, w: np.ndarray) -> np.ndarray:
        """H_i(w) of all examples."""
        lacking = self.rhs - self.factor * self.table.products(w)
        slacks = np.zeros(self.table.n, LD)
        np.maximum.at(slacks, self.table.owner, lacking)
        return slacks

    def primal(self, w: np.ndarray) -> Value:
        """P(w), of a linear or quadratic penalty."""
        table, slacks = self.table, self.slacks(w)
        half = table.norm2(w) / 2
        sizes = self.factor * table.sum_rows(np.abs(table.values) * self._sizes(w)[table.columns])
        largest = np.zeros(table.n, LD)
        np.maximum.at(largest, table.owner, self.rhs + sizes)
        norm_size = float((np.abs(w) * self._sizes(w)).sum())
        if self.formulation.penalty == "quadratic":
            value = half + (self.cap * slacks**2).sum() / 2
            rounding = float((self.cap * slacks * largest).sum())
        else:
            value = half + (self.cap * slacks).sum()
            rounding = float((self.cap * largest).sum())
        terms = 10 + np.diff(table.start).max(initial=0) + len(table.gram)
        return Value(value, EPS * float(terms) * (rounding + norm_size), slacks)

    def _sizes(self, w: np.ndarray) -> np.ndarray:
        """Upper bounds of the absolute values that are added up for `image`."""
        table = self.table
        if not len(table.kernel_columns):
            return np.abs(w)
        sizes = np.abs(w)
        of_kernel = np.abs(table.gram) @ np.abs(table.by_slot(w))
        sizes[table.kernel_columns] = of_kernel[table.atom_of, table.slot_of]
        return sizes

    def hard_primal(self, w: np.ndarray) -> tuple[LD, float]:
        """|w|^2 / (2 (1 - v)^2), and v, the largest share of its margin that a constraint lacks.

        The first is infinite where v >= 1.
        """
        active = (self.rhs > 0) & (self.table.weight[self.table.owner] > 0)
        lacking = self.rhs - self.factor * self.table.products(w)
        v = (lacking[active] / self.rhs[active]).max(initial=LD(0))
        if v >= 1:
            return LD(np.inf), float(v)
        return self.table.norm2(w) / (2 * (1 - v) ** 2), float(v)

    def dual(self, masses: np.ndarray) -> LD:
        """A lower bound of P: the dual value of these masses of rows, once they are feasible."""
        table = self.table
        masses = np.where(masses > 0, masses, LD(0))
        sums = np.zeros(table.n, LD)
        np.add.at(sums, table.owner, masses)
        penalty = LD(0)
        if self.formulation.penalty == "quadratic":
            used = self.cap > 0
            masses[~used[table.owner]] = 0
            penalty = (sums[used] ** 2 / self.cap[used]).sum() / 2
        else:
            over = sums > self.cap
            shrink = np.ones(table.n, LD)
            shrink[over] = self.cap[over] / sums[over] * (1 - LD(4) * EPS)
            masses = masses * shrink[table.owner]
        gain = (masses * self.rhs).sum()
        norm2 = table.norm2(table.combination(masses * self.factor))
        return gain - norm2 / 2 - penalty - EPS * 100 * gain
