"""Sets of labels."""

import numpy as np
import pytest

from maxmargin import MultilabelClassifier, datasets, metrics


@pytest.fixture(scope="module")
def data():
    X, sets = datasets.make_multilabel(150, labels=8, features=10, nonzeros=5, random_state=1)
    Y = np.array([[k in labels for k in range(1, 9)] for labels in sets], dtype=int)
    return X, sets, Y


def test_forms_agree(data):
    X, sets, Y = data
    as_sets = MultilabelClassifier(bias=1, pairs="tree").fit(X, sets)
    as_array = MultilabelClassifier(bias=1, pairs="tree").fit(X, Y)
    found = as_array.predict(X)
    assert found.shape == Y.shape
    assert as_sets.classes_.tolist() == list(range(1, 9))
    assert as_array.classes_.tolist() == list(range(8))
    assert [{k + 1 for k in np.flatnonzero(row)} for row in found] == as_sets.predict(X)
    assert as_array.score(X, Y) == as_sets.score(X, sets) == np.mean((found == Y).all(axis=1))
    assert as_array.score(X, Y) > 0.2
    np.testing.assert_allclose(as_array.decision_function(X), as_sets.decision_function(X))


def test_sparse_indicators_come_back_sparse(data):
    sparse = pytest.importorskip("scipy.sparse")
    X, _, Y = data
    model = MultilabelClassifier().fit(X, sparse.csr_matrix(Y))
    found = model.predict(X)
    assert sparse.issparse(found)
    assert (found.toarray() == MultilabelClassifier().fit(X, Y).predict(X)).all()


def test_sparse_indicators_are_checked(data):
    sparse = pytest.importorskip("scipy.sparse")
    X, _, Y = data
    wrong = sparse.csr_matrix(Y * 1.0)
    i = 7
    wrong.data[wrong.indptr[i]] = 2.0
    with pytest.raises(ValueError, match=f"sample {i}"):
        MultilabelClassifier().fit(X, wrong)
    with pytest.raises(ValueError, match="Y has 7 labels"):
        MultilabelClassifier().fit(X, Y).score(X, Y[:, :7])


def test_truth_may_be_given_in_another_form_than_in_fit():
    """Of more than ten labels: as words, 10 comes before 9."""
    random = np.random.default_rng(0)
    Y = random.integers(0, 2, size=(60, 12))
    model = MultilabelClassifier(C=10, bias=1).fit(Y + 0.1 * random.normal(size=Y.shape), Y)
    X = Y.astype(float)
    assert model.score(X, Y) > 0.9
    assert model.score(X, [set(np.flatnonzero(row).tolist()) for row in Y]) == model.score(X, Y)


def test_gains_decide_without_pairs(data):
    X, _, Y = data
    model = MultilabelClassifier(bias=1).fit(X, Y)
    assert ((model.decision_function(X) > 0) == model.predict(X)).all()
    model.set_params(threshold=0.5)
    assert ((model.decision_function(X) > 0.5) == model.predict(X)).all()


def test_a_label_that_nobody_has(data):
    X, _, Y = data
    wide = np.hstack([np.zeros((len(Y), 1), int), Y])
    model = MultilabelClassifier().fit(X, wide)
    assert model.predict(X).shape == wide.shape
    assert not model.predict(X)[:, 0].any()
    assert (model.decision_function(X)[:, 0] == -np.inf).all()


def test_labels_are_any_hashables():
    X = np.eye(3).repeat(3, axis=0)
    for names in (["a b", "c,d", "e"], [(1, 2), (3, 4), (5, 6)], ["x", "y", "z"]):
        y = [{names[k]} for k in range(3) for _ in range(3)]
        model = MultilabelClassifier(C=10).fit(X, y)
        assert model.predict(X) == y
        assert model.score(X, y) == 1.0


def test_empty_sets_and_heldout(data):
    X, sets, _ = data
    some = [set() if i % 3 == 0 else labels for i, labels in enumerate(sets)]
    model = MultilabelClassifier(bias=1).fit(X, some, heldout=(X, some))
    assert any(not labels for labels in model.predict(X))
    assert model.report_["heldout_loss"] == pytest.approx(metrics.hamming(some, model.predict(X)))


def test_unknown_labels_count_as_wrong(data):
    X, sets, _ = data
    model = MultilabelClassifier(bias=1).fit(X, sets)
    found = model.predict(X)
    assert model.score(X, found) == 1.0
    assert model.score(X, [labels | {99} for labels in found]) == 0.0


def test_weights(data):
    X, _, Y = data
    weights = np.where(np.arange(len(Y)) < 50, 0.0, 1.0)
    left = MultilabelClassifier().fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(left.decision_function(X), MultilabelClassifier().fit(X[50:], Y[50:], sample_weight=weights[50:]).decision_function(X))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 2], "shape"),
        ([[0, 2], [1, 0], [0, 0]], "Y\\[0, 1\\] is 2"),
        ([[0, 1], [1, 0]], "inconsistent"),
        ([{"a"}, "b", {"c"}], "sample 1"),
        ([{"a", "b"}, {1}, {"c"}], "mixed: the set of sample 0 has '.' .str., the set of sample 1 has 1"),
        ([set(), set(), set()], "no sample has any label"),
        ([["a"], ["b"], ["c"]], "sets"),
        ([["a"], ["b", "c"], []], "ragged; give label sets as Python sets"),
        (None, "requires y"),
    ],
)
def test_wrong_sets(y, message):
    with pytest.raises(ValueError, match=message):
        MultilabelClassifier().fit(np.eye(3), y)


def test_sets_may_come_one_by_one():
    X, sets = np.eye(4), [{"q"}, {"a"}, {"b"}, {"a", "q"}]
    listed = MultilabelClassifier(C=100.0).fit(X, sets)
    assert MultilabelClassifier(C=100.0).fit(X, iter(sets)).predict(X) == listed.predict(X)
    assert listed.score(X, iter(sets)) == listed.score(X, sets)
