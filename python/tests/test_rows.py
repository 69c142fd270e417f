"""Samples of every kind, and what is wrong with those that are none."""

import numpy as np
import pytest

from maxmargin import LinearClassifier, NotFittedError, datasets

Y = np.array([0, 0, 1, 1, 2, 2] * 5)
X = np.array([[1.0, 0.0, 0.5], [0.9, 0.1, 0.0], [0.0, 1.0, 0.0], [0.1, 0.9, 0.0], [-1.0, -1.0, 0.0], [-0.9, -1.1, 0.0]] * 5)


@pytest.fixture(scope="module")
def fitted():
    return LinearClassifier().fit(X, Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.longdouble, int, np.uint8, bool, object])
def test_types(dtype):
    rounded = np.round(np.abs(X)).astype(dtype)
    model = LinearClassifier().fit(rounded, Y)
    expected = LinearClassifier().fit(rounded.astype(np.float64), Y)
    assert model.model_ == expected.model_


@pytest.mark.parametrize("order", ["C", "F"])
def test_orders(order, fitted):
    assert LinearClassifier().fit(np.array(X, order=order), Y).model_ == fitted.model_
    assert LinearClassifier().fit(X.repeat(2, axis=1)[:, ::2], Y).model_ == fitted.model_


def test_lists(fitted):
    assert LinearClassifier().fit(X.tolist(), Y.tolist()).model_ == fitted.model_


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "csr64"])
def test_sparse(form, fitted):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(X)
    if form == "csr64":
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    else:
        matrix = matrix.asformat(form)
    model = LinearClassifier().fit(matrix, Y)
    assert model.model_ == fitted.model_
    np.testing.assert_array_equal(model.decision_function(matrix), fitted.decision_function(X))


def test_sparse_with_room_in_it(fitted):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(X)
    strided = sparse.csr_matrix((np.repeat(matrix.data, 2)[::2], np.repeat(matrix.indices, 2)[::2], matrix.indptr), shape=matrix.shape)
    assert LinearClassifier().fit(strided, Y).model_ == fitted.model_
    matrix.data, matrix.indices = np.append(matrix.data, np.nan), np.append(matrix.indices, 0)
    assert LinearClassifier().fit(matrix, Y).model_ == fitted.model_


def test_sparse_out_of_order(fitted):
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(X)
    indices, data = matrix.indices.copy(), matrix.data.copy()
    for begin, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        indices[begin:end], data[begin:end] = indices[begin:end][::-1], data[begin:end][::-1]
    shuffled = sparse.csr_matrix((data, indices, matrix.indptr), shape=matrix.shape)
    before = shuffled.indices.copy()
    assert LinearClassifier().fit(shuffled, Y).model_ == fitted.model_
    assert (shuffled.indices == before).all(), "the user's matrix was changed"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library, fitted):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({name: X[:, k] for k, name in enumerate("abc")})
    model = LinearClassifier().fit(frame, frames.Series(Y.tolist()))
    assert model.model_ == fitted.model_
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert (model.predict(frame) == fitted.predict(X)).all()
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frames.DataFrame({name: X[:, k] for k, name in enumerate("abd")}))
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame[["b", "a", "c"]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        fitted.predict(frame)


def test_a_frame_with_words():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="sample 0, feature 1 is 'red'"):
        LinearClassifier().fit(pd.DataFrame({"a": [1.0, 2.0], "b": ["red", "blue"]}), [0, 1])


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1.0, 2.0], [3.0]], "sample 1 has 1 features, sample 0 has 2"),
        ([1.0, 2.0], "Reshape your data"),
        (np.zeros((2, 2, 2)), "dim 3"),
        (3.0, "2D array"),
        (np.zeros((0, 3)), "0 sample"),
        (np.zeros((2, 0)), "0 feature"),
        ([[1.0, np.nan], [0.0, 1.0]], "NaN: sample 0, feature 1"),
        ([[1.0, 2.0], [np.inf, 1.0]], "infinity: sample 1, feature 0"),
        ([["a", "b"], ["c", "d"]], "sample 0, feature 0 is 'a'"),
        (np.array([[1, {}], [2, 3]], dtype=object), "sample 0, feature 1"),
        (np.array([[1, "x"], [2, 3]], dtype=object), "sample 0, feature 1 is 'x'"),
        (np.array([[1j, 2], [3, 4]]), "Complex data not supported"),
        ("a file", "text"),
        (np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 0], [0, 1]]), "masked values, the first in sample 1, feature 1"),
        ([[1.0, None], [2.0, 3.0]], "sample 0, feature 1 is nan"),
        ([{"a": 1}, {"b": 2}], "sample 0 is {'a': 1}.*DictVectorizer"),
        (["a text", "more"], "sample 0 is 'a text'.*TfidfVectorizer"),
        ([[1.0, 2.0], [1.0, 10**400]], "^sample 1, feature 1 is too large"),
    ],
)
def test_wrong_samples(value, message):
    with pytest.raises(ValueError, match=message):
        LinearClassifier().fit(value, [0, 1])


def test_samples_may_come_one_by_one():
    X, y = [[0.0], [1.0]], [0, 1]
    assert LinearClassifier().fit(iter(X), iter(y)).model_ == LinearClassifier().fit(X, y).model_


def test_gaps_in_frames_are_told():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [1.0, 2.0]})
    with pytest.raises(ValueError, match="sample 1, feature 0 is <NA>.*Fill the gaps"):
        LinearClassifier().fit(frame, [0, 1])
    with pytest.raises(ValueError, match="sample 1 has no label"):
        LinearClassifier().fit([[1.0], [2.0]], pd.Series(["a", None], dtype="string"))


def test_numbers_as_names_of_columns():
    pd = pytest.importorskip("pandas")
    assert not hasattr(LinearClassifier().fit(pd.DataFrame([[1.0], [-1.0]]), [0, 1]), "feature_names_in_")
    with pytest.raises(TypeError, match="all input features have string names"):
        LinearClassifier().fit(pd.DataFrame([[1.0, 2.0], [-1.0, 2.0]], columns=["a", 1]), [0, 1])


def test_shapes_of_sparse_matrices():
    sparse = pytest.importorskip("scipy.sparse")
    for matrix, message in ((sparse.csr_matrix((0, 3)), "0 sample"), (sparse.csr_matrix((2, 0)), "0 feature")):
        with pytest.raises(ValueError, match=message):
            LinearClassifier().fit(matrix, [0, 1])
    with pytest.raises(ValueError, match="Complex"):
        LinearClassifier().fit(sparse.csr_matrix(np.array([[1j], [2.0]])), [0, 1])
    counts = sparse.csr_matrix(np.array([[2, 0], [0, 3]]))
    assert LinearClassifier().fit(counts, [0, 1]).predict(counts).tolist() == [0, 1]


def test_categories():
    pd = pytest.importorskip("pandas")
    model = LinearClassifier().fit([[1.0], [-1.0]], pd.Series(["yes", "no"], dtype="category"))
    assert model.predict([[2.0]]).tolist() == ["yes"]


def test_nan_in_a_sparse_matrix_names_the_sample():
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(np.array([[1.0, 0, 0], [0, 2, 0], [0, 0, 3]]))
    matrix.data[1] = np.nan
    with pytest.raises(ValueError, match="sample 1, feature 1"):
        LinearClassifier().fit(matrix, [0, 1, 1])


def test_sums_that_overflow_are_no_infinities():
    big = np.array([[3e38, 3e38], [-3e38, 1.0]] * 4, np.float32)
    big[:, 1] = 0
    LinearClassifier(max_passes=1, C=1e-70).fit(big * np.float32(1e-20), [0, 1] * 4)
    from maxmargin import _rows

    assert _rows.as_table(np.full((2, 2), 1.7e308), "x").shape == (2, 2)


def test_width_is_that_of_fit(fitted):
    with pytest.raises(ValueError, match="X has 2 features, but LinearClassifier is expecting 3 features as input"):
        fitted.predict(X[:, :2])


def test_unfitted():
    for call in ("predict", "decision_function"):
        with pytest.raises(NotFittedError, match="not fitted"):
            getattr(LinearClassifier(), call)(X)
    with pytest.raises(NotFittedError):
        LinearClassifier().save("nowhere.mm")
    with pytest.raises(NotFittedError):
        LinearClassifier().score(X, Y)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones((30, 2)), "1D"),
        (np.ones(4), "expected"),
        ([-1.0] + [1.0] * 29, "sample 0"),
        ([np.nan] + [1.0] * 29, "sample 0"),
        ([0.0] * 30, "all sample weights are zero"),
        (["a"] * 30, "must be numbers"),
    ],
)
def test_wrong_weights(weights, message):
    with pytest.raises(ValueError, match=message):
        LinearClassifier().fit(X, Y, sample_weight=weights)


def test_samples_of_weight_zero_are_left_out(fitted):
    more = np.vstack([X, [[5.0, 5.0, 5.0]]])
    weights = np.append(np.ones(30), 0.0)
    left = LinearClassifier().fit(more, np.append(Y, 7), sample_weight=weights)
    assert left.model_ == LinearClassifier().fit(X, Y, sample_weight=np.ones(30)).model_
    sparse = pytest.importorskip("scipy.sparse")
    left = LinearClassifier().fit(sparse.csr_matrix(more), np.append(Y, 7), sample_weight=weights)
    assert left.classes_.tolist() == [0, 1, 2]
    assert left.predict(X).tolist() == fitted.predict(X).tolist()


def test_rows_that_are_taken_out_of_a_sparse_matrix():
    sparse = pytest.importorskip("scipy.sparse")
    from maxmargin import _rows

    dense = np.array([[1.0, 2, 3], [0, 0, 0], [4, 0, 0], [0, 5, 6], [7, 8, 9]])
    chosen = np.array([False, True, True, False, True])
    taken = _rows.as_table(sparse.csr_matrix(dense), "x").take(chosen)
    expected = _rows.as_table(dense, "x").take(chosen)
    assert taken.shape == expected.shape == (3, 3)
    for i in range(3):
        for a, b in zip(taken.row(i), expected.row(i), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_weight_of_two_is_the_sample_twice():
    settings = {"relative_gap": 1e-10}
    X, y = datasets.make_multiclass(40, features=4, noise=0.2)
    X = X.toarray() if hasattr(X, "toarray") else X
    twice = LinearClassifier(**settings).fit(np.vstack([X, X[:10]]), np.append(y, y[:10]))
    weighted = LinearClassifier(**settings).fit(X, y, sample_weight=[2.0] * 10 + [1.0] * 30)
    np.testing.assert_allclose(twice.coef_, weighted.coef_, atol=1e-4)
    assert twice.primal_ == pytest.approx(weighted.primal_)
