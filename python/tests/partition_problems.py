"""A small problem of every task, whole and in partitions, for the tests of partitions and of Dask."""

from maxmargin import _native, datasets

PARTS = 5


def cut(samples, parts=PARTS):
    """Neighbours, in parts of different sizes."""
    n = samples.shape[0] if hasattr(samples, "shape") else len(samples)
    ends = [0, *(n * (k + 1) * (k + 2) // (parts * (parts + 1)) for k in range(parts))]
    return [samples[a:b] for a, b in zip(ends[:-1], ends[1:], strict=True)]


def pairs(X, y):
    return list(zip(cut(X), cut(y), strict=True))


def problems():
    """By task: parameters, X, y."""
    X, y = datasets.make_binary(150, features=8, noise=0.1, random_state=3)
    found = {"binary": ({"task": "binary", "C": 0.5}, X, y)}
    X, y = datasets.make_multiclass(150, features=8, classes=4, noise=0.1, random_state=3)
    found["multiclass"] = ({"task": "multiclass", "C": 0.5, "bias": 1.0}, X, y)
    X, y, tree = datasets.make_taxonomy(120, random_state=3)
    found["taxonomy"] = ({"task": "taxonomy", "C": 0.5, "taxonomy": tree}, X, y)
    X, y = datasets.make_multilabel(80, random_state=3)
    found["multilabel"] = ({"task": "multilabel", "C": 0.5}, X, y)
    X, y = datasets.make_tags(40, random_state=3)
    found["tag"] = ({"task": "tag", "C": 0.5, "format": "columns"}, X, y)
    X, y = datasets.make_trees(40, random_state=3)
    found["parse"] = ({"task": "parse", "C": 0.5}, X, y)
    X, y = datasets.make_graphs(20, height=3, width=3, labels=3, features=4, random_state=3)
    found["graph"] = ({"task": "graph", "C": 0.5}, X, y)
    X, y = datasets.make_alignments(25, length=12, decoys=3, random_state=3)
    found["align"] = ({"task": "align", "C": 0.5}, X, y)
    return found


TASKS = ("binary", "multiclass", "taxonomy", "multilabel", "tag", "parse", "graph", "align")


SIZES = {
    "graph": ["--height", "3", "--width", "3", "--labels", "3", "--features", "4"],
    "align": ["--length", "12", "--decoys", "3"],
    "multilabel": ["--features", "10", "--labels", "8"],
    "multiclass": ["--features", "8", "--classes", "4"],
}


def text(task, n_samples=60, seed=3):
    """Generated text in the task's format, cut between examples."""
    options = ["--examples", str(n_samples), "--seed", str(seed), *SIZES.get(task, [])]
    whole = _native.generate(task, options).decode()
    if task == "tag":
        examples = [block + "\n\n" for block in whole.strip().split("\n\n")]
    else:
        examples = [line + "\n" for line in whole.splitlines()]
    return ["".join(part).encode() for part in cut(examples)]
