"""Task `multilabel`: a set of labels for each example.

psi(x, y) has these blocks:

    label  the features of the example, and the constant one of --bias, in slot k for each label k
           of y
    pair   1 in slot (a, b) for each pair of labels of y that has a weight (--pairs)

The loss is the number of labels that are missing or too many, or 1 - F1 of the set.
Labels are words, or numbers where all labels of the file are numbers.
"""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..problem import Candidate, Draw, Example, Part, Weights

if TYPE_CHECKING:
    from ..model import Model

FILE = "train.dat"
ONE = {0: 1.0}
BIAS = "bias"

Label = float | str
Pair = tuple[Label, Label]


# Drawing


def draw(random: np.random.Generator, scale: float) -> Draw:
    """Draws label sets and their features, and the options of the task."""
    while True:
        count = int(random.integers(1, 8))
        words = [
            ["1", "2", "3", "10", "20", "30", "40"],
            ["sea", "sun", "b", "3", "é", "x-y", "z"],
        ][int(random.random() < 0.4)][:count]
        most = int(min(8, max(1, 800 // 2**count)))
        sets = _draw_sets(random, words, int(random.integers(1, most + 1)))
        used = {word for labels in sets for word in labels}
        if not used:
            continue
        pairs = str(random.choice(["none", "tree", "all", "top"], p=[0.3, 0.25, 0.25, 0.2]))
        if pairs == "top":
            pairs = f"top:{int(random.integers(1, 7))}"
        names = _canonical(used)
        chosen = _pairs([{names[word] for word in labels} for labels in sets], pairs)
        # Pairs that tell equally much leave open which ones --pairs takes.
        if chosen is not None:
            break
    loops = _has_loops(chosen)
    arguments = ["multilabel", FILE]
    if pairs != "none" or random.random() < 0.3:
        arguments += ["--pairs", pairs]
    loss = "f1" if not loops and pairs != "all" and random.random() < 0.35 else "hamming"
    if loss == "f1" or random.random() < 0.3:
        arguments += ["--loss", loss]
    bias = None
    if random.random() < 0.5:
        bias = str(random.choice(["1", "0.1", "-3", repr(float(scale))]))
        arguments += ["--bias", bias]
    traits: dict = {"pairs": pairs, "loss": loss, "bias": bias, "loops": loops, "solvers": []}
    if loss == "hamming":
        traits["solvers"] += ["gdmm", "soft-bcfw"]
        traits["solvers"] += [] if chosen else ["dual-coordinate"]
    formulations = list(itertools.product(["margin", "slack"], ["linear", "quadratic", "hard"]))
    if loops:
        # Quadratic slack with margin rescaling needs a decoder that counts errors.
        formulations.remove(("margin", "quadratic"))
    traits["formulations"] = formulations
    return Draw({FILE: _text(random, sets, scale)}, arguments, None, traits)


def _draw_sets(random: np.random.Generator, words: list[str], count: int) -> list[list[str]]:
    """Draws sets; the share of labels in a set varies, so that empty and full ones occur."""
    sets = []
    for _ in range(count):
        share = float(random.choice([0.0, 0.3, 0.6, 1.0], p=[0.1, 0.5, 0.35, 0.05]))
        labels = [word for word in words if random.random() < share]
        random.shuffle(labels)
        sets.append(labels)
    return sets


def _text(random: np.random.Generator, sets: list[list[str]], scale: float) -> str:
    width = int(random.integers(1, 5))
    words = sorted({word for labels in sets for word in labels})
    directions = random.normal(size=(len(words), width))
    noise = float(random.choice([0.3, 1.0, 2.0]))
    density = float(random.choice([0.5, 1.0]))
    has_costs = random.random() < 0.3
    lines = []
    for labels in sets:
        centre = sum((directions[words.index(word)] for word in labels), np.zeros(width))
        values = scale * (centre + noise * random.normal(size=width))
        field = [
            f"{j + 1}:{_number(random, float(v))}"
            for j, v in enumerate(values)
            if random.random() < density
        ]
        if has_costs and random.random() < 0.7:
            field.insert(0, f"cost:{float(random.choice([0.5, 2.0, 10.0]))!r}")
        if random.random() < 0.1:
            field.append("# 1,2 3:4")
        lines.append(",".join(labels) + " " + " ".join(field))
    return "\n".join(lines) + "\n"


def _number(random: np.random.Generator, value: float) -> str:
    """Writes a number that is exact in f32, or one with more digits, which the reader rounds."""
    return str(np.float32(value)) if random.random() < 0.7 else repr(value)


# Labels and pairs


def _canonical(words: set[str]) -> dict[str, Label]:
    """Names of labels by spelling: numbers where all of them are numbers."""
    try:
        return {word: float(word) for word in words}
    except ValueError:
        return {word: word for word in words}


def _pairs(sets: list[set[Label]], kind: str) -> set[Pair] | None:
    """The pairs that --pairs chooses; None where the choice depends on how ties are broken."""
    labels = sorted(set().union(*sets))
    if kind == "none":
        return set()
    if kind == "all":
        return set(itertools.combinations(labels, 2))
    # Of the pairs that occur together, those with the largest mutual information.
    seen = [
        (a, b) for a, b in itertools.combinations(labels, 2) if any(a in s and b in s for s in sets)
    ]
    ranked = sorted(seen, key=lambda pair: -_information(sets, *pair))
    figures = [_information(sets, *pair) for pair in ranked]
    ties = [i for i in range(1, len(ranked)) if figures[i - 1] - figures[i] < 1e-9]
    if kind.startswith("top:"):
        n = int(kind[4:])
        return None if n in ties else set(ranked[:n])
    # Chow and Liu: the spanning forest of most information. Ties are tried in both orders.
    forests = []
    for order in (ranked, _reversed_ties(ranked, ties)):
        forest: set[Pair] = set()
        for pair in order:
            if not _has_loops(forest | {pair}):
                forest.add(pair)
        forests.append(forest)
    return forests[0] if forests[0] == forests[1] else None


def _reversed_ties(ranked: list[Pair], ties: list[int]) -> list[Pair]:
    order: list[Pair] = []
    group: list[Pair] = []
    for i, pair in enumerate(ranked):
        if i not in ties:
            order += reversed(group)
            group = []
        group.append(pair)
    return order + group[::-1]


def _information(sets: list[set[Label]], a: Label, b: Label) -> float:
    """Mutual information of two labels in the training sets."""
    n, total = len(sets), 0.0
    for has_a, has_b in itertools.product([False, True], repeat=2):
        joint = sum((a in s) == has_a and (b in s) == has_b for s in sets)
        of_a, of_b = sum((a in s) == has_a for s in sets), sum((b in s) == has_b for s in sets)
        if joint:
            total += joint / n * math.log(joint * n / (of_a * of_b))
    return total


def _has_loops(pairs: set[Pair]) -> bool:
    parent: dict[Label, Label] = {}

    def root(k: Label) -> Label:
        while parent.setdefault(k, k) != k:
            k = parent[k]
        return k

    for a, b in pairs:
        a, b = root(a), root(b)
        if a == b:
            return True
        parent[a] = b
    return False


# Outputs


def _read(folder: Path) -> list[tuple[set[str], float, dict[int, float]]]:
    """Reads labels, weight and features of each line."""
    found = []
    for line in (folder / FILE).read_text(encoding="utf-8").split("\n"):
        if not line:
            continue
        line = line.split("#")[0]
        words = line.split()
        labels: set[str] = set()
        if words and not line[0].isspace() and ":" not in words[0]:
            labels = set(words.pop(0).split(","))
        weight, features = 1.0, {}
        for word in words:
            name, value = word.split(":")
            if name == "cost":
                weight = float(value)
            elif np.float32(value) != 0:
                features[int(name)] = float(np.float32(value))
        found.append((labels, weight, features))
    return found


def examples(folder: Path, draw: Draw, formulation: dict) -> list[Example]:
    """All sets of labels of each example."""
    lines = _read(folder)
    names = _canonical({word for words, _, _ in lines for word in words})
    labels = sorted(set(names.values()))
    sets = [{names[word] for word in words} for words, _, _ in lines]
    pairs = _pairs(sets, draw.traits["pairs"])
    assert pairs is not None, "draws have no ties"
    every = [set(y) for n in range(len(labels) + 1) for y in itertools.combinations(labels, n)]
    found = []
    for truth, (_, weight, features) in zip(sets, lines):
        phi: dict = dict(features)
        if draw.traits["bias"] is not None:
            phi[BIAS] = float(np.float32(draw.traits["bias"]))
        candidates = []
        for y in every:
            if y == truth:
                continue
            parts = [Part("label", k, phi, 1.0) for k in truth - y if phi]
            parts += [Part("label", k, phi, -1.0) for k in y - truth if phi]
            for pair in pairs:
                if difference := (truth >= set(pair)) - (y >= set(pair)):
                    parts.append(Part("pair", pair, ONE, float(difference)))
            loss = float(len(truth ^ y))
            if draw.traits["loss"] == "f1":
                loss = 1.0 - 2.0 * len(truth & y) / (len(truth) + len(y))
            candidates.append(Candidate(loss, parts))
        found.append(Example(candidates, weight))
    return found


# The model


def weights(folder: Path, draw: Draw, model: Model) -> Weights:
    """A row of weights for each feature, the constant one last, and one for each pair."""
    record, tensors = model.record, model.tensors
    names = _canonical(set(record["labels"]))
    labels = [names[word] for word in record["labels"]]
    rows: list = list(range(1, record["features"] + 1))
    if draw.traits["bias"] is not None:
        rows.append(BIAS)
    table = tensors["weights"].reshape(-1, len(labels))
    if len(table) != len(rows):
        raise ValueError(f"{len(table)} rows of weights, {len(rows)} expected")
    linear: dict = {
        ("label", label, name): float(value)
        for name, row in zip(rows, table)
        for label, value in zip(labels, row)
    }
    if record["pairs"] == "all":
        pairs = list(itertools.combinations(labels, 2))
    elif record["pairs"] == "listed":
        pairs = [(labels[int(a)], labels[int(b)]) for a, b in tensors["pairs"].reshape(-1, 2)]
    else:
        pairs = []
    sets = [{names[word] for word in words} for words, _, _ in _read(folder)]
    if set(pairs) != (expected := _pairs(sets, draw.traits["pairs"])):
        raise ValueError(
            f"--pairs {draw.traits['pairs']} chose {sorted(pairs)}, not {sorted(expected or [])}"
        )
    if pairs:
        values = tensors["pair_weights"].ravel()
        linear |= {
            ("pair", pair, 0): float(value) for pair, value in zip(pairs, values, strict=True)
        }
    return Weights(linear)
