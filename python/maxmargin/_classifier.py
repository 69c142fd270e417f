"""What classifiers of rows share: input, labels, prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _labels, _native, _rows, _svmlight
from maxmargin._base import ClassifierMixin
from maxmargin._estimator import Estimator, all_or_nothing
from maxmargin._files import Folder, matrix_text
from maxmargin._progress import Callback, Watch
from maxmargin._rows import Table

if TYPE_CHECKING:
    from sklearn.utils import Tags
    from typing_extensions import Self


class RowEstimator(Estimator):
    """Takes samples that are rows of numbers."""

    n_features_in_: int
    feature_names_in_: NDArray[Any]
    classes_: NDArray[Any]
    # The words of classes_ in the model.
    _words: list[str]

    def _table(self, X: Any, is_fit: bool = False) -> Table:
        """X, checked, and in prediction compared with that of ``fit``."""
        who = type(self).__name__
        names = _rows.names_of(X)
        if is_fit:
            table = _rows.as_table(X, who)
            self.n_features_in_ = table.shape[1]
            if names is not None:
                self.feature_names_in_ = names
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            return table
        self._check_fitted()
        _rows.check_names(self, names)
        table = _rows.as_table(X, who)
        if table.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {table.shape[1]} features, but {who} is expecting {self.n_features_in_} features as input.")
        return table

    def _heldout_table(self, X: Any) -> Table:
        """Held-out samples, as wide as those of training."""
        table = _rows.as_table(X, type(self).__name__)
        if table.shape[1] != self.n_features_in_:
            raise ValueError(f"heldout: X has {table.shape[1]} features, but the training data have {self.n_features_in_}")
        return table

    def _scores(self, X: Any) -> NDArray[np.float64]:
        """A column for each of classes_; -inf for those that the model does not know."""
        table = self._table(X)
        model = self._model()
        scores = model.scores(table.rows(), self._threads())
        if model.labels == self._words:
            return scores
        place = {word: k for k, word in enumerate(model.labels)}
        ordered = np.full((table.shape[0], len(self._words)), -np.inf)
        known = [k for k, word in enumerate(self._words) if word in place]
        ordered[:, known] = scores[:, [place[self._words[k]] for k in known]]
        return ordered

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def matched(samples: int, labels: int) -> None:
    """Is there a label for each sample?"""
    if samples != labels:
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[samples, labels]}")


class RowClassifier(ClassifierMixin, RowEstimator):
    """One class for each sample."""

    def _task(self, classes: int) -> str:
        """The task of the program."""
        raise NotImplementedError

    def _names(self, classes: NDArray[Any]) -> list[str]:
        """The words of the classes."""
        return _labels.words_of(classes, _labels.CLASS)

    def _prepare(self, folder: Folder) -> dict[str, Any]:
        """Parameters that are files, or have labels in them."""
        changed: dict[str, Any] = {}
        matrix = getattr(self, "cost_matrix", None)
        if matrix is not None:
            if hasattr(matrix, "loc") and hasattr(matrix, "columns"):
                matrix = self._ordered(matrix)
            changed["cost_matrix"] = folder.given("cost_matrix", matrix, self._matrix_text)
        weight = getattr(self, "class_weight", None)
        if isinstance(weight, dict):
            word = dict(zip(self.classes_.tolist(), self._words, strict=True))
            unknown = [label for label in weight if label not in word]
            if unknown:
                raise ValueError(f"class_weight: the training data have no class {unknown[0]!r}")
            changed["class_weight"] = {word[label]: float(w) for label, w in weight.items()}
        elif weight is not None and not isinstance(weight, str):
            raise ValueError(f"class_weight={weight!r}: must be a dict, 'balanced' or None")
        return changed

    def _ordered(self, frame: Any) -> Any:
        """A cost matrix that has its classes as names of rows and columns, in the order of classes_."""
        labels = self.classes_.tolist()
        missing = [label for label in labels if label not in frame.index or label not in frame.columns]
        if missing:
            raise ValueError(f"cost_matrix: the frame has no row or no column {missing[0]!r}; they are named as the classes are")
        return frame.loc[labels, labels]

    def _matrix_text(self, matrix: Any) -> str:
        """A cost matrix in the order of classes_."""
        return matrix_text(matrix, self._words)

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
        y : array of shape (n_samples,)
            Their classes: numbers, words or any other hashable objects.
        sample_weight : array of shape (n_samples,), optional
            How much each sample counts; those of weight 0 are left out.
        heldout : pair (X, y), optional
            Samples on which the loss is measured once a pass.
        callback : function, optional
            Gets a dict for each round, with primal, dual, gap and more; training stops where it returns True.

        Returns
        -------
        self
        """
        table = self._table(X, is_fit=True)
        labels = _labels.as_labels(y, type(self).__name__)
        matched(table.shape[0], len(labels))
        weights = _rows.sample_weights(sample_weight, table.shape[0])
        if weights is not None and not weights.all():
            # Examples that count nothing: the library has none.
            chosen = weights > 0
            table, labels, weights = table.take(chosen), labels[chosen], weights[chosen]
        self.classes_ = _labels.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least 2 classes; the data contain only one class: {self.classes_[0]!r}"
            )
        self._words = self._names(self.classes_)
        ids = _labels.places(labels, self.classes_).astype(np.uint32)
        task = self._task(len(self.classes_))

        def prepare(folder: Folder) -> list[str]:
            options = self._options(**self._prepare(folder))
            if heldout is not None:
                options += ["--heldout", folder.file("heldout", self._heldout(*heldout))]
            return options

        def train(options: list[str], watch: Watch) -> tuple[bytes, str, list[str]]:
            return _native.train_rows(task, options, table.rows(), self._words, ids, weights, watch)

        self._train(prepare, train, callback)
        return self

    def _heldout(self, X: Any, y: Any) -> str:
        """Samples as text. Classes that training has not are words that it has not."""
        table = self._heldout_table(X)
        labels = _labels.as_labels(y)
        matched(table.shape[0], len(labels))
        word = [_labels.unused(self._words), *self._words]
        return _svmlight.write(table, [word[k + 1] for k in _labels.places(labels, self.classes_)])

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """The scores of the classes.

        Returns
        -------
        array of shape (n_samples, n_classes), or (n_samples,) for two classes: positive for the second one
        """
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each sample, one of ``classes_``."""
        scores = self._scores(X)
        # Ties go to the first class, as the sign of decision_function has it.
        predicted: NDArray[Any] = self.classes_[scores.argmax(axis=1)]
        return predicted

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of samples that are predicted rightly."""
        labels = _labels.as_labels(y, type(self).__name__)
        predicted = self.predict(X)
        matched(len(predicted), len(labels))
        truth = _labels.places(labels, self.classes_)
        correct = truth == _labels.places(predicted, self.classes_)
        return float(np.average(correct, weights=_rows.sample_weights(sample_weight, len(labels))))

    def _adopt(self, data: bytes, record: dict[str, Any]) -> None:
        super()._adopt(data, record)
        model = self._model()
        self._words = list(model.labels)
        self.classes_ = _labels.from_words(self._words)
        self.n_features_in_ = model.features
