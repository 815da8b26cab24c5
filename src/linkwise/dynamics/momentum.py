"""Momentum of the whole mechanism, and how it depends on the joint velocities."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

import numpy as np

from linkwise.dynamics.kernels import Status, check_mechanism, kernel, put
from linkwise.dynamics.whole_inertia import whole_inertia
from linkwise.errors import ModelError, ShapeError
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats
from linkwise.spatial.vector import cross

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
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        about: "com", "world" or a point in the world (3,) or (batch, 3) [m].
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

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
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        about: "com", "world" or a point in the world (3,) or (batch, 3) [m].
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

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
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        about: "com", "world" or a fixed point in the world (3,) or (batch, 3) [m].
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

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
    check_mechanism(mech)
    out, status, threads = options
    if not mech.n_bodies:
        raise ModelError(f"{mech.name} has no bodies: it has no momentum.")
    rows = kernel(mech, name)(*arrays, status=status, threads=threads)
    columns = rows.shape[-1:] if name == "momentum_matrix" else ()
    lead = rows.shape[: rows.ndim - 1 - len(columns)]
    roots = rows.shape[len(lead)] // 6
    whole = rows.reshape(*lead, roots, 6, *columns).sum(axis=len(lead))
    if not (isinstance(about, str) and about == "world"):
        point = _point(mech, arrays[0], about, threads, lead)
        if columns:  # of each column
            turned = np.swapaxes(whole, -1, -2)
            point = point[..., None, :]
        else:
            turned = whole
        angular = turned[..., :3] - cross(point, turned[..., 3:])
        moved = np.concatenate([angular, np.broadcast_to(turned[..., 3:], angular.shape)], axis=-1)
        whole = np.swapaxes(moved, -1, -2) if columns else moved
    return put(np.ascontiguousarray(whole), out)


def _point(
    mech: Mechanism, q: ArrayLike, about: About, threads: int | None, lead: tuple[int, ...]
) -> Array:
    """Where the point is in the world (3,) or (batch, 3)."""
    if isinstance(about, str):
        if about != "com":
            raise ModelError(f"about is {about!r}; it must be 'com', 'world' or a point (3,).")
        # A state in trouble is NaN already, and told by the other kernel.
        quiet = np.zeros(np.shape(q)[:-1], dtype=np.int32)
        return whole_inertia(mech, q, status=quiet, threads=threads).com
    point = floats(cast("ArrayLike", about), "about")
    if point.ndim not in (1, 2) or point.shape[-1] != 3:
        raise ShapeError(f"about has shape {point.shape}; a point is (3,) or (batch, 3).")
    if point.ndim == 2 and lead and 1 != len(point) != lead[0] != 1:
        raise ShapeError(f"about has {len(point)} rows; there are {lead[0]} states.")
    if not np.isfinite(point).all():
        raise ModelError("about is not finite.")
    return point
