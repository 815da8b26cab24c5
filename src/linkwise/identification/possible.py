"""Numbers that a mechanism can have, nearest to an estimate of base parameters.

    θ̂ = argmin F,   F = |L (b̂ − K θ)|² + p |x(θ) − x(θ₀)|²     over inertias that bodies can have

with L* L the inverse covariance of b̂, and a weak pull p towards the numbers θ₀ that the mechanism
came with, which decides what the measurements leave open. x are free coordinates
(`pseudo_inertia.py`).

1. The measurements count by a share that grows from little to one. Steps are Newton's in θ, where
   the first part is a square: there is no narrow valley to follow, as there is in x. With
   S = ∂θ/∂x, the Hessian of the second is p S⁻* (1 − B) S⁻¹, where B are the second derivatives by
   x of g* θ, g = S⁻* (x − x₀). Close to where bodies are flat it acts as a barrier does.
2. The pull is curved in θ, and a square in x: the end of the search is Newton's method in x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linkwise.dynamics.regressor import BaseParameters
from linkwise.identification import model
from linkwise.identification.least_squares import Fit
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

MOST = 100
"""Steps of each part of the search, at most."""

GROWTH, LARGE = 10.0, 1000.0
"""Of the share by which measurements count, after a step; and after one that is as promised."""

LIGHT = 100.0
"""At first measurements count by this much in place of the pull."""

INSIDE = 0.95
"""Share of the way to where a body is flat that a step may go."""

LEAST = 0.1
"""Smallest eigenvalue of 1 − B that is taken: far from the border it may be negative."""

STEADY, SLOW = 1e-2, 1e-4
"""Relative decrease of F in a step that ends the first part; and in `LAST` steps the second."""

LAST = 6

DONE = 1e-12
"""F below which nothing is left to gain."""


def possible(
    mech: Mechanism, kinds: tuple[str, ...], base: BaseParameters, fit: Fit, pull: float
) -> tuple[Array, Array]:
    """θ̂ and gains: numbers that a mechanism can have, nearest to b̂ in its metric."""
    free = model.FreeNumbers.of(mech, kinds)
    count, size = len(base.names), len(free.first)
    if not size:
        return free.start, fit.estimate[count:]
    info, gains = fit.information, np.maximum(np.abs(fit.estimate[count:]), 1e-300)
    target = Target(
        free, info[:, :count] @ base.matrix, info[:, count:] * gains, info @ fit.estimate, pull
    )
    x = target.refined(
        target.approached(np.concatenate([free.first, fit.estimate[count:] / gains]))
    )
    return free.numbers(x[:size])[0], gains * x[size:]


def distance(base: BaseParameters, fit: Fit, values: Array, gains: Array) -> float:
    """How far numbers are from the estimate, in standard deviations."""
    miss = fit.information @ (np.concatenate([base.matrix @ values, gains]) - fit.estimate)
    return float(np.sqrt(np.mean(miss**2)))


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """F(x) = |A θ(x) + C g − r|² + p |x − x₀|² of coordinates x and gains g behind them."""

    free: model.FreeNumbers
    A: Array
    C: Array
    r: Array
    pull: float

    def miss(self, x: Array) -> Array:
        """The residual of the measurements."""
        size = len(self.free.first)
        return self.A @ self.free.numbers(x[:size])[0] + self.C @ x[size:] - self.r

    def off(self, x: Array) -> Array:
        """The distance from x₀."""
        return x[: len(self.free.first)] - self.free.first

    def value(self, x: Array, share: float = 1.0) -> float:
        """F, measurements counted by a share."""
        miss, off = self.miss(x), self.off(x)
        return float(share * (miss @ miss) + self.pull * (off @ off))

    def slopes(self, x: Array) -> tuple[Array, Array]:
        """∂θ/∂x, and the derivatives of the residual by x and gains."""
        slopes = self.free.numbers(x[: len(self.free.first)])[1]
        return slopes, np.hstack([self.A @ slopes, self.C])

    def approached(self, x: Array) -> Array:
        """Part 1: close to the least F, from anywhere."""
        size, share = len(self.free.first), 0.0
        for _ in range(MOST):
            slopes, columns = self.slopes(x)
            if not share:
                longest = float(np.max((columns[:, :size] ** 2).sum(axis=0), initial=0.0))
                share = min(1.0, LIGHT * self.pull / max(longest, 1e-300))
            before = self.value(x, share)
            step, promise = self._newton_by_numbers(x, slopes, columns, share)
            long = min(1.0, INSIDE * self.free.share_to_border(x[:size], step[:size]))
            x, after = self._shortened(x, step, share, before, long, promise)
            if share == 1.0 and before - after <= STEADY * before + DONE:
                return x
            if before - after > 0.7 * promise or promise < STEADY * before:
                share = min(1.0, LARGE * share)
            elif after == before or before - after > 0.25 * long * promise:
                share = min(1.0, GROWTH * share)
        return x

    def _newton_by_numbers(
        self, x: Array, slopes: Array, columns: Array, share: float
    ) -> tuple[Array, float]:
        """Newton's step in θ, as S⁻¹ dθ, and twice the decrease that it promises."""
        size, off = len(self.free.first), self.off(x)
        slope = self.free.slope_by_numbers(slopes, off)
        bend = np.eye(size) - self.free.bending(x[:size], slope)
        values, turn = np.linalg.eigh(bend)
        root = np.sqrt(self.pull * np.maximum(values, LEAST))
        M = np.zeros((len(self.r) + size, len(x)))
        M[: len(self.r)] = np.sqrt(share) * columns
        M[len(self.r) :, :size] = root[:, None] * turn.T
        right = np.concatenate([-np.sqrt(share) * self.miss(x), -self.pull * (turn.T @ off) / root])
        length = np.maximum(np.linalg.norm(M, axis=0), 1e-300)
        Q, R = np.linalg.qr(M / length)
        ahead = np.asarray(Q.T @ right, dtype=np.float64)
        step = np.asarray(np.linalg.solve(R, ahead), dtype=np.float64) / length
        return step, float(ahead @ ahead)

    def _shortened(
        self, x: Array, step: Array, share: float, before: float, long: float, promise: float
    ) -> tuple[Array, float]:
        """The end of a step, halved until F is smaller, and F there."""
        size = len(self.free.first)
        while long > 1e-8:
            tried = x + long * step
            tried[:size] = self.free.along(x[:size], long * step[:size])
            after = self.value(tried, share)
            if after < before - 1e-4 * long * promise:
                return tried, after
            long *= 0.5
        return x, before

    def refined(self, x: Array) -> Array:
        """Part 2: where F is least, from nearby."""
        size, damping, values = len(self.free.first), 0.0, [self.value(x)]
        for _ in range(MOST):
            _, columns = self.slopes(x)
            miss = self.miss(x)
            H = columns.T @ columns
            H[:size, :size] += self.free.bending(x[:size], self.A.T @ miss)
            slope = columns.T @ miss
            slope[:size] += self.pull * self.off(x)
            H[range(size), range(size)] += self.pull
            metric = np.diag(self._metric(x))
            x, after, damping = self._damped(x, H, slope, metric, values[-1], damping)
            values.append(after)
            few = values[-1 - LAST :]
            if after >= values[-2] or (len(few) > LAST and few[0] - after <= SLOW * after + DONE):
                return x
        return x

    def _metric(self, x: Array) -> Array:
        """What steps are compared with: 1/T² for a change T that is large."""
        size, inner = len(self.free.first), 10 * len(self.free.bodies)
        out = np.ones(len(x))
        out[:inner] = self.free.sizes(x[:inner]) ** -2
        out[inner:size] = np.maximum(np.abs(x[inner:size]), 1e-3) ** -2
        return out

    def _damped(
        self, x: Array, H: Array, slope: Array, metric: Array, before: float, damping: float
    ) -> tuple[Array, float, float]:
        """The end of the step −(H + μ T⁻²)⁻¹ slope, F there, and the next μ."""
        least = 1e-9 * float(np.max(np.abs(np.diag(H) / np.diag(metric)), initial=1e-300))
        for _ in range(60):
            try:
                root = np.linalg.cholesky(H + damping * metric)
            except np.linalg.LinAlgError:
                damping = max(least, 4.0 * damping)
                continue
            step = -np.linalg.solve(root.T, np.linalg.solve(root, slope))
            promise = -float(2.0 * slope @ step + step @ H @ step)
            after = self.value(x + step)
            if after < before:
                if before - after > 0.75 * promise:
                    damping = 0.2 * damping
                elif before - after < 0.25 * promise:
                    damping *= 3.0
                return x + step, after, damping
            damping = max(least, 4.0 * damping)
        return x, before, damping
