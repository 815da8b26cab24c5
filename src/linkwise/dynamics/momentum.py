"""Momentum of the whole mechanism, and how it depends on the joint velocities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from linkwise.codegen.formula import Formula
from linkwise.dynamics.kernels import Status, roots, written
from linkwise.dynamics.quantity import expression
from linkwise.dynamics.whole_inertia import center
from linkwise.errors import ModelError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing

About: TypeAlias = Literal["com", "world"] | ArrayLike
"""The centre of mass, the origin of the world, or a point in it (3,) or (batch, 3) [m]."""


def momentum(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    about: About = "com",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Momentum of the whole mechanism: (angular about a point, linear), in world axes.

    Expression:
        to_W⁻* φ M V in the rows of the bodies on the ground, summed over them:
        `to_W.inv.T @ phi @ M @ V`, two passes, O(n)
    which is about the origin of the world; about c it is (k − c × p, p).

    The bodies alone count: rotors behind gears (armature) resist in 𝓜, but their spin is no
    part of this.

    Args:
        mech: The mechanism, free or on the ground; of several trees all are counted.
        about: "com", "world" or a point in the world (3,) or (batch, 3) [m].

    Returns:
        (6,) or (batch, 6) [kg m²/s, kg m/s].

    Raises:
        ModelError: `about` is "com" and there is no mass.
    """
    return _gathered(mech, "momentum", (q, v), about, (out, status, threads))


def momentum_matrix(
    mech: Mechanism,
    q: ArrayLike,
    *,
    about: About = "com",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Momentum per joint velocity; about the centre of mass, the centroidal momentum matrix.

    Expression:
        to_W⁻* φ M φ* H* = to_W⁻* φ R H* in the rows of the bodies on the ground, since there R φ~*
        takes from no parent:   `to_W.inv.T @ phi @ R @ H.T`

    Args:
        mech: The mechanism, free or on the ground; of several trees all are counted.
        about: "com", "world" or a point in the world (3,) or (batch, 3) [m].

    Returns:
        A with `momentum` = A v, (6, nv) or (batch, 6, nv).

    Raises:
        ModelError: `about` is "com" and there is no mass.
    """
    return _gathered(mech, "momentum_matrix", (q,), about, (out, status, threads))


def momentum_bias(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    about: About = "com",
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Ȧ v: the rate of momentum while no joint velocity changes.

    Expression:
        to_W⁻* φ (M φ* (a − a_g) + b) in the rows of the bodies on the ground:
        `to_W.inv.T @ phi @ (M @ phi.T @ (a - a_g) + b)`, two passes, O(n)

    The rate of momentum is A v̇ + Ȧ v; it equals the forces from outside, gravity and the ground
    included, about the same point. (About the centre of mass ċ × p vanishes, so nothing more comes
    in from the motion of that point.)

    Args:
        mech: The mechanism, free or on the ground; of several trees all are counted.
        about: "com", "world" or a fixed point in the world (3,) or (batch, 3) [m].

    Returns:
        (6,) or (batch, 6) [N m, N].

    Raises:
        ModelError: `about` is "com" and there is no mass.
    """
    return _gathered(mech, "momentum_bias", (q, v), about, (out, status, threads))


def _gathered(
    mech: Mechanism, name: str, arrays: tuple[ArrayLike, ...], about: About, options: Any
) -> Array:
    """A quantity at the roots, summed over them and referred to a point."""
    named = isinstance(about, str)
    if named and about not in ("com", "world"):
        raise ModelError(f"about is {about!r}; it must be 'com', 'world' or a point (3,).")
    kernel = written(mech, FORMULAS[name, about if named else "point"])
    point = () if named else (about,)
    out, status, threads = options
    if out is status is threads is None:
        return kernel(*arrays, *point)
    return kernel(*arrays, *point, out=out, status=status, threads=threads)


def at_roots(at: Writing, name: str, about: str) -> Any:
    """A quantity of `momentum_quantity.py` about a point, summed over the bodies on the ground."""
    if not at.mech.n_bodies:
        raise ModelError(f"{at.mech.name} has no bodies: it has no momentum.")
    names = roots(at.mech)
    rows = at.value(expression(name), rows=names)
    whole = rows.reshape(len(names), 6, *rows.shape[1:]).sum(axis=0)
    if about == "world":
        return whole
    from linkwise.sweeps.structured_block import columns_crossed

    c = center(at) if about == "com" else at.read("about", 3)
    return np.concatenate([whole[:3] - columns_crossed(c, whole[3:]), whole[3:]])


FORMULAS = {
    (name, about): Formula(at_roots, (name, about))
    for name in ("momentum", "momentum_matrix", "momentum_bias")
    for about in ("com", "world", "point")
}
