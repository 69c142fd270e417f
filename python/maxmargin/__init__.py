"""Large-margin classifiers, taggers, parsers, aligners and labellers of sets and graphs, trained to a proven optimum.

>>> import maxmargin
>>> model = maxmargin.LinearClassifier(C=1.0).fit([[1.0, 0.0], [0.0, 1.0]], ["a", "b"])
>>> print(*model.predict([[2.0, 1.0]]))
a
"""

from __future__ import annotations

from maxmargin import datasets, metrics
from maxmargin._aligner import SequenceAligner
from maxmargin._base import ConvergenceWarning, NotFittedError
from maxmargin._check_task import check_task
from maxmargin._graphs import FactorGraphModel
from maxmargin._linear import KernelClassifier, LinearClassifier
from maxmargin._load import load
from maxmargin._multilabel import MultilabelClassifier
from maxmargin._native import version as _version
from maxmargin._parser import TreeParser
from maxmargin._structured import StructuredSVM
from maxmargin._tagger import SequenceTagger
from maxmargin._task import Task
from maxmargin._taxonomy import TaxonomyClassifier

__version__ = _version()

__all__ = [
    "ConvergenceWarning",
    "FactorGraphModel",
    "KernelClassifier",
    "LinearClassifier",
    "MultilabelClassifier",
    "NotFittedError",
    "SequenceAligner",
    "SequenceTagger",
    "StructuredSVM",
    "Task",
    "TaxonomyClassifier",
    "TreeParser",
    "check_task",
    "datasets",
    "load",
    "metrics",
]
