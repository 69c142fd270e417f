"""The task `parse`: trees of short sentences by tiny grammars, and all derivations written out.

An output is a derivation: rules that lead from a root symbol to the terminals of the sentence.
Its features count its rules; with `--features spans` each phrase also has five features of its
span. `trees.py` reads trees and grammars and lists the derivations.

Not drawn: labels with '|', '_', '<', '>' or '^', which make the names of symbols in a model file
ambiguous, and sentences with words that training has not seen. `--fallback` is drawn only where
each lost tree has one nearest derivation, because the documentation does not say which of several
is taken.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from ..problem import Candidate, Draw, Example, Key, Part, Weights
from .trees import Grammar, Tree, brackets, name_of, read_trees

MOST_DERIVATIONS = 2000
TRAIN = "train.mrg"


# Features and losses.


def length_class(words: int) -> int:
    """1, 2, 3, 4, 5, up to 10, up to 20, more: from 0."""
    return sum(words > last for last in (1, 2, 3, 4, 5, 10, 20))


def span_features(sentence: list, begin: int, end: int) -> tuple:
    before = sentence[begin - 1] if begin > 0 else None
    after = sentence[end] if end < len(sentence) else None
    return (
        ("length", length_class(end - begin)),
        ("first", sentence[begin]),
        ("last", sentence[end - 1]),
        ("before", before),
        ("after", after),
    )


def features(grammar: Grammar, sentence: list, derivation: tuple) -> Counter:
    """psi, by block, slot and features of a part."""
    counts: Counter = Counter()

    def count(derivation: tuple) -> None:
        symbol = derivation[0]
        if symbol[0] == "tag":
            if grammar.lexicon:
                counts["rules", ("lexical", symbol, derivation[1]), (0,)] += 1
            return
        below = derivation[1:]
        rule = (symbol, *(child[0] for child in below))
        if rule not in grammar.forced:
            counts["rules", ("unary" if len(below) == 1 else "binary", *rule), (0,)] += 1
        for child in below:
            count(child)

    counts["rules", ("root", derivation[0]), (0,)] += 1
    count(derivation)
    if grammar.options.get("features") == "spans":
        for symbol, span in brackets(derivation):
            counts["spans", symbol, span_features(sentence, *span)] += 1
    return counts


def loss_of(name: str, truth: tuple, other: tuple) -> float:
    if name == "zero-one":
        return float(truth != other)
    true, found = brackets(truth), brackets(other)
    wrong, total = len(true ^ found), len(true) + len(found)
    if name == "hamming":
        return float(wrong)
    return wrong / total if total else 0.0


def candidates(grammar: Grammar, sentence: list, truth: tuple, loss: str) -> list[Candidate]:
    """All other derivations. Those with the same loss and the same features are written once."""
    of_truth = features(grammar, sentence, truth)
    seen: set = set()
    found = []
    is_there = False
    for other in grammar.derivations(sentence):
        if other == truth:
            is_there = True
            continue
        difference = Counter(of_truth)
        difference.subtract(features(grammar, sentence, other))
        entries = frozenset((key, count) for key, count in difference.items() if count)
        cost = loss_of(loss, truth, other)
        if (cost, entries) in seen or cost == 0.0 and not entries:
            continue
        seen.add((cost, entries))
        parts = [
            Part(block, slot, {feature: 1.0 for feature in own}, float(count))
            for (block, slot, own), count in sorted(entries, key=repr)
        ]
        found.append(Candidate(cost, parts))
    if not is_there:
        raise AssertionError(f"the grammar does not derive its own tree {truth}")
    return found


# The interface of task modules.

FLAGS = ("parent_annotation", "keep_empty", "keep_functions", "fallback")


def arguments_of(options: dict[str, Any]) -> list[str]:
    found = ["parse", TRAIN]
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        found += [flag] if name in FLAGS else [flag, str(value)]
    return found


def read_grammar(text: str, options: dict[str, Any]) -> Grammar:
    """The grammar of a file."""
    trees = read_trees(text, bool(options.get("keep_empty")), bool(options.get("keep_functions")))
    most = options.get("max_words")
    trees = [tree for tree in trees if most is None or len(tree.leaves()) <= most]
    return Grammar(trees, {**options, "trees": trees})


def draw(random: np.random.Generator, scale: float) -> Draw:
    """A few trees and options. Features are counts, so `scale` has no effect."""
    found = None
    while found is None:
        options = draw_options(random)
        tries = (draw_text(random, options) for _ in range(60))
        found = next((text for text in tries if is_fit(text, options)), None)
    text = found
    # mle counts rules and has no weights for spans.
    solvers = [] if "features" in options else ["mle"]
    traits = {"solvers": solvers, "options": options}
    return Draw({TRAIN: text}, arguments_of(options), None, traits)


def is_fit(text: str, options: dict[str, Any]) -> bool:
    """Are there trees to learn from, and few enough derivations?"""
    grammar = read_grammar(text, options)
    if not any(grammar.is_kept):
        return False
    counts = [grammar.count(grammar.sentence(tree)) for tree in grammar.options["trees"]]
    if max(counts) > MOST_DERIVATIONS or not 3 <= sum(counts) <= 2 * MOST_DERIVATIONS:
        return False
    known = grammar.examples()
    if not known:
        return False
    # With --fallback at least one tree must be replaced.
    return not options.get("fallback") or any(is_replaced for *_, is_replaced in known)


def draw_options(random: np.random.Generator) -> dict[str, Any]:
    def chance(p: float) -> bool:
        return random.random() < p

    options: dict[str, Any] = {"loss": str(random.choice(["zero-one", "f1", "hamming"]))}
    if options["loss"] == "f1" and chance(0.3):
        del options["loss"]
    if chance(0.4):
        options["terminals"] = "words"
        if chance(0.5):
            options["rare_below"] = int(random.integers(1, 4))
    if chance(0.4):
        options["features"] = "spans"
    if chance(0.3):
        options["parent_annotation"] = True
    if chance(0.4):
        options["binarise"] = "head"
    if chance(0.4):
        options["markov"] = int(random.integers(0, 3))
    if chance(0.2):
        options["keep_empty"] = True
    if chance(0.2):
        options["keep_functions"] = True
    if chance(0.2):
        options["min_count"] = int(random.integers(1, 4))
    if chance(0.15):
        options["max_words"] = int(random.integers(3, 6))
    if chance(0.15):
        options["max_span"] = int(random.integers(1, 4))
    leaves_out = options.get("min_count", 1) > 1 or "max_span" in options
    if leaves_out and chance(0.5):
        options["fallback"] = True
    if options.get("loss", "f1") == "f1" and chance(0.1):
        options["exact_words"] = int(random.integers(0, 7))
    return options


WORDS = (
    "the cat cats grass walking nation happy happily Dog Dogs DNA DNAs p53 BRCA2 1,000 x-ray "
    "half-baked A ring 1990s"
).split()


def draw_text(random: np.random.Generator, options: dict[str, Any]) -> str:
    """A file of one to five trees over few labels."""

    def some(items: list[str], most: int) -> list[str]:
        count = int(random.integers(1, most + 1))
        return [str(item) for item in random.permutation(items)[:count]]

    phrases = some(["S", "VP", "PP", "XA", "XB"], 3)
    tags = some(["IN", "TO", "a", "b", ","], 3)
    if options.get("markov") is None and random.random() < 0.1:
        tags.append(phrases[0])
    words = some(WORDS, 7)

    def pick(items: list[str]) -> str:
        return items[int(random.integers(len(items)))]

    def leaf() -> Tree:
        return Tree(pick(tags), word=pick(words))

    def phrase() -> str:
        return pick(phrases) + (pick(["-SBJ", "=2", "-LOC-1"]) if random.random() < 0.1 else "")

    def build(count: int, top: bool) -> Tree:
        if count == 1:
            tree = leaf()
            while random.random() < 0.3:
                tree = Tree(phrase(), [tree])
            return tree
        children = int(random.integers(2, min(count, 4) + 1))
        cuts = sorted(random.choice(np.arange(1, count), children - 1, replace=False).tolist())
        sizes = np.diff([0, *cuts, count]).tolist()
        below = [build(size, False) for size in sizes]
        if random.random() < 0.1:
            empty = Tree("-NONE-", word="*T*")
            if random.random() < 0.3:
                empty = Tree(phrase(), [empty])
            below.insert(int(random.integers(len(below) + 1)), empty)
        tree = Tree(phrases[0] if top and random.random() < 0.7 else phrase(), below)
        while random.random() < 0.15:
            tree = Tree(phrase(), [tree])
        return tree

    lines = ["# drawn at random"] if random.random() < 0.2 else []
    for _ in range(int(random.integers(1, 6))):
        size = int(random.choice([1, 2, 3, 4, 5, 6], p=[0.05, 0.15, 0.25, 0.25, 0.15, 0.15]))
        text = build(size, True).text()
        choice = random.random()
        if choice < 0.1:
            text = f"( {text} )"
        elif choice < 0.15:
            text = f"( {text} {leaf().text()} )"
        elif choice < 0.2:
            text = text.replace(") (", ")\n  (")
        # Rules that are seen several times, for --min-count.
        lines += [text] * (int(random.integers(1, 4)) if "min_count" in options else 1)
    return "\n".join(lines) + "\n"


def examples(folder: Path, draw: Draw, formulation: dict) -> list[Example]:
    options = draw.traits["options"]
    grammar = read_grammar((Path(folder) / TRAIN).read_text(), options)
    loss = options.get("loss", "f1")
    found = []
    for sentence, truth, _ in grammar.examples() or []:
        found.append(Example(candidates(grammar, sentence, truth, loss)))
    return found


def weights(folder: Path, draw: Draw, model: Any) -> Weights:
    options = draw.traits["options"]
    grammar = read_grammar((Path(folder) / TRAIN).read_text(), options)
    record, tensors = model.record, model.tensors

    def names(tensor: str) -> list[str]:
        return bytes(tensors[tensor]).decode().split("\n") if len(tensors[tensor]) else []

    symbols, labels = names("names.symbols"), names("names.labels")
    # A single phrase without a name leaves an empty tensor.
    symbols = symbols or [""] * record["symbols"]
    labels = labels or [""] * record["phrases"]
    phrases, tags = record["phrases"], record["tags"]
    assert len(symbols) == record["symbols"] and len(labels) == phrases
    known: list[tuple | None] = []
    for name, label in zip(symbols, labels):
        above = None if name == label else name[len(label) + 1 :]
        known.append(("phrase", label, above))
    known += [("tag", name) for name in symbols[phrases : phrases + tags]]
    known += [None] * (len(symbols) - len(known))
    by_name = {name_of(symbol): symbol for symbol in known[:phrases]}
    binary = np.asarray(tensors["rules.binary"]).reshape(-1, 3).tolist()
    children = {parent: (left, right) for parent, left, right in binary}

    def symbol(at: int) -> tuple:
        found = known[at]
        if found is None:
            phrase, text = symbols[at].split("|", 1)
            if options.get("markov") is None:
                left, right = children[at]
                found = ("between", by_name[phrase], symbol(left), symbol(right))
            else:
                found = ("between", by_name[phrase], text)
            known[at] = found
        return found

    rules: list[tuple] = []
    rules += [("root", symbol(a)) for a in np.ravel(tensors["rules.root"]).tolist()]
    unary = np.asarray(tensors["rules.unary"]).reshape(-1, 2).tolist()
    rules += [("unary", symbol(a), symbol(b)) for a, b in unary]
    rules += [("binary", symbol(a), symbol(b), symbol(c)) for a, b, c in binary]
    terminals: list[tuple] = known[phrases : phrases + tags]
    if grammar.lexicon:
        sizes = record["lexicon"]
        own = names("names.terminals")
        assert len(own) == sizes["terminals"]
        kinds = ["word" if at < sizes["words"] else "class" for at in range(len(own))]
        terminals = list(zip(kinds, own))
        lexical = np.asarray(tensors["rules.lexical"]).reshape(-1, 2).tolist()
        rules += [("lexical", symbol(tag), terminals[word]) for tag, word in lexical]
    expected = grammar.rules()
    if set(rules) != expected or len(rules) != len(expected):
        unlike = sorted(set(rules) ^ expected, key=repr)
        raise AssertionError(f"the grammar of the model is another one: {unlike}")
    if record["longest"] != grammar.longest:
        raise AssertionError(f"rows of {record['longest']} unary rules, not {grammar.longest}")

    values = np.asarray(tensors["weights"], dtype=np.float64).ravel()
    linear: dict[Key, float] = {}
    at = 0
    for rule in rules:
        if rule[0] == "binary" and rule[1:] in grammar.forced:
            continue
        linear["rules", rule, 0] = float(values[at])
        at += 1
    if options.get("features") == "spans":
        rows: list = [("length", k) for k in range(8)]
        for kind in ("first", "last", "before", "after"):
            rows += [(kind, terminal) for terminal in terminals]
            rows += [(kind, None), (kind, "unknown")]
        for row in rows:
            for phrase in known[:phrases]:
                linear["spans", phrase, row] = float(values[at])
                at += 1
    if at != len(values):
        raise AssertionError(f"{len(values)} weights in the file, and {at} features")
    return Weights(linear)
