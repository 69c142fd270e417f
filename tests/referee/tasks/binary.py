"""The task `binary`: psi is x/2 or -x/2, so dpsi is x times the sign of the true class."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..model import Model
from ..problem import Candidate, Draw, Example, Part, Weights
from . import vectors

BLOCK = "classes"


def draw(random: np.random.Generator, scale: float) -> Draw:
    """Points about two centres, which may lie far apart, close together, or be the same."""
    n, features = int(random.integers(3, 31)), int(random.integers(1, 8))
    rows = vectors.draw_rows(random, scale, n, features)
    direction = random.normal(size=features + 1)
    noise = random.choice([0.0, 0.5, 3.0])
    signs = []
    for row in rows:
        score = (
            sum(direction[feature] * value / scale for feature, value in row.items())
            + noise * random.normal()
        )
        signs.append(1 if score > 0 else -1)
    signs[0], signs[1] = 1, -1
    offset = vectors.add_offset(random, rows, features)
    names = random.choice(["+1 -1", "1 0", "yes no"]).split()
    arguments = ["binary", "train.dat"]
    if names[0] == "yes":
        arguments += ["--positive", "yes"]
    if random.random() < 0.5:
        arguments += ["--bias", f"{float(np.float32(scale * random.choice([0.1, 1.0, 3.0]))):g}"]
    weights = vectors.draw_weights(random, n)
    lines = [
        vectors.line(names[sign < 0], row, weight)
        for sign, row, weight in zip(signs, rows, weights)
    ]
    traits = {"solvers": ["dual-coordinate"], "positive": names[0], "offset": offset}
    return Draw(
        {"train.dat": "\n".join(lines) + "\n"}, arguments, kernel_block=BLOCK, traits=traits
    )


def examples(folder: Path, draw: Draw, formulation: dict) -> list[Example]:
    """One candidate an example: the other class."""
    found = []
    for label, row, weight in vectors.read(folder / draw.arguments[1]):
        sign = 1.0 if label == draw.traits["positive"] else -1.0
        phi = vectors.with_bias(row, draw.arguments, formulation["kernel"])
        found.append(Example([Candidate(1.0, [Part(BLOCK, 0, phi, sign)])], weight))
    return found


def weights(folder: Path, draw: Draw, model: Model) -> Weights:
    """One weight vector; its inner product with x is positive for the positive class."""
    return vectors.read_weights(model, BLOCK, [0])
