"""Sets of labels."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Set
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _labels, _native, _rows, _svmlight
from maxmargin._classifier import RowEstimator, matched
from maxmargin._doc import documented
from maxmargin._estimator import all_or_nothing
from maxmargin._files import Folder
from maxmargin._progress import Callback, Watch

if TYPE_CHECKING:
    from sklearn.utils import Tags
    from typing_extensions import Self

# What stands for the empty set among the ids of sets.
EMPTY = 4294967295


def members_of(Y: Any) -> tuple[list[NDArray[Any]], int]:
    """The columns of each row of an indicator matrix that are 1, checked, and the number of columns."""
    if hasattr(Y, "tocsr"):
        csr = Y.tocsr().copy()
        csr.sum_duplicates()
        csr.eliminate_zeros()
        bad = np.flatnonzero(csr.data != 1)
        if len(bad):
            i = int(np.searchsorted(csr.indptr, bad[0], side="right")) - 1
            _refuse(i, int(csr.indices[bad[0]]), csr.data[bad[0]])
        return np.split(csr.indices, csr.indptr[1:-1]), csr.shape[1]
    try:
        array = Y.to_numpy() if hasattr(Y, "to_numpy") else np.asarray(Y)
    except ValueError as error:
        raise ValueError("Unknown label type: Y is ragged; give label sets as Python sets: [{'a', 'b'}, set(), ...]") from error
    if array.ndim != 2:
        raise ValueError(
            f"Unknown label type: Y has the shape {array.shape}; label sets are an indicator matrix of shape (n_samples, n_labels) or a "
            "list of sets. For one class a sample take LinearClassifier"
        )
    if array.dtype.kind not in "biuf":
        raise ValueError("Unknown label type: Y has entries that are no numbers; give label sets as Python sets: [{'a', 'b'}, set(), ...]")
    wrong = np.argwhere((array != 0) & (array != 1))
    if len(wrong):
        _refuse(int(wrong[0][0]), int(wrong[0][1]), array[tuple(wrong[0])])
    return [np.flatnonzero(row) for row in array], array.shape[1]


def _refuse(i: int, j: int, value: Any) -> None:
    raise ValueError(f"Unknown label type: Y[{i}, {j}] is {value}; an indicator matrix has zeros and ones (sample {i})")


def is_sets(Y: Any) -> bool:
    """Is it a list of sets (or tuples) of labels?"""
    if hasattr(Y, "tocsr") or hasattr(Y, "columns") or (isinstance(Y, np.ndarray) and Y.dtype.kind != "O"):
        return False
    return isinstance(Y, Iterable) and any(isinstance(labels, (Set, tuple)) for labels in Y)


def distinct_labels(sets: Iterable[Any]) -> NDArray[Any]:
    """The labels of all sets, sorted, checked."""
    members: list[Any] = []
    ends: list[int] = []
    for i, labels in enumerate(sets):
        if isinstance(labels, str) or not isinstance(labels, Iterable):
            raise ValueError(f"y: sample {i} is {labels!r}, not a set of labels")
        members += labels
        ends.append(len(members))
    _labels.check_kinds(members, lambda k: f"the set of sample {bisect.bisect_right(ends, k)}")
    is_plain = bool(members) and isinstance(members[0], (str, int))
    return _labels.unique(np.asarray(members) if is_plain else _labels.one_dimensional(members))


@documented
class MultilabelClassifier(RowEstimator):
    """Gives a set of labels to every sample, any number of them or none.

    Losses: hamming (default: wrong labels), f1.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : array
        The labels; of an indicator matrix the numbers of its columns.

    Examples
    --------
    >>> from maxmargin import MultilabelClassifier
    >>> X = [[1, 0], [0, 1], [1, 1], [0.1, 0.1]] * 3
    >>> model = MultilabelClassifier(C=10, bias=1).fit(X, [{"sun"}, {"sea"}, {"sun", "sea"}, set()] * 3)
    >>> sorted(model.predict([[1, 1]])[0])
    ['sea', 'sun']
    """

    threshold: float

    # For releases of scikit-learn before 1.6, which have no tags.
    _estimator_type = "classifier"

    def __init__(
        self,
        C: float = 1.0,
        *,
        pairs: str | None = None,
        threshold: float = 0.0,
        loss: str | None = None,
        penalty: str | None = None,
        rescaling: str | None = None,
        bias: float | None = None,
        loss_scale: float | None = None,
        C_path: Any = None,
        solver: str | None = None,
        groups: int | None = None,
        cache: Any = None,
        line_search: bool | None = None,
        max_cuts: int | None = None,
        update: str | None = None,
        batch: int | None = None,
        rho: float | None = None,
        eta: float | None = None,
        fmo_parts: int | None = None,
        inner: str | None = None,
        certify: bool = False,
        epsilon: float | None = None,
        relative_gap: float | None = None,
        max_seconds: float | None = None,
        max_passes: float | None = None,
        keep_best: bool = False,
        folds: int | None = None,
        checkpoint: Any = None,
        checkpoint_every: float | None = None,
        resume: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        heldout: tuple[Any, Any] | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Trains.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The samples.
        y : array or sparse matrix of shape (n_samples, n_labels), or list of sets
            Zeros and ones, or the labels themselves.
        sample_weight : array of shape (n_samples,), optional
            How much each sample counts.
        heldout : pair (X, y), optional
            Samples on which the loss is measured once a pass.
        callback : function, optional
            Gets a dict for each round; training stops where it returns True.

        Returns
        -------
        self
        """
        table = self._table(X, is_fit=True)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        y = _rows.kept(y)
        if is_sets(y):
            y, self._form = list(y), "sets"
            self.classes_ = distinct_labels(y)
        else:
            self._form = "sparse" if hasattr(y, "tocsr") else "dense"
            self.classes_ = np.arange(members_of(y)[1])
        self._words = _labels.words_of(self.classes_, _labels.SET_LABEL)
        sets = self._sets(y)
        matched(table.shape[0], len(sets))
        weights = _rows.sample_weights(sample_weight, table.shape[0])
        if weights is not None and not weights.all():
            chosen = weights > 0
            table, weights = table.take(chosen), weights[chosen]
            sets = [labels for labels, is_kept in zip(sets, chosen, strict=True) if is_kept]
        names = list(dict.fromkeys(labels for labels in sets if labels))
        if not names:
            raise ValueError("no sample has any label: there is nothing to learn, not even the class of labels")
        place = {labels: k for k, labels in enumerate(names)}
        ids = np.array([place.get(labels, EMPTY) for labels in sets], np.uint32)

        def prepare(folder: Folder) -> list[str]:
            options = self._options()
            if heldout is not None:
                test, labels = self._heldout_table(heldout[0]), self._sets(heldout[1])
                matched(test.shape[0], len(labels))
                options += ["--heldout", folder.file("heldout", _svmlight.write(test, labels))]
            return options

        def train(options: list[str], watch: Watch) -> tuple[bytes, str, list[str]]:
            return _native.train_rows("multilabel", options, table.rows(), names, ids, weights, watch)

        self._train(prepare, train, callback)
        return self

    def _sets(self, Y: Any) -> list[str]:
        """Label sets as words with commas between; labels that training has not are a word that it has not."""
        Y = _rows.kept(Y)
        if is_sets(Y):
            word = dict(zip(self.classes_.tolist(), self._words, strict=True))
            unknown = _labels.unused(self._words)
            ordered = [sorted({word.get(label, unknown) for label in labels}) for labels in Y]
            return [",".join(labels) for labels in ordered]
        members, width = members_of(Y)
        if width != len(self._words):
            raise ValueError(f"Y has {width} labels, but {type(self).__name__} is expecting {len(self._words)}")
        return [",".join(sorted(self._words[k] for k in row)) for row in members]

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """What each label gains beside the others of the best set; -inf for labels that no training sample has."""
        return self._scores(X)

    def predict(self, X: Any) -> Any:
        """The best set of each sample, in the form in which ``fit`` got them: an indicator matrix, dense or sparse, or sets."""
        table = self._table(X)
        model = self._model()
        place = {word: k for k, word in enumerate(self._words)}
        column = [place[word] for word in model.labels]
        sets = [[column[k] for k in found] for found in model.sets(table.rows(), float(self.threshold), self._threads())]
        if self._form == "sets":
            labels = self.classes_.tolist()
            return [{labels[k] for k in found} for found in sets]
        shape = (table.shape[0], len(self._words))
        if self._form == "sparse":
            from scipy import sparse

            columns = [k for found in sets for k in sorted(found)]
            ends = np.concatenate([[0], np.cumsum([len(found) for found in sets])])
            return sparse.csr_matrix((np.ones(len(columns), np.int64), columns, ends), shape=shape)
        answer = np.zeros(shape, dtype=np.int64)
        for i, found in enumerate(sets):
            answer[i, found] = 1
        return answer

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of samples whose whole set is right, as scikit-learn has it for label sets."""
        predicted, truth = self._sets(self.predict(X)), self._sets(y)
        matched(len(predicted), len(truth))
        correct = [a == b for a, b in zip(predicted, truth, strict=True)]
        return float(np.average(correct, weights=_rows.sample_weights(sample_weight, len(truth))))

    def _adopt(self, data: bytes, record: dict[str, Any]) -> None:
        super()._adopt(data, record)
        model = self._model()
        self._words = list(model.labels)
        self.classes_ = _labels.from_words(self._words)
        self.n_features_in_ = model.features
        self._form = "sets"

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import ClassifierTags

        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags(multi_class=False, multi_label=True)
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags
