"""How Jacobians change while the mechanism moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.dynamics.kernels import Nodes, Status, kernel
from linkwise.dynamics.quantity import expression
from linkwise.dynamics.viewpoint import by_node, motion, viewed, viewpoint
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross, cross_velocity_matrix, six

if TYPE_CHECKING:
    from linkwise.codegen.writing import Writing


def jacobian_dot_v(
    mech: Mechanism,
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
    """J̇ v: what nodes accelerate with while the joint velocities are constant.

    Expression:
        B* φ* A_V v,   `B.T @ phi.T @ A_V @ v`: one pass, O(n), in the axes of the nodes
    where A_V w = V × H* w + Ḣ* w. The rate of change of `node_velocity` is J v̇ + J̇ v with J and J̇
    in the same frame: components are differentiated, so that frames that turn leave their mark.

    * "node": the spatial acceleration in the node's axes (Pinocchio's LOCAL).
    * "world": the acceleration of the node's origin as one would measure it, in axes that do not
      turn; ω × v has been added to the one above (the classical acceleration of
      LOCAL_WORLD_ALIGNED).
    * "world" about the "world": the spatial acceleration in the axes of the world (WORLD).

    Gravity is not part of it.

    Args:
        frame: Axes, as for `jacobian`: those of each "node", of the "world", or of any node or body
            by its name, which move with it.
        about: The point, as for `jacobian`; it moves with the node or body it belongs to.

    Returns:
        (6 k,) for k nodes, or (batch, 6 k) [rad/s², m/s²].

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    if about is None and type(frame) is str and frame == "node":
        found = kernel(mech, "jacobian_dot_v", node)
    else:
        found = viewed(mech, _rate_times_v, node, frame, about)
    if out is status is threads is None:
        return found(q, v)
    return found(q, v, out=out, status=status, threads=threads)


def _rate_times_v(at: Writing, frame: str, about: str | None) -> Any:
    moving = motion(at, frame, about)
    rate = at.value(expression("jacobian_dot_v", frame="world")).reshape(-1, 6)
    rate = six(rate[:, :3], rate[:, 3:] + cross(moving.V[:, :3], moving.V[:, 3:]))
    seen = viewpoint(at, frame, about)
    return moving.rate(seen, by_node(moving.V.ravel()), by_node(rate.ravel())).ravel()


def jacobian_dot(
    mech: Mechanism,
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
    """J̇: the rate of change of the matrix that `jacobian` gives, while the joints move with v.

    Expression:
        J̇ = B* φ* A_V − (V_B ×) J in the axes of the nodes, V_B = J v,
        J̇ = rot_W B* φ* A_V − (0, v_B ×) rot_W J in those of the world
    where A_V w = V × H* w + Ḣ* w. `jacobian_dot_v` gives J̇ v without the matrix, in one pass.

    Args:
        frame: Axes, as for `jacobian`: those of each "node", of the "world" (as MuJoCo's
            `mj_jacDot`), or of any node or body by its name, which move with it.
        about: The point, as for `jacobian`; it moves with the node or body it belongs to.

    Returns:
        (6 k, nv) for k nodes, or (batch, 6 k, nv).

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    found = viewed(mech, rate, node, frame, about)
    if out is status is threads is None:
        return found(q, v)
    return found(q, v, out=out, status=status, threads=threads)


def rate(at: Writing, frame: str, about: str | None) -> Any:
    """J̇ from any viewpoint, as a formula."""
    axes = "node" if frame == "node" and about is None else "world"
    whole = at.value(expression("jacobian", frame=axes))
    J = by_node(whole)
    part = by_node(at.value(expression("jacobian_dot_part", frame=axes), v=at.v))
    if axes == "node":
        V = at.value(expression("node_velocity")).reshape(-1, 6)
        return (part - cross_velocity_matrix(V) @ J).reshape(whole.shape)
    moving = motion(at, frame, about)
    linear = part[:, 3:] - skew(moving.V[:, 3:]) @ J[:, :3]
    J_dot = np.concatenate([part[:, :3], linear], axis=1)
    return moving.rate(viewpoint(at, frame, about), J, J_dot).reshape(whole.shape)
