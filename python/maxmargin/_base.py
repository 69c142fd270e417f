"""What every estimator is made of: scikit-learn's base classes where it is installed, else their few rules."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

__all__ = ["HAS_SKLEARN", "BaseEstimator", "ClassifierMixin", "ConvergenceWarning", "DataConversionWarning", "NotFittedError"]

HAS_SKLEARN = False

if not TYPE_CHECKING:
    try:
        from sklearn.base import BaseEstimator, ClassifierMixin
        from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

        HAS_SKLEARN = True
    except ImportError:
        pass

if TYPE_CHECKING or not HAS_SKLEARN:

    class ConvergenceWarning(UserWarning):
        """Training has stopped before the gap was as small as was asked."""

    class DataConversionWarning(UserWarning):
        """Data were taken for something that they may not be."""

    class NotFittedError(ValueError, AttributeError):
        """An estimator was used before ``fit``."""

    class ClassifierMixin:
        """Marks classifiers."""

        _estimator_type = "classifier"

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
                    raise ValueError(
                        f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {names!r}."
                    )
                setattr(self, name, value)
            return self

        def __repr__(self) -> str:
            default = {name: p.default for name, p in inspect.signature(type(self).__init__).parameters.items()}
            given = {name: getattr(self, name, None) for name in self._get_param_names()}
            changed = [f"{name}={value!r}" for name, value in given.items() if value is not default[name]]
            return f"{type(self).__name__}({', '.join(changed)})"
