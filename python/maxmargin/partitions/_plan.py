"""From an estimator and the surveys of its partitions to the job: options, labels, and the blank model with all dictionaries."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _labels, _modelfile, _native, _rows
from maxmargin._classifier import RowClassifier
from maxmargin._estimator import Estimator
from maxmargin._linear import LinearClassifier
from maxmargin._multilabel import EMPTY, MultilabelClassifier
from maxmargin._parser import TreeParser
from maxmargin._tagger import SequenceTagger
from maxmargin._taxonomy import TaxonomyClassifier
from maxmargin.partitions._job import Job, Shipped, files_of
from maxmargin.partitions._kinds import TASKS, Survey, set_word

Surveys = Callable[[Job], list[Survey]]

_ONE_PLACE = "needs all examples in one place; take the estimator without partitions for it"
_KERNEL = ("kernel", "gamma", "degree", "coef0", "low_rank", "basis", "kernel_cache", "sample_size", "sampling", "bound")
_REFUSED = {
    **dict.fromkeys(_KERNEL, f"a kernel {_ONE_PLACE}"),
    "C_path": "partitions are trained at one C at a time; train once for each",
    "warm_start": "training on partitions begins with w = 0",
    "folds": "cross-validation is not done on partitions; train on some of them and evaluate on the others",
    "keep_best": "there are no held-out examples on partitions",
}


def refuse(estimator: Estimator) -> None:
    """ValueError where a parameter has no meaning for partitions."""
    given = estimator.get_params(deep=False)
    for name, reason in _REFUSED.items():
        value = given.get(name)
        is_unset = value is None or value is False or (name == "kernel" and isinstance(value, str) and value == "linear")
        if not is_unset:
            raise ValueError(f"{name}={value!r}: {reason}")
    checkpoint = given.get("checkpoint")
    if checkpoint is not None:
        folder = os.path.dirname(os.path.abspath(checkpoint))
        if os.path.isdir(checkpoint) or not os.access(folder, os.W_OK):
            raise ValueError(f"checkpoint={os.fspath(checkpoint)!r}: cannot be written; it must be a file in a folder that is there")
    solver, groups = given.get("solver"), given.get("groups")
    if solver not in (None, "auto", "one-slack", "group-slack"):
        raise ValueError(f"solver={solver!r} {_ONE_PLACE}; partitions are trained by one-slack, or with groups=G by group-slack")
    if solver == "group-slack" and groups is None:
        raise ValueError("solver='group-slack' needs groups, their number")
    if solver == "one-slack" and groups is not None:
        raise ValueError(f"groups={groups!r} has no effect with solver='one-slack'")


def _common(estimator: Estimator) -> dict[str, Any]:
    """Of all tasks: the solver. Threads are those of whoever makes the cuts."""
    groups = estimator.get_params(deep=False)["groups"]
    return {"solver": "one-slack" if groups is None else "group-slack", "n_jobs": None}


class Plan:
    """Finds out what is to be trained; ``finish`` tells the estimator what it has become."""

    def __init__(self, estimator: Estimator, folder: Shipped) -> None:
        self.estimator = estimator
        self.folder = folder
        self.job: Job
        self._surveys: list[Survey] = []

    def make(self, surveys: Surveys) -> Job:
        """The job, with the blank model."""
        if isinstance(self.estimator, (RowClassifier, MultilabelClassifier)):
            self._make_rows(surveys)
        else:
            is_tagger = isinstance(self.estimator, SequenceTagger)
            options = self._tagger_options() if is_tagger else self.estimator._options(**_common(self.estimator))
            self._survey(self._new_job(TASKS[_local_type(self.estimator)], options), surveys)
            self._check_tags()
            self.job = self.job.with_blank(self._merged())
        return self.job

    def _new_job(self, task: str, options: list[str]) -> Job:
        bare = _bare(self.estimator)
        return Job(task, bare, options, str(self.folder.path), files_of(self.folder))

    def _survey(self, job: Job, surveys: Surveys) -> None:
        self.job, self._surveys = job, surveys(job)
        forms = {found.native is None for found in self._surveys}
        if len(forms) > 1:
            raise ValueError("some partitions are text and some are samples in memory; all must be of one sort")

    def _merged(self) -> bytes:
        surveys = [found.native or b"" for found in self._surveys]
        return bytes(_native.merge(self.job.task, self.job.options, surveys, "the partitions"))

    # Tags.

    def _tagger_options(self) -> list[str]:
        common = _common(self.estimator)
        tagger: Any = type(self.estimator)(**{**self.estimator.get_params(deep=False), **common})
        found: list[str] = tagger._prepare(self.folder, {})
        return found

    def _tags(self) -> list[Any]:
        """The tags of sentences in memory, of all partitions."""
        return list(dict.fromkeys(tag for found in self._surveys for tag in found.labels or ()))

    def _check_tags(self) -> None:
        tags = self._tags()
        if not tags:
            return
        _check_kinds([found.labels or () for found in self._surveys])
        words = [_labels.text_of(tag) for tag in tags]
        if _labels.words_of(tags, _labels.TAG) != words:
            raise ValueError("y: tags of partitions must be distinct words without blanks, or whole numbers; make words of them first")

    # Rows.

    def _make_rows(self, surveys: Surveys) -> None:
        bare: Any = _bare(self.estimator)
        self._survey(self._new_job(self._first_task(), self._first_options()), surveys)
        if self._surveys[0].native is None:
            self._make_of_rows()
            return
        if isinstance(bare, MultilabelClassifier):
            self.job = self.job.with_blank(self._merged())
            return
        words = list(_native.Model(self._merged()).labels)
        estimator: Any = self.estimator
        estimator.classes_ = _labels.from_words(words)
        _check_classes(estimator)
        estimator._words = words if not isinstance(bare, TaxonomyClassifier) else estimator._names(estimator.classes_)
        task = estimator._task(len(words))
        options = estimator._options(**{**estimator._prepare(self.folder), **_common(estimator)})
        if task == "binary":
            # The second class is the positive one, as for samples in memory.
            options += ["--positive", words[1]]
        self.job = self._new_job(task, options)
        self.job = self.job.with_blank(self._merged())

    def _first_task(self) -> str:
        if isinstance(self.estimator, MultilabelClassifier):
            return "multilabel"
        return "taxonomy" if isinstance(self.estimator, TaxonomyClassifier) else "multiclass"

    def _first_options(self) -> list[str]:
        """Those that need no labels: to find the labels of text."""
        estimator: Any = self.estimator
        if isinstance(estimator, MultilabelClassifier):
            return list(estimator._options(**_common(estimator)))
        given = estimator.get_params(deep=False)
        given.update(cost_matrix=None, class_weight=None, loss=None if given["loss"] == "matrix" else given["loss"])
        first: Any = _local_type(estimator)(**given)
        first.classes_, first._words = np.array([], object), []
        if isinstance(first, TaxonomyClassifier):
            if given["taxonomy"] is None:
                return []
            first._names(first.classes_)
        return list(first._options(**{**first._prepare(self.folder), **_common(first)}))

    def _make_of_rows(self) -> None:
        """Samples in memory: labels and columns are known, the library is asked for the blank model alone."""
        estimator: Any = self.estimator
        self._adopt_columns()
        if isinstance(estimator, MultilabelClassifier):
            estimator._form = _same([s.form for s in self._surveys], "label sets", "form")
        estimator.classes_ = self._classes()
        if not isinstance(estimator, MultilabelClassifier):
            _check_classes(estimator)
            estimator._words = estimator._names(estimator.classes_)
            task = estimator._task(len(estimator.classes_))
            changed = {**estimator._prepare(self.folder), **_common(estimator)}
            if isinstance(estimator.class_weight, str) and estimator.class_weight == "balanced":
                changed["class_weight"] = self._balanced()
            options = estimator._options(**changed)
            names, ids = estimator._words, np.arange(len(estimator._words), dtype=np.uint32)
        else:
            estimator._words = _labels.words_of(estimator.classes_, _labels.SET_LABEL)
            task, options = "multilabel", self.job.options
            names, ids = self._label_sets()
        rows = _native.Rows.csr(
            np.zeros(len(ids) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), estimator.n_features_in_
        )
        job = replace(self._new_job(task, options), classes=estimator.classes_, words=estimator._words)
        self.job = job.with_blank(bytes(_native.blank(task, options, rows, names, ids)))

    def _adopt_columns(self) -> None:
        estimator: Any = self.estimator
        estimator.n_features_in_ = _same([s.columns for s in self._surveys], "X", "number of features")
        names = self._surveys[0].names
        if hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        if names is not None:
            estimator.feature_names_in_ = names
        for found in self._surveys[1:]:
            if (names is None) != (found.names is None):
                raise ValueError("X: some partitions have names of columns, others none")
            _rows.check_names(estimator, found.names)

    def _classes(self) -> NDArray[Any]:
        """The union of the labels, in the order in which one machine would have them."""
        parts = [np.asarray(s.labels) for s in self._surveys]
        if self._surveys[0].form in ("dense", "sparse"):
            width = _same([len(part) for part in parts], "Y", "number of labels")
            return np.arange(width)
        _check_kinds(parts)
        parts = [part for part in parts if len(part)] or parts[:1]
        if any(part.dtype.kind == "O" for part in parts):
            return _labels.unique(_labels.one_dimensional([label for part in parts for label in part.tolist()]))
        return _labels.unique(np.concatenate(parts))

    def _balanced(self) -> dict[str, float]:
        """Weights with which all classes of all partitions count the same."""
        estimator: Any = self.estimator
        counts = np.zeros(len(estimator.classes_), np.int64)
        for found in self._surveys:
            np.add.at(counts, _labels.places(np.asarray(found.labels), estimator.classes_), found.counts)
        return {word: float(counts.sum() / len(counts) / count) for word, count in zip(estimator._words, counts, strict=True)}

    def _label_sets(self) -> tuple[list[str], NDArray[np.uint32]]:
        """All label sets of all partitions, each as often as it is there: pairs of labels may be chosen by that."""
        estimator: Any = self.estimator
        word = dict(zip(estimator.classes_.tolist(), estimator._words, strict=True))
        counts: Counter[str] = Counter()
        for found in self._surveys:
            for members, count in found.counts.items():
                counts[set_word(members, word)] += count
        names = sorted(text for text in counts if text)
        if not names:
            raise ValueError("no sample has any label: there is nothing to learn, not even the class of labels")
        ids = np.repeat(np.array([*range(len(names)), EMPTY], np.uint32), [counts[text] for text in [*names, ""]])
        return names, ids

    # After training.

    def finish(self) -> None:
        """Sets what ``fit`` sets, beside what training has set already."""
        estimator: Any = self.estimator
        if self._surveys[0].native is None:
            return
        kept = {key: getattr(estimator, key) for key in ("report_", "history_", *estimator.get_params(deep=False)) if hasattr(estimator, key)}
        status = {key: getattr(estimator, key) for key in ("status_", "certificate_", "primal_", "dual_", "gap_", "n_iter_")}
        estimator._adopt(estimator.model_, _modelfile.record(estimator.model_))
        for key, value in {**kept, **status}.items():
            setattr(estimator, key, value)
        if isinstance(estimator, SequenceTagger):
            tag = {_labels.text_of(tag): tag for tag in self._tags()}
            found = [tag.get(word, word) for word in estimator._words]
            estimator.classes_ = np.array(found) if tag else np.array(estimator._words)
        if isinstance(estimator, TreeParser):
            estimator._form = "tuples" if self._surveys[0].form == "tuples" else "strings"


def _bare(estimator: Estimator) -> Estimator:
    """An estimator of the ordinary class with the same parameters, which workers get."""
    bare: Estimator = _local_type(estimator)(**estimator.get_params(deep=False))
    return bare


def _local_type(estimator: Estimator) -> type[Any]:
    """The ordinary class: that of the package, and none that an engine has made of it."""
    return next(kind for kind in type(estimator).__mro__ if kind in (*TASKS, LinearClassifier, TaxonomyClassifier, MultilabelClassifier))


def _check_classes(estimator: Any) -> None:
    if len(estimator.classes_) < 2:
        raise ValueError(f"{type(estimator).__name__} needs at least 2 classes; the partitions contain {len(estimator.classes_)}")


def _same(values: Sequence[Any], what: str, which: str) -> Any:
    for number, value in enumerate(values):
        if value != values[0]:
            raise ValueError(f"{what}: partition {number} has another {which} ({value}) than partition 0 ({values[0]})")
    return values[0]


def _check_kinds(parts: Sequence[Sequence[Any]]) -> None:
    """Are the labels of all partitions of one type? Within each they are."""
    firsts = [(number, part[0]) for number, part in enumerate(parts) if len(part)]
    _labels.check_kinds([label for _, label in firsts], lambda k: f"partition {firsts[k][0]}")
