"""Model files back to estimators."""

from __future__ import annotations

import os
from typing import Any

from maxmargin import _modelfile, _native
from maxmargin._aligner import SequenceAligner
from maxmargin._estimator import Estimator
from maxmargin._graphs import FactorGraphModel
from maxmargin._linear import KernelClassifier, LinearClassifier
from maxmargin._multilabel import MultilabelClassifier
from maxmargin._parser import TreeParser
from maxmargin._tagger import SequenceTagger
from maxmargin._taxonomy import TaxonomyClassifier

_ESTIMATORS: dict[str, type[Estimator]] = {
    "taxonomy": TaxonomyClassifier,
    "tag": SequenceTagger,
    "parse": TreeParser,
    "multilabel": MultilabelClassifier,
    "graph": FactorGraphModel,
    "align": SequenceAligner,
}


def load(source: str | os.PathLike[str] | bytes) -> Any:
    """The estimator of a model file, ready to predict.

    Parameters
    ----------
    source : path or bytes
        What :meth:`save`, :meth:`to_bytes` or the program wrote.

    Returns
    -------
    estimator
        Of the class that goes with the model's task. Its classes are words, or numbers where all of them are whole numbers; what
        cannot be a word in a file, such as tuples or text with blanks, is class0, class1 and so on (a pickle keeps all as it was).
        Parameters are those of the training as far as the file tells them: C, penalty, rescaling, loss_scale, bias
        and the kernel.

    Examples
    --------
    >>> import maxmargin
    >>> model = maxmargin.LinearClassifier().fit([[0.0, 1.0], [1.0, 0.0]], [3, 5])
    >>> again = maxmargin.load(model.to_bytes())
    >>> print(*again.predict([[0.0, 2.0]]))
    3
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        data = bytes(source)
    else:
        with open(source, "rb") as file:
            data = file.read()
    # The library looks at every size and the checksum before anything of it is used.
    _native.Model(data)
    record = _modelfile.record(data)
    task = record["task"]
    parameters = _parameters(record)
    if task in ("binary", "multiclass"):
        kind: type[Estimator] = KernelClassifier if record.get("kernel") is not None else LinearClassifier
    else:
        kind = _ESTIMATORS[task]
    estimator = kind(**parameters)
    estimator._adopt(data, record)
    return estimator


def _parameters(record: dict[str, Any]) -> dict[str, Any]:
    """Of the training, as far as the file tells them for all tasks."""
    settings = record.get("formulation", record)
    examples = record["summary"].get("examples")
    found: dict[str, Any] = {}
    if examples:
        found["C"] = _modelfile.number(settings["c"]) / examples
    if record.get("kernel") is not None:
        # {"shape": {"rbf": {"gamma": 0.5}}}: the numbers are parameters, too.
        ((found["kernel"], numbers),) = record["kernel"]["shape"].items()
        found.update({name: value if name == "degree" else _modelfile.number(value) for name, value in numbers.items()})
    for name, default in (("rescaling", "margin"), ("penalty", "linear")):
        if settings.get(name, default) != default:
            found[name] = settings[name]
    if _modelfile.number(record.get("bias", 0.0)):
        found["bias"] = _modelfile.number(record["bias"])
    if _modelfile.number(settings.get("loss_scale", 1.0)) != 1.0:
        found["loss_scale"] = _modelfile.number(settings["loss_scale"])
    return found
