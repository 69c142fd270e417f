"""Figures of tags and chunks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

Sentences = Sequence[Sequence[Any]]


def _pairs(y_true: Sentences, y_pred: Sentences) -> Iterator[tuple[Sequence[Any], Sequence[Any]]]:
    if len(y_true) != len(y_pred):
        raise ValueError(f"{len(y_true)} true sentences, {len(y_pred)} predicted ones; they must be the same")
    for i, (true, found) in enumerate(zip(y_true, y_pred, strict=True)):
        if len(true) != len(found):
            raise ValueError(f"sentence {i} has {len(true)} true tags, {len(found)} predicted ones")
        yield true, found


def token_accuracy(y_true: Sentences, y_pred: Sentences) -> float:
    """The share of tokens whose tag is right; nan where there are none.

    >>> token_accuracy([["A", "B"], ["A"]], [["A", "A"], ["A"]])
    0.6666666666666666
    """
    tokens = right = 0
    for true, found in _pairs(y_true, y_pred):
        tokens += len(true)
        right += sum(a == b for a, b in zip(true, found, strict=True))
    return right / tokens if tokens else float("nan")


def sequence_accuracy(y_true: Sentences, y_pred: Sentences) -> float:
    """The share of sentences all of whose tags are right; nan where there are none.

    >>> sequence_accuracy([["A", "B"], ["A"]], [["A", "A"], ["A"]])
    0.5
    """
    right = [all(a == b for a, b in zip(true, found, strict=True)) for true, found in _pairs(y_true, y_pred)]
    return sum(right) / len(right) if right else float("nan")


def _place(tag: Any) -> tuple[str, str]:
    """Mark and type of a tag; a mark of O is outside of chunks."""
    mark, dash, kind = str(tag).partition("-")
    if mark == "O" and not dash:
        return "O", ""
    if mark not in ("B", "I", "E", "S") or not kind:
        raise ValueError(f"the tag {tag!r} belongs to no scheme of chunks; tags are O, B-TYPE, I-TYPE, E-TYPE and S-TYPE")
    return mark, kind


def chunks(tags: Iterable[Any]) -> list[tuple[str, int, int]]:
    """The chunks of a sentence: type, first token, and the token after the last, as the script conlleval finds them.

    Tags are IOB1, BIO (IOB2) or BIOES; those that break the scheme are read generously, as conlleval does.

    >>> chunks(["B-PER", "I-PER", "O", "B-LOC"])
    [('PER', 0, 2), ('LOC', 3, 4)]
    """
    found: list[tuple[str, int, int]] = []
    before = ("O", "")
    for t, tag in enumerate(tags):
        mark, kind = here = _place(tag)
        if mark != "O":
            is_new = mark in "BS" or before[0] in "OES" or before[1] != kind
            if is_new:
                found.append((kind, t, t + 1))
            else:
                found[-1] = (found[-1][0], found[-1][1], t + 1)
        before = here
    return found


def _counts(y_true: Sentences, y_pred: Sentences) -> dict[str, tuple[int, int, int]]:
    """Right, true and predicted chunks of each type."""
    right: Counter[str] = Counter()
    true_ones: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for true, found in _pairs(y_true, y_pred):
        a, b = set(chunks(true)), set(chunks(found))
        true_ones.update(kind for kind, _, _ in a)
        told.update(kind for kind, _, _ in b)
        right.update(kind for kind, _, _ in a & b)
    return {kind: (right[kind], true_ones[kind], told[kind]) for kind in sorted(true_ones | told)}


def _shares(right: int, true_ones: int, told: int) -> dict[str, float]:
    return {
        "precision": right / told if told else 0.0,
        "recall": right / true_ones if true_ones else 0.0,
        "f1": 2 * right / (told + true_ones) if told + true_ones else 0.0,
        "support": true_ones,
        "predicted": told,
    }


def chunk_scores(y_true: Sentences, y_pred: Sentences) -> dict[str, dict[str, float]]:
    """Precision, recall, F1, support and number of predictions of the chunks of each type, and of all together under ``"all"``.

    A chunk is right where type and both ends are, as conlleval counts.

    >>> chunk_scores([["B-PER", "I-PER", "O"]], [["B-PER", "I-PER", "B-LOC"]])["all"]["precision"]
    0.5
    """
    counts = _counts(y_true, y_pred)
    whole = [sum(count[k] for count in counts.values()) for k in range(3)]
    return {**{kind: _shares(*count) for kind, count in counts.items()}, "all": _shares(whole[0], whole[1], whole[2])}


def chunk_precision(y_true: Sentences, y_pred: Sentences) -> float:
    """The share of predicted chunks that are right."""
    return chunk_scores(y_true, y_pred)["all"]["precision"]


def chunk_recall(y_true: Sentences, y_pred: Sentences) -> float:
    """The share of true chunks that were found."""
    return chunk_scores(y_true, y_pred)["all"]["recall"]


def chunk_f1(y_true: Sentences, y_pred: Sentences) -> float:
    """The harmonic mean of precision and recall of chunks.

    >>> chunk_f1([["B-PER", "O"], ["B-LOC"]], [["B-PER", "O"], ["B-PER"]])
    0.5
    """
    return chunk_scores(y_true, y_pred)["all"]["f1"]


def _table(rows: dict[str, dict[str, float]]) -> str:
    width = max([5, *(len(name) for name in rows)])
    lines = [f"{'':{width}}  precision  recall      f1  support"]
    for name, row in rows.items():
        lines.append(f"{name:{width}}  {row['precision']:9.4f}  {row['recall']:6.4f}  {row['f1']:6.4f}  {int(row['support']):7d}")
    return "\n".join(lines) + "\n"


def chunk_report(y_true: Sentences, y_pred: Sentences) -> str:
    """A table of precision, recall and F1 of the chunks of each type, as text."""
    return _table(chunk_scores(y_true, y_pred))


def tag_report(y_true: Sentences, y_pred: Sentences) -> str:
    """A table of precision, recall and F1 of each tag, as text.

    >>> print(tag_report([["A", "B"]], [["A", "A"]]), end="")
           precision  recall      f1  support
    A         0.5000  1.0000  0.6667        1
    B         0.0000  0.0000  0.0000        1
    """
    right: Counter[Any] = Counter()
    true_ones: Counter[Any] = Counter()
    told: Counter[Any] = Counter()
    for true, found in _pairs(y_true, y_pred):
        true_ones.update(true)
        told.update(found)
        right.update(a for a, b in zip(true, found, strict=True) if a == b)
    tags = sorted(true_ones | told, key=str)
    return _table({str(tag): _shares(right[tag], true_ones[tag], told[tag]) for tag in tags})
