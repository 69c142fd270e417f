"""Sums over partitions have the same bits, whoever holds what and in whatever form they travel."""

import numpy as np
import pytest

from maxmargin.partitions import _sources, _tree, _vectors
from maxmargin.partitions._vectors import Sparse, Weights, update


def by_definition(values, level, k):
    """The value of a node, as the definition has it."""
    part = values[k << level : (k + 1) << level]
    if level == 0:
        return part[0]
    left = by_definition(values, level - 1, 2 * k)
    return left + by_definition(values, level - 1, 2 * k + 1) if len(part) > 1 << (level - 1) else left


def add(a, b):
    return a + b


@pytest.mark.parametrize("size", range(1, 18))
def test_the_sum_does_not_depend_on_who_holds_what(size):
    rng = np.random.default_rng(size)
    values = (rng.standard_normal(size) * 10.0 ** rng.integers(-8, 8, size)).tolist()
    root = (size - 1).bit_length()
    expected = by_definition(values, root, 0)
    for _ in range(30):
        holder = rng.integers(0, rng.integers(1, 5), size)
        told = {}
        for who in np.unique(holder):
            mine = np.flatnonzero(holder == who).tolist()
            nodes = _tree.covered(mine, size)
            # The nodes are disjoint and cover what is held, nothing else.
            assert sorted(k for node in nodes for k in _tree.leaves(node, size)) == mine
            for node in nodes:
                told[node] = _tree.fold(lambda n: values[n[1]] if n[0] == 0 else None, size, add, node)
        assert _tree.total(told, size, add) == expected


def test_a_sum_without_all_partitions_is_none():
    with pytest.raises(KeyError, match="partition 2"):
        _tree.total({(1, 0): 1.0}, 3, add)


def test_an_aligned_range_is_one_node():
    assert _tree.covered(range(8, 16), 16) == [(3, 1)]
    assert _tree.covered(range(16), 16) == [(4, 0)]


@pytest.mark.parametrize(("partitions", "count"), [(7, 1), (7, 3), (7, 7), (100, 9)])
def test_groups_are_those_of_array_split(partitions, count):
    expected = [part.tolist() for part in np.array_split(np.arange(partitions), count)]
    assert [list(group) for group in _tree.groups(partitions, count)] == expected


@pytest.mark.parametrize("count", [0, 8])
def test_no_group_is_empty(count):
    with pytest.raises(ValueError, match="groups"):
        _tree.groups(7, count)


@pytest.mark.parametrize(("size", "threads"), [(8, [1, 1]), (64, [1, 1, 1]), (1000, [4, 2, 1, 1]), (2, [1, 1, 1]), (1, [8, 8])])
def test_ranges_follow_the_threads(size, threads):
    shares = {f"tcp://{k}": count for k, count in enumerate(threads)}
    owner = _tree.deal(range(size), shares)
    assert sorted(owner) == list(range(size))
    names = [owner[number] for number in range(size)]
    assert names == sorted(names)
    for name, share in shares.items():
        expected = size * share / sum(threads)
        assert abs(names.count(name) - expected) <= max(1, 0.3 * expected)


def random_vector(rng, size, fill):
    vector = rng.standard_normal(size) * 10.0 ** rng.integers(-8, 8, size)
    return np.where(rng.random(size) < fill, vector, 0.0)


@pytest.mark.parametrize("fills", [(0.0, 0.1), (0.01, 0.02), (0.05, 1.0), (1.0, 0.05), (1.0, 1.0)])
def test_dense_and_sparse_have_one_sum(fills):
    rng = np.random.default_rng(5)
    for _ in range(10):
        a, b = (random_vector(rng, 300, fill) for fill in fills)
        expected = a + b
        forms_a, forms_b = ([v.copy(), _vectors.packed(v.copy())] for v in (a, b))
        for x in forms_a:
            for y in forms_b:
                x_again = x if isinstance(x, Sparse) else x.copy()
                found = _vectors.add(x_again, y)
                assert _vectors.unpacked(found).tobytes() == expected.tobytes()
                assert _vectors.handed_over(found).tobytes() == expected.tobytes()


def test_the_smaller_form_travels():
    vector = np.zeros(1000)
    vector[3] = 1.0
    assert _vectors.packed(vector).nbytes == 12
    assert _vectors.packed(np.ones(1000)).nbytes == 8000


def test_weights_travel_as_what_has_changed():
    rng = np.random.default_rng(1)
    known, fresh = Weights(200), Weights(200)
    before, version = None, 0
    for step in range(20):
        version += 1
        w = before.copy() if before is not None else np.zeros(200)
        places = rng.integers(0, 200, 3 if step % 4 else 200)
        w[places] = rng.standard_normal(len(places))
        w[0] = -0.0
        news = update(version, w, version - 1 if before is not None else None, before)
        assert known.take(news)
        assert known.w.tobytes() == w.tobytes()
        if step % 4:
            assert news.nbytes <= 12 * 4
        # One who comes later does not know the base, says so, and gets what needs none.
        if news.base:
            assert not fresh.take(news)
        whole = update(version, w, None, before)
        assert fresh.take(whole)
        assert fresh.w.tobytes() == w.tobytes()
        fresh = Weights(200)
        before = w


def test_weights_that_cannot_be_written_to_are_left_alone():
    w = np.ones(50)
    w.flags.writeable = False
    known = Weights(50)
    assert known.take(update(1, w, None, None))
    changed = w.copy()
    changed[7] = 2.0
    assert known.take(update(2, changed, 1, w))
    assert known.w[7] == 2.0
    assert w[7] == 1.0


def test_patterns_of_files(tmp_path):
    for name in ("b.txt", "a.txt", "c.dat"):
        (tmp_path / name).write_bytes(name.encode())
    found = _sources.listed(str(tmp_path / "*.txt"))
    assert [source.read() for source in found] == [b"a.txt", b"b.txt"]
    with pytest.raises(ValueError, match="no such file"):
        _sources.listed(str(tmp_path / "*.nothing"))
    with pytest.raises(ValueError, match="no partitions"):
        _sources.listed([])
    with pytest.raises(ValueError, match="list of one"):
        _sources.listed(b"+1 1:1")


def test_uris_are_read_by_fsspec():
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://part/1.dat", "wb") as file:
        file.write(b"+1 1:1\n")
    (source,) = _sources.listed("memory://part/*.dat")
    assert source.read() == b"+1 1:1\n"
    assert "memory" in _sources.name(source, 3)


def test_vectors_that_begin_at_any_byte_are_taken():
    w = np.frombuffer(b"x" + np.arange(50.0).tobytes(), np.uint8)[1:].view(np.float64)
    assert not w.flags.aligned
    known = Weights(50)
    assert known.take(_vectors.Update(1, None, w))
    assert known.w.flags.aligned
    assert known.w.tolist() == w.tolist()
    assert _vectors.handed_over(w[:].view()).flags.aligned
