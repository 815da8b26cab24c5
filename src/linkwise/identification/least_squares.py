"""Weighted least squares of the equations of a mechanism, with what they know about noise.

    r = y − κ (W b + k)                     κ = 1 for a row of forces, 1/g for one of motor currents
    b̂, κ̂ = argmin Σ_j |r_j|² / σ_j²         σ_j of each row from its own residual

Noise is in y, also where y are currents: dividing by the gain leaves them alone on their side.
Where the rows of a sample mix the noise of several hinges, r = X* e (`closed.py`), they are
whitened by L⁻¹, L L* = X* S X, with the variances S of the hinges from

    s_i ← s_i Σ (X V⁻¹ r)_i² / Σ (X V⁻¹ X*)_ii,    V = X* S X

which is the mean square of r where X = 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import MissingExtraError, ModelError
from linkwise.identification import compressed, correlated
from linkwise.spatial.array import Array, floats

CLEAR = 1e8
"""Condition number above which the motion does not show all base parameters."""

HUBER = 1.345
"""Residuals beyond this many standard deviations count as outliers and weigh less."""

NORMAL = 1.482602218505602
"""Standard deviation of normal noise, relative to the median of its absolute values."""

FINEST = 1e-7
"""Noise of joint forces that are exact, relative to the largest."""

NOTHING = 1e-100
"""Joint forces [N or N m] below which nothing acts."""

ROUNDS = 30
"""Of weights, at most."""

UNKNOWN = 0.2
"""Relative standard deviation of a gain above which its scale is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class Equations:
    """The equations of all samples.

    Attributes:
        W: Columns of the base parameters (samples, rows, count).
        k: Known forces (samples, rows) [N or N m].
        y: Measured forces, or currents (samples, rows).
        known: 1 where a row counts, else 0 (samples, rows).
        names: Of all unknowns, base parameters and then gains.
        gains: Rows of currents whose gain is unknown.
        share: κ of each row (rows,) where it is known, else anything.
        mixed: X (samples, hinges, rows) of hinges with noise, or None where each row has its own.
    """

    W: Array
    k: Array
    y: Array
    known: Array
    names: Sequence[str]
    gains: list[int] = field(default_factory=list[int])
    share: Array = field(default_factory=lambda: np.ones(1))
    mixed: Array | None = None

    @property
    def count(self) -> int:
        """Number of unknowns."""
        return self.W.shape[-1] + len(self.gains)

    @property
    def is_linear(self) -> bool:
        """Whether all κ are one."""
        return not self.gains and bool((self.share == 1.0).all())

    @property
    def is_plain(self) -> bool:
        """Whether each row has its own noise, too."""
        return self.is_linear and self.mixed is None

    def linear(self, x: Array) -> tuple[Array, Array]:
        """Derivatives (samples, rows, count) of κ (W b + k) by b and κ, and the residuals."""
        if self.is_linear:
            return self.W, self.y - self.k - self.W @ x
        size, share = self.W.shape[-1], np.broadcast_to(self.share, self.y.shape[1:]).copy()
        share[self.gains] = x[size:]
        force = self.W @ x[:size] + self.k
        A = np.zeros((*self.y.shape, self.count))
        A[..., :size] = share[:, None] * self.W
        for i, row in enumerate(self.gains):
            A[:, row, size + i] = force[:, row]
        return A, self.y - share * force

    def start(self) -> Array:
        """Unknowns to begin with: zeros where the equations are linear.

        Else those with the least W b + k − g y, which noise of y makes too small, and from there a
        search.
        """
        if not self.gains:
            return np.zeros(self.count)
        size, known = self.W.shape[-1], self.known[..., None]
        A = np.zeros((*self.y.shape, self.count))
        A[..., :size] = self.W
        right = np.broadcast_to(1.0 / self.share, self.y.shape) * self.y - self.k
        for i, row in enumerate(self.gains):
            A[:, row, size + i] = -self.y[:, row]
            right[:, row] = -self.k[:, row]
        A, right = (known * A).reshape(-1, self.count), (self.known * right).ravel()
        scale = np.maximum(np.linalg.norm(A, axis=0), 1e-300)
        x = cast("Array", np.linalg.lstsq(A / scale, right, rcond=None)[0]) / scale
        x[size:] = 1.0 / np.where(np.abs(x[size:]) > 1e-12, x[size:], 1.0)
        spread = np.maximum(np.sqrt(np.mean(self.y**2, axis=0)), 1e-300)
        weight = self.known / spread

        def misses(x: Array) -> Array:
            return (weight * self.linear(x)[1]).ravel()

        def slopes(x: Array) -> Array:
            return -(weight[..., None] * self.linear(x)[0]).reshape(-1, self.count)

        search = scipy("optimize").least_squares(misses, x, slopes, method="lm", x_scale="jac")
        return np.asarray(search.x, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Fit:
    """Estimates and what is known about them.

    Attributes:
        estimate: Of all unknowns, gains as g.
        deviation: Standard deviations.
        information: A square root L of the inverse covariance: |L (b − b̂)|.
        condition: Of the scaled equations.
        outliers: Rows whose weight was reduced.
        memory: Samples over which each row is correlated.
    """

    estimate: Array
    deviation: Array
    information: Array
    condition: float
    outliers: int
    memory: NDArray[np.intp]

    def scaled(self, factors: Array) -> Fit:
        """In other units: each unknown times a factor."""
        estimate, deviation = self.estimate * factors, self.deviation * np.abs(factors)
        return replace(
            self, estimate=estimate, deviation=deviation, information=self.information / factors
        )


def least_squares(eq: Equations, weighted: bool, robust: bool, good: NDArray[np.bool_]) -> Fit:
    """Estimates with weights of joints and samples, found together; `good` samples are these."""
    known, y, count = eq.known, eq.y, eq.count
    rows = y.shape[1]
    if known.sum() <= count:
        still = int(known.size - known.sum())
        why = (
            f" {still} more are left out: their joints with friction stand still." if still else ""
        )
        raise ModelError(
            f"{int(known.sum())} measured forces are too few for {count} base parameters.{why} "
            "Record a longer motion of all joints (lw.identification.exciting_motion), or identify "
            "fewer parameters."
        )
    if not np.abs((y - eq.k) * known).max() > NOTHING:
        raise ModelError("the measured joint forces are zero; there is nothing to identify.")
    if eq.is_plain and not robust:
        return _by_triangles(eq, weighted, good)
    estimate = eq.start()
    A, miss = eq.linear(estimate)
    scale: Array = np.linalg.norm((A * known[..., None]).reshape(-1, count), axis=0)
    check_shown(A, known, scale, eq.names)
    deviation, share = np.ones(rows if eq.mixed is None else eq.mixed.shape[1]), known
    factor, Q, done = np.eye(count), np.zeros((A.shape[0] * rows, count)), False
    least = FINEST * np.abs(y).max(initial=1e-300)
    for _ in range(ROUNDS if eq.mixed is None else 4 * ROUNDS):
        white, rest = _whitened(A / scale, miss, deviation, eq.mixed)
        weight = np.sqrt(share)
        Q, R = np.linalg.qr((white * weight[..., None]).reshape(-1, count))
        factor = np.asarray(R, dtype=np.float64)
        change = floats(cast("Any", np.linalg.solve(factor, Q.T @ (weight * rest).ravel())), "b")
        estimate = estimate + change / scale
        done = np.abs(change).max() <= 1e-9 * np.abs(estimate * scale).max()
        if done:
            break
        A, miss = eq.linear(estimate)
        if eq.mixed is None:
            each = noise_of(miss, known, count / rows, robust)
            each = each if weighted else np.full(rows, float(np.sqrt(np.mean(each**2))))
            deviation = np.maximum(each, least)
        else:
            deviation = np.maximum(_of_hinges(eq.mixed, miss, known, count, deviation), least)
            if not weighted:
                deviation[:] = np.sqrt(np.mean(deviation**2))
        if robust:
            share = known * np.minimum(1.0, HUBER / np.maximum(np.abs(miss) / deviation, 1e-300))
    if eq.gains and not done:
        raise ModelError(
            f"the gains did not settle in {ROUNDS} rounds: the measurements hardly determine them. "
            "Measure longer, or give more of the gains."
        )
    A, miss = eq.linear(estimate)
    condition = float(np.linalg.cond(factor))
    white, miss = _whitened(A / scale, miss, deviation, eq.mixed)
    miss = known * miss
    if robust:  # U* U = A* ψ'(r) A,  Q = A U⁻¹,  and the noise is ψ(r)
        inside, white = known * (np.abs(miss) <= HUBER), white * known[..., None]
        check_shown(A, inside, scale, eq.names)
        factor = np.linalg.qr((white * inside[..., None]).reshape(-1, count))[1]
        Q = np.linalg.solve(factor.T, white.reshape(-1, count).T).T
        miss = np.clip(miss, -HUBER, HUBER)
    columns: Array = np.asarray(Q, dtype=np.float64).reshape(A.shape)
    squares = [part.T @ part for part in columns.swapaxes(0, 1)]
    smallest = np.full(rows, (least / deviation.max()) ** 2) if eq.mixed is not None else (
        (least / deviation) ** 2
    )  # fmt: skip
    noise, memory = _noise(lambda j: columns[:, j], squares, miss, known, smallest, good)
    root = np.linalg.cholesky(noise)
    spread = np.linalg.norm(np.linalg.solve(factor, root), axis=1) / scale
    information = np.linalg.solve(root, factor) * scale
    outliers = int(np.count_nonzero((share < known) & (known > 0.0)))
    return _with_gains(eq, Fit(estimate, spread, information, condition, outliers, memory))


def _by_triangles(eq: Equations, weighted: bool, good: NDArray[np.bool_]) -> Fit:
    """The same where rows have their own noise and each sample weighs alike."""
    y, known, rows = eq.y - eq.k, eq.known, eq.y.shape[1]
    least, samples = FINEST * np.abs(eq.y).max(initial=1e-300), known.sum(axis=0)
    triangles = compressed.Triangles.of(eq.W, y, known)
    scale = triangles.scale
    check_shown(triangles.R * scale, np.ones(triangles.z.shape), scale, eq.names)

    def deviations(squares: Array) -> Array:
        each = np.sqrt(squares / np.maximum(samples - eq.count / rows, 1.0))
        each = each if weighted else np.full(rows, float(np.sqrt(np.mean(each**2))))
        return np.maximum(each, least)

    x, factor, deviation = compressed.settled(triangles, deviations, ROUNDS)
    estimate = x / scale
    miss = known * (y - eq.W @ estimate) / deviation
    back = np.linalg.inv(factor)

    def columns(j: int) -> Array:
        return (known[:, j, None] / deviation[j] * eq.W[:, j]) @ (back / scale[:, None])

    inner = triangles.R @ back / deviation[:, None, None]
    squares = list(inner.swapaxes(1, 2) @ inner)
    noise, memory = _noise(columns, squares, miss, known, (least / deviation) ** 2, good)
    root = np.linalg.cholesky(noise)
    spread = np.linalg.norm(np.linalg.solve(factor, root), axis=1) / scale
    information = np.linalg.solve(root, factor) * scale
    return Fit(estimate, spread, information, float(np.linalg.cond(factor)), 0, memory)


def _noise(
    columns: Callable[[int], Array],
    squares: Sequence[Array],
    miss: Array,
    known: Array,
    least: Array,
    good: NDArray[np.bool_],
) -> tuple[Array, NDArray[np.intp]]:
    """Of `correlated.noise_of_rows`, with samples that have a gap at their place in time."""

    def placed(some: Array) -> Array:
        if good.all():
            return some
        out = np.zeros((len(good), *some.shape[1:]))
        out[good] = some
        return out

    return correlated.noise_of_rows(
        lambda j: placed(columns(j)), lambda j: squares[j], placed(miss), placed(known), least
    )


def _with_gains(eq: Equations, fit: Fit) -> Fit:
    """The same in g = 1/κ."""
    if not eq.gains:
        return fit
    estimate, deviation, information = fit.estimate.copy(), fit.deviation.copy(), fit.information
    part = slice(eq.W.shape[-1], None)
    share = estimate[part]
    unknown = np.abs(deviation[part]) > UNKNOWN * np.abs(share)
    if unknown.any():
        i = int(np.flatnonzero(unknown)[0])
        percent = 100.0 * deviation[part][i] / max(abs(share[i]), 1e-300)
        raise ModelError(
            f"{eq.names[eq.W.shape[-1] + i]} is known to ± {percent:.0f} % only: the forces that "
            "set its scale are small beside the noise. Measure a larger known load (applied, "
            "forces), or give this gain: leave its hinge out of `commanded`."
        )
    estimate[part], deviation[part] = 1.0 / share, deviation[part] / share**2
    information = information.copy()
    information[:, part] *= -(share**2)
    return Fit(estimate, deviation, information, fit.condition, fit.outliers, fit.memory)


def _whitened(A: Array, miss: Array, deviation: Array, mixed: Array | None) -> tuple[Array, Array]:
    """Rows with noise of variance one."""
    if mixed is None:
        return A / deviation[:, None], miss / deviation
    scaled = deviation[:, None] * mixed
    root = np.linalg.cholesky(np.swapaxes(scaled, 1, 2) @ scaled)
    both = np.linalg.solve(root, np.concatenate([A, miss[..., None]], axis=-1))
    white: Array = np.asarray(both, dtype=np.float64)
    return white[..., :-1], white[..., -1]


def _of_hinges(mixed: Array, miss: Array, known: Array, count: int, deviation: Array) -> Array:
    """The next standard deviations s of hinges whose noise the rows mix."""
    use = known.all(axis=1)
    X, r = mixed[use], miss[use]
    scaled = deviation[:, None] * X
    V = np.swapaxes(scaled, 1, 2) @ scaled
    back = np.linalg.solve(V, np.concatenate([r[..., None], np.swapaxes(X, 1, 2)], axis=-1))
    all_back = X @ back
    squares = (all_back[..., 0] ** 2).sum(axis=0)
    expected = np.diagonal(all_back[..., 1:], axis1=1, axis2=2).sum(axis=0)
    left = max(1.0 - count / max(r.size, 1), 1e-3)
    return deviation * np.sqrt(squares / np.maximum(left * expected, 1e-300))


def noise_of(miss: Array, known: Array, taken: float, robust: bool) -> Array:
    """Standard deviation of the noise of each joint; by the median, which outliers hardly move."""
    left = np.maximum(known.sum(axis=0) - taken, 1.0)
    if not robust:
        return np.sqrt((known * miss**2).sum(axis=0) / left)
    medians = np.array(
        [
            np.median(np.abs(x[k > 0.0])) if k.any() else 0.0
            for x, k in zip(miss.T, known.T, strict=True)
        ]
    )
    return NORMAL * medians * np.sqrt(known.sum(axis=0) / left)


def check_shown(A: Array, known: Array, scale: Array, names: Sequence[str]) -> None:
    """Raise unless the motion shows every unknown."""
    least = scale.max(initial=0.0) / CLEAR
    hidden = [names[int(i)] for i in np.flatnonzero(scale <= least)]
    if not hidden:
        A = (A * known[..., None]).reshape(-1, len(scale)) / scale
        values, vectors = np.linalg.eigh(A.T @ A)
        if values[0] > values[-1] / CLEAR**2:
            return
        part = np.abs(vectors[:, 0])
        hidden = [names[int(i)] for i in np.flatnonzero(part > 0.3 * part.max())]
    raise ModelError(
        f"the motion does not show all base parameters: {'; '.join(hidden[:6])} cannot be "
        "separated from others. Move all joints in more ways "
        "(lw.identification.exciting_motion), or identify fewer parameters."
    )


def scipy(module: str) -> Any:
    """A module of SciPy."""
    try:
        return import_module(f"scipy.{module}")
    except ImportError:
        raise MissingExtraError("lw.identify", package="scipy", extra="optimize") from None
