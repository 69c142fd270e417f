"""Models go to the program and back. It is looked for as $MAXMARGIN, in the folder of builds, and on the path."""

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import maxmargin
from maxmargin import datasets, load

TARGET = Path(__file__).parents[2] / "target"
FOUND = [os.environ.get("MAXMARGIN"), TARGET / "release" / "maxmargin", TARGET / "debug" / "maxmargin", shutil.which("maxmargin")]
PROGRAM = next((str(path) for path in FOUND if path and os.path.exists(path)), None)

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="the program maxmargin is not built")


def run(*words):
    return subprocess.run([PROGRAM, *map(str, words)], capture_output=True, text=True, check=True).stdout


def test_classes(tmp_path):
    X, y = datasets.make_multiclass(80, features=6, noise=0.1, random_state=1)
    datasets.dump_svmlight(tmp_path / "data", X, y)
    run("train", "multiclass", tmp_path / "data", "-m", tmp_path / "theirs.mm", "--c-per-example", "0.1", "--bias", "1", "-q")
    model = maxmargin.LinearClassifier(C=0.1, bias=1.0).fit(X, y)
    theirs = load(tmp_path / "theirs.mm")
    np.testing.assert_array_equal(theirs.coef_, model.coef_)
    np.testing.assert_array_equal(theirs.classes_, model.classes_)
    model.save(tmp_path / "ours.mm")
    assert run("predict", tmp_path / "ours.mm", tmp_path / "data").split() == [str(label) for label in model.predict(X)]


def test_two_classes_with_names(tmp_path):
    X, y = datasets.make_binary(60, features=4, random_state=1)
    names = np.where(y > 0, "good", "bad")
    datasets.dump_svmlight(tmp_path / "data", X, names)
    model = maxmargin.LinearClassifier().fit(X, names)
    model.save(tmp_path / "ours.mm")
    assert run("predict", tmp_path / "ours.mm", tmp_path / "data").split() == model.predict(X).tolist()


def test_sets(tmp_path):
    X, y = datasets.make_multilabel(60, labels=8, features=6, nonzeros=3)
    datasets.dump_svmlight(tmp_path / "data", X, y)
    model = maxmargin.MultilabelClassifier(pairs="tree").fit(X, y)
    model.save(tmp_path / "ours.mm")
    lines = run("predict", tmp_path / "ours.mm", tmp_path / "data").split("\n")[:-1]
    assert [{int(label) for label in line.split(",") if label} for line in lines] == model.predict(X)


def test_tags(tmp_path):
    X, y = datasets.make_tags(40, tags=3, words=10, length=5)
    datasets.dump_columns(tmp_path / "data", X, y)
    run("train", "tag", tmp_path / "data", "-m", tmp_path / "theirs.mm", "-q")
    model = maxmargin.SequenceTagger(format="columns").fit(X, y)
    theirs = load(tmp_path / "theirs.mm")
    assert theirs.predict(X) == model.predict(X)
    assert theirs.state_features_ == model.state_features_


def test_trees_graphs_and_pairs(tmp_path):
    X, y = datasets.make_trees(20)
    datasets.dump_trees(tmp_path / "trees", y)
    model = maxmargin.TreeParser().fit(X, y)
    model.save(tmp_path / "trees.mm")
    assert run("predict", tmp_path / "trees.mm", tmp_path / "trees").splitlines() == model.predict(X)
    X, y = datasets.make_graphs(10, height=3, width=3, labels=3)
    datasets.dump_json_lines(tmp_path / "graphs", [{**graph, "labels": labels} for graph, labels in zip(X, y, strict=True)])
    run("train", "graph", tmp_path / "graphs", "-m", tmp_path / "graphs.mm", "-q")
    ours = maxmargin.FactorGraphModel().fit(X, y)
    assert [a.tolist() for a in load(tmp_path / "graphs.mm").predict(X)] == [a.tolist() for a in ours.predict(X)]
