"""Inverse dynamics of mechanisms with loops: forces of the driven hinges, and of the loops.

    B τ_a + J_c* λ = 𝓜 v̇ + C - J* f = τ_t,     the joint forces that the open tree would need

with B the columns of the driven velocities. Loops carry what they can; the part along the remaining
motions Z has to come from the drives:

    Z* B τ_a = Z* τ_t.

With fewer drives than motions, or drives that do not move some of them, part of Z* τ_t is left
over, and reported. With more, τ_a is the least of the possible ones; the others differ from it by
forces that only squeeze.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from linkwise.arguments import row
from linkwise.brief import brief
from linkwise.dynamics.closure import constraint_bias
from linkwise.dynamics.constrained import OBEYED
from linkwise.dynamics.inverse_dynamics import inverse_dynamics
from linkwise.dynamics.kernels import check_mechanism
from linkwise.dynamics.quantity import Frame
from linkwise.dynamics.velocity_space import VelocitySpace, states, velocity_spaces
from linkwise.errors import ClosureError, ModelError, ShapeError
from linkwise.loops.independent import IndependentCoordinates, velocity_indices
from linkwise.model import closure
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

ACHIEVED = 1e-9
"""Part of the needed forces that may be missing where a motion counts as achievable."""

TOLERANCE = 1e-9
"""Drives with less than this part of the effect of the best do not count as moving it."""


@brief
@dataclass(frozen=True, slots=True, eq=False)
class DriveForces:
    """Joint forces that cause a motion of a mechanism with loops. For a batch, (batch,) in front.

    Attributes:
        tau: Joint forces (nv,), zero where nothing is driven [N or N m].
        constraint_forces: λ (m,), of least norm where rows are redundant [N or N m].
        missing: Joint forces (nv,) that would be needed in addition: the least ones with
            tau + missing + J_c* λ = 𝓜 v̇ + C.  Zero where the motion is achievable.
        achievable: Whether the drives can cause the motion ().
        rank: Number of independent motions that the drives act on ().
        degrees_of_freedom: Number of independent motions ().
        actuated: Names of the driven velocities.
    """

    tau: Array
    constraint_forces: Array
    missing: Array
    achievable: NDArray[np.bool_]
    rank: NDArray[np.int64]
    degrees_of_freedom: NDArray[np.int64]
    actuated: tuple[str, ...]

    @property
    def squeezing(self) -> NDArray[np.int64]:
        """Independent patterns of drive forces that move nothing, () or (batch,)."""
        return len(self.actuated) - self.rank

    def __len__(self) -> int:
        if self.tau.ndim == 1:
            raise TypeError("these forces are of one state, not of a batch")
        return len(self.tau)

    def __getitem__(self, i: int) -> DriveForces:
        """One state of a batch."""
        i = row(i, None if self.tau.ndim == 1 else len(self), "this record of forces")
        parts = (self.tau, self.constraint_forces, self.missing, self.achievable)
        a, b, c, d = (part[i] for part in parts)
        return DriveForces(a, b, c, d, self.rank[i], self.degrees_of_freedom[i], self.actuated)


def drive_forces(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    vdot: ArrayLike,
    *,
    independent: IndependentCoordinates | None = None,
    actuated: Iterable[str] | None = None,
    weights: ArrayLike | Mapping[str, float] | None = None,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    tolerance: float | None = None,
) -> DriveForces:
    """Joint forces of the driven hinges, and forces of the loops, that cause a motion.

    Expression:
        Z* B τ_a = Z* τ_t,   J_c* λ = τ_t - B τ_a,   τ_t = 𝓜 v̇ + C - J* f
    with the τ_a of least Σ w τ² where drives are redundant, of least error where they are too few,
    and the λ of least norm where constraints are redundant.

    Damping, friction, springs and limits of the hinges are not part of it.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad], with closed loops.
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s] that obey the constraints.
        vdot: Joint accelerations (nv,) or (batch, nv) [m/s² or rad/s²] that obey them; with
            `independent`, those of the independent velocities alone.
        independent: The result of `lw.loops.independent_coordinates` at q, for one state.
        actuated: Names of driven velocities, hinges or bodies; default: all.
        weights: w of each driven velocity, in their order or by name, positive; default: 1. A
            large one spares a weak drive.
        tolerance: Singular values of J_c below this part of the largest count as zero.

    Returns:
        A `DriveForces`: tau, constraint_forces, and the missing part.

    Raises:
        ClosureError: v or v̇ breaks a loop or coupling, which is named.
        UnknownNameError: A name that is not a velocity, a hinge or a body.
    """
    if independent is not None:
        _check_independent(independent)
        _, _, (speed,) = states(mech, q, v=v)
        if len(speed) != 1:
            raise ShapeError("independent coordinates are of one state; v is a batch.")
        vdot = independent.acceleration(speed[0], vdot)
    single, rows, (speed, rate) = states(mech, q, v=v, vdot=vdot)
    driven = _driven(mech, actuated)
    price = _price(mech, driven, actuated, weights)
    spaces = velocity_spaces(mech, rows, tolerance)
    if len(rows):
        _check(mech, rows, speed, rate, spaces)
    needed = inverse_dynamics(
        mech, rows, speed, rate, forces=forces, forces_frame=forces_frame, loops="open"
    )
    needed = np.broadcast_to(needed, (len(rows), mech.nv))
    tau, missing = np.zeros((2, len(rows), mech.nv))
    lam = np.zeros((len(rows), sum(closure.constraint_sizes(mech))))
    rank, count = np.zeros((2, len(rows)), dtype=np.int64)
    for i, space in enumerate(spaces):
        tau[i], missing[i], rank[i] = _shared(space, needed[i], driven, price)
        lam[i] = space.force(needed[i] - tau[i] - missing[i])
        count[i] = mech.nv - space.rank
    # Forces are compared with forces: those at slides times the mechanism's length.
    columns = spaces[0].scale.columns if spaces else np.ones(mech.nv)
    sizes = [np.linalg.norm(x * columns, axis=-1) for x in (missing, needed)]
    achievable = sizes[0] <= ACHIEVED * sizes[1]
    names = tuple(mech.velocity_names[j] for j in driven)
    record = DriveForces(tau, lam, missing, achievable, rank, count, names)
    return record[0] if single else record


def holding_forces(
    mech: Mechanism,
    q: ArrayLike,
    *,
    actuated: Iterable[str] | None = None,
    weights: ArrayLike | Mapping[str, float] | None = None,
    forces: Mapping[str, ArrayLike] | None = None,
    forces_frame: Frame = "node",
    tolerance: float | None = None,
) -> DriveForces:
    """Joint forces that hold a mechanism with loops at rest: inverse dynamics at v = v̇ = 0.

    Args:
        q: Joint positions (nq,) or (batch, nq) [m or rad], with closed loops.
        actuated: Names of driven velocities, hinges or bodies; default: all.
        weights: As for `drive_forces`.
        tolerance: Singular values of J_c below this part of the largest count as zero.
    """
    check_mechanism(mech)
    return drive_forces(
        mech,
        q,
        np.zeros(mech.nv),
        np.zeros(mech.nv),
        actuated=actuated,
        weights=weights,
        forces=forces,
        forces_frame=forces_frame,
        tolerance=tolerance,
    )


def _check_independent(independent: object) -> None:
    if not isinstance(independent, IndependentCoordinates):
        raise ModelError(
            f"independent is {independent!r}; it must be the result of "
            "lw.loops.independent_coordinates(mech, q). Names of driven hinges belong in "
            "`actuated`."
        )


def _driven(mech: Mechanism, actuated: Iterable[str] | None) -> list[int]:
    """The places of the driven velocities in v."""
    if actuated is None:
        return list(range(mech.nv))
    names = (actuated,) if isinstance(actuated, str) else tuple(actuated)
    return list(dict.fromkeys(j for name in names for j in velocity_indices(mech, name)))


def _price(
    mech: Mechanism,
    driven: list[int],
    actuated: Iterable[str] | None,
    weights: ArrayLike | Mapping[str, float] | None,
) -> Array:
    """w of each driven velocity."""
    if weights is None:
        return np.ones(len(driven))
    if isinstance(weights, Mapping):
        w = np.ones(len(driven))
        for name, value in weights.items():
            for j in velocity_indices(mech, name):
                if j not in driven:
                    raise ModelError(f"weights names {name!r}, which is not driven: {actuated!r}.")
                w[driven.index(j)] = floats(value, f"weights[{name!r}]")
    else:
        w = floats(weights, "weights")
    if w.shape != (len(driven),):
        raise ShapeError(f"weights has shape {w.shape}; there are {len(driven)} driven velocities.")
    if not (np.isfinite(w).all() and (w > 0.0).all()):
        raise ModelError(f"weights must be positive numbers; w {w.tolist()}.")
    return w


def _check(mech: Mechanism, q: Array, v: Array, vdot: Array, spaces: list[VelocitySpace]) -> None:
    """Raise for motions that break loops."""
    gamma = constraint_bias(mech, q, v)
    for i, space in enumerate(spaces):
        D, columns = space.scale.rows, space.scale.columns
        largest = float(space.singular_values.max(initial=0.0))
        J = space.jacobian
        for what, x, extra, advice in (
            ("v", v[i], 0.0 * gamma[i], "lw.loops.project_velocity makes it obey"),
            ("vdot", vdot[i], gamma[i], "lw.loops.independent_coordinates gives one that does not"),
        ):
            broken = D * (J @ x + extra)
            size = largest * np.linalg.norm(x / columns) + np.linalg.norm(D * extra)
            if np.linalg.norm(broken) > OBEYED * size:
                row = int(np.argmax(np.abs(broken)))
                sizes = np.cumsum(closure.constraint_sizes(mech))
                which = int(np.searchsorted(sizes, row, side="right"))
                parts = [*mech.loops, *mech.couplings]
                kind = "loop" if which < len(mech.loops) else "coupling"
                where = f" in state {i} of the batch" if len(q) > 1 else ""
                raise ClosureError(
                    f"{what} breaks {kind} {parts[which].name!r} of {mech.name!r}{where} by "
                    f"{abs(broken[row] / D[row]):.3g}; {advice}."
                )


def _shared(
    space: VelocitySpace, needed: Array, driven: list[int], price: Array
) -> tuple[Array, Array, int]:
    """τ and the missing part (nv,), and the number of motions that the drives act on.

    All in one unit: forces at slides times the length, motions orthonormal in that measure.
    """
    columns = space.scale.columns
    free = space.free / columns[:, None]  # orthonormal
    needed_along = free.T @ (columns * needed)
    root = np.sqrt(price)
    act = (columns[:, None] * free)[driven].T / root  # of √w τ_a
    left, s, right = np.linalg.svd(act, full_matrices=False)
    r = int((s > TOLERANCE * s.max(initial=0.0)).sum())
    pulls = ((left[:, :r].T @ needed_along) / s[:r]) @ right[:r]
    tau = np.zeros(len(needed))
    tau[driven] = pulls / root
    rest = needed_along - left[:, :r] @ (left[:, :r].T @ needed_along)
    return tau, free @ rest / columns, r
