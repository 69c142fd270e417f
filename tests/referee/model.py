"""Reads a model file: a safetensors container, with numpy alone."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

TYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "U64": "<u8",
    "I64": "<i8",
    "U32": "<u4",
    "I32": "<i4",
    "U16": "<u2",
    "I16": "<i2",
    "U8": "u1",
    "I8": "i1",
}


@dataclass
class Model:
    """A model file: `record`, the JSON object of the key `model`, and the arrays by name."""

    record: dict
    tensors: dict[str, np.ndarray]

    @property
    def kernel(self) -> dict | None:
        """`{"shape": ..., "constant": ...}`, or None without a kernel."""
        return self.record.get("kernel")

    def support(self) -> list[tuple[dict[int, float], np.ndarray]]:
        """The support vectors, as maps from indices (from 0) to values, and their coefficients."""
        offsets = self.tensors["support_offsets"].astype(np.int64)
        indices, values = self.tensors["support_indices"], self.tensors["support_values"]
        vectors = []
        for j, coefficients in enumerate(self.tensors["coefficients"]):
            own = slice(offsets[j], offsets[j + 1])
            phi = {int(i): float(v) for i, v in zip(indices[own], values[own])}
            vectors.append((phi, coefficients))
        return vectors


def read_model(path: Path) -> Model:
    """Returns the model of a file. Raises ValueError where it is no safetensors file."""
    data = path.read_bytes()
    if len(data) < 8:
        raise ValueError(f"{path}: too short for a model")
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    body = data[8 + length :]
    record = json.loads(header.pop("__metadata__")["model"])
    tensors = {}
    for name, about in header.items():
        begin, end = about["data_offsets"]
        array = np.frombuffer(body[begin:end], dtype=TYPES[about["dtype"]])
        tensors[name] = array.reshape(about["shape"])
    return Model(record, tensors)
