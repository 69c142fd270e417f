"""Parameters of estimators and options of the program are the same, from one declaration."""

import inspect

import numpy as np
import pytest

import maxmargin
from maxmargin import _doc, _settings

ESTIMATORS = [
    maxmargin.LinearClassifier,
    maxmargin.KernelClassifier,
    maxmargin.TaxonomyClassifier,
    maxmargin.MultilabelClassifier,
    maxmargin.SequenceTagger,
    maxmargin.TreeParser,
    maxmargin.SequenceAligner,
    maxmargin.FactorGraphModel,
]


def parameters(estimator):
    return [name for name in inspect.signature(estimator.__init__).parameters if name != "self"]


def test_every_option_is_a_parameter_of_some_estimator():
    known = {_settings.option_of(name) for estimator in ESTIMATORS for name in parameters(estimator)}
    missing = set(_settings.declared()) - known - set(_settings.PROGRAM_ONLY) - {"help", "version"}
    assert not missing, f"options that no estimator has: {sorted(missing)}"


def test_options_that_are_left_out_exist():
    assert set(_settings.PROGRAM_ONLY) <= set(_settings.declared())


@pytest.mark.parametrize("estimator", [*ESTIMATORS, maxmargin.StructuredSVM], ids=lambda e: e.__name__)
def test_every_parameter_is_an_option(estimator):
    options = set(_settings.declared())
    for name in parameters(estimator):
        if name not in _settings.PYTHON_ONLY and name != "task":
            assert _settings.option_of(name) in options, name


@pytest.mark.parametrize("estimator", [*ESTIMATORS, maxmargin.StructuredSVM], ids=lambda e: e.__name__)
def test_every_parameter_is_documented(estimator):
    for name in parameters(estimator):
        assert f"\n{name} : " in estimator.__doc__, name
    assert "{parameters}" not in estimator.__doc__


def test_no_text_is_without_a_parameter():
    used = {name for estimator in ESTIMATORS for name in parameters(estimator)}
    assert set(_doc.TEXTS) == used


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"C": 1.0}, []),
        ({"C": 0.1}, ["--c-per-example", "0.1"]),
        ({"C": np.float64(0.1)}, ["--c-per-example", "0.1"]),
        ({"C": 10}, ["--c-per-example", "10"]),
        ({"n_jobs": 2, "random_state": np.int64(3)}, ["--threads", "2", "--seed", "3"]),
        ({"n_jobs": -1, "random_state": None}, []),
        ({"n_jobs": -1000}, ["--threads", "1"]),
        ({"C_path": [0.1, 1]}, ["--c-path-per-example", "0.1,1"]),
        ({"C_path": "auto"}, ["--c-path", "auto"]),
        ({"keep_best": True, "resume": False}, ["--keep-best"]),
        ({"line_search": False}, ["--line-search", "off"]),
        ({"cache": False}, ["--cache", "off"]),
        ({"class_weight": {"a": 2.0, "b": 0.5}}, ["--class-weight", "a=2.0", "--class-weight", "b=0.5"]),
        ({"class_weight": "balanced"}, ["--class-weight", "balanced"]),
        ({"forbid": [("A", "B"), "C,D"]}, ["--forbid", "A,B", "--forbid", "C,D"]),
        ({"groups": -1}, ["--groups=-1"]),
        ({"C": 10**30}, ["--c-per-example", "1e+30"]),
        ({"max_passes": 2.5, "loss": "hamming"}, ["--max-passes", "2.5", "--loss", "hamming"]),
    ],
)
def test_words(given, line):
    assert _settings.words(given) == line


def test_a_generator_draws_the_seed_again_and_again_the_same():
    words = [_settings.words({"random_state": np.random.RandomState(7)}) for _ in range(2)]
    assert words[0] == words[1]
    assert words[0][0] == "--seed"


@pytest.mark.parametrize("given", [{"keep_best": "yes"}, {"solver": object()}, {"random_state": "x"}, {"random_state": -1}, {"random_state": 2**64}, {"C": 10**400}, {"n_jobs": 0}, {"n_jobs": 1.5}, {"n_jobs": "2"}, {"nonsense": 1}])
def test_values_that_are_none(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        _settings.words(given)


def test_kernels():
    assert _settings.kernel_word("rbf", 0.5, None, None) == "rbf:gamma=0.5"
    assert _settings.kernel_word("poly", "scale", 2, 1.0) == "poly:degree=2,gamma=scale,coef0=1.0"
    assert _settings.kernel_word("rbf:gamma=2", None, None, None) == "rbf:gamma=2"
    with pytest.raises(ValueError, match="gamma"):
        _settings.kernel_word("rbf:gamma=2", 1.0, None, None)


def test_what_the_program_refuses_is_a_value_error():
    model = maxmargin.LinearClassifier(solver="fastest")
    with pytest.raises(ValueError, match="fastest"):
        model.fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="'-1' for 'groups"):
        maxmargin.LinearClassifier(groups=-1).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match="(?i)negative|positive"):
        maxmargin.LinearClassifier(C=-1).fit([[0.0], [1.0]], [0, 1])
