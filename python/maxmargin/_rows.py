"""Samples with numbers: from what users have to rows of the library, with errors that name the sample."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _native
from maxmargin._labels import is_missing


class BadValue(ValueError, TypeError):
    """A value of X that is no number."""


@dataclass
class Table:
    """Rows, dense or CSR; all values are finite."""

    shape: tuple[int, int]
    dense: NDArray[Any] | None = None
    csr: tuple[NDArray[Any], NDArray[Any], NDArray[Any]] | None = None

    def rows(self) -> _native.Rows:
        """As the library has them."""
        if self.dense is not None:
            return _native.Rows.dense(self.dense)
        assert self.csr is not None
        return _native.Rows.csr(*self.csr, self.shape[1])

    def row(self, i: int) -> tuple[NDArray[Any], NDArray[Any]]:
        """Columns and values of a row that are not zero."""
        if self.dense is not None:
            columns = np.flatnonzero(self.dense[i])
            return columns, self.dense[i][columns]
        assert self.csr is not None
        ends, columns, values = self.csr
        part = slice(int(ends[i]), int(ends[i + 1]))
        kept = values[part] != 0
        return columns[part][kept], values[part][kept]

    def take(self, chosen: NDArray[np.bool_]) -> Table:
        """The rows that are chosen."""
        shape = (int(chosen.sum()), self.shape[1])
        if self.dense is not None:
            return Table(shape, dense=self.dense[chosen])
        assert self.csr is not None
        ends, columns, values = self.csr
        lengths = np.diff(ends)
        kept = np.repeat(chosen, lengths)
        new_ends = np.concatenate([[0], np.cumsum(lengths[chosen])]).astype(ends.dtype)
        return Table(shape, csr=(new_ends, columns[kept], values[kept]))


def kept(samples: Any) -> Any:
    """What can be looked at more than once: samples that come one by one are a list."""
    return list(samples) if isinstance(samples, Iterator) else samples


def names_of(X: Any) -> NDArray[Any] | None:
    """The names of the columns of a frame, if all of them are strings."""
    columns = getattr(X, "columns", None)
    if columns is None or not hasattr(X, "to_numpy"):
        return None
    names = list(columns)
    are_words = [isinstance(name, str) for name in names]
    if any(are_words) and not all(are_words):
        types = sorted({type(name).__name__ for name in names})
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{types} as feature name / column name types. If you want feature names to be stored and validated, you must "
            "convert them all to strings, by using X.columns = X.columns.astype(str) for example."
        )
    return np.array(names, dtype=object) if names and all(are_words) else None


def as_table(X: Any, who: str) -> Table:
    """X, checked: two dimensions, numbers, all finite."""
    if hasattr(X, "tocsr"):
        return _sparse(X)
    X = kept(X)
    if isinstance(X, (str, bytes)):
        raise ValueError("Expected 2D array, got text instead; a file of samples is read by maxmargin.datasets.load_svmlight")
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        i, j = np.argwhere(np.ma.getmaskarray(X))[0][:2] if X.ndim > 1 else (np.argwhere(np.ma.getmaskarray(X))[0][0], 0)
        raise ValueError(f"X has masked values, the first in sample {i}, feature {j}; X.filled(value) puts numbers there")
    array = X.to_numpy() if hasattr(X, "to_numpy") else X if isinstance(X, np.ndarray) else _array(X)
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{array!r}\n")
    if array.ndim != 2:
        _refuse_shape(array, who)
    if array.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={array.shape}) while a minimum of 1 is required by {who}.")
    if array.shape[1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is required by {who}.")
    if array.dtype.kind in "OUSVmM":
        array = _numbers(array)
    if array.dtype not in (np.float32, np.float64):
        array = array.astype(np.float32 if array.dtype == np.float16 else np.float64)
    array = np.ascontiguousarray(array)
    _refuse_infinities(array, lambda at: (int(at // array.shape[1]), int(at % array.shape[1])))
    return Table(array.shape, dense=array)


def _array(X: Any) -> NDArray[Any]:
    try:
        return np.asarray(X)
    except ValueError as error:
        lengths = [len(row) if isinstance(row, Sequence) else -1 for row in X]
        for i, length in enumerate(lengths):
            if length != lengths[0]:
                raise ValueError(
                    f"X is ragged: sample {i} has {length} features, sample 0 has {lengths[0]}. Every sample needs the same "
                    "number; features that are mostly absent go into a scipy.sparse matrix"
                ) from error
        raise


def _refuse_shape(array: NDArray[Any], who: str) -> None:
    if array.ndim == 0:
        raise ValueError(f"Expected 2D array, got scalar array instead:\narray={array}.\nReshape your data to (n_samples, n_features).")
    first = array[:1].tolist()[0] if array.ndim == 1 and len(array) else None
    if isinstance(first, (Mapping, str)):
        kind, way = ("dicts", "DictVectorizer") if isinstance(first, Mapping) else ("words", "text.TfidfVectorizer")
        raise ValueError(
            f"Expected 2D array, got {kind} instead: sample 0 is {reprlib.repr(first)}. Turn them into rows of numbers first, for "
            f"instance with sklearn.feature_extraction.{way}"
        )
    if array.ndim == 1:
        raise ValueError(
            f"Expected 2D array, got 1D array instead:\narray={array}.\nReshape your data either using array.reshape(-1, 1) if "
            "your data has a single feature or array.reshape(1, -1) if it contains a single sample."
        )
    raise ValueError(f"Found array with dim {array.ndim}. {who} expected <= 2.")


def _numbers(array: NDArray[Any]) -> NDArray[np.float64]:
    """Of objects."""
    if array.dtype.kind == "O":
        try:
            if not any(isinstance(x, str) for x in array.ravel()):
                return array.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            pass
    for i, row in enumerate(array):
        for j, value in enumerate(row):
            value = value.item() if isinstance(value, np.generic) else value
            try:
                if isinstance(value, (str, bytes)):
                    raise TypeError(f"float() argument must be a real number, not a string or {type(value).__name__!r}")
                float(value)
            except OverflowError:
                raise BadValue(f"sample {i}, feature {j} is too large for a number of 64 bits; scale the features") from None
            except (TypeError, ValueError) as error:
                way = (
                    "Fill the gaps, for instance with sklearn.impute.SimpleImputer"
                    if is_missing(value)
                    else "Turn words into numbers first, for instance with sklearn.preprocessing.OneHotEncoder or "
                    "sklearn.feature_extraction.DictVectorizer"
                )
                raise BadValue(f"sample {i}, feature {j} is {value!r}, which is no number ({error}). {way}") from error
    return array.astype(np.float64)


def _sparse(X: Any) -> Table:
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported\n{X!r}\n")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D input, got input with shape {X.shape}.\nReshape your data to (n_samples, n_features).")
    if X.shape[0] == 0 or X.shape[1] == 0:
        what = "sample" if X.shape[0] == 0 else "feature"
        raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X is a sparse matrix of {X.dtype}, not of numbers; X.astype(float) may help")
    csr = X.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()
    # There may be room behind the last entry, and room between two of them.
    end = csr.indptr[-1]
    indptr, indices, values = (np.ascontiguousarray(part) for part in (csr.indptr, csr.indices[:end], csr.data[:end]))
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(np.float64)

    def place(at: int) -> tuple[int, int]:
        return int(np.searchsorted(indptr, at, side="right")) - 1, int(indices[at])

    _refuse_infinities(values, place)
    return Table(X.shape, csr=(indptr, indices, values))


def _refuse_infinities(values: NDArray[Any], place: Any) -> None:
    with np.errstate(all="ignore"):
        # A sum is finite only where all are; it may overflow, so look again.
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    flat = values.ravel()
    bad = np.flatnonzero(~np.isfinite(flat))
    if len(bad):
        i, j = place(bad[0])
        what = "NaN" if np.isnan(flat[bad[0]]) else "infinity"
        raise ValueError(
            f"Input X contains {what}: sample {i}, feature {j} is {flat[bad[0]]}. Leave such samples out or fill the gaps, for "
            "instance with sklearn.impute.SimpleImputer"
        )


def sample_weights(weights: Any, samples: int) -> NDArray[np.float64] | None:
    """The weights of samples, checked; None where all are 1."""
    if weights is None:
        return None
    try:
        array = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"sample_weight must be numbers, one for each sample ({error})") from error
    if array.ndim == 0:
        array = np.full(samples, float(array))
    if array.ndim != 1:
        raise ValueError("Sample weights must be 1D array or scalar")
    if len(array) != samples:
        raise ValueError(f"sample_weight.shape == {array.shape}, expected {(samples,)}!")
    bad = np.flatnonzero(~np.isfinite(array) | (array < 0))
    if len(bad):
        raise ValueError(f"Input sample_weight contains NaN, infinity or negative values: sample {bad[0]} has {array[bad[0]]}")
    if not array.any():
        raise ValueError("all sample weights are zero; at least one must be positive")
    return np.ascontiguousarray(array)


def weighed(sample_weight: Any, *samples: Sequence[Any] | None) -> tuple[NDArray[np.float64] | None, list[Any]]:
    """The weights of samples, checked, and the lists without those of weight 0: the library has none."""
    if sample_weight is None:
        return None, list(samples)
    weights = sample_weights(sample_weight, next(len(list_) for list_ in samples if list_ is not None))
    assert weights is not None
    kept = np.flatnonzero(weights)
    if len(kept) < len(weights):
        samples = tuple(None if list_ is None else [list_[i] for i in kept] for list_ in samples)
    return weights[kept], list(samples)


def check_names(estimator: Any, names: NDArray[Any] | None) -> None:
    """Are the columns those of ``fit``?"""
    fitted = getattr(estimator, "feature_names_in_", None)
    who = type(estimator).__name__
    if fitted is None and names is None:
        return
    if fitted is None:
        warnings.warn(f"X has feature names, but {who} was fitted without feature names", UserWarning, stacklevel=4)
        return
    if names is None:
        warnings.warn(f"X does not have valid feature names, but {who} was fitted with feature names", UserWarning, stacklevel=4)
        return
    if len(names) == len(fitted) and (names == fitted).all():
        return
    message = "The feature names should match those that were passed during fit.\n"
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    for what, which in (("unseen at fit time", unseen), ("seen at fit time, yet now missing", missing)):
        if which:
            message += f"Feature names {what}:\n" + "".join(f"- {name}\n" for name in which[:5])
            message += "- ...\n" if len(which) > 5 else ""
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    raise ValueError(message)
