#!/usr/bin/env python3
"""Check english.mrg and derive its parts for training and testing from it.

Usage: derive.py [--check | --stats]

Without an option the trees are checked and four files are written: the trees
themselves, english.train.mrg and english.test.mrg, and english.train.pos and
english.test.pos, one `WORD<TAB>TAG` line a token, an empty line between
sentences. Every 8th sentence is test, the others train. `--check` writes nothing and exits 1 if
the files are not what english.mrg gives. `--stats` writes nothing and prints
counts. An error in the trees is reported as file:line and exits 1.
"""

import re
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "english.mrg"
TEST_EVERY = 8
TAGS = set(
    """CC CD DT EX FW IN JJ JJR JJS LS MD NN NNS NNP NNPS PDT POS PRP PRP$ RB
    RBR RBS RP SYM TO UH VB VBD VBG VBN VBP VBZ WDT WP WP$ WRB
    # $ '' `` , . : -LRB- -RRB-""".split()
)
PHRASES = set(
    """S SBAR SBARQ SQ SINV NP VP PP ADJP ADVP QP WHNP WHADVP WHPP PRT INTJ
    FRAG PRN CONJP UCP NX""".split()
)


class TreeError(Exception):
    """A line of the treebank that breaks its conventions."""


def parse(text):
    """Return the tree of a line as (label, [children]) or (tag, word)."""
    pieces = re.findall(r"[()]|[^\s()]+", text)
    stack = [("", [])]
    i = 0
    while i < len(pieces):
        piece = pieces[i]
        if piece == "(":
            if i + 1 == len(pieces) or pieces[i + 1] in "()":
                raise TreeError("a bracket without a label")
            stack.append((pieces[i + 1], []))
            i += 1
        elif piece == ")":
            if len(stack) == 1:
                raise TreeError("a closing bracket too many")
            node = stack.pop()
            stack[-1][1].append(node)
        else:
            stack[-1][1].append(piece)
        i += 1
    if len(stack) > 1:
        raise TreeError(f"{len(stack) - 1} closing bracket(s) missing")
    roots = stack[0][1]
    if len(roots) != 1 or isinstance(roots[0], str) or roots[0][0] != "ROOT":
        raise TreeError("not exactly one (ROOT ...)")
    return roots[0]


def tokens(node, top=True):
    """Check the tree `node` and return its (word, tag) pairs in order."""
    label, children = node
    if not children:
        raise TreeError(f"({label}) has no children")
    if isinstance(children[0], str):
        if len(children) != 1:
            raise TreeError(f"({label} {children[0]} ...) has more than one word")
        if label not in TAGS:
            raise TreeError(f"unknown tag {label} of {children[0]}")
        return [(children[0], label)]
    if top != (label == "ROOT") or not (top or label in PHRASES):
        raise TreeError(f"unknown or misplaced phrase label {label}")
    found = []
    for child in children:
        if isinstance(child, str):
            raise TreeError(f"word {child} without a tag in {label}")
        if child[0] == label and len(children) == 1:
            raise TreeError(f"{label} whose only child is {label}")
        found += tokens(child, False)
    return found


def read():
    """Return english.mrg's lines and their sentences; print the errors and exit if any."""
    sentences, seen, errors = [], {}, []
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            sentence = tokens(parse(line))
            words = " ".join(word for word, _ in sentence)
            if words in seen:
                raise TreeError(f"same sentence as line {seen[words]}")
            seen[words] = number
            sentences.append(sentence)
        except TreeError as error:
            errors.append(f"{SOURCE.name}:{number}: {error}")
    if errors:
        sys.exit("\n".join(errors))
    return lines, sentences


def parts(things):
    """Split a list: what is trained on, and what is tested with."""
    return [x for i, x in enumerate(things, 1) if i % TEST_EVERY], things[TEST_EVERY - 1 :: TEST_EVERY]


def stats(train, test):
    """Print sentence, token and tag counts."""
    every = [pair for sentence in train + test for pair in sentence]
    known = {word for sentence in train for word, _ in sentence}
    tested = [word for sentence in test for word, _ in sentence]
    unknown = sum(word not in known for word in tested)
    print(f"sentences: {len(train)} train + {len(test)} test = {len(train) + len(test)}")
    print(f"tokens: {len(every) - len(tested)} train + {len(tested)} test = {len(every)}")
    print(f"words: {len({word for word, _ in every})} different")
    print(f"test tokens not in train: {unknown} ({unknown / max(1, len(tested)):.1%})")
    counts = Counter(tag for _, tag in every)
    print("tags:", " ".join(f"{tag}:{n}" for tag, n in counts.most_common()))
    print("unused tags:", " ".join(sorted(TAGS - counts.keys())) or "none")


def main(arguments):
    if arguments not in ([], ["--check"], ["--stats"]):
        sys.exit("usage: derive.py [--check | --stats]")
    lines, sentences = read()
    train, test = parts(sentences)
    if arguments == ["--stats"]:
        return stats(train, test)
    texts = {}
    for name, trees, tagged in zip(("train", "test"), parts(lines), (train, test)):
        texts[f"english.{name}.mrg"] = "".join(f"{tree}\n" for tree in trees)
        texts[f"english.{name}.pos"] = "\n".join("".join(f"{w}\t{t}\n" for w, t in s) for s in tagged)
    for name, text in texts.items():
        path = HERE / name
        if not arguments:
            path.write_text(text, encoding="utf-8", newline="\n")
        elif not path.is_file() or path.read_bytes() != text.encode():
            sys.exit(f"{name} is not what {SOURCE.name} gives: run {Path(__file__).name}")


if __name__ == "__main__":
    main(sys.argv[1:])
