"""Graphs as users have them, in the lists and numbers of JSON. What is wrong is told by its place in what they gave.

Whether the parts of a graph go together, the library looks.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _json_lines

_LARGEST = float(np.finfo(np.float32).max)

_MOST = 2**32 - 1


def plain_graphs(graphs: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The graphs, checked."""
    return [_plain(f"sample {i}", graph) for i, graph in enumerate(graphs)]


def _plain(place: str, graph: Mapping[str, Any]) -> dict[str, Any]:
    found = dict(graph)
    if found.get("domain") is not None:
        found["domain"] = _domain(f"{place}: domain", found["domain"])
    if found.get("labels") is not None:
        labels = _list(f"{place}: y", found["labels"], "of a label for each variable")
        found["labels"] = _wholes(lambda k: f"{place}: the label of variable {k}", labels)
    if found.get("x") is not None:
        found["x"] = _rows(f"{place}: x", found["x"])
    if found.get("factors") is not None:
        found["factors"] = _by_template(f"{place}: factors", found["factors"], _scopes)
    if found.get("factor_x") is not None:
        found["factor_x"] = _by_template(f"{place}: factor_x", found["factor_x"], _rows)
    return found


def _domain(place: str, given: Any) -> int | list[int]:
    if isinstance(given, (int, float, np.generic)) or isinstance(given, np.ndarray) and not given.ndim:
        return _wholes(lambda _: place, [given[()] if isinstance(given, np.ndarray) else given])[0]
    return _wholes(lambda k: f"{place}[{k}]", _list(place, given, "of whole numbers, nor one"))


def _by_template(place: str, given: Any, part: Callable[[str, Any], Any]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise ValueError(f"{place} is {reprlib.repr(given)}, not a dict from the name of each template to its list")
    return {str(name): part(f"{place}[{name!r}]", content) for name, content in given.items()}


def _table(given: Any, kinds: str) -> NDArray[Any] | None:
    """Lists of equal length that hold numbers of such kinds: to look at them all at once is many times faster than one by one."""
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, OverflowError):
        return None
    return array if array.ndim == 2 and array.size and array.dtype.kind in kinds else None


def _scopes(place: str, given: Any) -> list[list[int]]:
    table = _table(given, "iu")
    if table is not None and table.min() >= 0:
        return table.tolist()
    scopes = _list(place, given, "of factors")
    return [_scope(f"{place}[{k}]", scope) for k, scope in enumerate(scopes)]


def _scope(place: str, given: Any) -> list[int]:
    return _wholes(lambda k: f"{place}[{k}]", _list(place, given, "of the variables that a factor joins"))


def _wholes(place: Callable[[int], str], numbers: list[Any]) -> list[int]:
    """Numbers from 0; also those that have been made floats or truth values on the way."""
    if all(type(number) is int and 0 <= number <= _MOST for number in numbers):
        return numbers
    found = []
    for k, number in enumerate(numbers):
        if not isinstance(number, (int, float, np.number, np.bool_)) or not number >= 0 or number != number // 1:
            raise ValueError(f"{place(k)} is {reprlib.repr(number)}; it must be a whole number, from 0")
        if number > _MOST:
            raise ValueError(f"{place(k)} is {reprlib.repr(number)}; there are no more than {_MOST + 1:,}")
        found.append(int(number))
    return found


def _rows(place: str, given: Any) -> list[Any]:
    """Rows of features, each a list or a dict."""
    if hasattr(given, "tocsr"):
        given = _json_lines.sparse_rows(given)
    table = _table(given, "iuf")
    # NaN is not less than anything.
    if table is not None and np.abs(table).max() <= _LARGEST:
        return table.tolist()
    rows = _list(place, given.to_numpy() if hasattr(given, "to_numpy") else given, "of rows of features")
    return [_row(f"{place}[{k}]", row) for k, row in enumerate(rows)]


def _row(place: str, row: Any) -> Any:
    if isinstance(row, Mapping):
        return {_feature(place, name): _value(f"{place}[{name!r}]", value) for name, value in row.items()}
    row = _list(place, row, "of features (a row is a list or a dict, also where there is one feature)")
    return [_value(f"{place}[{k}]", value) for k, value in enumerate(row)]


def _feature(place: str, name: Any) -> str:
    number = str(name)
    if isinstance(name, bool) or not (number.isascii() and number.isdigit()):
        raise ValueError(
            f"{place} has the feature {reprlib.repr(name)}; features are numbered from 0. sklearn.feature_extraction.DictVectorizer "
            "numbers those that have names"
        )
    return number


def _value(place: str, value: Any) -> float:
    if not isinstance(value, (int, float, np.number, np.bool_)):
        raise ValueError(f"{place} is {reprlib.repr(value)}; features are finite numbers")
    if value != value or value in (np.inf, -np.inf):
        raise ValueError(f"{place} is {value}; features are finite numbers. Leave the graph out, or fill the gap")
    if abs(value) > _LARGEST:
        raise ValueError(f"{place} is too large for 32 bits; scale the features")
    return float(value)


def _list(place: str, given: Any, what: str) -> list[Any]:
    if isinstance(given, np.ndarray) and given.ndim:
        return given.tolist()
    if isinstance(given, (str, bytes, Mapping, np.ndarray)) or not isinstance(given, Iterable):
        raise ValueError(f"{place} is {reprlib.repr(given)}, not a list {what}")
    return given if isinstance(given, list) else list(given)
