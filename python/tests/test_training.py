"""What happens while training goes on, and what is left of it."""

import json
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from maxmargin import (
    ConvergenceWarning,
    FactorGraphModel,
    LinearClassifier,
    MultilabelClassifier,
    SequenceAligner,
    SequenceTagger,
    TaxonomyClassifier,
    TreeParser,
    datasets,
)


@pytest.fixture(scope="module")
def data():
    return datasets.make_multiclass(300, features=10, classes=4, noise=0.2, random_state=2)


def test_history_is_what_the_callback_saw(data):
    rounds = []
    model = LinearClassifier(solver="one-slack", relative_gap=0.01).fit(*data, callback=rounds.append)
    assert len(rounds) == model.n_iter_ == len(model.history_["round"]) > 1
    for key in ("primal", "dual", "gap", "passes", "seconds"):
        np.testing.assert_array_equal(model.history_[key], [np.nan if r[key] is None else r[key] for r in rounds])
    assert model.history_["round"].tolist() == list(range(1, model.n_iter_ + 1))
    assert (np.diff(model.history_["dual"]) >= -1e-9).all()
    assert model.report_["rounds"] == model.n_iter_
    assert model.primal_ == model.report_["primal"]


def test_a_callback_stops_training_and_keeps_the_model(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LinearClassifier(solver="one-slack").fit(*data, callback=lambda entry: entry["round"] == 3)
    assert model.n_iter_ == 3
    assert model.status_ == "interrupted"
    assert model.predict(data[0]).shape == (300,)
    assert model.gap_ > LinearClassifier(solver="one-slack").fit(*data).gap_


@pytest.mark.parametrize(("answer", "is_stopped"), [(True, True), (np.True_, True), (1, False), ("x", False), (None, False), (False, False)])
def test_only_true_stops(data, answer, is_stopped):
    model = LinearClassifier(solver="one-slack").fit(*data, callback=lambda entry: answer)
    assert (model.status_ == "interrupted") == is_stopped


def test_what_a_callback_raises_comes_out(data):
    class Own(Exception):
        pass

    error = Own("mine")

    def callback(entry):
        raise error

    model = LinearClassifier()
    with pytest.raises(Own) as caught:
        model.fit(*data, callback=callback)
    assert caught.value is error
    with pytest.raises(KeyboardInterrupt):
        model.fit(*data, callback=lambda entry: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(ValueError, match="callback"):
        model.fit(*data, callback=3)


def test_a_callback_may_train_and_predict(data, capfd):
    X, y = data
    tagger = SequenceTagger()

    def callback(entry):
        tagger.fit([[["a"], ["b"]], [["b"]]], [["A", "B"], ["B"]], callback=lambda entry: LinearClassifier().fit(X[:50], y[:50]))
        assert tagger.predict([[["a"]]]) == [["A"]]

    model = LinearClassifier(solver="one-slack").fit(X, y, callback=callback)
    alone = LinearClassifier(solver="one-slack").fit(X, y)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert model.report_["rounds"] == alone.report_["rounds"]
    assert capfd.readouterr().out == ""


def test_a_fit_that_fails_changes_nothing(data):
    X, y = data
    model = LinearClassifier().fit(X, y)
    before = dict(model.__dict__)
    with pytest.raises(RuntimeError, match="killed"):
        model.fit(X[:, :5], y + 10, callback=_kill_at(1))
    assert model.__dict__ == before
    assert model.score(X, y) > 0.5
    tagger = SequenceTagger().fit([["a", "b"]], [["x", "y"]])
    with pytest.raises(ValueError, match="tokens"):
        tagger.fit([["a"]], [["p", "q"]])
    assert tagger.predict([["a", "b"]]) == [["x", "y"]]
    fresh = LinearClassifier()
    with pytest.raises(ValueError, match="class"):
        fresh.fit(X, y * 0)
    assert not hasattr(fresh, "n_features_in_")


def test_predictions_are_those_of_the_last_fit(data):
    X, y = data
    model = LinearClassifier().fit(X, y)
    first = model.predict(X)
    other = model.fit(X, 5 - y).predict(X)
    assert (other == 5 - first).mean() > 0.9
    assert (other != first).any()


def test_no_convergence_is_a_warning(data):
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        model = LinearClassifier(max_passes=1, relative_gap=1e-9).fit(*data)
    assert model.status_ == "max-passes"
    assert model.gap_ > 0


def test_convergence_is_silent(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LinearClassifier().fit(*data)


def test_heldout_and_keep_best(data):
    X, y = data
    train, test = slice(0, 200), slice(200, 300)
    model = LinearClassifier(C=10, solver="bcfw", keep_best=True).fit(X[train], y[train], heldout=(X[test], y[test]))
    seen = model.history_["heldout"]
    assert np.isfinite(seen).any()
    assert model.report_["heldout_loss"] == pytest.approx(1 - model.score(X[test], y[test]))
    assert model.report_["heldout_loss"] <= np.nanmin(seen) + 1e-12


def test_heldout_of_two_classes_and_of_labels_that_are_no_words():
    X, y = datasets.make_binary(100, features=4, random_state=1, noise=0.2)
    for labels in (y, np.where(y > 0, "an apple", "a pear"), y > 0):
        model = LinearClassifier().fit(X[:60], labels[:60], heldout=(X[60:], labels[60:]))
        assert model.report_["heldout_loss"] == pytest.approx(1 - model.score(X[60:], labels[60:]))


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_label_that_only_heldout_has_counts_as_an_error(data):
    X, y = data
    model = LinearClassifier().fit(X[:200], y[:200], heldout=(X[200:210], np.full(10, 77)))
    assert model.report_["heldout_loss"] == 1.0


def test_warm_start_goes_on(data):
    cold = LinearClassifier(solver="one-slack", relative_gap=0.001).fit(*data)
    warm = LinearClassifier(solver="one-slack", relative_gap=0.001, warm_start=True).fit(*data)
    first = warm.n_iter_
    assert first == cold.n_iter_
    warm.fit(*data)
    assert warm.n_iter_ < first
    assert warm.primal_ == pytest.approx(cold.primal_, rel=0.002)


def test_warm_start_with_other_classes_is_refused(data):
    model = LinearClassifier(warm_start=True).fit(*data)
    with pytest.raises(ValueError, match="label"):
        model.fit(data[0], data[1] + 10)


def test_c_path(data):
    X, y = data
    model = LinearClassifier(C_path=[0.001, 0.01, 0.1]).fit(X, y)
    assert len(model.report_["path"]) == 3
    # C counts for nothing then.
    assert LinearClassifier(C=7.0, C_path=[0.001, 0.01, 0.1]).fit(X, y).model_ == model.model_
    assert model.report_["c"] == pytest.approx(0.1 * 300)
    model = LinearClassifier(C_path=[0.001, 0.01, 0.1], folds=3).fit(X, y)
    assert len(model.report_["cv"]) == 3
    with pytest.warns(ConvergenceWarning):
        LinearClassifier(C_path="auto", max_passes=3).fit(X[:50], y[:50])


def test_checkpoint_and_resume(data, tmp_path):
    path = tmp_path / "state"
    settings = {"solver": "one-slack", "checkpoint": path, "checkpoint_every": 0.0, "relative_gap": 0.001}
    undisturbed = LinearClassifier(**settings).fit(*data)

    with pytest.raises(RuntimeError, match="killed"):
        LinearClassifier(**settings).fit(*data, callback=_kill_at(5))
    assert path.exists()
    again = LinearClassifier(**settings, resume=True).fit(*data)
    assert again.model_ == undisturbed.model_


def _kill_at(round):
    def callback(entry):
        if entry["round"] >= round:
            raise RuntimeError("killed")

    return callback


def test_verbose_shows_progress(data, capsys):
    LinearClassifier(verbose=1).fit(*data)
    told = capsys.readouterr().err
    assert "dual" in told
    LinearClassifier().fit(*data)
    assert capsys.readouterr().err == ""


def test_the_picture(data):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    model = LinearClassifier(solver="one-slack").fit(*data)
    ax = model.plot_convergence()
    assert {line.get_label() for line in ax.lines} == {"primal", "dual"}
    with pytest.raises(ValueError, match="history|not fitted"):
        LinearClassifier().plot_convergence()


def _fitted():
    rows = datasets.make_multiclass(60, features=4)
    X, y, tree = datasets.make_taxonomy(60, depth=2)
    sets = datasets.make_multilabel(60, labels=8, features=6, nonzeros=3)
    words, tags = datasets.make_tags(30, tags=3, words=10, length=5)
    sentences, trees = datasets.make_trees(20)
    return {
        "linear": (LinearClassifier().fit(*rows), rows[0]),
        "taxonomy": (TaxonomyClassifier(taxonomy=tree).fit(X, y), X),
        "sets": (MultilabelClassifier().fit(*sets), sets[0]),
        "tags": (SequenceTagger(format="columns").fit(words, tags), words),
        "attributes": (SequenceTagger().fit(words, tags), words),
        "trees": (TreeParser().fit(sentences, trees), sentences),
        "graphs": (lambda d: (FactorGraphModel().fit(*d), d[0]))(datasets.make_graphs(10, height=3, width=3, labels=3)),
        "pairs": (lambda d: (SequenceAligner().fit(*d), d[0]))(datasets.make_alignments(10, length=15, decoys=2, operations=10)),
    }


@pytest.fixture(scope="module")
def fitted():
    return _fitted()


@pytest.fixture(scope="module")
def again():
    return _fitted()


KINDS = ["linear", "taxonomy", "sets", "tags", "attributes", "trees", "graphs", "pairs"]


def _same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_pickles(fitted, kind):
    model, X = fitted[kind]
    before = model.predict(X)
    again = pickle.loads(pickle.dumps(model))
    assert again.model_ == model.model_
    assert _same(again.predict(X), before)
    assert again.history_.keys() == model.history_.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_training_twice_gives_the_same_bytes(fitted, again, kind):
    assert fitted[kind][0].model_ == again[kind][0].model_


def test_predicting_changes_nothing(fitted):
    model, X = fitted["linear"]
    before = dict(model.__dict__)
    model.predict(X)
    assert model.__dict__ == before


def test_models_go_to_other_processes(fitted, tmp_path):
    model, _ = fitted["linear"]
    path = tmp_path / "model.pickle"
    path.write_bytes(pickle.dumps(model))
    code = f"import pickle, json; m = pickle.load(open({str(path)!r}, 'rb')); print(json.dumps(m.coef_.tolist()))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert json.loads(told) == model.coef_.tolist()


def test_inspect(fitted):
    for kind in KINDS:
        told = fitted[kind][0].inspect(top=2)
        assert told["training"]["status"] == "converged", kind


def test_ctrl_c_while_the_library_works():
    import os
    import signal
    import threading

    X, y = datasets.make_multiclass(2000, features=200, nonzeros=30, classes=8, noise=0.2)
    # Shells start background jobs with the signal ignored, and Python then leaves it so.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            LinearClassifier(C=100, relative_gap=1e-15, max_seconds=60).fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_go_on_while_the_library_works():
    import threading
    import time

    X, y = datasets.make_multiclass(2000, features=200, nonzeros=30, classes=8, noise=0.2)

    def work():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            LinearClassifier(C=100, relative_gap=1e-15, max_seconds=0.5).fit(X, y)

    thread = threading.Thread(target=work)
    thread.start()
    steps = 0
    while thread.is_alive():
        time.sleep(0.01)
        steps += 1
    assert steps > 5


def test_held_out_samples_are_as_wide_as_the_others(data):
    X, y = data
    with pytest.raises(ValueError, match="heldout: X has 9 features, but the training data have 10"):
        LinearClassifier().fit(X, y, heldout=(X[:, :9], y))


def test_history_keeps_all_that_the_library_tells():
    from maxmargin import _progress

    watch = _progress.Watch(None, 0)
    for k in range(1, 1001):
        assert not watch(json.dumps({"round": k, "gap": None}))
    assert watch.history()["round"].tolist() == list(range(1, 1001))
    assert np.isnan(watch.history()["gap"]).all()


def test_messages_name_parameters():
    X, y = [[1.0], [1.0], [0.5]], [0, 1, 1]
    with pytest.raises(ValueError, match="penalty='linear'"):
        LinearClassifier(penalty="hard").fit(X, y)
