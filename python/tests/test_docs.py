"""The guide is true: on every page of docs/ the Python runs, top to bottom, and the commands print what is shown.

A page is one script: its ```python blocks share a namespace, its ```console blocks run in the same temporary folder, in the order of
the page. Commands are left out where the program is not built. In what they print a line ``...`` stands for any lines, and numbers may
differ by 2 %, as sums are not added up in the same order on every machine.
"""

import os
import re
import shutil
import subprocess
import warnings
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
TARGET = ROOT / "target"
FOUND = [os.environ.get("MAXMARGIN"), TARGET / "release" / "maxmargin", TARGET / "debug" / "maxmargin", shutil.which("maxmargin")]
PROGRAM = next((Path(path) for path in FOUND if path and os.path.exists(path)), None)



def blocks(text):
    """(language, content) of each block, in the order of the page."""
    return re.findall(r"^```(\w+)\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def number(word):
    try:
        return float(word.strip("(),;:%").replace(",", ""))
    except ValueError:
        return None


def is_alike(shown, printed):
    """Are two lines the same but for the last digits of numbers?"""
    a, b = shown.split(), printed.split()
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        p, q = number(x), number(y)
        if x != y and (p is None or q is None or abs(p - q) > 0.02 * max(abs(p), abs(q))):
            return False
    return True


def matches(shown, printed):
    """Are the lines the same, where ``...`` stands for any?"""
    if not shown:
        return not printed
    if shown[0] == "...":
        return any(matches(shown[1:], printed[k:]) for k in range(len(printed) + 1))
    return bool(printed) and is_alike(shown[0], printed[0]) and matches(shown[1:], printed[1:])


def commands(block):
    """(command, lines that it prints) of a console block."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def run(block, folder):
    environment = {**os.environ, "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ.get('PATH', '')}"}
    for command, shown in commands(block):
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
        printed = (done.stdout + done.stderr).splitlines() if done.returncode else done.stdout.splitlines()
        assert matches(shown, printed), f"$ {command}\nshown:\n" + "\n".join(shown) + "\nprinted:\n" + "\n".join(printed)


def test_there_are_pages():
    assert len(PAGES) >= 12


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = blocks(page.read_text(encoding="utf-8"))
    for friend in ("sklearn", "pandas", "scipy", "distributed"):
        if any(re.search(rf"^\s*(?:from|import) {friend}\b", block, flags=re.MULTILINE) for kind, block in found if kind == "python"):
            pytest.importorskip(friend)
    namespace = {"__name__": "__main__"}
    with warnings.catch_warnings():
        # What warns on a page is meant to, and is caught there.
        warnings.simplefilter("error")
        for k, (kind, block) in enumerate(found):
            if kind == "python":
                exec(compile(block, f"{page.name}, block {k}", "exec"), namespace)
            elif kind == "console" and PROGRAM is not None and os.name == "posix":
                run(block, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert not target.startswith("http"), target
        assert (page.parent / target).exists(), target
