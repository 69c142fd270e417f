"""From parameters of estimators to options of the program: one way for all of them.

A parameter ``x_y`` is the option ``--x-y``. None stands for the program's default and is not passed.
"""

from __future__ import annotations

import functools
import json
import numbers
import os
import reprlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from maxmargin import _native

# Where scikit-learn has a custom of its own.
RENAMED = {"C": "c-per-example", "n_jobs": "threads", "random_state": "seed", "C_path": "c-path-per-example"}

# Parameters of estimators that are no options of the program.
PYTHON_ONLY = {
    "verbose": "progress is shown by Python",
    "gamma": "part of kernel",
    "degree": "part of kernel",
    "coef0": "part of kernel",
    "threshold": "an option of predict",
    "warm_start": "a flag here: the model so far is written to a file",
}

# Options of the program that are no parameters.
PROGRAM_ONLY = {
    "c": "C is the same per example",
    "c-path": "C_path is the same per example; C_path='auto' passes it",
    "positive": "fit(X, y == label) does it",
    "model": "model_, save() and to_bytes()",
    "log": "callback and history_",
    "json": "report_",
    "quiet": "verbose",
    "heldout": "an argument of fit",
}


@functools.cache
def declared(command: str = "train") -> dict[str, dict[str, Any]]:
    """The options of a command by their names, as the program declares them."""
    return {option["name"]: option for option in json.loads(_native.options(command))}


def option_of(parameter: str) -> str:
    """The name of the option that a parameter stands for."""
    return RENAMED.get(parameter, parameter.replace("_", "-"))


def words(parameters: Mapping[str, Any], command: str = "train") -> list[str]:
    """The words of the command line that say the same as the parameters."""
    line: list[str] = []
    for parameter, value in parameters.items():
        value = _customs(parameter, value)
        if value is None:
            continue
        name = "c-path" if parameter == "C_path" and value == "auto" else option_of(parameter)
        option = declared(command).get(name)
        if option is None:
            raise ValueError(f"{parameter}: the program has no option --{name}")
        flag = f"--{name}"
        if not option["takes_value"]:
            if not isinstance(value, (bool, np.bool_)):
                raise ValueError(f"{parameter}={value!r}: must be True or False")
            line += [flag] if value else []
        elif option["is_repeated"]:
            line += [word for entry in _entries(value) for word in (flag, entry)]
        else:
            word = _word(parameter, value)
            # What begins with a dash would be taken for another option.
            line += [f"{flag}={word}"] if word.startswith("-") else [flag, word]
    return line


def _customs(parameter: str, value: Any) -> Any:
    """What scikit-learn's users write, as the program has it; None: not passed."""
    if parameter == "C" and _is_number(value) and value == 1:
        # The program's default; solvers that have no C refuse it.
        return None
    if parameter == "n_jobs":
        return threads(value)
    if parameter == "random_state" and _is_number(value) and not (isinstance(value, numbers.Integral) and 0 <= value < 2**64):
        raise ValueError(f"random_state={reprlib.repr(value)}: must be a whole number from 0 to 2**64 - 1, a numpy generator or None")
    if parameter == "random_state" and value is not None and not _is_number(value):
        draw = getattr(value, "randint", None) or getattr(value, "integers", None)
        if draw is None:
            raise ValueError(f"random_state={value!r}: must be a whole number, a numpy generator or None")
        return int(draw(2**31 - 1))
    return value


def threads(n_jobs: Any) -> Any:
    """n_jobs as scikit-learn counts it: -1 is one a core, -2 one less; None: the program's default, one a core."""
    if n_jobs is None or n_jobs == -1:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise ValueError(f"n_jobs={n_jobs!r}: must be a number of threads, or -1 for one a core")
    return max(1, (os.cpu_count() or 1) + 1 + n_jobs) if n_jobs < 0 else n_jobs


def count(parameter: str, value: Any) -> str:
    """The word of a number of things, checked."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < 1:
        raise ValueError(f"{parameter}={reprlib.repr(value)}: must be a whole number, at least 1")
    return str(int(value))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number) and not isinstance(value, bool)


def _entries(value: Any) -> Iterable[str]:
    """Of an option that may be given several times."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, Mapping):
        return [f"{key}={_word(str(key), weight)}" for key, weight in value.items()]
    return [entry if isinstance(entry, str) else ",".join(map(str, entry)) for entry in value]


def _word(parameter: str, value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "on" if value else "off"
    if isinstance(value, numbers.Integral) and abs(value) < 2**64:
        return str(int(value))
    if isinstance(value, numbers.Real):
        try:
            return repr(float(value))
        except OverflowError:
            raise ValueError(f"{parameter}: the number is too large") from None
    if isinstance(value, (list, tuple, np.ndarray)):
        return ",".join(_word(parameter, part) for part in value)
    if isinstance(value, str) or hasattr(value, "__fspath__"):
        return str(value)
    raise ValueError(f"{parameter}={value!r}: a {type(value).__name__} is no value for it")


def kernel_word(kernel: str | None, gamma: Any, degree: Any, coef0: Any) -> str | None:
    """``--kernel``: a name with its numbers, ``rbf:gamma=0.5``."""
    given = {"degree": degree, "gamma": gamma, "coef0": coef0}
    parts = [f"{name}={_word(name, value)}" for name, value in given.items() if value is not None]
    if kernel is None or not parts:
        return kernel
    if ":" in kernel:
        raise ValueError(f"kernel={kernel!r} has its numbers already; leave out {parts[0].split('=')[0]}")
    return f"{kernel}:{','.join(parts)}"
