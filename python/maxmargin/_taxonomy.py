"""Classes that are nodes of a tree or lattice."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _labels, _modelfile, _settings
from maxmargin._classifier import RowClassifier
from maxmargin._doc import documented
from maxmargin._files import Folder, attributes_text, edges_of, is_path, matrix_text


@documented
class TaxonomyClassifier(RowClassifier):
    """Large-margin classifier whose classes are nodes of a tree or lattice.

    Losses: tree (default: the height of the first common ancestor), path, zero-one, matrix.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    classes_ : array
        The nodes that training has as classes, sorted.
    nodes_ : list
        All nodes of the taxonomy.

    Examples
    --------
    >>> from maxmargin import TaxonomyClassifier
    >>> tree = {"cat": "animal", "dog": "animal", "oak": "plant", "animal": "thing", "plant": "thing"}
    >>> X = [[1, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 0], [1, 0, 0, 2]]
    >>> model = TaxonomyClassifier(C=10, taxonomy=tree).fit(X, ["cat", "dog", "oak", "cat"])
    >>> print(*model.predict([[0, 2, 0, 0], [1, 0, 3, 0]]))
    oak dog
    """

    nodes_: list[Any]
    _node_words: list[str]

    _own = RowClassifier._own | {"kernel", "taxonomy", "class_features"}

    def __init__(
        self,
        C: float = 1.0,
        *,
        taxonomy: Any = None,
        architecture: str | None = None,
        ancestor_weight: float | None = None,
        class_features: Any = None,
        loss: str | None = None,
        penalty: str | None = None,
        rescaling: str | None = None,
        bias: float | None = None,
        class_weight: Any = None,
        cost_matrix: Any = None,
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

    def _task(self, classes: int) -> str:
        return "taxonomy"

    def _edges(self, classes: list[Any]) -> list[tuple[Any, Any]]:
        taxonomy: Any = self.get_params(deep=False)["taxonomy"]
        if taxonomy is None:
            taken = {_labels.text_of(label) for label in classes}
            root = next(name for name in ("root", *(f"root{k}" for k in range(len(taken) + 1))) if name not in taken)
            return [(label, root) for label in classes]
        if is_path(taxonomy):
            if not os.path.exists(taxonomy):
                raise ValueError(f"taxonomy: there is no file {os.fspath(taxonomy)!r}")
            with open(taxonomy, encoding="utf-8") as file:
                taxonomy = file.read()
        return edges_of(taxonomy)

    def _names(self, classes: NDArray[Any]) -> list[str]:
        labels = classes.tolist()
        self._tree = self._edges(labels)
        self.nodes_ = list(dict.fromkeys(node for edge in self._tree for node in edge))
        self._node_words = _labels.words_of(self.nodes_, _labels.NODE)
        word = dict(zip(self.nodes_, self._node_words, strict=True))
        # Nodes of a file are words, classes may be the numbers that they look like.
        by_text = {_labels.text_of(node): name for node, name in word.items()}
        found = [word.get(label) or by_text.get(_labels.text_of(label)) for label in labels]
        for label, name in zip(labels, found, strict=True):
            if name is None:
                raise ValueError(f"taxonomy: the class {label!r} is no node; nodes are {', '.join(map(repr, self.nodes_[:8]))} ...")
        return [name for name in found if name is not None]

    def _matrix_text(self, matrix: Any) -> str:
        # Without a header the order would be that of the words, which need not be that of the classes.
        return matrix_text(matrix, self._words, has_header=True)

    def _prepare(self, folder: Folder) -> dict[str, Any]:
        given = self.get_params(deep=False)
        word = dict(zip(self.nodes_, self._node_words, strict=True))
        tree = "".join(f"{word[child]} {word[parent]}\n" for child, parent in self._tree)
        del self._tree
        return {
            **super()._prepare(folder),
            "taxonomy": folder.file("taxonomy", tree),
            "class_features": folder.given("class_features", given["class_features"], lambda f: attributes_text(f, word)),
            "kernel": _settings.kernel_word(given["kernel"], given["gamma"], given["degree"], given["coef0"]),
        }

    def predict(self, X: Any, depth_threshold: float | None = None) -> NDArray[Any]:
        """The class of each sample.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_samples, n_features)
            The samples.
        depth_threshold : float, optional
            Answer with the lowest ancestor of the best class whose classes lead all others by at least this much: an inner
            node where the classes below it cannot be told apart.
        """
        if depth_threshold is None:
            return super().predict(X)
        words = self._model().nodes(self._table(X).rows(), float(depth_threshold), self._threads())
        node = dict(zip(self._node_words, self.nodes_, strict=True))
        node.update(zip(self._words, self.classes_.tolist(), strict=True))
        found = [node[word] for word in words]
        are_plain = all(isinstance(label, (str, int)) for label in found) and len({type(label) for label in found}) == 1
        return np.array(found) if are_plain else _labels.one_dimensional(found)

    def _adopt(self, data: bytes, record: dict[str, Any]) -> None:
        super()._adopt(data, record)
        self._node_words = list(_modelfile.record(data)["nodes"])
        self.nodes_ = _labels.from_words(self._node_words).tolist()
        if all(isinstance(node, str) for node in self.nodes_):
            # Either all nodes are numbers, or all are words.
            self.classes_ = np.array(self._words)
