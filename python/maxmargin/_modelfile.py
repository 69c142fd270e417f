"""Reads what is in a model file: a safetensors container.

8 bytes, little-endian: the length of a JSON header; the header; the tensors, little-endian. In the header's metadata, `model` is
JSON again: everything but the tensors.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TYPES = {"F64": "<f8", "F32": "<f4", "U64": "<u8", "U32": "<u4", "U8": "<u1"}


def header(data: bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the tensors begin."""
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise ValueError("these bytes are no model file of maxmargin: the header is cut off")
    try:
        found = json.loads(data[8 : 8 + length])
        found["__metadata__"]["model"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError("these bytes are no model file of maxmargin: they lack its header") from error
    return found, 8 + length


def record(data: bytes) -> dict[str, Any]:
    """Everything but the tensors: task, labels, settings, summary of the training."""
    found: dict[str, Any] = json.loads(header(data)[0]["__metadata__"]["model"])
    return found


def tensor(data: bytes, name: str) -> NDArray[Any]:
    """A tensor, as a read-only view of `data`. KeyError where the file has none of that name."""
    found, base = header(data)
    info = found[name]
    begin, end = info["data_offsets"]
    values: NDArray[Any] = np.frombuffer(data[base + begin : base + end], _TYPES[info["dtype"]])
    return values.reshape(tuple(info["shape"]))


def number(written: float | str) -> float:
    """A number of the record: as text where JSON would not give it back bit for bit."""
    return float(written)
