"""What partitions are: files, text, or samples in memory."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class File:
    """A file or URI; whoever needs it reads it."""

    path: str

    def read(self) -> bytes:
        """Its bytes, as they are: the library decompresses them."""
        if "://" not in self.path:
            with open(self.path, "rb") as file:
                return file.read()
        try:
            import fsspec
        except ImportError:
            raise OSError(f"{self.path}: needs fsspec (pip install fsspec) where it is read") from None
        try:
            with fsspec.open(self.path, "rb", compression=None) as file:
                found: bytes = file.read()
                return found
        except ImportError as error:
            raise OSError(f"{self.path}: {error} (where it is read)") from None


def content(source: Any) -> Any:
    """What is in a partition: bytes of text, or samples."""
    if isinstance(source, (str, os.PathLike)):
        source = File(os.fspath(source))
    if isinstance(source, File):
        return source.read()
    return bytes(source) if isinstance(source, (bytearray, memoryview)) else source


def name(source: Any, number: int) -> str:
    """What messages call it."""
    return source.path if isinstance(source, File) else f"partition {number}"


def listed(partitions: Any) -> list[Any]:
    """All partitions, in their order: a pattern of file names stands for those that it matches, sorted.

    Paths become absolute: other processes may have another working directory, and other files of that name in it.

    >>> listed(["/data/a.dat", b"+1 1:1"])
    [File(path='/data/a.dat'), b'+1 1:1']
    """
    if isinstance(partitions, (str, os.PathLike)):
        partitions = _matching(os.fspath(partitions))
    elif isinstance(partitions, (bytes, tuple)):
        raise ValueError("partitions must be a list; one partition alone is a list of one")
    found = [_file(os.fspath(p)) if isinstance(p, (str, os.PathLike)) else p for p in partitions]
    if not found:
        raise ValueError("there are no partitions; at least one is required")
    return found


def _file(path: str) -> File:
    return File(path if "://" in path else os.path.abspath(path))


def _matching(pattern: str) -> list[str]:
    if "://" in pattern:
        try:
            import fsspec

            files = [pattern]
            if any(mark in pattern for mark in "*?["):
                system, path = fsspec.core.url_to_fs(pattern)
                files = sorted(system.unstrip_protocol(found) for found in system.glob(path))
        except ImportError as error:
            raise ValueError(f"{pattern}: needs fsspec and what this kind of URI asks for: {error}") from None
    else:
        files = sorted(glob.glob(pattern)) or ([pattern] if os.path.exists(pattern) else [])
    if not files:
        raise ValueError(f"{pattern}: there is no such file")
    return files
