"""Task `tag`: a tag for each token of a sentence.

psi(x, y) has these blocks:

    token       the features of token t in slot y_t
    transition  1 in slot (y_{t-1}, y_t)
    first       1 in slot y_1
    last        1 in slot y_T
    edge        features of the transition into token t in slot (y_{t-1}, y_t), from the lines of
                a template that begin with `B`
    triple      1 in slot (y_{t-2}, y_{t-1}, y_t), with --order 2

A kernel acts on the block `token`. Tags are words, or numbers where all tags of a file are numbers.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..problem import Candidate, Draw, Example, Part, Weights

if TYPE_CHECKING:
    from ..model import Model

FILE = "train.txt"
TEMPLATE = "template.txt"
KERNEL_BLOCK = "token"
ONE = {"1": 1.0}

Tag = float | str


# Drawing


def draw(random: np.random.Generator, scale: float) -> Draw:
    """Draws sentences in one of three formats, and the options of the task."""
    scheme = random.choice(["BIO", "BIOES"]) if random.random() < 0.15 else None
    tags = _draw_tags(random, scheme)
    sentences = _draw_sentences(random, tags, scheme)
    used = sorted({tag for sentence in sentences for tag in sentence})
    form = str(random.choice(["svmhmm", "crfsuite", "columns"], p=[0.5, 0.25, 0.25]))
    arguments = ["tag", FILE, "--format", form]
    traits: dict = {"format": form, "min_count": 1, "order": 1}
    traits |= {"loss": "hamming", "tag_cost": {}, "forbid": [], "scheme": scheme, "template": None}
    files = {}
    if form == "svmhmm":
        files[FILE] = _svmhmm(random, sentences, used, scale)
    elif form == "crfsuite":
        files[FILE] = _crfsuite(random, sentences, used, scale)
    else:
        columns = int(random.integers(1, 3))
        files[FILE] = _columns(random, sentences, columns)
        files[TEMPLATE] = _draw_template(random, columns)
        traits["template"] = TEMPLATE
        arguments += ["--template", TEMPLATE]
    if random.random() < 0.2:
        traits["min_count"] = 2
        arguments += ["--min-count", "2"]
    if random.random() < 0.3:
        traits["order"] = 2
        arguments += ["--order", "2"]
    if scheme:
        arguments += ["--scheme", str(scheme)]
    _draw_loss(random, used, arguments, traits)
    _draw_forbidden(random, sentences, used, arguments, traits)
    has_edges = form == "columns" and any(
        line.startswith("B") and "%" in line for line in files[TEMPLATE].splitlines()
    )
    is_plain = traits["order"] == 1 and not has_edges and not scheme and not traits["forbid"]
    # The solvers by factors need the first order, an additive loss, nothing forbidden and no
    # features of transitions.
    by_factors = is_plain and traits["loss"] == "hamming"
    traits["solvers"] = ["mle", "gdmm", "soft-bcfw"] if by_factors else ["mle"]
    if traits["tag_cost"]:
        # Slack rescaling and quadratic slack need errors of equal cost, the hard margin needs
        # positive costs.
        traits["formulations"] = [("margin", "linear")]
        if all(cost > 0 for cost in traits["tag_cost"].values()):
            traits["formulations"].append(("margin", "hard"))
    return Draw(files, arguments, KERNEL_BLOCK, traits)


def _draw_tags(random: np.random.Generator, scheme: str | None) -> list[str]:
    if scheme:
        return []
    count = int(random.integers(2, 5))
    return [["A", "B", "C", "D"], ["1", "2", "3", "10"], ["N", "-3", "é", "x,y"]][
        int(random.choice(3, p=[0.6, 0.25, 0.15]))
    ][:count]


def _draw_sentences(
    random: np.random.Generator, tags: list[str], scheme: str | None
) -> list[list[str]]:
    """Draws the tags of sentences; in all, about 1000 outputs at most."""
    sentences: list[list[str]] = []
    outputs = 0
    most = int(random.choice([3, 4, 5], p=[0.5, 0.3, 0.2]))
    for _ in range(int(random.integers(1, 7))):
        length = int(random.integers(1, most + 1))
        if scheme:
            sentence = _draw_chunks(random, min(length, 4), scheme)
        else:
            start = int(random.integers(len(tags)))
            step = int(random.integers(0, 3))
            # Half of the tags follow a rule, so that transitions have something to learn.
            sentence = [
                tags[(start + step * t) % len(tags)]
                if random.random() < 0.5
                else str(random.choice(tags))
                for t in range(length)
            ]
        size = max(len(tags), 4) ** len(sentence)
        if sentences and outputs + size > 1200:
            continue
        outputs += size
        sentences.append(sentence)
    return sentences


def _draw_chunks(random: np.random.Generator, length: int, scheme: str) -> list[str]:
    """Draws chunks of kinds X and Y, and tokens outside of chunks."""
    tags: list[str] = []
    while len(tags) < length:
        size = int(random.integers(0, min(3, length - len(tags)) + 1))
        kind = str(random.choice(["X", "Y"], p=[0.8, 0.2]))
        if size == 0:
            tags.append("O")
        elif scheme == "BIO":
            tags += [f"B-{kind}"] + [f"I-{kind}"] * (size - 1)
        elif size == 1:
            tags.append(f"S-{kind}")
        else:
            tags += [f"B-{kind}"] + [f"I-{kind}"] * (size - 2) + [f"E-{kind}"]
    return tags


def _draw_loss(
    random: np.random.Generator, used: list[str], arguments: list[str], traits: dict
) -> None:
    kind = random.random()
    if kind < 0.2:
        traits["loss"] = "zero-one"
        arguments += ["--loss", "zero-one"]
    elif kind < 0.35:
        for tag in used:
            if random.random() < 0.7:
                cost = float(random.choice([0.0, 0.25, 1.0, 3.0, 7.5]))
                traits["tag_cost"][tag] = cost
        costs = [traits["tag_cost"].get(tag, 1.0) for tag in used]
        if all(cost == 0 for cost in costs):
            traits["tag_cost"] = {used[0]: 2.0}
        for tag, cost in traits["tag_cost"].items():
            arguments += ["--tag-cost", f"{tag}={cost!r}"]
    elif kind < 0.5:
        arguments += ["--loss", "hamming"]


def _draw_forbidden(
    random: np.random.Generator,
    sentences: list[list[str]],
    used: list[str],
    arguments: list[str],
    traits: dict,
) -> None:
    """Forbids pairs that do not occur in the data."""
    if random.random() > 0.25:
        return
    seen = {pair for sentence in sentences for pair in zip(sentence, sentence[1:])}
    free = [pair for pair in itertools.product(used, used) if pair not in seen]
    for a, b in free:
        if random.random() < 0.4:
            traits["forbid"].append([a, b])
            arguments += ["--forbid", f"{a},{b}"]


def _number(random: np.random.Generator, value: float) -> str:
    """Writes a number that is exact in f32, or one with more digits, which the reader rounds."""
    if random.random() < 0.7:
        return str(np.float32(value))
    return repr(float(value))


def _draw_vectors(
    random: np.random.Generator, sentences: list[list[str]], used: list[str], scale: float
) -> Iterator[tuple[int, str, dict[int, float]]]:
    """Visits tokens: number of the sentence, tag, feature values from 1, at times with a signal."""
    width = int(random.integers(1, 5))
    centres = random.normal(size=(len(used), width))
    noise = float(random.choice([0.2, 1.0, 2.0]))
    density = float(random.choice([0.5, 1.0]))
    copies = random.random() < 0.2
    before: list[dict[int, float]] = []
    for number, sentence in enumerate(sentences):
        for tag in sentence:
            values = scale * (centres[used.index(tag)] + noise * random.normal(size=width))
            row = {j + 1: float(v) for j, v in enumerate(values) if random.random() < density}
            if copies and before and random.random() < 0.4:
                row = before[int(random.integers(len(before)))]
            before.append(row)
            yield number, tag, row


def _svmhmm(
    random: np.random.Generator, sentences: list[list[str]], used: list[str], scale: float
) -> str:
    lines = ["# sentences"] if random.random() < 0.2 else []
    first = int(random.integers(0, 50))
    # The first spelling of a number names the tag.
    spellings = ["1", "1.0", "+1"] if random.random() < 0.3 else ["1"]
    ones = 0
    for number, tag, row in _draw_vectors(random, sentences, used, scale):
        if tag == "1":
            tag = spellings[ones % len(spellings)]
            ones += 1
        features = " ".join(f"{j}:{_number(random, v)}" for j, v in row.items())
        comment = " # a comment 1:2" if random.random() < 0.1 else ""
        lines.append(f"{tag} qid:{first + number} {features}{comment}".rstrip())
    return "\n".join(lines) + "\n"


def _crfsuite(
    random: np.random.Generator, sentences: list[list[str]], used: list[str], scale: float
) -> str:
    names = ["a", r"b\:c", r"d\\", "w=x y", "5"]
    lines: list[str] = []
    last = 0
    for number, tag, row in _draw_vectors(random, sentences, used, scale):
        if number != last:
            lines.append("")
        last = number
        fields = [f"{names[j - 1]}:{_number(random, v)}" for j, v in row.items()]
        if random.random() < 0.4:
            fields.append(str(random.choice(["capital", "u", "a"])))
        if fields and random.random() < 0.15:
            fields.append(str(random.choice(fields)))
        random.shuffle(fields)
        lines.append("\t".join([tag, *fields]))
    return "\n".join(lines) + "\n\n"


def _columns(random: np.random.Generator, sentences: list[list[str]], columns: int) -> str:
    words = ["the", "dog", "Runs", ","]
    blank = str(random.choice(["\t", " "]))
    lines: list[str] = []
    for number, sentence in enumerate(sentences):
        if number:
            lines.append("")
        for tag in sentence:
            fields = [str(random.choice(words))]
            if columns == 2:
                fields.append(str(random.choice(["n", "v"])))
            lines.append(blank.join([*fields, tag]))
    return "\n".join(lines) + "\n"


def _draw_template(random: np.random.Generator, columns: int) -> str:
    token = [
        "U00:%x[0,0]",
        "U01:%x[-1,0]",
        "U02:%x[-1,0]/%x[1,0]",
        "U",
        "Ubias",
        "U03:%x[2,0]",
        "U05:%x[0,0]",
    ]
    edge = ["B", "B01:%x[0,0]", "B02:%x[-1,0]/%x[0,0]", "Bx%x[-2,0]"]
    if columns == 2:
        token += ["U04:%x[0,1]", "U04:%x[0,0]/%x[-1,1]"]
        edge.append("B03:%x[0,1]")
    lines = [line for line in token if random.random() < 0.4] or ["U00:%x[0,0]"]
    if random.random() < 0.5:
        lines += [line for line in edge if random.random() < 0.4]
    if random.random() < 0.3:
        lines.insert(0, "# features")
        lines.append("")
    return "\n".join(lines) + "\n"


# Reading


@dataclass
class _Token:
    tag: str
    features: dict[str, float] = field(default_factory=dict)
    edges: dict[str, float] = field(default_factory=dict)


def _read(folder: Path, draw: Draw) -> list[list[_Token]]:
    """Reads the training file, and leaves out the features of too few tokens."""
    text = (folder / FILE).read_text(encoding="utf-8")
    form = draw.traits["format"]
    if form == "svmhmm":
        sentences = _read_svmhmm(text)
    elif form == "crfsuite":
        sentences = _read_crfsuite(text)
    else:
        sentences = _read_columns(
            text, (folder / draw.traits["template"]).read_text(encoding="utf-8")
        )
    tokens = [token for sentence in sentences for token in sentence]
    for which in ("features", "edges"):
        counts = Counter(name for token in tokens for name in getattr(token, which))
        for token in tokens:
            rows = getattr(token, which)
            kept = {n: v for n, v in rows.items() if counts[n] >= draw.traits["min_count"]}
            setattr(token, which, kept)
    return sentences


def _add(row: dict[str, float], name: str, value: np.float32) -> None:
    """Adds up the values of a name, in f32."""
    row[name] = float(np.float32(row.get(name, 0.0)) + value)


def _read_svmhmm(text: str) -> list[list[_Token]]:
    sentences: list[list[_Token]] = []
    last = None
    for line in text.split("\n"):
        words = line.split("#")[0].split()
        if not words:
            continue
        token = _Token(words[0])
        if words[1] != last:
            sentences.append([])
        last = words[1]
        for word in words[2:]:
            name, value = word.split(":")
            _add(token.features, name, np.float32(value))
        sentences[-1].append(token)
    return sentences


def _read_crfsuite(text: str) -> list[list[_Token]]:
    sentences: list[list[_Token]] = [[]]
    for line in text.split("\n"):
        if not line:
            sentences.append([])
            continue
        tag, *fields = line.split("\t")
        token = _Token(tag)
        for attribute in fields:
            # The value stands behind the last colon that has no backslash before it.
            pieces = re.findall(r"\\[:\\]|:|[^:\\]+|\\", attribute)
            name, value = pieces, np.float32(1.0)
            if ":" in pieces:
                at = len(pieces) - 1 - pieces[::-1].index(":")
                name, value = pieces[:at], np.float32("".join(pieces[at + 1 :]))
            _add(
                token.features,
                "".join(p[1:] if len(p) == 2 and p[0] == "\\" else p for p in name),
                value,
            )
        sentences[-1].append(token)
    return [sentence for sentence in sentences if sentence]


def _read_columns(text: str, template: str) -> list[list[_Token]]:
    rows: list[list[list[str]]] = [[]]
    for line in text.split("\n"):
        if line.split():
            rows[-1].append(line.split())
        else:
            rows.append([])
    lines = [line for line in template.split("\n") if line.strip() and not line.startswith("#")]
    sentences = []
    for sentence in filter(None, rows):
        tokens = []
        for t, fields in enumerate(sentence):
            token = _Token(fields[-1])
            for line in lines:
                if line.startswith("U"):
                    _add(token.features, _expand(line, sentence, t), np.float32(1.0))
                elif "%x" in line and t > 0:
                    _add(token.edges, _expand(line, sentence, t), np.float32(1.0))
            tokens.append(token)
        sentences.append(tokens)
    return sentences


def _expand(line: str, sentence: list[list[str]], t: int) -> str:
    """Replaces `%x[row,column]`; beyond the ends of the sentence it stands for `_B-1`, `_B+1`."""

    def text(match: re.Match) -> str:
        at = t + int(match[1])
        if at < 0:
            return f"_B{at}"
        if at >= len(sentence):
            return f"_B+{at - len(sentence) + 1}"
        return sentence[at][int(match[2])]

    return re.sub(r"%x\[([-+]?\d+),(\d+)\]", text, line)


def _canonical(words: list[str]) -> dict[str, Tag]:
    """Names of tags by spelling: numbers where all of them are numbers."""
    try:
        values = {word: float(word) for word in words}
    except ValueError:
        return {word: word for word in words}
    return (
        dict(values) if all(map(math.isfinite, values.values())) else {word: word for word in words}
    )


# Outputs


def examples(folder: Path, draw: Draw, formulation: dict) -> list[Example]:
    """All tag sequences of each sentence that are not forbidden."""
    sentences = _read(folder, draw)
    names = _canonical([token.tag for sentence in sentences for token in sentence])
    tags = sorted(set(names.values()))
    costs = {names[tag]: cost for tag, cost in draw.traits["tag_cost"].items()}
    pairs = {(names[a], names[b]) for a, b in draw.traits["forbid"]}
    found = []
    for sentence in sentences:
        truth = tuple(names[token.tag] for token in sentence)
        fixed = _counts(truth, draw.traits["order"])
        candidates = []
        for y in itertools.product(tags, repeat=len(sentence)):
            if y == truth or not _is_allowed(y, pairs, draw.traits["scheme"]):
                continue
            if draw.traits["loss"] == "zero-one":
                loss = 1.0
            else:
                loss = float(sum(costs.get(a, 1.0) for a, b in zip(truth, y) if a != b))
            candidates.append(
                Candidate(loss, _parts(sentence, truth, y, fixed, draw.traits["order"]))
            )
        found.append(Example(candidates))
    return found


def _counts(y: tuple[Tag, ...], order: int) -> Counter:
    """Counts of transitions, first and last tags, and triples."""
    counts: Counter = Counter()
    counts["first", y[0]] += 1
    counts["last", y[-1]] += 1
    for pair in zip(y, y[1:]):
        counts["transition", pair] += 1
    if order == 2:
        for triple in zip(y, y[1:], y[2:]):
            counts["triple", triple] += 1
    return counts


def _parts(
    sentence: list[_Token], truth: tuple[Tag, ...], y: tuple[Tag, ...], fixed: Counter, order: int
) -> list[Part]:
    parts = []
    for t, token in enumerate(sentence):
        # A token without features counts too: with a kernel, k(0, x) may be other than 0.
        if truth[t] != y[t]:
            parts.append(Part("token", truth[t], token.features, 1.0))
            parts.append(Part("token", y[t], token.features, -1.0))
        if t > 0 and truth[t - 1 : t + 1] != y[t - 1 : t + 1] and token.edges:
            parts.append(Part("edge", truth[t - 1 : t + 1], token.edges, 1.0))
            parts.append(Part("edge", y[t - 1 : t + 1], token.edges, -1.0))
    own = _counts(y, order)
    for key in fixed.keys() | own.keys():
        if difference := fixed[key] - own[key]:
            parts.append(Part(key[0], key[1], ONE, float(difference)))
    return parts


def _is_allowed(y: tuple[Tag, ...], forbidden: set, scheme: str | None) -> bool:
    if any(pair in forbidden for pair in zip(y, y[1:])):
        return False
    if not scheme:
        return True
    # `open`: the kind of the chunk that the next token may continue; `must`: it has to.
    open_kind, must = None, False
    for tag in y:
        mark, _, kind = str(tag).partition("-")
        if mark in "IE":
            if open_kind != kind:
                return False
        elif must:
            return False
        open_kind = kind if mark in "BI" else None
        must = scheme == "BIOES" and mark in "BI"
    return not must


# The model


def weights(folder: Path, draw: Draw, model: Model) -> Weights:
    """Weights of transitions and the like, and those of token features or the support vectors."""
    record, tensors = model.record, model.tensors
    tags = [_canonical(record["tags"])[tag] for tag in record["tags"]]
    features = _names(tensors["names.features"], record["features"])
    edges = _names(tensors["names.edges"], record["edges"])
    pairs = list(itertools.product(tags, tags))
    layout: list[tuple] = [("transition", pair, "1") for pair in pairs]
    layout += [("first", tag, "1") for tag in tags] + [("last", tag, "1") for tag in tags]
    layout += [("edge", pair, name) for name in edges for pair in pairs]
    if draw.traits["order"] == 2:
        layout += [("triple", triple, "1") for triple in itertools.product(tags, tags, tags)]
    structure = tensors["weights.structure"].ravel()
    if len(structure) != len(layout):
        raise ValueError(
            f"{len(structure)} weights of transitions and the like, {len(layout)} expected"
        )
    linear = dict(zip(layout, map(float, structure)))
    if model.kernel is not None:
        support = [
            (
                {features[j]: value for j, value in vector.items()},
                dict(zip(tags, map(float, row), strict=True)),
            )
            for vector, row in model.support()
        ]
        return Weights(linear, support)
    starts = [int(start) for start in tensors["weights.starts"]]
    slots, values = tensors["weights.slots"], tensors["weights.values"]
    if len(starts) != len(features) + 1:
        raise ValueError(f"{len(starts) - 1} rows of weights for {len(features)} features")
    for name, start, end in zip(features, starts, starts[1:]):
        for at in range(start, end):
            linear["token", tags[int(slots[at])], name] = float(values[at])
    return Weights(linear)


def _names(text: np.ndarray, count: int) -> list[str]:
    return bytes(text.astype(np.uint8)).decode("utf-8").split("\n") if count else []
