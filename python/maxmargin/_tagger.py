"""Tags for the tokens of sentences."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _labels, _modelfile, _native, _rows, _settings
from maxmargin._doc import documented
from maxmargin._estimator import Estimator, Train, all_or_nothing
from maxmargin._files import Folder
from maxmargin._progress import Callback
from maxmargin._sentences import as_lists, blocks, check_lengths, columns_text, n_best_blocks, tag_words, unescaped

if TYPE_CHECKING:
    from typing_extensions import Self


def _encoded(text: str | bytes) -> bytes:
    try:
        return text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        line = error.object.count("\n", 0, error.start) + 1
        raise ValueError(f"line {line} of the text has a lone surrogate, which is no Unicode text") from None


@documented
class SequenceTagger(Estimator):
    """Gives a tag to every token of a sentence: a linear chain.

    A token is a dict of features (numbers, bools, words, or dicts, lists and vectors of those), a list of attributes, a vector of
    numbers, or a string, which is its only attribute. With ``format='columns'`` tokens are words or rows of words, or X is CoNLL text whose last column is the tag;
    their features are a built-in set, or come from ``template``.

    Losses: hamming (default: wrong tags), zero-one.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : array
        The tags.
    transition_features_ : dict
        The weight of each pair of neighbouring tags.
    state_features_ : dict
        The weight of each feature and tag that is not zero.

    Examples
    --------
    >>> from maxmargin import SequenceTagger
    >>> X = [[{"word": "the"}, {"word": "cat"}, {"word": "sleeps"}], [{"word": "the"}, {"word": "dog"}, {"word": "barks"}]]
    >>> y = [["DT", "NN", "VB"], ["DT", "NN", "VB"]]
    >>> tagger = SequenceTagger(C=10).fit(X, y)
    >>> tagger.predict([[{"word": "the"}, {"word": "dog"}, {"word": "sleeps"}]])
    [['DT', 'NN', 'VB']]
    >>> tagger.score(X, y)
    1.0
    """

    classes_: NDArray[Any]
    _words: list[str]
    format: str | None

    _own = Estimator._own | {"kernel", "template", "format", "forbid", "tag_cost"}

    def __init__(
        self,
        C: float = 1.0,
        *,
        format: str | None = None,
        template: Any = None,
        min_count: int | None = None,
        order: int | None = None,
        forbid: Any = None,
        scheme: str | None = None,
        tag_cost: Any = None,
        loss: str | None = None,
        penalty: str | None = None,
        rescaling: str | None = None,
        loss_scale: float | None = None,
        C_path: Any = None,
        kernel: str | None = None,
        gamma: Any = None,
        degree: int | None = None,
        coef0: float | None = None,
        low_rank: int | None = None,
        basis: str | None = None,
        kernel_cache: int | None = None,
        sample_size: int | None = None,
        sampling: str | None = None,
        bound: float | None = None,
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

    def _prepare(self, folder: Folder, word: dict[Any, str]) -> list[str]:
        given = self.get_params(deep=False)
        changed = {
            "format": given["format"] or "crfsuite",
            "template": folder.given("template", given["template"], str),
            "kernel": _settings.kernel_word(given["kernel"], given["gamma"], given["degree"], given["coef0"]),
        }
        if given["tag_cost"] is not None:
            changed["tag_cost"] = {word.get(tag, tag): cost for tag, cost in given["tag_cost"].items()}
        if given["forbid"] is not None:
            pairs = [pair.split(",") if isinstance(pair, str) else pair for pair in given["forbid"]]
            changed["forbid"] = [f"{word.get(a, a)},{word.get(b, b)}" for a, b in pairs]
        return self._options(**changed)

    def _is_text(self, X: Any) -> bool:
        return isinstance(X, (str, bytes)) and self.format is not None

    def _text(self, X: Any, tags: Sequence[Sequence[str]] | None, columns: int | None = None) -> bytes:
        """Sentences as text; `tags` are words. `columns`: how many a token has to have."""
        if self._is_text(X):
            if tags is not None:
                raise ValueError("X is text, which has its tags in it; leave out y")
            return _encoded(X)
        lists = as_lists(X, "X")
        if self.format is None:
            return _native.crfsuite_text(lists, tags)
        if self.format != "columns":
            raise ValueError(f"format={self.format!r} is for text; lists of tokens take format='columns' or none at all")
        return columns_text(lists, tags, columns)

    @all_or_nothing
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        heldout: tuple[Any, Any] | Any = None,
        callback: Callback | None = None,
    ) -> Self:
        """Trains.

        Parameters
        ----------
        X : list of lists of tokens, or text
            The sentences.
        y : list of lists, optional
            The tag of each token: words or other hashables. Text has them in it.
        sample_weight : array of shape (n_samples,), optional
            How much each sentence counts; those of weight 0 are left out.
        heldout : pair (X, y) or text, optional
            Sentences on which the loss is measured once a pass.
        callback : function, optional
            Gets a dict for each round; training stops where it returns True.

        Returns
        -------
        self
        """
        word: dict[Any, str] = {}
        train: Train
        if self._is_text(X):
            if y is not None:
                raise ValueError("X is text, which has its tags in it; leave out y")
            weights = None if sample_weight is None else np.ascontiguousarray(sample_weight, np.float64)
            text = self._text(X, None)
            train = lambda options, watch: _native.train_text("tag", options, text, weights, watch)  # noqa: E731
        else:
            sentences = as_lists(X, "X")
            if y is None:
                raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
            tags = as_lists(y, "y")
            check_lengths(sentences, tags)
            weights, (sentences, tags) = _rows.weighed(sample_weight, sentences, tags)
            if not sentences:
                raise ValueError("there are no sentences; at least one is required")
            word = tag_words(tags)
            # Most tags are the words that stand for them.
            are_words = all(type(tag) is str and tag == name for tag, name in word.items())
            words = tags if are_words else [[word[tag] for tag in row] for row in tags]
            if self.format is None:
                threads = self._threads()
                train = lambda options, watch: _native.train_sentences(options, sentences, words, weights, watch, threads)  # noqa: E731
            else:
                text = self._text(sentences, words)
                train = lambda options, watch: _native.train_text("tag", options, text, weights, watch)  # noqa: E731

        def prepare(folder: Folder) -> list[str]:
            options = self._prepare(folder, word)
            if heldout is not None:
                test = heldout if isinstance(heldout, (tuple, list)) else (heldout, None)
                options += ["--heldout", folder.file("heldout", self._labelled(test[0], test[1], word))]
            return options

        self._train(prepare, train, callback)
        self._words = list(_modelfile.record(self.model_)["tags"])
        tag = {name: original for original, name in word.items()}
        found = [tag.get(name, name) for name in self._words]
        are_plain = all(isinstance(t, (str, int, np.integer)) for t in found)
        self.classes_ = np.array(found) if are_plain else _labels.one_dimensional(found)
        return self

    def _labelled(self, X: Any, y: Any, word: dict[Any, str]) -> bytes:
        if y is None:
            return self._text(X, None)
        sentences, tags = as_lists(X, "X"), as_lists(y, "y")
        check_lengths(sentences, tags)
        unknown = _labels.unused(list(word.values()))
        return self._text(sentences, [[word.get(tag, unknown) for tag in row] for row in tags])

    def _answer(self, X: Any, options: list[str], forced: Any = None) -> tuple[str, list[int] | None]:
        """What ``predict`` writes for the sentences that are not empty, and the lengths of all."""
        self._check_fitted()
        if self._is_text(X):
            return self._ask("predict", options, self._text(X, None)).decode(), None
        sentences = as_lists(X, "X")
        tags = None
        if forced is not None:
            given = as_lists(forced, "forced")
            check_lengths(sentences, given, allow_empty=True)
            word = dict(zip(self.classes_.tolist(), self._words, strict=True))
            unknown = {tag for row in given for tag in row if tag is not None and tag not in word}
            if unknown:
                raise ValueError(f"forced: the model has no tag {unknown.pop()!r}")
            tags = [["?" if tag is None else word[tag] for tag in row] for row in given]
        lengths = [len(sentence) for sentence in sentences]
        if not any(lengths):
            return "", lengths
        text = self._text(sentences, tags, _modelfile.record(self.model_)["columns"] if self.format == "columns" else None)
        return self._ask("predict", options, text).decode(), lengths

    def _sentences(self, answer: str, lengths: list[int] | None) -> list[list[str]]:
        """The lines of each sentence; those of empty ones are none."""
        found = blocks(answer)
        if lengths is None:
            return found
        rest = iter(found)
        return [next(rest) if length else [] for length in lengths]

    def _tag(self, word: str) -> Any:
        return self.classes_.tolist()[self._words.index(word)]

    def predict(self, X: Any, forced: Any = None) -> list[list[Any]]:
        """The best tags of each sentence.

        Parameters
        ----------
        X : list of lists of tokens, or text
            The sentences.
        forced : list of lists, optional
            Tags that are taken as given; None leaves a token free.
        """
        options = [] if forced is None else ["--forced"]
        tag = dict(zip(self._words, self.classes_.tolist(), strict=True)) if hasattr(self, "classes_") else {}
        lines = self._sentences(*self._answer(X, options, forced))
        return [[tag[line.rsplit("\t", 1)[-1]] for line in sentence] for sentence in lines]

    def predict_margins(self, X: Any) -> list[NDArray[np.float64]]:
        """How sure each tag is: by how much the best sequence without it scores less."""
        lines = self._sentences(*self._answer(X, ["--margins"]))
        return [np.array([float(line.rsplit("\t", 1)[-1]) for line in sentence]) for sentence in lines]

    def predict_n_best(self, X: Any, n: int = 5) -> list[list[tuple[list[Any], float]]]:
        """The n best sequences of tags of each sentence, each with its score, the best first; fewer where there are fewer."""
        answer, lengths = self._answer(X, ["--n-best", _settings.count("n", n)])
        if lengths is None:
            lengths = [len(lines) for lines in self._sentences(*self._answer(X, []))]
        tag = dict(zip(self._words, self.classes_.tolist(), strict=True))
        found = iter(n_best_blocks(answer, [length for length in lengths if length]))
        nothing: list[tuple[list[str], float]] = [([], 0.0)]
        sentences = [next(found) if length else nothing for length in lengths]
        return [[([tag[line.rsplit("\t", 1)[-1]] for line in lines], score) for lines, score in best] for best in sentences]

    def token_features(self, X: Any) -> list[list[list[str]]]:
        """The features that each token of a columns file gets: those of ``template``, or the built-in ones. Needs no ``fit``.

        Examples
        --------
        >>> SequenceTagger(format="columns", template="U0:%x[0,0]\\nU1:%x[-1,0]\\n").token_features([["the", "cat"]])
        [[['U0:the', 'U1:_B-1'], ['U0:cat', 'U1:the']]]
        """
        if self.format != "columns":
            raise ValueError("token_features is for format='columns'; elsewhere tokens are their features")
        if not isinstance(X, (str, bytes)):
            X = as_lists(X, "X")
            X = columns_text(X, [["?"] * len(sentence) for sentence in X])
        with tempfile.TemporaryDirectory(prefix="maxmargin-") as path:
            template = Folder(path).given("template", self.get_params(deep=False)["template"], str)
            options = [] if template is None else ["--template", template]
            text = _native.features(options, _encoded(X)).decode()
        return [[[unescaped(part) for part in line.split("\t")[1:]] for line in lines] for lines in blocks(text)]

    def score(self, X: Any, y: Any = None) -> float:
        """The share of tokens whose tag is right."""
        if y is None:
            answer = json.loads(self._ask("evaluate", ["--json"], self._text(X, None)))
            return float(answer["token_accuracy"])
        from maxmargin.metrics import token_accuracy

        tags = as_lists(y, "y")
        predicted = self.predict(X)
        check_lengths(predicted, tags, allow_empty=True)
        return token_accuracy(tags, predicted)

    @property
    def transition_features_(self) -> dict[tuple[Any, Any], float]:
        """The weight of each pair of neighbouring tags."""
        table = self.inspect(1)["transitions"]
        tags = self.classes_.tolist()
        return {(a, b): float(table[i][j]) for i, a in enumerate(tags) for j, b in enumerate(tags)}

    @property
    def state_features_(self) -> dict[tuple[str, Any], float]:
        """The weight of each feature and tag, those that are not zero."""
        found = self.inspect(int(self.inspect(1)["features"]) or 1)
        rows = [(self._tag(entry["tag"]), entry["weights"]) for entry in found.get("strongest", [])]
        return {(w["feature"], tag): float(w["weight"]) for tag, weights in rows for w in weights}

    def _adopt(self, data: bytes, record: dict[str, Any]) -> None:
        super()._adopt(data, record)
        self._words = list(record["tags"])
        self.classes_ = _labels.from_words(self._words)
        # Sentences in CRFsuite's format are lists of attributes here, so tokens need no text.
        format = record["format"]
        self.format = {"crf-suite": None, "svm-hmm": "svmhmm"}[format] if isinstance(format, str) else "columns"
