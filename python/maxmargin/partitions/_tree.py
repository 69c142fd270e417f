"""One order in which the sums over partitions are made, whoever makes them.

The partitions of a group, counted from 0, are the leaves of a binary tree: node (level, k) covers the partitions from k 2^level up to,
not including, (k + 1) 2^level, as far as there are any. Its value is that of its left child plus that of its right child, or
that of the left alone where the right is empty. A process that holds all partitions of a node can answer with one value for it, and the
bits of the whole do not depend on who holds what.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

Node = tuple[int, int]

T = TypeVar("T")


def height(size: int) -> int:
    """The level of the root over `size` leaves."""
    return max(size - 1, 0).bit_length()


def leaves(node: Node, size: int) -> range:
    """The partitions that a node covers."""
    level, k = node
    return range(min(k << level, size), min((k + 1) << level, size))


def covered(held: Iterable[int], size: int) -> list[Node]:
    """The largest nodes all of whose partitions are held, from left to right.

    >>> covered([0, 1, 2, 3, 6], 8)
    [(2, 0), (0, 6)]
    """
    numbers = sorted(set(held))

    def visit(node: Node) -> Iterator[Node]:
        part = leaves(node, size)
        count = bisect_left(numbers, part.stop) - bisect_left(numbers, part.start)
        if count == len(part) > 0:
            yield node
        elif count:
            level, k = node
            yield from visit((level - 1, 2 * k))
            yield from visit((level - 1, 2 * k + 1))

    return list(visit((height(size), 0)))


def total(values: Mapping[Node, T], size: int, add: Callable[[T, T], T], root: Node | None = None) -> T:
    """The value of the root of a tree, given values of nodes that cover all its leaves.

    >>> total({(1, 0): "ab", (0, 2): "c"}, 3, lambda a, b: f"({a}+{b})")
    '(ab+c)'
    """
    return fold(lambda node: values.get(node), size, add, root)


def fold(value: Callable[[Node], T | None], size: int, add: Callable[[T, T], T], root: Node | None = None) -> T:
    """The same of a function, which is None for nodes whose children have to be asked."""

    def visit(node: Node) -> T:
        known = value(node)
        if known is not None:
            return known
        level, k = node
        if level == 0:
            raise KeyError(f"partition {k} has no value")
        left = visit((level - 1, 2 * k))
        right = (level - 1, 2 * k + 1)
        return add(left, visit(right)) if leaves(right, size) else left

    return visit((height(size), 0) if root is None else root)


def groups(partitions: int, count: int) -> list[range]:
    """The partitions dealt into groups of neighbours, as even as can be.

    >>> groups(5, 2)
    [range(0, 3), range(3, 5)]
    """
    if not 1 <= count <= partitions:
        raise ValueError(f"groups={count}: a group has at least one partition, and there are {partitions}")
    least, more = divmod(partitions, count)
    starts = [g * least + min(g, more) for g in range(count + 1)]
    return [range(starts[g], starts[g + 1]) for g in range(count)]


def deal(numbers: Sequence[int], shares: Mapping[str, float]) -> dict[int, str]:
    """Who holds which partition: ranges of neighbours, each as long as its holder's share.

    Ranges begin at multiples of a power of two, a quarter of a range or less: then their sums are few nodes of the tree.

    >>> deal(range(4), {"a": 1, "b": 1})
    {0: 'a', 1: 'a', 2: 'b', 3: 'b'}
    """
    names = sorted(shares)
    whole = sum(shares.values())
    unit = 1
    while unit * 8 * len(names) <= len(numbers):
        unit *= 2
    owner: dict[int, str] = {}
    begin, so_far = 0, 0.0
    for name in names:
        so_far += shares[name]
        end = len(numbers) if name == names[-1] else round(so_far / whole * len(numbers) / unit) * unit
        owner.update((numbers[i], name) for i in range(begin, max(begin, min(end, len(numbers)))))
        begin = max(begin, end)
    return owner
