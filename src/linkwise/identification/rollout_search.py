"""Searches over numbers of a mechanism and first states of windows."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from linkwise.identification import model
from linkwise.identification.possible import INSIDE, LEAST
from linkwise.identification.progress import Reporter
from linkwise.identification.rollout_windows import CHANGE, WIDE, Windows
from linkwise.spatial.array import Array

FARTHEST = 0.2
"""Change of a coordinate of an inertia in one step, relative to its size."""

GENTLE, HARDER = 1e-12, 4.0
"""Stiffness that shortens steps, relative to the slope, at first; and by what it grows."""

LEFT, KINKED = 0.01, 0.1
"""Relative decrease of the sum of squares that linear equations promise at the end of a search that
has converged: bodies cannot be flatter than flat. The second with friction."""

ROUNDS = 100
"""Of the search, at most."""

LARGEST = 1e12
"""Damping of a step that ends the search: none is small enough."""

DONE = 1e-8
"""Relative decrease of the sum of squares that ends it."""

FEW, LITTLE = 5, 1e-3
"""The search also ends after this number of rounds that decrease it by less than this, in variances
of the noise: what estimates still move by does not count beside their deviations."""


def covariance_of(J: Array, n: int, scale: float, pull: float) -> tuple[Array, Array]:
    """What the first states do not explain of the derivatives by x, and the covariance of x (n, n).

    By singular values, so that what no measurement shows keeps the variance 1/pull of the prior.
    """
    by_x, by_states = J[:, :n], J[:, n:]
    seen = by_x - by_states @ cast("Array", np.linalg.lstsq(by_states, by_x, rcond=None)[0])
    _, values, turn = np.linalg.svd(seen / scale, full_matrices=True)
    information = pull + np.pad(values, (0, n - len(values))) ** 2
    return seen, np.asarray((turn.T / information) @ turn, dtype=np.float64)


def settled(problem: Windows, free: model.FreeNumbers, x: Array, states: Array) -> Array:
    """First states that fit best with the numbers as they are, by a few rounds of Gauss-Newton."""
    numbers = free.numbers(x)[0][None]
    for _ in range(3):
        miss, J = problem.linear(free, x, states)
        step = cast("Array", np.linalg.lstsq(J[:, len(x) :], -miss, rcond=None)[0])
        tried = problem.moved(states, step)
        after = problem.misses(numbers, tried[None])[0]
        if not (np.isfinite(after).all() and after @ after < miss @ miss):
            break  # too far for a straight step; the search takes shorter ones
        states = tried
    return states


class Search:
    """Levenberg and Marquardt's search over x and the first states, with σ from the residual."""

    def __init__(
        self,
        problem: Windows,
        free: model.FreeNumbers,
        weight: float,
        x: Array,
        states: Array,
        miss: Array,
        J: Array,
        report: Reporter | None = None,
    ) -> None:
        self.problem, self.free, self.weight = problem, free, weight
        self.x, self.states, self.miss, self.J = x, states, miss, J
        self.scale, self.damping = self._noise(), 1e-3
        self.report = Reporter(None) if report is None else report

    def _noise(self) -> float:
        left = max(len(self.miss) - self.J.shape[1], 1)
        return max(float(np.sqrt(self.miss @ self.miss / left)), 1e-12)

    def run(self) -> tuple[int, bool]:
        """Rounds, and whether the search ended where nothing is left to gain."""
        rounds, limit = 0, KINKED if self.problem.rubs else LEFT
        for width in WIDE if self.problem.rubs else (CHANGE,):
            if width != self.problem.width:
                self.problem, self.damping = replace(self.problem, width=width), 1e-3
                self.miss, self.J = self.problem.linear(self.free, self.x, self.states)
            self.report.begin(f"rounds with {self.problem.substeps} steps a sample", ROUNDS)
            rounds += self._descend()
            if self._promise() < limit:
                return rounds, True
        return rounds, False

    def _descend(self) -> int:
        """Rounds until no step leads down by much."""
        gained = [np.inf] * FEW
        for done in range(1, ROUNDS + 1):
            decrease = self._round()
            self.report(done, self._noise())
            if decrease is None:
                return done
            gained = [*gained[1:], decrease * len(self.miss)]
            noise = self._noise()
            steady = abs(noise - self.scale) < 1e-3 * self.scale
            self.scale = noise
            if steady and (decrease < DONE or sum(gained) < LITTLE):
                return done
        return ROUNDS

    def _promise(self) -> float:
        """By what share the sum of squares would decrease if the equations were linear."""
        n, sides = len(self.x), self._sides(self.miss, self.x)
        A = np.vstack([self.J / self.scale, self.weight * np.eye(n, self.J.shape[1])])
        A[:, self._at_bounds(A.T @ sides)] = 0.0
        step = cast("Array", np.linalg.lstsq(A, -sides, rcond=None)[0])
        after, total = sides + A @ step, float(sides @ sides)
        return 1.0 - float(after @ after) / total if total > 0.0 else 0.0

    def _at_bounds(self, slope: Array) -> NDArray[np.intp]:
        """Coordinates that are zero and would become negative."""
        n = len(self.x)
        return np.flatnonzero(self.free.bounded & (self.x <= 0.0) & (slope[:n] > 0.0))

    def _sides(self, miss: Array, x: Array) -> Array:
        return np.concatenate([miss / self.scale, self.weight * (x - self.free.first)])

    def _short(self, M: Array, right: Array) -> Array:
        """The solution s of (M + μ T⁻²) s = right whose coordinates of inertias are at most T.

        These are logarithms and roots: long steps lead to where bodies are flat. μ takes what is
        hardly shown from the step first, and leaves the rest as it is.
        """
        reach, curved = FARTHEST * self.free.sizes(self.x), 10 * len(self.free.bodies)
        stiff = np.zeros(len(right))
        stiff[:curved] = 1.0 / reach**2
        step = cast("Array", np.linalg.solve(M, right))
        mu = GENTLE * float(np.max(np.abs(right[:curved]) * reach, initial=0.0))
        while np.any(np.abs(step[:curved]) > reach) and mu > 0.0:
            step = cast("Array", np.linalg.solve(M + mu * np.diag(stiff), right))
            mu *= HARDER
        return step

    def _straight(self, M: Array, right: Array) -> tuple[Array, Array]:
        """A step that is straight in θ, of which motions are simpler functions, and x at its end.

        The pull, straight in x, then has the Hessian 1 − B in place of 1 (`possible.py`).
        """
        n, curved = len(self.x), 10 * len(self.free.bodies)
        _, slopes = self.free.numbers(self.x)
        slope = self.free.slope_by_numbers(slopes, self.x - self.free.first)
        values, turn = np.linalg.eigh(self.free.bending(self.x, slope)[:curved, :curved])
        M = M.copy()
        M[:curved, :curved] -= self.weight**2 * (turn * np.minimum(values, 1.0 - LEAST)) @ turn.T
        step = cast("Array", np.linalg.solve(M, right))
        step *= min(1.0, INSIDE * self.free.share_to_border(self.x, step[:n]))
        return step, self.free.along(self.x, step[:n])

    def _round(self) -> float | None:
        """One step that makes the sum of squares smaller, by what share; None if there is none."""
        n, sides = len(self.x), self._sides(self.miss, self.x)
        total, columns = float(sides @ sides), self.J.shape[1]
        A = np.vstack([self.J / self.scale, self.weight * np.eye(n, columns)])
        held = self._at_bounds(A.T @ sides)
        A[:, held] = 0.0
        M, right = A.T @ A, -(A.T @ sides)
        M[held, held] = 1.0
        while self.damping < LARGEST:
            damped = M + self.damping * np.diag(np.diag(M) + 1e-300)
            short, (straight, end) = self._short(damped, right), self._straight(damped, right)
            x: Array = np.stack([self.x + short[:n], end])
            x[:, self.free.bounded] = np.maximum(x[:, self.free.bounded], 0.0)
            numbers = np.stack([self.free.numbers(one)[0] for one in x])
            states = np.stack([self.problem.moved(self.states, s[n:]) for s in (short, straight)])
            misses = self.problem.misses(numbers, states)
            trials = [self._sides(misses[i], x[i]) for i in range(len(x))]
            after = [float(y @ y) if np.isfinite(y).all() else np.inf for y in trials]
            best = int(np.argmin(after))
            if after[best] < total:
                self.x, self.states = x[best], states[best]
                self.damping = max(0.1 * self.damping, 1e-12)
                self.miss, self.J = self.problem.linear(self.free, self.x, self.states)
                return (total - after[best]) / total
            self.damping *= 10.0
        return None
