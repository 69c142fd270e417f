"""Tasks that are written in Python."""

import pickle
import warnings

import numpy as np
import pytest

import maxmargin
from maxmargin import LinearClassifier, NotFittedError, StructuredSVM, Task, datasets
from maxmargin._task import Adapter, Full, Weights, same

K, D = 3, 5


class Classes(Task):
    """Multiclass, with features that are arrays."""

    def features(self, x, y):
        f = np.zeros(K * D)
        f[y * D : (y + 1) * D] = x
        return f

    def argmax(self, x, w, y_true=None):
        scores = w.reshape(K, D) @ x
        if y_true is not None:
            scores = scores + (np.arange(K) != y_true)
        return int(scores.argmax())


class Pairs(Classes):
    size = K * D

    def features(self, x, y):
        return np.arange(y * D, (y + 1) * D), x


class Shuffled(Classes):
    size = K * D

    def features(self, x, y):
        half = x / 2
        return np.concatenate([np.arange((y + 1) * D - 1, y * D - 1, -1), np.arange(y * D, (y + 1) * D)]), np.concatenate([half[::-1], half])


class Dicts(Classes):
    def features(self, x, y):
        return {(y, j): value for j, value in enumerate(x)}

    def argmax(self, x, w, y_true=None):
        scores = np.array([sum(w[y, j] * value for j, value in enumerate(x)) for y in range(K)])
        if y_true is not None:
            scores = scores + (np.arange(K) != y_true)
        return int(scores.argmax())


@pytest.fixture(scope="module")
def data():
    X, y = datasets.make_multiclass(80, features=D, classes=K, noise=0.1, random_state=1)
    X = (X.toarray() if hasattr(X, "toarray") else X).astype(np.float32).astype(float)
    return list(X), [int(label) - 1 for label in y]


@pytest.mark.parametrize("task", [Classes(), Pairs(), Shuffled(), Dicts()], ids=lambda t: type(t).__name__)
@pytest.mark.parametrize("solver", [None, "one-slack", "n-slack", "bcfw"])
def test_the_optimum_is_that_of_the_library(data, task, solver):
    X, y = data
    own = StructuredSVM(task, C=0.5, solver=solver, relative_gap=1e-3).fit(X, y)
    library = LinearClassifier(C=0.5, relative_gap=1e-6).fit(np.array(X), y)
    assert own.primal_ == pytest.approx(library.primal_, rel=2e-3)
    assert own.dual_ <= library.primal_ * (1 + 1e-9)
    assert own.status_ == "converged"
    assert np.mean([a == b for a, b in zip(own.predict(X), library.predict(np.array(X)), strict=True)]) > 0.9
    assert own.score(X, y) == -np.mean([a != b for a, b in zip(own.predict(X), y, strict=True)])


def test_coefficients(data):
    array = StructuredSVM(Classes(), relative_gap=1e-3).fit(*data)
    named = StructuredSVM(Dicts(), relative_gap=1e-3).fit(*data)
    assert array.coef_.shape == (K * D,)
    np.testing.assert_allclose([named.coef_[y, j] for y in range(K) for j in range(D)], array.coef_, atol=1e-9)


def test_the_objective_is_what_it_says(data):
    X, y = data
    task = Classes()
    model = StructuredSVM(task, C=0.2, relative_gap=1e-4).fit(X, y)
    w = model.coef_
    worst = [task.argmax(x, w, t) for x, t in zip(X, y, strict=True)]
    hinge = [task.loss(t, z) + w @ task.features(x, z) - w @ task.features(x, t) for x, t, z in zip(X, y, worst, strict=True)]
    assert model.primal_ == pytest.approx(0.5 * w @ w + 0.2 * sum(hinge), rel=1e-6)


def test_names_that_only_wrong_outputs_have_make_room():
    """Each output has names of its own, so there are far more than the true outputs have."""

    class Many(Task):
        def features(self, x, y):
            return {f"{x}-{y}-{k}": 1.0 for k in range(40)}

        def argmax(self, x, w, y_true=None):
            def value(y):
                return sum(w[f"{x}-{y}-{k}"] for k in range(40)) + (0 if y_true is None else self.loss(y_true, y))

            return max(range(20), key=value)

    X, y = list(range(4)), [0, 1, 2, 3]
    model = StructuredSVM(Many(), C=10).fit(X, y)
    assert model.predict(X) == y
    assert len(model.coef_) > 320
    assert model.history_["round"][0] == 1


def test_training_goes_on_from_the_weights_so_far_where_room_was_made(monkeypatch):
    from maxmargin import _native

    class Late(Task):
        """Most names come in late: those of wrong outputs, once there are weights."""

        def features(self, x, y):
            return {("true", x): 1.0} if y == 0 else {(x, y, k): 1.0 for k in range(50)}

        def argmax(self, x, w, y_true=None):
            if y_true is None or w["true", 0] == 0:
                return 1
            return 2

    calls, train = [], _native.train_task

    def recorded(adapter, inputs, outputs, weights, size, options, on_round, start=None):
        calls.append((size, start))
        return train(adapter, inputs, outputs, weights, size, options, on_round, start)

    monkeypatch.setattr(_native, "train_task", recorded)
    with warnings.catch_warnings():
        # Whether such a small problem ends in time is not the question.
        warnings.simplefilter("ignore")
        StructuredSVM(Late(), solver="bcfw", C=10, max_passes=5, relative_gap=1e-9).fit([0], [0])
    assert [size for size, _ in calls] == [64, 128]
    assert calls[0][1] is None
    assert calls[1][1].shape == (128,)
    assert calls[1][1].any()
    assert not calls[1][1][64:].any()


@pytest.mark.parametrize("task", [Classes(), Dicts()], ids=lambda t: type(t).__name__)
def test_warm_start_goes_on(data, task):
    X, y = data
    model = StructuredSVM(task, solver="one-slack", relative_gap=1e-3, warm_start=True).fit(X, y)
    objective = model.primal_
    # In another order, so that names get other places.
    with pytest.warns(maxmargin.ConvergenceWarning):
        model.set_params(max_passes=2).fit(X[::-1], y[::-1])
        cold = StructuredSVM(task, solver="one-slack", relative_gap=1e-3, max_passes=2).fit(X, y)
    assert model.primal_ <= 1.01 * objective < cold.primal_


def test_warm_start_with_other_features_is_refused(data):
    X, y = data
    model = StructuredSVM(Classes(), warm_start=True).fit(X, y)
    model.set_params(task=Dicts())
    with pytest.raises(ValueError, match="warm_start"):
        model.fit(X, y)


def test_outputs_are_any_objects():
    class Signs(Task):
        """Outputs are arrays, which have no plain ==."""

        def features(self, x, y):
            return x * y

        def loss(self, y, y2):
            return float((y != y2).mean())

        def argmax(self, x, w, y_true=None):
            score = w * x
            if y_true is not None:
                score = score - y_true / len(x) / 2
            return np.where(score >= 0, 1.0, -1.0)

    random = np.random.default_rng(1)
    X = [random.normal(size=4) for _ in range(30)]
    Y = [np.where(x * np.array([1, -1, 2, -2]) > 0, 1.0, -1.0) for x in X]
    model = StructuredSVM(Signs(), C=1.0).fit(X, Y)
    assert all((a == b).all() for a, b in zip(model.predict(X), Y, strict=True))
    assert (np.sign(model.coef_) == [1, -1, 1, -1]).all()


@pytest.mark.parametrize("method", ["features", "loss", "argmax"])
def test_exceptions_come_out_as_themselves(data, method):
    class Own(Exception):
        pass

    error = Own("mine")
    task = Classes()
    calls = []

    def fail(*args, **kwargs):
        calls.append(1)
        if len(calls) > (60 if method == "features" else 20):
            raise error
        return getattr(Classes, method)(task, *args, **kwargs)

    setattr(task, method, fail)
    with pytest.raises(Own) as caught:
        StructuredSVM(task).fit(*data)
    assert caught.value is error


def test_weights_cannot_be_written(data):
    class Careless(Classes):
        is_careless = True

        def argmax(self, x, w, y_true=None):
            if self.is_careless:
                w[0] = 1.0
            return super().argmax(x, w, y_true)

    task = Careless()
    with pytest.raises(ValueError, match="read-only"):
        StructuredSVM(task).fit(*data)
    task.is_careless = False
    model = StructuredSVM(task).fit(*data)
    task.is_careless = True
    with pytest.raises(ValueError, match="read-only"):
        model.predict(data[0])


def test_ctrl_c_in_a_task(data):
    class Slow(Classes):
        def argmax(self, x, w, y_true=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        StructuredSVM(Slow()).fit(*data)


def test_callback_and_history(data):
    rounds = []
    model = StructuredSVM(Classes(), solver="one-slack").fit(*data, callback=rounds.append)
    assert len(rounds) == len(model.history_["dual"]) == model.n_iter_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stopped = StructuredSVM(Classes(), solver="one-slack").fit(*data, callback=lambda entry: entry["round"] == 2)
    assert stopped.n_iter_ == 2
    assert stopped.status_ == "interrupted"


def test_weights_of_examples(data):
    X, y = data
    weights = np.where(np.arange(80) < 40, 0.0, 2.0)
    left = StructuredSVM(Classes(), relative_gap=1e-4).fit(X, y, sample_weight=weights)
    twice = StructuredSVM(Classes(), C=2.0, relative_gap=1e-4).fit(X[40:], y[40:])
    assert left.primal_ == pytest.approx(twice.primal_, rel=1e-3)


def test_settings(data):
    with pytest.warns(maxmargin.ConvergenceWarning):
        StructuredSVM(Classes(), max_passes=1, relative_gap=1e-9).fit(*data)
    with pytest.raises(ValueError, match="nonsense"):
        StructuredSVM(Classes(), solver="nonsense").fit(*data)
    a, b = (StructuredSVM(Classes(), solver="bcfw", random_state=seed, relative_gap=0.1).fit(*data) for seed in (1, 1))
    assert (a.coef_ == b.coef_).all()
    assert StructuredSVM(Classes(), rescaling="slack").fit(*data).certificate_ in ("exact", "estimate")


def test_pickles(data):
    X, y = data
    model = StructuredSVM(Dicts()).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X) == model.predict(X)
    assert again.coef_ == model.coef_


def _of(features, size=15):
    """A task with such features."""
    task = Classes()
    task.features, task.size = features, size
    return task


@pytest.mark.parametrize(
    ("task", "X", "y", "message"),
    [
        (Classes(), [], [], "0 sample"),
        (Classes(), [np.zeros(D)], [0, 1], "inconsistent"),
        (3, [np.zeros(D)], [0], "maxmargin.Task"),
        (Pairs(), [np.zeros(D)], [9], "index"),
        (_of(lambda x, y: (np.arange(3), np.ones(2))), [0], [0], "3,\\) indices for \\(2,\\) values"),
        (_of(lambda x, y: (np.array([0.5]), np.ones(1))), [0], [0], "not whole numbers"),
        (_of(lambda x, y: (np.array([-1]), np.ones(1))), [0], [0], "index -1"),
        (_of(lambda x, y: (np.array([0]), np.array([np.nan]))), [0], [0], "not finite"),
        (_of(lambda x, y: (np.array([0]), np.ones(1)), size=None), [0], [0], "attribute size"),
        (_of(lambda x, y: {"a": 1e39}), [0], [0], "features of sample 0: 1e39 is too large for 32 bits"),
        (Classes, [np.zeros(D)], [0], r"task=Classes is a class; give an object of it: Classes\(\)"),
        *[(_of(lambda x, y: (np.array([0]), np.ones(1)), size=size), [0], [0], "the task's size is") for size in (-1, 0, "2", 1.5)],
    ],
)
def test_wrong_use(task, X, y, message):
    with pytest.raises(ValueError, match=message):
        StructuredSVM(task).fit(X, y)


def test_unfitted():
    with pytest.raises(NotFittedError):
        StructuredSVM(Classes()).predict([np.zeros(D)])
    assert not hasattr(StructuredSVM(Classes()), "coef_")


def test_features_of_several_kinds_are_refused():
    for first, second in (({"a": 1.0}, np.zeros(2)), ((np.array([0]), np.ones(1)), {"a": 1.0}), ("abc", "abc")):
        task = _of(lambda x, y, kinds=(first, second): kinds[x])
        with pytest.raises(TypeError, match="features"):
            StructuredSVM(task).fit([0, 1], [0, 0])


def test_pairs_without_features():
    task = Pairs()
    task.features = lambda x, y: ([], []) if y == 0 else Pairs.features(task, x, y)
    X = [np.eye(D)[k % D] for k in range(10)]
    assert StructuredSVM(task, C=10).fit(X, [0, 1] * 5).report_["examples"] == 10


def test_what_is_missing_is_told():
    with pytest.raises(NotImplementedError, match="features"):
        StructuredSVM(Task()).fit([1], [1])


def test_adapter_of_dicts():
    adapter = Adapter(Dicts(), [[1.0, 2.0]], "dict", 3, {(0, 1): 0})
    indices, values = adapter.psi(0, 0, adapter.features(0, 0))
    assert indices.tolist() == [0, 1]
    assert values.tolist() == [2.0, 1.0]
    assert indices.dtype == np.uint32
    with pytest.raises(Full):
        adapter.psi(0, 1, adapter.features(0, 1))


def test_weights_view():
    view = Weights({"a": 0}, np.array([2.0]))
    assert (view["a"], view["b"], view.get("b"), view.get("b", 7), "a" in view, "b" in view) == (2.0, 0.0, 0.0, 7, True, False)
    assert dict(view) == {"a": 2.0}
    with pytest.raises(TypeError):
        view["a"] = 1


def test_same():
    assert same([np.arange(2), "x"], [np.arange(2), "x"])
    assert not same([np.arange(2)], [np.arange(3)])
    assert not same((1, 2), [1, 2])
    assert same(1, 1.0)


@pytest.mark.parametrize("form", ["int32", "uint32", "int16", "float32", "reversed", "strided", "lists"])
def test_pairs_of_all_kinds_are_the_same(form):
    random = np.random.default_rng(1)
    X = random.normal(size=(40, 4)).astype(np.float32).astype(np.float64)
    y = [int(k) for k in X[:, :3].argmax(axis=1)]

    class Pairs(Task):
        size = 12

        def __init__(self, form):
            self.form = form

        def features(self, x, y):
            indices, values = np.arange(4 * y, 4 * y + 4), x
            if self.form in ("int32", "uint32", "int16"):
                return indices.astype(self.form), values
            if self.form == "float32":
                return indices, values.astype(np.float32)
            if self.form == "reversed":
                return indices[::-1], values[::-1]
            if self.form == "strided":
                return indices, np.repeat(values, 2)[::2]
            return (indices.tolist(), values.tolist()) if self.form == "lists" else (indices, values)

        def argmax(self, x, w, y_true=None):
            scores = w.reshape(3, 4) @ x + (0 if y_true is None else np.arange(3) != y_true)
            return int(scores.argmax())

    plain = StructuredSVM(Pairs("int64"), solver="one-slack").fit(list(X), y)
    other = StructuredSVM(Pairs(form), solver="one-slack").fit(list(X), y)
    assert (plain.coef_ == other.coef_).all() and plain.report_["rounds"] == other.report_["rounds"]


@pytest.mark.parametrize("indices, what", [([0, 99], "index 99"), ([-1, 0], "index -1"), ([0, 1, 2], "3.* indices for .*2")])
def test_pairs_that_are_none(indices, what):
    class Bad(Task):
        size = 4

        def features(self, x, y):
            return np.array(indices), np.ones(2)

        def argmax(self, x, w, y_true=None):
            return 0

    with pytest.raises(ValueError, match=what):
        StructuredSVM(Bad()).fit([1, 2], [0, 1])
