"""Training on partitions in one process: the same optimum as of the whole, one algorithm for both."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import maxmargin
from maxmargin import LinearClassifier, SequenceTagger, TreeParser, datasets, partitions

sys.path.insert(0, str(Path(__file__).parent))

from partition_problems import TASKS, cut, pairs, problems, text

PROBLEMS = problems()


def fitted(params, X, y, **changed):
    """The ordinary estimator on all samples."""
    return partitions.estimator_of({**params, **changed}).fit(X, y)


@pytest.mark.parametrize("task", TASKS)
def test_partitions_have_the_optimum_of_the_whole(task):
    params, X, y = PROBLEMS[task]
    tight = {**params, "relative_gap": 0.02}
    whole = fitted(tight, X, y, solver="one-slack")
    parts = partitions.train(tight, pairs(X, y))
    assert type(parts) is type(whole)
    assert parts.status_ == "converged"
    assert parts.certificate_ == whole.certificate_
    if whole.certificate_ == "exact":
        assert parts.dual_ <= whole.primal_ * (1 + 1e-9)
        assert whole.dual_ <= parts.primal_ * (1 + 1e-9)
    assert parts.primal_ == pytest.approx(whole.primal_, rel=0.03)
    assert parts.report_["examples"] == len(y)
    assert parts.report_["partitions"] == 5
    assert parts.score(X, y) == pytest.approx(whole.score(X, y), abs=0.05)
    if hasattr(whole, "classes_"):
        assert parts.classes_.tolist() == whole.classes_.tolist()
        assert parts.classes_.dtype == whole.classes_.dtype


@pytest.mark.parametrize("task", TASKS)
def test_model_files_are_ordinary_ones(task):
    params, X, y = PROBLEMS[task]
    model = partitions.train(params, pairs(X, y))
    again = maxmargin.load(model.to_bytes())
    assert type(again) is type(model)
    assert again.score(X, y) == model.score(X, y)
    assert pickle.loads(pickle.dumps(model)).score(X, y) == model.score(X, y)


@pytest.mark.parametrize("task", ["multiclass", "tag"])
def test_threads_and_repetition_change_no_bit(task):
    params, X, y = PROBLEMS[task]
    models = [partitions.train({**params, "n_jobs": jobs}, pairs(X, y)).model_ for jobs in (1, 2, 3, 1)]
    assert len(set(models)) == 1


@pytest.mark.parametrize("task", ["multiclass", "tag"])
def test_groups_take_fewer_rounds_to_the_same_optimum(task):
    params, X, y = PROBLEMS[task]
    tight = {**params, "relative_gap": 0.02}
    one = partitions.train(tight, pairs(X, y))
    three = partitions.train({**tight, "groups": 3}, pairs(X, y))
    assert three.status_ == "converged"
    assert three.primal_ == pytest.approx(one.primal_, rel=0.03)
    assert three.report_["solver"] == "group-slack"
    with pytest.raises(ValueError, match="groups"):
        partitions.train({**params, "groups": 6}, pairs(X, y))


@pytest.mark.parametrize("task", [task for task in TASKS if task != "taxonomy"])
def test_text_of_every_task(task, tmp_path):
    params = dict(PROBLEMS[task][0])
    parts = text(task)
    of_bytes = partitions.train(params, parts)
    for k, part in enumerate(parts):
        (tmp_path / f"part-{k}.dat").write_bytes(part)
    of_files = partitions.train(params, str(tmp_path / "part-*.dat"))
    assert of_files.model_ == of_bytes.model_
    assert of_files.report_["examples"] == 60
    assert of_files.status_ == "converged"


def test_text_and_samples_of_one_problem(tmp_path):
    X, y = datasets.make_multiclass(150, features=8, classes=4, noise=0.1, random_state=3)
    files = []
    for k, (rows, labels) in enumerate(pairs(X, y)):
        files.append(tmp_path / f"{k}.svm")
        datasets.dump_svmlight(files[-1], rows, labels)
    params = {"task": "multiclass", "C": 0.5, "class_weight": {1: 2.0}, "relative_gap": 1e-3}
    a, b = partitions.train(params, files), partitions.train(params, pairs(X, y))
    assert a.primal_ == pytest.approx(b.primal_, rel=2e-3)
    assert a.classes_.tolist() == b.classes_.tolist()
    assert (a.predict(X) == b.predict(X)).mean() > 0.97


def test_two_classes_of_files_are_a_binary_problem(tmp_path):
    X, y = datasets.make_multiclass(100, features=6, classes=2, random_state=1)
    words = np.array(["cat", "dog"])[(y == y.max()).astype(int)]
    files = [tmp_path / "0.svm", tmp_path / "1.svm"]
    datasets.dump_svmlight(files[0], X[:40], words[:40])
    datasets.dump_svmlight(files[1], X[40:], words[40:])
    params = {"task": "binary", "C": 0.5, "relative_gap": 1e-3}
    a, b = partitions.train(params, files), partitions.train(params, [(X[:40], words[:40]), (X[40:], words[40:])])
    assert a.primal_ == pytest.approx(b.primal_, rel=2e-3)
    assert (a.decision_function(X) > 0).mean() == pytest.approx((b.decision_function(X) > 0).mean(), abs=0.03)


def test_compressed_files(tmp_path):
    import gzip

    params = PROBLEMS["multiclass"][0]
    parts = text("multiclass")
    files = []
    for k, part in enumerate(parts):
        files.append(tmp_path / f"{k}.gz")
        files[-1].write_bytes(gzip.compress(part))
    assert partitions.train(params, files).model_ == partitions.train(params, parts).model_


def test_min_count_counts_over_all_partitions():
    rare = [([["a", "b", "x"]], [["A", "B", "A"]]), ([["a", "x", "y"]], [["A", "A", "B"]])]
    params = {"task": "tag", "format": "columns", "template": "U0:%x[0,0]\n", "C": 10, "min_count": 2}
    model = partitions.train(params, rare)
    names = {feature for feature, _ in model.state_features_}
    assert "U0:x" in names
    assert "U0:y" not in names
    # The dictionaries are those of the whole.
    whole = SequenceTagger(**{k: v for k, v in params.items() if k != "task"}, solver="one-slack")
    whole.fit([s for part in rare for s in part[0]], [t for part in rare for t in part[1]])
    assert model.inspect()["features"] == whole.inspect()["features"]


def test_grammars_are_read_off_all_partitions():
    X, y = PROBLEMS["parse"][1:]
    whole = TreeParser(C=0.5, solver="one-slack").fit(X, y)
    parts = partitions.train({"task": "parse", "C": 0.5}, pairs(X, y))
    assert parts.report_["dimension"] == whole.report_["dimension"]
    assert parts.predict(X[:3]) == pytest.approx(parts.predict(X[:3]))


def test_history_report_and_callback():
    params, X, y = PROBLEMS["multiclass"]
    rounds = []
    model = partitions.train(params, pairs(X, y), callback=rounds.append)
    assert len(rounds) == model.n_iter_ == len(model.history_["gap"])
    for key in ("bytes_sent", "bytes_received", "seconds_transport", "seconds_cuts"):
        assert key in rounds[0]
        assert key in model.report_
    assert model.report_["bytes_sent"] == 0
    assert (np.diff(model.history_["dual"]) >= -1e-9).all()
    stopped = partitions.train(params, pairs(X, y), callback=lambda entry: entry["round"] >= 2)
    assert stopped.status_ == "interrupted"


def test_what_a_callback_raises_comes_out():
    params, X, y = PROBLEMS["multiclass"]

    class Own(Exception):
        pass

    def callback(entry):
        raise Own("mine")

    with pytest.raises(Own, match="mine"):
        partitions.train(params, pairs(X, y), callback=callback)


def test_a_run_goes_on_from_its_checkpoint(tmp_path):
    params, X, y = PROBLEMS["multiclass"]
    params = {**params, "relative_gap": 1e-4}
    whole = partitions.train(params, pairs(X, y))
    path = tmp_path / "state"
    kept = {**params, "checkpoint": path, "checkpoint_every": 0.0}

    class Stop(Exception):
        pass

    def stop(entry):
        if entry["round"] == 4:
            raise Stop

    with pytest.raises(Stop):
        partitions.train(kept, pairs(X, y), callback=stop)
    assert path.exists()
    rounds = []
    again = partitions.train({**kept, "resume": True}, pairs(X, y), callback=rounds.append)
    assert rounds[0]["round"] > 1
    assert again.coef_.tobytes() == whole.coef_.tobytes()
    assert again.n_iter_ == whole.n_iter_
    # Not of other data.
    with pytest.raises(Stop):
        partitions.train(kept, pairs(X, y), callback=stop)
    with pytest.raises(ValueError):
        partitions.train({**kept, "resume": True}, pairs(X[::-1], y))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"solver": "bcfw"}, "one-slack"),
        ({"C_path": [0.1, 1]}, "C_path"),
        ({"folds": 3}, "folds"),
        ({"keep_best": True}, "keep_best"),
        ({"kernel": "rbf"}, "kernel"),
        ({"solver": "group-slack"}, "groups"),
        ({"solver": "one-slack", "groups": 2}, "groups"),
        ({"nonsense": 1}, "nonsense"),
        ({"task": "other"}, "other"),
    ],
)
def test_what_has_no_meaning_is_refused(changed, message):
    params, X, y = PROBLEMS["multiclass"]
    with pytest.raises(ValueError, match=message):
        partitions.train({**params, **changed}, pairs(X, y))


def test_errors_name_the_partition(tmp_path):
    params = PROBLEMS["multiclass"][0]
    good = text("multiclass")
    with pytest.raises(ValueError, match="partition 2"):
        partitions.train(params, [*good[:2], b"1 5:1 4:1\n"])
    with pytest.raises(OSError, match="nowhere.dat"):
        partitions.train(params, [good[0], tmp_path / "nowhere.dat"])
    bad = tmp_path / "bad.dat"
    bad.write_bytes(b"1 1:1\n1 0:3\n")
    with pytest.raises(ValueError, match=r"bad.dat:2"):
        partitions.train(params, [good[0], bad])
    X, y = PROBLEMS["multiclass"][1:]
    with pytest.raises(ValueError, match="partition 1"):
        partitions.train(params, [(X[:50], y[:50]), (X[50:], y[51:])])
    with pytest.raises(ValueError, match="number of features"):
        partitions.train(params, [(X[:50], y[:50]), (X[50:][:, :3], y[50:])])
    with pytest.raises(ValueError, match="one sort"):
        partitions.train(params, [(X[:50], y[:50]), good[0]])
    with pytest.raises(ValueError, match="mixed: partition 0 has .* partition 1 has"):
        partitions.train(params, [(X[:50], y[:50]), (X[50:], y[50:].astype(str))])
    with pytest.raises(ValueError, match="format"):
        partitions.train({"task": "tag"}, text("tag"))
    with pytest.raises(ValueError, match="partition 1.*token 1 of sentence 0 has 1"):
        partitions.train({"task": "tag"}, [([["a"]], [["A"]]), ([["a", "b"]], [["A", 1]])])
    with pytest.raises(ValueError, match="mixed: partition 0 has 'A' .* partition 1 has 1"):
        partitions.train({"task": "tag"}, [([["a"]], [["A"]]), ([["a", "b"]], [[1, 1]])])


def test_a_fit_that_fails_changes_nothing():
    params, X, y = PROBLEMS["multiclass"]
    model = partitions.train(params, pairs(X, y))
    before = dict(model.__dict__)
    with pytest.raises(ValueError):
        partitions.fit(model, [(X[:50], y[:50]), (X[50:], y[51:])], partitions.Local())
    assert model.__dict__ == before


def test_labels_are_the_union_in_the_order_of_one_machine():
    X = np.eye(6)
    parts = [(X[:2], ["b", "c"]), (X[2:4], ["c", "a"]), (X[4:], ["a", "d"])]
    model = partitions.train({"task": "multiclass"}, parts)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.predict(X).tolist() == ["b", "c", "c", "a", "a", "d"]


def test_labels_that_are_no_words():
    X = np.eye(4)
    parts = [(X[:2], [("x", 1), ("y", 2)]), (X[2:], [("y", 2), ("z z", 3)])]
    model = partitions.train({"task": "multiclass", "C": 10}, parts)
    assert list(model.predict(X)) == [("x", 1), ("y", 2), ("y", 2), ("z z", 3)]


def test_label_sets_and_indicator_matrices():
    X, y = PROBLEMS["multilabel"][1:]
    classes = sorted({label for labels in y for label in labels})
    Y = np.array([[label in labels for label in classes] for labels in y], dtype=int)
    whole = maxmargin.MultilabelClassifier(C=0.5, solver="one-slack", relative_gap=0.02).fit(X, Y)
    parts = partitions.train({"task": "multilabel", "C": 0.5, "relative_gap": 0.02}, pairs(X, Y))
    assert parts.predict(X).shape == Y.shape
    assert parts.primal_ == pytest.approx(whole.primal_, rel=0.03)
    with pytest.raises(ValueError, match="form"):
        partitions.train({"task": "multilabel"}, [(X[:60], y[:60]), (X[60:], Y[60:])])


def test_sample_weights_count_as_often():
    X, y = PROBLEMS["multiclass"][1:]
    weights = np.ones(len(y))
    weights[:20] = 0.0
    parts = [(X[:60], y[:60], weights[:60]), (X[60:], y[60:], weights[60:])]
    a = partitions.train({"task": "multiclass", "C": 0.5, "relative_gap": 1e-3}, parts)
    b = LinearClassifier(C=0.5, solver="one-slack", relative_gap=1e-3).fit(X, y, weights)
    assert a.primal_ == pytest.approx(b.primal_, rel=2e-3)
    weights[30:60] = 3.0
    parts = [(X[:60], y[:60], weights[:60]), (X[60:], y[60:], weights[60:])]
    a = partitions.train({"task": "multiclass", "C": 0.5, "relative_gap": 1e-3}, parts)
    b = LinearClassifier(C=0.5, solver="one-slack", relative_gap=1e-3).fit(X, y, weights)
    assert a.primal_ == pytest.approx(b.primal_, rel=2e-3)


def test_frames_keep_their_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"u": [0.0, 1.0, 2.0, 3.0], "v": [1.0, 0.0, 1.0, 0.0]})
    parts = [(frame[:2], [0, 1]), (frame[2:], [0, 1])]
    model = partitions.train({"task": "multiclass"}, parts)
    assert model.feature_names_in_.tolist() == ["u", "v"]
    with pytest.raises(ValueError, match="feature names"):
        partitions.train({"task": "multiclass"}, [parts[0], (frame[2:][["v", "u"]], [0, 1])])


def test_cut_leaves_nothing_out():
    assert [x for part in cut(list(range(37))) for x in part] == list(range(37))


def test_paths_do_not_depend_on_where_they_are_read(tmp_path, monkeypatch):
    for folder, labels in (("here", "12"), ("there", "78")):
        (tmp_path / folder).mkdir()
        for k, label in enumerate(labels):
            (tmp_path / folder / f"part{k}.svm").write_text(f"{label} {k + 1}:1\n")
    monkeypatch.chdir(tmp_path / "here")
    sources = partitions._master._sources.listed("part?.svm")
    monkeypatch.chdir(tmp_path / "there")
    assert [source.read()[:1] for source in sources] == [b"1", b"2"]


def test_patterns_of_uris(tmp_path):
    pytest.importorskip("fsspec")
    for k in range(3):
        (tmp_path / f"part{k}.svm").write_text(f"{k} {k + 1}:1\n")
    for pattern in ("part?.svm", "part*.svm", "part[0-2].svm"):
        model = partitions.train({"task": "multiclass"}, f"file://{tmp_path}/{pattern}")
        assert model.report_["partitions"] == 3
    with pytest.raises(ValueError, match="nothing.*there is no such file"):
        partitions.train({"task": "multiclass"}, f"file://{tmp_path}/nothing?.svm")


def test_what_cannot_be_is_refused_before_training(tmp_path):
    X, y = PROBLEMS["multiclass"][1:]
    for checkpoint in (tmp_path, tmp_path / "missing" / "state"):
        with pytest.raises(ValueError, match="checkpoint=.*cannot be written"):
            partitions.train({"task": "multiclass", "checkpoint": str(checkpoint)}, pairs(X, y))
    with pytest.raises(ValueError, match="C_path"):
        partitions.train({"task": "multiclass", "C_path": np.array([1.0, 2.0])}, pairs(X, y))
