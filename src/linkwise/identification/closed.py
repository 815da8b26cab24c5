"""Joint forces of mechanisms with loops: those along motions that the loops allow.

Joint forces are τ = Y π + ... + J_c* λ with unknown forces λ in the loops. All velocities that obey
are v = X v_i, those of some independent hinges i, and J_c X = 0:

    X* τ = X* (Y π + ...)                                                   linear in π, without λ

Forces that were not measured are left out alike: X has the velocities for which these hinges stand
still. Measured states are moved first to the nearest ones that obey; noise does not obey:

    q ← q ⊕ δ with closed loops,   v ← Z Z* v,   v̇ ← Z Z* (v̇ − x) + x,   J_c x = −γ

with orthonormal Z, the kernel of J_c, where lengths count in parts of the size of the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.dynamics.closure import constraint_bias, constraint_jacobian
from linkwise.dynamics.configuration import difference, integrate
from linkwise.dynamics.velocity_space import scale
from linkwise.errors import ClosureError, ModelError
from linkwise.loops.projection import project_position
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array

RANK = 1e-7
"""Singular values below this part of the largest are zero in all samples."""

FAR = 0.05
"""Largest error of positions [rad, or parts of the size of the mechanism] taken for noise."""

BROKEN = 0.3
"""Largest part of velocities, as a root mean square, that may break loops."""

LEAST = 1e-3
"""Mean part of a velocity that is independent of the others chosen, at least."""

CLEAR = 1e6
"""Condition number of X beyond which a sample is left out."""

LOOKED_AT = 200
"""Samples by which independent velocities are chosen."""

AROUND = 0.3
"""Distance [rad] of random configurations from measured ones."""


@dataclass(frozen=True, slots=True, eq=False)
class Motions:
    """Velocities that loops allow at many samples.

    Attributes:
        maps: X (samples, nv, rows).
        clear: Whether the independent velocities determine the others (samples,); else the others
            are zero.
        places: Which velocities these are (rows,).
    """

    maps: Array
    clear: NDArray[np.bool_]
    places: list[int]

    def along(self, forces: Array) -> Array:
        """X* applied to (samples, nv) or (samples, nv, columns)."""
        two = forces[..., None] if forces.ndim == 2 else forces
        out = np.swapaxes(self.maps, 1, 2) @ two
        return out[..., 0] if forces.ndim == 2 else out


def obeying(mech: Mechanism, q: Array, v: Array, vdot: Array) -> tuple[Array, Array, Array]:
    """The nearest states that loops and couplings allow.

    Raises:
        ClosureError: Positions or velocities are far from any.
    """
    measure = scale(mech)
    near = project_position(mech, q).required()
    off = np.abs(difference(mech, q, near) / measure.columns)
    sample, at = np.unravel_index(int(np.argmax(off)), off.shape)
    if off[sample, at] > FAR:
        raise ClosureError(
            f"the measured positions of {mech.name!r} break its loops: {mech.velocity_names[at]!r} "
            f"is off by {off[sample, at]:.2g} in sample {sample}, and {FAR:g} is taken for noise. "
            "Check signs, units and offsets of the encoders; lw.loops.assemble and "
            "project_position give positions of hinges that have none."
        )
    space = _Space.of(mech, near)
    speed = v / measure.columns
    kept = space.allowed(speed)
    broken, total = (float(np.sqrt(np.mean(x**2))) for x in (speed - kept, speed))
    if broken > BROKEN * total:
        raise ClosureError(
            f"{100.0 * broken / total:.0f} % of the measured velocities of {mech.name!r} break its "
            "loops and couplings. Check signs and units."
        )
    v = kept * measure.columns
    x, rate = space.bent(mech, near, v), vdot / measure.columns
    return near, v, (space.allowed(rate - x) + x) * measure.columns


@dataclass(frozen=True, slots=True, eq=False)
class _Space:
    """Velocities that loops allow, in units of `scale`, by singular values J_c = U s V.

    All samples have the same rank, the largest: where loops are singular, `free` has the motions
    that continue to others.

    Attributes:
        free: Z (samples, nv, f), orthonormal.
        left: U (samples, m, rank).
        values: s (samples, rank).
        right: V (samples, rank, nv).
    """

    free: Array
    left: Array
    values: Array
    right: Array

    @classmethod
    def of(cls, mech: Mechanism, q: Array, still: Sequence[int] = ()) -> _Space:
        """At positions (samples, nq), with hinges that stand still besides."""
        measure, fixed = scale(mech), np.eye(mech.nv)[list(still)]
        J = measure.rows[:, None] * constraint_jacobian(mech, q) * measure.columns / measure.length
        J = np.concatenate([J, np.broadcast_to(fixed, (len(q), *fixed.shape))], axis=1)
        left, values, right = np.linalg.svd(J, full_matrices=True)
        largest = values.max(axis=-1, initial=0.0)[:, None]
        rank = int((values > RANK * largest).sum(axis=-1).max(initial=0))
        free = np.swapaxes(right[:, rank:], 1, 2)
        return cls(free, left[:, :, :rank], values[:, :rank], right[:, :rank])

    def allowed(self, x: Array) -> Array:
        """Z Z* x (samples, nv)."""
        return (self.free @ (np.swapaxes(self.free, 1, 2) @ x[..., None]))[..., 0]

    def bent(self, mech: Mechanism, q: Array, v: Array) -> Array:
        """The least x with J_c x = −γ."""
        measure = scale(mech)
        gamma = constraint_bias(mech, q, v) * measure.rows / measure.length
        inner = (gamma[:, None] @ self.left)[:, 0] / self.values
        return -(inner[:, None] @ self.right)[:, 0]

    def drawn(self, rng: np.random.Generator) -> Array:
        """Random velocities."""
        some = rng.standard_normal((len(self.free), self.free.shape[-1], 1))
        return (self.free @ some)[..., 0]


def ways(mech: Mechanism, q: Array) -> Array:
    """Velocities that loops allow (samples, nv, f), orthonormal in the units of hinges."""
    return scale(mech).columns[:, None] * _Space.of(mech, q).free


def motions(
    mech: Mechanism, q: Array, still: list[int], driven: list[int], places: list[int] | None = None
) -> Motions:
    """Velocities that loops allow at positions that obey, by independent ones.

    Args:
        mech: The mechanism.
        q: Positions (samples, nq) with closed loops.
        still: Places in v of hinges whose forces were not measured.
        driven: Places of hinges with forces, which come first.
        places: The independent ones, if they are known.

    Raises:
        ModelError: No hinge with measured forces can move while the others stand still.
    """
    columns = scale(mech).columns
    free = _Space.of(mech, q, still).free
    if not free.shape[-1]:
        raise ModelError(
            f"the measured hinges of {mech.name!r} cannot move while the others stand still: each "
            "motion needs forces that were not measured. Hinges without a motor are measured, "
            "too: their force is zero."
        )
    if places is None:
        places = _independent(mech, free[:: max(1, len(free) // LOOKED_AT)], still, driven)
    picked = free[:, places]
    values = np.linalg.svd(picked, compute_uv=False)
    clear = np.asarray(values[:, -1] * CLEAR > values[:, 0], dtype=np.bool_)
    safe = np.where(clear[:, None, None], picked, np.eye(len(places)))
    X = free @ np.linalg.inv(safe)
    X[~clear] = 0.0
    X = X * columns[:, None] / columns[places]
    X[np.abs(X) < 1e-12 * np.abs(X).max(initial=0.0)] = 0.0
    X[:, places] = np.eye(len(places))
    return Motions(np.asarray(X, dtype=np.float64), clear, places)


def _independent(mech: Mechanism, free: Array, still: list[int], driven: list[int]) -> list[int]:
    """Velocities whose rows of Z have the largest determinant on average, driven ones first."""
    P, places = free @ np.swapaxes(free, 1, 2), list[int]()
    others = [i for i in range(mech.nv) if i not in driven and i not in still]
    for group in ([i for i in driven if i not in still], others):
        left = list(group)
        while left and len(places) < free.shape[-1]:
            sizes = [_mean_log(P, [*places, i]) for i in left]
            best = int(np.argmax(sizes))
            if sizes[best] < _mean_log(P, places) + 2.0 * np.log(LEAST):
                break
            places.append(left.pop(best))
    if len(places) < free.shape[-1]:
        raise ModelError(
            f"no hinges of {mech.name!r} determine the others throughout the motion; split the "
            "recording."
        )
    return sorted(places)


def _mean_log(P: Array, places: list[int]) -> float:
    """Mean logarithm of the determinants of these rows and columns."""
    if not places:
        return 0.0
    inside = P[:, places][:, :, places]
    values: Array = np.asarray(np.linalg.det(inside), dtype=np.float64)
    return float(np.mean(np.log(np.maximum(values, 1e-30))))


def random_states(
    mech: Mechanism, near: Array, count: int, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    """States that obey: around measured positions, with any velocities and accelerations."""
    columns, q = scale(mech).columns, near[rng.integers(len(near), size=count)]
    change = AROUND * columns * _Space.of(mech, q).drawn(rng)
    tried = project_position(mech, integrate(mech, q, change))
    q = np.where(np.atleast_1d(tried.closed)[:, None], tried.q, q)
    space = _Space.of(mech, q)
    v = 2.0 * columns * space.drawn(rng)
    return q, v, columns * (2.0 * space.drawn(rng) + space.bent(mech, q, v))
