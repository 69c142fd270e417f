"""Classes in a tree or lattice."""

import numpy as np
import pytest

from maxmargin import TaxonomyClassifier, datasets, metrics

TREE = {"cat": "animal", "dog": "animal", "oak": "plant", "elm": "plant", "animal": "thing", "plant": "thing"}
X = np.array([[1, 0, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 1, 0]] * 5, float)
Y = ["cat", "dog", "oak", "elm"] * 5


@pytest.fixture(scope="module")
def fitted():
    return TaxonomyClassifier(taxonomy=TREE).fit(X, Y)


def test_forms_of_a_taxonomy(fitted, tmp_path):
    text = "".join(f"{child} {parent}\n" for child, parent in TREE.items())
    (tmp_path / "tree").write_text("# a tree\n" + text)
    for form in (list(TREE.items()), text, tmp_path / "tree", str(tmp_path / "tree"), {c: [p] for c, p in TREE.items()}):
        assert TaxonomyClassifier(taxonomy=form).fit(X, Y).model_ == fitted.model_
    assert fitted.predict(X).tolist() == Y
    assert set(fitted.nodes_) == {*TREE, "thing"}
    assert fitted.classes_.tolist() == ["cat", "dog", "elm", "oak"]


def test_nodes_are_any_hashables():
    number = {name: k for k, name in enumerate(["thing", "animal", "plant", "cat", "dog", "oak", "elm"])}
    for node in (lambda name: number[name], lambda name: (name, "x y"), lambda name: f"the {name}"):
        tree = [(node(child), node(parent)) for child, parent in TREE.items()]
        model = TaxonomyClassifier(taxonomy=tree).fit(X, [node(y) for y in Y])
        assert list(model.predict(X)) == [node(y) for y in Y]


def test_numbers_of_a_file_may_be_numbers_in_y(tmp_path):
    (tmp_path / "tree").write_text("1 10\n2 10\n3 20\n4 20\n10 99\n20 99\n")
    y = [1, 2, 3, 4] * 5
    model = TaxonomyClassifier(taxonomy=tmp_path / "tree").fit(X, y)
    assert model.predict(X).tolist() == y
    assert model.predict(X, depth_threshold=0.0).tolist() == y


def test_inner_nodes_where_classes_cannot_be_told_apart(fitted):
    answers = {depth: fitted.predict(X, depth_threshold=depth).tolist() for depth in (0.0, 1.0, 1e6)}
    assert answers[0.0] == Y
    assert set(answers[1e6]) == {"thing"}
    assert set(answers[1.0]) <= {*TREE, "thing"}
    unsure = fitted.predict([[1.0, 0, 0.5, 0.5]], depth_threshold=0.1)
    assert unsure.tolist() == ["animal"]


def test_no_taxonomy_is_a_star():
    model = TaxonomyClassifier().fit(X, Y)
    assert model.predict(X).tolist() == Y
    assert model.nodes_[-1] == "root" or "root" in model.nodes_
    assert TaxonomyClassifier().fit(X, ["root" if y == "cat" else y for y in Y]).predict(X[:1]).tolist() == ["root"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"taxonomy": {"cat": "animal", "dog": "animal", "oak": "animal"}}, "'elm' is no node"),
        ({"taxonomy": [("cat", "animal", "x")]}, "edge 0"),
        ({"taxonomy": "nowhere.tree"}, "no file"),
        ({"taxonomy": {**TREE, "other": "island"}}, "root"),
        ({"taxonomy": TREE, "class_features": {"cow": ["milk"]}}, "'cow' is no node"),
    ],
)
def test_wrong_taxonomies(settings, message):
    with pytest.raises(ValueError, match=message):
        TaxonomyClassifier(**settings).fit(X, Y)


def test_messages_name_no_temporary_files():
    with pytest.raises(ValueError, match="^taxonomy:1: a cycle"):
        TaxonomyClassifier(taxonomy={"cat": "dog", "dog": "cat", "oak": "elm", "elm": "oak"}).fit(X, Y)


def test_cost_matrix_of_a_frame():
    pd = pytest.importorskip("pandas")
    names = ["oak", "elm", "dog", "cat"]
    costs = np.arange(16.0).reshape(4, 4) * (1 - np.eye(4))
    frame = pd.DataFrame(costs, index=names, columns=names)
    ordered = frame.loc[sorted(names), sorted(names)].to_numpy()
    settings = {"taxonomy": TREE, "C": 0.1}
    model = TaxonomyClassifier(cost_matrix=frame, **settings).fit(X, Y)
    assert model.model_ == TaxonomyClassifier(cost_matrix=ordered, **settings).fit(X, Y).model_
    assert model.model_ != TaxonomyClassifier(cost_matrix=costs, **settings).fit(X, Y).model_
    with pytest.raises(ValueError, match="no column 'cat'"):
        TaxonomyClassifier(cost_matrix=frame.iloc[:3, :3], **settings).fit(X, Y)


def test_lattices_and_class_features():
    lattice = {**TREE, "cat": ["animal", "plant"]}
    assert TaxonomyClassifier(taxonomy=lattice).fit(X, Y).predict(X).tolist() == Y
    features = {"cat": ["a", "meow"], "dog": {"a": 1.0, "bark": 2.0}, "oak": ["b", "meow"], "elm": ["b", "bark"]}
    model = TaxonomyClassifier(taxonomy=TREE, class_features=features).fit(X, Y)
    assert model.score(X, Y) > 0.5
    assert model.model_ != TaxonomyClassifier(taxonomy=TREE).fit(X, Y).model_


def test_the_weight_of_ancestors():
    def fitted(weight):
        return TaxonomyClassifier(taxonomy=TREE, C=0.01, epsilon=1e-9, ancestor_weight=weight).fit(X, Y).decision_function(X)

    np.testing.assert_array_equal(fitted(1.0), fitted(None))
    flat = TaxonomyClassifier(taxonomy=TREE, C=0.01, epsilon=1e-9, architecture="flat").fit(X, Y).decision_function(X)
    near, far = (np.abs(fitted(weight) - flat).max() for weight in (0.05, 1.0))
    assert near < 0.1 * far
    with pytest.raises(ValueError, match="ancestor_weight"):
        fitted(-1.0)


def test_cost_matrix_is_in_the_order_of_classes():
    """Of cat, dog, elm, oak: to take an oak for a cat costs much."""
    costs = np.array([[0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 0, 1], [50, 1, 1, 0]], float)
    model = TaxonomyClassifier(taxonomy=TREE, cost_matrix=costs, C=0.001, architecture="flat").fit(X, Y)
    plain = TaxonomyClassifier(taxonomy=TREE, loss="zero-one", C=0.001, architecture="flat").fit(X, Y)
    oaks = X[np.array(Y) == "oak"]

    def lead(m):
        return m.decision_function(oaks)[:, 3] - m.decision_function(oaks)[:, 0]

    assert (lead(model) > lead(plain)).all()


@pytest.mark.parametrize("node", [str, lambda name: (name,)], ids=["words", "tuples"])
def test_cost_matrix_where_nodes_and_classes_have_other_orders(node):
    """By the tree the order is b, a, c; of classes_ it is a, b, c. To take a for b is dear, b for a is cheap."""
    tree = [(node(child), node(parent)) for child, parent in ["bx", "ay", "cy", "xr", "yr"]]
    random = np.random.default_rng(0)
    X = random.normal(size=(90, 2))
    y = np.array(["a", "b", "c"])[random.integers(0, 3, size=90)]
    costs = np.array([[0, 30, 1], [1, 0, 1], [1, 1, 0]], float)
    model = TaxonomyClassifier(taxonomy=tree, cost_matrix=costs, C=0.01, bias=1, architecture="flat")
    model.fit(X, [node(label) for label in y])
    found = np.array([label if isinstance(label, str) else label[0] for label in model.predict(X)])
    # Of noise: never b, which would be dear for each a.
    assert (found == "b").sum() == 0
    assert (found == "a").sum() > 0
    losses = [costs["abc".index(t), "abc".index(p)] for t, p in zip(y, found, strict=True)]
    assert model.report_["train_loss"] == pytest.approx(np.mean(losses))


def test_class_weight_and_heldout():
    model = TaxonomyClassifier(taxonomy=TREE, class_weight={"cat": 3.0}).fit(X, Y, heldout=(X, Y))
    assert model.report_["heldout_loss"] == 0.0


def test_the_tree_loss_is_the_programs():
    X, y, tree = datasets.make_taxonomy(200, random_state=1)
    model = TaxonomyClassifier(taxonomy=tree, C=0.01).fit(X[:150], y[:150], heldout=(X[150:], y[150:]))
    loss = metrics.tree_loss(y[150:], model.predict(X[150:]), tree)
    assert model.report_["heldout_loss"] == pytest.approx(loss)
    assert 0 < metrics.hierarchical_f1(y[150:], model.predict(X[150:]), tree) < 1


def test_kernel():
    assert TaxonomyClassifier(taxonomy=TREE, kernel="rbf", gamma=1.0).fit(X, Y).predict(X).tolist() == Y
