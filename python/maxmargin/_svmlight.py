"""SVM-light and LIBSVM text: ``LABEL [cost:W] INDEX:VALUE ...``, a sample a line, indices from 1."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from maxmargin._rows import Table


def write(table: Table, words: Sequence[str] | None, costs: NDArray[np.float64] | None = None) -> str:
    """The text of a table; `words` are the labels, those of sets joined by commas."""
    lines = []
    for i in range(table.shape[0]):
        columns, values = table.row(i)
        parts = [words[i] if words is not None else "?"]
        if costs is not None:
            parts.append(f"cost:{float(costs[i])!r}")
        parts += [f"{column + 1}:{value!r}" for column, value in zip(columns.tolist(), values.tolist(), strict=True)]
        lines.append(" ".join(parts))
    return "\n".join(lines) + "\n"


def read(text: str, has_sets: bool = False) -> tuple[list[str], Table, NDArray[np.float64] | None]:
    """Labels as words, rows, and the weights of samples where there are any.

    With `has_sets` a line may begin with a blank or its first feature: the empty set.
    """
    labels, ends, columns, values = [], [0], [], []
    costs: dict[int, float] = {}
    for number, line in enumerate(text.splitlines(), 1):
        content = line.split("#", 1)[0]
        parts = content.split()
        if not parts and not (has_sets and content):
            continue
        is_empty = has_sets and (content[:1].isspace() or ":" in parts[0])
        labels.append("" if is_empty else parts[0])
        last = 0
        for part in parts[0 if is_empty else 1 :]:
            index, colon, value = part.partition(":")
            try:
                if index == "cost":
                    costs[len(labels) - 1] = float(value)
                    continue
                place = int(index)
                number_read = float(value)
            except ValueError:
                raise ValueError(f"line {number}: {part!r} is no INDEX:VALUE") from None
            if place <= last:
                raise ValueError(f"line {number}: feature {place} after {last}; indices start at 1 and ascend")
            last = place
            columns.append(place - 1)
            values.append(number_read)
        ends.append(len(columns))
    csr = (np.array(ends, np.int64), np.array(columns, np.int32), np.array(values, np.float64))
    shape = (len(labels), int(csr[1].max()) + 1 if columns else 0)
    weights = np.array([costs.get(i, 1.0) for i in range(len(labels))]) if costs else None
    return labels, Table(shape, csr=csr), weights
