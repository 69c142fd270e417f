"""The task `multiclass`: psi puts x into the slot of class y."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..model import Model
from ..problem import Candidate, Draw, Example, Part, Weights
from . import vectors

BLOCK = "classes"


def draw(random: np.random.Generator, scale: float) -> Draw:
    """Points with labels that are words or numbers, and one of the four losses."""
    n, features, classes = (
        int(random.integers(3, 31)),
        int(random.integers(1, 7)),
        int(random.integers(2, 7)),
    )
    rows = vectors.draw_rows(random, scale, n, features)
    labels = labels_of(random, rows, scale, features, classes, n)
    offset = vectors.add_offset(random, rows, features)
    loss = random.choice(["zero-one", "absolute", "squared", "matrix"])
    # Numbers that do not ascend as words do, some of them not whole.
    numbers = ["-2", "0.5", "1", "3", "10", "20"]
    words = ["tree", "Ant", "bee", "cow", "dog", "eel"]
    has_numbers = loss in ("absolute", "squared") or random.random() < 0.5
    names = (numbers if has_numbers else words)[:classes]
    random.shuffle(names)
    used = [names[label] for label in labels]
    files, arguments = {}, ["multiclass", "train.dat"]
    if loss != "zero-one" or random.random() < 0.5:
        arguments += ["--loss", str(loss)]
    if loss == "matrix":
        files["costs.txt"] = draw_costs(random, len(set(used)))
        arguments += ["--cost-matrix", "costs.txt"]
    if random.random() < 0.4:
        arguments += ["--bias", f"{float(np.float32(scale * random.choice([0.1, 1.0, 3.0]))):g}"]
    arguments += draw_class_weights(random, used)
    weights = vectors.draw_weights(random, n)
    lines = [vectors.line(label, row, weight) for label, row, weight in zip(used, rows, weights)]
    files["train.dat"] = "\n".join(lines) + "\n"
    traits: dict = {"solvers": ["dual-coordinate"], "loss": str(loss), "offset": offset}
    return Draw(files, arguments, kernel_block=BLOCK, traits=traits)


def labels_of(random, rows, scale: float, features: int, classes: int, n: int) -> list[int]:
    """The class of each row: that with the largest of random linear scores, and some noise."""
    directions = random.normal(size=(classes, features + 1))
    noise = random.choice([0.0, 0.5, 3.0])
    labels = []
    for row in rows:
        x = np.zeros(features + 1)
        for feature, value in row.items():
            x[feature] = value / scale
        labels.append(int(np.argmax(directions @ x + noise * random.normal(size=classes))))
    labels[0], labels[1] = 0, 1
    return labels[:n]


def draw_costs(random: np.random.Generator, classes: int) -> str:
    """A cost matrix. All errors cost something, so that the hard margin may be asked for."""
    costs = random.choice([0.25, 1.0, 2.0, 9.0], size=(classes, classes))
    np.fill_diagonal(costs, 0.0)
    return "".join(" ".join(f"{cost:g}" for cost in row) + "\n" for row in costs)


def draw_class_weights(random: np.random.Generator, used: list[str]) -> list[str]:
    """Weights of classes, for one draw in four."""
    if random.random() < 0.75:
        return []
    if random.random() < 0.5:
        return ["--class-weight", "balanced"]
    return ["--class-weight", f"{used[0]}=2.5", "--class-weight", f"{used[1]}=0.5"]


def in_order(labels: set[str]) -> list[str]:
    """Classes in the program's order: by value where all are numbers, else by their bytes."""
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels, key=str.encode)


def read_costs(path: Path, classes: list[str]) -> dict[tuple[str, str], float]:
    """The costs of a matrix in the order of the classes, by truth and prediction."""
    rows = [line.split() for line in path.read_text().splitlines()]
    return {
        (truth, predicted): float(cost)
        for truth, row in zip(classes, rows)
        for predicted, cost in zip(classes, row)
    }


def class_weights(arguments: list[str], labels: list[str]) -> dict[str, float]:
    """The weight of each class by --class-weight."""
    given = [arguments[j + 1] for j, word in enumerate(arguments) if word == "--class-weight"]
    classes = set(labels)
    if given == ["balanced"]:
        return {name: len(labels) / len(classes) / labels.count(name) for name in classes}
    weights = dict.fromkeys(classes, 1.0)
    for pair in given:
        name, value = pair.split("=")
        weights[name] = float(value)
    return weights


def examples(folder: Path, draw: Draw, formulation: dict) -> list[Example]:
    """A candidate for each other class."""
    data = vectors.read(folder / draw.arguments[1])
    labels = [label for label, _, _ in data]
    classes = in_order(set(labels))
    weights = class_weights(draw.arguments, labels)
    loss = draw.traits["loss"]
    costs = read_costs(folder / "costs.txt", classes) if loss == "matrix" else {}

    def loss_of(truth: str, y: str) -> float:
        if loss == "matrix":
            return costs[truth, y]
        if loss == "zero-one":
            return 1.0
        difference = abs(float(truth) - float(y))
        return difference if loss == "absolute" else difference**2

    found = []
    for truth, row, weight in data:
        phi = vectors.with_bias(row, draw.arguments, formulation["kernel"])
        candidates = [
            Candidate(loss_of(truth, y), [Part(BLOCK, truth, phi, 1.0), Part(BLOCK, y, phi, -1.0)])
            for y in classes
            if y != truth
        ]
        found.append(Example(candidates, weight * weights[truth]))
    return found


def weights(folder: Path, draw: Draw, model: Model) -> Weights:
    """A weight vector for each class, in the order of the labels of the model."""
    labels = [label for label, _, _ in vectors.read(folder / draw.arguments[1])]
    if model.record["labels"] != in_order(set(labels)):
        raise ValueError(f"labels of the model: {model.record['labels']}")
    return vectors.read_weights(model, BLOCK, model.record["labels"])
