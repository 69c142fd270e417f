"""The golden models on other CPUs: runs the commands of golden_models.txt on CPUs that
qemu-x86_64 emulates, and compares the checksums of what they write with the recorded ones.

    python3 tests/golden_cpus.py PROGRAM [CPU ...]

`make golden-cpus` builds the program and calls this. `native` is this machine without emulation.
The exit code is 1 where a checksum differs or a command fails, 2 where qemu-x86_64 is missing.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

GOLDEN = Path(__file__).parent.parent / "crates/maxmargin-cli/tests/golden_models.txt"
# Without AVX and FMA; with AVX alone; with AVX2 and FMA; all that qemu offers.
CPUS = ["native", "Nehalem", "SandyBridge", "Haswell", "max"]
MISSING = """qemu-x86_64 is missing: it emulates the CPUs on which the models are compared.
Install it: apt-get install qemu-user (Debian, Ubuntu), dnf install qemu-user (Fedora)."""
# Seconds for one command: they take one at most.
PATIENCE = 300


def checksums(path: Path) -> list[str]:
    """CRC-32 of the tensors, `-` where it is no model, and of the whole file."""
    content = path.read_bytes()
    tensors = "-"
    if path.suffix == ".mm":
        header = int.from_bytes(content[:8], "little")
        tensors = f"{zlib.crc32(content[8 + header :]):08x}"
    return [tensors, f"{zlib.crc32(content):08x}"]


def run(program: Path, cpu: str, command: str, folder: Path) -> str:
    """Runs one command on that CPU. Returns what went wrong; nothing where nothing did."""
    emulator = [] if cpu == "native" else ["qemu-x86_64", "-cpu", cpu]
    words = [*emulator, str(program), *command.split()]
    try:
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return f"took over {PATIENCE} seconds"
    # A negative code is a signal: that of an instruction that the CPU lacks, for example.
    return "" if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr.strip()}"


def compare(program: Path, cpu: str) -> bool:
    """Runs all commands on that CPU. Are all files as they were recorded?"""
    begun, files, models, different = time.monotonic(), 0, 0, 0
    with tempfile.TemporaryDirectory() as name:
        for line in GOLDEN.read_text(encoding="utf-8").splitlines():
            if not line or line.startswith("#"):
                continue
            tensors, whole, command = line.split(maxsplit=2)
            words = command.split()
            file = words[next(at for at, word in enumerate(words) if word in ("-o", "-m")) + 1]
            wrong = run(program, cpu, command, Path(name))
            if not wrong:
                found = checksums(Path(name) / file)
                if found != [tensors, whole]:
                    wrong = f"{' '.join(found)}, not {tensors} {whole}"
            if wrong:
                different += 1
                print(f"{cpu}: maxmargin {command}\n    {wrong}", flush=True)
            files += 1
            models += file.endswith(".mm")
    seconds = time.monotonic() - begun
    verdict = f"{different} different" if different else "all the same"
    print(f"{cpu:12} {files} files, {models} of them models: {verdict} ({seconds:.0f} s)", flush=True)
    return different == 0


def main() -> int:
    """Returns the exit code."""
    if len(sys.argv) < 2:
        print(__doc__)
        return 2
    program, cpus = Path(sys.argv[1]).resolve(), sys.argv[2:] or CPUS
    if cpus != ["native"] and shutil.which("qemu-x86_64") is None:
        print(MISSING, file=sys.stderr)
        return 2
    return 0 if all([compare(program, cpu) for cpu in cpus]) else 1


if __name__ == "__main__":
    sys.exit(main())
