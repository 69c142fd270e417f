"""Labels, which are whatever users have, and the words that stand for them in models."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._base import DataConversionWarning, kindred

# What a word may look like, so that the program reads it as one. Half of a pair of surrogates is no text.
CLASS = re.compile(r"[^\s#\ud800-\udfff]+")
NODE = re.compile(r"[^\s#,\ud800-\udfff]+")
SET_LABEL = re.compile(r"[^\s#,:\ud800-\udfff]+")
TAG = re.compile(r"[^\s\ud800-\udfff]+")


def _kind(label: Any) -> str:
    if isinstance(label, (str, np.str_)):
        return "str"
    if isinstance(label, (bool, np.bool_)):
        return "bool"
    if isinstance(label, (int, float, np.integer, np.floating)):
        return "number"
    return type(label).__name__


def is_missing(label: Any) -> bool:
    """None, NaN, or the marks of pandas."""
    return label is None or type(label).__name__ in ("NAType", "NaTType") or (isinstance(label, (float, np.floating)) and label != label)


def _sample(i: int) -> str:
    return f"sample {i}"


def check_kinds(labels: Iterable[Any], place: Callable[[int], str] = _sample) -> None:
    """ValueError where labels of several types are mixed, such as numbers and words. `place`: what has the label of a number."""
    first: tuple[int, Any] | None = None
    for i, label in enumerate(labels):
        if is_missing(label):
            raise ValueError(f"y: {place(i)} has no label ({label!r}); Input y contains NaN or None. Leave such samples out")
        if isinstance(label, (list, dict, set, np.ndarray)):
            raise ValueError(
                f"y: the label of {place(i)} is a {type(label).__name__}; y should be a 1d array, one label a sample "
                "(sets of labels: MultilabelClassifier; lists of tags: SequenceTagger)"
            )
        if first is None:
            first = i, label
        elif _kind(label) != _kind(first[1]):
            raise ValueError(
                f"y: labels of different types are mixed: {place(first[0])} has {first[1]!r} ({_kind(first[1])}), "
                f"{place(i)} has {label!r} ({_kind(label)}). Make them all the same, for instance with str()"
            )


def one_dimensional(labels: Sequence[Any] | NDArray[Any]) -> NDArray[Any]:
    """An array with one label an entry, also where labels are tuples."""
    array = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):
        array[i] = label
    return array


def as_labels(y: Any, who: str = "This estimator") -> NDArray[Any]:
    """y as a 1-D array, checked."""
    if y is None:
        raise ValueError(f"{who} requires y to be passed, but the target y is None")
    if hasattr(y, "tocsr"):
        raise ValueError("y is a sparse matrix, not a 1d array of labels; label sets are for MultilabelClassifier")
    if hasattr(y, "to_numpy"):
        y = y.to_numpy()
    if isinstance(y, np.ndarray) or hasattr(y, "__array__"):
        array = np.asarray(y)
    else:
        y = list(y)
        if any(isinstance(label, (tuple, frozenset)) for label in y):
            array = one_dimensional(y)
        else:
            check_kinds(y)
            array = np.asarray(y)
    if array.ndim == 2 and array.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel().",
            kindred(DataConversionWarning),
            stacklevel=3,
        )
        array = array.ravel()
    if array.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {array.shape} instead.")
    if array.dtype.kind == "O":
        check_kinds(array)
        if len(array) and _kind(array[0]) in ("str", "number", "bool"):
            array = np.asarray(list(array))
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y has type {array.dtype}")
    if array.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(array))
        if len(bad):
            raise ValueError(f"Input y contains NaN or infinity: sample {bad[0]}. Leave such samples out")
        bad = np.flatnonzero(array != np.floor(array))
        if len(bad):
            raise ValueError(
                f"Unknown label type: continuous. The label of sample {bad[0]} is {array[bad[0]]!r}: classes are whole numbers "
                "or words; for something else make words of them with str()"
            )
    return array


def unique(labels: NDArray[Any]) -> NDArray[Any]:
    """The distinct labels, sorted where they can be, else in the order in which they come."""
    if labels.dtype.kind != "O":
        return np.unique(labels)
    seen = dict.fromkeys(labels)
    try:
        return one_dimensional(sorted(seen))
    except TypeError:
        return one_dimensional(list(seen))


def text_of(label: Hashable) -> str:
    """What a label looks like as a word."""
    if isinstance(label, (float, np.floating)) and float(label).is_integer():
        return str(int(label))
    return str(label)


def words_of(classes: Iterable[Any], valid: re.Pattern[str]) -> list[str]:
    """A word for each class: its text where all texts are distinct words, else class0, class1 and so on."""
    classes = list(classes)
    words = [text_of(label) for label in classes]
    if all(valid.fullmatch(word) for word in words) and len(set(words)) == len(words):
        try:
            # The program takes 1 and 1.0 for the same label where all are numbers.
            if len({float(word) for word in words}) == len(words):
                return words
        except ValueError:
            return words
    return [f"class{k}" for k in range(len(classes))]


def unused(words: Sequence[str]) -> str:
    """A word for labels that training has not."""
    name = "unknown"
    while name in words:
        name += "-"
    return name


def from_words(words: Sequence[str]) -> NDArray[Any]:
    """Labels of a model whose training was elsewhere: numbers where all words are whole ones."""
    if words and all(re.fullmatch(r"[+-]?\d{1,18}", word) for word in words):
        return np.array([int(word) for word in words])
    return np.array(list(words), dtype=np.str_ if words else object)


def places(labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int64]:
    """The place of each label in `classes`, -1 where it has none."""
    kinds = {labels.dtype.kind, classes.dtype.kind}
    if (kinds <= set("biuf") or kinds == {"U"}) and len(classes) and (classes[:-1] < classes[1:]).all():
        found = np.searchsorted(classes, labels).clip(max=len(classes) - 1)
        return np.where(classes[found] == labels, found, -1).astype(np.int64)
    place = {label: k for k, label in enumerate(classes.tolist() if classes.dtype.kind != "O" else classes)}
    entries = labels.tolist() if labels.dtype.kind != "O" else labels
    return np.fromiter((place.get(label, -1) for label in entries), np.int64, len(labels))
