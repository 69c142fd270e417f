"""What a process has to know to work on partitions: task, options, the files that options name, and the blank model."""

from __future__ import annotations

import os
import tempfile
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

from maxmargin._files import Folder, is_path


class Shipped(Folder):
    """Files for the program that go along with the job: also those that the user has as files."""

    def given(self, name: str, value: Any, text: Any) -> str | None:
        """The path of what a parameter holds, always in this folder."""
        path = super().given(name, value, text)
        if path is None or not is_path(value):
            return path
        with open(path, "rb") as file:
            return self.file(name, file.read())


@dataclass(frozen=True)
class Job:
    """Is sent to every process; `blank` is compressed, as its weights are all zero."""

    task: str
    # An estimator with the parameters of the training: it turns samples into text or rows.
    estimator: Any
    options: list[str]
    folder: str
    files: dict[str, bytes]
    blank: bytes = b""
    # Of rows: all classes of all partitions, and their words in the model.
    classes: Any = None
    words: list[str] = field(default_factory=list)

    def with_blank(self, blank: bytes) -> Job:
        """The same, and the model that has the dictionaries."""
        return replace(self, blank=zlib.compress(blank, 1))

    def blank_model(self) -> bytes:
        """That model; none before it is made."""
        return zlib.decompress(self.blank) if self.blank else b""


def files_of(folder: Folder) -> dict[str, bytes]:
    """All files of a folder, by their names."""
    return {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()}


class Unpacked:
    """A job in the process that works on it: its files are files again, until ``close``."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.blank = job.blank_model()
        self._folder = tempfile.TemporaryDirectory(prefix="maxmargin-") if job.files else None
        self.options = job.options
        if self._folder is not None:
            folder = Folder(self._folder.name)
            for name, data in job.files.items():
                folder.file(name, data)
            self.options = [self.here(word) for word in job.options]

    def here(self, word: str) -> str:
        """An option that names a file, with its place in this process."""
        there = self.job.folder + os.sep
        if self._folder is None or not word.startswith(there):
            return word
        return os.path.join(self._folder.name, word[len(there) :])

    def said(self, error: ValueError) -> ValueError:
        """An error without the paths of this process, which mean nothing to the user."""
        text = str(error)
        if self._folder is None or self._folder.name not in text:
            return error
        return ValueError(text.replace(self._folder.name + os.sep, ""))

    def close(self) -> None:
        """Removes the files."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None
