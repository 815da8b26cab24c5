"""The mass matrix by Monte Carlo: its estimate from draws, and the convergence."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import ModelError
from linkwise.spatial.array import Array

if TYPE_CHECKING:
    from linkwise.estimation.random_field import RandomField

CHUNK = 2**21
"""Random numbers in memory at a time."""


@dataclass(frozen=True, slots=True, eq=False)
class MassMatrixSample:
    """An average of T T* over draws of the random field, and its convergence to the mass matrix.

    With E[T T*] = 𝓜 = L L*, the error of an estimate Ŝ is measured free of units, ‖L⁻¹ Ŝ L⁻* - 1‖
    (Frobenius). n Ŝ has a Wishart distribution, so that

        E[error²] = p (p + 1) / n    exactly, with p = nv,
        n error² ~ 2 χ² with p (p + 1) / 2 degrees of freedom, as n grows,
        Var Ŝ_ij = (𝓜_ij² + 𝓜_ii 𝓜_jj) / n,

    whatever the mechanism is.

    Attributes:
        count: Number of draws.
        estimate: Their average of T T* (nv, nv).
        exact: The mass matrix (nv, nv), with the measurement noise on its diagonal.
        counts: Numbers of draws at which the error was recorded.
        errors: These errors.
    """

    count: int
    estimate: Array
    exact: Array
    counts: NDArray[np.int64]
    errors: Array

    @property
    def error(self) -> float:
        """‖L⁻¹ Ŝ L⁻* - 1‖."""
        return float(self.errors[-1])

    @property
    def expected(self) -> Array:
        """Root of the mean squared error at each of `counts`, √(p (p + 1) / n)."""
        p = len(self.exact)
        return np.sqrt(p * (p + 1) / self.counts)

    @property
    def deviation(self) -> Array:
        """Standard deviation of each entry of the estimate (nv, nv)."""
        size = np.diag(self.exact)
        return np.sqrt((self.exact**2 + np.outer(size, size)) / self.count)

    def band(self, probability: float = 0.95) -> tuple[Array, Array]:
        """Bounds of the error with this probability at each of `counts`: lower, upper.

        From the χ² above, for counts well above nv; its quantiles by Wilson and Hilferty.

        Raises:
            ModelError: The probability is not between 0 and 1.
        """
        if not 0.0 < probability < 1.0:
            raise ModelError(f"probability is {probability!r}; it must be between 0 and 1.")
        p = len(self.exact)
        degrees = p * (p + 1) / 2
        if not degrees:
            return np.zeros(len(self.counts)), np.zeros(len(self.counts))
        tail = NormalDist().inv_cdf(0.5 + 0.5 * probability)
        lower, upper = (
            degrees
            * max(1.0 - 2.0 / (9.0 * degrees) + z * np.sqrt(2.0 / (9.0 * degrees)), 0.0) ** 3
            for z in (-tail, tail)
        )
        return np.sqrt(2.0 * lower / self.counts), np.sqrt(2.0 * upper / self.counts)


def watch(field: RandomField, count: int, rng: np.random.Generator) -> Iterator[MassMatrixSample]:
    """Sums of draws, yielded at 1, 2, 4 ... and `count` of them."""
    exact = field.covariance("T")
    field.numbers.require_resistance()  # a singular 𝓜 has no scale to measure errors with
    white = np.linalg.inv(np.linalg.cholesky(exact))
    total, drawn = np.zeros_like(exact), 0
    most = max(1, CHUNK // max(1, 6 * field.mech.n_bodies))
    counts, errors = list[int](), list[float]()
    for goal in _goals(count):
        while drawn < goal:
            step = min(most, goal - drawn)
            T = field.draw_measurements(step, seed=rng)
            total += T.T @ T
            drawn += step
        estimate = total / drawn
        counts.append(drawn)
        errors.append(float(np.linalg.norm(white @ estimate @ white.T - np.eye(len(exact)))))
        yield MassMatrixSample(drawn, estimate, exact, np.array(counts), np.array(errors))


def _goals(count: int) -> list[int]:
    powers = [2**i for i in range(count.bit_length()) if 2**i < count]
    return [*powers, count]
