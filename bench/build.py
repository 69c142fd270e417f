"""Building what is measured, and the environment of the peers."""

import functools
import shutil
import subprocess
import sys

from measure import ROOT, TARGET, relative, run, say

PEERS = ["liblinear-official", "scikit-learn", "python-crfsuite", "sklearn-crfsuite", "libsvm-official", "matplotlib", "parasail", "distributed", "maturin>=1.9.4,<2"]
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


@functools.cache
def package_python():
    """The same with the Python package, as users get it."""
    python = peers_python()
    wheels = TARGET / "bench-wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    say("   maturin build --release")
    run([python.parent / "maturin", "build", "--quiet", "--release", "--out", wheels], seconds=1800)
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps", *wheels.glob("*.whl")])
    return python
