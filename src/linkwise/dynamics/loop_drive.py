"""The hinges of loops: their velocities, springs and dampers.

A cut hinge has no entry in v and τ. Its velocity W follows from those of the two nodes,

    V_b - T V_a = H* W                          W = (H H*)⁻¹ H (V_b - T V_a)

and a force f inside it is a pair of forces at the nodes with the same power f · W:

    on b, in its axes, F = H* (H H*)⁻¹ f;       on a the opposite one, -T* F.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard, cast

import numpy as np

from linkwise.dynamics.closure import closure_nodes, loop_coordinates, relative_poses
from linkwise.dynamics.kernels import check_mechanism, kernel
from linkwise.errors import ModelError, ShapeError, unknown_name
from linkwise.model.body import WORLD, Loop
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike, floats

TURN = 2.0 * np.pi


def loop_velocities(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> dict[str, Array]:
    """W: the velocity inside the hinge of each loop, by the loop's name.

    Expression:
        W = (H H*)⁻¹ H (V_b - T V_a)
    Where loops are not closed it is that of the nearest motion that the hinge allows.

    Returns:
        For each loop (nv of its hinge,) or (batch, nv of its hinge).

    Raises:
        ShapeError: An array does not fit, or q and v are batches of different size.
    """
    q, v = _state(mech, q, v)
    return _velocities(mech, q, v, loop_coordinates(mech, q))


def loop_drive_forces(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    *,
    near: Mapping[str, ArrayLike] | None = None,
) -> dict[str, Array]:
    """Forces at nodes of the springs and dampers inside loops, as the argument `forces` takes them.

    Expression:
        f = -k (θ - rest) - d W,   F_b = H* (H H*)⁻¹ f,   F_a = -T* F_b
    The spring of a hinge with a quaternion is at rest at neutral. Coulomb friction and limits are
    not included.

    θ is computed from the pose of the two nodes, which does not count turns: angles are in (-π, π],
    and the force of a spring jumps where a hinge passes π. For a spring that is wound up farther
    `near` gives the approximate angle; in a plane that is a sum of angles of the tree.

    Args:
        mech: The mechanism; `loop.drive` has stiffness, rest and damping.
        near: Approximate coordinates of the hinges of loops, by the loop's name: (nq of its
            hinge,) or (batch, nq of its hinge), or a number for one coordinate [m or rad]. Angles
            that repeat after a turn are moved by full turns to be nearest to them.

    Returns:
        By node (moment, force), (6,) or (batch, 6) [N m, N], about its origin, in its own axes.
        Nodes on the ground and those of loops without spring and damper are omitted.

    Raises:
        ShapeError: An array does not fit, or q and v are batches of different size.
        UnknownNameError: Coordinates for a loop that the mechanism does not have.
    """
    q, v = _state(mech, q, v)
    theta, forces = _coordinates(mech, q, near), dict[str, Array]()
    W, poses = _velocities(mech, q, v, theta), relative_poses(mech, q)
    for loop, X_ab in zip(mech.loops, poses, strict=True):
        stiffness, damping = (loop.drive.array(x, loop.hinge) for x in ("stiffness", "damping"))
        if not stiffness.any() and not damping.any():
            continue
        f = -stiffness * _stretch(loop, theta[loop.name]) - damping * W[loop.name]
        H = loop.hinge.hinge_map(theta[loop.name])
        on_b = _times(np.swapaxes(H, -1, -2), _solved(H, f))
        for name, force in ((loop.node_b, on_b), (loop.node_a, -X_ab.shift_force(on_b))):
            if mech.node(name).body != WORLD:
                forces[name] = forces[name] + force if name in forces else force
    return forces


def has_loop_drives(mech: object) -> TypeGuard[Mechanism]:
    """Whether there are springs or dampers inside loops."""
    kinds = ("damping", "stiffness")
    loops: tuple[Loop, ...] = mech.loops if isinstance(mech, Mechanism) else ()
    return any(x.drive.array(kind, x.hinge).any() for x in loops for kind in kinds)


def _coordinates(
    mech: Mechanism, q: Array, near: Mapping[str, ArrayLike] | None
) -> dict[str, Array]:
    """θ of each loop, nearest to the given coordinates."""
    if near is None:
        return loop_coordinates(mech, q)
    lead = q.shape[:-1]
    given = _near(mech, near, lead)
    parts = dict[str, list[Array]]()
    for i in np.ndindex(*lead):
        start = {name: x[i] if x.ndim > 1 else x for name, x in given.items()}
        for name, each in loop_coordinates(mech, q[i], start).items():
            parts.setdefault(name, []).append(each)
    shapes = {loop.name: (*lead, loop.hinge.nq) for loop in mech.loops}
    theta_of = {name: np.reshape(parts.get(name, []), shape) for name, shape in shapes.items()}
    for loop in mech.loops:
        if loop.name in given:
            theta_of[loop.name] = _wound(loop, theta_of[loop.name], given[loop.name])
    return theta_of


def _near(mech: Mechanism, near: object, lead: tuple[int, ...]) -> dict[str, Array]:
    """Coordinates as arrays (nq,) or (batch, nq), checked."""
    if not isinstance(near, Mapping):
        raise ModelError(f"near is {near!r}; it must be a dictionary of coordinates by loop.")
    loops, checked = {loop.name: loop for loop in mech.loops}, dict[str, Array]()
    for name, value in cast("Mapping[str, ArrayLike]", near).items():
        if name not in loops:
            raise unknown_name("loop", name, list(loops), owner=f"mechanism {mech.name!r}")
        x, size = floats(value, f"near[{name!r}]"), loops[name].hinge.nq
        x = x[None] if x.ndim == 0 else x
        if x.shape not in ((size,), (*lead, size)):
            also = f" or {(*lead, size)}" if lead else ""
            raise ShapeError(
                f"near[{name!r}] has shape {x.shape}; its hinge takes ({size},){also}."
            )
        if not np.isfinite(x).all():
            raise ModelError(f"near[{name!r}] is not finite: {x.tolist()}.")
        checked[name] = x
    return checked


def _wound(loop: Loop, theta: Array, near: Array) -> Array:
    """θ + 2π k, nearest to the near, for angles that leave the pose unchanged after a turn."""
    hinge, neutral = loop.hinge, loop.hinge.neutral()
    here = hinge.pose(neutral)
    turns = np.zeros(hinge.nq)
    for i, coordinate in enumerate(hinge.coordinates):
        if coordinate.unit == "rad":
            once = hinge.pose(neutral + TURN * np.eye(hinge.nq)[i])
            same = (
                np.allclose(once.rot, here.rot, atol=1e-9),
                np.allclose(once.p, here.p, atol=1e-9),
            )
            turns[i] = all(same)
    return theta + TURN * turns * np.round((near - theta) / TURN)


def _state(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    check_mechanism(mech)
    q, v = mech.check_q(q), mech.check_v(v)
    if q.ndim > 1 and v.ndim > 1 and q.shape[:-1] != v.shape[:-1]:
        raise ShapeError(f"q {q.shape} and v {v.shape} do not fit: their batches differ.")
    lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    return np.broadcast_to(q, (*lead, mech.nq)), np.broadcast_to(v, (*lead, mech.nv))


def _velocities(mech: Mechanism, q: Array, v: Array, theta: dict[str, Array]) -> dict[str, Array]:
    velocities = dict[str, Array]()
    if not mech.loops:
        return velocities
    speeds = kernel(mech, "node_velocity", closure_nodes(mech))(q, v)
    V = np.reshape(speeds, (*q.shape[:-1], len(mech.loops), 2, 6))
    for i, (loop, X_ab) in enumerate(zip(mech.loops, relative_poses(mech, q), strict=True)):
        V_ab = V[..., i, 1, :] - X_ab.shift_velocity(V[..., i, 0, :])
        H = loop.hinge.hinge_map(theta[loop.name])
        velocities[loop.name] = _solved(H, _times(H, V_ab))
    return velocities


def _stretch(loop: Loop, theta: Array) -> Array:
    """θ - rest (..., nv), along the velocities of the hinge."""
    hinge = loop.hinge
    rest = hinge.neutral() if hinge.quaternion else loop.drive.array("rest", hinge)
    return hinge.difference(np.broadcast_to(rest, theta.shape), theta)


def _solved(H: Array, x: Array) -> Array:
    """(H H*)⁻¹ x."""
    solution = np.linalg.solve(H @ np.swapaxes(H, -1, -2), x[..., None])[..., 0]
    return np.asarray(solution, dtype=np.float64)


def _times(matrix: Array, vector: Array) -> Array:
    return (matrix @ vector[..., None])[..., 0]
