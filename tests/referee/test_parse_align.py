"""Tests of the task modules parse and align, without the program.

`python -m referee.test_parse_align` runs them all.
"""

from __future__ import annotations

import itertools
import json
import math
import tempfile
from collections import Counter
from pathlib import Path
from types import ModuleType

import numpy as np

from .problem import Draw, Example
from .tasks import align, parse, trees

MARGIN = {"rescaling": "margin", "penalty": "linear", "kernel": False}


def outputs(module: ModuleType, files: dict[str, str], **options) -> list[Example]:
    """The outputs of written data."""
    with tempfile.TemporaryDirectory() as name:
        for file, text in files.items():
            (Path(name) / file).write_text(text, encoding="utf-8")
        return module.examples(Path(name), Draw(files, [], None, {"options": options}), MARGIN)


def total(parts: list) -> dict:
    """dpsi by coordinate, without zeros."""
    counts: Counter = Counter()
    for part in parts:
        for feature, value in part.phi.items():
            counts[part.block, part.slot, feature] += part.scale * value
    return {key: value for key, value in counts.items() if value}


# Trees.


def grammar(text: str, **options) -> trees.Grammar:
    return parse.read_grammar(text, options)


def test_numbers_of_derivations() -> None:
    """Binary trees over n words are counted by Catalan's numbers."""
    own = grammar("(S (S (a w)) (S (a w)))")
    for words in range(2, 7):
        sentence = [("tag", "a")] * words
        expected = math.comb(2 * (words - 1), words - 1) // words
        assert own.count(sentence) == expected
        found = own.derivations(sentence)
        assert len(found) == len(set(found)) == expected


def test_rows_of_unary_rules() -> None:
    """Rows have no symbol twice, and are no longer than the longest one of the trees."""
    own = grammar("(A (B (a w))) (B (C (a w))) (C (A (a w)))")
    sentence = [("tag", "a")]
    tops = Counter(
        tuple(symbol[1] for symbol, _ in trees.spans_of(d)) for d in own.derivations(sentence)
    )
    # Each of A, B and C over the tag, then each over another one; rows of three are too long.
    assert own.longest == 2
    assert sorted(tops) == [
        ("A", "B", "a"),
        ("A", "a"),
        ("B", "C", "a"),
        ("B", "a"),
        ("C", "A", "a"),
        ("C", "a"),
    ]
    # A phrase over itself does not count, with all that is between.
    (node,) = grammar("(A (B (A (C (a w)))))").nodes
    assert node.symbol[1] == "A" and node.children[0].symbol[1] == "C"


def test_binarised_rules() -> None:
    """Binary rules stand for exactly those long rules that the options allow."""
    text = "(X (a w) (b w) (c w) (d w))\n(X (a w) (b w) (b w) (d w))"

    def sentences(text: str = text, **options) -> set[str]:
        own = grammar(text, **options)
        words = itertools.chain(*(itertools.product("abcd", repeat=n) for n in range(2, 6)))
        tags = ([("tag", tag) for tag in word] for word in words)
        return {"".join(tag for _, tag in x) for x in tags if own.count(x)}

    assert sentences() == {"abcd", "abbd"}
    assert sentences(binarise="head") == {"abcd", "abbd"}
    # With --markov 1 another b may follow upon each b, with 2 only upon the first one.
    again = "(X (a w) (b w) (b w) (c w) (d w))"
    assert sentences(again) == {"abbcd"}
    assert sentences(again, markov=1) == {"abcd", "abbcd"}
    assert sentences(again, markov=2) == {"abbcd"}
    # A symbol between with one rule has none of its own features.
    own = grammar(text)
    assert len(own.binary) == 6 and len(own.forced) == 4
    assert not grammar("(X (a w) (b w))").forced


def test_heads() -> None:
    assert trees.head_of("S", ["PP", "VP", "."]) == 1
    assert trees.head_of("PP", ["IN", "PP", "TO"]) == 0
    assert trees.head_of("XA", ["a", "b", ","]) == 1
    assert trees.head_of("XA", [",", "."]) == 1


def test_reading_of_trees() -> None:
    text = "# no (tree)\n( (S-SBJ (-NONE- *) (NP=2 (-NONE- x)) (X-Y w v) (VP\n (b u))) )\n()"
    (tree,) = trees.read_trees(text, False, False)
    assert tree.text() == "(S (X-Y w v) (VP (b u)))"
    (tree,) = trees.read_trees(text, True, True)
    assert tree.text() == "(S-SBJ (-NONE- *) (NP=2 (-NONE- x)) (X-Y w v) (VP (b u)))"


def test_word_classes() -> None:
    own = trees.Lexicon(trees.read_trees("(X (a Cats) (a the)) (X (a the) (a p53))", True, True), 2)
    assert own.words == {"the"}
    assert own.classes == {"(First s)", "(word 0)", "(any)"}
    assert own.terminal("Dogs", True) == ("class", "(First s)")
    assert own.terminal("Dogs", False) == ("class", "(any)")
    assert own.terminal("the", False) == ("word", "the")
    assert list(trees.word_classes("half-baked", False)) == [
        "(word - ed)",
        "(word ed)",
        "(word)",
    ]


def test_losses_of_trees() -> None:
    text = "(S (A (a w) (b w)) (c w))\n(S (a w) (A (b w) (c w)))"
    for loss, expected in [("zero-one", 1.0), ("hamming", 2.0), ("f1", 0.5)]:
        first, second = outputs(parse, {parse.TRAIN: text}, loss=loss)
        assert [c.loss for c in first.candidates] == [expected]
        assert len(second.candidates) == 1
    (candidate,) = first.candidates
    # The root is the same, each of the four rules is there once.
    assert sorted(total(candidate.parts).values()) == [-1.0, -1.0, 1.0, 1.0]


def test_max_span_and_fallback() -> None:
    text = "(S (a w) (A (b w) (c w)) (d w))\n(S (a w) (b w) (c w) (d w))"
    assert len(outputs(parse, {parse.TRAIN: text})) == 2
    # The phrase over the words in the middle is not there, so that the first tree is lost.
    assert len(outputs(parse, {parse.TRAIN: text}, max_span=1, binarise="head")) == 1
    found = outputs(parse, {parse.TRAIN: text}, max_span=1, binarise="head", fallback=True)
    assert len(found) == 2
    assert len(outputs(parse, {parse.TRAIN: text}, min_count=2)) == 0


def test_drawn_trees() -> None:
    """All draws have examples, losses of their range, and features that cancel out nowhere."""
    for seed in range(60):
        drawn = parse.draw(np.random.default_rng(seed), 1.0)
        options = drawn.traits["options"]
        found = outputs(parse, drawn.files, **options)
        assert found
        for example in found:
            for candidate in example.candidates:
                assert candidate.loss >= 0
                assert candidate.loss <= 1 or options.get("loss") == "hamming"
                assert candidate.parts or candidate.loss


# Alignments.


def setting(**options) -> align.Setting:
    return align.Setting([{"x": "AB", "z": "AB"}], options, None)


def residues(text: str) -> list[tuple]:
    return [(letter, " ") for letter in text]


def test_numbers_of_alignments() -> None:
    """Sets of matches are pairs of subsets; gaps are opened as often as they may be."""
    for n, m in itertools.product(range(4), repeat=2):
        x, z = residues("ABA"[:n]), residues("BAB"[:m])
        both = setting(alignment="global", gaps="linear").paths(x, z)
        expected = sum(math.comb(n, k) * math.comb(m, k) for k in range(min(n, m) + 1))
        assert len(both) == len({matches for matches, _ in both}) == expected
        for matches, counts in both:
            assert dict(counts).get(("gaps", 0, 0), 0) == n + m - 2 * len(matches)
        local = setting(alignment="local", gaps="linear").paths(x, z)
        assert {matches for matches, _ in local} == {matches for matches, _ in both}
    # Three letters against none: one to three gaps.
    paths = setting(alignment="global").paths(residues("ABA"), [])
    opened = sorted(dict(counts)["gaps", 0, 0] for _, counts in paths)
    assert opened == [1, 2, 3]
    # One letter of each, without a match: two gaps, or a match.
    paths = setting(alignment="global").paths(residues("A"), residues("B"))
    found = sorted((len(matches), sorted(dict(counts).values())) for matches, counts in paths)
    assert found == [(0, [2]), (1, [1])]
    assert len(setting(alignment="local").paths(residues("A"), residues("B"))) == 2


def test_paths_against_columns() -> None:
    """The alignments that a text can write are among the paths."""
    x, z = "ABA", "BA"
    for alignment in ("global", "local"):
        own = setting(alignment=alignment)
        paths = own.paths(residues(x), residues(z))
        count = 0
        for kinds in itertools.product("mxz", repeat=5):
            for length in range(6):
                row = kinds[:length]
                if row.count("z") + row.count("m") != 2 or row.count("x") + row.count("m") != 3:
                    continue
                left, right = iter(x), iter(z)
                record = {
                    "ax": "".join("-" if kind == "z" else next(left) for kind in row),
                    "az": "".join("-" if kind == "x" else next(right) for kind in row),
                }
                assert own.given(record, residues(x), residues(z)) in paths
                count += 1
        assert count


def test_losses_of_alignments() -> None:
    truth = (((0, 0), (1, 1)), frozenset())
    other = (((0, 1),), frozenset())
    losses = {"q": 1.0, "q4": 0.5, "hamming": (2 + 2) / 5}
    for loss, expected in losses.items():
        assert setting(loss=loss).loss_of(truth, other, 5) == expected
        assert setting(loss=loss).loss_of(truth, truth, 5) == 0.0
    far = (((0, 5), (1, 6)), frozenset())
    assert setting(loss="q4").loss_of(truth, far, 9) == 1.0


def test_decoys() -> None:
    """The homologue has its given alignment alone; each alignment of a decoy is an output."""
    record = {"x": "A", "z": "AA", "ax": "-A", "az": "AA", "decoys": ["A"]}
    files = {align.TRAIN: json.dumps(record) + "\n"}
    (example,) = outputs(align, files, alignment="global", gaps="linear")
    assert [c.loss for c in example.candidates] == [1.0, 1.0]
    found = sorted(sorted(total(c.parts).items()) for c in example.candidates)
    assert found == [
        [(("gaps", 0, 0), -1.0), (("letters", ("A", "A"), 0), 1.0)],
        [(("gaps", 0, 0), 1.0)],
    ]


def test_directions() -> None:
    """Scores with v and b are those of the effective weights, and b is found again."""
    random = np.random.default_rng(3)
    drawn = 0
    for seed in range(200):
        draw = align.draw(np.random.default_rng(seed), 1.0)
        if not {"prior", "tied"} & set(draw.traits["options"]):
            continue
        drawn += 1
        with tempfile.TemporaryDirectory() as name:
            for file, text in draw.files.items():
                (Path(name) / file).write_text(text, encoding="utf-8")
            _, own = align.read(Path(name), draw)
            found = align.examples(Path(name), draw, MARGIN)
        w: Counter = Counter()
        for example in found:
            for candidate in example.candidates:
                size = random.standard_normal()
                for key, value in total(candidate.parts).items():
                    w[key] += size * value
        effective = {key: np.longdouble(w[key]) for key in own.keys()}
        factors = [np.longdouble(w["directions", k, 0]) for k in range(len(own.directions))]
        for factor, direction in zip(factors, own.directions):
            for key, value in direction.items():
                effective[key] += factor * value
        again, rest = align.lifted(effective, own.directions)
        size = sum(map(abs, w.values())) + 1
        assert all(abs(a - b) < 1e-9 * size for a, b in zip(factors, again))
        assert all(abs(rest[key] - w[key]) < 1e-9 * size for key in own.keys())
    assert drawn > 50


def run() -> None:
    tests = {name: test for name, test in globals().items() if name.startswith("test_")}
    for name, test in tests.items():
        test()
        print(f"{name}: passed")


if __name__ == "__main__":
    run()
