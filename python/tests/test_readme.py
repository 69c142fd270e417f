"""The Python of the README runs as it stands."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def test_there_are_examples():
    assert len(BLOCKS) >= 2


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_it_runs(block, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if "distributed" in block:
        pytest.importorskip("distributed")
    exec(compile(block, "README.md", "exec"), {})
