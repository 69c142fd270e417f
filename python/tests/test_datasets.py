"""Synthetic data and files."""

import gzip

import numpy as np
import pytest

from maxmargin import datasets


def _dense(X):
    return X.toarray() if hasattr(X, "toarray") else X


@pytest.mark.parametrize("make", [datasets.make_binary, datasets.make_multiclass, datasets.make_taxonomy, datasets.make_multilabel])
def test_rows(make):
    first, again, other = make(30, features=12, random_state=1), make(30, features=12, random_state=1), make(30, features=12, random_state=2)
    assert first[0].shape == (30, 12)
    np.testing.assert_array_equal(_dense(first[0]), _dense(again[0]))
    assert list(first[1]) == list(again[1])
    assert not np.array_equal(_dense(first[0]), _dense(other[0]))


@pytest.mark.parametrize("make", [datasets.make_tags, datasets.make_trees, datasets.make_graphs, datasets.make_alignments])
def test_structures(make):
    X, y = make(7, random_state=1)
    assert len(X) == len(y) == 7
    assert make(7, random_state=1) == (X, y)
    assert make(7, random_state=2) != (X, y)


def test_contents():
    assert set(datasets.make_binary(50)[1]) == {-1, 1}
    assert len(set(datasets.make_multiclass(50, classes=5)[1])) == 5
    X, y, tree = datasets.make_taxonomy(50, depth=2, branching=2)
    assert len(tree) == 6
    assert {label for label in y} <= {child for child, _ in tree}
    X, y = datasets.make_tags(5, tags=2)
    assert all(len(words) == len(tags) for words, tags in zip(X, y, strict=True))
    X, y = datasets.make_graphs(2, height=2, width=3)
    assert len(y[0]) == len(X[0]["x"]) == 6
    assert "labels" not in X[0]
    with pytest.raises(ValueError):
        datasets.make_binary(10, colour="red")


@pytest.mark.parametrize("name", ["data", "data.gz"])
def test_svmlight(tmp_path, name):
    X, y = datasets.make_multiclass(20, features=8, nonzeros=3)
    path = tmp_path / name
    datasets.dump_svmlight(path, X, y, sample_weight=np.full(20, 2.0))
    again, labels = datasets.load_svmlight(path, n_features=8)
    np.testing.assert_array_equal(_dense(again), _dense(X))
    assert labels.tolist() == y.tolist()
    text = (gzip.decompress(path.read_bytes()) if name.endswith("gz") else path.read_bytes()).decode()
    assert text.splitlines()[0].split()[1] == "cost:2.0"
    with pytest.raises(ValueError, match="more than 2"):
        datasets.load_svmlight(path, n_features=2)


def test_svmlight_of_sets_and_words(tmp_path):
    X, y = np.array([[1.0, 0.0], [0.0, 2.5], [0.0, 0.0]]), [{"a", "b"}, set(), {"b"}]
    datasets.dump_svmlight(tmp_path / "sets", X, y)
    again, sets = datasets.load_svmlight(tmp_path / "sets", multilabel=True)
    assert sets == y
    np.testing.assert_array_equal(_dense(again), X)
    datasets.dump_svmlight(tmp_path / "words", X, ["x", "y", "x"])
    assert datasets.load_svmlight(tmp_path / "words")[1].tolist() == ["x", "y", "x"]
    with pytest.raises(ValueError, match="'two words'"):
        datasets.dump_svmlight(tmp_path / "bad", X, ["two words", "a", "b"])
    with pytest.raises(ValueError, match="inconsistent"):
        datasets.dump_svmlight(tmp_path / "bad", X, ["a", "b"])


@pytest.mark.parametrize(("text", "message"), [("1 2:x\n", "line 1"), ("1 1:1\n2 3:1 2:1\n", "line 2"), ("1 0:1\n", "indices start at 1")])
def test_wrong_svmlight(tmp_path, text, message):
    (tmp_path / "bad").write_text(text)
    with pytest.raises(ValueError, match=message):
        datasets.load_svmlight(tmp_path / "bad")


def test_columns(tmp_path):
    X, y = [[["the", "DT"], ["cat", "NN"]], [["she", "PRP"]]], [["B", "I"], ["O"]]
    datasets.dump_columns(tmp_path / "c", X, y)
    assert (tmp_path / "c").read_text() == "the\tDT\tB\ncat\tNN\tI\n\nshe\tPRP\tO\n"
    assert datasets.load_columns(tmp_path / "c") == (X, y)


def test_trees(tmp_path):
    trees = ["(S (NN a) (VB b))", "(S (NN c))"]
    datasets.dump_trees(tmp_path / "t", [trees[0], ("S", ("NN", "c"))])
    assert datasets.load_trees(tmp_path / "t") == trees
    (tmp_path / "t").write_text("# comment\n( (S\n (NN a)\n (VB b)) )\n(S (NN c))\n")
    assert datasets.load_trees(tmp_path / "t") == trees
    (tmp_path / "t").write_text("(S (NN a)")
    with pytest.raises(ValueError, match="not closed"):
        datasets.load_trees(tmp_path / "t")


def test_json_lines(tmp_path):
    datasets.dump_json_lines(tmp_path / "j", [{"x": np.arange(3)}, {"x": [0.5]}])
    assert datasets.load_json_lines(tmp_path / "j") == [{"x": [0, 1, 2]}, {"x": [0.5]}]


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"sentence": [1, 1, 2], "word": ["the", "cat", "she"], "pos": ["DT", "NN", "PRP"], "tag": ["B", "I", "O"]})
    X, y = datasets.sentences_from_frame(frame)
    assert X == [[{"word": "the", "pos": "DT"}, {"word": "cat", "pos": "NN"}], [{"word": "she", "pos": "PRP"}]]
    assert y == [["B", "I"], ["O"]]
    with pytest.raises(ValueError, match="no column 'label'"):
        datasets.sentences_from_frame(frame, tag="label")


def test_to_frames():
    pd = pytest.importorskip("pandas")
    frame = datasets.sentences_to_frame([["the", "cat"], ["she"]], [["B", "I"], ["O"]])
    assert isinstance(frame, pd.DataFrame)
    assert frame.values.tolist() == [[0, "the", "B"], [0, "cat", "I"], [1, "she", "O"]]
    X, y = datasets.sentences_from_frame(frame)
    assert [[token["word"] for token in s] for s in X] == [["the", "cat"], ["she"]]
