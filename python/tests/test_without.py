"""numpy is all that is needed."""

import subprocess
import sys
import textwrap

import pytest

BLOCK = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocked())
"""


def run(blocked, code):
    text = f"BLOCKED = {set(blocked)!r}\n" + BLOCK + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


ALL = ["scipy", "sklearn", "pandas", "polars", "tqdm", "matplotlib", "joblib"]


def test_everything_without_anything():
    told = run(
        ALL,
        """
        import pickle, warnings
        import numpy as np
        import maxmargin
        from maxmargin import datasets, LinearClassifier, SequenceTagger

        X, y = datasets.make_multiclass(60, features=5, nonzeros=2)
        assert type(X) is np.ndarray and X.shape == (60, 5)
        model = LinearClassifier(C=0.5, verbose=1).fit(X, y)
        assert model.score(X, y) > 0.5
        assert model.get_params()["C"] == 0.5
        assert repr(model) == "LinearClassifier(C=0.5, verbose=1)", repr(model)
        assert model.set_params(C=2.0).C == 2.0
        try:
            model.set_params(nonsense=1)
        except ValueError as error:
            assert "Invalid parameter 'nonsense'" in str(error)
        else:
            raise AssertionError
        assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()
        try:
            LinearClassifier().predict(X)
        except maxmargin.NotFittedError as error:
            assert isinstance(error, ValueError)
        else:
            raise AssertionError
        try:
            SequenceTagger().transition_features_
        except maxmargin.NotFittedError as error:
            assert "not fitted yet" in str(error)
        else:
            raise AssertionError
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            LinearClassifier(max_passes=1, relative_gap=1e-9).fit(X, y)
        assert issubclass(caught[0].category, maxmargin.ConvergenceWarning)
        X, y = datasets.make_tags(10)
        assert SequenceTagger(format="columns").fit(X, y).score(X, y) > 0.5
        print("done")
        """,
    )
    assert told == "done\n"


def test_partitions_need_no_dask_and_dask_says_what_it_needs():
    told = run(
        [*ALL, "distributed", "dask"],
        """
        from maxmargin import partitions
        model = partitions.train({"task": "binary"}, [([[0.0], [1.0]], [0, 1]), ([[2.0]], [1])])
        assert model.status_ == "converged"
        try:
            import maxmargin.dask
        except ImportError as error:
            print(error)
        """,
    )
    assert told == "maxmargin.dask needs Dask: pip install maxmargin[dask]\n"


def test_heavy_libraries_are_not_loaded_for_nothing():
    told = run(
        [],
        """
        import maxmargin
        maxmargin.LinearClassifier().fit([[0.0], [1.0]], [0, 1]).predict([[2.0]])
        maxmargin.SequenceTagger().fit([[{"a": 1.0}, {"b": 1.0}]], [["A", "B"]]).predict([[{"a": 1.0}]])
        print([name for name in ("sklearn", "scipy", "pandas", "polars", "matplotlib", "tqdm", "distributed") if name in sys.modules])
        """,
    )
    assert told == "[]\n"


def test_the_package_is_typed():
    import os

    import maxmargin

    assert os.path.exists(os.path.join(os.path.dirname(maxmargin.__file__), "py.typed"))


@pytest.mark.parametrize("name", ["__version__", "__all__"])
def test_names(name):
    import maxmargin

    assert getattr(maxmargin, name)
    for public in maxmargin.__all__:
        assert hasattr(maxmargin, public)
