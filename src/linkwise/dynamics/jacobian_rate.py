"""How Jacobians change while the mechanism moves."""

from __future__ import annotations

import numpy as np

from linkwise.dynamics.codes import Codes
from linkwise.dynamics.kernels import Nodes, Status, kernel
from linkwise.dynamics.viewpoint import by_node, check, motion, viewpoint
from linkwise.model.mechanism import Mechanism
from linkwise.spatial.array import Array, ArrayLike
from linkwise.spatial.rotation import skew
from linkwise.spatial.vector import cross


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
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        node: Name of a node or body, or several, one after the other.
        frame: Axes, as for `jacobian`: those of each "node", of the "world", or of any node or body
            by its name, which move with it.
        about: The point, as for `jacobian`; it moves with the node or body it belongs to.
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        (6 k,) for k nodes, or (batch, 6 k) [rad/s², m/s²].

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    if about is None and type(frame) is str and frame == "node":
        found = kernel(mech, "jacobian_dot_v", node)
        if out is status is threads is None:
            return found(q, v)
        return found(q, v, out=out, status=status, threads=threads)
    check(mech, frame, about)
    found, codes = kernel(mech, "jacobian_dot_v", node, frame="world"), Codes(status, q, v)
    result = codes.run(found, q, v, out=out, threads=threads)
    each = by_node(result[..., None])
    moving = motion(mech, q, v, node, frame, about, codes)
    each[..., 3:, 0] += cross(moving.V[..., :3], moving.V[..., 3:])
    if frame != "world" or about is not None:
        at = viewpoint(mech, q, node, frame, about, codes)
        moving.rate(at, moving.V[..., None].copy(), each)
    return codes.told(result)


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
        mech: The mechanism.
        q: Joint positions (nq,) or (batch, nq) [m or rad].
        v: Joint velocities (nv,) or (batch, nv) [m/s or rad/s].
        node: Name of a node or body, or several, whose rows stand one below the other.
        frame: Axes, as for `jacobian`: those of each "node", of the "world" (as MuJoCo's
            `mj_jacDot`), or of any node or body by its name, which move with it.
        about: The point, as for `jacobian`; it moves with the node or body it belongs to.
        out: Where to put the result.
        status: For a batch, int32 (batch,): receives a code for each state, 0 where all is well.
        threads: Processor cores for a batch; by default as many as are worth it.

    Returns:
        (6 k, nv) for k nodes, or (batch, 6 k, nv).

    Raises:
        UnknownNameError: A node that the mechanism does not have; lists those it has.
    """
    check(mech, frame, about)
    found, codes = kernel(mech, "jacobian_dot_part", node, frame="world"), Codes(status, q, v)
    result = codes.run(found, q, v, out=out, threads=threads)
    each = by_node(result)
    moving = motion(mech, q, v, node, frame, about, codes)
    J = by_node(codes.run(kernel(mech, "jacobian", node, frame="world"), q))
    each[..., 3:, :] -= skew(moving.V[..., 3:]) @ J[..., :3, :]
    if frame != "world" or about is not None:
        at = viewpoint(mech, q, node, frame, about, codes)
        moving.rate(at, np.array(np.broadcast_to(J, each.shape)), each)
    return codes.told(result)
