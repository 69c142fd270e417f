"""Draws the pictures of the guide from real runs on generated data: python make_pictures.py

Needs maxmargin, distributed and matplotlib. The same versions draw the same bytes.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("svg")

import matplotlib.pyplot as plt

from maxmargin import LinearClassifier, datasets

HERE = Path(__file__).parent
BLUE, ORANGE, GREY = "#1f5a94", "#c4601d", "#808080"

mpl.rcParams.update({
    "svg.hashsalt": "maxmargin",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.figsize": (7, 3.6),
})


def data():
    """The data of choosing.md."""
    X, y = datasets.make_multiclass(900, features=30, classes=4, noise=0.15, random_state=1)
    return X[:600], y[:600]


def save(figure, name):
    """Without date and name of the program, so that the bytes repeat."""
    figure.tight_layout()
    figure.savefig(HERE / name, metadata={"Date": None, "Creator": None})
    plt.close(figure)


def convergence():
    """Primal and dual values over the passes, for one solver."""
    model = LinearClassifier(C=0.1, solver="one-slack", relative_gap=0.01).fit(*data())
    history = model.history_
    figure, ax = plt.subplots()
    known = np.isfinite(history["primal"])
    best = np.minimum.accumulate(history["primal"][known])
    ax.plot(history["passes"][known], best, color=ORANGE, marker=".", label="primal: the best objective so far")
    ax.plot(history["passes"], history["dual"], color=BLUE, marker=".", label="dual: no weights go below")
    ax.fill_between(history["passes"][known], best, history["dual"][known], color=GREY, alpha=0.15, linewidth=0, label="gap")
    ax.set_ylim(0, 2.2 * model.primal_)
    ax.set_xlabel("passes over the data")
    ax.set_ylabel("objective")
    ax.legend(frameon=False, loc="upper right")
    ax.annotate(f"{model.primal_:.2f}, at most {model.gap_ / model.primal_:.1%} too much".replace("%", " %"),
                (history["passes"][-1], model.primal_), textcoords="offset points", xytext=(0, 14), ha="right")
    save(figure, "convergence.svg")


def choosing_c():
    """Training loss and cross-validated loss over C."""
    X, y = data()
    values = [10.0**k for k in np.arange(-5, 1.1, 0.5)]
    train = LinearClassifier(C_path=values).fit(X, y).report_["path"]
    cv = LinearClassifier(C_path=values, folds=5).fit(X, y).report_["cv"]
    figure, ax = plt.subplots()
    ax.errorbar([s["c"] / 600 for s in cv], [s["loss"] for s in cv], [s["standard_error"] for s in cv], color=BLUE, marker="o",
                capsize=3, label="cross-validation, 5 folds")
    ax.plot([s["c"] / 600 for s in train], [s["train_loss"] for s in train], color=ORANGE, marker="o", label="training")
    best = min(cv, key=lambda s: s["loss"])
    ax.axvline(best["c"] / 600, ymax=0.62, color=GREY, linestyle=":", label="the C that is kept")
    ax.set_xscale("log")
    ax.set_xlabel("C, per example")
    ax.set_ylabel("share of errors")
    ax.set_ylim(0.16, 0.24)
    ax.legend(frameon=False, loc="upper left", ncols=3)
    save(figure, "choosing-c.svg")


def dask_simulation():
    """Rounds on 1 to 1,000 workers, from what `make bench-dask` has measured."""
    from maxmargin.dask.simulate import Problem, plot

    problems = [(f"d = {d:,}".replace(",", " "), Problem(d, thread_seconds=3600)) for d in (100_000, 1_000_000, 5_000_000)]
    plot(problems, str(HERE / "dask-simulation.png"), threads=8)


if __name__ == "__main__":
    convergence()
    choosing_c()
    dask_simulation()
