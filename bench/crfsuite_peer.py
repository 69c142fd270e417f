"""CRFsuite, in the environment of the peers (build.py) and in a process of its own. Prints JSON lines.

crfsuite_peer.py train TRAIN TEST...  trains for each JSON object of standard input (algorithm, parameters, model), times it, scores it on each TEST
crfsuite_peer.py tag MODEL FILE       times tagging
crfsuite_peer.py read MEGABYTES       how fast one thread reads memory

Times are CPU seconds unless they are called wall: CRFsuite has one thread and hardly waits, so that on a quiet machine both are the same.
"""

import functools
import json
import multiprocessing
import re
import sys
import time

import numpy as np
import pycrfsuite

ATTRIBUTE = re.compile(r"((?:[^\\:]|\\.)*)(?::(.*))?")
REPETITIONS = 3


@functools.cache
def attribute(text):
    """Name and value of NAME[:VALUE]. In a name a backslash stands before a colon or a backslash."""
    name, value = ATTRIBUTE.fullmatch(text).groups()
    return re.sub(r"\\(.)", r"\1", name), float(value) if value else 1.0


def item(fields):
    """What CRFsuite takes for a token: names alone, which is faster, or names with values."""
    pairs = [attribute(field) for field in fields]
    return [name for name, _ in pairs] if all(value == 1.0 for _, value in pairs) else dict(pairs)


def load(path):
    """Sentences in CRFsuite's format: their items, and their tags."""
    sentences, tags = [[]], [[]]
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            tag, *fields = line.rstrip("\n").split("\t")
            if tag:
                sentences[-1].append(item(fields))
                tags[-1].append(tag)
            elif tags[-1]:
                sentences.append([])
                tags.append([])
    return ([s for s in sentences if s], [t for t in tags if t])


def prepared(path):
    """The sentences as CRFsuite keeps them, and their tags."""
    sentences, tags = load(path)
    return [pycrfsuite.ItemSequence(sentence) for sentence in sentences], tags


def train(train_path, *test_paths):
    sentences, tags = prepared(train_path)
    tests = [(sentences, tags) if path == train_path else prepared(path) for path in test_paths]
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(apart(lambda: fit(request, sentences, tags, tests))), flush=True)


def apart(work):
    """What `work` gives in a fork: CRFsuite shuffles by rand(), which starts anew there, so that a run can be repeated."""
    fork = multiprocessing.get_context("fork")
    ours, its = fork.Pipe(duplex=False)
    process = fork.Process(target=lambda: its.send(work()))
    process.start()
    its.close()
    try:
        return ours.recv()
    except EOFError:
        sys.exit("CRFsuite failed")
    finally:
        process.join()


def fit(request, sentences, tags, tests):
    trainer = pycrfsuite.Trainer(algorithm=request["algorithm"], verbose=False)
    trainer.set_params(request["parameters"])
    wall, cpu = time.perf_counter(), time.process_time()
    for sentence, truth in zip(sentences, tags):
        trainer.append(sentence, truth)
    trainer.train(request["model"])
    seconds = {"seconds": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    tagger = opened(request["model"])
    return {**seconds, "iterations": len(trainer.logparser.iterations), "scores": [scores(tagger, *test) for test in tests]}


def opened(model):
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    return tagger


def scores(tagger, sentences, tags):
    """By the names that `maxmargin evaluate` has for them."""
    predictions = [tagger.tag(sentence) for sentence in sentences]
    tokens = sum(map(len, tags))
    wrong = sum(p != t for predicted, truth in zip(predictions, tags) for p, t in zip(predicted, truth))
    pairs = [(chunks(predicted), chunks(truth)) for predicted, truth in zip(predictions, tags)]
    correct, total = sum(len(p & t) for p, t in pairs), sum(len(p) + len(t) for p, t in pairs)
    return {"examples": len(tags), "tokens": tokens, "token_accuracy": 1 - wrong / tokens, "chunk_f1": 2 * correct / total if total else None}


def chunks(tags):
    """(kind, begin, end) as CoNLL's conlleval counts them: B-X begins one, and so does I-X that does not go on with one."""
    found, kind, begin = set(), None, 0
    for at, tag in enumerate([*tags, "O"]):
        place, _, name = tag.partition("-")
        if kind is not None and (place, name) != ("I", kind):
            found.add((kind, begin, at))
            kind = None
        if kind is None and place in ("B", "I"):
            kind, begin = name, at
    return found


def tag(model, path):
    start = time.process_time()
    sentences, tags = load(path)
    reading = time.process_time() - start
    tagger = opened(model)
    building = fastest(lambda: [pycrfsuite.ItemSequence(sentence) for sentence in sentences])
    built = [pycrfsuite.ItemSequence(sentence) for sentence in sentences]
    tagging = fastest(lambda: [tagger.tag(sentence) for sentence in built])
    print(json.dumps({"tokens": sum(map(len, tags)), "reading": reading, "building": building, "tagging": tagging}))


def read(megabytes):
    values = np.ones(int(megabytes) * 1_000_000 // 8)
    print(json.dumps({"bytes_per_second": values.nbytes / fastest(values.sum)}))


def fastest(work):
    """CPU seconds of the fastest of some runs."""

    def seconds():
        start = time.process_time()
        work()
        return time.process_time() - start

    return min(seconds() for _ in range(REPETITIONS))


if __name__ == "__main__":
    {"train": train, "tag": tag, "read": read}[sys.argv[1]](*sys.argv[2:])
