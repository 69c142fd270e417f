"""Samples that are JSON objects for the program, one a line."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def sparse_rows(matrix: Any) -> list[dict[str, Any]]:
    """The rows of a sparse matrix, each a dict from columns to values."""
    csr = matrix.tocsr()
    parts = zip(np.split(csr.indices, csr.indptr[1:-1]), np.split(csr.data, csr.indptr[1:-1]), strict=True)
    return [{str(j): x for j, x in zip(columns.tolist(), values.tolist(), strict=True)} for columns, values in parts]


def _plain(value: Any) -> Any:
    """What json does not know: arrays and numpy's numbers."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "tocsr"):
        return sparse_rows(value)
    raise TypeError(f"a {type(value).__name__} has no JSON")


def samples_of(X: Any, what: str) -> list[dict[str, Any]]:
    """The samples, each a dict of its own, checked."""
    if isinstance(X, (Mapping, str)) or not isinstance(X, Iterable):
        raise ValueError(f"X is a {type(X).__name__}; it must be a list of dicts, each of {what}")
    samples = list(X)
    for i, sample in enumerate(samples):
        if not isinstance(sample, Mapping):
            raise ValueError(f"sample {i} is a {type(sample).__name__}, not a dict of {what}")
    return [dict(sample) for sample in samples]


def lines(samples: Iterable[Mapping[str, Any]], what: str) -> bytes:
    """A line for each sample. ValueError names the sample that has something in it that JSON has not."""
    found = []
    for i, sample in enumerate(samples):
        try:
            found.append(json.dumps(sample, default=_plain, allow_nan=False, ensure_ascii=False).encode())
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"sample {i}: {error}; {what} hold finite numbers, words, lists and arrays") from error
    return b"".join(line + b"\n" for line in found)


def with_outputs(X: Any, y: Any, keys: tuple[str, ...], what: str) -> list[dict[str, Any]]:
    """Samples with their outputs in them."""
    samples = samples_of(X, what)
    if y is not None:
        y = list(y)
        if len(samples) != len(y):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(samples), len(y)]}")
        for i, (sample, output) in enumerate(zip(samples, y, strict=True)):
            if len(keys) > 1 and (not isinstance(output, (tuple, list)) or len(output) != len(keys)):
                raise ValueError(f"sample {i}: the output {reprlib.repr(output)} must have {len(keys)} parts: {', '.join(keys)}")
            sample.update(zip(keys, output if len(keys) > 1 else [output], strict=True))
    for i, sample in enumerate(samples):
        missing = [key for key in keys if key not in sample]
        if missing:
            raise ValueError(f"sample {i} lacks {missing[0]!r}; give it in the dict, or in y")
    if not samples:
        raise ValueError("there are no samples; at least one is required")
    return samples
