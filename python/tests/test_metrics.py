"""Figures, by hand."""

import math

import pytest

from maxmargin import metrics


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", ""),
        # IOB1: I begins a chunk; B only where one follows another of its type.
        ("I-PER I-PER O I-LOC", "PER0-2 LOC3-4"),
        ("I-PER B-PER I-PER", "PER0-1 PER1-3"),
        ("I-LOC I-PER", "LOC0-1 PER1-2"),
        ("B-PER I-PER O B-LOC", "PER0-2 LOC3-4"),
        ("B-PER I-LOC I-LOC", "PER0-1 LOC1-3"),
        ("O I-PER", "PER1-2"),
        ("B-PER I-PER E-PER S-LOC O", "PER0-3 LOC3-4"),
        ("S-PER S-PER I-PER", "PER0-1 PER1-2 PER2-3"),
        ("O E-PER E-PER O", "PER1-2 PER2-3"),
        ("B-PER S-PER E-PER", "PER0-1 PER1-2 PER2-3"),
        ("B-A-B I-A-B", "A-B0-2"),
    ],
)
def test_chunks(tags, expected):
    assert " ".join(f"{kind}{a}-{b}" for kind, a, b in metrics.chunks(tags.split())) == expected


@pytest.mark.parametrize("tag", ["X-PER", "B", "B-", "PER"])
def test_tags_of_no_scheme(tag):
    with pytest.raises(ValueError, match=tag):
        metrics.chunks(["O", tag])


def test_chunk_scores():
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-LOC"]]
    found = [["B-PER", "O", "O", "B-LOC"], ["B-PER", "B-LOC"]]
    scores = metrics.chunk_scores(true, found)
    assert scores["all"] == {"precision": 0.5, "recall": 2 / 3, "f1": 4 / 7, "support": 3, "predicted": 4}
    assert scores["LOC"]["f1"] == 1.0
    assert scores["PER"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 1, "predicted": 2}
    assert metrics.chunk_f1(true, found) == 4 / 7
    assert metrics.chunk_precision(true, found) == 0.5
    assert metrics.chunk_recall(true, found) == 2 / 3
    assert metrics.chunk_f1([["O"]], [["O"]]) == 0.0
    report = metrics.chunk_report(true, found)
    assert report.splitlines()[-1].split() == ["all", "0.5000", "0.6667", "0.5714", "3"]


def test_chunk_scores_are_the_programs():
    from maxmargin import SequenceTagger

    X = [["a", "b", "c", "d"], ["b", "a", "d", "c"], ["c", "c", "a", "b"]]
    y = [["B-P", "I-P", "O", "B-Q"], ["O", "B-P", "I-P", "O"], ["B-Q", "I-Q", "B-P", "O"]]
    import json

    model = SequenceTagger(format="columns", template="U:%x[0,0]\n", C=0.1).fit(X, y)
    from maxmargin._sentences import columns_text

    told = json.loads(model._ask("evaluate", ["--json"], columns_text(X, y)))
    assert told["chunk_f1"] == pytest.approx(metrics.chunk_f1(y, model.predict(X)))
    assert told["token_accuracy"] == pytest.approx(metrics.token_accuracy(y, model.predict(X)))
    assert told["sequence_accuracy"] == pytest.approx(metrics.sequence_accuracy(y, model.predict(X)))


def test_accuracies():
    assert metrics.token_accuracy([["A", "B"], ["C"]], [["A", "C"], ["C"]]) == 2 / 3
    assert metrics.sequence_accuracy([["A", "B"], ["C"]], [["A", "C"], ["C"]]) == 0.5
    assert math.isnan(metrics.token_accuracy([], []))
    assert math.isnan(metrics.sequence_accuracy([], []))
    with pytest.raises(ValueError, match="sentence 1 has 1 true tags, 2 predicted"):
        metrics.token_accuracy([["A"], ["B"]], [["A"], ["B", "C"]])
    with pytest.raises(ValueError, match="1 true sentences, 2 predicted"):
        metrics.sequence_accuracy([["A"]], [["A"], ["B"]])


TREE = {"cat": "animal", "dog": "animal", "animal": "thing", "oak": "thing"}


@pytest.mark.parametrize(("a", "b", "loss"), [("cat", "cat", 0), ("cat", "dog", 1), ("cat", "oak", 2), ("cat", "animal", 1), ("oak", "thing", 2)])
def test_tree_loss(a, b, loss):
    assert metrics.tree_loss([a], [b], TREE) == loss
    assert metrics.tree_loss([b], [a], TREE) == loss


def test_tree_loss_of_a_lattice():
    lattice = [*TREE.items(), ("cat", "pet"), ("oak", "pet"), ("pet", "thing")]
    assert metrics.tree_loss(["cat"], ["oak"], lattice) == 1


def test_hierarchical_scores():
    scores = metrics.hierarchical_scores(["cat", "oak"], ["dog", "oak"], TREE)
    assert scores == {"precision": 2 / 3, "recall": 2 / 3, "f1": 2 / 3}
    assert metrics.hierarchical_f1(["cat"], ["animal"], TREE) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="no node"):
        metrics.tree_loss(["cat"], ["cow"], TREE)
    with pytest.raises(ValueError, match="2 roots"):
        metrics.tree_loss(["cat"], ["cat"], {"cat": "a", "dog": "b"})


def test_brackets():
    true = "(ROOT (S (NP (DT the) (NN cat)) (VP (VB sleeps) (PRT (RP in))) (. .)))"
    same = "(TOP (S (NP (DT the) (NN cat)) (VP (VB sleeps) (ADVP (RP in)) (. .))))"
    assert metrics.bracket_f1([true], [same]) == 1.0
    other = "(S (DT the) (NP (NN cat) (VB sleeps)) (RP in) (. .))"
    assert metrics.bracket_scores([true], [other]) == {"precision": 0.5, "recall": 0.25, "f1": 1 / 3, "exact_match": 0.0}
    with pytest.raises(ValueError, match="sample 0"):
        metrics.bracket_f1([true], ["(S (NN a))"])


def test_brackets_that_are_there_twice():
    assert metrics.bracket_f1(["(S (S (NN a)))"], ["(S (NN a))"]) == pytest.approx(2 / 3)


def test_q_score():
    assert metrics.q_score([("AC-GT", "ACTGT")], [("ACG-T", "ACTGT")]) == 3 / 4
    assert metrics.q_score([("AC-GT", "ACTGT")], [("ACG-T", "ACTGT")], window=1) == 1.0
    local = {"ax": "GT", "az": "GT", "x_begin": 3, "z_begin": 4}
    assert metrics.q_score([("AC-GT", "ACTGT")], [local]) == 0.5
    with pytest.raises(ValueError, match="equally long"):
        metrics.q_score([("A", "AC")], [("A", "A")])


def test_hamming():
    assert metrics.hamming([{1, 2}, set()], [{2, 3}, set()]) == 1.0
    assert metrics.hamming([[1, 2], [3]], [[1, 1], [3]]) == 0.5
    with pytest.raises(ValueError, match="2 true labels"):
        metrics.hamming([[1, 2]], [[1]])
