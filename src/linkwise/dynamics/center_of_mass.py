"""The centre of mass: where it is, how it moves, and what the joints have to do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import Status, written
from linkwise.dynamics.momentum import at_roots
from linkwise.dynamics.whole_inertia import center, check_mass
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


def center_of_mass(
    mech: Mechanism, q: ArrayLike, *, status: Status | None = None, threads: int | None = None
) -> Array:
    """Centre of mass of the whole mechanism in the world (3,) or (batch, 3) [m].

    It stands in the composite inertia of the bodies on the ground: see `whole_inertia`, whose
    arguments these are.
    """
    return _called(mech, CENTER, (q,), status, threads)


def center_of_mass_velocity(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Velocity of the centre of mass (3,) or (batch, 3) [m/s]: linear momentum over mass."""
    return _called(mech, LINEAR["momentum"], (q, v), status, threads)


def center_of_mass_jacobian(
    mech: Mechanism, q: ArrayLike, *, status: Status | None = None, threads: int | None = None
) -> Array:
    """Velocity of the centre of mass per joint velocity, (3, nv) or (batch, 3, nv)."""
    return _called(mech, LINEAR["momentum_matrix"], (q,), status, threads)


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
    return _called(mech, LINEAR["momentum_bias"], (q, v), status, threads)


def _called(
    mech: Mechanism,
    formula: Formula,
    arrays: tuple[ArrayLike, ...],
    status: Status | None,
    threads: int | None,
) -> Array:
    kernel = written(mech, formula)
    if status is threads is None:
        return kernel(*arrays)
    return kernel(*arrays, status=status, threads=threads)


def linear(at: Writing, name: str) -> Any:
    """The linear part of a momentum over the mass, as a formula."""
    return at_roots(at, name, "world")[3:] / check_mass(at.mech)


CENTER = Formula(center)
LINEAR = {
    name: Formula(linear, (name,)) for name in ("momentum", "momentum_matrix", "momentum_bias")
}
