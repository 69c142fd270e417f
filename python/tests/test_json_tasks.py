"""Alignments and factor graphs, whose samples are dicts."""

import numpy as np
import pytest

from maxmargin import FactorGraphModel, SequenceAligner, datasets, metrics


@pytest.fixture(scope="module")
def pairs():
    return datasets.make_alignments(30, length=20, decoys=3, operations=12, random_state=1)


@pytest.fixture(scope="module")
def graphs():
    return datasets.make_graphs(20, height=4, width=4, labels=3, features=4, noise=1.0, random_state=1)


def test_alignments(pairs):
    X, y = pairs
    model = SequenceAligner(gaps="linear").fit(X[:20], y[:20])
    found = model.predict(X)
    assert len(found) == 30
    assert all(answer["ax"].replace("-", "") in sample["x"] for answer, sample in zip(found, X, strict=True))
    assert model.score(X[:20], y[:20]) == np.mean([answer["rank"] == 1 for answer in found[:20]])
    told = model.evaluate(X, y)
    assert told["q_score"] == pytest.approx(metrics.q_score(y, found))
    assert told["q4_score"] == pytest.approx(metrics.q_score(y, found, window=4))


def test_outputs_may_stand_in_the_dicts(pairs, graphs):
    X, y = pairs
    inside = [{**sample, "ax": ax, "az": az} for sample, (ax, az) in zip(X, y, strict=True)]
    assert SequenceAligner().fit(inside).model_ == SequenceAligner().fit(X, y).model_
    X, y = graphs
    inside = [{**graph, "labels": labels} for graph, labels in zip(X, y, strict=True)]
    assert FactorGraphModel().fit(inside).model_ == FactorGraphModel().fit(X, y).model_


def test_a_loss_of_alignments(pairs):
    X, y = pairs
    model = SequenceAligner(loss="q", alignment="global", loss_scale=10.0, C=0.1).fit(X, y, heldout=(X, y))
    assert 0 < model.score(X, y) <= 1
    assert model.score(X, y) == pytest.approx(metrics.q_score(y, model.predict(X)), abs=1e-6)


def test_alignments_from_known_scores(pairs, tmp_path):
    X, y = pairs
    plain = SequenceAligner(loss="q", alphabet="protein").fit(X, y)
    primed = SequenceAligner(loss="q", alphabet="protein", prior="blosum62", prior_gaps=(10, 0.5)).fit(X, y)
    assert primed.model_ != plain.model_ and 0 < primed.score(X, y) <= 1
    table = tmp_path / "table"
    table.write_text("A C\nA 1 0\n")
    with pytest.raises(ValueError, match="table:2: no row for 'C'"):
        SequenceAligner(loss="q", prior=table, prior_gaps=(1, 1)).fit(X, y)


def test_alignments_with_tied_scores(pairs):
    X, y = pairs
    plain = SequenceAligner(loss="q", alphabet="protein").fit(X, y)
    tied = SequenceAligner(loss="q", alphabet="protein", tied=True).fit(X, y)
    assert tied.model_ != plain.model_ and 0 < tied.score(X, y) <= 1
    with pytest.raises(ValueError, match="tied"):
        SequenceAligner(loss="q", tied=True, solver="mle").fit(X, y)


def test_graphs(graphs):
    X, y = graphs
    model = FactorGraphModel(C=0.1).fit(X[:12], y[:12], heldout=(X[12:], y[12:]))
    found = model.predict(X[12:])
    assert model.report_["heldout_loss"] == pytest.approx(metrics.hamming(y[12:], found))
    assert model.score(X[12:], y[12:]) == pytest.approx(np.mean(np.concatenate(found) == np.concatenate(y[12:])))
    for score, bound in model.predict_scores(X):
        assert score <= bound + 1e-9


def test_arrays_in_graphs(graphs):
    X, y = graphs
    arrays = [{**graph, "x": np.array(graph["x"]), "factors": {k: np.array(v) for k, v in graph["factors"].items()}} for graph in X]
    expected = FactorGraphModel().fit(X, y).model_
    assert FactorGraphModel().fit(arrays, [np.array(labels) for labels in y]).model_ == expected
    sparse = pytest.importorskip("scipy.sparse")
    rows = [{**graph, "x": sparse.csr_matrix(np.array(graph["x"]))} for graph in X]
    assert FactorGraphModel().fit(rows, y).predict(X)[0].tolist() == FactorGraphModel().fit(X, y).predict(X)[0].tolist()


@pytest.mark.parametrize("estimator", [SequenceAligner, FactorGraphModel])
@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([3], None, "sample 0 is a int"),
        ([{}], None, "sample 0 lacks"),
        ({"x": 1}, None, "X is a dict; it must be a list"),
        ([], None, "no samples"),
        ([{}], [1, 2], "inconsistent"),
    ],
)
def test_wrong_samples(estimator, X, y, message):
    with pytest.raises(ValueError, match=message):
        estimator().fit(X, y)


def test_alignments_are_pairs(pairs):
    X, y = pairs
    with pytest.raises(ValueError, match="sample 1: the output 'AC' must have 2 parts: ax, az"):
        SequenceAligner().fit(X[:2], [y[0], "AC"])


GRAPH = {"domain": 2, "x": [[1.0], [2.0], [3.0]], "factors": {"next": [[0, 1], [1, 2]]}}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        # What this package finds.
        ({"x": [[1.0], [float("nan")], [3.0]]}, r"x\[1\]\[0\] is nan; features are finite"),
        ({"x": np.array([[1.0], [2.0], [np.inf]])}, r"x\[2\]\[0\] is inf"),
        ({"x": [[1.0], [1e39], [3.0]]}, r"x\[1\]\[0\] is too large for 32 bits"),
        ({"x": [[1.0], [10**400], [3.0]]}, r"x\[1\]\[0\] is too large"),
        ({"x": [[1.0], [object()], [3.0]]}, r"x\[1\]\[0\] is <object"),
        ({"x": [1.0, 2.0, 3.0]}, r"x\[0\] is 1.0, not a list of features"),
        ({"x": [{"red": 1.0}, {}, {}]}, r"x\[0\] has the feature 'red'.*DictVectorizer"),
        ({"labels": [0, 1, 1.5]}, "the label of variable 2 is 1.5; it must be a whole number"),
        ({"labels": [0, 1, -1]}, "the label of variable 2 is -1"),
        ({"labels": ["0", "1", "1"]}, "the label of variable 0 is '0'"),
        ({"labels": [0, 1, 2**70]}, "the label of variable 2 is 1180591620717411303424; there are no more than 4,294,967,296"),
        ({"labels": 3}, "y is 3, not a list of a label for each variable"),
        ({"domain": "2"}, "domain is '2'"),
        ({"factors": [[0, 1]]}, "factors is .* not a dict from the name"),
        ({"factors": {"next": [0, 1]}}, r"factors\['next'\]\[0\] is 0, not a list of the variables"),
        ({"factors": {"next": [[0, -1]]}}, r"factors\['next'\]\[0\]\[1\] is -1"),
        ({"factors": {"a\ud800": [[0, 1]]}}, "surrogates"),
        # What the library finds.
        ({"labels": [0, 1]}, "x has 3 rows, but there are 2 labels"),
        ({"labels": [0, 1, 2]}, "label 2 of variable 2"),
        ({"factors": {"next": [[0, 1], [0, 1, 2]]}}, r"a factor of 3 variables after one of 2 \(give kinds of factors different names\)$"),
        ({"factor_x": {"next": [[1.0], [2.0]]}}, r"template 'next' has a factor_x, but none in sample 0 \("),
    ],
)
def test_what_is_wrong_with_a_graph_is_told_as_it_was_given(changed, message):
    samples = [{**GRAPH, "labels": [0, 0, 1]}, {**GRAPH, "labels": [0, 1, 1], **changed}]
    with pytest.raises(ValueError, match=f"^sample 1: .*{message}"):
        FactorGraphModel().fit(samples)
    y = [sample.pop("labels") for sample in samples]
    with pytest.raises(ValueError, match=f"^sample 1: .*{message}"):
        FactorGraphModel().fit(samples, y)


def test_what_is_wrong_with_a_held_out_graph_is_told_too():
    X, y = [GRAPH] * 2, [[0, 0, 1]] * 2
    with pytest.raises(ValueError, match="^heldout: sample 1: domain is '2'"):
        FactorGraphModel().fit(X, y, heldout=([GRAPH, {**GRAPH, "domain": "2"}], y))


def test_what_is_wrong_in_prediction_is_told_too():
    model = FactorGraphModel().fit([GRAPH] * 2, [[0, 0, 1]] * 2)
    with pytest.raises(ValueError, match="^sample 1: template 'up' is unknown"):
        model.predict([GRAPH, {**GRAPH, "factors": {"up": [[0, 1]]}}])
    for X in (GRAPH, None):
        with pytest.raises(ValueError, match="^X is a .*; it must be a list of dicts"):
            model.predict(X)


def test_numbers_of_other_types_are_taken():
    X = [GRAPH, {**GRAPH, "domain": 2.0, "x": [{np.int64(0): 1}, {"0": np.float32(2)}, {0: 3}], "factors": {"next": np.array([[0.0, 1.0]])}}]
    expected = FactorGraphModel().fit(X, [[0, 0, 1], [0, 1, 1]]).model_
    X[1]["domain"] = np.array(2)
    for labels in ([0.0, 1.0, 1.0], [False, True, True], np.array([0, 1, 1], np.int8)):
        assert FactorGraphModel().fit(X, [[0, 0, 1], labels]).model_ == expected


def test_samples_may_come_one_by_one(pairs, graphs):
    for estimator, (X, y) in ((SequenceAligner(), pairs), (FactorGraphModel(), graphs)):
        expected = estimator.fit(X, y).model_
        assert estimator.fit(iter(X), iter(y)).model_ == expected
        assert estimator.score(iter(X), iter(y)) == estimator.score(X, y)


def test_unfitted(graphs):
    for estimator in (SequenceAligner(), FactorGraphModel()):
        with pytest.raises(ValueError, match="not fitted"):
            estimator.predict(graphs[0])


def test_nothing_to_predict(graphs):
    assert FactorGraphModel().fit(*graphs).predict([]) == []


def test_weights_of_graphs(graphs):
    X, y = graphs
    weights = [2.0] * 5 + [1.0] * 10 + [0.0] * 5
    weighed = FactorGraphModel(C=0.1, relative_gap=1e-3).fit(X, y, sample_weight=weights)
    twice = FactorGraphModel(C=0.1, relative_gap=1e-3).fit(X[:5] + X[:15], list(y[:5]) + list(y[:15]))
    assert weighed.primal_ == pytest.approx(twice.primal_, rel=3e-3)
    assert weighed.primal_ != pytest.approx(FactorGraphModel(C=0.1, relative_gap=1e-3).fit(X[:15], y[:15]).primal_, rel=1e-2)
    with pytest.raises(ValueError, match="sample_weight"):
        FactorGraphModel().fit(X, y, sample_weight=weights[:3])
