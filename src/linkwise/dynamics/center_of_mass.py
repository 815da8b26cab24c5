"""The centre of mass: where it is, how it moves, and what the joints have to do with it."""

from __future__ import annotations

from typing import Any

from linkwise.dynamics.kernels import Status, check_mechanism
from linkwise.dynamics.momentum import momentum, momentum_bias, momentum_matrix
from linkwise.dynamics.whole_inertia import whole_inertia
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike


def center_of_mass(
    mech: Mechanism, q: ArrayLike, *, status: Status | None = None, threads: int | None = None
) -> Array:
    """Centre of mass of the whole mechanism in the world (3,) or (batch, 3) [m].

    It stands in the composite inertia of the bodies on the ground: see `whole_inertia`, whose
    arguments these are.
    """
    return whole_inertia(mech, q, status=status, threads=threads).com


def center_of_mass_velocity(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Velocity of the centre of mass (3,) or (batch, 3) [m/s]: linear momentum over mass."""
    return _linear(mech, momentum, (q, v), status, threads)


def center_of_mass_jacobian(
    mech: Mechanism, q: ArrayLike, *, status: Status | None = None, threads: int | None = None
) -> Array:
    """Velocity of the centre of mass per joint velocity, (3, nv) or (batch, 3, nv)."""
    mass = _mass(mech)
    rows = momentum_matrix(mech, q, about="world", status=status, threads=threads)
    return rows[..., 3:, :] / mass


def center_of_mass_bias(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Acceleration of the centre of mass at v̇ = 0, (3,) or (batch, 3) [m/s²].

    With `center_of_mass_jacobian` J: the acceleration is J v̇ plus this.
    """
    return _linear(mech, momentum_bias, (q, v), status, threads)


def _linear(
    mech: Mechanism,
    of: Any,
    arrays: tuple[ArrayLike, ...],
    status: Status | None,
    threads: int | None,
) -> Array:
    """The linear part, over the mass."""
    mass = _mass(mech)
    whole: Array = of(mech, *arrays, about="world", status=status, threads=threads)
    return whole[..., 3:] / mass


def _mass(mech: Mechanism) -> float:
    check_mechanism(mech)
    mass = float(mech.total_mass)
    if not mass > 0.0:
        raise ModelError(f"{mech.name} has no mass: it has no centre of mass.")
    return mass
