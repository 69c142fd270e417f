"""The minimum of the objective, between two bounds that the referee works out itself.

Solves the problem over a working set of rows by a primal-dual interior point method (Mehrotra's
predictor and corrector), and adds rows until none is violated. Vectors are `longdouble`, matrices
are factored in double precision; iterative refinement makes up for the difference. Whatever the
method does, both bounds are evaluated in extended precision over all rows: any w gives an upper
bound, any masses that are feasible for the dual give a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .exact import EPS, LD, Objective

# Rows that the first working set may have, and rows of an example that join it at a time.
FIRST_ROWS = 250
ROWS_A_ROUND = 4
ROUNDS = 60
# Relative gaps: asked for while rows are added, and in the end.
COARSE, FINE = 1e-5, 1e-15
# The hard margin is a linear penalty with one of these weights, in units in which the largest
# rows and margins are 1. Where |w| must be larger than the limit, the data count as inseparable.
HARD_CAPS = (1e8, 1e14, 1e20)
HARD_LIMIT = 1e8


@dataclass
class Bounds:
    """The minimum of P is from `lower` to `upper`; P(w) is `upper`."""

    lower: LD
    upper: LD
    w: np.ndarray
    # What rounding of the referee's own numbers may have added to `upper`.
    rounding: float

    @property
    def gap(self) -> float:
        """The relative gap between the bounds."""
        if not np.isfinite(self.upper):
            return 1.0
        return float((self.upper - self.lower) / self.upper) if self.upper > 0 else 0.0


def pivoted_cholesky(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L with `matrix` = L L', and the pivots: the rows at which L is lower triangular."""
    rest = np.array(np.diag(matrix))
    columns, pivots = [], []
    least = rest.max(initial=LD(0)) * EPS * 8
    while len(pivots) < len(matrix):
        pivot = int(np.argmax(rest))
        if rest[pivot] <= least:
            break
        column = matrix[:, pivot].copy()
        for earlier in columns:
            column -= earlier * earlier[pivot]
        column /= np.sqrt(rest[pivot])
        rest = rest - column**2
        rest[pivots + [pivot]] = 0
        columns.append(column)
        pivots.append(pivot)
    factor = np.array(columns, LD).T if columns else np.zeros((len(matrix), 0), LD)
    return factor, np.array(pivots, np.int64)


class Frame:
    """Orthonormal coordinates for the space of w: those of the table but for the kernel block."""

    def __init__(self, table):
        self.table = table
        is_kernel = np.zeros(table.d, bool)
        is_kernel[table.kernel_columns] = True
        self.plain = np.flatnonzero(~is_kernel)
        self.blocks = []
        known: dict[bytes, tuple] = {}
        for slot in range(table.slots if len(table.kernel_columns) else 0):
            own = np.flatnonzero(table.slot_of == slot)
            atoms = table.atom_of[own]
            if atoms.tobytes() not in known:
                known[atoms.tobytes()] = pivoted_cholesky(table.gram[np.ix_(atoms, atoms)])
            self.blocks.append((table.kernel_columns[own], *known[atoms.tobytes()]))

    def rows(self, rows: np.ndarray) -> np.ndarray:
        """Some rows of the table in these coordinates."""
        dense = self.table.dense(rows)
        return np.hstack(
            [dense[:, self.plain]] + [dense[:, own] @ factor for own, factor, _ in self.blocks]
        )

    def weights(self, w: np.ndarray) -> np.ndarray:
        """A point of these coordinates in those of the table."""
        full = np.zeros(self.table.d, LD)
        full[self.plain] = w[: len(self.plain)]
        at = len(self.plain)
        for own, factor, pivots in self.blocks:
            rank = len(pivots)
            full[own[pivots]] = solve_transposed(factor[pivots], w[at : at + rank])
            at += rank
        return full


def solve_transposed(lower: np.ndarray, right: np.ndarray) -> np.ndarray:
    """x with lower' x = right."""
    x = right.copy()
    for k in range(len(x) - 1, -1, -1):
        x[k] = (x[k] - lower[k + 1 :, k] @ x[k + 1 :]) / lower[k, k]
    return x


def orthonormal(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the space that the rows span, a row for each vector."""
    basis = np.zeros((0, rows.shape[1]), LD)
    for row in rows:
        rest = row
        for _ in range(2):
            rest = rest - (basis @ rest) @ basis
        size = np.sqrt(rest @ rest)
        if size > EPS * 100 * np.sqrt(row @ row):
            basis = np.vstack([basis, rest / size])
    return basis


class Small:
    """A small problem of dense rows.

    min 1/2 |w|^2 + sum_g cap_g xi_g  (or 1/2 cap_g xi_g^2)
    where rows @ w + xi_owner >= rhs, xi >= 0
    """

    def __init__(
        self,
        rows: np.ndarray,
        rhs: np.ndarray,
        owner: np.ndarray,
        cap: np.ndarray,
        is_quadratic: bool,
    ):
        self.rhs, self.owner, self.cap = rhs, owner, cap
        self.is_quadratic = is_quadratic
        self.groups = len(cap)
        # Fewer rows than coordinates span a space with fewer.
        self.basis = orthonormal(rows) if len(rows) < rows.shape[1] else None
        self.rows = rows if self.basis is None else rows @ self.basis.T

    def sums(self, x: np.ndarray) -> np.ndarray:
        """The sums of x over the rows of each group."""
        total = np.zeros(self.groups, LD)
        np.add.at(total, self.owner, x)
        return total

    def value(self, w: np.ndarray) -> LD:
        """The objective at w."""
        slack = np.zeros(self.groups, LD)
        np.maximum.at(slack, self.owner, self.rhs - self.rows @ w)
        loss = (self.cap * slack**2).sum() / 2 if self.is_quadratic else (self.cap * slack).sum()
        return w @ w / 2 + loss

    def bound(self, a: np.ndarray) -> LD:
        """The dual value of masses that are made feasible first."""
        sums = self.sums(a)
        if self.is_quadratic:
            penalty = (sums**2 / self.cap).sum() / 2
        else:
            penalty = LD(0)
            a = a * np.minimum(1, self.cap / sums)[self.owner]
        w = a @ self.rows
        return a @ self.rhs - w @ w / 2 - penalty

    def solve(self, tolerance: float, most: int = 120) -> tuple[np.ndarray, np.ndarray]:
        """w and masses with a relative gap of `tolerance`, or as small as rounding allows."""
        m, d = self.rows.shape
        per_group = np.bincount(self.owner, minlength=self.groups)
        w, xi = np.zeros(d, LD), np.full(self.groups, LD(2))
        s = xi[self.owner] - self.rhs
        a = (self.cap / (per_group + 1))[self.owner]
        mu = self.cap / (per_group + 1)
        if self.is_quadratic:
            a = (self.cap / np.maximum(per_group, 1))[self.owner]
            xi = self.sums(a) / self.cap
        best_w, best_a, upper, lower, idle = w, a, self.value(w), LD(-np.inf), 0
        for _ in range(most):
            before = upper - lower
            for point in (w, a @ self.rows):
                value = self.value(point)
                if value < upper:
                    best_w, upper = point.copy(), value
            value = self.bound(a)
            if value > lower:
                best_a, lower = a.copy(), value
            if upper - lower <= tolerance * upper:
                break
            idle = idle + 1 if upper - lower > 0.9 * before else 0
            if idle >= 12:
                break
            step = self.step(w, xi, s, a, mu)
            if step is None:
                break
            w, xi, s, a, mu = step
        return best_w if self.basis is None else best_w @ self.basis, best_a

    def step(self, w, xi, s, a, mu):
        """The next iterate, or None where rounding leaves no direction."""
        r_w = a @ self.rows - w
        r_s = self.rows @ w + xi[self.owner] - self.rhs - s
        r_u = np.zeros(self.groups, LD) if self.is_quadratic else self.cap - self.sums(a) - mu
        q = 1 / self.cap if self.is_quadratic else xi / mu
        newton = Newton(self, a / s, q)
        if not newton.is_sound:
            return None
        pairs = len(a) + (0 if self.is_quadratic else self.groups)

        def complementarity(s, a, xi, mu):
            return (s @ a + (0 if self.is_quadratic else xi @ mu)) / pairs

        def direction(r_c, r_x):
            shift = np.zeros(self.groups, LD) if self.is_quadratic else (r_x - xi * r_u) / mu
            dw, da, sums = newton.solve(r_w, r_c / a - shift[self.owner] - r_s)
            dxi = q * sums + shift
            dmu = np.zeros(self.groups, LD) if self.is_quadratic else r_u - sums
            # Not from rows @ dw: small slacks are differences of large numbers.
            ds = (r_c - s * da) / a
            return dw, dxi, ds, da, dmu

        def longest(ds, da, dxi, dmu):
            pairs = [(s, ds), (a, da)] + ([] if self.is_quadratic else [(xi, dxi), (mu, dmu)])
            ratios = [(-x[dx < 0] / dx[dx < 0]).min(initial=LD(np.inf)) for x, dx in pairs]
            return min(min(ratios), LD(1e30))

        tau = complementarity(s, a, xi, mu)
        dw, dxi, ds, da, dmu = direction(-a * s, -mu * xi)
        if not np.isfinite(da).all() or not np.isfinite(dw).all():
            return None
        t = min(LD(1), longest(ds, da, dxi, dmu))
        ahead = complementarity(s + t * ds, a + t * da, xi + t * dxi, mu + t * dmu)
        sigma = (ahead / tau) ** 3
        dw, dxi, ds, da, dmu = direction(
            sigma * tau - a * s - da * ds,
            sigma * tau - mu * xi - (0 if self.is_quadratic else dmu * dxi),
        )
        if not np.isfinite(da).all() or not np.isfinite(dw).all():
            return None
        t = min(LD(1), LD(0.995) * longest(ds, da, dxi, dmu))
        if self.is_quadratic:
            dmu = np.zeros(self.groups, LD)
        return w + t * dw, xi + t * dxi, s + t * ds, a + t * da, mu + t * dmu


class Newton:
    """The linear system of a step.

    dw = rows' da + r_w, and N da + rows dw = h with N = 1/D + E q E'; E sums over groups.

    D and q are huge near the end. So N^-1 is worked out for each group from differences to its row
    with the largest D, which are exact where a group has one row that matters.
    """

    def __init__(self, small: Small, ratios: np.ndarray, q: np.ndarray):
        """`ratios`: D, the masses by the slacks of their rows."""
        self.small, self.ratios = small, ratios
        owner = small.owner
        order = np.lexsort((ratios.astype(np.float64), owner))
        last = np.flatnonzero(np.append(owner[order][1:] != owner[order][:-1], True))
        self.chief = order[last]
        self.total = small.sums(ratios)
        self.damped = 1 / (1 + q * self.total)
        centred, means = self.split(small.rows)
        parts = [
            centred * np.sqrt(ratios)[:, None],
            means * np.sqrt(self.total * self.damped)[:, None],
        ]
        stacked = np.vstack([*parts, np.eye(small.rows.shape[1])]).astype(np.float64)
        self.is_sound = False
        if not np.isfinite(stacked).all():
            return
        # Householder's method is accurate row by row where large rows stand first.
        order = np.argsort(-np.abs(stacked).max(axis=1, initial=0.0), kind="stable")
        triangle = np.linalg.qr(stacked[order], mode="r")
        try:
            self.inverse = np.linalg.inv(triangle)
        except np.linalg.LinAlgError:
            return
        self.is_sound = bool(np.isfinite(self.inverse).all())

    def split(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The differences of v from the means of groups, weighted by D, and these means."""
        owner, total = self.small.owner, self.total
        ratios = self.ratios if v.ndim == 1 else self.ratios[:, None]
        chief = v[self.chief]
        difference = v - chief[owner]
        shift = np.zeros_like(chief)
        np.add.at(shift, owner, ratios * difference)
        shift = shift / (total if v.ndim == 1 else total[:, None])
        return difference - shift[owner], chief + shift

    def over(self, v: np.ndarray) -> np.ndarray:
        """N^-1 v."""
        centred, means = self.split(v)
        return self.ratios * (centred + (means * self.damped)[self.small.owner])

    def approximate(self, right: np.ndarray) -> np.ndarray:
        """The solution in double precision of (1 + rows' N^-1 rows) x = right."""
        return (self.inverse @ (right.astype(np.float64) @ self.inverse)).astype(LD)

    def solve(self, r_w: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """dw, da and the sums of da over groups.

        Added up, these sums would be differences of large numbers.
        """
        rows = self.small.rows
        right = r_w + self.over(h) @ rows
        dw = self.approximate(right)
        for _ in range(3):
            dw = dw + self.approximate(right - dw - self.over(rows @ dw) @ rows)
        centred, means = self.split(h - rows @ dw)
        means = means * self.damped
        return dw, self.ratios * (centred + means[self.small.owner]), self.total * means


class Search:
    """The search for the minimum of an objective, over a growing working set."""

    def __init__(self, objective: Objective, starts: list[np.ndarray]):
        self.objective, self.table = objective, objective.table
        self.penalty = objective.formulation.penalty
        self.frame = Frame(self.table)
        self.lower, self.upper, self.w, self.rounding = (
            LD(0),
            LD(np.inf),
            np.zeros(self.table.d, LD),
            0.0,
        )
        for w in [self.w, *starts]:
            self.offer(w)

    def offer(self, w: np.ndarray) -> None:
        """Takes the upper bound of w where it is better."""
        if self.penalty == "hard":
            value, rounding = self.objective.hard_primal(w)[0], 0.0
        else:
            found = self.objective.primal(w)
            value, rounding = found.value, found.rounding
        if value < self.upper:
            self.upper, self.w, self.rounding = value, w, rounding

    def is_within(self, tolerance: float) -> bool:
        """Is the relative gap that small?"""
        return bool(np.isfinite(self.upper)) and bool(
            self.upper - self.lower <= tolerance * self.upper
        )

    def scale(self) -> tuple[LD, LD]:
        """What rows and right sides are divided by."""
        table, objective = self.table, self.objective
        used = (objective.factor > 0) & (objective.cap[table.owner] > 0)
        if not used.any():
            return LD(1), LD(1)
        picked = np.flatnonzero(used)[:: max(1, int(used.sum()) // 200)]
        rows = self.frame.rows(picked) * objective.factor[picked][:, None]
        size = np.sqrt((rows**2).sum(axis=1).max(initial=LD(0)))
        return size if size > 0 else LD(1), max(objective.rhs[used].max(initial=LD(0)), LD(1e-300))

    def run(self) -> Bounds:
        """Solves, and returns what is known of the minimum."""
        objective, table = self.objective, self.table
        usable = np.flatnonzero((objective.factor > 0) & (objective.cap[table.owner] > 0))
        size, height = self.scale()
        if len(usable) == 0:
            return Bounds(self.lower, self.upper, self.w, self.rounding)
        working = self.first(usable)
        for hard_cap in HARD_CAPS if self.penalty == "hard" else (None,):
            working = self.close_in(working, usable, size, height, hard_cap)
            if self.is_within(COARSE):
                break
        return Bounds(self.lower, self.upper, self.w, self.rounding)

    def close_in(self, working, usable, size: LD, height: LD, hard_cap: float | None) -> np.ndarray:
        """Solves over working sets until no row is violated; returns the last one."""
        objective, table = self.objective, self.table
        is_quadratic = self.penalty == "quadratic"
        tolerance = COARSE if len(working) < len(usable) else FINE
        for _ in range(ROUNDS):
            groups, owner = np.unique(table.owner[working], return_inverse=True)
            if hard_cap is not None:
                cap = np.full(len(groups), LD(hard_cap))
            else:
                cap = objective.cap[groups] * size**2 / (1 if is_quadratic else height)
            rows = self.frame.rows(working) * (objective.factor[working] / size)[:, None]
            w, a = Small(rows, objective.rhs[working] / height, owner, cap, is_quadratic).solve(
                tolerance
            )
            full = self.frame.weights(w * (height / size))
            masses = np.zeros(len(table.owner), LD)
            masses[working] = a * (height / size**2)
            self.offer(full)
            self.offer(table.combination(np.maximum(masses, 0) * objective.factor))
            self.lower = max(self.lower, objective.dual(masses))
            if self.is_within(FINE):
                break
            new = self.violated(full, working, usable, 1e-2 * tolerance * height)
            if len(new):
                working = np.union1d(working, new)
                if self.is_within(COARSE):
                    tolerance = FINE
            elif tolerance == FINE:
                break
            else:
                tolerance = FINE
        return working

    def first(self, usable: np.ndarray) -> np.ndarray:
        """All rows where they are few, else the costliest of each example."""
        if len(usable) <= FIRST_ROWS:
            return usable
        return self.largest(self.objective.rhs, usable, 3)

    def largest(self, values: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
        """Of each example those `count` of the rows with the largest values."""
        owner = self.table.owner[rows]
        order = np.lexsort((-values[rows].astype(np.float64), owner))
        owner = owner[order]
        first = np.searchsorted(owner, owner)
        return np.sort(rows[order[np.arange(len(owner)) - first < count]])

    def violated(
        self, w: np.ndarray, working: np.ndarray, usable: np.ndarray, least: LD
    ) -> np.ndarray:
        """The rows that lack most beyond what the working set's slacks allow."""
        objective, table = self.objective, self.table
        lacking = objective.rhs - objective.factor * table.products(w)
        slacks = np.zeros(table.n, LD)
        np.maximum.at(slacks, table.owner[working], lacking[working])
        beyond = lacking - slacks[table.owner]
        rows = usable[beyond[usable] > least]
        return (
            np.setdiff1d(self.largest(beyond, rows, ROWS_A_ROUND), working) if len(rows) else rows
        )


def optimum(objective: Objective, starts: list[np.ndarray] = ()) -> Bounds:
    """Bounds of the minimum. `starts`: weights that may be near it, such as those of a model.

    With the hard margin `upper` is infinite where no w was found that satisfies all constraints.
    """
    with np.errstate(all="ignore"):
        return Search(objective, list(starts)).run()


def is_surely_inseparable(objective: Objective, bounds: Bounds) -> bool:
    """Is the hard margin's |w| beyond HARD_LIMIT, in units of the data, if it exists at all?"""
    size, height = Search(objective, []).scale()
    return bool(bounds.lower * (size / height) ** 2 > HARD_LIMIT**2)
