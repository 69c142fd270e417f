"""How the partitions of each task are surveyed and opened, as text in the task's format or as samples in memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _labels, _native, _rows
from maxmargin._aligner import SequenceAligner
from maxmargin._classifier import RowClassifier, matched
from maxmargin._graphs import FactorGraphModel
from maxmargin._multilabel import EMPTY, MultilabelClassifier, distinct_labels, is_sets, members_of
from maxmargin._parser import TreeParser
from maxmargin._rows import Table
from maxmargin._sentences import as_lists, check_lengths, distinct_tags
from maxmargin._tagger import SequenceTagger
from maxmargin.partitions._job import Job, Unpacked
from maxmargin.partitions._vectors import aligned

TASKS: dict[type, str] = {SequenceTagger: "tag", TreeParser: "parse", SequenceAligner: "align", FactorGraphModel: "graph"}


@dataclass
class Survey:
    """What the whole has to know of one partition."""

    # The library's survey of its text; none of rows.
    native: bytes | None = None
    # Of samples in memory: their distinct labels in the order in which they come, and how often; in which form they are.
    labels: Any = None
    counts: Any = None
    form: str = ""
    # Of rows.
    columns: int = 0
    names: NDArray[Any] | None = field(default=None)


def survey(job: Unpacked, content: Any, name: str) -> Survey:
    """Of one partition."""
    if _is_rows(job, content):
        return _survey_rows(job, content)
    text, found = _as_text(job.job.estimator, content)
    found.native = bytes(_native.survey(job.job.task, job.options, text, name))
    return found


def opened(job: Unpacked, content: Any, name: str) -> _native.Partition:
    """One partition as the library has it."""
    task = job.job.task
    if not _is_rows(job, content):
        return _native.Partition.of_text(task, job.options, job.blank, _as_text(job.job.estimator, content)[0], name)
    table, y, weights = _rows_of(job.job.estimator, content)
    words, ids = _ids(job.job, y)
    return _native.Partition.of_rows(task, job.options, job.blank, table.rows(), words, ids, weights)


def _is_rows(job: Unpacked, content: Any) -> bool:
    return not isinstance(content, bytes) and isinstance(job.job.estimator, (RowClassifier, MultilabelClassifier))


def _as_text(estimator: Any, content: Any) -> tuple[bytes, Survey]:
    """Samples in the task's format, and what of them is not in the text."""
    if isinstance(content, bytes):
        if isinstance(estimator, SequenceTagger) and estimator.format is None:
            raise ValueError("the partition is text; say how it is written with format='columns', 'crfsuite' or 'svmhmm'")
        return content, Survey(form="text")
    X, y = content if isinstance(content, tuple) and len(content) == 2 else (content, None)
    if isinstance(estimator, SequenceTagger):
        sentences = as_lists(X, "X")
        if y is None:
            raise ValueError("the partition has no tags; it must be a pair (sentences, tags), or text")
        tags = as_lists(y, "y")
        check_lengths(sentences, tags)
        distinct = distinct_tags(tags)
        words = [[_labels.text_of(tag) for tag in row] for row in tags]
        return estimator._text(sentences, words), Survey(labels=distinct, form="lists")
    if isinstance(estimator, TreeParser):
        trees = list(X if y is None else y)
        lines = estimator._brackets(trees, None if y is None else X)
        form = "strings" if trees and isinstance(trees[0], str) else "tuples"
        return ("\n".join(lines) + "\n").encode(), Survey(form=form)
    return estimator._text(X, y), Survey(form="dicts")


def _rows_of(estimator: Any, content: Any) -> tuple[Table, Any, NDArray[np.float64] | None]:
    """Rows, labels and weights of a partition in memory; samples of weight 0 are left out."""
    if not isinstance(content, tuple) or len(content) not in (2, 3):
        raise ValueError(f"a partition in memory must be a pair (X, y) or (X, y, sample_weight), not a {type(content).__name__}")
    X, y, weights = content if len(content) == 3 else (*content, None)
    y = _rows.kept(y)
    who = type(estimator).__name__
    table = _aligned(_rows.as_table(X, who))
    is_classes = isinstance(estimator, RowClassifier)
    labels: Any = _labels.as_labels(y, who) if is_classes else list(y) if is_sets(y) else y
    matched(table.shape[0], labels.shape[0] if hasattr(labels, "shape") else len(labels))
    weights = _rows.sample_weights(weights, table.shape[0])
    if weights is not None and not weights.all():
        chosen = weights > 0
        labels = [label for label, is_kept in zip(labels, chosen, strict=True) if is_kept] if isinstance(labels, list) else labels[chosen]
        table, weights = table.take(chosen), weights[chosen]
    return table, labels, weights


def _aligned(table: Table) -> Table:
    if table.csr is None:
        return table if table.dense is None else Table(table.shape, dense=aligned(table.dense))
    ends, columns, values = table.csr
    return Table(table.shape, csr=(aligned(ends), aligned(columns), aligned(values)))


def _survey_rows(job: Unpacked, content: Any) -> Survey:
    estimator = job.job.estimator
    table, labels, _ = _rows_of(estimator, content)
    found = Survey(columns=table.shape[1], names=_rows.names_of(content[0]))
    if isinstance(estimator, RowClassifier):
        found.labels = _labels.unique(labels)
        found.counts = np.bincount(_labels.places(labels, found.labels), minlength=len(found.labels))
    elif is_sets(labels):
        found.form, found.labels = "sets", distinct_labels(labels)
        found.counts = Counter(frozenset(members) for members in labels)
    else:
        members, width = members_of(labels)
        found.form = "sparse" if hasattr(labels, "tocsr") else "dense"
        found.labels = np.arange(width)
        found.counts = Counter(frozenset(row.tolist()) for row in members)
    return found


def set_word(members: Any, word: dict[Any, str]) -> str:
    """A label set as the library has it."""
    return ",".join(sorted(word[label] for label in members))


def _ids(job: Job, labels: Any) -> tuple[list[str], NDArray[np.uint32]]:
    """Names of labels, or of label sets, and the place of each sample's in them."""
    if isinstance(job.estimator, RowClassifier):
        return job.words, _labels.places(labels, job.classes).astype(np.uint32)
    word = dict(zip(job.classes.tolist(), job.words, strict=True))
    sets = labels if is_sets(labels) else [row.tolist() for row in members_of(labels)[0]]
    written = [set_word(set(members), word) for members in sets]
    names = list(dict.fromkeys(text for text in written if text))
    place = {text: k for k, text in enumerate(names)}
    return names, np.array([place.get(text, EMPTY) for text in written], np.uint32)
