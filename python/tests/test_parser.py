"""Trees for sentences."""

import math

import pytest

from maxmargin import TreeParser, datasets, metrics
from maxmargin._trees import from_brackets, leaves, to_brackets

TREES = ["(S (NP (DT the) (NN cat)) (VP (VB sleeps)))", "(S (NP (PRP she)) (VP (VB sees) (NP (DT the) (NN dog))))"]


@pytest.fixture(scope="module")
def data():
    return datasets.make_trees(60, random_state=1)


@pytest.fixture(scope="module")
def fitted(data):
    X, y = data
    return TreeParser().fit(X[:40], y[:40])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_forms_of_trees(data, fitted):
    X, y = data
    nested = [from_brackets(tree) for tree in y]

    def lists(tree):
        return tree if isinstance(tree, str) else [lists(part) for part in tree]

    assert TreeParser().fit(y[:40]).model_ == fitted.model_
    as_tuples = TreeParser().fit(X[:40], nested[:40])
    assert as_tuples.model_ == fitted.model_
    assert TreeParser().fit([lists(tree) for tree in nested[:40]]).model_ == fitted.model_
    assert [to_brackets(tree) for tree in as_tuples.predict(X)] == fitted.predict(X)


def test_forms_of_sentences(fitted, data):
    X, y = data
    expected = fitted.predict(X[:10])
    assert fitted.predict(y[:10]) == expected
    assert fitted.predict([from_brackets(tree) for tree in y[:10]]) == expected
    tags_only = fitted.predict([[tag for _, tag in sentence] for sentence in X[:10]])
    assert [_shape(from_brackets(a)) for a in tags_only] == [_shape(from_brackets(b)) for b in expected]


def _shape(tree):
    return tree[0] if isinstance(tree[1], str) else (tree[0], *map(_shape, tree[1:]))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_words_of_predictions_are_those_of_the_input(fitted, data):
    X, _ = data
    for sentence, tree in zip(X, fitted.predict(X), strict=True):
        assert list(leaves(from_brackets(tree))) == sentence


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_score_is_that_of_metrics(fitted, data):
    X, y = data
    told = fitted.evaluate(y)
    own = metrics.bracket_scores(y, fitted.predict(X))
    assert told["bracket_f1"] == pytest.approx(own["f1"])
    assert told["bracket_precision"] == pytest.approx(own["precision"])
    assert told["bracket_recall"] == pytest.approx(own["recall"])
    assert told["exact_match"] == pytest.approx(own["exact_match"])
    assert fitted.score(X, y) == told["bracket_f1"]


def test_n_best(fitted, data):
    X, _ = data
    best = fitted.predict_n_best(X[:5], 3)
    assert [trees[0][0] for trees in best] == fitted.predict(X[:5])
    for trees in best:
        scores = [score for _, score in trees]
        assert scores == sorted(scores, reverse=True)


def test_words_as_terminals():
    parser = TreeParser(C=10, terminals="words").fit(TREES)
    assert parser.predict([["she", "sleeps"]]) == ["(S (NP (PRP she)) (VP (VB sleeps)))"]


def test_brackets_in_sentences():
    trees = ["(S (-LRB- -LRB-) (NN a) (-RRB- -RRB-))"]
    parser = TreeParser(C=10).fit(trees)
    assert parser.predict([[("(", "-LRB-"), ("a", "NN"), (")", "-RRB-")]]) == trees


def test_no_tree_by_the_grammar():
    with pytest.warns(UserWarning):
        parser = TreeParser(C=10).fit(TREES)
        found = parser.predict([["NN", "NN", "NN"], ["PRP", "VB"]])
    assert len(found) == 2
    assert [word for word, _ in leaves(from_brackets(found[0]))] == ["NN"] * 3
    with pytest.warns(UserWarning):
        best = parser.predict_n_best([["NN", "NN", "NN"], ["PRP", "VB"]], 2)
    assert len(best) == 2
    assert math.isnan(best[0][0][1])


def test_settings_and_heldout(data):
    X, y = data
    model = TreeParser(features="spans", parent_annotation=True, loss="hamming").fit(X[:20], y[:20], heldout=(X[40:], y[40:]))
    assert model.report_["heldout_loss"] >= 0
    assert TreeParser().fit(y[:20], heldout=y[40:]).report_["heldout_loss"] >= 0


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (["(S (NN a)"], None, "sample 0"),
        (["(S a b)"], None, "sample 0"),
        (["no tree"], None, "sample 0"),
        ([["a", "b"]], ["(S (NN a))"], "2 tokens, its tree 1"),
        ([["a"]], ["(S (NN a))"] * 2, "inconsistent"),
        ("(S (NN a))", None, "one string"),
        ([], None, "no trees"),
        ([("S", 3)], None, "sample 0"),
        (["(S (NN a))", "(S (NN a\ud800))"], None, "^sample 1: .*surrogates"),
    ],
)
def test_wrong_trees(X, y, message):
    with pytest.raises(ValueError, match=message):
        TreeParser().fit(X, y)


def test_trees_may_come_one_by_one():
    X, y = [[("she", "PRP"), ("sleeps", "VB")]], ["(S (PRP she) (VB sleeps))"]
    assert TreeParser().fit(iter(TREES)).model_ == TreeParser().fit(TREES).model_
    assert TreeParser().fit(iter(X), iter(y)).predict(iter(X)) == y


def test_wrong_sentences():
    parser = TreeParser().fit(TREES)
    for sentence, message in [("she sleeps", "string"), ([], "no tokens"), ([("a", "b", "c")], "token 0"), (["a b"], "token 0"), ([None], "token 0"), (["a\ud800"], "sample 0")]:
        with pytest.raises(ValueError, match=message):
            parser.predict([sentence])
    with pytest.raises(ValueError, match="X is None"):
        parser.predict(None)
    with pytest.raises(ValueError, match="n=-1: must be a whole number"):
        parser.predict_n_best([["she", "sleeps"]], n=-1)
    with pytest.raises(ValueError, match="not fitted"):
        TreeParser().predict([["NN"]])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_weights_of_trees(data):
    _, y = data
    weights = [2.0] * 5 + [1.0] * 15 + [0.0] * 10
    weighed = TreeParser(C=0.1, relative_gap=1e-3).fit(y[:30], sample_weight=weights)
    twice = TreeParser(C=0.1, relative_gap=1e-3).fit(y[:5] + y[:20])
    assert weighed.primal_ == pytest.approx(twice.primal_, rel=3e-3)
    assert weighed.primal_ != pytest.approx(TreeParser(C=0.1, relative_gap=1e-3).fit(y[:20]).primal_, rel=1e-2)
    with pytest.raises(ValueError, match="sample_weight"):
        TreeParser().fit(y[:30], sample_weight=weights[:3])
