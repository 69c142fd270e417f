"""What every estimator is made of: the rules of scikit-learn's estimators, without scikit-learn.

To import it takes 90 MB and most of a second, which nobody should pay who does not use it. So it is asked only where it has been imported
already, or asks itself: requests of metadata and pictures come from its own base class, and its exceptions are parents of ours.
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.utils import Tags

__all__ = ["BaseEstimator", "ClassifierMixin", "ConvergenceWarning", "DataConversionWarning", "NotFittedError", "kindred"]


class ConvergenceWarning(UserWarning):
    """Training has stopped before the gap was as small as was asked."""


class DataConversionWarning(UserWarning):
    """Data were taken for something that they may not be."""


class NotFittedError(ValueError, AttributeError):
    """An estimator was used before ``fit``."""


def kindred(kind: type[Any]) -> type[Any]:
    """An exception or warning of ours, which is scikit-learn's of that name, too, where that is in use."""
    return _of_both(kind) if "sklearn.exceptions" in sys.modules else kind


@functools.cache
def _of_both(kind: type[Any]) -> type[Any]:
    theirs = getattr(sys.modules["sklearn.exceptions"], kind.__name__)
    both = type(kind.__name__, (kind, theirs), {"__doc__": kind.__doc__, "__module__": kind.__module__})
    # Between processes it travels as ours.
    both.__reduce__ = lambda self: (kind, self.args)  # type: ignore[attr-defined]
    return both


_NOTHING = object()


@functools.cache
def _twin(kind: type[Any]) -> type[Any]:
    """What an estimator would be if scikit-learn's base class were its own."""
    return type(kind.__name__, (kind, sys.modules["sklearn.base"].BaseEstimator), {})


class BaseEstimator:
    """Parameters are the keywords of ``__init__``, and attributes of the same names."""

    @classmethod
    def _get_param_names(cls) -> list[str]:
        """The names of all parameters, in alphabetic order."""
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters and their values."""
        return {name: getattr(self, name) for name in self._get_param_names()}

    def set_params(self, **params: Any) -> Any:
        """Changes some parameters; they count from the next ``fit`` on."""
        names = self._get_param_names()
        for name, value in params.items():
            if name not in names:
                raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {names!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        default = {name: p.default for name, p in inspect.signature(type(self).__init__).parameters.items()}
        given = {name: getattr(self, name, None) for name in self._get_param_names()}
        changed = [f"{name}={value!r}" for name, value in given.items() if repr(value) != repr(default[name])]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __getattr__(self, name: str) -> Any:
        own = inspect.getattr_static(type(self), name, None)
        if isinstance(own, property):
            # It has raised an AttributeError, and NotFittedError is one: again, for what it says.
            return own.__get__(self)
        # What scikit-learn asks of its own base class: requests of metadata, pictures of pipelines. Not the tags of releases before 1.6, which
        # are gathered from parents; they do without.
        if "sklearn.base" in sys.modules and not name.startswith("__") and name != "_get_tags":
            twin = _twin(type(self))
            found = inspect.getattr_static(twin, name, _NOTHING)
            if isinstance(found, classmethod):
                return found.__get__(None, twin)
            if found is not _NOTHING:
                return found.__get__(self, type(self)) if hasattr(found, "__get__") else found
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import Tags, TargetTags

        return Tags(
            estimator_type=None, target_tags=TargetTags(required=False), transformer_tags=None, regressor_tags=None, classifier_tags=None
        )


class ClassifierMixin:
    """Marks classifiers."""

    _estimator_type = "classifier"

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import ClassifierTags

        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.estimator_type = "classifier"
        tags.classifier_tags = ClassifierTags()
        tags.target_tags.required = True
        return tags
