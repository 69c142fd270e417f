"""Building what is measured, and the environment of the peers."""

import functools
import subprocess
import sys

from measure import ROOT, TARGET, relative, run, say

PEERS = ["liblinear-official", "scikit-learn", "python-crfsuite", "libsvm-official", "matplotlib", "parasail"]
PEERS_SCRIPT = ROOT / "bench" / "peers.py"


def release():
    """The program as users get it."""
    say("== cargo build --release")
    if subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=ROOT).returncode != 0:
        sys.exit("bench/run: the program does not build")


@functools.cache
def peers_python():
    """A Python that has the peers, in the build folder."""
    folder = TARGET / "bench-venv"
    python = folder / "bin" / "python"
    if not python.exists():
        say(f"   making {relative(folder)} with {', '.join(PEERS)}")
        run([sys.executable, "-m", "venv", folder])
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PEERS])
    return python
