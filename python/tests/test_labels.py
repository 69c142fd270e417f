"""Labels are whatever users have, and come back as themselves."""

import numpy as np
import pytest

from maxmargin import LinearClassifier, _labels

X = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [-1.0, -1.0], [-0.9, -1.1]]


@pytest.mark.parametrize(
    "kinds",
    [
        (0, 1, 2),
        (7, -3, 100),
        ("a", "b", "c"),
        ("10", "9", "8"),
        ("two words", "x#y", "plain"),
        ((1, 2), (0, 5), (3, 3)),
        (np.int32(4), np.int32(5), np.int32(6)),
        (1.0, 2.0, 3.0),
        (frozenset("ab"), frozenset("c"), frozenset()),
        (b"a", b"b", b"c"),
    ],
    ids=str,
)
def test_labels_come_back_as_themselves(kinds):
    y = [kind for kind in kinds for _ in range(2)]
    model = LinearClassifier(C=10).fit(X, y)
    assert list(model.predict(X)) == y
    assert set(model.classes_) == set(kinds)
    assert model.score(X, y) == 1.0


def test_booleans():
    y = np.array([True, True, False, False])
    model = LinearClassifier().fit(X[:4], y)
    predicted = model.predict(X[:4])
    assert predicted.dtype == bool
    assert (predicted == y).all()
    assert (model.decision_function(X[:4]) > 0).tolist() == y.tolist()


def test_classes_are_sorted_as_numpy_sorts():
    model = LinearClassifier().fit(X, ["b", "b", "a", "a", "C", "C"])
    assert model.classes_.tolist() == np.unique(["a", "b", "C"]).tolist()


def test_words():
    assert _labels.words_of(["a", "b"], _labels.CLASS) == ["a", "b"]
    assert _labels.words_of([1.0, 2.0], _labels.CLASS) == ["1", "2"]
    assert _labels.words_of(["a b", "c"], _labels.CLASS) == ["class0", "class1"]
    assert _labels.words_of(["1", 1], _labels.CLASS) == ["class0", "class1"]
    # The program takes them for the same number.
    assert _labels.words_of(["1", "1.0"], _labels.CLASS) == ["class0", "class1"]
    assert _labels.words_of(["a,b", "c"], _labels.SET_LABEL) == ["class0", "class1"]
    assert _labels.words_of(["a,b", "c"], _labels.CLASS) == ["a,b", "c"]


def test_from_words():
    assert _labels.from_words(["3", "-5"]).tolist() == [3, -5]
    assert _labels.from_words(["3", "x"]).tolist() == ["3", "x"]
    assert _labels.from_words(["1.5", "2"]).tolist() == ["1.5", "2"]


@pytest.mark.parametrize("classes", [[1, 3, 5], ["b", "c", "d"], [(1,), (2,)], ["d", "a"]], ids=str)
def test_places(classes):
    array = _labels.one_dimensional(classes) if isinstance(classes[0], tuple) else np.array(classes)
    labels = _labels.one_dimensional(classes[::-1]) if isinstance(classes[0], tuple) else np.array(classes[::-1])
    assert _labels.places(labels, array).tolist() == list(range(len(classes)))[::-1]


def test_places_of_labels_that_are_unknown():
    assert _labels.places(np.array([0, 1, 9]), np.array([1, 3])).tolist() == [-1, 0, -1]
    assert _labels.places(np.array(["zz", "a"]), np.array(["a", "b"])).tolist() == [-1, 0]
    assert _labels.places(np.array(["1"]), np.array([1, 2])).tolist() == [-1]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "a", 1, 1, "c", "c"], "sample 2 has 1"),
        ([0, 0, 1, 1, None, 2], "sample 4 has no label"),
        ([0, 0, 1, 1, float("nan"), 2], "sample 4"),
        ([0.5, 0, 1, 1, 2, 2], "continuous"),
        ([[0], [0, 1], [1], [1], [2], [2]], "sample 0 is a list"),
        (np.zeros((6, 2)), "1d array"),
        ([0] * 6, "class"),
        ([0, 1], "inconsistent numbers of samples"),
        (None, "requires y"),
        ([True, True, 0, 0, 1, 1], "sample 2"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_wrong_labels(y, message):
    with pytest.raises(ValueError, match=message):
        LinearClassifier().fit(X, y)


def test_labels_that_are_no_text():
    labels = ["a", "a\ud800"]
    assert LinearClassifier(C=10).fit([[0.0], [1.0]], labels).predict([[0.0], [1.0]]).tolist() == labels


def test_a_label_that_only_the_test_set_has_counts_as_wrong():
    model = LinearClassifier(C=10).fit(X, ["a", "a", "b", "b", "c", "c"])
    assert model.score(X, ["a", "a", "b", "b", "new", "new"]) == pytest.approx(4 / 6)
    model = LinearClassifier(C=10).fit(X, [0, 0, 1, 1, 2, 2])
    assert model.score(X, [0, 0, 1, 1, 9, 9]) == pytest.approx(4 / 6)
