"""Task `graph`: a label for each variable of a factor graph.

psi(x, y) has these blocks:

    variable D  the features of a variable of D labels in slot y_v
    factor T    the features of a factor of template T, or 1, in the slot of its variables' labels

Variables with the same number of labels share weights, and so do the factors of a template.
The loss is the number of wrong labels.
"""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..problem import Candidate, Draw, Example, Part, Weights

if TYPE_CHECKING:
    from ..model import Model

FILE = "train.jsonl"
ONE = {0: 1.0}
MOST_OUTPUTS = 1000

Scopes = list[tuple[int, ...]]


# Drawing


def draw(random: np.random.Generator, scale: float) -> Draw:
    """Draws graphs of one or of mixed shapes."""
    shapes = list(SHAPES)
    chosen = [str(random.choice(shapes))] if random.random() < 0.7 else shapes
    style = _Style(random, scale)
    graphs: list[dict] = []
    outputs = 0
    for _ in range(int(random.integers(1, 7))):
        graph = style.graph(random, SHAPES[str(random.choice(chosen))](random))
        size = math.prod(graph["domains"])
        if size > MOST_OUTPUTS or (graphs and outputs + size > 1200):
            continue
        outputs += size
        graphs.append(graph)
    if not graphs:
        graphs.append(style.graph(random, (2, [(0, 1)])))
    loops = [_has_loops([s for own in graph["factors"].values() for s in own]) for graph in graphs]
    text = "".join(json.dumps(_line(random, graph)) + "\n" for graph in graphs)
    arguments = ["graph", FILE]
    if random.random() < 0.2:
        arguments += ["--loss", "hamming"]
    traits: dict = {"loops": any(loops), "solvers": ["gdmm", "soft-bcfw"]}
    if any(loops):
        # Quadratic slack with margin rescaling needs a count of errors, which loops do not allow.
        formulations = list(itertools.product(["margin", "slack"], ["linear", "quadratic", "hard"]))
        formulations.remove(("margin", "quadratic"))
        traits["formulations"] = formulations
    return Draw({FILE: text}, arguments, None, traits)


def _single(random: np.random.Generator) -> tuple[int, Scopes]:
    return int(random.integers(1, 4)), []


def _chain(random: np.random.Generator) -> tuple[int, Scopes]:
    n = int(random.integers(2, 6))
    return n, [(v, v + 1) for v in range(n - 1)]


def _tree(random: np.random.Generator) -> tuple[int, Scopes]:
    n = int(random.integers(2, 6))
    return n, [(int(random.integers(v)), v) for v in range(1, n)]


def _star(random: np.random.Generator) -> tuple[int, Scopes]:
    n = int(random.integers(3, 6))
    return n, [(0, v) for v in range(1, n)]


def _cycle(random: np.random.Generator) -> tuple[int, Scopes]:
    n = int(random.integers(3, 7))
    return n, [(v, (v + 1) % n) for v in range(n)]


def _grid(random: np.random.Generator) -> tuple[int, Scopes]:
    height, width = 2, int(random.integers(2, 5))
    right = [(r * width + c, r * width + c + 1) for r in range(height) for c in range(width - 1)]
    down = [(r * width + c, (r + 1) * width + c) for r in range(height - 1) for c in range(width)]
    return height * width, right + down


def _complete(random: np.random.Generator) -> tuple[int, Scopes]:
    n = int(random.integers(3, 6))
    return n, list(itertools.combinations(range(n), 2))


def _wide(random: np.random.Generator) -> tuple[int, Scopes]:
    """Factors of one to three variables, with loops or without."""
    n = int(random.integers(3, 7))
    scopes = [(0, 1, 2)]
    for v in range(3, n):
        a, b = sorted(int(u) for u in random.choice(v, 2, replace=False))
        scopes.append((a, v) if random.random() < 0.5 else (a, b, v))
    return n, scopes


def _parallel(random: np.random.Generator) -> tuple[int, Scopes]:
    """A chain some of whose pairs have several factors, which are no loops."""
    n, scopes = _chain(random)
    return n, scopes + [
        (b, a) if random.random() < 0.5 else (a, b) for a, b in scopes if random.random() < 0.6
    ]


SHAPES = {
    "single": _single,
    "chain": _chain,
    "tree": _tree,
    "star": _star,
    "cycle": _cycle,
    "grid": _grid,
    "complete": _complete,
    "wide": _wide,
    "parallel": _parallel,
}


class _Style:
    """What the graphs of a file have in common: domains, features, and templates with features."""

    def __init__(self, random: np.random.Generator, scale: float) -> None:
        self.scale = scale
        self.domains = [[2], [3], [2, 3], [1, 2, 4]][
            int(random.choice(4, p=[0.5, 0.15, 0.2, 0.15]))
        ]
        self.columns = int(random.integers(0, 5))
        self.centres = random.normal(size=(4, max(self.columns, 1)))
        self.noise = float(random.choice([0.3, 1.0, 2.0]))
        self.density = float(random.choice([0.5, 1.0]))
        self.kinds = int(random.integers(1, 4))
        self.own = random.random() < 0.2
        # Columns of the features of each kind of factors; 0: a table without features.
        self.factor_columns = [
            int(random.integers(1, 4)) * (random.random() < 0.4) for _ in range(self.kinds)
        ]
        self.smooth = random.random() < 0.5

    def graph(self, random: np.random.Generator, shape: tuple[int, Scopes]) -> dict:
        n, scopes = shape
        domains = [int(random.choice(self.domains)) for _ in range(n)]
        labels = [int(random.integers(d)) for d in domains]
        if self.smooth:
            labels = [
                min(labels[0], d - 1) if random.random() < 0.6 else y
                for y, d in zip(labels, domains)
            ]
        x = [self.row(random, self.centres[y][: self.columns]) for y in labels]
        if self.own:
            scopes = scopes + [(v,) for v in range(n) if random.random() < 0.5]
        factors: dict[str, Scopes] = {}
        factor_x: dict[str, list[dict[int, float]]] = {}
        for scope in scopes:
            kind = int(random.integers(self.kinds))
            # A template joins variables of the same domains everywhere, so its name has them.
            name = "t" + str(kind) + ":" + "x".join(str(domains[v]) for v in scope)
            factors.setdefault(name, []).append(scope)
            if columns := self.factor_columns[kind]:
                row = self.row(random, np.zeros(columns))
                factor_x.setdefault(name, []).append(row)
        return {
            "domains": domains,
            "labels": labels,
            "x": x,
            "factors": factors,
            "factor_x": factor_x,
        }

    def row(self, random: np.random.Generator, centre: np.ndarray) -> dict[int, float]:
        values = self.scale * (centre + self.noise * random.normal(size=len(centre)))
        if random.random() < 0.7:
            values = values.astype(np.float32)
        return {j: float(v) for j, v in enumerate(values) if random.random() < self.density}


def _line(random: np.random.Generator, graph: dict) -> dict:
    """A graph as its line of JSON, in one of the forms that readers take."""
    domains = graph["domains"]
    line: dict = {"domain": domains}
    if len(set(domains)) == 1 and random.random() < 0.6:
        line["domain"] = domains[0]
    line["labels"] = graph["labels"]
    if any(graph["x"]) or random.random() < 0.5:
        line["x"] = [_row(random, row) for row in graph["x"]]
    if graph["factors"] or random.random() < 0.5:
        line["factors"] = {
            name: [list(scope) for scope in own] for name, own in graph["factors"].items()
        }
    if graph["factor_x"]:
        line["factor_x"] = {
            name: [_row(random, row) for row in own] for name, own in graph["factor_x"].items()
        }
    return line


def _row(random: np.random.Generator, row: dict[int, float]) -> list | dict:
    if random.random() < 0.5:
        return [row.get(j, 0) for j in range(max(row, default=-1) + 1)]
    return {str(j): v for j, v in row.items()}


def _has_loops(scopes: Scopes) -> bool:
    """Do factors make loops? Several factors over the same two variables are one."""
    parent: dict[int, int] = {}

    def root(v: int) -> int:
        while parent.setdefault(v, v) != v:
            v = parent[v]
        return v

    wide = [scope for scope in scopes if len(scope) > 2]
    pairs = {tuple(sorted(scope)) for scope in scopes if len(scope) == 2}
    for scope in [*wide, *pairs]:
        for v in scope[1:]:
            a, b = root(scope[0]), root(v)
            if a == b:
                return True
            parent[a] = b
    return False


# Outputs


def examples(folder: Path, draw: Draw, formulation: dict) -> list[Example]:
    """All labellings of each graph."""
    lines = (folder / FILE).read_text(encoding="utf-8").splitlines()
    return [_example(json.loads(line)) for line in lines]


def _example(graph: dict) -> Example:
    truth = tuple(graph["labels"])
    domains = (
        graph["domain"] if isinstance(graph["domain"], list) else [graph["domain"]] * len(truth)
    )
    x = [_features(row) for row in graph.get("x") or [{}] * len(truth)]
    factors = []
    for name, scopes in graph.get("factors", {}).items():
        rows = graph.get("factor_x", {}).get(name)
        for f, scope in enumerate(scopes):
            factors.append((name, scope, ONE if rows is None else _features(rows[f])))
    candidates = []
    for y in itertools.product(*map(range, domains)):
        if y == truth:
            continue
        parts = []
        for v, (a, b) in enumerate(zip(truth, y)):
            if a != b and x[v]:
                parts.append(Part(f"variable {domains[v]}", a, x[v], 1.0))
                parts.append(Part(f"variable {domains[v]}", b, x[v], -1.0))
        counts: Counter = Counter()
        for name, scope, phi in factors:
            a, b = (tuple(labels[v] for v in scope) for labels in (truth, y))
            if a == b:
                continue
            if phi is ONE:
                counts[name, a] += 1
                counts[name, b] -= 1
            elif phi:
                parts.append(Part(f"factor {name}", a, phi, 1.0))
                parts.append(Part(f"factor {name}", b, phi, -1.0))
        parts += [
            Part(f"factor {name}", slot, ONE, float(c)) for (name, slot), c in counts.items() if c
        ]
        candidates.append(Candidate(float(sum(a != b for a, b in zip(truth, y))), parts))
    return Example(candidates)


def _features(row: list | dict) -> dict[int, float]:
    entries = enumerate(row) if isinstance(row, list) else ((int(j), v) for j, v in row.items())
    return {j: float(np.float32(v)) for j, v in entries if v != 0}


# The model


def weights(folder: Path, draw: Draw, model: Model) -> Weights:
    """One row of weights a feature, for each size of a domain and then for each template."""
    shape, values = model.record["shape"], model.tensors["weights"].ravel()
    layout: list[tuple] = []
    for domain in shape["domains"]:
        block = f"variable {domain}"
        layout += [(block, label, j) for j in range(shape["features"]) for label in range(domain)]
    for template in shape["templates"]:
        block, columns = f"factor {template['name']}", template["features"]
        slots = list(itertools.product(*map(range, template["domains"])))
        layout += [
            (block, slot, j) for j in range(1 if columns is None else columns) for slot in slots
        ]
    if len(values) != len(layout):
        raise ValueError(f"{len(values)} weights, {len(layout)} expected")
    return Weights(dict(zip(layout, map(float, values))))
