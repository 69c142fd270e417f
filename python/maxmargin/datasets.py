"""Data to try things with, and the file formats of the program.

``make_*`` draw synthetic data, the same for the same arguments on every machine; ``load_*`` and ``dump_*`` read and write files, plain
or gzipped.

>>> from maxmargin import datasets
>>> X, y = datasets.make_multiclass(100, features=5, classes=3)
>>> X.shape, len(y)
((100, 5), 100)
"""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _json_lines, _labels, _native, _rows, _settings, _svmlight
from maxmargin._rows import Table
from maxmargin._sentences import as_lists, blocks, check_lengths
from maxmargin._trees import from_brackets, to_brackets

__all__ = [
    "dump_columns", "dump_json_lines", "dump_svmlight", "dump_trees", "load_columns", "load_json_lines", "load_svmlight",
    "load_taxonomy", "load_trees", "make_alignments", "make_binary", "make_graphs", "make_multiclass", "make_multilabel", "make_tags",
    "make_taxonomy", "make_trees", "sentences_from_frame", "sentences_to_frame",
]  # fmt: skip

Path = str | os.PathLike[str]


def _generate(task: str, n_samples: int, random_state: int, sizes: Mapping[str, Any]) -> str:
    words = _settings.words({"examples": n_samples, "random_state": random_state, **sizes}, "generate")
    return _native.generate(task, words).decode()


def _matrix(table: Table) -> Any:
    """CSR where scipy is installed, else dense."""
    assert table.csr is not None
    ends, columns, values = table.csr
    try:
        from scipy import sparse
    except ImportError:
        dense = np.zeros(table.shape)
        dense[np.repeat(np.arange(table.shape[0]), np.diff(ends)), columns] = values
        return dense
    return sparse.csr_matrix((values, columns, ends), shape=table.shape)


def _widened(table: Table, features: int | None) -> Table:
    if features is not None and features < table.shape[1]:
        raise ValueError(f"the data have {table.shape[1]} features, more than {features}")
    return table if features is None else Table((table.shape[0], features), csr=table.csr)


def _classes(text: str, features: int | None = None) -> tuple[Any, NDArray[Any]]:
    words, table, _ = _svmlight.read(text)
    return _matrix(_widened(table, features)), _labels.from_words(words)


def make_binary(n_samples: int = 100, random_state: int = 0, **sizes: Any) -> tuple[Any, NDArray[Any]]:
    """Samples of the classes -1 and 1, as ``maxmargin generate binary`` draws them.

    Parameters
    ----------
    n_samples, random_state : int
        Number of samples, and the seed.
    **sizes
        features, nonzeros, noise, and kind='checkers' for a board that only a kernel separates.

    Returns
    -------
    X : CSR matrix, or array without scipy
    y : array
    """
    return _classes(_generate("binary", n_samples, random_state, sizes), sizes.get("features"))


def make_multiclass(n_samples: int = 100, random_state: int = 0, **sizes: Any) -> tuple[Any, NDArray[Any]]:
    """Samples of several classes; sizes: features, classes, nonzeros, noise. Returns X and y as :func:`make_binary` does."""
    return _classes(_generate("multiclass", n_samples, random_state, sizes), sizes.get("features"))


def make_taxonomy(n_samples: int = 100, random_state: int = 0, **sizes: Any) -> tuple[Any, NDArray[Any], list[tuple[str, str]]]:
    """Samples whose classes are leaves of a tree; sizes: depth, branching, features, nonzeros, noise.

    Returns
    -------
    X : CSR matrix, or array without scipy
    y : array
    taxonomy : list of pairs (child, parent)
    """
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tree")
        text = _generate("taxonomy", n_samples, random_state, {**sizes, "taxonomy": path})
        taxonomy = load_taxonomy(path)
    words, table, _ = _svmlight.read(text)
    return _matrix(_widened(table, sizes.get("features"))), np.array(words), taxonomy


def make_multilabel(n_samples: int = 100, random_state: int = 0, **sizes: Any) -> tuple[Any, list[set[Any]]]:
    """Samples with sets of labels; sizes: labels, cardinality, correlation, features, nonzeros, noise. Returns X and a list of sets."""
    words, table, _ = _svmlight.read(_generate("multilabel", n_samples, random_state, sizes), has_sets=True)
    return _matrix(_widened(table, sizes.get("features"))), _sets(words)


def _sets(words: Sequence[str]) -> list[set[Any]]:
    members = sorted({label for word in words for label in word.split(",") if label})
    value = dict(zip(members, _labels.from_words(members).tolist(), strict=True))
    return [{value[label] for label in word.split(",") if label} for word in words]


def make_tags(n_samples: int = 100, random_state: int = 0, **sizes: Any) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of words and their tags; sizes: tags, words, length, noise. For ``SequenceTagger(format="columns")``."""
    X, y = _columns(_generate("tag", n_samples, random_state, sizes))
    return [[row[0] for row in sentence] for sentence in X], y


def make_trees(n_samples: int = 100, random_state: int = 0, **sizes: Any) -> tuple[list[list[tuple[str, str]]], list[str]]:
    """Sentences as (word, tag) pairs and their trees in brackets; sizes: rules, tags, phrases, length, words."""
    from maxmargin._trees import leaves

    trees = [line for line in _generate("parse", n_samples, random_state, sizes).splitlines() if line]
    return [list(leaves(from_brackets(tree))) for tree in trees], trees


def make_graphs(n_samples: int = 100, random_state: int = 0, **sizes: Any) -> tuple[list[dict[str, Any]], list[list[int]]]:
    """Grids of cells and their labels; sizes: labels, height, width, features, noise."""
    graphs = [json.loads(line) for line in _generate("graph", n_samples, random_state, sizes).splitlines()]
    return graphs, [graph.pop("labels") for graph in graphs]


def make_alignments(n_samples: int = 100, random_state: int = 0, **sizes: Any) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Sequences with homologues and decoys, and the true alignments; sizes: length, letters, decoys, operations and more."""
    samples = [json.loads(line) for line in _generate("align", n_samples, random_state, sizes).splitlines()]
    return samples, [(sample.pop("ax"), sample.pop("az")) for sample in samples]


def _read(path: Path) -> str:
    with open(path, "rb") as file:
        data = file.read()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()


def _write(path: Path, text: str | bytes) -> None:
    data = text.encode() if isinstance(text, str) else text
    with open(path, "wb") as file:
        file.write(gzip.compress(data) if os.fspath(path).endswith(".gz") else data)


def load_svmlight(path: Path, *, n_features: int | None = None, multilabel: bool = False) -> tuple[Any, Any]:
    """Samples of an SVM-light / LIBSVM file.

    Parameters
    ----------
    path : path
        The file.
    n_features : int, optional
        Columns of X; by default as many as the file has.
    multilabel : bool, default=False
        Labels are sets, written with commas.

    Returns
    -------
    X : CSR matrix, or array without scipy
    y : array, or list of sets
        Numbers where all labels are whole numbers, else words.
    """
    text = _read(path)
    if not multilabel:
        return _classes(text, n_features)
    words, table, _ = _svmlight.read(text, has_sets=True)
    return _matrix(_widened(table, n_features)), _sets(words)


def dump_svmlight(path: Path, X: Any, y: Any, sample_weight: Any = None) -> None:
    """Writes samples as an SVM-light / LIBSVM file; y: classes, or sets of labels. ``.gz`` files are compressed."""
    table = _rows.as_table(X, "dump_svmlight")
    if any(isinstance(label, (set, frozenset)) for label in y):
        words = [",".join(sorted(map(_labels.text_of, labels))) for labels in y]
        valid = _labels.SET_LABEL
        parts: Iterable[str] = (part for word in words for part in word.split(",") if part)
    else:
        words = [_labels.text_of(label) for label in _labels.as_labels(y)]
        valid, parts = _labels.CLASS, words
    bad = next((part for part in parts if not valid.fullmatch(part)), None)
    if bad is not None:
        raise ValueError(f"the label {bad!r} cannot be written: it is no word")
    if len(words) != table.shape[0]:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[table.shape[0], len(words)]}")
    _write(path, _svmlight.write(table, words, _rows.sample_weights(sample_weight, len(words))))


def load_taxonomy(path: Path) -> list[tuple[str, str]]:
    """The edges (child, parent) of a taxonomy file."""
    from maxmargin._files import edges_of

    return edges_of(_read(path))


def _columns(text: str) -> tuple[list[list[list[str]]], list[list[str]]]:
    rows = [[line.split() for line in lines] for lines in blocks(text)]
    return [[row[:-1] for row in sentence] for sentence in rows], [[row[-1] for row in sentence] for sentence in rows]


def load_columns(path: Path) -> tuple[list[list[list[str]]], list[list[str]]]:
    """Sentences of a CoNLL file: for each token its columns but the last, and the last one, its tag."""
    return _columns(_read(path))


def dump_columns(path: Path, X: Any, y: Any) -> None:
    """Writes sentences as a CoNLL file; tokens are words or rows of words."""
    from maxmargin._sentences import columns_text

    X, y = as_lists(X, "X"), as_lists(y, "y")
    check_lengths(X, y)
    _write(path, columns_text(X, [[str(tag) for tag in tags] for tags in y]))


def sentences_to_frame(X: Any, y: Any, names: Sequence[str] = ("word",)) -> Any:
    """Sentences as a pandas frame, a token a row: columns sentence, those of `names`, and tag."""
    import pandas as pd

    rows = []
    for i, (sentence, tags) in enumerate(zip(as_lists(X, "X"), as_lists(y, "y"), strict=True)):
        for token, tag in zip(sentence, tags, strict=True):
            rows.append([i, *([token] if isinstance(token, str) else token), tag])
    return pd.DataFrame(rows, columns=["sentence", *names, "tag"])


def sentences_from_frame(
    frame: Any, sentence: str = "sentence", tag: str | None = "tag"
) -> tuple[list[list[dict[str, Any]]], list[list[Any]]]:
    """Sentences of a pandas or polars frame, a token a row, in the order in which they begin.

    Returns
    -------
    X : list of lists of dicts
        All other columns, as features of the tokens.
    y : list of lists
        The tags; empty lists where there is no such column.
    """
    columns = {name: frame[name].to_list() for name in frame.columns}
    missing = [name for name in (sentence, tag) if name is not None and name not in columns]
    if missing:
        raise ValueError(f"the frame has no column {missing[0]!r}; it has {list(columns)}")
    X: dict[Any, list[dict[str, Any]]] = {}
    y: dict[Any, list[Any]] = {}
    features = [name for name in columns if name not in (sentence, tag)]
    for row, key in enumerate(columns[sentence]):
        X.setdefault(key, []).append({name: columns[name][row] for name in features})
        y.setdefault(key, []).extend([] if tag is None else [columns[tag][row]])
    return list(X.values()), list(y.values())


def load_trees(path: Path) -> list[str]:
    """The trees of a file in brackets, each as one line."""
    lines = (line for line in _read(path).splitlines() if not line.lstrip().startswith("#"))
    trees, depth, begin = [], 0, 0
    text = "\n".join(lines)
    for at, letter in enumerate(text):
        if letter == "(":
            begin = at if depth == 0 else begin
            depth += 1
        elif letter == ")":
            depth -= 1
            if depth == 0:
                trees.append(to_brackets(from_brackets(text[begin : at + 1])))
    if depth != 0:
        raise ValueError(f"{os.fspath(path)}: a bracket is not closed at the end of the file")
    return trees


def dump_trees(path: Path, trees: Any) -> None:
    """Writes trees, strings or tuples, one a line."""
    _write(path, "".join((tree if isinstance(tree, str) else to_brackets(tree)) + "\n" for tree in trees))


def load_json_lines(path: Path) -> list[dict[str, Any]]:
    """The graphs or sequences of a file, a JSON object a line."""
    return [json.loads(line) for line in _read(path).splitlines() if line.strip()]


def dump_json_lines(path: Path, samples: Any) -> None:
    """Writes graphs or sequences, a JSON object a line; arrays become lists."""
    what = "numbers, words, lists and arrays"
    _write(path, _json_lines.lines(_json_lines.samples_of(samples, what), what))
