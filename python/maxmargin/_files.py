"""Things that are files for the program and may be Python objects here: written to a folder for the time of ``fit``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


def is_path(value: Any) -> bool:
    """Is it the name of a file, and not text or an object?"""
    return isinstance(value, os.PathLike) or (isinstance(value, str) and "\n" not in value and "%x[" not in value)


class Folder:
    """Where files for the program are written."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)

    def file(self, name: str, content: str | bytes) -> str:
        """Writes a file; its path."""
        path = self.path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    def given(self, name: str, value: Any, text: Callable[[Any], str]) -> str | None:
        """The path of what a parameter holds: its own, or that of a new file with `text(value)`."""
        if value is None:
            return None
        if is_path(value):
            if not os.path.exists(value):
                raise ValueError(f"{name}: there is no file {os.fspath(value)!r}")
            return str(os.fspath(value))
        return self.file(name, value if isinstance(value, str) else text(value))


def matrix_text(matrix: Any, words: list[str], has_header: bool = False) -> str:
    """A cost matrix: a row for each true class, in the order of the classes."""
    costs = np.asarray(matrix, dtype=float)
    n = len(words)
    if costs.shape != (n, n):
        raise ValueError(f"cost_matrix has the shape {costs.shape}; there are {n} classes: {', '.join(words[:10])}")
    rows = [" ".join(repr(float(x)) for x in row) for row in costs]
    return "\n".join([" ".join(words), *rows] if has_header else rows) + "\n"


def edges_of(taxonomy: Any) -> list[tuple[Any, Any]]:
    """(child, parent) pairs of a dict child -> parent or parents, of pairs, or of lines CHILD PARENT."""
    if isinstance(taxonomy, str):
        lines = [line.split("#")[0].split() for line in taxonomy.splitlines()]
        return [_pair(line, k) for k, line in enumerate(lines) if line]
    if isinstance(taxonomy, Mapping):
        parents = [(child, p if isinstance(p, (list, set, frozenset)) else [p]) for child, p in taxonomy.items()]
        return [(child, parent) for child, many in parents for parent in many]
    if hasattr(taxonomy, "to_numpy"):
        taxonomy = taxonomy.to_numpy().tolist()
    return [_pair(edge, k) for k, edge in enumerate(taxonomy)]


def _pair(edge: Iterable[Any], k: int) -> tuple[Any, Any]:
    pair = tuple(edge)
    if len(pair) != 2:
        raise ValueError(f"taxonomy: edge {k} is {pair!r}; edges are pairs (child, parent)")
    return pair


def attributes_text(features: Mapping[Any, Any], word: Mapping[Any, str]) -> str:
    """A line CLASS ATTRIBUTE[:VALUE] ... for each class."""
    lines = []
    for label, attributes in features.items():
        if label not in word:
            raise ValueError(f"class_features: {label!r} is no node of the taxonomy")
        if isinstance(attributes, Mapping):
            parts = [f"{name}:{float(value)!r}" for name, value in attributes.items()]
        else:
            parts = [str(name) for name in attributes]
        if any(len(part.split()) != 1 for part in parts):
            raise ValueError(f"class_features: an attribute of {label!r} has blanks in it")
        lines.append(" ".join([word[label], *parts]))
    return "\n".join(lines) + "\n"
