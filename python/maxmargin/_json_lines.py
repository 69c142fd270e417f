"""Samples that are JSON objects for the program, one a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np


def _plain(value: Any) -> Any:
    """What json does not know: arrays and numpy's numbers."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if hasattr(value, "tocsr"):
        csr = value.tocsr()
        ends = csr.indptr
        pairs = (zip(csr.indices[b:e].tolist(), csr.data[b:e].tolist(), strict=True) for b, e in zip(ends[:-1], ends[1:], strict=True))
        return [{str(j): v for j, v in row} for row in pairs]
    raise TypeError(f"a {type(value).__name__} has no JSON")


def lines(samples: Iterable[Mapping[str, Any]], what: str) -> bytes:
    """A line for each sample. ValueError names the sample that is no dict or has something in it that JSON has not."""
    found = []
    for i, sample in enumerate(samples):
        if not isinstance(sample, Mapping):
            raise ValueError(f"sample {i} is a {type(sample).__name__}, not a dict of {what}")
        try:
            found.append(json.dumps(dict(sample), default=_plain, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ValueError(f"sample {i}: {error}; {what} hold finite numbers, words, lists and arrays") from error
    return ("\n".join(found) + "\n").encode() if found else b""


def with_outputs(X: Any, y: Any, keys: tuple[str, ...], what: str) -> list[dict[str, Any]]:
    """Samples with their outputs in them."""
    samples = [dict(sample) if isinstance(sample, Mapping) else sample for sample in X]
    for i, sample in enumerate(samples):
        if not isinstance(sample, dict):
            raise ValueError(f"sample {i} is a {type(sample).__name__}, not a dict of {what}")
    if y is not None:
        if len(samples) != len(y):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(samples), len(y)]}")
        for i, (sample, output) in enumerate(zip(samples, y, strict=True)):
            if len(keys) > 1 and (isinstance(output, str) or len(output) != len(keys)):
                raise ValueError(f"sample {i}: the output {output!r} must have {len(keys)} parts: {', '.join(keys)}")
            sample.update(zip(keys, output if len(keys) > 1 else [output], strict=True))
    for i, sample in enumerate(samples):
        missing = [key for key in keys if key not in sample]
        if missing:
            raise ValueError(f"sample {i} lacks {missing[0]!r}; give it in the dict, or in y")
    if not samples:
        raise ValueError("there are no samples; at least one is required")
    return samples
