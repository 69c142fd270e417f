"""Runs in the environment of the peers (build.py): draws curves. Reads JSON from standard input, writes the file that is named.

{"title": ..., "rows": [{"name": ..., "panels": [{"x": ..., "y": ..., "curves": {name: [[x, y], ...]}}]}]}
"""

import json
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def main(path):
    figure = json.load(sys.stdin)
    rows = figure["rows"]
    columns = max(len(row["panels"]) for row in rows)
    canvas, grid = pyplot.subplots(len(rows), columns, figsize=(4.2 * columns, 3.4 * len(rows)), squeeze=False)
    names = list(dict.fromkeys(name for row in rows for panel in row["panels"] for name in panel["curves"]))
    colours = dict(zip(names, pyplot.get_cmap("tab10").colors))
    for row, axes in zip(rows, grid):
        for panel, axis in zip(row["panels"], axes):
            for name, points in panel["curves"].items():
                if points:
                    axis.plot(*zip(*points), label=name, color=colours[name], marker="o", markersize=3, linewidth=1.2)
            axis.set(xlabel=panel["x"], ylabel=panel["y"], title=row["name"], xscale="log", yscale=panel.get("scale", "linear"))
            axis.grid(alpha=0.3)
    handles = {label: handle for axis in grid.flat for handle, label in zip(*axis.get_legend_handles_labels())}
    canvas.legend(handles.values(), handles.keys(), loc="lower center", ncols=len(handles), frameon=False)
    canvas.suptitle(figure["title"])
    canvas.tight_layout(rect=(0, 0.05, 1, 0.98))
    canvas.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1])
