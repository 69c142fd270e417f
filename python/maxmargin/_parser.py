"""Trees for sentences."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from maxmargin import _native, _rows, _settings
from maxmargin._doc import documented
from maxmargin._estimator import Estimator, all_or_nothing
from maxmargin._files import Folder
from maxmargin._progress import Callback
from maxmargin._trees import from_brackets, leaves, to_brackets, word_of

if TYPE_CHECKING:
    from typing_extensions import Self


def _is_tree(sentence: Any) -> bool:
    """A tree, and not a sentence?"""
    if isinstance(sentence, str):
        return sentence.lstrip().startswith("(")
    # A label and then trees; sentences have words, or pairs from the first place on.
    return (
        isinstance(sentence, (tuple, list))
        and len(sentence) > 1
        and isinstance(sentence[0], str)
        and all(isinstance(child, (tuple, list)) for child in sentence[1:])
    )


@documented
class TreeParser(Estimator):
    """Parses sentences by a grammar that is read off the trees that it learns from.

    Trees are strings in brackets, ``"(S (NP (DT the) (NN cat)) (VP (VB sleeps)))"``, or nested tuples or lists of the same shape.
    Sentences are lists of tags, of (word, tag) pairs or, with ``terminals='words'``, of words.

    Losses: f1 (default), hamming, zero-one.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> from maxmargin import TreeParser
    >>> trees = ["(S (NP (DT the) (NN cat)) (VP (VB sleeps)))", "(S (NP (PRP she)) (VP (VB sees) (NP (DT the) (NN dog))))"]
    >>> parser = TreeParser(C=10).fit(trees)
    >>> parser.predict([[("she", "PRP"), ("sleeps", "VB")]])
    ['(S (NP (PRP she)) (VP (VB sleeps)))']
    """

    terminals: str | None

    def __init__(
        self,
        C: float = 1.0,
        *,
        terminals: str | None = None,
        features: str | None = None,
        parent_annotation: bool = False,
        binarise: str | None = None,
        markov: int | None = None,
        min_count: int | None = None,
        keep_empty: bool = False,
        keep_functions: bool = False,
        max_words: int | None = None,
        fallback: bool = False,
        max_span: int | None = None,
        exact_words: int | None = None,
        rare_below: int | None = None,
        loss: str | None = None,
        penalty: str | None = None,
        rescaling: str | None = None,
        loss_scale: float | None = None,
        C_path: Any = None,
        solver: str | None = None,
        groups: int | None = None,
        cache: Any = None,
        line_search: bool | None = None,
        max_cuts: int | None = None,
        update: str | None = None,
        batch: int | None = None,
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

    def _brackets(self, trees: Any, sentences: Any = None) -> list[str]:
        """Trees as strings, checked."""
        if isinstance(trees, str):
            raise ValueError("y is one string; it must be a list of trees (maxmargin.datasets.load_trees reads a file)")
        found = []
        for i, tree in enumerate(trees):
            if not _is_tree(tree):
                raise ValueError(f"sample {i}: {tree!r} is no tree; trees are strings in brackets or nested tuples (label, child, ...)")
            try:
                nested = from_brackets(tree) if isinstance(tree, str) else tree
                words = list(leaves(nested))
                found.append(to_brackets(nested))
                # A lone surrogate is no text.
                found[-1].encode()
            except ValueError as error:
                raise ValueError(f"sample {i}: {error}") from error
            except RecursionError:
                raise ValueError(f"sample {i}: the tree is too deep; leave it out") from None
            if sentences is not None and not _is_tree(sentences[i]) and len(sentences[i]) != len(words):
                # Empty elements are no words of a sentence.
                present = [word for word, tag in words if tag != "-NONE-"]
                if len(sentences[i]) != len(present):
                    raise ValueError(f"sample {i}: the sentence has {len(sentences[i])} tokens, its tree {len(words)}")
        return found

    @all_or_nothing
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, heldout: Any = None, callback: Callback | None = None) -> Self:
        """Trains.

        Parameters
        ----------
        X : list of sentences or of trees
            Sentences; or trees, where there is no y.
        y : list of trees, optional
            The tree of each sentence. It has all that is learned from.
        sample_weight : array of shape (n_samples,), optional
            How much each tree counts; those of weight 0 are left out.
        heldout : list of trees or pair (X, y), optional
            Trees on which the loss is measured once a pass.
        callback : function, optional
            Gets a dict for each round; training stops where it returns True.

        Returns
        -------
        self
        """
        X, y = _rows.kept(X), _rows.kept(y)
        trees = X if y is None else y
        if y is not None and len(X) != len(y):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(X), len(y)]}")
        weights, (lines,) = _rows.weighed(sample_weight, self._brackets(trees, None if y is None else X))
        if not lines:
            raise ValueError("there are no trees; at least one is required")
        self._form = "strings" if isinstance(trees[0], str) else "tuples"

        def prepare(folder: Folder) -> list[str]:
            options = self._options()
            if heldout is not None:
                test = heldout[1] if isinstance(heldout, tuple) and len(heldout) == 2 and not _is_tree(heldout[0]) else heldout
                options += ["--heldout", folder.file("heldout", "\n".join(self._brackets(test)) + "\n")]
            return options

        text = ("\n".join(lines) + "\n").encode()
        self._train(prepare, lambda options, watch: _native.train_text("parse", options, text, weights, watch), callback)
        return self

    def _line(self, i: int, sentence: Any) -> str:
        """A sentence as the program reads it."""
        if _is_tree(sentence):
            sentence = list(leaves(from_brackets(sentence) if isinstance(sentence, str) else sentence))
        if isinstance(sentence, str):
            raise ValueError(f"sample {i} is a string, not a list of tokens; sentence.split() makes one")
        parts = []
        for j, token in enumerate(sentence):
            pair = (token, token) if isinstance(token, str) else tuple(token) if isinstance(token, Iterable) else ()
            if len(pair) != 2 or not all(isinstance(part, str) and len(part.split()) == 1 for part in pair):
                raise ValueError(f"sample {i}, token {j}: {token!r} is neither a word nor a (word, tag) pair")
            word, tag = word_of(pair[0]), pair[1]
            parts.append(word if self.terminals == "words" else f"{word}/{word_of(tag)}")
        if not parts:
            raise ValueError(f"sample {i} has no tokens; leave it out")
        line = " ".join(parts)
        try:
            line.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"sample {i}: {error}") from error
        return line

    def _predicted(self, X: Any, options: list[str]) -> list[str]:
        self._check_fitted()
        if isinstance(X, str) or not isinstance(X, Iterable):
            raise ValueError(f"X is {reprlib.repr(X)}; it must be a list of sentences, and a sentence a list of tokens")
        lines = [self._line(i, sentence) for i, sentence in enumerate(X)]
        if not lines:
            return []
        answer = self._ask("predict", options, ("\n".join(lines) + "\n").encode()).decode()
        return [line for line in answer.split("\n") if line]

    def _tree(self, line: str) -> Any:
        return line if getattr(self, "_form", "strings") == "strings" else from_brackets(line)

    def predict(self, X: Any) -> list[Any]:
        """The best tree of each sentence, as strings or tuples, whatever ``fit`` got. Where the grammar has none, a makeshift one."""
        return [self._tree(line) for line in self._predicted(X, []) if not line.startswith("#")]

    def predict_n_best(self, X: Any, n: int = 5) -> list[list[tuple[Any, float]]]:
        """The n best trees of each sentence and their scores, the best first; nan where the grammar has no tree."""
        answer: list[list[tuple[Any, float]]] = []
        score = float("nan")
        for line in self._predicted(X, ["--n-best", _settings.count("n", n)]):
            if line.startswith("#"):
                _, number, told = line.split()[:3]
                score = float("nan") if told == "fallback" else float(told)
                if number == "0":
                    answer.append([])
            else:
                answer[-1].append((self._tree(line), score))
        return answer

    def evaluate(self, trees: Any) -> dict[str, Any]:
        """The figures of ``maxmargin evaluate``: bracket_f1, exact_match and more, as evalb counts them."""
        text = "\n".join(self._brackets(trees)) + "\n"
        found: dict[str, Any] = json.loads(self._ask("evaluate", ["--json"], text.encode()))
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """The F1 of brackets, as evalb counts them."""
        return float(self.evaluate(X if y is None else y)["bracket_f1"])

    def _adopt(self, data: bytes, record: dict[str, Any]) -> None:
        super()._adopt(data, record)
        self._form = "strings"
        self.terminals = record["shape"]["terminals"]
