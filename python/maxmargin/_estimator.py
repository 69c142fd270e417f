"""What all estimators share: training, its history, model files, pictures."""

from __future__ import annotations

import functools
import json
import os
import tempfile
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from maxmargin import _native, _settings
from maxmargin._base import BaseEstimator, ConvergenceWarning, NotFittedError, kindred
from maxmargin._files import Folder
from maxmargin._progress import Callback, Watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

Train = Callable[[list[str], Watch], tuple[bytes, str, list[str]]]

# Models of the library by their estimators. They are no attributes, so that predicting changes no estimator and pickles hold
# the bytes alone.
_MODELS: weakref.WeakKeyDictionary[Any, tuple[bytes, _native.Model]] = weakref.WeakKeyDictionary()


Fit = TypeVar("Fit", bound=Callable[..., Any])


def all_or_nothing(fit: Fit) -> Fit:
    """An estimator whose ``fit`` fails, or is interrupted, stays what it was."""

    @functools.wraps(fit)
    def guarded(self: Any, *args: Any, **settings: Any) -> Any:
        before = dict(self.__dict__)
        try:
            return fit(self, *args, **settings)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return guarded  # type: ignore[return-value]


class Estimator(BaseEstimator):
    """The base of all estimators that have a model file."""

    # What estimators have after fit.
    model_: bytes
    report_: dict[str, Any]
    history_: dict[str, NDArray[Any]]
    status_: str
    certificate_: str
    primal_: float
    dual_: float
    gap_: float
    n_iter_: int

    # Parameters of the program that need more than `_settings.words`; subclasses add theirs.
    _own: frozenset[str] = frozenset(_settings.PYTHON_ONLY)

    def _store(self, given: Mapping[str, Any]) -> None:
        """Keeps the keywords of __init__, as they are."""
        for name, value in given.items():
            if name not in ("self", "__class__"):
                setattr(self, name, value)

    def _options(self, **changed: Any) -> list[str]:
        """The words for the program; `changed` replaces parameters or adds options."""
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in self._own}
        parameters.update(changed)
        if parameters.get("C_path") is not None:
            parameters["C"] = None
        if parameters.get("cost_matrix") is not None and parameters.get("loss") is None:
            parameters["loss"] = "matrix"
        # A fixed order, so that the same parameters are the same words.
        return _settings.words(dict(sorted(parameters.items())))

    def _train(self, prepare: Callable[[Folder], list[str]], train: Train, callback: Callback | None) -> None:
        """Trains with options that `prepare` makes, and keeps what comes of it."""
        if callback is not None and not callable(callback):
            raise ValueError(f"callback={callback!r}: must be a function of a dict, or None")
        watch = Watch(callback, getattr(self, "verbose", 0))
        try:
            with tempfile.TemporaryDirectory(prefix="maxmargin-") as path:
                folder = Folder(path)
                options = prepare(folder)
                if getattr(self, "warm_start", False) and hasattr(self, "model_"):
                    options += ["--warm-start", folder.file("start.mm", self.model_)]
                try:
                    model, summary, notes = train(options, watch)
                except ValueError as error:
                    if path not in str(error):
                        raise
                    # What was a Python object has no path for the user.
                    raise ValueError(str(error).replace(path + os.sep, "")) from None
        finally:
            watch.close()
        self.model_ = bytes(model)
        self.history_ = watch.history()
        self._keep_report(json.loads(summary))
        for note in notes:
            warnings.warn(f"{type(self).__name__}: {note}", UserWarning, stacklevel=4)
        if not watch.is_stopped:
            warn_of_status(self, stacklevel=4)

    def _keep_report(self, report: dict[str, Any]) -> None:
        self.report_ = report
        self.status_ = report["status"]
        self.certificate_ = report["certificate"]
        number = {key: float("nan") if report.get(key) is None else float(report[key]) for key in ("primal", "dual", "gap")}
        self.primal_, self.dual_, self.gap_ = number["primal"], number["dual"], number["gap"]
        self.n_iter_ = int(report["rounds"])

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise kindred(NotFittedError)(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before using this "
                "estimator."
            )

    def _model(self) -> _native.Model:
        """The library's model, made when it is needed first."""
        self._check_fitted()
        kept = _MODELS.get(self)
        if kept is None or kept[0] is not self.model_:
            kept = self.model_, _native.Model(self.model_)
            _MODELS[self] = kept
        return kept[1]

    def _threads(self) -> int:
        """For prediction; 0: one a core."""
        return _settings.threads(getattr(self, "n_jobs", None)) or 0

    def _ask(self, command: str, options: list[str], text: bytes) -> bytes:
        """What the program says about the model; its notes become warnings."""
        jobs = self._threads()
        if jobs and command != "inspect":
            options = [*options, "--threads", str(jobs)]
        answer, notes = self._model().ask(command, options, text)
        for note in notes:
            warnings.warn(f"{type(self).__name__}: {note}", UserWarning, stacklevel=4)
        return answer

    def inspect(self, top: int | None = None) -> dict[str, Any]:
        """What the model is and what it has learned, as ``maxmargin inspect --json`` tells it.

        Parameters
        ----------
        top : int, optional
            How many of the strongest weights are told of each class.
        """
        options = ["--json"] if top is None else ["--json", "--top", _settings.count("top", top)]
        found: dict[str, Any] = json.loads(self._ask("inspect", options, b""))
        return found

    def to_bytes(self) -> bytes:
        """The bytes of the model file."""
        self._check_fitted()
        return self.model_

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model file, which the program and :func:`maxmargin.load` read.

        Parameters
        ----------
        path : path
            Its name; ``.mm`` by custom. It appears when it is complete. A link stays one, and a device or pipe is written to.
        """
        self._check_fitted()
        target = os.path.realpath(path)
        is_special = os.path.exists(target) and not os.path.isfile(target)
        temporary = target if is_special else f"{target}.{os.getpid()}.part"
        try:
            with open(temporary, "wb") as file:
                file.write(self.model_)
            if not is_special:
                os.replace(temporary, target)
        except OSError as error:
            # Nobody has asked for the file that it is until it is complete.
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        finally:
            if not is_special and os.path.exists(temporary):
                os.remove(temporary)

    def plot_convergence(self, ax: Any = None) -> Any:
        """Draws primal and dual values over the passes; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw.

        Returns
        -------
        matplotlib axes
        """
        if not hasattr(self, "history_"):
            raise kindred(NotFittedError)(f"This {type(self).__name__} has no history: it was loaded, or not fitted yet.")
        return plot(self.history_, ax)

    def _adopt(self, data: bytes, record: dict[str, Any]) -> None:
        """Becomes the model of a file."""
        self.model_ = data
        summary = dict(record["summary"], task=record["task"])
        self._keep_report(summary)


def warn_of_status(estimator: Any, stacklevel: int) -> None:
    """A warning where training did not reach what was asked."""
    if estimator.status_ == "converged":
        return
    ways = {
        "max-passes": "Raise max_passes, or ask for less with a larger epsilon",
        "max-seconds": "Raise max_seconds, or ask for less with a larger epsilon",
        "stalled": "As a rule the gap is at the level of rounding: a larger epsilon is reached",
        "interrupted": "Training was stopped from outside",
    }
    way = ways.get(estimator.status_, "See report_")
    bound = f"at most {estimator.gap_:.3g} above its minimum" if estimator.gap_ == estimator.gap_ else "of unknown distance to its minimum"
    warnings.warn(
        f"{type(estimator).__name__} did not converge (status {estimator.status_}): the objective {estimator.primal_:.6g} is {bound}. {way}.",
        kindred(ConvergenceWarning),
        stacklevel=stacklevel + 1,
    )


def plot(history: Mapping[str, NDArray[Any]], ax: Any) -> Any:
    """Primal and dual values over the passes."""
    import matplotlib.pyplot as plt
    import numpy as np

    if ax is None:
        _, ax = plt.subplots()
    for name in ("primal", "dual"):
        known = np.isfinite(history[name])
        ax.plot(history["passes"][known], history[name][known], marker=".", label=name)
    ax.set_xlabel("passes over the data")
    ax.set_ylabel("objective")
    ax.legend()
    return ax
