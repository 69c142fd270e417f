"""Workers pass rounds on to others: many workers in one process, so that trees are deep."""

import sys
from pathlib import Path

import pytest

distributed = pytest.importorskip("distributed", reason="Dask is not installed (pip install maxmargin[dask])")

from maxmargin import partitions
from maxmargin.dask import _relay, train
from maxmargin.dask.simulate import Problem, levels, main, predict

sys.path.insert(0, str(Path(__file__).parent))

from partition_problems import cut, problems


@pytest.mark.parametrize("count", [1, 3, 4, 5, 21, 100, 1000])
def test_all_workers_are_in_the_tree_once(count):
    owners = {f"tcp://{k:04}": [2 * k, 2 * k + 1] for k in range(count)}
    found = _relay.branches(owners, dict.fromkeys(owners, 3))
    everyone = [inner for branch in found for inner in branch.all()]
    assert sorted(inner.address for inner in everyone) == sorted(owners)
    assert {number for inner in everyone for number in inner.numbers} == set(range(2 * count))
    assert all(len(inner.below) <= _relay.FAN_OUT for inner in everyone)
    assert len(found) <= _relay.FAN_OUT

    def depth(branches):
        return 1 + max(depth(branch.below) for branch in branches) if branches else 0

    assert depth(found) == levels(count)
    # What a branch covers is one range, so that its sums are few.
    for branch in everyone:
        numbers = sorted(number for inner in branch.all() for number in inner.numbers)
        assert numbers == list(range(numbers[0], numbers[-1] + 1))


@pytest.fixture(scope="module")
def problem():
    params, X, y = problems()["multiclass"]
    parts = list(zip(cut(X, 14), cut(y, 14), strict=True))
    params = {**params, "C": 5.0, "relative_gap": 1e-3, "n_jobs": 1}
    return params, parts, partitions.train(params, parts)


@pytest.fixture
def seven(monkeypatch):
    monkeypatch.setattr(_relay, "FAN_OUT", 2)
    with (
        distributed.LocalCluster(n_workers=7, threads_per_worker=1, processes=False, memory_limit=0, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("groups", [None, 5])
def test_sums_that_were_passed_on_have_the_same_bits(seven, problem, groups):
    params, parts, local = problem
    if groups:
        params = {**params, "groups": groups}
        local = partitions.train(params, parts)
    model = train(seven, params, parts)
    assert model.model_ == local.model_
    assert model.report_["workers"] == 7
    # The driver hears two workers, not seven.
    if groups is None:
        vector = 8 * model.report_["dimension"] + 8
        assert model.history_["bytes_received"].max() <= 4 * vector


def test_a_worker_in_the_middle_of_the_tree_goes(seven, problem):
    params, parts, local = problem

    def close(entry):
        if entry["round"] in (3, 5):
            # The first has others below it, wherever the partitions are.
            address = sorted(worker.address for worker in seven.cluster.workers.values() if worker.status.name == "running")[0]
            seven.retire_workers([address])

    model = train(seven, params, parts, callback=close, patience=5)
    assert model.model_ == local.model_
    assert model.report_["workers"] == 5


def test_simulation(capsys):
    heavy = Problem(dimension=1e5, thread_seconds=3600)
    seconds = [predict(heavy, workers).seconds for workers in (1, 10, 100, 1000)]
    assert seconds == sorted(seconds, reverse=True)
    # Where there is nothing to compute, workers only cost.
    light = Problem(dimension=5e6, thread_seconds=0.01)
    assert predict(light, 100).seconds > predict(light, 1).seconds
    words = ["--dimension", "1e6", "--thread-seconds", "100"]
    main(words)
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told[1:-1]] == ["1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1000"]


def test_the_simulation_is_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    main(["--dimension", "1e6", "--thread-seconds", "100", "--plot", str(tmp_path / "plot.png")])
    assert (tmp_path / "plot.png").read_bytes()[:4] == b"\x89PNG"
