"""Bracketed trees, their grammars, and all derivations of a sentence by them.

A symbol of a grammar is one of

    ("phrase", label, label above or None)   a bracket of the tree
    ("tag", label)                           what stands over a word
    ("between", phrase, left, right)         the rest of a long rule, all of it known
    ("between", phrase, text)                the same with --markov; the text is its name

A derivation is a nested tuple `(symbol, child, ...)`; below a tag is its terminal. The options
are those of `train parse`, with underscores.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Iterator

# Trees in brackets.


@dataclass
class Tree:
    """A bracket: with a word it is a tag, else it has children."""

    label: str
    children: list["Tree"] = field(default_factory=list)
    word: str | None = None

    def leaves(self) -> list["Tree"]:
        if self.word is not None:
            return [self]
        return [leaf for child in self.children for leaf in child.leaves()]

    def text(self) -> str:
        if self.word is not None:
            return f"({self.label} {self.word})"
        inside = " ".join(child.text() for child in self.children)
        return f"({self.label} {inside})"


def without_functions(label: str) -> str:
    """`NP-SBJ=2` is `NP`; a label that begins with a hyphen stays."""
    places = [at for at in (label.find("-"), label.find("=")) if at >= 0]
    return label[: min(places)] if places and min(places) > 0 else label


def read_trees(text: str, keep_empty: bool, keep_functions: bool) -> list[Tree]:
    """Reads all trees that have words."""
    tokens: list[str] = []
    depth = 0
    for line in text.splitlines():
        if depth == 0 and line.startswith("#"):
            continue
        found = line.replace("(", " ( ").replace(")", " ) ").split()
        depth += found.count("(") - found.count(")")
        tokens += found
    at = 0

    def bracket() -> Tree | None:
        """Reads a bracket; None if nothing is left of it."""
        nonlocal at
        at += 1
        words: list[str] = []
        children: list[Tree] = []
        has_brackets = False
        while tokens[at] != ")":
            if tokens[at] == "(":
                has_brackets = True
                child = bracket()
                children += [child] if child else []
            else:
                words.append(tokens[at])
                at += 1
        at += 1
        if not has_brackets and not words:
            return None
        if not has_brackets:
            is_empty = words[0] == "-NONE-" and not keep_empty
            return None if is_empty else Tree(words[0], word=" ".join(words[1:]))
        label = words[0] if words else ""
        if not children:
            return None
        return Tree(label if keep_functions else without_functions(label), children)

    trees = []
    while at < len(tokens):
        begins_with_label = tokens[at + 1] not in "()"
        tree = bracket()
        if tree is None:
            continue
        if not begins_with_label and len(tree.children) == 1:
            tree = tree.children[0]
        trees.append(tree)
    return trees


@dataclass
class Node:
    """A node of a tree that counts, with its symbol."""

    symbol: tuple
    children: list["Node"]
    word: str | None = None


def collapsed(tree: Tree, parent_annotation: bool, above: str | None = None) -> Node:
    """The tree without phrases that stand over themselves with nothing between or beside.

    Of such a row the innermost phrase counts, together with what is below it.
    """
    row: list[Tree] = [tree]
    while len(row[-1].children) == 1:
        row.append(row[-1].children[0])
    symbols = []
    for node in row:
        if node.word is not None:
            symbols.append(("tag", node.label))
        else:
            symbols.append(("phrase", node.label, above if parent_annotation else None))
        above = node.label
    kept = []
    at = 0
    while at < len(row):
        last = max(k for k in range(len(row)) if symbols[k] == symbols[at])
        kept.append(last)
        at = last + 1
    bottom = row[-1]
    below = [collapsed(child, parent_annotation, bottom.label) for child in bottom.children]
    node = Node(symbols[kept[-1]], below, bottom.word)
    for place in reversed(kept[:-1]):
        node = Node(symbols[place], [node])
    return node


# Words.

ENDINGS = ["ing", "ion", "est", "ity", "ed", "er", "ly", "al", "s", "y"]


def word_classes(word: str, is_first: bool) -> Iterator[str]:
    """The classes of a word by its looks, the most special first; `(any)` is not among them."""
    letters = [c for c in word if c.isalpha()]
    if not letters:
        look = "sign"
    elif len(letters) > 1 and all(c.isupper() for c in letters):
        look = "WORD"
    elif word[0].isupper():
        look = "First" if is_first else "Word"
    else:
        look = "word"
    ending = ""
    if look != "WORD":
        fitting = (e for e in ENDINGS if word.endswith(e) and len(word.encode()) >= len(e) + 2)
        ending = next(fitting, "")
        if ending == "s" and word.endswith(("ss", "us", "is")):
            ending = ""
    digit = any(unicodedata.category(c).startswith("N") for c in word)
    hyphen = "-" in word
    while True:
        pieces = [look] + ["0"] * digit + ["-"] * hyphen + [ending] * bool(ending)
        yield "(" + " ".join(pieces) + ")"
        if look == "First":
            look = "Word"
        elif hyphen:
            hyphen = False
        elif ending:
            ending = ""
        elif digit and look != "sign":
            look = "sign"
        else:
            return


class Lexicon:
    """Words that are frequent enough stand for themselves, all others for their classes."""

    def __init__(self, trees: list[Tree], rare_below: int) -> None:
        counts = Counter(leaf.word for tree in trees for leaf in tree.leaves())
        self.words = {word for word, count in counts.items() if count >= rare_below}
        self.classes = {"(any)"}
        for tree in trees:
            for at, leaf in enumerate(tree.leaves()):
                if leaf.word not in self.words:
                    self.classes.add(next(word_classes(leaf.word, at == 0)))

    def terminal(self, word: str, is_first: bool) -> tuple[str, str]:
        if word in self.words:
            return ("word", word)
        fitting = (name for name in word_classes(word, is_first) if name in self.classes)
        return ("class", next(fitting, "(any)"))


# Heads, for `--binarise head`.

# Collins (1999), appendix A, for the labels that are drawn here: where the search begins and the
# labels of heads, the best first. Of other labels it is the last child that is no punctuation.
HEADS = {
    "S": ("left", "TO IN VP S SBAR ADJP UCP NP".split()),
    "VP": ("left", "TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP".split()),
    "PP": ("right", "IN TO VBG VBN RP FW".split()),
}
PUNCTUATION = {",", ":", ".", "``", "''", "-LRB-", "-RRB-"}


def head_of(label: str, children: list[str]) -> int:
    """The place of the head child."""
    side, labels = HEADS.get(label, ("right", []))
    places = list(range(len(children)))
    if side == "right":
        places.reverse()
    for wanted in labels:
        for place in places:
            if children[place] == wanted:
                return place
    for place in places:
        if children[place] not in PUNCTUATION:
            return place
    return places[0]


# The grammar.


class Grammar:
    """The rules of some trees, as the options ask for."""

    def __init__(self, trees: list[Tree], options: dict[str, Any]) -> None:
        self.options = options
        annotation = bool(options.get("parent_annotation"))
        nodes = [collapsed(tree, annotation) for tree in trees]
        least = options.get("min_count", 1)
        counts: Counter = Counter(rule for node in nodes for rule in long_rules(node))
        self.is_kept = [all(counts[rule] >= least for rule in long_rules(node)) for node in nodes]
        kept = [tree for tree, is_kept in zip(trees, self.is_kept) if is_kept]
        self.lexicon = None
        if options.get("terminals") == "words":
            self.lexicon = Lexicon(kept, options.get("rare_below", 2))
        self.roots: set = set()
        self.unary: set = set()
        self.binary: set = set()
        self.lexical: set = set()
        self.tags: set = set()
        self.phrases: set = set()
        self.longest = 0
        self.truths: list[tuple | None] = []
        for node, tree, is_kept in zip(nodes, trees, self.is_kept):
            if not is_kept:
                self.truths.append(None)
                continue
            truth = self.derivation(node, iter(self.sentence(tree)))
            self.truths.append(truth)
            self.roots.add(truth[0])
            self.longest = max(self.longest, longest_row(node))
            self.read(truth)
        if self.lexicon:
            of_any = {tag for tag, (kind, _) in self.lexical if kind == "class"}
            any_word = ("class", "(any)")
            self.lexical |= {(tag, any_word) for tag in of_any or self.tags}
        self.nodes = nodes
        self.tags_over: dict = {}
        for tag, terminal in self.lexical:
            self.tags_over.setdefault(terminal, []).append(tag)
        self.by_children: dict = {}
        for parent, left, right in self.binary:
            self.by_children.setdefault((left, right), []).append(parent)
        self.by_child: dict = {}
        for parent, child in self.unary:
            self.by_child.setdefault(child, []).append(parent)
        choices = Counter(rule[0] for rule in self.binary)
        # A symbol between with one rule leaves no choice, and the rule has no feature.
        without_choice = {s for s, count in choices.items() if is_between(s) and count == 1}
        self.forced = {rule for rule in self.binary if rule[0] in without_choice}

    def sentence(self, tree: Tree) -> list:
        """The terminals of a tree."""
        if self.lexicon is None:
            return [("tag", leaf.label) for leaf in tree.leaves()]
        leaves = enumerate(tree.leaves())
        return [self.lexicon.terminal(leaf.word or "", at == 0) for at, leaf in leaves]

    def derivation(self, node: Node, terminals: Iterator) -> tuple:
        """The derivation of a tree."""
        if not node.children:
            return (node.symbol, next(terminals))
        below = [self.derivation(child, terminals) for child in node.children]
        if len(below) == 1:
            return (node.symbol, below[0])
        return self.binarised(node.symbol, below)

    def binarised(self, phrase: tuple, below: list[tuple]) -> tuple:
        """A phrase over at least two children, as rules with two."""
        symbols = [child[0] for child in below]
        count = len(below)
        by_head = self.options.get("binarise") == "head"
        head = count - 1
        if by_head:
            labels = [label_of(symbol) for symbol in symbols]
            head = head_of(label_of(phrase), labels)
        splits = [("<", at) for at in range(min(head, count - 2))]
        splits += [(">", at) for at in range(count - 1, len(splits) + 1, -1)]
        markov = self.options.get("markov")
        # The symbol that is left after each split.
        names: list[tuple | None] = []
        for side, at in splits:
            if markov is None:
                names.append(None)
                continue
            last = symbols[max(at + 1 - markov, 0) : at + 1]
            if side == ">":
                last = symbols[at : at + markov][::-1]
            text = "_".join(name_of(symbol) for symbol in last)
            if by_head:
                text = name_of(symbols[head]) + side + text
            names.append(("between", phrase, text))
        left = min(head, count - 2)
        rest: tuple = (below[left], below[left + 1])
        for (side, at), name in reversed(list(zip(splits, names))):
            symbol = name or ("between", phrase, rest[0][0], rest[1][0])
            inner = (symbol, *rest)
            rest = (below[at], inner) if side == "<" else (inner, below[at])
        return (phrase, *rest)

    def read(self, derivation: tuple) -> None:
        """Adds the rules of a derivation."""
        symbol = derivation[0]
        if symbol[0] == "tag":
            self.tags.add(symbol)
            if self.lexicon:
                self.lexical.add((symbol, derivation[1]))
            return
        if symbol[0] == "phrase":
            self.phrases.add(symbol)
        below = derivation[1:]
        if len(below) == 1:
            self.unary.add((symbol, below[0][0]))
        else:
            self.binary.add((symbol, below[0][0], below[1][0]))
        for child in below:
            self.read(child)

    def rules(self) -> set:
        """All rules, as features name them."""
        found = {("root", symbol) for symbol in self.roots}
        found |= {("unary", *rule) for rule in self.unary}
        found |= {("binary", *rule) for rule in self.binary}
        return found | {("lexical", *rule) for rule in self.lexical}

    def has_span(self, begin: int, end: int, words: int) -> bool:
        """Is this span there with --max-span?"""
        most = self.options.get("max_span")
        return most is None or end - begin <= most or begin == 0 or end == words

    def is_within(self, derivation: tuple, words: int) -> bool:
        return all(self.has_span(*span, words) for _, span in spans_of(derivation))

    def chart(self, sentence: list, make: Any) -> dict:
        """Fills a chart: by span and symbol what `make` puts together.

        `make.leaf(symbol, terminal)`, `make.over(symbol, child)`, `make.pair(symbol, left, right)`
        and `make.join(items)` say what is put together; see `Lists` and `Numbers`.
        """
        words = len(sentence)
        chart: dict = {}
        for length in range(1, words + 1):
            for begin in range(words + 1 - length):
                end = begin + length
                if not self.has_span(begin, end, words):
                    continue
                base: dict = {}
                if length == 1:
                    terminal = sentence[begin]
                    tags = [terminal] if terminal in self.tags else []
                    if self.lexicon:
                        tags = self.tags_over.get(terminal, [])
                    for tag in tags:
                        base.setdefault(tag, []).append(make.leaf(tag, terminal))
                for split in range(begin + 1, end):
                    lefts, rights = chart.get((begin, split), {}), chart.get((split, end), {})
                    for left, of_left in lefts.items():
                        for right, of_right in rights.items():
                            for parent in self.by_children.get((left, right), []):
                                item = make.pair(parent, of_left, of_right)
                                base.setdefault(parent, []).append(item)
                found = {symbol: list(items) for symbol, items in base.items()}
                for bottom, items in base.items():
                    below = make.join(items)
                    rows = [((bottom,), below)]
                    for _ in range(self.longest):
                        rows = [
                            ((parent, *row), make.over(parent, item))
                            for row, item in rows
                            for parent in self.by_child.get(row[0], [])
                            if parent not in row
                        ]
                        for row, item in rows:
                            found.setdefault(row[0], []).append(item)
                chart[begin, end] = {symbol: make.join(items) for symbol, items in found.items()}
        return chart

    def count(self, sentence: list) -> int:
        """The number of derivations of a sentence."""
        top = self.chart(sentence, Numbers).get((0, len(sentence)), {})
        return sum(top.get(root, 0) for root in self.roots)

    def derivations(self, sentence: list) -> list[tuple]:
        """All derivations of a sentence."""
        top = self.chart(sentence, Lists).get((0, len(sentence)), {})
        roots = sorted(self.roots, key=repr)
        return [derivation for root in roots for derivation in top.get(root, [])]

    def examples(self) -> list[tuple[list, tuple, bool]] | None:
        """Sentences with their true derivations, and whether each is a stand-in for a lost tree.

        None if a lost tree has several nearest derivations.
        """
        found = []
        for truth, node, tree in zip(self.truths, self.nodes, self.options["trees"]):
            sentence = self.sentence(tree)
            if truth is not None and self.is_within(truth, len(sentence)):
                found.append((sentence, truth, False))
                continue
            if not self.options.get("fallback"):
                continue
            own = {(s, span) for s, span in spans_of_node(node) if s in self.phrases}
            costs = [(len(own ^ brackets(d)), d) for d in self.derivations(sentence)]
            if not costs:
                continue
            least = min(cost for cost, _ in costs)
            nearest = [d for cost, d in costs if cost == least]
            if len(nearest) > 1:
                return None
            found.append((sentence, nearest[0], True))
        return found


class Lists:
    """Charts of derivations."""

    @staticmethod
    def leaf(symbol: tuple, terminal: Any) -> list:
        return [(symbol, terminal)]

    @staticmethod
    def over(symbol: tuple, child: list) -> list:
        return [(symbol, one) for one in child]

    @staticmethod
    def pair(symbol: tuple, left: list, right: list) -> list:
        return [(symbol, one, other) for one in left for other in right]

    @staticmethod
    def join(items: list[list]) -> list:
        return [one for item in items for one in item]


class Numbers:
    """Charts of numbers of derivations."""

    @staticmethod
    def leaf(symbol: tuple, terminal: Any) -> int:
        return 1

    @staticmethod
    def over(symbol: tuple, child: int) -> int:
        return child

    @staticmethod
    def pair(symbol: tuple, left: int, right: int) -> int:
        return left * right

    join = staticmethod(sum)


def is_between(symbol: tuple) -> bool:
    return symbol[0] == "between"


def label_of(symbol: tuple) -> str:
    """The label of a phrase or tag, as heads are told by."""
    return without_functions(symbol[1])


def name_of(symbol: tuple) -> str:
    """The name of a phrase or tag in a model file."""
    return symbol[1] if symbol[0] == "tag" or symbol[2] is None else f"{symbol[1]}^{symbol[2]}"


def long_rules(node: Node) -> Iterator[tuple]:
    """The rules of a tree before they are binarised."""
    if node.children:
        yield (node.symbol, tuple(child.symbol for child in node.children))
    for child in node.children:
        yield from long_rules(child)


def longest_row(node: Node) -> int:
    """The largest number of unary rules that follow upon each other."""
    row, at = 0, node
    while len(at.children) == 1:
        row, at = row + 1, at.children[0]
    return max([row, *(longest_row(child) for child in at.children)])


def spans_of(derivation: tuple, begin: int = 0) -> list[tuple[tuple, tuple[int, int]]]:
    """All symbols of a derivation with their spans, the top first."""
    symbol = derivation[0]
    if symbol[0] == "tag":
        return [(symbol, (begin, begin + 1))]
    below: list = []
    end = begin
    for child in derivation[1:]:
        of_child = spans_of(child, end)
        end = of_child[0][1][1]
        below += of_child
    return [(symbol, (begin, end)), *below]


def spans_of_node(node: Node, begin: int = 0) -> list[tuple[tuple, tuple[int, int]]]:
    """The same for a tree."""
    if not node.children:
        return [(node.symbol, (begin, begin + 1))]
    below: list = []
    end = begin
    for child in node.children:
        of_child = spans_of_node(child, end)
        end = of_child[0][1][1]
        below += of_child
    return [(node.symbol, (begin, end)), *below]


def brackets(derivation: tuple) -> set:
    return {(symbol, span) for symbol, span in spans_of(derivation) if symbol[0] == "phrase"}
