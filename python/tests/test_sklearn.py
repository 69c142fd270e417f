"""At home in scikit-learn."""

import inspect
import warnings

import numpy as np
import pytest

from maxmargin import (
    KernelClassifier,
    LinearClassifier,
    MultilabelClassifier,
    SequenceTagger,
    StructuredSVM,
    Task,
    TaxonomyClassifier,
    datasets,
    metrics,
)

sklearn = pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from sklearn.base import clone, is_classifier  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

TO_THE_END = "needs training to the end, far beyond the default epsilon"
OFFSET = "needs an offset, which is off by default as it is in the program"
SCALE = "gamma='scale' depends on the rows, as in sklearn.svm.SVC"
INDICATORS = "gives a column of classes; label sets are indicator matrices of zeros and ones"

EQUIVALENCE = ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data")

CASES = [
    (LinearClassifier(bias=1.0, relative_gap=1e-13), {}),
    (KernelClassifier(bias=1.0, gamma=0.1, relative_gap=1e-12, max_passes=2000), {}),
    (TaxonomyClassifier(bias=1.0, relative_gap=1e-13), {}),
    (LinearClassifier(max_passes=1000), {**dict.fromkeys(EQUIVALENCE, TO_THE_END), "check_class_weight_classifiers": OFFSET}),
    (KernelClassifier(), dict.fromkeys(EQUIVALENCE, TO_THE_END + "; " + SCALE)),
    (TaxonomyClassifier(max_passes=1000), {**dict.fromkeys(EQUIVALENCE, TO_THE_END), "check_class_weight_classifiers": OFFSET}),
    (
        MultilabelClassifier(),
        {
            **dict.fromkeys(EQUIVALENCE, TO_THE_END),
            **dict.fromkeys(
                [
                    "check_estimators_dtypes",
                    "check_sample_weights_pandas_series",
                    "check_sample_weights_not_an_array",
                    "check_sample_weights_shape",
                    "check_sample_weights_not_overwritten",
                    "check_classifier_data_not_an_array",
                    "check_classifiers_classes",
                    "check_classifiers_train",
                    "check_classifier_not_supporting_multiclass",
                    "check_fit2d_1feature",
                ],
                INDICATORS,
            ),
        },
    ),
]


# Before 1.6 checks cannot be excused.
IS_OLD = "expected_failed_checks" not in inspect.signature(check_estimator).parameters


@pytest.mark.skipif(not IS_OLD, reason="the same with reports is below")
@pytest.mark.filterwarnings("ignore")
def test_estimator_checks_of_old_releases():
    check_estimator(LinearClassifier(bias=1.0, relative_gap=1e-13))


@pytest.mark.skipif(IS_OLD, reason="this scikit-learn cannot excuse checks")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("estimator", "expected"), CASES, ids=lambda v: repr(v) if not isinstance(v, dict) else "")
def test_estimator_checks(estimator, expected):
    """All of scikit-learn's checks, but for those that are named above with the reason."""
    results = check_estimator(estimator, expected_failed_checks=expected, on_fail=None, on_skip=None)
    failed = [f"{r['check_name']}: {r['exception']}" for r in results if r["status"] == "failed"]
    assert not failed, "\n".join(failed)
    assert sum(r["status"] == "passed" for r in results) >= 40
    # An exception that is needed no more is to go.
    passed = {r["check_name"] for r in results if r["status"] == "passed"}
    excused = {r["check_name"] for r in results if r["status"] == "xfail"}
    assert set(expected) <= excused, set(expected) - excused
    assert not (set(expected) & passed - excused)


@pytest.fixture(scope="module")
def data():
    X, y = datasets.make_multiclass(120, features=6, noise=0.1, random_state=1)
    return X, y


def test_clone_and_params():
    model = LinearClassifier(C=3.0, class_weight={1: 2.0}, solver="bcfw")
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert is_classifier(again)
    assert "C=3.0" in repr(model)
    assert again.set_params(C=5.0).C == 5.0
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(nonsense=1)


def test_search_and_pipelines(data):
    from sklearn.model_selection import GridSearchCV, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    X, y = data
    pipeline = make_pipeline(MaxAbsScaler(), LinearClassifier(n_jobs=1))
    scores = cross_val_score(pipeline, X, y, cv=3)
    assert scores.shape == (3,)
    assert scores.mean() > 0.6
    search = GridSearchCV(pipeline, {"linearclassifier__C": [0.01, 1.0], "linearclassifier__bias": [None, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ >= scores.mean() - 0.1


def test_search_in_other_processes(data):
    from sklearn.model_selection import GridSearchCV

    X, y = data
    search = GridSearchCV(LinearClassifier(n_jobs=1), {"C": [0.01, 1.0]}, cv=2, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.5


def test_taggers_are_searched():
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import GridSearchCV

    X, y = datasets.make_tags(40, tags=3, words=20, length=5, random_state=1)
    search = GridSearchCV(SequenceTagger(format="columns"), {"C": [0.01, 1.0]}, cv=2, scoring=make_scorer(metrics.token_accuracy))
    search.fit(X, y)
    assert search.best_score_ > 0.5


class Sign(Task):
    def features(self, x, y):
        return x * y

    def argmax(self, x, w, y_true=None):
        return max((-1, 1), key=lambda y: y * (w @ x) + (0 if y_true is None else self.loss(y_true, y)))


def test_own_tasks_are_searched(data):
    from sklearn.model_selection import GridSearchCV

    X, y = data
    rows = list(X.toarray() if hasattr(X, "toarray") else X)
    search = GridSearchCV(StructuredSVM(Sign()), {"C": [0.01, 1.0]}, cv=2).fit(rows, [1 if label == y[0] else -1 for label in y])
    assert -1 < search.best_score_ <= 0
    assert "C=0.25" in repr(clone(StructuredSVM(Sign(), C=0.25)))


def test_calibration_and_roc(data):
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.metrics import roc_auc_score

    X, y = data
    binary = y == y[0]
    model = LinearClassifier().fit(X, binary)
    assert roc_auc_score(binary, model.decision_function(X)) > 0.6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        calibrated = CalibratedClassifierCV(LinearClassifier(), cv=3).fit(X, y)
    assert calibrated.predict_proba(X).shape == (120, 3)


def test_the_objective_is_that_of_linear_svc(data):
    from sklearn.svm import LinearSVC

    X, y = data
    binary = np.where(y == y[0], 1, -1)
    own = LinearClassifier(C=0.3, relative_gap=1e-7).fit(X, binary)
    peer = LinearSVC(C=0.3, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=1_000_000).fit(X, binary)

    def objective(w):
        return 0.5 * w @ w + 0.3 * np.maximum(0, 1 - binary * (X @ w)).sum()

    assert objective(own.coef_[0]) == pytest.approx(objective(peer.coef_[0]), rel=1e-5)
    assert own.primal_ == pytest.approx(objective(peer.coef_[0]), rel=1e-5)
    many = LinearClassifier(C=0.3, relative_gap=1e-7).fit(X, y)
    peer = LinearSVC(C=0.3, multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=1_000_000).fit(X, y)
    np.testing.assert_allclose(many.coef_, peer.coef_, atol=1e-3)


def test_metadata_routing(data):
    from sklearn.model_selection import GridSearchCV

    X, y = data
    plain = LinearClassifier()
    assert plain.fit(X, y, sample_weight=np.ones(120)).score(X, y) > 0.5
    with pytest.raises(AttributeError, match="set_nonsense_request"):
        plain.set_nonsense_request  # noqa: B018
    if not hasattr(plain, "set_fit_request"):
        pytest.skip("this scikit-learn routes no metadata")
    weights = np.where(y == y[0], 1.0, 0.01)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LinearClassifier(n_jobs=1).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        search = GridSearchCV(model, {"C": [1.0]}, cv=2).fit(X, y, sample_weight=weights)
    assert np.mean(search.predict(X) == y[0]) > np.mean(plain.predict(X) == y[0])


def test_exceptions_are_scikit_learns_too():
    import pickle

    from sklearn.exceptions import NotFittedError

    import maxmargin

    with pytest.raises(NotFittedError) as caught:
        LinearClassifier().predict([[1.0]])
    assert isinstance(caught.value, maxmargin.NotFittedError)
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, maxmargin.NotFittedError)
    assert str(again) == str(caught.value)


def test_pictures():
    from sklearn.pipeline import make_pipeline

    assert "LinearClassifier" in LinearClassifier()._repr_html_()
    assert "SequenceTagger" in make_pipeline(SequenceTagger())._repr_html_()
