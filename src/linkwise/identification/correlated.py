"""Covariances of least squares whose noise is correlated in time.

    A = Q U,   b̂ = U⁻¹ Q* y,    cov b̂ = U⁻¹ S U⁻*,    S = Σ_j Q_j* R_j Q_j                     (1)

with R_j the autocorrelation of the noise of joint j. Filters make it wide; the residuals r of the
fit show it:

    R_j(k) = mean_t r_j(t) r_j(t + k),    with a flat top up to lag m, and nothing from 2 m on   (2)

where all correlations from m to 2 m are small. Estimates of correlations that are zero scatter by

    √((1 + 2 Σ_{k ≤ m} ρ(k)²) / samples)                                                       (3)

The spectrum of R_j is made non-negative, so that R_j = G G* is a covariance. White noise of
variance 1 has m = 0 and S = 1.

Sources: politis2004automatic for m; andrews1991heteroskedasticity for (1); bartlett1946theoretical
for (3).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from linkwise.spatial.array import Array

QUIET = 2.0
"""Correlations are small within this many √(log₁₀ samples) times (3)."""

FEW = 5
"""Lags that must be quiet at least."""

LEAST_LEFT = 0.1
"""At least this share of the samples is left over by the fit."""

AT_ONCE = 16
"""Columns that are filtered together."""


def autocovariance(r: Array, known: Array) -> Array:
    """R(k) for all lags up to a quarter of the samples, over the pairs that are known."""
    n = len(r)
    size = 1 << int(np.ceil(np.log2(2 * n)))
    products = [np.abs(np.fft.rfft(x, size)) ** 2 for x in (r * known, known.astype(float))]
    sums, pairs = (np.fft.irfft(x, size)[: max(n // 4, 1)] for x in products)
    return np.where(pairs > 0.5, sums / np.maximum(pairs, 1.0), 0.0)


def memory(R: Array, count: int) -> int:
    """The lag m from which correlations up to 2 m are as small as estimates of zero are (3)."""
    if not R[0] > 0.0 or count < 2:
        return 0
    rho = R / R[0]
    scatter = 1.0 + 2.0 * np.concatenate([[0.0], np.cumsum(rho[1:] ** 2)])
    wide, last = QUIET * np.sqrt(np.log10(count) / count), 0
    for lag in range(1, len(rho)):
        if lag > 2 * last + FEW:
            break
        if abs(rho[lag]) >= wide * np.sqrt(scatter[last]):
            last = lag
    return last


def root(R: Array, m: int) -> Array:
    """Taps g of a symmetric filter: white noise becomes noise of the autocovariance R (2)."""
    if m == 0:
        return np.sqrt(np.maximum(R[:1], 0.0))
    end = min(2 * m + 1, len(R))
    window = np.clip(2.0 - np.arange(end) / m, 0.0, 1.0)
    size = 1 << int(np.ceil(np.log2(8 * end)))
    both = np.zeros(size)
    both[:end] = R[:end] * window
    both[size - end + 1 :] = both[1:end][::-1]
    spectrum = np.sqrt(np.maximum(np.fft.rfft(both).real, 0.0))
    g = np.fft.irfft(spectrum, size)
    g *= np.sqrt(R[0] / (g @ g))  # the variance stays
    return np.roll(g, 2 * end)[: 4 * end + 1]


def spread(Q: Array, g: Array) -> Array:
    """Q* R Q of the columns (samples, count), for R = G G*."""
    if len(g) == 1:
        return g[0] ** 2 * (Q.T @ Q)
    size = 1 << int(np.ceil(np.log2(len(Q) + len(g))))
    taps, columns = np.fft.rfft(g, size)[:, None], np.empty((len(Q) + len(g) - 1, Q.shape[1]))
    for first in range(0, Q.shape[1], AT_ONCE):
        some = slice(first, first + AT_ONCE)
        products = np.fft.rfft(Q[:, some], size, axis=0) * taps
        columns[:, some] = np.fft.irfft(products, size, axis=0)[: len(columns)]
    return columns.T @ columns


def noise_of_rows(
    Q: Callable[[int], Array], squares: Callable[[int], Array], r: Array, known: Array, least: Array
) -> tuple[Array, NDArray[np.intp]]:
    """S = Σ_j Q_j* R_j Q_j (count, count) of (1), and the memory m of each joint in samples.

    Args:
        Q: Of each joint j, its part of orthonormal columns (samples, count); zero where nothing is
            known. White noise does not need it.
        squares: Q_j* Q_j of each joint.
        r: Residuals (samples, joints).
        known: Which of them count.
        least: Variance (joints,) below which noise is not looked at.
    """
    parts, memories = list[Array](), list[int]()
    for j, known_rows in enumerate(known.T):
        n, R = int(np.count_nonzero(known_rows)), autocovariance(r[:, j], known_rows)
        if R[0] <= least[j]:
            R = least[j : j + 1]
        memories.append(memory(R, n))
        g = root(R, memories[-1])
        part = g[0] ** 2 * squares(j) if len(g) == 1 else spread(Q(j), g)
        # The fit took its share of the noise; with correlations, more than one for each column.
        taken = float(np.trace(part)) / max(float(R[0]), 1e-300)
        parts.append(part * (n / max(n - taken, LEAST_LEFT * n)))
    return np.sum(parts, axis=0), np.array(memories)
