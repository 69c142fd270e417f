"""Figures that tell how good predictions are, as ``maxmargin evaluate`` counts them.

>>> from maxmargin import metrics
>>> metrics.chunk_f1([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "O"]])
1.0
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from maxmargin._files import edges_of
from maxmargin._tag_metrics import (
    chunk_f1,
    chunk_precision,
    chunk_recall,
    chunk_report,
    chunk_scores,
    chunks,
    sequence_accuracy,
    tag_report,
    token_accuracy,
)
from maxmargin._trees import from_brackets, leaves

__all__ = [
    "bracket_f1",
    "bracket_scores",
    "chunk_f1",
    "chunk_precision",
    "chunk_recall",
    "chunk_report",
    "chunk_scores",
    "chunks",
    "hamming",
    "hierarchical_f1",
    "hierarchical_scores",
    "q_score",
    "sequence_accuracy",
    "tag_report",
    "token_accuracy",
    "tree_loss",
]


class _Hierarchy:
    """Ancestors and heights of the nodes of a taxonomy."""

    def __init__(self, taxonomy: Any) -> None:
        self.parents: dict[Hashable, list[Hashable]] = {}
        self.children: dict[Hashable, list[Hashable]] = {}
        for child, parent in edges_of(taxonomy):
            self.parents.setdefault(child, []).append(parent)
            self.children.setdefault(parent, []).append(child)
        self.nodes = set(self.parents) | set(self.children)
        self.roots = [node for node in self.nodes if node not in self.parents]
        if len(self.roots) != 1:
            raise ValueError(f"the taxonomy has {len(self.roots)} roots; it needs one: {sorted(map(str, self.roots))[:5]}")
        self._heights: dict[Hashable, int] = {}

    def ancestors(self, node: Hashable) -> set[Hashable]:
        """Of a node, itself too."""
        if node not in self.nodes:
            raise ValueError(f"{node!r} is no node of the taxonomy")
        found, open_ones = {node}, [node]
        while open_ones:
            for parent in self.parents.get(open_ones.pop(), ()):
                if parent not in found:
                    found.add(parent)
                    open_ones.append(parent)
        return found

    def height(self, node: Hashable) -> int:
        """The longest way down to a leaf."""
        if node not in self._heights:
            self._heights[node] = 1 + max((self.height(child) for child in self.children.get(node, ())), default=-1)
        return self._heights[node]


def _matched(y_true: Sequence[Any], y_pred: Sequence[Any]) -> list[tuple[Any, Any]]:
    if len(y_true) != len(y_pred):
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(y_true), len(y_pred)]}")
    return list(zip(y_true, y_pred, strict=True))


def tree_loss(y_true: Sequence[Any], y_pred: Sequence[Any], taxonomy: Any) -> float:
    """The mean height of the first common ancestor of truth and prediction; 0 where they are the same node.

    Parameters
    ----------
    y_true, y_pred : sequences
        Nodes.
    taxonomy : dict, list of pairs or text
        Child and parent of each edge, as :class:`maxmargin.TaxonomyClassifier` takes them.

    Examples
    --------
    >>> tree = {"cat": "animal", "dog": "animal", "oak": "plant", "animal": "thing", "plant": "thing"}
    >>> tree_loss(["cat", "cat", "cat"], ["cat", "dog", "oak"], tree)
    1.0
    """
    tree = _Hierarchy(taxonomy)

    def loss(a: Any, b: Any) -> int:
        return 0 if a == b else min(tree.height(node) for node in tree.ancestors(a) & tree.ancestors(b))

    losses = [loss(a, b) for a, b in _matched(y_true, y_pred)]
    return float(np.mean(losses)) if losses else float("nan")


def hierarchical_scores(y_true: Sequence[Any], y_pred: Sequence[Any], taxonomy: Any) -> dict[str, float]:
    """Precision, recall and F1 of ancestors: a node stands for itself and its ancestors but the root; counted over all samples."""
    tree = _Hierarchy(taxonomy)
    root = set(tree.roots)
    right = true_ones = told = 0
    for a, b in _matched(y_true, y_pred):
        of_a, of_b = tree.ancestors(a) - root, tree.ancestors(b) - root
        right, true_ones, told = right + len(of_a & of_b), true_ones + len(of_a), told + len(of_b)
    return _scores(right, true_ones, told)


def _scores(right: int, true_ones: int, told: int) -> dict[str, float]:
    return {
        "precision": right / told if told else 0.0,
        "recall": right / true_ones if true_ones else 0.0,
        "f1": 2 * right / (told + true_ones) if told + true_ones else 0.0,
    }


def hierarchical_f1(y_true: Sequence[Any], y_pred: Sequence[Any], taxonomy: Any) -> float:
    """The F1 of :func:`hierarchical_scores`.

    >>> tree = {"cat": "animal", "dog": "animal", "oak": "plant", "animal": "thing", "plant": "thing"}
    >>> hierarchical_f1(["cat"], ["dog"], tree)
    0.5
    """
    return hierarchical_scores(y_true, y_pred, taxonomy)["f1"]


# As evalb counts with Collins' parameters.
_NO_BRACKETS = {"", "TOP", "ROOT", "S1"}
_PUNCTUATION = {",", ":", "``", "''", "."}


def _brackets(tree: Any, is_word: list[bool]) -> Counter[tuple[str, int, int]]:
    """Phrases over words; punctuation is left out of the sentence first."""
    at = [0]
    words = np.concatenate([[0], np.cumsum(is_word)]).tolist()
    found: Counter[tuple[str, int, int]] = Counter()

    def visit(node: Any) -> None:
        label, *children = node
        if len(children) == 1 and isinstance(children[0], str):
            at[0] += 1
            return
        begin = words[at[0]]
        for child in children:
            visit(child)
        end = words[at[0]]
        if end > begin and label not in _NO_BRACKETS:
            found["ADVP" if label == "PRT" else label, begin, end] += 1

    visit(tree)
    return found


def bracket_scores(y_true: Sequence[Any], y_pred: Sequence[Any]) -> dict[str, float]:
    """Precision, recall and F1 of the brackets of trees, and exact_match, as evalb counts them with Collins' parameters.

    Trees are strings in brackets or nested tuples. Tags and the root are no brackets, and punctuation does not count.
    """
    right = true_ones = told = exact = 0
    for i, (a, b) in enumerate(_matched(y_true, y_pred)):
        a, b = (from_brackets(tree) if isinstance(tree, str) else tree for tree in (a, b))
        tags = [tag for _, tag in leaves(a)]
        if len(tags) != len(list(leaves(b))):
            raise ValueError(f"sample {i}: the trees have {len(tags)} and {len(list(leaves(b)))} words")
        is_word = [tag not in _PUNCTUATION for tag in tags]
        of_a, of_b = _brackets(a, is_word), _brackets(b, is_word)
        right += (of_a & of_b).total()
        true_ones += of_a.total()
        told += of_b.total()
        exact += of_a == of_b
    return {**_scores(right, true_ones, told), "exact_match": exact / len(y_true) if len(y_true) else float("nan")}


def bracket_f1(y_true: Sequence[Any], y_pred: Sequence[Any]) -> float:
    """The F1 of :func:`bracket_scores`.

    >>> bracket_f1(["(S (NP (DT the) (NN cat)) (VP (VB sleeps)))"], ["(S (DT the) (VP (NN cat) (VB sleeps)))"])
    0.4
    """
    return bracket_scores(y_true, y_pred)["f1"]


def _matches(alignment: Any) -> set[tuple[int, int]]:
    """Places of x and z, from 1, that are matched."""
    if isinstance(alignment, dict):
        ax, az = alignment["ax"], alignment["az"]
        i, j = alignment.get("x_begin", 1), alignment.get("z_begin", 1)
    else:
        (ax, az), i, j = alignment, 1, 1
    if len(ax) != len(az):
        raise ValueError(f"{ax!r} and {az!r} are not equally long")
    found = set()
    for a, b in zip(ax, az, strict=True):
        if a != "-" and b != "-":
            found.add((i, j))
        i, j = i + (a != "-"), j + (b != "-")
    return found


def q_score(y_true: Sequence[Any], y_pred: Sequence[Any], window: int = 0) -> float:
    """The mean share of true matches that were found.

    Parameters
    ----------
    y_true, y_pred : sequences
        Alignments: pairs (ax, az), or what :meth:`maxmargin.SequenceAligner.predict` returns.
    window : int, default=0
        A residue may be matched so many residues off.

    Examples
    --------
    >>> q_score([("ACGT", "A-GT")], [("ACGT", "AG-T")])
    0.6666666666666666
    """
    shares = []
    for a, b in _matched(y_true, y_pred):
        truth, found = _matches(a), _matches(b)
        partner = dict(found)
        near = sum(i in partner and abs(partner[i] - j) <= window for i, j in truth)
        if truth:
            shares.append(near / len(truth))
    return float(np.mean(shares)) if shares else float("nan")


def hamming(y_true: Any, y_pred: Any) -> float:
    """The mean number of labels of a sample that are wrong: of sets, of sequences, or of rows of arrays.

    >>> hamming([{"a", "b"}, {"c"}], [{"a"}, {"c"}])
    0.5
    >>> hamming([[0, 1, 1]], [[0, 0, 0]])
    2.0
    """
    losses = []
    for a, b in _matched(y_true, y_pred):
        if isinstance(a, (set, frozenset)):
            losses.append(len(a ^ set(b)))
        else:
            if len(a) != len(b):
                raise ValueError(f"{len(a)} true labels, {len(b)} predicted ones")
            losses.append(sum(x != y for x, y in zip(a, b, strict=True)))
    return float(np.mean(losses)) if losses else float("nan")
