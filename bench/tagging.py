"""Taggers on two problems of the literature, against CRFsuite: Spanish names as in THJA04, and handwritten words."""

import itertools
import statistics
from dataclasses import dataclass, field

from crfsuite import Crfsuite
from inputs import OCR, QUICK_DIVISOR, SPANISH, blocks

# THJA04 section 5.3: five folds of 300 sentences, epsilon 0.01.
SENTENCES, PARTS = 300, 5
PAPER = ["--epsilon", 0.01]
QUADRATIC = ["--solver", "n-slack", "--penalty", "quadratic", *PAPER]
C_TRIED = (0.1, 1, 10)
HMM, CRF = "HMM", "CRF (CRFsuite, lbfgs)"
# Without the HMM, which has features of its own, and the CRF.
METHODS = {
    "perceptron": ["--solver", "perceptron"],
    "SVM2": [*QUADRATIC, "--loss", "zero-one"],
    "SVM2, slack rescaling": [*QUADRATIC, "--rescaling", "slack"],
    "SVM2, margin rescaling": QUADRATIC,
    "linear slack, margin rescaling": ["--solver", "bcfw", *PAPER],
}

# Settings for the whole of the Spanish data, of which testa chooses.
WHOLE_SET = {
    "the defaults": [],
    "c 0.1, epsilon 0.05": ["--c-per-example", 0.1, "--epsilon", 0.05],
    "second order, c 0.1, epsilon 0.05": ["--order", 2, "--c-per-example", 0.1, "--epsilon", 0.05],
}

OCR_C = "0.01,0.03,0.1,0.3,1,3,10"
# At the default gap one point is good enough for several of these C.
OCR_GAP = 0.01
OCR_C2 = (1, 0.1, 0.01)
OCR_SOLVERS = ("one-slack", "n-slack", "bcfw")


class Parts:
    """The first sentences of a file, in columns and as features, to be cut by their numbers modulo PARTS."""

    def __init__(self, bench):
        self.inputs = bench.inputs
        columns, features = self.inputs.plain(f"{SPANISH}.train"), self.inputs.crfsuite(f"{SPANISH}.train", bench.command)
        self.count = SENTENCES // (QUICK_DIVISOR // 4 if self.inputs.quick else 1)
        self.sentences = {"columns": blocks(columns)[: self.count], "crfsuite": blocks(features)[: self.count]}

    def file(self, parts, kind="crfsuite"):
        """Those with a number modulo PARTS among `parts`."""
        text = "".join(f"{sentence}\n\n" for number, sentence in enumerate(self.sentences[kind]) if number % PARTS in parts)
        return self.inputs.make(f"thja04.{''.join(map(str, parts))}.{kind}", lambda out: out.write(text.encode()))

    def fold(self, number, kind="crfsuite"):
        """What to learn from and what to be measured on."""
        rest = [part for part in range(PARTS) if part != number]
        return self.file(rest, kind), self.file([number], kind)


@dataclass
class Folds:
    """What a method made of each fold: token error in %, wrong tokens a sentence, size of the working set."""

    train_errors: list = field(default_factory=list)
    test_errors: list = field(default_factory=list)
    losses: list = field(default_factory=list)
    constraints: list = field(default_factory=list)
    seconds: list = field(default_factory=list)

    def add(self, train, test, constraints, seconds):
        """`train`, `test`: scores."""
        self.train_errors.append(error(train))
        self.test_errors.append(error(test))
        self.losses.append(error(test) / 100 * test["tokens"] / test["examples"])
        self.constraints.append(constraints)
        self.seconds.append(seconds)

    def cells(self):
        errors = [around(self.train_errors, 2), around(self.test_errors, 2)]
        constraints = around(self.constraints, 0) if any(self.constraints) else ""
        return [*errors, constraints, around(self.losses, 2), f"{statistics.mean(self.seconds):.2f}"]


def error(scores):
    return 100 * (1 - scores["token_accuracy"])


def around(values, digits):
    return f"{statistics.mean(values):.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def chosen(bench, parts):
    """C and CRFsuite's c2 with the least error on part 1 after learning from 2, 3 and 4: all in the training data of the first fold."""
    data, heldout = parts.file([2, 3, 4]), parts.file([1])

    def our_error(c):
        run = bench.train("tag", data, "--format", "crfsuite", *QUADRATIC, "--c-per-example", c)
        return error(bench.evaluate(run.model, heldout))

    with Crfsuite(bench, data, heldout) as peer:
        return min(C_TRIED, key=our_error), max(C_TRIED, key=lambda c2: peer.train("lbfgs", c2=c2).accuracy)


def cross_validated(bench, parts, options, kind="crfsuite"):
    found = Folds()
    for number in range(PARTS):
        data, test = parts.fold(number, kind)
        run = bench.train("tag", data, "--format", kind, *options)
        found.add(bench.evaluate(run.model, data), bench.evaluate(run.model, test), run["working_set"], run.seconds)
    return found


def crf_cross_validated(bench, parts, c2):
    found = Folds()
    for number in range(PARTS):
        data, test = parts.fold(number)
        with Crfsuite(bench, data, data, test) as peer:
            run = peer.train("lbfgs", c2=c2)
        found.add(*run.scores, 0, run.seconds)
    return found


def tag_thja04(bench):
    """Spanish names: 300 sentences as in THJA04 tables 2 and 3, and chunk F1 after all of the training data, against CRFsuite"""
    parts = Parts(bench)
    c, c2 = chosen(bench, parts)
    template = bench.inputs.make("hmm.template", lambda out: out.write(b"U:%x[0,0]\n"))
    found = {
        HMM: cross_validated(bench, parts, ["--solver", "mle", "--template", template], "columns"),
        CRF: crf_cross_validated(bench, parts, c2),
    }
    for name, options in METHODS.items():
        with_c = [] if name == "perceptron" else ["--c-per-example", c]
        found[name] = cross_validated(bench, parts, [*options, *with_c])
    errors = {name: statistics.mean(folds.test_errors) for name, folds in found.items()}
    best = min((name for name in METHODS if name != "perceptron"), key=errors.get)
    bench.outcome.at_most(f"test error against the CRF's ({best})", errors[best], errors[CRF], " %")
    bench.outcome.state("chosen: C per example; CRFsuite's c2", f"{c:g}; {c2:g} (each of {', '.join(map(str, C_TRIED))})")
    bench.outcome.table(
        f"{parts.count} sentences, {PARTS} folds, mean ± standard deviation",
        ["method", "train error %", "test error %", "constraints", "wrong tokens a test sentence", "training s"],
        [[name, *folds.cells()] for name, folds in found.items()],
    )
    whole_set(bench)


def whole_set(bench):
    """Chunk F1 on testb after all of the training data, with the settings that do best on testa."""
    data, dev, test = (bench.inputs.crfsuite(f"{SPANISH}.{part}", bench.command) for part in ("train", "testa", "testb"))
    rows, on_dev, on_test = [], {}, {}
    for name, options in WHOLE_SET.items():
        ours = bench.train("tag", data, "--format", "crfsuite", *options)
        on_dev[name] = bench.evaluate(ours.model, dev)["chunk_f1"]
        scores = on_test[name] = bench.evaluate(ours.model, test)
        rows.append([f"maxmargin, {name} (testa {100 * on_dev[name]:.2f})", scores, ours.seconds, "this run"])
    chosen = max(on_dev, key=on_dev.get)
    with Crfsuite(bench, data, test) as peer:
        runs = {algorithm: peer.train(algorithm) for algorithm in ("lbfgs", "ap")}
    best = max(runs, key=lambda algorithm: runs[algorithm].scores[0]["chunk_f1"])
    what = f"testb, chunk F1, {chosen} (CRFsuite's best of {', '.join(runs)}: {best})"
    bench.outcome.at_least(what, 100 * on_test[chosen]["chunk_f1"], 100 * runs[best].scores[0]["chunk_f1"], " %")
    rows += [[f"CRFsuite, {algorithm}", run.scores[0], run.seconds, run.origin] for algorithm, run in runs.items()]
    bench.outcome.table(
        "all training data, testb",
        ["by", "chunk F1 %", "accuracy %", "training s", "measured in"],
        [[by, f"{100 * found['chunk_f1']:.2f}", f"{100 * found['token_accuracy']:.2f}", f"{seconds:.1f}", origin] for by, found, seconds, origin in rows],
    )


def read_words(path):
    """Words of a file in the format of SVM-hmm: pairs of a tag and its features, letter by letter."""
    letters = (line.split(maxsplit=2) for line in path.read_text().splitlines())
    return [[(tag, features) for tag, _, features in word] for _, word in itertools.groupby(letters, key=lambda letter: letter[1])]


class Words:
    """Words in a file for each program, numbered from 1."""

    def __init__(self, bench, name, words):
        self.svmhmm = bench.inputs.make(f"{name}.svmhmm", lambda out: out.write(svmhmm(words).encode()))
        self.crfsuite = bench.inputs.make(f"{name}.crfsuite", lambda out: out.write(crfsuite(words).encode()))


def svmhmm(words):
    return "".join(f"{tag} qid:{number} {features}\n" for number, word in enumerate(words, 1) for tag, features in word)


def crfsuite(words):
    """With attributes for the two ends of a word: maxmargin has weights for the tags there, CRFsuite has none of its own."""
    lines = []
    for word in words:
        for at, (tag, features) in enumerate(word, 1):
            ends = [name for name, there in (("begin", at == 1), ("end", at == len(word))) if there]
            lines.append("\t".join([tag, *features.split(), *ends]))
        lines.append("")
    return "".join(f"{line}\n" for line in lines)


def ours_on_words(bench, learn, hold, whole, test):
    """C per example, chosen on what is held out of the training data; accuracy in % with it; the run."""
    settings = ["--format", "svmhmm", "--relative-gap", OCR_GAP]
    path = bench.train("tag", learn.svmhmm, *settings, "--heldout", hold.svmhmm, "--c-path-per-example", OCR_C)["path"]
    at = min(range(len(path)), key=lambda i: path[i]["heldout_loss"])
    c = float(OCR_C.split(",")[at])
    run = bench.train("tag", whole.svmhmm, *settings, "--c-per-example", c)
    return c, 100 * bench.evaluate(run.model, test.svmhmm)["token_accuracy"], run


def crfsuite_on_words(bench, learn, hold, whole, test):
    """The same of CRFsuite's algorithms, by name with c2, where they have one."""
    found = {}
    with Crfsuite(bench, learn.crfsuite, hold.crfsuite) as trial, Crfsuite(bench, whole.crfsuite, test.crfsuite) as peer:
        for algorithm in ("lbfgs", "l2sgd"):
            c2 = max(OCR_C2, key=lambda c2: trial.train(algorithm, c2=c2).accuracy)
            found[f"{algorithm}, c2 {c2:g}"] = peer.train(algorithm, c2=c2)
        found["ap"] = peer.train("ap")
    return found


def tag_ocr(bench):
    """handwritten words: accuracy of letters against CRFsuite, and whether three solvers find the same optimum"""
    folds = [read_words(bench.inputs.plain(f"{OCR}.fold{number}")) for number in range(10)]
    nine = [word for fold in folds[1:] for word in fold]
    table = []
    for name, train, test in (("1 fold", folds[0], nine), ("9 folds", nine, folds[0])):
        stem = f"ocr.{name[0]}"
        whole, test = Words(bench, f"{stem}.train", train), Words(bench, f"{stem}.test", test)
        hold = Words(bench, f"{stem}.hold", train[::5])
        learn = Words(bench, f"{stem}.learn", [word for at, word in enumerate(train) if at % 5])
        c, accuracy, run = ours_on_words(bench, learn, hold, whole, test)
        theirs = crfsuite_on_words(bench, learn, hold, whole, test)
        best = max(theirs, key=lambda algorithm: theirs[algorithm].accuracy)
        bench.outcome.at_least(f"learning from {name}: accuracy of letters (CRFsuite's best: {best})", accuracy, theirs[best].accuracy, " %")
        table.append([name, f"maxmargin, c {c:g}", f"{accuracy:.2f}", f"{run.seconds:.1f}", "this run"])
        table += [[name, f"CRFsuite, {algorithm}", f"{found.accuracy:.2f}", f"{found.seconds:.1f}", found.origin] for algorithm, found in theirs.items()]
        if train is folds[0]:
            same_optimum(bench, whole.svmhmm, c)
    bench.outcome.table("1 thread", ["learning from", "by", "accuracy of letters %", "training s", "measured in"], table)


def same_optimum(bench, data, c):
    settings = ["--format", "svmhmm", "--c-per-example", c, "--relative-gap", 1e-3]
    runs = {solver: bench.train("tag", data, *settings, "--solver", solver) for solver in OCR_SOLVERS}
    primals = [run["primal"] for run in runs.values()]
    bench.outcome.at_most(f"primals of {', '.join(runs)} on fold 0: most over least", 100 * (max(primals) / min(primals) - 1), 0.2, " %")
    bench.outcome.table(
        f"fold 0, c {c:g}, relative gap 0.001",
        ["solver", "status", "primal", "rounds", "passes", "working set", "training s"],
        [
            [solver, run["status"], f"{run['primal']:.3f}", run["rounds"], f"{run['passes']:g}", run["working_set"], f"{run.seconds:.2f}"]
            for solver, run in runs.items()
        ],
    )
