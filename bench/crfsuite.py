"""CRFsuite as a peer: what it learns from a file."""

import datetime
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import build
from measure import ROOT, CommandFailed, say, shown
from remembered import Memory, Rememberable

SCRIPT = ROOT / "bench" / "crfsuite_peer.py"


@dataclass
class Fitted(Rememberable):
    """A run of CRFsuite: CPU seconds of appending and training, wall seconds of the same, and a dictionary of scores for each test file."""

    seconds: float
    wall: float
    iterations: int
    scores: list
    date: str
    load: float
    remembered: bool = False

    @property
    def accuracy(self):
        """Of the tokens of the last test file, in %."""
        return 100 * self.scores[-1]["token_accuracy"]


class Crfsuite:
    """CRFsuite with a training file and test files in CRFsuite's format, in a process of its own that starts when it is needed."""

    def __init__(self, bench, train, *tests):
        self.bench = bench
        self.files = [Path(train), *map(Path, tests)]
        self.command = None
        self.memory = Memory(bench.inputs.folder / "crfsuite-runs.json", Fitted, self.files)
        self.process = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()

    def train(self, algorithm, model=None, **parameters):
        """Trains with CRFsuite's defaults but for `parameters`. Where the model is to be kept nothing is taken from memory."""
        name = " ".join([algorithm, *(f"{key}={value:g}" for key, value in parameters.items())])
        found = None if model else self.memory.recall(name)
        if found is None:
            found = self._run({"algorithm": algorithm, "parameters": parameters, "model": str(model or self.bench.inputs.folder / "crfsuite.model")})
            self.memory.keep(name, found)
        say(f"   CRFsuite {self.files[0].name} {name}: {found.accuracy:.2f} %, {found.iterations} iterations, {found.seconds:.2f} s ({found.origin})")
        return found

    def _run(self, request):
        if self.process is None:
            self.command = [build.peers_python(), SCRIPT, "train", *self.files]
            pipe = subprocess.PIPE
            self.process = subprocess.Popen([str(word) for word in self.command], cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
        line = json.dumps(request)
        self.bench.note(f"echo '{line.replace(f'{ROOT}/', '')}' | {shown(self.command)}")
        date, load = datetime.date.today().isoformat(), os.getloadavg()[0]
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise CommandFailed(f"{shown(self.command)}: ended at {line}")
        return Fitted(**json.loads(answer), date=date, load=load)
