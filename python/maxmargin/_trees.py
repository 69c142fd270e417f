"""Parse trees: nested tuples, and brackets as in the Penn Treebank.

A tree is ``(label, child, ...)``; a child is a tree, or in ``(tag, word)`` a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

Tree = tuple[Any, ...]

_TOKEN = re.compile(r"\(|\)|[^\s()]+")
_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}


def word_of(text: str) -> str:
    """A word as the treebank writes it: brackets have names there."""
    return _BRACKETS.get(text) or text.replace("(", "-LRB-").replace(")", "-RRB-")


def from_brackets(text: str) -> Tree:
    """The tree of a string.

    >>> from_brackets("(S (NP (DT the) (NN cat)) (VB sleeps))")
    ('S', ('NP', ('DT', 'the'), ('NN', 'cat')), ('VB', 'sleeps'))
    """
    stack: list[list[Any]] = [[]]
    for token in _TOKEN.findall(text):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                raise ValueError(f"a bracket too many is closed in {text[:60]!r}")
            done = stack.pop()
            # The outer pair of ( (S ...) ) has no label.
            stack[-1].append(done[0] if len(done) == 1 and isinstance(done[0], tuple) else tuple(done))
        else:
            stack[-1].append(token)
    if len(stack) != 1 or len(stack[0]) != 1 or not isinstance(stack[0][0], tuple):
        raise ValueError(f"{text[:60]!r} is not one tree in brackets")
    found: Tree = stack[0][0]
    return found


def to_brackets(tree: Any) -> str:
    """The string of a tree of tuples or lists.

    >>> to_brackets(("S", ("NP", ("DT", "the"), ("NN", "cat")), ("VB", "sleeps")))
    '(S (NP (DT the) (NN cat)) (VB sleeps))'
    """
    if isinstance(tree, str):
        return word_of(tree)
    label, *children = tree
    if not isinstance(label, str) or len(label.split()) != 1 or not children:
        raise ValueError(f"{tree!r} is no tree: it needs a label that is a word, and children")
    parts = [to_brackets(child) for child in children]
    return f"({label} {' '.join(parts)})"


def leaves(tree: Any) -> Iterator[tuple[str, str]]:
    """(word, tag) of each leaf, from left to right."""
    label, *children = tree
    if len(children) == 1 and isinstance(children[0], str):
        yield children[0], label
        return
    for child in children:
        if isinstance(child, str):
            raise ValueError(f"the word {child!r} is not alone in the bracket of its tag, in {tree!r}")
        yield from leaves(child)
