"""Where bodies and nodes are, and how they move with the joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.dynamics.kernels import Nodes, Status, kernel, named
from linkwise.dynamics.quantity import expression
from linkwise.dynamics.viewpoint import by_node, viewed, viewpoint
from linkwise.errors import ShapeError
from linkwise.model.embedded import Embedded
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.pose import Pose, trusted_pose

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


def forward_kinematics(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: Nodes | None = None,
    *,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Pose:
    """Poses in the world, of all bodies or of the nodes that are named.

    Expression:
        X for the bodies, X_B for nodes,   X(k) = X(p) X_pk(q(k)): one pass, O(n).

    Args:
        node: Name of a node or body, or several; by default all bodies, in their order.
        out: Array (..., 3, 4) for the rows of (rot | p), which the result then looks into.

    Returns:
        One pose for the name of one node, else a stack of k poses; for a batch with (batch,) in
        front: `rot` (batch, k, 3, 3), `p` (batch, k, 3) [m].
    """
    if type(node) is str and out is status is threads is None:  # most calls
        rows = kernel(mech, "node_poses", node)(q)
        rows = rows.reshape(3, 4) if rows.ndim == 1 else rows.reshape(-1, 3, 4)
        return trusted_pose(rows[..., :3], rows[..., 3])
    if node is None:
        found = named(mech, "body_poses")
        each: tuple[int, ...] = (mech.n_bodies, 3, 4)
    else:
        found = kernel(mech, "node_poses", node)
        each = (3, 4) if isinstance(node, str) else (len(node), 3, 4)
    result: Array
    if out is status is threads is None:
        result = found(q)
    else:
        flat = None if out is None else _flat(out, each)
        result = found(q, out=flat, status=status, threads=threads)
    rows = result.reshape(each if result.ndim == 1 else (len(result), *each))
    return trusted_pose(rows[..., :3], rows[..., 3])


def _flat(out: Array, each: tuple[int, ...]) -> Array:
    """The same memory with the entries of one state side by side."""
    if not isinstance(out, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ShapeError(f"out is a {type(out).__name__}; it must be an array.")
    lead = out.shape[: out.ndim - len(each)]
    if out.shape != (*lead, *each) or not out.flags.c_contiguous:
        shape = ", ".join(str(n) for n in each)
        raise ShapeError(f"out has shape {out.shape}; it must be contiguous, (..., {shape}).")
    return out.reshape(*lead, -1)


def jacobian(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    node: Nodes,
    *,
    frame: str = "node",
    about: str | None = None,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """The Jacobian: velocities (angular, linear) of nodes per joint velocity.

    Expression:
        J = B* φ* H*,   `J`, or `rot_W @ J` in world axes.
    Source: 002, "Jacobian Matrix".

    Its transpose takes forces (moment, force) at the nodes to the joint forces they act with. The
    velocity is always that against the world, whatever axes it is written in.

    Args:
        mech: The mechanism; loops and couplings are left open.
        frame: Axes: those of each "node" (as Pinocchio's LOCAL), of the "world" (as its
            LOCAL_WORLD_ALIGNED), or of any node or body by its name.
        about: The point whose linear velocity is meant, as if it were fixed on the node's body: by
            default the node's own origin, else that of any node or body, or of the "world" (with
            frame="world" Pinocchio's WORLD).

    Returns:
        (6 k, nv) for k nodes, or (batch, 6 k, nv).

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    if about is None and type(frame) is str and (frame == "node" or frame == "world"):
        found = kernel(mech, "jacobian", node, frame=frame)
    else:
        found = viewed(mech, jacobian_seen, node, frame, about)
    if out is status is threads is None:
        return found(q)
    return found(q, out=out, status=status, threads=threads)


def jacobian_seen(at: Writing, frame: str, about: str | None) -> Any:
    """The Jacobian from any viewpoint, as a formula."""
    J = at.value(expression("jacobian", frame="world"))
    return viewpoint(at, frame, about).moved(by_node(J)).reshape(J.shape)


def node_velocity(
    mech: Mechanism | Embedded,
    q: ArrayLike,
    v: ArrayLike,
    node: Nodes,
    *,
    frame: str = "node",
    about: str | None = None,
    out: Array | None = None,
    status: Status | None = None,
    threads: int | None = None,
) -> Array:
    """Spatial velocities (angular, linear) of nodes, without their Jacobian.

    Expression:
        J v = B* φ* H* v,   `J @ v`, or `rot_W @ J @ v` in world axes: one pass, O(n).

    Args:
        frame: Axes: those of each "node", of the "world", or of any node or body by its name.
        about: The point whose linear velocity is meant, as if it were fixed on the node's body: by
            default the node's own origin, else that of any node or body, or of the "world".

    Returns:
        (6 k,) for k nodes, or (batch, 6 k) [rad/s, m/s].
    """
    if about is None and type(frame) is str and (frame == "node" or frame == "world"):
        found = kernel(mech, "node_velocity", node, frame=frame)
    else:
        found = viewed(mech, _velocity_seen, node, frame, about)
    if out is status is threads is None:
        return found(q, v)
    return found(q, v, out=out, status=status, threads=threads)


def _velocity_seen(at: Writing, frame: str, about: str | None) -> Any:
    V = at.value(expression("node_velocity", frame="world"))
    return viewpoint(at, frame, about).moved(by_node(V)).ravel()
