"""Draws bracketed trees, one a line, as trees of lines: a phrase above its parts, words at the bottom."""

import re
import sys


def parse(line):
    """The tree of a line as (label, [children]); a word is a string."""
    stack = [("", [])]
    for piece in re.findall(r"\([^\s()]*|\)|[^\s()]+", line):
        if piece.startswith("("):
            stack.append((piece[1:], []))
        elif piece == ")":
            node = stack.pop()
            stack[-1][1].append(node)
        else:
            stack[-1][1].append(piece)
    return stack[0][1][0]


def draw(node):
    """The lines of a drawing, all of one width, and the column of its root."""
    if isinstance(node, str):
        return [node], (len(node) - 1) // 2
    label, children = node
    drawings = [draw(child) for child in children]
    height = max(len(lines) for lines, _ in drawings)
    rows, stems, left = [""] * height, [], 0
    for at, (lines, root) in enumerate(drawings):
        gap = "  " if at else ""
        width = len(lines[0])
        # Words stand on the bottom line, whatever is above them: a stem leads down.
        stem = " " * root + "│" + " " * (width - root - 1)
        lines = [lines[0]] + [stem] * (height - len(lines)) + lines[1:] if len(lines) > 1 else [stem] * (height - 1) + lines
        rows = [row + gap + line for row, line in zip(rows, lines)]
        stems.append(left + len(gap) + root)
        left += len(gap) + width
    first, last = stems[0], stems[-1]
    root = (first + last) // 2
    bar = [" "] * left
    if first == last:
        bar[root] = "│"
    else:
        bar[first : last + 1] = "─" * (last - first + 1)
        for stem in stems[1:-1]:
            bar[stem] = "┬"
        bar[first], bar[last] = "┌", "┐"
        bar[root] = "┼" if root in stems else "┴"
    return with_label(label, root, ["".join(bar)] + rows)


def with_label(label, root, lines):
    """Puts a label over its root, and makes room where it sticks out."""
    start = root - (len(label) - 1) // 2
    left = max(0, -start)
    right = max(0, start + len(label) - len(lines[0]))
    lines = [" " * left + line + " " * right for line in lines]
    top = " " * (start + left) + label
    return [top.ljust(len(lines[0]))] + lines, root + left


def main(path):
    with open(path, encoding="utf-8") as trees:
        for line in trees:
            if line.startswith("("):
                print(*("  " + row.rstrip() for row in draw(parse(line))[0]), "", sep="\n")
            elif line.strip():
                print("  " + line.strip())


main(sys.argv[1])
