"""SVM-light lines: what the tasks binary, multiclass and taxonomy share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..model import Model
from ..problem import Weights

# The constant feature of --bias, beside the numbers of the file's features.
BIAS = "bias"


def number(value: float) -> str:
    """A number as text that reads back as the same f32."""
    return repr(np.float32(value).item()) if value == int(value) else str(np.float32(value))


def draw_rows(
    random: np.random.Generator, scale: float, n: int, features: int
) -> list[dict[int, float]]:
    """Random vectors with f32 values of about `scale`, some sparse, some equal, some empty."""
    density = random.choice([0.3, 0.7, 1.0])
    is_whole = random.random() < 0.2
    rows: list[dict[int, float]] = []
    for _ in range(n):
        if rows and random.random() < 0.05:
            rows.append(dict(rows[random.integers(len(rows))]))
            continue
        row = {}
        for feature in range(1, features + 1):
            if random.random() < density:
                value = random.normal()
                value = scale * (round(2 * value) if is_whole else value)
                if np.float32(value) != 0:
                    row[feature] = float(np.float32(value))
        rows.append(row)
    return rows


def add_offset(
    random: np.random.Generator, rows: list[dict[int, float]], features: int
) -> float:
    """Moves one feature of all rows far from 0, in one draw of ten; returns by how much, or 0.

    Half of these features are constant.
    """
    if random.random() < 0.9:
        return 0.0
    offset = float(10 ** random.uniform(2, 9))
    feature = int(random.integers(1, features + 1))
    is_constant = random.random() < 0.5
    for row in rows:
        noise = 0.0 if is_constant else row.get(feature, 0.0)
        moved = {**row, feature: float(np.float32(offset + noise))}
        row.clear()
        row.update(sorted(moved.items()))
    return offset


def line(label: str, row: dict[int, float], weight: float | None) -> str:
    """A line of a file."""
    words = [label] + ([f"cost:{weight}"] if weight is not None else [])
    return " ".join(words + [f"{feature}:{number(value)}" for feature, value in row.items()])


def draw_weights(random: np.random.Generator, n: int) -> list[float | None]:
    """Weights of examples, for one draw in four."""
    if random.random() < 0.75:
        return [None] * n
    return [
        None if random.random() < 0.5 else float(random.choice([0.25, 0.5, 2.0, 3.5, 10.0]))
        for _ in range(n)
    ]


def read(path: Path) -> list[tuple[str, dict[int, float], float]]:
    """The labels, vectors and weights of a file."""
    found = []
    for text in path.read_text().splitlines():
        label, *words = text.split("#")[0].split()
        weight, row = 1.0, {}
        for word in words:
            name, value = word.split(":")
            if name == "cost":
                weight = float(value)
            else:
                row[int(name)] = float(np.float32(value))
        found.append((label, row, weight))
    return found


def option(arguments: list[str], name: str) -> str | None:
    """The value of an option, None where it is not given."""
    return arguments[arguments.index(name) + 1] if name in arguments else None


def with_bias(row: dict[int, float], arguments: list[str], has_kernel: bool) -> dict:
    """The vector with the constant feature of --bias, which a kernel has in its values instead."""
    bias = option(arguments, "--bias")
    if bias is None or has_kernel:
        return row
    return {**row, BIAS: float(np.float32(bias))}


def read_weights(model: Model, block: str, slots: list) -> Weights:
    """The weights of a model whose only block has these slots, in their order."""
    if model.kernel is not None:
        # Indices count from 0 in models, from 1 in files.
        support = [
            (
                {index + 1: value for index, value in phi.items()},
                dict(zip(slots, map(float, coefficients))),
            )
            for phi, coefficients in model.support()
        ]
        return Weights(support=support)
    weights = Weights()
    features = model.record["features"]
    for row, values in enumerate(model.tensors["weights"]):
        name = row + 1 if row < features else BIAS
        for slot, value in zip(slots, values):
            if value != 0:
                weights.linear[(block, slot, name)] = float(value)
    return weights
