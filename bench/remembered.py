"""A memory of the peers' runs that take long."""

import hashlib
import json
from dataclasses import asdict

# Runs that take more CPU seconds than this are remembered in the build folder.
REMEMBERED_FROM = 30


class Rememberable:
    """A run of a peer, a dataclass with the CPU `seconds` that it took, the `date`, the `load` then, and `remembered`."""

    @property
    def origin(self):
        """Where the figures come from, for the tables."""
        return f"memory: {self.date}, load {self.load:.1f}" if self.remembered else f"this run, load {self.load:.1f}"


class Memory:
    """Long runs, each a `kind`, on the same files (by their bytes) in a JSON file, which may be deleted at any time."""

    def __init__(self, path, kind, files):
        self.path = path
        self.kind = kind
        self.of_files = " ".join(f"{file.name}:{hashlib.sha256(file.read_bytes()).hexdigest()[:16]}" for file in files)

    def recall(self, name):
        found = self._runs().get(f"{name} {self.of_files}")
        return found and self.kind(**found | {"remembered": True})

    def keep(self, name, run):
        if run.seconds >= REMEMBERED_FROM:
            runs = self._runs() | {f"{name} {self.of_files}": asdict(run)}
            self.path.write_text(json.dumps(runs, indent=1) + "\n")

    def _runs(self):
        return json.loads(self.path.read_text()) if self.path.exists() else {}
