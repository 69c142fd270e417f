"""Tables for the terminal, and records of them with the machine that they were measured on."""

import datetime
import itertools
import platform
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass

from measure import CORES, PROGRAM, ROOT

RECORDS = ROOT / "bench" / "record"


@dataclass
class Circumstances:
    """Where and on what the figures are measured, as it is before the first of them."""

    cpu: str
    cores: int
    memory_gb: float
    system: str
    rustc: str
    load: float
    commit: str
    changed: bool
    program_built: int

    def notes(self, quick):
        """What a reader of the figures must know."""
        notes = []
        if quick:
            notes.append("--quick: a sixteenth of the data, so the verdicts mean nothing")
        if self.load > 0.5:
            notes.append(f"the machine was busy (load {self.load:.1f} on {self.cores} cores): times are worse than on a quiet one")
        if PROGRAM.stat().st_mtime_ns != self.program_built:
            notes.append("the program was built anew while it was measured: measure again")
        return notes


def circumstances(load):
    """`load`: before the build, which is a load of its own."""
    return Circumstances(
        cpu=first(r"model name\s*:\s*(.*)", "/proc/cpuinfo"),
        cores=CORES,
        memory_gb=int(first(r"MemTotal:\s*(\d+)", "/proc/meminfo")) * 1024 / 1e9,
        system=platform.platform(),
        rustc=output("rustc", "--version"),
        load=load,
        commit=output("git", "rev-parse", "--short", "HEAD"),
        changed=output("git", "status", "--porcelain", "--untracked-files=no") != "",
        program_built=PROGRAM.stat().st_mtime_ns,
    )


def first(pattern, path):
    with open(path) as file:
        found = re.search(pattern, file.read())
    return found.group(1).strip() if found else "0"


def output(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def text(outcomes, notes):
    """The goals of all comparisons in one table, then the figures of each."""
    parts = [f"Note: {note}.\n" for note in notes]
    rows = [[o.name, row.what, row.goal, row.measured, row.verdict] for o in outcomes for row in o.rows]
    parts.append(aligned(["comparison", "what", "goal", "measured", "verdict"], rows))
    for outcome in outcomes:
        for title, header, cells in outcome.tables:
            parts.append(f"\n{outcome.name}{': ' + title if title else ''}\n\n{aligned(header, cells)}")
    return "\n".join(parts)


def aligned(header, rows):
    """A Markdown table whose columns line up as plain text too."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in [header, *rows]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in cells]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)


def write_record(on, outcomes, text, minutes):
    """bench/record/DATE-COMMIT.md, or -2.md where that is there already, which says all that is needed to measure again."""
    date = datetime.date.today().isoformat()
    commands = "\n".join(f"# {o.name}\n" + "\n".join(o.commands) + "\n" for o in outcomes)
    RECORDS.mkdir(exist_ok=True)
    names = (f"{date}-{on.commit}{'' if number == 1 else f'-{number}'}.md" for number in itertools.count(1))
    path = next(path for path in map(RECORDS.joinpath, names) if not path.exists())
    path.write_text(
        f"""# Measured on {date} at commit {on.commit}{' with uncommitted changes' if on.changed else ''}

- CPU: {on.cpu}, {on.cores} cores; memory {on.memory_gb:.1f} GB; load {on.load:.2f} before the start
- {on.system}; {on.rustc}
- `{shlex.join(["bench/run", *sys.argv[1:]])}`, {minutes:.1f} minutes, after `cargo build --release`

{text}

## Commands

In the repository's root; files in target/bench-data are the published ones decompressed (NAME) or their first n/K lines (NAME.K),
their first N (NAME.firstN), or lines M to N (NAME.M-N).

```
{commands.strip()}
```
"""
    )
    return path.relative_to(ROOT)
