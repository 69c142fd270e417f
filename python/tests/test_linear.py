"""Linear and kernel classifiers."""

import numpy as np
import pytest

from maxmargin import KernelClassifier, LinearClassifier, datasets


@pytest.fixture(scope="module")
def three():
    X, y = datasets.make_multiclass(200, features=6, classes=3, noise=0.1, random_state=1)
    return (X.toarray() if hasattr(X, "toarray") else X), y


@pytest.fixture(scope="module")
def two():
    X, y = datasets.make_binary(200, features=5, noise=0.1, random_state=1)
    return (X.toarray() if hasattr(X, "toarray") else X), y


def test_the_objective_is_what_it_says(two):
    X, y = two
    model = LinearClassifier(C=0.5, bias=1, relative_gap=1e-6).fit(X, y)
    w = np.append(model.coef_[0], model.intercept_[0])
    margins = y * (X.astype(np.float32) @ model.coef_[0] + model.intercept_[0])
    objective = 0.5 * w @ w + 0.5 * np.maximum(0, 1 - margins).sum()
    assert objective == pytest.approx(model.primal_, rel=1e-6)
    assert model.dual_ <= model.primal_
    assert model.gap_ <= 1e-6 * model.primal_ * 1.01
    assert model.certificate_ == "exact"
    assert model.status_ == "converged"


@pytest.mark.parametrize("bias", [None, 1.0, 0.3])
def test_scores_are_those_of_the_coefficients(three, bias):
    X, y = three
    model = LinearClassifier(C=0.1, bias=bias).fit(X, y)
    assert model.coef_.shape == (3, 6)
    assert model.intercept_.shape == (3,)
    assert (bias is None) == (not model.intercept_.any())
    expected = X.astype(np.float32) @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)
    assert (model.predict(X) == model.classes_[expected.argmax(axis=1)]).all()


def test_two_classes(two):
    X, y = two
    model = LinearClassifier(C=0.1, bias=1).fit(X, y)
    assert model.report_["task"] == "binary"
    assert model.coef_.shape == (1, 5)
    values = model.decision_function(X)
    np.testing.assert_allclose(values, X.astype(np.float32) @ model.coef_[0] + model.intercept_[0], atol=1e-9)
    assert ((values > 0) == (model.predict(X) == 1)).all()
    assert model.score(X, y) > 0.8


def test_two_classes_with_a_cost_matrix_are_multiclass(two):
    X, y = two
    model = LinearClassifier(bias=1, cost_matrix=[[0, 5], [1, 0]]).fit(X, y)
    assert model.report_["task"] == "multiclass"
    plain = LinearClassifier(bias=1).fit(X, y)
    assert (model.predict(X) == -1).sum() > (plain.predict(X) == -1).sum()


def test_last_columns_without_values():
    X = np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]] * 3)
    model = LinearClassifier().fit(X, [1, 0] * 3)
    assert model.n_features_in_ == 4
    assert model.coef_.shape == (1, 4)
    assert (model.predict([[2.0, 5, 5, 5]]) == 1).all()


def test_class_weight(three):
    X, y = three
    plain = LinearClassifier(C=0.01).fit(X, y)
    label = plain.classes_[0]
    heavy = LinearClassifier(C=0.01, class_weight={label: 50.0}).fit(X, y)
    assert (heavy.predict(X) == label).sum() > (plain.predict(X) == label).sum()
    LinearClassifier(class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match="no class 77"):
        LinearClassifier(class_weight={77: 1.0}).fit(X, y)
    with pytest.raises(ValueError, match="class_weight"):
        LinearClassifier(class_weight=[1, 2]).fit(X, y)


@pytest.mark.parametrize("form", ["array", "list", "path", "text", "frame"])
def test_cost_matrix(three, form, tmp_path):
    X, y = three
    costs = np.array([[0, 1, 4], [1, 0, 1], [9, 3, 0]])
    text = "\n".join(" ".join(map(str, row)) for row in costs) + "\n"
    if form == "frame":
        pd = pytest.importorskip("pandas")
        classes = np.unique(y)
        # In another order: the names count.
        given = pd.DataFrame(costs, index=classes, columns=classes).iloc[::-1, ::-1]
    else:
        (tmp_path / "costs").write_text(text)
        given = {"array": costs, "list": costs.tolist(), "path": tmp_path / "costs", "text": text}[form]
    model = LinearClassifier(C=0.1, cost_matrix=given).fit(X, y)
    expected = LinearClassifier(C=0.1, cost_matrix=costs, loss="matrix").fit(X, y)
    assert model.model_ == expected.model_
    assert model.model_ != LinearClassifier(C=0.1).fit(X, y).model_


def test_wrong_cost_matrices(three):
    X, y = three
    with pytest.raises(ValueError, match="there are 3 classes"):
        LinearClassifier(cost_matrix=[[0, 1], [1, 0]]).fit(X, y)
    with pytest.raises(ValueError, match="no file"):
        LinearClassifier(cost_matrix="nowhere.txt").fit(X, y)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_ordinal_losses(three, loss):
    X, y = three
    model = LinearClassifier(C=0.1, loss=loss).fit(X, y)
    assert model.model_ != LinearClassifier(C=0.1).fit(X, y).model_


@pytest.mark.parametrize("solver", ["one-slack", "n-slack", "bcfw", "dual-coordinate", "frank-wolfe"])
def test_solvers_agree(two, solver):
    X, y = two
    model = LinearClassifier(C=0.1, solver=solver, relative_gap=0.001).fit(X, y)
    best = LinearClassifier(C=0.1, relative_gap=1e-6).fit(X, y)
    assert model.primal_ <= best.primal_ * 1.002
    assert model.primal_ >= best.dual_
    assert model.report_["solver"] == solver


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_solvers_without_c(two):
    X, y = two
    model = LinearClassifier(solver="perceptron", max_passes=3).fit(X, y)
    assert np.isnan(model.gap_)
    assert model.score(X, y) > 0.6


def test_threads_do_not_matter(three):
    X, y = three
    assert LinearClassifier(n_jobs=1).fit(X, y).model_ == LinearClassifier(n_jobs=2).fit(X, y).model_


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_seeds(three):
    X, y = three
    a, b, c = (LinearClassifier(solver="bcfw", random_state=seed, max_passes=2).fit(X, y).model_ for seed in (1, 1, 2))
    assert a == b
    assert a != c


def test_kernels_learn_what_lines_cannot():
    X, y = datasets.make_binary(300, kind="checkers", random_state=3)
    assert LinearClassifier(bias=1).fit(X, y).score(X, y) < 0.7
    model = KernelClassifier(C=10, gamma=5.0).fit(X, y)
    assert model.score(X, y) > 0.95
    assert 0 < model.n_support_ <= 300
    assert not hasattr(model, "coef_")


def test_kernel_forms():
    X, y = datasets.make_binary(80, features=3, random_state=3)
    model = KernelClassifier(kernel="rbf", gamma=0.5).fit(X, y)
    assert model.model_ == KernelClassifier(kernel="rbf:gamma=0.5").fit(X, y).model_
    assert model.model_ != KernelClassifier(kernel="rbf", gamma=0.6).fit(X, y).model_
    KernelClassifier(kernel="poly", degree=2, coef0=1.0).fit(X, y)
    assert not hasattr(KernelClassifier(kernel="linear").fit(X, y), "n_support_")
    low = KernelClassifier(gamma=0.5, low_rank=10).fit(X, y)
    assert low.n_support_ <= 10


def test_a_linear_kernel_is_the_linear_classifier():
    X, y = datasets.make_multiclass(60, features=3, random_state=3)
    kernel = KernelClassifier(kernel="linear", relative_gap=1e-6, C=0.1).fit(X, y)
    linear = LinearClassifier(relative_gap=1e-6, C=0.1).fit(X, y)
    assert kernel.primal_ == pytest.approx(linear.primal_, rel=1e-5)
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=0.01)
