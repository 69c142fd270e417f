"""Tests of the task modules tag, graph and multilabel: `python -m referee.test_structures`.

They do not need the program.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np

from .model import Model
from .problem import Draw, Example
from .tasks import graph, multilabel, tag

MARGIN = {"rescaling": "margin", "penalty": "linear", "kernel": False}


def outputs(module: ModuleType, files: dict[str, str], **traits) -> list[Example]:
    """The outputs of written data."""
    with tempfile.TemporaryDirectory() as name:
        for file, text in files.items():
            (Path(name) / file).write_text(text, encoding="utf-8")
        return module.examples(Path(name), Draw(files, [], None, traits), MARGIN)


def tags(files: dict[str, str], **traits) -> list[Example]:
    plain = {
        "format": "svmhmm",
        "min_count": 1,
        "order": 1,
        "loss": "hamming",
        "tag_cost": {},
        "forbid": [],
    }
    return outputs(tag, files, **(plain | {"scheme": None, "template": "template.txt"} | traits))


def sum_of(parts: list) -> dict:
    """dpsi by coordinate, without zeros."""
    total: Counter = Counter()
    for part in parts:
        for feature, value in part.phi.items():
            total[part.block, part.slot, feature] += part.scale * value
    return {key: value for key, value in total.items() if value}


def find(example: Example, wanted: dict) -> float:
    """The loss of the one output with this dpsi."""
    losses = [c.loss for c in example.candidates if sum_of(c.parts) == wanted]
    assert len(losses) == 1, losses
    return losses[0]


# Tags


def test_tags_of_a_chain() -> None:
    [example] = tags({"train.txt": "1 qid:7 1:0.5\n2 qid:7 1:0.1 3:2 # 4:1\n"})
    assert len(example.candidates) == 3
    tenth = float(np.float32(0.1))
    changed = {
        ("token", 2.0, "1"): tenth,
        ("token", 1.0, "1"): -tenth,
        ("token", 2.0, "3"): 2.0,
        ("token", 1.0, "3"): -2.0,
        ("transition", (1.0, 2.0), "1"): 1.0,
        ("transition", (1.0, 1.0), "1"): -1.0,
        ("last", 2.0, "1"): 1.0,
        ("last", 1.0, "1"): -1.0,
    }
    assert find(example, changed) == 1.0
    assert sorted(c.loss for c in example.candidates) == [1.0, 1.0, 2.0]


def test_tags_of_the_second_order() -> None:
    [example] = tags({"train.txt": "".join(f"{y} qid:1\n" for y in "ABA")}, order=2)
    triples = Counter()
    for candidate in example.candidates:
        triples.update(
            key[1]
            for key, value in sum_of(candidate.parts).items()
            if key[0] == "triple" and value < 0
        )
    assert triples == Counter(y for y in itertools.product("AB", repeat=3) if y != tuple("ABA"))


def test_losses_of_tags() -> None:
    text = {"train.txt": "A qid:1\nB qid:1\nC qid:1\n"}
    [example] = tags(text, loss="zero-one")
    assert {c.loss for c in example.candidates} == {1.0} and len(example.candidates) == 26
    [example] = tags(text, tag_cost={"A": 0.0, "C": 2.5})
    assert Counter(c.loss for c in example.candidates) == {0.0: 2, 1.0: 6, 2.5: 6, 3.5: 12}


def test_forbidden_tags() -> None:
    [example] = tags({"train.txt": "A qid:1\nB qid:1\nB qid:1\n"}, forbid=[["B", "A"]])
    # AAA, AAB, BBB beside the truth.
    assert len(example.candidates) == 3


def test_schemes() -> None:
    bio = re.compile(r"(o|b+i*|o|c+j*)*")
    bioes = re.compile(r"(o|s|bi*e|t|cj*f)*")
    short = {
        "O": "o",
        "B-X": "b",
        "I-X": "i",
        "E-X": "e",
        "S-X": "s",
        "B-Y": "c",
        "I-Y": "j",
        "E-Y": "f",
        "S-Y": "t",
    }
    for scheme, pattern, marks in [("BIO", bio, "BI"), ("BIOES", bioes, "BIES")]:
        names = [name for name in short if name[0] in marks + "O"]
        for length in range(1, 5):
            for y in itertools.product(names, repeat=length):
                valid = pattern.fullmatch("".join(short[name] for name in y)) is not None
                assert tag._is_allowed(y, set(), scheme) == valid, (scheme, y)


def test_crfsuite_lines() -> None:
    [sentence] = tag._read_crfsuite("A\tw\\:x\tb:0.5\tb\tc\\\\:2:3\n")
    assert sentence[0].features == {"w:x": 1.0, "b": 1.5, "c\\:2": 3.0}
    assert [len(s) for s in tag._read_crfsuite("\nA\tx\nB\n\n\nA\n")] == [2, 1]


def test_templates() -> None:
    template = "# words\nU0:%x[0,0]\nU1:%x[-1,0]/%x[+1,0]\nU2:%x[-2,0]\nB\nB1:%x[0,0]\n"
    [sentence] = tag._read_columns("the D\ncat N\n", template)
    assert (
        set(sentence[0].features) == {"U0:the", "U1:_B-1/cat", "U2:_B-2"} and not sentence[0].edges
    )
    assert set(sentence[1].features) == {"U0:cat", "U1:the/_B+1", "U2:_B-1"} and set(
        sentence[1].edges
    ) == {"B1:cat"}
    files = {"train.txt": "the D\ncat N\n", "template.txt": template}
    [example] = tags(files, format="columns")
    edges = {key for c in example.candidates for key in sum_of(c.parts) if key[0] == "edge"}
    assert edges == {("edge", pair, "B1:cat") for pair in itertools.product("DN", repeat=2)}


def test_rare_features_are_left_out() -> None:
    text = "A qid:1 1:1 2:1\nB qid:1 2:5\n"
    [example] = tags({"train.txt": text}, min_count=2)
    assert {key[2] for c in example.candidates for key in sum_of(c.parts) if key[0] == "token"} == {
        "2"
    }


def test_weights_of_tags() -> None:
    tensors = {
        "names.features": np.frombuffer(b"x\ny", np.uint8),
        "names.edges": np.zeros(0, np.uint8),
        "weights.structure": np.arange(8.0),
        "weights.starts": np.array([0, 1, 3], np.uint64),
        "weights.slots": np.array([1, 0, 1], np.uint32),
        "weights.values": np.array([10.0, 20.0, 30.0]),
    }
    record = {"tags": ["A", "B"], "features": 2, "edges": 0}
    w = tag.weights(Path(), Draw({}, [], None, {"order": 1}), Model(record, tensors)).linear
    assert (
        w["transition", ("A", "B"), "1"] == 1.0
        and w["first", "A", "1"] == 4.0
        and w["last", "B", "1"] == 7.0
    )
    assert (w["token", "B", "x"], w["token", "A", "y"], w["token", "B", "y"]) == (10.0, 20.0, 30.0)


# Graphs


def test_labels_of_a_graph() -> None:
    line = '{"domain": [2, 3], "labels": [1, 2], "x": [[0.5], {"1": 0.1}], '
    line += '"factors": {"e": [[1, 0]], "u": [[0]]}}'
    [example] = outputs(graph, {"train.jsonl": line + "\n"})
    assert Counter(c.loss for c in example.candidates) == {1.0: 3, 2.0: 2}
    first = {
        ("variable 2", 1, 0): 0.5,
        ("variable 2", 0, 0): -0.5,
        ("factor e", (2, 1), 0): 1.0,
        ("factor e", (2, 0), 0): -1.0,
        ("factor u", (1,), 0): 1.0,
        ("factor u", (0,), 0): -1.0,
    }
    assert find(example, first) == 1.0


def test_features_of_factors() -> None:
    line = '{"domain": 2, "labels": [0, 0, 0], "factors": {"e": [[0, 1], [1, 2]]}, '
    line += '"factor_x": {"e": [[3], {"1": 4}]}}'
    [example] = outputs(graph, {"train.jsonl": line + "\n"})
    assert find(example, {("factor e", (0, 0), 0): 3.0, ("factor e", (1, 0), 0): -3.0}) == 1.0


def test_loops() -> None:
    assert not graph._has_loops([(0, 1), (1, 2), (1, 3), (0,), (2, 1)])
    assert not graph._has_loops([(0, 1, 2), (2, 3), (4, 3, 5)])
    assert graph._has_loops([(0, 1), (1, 2), (0, 2)])
    assert graph._has_loops([(0, 1, 2), (1, 2)])


def test_weights_of_graphs() -> None:
    templates = [
        {"name": "e", "domains": [2, 2], "features": None},
        {"name": "f", "domains": [1], "features": 2},
    ]
    record = {"shape": {"domains": [1, 2], "features": 2, "templates": templates}}
    values = np.arange(12.0)
    w = graph.weights(Path(), Draw({}, []), Model(record, {"weights": values})).linear
    assert (w["variable 1", 0, 1], w["variable 2", 1, 0], w["variable 2", 0, 1]) == (1.0, 3.0, 4.0)
    assert (w["factor e", (1, 0), 0], w["factor f", (0,), 1]) == (8.0, 11.0)


# Label sets


def test_label_sets() -> None:
    text = "1,+2 cost:2 1:0.5\n 3:1\n2.0 # 1:1\n1,2,3\n"
    found = outputs(multilabel, {"train.dat": text}, pairs="all", loss="hamming", bias="0.1")
    assert [len(example.candidates) for example in found] == [7] * 4
    assert [example.weight for example in found] == [2.0, 1.0, 1.0, 1.0]
    bias = float(np.float32(0.1))
    wanted = {("label", 1.0, 1): 0.5, ("label", 1.0, "bias"): bias, ("pair", (1.0, 2.0), 0): 1.0}
    assert find(found[0], wanted) == 1.0
    assert find(found[1], {("label", 3.0, 3): -1.0, ("label", 3.0, "bias"): -bias}) == 1.0
    found = outputs(multilabel, {"train.dat": text}, pairs="none", loss="f1", bias=None)
    assert find(found[0], {("label", 1.0, 1): 0.5}) == 1.0 - 2.0 / 3.0
    assert {c.loss for c in found[1].candidates} == {1.0}


def test_pairs() -> None:
    sets = [{1.0, 2.0}, {1.0, 2.0}, {3.0, 4.0}, {3.0, 4.0}, {1.0, 2.0, 3.0}, {5.0}, set()]
    assert multilabel._pairs(sets, "none") == set()
    assert len(multilabel._pairs(sets, "all") or ()) == 10
    assert multilabel._pairs(sets, "top:1") == {(1.0, 2.0)}
    # (1, 3) and (2, 3) tell equally much.
    assert multilabel._pairs(sets, "top:3") is None and multilabel._pairs(sets, "tree") is None
    assert multilabel._pairs(sets[:4], "tree") is not None


# Draws


def test_draws() -> None:
    """Random draws are read back, have outputs but not too many, and valid options."""
    for module in (tag, graph, multilabel):
        for seed in range(150):
            drawn = module.draw(np.random.default_rng([seed, 3]), 10.0 ** (seed % 5 - 2))
            found = outputs(module, drawn.files, **drawn.traits)
            assert found and sum(len(example.candidates) for example in found) <= 1300
            assert all(c.loss >= 0 for example in found for c in example.candidates)
            assert drawn.arguments[1] in drawn.files
            for example in found:
                # Another output with the features of the truth is possible, a second truth is not.
                assert all(c.loss > 0 or drawn.traits.get("tag_cost") for c in example.candidates)


def run_tests() -> int:
    """Runs all tests; returns the number of failures."""
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    failures = 0
    for name, test in tests:
        try:
            test()
        except AssertionError as error:
            failures += 1
            print(f"FAILED {name}: {error}")
    print(f"{len(tests) - failures} of {len(tests)} tests of structures passed")
    return failures


if __name__ == "__main__":
    raise SystemExit(min(run_tests(), 1))
