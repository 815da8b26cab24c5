"""Positions and velocities moved to where loops and couplings hold.

Positions, by the Gauss-Newton method: with e the errors of the constraints (`constraint_error`) and
W the measure of a step,

    δ = -W⁻¹ J_c* (J_c W⁻¹ J_c* + μ)⁻¹ e,      q ← q ⊕ δ.

For μ = 0 it is the least step that removes the errors to first order. Where constraints are
redundant J_c W⁻¹ J_c* is singular, and away from closed configurations nearly so, which is worse: a
row that repeats others gives a large step for a small error. Damping by μ in proportion to |e|
keeps such steps small and the convergence quadratic, redundant rows or not (Yamashita and
Fukushima 2001).

Velocities: of all v' with J_c v' = 0 the one with the least ½ (v' - v)* W (v' - v). With W = 𝓜 it
is the velocity after an impact that closes the loops: it loses the least energy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import count, number
from linkwise.brief import brief
from linkwise.codegen.stages import MOST_BODIES
from linkwise.dynamics.closure import closed_kernel, constraint_error, constraint_jacobian
from linkwise.dynamics.closure_rank import known_rank
from linkwise.dynamics.velocity_space import (
    holonomic,
    inertia_products,
    scale,
    states,
    velocity_spaces,
    worst,
)
from linkwise.errors import ClosureError, ModelError
from linkwise.model.closure import is_traceable
from linkwise.model.mechanism import Mechanism
from linkwise.model.memo import once_per_mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.kernel import Kernel

MassInverse: TypeAlias = Callable[[Array], Array]
"""𝓜⁻¹ (..., nv, nv) of q (..., nq)."""

Weight: TypeAlias = Literal["mass"] | None
"""Measure of a change: kinetic energy, or the angles and lengths themselves."""

CLOSED = 1e-12
"""Errors of rows up to this are zero [rad or m]."""

ROUNDED = 1e-7
"""Errors up to this that no step reduces are the digits of a file, which often has eight, or
rounding [rad or m]."""

CREEPING, PATIENCE = 1e-2, 3
"""A search at such an error that gains less than this part of it in each of this number of steps is
at its end."""

DAMPING = 0.01
"""μ over the mean diagonal entry, for an error of the size of the mechanism."""


@brief
@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """Where the search for closed loops ended. For a batch, (batch,) in front of everything.

    Attributes:
        q: Joint positions (nq,).
        closed: Whether all constraints hold ().
        error: The largest error of a row of the constraints () [rad or m].
        iterations: Number of steps ().
        mech: The mechanism.
        tolerance: Largest error of a row that counts as closed [rad or m].
    """

    q: Array
    closed: NDArray[np.bool_]
    error: Array
    iterations: NDArray[np.int64]
    mech: Mechanism
    tolerance: float

    def required(self) -> Array:
        """q, if all loops are closed.

        Raises:
            ClosureError: Some loop stays open; the worst is named.
        """
        if not np.all(self.closed):
            i = int(np.flatnonzero(~np.atleast_1d(self.closed))[0])
            kind, name, error = worst(holonomic(self.mech), np.atleast_2d(self.q)[i])
            where = f" in state {i} of the batch" if self.q.ndim == 2 else ""
            raise ClosureError(
                f"no configuration with closed loops was found near the given one{where}: after "
                f"{int(np.atleast_1d(self.iterations)[i])} steps {kind} {name!r} of "
                f"{self.mech.name!r} is still off by {error:.3g} (rad or m), and "
                f"{self.tolerance:.3g} is allowed. Begin nearer, or let lw.loops.assemble search."
            )
        return self.q


def project_position(
    mech: Mechanism,
    q: ArrayLike,
    *,
    weight: Weight = None,
    tolerance: float = CLOSED,
    iterations: int = 50,
) -> Projection:
    """The configuration with closed loops nearest to a given one, and how it was found.

    Expression of a step:
        δ = -W⁻¹ J_c* (J_c W⁻¹ J_c* + μ)⁻¹ e,  μ ~ |e|

    It only goes downhill, and is meant for configurations that are nearly closed: those of a
    simulation that has drifted, for instance. From far away `assemble` finds more.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad], nearly closed.
        weight: Measure of the step: None for angles, and lengths over the size of the mechanism;
            "mass" for kinetic energy, W = 𝓜.
        tolerance: Largest error of a row that counts as closed [rad or m]. Up to 1e-7 that no step
            reduces count as well: numbers of a file have that many digits.
        iterations: Most steps.

    Returns:
        A `Projection`. It does not raise where loops stay open; its `required()` gives q or raises.
    """
    single, rows, _ = states(mech, q)
    _check(weight, tolerance)
    iterations = count(iterations, "iterations")
    search = _Search(holonomic(mech), np.array(rows), weight, tolerance)
    return search.ended(mech, iterations, 0 if single else slice(None))


def nearest(mech: Mechanism, q: Array, v: Array, inverse: MassInverse) -> tuple[Array, Array]:
    """The nearest state (nq,) and (nv,) that obeys, by the kinetic energy of another 𝓜.

    Raises:
        ClosureError: Some loop stays open; the worst is named.
    """
    search = _Search(holonomic(mech), q[None].copy(), "mass", CLOSED, inverse)
    q = search.ended(mech, 50, 0).required()
    (space,) = velocity_spaces(mech, q[None], None)
    R = space.blocked
    back = R @ inverse(q)
    return q, v - np.linalg.solve(R @ back.T, R @ v) @ back


class _Search:
    """Searches side by side."""

    def __init__(
        self,
        mech: Mechanism,
        q: Array,
        weight: Weight,
        tolerance: float,
        inverse: MassInverse | None = None,
    ) -> None:
        self.mech, self.q, self.weight, self.tolerance = mech, q, weight, tolerance
        self.inverse = inverse
        self.scale = scale(mech)
        m = len(self.scale.rows)
        self.error = constraint_error(mech, q) if len(q) else np.zeros((0, m))
        self.boost = np.ones(len(q))
        self.tried, self.idle = np.zeros((2, len(q)), dtype=np.int64)

    def largest(self) -> Array:
        return np.abs(self.error).max(axis=-1, initial=0.0)

    def stuck(self) -> NDArray[np.bool_]:
        """Whether no step, or not even the smallest, leads down by much."""
        return (self.boost > 1e12) | (self.idle >= PATIENCE)

    def going(self) -> NDArray[np.bool_]:
        return (self.largest() > self.tolerance) & ~self.stuck()

    def ended(self, mech: Mechanism, iterations: int, at: Any) -> Projection:
        """All steps, and where they end in some of the states."""
        while self.going().any() and self.tried.max(initial=0) < iterations:
            self.step()
        error = self.largest()
        least = max(ROUNDED, self.tolerance)
        closed = (error <= self.tolerance) | (self.stuck() & (error <= least))
        parts = (self.q[at], closed[at], error[at], self.tried[at])
        return Projection(*parts, mech, self.tolerance)

    def step(self) -> None:
        """One step of each active search, accepted where the error decreases."""
        at = np.flatnonzero(self.going())
        q, D = self.q[at], self.scale.rows
        e = self.error[at] * D
        J = D[:, None] * constraint_jacobian(self.mech, q)
        if self.inverse is not None:
            back = J @ self.inverse(q)
        elif self.weight == "mass":
            back = np.stack(inertia_products(self.mech, q, list(J)))  # J_c 𝓜⁻¹
        else:
            back = J * self.scale.columns**2  # W⁻¹ = C²
        square = back @ np.swapaxes(J, 1, 2)
        size = np.linalg.norm(e, axis=-1)
        mean = np.trace(square, axis1=1, axis2=2) / len(D)
        mu = DAMPING * self.boost[at] * np.minimum(1.0, size / self.scale.length) + 1e-13
        square += (mu * np.maximum(mean, 1e-300))[:, None, None] * np.eye(len(D))
        pull = cast(Array, np.linalg.solve(square, e[..., None]))
        step = -(np.swapaxes(back, 1, 2) @ pull)[..., 0]
        ahead = self.mech.integrate(q, step)
        error = constraint_error(self.mech, ahead)
        new = np.linalg.norm(error * D, axis=-1)
        better = new < size
        creeps = better & (new > (1.0 - CREEPING) * size) & (self.largest()[at] <= ROUNDED)
        self.idle[at] = np.where(creeps, self.idle[at] + 1, np.where(better, 0, self.idle[at]))
        taken = at[better]
        self.q[taken], self.error[taken] = ahead[better], error[better]
        self.boost[taken] = np.maximum(self.boost[taken] / 10.0, 1.0)
        self.boost[at[~better]] *= 10.0
        self.tried[at] += 1


def project_velocity(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    weight: Weight = "mass",
    tolerance: float | None = None,
) -> Array:
    """The velocity nearest to a given one that obeys loops and couplings.

    Expression:
        v' = v - 𝓜⁻¹ J_c* (J_c 𝓜⁻¹ J_c*)⁺ J_c v,      `weight="mass"`
    of those that obey, the one whose difference from v has the least kinetic energy; with
    `weight=None` it has the least square, angles as they are and lengths over the mechanism's size.

    Redundant rows are left out first: they are found by the singular values of J_c.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad], with closed loops.
        weight: "mass" or None.
        tolerance: Singular values below this part of the largest count as zero.

    Returns:
        (nv,) or (batch, nv), with J_c v' = 0 to rounding.

    Raises:
        SingularHingeError: For "mass", nothing resists the hinge of some body, which is named.
    """
    if weight == "mass" and tolerance is None:
        allowed = _by_kernel(mech, q, v)
        if allowed is not None:
            return allowed
    single, rows, (speed,) = states(mech, q, v=v)
    _check(weight, 1.0)
    spaces = velocity_spaces(mech, rows, tolerance)
    out = np.array(speed)
    if weight == "mass":
        backs = inertia_products(mech, rows, [space.blocked for space in spaces])
        for i, (space, back) in enumerate(zip(spaces, backs, strict=True)):
            R = space.blocked
            out[i] -= np.linalg.solve(R @ back.T, R @ out[i]) @ back
    for i, space in enumerate(spaces):  # also removes the rounding of the above
        out[i] -= (space.blocked @ out[i]) @ space.right * space.scale.columns
    return out[0] if single else out


def _by_kernel(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Array | None:
    """The same of one state of the known rank, by one kernel; None of others.

    The second call removes the rounding of the first.
    """
    kernel = _kernel(mech, known_rank(mech, q))
    if kernel is None or kernel.quick is None or (once := kernel.quick(q, v)) is None:
        return None
    return kernel.quick(q, once)


@once_per_mechanism
def _kernel(mech: Mechanism, rank: int | None) -> Kernel | None:
    """The kernel of velocities that obey, if it is straight code."""
    traceable = all(map(is_traceable, mech.loops)) and mech.n_bodies <= MOST_BODIES
    if not rank or not traceable:
        return None
    return closed_kernel(mech, "allowed_velocity", rank=rank)


def _check(weight: object, tolerance: float) -> None:
    if weight is not None and weight != "mass":
        raise ModelError(f"weight is {weight!r}; it must be 'mass' or None.")
    number(tolerance, "tolerance", above=0.0)
