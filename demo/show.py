"""Draws some digits of a file, with the labels predicted for them: python3 show.py DATA.gz PREDICTED"""

import gzip
import sys

INK = " .:-=+*#%@"
SHOWN = 6


def draw(entries):
    pixels = [0.0] * 64
    for entry in entries:
        index, value = entry.split(":")
        pixels[int(index) - 1] = float(value)
    ink = [INK[round(v * (len(INK) - 1))] * 2 for v in pixels]
    return ["".join(ink[8 * row : 8 * row + 8]) for row in range(8)]


def show(title, examples):
    print(f"\n{title}")
    for lines in zip(*(draw(entries) for _, _, entries in examples)):
        print("   " + "  ".join(lines).rstrip())
    captions = (f"{truth} taken for {label}" if truth != label else f"{truth}" for truth, label, _ in examples)
    print("   " + "  ".join(caption.center(16) for caption in captions).rstrip())


with gzip.open(sys.argv[1], "rt") as data, open(sys.argv[2]) as predicted:
    examples = [(line.split()[0], label.strip(), line.split()[1:]) for line, label in zip(data, predicted)]
right = [example for example in examples if example[0] == example[1]]
wrong = [example for example in examples if example[0] != example[1]]
show(f"right: {len(right)} of {len(examples)}, for example", right[:SHOWN])
if wrong:
    show(f"wrong: {len(wrong)} of {len(examples)}, for example", wrong[:SHOWN])
