"""Sentences and their tags, between Python and the text that the program reads and writes."""

from __future__ import annotations

import contextlib
import itertools
import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maxmargin import _labels, _native


def as_lists(sentences: Any, name: str) -> list[list[Any]]:
    """A list of lists, checked; lists are not copied."""
    if isinstance(sentences, (str, bytes)):
        raise ValueError(f"{name} is text; say how it is written with format='columns', 'crfsuite' or 'svmhmm'")
    if isinstance(sentences, Mapping) or not isinstance(sentences, Iterable):
        raise ValueError(f"{name} is {reprlib.repr(sentences)}; it must be a list of sentences, and a sentence a list")
    found = []
    for i, sentence in enumerate(sentences):
        if isinstance(sentence, list):
            found.append(sentence)
            continue
        if isinstance(sentence, (str, bytes, dict)) or not isinstance(sentence, Iterable):
            raise ValueError(
                f"{name}: sentence {i} is a {type(sentence).__name__}, not a list of tokens; {name} is a list of sentences, and a "
                "sentence a list"
            )
        found.append(list(sentence))
    return found


def check_lengths(X: Sequence[Sequence[Any]], y: Sequence[Sequence[Any]], allow_empty: bool = False) -> None:
    """Has every token a tag?"""
    if len(X) != len(y):
        raise ValueError(f"Found input variables with inconsistent numbers of samples: {[len(X), len(y)]}")
    for i, (tokens, tags) in enumerate(zip(X, y, strict=True)):
        if len(tokens) != len(tags):
            raise ValueError(f"sentence {i} has {len(tokens)} tokens, but {len(tags)} tags")
        if not tokens and not allow_empty:
            raise ValueError(f"sentence {i} has no tokens; leave it out")


def distinct_tags(y: list[list[Any]]) -> list[Any]:
    """In the order of their first appearance, checked."""
    members: list[Any] | None = _native.distinct_words(y)
    try:
        if members is None:
            members = list(dict.fromkeys(itertools.chain.from_iterable(y)))
        if None in members:
            raise TypeError
    except TypeError:
        raise _no_tag(y) from None
    try:
        _labels.check_kinds(members)
    except ValueError:
        # Once more, over all of them, to name the token.
        places = [f"token {j} of sentence {i}" for i, tags in enumerate(y) for j in range(len(tags))]
        _labels.check_kinds(itertools.chain.from_iterable(y), places.__getitem__)
        raise
    return members


def tag_words(y: list[list[Any]]) -> dict[Any, str]:
    """The words that stand for the tags, in the order of the tags."""
    members = distinct_tags(y)
    # Tags that have no order stay in that in which they come.
    with contextlib.suppress(TypeError):
        members.sort()
    return dict(zip(members, _labels.words_of(members, _labels.TAG), strict=True))


def _no_tag(y: Sequence[Sequence[Any]]) -> ValueError:
    """Tells of the first tag that is None, or has no hash."""
    for i, tags in enumerate(y):
        for j, tag in enumerate(tags):
            try:
                hash(tag)
                is_fine = tag is not None
            except TypeError:
                is_fine = False
            if not is_fine:
                return ValueError(f"y: the tag of token {j} of sentence {i} is {tag!r}; tags are words, numbers or other hashables")
    return ValueError("y: tags are words, numbers or other hashables")


def columns_text(X: Sequence[Sequence[Any]], tags: Sequence[Sequence[str]] | None, columns: int | None = None) -> bytes:
    """A token a line; a token is a word or a row of words. `columns`: how many a model needs, else the first token says it."""
    lines = []
    others = "the model was trained with"
    for i, sentence in enumerate(X):
        for j, token in enumerate(sentence):
            if isinstance(token, Mapping) or not isinstance(token, Iterable):
                raise ValueError(f"sentence {i}, token {j} is {reprlib.repr(token)}; with format='columns' a token is a word or a row of words")
            row = [token] if isinstance(token, str) else list(token)
            for column in row:
                if not isinstance(column, str) or column.split() != [column]:
                    raise ValueError(f"sentence {i}, token {j}: the column {reprlib.repr(column)} is no word; columns have no blanks in them")
                if _labels.TAG.fullmatch(column) is None:
                    raise ValueError(f"sentence {i}, token {j}: the column {reprlib.repr(column)} is no Unicode text: it has a lone surrogate")
            if not row:
                raise ValueError(f"sentence {i}, token {j} has no columns; a token is a word or a row of words")
            if columns is None:
                columns, others = len(row), f"sentence {i}, token {j} has"
            if len(row) != columns:
                raise ValueError(f"sentence {i}, token {j}: the number of columns is {len(row)}, {others} {columns}; every token needs as many")
            lines.append("\t".join(row if tags is None else [*row, tags[i][j]]))
        lines.append("")
    return "\n".join(lines).encode()


def unescaped(attribute: str) -> str:
    """An attribute of CRFsuite's format, where a colon and a backslash have a backslash before them."""
    return re.sub(r"\\(.)", r"\1", attribute)


def blocks(text: str) -> list[list[str]]:
    """Lines between empty lines."""
    groups = itertools.groupby(text.split("\n"), key=lambda line: not line.strip())
    return [list(lines) for is_blank, lines in groups if not is_blank]


def n_best_blocks(text: str, lengths: Sequence[int]) -> list[list[tuple[list[str], float]]]:
    """Lines and score of each sequence of each sentence.

    A line may begin with ``#`` itself, so it is by their lengths that sentences are told apart.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    answer: list[list[tuple[list[str], float]]] = []
    at = 0
    for length in lengths:
        found: list[tuple[list[str], float]] = []
        while at < len(lines):
            _, number, score = lines[at].split()[:3]
            if number == "0" and found:
                break
            found.append((lines[at + 1 : at + 1 + length], float(score)))
            at += 1 + length
        answer.append(found)
    return answer
