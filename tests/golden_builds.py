"""Compares two builds of the program on this machine: runs the commands of golden_models.txt with
both, trainings on one and on two threads, and compares the checksums of the files that they write.

    python3 tests/golden_builds.py BEFORE AFTER

BEFORE and AFTER are two programs `maxmargin`. A change that should keep all bits is checked with
this; the recorded checksums in golden_models.txt are for the test suite. The exit code is 1 where a
checksum differs or a command fails.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from golden_cpus import GOLDEN, checksums, run

THREADS = ["1", "2"]


def commands() -> list[str]:
    """The commands, each with the name of the file that it writes."""
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    return [line.split(maxsplit=2)[2] for line in lines if line and not line.startswith("#")]


def written(command: str) -> str:
    """Returns the name of the file that a command writes."""
    words = command.split()
    return words[next(at for at, word in enumerate(words) if word in ("-o", "-m")) + 1]


def files(program: Path, threads: str) -> dict[str, list[str] | str]:
    """Returns the two checksums of each file that is written, or what went wrong, by command."""
    found: dict[str, list[str] | str] = {}
    with tempfile.TemporaryDirectory() as name:
        for command in commands():
            is_training = command.startswith("train ")
            wrong = run(
                program,
                "native",
                f"{command} --threads {threads}" if is_training else command,
                Path(name),
            )
            found[command] = wrong or checksums(Path(name) / written(command))
    return found


def main() -> int:
    """Returns the exit code."""
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    before, after = (Path(program).resolve() for program in sys.argv[1:])
    missing = [str(program) for program in (before, after) if not program.is_file()]
    if missing:
        print(f"there is no program {' and no '.join(missing)}", file=sys.stderr)
        return 2
    first = files(before, THREADS[0])
    runs = {f"{after}, {threads} threads": files(after, threads) for threads in THREADS}
    different = 0
    for name, run_files in runs.items():
        for command, found in run_files.items():
            if found != first[command] or isinstance(found, str):
                different += 1
                what = found if isinstance(found, str) else " ".join(found)
                print(f"{name}: maxmargin {command}\n    {what}, before {first[command]}")
    models = sum(command.startswith("train ") for command in first)
    verdict = f"{different} different" if different else "all the same"
    print(f"{len(first)} files, {models} trainings, on 1 and on 2 threads: {verdict}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
