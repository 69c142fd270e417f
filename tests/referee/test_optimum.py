"""Tests of the referee itself: `python -m referee --self-test`, or pytest from `tests`."""

from __future__ import annotations

import traceback

import numpy as np

from .exact import LD, Formulation, Kernel, Objective, Table, kernel_of_words
from .optimum import is_surely_inseparable, optimum
from .problem import Candidate, Example, Part, Weights


def two_classes(points: list[tuple[list[float], int]], kernel: Kernel | None = None) -> Table:
    """The table of a binary problem."""
    examples = []
    for values, sign in points:
        phi = dict(enumerate(values))
        examples.append(Example([Candidate(1.0, [Part("x", 0, phi, float(sign))])]))
    return Table(examples, kernel, "x", Weights())


def random_table(seed: int, outputs: int = 6, kernel: Kernel | None = None) -> Table:
    """Random examples with several outputs each; with a kernel, classes of points."""
    random = np.random.default_rng(seed)
    examples = []
    for _ in range(int(random.integers(2, 9))):
        phi = {j: float(v) for j, v in enumerate(random.normal(size=3))}
        truth = int(random.integers(outputs))
        candidates = []
        for y in range(outputs):
            if y != truth:
                parts = [Part("x", truth, phi, 1.0), Part("x", y, phi, -1.0)]
                candidates.append(Candidate(float(random.integers(1, 5)), parts))
        examples.append(Example(candidates, float(random.choice([0.5, 1.0, 2.0]))))
    return Table(examples, kernel, "x", Weights())


def close(a: float, b: float, tolerance: float = 1e-14) -> None:
    """Fails where two numbers differ by more than a share of the second."""
    assert abs(float(a) - b) <= tolerance * max(abs(b), 1e-300), f"{float(a)!r} is not {b!r}"


def test_one_point() -> None:
    """w = min(C, 1/|x|^2) x for a single point and linear slack."""
    table = two_classes([([2.0], 1)])
    small = optimum(Objective(table, Formulation("margin", "linear", 0.1)))
    close(small.upper, 0.1 - 0.1**2 * 4 / 2)
    large = optimum(Objective(table, Formulation("margin", "linear", 1e6)))
    close(large.upper, 1 / 8)
    close(large.lower, 1 / 8)


def test_one_point_quadratic() -> None:
    """P = 1 / (2 (|x|^2 + 1/C)) for a single point and quadratic slack."""
    table = two_classes([([2.0], 1)])
    for c in (1e-6, 0.5, 1e8):
        bounds = optimum(Objective(table, Formulation("margin", "quadratic", c)))
        close(bounds.upper, 1 / (2 * (4 + 1 / c)))
        close(bounds.lower, 1 / (2 * (4 + 1 / c)))


def test_hard_margin() -> None:
    """Two points at a distance of 2 in a plane through the origin; and contradictory ones."""
    table = two_classes([([1.0, 5.0], 1), ([-1.0, 5.0], -1)])
    objective = Objective(table, Formulation("margin", "hard", 1.0))
    bounds = optimum(objective)
    close(bounds.upper, 0.5)
    assert not is_surely_inseparable(objective, bounds)
    table = two_classes([([1.0, 5.0], 1), ([1.0, 5.0], -1)])
    objective = Objective(table, Formulation("margin", "hard", 1.0))
    bounds = optimum(objective)
    assert not np.isfinite(bounds.upper) and is_surely_inseparable(objective, bounds)


def test_kernel_of_one_point() -> None:
    """With an RBF kernel |phi(x)|^2 is 1, and the constant is added."""
    table = two_classes([([3.0, 4.0], 1)], Kernel("rbf", gamma=0.5, constant=3.0))
    bounds = optimum(Objective(table, Formulation("margin", "linear", 10.0)))
    close(bounds.upper, 1 / 8)


def test_rbf_of_far_points() -> None:
    """A large constant feature changes no digit of the values of an RBF kernel."""
    near = [([0.25, 0.0], 1), ([0.5, 0.0], -1), ([1.25, 0.0], 1)]
    far = [([x, 1.7e9], sign) for (x, _), sign in near]
    kernel = kernel_of_words(["--kernel", "rbf:gamma=2", "--bias", "0.5"])
    assert kernel == Kernel("rbf", gamma=2.0, constant=0.25)
    assert (two_classes(near, kernel).gram == two_classes(far, kernel).gram).all()


def test_linear_kernel_is_no_kernel() -> None:
    """A linear kernel, and a polynomial one of degree 1, solve the problem of the plain vectors."""
    for seed in range(5):
        plain = random_table(seed)
        for kernel in (Kernel("linear"), Kernel("poly", gamma=1.0, degree=1)):
            with_kernel = random_table(seed, kernel=kernel)
            for penalty in ("linear", "quadratic"):
                formulation = Formulation("slack", penalty, 3.0)
                expected = optimum(Objective(plain, formulation))
                found = optimum(Objective(with_kernel, formulation))
                close(found.upper, float(expected.upper), 1e-12)


def test_gaps_are_small() -> None:
    """From both sides the bounds meet, at ordinary and at extreme C."""
    for seed in range(4):
        for rescaling in ("margin", "slack"):
            for penalty in ("linear", "quadratic"):
                for c, most in ((1e-6, 1e-12), (1.0, 1e-12), (1e4, 1e-10), (1e10, 1e-6)):
                    for kernel in (None, Kernel("rbf", gamma=1.0)):
                        table = random_table(seed, kernel=kernel)
                        bounds = optimum(Objective(table, Formulation(rescaling, penalty, c, 2.0)))
                        where = f"seed {seed}, {rescaling}, {penalty}, C = {c}, {kernel}"
                        assert bounds.lower <= bounds.upper * (1 + LD(1e-16)), where
                        assert bounds.gap <= most, f"{where}: gap {bounds.gap}"


def test_no_better_point() -> None:
    """Random steps away from the optimum do not go below the lower bound."""
    random = np.random.default_rng(1)
    for seed in range(10):
        objective = Objective(random_table(seed), Formulation("margin", "linear", 2.0))
        bounds = optimum(objective)
        for size in (1e-8, 1e-4, 1.0):
            w = bounds.w + size * random.normal(size=len(bounds.w)).astype(LD)
            assert objective.primal(w).value >= bounds.lower


def test_working_set() -> None:
    """Hundreds of outputs, of which few are rows of the working set at first."""
    table = random_table(3, outputs=200)
    bounds = optimum(Objective(table, Formulation("margin", "linear", 1.0)))
    assert len(table.owner) > 250 and bounds.gap <= 1e-12


def run_tests() -> int:
    """Runs all tests of this file; returns the exit code."""
    failed = 0
    tests = [(name, test) for name, test in globals().items() if name.startswith("test_")]
    for name, test in tests:
        try:
            test()
        except Exception:
            failed += 1
            print(f"FAILED {name}\n{traceback.format_exc()}")
    print(f"{len(tests) - failed} passed, {failed} failed")
    return 1 if failed else 0
