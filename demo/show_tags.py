"""Shows tagged sentences, `WORD<TAB>TAG<TAB>MARGIN` lines, with each tag below its word."""

import sys

CLOSE = 0.2


def show(sentence):
    cells = [(word, tag + ("?" if float(margin) < CLOSE else "")) for word, tag, margin in sentence]
    widths = [max(map(len, cell)) for cell in cells]
    for row in zip(*cells):
        print("  " + "  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    print()


def main(path):
    sentence = []
    with open(path, encoding="utf-8") as lines:
        for line in [*lines, "\n"]:
            if line.strip():
                sentence.append(line.rstrip("\n").split("\t"))
            elif sentence:
                show(sentence)
                sentence = []


main(sys.argv[1])
