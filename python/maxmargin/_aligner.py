"""Alignments of two sequences."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from maxmargin import _json_lines, _native
from maxmargin._doc import documented
from maxmargin._estimator import Estimator
from maxmargin._files import Folder
from maxmargin._progress import Callback

if TYPE_CHECKING:
    from typing_extensions import Self

_WHAT = "sequences x, z and decoys"


@documented
class SequenceAligner(Estimator):
    """Learns what it scores to match two letters, and what gaps cost.

    A sample is a dict: sequences ``x`` and ``z`` that go together, ``decoys`` that do not go with x, and where wanted marks of the
    residues, ``sx``, ``sz`` and ``sdecoys``. Its output is the pair (ax, az): both with gaps, ``-``, equally long.

    Losses: zero-one (default: a decoy in the place of z), q, q4, hamming.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> from maxmargin import SequenceAligner
    >>> X = [{"x": "ACGT", "z": "AGT", "decoys": ["TTTT"]}, {"x": "GGAC", "z": "GGTAC", "decoys": ["CCCC"]}]
    >>> y = [("ACGT", "A-GT"), ("GG-AC", "GGTAC")]
    >>> aligner = SequenceAligner(C=10, alignment="global").fit(X, y)
    >>> [answer["rank"] for answer in aligner.predict(X)]
    [1, 1]
    """

    loss: str | None

    def __init__(
        self,
        C: float = 1.0,
        *,
        alignment: str | None = None,
        gaps: str | None = None,
        alphabet: str | None = None,
        gap_grid: Any = None,
        prior: Any = None,
        prior_gaps: Any = None,
        tied: bool = False,
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

    def fit(self, X: Any, y: Any = None, *, heldout: Any = None, callback: Callback | None = None) -> Self:
        """Trains.

        Parameters
        ----------
        X : list of dicts
            The sequences.
        y : list of pairs (ax, az), optional
            The true alignments, where they are not in the dicts.
        heldout : list of dicts or pair (X, y), optional
            Samples on which the loss is measured once a pass.
        callback : function, optional
            Gets a dict for each round; training stops where it returns True.

        Returns
        -------
        self
        """
        text = self._text(X, y)

        def prepare(folder: Folder) -> list[str]:
            options = self._options()
            if heldout is not None:
                test = heldout if isinstance(heldout, tuple) else (heldout, None)
                options += ["--heldout", folder.file("heldout", self._text(*test))]
            return options

        self._train(prepare, lambda options, watch: _native.train_text("align", options, text, None, watch), callback)
        return self

    def _text(self, X: Any, y: Any) -> bytes:
        return _json_lines.lines(_json_lines.with_outputs(X, y, ("ax", "az"), _WHAT), _WHAT)

    def predict(self, X: Any) -> list[dict[str, Any]]:
        """The best alignment of each sample, and where its homologue ranks among all candidates.

        Returns
        -------
        list of dicts
            ax, az: the aligned parts; x_begin, x_end, z_begin, z_end: where they lie, from 1; candidate: which sequence is
            aligned; score, rank, scores of all candidates, and more.
        """
        self._check_fitted()
        text = _json_lines.lines(_json_lines.samples_of(X, _WHAT), _WHAT)
        answer = self._ask("predict", ["--format", "json", "--scores"], text) if text else b""
        return [json.loads(line) for line in answer.splitlines()]

    def evaluate(self, X: Any, y: Any = None) -> dict[str, Any]:
        """The figures of ``maxmargin evaluate``: error, mean_rank, q_score and more."""
        found: dict[str, Any] = json.loads(self._ask("evaluate", ["--json"], self._text(X, y)))
        return found

    def score(self, X: Any, y: Any = None) -> float:
        """One less the mean of the loss that was trained for, before ``loss_scale``."""
        scale = self.get_params(deep=False)["loss_scale"] or 1.0
        return 1.0 - float(self.evaluate(X, y)["mean_loss"]) / float(scale)
