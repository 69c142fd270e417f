"""What docstrings and examples show is so."""

import doctest
import importlib
import inspect
import pkgutil
import runpy
from pathlib import Path

import pytest

import maxmargin

MODULES = ["maxmargin"] + [f"maxmargin.{info.name}" for info in pkgutil.iter_modules(maxmargin.__path__) if info.name != "_native"]
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert failed == 0


def test_there_are_doctests_of_every_public_class():
    for name in maxmargin.__all__:
        thing = getattr(maxmargin, name)
        if inspect.isclass(thing) and thing.__module__.startswith("maxmargin") and not issubclass(thing, Warning | Exception):
            text = inspect.getdoc(thing) or ""
            assert ">>>" in text, name


def test_everything_public_has_a_docstring():
    for module in (maxmargin, maxmargin.metrics, maxmargin.datasets):
        for name in module.__all__:
            thing = getattr(module, name)
            assert inspect.getdoc(thing), name
            if inspect.isclass(thing) and thing.__module__.startswith("maxmargin"):
                for method, value in vars(thing).items():
                    if not method.startswith("_") and callable(value):
                        assert inspect.getdoc(value), f"{name}.{method}"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert "nothing wrong" in capsys.readouterr().out
