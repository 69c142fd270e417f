"""The task `taxonomy`: classes are nodes of a tree or lattice that share weights."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from ..model import Model
from ..problem import Candidate, Draw, Example, Part, Weights
from . import multiclass, vectors

BLOCK = "nodes"
ROOT = "root"


def draw(random: np.random.Generator, scale: float) -> Draw:
    """A random tree or lattice, labels among its nodes, and vectors."""
    nodes = int(random.integers(3, 12))
    names = [f"n{k}" for k in range(nodes)]
    parents: dict[str, list[str]] = {}
    is_lattice = random.random() < 0.4
    for k, name in enumerate(names):
        above = [ROOT, *names[:k]]
        count = min(len(above), 2 if is_lattice and random.random() < 0.4 else 1)
        parents[name] = [str(parent) for parent in random.choice(above, count, replace=False)]
    edges = [(child, parent) for child, above in parents.items() for parent in above]
    random.shuffle(edges)
    choices = names + ([ROOT] if random.random() < 0.2 else [])
    classes = random.choice(choices, min(len(choices), int(random.integers(2, 7))), replace=False)
    n, features = int(random.integers(3, 26)), int(random.integers(1, 6))
    rows = vectors.draw_rows(random, scale, n, features)
    found = multiclass.labels_of(random, rows, scale, features, len(classes), n)
    offset = vectors.add_offset(random, rows, features)
    labels = [str(classes[label]) for label in found]
    files = {"tree.txt": "".join(f"{child} {parent}\n" for child, parent in edges)}
    arguments = ["taxonomy", "train.dat", "--taxonomy", "tree.txt"]
    arguments += draw_architecture(random, files, sorted(set(labels)))
    loss = str(random.choice(["tree", "path", "zero-one", "matrix"]))
    if loss != "tree" or random.random() < 0.5:
        arguments += ["--loss", loss]
    if loss == "matrix":
        files["costs.txt"] = multiclass.draw_costs(random, len(set(labels)))
        arguments += ["--cost-matrix", "costs.txt"]
    if random.random() < 0.4:
        arguments += ["--bias", f"{float(np.float32(scale * random.choice([0.1, 1.0, 3.0]))):g}"]
    arguments += multiclass.draw_class_weights(random, labels)
    weights = vectors.draw_weights(random, n)
    lines = [vectors.line(label, row, weight) for label, row, weight in zip(labels, rows, weights)]
    files["train.dat"] = "\n".join(lines) + "\n"
    traits = {"solvers": ["dual-coordinate"], "loss": loss, "offset": offset}
    return Draw(files, arguments, kernel_block=BLOCK, traits=traits)


def draw_architecture(
    random: np.random.Generator, files: dict[str, str], classes: list[str]
) -> list[str]:
    """What classes share."""
    which = random.random()
    if which < 0.4:
        return []
    if which < 0.6:
        return ["--ancestor-weight", f"{random.choice([0.1, 0.5, 2.0]):g}"]
    if which < 0.75:
        return ["--architecture", "flat"]
    lines = []
    for name in classes:
        # An attribute of its own, because classes with the same ones are refused.
        attributes = random.choice(
            ["fur", "legs", "wings", "fins"], int(random.integers(1, 4)), replace=False
        )
        attributes = [*attributes, f"is-{name}"]
        words = [
            f"{a}:{random.choice([0.5, 2.0]):g}" if random.random() < 0.5 else str(a)
            for a in attributes
        ]
        lines.append(" ".join([name, *words]) + "\n")
    files["attributes.txt"] = "".join(lines)
    return ["--class-features", "attributes.txt"]


class Tree:
    """The tree or lattice of a file."""

    def __init__(self, path: Path):
        self.parents: dict[str, list[str]] = {}
        self.children: dict[str, list[str]] = {}
        for line in path.read_text().splitlines():
            child, parent = line.split()
            self.parents.setdefault(child, []).append(parent)
            self.children.setdefault(parent, []).append(child)
        self.height = cache(self._height)

    def _height(self, node: str) -> int:
        return max((1 + self.height(child) for child in self.children.get(node, [])), default=0)

    def distances(self, node: str) -> dict[str, int]:
        """The ancestors of a node, itself among them, and the number of edges up to each."""
        found, front, steps = {node: 0}, [node], 0
        while front:
            steps += 1
            front = [
                parent
                for below in front
                for parent in self.parents.get(below, [])
                if parent not in found
            ]
            for parent in front:
                found.setdefault(parent, steps)
        return found

    def tree_loss(self, a: str, b: str) -> int:
        """The height of the lowest common ancestor."""
        return min(self.height(node) for node in self.distances(a) if node in self.distances(b))

    def path_loss(self, a: str, b: str) -> int:
        """The number of edges of the shortest way over a common ancestor."""
        of_a, of_b = self.distances(a), self.distances(b)
        return min(of_a[node] + of_b[node] for node in of_a if node in of_b)


def slots_of(folder: Path, arguments: list[str], tree: Tree, name: str) -> dict[str, float]:
    """Lambda(y): the slots of a class, and their values."""
    if (path := vectors.option(arguments, "--class-features")) is not None:
        for line in (folder / path).read_text().splitlines():
            own, *words = line.split()
            if own == name:
                pairs = [word.partition(":") for word in words]
                return {attribute: float(value or 1.0) for attribute, _, value in pairs}
    if vectors.option(arguments, "--architecture") == "flat":
        return {name: 1.0}
    weight = float(vectors.option(arguments, "--ancestor-weight") or 1.0)
    return {node: 1.0 if node == name else weight for node in tree.distances(name) if node != ROOT}


def examples(folder: Path, draw: Draw, formulation: dict) -> list[Example]:
    """A candidate for each other class."""
    arguments, loss = draw.arguments, draw.traits["loss"]
    tree = Tree(folder / "tree.txt")
    data = vectors.read(folder / arguments[1])
    labels = [label for label, _, _ in data]
    classes = multiclass.in_order(set(labels))
    weights = multiclass.class_weights(arguments, labels)
    costs = multiclass.read_costs(folder / "costs.txt", classes) if loss == "matrix" else {}
    slots = {name: slots_of(folder, arguments, tree, name) for name in classes}

    def loss_of(truth: str, y: str) -> float:
        if loss == "matrix":
            return costs[truth, y]
        if loss == "zero-one":
            return 1.0
        return float(tree.tree_loss(truth, y) if loss == "tree" else tree.path_loss(truth, y))

    found = []
    for truth, row, weight in data:
        phi = vectors.with_bias(row, arguments, formulation["kernel"])
        candidates = []
        for y in classes:
            if y == truth:
                continue
            names = {**slots[truth], **slots[y]}
            values = {slot: slots[truth].get(slot, 0.0) - slots[y].get(slot, 0.0) for slot in names}
            parts = [
                Part(BLOCK, slot, phi, value) for slot, value in values.items() if value != 0.0
            ]
            candidates.append(Candidate(loss_of(truth, y), parts))
        found.append(Example(candidates, weight * weights[truth]))
    return found


def weights(folder: Path, draw: Draw, model: Model) -> Weights:
    """The weights of nodes, classes or attributes, by the header's names."""
    record = model.record
    nodes = record["nodes"]
    architecture = record["architecture"]
    if architecture == "features":
        slots = record["attributes"]
    elif architecture == "flat":
        slots = [nodes[k] for k in model.tensors["classes"]]
    else:
        slots = nodes[1:]
    return vectors.read_weights(model, BLOCK, slots)
