"""Model files, to and from the program."""

import os

import numpy as np
import pytest

import maxmargin
from maxmargin import _modelfile, datasets, load


def test_classes_are_numbers_where_all_words_are(tmp_path):
    X, y = datasets.make_multiclass(60, features=4, noise=0.1)
    model = maxmargin.LinearClassifier(C=0.5, bias=2.0, penalty="quadratic").fit(X, y)
    model.save(tmp_path / "m.mm")
    again = load(tmp_path / "m.mm")
    assert type(again) is maxmargin.LinearClassifier
    assert again.classes_.tolist() == model.classes_.tolist()
    assert again.classes_.dtype.kind == "i"
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.coef_, model.coef_)
    np.testing.assert_array_equal(again.intercept_, model.intercept_)
    assert again.get_params()["C"] == pytest.approx(0.5)
    assert again.get_params()["bias"] == 2.0
    assert again.get_params()["penalty"] == "quadratic"
    assert again.primal_ == model.primal_
    assert again.to_bytes() == model.to_bytes() == (tmp_path / "m.mm").read_bytes()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_links_stay_links_and_pipes_are_written_to(tmp_path):
    model = maxmargin.LinearClassifier().fit([[1.0], [-1.0]], ["yes", "no"])
    (tmp_path / "link.mm").symlink_to(tmp_path / "m.mm")
    model.save(tmp_path / "link.mm")
    assert (tmp_path / "link.mm").is_symlink() and (tmp_path / "m.mm").read_bytes() == model.to_bytes()
    os.mkfifo(tmp_path / "pipe")
    end = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    model.save(tmp_path / "pipe")
    assert os.read(end, 1 << 16) == model.to_bytes() and (tmp_path / "pipe").is_fifo()
    os.close(end)


def test_classes_are_words():
    model = maxmargin.LinearClassifier().fit([[1.0], [-1.0]], ["yes", "no"])
    again = load(model.to_bytes())
    assert again.predict([[2.0], [-2.0]]).tolist() == ["yes", "no"]
    assert again.decision_function([[2.0]]) == pytest.approx(model.decision_function([[2.0]]))


def test_kernels():
    X, y = datasets.make_binary(50, features=3)
    model = maxmargin.KernelClassifier(gamma=0.5).fit(X, y)
    again = load(model.to_bytes())
    assert type(again) is maxmargin.KernelClassifier
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert (again.kernel, again.gamma) == ("rbf", 0.5)
    np.testing.assert_array_equal(again.fit(X, y).decision_function(X), model.decision_function(X))
    poly = load(maxmargin.KernelClassifier(kernel="poly", degree=2, coef0=0.3).fit(X, y).to_bytes())
    assert (poly.kernel, poly.degree, poly.coef0) == ("poly", 2, 0.3)


def test_taxonomies():
    X, y, tree = datasets.make_taxonomy(80, depth=2)
    model = maxmargin.TaxonomyClassifier(taxonomy=tree).fit(X, y)
    again = load(model.to_bytes())
    assert type(again) is maxmargin.TaxonomyClassifier
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict(X, depth_threshold=0.5), model.predict(X, depth_threshold=0.5))
    assert set(again.nodes_) == set(model.nodes_)


def test_sets():
    X, y = datasets.make_multilabel(80, labels=8, features=6, nonzeros=3)
    model = maxmargin.MultilabelClassifier().fit(X, y)
    again = load(model.to_bytes())
    assert again.predict(X) == model.predict(X)
    assert again.score(X, y) == model.score(X, y)


@pytest.mark.parametrize("format", [None, "columns"])
def test_taggers(format):
    X, y = datasets.make_tags(40, tags=3, words=10, length=5)
    model = maxmargin.SequenceTagger(format=format).fit(X, y)
    again = load(model.to_bytes())
    assert again.format == format
    assert again.predict(X) == model.predict(X)
    assert again.classes_.tolist() == model.classes_.tolist()


def test_others():
    X, y = datasets.make_trees(20)
    parser = maxmargin.TreeParser().fit(X, y)
    assert load(parser.to_bytes()).predict(X) == parser.predict(X)
    X, y = datasets.make_graphs(10, height=3, width=3, labels=3)
    graphs = maxmargin.FactorGraphModel().fit(X, y)
    assert [a.tolist() for a in load(graphs.to_bytes()).predict(X)] == [a.tolist() for a in graphs.predict(X)]
    X, y = datasets.make_alignments(10, length=15, decoys=2, operations=10)
    aligner = maxmargin.SequenceAligner().fit(X, y)
    assert load(aligner.to_bytes()).predict(X) == aligner.predict(X)


@pytest.mark.parametrize("data", [b"", b"12345678", b"\xff" * 100, (10).to_bytes(8, "little") + b"0123456789"])
def test_what_is_no_model_file(data):
    with pytest.raises(ValueError):
        load(data)
    with pytest.raises(ValueError, match="no model file"):
        _modelfile.record(data)


def test_a_flipped_bit_is_seen():
    data = bytearray(maxmargin.LinearClassifier().fit([[1.0], [-1.0]], [0, 1]).to_bytes())
    data[-1] ^= 1
    with pytest.raises(ValueError):
        load(bytes(data))


def test_the_scale_of_the_loss_comes_back():
    X, y = datasets.make_multiclass(30, features=3)
    model = maxmargin.LinearClassifier(loss_scale=3.0, rescaling="slack").fit(X, y)
    again = load(model.to_bytes())
    assert (again.loss_scale, again.rescaling) == (3.0, "slack")


def test_no_file():
    with pytest.raises(FileNotFoundError):
        load("nowhere.mm")


def test_saving_leaves_no_parts(tmp_path):
    model = maxmargin.LinearClassifier().fit([[1.0], [-1.0]], [0, 1])
    model.save(tmp_path / "m.mm")
    model.save(tmp_path / "m.mm")
    assert [path.name for path in tmp_path.iterdir()] == ["m.mm"]
    for path, error in ((tmp_path / "no" / "m.mm", FileNotFoundError), (tmp_path, IsADirectoryError)):
        with pytest.raises(error) as caught:
            model.save(path)
        assert caught.value.filename == str(path)
